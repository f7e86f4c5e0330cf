#include "apps/labs/graders.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/errors.h"

namespace kvscope::labs {
namespace {

using MakeGrader = std::unique_ptr<Grader> (*)(const Lab&, const GradeOptions&);

constexpr std::array<std::pair<std::string_view, MakeGrader>, 14> kGraders{{
    {"01_address", address_grader},
    {"02_rows", rows_grader},
    {"03_table", table_grader},
    {"04_block_pool", block_pool_grader},
    {"05_scheduler", scheduler_grader},
    {"06_softmax", softmax_grader},
    {"07_fault_hunt", fault_hunt_grader},
    {"08_swizzle", swizzle_grader},
    {"09_gather", gather_grader},
    {"10_four_kernels", four_kernels_grader},
    {"11_tma_tile", tma_tile_grader},
    {"12_through_lds", through_lds_grader},
    {"13_paged_decode", paged_decode_grader},
    {"14_page_size", page_size_grader},
}};

const auto* find_grader(std::string_view lab_id) {
  return std::ranges::find(kGraders, lab_id, &std::pair<std::string_view, MakeGrader>::first);
}

}  // namespace

bool has_grader(std::string_view lab_id) {
  return find_grader(lab_id) != kGraders.end();
}

std::unique_ptr<Grader> make_grader(const Lab& lab, const GradeOptions& options) {
  const auto* found = find_grader(lab.id());
  if (found == kGraders.end()) throw InputError(lab.folder.string(), "", "this program has no grader for this lab");
  return found->second(lab, options);
}

}  // namespace kvscope::labs
