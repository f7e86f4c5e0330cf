// The scenario format as a JSON Schema (draft 2020-12), generated from the reader's table of fields (fields.h). With it
// an editor completes keys, shows their descriptions and marks values out of range.
//
// The schema contains every key, kind, word, range and default, but no rules between two fields (checks.h): the reader
// rejects everything that the schema rejects, but not vice versa.
#pragma once

#include <string>

namespace kvscope {

// Indented JSON that ends with a newline; the same bytes in every run.
[[nodiscard]] std::string scenario_schema();

}  // namespace kvscope
