#include "core/golden/layouts/layout_convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/checked.h"
#include "core/golden/golden_inputs.h"
#include "core/golden/layouts/detail/cache_reader.h"
#include "core/golden/layouts/detail/convert_parts.h"
#include "core/golden/layouts/detail/layout_scales.h"
#include "core/golden/layouts/detail/token_map.h"

namespace kvscope::golden {
namespace {

constexpr std::int64_t kMostConverted = std::int64_t{1} << 40;  // queries of a sequence, and of all
constexpr std::int64_t kLargestPage = std::int64_t{1} << 31;    // [tokens] keeps numbers of slots within 64 bits
constexpr std::int64_t kDefaultPage = 16;                       // [tokens] of a pool made from a cache without pages

// Forms whose table has an entry for each token.
bool by_token(TableForm form) {
  return form == TableForm::tokens || form == TableForm::requests;
}
bool has_pages(TableForm form) {
  return form == TableForm::blocks || form == TableForm::indptr || form == TableForm::offsets;
}

// The new tokens of each sequence; 0 without q, whose lengths then count what is in the cache.
std::vector<std::int64_t> query_counts(LayoutReader& r, std::size_t batch) {
  std::vector<std::int64_t> counts(batch, 0);
  const std::size_t faults_before = r.faults.size();
  if (r.has("q_lens")) {
    const std::vector<std::int64_t> lens = r.integers("q_lens", 1, "[B]");
    if (r.faults.size() > faults_before) return counts;
    if (lens.size() != batch || std::ranges::any_of(lens, [](std::int64_t n) { return n < 0 || n > kMostConverted; })) {
      r.fault(r.given("q_lens"), fmt::format("must be {} entries in [0, 2^40]", batch));
      return counts;
    }
    return lens;
  }
  if (r.has("query_offsets")) {
    const std::vector<std::int64_t> offsets = r.integers("query_offsets", 1, "[B + 1]");
    if (r.faults.size() > faults_before) return counts;
    if (offsets.size() != batch + 1 || !std::ranges::is_sorted(offsets) || offsets.front() != 0 ||
        offsets.back() > kMostConverted) {
      r.fault(r.given("query_offsets"), fmt::format("must be {} entries, rising from 0", batch + 1));
      return counts;
    }
    for (std::size_t b = 0; b < batch; ++b) counts[b] = offsets[b + 1] - offsets[b];
  } else if (const Tensor* q = r.peek(r.has("q") ? "q" : "q_nope"); q != nullptr && q->shape.size() >= 3) {
    const bool by_head = r.layout().queries_by_head;
    counts.assign(batch, q->shape.size() == 3 ? 1 : q->shape[by_head ? 2 : 1]);
  }
  return counts;
}

std::optional<std::int64_t> hint(const Bundle& bundle, std::string_view key) {
  const json::Value* value = bundle.manifest.find(key);
  if (value == nullptr || value->as_i64() == nullptr || *value->as_i64() < 1) return std::nullopt;
  return *value->as_i64();
}

class Converter {
 public:
  Converter(const Bundle& bundle, const ConvertOptions& options, std::string_view source)
      : bundle_(bundle),
        options_(options),
        to_(*options.to),
        from_(layout_of(options.from)),
        source_(source),
        r_(bundle, options.from, from_) {}

  Conversion run() {
    read();
    throw_faults();
    place_tokens();
    throw_faults();
    choose_form();
    throw_faults();
    make_cache();
    make_table();
    copy_other_tensors(bundle_, options_.from.ignore, scales_, {from_, to_, form_, sizes_, moved_slots(), queries_}, r_,
                       result_.bundle);
    throw_faults();
    set_manifest();
    result_.sequences = static_cast<std::int64_t>(have_.slots.size());
    result_.tokens = have_.tokens();
    result_.heads = cache_.sizes.heads;
    result_.head_size = cache_.sizes.head_size;
    result_.layers = layers_;
    result_.page_size = want_.page_size;
    return std::move(result_);
  }

 private:
  void throw_faults() {
    if (!r_.ok()) throw InputError(source_, std::move(r_.faults));
  }

  void read() {
    cache_ = read_cache(r_, from_);
    r_.read_pages();
    if (!r_.ok()) return;
    queries_ = query_counts(r_, r_.pages.first.size());
    if (r_.ok()) have_ = tokens_of(r_, queries_);
    scales_ = read_scales(r_);
  }

