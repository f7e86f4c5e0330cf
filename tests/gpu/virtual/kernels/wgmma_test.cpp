// K18: warpgroup products with every layout that a descriptor can describe.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/gpu/virtual/kernels/wgmma_case.h"

namespace kvscope::ptx::test::wgmma_test {
namespace {

// Small integers: every order of the sum is exact. The checksum is of 64 x 64 floats, row by row.
TEST(K18, MultipliesFromEveryLayoutOfBothOperands) {
  const WgmmaCase data;
  ASSERT_EQ(fnv_of(data.expected()), 0x164126ae312ca430U);
  for (const int row : {16, 32, 64, 128})
    for (const bool a_along_m : {false, true})
      for (const bool b_along_n : {false, true})
        for (const bool a_in_registers : {false, true})
          for (const Schedule& schedule : kSchedules) {
            // Sufficient coverage of the combinations.
            if (schedule.policy != Policy::late && (a_along_m != b_along_n)) continue;
            SCOPED_TRACE(testing::Message() << row << "-byte rows, A along " << (a_along_m ? 'm' : 'k') << ", B along "
                                            << (b_along_n ? 'n' : 'k') << (a_in_registers ? ", A in registers" : "")
                                            << ", " << schedule.name);
            Gpu gpu("wgmma.ptx", schedule);
            const WgmmaCase::Launch launch = data.launch(gpu, row, a_along_m, b_along_n, a_in_registers, 0);
            gpu.run_clean(launch.run);
            EXPECT_EQ(gpu.download<float>(launch.out, 64 * 64), data.expected());
          }
}

}  // namespace
}  // namespace kvscope::ptx::test::wgmma_test
