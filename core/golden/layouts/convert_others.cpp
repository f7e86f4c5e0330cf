// The tensors of a conversion beside cache and table. Queries, scales and masks have axes that depend on the layout.
// All others are copied.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/golden/golden_bundle.h"
#include "core/golden/layouts/detail/convert_parts.h"
#include "core/golden/layouts/detail/mask_walk.h"
#include "core/golden/layouts/detail/queries.h"

namespace kvscope::golden {
namespace {

constexpr const char* kMoved[] = {"q", "k_scale", "v_scale", "kv_scale", "attn_mask"};  // copied with changes

class OtherTensors {
 public:
  OtherTensors(const Bundle& bundle, const std::vector<std::string>& ignore, const CacheScales& scales,
               const ConvertedCache& cache, LayoutReader& r, Bundle& made)
      : bundle_(bundle), ignore_(ignore), scales_(scales), c_(cache), r_(r), made_(made) {}

  void copy() {
    move_mask();
    move_scales(r_.has("kv_scale") ? "kv_scale" : "k_scale", scales_.k, 0);
    if (!moved_apart_.empty()) move_scales("kv_scale", scales_.v, 1);
    if (!r_.has("kv_scale") && r_.has("v_scale")) move_scales("v_scale", scales_.v, 1);
    if (const Tensor* q = r_.find("q")) {
      const bool turn = q->shape.size() == 4 && c_.from.queries_by_head != c_.to.queries_by_head;
      made_.tensors[r_.given("q")] = turn ? exchange_middle_axes(*q) : *q;
    }
    const std::set<std::string> own = cache_names();
    const bool is_golden = bundle_.manifest.find("conventions") != nullptr;  // its outputs are left out
    for (const auto& [name, tensor] : bundle_.tensors) {
      if (std::ranges::count(ignore_, name) > 0) continue;
      const bool is_answer = is_golden && std::ranges::count(golden_answer_names(), name) > 0;
      if (is_answer && name != r_.given("query_offsets")) continue;
      if (own.contains(name)) {
        if (!r_.is_used(name)) {
          r_.fault(name,
                   fmt::format("is not used: the input gives the same in other tensors. Pass --ignore {} to leave "
                               "it out",
                               name));
        }
        continue;
      }
      bool moved = false;
      for (const char* one : kMoved) moved = moved || r_.given(one) == name;
      if (moved && (made_.tensors.contains(name) || name == moved_apart_)) continue;
      if (!made_.tensors.emplace(name, tensor).second) {
        r_.fault(name,
                 fmt::format("is also a tensor of layout '{}': pass --ignore {} to leave it out", c_.to.name, name));
      }
    }
  }

 private:
  // Scales that vary with the place have, in the result, every axis of its cache, of length 1 where they are shared.
  void move_scales(const char* name, const ScaleReading& reading, std::size_t which) {
    if (reading.tensor == nullptr) return;
    const ScaleWalk& walk = reading.walk[which];
    const std::string given = r_.given(name);
    // A tensor with an axis for K and V becomes two tensors: the axes of K and V of the target may be apart.
    const bool apart = given == r_.given("kv_scale") && reading.walk[0] != reading.walk[1];
    const bool by_place = walk.block != 0 || walk.slot != 0;
    if (!by_place && reading.tensor->shape.size() < 2) {  // one, or one for each head
      made_.tensors[given] = *reading.tensor;
      return;
    }
    if (walk.sequence != 0) {
      made_.tensors[given] = *reading.tensor;
      if (!c_.to.descale_by_sequence) {
        r_.fault(given, fmt::format("has scales by sequence, which layout '{}' does not have", c_.to.name));
      }
      return;
    }
    std::string axes = scale_axes(c_.form);
    std::erase_if(axes, [](char axis) { return axis == '2'; });
    std::vector<std::int64_t> shape;
    for (const char axis : axes) {
      shape.push_back(axis == 'N' ? (by_place ? c_.slots.want.blocks : 1)
                      : axis == 'P'
                          ? (walk.slot != 0 || (by_place && c_.slots.want.page_size != c_.slots.have.page_size)
                                 ? c_.slots.want.page_size
                                 : 1)
                      : axis == 'H' ? (walk.head != 0 ? c_.sizes.heads : 1)
                                    : 1);
    }
    Tensor moved = make_tensor(reading.tensor->dtype, shape);
    const std::int64_t size = size_of(moved.dtype);
    const auto put = [&](std::int64_t have, std::int64_t want) {
      for (std::int64_t head = 0; head < (walk.head != 0 ? c_.sizes.heads : 1); ++head) {
        std::int64_t at = 0;
        for (std::size_t i = 0; i < axes.size(); ++i) {
          const std::int64_t index = axes[i] == 'N'   ? want / c_.slots.want.page_size
                                     : axes[i] == 'P' ? want % c_.slots.want.page_size
                                     : axes[i] == 'H' ? head
                                                      : 0;
          at = at * shape[i] + (shape[i] > 1 ? index : 0);
        }
        const std::int64_t from = walk.offset + have / c_.slots.have.page_size * walk.block +
                                  have % c_.slots.have.page_size * walk.slot + head * walk.head;
        std::memcpy(moved.bytes.data() + at * size, reading.tensor->bytes.data() + from * size,
                    static_cast<std::size_t>(size));
      }
    };
    if (by_place) {
      c_.slots.each(put);
    } else {
      put(0, 0);
    }
    made_.tensors[!apart ? given : which == 0 ? "k_scale" : "v_scale"] = std::move(moved);
    if (apart) moved_apart_ = given;
  }

