// Lab 10: four kernels with a missing order, mended by the student. A mended kernel is right and without reports under
// late, early and five random schedules, and has no barrier more than needed.
#include <fmt/format.h>

#include <array>
#include <functional>

#include "apps/labs/graders.h"
#include "apps/labs/kernel_run.h"
#include "apps/labs/report_text.h"

namespace kvscope::labs {
namespace {

// What a mended kernel may cost: the barriers of a warp, and about 1.5 times the warp instructions of the launch,
// because compilers differ. Held by tests/labs/course_test.py, which grades the solution.
struct MendCost {
  std::int64_t barriers = 0;
  std::int64_t instructions = 0;
  std::int64_t barriers_of_one_line = 0;  // of a mend that adds one barrier and keeps 3 of 5 points; 0: none
};

struct MendCase {
  LabCall call;
  std::size_t out = 0;  // the array that is compared
  std::vector<std::int32_t> expected;
  MendCost most;
};

std::vector<std::int32_t> random_numbers(const CounterRng& random, std::int64_t count) {
  std::vector<std::int32_t> numbers;
  for (std::int64_t i = 0; i < count; ++i) {
    numbers.push_back(static_cast<std::int32_t>(random.integer(static_cast<std::uint64_t>(i), -1000, 1000)));
  }
  return numbers;
}

LabArray unwritten_numbers(std::string name, std::int64_t count) {
  return {std::move(name), std::vector<std::byte>(static_cast<std::size_t>(count * 4), kUnwritten), false};
}

MendCase sum_case(const CounterRng& random) {
  constexpr std::int64_t kCtas = 3;
  const std::vector<std::int32_t> x = random_numbers(random, kCtas * 256);
  MendCase made;
  for (std::int64_t c = 0; c < kCtas; ++c) {
    std::int32_t sum = 0;
    for (std::int64_t i = 0; i < 256; ++i) sum += x[static_cast<std::size_t>(c * 256 + i)];
    made.expected.push_back(sum);
  }
  made.call = {.entry = "sum", .grid = {kCtas, 1, 1}, .block = {256, 1, 1}};
  made.call.arrays = {{"x", lab_bytes(x)}, unwritten_numbers("out", kCtas)};
  made.call.params = {AddressOf{0}, AddressOf{1}};
  made.out = 1;
  made.most = {9, 1800};
  return made;
}

MendCase stream_case(const CounterRng& random) {
  constexpr std::int64_t kTiles = 5;
  const std::vector<std::int32_t> x = random_numbers(random, kTiles * 512);
  MendCase made;
  for (std::int64_t t = 0; t < 128; ++t) {
    std::int64_t sum = 0;
    for (std::int64_t tile = 0; tile < kTiles; ++tile) {
      for (std::int64_t i = 0; i < 4; ++i) {
        sum += (tile + 1) * x[static_cast<std::size_t>(tile * 512 + (4 * t + i + 256) % 512)];
      }
    }
    made.expected.push_back(static_cast<std::int32_t>(sum));
  }
  made.call = {.entry = "stream", .block = {128, 1, 1}};
  made.call.arrays = {{"x", lab_bytes(x)}, unwritten_numbers("out", 128)};
  made.call.params = {AddressOf{0}, AddressOf{1}, static_cast<std::uint64_t>(kTiles)};
  made.out = 1;
  made.most = {kTiles, 1200, 2 * kTiles};
  return made;
}

MendCase store_case(const CounterRng& random) {
  constexpr std::int64_t kCtas = 2;
  const std::vector<std::int32_t> x = random_numbers(random, kCtas * 512);
  MendCase made;
  for (std::int64_t i = 0; i < kCtas * 512; ++i) {
    made.expected.push_back(x[static_cast<std::size_t>(i / 512 * 512 + 511 - i % 512)]);
  }
  made.call = {.entry = "store", .grid = {kCtas, 1, 1}, .block = {128, 1, 1}};
  made.call.arrays = {{"x", lab_bytes(x)}, unwritten_numbers("out", kCtas * 512)};
  made.call.params = {AddressOf{0}, AddressOf{1}};
  made.out = 1;
  made.most = {1, 700};
  return made;
}

MendCase last_case(const CounterRng& random) {
  constexpr std::int64_t kCtas = 6;
  const std::vector<std::int32_t> x = random_numbers(random, kCtas * 128);
  MendCase made;
  for (std::int64_t t = 0; t < 128; ++t) {
    std::int32_t sum = 0;
    for (std::int64_t c = 0; c < kCtas; ++c) sum += 3 * x[static_cast<std::size_t>(c * 128 + t)] + 1;
    made.expected.push_back(sum);
  }
  made.call = {.entry = "last", .grid = {kCtas, 1, 1}, .block = {128, 1, 1}};
  made.call.arrays = {{"x", lab_bytes(x)},
                      unwritten_numbers("partial", kCtas * 128),
                      {"arrived", std::vector<std::byte>(4)},
                      unwritten_numbers("out", 128)};
  made.call.params = {AddressOf{0}, AddressOf{1}, AddressOf{2}, AddressOf{3}};
  made.out = 3;
  made.most = {2, 1300};
  return made;
}

struct MendKernel {
  std::string name;
  std::function<MendCase(const CounterRng&)> make;
};

const std::array<MendKernel, 4>& mend_kernels() {
  static const std::array<MendKernel, 4> kernels{
      {{"sum", sum_case}, {"stream", stream_case}, {"store", store_case}, {"last", last_case}}};
  return kernels;
}

class FourKernelsGrader final : public Grader {
 public:
  using Grader::Grader;

