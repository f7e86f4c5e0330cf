#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "core/base/numbers.h"
#include "gpu/virtual/isa/grammar.h"
#include "gpu/virtual/isa/instr.h"

namespace kvscope::ptx {
namespace {

constexpr std::size_t kMostWords = 32;  // more than any instruction has; longer words are not instructions

// "ld.global.v4.f32" -> ld global v4 f32. A part with "::" stays whole.
std::vector<std::string_view> split(std::string_view word) {
  std::vector<std::string_view> words;
  while (words.size() <= kMostWords) {
    const std::size_t dot = word.find('.');
    words.push_back(word.substr(0, dot));
    if (dot == std::string_view::npos) break;
    word.remove_prefix(dot + 1);
  }
  return words;
}

// The prefix of `word` with its first `count` dotted words.
std::string_view first_words(std::string_view word, std::span<const std::string_view> words, std::size_t count) {
  const std::string_view last = words[count - 1];
  return word.substr(0, static_cast<std::size_t>(last.data() + last.size() - word.data()));
}

bool has_words(std::span<const std::string_view> written, std::string_view needed) {
  while (!needed.empty()) {
    const std::size_t blank = needed.find(' ');
    if (std::ranges::find(written, needed.substr(0, blank)) == written.end()) return false;
    needed = blank == std::string_view::npos ? std::string_view{} : needed.substr(blank + 1);
  }
  return true;
}

std::string_view refused(std::string_view base, std::span<const std::string_view> rest) {
  for (const Refusal& r : refusals()) {
    if ((r.base.empty() || r.base == base) && has_words(rest, r.word)) return r.message;
  }
  return {};
}

// N of m64nNk16, written "m64n48k16"; -1: a different shape.
std::int32_t free_n(const Choice& choice, std::string_view word) {
  const std::string_view written = choice.written;
  const std::string_view head = written.substr(0, written.find_first_of("NM"));
  const std::string_view tail = written.substr(head.size() + 1);
  if (word.size() <= head.size() + tail.size() || !word.starts_with(head) || !word.ends_with(tail)) return -1;
  const std::string_view digits = word.substr(head.size(), word.size() - head.size() - tail.size());
  const auto number = whole_number<std::int32_t>(digits);
  if (!number || digits[0] == '0') return -1;
  const std::int32_t n = *number;
  const bool small = choice.n_step == 16 && (n == 8 || n == 24);
  return n >= 8 && n <= 256 && (n % choice.n_step == 0 || small) ? n : -1;
}

bool is_written(const Choice& choice, std::string_view word) {
  return choice.n_step == 0 ? choice.written == word : free_n(choice, word) > 0;
}

void take(const Choice& choice, std::string_view word, Instr& instr) {
  switch (choice.kind) {
    case Choice::Kind::mod:
      instr.mods.set(static_cast<std::size_t>(choice.mod));
      break;
    case Choice::Kind::type:
      instr.types[static_cast<std::size_t>(instr.type_count)] = choice.type;
      ++instr.type_count;
      break;
    case Choice::Kind::vector:
      instr.vector = choice.vector;
      break;
    case Choice::Kind::shape:
      instr.shape = choice.shape;
      if (choice.n_step != 0) instr.shape.n = free_n(choice, word);
      break;
  }
}

// The result of matching a word against a form.
struct Match {
  Instr instr;
  std::string_view left_over;  // the first word that matches no slot
  int left_over_count = 0;
  const Slot* missing = nullptr;  // the first required slot without a word
};

// Types fill their slots in order; every other word fills the first free slot it matches.
Match match(const Pattern& pattern, std::span<const std::string_view> rest) {
  Match m;
  std::vector<bool> used(pattern.slots.size());
  std::size_t types_from = 0;
  for (const std::string_view word : rest) {
    bool placed = false;
    for (std::size_t s = 0; s < pattern.slots.size() && !placed; ++s) {
      const Slot& slot = pattern.slots[s];
      if (used[s] && !slot.repeated) continue;
      for (const Choice& choice : slot.choices) {
        const bool type = choice.kind == Choice::Kind::type;
        if ((type && s < types_from) || !is_written(choice, word)) continue;
        if (type) types_from = s + 1;
        take(choice, word, m.instr);
        used[s] = placed = true;
        break;
      }
    }
    if (placed) continue;
    if (m.left_over_count++ == 0) m.left_over = word;
  }
  for (std::size_t s = 0; s < pattern.slots.size() && m.missing == nullptr; ++s) {
    if (!used[s] && !pattern.slots[s].optional) m.missing = &pattern.slots[s];
  }
  return m;
}

bool known_to(std::string_view base, std::string_view word) {
  for (const std::int32_t i : patterns_of(base)) {
    for (const Slot& slot : patterns()[static_cast<std::size_t>(i)].slots) {
      if (std::ranges::any_of(slot.choices, [&](const Choice& c) { return is_written(c, word); })) return true;
    }
  }
  return false;
}

std::string choices_of(const Slot& slot) {
  std::string text;
  for (const Choice& choice : slot.choices) text += fmt::format("{}.{}", text.empty() ? "" : " ", choice.written);
  return text;
}

// The message for the form that fits best.
std::string what_is_wrong(std::string_view base, const Match& best) {
  if (best.left_over_count > 0) {
    if (!known_to(base, best.left_over)) return fmt::format("unknown modifier '.{}'", best.left_over);
    return fmt::format("modifier '.{}' does not go with the others of {}", best.left_over, base);
  }
  const Slot& slot = *best.missing;
  if (slot.choices.size() == 1) return fmt::format("{} without '.{}'", base, slot.choices[0].written);
  return fmt::format("{} without one of {}", base, choices_of(slot));
}

std::int32_t distance(const Match& m) {
  return 2 * m.left_over_count + (m.missing != nullptr ? 1 : 0);
}

Instr unsupported(std::string message) {
  Instr instr;
  instr.unsupported = std::move(message);
  return instr;
}

}  // namespace

Instr understand(std::string_view word) {
  const std::vector<std::string_view> words = split(word);
  if (words.size() > kMostWords) return unsupported(fmt::format("unknown opcode '{}'", words[0]));

  std::size_t base_words = words.size();
  std::string_view base;
  for (; base_words > 0; --base_words) {
    base = first_words(word, words, base_words);
    const std::span rest = std::span(words).subspan(base_words);
    if (const std::string_view message = refused(base, rest); !message.empty())
      return unsupported(std::string(message));
    if (!patterns_of(base).empty()) break;
  }
  if (base_words == 0) return unsupported(fmt::format("unknown opcode '{}'", words[0]));

  const std::span rest = std::span(words).subspan(base_words);
  Match best;
  bool first = true;
  for (const std::int32_t i : patterns_of(base)) {
    const Pattern& pattern = patterns()[static_cast<std::size_t>(i)];
    Match m = match(pattern, rest);
    if (distance(m) == 0) {
      Instr instr = std::move(m.instr);
      instr.opcode = pattern.opcode;
      instr.form = i;
      instr.only_90a = pattern.form->target == kOnly90a;
      instr.only_100a = pattern.form->target == kOnly100a;
      instr.only_120a = pattern.form->target == kOnly120a;
      instr.least_target = instr.only_90a ? 90 : instr.only_100a ? 100 : instr.only_120a ? 120 : pattern.form->target;
      if (base.starts_with("barrier") && base.find("cluster") == std::string_view::npos && !instr.has(Mod::aligned)) {
        instr.mods.set(static_cast<std::size_t>(Mod::barrier));
      }
      return instr;
    }
    if (first || distance(m) < distance(best)) best = std::move(m);
    first = false;
  }
  return unsupported(what_is_wrong(base, best));
}

}  // namespace kvscope::ptx