  // The columns of a dense mask are the positions of a padded cache, or the tokens that a row of the table can hold.
  // Neither is the same in the target, so each column becomes that of a key.
  void move_mask() {
    const Tensor* mask = r_.peek("attn_mask");
    if (mask == nullptr || mask->shape.size() < 2 || mask->shape.size() > 4 || mask->dtype == DType::e2m1) return;
    MaskBatch batch;
    bool is_padded = false;
    std::int64_t longest = 0;
    for (std::size_t b = 0; b < c_.slots.have.slots.size(); ++b) {
      const bool left = c_.from.table.form == TableForm::dense && r_.pages.by_token;
      batch.queries.push_back(c_.queries[b]);
      batch.keys.push_back(static_cast<std::int64_t>(c_.slots.have.slots[b].size()));
      batch.padding.push_back(left ? r_.page_size - r_.pages.columns[b] : 0);
      batch.capacity = std::max(batch.capacity, c_.from.table.form == TableForm::dense
                                                    ? r_.page_size
                                                    : r_.pages.columns[b] * (r_.pages.by_token ? 1 : r_.page_size));
      is_padded = is_padded || batch.padding.back() > 0;
      longest = std::max(longest, batch.keys.back());
    }
    const std::int64_t columns = mask->shape.back();
    const std::int64_t sequences = mask->shape.size() > 2 ? mask->shape[0] : 1;
    if (columns != batch.capacity || columns == 1 || (columns == longest && !is_padded)) return;
    if (sequences != 1 && std::cmp_not_equal(sequences, batch.size())) return;  // a fault wherever it is read
    made_.tensors[r_.given("attn_mask")] = with_columns_of_keys(*mask, batch);
  }

  // The names of the cache and of its table in the input's layout.
  [[nodiscard]] std::set<std::string> cache_names() const {
    std::set<std::string> names;
    for (const CacheForm& form : c_.from.forms) {
      for (const CacheTensor& tensor : with_block_scales(form).tensors) {
        names.insert(tensor.name);
        names.insert(tensor.also.begin(), tensor.also.end());
      }
    }
    for (const auto& [role, tensors] : c_.from.table.tensors) names.insert(tensors.begin(), tensors.end());
    return names;
  }

  const Bundle& bundle_;
  const std::vector<std::string>& ignore_;
  const CacheScales& scales_;
  const ConvertedCache& c_;
  LayoutReader& r_;
  Bundle& made_;
  std::string moved_apart_;  // the given name of a kv_scale that became k_scale and v_scale
};

}  // namespace

void copy_other_tensors(const Bundle& bundle, const std::vector<std::string>& ignore, const CacheScales& scales,
                        const ConvertedCache& cache, LayoutReader& r, Bundle& made) {
  OtherTensors(bundle, ignore, scales, cache, r, made).copy();
}

}  // namespace kvscope::golden
