#include "core/golden/layouts/detail/layout_scales.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>
#include <xtensor/xbuilder.hpp>
#include <xtensor/xview.hpp>

#include "core/base/checked.h"
#include "core/base/convert.h"
#include "core/layout/filled.h"

namespace kvscope::golden {
namespace {

using Extents = std::vector<std::int64_t>;

// The axes of a scale tensor are letters: N block, P slot, H head, L layer, 2 K or V, T block and slot as one, B
// sequence, 1 an axis of length 1. A granularity is the set of axes along which scales differ.
constexpr const char* kGranularities[] = {"", "H", "NP", "N", "NPH", "NH"};

struct Reading {
  std::string granularity;  // "NH"
  std::string axes;         // of the shape: "NH", "N1H1"
  Extents shape;            // lengths of the axes
  std::array<ScaleWalk, 2> walk;
};

std::string label(std::string_view granularity) {
  const auto has = [&](char axis) { return granularity.find(axis) != std::string_view::npos; };
  std::vector<std::string_view> of;
  if (has('L')) of.emplace_back("layer");
  if (has('B')) of.emplace_back("sequence");
  if (has('N')) of.emplace_back(has('P') ? "token" : "block");
  if (has('H')) of.emplace_back("KV head");
  return fmt::format("{}per {}", has('2') ? "K and V apart, " : "",
                     of.empty() ? "tensor" : fmt::to_string(fmt::join(of, " and ")));
}

class Readings {
 public:
  // `axes`: of the cache, in its order, with 2 among them for a tensor that covers K and V.
  Readings(const LayoutReader& reader, std::string axes, bool by_sequence) : r_(reader), axes_(std::move(axes)) {
    for (const std::string granularity : kGranularities) {
      // Without pages a slot is a block, which messages call a token.
      const bool is_block = granularity.find('N') != std::string::npos && granularity.find('P') == std::string::npos;
      if (is_block && axes_.find('P') == std::string::npos) continue;
      for (const char* apart : {"", "2", "L", "2L"}) {
        const auto has = [&](char axis) { return axes_.find(axis) != std::string::npos; };
        if (std::ranges::all_of(std::string_view(apart), has)) add(apart + granularity);
      }
    }
    if (by_sequence) add("BH", "BH");
  }

  // The possible meanings of a shape that multiply different elements. A shape with every axis has only one.
  [[nodiscard]] std::vector<Reading> of(const Extents& shape) const {
    std::vector<Reading> found;
    for (const Reading& reading : all_) {
      const bool whole = shape.size() <= axes_.size() || reading.axes.size() == shape.size();
      const bool is_scalar = reading.granularity.empty() && element_count(shape) == 1;
      if (!whole || (reading.shape != shape && !is_scalar)) continue;
      const auto same = [&](const Reading& other) { return other.walk == reading.walk; };
      if (std::ranges::none_of(found, same)) found.push_back(reading);
    }
    return found;
  }

  // "[] per tensor, [2] per KV head, ...": the shortest shape of every granularity.
  [[nodiscard]] std::string text() const {
    std::vector<std::string> lines;
    for (const Reading& reading : all_) {
      if (reading.axes != compact(reading.granularity)) continue;
      std::string line = fmt::format("{} {}", shape_text(reading.shape), label(reading.granularity));
      if (std::ranges::count(lines, line) == 0) lines.push_back(std::move(line));
    }
    return fmt::to_string(fmt::join(lines, ", "));
  }

  // The unambiguous shape of a granularity: every axis of the cache, and one of length 1 for D.
  [[nodiscard]] std::string whole_shape(std::string_view granularity) const {
    return shape_text(shape_of_axes(whole(granularity)));
  }

