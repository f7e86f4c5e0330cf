// NumPy's .npy: one array. Read: versions 1, 2 and 3, both byte orders (big-endian bytes are swapped), both
// index orders (Fortran order is rearranged to row-major). Written: version 1, little-endian, row-major, the
// bytes NumPy itself writes.
//
//   \x93NUMPY  major minor  header length                  {'descr': '<f4', 'fortran_order': False,           data
//                           (u16; u32 from version 2)       'shape': (2, 3), }
//
// NumPy has no bf16 and no 8-bit floats. Such an array is stored as its bit patterns in uint16 or uint8, with the type
// at the end of its name: `k_cache_bf16.npy` is the tensor `k_cache` of bf16. Endings: _bf16 _f16 _e4m3 _e5m2
// _e8m0. `<f2` needs none.
//
// The reader checks header, shape, length and trailing bytes before it allocates, so a small file that claims 2^60
// elements costs nothing. Every fault is an InputError naming the source.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "core/golden/bundle/tensor.h"

namespace kvscope::golden {

// The limit of NumPy's reader. // [bytes]
inline constexpr std::size_t kMaxNpyHeader = 10'000;

// The checks of parse_npy that need only the header: `start` holds the first kMaxNpyHeader + 12 bytes or more of a file
// of `file_size` bytes, or the whole file.
void check_npy_start(std::string_view start, std::uint64_t file_size, std::string_view source);

// Parses a whole .npy file. `source` is its name in messages.
[[nodiscard]] Tensor parse_npy(std::string_view bytes, std::string_view source);
// The file for a tensor: f32 as '<f4', bf16 and f16 as '<u2', e4m3 as '|u1'; the header ends on a multiple of 64 bytes.
[[nodiscard]] std::string npy_bytes(const Tensor& tensor);
// What comes before the tensor's bytes.
[[nodiscard]] std::string npy_header(const Tensor& tensor);

[[nodiscard]] Tensor read_npy(const std::filesystem::path& path);
void write_npy(const std::filesystem::path& path, const Tensor& tensor);

// A tensor's name and type, from a member's or file's name (without ".npy").
struct NpyName {
  std::string name;
  std::optional<DType> dtype;  // the type of the bit patterns; empty: the array's type
};

// Removes the ending only where it matches the array's type: "k_bf16" of u16 is {"k", bf16}, but "lse_f16" of f32 is a
// tensor named "lse_f16".
[[nodiscard]] NpyName split_npy_name(std::string_view stem, DType stored);
// The stem under which a tensor is stored: "k" of bf16 is "k_bf16". InputError when reading it back would give another
// tensor, such as a u16 tensor named "k_bf16".
[[nodiscard]] std::string join_npy_name(std::string_view name, DType dtype);

}  // namespace kvscope::golden
