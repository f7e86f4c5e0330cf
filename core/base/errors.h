// The exception types, one for each kind of fault that a caller may want to treat differently.
//
//   kind              derives from            thrown when
//   IndexError        std::out_of_range       sequence, token, head, dim, layer, block, lookup-table column
//   GeometryError     std::invalid_argument   sizes that do not fit: tile vs page, alignment promise, tensor map
//   UnsupportedError  std::logic_error        an operation the struct does not have: V of an MLA cache
//   OverflowError     std::overflow_error     a number does not fit: a row past 2^31 for a TMA coordinate
//   InputError        std::runtime_error      a file or an argument from the user, with file, line or JSON path
//
// A message names the object, the value, the legal range and the next step. An error that collects several faults keeps
// them as data, so that a viewer can mark each one at its place.
#pragma once

#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope {

// One thing wrong with one place. `where` is a JSON path ("$.cache.page_size"), "line 7",
// "box axis 0", an option ("--seq").
struct Fault {
  std::string where;
  std::string message;
  friend bool operator==(const Fault&, const Fault&) = default;
};

// "<object> rejected, 2 faults:\n  <where>: <message>\n  <where>: <message>"; one fault stays on one line:
// "<object> rejected: <where>: <message>". `where` may be empty.
[[nodiscard]] std::string format_faults(std::string_view object, const std::vector<Fault>& faults);

class IndexError : public std::out_of_range {
 public:
  using std::out_of_range::out_of_range;
};

class GeometryError : public std::invalid_argument {
 public:
  explicit GeometryError(const std::string& message) : std::invalid_argument(message), faults_{{"", message}} {}
  GeometryError(std::string_view object, std::vector<Fault> faults)
      : std::invalid_argument(format_faults(object, faults)), faults_(std::move(faults)) {}
  [[nodiscard]] const std::vector<Fault>& faults() const { return faults_; }

 private:
  std::vector<Fault> faults_;
};

// A device address outside every allocation: CUDA_ERROR_ILLEGAL_ADDRESS, which ends the context on a GPU. Thrown by the
// copies of the model and of the virtual GPU.
class IllegalAddress : public IndexError {
 public:
  IllegalAddress(const std::string& message, std::uint64_t address, std::int64_t count)
      : IndexError(message), address_(address), count_(count) {}
  [[nodiscard]] int code() const { return 700; }
  [[nodiscard]] std::uint64_t address() const { return address_; }
  [[nodiscard]] std::int64_t count() const { return count_; }  // [bytes]

 private:
  std::uint64_t address_;
  std::int64_t count_;
};

class UnsupportedError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

class OverflowError : public std::overflow_error {
 public:
  using std::overflow_error::overflow_error;
};

// `source` is the file name as the user wrote it, "command line", or another name of the input.
class InputError : public std::runtime_error {
 public:
  InputError(std::string_view source, std::vector<Fault> faults)
      : std::runtime_error(format_faults(source, faults)), source_(source), faults_(std::move(faults)) {}
  InputError(std::string_view source, std::string where, std::string message)
      : InputError(source, std::vector<Fault>{{std::move(where), std::move(message)}}) {}
  [[nodiscard]] const std::string& source() const { return source_; }
  [[nodiscard]] const std::vector<Fault>& faults() const { return faults_; }

 private:
  std::string source_;
  std::vector<Fault> faults_;
};

// An error as text for the user, one line per fault: "<object>: <where>: <message>". The command line prints these
// lines and the viewer shows them. Never empty, never a stack trace; for std::bad_alloc the line names what to reduce.
[[nodiscard]] std::vector<std::string> fault_lines(const std::exception& error);

// Throws IndexError "<what> <value> is outside [0, <end>)" unless 0 <= value < end. A non-empty `next_step` follows
// after ": ". Example: check_index("head", 5, 2) -> "head 5 is outside [0, 2)".
inline void check_index(std::string_view what, std::int64_t value, std::int64_t end, std::string_view next_step = {});

[[noreturn]] void throw_index_error(std::string_view what, std::int64_t value, std::int64_t end,
                                    std::string_view next_step);

inline void check_index(std::string_view what, std::int64_t value, std::int64_t end, std::string_view next_step) {
  if (value < 0 || value >= end) [[unlikely]]
    throw_index_error(what, value, end, next_step);
}

// For an error in kvscope itself, not in its input: prints the condition with file and line, then aborts, in every
// build.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);

// The system's words for a value of errno, in English whatever the locale: 2 -> "No such file or directory".
[[nodiscard]] std::string system_message(int error);

}  // namespace kvscope

#define KVSCOPE_ASSERT(condition) \
  ((condition) ? static_cast<void>(0) : ::kvscope::assertion_failed(#condition, __FILE__, __LINE__))
