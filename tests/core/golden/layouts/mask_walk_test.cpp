// Where each form of mask has its values, and the faults of its shape, type, offsets and values.
#include "core/golden/layouts/detail/mask_walk.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/golden/layouts/layouts.h"
#include "tests/core/golden/layouts/layout_cases.h"

namespace kvscope::golden::mask_walk_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Sequences of 2 queries of 5 keys and 3 queries of 4 keys, as in the example of mask_walk.h.
MaskBatch two() {
  MaskBatch batch;
  batch.queries = {2, 3};
  batch.keys = {5, 4};
  batch.query_heads = 4;
  batch.capacity = 8;
  return batch;
}

std::vector<std::string> faults(std::string_view name, const Tensor& mask, const MaskBatch& batch,
                                const std::optional<std::vector<std::int64_t>>& offsets = std::nullopt) {
  std::optional<MaskOffsets> given;
  if (offsets) given = MaskOffsets{"mask_indptr", *offsets};
  std::vector<std::string> found;
  for (const MaskFault& fault : read_mask_walk(name, std::string(name), mask, given, batch).faults) {
    found.push_back(fmt::format("{} {} {}", fault.rule, fault.object, fault.message()));
  }
  return found;
}

Tensor of(DType dtype, std::vector<std::int64_t> shape) {
  return make_tensor(dtype, std::move(shape));
}

// Every number of a list is that of one query and key: each place is used once, in order.
TEST(MaskWalk, ListsHaveTheSequencesOneAfterTheOther) {
  const MaskBatch batch = two();
  const MaskWalk custom = read_mask_walk("custom_mask", "m", of(DType::u8, {22}), std::nullopt, batch).walk;
  EXPECT_EQ(custom.at(0, 3, 1, 4), 9);
  EXPECT_EQ(custom.at(1, 0, 0, 0), 10);
  EXPECT_EQ(custom.at(1, 0, 2, 3), 21);
  const MaskWalk packed = read_mask_walk("packed_custom_mask", "m", of(DType::u8, {4}), std::nullopt, batch).walk;
  EXPECT_TRUE(packed.bits);
  EXPECT_EQ(packed.at(0, 0, 1, 4), 9);
  EXPECT_EQ(packed.at(1, 0, 1, 3), 23);  // the example of mask_walk.h
  EXPECT_EQ(packed.end, 32);
}

TEST(MaskWalk, ListsOfAnotherSizeNameTheSizeThatTheyNeed) {
  const MaskBatch batch = two();
  EXPECT_THAT(
      faults("custom_mask", of(DType::u8, {23}), batch),
      ElementsAre("shape custom_mask has shape [23], but the queries and keys of all sequences need [22]: cut it, or "
                  "save mask_indptr [B + 1] with the first value of each sequence"));
  EXPECT_THAT(
      faults("custom_mask", of(DType::u8, {21}), batch),
      ElementsAre("shape custom_mask has shape [21], but the queries and keys of all sequences need [22]: save a "
                  "value for each query and key"));
  EXPECT_THAT(
      faults("packed_custom_mask", of(DType::u8, {3}), batch),
      ElementsAre("shape packed_custom_mask has shape [3], but the queries and keys of all sequences need [4]: each "
                  "sequence has 1 bit for each query and key, and starts at a byte"));
  EXPECT_THAT(faults("custom_mask", of(DType::u8, {2, 11}), batch),
              ElementsAre("shape custom_mask has shape [2, 11]; allowed: [sum of queries * keys]; a mask with axes for "
                          "queries and keys is attn_mask"));
  EXPECT_THAT(
      faults("packed_custom_mask", of(DType::u8, {2, 2}), batch),
      ElementsAre("shape packed_custom_mask has shape [2, 2]; allowed: [sum of the bytes of all sequences]; a mask "
                  "with axes for queries and keys is attn_mask"));
  MaskBatch one;
  one.queries = {2};
  one.keys = {5};
  EXPECT_THAT(faults("custom_mask", of(DType::u8, {2, 5}), one), IsEmpty());  // of one sequence
}

