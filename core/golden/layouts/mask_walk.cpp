#include "core/golden/layouts/detail/mask_walk.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/attention/score_bias.h"
#include "core/base/checked.h"
#include "core/base/convert.h"

namespace kvscope::golden {
namespace {

// The sequence with the most queries or keys, and how many these are.
struct Longest {
  std::size_t sequence = 0;
  std::int64_t count = 0;
};
Longest longest_of(const std::vector<std::int64_t>& counts) {
  if (counts.empty()) return {};
  const auto most = std::ranges::max_element(counts);
  return {static_cast<std::size_t>(most - counts.begin()), *most};
}

// a * b of counts, at most 2^40: larger numbers fit no tensor.
std::int64_t capped_product(std::int64_t a, std::int64_t b) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  return b != 0 && a > kMost / b ? kMost : a * b;
}

std::string index_of(std::int64_t at, const std::vector<std::int64_t>& shape) {
  std::string index;
  for (std::size_t axis = shape.size(); axis-- > 0; at /= std::max<std::int64_t>(shape[axis], 1)) {
    index = fmt::format("{}{}{}", at % std::max<std::int64_t>(shape[axis], 1), index.empty() ? "" : ", ", index);
  }
  return "[" + index + "]";
}

constexpr const char* kMaskOfAllKeys = "a mask of all keys is attn_mask [B, Sq, Sk], or one list";

class MaskShapes {
 public:
  MaskShapes(std::string_view name, std::string given, const Tensor& mask, const std::optional<MaskOffsets>& offsets,
             const MaskBatch& batch)
      : name_(name), given_(std::move(given)), mask_(mask), offsets_(offsets), batch_(batch) {}

  MaskReading read() {
    walk_.first.assign(batch_.size(), 0);
    walk_.query_stride.assign(batch_.size(), 0);
    walk_.origin.assign(batch_.size(), 0);
    walk_.end = element_count(mask_.shape).value_or(0);
    if (!has_type()) return std::move(made_);
    if (offsets_ && (name_ == "attn_mask" || name_ == "tree_mask")) {
      fault("shape", offsets_->name, fmt::format("has no effect with {}, whose axes show its sequences", given_), "",
            fmt::format("pass --ignore {}", offsets_->name));
    }
    if (name_ == "attn_mask") {
      read_dense();
    } else if (name_ == "tree_mask") {
      read_tree();
    } else {
      read_list(name_ == "packed_custom_mask");
    }
    return std::move(made_);
  }

 private:
  void fault(std::string rule, std::string object, std::string problem, std::string allowed, std::string next,
             std::optional<std::int64_t> value = std::nullopt) {
    made_.faults.push_back(
        {std::move(rule), std::move(object), std::move(problem), std::move(allowed), std::move(next), value});
  }

  bool has_type() {
    const bool packed = name_ == "packed_custom_mask";
    if (packed ? mask_.dtype == DType::u8 : mask_.dtype != DType::e2m1 && mask_.dtype != DType::e8m0) return true;
    fault("type", given_, fmt::format("is {}", kvscope::name(mask_.dtype)),
          packed ? "u8" : "bool or another integer, or a float of at least 8 bits",
          packed ? "packed bits are u8, lowest bit first" : "save the mask in one of these types");
    return false;
  }

  // The sequences one after the other: custom and packed masks, [sum of queries * keys].
  void read_list(bool packed) {
    walk_.form = packed ? MaskForm::packed : MaskForm::custom;
    walk_.bits = packed;
    std::vector<std::int64_t> sizes;
    for (std::size_t b = 0; b < batch_.size(); ++b) {
      const std::int64_t values = capped_product(batch_.queries[b], batch_.keys[b]);
      sizes.push_back(packed ? ceil_div(values, 8) : values);
      walk_.query_stride[b] = batch_.keys[b];
    }
    const bool one = batch_.size() == 1 && !packed && mask_.shape == std::vector{batch_.queries[0], batch_.keys[0]};
    if (!one && mask_.shape.size() != 1) {
      fault("shape", given_, fmt::format("has shape {}", shape_text(mask_.shape)),
            packed ? "[sum of the bytes of all sequences]" : "[sum of queries * keys]",
            "a mask with axes for queries and keys is attn_mask");
      return;
    }
    if (offsets_) {
      place_by_offsets(sizes, packed);
    } else {
      place_in_order(sizes, packed);
    }
    if (!packed) return;
    walk_.end *= 8;
    for (std::int64_t& first : walk_.first) first *= 8;
  }

