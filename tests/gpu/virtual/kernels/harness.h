// A virtual GPU with one of the kept PTX files, and the schedules under which every kernel must produce the same bytes.
//
//   for (const Schedule& schedule : kSchedules) {
//     Gpu gpu("elementwise.ptx", schedule);
//     const std::uint64_t x = gpu.upload("x", values);
//     gpu.run_clean({.kernel = "scale", .grid = {3, 1, 1}, .block = {100, 1, 1}, .values = {y, x, 0.5, n}});
//     EXPECT_EQ(gpu.download<float>(y, 250), expected);
//   }
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/tma/tensor_map.h"
#include "core/tma/tensor_map_record.h"
#include "gpu/virtual/machine/device.h"
#include "tests/whole_grid.h"

namespace kvscope::ptx::test {

struct Schedule {
  const char* name;
  Policy policy;
  std::uint64_t seed;
  std::int64_t jobs = 1;
};
inline constexpr std::array<Schedule, 6> kEverySchedule = {{{"late", Policy::late, 0},
                                                            {"early", Policy::early, 0},
                                                            {"seed 1", Policy::seeded, 1},
                                                            {"seed 2", Policy::seeded, 2},
                                                            {"seed 3", Policy::seeded, 3},
                                                            {"3 threads", Policy::late, 0, 3}}};
// Under the sanitizers one seed: another seed runs the same code in another order, which other builds check.
inline const std::span<const Schedule> kSchedules =
    std::span(kEverySchedule).first(static_cast<std::size_t>(kvscope::test::size_for_sanitizers(3, 6)));
inline constexpr Schedule kLate = kEverySchedule[0];

// The same sources as compiled by the two generations of the compiler.
struct Dialect {
  const char* suffix;
  int target;
};
inline constexpr std::array<Dialect, 2> kDialects = {{{".ptx", 90}, {".sm_100a.ptx", 100}}};

struct Run {
  std::string kernel;
  std::array<std::int64_t, 3> grid{1, 1, 1};
  std::array<std::int64_t, 3> block{32, 1, 1};
  std::vector<ParamValue> values;
  std::int64_t dynamic_shared = 0;  // [bytes]
  std::int64_t resident_limit = 264;
  bool cooperative = false;
  std::int64_t max_instructions = 50'000'000;
};

class Gpu {
 public:
  // `file`: in cuda/.
  explicit Gpu(const std::string& file, const Schedule& schedule = kLate, int target = 90)
      : Gpu(file, schedule, ProgramOptions{.target = target}) {}
  Gpu(const std::string& file, const Schedule& schedule, const ProgramOptions& options);

  template <class T>
  std::uint64_t upload(std::string_view name, const std::vector<T>& values) {
    return upload_bytes(name, std::as_bytes(std::span(values)));
  }
  std::uint64_t zeros(std::string_view name, std::size_t bytes);
  template <class T>
  [[nodiscard]] std::vector<T> download(std::uint64_t address, std::size_t count) {
    const std::vector<std::byte> bytes = download_bytes(address, count * sizeof(T));
    std::vector<T> values(count);
    if (count > 0) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  // `monitor` may be null.
  LaunchResult run(const Run& run, Monitor* monitor);
  // With every checker attached.
  LaunchResult run_checked(const Run& run);
  // The same with all options: races in global memory, registers and local bytes read before they are written. If the
  // run is not clean, the test fails with the reports.
  LaunchResult run_clean(const Run& run);

  [[nodiscard]] const Program& program() const { return *module_->program; }

 private:
  std::uint64_t upload_bytes(std::string_view name, std::span<const std::byte> bytes);
  [[nodiscard]] std::vector<std::byte> download_bytes(std::uint64_t address, std::size_t count);

  Device device_;
  const LoadedModule* module_ = nullptr;
  Schedule schedule_;
};

// Text of a file of cuda/; a test failure if it is missing.
[[nodiscard]] std::string kept_ptx(const std::string& file);
[[nodiscard]] std::string reports_text(const LaunchResult& result);

// FNV-1a, 64 bits.
[[nodiscard]] std::uint64_t fnv(std::span<const std::byte> bytes);
template <class T>
[[nodiscard]] std::uint64_t fnv_of(const std::vector<T>& values) {
  return fnv(std::as_bytes(std::span(values)));
}

// A parameter block's value, or a struct by its bytes.
[[nodiscard]] inline ParamValue value(std::int64_t v) {
  return static_cast<std::uint64_t>(v);
}
[[nodiscard]] ParamValue float_bits(float v);
template <class T>
[[nodiscard]] ParamValue block(const T& v) {
  std::vector<std::byte> bytes(sizeof(T));
  std::memcpy(bytes.data(), &v, sizeof(T));
  return bytes;
}

// The bits of a number that is exact in bf16.
[[nodiscard]] std::uint16_t bf16(float exact);
[[nodiscard]] float from_bf16(std::uint16_t bits);
// Numbers in [-2, 2) that are exact in bf16: counter-based, the same on every host.
[[nodiscard]] std::vector<std::uint16_t> bf16_noise(std::size_t count, std::uint64_t seed);

// All lists fastest dimension first; strides in bytes.
[[nodiscard]] TensorMap tensor_map(TmaDataType type, std::uint64_t base, const std::vector<std::uint64_t>& dims,
                                   const std::vector<std::uint64_t>& strides, const std::vector<std::uint32_t>& box,
                                   TmaSwizzle swizzle);

}  // namespace kvscope::ptx::test
