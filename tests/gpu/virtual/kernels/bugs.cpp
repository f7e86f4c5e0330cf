#include "tests/gpu/virtual/kernels/bugs.h"

#include <array>
#include <numeric>

#include "tests/gpu/virtual/kernels/decode_case.h"
#include "tests/gpu/virtual/kernels/qk_case.h"
#include "tests/gpu/virtual/kernels/wgmma_case.h"

namespace kvscope::ptx::test {
namespace {

using Body = std::function<Outcome(const Schedule&)>;

// `bug` is a value of qk::Bug, decode::Bug and so on: the kernel's last parameter.
Body qk_tensor(int bug) {
  return [bug](const Schedule& schedule) {
    const QkCase data;
    Gpu gpu("qk_bugs.ptx", schedule);
    const QkCase::Launch launch = data.by_tensor_copies(gpu, "qk_tensor_wrong", bug);
    LaunchResult result = gpu.run_checked(launch.run);
    return Outcome{std::move(result), data.differences(gpu, launch) == 0};
  };
}
Body qk_cp_async(int bug) {
  return [bug](const Schedule& schedule) {
    const QkCase data;
    Gpu gpu("qk_bugs.ptx", schedule);
    const QkCase::Launch launch = data.by_cp_async(gpu, "qk_cp_async_wrong", bug);
    LaunchResult result = gpu.run_checked(launch.run);
    return Outcome{std::move(result), data.differences(gpu, launch) == 0};
  };
}
Body decode(int bug, std::int64_t tokens = 512) {
  return [bug, tokens](const Schedule& schedule) {
    const DecodeCase data(tokens);
    Gpu gpu("decode_bugs.ptx", schedule);
    const DecodeCase::Launch launch = data.launch(gpu, "paged_decode_wrong", bug);
    LaunchResult result = gpu.run_checked(launch.run);
    return Outcome{std::move(result), data.error(data.output(gpu, launch)) < 2e-3};
  };
}
Body store(int bug) {
  return [bug](const Schedule& schedule) {
    Gpu gpu("store.ptx", schedule);
    const std::uint64_t to = gpu.zeros("tensor", 100 * 256), copy = gpu.zeros("copy", 1024),
                        sums = gpu.zeros("sums", 1024);
    const TensorMap map = tensor_map(TmaDataType::f32, to, {64, 100}, {256}, {32, 64}, TmaSwizzle::b128);
    return Outcome{gpu.run_checked({.kernel = "store_tiles_wrong",
                                    .block = {128, 1, 1},
                                    .values = {map_bytes(map), copy, sums, value(bug)},
                                    .dynamic_shared = 8192})};
  };
}
Body wgmma(int bug) {
  return [bug](const Schedule& schedule) {
    const WgmmaCase data;
    Gpu gpu("wgmma.ptx", schedule);
    return Outcome{gpu.run_checked(data.launch(gpu, 128, false, false, false, bug).run)};
  };
}
Body cluster(int bug) {
  return [bug](const Schedule& schedule) {
    Gpu gpu("cluster.ptx", schedule);
    const std::uint64_t from = gpu.zeros("source", 1024), out = gpu.zeros("out", 2 * 388 * 4);
    const TensorMap map = tensor_map(TmaDataType::i32, from, {16, 16}, {64}, {16, 16}, TmaSwizzle::none);
    return Outcome{gpu.run_checked({.kernel = "cluster_pair",
                                    .grid = {2, 1, 1},
                                    .block = {64, 1, 1},
                                    .values = {map_bytes(map), out, value(bug)}})};
  };
}
// A kernel of small_bugs.cu with parameters (out [, in]) and, if it has one, `wrong`.
Body small(const char* kernel, std::int64_t threads, bool with_in, int wrong) {
  return [kernel, threads, with_in, wrong](const Schedule& schedule) {
    Gpu gpu("small_bugs.ptx", schedule);
    std::vector<std::int32_t> in(1024);
    std::iota(in.begin(), in.end(), 1);
    Run run{.kernel = kernel, .block = {threads, 1, 1}, .values = {gpu.zeros("out", 4096)}};
    run.max_instructions = 1'000'000;
    if (with_in) run.values.emplace_back(gpu.upload("in", in));
    run.values.push_back(value(wrong));
    return Outcome{gpu.run_checked(run)};
  };
}
Body spin_for_a_later_cta(std::int64_t resident) {
  return [resident](const Schedule& schedule) {
    Gpu gpu("small_bugs.ptx", schedule);
    return Outcome{gpu.run_checked({.kernel = "b31_spin_for_a_later_cta",
                                    .grid = {2, 1, 1},
                                    .values = {gpu.zeros("out", 64), gpu.zeros("flag", 4)},
                                    .resident_limit = resident})};
  };
}

std::vector<SeededBug> make_bugs() {
  using K = ReportKind;
  std::vector<SeededBug> bugs;
  const auto add = [&bugs](const char* name, const char* what, Body run, std::vector<Finding> findings) {
    bugs.push_back({name, what, std::move(run), std::move(findings)});
  };
  const auto add_wrong_numbers = [&bugs](const char* name, const char* what, Body run, std::vector<Finding> findings) {
    bugs.push_back({name, what, std::move(run), std::move(findings), true});
  };

  add("B01_NoExpect", "arrive.expect_tx is missing", qk_tensor(1),
      {{K::deadlock, {"full", "pending 1 of 1", "-16384", "arrive.expect_tx"}}});
  add("B02_ExpectTooMuch", "2048 more bytes are expected than land", qk_tensor(2),
      {{K::deadlock, {"full", "pending 0 of 1", "2048"}}});
  add("B03_ExpectTooLittle", "half of the bytes are expected", qk_tensor(3),
      {{K::mbar_tx, {"full", "-8192"}}, {K::race_wr, {"ldmatrix", "tensor load"}}, {K::uninitialized, {"ldmatrix"}}});
  add("B04_NoWait", "no thread waits for the keys", qk_tensor(4),
      {{K::race_wr, {"ldmatrix", "tensor load"}}, {K::uninitialized, {"ldmatrix"}}});
  add("B05_NoInitBarrier", "no barrier between mbarrier.init and the wait", qk_tensor(5),
      {{K::race_wr, {"mbarrier.init", "try_wait"}}});
  add("B06_NoBarrier", "no barrier between copies and stores of other threads and the reads of fragments",
      qk_cp_async(6), {{K::race_wr, {"st.shared", "ldmatrix"}}, {K::race_wr, {"cp.async", "ldmatrix"}}});
  add("B07_NoWaitGroup", "cp.async.wait_group is missing", qk_cp_async(7),
      {{K::race_wr, {"cp.async of thread", "ldmatrix"}}});
  add("B08_WaitGroupOne", "the newest group is not waited for", qk_cp_async(8),
      {{K::race_wr, {"cp.async of thread", "ldmatrix"}}});
  add("B09_RefillUnasked", "a stage is refilled before it is empty", decode(9),
      {{K::race_rw, {"ldmatrix", "tensor load"}}});
  add("B10_WrongParityPasses", "the wait for an empty stage passes immediately", decode(10),
      {{K::race_rw, {"ldmatrix", "tensor load"}}});
  add("B10_WrongParityBlocks", "the wait for an empty stage waits for the following phase", decode(110),
      {{K::deadlock, {"empty", "parity"}}});
  add("B11_NoSyncwarp", "lane 0 arrives for lanes that may still read", decode(11),
      {{K::race_rw, {"ldmatrix", "tensor load"}}});
  add("B12_NoRingBarrier", "the ring is overwritten while other warps read it", decode(12),
      {{K::race_wr, {"warp_max"}}, {K::uninitialized, {"warp_max"}}, {K::race_rw, {"ring"}}});
  add("B13_HalfBarrier", "half of the threads arrive at the first barrier", qk_tensor(13),
      {{K::deadlock, {"barrier 0", "2 of 4", "try_wait"}}, {K::race_wr, {"mbarrier.init"}}});
  add("B14_BarrierInABranch", "half a warp waits at another barrier", small("b14_barrier_in_a_branch", 32, false, 1),
      {{K::diverged, {"bar", "0000ffff", "ffff0000"}}});
  add("B15_DivergedMma", "half a warp executes the mma", qk_tensor(15),
      {{K::diverged, {"0000ffff", "mma", "ffff0000", "ldmatrix"}}});
  add("B16_TablePastEnd", "the last tile's table index is one too large", decode(16, 4096),
      {{K::out_of_bounds, {"4 bytes", "block_table + 128", "size 128", "decode.cuh"}}});
  add("B17_QueriesPastEnd", "the queries end past the dynamic shared memory", qk_cp_async(17),
      {{K::out_of_bounds, {"shared", "16 bytes", "qk.cuh"}}});
  add("B18_Misaligned", "a 16-byte access at a multiple of four", small("b18_misaligned", 32, true, 1),
      {{K::misaligned, {"16", "in + 4"}}});
  add("B19_NoProxyFence", "no fence between st.shared and the tensor store", store(19),
      {{K::proxy_fence, {"st.shared", "tensor store"}}});
  add("B19_NoProxyFenceWgmma", "no fence between st.shared and wgmma", wgmma(19),
      {{K::proxy_fence, {"st.shared", "wgmma"}}});
  add("B20_SumNotZeroed", "a sum begins with the previous contents of memory", small("b20_sum_not_zeroed", 64, true, 1),
      {{K::uninitialized, {"ld.shared"}}});
  add_wrong_numbers("B21_SwizzleOfFourRows", "row & 3 instead of row & 7", qk_tensor(21), {});
  add_wrong_numbers("B22_CoordinatesSwapped", "token and head exchanged", decode(22), {{K::tma_all_fill, {}}});
  add_wrong_numbers("B23_NoTrans", "V is read without .trans", decode(23), {});
  add_wrong_numbers("B24_RegistersSwapped", "the registers of B exchanged", qk_tensor(24), {});
  add("B25_UnalignedColumn", "the first coordinate is at 8 bytes", qk_tensor(25), {{K::tma_arg, {"715"}}});
  add("B26_UnalignedTile", "the destination is at 64 of 128 bytes", qk_tensor(26), {{K::tma_arg, {"716"}}});
  add("B27_OnlyLeadersArrive", "128 arrivals expected, 4 made", small("b27_only_leaders_arrive", 128, false, 1),
      {{K::deadlock, {"pending 124 of 128"}}});
  add("B28_ArrivalWithBytesOutstanding", "one arrival more than the phase has",
      small("b28_one_arrival_too_many", 64, true, 1), {{K::mbar_underflow, {"full"}}});
  add("B28_ArrivalForTheNextPhase", "one arrival counts for the next phase",
      small("b28_one_arrival_too_many", 64, true, 2), {{K::race_wr, {"buffer"}}});
  add("B29_ReadEarly", "accumulators are read before wgmma.wait_group", wgmma(29), {{K::reg_in_flight, {}}});
  add("B29_NoWgmmaFence", "no wgmma.fence after the writes of the accumulators", wgmma(129), {{K::no_wgmma_fence, {}}});
  add("B30_NoLastBarrier", "a CTA ends while the other reads its memory", cluster(30),
      {{K::dsmem_after_exit, {"mailbox"}}});
  add("B31_SpinForALaterCta", "only one CTA may be resident", spin_for_a_later_cta(1),
      {{K::global_spin, {"flag", "co-resident"}}});
  add("B32_EndlessLoop", "a loop without end", small("b32_endless_loop", 32, false, 1),
      {{K::runaway, {"small_bugs.cu"}}});
  add("B33_PartnerWaitsElsewhere", "half a warp votes while the other half shuffles",
      small("b33_shuffle_without_partner", 32, false, 1), {{K::diverged, {"shfl", "vote"}}});
  add("B34_NotWaited", "a bulk store is not waited for", store(34), {{K::exit_in_flight, {"store"}}});
  add("B35_DifferentValues", "two warps store different values", small("b35_two_writers", 64, false, 1),
      {{K::race_ww, {"word"}}});
  add("B35_SameValue", "two warps store the same value", small("b35_two_writers", 64, false, 2),
      {{K::same_value, {"word"}}});
  return bugs;
}

FixedTwin twin(const char* name, Body run) {
  return {name, [run = std::move(run)](const Schedule& s) { return run(s).result; }};
}

}  // namespace

const std::vector<SeededBug>& seeded_bugs() {
  static const std::vector<SeededBug> bugs = make_bugs();
  return bugs;
}

const std::vector<FixedTwin>& fixed_twins() {
  static const std::vector<FixedTwin> twins = {
      twin("QkByTensorCopies", qk_tensor(0)),
      twin("QkByCpAsync", qk_cp_async(0)),
      twin("Decode", decode(0)),
      twin("Store", store(0)),
      twin("Wgmma", wgmma(0)),
      twin("Cluster", cluster(0)),
      twin("B14", small("b14_barrier_in_a_branch", 32, false, 0)),
      twin("B18", small("b18_misaligned", 32, true, 0)),
      twin("B20", small("b20_sum_not_zeroed", 64, true, 0)),
      twin("B27", small("b27_only_leaders_arrive", 128, false, 0)),
      twin("B28", small("b28_one_arrival_too_many", 64, true, 0)),
      twin("B31", spin_for_a_later_cta(2)),
      twin("B32", small("b32_endless_loop", 32, false, 0)),
      twin("B33PartnerReturned", small("b33_shuffle_without_partner", 32, false, 0)),
      twin("B35", small("b35_two_writers", 64, false, 0)),
  };
  return twins;
}

}  // namespace kvscope::ptx::test
