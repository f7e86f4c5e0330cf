// mma of elements of 8, 6 and 4 bits with and without block scales, dense and sparse: random codes of all types, compared
// with a plain loop over numbers that are decoded here, by the formula of the formats.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "tests/gpu/virtual/semantics/one_op.h"

namespace kvscope::ptx::testing::scaled_mma_test {
namespace {

struct SmallFormat {
  const char* name;
  int exponent_bits, fraction_bits, bias;
  int shift;  // of a code in its byte
  [[nodiscard]] int bits() const { return 1 + exponent_bits + fraction_bits; }
  [[nodiscard]] double value(std::uint32_t code) const {
    const int fraction = static_cast<int>(code & ((1U << fraction_bits) - 1));
    const int exponent = static_cast<int>(code >> fraction_bits & ((1U << exponent_bits) - 1));
    const double size = exponent == 0 ? std::ldexp(fraction, 1 - bias - fraction_bits)
                                      : std::ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
    return (code >> (exponent_bits + fraction_bits) & 1) != 0 ? -size : size;
  }
  [[nodiscard]] bool is_number(std::uint32_t code) const {
    if (bits() < 8) return true;
    return exponent_bits == 4 ? (code & 0x7f) != 0x7f : (code & 0x7c) != 0x7c;
  }
};
const SmallFormat kFormats[] = {
    {"e4m3", 4, 3, 7, 0}, {"e5m2", 5, 2, 15, 0}, {"e2m3", 2, 3, 1, 0}, {"e3m2", 3, 2, 3, 0}, {"e2m1", 2, 1, 1, 2}};

struct Kind {
  const char* name;
  const char* scale;  // nullptr: none
  int scales;
  bool in_bytes;
  const char* vector;
};
const Kind kScaledKinds[] = {{"mxf8f6f4", "ue8m0", 1, true, ".scale_vec::1X"},
                             {"mxf4", "ue8m0", 2, false, ".scale_vec::2X"},
                             {"mxf4nvf4", "ue8m0", 2, false, ".scale_vec::2X"},
                             {"mxf4nvf4", "ue4m3", 4, false, ".scale_vec::4X"}};

double scale_value(const std::string& type, std::uint32_t code) {
  if (type == "ue8m0") return std::ldexp(1.0, static_cast<int>(code) - 127);
  return kFormats[0].value(code & 0x7f);
}

struct Problem {
  Kind kind;
  SmallFormat a, b;
  bool sparse = false;
  std::string d = "f32";
  [[nodiscard]] int k() const { return (kind.in_bytes ? 32 : 64) * (sparse ? 2 : 1); }
  [[nodiscard]] int stored_k() const { return sparse ? k() / 2 : k(); }
};

// The codes and the expected result of one random product.
struct Scaled {
  Case x;
  std::vector<float> expected;  // [16][8]
};
Scaled make(const Problem& p, int byte_a, int lane_a, int byte_b, int lane_b, Random& random) {
  const int k = p.k(), stored = p.stored_k(), width = p.kind.in_bytes ? 8 : 4, per = 32 / width;
  const int chunk = p.kind.in_bytes ? 4 : 8;
  const auto below = [&](int n) { return static_cast<std::uint32_t>(random.next() % static_cast<std::uint64_t>(n)); };
  const auto codes = [&](const SmallFormat& f, int count) {
    std::vector<std::uint32_t> out;
    while (out.size() < static_cast<std::size_t>(count)) {
      const std::uint32_t code = below(1 << f.bits());
      if (f.is_number(code)) out.push_back(code);
    }
    return out;
  };
  const std::vector<std::uint32_t> a = codes(p.a, 16 * stored), b = codes(p.b, 8 * k);
  // The dense column of each stored element, and the metadata: indices in ascending order.
  std::vector<int> columns;
  Lanes metadata{};
  for (int row = 0; row < 16; ++row) {
    for (int c = 0; c < k / chunk && p.sparse; ++c) {
      const int first = static_cast<int>(below(3)), second = first + 1 + static_cast<int>(below(3 - first));
      const int unit = chunk / 4;
      for (const int index : {first, second}) {
        for (int i = 0; i < unit; ++i) columns.push_back(c * chunk + index * unit + i);
      }
      // Lane 4 g + row / 8 + 2 (half of the columns): eight chunks.
      metadata[static_cast<std::size_t>(4 * (row % 8) + row / 8 + 2 * (c / 8))] |=
          static_cast<std::uint64_t>(first | second << 2) << (4 * (c % 8));
    }
    for (int c = 0; c < k && !p.sparse; ++c) columns.push_back(c);
  }
  std::vector<std::vector<double>> scales(2);  // [a, b][row or column][scales]
  Lanes words[2];
  for (Lanes& lanes : words) {
    for (std::uint64_t& word : lanes) word = random.next() & 0xffffffffu;
  }
  for (int of_b = 0; of_b < 2 && p.kind.scale != nullptr; ++of_b) {
    for (int row = 0; row < (of_b != 0 ? 8 : 16); ++row) {
      for (int s = 0; s < p.kind.scales; ++s) {
        const std::uint32_t code = std::string(p.kind.scale) == "ue8m0" ? 117 + below(20) : below(0x7f);
        const int lane = of_b != 0 ? 4 * row + lane_b : 4 * (row % 8) + 2 * lane_a + row / 8;
        const int byte = (of_b != 0 ? byte_b : byte_a) + s;
        std::uint64_t& word = words[of_b][static_cast<std::size_t>(lane)];
        word = (word & ~(std::uint64_t{0xff} << (8 * byte))) | std::uint64_t{code} << (8 * byte);
        scales[static_cast<std::size_t>(of_b)].push_back(scale_value(p.kind.scale, code));
      }
    }
  }
  Scaled out;
  std::vector<float> c(128);
  for (float& x : c) x = static_cast<float>(static_cast<int>(below(65)) - 32);
  // In the order of k, each scaled product is exact and is added with one rounding.
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 8; ++column) {
      float sum = c[static_cast<std::size_t>(8 * row + column)];
      for (int j = 0; j < stored; ++j) {
        const int at = columns[static_cast<std::size_t>(row * stored + j)];
        long double product = static_cast<long double>(p.a.value(a[static_cast<std::size_t>(row * stored + j)])) *
                              p.b.value(b[static_cast<std::size_t>(at * 8 + column)]);
        if (p.kind.scale != nullptr) {
          const int block = at / (k / p.kind.scales);
          product *= scales[0][static_cast<std::size_t>(row * p.kind.scales + block)];
          product *= scales[1][static_cast<std::size_t>(column * p.kind.scales + block)];
        }
        sum = static_cast<float>(static_cast<long double>(sum) + product);
      }
      out.expected.push_back(sum);
    }
  }
  Case& x = out.x;
  x.word = std::string("mma") + (p.sparse ? ".sp::ordered_metadata" : "") + ".sync.aligned.m16n8k" + std::to_string(k) +
           ".row.col.kind::" + p.kind.name + (p.kind.scale != nullptr ? ".block_scale" : "") + p.kind.vector + "." +
           p.d + "." + p.a.name + "." + p.b.name + "." + p.d + (p.kind.scale != nullptr ? "." : "") +
           (p.kind.scale != nullptr ? p.kind.scale : "");
  const auto place = [&](const SmallFormat& f, std::uint32_t code, int e) {
    return std::uint64_t{code} << (e * width + (p.kind.in_bytes ? f.shift : 0));
  };
  for (int r = 0; r < 16 * stored / (32 * per); ++r) {
    Lanes lanes{};
    for (int i = 0; i < 32 * per; ++i) {
      const int lane = i / per, e = i % per;
      const int at = (lane / 4 + 8 * (r % 2)) * stored + lane % 4 * per + e + 4 * per * (r / 2);
      lanes[static_cast<std::size_t>(lane)] |= place(p.a, a[static_cast<std::size_t>(at)], e);
    }
    x.in.push_back(lanes);
  }
  for (int r = 0; r < 8 * k / (32 * per); ++r) {
    Lanes lanes{};
    for (int i = 0; i < 32 * per; ++i) {
      const int lane = i / per, e = i % per;
      lanes[static_cast<std::size_t>(lane)] |=
          place(p.b, b[static_cast<std::size_t>((lane % 4 * per + e + 4 * per * r) * 8 + lane / 4)], e);
    }
    x.in.push_back(lanes);
  }
  for (int i = 0; i < 4; ++i) {
    Lanes lanes{};
    for (std::size_t lane = 0; lane < 32; ++lane)
      lanes[lane] = bits(
          c[8 * (lane / 4 + 8 * (static_cast<std::size_t>(i) / 2)) + 2 * (lane % 4) + static_cast<std::size_t>(i) % 2]);
    x.in.push_back(lanes);
  }
  if (p.sparse) {
    x.in.push_back(metadata);
    x.in.push_back(all(0));
  }
  if (p.kind.scale != nullptr) {
    x.in.insert(x.in.end(),
                {words[0], all(static_cast<std::uint64_t>(byte_a)), all(static_cast<std::uint64_t>(lane_a)), words[1],
                 all(static_cast<std::uint64_t>(byte_b)), all(static_cast<std::uint64_t>(lane_b))});
  }
  return out;
}

