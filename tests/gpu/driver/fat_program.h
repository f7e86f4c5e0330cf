// Device code as nvcc packs it, made by hand from PTX text, so that the tests need no toolkit.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope::driver_tests {

// scale: y[i] = 2 * x[i] for i < n. product: the first number of a product whose sum has other bits in each mode of adding, see
// tests/apps/matrix_sums.py. reverse: reverses 64 numbers in shared memory, without the barrier that it needs.
inline constexpr std::string_view kPtx = R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry scale(.param .u64 y, .param .u64 x, .param .u32 n) {
  .reg .pred %p; .reg .b32 %r<6>; .reg .b64 %rd<6>; .reg .f32 %f<3>;
  ld.param.u64 %rd1, [y]; ld.param.u64 %rd2, [x]; ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p, %r5, %r1;
  @%p ret;
  mul.wide.u32 %rd3, %r5, 4;
  add.u64 %rd4, %rd2, %rd3; add.u64 %rd5, %rd1, %rd3;
  ld.global.f32 %f1, [%rd4];
  add.f32 %f2, %f1, %f1;
  st.global.f32 [%rd5], %f2;
  ret;
}
.visible .entry product(.param .u64 out) {
  .reg .b32 %r<4>; .reg .b64 %rd<2>; .reg .f32 %f<6>;
  mov.b32 %r1, 0x0f000f00; mov.b32 %r2, 0x0c000c00; mov.f32 %f5, 0f3f800000;
  mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r1, %r1, %r1}, {%r2, %r2}, {%f5, %f5, %f5, %f5};
  ld.param.u64 %rd1, [out]; mov.u32 %r3, %tid.x; mad.wide.u32 %rd1, %r3, 4, %rd1;
  st.global.f32 [%rd1], %f1;
  ret;
}
.visible .entry reverse(.param .u64 d) {
  .reg .b32 %r<6>; .reg .b64 %rd<4>;
  .shared .align 4 .b8 s[256];
  ld.param.u64 %rd1, [d]; mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2;
  ld.global.u32 %r2, [%rd3];
  shl.b32 %r3, %r1, 2;
  mov.u32 %r4, s; add.u32 %r3, %r3, %r4;
  st.shared.u32 [%r3], %r2;
  xor.b32 %r5, %r1, 63; shl.b32 %r5, %r5, 2; add.u32 %r5, %r5, %r4;
  ld.shared.u32 %r2, [%r5];
  st.global.u32 [%rd3], %r2;
  ret;
}
)";

// use: out[i] = table[i] + counter, and counter = 7.
inline constexpr std::string_view kManagedPtx = R"(.version 8.0
.target sm_90a
.address_size 64
.visible .global .align 4 .b8 table[16];
.visible .global .attribute(.managed) .align 4 .u32 counter = 5;
.visible .entry use(.param .u64 out) {
  .reg .pred %p; .reg .b32 %r<6>; .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  mov.u64 %rd3, table; add.u64 %rd3, %rd3, %rd2; add.u64 %rd4, %rd1, %rd2;
  ld.global.u32 %r2, [%rd3]; ld.global.u32 %r3, [counter];
  add.u32 %r2, %r2, %r3;
  st.global.u32 [%rd4], %r2;
  setp.ne.u32 %p, %r1, 3;
  @%p ret;
  mov.u32 %r5, 7;
  st.global.u32 [counter], %r5;
  ret;
}
)";

struct FatPart {
  std::uint16_t kind = 1;  // 1: PTX, 2: machine code
  std::uint32_t architecture = 90;
  std::uint64_t flags = 0x11;
  std::string payload;
  std::uint32_t packed = 0;  // payload bytes if compressed
  std::uint64_t decompressed = 0;
};

template <class T>
void put(std::string& bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

inline std::string fat_container(const std::vector<FatPart>& parts) {
  std::string entries;
  for (const FatPart& part : parts) {
    std::string header(64, '\0'), payload = part.payload;
    payload.resize((payload.size() + 7) / 8 * 8, '\0');
    put(header, 0, part.kind);
    put(header, 2, std::uint16_t{257});
    put(header, 4, std::uint32_t{64});
    put(header, 8, std::uint64_t{payload.size()});
    put(header, 16, part.packed);
    put(header, 28, part.architecture);
    put(header, 40, part.flags);
    put(header, 56, part.decompressed);
    entries += header + payload;
  }
  std::string out(16, '\0');
  put(out, 0, std::uint32_t{0xba55ed50});
  put(out, 4, std::uint16_t{1});
  put(out, 6, std::uint16_t{16});
  put(out, 8, std::uint64_t{entries.size()});
  return out + entries;
}

// What the registration of nvcc's programs passes.
struct FatWrapper {
  std::uint32_t magic = 0x466243b1, version = 1;
  const void* container = nullptr;
  const void* parts = nullptr;
};

}  // namespace kvscope::driver_tests
