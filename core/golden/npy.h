// NumPy's .npy: one array. Read: versions 1, 2 and 3, both byte orders (big-endian bytes are swapped), both
// index orders (Fortran order is rearranged to row-major). Written: version 1, little-endian, row-major, the
// bytes NumPy itself writes.
//
//   \x93NUMPY  major minor  header length                  {'descr': '<f4', 'fortran_order': False,           data
//                           (u16; u32 from version 2)       'shape': (2, 3), }
//
// NumPy has no bf16 and no 8-bit floats. Such an array travels as its bit patterns in uint16 or uint8, with the
// type in the end of its name: `k_cache_bf16.npy` is the tensor `k_cache` of bf16. Endings: _bf16 _f16 _e4m3 _e5m2
// _e8m0. `<f2` needs none.
//
// A reader checks header, shape, length and what follows before it allocates: 4 bytes that claim 2^60 elements cost
// nothing. Everything wrong is an InputError naming the source.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "core/golden/tensor.h"

namespace kvscope::golden {

// The whole of a .npy file. `source` is what messages call it.
[[nodiscard]] Tensor parse_npy(std::string_view bytes, std::string_view source);
// The file for a tensor: f32 as '<f4', bf16 and f16 as '<u2', e4m3 as '|u1'; the header ends on a multiple of 64 bytes.
[[nodiscard]] std::string npy_bytes(const Tensor& tensor);

[[nodiscard]] Tensor read_npy(const std::filesystem::path& path);
void write_npy(const std::filesystem::path& path, const Tensor& tensor);

// A tensor's name and type, as they stand in a member's or file's name (without ".npy").
struct NpyName {
  std::string name;
  std::optional<DType> dtype;  // what the bit patterns mean; nothing: what the array says
};

// Takes the ending off where it explains the array's own type, and only there: "k_bf16" of u16 is {"k", bf16}, but
// "lse_f16" of f32 is a tensor called "lse_f16".
[[nodiscard]] NpyName split_npy_name(std::string_view stem, DType stored);
// The stem under which a tensor is stored: "k" of bf16 is "k_bf16". InputError when it would come back as something
// else: a u16 tensor called "k_bf16".
[[nodiscard]] std::string join_npy_name(std::string_view name, DType dtype);

}  // namespace kvscope::golden
