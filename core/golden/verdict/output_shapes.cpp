#include "core/golden/verdict/detail/output_shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace kvscope::golden {
namespace {

using Extents = std::vector<std::int64_t>;

// Strides, in elements, of the rows of a candidate: row r of sequence b, head h.
struct RowOrder {
  std::int64_t by_sequence = 0, by_query = 0, by_head = 0;
  std::string words;
};

struct RowCounts {
  std::int64_t rows = 0, heads = 0, batch = 0;
  std::vector<std::int64_t> offsets;  // [batch + 1]
  std::int64_t most = 0;              // queries of a sequence
  bool uniform = true;
};

// The order of a candidate of `shape`, whose rows have `dims` elements (lse: 1, without an axis).
std::vector<RowOrder> orders_of(const Extents& shape, const RowCounts& r, std::int64_t dims, bool is_lse) {
  std::vector<RowOrder> found;
  Extents own = shape;
  if (!is_lse) {
    const bool merged = !own.empty() && own.back() == r.heads * dims && (own.size() == 2 || own.size() == 3);
    const bool is_own = own == Extents{r.rows, r.heads, dims};
    if (merged && !is_own) {  // [T, H * D], [B, S, H * D]
      own.back() = r.heads;
      own.push_back(dims);
    }
    if (own.empty() || own.back() != dims) return found;
    own.pop_back();
  }
  // own: the axes of rows and heads
  if (own == Extents{r.rows, r.heads}) {
    found.push_back({0, r.heads * dims, dims, "[T, H * D]"});  // an lse [T, H] has the golden's shape
  } else if (own == Extents{r.heads, r.rows}) {
    found.push_back({0, dims, r.rows * dims, is_lse ? "[H, T]" : "[H, T, D]"});
  } else if (own.size() == 3 && own[0] == r.batch) {
    const bool rows_first = own[2] == r.heads && own[1] >= r.most;
    const bool heads_first = own[1] == r.heads && own[2] >= r.most;
    const char* end = is_lse ? "]" : ", D]";
    if (rows_first && !heads_first) {
      found.push_back({own[1] * own[2] * dims, own[2] * dims, dims, fmt::format("[B, queries, H{}", end)});
    } else if (heads_first && !rows_first) {
      found.push_back({own[1] * own[2] * dims, dims, own[2] * dims, fmt::format("[B, H, queries{}", end)});
    }
  }
  return found;
}

}  // namespace

std::vector<std::string> use_output_shapes(const Bundle& golden, Bundle& candidate) {
  std::vector<std::string> notes;
  const auto o = golden.tensors.find("o"), offsets = golden.tensors.find("query_offsets");
  if (o == golden.tensors.end() || offsets == golden.tensors.end() || o->second.shape.size() != 3) return notes;
  const Tensor& starts = offsets->second;
  if (starts.dtype != DType::i64 || starts.shape.size() != 1 || starts.shape[0] < 1) return notes;
  RowCounts rows{o->second.shape[0], o->second.shape[1], starts.shape[0] - 1, {}, 0, true};
  const auto given = values<std::int64_t>(starts);
  rows.offsets.assign(given.begin(), given.end());
  if (rows.offsets.front() != 0 || rows.offsets.back() != rows.rows || !std::ranges::is_sorted(rows.offsets))
    return notes;
  for (std::size_t b = 0; b + 1 < rows.offsets.size(); ++b) {
    rows.most = std::max(rows.most, rows.offsets[b + 1] - rows.offsets[b]);
  }
  for (const char* tensor_name : {"o", "lse"}) {
    const auto have = candidate.tensors.find(tensor_name);
    const auto want = golden.tensors.find(tensor_name);
    if (have == candidate.tensors.end() || want == golden.tensors.end()) continue;
    Tensor& tensor = have->second;
    const bool is_lse = tensor_name == std::string("lse");
    const std::int64_t dims = is_lse ? 1 : o->second.shape[2];
    Extents own{rows.rows, rows.heads};  // shapes that are compared as they are: T, or T as two axes
    if (!is_lse) own.push_back(dims);
    if (want->second.shape != own) continue;  // rejected later
    if (tensor.shape == own || tensor.dtype == DType::e2m1) continue;
    if (tensor.shape.size() == own.size() + 1 && tensor.shape[0] * tensor.shape[1] == own[0] &&
        std::equal(own.begin() + 1, own.end(), tensor.shape.begin() + 2)) {
      continue;
    }
    const std::vector<RowOrder> orders = orders_of(tensor.shape, rows, dims, is_lse);
    if (orders.size() != 1) continue;
    const RowOrder& order = orders.front();
    Tensor made = make_tensor(tensor.dtype, own);
    const std::int64_t size = size_of(tensor.dtype);
    std::byte* to = made.bytes.data();
    for (std::size_t b = 0; b + 1 < rows.offsets.size(); ++b) {
      const std::int64_t first = order.by_sequence == 0 ? rows.offsets[b] : 0;
      for (std::int64_t q = 0; q < rows.offsets[b + 1] - rows.offsets[b]; ++q) {
        for (std::int64_t h = 0; h < rows.heads; ++h, to += dims * size) {
          const std::int64_t from =
              static_cast<std::int64_t>(b) * order.by_sequence + (first + q) * order.by_query + h * order.by_head;
          std::memcpy(to, tensor.bytes.data() + from * size, static_cast<std::size_t>(dims * size));
        }
      }
    }
    notes.push_back(fmt::format("candidate '{}' {} is read as {}", tensor_name, shape_text(tensor.shape), order.words));
    tensor = std::move(made);
  }
  return notes;
}

}  // namespace kvscope::golden
