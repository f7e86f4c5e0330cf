// The undefined bytes of the .param variables of one activation: arguments that it passes, results that it receives, and, in
// a called function, its own parameters and results. Each undefined byte has the read that its value comes from.
//
//   st.param.b32 [p+4], %r1    two bytes of %r1 undefined: bytes 4 and 5 of p are
//
// A byte that nothing has stored counts as defined. The 4 bytes of a word have one origin: the last one that was marked. Only
// blocks with undefined bytes take memory.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>

#include "gpu/virtual/semantics/op.h"

namespace kvscope::ptx {

class UndefinedParams {
 public:
  [[nodiscard]] std::int64_t count() const { return count_; }  // of undefined bytes, in all lanes

  // Bit i: byte at + i is undefined; at most 64 bytes.
  [[nodiscard]] std::uint64_t mask(int lane, std::int64_t at, std::int64_t bytes) const {
    std::uint64_t out = 0;
    for (std::int64_t i = 0; count_ != 0 && i < std::min<std::int64_t>(bytes, kBlock); ++i)
      out |= std::uint64_t{is_undefined(lane, at + i) ? 1U : 0U} << i;
    return out;
  }
  [[nodiscard]] bool is_undefined(int lane, std::int64_t at) const {
    const auto block = count_ == 0 || at < 0 ? blocks_.end() : blocks_.find({lane, at / kBlock});
    return block != blocks_.end() && (block->second.undefined >> (at % kBlock) & 1) != 0;
  }
  [[nodiscard]] std::uint32_t origin(int lane, std::int64_t at) const {
    return blocks_.at({lane, at / kBlock}).origins[static_cast<std::size_t>(at % kBlock / kWord)];
  }

  // `size`: bytes of the activation's params, per lane.
  void mark(int lane, std::int64_t at, std::uint32_t origin, std::int64_t size) {
    if (at < 0 || at >= size) return;
    Block& block = blocks_[{lane, at / kBlock}];
    const std::uint64_t bit = std::uint64_t{1} << (at % kBlock);
    if ((block.undefined & bit) == 0) ++count_;
    block.undefined |= bit;
    block.origins[static_cast<std::size_t>(at % kBlock / kWord)] = origin;
  }
  void define(int lane, std::int64_t at, std::int64_t bytes) {
    if (count_ == 0) return;
    const std::int64_t from = std::max<std::int64_t>(at, 0), to = at + bytes;
    auto block = blocks_.lower_bound({lane, from / kBlock});
    while (block != blocks_.end() && block->first.first == lane && block->first.second * kBlock < to) {
      const std::int64_t first = std::max<std::int64_t>(from - block->first.second * kBlock, 0);
      const std::int64_t last = std::min(to - block->first.second * kBlock, kBlock);  // past the last byte
      const std::uint64_t bits = last <= first ? 0 : ~std::uint64_t{0} >> (kBlock - (last - first)) << first;
      count_ -= std::popcount(block->second.undefined & bits);
      block->second.undefined &= ~bits;
      block = block->second.undefined == 0 ? blocks_.erase(block) : std::next(block);
    }
  }

 private:
  static constexpr std::int64_t kBlock = 64, kWord = 4;  // [bytes]
  struct Block {
    std::uint64_t undefined = 0;  // bit i: byte i
    std::array<std::uint32_t, kBlock / kWord> origins{};
  };
  std::int64_t count_ = 0;                                  // undefined, in all lanes
  std::map<std::pair<int, std::int64_t>, Block> blocks_{};  // (lane, byte / 64): those with undefined bytes
};

}  // namespace kvscope::ptx
