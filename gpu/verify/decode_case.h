// One decode step on a device, compared with the golden reference: shared by the cases of paged_decode and
// continuous_decode.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numbers>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <xtensor/xview.hpp>

#include "core/base/convert.h"
#include "gpu/offload/decode_launch.h"
#include "gpu/verify/attention_check.h"
#include "gpu/verify/cache_fixture.h"
#include "gpu/verify/case.h"

namespace kvscope::gpu {

struct DecodeCase {
  const char* name;
  const char* what;
  CacheShape shape;
  int group = 1;  // query heads per KV head
  std::int64_t layer = 0;
  DType out = DType::bf16;
  int splits = 1;            // 0: chosen by the plan for 132 multiprocessors
  std::int64_t padding = 0;  // [elements] after each token's row
  double sharpness = 1;      // factor of the scale: with 100, powers of two of scores overflow a float
  // An unassigned page of a sequence, which reads as zeros. -1: none.
  std::int64_t hole_sequence = -1, hole_page = 0;
  double soft_cap = 0;       // 0: none
  std::int64_t window = 0;   // the query attends to this many keys, the last ones; 0: all
  bool alibi_sinks = false;  // ALiBi slopes and sinks, different for each query head
  bool demo = false;
  Budget budget{};
};

// Probabilities are rounded to the type of the product: that of the cache, bf16 for e4m3.
inline DType decode_query_type(DType cache) {
  return cache == DType::e4m3 ? DType::bf16 : cache;
}

// The pool with `padding` poisoned elements after each token's row of all heads.
inline std::vector<std::byte> padded_rows(const std::vector<std::byte>& pool, std::int64_t row_bytes,
                                          std::int64_t padding_bytes) {
  const std::int64_t rows = static_cast<std::int64_t>(pool.size()) / row_bytes, pitch = row_bytes + padding_bytes;
  std::vector<std::byte> padded(static_cast<std::size_t>(rows * pitch), std::byte{0xff});
  for (std::int64_t row = 0; row < rows; ++row)
    std::copy_n(pool.begin() + row * row_bytes, row_bytes, padded.begin() + row * pitch);
  return padded;
}

// K or V of a layer for the reference. A hole's page is a block of zeros that only the reference has.
class DecodeGolden {
 public:
  DecodeGolden(const CacheFixture& cache, const DecodeCase& c)
      : pool_(cache.pool()), scales_(cache.scales()), table_(cache.table()) {
    k = cache.rows(c.layer, Slot::key);
    v = cache.rows(c.layer, Slot::value);
    const std::int64_t element = size_of(c.shape.dtype);
    pool_.resize(pool_.size() + static_cast<std::size_t>(k.block_stride * element), std::byte{0});
    scales_.resize(scales_.size() + static_cast<std::size_t>(k.scale_block_stride), 0.0F);
    if (c.hole_sequence >= 0) table_(c.hole_sequence, c.hole_page) = static_cast<std::uint32_t>(k.blocks);
    for (attention::PagedRows* rows : {&k, &v}) {
      rows->data = pool_.data() + (rows->data - cache.pool().data());
      if (rows->scales != nullptr)
        rows->scales = reinterpret_cast<const std::byte*>(scales_.data()) +
                       (rows->scales - reinterpret_cast<const std::byte*>(cache.scales().data()));
      rows->table = table_.data();
      rows->blocks += 1;
    }
  }
  DecodeGolden(const DecodeGolden&) = delete;
  DecodeGolden& operator=(const DecodeGolden&) = delete;

  [[nodiscard]] const std::vector<std::byte>& pool() const { return pool_; }

  attention::PagedRows k, v;

