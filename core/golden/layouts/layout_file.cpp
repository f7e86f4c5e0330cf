// A layout's description as a JSON file: reading with all faults at once, and writing.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/nearest_name.h"
#include "core/golden/layouts/layout_description.h"

namespace kvscope::golden {
namespace {

constexpr std::int64_t kMaxLayoutFile = 1 << 20;  // [bytes]
constexpr std::array kAllHolds{Holds::k, Holds::v, Holds::kv, Holds::k_scales, Holds::v_scales, Holds::kv_scales};
constexpr std::array kAllForms{TableForm::blocks,   TableForm::indptr,  TableForm::tokens,
                               TableForm::requests, TableForm::offsets, TableForm::dense,
                               TableForm::ragged,   TableForm::chunk,   TableForm::sparse};

template <class Word, std::size_t N>
std::optional<Word> word_of(const std::array<Word, N>& words, std::string_view text) {
  for (const Word word : words) {
    if (name(word) == text) return word;
  }
  return std::nullopt;
}

template <class Word, std::size_t N>
std::string names_of(const std::array<Word, N>& words) {
  std::vector<std::string_view> names;
  for (const Word word : words) names.push_back(name(word));
  return fmt::format("{}", fmt::join(names, ", "));
}

// Reads a JSON file member by member and collects faults; members that were not read are faults too.
class DescriptionReader {
 public:
  explicit DescriptionReader(std::string_view source) : source_(source) {}

  void fault(const std::string& path, std::string message) { faults_.push_back({path, std::move(message)}); }
  [[nodiscard]] std::size_t faults() const { return faults_.size(); }
  void throw_if_any() {
    if (!faults_.empty()) throw InputError(source_, std::move(faults_));
  }

  const json::Value* object(const json::Value& value, const std::string& path,
                            std::initializer_list<std::string_view> known) {
    if (!value.is_object()) {
      fault(path, fmt::format("is {}; an object is needed", value.kind()));
      return nullptr;
    }
    const std::vector<std::string_view> names(known);
    for (const json::Member& member : *value.as_object()) {
      if (std::ranges::find(names, member.first) == names.end()) {
        fault(path + "." + member.first, "is unknown" + suggest_name(member.first, names));
      }
    }
    return &value;
  }

  std::string text(const json::Value& object, const std::string& path, std::string_view key, bool needed) {
    const json::Value* value = object.find(key);
    if (value != nullptr && value->is_string()) return *value->as_string();
    if (value != nullptr || needed) {
      fault(path + "." + std::string(key), value == nullptr ? "is missing; a string is needed"
                                                            : fmt::format("is {}; a string is needed", value->kind()));
    }
    return {};
  }

  // A string that is needed; empty after its fault.
  std::optional<std::string> word(const json::Value& object, const std::string& path, std::string_view key) {
    const std::size_t before = faults_.size();
    std::string read = text(object, path, key, true);
    return faults_.size() == before ? std::optional(std::move(read)) : std::nullopt;
  }

  std::int64_t integer(const json::Value& object, const std::string& path, std::string_view key, bool needed,
                       std::int64_t low = 0) {
    const json::Value* value = object.find(key);
    if (value == nullptr && !needed) return 0;
    if (value != nullptr && value->as_i64() != nullptr && *value->as_i64() >= low && *value->as_i64() <= kLargest) {
      return *value->as_i64();
    }
    fault(path + "." + std::string(key), fmt::format("an integer in [{}, {}] is needed", low, kLargest));
    return 0;
  }

  bool flag(const json::Value& object, const std::string& path, std::string_view key) {
    const json::Value* value = object.find(key);
    if (value == nullptr) return false;
    if (value->as_bool() == nullptr) fault(path + "." + std::string(key), "is true or false");
    return value->as_bool() != nullptr && *value->as_bool();
  }

  std::vector<std::string> texts(const json::Value* value, const std::string& path) {
    std::vector<std::string> all;
    if (value == nullptr) return all;
    if (!value->is_array()) {
      fault(path, "a list of strings is needed");
      return all;
    }
    for (const json::Value& item : *value->as_array()) {
      if (item.is_string()) {
        all.push_back(*item.as_string());
      } else {
        fault(path, "a list of strings is needed");
      }
    }
    return all;
  }

