// Attention problems for tests: first values as plain [sequence][token][head][dim] numbers that an oracle can
// read, then the same values scattered over the pages of a pool in which every other slot, dim, layer, scale and
// table entry is poison.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/attention/problem.h"
#include "core/attention/result.h"

namespace kvscope::attention::testing {

enum class Poison : std::uint8_t { plausible, nan, infinity };  // the contents of everything that must not be read

struct Spec {
  std::vector<std::int64_t> lengths{9, 4};  // [tokens] keys of each sequence
  std::vector<std::int64_t> queries{1, 1};  // queries of each sequence
  std::int64_t query_heads = 4;
  std::int64_t kv_heads = 2;
  std::int64_t head_size = 8;
  std::int64_t value_size = 8;
  std::int64_t page_size = 4;
  std::int64_t layers = 2;  // the problem uses the last layer; rows of the others are between its pages
  DType dtype = DType::f32;
  DType q_dtype = DType::f32;
  DType scale_dtype = DType::f32;
  std::int64_t granularity = 0;  // 0: not quantized
  bool own_scales_table = false;
  bool mla = false;              // V is the first value_size elements of K
  bool hnd = false;              // page [head, slot, dim] instead of [slot, head, dim]
  std::int64_t row_padding = 0;  // unused elements after each head's row

  Options options;  // its spans are filled from the two below
  std::vector<double> slopes;
  std::vector<double> sinks;

  std::uint64_t seed = 1;       // of the values
  std::uint64_t placement = 1;  // of the pages in the pool
  Poison poison = Poison::nan;
};

// The keys that a query sees, key by key from the definition, without the code of mask.h.
[[nodiscard]] bool sees(const Options& options, std::int64_t query, std::int64_t queries, std::int64_t keys,
                        std::int64_t key);

class PagedCase {
 public:
  explicit PagedCase(const Spec& spec);
  PagedCase(const PagedCase&) = delete;

  Spec spec;
  std::vector<std::byte> q;
  std::vector<std::byte> k_pool, v_pool;
  std::vector<std::byte> k_scales, v_scales;
  std::vector<std::uint32_t> table, scales_table;
  std::vector<std::int64_t> query_offsets;
  std::int64_t blocks = 0;
  std::uint32_t stale_block = 0;  // owned by no sequence, holds other values (poison unless plausible)
  std::uint32_t zero_block = 0;   // owned by no sequence, all bits zero
  Problem problem;

  // Stored values, decoded: the input of both the reference and an oracle.
  [[nodiscard]] double query(std::int64_t row, std::int64_t head, std::int64_t dim) const;
  [[nodiscard]] double key(std::int64_t seq, std::int64_t token, std::int64_t head, std::int64_t dim) const;
  [[nodiscard]] double value(std::int64_t seq, std::int64_t token, std::int64_t head, std::int64_t dim) const;

 private:
  struct Values {
    std::vector<double> elements;  // [sequence's first token + token, head, dim]
    std::vector<double> scales;    // [same, head, granule]
    std::int64_t size = 0;
    std::int64_t granules = 0;
  };
  [[nodiscard]] double stored(const Values& values, std::int64_t seq, std::int64_t token, std::int64_t head,
                              std::int64_t dim) const;
  Values draw(std::uint64_t stream, std::int64_t size) const;
  void place_pages();
  PagedRows scatter(const Values& values, std::vector<std::byte>& pool, std::vector<std::byte>& scales) const;

  std::vector<std::int64_t> first_token_;  // [sequence]
  std::vector<double> q_values_;
  Values k_values_, v_values_;
};

// Plain loops in long double over contiguous rows, keys from the last to the first.
struct OracleRow {
  std::vector<long double> o, a1, a2;  // [value_dim]
  long double lse = 0;
  long double smax = 0;
  long double p2 = 0, keys = 0;
  long double largest_value = 0;  // max |v| of the visible keys
  bool empty = true;
};
[[nodiscard]] OracleRow oracle(const PagedCase& c, std::int64_t seq, std::int64_t query, std::int64_t head);

// Every bit of a result, in one list.
[[nodiscard]] std::vector<std::uint64_t> bits_of(const Result& result);
// The same of the terms of the bound that `bits_of` leaves out: running, keys, p2, clump.
[[nodiscard]] std::vector<std::uint64_t> term_bits_of(const Result& r);

// Largest |v| that a query sees, according to the case's predicate.
[[nodiscard]] std::string describe(const Spec& spec);

}  // namespace kvscope::attention::testing