// Counts of a file can be as large as 2^40: their product fits no tensor, and no 64 bits.
TEST(MaskWalk, HugeCountsFitNoMask) {
  MaskBatch batch;
  batch.queries = {std::int64_t{1} << 40, 0};
  batch.keys = {std::int64_t{1} << 40, 7};
  EXPECT_THAT(
      faults("custom_mask", of(DType::u8, {8}), batch),
      ElementsAre("shape custom_mask has shape [8], but the queries and keys of all sequences need [1099511627776]: "
                  "save a value for each query and key"));
  batch.queries = {1};
  batch.keys = {0};
  EXPECT_THAT(faults("custom_mask", of(DType::u8, {0}), batch), IsEmpty());
}

TEST(MaskWalk, TypesOfBitsAndValues) {
  const MaskBatch batch = two();
  EXPECT_THAT(faults("packed_custom_mask", of(DType::i32, {4}), batch),
              ElementsAre("type packed_custom_mask is i32; allowed: u8; packed bits are u8, lowest bit first"));
  for (const char* name : {"custom_mask", "tree_mask", "attn_mask"}) {
    EXPECT_THAT(
        faults(name, of(DType::e8m0, {22}), batch),
        ElementsAre(fmt::format("type {} is e8m0; allowed: bool or another integer, or a float of at least 8 bits; "
                                "save the mask in one of these types",
                                name)));
    EXPECT_THAT(faults(name, Tensor{DType::e2m1, {22}, {}}, batch),
                ElementsAre(testing::StartsWith(fmt::format("type {} is e2m1; allowed: ", name))));
  }
}

TEST(MaskWalk, OffsetsPlaceEachSequence) {
  const MaskBatch batch = two();
  const auto custom = [&](std::vector<std::int64_t> offsets) {
    return faults("custom_mask", of(DType::u8, {22}), batch, std::move(offsets));
  };
  const auto packed = [&](std::vector<std::int64_t> offsets) {
    return faults("packed_custom_mask", of(DType::u8, {4}), batch, std::move(offsets));
  };
  EXPECT_THAT(custom({0, 10, 22}), IsEmpty());
  EXPECT_THAT(packed({0, 2, 4}), IsEmpty());
  EXPECT_THAT(custom({0, 22}),
              ElementsAre("shape mask_indptr has 2 entries; allowed: 3; one offset per sequence, and the end"));
  EXPECT_THAT(
      custom({1, 11, 23}),
      ElementsAre("indptr mask_indptr[0] is 1; allowed: 0; the mask of sequence 0 starts the tensor",
                  "indptr mask_indptr[2] is 23; allowed: [0, 22], the values of custom_mask; the kernel would read "
                  "past the mask"));
  EXPECT_THAT(
      custom({0, 12, 22}),
      ElementsAre("indptr mask_indptr[1] gives sequence 0 12 values, but 2 queries of 5 keys need 10; allowed: 10; "
                  "the lengths and the mask belong to different batches",
                  "indptr mask_indptr[2] gives sequence 1 10 values, but 3 queries of 4 keys need 12; allowed: 24; "
                  "the lengths and the mask belong to different batches"));
  EXPECT_THAT(custom({0, 10, 9}),
              ElementsAre("indptr mask_indptr[2] is 9 after 10; allowed: at least 10; offsets are running sums, and a "
                          "sequence cannot have a negative size"));
  EXPECT_THAT(custom({-1, 10, 22}),  // an offset outside the mask is reported once
              ElementsAre("indptr mask_indptr[0] is -1; allowed: 0; the mask of sequence 0 starts the tensor"));
  EXPECT_THAT(
      packed({0, 3, 5}),
      ElementsAre("indptr mask_indptr[1] gives sequence 0 3 bytes, but 2 queries of 5 keys need 2; allowed: 2; "
                  "offsets count bytes, and each sequence starts at a byte",
                  "indptr mask_indptr[2] is 5; allowed: [0, 4], the bytes of packed_custom_mask; the kernel would "
                  "read past the mask"));
  EXPECT_THAT(
      packed({0, 10, 22}),  // offsets of the mask before it was packed
      ElementsAre("indptr mask_indptr[2] is 22; allowed: [0, 4], the bytes of packed_custom_mask; these offsets "
                  "count bits: offsets of a packed mask count bytes, as segment_packbits returns them"));
  EXPECT_THAT(packed({1, 3, 5}), testing::Contains(testing::HasSubstr("mask_indptr[0] is 1; allowed: 0")));
  for (const auto& [name, shape] :
       {std::pair<std::string, std::vector<std::int64_t>>{"attn_mask", {2, 3, 5}}, {"tree_mask", {13}}}) {
    EXPECT_THAT(faults(name, of(DType::u8, shape), batch, std::vector<std::int64_t>{0, 10, 22}),
                ElementsAre(fmt::format("shape mask_indptr has no effect with {}, whose axes show its sequences: pass "
                                        "--ignore mask_indptr",
                                        name)));
  }
}

