// The reference cases of the copy engine, executed by the instruction: a kernel writes out every byte of the window.
#include <gmock/gmock.h>

#include "core/tma/box_plan.h"
#include "core/tma/tensor_map_record.h"
#include "gpu/virtual/machine/device.h"
#include "gpu/virtual/text/parser.h"
#include "tests/core/tma/gold.h"
#include "tests/gpu/virtual/machine/one_kernel.h"

namespace kvscope::ptx::test::tensor_copies_test {
namespace {

using kvscope::test::fnv1a;
using kvscope::test::inverse_walk;
using kvscope::test::map_of;
using kvscope::test::source_byte;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Case {
  const char* name;
  TmaDataType type;
  std::vector<std::uint64_t> dims, strides;
  std::vector<std::uint32_t> box, element_strides;
  std::vector<std::int64_t> at;
  TmaSwizzle swizzle;
  std::size_t window;  // bytes to write out, from `from`
  std::uint64_t expected;
  std::int64_t dst = 0;  // of the tile, in the bytes written out
  bool gather = false;
  bool nan = false;
};

// The window after one load, under a policy; `messages` receives the reports.
std::vector<std::byte> load_window(const Case& c, const LaunchOptions& options, std::vector<std::string>& messages,
                                   bool store_back = false, std::vector<std::byte>* tensor_after = nullptr,
                                   const TensorMap* store_map = nullptr) {
  TensorMap map = map_of(c.type, c.dims, c.strides, c.box, c.swizzle, c.element_strides);
  if (c.nan) map.fill = OobFill::nan_request_zero_fma;
  const bool new_target = c.gather || static_cast<int>(c.swizzle) > 3;
  std::string coordinates;
  for (const std::int64_t x : c.at) coordinates += (coordinates.empty() ? "" : ", ") + std::to_string(x);
  const std::string rank = std::to_string(map.rank) + "d";
  const auto window = static_cast<std::int64_t>(c.window);
  const BoxSwitches switches{.target = new_target ? TmaTarget::sm_100 : TmaTarget::sm_90};
  const std::int64_t tx = box_shape(map, switches).tx_bytes * (c.gather ? 4 : 1);
  const std::string text =
      std::string(".version 9.0\n.target ") + (new_target ? "sm_100a" : "sm_90a") + R"(
.address_size 64
.extern .shared .align 4096 .b8 s[];
.visible .entry k(.param .u64 out, .param .align 64 .b8 map[128], .param .align 64 .b8 map2[128])
{
  .reg .b32 %r<16>; .reg .b64 %rd<8>; .reg .pred %p<4>;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, s;
  add.u32 %r9, %r2, )" +
      std::to_string(window) + R"(;
  mov.u32 %r3, 0xCDCDCDCD;
  shl.b32 %r4, %r1, 2;
  FILL: add.u32 %r5, %r2, %r4;
  st.shared.u32 [%r5], %r3;
  add.u32 %r4, %r4, 128;
  setp.lt.u32 %p1, %r4, )" +
      std::to_string(window) + R"(;
  @%p1 bra FILL;
  fence.proxy.async.shared::cta;
  setp.eq.u32 %p2, %r1, 0;
  @%p2 mbarrier.init.shared.b64 [%r9], 1;
  bar.sync 0;
  mov.b64 %rd2, map;  cvta.param.u64 %rd2, %rd2;
  mov.b64 %rd3, map2;  cvta.param.u64 %rd3, %rd3;
  @!%p2 bra WAITS;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r9], )" +
      std::to_string(tx) + R"(;
  cp.async.bulk.tensor.)" +
      rank + ".shared::cta.global" + (c.gather ? ".tile::gather4" : ".tile") + ".mbarrier::complete_tx::bytes [%r2+" +
      std::to_string(c.dst) + "], [%rd2, {" + coordinates +
      R"(}], [%r9];
  WAITS: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r9], 0;
  @!%p3 bra WAITS;
)" +
      (store_back ? "  @%p2 cp.async.bulk.tensor." + rank + ".global.shared::cta.tile.bulk_group [%rd3, {" +
                        coordinates + "}], [%r2+" + std::to_string(c.dst) +
                        "];\n  cp.async.bulk.commit_group;\n  cp.async.bulk.wait_group 0;\n"
                  : "") +
      R"(
  ld.param.u64 %rd1, [out];
  shl.b32 %r4, %r1, 2;
  DUMP: add.u32 %r5, %r2, %r4;
  ld.shared.u32 %r6, [%r5];
  cvt.u64.u32 %rd4, %r4;
  add.s64 %rd5, %rd1, %rd4;
  st.global.u32 [%rd5], %r6;
  add.u32 %r4, %r4, 128;
  setp.lt.u32 %p1, %r4, )" +
      std::to_string(window) + R"(;
  @%p1 bra DUMP;
  ret;
}
)";
  Device device(ProgramOptions{.target = new_target ? 100 : 90});
  const LoadedModule& module = device.load(parse_module(text, "tma.ptx"));
  const std::uint64_t out = device.memory().allocate(window, "out");
  kvscope::test::Tensor source(map);
  map.base = device.memory().allocate(static_cast<std::int64_t>(source.bytes.size()), "tensor");
  device.memory().write(map.base, source.bytes);
  TensorMap back = store_map != nullptr ? *store_map : map;
  back.base = map.base;
  LaunchConfig config;
  config.kernel = "k";
  config.dynamic_shared = window + 16;
  config.block = {32, 1, 1};
  config.options = options;
  const auto bytes_of_map = [&](const TensorMap& m) {
    const TensorMapRecord record = encode_tensor_map("test", m, switches.target);
    return std::vector<std::byte>(record.begin(), record.end());
  };
  config.params = pack_params(module, "k", {out, bytes_of_map(map), bytes_of_map(back)});
  const LaunchResult result = device.launch(module, config);
  for (const Report& r : result.reports) messages.push_back(std::string(ptx::name(r.kind)) + " " + r.message);
  if (tensor_after != nullptr) {
    *tensor_after = device.memory().read(map.base, static_cast<std::int64_t>(source.bytes.size()));
  }
  return device.memory().read(out, window);
}

