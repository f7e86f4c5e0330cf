// Judges many candidates against one golden, for bound_study_test.py: `kvscope verify --no-diagnose` for each of them,
// without starting a program and reading the golden and its inputs each time.
//
// Requests are lines of standard input; each gets one line of standard output:
//   golden GOLDEN INPUTS                                     the files that the next candidates are compared with
//   judge O P PARTIALS ACCUMULATOR_BITS TILE_KEYS LSE        types of o, P (- for default) and partials (- for default),
//                                                            numbers, and 1 if lse follows; then the bytes of o, and of
//                                                            lse in f32, in the golden's shapes
// The answer to `judge` is "pass", or the criteria that failed, "name: detail" each, with tabs between them.
#include <cstdint>
#include <exception>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>

#include "apps/common/diagnosis_inputs.h"
#include "core/base/errors.h"
#include "core/golden/bundle/bundle.h"
#include "core/golden/verdict/compare.h"

namespace kvscope::apps {
namespace {

std::optional<DType> stated(const std::string& text) {
  if (text == "-") return std::nullopt;
  for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::e4m3}) {
    if (name(type) == text) return type;
  }
  throw InputError("standard input", "type", text + " is not f32, f16, bf16 or e4m3");
}

struct Golden {
  golden::Bundle bundle;
  std::unique_ptr<GoldenInputs> inputs;
};

golden::Tensor read_tensor(DType type, const std::vector<std::int64_t>& shape) {
  golden::Tensor tensor = golden::make_tensor(type, shape);
  std::cin.read(reinterpret_cast<char*>(tensor.bytes.data()), static_cast<std::streamsize>(tensor.bytes.size()));
  if (!std::cin) throw InputError("standard input", "candidate", "ends within a tensor");
  return tensor;
}

std::string judge(const Golden& golden, std::istringstream& request) {
  std::string output, probabilities, partials;
  golden::CompareOptions options;
  bool with_lse = false;
  request >> output >> probabilities >> partials >> options.rounding.accumulator_bits >> options.rounding.tile_keys >>
      with_lse;
  if (!request) throw InputError("standard input", "request", "has too few words");
  options.rounding.probabilities = stated(probabilities);
  options.rounding.partials = stated(partials);
  options.inputs = &golden.inputs->problem();
  golden::Bundle candidate;
  const std::optional<DType> type = stated(output);
  candidate.tensors.emplace("o", read_tensor(type.value_or(DType::f32), golden.bundle.tensors.at("o").shape));
  if (with_lse) {
    candidate.tensors.emplace("lse", read_tensor(DType::f32, golden.bundle.tensors.at("lse").shape));
  }
  const golden::CompareResult result = golden::compare(golden.bundle, candidate, options);
  std::string answer;
  for (const golden::Criterion& criterion : result.criteria) {
    if (!criterion.passed) answer += (answer.empty() ? "" : "\t") + criterion.name + ": " + criterion.detail;
  }
  return result.passed ? "pass" : answer;
}

int run() {
  std::optional<Golden> golden;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream request(line);
    std::string verb;
    request >> verb;
    if (verb == "golden") {
      std::string path, inputs;
      request >> path >> inputs;
      golden.emplace();
      golden->bundle = golden::load_bundle(path);
      golden->inputs = std::make_unique<GoldenInputs>(golden->bundle, path, inputs);
      std::cout << "ready" << std::endl;
    } else if (verb == "judge" && golden) {
      std::cout << judge(*golden, request) << std::endl;
    } else {
      throw InputError("standard input", "request", "'" + line + "' is not golden, or judge after golden");
    }
  }
  return 0;
}

}  // namespace
}  // namespace kvscope::apps

int main() {
  try {
    return kvscope::apps::run();
  } catch (const std::exception& error) {
    std::cerr << "bound_study_judge: " << error.what() << "\n";
    return 2;
  }
}
