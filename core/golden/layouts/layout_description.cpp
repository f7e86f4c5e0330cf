#include "core/golden/layouts/layout_description.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <utility>

#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/nearest_name.h"
#include "core/golden/layouts/detail/embedded_layouts.h"

namespace kvscope::golden {
namespace {

struct AxisWord {
  std::string_view axis, letters;
};

constexpr auto kAxes = std::to_array<AxisWord>(
    {{"block", "N"},   {"slot", "P"},       {"token", "slots"},  {"seq", "B"},         {"position", "S"},
     {"head", "H"},    {"dim", "D"},        {"dim/x", "D/x"},    {"x", "x"},           {"latent", "latent"},
     {"rope", "rope"}, {"kv", "2"},         {"layer", "L"},      {"1", "1"},           {"group", "G"},
     {"row", "row"},   {"head*dim", "H*D"}, {"block*kv", "2*N"}, {"dim+vdim", "D+Dv"}, {"query", "queries"}});
// Other words for an axis: of the documentation, of engines and of shapes.
struct OtherWord {
  std::string_view word, axis;
};
constexpr auto kOtherWords = std::to_array<OtherWord>({{"page", "block"},
                                                       {"pages", "block"},
                                                       {"num_blocks", "block"},
                                                       {"num_pages", "block"},
                                                       {"N", "block"},
                                                       {"page_row", "slot"},
                                                       {"block_size", "slot"},
                                                       {"page_size", "slot"},
                                                       {"P", "slot"},
                                                       {"B", "seq"},
                                                       {"batch", "seq"},
                                                       {"sequence", "seq"},
                                                       {"S", "position"},
                                                       {"seqlen", "position"},
                                                       {"H", "head"},
                                                       {"kv_head", "head"},
                                                       {"kv_heads", "head"},
                                                       {"num_heads", "head"},
                                                       {"num_kv_heads", "head"},
                                                       {"D", "dim"},
                                                       {"head_dim", "dim"},
                                                       {"head_size", "dim"},
                                                       {"L", "layer"},
                                                       {"num_layers", "layer"},
                                                       {"2", "kv"},
                                                       {"k_or_v", "kv"},
                                                       {"num_tokens", "token"}});
constexpr auto kHolds = std::to_array<std::string_view>({"k", "v", "kv", "k_scales", "v_scales", "kv_scales"});
constexpr auto kTableForms = std::to_array<std::string_view>(
    {"blocks", "indptr", "tokens", "requests", "offsets", "dense", "ragged", "chunk", "sparse"});

}  // namespace

std::string CacheTensor::shape_words() const {
  std::vector<std::string_view> words;
  for (const std::string& axis : axes) words.push_back(std::ranges::find(kAxes, axis, &AxisWord::axis)->letters);
  return fmt::format("[{}]", fmt::join(words, ", "));
}

bool LayoutDescription::has_axis(std::string_view axis) const {
  return std::ranges::any_of(forms, [&](const CacheForm& form) {
    return std::ranges::any_of(form.tensors,
                               [&](const CacheTensor& tensor) { return std::ranges::count(tensor.axes, axis) > 0; });
  });
}

bool LayoutDescription::needs_value_size() const {
  return has_axis("dim+vdim") || std::ranges::any_of(forms, [](const CacheForm& form) { return form.values_in_keys; });
}

std::vector<std::string> table_roles(TableForm form) {
  switch (form) {
    case TableForm::blocks:
    case TableForm::offsets:
      return {"table", "lengths"};
    case TableForm::indptr:
      return {"indptr", "indices", "last_page_len", "lengths"};
    case TableForm::tokens:
      return {"indptr", "indices"};
    case TableForm::requests:
      return {"table", "requests", "lengths"};
    case TableForm::dense:
      return {"lengths", "left_padding", "attention_mask"};
    case TableForm::ragged:
      return {"indptr", "lengths"};
    case TableForm::sparse:
      return {"indices", "lengths"};
    case TableForm::chunk:
      break;
  }
  return {};
}

std::string_view name(TableForm form) {
  return kTableForms[static_cast<std::size_t>(form)];
}

std::string_view name(Holds holds) {
  return kHolds[static_cast<std::size_t>(holds)];
}

std::vector<std::string> parse_axes(std::string_view text, std::string_view source, const std::string& where) {
  const auto trimmed = [](std::string_view part) {
    while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
    while (!part.empty() && part.back() == ' ') part.remove_suffix(1);
    return part;
  };
  std::string_view rest = trimmed(text);
  if (rest.size() < 2 || rest.front() != '[' || rest.back() != ']') {
    throw InputError(source, where, fmt::format("'{}' is not a list of axes such as [block, slot, head, dim]", text));
  }
  rest = rest.substr(1, rest.size() - 2);
  std::vector<std::string_view> known;
  for (const AxisWord& word : kAxes) known.push_back(word.axis);
  std::vector<std::string> axes, unknown;
  std::vector<Fault> faults;
  while (true) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view axis = trimmed(rest.substr(0, comma));
    if (std::ranges::find(known, axis) == known.end()) {
      const auto other = std::ranges::find(kOtherWords, axis, &OtherWord::word);
      const std::string_view near = other != kOtherWords.end() ? other->axis : nearest_name(axis, known);
      if (near.empty()) {
        unknown.push_back(fmt::format("'{}'", axis));
      } else {
        faults.push_back({where, fmt::format("'{}' is not an axis: did you mean \"{}\"?", axis, near)});
      }
    }
    axes.emplace_back(axis);
    if (comma == rest.size()) break;
    rest.remove_prefix(comma + 1);
  }
  if (!unknown.empty()) {
    faults.push_back(
        {where, fmt::format("{} {}: choose of {}", fmt::join(unknown, " and "),
                            unknown.size() == 1 ? "is not an axis" : "are not axes", fmt::join(known, ", "))});
  }
  if (!faults.empty()) throw InputError(source, std::move(faults));
  return axes;
}

