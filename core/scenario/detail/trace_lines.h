// The lines of a recorded trace, one at a time, whoever wrote it: with or without a byte-order mark, "\n" or "\r\n", a
// last newline or none, blank lines at the end. Also collects what is wrong with rows. Inner to the two importers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/scenario/detail/fault_list.h"
#include "core/scenario/scenario.h"

namespace kvscope {

// Bounds of what an importer builds in memory: 10 million rows are about 600 MB of requests.
inline constexpr std::int64_t kMaxTraceBytes = std::int64_t{1} << 30;
inline constexpr std::size_t kMaxTraceLine = std::size_t{1} << 20;  // [bytes]
inline constexpr std::int64_t kMaxTraceRows = 10'000'000;
inline constexpr std::int64_t kMaxTraceSpans = 64'000'000;
inline constexpr std::int64_t kMaxTraceTokens = 2'147'483'647;  // of one request

class TraceLines {
 public:
  explicit TraceLines(std::string_view text);

  // False at the end. A line longer than kMaxTraceLine is reported as a fault and skipped, so is an empty
  // one between rows.
  bool next(std::string_view& line);
  [[nodiscard]] std::int64_t number() const { return number_; }  // of the line last returned, from 1

  // "line 7": message. Throws nothing: rows go on being read, so that all faults are told at once.
  void fault(std::string message);
  // Throws InputError(source, ...) when there was a fault.
  void throw_faults(std::string_view source);

 private:
  std::string_view rest_;
  std::int64_t number_ = 0;
  FaultList faults_{kImportFaults};
};

// The number if the text is a decimal integer in [low, high] and nothing else; no sign, no spaces.
[[nodiscard]] std::optional<std::int64_t> decimal(std::string_view text, std::int64_t low, std::int64_t high);

// Text of a foreign file inside a message: quoted, printable, at most 40 characters.
[[nodiscard]] std::string in_quotes(std::string_view text);

// Moves the clock so that the earliest request arrives at 0.
void start_at_earliest(std::vector<Request>& requests);

}  // namespace kvscope