  void place_tokens() {
    for (const auto& [option, layout] : {std::pair{"--from", &from_}, {"--to", &to_}}) {
      if (layout->table.form == TableForm::sparse) {
        r_.fault(option,
                 fmt::format("layout '{}' lists the keys of queries, not the tokens of sequences", layout->name));
        return;
      }
    }
    const TableForm from = from_.table.form, to = to_.table.form;
    const bool pool = has_pages(from) || by_token(from);
    std::int64_t longest = 1;
    for (const auto& row : have_.slots) longest = std::max(longest, static_cast<std::int64_t>(row.size()));
    if (options_.page_size && *options_.page_size < 1) {
      r_.fault("--page-size", fmt::format("{} tokens: a page holds at least 1", *options_.page_size));
      return;
    }
    if (options_.page_size && *options_.page_size > kLargestPage) {
      r_.fault("--page-size", fmt::format("{} tokens: a page holds at most {}", *options_.page_size, kLargestPage));
      return;
    }
    const bool by_slots = by_token(to) && !to_.has_axis("slot");
    const bool tokens_alone = to == TableForm::ragged || to == TableForm::chunk || by_slots;
    if (tokens_alone && options_.page_size.value_or(1) != 1) {
      r_.fault("--page-size", fmt::format("{} tokens, but layout '{}' has no pages: leave the option out",
                                          *options_.page_size, to_.name));
      return;
    }
    if (to == TableForm::chunk && have_.slots.size() != 1) {
      r_.fault("--to", fmt::format("layout '{}' holds one sequence, the input has {}", to_.name, have_.slots.size()));
      return;
    }
    if (to == TableForm::dense) {
      const std::int64_t positions = options_.page_size.value_or(hint(bundle_, "positions").value_or(longest));
      want_ = in_rows(have_, std::max(positions, longest));
    } else if (to == TableForm::ragged || to == TableForm::chunk) {
      want_ = packed(have_, 1);
    } else {
      const std::int64_t own = has_pages(from) || have_.page_size > 1 ? have_.page_size : 1;
      const std::int64_t otherwise = pool ? hint(bundle_, "page_size").value_or(own) : kDefaultPage;
      const std::int64_t page =
          by_slots
              ? 1
              : options_.page_size.value_or(pool && own > 1 ? own : hint(bundle_, "page_size").value_or(otherwise));
      const bool same_pages = page == have_.page_size && !r_.pages.by_token;
      result_.kept_pool = pool && (same_pages || page == 1 || fills_pages(have_, page));
      if (result_.kept_pool) {
        want_ = {have_.blocks * have_.page_size / page, page, have_.slots};
      } else {
        want_ = packed(have_, page);
      }
    }
  }

  void choose_form() {
    const FormRequest request{cache_, want_.blocks, want_.page_size, !options_.layer && cache_.sizes.layers > 1,
                              [&] { return values_lead_keys(); }};
    const ChosenForm chosen = choose_form_of(to_, request);
    if (!chosen.reason.empty()) return r_.fault("--to", fmt::format("layout '{}' {}", to_.name, chosen.reason));
    form_ = chosen.form;
    described_ = chosen.described;
    sizes_ = chosen.sizes;
    for (ScaleOrder* order : {&sizes_.k_order, &sizes_.v_order}) {
      if (want_.page_size % slots_of_run(*order) == 0) continue;
      *order = ScaleOrder::linear;
      result_.made_scales_linear = true;
    }
  }

  // Whether V of every token is the first elements of its K, bit for bit.
  [[nodiscard]] bool values_lead_keys() const {
    const CachePiece &k = cache_.view.k.elements.front(), &v = cache_.view.v.elements.front();
    if (k.dtype != v.dtype || v.count > k.count || !cache_.view.k.scales.empty() || scales_.k.tensor != nullptr ||
        scales_.v.tensor != nullptr) {
      return false;
    }
    const std::int64_t unit = bits(k.dtype);
    std::array<std::byte, 16> a{}, b{};
    for (const auto& row : have_.slots) {
      for (const std::int64_t at : row) {
        const std::int64_t block = at / have_.page_size, slot = at % have_.page_size;
        for (std::int64_t head = 0; head < cache_.sizes.heads; ++head) {
          for (std::int64_t d = 0; d < v.count; ++d) {
            copy_bits(cache_.tensors[k.tensor]->bytes.data(), k.walk.at(block, slot, head, d), a.data(), 0, unit);
            copy_bits(cache_.tensors[v.tensor]->bytes.data(), v.walk.at(block, slot, head, d), b.data(), 0, unit);
            if (a != b) return false;
          }
        }
      }
    }
    return true;
  }