namespace {

// What is wrong with the part before '=' of a text of --axes; `earlier` are the parts of the texts before it.
std::string fault_of_part(const std::string& part, bool has_name, const std::vector<std::string>& earlier) {
  if (std::ranges::find(kHolds, part) == kHolds.end()) {
    std::string lower = part.substr(0, part.find('_'));
    std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const bool is_part = lower == "k" || lower == "v" || lower == "kv";
    return fmt::format(
        "'{0}' is not a part of a cache: write {1}=[...]{2}", part, is_part ? lower : "k",
        is_part ? fmt::format(", or {}:{}=[...] for a tensor of that name", part, lower) : ", v=[...] or kv=[...]");
  }
  if (std::ranges::count(earlier, part) > 0) {
    return fmt::format("{0}= is given twice: describe each part of the cache once", part);
  }
  if (part.ends_with("_scales") && !has_name) {
    return fmt::format("{0}= needs the name of the tensor: write NAME:{0}=[...]", part);
  }
  return "";
}

}  // namespace

LayoutDescription layout_of_axes(const std::vector<std::string>& texts) {
  json::Array tensors;
  std::vector<Fault> faults;
  std::vector<std::string> parts;
  bool separate = false;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    const std::size_t colon = text.substr(0, equals).find(':');
    if (equals == std::string::npos) {
      faults.push_back({"--axes", fmt::format("'{}' has no '=': write kv=[block, kv, head, slot, dim]", text)});
      continue;
    }
    const std::string holds =
        text.substr(colon == std::string::npos ? 0 : colon + 1, equals - (colon == std::string::npos ? 0 : colon + 1));
    const std::string wrong = fault_of_part(holds, colon != std::string::npos, parts);
    if (!wrong.empty()) faults.push_back({"--axes", wrong});
    parts.push_back(holds);
    json::Value tensor;
    tensor.set("name",
               colon == std::string::npos ? (holds == "kv" ? "kv_cache" : holds + "_cache") : text.substr(0, colon));
    if (colon == std::string::npos) {
      tensor.set("also",
                 json::strings(holds == "kv"  ? std::vector<std::string>{"kv", "kv_pool", "pages"}
                               : holds == "k" ? std::vector<std::string>{"k", "key_cache", "k_buffer", "keys"}
                                              : std::vector<std::string>{"v", "value_cache", "v_buffer", "values"}));
    }
    tensor.set("holds", holds);
    tensor.set("axes", text.substr(equals + 1));
    separate = separate || holds != "k";
    tensors.push_back(std::move(tensor));
  }
  if (!faults.empty()) throw InputError("command line", std::move(faults));
  json::Value form, file, table, names;
  const bool pages = texts.front().find("block") != std::string::npos;
  const bool dense = texts.front().find("seq") != std::string::npos;
  form.set("tensors", std::move(tensors));
  if (!separate) form.set("values", "leading");  // only K is given: an MLA cache
  file.set("about", "described by --axes");
  file.set("forms", json::Array{form});
  file.set("v_may_differ", true);
  const std::vector<std::string> lengths{"seq_lens", "cache_seqlens", "context_lens", "seqused_k"};
  if (pages || dense) names.set("lengths", json::strings(lengths));
  if (pages) names.set("table", json::strings({"block_table", "block_tables", "page_table"}));
  if (!pages && !dense) {
    names.set("indptr", json::strings({"kv_indptr"}));
    names.set("indices", json::strings({"kv_indices"}));
  }
  table.set("form", pages ? "blocks" : dense ? "dense" : "tokens");
  table.set("tensors", names);
  file.set("table", table);
  try {
    return parse_layout(file, "axes", "--axes");
  } catch (const InputError& error) {  // the file is written here: name the texts, not its places
    for (Fault fault : error.faults()) {
      std::string where = "--axes";
      for (std::size_t i = 0; i < texts.size(); ++i) {
        if (fault.where.starts_with(fmt::format("$.forms[0].tensors[{}].", i))) where += fmt::format(" '{}'", texts[i]);
      }
      const std::size_t of_files = fault.message.find("; or add \"values\"");
      if (of_files != std::string::npos) fault.message.resize(of_files);
      if (fault.message.starts_with("no tensor holds ")) {
        fault.message +=
            fmt::format(": pass its axes too, such as --axes '{}=[block, slot, head, dim]'", fault.message.back());
      }
      faults.push_back({where, fault.message});
    }
    throw InputError("command line", std::move(faults));
  }
}

const std::vector<LayoutDescription>& named_layouts() {
  static const std::vector<LayoutDescription> layouts = [] {
    std::vector<LayoutDescription> all;
    for (const EmbeddedLayout& file : embedded_layouts()) {
      all.push_back(parse_layout(json::parse(file.text, file.name), std::string(file.name), file.name));
    }
    return all;
  }();
  return layouts;
}

const LayoutDescription* find_layout(std::string_view name) {
  const auto found = std::ranges::find(named_layouts(), name, &LayoutDescription::name);
  return found == named_layouts().end() ? nullptr : &*found;
}

std::string_view layout_file_text(std::string_view name) {
  for (const EmbeddedLayout& file : embedded_layouts()) {
    if (file.name == name) return file.text;
  }
  return {};
}

}  // namespace kvscope::golden
