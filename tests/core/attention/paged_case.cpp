#include "tests/core/attention/paged_case.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <sstream>

#include "core/base/convert.h"
#include "core/base/random.h"

namespace kvscope::attention::testing {
namespace {

std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

double round_to(DType dtype, double x) {
  std::byte bytes[8];
  store_from_double(dtype, x, bytes, Overflow::saturate);
  return load_as_double(dtype, bytes);
}

double poison_value(Poison poison, DType dtype) {
  if (poison == Poison::infinity && dtype != DType::e4m3) return std::numeric_limits<double>::infinity();
  return std::numeric_limits<double>::quiet_NaN();
}

std::vector<std::byte> poisoned(std::int64_t count, DType dtype, Poison poison, std::uint64_t stream) {
  const CounterRng rng(77, stream);
  std::vector<std::byte> bytes(at(count * size_of(dtype)));
  for (std::int64_t i = 0; i < count; ++i) {
    const double x =
        poison == Poison::plausible ? rng.bell(static_cast<std::uint64_t>(i)) : poison_value(poison, dtype);
    store_from_double(dtype, x, bytes.data() + i * size_of(dtype), Overflow::non_saturating);
  }
  return bytes;
}

}  // namespace

bool sees(const Options& o, std::int64_t query, std::int64_t queries, std::int64_t keys, std::int64_t key) {
  const std::int64_t own = o.alignment == CausalAlignment::bottom_right ? keys - queries + query : query;
  switch (o.mask) {
    case MaskKind::none:
      return true;
    case MaskKind::causal:
      return key <= own;
    case MaskKind::sliding_window:
      return (o.window_left == -1 || key >= own - o.window_left) &&
             (o.window_right == -1 || key <= own + o.window_right);
    case MaskKind::chunked:
      return own >= 0 && key <= own && key / o.chunk == own / o.chunk;
  }
  return false;
}

PagedCase::PagedCase(const Spec& s) : spec(s) {
  spec.options.alibi_slopes = spec.slopes;
  spec.options.sinks = spec.sinks;
  const auto batch = static_cast<std::int64_t>(spec.lengths.size());
  std::int64_t tokens = 0;
  query_offsets.push_back(0);
  for (std::size_t b = 0; b < spec.lengths.size(); ++b) {
    first_token_.push_back(tokens);
    tokens += spec.lengths[b];
    query_offsets.push_back(query_offsets.back() + spec.queries[b]);
  }
  const CounterRng rng(spec.seed, 3);
  const std::int64_t q_count = query_offsets.back() * spec.query_heads * spec.head_size;
  q.resize(at(q_count * size_of(spec.q_dtype)));
  for (std::int64_t i = 0; i < q_count; ++i) {
    q_values_.push_back(round_to(spec.q_dtype, 1.5 * rng.bell(static_cast<std::uint64_t>(i))));
    store_from_double(spec.q_dtype, q_values_.back(), q.data() + i * size_of(spec.q_dtype), Overflow::saturate);
  }
  k_values_ = draw(1, spec.head_size);
  if (!spec.mla) v_values_ = draw(2, spec.value_size);
  place_pages();

  problem.batch = batch;
  problem.query_heads = spec.query_heads;
  problem.q = q.data();
  problem.q_dtype = spec.q_dtype;
  problem.query_offsets = query_offsets;
  problem.key_lengths = spec.lengths;
  problem.k = scatter(k_values_, k_pool, k_scales);
  if (spec.mla) {
    problem.v = problem.k;
    problem.v.head_size = spec.value_size;
  } else {
    problem.v = scatter(v_values_, v_pool, v_scales);
  }
  problem.options = spec.options;
}

PagedCase::Values PagedCase::draw(std::uint64_t stream, std::int64_t size) const {
  const CounterRng rng(spec.seed, stream);
  const std::int64_t tokens = std::accumulate(spec.lengths.begin(), spec.lengths.end(), std::int64_t{0});
  Values v;
  v.size = size;
  v.granules = spec.granularity == 0 ? 0 : (size + spec.granularity - 1) / spec.granularity;
  for (std::int64_t i = 0; i < tokens * spec.kv_heads * size; ++i) {
    v.elements.push_back(round_to(spec.dtype, rng.bell(static_cast<std::uint64_t>(i))));
  }
  const CounterRng scale_rng(spec.seed, stream + 10);
  for (std::int64_t i = 0; i < tokens * spec.kv_heads * v.granules; ++i) {
    v.scales.push_back(round_to(spec.scale_dtype, 0.5 + scale_rng.uniform(static_cast<std::uint64_t>(i))));
  }
  return v;
}

// Block ids are drawn without replacement; entries of pages that no query sees, and the table's tail,
// are not valid blocks.
void PagedCase::place_pages() {
  const auto batch = static_cast<std::int64_t>(spec.lengths.size());
  std::int64_t longest = 0;
  std::int64_t pages = 0;
  for (const std::int64_t length : spec.lengths) {
    longest = std::max(longest, (length + spec.page_size - 1) / spec.page_size);
    pages += (length + spec.page_size - 1) / spec.page_size;
  }
  blocks = pages + 4;
  std::vector<std::uint32_t> order(at(blocks));
  std::iota(order.begin(), order.end(), 0u);
  const CounterRng rng(spec.placement, 5);
  for (std::int64_t i = blocks - 1; i > 0; --i) {
    std::swap(order[at(i)], order[at(rng.integer(static_cast<std::uint64_t>(i), 0, i))]);
  }
  const std::int64_t columns = longest + 3;
  table.assign(at(batch * columns), 0xffffffffu);
  std::size_t next = 0;
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t page = 0; page * spec.page_size < spec.lengths[at(b)]; ++page) {
      const std::uint32_t block = order[next++];
      bool seen = false;
      for (std::int64_t slot = 0; slot < spec.page_size; ++slot) {
        const std::int64_t token = page * spec.page_size + slot;
        for (std::int64_t i = 0; i < spec.queries[at(b)] && token < spec.lengths[at(b)]; ++i) {
          seen = seen || sees(spec.options, i, spec.queries[at(b)], spec.lengths[at(b)], token);
        }
      }
      if (seen) table[at(b * columns + page)] = block;
    }
  }
  stale_block = order[next++];
  zero_block = order[next++];
  scales_table = table;
  for (std::uint32_t& entry : scales_table) {
    if (entry < blocks) entry = static_cast<std::uint32_t>(blocks - 1 - entry);
  }
}

