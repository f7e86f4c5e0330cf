// The constants of a run: the sizes of the pool, the model, the producer of the trace. They come from the scenario in
// the trace's meta; for a trace without a scenario (such as a kernel's) they are computed from its events.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/scenario/scenario.h"
#include "core/trace/events.h"
#include "core/trace/trace_file.h"

namespace kvscope::viz {

struct Facts {
  std::string name;         // of the scenario, or of the file
  std::string description;  // the scenario's description; may be empty
  std::optional<Scenario> scenario;
  trace::Detail detail = trace::Detail::full;
  CacheKind cache = CacheKind::paged;
  std::int64_t blocks = 0;         // N real blocks; the pool's null page is block N
  std::int64_t page_size = 0;      // [tokens] of a block; continuous cache: the tokens reserved for a sequence
  std::int64_t table_columns = 0;  // of the lookup table: maximum number of pages of any sequence, at least 1
  std::int64_t sequences = 0;      // sequences that arrive during the run: 1 + the highest number
  std::int64_t events = 0;
  std::int64_t rows = 0;                      // 1 + steps
  std::int64_t first_step = 0, end_step = 0;  // [first, end) of the steps' numbers: a trace may begin at any step
};

// "step 105 is outside [0, 47)", "the run has no step"; empty: the run has it.
[[nodiscard]] std::string why_no_step(std::int64_t step, const Facts& facts);

}  // namespace kvscope::viz