  void make_cache() {
    const bool all_layers = !options_.layer && form_has(form_, "layer") && form_has(cache_.form, "layer");
    layers_ = all_layers ? cache_.sizes.layers : 1;
    sizes_.layers = layers_;
    std::vector<DType> stored;
    std::vector<bool> present;
    made_.resize(form_.tensors.size());
    owner_.resize(form_.tensors.size());
    for (std::size_t t = 0; t < form_.tensors.size(); ++t) {
      const CacheTensor& tensor = form_.tensors[t];
      const bool is_v = tensor.holds == Holds::v || tensor.holds == Holds::v_scales;
      const CacheSide& side = is_v && !cache_.form.values_in_keys ? cache_.view.v : cache_.view.k;
      const std::vector<CachePiece>& pieces = tensor.holds_scales() ? side.scales : side.elements;
      const bool in_row = !pieces.empty() && !cache_.form.tensors[pieces.front().tensor].row.empty();
      present.push_back(!pieces.empty() && !(tensor.holds_scales() && in_row));
      stored.push_back(pieces.empty() ? DType::f32 : pieces.front().dtype);
      if (!present.back()) continue;
      Tensor made = make_tensor(cache_.tensors[pieces.front().tensor]->dtype, shape_for(tensor, sizes_, stored.back()));
      // Flat storage may hold K and V at two offsets of one tensor.
      const auto same = std::ranges::find(form_.tensors, tensor.name, &CacheTensor::name) - form_.tensors.begin();
      owner_[t] = static_cast<std::size_t>(same);
      if (Tensor& owner = made_[owner_[t]]; owner.bytes.size() < made.bytes.size()) owner = std::move(made);
    }
    for (std::int64_t layer = 0; layer < layers_; ++layer) {
      const std::int64_t from_layer = all_layers ? layer : options_.from.layer;
      std::vector<bool> given;
      for (const Tensor* tensor : cache_.tensors) given.push_back(tensor != nullptr);
      const CacheView from = view_of(cache_.form, cache_.sizes, from_layer, cache_.stored, given);
      const CacheView to = view_of(form_, sizes_, layer, stored, present);
      copy(from.k.elements, to.k.elements);
      // V in front of K is copied to the V of a layout that stores it apart: its pieces end with those of the target.
      copy(from.values_in_keys ? from.k.elements : from.v.elements, to.v.elements);
      copy(from.k.scales, to.k.scales);
      copy(from.v.scales, to.v.scales);
    }
    for (std::size_t t = 0; t < made_.size(); ++t) {
      if (present[t] && owner_[t] == t) result_.bundle.tensors[form_.tensors[t].name] = std::move(made_[t]);
    }
  }

  [[nodiscard]] MovedSlots moved_slots() const { return {have_, want_, result_.kept_pool}; }

  void copy(const std::vector<CachePiece>& from, const std::vector<CachePiece>& to) {
    for (const CachePiece& target : to) {
      for (const CachePiece& piece : from) {
        if (piece.each != target.each) continue;  // scales of another field of a packed row
        const std::int64_t unit = bits(piece.dtype);
        const std::int64_t scale = piece.each;  // groups are counted from the first of the piece
        const std::int64_t first = std::max(piece.first / scale, target.first / scale);
        const std::int64_t last = std::min(piece.first / scale + piece.count, target.first / scale + target.count);
        const auto contiguous = [&](const CachePiece& p) {
          return unit % 8 == 0 && p.walk.order == ScaleOrder::linear && p.walk.run >= p.count &&
                 p.walk.by_element == unit;
        };
        const std::int64_t run = contiguous(piece) && contiguous(target) ? last - first : 1;
        const std::byte* source = cache_.tensors[piece.tensor]->bytes.data();
        std::byte* into = made_[owner_[target.tensor]].bytes.data();
        moved_slots().each([&](std::int64_t have, std::int64_t want) {
          const std::int64_t have_block = have / have_.page_size, have_slot = have % have_.page_size;
          const std::int64_t want_block = want / want_.page_size, want_slot = want % want_.page_size;
          for (std::int64_t head = 0; head < sizes_.heads; ++head) {
            for (std::int64_t d = first; d < last; d += run) {
              copy_bits(source, piece.walk.at(have_block, have_slot, head, d - piece.first / scale), into,
                        target.walk.at(want_block, want_slot, head, d - target.first / scale), run * unit);
            }
          }
        });
      }
    }
  }

