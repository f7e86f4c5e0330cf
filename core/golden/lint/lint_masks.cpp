// The mask tensors of a file: their shapes and values, and masks that are rarely meant.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/base/report.h"
#include "core/golden/layouts/detail/mask_walk.h"
#include "core/golden/lint/detail/lint_inputs.h"

namespace kvscope::golden {
namespace {

constexpr std::int64_t kMostMaskedTokens = std::int64_t{1} << 31;  // of a sequence

// A mask can have a finding for each of its rows. The first are listed, and this one stands for the rest.
LintFinding rest_of(LintSeverity severity, std::string rule, const std::string& given, std::int64_t count,
                    std::string_view what) {
  LintFinding rest = lint_fault(std::move(rule), given, fmt::format("has {} more such {}", count, what), "", "", count);
  rest.severity = severity;
  rest.count = count;
  return rest;
}

class MaskRules {
 public:
  MaskRules(const std::string& given, const Tensor& mask, const MaskWalk& walk, const MaskBatch& batch,
            std::vector<LintFinding>& findings)
      : given_(given), walk_(walk), batch_(batch), values_(mask, walk), findings_(findings) {}

  // `tree`: the mask is of the nodes of a tree, also where it has the keys before them.
  void check(bool causal, bool tree) {
    if (walk_.bits) {
      check_last_bits();
    } else if (walk_.form == MaskForm::dense && walk_.columns > 1 && walk_.by_sequence) {
      check_last_columns();
    }
    if (!is_inverted(tree)) {  // every other finding follows from it
      check_rows();
      if (causal) check_later_keys();
    }
    for (const auto& [rule, count] : counts_) {
      if (count <= kMostListedFaults) continue;
      add(rest_of(LintSeverity::warning, rule, given_, count - kMostListedFaults, "rows"));
    }
  }

 private:
  void add(LintFinding finding) { findings_.push_back(std::move(finding)); }
  // Counts a finding of a row. Whether it is listed.
  bool lists(const char* rule) { return ++counts_[rule] <= kMostListedFaults; }
  [[nodiscard]] std::string at(std::size_t b, std::int64_t head, std::int64_t query, std::int64_t key) const {
    return given_ + values_.place(walk_.at(b, head, query, key));
  }
  [[nodiscard]] std::int64_t own_key(std::size_t b, std::int64_t query) const {
    return batch_.keys[b] - batch_.queries[b] + query;
  }
  [[nodiscard]] std::string query_text(std::int64_t head, std::int64_t query) const {
    return walk_.heads > 1 ? fmt::format("query {} of head {}", query, head) : fmt::format("query {}", query);
  }

  // Columns before the first key of a sequence.
  [[nodiscard]] std::int64_t padding_of(std::size_t b) const {
    return batch_.padding.empty() || walk_.columns != batch_.capacity ? 0 : batch_.padding[b];
  }

  // Calls visit(b, head, query) for each query.
  void each_row(const auto& visit) const {
    for (std::size_t b = 0; b < batch_.size(); ++b) {
      for (std::int64_t head = 0; head < walk_.heads; ++head) {
        for (std::int64_t query = 0; query < batch_.queries[b]; ++query) visit(b, head, query);
      }
    }
  }

  // Bits behind a sequence's mask, in its last byte, or behind a row of a tree.
  void check_last_bits() {
    const bool tree = walk_.form == MaskForm::packed_tree;
    for (std::size_t b = 0; b < batch_.size(); ++b) {
      const std::int64_t rows = tree ? batch_.queries[b] : 1;
      const std::int64_t used = tree ? batch_.queries[b] : batch_.queries[b] * batch_.keys[b];
      const std::int64_t all = tree ? walk_.query_stride[b] : (used + 7) / 8 * 8;
      for (std::int64_t row = 0; row < rows; ++row) {
        const std::int64_t start = walk_.first[b] + (tree ? row * walk_.query_stride[b] : 0);
        for (std::int64_t bit = used; bit < all; ++bit) {
          if (values_.number(start + bit) == 0) continue;
          if (!lists("mask-past")) break;
          add(lint_warning(
              "mask-past", given_ + values_.place(start + bit),
              tree ? fmt::format("is 1 in the row of query {} of sequence {}, whose tree has {} nodes", row, b, used)
                   : fmt::format("is 1 behind the {} queries of {} keys of sequence {}", batch_.queries[b],
                                 batch_.keys[b], b),
              tree ? fmt::format("bits 0 to {}", used - 1) : fmt::format("{} bits", used),
              "the mask was packed for other lengths, or from the highest bit on", 1));
          break;  // one finding for a row
        }
      }
    }
  }

