#include "core/golden/layouts/detail/queries.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "core/base/convert.h"

namespace kvscope::golden {
namespace {

// Appends `count` elements from `element` on.
void append_bytes(TensorBytes& to, const Tensor& tensor, std::int64_t element, std::int64_t count) {
  const auto first = tensor.bytes.begin() + element * size_of(tensor.dtype);
  to.append(first, first + count * size_of(tensor.dtype));
}

// q_nope [.., Hq, latent] and q_pe [.., Hq, rope] as one q [.., Hq, latent + rope]; null after a fault or when missing.
const Tensor* joined_queries(LayoutReader& r, Tensor& made) {
  const Tensor* nope = r.find("q_nope");
  const Tensor* pe = r.find("q_pe");
  if (nope == nullptr || pe == nullptr) {
    r.fault(nope == nullptr ? "q_nope" : "q_pe",
            fmt::format("is missing; {} is only a part of q", r.given(nope == nullptr ? "q_pe" : "q_nope")));
    return nullptr;
  }
  if (nope->shape.empty() || !is_float(nope->dtype) || nope->dtype == DType::e2m1 || nope->dtype != pe->dtype ||
      nope->shape.size() != pe->shape.size() ||
      !std::equal(nope->shape.begin(), nope->shape.end() - 1, pe->shape.begin())) {
    r.fault(r.given("q_pe"), fmt::format("is {}, but {} is {}: all axes but the last, and the type, must be alike",
                                         describe(*pe), r.given("q_nope"), describe(*nope)));
    return nullptr;
  }
  made.dtype = nope->dtype;
  made.shape = nope->shape;
  made.shape.back() += pe->shape.back();
  const std::int64_t rows = nope->shape.back() > 0 ? *element_count(nope->shape) / nope->shape.back() : 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    append_bytes(made.bytes, *nope, row * nope->shape.back(), nope->shape.back());
    append_bytes(made.bytes, *pe, row * pe->shape.back(), pe->shape.back());
  }
  return &made;
}

}  // namespace

Tensor exchange_middle_axes(const Tensor& q) {
  Tensor made{q.dtype, {q.shape[0], q.shape[2], q.shape[1], q.shape[3]}, {}};
  for (std::int64_t b = 0; b < q.shape[0]; ++b) {
    for (std::int64_t i = 0; i < q.shape[2]; ++i) {
      for (std::int64_t h = 0; h < q.shape[1]; ++h) {
        append_bytes(made.bytes, q, ((b * q.shape[1] + h) * q.shape[2] + i) * q.shape[3], q.shape[3]);
      }
    }
  }
  return made;
}

namespace {

// The number of queries of each sequence, where q has rows that are none: q_lens [B], or the offsets of a padded q.
std::vector<std::int64_t> used_queries(LayoutReader& r, const Tensor& q, std::int64_t batch) {
  const bool by_lens = r.has("q_lens");
  const bool by_offsets = !by_lens && q.shape.size() == 4 && r.has("query_offsets");
  if (!by_lens && !by_offsets) return {};
  const char* name = by_lens ? "q_lens" : "query_offsets";
  const std::size_t faults_before = r.faults.size();
  std::vector<std::int64_t> lens = r.integers(name, 1, by_lens ? "[B]" : "[B + 1]");
  if (r.faults.size() > faults_before) return {};
  if (by_offsets && !lens.empty()) {
    std::adjacent_difference(lens.begin(), lens.end(), lens.begin());
    lens.erase(lens.begin());
  }
  if (std::cmp_not_equal(lens.size(), batch)) {
    r.fault(r.given(name), fmt::format("is given for {} sequences, but there are {}", lens.size(), batch));
    return {};
  }
  return lens;
}

// The first lens[b] rows of each sequence b of q, one after the other.
Tensor without_padding(LayoutReader& r, const Tensor& q, const std::vector<std::int64_t>& lens) {
  Tensor made{q.dtype, {0, q.shape[q.shape.size() - 2], q.shape.back()}, {}};
  const std::int64_t row = made.shape[1] * made.shape[2];
  std::vector<std::int64_t> starts;  // [batch + 1]
  if (q.shape.size() == 4) {
    for (std::int64_t b = 0; b <= q.shape[0]; ++b) starts.push_back(b * q.shape[1]);
  } else if (r.has("query_offsets")) {
    starts = r.integers("query_offsets", 1, "[B + 1]");
  }
  for (std::size_t b = 0; b < lens.size(); ++b) {
    const bool is_inside = b + 1 < starts.size() && lens[b] >= 0 && starts[b] >= 0 &&
                           starts[b] + lens[b] <= starts[b + 1] &&
                           starts[b + 1] <= *element_count(q.shape) / std::max<std::int64_t>(row, 1);
    if (!is_inside) {
      r.fault(r.given(r.has("q_lens") ? "q_lens" : "query_offsets"),
              fmt::format("gives sequence {} {} queries, more than q {} has for it", b, lens[b], shape_text(q.shape)));
      break;
    }
    append_bytes(made.bytes, q, starts[b] * row, lens[b] * row);
    made.shape[0] += lens[b];
  }
  return made;
}

}  // namespace

