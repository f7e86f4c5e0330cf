// Attention of one step as the viewer shows it, in plain numbers: the tiled flow of one query row tile by tile, and the
// errors of a whole output against the golden. The program computes both (window/backend.h); nothing here computes
// attention.
//
//   flow     tile after tile of keys: running maximum m, factor c = exp(m_before - m), running sum l, output o
//   errors   |candidate - golden| / bound of each element (row, head, dim); above 1 the element fails
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/index.h"
#include "viz/playback/selection.h"

namespace kvscope::viz {

// Which row's flow is asked for.
struct FlowRequest {
  SeqIdx seq{0};
  TokIdx query{-1};            // position of the query's token; -1: the last query of the step
  HeadIdx head{0};             // query head
  LayerIdx layer{0};           // a golden bundle holds one layer, and it is that one whatever the number
  std::int64_t tile_keys = 0;  // [keys] of a tile; 0: the scenario's BN, 64 for a golden bundle
  StepIdx step{0};             // whose cache; not part of the text
  friend bool operator==(const FlowRequest&, const FlowRequest&) = default;
};

// "seq 3 query 70 head 1 layer 0 tile 64", words in any order; all but seq may be left out. InputError("flow", ...): a
// word that is none of these, a name without its number, a number twice, a tile of 0 keys.
[[nodiscard]] FlowRequest parse_flow_request(std::string_view text);
// All words that differ from the defaults, and seq; parse_flow_request() of it gives the request back without its step.
[[nodiscard]] std::string to_text(const FlowRequest& request);

// One tile, after it has been added. The numbers are those of the flow in f32, each stored exactly.
struct FlowTile {
  std::int64_t first_key = 0, last_key = 0;  // keys [first_key, last_key) that the query sees; never empty
  double largest_before = 0;                 // m before; -inf in the first tile
  double largest = 0;                        // m after
  double rescale = 0;                        // c = exp(m_before - m); 0 in the first tile
  double tile_sum = 0;                       // sum of exp(score - m) over its keys
  double sum = 0;                            // l after: c * l + tile_sum
  std::vector<double> o;                     // [dim] after, not divided: o / l is the attention over the keys so far
};

struct AttentionFlow {
  FlowRequest request;    // with the query's position and the tile's keys filled in
  TokIdx first_query{0};  // positions [first_query, first_query + queries) are the sequence's queries
  std::int64_t queries = 0;
  std::int64_t keys = 0;       // of the sequence
  std::int64_t heads = 0;      // query heads
  std::int64_t kv_head = 0;    // that the head reads
  std::int64_t page_size = 1;  // [tokens]
  double scale = 1;
  std::optional<double> sink;  // the head's logit that joins the sum after all tiles
  bool base_two = false;       // lse is a logarithm to base 2
  std::vector<FlowTile> tiles;
  std::vector<double> o;  // [dim] the result of the flow
  double lse = 0;
  std::vector<double> golden;  // [dim] the golden's output
  std::vector<double> bound;   // [dim] maximum |o - golden| of a correct kernel in f32
  double golden_lse = 0, lse_bound = 0;