const TmaDataType kTwo = TmaDataType::bf16;
const std::vector<Case> kGold = {
    {"G1", kTwo, {40, 6}, {96}, {16, 4}, {}, {32, 4}, TmaSwizzle::none, 128, 0xba7ca726732c4105},
    {"G2", kTwo, {64, 20}, {128}, {64, 8}, {}, {0, 17}, TmaSwizzle::b128, 1024, 0x643bdab782933fa5},
    {"G3", kTwo, {64, 20}, {128}, {64, 8}, {}, {0, -2}, TmaSwizzle::b128, 1024, 0x6a59e9623e462e25},
    {"G4", kTwo, {64, 20}, {128}, {32, 8}, {}, {32, 5}, TmaSwizzle::b64, 512, 0xc6bbf7643b53e325},
    {"G5", kTwo, {64, 20}, {128}, {16, 8}, {}, {16, 5}, TmaSwizzle::b32, 256, 0xc0ef11f398731f65},
    {"G6", kTwo, {128, 4, 48}, {256, 1024}, {64, 1, 16}, {}, {64, 2, 40}, TmaSwizzle::b128, 2048, 0xd3ccf5e8b2dbda25},
    {"G7",
     TmaDataType::u8,
     {32, 3, 3, 3, 3},
     {32, 96, 288, 864},
     {16, 2, 2, 2, 2},
     {},
     {16, 2, 1, -1, 2},
     TmaSwizzle::none,
     256,
     0x5baac93da80f5225},
    {"G8", kTwo, {64, 20}, {128}, {64, 8}, {1, 2}, {0, 5}, TmaSwizzle::b128, 512, 0x5a65f3580ac2c425},
    {"G9", TmaDataType::u8, {64, 20}, {64}, {64, 8}, {}, {0, 4}, TmaSwizzle::b128, 1024, 0x41b1fba254c2e825},
    {"G10",
     TmaDataType::f32,
     {64, 20},
     {256},
     {32, 4},
     {},
     {48, 2},
     TmaSwizzle::b128,
     512,
     0xe9bc3266b34b06a5,
     0,
     false,
     true},
    {"G11", kTwo, {64, 20}, {128}, {64, 8}, {}, {0, 3}, TmaSwizzle::b128_atom32, 1024, 0x6a111c2dded19b25},
    {"G12", kTwo, {64, 20}, {128}, {64, 8}, {}, {0, 3}, TmaSwizzle::b128_atom64, 1024, 0xcd0c9f875161dc25},
    {"G13", TmaDataType::u64, {96, 7}, {768}, {64, 3}, {}, {32, 5}, TmaSwizzle::none, 1536, 0x77b40cb0a819c825},
    {"G14", kTwo, {64, 20}, {128}, {64, 2}, {}, {128, 0}, TmaSwizzle::none, 256, 0xd80ac658736bb725},
    {"G15", TmaDataType::u8, {32, 20}, {32}, {32, 8}, {}, {0, 1}, TmaSwizzle::b64, 512, 0x02a3441a4da47025},
    {"G16", kTwo, {64, 20}, {128}, {64, 8}, {}, {-8, 0}, TmaSwizzle::b128, 1024, 0xfd26c0caecc675a5},
    {"G17", kTwo, {64, 4, 4}, {128, 4096}, {64, 2, 2}, {}, {0, 3, 3}, TmaSwizzle::b128, 512, 0x6718d6fff7be8f25},
    {"G18", kTwo, {64, 20}, {128}, {8, 8}, {}, {24, 0}, TmaSwizzle::b32, 256, 0x4f524897662b81a5},
    {"G19", kTwo, {64, 4, 5}, {4096, 128}, {64, 2, 3}, {}, {0, 2, 1}, TmaSwizzle::none, 768, 0xd49d6cc160963025},
    {"G20", kTwo, {64, 20}, {128}, {64, 8}, {}, {0, 3}, TmaSwizzle::b128_atom32_flip8, 1024, 0x60a125928e7cac25},
    {"P1", kTwo, {64, 20}, {128}, {64, 4}, {}, {0, 17}, TmaSwizzle::b128, 4096, 0x42d90aa15124d3a5, 512},
    {"P2", kTwo, {64, 20}, {128}, {64, 4}, {}, {0, 1}, TmaSwizzle::b128, 4096, 0x7eaaa7caca4563a5, 128},
    {"P3", kTwo, {64, 20}, {128}, {32, 8}, {}, {0, 1}, TmaSwizzle::b64, 4096, 0xa3db016fafb1b825, 128},
    {"P4", kTwo, {64, 20}, {128}, {16, 8}, {}, {0, 1}, TmaSwizzle::b32, 4096, 0x74e4b61e9cb96065, 128},
    {"P5", kTwo, {64, 20}, {128}, {64, 8}, {}, {0, 1}, TmaSwizzle::b128, 4096, 0x8ab765093f6b3c25, 1024},
    {"P6", kTwo, {64, 20}, {128}, {64, 4}, {}, {0, 1}, TmaSwizzle::none, 4096, 0x402cb8a4572a68a5, 128},
    {"P7", kTwo, {64, 20}, {128}, {16, 10}, {1, 3}, {32, 11}, TmaSwizzle::b128, 4096, 0xdd9df55a5337a805, 128},
    {"Q1", kTwo, {64, 20}, {128}, {64, 1}, {}, {0, 5, -1, 19, 20}, TmaSwizzle::b128, 512, 0x68f4d1a584ec93a5, 0, true},
    {"Q2", kTwo, {64, 20}, {128}, {64, 1}, {}, {0, 7, 7, 2, 0}, TmaSwizzle::b128, 512, 0x9502d1908cd3e825, 0, true},
    {"Q3", kTwo, {64, 20}, {128}, {32, 1}, {}, {32, 3, 1, 2, 0}, TmaSwizzle::b64, 256, 0xee5c2faf6c48e0e5, 0, true},
    {"Q4",
     kTwo,
     {64, 20},
     {128},
     {64, 1},
     {},
     {0, 19, 0, -5, 1000000},
     TmaSwizzle::none,
     512,
     0x09d48a3143c66925,
     0,
     true},
    {"Q5",
     kTwo,
     {64, 20},
     {128},
     {64, 1},
     {},
     {0, 5, -1, 19, 0},
     TmaSwizzle::b128,
     4096,
     0x71789d99e92d6fa5,
     512,
     true},
};