  // Columns before and behind the keys of a sequence, in the rows of its queries.
  void check_last_columns() {
    for (std::size_t b = 0; b < batch_.size(); ++b) {
      const std::int64_t padding = padding_of(b);
      std::int64_t others = 0;
      std::string first;
      for (std::int64_t head = 0; head < walk_.heads; ++head) {
        for (std::int64_t query = 0; query < std::min(batch_.queries[b], walk_.rows); ++query) {
          for (std::int64_t column = 0; column < walk_.columns; ++column) {
            if (column >= padding && column < padding + batch_.keys[b]) continue;
            if (!values_.shows(walk_.at(b, head, query, column - padding))) continue;
            if (others++ == 0) first = at(b, head, query, column - padding);
          }
        }
      }
      if (others == 0 || !lists("mask-past")) continue;
      add(lint_warning(
          "mask-past", first,
          fmt::format("is visible{}, outside the {} keys of sequence {}",
                      others == 1 ? "" : fmt::format(", and {}", counted(others - 1, "other")), batch_.keys[b], b),
          padding > 0 ? fmt::format("columns {} to {}", padding, padding + batch_.keys[b] - 1)
                      : fmt::format("columns below {}", batch_.keys[b]),
          "a kernel that reads the mask without the lengths takes padding for keys: hide it", others));
    }
  }

  void check_rows() {
    each_row([&](std::size_t b, std::int64_t head, std::int64_t query) {
      const bool shared = walk_.query_stride[b] == 0 && batch_.queries[b] > 1;
      if (shared && query > 0) return;
      const std::int64_t keys = walk_.key_stride == 0 ? std::min<std::int64_t>(batch_.keys[b], 1) : batch_.keys[b];
      if (keys == 0) return;
      for (std::int64_t key = 0; key < keys; ++key) {
        if (values_.sees(b, head, query, key)) return;
      }
      if (!lists("mask-row")) return;
      add(lint_warning("mask-row", at(b, head, query, std::max<std::int64_t>(walk_.origin[b], 0)),
                       fmt::format("starts a row without a visible key: {} of sequence {}, which has {} keys",
                                   shared ? fmt::format("all {} queries{}", batch_.queries[b],
                                                        walk_.heads > 1 ? fmt::format(" of head {}", head) : "")
                                          : query_text(head, query),
                                   b, batch_.keys[b]),
                       "at least one visible key",
                       "its output is 0 and its lse -inf. PyTorch's SDPA returns 0 from 2.5 on, and NaN before; with "
                       "finfo.min instead of -inf, most kernels return a mean of the values"));
    });
  }

  void check_later_keys() {
    each_row([&](std::size_t b, std::int64_t head, std::int64_t query) {
      const std::int64_t own = own_key(b, query);
      for (std::int64_t key = std::max<std::int64_t>(own + 1, 0); key < batch_.keys[b]; ++key) {
        if (!values_.sees(b, head, query, key)) continue;
        if (!lists("mask-later")) return;
        add(lint_warning("mask-later", at(b, head, query, key),
                         fmt::format("shows key {} to {} of sequence {}, whose own token is key {}", key,
                                     query_text(head, query), b, own),
                         fmt::format("keys up to {}", own), "a kernel that is causal too hides it", key));
        return;
      }
    });
  }

  // What the rows of a mask have in common, to tell an inverted one.
  struct RowSense {
    std::int64_t rows = 0;
    std::int64_t pairs = 0;        // of queries and keys
    std::int64_t visible = 0;      // keys
    std::int64_t later = 0;        // of these behind the query's own token
    bool own_hidden = true;        // of each query
    bool before_hidden = true;     // all keys before each query's own token
    bool all_others_shown = true;  // but a run of keys that ends at the query's own token
    std::int64_t longest_run = 0;  // of these
    bool same_runs = true;         // each is longest_run, or starts at key 0
    bool queries_are_keys = true;  // false: more queries than keys; they are no tokens of the cache
  };