  [[nodiscard]] std::int64_t dims() const { return static_cast<std::int64_t>(o.size()); }
};

// The tile's part of the final sum, in [0, 1]: tile_sum * exp(m of the tile - m at the end) / l at the end. The shares
// of all tiles, and of the sink, add up to 1.
// Example: scores {0, ln 2} in tiles of one key: 1/3 and 2/3.
[[nodiscard]] double share(const AttentionFlow& flow, std::size_t tile);
// o / l after `tiles` tiles: the attention over the keys so far; zeros after none. After all tiles: the flow's result.
[[nodiscard]] std::vector<double> output_after(const AttentionFlow& flow, std::size_t tiles);
// Tiles [first, second) that hold a visible key of tokens [from, to); empty: {0, 0}.
[[nodiscard]] std::pair<std::size_t, std::size_t> tiles_of_tokens(const AttentionFlow& flow, std::int64_t from,
                                                                  std::int64_t to);

// --- the candidate against the golden --------------------------------------------------------------------------------

struct ErrorRow {
  SeqIdx seq{-1};
  std::int64_t query = 0;      // within its sequence
  std::int64_t position = -1;  // of its token; -1: not known
  std::int64_t page = -1;      // that holds the token
  std::int64_t block = -1;     // that holds the page
};

struct ErrorsRequest {
  std::string candidate;  // file; empty: the tiled flow in f32
  LayerIdx layer{0};
  StepIdx step{0};
  friend bool operator==(const ErrorsRequest&, const ErrorsRequest&) = default;
};

struct AttentionErrors {
  std::string golden_name, candidate_name, policy;  // policy: "derived bound, bf16"
  bool passed = true;
  bool of_flow = false;              // the candidate is the tiled flow in f32
  std::vector<std::string> remarks;  // what the version of the candidate's file does not check, one sentence each
  struct Criterion {
    std::string name;  // "o: bound"
    bool passed = true;
    std::string detail;  // "11 of 16 elements exceed the bound; ..."
  };
  std::vector<Criterion> criteria;
  std::int64_t heads = 0, dims = 0;
  std::vector<ErrorRow> rows;  // by sequence, then by query
  std::vector<float> ratio;    // [row, head, dim] error over its bound; infinity: one of the two is no number
  // What `kvscope diagnose` finds; empty cause: there is nothing to explain, or no_cause has the reason.
  std::string cause, look_at, no_cause;
  bool certain = false;
  SeqIdx cause_seq{-1};  // the sequence and the page that the cause names; -1: none
  PageIdx cause_page{-1};

  // Filled in by index_errors().
  std::vector<SeqIdx> sequences;        // [sequence] each once, in the order of the rows
  std::vector<std::int64_t> first_row;  // [sequence + 1]
  std::vector<float> head_worst;        // [sequence, head] largest ratio
  std::int64_t failing = 0;             // elements above 1
  std::int64_t worst_row = 0, worst_head = 0, worst_dim = 0;

  [[nodiscard]] float at(std::int64_t row, std::int64_t head, std::int64_t dim) const {
    return ratio[static_cast<std::size_t>((row * heads + head) * dims + dim)];
  }
  [[nodiscard]] bool empty() const { return ratio.empty(); }
};

// InputError: the sizes do not fit together, or a sequence's rows are not adjacent.
void index_errors(AttentionErrors& errors);

// Index into errors.sequences, or -1.
[[nodiscard]] std::int64_t sequence_index(const AttentionErrors& errors, SeqIdx seq);

// "0.31", "4.1", "1.2e+03", "inf": a ratio in at most 7 letters.
[[nodiscard]] std::string ratio_text(double ratio);
// "sequence 2, query 5 (token 69), head 3, dim 17: 4.1x the bound"
[[nodiscard]] std::string worst_text(const AttentionErrors& errors);
// The sequence, query and head of the same element; the rest is the request's. Precondition: not empty().
[[nodiscard]] FlowRequest flow_of_worst(const AttentionErrors& errors, FlowRequest request);

// The page that a click on an error leads to: the one that the diagnosis names when it is of the same sequence, else
// the query token's; -1: not known. For a whole head (dim -1) `row` is the head's worst row.
[[nodiscard]] PageIdx page_behind(const AttentionErrors& errors, std::int64_t row);

// The row of the sequence that has the head's largest ratio.
[[nodiscard]] std::int64_t worst_row_of(const AttentionErrors& errors, std::int64_t sequence, std::int64_t head);

// One sentence about a flow_tile or an error_cell, with its numbers where flow and errors (or null) have them:
//   "Tile 2 of the flow: keys 32 to 47 of sequence 3, page 2; m = 1.664, c = 0.4312, l = 4.918, 31.5 % of the sum"
//   "Error of sequence 2, head 3: page 3; 4.1x the bound, fails"
[[nodiscard]] std::string describe_attention(const Selection& selection, const AttentionFlow* flow,
                                             const AttentionErrors* errors);

}  // namespace kvscope::viz
