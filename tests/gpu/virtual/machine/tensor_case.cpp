#include "tests/gpu/virtual/machine/tensor_case.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace kvscope::ptx::test {
namespace tensor_case {
namespace {

using Case = ProductCase;

int stored(const Element& e) {
  return e.stored != 0 ? e.stored : e.bits;
}
std::uint32_t bits_of(const Element& e, int value) {
  if (e.sign == 0) return static_cast<std::uint32_t>(value) & 0xff;
  const int size = value < 0 ? -value : value;
  return (size == 0 ? 0 : size == 1 ? e.one : e.two) | (value < 0 ? e.sign : 0);
}

// The numbers of the test: -2 .. 2, or 0 .. 2, without a period that divides a tile's size.
int number_at(const Element& e, int i, int j, int salt) {
  const int x = (7 * i + 3 * j + i * j % 11 + salt) % 5;
  return e.sign == 0 && e.code == 0 ? x % 3 : x - 2;
}

struct Tile {
  const Element* element = nullptr;
  int mns = 0, ks = 0;
  int row = 16;  // bytes of the swizzle: 16 none, 32, 64, 128
  bool along_mn = false;
};
// Bytes from the tile's begin to element (mn, k), before the swizzle, and the offsets of the descriptor.
struct Offsets {
  int leading = 0, stride = 0;
};
Offsets offsets_of(const Tile& t) {
  const int per_chunk = 128 / stored(*t.element);
  if (t.along_mn) {
    const int chunks = t.mns / per_chunk;
    if (t.row == 16) return {chunks * 128, 128};  // leading: 8 more of k; stride: a chunk more of mn
    return {t.ks / 8 * 8 * t.row, 8 * t.row};     // leading: past the swizzled row; stride: 8 more of k
  }
  if (t.row == 16) return {t.mns * 16, 128};
  return {16, 8 * t.row};
}
int byte_bits_of(const Tile& t, int mn, int k) {  // [bits]
  const int per = 128 / stored(*t.element), wide = stored(*t.element), c = t.row / 16;
  const Offsets o = offsets_of(t);
  if (t.along_mn) {
    if (t.row == 16) return 8 * ((mn / per) * o.stride + (k / 8) * o.leading + (k % 8) * 16) + mn % per * wide;
    return 8 * (mn / (per * c) * o.leading + k / 8 * o.stride + k % 8 * t.row) + mn % (per * c) * wide;
  }
  if (t.row == 16) return 8 * (mn / 8 * o.stride + mn % 8 * 16 + k / per * o.leading) + k % per * wide;
  return 8 * (mn / 8 * o.stride + mn % 8 * t.row) + k * wide;
}
void place(const Tile& t, int salt, int first, std::vector<std::byte>& shared, int at) {
  for (int mn = 0; mn < t.mns; ++mn) {
    for (int k = 0; k < t.ks; ++k) {
      int bit = byte_bits_of(t, mn, k);
      if (t.element->stored != 0) {  // 16 elements are contiguous in their 16 bytes
        const int chunk = bit / 128;
        bit = 128 * chunk + (bit % 128) / 8 * t.element->bits;
      }
      const std::uint32_t value = bits_of(*t.element, number_at(*t.element, first + mn, k, salt));
      for (int b = 0; b < t.element->bits; ++b) {
        int byte = at + (bit + b) / 8;
        const int mask = t.row == 128 ? 7 : t.row == 64 ? 3 : t.row == 32 ? 1 : 0;
        byte ^= (byte >> 7 & mask) << 4;
        if ((value >> b & 1) != 0)
          shared[static_cast<std::size_t>(byte)] |= static_cast<std::byte>(1 << ((bit + b) % 8));
      }
    }
  }
}
std::uint64_t descriptor_of(const Tile& t, int at) {
  const Offsets o = offsets_of(t);
  const std::uint64_t mode = t.row == 128 ? 2 : t.row == 64 ? 4 : t.row == 32 ? 6 : 0;
  return static_cast<std::uint64_t>(at >> 4) | static_cast<std::uint64_t>(o.leading >> 4) << 16 |
         static_cast<std::uint64_t>(o.stride >> 4) << 32 | std::uint64_t{1} << 46 | mode << 61;
}

constexpr int kTiles = 0x2000;  // tiles begin at 0x2000 of the window: a multiple of 1024
constexpr int kTileBytes = 16384;
constexpr int kTensorA = 128;   // column of A in tensor memory
constexpr int kMetadata = 192;  // of its metadata

int stored_k(const Case& c) {
  return 256 / stored(*c.a);
}
int k_of(const Case& c) {
  return stored_k(c) * (c.sparse ? 2 : 1);
}

// Sparse A: every chunk of 4 columns (2 of tf32, 8 of packed e2m1) stores two elements (one; two pairs).
int chunk_of(const Case& c) {
  return c.a->bits == 32 ? 2 : c.a == &kPacked ? 8 : 4;
}
std::uint32_t metadata_of(const Case& c, int row, int chunk) {
  if (c.a->bits == 32) return (row + chunk) % 3 == 0 ? 0b0100 : 0b1110;
  constexpr std::uint32_t kAll[] = {0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b0110, 0b1110};
  return kAll[(3 * row + 5 * chunk + row * chunk % 5) % 7];
}
// The column of stored element j.
int column_of(const Case& c, int row, int j) {
  if (!c.sparse) return j;
  const int size = chunk_of(c), chunk = j / (size / 2), inside = j % (size / 2);
  const std::uint32_t four = metadata_of(c, row, chunk);
  if (size == 2) return chunk * 2 + (four == 0b1110 ? 1 : 0);
  if (size == 4) return chunk * 4 + static_cast<int>(four >> (2 * inside) & 3);
  return chunk * 8 + 2 * static_cast<int>(four >> (2 * (inside / 2)) & 3) + inside % 2;
}
// [lane][4 columns] of one CTA. As in CUTLASS's layouts: a row (l, j, i) = l + 8 j + 16 i and a column (k0, k1) of A, where a
// column counts 1 bit (f16), 2 bits (tf32) or 1/2 bit (packed e2m1); the selector's column, or two columns of 32 bits.
std::vector<std::uint32_t> metadata_cells(const Case& c, int cta) {
  std::vector<std::uint32_t> cells(128 * 4);
  const int rows = c.m / (c.pair ? 2 : 1);
  for (int row = 0; row < rows; ++row) {
    const int l = row % 8, j = row / 8 % 2, i = row / 16, group = c.m == 64 && !c.weights ? 32 : 16;
    for (int chunk = 0; chunk < k_of(c) / chunk_of(c); ++chunk) {
      const std::uint32_t four = row == 5 && chunk == 3 && c.broken >= 0 ? static_cast<std::uint32_t>(c.broken)
                                                                         : metadata_of(c, cta * rows + row, chunk);
      const int k = chunk * chunk_of(c);
      int lane = l + 8 * j + group * i, column = 0, bit = 0;
      if (c.a->bits == 16) lane = l + group * i + 8 * (k / 16), bit = 16 * j + k % 16, column = c.selector;
      if (c.a->bits == 32) lane = l + group * i + 8 * (k / 8), bit = 2 * (8 * j + k % 8), column = c.selector;
      if (c.a->bits <= 8) bit = c.a == &kPacked ? k / 2 : k, column = bit / 32, bit %= 32;
      cells[static_cast<std::size_t>((c.metadata_lane + lane) * 4 + column)] |= four << bit;
    }
  }
  return cells;
}

// The scale of row i, block s: 2^0 .. 2^3.
int scale_exponent(int i, int s, int salt) {
  return (i + 2 * s + salt) % 4;
}

// A in tensor memory: element k of row m is in cell k / E of its lane, E elements a cell. Elements of 6 bits are in the low bits
// of a byte, of 4 bits in bits 2 to 5.
std::vector<std::byte> cells_of_a(const Case& c, int cta) {
  std::vector<std::byte> cells(128 * 32);
  const int rows = c.m / (c.pair ? 2 : 1), wide = stored(*c.a);
  for (int lane = 0; lane < 128; ++lane) {
    int row = lane;  // M 128, and 256 of a pair
    if (rows == 64) row = c.pair ? lane % 64 : lane % 32 < 16 ? lane / 32 * 16 + lane % 16 : -1;
    if (row < 0) continue;
    for (int k = 0; k < stored_k(c); ++k) {
      const std::uint32_t value = bits_of(*c.a, number_at(*c.a, cta * rows + row, k, 1))
                                  << (c.a->bits == 4 && wide == 8 ? 2 : 0);
      for (int b = 0; b < wide; ++b) {
        const int bit = k * wide + b;
        if ((value >> b & 1) != 0)
          cells[static_cast<std::size_t>(lane * 32 + bit / 8)] |= static_cast<std::byte>(1 << (bit % 8));
      }
    }
  }
  return cells;
}
double number_of(const Case& c, std::uint32_t cell) {
  if (c.d == 2) return static_cast<std::int32_t>(cell);
  if (c.d == 0) {  // f16: small integers are exact
    const int exponent = static_cast<int>(cell >> 10 & 31), mantissa = static_cast<int>(cell & 1023);
    const double size = exponent == 0 ? mantissa / 16777216.0 : (1024 + mantissa) * std::pow(2.0, exponent - 25);
    return (cell >> 15 & 1) != 0 ? -size : size;
  }
  float x;
  std::memcpy(&x, &cell, sizeof x);
  return x;
}
}  // namespace
}  // namespace tensor_case