  [[nodiscard]] DType index_type(const char* role, const char* other) const {
    for (const char* name : {role, other}) {
      if (!from_.table.has(name)) continue;
      if (const Tensor* tensor = r_.peek(from_.table.name(name))) return tensor->dtype;
    }
    return DType::i32;
  }

  void make_table() {
    TableTypes types;
    types.entry = index_type("table", "indices");
    types.length = index_type("lengths", "last_page_len");
    types.offset = index_type("indptr", "lengths");
    const bool same_table = result_.kept_pool && from_.table.form == TableForm::blocks &&
                            to_.table.form == TableForm::blocks && want_.page_size == have_.page_size;
    write_table(to_, want_, queries_, types, same_table ? r_.peek(from_.table.name("table")) : nullptr, r_,
                result_.bundle);
  }

  // The options that read the result.
  [[nodiscard]] LayoutOptions reading() const {
    const LayoutOptions& from = options_.from;
    LayoutOptions made;
    made.layout = to_.name;
    if (find_layout(to_.name) != &to_) made.description = std::make_shared<LayoutDescription>(to_);
    if (layers_ > 1) made.layer = from.layer;
    made.cache_type = from.cache_type;  // bit patterns stay bit patterns
    made.query_dtype = from.query_dtype;
    made.granularity = from.granularity;
    const auto [k_group, v_group] = std::pair(sizes_.k_group, sizes_.v_group);  // 0: no block scales
    if (const std::int64_t group = std::max(k_group, v_group); group > 0 && std::min(k_group, v_group) % group == 0) {
      made.granularity = group;
    }
    made.k_scale_order = sizes_.k_order;
    made.v_scale_order = sizes_.v_order;
    if (form_.values_in_keys || form_has(form_, "dim+vdim")) made.value_size = cache_.sizes.value_size;
    if (to_.has_axis("head*dim")) made.head_size = cache_.sizes.head_size;
    // A result that could be read as another form of its layout states the one that it has.
    LayoutReader reader(result_.bundle, made, to_);
    if (fits_several_forms(reader, to_)) {
      LayoutDescription one = to_;
      one.forms = {described_};
      made.description = std::make_shared<LayoutDescription>(std::move(one));
    }
    return made;
  }

  void set_manifest() {
    json::Value& manifest = result_.bundle.manifest;
    manifest.set("holds", "inputs");
    manifest.set("layout", to_.name);
    if (states_conventions(bundle_)) manifest.set("conventions", *bundle_.manifest.find("conventions"));
    manifest.set("inputs", inputs_manifest(reading(), ""));
    const bool pages = has_pages(from_.table.form) && have_.page_size > 1;
    if (const auto page = pages ? std::optional(have_.page_size) : hint(bundle_, "page_size")) {
      manifest.set("page_size", *page);
    }
    const bool positions = from_.table.form == TableForm::dense;
    if (const auto most = positions ? std::optional(have_.page_size) : hint(bundle_, "positions")) {
      manifest.set("positions", *most);
    }
  }

  const Bundle& bundle_;
  const ConvertOptions& options_;
  const LayoutDescription& to_;
  const LayoutDescription& from_;
  std::string_view source_;
  LayoutReader r_;
  CacheReading cache_;
  CacheScales scales_;
  std::vector<std::int64_t> queries_;
  TokenMap have_, want_;
  CacheForm form_, described_;
  CacheSizes sizes_;
  std::int64_t layers_ = 1;
  std::vector<Tensor> made_;        // of the form
  std::vector<std::size_t> owner_;  // of the form: the tensor of that name in made_
  Conversion result_;
};

}  // namespace

Conversion convert_cache(const Bundle& bundle, const ConvertOptions& options, std::string_view source) {
  return Converter(bundle, options, source).run();
}

}  // namespace kvscope::golden