  void place_in_order(const std::vector<std::int64_t>& sizes, bool packed) {
    std::int64_t needed = 0;
    for (std::size_t b = 0; b < sizes.size(); ++b) {
      walk_.first[b] = needed;
      needed += sizes[b];
    }
    if (walk_.end == needed) return;
    fault("shape", given_,
          fmt::format("has shape {}, but the queries and keys of all sequences need [{}]", shape_text(mask_.shape),
                      needed),
          "",
          walk_.end > needed ? "cut it, or save mask_indptr [B + 1] with the first value of each sequence"
          : packed           ? "each sequence has 1 bit for each query and key, and starts at a byte"
                             : "save a value for each query and key",
          walk_.end);
  }

  void place_by_offsets(const std::vector<std::int64_t>& sizes, bool packed) {
    const std::vector<std::int64_t>& at = offsets_->values;
    const std::string& name = offsets_->name;
    const char* unit = packed ? "bytes" : "values";
    if (at.size() != sizes.size() + 1) {
      fault("shape", name, fmt::format("has {} entries", at.size()), fmt::format("{}", sizes.size() + 1),
            "one offset per sequence, and the end", static_cast<std::int64_t>(at.size()));
      return;
    }
    std::int64_t values = 0;  // of the sequences so far, as the mask has them before it is packed
    bool counts_bits = packed && at[0] == 0;
    for (std::size_t b = 0; b < sizes.size(); ++b) {
      values += capped_product(batch_.queries[b], batch_.keys[b]);
      counts_bits = counts_bits && at[b + 1] == values;
    }
    if (counts_bits && at.back() > walk_.end) {
      fault("indptr", fmt::format("{}[{}]", name, sizes.size()), fmt::format("is {}", at.back()),
            fmt::format("[0, {}], the bytes of {}", walk_.end, given_),
            "these offsets count bits: offsets of a packed mask count bytes, as segment_packbits returns them",
            at.back());
      return;
    }
    if (at[0] != 0) {
      fault("indptr", name + "[0]", fmt::format("is {}", at[0]), "0", "the mask of sequence 0 starts the tensor",
            at[0]);
    }
    for (std::size_t b = 0; b < sizes.size(); ++b) {
      const std::string object = fmt::format("{}[{}]", name, b + 1);
      walk_.first[b] = at[b];
      if (at[b] < 0 || at[b] > walk_.end) continue;  // reported, as an offset of the sequence before or as the first
      if (at[b + 1] < at[b]) {
        fault("indptr", object, fmt::format("is {} after {}", at[b + 1], at[b]), fmt::format("at least {}", at[b]),
              "offsets are running sums, and a sequence cannot have a negative size", at[b + 1]);
      } else if (at[b + 1] - at[b] != sizes[b]) {
        fault("indptr", object,
              fmt::format("gives sequence {} {} {}, but {} queries of {} keys need {}", b, at[b + 1] - at[b], unit,
                          batch_.queries[b], batch_.keys[b], sizes[b]),
              fmt::format("{}", at[b] + sizes[b]),
              packed ? "offsets count bytes, and each sequence starts at a byte"
                     : "the lengths and the mask belong to different batches",
              at[b + 1]);
      } else if (at[b + 1] > walk_.end) {
        fault("indptr", object, fmt::format("is {}", at[b + 1]),
              fmt::format("[0, {}], the {} of {}", walk_.end, unit, given_), "the kernel would read past the mask",
              at[b + 1]);
      }
    }
  }

