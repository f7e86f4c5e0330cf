// The kernel of a CUDA lab: compiled in the sandbox, then run as PTX on the virtual GPU. PTX is data: whatever it
// contains, a launch ends within its limits (limits.h), and only the grader's copies of its arrays are compared.
//
//   LabKernel kernel = compile_kernel(*this, submission, "gather.cu");       messages if it has none
//   KernelRun run = run_kernel(kernel, {.entry = "gather", .grid = {4, 1, 1}, .block = {128, 1, 1},
//                                       .arrays = {{"out", 4096}, ...}, .params = {AddressOf{0}, std::uint64_t{13}}});
//   run.arrays[0]                                                            the bytes of "out" after the launch
//
// A kernel's parameters are given in the order of its declaration: a scalar by its bits, a float as a double, an array
// by its number, a tensor map as 128 bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "apps/labs/compile.h"
#include "apps/labs/grade.h"
#include "apps/labs/limits.h"
#include "apps/labs/triton.h"
#include "core/tma/tensor_map.h"
#include "core/trace/events.h"
#include "gpu/virtual/check/counters.h"
#include "gpu/virtual/machine/device.h"

namespace kvscope::labs {

struct LabKernel {
  std::string ptx;
  std::string file;         // "gather.cu", or "gather.py" or "gather.ptx" as submitted
  std::string source;       // the text whose lines reports quote; empty for PTX
  std::string messages;     // of the compiler, if there is no PTX
  bool triton = false;      // its last parameters may be two pointers of Triton's own, which are null
  std::int64_t shared = 0;  // [bytes] of dynamic shared memory, of Triton
  LabLimits limits = {};    // of its launches
  [[nodiscard]] bool ok() const { return !ptx.empty(); }
};

// `name` is the file of lab.json, "gather.cu". A submission of "gather.ptx" needs no compiler. `task`: what a kernel in
// Triton is compiled for, in a lab that takes one.
[[nodiscard]] LabKernel compile_kernel(const Grader& grader, const Submission& submission, std::string_view name,
                                       const TritonTask& task = {});

struct LabArray {
  std::string name;
  std::vector<std::byte> bytes;
  bool written = true;  // false: a read of a byte before the kernel writes it is a fault; bytes are kUnwritten
};
inline constexpr std::byte kUnwritten{0xcd};

struct AddressOf {
  std::size_t array = 0;
  std::int64_t offset = 0;  // [bytes]
};
struct MapOf {  // a tensor map whose base is an array
  std::size_t array = 0;
  TensorMap map;
};
using LabParam = std::variant<std::uint64_t, double, AddressOf, MapOf>;

struct LabCall {
  std::string entry;
  std::array<std::int64_t, 3> grid{1, 1, 1}, block{1, 1, 1};
  std::int64_t dynamic_shared = 0;  // [bytes]
  std::vector<LabArray> arrays = {};
  std::vector<LabParam> params = {};
  bool global_races = true;
  bool tiles = false;  // record tile events of CTA 0
  ptx::Monitor* monitor = nullptr;
};

struct Schedule {
  ptx::Policy policy = ptx::Policy::late;
  std::uint64_t seed = 0;
};
[[nodiscard]] std::string schedule_name(const Schedule& schedule);  // "early: copies land at once", "random order 3"
// Late, early and five seeds.
[[nodiscard]] const std::vector<Schedule>& all_schedules();

struct KernelRun {
  std::string source;   // of the LabKernel
  std::string failure;  // why the launch could not be made: no such kernel, other parameters
  bool finished = false;
  std::vector<ptx::Report> reports;            // warnings and errors
  std::vector<std::vector<std::byte>> arrays;  // after the launch
  std::vector<std::uint64_t> addresses;        // of the arrays
  ptx::OpCounts total;
  std::vector<ptx::LineCounts> lines;  // by place in the sources
  std::int64_t barriers = 0;           // runs of bar.sync and barrier.sync by warps
  std::vector<trace::Event> events;
};
// OverflowError: the arrays of the call exceed the memory of a launch, which is no fault of the submission.
[[nodiscard]] KernelRun run_kernel(const LabKernel& kernel, const LabCall& call, const Schedule& schedule = {});

// [bytes] as an array of values.
template <class T>
[[nodiscard]] std::vector<std::byte> lab_bytes(const std::vector<T>& values) {
  const auto* const first = reinterpret_cast<const std::byte*>(values.data());
  return {first, first + values.size() * sizeof(T)};
}
template <class T>
[[nodiscard]] std::vector<T> lab_values(const std::vector<std::byte>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::copy_n(bytes.data(), values.size() * sizeof(T), reinterpret_cast<std::byte*>(values.data()));
  return values;
}

}  // namespace kvscope::labs
