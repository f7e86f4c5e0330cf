// Distinct index types: a head is not a token, a block is not a page, and a swapped call does not compile.
//
//   load(SeqIdx{0}, HeadIdx{1}, TokIdx{5}, DimIdx{3})      compiles
//   load(SeqIdx{0}, TokIdx{5}, HeadIdx{1}, DimIdx{3})      does not     // held by tests/core/base/index_test.cpp
//
// Indices are signed and 64 bits wide, so that a negative one is detected instead of wrapping around. `RowIdx` is the
// exception: it is what a kernel computes, unsigned 32 bits, and wraps as it does in the kernel.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace kvscope {

// One number with a meaning. Only meaningful operations compile: index +- count, index - index, comparison.
template <class Tag, class Rep = std::int64_t>
struct Index {
  using rep = Rep;
  Rep value = 0;

  constexpr Index() = default;
  constexpr explicit Index(Rep v) : value(v) {}

  friend constexpr auto operator<=>(Index, Index) = default;
  friend constexpr Index operator+(Index a, Rep count) { return Index(static_cast<Rep>(a.value + count)); }
  friend constexpr Index operator-(Index a, Rep count) { return Index(static_cast<Rep>(a.value - count)); }
  friend constexpr Rep operator-(Index a, Index b) { return static_cast<Rep>(a.value - b.value); }
  constexpr Index& operator++() { return ++value, *this; }
  constexpr Index& operator+=(Rep count) { return value = static_cast<Rep>(value + count), *this; }
};

using SeqIdx = Index<struct SeqTag>;      // a sequence: the n-th request of a scenario, or the n-th row of a batch
using TokIdx = Index<struct TokTag>;      // a token's position in its sequence
using PageIdx = Index<struct PageTag>;    // a page of a sequence: token / page_size
using BlockIdx = Index<struct BlockTag>;  // a block of the pool, the slot that holds a page
using LayerIdx = Index<struct LayerTag>;
using HeadIdx = Index<struct HeadTag>;
using DimIdx = Index<struct DimTag>;                 // an element of a head
using StepIdx = Index<struct StepTag>;               // an engine step
using RowIdx = Index<struct RowTag, std::uint32_t>;  // one token of one layer of K or V, in the matrix of all such rows

// Which half of the pool's second axis. The values are the axis indices.
enum class KOrV : std::uint8_t { k = 0, v = 1 };

}  // namespace kvscope

template <class Tag, class Rep>
struct std::hash<kvscope::Index<Tag, Rep>> {
  std::size_t operator()(kvscope::Index<Tag, Rep> i) const noexcept { return std::hash<Rep>{}(i.value); }
};
