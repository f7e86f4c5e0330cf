#include "core/golden/lint/lint.h"

#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <cstring>
#include <limits>
#include <map>
#include <span>
#include <utility>

#include "core/base/checked.h"
#include "core/golden/lint/detail/lint_inputs.h"
#include "core/tma/tensor_map_rules.h"

namespace kvscope::golden {
namespace {

constexpr std::int64_t kInt32Most = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kUint32Most = std::numeric_limits<std::uint32_t>::max();

// An entry that is read, and its block. The uses of a block are neighbors in the sorted list of all: 24 bytes each.
struct Use {
  std::int64_t block = 0, sequence = 0, page = 0;
  friend auto operator<=>(const Use&, const Use&) = default;
};
using Uses = std::span<const Use>;

class Rules {
 public:
  Rules(const LintOptions& options, const LintCache& cache, const LintIndices& indices, LintReport& report)
      : options_(options), cache_(cache), indices_(indices), report_(report) {}

  void check() {
    find_uses();
    for (std::size_t first = 0, last = 0; first < uses_.size(); first = last) {
      const std::int64_t block = uses_[first].block;
      while (last < uses_.size() && uses_[last].block == block) ++last;
      if (last - first < 2 || !indices_.has_table()) continue;
      const Uses uses = Uses(uses_).subspan(first, last - first);
      check_duplicates(block, uses);
      if (indices_.form == TableForm::sparse) continue;  // queries choose the same keys
      check_sharing(block, uses);
      if (indices_.queries_known) check_writes(block, uses);
    }
    if (options_.vector_read > 1) check_vector_reads();
    check_overflow();
    if (options_.tma) check_tma();
  }

 private:
  void add(LintFinding finding) { report_.findings.push_back(std::move(finding)); }

  // Rules range and pair; the valid entries in the order of blocks, sequences and pages.
  void find_uses() {
    std::int64_t most = 0;
    for (const LintSequence& sequence : indices_.sequences)
      most += std::max<std::int64_t>(0, sequence.end - sequence.begin);
    uses_.reserve(static_cast<std::size_t>(most));
    for (std::size_t b = 0; b < indices_.sequences.size(); ++b) {
      const LintSequence& sequence = indices_.sequences[b];
      for (std::int64_t page = sequence.begin; page < sequence.end; ++page) {
        const std::int64_t entry = indices_.entry(sequence, page);
        if (indices_.form == TableForm::sparse && entry == -1) continue;  // none
        ++report_.pages;
        const auto at = static_cast<std::int64_t>(b);
        const bool apart = indices_.form == TableForm::offsets;
        if (apart ? !check_pair(at, page) : !check_range(at, page, entry, indices_.places, "")) continue;
        uses_.push_back({apart ? entry / 2 : entry, at, page});
      }
    }
    if (!std::ranges::is_sorted(uses_)) std::ranges::sort(uses_);
  }

  bool check_range(std::int64_t sequence, std::int64_t page, std::int64_t entry, std::int64_t places, const char* of) {
    if (entry >= 0 && entry < places) return true;
    const bool is_null = entry == places || (of[0] != '\0' && entry == places + 1);
    add(lint_fault("range", indices_.entry_name(sequence, page),
                   fmt::format("is {}{} for {} {} of {} {}", entry, of, unit(), page, owner(), sequence),
                   fmt::format("[0, {}){}", places, indices_.form == TableForm::sparse ? ", or -1 for none" : ""),
                   is_null ? "an entry that counts from 1, or the number of a null block"
                           : "the kernel would read outside the pool",
                   entry));
    return false;
  }

  // K of a block is at an even entry of the pool, V at the next one.
  bool check_pair(std::int64_t sequence, std::int64_t page) {
    const auto at = static_cast<std::size_t>(indices_.sequences[static_cast<std::size_t>(sequence)].first + page);
    const std::int64_t k = indices_.entries[at], v = indices_.v_entries[at];
    const bool k_inside = check_range(sequence, page, k, 2 * indices_.places, " for K");
    const bool v_inside = check_range(sequence, page, v, 2 * indices_.places, " for V");
    if (!k_inside || !v_inside) return false;
    if (k % 2 == 0 && v == k + 1) return true;
    add(lint_fault("pair", indices_.entry_name(sequence, page),
                   fmt::format("is {} for K and {} for V, page {} of sequence {}", k, v, page, sequence),
                   "an even entry for K, and the next one for V",
                   k % 2 != 0 ? "a block number that was not doubled, or V's entry in K's row"
                              : "the kernel would read V of another block",
                   v));
    return false;
  }