  std::vector<std::int64_t> integers(const json::Value* value, const std::string& path, std::int64_t low) {
    std::vector<std::int64_t> all;
    if (value == nullptr) return all;
    const json::Array* items = value->as_array();
    for (std::size_t i = 0; items != nullptr && i < items->size(); ++i) {
      const std::int64_t* number = (*items)[i].as_i64();
      if (number == nullptr || *number < low || *number > kLargest) break;
      all.push_back(*number);
    }
    if (items == nullptr || all.size() != items->size()) {
      fault(path, fmt::format("a list of integers in [{}, {}] is needed", low, kLargest));
    }
    return all;
  }

  DType dtype(const json::Value& object, const std::string& path) {
    const std::optional<std::string> read = word(object, path, "dtype");
    if (!read) return DType::f32;
    const std::optional<DType> dtype = dtype_from_name(*read);
    if (!dtype || !is_float(*dtype) || *dtype == DType::e2m1) {
      fault(path + ".dtype", fmt::format("'{}' is not a float of at least 8 bits", *read));
      return DType::f32;
    }
    return *dtype;
  }

  std::vector<std::string> axes(const std::string& text, const std::string& path) {
    try {
      return parse_axes(text, source_, path);
    } catch (const InputError& error) {
      faults_.insert(faults_.end(), error.faults().begin(), error.faults().end());
      return {};
    }
  }

