// Reads the rows of a table straight from the pages of an SQLite file, in order of their row numbers. It takes about a
// tenth of the instructions of an SQL query. It accepts only what SQLite writes for a table of integers
// (sqlite.org/fileformat.html, sections 1.5, 1.6 and 2.1). The result for other input is `odd`, without a reason:
// the caller then reads the same rows with SQL, which finds the fault and describes it.
//
//   interior page:  05 | cells u16 at 3 | right child u32 at 8 | u16 offsets at 12 | cells: child u32, last row varint
//   leaf page:      0D | cells u16 at 3 | u16 offsets at 8     | cells: payload bytes varint, row varint, payload
//   payload:        header bytes varint, one type varint for each column, then the columns' numbers, big-endian
//   types:          0: NULL (column 0, whose number is the row's); 1-6: 1, 2, 3, 4, 6, 8 bytes; 8: 0; 9: 1
//
// Example: the row event=7 block=300 seq=0 takes the bytes 06 07 | 04 00 02 08 | 01 2C.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

namespace kvscope::trace {

// A file read page by page. Several scans may share one.
class PageFile {
 public:
  // Never throws for the file's content: a file that cannot be read has no pages.
  explicit PageFile(const std::filesystem::path& path);
  PageFile(const PageFile&) = delete;
  PageFile& operator=(const PageFile&) = delete;
  ~PageFile();

  [[nodiscard]] std::size_t page_bytes() const { return page_bytes_; }
  [[nodiscard]] std::size_t usable_bytes() const { return usable_bytes_; }  // of a page
  // Reads page `number` into `out`, which has page_bytes() bytes. Pages are numbered from 1. False: there is no such
  // page, it cannot be read, or it is page 1, which holds the list of tables.
  [[nodiscard]] bool read(std::uint32_t number, std::span<std::uint8_t> out) const;

 private:
  int file_ = -1;
  std::size_t page_bytes_ = 0, usable_bytes_ = 0;
  std::uint32_t pages_ = 0;
};

class TableScan {
 public:
  enum class Result : std::uint8_t { row, end, odd };

  // `columns` counts the integer primary key. Precondition (caller): `file` outlives the scan.
  TableScan(const PageFile& file, std::uint32_t root, std::size_t columns);

  // Moves to the first row whose number is at least `first`.
  [[nodiscard]] Result seek(std::int64_t first);
  // Moves to the next row. Row numbers ascend; otherwise the result is `odd`. Precondition: the last result was `row`.
  [[nodiscard]] Result next();

  // Of the current row: its number, and its columns after the primary key. [columns - 1]
  [[nodiscard]] std::int64_t row() const { return row_; }
  [[nodiscard]] std::span<const std::int64_t> values() const { return values_; }

 private:
  // A page on the way from the root to the current leaf.
  struct Page {
    std::vector<std::uint8_t> bytes;
    std::size_t cells = 0, at = 0;  // number of cells, and the current one; at == cells: the right child
  };

  [[nodiscard]] bool load(std::uint32_t number, std::size_t depth, bool& leaf);
  [[nodiscard]] bool descend(std::uint32_t number, std::size_t depth, std::int64_t first);
  [[nodiscard]] bool child(const Page& page, std::uint32_t& number) const;
  [[nodiscard]] Result next_leaf();
  [[nodiscard]] bool decode();

  const PageFile& file_;
  std::uint32_t root_;
  std::vector<Page> path_;  // [depth], the leaf last; pages behind `depth_` are kept for their memory
  std::size_t depth_ = 0;
  std::int64_t row_ = 0;
  std::vector<std::int64_t> values_;
};

}  // namespace kvscope::trace
