// Reads and writes a scenario as JSON. Documentation and editors use the JSON Schema of scenario_schema() (schema.h).
//
//   {"kvscope_scenario": 1,                      the version; newer ones are rejected
//    "model": "llama-3.1-8b",                    or {"preset": "llama-3.1-8b", "layers": 4}, or the geometry in full
//    "cache": {"page_size": 16, "blocks": 64},   omitted keys have the defaults of scenario.h
//    "requests": {"list": [{"prompt_tokens": 9, "generate_tokens": 4}]}}
//
// Defaults that depend on another field: value_size = head_size (required for MLA); prefix_sharing = false for a
// continuous cache; tile.BN = default_tile_rows(page_size); with a preset, attention has the preset's settings; the
// name of a model given in full is "custom".
//
// Every fault of the document is reported at once with its JSON path, up to 100:
//   $.cache.page_size: 0 is outside [1, 65536]: choose a power of two such as 16
// A syntax error is reported alone, because the text after it cannot be read.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "core/base/errors.h"
#include "core/base/json.h"
#include "core/scenario/scenario.h"

namespace kvscope {

// Throws InputError(source, ...). The result passes check_scenario().
[[nodiscard]] Scenario parse_scenario(std::string_view text, std::string_view source);

// Reads a file of at most 64 MiB; the file's name is the source.
[[nodiscard]] Scenario load_scenario(const std::filesystem::path& path);

// What a document describes, and why it cannot run. A field that could not be read has its default value.
struct DocumentReading {
  Scenario scenario;
  std::vector<Fault> faults;
};
[[nodiscard]] DocumentReading read_document(const json::Value& document);

// Writes every field, optional ones when they are set, and the model in full.
// Law: parse_scenario(json::dump(to_json(s)), "") == s for each s that passes check_scenario().
[[nodiscard]] json::Value to_json(const Scenario& scenario);

// The shortest document of the scenario: without the fields that have their default value, and with the model's preset
// by name. The law of to_json() holds for it, too. Example: page_size 32 ->
//   {"kvscope_scenario": 1, "cache": {"page_size": 32}, "requests": {"list": [{"prompt_tokens": 9}]}}
[[nodiscard]] json::Value to_short_json(const Scenario& scenario);

}  // namespace kvscope
