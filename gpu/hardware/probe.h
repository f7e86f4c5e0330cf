// Probes: experiments on a GPU about behavior that the manuals leave open. H1 to H20 are about tensor copies, barriers
// and shared memory, P1 to P4 about arithmetic and warps. For each, the model has made a choice (docs/FIDELITY.md); a
// probe measures what a device does and compares it with that choice.
//
//   as expected      the documented behavior, or the model's
//   differs          a choice of the model, or a switch of core/tma/box_plan.h, is wrong for this GPU
//   settled          the behavior was unknown before this measurement
//   not applicable   the virtual GPU has no driver, or rejects the case by design
//   failed           no answer came
//
// A part of a probe is one experiment. Many of them end a CUDA context, so the check program runs each part in a
// separate process (check.h). Every probe also runs on the virtual GPU, where its answer is the model's documented
// choice: tests/gpu/hardware tests that.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/launch/cuda_driver.h"
#include "gpu/launch/device.h"

namespace kvscope::gpu {

// The device under test.
struct ProbeDevice {
  Device& device;
  const cuda::Driver* driver = nullptr;  // null: the virtual GPU
  std::string library;                   // the driver library, to load it again
  std::int64_t random_blocks = 0;        // random products of 16 x 8 that a part of P1 compares
  [[nodiscard]] bool is_virtual() const { return driver == nullptr; }
};

enum class ProbeVerdict { as_expected, differs, settled, not_applicable, failed };
[[nodiscard]] std::string_view name(ProbeVerdict verdict);  // "as expected"

struct Answer {
  std::string measured;
  std::optional<std::string> expected{};  // std::nullopt: unknown
  std::vector<std::string> details{};     // values for a closer look
  ProbeVerdict verdict = ProbeVerdict::settled;
};
// Compares the two: as expected, differs, or settled.
[[nodiscard]] Answer answer(std::string measured, std::optional<std::string> expected,
                            std::vector<std::string> details = {});
[[nodiscard]] Answer not_applicable(std::string why);

struct ProbePart {
  std::string name;  // "c[0] = 4, 128B swizzle"
  std::function<Answer(ProbeDevice&)> run;
};

struct Probe {
  std::string id;          // "H5"
  std::string question;    // one line
  std::string experiment;  // one line
  std::vector<ProbePart> parts;
};

// H1 .. H20, P1 .. P4.
[[nodiscard]] const std::vector<Probe>& all_probes();
// Runs a part; an exception becomes a failed answer.
[[nodiscard]] Answer ask(const ProbePart& part, ProbeDevice& whom);

// The files of probes, in the order of all_probes().
[[nodiscard]] std::vector<Probe> probes_of_copies();
[[nodiscard]] std::vector<Probe> probes_of_faults();
[[nodiscard]] std::vector<Probe> probes_of_the_encoder();
[[nodiscard]] std::vector<Probe> probes_of_shared_memory();
[[nodiscard]] std::vector<Probe> probes_of_arithmetic();

// "stopped: error 715" with the driver's number; "stopped: TMA_ARG" with the virtual GPU's report.
[[nodiscard]] std::string how_it_stopped(const ProbeDevice& whom, const Outcome& outcome);
// The first fault of the outcome; later faults are consequences of it.
[[nodiscard]] std::vector<std::string> first_fault(const Outcome& outcome);
// The expected result of how_it_stopped: one for hardware, one for the virtual GPU.
[[nodiscard]] std::string stopped_with(const ProbeDevice& whom, int cuda_error, std::string_view report);

}  // namespace kvscope::gpu
