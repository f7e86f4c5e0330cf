#include "gpu/driver/fat_binary.h"

#include <dlfcn.h>
#include <gmock/gmock.h>

#include "core/base/errors.h"
#include "tests/gpu/driver/fat_program.h"

namespace kvscope::driver_tests::fat_binary_test {

using testing::HasSubstr;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

TEST(FatBinary, HasEveryEntryOfTheContainer) {
  const std::string container = fat_container({{.kind = 2, .architecture = 80, .payload = "code"},
                                               {.architecture = 90, .payload = ".target sm_90a\n"},
                                               {.architecture = 75, .payload = ".target sm_75\n"}});
  const auto entries = driver::read_fat_binary(bytes_of(container));
  ASSERT_EQ(entries.size(), 3);
  EXPECT_FALSE(entries[0].is_ptx);
  EXPECT_EQ(entries[0].architecture, 80);
  EXPECT_EQ(entries[1].text, ".target sm_90a\n");  // without the padding
  EXPECT_EQ(driver::contents_text(entries), "machine code for sm_80; PTX for sm_75, sm_90a");
}

// sm_90a code runs on sm_90a only; sm_80 code runs on anything later. A reader that takes the largest number would choose code
// that the target cannot run.
TEST(FatBinary, TheNewestPtxThatTheTargetRunsIsChosen) {
  const auto entries = driver::read_fat_binary(bytes_of(fat_container({{.payload = ".target sm_80\n"},
                                                                       {.payload = ".target sm_90\n"},
                                                                       {.payload = ".target sm_90a\n"},
                                                                       {.payload = ".target sm_120a\n"}})));
  EXPECT_EQ(driver::choose_ptx(entries, 90), &entries[2]);
  EXPECT_EQ(driver::choose_ptx(entries, 100), &entries[1]);
  EXPECT_EQ(driver::choose_ptx(entries, 120), &entries[3]);
  EXPECT_EQ(driver::choose_ptx(entries, 75), nullptr);
}

// Literals "abcd", a match of 8 bytes 4 back, then the literals "xy".
TEST(FatBinary, AnLz4BlockIsDecompressed) {
  const std::string block(
      "\x44"
      "abcd"
      "\x04\x00"
      "\x20"
      "xy",
      10);
  EXPECT_EQ(driver::lz4_block(bytes_of(block), 14), "abcdabcdabcdxy");
  EXPECT_THROW((void)driver::lz4_block(bytes_of(block), 13), InputError);
  const std::string far(
      "\x44"
      "abcd"
      "\x05\x00"
      "\x20"
      "xy",
      10);  // 5 back, and 4 bytes so far
  EXPECT_THROW((void)driver::lz4_block(bytes_of(far), 14), InputError);

  const std::string container = fat_container({{.flags = 0x2011, .payload = block, .packed = 10, .decompressed = 14}});
  EXPECT_EQ(driver::read_fat_binary(bytes_of(container)).at(0).text, "abcdabcdabcdxy");
}

// A frame of one raw block, written by hand: magic number, one-segment header with the size, block header, bytes.
TEST(FatBinary, AZstdFrameIsDecompressed) {
  if (dlopen("libzstd.so.1", RTLD_NOW) == nullptr) GTEST_SKIP() << "libzstd.so.1 is not installed";
  const std::string frame(
      "\x28\xb5\x2f\xfd"
      "\x20\x05"
      "\x29\x00\x00"
      "hello",
      14);
  const FatPart part{.flags = 0x8011, .payload = frame, .packed = 14, .decompressed = 5};
  EXPECT_EQ(driver::read_fat_binary(bytes_of(fat_container({part}))).at(0).text, "hello");
  FatPart damaged = part;
  damaged.decompressed = 6;
  EXPECT_THAT(driver::read_fat_binary(bytes_of(fat_container({damaged}))).at(0).unreadable, HasSubstr("zstd"));
}

TEST(FatBinary, ADamagedContainerIsRejected) {
  const std::string good = fat_container({{.payload = ".target sm_90a\n"}});
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_THROW((void)driver::read_fat_binary(bytes_of(good.substr(0, size))), InputError) << size;
  std::string other = good;
  other[0] = 'x';
  EXPECT_THROW((void)driver::read_fat_binary(bytes_of(other)), InputError);
}

}  // namespace kvscope::driver_tests::fat_binary_test