  RowSense row_sense() const {
    RowSense sense;
    std::vector<std::pair<std::int64_t, bool>> runs;  // length, and whether it starts at the first key
    each_row([&](std::size_t b, std::int64_t head, std::int64_t query) {
      const std::int64_t own = own_key(b, query), first = std::max<std::int64_t>(walk_.origin[b], 0);
      sense.queries_are_keys = sense.queries_are_keys && own >= 0;
      if (!sense.queries_are_keys || !sense.own_hidden) return;
      ++sense.rows;
      std::int64_t hidden = 0, last_shown = first - 1;  // up to the own token
      for (std::int64_t key = first; key < batch_.keys[b]; ++key) {
        ++sense.pairs;
        const bool sees = values_.sees(b, head, query, key);
        sense.visible += sees ? 1 : 0;
        if (key > own) {
          sense.later += sees ? 1 : 0;
          sense.all_others_shown = sense.all_others_shown && sees;
        } else if (sees) {
          last_shown = key;
        } else {
          ++hidden;
        }
      }
      sense.own_hidden = last_shown < own;
      sense.before_hidden = sense.before_hidden && last_shown < first;
      sense.all_others_shown = sense.all_others_shown && hidden == own - last_shown;
      runs.emplace_back(hidden, last_shown < first);
      sense.longest_run = std::max(sense.longest_run, hidden);
    });
    sense.same_runs =
        std::ranges::all_of(runs, [&](const auto& run) { return run.first == sense.longest_run || run.second; });
    return sense;
  }

  // Whether all columns outside of the keys are visible, and there are some.
  bool shows_all_outside() const {
    if (walk_.form != MaskForm::dense || walk_.columns < 2 || !walk_.by_sequence) return false;
    std::int64_t outside = 0;
    for (std::size_t b = 0; b < batch_.size(); ++b) {
      const std::int64_t padding = padding_of(b);
      for (std::int64_t head = 0; head < walk_.heads; ++head) {
        for (std::int64_t query = 0; query < std::min(batch_.queries[b], walk_.rows); ++query) {
          for (std::int64_t column = 0; column < walk_.columns; ++column) {
            if (column >= padding && column < padding + batch_.keys[b]) continue;
            if (!values_.shows(walk_.at(b, head, query, column - padding))) return false;
            ++outside;
          }
        }
      }
    }
    return outside > 0;
  }

  // Whether the mask is 1 for hidden keys, as masks of PyTorch's MultiheadAttention are, or a float of 0 for them.
  // Certain in four cases: a tree, a causal mask, padding, a window. In the second and the third, the last query of
  // each sequence would see no key. In the fourth, a kernel would see all but the window: a mask that hides each
  // query's own token alone is legal, and so is one that hides some of the last keys and all later ones.
  bool is_inverted(bool tree) {
    constexpr std::int64_t kMinPairs = 16;  // a mask without a rule hides these keys, and no others, once in 2^16
    const RowSense sense = row_sense();
    if (!sense.queries_are_keys || !sense.own_hidden || sense.rows == 0) return false;
    const std::string queries = sense.rows == 1 ? "the query" : fmt::format("each of the {} queries", sense.rows);
    std::string problem;
    if (tree) {  // each node sees itself
      if (sense.rows < 2 || sense.visible == 0) return false;
      problem = fmt::format("hides the own token of {}", queries);
    } else if (sense.before_hidden && sense.visible > 0) {
      if (sense.rows < 2) return false;
      problem = fmt::format("hides the own token of {} and all before, and shows {} later ones", queries, sense.later);
    } else if (sense.visible == 0) {
      if (!shows_all_outside()) return false;
      problem = fmt::format("hides all keys of {}, and shows all columns outside of their keys", queries);
    } else {
      if (!sense.all_others_shown || !sense.same_runs || sense.longest_run < 2 || sense.later == 0 ||
          sense.pairs < kMinPairs) {
        return false;
      }
      problem = fmt::format("hides the last {} keys of {}, its own token included, and shows all others",
                            sense.longest_run, queries);
    }
    if (values_.additive()) {
      add(lint_warning("mask-sense", given_, problem, "0 for a visible key, -inf for a hidden one",
                       fmt::format("it is {} for visible keys: invert it", own_value())));
    } else {
      add(lint_warning("mask-sense", given_, problem, "1 for a visible key", "it is 1 for hidden keys: invert it"));
    }
    return true;
  }

  // The value of the first query's own token. Precondition: there is one.
  [[nodiscard]] double own_value() const {
    std::size_t b = 0;
    while (batch_.queries[b] == 0) ++b;
    return values_.value(b, 0, 0, own_key(b, 0));
  }

