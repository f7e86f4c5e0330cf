// Lab 06: the two functions of softmax.cpp that you write.
#pragma once

#include <cstdint>

// Attention of one row over `keys` keys, `tile` keys at a time: o = sum of p * v, p = softmax(scores). Returns the lse, the
// logarithm of the sum of exp(scores). A score of -inf is a masked key. Without a visible key o is 0 and the lse -inf.
//   scores [keys], values [keys, dim], o [dim]
float attend(const float* scores, const float* values, std::int64_t keys, std::int64_t dim, std::int64_t tile, float* o);

// The attention over the keys of two parts, from the output and lse of each. Returns the lse of both.
float merge(const float* o_a, float lse_a, const float* o_b, float lse_b, std::int64_t dim, float* o);
