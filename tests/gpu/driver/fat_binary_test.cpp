#include "gpu/driver/fat_binary.h"

#include <dlfcn.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <random>

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
  FatPart other = part;  // no frame: another magic number
  other.payload[0] = 'x';
  EXPECT_THAT(driver::read_fat_binary(bytes_of(fat_container({other}))).at(0).unreadable,
              HasSubstr("its zstd frame does not decompress to 5 bytes"));
  FatPart damaged = part;
  damaged.decompressed = 6;
  EXPECT_THAT(driver::read_fat_binary(bytes_of(fat_container({damaged}))).at(0).unreadable, HasSubstr("zstd"));
}

std::string fault_of(const std::string& container) {
  try {
    (void)driver::read_fat_binary(bytes_of(container));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(FatBinary, ADamagedContainerIsRejected) {
  const std::string good = fat_container({{.payload = ".target sm_90a\n"}});
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_THROW((void)driver::read_fat_binary(bytes_of(good.substr(0, size))), InputError) << size;
  std::string other = good;
  other[0] = 'x';
  EXPECT_EQ(fault_of(other), "fat binary rejected: byte 0: not a fat binary: another magic number");
}

// Sizes of the container and of its second entry at the edges of what they may be. 2^64 - 1 plus a header wraps to a small number.
TEST(FatBinary, SizesThatDoNotFitAreRejectedWithTheirPlace) {
  const std::string good = fat_container({{.payload = ".target sm_75\n"}, {.payload = ".target sm_90a\n"}});
  ASSERT_EQ(fault_of(good), "");
  const std::size_t second = 16 + 64 + 16;
  const auto with = [&](std::size_t at, auto value) {
    std::string out = good;
    put(out, at, value);
    return fault_of(out);
  };
  const std::string container = "fat binary rejected: byte 8: the entries end after the container";
  EXPECT_EQ(with(6, std::uint16_t{15}), container);
  EXPECT_EQ(with(6, std::uint16_t{17}), container);
  EXPECT_EQ(with(6, std::uint16_t{0xffff}), container);
  EXPECT_EQ(with(8, std::uint64_t{good.size() - 15}), container);
  EXPECT_EQ(with(8, ~std::uint64_t{0}), container);
  const std::string entry = "fat binary rejected: byte 96: an entry ends after the container";
  EXPECT_EQ(with(second + 4, std::uint32_t{63}), entry);
  EXPECT_EQ(with(second + 4, std::uint32_t{81}), entry);
  EXPECT_EQ(with(second + 4, ~std::uint32_t{0}), entry);
  EXPECT_EQ(with(second + 8, std::uint64_t{17}), entry);
  EXPECT_EQ(with(second + 8, ~std::uint64_t{0}), entry);
}

// The entry's fault does not hide the readable PTX beside it, and is part of the message if no PTX can be chosen.
TEST(FatBinary, PtxThatCannotBeDecompressedIsReportedBesideTheRest) {
  const std::string block("\x50" "hello", 6);
  const auto entry_of = [&](FatPart part) {
    return driver::read_fat_binary(bytes_of(fat_container({part, {.payload = ".target sm_80\n"}})));
  };
  FatPart part{.flags = 0x2011, .payload = block, .packed = 6, .decompressed = 5};
  EXPECT_EQ(entry_of(part).at(0).text, "hello");
  part.decompressed = (std::uint64_t{256} << 20) + 1;
  auto entries = entry_of(part);
  EXPECT_EQ(entries.at(0).unreadable, "fat binary rejected: PTX: 268435457 bytes after decompression: at most 268435456");
  EXPECT_EQ(driver::choose_ptx(entries, 90), &entries[1]);
  EXPECT_EQ(driver::contents_text(entries), "no machine code; PTX for sm_80; PTX that cannot be read: " + entries[0].unreadable);
  // More compressed bytes than the entry has were replaced by all of its bytes, with the padding.
  part.decompressed = 5;
  part.packed = 9;
  EXPECT_EQ(entry_of(part).at(0).unreadable, "fat binary rejected: PTX: 9 compressed bytes, and the entry has 8");
}

// Code of a family runs on the members from its number on: sm_100f on sm_100 and sm_103, sm_103f on sm_103, sm_120f on sm_121.
TEST(FatBinary, CodeOfAFamilyRunsOnItsLaterMembersOnly) {
  const auto runs = [](const char* text, int target) {
    const auto entries = driver::read_fat_binary(bytes_of(fat_container({{.payload = text}})));
    return driver::choose_ptx(entries, target) != nullptr;
  };
  EXPECT_TRUE(runs(".target sm_100f\n", 100));
  EXPECT_TRUE(runs(".target sm_100f\n", 103));
  EXPECT_FALSE(runs(".target sm_103f\n", 100));
  EXPECT_FALSE(runs(".target sm_100f\n", 120));
  EXPECT_FALSE(runs(".target sm_100f\n", 90));
  EXPECT_FALSE(runs(".target sm_100a\n", 103));
  EXPECT_TRUE(runs(".target sm_100\n", 120));
  // Of the same number, code for exactly this target is preferred to that of the family, and that to code for any.
  const auto entries = driver::read_fat_binary(bytes_of(fat_container(
      {{.payload = ".target sm_100a\n"}, {.payload = ".target sm_100f\n"}, {.payload = ".target sm_100, debug\n"}})));
  EXPECT_EQ(driver::choose_ptx(entries, 100), &entries[0]);
  EXPECT_EQ(driver::choose_ptx(entries, 103), &entries[1]);
  EXPECT_EQ(driver::choose_ptx(entries, 120), &entries[2]);
  EXPECT_EQ(driver::contents_text(entries), "no machine code; PTX for sm_100, sm_100a, sm_100f");
}

// They were PTX for sm_0, which runs everywhere, and a number of 10 digits or more overflowed an int.
TEST(FatBinary, PtxWithoutATargetIsNotChosen) {
  for (const char* text : {"", "ret;\n", ".target ", ".target sm_", ".target sm_x\n", ".target sm_4294967386\n",
                           ".target sm_99999999999999999999a\n"}) {
    const auto entries = driver::read_fat_binary(bytes_of(fat_container({{.payload = text}})));
    EXPECT_EQ(driver::choose_ptx(entries, 90), nullptr) << text;
    EXPECT_EQ(driver::contents_text(entries), "no machine code; no PTX; PTX without a target") << text;
  }
}

// LZ4, written from its description: a token, literals, an offset, a match of 4 bytes at least; lengths from 15 on continue in bytes
// of 255. Matches here are the longest at the nearest place.
std::string lz4_packed(const std::string& text) {
  std::string out;
  const auto more = [&](std::size_t length) {
    if (length < 15) return;
    for (length -= 15; length >= 255; length -= 255) out += '\xff';
    out += static_cast<char>(length);
  };
  std::size_t at = 0, literal = 0;
  const auto literals = [&](std::size_t match) {
    const std::size_t count = at - literal;
    out += static_cast<char>(std::min<std::size_t>(count, 15) << 4 | std::min<std::size_t>(match, 15));
    more(count);
    out += text.substr(literal, count);
  };
  while (at < text.size()) {
    std::size_t best = 0, offset = 0;
    for (std::size_t back = 1; back <= std::min<std::size_t>(at, 300); ++back) {
      std::size_t n = 0;
      while (at + n < text.size() && text[at + n - back] == text[at + n]) ++n;
      if (n > best) best = n, offset = back;
    }
    if (best < 4 || at + best >= text.size()) {
      ++at;
      continue;
    }
    literals(best - 4);
    out += static_cast<char>(offset & 255);
    out += static_cast<char>(offset >> 8);
    more(best - 4);
    at += best;
    literal = at;
  }
  literals(0);
  return out;
}

// Lengths on both sides of 15, 15 + 255 and 15 + 2 * 255, where the number of their bytes changes.
TEST(FatBinary, Lz4BlocksOfAnyLengthsAreDecompressed) {
  std::mt19937_64 random(7);
  const auto noise = [&](std::size_t size) {
    std::string out(size, ' ');
    for (char& c : out) c = static_cast<char>(random());
    return out;
  };
  for (const std::size_t literals : std::vector<std::size_t>{0, 1, 14, 15, 16, 269, 270, 271, 524, 525, 526}) {
    for (const std::size_t match : std::vector<std::size_t>{4, 18, 19, 20, 273, 274, 275, 529}) {
      const std::string text = noise(5) + noise(literals) + std::string(match + 1, 'm') + noise(9);
      const std::string block = lz4_packed(text);
      EXPECT_EQ(driver::lz4_block(bytes_of(block), text.size()), text) << literals << " " << match;
    }
  }
}

// A cut block, and one whose size is stated wrongly, are rejected; no change of a byte makes it read or write elsewhere.
TEST(FatBinary, ADamagedLz4BlockIsRejectedOrHasItsSize) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += "mov.u32 %r" + std::to_string(i * i) + ", %tid.x;\n";
  const std::string block = lz4_packed(text);
  ASSERT_LT(block.size(), text.size());
  for (std::size_t size = 0; size < block.size(); ++size)
    EXPECT_THROW((void)driver::lz4_block(bytes_of(block.substr(0, size)), text.size()), InputError) << size;
  EXPECT_THROW((void)driver::lz4_block(bytes_of(block), text.size() - 1), InputError);
  EXPECT_THROW((void)driver::lz4_block(bytes_of(block), text.size() + 1), InputError);
  int rejected = 0;
  for (std::size_t at = 0; at < block.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = block;
      damaged[at] = static_cast<char>(damaged[at] ^ 1 << bit);
      try {
        EXPECT_EQ(driver::lz4_block(bytes_of(damaged), text.size()).size(), text.size());
      } catch (const InputError&) {
        ++rejected;
      }
    }
  }
  EXPECT_GT(rejected, 100);
  EXPECT_THROW((void)driver::lz4_block(bytes_of(std::string("\x14" "a\x00\x00" "\x10" "b", 6)), 10), InputError);  // offset 0
}

TEST(FatBinary, TheContainerInMemoryEndsWhereItsHeaderSays) {
  std::string bytes = fat_container({{.payload = ".target sm_90a\n"}}) + "what follows";
  EXPECT_EQ(driver::fat_binary_at(bytes.data()).size(), bytes.size() - 12);
  put(bytes, 0, std::uint32_t{0x464c457f});
  try {
    (void)driver::fat_binary_at(bytes.data());
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "fat binary rejected: byte 0: magic number 0x464c457f, expected 0xba55ed50");
  }
}

}  // namespace kvscope::driver_tests::fat_binary_test
