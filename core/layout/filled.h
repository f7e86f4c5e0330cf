// An owning tensor of given extents with every element equal. Takes 64-bit extents, as all sizes in kvscope are.
// Example: filled(0.0, 2, 3) is a 2 x 3 xt::xtensor<double, 2> of zeros.
#pragma once

#include <array>
#include <cstddef>
#include <xtensor/xtensor.hpp>

namespace kvscope {

// Precondition: extents are >= 0 (the caller checks sizes).
template <class T, class... Extent>
[[nodiscard]] xt::xtensor<T, sizeof...(Extent)> filled(T element, Extent... extents) {
  return xt::xtensor<T, sizeof...(Extent)>(std::array{static_cast<std::size_t>(extents)...}, element);
}

}  // namespace kvscope
