#include "core/smem/shared_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

namespace kvscope {
namespace {

constexpr std::int64_t kKiB = 1024;

constexpr SharedLimits nvidia(GpuArch arch, std::string_view name, std::int64_t per_sm_kib) {
  return {arch, name, 48 * kKiB, (per_sm_kib - 1) * kKiB, per_sm_kib * kKiB, kKiB, SharedTarget::nvidia};
}
constexpr SharedLimits amd(GpuArch arch, std::string_view name, std::int64_t kib, SharedTarget target) {
  return {arch, name, kib * kKiB, kib * kKiB, kib * kKiB, 0, target};
}

constexpr std::array<SharedLimits, 8> kLimits = {
    nvidia(GpuArch::sm_80, "sm_80", 164),
    nvidia(GpuArch::sm_86, "sm_86", 100),
    nvidia(GpuArch::sm_89, "sm_89", 100),
    nvidia(GpuArch::sm_90, "sm_90", 228),
    nvidia(GpuArch::sm_100, "sm_100", 228),
    nvidia(GpuArch::sm_120, "sm_120", 100),
    amd(GpuArch::gfx942, "gfx942", 64, SharedTarget::gfx942),
    amd(GpuArch::gfx950, "gfx950", 160, SharedTarget::gfx950),
};

}  // namespace

std::span<const SharedLimits> all_shared_limits() {
  return kLimits;
}

const SharedLimits& shared_limits(GpuArch arch) {
  const auto index = static_cast<std::size_t>(arch);
  KVSCOPE_ASSERT(index < kLimits.size() && kLimits[index].arch == arch);
  return kLimits[index];
}

std::optional<Fault> shared_fault(GpuArch arch, std::string_view object, std::int64_t bytes) {
  const SharedLimits& limits = shared_limits(arch);
  if (bytes < 0) return Fault{std::string(object), fmt::format("{} B is below 0", bytes)};
  if (bytes <= limits.opt_in) return std::nullopt;
  // The architecture with the smallest limit that is large enough; the first one of several.
  const SharedLimits* larger = nullptr;
  for (const SharedLimits& other : kLimits) {
    if (other.opt_in >= bytes && (larger == nullptr || other.opt_in < larger->opt_in)) larger = &other;
  }
  const std::string elsewhere = larger == nullptr ? "no architecture here takes them"
                                                  : fmt::format("{} takes up to {} B", larger->name, larger->opt_in);
  return Fault{
      std::string(object),
      fmt::format("{} B, but a block has at most {} B: use fewer stages, a smaller tile or a narrower type ({})", bytes,
                  limits.opt_in, elsewhere)};
}

std::int64_t blocks_per_sm(GpuArch arch, std::int64_t bytes) {
  const SharedLimits& limits = shared_limits(arch);
  if (bytes < 0 || bytes > limits.opt_in) return 0;
  return limits.per_sm / std::max<std::int64_t>(bytes + limits.reserved, 1);
}

}  // namespace kvscope
