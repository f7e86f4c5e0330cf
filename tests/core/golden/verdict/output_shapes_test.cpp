// Orders of a candidate's rows: each element of a tensor holds its own place, so a wrong stride puts another number there.
#include "core/golden/verdict/detail/output_shapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/golden/bundle/tensor.h"

namespace kvscope::golden::output_shapes_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Extents = std::vector<std::int64_t>;

// Sequences of 2 and 3 queries, 2 heads of 3 elements.
constexpr std::int64_t kRows = 5, kHeads = 2, kDims = 3;

Bundle golden() {
  Bundle bundle;
  bundle.tensors["o"] = make_tensor(DType::f64, {kRows, kHeads, kDims});
  bundle.tensors["lse"] = make_tensor(DType::f64, {kRows, kHeads});
  bundle.tensors["query_offsets"] = tensor_of<std::int64_t>({3}, std::vector<std::int64_t>{0, 2, 5});
  return bundle;
}

// Row 3 is query 1 of sequence 1: element [3, 1, 2] is 312.
float number(std::int64_t row, std::int64_t head, std::int64_t dim) {
  return static_cast<float>(100 * row + 10 * head + dim);
}

// A tensor of `shape` whose element `at(row, sequence, query, head, dim)` is that row's; elements of no row are -1.
Tensor stored(Extents shape, std::int64_t dims, const auto& at) {
  Tensor tensor = make_tensor(DType::f32, std::move(shape));
  for (float& x : values<float>(tensor)) x = -1;
  for (std::int64_t row = 0; row < kRows; ++row) {
    const std::int64_t sequence = row < 2 ? 0 : 1, query = row < 2 ? row : row - 2;
    for (std::int64_t head = 0; head < kHeads; ++head) {
      for (std::int64_t dim = 0; dim < dims; ++dim) {
        values<float>(tensor)[static_cast<std::size_t>(at(row, sequence, query, head, dim))] = number(row, head, dim);
      }
    }
  }
  return tensor;
}

// What `tensor` becomes as `name`, and the note of its order.
std::pair<Tensor, std::vector<std::string>> used(const std::string& name, const Tensor& tensor) {
  Bundle candidate;
  candidate.tensors[name] = tensor;
  std::vector<std::string> notes = use_output_shapes(golden(), candidate);
  return {candidate.tensors.at(name), std::move(notes)};
}

void expect_rows(const std::string& name, const Tensor& tensor, const std::string& note) {
  const auto [own, notes] = used(name, tensor);
  EXPECT_THAT(notes, ElementsAre(note));
  const std::int64_t dims = name == "o" ? kDims : 1;
  EXPECT_EQ(own.shape, golden().tensors.at(name).shape) << note;
  ASSERT_EQ(values<float>(own).size(), static_cast<std::size_t>(kRows * kHeads * dims)) << note;
  std::size_t at = 0;
  for (std::int64_t row = 0; row < kRows; ++row) {
    for (std::int64_t head = 0; head < kHeads; ++head) {
      for (std::int64_t dim = 0; dim < dims; ++dim, ++at) {
        EXPECT_EQ(values<float>(own)[at], number(row, head, dim)) << note << ' ' << at;
      }
    }
  }
}

TEST(OutputShapes, RowsOfEachOrderBecomeTheGoldens) {
  expect_rows("o", stored({5, 6}, kDims, [](auto r, auto, auto, auto h, auto d) { return r * 6 + h * 3 + d; }),
              "candidate 'o' [5, 6] is read as [T, H * D]");
  expect_rows("o", stored({2, 5, 3}, kDims, [](auto r, auto, auto, auto h, auto d) { return (h * 5 + r) * 3 + d; }),
              "candidate 'o' [2, 5, 3] is read as [H, T, D]");
  // Padded to 4 queries a sequence, and to 3: the rows behind a sequence's own belong to none.
  expect_rows(
      "o",
      stored({2, 4, 2, 3}, kDims, [](auto, auto b, auto q, auto h, auto d) { return ((b * 4 + q) * 2 + h) * 3 + d; }),
      "candidate 'o' [2, 4, 2, 3] is read as [B, queries, H, D]");
  expect_rows(
      "o", stored({2, 3, 6}, kDims, [](auto, auto b, auto q, auto h, auto d) { return (b * 3 + q) * 6 + h * 3 + d; }),
      "candidate 'o' [2, 3, 6] is read as [B, queries, H, D]");
  expect_rows(
      "o",
      stored({2, 2, 4, 3}, kDims, [](auto, auto b, auto q, auto h, auto d) { return ((b * 2 + h) * 4 + q) * 3 + d; }),
      "candidate 'o' [2, 2, 4, 3] is read as [B, H, queries, D]");
  expect_rows("lse", stored({2, 5}, 1, [](auto r, auto, auto, auto h, auto) { return h * 5 + r; }),
              "candidate 'lse' [2, 5] is read as [H, T]");
  expect_rows("lse", stored({2, 4, 2}, 1, [](auto, auto b, auto q, auto h, auto) { return (b * 4 + q) * 2 + h; }),
              "candidate 'lse' [2, 4, 2] is read as [B, queries, H]");
  expect_rows("lse", stored({2, 2, 4}, 1, [](auto, auto b, auto q, auto h, auto) { return (b * 2 + h) * 4 + q; }),
              "candidate 'lse' [2, 2, 4] is read as [B, H, queries]");
}

