#include "gpu/driver/fat_binary.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string_view>

#include "core/base/errors.h"

namespace kvscope::driver {
namespace {

constexpr std::uint32_t kContainerMagic = 0xba55ed50;
constexpr std::uint64_t kLz4Flag = 0x2000, kZstdFlag = 0x8000;
constexpr std::uint64_t kMostText = std::uint64_t{256} << 20;  // [bytes] of one PTX text
constexpr std::size_t kEntryHeader = 64;

[[noreturn]] void damaged(std::size_t at, const std::string& message) {
  throw InputError("fat binary", fmt::format("byte {}", at), message);
}

template <class T>
T number_at(std::span<const std::byte> bytes, std::size_t at) {
  if (at > bytes.size() || bytes.size() - at < sizeof(T)) damaged(at, "the container ends inside a header");
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// libzstd is loaded at run time: only programs with compressed PTX need it, and its interface has been stable since 1.0.
std::string zstd_frame(std::span<const std::byte> bytes, std::size_t size) {
  static void* const library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw InputError("fat binary", "PTX",
                     "it is compressed with zstd and libzstd.so.1 was not found: install libzstd1, or compile with "
                     "nvcc --no-compress");
  }
  using Decompress = std::size_t (*)(void*, std::size_t, const void*, std::size_t);
  using IsError = unsigned (*)(std::size_t);
  const auto decompress = reinterpret_cast<Decompress>(dlsym(library, "ZSTD_decompress"));
  const auto is_error = reinterpret_cast<IsError>(dlsym(library, "ZSTD_isError"));
  if (decompress == nullptr || is_error == nullptr)
    throw InputError("fat binary", "PTX", "libzstd.so.1 lacks ZSTD_decompress: install libzstd1 1.0 or newer");
  std::string out(size, '\0');
  const std::size_t made = decompress(out.data(), size, bytes.data(), bytes.size());
  if (is_error(made) != 0 || made != size)
    throw InputError("fat binary", "PTX", fmt::format("its zstd frame does not decompress to {} bytes", size));
  return out;
}

std::string text_of(std::span<const std::byte> payload, std::uint64_t flags, std::uint64_t size) {
  if ((flags & (kLz4Flag | kZstdFlag)) == 0) return {reinterpret_cast<const char*>(payload.data()), payload.size()};
  if (size > kMostText)
    throw InputError("fat binary", "PTX", fmt::format("{} bytes after decompression: at most {}", size, kMostText));
  return (flags & kZstdFlag) != 0 ? zstd_frame(payload, size) : lz4_block(payload, size);
}

// ".target sm_90a": the digits and the letter after them.
std::pair<int, char> target_of_text(std::string_view text) {
  const std::size_t at = text.find(".target sm_");
  if (at == std::string_view::npos) return {0, 0};
  int number = 0;
  std::size_t i = at + 11;
  for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i) number = number * 10 + (text[i] - '0');
  const char suffix = i < text.size() && (text[i] == 'a' || text[i] == 'f') ? text[i] : '\0';
  return {number, suffix};
}

}  // namespace

std::string lz4_block(std::span<const std::byte> bytes, std::size_t size) {
  std::string out;
  out.reserve(size);
  std::size_t at = 0;
  const auto next = [&]() -> std::size_t {
    if (at >= bytes.size()) damaged(at, "the LZ4 block ends early");
    return static_cast<std::size_t>(bytes[at++]);
  };
  const auto length = [&](std::size_t nibble) {
    std::size_t n = nibble;
    if (nibble == 15) {
      for (std::size_t more = 255; more == 255;) n += more = next();
    }
    return n;
  };
  while (at < bytes.size()) {
    const std::size_t token = next();
    const std::size_t literals = length(token >> 4);
    if (literals > bytes.size() - at || literals > size - out.size())
      damaged(at, "the LZ4 block has too many literals");
    out.append(reinterpret_cast<const char*>(bytes.data()) + at, literals);
    at += literals;
    if (at == bytes.size()) break;  // the last sequence has no match
    const std::size_t low = next();
    const std::size_t offset = low | next() << 8;
    const std::size_t match = length(token & 15) + 4;
    if (offset == 0 || offset > out.size() || match > size - out.size()) damaged(at, "the LZ4 block has a wrong match");
    for (std::size_t i = 0; i < match; ++i) out.push_back(out[out.size() - offset]);
  }
  if (out.size() != size) damaged(at, fmt::format("the LZ4 block has {} bytes, expected {}", out.size(), size));
  return out;
}

