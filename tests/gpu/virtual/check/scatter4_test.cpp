// cp.async.bulk.tensor with .tile::scatter4: four rows of shared memory, each stored to a row of the tensor. The tensor is
// compared byte by byte with a loop that shares nothing with the library, and the checks must find what is wrong.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>
#include <string>
#include <vector>

#include "core/tma/tensor_map_record.h"
#include "gpu/virtual/check/checks.h"
#include "gpu/virtual/machine/device.h"
#include "gpu/virtual/text/parser.h"
#include "tests/core/tma/gold.h"

namespace kvscope::ptx::test::scatter4_test {
namespace {

using kvscope::test::map_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr int kRows = 20, kShared = 2048;

struct Scatter {
  TmaDataType type = TmaDataType::bf16;
  int element = 2;  // [bytes]
  int columns = 64, box = 64;
  TmaSwizzle swizzle = TmaSwizzle::b128;
  int span = 128;  // [bytes] of the swizzle; 0: none
  int column = 0;
  std::array<std::int64_t, 4> rows{5, 19, 3, 0};
  int from = 0;                // [bytes] of the four rows in shared memory
  std::uint32_t box_rows = 1;  // of the map
  int tensor_rows = kRows;     // that are allocated
  int unwritten = -1;          // this row of shared memory is not filled
  std::array<int, 2> gap{};    // [bytes] of shared memory that are not filled: the first, and how many
  int map_columns = 0;         // of the tensor map; 0: all
  int planes = 0;              // extent of a third dimension of the map; 0: it has two
  std::string words = "bf16";  // each word of shared memory: "hash", "row": its number in 128 bytes, or 7
  std::string before = "fence.proxy.async.shared::cta;";  // between the stores and the copy
  std::string after = "cp.async.bulk.wait_group 0;";