 private:
  static constexpr std::int64_t kLargest = std::int64_t{1} << 40;  // keeps products of two within 64 bits with checks
  std::string_view source_;
  std::vector<Fault> faults_;
};

void read_row(DescriptionReader& in, const json::Value& tensor, const std::string& path, CacheTensor& made) {
  const json::Value* row = tensor.find("row");
  const bool has_axis = std::ranges::count(made.axes, "row") > 0;
  if (row == nullptr || !has_axis) {
    if (has_axis) in.fault(path + ".row", "is missing; axis row needs its bytes and fields");
    if (row != nullptr) in.fault(path + ".row", "needs the axis row");
    return;
  }
  if (in.object(*row, path + ".row", {"bytes", "fields"}) == nullptr) return;
  made.row_bytes = in.integer(*row, path + ".row", "bytes", true, 1);
  const json::Value* fields = row->find("fields");
  if (fields == nullptr || fields->as_array() == nullptr || fields->as_array()->empty()) {
    return in.fault(path + ".row.fields", "a list of fields is needed");
  }
  for (std::size_t i = 0; i < fields->as_array()->size(); ++i) {
    const json::Value& item = (*fields->as_array())[i];
    const std::string at = fmt::format("{}.row.fields[{}]", path, i);
    if (in.object(item, at, {"elements", "dtype", "at", "scales"}) == nullptr) continue;
    const std::size_t faults_before = in.faults();
    RowField field;
    field.elements = in.integer(item, at, "elements", true, 1);
    field.dtype = in.dtype(item, at);
    field.at = in.integer(item, at, "at", true);
    std::int64_t end = field.at + field.elements * size_of(field.dtype);
    if (const json::Value* scales = item.find("scales");
        scales != nullptr && in.object(*scales, at + ".scales", {"dtype", "at", "each"}) != nullptr) {
      field.scale_dtype = in.dtype(*scales, at + ".scales");
      field.scales_at = in.integer(*scales, at + ".scales", "at", true);
      field.scale_each = in.integer(*scales, at + ".scales", "each", true, 1);
      if (field.scale_each > 0 && field.elements % field.scale_each != 0) {
        in.fault(at + ".scales.each",
                 fmt::format("{} does not divide the {} elements", field.scale_each, field.elements));
      } else if (field.scale_each > 0) {
        end = std::max(end, field.scales_at + field.elements / field.scale_each * size_of(field.scale_dtype));
      }
    }
    const bool sizes_known = in.faults() == faults_before && made.row_bytes > 0;
    if (sizes_known && end > made.row_bytes) {
      in.fault(at, fmt::format("ends at byte {}, past the {} bytes of the row", end, made.row_bytes));
    }
    made.row.push_back(field);
  }
}

CacheTensor read_tensor(DescriptionReader& in, const json::Value& tensor, const std::string& path) {
  CacheTensor made;
  if (in.object(tensor, path, {"name", "also", "holds", "axes", "strides", "sizes", "offset", "row", "optional"}) ==
      nullptr) {
    return made;
  }
  made.name = in.text(tensor, path, "name", true);
  made.also = in.texts(tensor.find("also"), path + ".also");
  if (const auto holds = in.word(tensor, path, "holds")) {
    if (const auto index = word_of(kAllHolds, *holds)) {
      made.holds = *index;
    } else {
      in.fault(path + ".holds", fmt::format("'{}': choose one of {}", *holds, names_of(kAllHolds)));
    }
  }
  if (const auto axes = in.word(tensor, path, "axes")) made.axes = in.axes(*axes, path + ".axes");
  made.strides = in.integers(tensor.find("strides"), path + ".strides", 0);
  made.sizes = in.integers(tensor.find("sizes"), path + ".sizes", 1);
  made.offset = in.integer(tensor, path, "offset", false);
  made.optional = in.flag(tensor, path, "optional");
  const std::size_t axes = made.axes.size();
  if (made.strides.size() != made.sizes.size() || (!made.strides.empty() && made.strides.size() != axes)) {
    in.fault(path + ".strides",
             fmt::format("flat storage needs {} strides and {} sizes, one for each axis", axes, axes));
    made.strides.clear();
    made.sizes.clear();
  }
  read_row(in, tensor, path, made);
  return made;
}

// The axes of K must reach every element once: a place of the token, and the elements of a head.
void check_tensor(DescriptionReader& in, const CacheTensor& tensor, const std::string& path) {
  const auto count = [&](std::string_view axis) { return std::ranges::count(tensor.axes, axis); };
  for (const std::string& axis : tensor.axes) {
    if (axis != "1" && count(axis) > 1) {
      in.fault(path + ".axes", fmt::format("axis '{}' occurs twice", axis));
      return;
    }
  }
  if (tensor.axes.empty()) return;
  const auto places = count("block") + count("token") + count("seq") + count("block*kv");
  if (places != 1) {
    in.fault(path + ".axes", "exactly one of the axes block, token, seq and block*kv is needed");
  }
  const auto elements = count("dim") + count("dim/x") + count("latent") + count("rope") + count("row") +
                        count("head*dim") + count("dim+vdim") + count("group");
  if (elements != 1) {
    in.fault(path + ".axes",
             "exactly one axis of a head's elements is needed: dim, dim/x with x, latent, rope, row, "
             "head*dim, dim+vdim or, for scales, group");
  }
  if (count("dim/x") != count("x")) in.fault(path + ".axes", "the axes dim/x and x belong together");
  const bool both = tensor.holds == Holds::kv || tensor.holds == Holds::kv_scales;
  const auto pair = count("kv") + count("block*kv") + count("dim+vdim");
  if (both != (pair == 1)) {
    in.fault(path + ".axes", both ? "a tensor that holds kv needs an axis for K and V: kv, block*kv or dim+vdim"
                                  : fmt::format("a tensor that holds {} has no axis for K and V", name(tensor.holds)));
  }
}

// A cache has the scales of K, and those of V, once: in a tensor of their own, or in the rows of the values.
void check_scales(DescriptionReader& in, const CacheForm& form, const std::string& path) {
  const auto is_of = [](const CacheTensor& tensor, bool v) {
    return tensor.holds == Holds::kv || tensor.holds == Holds::kv_scales || tensor.holds == (v ? Holds::v : Holds::k) ||
           tensor.holds == (v ? Holds::v_scales : Holds::k_scales);
  };
  const auto in_rows = [](const CacheTensor& tensor) {
    return std::ranges::any_of(tensor.row, [](const RowField& field) { return field.scale_each > 0; });
  };
  for (const bool v : {false, true}) {
    const CacheTensor* first = nullptr;
    for (std::size_t j = 0; j < form.tensors.size(); ++j) {
      const CacheTensor& tensor = form.tensors[j];
      if (!is_of(tensor, v) || !(tensor.holds_scales() || in_rows(tensor))) continue;
      if (first != nullptr && (first->holds_scales() || tensor.holds_scales())) {
        in.fault(fmt::format("{}.tensors[{}].holds", path, j),
                 fmt::format("'{}' has the scales of {} already: a form has them once", first->name, v ? "v" : "k"));
      }
      first = &tensor;
    }
  }
}

EngineLimit read_limit(DescriptionReader& in, const json::Value& file, std::string_view key, std::string_view unit) {
  const json::Value* value = file.find(key);
  const std::string path = "$." + std::string(key);
  if (value == nullptr || in.object(*value, path, {unit, "engine"}) == nullptr) return {};
  return {in.integer(*value, path, unit, true), in.text(*value, path, "engine", true)};
}

void read_forms(DescriptionReader& in, const json::Value& file, LayoutDescription& layout) {
  const json::Value* forms = file.find("forms");
  if (forms == nullptr || forms->as_array() == nullptr || forms->as_array()->empty()) {
    return in.fault("$.forms", "a list of at least one form is needed");
  }
  for (std::size_t i = 0; i < forms->as_array()->size(); ++i) {
    const json::Value& form = (*forms->as_array())[i];
    const std::string path = fmt::format("$.forms[{}]", i);
    CacheForm made;
    if (in.object(form, path, {"tensors", "values"}) == nullptr) continue;
    const std::string values = in.text(form, path, "values", false);
    if (!values.empty() && values != "leading" && values != "own") {
      in.fault(path + ".values", fmt::format("'{}': choose one of own, leading", values));
    }
    made.values_in_keys = values == "leading";
    const json::Value* tensors = form.find("tensors");
    if (tensors == nullptr || tensors->as_array() == nullptr) {
      in.fault(path + ".tensors", "a list of tensors is needed");
      continue;
    }
    bool k = false, v = made.values_in_keys;
    for (std::size_t j = 0; j < tensors->as_array()->size(); ++j) {
      const std::string at = fmt::format("{}.tensors[{}]", path, j);
      made.tensors.push_back(read_tensor(in, (*tensors->as_array())[j], at));
      check_tensor(in, made.tensors.back(), at);
      const std::string& name = made.tensors.back().name;
      if (!name.empty() && std::ranges::count(made.tensors, name, &CacheTensor::name) > 1) {
        in.fault(at + ".name", fmt::format("'{}' is the name of another tensor of this form: each has its own", name));
      }
      const Holds holds = made.tensors.back().holds;
      k = k || holds == Holds::k || holds == Holds::kv;
      v = v || holds == Holds::v || holds == Holds::kv;
    }
    check_scales(in, made, path);
    if (!k || !v) {
      in.fault(path, fmt::format("no tensor holds {}{}", !k ? "k" : "v", k ? "; or add \"values\": \"leading\"" : ""));
    }
    layout.forms.push_back(std::move(made));
  }
}

void read_table_of(DescriptionReader& in, const json::Value& file, LayoutDescription& layout) {
  const json::Value* table = file.find("table");
  if (table == nullptr) return in.fault("$.table", "is missing");
  if (in.object(*table, "$.table", {"form", "counts", "tensors"}) == nullptr) return;
  const std::optional<std::string> form = in.word(*table, "$.table", "form");
  if (!form) return;
  const auto index = word_of(kAllForms, *form);
  if (!index) {
    return in.fault("$.table.form", fmt::format("'{}': choose one of {}", *form, names_of(kAllForms)));
  }
  layout.table.form = *index;
  const std::string counts = in.text(*table, "$.table", "counts", false);
  if (!counts.empty() && counts != "all" && counts != "cached") {
    in.fault("$.table.counts", fmt::format("'{}': choose one of all, cached", counts));
  }
  layout.table.lengths_without_new = counts == "cached";
  const json::Value* tensors = table->find("tensors");
  const std::vector<std::string> roles = table_roles(layout.table.form);
  if (tensors != nullptr && tensors->is_object()) {
    for (const json::Member& member : *tensors->as_object()) {
      const std::string path = "$.table.tensors." + member.first;
      if (std::ranges::find(roles, member.first) == roles.end()) {
        in.fault(path, fmt::format("form {} has {}", *form,
                                   roles.empty() ? "no tensors" : fmt::format("{}", fmt::join(roles, ", "))));
        continue;
      }
      layout.table.tensors[member.first] = in.texts(&member.second, path);
      if (layout.table.tensors[member.first].empty()) {
        layout.table.tensors.erase(member.first);
        in.fault(path, "at least one name is needed");
      }
    }
  }
  for (const std::string& role : roles) {
    const bool optional =
        layout.table.form == TableForm::dense ||
        ((layout.table.form == TableForm::ragged || layout.table.form == TableForm::sparse) && role == "lengths") ||
        (layout.table.form == TableForm::indptr && (role == "lengths" || role == "last_page_len"));
    if (!optional && !layout.table.has(role)) in.fault("$.table.tensors." + role, "is missing");
  }
  if (layout.table.form == TableForm::indptr && layout.table.has("lengths") == layout.table.has("last_page_len")) {
    in.fault("$.table.tensors", "form indptr needs either last_page_len or lengths");
  }
}

}  // namespace

LayoutDescription parse_layout(const json::Value& file, std::string name, std::string_view source) {
  DescriptionReader in(source);
  LayoutDescription layout;
  layout.name = std::move(name);
  if (in.object(file, "$",
                {"about", "forms", "table", "v_may_differ", "descale_by_sequence", "q_axes", "page_multiple",
                 "index_bits", "run"}) != nullptr) {
    layout.about = in.text(file, "$", "about", false);
    read_forms(in, file, layout);
    read_table_of(in, file, layout);
    layout.v_may_differ = in.flag(file, "$", "v_may_differ");
    layout.descale_by_sequence = in.flag(file, "$", "descale_by_sequence");
    if (const std::string q = in.text(file, "$", "q_axes", false); !q.empty()) {
      const std::vector<std::string> axes = in.axes(q, "$.q_axes");
      layout.queries_by_head = axes == std::vector<std::string>{"seq", "head", "query", "dim"};
      if (!layout.queries_by_head)
        in.fault("$.q_axes", "only [seq, head, query, dim] is supported besides the default");
    }
    layout.page_multiple = read_limit(in, file, "page_multiple", "tokens");
    layout.index_bits = read_limit(in, file, "index_bits", "bits");
    layout.run_bytes = read_limit(in, file, "run", "bytes");
  }
  in.throw_if_any();
  return layout;
}

LayoutDescription read_layout_file(const std::string& path) {
  const json::Value file = json::parse(read_file(path, kMaxLayoutFile), path);
  return parse_layout(file, std::filesystem::path(path).stem().string(), path);
}

json::Value to_json(const LayoutDescription& layout) {
  json::Array forms;
  for (const CacheForm& form : layout.forms) {
    json::Array tensors;
    for (const CacheTensor& tensor : form.tensors) {
      json::Value made;
      made.set("name", tensor.name);
      if (!tensor.also.empty()) made.set("also", json::strings(tensor.also));
      made.set("holds", name(tensor.holds));
      made.set("axes", fmt::format("[{}]", fmt::join(tensor.axes, ", ")));
      const auto list = [](const std::vector<std::int64_t>& numbers) {
        return json::Array(numbers.begin(), numbers.end());
      };
      if (!tensor.strides.empty()) {
        made.set("strides", list(tensor.strides));
        made.set("sizes", list(tensor.sizes));
        made.set("offset", tensor.offset);
      }
      if (tensor.optional) made.set("optional", true);
      if (!tensor.row.empty()) {
        json::Array fields;
        for (const RowField& field : tensor.row) {
          json::Value item;
          item.set("elements", field.elements);
          item.set("dtype", name(field.dtype));
          item.set("at", field.at);
          if (field.scale_each > 0) {
            json::Value scales;
            scales.set("dtype", name(field.scale_dtype));
            scales.set("at", field.scales_at);
            scales.set("each", field.scale_each);
            item.set("scales", scales);
          }
          fields.push_back(std::move(item));
        }
        json::Value row;
        row.set("bytes", tensor.row_bytes);
        row.set("fields", std::move(fields));
        made.set("row", row);
      }
      tensors.push_back(std::move(made));
    }
    json::Value made;
    if (form.values_in_keys) made.set("values", "leading");
    made.set("tensors", std::move(tensors));
    forms.push_back(std::move(made));
  }
  json::Value table, roles = json::Object{}, file;
  for (const std::string& role : table_roles(layout.table.form)) {
    if (layout.table.has(role)) roles.set(role, json::strings(layout.table.tensors.at(role)));
  }
  table.set("form", name(layout.table.form));
  if (layout.table.lengths_without_new) table.set("counts", "cached");
  table.set("tensors", roles);
  file.set("about", layout.about);
  file.set("forms", std::move(forms));
  if (layout.v_may_differ) file.set("v_may_differ", true);
  if (layout.descale_by_sequence) file.set("descale_by_sequence", true);
  if (layout.queries_by_head) file.set("q_axes", "[seq, head, query, dim]");
  const auto limit = [&](const char* key, const char* unit, const EngineLimit& given) {
    if (given.value == 0) return;
    json::Value made;
    made.set(unit, given.value);
    made.set("engine", given.engine);
    file.set(key, made);
  };
  limit("page_multiple", "tokens", layout.page_multiple);
  limit("index_bits", "bits", layout.index_bits);
  limit("run", "bytes", layout.run_bytes);
  file.set("table", table);
  return file;
}

}  // namespace kvscope::golden