std::span<const std::byte> fat_binary_at(const void* address) {
  std::uint32_t magic = 0;
  std::uint16_t header = 0;
  std::uint64_t entries = 0;
  const auto* const bytes = static_cast<const std::byte*>(address);
  std::memcpy(&magic, bytes, sizeof magic);
  if (magic != kContainerMagic)
    damaged(0, fmt::format("magic number 0x{:08x}, expected 0x{:08x}", magic, kContainerMagic));
  std::memcpy(&header, bytes + 6, sizeof header);
  std::memcpy(&entries, bytes + 8, sizeof entries);
  return {bytes, header + static_cast<std::size_t>(entries)};
}

std::vector<FatEntry> read_fat_binary(std::span<const std::byte> bytes) {
  if (number_at<std::uint32_t>(bytes, 0) != kContainerMagic) damaged(0, "not a fat binary: another magic number");
  std::size_t at = number_at<std::uint16_t>(bytes, 6);
  const auto total = number_at<std::uint64_t>(bytes, 8);
  if (at < 16 || at > bytes.size() || total > bytes.size() - at) damaged(8, "the entries end after the container");
  const std::size_t end = at + static_cast<std::size_t>(total);
  std::vector<FatEntry> out;
  while (at < end) {
    const auto header = number_at<std::uint32_t>(bytes, at + 4);
    const auto padded = number_at<std::uint64_t>(bytes, at + 8);
    if (header < kEntryHeader || header > end - at || padded > end - at - header)
      damaged(at, "an entry ends after the container");
    FatEntry entry;
    entry.is_ptx = number_at<std::uint16_t>(bytes, at) == 1;
    entry.architecture = static_cast<int>(number_at<std::uint32_t>(bytes, at + 28));
    if (entry.is_ptx) {
      const auto flags = number_at<std::uint64_t>(bytes, at + 40);
      const auto packed = number_at<std::uint32_t>(bytes, at + 16);
      const auto payload = bytes.subspan(at + header, packed != 0 && packed <= padded ? packed : padded);
      try {
        entry.text = text_of(payload, flags, number_at<std::uint64_t>(bytes, at + 56));
      } catch (const InputError& error) {
        entry.unreadable = error.what();
      }
      // The payload is padded with zeros.
      while (!entry.text.empty() && entry.text.back() == '\0') entry.text.pop_back();
    }
    out.push_back(std::move(entry));
    at += header + static_cast<std::size_t>(padded);
  }
  return out;
}

const FatEntry* choose_ptx(const std::vector<FatEntry>& entries, int target) {
  const FatEntry* best = nullptr;
  int best_rank = 0;
  for (const FatEntry& entry : entries) {
    if (!entry.is_ptx || entry.text.empty()) continue;
    const auto [number, suffix] = target_of_text(entry.text);
    const bool runs = suffix == 'a'   ? number == target
                      : suffix == 'f' ? number / 10 == target / 10 && number <= target
                                      : number <= target;
    const int rank = number * 4 + (suffix == 'a' ? 3 : suffix == 'f' ? 2 : 1);
    if (runs && rank > best_rank) best = &entry, best_rank = rank;
  }
  return best;
}

std::string contents_text(const std::vector<FatEntry>& entries) {
  std::set<std::string> code, ptx;
  std::string unreadable;
  for (const FatEntry& entry : entries) {
    if (!entry.is_ptx) {
      code.insert(fmt::format("sm_{}", entry.architecture));
    } else if (entry.unreadable.empty()) {
      const auto [number, suffix] = target_of_text(entry.text);
      ptx.insert(suffix == 0 ? fmt::format("sm_{}", number) : fmt::format("sm_{}{}", number, suffix));
    } else {
      unreadable = entry.unreadable;
    }
  }
  const auto part = [](std::string_view what, const std::set<std::string>& names) {
    return names.empty() ? fmt::format("no {}", what) : fmt::format("{} for {}", what, fmt::join(names, ", "));
  };
  std::string out = part("machine code", code) + "; " + part("PTX", ptx);
  if (!unreadable.empty()) out += "; PTX that cannot be read: " + unreadable;
  return out;
}

}  // namespace kvscope::driver
