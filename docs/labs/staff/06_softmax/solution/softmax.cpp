#include "softmax.h"

#include <cmath>

float attend(Tiles& tiles, std::int64_t dim, float* o) {
  float m = -INFINITY, l = 0;
  for (std::int64_t d = 0; d < dim; ++d) o[d] = 0;
  Tile tile;
  while (tiles.next(tile)) {
    float next = m;
    for (std::int64_t key = 0; key < tile.keys; ++key) next = std::fmax(next, tile.scores[key]);
    if (next == -INFINITY) continue;
    const float rescale = std::exp(m - next);
    l *= rescale;
    for (std::int64_t d = 0; d < dim; ++d) o[d] *= rescale;
    for (std::int64_t key = 0; key < tile.keys; ++key) {
      const float p = std::exp(tile.scores[key] - next);
      l += p;
      for (std::int64_t d = 0; d < dim; ++d) o[d] += p * tile.values[key * dim + d];
    }
    m = next;
  }
  if (l == 0) return -INFINITY;
  for (std::int64_t d = 0; d < dim; ++d) o[d] /= l;
  return m + std::log(l);
}

float merge(const float* o_a, float lse_a, const float* o_b, float lse_b, std::int64_t dim, float* o) {
  const float m = std::fmax(lse_a, lse_b);
  if (m == -INFINITY) {
    for (std::int64_t d = 0; d < dim; ++d) o[d] = 0;
    return m;
  }
  const float w_a = std::exp(lse_a - m), w_b = std::exp(lse_b - m);
  for (std::int64_t d = 0; d < dim; ++d) o[d] = (w_a * o_a[d] + w_b * o_b[d]) / (w_a + w_b);
  return m + std::log(w_a + w_b);
}
