// Compares the machine's tensor copies with the model's (core/tma) over a grid of boxes. The two share the 128-byte
// record of a tensor map and no code. Compared bit for bit: every byte of shared memory after a load, every byte of the
// tensor after a store, the list of chunks, the bytes credited, and every message of a rejected map or start.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "core/base/convert.h"
#include "core/smem/shared_image.h"
#include "core/tma/box_copy.h"
#include "core/tma/box_plan.h"
#include "core/tma/gather4.h"
#include "core/tma/tensor_map_record.h"
#include "gpu/virtual/machine/copies/async.h"
#include "gpu/virtual/machine/copies/copy_map.h"
#include "gpu/virtual/machine/copies/detail/box_bytes.h"
#include "gpu/virtual/machine/copies/detail/tensor_boxes.h"
#include "gpu/virtual/machine/copies/tensor_box.h"
#include "gpu/virtual/machine/memory/windows.h"
#include "tests/core/tma/gold.h"
#include "tests/whole_grid.h"

namespace kvscope::ptx::test::tensor_box_test {
namespace {

using kvscope::test::for_whole_grid;
using kvscope::test::map_of;
using kvscope::test::require;
using kvscope::test::source_byte;

constexpr BoxSwitches kSm100{.target = TmaTarget::sm_100};

// All types that are copied byte for byte.
constexpr std::array<TmaDataType, 11> kTypes{TmaDataType::u8,  TmaDataType::u16,  TmaDataType::u32,    TmaDataType::i32,
                                             TmaDataType::u64, TmaDataType::i64,  TmaDataType::f16,    TmaDataType::f32,
                                             TmaDataType::f64, TmaDataType::bf16, TmaDataType::f32_ftz};
// Box extents after the fastest dimension, ranks 1 to 5. No extent of a box divides another.
const std::vector<std::vector<std::uint32_t>> kRows{{},     {1},       {5},       {16},         {64},
                                                    {3, 5}, {7, 1, 2}, {3, 2, 4}, {5, 1, 2, 3}, {2, 3, 2, 2}};

// Where a box begins: inside the tensor but ending outside, before it, completely past it.
enum class Start : std::uint8_t { inside, over_the_end, before, past };

struct Point {
  TmaDataType type;
  OobFill fill;
  TmaSwizzle swizzle;
  std::int64_t chunks;  // 16 bytes, of a row
  std::vector<std::uint32_t> rows;
  Start start;
  std::uint32_t step, outer_step;  // element strides of dimension 1, and of the others
  std::int64_t phase;              // [128-byte lines] of the shared address
};

// Element strides and phases vary from point to point: seven and thirteen of them, so they meet every other parameter.
std::vector<Point> whole_grid() {
  constexpr std::array<std::int64_t, 7> kSpans = {0, 2, 4, 8, 8, 8, 8};  // [chunks]
  std::vector<Point> points;
  std::uint32_t turn = 0;
  for (const TmaDataType type : kTypes) {
    for (int fill = 0; fill <= (is_float(type) ? 1 : 0); ++fill) {
      for (int mode = 0; mode < 7; ++mode) {
        const std::int64_t span = kSpans.at(static_cast<std::size_t>(mode)), most = 16 * size_of(type);
        std::vector<std::int64_t> widths;
        for (std::int64_t c = 1; c <= (span == 0 ? 4 : span); ++c) widths.push_back(c);
        if (span == 0) widths.insert(widths.end(), {8, most});
        for (const std::int64_t chunks : widths) {
          for (const auto& rows : kRows) {
            for (int start = 0; start < 4; ++start, turn += 7) {
              points.push_back({type, static_cast<OobFill>(fill), static_cast<TmaSwizzle>(mode), chunks, rows,
                                static_cast<Start>(start), 1 + turn % 8, 1 + turn / 8 % 3, turn / 13 % 8});
            }
          }
        }
      }
    }
  }
  return points;
}

const std::vector<Point>& grid() {
  static const std::vector<Point> points = whole_grid();
  return points;
}

std::string text_of(const Point& p) {
  std::string text = std::string(name(p.type)) + ", " + std::string(name(p.swizzle)) + ", fill " +
                     std::to_string(static_cast<int>(p.fill)) + ", " + std::to_string(p.chunks) + " chunks, rows";
  for (const std::uint32_t extent : p.rows) text += " " + std::to_string(extent);
  return text + ", every " + std::to_string(p.step) + " and " + std::to_string(p.outer_step) + ", phase " +
         std::to_string(p.phase) + ", start " + std::to_string(static_cast<int>(p.start));
}

// A tensor about one box wide in every dimension. Its last row ends inside a chunk; rows are padded.
TensorMap map_of_point(const Point& p) {
  const auto size = static_cast<std::uint64_t>(size_of(p.type));
  const std::uint64_t inner = 16 * static_cast<std::uint64_t>(p.chunks) / size;
  std::vector<std::uint64_t> dims{inner + 16 / size + 1}, strides;
  std::vector<std::uint32_t> box{static_cast<std::uint32_t>(inner)}, steps{1};
  std::uint64_t row = (dims[0] * size + 15) / 16 * 16 + 16;
  for (const std::uint32_t extent : p.rows) {
    dims.push_back(extent + 1);
    strides.push_back(row);
    row = row * dims.back() + 16;
    box.push_back(extent);
    steps.push_back(box.size() == 2 ? p.step : p.outer_step);
  }
  if (strides.size() > 1 && p.phase % 2 == 1) std::swap(strides[0], strides[1]);  // strides need not ascend
  TensorMap map = map_of(p.type, dims, strides, box, p.swizzle, steps);
  map.fill = p.fill;
  return map;
}

std::vector<std::int32_t> start_of(const Point& p, const TensorMap& map) {
  const auto chunk = static_cast<std::int32_t>(16 / size_of(map.data_type));
  std::vector<std::int32_t> at(static_cast<std::size_t>(map.rank), 0);
  for (std::size_t i = 0; i < at.size(); ++i) {
    const std::int32_t unit = i == 0 ? chunk : 1;
    if (p.start == Start::over_the_end) at[i] = 2 * unit;
    if (p.start == Start::before) at[i] = -unit * (i == 1 ? 2 : 1);
    if (p.start == Start::past && i == at.size() - 1)
      at[i] = static_cast<std::int32_t>(map.dims[i]) / unit * unit + unit;
  }
  return at;
}

TmaCoord model_coordinates(const std::vector<std::int32_t>& at) {
  TmaCoord coord;
  coord.rank = static_cast<int>(at.size());
  std::copy(at.begin(), at.end(), coord.at.begin());
  return coord;
}
Coordinates machine_coordinates(const std::vector<std::int32_t>& at) {
  Coordinates coordinates;
  coordinates.count = static_cast<int>(at.size());
  std::copy(at.begin(), at.end(), coordinates.at.begin());
  return coordinates;
}

std::span<const std::byte, kMapRecordBytes> bytes_of(const TensorMapRecord& record) {
  return record;
}
CopyMap machine_map(const TensorMap& map) {
  return read_copy_map(bytes_of(encode_tensor_map("map", map, TmaTarget::sm_100)));
}

std::uint64_t tensor_bytes(const TensorMap& map) {
  std::uint64_t end = map.dims[0] * static_cast<std::uint64_t>(size_of(map.data_type));
  for (std::size_t i = 1; i < static_cast<std::size_t>(map.rank); ++i) end += (map.dims[i] - 1) * map.strides[i - 1];
  return end;
}

// One tensor twice, at one address: for the model and for the machine. `behind`: bytes of the allocation past its end.
struct Twins {
  DeviceMemory device;
  GlobalMemory model;
  std::vector<std::byte> bytes;

