#include "gpu/virtual/machine/memory/device_memory.h"

#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "gpu/virtual/machine/memory/windows.h"

namespace kvscope::ptx::device_memory_test {
namespace {

template <class Error, class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing thrown";
}

TEST(DeviceMemory, AddressesAreTheSameEverywhereAndFarApart) {
  DeviceMemory memory;
  EXPECT_EQ(memory.allocate(4000, "x"), 0x200000000u);
  EXPECT_EQ(memory.allocate(1, "y"), 0x300000000u);
  EXPECT_EQ(memory.allocate_constant(16, "c"), 0x7d0000000000u);
  EXPECT_EQ(memory.allocate_constant(16, "d"), 0x7d0000001100u);  // 16 + 4096, then the next multiple of 256
  EXPECT_EQ(memory.allocate(1, "z"), 0x400000000u);               // constants have a separate bank
}

// An array that ends less than 1 GiB before a multiple of 4 GiB leaves the next slot empty.
TEST(DeviceMemory, AtLeastAGibibyteIsUnmappedBehindALargeArray) {
  constexpr std::uint64_t kGibibyte = std::uint64_t{1} << 30;
  EXPECT_EQ(DeviceMemory::place_behind(0x200000000 + 1), 0x300000000u);
  EXPECT_EQ(DeviceMemory::place_behind(0x200000000 + 3 * kGibibyte), 0x300000000u);
  EXPECT_EQ(DeviceMemory::place_behind(0x200000000 + 3 * kGibibyte + 1), 0x400000000u);
  EXPECT_EQ(DeviceMemory::place_behind(0x300000000 + 10 * kGibibyte), 0x600000000u);
}

// A kernel's malloc returns many small blocks: they form one heap and use no slot of arrays.
TEST(DeviceMemory, BlocksOfTheHeapAreApartFromArraysAndFourKibibytesFromEachOther) {
  DeviceMemory memory;
  EXPECT_EQ(memory.allocate(100, "malloc", false, true), 0x700000000000u);
  EXPECT_EQ(memory.allocate(100, "malloc", false, true), 0x700000001100u);
  EXPECT_EQ(memory.allocate(1, "x"), 0x200000000u);
}

// The limit documented in the header, and the error past it; free does not make addresses available again, so that a
// use after free can be reported by name.
TEST(DeviceMemory, HasAddressesFor28670ArraysAndNoMore) {
  DeviceMemory memory;
  for (int i = 0; i < 28670; ++i) memory.free(memory.allocate(1, "x"));
  EXPECT_EQ(error_of<OverflowError>([&] { memory.allocate(1, "y"); }),
            "allocation 'y' of 1 bytes: the addresses from 0x200000000 to 0x700000000000 are used up: every allocation "
            "there begins at a multiple of 4294967296 bytes, 1073741824 or more behind the end of the one before, and "
            "freed addresses are not given out again: make fewer, larger allocations, or a new device");
  EXPECT_NO_THROW(memory.allocate(1, "malloc", false, true));
}

TEST(DeviceMemory, UninitializedMemoryIsFilledWithFf) {
  DeviceMemory memory;
  EXPECT_EQ(memory.read(memory.allocate(2, "a", false), 2), (std::vector<std::byte>(2, std::byte{0xff})));
  EXPECT_EQ(memory.read(memory.allocate(2, "b"), 2), (std::vector<std::byte>(2)));
}

// Memory of a graph. The old values, and a limit that the second allocation does not count against, would go unnoticed.
TEST(DeviceMemory, AFreedArrayIsAllocatedAgainAtItsAddress) {
  DeviceMemory memory(100);
  const std::uint64_t x = memory.allocate(60, "x");
  EXPECT_THROW(memory.allocate_again(x), GeometryError);
  memory.free(x);
  EXPECT_THROW(memory.allocate_again(x + 1), GeometryError);
  memory.allocate_again(x);
  EXPECT_EQ(memory.read(x, 60), (std::vector<std::byte>(60, std::byte{0xff})));
  EXPECT_FALSE(memory.find(x)->initialized);
  EXPECT_EQ(memory.room(), 40);
  memory.free(x);
  memory.allocate(41, "y");
  EXPECT_EQ(error_of<OverflowError>([&] { memory.allocate_again(x); }),
            "allocation 'x' of 60 bytes: 59 of the device's 100 bytes are left: smaller arrays, or a larger limit: "
            "--max-memory");
}

TEST(DeviceMemory, ARangeLiesInOneLiveAllocationOrIsNamed) {
  DeviceMemory memory;
  const std::uint64_t x = memory.allocate(64, "x");
  EXPECT_NE(memory.at(x + 60, 4), nullptr);
  EXPECT_EQ(memory.at(x + 61, 4), nullptr);
  EXPECT_EQ(memory.at(x - 1, 1), nullptr);
  EXPECT_EQ(error_of<IllegalAddress>([&] { static_cast<void>(memory.read(x + 62, 4)); }),
            "read of 4 bytes at 0x20000003e: it begins at byte 62 of 'x', which has 64");
  EXPECT_EQ(error_of<IllegalAddress>([&] { static_cast<void>(memory.read(x + 74, 4)); }),
            "read of 4 bytes at 0x20000004a: 10 bytes past the end of 'x'");
  EXPECT_EQ(error_of<IllegalAddress>([&] { memory.write(x - 8, std::vector<std::byte>(4)); }),
            "write of 4 bytes at 0x1fffffff8: 8 bytes before 'x'");
  memory.free(x);
  EXPECT_EQ(memory.at(x, 4), nullptr);
  EXPECT_EQ(error_of<IllegalAddress>([&] { static_cast<void>(memory.read(x, 4)); }),
            "read of 4 bytes at 0x200000000: 'x' has been freed");
  EXPECT_EQ(error_of<GeometryError>([&] { memory.free(x); }), "free of 0x200000000: it has been freed already");
  EXPECT_EQ(error_of<GeometryError>([&] { memory.free(x + 1); }), "free of 0x200000001: no allocation begins there");
}

TEST(DeviceMemory, HasSoMuchAndNoMore) {
  DeviceMemory memory(100);
  const std::uint64_t x = memory.allocate(60, "x");
  EXPECT_EQ(error_of<OverflowError>([&] { memory.allocate(41, "y"); }),
            "allocation 'y' of 41 bytes: 40 of the device's 100 bytes are left: smaller arrays, or a larger limit: "
            "--max-memory");
  memory.free(x);
  EXPECT_NO_THROW(memory.allocate(100, "z"));
  EXPECT_EQ(error_of<GeometryError>([&] { memory.allocate(0, "n"); }), "allocation 'n' of 0 bytes: at least 1");
}

// A copy of the machine has separate memory.
TEST(DeviceMemory, ACopyIsASecondMemory) {
  DeviceMemory memory;
  const std::uint64_t x = memory.allocate(4, "x");
  DeviceMemory other = memory;
  other.write(x, std::vector<std::byte>(4, std::byte{7}));
  EXPECT_EQ(memory.read(x, 1)[0], std::byte{0});
}

// Pinned memory: the host and the device have the same bytes, also after a debugger has gone back.
TEST(DeviceMemory, LentBytesAreThoseOfTheCaller) {
  std::vector<std::byte> host(8, std::byte{1});
  DeviceMemory memory;
  const std::uint64_t own = memory.allocate(4, "own"), x = memory.allocate(8, "x");
  memory.lend(x, host.data());
  EXPECT_EQ(memory.read(x, 8), host);
  memory.write(x + 4, std::vector<std::byte>(4, std::byte{2}));
  EXPECT_EQ(host[4], std::byte{2});
  const DeviceMemory before = memory;
  host[0] = std::byte{3};
  EXPECT_EQ(memory.read(x, 1)[0], std::byte{3});
  EXPECT_EQ(before.read(x, 1)[0], std::byte{1}) << "a copy has its own bytes";
  memory.write(own, std::vector<std::byte>(4, std::byte{9}));
  memory.restore(before);
  EXPECT_EQ(memory.read(own, 1)[0], std::byte{0});
  EXPECT_EQ(host[0], std::byte{1});
  EXPECT_EQ(host[4], std::byte{2});
  host[0] = std::byte{4};
  EXPECT_EQ(memory.read(x, 1)[0], std::byte{4});
  memory.free(x);
  EXPECT_EQ(host[0], std::byte{4});
  EXPECT_EQ(error_of<GeometryError>([&] { memory.lend(x, host.data()); }),
            "lend of 0x300000000: it has been freed already");
}

TEST(DeviceMemory, TheNearestAllocationIsFoundOnBothSides) {
  DeviceMemory memory;
  EXPECT_EQ(memory.nearest(5), nullptr);
  const std::uint64_t x = memory.allocate(16, "x"), y = memory.allocate(16, "y");
  const std::uint64_t middle = x + 16 + (y - x - 16) / 2;
  for (const auto& [address, name] : std::vector<std::pair<std::uint64_t, std::string>>{
           {0, "x"}, {x, "x"}, {x + 15, "x"}, {middle, "x"}, {middle + 1, "y"}, {y, "y"}, {~std::uint64_t{0}, "y"}})
    EXPECT_EQ(memory.nearest(address)->name, name) << address;
}

TEST(Windows, SpacesStandWhereTheyAreSaidToStand) {
  EXPECT_EQ(to_generic(Space::shared, 0x01000410), 0x7f0001000410u);
  EXPECT_EQ(from_generic(Space::shared, 0x7f0001000410), 0x01000410u);
  EXPECT_EQ(rank_of(0x01000410), 1u);
  EXPECT_EQ(offset_of(0x01000410), 0x410u);
  EXPECT_EQ(space_of(std::uint64_t{0x7e0000000010}), Space::local);
  EXPECT_EQ(space_of(std::uint64_t{0x7d0000000000}), Space::constant);
  EXPECT_EQ(space_of(std::uint64_t{0x7c00ffffffff}), Space::param);
  EXPECT_EQ(space_of(std::uint64_t{0x7c0100000000}), Space::global);
  for (std::uint64_t high = 0x7000; high < 0x9000; ++high) {
    EXPECT_EQ(is_in_window(high << 32 | 5), space_of(high << 32 | 5) != Space::global) << high;
  }
  EXPECT_EQ(to_generic(Space::constant, 0x10), 0x7d0000000010u);
  EXPECT_EQ(from_generic(Space::constant, 0x7d0000000010), 0x7d0000000010u);
}

}  // namespace
}  // namespace kvscope::ptx::device_memory_test
