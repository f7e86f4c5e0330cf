#include "viz/playback/happened.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>
#include <vector>

#include "core/base/grouped.h"
#include "core/trace/event_text.h"

namespace kvscope::viz {
namespace {

constexpr std::size_t kMostNamed = 2;  // sequences that are named; more are counted

std::string plural(std::int64_t n, const char* what) {
  return fmt::format("{} {}{}", grouped(n), what, n == 1 ? "" : "s");
}

// "block 10 taken", "3 blocks taken"; empty for none.
std::string blocks(const std::vector<BlockIdx>& all, const char* did) {
  if (all.empty()) return {};
  return all.size() == 1 ? fmt::format("block {} {}", all.front().value, did)
                         : fmt::format("{} blocks {}", all.size(), did);
}

std::vector<BlockIdx> sorted(std::vector<BlockIdx> blocks) {
  std::ranges::sort(blocks);
  return blocks;
}

// The blocks of `all`, which is sorted, that the sequence's pages have.
std::vector<BlockIdx> of_sequence_only(const std::vector<BlockIdx>& all, const SequenceState& seq) {
  std::vector<BlockIdx> own;
  for (std::int64_t page = 0; page < seq.pages.size(); ++page) {
    const BlockIdx block{seq.pages[page]};
    if (std::ranges::binary_search(all, block)) own.push_back(block);
  }
  return own;
}

std::string admitted(const State& state, const Marks& marks, SeqIdx seq) {
  const std::vector<BlockIdx> shared = sorted(marks.shared), allocated = sorted(marks.allocated);
  const SequenceState& of = state.sequences[seq.value];
  std::string text = fmt::format("sequence {} admitted", seq.value);
  if (of.pages.size() == 0) return text;
  text += ": " + plural(of.pages.size(), "page");
  const std::vector<BlockIdx> found = of_sequence_only(shared, of), taken = of_sequence_only(allocated, of);
  if (!found.empty()) text += fmt::format(", {} found in the cache", found.size());
  if (!taken.empty()) text += ", " + blocks(taken, "taken");
  return text;
}

// Calls name(seq) for the first few of `sequences` and counts the rest: "3 more finished".
template <class Name>
void add_sequences(std::vector<std::string>& parts, const std::vector<SeqIdx>& sequences, const char* did,
                   Name&& name) {
  for (std::size_t n = 0; n < std::min(sequences.size(), kMostNamed); ++n) parts.push_back(name(sequences[n]));
  if (sequences.size() > kMostNamed) parts.push_back(fmt::format("{} more {}", sequences.size() - kMostNamed, did));
}

// Sentences of the events of a run; empty for those of a tile.
struct EventInWords {
  std::string operator()(const trace::StepBegan& e) const { return fmt::format("Step {} begins", e.step.value); }
  std::string operator()(const trace::StepEnded& e) const { return fmt::format("Step {} ends", e.step.value); }
  std::string operator()(const trace::RequestArrived& e) const {
    return fmt::format("Sequence {} arrived: prompt of {}, {} to generate", e.seq.value,
                       plural(e.prompt_tokens, "token"), grouped(e.generate_tokens));
  }
  std::string operator()(const trace::RequestAdmitted& e) const {
    return e.hit_tokens == 0
               ? fmt::format("Sequence {} admitted", e.seq.value)
               : fmt::format("Sequence {} admitted: {} found in the cache", e.seq.value, plural(e.hit_tokens, "token"));
  }
  std::string operator()(const trace::RequestPreempted& e) const {
    return fmt::format("Sequence {} preempted: {} lost", e.seq.value, plural(e.tokens_lost, "token"));
  }
  std::string operator()(const trace::RequestFinished& e) const {
    return fmt::format("Sequence {} finished: {}", e.seq.value, plural(e.tokens, "token"));
  }
  std::string operator()(const trace::RequestRefused& e) const {
    return fmt::format("Sequence {} rejected: it needs {}, at most {} fit", e.seq.value, plural(e.tokens, "token"),
                       grouped(e.limit));
  }
  std::string operator()(const trace::BlockAllocated& e) const {
    return fmt::format("Block {} taken for page {} of sequence {}", e.block.value, e.page.value, e.seq.value);
  }
  std::string operator()(const trace::BlockShared& e) const {
    return fmt::format("Block {} shared as page {} of sequence {}: {}", e.block.value, e.page.value, e.seq.value,
                       plural(e.ref_count, "holder"));
  }
  std::string operator()(const trace::BlockCopied& e) const {
    return fmt::format("{} of block {} copied to block {}: page {} of sequence {} before a write",
                       plural(e.tokens, "token"), e.from.value, e.to.value, e.page.value, e.seq.value);
  }
  std::string operator()(const trace::BlockReleased& e) const {
    const std::string left = e.ref_count > 0 ? plural(e.ref_count, "holder") + " left"
                             : e.cached      ? "still cached"
                                             : "now free";
    return fmt::format("Block {}, page {} of sequence {}, released: {}", e.block.value, e.page.value, e.seq.value,
                       left);
  }
  std::string operator()(const trace::BlockEvicted& e) const {
    return fmt::format("Block {} evicted: its content is lost", e.block.value);
  }
  std::string operator()(const trace::TokensWritten& e) const {
    const std::string which =
        e.tokens == 1 ? fmt::format("Token {}", e.first_token.value)
                      : fmt::format("Tokens {} to {}", e.first_token.value, e.first_token.value + e.tokens - 1);
    return fmt::format("{} of sequence {} computed and stored in block {}", which, e.seq.value, e.block.value);
  }
  template <class E>
  std::string operator()(const E&) const {
    return {};
  }
};

std::string step_in_words(const State& state, const Marks& marks) {
  std::vector<std::string> parts;
  const auto add = [&](const std::string& part) {
    if (!part.empty()) parts.push_back(part);
  };
  add_sequences(parts, marks.preempted, "preempted",
                [](SeqIdx seq) { return fmt::format("sequence {} preempted: its blocks are free again", seq.value); });
  add_sequences(parts, marks.admitted, "admitted", [&](SeqIdx seq) { return admitted(state, marks, seq); });
  add_sequences(parts, marks.finished, "finished",
                [](SeqIdx seq) { return fmt::format("sequence {} finished", seq.value); });
  add(blocks(marks.evicted, "evicted"));
  if (!marks.copied.empty()) {
    add(marks.copied.size() == 1 ? fmt::format("a shared page copied to block {} before a write", marks.copied[0].value)
                                 : fmt::format("{} shared pages copied before a write", marks.copied.size()));
  }
  // Blocks of sequences that were admitted earlier.
  std::vector<BlockIdx> of_admitted;
  for (const SeqIdx seq : marks.admitted) {
    const PageTable& pages = state.sequences[seq.value].pages;
    for (std::int64_t page = 0; page < pages.size(); ++page) of_admitted.emplace_back(pages[page]);
  }
  of_admitted = sorted(std::move(of_admitted));
  std::vector<BlockIdx> taken = marks.allocated;
  std::erase_if(taken, [&](BlockIdx block) { return std::ranges::binary_search(of_admitted, block); });
  if (taken.size() == 1 && state.blocks[taken[0].value].owner >= 0) {
    const BlockState& block = state.blocks[taken[0].value];
    add(fmt::format("block {} taken for page {} of sequence {}", taken[0].value, block.page, block.owner));
  } else {
    add(blocks(taken, "taken"));
  }
  if (parts.empty() && !marks.written.empty()) {
    std::int64_t tokens = 0;
    for (const trace::TokensWritten& written : marks.written) tokens += written.tokens;
    add(plural(tokens, "token") + " computed");
  }
  std::string text = fmt::format("{}", fmt::join(parts, "; "));
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

}  // namespace

Selection object_of(const trace::Event& event) {
  Selection object;
  for (const trace::NamedNumber& field : trace::named_fields(event)) {
    if (field.name == "block" || field.name == "to") return of_block(BlockIdx(field.value));
    if (field.name == "seq") object = of_sequence(SeqIdx(field.value));
    if (field.name == "step") object = of_step(StepIdx(field.value));
  }
  return object;
}

std::string what_happened(const Cursor& cursor) {
  if (cursor.position().value == 0) return {};
  const std::int64_t row = cursor.row();
  if (cursor.position() == cursor.run().end_of_row(row)) return step_in_words(cursor.state(), cursor.marks());
  const std::int64_t last = cursor.position().value - 1 - cursor.run().span(row).first_event;
  const trace::Event& event = (*cursor.run().events_of_row(row))[static_cast<std::size_t>(last)];
  const std::string words = std::visit(EventInWords(), event);
  return words.empty() ? trace::to_text(event) : words;
}

std::string what_happened(const Tile& tile, const TileState& now) {
  // The action that the last event belongs to.
  const auto after =
      std::ranges::partition_point(tile.actions, [&](const TileAction& action) { return action.first < now.event; });
  if (now.event == 0 || after == tile.actions.begin()) return {};
  const TileAction& action = *std::prev(after);
  const auto index = static_cast<std::size_t>(action.index);
  const bool done = action.end <= now.event;
  switch (action.kind) {
    case TileAction::Kind::open:
      return "The tile is opened: its rows are known, and nothing is copied yet";
    case TileAction::Kind::expect:
      return fmt::format("A thread told the barrier to expect {} B", grouped(now.expected));
    case TileAction::Kind::copy: {
      const TileCopy& copy = tile.copies[index];
      const std::string name =
          tile.tma() ? fmt::format("Box {}", copy.number) : fmt::format("Copy {} of wave {}", copy.number, copy.wave);
      const std::int64_t landed = std::clamp<std::int64_t>(now.landed - copy.first_chunk, 0, copy.chunks);
      return done && landed == copy.chunks ? fmt::format("{} landed: {} B", name, grouped(copy.bytes))
             : landed == 0                 ? fmt::format("{} was issued: {} B", name, grouped(copy.bytes))
                                           : fmt::format("{} is in flight: {} of {} B have landed", name,
                                                         grouped(landed * kTileChunkBytes), grouped(copy.bytes));
    }
    case TileAction::Kind::complete:
      return fmt::format("The barrier is complete: all {} B have landed, the warps may read", grouped(now.arrived));
    case TileAction::Kind::wait: {
      const TileWait& wait = tile.waits[index];
      return fmt::format("Wave {} waited until at most {} of its copies were outstanding", wait.wave, wait.allowed);
    }
    case TileAction::Kind::read: {
      const TileRead& read = tile.reads[index];
      const std::string registers = read.registers == 1 ? fmt::format("register {}", read.first_register)
                                                        : fmt::format("registers {} to {}", read.first_register,
                                                                      read.first_register + read.registers - 1);
      return fmt::format("Read {}: {}{}, {} {}", read.number, plural(read.cycles, "wavefront"),
                         read.conflicts > 0 ? fmt::format(" ({} of them from bank conflicts)", read.conflicts) : "",
                         registers, done ? "filled" : "being filled");
    }
  }
  return {};
}

}  // namespace kvscope::viz
