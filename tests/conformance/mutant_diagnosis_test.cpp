#include <gtest/gtest.h>

#include <iostream>

#include "tests/conformance/kept_mutants.h"

namespace kvscope::gpu::mutant_diagnosis_test {
namespace {

TEST(MutantDiagnosis, Explore) {
  for (const KeptMutant& mutant : kept_mutants()) {
    const Kernel& kernel = kernel_of(mutant.base);
    const std::string& k = kernel.name;
    if (!k.ends_with("_decode") && k != "paged_prefill") continue;
    if (getenv("MUT") && mutant.name.find(getenv("MUT")) == std::string::npos) continue;
    for (const std::string& name : mutant.cases) {
      const Case& c = case_of(kernel, name);
      WatchedDevice device(c.architecture, kernel.name, mutated_ptx(mutant), Reports::hidden);
      std::cout << "### " << mutant.name << " [" << name << "] " << mutant.fails << ": " << mutant.mistake << "\n";
      try {
        const Verdict verdict = c.run(device);
        if (verdict.diagnosis) {
          std::cout << golden::text_report(*verdict.diagnosis);
          for (const auto& e : verdict.diagnosis->explanations) std::cout << "   = " << e.name << "\n";
          for (const auto& e : verdict.diagnosis->nearest) std::cout << "   ~ " << e.name << " " << e.failing_explained << " " << e.misfit << "\n";
        } else {
          std::cout << "no diagnosis, " << verdict.faults.size() << " faults\n";
        }
      } catch (const std::exception& e) {
        std::cout << "exception " << e.what() << "\n";
      }
      std::cout << std::flush;
    }
  }
}

}  // namespace
}  // namespace kvscope::gpu::mutant_diagnosis_test
