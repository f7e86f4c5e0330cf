// Undefined bytes of global memory that a tensor copy loads: each byte of the window is stored to global memory in a launch
// of its own, which reports it if its value depends on bytes that nothing has written. The launches run with two
// contents of these bytes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/tma/tensor_map_record.h"
#include "gpu/virtual/check/init_checker.h"
#include "gpu/virtual/machine/device.h"
#include "gpu/virtual/text/parser.h"
#include "tests/core/tma/gold.h"

namespace kvscope::ptx::test::undefined_boxes_test {
namespace {

using kvscope::test::map_of;

struct BoxCase {
  const char* name;
  TmaDataType type;
  std::vector<std::uint64_t> dims, strides;
  std::vector<std::uint32_t> box;
  std::vector<int> at;
  TmaSwizzle swizzle;
  int window;  // [bytes]
  bool gather = false;
  bool rounds = false;  // TF32: an element is undefined as a whole
};
const BoxCase kBoxes[] = {
    {"rows with fill on the right and below",
     TmaDataType::bf16,
     {40, 6},
     {96},
     {16, 4},
     {32, 4},
     TmaSwizzle::none,
     128},
    {"rows with fill on the left", TmaDataType::bf16, {64, 6}, {128}, {16, 4}, {-8, 1}, TmaSwizzle::none, 128},
    {"32B swizzle", TmaDataType::bf16, {64, 20}, {128}, {16, 8}, {16, 5}, TmaSwizzle::b32, 256},
    {"64B swizzle", TmaDataType::bf16, {64, 20}, {128}, {32, 4}, {32, 5}, TmaSwizzle::b64, 256},
    {"128B swizzle", TmaDataType::u8, {128, 20}, {128}, {128, 4}, {0, 18}, TmaSwizzle::b128, 512},
    {"128B swizzle that exchanges halves",
     TmaDataType::bf16,
     {64, 20},
     {128},
     {64, 4},
     {0, 3},
     TmaSwizzle::b128_atom32_flip8,
     512},
    {"three dimensions", TmaDataType::u8, {32, 3, 3}, {32, 96}, {16, 2, 2}, {16, 2, 1}, TmaSwizzle::none, 64},
    {"gather4", TmaDataType::bf16, {64, 20}, {128}, {16, 1}, {16, 7, 3, 25, 0}, TmaSwizzle::none, 128, true},
    {"TF32", TmaDataType::tf32, {32, 4}, {128}, {8, 4}, {8, 1}, TmaSwizzle::none, 128, false, true},
};

// Reads one byte of the window: parameter `which`.
std::string text_of(const BoxCase& c, std::int64_t tx) {
  std::string coordinates;
  for (const int x : c.at) coordinates += (coordinates.empty() ? "" : ", ") + std::to_string(x);
  return fmt::format(
      ".version 9.0 .target sm_100a .address_size 64 .extern .shared .align 1024 .b8 s[];\n"
      ".visible .entry k(.param .u64 out, .param .align 64 .b8 map[128], .param .u32 which) {{ .reg .b32 %r<8>; .reg "
      ".b64 "
      "%rd<8>; .reg .pred %p<2>; mov.u32 %r0, s; add.u32 %r1, %r0, {0}; mbarrier.init.shared.b64 [%r1], 1; mov.b64 "
      "%rd1, "
      "map; cvta.param.u64 %rd1, %rd1; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], {1};\n"
      "cp.async.bulk.tensor.{2}d.shared::cta.global.{3}.mbarrier::complete_tx::bytes [%r0], [%rd1, {{{4}}}], [%r1];\n"
      "W: mbarrier.try_wait.parity.shared::cta.b64 %p0, [%r1], 0; @!%p0 bra W;\n"
      "ld.param.u32 %r2, [which]; add.u32 %r2, %r2, %r0; ld.shared.u8 %r3, [%r2]; ld.param.u64 %rd2, [out];\n"
      "st.global.u8 [%rd2], %r3; ret; }}\n",
      c.window, tx, c.dims.size(), c.gather ? "tile::gather4" : "tile", coordinates);
}

struct LoadedByte {
  std::uint8_t value = 0;
  bool reported = false;
};

// All bytes of the window. `written`: of the tensor; the others hold `filling`.
std::vector<LoadedByte> load(const BoxCase& c, const std::vector<bool>& written, std::uint8_t filling, Policy policy) {
  TensorMap map = map_of(c.type, c.dims, c.strides, c.box, c.swizzle);
  std::int64_t tx = size_of(c.type) * (c.gather ? 4 : 1);
  for (const std::uint32_t extent : c.box) tx *= extent;
  Device device(ProgramOptions{.target = 100});
  const LoadedModule& module = device.load(parse_module(text_of(c, tx), "k.ptx"));
  const std::uint64_t out = device.memory().allocate(4, "out");
  const auto size = static_cast<std::int64_t>(written.size());
  map.base = device.memory().allocate(size, "tensor", false);
  InitChecker checker({.shared = true, .global = true});
  std::byte* const bytes = device.memory().writable_at(map.base, size);
  for (std::size_t i = 0; i < written.size(); ++i) {
    bytes[i] = written[i] ? static_cast<std::byte>(kvscope::test::source_byte(i)) : std::byte{filling};
    if (written[i]) checker.host_wrote(device.memory(), map.base + i, 1);
  }
  const TensorMapRecord record = encode_tensor_map("test", map, TmaTarget::sm_100);
  const std::vector<std::byte> of_map(record.begin(), record.end());
  std::vector<LoadedByte> window;
  for (int which = 0; which < c.window; ++which) {
    LaunchConfig config;
    config.kernel = "k";
    config.dynamic_shared = c.window + 16;
    config.block = {1, 1, 1};
    config.options.policy = policy;
    config.options.seed = 3;
    config.params = pack_params(module, "k", {out, of_map, static_cast<std::uint32_t>(which)});
    const LaunchResult result = device.launch(module, config, &checker);
    LoadedByte byte;
    byte.value = std::to_integer<std::uint8_t>(device.memory().read(out, 1)[0]);
    for (const Report& report : result.reports) {
      EXPECT_EQ(report.kind, ReportKind::uninitialized) << c.name << ": " << to_text(report);
      EXPECT_NE(to_text(report).find("tensor + "), std::string::npos) << to_text(report);
      byte.reported = true;
    }
    window.push_back(byte);
  }
  return window;
}

TEST(UndefinedBoxes, ExactlyTheBytesThatComeFromUnwrittenOnesAreReported) {
  std::uint64_t state = 5;
  const auto random = [&state] { return state = state * 6364136223846793005U + 1442695040888963407U, state >> 40; };
  for (const BoxCase& c : kBoxes) {
    const kvscope::test::Tensor tensor(map_of(c.type, c.dims, c.strides, c.box, c.swizzle));
    std::vector<bool> written(tensor.bytes.size());
    for (std::size_t i = 0; i < written.size();) {  // runs of 1 to 12 bytes
      const bool now = random() % 2 == 0;
      for (std::size_t end = i + 1 + random() % 12; i < std::min(end, written.size()); ++i) written[i] = now;
    }
    for (const Policy policy : {Policy::late, Policy::early, Policy::seeded}) {
      const auto zeros = load(c, written, 0x00, policy), others = load(c, written, 0x35, policy);
      int depend = 0;
      for (std::size_t i = 0; i < zeros.size(); ++i) {
        const bool depends = zeros[i].value != others[i].value;
        depend += depends ? 1 : 0;
        EXPECT_EQ(zeros[i].reported, others[i].reported) << c.name << " byte " << i;
        if (depends || !c.rounds) {
          EXPECT_EQ(zeros[i].reported, depends) << c.name << " byte " << i;
        }
      }
      EXPECT_GT(depend, 10) << c.name;
      EXPECT_LT(depend, c.window - 10) << c.name;
    }
  }
}

}  // namespace
}  // namespace kvscope::ptx::test::undefined_boxes_test
