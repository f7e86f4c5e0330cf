// Hypotheses about tensors that state the keys of each query: masks, and the slots of sparse attention.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/golden/diagnosis/detail/trials.h"

namespace kvscope::golden {
namespace {

using Form = QueryMasks::Form;

std::int64_t item(const std::vector<std::int64_t>& of, std::int64_t i) {
  return of[static_cast<std::size_t>(i)];
}

std::vector<KeyRead> keys_in_slots(const std::vector<std::int64_t>& slots) {
  std::vector<KeyRead> keys;
  for (const std::int64_t slot : slots) {
    KeyRead key;
    key.block = slot;  // blocks of one token
    key.position = static_cast<std::int64_t>(keys.size());
    keys.push_back(key);
  }
  return keys;
}

// --- masks -----------------------------------------------------------------------------------------------------------

// One query of a sequence as it was given, and the tensor's values. A value past the tensor is 0.
struct MaskRead {
  const QueryMasks& masks;
  QueryMasks::Sequence sequence;
  std::int64_t query = 0;  // in its sequence

  [[nodiscard]] bool value(std::int64_t i) const {
    return i >= 0 && i < static_cast<std::int64_t>(masks.values.size()) &&
           masks.values[static_cast<std::size_t>(i)] != 0;
  }
  // Bit `i` from the byte `first`; `highest`: the highest bit of a byte first.
  [[nodiscard]] bool bit(std::int64_t first, std::int64_t i, bool highest = false) const {
    const std::int64_t byte = first + (i >> 3);  // a faulty kernel's `i` may be negative
    if (byte < 0 || byte >= static_cast<std::int64_t>(masks.values.size())) return false;
    const std::int64_t at = highest ? 7 - (i & 7) : i & 7;
    return (masks.values[static_cast<std::size_t>(byte)] >> at & 1) != 0;
  }
  [[nodiscard]] bool is_tree() const { return masks.form == Form::tree || masks.form == Form::packed_tree; }
  // Element or bit `i` from the sequence's first on.
  [[nodiscard]] bool element(std::int64_t i) const {
    const bool bits = masks.form == Form::packed || masks.form == Form::packed_tree;
    return bits ? bit(sequence.first_value, i) : value(sequence.first_value + i);
  }
  // Columns of the sequence's mask [queries, keys], or of its tree [S, S].
  [[nodiscard]] std::int64_t width() const { return is_tree() ? sequence.queries : sequence.keys; }
  [[nodiscard]] std::int64_t row_stride() const { return masks.form == Form::packed_tree ? masks.row_bits : width(); }
  // The first key that the tensor is about: all keys before are seen.
  [[nodiscard]] std::int64_t first_key() const { return sequence.keys - width(); }
  [[nodiscard]] std::int64_t column(std::int64_t key) const { return key - first_key(); }
  [[nodiscard]] bool sees(std::int64_t own, std::int64_t key) const {
    return key < first_key() || element(own * row_stride() + column(key));
  }
};

using Sees = std::function<bool(const MaskRead&, std::int64_t key)>;

// The query of a row of q. Each query of the problem is a sequence, in the order of q.
MaskRead mask_of(const QueryMasks& masks, std::int64_t query) {
  const auto at = std::find_if(masks.sequences.begin(), masks.sequences.end(),
                               [&](const QueryMasks::Sequence& s) { return query < s.first_query + s.queries; });
  return {masks, *at, query - at->first_query};
}

void add_mask(Trials& trials, std::string name, std::string cause, Sees sees) {
  const QueryMasks& masks = *trials.input.masks;
  trials.add(std::move(name), std::move(cause), fmt::format("the index into {}", masks.name),
             [&masks, sees = std::move(sees)](Recipe& r, const RowEvaluator& row) {
               const MaskRead mask = mask_of(masks, row.query());
               std::vector<std::int64_t> slots;
               for (std::int64_t key = 0; key < mask.sequence.keys; ++key) {
                 if (sees(mask, key)) slots.push_back(item(masks.key_slots, mask.sequence.first_slot + key));
               }
               r.keys = keys_in_slots(slots);
             });
}

// Key `key` up to the query's own token.
bool causal(const MaskRead& m, std::int64_t key) {
  return key <= m.sequence.keys - m.sequence.queries + m.query;
}

// Rows of integers of word_bits bits, each for one node of a tree.
void add_rows_of_bits(Trials& trials) {
  const QueryMasks& masks = *trials.input.masks;
  const std::string& name = masks.name;
  const std::int64_t row = masks.row_bits, word = masks.word_bits;
  // `at`: the bit of a row, from the row's start on, that is read for node `node`.
  const auto add_order = [&](std::string cause, std::function<std::int64_t(const MaskRead&, std::int64_t node)> at) {
    add_mask(trials, "mask_bit_order", std::move(cause),
             [at = std::move(at), row](const MaskRead& m, std::int64_t key) {
               return key < m.first_key() || m.element(m.query * row + at(m, m.column(key)));
             });
  };
  // `at`: the bit, from the sequence's first on, that is read for node `node` of the query's row.
  const auto add_rows = [&](std::string hypothesis, std::string cause,
                            std::function<std::int64_t(const MaskRead&, std::int64_t node)> at) {
    add_mask(trials, std::move(hypothesis), std::move(cause),
             [at = std::move(at)](const MaskRead& m, std::int64_t key) {
               return key < m.first_key() || m.element(at(m, m.column(key)));
             });
  };
  add_order(fmt::format("the first node of a row of {} is taken to be the highest bit of its tree's nodes", name),
            [](const MaskRead& m, std::int64_t node) { return m.width() - 1 - node; });
  add_order(fmt::format("the bits of an integer of {} are read from the highest on", name),
            [word](const MaskRead&, std::int64_t node) { return node / word * word + word - 1 - node % word; });
  if (word > 8) {
    add_order(fmt::format("the bits of a byte of {} are read from the highest on", name),
              [](const MaskRead&, std::int64_t node) { return node / 8 * 8 + 7 - node % 8; });
    add_order(fmt::format("the bytes of an integer of {} are read from the highest on", name),
              [word](const MaskRead&, std::int64_t node) {
                return node / word * word + (word / 8 - 1 - node % word / 8) * 8 + node % 8;
              });
  }
  if (row > word) {
    add_order(fmt::format("the integers of a row of {} are read from the last on", name),
              [row, word](const MaskRead&, std::int64_t node) {
                return (row / word - 1 - node / word) * word + node % word;
              });
    add_rows("mask_rows_padded",
             fmt::format("rows of {} are taken to be one integer apart instead of {}", name, row / word),
             [word](const MaskRead& m, std::int64_t node) { return m.query * word + node; });
    add_mask(trials, "mask_words", fmt::format("only the first integer of a row of {} is read", name),
             [word](const MaskRead& m, std::int64_t key) {
               return key < m.first_key() || (m.column(key) < word && m.sees(m.query, key));
             });
    add_order(fmt::format("the first integer of a row of {} is read again for each further one", name),
              [word](const MaskRead&, std::int64_t node) { return node % word; });
  }
  add_rows("mask_rows_padded", fmt::format("rows of {} are taken to follow without the bits past the tree", name),
           [](const MaskRead& m, std::int64_t node) { return m.query * m.width() + node; });
  if (word > 8) {
    add_rows("mask_rows_padded", fmt::format("each row of {} is taken to start at the next byte", name),
             [](const MaskRead& m, std::int64_t node) { return m.query * ((m.width() + 7) / 8 * 8) + node; });
  }
  std::int64_t most = 0;
  bool alike = true;
  for (const QueryMasks::Sequence& s : masks.sequences) {
    most = std::max(most, s.queries);
    alike = alike && s.queries == masks.sequences.front().queries;
  }
  if (alike) return;
  add_mask(trials, "mask_sequence",
           fmt::format("sequences of {} are taken to be {} rows apart, as many as the largest tree has", name, most),
           [row, most](const MaskRead& m, std::int64_t key) {
             const auto before = std::ranges::count_if(m.masks.sequences, [&](const QueryMasks::Sequence& s) {
               return s.first_query < m.sequence.first_query;
             });
             return key < m.first_key() || m.bit(0, (before * most + m.query) * row + m.column(key));
           });
}

void add_masks_of_queries(Trials& trials) {
  const QueryMasks& masks = *trials.input.masks;
  const std::string& name = masks.name;
  add_mask(trials, "mask_ignored", fmt::format("{} is ignored: each query sees all keys", name),
           [](const MaskRead&, std::int64_t) { return true; });
  add_mask(trials, "mask_ignored", fmt::format("{} is ignored: each query sees the keys up to its own token", name),
           causal);
  add_mask(trials, "mask_and_causal", fmt::format("a causal mask is applied together with {}", name),
           [](const MaskRead& m, std::int64_t key) { return m.sees(m.query, key) && causal(m, key); });
  add_mask(trials, "mask_inverted", fmt::format("{} is inverted: keys whose value is 1 are masked", name),
           [](const MaskRead& m, std::int64_t key) { return key < m.first_key() || !m.sees(m.query, key); });
  add_mask(trials, "mask_transposed", fmt::format("{} is read with its axes exchanged: [key, query]", name),
           [](const MaskRead& m, std::int64_t key) {
             const std::int64_t stride = m.is_tree() ? m.row_stride() : m.sequence.queries;
             return key < m.first_key() || m.element(m.column(key) * stride + m.query);
           });
  for (const std::int64_t by : {1, -1}) {
    add_mask(trials, "mask_row",
             fmt::format("each query uses the row of {} of the query {} it", name, by > 0 ? "after" : "before"),
             [by](const MaskRead& m, std::int64_t key) {
               return m.sees(std::clamp<std::int64_t>(m.query + by, 0, m.sequence.queries - 1), key);
             });
    add_mask(trials, "mask_column",
             fmt::format("each key uses the value of {} of the key {} it", name, by > 0 ? "after" : "before"),
             [by](const MaskRead& m, std::int64_t key) {
               return key < m.first_key() || m.element(m.query * m.row_stride() + m.column(key) + by);
             });
  }
  add_mask(trials, "mask_row", fmt::format("every query uses the row of {} of its sequence's first query", name),
           [](const MaskRead& m, std::int64_t key) { return m.sees(0, key); });
  if (masks.form == Form::tree || masks.form == Form::packed_tree) {
    add_mask(trials, "mask_place",
             fmt::format("{} is applied to the first keys of a sequence instead of the last", name),
             [](const MaskRead& m, std::int64_t key) {
               return key >= m.width() || m.element(m.query * m.row_stride() + key);
             });
    add_mask(trials, "mask_place", fmt::format("the keys before those of {} are masked", name),
             [](const MaskRead& m, std::int64_t key) { return key >= m.first_key() && m.sees(m.query, key); });
  }
  if (masks.form == Form::packed) {
    add_mask(trials, "mask_bit_order", fmt::format("the bits of a byte of {} are read from the highest on", name),
             [](const MaskRead& m, std::int64_t key) {
               return m.bit(m.sequence.first_value, m.query * m.sequence.keys + key, true);
             });
    add_mask(trials, "mask_rows_padded", fmt::format("each row of {} is taken to start at a byte", name),
             [](const MaskRead& m, std::int64_t key) {
               return m.bit(m.sequence.first_value + m.query * ((m.sequence.keys + 7) / 8), key);
             });
  }
  if (masks.form == Form::packed_tree) add_rows_of_bits(trials);
  if (masks.sequences.size() < 2) return;
  add_mask(trials, "mask_sequence", fmt::format("every sequence starts at the first value of {}", name),
           [](const MaskRead& m, std::int64_t key) {
             MaskRead first = m;
             first.sequence.first_value = 0;
             return first.sees(m.query, key);
           });
  for (const std::int64_t by : {1, -1}) {
    if (by < 0 && masks.sequences.size() == 2) continue;  // every sequence would start at the first value
    add_mask(trials, "mask_sequence",
             fmt::format("each sequence starts at the values of {} of the sequence {} it", name,
                         by > 0 ? "after" : "before"),
             [by](const MaskRead& m, std::int64_t key) {
               const std::vector<QueryMasks::Sequence>& all = m.masks.sequences;
               const auto own = std::find_if(all.begin(), all.end(), [&](const QueryMasks::Sequence& s) {
                 return s.first_query == m.sequence.first_query && s.queries == m.sequence.queries;
               });
               const std::int64_t other = std::clamp<std::int64_t>(own - all.begin() + by, 0, std::ssize(all) - 1);
               MaskRead moved = m;
               moved.sequence.first_value = all[static_cast<std::size_t>(other)].first_value;
               return moved.sees(m.query, key);
             });
  }
  std::int64_t longest = 0;
  for (const QueryMasks::Sequence& s : masks.sequences) longest = std::max(longest, s.keys);
  if (masks.form == Form::custom) {
    add_mask(trials, "mask_rows_padded",
             fmt::format("rows of {} are taken to be {} values apart, as long as the longest sequence", name, longest),
             [longest](const MaskRead& m, std::int64_t key) {
               return m.value((m.sequence.first_query + m.query) * longest + key);
             });
  }
  if (masks.form == Form::packed) {
    add_mask(trials, "mask_sequence",
             fmt::format("the bits of {} are taken to follow without gaps between sequences", name),
             [](const MaskRead& m, std::int64_t key) {
               std::int64_t before = 0;
               for (const QueryMasks::Sequence& s : m.masks.sequences) {
                 if (s.first_query >= m.sequence.first_query) break;
                 before += s.queries * s.keys;
               }
               return m.bit(0, before + m.query * m.sequence.keys + key);
             });
  }
}

// --- indices ---------------------------------------------------------------------------------------------------------

// Indices of a query's row that are used, without the entries of -1.
std::vector<std::int64_t> listed(const QueryMasks& masks, std::int64_t query, std::int64_t count) {
  std::vector<std::int64_t> slots;
  for (std::int64_t i = 0; i < std::min(count, masks.width); ++i) {
    const std::int64_t slot = item(masks.indices, query * masks.width + i);
    if (slot >= 0) slots.push_back(slot);
  }
  return slots;
}

void add_indices(Trials& trials) {
  const QueryMasks& masks = *trials.input.masks;
  const auto queries = static_cast<std::int64_t>(masks.lengths.size());
  const std::string& name = masks.name;
  const auto add = [&](std::string hypothesis, std::string cause,
                       std::function<std::vector<std::int64_t>(std::int64_t query)> slots) {
    trials.add(
        std::move(hypothesis), std::move(cause), fmt::format("how the kernel reads {}", name),
        [slots = std::move(slots)](Recipe& r, const RowEvaluator& row) { r.keys = keys_in_slots(slots(row.query())); });
  };
  const auto change = [&](std::string hypothesis, std::string cause, std::function<std::int64_t(std::int64_t)> of) {
    add(std::move(hypothesis), std::move(cause), [&masks, of = std::move(of)](std::int64_t query) {
      std::vector<std::int64_t> slots = listed(masks, query, item(masks.lengths, query));
      for (std::int64_t& slot : slots) slot = of(slot);
      return slots;
    });
  };
  for (const std::int64_t by : {1, -1}) {
    change("index_off_by_one",
           fmt::format("each entry of {} is taken to be {} too {}", name, 1, by > 0 ? "large" : "small"),
           [by](std::int64_t slot) { return slot + by; });
    add("index_row", fmt::format("each query uses the row of {} of the query {} it", name, by > 0 ? "after" : "before"),
        [&masks, by, queries](std::int64_t query) {
          const std::int64_t other = std::clamp<std::int64_t>(query + by, 0, queries - 1);
          return listed(masks, other, item(masks.lengths, other));
        });
  }
  add("index_row", fmt::format("every query uses the first row of {}", name),
      [&masks](std::int64_t) { return listed(masks, 0, item(masks.lengths, 0)); });
  add("index_missing", fmt::format("the first entry of each row of {} is left out", name),
      [&masks](std::int64_t query) {
        std::vector<std::int64_t> slots = listed(masks, query, item(masks.lengths, query));
        if (!slots.empty()) slots.erase(slots.begin());
        return slots;
      });
  add("index_lengths_ignored",
      fmt::format("all {} entries of each row of {} are used, whatever the lengths", masks.width, name),
      [&masks](std::int64_t query) { return listed(masks, query, masks.width); });
  add("index_hole_read", fmt::format("an entry of -1 in {} is read as slot 0", name), [&masks](std::int64_t query) {
    std::vector<std::int64_t> slots;
    for (std::int64_t i = 0; i < item(masks.lengths, query); ++i) {
      slots.push_back(std::max<std::int64_t>(0, item(masks.indices, query * masks.width + i)));
    }
    return slots;
  });
  trials.add("zeros_counted", fmt::format("an entry of -1 in {} counts as a key of zeros", name),
             "the mask of entries of -1: their scores must be -infinity", [&masks](Recipe& r, const RowEvaluator& row) {
               for (std::int64_t i = 0; i < item(masks.lengths, row.query()); ++i) {
                 if (item(masks.indices, row.query() * masks.width + i) >= 0) continue;
                 KeyRead key;
                 key.zeros = true;
                 key.position = static_cast<std::int64_t>(r.keys.size());
                 r.keys.push_back(key);
               }
             });
  if (masks.page_size < 2) return;
  const std::int64_t page = masks.page_size, blocks = masks.blocks;
  change("index_axes",
         fmt::format("an entry of {} is read as slot * {} + block instead of block * {} + slot", name, blocks, page),
         [page, blocks](std::int64_t slot) { return slot % blocks * page + slot / blocks; });
  change("index_block", fmt::format("the first slot of the block is read for each entry of {}", name),
         [page](std::int64_t slot) { return slot / page * page; });
  for (const std::int64_t by : {1, -1}) {
    change("index_block",
           fmt::format("each entry of {} is read from the block {} its own", name, by > 0 ? "after" : "before"),
           [page, by](std::int64_t slot) { return slot + by * page; });
  }
  for (const std::int64_t other : {16, 32, 64, 128}) {
    if (other == page) continue;
    change("page_size",
           fmt::format("an entry of {} is decoded with a page size of {} instead of {}", name, other, page),
           [page, other](std::int64_t slot) { return slot % other < page ? slot / other * page + slot % other : -1; });
  }
}

}  // namespace

void add_query_masks(Trials& trials) {
  if (trials.input.masks == nullptr) return;
  if (trials.input.masks->form == Form::indices) {
    add_indices(trials);
  } else {
    add_masks_of_queries(trials);
  }
}

}  // namespace kvscope::golden
