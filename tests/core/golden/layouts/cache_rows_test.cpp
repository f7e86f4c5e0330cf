// K of a cache as rows that attention can read: in place where every stride is a whole number of elements or scales, else
// as a copy. Each element and scale is compared with its bytes, found by the test's own arithmetic.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/convert.h"
#include "core/golden/layouts/layouts.h"
#include "tests/core/golden/layouts/layout_cases.h"

namespace kvscope::golden::cache_rows_test {
namespace {

constexpr std::int64_t kBlocks = 3;

double value_of(const attention::PagedRows& rows, std::int64_t block, std::int64_t slot, std::int64_t head,
                std::int64_t d) {
  const std::int64_t at = block * rows.block_stride + slot * rows.token_stride + head * rows.head_stride + d;
  return load_as_double(rows.dtype, rows.data + at * size_of(rows.dtype));
}

double scale_of(const attention::PagedRows& rows, std::int64_t block, std::int64_t slot, std::int64_t head,
                std::int64_t d) {
  const std::int64_t at = block * rows.scale_block_stride + slot * rows.scale_token_stride +
                          head * rows.scale_head_stride + d / rows.granularity;
  return load_as_double(rows.scale_dtype, rows.scales + at * size_of(rows.scale_dtype));
}

bool is_within(const std::byte* at, const Tensor& tensor) {
  return at >= tensor.bytes.data() && at < tensor.bytes.data() + tensor.bytes.size();
}

// A layout of one sequence that reads all blocks, with these tensors of its form.
LayoutOptions options_of(const std::string& tensors, const std::string& table) {
  LayoutOptions options;
  options.layout = "mine";
  options.description = std::make_shared<const LayoutDescription>(parse_layout(
      json::parse(
          fmt::format(R"({{"forms": [{{"values": "leading", "tensors": [{}]}}], "table": {}}})", tensors, table),
          "mine.json"),
      "mine", "mine.json"));
  options.scale = 0.5;
  options.value_size = 1;
  return options;
}

const std::string kTableOfBlocks =
    R"({"form": "blocks", "tensors": {"table": ["block_table"], "lengths": ["cache_seqlens"]}})";

void add_table_of_blocks(Bundle& bundle, std::int64_t page_size) {
  bundle.tensors["block_table"] = SmallBatch::ints<std::int32_t>({1, kBlocks}, {0, 1, 2});
  bundle.tensors["cache_seqlens"] = SmallBatch::ints<std::int32_t>({1}, {kBlocks * page_size});
}

// --- packed rows ------------------------------------------------------------------------------------------------------

struct Field {
  std::int64_t elements = 0;
  DType dtype = DType::e4m3;
  std::int64_t at = 0;  // [bytes]
  DType scale_dtype = DType::f16;
  std::int64_t scales_at = 0;  // [bytes]
  std::int64_t each = 0;       // [elements] that share a scale; 0: none
};

struct PackedCase {
  const char* name;
  std::int64_t bytes, page_size, heads;
  std::vector<Field> fields;
  bool in_place, scales_in_place;
  std::int64_t granularity;
};

void PrintTo(const PackedCase& c, std::ostream* out) {
  *out << c.name;
}

// 6 bytes are 3 elements of bf16, 5 bytes are 2.5. A page of 2 and 2 heads make a stride even again, so that each
// stride is the only one that is odd in one of the cases.
const PackedCase kPacked[] = {
    {"AlignedElements", 6, 3, 2, {{2, DType::bf16, 2}}, true, false, 0},
    {"AnOddOffset", 6, 2, 2, {{2, DType::bf16, 1}}, false, false, 0},
    {"AnOddStrideOfBlocks", 5, 1, 1, {{2, DType::bf16, 0}}, false, false, 0},
    {"AnOddStrideOfSlots", 5, 2, 1, {{2, DType::bf16, 0}}, false, false, 0},
    {"AnOddStrideOfHeads", 5, 3, 2, {{2, DType::bf16, 0}}, false, false, 0},
    {"AlignedScales", 8, 3, 2, {{4, DType::e4m3, 0, DType::f16, 4, 2}}, true, true, 2},
    {"AnOddOffsetOfScales", 10, 2, 2, {{4, DType::e4m3, 0, DType::f16, 5, 2}}, true, false, 2},
    {"ScalesInAnOddStrideOfBlocks", 9, 1, 1, {{4, DType::e4m3, 0, DType::f16, 4, 2}}, true, false, 2},
    {"ScalesInAnOddStrideOfSlots", 9, 2, 1, {{4, DType::e4m3, 0, DType::f16, 4, 2}}, true, false, 2},
    {"ScalesInAnOddStrideOfHeads", 9, 3, 2, {{4, DType::e4m3, 0, DType::f16, 4, 2}}, true, false, 2},
    {"ScalesOfTheFirstField", 10, 3, 2, {{4, DType::e4m3, 0, DType::f16, 4, 2}, {2, DType::e4m3, 8}}, false, false, 2},
    {"ScalesOfTheSecondField", 10, 3, 2, {{2, DType::e4m3, 8}, {4, DType::e4m3, 0, DType::f16, 4, 2}}, false, false, 2},
    // The second field's groups of 2 begin at element 3, within a group of 2 from the row's start.
    {"ScalesFromAnyElement", 14, 3, 2, {{3, DType::bf16, 8}, {4, DType::e4m3, 0, DType::f16, 4, 2}}, false, false, 1},
    {"ScalesOfTwoTypes",
     16,
     3,
     2,
     {{4, DType::e4m3, 0, DType::f16, 4, 2}, {2, DType::e4m3, 8, DType::f32, 12, 2}},
     false,
     false,
     2},
    // Groups of 4 and of 2: a copy with a scale for each 4 elements has no place for those of the second field.
    {"ScalesOfTwoLengths",
     12,
     3,
     2,
     {{4, DType::e4m3, 0, DType::f16, 8, 4}, {2, DType::e4m3, 4, DType::f16, 10, 2}},
     false,
     false,
     2},
};

class PackedRows : public testing::TestWithParam<PackedCase> {};

TEST_P(PackedRows, HaveTheElementsAndScalesOfTheirBytes) {
  const PackedCase& c = GetParam();
  std::vector<std::string> texts;
  std::int64_t size = 0;
  for (const Field& f : c.fields) {
    size += f.elements;
    texts.push_back(fmt::format(R"({{"elements": {}, "dtype": "{}", "at": {}{}}})", f.elements, name(f.dtype), f.at,
                                f.each == 0 ? ""
                                            : fmt::format(R"(, "scales": {{"dtype": "{}", "at": {}, "each": {}}})",
                                                          name(f.scale_dtype), f.scales_at, f.each)));
  }
  const LayoutOptions options =
      options_of(fmt::format(R"({{"name": "rows", "holds": "k", "axes": "[block, slot, head, row]",
                       "row": {{"bytes": {}, "fields": [{}]}}}})",
                             c.bytes, fmt::join(texts, ", ")),
                 kTableOfBlocks);
  // Whole numbers up to 13 and 11: exact in every type, and other ones in the next element, row and group.
  const auto element = [](std::int64_t row, std::int64_t d) { return static_cast<double>(1 + (5 * row + 3 * d) % 13); };
  const auto scale = [](std::int64_t row, std::int64_t d) { return static_cast<double>(1 + (7 * row + 2 * d) % 11); };
  Bundle bundle;
  Tensor& tensor = bundle.tensors["rows"] = make_tensor(DType::u8, {kBlocks, c.page_size, c.heads, c.bytes});
  for (std::byte& byte : tensor.bytes) byte = std::byte{0x7f};  // NaN of e4m3, f16 and bf16
  for (std::int64_t row = 0; row < kBlocks * c.page_size * c.heads; ++row) {
    std::int64_t first = 0;
    for (const Field& f : c.fields) {
      std::byte* at = tensor.bytes.data() + row * c.bytes;
      for (std::int64_t d = 0; d < f.elements; ++d) {
        store_from_double(f.dtype, element(row, first + d), at + f.at + d * size_of(f.dtype), Overflow::saturate);
        if (f.each > 0 && d % f.each == 0) {
          store_from_double(f.scale_dtype, scale(row, first + d),
                            at + f.scales_at + d / f.each * size_of(f.scale_dtype), Overflow::saturate);
        }
      }
      first += f.elements;
    }
  }
  bundle.tensors["q"] = make_tensor(DType::f32, {1, c.heads, size});
  add_table_of_blocks(bundle, c.page_size);

  const PreparedProblem prepared = prepare_problem(bundle, options, "mine.npz");
  const attention::PagedRows& k = prepared.problem.k;
  EXPECT_EQ(is_within(k.data, tensor), c.in_place);
  EXPECT_EQ(k.granularity, c.granularity);
  ASSERT_EQ(k.scales != nullptr, c.granularity > 0);
  EXPECT_EQ(k.scales != nullptr && is_within(k.scales, tensor), c.scales_in_place);
  std::int64_t row = 0;
  for (std::int64_t block = 0; block < kBlocks; ++block) {
    for (std::int64_t slot = 0; slot < c.page_size; ++slot) {
      for (std::int64_t head = 0; head < c.heads; ++head, ++row) {
        std::int64_t first = 0;
        for (const Field& f : c.fields) {
          for (std::int64_t d = 0; d < f.elements; ++d) {
            const std::string where =
                fmt::format("block {}, slot {}, head {}, element {}", block, slot, head, first + d);
            EXPECT_EQ(value_of(k, block, slot, head, first + d), element(row, first + d)) << where;
            if (c.granularity == 0) continue;
            EXPECT_EQ(scale_of(k, block, slot, head, first + d),
                      f.each == 0 ? 1.0 : scale(row, first + d / f.each * f.each))
                << where;
          }
          first += f.elements;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(CacheRows, PackedRows, testing::ValuesIn(kPacked),
                         [](const auto& param) { return param.param.name; });

// --- types ------------------------------------------------------------------------------------------------------------

// Every code of e4m3fnuz: a bias of 8, one NaN in place of -0, and no infinities (OCP's e4m3 has a bias of 7 and NaN at
// 7f and ff).
TEST(CacheRows, EveryCodeOfTheTypeWithoutANegativeZeroIsRead) {
  Bundle bundle;
  for (const char* name : {"k_cache", "v_cache"}) {
    Tensor& codes = bundle.tensors[name] = make_tensor(DType::u8, {1, 4, 2, 32});
    for (std::size_t code = 0; code < 256; ++code) codes.bytes.data()[code] = static_cast<std::byte>(code);
  }
  bundle.tensors["block_table"] = tensor_of<std::int32_t>({1, 1}, std::array<std::int32_t, 1>{0});
  bundle.tensors["cache_seqlens"] = tensor_of<std::int32_t>({1}, std::array<std::int32_t, 1>{4});
  bundle.tensors["q"] = make_tensor(DType::f32, {1, 2, 32});
  LayoutOptions options;
  options.layout = "nhd";
  options.cache_type = cache_type_from_name("e4m3fnuz");
  const PreparedProblem prepared = prepare_problem(bundle, options, "mine.npz");
  for (const attention::PagedRows* rows : {&prepared.problem.k, &prepared.problem.v}) {
    ASSERT_EQ(rows->dtype, DType::f32);
    for (int code = 0; code < 256; ++code) {
      float value = 0;
      std::memcpy(
          &value,
          rows->data + code / 64 * rows->token_stride * 4 + code / 32 % 2 * rows->head_stride * 4 + code % 32 * 4,
          sizeof value);
      const int exponent = code >> 3 & 15, mantissa = code & 7;
      const double magnitude = exponent == 0 ? std::ldexp(mantissa, -10) : std::ldexp(8 + mantissa, exponent - 8 - 3);
      if (code == 0x80) {
        EXPECT_TRUE(std::isnan(value));
      } else {
        EXPECT_EQ(value, code < 128 ? magnitude : -magnitude) << code;
      }
    }
  }
}

// The option is about e4m3: 0x44 is 4.0 in e5m2, 3.0 in e4m3 and 1.5 in e4m3fnuz.
TEST(CacheRows, OtherTypesOfARowAreReadAsTheyAre) {
  LayoutOptions options = options_of(
      R"({"name": "rows", "holds": "k", "axes": "[block, slot, row]", "row": {"bytes": 4, "fields": [
           {"elements": 1, "dtype": "e4m3", "at": 0}, {"elements": 1, "dtype": "e5m2", "at": 1},
           {"elements": 1, "dtype": "bf16", "at": 2}]}})",
      kTableOfBlocks);
  Bundle bundle;
  Tensor& tensor = bundle.tensors["rows"] = make_tensor(DType::u8, {kBlocks, 2, 4});
  for (std::byte& byte : tensor.bytes) byte = std::byte{0x44};
  bundle.tensors["q"] = make_tensor(DType::f32, {1, 1, 3});
  add_table_of_blocks(bundle, 2);
  for (const auto& [type, value] : {std::pair{"e4m3", 3.0}, {"e4m3fnuz", 1.5}}) {
    options.cache_type = cache_type_from_name(type);
    const PreparedProblem prepared = prepare_problem(bundle, options, "mine.npz");
    const attention::PagedRows& k = prepared.problem.k;
    EXPECT_EQ(value_of(k, 2, 1, 0, 0), value) << type;
    EXPECT_EQ(value_of(k, 2, 1, 0, 1), 4.0) << type;
    EXPECT_EQ(value_of(k, 2, 1, 0, 2), 784.0) << type;  // 0x4444: exponent 136 - 127, mantissa 1 + 68/128
  }
}

