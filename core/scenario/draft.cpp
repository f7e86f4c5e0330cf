#include "core/scenario/draft.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/scenario/detail/field_faults.h"
#include "core/scenario/detail/fields.h"
#include "core/scenario/presets.h"

namespace kvscope {
namespace {

using fields::About;
using fields::IntegerRange;
using fields::join_path;
using fields::Need;
using fields::RealRange;
using Kind = DraftField::Kind;

constexpr std::string_view kModel = "$.model";
constexpr std::string_view kPreset = "$.model.preset";
constexpr std::string_view kNoPreset = "custom";
constexpr std::string_view kNone = "none";  // null: no value, also where the preset has one

// --- paths -----------------------------------------------------------------------------------------------------------

// A part of a path: a key, or the number of an item.
struct Part {
  std::string_view key;
  std::size_t item = 0;  // if `key` is empty
};

// "$.requests.list[0].samples" -> requests, list, 0, samples. Precondition: the path of a field.
std::vector<Part> parts_of(std::string_view path) {
  std::vector<Part> parts;
  for (std::size_t at = 1; at < path.size();) {
    const std::size_t end = std::min(path.find_first_of(".[", at + 1), path.size());
    const std::string_view part = path.substr(at + 1, end - at - 1);
    if (path[at] == '.') {
      parts.push_back({part, 0});
    } else {
      parts.push_back({{}, static_cast<std::size_t>(std::stoull(std::string(part)))});
    }
    at = end;
  }
  return parts;
}

// The part of `value`; null: it is absent.
json::Value* part_of(json::Value& value, const Part& part) {
  if (part.key.empty()) {
    json::Array* array = value.as_array();
    return array != nullptr && part.item < array->size() ? &(*array)[part.item] : nullptr;
  }
  return const_cast<json::Value*>(value.find(part.key));
}

// A path in the words of a change: "cache.page_size".
std::string_view short_path(std::string_view path) {
  return path.substr(2);
}

// --- the document ----------------------------------------------------------------------------------------------------

// The object or array that has the last part of the path; sections on the way are created.
json::Value& holder_of(json::Value& document, const std::vector<Part>& parts) {
  json::Value* at = &document;
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    json::Value* next = part_of(*at, parts[i]);
    at = next != nullptr ? next : &at->set(parts[i].key, json::Object{});
  }
  return *at;
}

void erase(json::Value& holder, const Part& part) {
  if (json::Array* array = holder.as_array()) {
    array->erase(array->begin() + static_cast<std::ptrdiff_t>(part.item));
  } else if (json::Object* object = holder.as_object()) {
    std::erase_if(*object, [&](const json::Member& member) { return member.first == part.key; });
  }
}

// A model by its name alone becomes an object, so that its fields can be set.
void open_model(json::Value& document, const Scenario& scenario) {
  const json::Value* model = document.find("model");
  if (model != nullptr && model->is_object()) return;
  document.set("model", json::Object{{"preset", scenario.model.name}});
}

// And the reverse, when it has none. A section without fields is taken out.
void close_sections(json::Value& document) {
  if (const json::Value* model = document.find("model")) {
    const json::Object* object = model->as_object();
    const json::Value* preset = model->find("preset");
    if (object != nullptr && object->size() == 1 && preset != nullptr) document.set("model", json::Value(*preset));
  }
  std::erase_if(*document.as_object(), [](const json::Member& member) {
    const json::Object* section = member.second.as_object();
    return section != nullptr && section->empty() && member.first != "requests" && member.first != "model";
  });
}

// Text that is not a number is kept, so that the reader names it: the string "abc" instead of an integer.
json::Value number_or_text(std::string_view text) {
  try {
    json::Value value = json::parse(text, "");
    if (value.is_number()) return value;
  } catch (const InputError&) {
  }
  return text;
}

json::Value value_of(const DraftField& field, std::string_view text) {
  if (field.kind == Kind::number && text == kNone && !field.words.empty()) return nullptr;
  if (field.kind == Kind::number) return number_or_text(text);
  if (field.kind == Kind::flag && (text == "true" || text == "false")) return text == "true";
  return text;
}

std::string text_of(const json::Value& value) {
  if (const std::string* text = value.as_string()) return *text;
  if (const double* number = std::get_if<double>(&value.data())) return fmt::format("{}", *number);
  return value.is_null() ? std::string(kNone) : json::dump(value, -1);
}

// --- its fields ------------------------------------------------------------------------------------------------------

// Visits a struct and the part of the document that describes it: null if it has none.
class FieldMaker {
 public:
  FieldMaker(std::string path, const json::Value* given) : path_(std::move(path)), given_(given) {}