  void read_tree() {
    if (mask_.shape.size() == 1) return read_tree_list();
    const std::vector<std::int64_t>& shape = mask_.shape;
    const std::size_t rank = shape.size();
    const auto batch = static_cast<std::int64_t>(batch_.size());
    const bool square = (rank == 2 || rank == 3) && shape[rank - 1] == shape[rank - 2];
    const bool sequences = rank == 2 || (rank == 3 && shape[0] == batch);
    const std::int64_t bits = kvscope::bits(mask_.dtype);
    // Words of 8 bits are left out: [B, S, Sk] of them is a mask of all keys.
    if (rank == 3 && sequences && !square && is_integer(mask_.dtype) && bits > 8 && shape[2] * bits >= shape[1]) {
      walk_.form = MaskForm::packed_tree;
      walk_.bits = true;
      walk_.end *= bits;
      return place_trees(shape[1], shape[2] * bits, shape[1] * shape[2] * bits);
    }
    if (!square || !sequences) {
      fault("shape", given_, fmt::format("has shape {}", shape_text(shape)),
            fmt::format("[S, S], [{0}, S, S], bits as [{0}, S, W] of at least 16 each, or one list of all sequences",
                        batch),
            fmt::format("S is the number of queries of a sequence; {}", kMaskOfAllKeys));
      return;
    }
    walk_.form = MaskForm::tree;
    walk_.by_sequence = rank == 3;
    place_trees(shape[rank - 1], shape[rank - 1], rank == 3 ? shape[rank - 1] * shape[rank - 1] : 0);
  }

  void place_trees(std::int64_t nodes, std::int64_t row, std::int64_t sequence) {
    walk_.rows = walk_.columns = nodes;
    for (std::size_t b = 0; b < batch_.size(); ++b) {
      walk_.first[b] = static_cast<std::int64_t>(b) * sequence;
      walk_.query_stride[b] = row;
      walk_.origin[b] = batch_.keys[b] - nodes;
      if (batch_.queries[b] == nodes && batch_.keys[b] >= nodes) continue;
      fault("shape", given_,
            fmt::format("is for {} queries, but sequence {} has {} queries and {} keys", nodes, b, batch_.queries[b],
                        batch_.keys[b]),
            "", "the nodes of a tree are the queries, and the last keys, of their sequence", nodes);
    }
  }

  // SGLang's tree_mask: the mask of all keys (FULL_MASK), of the queries among each other (QLEN_ONLY), or bits of the
  // latter (QLEN_ONLY_BITPACKING): u8, u16 or u32 by the number of queries.
  void read_tree_list() {
    std::int64_t full = 0, queries = 0, nodes = 0;
    for (std::size_t b = 0; b < batch_.size(); ++b) {
      full += capped_product(batch_.queries[b], batch_.keys[b]);
      nodes += capped_product(batch_.queries[b], batch_.queries[b]);
      queries += batch_.queries[b];
    }
    const std::int64_t bits = kvscope::bits(mask_.dtype), most = longest_of(batch_.queries).count;
    const bool packed = walk_.end != full && walk_.end != nodes && walk_.end == queries;
    if (walk_.end == full) return read_list(false);
    if ((!packed && walk_.end != nodes) || (packed && (!is_integer(mask_.dtype) || most > bits))) {
      fault("shape", given_, fmt::format("is {}", describe(mask_)),
            fmt::format("[{}] for all keys, [{}] for queries only, or [{}] integers of at least {} bits", full, nodes,
                        queries, most),
            "the lengths count this step's tokens: the queries are the last keys", walk_.end);
      return;
    }
    walk_.form = packed ? MaskForm::packed_tree : MaskForm::tree;
    walk_.bits = packed;
    if (packed) walk_.end *= bits;
    std::int64_t first = 0;
    for (std::size_t b = 0; b < batch_.size(); ++b) {
      const std::int64_t own = batch_.queries[b];
      walk_.first[b] = first;
      walk_.query_stride[b] = packed ? bits : own;
      walk_.origin[b] = batch_.keys[b] - own;
      first += packed ? own * bits : own * own;
      if (batch_.keys[b] < own) {
        fault("shape", given_, fmt::format("has {} queries of sequence {}, which has {} keys", own, b, batch_.keys[b]),
              "", "the nodes of a tree are the last keys of their sequence", own);
      }
    }
    const Longest longest = longest_of(batch_.queries);
    const bool uniform = std::ranges::all_of(batch_.queries, [&](std::int64_t n) { return n == longest.count; });
    walk_.rows = walk_.columns = uniform ? longest.count : 0;
  }

