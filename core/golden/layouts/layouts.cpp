// The code common to all layouts: queries, options, and the table entries that are read.
#include "core/golden/layouts/layouts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "core/attention/problem_checks.h"
#include "core/base/checked.h"
#include "core/base/convert.h"
#include "core/golden/golden_bundle.h"
#include "core/golden/layouts/detail/cache_reader.h"
#include "core/golden/layouts/detail/layout_reader.h"
#include "core/golden/layouts/detail/layout_scales.h"
#include "core/golden/layouts/detail/mask_tensors.h"
#include "core/golden/layouts/detail/queries.h"
#include "core/layout/filled.h"

namespace kvscope::golden {
namespace {

constexpr std::int64_t kInt32Reach = std::int64_t{1} << 31;  // [elements] what a kernel's 32-bit offset can address
constexpr std::size_t kMaxEntryFaults = 8;

// The factor of the scores: --scale, or the tensor sm_scale; both may be given when they agree.
std::optional<double> score_scale(LayoutReader& r) {
  const std::optional<double>& option = r.options().scale;
  const Tensor* tensor = r.find("sm_scale");
  if (tensor == nullptr) return option;
  const std::string given = r.given("sm_scale");
  if (!is_float(tensor->dtype) || element_count(tensor->shape) != 1) {
    r.fault(given, fmt::format("is {}; the factor of the scores is one float", describe(*tensor)));
    return option;
  }
  const double scale = load_as_double(tensor->dtype, tensor->bytes.data());
  if (!std::isfinite(scale)) {
    r.fault(given, fmt::format("is {}; the factor of the scores is a finite number", scale));
  } else if (option && *option != scale) {
    r.fault(given,
            fmt::format("is {}, but --scale is {}: leave --scale out, or pass --ignore {}", scale, *option, given));
  }
  return option ? option : scale;
}

// Faults of the conventions, under their names on the command line. Checked before the tables, which depend on masks.
void check_options(LayoutReader& r) {
  const attention::Options& o = r.options().attention;
  if (o.mask == MaskKind::sliding_window) {
    for (const auto& [option, keys] : {std::pair{"--window-left", o.window_left}, {"--window-right", o.window_right}}) {
      if (keys < -1) r.fault(option, fmt::format("{} keys: give at least 0, or -1 for no limit", keys));
    }
  }
  if (o.mask == MaskKind::chunked && o.chunk < 1) {
    r.fault("--chunk", fmt::format("{} positions: a chunk holds at least 1", o.chunk));
  }
  if (o.soft_cap && !(*o.soft_cap > 0 && std::isfinite(*o.soft_cap))) {
    r.fault("--soft-cap", fmt::format("{} is not a finite number above 0: leave it out for no cap", *o.soft_cap));
  }
  if (r.options().scale && !std::isfinite(*r.options().scale)) {
    r.fault("--scale", fmt::format("{} is not a finite number", *r.options().scale));
  }
}

void set_options(LayoutReader& r, PreparedProblem& prepared) {
  attention::Options& options = prepared.problem.options;
  options = r.options().attention;
  if (!prepared.alibi_slopes.empty()) options.alibi_slopes = prepared.alibi_slopes;
  if (!prepared.sinks.empty()) options.sinks = prepared.sinks;
  if (const std::optional<double> scale = score_scale(r)) {
    options.scale = *scale;
  } else if (r.values_in_keys) {
    r.fault("--scale", "is missing: engines scale MLA by 1/sqrt(576) or by 1/sqrt(192): pass the scale of your kernel");
  } else if (r.head_size > 0) {
    options.scale = 1.0 / std::sqrt(static_cast<double>(r.head_size));
  }
  const bool has_value_size = r.options().value_size || r.value_size != 0;  // a missing one is a fault already
  if (r.values_in_keys && r.head_size > 0 && has_value_size && (r.value_size < 1 || r.value_size > r.head_size)) {
    r.fault("--value-size", fmt::format("{} is outside [1, {}], a head's elements", r.value_size, r.head_size));
  }
}

// Converts lengths to numbers of keys, and checks the table entries that are read.
void build_table(LayoutReader& r, PreparedProblem& prepared) {
  attention::Problem& problem = prepared.problem;
  const LayoutReader::Pages& pages = r.pages;
  std::int64_t columns = 0;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    const auto at = static_cast<std::size_t>(b);
    const std::int64_t queries = prepared.query_offsets[at + 1] - prepared.query_offsets[at];
    const std::int64_t keys = pages.lengths[at] + (pages.lengths_without_new ? queries : 0);
    prepared.key_lengths.push_back(keys);
    const std::int64_t needed = ceil_div(keys, r.page_size);
    if (needed > pages.columns[at]) {
      r.fault(
          fmt::format("{}[{}]", pages.lengths_name, b),
          fmt::format("sequence {} has {} keys{}, which are {} pages of {} tokens, but {} has {} columns", b, keys,
                      pages.lengths_without_new ? fmt::format(" ({} cached, {} new)", pages.lengths[at], queries) : "",
                      needed, r.page_size, pages.table_name, pages.columns[at]));
    } else {
      columns = std::max(columns, needed);
    }
  }
  if (!r.ok()) return;
  problem.query_offsets = prepared.query_offsets;
  problem.key_lengths = prepared.key_lengths;
  prepared.table = filled(kUnknownBlock, problem.batch, columns);
  std::size_t bad = 0;
  std::vector<std::int64_t> made;
  const auto row = [&](std::size_t at) -> std::span<const std::int64_t> {
    if (!pages.make_row) {
      return std::span(pages.entries)
          .subspan(static_cast<std::size_t>(pages.first[at]), static_cast<std::size_t>(pages.columns[at]));
    }
    pages.make_row(at, made);
    return made;
  };
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    const attention::KeyRange keys = attention::needed_keys(problem, b);
    if (keys.empty()) continue;
    const std::span<const std::int64_t> entries = row(static_cast<std::size_t>(b));
    for (std::int64_t page = keys.first / r.page_size; page <= (keys.last - 1) / r.page_size; ++page) {
      const std::int64_t entry = entries[static_cast<std::size_t>(page)];
      if (entry >= 0 && entry < r.blocks) {
        prepared.table(b, page) = static_cast<std::uint32_t>(entry);
      } else if (bad++ < kMaxEntryFaults) {
        const TableForm form = r.layout().table.form;
        const bool flat = form == TableForm::indptr || form == TableForm::tokens;
        r.fault(flat ? fmt::format("{}[{}]", pages.table_name, pages.first[static_cast<std::size_t>(b)] + page)
                     : fmt::format("{}[{}, {}]", pages.table_name, b, page),
                fmt::format("is {}, outside the {} blocks; sequence {} has {} keys and reads its page {}", entry,
                            r.blocks, b, prepared.key_lengths[static_cast<std::size_t>(b)], page));
      }
    }
  }
  if (bad > kMaxEntryFaults)
    r.fault(pages.table_name, fmt::format("and {} more entries outside the blocks", bad - kMaxEntryFaults));
  for (attention::PagedRows* rows : {&problem.k, &problem.v}) {
    rows->table = prepared.table.data();
    rows->table_stride = columns;
  }
  if (pages.make_row) return;  // without entries that are not read
  const std::int64_t given = problem.batch > 0 ? *std::ranges::max_element(pages.columns) : 0;
  prepared.own_given_table = filled(kUnknownBlock, problem.batch, given);
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    const auto at = static_cast<std::size_t>(b);
    const std::span<const std::int64_t> entries = row(at);
    for (std::int64_t page = 0; page < pages.columns[at]; ++page) {
      const std::int64_t entry = entries[static_cast<std::size_t>(page)];
      if (entry >= 0 && entry < r.blocks) prepared.own_given_table(b, page) = static_cast<std::uint32_t>(entry);
    }
  }
}

