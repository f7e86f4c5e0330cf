#include "apps/labs/hunt_kernel.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <span>
#include <string>

#include "apps/labs/grade.h"
#include "core/golden/bundle/npz.h"
#include "core/golden/verdict/compare.h"

namespace kvscope::labs::hunt_kernel_test {
namespace {

constexpr std::string_view kLab = "07_fault_hunt";
constexpr auto kFaults = static_cast<std::uint8_t>(HuntFault::divided_twice);

HuntProblem problem_of(const std::string& student) {
  return make_hunt_problem(task_seed(student, kLab).random(0));
}

std::string file_of(const std::vector<TaskFile>& files, std::string_view name) {
  for (const TaskFile& file : files) {
    if (file.name == name) return file.text;
  }
  ADD_FAILURE() << name << " is not handed out";
  return {};
}

std::vector<TaskFile> handed_out(const std::string& student) {
  const Lab lab = load_lab(std::filesystem::path(KVSCOPE_SOURCE_DIR) / "docs" / "labs" / kLab);
  return make_grader(lab, {})->task_files(student);
}

double relative_difference(float a, float b) {
  if (a == b) return 0;
  if (!std::isfinite(a) || !std::isfinite(b)) return std::numeric_limits<double>::infinity();
  return std::abs(static_cast<double>(a) - static_cast<double>(b)) / std::max(1.0, std::abs(static_cast<double>(a)));
}

double largest_difference(const HuntOutput& a, const HuntOutput& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.o.size(); ++i) largest = std::max(largest, relative_difference(a.o[i], b.o[i]));
  for (std::size_t i = 0; i < a.lse.size(); ++i) largest = std::max(largest, relative_difference(a.lse[i], b.lse[i]));
  return largest;
}

std::string four_digits(float value) {
  return fmt::format("{:.5g}", std::round(static_cast<double>(value) * 1e4) / 1e4);
}

// The golden output comes from core/attention, which has no code in common with the kernel of the lab.
TEST(HuntKernel, WithoutAFaultPassesTheReference) {
  for (int student = 0; student < 20; ++student) {
    const std::string name = "student " + std::to_string(student);
    const HuntProblem problem = problem_of(name);
    const HuntOutput output = run_hunt_kernel(problem, HuntFault::none);
    golden::Bundle candidate;
    candidate.tensors.emplace("o", golden::tensor_of<float>({problem.batch(), problem.query_heads(), 8}, output.o));
    candidate.tensors.emplace("lse", golden::tensor_of<float>({problem.batch(), problem.query_heads()}, output.lse));
    const golden::Bundle golden = golden::parse_npz(file_of(handed_out(name), "golden.npz"), "golden.npz");
    EXPECT_TRUE(golden::compare(golden, candidate).passed) << name;
  }
}

// Otherwise a report would have two right answers, or none that can be seen. 1e-3 is a hundred times the difference
// from which a row counts as failing.
TEST(HuntKernel, EveryFaultOfAProblemGivesAnotherOutput) {
  for (int student = 0; student < 60; ++student) {
    const HuntProblem problem = problem_of(std::to_string(student));
    std::vector<HuntOutput> outputs;
    for (std::uint8_t fault = 0; fault <= kFaults; ++fault) {
      outputs.push_back(run_hunt_kernel(problem, static_cast<HuntFault>(fault)));
      for (std::size_t other = 0; other < fault; ++other) {
        EXPECT_GT(largest_difference(outputs[other], outputs.back()), 1e-3)
            << "student " << student << ": faults " << other << " and " << int{fault} << " give one output";
      }
    }
  }
}

// A row that fails by less than the tolerance of the grader would be neither right nor wrong.
TEST(HuntKernel, ARowIsWrongByFarOrRight) {
  for (int student = 0; student < 60; ++student) {
    const HuntProblem problem = problem_of(std::to_string(student));
    const HuntOutput golden = run_hunt_kernel(problem, HuntFault::none);
    for (std::uint8_t fault = 1; fault <= kFaults; ++fault) {
      const HuntOutput output = run_hunt_kernel(problem, static_cast<HuntFault>(fault));
      for (std::size_t row = 0; row < golden.lse.size(); ++row) {
        double largest = relative_difference(golden.lse[row], output.lse[row]);
        for (std::size_t d = row * 8; d < row * 8 + 8; ++d) {
          largest = std::max(largest, relative_difference(golden.o[d], output.o[d]));
        }
        EXPECT_TRUE(largest < 1e-6 || largest > 1e-3) << "student " << student << ", fault " << int{fault};
      }
    }
  }
}

// The example of the handout: 6 keys of sequence 2 on pages of 4 tokens in blocks 9 and 4.
TEST(HuntKernel, GivesTheNumbersOfTheHandout) {
  HuntProblem problem;
  problem.blocks = 12;
  problem.layers = 2;
  problem.page_size = 4;
  problem.kv_heads = 3;
  problem.layer = 1;
  problem.tokens_per_split = 8;
  problem.scale = 0.5;
  problem.lengths = {1, 2, 6};
  problem.columns = 3;
  problem.table = {1, 12, 12, 2, 12, 12, 9, 4, 12};
  problem.query = {4, 4, 4, 4, 4, 4};
  fill_with_tracers(problem);
  const std::size_t row = 2 * 6;
  const auto text = [&](HuntFault fault) {
    const HuntOutput output = run_hunt_kernel(problem, fault);
    std::string line = four_digits(output.lse[row]);
    for (const float value : std::span(output.o).subspan(row * 8, 8)) line += " " + four_digits(value);
    return line;
  };
  EXPECT_EQ(text(HuntFault::none), "3.7918 7.3333 1.1667 0 1 2 2.5 2 6");
  EXPECT_EQ(text(HuntFault::one_key_too_many), "3.9459 6.8571 1.2857 0 1 2 2 1.5714 5.1429");
}

// A report holds two tensors, and a manifest without a word about the kernel.
TEST(HuntTask, ReportsHoldOutputsOnly) {
  for (int number = 1; number <= 8; ++number) {
    const std::string name = "report_" + std::to_string(number);
    const golden::Bundle bundle = golden::parse_npz(file_of(handed_out("ada"), name + ".npz"), name);
    ASSERT_EQ(bundle.tensors.size(), 2U);
    EXPECT_TRUE(bundle.tensors.contains("o") && bundle.tensors.contains("lse"));
    for (const auto& [key, value] : *bundle.manifest.as_object()) {
      EXPECT_THAT(key, testing::AnyOf("kvscope_bundle", "tensors", "manifest_crc32"));
    }
    const std::string text = file_of(handed_out("ada"), name + ".txt");
    EXPECT_EQ(text.substr(text.find('\n')).find_first_not_of("0123456789 \n.+-einf"), std::string::npos);
  }
}

// Two students have other sizes and other faults; one student has the same files every time.
TEST(HuntTask, BelongsToTheStudent) {
  EXPECT_EQ(file_of(handed_out("ada"), "report_1.npz"), file_of(handed_out("ada"), "report_1.npz"));
  EXPECT_NE(file_of(handed_out("ada"), "report_1.npz"), file_of(handed_out("grace"), "report_1.npz"));
  EXPECT_NE(file_of(handed_out("ada"), "task.json"), file_of(handed_out("grace"), "task.json"));
}

}  // namespace
}  // namespace kvscope::labs::hunt_kernel_test
