// A law over a whole grid of parameters: every point is visited, and a point that fails is named. Under the sanitizers,
// which take ten times as long, a fixed part of it is: every n-th point.
//
//   const auto points = ...;                                  // every point of the grid
//   const std::size_t visited = test::for_whole_grid("copies", points, 11, [](const Point& p) {
//     test::require(holds(p), "the copy is torn");            // throws; the point's text follows
//   }, [](const Point& p) { return to_text(p); });
//   prints: copies: 15732 of 15732
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

namespace kvscope::test {

#ifdef KVSCOPE_SANITIZED
inline constexpr bool kThinGrids = true;
#else
inline constexpr bool kThinGrids = false;
#endif

// gtest's and rapidcheck's macros make objects of what they check: too slow for every element of a tile.
inline void require(bool holds, const char* what) {
  if (!holds) [[unlikely]]
    throw std::runtime_error(what);
}

// How many points were visited: all of them, or every `thin`-th under the sanitizers. Stops after five that fail.
template <class Point, class Law, class Text>
std::size_t for_whole_grid(const char* what, const std::vector<Point>& points, std::size_t thin, const Law& law,
                           const Text& text) {
  const std::size_t step = kThinGrids ? thin : 1;
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
