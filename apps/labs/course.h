// The course: one folder per lab, NN_name/, with a manifest lab.json. Example, docs/labs/02_rows/lab.json:
//
//   { "number": 2, "name": "rows", "title": "Rows of a paged cache", "kind": "cpp", "minutes": 60,
//     "goal": "Why a row is not the token's number.", "reads": ["02_lookup_table_and_rows.md"], "files": ["rows.cpp"],
//     "scenario": "first_light.json", "place": "view=pool, step=6, select=token 3:65",
//     "tests": [{"name": "one_block", "points": 10, "hint": 2, "text": "Tokens of one page are neighboring rows."}] }
//
// "scenario" names a file of the gallery, and "place" what the viewer shows of it, as in a link of a scenario's notes
// (core/scenario/notes.h). A test may have its own "place", which the viewer shows with a failing case of that test.
// "hint" is the hint to read after a failure whose cause the grader does not find; without one, the first. "goal",
// "scenario" and "place" may be missing. Of kind "cuda", a lab has one of these two:
//
//   "triton": "gather.py"                      in place of the one file; its starter is in triton/
//   "without_triton": "Triton writes the barriers itself"        why Triton cannot express the task
//
//   starter/    the files that a student starts from: all of `files`, and headers
//   hints/      1.md, 2.md, ...: from a question to the formula
//   README.md   the handout
//
// The staff part, staff/NN_name/, is absent in the copy for students (pack).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/scenario/notes.h"

namespace kvscope::labs {

enum class LabKind : std::uint8_t { answers, cpp, cuda, schedule, report, hunt };
[[nodiscard]] std::string_view kind_name(LabKind kind);  // as in lab.json

struct LabTest {
  std::string name;  // "one_block"
  std::int64_t points = 0;
  std::string text;                              // one sentence: what the test checks
  int hint = 1;                                  // of a failure without a cause that has another one
  std::optional<NoteLink> place = std::nullopt;  // in the viewer; without one, that of the lab
};

struct Lab {
  std::int64_t number = 0;  // 1 .. 99
  std::string name, title;
  LabKind kind = LabKind::answers;
  std::int64_t minutes = 0;
  std::string goal;                // what a student learns; may be empty
  std::string scenario;            // a file of the gallery; empty: the viewer opens none
  NoteLink place;                  // what the viewer shows of it
  std::vector<std::string> reads;  // pages of docs/
  std::vector<std::string> files;  // that the student writes and submits
  std::string triton;              // the file in Triton that may replace files.front(); empty: none
  std::string without_triton;      // why there is none, of kind cuda
  std::vector<LabTest> tests;
  std::filesystem::path folder;

  [[nodiscard]] std::string id() const;  // "02_rows": the name of its folder
  [[nodiscard]] std::int64_t points() const;
  [[nodiscard]] const LabTest& test(std::string_view test_name) const;  // InputError when lab.json lacks it
  [[nodiscard]] std::int64_t hints() const;                             // files in hints/: 1.md, 2.md, ...
  [[nodiscard]] std::filesystem::path starter() const { return folder / "starter"; }
  [[nodiscard]] std::filesystem::path triton_starter() const { return folder / "triton" / triton; }
};

struct Course {
  std::filesystem::path folder;
  std::vector<Lab> labs;                 // by number; only labs that this program can grade
  std::vector<Lab> without_grader = {};  // by number: of a later kvscope, or of a folder with another name

  // InputError, with the numbers that exist, for a lab that the course lacks or this program cannot grade. `word` is
  // "2", "02", "rows" or "02_rows".
  [[nodiscard]] const Lab& lab(std::string_view word) const;
};

// The folder of the installed course (share/kvscope/docs/labs beside the program), or docs/labs of the sources that
// contain the program. Empty when there is neither.
[[nodiscard]] std::optional<std::filesystem::path> course_folder(const std::filesystem::path& program_folder);

// Reads every manifest of the folder, or of the folder `labs` in it (course_files.h: pack_course). InputError: a folder
// without labs that this program can grade, an invalid manifest.
[[nodiscard]] Course load_course(const std::filesystem::path& folder);
[[nodiscard]] Lab load_lab(const std::filesystem::path& folder);

}  // namespace kvscope::labs
