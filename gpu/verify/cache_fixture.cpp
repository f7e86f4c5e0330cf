#include "gpu/verify/cache_fixture.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <xtensor/xview.hpp>

#include "core/base/checked.h"
#include "core/base/convert.h"
#include "core/base/random.h"
#include "core/layout/filled.h"

namespace kvscope::gpu {
namespace {

constexpr std::byte kPoison{0xff};

// Numbers n / 2^fraction with |n| <= most: all of them are in [-2, 2) and exact in `dtype`.
struct Grid {
  std::int64_t most = 0;
  int fraction = 0;
};
Grid grid_of(DType dtype) {
  switch (dtype) {
    case DType::e4m3:
      return {15, 3};
    case DType::e5m2:
      return {7, 2};
    case DType::bf16:
      return {127, 6};
    case DType::f16:
      return {1023, 9};
    default:
      return {(std::int64_t{1} << 22) - 1, 21};
  }
}

void put_noise(DType dtype, const CounterRng& rng, std::uint64_t number, std::byte* to) {
  const Grid grid = grid_of(dtype);
  const auto n = static_cast<double>(rng.integer(number, -grid.most, grid.most));
  store_from_double(dtype, n / static_cast<double>(std::int64_t{1} << grid.fraction), to, Overflow::saturate);
}

}  // namespace

std::vector<std::byte> exact_noise(DType dtype, std::int64_t count, std::uint64_t seed) {
  const std::int64_t element = size_of(dtype);
  std::vector<std::byte> bytes(static_cast<std::size_t>(count * element));
  const CounterRng rng(seed, 0x6e6f697365U);
  for (std::int64_t i = 0; i < count; ++i)
    put_noise(dtype, rng, static_cast<std::uint64_t>(i), bytes.data() + i * element);
  return bytes;
}

CacheFixture::CacheFixture(const CacheShape& shape) : shape_(shape), kv_(shape.mla ? 1 : 2) {
  const std::int64_t P = shape.page_size, H = shape.kv_heads, D = shape.head_size, L = shape.layers;
  granules_ = shape.granularity > 0 ? (D + shape.granularity - 1) / shape.granularity : 0;

  std::int64_t pages = 0, most_pages = 0;
  std::vector<std::int64_t> pages_of;
  for (std::size_t b = 0; b < shape.lengths.size(); ++b) {
    const std::int64_t tokens = shape.lengths[b] + (shape.room.empty() ? 0 : shape.room[b]);
    pages_of.push_back((tokens + P - 1) / P);
    pages += pages_of.back();
    most_pages = std::max(most_pages, pages_of.back());
    lengths_.push_back(static_cast<std::uint32_t>(shape.lengths[b]));
  }
  blocks_ = pages + 2;  // one block that no sequence owns, and the null page

  // A fixed shuffle of all blocks except the null page, which is the last.
  std::vector<std::uint32_t> deal(static_cast<std::size_t>(blocks_ - 1));
  std::iota(deal.begin(), deal.end(), 0U);
  const CounterRng cards(shape.seed, 0x6465616cU);
  for (std::size_t i = deal.size() - 1; i > 0; --i)
    std::swap(deal[i], deal[static_cast<std::size_t>(cards.integer(i, 0, static_cast<std::int64_t>(i)))]);

  const auto past = static_cast<std::uint32_t>(blocks_);
  table_ = filled(shape.sentinels ? past : past - 1, sequences(), round_up(most_pages, 8) + 16);
  // Sentinels: the first number past the pool, and a larger one that no off-by-one error reaches.
  if (shape.sentinels) xt::view(table_, xt::all(), xt::range(1, table_stride(), 2)) = past + 7;
  auto next = deal.begin();
  for (std::size_t b = 0; b < pages_of.size(); ++b) {
    std::copy_n(next, pages_of[b], &table_(b, 0));
    next += pages_of[b];
  }

  const std::int64_t element = size_of(shape.dtype), row = H * D, scale_row = H * granules_;
  pool_.assign(static_cast<std::size_t>(blocks_ * kv_ * L * P * row * element), kPoison);
  scales_.resize(static_cast<std::size_t>(blocks_ * kv_ * L * P * scale_row));
  std::fill_n(reinterpret_cast<std::byte*>(scales_.data()), scales_.size() * sizeof(float), kPoison);
  const CounterRng numbers(shape.seed, 0x706f6f6cU), factors(shape.seed, 0x7363616cU);
  for (std::int64_t b = 0; b < sequences(); ++b)
    for (std::int64_t token = 0; token < shape.length(b); ++token) {
      const std::int64_t block = table_(b, token / P);
      for (std::int64_t plane = 0; plane < kv_ * L; ++plane) {  // each layer of K, then of V
        const std::int64_t slot = (block * kv_ * L + plane) * P + token % P;
        for (std::int64_t i = slot * row; i < (slot + 1) * row; ++i)
          put_noise(shape.dtype, numbers, static_cast<std::uint64_t>(i), pool_.data() + i * element);
        for (std::int64_t i = slot * scale_row; i < (slot + 1) * scale_row; ++i)
          scales_[static_cast<std::size_t>(i)] =
              static_cast<float>(factors.integer(static_cast<std::uint64_t>(i), 8, 24)) / 16;
      }
    }
}

PagedKVCacheCollection CacheFixture::collection() {
  PagedCacheParams params{.dtype = shape_.dtype,
                          .kv_params = {shape_.kv_heads, shape_.head_size, shape_.mla},
                          .page_size = shape_.page_size};
  PagedTensors tensors;
  tensors.blocks = {pool_.data(), shape_.dtype,
                    Shape<6>{blocks_, kv_, shape_.layers, shape_.page_size, shape_.kv_heads, shape_.head_size}};
  tensors.cache_lengths = {lengths_.data(), Shape<1>{sequences()}};
  tensors.lookup_table = {table_.data(), Shape<2>{sequences(), table_stride()}};
  for (const std::uint32_t length : lengths_) tensors.max_cache_length = std::max(tensors.max_cache_length, length);
  if (granules_ > 0) {
    params.scale_dtype = DType::f32;
    params.quantization_granularity = shape_.granularity;
    tensors.scales = {reinterpret_cast<std::byte*>(scales_.data()), DType::f32,
                      Shape<6>{blocks_, kv_, shape_.layers, shape_.page_size, shape_.kv_heads, granules_}};
  }
  return {params, tensors};
}

attention::PagedRows CacheFixture::rows(std::int64_t layer, Slot slot, std::int64_t head_size) const {
  const std::int64_t P = shape_.page_size, H = shape_.kv_heads, D = shape_.head_size, L = shape_.layers;
  const std::int64_t plane = (shape_.mla ? 0 : static_cast<std::int64_t>(slot)) * L + layer;
  attention::PagedRows rows;
  rows.data = pool_.data() + plane * P * H * D * size_of(shape_.dtype);
  rows.dtype = shape_.dtype;
  rows.blocks = blocks_;
  rows.page_size = P;
  rows.heads = H;
  rows.head_size = head_size > 0 ? head_size : D;
  rows.block_stride = kv_ * L * P * H * D;
  rows.token_stride = H * D;
  rows.head_stride = D;
  rows.table = table_.data();
  rows.table_stride = table_stride();
  if (granules_ > 0) {
    rows.scales = reinterpret_cast<const std::byte*>(scales_.data() + plane * P * H * granules_);
    rows.granularity = shape_.granularity;
    rows.scale_block_stride = kv_ * L * P * H * granules_;
    rows.scale_token_stride = H * granules_;
    rows.scale_head_stride = granules_;
  }
  return rows;
}

SurroundingCache CacheFixture::around(std::int64_t layer, std::span<const std::byte> pool) const {
  const std::int64_t rows = shape_.page_size * shape_.kv_heads;
  return {pool, shape_.layers, layer, rows * shape_.head_size, rows * granules_};
}

UploadedCache CacheFixture::upload(Device& device) const {
  const std::int64_t P = shape_.page_size, H = shape_.kv_heads, D = shape_.head_size, L = shape_.layers;
  UploadedCache there;
  there.pool = device.upload("pool", pool_);
  if (granules_ > 0) there.scales = device.upload_values("scales", scales_);
  there.table = upload_tensor(device, "table", table_);
  there.lengths = device.upload_values("lengths", lengths_);
  for (std::int64_t layer = 0; layer < L; ++layer)
    for (std::int64_t slot = 0; slot < 2; ++slot) {
      const std::int64_t plane = (shape_.mla ? 0 : slot) * L + layer;
      PagedCache view;
      view.data = there.pool.as<std::byte>() + plane * P * H * D * size_of(shape_.dtype);
      view.table = there.table.as<const std::uint32_t>();
      view.block_stride = kv_ * L * P * H * D;
      view.token_stride = H * D;
      view.table_stride = static_cast<std::int32_t>(table_stride());
      view.blocks = static_cast<std::int32_t>(blocks_);
      view.page_size = static_cast<std::int32_t>(P);
      view.heads = static_cast<std::int32_t>(H);
      view.head_size = static_cast<std::int32_t>(D);
      if (granules_ > 0) {
        view.scales = there.scales.as<float>() + plane * P * H * granules_;
        view.scale_block_stride = kv_ * L * P * H * granules_;
        view.granularity = static_cast<std::int32_t>(shape_.granularity);
      }
      there.views.push_back(view);
    }
  return there;
}

std::optional<std::string> first_difference(std::span<const std::byte> golden, std::span<const std::byte> got,
                                            std::int64_t element_bytes,
                                            const std::function<std::string(std::int64_t element)>& place) {
  if (golden.size() != got.size()) return fmt::format("{} bytes, expected {}", got.size(), golden.size());
  std::int64_t first = -1, differing = 0;
  const auto elements = static_cast<std::int64_t>(golden.size()) / element_bytes;
  const auto element_at = [&](std::span<const std::byte> bytes, std::int64_t i) {
    return bytes.subspan(static_cast<std::size_t>(i * element_bytes), static_cast<std::size_t>(element_bytes));
  };
  for (std::int64_t i = 0; i < elements; ++i) {
    const auto a = element_at(golden, i), b = element_at(got, i);
    if (std::equal(a.begin(), a.end(), b.begin())) continue;
    if (first < 0) first = i;
    ++differing;
  }
  if (first < 0) return std::nullopt;
  const auto bits = [&](std::span<const std::byte> bytes) {
    std::string text;  // most significant byte first
    for (std::size_t i = bytes.size(); i-- > 0;) text += fmt::format("{:02x}", std::to_integer<unsigned>(bytes[i]));
    return text;
  };
  return fmt::format("{}: {} instead of {}; {} of {} elements differ", place(first), bits(element_at(got, first)),
                     bits(element_at(golden, first)), differing, elements);
}

}  // namespace kvscope::gpu
