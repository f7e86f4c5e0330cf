// Lab 04: an allocator of blocks, compared with the model's pool after every call. A failed test names the first call
// after which the two differ. If that difference later gives one block to two sequences, it names that call too.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>

#include "apps/labs/allocator_picture.h"
#include "apps/labs/compile.h"
#include "apps/labs/exact_cases.h"
#include "apps/labs/graders.h"
#include "apps/labs/pool_calls.h"

namespace kvscope::labs {
namespace {

constexpr std::array kPoolTests{"order", "full", "share", "evict", "copy", "engine"};
constexpr std::size_t kSmallScripts = 6, kLargeScripts = 6;

std::vector<PoolScript> make_scripts(std::string_view test, const CounterRng& random) {
  std::vector<PoolScript> scripts;
  for (std::uint64_t number = 0; number < kSmallScripts + kLargeScripts; ++number) {
    const CounterRng own(random.bits(number), number);
    if (test == "engine") {
      if (number < kSmallScripts) scripts.push_back(engine_script(number < kSmallScripts / 2 ? 4 : 12, own));
      continue;
    }
    const bool small = number < kSmallScripts;
    PoolWalk walk;
    walk.blocks = small ? 5 : 12;
    walk.page_size = small ? 2 : 4;
    walk.calls = small ? 24 : 160;
    walk.publishes = test == "share" || test == "evict";
    walk.forks = test == "copy";
    walk.fails = test == "full" || test == "evict" || test == "copy";
    walk.evicts = test == "evict";
    if (test == "share") walk.blocks *= 3;  // cached blocks remain, and no append has to wait for them
    if (test == "share" && small) walk.calls = 36;
    scripts.push_back(random_walk(walk, own));
  }
  return scripts;
}

Words words_of(const PoolCall& call) {
  if (call.kind == PoolCall::Kind::append || call.kind == PoolCall::Kind::release) {
    return {static_cast<std::int64_t>(call.kind), call.sequence};
  }
  return {static_cast<std::int64_t>(call.kind), call.sequence, call.other};
}

bool contains(const Words& list, std::int64_t block) {
  return std::ranges::find(list, block) != list.end();
}

std::string list_text(const Words& list) {
  return list.empty() ? "none" : fmt::format("{}", fmt::join(list, " "));
}

std::vector<std::int64_t> sequences_with(const PoolState& state, std::int64_t block) {
  std::vector<std::int64_t> sequences;
  for (const auto& [sequence, pages] : state.pages) {
    if (contains(pages, block)) sequences.push_back(sequence);
  }
  return sequences;
}

// "sequences 1 and 4", "sequence 1".
std::string sequences_text(const std::vector<std::int64_t>& sequences) {
  if (sequences.size() == 1) return fmt::format("sequence {}", sequences.front());
  const std::vector<std::int64_t> first(sequences.begin(), sequences.end() - 1);
  return fmt::format("sequences {} and {}", fmt::join(first, ", "), sequences.back());
}

// What the student's program reported for one script: its states before the first call and after each, as far as it
// answered.
using Answers = std::vector<PoolState>;

// The first call in which a sequence stores a token in a block that another sequence holds too.
struct TwoOwners {
  std::size_t call = 0;
  std::int64_t block = 0;
  std::vector<std::int64_t> owners;
};

std::optional<TwoOwners> find_two_owners(const PoolScript& script, const Answers& given) {
  for (std::size_t i = 0; i + 1 < given.size(); ++i) {
    const PoolCall& call = script.calls[i];
    const std::int64_t block = given[i + 1].result;
    if (call.kind != PoolCall::Kind::append || block < 0 || block >= script.blocks) continue;
    std::vector<std::int64_t> owners = sequences_with(given[i], block);
    if (std::ranges::find(owners, call.sequence) == owners.end()) owners.push_back(call.sequence);
    if (owners.size() > 1) return TwoOwners{i, block, std::move(owners)};
  }
  return std::nullopt;
}

struct PoolMessage {
  std::string text;
  int hint = 1;
};

// Why append() should not have returned this block.
PoolMessage explain_append(const PoolScript& script, const PoolCall& call, const PoolState& before,
                           std::int64_t expected, std::int64_t given) {
  const auto held = before.pages.find(call.sequence);
  const Words pages = held == before.pages.end() ? Words{} : held->second;
  const bool new_page = pages.empty() || !contains(pages, expected);
  if (expected == kNoBlock) {
    return {fmt::format("append({}) returned block {}, but no block is available: return kNone", call.sequence, given),
            2};
  }
  if (!pages.empty() && given == pages.back()) {
    const std::vector<std::int64_t> holders = sequences_with(before, given);
    return holders.size() > 1
               ? PoolMessage{fmt::format(
                                 "sequence {} writes into block {}, which {} hold: it needs a copy, or a new page if "
                                 "the last one is full",
                                 call.sequence, given, sequences_text(holders)),
                             3}
               : PoolMessage{fmt::format("sequence {} writes into block {}, whose page is full: a new page begins",
                                         call.sequence, given),
                             1};
  }
  if (!new_page) {
    return {fmt::format(
                "the last page of sequence {} has room, and no other sequence holds its block {}: the token goes there",
                call.sequence, expected),
            3};
  }
  if (given == kNoBlock) {
    return {fmt::format("append({}) returned kNone, but block {} is {}", call.sequence, expected,
                        contains(before.free, expected) ? "free" : "cached: it can be evicted"),
            2};
  }
  if (given < 0 || given >= script.blocks) {
    return {fmt::format("append({}) returned block {}: the pool has blocks 0 to {}", call.sequence, given,
                        script.blocks - 1),
            1};
  }
  if (contains(before.cached, given) && !before.free.empty()) {
    return {fmt::format("block {} was evicted although block {} is free", given, expected), 2};
  }
  if (contains(before.cached, given)) {
    return {fmt::format("block {} was evicted, but block {} was released earlier", given, expected), 2};
  }
  if (contains(before.free, given)) {
    return {fmt::format("block {} was allocated, but block {} has been free longer", given, expected), 2};
  }
  return {fmt::format("block {} was allocated, but {} holds it", given, sequences_text(sequences_with(before, given))),
          1};
}

PoolMessage explain_share(const PoolCall& call, std::int64_t expected, std::int64_t given) {
  if (given == kNoBlock) {
    return {fmt::format("hash {} is not found, but block {} holds that page", call.other, expected), 2};
  }
  if (expected == kNoBlock) {
    return {
        fmt::format("hash {} finds block {}, which no longer holds that page: forget the hash of an evicted block, and "
                    "find published pages only",
                    call.other, given),
        2};
  }
  return {fmt::format("hash {} finds block {} instead of block {}, which was published with it first", call.other,
                      given, expected),
          2};
}

// A block of which the two states differ, in words. Empty if they agree about it.
std::string explain_block(std::int64_t block, const PoolState& expected, const PoolState& given) {
  const std::vector<std::int64_t> holders = sequences_with(given, block);
  const auto holder_text = [&](std::string_view one, std::string_view several) {
    return fmt::format("{} {}", sequences_text(holders), holders.size() == 1 ? one : several);
  };
  const std::int64_t count = given.holders[static_cast<std::size_t>(block)];
  const auto in_free = std::ranges::count(given.free, block), in_cached = std::ranges::count(given.cached, block);
  if (in_free > 0 && !holders.empty()) {
    return fmt::format("block {} is in the list of free blocks although {} it", block, holder_text("holds", "hold"));
  }
  if (in_cached > 0 && !holders.empty()) {
    return fmt::format("block {} is in the list of cached blocks although {} it", block, holder_text("holds", "hold"));
  }
  if (in_free + in_cached > 1) return fmt::format("block {} is {} times in the lists", block, in_free + in_cached);
  if (count != static_cast<std::int64_t>(holders.size())) {
    return fmt::format("holders({}) is {}, but {} in pages()", block, count,
                       holders.empty() ? "no sequence has the block" : holder_text("has", "have") + " the block");
  }
  if (holders.empty() && in_free + in_cached == 0) {
    return fmt::format("block {} is lost: no sequence holds it, and it is neither free nor cached", block);
  }
  if (in_free > 0 && contains(expected.cached, block)) {
    return fmt::format("block {} is free, but its page can be found by its hash: it is cached", block);
  }
  if (in_cached > 0 && contains(expected.free, block)) {
    return fmt::format("block {} is cached, but no hash finds its page: it is free", block);
  }
  return {};
}

// What differs after a call that is the first with a difference.
PoolMessage explain(const PoolScript& script, const PoolCall& call, const PoolState& before, const PoolState& expected,
                    const PoolState& given) {
  if (call.kind == PoolCall::Kind::append && given.result != expected.result) {
    return explain_append(script, call, before, expected.result, given.result);
  }
  if (call.kind == PoolCall::Kind::share && given.result != expected.result) {
    return explain_share(call, expected.result, given.result);
  }
  for (const auto& [sequence, pages] : expected.pages) {
    const auto at = given.pages.find(sequence);
    if (at == given.pages.end() || at->second == pages) continue;
    if (expected.result == kNoBlock) {
      return {fmt::format("{} returned kNone but changed the pages of sequence {}", text_of(call), sequence), 2};
    }
    return {fmt::format("pages({}) is {}, expected {}", sequence, list_text(at->second), list_text(pages)), 1};
  }
  for (std::int64_t block = 0; block < script.blocks; ++block) {
    if (const std::string text = explain_block(block, expected, given); !text.empty()) {
      return {text, call.kind == PoolCall::Kind::append ? 3 : 1};
    }
  }
  const bool free_differs = given.free != expected.free;
  return {fmt::format("the {} blocks are {}, expected {}{}", free_differs ? "free" : "cached",
                      list_text(free_differs ? given.free : given.cached),
                      list_text(free_differs ? expected.free : expected.cached),
                      call.kind == PoolCall::Kind::release
                          ? ": the last page is released first, and each block goes to the end of its list"
                          : ""),
          2};
}

std::string state_text(const PoolState& state) {
  std::string text;
  for (const auto& [sequence, pages] : state.pages) {
    text += fmt::format("sequence {}: {}; ", sequence, list_text(pages));
  }
  return text + fmt::format("free: {}; cached: {}", list_text(state.free), list_text(state.cached));
}

// How full each last page is, and what share() finds. Empty lines are left out.
std::string contents_text(const PoolScript& script, const PoolContents& contents) {
  std::vector<std::string> tokens, found;
  for (const auto& [sequence, count] : contents.tokens) {
    if (count > 0) tokens.push_back(fmt::format("sequence {}: {}", sequence, (count - 1) % script.page_size + 1));
  }
  for (const auto& [hash, block] : contents.found) found.push_back(fmt::format("{} in block {}", hash, block));
  std::string text;
  if (!tokens.empty()) text += fmt::format("tokens in the last page: {}\n", fmt::join(tokens, "; "));
  if (!found.empty()) text += fmt::format("hashes that share() finds: {}\n", fmt::join(found, ", "));
  return text;
}

std::string result_text(const PoolCall& call, const PoolState& state) {
  const bool returns = call.kind == PoolCall::Kind::append || call.kind == PoolCall::Kind::share;
  if (!returns) return state_text(state);
  return fmt::format("{}; {}", state.result == kNoBlock ? "kNone" : fmt::format("block {}", state.result),
                     state_text(state));
}

// The calls that lead to the failing one: those of its sequences, at most the last `most`.
std::string history_text(const PoolScript& script, std::size_t call, std::size_t most) {
  const std::size_t from = call > most ? call - most : 0;
  std::vector<std::string> texts;
  for (std::size_t i = from; i < call; ++i) texts.push_back(text_of(script.calls[i]));
  return fmt::format("{} blocks, page_size {}; events {} to {}: {}{}", script.blocks, script.page_size, from + 1, call,
                     fmt::join(texts, " "), texts.empty() ? "none" : "");
}

std::string case_text(const PoolScript& script, std::size_t call, const PoolState* given) {
  std::string text = call == 0 ? fmt::format("{} blocks, page_size {}\n", script.blocks, script.page_size)
                               : history_text(script, call, 12) + "\n";
  text += fmt::format("before event {}: {}\n", call + 1, state_text(script.states[call]));
  text += contents_text(script, script.contents[call]);
  text += fmt::format("event {}: {}\n", call + 1, text_of(script.calls[call]));
  text += fmt::format("expected:  {}", result_text(script.calls[call], script.states[call + 1]));
  if (given != nullptr) text += fmt::format("\nyour code: {}", result_text(script.calls[call], *given));
  return text;
}

class BlockPoolGrader final : public Grader {
 public:
  using Grader::Grader;

