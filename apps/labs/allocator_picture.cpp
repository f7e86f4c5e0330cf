#include "apps/labs/allocator_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace kvscope::labs {
namespace {

constexpr std::size_t kCallsShown = 5;  // before the one that differs

// The place of `block` in a list, from 1; 0: it is not there.
std::ptrdiff_t place_in(const Words& list, std::int64_t block) {
  const auto at = std::ranges::find(list, block);
  return at == list.end() ? 0 : at - list.begin() + 1;
}

// Every place that the state names: a wrong one may have a block in several, or in none.
PictureCell block_cell(const PoolState& state, std::int64_t block) {
  std::vector<std::string> words;
  for (const auto& [sequence, pages] : state.pages) {
    if (place_in(pages, block) > 0) words.push_back(fmt::format("s{}", sequence));
  }
  const std::size_t holders = words.size();
  const std::ptrdiff_t cached = place_in(state.cached, block), free = place_in(state.free, block);
  if (cached > 0) words.push_back(fmt::format("cached {}", cached));
  if (free > 0) words.push_back(fmt::format("free {}", free));
  PictureCell cell{words.empty() ? "lost" : "", holders > 0  ? CellMark::used
                                                : cached > 0 ? CellMark::quiet
                                                             : CellMark::plain};
  for (const std::string& word : words) cell.text += (cell.text.empty() ? "" : " ") + word;
  const auto index = static_cast<std::size_t>(block);
  if (index < state.holders.size() && state.holders[index] != static_cast<std::int64_t>(holders)) {
    cell.note = fmt::format("holders() is {}", state.holders[index]);
  }
  return cell;
}

std::string contents_note(const PoolScript& script, std::size_t state, std::int64_t block) {
  const PoolContents& contents = script.contents[state];
  for (const auto& [hash, found] : contents.found) {
    if (found == block) return fmt::format("hash {}", hash);
  }
  for (const auto& [sequence, pages] : script.states[state].pages) {
    const auto tokens = contents.tokens.find(sequence);
    if (pages.empty() || pages.back() != block || tokens == contents.tokens.end()) continue;
    const std::int64_t in_last = (tokens->second - 1) % script.page_size + 1;
    if (in_last < script.page_size) return fmt::format("{} of {}", in_last, script.page_size);
  }
  return {};
}

PictureRow blocks_row(const PoolScript& script, std::string heading, const PoolState& state) {
  PictureRow row{std::move(heading), {}};
  for (std::int64_t block = 0; block < script.blocks; ++block) row.cells.push_back(block_cell(state, block));
  return row;
}

std::string returned(const PoolCall& call, std::string_view who, std::int64_t result) {
  const bool returns = call.kind == PoolCall::Kind::append || call.kind == PoolCall::Kind::share;
  if (!returns) return std::string(who);
  return result == kNoBlock ? fmt::format("{}: kNone", who) : fmt::format("{}: block {}", who, result);
}

}  // namespace

CasePicture allocator_picture(const PoolScript& script, std::size_t call, const PoolState& given) {
  PictureGrid grid{fmt::format("{} blocks of {} tokens after each call", script.blocks, script.page_size), {}, {}};
  for (std::int64_t block = 0; block < script.blocks; ++block) grid.columns.push_back(fmt::format("{}", block));
  for (std::size_t state = call > kCallsShown ? call - kCallsShown : 0; state <= call; ++state) {
    const std::string heading =
        state == 0 ? "a new pool" : fmt::format("event {}: {}", state, text_of(script.calls[state - 1]));
    grid.rows.push_back(blocks_row(script, heading, script.states[state]));
    for (std::int64_t block = 0; state == call && block < script.blocks; ++block) {
      grid.rows.back().cells[static_cast<std::size_t>(block)].note = contents_note(script, state, block);
    }
  }

  const PoolCall& last = script.calls[call];
  const PoolState& expected = script.states[call + 1];
  const std::string event = fmt::format("event {}: {}", call + 1, text_of(last));
  PictureRow right = blocks_row(script, event + returned(last, ", expected", expected.result), expected);
  PictureRow wrong = blocks_row(script, event + returned(last, ", your code", given.result), given);
  for (std::size_t block = 0; block < right.cells.size(); ++block) {
    PictureCell& of_model = right.cells[block];
    PictureCell& of_student = wrong.cells[block];
    const bool returned_here = given.result != expected.result && (static_cast<std::int64_t>(block) == given.result ||
                                                                   static_cast<std::int64_t>(block) == expected.result);
    if (of_model.text == of_student.text && of_student.note.empty() && !returned_here) continue;
    of_model.mark = CellMark::expected;
    of_student.mark = CellMark::wrong;
  }
  grid.rows.push_back(std::move(right));
  grid.rows.push_back(std::move(wrong));
  return {{std::move(grid)}, "held: s0 is sequence 0", "cached: 1 is evicted first"};
}

}  // namespace kvscope::labs