// --- trees ------------------------------------------------------------------------------------------------------------

MaskBatch trees() {
  MaskBatch batch;
  batch.queries = {3, 3};
  batch.keys = {5, 4};
  batch.query_heads = 4;
  return batch;
}

TEST(MaskTrees, SeeTheKeysBeforeTheirNodes) {
  const MaskReading shared = read_mask_walk("tree_mask", "m", of(DType::u8, {3, 3}), std::nullopt, trees());
  EXPECT_EQ(shared.walk.at(1, 0, 2, 3), 8);  // node 2 is key 3 of sequence 1, and key 4 of sequence 0
  EXPECT_EQ(shared.walk.at(0, 0, 2, 4), 8);
  EXPECT_FALSE(shared.walk.by_sequence);
  const MaskReading own = read_mask_walk("tree_mask", "m", of(DType::u8, {2, 3, 3}), std::nullopt, trees());
  EXPECT_EQ(own.walk.at(1, 0, 2, 3), 17);
  const Tensor none = of(DType::u8, {2, 3, 3});
  const MaskValues values(none, own.walk);
  EXPECT_TRUE(values.sees(1, 0, 0, 0));   // before the nodes
  EXPECT_FALSE(values.sees(1, 0, 0, 1));  // node 0
  EXPECT_EQ(values.place(17), "[1, 2, 2]");
}

TEST(MaskTrees, OfOtherShapesNameTheShapesThatTheyHave) {
  const auto wrong = [](const std::string& shape) {
    return ElementsAre(
        "shape tree_mask has shape " + shape +
        "; allowed: [S, S], [2, S, S], bits as [2, S, W] of at least 16 each, or one list of all sequences; S "
        "is the number of queries of a sequence; a mask of all keys is attn_mask [B, Sq, Sk], or one list");
  };
  EXPECT_THAT(faults("tree_mask", of(DType::u8, {3, 4}), trees()), wrong("[3, 4]"));
  EXPECT_THAT(faults("tree_mask", of(DType::u8, {3, 3, 3}), trees()), wrong("[3, 3, 3]"));
  EXPECT_THAT(faults("tree_mask", of(DType::u8, {1, 2, 3, 3}), trees()), wrong("[1, 2, 3, 3]"));
  EXPECT_THAT(faults("tree_mask", of(DType::u8, {2, 3, 1}), trees()), wrong("[2, 3, 1]"));     // words of 8 bits
  EXPECT_THAT(faults("tree_mask", of(DType::f32, {2, 3, 1}), trees()), wrong("[2, 3, 1]"));    // no bits
  EXPECT_THAT(faults("tree_mask", of(DType::i16, {2, 17, 1}), trees()), wrong("[2, 17, 1]"));  // 16 bits are too few
  EXPECT_THAT(faults("tree_mask", of(DType::i16, {2, 3, 1}), trees()), IsEmpty());
  EXPECT_THAT(
      faults("tree_mask", of(DType::u8, {4, 4}), trees()),
      ElementsAre("shape tree_mask is for 4 queries, but sequence 0 has 3 queries and 5 keys: the nodes of a tree are "
                  "the queries, and the last keys, of their sequence",
                  "shape tree_mask is for 4 queries, but sequence 1 has 3 queries and 4 keys: the nodes of a tree are "
                  "the queries, and the last keys, of their sequence"));
  MaskBatch few = trees();
  few.keys = {5, 2};  // fewer keys than nodes
  EXPECT_THAT(
      faults("tree_mask", of(DType::u8, {3, 3}), few),
      ElementsAre(testing::StartsWith("shape tree_mask is for 3 queries, but sequence 1 has 3 queries and 2 keys")));
}