  [[nodiscard]] std::vector<TestResult> grade(const Submission& submission, const Seed& seed) const override {
    const Compiled compiled = compile_cpp(*this, submission);
    if (!compiled.ok) return all_failed(lab(), "pool.cpp does not compile", compile_failure(compiled));
    std::vector<TestResult> results;
    for (std::size_t i = 0; i < kPoolTests.size(); ++i) {
      results.push_back(grade_test(kPoolTests[i], seed.random(i), compiled.product));
    }
    return results;
  }

 private:
  [[nodiscard]] TestResult grade_test(std::string_view test, const CounterRng& random,
                                      const std::string& program) const {
    const std::vector<PoolScript> scripts = make_scripts(test, random);
    std::vector<Words> sent;
    for (const PoolScript& script : scripts) {
      sent.push_back({0, script.blocks, script.page_size});
      for (const PoolCall& call : script.calls) sent.push_back(words_of(call));
    }
    const HarnessRun run = run_cases(options(), program, sent);

    std::optional<TestResult> shortest;
    std::size_t fewest = 0;
    for (std::size_t s = 0, at = 0; s < scripts.size() && at < run.results.size(); at += scripts[s++].states.size()) {
      const PoolScript& script = scripts[s];
      Answers given;
      std::string fault;
      for (std::size_t i = at; i < std::min(run.results.size(), at + script.states.size()) && fault.empty(); ++i) {
        given.push_back(parse_pool_state(run.results[i], script.blocks, fault));
      }
      if (!fault.empty()) return failed(lab(), test, fault);
      const std::size_t calls = first_difference(script, given);
      if (calls == given.size() || (shortest.has_value() && calls >= fewest)) continue;
      shortest = judge(test, script, given, calls);
      fewest = calls;
    }
    if (shortest.has_value()) return *shortest;
    if (run.results.size() < sent.size()) return stopped(test, scripts, run);
    return passed(lab(), test);
  }

