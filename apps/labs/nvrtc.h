// NVRTC, NVIDIA's CUDA compiler as a library, from its Python wheel: a compiler for students without the CUDA toolkit.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace kvscope::labs {

inline constexpr std::string_view kNvrtcWheel = "nvidia-cuda-nvrtc-cu12";  // or nvidia-cuda-nvrtc, for CUDA 13

// A Python program that prints the path of libnvrtc.so.*: apps/python/kvscope/_nvrtc.py, of the module `kvscope`.
[[nodiscard]] std::string_view nvrtc_finder();

// The library in a site-packages folder of the python3 in PATH, as nvrtc_finder() finds it; asked once per process.
[[nodiscard]] std::optional<std::filesystem::path> find_nvrtc();

// Loads the library into this process and compiles `source` to the file `out`; headers are those beside `source`.
// Compiler messages go to standard error. Returns an exit code: 0 or 1. To be called inside the sandbox.
[[nodiscard]] int compile_with_nvrtc(const std::filesystem::path& library, const std::filesystem::path& source,
                                     const std::filesystem::path& out, std::string_view architecture);

}  // namespace kvscope::labs