TEST(MaskTrees, AsAListAreOfAllKeysOfQueriesOrOfBits) {
  MaskBatch batch = two();  // 22 values of all keys, 13 of the queries, 5 words of bits
  EXPECT_EQ(read_mask_walk("tree_mask", "m", of(DType::u8, {22}), std::nullopt, batch).walk.form, MaskForm::custom);
  EXPECT_EQ(read_mask_walk("tree_mask", "m", of(DType::u8, {13}), std::nullopt, batch).walk.form, MaskForm::tree);
  EXPECT_EQ(read_mask_walk("tree_mask", "m", of(DType::u8, {5}), std::nullopt, batch).walk.form, MaskForm::packed_tree);
  const auto wrong = [](const std::string& is) {
    return ElementsAre(
        "shape tree_mask is " + is +
        "; allowed: [22] for all keys, [13] for queries only, or [5] integers of at least 3 bits; the lengths "
        "count this step's tokens: the queries are the last keys");
  };
  EXPECT_THAT(faults("tree_mask", of(DType::u8, {12}), batch), wrong("u8 [12]"));
  EXPECT_THAT(faults("tree_mask", of(DType::f32, {5}), batch), wrong("f32 [5]"));  // floats are no bits
  batch.queries = {2, 9};
  batch.keys = {5, 9};
  EXPECT_THAT(faults("tree_mask", of(DType::u8, {11}), batch),  // 9 nodes in 8 bits
              ElementsAre(testing::HasSubstr("or [11] integers of at least 9 bits")));
  batch = two();
  batch.keys = {5, 2};
  EXPECT_THAT(
      faults("tree_mask", of(DType::u8, {13}), batch),
      ElementsAre("shape tree_mask has 3 queries of sequence 1, which has 2 keys: the nodes of a tree are the last "
                  "keys of their sequence"));
}

TEST(MaskTrees, OfBitsHaveNoneAfterTheirNodes) {
  Tensor bits = of(DType::i16, {2, 3, 2});
  const MaskReading reading = read_mask_walk("tree_mask", "m", bits, std::nullopt, trees());
  ASSERT_THAT(reading.faults, IsEmpty());
  values<std::int16_t>(bits)[5] = 1 << 4;  // row 2 of sequence 0, second word: bit 20 of its 32
  const MaskValueFaults wrong = check_mask_values("m", bits, reading.walk, trees());
  ASSERT_EQ(wrong.first.size(), 1U);
  EXPECT_EQ(wrong.first[0].object, "m[0, 2, 1] bit 4");
  EXPECT_EQ(
      wrong.first[0].message(),
      "is 1 in the row of query 2 of sequence 0, whose tree has 3 nodes; allowed: bits 0 to 2 of a row; a mask of all "
      "keys is attn_mask [B, Sq, Sk], or one list");
}

// --- dense masks ------------------------------------------------------------------------------------------------------

TEST(DenseMasks, HaveTheAxesOfSequencesHeadsQueriesAndKeys) {
  const MaskBatch batch = two();
  const auto wrong = [](const std::string& is, const std::string& end = "") {
    return ElementsAre("shape attn_mask is " + is +
                       "; it is [Sq, Sk], [2, Sq, Sk] or [2, 4, Sq, Sk], where axes that share a mask have length 1" +
                       end);
  };
  EXPECT_THAT(faults("attn_mask", of(DType::u8, {5}), batch), wrong("u8 [5]"));
  EXPECT_THAT(faults("attn_mask", of(DType::u8, {1, 1, 1, 3, 5}), batch), wrong("u8 [1, 1, 1, 3, 5]"));
  EXPECT_THAT(faults("attn_mask", of(DType::u8, {3, 3, 5}), batch), wrong("u8 [3, 3, 5]"));
  EXPECT_THAT(faults("attn_mask", of(DType::u8, {2, 3, 3, 5}), batch), wrong("u8 [2, 3, 3, 5]"));
  EXPECT_THAT(faults("attn_mask", of(DType::u8, {2, 0, 3, 5}), batch), wrong("u8 [2, 0, 3, 5]"));
  EXPECT_THAT(faults("attn_mask", of(DType::u8, {4, 3, 5}), batch),
              wrong("u8 [4, 3, 5]", ": a mask for each head is [1, 4, Sq, Sk]: three axes are [B, Sq, Sk]"));
  MaskBatch unknown = batch;
  unknown.query_heads = 0;  // no q: any number of heads
  EXPECT_THAT(faults("attn_mask", of(DType::u8, {2, 7, 3, 5}), unknown), IsEmpty());
  EXPECT_THAT(faults("attn_mask", of(DType::u8, {3, 3, 5}), unknown),
              ElementsAre(testing::HasSubstr("it is [Sq, Sk], [2, Sq, Sk] or [2, Hq, Sq, Sk]")));
  for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{3, 5},
                                                 {1, 5},
                                                 {3, 1},
                                                 {1, 1},
                                                 {3, 8},
                                                 {2, 3, 5},
                                                 {1, 3, 5},
                                                 {2, 1, 3, 5},
                                                 {1, 4, 3, 5}}) {
    EXPECT_THAT(faults("attn_mask", of(DType::u8, shape), batch), IsEmpty()) << shape_text(shape);
  }
}