void expect_result(const Scaled& s, const std::string& what) {
  const Outcome outcome = run(s.x);
  ASSERT_EQ(outcome.d.size(), 4U) << what;
  for (std::size_t row = 0; row < 16; ++row) {
    for (std::size_t column = 0; column < 8; ++column) {
      const std::uint64_t word = outcome.d[2 * (row / 8) + column % 2][4 * (row % 8) + column / 2];
      ASSERT_EQ(as_float(word), s.expected[8 * row + column]) << what << " D(" << row << ", " << column << ")";
    }
  }
}

// Bytes and lanes that are not selected hold random scales.
TEST(ScaledMma, EveryKindTypeByteAndLaneMultipliesTheScaledTiles) {
  Random random{21};
  for (const Kind& kind : kScaledKinds) {
    for (const SmallFormat& a : kFormats) {
      for (const SmallFormat& b : kFormats) {
        if (!kind.in_bytes && (std::strcmp(a.name, "e2m1") != 0 || std::strcmp(b.name, "e2m1") != 0)) continue;
        for (const bool sparse : {false, true}) {
          for (int choice = 0; choice < 8; ++choice) {
            const int steps = 4 / kind.scales;
            const Problem p{kind, a, b, sparse};
            expect_result(make(p, choice % steps * kind.scales, choice % 2, (choice + 1) % steps * kind.scales,
                               (choice + choice / 4) % 4, random),
                          std::string(kind.name) + " " + a.name + " " + b.name + " choice " + std::to_string(choice));
          }
        }
      }
    }
  }
}

