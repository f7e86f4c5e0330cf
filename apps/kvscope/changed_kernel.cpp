#include "apps/kvscope/changed_kernel.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "apps/launch/ptx_file.h"
#include "core/base/errors.h"
#include "core/base/file.h"
#include "gpu/launch/kernel_images.h"
#include "gpu/virtual/text/parser.h"

namespace kvscope::apps {
namespace {

std::set<std::string> entries_of(const ptx::Module& module) {
  std::set<std::string> out;
  for (const ptx::Function& f : module.functions) {
    if (f.entry && f.defined) out.emplace(f.name);
  }
  return out;
}

std::string architecture_of(const ptx::Module& module) {
  std::string out = fmt::format("sm_{}", module.target);
  if (module.target_suffix != 0) out += module.target_suffix;
  return out;
}

// Names of one set that the other lacks, at most four of them.
std::string lacking(const std::set<std::string>& of, const std::set<std::string>& in) {
  constexpr std::size_t kShown = 4;
  std::vector<std::string> out;
  std::set_difference(of.begin(), of.end(), in.begin(), in.end(), std::back_inserter(out));
  const std::size_t all = out.size();
  out.resize(std::min(all, kShown));
  std::string text = fmt::format("{}", fmt::join(out, ", "));
  if (all > kShown) text += fmt::format(" and {} more", all - kShown);
  return text;
}

}  // namespace

ChangedKernel read_changed_kernel(const std::string& path, const std::string& asked) {
  const ptx::Module module = read_ptx(path);
  const std::set<std::string> entries = entries_of(module);
  ChangedKernel out{.kernel = {}, .architecture = architecture_of(module), .text = read_file(path, kMostPtxBytes)};
  std::vector<std::string> names;
  for (const gpu::KernelImage& image : gpu::kernel_images()) {
    if (image.architecture != out.architecture) continue;
    names.emplace_back(image.kernel);
    if (!asked.empty() && image.kernel != asked) continue;
    const std::set<std::string> wanted =
        entries_of(ptx::parse_module(std::string(image.bytes), std::string(image.kernel) + ".ptx"));
    const bool related = std::any_of(wanted.begin(), wanted.end(), [&](const auto& e) { return entries.contains(e); });
    if (!related && asked.empty()) continue;
    if (!std::includes(entries.begin(), entries.end(), wanted.begin(), wanted.end())) {
      throw InputError(path, ".entry",
                       fmt::format("kernel {} also has {}: keep all entries of the file that you changed", image.kernel,
                                   lacking(wanted, entries)));
    }
    out.kernel = image.kernel;
    return out;
  }
  const std::string have = fmt::format("the kernels for {} are {}", out.architecture, fmt::join(names, ", "));
  if (names.empty()) {
    throw InputError(
        path, ".target",
        fmt::format("no kernel is kept for {}: change a file of gpu/ptx, for sm_90a or sm_100a", out.architecture));
  }
  throw InputError(path, ".entry",
                   asked.empty() ? fmt::format("has no entry of a kernel: {}", have)
                                 : fmt::format("there is no kernel '{}': {}", asked, have));
}

}  // namespace kvscope::apps