  [[nodiscard]] int pitch() const { return span == 0 ? box * element : span; }
  [[nodiscard]] int stride() const { return columns * element; }
};

struct Result {
  std::vector<std::uint8_t> tensor;
  std::vector<std::string> messages;
};

Result run_scatter(const Scatter& s, Policy policy = Policy::late, std::uint64_t seed = 0) {
  const std::string text = fmt::format(
      R"(.version 9.0
.target sm_100a
.address_size 64
.extern .shared .align 1024 .b8 s[];
.visible .entry k(.param .align 64 .b8 map[128]) {{
  .reg .b32 %r<16>; .reg .b64 %rd<4>; .reg .pred %p<4>;
  mov.u32 %r0, %tid.x; mov.u32 %r1, s; shl.b32 %r2, %r0, 2;
FILL:
  shr.u32 %r3, %r2, 2; mul.lo.u32 %r3, %r3, 0x9E3779B1;
  {5}
  add.u32 %r4, %r1, %r2; sub.u32 %r5, %r2, {0}; setp.ge.u32 %p1, %r5, {1};
  @%p1 st.shared.u32 [%r4], %r3;
  add.u32 %r2, %r2, 128; setp.lt.u32 %p2, %r2, {2};
  @%p2 bra FILL;
  {3}
  bar.sync 0;
  setp.eq.u32 %p3, %r0, 0;
  mov.b64 %rd1, map; cvta.param.u64 %rd1, %rd1;
  @%p3 cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [%rd1, {{{6}, {7}, {8}, {9}, {10}}}], [%r1+{11}];
  @%p3 cp.async.bulk.commit_group;
  {4}
  ret;
}}
)",
      s.unwritten < 0 ? s.gap[0] : s.from + s.unwritten * s.pitch(), s.unwritten < 0 ? s.gap[1] : s.pitch(), kShared,
      s.before, s.after,
      s.words == "row" ? "shr.u32 %r3, %r2, 7;"
      : s.words == "7" ? "mov.u32 %r3, 7;"
                       : "",
      s.column, s.rows[0], s.rows[1], s.rows[2], s.rows[3], s.from);
  Device device(ProgramOptions{.target = 100});
  const LoadedModule& module = device.load(parse_module(text, "k.ptx"));
  std::vector<std::uint64_t> dims{static_cast<std::uint64_t>(s.map_columns > 0 ? s.map_columns : s.columns), kRows};
  std::vector<std::uint64_t> strides{static_cast<std::uint64_t>(s.stride())};
  std::vector<std::uint32_t> box{static_cast<std::uint32_t>(s.box), s.box_rows};
  if (s.planes > 0) {
    dims.push_back(static_cast<std::uint64_t>(s.planes));
    strides.push_back(static_cast<std::uint64_t>(kRows * s.stride()));
    box.push_back(1);
  }
  TensorMap map = map_of(s.type, dims, strides, box, s.swizzle);
  const std::int64_t bytes = std::int64_t{s.tensor_rows} * s.stride();
  map.base = device.memory().allocate(bytes, "tensor");
  device.memory().write(map.base, std::vector<std::byte>(static_cast<std::size_t>(bytes), std::byte{0xee}));
  const TensorMapRecord record = encode_tensor_map("test", map, TmaTarget::sm_100);
  LaunchConfig config;
  config.kernel = "k";
  config.dynamic_shared = kShared;
  config.block = {32, 1, 1};
  config.options.policy = policy;
  config.options.seed = seed;
  config.params = pack_params(module, "k", {std::vector<std::byte>(record.begin(), record.end())});
  Checks checks;
  const LaunchResult launched = device.launch(module, config, checks.monitor());
  Result result;
  for (const Report& r : launched.reports) result.messages.push_back(std::string(name(r.kind)) + " " + r.message);
  for (const std::byte b : device.memory().read(map.base, bytes))
    result.tensor.push_back(std::to_integer<std::uint8_t>(b));
  return result;
}

// Byte i of shared memory: of the word i / 4, times 0x9E3779B1.
std::uint8_t shared_byte(int i) {
  return static_cast<std::uint8_t>(static_cast<std::uint32_t>(i / 4) * 0x9E3779B1U >> (8 * (i % 4)));
}

// The tensor as it must be: rows in order, each at its own index.
std::vector<std::uint8_t> expected(const Scatter& s) {
  std::vector<std::uint8_t> tensor(static_cast<std::size_t>(kRows * s.stride()), 0xee);
  for (int r = 0; r < 4; ++r) {
    for (int b = 0; b < s.box * s.element; ++b) {
      const int at = s.column * s.element + b;
      const std::int64_t row = s.rows[static_cast<std::size_t>(r)];
      if (at >= s.stride() || row >= kRows) continue;
      int place = s.from + r * s.pitch() + b;
      if (s.span != 0) place ^= (place / 128 % (s.span / 16)) * 16;  // the 16 bytes exchange places by their 128 bytes
      tensor[static_cast<std::size_t>(row * s.stride() + at)] = shared_byte(place);
    }
  }
  return tensor;
}

TEST(Scatter4, StoresEachRowAtItsIndexUnderEveryPolicy) {
  const Scatter cases[] = {
      {},
      {.swizzle = TmaSwizzle::none, .span = 0, .rows = {19, 0, 7, 8}},
      {.box = 32, .swizzle = TmaSwizzle::b64, .span = 64, .column = 32, .rows = {3, 1, 2, 0}},
      {.box = 16, .swizzle = TmaSwizzle::b32, .span = 32, .column = 16},
      {.box = 32, .column = 24, .rows = {1, 18, 17, 2}},                  // rows shorter than the span
      {.box = 32, .swizzle = TmaSwizzle::none, .span = 0, .column = 40},  // the last columns are outside
      {.rows = {20, 4, 1000000, 6}},                                      // two rows are outside
      {.type = TmaDataType::u8, .element = 1, .columns = 128, .box = 128, .rows = {2, 9, 4, 11}},
      {.type = TmaDataType::f32, .element = 4, .columns = 48, .box = 32, .column = 16, .from = 1024},
      {.rows = {12, 14, 13, 15}, .from = 512},
  };
  for (const Scatter& s : cases) {
    const std::vector<std::uint8_t> tensor = expected(s);
    EXPECT_NE(tensor, std::vector<std::uint8_t>(tensor.size(), 0xee));
    for (const auto& [policy, seed] :
         {std::pair{Policy::late, 0}, {Policy::early, 0}, {Policy::seeded, 1}, {Policy::seeded, 9}}) {
      const Result result = run_scatter(s, policy, static_cast<std::uint64_t>(seed));
      EXPECT_THAT(result.messages, IsEmpty());
      EXPECT_EQ(result.tensor, tensor) << "column " << s.column << ", span " << s.span << ", first row " << s.rows[0];
    }
  }
}

TEST(Scatter4, WrongArgumentsAreReportedByName) {
  EXPECT_THAT(run_scatter({.rows = {5, 3, -1, 0}}).messages,
              ElementsAre(StartsWith("TMA_ARG row 2 of the four, coordinate 3 of the instruction: store of a box "
                                     "rejected: coordinate 1: -1 is below 0, where a store must not start")));
  EXPECT_THAT(run_scatter({.box_rows = 2}).messages,
              ElementsAre("TMA_ARG tile::scatter4 with a box of 2 rows: its box is one row, {w, 1}"));
  EXPECT_THAT(run_scatter({.column = 4}).messages,
              ElementsAre(HasSubstr("coordinate 0: 4 x bf16 = 8 B is not a multiple of 16 B")));
  EXPECT_THAT(run_scatter({.from = 64}).messages,
              ElementsAre(HasSubstr("shared address: 1088 is not a multiple of 128 B")));
  EXPECT_THAT(run_scatter({.tensor_rows = 19}).messages,
              ElementsAre("OUT_OF_BOUNDS 16 bytes at tensor + 2432 (size 2432)"));
}

// The order of the rows of one copy is undefined: a row that is given twice must have the same data both times.
TEST(Scatter4, OneRowTwiceIsReportedIfItsDataDiffer) {
  const std::string text = "TMA_ARG rows 1 and 3 of shared memory are both stored to row 7 of the tensor, and differ";
  EXPECT_THAT(run_scatter({.rows = {5, 7, 3, 7}}).messages, ElementsAre(text));
  EXPECT_THAT(run_scatter({.rows = {5, 7, 3, 7}}, Policy::seeded, 4).messages, ElementsAre(text));
  EXPECT_THAT(run_scatter({.rows = {5, 7, 3, 7}, .words = "row"}).messages, ElementsAre(text));
  EXPECT_THAT(run_scatter({.rows = {5, 7, 3, 7}, .words = "7"}).messages, IsEmpty());
  EXPECT_THAT(run_scatter({.rows = {30, 7, 3, 30}}).messages, IsEmpty());  // outside of the tensor
}

// A prefetch moves nothing; it has the rules of the load, which fills rows outside of the tensor.
TEST(Scatter4, APrefetchOfFourRowsHasTheRulesOfGather4) {
  const std::string prefetch =
      "cp.async.bulk.wait_group 0;\n@%p3 cp.async.bulk.prefetch.tensor.2d.L2.global.tile::gather4 [%rd1, {";
  const Scatter good{.after = prefetch + "0, 5, -1, 30, 5}];"};
  const Result result = run_scatter(good);
  EXPECT_THAT(result.messages, IsEmpty());
  EXPECT_EQ(result.tensor, expected(good));
  EXPECT_THAT(run_scatter({.after = prefetch + "4, 5, 1, 2, 3}];"}).messages,
              ElementsAre(HasSubstr("load of a box rejected: coordinate 0: 4 x bf16 = 8 B is not a multiple of 16 B")));
  EXPECT_THAT(run_scatter({.box_rows = 2, .after = prefetch + "0, 5, 1, 2, 3}];"}).messages,
              ElementsAre("TMA_ARG tile::scatter4 with a box of 2 rows: its box is one row, {w, 1}",
                          "TMA_ARG tile::gather4 with a box of 2 rows: its box is one row, {w, 1}"));
}

TEST(Scatter4, AMapOfThreeDimensionsIsReportedByItsRank) {
  const Scatter deep{.planes = 1,
                     .after = "@%p3 cp.async.bulk.prefetch.tensor.2d.L2.global.tile::gather4 [%rd1, {0, 5, 1, 2, 3}];"};
  EXPECT_THAT(run_scatter(deep).messages,
              ElementsAre(HasSubstr("2d with a tensor map of rank 3"),
                          "TMA_ARG tile::gather4 with a tensor map of rank 3: its map has two dimensions"));
}

// Columns outside of the tensor are not stored: their bytes of shared memory are not read. A row of the last columns has
// data in the bytes before `end`, and the swizzle moves 16 bytes of row 1 by 16.
TEST(Scatter4, ColumnsOutsideOfTheTensorAreNotRead) {
  struct Case {
    Scatter scatter;
    int outside;      // [bytes] from the start of row 1 in shared memory to bytes outside of the tensor
    int inside;       // to bytes inside
    int bytes;        // of each
    int pitch = 128;  // of rows
  };
  const Case cases[] = {
      // whole rows in one window, of 64 bytes: 48 have data
      {{.box = 32, .swizzle = TmaSwizzle::none, .span = 0, .column = 40}, 48, 32, 16, 64},
      // of 128 bytes with a swizzle: 112 have data
      {{.column = 8}, 112 ^ 16, 96 ^ 16, 16},
      // rows shorter than the span: 48 of 64 bytes
      {{.box = 32, .column = 40}, 48 ^ 16, 32 ^ 16, 16},
      // part of 16 bytes: columns 60 to 63 are outside
      {{.map_columns = 60}, (112 ^ 16) + 8, 112 ^ 16, 8},
      {{.box = 32, .column = 40, .map_columns = 60}, (32 ^ 16) + 8, 32 ^ 16, 8},
  };
  for (const Case& c : cases) {
    for (const Policy policy : {Policy::late, Policy::seeded}) {
      Scatter s = c.scatter;
      s.gap = {c.pitch + c.outside, c.bytes};
      EXPECT_THAT(run_scatter(s, policy, 3).messages, IsEmpty()) << c.outside;
      s.gap = {c.pitch + c.inside, c.bytes};
      EXPECT_THAT(run_scatter(s, policy, 3).messages, ElementsAre(StartsWith("UNINITIALIZED"))) << c.inside;
      s.gap = {};
      s.after = fmt::format("@%p3 st.shared.u32 [%r1+{}], %r0;\ncp.async.bulk.wait_group 0;", c.pitch + c.outside);
      EXPECT_THAT(run_scatter(s, policy, 3).messages, IsEmpty()) << c.outside;
      s.after = fmt::format("@%p3 st.shared.u32 [%r1+{}], %r0;\ncp.async.bulk.wait_group 0;", c.pitch + c.inside);
      EXPECT_THAT(run_scatter(s, policy, 3).messages, ElementsAre(StartsWith("RACE_RW"))) << c.inside;
    }
  }
}

TEST(Scatter4, TheChecksSeeWhatItReads) {
  // A row that nothing has written, unless it is not stored.
  for (int r = 0; r < 4; ++r) {
    EXPECT_THAT(run_scatter({.unwritten = r}).messages,
                ElementsAre(HasSubstr("UNINITIALIZED the value is copied to global memory")))
        << r;
  }
  EXPECT_THAT(run_scatter({.rows = {5, 30, 3, 0}, .unwritten = 1}).messages, IsEmpty());
  EXPECT_THAT(run_scatter({.rows = {5, 30, 3, 0}, .unwritten = 1}, Policy::seeded, 2).messages, IsEmpty());
  EXPECT_THAT(run_scatter({.box = 32, .rows = {5, 30, 3, 0}, .unwritten = 1}).messages, IsEmpty());
  EXPECT_THAT(run_scatter({.box = 32, .unwritten = 1}).messages, ElementsAre(StartsWith("UNINITIALIZED")));
  EXPECT_THAT(run_scatter({.unwritten = 4}).messages, IsEmpty());
  // Stores before the copy without the proxy fence, and after it without waiting for its reads.
  EXPECT_THAT(run_scatter({.before = ""}).messages, ElementsAre(StartsWith("PROXY_FENCE")));
  const std::string overwrite = "st.shared.u32 [%r1+384], %r0;\ncp.async.bulk.wait_group 0;";
  EXPECT_THAT(run_scatter({.after = "@%p3 " + overwrite}).messages, ElementsAre(StartsWith("RACE_RW")));
  EXPECT_THAT(run_scatter({.after = "cp.async.bulk.wait_group.read 0;\n@%p3 " + overwrite}).messages, IsEmpty());
}

}  // namespace
}  // namespace kvscope::ptx::test::scatter4_test
