// What stays the same during a run: the sizes of the pool, the model, who wrote the trace. Taken from the scenario that
// a trace carries in its meta; a trace without one (a kernel's, a colleague's) is measured by its own events.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/scenario/scenario.h"
#include "core/trace/events.h"
#include "core/trace/trace_file.h"

namespace kvscope::viz {

struct Facts {
  std::string name;         // the scenario's, or the file's
  std::string description;  // the scenario's paragraph of what to look at; may be empty
  std::optional<Scenario> scenario;
  trace::Detail detail = trace::Detail::full;
  CacheKind cache = CacheKind::paged;
  std::int64_t blocks = 0;         // N real blocks; the pool's null page is block N
  std::int64_t page_size = 0;      // [tokens] of a block; continuous: the tokens reserved for a sequence
  std::int64_t table_columns = 0;  // of the lookup table: pages the longest sequence ever has, at least 1
  std::int64_t sequences = 0;      // that arrive during the run: 1 + the highest number
  std::int64_t events = 0;
  std::int64_t rows = 0;  // 1 + steps
};

}  // namespace kvscope::viz
