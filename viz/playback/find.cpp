#include "viz/playback/find.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/errors.h"
#include "core/base/numbers.h"
#include "core/trace/event_text.h"
#include "viz/playback/event_tape.h"

namespace kvscope::viz {
namespace {

constexpr std::string_view kForms =
    "7 or block 7, 3:70 or token 3:70, seq 3, page 3:2, step 12, event 5000, a kind of event such as evicted, "
    "byte 0x1f40, in a tile row 6, chunk 6:3, lane 26, register 26:0, scale 6:1, bytes 6:512, axis 2";

constexpr std::array<std::string_view, 15> kKeywords{"block", "seq",  "sequence", "token", "row",
                                                     "chunk", "lane", "register", "page",  "step",
                                                     "event", "byte", "scale",    "bytes", "axis"};

// Lower case, one blank between words.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
      if (!words.back().empty()) words.emplace_back();
    } else {
      words.back() += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

std::optional<std::int64_t> number_of(std::string_view text) {
  const bool is_hex = text.substr(0, 2) == "0x";
  if (is_hex) text.remove_prefix(2);
  if (text.empty() || text.front() == '-') return std::nullopt;
  return whole_number<std::int64_t>(text, is_hex ? 16 : 10);
}

class Parser {
 public:
  Parser(std::string_view text, const Facts& facts) : text_(text), facts_(facts), words_(words_of(text)) {}

  Target parse() {
    if (words_.empty()) throw InputError("find", "", fmt::format("type one of {}", kForms));
    if (words_.size() == 1) return one_word(words_[0]);
    const std::string& what = words_[0];
    if (words_.size() == 2) {
      const std::string& which = words_[1];
      if (what == "block") return block(number(which));
      if (what == "seq" || what == "sequence") return of_sequence(sequence(number(which)));
      if (what == "token") return pair(which, &Parser::token);
      if (what == "page") return pair(which, &Parser::page);
      if (what == "step") return step(number(which));
      if (what == "event") return event(number(which));
      if (what == "row") return of_tile_row(number(which));
      if (what == "chunk") return pair(which, &Parser::chunk);
      if (what == "scale") return pair(which, &Parser::scale);
      if (what == "bytes") return pair(which, &Parser::bytes);
      if (what == "axis") return of_tile_axis(number(which));
      if (what == "lane") return lane(which);
      if (what == "register") return tile_register(which);
      if (what == "byte") return FindByte{number(which)};
    }
    if (words_.size() == 4 && (what == "seq" || what == "sequence")) {
      if (words_[2] == "token") return token(number(words_[1]), number(words_[3]));
      if (words_[2] == "page") return page(number(words_[1]), number(words_[3]));
    }
    not_understood();
  }

 private:
  Target one_word(const std::string& word) const {
    if (const auto alone = number_of(word)) return block(*alone);
    if (word.find(':') != std::string::npos) return pair(word, &Parser::token);
    // "e" occurs in every name, and "block" may be an unfinished "block 7".
    const bool is_keyword = std::find(kKeywords.begin(), kKeywords.end(), word) != kKeywords.end();
    if (word.size() >= 3 && !is_keyword) {
      for (std::size_t kind = 0; kind < trace::kKinds; ++kind) {
        if (trace::kind_name(kind).find(word) != std::string_view::npos) return FindEvent{kind};
      }
    }
    not_understood();
  }

  [[noreturn]] void not_understood() const {
    throw InputError("find", fmt::format("'{}'", text_), fmt::format("is not understood: type one of {}", kForms));
  }

  std::int64_t number(const std::string& word) const {
    const auto found = number_of(word);
    if (!found) not_understood();
    return *found;
  }

  Target pair(const std::string& word, Target (Parser::*make)(std::int64_t, std::int64_t) const) const {
    const std::size_t colon = word.find(':');
    if (colon == std::string::npos) not_understood();
    return (this->*make)(number(word.substr(0, colon)), number(word.substr(colon + 1)));
  }

  void check(std::string_view what, std::int64_t value, std::int64_t end) const {
    if (value < end) return;
    throw InputError(
        "find", fmt::format("'{}'", text_),
        end > 0 ? fmt::format("{} {} is outside [0, {})", what, value, end) : fmt::format("the run has no {}", what));
  }

  Target block(std::int64_t number) const {
    check("block", number, facts_.blocks + 1);  // the null page too
    return of_block(BlockIdx{number});
  }
  SeqIdx sequence(std::int64_t number) const {
    check("sequence", number, facts_.sequences);
    return SeqIdx{number};
  }
  Target token(std::int64_t seq, std::int64_t number) const {
    const SeqIdx of = sequence(seq);
    check("token", number, facts_.table_columns * facts_.page_size);
    return of_token(of, TokIdx{number});
  }
  Target page(std::int64_t seq, std::int64_t number) const {
    const SeqIdx of = sequence(seq);
    check("page", number, facts_.table_columns);
    return of_page(of, PageIdx{number});
  }
  Target step(std::int64_t number) const {
    if (const std::string why = why_no_step(number, facts_); !why.empty()) {
      throw InputError("find", fmt::format("'{}'", text_), why);
    }
    return of_step(StepIdx{number});
  }
  // What a tile does not have lights nothing: which tile is shown is not known here.
  Target chunk(std::int64_t row, std::int64_t number) const {
    check("chunk", number, std::numeric_limits<std::int64_t>::max() / kTileChunkBytes);  // the product below fits
    const std::int64_t bytes = facts_.scenario ? size_of(facts_.scenario->cache.dtype) : 2;
    return of_tile_chunk({row, number * kTileChunkBytes / bytes});
  }
  Target scale(std::int64_t row, std::int64_t granule) const { return of_tile_scale(row, granule); }
  Target bytes(std::int64_t row, std::int64_t first) const {
    return of_tile_bytes(row, first / kTileChunkBytes * kTileChunkBytes);
  }
  std::vector<std::int64_t> numbers(const std::string& word) const {
    std::vector<std::int64_t> all;
    for (std::size_t at = 0; at <= word.size();) {
      const std::size_t colon = std::min(word.find(':', at), word.size());
      all.push_back(number(word.substr(at, colon - at)));
      at = colon + 1;
    }
    return all;
  }
  Target lane(const std::string& word) const {
    const std::vector<std::int64_t> all = numbers(word);
    if (all.size() > 2) not_understood();
    return of_tile_lane(all.size() == 2 ? all[0] : 0, all.back());
  }
  Target tile_register(const std::string& word) const {
    const std::vector<std::int64_t> all = numbers(word);
    if (all.size() < 2 || all.size() > 3) not_understood();
    return of_tile_register({all.size() == 3 ? all[0] : 0, all[all.size() - 2], all.back(), 0});
  }
  Target event(std::int64_t number) const {
    check("event", number, facts_.events);
    return FindPosition{Position{number + 1}};  // a position counts the events before it, this one included
  }

  std::string_view text_;
  const Facts& facts_;
  std::vector<std::string> words_;
};

}  // namespace

Target parse_find(std::string_view text, const Facts& facts) {
  return Parser(text, facts).parse();
}

std::optional<StepIdx> first_step_of(const Run& run, SeqIdx seq, TokIdx token) {
  const EventTape& tape = run.tape();
  if (tape.size() > kMostSearched) return std::nullopt;
  for (EventTape::Reader reader(tape, 0); reader.position() < tape.size();) {
    const trace::Event event = reader.next();
    const auto* written = std::get_if<trace::TokensWritten>(&event);
    const auto* admitted = std::get_if<trace::RequestAdmitted>(&event);
    const bool computed =
        written != nullptr && written->seq == seq && written->first_token.value + written->tokens > token.value;
    const bool found = admitted != nullptr && admitted->seq == seq && admitted->hit_tokens > token.value;
    if (computed || found) return run.state_at(Position{reader.position()}).step;
  }
  return std::nullopt;
}

}  // namespace kvscope::viz
