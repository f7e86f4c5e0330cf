#include "core/scenario/draft.h"

#include <gmock/gmock.h>

#include <functional>
#include <string>
#include <vector>

#include "core/scenario/checks.h"
#include "core/scenario/presets.h"
#include "core/scenario/scenario_json.h"
#include "tests/core/scenario/support.h"
#include "tests/property.h"

namespace kvscope::draft_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Kind = DraftField::Kind;

Scenario parsed(const std::string& members) {
  return parse_scenario(R"({"kvscope_scenario": 1, )" + members + R"(, "requests": {"list": [{"prompt_tokens": 9}]}})",
                        "test");
}

// Every optional section and every kind of item.
Scenario full_scenario() {
  Scenario s = small_scenario();
  s.cache.dtype = DType::e4m3;
  s.cache.quantization = Quantization{DType::f32, 4, Quantizer::amax};
  s.requests.generator = RequestGenerator{};
  s.requests.generator->count = 3;
  s.requests.file = RequestFile{"requests.csv", 0, 1.0};
  return s;
}

void for_each_field(const DraftField& field, const std::function<void(const DraftField&)>& work) {
  work(field);
  for (const DraftField& inner : field.fields) for_each_field(inner, work);
}

std::vector<DraftField> all_fields(const ScenarioDraft& draft) {
  std::vector<DraftField> all;
  for_each_field(draft.root(), [&](const DraftField& field) { all.push_back(field); });
  return all;
}

std::string value_at(const ScenarioDraft& draft, const std::string& path) {
  const DraftField* field = draft.find(path);
  return field == nullptr ? "no field" : field->value;
}

// --- fields ----------------------------------------------------------------------------------------------------------

TEST(ScenarioDraft, ShowsEveryFieldOfTheFormatWithItsValue) {
  const Scenario s = full_scenario();
  const ScenarioDraft draft(s);
  EXPECT_EQ(draft.scenario(), s);
  EXPECT_THAT(draft.faults(), IsEmpty());
  EXPECT_FALSE(draft.changed());
  // The values of the written document, which is made without the draft.
  const std::function<void(const json::Value&, const std::string&)> compare = [&](const json::Value& value,
                                                                                  const std::string& path) {
    if (const json::Object* object = value.as_object()) {
      for (const auto& [key, inner] : *object) {
        if (key != "kvscope_scenario") compare(inner, path + "." + key);
      }
    } else if (const json::Array* array = value.as_array()) {
      EXPECT_EQ(value_at(draft, path), std::to_string(array->size()));
      for (std::size_t i = 0; i < array->size(); ++i) compare((*array)[i], path + "[" + std::to_string(i) + "]");
    } else {
      const DraftField* field = draft.find(path);
      ASSERT_NE(field, nullptr) << path;
      if (value.is_number()) {
        EXPECT_EQ(json::parse(field->value, "value").number(), value.number()) << path;
      } else {
        EXPECT_EQ(field->value, value.is_string() ? *value.as_string() : json::dump(value, -1)) << path;
      }
      EXPECT_FALSE(field->meaning.empty()) << path;
    }
  };
  compare(to_json(s), "$");
}

TEST(ScenarioDraft, AFieldWithoutAValueOfItsOwnFollowsTheOthers) {
  ScenarioDraft draft(parsed(R"("cache": {"page_size": 16})"));
  EXPECT_EQ(value_at(draft, "$.tile.BN"), "64");
  EXPECT_FALSE(draft.find("$.tile.BN")->given);
  draft.set("$.cache.page_size", "48");
  EXPECT_TRUE(draft.find("$.cache.page_size")->given);
  EXPECT_EQ(value_at(draft, "$.tile.BN"), "48");
  EXPECT_EQ(draft.scenario(), parsed(R"("cache": {"page_size": 48})"));
  draft.set("$.tile.BN", "64");
  EXPECT_THAT(draft.faults(),
              ElementsAre(Fault{"$.tile.BN", "64 tokens are not a whole number of 48-token pages: choose 48 or 96"}));
  EXPECT_TRUE(draft.changed());
  draft.set("$.tile.BN", "");
  EXPECT_THAT(draft.faults(), IsEmpty());
  EXPECT_EQ(value_at(draft, "$.tile.BN"), "48");
}