LaunchOptions options_of(Policy policy, std::uint64_t seed = 0) {
  LaunchOptions options;
  options.policy = policy;
  options.seed = seed;
  return options;
}

TEST(TensorLoad, DeliversTheGoldBytesUnderEveryPolicy) {
  for (const Case& c : kGold) {
    for (const LaunchOptions& options :
         {options_of(Policy::late), options_of(Policy::early), options_of(Policy::seeded, 7)}) {
      std::vector<std::string> messages;
      const std::vector<std::byte> window = load_window(c, options, messages);
      EXPECT_EQ(fnv1a(window), c.expected) << c.name;
      if (std::string(c.name) == "G14") {  // completely outside: a note
        ASSERT_EQ(messages.size(), 1u);
        EXPECT_EQ(messages[0], "TMA_ALL_FILL the whole box at {128, 0} is outside the tensor: only fill is loaded");
      } else {
        EXPECT_THAT(messages, IsEmpty()) << c.name;
      }
    }
  }
}

// A tile loaded and stored with one map equals the tensor; with another swizzle, chunks move by the XOR of their row.
TEST(TensorStore, IsTheInverseOfTheLoad) {
  for (const TmaSwizzle swizzle : {TmaSwizzle::none, TmaSwizzle::b128}) {
    const Case c{"", kTwo, {64, 8}, {128}, {64, 8}, {}, {0, 0}, TmaSwizzle::b128, 1024, 0};
    const TensorMap store = map_of(kTwo, c.dims, c.strides, c.box, swizzle);
    std::vector<std::string> messages;
    std::vector<std::byte> after;
    static_cast<void>(load_window(c, {}, messages, true, &after, &store));
    EXPECT_THAT(messages, IsEmpty());
    for (std::size_t i = 0; i < after.size(); ++i) {
      const std::size_t row = i / 128, chunk = i % 128 / 16;
      const std::size_t from = swizzle == TmaSwizzle::b128 ? i : row * 128 + (chunk ^ row) * 16 + i % 16;
      ASSERT_EQ(after[i], static_cast<std::byte>(source_byte(from))) << i;
    }
  }
}