// --- block scales of other axes ---------------------------------------------------------------------------------------

// Scales of a head with the slots between them, and tables with an entry for each token: the scales are read in place
// only if the token's number alone gives their place.
TEST(CacheRows, BlockScalesOfAnyOrderOfAxesAreThoseOfTheirElement) {
  struct Case {
    const char *axes, *group_axes;
    bool by_token, in_place;
  };
  constexpr std::int64_t kPage = 2, kHeads = 3, kDims = 4, kGroups = 2;
  for (const Case& c : {Case{"[block, slot, head, dim]", "[block, slot, head, group]", false, true},
                        Case{"[block, slot, head, dim]", "[block, group, slot, head]", false, false},
                        Case{"[block, slot, head, dim]", "[block, slot, head, group]", true, true},
                        Case{"[block, head, slot, dim]", "[block, head, slot, group]", false, true},
                        Case{"[block, head, slot, dim]", "[block, head, slot, group]", true, false}}) {
    SCOPED_TRACE(fmt::format("{} {}", c.group_axes, c.by_token ? "by token" : "by block"));
    const LayoutOptions options = options_of(
        fmt::format(
            R"({{"name": "k", "holds": "k", "axes": "{}"}}, {{"name": "sf", "holds": "k_scales", "axes": "{}"}})",
            c.axes, c.group_axes),
        c.by_token ? R"({"form": "tokens", "tensors": {"indptr": ["indptr"], "indices": ["indices"]}})"
                   : kTableOfBlocks);
    const bool heads_first = std::string(c.axes).starts_with("[block, head");
    const bool groups_first = std::string(c.group_axes).starts_with("[block, group");
    Bundle bundle;
    bundle.tensors["k"] = rising(heads_first ? std::vector<std::int64_t>{kBlocks, kHeads, kPage, kDims}
                                             : std::vector<std::int64_t>{kBlocks, kPage, kHeads, kDims});
    Tensor& sf = bundle.tensors["sf"] =
        rising(heads_first    ? std::vector<std::int64_t>{kBlocks, kHeads, kPage, kGroups}
               : groups_first ? std::vector<std::int64_t>{kBlocks, kGroups, kPage, kHeads}
                              : std::vector<std::int64_t>{kBlocks, kPage, kHeads, kGroups});
    bundle.tensors["q"] = make_tensor(DType::f32, {1, kHeads, kDims});
    if (c.by_token) {
      bundle.tensors["indptr"] = SmallBatch::ints<std::int32_t>({2}, {0, kBlocks * kPage});
      bundle.tensors["indices"] = SmallBatch::ints<std::int32_t>({kBlocks * kPage}, {5, 4, 3, 2, 1, 0});
    } else {
      add_table_of_blocks(bundle, kPage);
    }
    const PreparedProblem prepared = prepare_problem(bundle, options, "mine.npz");
    const attention::PagedRows& k = prepared.problem.k;
    EXPECT_EQ(k.page_size, c.by_token ? 1 : kPage);
    EXPECT_EQ(is_within(k.scales, sf), c.in_place);
    for (std::int64_t n = 0; n < kBlocks; ++n) {
      for (std::int64_t p = 0; p < kPage; ++p) {
        for (std::int64_t h = 0; h < kHeads; ++h) {
          for (std::int64_t d = 0; d < kDims; ++d) {
            const std::int64_t block = c.by_token ? n * kPage + p : n, slot = c.by_token ? 0 : p, g = d / 2;
            const std::int64_t place = heads_first ? (n * kHeads + h) * kPage + p : (n * kPage + p) * kHeads + h;
            EXPECT_EQ(value_of(k, block, slot, h, d), static_cast<double>(place * kDims + d));
            EXPECT_EQ(
                scale_of(k, block, slot, h, d),
                static_cast<double>(groups_first ? ((n * kGroups + g) * kPage + p) * kHeads + h : place * kGroups + g));
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace kvscope::golden::cache_rows_test
