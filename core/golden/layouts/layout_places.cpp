#include "core/golden/layouts/layout_places.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/errors.h"
#include "core/golden/layouts/detail/cache_view.h"

namespace kvscope::golden {
namespace {

// The sizes in a layout's own terms: MLA has one head unless the form has an axis for more; packed rows have their own.
CacheSizes sizes_in(const LayoutDescription& layout, const CacheForm& form, const PlaceRequest& request) {
  CacheSizes sizes{request.blocks,    request.page_size,  request.heads,
                   request.head_size, request.value_size, request.layers};
  const auto axis = [&](std::string_view name) {
    return std::ranges::any_of(form.tensors,
                               [&](const CacheTensor& t) { return std::ranges::count(t.axes, name) > 0; });
  };
  if (!axis("head") && !axis("head*dim")) sizes.heads = 1;
  if (axis("x")) sizes.run = std::max<std::int64_t>(layout.run_bytes.value / size_of(request.dtype), 1);
  if (axis("latent")) sizes.latent = request.value_size;
  if (!axis("slot") && !axis("position")) {
    sizes.blocks *= sizes.page_size;
    sizes.page_size = 1;
  }
  const CacheTensor& first = form.tensors.front();
  if (!first.row.empty()) {
    sizes.head_size = 0;
    for (const RowField& field : first.row) sizes.head_size += field.elements;
  }
  std::vector<Fault> faults;
  const bool parts = axis("latent") || axis("dim+vdim");
  if (axis("latent") && sizes.value_size >= sizes.head_size) {
    faults.push_back(
        {"--value-size", fmt::format("{} leaves no rope of a row of {}", sizes.value_size, sizes.head_size)});
  }
  if (!form.values_in_keys && !parts && !layout.v_may_differ && sizes.value_size != sizes.head_size) {
    faults.push_back(
        {"--value-size", fmt::format("{} differs from the head size {}, which layout '{}' does not support",
                                     sizes.value_size, sizes.head_size, layout.name)});
  }
  if (axis("x") && sizes.head_size % sizes.run != 0) {
    faults.push_back({"--head-size", fmt::format("{} is not a multiple of the {} elements of a run of layout '{}'",
                                                 sizes.head_size, sizes.run, layout.name)});
  }
  if (!faults.empty()) throw InputError("command line", std::move(faults));
  return sizes;
}

void add_runs(const CachePiece& piece, const CacheTensor& tensor, char k_or_v, std::int64_t block, std::int64_t slot,
              std::int64_t head, TokenPlace& place) {
  const std::int64_t unit = bits(piece.dtype);
  for (std::int64_t d = 0; d < piece.count; ++d) {
    const std::int64_t byte = piece.walk.at(block, slot, head, d) / 8;
    PlaceRun* last = place.runs.empty() ? nullptr : &place.runs.back();
    const bool joins = d > 0 && last != nullptr && last->byte + last->bytes == byte;
    if (joins) {
      ++last->count;
      last->bytes += unit / 8;
    } else {
      place.runs.push_back(
          {tensor.name, k_or_v, piece.each > 1, head, piece.first + d * piece.each, 1, byte, unit / 8});
    }
  }
}

}  // namespace

TokenPlace place_of_token(const LayoutDescription& layout, const PlaceRequest& request) {
  const CacheForm& form = layout.forms.front();
  const CacheSizes sizes = sizes_in(layout, form, request);
  std::vector<DType> stored;
  std::vector<bool> present;
  for (const CacheTensor& tensor : form.tensors) {
    stored.push_back(tensor.row.empty() ? request.dtype : DType::u8);
    present.push_back(!tensor.optional);
  }
  const CacheView view = view_of(form, sizes, layout.has_axis("layer") ? request.layer : 0, stored, present);
  const std::int64_t pages = static_cast<std::int64_t>(request.table.size());
  check_index("token", request.token, pages * request.page_size, "the sequence's pages hold no more");
  const std::int64_t own_block = request.table[static_cast<std::size_t>(request.token / request.page_size)];
  const std::int64_t own_slot = request.token % request.page_size;
  TokenPlace place;
  std::int64_t block = own_block, slot = own_slot;
  switch (layout.table.form) {
    case TableForm::dense:
      block = request.sequence;
      slot = request.token;
      place.at = fmt::format("sequence {}, position {}", block, slot);
      check_index("sequence", block, sizes.blocks, "pass --blocks, the sequences of the cache");
      check_index("token", slot, sizes.page_size, "pass --page-size, the positions of a sequence");
      break;
    case TableForm::ragged:
    case TableForm::chunk:
      block = request.token;
      slot = 0;
      place.at = fmt::format("token {}", block);
      break;
    case TableForm::tokens:
    case TableForm::requests:
    case TableForm::sparse:
      if (layout.has_axis("slot")) {
        check_index("block", own_block, request.blocks);
        place.at = fmt::format("slot {}: block {}, slot {} of it", block * request.page_size + slot, block, slot);
        break;
      }
      check_index("block", own_block, request.blocks);
      block = own_block * request.page_size + own_slot;
      slot = 0;
      place.at = fmt::format("slot {}", block);
      break;
    default:
      check_index("block", own_block, request.blocks);
      place.at = fmt::format("block {}, slot {}", block, slot);
  }
  const auto add = [&](const CacheSide& side, char k_or_v) {
    for (std::int64_t head = 0; head < sizes.heads; ++head) {
      for (const CachePiece& piece : side.elements) {
        add_runs(piece, form.tensors[piece.tensor], k_or_v, block, slot, head, place);
      }
      for (const CachePiece& piece : side.scales) {
        add_runs(piece, form.tensors[piece.tensor], k_or_v, block, slot, head, place);
      }
    }
    for (const CachePiece& piece : side.elements) {
      const CacheTensor& tensor = form.tensors[piece.tensor];
      const std::string shape =
          fmt::format("{} {}", tensor.row.empty() ? std::string(name(piece.dtype)) : "bytes",
                      fmt::format("[{}]", fmt::join(shape_for(tensor, sizes, stored[piece.tensor]), ", ")));
      place.strides.push_back({tensor.name, k_or_v, shape, piece.walk.by_block / 8, piece.walk.by_slot / 8,
                               piece.walk.by_head / 8, piece.walk.by_element / 8});
    }
  };
  add(view.k, 'k');
  if (!view.values_in_keys) add(view.v, 'v');
  return place;
}

}  // namespace kvscope::golden
