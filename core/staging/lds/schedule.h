// The order in which the waves of a block issue, wait, synchronize and read: the prefill and decode loops as lists of
// steps, and a machine that executes a list wave by wave in any interleaving and reports races.
//
//   prefill, K and V in two stages           copies in flight of a wave, 4 per load     before  after
//     issue K0, V0
//     1 wait vmcnt(V.vm)  K_i has landed; last tile: vmcnt(0)                             8      4
//     2 barrier           every wave's part of K_i is visible
//     3 tile fully masked: issue K_i+1, V_i+1, barrier, next tile
//     4 read K_i, S = Q K^T
//     5 issue K_i+1, V_i+1 into the other stage                                           4     12
//     6 softmax
//     7 wait vmcnt(K.vm + V.vm)  V_i has landed                                          12      8
//     8 barrier
//     9 read V_i, O += P V
//
// A count that is too high is a bug, because reads then overlap copies in flight; one that is too low only costs time.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/index.h"
#include "core/staging/lds/kv_buffer.h"
#include "core/staging/lds/lds_index.h"
#include "core/staging/lds/pending_copies.h"

namespace kvscope {

enum class StepKind : std::uint8_t {
  issue,      // load_from_dram: the next tile of `operand` into `stage`
  wait_vm,    // until at most `count` copies are outstanding
  wait_lgkm,  // until the wave's LDS reads and writes are done; the model's complete immediately
  barrier,    // every wave of the block
  read,       // load_from_shared of `operand` from `stage`
  compute,    // the computation in `note`; moves no data in the model
};

struct ScheduleStep {
  StepKind kind = StepKind::compute;
  std::int64_t tile = 0;
  KOrV operand = KOrV::k;  // issue, read
  StageIdx stage;          // issue, read
  std::int64_t count = 0;  // wait_vm
  std::string_view note;   // compute: "S = Q K^T", "softmax", "O += P V", ...
  friend bool operator==(const ScheduleStep&, const ScheduleStep&) = default;
};
[[nodiscard]] std::string to_text(const ScheduleStep& step);  // "tile 2: issue V into stage 0", "wait vmcnt(4)"

struct PrefillPlan {
  std::int64_t tiles = 0;
  std::vector<bool> masked{};  // [tiles] fully masked; empty: none
  std::int64_t k_count = 0;    // K's and V's vm_instrs_per_load, as the kernel uses them
  std::int64_t v_count = 0;
};
// GeometryError: negative tiles or counts, or `masked` of another size than the tiles. No tiles: no steps.
[[nodiscard]] std::vector<ScheduleStep> prefill_schedule(const PrefillPlan& plan);

// The place of V's tile.
enum class DecodeV : std::uint8_t {
  own_region,
  shared_region,  // depth > 256: V is copied over K once K is in registers
  k_image,        // latent attention: V is K's image and is never copied
};
struct DecodePlan {
  std::int64_t tiles = 0;
  bool double_buffer_k = false;  // kernels: BN <= 64
  DecodeV v = DecodeV::own_region;
};
[[nodiscard]] std::vector<ScheduleStep> decode_schedule(const DecodePlan& plan);

// A wave's counter around each step, if it issues that many copies per load and every wait ends as late as possible.
struct Outstanding {
  std::int64_t before = 0, after = 0;
  friend bool operator==(const Outstanding&, const Outstanding&) = default;
};
// GeometryError when the counter passes 63.
[[nodiscard]] std::vector<Outstanding> outstanding(std::span<const ScheduleStep> steps, std::int64_t k_copies,
                                                   std::int64_t v_copies);

// The waves of one block; entry w is wave w's.
struct ScheduleWaves {
  PendingCopies* pending = nullptr;
  std::vector<KVBuffer*> k;
  std::vector<KVBuffer*> v_copy;  // issue V; empty: V is never issued
  std::vector<KVBuffer*> v_read;  // read V
};

// When copies land that no wait has required yet.
enum class Landing : std::uint8_t { late, early, any };

// Chooses one of n: a number in [0, n). Selects the next wave and, with Landing::any, whether a copy lands.
using Choose = std::function<std::int64_t(std::int64_t n)>;

struct ScheduleFault {
  std::size_t step = 0;
  WaveIdx wave;         // the wave that read
  std::string message;  // "step 3 (tile 0: read K from stage 0), wave 2: ..."
};

// Executes the steps; each wave runs independently up to the next barrier. Faults: reads of copies in flight, of
// another tile's bytes, of poison. GeometryError: no waves, different numbers of buffers, V issued without buffers.
[[nodiscard]] std::vector<ScheduleFault> run_schedule(std::span<const ScheduleStep> steps, const ScheduleWaves& waves,
                                                      Landing landing, const Choose& choose);

}  // namespace kvscope
