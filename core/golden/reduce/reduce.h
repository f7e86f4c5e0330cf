// Makes a failing case small, for a bug report. Delta debugging over the dimensions of the problem: fewest sequences,
// then queries, KV heads, query heads of a group, keys, dims, blocks, layers and table columns that still fail, again
// and again until nothing more can be left out. A case fails as the whole case does:
//
//   the whole case      a smaller case fails as well when
//   wrong output        its output fails against the golden of the smaller inputs
//   exit code N         the command ends with the same exit code
//   signal N            the command is killed by the same signal
//   time limit          the command is killed at the time limit
//   unusable output     the command's file is missing, unreadable, or of another shape
//
// Any other end rejects the smaller case; a kernel that cannot run some size, such as a head size that it was not
// compiled for, only keeps that size. Without a command only rows and heads of the given output are left out, which
// keep their values: sequences, queries (where the mask allows it) and heads.
//
// Deterministic: the same inputs and a deterministic command give the same cases in the same order.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/golden/reduce/slice.h"
#include "core/golden/verdict/candidate_rounding.h"

namespace kvscope::golden {

// One run of the kernel.
struct KernelRun {
  enum class End { wrote, exit_code, signal, time_limit, unusable };
  End end = End::wrote;
  int code = 0;       // exit code or signal
  Bundle candidate;   // if it wrote one
  std::string words;  // how it ended, for the report: "exit code 3: IndexError: ..."
};

// Runs the kernel on the inputs, which are in the layout and the names of the whole case.
using RunKernel = std::function<KernelRun(const Bundle& inputs)>;

struct ReduceInput {
  const Bundle& inputs;
  LayoutOptions options;
  std::string inputs_name = "inputs";
  // The output for the whole inputs; needed without `run`. Beside `run` it states the failure: a wrong output.
  const Bundle* candidate = nullptr;
  std::string candidate_name = "candidate";
  RunKernel run;  // empty: cut the candidate
  StatedRounding rounding;
  std::int64_t max_runs = 200;  // of the kernel, the first one included
};

struct ReduceResult {
  Bundle bundle;  // inputs of the smallest case, the kernel's output as o and lse, manifest (golden_inputs.h)
  ProblemSizes from, to;
  ProblemSlice slice;
  std::int64_t runs = 0;      // of the kernel, or cuts of the candidate
  std::int64_t rejected = 0;  // of these, cases that did not fail in the same way
  bool stopped = false;       // at max_runs, before the case could not be made smaller
  std::string failure;        // of the smallest case: "wrong output: o: bound: 3 of 8 elements exceed the bound; ..."
  std::vector<std::string> notes;
};

// InputError: the whole case does not fail; the inputs are no problem of that layout.
[[nodiscard]] ReduceResult reduce(const ReduceInput& input, std::string_view producer);

// "2 sequences -> 1, 13 keys -> 5, ..."; what stayed the same is left out.
[[nodiscard]] std::string reduction_text(const ProblemSizes& from, const ProblemSizes& to);

}  // namespace kvscope::golden