// --- arguments -------------------------------------------------------------------------------------------------------

constexpr std::uint64_t kIn = 0x300000000;  // the second array of a kernel

// The messages of one copy with this map and text; u32 elements, which reductions support.
std::vector<std::string> said(const std::string& copy, std::size_t tensor_bytes = 20 * 256, bool ours = true,
                              std::uint64_t base = kIn) {
  TensorMap map = map_of(TmaDataType::u32, {64, 20}, {256}, {32, 4}, TmaSwizzle::b128);
  map.base = base;
  std::vector<std::byte> bytes = map_bytes(map);
  if (!ours) bytes[0] = std::byte{0};
  const Ran ran = run({.body = R"(
    mov.u32 %r10, s;
    mov.u32 %r1, 4;
    mbarrier.init.shared.b64 [%r10+2048], 1;
    mov.b64 %rd2, map; cvta.param.u64 %rd2, %rd2;
    )" + copy,
                       .in = std::vector<std::byte>(tensor_bytes),
                       .out_bytes = 64,
                       .threads = 1,
                       .third = bytes});
  return ran.messages;
}

TEST(TensorArguments, EachIsReportedByName) {
  const std::string load = "cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes ";
  EXPECT_EQ(said("cp.async.bulk.tensor.3d.shared::cta.global.mbarrier::complete_tx::bytes [%r10], [%rd2, {0, 0, 0}], "
                 "[%r10+2048];"),
            std::vector<std::string>{"TMA_ARG cp.async.bulk.tensor.3d with a tensor map of rank 2"});
  EXPECT_EQ(said(load + "[%r10], [%rd2, {2, 0}], [%r10+2048];"),
            std::vector<std::string>{"TMA_ARG load of a box rejected: coordinate 0: 2 x u32 = 8 B is not a multiple of "
                                     "16 B (error 715 on Hopper): start at 0 or 4"});
  EXPECT_EQ(said(load + "[%r10+64], [%rd2, {0, 0}], [%r10+2048];"),
            std::vector<std::string>{"TMA_ARG load of a box rejected: shared address: 1088 is not a multiple of 128 B "
                                     "(error 716): use 1152"});
  EXPECT_EQ(said(load + "[%r10], [%rd2, {0, 0}], [%r10+2048];", 20 * 256, false),
            std::vector<std::string>{"TMA_ARG the 128 bytes at param 64 are not a tensor map of this machine"});
  EXPECT_EQ(said(load + "[%r10], [%rd2, {0, 16}], [%r10+2048];", 19 * 256),
            std::vector<std::string>{"OUT_OF_BOUNDS 16 bytes at in + 4864 (size 4864)"});
  EXPECT_EQ(said("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd2, {0, -1}], [%r10];"),
            std::vector<std::string>{
                "TMA_ARG store of a box rejected: coordinate 1: -1 is below 0, where a store must not start (error 715 on Hopper): clip the "
                "tile first"});
  EXPECT_EQ(said(load + "[%r10], [%rd2, {0, 0}], [%r10+1024];"),
            std::vector<std::string>{"NO_MBARRIER there is no mbarrier at s + 1024"});
}

