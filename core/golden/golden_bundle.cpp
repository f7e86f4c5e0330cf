#include "core/golden/golden_bundle.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>
#include <utility>

#include "core/attention/problem_checks.h"
#include "core/base/checked.h"
#include "core/golden/verdict/measures.h"

namespace kvscope::golden {
namespace {

Tensor doubles(const auto& array) {
  std::vector<std::int64_t> shape;
  for (const auto extent : array.shape()) shape.push_back(static_cast<std::int64_t>(extent));
  return tensor_of<double>(std::move(shape), std::span<const double>(array.data(), array.size()));
}

// [query, query_head, 2]: score_error and sum_error of each row; rows that the reference computed have none.
Tensor golden_error(const attention::Result& result) {
  const auto rows = static_cast<std::int64_t>(result.score_error.shape(0));
  const auto heads = static_cast<std::int64_t>(result.score_error.shape(1));
  std::vector<double> errors;
  for (const double score_error : result.score_error) {
    errors.push_back(score_error);
    errors.push_back(score_error > 0 ? result.sum_error : 0);
  }
  return tensor_of<double>({rows, heads, 2}, std::span<const double>(errors));
}

Tensor block_table(const attention::Problem& problem) {
  const attention::PagedRows& k = problem.k;
  std::int64_t columns = 0;
  for (const std::int64_t length : problem.key_lengths) columns = std::max(columns, ceil_div(length, k.page_size));
  Tensor table = make_tensor(DType::u32, {problem.batch, columns});
  std::ranges::fill(table.bytes.own(), std::byte{0xff});
  static_assert(kUnknownBlock == ~std::uint32_t{0});
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    const attention::KeyRange keys = attention::needed_keys(problem, b);
    if (keys.empty()) continue;
    for (std::int64_t page = keys.first / k.page_size; page <= (keys.last - 1) / k.page_size; ++page) {
      std::memcpy(table.bytes.data() + (b * columns + page) * 4, &k.table[b * k.table_stride + page], 4);
    }
  }
  return table;
}

std::string_view mask_name(MaskKind mask) {
  switch (mask) {
    case MaskKind::none:
      return "none";
    case MaskKind::causal:
      return "causal";
    case MaskKind::sliding_window:
      return "sliding_window";
    case MaskKind::chunked:
      return "chunked";
  }
  return "";
}

// Of each row: its sequence and its pages.
void add_places(const attention::Problem& problem, Bundle& bundle) {
  bundle.tensors.emplace("query_offsets", tensor_of<std::int64_t>({problem.batch + 1}, problem.query_offsets));
  bundle.tensors.emplace("key_lengths", tensor_of<std::int64_t>({problem.batch}, problem.key_lengths));
  bundle.tensors.emplace("block_table", block_table(problem));
}

void describe_answer(const attention::Problem& problem, const Origin& origin, bool fast, json::Value& manifest) {
  describe_problem(problem, origin, manifest);
  if (fast) manifest.set("accuracy", "fast");
  manifest.set("conventions", conventions(problem.options));
}

}  // namespace

std::span<const std::string_view> golden_answer_names() {
  static constexpr std::string_view kNames[] = {"o",
                                                "a1",
                                                "a2",
                                                "lse",
                                                "smax",
                                                "running",
                                                "key_counts",
                                                "p2",
                                                "clump",
                                                "faint",
                                                "lost",
                                                "repeats",
                                                "partial_sums",
                                                "row_sum_cut",
                                                "largest_value",
                                                "query_offsets",
                                                "key_lengths",
                                                "block_table",
                                                "o_unquantized",
                                                "golden_error",
                                                "o_error",
                                                "lse_error"};
  return kNames;
}

json::Value conventions(const attention::Options& options) {
  json::Value value;
  value.set("mask", mask_name(options.mask));
  value.set("alignment", options.alignment == CausalAlignment::bottom_right ? "bottom_right" : "top_left");
  if (options.mask == MaskKind::sliding_window) {
    value.set("window_left", options.window_left);
    value.set("window_right", options.window_right);
  }
  if (options.mask == MaskKind::chunked) value.set("chunk", options.chunk);
  value.set("scale", options.scale);
  value.set("soft_cap", options.soft_cap ? json::Value(*options.soft_cap) : json::Value());
  value.set("alibi", !options.alibi_slopes.empty());
  if (!options.bias.empty()) value.set("bias", true);
  value.set("sinks", !options.sinks.empty());
  value.set("lse_base", options.lse_base == attention::LseBase::natural ? "natural" : "two");
  value.set("empty_row", options.empty_row == attention::EmptyRow::minus_infinity ? "-inf" : "+inf");
  return value;
}

