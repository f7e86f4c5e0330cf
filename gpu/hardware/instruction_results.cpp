#include "gpu/hardware/instruction_results.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <sstream>
#include <utility>

#include "core/base/errors.h"
#include "core/base/fnv.h"
#include "gpu/launch/device_error.h"
#include "gpu/launch/virtual_gpu.h"

namespace kvscope::gpu {
namespace {

using ptx::Type;

constexpr std::int64_t kThreads = 256;
constexpr std::size_t kMostExamples = 4;

struct InstructionParams {
  std::uint64_t in = 0, out = 0;
};

std::string hex(std::uint64_t value, int bits) {
  return fmt::format("{:0{}x}", value, std::max(1, bits / 4));
}

// The bits of exponent and fraction of one number, and of the whole; 0: not a floating-point type.
struct FloatBits {
  int fraction = 0, all = 0;
};
FloatBits float_bits(Type type) {
  switch (type) {
    case Type::f16:
    case Type::f16x2:
      return {10, 16};
    case Type::bf16:
    case Type::bf16x2:
      return {7, 16};
    case Type::f32:
    case Type::tf32:
      return {23, 32};
    case Type::f64:
      return {52, 64};
    case Type::e4m3x2:
      return {3, 8};
    case Type::e5m2x2:
      return {2, 8};
    default:
      return {};
  }
}

// Numbers in order as integers: negative ones below zero, both zeros 0. std::nullopt: NaN.
std::optional<std::int64_t> ordinal(const FloatBits& f, std::uint64_t x) {
  const std::uint64_t magnitude_mask = (std::uint64_t{1} << (f.all - 1)) - 1;
  const std::uint64_t infinity = magnitude_mask >> f.fraction << f.fraction;
  const std::uint64_t magnitude = x & magnitude_mask;
  if (magnitude > infinity) return std::nullopt;
  const auto steps = static_cast<std::int64_t>(magnitude);
  return (x >> (f.all - 1) & 1) != 0 ? -steps : steps;
}

InstructionResult compared(const InstructionKernel& kernel, const std::vector<std::uint64_t>& measured,
                           const std::vector<std::uint64_t>& expected) {
  InstructionResult result;
  result.word = kernel.word;
  result.checksum = fnv1a(std::as_bytes(std::span(measured)));
  std::vector<std::uint64_t> operands;
  bool defined = true;
  std::int64_t most = 0;
  for (std::int64_t set = 0; set < kOperandSets; ++set) {
    bool differs = false;
    std::vector<std::string> here, there;
    for (std::size_t w = 0; w < kernel.writes.size(); ++w) {
      const std::size_t at = w * kOperandSets + static_cast<std::size_t>(set);
      there.push_back(hex(measured[at], kernel.writes[w].bits));
      here.push_back(hex(expected[at], kernel.writes[w].bits));
      if (measured[at] == expected[at]) continue;
      differs = true;
      const std::optional<std::int64_t> steps = distance(kernel.writes[w].type, measured[at], expected[at]);
      defined = defined && steps.has_value();
      most = std::max(most, steps.value_or(0));
    }
    if (!differs) continue;
    ++result.differing;
    if (result.examples.size() == kMostExamples) continue;
    if (operands.empty()) operands = operand_sets(kernel);
    std::vector<std::string> read;
    for (std::size_t r = 0; r < kernel.reads.size(); ++r)
      read.push_back(hex(operands[r * kOperandSets + static_cast<std::size_t>(set)], kernel.reads[r].bits));
    result.examples.push_back(fmt::format("({}) gives {}, on the virtual GPU {}", fmt::join(read, ", "),
                                          fmt::join(there, " "), fmt::join(here, " ")));
  }
  if (result.differing == 0) return result;
  if (defined) result.distance = most;
  for (std::size_t w = 0; w < kernel.writes.size(); ++w)
    for (std::size_t set = 0; set < kKeptSets; ++set) result.kept.push_back(measured[w * kOperandSets + set]);
  return result;
}

std::vector<std::string> columns_of(const std::string& line) {
  std::vector<std::string> columns;
  std::istringstream in(line);
  for (std::string column; in >> column;) columns.push_back(std::move(column));
  return columns;
}

class LineReader {
 public:
  LineReader(std::string file, std::int64_t line) : file_(std::move(file)), line_(line) {}

  std::uint64_t number(const std::string& text, int base) const {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc() || end != text.data() + text.size())
      fail(fmt::format("'{}' is not a number of base {}", text, base));
    return value;
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(file_, fmt::format("line {}", line_), what);
  }

 private:
  std::string file_;
  std::int64_t line_ = 0;
};

}  // namespace

std::optional<std::int64_t> distance(Type type, std::uint64_t a, std::uint64_t b) {
  const FloatBits f = float_bits(type);
  if (f.all == 0) return std::nullopt;
  std::int64_t most = 0;
  for (int at = 0; at < std::max(f.all, ptx::bits(type)); at += f.all) {
    const auto x = ordinal(f, a >> at), y = ordinal(f, b >> at);
    if (x.has_value() != y.has_value()) return std::nullopt;
    if (x) most = std::max(most, std::abs(*x - *y));
  }
  return most;
}