  const std::string& given_;
  const MaskWalk& walk_;
  const MaskBatch& batch_;
  MaskValues values_;
  std::vector<LintFinding>& findings_;
  std::map<std::string, std::int64_t> counts_;  // of the rules that judge each row
};

// Empty where the sequences are not all known; a fault is reported then.
std::optional<MaskBatch> lint_batch(const LintTensors& tensors, const LintCache& cache, const LintIndices& indices) {
  MaskBatch batch;
  for (const LintSequence& sequence : indices.sequences) {
    const std::int64_t most = sequence.columns * std::max<std::int64_t>(indices.page_tokens, 0);
    if (!sequence.known || sequence.queries < 0 || sequence.queries > kMostMaskedTokens || sequence.keys > most ||
        sequence.keys > kMostMaskedTokens) {
      return std::nullopt;
    }
    batch.queries.push_back(sequence.queries);
    batch.keys.push_back(sequence.keys);
    batch.capacity = std::max(batch.capacity, most);
    if (indices.form == TableForm::dense) batch.padding.push_back(sequence.padding);
  }
  if (indices.form == TableForm::dense) batch.capacity = cache.page_size;
  const LintTensor q = tensors.get("q");
  if (q.tensor != nullptr && q.tensor->shape.size() >= 3) {
    const std::vector<std::int64_t>& shape = q.tensor->shape;
    const bool by_head = shape.size() == 4 && tensors.layout().queries_by_head;
    batch.query_heads = by_head ? shape[1] : shape[shape.size() - 2];
    if (shape.size() == 4) batch.padded_queries = shape[by_head ? 2 : 1];
  }
  return batch;
}

}  // namespace

void check_lint_masks(const LintTensors& tensors, const LintCache& cache, const LintIndices& indices, bool causal,
                      LintReport& report) {
  std::vector<std::pair<std::string, LintTensor>> found;
  for (const std::string& name : mask_names()) {
    if (const LintTensor mask = tensors.get(name); mask.tensor != nullptr) found.emplace_back(name, mask);
  }
  const LintTensor indptr = tensors.get("mask_indptr");
  std::vector<LintFinding>& findings = report.findings;
  if (found.empty()) {
    if (indptr.tensor != nullptr) {
      findings.push_back(lint_fault("missing", "custom_mask", fmt::format("is missing, but {} is given", indptr.name),
                                    "custom_mask or packed_custom_mask", "save the mask too"));
    } else if (causal) {
      throw InputError("command line", "--causal", "has no effect: the file has no mask tensor to check; remove it");
    }
    return;
  }
  const auto& [name, mask] = found.front();
  for (std::size_t i = 1; i < found.size(); ++i) {
    findings.push_back(lint_fault("shape", found[i].second.name, fmt::format("is given together with {}", mask.name),
                                  "one mask", "keep the one that the kernel reads"));
  }
  std::optional<MaskOffsets> offsets;
  if (indptr.tensor != nullptr) {
    auto values = index_values(indptr, 1, "[B + 1]", findings);
    if (!values) return;
    offsets = {indptr.name, std::move(*values)};
  }
  if (!causal) report.not_checked.emplace_back("mask-later: pass --causal");
  const bool counted = indices.queries_known && cache.blocks > 0 && indices.form != TableForm::sparse;
  const std::optional<MaskBatch> batch = counted ? lint_batch(tensors, cache, indices) : std::nullopt;
  if (!batch) {
    report.not_checked.push_back(fmt::format("{}: {}", mask.name,
                                             indices.form == TableForm::sparse
                                                 ? "the table lists the keys of each query"
                                             : !indices.queries_known ? "the file has no q or query_offsets"
                                             : cache.blocks == 0      ? "the file has no cache tensors"
                                                                      : "the sequences that it is for have faults"));
    return;
  }
  const MaskReading reading = read_mask_walk(name, mask.name, *mask.tensor, offsets, *batch);
  const auto report_all = [&](const std::vector<MaskFault>& faults) {
    for (const MaskFault& fault : faults) {
      findings.push_back(lint_fault(fault.rule, fault.object, fault.problem, fault.allowed, fault.next, fault.value));
    }
    return !faults.empty();
  };
  if (report_all(reading.faults)) return;
  const MaskValueFaults wrong = check_mask_values(mask.name, *mask.tensor, reading.walk, *batch);
  if (report_all(wrong.first)) {
    if (wrong.others > 0) {
      findings.push_back(rest_of(LintSeverity::fault, "mask-value", mask.name, wrong.others, "values"));
    }
    return;
  }
  if (const auto& doubt = wrong.doubt) {
    findings.push_back(lint_warning(doubt->rule, doubt->object, doubt->problem, doubt->allowed, doubt->next));
  }
  if (const auto doubt = padding_as_rows(mask.name, *mask.tensor, reading.walk, *batch)) {
    findings.push_back(lint_warning(doubt->rule, doubt->object, doubt->problem, doubt->allowed, doubt->next));
    return;  // every other finding follows from it
  }
  MaskRules(mask.name, *mask.tensor, reading.walk, *batch, findings).check(causal, name == "tree_mask");
}

}  // namespace kvscope::golden