void warn_of_known_failures(LayoutReader& r, const PreparedProblem& prepared) {
  const std::int64_t stride = prepared.problem.k.block_stride;
  if (stride > 0 && r.blocks > kInt32Reach / stride) {
    r.warnings.push_back(
        fmt::format("block {} starts past element 2^31: a kernel that multiplies block and stride in 32 bits "
                    "reads another block from there on",
                    ceil_div(kInt32Reach, stride)));
  }
  const bool scaled = prepared.problem.k.scales != nullptr || prepared.problem.v.scales != nullptr;
  if (bits(r.cache_dtype) == 8 && !scaled) {
    r.warnings.push_back(
        fmt::format("the cache is {} without scales: elements are taken as they are", name(r.cache_dtype)));
  }
}

}  // namespace

const std::vector<std::string>& layout_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const LayoutDescription& layout : named_layouts()) all.push_back(layout.name);
    return all;
  }();
  return names;
}

const LayoutDescription& layout_of(const LayoutOptions& options) {
  if (options.description) return *options.description;
  const LayoutDescription* layout = find_layout(options.layout);
  if (layout == nullptr) {
    throw InputError(
        "command line", "--layout",
        fmt::format("'{}' is not a layout; layouts are {}", options.layout, fmt::join(layout_names(), ", ")));
  }
  return *layout;
}

