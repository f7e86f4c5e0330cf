#include "core/attention/problem_checks.h"

#include <fmt/format.h>

#include <cmath>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "core/base/checked.h"
#include "core/base/errors.h"

namespace kvscope::attention {
namespace {

class FaultList {
 public:
  void add(std::string where, std::string message) { faults_.push_back({std::move(where), std::move(message)}); }
  void at_least(std::string where, std::int64_t value, std::int64_t low, const char* unit, const char* rule) {
    if (value < low) add(std::move(where), fmt::format("{} {}, {}", value, unit, rule));
  }
  [[nodiscard]] bool empty() const { return faults_.empty(); }
  void throw_if_any() const {
    if (!faults_.empty()) throw GeometryError("attention problem", faults_);
  }

 private:
  std::vector<Fault> faults_;
};

std::string entries(std::size_t count) {
  return count == 1 ? "1 entry" : fmt::format("{} entries", count);
}

void check_batch(const Problem& p, FaultList& faults) {
  if (p.batch < 0) {
    faults.add("batch", fmt::format("{} sequences, at least 0", p.batch));
    return;
  }
  const auto batch = static_cast<std::size_t>(p.batch);
  if (p.query_offsets.size() != batch + 1) {
    faults.add("query_offsets",
               fmt::format("{}, batch {} needs {}", entries(p.query_offsets.size()), batch, batch + 1));
  } else {
    if (p.query_offsets[0] != 0) {
      faults.add("query_offsets[0]", fmt::format("{}, the first sequence starts at row 0", p.query_offsets[0]));
    }
    for (std::size_t b = 0; b < batch; ++b) {
      if (p.query_offsets[b + 1] < p.query_offsets[b]) {
        faults.add(fmt::format("query_offsets[{}]", b + 1),
                   fmt::format("{} after {}, offsets never fall", p.query_offsets[b + 1], p.query_offsets[b]));
      }
    }
  }
  if (p.key_lengths.size() != batch) {
    faults.add("key_lengths", fmt::format("{}, batch {} needs {}", entries(p.key_lengths.size()), batch, batch));
  }
  for (std::size_t b = 0; b < p.key_lengths.size(); ++b) {
    faults.at_least(fmt::format("key_lengths[{}]", b), p.key_lengths[b], 0, "tokens", "a length is at least 0");
  }
}

void check_options(const Problem& p, FaultList& faults) {
  const Options& o = p.options;
  if (!std::isfinite(o.scale)) faults.add("options.scale", fmt::format("{}, a finite number is needed", o.scale));
  if (o.soft_cap && !(std::isfinite(*o.soft_cap) && *o.soft_cap > 0)) {
    faults.add("options.soft_cap",
               fmt::format("{}, a finite number above 0 is needed; leave it out for none", *o.soft_cap));
  }
  if (o.mask == MaskKind::sliding_window) {
    faults.at_least("options.window_left", o.window_left, -1, "keys", "at least 0, or -1 for no limit");
    faults.at_least("options.window_right", o.window_right, -1, "keys", "at least 0, or -1 for no limit");
  }
  if (o.mask == MaskKind::chunked) {
    faults.at_least("options.chunk", o.chunk, 1, "positions", "a chunk holds at least 1");
  }
  const auto per_head = [&](const char* where, std::span<const double> values) {
    if (!values.empty() && std::cmp_not_equal(values.size(), p.query_heads)) {
      faults.add(where, fmt::format("{}, {} query heads need as many, or none", entries(values.size()), p.query_heads));
    }
    for (std::size_t h = 0; h < values.size(); ++h) {
      if (!std::isfinite(values[h])) {
        faults.add(fmt::format("{}[{}]", where, h), fmt::format("{}, a finite number is needed", values[h]));
      }
    }
  };
  per_head("options.alibi_slopes", o.alibi_slopes);
  per_head("options.sinks", o.sinks);
}

void check_dtype(const std::string& where, DType dtype, FaultList& faults) {
  if (dtype == DType::e2m1) {
    faults.add(where, "e2m1 packs two elements in a byte, which a row of elements has no address for; unpack it first");
  }
}

struct Axis {
  std::int64_t extent;
  std::int64_t stride;
};

// The furthest element that the strides can reach must have an offset in bytes that fits 64 bits.
void check_reach(const std::string& where, std::initializer_list<Axis> axes, std::int64_t inner, FaultList& faults) {
  try {
    std::int64_t reach = inner;
    for (const Axis& axis : axes) {
      if (axis.extent > 0) reach = checked_add(reach, checked_mul(axis.extent - 1, axis.stride));
    }
    static_cast<void>(checked_mul(reach, 8));
  } catch (const OverflowError& error) {
    faults.add(where, fmt::format("the last element lies past 2^63 bytes: {}", error.what()));
  }
}

void check_scales(const std::string& who, const PagedRows& r, FaultList& faults) {
  if (r.scales == nullptr) return;
  check_dtype(who + ".scale_dtype", r.scale_dtype, faults);
  faults.at_least(who + ".granularity", r.granularity, 1, "elements", "a scale covers at least 1");
  faults.at_least(who + ".scale_blocks", r.scale_blocks, 0, "blocks", "at least 0");
  faults.at_least(who + ".scales_table_stride", r.scales_table_stride, 0, "entries", "a stride is at least 0");
  faults.at_least(who + ".scale_block_stride", r.scale_block_stride, 0, "scales", "a stride is at least 0");
  faults.at_least(who + ".scale_token_stride", r.scale_token_stride, 0, "scales", "a stride is at least 0");
  faults.at_least(who + ".scale_head_stride", r.scale_head_stride, 0, "scales", "a stride is at least 0");
}

void check_rows(const std::string& who, const PagedRows& r, bool any_keys, FaultList& faults) {
  check_dtype(who + ".dtype", r.dtype, faults);
  faults.at_least(who + ".blocks", r.blocks, 0, "blocks", "at least 0");
  faults.at_least(who + ".page_size", r.page_size, 1, "tokens", "a page holds at least 1");
  faults.at_least(who + ".heads", r.heads, 1, "heads", "at least 1");
  faults.at_least(who + ".head_size", r.head_size, 1, "elements", "at least 1");
  faults.at_least(who + ".block_stride", r.block_stride, 0, "elements", "a stride is at least 0");
  faults.at_least(who + ".token_stride", r.token_stride, 0, "elements", "a stride is at least 0");
  faults.at_least(who + ".head_stride", r.head_stride, 0, "elements", "a stride is at least 0");
  faults.at_least(who + ".table_stride", r.table_stride, 0, "entries", "a stride is at least 0");
  check_scales(who, r, faults);
  if (any_keys && r.data == nullptr) faults.add(who + ".data", "no memory, yet a sequence has keys");
  if (any_keys && r.table == nullptr) faults.add(who + ".table", "no lookup table, yet a sequence has keys");
  if (!faults.empty()) return;
  check_reach(who, {{r.blocks, r.block_stride}, {r.page_size, r.token_stride}, {r.heads, r.head_stride}}, r.head_size,
              faults);
  if (r.scales == nullptr) return;
  const std::int64_t blocks = r.scale_blocks == 0 ? r.blocks : r.scale_blocks;
  check_reach(who + ".scales",
              {{blocks, r.scale_block_stride}, {r.page_size, r.scale_token_stride}, {r.heads, r.scale_head_stride}},
              ceil_div(r.head_size, r.granularity), faults);
}

std::int64_t scales_stride(const PagedRows& r) {
  return r.scales_table_stride != 0 ? r.scales_table_stride : r.table_stride;
}

// Every page that the sequence needs must have a column in the table; past it begins the next sequence's row.
void check_columns(const std::string& who, const PagedRows& r, const Problem& p, FaultList& faults) {
  for (std::int64_t b = 0; b < p.batch; ++b) {
    const KeyRange keys = needed_keys(p, b);
    const std::int64_t pages = ceil_div(keys.last, r.page_size);
    if (r.scales_table != nullptr && pages > scales_stride(r)) {
      faults.add(who + ".scales_table_stride", fmt::format("{} entries, sequence {} of {} tokens needs {} pages of {}",
                                                           scales_stride(r), b, keys.last, pages, r.page_size));
    }
    if (pages > r.table_stride) {
      faults.add(fmt::format("{}.table_stride", who),
                 fmt::format("{} entries, sequence {} of {} tokens needs {} pages of {}", r.table_stride, b, keys.last,
                             pages, r.page_size));
    }
  }
}

void check_heads(const Problem& p, FaultList& faults) {
  faults.at_least("query_heads", p.query_heads, 1, "heads", "at least 1");
  if (p.k.heads != p.v.heads) {
    faults.add("v.heads", fmt::format("{} heads, K has {}: every query head needs both", p.v.heads, p.k.heads));
  }
  if (p.query_heads >= 1 && p.k.heads >= 1 && p.query_heads % p.k.heads != 0) {
    faults.add("query_heads",
               fmt::format("{} is not a multiple of the {} KV heads, so a group has no whole number of them",
                           p.query_heads, p.k.heads));
  }
}

void check_entries(const std::string& who, const std::uint32_t* table, std::int64_t stride, std::int64_t blocks,
                   const PagedRows& r, const Problem& p) {
  for (std::int64_t b = 0; b < p.batch; ++b) {
    const KeyRange keys = needed_keys(p, b);
    for (std::int64_t page = keys.first / r.page_size; page < ceil_div(keys.last, r.page_size); ++page) {
      const std::int64_t entry = table[b * stride + page];
      if (entry >= blocks) {
        throw IndexError(
            fmt::format("{}: sequence {}, page {} (tokens {} to {}): entry {} is outside [0, {}): assign the "
                        "page a block before its tokens are attended to",
                        who, b, page, page * r.page_size, (page + 1) * r.page_size - 1, entry, blocks));
      }
    }
  }
}

void check_tables(const std::string& who, const PagedRows& r, const Problem& p) {
  check_entries(who + ".table", r.table, r.table_stride, r.blocks, r, p);
  if (r.scales == nullptr) return;
  const std::int64_t scale_blocks = r.scale_blocks == 0 ? r.blocks : r.scale_blocks;
  if (r.scales_table == nullptr) {
    check_entries(who + ".table, read for scales", r.table, r.table_stride, scale_blocks, r, p);
  } else {
    check_entries(who + ".scales_table", r.scales_table, scales_stride(r), scale_blocks, r, p);
  }
}

}  // namespace

std::int64_t query_count(const Problem& problem, std::int64_t sequence) {
  return problem.first_query(sequence + 1) - problem.first_query(sequence);
}

KeyRange needed_keys(const Problem& problem, std::int64_t sequence) {
  const std::int64_t queries = query_count(problem, sequence);
  return visible_keys_of(problem.options, 0, queries, queries, problem.keys(sequence));
}

void check_problem(const Problem& problem) {
  FaultList faults;
  check_batch(problem, faults);
  check_heads(problem, faults);
  check_options(problem, faults);
  check_dtype("q_dtype", problem.q_dtype, faults);
  bool any_keys = false;
  if (faults.empty()) {
    for (std::int64_t b = 0; b < problem.batch; ++b) any_keys = any_keys || !needed_keys(problem, b).empty();
    if (problem.total_queries() > 0 && problem.q == nullptr) faults.add("q", "no memory, yet there are queries");
  }
  check_rows("k", problem.k, any_keys, faults);
  check_rows("v", problem.v, any_keys, faults);
  faults.throw_if_any();
  check_columns("k", problem.k, problem, faults);
  check_columns("v", problem.v, problem, faults);
  faults.throw_if_any();
  check_tables("k", problem.k, problem);
  check_tables("v", problem.v, problem);
}

}  // namespace kvscope::attention