PagedRows PagedCase::scatter(const Values& values, std::vector<std::byte>& pool, std::vector<std::byte>& scales) const {
  const std::int64_t row = values.size + spec.row_padding;
  const std::int64_t page_elements = spec.page_size * spec.kv_heads * row;
  PagedRows r;
  r.dtype = spec.dtype;
  r.blocks = blocks;
  r.page_size = spec.page_size;
  r.heads = spec.kv_heads;
  r.head_size = values.size;
  r.block_stride = spec.layers * page_elements;
  r.token_stride = spec.hnd ? row : spec.kv_heads * row;
  r.head_stride = spec.hnd ? spec.page_size * row : row;
  r.table = table.data();
  r.table_stride = static_cast<std::int64_t>(table.size() / std::max<std::size_t>(1, spec.lengths.size()));
  pool = poisoned(blocks * r.block_stride, spec.dtype, spec.poison, values.size == spec.head_size ? 1 : 2);
  std::byte* base = pool.data() + (spec.layers - 1) * page_elements * size_of(spec.dtype);
  r.data = base;

  const std::int64_t scale_page = spec.page_size * spec.kv_heads * values.granules;
  if (spec.granularity != 0) {
    scales = poisoned(blocks * scale_page, spec.scale_dtype, spec.poison, 9);
    r.scales = scales.data();
    r.scale_dtype = spec.scale_dtype;
    r.granularity = spec.granularity;
    r.scale_block_stride = scale_page;
    r.scale_token_stride = spec.kv_heads * values.granules;
    r.scale_head_stride = values.granules;
    r.scales_table = spec.own_scales_table ? scales_table.data() : nullptr;
  }
  for (std::size_t b = 0; b < spec.lengths.size(); ++b) {
    for (std::int64_t t = 0; t < spec.lengths[b]; ++t) {
      const std::size_t column = b * at(r.table_stride) + at(t / spec.page_size);
      if (table[column] == 0xffffffffu) continue;
      bool seen = false;
      for (std::int64_t i = 0; i < spec.queries[b]; ++i)
        seen = seen || sees(spec.options, i, spec.queries[b], spec.lengths[b], t);
      if (!seen) continue;
      const std::int64_t slot = t % spec.page_size;
      for (std::int64_t h = 0; h < spec.kv_heads; ++h) {
        const std::int64_t logical = (first_token_[b] + t) * spec.kv_heads + h;
        const std::int64_t offset = table[column] * r.block_stride + slot * r.token_stride + h * r.head_stride;
        for (std::int64_t d = 0; d < values.size; ++d) {
          store_from_double(spec.dtype, values.elements[at(logical * values.size + d)],
                            base + (offset + d) * size_of(spec.dtype), Overflow::saturate);
        }
        const std::int64_t scale_block = spec.own_scales_table ? scales_table[column] : table[column];
        for (std::int64_t g = 0; g < values.granules; ++g) {
          const std::int64_t s =
              scale_block * r.scale_block_stride + slot * r.scale_token_stride + h * r.scale_head_stride + g;
          store_from_double(spec.scale_dtype, values.scales[at(logical * values.granules + g)],
                            scales.data() + s * size_of(spec.scale_dtype), Overflow::saturate);
        }
      }
    }
  }
  std::fill_n(base + zero_block * r.block_stride * size_of(spec.dtype), page_elements * size_of(spec.dtype),
              std::byte{0});
  return r;
}

double PagedCase::query(std::int64_t row, std::int64_t head, std::int64_t dim) const {
  return q_values_[at((row * spec.query_heads + head) * spec.head_size + dim)];
}

