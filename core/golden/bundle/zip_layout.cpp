#include "core/golden/bundle/zip_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

namespace kvscope::golden {
namespace {

constexpr std::size_t kEndRecord = 22;  // [bytes] also below
constexpr std::size_t kZip64Locator = 20;
constexpr std::size_t kZip64Record = 56;  // without extensible data
constexpr std::size_t kDirectoryEntry = 46;
constexpr std::size_t kLocalHeader = 30;
constexpr std::uint64_t kIn64 = 0xffffffff;  // a 32-bit field whose value is in a zip64 field
constexpr std::uint64_t kDescriptorFlag = 8;
constexpr std::uint64_t kKnownFlags = 0x2 | 0x4 | kDescriptorFlag | 0x800;  // level of deflate, names in UTF-8
constexpr std::uint64_t kMostVersion = 63;                                  // 6.3, as in Python's zipfile

struct ZipMember {
  std::string_view name;
  std::uint64_t flags = 0, method = 0, crc = 0;
  std::uint64_t stored = 0, size = 0;  // [bytes] compressed and not
  std::uint64_t at = 0;                // [bytes] of its local header
};

// One archive. A fault that leaves no place to continue ends the check; `ok` is false then.
class ZipLayout {
 public:
  ZipLayout(std::string_view archive, std::vector<Fault>& faults) : archive_(archive), faults_(faults) {}

  void check() {
    if (!read_end() || !read_directory()) return;
    std::sort(members_.begin(), members_.end(), [](const ZipMember& a, const ZipMember& b) { return a.at < b.at; });
    std::uint64_t at = 0;
    for (const ZipMember& member : members_) {
      const std::string where = fmt::format("member '{}'", member.name);
      if (member.at != at) {
        faults_.push_back({where, member.at > at
                                      ? fmt::format("{} bytes before it belong to no member", member.at - at)
                                      : fmt::format("begins at {}, inside the member that ends at {}", member.at, at)});
        return;
      }
      const std::optional<std::uint64_t> end = member_end(member, where);
      if (!end) return;
      at = *end;
    }
    if (at != directory_at_) {
      faults_.push_back({"central directory", fmt::format("begins at {}, but the members end at {}: {}", directory_at_,
                                                          at, "bytes belong to no member or to two")});
    }
  }

 private:
  // `count` bytes at `at`, little-endian; the caller has checked the bounds.
  [[nodiscard]] std::uint64_t number(std::uint64_t at, int count) const {
    std::uint64_t value = 0;
    for (int i = count; i-- > 0;) {
      value =
          value << 8 | static_cast<unsigned char>(archive_[static_cast<std::size_t>(at) + static_cast<std::size_t>(i)]);
    }
    return value;
  }
  [[nodiscard]] bool has(std::uint64_t at, std::uint64_t count) const {
    return at <= archive_.size() && count <= archive_.size() - at;
  }
  [[nodiscard]] bool begins(std::uint64_t at, std::string_view signature) const {
    return archive_.substr(static_cast<std::size_t>(at)).starts_with(signature);
  }
  bool fault(std::string where, std::string message) {
    faults_.push_back({std::move(where), std::move(message)});
    return false;
  }

  bool read_end() {
    constexpr std::string_view kWhere = "end record";
    if (archive_.size() < kEndRecord || !begins(archive_.size() - kEndRecord, "PK\5\6")) {
      return fault(std::string(kWhere), "is not in the last 22 bytes: bytes follow the archive, or it has a comment");
    }
    const std::uint64_t at = archive_.size() - kEndRecord;
    if (number(at + 4, 2) != 0 || number(at + 6, 2) != 0) return fault(std::string(kWhere), "names several disks");
    if (number(at + 20, 2) != 0) return fault(std::string(kWhere), "names a comment, which the file does not have");
    count_ = number(at + 10, 2);
    if (number(at + 8, 2) != count_) return fault(std::string(kWhere), "gives two different counts of members");
    directory_size_ = number(at + 12, 4);
    directory_at_ = number(at + 16, 4);
    directory_end_ = at;
    const bool has_locator = at >= kZip64Locator && begins(at - kZip64Locator, "PK\6\7");
    if (has_locator && !read_end64(at - kZip64Locator)) return false;
    if (!has(directory_at_, directory_size_) || directory_at_ + directory_size_ != directory_end_) {
      return fault("central directory", fmt::format("{} bytes at {} do not end at {}, where the end record begins",
                                                    directory_size_, directory_at_, directory_end_));
    }
    return true;
  }

