// The labs of the course, and the results of one student in one of them, as the window shows them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/scenario/notes.h"

namespace kvscope::viz {

struct LabEntry {
  std::string id;        // "02_rows"
  std::string title;     // "Rows: from a token to its place in the pool"
  std::string goal;      // what a student learns; may be empty
  std::string handout;   // path of its page
  std::string scenario;  // path; empty: the lab shows no run
  NoteLink place;        // what the window shows of the scenario
  std::int64_t number = 0, minutes = 0;
};

struct Labs {
  std::vector<LabEntry> entries;
  std::string why_empty;  // without entries: which folder was searched, and what to do
};

struct LabTestResult {
  std::string name;
  double earned = 0, points = 0;
  std::string message, text;  // why points are lost, and the first failing case
  std::string picture;        // an SVG file; empty: none
  NoteLink place;             // where the window shows what the test is about
  [[nodiscard]] bool passed() const { return earned >= points; }
};

// What `kvscope lab check --json` wrote.
struct LabResult {
  LabEntry lab;
  std::string student;
  std::vector<LabTestResult> tests;  // in the lab's order
};

}  // namespace kvscope::viz
