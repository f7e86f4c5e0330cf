#include "gpu/driver/fat_binary.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <string_view>

#include "core/base/errors.h"
#include "core/base/numbers.h"

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

struct Target {
  int number = 0;
  std::string_view
      suffix;  // "a": runs on this number only; "f": on the family's numbers from this one on; "": on all later
};

// ".target sm_90a" -> 90 and "a". Empty: the text has no target.
std::optional<Target> target_of_text(std::string_view text) {
  constexpr std::string_view kBefore = ".target sm_";
  constexpr std::size_t kMostDigits = 4;
  const std::size_t at = text.find(kBefore);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + kBefore.size());
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (digits == 0 || digits > kMostDigits) return std::nullopt;
  const std::string_view suffix = text.substr(digits, 1);
  return Target{*whole_number<int>(text.substr(0, digits)), suffix == "a" || suffix == "f" ? suffix : ""};
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
      try {
        if (packed > padded)
          throw InputError("fat binary", "PTX",
                           fmt::format("{} compressed bytes, and the entry has {}", packed, padded));
        const auto payload = bytes.subspan(at + header, packed != 0 ? packed : padded);
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
    const std::optional<Target> code = target_of_text(entry.text);
    if (!code) continue;
    const auto [number, suffix] = *code;
    const bool runs = suffix == "a"   ? number == target
                      : suffix == "f" ? number / 10 == target / 10 && number <= target
                                      : number <= target;
    const int rank = number * 4 + (suffix == "a" ? 3 : suffix == "f" ? 2 : 1);
    if (runs && rank > best_rank) best = &entry, best_rank = rank;
  }
  return best;
}

std::string contents_text(const std::vector<FatEntry>& entries) {
  std::set<std::string> code, ptx;
  std::string others;
  for (const FatEntry& entry : entries) {
    if (!entry.is_ptx) {
      code.insert(fmt::format("sm_{}", entry.architecture));
    } else if (!entry.unreadable.empty()) {
      others += "; PTX that cannot be read: " + entry.unreadable;
    } else if (const auto target = target_of_text(entry.text)) {
      ptx.insert(fmt::format("sm_{}{}", target->number, target->suffix));
    } else {
      others += "; PTX without a target";
    }
  }
  const auto part = [](std::string_view what, const std::set<std::string>& names) {
    return names.empty() ? fmt::format("no {}", what) : fmt::format("{} for {}", what, fmt::join(names, ", "));
  };
  return part("machine code", code) + "; " + part("PTX", ptx) + others;
}

}  // namespace kvscope::driver
