// One kept mutant on a GPU: whether the values of its first case are wrong there. mutants_on_gpu.py runs all of them, also
// under compute-sanitizer; this program ends after one, because a mutant may hang or destroy its context.
//
//   mutants_on_gpu list          a line per mutant: its number, name, what it fails on the virtual GPU, its mistake
//   mutants_on_gpu run N         "right", "wrong: ...", or "fault: ..." with the driver's error; exit code 0
//   mutants_on_gpu base N        the same for the kernel without the mistake
// Run it in the root of the repository: it reads tests/conformance/mutants.
#include <exception>
#include <iostream>
#include <string>

#include "gpu/launch/cuda_gpu.h"
#include "tests/conformance/kept_mutants.h"
#include "tests/gpu/launch/forwarding_device.h"

namespace {

using namespace kvscope;
using namespace kvscope::gpu;

// Passes everything on, and keeps the faults of launches.
class Recorded final : public test::ForwardingDevice {
 public:
  Recorded() : ForwardingDevice(device_) {}
  Outcome launch(const KernelLaunch& launch, std::span<const std::byte> params) override {
    Outcome outcome = device_.launch(launch, params);
    if (fault.empty() && !outcome.faults.empty()) fault = outcome.faults.front();
    return outcome;
  }
  std::string fault;

 private:
  CudaGpu device_;
};

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

int run(const KeptMutant& mutant, const std::string& ptx) {
  const Kernel& kernel = kernel_of(mutant.base);
  const Case& c = case_of(kernel, mutant.cases.front());
  Recorded device;
  if (device.info().architecture != c.architecture) {
    std::cout << "left out: needs " << c.architecture << '\n';
    return 0;
  }
  try {
    device.use_ptx(kernel.name, ptx);
    const Verdict verdict = c.run(device);
    if (!device.fault.empty()) {
      std::cout << "fault: " << first_line(device.fault) << '\n';
    } else {
      std::cout << (verdict.faults.empty() ? "right" : "wrong: " + first_line(verdict.faults.front())) << '\n';
    }
  } catch (const std::exception& error) {  // calls after a destroyed context fail
    std::cout << "fault: " << first_line(device.fault.empty() ? error.what() : device.fault) << '\n';
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const auto& all = kept_mutants();
  if (what == "list" && argc == 2) {
    for (std::size_t i = 0; i < all.size(); ++i)
      std::cout << i << '\t' << all[i].name << '\t' << all[i].fails << '\t' << all[i].mistake << '\n';
    return 0;
  }
  try {
    const std::size_t n = argc == 3 ? std::stoul(argv[2]) : all.size();
    if ((what == "run" || what == "base") && n < all.size())
      return run(all[n], what == "run" ? mutated_ptx(all[n]) : base_ptx(all[n].base));
  } catch (const std::exception& error) {
    std::cerr << "mutants_on_gpu: " << error.what() << '\n';
    return 2;
  }
  std::cerr << "mutants_on_gpu: usage: mutants_on_gpu list | run N | base N, N below " << all.size() << '\n';
  return 2;
}
