// One small kernel, given as the statements of its body, on a device with two buffers:
//
//   const Ran ran = run({.body = "ld.global.u32 %r1, [%rd1];  st.global.u32 [%rd0], %r1;", .in = words({7})});
//   ran.word(0) == 7        ran.messages: "OUT_OF_BOUNDS 4 bytes at out + 64 (size 64)"
//
// %rd0 is the address of `out` (zeros), %rd1 that of `in`; %r0 the thread; %s the shared array: 4096 bytes at 0x400.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "gpu/virtual/machine/device.h"

namespace kvscope::ptx::test {

struct OneKernel {
  std::string body;
  std::vector<std::byte> in = std::vector<std::byte>(64);
  std::size_t out_bytes = 64;
  std::int64_t threads = 32;
  std::int64_t grid = 1;
  std::array<std::int64_t, 3> cluster{};
  std::vector<std::byte> third = {};  // a block of bytes as the kernel's last parameter `map`, 128 bytes; empty: zeros
  LaunchOptions options = {};
  std::string target = "sm_90a";
  std::string limits = {};  // ".maxnreg 168"
  Monitor* monitor = nullptr;
};

struct Ran {
  LaunchResult result;
  std::vector<std::byte> out;
  std::vector<std::byte> in;
  std::vector<std::string> messages;  // "KIND message"
  template <class T>
  [[nodiscard]] T at(std::size_t i) const {
    T value;
    std::memcpy(&value, out.data() + i * sizeof(T), sizeof value);
    return value;
  }
  [[nodiscard]] std::uint32_t word(std::size_t i) const { return at<std::uint32_t>(i); }
};

Ran run(const OneKernel& kernel);

// The bytes of values.
template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}
inline std::vector<std::byte> words(const std::vector<std::uint32_t>& values) {
  return bytes_of(values);
}
// Byte i is i mod 251.
std::vector<std::byte> counted(std::size_t count);
// FNV-1a of 64 bits.
std::uint64_t fnv(const std::byte* bytes, std::size_t count);

}  // namespace kvscope::ptx::test
