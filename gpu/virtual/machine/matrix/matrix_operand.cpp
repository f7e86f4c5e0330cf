#include "gpu/virtual/machine/matrix/matrix_operand.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <utility>

#include "core/base/errors.h"
#include "gpu/virtual/machine/copies/swizzle_bits.h"

namespace kvscope::ptx {
namespace {

constexpr int kVectorBytes = kWgmmaChunkBytes, kVectorBits = 8 * kVectorBytes, kLinesOfAMatrix = 8;

struct OperandLayout {
  std::int64_t start = 0, leading = 0, stride = 0;  // [bytes]
  int base_offset = 0;                              // [128-byte lines]
  SwizzleBits swizzle;
  std::string_view swizzle_name;
};

struct SwizzleCode {
  SwizzleBits bits;
  std::string_view name;
};
constexpr std::array<SwizzleCode, 4> kSwizzleCodes = {{{kNoSwizzle, "no swizzle"},
                                                       {kSwizzle128, "128B swizzle"},
                                                       {kSwizzle64, "64B swizzle"},
                                                       {kSwizzle32, "32B swizzle"}}};

std::uint64_t bit_field(std::uint64_t word, int lowest, int bits) {
  return word >> lowest & ((std::uint64_t{1} << bits) - 1);
}

OperandLayout layout_of(std::uint64_t descriptor) {
  std::vector<Fault> faults;
  std::uint64_t reserved = 0;
  for (const auto& [lowest, bits] : {std::pair{14, 2}, std::pair{30, 2}, std::pair{48, 1}, std::pair{52, 10}}) {
    reserved |= bit_field(descriptor, lowest, bits) << lowest;
  }
  if (reserved != 0) {
    faults.push_back({"reserved bits", fmt::format("0x{:016x} must be 0: is an offset 2^18 B or more?", reserved)});
  }
  if (const std::uint64_t version = bit_field(descriptor, 46, 2); version != 0) {
    faults.push_back({"version", fmt::format("{} in bits 46-47, but it is 0 for wgmma and 1 for tcgen05", version)});
  }
  if (!faults.empty()) throw GeometryError(fmt::format("wgmma descriptor 0x{:016x}", descriptor), std::move(faults));
  const SwizzleCode& code = kSwizzleCodes[bit_field(descriptor, 62, 2)];
  const auto offset = [&](int lowest) {
    return static_cast<std::int64_t>(bit_field(descriptor, lowest, 14)) * kVectorBytes;
  };
  return {offset(0), offset(16), offset(32), static_cast<int>(bit_field(descriptor, 49, 3)), code.bits, code.name};
}

OperandLayout tcgen05_layout_of(std::uint64_t descriptor) {
  const std::string what = fmt::format("tcgen05 descriptor 0x{:016x}", descriptor);
  std::vector<Fault> faults;
  std::uint64_t reserved = 0;
  for (const auto& [lowest, bits] : {std::pair{14, 2}, std::pair{30, 2}, std::pair{48, 1}, std::pair{53, 8}}) {
    reserved |= bit_field(descriptor, lowest, bits) << lowest;
  }
  if (reserved != 0) {
    faults.push_back({"reserved bits", fmt::format("0x{:016x} must be 0: is an offset 2^18 B or more?", reserved)});
  }
  if (const std::uint64_t version = bit_field(descriptor, 46, 2); version != 1) {
    faults.push_back({"version", fmt::format("{} in bits 46-47, but it is 1 for tcgen05 and 0 for wgmma", version)});
  }
  const std::uint64_t mode = bit_field(descriptor, 61, 3);
  if (mode == 3 || mode == 5 || mode == 7) {
    faults.push_back({"swizzle", fmt::format("{} in bits 61-63: 0 none, 2 128B, 4 64B, 6 32B", mode)});
  }
  if (!faults.empty()) throw GeometryError(what, std::move(faults));
  if (mode == 1) throw UnsupportedError(what + ": a 128B swizzle with atoms of 32 B is not modeled");
  if (bit_field(descriptor, 52, 1) != 0) throw UnsupportedError(what + ": an absolute leading offset is not modeled");
  if (bit_field(descriptor, 49, 3) != 0) {
    throw UnsupportedError(what +
                           ": a pattern out of phase (bits 49-51) is not modeled: align the tile to its swizzle");
  }
  // 0 none, 2 128B, 4 64B, 6 32B in the order of wgmma's modes
  const SwizzleCode& code = kSwizzleCodes[mode / 2];
  const auto offset = [&](int lowest) {
    return static_cast<std::int64_t>(bit_field(descriptor, lowest, 14)) * kVectorBytes;
  };
  return {offset(0), offset(16), offset(32), 0, code.bits, code.name};
}

void require_supported(const OperandLayout& operand, bool mn_major, int element_bits) {
  if (operand.base_offset != 0) {
    throw UnsupportedError(
        fmt::format("wgmma descriptor (start {}, leading {}, stride {}, phase {}, {}): a pattern out of phase is not "
                    "modeled: align the tile to {} B",
                    operand.start, operand.leading, operand.stride, operand.base_offset, operand.swizzle_name,
                    kLinesOfAMatrix * operand.swizzle.span));
  }
  if (mn_major && element_bits != 16) {
    throw UnsupportedError(
        fmt::format("wgmma takes MN-major operands of 16 bits only, not of {} B elements: transpose on the way into "
                    "shared memory",
                    std::max(1, element_bits / 8)));
  }
}

// The distance of item i from item 0 along one direction: `near` within a period, `far` from period to period.
struct Steps {
  std::int64_t period = 1, near = 0, far = 0;
  [[nodiscard]] std::int64_t at(std::int64_t i) const { return i % period * near + i / period * far; }
};

struct OperandSteps {
  Steps vectors, lines;
};
OperandSteps steps_of(const OperandLayout& operand, bool mn_major) {
  const std::int64_t width = operand.swizzle.span;
  if (!operand.swizzle.active()) {
    const std::int64_t along = mn_major ? operand.stride : operand.leading;
    const std::int64_t across = mn_major ? operand.leading : operand.stride;
    return {{1, 0, along}, {kLinesOfAMatrix, kVectorBytes, across}};
  }
  const Steps lines{kLinesOfAMatrix, width, operand.stride};
  if (!mn_major) return {{std::numeric_limits<std::int64_t>::max(), kVectorBytes, 0}, lines};
  return {{width / kVectorBytes, kVectorBytes, operand.leading}, lines};
}

std::vector<WgmmaChunk> chunks_of(const OperandLayout& operand, bool mn_major, int element_bits, int mn_from, int mns,
                                  int ks) {
  if (const int bytes = ks * element_bits / 8; operand.swizzle.active() && !mn_major && bytes > operand.swizzle.span) {
    throw UnsupportedError(fmt::format("a K-major operand with a {}: a row of {} B holds no {} B of k",
                                       operand.swizzle_name, operand.swizzle.span, bytes));
  }
  const OperandSteps steps = steps_of(operand, mn_major);
  const int elements = kVectorBits / element_bits;  // per vector
  const int first = mn_major ? mn_from : 0, end = first + (mn_major ? mns : ks);
  const int first_line = mn_major ? 0 : mn_from, end_line = first_line + (mn_major ? ks : mns);
  std::vector<WgmmaChunk> chunks;
  chunks.reserve(static_cast<std::size_t>((end_line - first_line) * ((end - first + elements - 1) / elements)));
  for (int line = first_line; line < end_line; ++line) {
    const std::int64_t of_line = operand.start + steps.lines.at(line);
    for (int i = first; i < end; i += elements) {
      const auto address = static_cast<std::uint64_t>(of_line + steps.vectors.at(i / elements));
      chunks.push_back({operand.swizzle.apply(address), mn_major ? i : line, mn_major ? line : i});
    }
  }
  return chunks;
}

}  // namespace

std::vector<WgmmaChunk> wgmma_chunks(std::uint64_t descriptor, bool mn_major, int element_bits, int mn_from, int mns,
                                     int ks) {
  const OperandLayout operand = layout_of(descriptor);
  require_supported(operand, mn_major, element_bits);
  return chunks_of(operand, mn_major, element_bits, mn_from, mns, ks);
}

std::vector<WgmmaChunk> tcgen05_chunks(std::uint64_t descriptor, bool mn_major, int element_bits, int mns, int ks) {
  const OperandLayout operand = tcgen05_layout_of(descriptor);
  if (mn_major && element_bits == 32) {
    throw UnsupportedError(
        "tcgen05 takes MN-major operands of 32 bits in the 128B swizzle with atoms of 32 B only, which is "
        "not modeled: transpose on the way into shared memory");
  }
  return chunks_of(operand, mn_major, element_bits, 0, mns, ks);
}

}  // namespace kvscope::ptx