 private:
  [[nodiscard]] std::string compact(std::string_view granularity) const {
    if (granularity == "BH") return "BH";
    std::string axes;
    std::ranges::copy_if(axes_, std::back_inserter(axes),
                         [&](char axis) { return granularity.find(axis) != std::string_view::npos; });
    return axes;
  }
  [[nodiscard]] std::string whole(std::string_view granularity) const {
    std::string axes;
    for (const char axis : axes_) axes += granularity.find(axis) != std::string_view::npos ? axis : '1';
    return axes + "1";
  }
  [[nodiscard]] Extents shape_of_axes(std::string_view axes) const {
    Extents shape;
    for (const char axis : axes) shape.push_back(extent(axis));
    return shape;
  }
  [[nodiscard]] std::int64_t extent(char axis) const {
    switch (axis) {
      case 'N':
        return r_.blocks;
      case 'P':
        return r_.page_size;
      case 'T':
        return r_.blocks * r_.page_size;
      case 'H':
        return r_.heads;
      case 'L':
        return r_.layers;
      case '2':
        return 2;
      case 'B':
        return static_cast<std::int64_t>(r_.pages.first.size());
      default:
        return 1;
    }
  }

  void add(const std::string& granularity) {
    const std::string short_axes = compact(granularity);
    const std::string whole_axes = whole(granularity);
    for (const std::string& axes : {short_axes, short_axes + "1", whole_axes.substr(0, axes_.size()), whole_axes}) {
      add(granularity, axes);
    }
    if (granularity.find('P') == std::string::npos) return;
    std::string by_slot = granularity;  // "NP" and "LNPH" -> "T" and "LTH"
    by_slot.replace(by_slot.find("NP"), 2, "T");
    add(granularity, by_slot);
    add(granularity, by_slot + "1");
  }

  void add(const std::string& granularity, const std::string& axes) {
    Reading reading{granularity, axes, shape_of_axes(axes), {}};
    ScaleWalk walk;
    std::int64_t stride = 1, k_to_v = 0;
    for (std::size_t i = axes.size(); i-- > 0; stride *= reading.shape[i]) {
      const auto apart = [&](std::int64_t entries, std::int64_t step) { return entries > 1 ? step : 0; };
      switch (axes[i]) {
        case 'N':
          walk.block = apart(r_.blocks, stride);
          break;
        case 'P':
          walk.slot = apart(r_.page_size, stride);
          break;
        case 'T':
          walk.block = apart(r_.blocks, stride * r_.page_size);
          walk.slot = apart(r_.page_size, stride);
          break;
        case 'H':
          walk.head = apart(r_.heads, stride);
          break;
        case 'B':
          walk.sequence = apart(extent('B'), stride);
          break;
        case 'L':
          walk.offset += r_.options().layer * stride;
          break;
        case '2':
          k_to_v = stride;
          break;
        default:
          break;
      }
    }
    reading.walk = {walk, walk};
    reading.walk[1].offset += k_to_v;
    all_.push_back(std::move(reading));
  }

