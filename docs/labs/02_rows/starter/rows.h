// Lab 02: the two functions of rows.cpp that you write.
#pragma once

#include <cstdint>

// One layer's K (or V) of a paged cache. Its pool is the array
//   [block, k_or_v, layer, page_row, head, head_dim]
// and a row is one token: all heads of one page row.
struct PagedCache {
  const std::uint32_t* table;  // [sequences, columns] block of each page
  std::int64_t columns;        // entries from one row of the table to the next
  std::int64_t page_size;      // [tokens]
  std::int64_t layers;
  std::int64_t k_or_v;         // 2: K and V have slots of their own. 1: one slot serves as both (MLA)
};

// The row of token `token` of sequence `sequence`, counted from the first row of this layer's K (or V).
std::uint32_t row_idx(const PagedCache& cache, std::int64_t sequence, std::int64_t token);

// The first row of each part of a tile of `tile` tokens that begins at token `base`: a part is the run of tokens
// inside one page. `rows` has room for tile / page_size rows, or for 1 when the tile is not longer than a page.
// `base` is a multiple of `tile`; one of `tile` and `page_size` divides the other.
void populate(const PagedCache& cache, std::int64_t sequence, std::int64_t base, std::int64_t tile,
              std::uint32_t* rows);
