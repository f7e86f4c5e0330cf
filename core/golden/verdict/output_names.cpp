#include "core/golden/verdict/output_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstdint>
#include <functional>
#include <numeric>
#include <utility>

#include "core/base/errors.h"
#include "core/golden/verdict/detail/output_shapes.h"
#include "core/golden/verdict/detail/verdict_loops.h"

namespace kvscope::golden {
namespace {

struct OutputNames {
  std::string_view canonical;
  std::array<std::string_view, 2> others;
};

constexpr std::array<OutputNames, 2> kOutputNames{{{"o", {"out", "output"}}, {"lse", {"softmax_lse", "logsumexp"}}}};

// A .npy file stores one tensor without a name: `candidate` calls it as the file is called.
bool is_unnamed(const Bundle& candidate, std::string_view source) {
  return source.ends_with(".npy") && candidate.tensors.size() == 1;
}

std::int64_t elements_of(const Tensor& tensor) {
  return std::accumulate(tensor.shape.begin(), tensor.shape.end(), std::int64_t{1}, std::multiplies());
}

// A .npy file was taken as the output for want of a name, and its tensor cannot be that output in any order of axes.
// Patterns of bf16 in u16 have the advice of the comparison.
void reject_other_tensor(const Tensor& golden, const Tensor& tensor, const std::string& where,
                         std::string_view source) {
  const bool of_type = is_output_type(tensor.dtype) || tensor.dtype == DType::u16;
  if (of_type && elements_of(tensor) == elements_of(golden)) return;
  throw InputError(std::string(source), where,
                   fmt::format("holds {}, but the golden's output o is {}: pass the kernel's output, as f64, f32, f16 "
                               "or bf16",
                               describe(tensor), describe(golden)));
}

}  // namespace

std::string output_names(std::string_view name) {
  for (const OutputNames& names : kOutputNames) {
    if (names.canonical == name) return fmt::format("{}, {} or {}", name, names.others[0], names.others[1]);
  }
  return std::string(name);
}

std::vector<std::string> use_output_names(const Bundle& golden, Bundle& candidate, std::string_view source) {
  std::vector<std::string> notes;
  std::vector<Fault> faults;
  std::string unnamed;  // the fault's place for a tensor that is the output for want of a name
  for (const OutputNames& names : kOutputNames) {
    const std::string canonical(names.canonical);
    if (!golden.tensors.contains(canonical)) continue;
    std::vector<std::string> present;
    if (candidate.tensors.contains(canonical)) present.push_back(canonical);
    for (const std::string_view other : names.others) {
      const std::string name(other);
      if (candidate.tensors.contains(name) && !golden.tensors.contains(name)) present.push_back(name);
    }
    if (present.empty() && canonical == "o" && is_unnamed(candidate, source) &&
        !golden.tensors.contains(candidate.tensors.begin()->first)) {
      const auto& [name, tensor] = *candidate.tensors.begin();
      unnamed = fmt::format("candidate '{}'", name);
      if (name == "q" || name == "query") {  // these alone have the shape of an output
        throw InputError(std::string(source), unnamed,
                         fmt::format("is {} and has the name of the queries, an input: pass the kernel's output, or "
                                     "rename the file to o.npy if it is the output",
                                     describe(tensor)));
      }
      present.push_back(name);
    }
    if (present.size() > 1) {
      faults.push_back({fmt::format("candidate '{}'", canonical),
                        fmt::format("is stored under {} names, {}: keep one of these tensors", present.size(),
                                    fmt::join(present, " and "))});
    } else if (present.size() == 1 && present.front() != canonical) {
      auto tensor = candidate.tensors.extract(present.front());
      tensor.key() = canonical;
      candidate.tensors.insert(std::move(tensor));
      notes.push_back(fmt::format("candidate '{}' is compared as '{}'", present.front(), canonical));
    }
  }
  if (!faults.empty()) throw InputError(std::string(source), std::move(faults));
  const std::vector<std::string> shapes = use_output_shapes(golden, candidate);
  notes.insert(notes.end(), shapes.begin(), shapes.end());
  if (!unnamed.empty()) reject_other_tensor(golden.tensors.at("o"), candidate.tensors.at("o"), unnamed, source);
  return notes;
}

}  // namespace kvscope::golden