 private:
  std::vector<std::byte> pool_;
  std::vector<float> scales_;
  xt::xtensor<std::uint32_t, 2> table_;
};

// The score modifiers of a case, on the host for the reference and on the device.
struct DecodeScores {
  DecodeScores(Device& device, const DecodeCase& c, std::int64_t batch, std::int64_t query_heads) {
    std::vector<std::int32_t> positions;
    for (const std::int64_t length : c.shape.lengths) {
      firsts.push_back(static_cast<std::uint32_t>(c.window > 0 ? std::max<std::int64_t>(length - c.window, 0) : 0));
      positions.push_back(static_cast<std::int32_t>(length - 1));
    }
    std::vector<float> slopes_log2, sinks_log2;
    for (std::int64_t h = 0; h < query_heads; ++h) {
      slopes.push_back(std::ldexp(1.0, -static_cast<int>(h % 6)));
      sinks.push_back(static_cast<double>(h % 5) / 2 - 1);
      slopes_log2.push_back(static_cast<float>(slopes.back() * std::numbers::log2e));
      sinks_log2.push_back(static_cast<float>(sinks.back() * std::numbers::log2e));
    }
    if (batch > 0) {
      first_array = device.upload_values("first keys", firsts);
      position_array = device.upload_values("positions", positions);
    }
    slope_array = device.upload_values("slopes", slopes_log2);
    sink_array = device.upload_values("sinks", sinks_log2);
  }
  std::vector<std::uint32_t> firsts;  // [batch]
  std::vector<double> slopes, sinks;  // [query_heads]
  DeviceArray first_array, position_array, slope_array, sink_array;
};

inline Verdict run_decode_case(Device& device, const std::string& kernel, const DecodeCase& c) {
  const CacheFixture cache(c.shape);
  const std::int64_t batch = cache.sequences(), D = c.shape.head_size, element = size_of(c.shape.dtype);
  const std::int64_t query_heads = c.shape.kv_heads * c.group, rows = batch * query_heads;
  const DType query_type = decode_query_type(c.shape.dtype);

  UploadedCache there = cache.upload(device);
  PagedCache k = there.layer(c.layer, Slot::key), v = there.layer(c.layer, Slot::value);
  xt::xtensor<std::uint32_t, 2> table = cache.table();
  if (c.hole_sequence >= 0) table(c.hole_sequence, c.hole_page) = 0x7fffffffU;
  if (kernel == "continuous_decode") {
    const xt::xtensor<std::uint32_t, 1> blocks = xt::view(table, xt::all(), 0);  // [sequence]
    there.table = upload_tensor(device, "table", blocks);
    k.table_stride = v.table_stride = 1;
  } else {  // the array ends after the last sequence's pages, so reading one entry too many is out of bounds
    const std::int64_t pages = (c.shape.lengths.back() + c.shape.page_size - 1) / c.shape.page_size;
    const auto entries = static_cast<std::size_t>((batch - 1) * cache.table_stride() + pages);
    there.table = device.upload("table", std::as_bytes(std::span(table.data(), entries)));
  }
  k.table = v.table = there.table.as<const std::uint32_t>();
  if (c.padding > 0) {
    const std::int64_t row = c.shape.kv_heads * D, pitch = row + c.padding;
    there.pool = device.upload("padded pool", padded_rows(cache.pool(), row * element, c.padding * element));
    for (auto& [view, slot] : {std::pair(&k, Slot::key), std::pair(&v, Slot::value)}) {
      const std::int64_t first = (cache.rows(c.layer, slot).data - cache.pool().data()) / (row * element);  // [rows]
      view->data = there.pool.as<std::byte>() + first * pitch * element;
      view->token_stride = pitch;
      view->block_stride = view->block_stride / row * pitch;
    }
  }

  const std::vector<std::byte> q = exact_noise(query_type, rows * D, c.shape.seed + 100);
  const DeviceArray queries = device.upload("q", q);
  const std::int64_t out_bytes = rows * D * size_of(c.out), guard = 256;
  const DeviceArray out = device.filled("o", out_bytes + guard, std::byte{0xab});
  const DeviceArray lse = device.filled("lse", rows * 4 + guard, std::byte{0xab});

  DecodeStep step{.kernel = kernel, .cache = c.shape.dtype, .out = c.out, .k = k, .v = v};
  step.q = queries.as<const void>();
  step.lengths = there.lengths.as<const std::uint32_t>();
  for (const std::int64_t length : c.shape.lengths) step.host_lengths.push_back(static_cast<std::uint32_t>(length));
  step.o = out.as<void>();
  step.lse = lse.as<float>();
  step.query_heads = static_cast<int>(query_heads);
  step.scale = c.sharpness / std::sqrt(static_cast<double>(D));
  step.splits = c.splits;
  step.multiprocessors = 132;
  step.soft_cap = c.soft_cap;
  const DecodeScores scores(device, c, batch, query_heads);
  if (c.window > 0) {
    step.firsts = scores.first_array.as<const std::uint32_t>();
    step.host_firsts = scores.firsts;
  }
  if (c.alibi_sinks) {
    step.slopes_log2 = scores.slope_array.as<const float>();
    step.positions = scores.position_array.as<const std::int32_t>();
    step.sinks_log2 = scores.sink_array.as<const float>();
  }
  const DecodeCall call(device, step);
  Verdict verdict;
  if (!verdict.take(device.launch(call.attend, bytes_of(call.params))) ||
      !verdict.take(device.launch(call.combine, bytes_of(call.params))))
    return verdict;

  const DecodeGolden golden(cache, c);
  attention::Problem problem;
  problem.batch = batch;
  problem.query_heads = query_heads;
  problem.q = q.data();
  problem.q_dtype = query_type;
  std::vector<std::int64_t> offsets;
  for (std::int64_t b = 0; b <= batch; ++b) offsets.push_back(b);
  problem.query_offsets = offsets;
  problem.key_lengths = c.shape.lengths;
  problem.k = golden.k;
  problem.v = golden.v;
  problem.options.mask = MaskKind::none;
  problem.options.scale = step.scale;
  if (c.soft_cap > 0) problem.options.soft_cap = c.soft_cap;
  if (c.window > 0) {
    problem.options.mask = MaskKind::sliding_window;
    problem.options.window_left = c.window - 1;
  }
  if (c.alibi_sinks) {
    problem.options.alibi_slopes = scores.slopes;
    problem.options.sinks = scores.sinks;
  }

  std::vector<std::byte> got = out.download();
  std::vector<float> got_lse = lse.download_as<float>();
  const auto untouched = [](std::span<const std::byte> bytes) {
    return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0xab}; });
  };
  if (!untouched(std::span(got).subspan(static_cast<std::size_t>(out_bytes))) ||
      !untouched(std::as_bytes(std::span(got_lse).subspan(static_cast<std::size_t>(rows)))))
    verdict.faults.push_back("bytes behind o or lse are not what they were");
  got.resize(static_cast<std::size_t>(out_bytes));
  got_lse.resize(static_cast<std::size_t>(rows));

  // f32 output of 16-bit probabilities: the bound is that of the product's type, after rounding to it.
  DType bound = c.out;
  if (c.out == DType::f32 && query_type != DType::f32) {
    bound = query_type;
    std::vector<std::byte> rounded(static_cast<std::size_t>(rows * D * size_of(bound)));
    for (std::int64_t i = 0; i < rows * D; ++i)
      store_from_double(bound, load_as_double(c.out, got.data() + i * 4), rounded.data() + i * size_of(bound),
                        Overflow::saturate);
    got = std::move(rounded);
  }
  check_attention(verdict, problem, bound, got, got_lse, cache.around(c.layer, golden.pool()));
  return verdict;
}

// Converts the descriptions to cases.
inline std::vector<Case> decode_cases(const std::string& kernel, std::vector<DecodeCase> list) {
  return cases_of(kernel, std::move(list),
                  [kernel](const DecodeCase& c, Device& device) { return run_decode_case(device, kernel, c); });
}

}  // namespace kvscope::gpu
