#include "gpu/virtual/debug/state_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <utility>

#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/memory/windows.h"
#include "gpu/virtual/machine/warp/residents.h"
#include "gpu/virtual/text/print.h"

namespace kvscope::ptx {
namespace {

constexpr std::int64_t kBytesOfLine = 16;
constexpr std::size_t kMostGroups = 4;  // maximum number of groups of equal lanes; above that, each lane is printed
constexpr int kLanesOfLine = 8;

const Warp* find_warp(const Launch& launch, std::int32_t cta, std::int32_t warp) {
  const Cta* c = find_cta(launch, cta);
  if (c == nullptr || warp < 0 || warp >= static_cast<std::int32_t>(c->warps.size())) return nullptr;
  return &c->warps[static_cast<std::size_t>(warp)];
}

// The lane group that contains these lanes, or most of them.
const LaneGroup* find_lane_group(const Warp& warp, LaneMask lanes) {
  const LaneGroup* best = nullptr;
  for (const LaneGroup& f : warp.lane_groups) {
    const int common = std::popcount(f.lanes & lanes);
    if (common > 0 && (best == nullptr || common > std::popcount(best->lanes & lanes))) best = &f;
  }
  return best;
}

// The registers of a lane group: their declarations, places and content.
struct GroupRegisters {
  const std::vector<Register>& declared;
  const std::vector<RegisterPlace>& places;
  const LaneGroup& group;
  const std::byte* content;
};

std::optional<GroupRegisters> registers_of(const Launch& launch, std::int32_t cta, std::int32_t warp, LaneMask lanes) {
  const Warp* w = find_warp(launch, cta, warp);
  const LaneGroup* f = w == nullptr ? nullptr : find_lane_group(*w, lanes);
  if (f == nullptr) return std::nullopt;
  const Activation& activation = w->activations[static_cast<std::size_t>(f->activation)];
  const auto function = static_cast<std::size_t>(activation.function);
  return GroupRegisters{launch.program->module->functions[function].registers,
                        launch.program->functions[function].registers, *f, activation.registers.data()};
}

// std::nullopt: the function never uses the register.
std::optional<RegisterValue> value_of(const GroupRegisters& registers, std::size_t r) {
  const RegisterPlace& place = registers.places[r];
  if (place.reg == kNoRegister) return std::nullopt;
  RegisterValue out{.name = kvscope::ptx::name(registers.declared[r]),
                    .type = registers.declared[r].type,
                    .lanes = registers.group.lanes,
                    .alive = place.alive.empty(),
                    .bits = {}};
  for (const auto& [from, to] : place.alive) {
    out.alive = out.alive || (registers.group.pc >= from && registers.group.pc < to);
  }
  out.bits.resize(kLanes);
  const std::byte* at = registers.content + place.reg;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    if (place.bytes == 0) {
      LaneMask word = 0;
      std::memcpy(&word, at, sizeof word);
      out.bits[lane] = word >> lane & 1;
    } else {
      std::memcpy(&out.bits[lane], at + lane * place.bytes, std::min<std::size_t>(place.bytes, 8));
    }
  }
  return out;
}

// Untyped bits are mostly integers or floats. The size is used to guess: a small number is an integer.
bool looks_like_float(std::uint64_t bits) {
  const auto exponent = bits >> 23 & 0xff;
  return exponent > 64 && exponent < 192 && (bits & 0x7fff'ffff) >= (1u << 24);
}

// The number followed by its bits, if they differ.
std::string number_text(Type type, std::uint64_t value) {
  const std::string said = value_text(type, value);
  if (type == Type::pred || said.starts_with("0x")) return said;
  return fmt::format("0x{:0{}x}  {}", value, bits(type) / 4, said);
}

}  // namespace

std::string lanes_text(LaneMask lanes) {
  if (lanes == kAllLanes) return "all lanes";
  std::string out;
  for (int lane = 0; lane < kLanes;) {
    if ((lanes >> lane & 1) == 0) {
      ++lane;
      continue;
    }
    int end = lane;
    while (end + 1 < kLanes && (lanes >> (end + 1) & 1) != 0) ++end;
    out += fmt::format("{}{}", out.empty() ? "" : ",", lane);
    if (end > lane) out += fmt::format("-{}", end);
    lane = end + 1;
  }
  return (std::has_single_bit(lanes) ? "lane " : "lanes ") + out;
}

std::string wait_text(const Launch& launch, const LaneGroup& f) {
  const Wait& wait = f.wait;
  switch (wait.kind) {
    case WaitKind::none:
      return {};
    case WaitKind::warp_sync:
      return fmt::format("lanes {:08x}", wait.object);
    case WaitKind::warp_aligned:
      return "the other lanes of its warp";
    case WaitKind::warpgroup:
      return "the other warps of its warpgroup";
    case WaitKind::named_barrier:
      return fmt::format("barrier {}", wait.object);
    case WaitKind::mbarrier: {
      const ReportAddress at = name_address(launch, Space::shared, wait.object, 8);
      return fmt::format("mbarrier 0x{:05x} ({} + {}), {} {}", wait.object, at.symbol, at.offset,
                         wait.parity ? "parity" : "phase", wait.value);
    }
    case WaitKind::cluster_barrier:
      return "the cluster's barrier";
    case WaitKind::tensor_room:
      return "free columns of tensor memory";
    case WaitKind::tensor_peer:
      return "the same instruction in the peer CTA";
  }
  return {};
}

std::string value_text(Type type, std::uint64_t value) {
  switch (type) {
    case Type::pred:
      return value != 0 ? "true" : "false";
    case Type::f32:
      return fmt::format("{}", std::bit_cast<float>(static_cast<std::uint32_t>(value)));
    case Type::f64:
      return fmt::format("{}", std::bit_cast<double>(value));
    case Type::s16:
      return fmt::format("{}", static_cast<std::int16_t>(value));
    case Type::s32:
      return fmt::format("{}", static_cast<std::int32_t>(value));
    case Type::s64:
      return fmt::format("{}", static_cast<std::int64_t>(value));
    case Type::b32:
      if (looks_like_float(value)) return fmt::format("{}f", std::bit_cast<float>(static_cast<std::uint32_t>(value)));
      return fmt::format("{}", static_cast<std::int32_t>(value));
    case Type::b64:
    case Type::u64:
      // Most large values are addresses.
      return value < 65536 ? fmt::format("{}", value) : fmt::format("0x{:x}", value);
    default:
      return fmt::format("{}", value);
  }
}

std::string instruction_text(const Program& program, std::int32_t pc) {
  const OpSource& source = program.sources[static_cast<std::size_t>(pc)];
  const Function& function = program.module->functions[static_cast<std::size_t>(source.function)];
  const auto statement = static_cast<std::size_t>(source.statement);
  // After the last statement, the machine adds a ret that is not in the text.
  return statement < function.body.size() ? to_ptx(*program.module, function, function.body[statement]) : "ret";
}

std::string where_text(const Launch& launch, const Position* next) {
  std::string out;
  for (const Cta& cta : launch.ctas) {
    if (cta.state == CtaState::done) continue;
    out += fmt::format("cta ({},{},{}){}\n", cta.at[0], cta.at[1], cta.at[2],
                       cta.state == CtaState::suspended ? "  suspended: it polls" : "");
    for (const Warp& warp : cta.warps) {
      for (const LaneGroup& f : warp.lane_groups) {
        if (f.lanes == 0) continue;
        const bool is_next =
            next != nullptr && next->cta == cta.index && next->warp == warp.index && (next->lanes & f.lanes) != 0;
        const char* state = is_next ? "next" : (f.state == LaneGroupState::waiting ? "waits" : "ready");
        std::string line = fmt::format("  warp {:<2}  lanes {:08x}  {:<5}  {}  {}", warp.index, f.lanes, state,
                                       launch.program->source_text(f.instruction()),
                                       instruction_text(*launch.program, f.instruction()));
        if (f.state == LaneGroupState::waiting) line += "  waits for " + wait_text(launch, f);
        out += line + "\n";
      }
    }
  }
  return out.empty() ? "no CTA is at work\n" : out;
}

std::optional<RegisterValue> read_register(const Launch& launch, std::int32_t cta, std::int32_t warp, LaneMask lanes,
                                           std::string_view name) {
  const auto registers = registers_of(launch, cta, warp, lanes);
  if (!registers) return std::nullopt;
  for (std::size_t r = 0; r < registers->declared.size(); ++r) {
    if (kvscope::ptx::name(registers->declared[r]) == name) return value_of(*registers, r);
  }
  return std::nullopt;
}

std::vector<RegisterValue> live_registers(const Launch& launch, std::int32_t cta, std::int32_t warp, LaneMask lanes) {
  std::vector<RegisterValue> out;
  const auto registers = registers_of(launch, cta, warp, lanes);
  if (!registers) return out;
  for (std::size_t r = 0; r < registers->declared.size(); ++r) {
    auto value = value_of(*registers, r);
    if (value && value->alive) out.push_back(std::move(*value));
  }
  return out;
}

std::string to_text(const RegisterValue& value) {
  std::vector<std::pair<std::uint64_t, LaneMask>> groups;
  for (int lane = 0; lane < kLanes; ++lane) {
    const LaneMask bit = LaneMask{1} << lane;
    if ((value.lanes & bit) == 0) continue;
    const std::uint64_t bits = value.bits[static_cast<std::size_t>(lane)];
    bool found = false;
    for (auto& [same, lanes] : groups) {
      if (same == bits) lanes |= bit, found = true;
    }
    if (!found) groups.emplace_back(bits, bit);
  }
  std::string out = fmt::format("{}  .{}{}\n", value.name, name(value.type),
                                value.alive ? "" : "  not alive here: its place may hold another register by now");
  if (groups.size() <= kMostGroups) {
    for (const auto& [bits, lanes] : groups) {
      const bool everyone = lanes == value.lanes;
      out += fmt::format("  {:<16}  {}\n", everyone ? "all lanes" : lanes_text(lanes), number_text(value.type, bits));
    }
    return out;
  }
  for (int line = 0; line < kLanes; line += kLanesOfLine) {
    out += fmt::format("  {:<16} ", fmt::format("lanes {}-{}", line, line + kLanesOfLine - 1));
    for (int lane = line; lane < line + kLanesOfLine; ++lane) {
      const bool there = (value.lanes >> lane & 1) != 0;
      out += fmt::format(" {:>11}", there ? value_text(value.type, value.bits[static_cast<std::size_t>(lane)]) : "-");
    }
    out += '\n';
  }
  return out;
}

std::string barriers_text(const Launch& launch, std::int32_t cta) {
  const Cta* c = find_cta(launch, cta);
  if (c == nullptr) return {};
  std::string out;
  for (std::size_t b = 0; b < c->barriers.size(); ++b) {
    const NamedBarrier& barrier = c->barriers[b];
    std::string arrived;
    for (std::size_t w = 0; w < barrier.arrived.size(); ++w) {
      if (barrier.arrived[w] != 0) arrived += fmt::format("{}{}", arrived.empty() ? "" : ", ", w);
    }
    if (arrived.empty()) continue;
    out += fmt::format("barrier {}  arrived: warps {}{}\n", b, arrived,
                       barrier.expected > 0 ? fmt::format(", of {} threads", barrier.expected) : "");
  }
  for (const auto& [address, object] : c->mbarriers) {
    const ReportAddress at = name_address(launch, Space::shared, address, 8);
    out += fmt::format("mbarrier 0x{:05x} ({} + {})  {}\n", address, at.symbol, at.offset, object.text());
  }
  return out;
}

std::string copies_text(const Launch& launch, std::int32_t cta) {
  const Cta* c = find_cta(launch, cta);
  std::string out;
  if (c != nullptr) {
    for (const PendingOp& pending : c->async.queue) {
      out +=
          fmt::format("{:>6}  {} at shared 0x{:05x} by thread {}, {} bytes\n", pending.op.number, name(pending.op.kind),
                      pending.shared, pending.op.thread, std::max(pending.op.bytes, pending.bytes));
    }
    for (std::size_t thread = 0; thread < c->async.cp_async.size(); ++thread) {
      for (const CpAsyncCopy& copy : c->async.cp_async[thread].copies) {
        if (copy.performed) continue;
        out += fmt::format("{:>6}  cp.async at shared 0x{:05x} by thread {}, {} bytes\n", copy.number, copy.target,
                           thread, copy.bytes);
      }
    }
    for (std::size_t warp = 0; warp < c->async.wgmma.size(); ++warp) {
      for (const WgmmaOp& product : c->async.wgmma[warp].ops) {
        if (product.performed) continue;
        out += fmt::format("{:>6}  wgmma of warp {}\n", product.op.number, warp);
      }
    }
  }
  return out;
}

std::string bytes_text(const Launch& launch, const DeviceMemory& memory, Space space, std::int32_t cta,
                       std::uint64_t address, std::int64_t count) {
  const Cta* c = find_cta(launch, cta);
  const auto byte_at = [&](std::uint64_t at) -> const std::byte* {
    if (space != Space::shared) return memory.at(at, 1);
    if (c == nullptr || offset_of(at) - kSharedBase >= c->shared.size()) return nullptr;
    return c->shared.data() + (offset_of(at) - kSharedBase);
  };
  std::string out;
  for (std::int64_t line = 0; line < count; line += kBytesOfLine) {
    out += fmt::format("0x{:05x} ", address + static_cast<std::uint64_t>(line));
    for (std::int64_t i = line; i < std::min(count, line + kBytesOfLine); ++i) {
      const std::byte* at = byte_at(address + static_cast<std::uint64_t>(i));
      if (i % 4 == 0) out += ' ';
      out += at == nullptr ? ".." : fmt::format("{:02x}", static_cast<unsigned>(*at));
    }
    out += '\n';
  }
  return out;
}

}  // namespace kvscope::ptx