std::string conventions_text(const attention::Options& options) {
  std::string text;
  const json::Value value = conventions(options);
  for (const auto& [key, setting] : *value.as_object()) {
    if (setting.is_null()) continue;
    text += " " + key + "=" + (setting.is_string() ? *setting.as_string() : json::dump(setting, -1));
  }
  return text;
}

Bundle golden_bundle(const attention::Problem& problem, const attention::Result& result, const Origin& origin) {
  Bundle bundle;
  bundle.tensors.emplace("o", doubles(result.o));
  bundle.tensors.emplace("a1", doubles(result.a1));
  bundle.tensors.emplace("a2", doubles(result.a2));
  bundle.tensors.emplace("lse", doubles(result.lse));
  bundle.tensors.emplace("smax", doubles(result.smax));
  bundle.tensors.emplace("running", doubles(result.running));
  bundle.tensors.emplace("key_counts", doubles(result.keys));
  bundle.tensors.emplace("p2", doubles(result.p2));
  bundle.tensors.emplace("repeats", doubles(result.repeats));
  bundle.tensors.emplace("clump", doubles(result.clump));
  bundle.tensors.emplace("faint", doubles(result.faint));
  bundle.tensors.emplace("lost", doubles(result.lost));
  bundle.tensors.emplace("partial_sums", doubles(result.partial_sums));
  bundle.tensors.emplace("row_sum_cut", doubles(result.row_sum_cut));
  bundle.tensors.emplace("largest_value", doubles(result.largest_value));
  const bool fast = result.score_error.size() > 0;
  if (fast) bundle.tensors.emplace("golden_error", golden_error(result));
  add_places(problem, bundle);
  describe_answer(problem, origin, fast, bundle.manifest);
  return bundle;
}

Bundle output_bundle(const attention::Problem& problem, const attention::Output& output, const Origin& origin) {
  Bundle bundle;
  bundle.tensors.emplace("o", doubles(output.o));
  bundle.tensors.emplace("lse", doubles(output.lse));
  if (output.by_fast_path) {
    bundle.tensors.emplace("o_error", doubles(output.o_error));
    bundle.tensors.emplace("lse_error", doubles(output.lse_error));
  }
  add_places(problem, bundle);
  bundle.manifest.set("holds", "output");
  describe_answer(problem, origin, output.by_fast_path, bundle.manifest);
  return bundle;
}

void describe_problem(const attention::Problem& problem, const Origin& origin, json::Value& manifest) {
  manifest.set("producer", origin.producer);
  if (!origin.layout.empty()) manifest.set("layout", origin.layout);
  if (origin.seed) manifest.set("seed", *origin.seed);
  manifest.set("page_size", problem.k.page_size);
  manifest.set("query_heads", problem.query_heads);
  manifest.set("kv_heads", problem.k.heads);
  manifest.set("head_size", problem.k.head_size);
  manifest.set("value_size", problem.v.head_size);
  manifest.set("q_dtype", name(problem.q_dtype));
  manifest.set("k_dtype", name(problem.k.dtype));
  manifest.set("v_dtype", name(problem.v.dtype));
  if (problem.k.scales != nullptr) {
    manifest.set("scale_dtype", name(problem.k.scale_dtype));
    manifest.set("granularity", problem.k.granularity);
  }
}

std::string non_finite_rows(const Bundle& golden) {
  const auto o = golden.tensors.find("o"), lse = golden.tensors.find("lse");
  if (o == golden.tensors.end() || o->second.dtype != DType::f64 || o->second.shape.size() != 3) return "";
  const std::span<const double> elements = values<double>(o->second);
  const auto heads = static_cast<std::size_t>(o->second.shape[1]), dims = static_cast<std::size_t>(o->second.shape[2]);
  if (heads == 0 || dims == 0) return "";
  const std::size_t rows = elements.size() / dims;
  std::size_t count = 0, first = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    bool finite = true;  // of all elements: without an early end, the loop is vectorized
    for (const double x : elements.subspan(row * dims, dims)) {
      finite &= std::abs(x) <= std::numeric_limits<double>::max();
    }
    if (!finite && count++ == 0) first = row;
  }
  if (count == 0) return "";
  // A score of NaN or infinity reaches lse too; V does not.
  const bool from_scores = lse == golden.tensors.end() || !std::isfinite(as_doubles(lse->second).at(first));
  return fmt::format(
      "{} of {} rows of o are NaN or infinite, the first at query {}, head {}: {} of a token that it sees "
      "is",
      count, rows, first / heads, first % heads, from_scores ? "q is, or K" : "V");
}

}  // namespace kvscope::golden