// The base of a map is a table entry times 256 bytes: -1, the same read as unsigned, one row and one page past the end.
// The first row of the box outside all arrays is reported; if arrays were adjacent, it would be the bytes of `out`.
TEST(TensorArguments, ABaseOutsideTheArrayIsOutOfBoundsOfEveryArray) {
  const std::string_view copies[] = {
      "cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%r10], [%rd2, {0, 0}], [%r10+2048];",
      "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd2, {0, 0}], [%r10];"};
  for (const std::string_view copy : copies) {
    const auto with_base = [&](std::uint64_t base) { return said(std::string(copy), 20 * 256, true, base); };
    EXPECT_THAT(with_base(kIn - 256), ElementsAre("OUT_OF_BOUNDS 16 bytes at in - 256 (size 5120)"));
    EXPECT_THAT(with_base(kIn - 4352), ElementsAre("OUT_OF_BOUNDS 16 bytes at in - 4352 (size 5120)"));
    EXPECT_THAT(with_base(kIn + 0xffffffffULL * 256),
                ElementsAre("OUT_OF_BOUNDS 16 bytes at 0x102ffffff00, where nothing is allocated"));
    EXPECT_THAT(with_base(kIn + 20 * 256), ElementsAre("OUT_OF_BOUNDS 16 bytes at in + 5120 (size 5120)"));
    EXPECT_THAT(with_base(kIn + 84 * 256), ElementsAre("OUT_OF_BOUNDS 16 bytes at in + 21504 (size 5120)"));
  }
}

