// Hypotheses about the lookup table and the lengths: the entry that is read, its use, and its number of bits.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "core/base/numbers.h"
#include "core/golden/diagnosis/detail/trials.h"

namespace kvscope::golden {
namespace {

using attention::PagedRows;

void add_entries(Trials& trials) {
  const PagedRows& k = trials.problem.k;
  const std::int64_t columns = k.table_stride;
  const std::int64_t batch = trials.problem.batch;
  const std::string where = "the index into the lookup table";
  const auto entry = [&](const std::string& name, const std::string& cause,
                         std::function<std::int64_t(std::int64_t sequence, std::int64_t page)> flat) {
    trials.add(name, cause, where, [flat = std::move(flat), columns, batch](Recipe& r, const RowEvaluator& row) {
      const PagedRows& rows = row.problem().k;
      for (KeyRead& key : r.keys) {
        const std::int64_t at = flat(row.sequence(), key.position / rows.page_size);
        key.block = at >= 0 && at < columns * batch ? std::int64_t{rows.table[at]} : -1;
      }
    });
  };
  if (batch > 1 && trials.input.masks == nullptr) {  // the rows are made from the mask: hypotheses_masks.cpp
    for (std::int64_t other = 0; other < std::min<std::int64_t>(batch, 16); ++other) {
      entry("table_row", fmt::format("every sequence uses row {} of the lookup table", other),
            [=](std::int64_t, std::int64_t page) { return other * columns + page; });
    }
    for (const std::int64_t by : {1, -1}) {
      entry("table_row",
            fmt::format("each sequence uses the lookup table row of the sequence {} it", by > 0 ? "after" : "before"),
            [=](std::int64_t sequence, std::int64_t page) {
              const std::int64_t other = sequence + by;
              return other < 0 || other >= batch ? -1 : other * columns + page;
            });
    }
    for (std::int64_t a = 0; a < std::min<std::int64_t>(batch, 16); ++a) {
      for (std::int64_t b = a + 1; b < std::min<std::int64_t>(batch, 16); ++b) {
        entry("table_rows_exchanged", fmt::format("rows {} and {} of the lookup table are exchanged", a, b),
              [=](std::int64_t sequence, std::int64_t page) {
                return (sequence == a ? b : sequence == b ? a : sequence) * columns + page;
              });
      }
    }
    for (std::int64_t stride = 1; stride <= 2 * columns; ++stride) {
      if (stride == columns || trials.input.one_list) continue;
      entry("table_stride",
            fmt::format("rows of the lookup table are taken to be {} entries apart instead of {}", stride, columns),
            [=](std::int64_t sequence, std::int64_t page) { return sequence * stride + page; });
    }
    if (!trials.input.one_list)
      entry("table_axes", "the lookup table is read as [page, sequence]",
            [=](std::int64_t sequence, std::int64_t page) { return page * batch + sequence; });
  }
  for (const std::int64_t by : {1, -1}) {
    entry("table_column", fmt::format("page p uses table column p {} 1", by > 0 ? "+" : "-"),
          [=](std::int64_t sequence, std::int64_t page) {
            return std::clamp<std::int64_t>(page + by, 0, columns - 1) + sequence * columns;
          });
  }
  entry("table_column", "every page uses table column 0",
        [=](std::int64_t sequence, std::int64_t) { return sequence * columns; });
  const std::int64_t page_size = k.page_size;
  if (page_size > 1) {
    for (const std::int64_t by : {1, -1}) {
      trials.add("slot_off_by_one",
                 fmt::format("each key is read from the {} slot of its page", by > 0 ? "next" : "previous"),
                 "the slot: token % page_size", [by, page_size](Recipe& r, const RowEvaluator&) {
                   for (KeyRead& key : r.keys) key.slot = (key.slot + by + page_size) % page_size;
                 });
    }
  }
  for (const std::int64_t by : {1, -1}) {
    trials.add("block_off_by_one", fmt::format("every block number is {} too {}", 1, by > 0 ? "large" : "small"),
               "the block number taken from the table", [by](Recipe& r, const RowEvaluator&) {
                 for (KeyRead& key : r.keys) key.block += by;
               });
  }
  if (page_size > 1) {
    trials.add("last_page_of_zeros", "the partly filled last page of each sequence is read as zeros",
               "the copy of the last page: rows in bounds, predicate of a partial page",
               [page_size](Recipe& r, const RowEvaluator& row) {
                 const std::int64_t keys = row.problem().keys(row.sequence());
                 for (KeyRead& key : r.keys) key.zeros = key.position >= keys / page_size * page_size;
               });
  }
  trials.add("pages_contiguous", "the lookup table is ignored: page p is read from block p", where,
             [](Recipe& r, const RowEvaluator& row) {
               for (KeyRead& key : r.keys) key.block = key.position / row.problem().k.page_size;
             });
  trials.add("pages_reversed", "the pages of each sequence are read in reverse order", where,
             [](Recipe& r, const RowEvaluator& row) {
               const PagedRows& rows = row.problem().k;
               const std::int64_t pages = ceil_div(row.problem().keys(row.sequence()), rows.page_size);
               for (KeyRead& key : r.keys) {
                 key.block = rows.table[row.sequence() * rows.table_stride + pages - 1 - key.position / rows.page_size];
               }
             });
}

// Entry `at` of an array of 64-bit integers that is read as one of 32-bit ones: the lower half of one at an even place,
// the upper half, 0, at an odd one. Example: lengths 75, 131, 33 are read as 75, 0, 131.
std::int64_t half_of(std::int64_t at, const auto& entry) {
  return at % 2 == 0 ? entry(at / 2) : 0;
}

// PyTorch makes integers of 64 bits unless it is told otherwise.
void add_wide_integers(Trials& trials) {
  if (trials.input.one_list || trials.input.masks != nullptr) return;  // the kernel has no table by rows
  const auto wide = [&](const char* what, bool table, bool lengths) {
    trials.add("integers_of_64_bits",
               fmt::format("{} of 64 bits are read as 32-bit ones, so that every second one is 0", what),
               "the integer type of the kernel's parameters (int has 32 bits), and of the arrays that are passed",
               [=](Recipe& r, const RowEvaluator& row) {
                 const attention::Problem& problem = row.problem();
                 if (lengths) {
                   const std::int64_t keys = half_of(row.sequence(), [&](std::int64_t b) { return problem.keys(b); });
                   set_keys(r, row, visible_with(problem.options, row, keys));
                 }
                 if (!table) return;
                 for (KeyRead& key : r.keys) {
                   const std::int64_t at = row.sequence() * problem.k.table_stride + key.position / problem.k.page_size;
                   key.block = half_of(at, [&](std::int64_t i) { return std::int64_t{problem.k.table[i]}; });
                 }
               });
  };
  wide("entries of the lookup table", true, false);
  if (trials.problem.batch < 2) return;  // one length is an even one
  wide("lengths", false, true);
  wide("entries of the lookup table and lengths", true, true);
}

}  // namespace

void add_table(Trials& trials) {
  add_entries(trials);
  add_wide_integers(trials);
}

}  // namespace kvscope::golden