TEST(ScenarioDraft, AValueThatCannotBeReadIsKeptAndIsAFault) {
  ScenarioDraft draft(parsed(R"("seed": 2)"));
  draft.set("$.cache.page_size", "many");
  EXPECT_EQ(value_at(draft, "$.cache.page_size"), "many");
  EXPECT_THAT(draft.faults(),
              ElementsAre(Fault{"$.cache.page_size", "the string \"many\" instead of an integer in [1, 65536]"}));
  draft.set("$.cache.page_size", "0");
  EXPECT_THAT(draft.faults(),
              ElementsAre(Fault{"$.cache.page_size", "0 is outside [1, 65536]: choose a power of two such as 16"}));
  draft.set("$.cache.dtype", "fp4");
  EXPECT_EQ(draft.faults().size(), 2u);
  draft.remove("$.cache.page_size");
  draft.remove("$.cache.dtype");
  EXPECT_THAT(draft.faults(), IsEmpty());
  EXPECT_FALSE(draft.changed());
}

TEST(ScenarioDraft, PathsThatAreNoFieldsAreRejected) {
  ScenarioDraft draft(full_scenario());
  for (const char* path : {"", "$.pages", "$.requests.list[1]", "$.cache.page_size.x", "cache.page_size"}) {
    EXPECT_EQ(draft.find(path), nullptr) << path;
    EXPECT_THROW(draft.set(path, "1"), IndexError) << path;
    EXPECT_THROW(draft.add(path), IndexError) << path;
    EXPECT_THROW(draft.remove(path), IndexError) << path;
  }
  EXPECT_THROW(draft.set("$.cache", "1"), IndexError);
  EXPECT_THROW(draft.add("$.cache"), IndexError);
  EXPECT_THROW(draft.remove("$.requests"), IndexError);
  EXPECT_THROW(draft.remove("$.requests.list"), IndexError);
  EXPECT_FALSE(draft.changed());
  EXPECT_EQ(draft.undo_words(), std::nullopt);
}

// --- models ----------------------------------------------------------------------------------------------------------

TEST(ScenarioDraft, APresetIsChosenAndItsFieldsAreChanged) {
  ScenarioDraft draft(parsed(R"("seed": 2)"));
  EXPECT_EQ(value_at(draft, "$.model.preset"), "tiny");
  EXPECT_FALSE(draft.find("$.model.preset")->given);
  for (const ModelPreset& preset : model_presets()) {
    draft.set("$.model.preset", preset.model.name);
    EXPECT_EQ(draft.scenario().model, preset.model);
    EXPECT_EQ(draft.scenario().attention, preset.attention);
  }
  draft.set("$.model.preset", "gemma-2-9b");
  draft.set("$.model.layers", "4");
  EXPECT_EQ(draft.scenario(), parsed(R"("seed": 2, "model": {"preset": "gemma-2-9b", "layers": 4})"));
  EXPECT_EQ(value_at(draft, "$.attention.soft_cap"), "50");
  draft.set("$.attention.soft_cap", "none");
  EXPECT_EQ(draft.scenario().attention.soft_cap, std::nullopt);
  draft.remove("$.attention.soft_cap");
  EXPECT_EQ(draft.scenario().attention.soft_cap, 50.0);
  draft.remove("$.model.layers");
  EXPECT_EQ(draft.scenario(), parsed(R"("seed": 2, "model": "gemma-2-9b")"));
  draft.set("$.model.preset", "custom");
  EXPECT_EQ(draft.scenario().model.name, "custom");
  EXPECT_EQ(draft.scenario().model.head_size, 256);
  EXPECT_EQ(value_at(draft, "$.model.preset"), "custom");
  EXPECT_TRUE(draft.find("$.model.preset")->given);
  EXPECT_EQ(draft.scenario().attention.soft_cap, 50.0) << "what the preset implied stays";
  draft.set("$.model.preset", "tiny");
  draft.remove("$.attention.soft_cap");
  draft.remove("$.attention.scale");
  EXPECT_EQ(draft.scenario(), parsed(R"("seed": 2, "attention": {"mask": "causal"})"));
}

TEST(ScenarioDraft, NoneAndBlanksAreValuesOnlyWhereTheyMeanSomething) {
  ScenarioDraft draft(parsed(R"("name": "a", "cache": {"blocks": 8})"));
  draft.set("$.cache.blocks", "none");
  EXPECT_THAT(draft.faults(),
              ElementsAre(Fault{"$.cache.blocks", "the string \"none\" instead of an integer in [1, 2147483646]"}));
  draft.undo();
  draft.set("$.name", "");
  EXPECT_EQ(value_at(draft, "$.name"), "");
  EXPECT_TRUE(draft.find("$.name")->given);
  draft.set("$.attention.scale", "0.5");
  draft.set("$.attention.scale", "none");
  EXPECT_EQ(draft.scenario().attention.scale, std::nullopt);
}

