#include "core/scenario/schema.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "core/base/json.h"
#include "core/scenario/detail/fields.h"
#include "core/scenario/presets.h"
#include "core/scenario/scenario.h"

namespace kvscope {
namespace {

using fields::About;
using fields::IntegerRange;
using fields::Need;
using fields::RealRange;

json::Value described(json::Object object, const About& about) {
  object.emplace_back("description", about.meaning);
  return object;
}

// Visits a struct that holds the default values.
class SchemaMaker {
 public:
  void integer(std::string_view key, const std::int64_t& value, IntegerRange range, const About& about) {
    with_default(key, {{"type", "integer"}, {"minimum", range.low}, {"maximum", range.high}}, value, about);
  }
  void unsigned_integer(std::string_view key, const std::uint64_t& value, std::uint64_t high, const About& about) {
    with_default(key, {{"type", "integer"}, {"minimum", 0}, {"maximum", high}}, value, about);
  }
  void real(std::string_view key, const double& value, RealRange range, const About& about) {
    with_default(key, number(json::Value("number"), range), value, about);
  }
  void optional_real(std::string_view key, const std::optional<double>&, RealRange range, const About& about) {
    add(key, number(json::Array{"number", "null"}, range), about);
  }
  void flag(std::string_view key, const bool& value, const About& about) {
    with_default(key, {{"type", "boolean"}}, value, about);
  }
  void text(std::string_view key, const std::string& value, const About& about) {
    with_default(key, {{"type", "string"}, {"maxLength", fields::kMaxText}}, value, about);
  }
  template <class E, std::size_t N>
  void word(std::string_view key, const E& value, const std::array<fields::Word<E>, N>& words, const About& about) {
    json::Array legal;
    json::Value standard;
    for (const auto& w : words) {
      legal.emplace_back(w.text);
      if (w.value == value) standard = w.text;
    }
    with_default(key, {{"enum", std::move(legal)}}, std::move(standard), about);
  }
  template <class T>
  void object(std::string_view key, const T& value, const About& about) {
    add(key, object_schema(value), about);
  }
  template <class T>
  void optional_object(std::string_view key, const std::optional<T>&, const About& about) {
    json::Array either{object_schema(T{}), json::Object{{"type", "null"}}};
    add(key, {{"anyOf", std::move(either)}}, about);
  }
  template <class T>
  void list(std::string_view key, const std::vector<T>&, IntegerRange range, const About& about) {
    add(key, {{"type", "array"}, {"maxItems", range.high}, {"items", object_schema(T{})}}, about);
  }
  void model(std::string_view key, const ModelGeometry& value, const About& about) {
    json::Array names;
    for (const ModelPreset& preset : model_presets()) names.emplace_back(preset.model.name);
    json::Object presets{{"enum", std::move(names)}};
    SchemaMaker inner;
    fields::describe(fields::Tag<ModelGeometry>{}, inner, value);
    for (auto& [name, schema] : inner.properties_)
      std::erase_if(*schema.as_object(), is_default);  // a preset's may differ
    inner.add("preset", presets, {"The model to start from; other keys given here override its fields.", ""});
    add(key, {{"anyOf", json::Array{presets, inner.take()}}, {"default", value.name}}, about);
  }

  void add(std::string_view key, json::Object schema, const About& about) {
    properties_.emplace_back(std::string(key), described(std::move(schema), about));
    if (about.need == Need::required) required_.emplace_back(key);
  }

  json::Object take() {
    json::Object object{{"type", "object"}, {"properties", std::move(properties_)}, {"additionalProperties", false}};
    if (!required_.empty()) object.emplace_back("required", std::move(required_));
    return object;
  }

 private:
  static bool is_default(const json::Member& member) { return member.first == "default"; }

  static json::Object number(json::Value type, RealRange range) {
    return {{"type", std::move(type)},
            {range.low_is_legal ? "minimum" : "exclusiveMinimum", range.low},
            {"maximum", range.high}};
  }
  void with_default(std::string_view key, json::Object schema, json::Value standard, const About& about) {
    if (about.need == Need::optional) schema.emplace_back("default", std::move(standard));
    add(key, std::move(schema), about);
  }
  template <class T>
  static json::Object object_schema(const T& value) {
    SchemaMaker inner;
    fields::describe(fields::Tag<T>{}, inner, value);
    return inner.take();
  }

  json::Object properties_;
  json::Array required_;
};

}  // namespace

std::string scenario_schema() {
  SchemaMaker maker;
  maker.add("$schema", {{"type", "string"}}, {"Location of this schema, for editors; has no effect.", ""});
  maker.add("kvscope_scenario", {{"const", kScenarioVersion}}, {"Version of the format.", "", Need::required});
  const Scenario defaults;
  fields::describe(fields::Tag<Scenario>{}, maker, defaults);
  json::Object schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                      {"$id", "urn:kvscope:scenario:1"},
                      {"title", "kvscope scenario"}};
  for (json::Member& member : maker.take()) schema.push_back(std::move(member));
  return json::dump(schema, 2) + "\n";
}

}  // namespace kvscope
