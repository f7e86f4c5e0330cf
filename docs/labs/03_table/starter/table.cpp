#include "table.h"

std::int64_t table_columns(std::int64_t pages) {
  // Write this function.
  return 0;
}

void build_table(const Batch& batch, std::int64_t columns, std::uint32_t* table) {
  // Write this function.
}
