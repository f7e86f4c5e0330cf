#include "tests/gpu/virtual/machine/wgmma_product.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "gpu/virtual/machine/matrix/wgmma_registers.h"
#include "gpu/virtual/text/parser.h"

namespace kvscope::ptx::test {
namespace {

constexpr int kStart = 0x400, kBytesA = 8192, kBytesB = 32768;
constexpr int kThreads = 128;

// A number's bits; every number here is exact in its type and, for floats, normal.
std::uint64_t encode(Type type, double x) {
  const auto f32 = std::bit_cast<std::uint32_t>(static_cast<float>(x));
  const auto narrow = [x](int fraction, int bias, int sign) -> std::uint64_t {
    if (x == 0) return 0;
    int exponent = 0;
    const double part = std::frexp(std::fabs(x), &exponent);  // [0.5, 1)
    const auto bits_of_it = static_cast<std::uint64_t>((2 * part - 1) * (1 << fraction));
    return (x < 0 ? std::uint64_t{1} << sign : 0) | static_cast<std::uint64_t>(exponent - 1 + bias) << fraction |
           bits_of_it;
  };
  switch (type) {
    case Type::f32:
    case Type::tf32:
      return f32;
    case Type::bf16:
      return f32 >> 16;
    case Type::f16:
      return narrow(10, 15, 15);
    case Type::e4m3:
      return narrow(3, 7, 7);
    case Type::e5m2:
      return narrow(2, 15, 7);
    default:
      return static_cast<std::uint64_t>(static_cast<std::int64_t>(x));
  }
}

double half_to_double(std::uint64_t h) {
  const int exponent = static_cast<int>(h >> 10 & 31);
  const double magnitude = exponent == 0 ? std::ldexp(static_cast<double>(h & 0x3ff), -24)
                                         : std::ldexp(static_cast<double>(h & 0x3ff) + 1024, exponent - 25);
  return (h & 0x8000) != 0 ? -magnitude : magnitude;
}

// Writes `width` bits at bit `at`.
void put_bits(std::vector<std::byte>& bytes, std::int64_t at, int width, std::uint64_t value) {
  for (int i = 0; i < width; ++i) {
    auto& byte = bytes[static_cast<std::size_t>((at + i) / 8)];
    const auto bit = static_cast<std::byte>(1 << ((at + i) % 8));
    byte = (value >> i & 1) != 0 ? byte | bit : byte & ~bit;
  }
}

// The layout of an operand of `mns` rows: the manual's table of the two majors, with and without swizzle.
struct Layout {
  int row, leading, stride;
  bool along_mn;
  std::uint64_t descriptor(int start) const {
    const int mode = row == 128 ? 1 : row == 64 ? 2 : row == 32 ? 3 : 0;
    return static_cast<std::uint64_t>(start >> 4) | static_cast<std::uint64_t>(leading >> 4) << 16 |
           static_cast<std::uint64_t>(stride >> 4) << 32 | static_cast<std::uint64_t>(mode) << 62;
  }
  // [bits] of element (mn, k) from the operand's start, which is a multiple of 1024.
  std::int64_t bit_of(int mn, int k, int width) const {
    const int chunks = row / 16;
    int byte = 0, bit = 0;
    if (!along_mn) {
      const int in_row = k * width / 8;
      bit = k * width % 8;
      byte = row == 16 ? mn / 8 * stride + mn % 8 * 16 + in_row / 16 * leading + in_row % 16
                       : mn / 8 * stride + mn % 8 * row + in_row;
    } else if (row == 16) {
      byte = mn % 8 * 2 + mn / 8 * stride + k % 8 * 16 + k / 8 * leading;
    } else {
      byte = mn % 8 * 2 + mn / 8 % chunks * 16 + mn / (8 * chunks) * leading + k % 8 * row + k / 8 * stride;
    }
    if (row > 16) byte ^= byte / 128 % chunks * 16;
    return std::int64_t{8} * byte + bit;
  }
};
// The densest layout.
Layout layout_of(int row, bool along_mn, int mns, int bytes_of_k = 32) {
  if (row == 16) return along_mn ? Layout{16, 16 * mns, 128, true} : Layout{16, 128, 8 * bytes_of_k, false};
  return along_mn ? Layout{row, bytes_of_k / 2 * row, 8 * row, true} : Layout{row, 16, 8 * row, false};
}

int registers_of_d(const WgmmaProduct& p) {
  return p.d == Type::f16 ? p.n / 4 : p.n / 2;
}
// Calls visit(register, thread, half of it, row, column) for each element of D.
template <class Visit>
void for_each_d(const WgmmaProduct& p, const Visit& visit) {
  for (int thread = 0; thread < kThreads; ++thread) {
    const int g = thread % 32 / 4, t = thread % 4;
    for (int i = 0; i < p.n / 2; ++i) {
      const int row = thread / 32 * 16 + g + 8 * (i / 2 % 2), column = 8 * (i / 4) + 2 * t + i % 2;
      if (p.d == Type::f16) {
        visit(i / 2, thread, i % 2, row, column);
      } else {
        visit(i, thread, 0, row, column);
      }
    }
  }
}

// The two indices of a chunk of a sparse row, ascending.
struct SparseChunk {
  int first = 0, second = 0;
};
SparseChunk sparse_chunk(int row, int chunk) {
  const int first = (row + chunk * chunk) % 3;
  return {first, first + 1 + (row + chunk) % (3 - first)};
}

// The metadata of thread 32 w + 4 g + t, for rows of warp w. 8 bits: row g + 8 (t % 2), columns 32 (t / 2) and on. Otherwise
// the threads with t / 2 == selector: columns of half t % 2, row g in the low half, row g + 8 in the high half.
std::vector<std::byte> metadata_of(const WgmmaProduct& p) {
  std::vector<std::byte> words(4 * kThreads);
  for (int thread = 0; thread < kThreads; ++thread) {
    const int first_row = thread / 32 * 16 + thread % 32 / 4, t = thread % 4;
    for (int i = 0; i < 8; ++i) {
      const bool bytes = bits(p.a) == 8;
      const SparseChunk chunk = bytes ? sparse_chunk(first_row + 8 * (t % 2), 8 * (t / 2) + i)
                                      : sparse_chunk(first_row + 8 * (i / 4), 4 * (t % 2) + i % 4);
      const int four = p.a == Type::tf32 ? (chunk.first / 2 == 0 ? 0b0100 : 0b1110) : chunk.first | chunk.second << 2;
      const bool chosen = bytes || t / 2 == p.selector;
      put_bits(words, 32 * thread + 4 * i, 4, static_cast<std::uint64_t>(chosen ? four : thread + i));
    }
  }
  return words;
}

std::string instruction(const WgmmaProduct& p, std::string_view a, std::string_view b) {
  const auto list = [](char letter, int count) {
    std::string text = "{";
    for (int i = 0; i < count; ++i) text += fmt::format("{}%{}{}", i == 0 ? "" : ", ", letter, i);
    return text + "}";
  };
  const bool has_signs = p.d != Type::s32;
  const bool has_major = p.a == Type::f16 || p.a == Type::bf16;
  std::string text =
      fmt::format("wgmma.mma_async{}.sync.aligned.m64n{}k{}.{}.{}.{}{}{} {}, {}, {}, {}{}", p.sparse ? ".sp" : "", p.n,
                  wgmma_k(p.a) * (p.sparse ? 2 : 1), name(p.d), name(p.a), name(p.b),
                  p.a == Type::b1 ? ".and.popc" : "", p.saturate ? ".satfinite" : "", list('d', registers_of_d(p)),
                  p.a_in_registers ? list('a', 4) : a, b, p.sparse ? fmt::format("%r9, {}, ", p.selector) : "",
                  p.scale_by_register ? "%p1"
                  : p.adds            ? "1"
                                      : "0");
  if (has_signs) text += fmt::format(", {}, {}", p.sign_a, p.sign_b);
  if (has_major && !p.a_in_registers) text += p.a_along_m ? ", 1" : ", 0";
  if (has_major) text += p.b_along_n ? ", 1" : ", 0";
  return text + ";";
}

}  // namespace

int wgmma_k(Type a) {
  return 256 / bits(a);
}

int sparse_column(Type a, int i, int j) {
  const SparseChunk chunk = sparse_chunk(i, a == Type::tf32 ? j : j / 2);
  return a == Type::tf32 ? 2 * j + chunk.first / 2 : 4 * (j / 2) + (j % 2 == 0 ? chunk.first : chunk.second);
}

double integer_a(Type type, int i, int k) {
  if (type == Type::b1) return (i * 7 + k * k) % 3 == 0 ? 1 : 0;
  return (i + 2 * k) % 5 - (type == Type::u8 ? 0 : 2);
}
double integer_b(Type type, int k, int j) {
  if (type == Type::b1) return (j * 5 + k * 11) % 4 < 2 ? 1 : 0;
  return (3 * k + j) % 7 - (type == Type::u8 ? 0 : 3);
}

std::string wgmma_text(const WgmmaProduct& p, const std::string& kernel) {
  std::string text =
      fmt::format(R"(.visible .entry {}(.param .u64 out, .param .u64 image, .param .u64 c, .param .u64 a, .param .u64 e)
{{
  .reg .b32 %r<16>; .reg .b64 %rd<16>; .reg .pred %p<3>; .reg .b32 %a<4>; .reg .{} %d<{}>;
  .shared .align 1024 .b8 s[{}];
  ld.param.u64 %rd0, [out]; ld.param.u64 %rd1, [image]; ld.param.u64 %rd2, [c]; ld.param.u64 %rd3, [a];
  mov.u32 %r0, %tid.x;
  mul.wide.u32 %rd4, %r0, 16; add.s64 %rd5, %rd1, %rd4;
  mov.u32 %r1, s; mad.lo.u32 %r2, %r0, 16, %r1; mov.u32 %r3, 0;
L: ld.global.v4.u32 {{%r4, %r5, %r6, %r7}}, [%rd5];
  st.shared.v4.u32 [%r2], {{%r4, %r5, %r6, %r7}};
  add.s64 %rd5, %rd5, 2048; add.u32 %r2, %r2, 2048; add.u32 %r3, %r3, 2048;
  setp.lt.u32 %p0, %r3, {};
  @%p0 bra L;
  fence.proxy.async;
  bar.sync 0;
  mul.wide.u32 %rd4, %r0, 4; add.s64 %rd0, %rd0, %rd4; add.s64 %rd2, %rd2, %rd4; add.s64 %rd3, %rd3, %rd4;
)",
                  kernel, p.d == Type::f32 ? "f32" : "b32", registers_of_d(p), kBytesA + kBytesB, kBytesA + kBytesB);
  for (int i = 0; i < registers_of_d(p); ++i) text += fmt::format("  ld.global.b32 %d{}, [%rd2+{}];\n", i, 512 * i);
  for (int i = 0; i < 4; ++i) text += fmt::format("  ld.global.b32 %a{}, [%rd3+{}];\n", i, 512 * i);
  text += "  ld.param.u64 %rd6, [e]; add.s64 %rd6, %rd6, %rd4; ld.global.b32 %r9, [%rd6];\n";
  const Layout a = layout_of(p.row, p.a_along_m, kWgmmaRows),
               b = layout_of(p.row, p.b_along_n, p.n, p.sparse ? 64 : 32);
  text += fmt::format("  mov.b64 %rd10, 0x{:x}; mov.b64 %rd11, 0x{:x}; mov.u32 %r8, {}; setp.ne.u32 %p1, %r8, 0;\n",
                      a.descriptor(kStart), b.descriptor(kStart + kBytesA), p.adds ? 1 : 0);
  const std::string text_a = fmt::format("0x{:x}", a.descriptor(kStart)),
                    text_b = fmt::format("0x{:x}", b.descriptor(kStart + kBytesA));
  text += "  wgmma.fence.sync.aligned;\n  ";
  text += p.descriptors_in_text ? instruction(p, text_a, text_b) : instruction(p, "%rd10", "%rd11");
  text += "\n";
  text += "  wgmma.commit_group.sync.aligned;\n  wgmma.wait_group.sync.aligned 0;\n";
  for (int i = 0; i < registers_of_d(p); ++i) text += fmt::format("  st.global.b32 [%rd0+{}], %d{};\n", 512 * i, i);
  return text + "  ret;\n}\n";
}

WgmmaOutcome run_wgmma(const WgmmaProduct& p) {
  const int k = wgmma_k(p.a), width_a = bits(p.a), width_b = bits(p.b);
  const auto a_at = [&](int i, int x) { return p.a_at ? p.a_at(i, x) : integer_a(p.a, i, x); };
  const auto b_at = [&](int x, int j) { return p.b_at ? p.b_at(x, j) : integer_b(p.b, x, j); };
  const auto c_at = [&](int i, int j) { return p.c_at ? p.c_at(i, j) : static_cast<double>(i - j); };

  std::vector<std::byte> image(kBytesA + kBytesB, std::byte{0xa5});  // bytes that must not be read
  const Layout a_layout = layout_of(p.row, p.a_along_m, kWgmmaRows),
               b_layout = layout_of(p.row, p.b_along_n, p.n, p.sparse ? 64 : 32);
  for (int x = 0; x < (p.sparse ? 2 * k : k); ++x) {
    for (int i = 0; x < k && i < kWgmmaRows && !p.a_in_registers; ++i) {
      put_bits(image, a_layout.bit_of(i, x, width_a), width_a, encode(p.a, a_at(i, x)));
    }
    for (int j = 0; j < p.n; ++j) {
      put_bits(image, 8 * kBytesA + b_layout.bit_of(j, x, width_b), width_b, encode(p.b, b_at(x, j)));
    }
  }
  // Register r of all threads, then register r + 1.
  std::vector<std::byte> a_registers(4 * kThreads * 4), c(static_cast<std::size_t>(registers_of_d(p)) * kThreads * 4);
  const int each = 32 / width_a;
  for (int r = 0; r < 4; ++r) {
    for (int thread = 0; thread < kThreads; ++thread) {
      for (int e = 0; e < each; ++e) {
        const int row = thread / 32 * 16 + thread % 32 / 4 + 8 * (r % 2);
        const int x = thread % 4 * each + e + 4 * each * (r / 2);
        put_bits(a_registers, 32 * (r * kThreads + thread) + e * width_a, width_a, encode(p.a, a_at(row, x)));
      }
    }
  }
  const int width_d = bits(p.d);
  for_each_d(p, [&](int r, int thread, int half, int row, int column) {
    put_bits(c, std::int64_t{32} * (r * kThreads + thread) + half * 16, width_d, encode(p.d, c_at(row, column)));
  });

  Device device(ProgramOptions{.sum = p.sum, .simd = p.simd});
  const std::string head = ".version 8.4\n.target sm_90a\n.address_size 64\n";
  const LoadedModule& module = device.load(parse_module(head + wgmma_text(p), "wgmma.ptx"));
  const auto upload = [&](const char* what, const std::vector<std::byte>& bytes) {
    const std::uint64_t at = device.memory().allocate(static_cast<std::int64_t>(bytes.size()), what);
    device.memory().write(at, bytes);
    return at;
  };
  const std::uint64_t out = upload("out", std::vector<std::byte>(c.size()));
  LaunchConfig config;
  config.kernel = "k";
  config.block = {kThreads, 1, 1};
  config.options.policy = p.policy;
  config.params =
      pack_params(module, "k",
                  {out, upload("image", image), upload("c", c), upload("a", a_registers), upload("e", metadata_of(p))});
  WgmmaRegisters registers;
  const LaunchResult result = device.launch(module, config, &registers);

  WgmmaOutcome outcome;
  for (const Report& r : result.reports) outcome.messages.push_back(std::string(name(r.kind)) + " " + r.message);
  const std::vector<std::byte> bytes = device.memory().read(out, static_cast<std::int64_t>(c.size()));
  outcome.d.resize(static_cast<std::size_t>(kWgmmaRows * p.n));
  for_each_d(p, [&](int r, int thread, int half, int row, int column) {
    std::uint32_t word = 0;
    std::memcpy(&word, bytes.data() + 4 * (r * kThreads + thread), sizeof word);
    outcome.d[static_cast<std::size_t>(row * p.n + column)] =
        p.d == Type::f16   ? half_to_double(word >> (16 * half) & 0xffff)
        : p.d == Type::s32 ? static_cast<double>(static_cast<std::int32_t>(word))
                           : static_cast<double>(std::bit_cast<float>(word));
  });
  return outcome;
}

}  // namespace kvscope::ptx::test