  void check_duplicates(std::int64_t block, Uses uses) {
    for (std::size_t i = 1; i < uses.size(); ++i) {
      if (uses[i].sequence != uses[i - 1].sequence) continue;
      add(lint_fault("duplicate", indices_.entry_name(uses[i].sequence, uses[i].page),
                     fmt::format("is {}, which {} {} also has at {} {}", block, owner(), uses[i].sequence, unit(),
                                 uses[i - 1].page),
                     "", "the keys of one of the two were overwritten, or count twice", block));
    }
  }

  // The first page of a at which a and b hold different blocks with different contents, and whether contents decided.
  struct Prefix {
    std::int64_t differs_at = 0;    // the first such page; the end of the common pages if there is none
    bool same_blocks_only = false;  // a page differed by number, and there are no contents to compare
  };

  const Prefix& prefix(std::int64_t a, std::int64_t b) {
    const auto [at, is_new] = prefixes_.try_emplace({a, b});
    if (!is_new) return at->second;
    const LintSequence& x = indices_.sequences[static_cast<std::size_t>(a)];
    const LintSequence& y = indices_.sequences[static_cast<std::size_t>(b)];
    Prefix& found = at->second;
    const std::int64_t end = std::min(x.end, y.end);
    for (found.differs_at = std::max(x.begin, y.begin); found.differs_at < end; ++found.differs_at) {
      const std::int64_t mine = block_at(x, found.differs_at), other = block_at(y, found.differs_at);
      if (mine == other) continue;
      if (mine < 0 || other < 0 || mine >= indices_.places || other >= indices_.places) break;
      if (!cache_.has_contents) {
        found.same_blocks_only = true;
        break;
      }
      if (!same_contents(mine, other)) break;
    }
    return found;
  }

  bool same_contents(std::int64_t a, std::int64_t b) const {
    for (const attention::PagedRows* rows : {&cache_.k, &cache_.v}) {
      const std::int64_t size = size_of(rows->dtype);
      const auto row = [&](std::int64_t place, std::int64_t slot) {
        const std::int64_t token = indices_.by_token() ? place : place * rows->page_size + slot;
        return token / rows->page_size * rows->block_stride + token % rows->page_size * rows->token_stride;
      };
      for (std::int64_t slot = 0; slot < indices_.page_tokens; ++slot) {
        for (std::int64_t head = 0; head < rows->heads; ++head) {
          if (std::memcmp(rows->data + (row(a, slot) + head * rows->head_stride) * size,
                          rows->data + (row(b, slot) + head * rows->head_stride) * size,
                          static_cast<std::size_t>(rows->head_size * size)) != 0) {
            return false;
          }
        }
      }
    }
    return true;
  }

  void check_sharing(std::int64_t block, Uses uses) {
    const Use& first = uses.front();
    for (std::size_t i = 1; i < uses.size(); ++i) {
      const Use& use = uses[i];
      if (use.sequence == first.sequence || use.sequence == uses[i - 1].sequence) continue;
      const std::string object = indices_.entry_name(use.sequence, use.page);
      if (use.page != first.page) {
        add(lint_fault("sharing", object,
                       fmt::format("is {} at {} {}, which sequence {} has at {} {}", block, unit(), use.page,
                                   first.sequence, unit(), first.page),
                       "", "a shared block is the same page of a common prefix", block));
        continue;
      }
      const Prefix& common = prefix(first.sequence, use.sequence);
      if (common.differs_at >= use.page) continue;
      LintFinding finding = lint_fault(
          "sharing", object,
          fmt::format("is {}, which sequence {} has too, but their {}s {} are "
                      "{} and {}",
                      block, first.sequence, unit(), common.differs_at, block_at(sequence(use), common.differs_at),
                      block_at(sequence(first), common.differs_at)),
          "",
          "keys depend on all tokens before them, so a block can be shared "
          "only behind a common prefix",
          block);
      if (common.same_blocks_only) {
        finding.severity = LintSeverity::warning;
        finding.next =
            "legal only if both blocks hold the same tokens, which "
            "a file without the cache does not show";
      }
      add(std::move(finding));
    }
  }

