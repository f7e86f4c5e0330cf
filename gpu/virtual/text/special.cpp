// The names of the special registers. Elements of vectors have the suffix .x .y .z: "%tid.x".
#include <fmt/format.h>

#include <array>
#include <cstddef>

#include "core/base/numbers.h"
#include "gpu/virtual/text/module.h"

namespace kvscope::ptx {
namespace {

constexpr std::size_t kNamed = static_cast<std::size_t>(SpecialRegister::envreg0);

// In the order of SpecialRegister.
constexpr std::array<std::string_view, kNamed> kNames = {
    "%tid.x",
    "%tid.y",
    "%tid.z",
    "%ntid.x",
    "%ntid.y",
    "%ntid.z",
    "%ctaid.x",
    "%ctaid.y",
    "%ctaid.z",
    "%nctaid.x",
    "%nctaid.y",
    "%nctaid.z",
    "%laneid",
    "%warpid",
    "%nwarpid",
    "%smid",
    "%nsmid",
    "%gridid",
    "%lanemask_eq",
    "%lanemask_le",
    "%lanemask_lt",
    "%lanemask_ge",
    "%lanemask_gt",
    "%clock",
    "%clock64",
    "%clock_hi",
    "%globaltimer",
    "%globaltimer_lo",
    "%globaltimer_hi",
    "%dynamic_smem_size",
    "%total_smem_size",
    "%aggr_smem_size",
    "%reserved_smem_offset_begin",
    "%reserved_smem_offset_end",
    "%reserved_smem_offset_cap",
    "%reserved_smem_offset_0",
    "%reserved_smem_offset_1",
    "%cluster_ctaid.x",
    "%cluster_ctaid.y",
    "%cluster_ctaid.z",
    "%cluster_nctaid.x",
    "%cluster_nctaid.y",
    "%cluster_nctaid.z",
    "%clusterid.x",
    "%clusterid.y",
    "%clusterid.z",
    "%nclusterid.x",
    "%nclusterid.y",
    "%nclusterid.z",
    "%cluster_ctarank",
    "%cluster_nctarank",
    "%is_explicit_cluster",
};
constexpr std::string_view kEnvreg = "%envreg";

}  // namespace

std::string name(SpecialRegister special) {
  const auto i = static_cast<std::size_t>(special);
  if (i < kNamed) return std::string(kNames[i]);
  return fmt::format("{}{}", kEnvreg, i - kNamed);
}

std::optional<SpecialRegister> special_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kNamed; ++i) {
    const std::string_view known = kNames[i];
    const bool whole_vector = known.ends_with(".x") && known.substr(0, known.size() - 2) == name;
    if (known == name || whole_vector) return static_cast<SpecialRegister>(i);
  }
  if (!name.starts_with(kEnvreg)) return std::nullopt;
  const std::string_view digits = name.substr(kEnvreg.size());
  const auto number = whole_number<std::size_t>(digits);
  const bool canonical = digits.size() == 1 || !digits.starts_with('0');
  if (!number || *number >= 32 || !canonical) return std::nullopt;
  return static_cast<SpecialRegister>(kNamed + *number);
}

int bits(SpecialRegister special) {
  switch (special) {
    case SpecialRegister::clock64:
    case SpecialRegister::globaltimer:
    case SpecialRegister::gridid:
      return 64;
    case SpecialRegister::is_explicit_cluster:
      return 1;
    default:
      return 32;
  }
}

}  // namespace kvscope::ptx
