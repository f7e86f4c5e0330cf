// The queries of a slice, with their offsets, and the mask tensors.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/golden/layouts/detail/mask_walk.h"
#include "core/golden/layouts/detail/queries.h"
#include "core/golden/reduce/detail/slice_parts.h"

namespace kvscope::golden {
namespace {

std::int64_t queries_in(const SequenceSlice& sequence) {
  return sequence.end_query - sequence.first_query;
}

// Rows of q [B, queries, Hq, D], as many of each sequence as the longest has. A sequence of fewer is padded with its
// own rows; without a tensor that counts them, all must have as many.
std::vector<Indices> padded_rows(const SlicedInput& input, const ProblemSlice& slice, std::int64_t width) {
  const auto& all = input.prepared.problem;
  std::int64_t most = 0, most_before = 0;
  for (const SequenceSlice& sequence : slice.sequences) most = std::max(most, queries_in(sequence));
  for (std::int64_t b = 0; b < all.batch; ++b) {
    most_before = std::max(most_before, all.first_query(b + 1) - all.first_query(b));
  }
  if (most == most_before) most = width;
  const bool counted = input.has("q_lens") || input.has("query_offsets");
  std::vector<Indices> rows;
  for (const SequenceSlice& sequence : slice.sequences) {
    if (!counted && queries_in(sequence) != most) {
      throw InputError("slice", "", "sequences of q [B, queries, Hq, D] have one number of queries");
    }
    Indices& own = rows.emplace_back();
    for (std::int64_t i = 0; i < most; ++i) {
      own.push_back(input.first_row[static_cast<std::size_t>(sequence.index)] +
                    std::min(sequence.first_query + i, width - 1));
    }
  }
  return rows;
}

// The rows, heads and dims of q, or of a part of it.
Tensor cut_rows(const SlicedInput& input, const Tensor& given, const ProblemSlice& slice, const Indices& heads,
                std::int64_t dims) {
  const bool by_head = given.shape.size() == 4 && input.layout->queries_by_head;
  Tensor q = by_head ? exchange_middle_axes(given) : given;
  Indices rows;
  std::vector<std::int64_t> shape;
  if (q.shape.size() == 3 || input.form() == TableForm::sparse) {
    for (const SequenceSlice& sequence : slice.sequences) {
      for (std::int64_t query = sequence.first_query; query < sequence.end_query; ++query) {
        rows.push_back(input.first_row[static_cast<std::size_t>(sequence.index)] + query);
      }
    }
    shape = {static_cast<std::int64_t>(rows.size())};
    if (q.shape.size() == 4) shape.push_back(1);
  } else {
    const std::vector<Indices> by_sequence = padded_rows(input, slice, q.shape[1]);
    for (const Indices& own : by_sequence) rows.insert(rows.end(), own.begin(), own.end());
    shape = {static_cast<std::int64_t>(by_sequence.size()), static_cast<std::int64_t>(by_sequence.front().size())};
  }
  if (q.shape.size() == 4) q.shape = {q.shape[0] * q.shape[1], q.shape[2], q.shape[3]};
  q = take(take(take(q, 0, rows), 1, heads), 2, range_of(dims));
  shape.insert(shape.end(), q.shape.begin() + 1, q.shape.end());
  q.shape = std::move(shape);
  return by_head ? exchange_middle_axes(q) : q;
}

}  // namespace

void cut_queries(const SlicedInput& input, const Bundle& tensors, const ProblemSlice& slice, const Indices& heads,
                 std::int64_t dims, Bundle& made) {
  for (const char* part : {"q", "q_nope", "q_pe"}) {
    if (!input.has(part)) continue;
    const Tensor& given = tensors.tensors.at(input.name(part));
    const bool is_part = std::string_view(part) != "q";
    made.tensors[input.name(part)] = cut_rows(input, given, slice, heads, is_part ? given.shape.back() : dims);
  }
  Indices offsets{0}, counts;
  for (const SequenceSlice& sequence : slice.sequences) {
    counts.push_back(queries_in(sequence));
    offsets.push_back(offsets.back() + counts.back());
  }
  for (const auto& [name, numbers] :
       {std::pair<const char*, const Indices&>{"query_offsets", offsets}, {"q_lens", counts}}) {
    if (!input.has(name)) continue;
    made.tensors[input.name(name)] =
        integers_as(tensors.tensors.at(input.name(name)).dtype, {static_cast<std::int64_t>(numbers.size())}, numbers);
  }
}

namespace {

Indices range_between(std::int64_t first, std::int64_t end) {
  Indices indices;
  for (std::int64_t i = first; i < end; ++i) indices.push_back(i);
  return indices;
}

// [Sq, Sk], [B, Sq, Sk] or [B, Hq, Sq, Sk]: the sequences have their first row and column in common.
Tensor cut_dense_mask(const SlicedInput& input, const Tensor& given, const ProblemSlice& slice, const Indices& heads) {
  const std::size_t rank = given.shape.size();
  const SequenceSlice& first = slice.sequences.front();
  const std::int64_t rows = given.shape[rank - 2], columns = given.shape[rank - 1];
  const bool positions = input.form() == TableForm::dense && columns == input.sizes.page_size;
  std::int64_t end_query = 0, end_key = 0;
  Indices sequences;
  for (const SequenceSlice& sequence : slice.sequences) {
    const bool alike = (rows == 1 || sequence.first_query == first.first_query) &&
                       (columns == 1 || positions || sequence.first_page == first.first_page);
    if (!alike) throw InputError("slice", "", "sequences of a mask [Sq, Sk] keep the same first query and first key");
    sequences.push_back(sequence.index);
    end_query = std::max(end_query, sequence.end_query);
    end_key = std::max(end_key, sequence.keys);
  }
  Tensor mask = given;
  if (columns > 1) {
    const KeptPositions kept = positions
                                   ? kept_positions(input, slice)
                                   : KeptPositions{first.first_page * input.prepared.problem.k.page_size, end_key};
    mask = take(mask, rank - 1, range_between(kept.first, kept.end));
  }
  if (rows > 1) mask = take(mask, rank - 2, range_between(first.first_query, end_query));
  if (rank == 4 && given.shape[1] > 1) mask = take(mask, 1, heads);
  if (rank >= 3 && given.shape[0] > 1) mask = take(mask, 0, sequences);
  return mask;
}

// The numbers of a mask that lists its sequences: elements, or bits.
class CutList {
 public:
  CutList(const Tensor& given, bool bits) : given_(given), bits_(bits), made_{given.dtype, {}, {}} {}

