#include "gpu/offload/offload_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "core/attention/mask.h"
#include "core/attention/problem_checks.h"
#include "core/base/convert.h"

namespace kvscope::gpu {
namespace {

using attention::KeyRange;
using attention::PagedRows;
using attention::Problem;

std::int64_t pages_of(const Problem& problem, std::int64_t keys) {
  return (keys + problem.k.page_size - 1) / problem.k.page_size;
}

// Writes the table row of a sequence: entries for the pages that contain `keys`, all others as unassigned.
void put_row(const Problem& problem, std::int64_t from, KeyRange keys, std::int64_t to, Sequences& all) {
  for (std::int64_t page = keys.first / problem.k.page_size; page < pages_of(problem, keys.last); ++page)
    all.table[static_cast<std::size_t>(to * all.stride + page)] = problem.k.table[from * problem.k.table_stride + page];
}

Sequences make_sequences(const Problem& problem, const std::vector<std::pair<std::int64_t, KeyRange>>& rows,
                         std::vector<std::uint32_t> lengths) {
  Sequences all;
  all.lengths = std::move(lengths);
  for (const auto& [from, keys] : rows) {
    all.stride = std::max(all.stride, pages_of(problem, keys.last));
    all.firsts.push_back(static_cast<std::uint32_t>(keys.first));
  }
  all.table.assign(rows.size() * static_cast<std::size_t>(all.stride), static_cast<std::uint32_t>(problem.k.blocks));
  for (std::size_t i = 0; i < rows.size(); ++i)
    put_row(problem, rows[i].first, rows[i].second, static_cast<std::int64_t>(i), all);
  return all;
}

// The extent of the pool's memory from `data`. [bytes]
std::int64_t extent_of(const PagedRows& rows) {
  if (rows.blocks == 0) return 0;
  return ((rows.blocks - 1) * rows.block_stride + (rows.page_size - 1) * rows.token_stride +
          (rows.heads - 1) * rows.head_stride + rows.head_size) *
         size_of(rows.dtype);
}

bool packed_heads(const PagedRows& rows) {
  return rows.heads == 1 || rows.head_stride == rows.head_size;
}

bool aligned(const PagedRows& rows, std::uint64_t alignment) {
  const auto whole = [&](std::int64_t elements) {
    return static_cast<std::uint64_t>(elements * size_of(rows.dtype)) % alignment == 0;
  };
  return whole(rows.token_stride) && whole(rows.block_stride);
}

PagedCache view_of(const PagedRows& rows, const std::byte* at, std::int64_t block_stride, std::int64_t token_stride) {
  PagedCache view;
  view.data = const_cast<std::byte*>(at);
  view.block_stride = block_stride;
  view.token_stride = token_stride;
  view.blocks = static_cast<std::int32_t>(rows.blocks);
  view.page_size = static_cast<std::int32_t>(rows.page_size);
  view.heads = static_cast<std::int32_t>(rows.heads);
  view.head_size = static_cast<std::int32_t>(rows.head_size);
  return view;
}

// Calls per_row(element offset, scale offset) for each (block, slot, head), in the order of a packed pool.
void each_row(const PagedRows& rows, const auto& per_row) {
  for (std::int64_t i = 0; i < rows.blocks * rows.page_size * rows.heads; ++i) {
    const std::int64_t head = i % rows.heads, slot = i / rows.heads % rows.page_size;
    const std::int64_t block = i / rows.heads / rows.page_size;
    per_row(block * rows.block_stride + slot * rows.token_stride + head * rows.head_stride,
            block * rows.scale_block_stride + slot * rows.scale_token_stride + head * rows.scale_head_stride);
  }
}

double scale_at(const PagedRows& rows, std::int64_t offset) {
  return load_as_double(rows.scale_dtype, rows.scales + offset * size_of(rows.scale_dtype));
}

// [blocks, page, heads, head_size] of `dtype`, scales multiplied in unless `with_scales`.
std::vector<std::byte> packed(const PagedRows& rows, DType dtype, bool with_scales) {
  const std::int64_t D = rows.head_size, from = size_of(rows.dtype), to = size_of(dtype);
  const bool multiply = rows.scales != nullptr && !with_scales;
  std::vector<std::byte> made(static_cast<std::size_t>(rows.blocks * rows.page_size * rows.heads * D * to));
  std::byte* at = made.data();
  each_row(rows, [&](std::int64_t offset, std::int64_t scale_offset) {
    const std::byte* row = rows.data + offset * from;
    if (!multiply && dtype == rows.dtype) {
      at = std::copy_n(row, D * to, at);
      return;
    }
    for (std::int64_t dim = 0; dim < D; ++dim, at += to) {
      double x = load_as_double(rows.dtype, row + dim * from);
      if (multiply) x *= scale_at(rows, scale_offset + dim / rows.granularity);
      store_from_double(dtype, x, at, Overflow::non_saturating);
    }
  });
  return made;
}

std::int64_t granules_of(const PagedRows& rows) {
  return (rows.head_size + rows.granularity - 1) / rows.granularity;
}

// [blocks, page, heads, granules]. Every scale type but f64 is exact in f32.
std::vector<float> packed_scales(const PagedRows& rows) {
  std::vector<float> made;
  each_row(rows, [&](std::int64_t, std::int64_t offset) {
    for (std::int64_t granule = 0; granule < granules_of(rows); ++granule)
      made.push_back(static_cast<float>(scale_at(rows, offset + granule)));
  });
  return made;
}

}  // namespace

Sequences own_sequences(const Problem& problem) {
  std::vector<std::pair<std::int64_t, KeyRange>> rows;
  std::vector<std::uint32_t> lengths;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    rows.emplace_back(b, attention::needed_keys(problem, b));
    lengths.push_back(static_cast<std::uint32_t>(problem.keys(b)));
  }
  return make_sequences(problem, rows, std::move(lengths));
}