TEST(DenseMasks, HaveARowForEachQueryAndAColumnForEachKey) {
  MaskBatch batch = two();
  const std::string columns =
      "1, shared by all keys, or 5, the keys of sequence 0, or 8, the tokens that the table or the "
      "cache holds for it";
  EXPECT_THAT(
      faults("attn_mask", of(DType::u8, {2, 4, 9}), batch),
      ElementsAre("shape attn_mask has 4 rows; allowed: 1, shared by all queries, or 3, the queries of sequence 1; "
                  "row i is query i of its sequence",
                  "shape attn_mask has 9 columns; allowed: " + columns + "; cut the columns past the keys"));
  EXPECT_THAT(faults("attn_mask", of(DType::u8, {2, 3, 4}), batch),
              ElementsAre("shape attn_mask has 4 columns; allowed: " + columns + "; save a column for each key"));
  batch.capacity = 5;
  EXPECT_THAT(
      faults("attn_mask", of(DType::u8, {2, 3, 4}), batch),
      ElementsAre("shape attn_mask has 4 columns; allowed: 1, shared by all keys, or 5, the keys of sequence 0; save a "
                  "column for each key"));
  EXPECT_THAT(
      faults("attn_mask", of(DType::u8, {2, 5}), batch),
      ElementsAre("shape attn_mask has 2 rows; allowed: 1, shared by all queries, or 3, the queries of sequence 1; "
                  "row i is query i of its sequence; padding of each sequence is [2, 1, Sk]"));
  batch.padded_queries = 7;
  EXPECT_THAT(faults("attn_mask", of(DType::u8, {2, 7, 5}), batch), IsEmpty());
  EXPECT_THAT(
      faults("attn_mask", of(DType::u8, {2, 6, 5}), batch),
      ElementsAre("shape attn_mask has 6 rows; allowed: 1, shared by all queries, or 3, the queries of sequence 1, or "
                  "7, the rows of q; row i is query i of its sequence"));
  MaskBatch none;
  none.query_heads = 4;
  EXPECT_THAT(faults("attn_mask", of(DType::u8, {0, 0}), none), IsEmpty());  // no sequences
}

// A number of sequences that is that of heads or of queries: the reading is stated.
TEST(DenseMasks, OfAmbiguousShapesAreWarnedOf) {
  MaskBatch batch = two();
  batch.query_heads = 2;
  EXPECT_THAT(
      read_mask_walk("attn_mask", "m", of(DType::u8, {2, 3, 5}), std::nullopt, batch).warnings,
      ElementsAre("m: [2, 3, 5] has a mask for each of the 2 sequences; a mask for each of the 2 query heads is [1, 2, "
                  "Sq, Sk]"));
}

