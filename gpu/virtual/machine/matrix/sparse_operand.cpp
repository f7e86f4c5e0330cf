#include "gpu/virtual/machine/matrix/detail/sparse_operand.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <cstring>

#include "gpu/virtual/isa/sparse_metadata.h"
#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/warp/scheduler.h"

namespace kvscope::ptx {
namespace {

constexpr int kMetadataRows = 16;  // of a warp

}  // namespace

std::optional<InvalidMetadata> invalid_metadata(const Exec& exec, const Op& op, int metadata_at, int selector_at) {
  const Instr& instr = exec.program().instr(op);
  const bool in_bytes = instr.has(Mod::kind_f8f6f4) || instr.has(Mod::kind_mxf8f6f4);
  const int element_bits = in_bytes ? 8 : bits(instr.type(1)), k = instr.shape.k, size = metadata_chunk(element_bits);
  std::array<std::uint32_t, kLanes> words{};
  std::memcpy(words.data(), exec.registers + op.list[metadata_at], sizeof words);
  const auto selector = static_cast<int>(lane_value(exec, op.list[selector_at], 4, 0));
  const bool ordered = instr.has(Mod::sp_ordered_metadata);
  for (int row = 0; row < kMetadataRows; ++row) {
    for (int chunk = 0; chunk < k / size; ++chunk) {
      const MetadataPlace at = metadata_place(element_bits, k, selector, row, chunk);
      const std::uint32_t four = words[static_cast<std::size_t>(at.lane)] >> at.bit & 0xf;
      if (is_valid_metadata(element_bits, four, ordered)) continue;
      const std::string allowed = element_bits == 32 ? "0b0100 or 0b1110"
                                  : ordered          ? "two different indices, the lower one in the lower bits"
                                                     : "two different indices";
      return InvalidMetadata{
          at.lane,
          fmt::format("metadata 0b{:04b} of row {}, columns {} to {}, in bits {} to {} of lane {}: expected {}", four,
                      row, chunk * size, chunk * size + size - 1, at.bit, at.bit + 3, at.lane, allowed),
          "the result is undefined"};
    }
  }
  return std::nullopt;
}

bool has_valid_metadata(Exec& exec, const Op& op) {
  const int after = exec.program().instr(op).has(Mod::block_scale) ? 6 : 0;  // scales and their {byte, lane}
  const auto wrong = invalid_metadata(exec, op, op.count - after - 2, op.count - after - 1);
  if (wrong) static_cast<void>(fault(exec, op, wrong->lane, ReportKind::product_arg, wrong->message, wrong->hint));
  return !wrong;
}

}  // namespace kvscope::ptx
