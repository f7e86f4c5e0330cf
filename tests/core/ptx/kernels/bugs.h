// Every kernel here, with one mistake each: what is wrong, how to launch it, and what has to be said about it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/ptx/machine/report.h"
#include "tests/core/ptx/kernels/harness.h"

namespace kvscope::ptx::test {

// Who can see it: the machine by itself, a checker that watches, or nobody but the numbers.
enum class Finder : std::uint8_t { machine, races, proxies, initialised, numbers };

struct Finding {
  ReportKind kind;
  Finder finder = Finder::machine;
  std::vector<std::string> words;  // all in the text of one report of that kind
};

struct Outcome {
  LaunchResult result;
  bool right_numbers = true;  // the output is the right kernel's
};

struct SeededBug {
  const char* name;  // "B01_NoExpect"
  const char* what;
  std::function<Outcome(const Schedule&, Monitor*)> run;
  std::vector<Finding> findings;  // under policy late
  bool wrong_numbers = false;     // nobody reports anything, and the output is wrong
  bool not_under_late = false;    // late hides it: under some other schedule
};

// In the order of their numbers.
[[nodiscard]] const std::vector<SeededBug>& seeded_bugs();

// The same small kernels as they should be: each has to be clean.
struct FixedTwin {
  const char* name;
  std::function<LaunchResult(const Schedule&, Monitor*)> run;
};
[[nodiscard]] const std::vector<FixedTwin>& fixed_twins();

}  // namespace kvscope::ptx::test