  template <class T>
  [[nodiscard]] static std::vector<DraftField> fields_of(std::string path, const json::Value* given, const T& value) {
    FieldMaker inner(std::move(path), given);
    fields::describe(fields::Tag<T>{}, inner, value);
    return std::move(inner.fields_);
  }

  void integer(std::string_view key, const std::int64_t& value, IntegerRange range, const About& about) {
    leaf(Kind::number, key, value, about).range = fields::range_text(range);
  }
  void unsigned_integer(std::string_view key, const std::uint64_t& value, std::uint64_t high, const About& about) {
    leaf(Kind::number, key, value, about).range = fmt::format("[0, {}]", high);
  }
  void real(std::string_view key, const double& value, RealRange range, const About& about) {
    leaf(Kind::number, key, value, about).range = fields::range_text(range);
  }
  void optional_real(std::string_view key, const std::optional<double>& value, RealRange range, const About& about) {
    DraftField& field = leaf(Kind::number, key, value ? json::Value(*value) : json::Value(), about);
    field.range = fields::range_text(range);
    field.words = {std::string(kNone)};
  }
  void flag(std::string_view key, const bool& value, const About& about) {
    leaf(Kind::flag, key, value, about).words = {"true", "false"};
  }
  void text(std::string_view key, const std::string& value, const About& about) { leaf(Kind::text, key, value, about); }
  template <class E, std::size_t N>
  void word(std::string_view key, const E& value, const std::array<fields::Word<E>, N>& words, const About& about) {
    const auto found = std::ranges::find_if(words, [&](const auto& w) { return w.value == value; });
    KVSCOPE_ASSERT(found != words.end());
    DraftField& field = leaf(Kind::word, key, found->text, about);
    for (const auto& w : words) field.words.emplace_back(w.text);
  }
  template <class T>
  void object(std::string_view key, const T& value, const About& about) {
    DraftField& field = start(Kind::section, key, about);
    field.fields = fields_of(field.path, find(key), value);
  }
  template <class T>
  void optional_object(std::string_view key, const std::optional<T>& value, const About& about) {
    DraftField& field = start(Kind::optional, key, about);
    if (field.given) field.fields = fields_of(field.path, find(key), value.value_or(T{}));
  }
  template <class T>
  void list(std::string_view key, const std::vector<T>& values, IntegerRange, const About& about) {
    DraftField& field = start(Kind::list, key, about);
    field.value = std::to_string(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      DraftField& item = field.fields.emplace_back();
      item.kind = Kind::item;
      item.path = join_path(field.path, i);
      item.name = fmt::format("[{}]", i);
      item.given = true;
      item.fields = fields_of(item.path, &(*find(key)->as_array())[i], values[i]);
    }
  }
  void model(std::string_view key, const ModelGeometry& value, const About& about) {
    DraftField& field = start(Kind::section, key, about);
    const json::Value* given = find(key);
    const json::Value* preset = given == nullptr || given->is_string() ? given : given->find("preset");
    const std::string_view no_name = given == nullptr ? std::string_view(value.name) : kNoPreset;
    DraftField& from = field.fields.emplace_back();
    from.kind = Kind::word;
    from.path = kPreset;
    from.name = "preset";
    from.meaning =
        "The model to start from; other fields override its values. A choice replaces all of them. custom: none.";
    for (const ModelPreset& p : model_presets()) from.words.push_back(p.model.name);
    from.words.emplace_back(kNoPreset);
    from.value = preset == nullptr ? std::string(no_name) : text_of(*preset);
    from.given = given != nullptr;
    std::ranges::move(fields_of(field.path, given, value), std::back_inserter(field.fields));
  }

