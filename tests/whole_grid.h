// Checks a property on a whole grid of parameters; failures name their point. With KVSCOPE_FULL=1 (tests/run.sh --full)
// every point is visited. Otherwise a fixed part: every n-th point under the sanitizers, eight times as many in other
// builds.
//
//   const auto points = ...;                                  // every point of the grid
//   const std::size_t visited = test::for_whole_grid("copies", points, 11, [](const Point& p) {
//     test::require(holds(p), "the copy is torn");            // throws; the point's text follows
//   }, [](const Point& p) { return to_text(p); });
//   prints: copies: 7866 of 15732
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope::test {

// Distance of two visited points, for a grid of which the sanitizers visit every `thin`-th point.
// Example: thin 37 -> 37 under the sanitizers, 5 in other builds, 1 with KVSCOPE_FULL=1.
inline std::size_t grid_step(std::size_t thin) {
#ifdef KVSCOPE_SANITIZED
  return thin;
#else
  const char* full = std::getenv("KVSCOPE_FULL");
  return full != nullptr && std::string_view(full) == "1" ? 1 : (thin + 7) / 8;
#endif
}

// A size of a test: `thin` under the sanitizers, where it need not be large to run every line; `whole` in other builds
// and with KVSCOPE_FULL=1.
inline std::int64_t size_for_sanitizers([[maybe_unused]] std::int64_t thin, std::int64_t whole) {
#ifdef KVSCOPE_SANITIZED
  const char* full = std::getenv("KVSCOPE_FULL");
  if (full == nullptr || std::string_view(full) != "1") return thin;
#endif
  return whole;
}

// Every `thin`-th case under the sanitizers, every case in other builds and with KVSCOPE_FULL=1. Choose `thin` without a
// common factor with the lengths of the nested lists that the cases come from: each value of each list is then visited.
template <class Case>
std::vector<Case> cases_for_sanitizers(const char* what, const std::vector<Case>& cases, std::int64_t thin) {
  const auto step = static_cast<std::size_t>(size_for_sanitizers(thin, 1));
  std::vector<Case> part;
  for (std::size_t n = 0; n < cases.size(); n += step) part.push_back(cases[n]);
  std::cout << what << ": " << part.size() << " of " << cases.size() << '\n';
  return part;
}

// A check without the objects that gtest's and rapidcheck's macros create, which are too slow for each element of a
// tile.
inline void require(bool holds, const char* what) {
  if (!holds) [[unlikely]]
    throw std::runtime_error(what);
}

// Returns the number of visited points. Stops after five failures.
template <class Point, class Law, class Text>
std::size_t for_whole_grid(const char* what, const std::vector<Point>& points, std::size_t thin, const Law& law,
                           const Text& text) {
  const std::size_t step = grid_step(thin);
  std::size_t visited = 0, failed = 0;
  for (std::size_t n = 0; n < points.size() && failed < 5; n += step, ++visited) {
    try {
      law(points[n]);
    } catch (const std::exception& error) {
      ADD_FAILURE() << what << ", point " << n << ": " << text(points[n]) << ": " << error.what();
      ++failed;
    }
  }
  std::cout << what << ": " << visited << " of " << points.size() << '\n';
  return visited;
}

}  // namespace kvscope::test
