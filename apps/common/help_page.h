// The help pages of the programs: one layout for each command, with examples that run.
//
//   Follow one token to its page, byte, bank and register, or find the token that a register holds.
//   Usage: kvscope explain [OPTIONS] --seq N SCENARIO
//
//   Positionals:
//     SCENARIO                  Scenario file (JSON)
//
//   Options:
//     -h, --help                Print this help and exit
//     --kv {k,v}                Tensor to follow: K or V [default: k]
//
//   Examples:
//     kvscope explain apps/scenarios/first_light.json --seq 0 --token 5
//
//   Exit codes: 0 success, 1 a check failed, 2 invalid input or usage.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace kvscope::apps {

// For a program, before its options and commands are added: the layout above, --help, --version, the hidden --man (it
// prints the man page) and the text of "Exit codes".
void set_up_program(CLI::App& app, std::string_view exit_codes);

// Adds a section in front of "Exit codes". `lines` are printed as they are, indented by two columns. If a command has
// subcommands, add them first, because a new subcommand inherits the sections of its parent.
void add_help_section(CLI::App& command, std::string_view title, const std::vector<std::string>& lines);

// The section "Examples": each line is a command that runs in a folder that holds apps/, after the lines before it
// (tests/apps/examples_test.py runs them).
void add_examples(CLI::App& command, std::initializer_list<std::string> lines);

}  // namespace kvscope::apps