// A swizzle that only the later engine supports: the map is valid for a device of that generation only.
TEST(TensorMapBytes, AreOfTheDevicesGeneration) {
  TensorMap map = map_of(TmaDataType::u32, {64, 20}, {256}, {32, 4}, TmaSwizzle::b128_atom32);
  map.base = kIn;
  EXPECT_EQ(map_bytes(map, 100).size(), kTensorMapBytes);
  EXPECT_EQ(Device(ProgramOptions{.target = 100}).target(), 100);
  for (const int target : {90, ProgramOptions{}.target}) {
    try {
      static_cast<void>(map_bytes(map, target));
      ADD_FAILURE() << "sm_90 has no such swizzle";
    } catch (const std::exception& e) {
      EXPECT_THAT(e.what(), ::testing::HasSubstr("needs sm_100: use the 128B swizzle on sm_90"));
    }
  }
}

TEST(TensorReduce, AddsElementByElement) {
  TensorMap map = map_of(TmaDataType::u32, {32, 4}, {128}, {32, 4}, TmaSwizzle::b128);
  map.base = kIn;
  std::vector<std::uint32_t> in(128);
  for (std::uint32_t i = 0; i < 128; ++i) in[i] = 1000 * i;
  const Ran ran = run({.body = R"(
    mov.u32 %r10, s;
    mov.u32 %r11, 0;
    FILL: add.u32 %r12, %r10, %r11;
    shr.u32 %r13, %r11, 4;
    st.shared.v4.u32 [%r12], {%r13, %r13, %r13, %r13};
    add.u32 %r11, %r11, 16;
    setp.lt.u32 %p1, %r11, 512;
    @%p1 bra FILL;
    mov.b64 %rd2, map; cvta.param.u64 %rd2, %rd2;
    cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%rd2, {0, 0}], [%r10];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    prefetch.tensormap [%rd2];
    cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%rd2, {0, 0}];)",
                       .in = words(in),
                       .threads = 1,
                       .third = map_bytes(map)});
  EXPECT_THAT(ran.messages, IsEmpty());
  for (std::size_t i = 0; i < 128; ++i) {
    std::uint32_t value;
    std::memcpy(&value, ran.in.data() + 4 * i, 4);
    const std::size_t row = i / 32, chunk = i % 32 / 4;
    EXPECT_EQ(value, 1000 * i + 8 * row + (chunk ^ row)) << i;  // the swizzle of a tile at 0x400: phase 0
  }
}

TEST(TensorMapEdit, AKernelChangesItsMap) {
  TensorMap map = map_of(TmaDataType::u32, {32, 4}, {128}, {32, 4}, TmaSwizzle::b128);
  map.base = 16;  // replaced by `in`
  const Ran ran = run({.body = R"(
    mov.b64 %rd2, map; cvta.param.u64 %rd2, %rd2;
    mov.u32 %r10, s;
    mov.u32 %r11, 0;
    COPY: cvt.u64.u32 %rd3, %r11;  add.s64 %rd4, %rd2, %rd3;
    ld.u64 %rd5, [%rd4];  add.u32 %r12, %r10, %r11;  st.shared.u64 [%r12+1024], %rd5;
    add.u32 %r11, %r11, 8;  setp.lt.u32 %p1, %r11, 128;  @%p1 bra COPY;
    mov.u64 %rd6, s;
    tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%rd6+1024], %rd1;
    mov.u32 %r13, 2;
    tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%rd6+1024], 1, %r13;
    tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%rd6+1024], 0;
    bar.warp.sync 0xffffffff;
    add.u32 %r14, %r10, 1024;
    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd0], [%r14], 128;
    fence.proxy.tensormap::generic.acquire.gpu [%rd0], 128;
    setp.eq.u32 %p2, %r0, 0;
    @%p2 mbarrier.init.shared.b64 [%r10+2048], 1;
    bar.sync 0;
    @!%p2 bra WAITS;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r10+2048], 512;
    cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r10], [%rd0, {0, 0}], [%r10+2048];
    WAITS: mbarrier.try_wait.parity.shared.b64 %p1, [%r10+2048], 0;
    @!%p1 bra WAITS;
    mul.lo.u32 %r9, %r0, 16;  add.u32 %r9, %r9, %r10;
    ld.shared.v4.u32 {%r1, %r2, %r3, %r4}, [%r9];
    mul.wide.u32 %rd7, %r0, 16;  add.s64 %rd7, %rd0, %rd7;
    st.global.v4.u32 [%rd7+128], {%r1, %r2, %r3, %r4};)",
                       .in = counted(512),
                       .out_bytes = 640,
                       .third = map_bytes(map)});
  EXPECT_THAT(ran.messages, IsEmpty());
  const std::vector<std::byte> in = counted(512);
  for (std::size_t i = 0; i < 512; ++i) EXPECT_EQ(ran.out[128 + i], i < 256 ? in[i] : std::byte{0}) << i;
}