ProductOutcome run_product(const ProductCase& c) {
  using namespace tensor_case;
  const int ctas = c.pair ? 2 : 1, k = k_of(c), rows = c.m / ctas, columns = c.n / ctas;
  const int a_at = kTiles, b_at = kTiles + kTileBytes, scales_at = b_at + kTileBytes;
  const int skipped = static_cast<int>(c.zeros >> 56 & 63);
  const Tile a{c.a, rows, stored_k(c), c.row_a, c.a_along_m},
      b{c.b, columns + (skipped + 7) / 8 * 8, k, c.row_b, c.b_along_n};
  const int bytes = 40 * 1024, cells_at = scales_at + 2048;
  std::vector<std::byte> in(static_cast<std::size_t>(ctas * bytes));
  for (int r = 0; r < ctas; ++r) {
    std::vector<std::byte> window(static_cast<std::size_t>(kTiles + bytes));
    place(a, 1, r * rows, window, a_at);
    place(b, 2, r * columns, window, b_at);
    for (int i = 0; i < (c.scales > 0 ? 128 : 0); ++i) {
      for (int s = 0; s < c.scales; ++s) {
        const auto cell = static_cast<std::size_t>(scales_at + i % 32 * 16 + i / 32 * 4 + s);
        const auto code = [&](int exponent) {
          return static_cast<std::byte>(c.ue4m3 ? (7 + exponent) << 3 : 127 + exponent);
        };
        window[cell] = code(scale_exponent(r * rows + i, s, 0));
        window[cell + 512] = code(scale_exponent(i, s, 1));
      }
    }
    const std::vector<std::byte> cells = cells_of_a(c, r);
    std::copy(cells.begin(), cells.end(), window.begin() + cells_at);
    if (c.sparse) std::memcpy(window.data() + cells_at + 4096, metadata_cells(c, r).data(), 2048);
    std::copy(window.begin() + kTiles, window.end(), in.begin() + r * bytes);
  }
  std::uint32_t description =
      static_cast<std::uint32_t>(c.a->code) << 7 | static_cast<std::uint32_t>(c.b->code) << 10 |
      static_cast<std::uint32_t>(c.most_shift) << 30 | static_cast<std::uint32_t>(c.sparse) << 2 |
      static_cast<std::uint32_t>(c.selector) | static_cast<std::uint32_t>(c.negate_a) << 13 |
      static_cast<std::uint32_t>(c.a_along_m) << 15 | static_cast<std::uint32_t>(c.b_along_n) << 16 |
      static_cast<std::uint32_t>(c.n / 8) << 17 | static_cast<std::uint32_t>(c.m / 16) << 24;
  description |= c.scales > 0 ? (c.ue4m3 ? 0U : 1U << 23) : static_cast<std::uint32_t>(c.d) << 4;
  const std::string group = c.pair ? ".cta_group::2" : ".cta_group::1";
  std::string body = "{ .shared .align 1024 .b8 t[" + std::to_string(kTiles - 0x1400 + bytes) + "];\n";
  // Copies the tiles: 128 threads of 16 bytes. Only variables that the kernel names have a place.
  body += "mov.u32 %r63, t; mov.u32 %r2, %ctaid.x; mad.wide.u32 %rd2, %r2, " + std::to_string(bytes) +
          ", %rd1; mul.wide.u32 %rd3, %r0, 16;\n" + "add.u64 %rd2, %rd2, %rd3; mad.lo.u32 %r3, %r0, 16, " +
          std::to_string(kTiles - 0x1400) + "; add.u32 %r3, %r3, %r63; mov.u32 %r4, 0;\n" +
          "COPY: ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%rd2]; st.shared.v4.u32 [%r3], {%r5, %r6, %r7, %r8};\n" +
          "add.u64 %rd2, %rd2, 2048; add.u32 %r3, %r3, 2048; add.u32 %r4, %r4, 1;\n" + "setp.lt.u32 %p0, %r4, " +
          std::to_string(bytes / 2048) + "; @%p0 bra COPY;\n" + "fence.proxy.async;\n" +
          "setp.ge.u32 %p1, %r0, 32; @%p1 bra ALLOCATED;\n" + "tcgen05.alloc" + group +
          ".sync.aligned.shared::cta.b32 [s], 512;\n" + "tcgen05.relinquish_alloc_permit" + group + ".sync.aligned;\n" +
          "ALLOCATED: setp.ne.u32 %p2, %r0, 0;\n" +
          "@%p2 bra READY; mbarrier.init.shared.b64 [s+64], 1; fence.mbarrier_init.release.cluster;\n" +
          "READY: tcgen05.fence::before_thread_sync; bar.sync 0;\n";
  if (c.pair) body += "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n";
  body += "tcgen05.fence::after_thread_sync; ld.shared.u32 %r1, [s];\n";
  if (c.a_in_tensor) {
    body += "mad.wide.u32 %rd6, %r2, " + std::to_string(bytes) +
            ", %rd1; mul.wide.u32 %rd3, %r0, 32; add.u64 %rd6, %rd6, "
            "%rd3;\nld.global.v4.u32 {%r20, %r21, %r22, %r23}, [%rd6+" +
            std::to_string(cells_at - kTiles) + "]; ld.global.v4.u32 {%r24, %r25, %r26, %r27}, [%rd6+" +
            std::to_string(cells_at - kTiles + 16) + "];\n" +
            "and.b32 %r13, %r0, 96; shl.b32 %r13, %r13, 16; add.u32 %r13, %r13, %r1;\n" +
            "tcgen05.st.sync.aligned.32x32b.x8.b32 [%r13+" + std::to_string(kTensorA) +
            "], {%r20, %r21, %r22, %r23, %r24, %r25, %r26, %r27};\ntcgen05.wait::st.sync.aligned;\n" +
            "tcgen05.fence::before_thread_sync; bar.sync 0;\n";
    if (c.pair) body += "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n";
    body += "tcgen05.fence::after_thread_sync; add.u32 %r15, %r1, " + std::to_string(kTensorA) + ";\n";
  }
  if (c.sparse) {
    body += "mad.wide.u32 %rd6, %r2, " + std::to_string(bytes) +
            ", %rd1; mul.wide.u32 %rd3, %r0, 16; add.u64 %rd6, %rd6, "
            "%rd3;\nld.global.v4.u32 {%r20, %r21, %r22, %r23}, [%rd6+" +
            std::to_string(cells_at + 4096 - kTiles) +
            "];\nand.b32 %r13, %r0, 96; shl.b32 %r13, %r13, 16; add.u32 %r13, %r13, %r1;\n" +
            "tcgen05.st.sync.aligned.32x32b.x4.b32 [%r13+" + std::to_string(kMetadata) +
            "], {%r20, %r21, %r22, %r23};\ntcgen05.wait::st.sync.aligned;\n" +
            "tcgen05.fence::before_thread_sync; bar.sync 0;\n";
    if (c.pair) body += "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n";
    body += "tcgen05.fence::after_thread_sync; add.u32 %r16, %r1, " +
            std::to_string(kMetadata + (c.metadata_lane << 16)) + ";\n";
  }
  body += "@%p2 bra ISSUED;\n";
  if (c.pair) body += "setp.ne.u32 %p3, %r2, 0; @%p3 bra ISSUED;\n";
  const auto number = [](std::uint64_t x) { return std::to_string(x); };
  body += "mov.b64 %rd4, " + number(descriptor_of(a, a_at)) + "; mov.b64 %rd5, " + number(descriptor_of(b, b_at)) +
          "; mov.b32 %r9, " + number(description) + "; setp.ne.u32 %p4, %r0, %r0;\n";
  std::string tail = c.tail.empty() ? "%p4" : c.tail;
  if (c.zeros != 0) {
    body += "mov.b64 %rd8, " + number(c.zeros) + ";\n";
    tail = "%p4, %rd8";
  }
  if (c.scales > 0) {
    for (int i = 0; i < 2; ++i) {
      const std::uint64_t source = static_cast<std::uint64_t>((scales_at + 512 * i) >> 4) | std::uint64_t{1} << 16 |
                                   std::uint64_t{8} << 32 | std::uint64_t{1} << 46;
      body += "mov.b64 %rd6, " + number(source) + "; add.u32 %r1" + number(static_cast<std::uint64_t>(i)) + ", %r1, " +
              number(static_cast<std::uint64_t>(256 + 16 * i)) + "; tcgen05.cp" + group + ".32x128b.warpx4 [%r1" +
              number(static_cast<std::uint64_t>(i)) + "], %rd6;\n";
    }
    tail = "[%r10], [%r11], %p4";
  }
  for (int i = 0; i < c.times; ++i) {
    if (i == 1) body += "setp.eq.u32 %p4, %r0, %r0;\n";
    body += std::string("tcgen05.mma") + (c.weights ? ".ws" : "") + (c.sparse ? ".sp" : "") + group +
            ".kind::" + c.kind + c.scale + " [%r1], " + (c.a_in_tensor ? "[%r15]" : "%rd4") + ", %rd5, " +
            (c.sparse ? "[%r16], " : "") + "%r9, " + tail + (c.scale_d > 0 ? ", " + std::to_string(c.scale_d) : "") +
            ";\n";
  }
  if (c.pair) {
    body +=
        "mov.u16 %rs0, 3; mov.u32 %r12, s; add.u32 %r12, %r12, 64;\n"
        "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r12], %rs0;\n";
  } else {
    body += "mov.u32 %r12, s; tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r12+64];\n";
  }
  body +=
      "ISSUED: mbarrier.try_wait.parity.shared.b64 %p5, [s+64], 0; @!%p5 bra "
      "ISSUED;\ntcgen05.fence::after_thread_sync;\n";
  body += "and.b32 %r13, %r0, 96; shl.b32 %r13, %r13, 16; add.u32 %r13, %r13, %r1;\n";
  body += "mad.lo.u32 %r14, %r2, 128, %r0; mad.wide.u32 %rd7, %r14, " + std::to_string(4 * c.n) + ", %rd0;\n";
  // The columns that D has: of a pair with M 128, half of N.
  const int width = (c.pair && c.m == 128) || (c.weights && c.m == 64) ? c.n / 2
                    : c.weights && c.m == 32                           ? c.n / 4
                                                                       : c.n;
  for (int n = 0; n < width; n += 8) {
    body += "tcgen05.ld.sync.aligned.32x32b.x8.b32 {%r20, %r21, %r22, %r23, %r24, %r25, %r26, %r27}, [%r13+" +
            std::to_string(n) + "]; tcgen05.wait::ld.sync.aligned;\n";
    for (int i = 0; i < 8; i += 4) {
      body += "st.global.v4.u32 [%rd7+" + std::to_string(4 * (n + i)) + "], {%r" + std::to_string(20 + i) + ", %r" +
              std::to_string(21 + i) + ", %r" + std::to_string(22 + i) + ", %r" + std::to_string(23 + i) + "};\n";
    }
  }
  body += "tcgen05.fence::before_thread_sync; bar.sync 0;\n";
  if (c.pair) body += "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n";
  body += "@%p1 bra FREED; tcgen05.dealloc" + group + ".sync.aligned.b32 %r1, 512;\nFREED: }\n";
  OneKernel kernel{.body = body,
                   .in = std::move(in),
                   .out_bytes = static_cast<std::size_t>(ctas * 128 * c.n * 4),
                   .threads = 128,
                   .grid = ctas,
                   .cluster = c.pair ? std::array<std::int64_t, 3>{2, 1, 1} : std::array<std::int64_t, 3>{},
                   .target = "sm_100a"};
  kernel.options.policy = c.policy;
  kernel.options.seed = 5;
  const Ran ran = run(kernel);
  ProductOutcome outcome{.messages = ran.messages, .cells = {}};
  for (int i = 0; i < ctas * 128 * c.n; ++i) outcome.cells.push_back(ran.word(static_cast<std::size_t>(i)));
  return outcome;
}
std::string zero_columns(const ProductCase& c) {
  const auto field = [&](int lowest, int bits) { return c.zeros >> lowest & ((std::uint64_t{1} << bits) - 1); };
  std::string out;
  for (int i = 0; i < 128 / c.m; ++i) {
    const std::string zeros(field(40, 8) + 1, '0'), used(field(48, 8) + 1, 'B');
    std::string part;
    while (part.size() < 600) part += field(32 + i, 1) != 0 ? zeros + used : used + zeros;
    out += part.substr(field(8 * i, 8), static_cast<std::size_t>(c.n * c.m / 128));
  }
  return field(39, 1) != 0 ? out : std::string(out.size(), 'B');
}
std::uint64_t mask_of(std::array<int, 4> starts, std::array<int, 4> firsts, int zeros, int used, int skipped) {
  std::uint64_t out = std::uint64_t{1} << 39 | static_cast<std::uint64_t>(zeros - 1) << 40 |
                      static_cast<std::uint64_t>(used - 1) << 48 | static_cast<std::uint64_t>(skipped) << 56;
  for (std::size_t i = 0; i < 4; ++i)
    out |= static_cast<std::uint64_t>(starts[i]) << (8 * i) | static_cast<std::uint64_t>(firsts[i]) << (32 + i);
  return out;
}
void expect_product(const ProductCase& c) {
  using namespace tensor_case;
  SCOPED_TRACE(c.kind + " " + c.a->name + " x " + c.b->name + ", M " + std::to_string(c.m) + ", N " +
               std::to_string(c.n) + ", rows of " + std::to_string(c.row_a) + " and " + std::to_string(c.row_b) +
               (c.a_along_m ? ", A along M" : "") + (c.b_along_n ? ", B along N" : "") + (c.pair ? ", a pair" : ""));
  const ProductOutcome outcome = run_product(c);
  ASSERT_THAT(outcome.messages, ::testing::IsEmpty());
  const std::string columns = c.zeros != 0 ? zero_columns(c) : std::string(static_cast<std::size_t>(c.n), 'B');
  int wrong = 0;
  for (int m = 0; m < c.m; ++m) {
    for (int n = 0; n < c.n; ++n) {
      double sum = 0;
      for (int j = 0; j < stored_k(c); ++j) {
        const int k = column_of(c, m, j);
        double product = number_at(*c.a, m, j, 1) * number_at(*c.b, n + static_cast<int>(c.zeros >> 56 & 63), k, 2);
        if (columns[static_cast<std::size_t>(n)] == '0') product = 0;
        if (c.scales > 0) {
          const int s = k / (k_of(c) / c.scales);
          product *= (1 << scale_exponent(m, s, 0)) * (1 << scale_exponent(n, s, 1));
        }
        sum += product;
      }
      sum *= (c.scale_d > 0 ? 1 + std::ldexp(1.0, -c.scale_d) : c.times) * (c.negate_a ? -1 : 1);
      int cta = 0, lane = m, column = n;
      if (c.m == 64 && !c.weights) lane = m / 16 * 32 + m % 16;
      if (c.weights && c.m < 128) lane = m + c.m * (n / (c.n * c.m / 128)), column = n % (c.n * c.m / 128);
      if (c.pair && c.m == 256) cta = m / 128, lane = m % 128;
      if (c.pair && c.m == 128) {
        cta = m / 64;
        lane = m % 64 + (n >= c.n / 2 ? 64 : 0);
        column = n % (c.n / 2);
      }
      const double got = number_of(c, outcome.cells[static_cast<std::size_t>((cta * 128 + lane) * c.n + column)]);
      if (got != sum && ++wrong <= 3) ADD_FAILURE() << "(" << m << ", " << n << ") is " << got << ", expected " << sum;
    }
  }
  EXPECT_EQ(wrong, 0);
}

std::string product_message(const ProductCase& c) {
  const ProductOutcome outcome = run_product(c);
  return outcome.messages.empty() ? std::string() : outcome.messages[0];
}

}  // namespace kvscope::ptx::test