  // The index of the first state that differs; given.size() if none does.
  [[nodiscard]] static std::size_t first_difference(const PoolScript& script, const Answers& given) {
    std::size_t i = 0;
    while (i < given.size() && given[i] == script.states[i]) ++i;
    return i;
  }

  [[nodiscard]] TestResult judge(std::string_view test, const PoolScript& script, const Answers& given,
                                 std::size_t state) const {
    if (state == 0) {
      return failed(lab(), test, "a new pool has no sequences, and all of its blocks are free, the lowest first",
                    fmt::format("{} blocks\nexpected:  {}\nyour code: {}", script.blocks, state_text(script.states[0]),
                                state_text(given[0])));
    }
    const std::size_t call = state - 1;
    const PoolMessage cause =
        explain(script, script.calls[call], script.states[call], script.states[state], given[state]);
    std::string message = fmt::format("event {}: {}", state, cause.text);
    if (const std::optional<TwoOwners> owners = find_two_owners(script, given)) {
      message = fmt::format("block {} has two owners after event {}: {}; the first fault is in event {}: {}",
                            owners->block, owners->call + 1, sequences_text(owners->owners), state, cause.text);
    }
    return with_picture(failed(lab(), test, message, case_text(script, call, &given[state]), cause.hint),
                        allocator_picture(script, call, given[state]));
  }

  // The program ended in a call: the case is the first one without an answer.
  [[nodiscard]] TestResult stopped(std::string_view test, const std::vector<PoolScript>& scripts,
                                   const HarnessRun& run) const {
    std::size_t s = 0, left = run.results.size();
    for (; left >= scripts[s].states.size(); ++s) left -= scripts[s].states.size();
    return stopped_in_case(lab(), test, run,
                           left == 0 ? fmt::format("make_allocator({}, {})", scripts[s].blocks, scripts[s].page_size)
                                     : case_text(scripts[s], left - 1, nullptr));
  }
};

}  // namespace

std::unique_ptr<Grader> block_pool_grader(const Lab& lab, const GradeOptions& options) {
  return std::make_unique<BlockPoolGrader>(lab, options);
}

}  // namespace kvscope::labs
