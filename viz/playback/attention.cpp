#include "viz/playback/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>
#include <sstream>

#include "core/base/errors.h"
#include "core/base/numbers.h"

namespace kvscope::viz {
namespace {

constexpr std::string_view kFlowForm =
    "write 'seq 3 query 70 head 1 layer 0 tile 64': a number for each of seq, query, head, layer and tile";

[[noreturn]] void reject_flow_word(std::string_view word, std::string_view why) {
  throw InputError("flow", fmt::format("'{}'", word), fmt::format("{}: {}", why, kFlowForm));
}

}  // namespace

FlowRequest parse_flow_request(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::istringstream words(lower);
  FlowRequest request;
  std::set<std::string> seen;
  for (std::string word; words >> word;) {
    static const std::set<std::string, std::less<>> kNames{"seq", "query", "head", "layer", "tile"};
    if (!kNames.contains(word)) reject_flow_word(word, "is no word of a flow");
    if (!seen.insert(word).second) reject_flow_word(word, "is given twice");
    std::string digits;
    words >> digits;
    const auto number = whole_number<std::int64_t>(digits);
    if (!number || *number < 0) reject_flow_word(word, fmt::format("needs a number, not '{}'", digits));
    if (word == "tile" && *number == 0) reject_flow_word(word, "of 0 keys holds nothing, at least 1 is needed");
    if (word == "seq") request.seq = SeqIdx{*number};
    if (word == "query") request.query = TokIdx{*number};
    if (word == "head") request.head = HeadIdx{*number};
    if (word == "layer") request.layer = LayerIdx{*number};
    if (word == "tile") request.tile_keys = *number;
  }
  if (!seen.contains("seq")) reject_flow_word(text, "names no sequence");
  return request;
}

std::string to_text(const FlowRequest& request) {
  std::string text = fmt::format("seq {}", request.seq.value);
  if (request.query.value >= 0) text += fmt::format(" query {}", request.query.value);
  if (request.head.value != 0) text += fmt::format(" head {}", request.head.value);
  if (request.layer.value != 0) text += fmt::format(" layer {}", request.layer.value);
  if (request.tile_keys != 0) text += fmt::format(" tile {}", request.tile_keys);
  return text;
}

double share(const AttentionFlow& flow, std::size_t tile) {
  const FlowTile& of = flow.tiles[tile];
  const FlowTile& last = flow.tiles.back();
  double largest = last.largest, sum = last.sum;
  if (flow.sink) {
    const double with = std::max(largest, *flow.sink);
    sum = sum * std::exp(largest - with) + std::exp(*flow.sink - with);
    largest = with;
  }
  return of.tile_sum * std::exp(of.largest - largest) / sum;
}

std::vector<double> output_after(const AttentionFlow& flow, std::size_t tiles) {
  if (tiles >= flow.tiles.size()) return flow.o;
  if (tiles == 0) return std::vector<double>(flow.o.size(), 0.0);
  const FlowTile& of = flow.tiles[tiles - 1];
  std::vector<double> o = of.o;
  for (double& x : o) x /= of.sum;
  return o;
}

std::pair<std::size_t, std::size_t> tiles_of_tokens(const AttentionFlow& flow, std::int64_t from, std::int64_t to) {
  const auto first = std::ranges::partition_point(flow.tiles, [&](const FlowTile& t) { return t.last_key <= from; });
  const auto end = std::ranges::partition_point(flow.tiles, [&](const FlowTile& t) { return t.first_key < to; });
  if (first >= end) return {0, 0};
  return {static_cast<std::size_t>(first - flow.tiles.begin()), static_cast<std::size_t>(end - flow.tiles.begin())};
}

void index_errors(AttentionErrors& errors) {
  const auto rows = static_cast<std::int64_t>(errors.rows.size());
  if (errors.heads < 0 || errors.dims < 0 ||
      static_cast<std::int64_t>(errors.ratio.size()) != rows * errors.heads * errors.dims) {
    throw InputError("errors", "sizes",
                     fmt::format("{} ratios are not {} rows * {} heads * {} dims", errors.ratio.size(), rows,
                                 errors.heads, errors.dims));
  }
  errors.sequences.clear();
  errors.first_row.clear();
  errors.failing = errors.worst_row = errors.worst_head = errors.worst_dim = 0;
  std::set<SeqIdx> seen;
  for (std::int64_t row = 0; row < rows; ++row) {
    const SeqIdx seq = errors.rows[static_cast<std::size_t>(row)].seq;
    if (!errors.sequences.empty() && errors.sequences.back() == seq) continue;
    if (!seen.insert(seq).second) {
      throw InputError("errors", "rows",
                       fmt::format("row {}: the rows of sequence {} are not adjacent", row, seq.value));
    }
    errors.sequences.push_back(seq);
    errors.first_row.push_back(row);
  }
  errors.first_row.push_back(rows);
  errors.head_worst.assign(errors.sequences.size() * static_cast<std::size_t>(errors.heads), 0.0F);
  float worst = -1;
  for (std::size_t s = 0; s < errors.sequences.size(); ++s) {
    for (std::int64_t row = errors.first_row[s]; row < errors.first_row[s + 1]; ++row) {
      for (std::int64_t head = 0; head < errors.heads; ++head) {
        float& of_head = errors.head_worst[s * static_cast<std::size_t>(errors.heads) + static_cast<std::size_t>(head)];
        for (std::int64_t dim = 0; dim < errors.dims; ++dim) {
          const float ratio = errors.at(row, head, dim);
          of_head = std::max(of_head, ratio);
          if (!(ratio <= 1)) ++errors.failing;
          if (ratio > worst) {
            worst = ratio;
            errors.worst_row = row, errors.worst_head = head, errors.worst_dim = dim;
          }
        }
      }
    }
  }
}

std::int64_t sequence_index(const AttentionErrors& errors, SeqIdx seq) {
  const auto found = std::ranges::find(errors.sequences, seq);
  return found == errors.sequences.end() ? -1 : found - errors.sequences.begin();
}

std::string ratio_text(double ratio) {
  if (!std::isfinite(ratio)) return std::isnan(ratio) ? "nan" : "inf";
  return ratio == 0 ? "0" : fmt::format("{:.2g}", ratio);
}

std::string worst_text(const AttentionErrors& errors) {
  if (errors.empty()) return "no element to compare";
  const ErrorRow& row = errors.rows[static_cast<std::size_t>(errors.worst_row)];
  const double ratio = errors.at(errors.worst_row, errors.worst_head, errors.worst_dim);
  return fmt::format(
      "sequence {}, query {}{}, head {}, dim {}: {}", row.seq.value, row.query,
      row.position >= 0 ? fmt::format(" (token {})", row.position) : std::string(), errors.worst_head, errors.worst_dim,
      std::isfinite(ratio) ? ratio_text(ratio) + "x the bound" : "NaN or infinite in one of the two outputs");
}

FlowRequest flow_of_worst(const AttentionErrors& errors, FlowRequest request) {
  const ErrorRow& row = errors.rows[static_cast<std::size_t>(errors.worst_row)];
  request.seq = row.seq;
  request.query = TokIdx{row.position};
  request.head = HeadIdx{errors.worst_head};
  return request;
}

PageIdx page_behind(const AttentionErrors& errors, std::int64_t row) {
  const ErrorRow& of = errors.rows[static_cast<std::size_t>(row)];
  if (errors.cause_page.value >= 0 && errors.cause_seq == of.seq) return errors.cause_page;
  return PageIdx{of.page};
}

std::int64_t worst_row_of(const AttentionErrors& errors, std::int64_t sequence, std::int64_t head) {
  const auto s = static_cast<std::size_t>(sequence);
  std::int64_t at = errors.first_row[s];
  float worst = -1;
  for (std::int64_t row = errors.first_row[s]; row < errors.first_row[s + 1]; ++row) {
    for (std::int64_t dim = 0; dim < errors.dims; ++dim) {
      if (errors.at(row, head, dim) > worst) worst = errors.at(row, head, dim), at = row;
    }
  }
  return at;
}

namespace {

// The ratio that an error_cell shows; nullopt: the errors do not have it.
std::optional<double> ratio_of(const AttentionErrors& errors, const Selection& cell) {
  const std::int64_t sequence = sequence_index(errors, cell.seq);
  if (sequence < 0 || cell.head.value < 0 || cell.head.value >= errors.heads) return std::nullopt;
  if (cell.dim.value < 0) {
    return errors.head_worst[static_cast<std::size_t>(sequence * errors.heads + cell.head.value)];
  }
  if (cell.dim.value >= errors.dims) return std::nullopt;
  for (std::int64_t row = errors.first_row[static_cast<std::size_t>(sequence)];
       row < errors.first_row[static_cast<std::size_t>(sequence) + 1]; ++row) {
    if (errors.rows[static_cast<std::size_t>(row)].position == cell.token.value) {
      return errors.at(row, cell.head.value, cell.dim.value);
    }
  }
  return std::nullopt;
}

}  // namespace

std::string describe_attention(const Selection& selection, const AttentionFlow* flow, const AttentionErrors* errors) {
  std::string text = describe({}, {}, selection);
  if (selection.kind == Selection::Kind::flow_tile && flow != nullptr && flow->request.seq == selection.seq &&
      selection.event >= 0 && selection.event < static_cast<std::int64_t>(flow->tiles.size())) {
    const auto number = static_cast<std::size_t>(selection.event);
    const FlowTile& tile = flow->tiles[number];
    text += fmt::format("; m = {:.4g}, c = {:.4g}, l = {:.4g}, {:.1f} % of the sum", tile.largest, tile.rescale,
                        tile.sum, 100 * share(*flow, number));
  }
  if (selection.kind == Selection::Kind::error_cell && errors != nullptr) {
    if (const auto ratio = ratio_of(*errors, selection)) {
      text = fmt::format("{}; {}x the bound, {}", text, ratio_text(*ratio), *ratio <= 1 ? "passes" : "fails");
    }
  }
  return text;
}

}  // namespace kvscope::viz
