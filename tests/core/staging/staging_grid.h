// The grid of tiles that tests of staging visit: by TMA every type, page and swizzle, through LDS every type, matrix
// instruction, swizzle and page; K and V of each. Includes the points that a path rejects.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/layout/swizzle.h"
#include "tests/core/staging/staging_fixture.h"

namespace kvscope::testing_support {

// Boxes of one swizzle row per row must begin at multiples of 128 B when there are several: the only reason for
// rejection in the grid.
inline bool tma_can(const StagingCase& c) {
  const std::int64_t BN = c.page == 1 ? 16 : 64;
  const std::int64_t issue_rows = c.page == 0 ? BN : std::min(BN, c.page);
  return c.dtype != DType::e5m2 && issue_rows * bytes(c.swizzle) % 128 == 0;
}

inline std::vector<StagingCase> tma_cases() {
  std::vector<StagingCase> cases;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::e4m3}) {
    for (const std::int64_t page : {0, 1, 16, 64, 128, 256}) {
      for (const SwizzleMode mode : {SwizzleMode::none, SwizzleMode::b32, SwizzleMode::b64, SwizzleMode::b128}) {
        for (const KOrV kv : {KOrV::k, KOrV::v})
          cases.push_back({.dtype = dtype, .page = page, .swizzle = mode, .kv = kv});
      }
    }
  }
  return cases;
}

inline std::vector<StagingCase> lds_cases() {
  std::vector<StagingCase> cases;
  for (const DType dtype : {DType::bf16, DType::f16, DType::e4m3, DType::e5m2}) {
    const bool bytes = size_of(dtype) == 1;
    const std::vector<LdsMma> mmas = bytes ? std::vector{LdsMma::m32x32x64, LdsMma::m16x16x128}
                                           : std::vector{LdsMma::m32x32x8, LdsMma::m32x32x16, LdsMma::m16x16x32};
    for (const LdsMma mma : mmas) {
      for (const LdsSwizzle swizzle : {LdsSwizzle::shipped, LdsSwizzle::none, LdsSwizzle::s304, LdsSwizzle::s303,
                                       LdsSwizzle::s203, LdsSwizzle::s202}) {
        for (const std::int64_t page : {0, 64, 128, 256}) {
          for (const KOrV kv : {KOrV::k, KOrV::v}) {
            cases.push_back({.dtype = dtype, .page = page, .mma = mma, .lds_swizzle = swizzle, .kv = kv});
          }
        }
      }
    }
  }
  return cases;
}

}  // namespace kvscope::testing_support