double PagedCase::stored(const Values& values, std::int64_t seq, std::int64_t token, std::int64_t head,
                         std::int64_t dim) const {
  const std::int64_t logical = (first_token_[at(seq)] + token) * spec.kv_heads + head;
  const double x = values.elements[at(logical * values.size + dim)];
  return values.granules == 0 ? x : x * values.scales[at(logical * values.granules + dim / spec.granularity)];
}

double PagedCase::key(std::int64_t seq, std::int64_t token, std::int64_t head, std::int64_t dim) const {
  return stored(k_values_, seq, token, head, dim);
}

double PagedCase::value(std::int64_t seq, std::int64_t token, std::int64_t head, std::int64_t dim) const {
  return stored(spec.mla ? k_values_ : v_values_, seq, token, head, dim);
}

OracleRow oracle(const PagedCase& c, std::int64_t seq, std::int64_t query, std::int64_t head) {
  const Spec& s = c.spec;
  const Options& options = c.problem.options;
  const std::int64_t queries = s.queries[at(seq)];
  const std::int64_t keys = s.lengths[at(seq)];
  const std::int64_t kv_head = head / (s.query_heads / s.kv_heads);
  const std::int64_t own = options.alignment == CausalAlignment::bottom_right ? keys - queries + query : query;
  OracleRow r;
  r.o.assign(at(s.value_size), 0.0L);
  r.a1 = r.a2 = r.o;
  std::vector<long double> scores;
  std::vector<std::int64_t> visible;
  for (std::int64_t t = keys - 1; t >= 0; --t) {
    if (!sees(options, query, queries, keys, t)) continue;
    long double dot = 0;
    for (std::int64_t d = s.head_size - 1; d >= 0; --d) {
      dot += static_cast<long double>(c.query(c.query_offsets[at(seq)] + query, head, d)) *
             static_cast<long double>(c.key(seq, t, kv_head, d));
    }
    long double score = dot * static_cast<long double>(options.scale);
    if (options.soft_cap) {
      const auto cap = static_cast<long double>(*options.soft_cap);
      score = cap * std::tanh(score / cap);
    }
    if (!s.slopes.empty()) score += static_cast<long double>(s.slopes[at(head)]) * static_cast<long double>(t - own);
    scores.push_back(score);
    visible.push_back(t);
    r.smax = std::max(r.smax, std::fabs(score));
  }
  r.empty = visible.empty();
  if (r.empty) return r;
  long double largest = *std::max_element(scores.begin(), scores.end());
  if (!s.sinks.empty()) largest = std::max(largest, static_cast<long double>(s.sinks[at(head)]));
  long double sum = s.sinks.empty() ? 0.0L : std::exp(static_cast<long double>(s.sinks[at(head)]) - largest);
  for (const long double score : scores) sum += std::exp(score - largest);
  for (std::size_t i = 0; i < visible.size(); ++i) {
    const long double p = std::exp(scores[i] - largest) / sum;
    r.p2 += p * p;
    for (std::int64_t d = 0; d < s.value_size; ++d) {
      const auto v = static_cast<long double>(c.value(seq, visible[i], kv_head, d));
      r.o[at(d)] += p * v;
      r.a1[at(d)] += p * std::fabs(v);
      r.a2[at(d)] += p * v * p * v;
      r.largest_value = std::max(r.largest_value, std::fabs(v));
    }
  }
  for (long double& x : r.a2) x = std::sqrt(x);
  r.p2 = std::sqrt(r.p2);
  r.keys = static_cast<long double>(visible.size());
  r.lse = largest + std::log(sum);
  if (options.lse_base == LseBase::two) r.lse /= std::log(2.0L);
  return r;
}

std::vector<std::uint64_t> bits_of(const Result& r) {
  std::vector<std::uint64_t> bits;
  const auto add = [&bits](const auto& tensor) {
    for (const double x : tensor) bits.push_back(std::bit_cast<std::uint64_t>(x));
  };
  add(r.o), add(r.lse), add(r.a1), add(r.a2), add(r.smax);
  return bits;
}

std::vector<std::uint64_t> term_bits_of(const Result& r) {
  std::vector<std::uint64_t> bits;
  const auto add = [&bits](const auto& tensor) {
    for (const double x : tensor) bits.push_back(std::bit_cast<std::uint64_t>(x));
  };
  add(r.running), add(r.keys), add(r.p2), add(r.clump), add(r.repeats), add(r.faint), add(r.lost), add(r.partial_sums);
  add(r.row_sum_cut), add(r.largest_value);
  return bits;
}

std::string describe(const Spec& s) {
  std::ostringstream text;
  text << "lengths";
  for (const std::int64_t n : s.lengths) text << ' ' << n;
  text << ", queries";
  for (const std::int64_t n : s.queries) text << ' ' << n;
  text << ", heads " << s.query_heads << '/' << s.kv_heads << ", d " << s.head_size << '/' << s.value_size << ", page "
       << s.page_size << ", " << name(s.dtype) << (s.hnd ? ", HND" : ", NHD") << (s.mla ? ", MLA" : "")
       << ", granularity " << s.granularity << ", mask " << static_cast<int>(s.options.mask) << ", alignment "
       << static_cast<int>(s.options.alignment);
  return text.str();
}

}  // namespace kvscope::attention::testing
