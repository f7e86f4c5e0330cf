#include "core/trace/detail/table_scan.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace kvscope::trace {
namespace {

constexpr std::size_t kFileHeader = 100;                        // [bytes]
constexpr std::uint8_t kInteriorPage = 0x05, kLeafPage = 0x0D;  // of a table
constexpr std::size_t kInteriorHeader = 12, kLeafHeader = 8;    // [bytes]
constexpr std::size_t kDeepest = 20;                            // pages on a path; SQLite has the same limit
constexpr std::size_t kLeftOfPayload = 35;                      // [bytes] of a page that a payload never takes
constexpr std::array<std::size_t, 7> kBytesOfType{0, 1, 2, 3, 4, 6, 8};

std::uint32_t big_endian_16(const std::uint8_t* at) {
  return std::uint32_t{at[0]} << 8 | at[1];
}

std::uint32_t big_endian_32(const std::uint8_t* at) {
  return big_endian_16(at) << 16 | big_endian_16(at + 2);
}

// A varint of SQLite: 7 bits a byte, the highest first; a ninth byte has 8 bits. False: it does not end before `end`.
bool take_varint(const std::uint8_t*& at, const std::uint8_t* end, std::uint64_t& number) {
  number = 0;
  for (int byte = 0;; ++byte) {
    if (at == end) return false;
    const std::uint8_t bits = *at++;
    if (byte == 8) {
      number = number << 8 | bits;
      return true;
    }
    number = number << 7 | (bits & 0x7F);
    if (bits < 0x80) return true;
  }
}

// Two's complement of `bytes` bytes, big-endian.
std::int64_t take_number(const std::uint8_t*& at, std::size_t bytes) {
  std::uint64_t number = *at >= 0x80 ? ~std::uint64_t{0} : 0;
  for (std::size_t i = 0; i < bytes; ++i) number = number << 8 | *at++;
  return static_cast<std::int64_t>(number);
}

}  // namespace

PageFile::PageFile(const std::filesystem::path& path) : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  std::array<std::uint8_t, kFileHeader> header{};
  struct stat about {};
  if (file_ < 0 || ::fstat(file_, &about) != 0 ||
      ::pread(file_, header.data(), header.size(), 0) != static_cast<ssize_t>(header.size())) {
    return;
  }
  const std::uint32_t bytes = big_endian_16(header.data() + 16);
  page_bytes_ = bytes == 1 ? 65536 : bytes;
  const bool power_of_two = (page_bytes_ & (page_bytes_ - 1)) == 0;
  const std::size_t reserved = header[20];
  if (page_bytes_ < 512 || !power_of_two || page_bytes_ - reserved < 480) return;
  usable_bytes_ = page_bytes_ - reserved;
  const auto pages = static_cast<std::uint64_t>(about.st_size) / page_bytes_;
  pages_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(pages, ~std::uint32_t{0}));
}

PageFile::~PageFile() {
  if (file_ >= 0) ::close(file_);
}

bool PageFile::read(std::uint32_t number, std::span<std::uint8_t> out) const {
  if (number < 2 || number > pages_) return false;
  const auto at = static_cast<off_t>(page_bytes_) * static_cast<off_t>(number - 1);
  ssize_t bytes = -1;
  do {
    bytes = ::pread(file_, out.data(), page_bytes_, at);
  } while (bytes < 0 && errno == EINTR);
  return bytes == static_cast<ssize_t>(page_bytes_);
}

TableScan::TableScan(const PageFile& file, std::uint32_t root, std::size_t columns)
    : file_(file), root_(root), values_(columns - 1) {}

TableScan::Result TableScan::seek(std::int64_t first) {
  depth_ = 0;
  if (!descend(root_, 0, first)) return Result::odd;
  // The leaf may have no such row: the next leaf begins with it.
  for (Page& leaf = path_[depth_ - 1]; leaf.at < leaf.cells; ++leaf.at) {
    if (!decode()) return Result::odd;
    if (row_ >= first) return Result::row;
  }
  row_ = first - 1;
  return next_leaf();
}

TableScan::Result TableScan::next() {
  Page& leaf = path_[depth_ - 1];
  if (++leaf.at >= leaf.cells) return next_leaf();
  const std::int64_t before = row_;
  return decode() && row_ > before ? Result::row : Result::odd;
}

