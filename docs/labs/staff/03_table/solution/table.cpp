#include "table.h"

std::int64_t table_columns(std::int64_t pages) {
  return (pages + 7) / 8 * 8 + 16;
}

void build_table(const Batch& batch, std::int64_t columns, std::uint32_t* table) {
  for (std::int64_t i = 0; i < batch.rows * columns; ++i) table[i] = batch.null_page;
  for (std::int64_t row = 0; row < batch.rows; ++row) {
    const std::int64_t number = batch.order[row];
    if (number < 0) continue;
    const Request& request = batch.requests[number];
    const std::int64_t pages = (request.tokens + batch.page_size - 1) / batch.page_size;
    for (std::int64_t page = 0; page < pages; ++page) table[row * columns + page] = request.blocks[page];
  }
}
