// How matrix instructions add, the bits of NaNs, the result of division by zero, the lane that elect.sync selects.
//
// Three orders of summation are known (gpu/virtual/semantics/op.h): seq, one after the other, each rounded; exact,
// rounded once; hopper, terms truncated at a common place, as published for an H100. The virtual GPU uses seq.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/base/random.h"
#include "gpu/hardware/probe.h"
#include "gpu/kernels/probes/params.h"
#include "gpu/virtual/semantics/matrix_product.h"

namespace kvscope::gpu {
namespace {

using ptx::SumMode;
using ptx::Type;

// --- P1: sums --------------------------------------------------------------------------------------------------------

constexpr std::array<std::pair<SumMode, const char*>, 3> kModes = {
    {{SumMode::seq, "seq"}, {SumMode::exact, "exact"}, {SumMode::hopper, "hopper"}}};

struct Format {
  const char* name;
  Type type;
  int bytes;  // per element
};
constexpr Format kBf16{"bf16", Type::bf16, 2}, kF16{"f16", Type::f16, 2}, kE4m3{"e4m3", Type::e4m3, 1};

// Operands of several tiles as stored in memory: rows of 32 bytes along k.
struct TileOperands {
  std::int64_t m = 16, tiles = 0;
  std::vector<std::byte> a, b;  // [tile][m][32], [tile][8][32]
  std::vector<float> c;         // [tile][m][8]
};

struct Products {
  Outcome outcome;
  std::vector<float> d;  // as c
};

Products multiply_on(Device& device, const std::string& entry, const TileOperands& operands) {
  const DeviceArray a = device.upload("a", operands.a), b = device.upload("b", operands.b);
  const DeviceArray c = device.upload_values("c", operands.c);
  const DeviceArray d = device.filled("d", c.bytes(), std::byte{0xff});
  const ProbeProductParams params{
      .a = a.as<const unsigned char>(), .b = b.as<const unsigned char>(), .c = c.as<const float>(), .d = d.as<float>()};
  Products made;
  made.outcome = device.launch({.kernel = "probes",
                                .entry = entry,
                                .grid = {operands.tiles, 1, 1},
                                .block = {operands.m == 16 ? 32 : kProbeThreads, 1, 1}},
                               bytes_of(params));
  if (made.outcome.faults.empty()) made.d = d.download_as<float>();
  return made;
}

// The products of tile `t`, added in `mode`.
// `group`: of wgmma, which differs from mma for fp8 on Hopper.
std::vector<float> model_products(const TileOperands& operands, const Format& format, std::int64_t t, SumMode mode,
                                  bool group) {
  const int k = kProbeRowBytes / format.bytes, n = kProbeColumns, m = static_cast<int>(operands.m);
  std::vector<float> a(static_cast<std::size_t>(m * k)), columns(static_cast<std::size_t>(n * k)), b(columns.size());
  ptx::decode_elements(format.type, operands.a.data() + t * m * kProbeRowBytes, m * k, a.data());
  ptx::decode_elements(format.type, operands.b.data() + t * n * kProbeRowBytes, n * k, columns.data());
  for (int i = 0; i < k; ++i)
    for (int j = 0; j < n; ++j) b[static_cast<std::size_t>(i * n + j)] = columns[static_cast<std::size_t>(j * k + i)];
  const auto begin = operands.c.begin() + t * m * n;
  std::vector<float> d(begin, begin + m * n);
  const ptx::MatrixProduct product{
      .m = m, .n = n, .k = k, .a = format.type, .b = format.type, .d = Type::f32, .sum = mode};
  if (mode == SumMode::hopper && format.type == Type::e4m3 && !group) {
    ptx::multiply_add_in_halves(product, a.data(), nullptr, b.data(), d.data());
  } else {
    ptx::multiply_add(product, a.data(), b.data(), d.data());
  }
  return d;
}

// A number of magnitude between about 2^-6 and 2^6, so that terms lose bits when they are aligned.
std::uint32_t random_element(const Format& format, std::uint64_t bits) {
  const auto sign = static_cast<std::uint32_t>(bits >> 63);
  const auto fraction = static_cast<std::uint32_t>(bits);
  const auto exponent = static_cast<std::uint32_t>(bits >> 32 & 0xffff) % 13;
  if (format.type == Type::bf16) return sign << 15 | (121 + exponent) << 7 | (fraction & 0x7f);
  if (format.type == Type::f16) return sign << 15 | (9 + exponent) << 10 | (fraction & 0x3ff);
  return sign << 7 | (1 + exponent) << 3 | (fraction & 0x7);
}

TileOperands random_operands(const Format& format, std::int64_t m, std::int64_t tiles, std::uint64_t stream) {
  const CounterRng random(20, stream);
  TileOperands operands{.m = m, .tiles = tiles, .a = {}, .b = {}, .c = {}};
  std::uint64_t n = 0;
  const auto fill = [&](std::vector<std::byte>& bytes, std::int64_t rows) {
    bytes.resize(static_cast<std::size_t>(rows * kProbeRowBytes));
    for (std::size_t i = 0; i < bytes.size(); i += static_cast<std::size_t>(format.bytes)) {
      const std::uint32_t element = random_element(format, random.bits(n++));
      for (int j = 0; j < format.bytes; ++j)
        bytes[i + static_cast<std::size_t>(j)] = static_cast<std::byte>(element >> (8 * j) & 0xff);
    }
  };
  fill(operands.a, tiles * m);
  fill(operands.b, tiles * kProbeColumns);
  for (std::int64_t i = 0; i < tiles * m * kProbeColumns; ++i)
    operands.c.push_back(static_cast<float>(random.bell(n++) * 16));
  return operands;
}

Answer random_sums(ProbeDevice& whom, const Format& format, bool group) {
  constexpr std::int64_t kTilesOfALaunch = 1000;
  const std::int64_t m = group ? 64 : 16;
  const std::string entry = fmt::format("probe_{}_{}", group ? "wgmma" : "mma", format.name);
  const std::string expected = whom.is_virtual() ? "adds as seq" : "adds as hopper";
  std::array<std::int64_t, kModes.size()> differ{};
  std::int64_t elements = 0;
  const std::int64_t all = std::max<std::int64_t>(1, whom.random_blocks * 16 / m);
  for (std::int64_t done = 0; done < all; done += kTilesOfALaunch) {
    const std::int64_t tiles = std::min(kTilesOfALaunch, all - done);
    const TileOperands operands = random_operands(format, m, tiles, static_cast<std::uint64_t>(done));
    const Products products = multiply_on(whom.device, entry, operands);
    if (!products.outcome.faults.empty())
      return answer(how_it_stopped(whom, products.outcome), expected, first_fault(products.outcome));
    elements += static_cast<std::int64_t>(products.d.size());
    for (std::size_t mode = 0; mode < kModes.size(); ++mode)
      for (std::int64_t t = 0; t < tiles; ++t) {
        const std::vector<float> d = model_products(operands, format, t, kModes[mode].first, group);
        for (std::size_t i = 0; i < d.size(); ++i)
          if (std::bit_cast<std::uint32_t>(d[i]) !=
              std::bit_cast<std::uint32_t>(products.d[static_cast<std::size_t>(t * m * kProbeColumns) + i]))
            ++differ[mode];
      }
  }
  std::string text;
  std::vector<std::string> details;
  for (std::size_t mode = 0; mode < kModes.size(); ++mode) {
    if (differ[mode] == 0) text += fmt::format("{}{}", text.empty() ? "adds as " : " or ", kModes[mode].second);
    details.push_back(fmt::format("{}: {} of {} elements differ", kModes[mode].second, differ[mode], elements));
  }
  return answer(text.empty() ? "does not add as seq, exact or hopper" : text, expected, details);
}

// One row of A and one column of B, along k, and c. All are numbers of bf16 and of f16.
struct SumVector {
  float c;
  std::array<float, 16> a{}, b{};
};

std::array<SumVector, 7> sum_vectors() {
  const auto all = [](float x) {
    std::array<float, 16> values{};
    values.fill(x);
    return values;
  };
  const float p12 = std::ldexp(1.0F, -12), p13 = std::ldexp(1.0F, -13), p23 = std::ldexp(1.0F, -23);
  std::array<SumVector, 7> v{};
  v[0] = {16777216.0F, all(1), all(1)};
  v[1] = {1, all(p12), all(p12)};
  v[2] = {1, all(p13), all(p13)};
  v[3] = {1, {1.5F}, {p23}};
  v[4] = {-1, {-1.5F}, {p23}};
  v[5] = {0, all(p12), all(p12)};
  v[5].a[15] = v[5].b[15] = 1;
  v[6] = {std::ldexp(1.0F, -30), {1, -1}, {1, 1}};
  return v;
}

Answer seven_sums(ProbeDevice& whom, const Format& format) {
  // The expected results of seq, and of hopper.
  const std::string seq = "4b800000 3f800000 3f800000 3f800002 bf800002 3f800008 00000000";
  const std::string hopper = "4b800008 3f800008 3f800000 3f800001 bf800001 3f800007 00000000";
  const std::string expected = whom.is_virtual() ? seq : hopper;
  TileOperands operands{.m = 16,
                        .tiles = 1,
                        .a = std::vector<std::byte>(16 * kProbeRowBytes),
                        .b = std::vector<std::byte>(kProbeColumns * kProbeRowBytes),
                        .c = std::vector<float>(16 * kProbeColumns)};
  const auto put = [&](std::vector<std::byte>& to, std::size_t row, std::size_t k, float x) {
    const auto bits = static_cast<std::uint16_t>(format.type == Type::bf16 ? std::bit_cast<std::uint32_t>(x) >> 16
                                                                           : ptx::f16_bits_of(x));
    std::memcpy(to.data() + row * kProbeRowBytes + 2 * k, &bits, 2);
  };
  const auto vectors = sum_vectors();
  for (std::size_t v = 0; v < vectors.size(); ++v) {
    for (std::size_t k = 0; k < 16; ++k) {
      put(operands.a, v, k, vectors[v].a[k]);
      put(operands.b, v, k, vectors[v].b[k]);
    }
    operands.c[v * kProbeColumns + v] = vectors[v].c;
  }
  const Products products = multiply_on(whom.device, fmt::format("probe_mma_{}", format.name), operands);
  if (!products.outcome.faults.empty())
    return answer(how_it_stopped(whom, products.outcome), expected, first_fault(products.outcome));
  std::string text;
  for (std::size_t v = 0; v < vectors.size(); ++v)
    text += fmt::format("{}{:08x}", v == 0 ? "" : " ", std::bit_cast<std::uint32_t>(products.d[v * kProbeColumns + v]));
  return answer(text, expected, {"seq    " + seq, "hopper " + hopper});
}

std::vector<ProbePart> sums() {
  std::vector<ProbePart> made;
  for (const Format& format : {kBf16, kF16})
    made.push_back({fmt::format("seven sums, mma {}", format.name),
                    [format](ProbeDevice& whom) { return seven_sums(whom, format); }});
  for (const bool group : {false, true})
    for (const Format& format : {kBf16, kF16, kE4m3})
      made.push_back({fmt::format("random blocks, {} {}", group ? "wgmma" : "mma", format.name),
                      [format, group](ProbeDevice& whom) { return random_sums(whom, format, group); }});
  return made;
}

// --- P2, P3: bits ----------------------------------------------------------------------------------------------------

struct BitsSeen {
  Outcome outcome;
  std::vector<std::uint64_t> bits;
};

BitsSeen ask_bits(ProbeDevice& whom, const char* entry, int count) {
  const DeviceArray results = whom.device.filled("results", 8 * count, std::byte{0});
  const ProbeBitsParams params{.results = results.as<std::uint64_t>()};
  BitsSeen seen;
  seen.outcome = whom.device.launch({.kernel = "probes", .entry = entry, .block = {1, 1, 1}}, bytes_of(params));
  // The virtual GPU reports the division by zero and continues.
  if (whom.is_virtual() || seen.outcome.faults.empty()) seen.bits = results.download_as<std::uint64_t>();
  return seen;
}

// Results [first, first + count) in hexadecimal with `digits` digits; without a published value, hardware settles them.
ProbePart bits_part(const char* name, const char* entry, int all, std::size_t first, std::size_t count, int digits,
                    const char* model, bool open) {
  return {name, [=](ProbeDevice& whom) {
            std::optional<std::string> expected = model;
            if (open && !whom.is_virtual()) expected.reset();
            const BitsSeen seen = ask_bits(whom, entry, all);
            if (seen.bits.empty())
              return answer(how_it_stopped(whom, seen.outcome), expected, first_fault(seen.outcome));
            std::string text;
            for (std::size_t i = first; i < first + count; ++i)
              text += fmt::format("{}{:0{}x}", i == first ? "" : " ", seen.bits[i], digits);
            std::vector<std::string> details = seen.outcome.faults;
            details.push_back(fmt::format("the model: {}", model));
            return answer(text, expected, std::move(details));
          }};
}

// --- P4: leaders -----------------------------------------------------------------------------------------------------

Answer leaders(ProbeDevice& whom) {
  const std::string expected = "the lowest lane of the mask";
  const DeviceArray array = whom.device.filled("leaders", std::int64_t{4} * 32 * kProbeElectMasks, std::byte{0x7f});
  ProbeElectParams params{
      .masks = {0xffffffff, 0xfffffffe, 0x000000f0, 0x80000000, 0xaaaaaaaa, 0x00010100, 0x7ffffffe, 0xffff0000},
      .leaders = array.as<std::uint32_t>()};
  const Outcome outcome =
      whom.device.launch({.kernel = "probes", .entry = "probe_elect", .block = {32, 1, 1}}, bytes_of(params));
  if (!outcome.faults.empty()) return answer(how_it_stopped(whom, outcome), expected, first_fault(outcome));
  const auto seen = array.download_as<std::uint32_t>();
  std::vector<std::string> details;
  bool lowest = true;
  for (std::size_t i = 0; i < kProbeElectMasks; ++i) {
    const auto first = static_cast<std::uint32_t>(std::countr_zero(params.masks[i]));
    std::uint32_t leader = 0x7f;
    for (std::uint32_t lane = 0; lane < 32; ++lane) {
      const std::uint32_t word = seen[32 * i + lane];
      const bool in = (params.masks[i] >> lane & 1) != 0;
      if (in) leader = word & 0x7fffffff;
      // Every lane of the mask receives the same leader, and only the leader's flag is set.
      const std::uint32_t right = first | (lane == first ? 0x80000000 : 0);
      lowest = lowest && word == (in ? right : 0x7f7f7f7f);
    }
    details.push_back(fmt::format("mask {:08x}: lane {}", params.masks[i], leader));
  }
  return answer(lowest ? expected : "not always the lowest lane of the mask", expected, details);
}

}  // namespace

std::vector<Probe> probes_of_arithmetic() {
  return {
      {"P1", "In which order do matrix instructions add, and where do they round?",
       "seven sums that tell, and random blocks against three orders", sums()},
      {"P2",
       "Which bits does a NaN have?",
       "inf - inf, 0 inf, 0 / 0, NaN + 1, 1 + NaN, NaN + NaN, a signalling NaN + 1; min and max",
       {bits_part("f64 arithmetic", "probe_nan", kProbeNanResults, 0, 7, 16,
                  "fff8000000000000 fff8000000000000 fff8000000000000 7ff8000000000123 fff8000000000456 "
                  "fff8000000000456 7ff8000000000001",
                  true),
        bits_part("f64 min and max", "probe_nan", kProbeNanResults, 7, 4, 16,
                  "fff8000000000456 fff8000000000456 3ff0000000000000 3ff0000000000000", true),
        bits_part("f32", "probe_nan", kProbeNanResults, 11, 3, 8, "7fffffff 7fffffff 7fffffff", false),
        bits_part("f16 and bf16", "probe_nan", kProbeNanResults, 14, 2, 4, "7fff 7fff", false)}},
      {"P3",
       "What does integer division by zero give?",
       "100 / 0, 100 % 0, -100 / 0, -100 % 0",
       {bits_part("16 bits", "probe_divide", kProbeDivisions, 0, 4, 4, "ffff ffff ffff ffff", false),
        bits_part("32 bits", "probe_divide", kProbeDivisions, 4, 4, 8, "ffffffff ffffffff ffffffff ffffffff", false),
        bits_part("64 bits", "probe_divide", kProbeDivisions, 8, 4, 16,
                  "ffffffffffffffff ffffffffffffffff ffffffffffffffff ffffffffffffffff", false)}},
      {"P4",
       "Which lane does elect.sync select from a part of a warp?",
       "eight masks, the answer of every lane",
       {{"eight masks", leaders}}},
  };
}

}  // namespace kvscope::gpu
