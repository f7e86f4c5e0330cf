// Which named layouts an input fits, by the names, shapes and values of its index tensors, and, with a candidate, which
// of them give the candidate's output.
//
// Tensors that fit two layouts, such as nhd and hnd where the page size equals the number of heads, can only be told
// apart by values: the golden output of one of them is the kernel's output, that of the other is not.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/errors.h"
#include "core/golden/layouts/layouts.h"

namespace kvscope::golden {

struct LayoutFit {
  std::string layout;
  std::vector<Fault> faults;         // empty: the tensors fit
  std::vector<std::string> options;  // options that the layout needs and that were not given: "--scale"
  std::string sizes;                 // "13 blocks of 4 tokens, 2 KV heads of 6 f32", without faults
  std::optional<bool> passed;        // the candidate against the golden output in this layout
  double worst_ratio = 0;            // of the candidate's errors to the bound; infinity for another shape
  std::string note;                  // why the candidate could not be compared
};

// All named layouts: those that fit first, then by number of faults. `options.layout` is not used. `candidate_name` is
// the candidate's file: the one tensor of a .npy file is its output, whatever the file is called.
[[nodiscard]] std::vector<LayoutFit> detect_layouts(const Bundle& bundle, const LayoutOptions& options,
                                                    const Bundle* candidate, std::string_view source,
                                                    std::string_view candidate_name = "the candidate");

}  // namespace kvscope::golden
