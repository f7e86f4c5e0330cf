// Is a scenario possible? Every number's range, and every rule that ties two numbers together. The reader of scenario
// files asks this after reading, a form asks it after every change.
//
// Example: page_size 48 with 64-token tiles ->
//   {"$.tile.BN", "64 tokens are not a whole number of 48-token pages: choose 48 or 96"}
// What is legal though it may surprise: a page size that is no power of two, a pool far larger than this machine's
// memory (only addresses are simulated; the rows must be countable in 32 bits), more layers than one looks at.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/errors.h"
#include "core/scenario/scenario.h"

namespace kvscope {

// Empty when the scenario can run. `where` is the JSON path of the number to change.
[[nodiscard]] std::vector<Fault> check_scenario(const Scenario& scenario);

// The rules between numbers alone, without those that involve a place `already` faulty: a number that could not be read
// must not cause a second complaint. Caller's duty: every number out of range is among `already`.
[[nodiscard]] std::vector<Fault> check_rules(const Scenario& scenario, const std::vector<Fault>& already);

// The tile rows used when a scenario leaves tile.BN out: the largest number up to 64 that is whole pages, at most 16 of
// them, or that divides the page. Examples: page 16 -> 64, page 48 -> 48, page 100 -> 50, page 1 -> 16, page 128 -> 64.
[[nodiscard]] std::int64_t default_tile_rows(std::int64_t page_size);

}  // namespace kvscope