 private:
  [[nodiscard]] const json::Value* find(std::string_view key) const {
    return given_ == nullptr ? nullptr : given_->find(key);
  }
  DraftField& start(Kind kind, std::string_view key, const About& about) {
    DraftField& field = fields_.emplace_back();
    field.kind = kind;
    field.path = join_path(path_, key);
    field.name = key;
    field.meaning = about.meaning;
    field.required = about.need == Need::required;
    field.given = find(key) != nullptr;
    return field;
  }
  // What is given is shown as it is, also if it is a fault.
  DraftField& leaf(Kind kind, std::string_view key, const json::Value& value, const About& about) {
    DraftField& field = start(kind, key, about);
    field.value = text_of(field.given ? *find(key) : value);
    return field;
  }

  std::string path_;
  const json::Value* given_;
  std::vector<DraftField> fields_;
};

// The smallest legal values of the fields without a default.
class SmallestMaker {
 public:
  template <class T>
  [[nodiscard]] static json::Object smallest() {
    SmallestMaker inner;
    const T value{};
    fields::describe(fields::Tag<T>{}, inner, value);
    return std::move(inner.object_);
  }
  void integer(std::string_view key, const std::int64_t&, IntegerRange range, const About& about) {
    put(key, range.low, about);
  }
  void unsigned_integer(std::string_view key, const std::uint64_t&, std::uint64_t, const About& about) {
    put(key, 0, about);
  }
  void real(std::string_view key, const double&, RealRange range, const About& about) { put(key, range.low, about); }
  void flag(std::string_view, const bool&, const About&) {}
  void text(std::string_view key, const std::string& value, const About& about) { put(key, value, about); }
  template <class E, std::size_t N>
  void word(std::string_view, const E&, const std::array<fields::Word<E>, N>&, const About&) {}
  template <class T>
  void list(std::string_view, const std::vector<T>&, IntegerRange, const About&) {}

 private:
  void put(std::string_view key, json::Value value, const About& about) {
    if (about.need == Need::required) object_.emplace_back(std::string(key), std::move(value));
  }
  json::Object object_;
};

json::Object smallest_at(const DraftField& field) {
  if (field.path == "$.cache.quantization") return SmallestMaker::smallest<Quantization>();
  if (field.path == "$.requests.generator") return SmallestMaker::smallest<RequestGenerator>();
  if (field.path == "$.requests.file") return SmallestMaker::smallest<RequestFile>();
  return field.name == "content" ? SmallestMaker::smallest<ContentSpan>() : SmallestMaker::smallest<Request>();
}

const DraftField* find_in(const DraftField& field, std::string_view path) {
  if (field.path == path) return &field;
  for (const DraftField& inner : field.fields) {
    if (!path.starts_with(inner.path)) continue;
    if (const DraftField* found = find_in(inner, path)) return found;
  }
  return nullptr;
}

// "cache.page_size: 16 -> 48"
std::string words_of_set(const DraftField& field, std::string_view text) {
  return fmt::format("{}: {} -> {}", short_path(field.path), field.value, text);
}

}  // namespace

// --- the draft -------------------------------------------------------------------------------------------------------

bool ScenarioDraft::fits(const Scenario& scenario) {
  std::size_t items = scenario.requests.list.size();
  for (const Request& request : scenario.requests.list) items += request.content.size();
  return items <= kMostItems;
}

ScenarioDraft::ScenarioDraft(const Scenario& scenario) : start_(scenario), states_{{to_short_json(scenario), {}}} {
  KVSCOPE_ASSERT(fits(scenario));
  read();
}

bool ScenarioDraft::changed() const {
  return !reading_.faults.empty() || reading_.scenario != start_;
}

const DraftField* ScenarioDraft::find(std::string_view path) const {
  return find_in(root_, path);
}

