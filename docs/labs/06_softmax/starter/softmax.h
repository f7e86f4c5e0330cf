// Lab 06: the two functions of softmax.cpp that you write.
#pragma once

#include <cstdint>

// Some keys of a row, in order. All tiles of a row have the same number of keys; the last one may have fewer.
struct Tile {
  const float* scores;  // [keys]; -inf: a masked key
  const float* values;  // [keys, dim]
  std::int64_t keys;
};

// The tiles of a row, each handed out once.
class Tiles {
 public:
  // Fills in the next tile, or returns false after the last one. The memory of the tile before it is then used again.
  virtual bool next(Tile& tile) = 0;

 protected:
  ~Tiles() = default;
};

// Attention of one row: o = sum of p * v, p = softmax(scores of all tiles). Returns the lse, the logarithm of the sum of
// exp(scores). Without a visible key o is 0 and the lse -inf.
//   o [dim]
float attend(Tiles& tiles, std::int64_t dim, float* o);

// The attention over the keys of two parts, from the output and lse of each. Returns the lse of both.
float merge(const float* o_a, float lse_a, const float* o_b, float lse_b, std::int64_t dim, float* o);
