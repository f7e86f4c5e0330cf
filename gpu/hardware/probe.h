// Questions that manuals leave open, asked of a GPU: H1 to H20 about tensor copies, barriers and shared memory, P1 to
// P4 about arithmetic and warps. The model has an answer to each that is its own choice (docs/FIDELITY.md); a probe
// measures what a device does and says whether that is it.
//
//   as expected      what is documented, or what the model does
//   differs          something else: a choice of the model, or a switch of core/tma/box_plan.h, is wrong for this GPU
//   settled          nobody had an answer before: here is one
//   not applicable   the virtual GPU has no driver, or refuses by design
//   failed           no answer came
//
// A part of a probe is one experiment. Many end a CUDA context, so the check program runs each part in a process of its
// own (check.h). Every probe also runs on the virtual GPU, where its answer is the model's documented choice:
// tests/gpu/hardware holds that.
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

// Who is asked.
struct ProbeDevice {
  Device& device;
  const cuda::Driver* driver = nullptr;  // null: the virtual GPU
  std::string library;                   // the driver's, to be looked up again
  std::int64_t random_blocks = 0;        // random products of 16 x 8 that a part of P1 compares
  [[nodiscard]] bool is_virtual() const { return driver == nullptr; }
};

enum class ProbeVerdict { as_expected, differs, settled, not_applicable, failed };
[[nodiscard]] std::string_view name(ProbeVerdict verdict);  // "as expected"

struct Answer {
  std::string measured;
  std::optional<std::string> expected{};  // nothing: no one knows
  std::vector<std::string> details{};     // what a person wants to see who doubts
  ProbeVerdict verdict = ProbeVerdict::settled;
};
// By comparing the two: as expected, differs, or settled.
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
// Runs a part; what it throws is a failed answer.
[[nodiscard]] Answer ask(const ProbePart& part, ProbeDevice& whom);

// The files of probes, in the order of all_probes().
[[nodiscard]] std::vector<Probe> probes_of_copies();
[[nodiscard]] std::vector<Probe> probes_of_faults();
[[nodiscard]] std::vector<Probe> probes_of_the_encoder();
[[nodiscard]] std::vector<Probe> probes_of_shared_memory();
[[nodiscard]] std::vector<Probe> probes_of_arithmetic();

// "stopped: error 715" as the driver numbers it; "stopped: TMA_ARG" as the virtual GPU reports it.
[[nodiscard]] std::string how_it_stopped(const ProbeDevice& whom, const Outcome& outcome);
// Its first fault: what follows is of its making.
[[nodiscard]] std::vector<std::string> first_fault(const Outcome& outcome);
// What how_it_stopped is to say: one for hardware, one for the virtual GPU.
[[nodiscard]] std::string stopped_with(const ProbeDevice& whom, int cuda_error, std::string_view report);

}  // namespace kvscope::gpu
