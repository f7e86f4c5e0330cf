#include "gpu/virtual/machine/diagnosis/report.h"
#include "gpu/virtual/machine/diagnosis/suppressions.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace kvscope::ptx {
namespace {

struct KindInfo {
  ReportKind kind;
  std::string_view name;
  Severity severity;
};

constexpr std::array kKinds{
    KindInfo{ReportKind::out_of_bounds, "OUT_OF_BOUNDS", Severity::error},
    KindInfo{ReportKind::misaligned, "MISALIGNED", Severity::error},
    KindInfo{ReportKind::bad_window, "BAD_WINDOW", Severity::error},
    KindInfo{ReportKind::use_after_free, "USE_AFTER_FREE", Severity::error},
    KindInfo{ReportKind::uninitialized, "UNINITIALIZED", Severity::error},
    KindInfo{ReportKind::race_ww, "RACE_WW", Severity::error},
    KindInfo{ReportKind::race_wr, "RACE_WR", Severity::error},
    KindInfo{ReportKind::race_rw, "RACE_RW", Severity::error},
    KindInfo{ReportKind::proxy_fence, "PROXY_FENCE", Severity::error},
    KindInfo{ReportKind::deadlock, "DEADLOCK", Severity::error},
    KindInfo{ReportKind::global_spin, "GLOBAL_SPIN", Severity::error},
    KindInfo{ReportKind::runaway, "RUNAWAY", Severity::error},
    KindInfo{ReportKind::tma_arg, "TMA_ARG", Severity::error},
    KindInfo{ReportKind::cp_arg, "CP_ARG", Severity::error},
    KindInfo{ReportKind::trap, "TRAP", Severity::error},
    KindInfo{ReportKind::assert_, "ASSERT", Severity::error},
    KindInfo{ReportKind::unsupported, "UNSUPPORTED", Severity::error},
    KindInfo{ReportKind::stack, "STACK", Severity::error},
    KindInfo{ReportKind::store_collision, "STORE_COLLISION", Severity::warning},
    KindInfo{ReportKind::nc_modified, "NC_MODIFIED", Severity::warning},
    KindInfo{ReportKind::reg_in_flight, "REG_IN_FLIGHT", Severity::error},
    KindInfo{ReportKind::no_wgmma_fence, "NO_WGMMA_FENCE", Severity::error},
    KindInfo{ReportKind::diverged, "DIVERGED", Severity::error},
    KindInfo{ReportKind::diverged_warpgroup, "DIVERGED_WARPGROUP", Severity::error},
    KindInfo{ReportKind::barrier_rearrive, "BARRIER_REARRIVE", Severity::error},
    KindInfo{ReportKind::barrier_mismatch, "BARRIER_MISMATCH", Severity::error},
    KindInfo{ReportKind::mbar_underflow, "MBAR_UNDERFLOW", Severity::error},
    KindInfo{ReportKind::mbar_tx, "MBAR_TX", Severity::error},
    KindInfo{ReportKind::no_mbarrier, "NO_MBARRIER", Severity::error},
    KindInfo{ReportKind::mbarrier_touched, "MBARRIER_TOUCHED", Severity::error},
    KindInfo{ReportKind::tma_all_fill, "TMA_ALL_FILL", Severity::note},
    KindInfo{ReportKind::warp_pc_mix, "WARP_PC_MIX", Severity::note},
    KindInfo{ReportKind::same_value, "SAME_VALUE", Severity::note},
    KindInfo{ReportKind::leak, "LEAK", Severity::note},
    KindInfo{ReportKind::div_by_zero, "DIV_BY_ZERO", Severity::warning},
    KindInfo{ReportKind::exit_in_flight, "EXIT_IN_FLIGHT", Severity::error},
    KindInfo{ReportKind::dsmem_after_exit, "DSMEM_AFTER_EXIT", Severity::error},
    KindInfo{ReportKind::invalid_launch, "INVALID_LAUNCH", Severity::error},
    KindInfo{ReportKind::watch_limit, "WATCH_LIMIT", Severity::warning},
    KindInfo{ReportKind::register_count, "REGISTER_COUNT", Severity::error},
    KindInfo{ReportKind::limit, "LIMIT", Severity::error},
    KindInfo{ReportKind::absent_threads, "ABSENT_THREADS", Severity::warning},
    KindInfo{ReportKind::tensor_alloc, "TENSOR_ALLOC", Severity::error},
    KindInfo{ReportKind::tensor_access, "TENSOR_ACCESS", Severity::error},
    KindInfo{ReportKind::tensor_order, "TENSOR_ORDER", Severity::error},
    KindInfo{ReportKind::tensor_fence, "TENSOR_FENCE", Severity::warning},
    KindInfo{ReportKind::product_arg, "PRODUCT_ARG", Severity::error},
};

const KindInfo& info(ReportKind kind) {
  const KindInfo& of = kKinds[static_cast<std::size_t>(kind)];
  return of;
}

constexpr bool in_order() {
  for (std::size_t i = 0; i < kKinds.size(); ++i) {
    if (static_cast<std::size_t>(kKinds[i].kind) != i) return false;
  }
  return true;
}
static_assert(in_order());

// The title of a report; races name the order of the accesses.
std::string_view title(ReportKind kind) {
  switch (kind) {
    case ReportKind::race_ww:
      return "RACE write-after-write";
    case ReportKind::race_wr:
      return "RACE read-after-write";
    case ReportKind::race_rw:
      return "RACE write-after-read";
    default:
      return name(kind);
  }
}

std::string to_text(const ReportAddress& a) {
  std::string out = a.space == Space::shared ? fmt::format("shared 0x{:05x}", a.absolute)
                                             : fmt::format("{} 0x{:x}", name(a.space), a.absolute);
  if (!a.symbol.empty()) out += fmt::format(" ({} {} {})", a.symbol, a.offset < 0 ? '-' : '+', std::abs(a.offset));
  return out;
}

// Column positions of the parties' lines: opcodes are aligned, sources are aligned, ten characters apart.
struct Columns {
  std::size_t action = 5;
  std::size_t opcode = 0;
  std::size_t source = 0;
};

Columns columns(const std::vector<ReportParty>& parties) {
  constexpr std::size_t kBehindOpcode = 10, kBehindActor = 3;
  Columns out;
  std::size_t actor = 0, opcode = 0;
  for (const ReportParty& p : parties) {
    out.action = std::max(out.action, p.action.size());
    if (p.opcode.empty()) {
      out.source = std::max(out.source, p.actor.size() + kBehindActor);
    } else {
      actor = std::max(actor, p.actor.size());
      opcode = std::max(opcode, p.opcode.size());
    }
  }
  if (opcode > 0) out.source = std::max(out.source, actor + 2 + opcode + kBehindOpcode);
  if (opcode > 0) out.opcode = out.source - kBehindOpcode - opcode;
  return out;
}

std::string line_of(const ReportParty& p, const Columns& at) {
  std::string out = fmt::format("  {:<{}}  ", p.action, at.action);
  std::string rest = p.actor;
  if (!p.opcode.empty()) {
    rest.resize(std::max(rest.size(), at.opcode), ' ');
    rest += p.opcode;
  }
  if (!p.source.empty()) {
    rest.resize(std::max(rest.size(), at.source), ' ');
    rest += p.source;
  }
  return out + rest;
}

// Appends every line of `text`, indented.
void add_lines(std::string& out, std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    out += "\n  ";
    out += text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// Kind, severity and positions: reports with equal keys are duplicates.
std::uint64_t key_of(const Report& report) {
  std::uint64_t h = 0xcbf29ce484222325u;
  const auto mix = [&h](std::uint64_t v) {
    for (int i = 0; i < 8; ++i) h = (h ^ (v >> (8 * i) & 0xff)) * 0x100000001b3u;
  };
  mix(static_cast<std::uint64_t>(report.kind) | static_cast<std::uint64_t>(report.severity) << 32);
  for (const ReportParty& p : report.parties) {
    const std::uint64_t line = p.has_line ? std::hash<std::string>{}(p.source) : 0;
    mix(p.has_line ? line : static_cast<std::uint64_t>(static_cast<std::int64_t>(p.pc)));
  }
  return h;
}

}  // namespace

std::string_view name(ReportKind kind) {
  return info(kind).name;
}

std::optional<ReportKind> report_kind_from_name(std::string_view name) {
  for (const KindInfo& kind : kKinds) {
    if (kind.name == name) return kind.kind;
  }
  return std::nullopt;
}

std::string_view name(Severity severity) {
  constexpr std::array<std::string_view, 3> kNames{"note", "warning", "error"};
  return kNames[static_cast<std::size_t>(severity)];
}

std::optional<Severity> severity_from_name(std::string_view text) {
  for (const Severity severity : {Severity::note, Severity::warning, Severity::error}) {
    if (name(severity) == text) return severity;
  }
  return std::nullopt;
}

Severity severity_of(ReportKind kind) {
  return info(kind).severity;
}

std::string to_text(const Report& report) {
  // The message contains the place, the instruction and the kernel: one line, as in a list of messages.
  if (report.kind == ReportKind::unsupported) return fmt::format("{} {}", name(report.kind), report.message);
  std::string out(title(report.kind));
  if (report.address.known) out += "  " + to_text(report.address);
  if (!report.kernel.empty()) {
    out += fmt::format("  kernel {}  cta ({},{},{})", report.short_kernel.empty() ? report.kernel : report.short_kernel,
                       report.cta[0], report.cta[1], report.cta[2]);
  }
  const Columns at = columns(report.parties);
  for (const ReportParty& p : report.parties) out += "\n" + line_of(p, at);
  add_lines(out, report.message);
  add_lines(out, report.hint);
  return out;
}

bool Reports::add(Report report) {
  if (suppressions_ != nullptr && suppressions_->matches(report)) return false;
  const std::uint64_t key = key_of(report);
  const auto same = std::find(keys_.begin(), keys_.end(), key);
  if (same != keys_.end()) ++reports_[static_cast<std::size_t>(same - keys_.begin())].repeated;
  if (full() || same != keys_.end()) {
    ++repeated_;
    return false;
  }
  keys_.push_back(key);
  reports_.push_back(std::move(report));
  return true;
}

}  // namespace kvscope::ptx
