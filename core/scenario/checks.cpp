#include "core/scenario/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <string>

#include "core/base/checked.h"
#include "core/scenario/detail/fault_list.h"
#include "core/scenario/detail/field_faults.h"
#include "core/scenario/detail/fields.h"
#include "core/scenario/notes.h"
#include "core/scenario/requests.h"

namespace kvscope {
namespace {

using fields::About;
using fields::IntegerRange;
using fields::RealRange;

// --- ranges: the fourth visitor of fields.h --------------------------------------------------------------------------

class RangeChecker {
 public:
  RangeChecker(std::string path, FaultList& faults) : path_(std::move(path)), faults_(&faults) {}

  void integer(std::string_view key, const std::int64_t& value, IntegerRange range, const About& about) {
    report(key, fields::range_fault(value, range, about));
  }
  void unsigned_integer(std::string_view key, const std::uint64_t& value, std::uint64_t high, const About& about) {
    report(key, fields::range_fault(value, high, about));
  }
  void real(std::string_view key, const double& value, RealRange range, const About& about) {
    report(key, fields::range_fault(value, range, about));
  }
  void optional_real(std::string_view key, const std::optional<double>& value, RealRange range, const About& about) {
    if (value) report(key, fields::range_fault(*value, range, about));
  }
  void flag(std::string_view, const bool&, const About&) {}
  void text(std::string_view key, const std::string& value, const About& about) {
    report(key, fields::text_fault(value, about));
  }
  template <class E, std::size_t N>
  void word(std::string_view key, const E& value, const std::array<fields::Word<E>, N>& words, const About&) {
    if (std::ranges::none_of(words, [&](const auto& w) { return w.value == value; })) {
      report(key, fmt::format("the value {} has no name in a scenario: choose one that has", static_cast<int>(value)));
    }
  }
  template <class T>
  void object(std::string_view key, const T& value, const About&) {
    RangeChecker inner(fields::join_path(path_, key), *faults_);
    fields::describe(fields::Tag<T>{}, inner, value);
  }
  template <class T>
  void optional_object(std::string_view key, const std::optional<T>& value, const About& about) {
    if (value) object(key, *value, about);
  }
  template <class T>
  void list(std::string_view key, const std::vector<T>& values, IntegerRange range, const About& about) {
    report(key, fields::count_fault(values.size(), range, about));
    const std::string path = fields::join_path(path_, key);
    for (std::size_t i = 0; i < values.size(); ++i) {
      RangeChecker inner(fields::join_path(path, i), *faults_);
      fields::describe(fields::Tag<T>{}, inner, values[i]);
    }
  }
  void model(std::string_view key, const ModelGeometry& value, const About& about) { object(key, value, about); }

 private:
  void report(std::string_view key, std::optional<std::string> fault) {
    if (fault) faults_->add(fields::join_path(path_, key), std::move(*fault));
  }

  std::string path_;
  FaultList* faults_;
};

// --- rules between numbers -------------------------------------------------------------------------------------------

// One path equals the other or contains it: "$.model" and "$.model.layers", but not "$.tile.B" and "$.tile.BN".
bool same_place(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  return b.starts_with(a) && (a.size() == b.size() || b[a.size()] == '.' || b[a.size()] == '[');
}

class Rules {
 public:
  Rules(const Scenario& scenario, const std::vector<Fault>& already) : s_(scenario), already_(already) {}

  std::vector<Fault> run() {
    notes();
    model();
    cache();
    rows();
    requests();
    attention();
    tile();
    lds();
    focus();
    return faults_.take();
  }

 private:
  // False when one of the places already has a fault. A fault of the rule is reported at the first place.
  [[nodiscard]] bool readable(std::initializer_list<std::string_view> places) const {
    return std::ranges::none_of(places, [&](std::string_view place) {
      return std::ranges::any_of(already_, [&](const Fault& f) { return same_place(f.where, place); });
    });
  }
  void fault(std::string_view where, std::string message) { faults_.add(std::string(where), std::move(message)); }

  void notes();
  void model();
  void cache();
  void rows();
  void requests();
  void generator(const RequestGenerator& g);
  void attention();
  void tile();
  void lds();
  void focus();