std::vector<std::vector<std::uint64_t>> run_instructions(Device& device, std::span<const InstructionKernel> kernels) {
  const std::string name = kernels.empty() ? "" : "instruction " + kernels[0].word;
  device.use_ptx(name, ptx_of(kernels));
  std::vector<std::vector<std::uint64_t>> results;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const DeviceArray in = device.upload_values("operands", operand_sets(kernels[i]));
    const auto bytes = static_cast<std::int64_t>(kernels[i].writes.size()) * 8 * kOperandSets;
    const DeviceArray out = device.filled("results", bytes, std::byte{0xee});
    const InstructionParams params{.in = in.address(), .out = out.address()};
    const Outcome outcome = device.launch({.kernel = name,
                                           .entry = fmt::format("i{}", i),
                                           .grid = {kOperandSets / kThreads, 1, 1},
                                           .block = {kThreads, 1, 1}},
                                          bytes_of(params));
    if (!outcome.faults.empty()) throw DeviceError(kernels[i].word + ": " + outcome.faults.front());
    results.push_back(out.download_as<std::uint64_t>());
  }
  return results;
}

std::vector<InstructionResult> instruction_results(Device& device, std::span<const std::string> words) {
  std::vector<InstructionKernel> kernels;
  for (const std::string& word : words) {
    std::optional<InstructionKernel> kernel = instruction_kernel(word);
    if (!kernel) throw InputError("instructions", word, "this word is not a computation of sm_90a");
    kernels.push_back(*std::move(kernel));
  }
  std::vector<InstructionResult> results;
  std::vector<std::vector<std::uint64_t>> measured, expected;
  try {
    VirtualGpu model({.architecture = "sm_90a", .sum = ptx::SumMode::hopper, .checks = false, .counters = false});
    expected = run_instructions(model, kernels);
    measured = run_instructions(device, kernels);
  } catch (const DeviceError& error) {
    if (kernels.size() == 1) {
      InstructionResult failed;
      failed.word = words[0];
      failed.fault = error.what();
      return {failed};
    }
    for (const std::string& word : words)  // one by one: only some have the fault
      for (InstructionResult& result : instruction_results(device, {&word, 1})) results.push_back(std::move(result));
    return results;
  }
  for (std::size_t i = 0; i < kernels.size(); ++i) results.push_back(compared(kernels[i], measured[i], expected[i]));
  return results;
}

json::Value to_json(const InstructionSummary& summary) {
  json::Value value;
  value.set("word", summary.word);
  value.set("fault", summary.fault);
  value.set("differing", summary.differing);
  value.set("distance", summary.distance ? json::Value(*summary.distance) : json::Value());
  value.set("examples", json::strings(summary.examples));
  return value;
}

std::string to_text(const InstructionResult& result) {
  if (!result.fault.empty()) return "";
  std::string text = fmt::format("{} {:016x}", result.word, result.checksum);
  if (result.differing == 0) return text + " same\n";
  text += fmt::format(" {} {}", result.differing, result.distance ? std::to_string(*result.distance) : "-");
  for (const std::uint64_t value : result.kept) text += fmt::format(" {:x}", value);
  return text + "\n";
}

std::vector<InstructionResult> read_instruction_results(const std::string& text, const std::string& file) {
  std::vector<InstructionResult> results;
  std::istringstream in(text);
  std::int64_t number = 0;
  for (std::string line; std::getline(in, line);) {
    const LineReader reader(file, ++number);
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string> columns = columns_of(line);
    if (columns.size() < 3) reader.fail(fmt::format("{} columns; a word, a checksum and a result", columns.size()));
    const std::optional<InstructionKernel> kernel = instruction_kernel(columns[0]);
    if (!kernel) reader.fail(fmt::format("'{}' is not a computation of sm_90a", columns[0]));
    InstructionResult result;
    result.word = columns[0];
    result.checksum = reader.number(columns[1], 16);
    if (columns[2] != "same") {
      result.differing = static_cast<std::int64_t>(reader.number(columns[2], 10));
      const std::size_t kept = kernel->writes.size() * kKeptSets;
      if (columns.size() != 4 + kept)
        reader.fail(fmt::format("{} columns; {} with {} results of '{}'", columns.size(), 4 + kept, kept, columns[0]));
      if (columns[3] != "-") result.distance = static_cast<std::int64_t>(reader.number(columns[3], 10));
      for (std::size_t i = 4; i < columns.size(); ++i) result.kept.push_back(reader.number(columns[i], 16));
    } else if (columns.size() != 3) {
      reader.fail(fmt::format("{} columns; 3 if the results are the same", columns.size()));
    }
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace kvscope::gpu
