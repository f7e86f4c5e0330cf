#include "core/golden/verdict/tolerance.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/errors.h"

namespace kvscope::golden {
namespace {

struct Pair {
  double absolute, relative;
};
struct Profile {
  std::string_view name;
  Pair f64, f32, f16, bf16;
  bool either;
  std::optional<double> cosine_difference;
};

constexpr Pair kFlashMla{8e-4, 2.01 / 128};
constexpr Pair kVllm{1.5e-2, 1e-2};
constexpr std::array<Profile, 5> kProfiles{{
    {"flashattention", {1e-5, 1e-5}, {1e-5, 1e-5}, {1e-3, 1e-3}, {1e-2, 1e-2}, false, std::nullopt},
    {"flashinfer", {1e-3, 1e-3}, {1e-3, 1e-3}, {1e-3, 1e-3}, {1e-2, 1e-2}, false, std::nullopt},
    {"vllm", kVllm, kVllm, kVllm, kVllm, false, std::nullopt},
    {"flashmla", kFlashMla, kFlashMla, kFlashMla, kFlashMla, true, 5e-6},
    {"torch", {1e-7, 1e-7}, {1e-5, 1.3e-6}, {1e-5, 1e-3}, {1e-5, 1.6e-2}, false, std::nullopt},
}};

}  // namespace

double Tolerance::allowed(double golden) const {
  const double scaled = relative * std::abs(golden);
  return either ? std::max(absolute, scaled) : absolute + scaled;
}

const std::vector<std::string>& profile_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Profile& p : kProfiles) all.emplace_back(p.name);
    return all;
  }();
  return names;
}

Tolerance profile(std::string_view profile_name, DType out) {
  for (const Profile& p : kProfiles) {
    if (p.name != profile_name) continue;
    const Pair pair = out == DType::f64 ? p.f64 : out == DType::f32 ? p.f32 : out == DType::f16 ? p.f16 : p.bf16;
    return {pair.absolute, pair.relative, p.either, p.cosine_difference};
  }
  throw InputError(
      "command line", "--profile",
      fmt::format("'{}' is not a profile; profiles are {}", profile_name, fmt::join(profile_names(), ", ")));
}

}  // namespace kvscope::golden