const DraftField& ScenarioDraft::field_at(std::string_view path) const {
  if (const DraftField* field = find(path)) return *field;
  throw IndexError(fmt::format("the scenario has no field {}", path));
}

void ScenarioDraft::set(std::string_view path, std::string_view text) {
  const DraftField& field = field_at(path);
  if (!field.is_value()) throw IndexError(fmt::format("{} has fields, not a value", path));
  if (text == field.value) return;
  if (text.empty() && !field.required && field.kind != Kind::text) return remove(path);
  json::Value after = document();
  if (path != kPreset) {
    if (path.starts_with(kModel)) open_model(after, scenario());
    const std::vector<Part> parts = parts_of(path);
    holder_of(after, parts).set(parts.back().key, value_of(field, text));
  } else if (text == kNoPreset) {  // everything that the preset implied stays
    Scenario custom = scenario();
    custom.model.name = kNoPreset;
    after.set("model", *to_json(custom).find("model"));
    if (custom.attention != AttentionConfig{}) after.set("attention", *to_json(custom).find("attention"));
  } else {
    after.set("model", text);
  }
  change(words_of_set(field, text), std::move(after));
}

void ScenarioDraft::remove(std::string_view path) {
  const DraftField& field = field_at(path);
  if (!field.is_value() && field.kind != Kind::optional && field.kind != Kind::item) {
    throw IndexError(fmt::format("{} cannot be removed", path));
  }
  if (!field.given) return;
  json::Value after = document();
  if (path == kPreset) {
    erase(after, {"model", 0});
  } else {
    const std::vector<Part> parts = parts_of(path);
    erase(holder_of(after, parts), parts.back());
  }
  change(fmt::format("{}: {}", short_path(path), field.is_value() ? "default" : "removed"), std::move(after));
}

void ScenarioDraft::add(std::string_view path) {
  const DraftField& field = field_at(path);
  if (field.kind != Kind::optional && field.kind != Kind::list) {
    throw IndexError(fmt::format("{} is no list and no optional section", path));
  }
  if (field.kind == Kind::optional && field.given) return;
  json::Value after = document();
  const std::vector<Part> parts = parts_of(path);
  json::Value& holder = holder_of(after, parts);
  if (field.kind == Kind::optional) {
    holder.set(parts.back().key, smallest_at(field));
  } else {
    json::Value* list = part_of(holder, parts.back());
    if (list == nullptr) list = &holder.set(parts.back().key, json::Array{});
    list->as_array()->emplace_back(smallest_at(field));
  }
  change(fmt::format("{}: {}", short_path(path), field.kind == Kind::list ? "one more" : "added"), std::move(after));
}

void ScenarioDraft::replace(const Scenario& scenario, std::string words) {
  KVSCOPE_ASSERT(fits(scenario));
  if (faults().empty() && this->scenario() == scenario) return;
  change(std::move(words), to_short_json(scenario));
}

void ScenarioDraft::mark_start() {
  start_ = scenario();
}

void ScenarioDraft::change(std::string words, json::Value after) {
  close_sections(after);
  if (after == document()) return;
  states_.resize(now_ + 1);
  states_.push_back({std::move(after), std::move(words)});
  if (states_.size() > kMostChanges + 1) states_.erase(states_.begin());
  now_ = states_.size() - 1;
  read();
}

void ScenarioDraft::read() {
  reading_ = read_document(document());
  root_ = {};
  root_.path = "$";
  root_.fields = FieldMaker::fields_of(root_.path, &document(), reading_.scenario);
}

std::optional<std::string> ScenarioDraft::undo_words() const {
  return now_ == 0 ? std::nullopt : std::optional(states_[now_].words);
}

std::optional<std::string> ScenarioDraft::redo_words() const {
  return now_ + 1 == states_.size() ? std::nullopt : std::optional(states_[now_ + 1].words);
}

void ScenarioDraft::undo() {
  if (now_ == 0) return;
  --now_;
  read();
}

void ScenarioDraft::redo() {
  if (now_ + 1 == states_.size()) return;
  ++now_;
  read();
}

}  // namespace kvscope
