// The keys, biases and recipe of a correct kernel, which hypotheses change.
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/attention/mask.h"
#include "core/golden/diagnosis/row_recipe.h"

namespace kvscope::golden {

KeyRead key_of(const attention::Problem& problem, std::int64_t sequence, std::int64_t position) {
  const attention::PagedRows& k = problem.k;
  const std::int64_t page = position / k.page_size;
  const auto scale_entry = [&](const attention::PagedRows& rows) -> std::int64_t {
    if (rows.scales_table == nullptr) return -1;
    const std::int64_t stride = rows.scales_table_stride != 0 ? rows.scales_table_stride : rows.table_stride;
    return page < stride ? std::int64_t{rows.scales_table[sequence * stride + page]} : -1;
  };
  KeyRead key;
  key.block = page < k.table_stride ? std::int64_t{k.table[sequence * k.table_stride + page]} : -1;
  key.slot = position % k.page_size;
  key.position = position;
  key.k_scale_block = scale_entry(problem.k);
  key.v_scale_block = scale_entry(problem.v);
  return key;
}

std::vector<KeyRead> keys_of(const attention::Problem& problem, std::int64_t sequence, std::int64_t first,
                             std::int64_t last) {
  std::vector<KeyRead> keys;
  for (std::int64_t t = first; t < last; ++t) keys.push_back(key_of(problem, sequence, t));
  return keys;
}

void add_biases(const attention::Problem& problem, std::int64_t sequence, std::int64_t query_in_sequence,
                std::int64_t head, std::vector<KeyRead>& keys) {
  if (problem.options.bias.empty()) return;
  for (KeyRead& key : keys) {
    if (key.position >= problem.keys(sequence)) continue;  // of a faulty kernel: past the tensor's columns
    key.bias = problem.options.bias.at(sequence, head, query_in_sequence, key.position);
  }
  std::erase_if(keys, [](const KeyRead& key) { return std::isinf(key.bias); });
}

Recipe correct_recipe(const attention::Problem& problem, std::int64_t sequence, std::int64_t query, std::int64_t head) {
  const attention::Options& options = problem.options;
  const std::int64_t queries = problem.first_query(sequence + 1) - problem.first_query(sequence);
  const std::int64_t own = query - problem.first_query(sequence);
  const attention::KeyRange visible = attention::visible_keys(options, own, queries, problem.keys(sequence));
  Recipe recipe;
  recipe.k = problem.k;
  recipe.v = problem.v;
  recipe.k_head = recipe.v_head = head / (problem.query_heads / problem.k.heads);
  recipe.query_row = query;
  recipe.query_head = head;
  recipe.keys = keys_of(problem, sequence, visible.first, visible.last);
  add_biases(problem, sequence, own, head, recipe.keys);
  recipe.scale = options.scale;
  recipe.soft_cap = options.soft_cap;
  recipe.query_position = attention::query_position(options, own, queries, problem.keys(sequence));
  if (!options.alibi_slopes.empty()) recipe.slope = options.alibi_slopes[static_cast<std::size_t>(head)];
  recipe.slope_origin = static_cast<double>(recipe.query_position);
  if (!options.sinks.empty()) recipe.sink = options.sinks[static_cast<std::size_t>(head)];
  recipe.lse_base = options.lse_base;
  recipe.empty_row = options.empty_row;
  return recipe;
}

}  // namespace kvscope::golden
