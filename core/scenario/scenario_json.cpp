#include "core/scenario/scenario_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/nearest_name.h"
#include "core/scenario/checks.h"
#include "core/scenario/detail/fault_list.h"
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

constexpr std::int64_t kMaxFileBytes = std::int64_t{64} << 20;
constexpr std::string_view kVersionKey = "kvscope_scenario";
constexpr std::string_view kSchemaKey = "$schema";  // for editors; has no effect

// --- reading ---------------------------------------------------------------------------------------------------------

// The value for a message: short ones in full, long ones by their kind.
std::string shown(const json::Value& value) {
  constexpr std::size_t kShown = 40;
  if (value.is_array()) return "an array";
  if (value.is_object()) return "an object";
  if (const std::string* text = value.as_string(); text != nullptr && text->size() > kShown) return "a long string";
  const std::string text = json::dump(value, -1);
  if (value.is_string()) return "the string " + text;
  return text;
}

// A whole double is an integer, as in JSON Schema: 16.0 is 16.
std::optional<std::int64_t> as_integer(const json::Value& given) {
  if (const std::int64_t* number = given.as_i64()) return *number;
  const double* real = std::get_if<double>(&given.data());
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (real == nullptr || !(std::fabs(*real) <= kExact) || *real != std::floor(*real)) return std::nullopt;
  return static_cast<std::int64_t>(*real);
}

class Reader {
 public:
  Reader(const json::Object& object, std::string path, FaultList& faults)
      : object_(&object), path_(std::move(path)), faults_(&faults) {}

  // Marks a key as known without reading it.
  void know(std::string_view key) { known_.push_back(key); }

  // Called after all fields: any remaining key is a mistake, usually of spelling.
  void reject_unknown_keys() {
    for (const auto& [key, value] : *object_) {
      if (std::ranges::find(known_, key) == known_.end()) {
        faults_->add(join_path(path_, key), "unknown key" + suggest_name(key, known_));
      }
    }
  }

  [[nodiscard]] const json::Value* find(std::string_view key) const {
    const auto found = std::ranges::find_if(*object_, [&](const json::Member& m) { return m.first == key; });
    return found == object_->end() ? nullptr : &found->second;
  }
  void fault(std::string_view key, std::string message) { faults_->add(join_path(path_, key), std::move(message)); }

  void integer(std::string_view key, std::int64_t& value, IntegerRange range, const About& about) {
    const json::Value* given = get(key, about);
    if (given == nullptr) return;
    if (const std::optional<std::int64_t> number = as_integer(*given)) {
      accept(key, value, *number, fields::range_fault(*number, range, about));
    } else if (given->is_integer()) {  // past the largest signed number
      const std::string next = about.next.empty() ? "" : fmt::format(": {}", about.next);
      fault(key, fmt::format("{} is outside {}{}", json::dump(*given, -1), fields::range_text(range), next));
    } else {
      wrong_kind(key, *given, fmt::format("an integer in {}", fields::range_text(range)));
    }
  }

  void unsigned_integer(std::string_view key, std::uint64_t& value, std::uint64_t high, const About& about) {
    const json::Value* given = get(key, about);
    if (given == nullptr) return;
    if (const auto* large = std::get_if<std::uint64_t>(&given->data())) {
      accept(key, value, *large, fields::range_fault(*large, high, about));
    } else if (const std::optional<std::int64_t> number = as_integer(*given); number && *number >= 0) {
      const auto bits = static_cast<std::uint64_t>(*number);
      accept(key, value, bits, fields::range_fault(bits, high, about));
    } else {
      wrong_kind(key, *given, fmt::format("an integer in [0, {}]", high));
    }
  }

  void real(std::string_view key, double& value, RealRange range, const About& about) {
    const json::Value* given = get(key, about);
    if (given != nullptr) read_real(key, value, *given, range, about);
  }

  void optional_real(std::string_view key, std::optional<double>& value, RealRange range, const About& about) {
    const json::Value* given = get(key, about);
    if (given == nullptr) return;
    value.reset();
    if (given->is_null()) return;
    double number = 0;
    if (read_real(key, number, *given, range, about)) value = number;
  }

  void flag(std::string_view key, bool& value, const About& about) {
    const json::Value* given = get(key, about);
    if (given == nullptr) return;
    if (const bool* b = given->as_bool()) {
      value = *b;
    } else {
      wrong_kind(key, *given, "true or false");
    }
  }

  void text(std::string_view key, std::string& value, const About& about) {
    const json::Value* given = get(key, about);
    if (given == nullptr) return;
    if (const std::string* text = given->as_string()) {
      accept(key, value, *text, fields::text_fault(*text, about));
    } else {
      wrong_kind(key, *given, "a string");
    }
  }