// [2, 5] of two sequences with two queries is [Sq, Sk], or padding: only the values tell.
TEST(DenseMasks, OfPaddingAreNamedByTheirValues) {
  MaskBatch batch = two();
  batch.queries = {2, 2};
  const auto doubt = [&](const std::vector<int>& values) {
    Tensor mask = of(DType::u8, {2, 5});
    for (std::size_t i = 0; i < values.size(); ++i) mask.bytes.data()[i] = static_cast<std::byte>(values[i]);
    const MaskWalk walk = read_mask_walk("attn_mask", "m", mask, std::nullopt, batch).walk;
    const std::optional<MaskFault> found = padding_as_rows("m", mask, walk, batch);
    return found ? found->message() : "";
  };
  batch.keys = {3, 5};
  EXPECT_EQ(
      doubt({1, 1, 1, 0, 0, 1, 1, 1, 1, 1}),
      "has as many rows as there are sequences, and each row shows exactly the keys of its sequence: 3 in row 0, 5 "
      "in row 1: two axes are read as [Sq, Sk], a row for each query of all sequences; padding of each sequence is "
      "[2, 1, Sk]");
  EXPECT_THAT(doubt({0, 0, 0, 1, 1, 0, 0, 0, 0, 0}),
              testing::EndsWith("[2, 1, Sk], visible where a sequence has keys"));
  EXPECT_NE(doubt({0, 0, 1, 1, 1, 1, 1, 1, 1, 1}), "");  // padded on the left
  EXPECT_EQ(doubt({0, 1, 1, 1, 0, 1, 1, 1, 1, 1}), "");  // in the middle
  EXPECT_EQ(doubt({1, 1, 0, 1, 0, 1, 1, 1, 1, 1}), "");  // two runs
  batch.padding = {1, 0};
  batch.capacity = 5;
  EXPECT_NE(doubt({0, 1, 1, 1, 0, 1, 1, 1, 1, 1}), "");  // the positions of a padded cache
  batch.capacity = 6;
  EXPECT_EQ(doubt({0, 1, 1, 1, 0, 1, 1, 1, 1, 1}), "");
  batch = two();
  batch.queries = {2, 2};
  batch.keys = {4, 5};
  EXPECT_EQ(doubt({1, 1, 1, 1, 0, 1, 1, 1, 1, 1}), "");  // a causal mask
  batch.keys = {5, 5};
  EXPECT_EQ(doubt({1, 1, 1, 1, 1, 1, 1, 1, 1, 1}), "");  // the same in both forms
}

// Columns that count positions start after the padding of each sequence.
TEST(DenseMasks, OfPositionsSkipThePadding) {
  MaskBatch batch = two();
  batch.padding = {3, 4};
  const MaskWalk walk = read_mask_walk("attn_mask", "m", of(DType::u8, {3, 8}), std::nullopt, batch).walk;
  EXPECT_EQ(walk.at(0, 0, 1, 0), 8 + 3);
  EXPECT_EQ(walk.at(1, 0, 1, 0), 8 + 4);
  const MaskWalk keys = read_mask_walk("attn_mask", "m", of(DType::u8, {3, 5}), std::nullopt, batch).walk;
  EXPECT_EQ(keys.at(1, 0, 1, 0), 5);
  batch.capacity = 1;
  const MaskWalk shared = read_mask_walk("attn_mask", "m", of(DType::u8, {3, 1}), std::nullopt, batch).walk;
  EXPECT_EQ(shared.at(1, 0, 2, 3), 2);
}

// --- values -----------------------------------------------------------------------------------------------------------

TEST(MaskValueFaults, NameTheValueAndWhatTheTypeAllows) {
  MaskBatch batch;
  batch.queries = {1};
  batch.keys = {3};
  const auto first = [&](const std::string& name, const Tensor& mask) {
    const MaskReading reading = read_mask_walk(name, name, mask, std::nullopt, batch);
    const MaskValueFaults wrong = check_mask_values(name, mask, reading.walk, batch);
    return wrong.first.empty() ? wrong.doubt ? "doubt: " + wrong.doubt->message() : std::string("none")
                               : wrong.first[0].object + " " + wrong.first[0].message();
  };
  EXPECT_EQ(first("custom_mask", tensor_of<std::uint8_t>({3}, std::vector<std::uint8_t>{1, 7, 0})),
            "custom_mask[1] is 7; allowed: 0 or 1; bytes of packed bits are packed_custom_mask");
  EXPECT_EQ(
      first("custom_mask", tensor_of<std::int32_t>({3}, std::vector<std::int32_t>{1, 0, -1})),
      "custom_mask[2] is -1; allowed: 0 or 1; save the mask as bool; one that is added to the scores must be a float");
  EXPECT_EQ(first("custom_mask", tensor_of<float>({3}, std::vector<float>{1, 0, -0.5F})),
            "custom_mask[2] is -0.5; allowed: 0 or 1; a mask that is added to the scores is attn_mask or tree_mask");
  EXPECT_EQ(
      first("attn_mask", tensor_of<float>({1, 3}, std::vector<float>{0, -1, std::numeric_limits<float>::quiet_NaN()})),
      "attn_mask[0, 2] is nan; allowed: a finite number, and -inf or at most -10000 for a hidden key; a float mask is "
      "added to the scores. Save a mask of 0 and 1 as integers");
  EXPECT_EQ(first("attn_mask", tensor_of<float>({1, 3}, std::vector<float>{0, 1, 0})),
            "doubt: holds only 0 and 1 as f32, and a float mask is added to the scores: it hides no key; save a mask "
            "of 0 and "
            "1 as bool");
  EXPECT_EQ(first("attn_mask", tensor_of<float>({1, 3}, std::vector<float>{0, 0, 0})), "none");
  batch.keys = {1};
  EXPECT_EQ(first("tree_mask", tensor_of<float>({1, 1}, std::vector<float>{1})),
            "tree_mask holds only 0 and 1 as f32; allowed: integers of 0 and 1, or floats of 0 and -inf; a float mask "
            "is added "
            "to the scores");
}

