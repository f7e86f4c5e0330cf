// kvscope kernels list | verify | bench: the CUDA kernels of the paged KV path, compared with the model on the virtual
// GPU or on a GPU of this machine.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/common/cli.h"
#include "apps/common/faults.h"
#include "apps/common/help_page.h"
#include "apps/common/progress.h"
#include "apps/kvscope/changed_kernel.h"
#include "apps/kvscope/commands.h"
#include "apps/kvscope/gpu_devices.h"
#include "apps/launch/options.h"
#include "apps/launch/policy.h"
#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "gpu/bench/bench.h"
#include "gpu/launch/kernel_images.h"
#include "gpu/launch/virtual_gpu.h"
#include "gpu/verify/report.h"

namespace kvscope::apps {
namespace {

struct KernelsCommand {
  std::string device = "virtual";
  std::string kernel, part;
  std::string policy = "late";
  std::string sum = "seq";
  bool small = false;
  bool json = false;
  std::optional<std::string> junit;
  std::string ptx;  // a file that replaces the PTX of a kernel
};

int list(bool as_json) {
  json::Array kernels;
  for (const gpu::Kernel& kernel : gpu::all_kernels()) {
    std::vector<std::string> compiled_for;
    for (const gpu::KernelImage& image : gpu::kernel_images())
      if (image.kernel == kernel.name) compiled_for.emplace_back(image.architecture);
    std::sort(compiled_for.begin(), compiled_for.end(), [](const std::string& a, const std::string& b) {
      return std::pair(a.size(), a) < std::pair(b.size(), b);
    });
    const std::string architectures = fmt::format("{}", fmt::join(compiled_for, " "));
    if (as_json) {
      json::Value value;
      value.set("name", kernel.name);
      value.set("what", kernel.what);
      value.set("architectures", architectures);
      json::Array cases;
      for (const gpu::Case& c : kernel.cases) {
        json::Value one;
        one.set("name", c.name);
        one.set("what", c.what);
        cases.push_back(std::move(one));
      }
      value.set("cases", std::move(cases));
      kernels.push_back(std::move(value));
    } else {
      std::cout << fmt::format("{:<18} {:>3} cases  {:<16} {}\n", kernel.name, kernel.cases.size(), architectures,
                               kernel.what);
    }
  }
  if (as_json) std::cout << json::dump(json::Value(std::move(kernels))) << '\n';
  return kExitFine;
}

int list_cases(const std::string& kernel) {
  for (const gpu::Case* c : gpu::select_cases(kernel, "")) std::cout << fmt::format("{:<44} {}\n", c->name, c->what);
  return kExitFine;
}

int verify(const KernelsCommand& command) {
  const ptx::Schedule schedule = read_policy(command.policy);
  gpu::VirtualGpuOptions options{.policy = schedule.policy, .seed = schedule.seed, .sum = sum_of(command.sum)};
  const gpu::Budgets budgets = schedule.policy == ptx::Policy::late ? gpu::Budgets::held : gpu::Budgets::left_alone;
  if (!command.ptx.empty() && command.device != "virtual")
    throw InputError("command line", "--ptx", "runs on the virtual GPU only: leave --device out");
  if (command.sum != "seq" && command.device != "virtual")
    throw InputError("command line", "--sum", "is an option of the virtual GPU: leave --device out");
  std::optional<ChangedKernel> changed;
  if (!command.ptx.empty()) {
    changed = read_changed_kernel(command.ptx, command.kernel);
    options.architecture = changed->architecture;
  }
  std::unique_ptr<gpu::CudaGpu> cuda;
  if (command.device == "cuda") cuda = hardware();

  gpu::VerifyReport report;
  report.device = cuda ? cuda->info() : gpu::VirtualGpu(options).info();
  if (!cuda) report.sum = command.sum;
  std::vector<const gpu::Case*> cases;
  for (const gpu::Case* c : gpu::select_cases(changed ? changed->kernel : command.kernel, command.part))
    if (c->demo || !command.small) cases.push_back(c);
  if (cases.empty())
    throw InputError("command line", "--small", "no small case has that in its name: leave --case or --small out");
  {
    Progress progress("cases");
    std::int64_t done = 0;
    for (const gpu::Case* c : cases) {
      progress.show(done++, static_cast<std::int64_t>(cases.size()));
      if (cuda && cuda->info().architecture != c->architecture) {
        report.left_out.push_back(fmt::format("{} {}: needs a GPU of {}", c->kernel, c->name, c->architecture));
        continue;
      }
      if (cuda) {
        report.results.push_back(gpu::run_case(*c, *cuda));
        continue;
      }
      if (changed && changed->architecture != c->architecture) {
        report.left_out.push_back(fmt::format("{} {}: the file is for {}, and this case for {}", c->kernel, c->name,
                                              changed->architecture, c->architecture));
        continue;
      }
      options.architecture = c->architecture;
      gpu::VirtualGpu device(options);
      if (changed) device.use_ptx(changed->kernel, changed->text);
      report.results.push_back(gpu::run_case(*c, device, budgets));
    }
  }
  if (command.junit) write_file_atomically(*command.junit, gpu::junit_report(report));
  std::cout << (command.json ? json::dump(gpu::json_report(report)) + "\n" : gpu::text_report(report));
  return report.passed() ? kExitFine : kExitCheckFailed;
}

int bench(const KernelsCommand& command) {
  Progress progress("benchmarks");
  gpu::BenchOptions options;
  options.kernel = command.kernel;
  options.progress = [&](std::int64_t done, std::int64_t all) { progress.show(done, all); };
  gpu::BenchReport report;
  if (command.device == "cuda") {
    report = gpu::run_benchmarks(*hardware(), options);
  } else {
    gpu::VirtualGpu device;
    report = gpu::count_benchmarks(device, options);
  }
  std::cout << (command.json ? json::dump(gpu::json_report(report)) + "\n" : gpu::text_report(report));
  return report.passed() ? kExitFine : kExitCheckFailed;
}

}  // namespace

void add_kernels(CLI::App& app, Action& chosen) {
  CLI::App* kernels =
      app.add_subcommand("kernels", "List, test and measure the CUDA kernels of this project against the CPU model");
  kernels->require_subcommand(1);

  const auto command = std::make_shared<KernelsCommand>();
  CLI::App* list_app = kernels->add_subcommand("list", "List the kernels, or the test cases of one kernel");
  list_app->add_option("--kernel", command->kernel, "Kernel whose cases are listed [default: list all kernels]")
      ->type_name("NAME");
  list_app->add_flag("--json", command->json, "Print JSON, including the cases");
  add_examples(*list_app, {"kvscope kernels list", "kvscope kernels list --kernel gather_rows"});
  list_app->callback([command, &chosen] {
    chosen = [command] { return command->kernel.empty() ? list(command->json) : list_cases(command->kernel); };
  });

  CLI::App* verify_app =
      kernels->add_subcommand("verify", "Run kernels on a device and compare their output with the CPU model");
  verify_app
      ->add_option("--device", command->device,
                   "virtual: the virtual GPU, on the CPU, with all checks enabled; cuda: the first GPU of this machine")
      ->check(CLI::IsMember(kDeviceNames))
      ->capture_default_str();
  verify_app->add_option("--kernel", command->kernel, "Run this kernel only, a name of 'kvscope kernels list'")
      ->type_name("NAME");
  verify_app->add_option("--case", command->part, "Run only cases whose name contains this text")->type_name("TEXT");
  verify_app->add_option("--policy", command->policy, kPolicyHelp)->type_name("POLICY")->capture_default_str();
  add_sum_option(*verify_app, command->sum);
  verify_app
      ->add_option("--ptx", command->ptx,
                   "Run this PTX file in place of a kernel's own, a changed copy of a file of gpu/ptx: the kernel of "
                   "--kernel, or the one that has the same entries. Virtual GPU only")
      ->type_name("FILE");
  verify_app->add_flag("--small", command->small, "Run one small case per kernel");
  verify_app->add_flag("--json", command->json, "Print the report as JSON");
  verify_app->add_option("--junit", command->junit, "Also write the results as a JUnit XML file")
      ->type_name("FILE")
      ->check(writes_file());
  add_examples(*verify_app,
               {"kvscope kernels verify --small", "kvscope kernels verify --kernel gather_rows --policy seed:7"});
  verify_app->callback([command, &chosen] { chosen = [command] { return verify(*command); }; });

  CLI::App* bench_app = kernels->add_subcommand(
      "bench",
      "Measure kernel times relative to a plain copy and a matrix product; exit code 1 if one misses its target");
  bench_app
      ->add_option("--device", command->device,
                   "cuda: the first GPU of this machine; virtual: no times, but instructions and memory traffic")
      ->check(CLI::IsMember(kDeviceNames))
      ->capture_default_str();
  bench_app->add_option("--kernel", command->kernel, "Measure this kernel and its reference only")->type_name("NAME");
  bench_app->add_flag("--json", command->json, "Print the report as JSON");
  add_examples(*bench_app, {"kvscope kernels bench --kernel gather_rows"});
  bench_app->callback([command, &chosen] { chosen = [command] { return bench(*command); }; });
  add_examples(*kernels, {"kvscope kernels list"});
}

}  // namespace kvscope::apps
