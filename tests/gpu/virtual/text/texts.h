// Small PTX texts for tests, and functions that inspect the resulting modules.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gpu/virtual/text/module.h"

namespace kvscope::ptx {

// A module of these items, after ".version 9.0 .target sm_90a .address_size 64" on line 1.
[[nodiscard]] std::string with_head(std::string_view items);
// A kernel "k" with a parameter "x" and registers %r<10> %rd<10> %f<10> %fd<10> %p<5>, all on line 1: `body` begins on
// line 2, column 1. The '}' follows on a separate line.
[[nodiscard]] std::string with_body(std::string_view body);
[[nodiscard]] Module parse_items(std::string_view items);
[[nodiscard]] Module parse_body(std::string_view body);
// The kernel "k".
[[nodiscard]] const Function& kernel(const Module& module);

// "8:2: message", one per error.
[[nodiscard]] std::vector<std::string> errors_of(std::string text);

// The operands of the first statement of parse_body(statement + ";") as short text.
// "mov.u32 %r1, {%tid.x, _}" -> "%r1 {%tid.x _}". A register of a deeper scope by its name, [..] with its offset.
[[nodiscard]] std::string operands_of(std::string_view statement);
[[nodiscard]] std::string shown(const Module& module, const Function& function, const Operand& operand);

[[nodiscard]] std::string read_data(const std::string& name);  // of data/
[[nodiscard]] std::vector<std::string> data_files();

}  // namespace kvscope::ptx
