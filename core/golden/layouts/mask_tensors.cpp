#include "core/golden/layouts/detail/mask_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "core/base/convert.h"

namespace kvscope::golden {
namespace {

constexpr const char* kMasks[] = {"custom_mask", "packed_custom_mask", "tree_mask"};

// Whether a query sees a key, for the sequences of a problem.
class MaskTensor {
 public:
  MaskTensor(LayoutReader& r, const char* name, const std::vector<std::int64_t>& queries,
             const std::vector<std::int64_t>& keys)
      : packed_(name == std::string_view("packed_custom_mask")), keys_(keys) {
    const Tensor* found = r.find(name);
    const std::string given = r.given(name);
    if (found->dtype == DType::e2m1 || (packed_ && found->dtype != DType::u8)) {
      r.fault(given, fmt::format("is {}; {}", kvscope::name(found->dtype),
                                 packed_ ? "packed bits are u8" : "a mask is 0 or 1 in a type of whole bytes"));
      return;
    }
    values_.resize(found->bytes.size() / static_cast<std::size_t>(size_of(found->dtype)));
    to_doubles(found->dtype, found->bytes.data(), values_);
    std::int64_t needed = 0;
    if (name == std::string_view("tree_mask")) {
      const std::size_t rank = found->shape.size();
      const auto batch = static_cast<std::int64_t>(keys.size());
      if (rank < 2 || rank > 3 || found->shape[rank - 1] != found->shape[rank - 2] ||
          (rank == 3 && found->shape[0] != batch)) {
        r.fault(given, fmt::format("has shape {}; it is [S, S] or [{}, S, S]", shape_text(found->shape), batch));
        return;
      }
      tree_ = found->shape.back();
      tree_stride_ = rank == 3 ? tree_ * tree_ : 0;
      for (std::size_t b = 0; b < keys.size(); ++b) {
        if (queries[b] == tree_ && keys[b] >= tree_) continue;
        r.fault(given, fmt::format("is for {} queries, but sequence {} has {} queries and {} keys", tree_, b,
                                   queries[b], keys[b]));
      }
      return;
    }
    for (std::size_t b = 0; b < keys.size(); ++b) {
      first_.push_back(needed);
      needed += packed_ ? (queries[b] * keys[b] + 7) / 8 : queries[b] * keys[b];
    }
    if (found->shape.size() != 1 || found->shape[0] != needed) {
      r.fault(given, fmt::format("has shape {}, but the queries and keys of all sequences need [{}]",
                                 shape_text(found->shape), needed));
    }
  }

  [[nodiscard]] bool sees(std::size_t b, std::int64_t query, std::int64_t key) const {
    if (tree_ > 0) {
      const std::int64_t node = key - (keys_[b] - tree_);
      return node < 0 || at(static_cast<std::int64_t>(b) * tree_stride_ + query * tree_ + node) != 0;
    }
    const std::int64_t index = query * keys_[b] + key;
    if (!packed_) return at(first_[b] + index) != 0;
    return (static_cast<int>(at(first_[b] + index / 8)) >> (index % 8) & 1) != 0;
  }

 private:
  [[nodiscard]] double at(std::int64_t index) const { return values_[static_cast<std::size_t>(index)]; }

  bool packed_ = false;
  const std::vector<std::int64_t>& keys_;
  std::vector<double> values_;
  std::vector<std::int64_t> first_;
  std::int64_t tree_ = 0, tree_stride_ = 0;
};

}  // namespace

void apply_mask_tensors(LayoutReader& r, const CacheScales& scales, PreparedProblem& prepared) {
  std::vector<const char*> given;
  std::ranges::copy_if(kMasks, std::back_inserter(given), [&](const char* name) { return r.has(name); });
  if (given.empty()) return;
  const char* name = given.front();
  static_cast<void>(r.find(name));
  if (given.size() > 1) {
    static_cast<void>(r.find(given[1]));
    return r.fault(r.given(given[1]), fmt::format("is given together with {}: keep one mask", r.given(name)));
  }
  const attention::Options& options = r.options().attention;
  if (options.mask != MaskKind::none && options.mask != MaskKind::causal) {
    r.fault("--mask", fmt::format("has no effect with {}, which states the keys of each query", r.given(name)));
  }
  if (!prepared.alibi_slopes.empty()) {
    r.fault(r.given("alibi_slopes"), fmt::format("is not supported together with {}", r.given(name)));
  }
  if (scales.k.walk[0].sequence != 0 || scales.v.walk[1].sequence != 0) {
    r.fault(r.given(name), "is not supported together with scales by sequence");
  }
  LayoutReader::Pages& pages = r.pages;
  const std::vector<std::int64_t>& offsets = prepared.query_offsets;
  if (!r.ok() || offsets.size() != pages.first.size() + 1) return;
  std::vector<std::int64_t> queries, keys;
  const std::int64_t page = pages.by_token ? 1 : r.page_size;
  for (std::size_t b = 0; b < pages.first.size(); ++b) {
    queries.push_back(offsets[b + 1] - offsets[b]);
    keys.push_back(pages.lengths[b] + (pages.lengths_without_new ? queries.back() : 0));
    if ((keys.back() + page - 1) / page > pages.columns[b]) {
      r.fault(fmt::format("{}[{}]", pages.lengths_name, b),
              fmt::format("sequence {} has {} keys, more than its {} pages of {} tokens hold", b, keys.back(),
                          pages.columns[b], page));
    }
  }
  if (!r.ok()) return;
  const MaskTensor mask(r, name, queries, keys);
  if (!r.ok()) return;
  LayoutReader::Pages made;
  made.table_name = pages.table_name;
  made.lengths_name = r.given(name);
  made.by_token = r.page_size > 1;
  for (std::size_t b = 0; b < queries.size(); ++b) {
    for (std::int64_t query = 0; query < queries[b]; ++query) {
      made.first.push_back(static_cast<std::int64_t>(made.entries.size()));
      for (std::int64_t key = 0; key < keys[b]; ++key) {
        if (!mask.sees(b, query, key)) continue;
        const std::int64_t entry = pages.entries[static_cast<std::size_t>(pages.first[b] + key / page)];
        const bool is_block = entry >= 0 && entry < r.blocks * (pages.by_token ? r.page_size : 1);
        made.entries.push_back(is_block ? entry * page + key % page : -1);
      }
      made.columns.push_back(static_cast<std::int64_t>(made.entries.size()) - made.first.back());
      made.lengths.push_back(made.columns.back());
    }
  }
  pages = std::move(made);
  prepared.query_offsets.resize(pages.first.size() + 1);
  std::iota(prepared.query_offsets.begin(), prepared.query_offsets.end(), std::int64_t{0});
  prepared.problem.batch = static_cast<std::int64_t>(pages.first.size());
  prepared.problem.options.mask = MaskKind::none;
  r.warnings.push_back(
      fmt::format("{}: reports count each query as a sequence of the keys that it sees", r.given(name)));
}

}  // namespace kvscope::golden