  template <class E, std::size_t N>
  void word(std::string_view key, E& value, const std::array<fields::Word<E>, N>& words, const About& about) {
    const json::Value* given = get(key, about);
    if (given == nullptr) return;
    std::vector<std::string_view> legal;
    for (const auto& w : words) legal.push_back(w.text);
    const std::string* text = given->as_string();
    if (text == nullptr) {
      wrong_kind(key, *given, fmt::format("one of {}", fmt::join(legal, ", ")));
      return;
    }
    const auto found = std::ranges::find_if(words, [&](const auto& w) { return w.text == *text; });
    if (found != words.end()) {
      value = found->value;
    } else {
      fault(key, fmt::format("{} is not one of {}{}", json::dump(json::Value(clipped(*text)), -1),
                             fmt::join(legal, ", "), did_you_mean(*text, legal)));
    }
  }

  template <class T>
  void object(std::string_view key, T& value, const About& about) {
    const json::Value* given = get(key, about);
    if (given != nullptr) read_object(join_path(path_, key), *given, value);
  }

  template <class T>
  void optional_object(std::string_view key, std::optional<T>& value, const About& about) {
    const json::Value* given = get(key, about);
    if (given == nullptr) return;
    value.reset();
    if (!given->is_null()) read_object(join_path(path_, key), *given, value.emplace());
  }

  template <class T>
  void list(std::string_view key, std::vector<T>& values, IntegerRange range, const About& about) {
    const json::Value* given = get(key, about);
    if (given == nullptr) return;
    const json::Array* array = given->as_array();
    if (array == nullptr) {
      wrong_kind(key, *given, "an array");
    } else if (auto too_many = fields::count_fault(array->size(), range, about)) {
      fault(key, std::move(*too_many));
    } else {
      values.clear();
      values.reserve(array->size());
      const std::string path = join_path(path_, key);
      for (std::size_t i = 0; i < array->size(); ++i)
        read_object(join_path(path, i), (*array)[i], values.emplace_back());
    }
  }

  void model(std::string_view key, ModelGeometry& value, const About& about) {
    const json::Value* given = get(key, about);
    if (given == nullptr) return;
    const json::Object* object = given->as_object();
    if (given->is_string()) {
      read_preset(path_, key, *given, value);
    } else if (object == nullptr) {
      wrong_kind(key, *given, "a preset's name or an object");
    } else {
      Reader inner(*object, join_path(path_, key), *faults_);
      inner.read_model(value);
    }
  }

  template <class T>
  void read_object(std::string path, const json::Value& given, T& value) {
    const json::Object* object = given.as_object();
    if (object == nullptr) {
      faults_->add(std::move(path), fmt::format("{} instead of an object", shown(given)));
      return;
    }
    Reader inner(*object, std::move(path), *faults_);
    fields::describe(fields::Tag<T>{}, inner, value);
    inner.reject_unknown_keys();
  }

 private:
  static std::string clipped(const std::string& text) {
    constexpr std::size_t kShown = 40;
    return text.size() <= kShown ? text : std::string("...");
  }
  static std::string did_you_mean(std::string_view typed, const std::vector<std::string_view>& legal) {
    const std::string_view near = nearest_name(typed, legal);
    return near.empty() ? "" : fmt::format(": did you mean \"{}\"?", near);
  }

  const json::Value* get(std::string_view key, const About& about) {
    known_.push_back(key);
    const json::Value* given = find(key);
    if (given == nullptr && about.need == Need::required) fault(key, fmt::format("missing: {}", about.next));
    return given;
  }

  bool read_real(std::string_view key, double& value, const json::Value& given, RealRange range, const About& about) {
    if (!given.is_number()) {
      wrong_kind(key, given, fmt::format("a number in {}", fields::range_text(range)));
      return false;
    }
    return accept(key, value, given.number(), fields::range_fault(given.number(), range, about));
  }

  template <class T>
  bool accept(std::string_view key, T& value, const T& given, std::optional<std::string> message) {
    if (message) {
      fault(key, std::move(*message));
      return false;
    }
    value = given;
    return true;
  }

  void wrong_kind(std::string_view key, const json::Value& given, std::string_view wanted) {
    fault(key, fmt::format("{} instead of {}", shown(given), wanted));
  }

  // False when the value names no preset.
  bool read_preset(const std::string& path, std::string_view key, const json::Value& given, ModelGeometry& value) {
    const std::string* name = given.as_string();
    if (name == nullptr) {
      faults_->add(join_path(path, key), fmt::format("{} instead of a preset's name", shown(given)));
      return false;
    }
    if (const ModelPreset* preset = find_preset(*name)) {
      value = preset->model;
      return true;
    }
    std::vector<std::string_view> names;
    for (const ModelPreset& p : model_presets()) names.push_back(p.model.name);
    faults_->add(join_path(path, key),
                 fmt::format("{} is not one of the presets {}{}", json::dump(json::Value(clipped(*name)), -1),
                             fmt::join(names, ", "), did_you_mean(*name, names)));
    return false;
  }

