// Sums over keys of rows of V, and products of one row with several directions: the inner loops of a diagnosis and of
// the tests on pages, once per instruction set. Each element is added in the order of the keys, and each product in the
// order of the dims, so the bits are those of plain loops. Held by tests/core/golden/verdict/key_sums_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/attention/reference.h"

namespace kvscope::golden {

inline constexpr std::size_t kTogether = 16;  // directions that a pass over the keys computes

struct KeySums {
  // For `keys` weights e and their rows of V, key by key:
  //   o[dim] += e * v[dim]      a1[dim] += e * |v[dim]|      a2[dim] += e * e * v[dim] * v[dim]
  void (*add)(const double* e, const double* const* values, std::int64_t keys, std::int64_t dims, double* o, double* a1,
              double* a2);
  // products[j] = sum of columns[dim][j] * (value[dim] - o[dim]), for kTogether directions j
  void (*project)(const double* value, const double* o, const double* columns, std::int64_t dims, double* products);
};

namespace baseline {
[[nodiscard]] const KeySums* key_sums();
}
#if defined(__x86_64__)
namespace avx2 {
[[nodiscard]] const KeySums* key_sums();
}
namespace avx512 {
[[nodiscard]] const KeySums* key_sums();
}
#endif
[[nodiscard]] const KeySums& key_sums(attention::InstructionSet set);  // one that is available
[[nodiscard]] const KeySums& key_sums();                               // the widest of this machine

}  // namespace kvscope::golden
