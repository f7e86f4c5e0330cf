// The private memory of a part of a launch, against plain arrays: bytes, records, commits and conflicts.
#include "gpu/virtual/machine/memory/memory_part.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/base/random.h"
#include "gpu/virtual/machine/memory/device_memory.h"

namespace kvscope::ptx::test::memory_part_test {
namespace {

constexpr std::uint64_t kCell = MemoryPart::kCell;

class Random {
 public:
  explicit Random(std::uint64_t seed) : rng_(seed, 0) {}
  std::uint64_t below(std::uint64_t end) {
    return static_cast<std::uint64_t>(rng_.integer(next_++, 0, static_cast<std::int64_t>(end) - 1));
  }

 private:
  CounterRng rng_;
  std::uint64_t next_ = 0;
};

// Sizes around a page, and one whose last cell is not whole.
const std::vector<std::int64_t> kSizes{1, 4095, 4096, 4097, 3 * 4096 + 2};

std::vector<std::byte> noise(Random& random, std::uint64_t count) {
  std::vector<std::byte> out(count);
  for (std::byte& b : out) b = static_cast<std::byte>(random.below(256));
  return out;
}

// The same accesses on plain arrays: what a part sees, and which cells it read and wrote.
struct Model {
  std::vector<std::byte> bytes;
  std::vector<bool> read, written;
};

void mark(std::vector<bool>& cells, std::uint64_t offset, std::uint64_t count) {
  for (std::uint64_t b = offset; b < offset + count; ++b) cells[b / kCell] = true;
}

struct Device {
  explicit Device(Random& random) {
    for (const std::int64_t size : kSizes) {
      addresses.push_back(memory.allocate(size, "a"));
      memory.write(addresses.back(), noise(random, static_cast<std::uint64_t>(size)));
    }
  }
  std::vector<Model> models() const {
    std::vector<Model> out;
    for (std::size_t a = 0; a < addresses.size(); ++a) {
      const std::size_t cells = static_cast<std::size_t>(kSizes[a]) / kCell + 1;
      out.push_back({memory.read(addresses[a], kSizes[a]), std::vector<bool>(cells), std::vector<bool>(cells)});
    }
    return out;
  }
  DeviceMemory memory;
  std::vector<std::uint64_t> addresses;
};

// One random access to allocation `a`, within [from, to). The bytes that are read must be the model's.
void access(Random& random, const Device& device, DeviceMemory& memory, std::size_t a, Model& model, std::uint64_t from,
            std::uint64_t to) {
  const std::uint64_t offset = from + random.below(to - from);
  const std::uint64_t most = random.below(4) == 0 ? 6000 : 16, count = 1 + random.below(std::min(most, to - offset));
  const std::uint64_t address = device.addresses[a] + offset;
  if (random.below(2) == 0) {
    const std::byte* const bytes = memory.at(address, static_cast<std::int64_t>(count));
    ASSERT_NE(bytes, nullptr);
    EXPECT_TRUE(std::equal(bytes, bytes + count, model.bytes.begin() + static_cast<std::ptrdiff_t>(offset)));
    mark(model.read, offset, count);
    return;
  }
  const std::vector<std::byte> values = noise(random, count);
  std::byte* const bytes = memory.writable_at(address, static_cast<std::int64_t>(count));
  ASSERT_NE(bytes, nullptr);
  std::copy(values.begin(), values.end(), bytes);
  std::copy(values.begin(), values.end(), model.bytes.begin() + static_cast<std::ptrdiff_t>(offset));
  mark(model.written, offset, count);
}

TEST(MemoryPart, SeesItsOwnWritesAndTheDeviceOnlyAfterTheCommit) {
  Random random(5);
  Device device(random);
  const std::vector<Model> before = device.models();
  std::vector<Model> models = before;
  MemoryPart part(device.memory.allocations());
  DeviceMemory memory(device.memory, part);
  EXPECT_TRUE(memory.is_part());
  for (int i = 0; i < 2000; ++i) {
    const auto a = static_cast<std::size_t>(random.below(kSizes.size()));
    access(random, device, memory, a, models[a], 0, static_cast<std::uint64_t>(kSizes[a]));
  }
  for (std::size_t a = 0; a < models.size(); ++a) {
    EXPECT_EQ(device.memory.read(device.addresses[a], kSizes[a]), before[a].bytes);
    EXPECT_EQ(memory.contains(device.addresses[a], kSizes[a] + 1), false);
  }
  device.memory.commit(part);
  for (std::size_t a = 0; a < models.size(); ++a)
    EXPECT_EQ(device.memory.read(device.addresses[a], kSizes[a]), models[a].bytes) << a;
}

// A cell of one part that another part wrote must not be overwritten by the old bytes of the page.
TEST(MemoryPart, TwoPartsCommitTheirOwnCellsOfOnePage) {
  Random random(6);
  Device device(random);
  std::vector<Model> models = device.models();
  MemoryPart first(device.memory.allocations()), second(device.memory.allocations());
  DeviceMemory one(device.memory, first), other(device.memory, second);
  for (int i = 0; i < 400; ++i) {
    access(random, device, one, 4, models[4], 0, 6000);
    access(random, device, other, 4, models[4], 6000, static_cast<std::uint64_t>(kSizes[4]));
  }
  const MemoryPart* const parts[] = {&first, &second};
  EXPECT_FALSE(MemoryPart::first_conflict(parts));
  device.memory.commit(second);
  device.memory.commit(first);
  EXPECT_EQ(device.memory.read(device.addresses[4], kSizes[4]), models[4].bytes);
}

TEST(MemoryPart, ConflictsAreThoseOfTheModel) {
  int conflicts = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    Device device(random);
    MemoryPart a(device.memory.allocations()), b(device.memory.allocations()), c(device.memory.allocations());
    const MemoryPart* const parts[] = {&a, &b, &c};
    std::vector<std::vector<Model>> models(3, device.models());
    MemoryPart* const own[] = {&a, &b, &c};
    for (std::size_t p = 0; p < 3; ++p) {
      DeviceMemory memory(device.memory, *own[p]);
      for (int i = 0; i < 3; ++i) {
        const auto at = static_cast<std::size_t>(random.below(kSizes.size()));
        access(random, device, memory, at, models[p][at], 0, static_cast<std::uint64_t>(kSizes[at]));
      }
    }
    bool wanted = false;
    for (std::size_t at = 0; at < kSizes.size(); ++at) {
      for (std::size_t cell = 0; cell < models[0][at].read.size(); ++cell) {
        for (std::size_t p = 0; p < 3; ++p) {
          for (std::size_t q = 0; q < 3; ++q)
            wanted |=
                p != q && models[p][at].written[cell] && (models[q][at].read[cell] || models[q][at].written[cell]);
        }
      }
    }
    const auto found = MemoryPart::first_conflict(parts);
    EXPECT_EQ(found.has_value(), wanted) << seed;
    conflicts += found ? 1 : 0;
  }
  EXPECT_GT(conflicts, 50);
  EXPECT_LT(conflicts, 250);
}

TEST(MemoryPart, NamesTheCellOfAConflict) {
  DeviceMemory memory;
  static_cast<void>(memory.allocate(64, "x"));
  const std::uint64_t y = memory.allocate(9000, "y");
  MemoryPart first(memory.allocations()), second(memory.allocations());
  DeviceMemory one(memory, first), other(memory, second);
  const MemoryPart* const parts[] = {&first, &second};
  static_cast<void>(one.at(y + 8001, 1));
  static_cast<void>(other.at(y + 8001, 1));
  EXPECT_FALSE(MemoryPart::first_conflict(parts)) << "two reads";
  static_cast<void>(other.writable_at(y + 8003, 1));
  const auto found = MemoryPart::first_conflict(parts);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->allocation, 1U);
  EXPECT_EQ(found->offset, 8000U);
}

}  // namespace
}  // namespace kvscope::ptx::test::memory_part_test
