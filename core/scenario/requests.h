// All requests of a scenario as one list in the order of arrival: those listed, then those generated, then those of the
// file; equal times keep that order. A request of n samples stands there n times, one behind the other.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "core/scenario/scenario.h"

namespace kvscope {

enum class TraceFormat : std::uint8_t { csv, jsonl };

// By the name's ending, in either case; nothing for any other.
[[nodiscard]] std::optional<TraceFormat> trace_format(const std::filesystem::path& path);

// Reads a trace of either format, at most 1 GiB; the first `limit` rows when that is not 0. InputError on bad rows.
[[nodiscard]] std::vector<Request> load_trace(const std::filesystem::path& path, std::int64_t limit = 0);

// Made up from the scenario's seed alone: request n is the same however many follow. The first arrives at 0, the
// gaps are exponential. A request of group g says {kGeneratedContent + g, prefix_tokens} and then something
// nobody else says.
[[nodiscard]] std::vector<Request> generate_requests(const RequestGenerator& generator, std::uint64_t seed);

// Each request of n samples becomes n of one sample: the first is the parent, sample k behind it says `sample_of` = k,
// and all n want the same answer's length to the same prompt. Example: samples 1, 3, 1 become sample_of 0, 0, 1, 2, 0.
[[nodiscard]] std::vector<Request> expand_samples(std::vector<Request> requests);

// `scenario` has passed check_scenario(). A file's path is relative to `base_dir`, the scenario's folder. With
// `instead_of_all` that trace takes the place of every source of the scenario, with neither limit nor time scale; its
// path is relative to the current folder.
[[nodiscard]] std::vector<Request> make_requests(const Scenario& scenario, const std::filesystem::path& base_dir,
                                                 const std::optional<std::filesystem::path>& instead_of_all = {});

}  // namespace kvscope
