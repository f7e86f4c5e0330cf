// The operands of wgmma in shared memory as numbers, kept from product to product: the four warps of a warpgroup multiply by
// the same B, and a loop comes back to the same tiles. An operand is decoded again if its bytes have changed, so that a
// product always has the numbers that shared memory holds.
//
//   operands.at({descriptor of B, Type::f16, false, OperandOrder::columns, 0, 128, 16}, cta).numbers<float>(cta)
//   [16][128] numbers
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "gpu/virtual/machine/matrix/matrix_operand.h"
#include "gpu/virtual/text/types.h"

namespace kvscope::ptx {

struct Cta;

enum class OperandOrder : std::uint8_t {
  rows,     // [mn][k]
  columns,  // [k][mn]
  quads,    // as FragmentProduct::b has them; floats only
};

// Elements [mn_from, mn_from + mns) x [0, ks) of an operand.
struct WgmmaOperandKey {
  std::uint64_t descriptor = 0;
  Type type = Type::none;
  bool mn_major = false;
  OperandOrder order{};
  int mn_from = 0, mns = 0, ks = 0;
  friend bool operator==(const WgmmaOperandKey&, const WgmmaOperandKey&) = default;
};

class WgmmaOperand {
 public:
  // Throws as wgmma_chunks does.
  WgmmaOperand(const WgmmaOperandKey& key, const Cta& cta);

  // Offsets of the operand's chunks of 16 bytes in the shared window, ascending.
  [[nodiscard]] const std::vector<std::uint64_t>& offsets() const { return offsets_; }
  // The first chunk that is outside of the CTA's shared memory. Such an operand has no numbers.
  [[nodiscard]] std::optional<std::uint64_t> outside() const { return outside_; }
  // The mns * ks numbers in shared memory now; T is float or std::int32_t, as decode_elements has it for the key's type.
  // Valid until the next call. `moment`: shared memory has not changed since an earlier call with the same number. Precondition:
  // !outside().
  template <class T>
  [[nodiscard]] std::span<const T> numbers(const Cta& cta, std::uint64_t moment);
  // have_exact_products of these floats.
  [[nodiscard]] bool exact_products() const { return exact_products_; }
  [[nodiscard]] std::size_t memory() const;  // [bytes], about

 private:
  // Reads the chunks, which must be inside of shared memory. True: they have changed since the last call.
  bool read(const Cta& cta);
  template <class T>
  void decode(std::vector<T>& numbers);

  WgmmaOperandKey key_;
  std::vector<std::uint64_t> chunks_;  // offsets in the order of wgmma_chunks
  std::vector<std::uint64_t> offsets_;
  std::optional<std::uint64_t> outside_;
  std::uint64_t moment_ = 0;  // of the last call of numbers()
  bool exact_products_ = false;
  std::vector<std::byte> bytes_;                                       // of the chunks, as decoded last
  std::tuple<std::vector<float>, std::vector<std::int32_t>> numbers_;  // one of them is used
};

// Of one CTA, which owns them (AsyncState).
class WgmmaOperands {
 public:
  // Valid until trim().
  WgmmaOperand& at(const WgmmaOperandKey& key, const Cta& cta);
  // Removes all operands if they hold more than a megabyte.
  void trim();
  // Shared memory may have changed: a new number for numbers().
  void next_moment() { ++moment_; }
  [[nodiscard]] std::uint64_t moment() const { return moment_; }

 private:
  struct Hash {
    std::size_t operator()(const WgmmaOperandKey& key) const;
  };
  std::unordered_map<WgmmaOperandKey, WgmmaOperand, Hash> operands_;
  std::size_t memory_ = 0;
  std::uint64_t moment_ = 1;
};

}  // namespace kvscope::ptx
