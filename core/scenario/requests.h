// All requests of a scenario as one list in the order of arrival. At equal times the order is: listed requests, then
// generated ones, then those of the file. A request of n samples occurs n times in succession.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "core/scenario/scenario.h"

namespace kvscope {

enum class TraceFormat : std::uint8_t { csv, jsonl };

// The format by the name's ending, in upper or lower case; empty for any other ending.
[[nodiscard]] std::optional<TraceFormat> trace_format(const std::filesystem::path& path);

// Reads a trace of either format, at most 1 GiB; the first `limit` rows when that is not 0. InputError on bad rows.
[[nodiscard]] std::vector<Request> load_trace(const std::filesystem::path& path, std::int64_t limit = 0);

// Generates requests from the scenario's seed alone: request n does not depend on the number of requests. The first
// arrives at 0, the gaps are exponential. The prompt of a request of group g begins with {kGeneratedContent + g,
// prefix_tokens}; the rest of it is unique.
[[nodiscard]] std::vector<Request> generate_requests(const RequestGenerator& generator, std::uint64_t seed);

// Each request of n samples becomes n requests of one sample with the same prompt and the same number of tokens to
// generate. The first is the parent; the k-th after it has `sample_of` = k. Example: samples 1, 3, 1 become sample_of
// 0, 0, 1, 2, 0.
[[nodiscard]] std::vector<Request> expand_samples(std::vector<Request> requests);

// Precondition: `scenario` has passed check_scenario(). A file's path is relative to `base_dir`, the scenario's folder.
// `instead_of_all` names a trace that replaces every source of the scenario, with neither limit nor time scale; its
// path is relative to the current folder.
// InputError when a request of a trace or of the generator arrives more than 10^15 us (31 years) after the start.
[[nodiscard]] std::vector<Request> make_requests(const Scenario& scenario, const std::filesystem::path& base_dir,
                                                 const std::optional<std::filesystem::path>& instead_of_all = {});

}  // namespace kvscope
