// The program around your functions: kvscope sends cases to it and compares the results that come back. You need not
// read this file. A case and its result are lists of 8-byte words; apps/labs/case_stream.h describes the format.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace cases {

using Words = std::vector<std::int64_t>;

inline double number_of(std::int64_t word) {
  double value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

inline std::int64_t word_of(double value) {
  std::int64_t word;
  std::memcpy(&word, &value, sizeof word);
  return word;
}

inline bool read_all(void* to, std::size_t bytes) {
  char* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t part = read(STDIN_FILENO, at, bytes);
    if (part <= 0) return false;
    at += part;
    bytes -= static_cast<std::size_t>(part);
  }
  return true;
}

inline void write_all(int file, const void* from, std::size_t bytes) {
  const char* at = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t part = write(file, at, bytes);
    if (part <= 0) _exit(3);
    at += part;
    bytes -= static_cast<std::size_t>(part);
  }
}

// Calls `answer` (Words -> Words) for each case. What your code prints to standard output goes to standard error.
template <class Answer>
int run(Answer answer) {
  const int results = dup(STDOUT_FILENO);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  std::uint64_t count = 0;
  while (read_all(&count, sizeof count)) {
    Words words(count);
    if (!read_all(words.data(), 8 * words.size())) return 2;
    const Words result = answer(words);
    const std::uint64_t size = result.size();
    write_all(results, &size, sizeof size);
    write_all(results, result.data(), 8 * result.size());
  }
  return 0;
}

}  // namespace cases