  [[nodiscard]] std::vector<TestResult> grade(const Submission& submission, const Seed& seed) const override {
    std::vector<TestResult> results;
    std::uint64_t stream = 0;
    for (const MendKernel& kernel : mend_kernels()) {
      const LabKernel compiled = compile_kernel(*this, submission, kernel.name + ".cu");
      grade_kernel(kernel, compiled, seed.random(++stream), results);
    }
    return results;
  }

 private:
  void grade_kernel(const MendKernel& kernel, const LabKernel& compiled, const CounterRng& random,
                    std::vector<TestResult>& results) const {
    const std::string budget = kernel.name + "_budget";
    const auto wrong = [&](const std::string& message, const std::string& text, std::optional<int> hint = {},
                           CasePicture picture = {}) {
      results.push_back(with_picture(failed(lab(), kernel.name, message, text, hint), std::move(picture)));
      results.push_back(failed(lab(), budget, "not judged: the kernel must be right first"));
    };
    if (!compiled.ok()) return wrong(kernel.name + ".cu does not compile", compiled.messages, 0);
    const MendCase made = kernel.make(random);
    KernelRun first;
    for (const Schedule& schedule : all_schedules()) {
      KernelRun run = run_kernel(compiled, made.call, schedule);
      if (!fault_of(run).empty()) {
        return wrong(fault_of(run), fmt::format("schedule {}\n{}", schedule_name(schedule), report_case(run)),
                     std::nullopt, report_picture(run));
      }
      const std::vector<std::int32_t> out = lab_values<std::int32_t>(run.arrays[made.out]);
      for (std::size_t i = 0; i < out.size(); ++i) {
        if (out[i] == made.expected[i]) continue;
        return wrong("the result is wrong", fmt::format("schedule {}\nout[{}]: expected {}, your kernel gave {}",
                                                        schedule_name(schedule), i, made.expected[i], out[i]));
      }
      if (schedule.policy == ptx::Policy::late) first = std::move(run);
    }
    results.push_back(passed(lab(), kernel.name));
    results.push_back(judge_budget(budget, made, first));
  }

  [[nodiscard]] TestResult judge_budget(const std::string& test, const MendCase& made, const KernelRun& run) const {
    const std::int64_t warps = made.call.grid[0] * made.call.block[0] / 32;
    const std::int64_t more = (run.barriers + warps - 1) / warps - made.most.barriers;
    if (more > 0) {
      constexpr double kOneLinePart = 3.0 / 5;
      const bool one_line = made.most.barriers + more <= made.most.barriers_of_one_line;
      return failed(
          lab(), test,
          fmt::format("right, with {} more than needed{}", more == 1 ? "one barrier" : fmt::format("{} barriers", more),
                      one_line ? ": keeps 3 points" : ""),
          fmt::format("each warp waits at {} barriers; {} {} enough", run.barriers / warps, made.most.barriers,
                      made.most.barriers == 1 ? "is" : "are"),
          3, one_line ? kOneLinePart : 0);
    }
    if (run.total.runs > made.most.instructions) {
      return failed(lab(), test,
                    fmt::format("right, but the threads no longer share the work: {} warp instructions, at most {}",
                                run.total.runs, made.most.instructions),
                    "mend one line and keep the rest of the kernel", 3);
    }
    return passed(lab(), test);
  }
};

}  // namespace

std::unique_ptr<Grader> four_kernels_grader(const Lab& lab, const GradeOptions& options) {
  return std::make_unique<FourKernelsGrader>(lab, options);
}

}  // namespace kvscope::labs