  void read_dense() {
    walk_.form = MaskForm::dense;
    const std::vector<std::int64_t>& shape = mask_.shape;
    const std::size_t rank = shape.size();
    const auto batch = static_cast<std::int64_t>(batch_.size());
    const std::int64_t heads = rank == 4 ? shape[1] : 1, sequences = rank >= 3 ? shape[0] : 1;
    if (rank < 2 || rank > 4 || (sequences != 1 && sequences != batch) || heads < 1 ||
        (heads != 1 && batch_.query_heads > 0 && heads != batch_.query_heads)) {
      const bool by_head = rank == 3 && sequences == batch_.query_heads;
      const std::string all_heads = batch_.query_heads > 0 ? fmt::to_string(batch_.query_heads) : "Hq";
      fault(
          "shape", given_,
          fmt::format("is {}; it is [Sq, Sk], [{}, Sq, Sk] or [{}, {}, Sq, Sk], where axes that share a mask have "
                      "length 1",
                      describe(mask_), batch, batch, all_heads),
          "",
          by_head ? fmt::format("a mask for each head is [1, {}, Sq, Sk]: three axes are [B, Sq, Sk]", all_heads) : "");
      return;
    }
    if (rank == 3 && sequences > 1 && sequences == batch_.query_heads) {
      made_.warnings.push_back(
          fmt::format("{}: {} has a mask for each of the {} sequences; a mask for each of the {} query heads is "
                      "[1, {}, Sq, Sk]",
                      given_, shape_text(shape), batch, batch_.query_heads, batch_.query_heads));
    }
    const bool by_batch = rank == 2 && batch > 1 && shape[0] == batch;  // as padding [B, Sk] of Hugging Face
    walk_.rows = shape[rank - 2];
    walk_.columns = shape[rank - 1];
    walk_.heads = heads;
    walk_.by_sequence = sequences > 1 || batch == 1;
    walk_.head_stride = heads == 1 ? 0 : walk_.rows * walk_.columns;
    walk_.key_stride = walk_.columns == 1 ? 0 : 1;
    const Longest queries = longest_of(batch_.queries), keys = longest_of(batch_.keys);
    const bool positions = walk_.columns == batch_.capacity && !batch_.padding.empty();
    for (std::size_t b = 0; b < batch_.size(); ++b) {
      walk_.first[b] = sequences == 1 ? 0 : static_cast<std::int64_t>(b) * heads * walk_.rows * walk_.columns;
      if (positions && walk_.columns > 1) walk_.first[b] += batch_.padding[b];
      walk_.query_stride[b] = walk_.rows == 1 ? 0 : walk_.columns;
    }
    // No rows or columns are right only where no sequence has queries or keys: an unknown size is 0 too.
    const bool padded_rows = batch_.padded_queries > queries.count && walk_.rows == batch_.padded_queries;
    if (walk_.rows != 1 && walk_.rows != queries.count && !padded_rows) {
      fault("shape", given_, fmt::format("has {} rows", walk_.rows),
            fmt::format(
                "1, shared by all queries, or {}, the queries of sequence {}{}", queries.count, queries.sequence,
                batch_.padded_queries > queries.count ? fmt::format(", or {}, the rows of q", batch_.padded_queries)
                                                      : ""),
            by_batch ? fmt::format("row i is query i of its sequence; padding of each sequence is [{}, 1, Sk]", batch)
                     : "row i is query i of its sequence",
            walk_.rows);
    }
    const bool spare_columns = batch_.capacity > keys.count && walk_.columns == batch_.capacity;
    if (walk_.columns != 1 && walk_.columns != keys.count && !spare_columns) {
      fault(
          "shape", given_, fmt::format("has {} columns", walk_.columns),
          fmt::format("1, shared by all keys, or {}, the keys of sequence {}{}", keys.count, keys.sequence,
                      batch_.capacity > keys.count
                          ? fmt::format(", or {}, the tokens that the table or the cache holds for it", batch_.capacity)
                          : ""),
          walk_.columns > keys.count ? "cut the columns past the keys" : "save a column for each key", walk_.columns);
    }
  }

