// A report of the machine or a checker about a kernel: which threads and engines accessed which bytes, at which source
// lines, and which synchronization was missing.
//
//   RACE write-after-read  shared 0x00c00 (ring.k[1] + 0)  kernel decode  cta (3,0,0)
//     read   thread 40 (warp 1 lane 8)     ldmatrix.x4          decode.cuh:134  <- decode_main.cu:22
//     write  tensor load, mbarrier full[1] issued by thread 0   decode.cuh:108  <- decode_main.cu:22
//     no order between them; thread 40 last synchronized at decode.cuh:121 (mbarrier wait)
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpu/virtual/semantics/op.h"

namespace kvscope::ptx {

enum class ReportKind : std::uint8_t {
  out_of_bounds,
  misaligned,
  bad_window,
  use_after_free,
  uninitialized,
  race_ww,
  race_wr,
  race_rw,
  proxy_fence,
  deadlock,
  global_spin,
  runaway,
  tma_arg,
  cp_arg,
  trap,
  assert_,
  unsupported,
  stack,
  store_collision,
  nc_modified,
  reg_in_flight,
  no_wgmma_fence,
  diverged,
  diverged_warpgroup,
  barrier_rearrive,
  barrier_mismatch,
  mbar_underflow,
  mbar_tx,
  no_mbarrier,
  mbarrier_touched,
  tma_all_fill,
  warp_pc_mix,
  same_value,
  leak,
  div_by_zero,
  exit_in_flight,
  dsmem_after_exit,
  invalid_launch,
  watch_limit,
  register_count,
  limit,
  absent_threads,  // a mask or a barrier names threads that have exited
  tensor_alloc,    // allocation of tensor memory: sizes, order, leaks
  tensor_access,   // cells that are not allocated, or that another warp accesses
  tensor_order,    // cells that are accessed before an operation on them is complete
  tensor_fence,    // without the fence around a synchronization of threads
  product_arg,     // descriptors of tcgen05.mma and cp
};
enum class Severity : std::uint8_t { note, warning, error };

[[nodiscard]] std::string_view name(ReportKind kind);  // "OUT_OF_BOUNDS", "RACE_WR"
[[nodiscard]] std::optional<ReportKind> report_kind_from_name(std::string_view name);
[[nodiscard]] std::string_view name(Severity severity);  // "note", "warning", "error"
[[nodiscard]] std::optional<Severity> severity_from_name(std::string_view name);
[[nodiscard]] Severity severity_of(ReportKind kind);

// One of the accesses or waits that a report is about.
struct ReportParty {
  std::string action;        // "read", "write", "waits", "arrived", "issued"
  std::string actor;         // "thread 40 (warp 1 lane 8)", "tensor load, mbarrier full[1] issued by thread 0"
  std::int32_t thread = -1;  // in the CTA; -1: an engine
  std::int32_t warp = -1;
  LaneMask lanes = 0;
  std::int32_t pc = -1;
  std::string opcode;     // "ldmatrix.sync.aligned..."
  std::string source;     // "decode.cuh:134  <- decode_main.cu:22"
  bool has_line = false;  // `source` comes from line information: instructions of one line are reported together
};

struct ReportAddress {
  Space space = Space::generic;
  std::uint64_t absolute = 0;
  std::string symbol;       // "ring.k"; "": unknown
  std::int64_t offset = 0;  // in the symbol [bytes]
  std::int64_t bytes = 0;
  bool known = false;
};

struct Report {
  ReportKind kind = ReportKind::trap;
  Severity severity = Severity::error;
  std::string kernel;        // as in the PTX
  std::string short_kernel;  // kernel_names.h; "": as in the PTX
  std::array<std::int64_t, 3> cta{};
  std::int32_t cluster_rank = 0;
  std::uint64_t step = 0;
  std::string message;  // one sentence with values
  ReportAddress address;
  std::vector<ReportParty> parties;
  std::string hint;           // what to do; may be empty
  std::int64_t repeated = 0;  // later reports of the same kind, severity and lines, which are not stored
};
[[nodiscard]] std::string to_text(const Report& report);  // lines as above, no newline at the end

class Suppressions;

// Stores the first report of each kind, severity and places, and counts the rest. A place is a source line, or an
// instruction if the PTX has no line information.
class Reports {
 public:
  // `suppressions`: reports to leave out (suppressions.h); null: none. They outlive this object.
  explicit Reports(int most = 20, Suppressions* suppressions = nullptr) : most_(most), suppressions_(suppressions) {}
  // True: stored; false: suppressed, a duplicate, or the limit is reached.
  bool add(Report report);
  [[nodiscard]] const std::vector<Report>& all() const { return reports_; }
  [[nodiscard]] bool full() const { return static_cast<int>(reports_.size()) >= most_; }
  [[nodiscard]] std::int64_t repeated() const { return repeated_; }  // of all, and reports past the limit

 private:
  int most_;
  Suppressions* suppressions_;
  std::vector<Report> reports_;
  std::vector<std::uint64_t> keys_;
  std::int64_t repeated_ = 0;
};

}  // namespace kvscope::ptx
