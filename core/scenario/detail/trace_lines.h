// Reads the lines of a recorded trace one at a time: with or without a byte-order mark, with "\n" or "\r\n", with or
// without a last newline or blank lines at the end. Also collects faults of rows. Internal to the two importers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/scenario/detail/fault_list.h"
#include "core/scenario/scenario.h"

namespace kvscope {

// Limits of an importer's memory use: 10 million rows are about 600 MB of requests.
inline constexpr std::int64_t kMaxTraceBytes = std::int64_t{1} << 30;
inline constexpr std::size_t kMaxTraceLine = std::size_t{1} << 20;  // [bytes]
inline constexpr std::int64_t kMaxTraceRows = 10'000'000;
inline constexpr std::int64_t kMaxTraceSpans = 64'000'000;
inline constexpr std::int64_t kMaxTraceTokens = 2'147'483'647;  // of one request

class TraceLines {
 public:
  explicit TraceLines(std::string_view text);

  // False at the end. A line longer than kMaxTraceLine is reported as a fault and skipped, as is an empty
  // line between rows.
  bool next(std::string_view& line);
  [[nodiscard]] std::int64_t number() const { return number_; }  // of the line last returned, from 1

  // Adds the fault "line 7": message. Does not throw, so that reading continues and all faults are reported at once.
  void fault(std::string message);
  // Throws InputError(source, ...) when there was a fault.
  void throw_faults(std::string_view source);

 private:
  std::string_view rest_;
  std::int64_t number_ = 0;
  FaultList faults_{kImportFaults};
};

// The number if the whole text is a decimal integer in [low, high], without sign or spaces; otherwise empty.
[[nodiscard]] std::optional<std::int64_t> decimal(std::string_view text, std::int64_t low, std::int64_t high);

// Text of an untrusted file for a message: quoted, printable, at most 40 characters.
[[nodiscard]] std::string in_quotes(std::string_view text);

// Shifts all arrival times so that the earliest request arrives at 0.
void start_at_earliest(std::vector<Request>& requests);

}  // namespace kvscope
