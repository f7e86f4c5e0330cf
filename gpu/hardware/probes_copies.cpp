// Effects of tensor copies: padding, fill, edges, phases, gathers by loads, rounding, round trips. The checksums are of
// windows computed in advance by programs that share no code with this one.
#include <fmt/format.h>

#include <cstring>
#include <functional>
#include <utility>

#include "gpu/hardware/probe_copy.h"

namespace kvscope::gpu {
namespace {

using enum TmaDataType;
constexpr auto none = TmaSwizzle::none, b32 = TmaSwizzle::b32, b64 = TmaSwizzle::b64, b128 = TmaSwizzle::b128;

// A load of rank 2 of a tensor of source_byte, whose window has a published checksum.
struct Gold {
  const char* name;
  TmaDataType type;
  std::array<std::uint64_t, 2> dims;
  std::uint64_t stride;
  std::array<std::uint32_t, 2> box;
  TmaSwizzle swizzle;
  std::vector<ProbeBox> loads;
  std::int64_t window;
  std::uint64_t checksum;
  std::uint32_t row_step = 1;
};

ProbePart part(const Gold& gold) {
  return {gold.name, [gold](ProbeDevice& whom) {
            ProbeTensor tensor(whom.device, static_cast<std::int64_t>(gold.stride * gold.dims[1]), source_byte);
            const CopyAsk ask{.load_map = map_2d(gold.type, tensor.base(), gold.dims, gold.stride, gold.box,
                                                 gold.swizzle, gold.row_step),
                              .loads = gold.loads,
                              .window_bytes = gold.window};
            return gold_window(whom, tensor, ask, gold.checksum);
          }};
}

std::vector<ProbePart> parts(const std::vector<Gold>& golds) {
  std::vector<ProbePart> made;
  for (const Gold& gold : golds) made.push_back(part(gold));
  return made;
}

// --- H1, H9, H14, H15: windows with checksums ------------------------------------------------------------------------

std::vector<ProbePart> short_rows() {
  return parts({
      {"64 bytes in 128B swizzle", u8, {64, 20}, 64, {64, 8}, b128, {{0, 4, 0}}, 1024, 0x41b1fba254c2e825},
      {"32 bytes in 64B swizzle", u8, {32, 20}, 32, {32, 8}, b64, {{0, 1, 0}}, 512, 0x02a3441a4da47025},
      {"16 bytes in 32B swizzle", u16, {64, 20}, 128, {8, 8}, b32, {{24, 0, 0}}, 256, 0x4f524897662b81a5},
  });
}

// The wait ends only if the barrier expected exactly the bytes that landed.
std::vector<ProbePart> counted_bytes() {
  return parts({
      {"every second row: 512 bytes", u16, {64, 20}, 128, {64, 8}, b128, {{0, 5, 0}}, 512, 0x5a65f3580ac2c425, 2},
      {"wholly outside: 256 bytes", u16, {64, 20}, 128, {64, 2}, none, {{128, 0, 0}}, 256, 0xd80ac658736bb725},
  });
}

std::vector<ProbePart> phases() {
  constexpr std::array<std::uint64_t, 2> dims{64, 20};
  return parts({
      {"P1: 128B at 512", u16, dims, 128, {64, 4}, b128, {{0, 17, 512}}, 4096, 0x42d90aa15124d3a5},
      {"P2: 128B at 128", u16, dims, 128, {64, 4}, b128, {{0, 1, 128}}, 4096, 0x7eaaa7caca4563a5},
      {"P3: 64B at 128", u16, dims, 128, {32, 8}, b64, {{0, 1, 128}}, 4096, 0xa3db016fafb1b825},
      {"P4: 32B at 128", u16, dims, 128, {16, 8}, b32, {{0, 1, 128}}, 4096, 0x74e4b61e9cb96065},
      {"P5: 128B at 1024", u16, dims, 128, {64, 8}, b128, {{0, 1, 1024}}, 4096, 0x8ab765093f6b3c25},
      {"P6: no swizzle at 128", u16, dims, 128, {64, 4}, none, {{0, 1, 128}}, 4096, 0x402cb8a4572a68a5},
      {"P7: short rows, every third, 128B at 128",
       u16,
       dims,
       128,
       {16, 10},
       b128,
       {{32, 11, 128}},
       4096,
       0xdd9df55a5337a805,
       3},
  });
}

std::vector<ProbePart> gathers() {
  const auto rows = [](std::array<std::int32_t, 4> row, std::uint32_t at) {
    std::vector<ProbeBox> loads;
    for (std::uint32_t i = 0; i < 4; ++i) loads.push_back({0, row[i], at + 128 * i});
    return loads;
  };
  constexpr std::array<std::uint64_t, 2> dims{64, 20};
  return parts({
      {"Q1: rows 5, -1, 19, 20", u16, dims, 128, {64, 1}, b128, rows({5, -1, 19, 20}, 0), 512, 0x68f4d1a584ec93a5},
      {"Q2: rows 7, 7, 2, 0", u16, dims, 128, {64, 1}, b128, rows({7, 7, 2, 0}, 0), 512, 0x9502d1908cd3e825},
      {"Q4: rows 19, 0, -5, 1000000",
       u16,
       dims,
       128,
       {64, 1},
       none,
       rows({19, 0, -5, 1000000}, 0),
       512,
       0x09d48a3143c66925},
      {"Q5: rows 5, -1, 19, 0 at 512",
       u16,
       dims,
       128,
       {64, 1},
       b128,
       rows({5, -1, 19, 0}, 512),
       4096,
       0x71789d99e92d6fa5},
  });
}

// --- H2, H11: fill ---------------------------------------------------------------------------------------------------

// "7ff77ff7 everywhere", or the first bytes in hexadecimal.
std::string pattern(const std::vector<std::byte>& window, std::size_t unit) {
  std::string text;
  for (std::size_t i = unit; i-- > 0;) text += fmt::format("{:02x}", static_cast<int>(window[i]));
  for (std::size_t i = unit; i < window.size(); ++i)
    if (window[i] != window[i - unit]) return text + " at first, then something else";
  return text + " everywhere";
}

Answer fill_of(ProbeDevice& whom, const TensorMap& map, ProbeBox box, std::int64_t window, std::size_t unit,
               const std::string& expected) {
  const CopyAsk ask{.load_map = map, .loads = {box}, .window_bytes = window};
  const CopySeen seen = copy_window(whom, ask);
  if (!seen.outcome.faults.empty())
    return answer(how_it_stopped(whom, seen.outcome), expected, first_fault(seen.outcome));
  return answer(pattern(seen.window, unit), expected);
}

std::vector<ProbePart> nan_fill() {
  struct Row {
    const char* name;
    TmaDataType type;
    const char* expected;
  };
  std::vector<ProbePart> made;
  for (const Row& row : {Row{"f16", f16, "7ff7 everywhere"}, Row{"bf16", bf16, "7ff7 everywhere"},
                         Row{"f32", f32, "7ff77ff7 everywhere"}, Row{"f64", f64, "7ff77ff77ff77ff7 everywhere"},
                         Row{"tf32", tf32, "7ff77ff7 everywhere"}}) {
    made.push_back({row.name, [row](ProbeDevice& whom) {
                      if (whom.is_virtual() && is_tf32(row.type))
                        return not_applicable("the model rejects tf32 maps: a copy would round the elements");
                      const auto size = static_cast<std::uint32_t>(size_of(row.type));
                      ProbeTensor tensor(whom.device, 20 * 128, source_byte);
                      TensorMap map = map_2d(row.type, tensor.base(), {128 / size, 20}, 128, {128 / size, 8}, none);
                      map.fill = OobFill::nan_request_zero_fma;
                      return fill_of(whom, map, {0, 100, 0}, 1024, size, row.expected);
                    }});
  }
  return made;
}

std::vector<ProbePart> far_rows() {
  std::vector<ProbePart> made;
  for (const std::int32_t row : {2147483647, -2147483647 - 1})
    made.push_back({fmt::format("row {}", row), [row](ProbeDevice& whom) {
                      ProbeTensor tensor(whom.device, 20 * 128, source_byte);
                      return fill_of(whom, map_2d(bf16, tensor.base(), {64, 20}, 128, {64, 8}, b128), {0, row, 0}, 1024,
                                     1, "00 everywhere");
                    }});
  return made;
}

// --- H3, H4: rows that end inside a chunk of 16 bytes ----------------------------------------------------------------

constexpr std::int64_t kEdgeColumns = 470, kEdgeStride = 480, kEdgeRows = 4, kEdgeFirst = 464;

TensorMap edge_map(std::uint64_t base) {
  return map_2d(u8, base, {kEdgeColumns, kEdgeRows}, kEdgeStride, {16, kEdgeRows}, none);
}

Answer load_edge(ProbeDevice& whom) {
  const auto never_zero = [](std::uint64_t p) { return source_byte(p) | std::byte{1}; };
  ProbeTensor tensor(whom.device, kEdgeStride * kEdgeRows, never_zero);
  const std::string expected = "6 bytes of data, 10 zeros, in every row";
  const CopyAsk ask{.load_map = edge_map(tensor.base()), .loads = {{kEdgeFirst, 0, 0}}, .window_bytes = 64};
  const CopySeen seen = copy_window(whom, ask);
  if (!seen.outcome.faults.empty())
    return answer(how_it_stopped(whom, seen.outcome), expected, first_fault(seen.outcome));
  std::string text;
  for (std::size_t row = 0; row < kEdgeRows; ++row) {
    int data = 0, zeros = 0;
    for (std::size_t i = 0; i < 16; ++i) {
      data += seen.window[16 * row + i] == never_zero(row * kEdgeStride + kEdgeFirst + i) ? 1 : 0;
      zeros += seen.window[16 * row + i] == std::byte{0} ? 1 : 0;
    }
    const std::string one = fmt::format("{} bytes of data, {} zeros", data, zeros);
    if (text.empty()) text = one + ", in every row";
    if (text != one + ", in every row") return answer(fmt::format("{}; but row {}: {}", text, row, one), expected);
  }
  return answer(text, expected, differences(seen.window, model_window(seen, ask, tensor)));
}

// The columns of each row that are no longer 0xEE, counted from the tensor's base.
std::string written(const std::vector<std::byte>& before, const std::vector<std::byte>& after, std::int64_t stride) {
  std::string text;
  std::int64_t begin = -1;
  const auto close = [&](std::int64_t end) {
    const std::int64_t from = begin - ProbeTensor::kGuard, to = end - 1 - ProbeTensor::kGuard;
    const std::int64_t row = from >= 0 ? from / stride : -1 - (-1 - from) / stride;
    text +=
        fmt::format("{}row {} bytes {} to {}", text.empty() ? "" : ", ", row, from - row * stride, to - row * stride);
    begin = -1;
  };
  for (std::size_t i = 0; i < after.size(); ++i) {
    const bool differs = before[i] != after[i];
    const auto at = static_cast<std::int64_t>(i);
    const bool row_begins = (at - ProbeTensor::kGuard) % stride == 0;
    if (begin >= 0 && (!differs || row_begins)) close(at);
    if (differs && begin < 0) begin = at;
  }
  if (begin >= 0) close(static_cast<std::int64_t>(after.size()));
  return text.empty() ? "nothing" : text;
}

std::vector<std::byte> counting(std::size_t bytes) {
  std::vector<std::byte> image(bytes);
  for (std::size_t i = 0; i < bytes; ++i) image[i] = static_cast<std::byte>(0x10 + i % 0x40);
  return image;
}

Answer store_edge(ProbeDevice& whom) {
  ProbeTensor tensor(whom.device, kEdgeStride * kEdgeRows, [](std::uint64_t) { return std::byte{0xEE}; });
  const CopyAsk ask{
      .window_bytes = 64, .image = counting(64), .store_map = edge_map(tensor.base()), .store = {kEdgeFirst, 0, 0}};
  const std::string expected =
      "row 0 bytes 464 to 479, row 1 bytes 464 to 479, row 2 bytes 464 to 479, row 3 bytes 464 to 479";
  const CopySeen seen = copy_window(whom, ask);
  if (!seen.outcome.faults.empty())
    return answer(how_it_stopped(whom, seen.outcome), expected, first_fault(seen.outcome));
  const std::vector<std::byte> before(tensor.host().begin(), tensor.host().end());
  return answer(written(before, tensor.download(), kEdgeStride), expected,
                {"the map ends at byte 469; by elements nothing behind it would be written"});
}

// --- H12: a store that begins below 0 --------------------------------------------------------------------------------

Answer negative_store(ProbeDevice& whom) {
  ProbeTensor tensor(whom.device, 20 * 128, [](std::uint64_t) { return std::byte{0xEE}; });
  const CopyAsk ask{.window_bytes = 1024,
                    .image = counting(1024),
                    .store_map = map_2d(bf16, tensor.base(), {64, 20}, 128, {64, 8}, none),
                    .store = {0, -1, 0}};
  const std::string expected = stopped_with(whom, 715, "TMA_ARG");
  const CopySeen seen = copy_window(whom, ask);
  if (!seen.outcome.faults.empty())
    return answer(how_it_stopped(whom, seen.outcome), expected, first_fault(seen.outcome));
  const std::vector<std::byte> before(tensor.host().begin(), tensor.host().end());
  return answer("writes " + written(before, tensor.download(), 128), expected);
}

// --- H13: TF32 -------------------------------------------------------------------------------------------------------

ProbePart tf32_part(const char* name, std::vector<std::uint32_t> bits, std::optional<std::string> expected) {
  return {name, [bits = std::move(bits), expected = std::move(expected)](ProbeDevice& whom) {
            if (whom.is_virtual())
              return not_applicable("the model rejects tf32 maps: a copy would round the elements");
            ProbeTensor tensor(whom.device, 128, [&](std::uint64_t p) {
              return static_cast<std::byte>(bits[p / 4 % bits.size()] >> (8 * (p % 4)) & 0xff);
            });
            const CopyAsk ask{.load_map = map_2d(tf32, tensor.base(), {32, 1}, 128, {32, 1}, none),
                              .loads = {{0, 0, 0}},
                              .window_bytes = 128};
            const CopySeen seen = copy_window(whom, ask);
            if (!seen.outcome.faults.empty())
              return answer(how_it_stopped(whom, seen.outcome), expected, first_fault(seen.outcome));
            std::string text;
            for (std::size_t i = 0; i < bits.size(); ++i) {
              std::uint32_t value = 0;
              std::memcpy(&value, seen.window.data() + 4 * i, 4);
              text += fmt::format("{}{:08x}", i == 0 ? "" : " ", value);
            }
            return answer(text, expected);
          }};
}

// --- H19: round trips ------------------------------------------------------------------------------------------------

// Loads the tile of rows 3 to 10 with one map and stores it with another over a tensor of the same shape.
ProbePart round_trip(const char* name, TmaSwizzle in, TmaSwizzle out) {
  return {name, [in, out](ProbeDevice& whom) {
            ProbeTensor from(whom.device, 20 * 128, source_byte);
            ProbeTensor to(whom.device, 20 * 128, [](std::uint64_t) { return std::byte{0xEE}; });
            const CopyAsk ask{.load_map = map_2d(bf16, from.base(), {64, 20}, 128, {64, 8}, in),
                              .loads = {{0, 3, 0}},
                              .window_bytes = 1024,
                              .store_map = map_2d(bf16, to.base(), {64, 20}, 128, {64, 8}, out),
                              .store = {0, 3, 0}};
            const std::string expected = in == out ? "chunk c of row r at chunk c, the rest unchanged"
                                                   : "chunk c of row r at chunk c ^ r, the rest unchanged";
            const CopySeen seen = copy_window(whom, ask);
            if (!seen.outcome.faults.empty())
              return answer(how_it_stopped(whom, seen.outcome), expected, first_fault(seen.outcome));
            // Row r of the tile by its index in the tile: the window begins at a multiple of 1024, which H16 checks.
            std::vector<std::byte> straight(to.host().begin(), to.host().end()), crossed = straight;
            for (std::size_t r = 0; r < 8; ++r)
              for (std::size_t c = 0; c < 8; ++c)
                for (std::size_t i = 0; i < 16; ++i) {
                  const std::size_t row = ProbeTensor::kGuard + 128 * (3 + r);
                  straight[row + 16 * c + i] = from.host()[row + 16 * c + i];
                  crossed[row + 16 * (c ^ r) + i] = from.host()[row + 16 * c + i];
                }
            const std::vector<std::byte> is = to.download();
            const std::string text = is == straight  ? "chunk c of row r at chunk c, the rest unchanged"
                                     : is == crossed ? "chunk c of row r at chunk c ^ r, the rest unchanged"
                                                     : "neither as it was nor crossed";
            return answer(text, expected, differences(is, in == out ? straight : crossed));
          }};
}

}  // namespace

std::vector<Probe> probes_of_copies() {
  return {
      {"H1", "How far apart are rows that are shorter than the swizzle's span?",
       "loads of short rows into 0xCD, every byte of the window compared", short_rows()},
      {"H2", "Which bits does the NaN fill have?", "a box completely outside the tensor, by type", nan_fill()},
      {"H3",
       "Is a load exact where the row ends inside 16 bytes?",
       "u8, 470 columns, a box over 464 to 479, adjacent bytes not zero",
       {{"load", load_edge}}},
      {"H4",
       "Where does a store end when the row ends inside 16 bytes?",
       "the same box stored over 0xEE",
       {{"store", store_edge}}},
      {"H9", "Which bytes does a barrier count?", "exactly those expected, a wait that gives up", counted_bytes()},
      {"H11", "What do rows at the limits of 32 bits load?", "a box of 8 rows from there on", far_rows()},
      {"H12",
       "What does a store do when its rows begin below 0?",
       "rows -1 to 6 over 0xEE",
       {{"row -1", negative_store}}},
      {"H13",
       "How does a load round to TF32?",
       "halfway patterns, and NaN",
       {tf32_part("halfway", {0x3F801000, 0x3F803000}, "3f800000 3f804000"),
        tf32_part("NaN", {0x7FC00001, 0xFFFFFFFF, 0x7F800001}, "7fffe000 7fffe000 7fffe000")}},
      {"H14", "Does the swizzle follow the address, not the place in the tile?",
       "tiles at 128, 512 and 1024 of a window of 4096 bytes", phases()},
      {"H15", "Do four loads of a row gather as one instruction of sm_100 would?", "rows in any order, some not there",
       gathers()},
      {"H19",
       "Does a store undo the swizzle of a load?",
       "loaded by one map, stored by another",
       {round_trip("128B, then 128B", b128, b128), round_trip("128B, then none", b128, none)}},
  };
}

}  // namespace kvscope::gpu
