// Which faults a diagnosis looks for: those that can change the output of a problem. A cause that cannot be, such as heads
// exchanged where there is one, would be named for another that predicts the same.
#include "core/golden/diagnosis/hypotheses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kvscope::golden::hypotheses_test {
namespace {

using attention::PagedRows;
using attention::Problem;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsSubsetOf;
using testing::Not;
using Names = std::set<std::string>;

// Two sequences of 2 queries and 9 and 5 keys; 4 query heads, 2 KV heads of 16 elements; 6 blocks of 4 slots as [blocks, 2,
// slots, heads, dims].
struct Case {
  std::vector<std::byte> pool = std::vector<std::byte>(6 * 2 * 4 * 2 * 16 * 4), scales = pool;
  std::vector<std::byte> q = std::vector<std::byte>(4 * 4 * 16 * 4);
  std::vector<std::uint32_t> table{3, 1, 5, 0, 2, 4};
  std::vector<std::int64_t> offsets{0, 2, 4}, lengths{9, 5};
  Problem problem;
  Bundle golden, candidate;
  bool one_list = false;
  std::int64_t layers = 1, layer = 0, layer_stride = 0, scale_layer_stride = 0;

  Case() {
    problem.batch = 2;
    problem.query_heads = 4;
    problem.q = q.data();
    problem.query_offsets = offsets;
    problem.key_lengths = lengths;
    problem.k = {.data = pool.data(),
                 .blocks = 6,
                 .page_size = 4,
                 .heads = 2,
                 .head_size = 16,
                 .block_stride = 2 * 4 * 2 * 16,
                 .token_stride = 2 * 16,
                 .head_stride = 16,
                 .table = table.data(),
                 .table_stride = 3};
    problem.v = problem.k;
    problem.v.data += std::ptrdiff_t{4 * 2 * 16 * 4};
  }

