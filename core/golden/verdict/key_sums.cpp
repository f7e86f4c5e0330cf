// Compiled once per instruction set (CMakeLists.txt).
#include "core/golden/verdict/detail/key_sums.h"
#include "core/base/lanes.h"

namespace kvscope::golden::KVSCOPE_ISA {
namespace {

// The sums of W dims stay in registers for all keys.
template <int W>
void add_dims(const double* e, const double* const* values, std::int64_t keys, std::int64_t at, double* o, double* a1,
              double* a2) {
  using L = Lanes<W>;
  typename L::Vec sum = L::load(o + at), size = L::load(a1 + at), squares = L::load(a2 + at);
  for (std::int64_t t = 0; t < keys; ++t) {
    const typename L::Vec v = L::load(values[t] + at);
    sum += e[t] * v;
    size += e[t] * L::magnitude(v);
    squares += e[t] * e[t] * v * v;
  }
  L::store(o + at, sum);
  L::store(a1 + at, size);
  L::store(a2 + at, squares);
}

void add(const double* e, const double* const* values, std::int64_t keys, std::int64_t dims, double* o, double* a1,
         double* a2) {
  std::int64_t at = 0;
  for (; at + kWidestLanes <= dims; at += kWidestLanes) add_dims<kWidestLanes>(e, values, keys, at, o, a1, a2);
  for (; at < dims; ++at) add_dims<1>(e, values, keys, at, o, a1, a2);
}

void project(const double* value, const double* o, const double* columns, std::int64_t dims, double* products) {
  using L = Lanes<kWidestLanes>;
  constexpr int kVectors = static_cast<int>(kTogether) / kWidestLanes;
  typename L::Vec sums[kVectors] = {};
  for (std::int64_t i = 0; i < dims; ++i) {
    const double distance = value[i] - o[i];
    for (int j = 0; j < kVectors; ++j) {
      sums[j] += L::load(columns + i * static_cast<std::int64_t>(kTogether) + j * kWidestLanes) * distance;
    }
  }
  for (int j = 0; j < kVectors; ++j) L::store(products + j * kWidestLanes, sums[j]);
}

}  // namespace

const KeySums* key_sums() {
  static const KeySums kSums = {&add, &project};
  return &kSums;
}

}  // namespace kvscope::golden::KVSCOPE_ISA