  std::string_view name_;
  std::string given_;
  const Tensor& mask_;
  const std::optional<MaskOffsets>& offsets_;
  const MaskBatch& batch_;
  MaskReading made_;
  MaskWalk& walk_ = made_.walk;
};

}  // namespace

std::string MaskFault::message() const {
  std::string text = problem;
  if (!allowed.empty()) text += "; allowed: " + allowed;
  if (!next.empty()) text += (allowed.empty() ? ": " : "; ") + next;
  return text;
}

const std::vector<std::string>& mask_names() {
  static const std::vector<std::string> names{"custom_mask", "packed_custom_mask", "tree_mask", "attn_mask"};
  return names;
}

MaskReading read_mask_walk(std::string_view name, const std::string& given, const Tensor& mask,
                           const std::optional<MaskOffsets>& offsets, const MaskBatch& batch) {
  return MaskShapes(name, given, mask, offsets, batch).read();
}

bool MaskValues::additive() const {
  return is_float(tensor_->dtype) && walk_->form != MaskForm::custom;
}

double MaskValues::number(std::int64_t at) const {
  if (walk_->bits) return static_cast<int>(tensor_->bytes[static_cast<std::size_t>(at / 8)]) >> (at % 8) & 1;
  return load_as_double(tensor_->dtype, tensor_->bytes.data() + at * size_of(tensor_->dtype));
}

double MaskValues::value(std::size_t b, std::int64_t head, std::int64_t query, std::int64_t key) const {
  return number(walk_->at(b, head, query, key));
}

bool MaskValues::sees(std::size_t b, std::int64_t head, std::int64_t query, std::int64_t key) const {
  return key < walk_->origin[b] || shows(walk_->at(b, head, query, key));
}

bool MaskValues::shows(std::int64_t at) const {
  const double x = number(at);
  return additive() ? x > attention::hidden_bias(tensor_->dtype) : x != 0;
}

std::string MaskValues::place(std::int64_t at) const {
  if (!walk_->bits) return index_of(at, tensor_->shape);
  const std::int64_t bits = kvscope::bits(tensor_->dtype);
  return fmt::format("{} bit {}", index_of(at / bits, tensor_->shape), at % bits);
}

namespace {

// Set bits past the nodes of a tree, in rows of [B, S, W]: padding of the rows is 0. Other values are no rows of bits.
void check_tree_rows(const std::string& given, const Tensor& mask, const MaskWalk& walk, const MaskBatch& batch,
                     MaskValueFaults& faults) {
  const MaskValues values(mask, walk);
  for (std::size_t b = 0; b < batch.size(); ++b) {
    for (std::int64_t query = 0; query < batch.queries[b]; ++query) {
      const std::int64_t start = walk.first[b] + query * walk.query_stride[b];
      std::int64_t bit = walk.columns;
      while (bit < walk.query_stride[b] && values.number(start + bit) == 0) ++bit;
      if (bit == walk.query_stride[b]) continue;
      faults.add([&] {
        return MaskFault{
            "mask-value",
            given + values.place(start + bit),
            fmt::format("is 1 in the row of query {} of sequence {}, whose tree has {} nodes", query, b, walk.columns),
            fmt::format("bits 0 to {} of a row", walk.columns - 1),
            kMaskOfAllKeys,
            1};
      });
    }
  }
}

}  // namespace