  bool read_end64(std::uint64_t locator) {
    const std::string where = "zip64 end record";
    const std::uint64_t at = number(locator + 8, 8);
    if (number(locator + 4, 4) != 0 || number(locator + 16, 4) != 1) return fault(where, "names several disks");
    if (!has(at, kZip64Record) || at + kZip64Record != locator || !begins(at, "PK\6\6") ||
        number(at + 4, 8) != kZip64Record - 12) {
      return fault(where, fmt::format("is not the 56 bytes before its locator at {}", locator));
    }
    if (number(at + 16, 4) != 0 || number(at + 20, 4) != 0) return fault(where, "names several disks");
    const auto agree = [](std::uint64_t narrow, std::uint64_t limit, std::uint64_t wide) {
      return narrow == limit || narrow == wide;
    };
    if (number(at + 24, 8) != number(at + 32, 8) || !agree(count_, 0xffff, number(at + 32, 8)) ||
        !agree(directory_size_, kIn64, number(at + 40, 8)) || !agree(directory_at_, kIn64, number(at + 48, 8))) {
      return fault(where, "differs from the end record in the count of members or the place of the directory");
    }
    count_ = number(at + 32, 8);
    directory_size_ = number(at + 40, 8);
    directory_at_ = number(at + 48, 8);
    directory_end_ = at;
    return true;
  }

  bool read_directory() {
    std::set<std::string_view> names;
    std::uint64_t at = directory_at_;
    for (std::uint64_t i = 0; i < count_; ++i) {
      const std::string where = fmt::format("entry {} of the central directory", i);
      if (directory_end_ - at < kDirectoryEntry || !begins(at, "PK\1\2")) return fault(where, "is damaged");
      const std::uint64_t name = number(at + 28, 2), extra = number(at + 30, 2), comment = number(at + 32, 2);
      const std::uint64_t length = kDirectoryEntry + name + extra + comment;
      if (directory_end_ - at < length) return fault(where, "runs past the end of the directory");
      ZipMember member;
      member.name = archive_.substr(static_cast<std::size_t>(at) + kDirectoryEntry, static_cast<std::size_t>(name));
      member.flags = number(at + 8, 2);
      member.method = number(at + 10, 2);
      member.crc = number(at + 16, 4);
      member.stored = number(at + 20, 4);
      member.size = number(at + 24, 4);
      member.at = number(at + 42, 4);
      if (number(at + 34, 2) != 0) return fault(where, "is on another disk");
      if (number(at + 6, 1) > kMostVersion) {
        return fault(
            where, fmt::format("needs zip version {}.{}: at most 6.3", number(at + 6, 1) / 10, number(at + 6, 1) % 10));
      }
      if ((member.flags & ~kKnownFlags) != 0)
        return fault(where, fmt::format("has unknown flags 0x{:04x}", member.flags));
      if (!read_extra(at + kDirectoryEntry + name, extra, {&member.size, &member.stored, &member.at})) {
        return fault(where, "has damaged extra fields");
      }
      if (!names.insert(member.name).second) {
        return fault(fmt::format("member '{}'", member.name), "occurs twice: save each tensor once");
      }
      members_.push_back(member);
      at += length;
    }
    if (at != directory_end_) {
      return fault("central directory", fmt::format("{} bytes follow its {} entries", directory_end_ - at, count_));
    }
    return true;
  }

