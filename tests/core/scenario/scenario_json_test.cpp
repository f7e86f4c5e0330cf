#include "core/scenario/scenario_json.h"

#include <gmock/gmock.h>

#include <cstddef>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "core/scenario/checks.h"
#include "core/scenario/presets.h"
#include "tests/core/scenario/support.h"
#include "tests/property.h"

namespace kvscope::scenario_json_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A valid document with `members` added in front; without the request it would have another fault.
std::string document(const std::string& members) {
  return R"({"kvscope_scenario": 1, )" + members + (members.empty() ? "" : ", ") +
         R"("requests": {"list": [{"prompt_tokens": 9}]}})";
}

Scenario parsed(const std::string& members) {
  return parse_scenario(document(members), "test");
}
std::vector<Fault> faults(const std::string& text) {
  return faults_of([&] { (void)parse_scenario(text, "test"); });
}

// --- omitted keys ----------------------------------------------------------------------------------------------------

TEST(ScenarioJson, WhatIsLeftOutHasTheDefaultOfTheStruct) {
  Scenario expected;
  expected.requests.list = {{0, 9, 0, {}}};
  EXPECT_EQ(parsed(""), expected);
}

TEST(ScenarioJson, APresetIsAModelAndWhatItImplies) {
  EXPECT_EQ(parsed(R"("model": "qwen2.5-7b")").model, find_preset("qwen2.5-7b")->model);
  const Scenario gemma = parsed(R"("model": {"preset": "gemma-2-9b", "layers": 4}, "attention": {"alibi": true})");
  EXPECT_EQ(gemma.model.layers, 4);
  EXPECT_EQ(gemma.model.head_size, 256);
  EXPECT_EQ(gemma.attention.soft_cap, 50.0);
  EXPECT_TRUE(gemma.attention.alibi);
}

// The model comes after the attention here: a reader that processes the file in order would
// lose the cap or the null.
TEST(ScenarioJson, TheScenariosOwnAttentionWinsOverThePresets) {
  const Scenario s = parsed(R"("attention": {"soft_cap": null, "scale": 0.5}, "model": "gemma-2-9b")");
  EXPECT_EQ(s.attention.soft_cap, std::nullopt);
  EXPECT_EQ(s.attention.scale, 0.5);
}

TEST(ScenarioJson, DefaultsThatFollowAnotherField) {
  EXPECT_EQ(parsed(R"("model": {"head_size": 24})").model, (ModelGeometry{"custom", 2, 4, 2, 24, false, 24}));
  EXPECT_EQ(parsed(R"("cache": {"page_size": 48})").tile.BN, 48);
  EXPECT_EQ(parsed(R"("cache": {"page_size": 48}, "tile": {"BN": 96})").tile.BN, 96);
  const Scenario continuous = parsed(R"("cache": {"kind": "continuous", "max_tokens": 9})");
  EXPECT_FALSE(continuous.cache.prefix_sharing);
  EXPECT_EQ(continuous.tile.BN, 64);
}

TEST(ScenarioJson, ReadsEveryKindOfNumber) {
  const Scenario s = parsed(R"("seed": 18446744073709551615, "cache": {"page_size": 32.0}, "scheduler": {"base_us": 7},
                              "$schema": "schema/scenario.schema.json")");
  EXPECT_EQ(s.seed, 18'446'744'073'709'551'615u);
  EXPECT_EQ(s.cache.page_size, 32);
  EXPECT_EQ(s.scheduler.base_us, 7.0);
}

// --- faults ----------------------------------------------------------------------------------------------------------

TEST(ScenarioJson, AllFaultsAreToldAtOnceWithTheirPaths) {
  try {
    (void)parse_scenario(R"({"kvscope_scenario": 1, "model": "lama-3.1-8b", "cache": {"pagesize": 1, "page_size": 0,
      "dtype": "bf17"}, "requests": {"list": [{"prompt_tokens": 3}, {"prompt_tokens": "9"}]}, "foo bar": 1})",
                         "my.json");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), R"(my.json rejected, 6 faults:
  $.model: "lama-3.1-8b" is not one of the presets tiny, llama-3.1-8b, llama-3.1-70b, qwen2.5-7b, gemma-2-9b, mistral-7b, deepseek-v3: did you mean "llama-3.1-8b"?
  $.cache.page_size: 0 is outside [1, 65536]: choose a power of two such as 16
  $.cache.dtype: "bf17" is not one of f32, f16, bf16, e4m3, e5m2: did you mean "bf16"?
  $.cache.pagesize: unknown key: did you mean "page_size"?
  $.requests.list[1].prompt_tokens: the string "9" instead of an integer in [1, 2147483647]
  $["foo bar"]: unknown key: choose one of kvscope_scenario, $schema, name, description, model, cache, requests, scheduler, attention, tile, lds, focus, seed)");
  }
}