// The first row of the leaf after the current one.
TableScan::Result TableScan::next_leaf() {
  const std::int64_t before = row_;
  std::size_t depth = depth_ - 1;
  for (; depth > 0; --depth) {
    Page& page = path_[depth - 1];
    if (page.at < page.cells) break;
  }
  if (depth == 0) return Result::end;
  Page& page = path_[depth - 1];
  ++page.at;
  std::uint32_t number = 0;
  if (!child(page, number) || !descend(number, depth, before + 1)) return Result::odd;
  return decode() && row_ > before ? Result::row : Result::odd;
}

bool TableScan::load(std::uint32_t number, std::size_t depth, bool& leaf) {
  if (depth >= kDeepest) return false;
  if (path_.size() <= depth) path_.emplace_back();
  Page& page = path_[depth];
  page.bytes.resize(file_.page_bytes());
  page.at = 0;
  if (page.bytes.empty() || !file_.read(number, page.bytes)) return false;
  const std::uint8_t type = page.bytes[0];
  if (type != kInteriorPage && type != kLeafPage) return false;
  leaf = type == kLeafPage;
  page.cells = big_endian_16(page.bytes.data() + 3);
  return page.cells > 0 && (leaf ? kLeafHeader : kInteriorHeader) + 2 * page.cells <= file_.usable_bytes();
}

// From page `number` to the leaf in which a row with a number of at least `first` may be.
bool TableScan::descend(std::uint32_t number, std::size_t depth, std::int64_t first) {
  for (bool leaf = false;; ++depth) {
    if (!load(number, depth, leaf)) return false;
    depth_ = depth + 1;
    if (leaf) return true;
    Page& page = path_[depth];
    for (; page.at < page.cells; ++page.at) {
      const std::size_t cell = big_endian_16(page.bytes.data() + kInteriorHeader + 2 * page.at);
      if (cell + 4 > file_.usable_bytes()) return false;
      const std::uint8_t* at = page.bytes.data() + cell + 4;
      std::uint64_t last = 0;
      if (!take_varint(at, page.bytes.data() + file_.usable_bytes(), last)) return false;
      if (static_cast<std::int64_t>(last) >= first) break;
    }
    if (!child(page, number)) return false;
  }
}

bool TableScan::child(const Page& page, std::uint32_t& number) const {
  if (page.at == page.cells) {
    number = big_endian_32(page.bytes.data() + 8);
    return true;
  }
  const std::size_t cell = big_endian_16(page.bytes.data() + kInteriorHeader + 2 * page.at);
  if (cell + 4 > file_.usable_bytes()) return false;
  number = big_endian_32(page.bytes.data() + cell);
  return true;
}

// The current cell of the leaf, into row_ and values_.
bool TableScan::decode() {
  const Page& leaf = path_[depth_ - 1];
  const std::uint8_t* const begin = leaf.bytes.data();
  const std::size_t cell = big_endian_16(begin + kLeafHeader + 2 * leaf.at);
  if (cell < kLeafHeader + 2 * leaf.cells || cell >= file_.usable_bytes()) return false;
  const std::uint8_t* at = begin + cell;
  const std::uint8_t* const end = begin + file_.usable_bytes();
  std::uint64_t payload = 0, row = 0;
  if (!take_varint(at, end, payload) || !take_varint(at, end, row)) return false;
  // A longer payload continues on another page; a row of integers never does.
  if (payload > file_.usable_bytes() - kLeftOfPayload || payload > static_cast<std::uint64_t>(end - at)) return false;
  if (payload == 0) return false;
  const std::uint8_t* const payload_end = at + payload;
  // One byte for the header's length, the primary key's NULL and each type: a table has at most 64 columns.
  const std::size_t header = *at;
  if (header != values_.size() + 2 || header > payload || at[1] != 0) return false;
  const std::uint8_t* types = at + 2;
  at += header;
  for (std::int64_t& value : values_) {
    const std::size_t type = *types++;
    if (type == 8 || type == 9) {
      value = static_cast<std::int64_t>(type) - 8;
      continue;
    }
    if (type == 0 || type >= kBytesOfType.size()) return false;
    const std::size_t bytes = kBytesOfType[type];
    if (bytes > static_cast<std::size_t>(payload_end - at)) return false;
    value = take_number(at, bytes);
  }
  if (at != payload_end) return false;
  row_ = static_cast<std::int64_t>(row);
  return true;
}

}  // namespace kvscope::trace