  // Replaces the fields that are 0xffffffff by the numbers of the zip64 extra field, in their order; `found`: whether
  // there is one. False when the fields do not fill `length` bytes.
  bool read_extra(std::uint64_t at, std::uint64_t length, std::initializer_list<std::uint64_t*> fields,
                  bool* found = nullptr) {
    const std::uint64_t end = at + length;
    bool has_zip64 = false;
    while (at < end) {
      if (end - at < 4) return false;
      const std::uint64_t id = number(at, 2), size = number(at + 2, 2);
      at += 4;
      if (end - at < size) return false;
      if (id == 1) {
        if (std::exchange(has_zip64, true)) return false;
        std::uint64_t next = at;
        for (std::uint64_t* field : fields) {
          if (*field != kIn64) continue;
          if (at + size - next < 8) return false;
          *field = number(next, 8);
          next += 8;
        }
      }
      at += size;
    }
    if (found != nullptr) *found = has_zip64;
    return true;
  }

  // Where the member ends, its data descriptor included; empty after a fault.
  std::optional<std::uint64_t> member_end(const ZipMember& member, const std::string& where) {
    const auto damaged = [&](std::string message) {
      fault(where, std::move(message));
      return std::optional<std::uint64_t>();
    };
    const std::uint64_t at = member.at;
    if (!has(at, kLocalHeader) || !begins(at, "PK\3\4")) return damaged("its local header is missing");
    const std::uint64_t name = number(at + 26, 2), extra = number(at + 28, 2);
    const std::uint64_t data = at + kLocalHeader + name + extra;
    if (!has(at, kLocalHeader + name + extra) || !has(data, member.stored)) return damaged("runs past the end");
    const std::string_view local_name =
        archive_.substr(static_cast<std::size_t>(at) + kLocalHeader, static_cast<std::size_t>(name));
    if (local_name != member.name) return damaged(fmt::format("its local header names it '{}'", local_name));
    if (number(at + 6, 2) != member.flags || number(at + 8, 2) != member.method) {
      return damaged("its local header and the directory differ in flags or method");
    }
    std::uint64_t stored = number(at + 18, 4), size = number(at + 22, 4);
    bool is_wide = false;
    if (!read_extra(at + kLocalHeader + name, extra, {&size, &stored}, &is_wide))
      return damaged("has damaged extra fields");
    const bool has_descriptor = (member.flags & kDescriptorFlag) != 0;
    const bool is_left_open = has_descriptor && number(at + 14, 4) == 0 && size == 0 && stored == 0;
    if (!is_left_open && (number(at + 14, 4) != member.crc || size != member.size || stored != member.stored)) {
      return damaged("its local header and the directory differ in checksum or size");
    }
    const std::uint64_t end = data + member.stored;
    return has_descriptor ? descriptor_end(member, end, is_wide, where) : end;
  }

  // [PK\7\8] checksum, stored size, size: of 4 bytes each or, in zip64, of 8 bytes. The signature is optional.
  std::optional<std::uint64_t> descriptor_end(const ZipMember& member, std::uint64_t at, bool is_wide,
                                              const std::string& where) {
    const int width = is_wide ? 8 : 4;
    for (const std::uint64_t skipped : {std::uint64_t{4}, std::uint64_t{0}}) {
      const std::uint64_t begin = at + skipped;
      const auto length = static_cast<std::uint64_t>(4 + 2 * width);
      if (skipped != 0 && !(has(at, 4) && begins(at, "PK\7\x08"))) continue;
      if (has(begin, length) && number(begin, 4) == member.crc && number(begin + 4, width) == member.stored &&
          number(begin + 4 + static_cast<std::uint64_t>(width), width) == member.size) {
        return begin + length;
      }
    }
    fault(where, "its data descriptor and the directory differ in checksum or size");
    return std::nullopt;
  }

  std::string_view archive_;
  std::vector<Fault>& faults_;
  std::vector<ZipMember> members_;
  std::uint64_t count_ = 0, directory_at_ = 0, directory_size_ = 0, directory_end_ = 0;
};

}  // namespace

void check_zip_layout(std::string_view archive, std::vector<Fault>& faults) {
  ZipLayout(archive, faults).check();
}

}  // namespace kvscope::golden