  // [blocks, 2, slots, heads, dims], packed.
  void set_kv_heads(std::int64_t heads) {
    for (PagedRows* rows : {&problem.k, &problem.v}) {
      rows->heads = heads;
      rows->token_stride = heads * 16;
      rows->block_stride = 2 * 4 * heads * 16;
    }
    problem.v.data = problem.k.data + std::ptrdiff_t{4 * heads * 16 * 4};
  }
  // "name: cause" of each hypothesis.
  [[nodiscard]] std::vector<std::string> causes() {
    const auto rows = problem.total_queries();
    golden.tensors["o"] = make_tensor(DType::f64, {rows, problem.query_heads, problem.v.head_size});
    DiagnosisInput input{problem, golden, candidate, {}};
    input.one_list = one_list;
    input.layers = layers;
    input.layer = layer;
    input.layer_stride = layer_stride;
    input.scale_layer_stride = scale_layer_stride;
    std::vector<std::string> all;
    for (const Trial& trial : hypotheses(input)) all.push_back(trial.name + ": " + trial.cause);
    return all;
  }
  void give_scales(PagedRows& rows, std::int64_t granularity) {
    rows.scales = scales.data();
    rows.granularity = granularity;
    const std::int64_t of_head = (16 + granularity - 1) / granularity;
    rows.scale_head_stride = of_head;
    rows.scale_token_stride = 2 * of_head;
    rows.scale_block_stride = 8 * of_head;
  }
};

std::vector<std::string> causes_after(const std::function<void(Case&)>& change) {
  Case c;
  change(c);
  return c.causes();
}

Names names_of(const std::vector<std::string>& causes) {
  Names names;
  for (const std::string& cause : causes) names.insert(cause.substr(0, cause.find(": ")));
  return names;
}

// The names that the plain case has, and the changed one has not; none is new.
Names lost_by(const std::function<void(Case&)>& change) {
  const Names before = names_of(causes_after([](Case&) {})), after = names_of(causes_after(change));
  EXPECT_THAT(after, IsSubsetOf(before));
  Names lost;
  std::ranges::set_difference(before, after, std::inserter(lost, lost.end()));
  return lost;
}
Names added_by(const std::function<void(Case&)>& change) {
  const Names before = names_of(causes_after([](Case&) {})), after = names_of(causes_after(change));
  Names added;
  std::ranges::set_difference(after, before, std::inserter(added, added.end()));
  return added;
}

// --- extents of 1 ------------------------------------------------------------------------------------------------------

TEST(Hypotheses, OfOneQueryHeadConfuseNoHeads) {
  EXPECT_EQ(lost_by([](Case& c) {
              c.problem.query_heads = 1;
              c.set_kv_heads(1);
            }),
            (Names{"head_and_slot_axes", "k_head_map", "kv_head_map", "lse_axes", "output_axes", "query_axes",
                   "query_head_zero", "v_head_map"}));
}

TEST(Hypotheses, OfOneKvHeadConfuseNoKvHeads) {
  const auto one = [](Case& c) { c.set_kv_heads(1); };
  EXPECT_EQ(lost_by(one), (Names{"head_and_slot_axes", "k_head_map", "kv_head_map", "v_head_map"}));
  EXPECT_THAT(causes_after(one), Not(Contains(HasSubstr("head axis"))));
}

// Without groups, h % KV heads is h, and so is h / group.
TEST(Hypotheses, OfAsManyQueryHeadsAsKvHeadsHaveNoGroups) {
  const std::string modulo = "KV head h % KV heads instead of h / group";
  EXPECT_THAT(causes_after([](Case&) {}), Contains(HasSubstr("V is read from " + modulo)));
  EXPECT_THAT(causes_after([](Case&) {}), Contains(HasSubstr("K is read from " + modulo)));
  EXPECT_THAT(causes_after([](Case& c) { c.problem.query_heads = 2; }), Not(Contains(HasSubstr(modulo))));
}

TEST(Hypotheses, OfOneQueryConfuseNoRows) {
  const auto one = [](Case& c) {
    c.problem.batch = 1;
    c.offsets = {0, 1};
    c.lengths = {9};
    c.problem.query_offsets = c.offsets;
    c.problem.key_lengths = c.lengths;
  };
  EXPECT_EQ(lost_by(one), (Names{"lse_axes", "query_axes", "query_row_of_sequence", "query_row_shifted", "table_axes",
                                 "table_row", "table_rows_exchanged", "table_stride"}));
  EXPECT_THAT(causes_after(one), Contains("output_axes: o is stored as [query, dim, head]"));
  EXPECT_THAT(causes_after(one), Not(Contains("output_axes: o is stored as [head, query, dim]")));
}

// An axis for the batch needs as many queries in each sequence, and more than one.
TEST(Hypotheses, OfSequencesWithAsManyQueriesHaveABatchAxis) {
  const std::string axes = "output_axes: o is stored as [batch, head, query, dim]";
  const std::string lse = "lse_axes: lse is stored as [batch, head, query]";
  const auto of = [](std::vector<std::int64_t> offsets) {
    return causes_after([&](Case& c) {
      c.offsets = std::move(offsets);
      c.problem.query_offsets = c.offsets;
    });
  };
  EXPECT_THAT(of({0, 2, 4}), Contains(axes));
  EXPECT_THAT(of({0, 2, 4}), Contains(lse));
  for (const std::vector<std::int64_t>& offsets : {std::vector<std::int64_t>{0, 1, 2}, {0, 1, 3}}) {
    EXPECT_THAT(of(offsets), Not(Contains(axes)));
    EXPECT_THAT(of(offsets), Not(Contains(lse)));
  }
}

// Rows of one list follow each other: they have no stride, and no second axis.
TEST(Hypotheses, OfOneListHaveNoStrideOfTheTable) {
  EXPECT_EQ(lost_by([](Case& c) { c.one_list = true; }), (Names{"integers_of_64_bits", "table_axes", "table_stride"}));
}

// The first of the lengths is read correctly.
TEST(Hypotheses, OfOneSequenceHaveNoLengthsOf64Bits) {
  const std::string lengths = "lengths of 64 bits", table = "entries of the lookup table of 64 bits";
  EXPECT_THAT(causes_after([](Case&) {}), AllOf(Contains(HasSubstr(lengths)), Contains(HasSubstr(table))));
  const std::vector<std::string> one = causes_after([](Case& c) { c.problem.batch = 1; });
  EXPECT_THAT(one, AllOf(Not(Contains(HasSubstr(lengths))), Contains(HasSubstr(table))));
}

TEST(Hypotheses, OfOneSlotConfuseNoSlots) {
  const auto one = [](Case& c) {
    for (PagedRows* rows : {&c.problem.k, &c.problem.v}) {
      rows->page_size = 1;
      rows->token_stride = 32;
      rows->block_stride = 2 * 32;
    }
    c.problem.v.data = c.problem.k.data + std::ptrdiff_t{32 * 4};
    c.lengths = {3, 3};
    c.problem.key_lengths = c.lengths;
  };
  const Names lost = names_of(causes_after(one));
  for (const char* name : {"block_as_row", "head_and_slot_axes", "last_page_of_zeros", "slot_off_by_one"}) {
    EXPECT_THAT(lost, Not(Contains(name)));
  }
  EXPECT_THAT(causes_after(one), Not(Contains(HasSubstr("slot axis"))));
  EXPECT_THAT(causes_after(one), Not(Contains(HasSubstr("page_size: the page size is taken to be 1 "))));
  EXPECT_THAT(causes_after([](Case&) {}),
              Contains(HasSubstr("page_size: the page size is taken to be 1 instead of 4")));
}

TEST(Hypotheses, OfOneBlockHaveNoOrderOfTheKvAxis) {
  EXPECT_THAT(names_of(causes_after([](Case&) {})), Contains("kv_axis"));
  const auto blocks = [](std::int64_t count) {
    return [=](Case& c) { c.problem.k.blocks = c.problem.v.blocks = count; };
  };
  EXPECT_THAT(names_of(causes_after(blocks(1))), Not(Contains("kv_axis")));
  // With 2 blocks, an exchange of the two axes is the other order: it is named once.
  const std::string exchange =
      "strides_exchanged: the strides of the block axis and of the K/V axis of the cache are exchanged";
  EXPECT_THAT(causes_after(blocks(3)), Contains(exchange));
  EXPECT_THAT(causes_after(blocks(2)), Not(Contains(exchange)));
  EXPECT_THAT(names_of(causes_after(blocks(2))), Contains("kv_axis"));
}

// --- K and V that differ -----------------------------------------------------------------------------------------------

TEST(Hypotheses, OfKAndVWithOtherHeadSizesExchangeNeither) {
  EXPECT_EQ(lost_by([](Case& c) { c.problem.v.head_size = 8; }),
            (Names{"k_and_v_exchanged", "k_is_v", "kv_axis", "v_is_k", "v_offset"}));
}

TEST(Hypotheses, OfKAndVWithOtherTypesOrStridesHaveNoCommonStrides) {
  const auto typed = [](Case& c) {
    c.problem.k.dtype = DType::f16;
    c.problem.v.dtype = DType::bf16;
  };
  const Names of_types = names_of(causes_after(typed));
  EXPECT_THAT(of_types, Not(Contains("strides_exchanged")));
  EXPECT_THAT(of_types, Not(Contains("v_offset")));
  EXPECT_THAT(of_types, Contains("k_and_v_exchanged"));
  for (std::int64_t PagedRows::*stride :
       {&PagedRows::block_stride, &PagedRows::token_stride, &PagedRows::head_stride}) {
    const Names names = names_of(causes_after([&](Case& c) { c.problem.v.*stride += 16; }));
    EXPECT_THAT(names, Not(Contains("strides_exchanged")));
    EXPECT_THAT(names, Contains("v_offset"));
  }
}

// As many heads as slots: an exchange of their strides is the other order of these axes.
TEST(Hypotheses, OfAsManyHeadsAsSlotsNameTheOtherOrderOnce) {
  const std::string exchange = "the strides of the slot axis and of the head axis of the cache are exchanged";
  EXPECT_THAT(causes_after([](Case&) {}), Contains(HasSubstr(exchange)));
  EXPECT_THAT(causes_after([](Case& c) { c.set_kv_heads(4); }), Not(Contains(HasSubstr(exchange))));
}

// In one tensor [2, blocks, ...] V follows all of K; in two tensors it is where it happens to be allocated.
TEST(Hypotheses, OfTheKvAxisNameTheOrderThatTheCacheHasNot) {
  const auto apart = [](std::ptrdiff_t elements) {
    return [=](Case& c) {
      c.problem.k.block_stride = c.problem.v.block_stride = 4 * 2 * 16;
      c.problem.v.data = c.problem.k.data + elements * 4;
    };
  };
  EXPECT_THAT(causes_after([](Case&) {}),
              Contains("kv_axis: the cache is read as [2, blocks, ...] instead of [blocks, 2, ...]"));
  EXPECT_THAT(causes_after(apart(6 * 4 * 2 * 16)),
              Contains("kv_axis: the cache is read as [blocks, 2, ...] instead of [2, blocks, ...]"));
  const std::vector<std::string> two_tensors = causes_after(apart(7 * 4 * 2 * 16));
  EXPECT_THAT(two_tensors, Not(Contains(HasSubstr("kv_axis: "))));
  EXPECT_THAT(two_tensors, Not(Contains(HasSubstr("elements after K instead of"))));
  EXPECT_THAT(two_tensors, Contains("v_offset: V is read where K of the next block is stored"));
}

TEST(Hypotheses, OfAnOddHeadSizeHaveNoHalves) {
  EXPECT_EQ(lost_by([](Case& c) { c.problem.k.head_size = 15; }),
            (Names{"k_and_v_exchanged", "k_dims_order", "k_is_v", "kv_axis", "v_is_k", "v_offset"}));
  EXPECT_EQ(lost_by([](Case& c) { c.problem.k.head_size = c.problem.v.head_size = 15; }),
            (Names{"k_dims_order", "kv_axis", "squares_transposed", "swizzle", "v_dims_order"}));
}

// --- types, scales, layers, MLA ----------------------------------------------------------------------------------------

TEST(Hypotheses, OfNarrowTypesNameTheOtherTypeOfTheirSize) {
  const auto formats = [](DType dtype) {
    std::vector<std::string> found;
    for (const std::string& cause : causes_after([&](Case& c) { c.problem.k.dtype = c.problem.v.dtype = dtype; })) {
      if (cause.starts_with("fp8_")) found.push_back(cause.substr(0, cause.find(" instead")));
    }
    return found;
  };
  using testing::ElementsAre;
  EXPECT_THAT(formats(DType::f32), ElementsAre());
  EXPECT_THAT(formats(DType::f16), ElementsAre("fp8_format: the cache is decoded as bf16"));
  EXPECT_THAT(formats(DType::bf16), ElementsAre("fp8_format: the cache is decoded as f16"));
  EXPECT_THAT(formats(DType::e4m3),
              ElementsAre("fp8_format: the cache is decoded as e5m2",
                          "fp8_fnuz: the cache is decoded as e4m3fnuz: values are half of e4m3's, and -0 is NaN"));
  EXPECT_THAT(formats(DType::e5m2),
              ElementsAre("fp8_format: the cache is decoded as e4m3",
                          "fp8_fnuz: the cache is decoded as e5m2fnuz: values are half of e5m2's, and -0 is NaN"));
}

TEST(Hypotheses, OfScalesThatOneSideHasConcernThisSide) {
  EXPECT_EQ(added_by([](Case& c) { c.give_scales(c.problem.k, 16); }), Names{"k_scales_missing"});
  EXPECT_EQ(added_by([](Case& c) { c.give_scales(c.problem.v, 16); }), Names{"v_scales_missing"});
  EXPECT_EQ(added_by([](Case& c) {
              c.give_scales(c.problem.k, 16);
              c.give_scales(c.problem.v, 16);
              c.problem.v.scales += 64;
            }),
            (Names{"k_and_v_scales_exchanged", "k_scales_missing", "k_scales_of_v", "scale_granularity",
                   "scale_of_other_head", "scales_missing", "v_scales_missing", "v_scales_of_k"}));
}

// The index of a scale can be another head's only where scales differ by head.
TEST(Hypotheses, OfScalesOfHeadsNameTheIndicesThatDiffer) {
  const auto of_heads = [](const std::function<void(Case&)>& change) {
    std::vector<std::string> found;
    for (const std::string& cause : causes_after([&](Case& c) {
           c.give_scales(c.problem.k, 16);
           c.give_scales(c.problem.v, 16);
           change(c);
         })) {
      if (cause.starts_with("scale_of_other_head: ")) found.push_back(cause.substr(21));
    }
    return found;
  };
  const std::string of_group = "h % KV heads instead of h / group", of_sequence = "b % KV heads for sequence b";
  EXPECT_THAT(of_heads([](Case&) {}),
              testing::UnorderedElementsAre("the scales are those of KV head " + of_group,
                                            "the scales of K are those of KV head " + of_group,
                                            "the scales of V are those of KV head " + of_group,
                                            HasSubstr("the scales are those of KV head " + of_sequence),
                                            HasSubstr("the scales of K are those of KV head " + of_sequence),
                                            HasSubstr("the scales of V are those of KV head " + of_sequence)));
  EXPECT_THAT(of_heads([](Case& c) { c.problem.query_heads = 2; }), Not(Contains(HasSubstr(of_group))));
  EXPECT_THAT(of_heads([](Case& c) { c.problem.batch = 1; }), Not(Contains(HasSubstr(of_sequence))));
  EXPECT_THAT(of_heads([](Case& c) { c.problem.k.scale_head_stride = c.problem.v.scale_head_stride = 0; }),
              testing::IsEmpty());
}

// A row of 64 bytes has the 64-byte swizzle at most, whose XOR has two bits of the row.
TEST(Hypotheses, OfSwizzlesNameOtherBitsOfTheWidestOne) {
  const auto wide = causes_after([](Case& c) { c.problem.k.head_size = c.problem.v.head_size = 32; });
  EXPECT_THAT(wide, Contains(HasSubstr("chunk ^ (row & 3) instead of chunk ^ (row & 7), where the 128-byte swizzle")));
  EXPECT_THAT(wide, Contains(HasSubstr("begins 896 bytes after a multiple of 1024")));
  EXPECT_THAT(wide, Not(Contains(HasSubstr("instead of chunk ^ (row >> 1 & 3)"))));
  const auto narrow = causes_after([](Case&) {});
  EXPECT_THAT(narrow, Contains(HasSubstr("chunk ^ (row & 3) instead of chunk ^ (row >> 1 & 3), where the 64-byte")));
  EXPECT_THAT(narrow, Contains(HasSubstr("begins 384 bytes after a multiple of 512")));
  EXPECT_THAT(narrow, Not(Contains(HasSubstr("begins 512 bytes"))));
}

// With a sink it is not known which lanes add it.
TEST(Hypotheses, OfLaneSumsNeedNoSinks) {
  const std::vector<double> sinks(4);
  EXPECT_THAT(names_of(causes_after([](Case&) {})), Contains("lane_sums"));
  EXPECT_THAT(names_of(causes_after([&](Case& c) { c.problem.options.sinks = sinks; })), Not(Contains("lane_sums")));
}

// An axis that the scales do not have cannot be confused, and neither can vectors that the scales' groups hold whole.
TEST(Hypotheses, OfScalesConcernTheAxesThatTheyHave) {
  const auto granularities = [](std::int64_t granularity, const std::function<void(PagedRows&)>& change = {}) {
    std::vector<std::string> found;
    for (const std::string& cause : causes_after([&](Case& c) {
           for (PagedRows* rows : {&c.problem.k, &c.problem.v}) {
             c.give_scales(*rows, granularity);
             if (change) change(*rows);
           }
         })) {
      if (cause.starts_with("scale_granularity: ")) found.push_back(cause.substr(19));
    }
    return found;
  };
  const std::string heads = "the scales of head 0 are used for every head",
                    tokens = "the scales of a block's first token are used for all its tokens",
                    blocks = "the scales of block 0 are used for every block",
                    of_8 = "8 elements are multiplied by the scale of the first of them",
                    of_16 = "16 elements are multiplied by the scale of the first of them";
  for (const std::string& cause : {heads, tokens, blocks}) EXPECT_THAT(granularities(16), Contains(cause));
  EXPECT_THAT(granularities(16, [](PagedRows& rows) { rows.scale_head_stride = 0; }), Not(Contains(heads)));
  EXPECT_THAT(granularities(16, [](PagedRows& rows) { rows.scale_token_stride = 0; }), Not(Contains(tokens)));
  EXPECT_THAT(granularities(16, [](PagedRows& rows) { rows.scale_block_stride = 0; }), Not(Contains(blocks)));
  EXPECT_THAT(granularities(4), testing::IsSupersetOf({of_8, of_16}));
  EXPECT_THAT(granularities(8), Not(Contains(of_8)));
  EXPECT_THAT(granularities(8), Contains(of_16));
  EXPECT_THAT(granularities(16), Not(Contains(of_16)));
}

TEST(Hypotheses, OfLayersNameEachOther) {
  const auto layers = [](std::int64_t scale_stride) {
    std::vector<std::string> found;
    for (const std::string& cause : causes_after([&](Case& c) {
           c.layers = 3;
           c.layer = 1;
           c.layer_stride = 128;
           c.scale_layer_stride = scale_stride;
         })) {
      if (cause.starts_with("layer: ")) found.push_back(cause.substr(7));
    }
    return found;
  };
  using testing::ElementsAre;
  const std::string zero = "layer 0 is read instead of layer 1", two = "layer 2 is read instead of layer 1";
  EXPECT_THAT(layers(0), ElementsAre(zero, two));
  EXPECT_THAT(layers(8), ElementsAre(zero, zero + ", with the scales of the correct layer", two,
                                     two + ", with the scales of the correct layer"));
}

// MLA stores V as the first part of K's rows: no offset between them, but a rope part behind.
TEST(Hypotheses, OfMlaConcernTheRopePart) {
  const auto shared = [](std::int64_t latent) {
    return [=](Case& c) {
      c.problem.v = c.problem.k;
      c.problem.v.head_size = latent;
    };
  };
  const Names rope{"rope_part_first", "rope_part_missing", "v_behind_rope"};
  EXPECT_EQ(added_by(shared(12)), rope);
  EXPECT_EQ(added_by(shared(16)), Names{});
  for (const char* name : {"k_and_v_exchanged", "k_is_v", "kv_axis", "v_is_k", "v_offset"}) {
    EXPECT_THAT(names_of(causes_after(shared(12))), Not(Contains(name)));
  }
  EXPECT_THAT(causes_after(shared(12)),
              Contains("v_behind_rope: V is the last 12 elements of a row instead of the first 12"));
  const auto scaled = [&](Case& c) {
    shared(12)(c);
    c.give_scales(c.problem.k, 16);
    c.give_scales(c.problem.v, 16);
  };
  EXPECT_THAT(names_of(causes_after(scaled)), Not(Contains("k_and_v_scales_exchanged")));
}

// --- masks -------------------------------------------------------------------------------------------------------------

// A limit that a window has not cannot be off by one, and one of 0 has no smaller one.
TEST(Hypotheses, OfAWindowMoveTheLimitsThatItHas) {
  const auto windows = [](std::int64_t left, std::int64_t right) {
    std::vector<std::string> found;
    for (const std::string& cause : causes_after([&](Case& c) {
           c.problem.options.mask = MaskKind::sliding_window;
           c.problem.options.window_left = left;
           c.problem.options.window_right = right;
         })) {
      if (cause.starts_with("window_off_by_one: ")) found.push_back(cause.substr(33, cause.find(" instead") - 33));
    }
    return found;
  };
  using testing::ElementsAre;
  EXPECT_THAT(windows(3, 2), ElementsAre("(4, 2)", "(2, 2)", "(3, 3)", "(3, 1)", "(4, 3)", "(2, 1)"));
  EXPECT_THAT(windows(0, 2), ElementsAre("(1, 2)", "(0, 3)", "(0, 1)", "(1, 3)"));
  EXPECT_THAT(windows(3, 0), ElementsAre("(4, 0)", "(2, 0)", "(3, 1)", "(4, 1)"));
  EXPECT_THAT(windows(-1, 2), ElementsAre("(-1, 3)", "(-1, 1)"));
  EXPECT_THAT(windows(3, -1), ElementsAre("(4, -1)", "(2, -1)"));
}

// The cause names the alignment that the golden does not have.
TEST(Hypotheses, OfACausalMaskNameTheOtherAlignment) {
  const auto alignment = [](CausalAlignment own) {
    return causes_after([&](Case& c) { c.problem.options.alignment = own; });
  };
  EXPECT_THAT(alignment(CausalAlignment::bottom_right),
              Contains("causal_alignment: the causal mask starts at the top left instead of the bottom right"));
  EXPECT_THAT(alignment(CausalAlignment::top_left),
              Contains("causal_alignment: the causal mask starts at the bottom right instead of the top left"));
}

}  // namespace
}  // namespace kvscope::golden::hypotheses_test
