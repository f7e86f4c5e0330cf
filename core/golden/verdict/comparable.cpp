#include "core/golden/verdict/detail/comparable.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <utility>

#include "core/base/errors.h"
#include "core/golden/golden_bundle.h"
#include "core/golden/golden_inputs.h"
#include "core/golden/verdict/detail/verdict_loops.h"
#include "core/golden/verdict/golden_terms.h"
#include "core/golden/verdict/output_names.h"
#include "core/golden/verdict/tolerance.h"

namespace kvscope::golden {
namespace {

constexpr std::int64_t kMaxTokens = std::int64_t{1} << 48;

// [batch, queries, head, dim] holds the elements of [batch * queries, head, dim] in the same order, and so does lse
// [batch, head, 1] those of [batch, head].
bool same_elements(std::vector<std::int64_t> shape, const std::vector<std::int64_t>& golden) {
  if (shape.size() == 3 && golden.size() == 2 && shape[2] == 1 && shape[0] == golden[0]) {
    shape.pop_back();
  } else if (shape.size() == golden.size() + 1) {
    shape[1] *= shape[0];
    shape.erase(shape.begin());
  }
  return shape == golden;
}

void check_golden_output(const Bundle& golden, std::vector<Fault>& faults) {
  const Tensor& o = golden.tensors.at("o");
  if (o.dtype != DType::f64 || o.shape.size() != 3) {
    faults.push_back({"golden 'o'", fmt::format("is {}, but a golden output is f64 [query, head, dim]", describe(o))});
    return;
  }
  const std::vector<std::int64_t> rows(o.shape.begin(), o.shape.begin() + 2);
  for (const auto& [tensor_name, shape] : {std::pair<const char*, const std::vector<std::int64_t>&>{"a1", o.shape},
                                           {"a2", o.shape},
                                           {"smax", rows},
                                           {"lse", rows}}) {
    const Tensor* tensor = find_tensor(golden, tensor_name);
    if (tensor == nullptr) {
      if (std::string_view(tensor_name) != "lse") {
        faults.push_back({fmt::format("golden '{}'", tensor_name),
                          "is missing; the bound is made of it: make the golden with `kvscope golden`"});
      }
    } else if (tensor->dtype != DType::f64 || tensor->shape != shape) {
      faults.push_back({fmt::format("golden '{}'", tensor_name),
                        fmt::format("is {}, but must be f64 {}", describe(*tensor), shape_text(shape))});
    }
  }
  std::vector<TermShape> terms = optional_terms(o.shape);
  terms.push_back({"golden_error", {o.shape[0], o.shape[1], 2}});
  terms.push_back({"lost", {o.shape[0], o.shape[1], static_cast<std::int64_t>(attention::kLostTerms)}});
  terms.push_back({"partial_sums", {o.shape[0], o.shape[1], static_cast<std::int64_t>(attention::kPartialTerms)}});
  terms.push_back({"row_sum_cut", {o.shape[0], o.shape[1], static_cast<std::int64_t>(attention::kClumpTypes)}});
  terms.push_back({"largest_value", {o.shape[0], o.shape[1]}});
  for (const TermShape& term : terms) {
    const Tensor* tensor = find_tensor(golden, term.name);
    if (tensor != nullptr && (tensor->dtype != DType::f64 || tensor->shape != term.shape)) {
      faults.push_back({fmt::format("golden '{}'", term.name),
                        fmt::format("is {}, but must be f64 {}", describe(*tensor), shape_text(term.shape))});
    }
  }
}

// Places are computed from these tensors: they are optional, but must be valid when present.
void check_golden_places(const Bundle& golden, std::vector<Fault>& faults) {
  const Tensor* offsets = find_tensor(golden, "query_offsets");
  if (offsets != nullptr) {
    bool good = offsets->dtype == DType::i64 && offsets->shape.size() == 1 && offsets->shape[0] > 0;
    if (good) {
      const auto o = values<std::int64_t>(*offsets);
      good = o.front() == 0 && o.back() == golden.tensors.at("o").shape[0] && std::is_sorted(o.begin(), o.end());
    }
    if (!good) {
      faults.push_back(
          {"golden 'query_offsets'",
           fmt::format("is {}, but must be i64 [batch + 1], rising from 0 to the rows of o", describe(*offsets))});
    }
  }
  const Tensor* lengths = find_tensor(golden, "key_lengths");
  if (lengths != nullptr) {
    bool good = lengths->dtype == DType::i64 && lengths->shape.size() == 1;
    for (const std::int64_t length : good ? values<std::int64_t>(*lengths) : std::span<const std::int64_t>()) {
      good = good && length >= 0 && length < kMaxTokens;
    }
    if (!good)
      faults.push_back(
          {"golden 'key_lengths'", fmt::format("is {}, but must be i64 [batch] of lengths", describe(*lengths))});
  }
}

// What a candidate without `o` holds, and how to name its output.
std::string advice(const Bundle& candidate, std::string_view path) {
  constexpr std::size_t kMostNames = 8;
  std::vector<std::string> names;
  for (const auto& [tensor_name, unused] : candidate.tensors) names.push_back(tensor_name);
  const std::size_t more = names.size() - std::min(names.size(), kMostNames);
  names.resize(names.size() - more);
  if (more > 0) names.push_back(fmt::format("{} more", more));
  if (names.empty()) return "The candidate has no tensor";
  const std::string has = fmt::format("The candidate has {}: ", fmt::join(names, ", "));
  if (path.ends_with(".npy")) return has + "a .npy file has the name of its tensor, so rename the file to o.npy";
  return has + fmt::format("save the kernel's output as {}", output_names("o"));
}

// How to save an output of the right size in the golden's order: [query, head, dim] or, for lse, [query, head].
std::string shape_hint(std::vector<std::int64_t> have, std::vector<std::int64_t> want) {
  const bool is_lse = want.size() == 2;
  if (is_lse) have.push_back(1), want.push_back(1);
  const char* dim = is_lse ? "" : ", dim";
  if (have == std::vector{want[1], want[0], want[2]}) return fmt::format(": transpose it to [query, head{}]", dim);
  if (have.size() == 4 && have[0] * have[2] == want[0] && have[1] == want[1] && have[3] == want[2]) {
    return fmt::format(": transpose it to [batch, query, head{}]", dim);
  }
  const auto product = [](const std::vector<std::int64_t>& shape) {
    return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies());
  };
  return product(have) == product(want) ? fmt::format(": save it in the order and shape [query, head{}]", dim) : "";
}

void check_candidate(const Bundle& golden, const Bundle& candidate, const std::vector<std::string>& exact,
                     std::string_view path, std::vector<Fault>& faults) {
  const auto fault = [&](const std::string& tensor_name, std::string message) {
    faults.push_back({fmt::format("candidate '{}'", tensor_name), std::move(message)});
  };
  for (const char* tensor_name : {"o", "lse"}) {
    const Tensor* want = find_tensor(golden, tensor_name);
    const Tensor* have = find_tensor(candidate, tensor_name);
    if (want == nullptr) continue;
    if (have == nullptr) {
      if (std::string_view(tensor_name) == "o")
        fault(tensor_name, fmt::format("is missing; the golden has {}. {}", describe(*want), advice(candidate, path)));
      continue;
    }
    if (!same_elements(have->shape, want->shape)) {
      fault(tensor_name, fmt::format("has shape {}, the golden {}{}", shape_text(have->shape), shape_text(want->shape),
                                     shape_hint(have->shape, want->shape)));
    }
    if (!is_output_type(have->dtype)) {
      fault(tensor_name, fmt::format("is {}; an output is f64, f32, f16 or bf16{}", name(have->dtype),
                                     have->dtype == DType::u16
                                         ? fmt::format(": for bit patterns of bf16, save it as {0}_bf16, of f16 as "
                                                       "{0}_f16",
                                                       tensor_name)
                                         : ""));
    }
  }
  constexpr std::string_view kArithmetic =
      ": data that a kernel only moves has the same type and shape; compare the result of arithmetic without --exact";
  for (const std::string& tensor_name : exact) {
    const Tensor* want = find_tensor(golden, tensor_name);
    const Tensor* have = find_tensor(candidate, tensor_name);
    if (want == nullptr) {
      fault(tensor_name, "is to be compared bit for bit, but the golden does not have it");
    } else if (have == nullptr) {
      fault(tensor_name, fmt::format("is missing; the golden has {}", describe(*want)));
    } else if (have->dtype != want->dtype || have->shape != want->shape) {
      fault(tensor_name, fmt::format("is {}, the golden {}{}", describe(*have), describe(*want),
                                     tensor_name == "o" || tensor_name == "lse" ? kArithmetic : ""));
    }
  }
}

// Conventions stated in both manifests must agree: with different bases of lse the two outputs are not comparable.
void check_conventions(const Bundle& golden, const Bundle& candidate, CompareResult& result,
                       std::vector<Fault>& faults) {
  const json::Value* ours = golden.manifest.find("conventions");
  const json::Value* theirs = candidate.manifest.find("conventions");
  if (ours == nullptr || !ours->is_object()) return;
  for (const auto& [key, value] : *ours->as_object()) {
    const std::string text = value.is_string() ? *value.as_string() : json::dump(value, -1);
    result.conventions.push_back(fmt::format("{}: {}", key, text));
    const json::Value* other = theirs == nullptr ? nullptr : theirs->find(key);
    if (other != nullptr && *other != value) {
      faults.push_back({fmt::format("candidate convention '{}'", key),
                        fmt::format("is {}, the golden's is {}: make both the same way", json::dump(*other, -1),
                                    json::dump(value, -1))});
    }
  }
  if (theirs == nullptr) result.notes.emplace_back("the candidate states no conventions: the golden's are assumed");
}

}  // namespace