bool has_block_scales(const Bundle& bundle, const LayoutOptions& options, bool of_v) {
  const auto is_given = [&](const CacheTensor& tensor) {
    const bool is_of_side =
        tensor.holds == Holds::kv_scales || tensor.holds == (of_v ? Holds::v_scales : Holds::k_scales);
    const auto in_bundle = [&](const std::string& name) { return bundle.tensors.contains(name); };
    return is_of_side && (in_bundle(tensor.name) || std::ranges::any_of(tensor.also, in_bundle));
  };
  return std::ranges::any_of(layout_of(options).forms, [&](const CacheForm& form) {
    return std::ranges::any_of(with_block_scales(form).tensors, is_given);
  });
}

attention::Problem PreparedProblem::with_given_table() const {
  attention::Problem given = problem;
  for (attention::PagedRows* rows : {&given.k, &given.v}) {
    rows->table = given_table().data();
    rows->table_stride = static_cast<std::int64_t>(given_table().shape(1));
  }
  return given;
}

PreparedProblem prepare_problem(const Bundle& bundle, const LayoutOptions& options, std::string_view source) {
  const LayoutDescription& layout = layout_of(options);
  PreparedProblem prepared;
  prepared.layout = layout.name;
  LayoutReader reader(bundle, options, layout);
  const CacheReading cache = read_cache(reader, layout);
  reader.read_pages();
  read_queries(reader, layout, prepared);
  check_options(reader);
  set_options(reader, prepared);
  const CacheScales scales = read_scales(reader);
  apply_mask_tensors(reader, scales, prepared);
  if (reader.pages.by_token && (varies_by_place(scales.k) || varies_by_place(scales.v))) {
    reader.fault(reader.pages.table_name,
                 "has an entry for each token: scales per token or block need a table of pages");
  }
  reader.check_unused();
  if (reader.ok()) {
    set_cache_rows(cache, options.cache_type && options.cache_type->fnuz, reader.pages.by_token, prepared);
    if (reader.pages.by_token) {
      reader.blocks *= reader.page_size;
      reader.page_size = 1;
    }
    build_table(reader, prepared);
    apply_scales(scales, prepared);
  }
  if (!reader.ok()) throw InputError(source, std::move(reader.faults));
  warn_of_known_failures(reader, prepared);
  prepared.warnings = std::move(reader.warnings);
  prepared.notes = std::move(reader.notes);
  prepared.masks = std::move(reader.masks);
  return prepared;
}

}  // namespace kvscope::golden
