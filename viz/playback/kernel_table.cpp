#include "viz/playback/kernel_table.h"

#include <algorithm>

#include "core/layout/table_columns.h"

namespace kvscope::viz {
namespace {

std::int64_t columns_for(std::int64_t pages, const Facts& facts) {
  return is_padded(facts) ? padded_lut_cols(std::max<std::int64_t>(pages, 1)) : facts.table_columns;
}

}  // namespace

bool is_padded(const Facts& facts) {
  return facts.scenario && facts.cache == CacheKind::paged;
}

std::int64_t widest_table(const Facts& facts) {
  return columns_for(facts.table_columns, facts);
}

KernelTable kernel_table(const State& state, const Facts& facts) {
  KernelTable table;
  if (facts.detail == trace::Detail::full) {
    for (const SeqIdx seq : state.live) {
      const SequenceState& of = state.sequences[seq.value];
      if (of.phase != Phase::running && of.pages.size() == 0) continue;
      table.rows.push_back(seq);
      table.pages = std::max(table.pages, of.pages.size());
    }
  }
  table.columns = columns_for(table.pages, facts);
  return table;
}

}  // namespace kvscope::viz