TEST(TensorMapEdit, AKernelMakesItsMapFromZeros) {
  const Ran ran = run({.body = R"(
    mov.u32 %r10, s;
    mov.u64 %rd6, s;
    mov.u64 %rd5, 0;
    mov.u32 %r11, 0;
    ZERO: add.u32 %r12, %r10, %r11;  st.shared.u64 [%r12+1024], %rd5;
    add.u32 %r11, %r11, 8;  setp.lt.u32 %p1, %r11, 128;  @%p1 bra ZERO;
    mov.u32 %r13, 32; mov.u32 %r15, 4; mov.u32 %r7, 1; mov.u64 %rd4, 128;
    tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%rd6+1024], %rd1;
    tensormap.replace.tile.rank.shared::cta.b1024.b32 [%rd6+1024], 1;
    tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%rd6+1024], 0, %r13;
    tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%rd6+1024], 1, %r15;
    tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%rd6+1024], 0, %r13;
    tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%rd6+1024], 1, %r15;
    tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%rd6+1024], 0, %rd4;
    tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%rd6+1024], 0, %r7;
    tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%rd6+1024], 1, %r7;
    tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%rd6+1024], 2;
    tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%rd6+1024], 0;
    tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%rd6+1024], 3;
    tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%rd6+1024], 0;
    bar.warp.sync 0xffffffff;
    add.u32 %r14, %r10, 1024;
    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd0], [%r14], 128;
    fence.proxy.tensormap::generic.acquire.gpu [%rd0], 128;
    setp.eq.u32 %p2, %r0, 0;
    @%p2 mbarrier.init.shared.b64 [%r10+2048], 1;
    bar.sync 0;
    @!%p2 bra WAITS;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r10+2048], 512;
    cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r10], [%rd0, {0, 0}], [%r10+2048];
    WAITS: mbarrier.try_wait.parity.shared.b64 %p1, [%r10+2048], 0;
    @!%p1 bra WAITS;
    mul.lo.u32 %r9, %r0, 16;  add.u32 %r9, %r9, %r10;
    ld.shared.v4.u32 {%r1, %r2, %r3, %r4}, [%r9];
    mul.wide.u32 %rd7, %r0, 16;  add.s64 %rd7, %rd0, %rd7;
    st.global.v4.u32 [%rd7+128], {%r1, %r2, %r3, %r4};)",
                       .in = counted(512),
                       .out_bytes = 640});
  EXPECT_THAT(ran.messages, IsEmpty());
  const std::vector<std::byte> in = counted(512);
  for (std::size_t i = 0; i < 512; ++i) {
    const std::size_t row = i / 128, chunk = i / 16 % 8;
    EXPECT_EQ(ran.out[128 + i], in[128 * row + 16 * (chunk ^ row) + i % 16]) << i;
  }
}

}  // namespace
}  // namespace kvscope::ptx::test::tensor_copies_test
