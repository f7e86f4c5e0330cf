#include "core/scenario/schema.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "core/base/errors.h"
#include "core/base/json.h"
#include "core/scenario/presets.h"
#include "core/scenario/scenario_json.h"
#include "tests/core/scenario/support.h"

namespace kvscope::schema_test {
namespace {

namespace fs = std::filesystem;

TEST(Schema, SaysEveryRangeWordAndDefaultOfTheReader) {
  const json::Value schema = json::parse(scenario_schema(), "schema");
  const json::Value& cache = *schema.find("properties")->find("cache");
  const json::Value& page_size = *cache.find("properties")->find("page_size");
  EXPECT_EQ(*page_size.find("minimum"), json::Value(1));
  EXPECT_EQ(*page_size.find("maximum"), json::Value(65536));
  EXPECT_EQ(*page_size.find("default"), json::Value(16));
  EXPECT_EQ(*cache.find("additionalProperties"), json::Value(false));
  EXPECT_EQ(*cache.find("properties")->find("dtype")->find("enum"),
            json::Value(json::Array{"f32", "f16", "bf16", "e4m3", "e5m2"}));
  EXPECT_EQ(*schema.find("required"), json::Value(json::Array{"kvscope_scenario", "requests"}));
  const json::Array& models = *schema.find("properties")->find("model")->find("anyOf")->as_array();
  EXPECT_EQ(models[0].find("enum")->as_array()->size(), model_presets().size());
}

// Editors read the file, not the function: with a stale file they would mark valid scenarios as wrong.
TEST(Schema, TheFileOfTheGalleryIsUpToDate) {
  std::ifstream file(fs::path(KVSCOPE_SOURCE_DIR) / "apps" / "scenarios" / "schema" / "scenario.schema.json");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), scenario_schema());
}

// A valid scenario with one change, for the reader and for an independent validator.
json::Array documents() {
  std::vector<std::string> texts;
  const auto with = [&](const std::string& members) {
    texts.push_back(R"({"kvscope_scenario": 1, "requests": {"list": [{"prompt_tokens": 9}]}, )" + members + "}");
  };
  for (const char* version : {"1", "1.0", "0", "2", "2.0", "1.5", "\"1\"", "null"}) {
    texts.push_back(R"({"requests": {"list": [{"prompt_tokens": 9}]}, "kvscope_scenario": )" + std::string(version) + "}");
  }
  for (const char* page : {"0", "1", "65536", "65537", "16.0", "16.5", "\"16\"", "null", "-1"}) {
    with("\"cache\": {\"page_size\": " + std::string(page) + "}, \"tile\": {\"BN\": 1}");
  }
  for (const char* scale : {"0", "1e-9", "1000000", "1000001", "null", "\"1\"", "true"}) {
    with("\"attention\": {\"scale\": " + std::string(scale) + "}");
  }
  for (const char* model : {"\"tiny\"", "\"Tiny\"", "{}", "{\"preset\": \"mistral-7b\"}", "{\"preset\": \"mistral\"}",
                            "7", "{\"layers\": 0}", "{\"layer\": 1}", "null", "{\"is_mla\": 0}"}) {
    with("\"model\": " + std::string(model));
  }
  for (const char* other :
       {"\"seed\": 18446744073709551615", "\"seed\": -1", "\"seeds\": 1", "\"name\": 1",
        "\"cache\": {\"kind\": \"Paged\"}", "\"cache\": []", "\"cache\": {\"quantization\": null}",
        "\"cache\": {\"dtype\": \"e4m3\", \"quantization\": {}}",
        "\"cache\": {\"dtype\": \"e4m3\", \"quantization\": {\"granularity\": 4}}",
        "\"cache\": {\"dtype\": \"e4m3\", \"quantization\": {\"granularity\": 4, \"quantizer\": "
        "\"power_of_two\"}}",
        "\"cache\": {\"dtype\": \"e4m3\", \"quantization\": {\"granularity\": 4, \"quantizer\": 2}}",
        "\"focus\": {\"step\": -1, \"layer\": 1}", "\"focus\": {\"step\": -2}", "\"$schema\": \"x\"",
        "\"scheduler\": {\"base_us\": 0, \"max_batch\": 0}"}) {
    with(other);
  }
  for (const char* requests :
       {"{}", "[]", "{\"list\": [{}]}", "{\"list\": [{\"prompt_tokens\": 1, \"x\": 1}]}",
        "{\"list\": [{\"prompt_tokens\": 2, \"content\": [{\"content\": 1, \"length\": 2}]}]}",
        "{\"list\": [{\"prompt_tokens\": 2, \"content\": [{\"length\": 2}]}]}", "{\"generator\": {\"count\": 3}}",
        "{\"generator\": {\"count\": 3, \"prefix_share\": 1.1}}", "{\"generator\": {}}",
        "{\"file\": {\"path\": \"a.csv\"}}", "{\"file\": \"a.csv\"}"}) {
    texts.push_back("{\"kvscope_scenario\": 1, \"requests\": " + std::string(requests) + "}");
  }
  texts.push_back("{}");
  texts.push_back("[]");
  texts.push_back(R"({"kvscope_scenario": 2, "requests": {"list": [{"prompt_tokens": 9}]}})");
  json::Array result;
  for (const std::string& text : texts) result.push_back(json::parse(text, "case"));
  return result;
}

// The reader rejects everything that the schema rejects. A document that the schema accepts may be rejected by the
// reader only by a rule between fields.
TEST(Schema, AnIndependentValidatorAgreesWithTheReader) {
  const std::string python = KVSCOPE_PYTHON;
  if (std::system((python + " -c 'import jsonschema' 2> /dev/null").c_str()) != 0) {
    GTEST_SKIP() << python << " has no module jsonschema: apt-get install python3-jsonschema";
  }
  const fs::path folder = fs::temp_directory_path() / "kvscope_schema_test";
  fs::create_directories(folder);
  const json::Array cases = documents();
  std::ofstream(folder / "schema.json") << scenario_schema();
  std::ofstream(folder / "cases.json") << json::dump(cases, -1);
  std::ofstream(folder / "validate.py") << "import json, jsonschema, sys\n"
                                           "schema, cases = (json.load(open(p)) for p in sys.argv[1:3])\n"
                                           "jsonschema.Draft202012Validator.check_schema(schema)\n"
                                           "valid = jsonschema.Draft202012Validator(schema).is_valid\n"
                                           "print(''.join('1' if valid(c) else '0' for c in cases))\n";
  const std::string command = python + " " + (folder / "validate.py").string() + " " +
                              (folder / "schema.json").string() + " " + (folder / "cases.json").string() + " > " +
                              (folder / "verdicts").string();
  ASSERT_EQ(std::system(command.c_str()), 0);
  std::string verdicts;
  std::getline(std::ifstream(folder / "verdicts"), verdicts);
  fs::remove_all(folder);

  ASSERT_EQ(verdicts.size(), cases.size());
  int refused_by_rule_alone = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    bool accepted = true;
    try {
      (void)parse_scenario(json::dump(cases[i]), "case");
    } catch (const InputError&) {
      accepted = false;
    }
    const bool valid = verdicts[i] == '1';
    EXPECT_TRUE(valid || !accepted) << json::dump(cases[i], -1);
    refused_by_rule_alone += valid && !accepted;
  }
  EXPECT_EQ(refused_by_rule_alone, 1);  // "requests": {}: legal in the schema, but a run without requests
}

}  // namespace
}  // namespace kvscope::schema_test