  void add(std::int64_t at) {
    std::vector<std::byte>& cut = made_.bytes.own();
    const std::int64_t size = size_of(given_.dtype);
    if (!bits_) {
      const auto from = given_.bytes.begin() + at * size;
      cut.insert(cut.end(), from, from + size);
      ++count_;
      return;
    }
    const auto bit = given_.bytes[static_cast<std::size_t>(at / 8)] >> static_cast<int>(at % 8) & std::byte{1};
    if (count_ % 8 == 0) cut.push_back(std::byte{0});
    cut.back() |= bit << static_cast<int>(count_++ % 8);
  }
  void end_of_sequence() {
    if (bits_) count_ = static_cast<std::int64_t>(made_.bytes.size()) * 8;
    ends.push_back(bits_ ? count_ / 8 : count_);
  }
  Tensor take() {
    made_.shape = {static_cast<std::int64_t>(made_.bytes.size()) / size_of(given_.dtype)};
    return std::move(made_);
  }
  Indices ends{0};  // [elements, or bytes of bits]

 private:
  const Tensor& given_;
  bool bits_;
  Tensor made_;
  std::int64_t count_ = 0;
};

// A list of trees, whose queries and keys are all kept: the part of each kept sequence.
Tensor cut_tree_list(const Tensor& given, const MaskWalk& walk, const MaskBatch& batch, const ProblemSlice& slice) {
  const std::int64_t unit = walk.bits ? bits(given.dtype) : 1;
  Indices kept;
  for (const SequenceSlice& sequence : slice.sequences) {
    const auto b = static_cast<std::size_t>(sequence.index);
    for (std::int64_t i = 0; i < batch.queries[b] * walk.query_stride[b] / unit; ++i) {
      kept.push_back(walk.first[b] / unit + i);
    }
  }
  return take(given, 0, kept);
}

}  // namespace

void cut_mask(const SlicedInput& input, const Bundle& tensors, const ProblemSlice& slice, const Indices& heads,
              Bundle& made) {
  const std::string name(input.mask());
  if (name.empty()) return;
  const std::string& given_name = input.name(name);
  const Tensor& given = tensors.tensors.at(given_name);
  Indices sequences;
  for (const SequenceSlice& sequence : slice.sequences) sequences.push_back(sequence.index);
  if (name == "attn_mask") {
    made.tensors[given_name] = cut_dense_mask(input, given, slice, heads);
    return;
  }
  if (name == "tree_mask" && given.shape.size() > 1) {
    made.tensors[given_name] = given.shape.size() == 3 ? take(given, 0, sequences) : given;
    return;
  }
  const attention::Problem& whole = input.prepared.problem;
  MaskBatch batch;
  for (std::int64_t b = 0; b < whole.batch; ++b) {
    batch.queries.push_back(whole.first_query(b + 1) - whole.first_query(b));
    batch.keys.push_back(whole.keys(b));
  }
  std::optional<MaskOffsets> offsets;
  if (input.has("mask_indptr")) {
    offsets = {input.name("mask_indptr"), integers_of(tensors.tensors.at(input.name("mask_indptr")))};
  }
  const MaskWalk walk = read_mask_walk(name, given_name, given, offsets, batch).walk;
  if (name == "tree_mask") {
    made.tensors[given_name] = cut_tree_list(given, walk, batch, slice);
    return;
  }
  CutList list(given, walk.bits);
  for (const SequenceSlice& sequence : slice.sequences) {
    const std::int64_t first_key = sequence.first_page * whole.k.page_size;
    for (std::int64_t query = sequence.first_query; query < sequence.end_query; ++query) {
      for (std::int64_t key = first_key; key < sequence.keys; ++key) {
        list.add(walk.at(static_cast<std::size_t>(sequence.index), 0, query, key));
      }
    }
    list.end_of_sequence();
  }
  if (offsets) {
    made.tensors[offsets->name] =
        integers_as(tensors.tensors.at(offsets->name).dtype, {static_cast<std::int64_t>(list.ends.size())}, list.ends);
  }
  made.tensors[given_name] = list.take();
}

}  // namespace kvscope::golden
