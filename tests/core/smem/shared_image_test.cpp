#include "core/smem/shared_image.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "tests/property.h"

namespace kvscope::shared_image_test {
namespace {

template <class Error, class F>
std::string message_of(F f) {
  try {
    (void)f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no such error";
}

std::vector<std::byte> chunk_of(int count, int value) {
  return std::vector<std::byte>(static_cast<std::size_t>(count), static_cast<std::byte>(value));
}

TEST(SharedImage, BeginsAsPoisonWithoutWriters) {
  const SharedImage image(5);
  EXPECT_EQ(image.size(), 5);
  for (std::int64_t a = 0; a < 5; ++a) {
    EXPECT_EQ(image.bytes()[static_cast<std::size_t>(a)], std::byte{0xCD});
    EXPECT_EQ(image.writer(a), SharedImage::kNoCopy);
  }
  EXPECT_EQ(SharedImage(3, std::byte{0xEE}).read(2, 1)[0], std::byte{0xEE});
  EXPECT_EQ(SharedImage(0).read(0, 0).size(), 0u);  // no bytes at the end are inside
}

// A copy of 16 bytes at 144: bytes 143 and 160 keep their writers. Bytes and writers disagree when one range is filled
// with the other's count.
TEST(SharedImage, KeepsEachBytesLastWriter) {
  SharedImage image(1024);
  image.write(144, chunk_of(16, 0x11), CopyIdx{3});
  EXPECT_EQ(image.writer(143), SharedImage::kNoCopy);
  EXPECT_EQ(image.writer(144), CopyIdx{3});
  EXPECT_EQ(image.writer(159), CopyIdx{3});
  EXPECT_EQ(image.writer(160), SharedImage::kNoCopy);
  image.write(152, chunk_of(3, 0x22), CopyIdx{4});
  EXPECT_EQ(image.writer(151), CopyIdx{3});
  EXPECT_EQ(image.writer(152), CopyIdx{4});
  EXPECT_EQ(image.writer(154), CopyIdx{4});
  EXPECT_EQ(image.writer(155), CopyIdx{3});
  EXPECT_EQ(image.read(151, 2)[0], std::byte{0x11});
  EXPECT_EQ(image.read(151, 2)[1], std::byte{0x22});
  EXPECT_EQ(image.writers()[152], 4);
  image.write(152, chunk_of(1, 0x33), SharedImage::kNoCopy);  // a pattern of the test, no copy
  EXPECT_EQ(image.writer(152), SharedImage::kNoCopy);
}

TEST(SharedImage, RejectsWhatLeavesItAndWritesNothingThen) {
  SharedImage image(1024);
  EXPECT_EQ(
      message_of<IndexError>([&] {
        image.write(1020, chunk_of(5, 1), CopyIdx{0});
        return 0;
      }),
      "write of 5 B at address 1020 leaves the shared memory of 1024 B: use addresses of the CTA's window, in bytes");
  EXPECT_EQ(image.writer(1020), SharedImage::kNoCopy);
  EXPECT_EQ(image.read(1020, 4)[0], SharedImage::kPoison);
  image.write(1020, chunk_of(4, 1), CopyIdx{0});  // up to the last byte is inside
  EXPECT_EQ(
      message_of<IndexError>([&] { return image.read(-1, 1); }),
      "read of 1 B at address -1 leaves the shared memory of 1024 B: use addresses of the CTA's window, in bytes");
  EXPECT_EQ(
      message_of<IndexError>([&] { return image.read(4, -1); }),
      "read of -1 B at address 4 leaves the shared memory of 1024 B: use addresses of the CTA's window, in bytes");
  EXPECT_THROW((void)image.read(1024, 1), IndexError);
  EXPECT_THROW((void)image.read(std::numeric_limits<std::int64_t>::max(), 16), IndexError);
  EXPECT_EQ(
      message_of<IndexError>([&] { return image.writer(1024); }),
      "writer of 1 B at address 1024 leaves the shared memory of 1024 B: use addresses of the CTA's window, in bytes");
  EXPECT_THROW(image.write(0, chunk_of(1, 1), CopyIdx{std::int64_t{1} << 31}), OverflowError);
  EXPECT_EQ(message_of<IndexError>([&] {
              image.write(0, chunk_of(1, 1), CopyIdx{-2});
              return 0;
            }),
            "copy -2: number copies from 0 on");
  EXPECT_EQ(image.writer(0), SharedImage::kNoCopy);
  EXPECT_EQ(message_of<IndexError>([&] { return image.unwritten(1000, 25); }),
            "unwritten of 25 B at address 1000 leaves the shared memory of 1024 B: use addresses of the CTA's window, "
            "in bytes");
}

// The returned span is at the requested address, and its bytes have the copy as their writer immediately.
TEST(SharedImage, GivesBytesOutToBeFilled) {
  SharedImage image(40);
  const std::span<std::byte> bytes = image.overwrite(20, 16, CopyIdx{2});
  ASSERT_EQ(bytes.size(), 16u);
  std::fill(bytes.begin(), bytes.end(), std::byte{0x5A});
  for (std::int64_t a = 0; a < 40; ++a) {
    const bool inside = a >= 20 && a < 36;
    EXPECT_EQ(image.read(a, 1)[0], inside ? std::byte{0x5A} : SharedImage::kPoison) << a;
    EXPECT_EQ(image.writer(a), inside ? CopyIdx{2} : SharedImage::kNoCopy) << a;
  }
  EXPECT_EQ(image.unwritten(0, 40), 24);
  EXPECT_EQ(image.unwritten(16, 16), 4);  // a whole chunk of two
  EXPECT_THROW((void)image.overwrite(25, 16, CopyIdx{3}), IndexError);
  EXPECT_EQ(image.writer(25), CopyIdx{2});
}

TEST(SharedImage, RejectsSizesThatNoWindowHas) {
  EXPECT_EQ(message_of<GeometryError>([] { return SharedImage(-1); }),
            "shared memory of -1 B is outside [0, 2147483648]");
  EXPECT_EQ(message_of<GeometryError>([] { return SharedImage((std::int64_t{1} << 31) + 1); }),
            "shared memory of 2147483649 B is outside [0, 2147483648]");
}

// After random writes, every byte is that of the last write to it: compared with a backwards search of the history.
TEST(SharedImage, HoldsTheLastOfAnyWrites) {
  EXPECT_TRUE(prop::check("every byte is that of the last write to it", [] {
    struct Write {
      std::int64_t from, count;
      int value;
    };
    const auto size = prop::in_range<std::int64_t>(1, 70);
    SharedImage image(size);
    std::vector<Write> history;
    const int writes = prop::in_range(0, 12);
    for (int i = 0; i < writes; ++i) {
      const auto from = prop::in_range<std::int64_t>(0, size);
      history.push_back({from, prop::in_range<std::int64_t>(0, size - from + 1), prop::in_range(0, 256)});
      image.write(from, chunk_of(static_cast<int>(history.back().count), history.back().value), CopyIdx{i});
    }
    const std::vector<std::int32_t> all = image.writers();
    RC_ASSERT(static_cast<std::int64_t>(all.size()) == size);
    std::vector<std::int64_t> unwritten_before{0};  // [a] of the bytes before a
    for (std::int64_t a = 0; a < size; ++a) {
      int last = writes - 1;
      while (last >= 0 &&
             (a < history[static_cast<std::size_t>(last)].from ||
              a >= history[static_cast<std::size_t>(last)].from + history[static_cast<std::size_t>(last)].count)) {
        --last;
      }
      RC_ASSERT(image.writer(a).value == last);
      RC_ASSERT(all[static_cast<std::size_t>(a)] == last);
      unwritten_before.push_back(unwritten_before.back() + (last < 0 ? 1 : 0));
      RC_ASSERT(static_cast<int>(image.read(a, 1)[0]) ==
                (last < 0 ? 0xCD : history[static_cast<std::size_t>(last)].value));
    }
    const auto from = prop::in_range<std::int64_t>(0, size + 1), to = prop::in_range<std::int64_t>(from, size + 1);
    RC_ASSERT(image.unwritten(from, to - from) ==
              unwritten_before[static_cast<std::size_t>(to)] - unwritten_before[static_cast<std::size_t>(from)]);
  }));
}

}  // namespace
}  // namespace kvscope::shared_image_test
