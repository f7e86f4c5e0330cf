// The cost of one instruction of 32 lanes: the handlers alone, with rows in the L1 cache. The target for a warp's ALU
// loop is 60 million instructions per second, which leaves about 5 ns for an f32 addition.
#include <benchmark/benchmark.h>

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "gpu/virtual/isa/instr.h"
#include "gpu/virtual/semantics/op.h"

namespace kvscope::ptx {
namespace {

struct Rows {
  alignas(64) std::array<std::byte, 64 * 1024> bytes{};
};

// Consecutive operands with the given numbers of bytes per lane; vectors and matrices are lists.
void RunInstruction(benchmark::State& state, const std::string& word, const std::vector<int>& row_bytes, bool list,
                    LaneMask lanes) {
  static Rows rows;
  // 3cxx is a number around 1 in f16 and a normal number in bf16, f32 and f64; subnormal numbers take the host about a
  // hundred cycles.
  for (std::size_t i = 0; i < rows.bytes.size(); ++i)
    rows.bytes[i] = static_cast<std::byte>(i % 2 == 1 ? 0x3c : i % 61);
  const Instr instr = understand(word);
  OpRequest request;
  request.instr = &instr;
  Op op;
  std::vector<std::uint32_t> places;
  std::uint32_t next = 0;
  for (std::size_t i = 0; i < row_bytes.size(); ++i) {
    places.push_back(next);
    next += row_bytes[i] == 0 ? 64u : 32u * static_cast<std::uint32_t>(row_bytes[i]);
    if (i < 5) request.register_bytes[i] = static_cast<std::uint8_t>(row_bytes[i]);
    if (!list && i < 5) op.at[i] = places[i];
  }
  if (list) op.list = places.data();
  op.count = static_cast<std::uint16_t>(places.size());
  const OpHandler handler = find_op_handler(request);
  if (handler == nullptr) {
    state.SkipWithError("no handler");
    return;
  }
  for (auto _ : state) {
    handler(rows.bytes.data(), op, lanes);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations());
}

void Row(const char* word, const std::vector<int>& row_bytes, bool list = false, LaneMask lanes = kAllLanes) {
  const std::string name = std::string("Rows/") + word + (lanes == kAllLanes ? "" : "/part");
  benchmark::RegisterBenchmark(name.c_str(),
                               [=](benchmark::State& state) { RunInstruction(state, word, row_bytes, list, lanes); });
}

const bool kRegistered = [] {
  constexpr LaneMask kPart = 0x0ff0f00f;
  Row("add.f32", {4, 4, 4});
  Row("add.f32", {4, 4, 4}, false, kPart);
  Row("fma.rn.f32", {4, 4, 4, 4});
  Row("fma.rm.f32", {4, 4, 4, 4});
  Row("add.s32", {4, 4, 4});
  Row("add.s64", {8, 8, 8});
  Row("mul.wide.s32", {8, 4, 4});
  Row("mad.lo.s32", {4, 4, 4, 4});
  Row("shl.b32", {4, 4, 4});
  Row("lop3.b32", {4, 4, 4, 4, 4}, true);
  Row("selp.b32", {4, 4, 4, 0});
  Row("setp.lt.s32", {0, 4, 4});
  Row("setp.lt.s32", {0, 4, 4}, false, kPart);
  Row("mov.b32", {4, 4});
  Row("mov.b64", {8, 4, 4}, true);
  Row("cvt.u64.u32", {8, 4});
  Row("cvt.f32.bf16", {4, 2});
  Row("cvt.rn.bf16x2.f32", {4, 4, 4});
  Row("cvt.rn.f16x2.f32", {4, 4, 4});
  Row("ex2.approx.ftz.f32", {4, 4});
  Row("div.rn.f32", {4, 4, 4});
  Row("fma.rn.f16x2", {4, 4, 4, 4});
  Row("fma.rn.bf16x2", {4, 4, 4, 4});
  const std::vector<int> matrix(14, 4);
  Row("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", matrix, true);
  Row("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", matrix, true);
  Row("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", matrix, true);
  return true;
}();

}  // namespace
}  // namespace kvscope::ptx
