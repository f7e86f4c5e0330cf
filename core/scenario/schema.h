// The scenario format as a JSON Schema (draft 2020-12), made from the table the reader itself uses (fields.h): an
// editor that knows it completes keys, shows what they mean and marks what is out of range.
//
// The schema holds every key, kind, word, range and default. Rules between two fields (checks.h) are beyond it:
// whatever it refuses the reader refuses, but not the other way round.
#pragma once

#include <string>

namespace kvscope {

// Indented JSON with a last newline; the same bytes in every run.
[[nodiscard]] std::string scenario_schema();

}  // namespace kvscope
