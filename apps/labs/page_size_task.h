// A student's traffic of lab 14, and the curves over page sizes that the student measures.
//
// The traffic has the shape of recorded ones: many short chats and a few long documents, arriving in bursts, with
// lengths whose logarithms are bell-shaped. It is written as a CSV file in the format of the Azure LLM inference traces
// and read back by kvscope's importer. A step of the engine takes 20 ms whatever it computes, and the pool always has
// room, so no page size changes which requests run at once.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "apps/labs/seed.h"
#include "core/scenario/scenario.h"

namespace kvscope::labs {

inline constexpr std::array<std::int64_t, 7> kPageSizes{4, 8, 16, 32, 64, 128, 256};
using PageSizeCurve = std::array<double, kPageSizes.size()>;

struct PageSizeTask {
  std::string traffic;            // CSV
  std::vector<Request> requests;  // the same, in order of arrival
  std::int64_t slots = 0;         // of the pool, whatever the page size
  std::int64_t max_batch = 0;     // rows of the lookup table
  double cost_of_percent = 0;     // of waste
  double cost_of_lookups = 0;     // of 1000 lookups
};

struct PageSizeCurves {
  PageSizeCurve waste{};         // [%] empty slots of the blocks that sequences hold, mean over the steps of a run
  PageSizeCurve waste_at_end{};  // [%] the same over all requests, each with all its tokens
  PageSizeCurve table_bytes{};   // of a table with max_batch rows and room for the longest request
  PageSizeCurve lookups{};       // table entries that the decode steps of all requests need
  PageSizeCurve cost{};          // cost_of_percent * waste + cost_of_lookups * lookups / 1000
  [[nodiscard]] std::int64_t cheapest() const;  // page size
};

[[nodiscard]] PageSizeTask make_page_size_task(const Seed& seed);

// `waste` is measured by the paging engine; the others are counted here, request by request.
[[nodiscard]] PageSizeCurves page_size_curves(const PageSizeTask& task);

// A scenario file for one page size; its requests are those of traffic.csv beside it.
[[nodiscard]] std::string page_size_scenario(const PageSizeTask& task, std::int64_t page_size);

// Tokens that a request has stored when it finishes: the last one generated is never an input.
[[nodiscard]] std::int64_t stored_tokens(const Request& request);

}  // namespace kvscope::labs