// Also when nothing of it is left: a scenario without requests is a fault at its place.
TEST(ScenarioDraft, TheRequestsStay) {
  ScenarioDraft draft(parsed(R"("seed": 2)"));
  draft.remove("$.requests.list[0]");
  draft.set("$.seed", "3");
  for (const Fault& fault : draft.faults()) EXPECT_THAT(fault.message, testing::Not(testing::HasSubstr("missing")));
  draft.add("$.requests.list");
  EXPECT_THAT(draft.faults(), IsEmpty());
}

// The model of the default is a preset, too: a field of it does not turn it into a custom one.
TEST(ScenarioDraft, AFieldOfTheDefaultModel) {
  ScenarioDraft draft(parsed(R"("seed": 2)"));
  draft.set("$.model.kv_heads", "1");
  EXPECT_EQ(draft.scenario(), parsed(R"("seed": 2, "model": {"preset": "tiny", "kv_heads": 1})"));
}

// --- sections and items ----------------------------------------------------------------------------------------------

TEST(ScenarioDraft, AddsAndRemovesItemsAndSections) {
  ScenarioDraft draft(parsed(R"("cache": {"dtype": "e4m3"})"));
  draft.add("$.requests.list");
  EXPECT_EQ(value_at(draft, "$.requests.list"), "2");
  EXPECT_EQ(value_at(draft, "$.requests.list[1].prompt_tokens"), "1");
  draft.set("$.requests.list[1].prompt_tokens", "20");
  draft.add("$.requests.list[1].content");
  draft.set("$.requests.list[1].content[0].length", "20");
  draft.set("$.requests.list[1].content[0].content", "7");
  EXPECT_THAT(draft.faults(), IsEmpty());
  EXPECT_EQ(draft.scenario().requests.list, (std::vector<Request>{{0, 9, 0, {}}, {0, 20, 0, {{7, 20}}}}));
  draft.remove("$.requests.list[0]");
  EXPECT_EQ(draft.scenario().requests.list, (std::vector<Request>{{0, 20, 0, {{7, 20}}}}));
  draft.add("$.cache.quantization");
  EXPECT_THAT(draft.faults(), IsEmpty());
  EXPECT_EQ(draft.scenario().cache.quantization->granularity, 1);
  draft.remove("$.cache.quantization");
  EXPECT_EQ(draft.scenario().cache.quantization, std::nullopt);
  draft.remove("$.requests.list[0]");
  EXPECT_EQ(draft.faults().size(), 1u) << "a scenario without requests cannot run";
}

TEST(ScenarioDraft, EveryOptionalSectionCanBeAddedAndRemoved) {
  int sections = 0;
  for (const DraftField& field : all_fields(ScenarioDraft(full_scenario()))) {
    if (field.kind != Kind::optional) continue;
    ++sections;
    ScenarioDraft draft(full_scenario());
    draft.remove(field.path);
    EXPECT_FALSE(draft.find(field.path)->given);
    EXPECT_THAT(draft.find(field.path)->fields, IsEmpty());
    draft.add(field.path);
    EXPECT_TRUE(draft.find(field.path)->given);
    EXPECT_FALSE(draft.find(field.path)->fields.empty());
    for (const Fault& fault : draft.faults()) EXPECT_NE(fault.message.substr(0, 7), "missing") << fault.where;
  }
  EXPECT_EQ(sections, 3);
}

// --- undo ------------------------------------------------------------------------------------------------------------

TEST(ScenarioDraft, NamesWhatIsUndone) {
  ScenarioDraft draft(parsed(R"("seed": 2)"));
  draft.set("$.cache.page_size", "16");
  EXPECT_EQ(draft.undo_words(), std::nullopt) << "the value was 16 before";
  draft.set("$.cache.page_size", "32");
  EXPECT_EQ(draft.undo_words(), "cache.page_size: 16 -> 32");
  draft.remove("$.cache.page_size");
  EXPECT_EQ(draft.undo_words(), "cache.page_size: default");
  draft.undo();
  EXPECT_EQ(value_at(draft, "$.cache.page_size"), "32");
  EXPECT_EQ(draft.redo_words(), "cache.page_size: default");
  draft.undo();
  EXPECT_EQ(draft.undo_words(), std::nullopt);
  draft.undo();  // nothing
  EXPECT_FALSE(draft.changed());
  draft.redo();
  draft.set("$.seed", "3");
  EXPECT_EQ(draft.redo_words(), std::nullopt) << "a change drops what could be redone";
  draft.redo();  // nothing
  EXPECT_EQ(value_at(draft, "$.seed"), "3");
  draft.undo();
  EXPECT_EQ(value_at(draft, "$.seed"), "2");
  EXPECT_EQ(value_at(draft, "$.cache.page_size"), "32");
  draft.undo();
  EXPECT_FALSE(draft.changed());
}

