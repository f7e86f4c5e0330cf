// Small PTX texts for tests, and looking into what they became.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gpu/virtual/text/module.h"

namespace kvscope::ptx {

// A module of these items, behind ".version 9.0 .target sm_90a .address_size 64" on line 1.
[[nodiscard]] std::string with_head(std::string_view items);
// A kernel "k" with a parameter "x" and registers %r<10> %rd<10> %f<10> %fd<10> %p<5>, all on line 1: `body` begins on
// line 2, column 1. The '}' follows on a line of its own.
[[nodiscard]] std::string with_body(std::string_view body);
[[nodiscard]] Module parse_items(std::string_view items);
[[nodiscard]] Module parse_body(std::string_view body);
// The kernel "k".
[[nodiscard]] const Function& kernel(const Module& module);

// "8:2: message", one an error.
[[nodiscard]] std::vector<std::string> errors_of(std::string text);

// Of the first statement of parse_body(statement + ";"): its operands as they are kept, shortly.
// "mov.u32 %r1, {%tid.x, _}" -> "%r1 {%tid.x _}". A register of a deeper scope by its name, [..] with its offset.
[[nodiscard]] std::string operands_of(std::string_view statement);
[[nodiscard]] std::string shown(const Module& module, const Function& function, const Operand& operand);

[[nodiscard]] std::string read_data(const std::string& name);  // of data/
[[nodiscard]] std::vector<std::string> data_files();

}  // namespace kvscope::ptx