  const Scenario& s_;
  const std::vector<Fault>& already_;
  FaultList faults_{kScenarioFaults};
};

void Rules::notes() {
  std::vector<std::string> faults;
  static_cast<void>(parse_notes(s_.description, faults));
  for (std::string& message : faults) fault("$.description", std::move(message));
}

void Rules::model() {
  const ModelGeometry& m = s_.model;
  if (readable({"$.model.query_heads", "$.model.kv_heads"}) && m.query_heads % m.kv_heads != 0) {
    fault("$.model.query_heads", fmt::format("{} query heads cannot share {} kv heads evenly: choose a multiple of {}",
                                             m.query_heads, m.kv_heads, m.kv_heads));
  }
  if (!readable({"$.model.is_mla"})) return;
  if (readable({"$.model.kv_heads"}) && m.is_mla && m.kv_heads != 1) {
    fault("$.model.kv_heads",
          fmt::format("{} is not 1: all query heads of an MLA model share one latent row; choose 1, "
                      "or \"is_mla\": false",
                      m.kv_heads));
  }
  if (!readable({"$.model.value_size", "$.model.head_size"})) return;
  if (m.value_size > m.head_size) {
    fault("$.model.value_size",
          fmt::format("{} is more than the head size {}: choose at most {}", m.value_size, m.head_size, m.head_size));
  } else if (!m.is_mla && m.value_size != m.head_size) {
    fault("$.model.value_size",
          fmt::format("{} is not the head size {}: only an MLA model takes V from a part of the row; choose {}",
                      m.value_size, m.head_size, m.head_size));
  }
}

void Rules::cache() {
  const CacheConfig& c = s_.cache;
  if (c.quantization && readable({"$.cache.quantization", "$.cache.dtype"})) {
    if (c.dtype != DType::e4m3 && c.dtype != DType::e5m2) {
      fault("$.cache.quantization", fmt::format("a {} cache takes no scales: choose dtype e4m3 or e5m2, or leave "
                                                "quantization out",
                                                name(c.dtype)));
    }
    if (readable({"$.model.head_size"}) && c.quantization->granularity > s_.model.head_size) {
      fault("$.cache.quantization.granularity",
            fmt::format("{} is outside [1, {}], the elements of a head: choose {} for one scale a head",
                        c.quantization->granularity, s_.model.head_size, s_.model.head_size));
    }
  }
  if (!readable({"$.cache.kind"}) || c.kind != CacheKind::continuous) return;
  if (readable({"$.cache.max_tokens"}) && c.max_tokens == 0) {
    fault("$.cache.max_tokens",
          "0 is outside [1, 2147483647]: a continuous cache reserves that many tokens for every "
          "sequence, so choose the longest length expected");
  }
  if (readable({"$.cache.prefix_sharing"}) && c.prefix_sharing) {
    fault("$.cache.prefix_sharing", "true needs pages to share: choose kind paged, or false");
  }
  if (readable({"$.cache.quantization"}) && c.quantization) {
    fault("$.cache.quantization", "a continuous cache has no scales: choose kind paged, or leave quantization out");
  }
  if (readable({"$.cache.kind", "$.model.is_mla"}) && s_.model.is_mla) {
    fault("$.cache.kind", "a continuous cache has slots for K and V, an MLA model has one: choose paged");
  }
}

// A row number is unsigned and 32 bits wide in every kernel, so the pool must not have more rows.
void Rules::rows() {
  constexpr std::int64_t kRows = std::int64_t{1} << 32;
  const CacheConfig& c = s_.cache;
  const bool paged = c.kind == CacheKind::paged;
  if (!readable({"$.cache.blocks", "$.cache.kind", "$.cache.page_size", "$.cache.max_tokens", "$.model.layers",
                 "$.model.is_mla"})) {
    return;
  }
  const std::int64_t slots = s_.model.is_mla ? 1 : 2;
  const std::int64_t tokens = paged ? c.page_size : std::max<std::int64_t>(c.max_tokens, 1);
  const std::int64_t rows_per_block = slots * s_.model.layers * tokens;  // at most 2 * 2^10 * 2^31
  const std::int64_t most = kRows / rows_per_block - (paged ? 1 : 0);    // the null page takes one
  if (c.blocks <= most) return;
  fault(
      "$.cache.blocks",
      fmt::format("{} blocks of {} rows ({} slots x {} layers x {} tokens) are more rows than a 32-bit row number can "
                  "name: {}",
                  c.blocks, rows_per_block, slots, s_.model.layers, tokens,
                  most >= 1 ? fmt::format("choose at most {}", most) : std::string("choose smaller blocks")));
}

void Rules::requests() {
  const RequestSource& r = s_.requests;
  if (readable({"$.requests"}) && r.list.empty() && !r.generator && !r.file) {
    fault("$.requests", "no source of requests: give a list, a generator or a file");
  }
  for (std::size_t i = 0; i < r.list.size(); ++i) {
    const Request& q = r.list[i];
    const std::string path = fields::join_path("$.requests.list", i);
    if (!readable({path})) continue;
    if (q.prompt_tokens + q.generate_tokens > fields::kMaxTokens) {
      fault(path,
            fmt::format("{} prompt and {} generated tokens are together outside [1, {}]: choose a shorter request",
                        q.prompt_tokens, q.generate_tokens, fields::kMaxTokens));
    }
    if (q.samples > 1 && s_.cache.kind == CacheKind::continuous && readable({"$.cache.kind"})) {
      fault(path + ".samples",
            fmt::format("{} samples need pages to share: choose kind paged, or 1 sample", q.samples));
    }
    std::int64_t spans = 0;  // at most 2^16 spans of 2^31 tokens
    for (const ContentSpan& span : q.content) spans += span.length;
    if (!q.content.empty() && spans != q.prompt_tokens) {
      fault(path + ".content", fmt::format("the spans are {} tokens long together, the prompt {}: make them equal",
                                           spans, q.prompt_tokens));
    }
  }
  if (r.generator) generator(*r.generator);
  if (r.file && readable({"$.requests.file.path"}) && !trace_format(r.file->path)) {
    fault("$.requests.file.path",
          fmt::format("\"{}\" ends in neither .csv nor .jsonl, the endings of the two formats: rename the file",
                      r.file->path));
  }
}

void Rules::generator(const RequestGenerator& g) {
  const auto range = [&](std::string_view what, std::int64_t low, std::int64_t high, double mean) {
    const std::string min = fmt::format("$.requests.generator.{}_min", what);
    const std::string max = fmt::format("$.requests.generator.{}_max", what);
    const std::string mean_path = fmt::format("$.requests.generator.{}_mean", what);
    if (!readable({min, max})) return;
    if (low > high) {
      fault(min, fmt::format("{} is more than {}_max, {}: choose at most {}", low, what, high, high));
    } else if (readable({mean_path}) && mean != 0 &&
               (mean < static_cast<double>(low) || mean > static_cast<double>(high))) {
      fault(mean_path,
            fmt::format("{} is outside [{}, {}], the shortest and the longest: choose a mean between, or 0 for "
                        "uniform lengths",
                        mean, low, high));
    }
  };
  range("prompt", g.prompt_min, g.prompt_max, g.prompt_mean);
  range("generate", g.generate_min, g.generate_max, g.generate_mean);
  if (readable({"$.requests.generator.prompt_max", "$.requests.generator.generate_max"}) &&
      g.prompt_max + g.generate_max > fields::kMaxTokens) {
    fault("$.requests.generator.prompt_max",
          fmt::format("{} prompt and {} generated tokens are together outside [1, {}]: choose shorter requests",
                      g.prompt_max, g.generate_max, fields::kMaxTokens));
  }
  if (readable({"$.requests.generator.prefix_tokens", "$.requests.generator.prefix_groups"})) {
    if (g.prefix_groups > 0 && g.prefix_tokens == 0) {
      fault("$.requests.generator.prefix_tokens",
            fmt::format("0 tokens leave {} prefix groups nothing to share: choose a length", g.prefix_groups));
    }
    if (g.prefix_groups == 0 && g.prefix_tokens > 0) {
      fault("$.requests.generator.prefix_groups",
            fmt::format("0 groups cannot share {} prefix tokens: choose at least 1", g.prefix_tokens));
    }
  }
}

void Rules::attention() {
  const AttentionConfig& a = s_.attention;
  if (readable({"$.attention.window", "$.attention.mask"})) {
    if (a.mask == MaskKind::sliding_window && a.window == 0) {
      fault("$.attention.window",
            "0 keys leave a sliding window empty: choose how many keys a query sees, its own included, such as 4096");
    } else if (a.mask == MaskKind::chunked && a.window == 0) {
      fault("$.attention.window", "0 is not a chunk length: choose a number of tokens such as 8192");
    } else if (a.mask != MaskKind::sliding_window && a.mask != MaskKind::chunked && a.window != 0) {
      fault("$.attention.window",
            fmt::format("{} has no meaning with mask {}: choose mask sliding_window or chunked, or "
                        "leave the window out",
                        a.window, a.mask == MaskKind::none ? "none" : "causal"));
    }
  }
  if (readable({"$.attention.scale", "$.model.is_mla"}) && s_.model.is_mla && !a.scale) {
    fault("$.attention.scale",
          "missing: an MLA model has no default, because a row's width is not the query's before absorption; for "
          "DeepSeek-V3 write 0.07216878364870322 (1/sqrt(192)), or 0.1352337788608801 with its rope scaling");
  }
}

// The tiles that a kernel can look up (populate): whole pages, or a part of one page.
void Rules::tile() {
  const TileGeometry& t = s_.tile;
  const std::int64_t page = s_.cache.page_size;
  if (!readable({"$.tile.BN"})) return;
  const std::int64_t align = t.base_alignment == 0 ? t.BN : t.base_alignment;
  const bool align_readable = readable({"$.tile.base_alignment"});
  if (align_readable && t.BN % align != 0) {
    fault("$.tile.base_alignment",
          fmt::format("tiles start every {} tokens, so not every start is a multiple of {}: choose a divisor "
                      "of {}, or 0",
                      t.BN, align, t.BN));
    return;
  }
  if (s_.cache.kind != CacheKind::paged || !readable({"$.cache.page_size", "$.cache.kind"})) return;
  if (page < t.BN && t.BN % page != 0) {
    const std::int64_t below = t.BN / page * page;
    fault("$.tile.BN", fmt::format("{} tokens are not a whole number of {}-token pages: choose {} or {}", t.BN, page,
                                   below, below + page));
  } else if (page >= t.BN && page % t.BN != 0) {
    fault("$.tile.BN",
          fmt::format("{}-token tiles do not divide a {}-token page, so some would run over its end: choose "
                      "a divisor of {} such as {}, or a multiple",
                      t.BN, page, page, default_tile_rows(page)));
  } else if (align_readable && page < t.BN && align % page != 0) {
    fault("$.tile.base_alignment",
          fmt::format(
              "{} is not a multiple of the page size {}, and a tile of several pages must start at a page: choose "
              "a multiple of {}, or 0",
              align, page, page));
  } else if (align_readable && page >= t.BN && align != t.BN) {
    fault(
        "$.tile.base_alignment",
        fmt::format("a {}-token tile that starts at a multiple of {} can run over the end of a {}-token page: choose 0",
                    t.BN, align, page));
  }
}

// The rules for each KVBuffer over the scenario's cache. Rules that depend on the instruction are reported by
// KVBufferConfig when a tile is staged, because a scenario whose tiles are never staged may break them.
void Rules::lds() {
  const LdsGeometry& l = s_.lds;
  if (!readable({"$.model.head_size"})) return;
  const std::int64_t head = s_.model.head_size;
  if (readable({"$.lds.cache_depth"}) && l.cache_depth != 0 && l.cache_depth != head) {
    fault("$.lds.cache_depth", fmt::format("{} is not the head size {}: rows of the scenario's cache are that wide; "
                                           "choose {}, or 0",
                                           l.cache_depth, head, head));
  }
  if (!readable({"$.lds.head_dim_offset"})) return;
  if (l.head_dim_offset >= head) {
    fault("$.lds.head_dim_offset",
          fmt::format("{} is outside [0, {}), the elements of a head: choose a column of it", l.head_dim_offset, head));
    return;
  }
  const std::int64_t staged = head - l.head_dim_offset;
  if (readable({"$.lds.smem_depth", "$.lds.full_kv"}) && l.full_kv && l.smem_depth != 0 && l.smem_depth < staged) {
    fault("$.lds.smem_depth", fmt::format("{} columns of a stage do not hold the {} that are staged: choose at least "
                                          "{}, 0, or \"full_kv\": false",
                                          l.smem_depth, staged, staged));
  }
  if (readable({"$.lds.reg_chunk_depth"}) && l.reg_chunk_depth > staged) {
    fault("$.lds.reg_chunk_depth", fmt::format("{} columns in registers are more than the {} that are staged: choose "
                                               "at most {}, or 0",
                                               l.reg_chunk_depth, staged, staged));
  }
}

void Rules::focus() {
  if (readable({"$.focus.layer", "$.model.layers"}) && s_.focus.layer >= s_.model.layers) {
    fault("$.focus.layer", fmt::format("{} is outside [0, {}): the model has {} layers, numbered from 0",
                                       s_.focus.layer, s_.model.layers, s_.model.layers));
  }
  if (readable({"$.focus.head", "$.model.kv_heads"}) && s_.focus.head >= s_.model.kv_heads) {
    fault("$.focus.head", fmt::format("{} is outside [0, {}): the model has {} KV heads, numbered from 0",
                                      s_.focus.head, s_.model.kv_heads, s_.model.kv_heads));
  }
}

}  // namespace

std::vector<Fault> check_scenario(const Scenario& scenario) {
  FaultList ranges(kScenarioFaults);
  RangeChecker checker("$", ranges);
  fields::describe(fields::Tag<Scenario>{}, checker, scenario);
  // The rules rely on every number that has no reported fault: they would divide by a page size of 0.
  std::vector<Fault> rules = ranges.complete() ? check_rules(scenario, ranges.kept()) : std::vector<Fault>{};
  std::vector<Fault> faults = ranges.take();
  faults.insert(faults.end(), rules.begin(), rules.end());
  return faults;
}

std::vector<Fault> check_rules(const Scenario& scenario, const std::vector<Fault>& already) {
  return Rules(scenario, already).run();
}

std::int64_t default_tile_rows(std::int64_t page_size) {
  constexpr std::int64_t kRows = 64;
  constexpr std::int64_t kPages = 16;  // more could run over the lookup table's padding
  if (page_size < kRows) return std::min(kRows, page_size * kPages) / page_size * page_size;
  for (std::int64_t rows = kRows; rows > 1; --rows) {
    if (page_size % rows == 0) return rows;
  }
  return 1;
}

}  // namespace kvscope