struct Case {
  const char* name;
  const char* members;  // added to a valid document
  Fault fault;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

class OneFault : public testing::TestWithParam<Case> {};

TEST_P(OneFault, IsToldInTheseWords) {
  EXPECT_THAT(faults(document(GetParam().members)), ElementsAre(GetParam().fault));
}

INSTANTIATE_TEST_SUITE_P(
    ScenarioJson, OneFault,
    testing::Values(
        Case{"ModelIsANumber", R"("model": 7)", {"$.model", "7 instead of a preset's name or an object"}},
        Case{"PresetIsANumber", R"("model": {"preset": 7})", {"$.model.preset", "7 instead of a preset's name"}},
        Case{
            "PresetIsUnknown",
            R"("model": {"preset": "gpt"})",
            {"$.model.preset",
             "\"gpt\" is not one of the presets tiny, llama-3.1-8b, llama-3.1-70b, qwen2.5-7b, gemma-2-9b, mistral-7b, "
             "deepseek-v3"}},
        Case{"LayersAreTooMany",
             R"("model": {"layers": 1025})",
             {"$.model.layers", "1025 is outside [1, 1024]: choose the model's layer count"}},
        Case{"MlaWithoutItsValuePart",
             R"("model": {"is_mla": true, "kv_heads": 1, "head_size": 24}, "attention": {"scale": 1})",
             {"$.model.value_size",
              "missing: an MLA model needs the number of elements of a row that are V, such as 512 of 576"}},
        Case{"MlaPresetWithoutScale",
             R"("model": "deepseek-v3")",
             {"$.attention.scale",
              "missing: an MLA model has no default, because a row's width is not the query's before absorption; for "
              "DeepSeek-V3 write 0.07216878364870322 (1/sqrt(192)), or 0.1352337788608801 with its rope scaling"}},
        Case{"CacheIsAnArray", R"("cache": [])", {"$.cache", "an array instead of an object"}},
        Case{"CacheIsNull", R"("cache": null)", {"$.cache", "null instead of an object"}},
        Case{"KindIsAnotherWord",
             R"("cache": {"kind": "page"})",
             {"$.cache.kind", "\"page\" is not one of paged, continuous: did you mean \"paged\"?"}},
        Case{"KindIsABoolean",
             R"("cache": {"kind": true})",
             {"$.cache.kind", "true instead of one of paged, continuous"}},
        Case{"DTypeThatNoCacheHas",
             R"("cache": {"dtype": "u64"})",
             {"$.cache.dtype", "\"u64\" is not one of f32, f16, bf16, e4m3, e5m2"}},
        Case{"PageSizeIsAFraction",
             R"("cache": {"page_size": 16.5})",
             {"$.cache.page_size", "16.5 instead of an integer in [1, 65536]"}},
        Case{"PageSizeIsPastAllIntegers",
             R"("cache": {"page_size": 18446744073709551615})",
             {"$.cache.page_size", "18446744073709551615 is outside [1, 65536]: choose a power of two such as 16"}},
        Case{"PageSizeIsOneTooLarge",
             R"("cache": {"page_size": 65537})",
             {"$.cache.page_size", "65537 is outside [1, 65536]: choose a power of two such as 16"}},
        Case{"BlocksReachTheNullPage",
             R"("cache": {"blocks": 2147483647})",
             {"$.cache.blocks",
              "2147483647 is outside [1, 2147483646]: choose the number of pages the pool holds, such as 64"}},
        Case{"SharingIsAString",
             R"("cache": {"prefix_sharing": "yes"})",
             {"$.cache.prefix_sharing", "the string \"yes\" instead of true or false"}},
        Case{"QuantizationWithoutGranularity",
             R"("cache": {"dtype": "e4m3", "quantization": {}})",
             {"$.cache.quantization.granularity", "missing: choose a number up to head_size, such as 64"}},
        Case{"QuantizerIsUnknown",
             R"("cache": {"dtype": "e4m3", "quantization": {"granularity": 4, "quantizer": "power_of_to"}})",
             {"$.cache.quantization.quantizer",
              "\"power_of_to\" is not one of amax, power_of_two: did you mean \"power_of_two\"?"}},
        Case{"ScaleIsZero",
             R"("attention": {"scale": 0})",
             {"$.attention.scale", "0 is outside (0, 1000000]: choose a factor such as 0.125"}},
        Case{"ScaleIsAString",
             R"("attention": {"scale": "auto"})",
             {"$.attention.scale", "the string \"auto\" instead of a number in (0, 1000000]"}},
        Case{"MaskIsMisspelt",
             R"("attention": {"mask": "sliding-window", "window": 3})",
             {"$.attention.mask",
              "\"sliding-window\" is not one of none, causal, sliding_window, chunked: did you mean "
              "\"sliding_window\"?"}},
        Case{"BaseTimeIsNegative",
             R"("scheduler": {"base_us": -1})",
             {"$.scheduler.base_us", "-1 is outside [0, 1000000000]: choose a time in microseconds"}},
        Case{"SwizzleIsMisspelt",
             R"("tile": {"swizzle": "128"})",
             {"$.tile.swizzle", "\"128\" is not one of none, 32B, 64B, 128B: did you mean \"128B\"?"}},
        Case{"SeedIsNegative", R"("seed": -1)", {"$.seed", "-1 instead of an integer in [0, 18446744073709551615]"}},
        Case{"FocusStepIsBelowMinusOne",
             R"("focus": {"step": -2})",
             {"$.focus.step", "-2 is outside [-1, 1000000000000000]: choose -1 for the busiest step"}},
        Case{"NameIsAList", R"("name": ["a"])", {"$.name", "an array instead of a string"}},
        Case{"ALongStringIsNotRepeated",
             R"("seed": "0123456789012345678901234567890123456789012345678901234567890")",
             {"$.seed", "a long string instead of an integer in [0, 18446744073709551615]"}}),
    [](const auto& test) { return std::string(test.param.name); });

// The faults here are in the document's "requests", so these cases are not in the table above.
std::vector<Fault> request_faults(const std::string& requests) {
  return faults(R"({"kvscope_scenario": 1, "requests": )" + requests + "}");
}

TEST(ScenarioJson, RequestsAreToldByTheirPlaceInTheList) {
  EXPECT_THAT(request_faults("[]"), ElementsAre(Fault{"$.requests", "an array instead of an object"}));
  EXPECT_THAT(request_faults("{}"),
              ElementsAre(Fault{"$.requests", "no source of requests: give a list, a generator or a file"}));
  EXPECT_THAT(request_faults(R"({"list": {}})"),
              ElementsAre(Fault{"$.requests.list", "an object instead of an array"}));
  EXPECT_THAT(request_faults(R"({"list": [{"prompt_tokens": 2}, 3, {"generate_tokens": -1}]})"),
              ElementsAre(Fault{"$.requests.list[1]", "3 instead of an object"},
                          Fault{"$.requests.list[2].prompt_tokens", "missing: a request has at least one token"},
                          Fault{"$.requests.list[2].generate_tokens",
                                "-1 is outside [0, 2147483647]: choose a length in tokens"}));
  EXPECT_THAT(request_faults(R"({"list": [{"prompt_tokens": 2, "content": [{"length": 0}]}]})"),
              ElementsAre(Fault{"$.requests.list[0].content[0].content", "missing: choose one number for each text"},
                          Fault{"$.requests.list[0].content[0].length",
                                "0 is outside [1, 2147483647]: leave empty spans out"}));
  EXPECT_THAT(request_faults(R"({"generator": {"count": 0, "prefix_share": 1.5}})"),
              ElementsAre(Fault{"$.requests.generator.count", "0 is outside [1, 1000000]: choose a number of requests"},
                          Fault{"$.requests.generator.prefix_share", "1.5 is outside [0, 1]: choose a probability"}));
  EXPECT_THAT(request_faults(R"({"generator": {}})"),
              ElementsAre(Fault{"$.requests.generator.count", "missing: choose a number of requests"}));
  EXPECT_THAT(request_faults(R"({"file": {"limit": 3}})"),
              ElementsAre(Fault{"$.requests.file.path", "missing: name a .csv or .jsonl file"}));
}

// A sample's distance from its parent is not a key: only the program sets it.
TEST(ScenarioJson, SamplesAreReadAndWrittenAndTheirPlaceIsNot) {
  const Scenario s = parse_scenario(
      R"({"kvscope_scenario": 1, "requests": {"list": [{"prompt_tokens": 2, "samples": 64}, {"prompt_tokens": 2}]}})",
      "s");
  EXPECT_EQ(s.requests.list[0].samples, 64);
  EXPECT_EQ(s.requests.list[1].samples, 1);
  EXPECT_EQ(parse_scenario(json::dump(to_json(s)), "again"), s);
  EXPECT_THAT(
      request_faults(R"({"list": [{"prompt_tokens": 2, "samples": 0}, {"prompt_tokens": 2, "sample_of": 1}]})"),
      ElementsAre(Fault{"$.requests.list[0].samples", "0 is outside [1, 64]: use several requests for more answers"},
                  Fault{"$.requests.list[1].sample_of", "unknown key: did you mean \"samples\"?"}));
}

TEST(ScenarioJson, TheVersionIsNamedAndANewerOneRejectedAlone) {
  EXPECT_THAT(faults("{}"), ElementsAre(Fault{"$.kvscope_scenario", "missing: write 1, the version of the format"},
                                        Fault{"$.requests", "missing: give a list, a generator or a file"}));
  EXPECT_THAT(faults(R"({"kvscope_scenario": 2, "new_key": 1})"),
              ElementsAre(Fault{"$.kvscope_scenario",
                                "version 2 is newer than 1, the newest this program reads: update kvscope"}));
  EXPECT_THAT(faults(R"({"kvscope_scenario": 0, "requests": {"list": [{"prompt_tokens": 1}]}})"),
              ElementsAre(Fault{"$.kvscope_scenario", "0 is not a version of the format: write 1"}));
  EXPECT_THAT(faults(R"({"kvscope_scenario": "1", "requests": {"list": [{"prompt_tokens": 1}]}})"),
              ElementsAre(Fault{"$.kvscope_scenario", "the string \"1\" is not a version of the format: write 1"}));
}

// 1.0 is 1, as in every other field and in the published schema; 2.0 is a newer version, and 1.5 is none.
TEST(ScenarioJson, AWholeNumberWithAPointIsAVersion) {
  EXPECT_EQ(parse_scenario(R"({"kvscope_scenario": 1.0, "requests": {"list": [{"prompt_tokens": 1}]}})", "a"),
            parse_scenario(R"({"kvscope_scenario": 1, "requests": {"list": [{"prompt_tokens": 1}]}})", "b"));
  EXPECT_THAT(faults(R"({"kvscope_scenario": 2.0, "new_key": 1})"),
              ElementsAre(Fault{"$.kvscope_scenario",
                                "version 2.0 is newer than 1, the newest this program reads: update kvscope"}));
  for (const std::string text : {"1.5", "-0.0", "1e300"}) {
    EXPECT_THAT(faults(R"({"kvscope_scenario": )" + text + R"(, "requests": {"list": [{"prompt_tokens": 1}]}})"),
                ElementsAre(testing::Field(&Fault::message, HasSubstr("is not a version of the format: write 1"))))
        << text;
  }
}

TEST(ScenarioJson, WhatIsNoObjectIsNoScenario) {
  EXPECT_THAT(faults("[1]"), ElementsAre(Fault{"$", "an array instead of an object"}));
  EXPECT_THAT(faults("{\n  \"kvscope_scenario\": 1,\n}")[0].where, HasSubstr("line 3"));
}

// A list of a thousand wrong requests gives the first hundred faults.
// A path is a JSON path: a key that is no identifier is quoted, a long one is left out.
TEST(ScenarioJson, KeysThatAreNoIdentifiersAreQuoted) {
  for (const auto& [key, path] : std::initializer_list<std::pair<std::string, std::string>>{
           {"", R"($[""])"},
           {"a b", R"($["a b"])"},
           {"9a", R"($["9a"])"},
           {"a9{", R"($["a9{"])"},
           {"a[", R"($["a["])"},
           {"[", R"($["["])"},
           {"a/", R"($["a/"])"},
           {"a:", R"($["a:"])"},
           {"Z_9$", "$.Z_9$"},
           {"$a", "$.$a"},
           {std::string(64, '-'), R"($[")" + std::string(64, '-') + R"("])"},
           {std::string(65, '-'), R"($["..."])"}}) {
    const std::vector<Fault> told = faults(document("\"" + key + "\": 1"));
    ASSERT_EQ(told.size(), 1u) << key;
    EXPECT_EQ(told[0].where, path);
  }
}

// The last legal length or number of each kind and the first that is not.
TEST(ScenarioJson, LongTextsAndListsAreRejected) {
  EXPECT_EQ(parsed("\"description\": \"" + std::string(65'536, 'x') + "\"").description.size(), 65'536u);
  EXPECT_THAT(faults(document("\"description\": \"" + std::string(65'537, 'x') + "\"")),
              ElementsAre(testing::FieldsAre("$.description",
                                             testing::StartsWith("65537 bytes are more than the 65536 allowed"))));
  std::string spans;
  for (int i = 0; i < 65'537; ++i) spans += "{},";
  spans.pop_back();
  const std::vector<Fault> told =
      faults(R"({"kvscope_scenario": 1, "requests": {"list": [{"prompt_tokens": 9, "content": [)" + spans + "]}]}}");
  EXPECT_THAT(told,
              ElementsAre(testing::FieldsAre("$.requests.list[0].content",
                                             testing::StartsWith("65537 entries are more than the 65536 allowed"))));
}

TEST(ScenarioJson, NumbersOfOtherKindsAreRejected) {
  EXPECT_THAT(faults(document(R"("seed": 1e300)")),
              ElementsAre(testing::FieldsAre("$.seed", HasSubstr("instead of an integer in [0, "))));
  EXPECT_THAT(faults(document(R"("seed": 1.5)")),
              ElementsAre(testing::FieldsAre("$.seed", HasSubstr("instead of an integer in [0, "))));
  EXPECT_THAT(faults(document(R"("attention": {"soft_cap": "high"})")),
              ElementsAre(Fault{"$.attention.soft_cap", "the string \"high\" instead of a number in (0, 1000000]"}));
  EXPECT_THAT(faults(document(R"("cache": {"kind": ")" + std::string(41, 'x') + "\"}")),
              ElementsAre(testing::FieldsAre("$.cache.kind", testing::StartsWith("\"...\" is not one of"))));
}

TEST(ScenarioJson, FaultsAreToldUpToABound) {
  std::string list;
  for (int i = 0; i < 1000; ++i) list += i == 0 ? "0" : ", 0";
  const std::vector<Fault> told = request_faults("{\"list\": [" + list + "]}");
  ASSERT_EQ(told.size(), 101u);
  EXPECT_EQ(told[99], (Fault{"$.requests.list[99]", "0 instead of an object"}));
  EXPECT_EQ(told[100], (Fault{"", "and 900 more"}));
}

TEST(ScenarioJson, AMissingFileIsNamed) {
  EXPECT_THAT([] { (void)load_scenario("no/such/scenario.json"); },
              testing::ThrowsMessage<InputError>(HasSubstr("no/such/scenario.json")));
}

// --- both ways -------------------------------------------------------------------------------------------------------

TEST(ScenarioJson, WritesEveryFieldAndOptionalOnesWhenSet) {
  Scenario s = small_scenario();
  json::Value written = to_json(s);
  EXPECT_EQ(written.find("attention")->find("scale"), nullptr);
  EXPECT_EQ(written.find("requests")->find("generator"), nullptr);
  EXPECT_EQ(*written.find("tile")->find("swizzle"), json::Value("128B"));
  EXPECT_EQ(*written.find("kvscope_scenario"), json::Value(1));
  s.attention.scale = 0.1;
  written = to_json(s);
  EXPECT_EQ(*written.find("attention")->find("scale"), json::Value(0.1));
}

double any_real(double low, double high) {
  return low + (high - low) * static_cast<double>(prop::in_range(0, 1'000'000)) / 999'999.0;
}

// Valid by construction, and unlike the defaults in every field with high probability.
Scenario any_scenario() {
  Scenario s;
  for (const int c : prop::vector_of(0, 128)) s.name += static_cast<char>(c);  // control characters and quotes included
  s.description = prop::one_of<std::string>("", "two\nlines", "\xc3\xa9\xf0\x9f\x99\x82");
  const std::int64_t kv_heads = prop::in_range(1, 9);
  const std::int64_t head_size = prop::in_range(1, 200);
  s.model = {"m", prop::in_range(1, 90), kv_heads * prop::in_range(1, 9), kv_heads, head_size, false, head_size};
  if (prop::any<bool>()) {
    s.model = {"mla",
               prop::in_range(1, 90),
               prop::in_range(1, 129),
               1,
               head_size,
               true,
               prop::in_range<std::int64_t>(1, head_size + 1)};
    s.attention.scale = any_real(1e-9, 3);
  }
  s.cache.page_size = prop::in_range(1, 1000);
  s.cache.blocks = prop::in_range(1, 20000);
  s.cache.max_tokens = prop::in_range(0, 1000);
  s.cache.dtype = prop::one_of(DType::f32, DType::bf16, DType::e4m3, DType::e5m2);
  if (s.cache.dtype == DType::e4m3)
    s.cache.quantization = Quantization{DType::e8m0, prop::in_range<std::int64_t>(1, head_size + 1),
                                        prop::one_of(Quantizer::amax, Quantizer::power_of_two)};
  s.cache.prefix_sharing = prop::any<bool>();
  if (!s.model.is_mla && !s.cache.quantization && prop::in_range(0, 4) == 0) {
    s.cache.kind = CacheKind::continuous;
    s.cache.max_tokens += 1;
    s.cache.prefix_sharing = false;
  }
  for (int i = prop::in_range(1, 4); i > 0; --i) {
    Request r{prop::in_range<std::int64_t>(0, 1'000'000'000'000), 0, prop::in_range(0, 50), {}};
    for (int k = prop::in_range(0, 3); k > 0; --k) {
      r.content.push_back({prop::in_range<std::uint64_t>(0, kGeneratedContent), prop::in_range(1, 40)});
      r.prompt_tokens += r.content.back().length;
    }
    if (r.content.empty()) r.prompt_tokens = prop::in_range(1, 99);
    s.requests.list.push_back(r);
  }
  if (prop::any<bool>()) {
    s.requests.generator =
        RequestGenerator{prop::in_range(1, 9), any_real(0, 1e9), 3, 9, 0, 7, 2, 5, any_real(0, 1), 4.5, 0};
  }
  if (prop::any<bool>()) s.requests.file = RequestFile{"a b/\"c\".csv", prop::in_range(0, 9), any_real(0, 1e6)};
  s.scheduler = {prop::in_range(1, 999), prop::in_range(1, 9999), any_real(0, 1e9), any_real(0, 1e6),
                 any_real(0, 1e-3)};
  s.attention.mask = prop::one_of(MaskKind::none, MaskKind::causal, MaskKind::sliding_window, MaskKind::chunked);
  if (s.attention.mask >= MaskKind::sliding_window) s.attention.window = prop::in_range(1, 5000);
  s.attention.alignment = prop::one_of(CausalAlignment::bottom_right, CausalAlignment::top_left);
  if (prop::any<bool>()) s.attention.soft_cap = any_real(1e-300, 100);
  s.attention.alibi = prop::any<bool>();
  s.attention.sinks = prop::any<bool>();
  s.tile.BN = default_tile_rows(s.cache.page_size);
  s.tile.BK = prop::in_range(1, 8193);
  s.tile.swizzle = prop::one_of(SwizzleMode::none, SwizzleMode::b32, SwizzleMode::b64, SwizzleMode::b128);
  s.tile.base_alignment = prop::one_of<std::int64_t>(0, s.tile.BN);
  s.lds.full_kv = prop::in_range(0, 2) == 1;
  s.lds.cache_depth = prop::one_of<std::int64_t>(0, head_size);
  s.lds.head_dim_offset = prop::in_range<std::int64_t>(0, head_size);
  const std::int64_t staged = head_size - s.lds.head_dim_offset;
  s.lds.smem_depth = prop::one_of<std::int64_t>(0, staged, staged + 7);
  s.lds.reg_chunk_depth = prop::in_range<std::int64_t>(0, staged + 1);
  s.focus = {prop::in_range(-1, 99), prop::in_range<std::int64_t>(0, s.model.layers)};
  s.seed = prop::any<std::uint64_t>();
  return s;
}

TEST(ScenarioJson, WhatIsWrittenReadsBackTheSame) {
  EXPECT_TRUE(prop::check("parse(dump(to_json(s))) == s", [] {
    const Scenario s = any_scenario();
    RC_ASSERT(check_scenario(s) == std::vector<Fault>{});
    RC_ASSERT(parse_scenario(json::dump(to_json(s)), "round trip") == s);
    RC_ASSERT(parse_scenario(json::dump(to_json(s), -1), "round trip") == s);
  }));
}

// --- the shortest document -------------------------------------------------------------------------------------------

// Every document with one member less, at any depth.
std::vector<json::Value> with_one_member_less(const json::Value& value) {
  std::vector<json::Value> shorter;
  if (const json::Object* object = value.as_object()) {
    for (std::size_t i = 0; i < object->size(); ++i) {
      json::Object rest = *object;
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
      shorter.emplace_back(std::move(rest));
      for (json::Value& part : with_one_member_less((*object)[i].second)) {
        json::Object changed = *object;
        changed[i].second = std::move(part);
        shorter.emplace_back(std::move(changed));
      }
    }
  } else if (const json::Array* array = value.as_array()) {
    for (std::size_t i = 0; i < array->size(); ++i) {
      for (json::Value& part : with_one_member_less((*array)[i])) {
        json::Array changed = *array;
        changed[i] = std::move(part);
        shorter.emplace_back(std::move(changed));
      }
    }
  }
  return shorter;
}

void expect_shortest(const Scenario& s) {
  const json::Value shortest = to_short_json(s);
  ASSERT_EQ(parse_scenario(json::dump(shortest), "short"), s) << json::dump(shortest);
  for (const json::Value& shorter : with_one_member_less(shortest)) {
    const DocumentReading reading = read_document(shorter);
    EXPECT_TRUE(!reading.faults.empty() || reading.scenario != s) << json::dump(shorter);
  }
}

TEST(ScenarioJson, TheShortestDocumentReadsBackTheSame) {
  EXPECT_TRUE(prop::check("parse(dump(to_short_json(s))) == s", [] {
    const Scenario s = any_scenario();
    RC_ASSERT(parse_scenario(json::dump(to_short_json(s)), "round trip") == s);
  }));
}

TEST(ScenarioJson, TheShortestDocumentHasNoMemberToSpare) {
  expect_shortest(parsed(""));
  expect_shortest(small_scenario());
  EXPECT_EQ(json::dump(to_short_json(parsed(R"("cache": {"page_size": 48, "blocks": 64})")), -1),
            R"({"kvscope_scenario":1,"cache":{"page_size":48},"requests":{"list":[{"prompt_tokens":9}]}})");
  for (const ModelPreset& preset : model_presets()) {
    SCOPED_TRACE(preset.model.name);
    for (const bool fewer_layers : {false, true}) {
      for (const bool plain_attention : {false, true}) {
        Scenario s = parsed("");
        s.model = preset.model;
        s.attention = preset.attention;
        if (fewer_layers) s.model.layers = 1;
        if (plain_attention) s.attention = {};
        if (s.model.is_mla) s.attention.scale = 0.1;
        expect_shortest(s);
      }
    }
  }
  Scenario narrow = parsed(R"("model": "llama-3.1-8b")");
  narrow.model.head_size = 64;  // its value_size follows, or does not
  for (const std::int64_t value_size : {64, 32, 128}) {
    narrow.model.value_size = value_size;
    if (!check_scenario(narrow).empty()) continue;
    expect_shortest(narrow);
  }
  for (const char* members : {R"("cache": {"kind": "continuous", "max_tokens": 90})",
                              R"("cache": {"prefix_sharing": false}, "tile": {"BN": 32})",
                              R"("cache": {"dtype": "e4m3", "quantization": {"granularity": 4}})"}) {
    expect_shortest(parsed(members));
  }
}

// A scenario without a quantizer was written before the key existed: its meaning must not change.
TEST(ScenarioJson, QuantizerIsAmaxUnlessNamed) {
  const auto quantizer_in = [](const std::string& members) {
    return parse_scenario(R"({"kvscope_scenario": 1, "requests": {"list": [{"prompt_tokens": 9}]},
                              "cache": {"dtype": "e4m3", "quantization": {"granularity": 4)" +
                              members + "}}}",
                          "test")
        .cache.quantization->quantizer;
  };
  EXPECT_EQ(quantizer_in(""), Quantizer::amax);
  EXPECT_EQ(quantizer_in(R"(, "quantizer": "amax")"), Quantizer::amax);
  EXPECT_EQ(quantizer_in(R"(, "quantizer": "power_of_two")"), Quantizer::power_of_two);
}

}  // namespace
}  // namespace kvscope::scenario_json_test
