// Kernels with one mistake in each (mutants/): their conformance cases must fail in the expected way. The kernel
// without the mistake passes the same cases, so the failure is caused by the mistake alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpu/launch/virtual_gpu.h"
#include "gpu/verify/run_case.h"

namespace kvscope::gpu::mutants_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

const std::filesystem::path kFolder = KVSCOPE_SOURCE_DIR "/tests/conformance/mutants";

std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

struct Mutant {
  std::string name, mistake, base, fails;
  std::vector<std::string> cases;
  std::vector<std::string> difference;  // from the base's lines
};

Mutant read_mutant(const std::filesystem::path& path) {
  Mutant mutant{.name = path.stem().string(), .mistake{}, .base{}, .fails{}, .cases{}, .difference{}};
  for (std::string& line : lines_of(path)) {
    const std::size_t colon = line.find(": ");
    const std::string key = mutant.difference.empty() ? line.substr(0, colon) : "";
    if (key == "mistake") {
      mutant.mistake = line.substr(colon + 2);
    } else if (key == "base") {
      mutant.base = line.substr(colon + 2);
    } else if (key == "fails") {
      mutant.fails = line.substr(colon + 2);
    } else if (key == "cases") {
      std::istringstream words(line.substr(colon + 2));
      for (std::string word; words >> word;) mutant.cases.push_back(word);
    } else {
      mutant.difference.push_back(std::move(line));
    }
  }
  return mutant;
}

