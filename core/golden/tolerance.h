// Fixed tolerances of public test suites, under their names. Offered so that a result can be set beside what a suite
// would have said; never the default, because a fixed tolerance that suits a bf16 kernel at 4096 tokens lets a whole
// wrong page through (attention/bounds.h has the policy).
//
//   name            f64            f32            f16            bf16           combined  from
//   flashattention  1e-5 1e-5      1e-5 1e-5      1e-3 1e-3      1e-2 1e-2      sum       stands for its rule:
//                                                                                         2x the error of PyTorch
//                                                                                         in that type
//   flashinfer      1e-3 1e-3      1e-3 1e-3      1e-3 1e-3      1e-2 1e-2      sum       batch decode and prefill
//   vllm            1.5e-2 1e-2    1.5e-2 1e-2    1.5e-2 1e-2    1.5e-2 1e-2    sum       paged attention kernels
//   flashmla        8e-4 2.01/128  8e-4 2.01/128  8e-4 2.01/128  8e-4 2.01/128  either    decode; also cosine 5e-6
//   torch           1e-7 1e-7      1e-5 1.3e-6    1e-5 1e-3      1e-5 1.6e-2    sum       torch.testing.assert_close
//                   absolute, relative
//
// "sum": |o - o64| <= absolute + relative * |o64|. "either": the larger of the two.
// Example: vllm, o64 = 0.5 -> 0.015 + 0.005 = 0.02, for an output whose elements are about 0.015 at 4096 tokens.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/dtype.h"

namespace kvscope::golden {

struct Tolerance {
  double absolute = 0;
  double relative = 0;
  bool either = false;                      // the larger of the two suffices
  std::optional<double> cosine_difference;  // of the whole tensor, beside the elements
  [[nodiscard]] double allowed(double golden) const;
};

// "flashattention", "flashinfer", "vllm", "flashmla", "torch".
[[nodiscard]] const std::vector<std::string>& profile_names();

// InputError ("--profile") naming the profiles when there is none of that name. `out`: f64, f32, f16 or bf16.
[[nodiscard]] Tolerance profile(std::string_view profile_name, DType out);

}  // namespace kvscope::golden