// The columns of positions, as those of keys: key t is column padding + t.
TEST(ColumnsOfKeys, LeaveOutThePaddingOfEachSequence) {
  MaskBatch batch = two();
  Tensor mask = of(DType::u8, {1, 8});
  for (std::size_t i = 0; i < 8; ++i) mask.bytes[i] = static_cast<std::byte>(i);
  const auto numbers = [](const Tensor& t) {
    std::vector<int> all;
    for (const std::byte b : t.bytes) all.push_back(std::to_integer<int>(b));
    return all;
  };
  batch.padding = {3, 3};
  const Tensor alike = with_columns_of_keys(mask, batch);
  EXPECT_THAT(alike.shape, ElementsAre(1, 5));
  EXPECT_THAT(numbers(alike), ElementsAre(3, 4, 5, 6, 7));
  batch.padding = {3, 4};
  const Tensor apart = with_columns_of_keys(mask, batch);
  EXPECT_THAT(apart.shape, ElementsAre(2, 1, 5));
  EXPECT_THAT(numbers(apart), ElementsAre(3, 4, 5, 6, 7, 4, 5, 6, 7, 7));  // the last one is past the 4 keys
}

// --- masks of a whole input -------------------------------------------------------------------------------------------

TEST(MaskTensors, AreRejectedBesideWhatTheyReplace) {
  Bundle bundle = SmallBatch().in("nhd");
  bundle.tensors["attn_mask"] = of(DType::u8, {3, 17});
  LayoutOptions options = SmallBatch::options("nhd");
  const auto rejection = [&] {
    return message_of([&] { static_cast<void>(prepare_problem(bundle, options, "mine.npz")); });
  };
  EXPECT_EQ(rejection(), "(no InputError)");
  const Bundle kept = bundle;
  bundle.tensors["k_descale"] = of(DType::f32, {5, 2});
  const std::string by_sequence = "mine.npz rejected: attn_mask: is not supported together with scales by sequence";
  EXPECT_EQ(rejection(), by_sequence);
  bundle = kept;
  bundle.tensors["v_descale"] = of(DType::f32, {5, 2});
  EXPECT_EQ(rejection(), by_sequence);
  bundle = kept;
  bundle.tensors["alibi_slopes"] = of(DType::f32, {4});
  EXPECT_EQ(rejection(), "mine.npz rejected: alibi_slopes: is not supported together with attn_mask");
  bundle = kept;
  bundle.tensors["tree_mask"] = of(DType::u8, {3, 3});
  EXPECT_EQ(rejection(), "mine.npz rejected: attn_mask: is given together with tree_mask: keep one mask");
  bundle = kept;
  bundle.tensors["mask_indptr"] = of(DType::f32, {6});
  EXPECT_EQ(rejection(), "mine.npz rejected: mask_indptr: is f32; an index tensor is i32, u32, i64 or u64");
  bundle = kept;
  options.attention.mask = MaskKind::chunked;
  options.attention.chunk = 4;
  EXPECT_EQ(rejection(),
            "mine.npz rejected: --mask: has no effect with attn_mask, which states the keys of each query");
}

}  // namespace
}  // namespace kvscope::golden::mask_walk_test