  void read_model(ModelGeometry& value) {
    know("preset");
    const json::Value* preset = find("preset");
    if (preset != nullptr) {
      read_preset(path_, "preset", *preset, value);
    } else {
      value.name = "custom";
    }
    fields::describe(fields::Tag<ModelGeometry>{}, *this, value);
    reject_unknown_keys();
    if (find("value_size") != nullptr || find("head_size") == nullptr) return;
    if (!value.is_mla) {
      value.value_size = value.head_size;
    } else {
      fault("value_size", "missing: an MLA model needs the number of elements of a row that are V, such as 512 of 576");
    }
  }

  const json::Object* object_;
  std::string path_;
  FaultList* faults_;
  std::vector<std::string_view> known_;
};

// A preset's attention must be set before the scenario's own is read over it.
void start_from_preset(const json::Value& document, Scenario& scenario) {
  const json::Value* model = document.find("model");
  if (model == nullptr) return;
  if (const json::Value* preset = model->find("preset")) model = preset;
  const std::string* name = model->as_string();
  if (name == nullptr) return;
  if (const ModelPreset* preset = find_preset(*name)) scenario.attention = preset->attention;
}

void follow_other_fields(const json::Value& document, Scenario& scenario) {
  const auto given = [&](std::string_view group, std::string_view key) {
    const json::Value* object = document.find(group);
    return object != nullptr && object->find(key) != nullptr;
  };
  if (scenario.cache.kind == CacheKind::continuous && !given("cache", "prefix_sharing")) {
    scenario.cache.prefix_sharing = false;
  }
  if (scenario.cache.kind == CacheKind::paged && !given("tile", "BN")) {
    scenario.tile.BN = default_tile_rows(scenario.cache.page_size);
  }
}

// A newer version is the only fault reported alone, because the meaning of its other keys is not known.
bool check_version(Reader& reader, FaultList& faults) {
  const json::Value* version = reader.find(kVersionKey);
  if (version == nullptr) {
    reader.fault(kVersionKey, fmt::format("missing: write {}, the version of the format", kScenarioVersion));
    return true;
  }
  const std::optional<std::int64_t> number = as_integer(*version);
  if (number == kScenarioVersion) return true;
  if ((number || version->is_integer()) && version->number() > kScenarioVersion) {
    faults = FaultList(1);
    reader.fault(kVersionKey, fmt::format("version {} is newer than {}, the newest this program reads: update kvscope",
                                          json::dump(*version, -1), kScenarioVersion));
    return false;
  }
  reader.fault(kVersionKey,
               fmt::format("{} is not a version of the format: write {}", shown(*version), kScenarioVersion));
  return true;
}

// --- writing ---------------------------------------------------------------------------------------------------------

// Writes every field, or with `defaults` only those that differ from them, and the required ones.
class Writer {
 public:
  explicit Writer(const json::Object* defaults = nullptr) : defaults_(defaults) {}

  template <class T>
  [[nodiscard]] static json::Object written(const T& value, const json::Object* defaults) {
    Writer inner(defaults);
    fields::describe(fields::Tag<T>{}, inner, value);
    return std::move(inner.object_);
  }

  void integer(std::string_view key, const std::int64_t& value, IntegerRange, const About& about) {
    put(key, value, about);
  }
  void unsigned_integer(std::string_view key, const std::uint64_t& value, std::uint64_t, const About& about) {
    put(key, value, about);
  }
  void real(std::string_view key, const double& value, RealRange, const About& about) { put(key, value, about); }
  void optional_real(std::string_view key, const std::optional<double>& value, RealRange, const About& about) {
    if (value) {
      put(key, *value, about);
    } else if (find_default(key) != nullptr) {
      put(key, nullptr, about);
    }
  }
  void flag(std::string_view key, const bool& value, const About& about) { put(key, value, about); }
  void text(std::string_view key, const std::string& value, const About& about) { put(key, value, about); }
  template <class E, std::size_t N>
  void word(std::string_view key, const E& value, const std::array<fields::Word<E>, N>& words, const About& about) {
    const auto found = std::ranges::find_if(words, [&](const auto& w) { return w.value == value; });
    KVSCOPE_ASSERT(found != words.end());
    put(key, found->text, about);
  }
  template <class T>
  void object(std::string_view key, const T& value, const About& about) {
    const json::Value* standard = find_default(key);
    json::Object object = written(value, standard == nullptr ? nullptr : standard->as_object());
    if (defaults_ != nullptr && object.empty() && about.need == Need::optional) return;
    put(key, std::move(object), {"", "", Need::required});
  }
  template <class T>
  void optional_object(std::string_view key, const std::optional<T>& value, const About& about) {
    if (value) put(key, written_alone(*value), about);
  }
  template <class T>
  void list(std::string_view key, const std::vector<T>& values, IntegerRange, const About& about) {
    json::Array array;
    array.reserve(values.size());
    for (const T& value : values) array.emplace_back(written_alone(value));
    if (!array.empty()) put(key, std::move(array), about);
  }
  void model(std::string_view key, const ModelGeometry& value, const About& about) {
    const json::Value* standard = find_default(key);
    if (standard == nullptr) return put(key, written(value, nullptr), about);
    json::Object full = written(value, nullptr);
    if (*standard != json::Value(std::move(full))) put(key, short_model(value), about);
  }

