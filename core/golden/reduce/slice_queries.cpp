// The queries of a slice, with their offsets, and the mask tensors.
#include <algorithm>
#include <utility>

#include "core/base/errors.h"
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

// [Sq, Sk], [B, Sq, Sk] or [B, Hq, Sq, Sk]: the sequences have their rows and columns in common.
Tensor cut_dense_mask(const SlicedInput& input, const Tensor& given, const ProblemSlice& slice, const Indices& heads) {
  const std::size_t rank = given.shape.size();
  const SequenceSlice& first = slice.sequences.front();
  const std::int64_t columns = given.shape[rank - 1];
  const bool positions = input.form() == TableForm::dense && columns == input.sizes.page_size;
  std::int64_t end_query = 0, end_key = 0;
  Indices sequences;
  for (const SequenceSlice& sequence : slice.sequences) {
    const bool alike = sequence.first_query == first.first_query &&
                       (sequence.end_query == first.end_query || input.has("q_lens")) &&
                       (sequence.first_page == first.first_page || positions);
    if (!alike) throw InputError("slice", "", "sequences of a mask [Sq, Sk] keep the same queries and first keys");
    sequences.push_back(sequence.index);
    end_query = std::max(end_query, sequence.end_query);
    end_key = std::max(end_key, sequence.keys);
  }
  const KeptPositions kept = positions ? kept_positions(input, slice)
                                       : KeptPositions{first.first_page * input.prepared.problem.k.page_size,
                                                       slice.only_used_columns ? end_key : columns};
  Tensor mask = take(given, rank - 1, range_between(kept.first, kept.end));
  mask = take(mask, rank - 2, range_between(first.first_query, end_query));
  if (rank == 4 && given.shape[1] > 1) mask = take(mask, 1, heads);
  if (rank >= 3 && given.shape[0] > 1) mask = take(mask, 0, sequences);
  return mask;
}

}  // namespace

void cut_mask(const SlicedInput& input, const Bundle& tensors, const ProblemSlice& slice, const Indices& heads,
              Bundle& made) {
  const std::string name(input.mask());
  if (name.empty()) return;
  const Tensor& given = tensors.tensors.at(input.name(name));
  if (name == "attn_mask") {
    made.tensors[input.name(name)] = cut_dense_mask(input, given, slice, heads);
    return;
  }
  if (name == "tree_mask") {
    Indices sequences;
    for (const SequenceSlice& sequence : slice.sequences) sequences.push_back(sequence.index);
    made.tensors[input.name(name)] = given.shape.size() == 3 ? take(given, 0, sequences) : given;
    return;
  }
  const attention::Problem& whole = input.prepared.problem;
  const bool packed = name == "packed_custom_mask";
  const std::int64_t size = packed ? 1 : size_of(given.dtype);
  std::vector<std::int64_t> starts{0};  // [elements, or bytes of 8]
  for (std::int64_t b = 0; b < whole.batch; ++b) {
    const std::int64_t count = (whole.first_query(b + 1) - whole.first_query(b)) * whole.keys(b);
    starts.push_back(starts.back() + (packed ? (count + 7) / 8 : count));
  }
  Tensor mask{given.dtype, {}, {}};
  std::vector<std::byte>& cut = mask.bytes.own();
  for (const SequenceSlice& sequence : slice.sequences) {
    const std::int64_t start = starts[static_cast<std::size_t>(sequence.index)];
    const std::int64_t first_key = sequence.first_page * whole.k.page_size;
    std::int64_t written = 0;
    for (std::int64_t query = sequence.first_query; query < sequence.end_query; ++query) {
      for (std::int64_t key = first_key; key < sequence.keys; ++key, ++written) {
        const std::int64_t at = query * whole.keys(sequence.index) + key;
        if (!packed) {
          const auto from = given.bytes.begin() + (start + at) * size;
          cut.insert(cut.end(), from, from + size);
          continue;
        }
        const auto bit =
            given.bytes[static_cast<std::size_t>(start + at / 8)] >> static_cast<int>(at % 8) & std::byte{1};
        if (written % 8 == 0) cut.push_back(std::byte{0});
        cut.back() |= bit << static_cast<int>(written % 8);
      }
    }
  }
  mask.shape = {static_cast<std::int64_t>(mask.bytes.size()) / size};
  made.tensors[input.name(name)] = std::move(mask);
}

}  // namespace kvscope::golden