const std::vector<Mutant>& mutants() {
  static const std::vector<Mutant> all = [] {
    std::vector<Mutant> read;
    for (const auto& entry : std::filesystem::directory_iterator(kFolder))
      if (entry.path().extension() == ".diff") read.push_back(read_mutant(entry.path()));
    std::sort(read.begin(), read.end(), [](const Mutant& a, const Mutant& b) { return a.name < b.name; });
    return read;
  }();
  return all;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::string base_ptx(const std::string& base) {
  return joined(lines_of(kFolder / (base + ".ptx")));
}

// Applies a difference to the base's lines. "@@ 12,2 @@": from line 12 on, two lines (after "-") are replaced by the
// lines after "+".
std::string mutated_ptx(const Mutant& mutant) {
  const std::vector<std::string> base = lines_of(kFolder / (mutant.base + ".ptx"));
  std::vector<std::string> made;
  std::size_t at = 0;
  for (const std::string& line : mutant.difference) {
    if (line.starts_with("@@ ")) {
      std::size_t first = 0;
      std::from_chars(line.data() + 3, line.data() + line.size(), first);
      if (first < at + 1 || first > base.size() + 1) throw std::runtime_error(mutant.name + ": " + line);
      made.insert(made.end(), base.begin() + static_cast<std::ptrdiff_t>(at),
                  base.begin() + static_cast<std::ptrdiff_t>(first - 1));
      at = first - 1;
    } else if (line.starts_with("+")) {
      made.push_back(line.substr(1));
    } else if (line.starts_with("-") && at < base.size() && base[at] == line.substr(1)) {
      ++at;
    } else {
      throw std::runtime_error(mutant.name + ": is no difference from " + mutant.base + ".ptx: " + line);
    }
  }
  made.insert(made.end(), base.begin() + static_cast<std::ptrdiff_t>(at), base.end());
  return joined(made);
}

const Kernel& kernel_of(const std::string& base) {
  for (const Kernel& kernel : all_kernels())
    if (base.starts_with(kernel.name)) return kernel;
  throw std::runtime_error("no kernel is a beginning of " + base);
}

const Case& case_of(const Kernel& kernel, const std::string& name) {
  for (const Case& c : kernel.cases)
    if (c.name == name) return c;
  throw std::runtime_error(kernel.name + " has no case " + name);
}

// A virtual GPU that stores the reports of its launches.
class Watched final : public Device {
 public:
  Watched(const std::string& architecture, const std::string& kernel, const std::string& ptx)
      : device_({.architecture = architecture, .most_instructions = 5'000'000}) {
    device_.use_ptx(kernel, ptx);
  }
  [[nodiscard]] const DeviceInfo& info() const override { return device_.info(); }
  [[nodiscard]] std::uint64_t allocate(std::int64_t bytes, std::string_view name) override {
    return device_.allocate(bytes, name);
  }
  void release(std::uint64_t address) noexcept override { device_.release(address); }
  void write(std::uint64_t address, std::span<const std::byte> bytes) override { device_.write(address, bytes); }
  void read(std::uint64_t address, std::span<std::byte> bytes) override { device_.read(address, bytes); }
  [[nodiscard]] TensorMapSlot encode(const TensorMap& map) override { return device_.encode(map); }
  Outcome launch(const KernelLaunch& launch, std::span<const std::byte> params) override {
    Outcome outcome = device_.launch(launch, params);
    reports.insert(reports.end(), outcome.faults.begin(), outcome.faults.end());
    return outcome;
  }

  std::vector<std::string> reports;

 private:
  VirtualGpu device_;
};

class Mutants : public ::testing::TestWithParam<std::size_t> {};

// Instruction budgets are not checked here; the verdict contains the findings of a case.
TEST_P(Mutants, FailTheirCases) {
  const Mutant& mutant = mutants()[GetParam()];
  const Kernel& kernel = kernel_of(mutant.base);
  const std::string ptx = mutated_ptx(mutant);
  ASSERT_THAT(mutant.cases, Not(IsEmpty()));
  for (const std::string& name : mutant.cases) {
    const Case& c = case_of(kernel, name);
    Watched device(c.architecture, kernel.name, ptx);
    const Verdict verdict = c.run(device);
    EXPECT_THAT(verdict.faults, Not(IsEmpty())) << name << " passes although " << mutant.mistake;
    if (mutant.fails == "values") {
      EXPECT_THAT(device.reports, ElementsAre()) << name << ": " << mutant.mistake;
    } else {
      EXPECT_THAT(device.reports, Contains(StartsWith(mutant.fails))) << name << ": " << mutant.mistake;
    }
  }
}

std::vector<std::size_t> numbers() {
  std::vector<std::size_t> all(mutants().size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, Mutants, ::testing::ValuesIn(numbers()),
                         [](const auto& test) { return mutants()[test.param].name; });

TEST(MutantBases, PassTheCasesThatTheirMutantsFail) {
  std::map<std::string, std::set<std::string>> cases;
  for (const Mutant& mutant : mutants()) cases[mutant.base].insert(mutant.cases.begin(), mutant.cases.end());
  for (const auto& [base, names] : cases) {
    const Kernel& kernel = kernel_of(base);
    for (const std::string& name : names) {
      VirtualGpu device({.architecture = case_of(kernel, name).architecture});
      device.use_ptx(kernel.name, base_ptx(base));
      EXPECT_THAT(run_case(case_of(kernel, name), device).faults, ElementsAre()) << base << ", " << name;
    }
  }
}

TEST(MutantBases, EveryKernelHasMutantsOfValuesAndThoseWithBarriersOfReports) {
  std::map<std::string, std::set<bool>> kinds;
  std::map<std::string, int> count;
  for (const Mutant& mutant : mutants()) {
    const std::string& kernel = kernel_of(mutant.base).name;
    kinds[kernel].insert(mutant.fails == "values");
    ++count[kernel];
  }
  for (const Kernel& kernel : all_kernels()) {
    EXPECT_GE(count[kernel.name], 2) << kernel.name;
    EXPECT_TRUE(kinds[kernel.name].contains(true)) << kernel.name;
    const bool without_barriers = kernel.name == "append_tokens" || kernel.name == "populate_rows";
    EXPECT_TRUE(without_barriers || kinds[kernel.name].contains(false)) << kernel.name;
  }
}

}  // namespace
}  // namespace kvscope::gpu::mutants_test
