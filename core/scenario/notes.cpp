#include "core/scenario/notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/base/nearest_name.h"
#include "core/base/numbers.h"

namespace kvscope {
namespace {

constexpr std::array<std::string_view, 5> kNoteKeys{"step", "view", "select", "tile", "event"};

std::string_view trimmed_note(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

void add_note_number(std::string_view key, std::string_view value, std::string_view words,
                     std::optional<std::int64_t>& number, std::vector<std::string>& faults) {
  number = whole_number<std::int64_t>(value);
  if (number && *number >= 0) return;
  number.reset();
  faults.push_back(fmt::format("link [{}]: {}=\"{}\" is not a number: write a whole number from 0, such as {}=8", words,
                               key, value, key));
}

// One "key=value" of a link.
void add_note_item(std::string_view item, std::string_view words, NoteLink& link, std::vector<std::string_view>& seen,
                   std::vector<std::string>& faults) {
  const std::size_t equals = item.find('=');
  const std::string_view key = trimmed_note(item.substr(0, equals));
  const std::string_view value =
      equals == std::string_view::npos ? std::string_view{} : trimmed_note(item.substr(equals + 1));
  if (std::ranges::find(kNoteKeys, key) == kNoteKeys.end()) {
    faults.push_back(fmt::format("link [{}]: unknown key \"{}\"{}", words, key, suggest_name(key, kNoteKeys)));
  } else if (std::ranges::find(seen, key) != seen.end()) {
    faults.push_back(fmt::format("link [{}]: {} is given twice: keep one", words, key));
  } else if (value.empty()) {
    faults.push_back(fmt::format("link [{}]: {} has no value: write {}=...", words, key, key));
  } else if (key == "step") {
    add_note_number(key, value, words, link.step, faults);
  } else if (key == "event") {
    add_note_number(key, value, words, link.event, faults);
  } else {
    (key == "view" ? link.view : key == "select" ? link.select : link.tile) = value;
  }
  seen.push_back(key);
}

NoteLink note_link(std::string_view target, std::string_view words, std::vector<std::string>& faults) {
  NoteLink link;
  std::vector<std::string_view> seen;
  for (std::size_t at = 0; at <= target.size();) {
    const std::size_t end = std::min(target.find(',', at), target.size());
    add_note_item(target.substr(at, end - at), words, link, seen, faults);
    at = end + 1;
  }
  return link;
}

// "[words](target)" at the beginning of `text`.
struct NoteBrackets {
  std::string_view words, target;
  std::size_t size = 0;  // of the whole
};

std::optional<NoteBrackets> note_brackets(std::string_view text) {
  const std::size_t close = text.find_first_of("[]", 1);
  if (close == std::string_view::npos || text[close] != ']') return std::nullopt;
  if (close + 1 >= text.size() || text[close + 1] != '(') return std::nullopt;
  const std::size_t end = text.find(')', close);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view target = text.substr(close + 2, end - close - 2);
  if (target.find('=') == std::string_view::npos || target.find("://") != std::string_view::npos) return std::nullopt;
  return NoteBrackets{text.substr(1, close - 1), target, end + 1};
}

}  // namespace

std::vector<NotePart> parse_notes(std::string_view description, std::vector<std::string>& faults) {
  std::vector<NotePart> parts;
  std::size_t done = 0;
  const auto add_plain = [&](std::size_t end) {
    if (end > done) parts.push_back({std::string(description.substr(done, end - done)), std::nullopt});
  };
  for (std::size_t at = description.find('['); at != std::string_view::npos; at = description.find('[', at)) {
    const std::optional<NoteBrackets> found = note_brackets(description.substr(at));
    if (!found) {
      ++at;
      continue;
    }
    add_plain(at);
    parts.push_back({std::string(found->words), note_link(found->target, found->words, faults)});
    at += found->size;
    done = at;
  }
  add_plain(description.size());
  return parts;
}

std::vector<NotePart> parse_notes(std::string_view description) {
  std::vector<std::string> ignored;  // the reader of scenarios has reported them
  return parse_notes(description, ignored);
}

std::string plain_notes(std::string_view description) {
  std::string text;
  for (const NotePart& part : parse_notes(description)) text += part.text;
  return text;
}

}  // namespace kvscope