MaskValueFaults check_mask_values(const std::string& given, const Tensor& mask, const MaskWalk& walk,
                                  const MaskBatch& batch) {
  MaskValueFaults faults;
  if (walk.bits) {
    if (walk.form == MaskForm::packed_tree && mask.shape.size() == 3) {
      check_tree_rows(given, mask, walk, batch, faults);
    }
    return faults;
  }
  const MaskValues values(mask, walk);
  const bool additive = values.additive();
  std::vector<bool> checked(static_cast<std::size_t>(walk.end), false);  // shared values are reported once
  bool only_zero_or_one = true, has_one = false;
  const auto check = [&](std::int64_t at) {
    if (checked[static_cast<std::size_t>(at)]) return;
    checked[static_cast<std::size_t>(at)] = true;
    const double x = values.number(at);
    has_one = has_one || x == 1;
    only_zero_or_one = only_zero_or_one && (x == 0 || x == 1);
    if (additive ? !std::isnan(x) && x != std::numeric_limits<double>::infinity() : x == 0 || x == 1) return;
    faults.add([&] {
      const auto whole = is_integer(mask.dtype) ? std::optional(static_cast<std::int64_t>(x)) : std::nullopt;
      const bool bytes = mask.dtype == DType::u8 && walk.form == MaskForm::custom;
      return MaskFault{"mask-value",
                       given + values.place(at),
                       fmt::format("is {}", x),
                       additive ? fmt::format("a finite number, and -inf or at most {} for a hidden key",
                                              attention::hidden_bias(mask.dtype))
                                : "0 or 1",
                       additive ? "a float mask is added to the scores. Save a mask of 0 and 1 as integers"
                       : is_float(mask.dtype) ? "a mask that is added to the scores is attn_mask or tree_mask"
                       : bytes                ? "bytes of packed bits are packed_custom_mask"
                               : "save the mask as bool; one that is added to the scores must be a float",
                       whole};
    });
  };
  for (std::size_t b = 0; b < batch.size(); ++b) {
    for (std::int64_t head = 0; head < walk.heads; ++head) {
      for (std::int64_t query = 0; query < batch.queries[b]; ++query) {
        if (query > 0 && walk.query_stride[b] == 0) break;
        for (std::int64_t key = std::max<std::int64_t>(walk.origin[b], 0); key < batch.keys[b]; ++key) {
          if (key > 0 && walk.key_stride == 0) break;
          check(walk.at(b, head, query, key));
        }
      }
    }
  }
  if (additive && walk.form == MaskForm::tree && only_zero_or_one && has_one) {
    faults.add([&] {
      return MaskFault{"mask-value",
                       given,
                       fmt::format("holds only 0 and 1 as {}", name(mask.dtype)),
                       "integers of 0 and 1, or floats of 0 and -inf",
                       "a float mask is added to the scores",
                       std::nullopt};
    });
  } else if (additive && only_zero_or_one && has_one) {
    faults.doubt = {"mask-sense",
                    given,
                    fmt::format("holds only 0 and 1 as {}, and a float mask is added to the scores", name(mask.dtype)),
                    "",
                    "it hides no key; save a mask of 0 and 1 as bool",
                    std::nullopt};
  }
  return faults;
}

Tensor with_columns_of_keys(const Tensor& mask, const MaskBatch& batch) {
  const std::size_t rank = mask.shape.size();
  const std::int64_t columns = mask.shape[rank - 1], rows = mask.shape[rank - 2], keys = longest_of(batch.keys).count;
  const std::int64_t heads = rank == 4 ? mask.shape[1] : 1;
  const bool alike = std::ranges::all_of(batch.padding, [&](std::int64_t n) { return n == batch.padding.front(); });
  const std::int64_t given = rank >= 3 ? mask.shape[0] : 1;
  const std::int64_t made_sequences = alike ? given : static_cast<std::int64_t>(batch.size());
  Tensor made{mask.dtype, {rows, keys}, {}};
  if (rank == 4) made.shape.insert(made.shape.begin(), heads);
  if (rank >= 3 || made_sequences > 1) made.shape.insert(made.shape.begin(), made_sequences);
  const std::int64_t size = size_of(mask.dtype);
  for (std::int64_t b = 0; b < made_sequences; ++b) {
    const std::int64_t padding = batch.padding[static_cast<std::size_t>(b)];
    for (std::int64_t row = 0; row < heads * rows; ++row) {
      const std::int64_t start = ((given == 1 ? 0 : b * heads * rows) + row) * columns;
      for (std::int64_t key = 0; key < keys; ++key) {  // columns past the sequence's own keys are not read
        const std::int64_t from = start + std::min(padding + key, columns - 1);
        const auto at = mask.bytes.begin() + from * size;
        made.bytes.append(at, at + size);
      }
    }
  }
  return made;
}

}  // namespace kvscope::golden
