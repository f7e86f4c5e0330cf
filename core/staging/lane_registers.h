// How many 32-bit registers one lane has, and so how much of a tile a lane can hold at once.
//
// An NVIDIA thread has at most 255 (CUDA C++ Programming Guide, technical specifications per compute capability); an
// AMD CDNA lane has 256 vector registers and 256 accumulator registers. The model uses the smaller number for both:
// register numbers are 0 to 254. A tile that needs more is loaded in k-steps, as in the kernels:
//
//   path   a k-step                                       registers of the next k-step
//   TMA    one piece along the contraction: K 32 B of     replace those of the previous k-step
//          columns, V 16 keys (32 of 8 bits)
//   LDS    reg_chunk_depth (K) or reg_chunk_keys (V)      replace those of the previous k-step
#pragma once

#include <cstdint>

namespace kvscope {

inline constexpr std::int64_t kLaneRegisters = 255;

}  // namespace kvscope