  void check_writes(std::int64_t block, Uses uses) {
    for (const Use& writer : uses) {
      const LintSequence& w = sequence(writer);
      const std::int64_t from = std::max(w.keys - w.queries, writer.page * indices_.page_tokens);
      const std::int64_t to = std::min(w.keys, (writer.page + 1) * indices_.page_tokens);
      if (from >= to) continue;
      const auto reader = std::ranges::find_if(uses, [&](const Use& use) {
        return use.sequence != writer.sequence && use.page == writer.page && sequence(use).keys > from;
      });
      if (reader == uses.end()) continue;
      const std::int64_t slot = from - writer.page * indices_.page_tokens;
      add(lint_fault("write", indices_.entry_name(writer.sequence, writer.page),
                     fmt::format("is {}, which takes new token {} of sequence "
                                 "{} in slot {}, but sequence {} reads that "
                                 "slot too",
                                 block, from, writer.sequence, slot, reader->sequence),
                     "", "copy the block before the first write", block));
    }
  }

  void check_vector_reads() {
    if (!indices_.has_table()) {
      report_.not_checked.emplace_back("vector: the layout has no table");
      return;
    }
    const std::int64_t n = options_.vector_read;
    const bool table = indices_.has_rows();
    const auto all = static_cast<std::int64_t>(indices_.entries.size());
    if (table && indices_.table_columns % n != 0 && indices_.sequences.size() > 1) {
      add(lint_warning("vector", indices_.table_name, fmt::format("has {} columns", indices_.table_columns),
                       fmt::format("a multiple of {}", n),
                       fmt::format("rows start unaligned: pad to {} columns", round_up(indices_.table_columns, n)),
                       indices_.table_columns));
    }
    for (std::size_t b = 0; b < indices_.sequences.size(); ++b) {
      const LintSequence& sequence = indices_.sequences[b];
      if (sequence.end <= sequence.begin) continue;
      const std::int64_t reads = round_up(sequence.end, n);
      const bool past_tensor = sequence.first + reads > all;
      if (!past_tensor && (!table || reads <= sequence.columns)) continue;
      add(lint_warning("vector", indices_.entry_name(static_cast<std::int64_t>(b), sequence.end - 1),
                       fmt::format("is the last entry of {} {}: reads of {} entries go on "
                                   "to entry {}",
                                   owner(), b, n, reads - 1),
                       past_tensor ? fmt::format("{} entries are left in the tensor", all - sequence.first)
                                   : fmt::format("{} columns", sequence.columns),
                       past_tensor ? "pad the tensor: the read leaves its memory"
                                   : "pad the row: the read takes the next row's entries",
                       reads));
    }
    if (table) return;
    for (std::size_t b = 0; b < indices_.sequences.size(); ++b) {
      const LintSequence& sequence = indices_.sequences[b];
      if (sequence.end <= sequence.begin || sequence.first % n == 0) continue;
      add(lint_warning("vector", indices_.entry_name(static_cast<std::int64_t>(b), 0),
                       fmt::format("is the first entry of sequence {}, at index {}", b, sequence.first),
                       fmt::format("a multiple of {}", n), "a load of several entries must be aligned",
                       sequence.first));
      break;  // the other sequences follow from the same cause
    }
  }