Sequences one_for_each_query(const Problem& problem) {
  std::vector<std::pair<std::int64_t, KeyRange>> rows;
  std::vector<std::uint32_t> lengths;
  std::vector<std::int32_t> positions;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    const std::int64_t queries = attention::query_count(problem, b);
    const std::int64_t keys = problem.keys(b);
    for (std::int64_t i = 0; i < queries; ++i) {
      rows.emplace_back(b, attention::visible_keys(problem.options, i, queries, keys));
      lengths.push_back(static_cast<std::uint32_t>(rows.back().second.last));
      positions.push_back(static_cast<std::int32_t>(attention::query_position(problem.options, i, queries, keys)));
    }
  }
  Sequences all = make_sequences(problem, rows, std::move(lengths));
  all.positions = std::move(positions);
  return all;
}

UploadedPools upload_pools(Device& device, const Problem& problem, DType dtype, bool with_scales,
                           std::uint64_t alignment) {
  UploadedPools there;
  const PagedRows &k = problem.k, &v = problem.v;
  const auto as_it_lies = [&](const PagedRows& rows) {
    return rows.dtype == dtype && (with_scales || rows.scales == nullptr) && packed_heads(rows) &&
           aligned(rows, alignment);
  };
  // K and V that are interleaved in one pool are uploaded once.
  const std::less<> before;
  const std::byte *begin = std::min(k.data, v.data, before),
                  *end = std::max(k.data + extent_of(k), v.data + extent_of(v), before);
  const bool one_pool = before(k.data, v.data + extent_of(v)) && before(v.data, k.data + extent_of(k));
  if (as_it_lies(k) && as_it_lies(v) && one_pool &&
      static_cast<std::uint64_t>(std::max(k.data, v.data) - begin) % alignment == 0) {
    there.k_pool = device.upload("pool", std::span(begin, end));
    there.k = view_of(k, there.k_pool.as<std::byte>() + (k.data - begin), k.block_stride, k.token_stride);
    there.v = view_of(v, there.k_pool.as<std::byte>() + (v.data - begin), v.block_stride, v.token_stride);
  } else {
    const auto one = [&](const PagedRows& rows, const char* name, DeviceArray& pool, PagedCache& view) {
      if (as_it_lies(rows)) {
        pool = device.upload(name, std::span(rows.data, static_cast<std::size_t>(extent_of(rows))));
        view = view_of(rows, pool.as<std::byte>(), rows.block_stride, rows.token_stride);
        return;
      }
      pool = device.upload(name, packed(rows, dtype, with_scales));
      view = view_of(rows, pool.as<std::byte>(), rows.page_size * rows.heads * rows.head_size,
                     rows.heads * rows.head_size);
      if (rows.dtype != dtype || (rows.scales != nullptr && !with_scales))
        there.notes.push_back(fmt::format("{} is {}{}, the kernel is given {}", name, kvscope::name(rows.dtype),
                                          rows.scales != nullptr ? " with scales" : "", kvscope::name(dtype)));
      else
        there.notes.push_back(fmt::format("{} is repacked: [block, slot, head, dim]", name));
    };
    one(k, "K", there.k_pool, there.k);
    one(v, "V", there.v_pool, there.v);
  }
  if (with_scales && k.scales != nullptr) {
    there.k_scales = device.upload_values("scales of K", packed_scales(k));
    there.v_scales = device.upload_values("scales of V", packed_scales(v));
    there.k.scales = there.k_scales.as<float>();
    there.v.scales = there.v_scales.as<float>();
    for (const auto& [view, rows] : {std::pair(&there.k, &k), std::pair(&there.v, &v)}) {
      view->granularity = static_cast<std::int32_t>(std::min(rows->granularity, rows->head_size));
      view->scale_block_stride = rows->page_size * rows->heads * granules_of(*rows);
    }
  }
  return there;
}

std::vector<std::byte> converted(DType from, const std::byte* data, std::int64_t count, DType to) {
  std::vector<std::byte> made(static_cast<std::size_t>(count * size_of(to)));
  if (from == to) {
    if (!made.empty()) std::memcpy(made.data(), data, made.size());
    return made;
  }
  for (std::int64_t i = 0; i < count; ++i)
    store_from_double(to, load_as_double(from, data + i * size_of(from)), made.data() + i * size_of(to),
                      Overflow::non_saturating);
  return made;
}

}  // namespace kvscope::gpu
