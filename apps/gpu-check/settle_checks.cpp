#include "apps/gpu-check/settle_checks.h"

#include <fmt/format.h>

#include <filesystem>
#include <initializer_list>
#include <system_error>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "gpu/verify/run_case.h"

namespace kvscope::apps {
namespace {

void check_unused_options(const gpu::CheckOptions& options, bool is_one,
                          const std::function<bool(const std::string& option)>& is_given) {
  std::vector<Fault> faults;
  const auto reject = [&](std::initializer_list<const char*> names, const char* reason) {
    for (const char* const name : names) {
      if (is_given(name)) faults.push_back({name, fmt::format("has no effect {}: leave it out", reason)});
    }
  };
  if (is_one) {
    reject({"--out", "--cases", "--probes", "--instructions", "--bench", "--time-limit", "--in-process"}, "with --one");
  } else {
    if (options.which.device == "virtual") reject({"--driver"}, "with --device virtual");
    if (!options.cases && !options.bench) reject({"--kernel"}, "without --cases or --bench");
    if (!options.cases && !options.instructions && !options.bench) {
      reject({"--small"}, "without --cases, --instructions or --bench");
    }
    if (!options.probes) reject({"--blocks"}, "without --probes");
    if (is_given("--in-process")) reject({"--time-limit"}, "with --in-process");
  }
  if (!faults.empty()) throw InputError("command line", std::move(faults));
}

}  // namespace

void settle_checks(gpu::CheckOptions& options, const std::string& one, const std::string& out,
                   const std::function<bool(const std::string& option)>& is_given) {
  if (!options.cases && !options.probes && !options.instructions && !options.bench)
    options.cases = options.probes = options.instructions = true;
  check_unused_options(options, !one.empty(), is_given);
  if (!one.empty()) return;
  std::error_code error;
  if (std::filesystem::exists(out, error) && !std::filesystem::is_directory(out, error)) {
    throw InputError(out, "", "is not a folder: name one for the report with --out");
  }
  if (!options.which.kernel.empty()) (void)gpu::select_cases(options.which.kernel, "");
}

}  // namespace kvscope::apps
