// Slices of inputs with every kind of tensor besides the cache: padded queries, masks of every form, scales, elements of 4
// bits, tables of every form. Rows and heads of a slice keep their bits.
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/attention/reference.h"
#include "core/golden/reduce/slice.h"
#include "tests/core/golden/layouts/layout_cases.h"
#include "tests/core/golden/reduce/slice_cases.h"
#include "tests/property.h"

namespace kvscope::golden::slice_variants_test {
namespace {

struct Variant {
  const char* name;
  const char* layout;
  std::function<void(Bundle&, LayoutOptions&)> change;  // of the small batch
  // A cut that these tensors cannot hold is rejected with this text; empty: none is.
  std::string rejection;
};

std::ostream& operator<<(std::ostream& out, const Variant& variant) {
  return out << variant.name;
}

constexpr const char* kOneStart = "sequences of a mask [Sq, Sk] keep the same first query and first key";
constexpr const char* kOneCount = "sequences of q [B, queries, Hq, D] have one number of queries";

constexpr const char* kOneLength = "sequences without a tensor of lengths have one length";
constexpr const char* kAmbiguous = "], which is read as per ";

float unit(std::uint64_t seed, std::uint64_t n) {
  return static_cast<float>(CounterRng(seed, 1).uniform(n));
}

// Numbers in [0.5, 2), no two alike.
Tensor scales(std::vector<std::int64_t> shape) {
  Tensor tensor = make_tensor(DType::f32, std::move(shape));
  std::uint64_t n = 0;
  for (float& x : values<float>(tensor)) x = 0.5F + 1.5F * unit(7, n++);
  return tensor;
}

Tensor numbers(std::vector<std::int64_t> shape) {
  Tensor tensor = make_tensor(DType::f32, std::move(shape));
  std::uint64_t n = 0;
  for (float& x : values<float>(tensor)) x = static_cast<float>(CounterRng(8, 2).bell(n++));
  return tensor;
}

// 0 or 1; rows may be empty.
Tensor bits(std::vector<std::int64_t> shape) {
  Tensor tensor = make_tensor(DType::u8, std::move(shape));
  std::uint64_t n = 0;
  for (std::byte& b : tensor.bytes) b = unit(9, n++) < 0.7F ? std::byte{1} : std::byte{0};
  return tensor;
}

Tensor bytes(DType dtype, std::vector<std::int64_t> shape) {
  Tensor tensor = make_tensor(dtype, std::move(shape));
  std::uint64_t n = 0;
  for (std::byte& b : tensor.bytes) b = static_cast<std::byte>(static_cast<int>(unit(10, n++) * 256));
  return tensor;
}

// A value for each query and key of all sequences: 1 * 1 + 1 * 3 + 2 * 4 + 1 * 5 + 3 * 17.
constexpr std::int64_t kPairs = 68, kPackedBytes = 1 + 1 + 1 + 1 + 7;

// Every sequence has 3 queries, as many as a tree has nodes.
void three_queries(Bundle& bundle) {
  bundle.tensors["cache_seqlens"] = list({3, 4, 4, 5, 17});
  bundle.tensors["query_offsets"] = list({0, 3, 6, 9, 12, 15});
  bundle.tensors["q"] = numbers({15, 4, 6});
  for (const char* name : {"k_cache", "v_cache"}) bundle.tensors[name] = numbers({13, 4, 2, 6});
}

void pad_queries(Bundle& bundle) {
  bundle.tensors["q"] = numbers({5, 3, 4, 6});
  bundle.tensors.erase("query_offsets");
  bundle.tensors["q_lens"] = list({1, 1, 2, 1, 3});
}

std::vector<Variant> variants() {
  std::vector<Variant> all;
  const auto add = [&](const char* name, const char* layout, std::function<void(Bundle&, LayoutOptions&)> change,
                       std::string rejection = "") {
    all.push_back({name, layout, std::move(change), std::move(rejection)});
  };
  add("padded_q", "nhd", [](Bundle& b, LayoutOptions&) { pad_queries(b); });
  add("padded_q_with_offsets", "nhd", [](Bundle& b, LayoutOptions&) {
    pad_queries(b);
    b.tensors.erase("q_lens");
    b.tensors["query_offsets"] = list({0, 1, 2, 4, 5, 8});
  });
  add(
      "padded_q_without_counts", "nhd",
      [](Bundle& b, LayoutOptions&) {
        three_queries(b);
        b.tensors.erase("query_offsets");
        b.tensors["q"].shape = {5, 3, 4, 6};
      },
      kOneCount);
  add("rows_of_q_with_lengths", "nhd", [](Bundle& b, LayoutOptions&) {
    b.tensors["q"] = numbers({15, 4, 6});
    b.tensors["query_offsets"] = list<std::uint64_t>({0, 3, 6, 9, 12, 15});
    b.tensors["q_lens"] = list<std::uint32_t>({1, 1, 2, 1, 3});
  });
  add(
      "mask_shared", "nhd",
      [](Bundle& b, LayoutOptions&) {
        b.tensors["attn_mask"] = bits({3, 17});
      },
      kOneStart);
  add(
      "mask_by_sequence", "nhd",
      [](Bundle& b, LayoutOptions&) {
        b.tensors["attn_mask"] = bits({5, 3, 24});
      },
      kOneStart);
  add(
      "mask_by_head", "nhd",
      [](Bundle& b, LayoutOptions&) {
        b.tensors["attn_mask"] = bits({5, 4, 3, 17});
      },
      kOneStart);
  add(
      "mask_by_head_of_all", "nhd",
      [](Bundle& b, LayoutOptions&) {
        b.tensors["attn_mask"] = bits({1, 4, 1, 17});
      },
      kOneStart);
  add(
      "mask_of_rows", "nhd",
      [](Bundle& b, LayoutOptions&) {
        b.tensors["attn_mask"] = bits({5, 1, 3, 1});
      },
      kOneStart);
  add(
      "bias", "nhd",
      [](Bundle& b, LayoutOptions&) {
        b.tensors["attn_mask"] = numbers({5, 4, 3, 17});
      },
      kOneStart);
  add(
      "mask_of_positions", "hf",
      [](Bundle& b, LayoutOptions&) {
        b.tensors["attn_mask"] = bits({5, 1, 3, 19});
      },
      kOneStart);
  add("custom_mask", "nhd", [](Bundle& b, LayoutOptions&) { b.tensors["custom_mask"] = bits({kPairs}); });
  add("custom_mask_with_offsets", "nhd", [](Bundle& b, LayoutOptions&) {
    b.tensors["custom_mask"] = bits({kPairs});
    b.tensors["mask_indptr"] = list<std::int64_t>({0, 1, 4, 12, 17, 68});
  });
  add("packed_mask", "nhd",
      [](Bundle& b, LayoutOptions&) { b.tensors["packed_custom_mask"] = bytes(DType::u8, {kPackedBytes}); });
  add("packed_mask_with_offsets", "flashinfer", [](Bundle& b, LayoutOptions&) {
    b.tensors["packed_custom_mask"] = bytes(DType::u8, {kPackedBytes});
    b.tensors["mask_indptr"] = list({0, 1, 2, 3, 4, 11});
  });
  add("tree_shared", "nhd", [](Bundle& b, LayoutOptions&) {
    three_queries(b);
    b.tensors["tree_mask"] = bits({3, 3});
  });
  add("tree_by_sequence", "nhd", [](Bundle& b, LayoutOptions&) {
    three_queries(b);
    b.tensors["tree_mask"] = bits({5, 3, 3});
  });
  add("tree_list", "nhd", [](Bundle& b, LayoutOptions&) {
    three_queries(b);
    b.tensors["tree_mask"] = bits({45});
  });
  add("tree_bits", "nhd", [](Bundle& b, LayoutOptions&) {
    three_queries(b);
    b.tensors["tree_mask"] = bytes(DType::u8, {15});
    for (std::byte& x : b.tensors["tree_mask"].bytes) x &= std::byte{7};
  });
  add("scales_of_k_and_v", "flashinfer", [](Bundle& b, LayoutOptions&) {
    b.tensors["kv_scale"] = scales({13, 2, 4, 2});
  });
  add("scales_of_slots", "sglang", [](Bundle& b, LayoutOptions&) { b.tensors["k_scale"] = scales({52, 2}); });
  add("scales_of_blocks", "nhd", [](Bundle& b, LayoutOptions&) { b.tensors["v_scale"] = scales({13, 2}); });
  add("scales_of_positions", "dense", [](Bundle& b, LayoutOptions&) { b.tensors["k_scale"] = scales({5, 19, 2}); });
  add(
      "scales_of_sequences", "nhd",
      [](Bundle& b, LayoutOptions&) {
        b.tensors["k_descale"] = scales({5, 2});
      },
      kAmbiguous);
  add("scales_of_layers", "max", [](Bundle& b, LayoutOptions&) { b.tensors["k_scale"] = scales({13, 3, 2}); });
  add("sinks_and_slopes", "nhd", [](Bundle& b, LayoutOptions&) {
    b.tensors["sinks"] = numbers({4});
    b.tensors["alibi_slopes"] = numbers({4});
    b.tensors["sm_scale"] = scales({});
  });
  const auto fp4 = [](Bundle& b, std::vector<std::int64_t> shape, std::vector<const char*> names,
                      LayoutOptions& options) {
    for (const char* name : names) b.tensors[name] = bytes(DType::u8, shape);
    options.cache_type = CacheType{DType::e2m1};
  };
  add("four_bits", "nhd", [=](Bundle& b, LayoutOptions& o) { fp4(b, {13, 4, 2, 3}, {"k_cache", "v_cache"}, o); });
  add("four_bits_with_scales", "nhd", [=](Bundle& b, LayoutOptions& o) {
    fp4(b, {13, 4, 2, 3}, {"k_cache", "v_cache"}, o);
    b.tensors["k_block_scale"] = scales({13, 4, 2, 3});
    b.tensors["v_block_scale"] = scales({13, 4, 2, 3});
  });
  add("scales_of_other_groups", "nhd", [=](Bundle& b, LayoutOptions& o) {
    fp4(b, {13, 4, 2, 3}, {"k_cache", "v_cache"}, o);
    b.tensors["k_block_scale"] = scales({13, 4, 2, 3});
    b.tensors["v_block_scale"] = scales({13, 4, 2, 2});
  });
  add("interleaved_scales", "nhd", [=](Bundle& b, LayoutOptions& o) {
    fp4(b, {13, 4, 2, 3}, {"k_cache", "v_cache"}, o);
    b.tensors["k_block_scale"] = scales({13, 4, 2, 3});
    o.k_scale_order = ScaleOrder::interleaved;
  });
  add("four_bits_of_k_and_v", "vllm_diffkv", [=](Bundle& b, LayoutOptions& o) {
    fp4(b, {13, 4, 2, 6}, {"kv_cache"}, o);
  });
  add("offsets_of_one_pool", "trtllm", [](Bundle& b, LayoutOptions&) {
    Tensor& table = b.tensors["kv_cache_block_offsets"];
    table.shape.insert(table.shape.begin(), 1);
  });
  add("left_padding", "dense", [](Bundle& b, LayoutOptions&) {
    b.tensors["k_cache"] = numbers({5, 19, 2, 6});
    b.tensors["v_cache"] = numbers({5, 19, 2, 6});
    b.tensors["cache_leftpad"] = list({18, 2, 7, 0, 2});
  });
  add(
      "no_lengths", "dense",
      [](Bundle& b, LayoutOptions&) {
        b.tensors["k_cache"] = numbers({5, 19, 2, 6});
        b.tensors["v_cache"] = numbers({5, 19, 2, 6});
        b.tensors.erase("cache_seqlens");
      },
      kOneLength);
  add("used_tokens", "varlen", [](Bundle& b, LayoutOptions&) {
    b.tensors["seqused_k"] = list({1, 2, 3, 5, 11});
    b.tensors["query_offsets"] = list({0, 1, 2, 4, 5, 8});
  });
  add("empty_sequence", "flashinfer", [](Bundle& b, LayoutOptions&) {
    b.tensors["kv_indptr"] = list<std::uint64_t>({0, 0, 1, 2, 4, 9});
    b.tensors["kv_indices"] = list<std::uint32_t>({2, 11, 5, 0, 3, 12, 1, 9, 4});
  });
  add("windows", "mlc", [](Bundle& b, LayoutOptions&) {
    b.tensors["length_info"] = SmallBatch::ints<std::int32_t>({3, 5}, {1, 3, 4, 1, 1, 0, 1, 0, 3, 6, 0, 1, 0, 3, 2});
  });
  const auto mla = [](Bundle& b, LayoutOptions& options) {
    b.tensors.erase("q");
    b.tensors["q_nope"] = numbers({8, 4, 4});
    b.tensors["q_pe"] = numbers({8, 4, 2});
    options.scale = 0.4;
    options.value_size = 4;
  };
  add("parts_of_q", "mla", mla);
  add("parts_of_a_padded_q", "mla", [=](Bundle& b, LayoutOptions& o) {
    mla(b, o);
    b.tensors["q_nope"] = numbers({5, 3, 4, 4});
    b.tensors["q_pe"] = numbers({5, 3, 4, 2});
    b.tensors.erase("query_offsets");
    b.tensors["q_lens"] = list({1, 1, 2, 1, 3});
  });
  add("sparse", "flashmla_sparse", [](Bundle& b, LayoutOptions& options) {
    b = {};
    b.tensors["kv_cache"] = numbers({7, 2, 1, 8});
    b.tensors["q"] = numbers({4, 3, 8});
    b.tensors["indices"] = SmallBatch::ints<std::int32_t>({4, 3}, {0, 13, -1, 5, 4, 1, -1, -1, 2, 9, 13, 12});
    options.scale = 0.4;
    options.value_size = 4;
  });
  add("sparse_with_lengths", "flashmla_sparse", [](Bundle& b, LayoutOptions& options) {
    b = {};
    b.tensors["kv_cache"] = numbers({7, 2, 1, 8});
    b.tensors["q"] = numbers({2, 2, 3, 8});
    b.tensors["indices"] = SmallBatch::ints<std::int32_t>({2, 2, 3}, {0, 13, 99, 5, 4, 1, -1, -1, 2, 9, 13, 12});
    b.tensors["topk_length"] = list({2, 1, 3, 0});
    options.scale = 0.4;
    options.value_size = 4;
  });
  return all;
}

class SliceVariants : public testing::TestWithParam<Variant> {};

TEST_P(SliceVariants, RowsAndHeadsOfASliceKeepTheirBits) {
  const Variant& variant = GetParam();
  LayoutOptions options = SmallBatch::options(variant.layout);
  Bundle tensors = variant.layout == std::string("flashmla_sparse") ? Bundle{} : SmallBatch().in(variant.layout);
  variant.change(tensors, options);
  const Slicer slicer(tensors, options, "case");
  const attention::Result whole = attention::reference(prepare_problem(tensors, options, "case").problem);
  std::int64_t compared = 0;
  EXPECT_TRUE(prop::check("rows and heads of a slice keep their bits", [&] {
    ProblemSlice slice = slicer.whole();
    slice.sequences = any_part(slice.sequences);
    if (slicer.can_cut_heads()) slice.kv_heads = any_part(slice.kv_heads);
    slice.group_heads = any_part(slice.group_heads);
    slice.only_used_blocks = prop::in_range(0, 2) == 0;
    slice.only_used_columns = prop::in_range(0, 2) == 0;
    slice.only_layer = prop::in_range(0, 2) == 0;
    const bool cut_queries = slicer.can_cut_queries() && prop::in_range(0, 2) == 0;
    for (SequenceSlice& sequence : slice.sequences) {
      if (cut_queries && sequence.end_query > 0) {
        sequence.first_query = prop::in_range<std::int64_t>(0, sequence.end_query);
        sequence.end_query = prop::in_range<std::int64_t>(sequence.first_query + 1, sequence.end_query + 1);
      }
      sequence.keys = slicer.keys_of(sequence);
    }
    Bundle cut;
    PreparedProblem prepared;
    try {
      cut = slicer.cut(slice);
      prepared = prepare_problem(cut, slicer.options(slice), "slice");
    } catch (const InputError& error) {
      RC_ASSERT(!variant.rejection.empty());
      RC_ASSERT(cut_queries || variant.rejection == kAmbiguous);
      RC_ASSERT(std::string(error.what()).find(variant.rejection) != std::string::npos);
      return;
    }
    const attention::Result part = attention::reference(prepared.problem);
    const std::int64_t rows = compare_bits(slicer, slice, whole, part);
    RC_ASSERT(rows == prepared.problem.total_queries());
    compared += rows * prepared.problem.query_heads;
  }));
  EXPECT_GT(compared, 20);
}

INSTANTIATE_TEST_SUITE_P(Inputs, SliceVariants, testing::ValuesIn(variants()),
                         [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace kvscope::golden::slice_variants_test