 private:
  [[nodiscard]] const json::Value* find_default(std::string_view key) const {
    if (defaults_ == nullptr) return nullptr;
    const auto found = std::ranges::find_if(*defaults_, [&](const json::Member& m) { return m.first == key; });
    return found == defaults_->end() ? nullptr : &found->second;
  }
  void put(std::string_view key, json::Value value, const About& about) {
    const json::Value* standard = find_default(key);
    if (about.need == Need::optional && standard != nullptr && *standard == value) return;
    object_.emplace_back(std::string(key), std::move(value));
  }
  // A struct whose defaults do not depend on the scenario.
  template <class T>
  [[nodiscard]] json::Object written_alone(const T& value) const {
    if (defaults_ == nullptr) return written(value, nullptr);
    const json::Object defaults = written(T{}, nullptr);
    return written(value, &defaults);
  }
  // A preset's name, {"preset": its name, ...} or the geometry, as Reader::read_model() takes them.
  [[nodiscard]] static json::Value short_model(const ModelGeometry& model) {
    const ModelPreset* preset = find_preset(model.name);
    if (preset != nullptr && preset->model == model) return model.name;
    ModelGeometry from;
    from.name = "custom";
    if (preset != nullptr) from = preset->model;
    if (model.head_size != from.head_size) from.value_size = model.is_mla ? 0 : model.head_size;
    json::Object object;
    if (preset != nullptr) object.emplace_back("preset", model.name);
    const json::Object defaults = written(from, nullptr);
    std::ranges::move(written(model, &defaults), std::back_inserter(object));
    return object;
  }

  const json::Object* defaults_;
  json::Object object_;
};

json::Object with_version(json::Object scenario) {
  scenario.insert(scenario.begin(), {std::string(kVersionKey), kScenarioVersion});
  return scenario;
}

}  // namespace

DocumentReading read_document(const json::Value& document) {
  const json::Object* object = document.as_object();
  if (object == nullptr) return {{}, {{"$", fmt::format("{} instead of an object", shown(document))}}};
  Scenario scenario;
  FaultList faults(kScenarioFaults);
  Reader reader(*object, "$", faults);
  reader.know(kVersionKey);
  reader.know(kSchemaKey);
  if (check_version(reader, faults)) {
    start_from_preset(document, scenario);
    fields::describe(fields::Tag<Scenario>{}, reader, scenario);
    reader.reject_unknown_keys();
    follow_other_fields(document, scenario);
    if (faults.complete()) {
      for (Fault& f : check_rules(scenario, std::vector<Fault>(faults.kept()))) faults.add(f.where, f.message);
    }
  }
  return {std::move(scenario), faults.take()};
}

Scenario parse_scenario(std::string_view text, std::string_view source) {
  DocumentReading reading = read_document(json::parse(text, source));
  if (!reading.faults.empty()) throw InputError(source, std::move(reading.faults));
  return std::move(reading.scenario);
}

Scenario load_scenario(const std::filesystem::path& path) {
  return parse_scenario(read_file(path, kMaxFileBytes), path.string());
}

json::Value to_json(const Scenario& scenario) {
  return with_version(Writer::written(scenario, nullptr));
}

json::Value to_short_json(const Scenario& scenario) {
  Scenario defaults;
  if (const ModelPreset* preset = find_preset(scenario.model.name)) defaults.attention = preset->attention;
  defaults.cache.prefix_sharing = scenario.cache.kind == CacheKind::paged;
  if (scenario.cache.kind == CacheKind::paged) defaults.tile.BN = default_tile_rows(scenario.cache.page_size);
  const json::Object written = Writer::written(defaults, nullptr);
  return with_version(Writer::written(scenario, &written));
}

}  // namespace kvscope
