// The CTAs of a sampled launch: those that run, by number or by place.
//
//   0-3,last     CTAs 0, 1, 2, 3 and the last one
//   (1,2,0)      the CTA with these coordinates, written as in reports
//   5-last       from CTA 5 on
//
// CTAs are numbered from 0, x fastest. Whole clusters run. CTAs past the end of the grid are ignored, so that one list
// serves all launches of a program; a list without a CTA of the grid is a fault.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope::ptx {

inline constexpr std::string_view kCtasHelp =
    "Run these CTAs only: numbers, ranges, last, or coordinates, such as 0-3,last or (1,2,0)";

struct CtaSample {
  std::vector<std::int64_t> clusters;  // ascending; empty: every CTA runs
  std::string fault;                   // of the list; "": none
};

// `cluster`: its extents, 1 in a launch without clusters; they divide the grid.
[[nodiscard]] CtaSample sample_ctas(std::string_view list, const std::array<std::int64_t, 3>& grid,
                                    const std::array<std::int64_t, 3>& cluster);

}  // namespace kvscope::ptx
