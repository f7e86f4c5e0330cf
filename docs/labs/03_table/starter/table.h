// Lab 03: the two functions of table.cpp that you write.
#pragma once

#include <cstdint>

struct Request {
  std::int64_t tokens;          // stored, at least 1
  const std::uint32_t* blocks;  // [held] block of each page, in the order of the sequence
  std::int64_t held;            // at least the pages of `tokens`; later ones are reserved for tokens to come
};

// One step of the engine.
struct Batch {
  const Request* requests;
  const std::int64_t* order;  // [rows] the request of each row; -1: a padding row, which belongs to no request
  std::int64_t rows;
  std::int64_t page_size;   // [tokens]
  std::uint32_t null_page;  // the pool's last block, which no request holds
};

// Columns of a table whose longest request has `pages` pages: exactly 16 more than `pages` rounded up to a multiple of
// 8. Rows are then aligned to 8 entries, and a read of 16 entries from any page on stays in the row.
std::int64_t table_columns(std::int64_t pages);

// Writes all entries of `table`, [rows, columns].
void build_table(const Batch& batch, std::int64_t columns, std::uint32_t* table);
