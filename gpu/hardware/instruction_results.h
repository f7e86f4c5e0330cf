// The results of single instructions on a device, compared with the virtual GPU bit by bit, and the file that keeps them:
// a machine without a GPU then compares the virtual GPU with results that a GPU has produced.
//
//   for (const InstructionResult& result : instruction_results(device, words)) ...
//
// The file has one line per word, in the order of measured_words():
//
//   # GPU, architecture, driver, date
//   add.rn.f32 9a0b1c2d3e4f5061 same
//   ex2.approx.f32 0123456789abcdef 137 1 3f800000 3f800001 ...
//
// The checksum (FNV-1a) is that of all results of the device: [written register][set], 8 bytes each. `same`: the virtual
// GPU computed the same bits. Otherwise: the number of sets with other bits, the greatest distance, and the results of
// the first kKeptSets sets. The distance of two floating-point numbers is the number of steps from one to the next
// representable number; `-` for other types, and between a number and a NaN.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "gpu/hardware/instruction_kernels.h"
#include "gpu/launch/device.h"

namespace kvscope::gpu {

inline constexpr std::int64_t kKeptSets = 64;

struct InstructionSummary {
  std::string word;
  std::string fault;                     // the driver rejected the word, or its kernel stopped; empty: none
  std::int64_t differing = 0;            // sets in which a result has other bits than on the virtual GPU
  std::optional<std::int64_t> distance;  // over all sets; std::nullopt: not defined, or no set differs
  std::vector<std::string> examples;     // at most 4: "(3f800000) gives 3f800001, on the virtual GPU 3f800002"
  [[nodiscard]] bool same() const { return fault.empty() && differing == 0; }
  friend bool operator==(const InstructionSummary&, const InstructionSummary&) = default;
};

struct InstructionResult : InstructionSummary {
  std::uint64_t checksum = 0;
  std::vector<std::uint64_t> kept;  // [written register][kKeptSets], if a set differs
  friend bool operator==(const InstructionResult&, const InstructionResult&) = default;
};

// Steps between two floating-point numbers of `type`, for packed types the greatest of their parts.
[[nodiscard]] std::optional<std::int64_t> distance(ptx::Type type, std::uint64_t a, std::uint64_t b);

// All results of the words on the device: [word][written register][set]. Throws DeviceError if the device rejects or
// stops one of the kernels.
[[nodiscard]] std::vector<std::vector<std::uint64_t>> run_instructions(Device& device,
                                                                       std::span<const InstructionKernel> kernels);

// Compares the device with the virtual GPU, whose matrix instructions add as on Hopper. A word that the device rejects
// has a fault, and the others are still measured; after a kernel that ended the context, all words have faults.
[[nodiscard]] std::vector<InstructionResult> instruction_results(Device& device, std::span<const std::string> words);

[[nodiscard]] json::Value to_json(const InstructionSummary& summary);
// The lines of the file, without its first one.
[[nodiscard]] std::string to_text(const InstructionResult& result);
// Throws InputError with file and line. Lines of words with faults have no results and are not in the file.
[[nodiscard]] std::vector<InstructionResult> read_instruction_results(const std::string& text, const std::string& file);

}  // namespace kvscope::gpu
