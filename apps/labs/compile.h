// Compiles a submission in the sandbox: C++ to a program, CUDA to PTX.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "apps/labs/grade.h"

namespace kvscope::labs {

struct Compiled {
  bool ok = false;
  std::string messages;  // of the compiler, its paths shortened to file names; cut at kMaxErrors bytes
  std::string product;   // the program's bytes, or the PTX
};

// The submission's files, the lab's starter headers and the lab's harness.cpp, as one program: g++ -std=c++20 -O1.
// harness.cpp has main(): it reads cases and writes results (case_stream.h). It may include headers of the lab's
// starter folder and of the course's harness/ folder.
[[nodiscard]] Compiled compile_cpp(const Grader& grader, const Submission& submission);

// One .cu file of a submission to PTX, with the lab's starter headers: by nvcc of /usr/local/cuda or /usr, else by
// NVRTC (nvrtc.h), else by /usr/bin/clang++. A submission of "x.ptx" in place of "x.cu" needs no compiler
// (kernel_run.h). `architecture` is "sm_90a", for example; clang compiles for one that it has. InputError: the library
// that the options name does not exist.
[[nodiscard]] Compiled compile_cuda(const Grader& grader, const SubmittedFile& file, std::string_view architecture);

// The compiler's message for a report: at most `lines` lines.
[[nodiscard]] std::string compile_failure(const Compiled& compiled, int lines = 8);

}  // namespace kvscope::labs
