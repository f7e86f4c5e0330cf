// Checks whether a scenario can run: the range of every number, and every rule between numbers. The reader of scenario
// files calls it after reading, an editing form after every change.
//
// Example: page_size 48 with 64-token tiles ->
//   {"$.tile.BN", "64 tokens are not a whole number of 48-token pages: choose 48 or 96"}
// Legal although it may be surprising: a page size that is not a power of two, a pool far larger than this machine's
// memory (only addresses are simulated; row numbers must fit in 32 bits), more layers than are displayed.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/errors.h"
#include "core/scenario/scenario.h"

namespace kvscope {

// Empty when the scenario can run. `where` is the JSON path of the number to change.
[[nodiscard]] std::vector<Fault> check_scenario(const Scenario& scenario);

// Only the rules between numbers, without those that involve a place in `already`: a number that could not be read must
// not cause a second fault. Precondition: every number out of range is in `already`.
[[nodiscard]] std::vector<Fault> check_rules(const Scenario& scenario, const std::vector<Fault>& already);

// The default of tile.BN: the largest number up to 64 that is whole pages, at most 16 of them, or that divides the
// page. Examples: page 16 -> 64, page 48 -> 48, page 100 -> 50, page 1 -> 16, page 128 -> 64.
[[nodiscard]] std::int64_t default_tile_rows(std::int64_t page_size);

}  // namespace kvscope
