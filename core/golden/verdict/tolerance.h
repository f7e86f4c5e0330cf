// Fixed tolerances of public test suites, under their names, to compare a result with the criterion of such a suite.
// Never the default: a fixed tolerance that suits a bf16 kernel at 4096 tokens accepts an output with a whole wrong
// page (attention/bounds.h has the derived bound).
//
//   name            f64            f32            f16            bf16           combined  from
//   flashattention  1e-5 1e-5      1e-5 1e-5      1e-3 1e-3      1e-2 1e-2      sum       approximates its rule:
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
  bool either = false;                      // the larger of the two tolerances applies
  std::optional<double> cosine_difference;  // of the whole tensor, in addition to the elements
  [[nodiscard]] double allowed(double golden) const;
};

// "flashattention", "flashinfer", "vllm", "flashmla", "torch".
[[nodiscard]] const std::vector<std::string>& profile_names();

// The tolerance of that name. InputError ("--profile") with the list of names for any other. `out`: f64, f32, f16 or
// bf16.
[[nodiscard]] Tolerance profile(std::string_view profile_name, DType out);

}  // namespace kvscope::golden