void read_queries(LayoutReader& r, const LayoutDescription& layout, PreparedProblem& prepared) {
  attention::Problem& problem = prepared.problem;
  const auto batch = static_cast<std::int64_t>(r.pages.first.size());
  problem.batch = batch;
  const bool batch_known = r.ok() || batch > 0;  // otherwise the fault of the index tensors is already reported
  const bool joined = !r.has("q") && (r.has("q_nope") || r.has("q_pe"));
  Tensor made;
  const Tensor* found = joined ? joined_queries(r, made) : r.find("q");
  if (found == nullptr) {
    if (joined) return;
    r.fault("q", layout.queries_by_head
                     ? "is missing; it is [B, Hq, queries, D], or [T, Hq, D] with query_offsets [B + 1]"
                     : "is missing; it is [T, Hq, D] with query_offsets [B + 1], or [B, queries, Hq, D]");
    return;
  }
  const std::string q_name = r.given(joined ? "q_nope" : "q");
  if (layout.queries_by_head && found->shape.size() == 4 && found->dtype != DType::e2m1) {
    made = exchange_middle_axes(*found);
    found = &made;
  }
  const std::size_t faults_before = r.faults.size();
  const bool is_rows = (found->shape.size() == 3 || found->shape.size() == 4) && found->dtype != DType::e2m1;
  std::vector<std::int64_t> lens = is_rows ? used_queries(r, *found, batch) : std::vector<std::int64_t>{};
  if (!lens.empty()) {
    Tensor used = without_padding(r, *found, lens);
    made = std::move(used);
    found = &made;
  }
  if (r.faults.size() > faults_before) return;
  if (layout.table.form == TableForm::sparse && found->shape.size() == 4 && is_rows) {  // a sequence for each query
    if (found != &made) made = *found;
    made.shape = {made.shape[0] * made.shape[1], made.shape[2], made.shape[3]};
    found = &made;
  }
  if (found == &made) prepared.q_copy = std::move(made.bytes);
  const Tensor& q = *found;
  problem.q_dtype = r.options().query_dtype.value_or(q.dtype);
  if (is_float(q.dtype) && problem.q_dtype != q.dtype) {
    r.fault(q_name, fmt::format("is {}: --query-dtype {} is for bit patterns that are stored as u8 or u16; remove it",
                                name(q.dtype), name(problem.q_dtype)));
  } else if (bits(problem.q_dtype) != bits(q.dtype) || !is_float(problem.q_dtype)) {
    r.fault(q_name, pattern_fault(q.dtype, r.options().query_dtype, "--query-dtype"));
  }
  const std::string offsets_name = r.has("query_offsets") ? r.given("query_offsets") : "";
  std::int64_t rows = 0;
  if (q.shape.size() == 4) {
    rows = q.shape[0] * q.shape[1];
    if (q.shape[0] != batch) {
      r.fault(q_name, fmt::format("has shape {}, but there are {} sequences", shape_text(q.shape), batch));
      return;
    }
    for (std::int64_t b = 0; b <= batch; ++b) prepared.query_offsets.push_back(b * q.shape[1]);
  } else if (q.shape.size() == 3) {
    rows = q.shape[0];
    if (!lens.empty()) {
      prepared.query_offsets.push_back(0);
      for (const std::int64_t count : lens) prepared.query_offsets.push_back(prepared.query_offsets.back() + count);
    } else if (!offsets_name.empty()) {
      const std::size_t before = r.faults.size();
      prepared.query_offsets = r.integers("query_offsets", 1, "[B + 1]");
      if (r.faults.size() > before) return;
    } else if (rows == batch) {
      for (std::int64_t b = 0; b <= batch; ++b) prepared.query_offsets.push_back(b);
    } else {
      if (batch_known)
        r.fault(q_name,
                fmt::format("has {} rows for {} sequences: add query_offsets [B + 1]{}", rows, batch,
                            q.shape[1] == batch ? fmt::format("; if q is [Hq, B, D], transpose it to {}",
                                                              shape_text(std::array{batch, q.shape[0], q.shape[2]}))
                                                : ""));
      return;
    }
  } else {
    r.fault(q_name, fmt::format("has shape {}; it is [T, Hq, D] or [B, queries, Hq, D]", shape_text(q.shape)));
    return;
  }
  const std::vector<std::int64_t>& offsets = prepared.query_offsets;
  if (batch_known && (offsets.size() != static_cast<std::size_t>(batch) + 1 || offsets.front() != 0 ||
                      offsets.back() != rows || !std::is_sorted(offsets.begin(), offsets.end()))) {
    r.fault(offsets_name.empty() ? q_name : offsets_name,
            fmt::format("must be {} entries, rising from 0 to the {} rows of q", batch + 1, rows));
  }
  problem.query_heads = q.shape[q.shape.size() - 2];
  problem.q = found == &made ? std::as_const(prepared.q_copy).data() : q.bytes.data();
  if (q.shape.back() != r.head_size && r.head_size > 0) {
    r.fault(q_name,
            fmt::format("has shape {}, but a head of the cache has {} elements", shape_text(q.shape), r.head_size));
  }
  if (r.heads > 0 && (problem.query_heads == 0 || problem.query_heads % r.heads != 0)) {
    r.fault(q_name, fmt::format("has {} heads, not a multiple of the {} kv heads", problem.query_heads, r.heads));
  }
  for (auto& [name, to] : {std::pair<const char*, std::vector<double>&>{"alibi_slopes", prepared.alibi_slopes},
                           {"sinks", prepared.sinks}}) {
    if (!r.has(name)) continue;
    const Tensor* tensor = r.tensor(name, 1, "[Hq]");
    if (tensor == nullptr) continue;
    if (tensor->shape[0] != problem.query_heads) {
      r.fault(r.given(name), fmt::format("has {} entries for {} query heads", tensor->shape[0], problem.query_heads));
    } else {
      to.resize(static_cast<std::size_t>(tensor->shape[0]));
      to_doubles(tensor->dtype, tensor->bytes.data(), to);
    }
  }
}

}  // namespace kvscope::golden