TEST(ScaledMma, ElementsOfSixAndFourBitsInBytesMultiplyWithoutScales) {
  Random random{22};
  const Kind kind{"f8f6f4", nullptr, 0, true, ""};
  for (const SmallFormat& a : kFormats) {
    for (const SmallFormat& b : kFormats) {
      for (const bool sparse : {false, true}) {
        const Problem p{kind, a, b, sparse};
        Scaled s = make(p, 0, 0, 0, 0, random);
        expect_result(s, std::string(a.name) + " " + b.name);
      }
    }
  }
}

// ue8m0 ff and ue4m3 7f are NaN; a scale of zero (ue4m3 0) makes its block zero.
TEST(ScaledMma, ScalesMayBeNanAndZero) {
  Random random{23};
  const Problem p{kScaledKinds[3], kFormats[4], kFormats[4]};
  Scaled s = make(p, 0, 0, 0, 0, random);
  Lanes& scales_a = s.x.in[s.x.in.size() - 6];
  scales_a.fill(0);
  Outcome outcome = run(s.x);
  const Lanes& c0 = s.x.in[s.x.in.size() - 10];
  for (std::size_t lane = 0; lane < 32; ++lane) EXPECT_EQ(as_float(outcome.d[0][lane]), as_float(c0[lane]));
  scales_a.fill(0x7f);
  outcome = run(s.x);
  for (std::size_t lane = 0; lane < 32; ++lane) EXPECT_EQ(outcome.d[0][lane], 0x7fffffffu);
}

}  // namespace
}  // namespace kvscope::ptx::testing::scaled_mma_test
