#include "core/fragment/fragment_catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/base/errors.h"
#include "core/base/nearest_name.h"
#include "core/fragment/fp8_v.h"
#include "core/fragment/ldmatrix.h"
#include "core/fragment/mfma.h"
#include "core/fragment/mma_sync.h"
#include "core/fragment/wgmma.h"

namespace kvscope {
namespace {

void add_mma_sync(std::vector<CatalogedFragment>& all) {
  for (const MmaSync mma : {MmaSync::m16n8k16, MmaSync::m16n8k32}) {
    for (const MmaOperand operand : {MmaOperand::a, MmaOperand::b, MmaOperand::c}) {
      all.push_back({fmt::format("mma.m16n8k{}.{}", depth_of(mma), "abc"[static_cast<int>(operand)]),
                     [mma, operand] { return mma_sync_map(mma, operand); }});
    }
  }
}

void add_mfma(std::vector<CatalogedFragment>& all) {
  for (const MfmaShape& shape : all_mfma_shapes()) {
    const std::string name = fmt::format("mfma.{}x{}x{}", shape.M, shape.M, shape.K / shape.instructions);
    all.push_back({name + ".k", [id = shape.id] { return mfma_k_map(id); }});
    all.push_back({name + ".v", [id = shape.id] { return mfma_v_map(id); }});
    all.push_back({name + ".sum", [id = shape.id] { return mfma_sum_map(id); }});
  }
}

void add_ldmatrix(std::vector<CatalogedFragment>& all) {
  const auto add = [&](const char* name, LdmatrixUse use, int bytes) {
    all.push_back({fmt::format("ldmatrix.{}.{}", name, 8 * bytes), [use, bytes] { return ldmatrix_map(use, bytes); }});
  };
  add("k_as_b", LdmatrixUse::k_as_b, 2);
  add("k_as_b", LdmatrixUse::k_as_b, 1);
  add("k_as_a", LdmatrixUse::k_as_a, 2);
  add("k_as_a", LdmatrixUse::k_as_a, 1);
  add("v_as_b", LdmatrixUse::v_as_b, 2);
  add("v_as_a", LdmatrixUse::v_as_a, 2);
  all.push_back({"fp8_v", fp8_v_map});
}

void add_wgmma(std::vector<CatalogedFragment>& all) {
  for (const int n : {8, 16, 32, 64, 128, 256}) {
    all.push_back({fmt::format("wgmma.m64n{}.d", n), [n] { return wgmma_sum_map(n); }});
  }
  all.push_back({"wgmma.a.16", [] { return wgmma_a_map(MmaSync::m16n8k16); }});
  all.push_back({"wgmma.a.8", [] { return wgmma_a_map(MmaSync::m16n8k32); }});
}

}  // namespace

std::span<const CatalogedFragment> fragment_catalog() {
  static const std::vector<CatalogedFragment> catalog = [] {
    std::vector<CatalogedFragment> all;
    add_mma_sync(all);
    add_mfma(all);
    add_ldmatrix(all);
    add_wgmma(all);
    return all;
  }();
  return catalog;
}

FragmentMap cataloged_fragment(std::string_view where, std::string_view name) {
  const auto found = std::ranges::find(fragment_catalog(), name, &CatalogedFragment::name);
  if (found != fragment_catalog().end()) return found->make();
  std::vector<std::string_view> names;
  for (const CatalogedFragment& entry : fragment_catalog()) names.push_back(entry.name);
  throw InputError(where, "", fmt::format("'{}' is not a fragment{}", name, suggest_name(name, names)));
}

}  // namespace kvscope