  const LayoutReader& r_;
  std::string axes_;
  std::vector<Reading> all_;
};

ScaleReading read_one(LayoutReader& r, const std::string& name, bool both) {
  const Tensor* tensor = r.find(name);
  if (tensor == nullptr) return {};
  const std::string given = r.given(name);
  if (!is_float(tensor->dtype) || tensor->dtype == DType::e2m1) {
    r.fault(given, fmt::format("is {}; scales are floats of at least 8 bits", kvscope::name(tensor->dtype)));
    return {};
  }
  if (r.blocks < 1 || r.page_size < 1 || r.heads < 1) return {};  // the fault of the cache is already reported
  if (r.options().layer < 0 || r.options().layer >= r.layers) return {};
  std::string axes = r.axes;
  const bool has_pair = axes.find('2') != std::string::npos;
  if (both && !has_pair) axes.insert(0, "2");
  if (!both) std::erase(axes, '2');
  const bool by_sequence = !both && given.ends_with("_descale") && r.scales_by_sequence;
  const Readings readings(r, axes, by_sequence);
  const std::vector<Reading> found = readings.of(tensor->shape);
  if (found.empty()) {
    r.fault(given,
            fmt::format("has shape {}; scales of this cache are {}", shape_text(tensor->shape), readings.text()));
    return {};
  }
  if (found.size() > 1) {
    std::vector<std::string> meanings, shapes;
    for (const Reading& reading : found) {
      meanings.push_back(label(reading.granularity));
      if (reading.granularity != "BH") shapes.push_back(readings.whole_shape(reading.granularity));
    }
    r.fault(given, fmt::format("has shape {}, which is read as {}: give it every axis of the cache, {}",
                               shape_text(tensor->shape), fmt::join(meanings, " or as "), fmt::join(shapes, " or ")));
    return {};
  }
  return {tensor, found.front().walk,
          fmt::format("{} {}, {}", given, describe(*tensor), label(found.front().granularity)), found.front().axes};
}

// Block scales times those of the cache, [block, slot, head, granule].
void multiply(attention::PagedRows& rows, const ScaleReading& reading, const ScaleWalk& walk,
              std::vector<double>& product) {
  const std::int64_t granules = ceil_div(rows.head_size, rows.granularity);
  std::vector<double> made(static_cast<std::size_t>(rows.blocks * rows.page_size * rows.heads * granules));
  for (std::int64_t i = 0; double& scale : made) {
    const std::int64_t granule = i % granules, head = i / granules % rows.heads;
    const std::int64_t slot = i / granules / rows.heads % rows.page_size;
    const std::int64_t block = i / granules / rows.heads / rows.page_size;
    const std::int64_t own =
        block * rows.scale_block_stride + slot * rows.scale_token_stride + head * rows.scale_head_stride + granule;
    const std::int64_t other = walk.offset + block * walk.block + slot * walk.slot + head * walk.head;
    scale =
        load_as_double(rows.scale_dtype, rows.scales + own * size_of(rows.scale_dtype)) *
        load_as_double(reading.tensor->dtype, reading.tensor->bytes.data() + other * size_of(reading.tensor->dtype));
    ++i;
  }
  product = std::move(made);  // `rows.scales` may be the product's storage
  rows.scales = reinterpret_cast<const std::byte*>(product.data());
  rows.scale_dtype = DType::f64;
  rows.scale_head_stride = granules;
  rows.scale_token_stride = granules * rows.heads;
  rows.scale_block_stride = granules * rows.heads * rows.page_size;
}

}  // namespace

CacheScales read_scales(LayoutReader& r) {
  if (r.has("kv_scale")) {
    for (const char* name : {"k_scale", "v_scale"}) {
      if (!r.has(name)) continue;
      static_cast<void>(r.find(name));
      r.fault(r.given(name), fmt::format("is given, and {} too: keep one of them, or pass --ignore {}",
                                         r.given("kv_scale"), r.given(name)));
    }
    const ScaleReading both = read_one(r, "kv_scale", true);
    return {both, both};
  }
  CacheScales scales{read_one(r, "k_scale", false), read_one(r, "v_scale", false)};
  // V is part of K's stored rows there, and one scale covers them.
  if (r.values_in_keys && !r.has("v_scale")) scales.v = scales.k;
  return scales;
}

void apply_scales(const CacheScales& scales, PreparedProblem& prepared) {
  const auto apply = [&](const ScaleReading& reading, std::size_t which, attention::PagedRows& rows,
                         std::vector<double>& product) {
    if (reading.tensor == nullptr) return;
    prepared.scales.push_back(fmt::format("{}: {}", which == 0 ? "K" : "V", reading.text));
    const ScaleWalk& walk = reading.walk[which];
    if (rows.scales != nullptr) return multiply(rows, reading, walk, product);
    rows.scales = reading.tensor->bytes.data() + walk.offset * size_of(reading.tensor->dtype);
    rows.scale_dtype = reading.tensor->dtype;
    rows.granularity = std::max(prepared.problem.k.head_size, rows.head_size);  // one scale, also of a V longer than K
    rows.scale_block_stride = walk.block;
    rows.scale_token_stride = walk.slot;
    rows.scale_head_stride = walk.head;
    if (walk.sequence == 0) return;
    // A scale per sequence: the table of the scales has entry b for each page of sequence b.
    const std::int64_t batch = prepared.problem.batch, columns = rows.table_stride;
    if (prepared.sequence_table.size() == 0) {
      prepared.sequence_table = filled(std::uint32_t{0}, batch, columns);
      prepared.sequence_table += xt::view(xt::arange(static_cast<std::uint32_t>(batch)), xt::all(), xt::newaxis());
    }
    rows.scale_block_stride = walk.sequence;
    rows.scales_table = prepared.sequence_table.data();
    rows.scales_table_stride = columns;
    rows.scale_blocks = batch;
  };
  apply(scales.k, 0, prepared.problem.k, prepared.k_scales);
  apply(scales.v, 1, prepared.problem.v, prepared.v_scales);
}

}  // namespace kvscope::golden