TEST(OutputShapes, ATensorWithoutOneOrderStaysAsItIs) {
  const auto stays = [](const std::string& name, Extents shape, DType dtype = DType::f32) {
    const auto [own, notes] = used(name, make_tensor(dtype, shape));
    EXPECT_THAT(notes, IsEmpty()) << shape_text(shape);
    EXPECT_EQ(own.shape, shape);
  };
  stays("o", {5, 2, 3});     // the golden's
  stays("o", {1, 5, 2, 3});  // the golden's with T as two axes
  stays("o", {});            // no axis
  stays("o", {6});           // rows and heads in one
  stays("o", {4, 2, 4});     // other elements
  stays("o", {5, 2, 2, 3});  // more sequences than the golden has
  stays("o", {2, 2, 2, 3});  // fewer queries than sequence 1 has, in either order
  stays("o", {1, 2, 3, 6});  // merged, but with four axes
  stays("o", {2, 5, 3, 1});  // dims that are no dims
  stays("lse", {5, 1, 2});   // T as two axes
  stays("lse", {10});
  stays("other", {2, 5, 3});  // no output
  // With one row more than the two heads of a sequence hold, [2, 2, 2] has the heads on either axis.
  Bundle ambiguous = golden(), candidate;
  ambiguous.tensors["o"] = make_tensor(DType::f64, {3, 2, 3});
  ambiguous.tensors["query_offsets"] = tensor_of<std::int64_t>({3}, std::vector<std::int64_t>{0, 2, 3});
  candidate.tensors["o"] = make_tensor(DType::f32, {2, 2, 2, 3});
  EXPECT_THAT(use_output_shapes(ambiguous, candidate), IsEmpty());
  EXPECT_EQ(candidate.tensors.at("o").shape, (Extents{2, 2, 2, 3}));
}

// A golden that was edited by hand is rejected later, with its faults. Until then its shapes are not trusted: rows that are
// written into a tensor of the golden's shape would leave it.
TEST(OutputShapes, OfAGoldenThatIsNoneNothingIsRead) {
  const auto nothing = [](const std::string& name, Tensor tensor) {
    Bundle edited = golden(), candidate;
    edited.tensors[name] = std::move(tensor);
    candidate.tensors["o"] = make_tensor(DType::f32, {2, 5, 3});
    candidate.tensors["lse"] = make_tensor(DType::f32, {2, 5});
    std::vector<std::string> notes = use_output_shapes(edited, candidate);
    EXPECT_EQ(candidate.tensors.at("lse").shape, (Extents{2, 5})) << name;
    return notes;
  };
  for (Extents shape : {Extents{1}, {}, {5, 3}, {5, 2, 1}, {2, 2}}) {
    EXPECT_THAT(nothing("lse", make_tensor(DType::f64, shape)),
                ElementsAre("candidate 'o' [2, 5, 3] is read as [H, T, D]"))
        << shape_text(shape);
  }
  const auto offsets = [](const std::vector<std::int64_t>& numbers) {
    return tensor_of<std::int64_t>({static_cast<std::int64_t>(numbers.size())}, numbers);
  };
  EXPECT_THAT(nothing("o", make_tensor(DType::f64, {5, 6})), IsEmpty());
  EXPECT_THAT(nothing("query_offsets", make_tensor(DType::i32, {3})), IsEmpty());
  EXPECT_THAT(nothing("query_offsets", make_tensor(DType::i64, {3, 1})), IsEmpty());
  EXPECT_THAT(nothing("query_offsets", offsets({})), IsEmpty());
  EXPECT_THAT(nothing("query_offsets", offsets({1, 2, 5})), IsEmpty());
  EXPECT_THAT(nothing("query_offsets", offsets({0, 2, 4})), IsEmpty());
  EXPECT_THAT(nothing("query_offsets", offsets({0, 6, 5})), IsEmpty());
  Bundle without = golden(), candidate;
  candidate.tensors["o"] = make_tensor(DType::f32, {2, 5, 3});
  candidate.tensors["lse"] = make_tensor(DType::f32, {2, 5});
  without.tensors.erase("lse");
  EXPECT_THAT(use_output_shapes(without, candidate), ElementsAre("candidate 'o' [2, 5, 3] is read as [H, T, D]"));
  without.tensors.erase("query_offsets");
  candidate.tensors["o"] = make_tensor(DType::f32, {2, 5, 3});
  EXPECT_THAT(use_output_shapes(without, candidate), IsEmpty());
  without.tensors.erase("o");
  EXPECT_THAT(use_output_shapes(without, candidate), IsEmpty());
}

}  // namespace
}  // namespace kvscope::golden::output_shapes_test