  Twins(TensorMap& map, std::uint64_t behind) : bytes(tensor_bytes(map) + behind) {
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(source_byte(i));
    map.base = device.allocate(static_cast<std::int64_t>(bytes.size()), "tensor");
    device.write(map.base, bytes);
    model.add("tensor", map.base, bytes);
  }
  Twins(const Twins&) = delete;
  Twins& operator=(const Twins&) = delete;
  [[nodiscard]] bool same(std::uint64_t base) const {
    return std::equal(bytes.begin(), bytes.end(), device.at(base, static_cast<std::int64_t>(bytes.size())));
  }
};

void require_same_chunks(const std::vector<BoxChunk>& model, const std::vector<CopyChunk>& machine) {
  require(model.size() == machine.size(), "another number of chunks");
  for (std::size_t i = 0; i < model.size(); ++i) {
    const BoxChunk& a = model[i];
    const CopyChunk& b = machine[i];
    require(a.row == b.row && a.column == b.column, "another place in the box");
    require(a.shared == b.shared, "another shared address");
    require(a.data_bytes == b.data_bytes && (a.filled() || a.global == b.global), "other bytes of memory");
  }
}

// 16 pairs of type and fill, 44 widths of a row under the seven swizzles, ten boxes, four starts; and every phase of
// every swizzle with every element stride.
TEST(TensorBoxes, HaveAGridOfEveryRankTypeAndSwizzle) {
  EXPECT_EQ(grid().size(), 28160U);
  std::array<std::array<std::array<bool, 9>, 8>, 7> met{};  // [swizzle][phase][step]
  for (const Point& p : grid())
    met.at(static_cast<std::size_t>(p.swizzle)).at(static_cast<std::size_t>(p.phase)).at(p.step) = true;
  for (const auto& of_swizzle : met) {
    for (const auto& of_phase : of_swizzle) EXPECT_EQ(std::count(of_phase.begin(), of_phase.end(), true), 8);
  }
}

TEST(TensorBoxes, AreLoadedAsTheModelLoadsThem) {
  for_whole_grid(
      "loads", grid(), 7,
      [](const Point& p) {
        TensorMap map = map_of_point(p);
        const Twins twins(map, 0);
        const CopyMap copy_map = machine_map(map);
        const std::vector<std::int32_t> at = start_of(p, map);
        const std::int64_t dst = 1024 + 128 * p.phase;
        const BoxShape shape = box_shape(map, kSm100);
        SharedImage image(dst + (shape.window_bytes + 127) / 128 * 128 + 128);
        std::vector<std::byte> shared(image.bytes().begin(), image.bytes().end());
        const BoxLoad load = load_box(map, model_coordinates(at), twins.model, image, dst, CopyIdx{0}, kSm100);

        require(map_fault(copy_map, CopyDirection::load, 100).empty(), "the machine rejects the map");
        const BoxSize size = box_size(copy_map);
        require(size.bytes() == load.tx_bytes && size.window() == load.window_bytes, "another size");
        const TensorBox box = tensor_box(copy_map, machine_coordinates(at), dst);
        require(load_bytes(copy_map, box, twins.device, shared.data() + dst), "the machine finds no memory");
        require(std::ranges::equal(image.bytes(), shared), "other bytes in shared memory");
        if (size.bytes() > 4096) return;  // the list of chunks repeats
        PendingOp op;
        op.shared = static_cast<std::uint64_t>(dst);
        op.map = copy_map;
        op.at = machine_coordinates(at);
        require_same_chunks(box_chunks(map, model_coordinates(at), dst, kSm100), chunks_of(op));
      },
      text_of);
}

TEST(TensorBoxes, AreStoredAsTheModelStoresThem) {
  for_whole_grid(
      "stores", grid(), 7,
      [](const Point& p) {
        TensorMap map = map_of_point(p);
        Twins twins(map, 16);
        const CopyMap copy_map = machine_map(map);
        const std::vector<std::int32_t> at = start_of(p, map);
        const std::int64_t src = 1024 + 128 * p.phase;
        const BoxShape shape = box_shape(map, kSm100);
        SharedImage image(src + (shape.window_bytes + 127) / 128 * 128);
        std::vector<std::byte> shared(static_cast<std::size_t>(image.size()));
        for (std::size_t i = 0; i < shared.size(); ++i) shared[i] = static_cast<std::byte>(255 - source_byte(7 * i));
        std::copy(shared.begin(), shared.end(), image.overwrite(0, image.size(), CopyIdx{0}).begin());

        std::string model_said, machine_said = map_fault(copy_map, CopyDirection::store, 100);
        if (machine_said.empty()) {
          machine_said = start_fault(copy_map, machine_coordinates(at), src, box_size(copy_map).window(),
                                     static_cast<std::int64_t>(shared.size()), CopyDirection::store);
        }
        try {
          static_cast<void>(store_box(map, model_coordinates(at), twins.model, image, src, kSm100));
        } catch (const std::exception& e) {
          model_said = e.what();
        }
        require(model_said == machine_said, "another message");
        require(model_said.empty() == (p.start != Start::before && p.swizzle != TmaSwizzle::b128_atom32_flip8),
                "a store is rejected");
        if (!machine_said.empty()) return;
        const TensorBox box = tensor_box(copy_map, machine_coordinates(at), src);
        require(store_bytes(copy_map, box, twins.device, shared.data() + src), "the machine finds no memory");
        require(twins.same(map.base), "another tensor");
      },
      text_of);
}

// The rows of a tensor may be in separate allocations (blocks of the heap, 8192 bytes apart): the copy cannot look up
// the memory of the box at once.
TEST(TensorBoxes, CrossAllocations) {
  for (int mode = 0; mode < 7; ++mode) {
    TensorMap map = map_of(TmaDataType::u16, {62, 3}, {8192}, {64, 4}, TmaSwizzle::none);
    map.swizzle = static_cast<TmaSwizzle>(mode);
    if (mode == 1) map.box[0] = 16;
    if (mode == 2) map.box[0] = 32;
    DeviceMemory device;
    GlobalMemory model;
    std::array<std::vector<std::byte>, 3> rows;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      rows[r].resize(4096);
      for (std::size_t i = 0; i < 4096; ++i) rows[r][i] = static_cast<std::byte>(source_byte(4096 * r + i));
      const std::uint64_t address = device.allocate(4096, "row", true, true);
      if (r == 0) map.base = address;
      ASSERT_EQ(address, map.base + 8192 * r);
      device.write(address, rows[r]);
      model.add("row", address, rows[r]);
    }
    const CopyMap copy_map = machine_map(map);
    SharedImage image(2048);
    std::vector<std::byte> shared(image.bytes().begin(), image.bytes().end());
    const TensorBox box = tensor_box(copy_map, Coordinates{2, {0, 0}}, 1024);
    static_cast<void>(load_box(map, {0, 0}, model, image, 1024, CopyIdx{0}, kSm100));
    ASSERT_TRUE(load_bytes(copy_map, box, device, shared.data() + 1024)) << mode;
    EXPECT_TRUE(std::ranges::equal(image.bytes(), shared)) << mode;
    if (map.swizzle == TmaSwizzle::b128_atom32_flip8) continue;
    for (std::byte& b : image.overwrite(0, 2048, CopyIdx{0})) b ^= std::byte{0x5A};
    for (std::byte& b : shared) b ^= std::byte{0x5A};
    static_cast<void>(store_box(map, {0, 0}, model, image, 1024, kSm100));
    ASSERT_TRUE(store_bytes(copy_map, box, device, shared.data() + 1024)) << mode;
    for (std::size_t r = 0; r < rows.size(); ++r) EXPECT_EQ(device.read(map.base + 8192 * r, 4096), rows[r]) << mode;
    device.free(map.base + 8192);
    EXPECT_FALSE(load_bytes(copy_map, box, device, shared.data() + 1024));
    EXPECT_FALSE(store_bytes(copy_map, box, device, shared.data() + 1024));
  }
}

// docs/FIDELITY.md: the last row of an allocation. The model rejects the copy, the machine stores the bytes that fit.
TEST(TensorBoxes, AreStoredAsFarAsTheAllocationGoes) {
  TensorMap map = map_of(TmaDataType::u16, {60, 2}, {128}, {64, 2}, TmaSwizzle::none);
  Twins twins(map, 0);
  const CopyMap copy_map = machine_map(map);
  const std::vector<std::byte> shared(256, std::byte{0xAB});
  SharedImage image(256);
  EXPECT_THROW(static_cast<void>(store_box(map, {0, 0}, twins.model, image, 0, kSm100)), IllegalAddress);
  ASSERT_TRUE(store_bytes(copy_map, tensor_box(copy_map, Coordinates{2, {0, 0}}, 0), twins.device, shared.data()));
  EXPECT_EQ(twins.device.read(map.base, 248), std::vector<std::byte>(248, std::byte{0xAB}));
}

TEST(TensorBoxes, GatherFourRowsAsTheModelDoes) {
  constexpr std::array<std::array<std::int32_t, 4>, 5> kChoices = {
      {{0, 5, -1, 19}, {7, 7, 2, 0}, {20, -5, 1'000'000, 3}, {-1, -1, -1, -1}, {19, 18, 17, 16}}};
  constexpr std::array<std::uint32_t, 7> kWidth = {12, 2, 4, 8, 8, 8, 8};  // [chunks]
  for (const TmaDataType type : kTypes) {
    const auto size = static_cast<std::uint32_t>(size_of(type));
    for (int mode = 0; mode < 7; ++mode) {
      for (std::uint32_t chunks = 1; chunks <= kWidth.at(static_cast<std::size_t>(mode)); ++chunks) {
        for (std::size_t n = 0; n < 3 * kChoices.size(); ++n) {
          TensorMap map =
              map_of(type, {16 * 9 / size + 1, 20}, {176}, {16 * chunks / size, 1}, static_cast<TmaSwizzle>(mode));
          if (is_float(type) && n % 2 == 1) map.fill = OobFill::nan_request_zero_fma;
          const Twins twins(map, 0);
          const auto& rows = kChoices.at(n % kChoices.size());
          const auto column =
              (static_cast<std::int32_t>(n / kChoices.size()) * 2 - 1) * 16 / static_cast<std::int32_t>(size);
          const std::int64_t dst = 1024 + 128 * static_cast<std::int64_t>(n % 8);
          SharedImage image(4096);
          std::vector<std::byte> shared(image.bytes().begin(), image.bytes().end());
          const TmaCoord at{column, rows[0], rows[1], rows[2], rows[3]};
          const BoxLoad load = gather4(map, at, twins.model, image, dst, CopyIdx{0}, kSm100);
          PendingOp op;
          op.shared = static_cast<std::uint64_t>(dst);
          op.gather = true;
          op.map = machine_map(map);
          op.at = machine_coordinates({column, rows[0], rows[1], rows[2], rows[3]});
          ASSERT_EQ(4 * box_size(op.map).bytes(), load.tx_bytes);
          for (const BoxPiece& piece : pieces_of(op)) {
            ASSERT_TRUE(load_bytes(op.map, tensor_box(op.map, piece.at, piece.shared), twins.device,
                                   shared.data() + piece.shared));
          }
          ASSERT_TRUE(std::ranges::equal(image.bytes(), shared)) << name(type) << " mode " << mode << " case " << n;
          require_same_chunks(gather4_chunks(map, at, dst, kSm100), chunks_of(op));
        }
      }
    }
  }
}

// Copying each row separately, as a seeded schedule does, gives the bytes of the whole copy.
TEST(TensorBoxes, AreTheSumOfTheirRows) {
  std::vector<Point> points;
  for (std::size_t i = 0; i < grid().size(); i += 11) points.push_back(grid()[i]);
  for_whole_grid(
      "boxes row by row", points, 7,
      [](const Point& p) {
        TensorMap map = map_of_point(p);
        const Twins twins(map, 0);
        PendingOp op;
        op.op.mbarrier = 8;
        op.map = machine_map(map);
        op.shared = static_cast<std::uint64_t>(1024 + 128 * p.phase);
        op.at = machine_coordinates(start_of(p, map));
        const auto dst = static_cast<std::int64_t>(op.shared);
        const TensorBox box = tensor_box(op.map, op.at, dst);
        std::vector<std::byte> whole(static_cast<std::size_t>(dst + box.size.window())), by_rows = whole;
        require(load_bytes(op.map, box, twins.device, whole.data() + dst), "no memory");
        std::int64_t bytes = 0;
        std::vector<PendingOp> rows = rows_of(op);
        std::reverse(rows.begin(), rows.end());
        for (const PendingOp& row : rows) {
          const auto at = static_cast<std::int64_t>(row.shared);
          require(load_bytes(row.map, tensor_box(row.map, row.at, at), twins.device, by_rows.data() + at), "no memory");
          bytes += row.op.bytes;
        }
        require(whole == by_rows, "other bytes");
        require(bytes == box.size.bytes(), "another number of bytes");
      },
      text_of);
}

// --- reductions ------------------------------------------------------------------------------------------------------

// The operation on one element in plain C++, from its bits.
template <class T>
T reduced(ReduceOp op, T a, T b) {
  using Unsigned = std::make_unsigned_t<T>;
  const auto x = static_cast<Unsigned>(a), y = static_cast<Unsigned>(b);
  switch (op) {
    case ReduceOp::add:
      return static_cast<T>(static_cast<Unsigned>(x + y));
    case ReduceOp::min:
      return std::min(a, b);
    case ReduceOp::max:
      return std::max(a, b);
    case ReduceOp::inc:
      // PTX has inc and dec of unsigned numbers; here signed ones use signed order.
      return a >= b ? T{0} : static_cast<T>(x + 1);
    case ReduceOp::dec:
      return a == 0 || a > b ? b : static_cast<T>(x - 1);
    case ReduceOp::and_:
      return static_cast<T>(x & y);
    case ReduceOp::or_:
      return static_cast<T>(x | y);
    default:
      return static_cast<T>(x ^ y);
  }
}
template <class T>
T element_at(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

using Expected = void (*)(ReduceOp op, std::byte* memory, const std::byte* tile);
template <class T>
void expect_integer(ReduceOp op, std::byte* memory, const std::byte* tile) {
  const T value = reduced(op, element_at<T>(memory), element_at<T>(tile));
  std::memcpy(memory, &value, sizeof value);
}
template <class T>
void expect_float_sum(ReduceOp, std::byte* memory, const std::byte* tile) {
  const T value = element_at<T>(memory) + element_at<T>(tile);
  std::memcpy(memory, &value, sizeof value);
}
// Values are small integers: their sums are exact in every type.
template <class T>
void expect_half(ReduceOp op, std::byte* memory, const std::byte* tile) {
  const double a = to_double(element_at<T>(memory)), b = to_double(element_at<T>(tile));
  const double value = op == ReduceOp::add ? a + b : op == ReduceOp::min ? std::min(a, b) : std::max(a, b);
  const T narrow = from_double<T>(value, Overflow::non_saturating);
  std::memcpy(memory, &narrow, sizeof narrow);
}

struct Reduction {
  TmaDataType type;
  Expected expected;
  std::vector<ReduceOp> ops;
};

template <class T>
void put_number(std::byte* to, double value) {
  T number;
  if constexpr (std::is_arithmetic_v<T>) {
    number = static_cast<T>(value);
  } else {
    number = from_double<T>(value, Overflow::non_saturating);
  }
  std::memcpy(to, &number, sizeof number);
}
// Element i of a buffer: integers from -8 to 8 for floats, arbitrary bits for integers.
void put_element(TmaDataType type, std::byte* to, std::size_t i) {
  const double value = static_cast<double>((31 * i + 5) % 17) - 8;
  switch (type) {
    case TmaDataType::f16:
      return put_number<f16>(to, value);
    case TmaDataType::bf16:
      return put_number<bf16>(to, value);
    case TmaDataType::f32:
    case TmaDataType::f32_ftz:
      return put_number<float>(to, value);
    case TmaDataType::f64:
      return put_number<double>(to, value);
    default:
      for (std::size_t b = 0; b < static_cast<std::size_t>(size_of(type)); ++b) {
        to[b] = static_cast<std::byte>(source_byte(131 * i + 7 * b));
      }
  }
}

// The address of each byte is taken from the model's list of chunks; the arithmetic is plain C++.
TEST(TensorBoxes, AreReducedElementByElementByEveryOperation) {
  const std::vector<ReduceOp> all{ReduceOp::add, ReduceOp::min,  ReduceOp::max, ReduceOp::inc,
                                  ReduceOp::dec, ReduceOp::and_, ReduceOp::or_, ReduceOp::xor_};
  const std::vector<ReduceOp> ordered{ReduceOp::add, ReduceOp::min, ReduceOp::max}, sum{ReduceOp::add};
  const std::vector<Reduction> reductions{{TmaDataType::u8, nullptr, {}},
                                          {TmaDataType::u16, nullptr, {}},
                                          {TmaDataType::u32, expect_integer<std::uint32_t>, all},
                                          {TmaDataType::i32, expect_integer<std::int32_t>, all},
                                          {TmaDataType::u64, expect_integer<std::uint64_t>, all},
                                          {TmaDataType::i64, expect_integer<std::int64_t>, all},
                                          {TmaDataType::f16, expect_half<f16>, ordered},
                                          {TmaDataType::bf16, expect_half<bf16>, ordered},
                                          {TmaDataType::f32, expect_float_sum<float>, sum},
                                          {TmaDataType::f32_ftz, expect_float_sum<float>, sum},
                                          {TmaDataType::f64, expect_float_sum<double>, sum}};
  for (const Reduction& r : reductions) {
    const auto size = static_cast<std::size_t>(size_of(r.type));
    for (const ReduceOp op : all) {
      for (int mode = 0; mode < 7; ++mode) {
        if (static_cast<TmaSwizzle>(mode) == TmaSwizzle::b128_atom32_flip8) continue;  // loads only
        constexpr std::array<std::uint32_t, 7> kWidth = {6, 2, 4, 8, 8, 8, 8};         // [chunks]
        for (std::int32_t start = 0; start < 2; ++start) {
          const std::uint32_t columns =
              16 * kWidth.at(static_cast<std::size_t>(mode)) / static_cast<std::uint32_t>(size);
          // The last column of the box is outside, and of the second start also the last rows.
          TensorMap map = map_of(r.type, {columns - 1, 6, 3}, {160, 1040}, {columns, 5, 2},
                                 static_cast<TmaSwizzle>(mode), {1, 2, 1});
          Twins twins(map, 16);
          for (std::size_t i = 0; (i + 1) * size <= twins.bytes.size(); ++i) {
            put_element(r.type, twins.bytes.data() + i * size, i);
          }
          twins.device.write(map.base, twins.bytes);
          const CopyMap copy_map = machine_map(map);
          const Reduce reduce = find_reduce(op, copy_map.element().reduced);
          ASSERT_EQ(reduce != nullptr, std::count(r.ops.begin(), r.ops.end(), op) == 1) << name(r.type);
          if (reduce == nullptr) continue;
          std::vector<std::byte> shared(4096);
          for (std::size_t i = 0; i < shared.size() / size; ++i)
            put_element(r.type, shared.data() + i * size, 3 * i + 1);
          const std::int64_t src = 1024 + 128;
          for (const BoxChunk& chunk : box_chunks(map, {0, 3 * start, 2 * start}, src, kSm100)) {
            for (std::int64_t b = 0; b < chunk.data_bytes; b += static_cast<std::int64_t>(size)) {
              r.expected(op, twins.bytes.data() + (chunk.global - map.base) + b, shared.data() + chunk.shared + b);
            }
          }
          const TensorBox box = tensor_box(copy_map, Coordinates{3, {0, 3 * start, 2 * start}}, src);
          ASSERT_TRUE(reduce_bytes(copy_map, box, twins.device, shared.data() + src, reduce));
          ASSERT_TRUE(twins.same(map.base)) << name(r.type) << " op " << static_cast<int>(op) << " mode " << mode;
        }
      }
    }
  }
}

// --- rejections ------------------------------------------------------------------------------------------------------

// The model's message about a copy; empty: accepted.
std::string model_fault(const TensorMap& map, const TmaCoord& at, std::int64_t shared, std::int64_t shared_bytes,
                        BoxDirection direction, const BoxSwitches& switches) {
  try {
    require_box_copyable(map, direction, switches);
    require_box_start(map, at, shared, shared_bytes, direction, switches);
    return {};
  } catch (const std::exception& e) {
    return e.what();
  }
}
std::string machine_fault(const CopyMap& map, const Coordinates& at, std::int64_t shared, std::int64_t shared_bytes,
                          CopyDirection direction, int target) {
  std::string said = map_fault(map, direction, target);
  return said.empty() ? start_fault(map, at, shared, box_size(map).window(), shared_bytes, direction) : said;
}

// Every type and interleave with every swizzle on both targets, and starts that break each rule alone and together.
TEST(TensorBoxes, AreRejectedWithTheMessagesOfTheModel) {
  struct Where {
    std::vector<std::int32_t> at;
    std::int64_t shared, shared_bytes;
  };
  const std::vector<Where> starts{{{0, 0, 0}, 1024, 65536},   {{1, 0, 0}, 1024, 65536}, {{-3, -1, 2}, 1088, 65536},
                                  {{0, 0}, 1024, 65536},      {{0, 0, -1}, 0, 65536},   {{16, 0, 0}, 64512, 65536},
                                  {{-128, 5, 9}, 1040, 1024}, {{8, 0, 0, 0}, 16, 4096}};
  std::size_t rejected = 0, taken = 0;
  for (int type = 0; type < kTmaDataTypes; ++type) {
    for (int interleave = 0; interleave < 3; ++interleave) {
      for (int mode = 0; mode < 7; ++mode) {
        const auto data_type = static_cast<TmaDataType>(type);
        const bool packed16 = data_type == TmaDataType::u4x16_align16 || data_type == TmaDataType::u6x16_align16;
        const std::uint32_t columns = packed16               ? 128
                                      : is_packed(data_type) ? 32
                                                             : 32 / static_cast<std::uint32_t>(size_of(data_type));
        TensorMap map =
            map_of(data_type, {1024, 20, 4}, {8192, 163840}, {columns, 7, 2}, static_cast<TmaSwizzle>(mode));
        map.interleave = static_cast<TmaInterleave>(interleave);
        if (!check_tensor_map(map, TmaTarget::sm_100).broken.empty()) continue;
        const CopyMap copy_map = machine_map(map);
        for (const Where& where : starts) {
          for (const int target : {90, 100}) {
            for (const auto direction : {BoxDirection::load, BoxDirection::store}) {
              const BoxSwitches switches{.target = target == 90 ? TmaTarget::sm_90 : TmaTarget::sm_100};
              // The model copies bytes alone. A copy of tf32 is accepted where one of f32 is.
              TensorMap twin = map;
              if (is_tf32(data_type)) twin.data_type = TmaDataType::f32;
              std::string expected =
                  model_fault(twin, model_coordinates(where.at), where.shared, where.shared_bytes, direction, switches);
              const std::size_t named = is_tf32(data_type) ? expected.find("x f32 =") : std::string::npos;
              if (named != std::string::npos) expected.replace(named + 2, 3, name(data_type));
              EXPECT_EQ(machine_fault(copy_map, machine_coordinates(where.at), where.shared, where.shared_bytes,
                                      static_cast<CopyDirection>(direction), target),
                        expected);
              ++(expected.empty() ? taken : rejected);
            }
          }
        }
      }
    }
  }
  EXPECT_GT(rejected, 3000U);
  EXPECT_GT(taken, 100U);
}

// A load of tf32 rounds to nearest, ties to even, and leaves infinities; every NaN becomes one NaN; with _ftz, subnormals become zeros.
// Positions outside of the tensor are filled and not rounded. The oracle picks the nearer of the two neighbors in double.
TEST(TensorBoxes, OfTf32AreRoundedWhenTheyAreLoaded) {
  constexpr std::uint32_t kNumbers = 32, kLines = 3;
  std::vector<std::uint32_t> numbers{0x3f801000, 0x3f803000, 0x3f800fff, 0x3f801001, 0xbf801000, 0x3fffffff, 0x7f7fffff,
                                     0x7f800000, 0xff800000, 0x7fc12345, 0xffffffff, 0x00000001, 0x807fffff, 0x00001000,
                                     0x00001001, 0x00003000, 0x80000000, 0x00800000, 0x42f6e979, 0xc2f6f000};
  for (std::uint32_t i = 0; numbers.size() < kNumbers * kLines; ++i) numbers.push_back(i * 0x9e3779b9U + 0x1000U);
  const auto nearest = [](std::uint32_t bits, bool flushes) {
    const float x = std::bit_cast<float>(bits);
    if (std::isnan(x)) return 0x7fffe000U;  // as an H100 loads it
    if (std::isinf(x)) return bits;
    if (flushes && std::fpclassify(x) == FP_SUBNORMAL) return bits & 0x80000000U;
    const std::uint32_t below = bits & ~0x1fffU, above = below + 0x2000U;
    const double low = std::fabs(double{std::bit_cast<float>(below)});
    const float up = std::bit_cast<float>(above);
    const double high = std::isfinite(up) ? std::fabs(double{up}) : std::ldexp(1.0, 128);
    const double here = std::fabs(double{x}), to_low = here - low, to_high = high - here;
    if (to_low != to_high) return to_low < to_high ? below : above;
    return (below >> 13 & 1) == 0 ? below : above;
  };
  for (const TmaDataType type : {TmaDataType::tf32, TmaDataType::tf32_ftz}) {
    for (const TmaSwizzle swizzle : {TmaSwizzle::none, TmaSwizzle::b128}) {
      TensorMap map = map_of(type, {kNumbers, kLines}, {4 * kNumbers}, {kNumbers, kLines + 1}, swizzle);
      map.fill = OobFill::nan_request_zero_fma;
      DeviceMemory memory(1 << 20);
      map.base = memory.allocate(4 * kNumbers * kLines, "tensor");
      memory.write(map.base, std::as_bytes(std::span(numbers)));
      const CopyMap machine = machine_map(map);
      std::vector<std::uint32_t> window(kNumbers * (kLines + 1));
      ASSERT_TRUE(load_bytes(machine, tensor_box(machine, Coordinates{2, {0, 0}}, 0), memory,
                             reinterpret_cast<std::byte*>(window.data())));
      for (std::uint32_t i = 0; i < window.size(); ++i) {
        const std::uint32_t row = i / kNumbers, column = i % kNumbers;
        const std::uint32_t at = swizzle == TmaSwizzle::b128 ? row * kNumbers + (column ^ (row % 8 * 4)) : i;
        const std::uint32_t wanted = row == kLines ? 0x7ff77ff7U : nearest(numbers[i], type == TmaDataType::tf32_ftz);
        ASSERT_EQ(window[at], wanted) << name(type) << " of " << std::hex << (row == kLines ? 0 : numbers[i]);
      }
    }
  }
}

// Data past 2^64 is rejected by both.
TEST(TensorBoxes, DoNotPassTheEndOfTheAddressSpace) {
  for (const std::uint64_t distance : {0x800U, 0x400U, 0x3f0U}) {
    TensorMap map = map_of(TmaDataType::u16, {64, 8}, {0x100}, {64, 8}, TmaSwizzle::b128);
    map.base = 0 - distance;
    std::string model, machine;
    try {
      static_cast<void>(box_chunks(map, {0, 0}, 0, kSm100));
    } catch (const IllegalAddress& e) {
      model = e.what();
    }
    try {
      static_cast<void>(tensor_box(machine_map(map), Coordinates{2, {0, 0}}, 0));
    } catch (const IllegalAddress& e) {
      machine = e.what();
    }
    EXPECT_EQ(machine, model);
    EXPECT_EQ(model.empty(), distance == 0x800U) << distance;
  }
}

// --- the record ------------------------------------------------------------------------------------------------------

void require_same_map(const TensorMap& model, const CopyMap& machine) {
  require(machine.type == static_cast<int>(model.data_type) && machine.rank == model.rank, "another type or rank");
  require(machine.interleave == static_cast<int>(model.interleave), "another interleave");
  require(machine.swizzle == static_cast<int>(model.swizzle), "another swizzle");
  require(machine.promotion == static_cast<int>(model.l2) && machine.fill == static_cast<int>(model.fill),
          "other enums");
  require(machine.base == model.base, "another base");
  require(machine.element_bytes() == size_of(model.data_type), "another element");
  for (std::size_t i = 0; i < static_cast<std::size_t>(model.rank); ++i) {
    require(machine.dims[i] == model.dims[i] && machine.box[i] == model.box[i], "another extent");
    require(machine.every[i] == model.element_strides[i], "another element stride");
    require(i == 0 || machine.strides[i] == model.strides[i - 1], "another stride");
  }
}

std::string said_by(const auto& read) {
  try {
    static_cast<void>(read());
    return {};
  } catch (const InputError& e) {
    return e.what();
  }
}

// Both parsers accept the record or reject it with the same message, and an accepted map is the same map.
bool require_same_reading(const TensorMapRecord& record) {
  const std::string model = said_by([&] { return decode_tensor_map("tensor map", record); });
  const std::string machine = said_by([&] { return read_copy_map(bytes_of(record)); });
  require(model == machine, "another message");
  if (model.empty()) require_same_map(decode_tensor_map("tensor map", record), read_copy_map(bytes_of(record)));
  return model.empty();
}

TEST(TensorMapReaders, AgreeOnEveryMapOfTheGrid) {
  for_whole_grid(
      "records", grid(), 7,
      [](const Point& p) {
        TensorMap map = map_of_point(p);
        map.l2 = static_cast<L2Promotion>(p.phase % 4);
        map.base = 0x1000'0000'0000 + 16 * static_cast<std::uint64_t>(p.step);
        require(require_same_reading(encode_tensor_map("map", map, TmaTarget::sm_100)), "a legal record is rejected");
      },
      text_of);
}

// Every byte of eight records with other values and a corrected checksum: rules, reserved bytes, entries past the rank.
// And without the correction: a damaged record.
TEST(TensorMapReaders, RejectTheSameRecords) {
  std::vector<TensorMap> maps{
      map_of(TmaDataType::u8, {64}, {}, {64}, TmaSwizzle::none),
      map_of(TmaDataType::bf16, {64, 20}, {128}, {64, 8}, TmaSwizzle::b128),
      map_of(TmaDataType::f32, {64, 20, 4}, {256, 5120}, {8, 8, 1}, TmaSwizzle::b32, {1, 2, 8}),
      map_of(TmaDataType::u64, {8, 3, 3, 3}, {64, 192, 576}, {8, 2, 2, 2}, TmaSwizzle::b64),
      map_of(TmaDataType::u16, {8, 3, 3, 3, 3}, {32, 96, 288, 864}, {8, 2, 2, 2, 2}, TmaSwizzle::b128_atom64),
      map_of(TmaDataType::u4x16_align16, {256, 4}, {128}, {128, 4}, TmaSwizzle::b128_atom32),
      map_of(TmaDataType::u6x16_align16, {128, 4}, {96}, {128, 4}, TmaSwizzle::b128),
      map_of(TmaDataType::f16, {64, 20, 4}, {128, 2560}, {64, 8, 1}, TmaSwizzle::b32, {2, 1, 1})};
  maps[7].interleave = TmaInterleave::b32;
  maps[1].fill = OobFill::nan_request_zero_fma;
  std::size_t taken = 0, rejected = 0;
  const int thin = static_cast<int>(kvscope::test::grid_step(8));
  for (std::size_t m = 0; m < maps.size(); ++m) {
    const TensorMapRecord good = encode_tensor_map("map", maps[m], TmaTarget::sm_100);
    for (std::size_t at = 0; at < good.size(); ++at) {
      const bool number = at >= map_field::kVersion && at < map_field::kBase;  // an enumeration: every value
      for (int value = 0; value < 256; value += (number ? 1 : 5) * thin) {
        SCOPED_TRACE(::testing::Message() << "map " << m << ", byte " << at << ", value " << value);
        TensorMapRecord record = good;
        record.at(at) = static_cast<std::byte>(value);
        if (value % 40 == 0) {
          ASSERT_NO_THROW(require_same_reading(record));
        }
        const std::uint32_t sum = map_checksum(bytes_of(record));
        std::memcpy(record.data() + map_field::kChecksum, &sum, sizeof sum);
        bool legal = false;
        ASSERT_NO_THROW(legal = require_same_reading(record));
        ++(legal ? taken : rejected);
      }
    }
  }
  std::cout << taken << " taken, " << rejected << " rejected\n";
  EXPECT_GT(taken, 1000U);
  EXPECT_GT(rejected, taken);
}

}  // namespace
}  // namespace kvscope::ptx::test::tensor_box_test
