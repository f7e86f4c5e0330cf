#include "gpu/hardware/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>

namespace kvscope::gpu {
namespace {

// H2 before H10: by letter, then by number.
std::pair<char, int> place(const Probe& probe) {
  return {probe.id.front(), std::stoi(probe.id.substr(1))};
}

}  // namespace

std::string_view name(ProbeVerdict verdict) {
  switch (verdict) {
    case ProbeVerdict::as_expected:
      return "as expected";
    case ProbeVerdict::differs:
      return "differs";
    case ProbeVerdict::settled:
      return "settled";
    case ProbeVerdict::not_applicable:
      return "not applicable";
    case ProbeVerdict::failed:
      break;
  }
  return "failed";
}

Answer answer(std::string measured, std::optional<std::string> expected, std::vector<std::string> details) {
  Answer made{.measured = std::move(measured), .expected = std::move(expected), .details = std::move(details)};
  if (made.expected) made.verdict = *made.expected == made.measured ? ProbeVerdict::as_expected : ProbeVerdict::differs;
  return made;
}

Answer not_applicable(std::string why) {
  return {.measured = std::move(why), .verdict = ProbeVerdict::not_applicable};
}

const std::vector<Probe>& all_probes() {
  static const std::vector<Probe> probes = [] {
    std::vector<Probe> all;
    for (auto&& some : {probes_of_copies(), probes_of_faults(), probes_of_the_encoder(), probes_of_shared_memory(),
                        probes_of_arithmetic()})
      all.insert(all.end(), some.begin(), some.end());
    std::stable_sort(all.begin(), all.end(), [](const Probe& a, const Probe& b) { return place(a) < place(b); });
    return all;
  }();
  return probes;
}

Answer ask(const ProbePart& part, ProbeDevice& whom) {
  try {
    return part.run(whom);
  } catch (const std::exception& error) {
    return {.measured = fmt::format("no answer: {}", error.what()), .verdict = ProbeVerdict::failed};
  }
}

std::string how_it_stopped(const ProbeDevice& whom, const Outcome& outcome) {
  if (outcome.faults.empty()) return "ran to its end";
  // The context keeps its error: synchronize returns it again.
  if (whom.driver != nullptr) return fmt::format("stopped: error {}", whom.driver->synchronize());
  const std::string& text = outcome.faults.front();
  return "stopped: " + text.substr(0, text.find(' '));
}

std::vector<std::string> first_fault(const Outcome& outcome) {
  return {outcome.faults.begin(), outcome.faults.begin() + (outcome.faults.empty() ? 0 : 1)};
}

std::string stopped_with(const ProbeDevice& whom, int cuda_error, std::string_view report) {
  return whom.is_virtual() ? fmt::format("stopped: {}", report) : fmt::format("stopped: error {}", cuda_error);
}

}  // namespace kvscope::gpu