const Tensor* find_tensor(const Bundle& bundle, const std::string& tensor_name) {
  const auto found = bundle.tensors.find(tensor_name);
  return found == bundle.tensors.end() ? nullptr : &found->second;
}

std::vector<std::string> exact_names(const Bundle& golden, const CompareOptions& options) {
  std::set<std::string> names(options.exact.begin(), options.exact.end());
  if (const json::Value* listed = golden.manifest.find("exact"); listed != nullptr) {
    const json::Array* const list = listed->as_array();
    if (list == nullptr || !std::ranges::all_of(*list, &json::Value::is_string)) {
      throw InputError(options.golden_name, "manifest 'exact'",
                       fmt::format("is {}, not a list of names", json::dump(*listed, -1)));
    }
    for (const json::Value& entry : *list) names.insert(*entry.as_string());
  } else if (find_tensor(golden, "o") == nullptr && options.exact.empty()) {
    for (const auto& [tensor_name, unused] : golden.tensors) names.insert(tensor_name);
  }
  return {names.begin(), names.end()};
}

void check_comparable(const Bundle& golden, const Bundle& candidate, const CompareOptions& options,
                      const std::vector<std::string>& exact, CompareResult& result) {
  const bool has_output = find_tensor(golden, "o") != nullptr;
  std::vector<Fault> faults;
  static_cast<void>(stated_attention(golden, options.golden_name));
  static_cast<void>(stated_attention(candidate, options.candidate_name));
  if (has_output) {
    check_golden_output(golden, faults);
    if (faults.empty()) check_golden_places(golden, faults);
    // A candidate that is compared with the shapes of a faulty golden would be blamed for them.
    if (!faults.empty()) throw InputError(options.golden_name, std::move(faults));
  }
  check_candidate(golden, candidate, exact, options.candidate_name, faults);
  check_conventions(golden, candidate, result, faults);
  if (!has_output && exact.empty()) faults.push_back({"golden", "holds no tensor: nothing to compare"});
  if (options.profile) static_cast<void>(profile(*options.profile, DType::f32));  // throws for an unknown name
  if (!faults.empty()) throw InputError(options.candidate_name, std::move(faults));
}

}  // namespace kvscope::golden