TEST(ScenarioDraft, AnotherScenarioInItsPlaceIsOneChange) {
  ScenarioDraft draft(parsed(R"("seed": 2)"));
  draft.replace(parsed(R"("seed": 2)"), "opened again");
  EXPECT_EQ(draft.undo_words(), std::nullopt);
  draft.set("$.seed", "3");
  draft.replace(parsed(R"("seed": 4)"), "opened again");
  EXPECT_TRUE(draft.changed());
  draft.mark_start();
  EXPECT_FALSE(draft.changed());
  EXPECT_EQ(draft.undo_words(), "opened again");
  draft.undo();
  EXPECT_EQ(value_at(draft, "$.seed"), "3");
  EXPECT_TRUE(draft.changed());
}

TEST(ScenarioDraft, KeepsALimitedNumberOfChanges) {
  ScenarioDraft draft(parsed(R"("seed": 0)"));
  const std::size_t most = ScenarioDraft::kMostChanges;
  for (std::size_t i = 1; i <= most + 10; ++i) draft.set("$.seed", std::to_string(i));
  for (std::size_t i = 0; i < most; ++i) draft.undo();
  EXPECT_EQ(draft.undo_words(), std::nullopt);
  EXPECT_EQ(value_at(draft, "$.seed"), "10");
}

TEST(ScenarioDraft, LongListsDoNotFit) {
  Scenario s = small_scenario();
  s.requests.list.assign(ScenarioDraft::kMostItems, Request{0, 2, 0, {}});
  EXPECT_TRUE(ScenarioDraft::fits(s));
  s.requests.list[0].content = {{1, 2}};
  EXPECT_FALSE(ScenarioDraft::fits(s));
}

// Any changes, legal or not: fields and faults are those of the written document, each change is undone and redone,
// and what can run is written and read back.
TEST(ScenarioDraft, AnyChangesCanBeUndone) {
  const auto any_change = [](ScenarioDraft& draft) {
    const std::vector<DraftField> all = all_fields(draft);
    const DraftField& field = all[static_cast<std::size_t>(prop::in_range<std::int64_t>(0, std::ssize(all)))];
    if (field.kind == Kind::list || (field.kind == Kind::optional && !field.given)) return draft.add(field.path);
    if (field.kind == Kind::section) return;
    if (field.kind == Kind::item || field.kind == Kind::optional || prop::in_range(0, 4) == 0)
      return draft.remove(field.path);
    const std::string word =
        field.words.empty()
            ? "1"
            : field.words[static_cast<std::size_t>(prop::in_range<std::int64_t>(0, std::ssize(field.words)))];
    draft.set(field.path, prop::one_of<std::string>("", "0", "1", "2", "16", "0.5", "-1", "1e99", "x", "none", "\"",
                                                    word, word, word));
  };
  EXPECT_TRUE(prop::check("undo of any changes", [&] {
    ScenarioDraft draft(full_scenario());
    std::vector<std::vector<DraftField>> seen{all_fields(draft)};
    for (int i = 0; i < 20; ++i) {
      const std::vector<DraftField> before = all_fields(draft);
      any_change(draft);
      if (all_fields(draft) == before) continue;
      seen.push_back(all_fields(draft));
      if (draft.faults().empty()) {
        RC_ASSERT(check_scenario(draft.scenario()) == std::vector<Fault>{});
        RC_ASSERT(parse_scenario(json::dump(to_short_json(draft.scenario())), "") == draft.scenario());
      }
    }
    while (draft.undo_words()) draft.undo();
    RC_ASSERT(all_fields(draft) == seen.front());
    RC_ASSERT(!draft.changed());
    while (draft.redo_words()) draft.redo();
    RC_ASSERT(all_fields(draft) == seen.back());
  }));
}

// A legal value of every field is read into the scenario, and changes nothing else but what follows it.
TEST(ScenarioDraft, EveryWordOfEveryFieldIsLegal) {
  int words = 0;
  for (const DraftField& field : all_fields(ScenarioDraft(full_scenario()))) {
    if (!field.is_value()) continue;
    for (const std::string& word : field.words) {
      ScenarioDraft draft(full_scenario());
      draft.set(field.path, word);
      EXPECT_EQ(value_at(draft, field.path), word) << field.path;
      for (const Fault& fault : draft.faults()) {
        EXPECT_EQ(fault.message.find("instead of"), std::string::npos) << fault.where << ": " << fault.message;
        EXPECT_EQ(fault.message.find("is not one of"), std::string::npos) << fault.where << ": " << fault.message;
      }
      ++words;
    }
  }
  EXPECT_GT(words, 50);
}

}  // namespace
}  // namespace kvscope::draft_test
