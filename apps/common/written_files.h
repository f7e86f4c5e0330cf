// The files that a command writes, checked before it reads or computes anything: a golden output of an hour is not lost
// to a missing folder, and no command replaces the tensors that it was given.
//   kvscope: command line: --out: 'in.npz' is also given as --input, and would be replaced: pass another file
#pragma once

#include <filesystem>

namespace CLI {
class App;
}  // namespace CLI

namespace kvscope::apps {

// Whether both paths name one file. Neither needs to exist.
[[nodiscard]] bool is_same_file(const std::filesystem::path& a, const std::filesystem::path& b);

// Checks the options marked with writes_file() (cli.h) of the command that was parsed. InputError for files that other
// options name too, and for one that is a folder, or is in a folder that does not exist.
void check_written_files(const CLI::App& app);

// The same for a program without commands.
void check_program_files(CLI::App& program);

}  // namespace kvscope::apps