  // The offsets that a kernel computes for the last element of a used block.
  void check_overflow() {
    struct Offset {
      const char* what;
      std::int64_t per_block, within, most;
      const char* next;
    };
    for (const auto& [rows, which] : {std::pair{&cache_.k, "K"}, {&cache_.v, "V"}}) {
      if (which[0] == 'V' && rows->block_stride == cache_.k.block_stride && cache_.v_start == cache_.k_start) continue;
      const std::int64_t size = size_of(rows->dtype);
      const std::int64_t start = (which[0] == 'K' ? cache_.k_start : cache_.v_start) / size;
      const std::int64_t last = start + (rows->page_size - 1) * rows->token_stride +
                                (rows->heads - 1) * rows->head_stride + rows->head_size - 1;
      const Offset offsets[] = {
          {"row", rows->page_size, rows->page_size - 1, kInt32Most,
           "a TMA coordinate has 32 bits: use a separate dimension for the "
           "block"},
          {"element offset", rows->block_stride, last, kInt32Most, "multiply block and stride in 64 bits"},
          {"byte offset", rows->block_stride * size, last * size + size - 1, kUint32Most,
           "add bytes to a 64-bit pointer"}};
      for (const Offset& offset : offsets) {
        const auto block_of = [&](std::int64_t place) {
          return indices_.by_token() ? place / cache_.page_size : place;
        };
        const auto at = std::ranges::find_if(uses_, [&](const Use& use) {
          return block_of(use.block) > (offset.most - offset.within) / offset.per_block;
        });
        if (at == uses_.end()) continue;
        const Use& use = *at;
        const std::int64_t block = block_of(use.block);
        const std::int64_t value = block * offset.per_block + offset.within;
        add(lint_warning("overflow", indices_.entry_name(use.sequence, use.page),
                         fmt::format("is block {}: its last {} in {} is {}", block, offset.what, which, value),
                         fmt::format("at most {} in 32 bits", offset.most), offset.next, value));
      }
    }
  }

  static std::optional<TmaDataType> tma_type(DType dtype) {
    switch (dtype) {
      case DType::f64:
        return TmaDataType::f64;
      case DType::f32:
        return TmaDataType::f32;
      case DType::f16:
        return TmaDataType::f16;
      case DType::bf16:
        return TmaDataType::bf16;
      default:
        return bits(dtype) == 8 ? std::optional(TmaDataType::u8) : std::nullopt;
    }
  }

  // A tensor map [block, slot, head, dim] of K, and of V where its strides or its start differ.
  void check_tma() {
    if (cache_.rearranged) {
      report_.not_checked.emplace_back("tma: the layout has no row of a token's elements");
      return;
    }
    for (const auto& [rows, which] : {std::pair{&cache_.k, "K"}, {&cache_.v, "V"}}) {
      const std::int64_t start = which[0] == 'K' ? cache_.k_start : cache_.v_start;
      const bool same = rows->block_stride == cache_.k.block_stride && rows->token_stride == cache_.k.token_stride &&
                        rows->head_stride == cache_.k.head_stride && rows->head_size == cache_.k.head_size &&
                        start % 16 == cache_.k_start % 16;
      if (which[0] == 'V' && same) continue;
      check_map(*rows, which, start);
    }
  }

  void check_map(const attention::PagedRows& rows, const char* which, std::int64_t start) {
    const std::optional<TmaDataType> type = tma_type(rows.dtype);
    if (!type) return;
    const std::int64_t size = size_of(rows.dtype);
    TensorMap map;
    map.data_type = *type;
    map.rank = 4;
    map.base = static_cast<std::uint64_t>(start);
    const std::int64_t row_box = options_.box ? (*options_.box)[0] : rows.page_size;
    const std::int64_t dim_box = options_.box ? (*options_.box)[1] : std::min(rows.head_size, 128 / size);
    const auto unsigned_of = [](std::int64_t x) { return static_cast<std::uint64_t>(x); };
    map.dims = {unsigned_of(rows.head_size), unsigned_of(rows.heads), unsigned_of(rows.page_size),
                unsigned_of(cache_.blocks), 0};
    map.strides = {unsigned_of(rows.head_stride * size), unsigned_of(rows.token_stride * size),
                   unsigned_of(rows.block_stride * size), 0};
    const auto box = [](std::int64_t x) {
      return static_cast<std::uint32_t>(std::min<std::int64_t>(x, std::numeric_limits<std::uint32_t>::max()));
    };
    map.box = {box(dim_box), 1, box(row_box), 1, 0};
    for (const BrokenMapRule& broken : check_tensor_map(map, TmaTarget::sm_90).broken) {
      add(lint_warning("tma", fmt::format("tensor map of {} [block, slot, head, dim], {}", which, broken.where),
                       broken.message, "", fmt::format("rule {} of `kvscope tma check`", name(broken.rule))));
    }
    if (row_box > rows.page_size || rows.page_size % row_box != 0) {
      add(lint_warning("tma", fmt::format("tensor map of {}, box", which),
                       fmt::format("has {} rows, but a page has {}", row_box, rows.page_size),
                       fmt::format("divisors of {}", rows.page_size),
                       "a box that crosses the end of a page copies rows of no "
                       "or of another token",
                       row_box));
    }
  }

