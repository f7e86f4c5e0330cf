#include "gpu/offload/candidate_check.h"

#include <fmt/format.h>

#include <utility>

#include "core/golden/golden_bundle.h"
#include "core/golden/verdict/compare_report.h"
#include "gpu/launch/device_report.h"

namespace kvscope::gpu {
namespace {

golden::Bundle bundle_of(const attention::Problem& problem, const OffloadResult& got) {
  const std::int64_t queries = problem.total_queries();
  golden::Bundle bundle;
  golden::Tensor o;
  o.dtype = got.dtype;
  o.shape = {queries, problem.query_heads, problem.v.head_size};
  o.bytes = got.o;
  bundle.tensors["o"] = std::move(o);
  bundle.tensors["lse"] = golden::tensor_of<float>({queries, problem.query_heads}, got.lse);
  bundle.manifest.set("conventions", golden::conventions(problem.options));
  return bundle;
}

std::string times(std::int64_t is, std::int64_t ideal) {
  return ideal > 0 ? fmt::format(" ({:.2f}x ideal)", static_cast<double>(is) / static_cast<double>(ideal)) : "";
}

}  // namespace

bool CandidateCheck::passed() const {
  return candidate.outcome.faults.empty() && comparison.passed;
}

CandidateCheck check_candidate(Device& device, const attention::Problem& problem, const attention::Result& golden) {
  CandidateCheck check;
  check.device = device.info();
  check.candidate = attention_on(device, problem);
  if (!check.candidate.outcome.faults.empty()) return check;
  golden::CompareOptions options;
  options.candidate_name = check.candidate.kernel;
  if (!check.candidate.kernel.empty())
    check.comparison =
        golden::compare(golden::golden_bundle(problem, golden, {}), bundle_of(problem, check.candidate), options);
  check.candidate.o.clear();
  check.candidate.lse.clear();
  return check;
}

std::string to_text(const CandidateCheck& check) {
  const OffloadResult& got = check.candidate;
  std::string text =
      fmt::format("\ncandidate of {}, kernel {}: {}\n", check.device.name, got.kernel.empty() ? "none" : got.kernel,
                  check.passed() ? "within the rounding bound" : "FAILS");
  for (const std::string& note : got.notes) text += "  " + note + "\n";
  for (const std::string& fault : got.outcome.faults) text += "  " + fault + "\n";
  for (const golden::TensorReport& tensor : check.comparison.tensors)
    if (tensor.worst)
      text += fmt::format("  {:<24} largest error {:.3g}x the bound for rounding to {} ({})\n", tensor.name,
                          tensor.worst->ratio, name(got.dtype), golden::describe(tensor.worst->place));
  for (const golden::Criterion& criterion : check.comparison.criteria)
    if (!criterion.passed) text += fmt::format("  FAIL {}: {}\n", criterion.name, criterion.detail);
  if (got.outcome.costs) {
    const Costs& costs = *got.outcome.costs;
    text += fmt::format("  {:<24} {} warp instructions, {} wavefronts{}, {} sectors{}, {} bytes by TMA\n", "costs",
                        costs.instructions, costs.wavefronts, times(costs.wavefronts, costs.ideal_wavefronts),
                        costs.sectors, times(costs.sectors, costs.ideal_sectors), costs.tma_bytes);
  }
  return text;
}

json::Value to_json(const CandidateCheck& check) {
  const OffloadResult& got = check.candidate;
  json::Value value;
  value.set("passed", check.passed());
  value.set("device", check.device.kind);
  value.set("device_name", check.device.name);
  value.set("kernel", got.kernel);
  value.set("dtype", std::string(name(got.dtype)));
  value.set("notes", json::strings(got.notes));
  value.set("faults", json::strings(got.outcome.faults));
  if (got.outcome.faults.empty() && !got.kernel.empty()) value.set("comparison", golden::json_report(check.comparison));
  if (got.outcome.costs) value.set("costs", to_json(*got.outcome.costs));
  return value;
}

}  // namespace kvscope::gpu
