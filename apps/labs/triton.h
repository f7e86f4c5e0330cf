// A submission in Triton, "gather.py" in place of "gather.cu". Triton's compiler writes its PTX without a GPU.
//
//   gather.py --> [sandbox: python3 triton_compile.py, imports triton and gather.py] --> facts and PTX --> virtual GPU
//
// gather.py is code that runs while it is compiled. What leaves the sandbox is data of the student, as a submitted
// gather.ptx is: read_triton_product() checks it before the launch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "apps/labs/compile.h"

namespace kvscope::labs {

struct TritonParameter {
  std::string name;
  std::string type;          // of Triton: "*bf16", "i32", "fp32"
  std::int64_t divisor = 1;  // of the address or the value: 16 or 1
};

// The kernel that a lab asks for. A program has 32 * warps threads.
struct TritonTask {
  std::string kernel;  // "gather"
  std::vector<TritonParameter> parameters;
  std::int64_t warps = 4;
};

// A kernel that Triton compiled.
struct TritonKernel {
  std::string ptx;
  std::int64_t shared = 0;  // [bytes] of dynamic shared memory
  std::string fault;        // why it cannot be launched; empty: it can
};

// The file that triton_compile.py writes: one line of JSON, then the PTX. A submission may have written it: each fact
// is checked, and neither a wrong type nor a nested or long line is an exception.
[[nodiscard]] TritonKernel read_triton_product(std::string_view product, const TritonTask& task,
                                               std::int64_t most_ptx = LabLimits().ptx_bytes);

// A Python program that prints where the python3 that runs it and its package triton are, for find_triton().
[[nodiscard]] std::string_view triton_finder();
// The program that runs in the sandbox: triton_compile.py.
[[nodiscard]] std::string_view triton_compiler();

// A Python with the package triton. All paths are absolute.
struct TritonPlace {
  std::filesystem::path python;   // the program
  std::filesystem::path library;  // folder of the standard library
  std::filesystem::path shared;   // libpython3.*.so where it is outside of /usr/lib; else empty
  std::filesystem::path package;  // folder of the package
  std::filesystem::path facts;    // its folder triton-*.dist-info, by which Triton finds its backends; may be empty
  [[nodiscard]] bool found() const { return !package.empty(); }
};

// Asks the Python that the options name (--python FILE), else the python3 in PATH, once per process. Not found: neither
// has the package. InputError: FILE cannot be run.
[[nodiscard]] TritonPlace find_triton(const GradeOptions& options);

// Compiles one submitted file; `product` is what read_triton_product() reads.
[[nodiscard]] Compiled compile_triton(const Grader& grader, const SubmittedFile& file, const TritonTask& task);

}  // namespace kvscope::labs