  [[nodiscard]] const char* unit() const { return indices_.by_token() ? "token" : "page"; }
  [[nodiscard]] const char* owner() const { return indices_.form == TableForm::sparse ? "query" : "sequence"; }
  // The block of an entry, or the entry itself where it is none.
  [[nodiscard]] std::int64_t block_at(const LintSequence& sequence, std::int64_t page) const {
    const std::int64_t entry = indices_.entry(sequence, page);
    return indices_.form == TableForm::offsets && entry >= 0 ? entry / 2 : entry;
  }
  [[nodiscard]] const LintSequence& sequence(const Use& use) const {
    return indices_.sequences[static_cast<std::size_t>(use.sequence)];
  }

  const LintOptions& options_;
  const LintCache& cache_;
  const LintIndices& indices_;
  LintReport& report_;
  std::vector<Use> uses_;  // sorted
  std::map<std::pair<std::int64_t, std::int64_t>, Prefix> prefixes_;
};

void check_lint_options(const LintOptions& options) {
  std::vector<Fault> faults;
  if (options.vector_read < 1) {
    faults.push_back({"--vector-read", fmt::format("{} entries: give at least 1", options.vector_read)});
  }
  if (options.box && ((*options.box)[0] < 1 || (*options.box)[1] < 1)) {
    faults.push_back(
        {"--box", fmt::format("{} rows, {} elements: give at least 1 of each", (*options.box)[0], (*options.box)[1])});
  }
  static_cast<void>(layout_of(options.layout));  // an unknown name
  if (!faults.empty()) throw InputError("command line", std::move(faults));
}

}  // namespace

const std::vector<std::string_view>& lint_rules() {
  static const std::vector<std::string_view> rules{
      "missing",  "type",       "shape",      "indptr",    "last-page", "length",     "padding",
      "range",    "pair",       "duplicate",  "sharing",   "write",     "mask-value", "mask-past",
      "mask-row", "mask-later", "mask-sense", "mask-axes", "vector",    "overflow",   "tma"};
  return rules;
}

namespace {

std::int64_t count_of(const std::vector<LintFinding>& findings, LintSeverity severity) {
  std::int64_t count = 0;
  for (const LintFinding& finding : findings) count += finding.severity == severity ? finding.count : 0;
  return count;
}

}  // namespace

std::int64_t LintReport::faults() const {
  return count_of(findings, LintSeverity::fault);
}
std::int64_t LintReport::warnings() const {
  return count_of(findings, LintSeverity::warning);
}

LintReport lint(Bundle tensors, const LintOptions& options) {
  check_lint_options(options);
  LintReport report;
  report.layout = options.layout.layout;
  const LintCache cache = read_lint_cache(tensors, options, report.findings);
  const LintIndices indices = read_lint_indices(tensors, options, cache, report.findings);
  report.sequences = static_cast<std::int64_t>(indices.sequences.size());
  report.blocks = indices.places;
  report.page_size = indices.page_tokens;
  if (cache.blocks > 0) {
    Rules(options, cache, indices, report).check();
    if (!indices.queries_known && indices.has_table() && indices.form != TableForm::sparse) {
      report.not_checked.emplace_back("write: the file has no q or query_offsets");
    }
    if (options.vector_read == 1) report.not_checked.emplace_back("vector: pass --vector-read");
    if (!options.tma) report.not_checked.emplace_back("tma: pass --tma");
  } else {
    report.not_checked.emplace_back("entries: the sizes of the cache are not known");
  }
  check_lint_masks(LintTensors(tensors, options.layout), cache, indices, options.causal, report);
  const auto rank = [](const LintFinding& finding) { return std::ranges::find(lint_rules(), finding.rule); };
  std::ranges::stable_sort(report.findings, {}, rank);
  return report;
}

}  // namespace kvscope::golden
