// The undefined bytes of the .param variables of one activation: arguments that it passes, results that it receives, and, in
// a called function, its own parameters and results. Each undefined byte has the read that its value comes from.
//
//   st.param.b32 [p+4], %r1    two bytes of %r1 undefined: bytes 4 and 5 of p are
//
// A byte that nothing has stored counts as defined.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu/virtual/semantics/op.h"

namespace kvscope::ptx {

class UndefinedParams {
 public:
  [[nodiscard]] std::int64_t count() const { return count_; }  // of undefined bytes, in all lanes

  // Bit i: byte at + i is undefined; at most 64 bytes.
  [[nodiscard]] std::uint64_t mask(int lane, std::int64_t at, std::int64_t bytes) const {
    std::uint64_t out = 0;
    for (std::int64_t i = 0; count_ != 0 && i < std::min<std::int64_t>(bytes, 64); ++i)
      out |= std::uint64_t{is_undefined(lane, at + i) ? 1U : 0U} << i;
    return out;
  }
  [[nodiscard]] bool is_undefined(int lane, std::int64_t at) const {
    return count_ != 0 && at >= 0 && at < bytes_ && origins_[place(lane, at)] != 0;
  }
  [[nodiscard]] std::uint32_t origin(int lane, std::int64_t at) const { return origins_[place(lane, at)] - 1; }

  // `size`: bytes of the activation's params, per lane.
  void mark(int lane, std::int64_t at, std::uint32_t origin, std::int64_t size) {
    if (origins_.empty()) {
      bytes_ = size;
      origins_.assign(static_cast<std::size_t>(size) * kLanes, 0);
    }
    if (at < 0 || at >= bytes_) return;
    std::uint32_t& to = origins_[place(lane, at)];
    if (to == 0) ++count_;
    to = origin + 1;
  }
  void define(int lane, std::int64_t at, std::int64_t bytes) {
    if (count_ == 0) return;
    for (std::int64_t i = std::max<std::int64_t>(at, 0); i < std::min(at + bytes, bytes_); ++i) {
      std::uint32_t& to = origins_[place(lane, i)];
      if (to != 0) --count_;
      to = 0;
    }
  }

 private:
  [[nodiscard]] std::size_t place(int lane, std::int64_t at) const {
    return static_cast<std::size_t>(lane * bytes_ + at);
  }
  std::int64_t bytes_ = 0;              // per lane
  std::int64_t count_ = 0;              // undefined, in all lanes
  std::vector<std::uint32_t> origins_;  // [lane][byte]: 0: defined, otherwise the origin + 1
};

}  // namespace kvscope::ptx
