// Single instructions: the virtual GPU against results that GPUs have produced (docs/hardware/instructions-*.txt), and
// the functions that make, compare, write and read such results.
#include "gpu/hardware/instruction_results.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <span>
#include <sstream>

#include "core/base/errors.h"
#include "core/base/fnv.h"
#include "gpu/launch/virtual_gpu.h"
#include "tests/gpu/launch/forwarding_device.h"
#include "tests/whole_grid.h"

namespace kvscope::gpu::instruction_results_test {
namespace {

using testing::HasSubstr;

constexpr std::size_t kBatch = 64;

std::vector<std::filesystem::path> records() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(KVSCOPE_SOURCE_DIR "/docs/hardware"))
    if (entry.path().filename().string().starts_with("instructions-")) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

std::string text_of(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

VirtualGpu model() {
  return VirtualGpu({.architecture = "sm_90a", .sum = ptx::SumMode::hopper, .checks = false, .counters = false});
}

// Instructions whose results PTX does not define to the last bit, and the greatest distance from the hardware's results
// over the kept sets [steps between representable numbers]. rcp and rsqrt of f64 with .ftz have 20 bits of fraction.
struct Approximation {
  std::string_view word;
  std::int64_t distance;
};
constexpr Approximation kApproximations[] = {
    {"div.approx.", 1},
    {"div.full.", 1},
    {"rcp.approx.f32", 1},
    {"rcp.approx.ftz.f32", 1},
    {"rcp.approx.ftz.f64", std::int64_t{1} << 32},
    {"sqrt.approx.", 1},
    {"rsqrt.approx.f32", 1},
    {"rsqrt.approx.ftz.f32", 1},
    {"rsqrt.approx.ftz.f64", std::int64_t{1} << 32},
    {"ex2.approx.f32", 2},
    {"ex2.approx.ftz.f32", 2},
    {"ex2.approx.f16", 1},
    {"ex2.approx.ftz.bf16", 1},
    {"tanh.approx.f16", 1},
    {"tanh.approx.bf16", 1},
    {"tanh.approx.f32", 114},  // PTX ISA: a relative error of 2^-11
};
// With an absolute error, which for lg2 grows with results above 1. Far from zero, hardware reduces the argument of sin
// and cos inexactly and the virtual GPU exactly; past 100 pi, both results are only known to be between -1 and 1. The
// bounds are powers of two above the greatest errors of the kept sets: 2^-21.2, 2^-16.6 and 2^-22.4.
struct AbsoluteError {
  std::string_view word;
  double error, low, high;  // low < |operand| <= high
};
constexpr double kTurn = 6.283185307179586, kInfinity = std::numeric_limits<double>::infinity();
constexpr AbsoluteError kAbsolute[] = {
    {"sin.approx", 0x1p-21, -1, kTurn},         {"sin.approx", 0x1p-16, kTurn, 50 * kTurn},
    {"sin.approx", 2, 50 * kTurn, kInfinity},   {"cos.approx", 0x1p-21, -1, kTurn},
    {"cos.approx", 0x1p-16, kTurn, 50 * kTurn}, {"cos.approx", 2, 50 * kTurn, kInfinity},
    {"lg2.approx", 0x1p-22, -1, kInfinity},
};

std::optional<std::int64_t> allowed_distance(const std::string& word) {
  for (const Approximation& one : kApproximations)
    if (word.starts_with(one.word)) return one.distance;
  return std::nullopt;
}

double number_of(std::uint64_t bits) {
  return double{std::bit_cast<float>(static_cast<std::uint32_t>(bits))};
}

bool is_absolute(const std::string& word) {
  return std::any_of(std::begin(kAbsolute), std::end(kAbsolute),
                     [&](const AbsoluteError& rule) { return word.starts_with(rule.word); });
}

// Every kept set: infinities and NaN where the hardware has them, and numbers within the error of their range.
void check_absolute(const InstructionKernel& kernel, const InstructionResult& record,
                    const std::vector<std::uint64_t>& results) {
  const std::vector<std::uint64_t> operands = operand_sets(kernel);
  for (std::size_t set = 0; set < kKeptSets; ++set) {
    const double x = number_of(operands[set]), there = number_of(record.kept[set]), here = number_of(results[set]);
    if (!std::isfinite(there) || !std::isfinite(here)) {
      EXPECT_EQ(record.kept[set], results[set]) << record.word << " of " << x;
      continue;
    }
    const auto* rule = std::find_if(std::begin(kAbsolute), std::end(kAbsolute), [&](const AbsoluteError& one) {
      return record.word.starts_with(one.word) && std::fabs(x) > one.low && std::fabs(x) <= one.high;
    });
    ASSERT_NE(rule, std::end(kAbsolute)) << record.word << " of " << x;
    EXPECT_LE(std::fabs(there - here), rule->error * std::max(1.0, std::fabs(there))) << record.word << " of " << x;
  }
}

// The greatest distance over the kept sets; -1: a number where the hardware has NaN, or the other way round.
std::int64_t kept_distance(const InstructionKernel& kernel, const InstructionResult& record,
                           const std::vector<std::uint64_t>& results) {
  std::int64_t most = 0;
  for (std::size_t w = 0; w < kernel.writes.size(); ++w)
    for (std::size_t set = 0; set < kKeptSets; ++set) {
      const auto steps =
          distance(kernel.writes[w].type, record.kept[w * kKeptSets + set], results[w * kOperandSets + set]);
      if (!steps) return -1;
      most = std::max(most, *steps);
    }
  return most;
}

// Every word of the record, every set: equal in every bit, or an approximation within its distance.
TEST(Instructions, AreThoseOfTheHardware) {
  ASSERT_FALSE(records().empty());
  for (const std::filesystem::path& file : records()) {
    const std::vector<InstructionResult> all = read_instruction_results(text_of(file), file.filename().string());
    ASSERT_GT(all.size(), 5000U) << file;
    std::size_t equal = 0;
    const auto step = kBatch * static_cast<std::size_t>(kvscope::test::size_for_sanitizers(8, 1));
    for (std::size_t begin = 0; begin < all.size(); begin += step) {
      std::vector<InstructionKernel> kernels;
      for (std::size_t i = begin; i < std::min(all.size(), begin + kBatch); ++i)
        kernels.push_back(*instruction_kernel(all[i].word));
      VirtualGpu device = model();
      const auto results = run_instructions(device, kernels);
      for (std::size_t i = 0; i < kernels.size(); ++i) {
        const InstructionResult& record = all[begin + i];
        if (fnv1a(std::as_bytes(std::span(results[i]))) == record.checksum) {
          ++equal;
          continue;
        }
        if (is_absolute(record.word)) {
          check_absolute(kernels[i], record, results[i]);
          continue;
        }
        const std::optional<std::int64_t> most = allowed_distance(record.word);
        if (!most || record.kept.empty()) {
          ADD_FAILURE() << record.word << ": other bits than on hardware";
          continue;
        }
        const std::int64_t found = kept_distance(kernels[i], record, results[i]);
        EXPECT_TRUE(found >= 0 && found <= *most) << record.word << ": distance " << found;
      }
    }
    EXPECT_GT(equal, 0U);
  }
}

TEST(InstructionKernels, CoverEveryComputation) {
  const std::vector<std::string>& words = measured_words();
  EXPECT_GT(words.size(), 5000U);
  EXPECT_EQ(std::set<std::string>(words.begin(), words.end()).size(), words.size());
  const std::set<std::string> all(words.begin(), words.end());
  for (const char* word :
       {"add.u16", "addc.cc.u32", "fma.rn.ftz.sat.f32", "setp.lt.f32", "cvt.rn.satfinite.e4m3x2.f32",
        "shfl.sync.bfly.b32", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "atom.shared.add.f32", "lop3.b32"})
    EXPECT_TRUE(all.contains(word)) << word;
  for (const char* word :
       {"ld.global.u32", "bar.sync", "mov.b32", "add.rn.f32x2", "atom.global.gpu.add.u32", "nothing"})
    EXPECT_FALSE(instruction_kernel(word)) << word;
}

TEST(InstructionKernels, ReadAndWriteWhatTheStatementNames) {
  const InstructionKernel select = *instruction_kernel("selp.b16");
  ASSERT_EQ(select.reads.size(), 3U);
  EXPECT_EQ(select.reads[0].bits, 16);
  EXPECT_EQ(select.reads[2].bits, 1);
  EXPECT_EQ(select.text, "selp.b16 %d0, %a0, %a1, %a2;\n");
  const InstructionKernel carry = *instruction_kernel("addc.cc.u64");
  EXPECT_EQ(carry.text, "add.cc.u32 %t, -1, %a2;\naddc.cc.u64 %d0, %a0, %a1;\naddc.u32 %d1, 0, 0;\n");
  const InstructionKernel atomic = *instruction_kernel("atom.shared.add.u32");
  EXPECT_EQ(atomic.reads.size(), 2U);   // the cell before, the summand
  EXPECT_EQ(atomic.writes.size(), 2U);  // the old value, the cell after
}

TEST(InstructionKernels, OperandsAreAFunctionOfTheWord) {
  const InstructionKernel divide = *instruction_kernel("div.s32");
  const std::vector<std::uint64_t> sets = operand_sets(divide);
  ASSERT_EQ(sets.size(), 2U * kOperandSets);
  EXPECT_EQ(sets, operand_sets(divide));
  EXPECT_NE(sets, operand_sets(*instruction_kernel("div.u32")));
  EXPECT_EQ(std::count(sets.begin() + kOperandSets, sets.end(), 0U), 0);  // no division by zero
  EXPECT_TRUE(std::all_of(sets.begin(), sets.end(), [](std::uint64_t x) { return x <= 0xffffffffU; }));
  // Two of four in each nibble of the metadata of a sparse matrix.
  const InstructionKernel sparse = *instruction_kernel("mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32");
  const std::vector<std::uint64_t> operands = operand_sets(sparse);
  const std::set<std::uint64_t> pairs{0x4, 0x8, 0xc, 0x9, 0xd, 0xe};
  for (std::size_t set = 0; set < kOperandSets; ++set)
    for (int nibble = 0; nibble < 8; ++nibble)
      ASSERT_TRUE(pairs.contains(operands[(sparse.reads.size() - 1) * kOperandSets + set] >> (4 * nibble) & 0xf));
}

TEST(Distance, CountsRepresentableNumbers) {
  using ptx::Type;
  EXPECT_EQ(distance(Type::f32, 0x3f800000, 0x3f800003), 3);
  EXPECT_EQ(distance(Type::f32, 0x80000001, 0x00000001), 2);  // over both zeros, which are one number
  EXPECT_EQ(distance(Type::f32, 0x7f7fffff, 0x7f800000), 1);
  EXPECT_EQ(distance(Type::f32, 0x7fffffff, 0xffc00000), 0);  // NaN and NaN
  EXPECT_EQ(distance(Type::f32, 0x7fffffff, 0x3f800000), std::nullopt);
  EXPECT_EQ(distance(Type::f16x2, 0x3c003c00, 0x3c053c02), 5);
  EXPECT_EQ(distance(Type::f64, 0x3ff0000000000000, 0x3ff0000000000002), 2);
  EXPECT_EQ(distance(Type::u32, 1, 2), std::nullopt);
}

// A device whose results have one flipped bit.
class Flipped final : public test::ForwardingDevice {
 public:
  Flipped() : ForwardingDevice(device_) {}
  void read(std::uint64_t address, std::span<std::byte> bytes) override {
    device_.read(address, bytes);
    bytes[8 * 5] ^= std::byte{1};  // set 5 of the first result
  }

 private:
  VirtualGpu device_ = model();
};

TEST(InstructionResults, NameEveryDifference) {
  Flipped device;
  const std::vector<std::string> words{"add.rn.f32", "add.u32"};
  const std::vector<InstructionResult> results = instruction_results(device, words);
  ASSERT_EQ(results.size(), 2U);
  for (const InstructionResult& result : results) {
    EXPECT_EQ(result.differing, 1);
    EXPECT_FALSE(result.same());
    ASSERT_EQ(result.examples.size(), 1U);
    EXPECT_THAT(result.examples[0], HasSubstr(" on the virtual GPU "));
    EXPECT_EQ(result.kept.size(), static_cast<std::size_t>(kKeptSets));
  }
  EXPECT_EQ(results[0].distance, 1);
  EXPECT_EQ(results[1].distance, std::nullopt);

  VirtualGpu same = model();
  EXPECT_TRUE(instruction_results(same, words)[0].same());
}

TEST(InstructionResults, FilesAreReadAsTheyWereWritten) {
  Flipped device;
  const std::vector<std::string> words{"add.rn.f32", "add.u32", "setp.lt.u32"};
  std::string text = "# a GPU\n";
  std::vector<InstructionResult> written = instruction_results(device, words);
  for (InstructionResult& result : written) {
    text += to_text(result);
    result.examples.clear();  // not in the file
  }
  EXPECT_EQ(read_instruction_results(text, "f.txt"), written);
}

TEST(InstructionResults, BrokenFilesAreRejectedWithTheirLine) {
  const auto message = [](const std::string& text) {
    try {
      (void)read_instruction_results("# a GPU\n" + text, "f.txt");
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(message("add.u32 12\n"), HasSubstr("line 2"));
  EXPECT_THAT(message("add.u32 xyz same\n"), HasSubstr("'xyz' is not a number of base 16"));
  EXPECT_THAT(message("add.u32 12 same more\n"), HasSubstr("4 columns; 3"));
  EXPECT_THAT(message("addd.u32 12 same\n"), HasSubstr("'addd.u32' is not a computation of sm_90a"));
  EXPECT_THAT(message("add.u32 12 7 - 1 2\n"), HasSubstr("6 columns; 68 with 64 results of 'add.u32'"));
  EXPECT_THAT(message("add.u32 12 same\n"), "accepted");
}

}  // namespace
}  // namespace kvscope::gpu::instruction_results_test
