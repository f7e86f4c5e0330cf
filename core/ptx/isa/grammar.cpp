#include "core/ptx/isa/grammar.h"

#include <array>
#include <charconv>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>

namespace kvscope::ptx {
namespace {

struct Group {
  std::string_view name;
  std::string_view choices;
};

constexpr Group kGroups[] = {
    // types
    {"int", "u16|u32|u64|s16|s32|s64"},
    {"int8", "u8|u16|u32|u64|s8|s16|s32|s64"},
    {"memory32", "b8|b16|b32|u8|u16|u32|s8|s16|s32|f32"},
    {"memory64", "b64|u64|s64|f64"},
    // floating point
    {"rnd", "rn|rz|rm|rp"},
    {"rnd-integer", "rni|rzi|rmi|rpi"},
    // comparison
    {"equal", "eq|ne"},
    {"order", "eq|ne|lt|le|gt|ge"},
    {"unsigned-order", "lo/unsigned|ls|hi/unsigned|hs"},
    {"unordered", "equ|neu|ltu|leu|gtu|geu|num|nan"},
    {"logic", "and|or|xor"},
    // memory
    {"space", "param|param::entry|param::func|const|global|local|shared|shared::cta|shared::cluster"},
    {"window", "param|param::entry|const|global|local|shared|shared::cta|shared::cluster"},
    {"load-order", "weak|volatile"},
    {"store-order", "weak|volatile"},
    {"scope", "cta|cluster|gpu|sys"},
    {"load-cache", "ca|cg|cs|lu|cv"},
    {"store-cache", "wb|cg|cs|wt"},
    {"hint",
     "L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate|"
     "L2::evict_normal|L2::evict_first|L2::evict_last|L2::64B|L2::128B|L2::256B|L2::cache_hint"},
    {"prefetch-size", "L2::64B|L2::128B|L2::256B"},
    {"L2-first", "L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged"},
    {"L2-second", "L2::evict_first|L2::evict_unchanged"},
    {"atomic-order", "relaxed|acquire|release|acq_rel"},
    {"reduction-order", "relaxed|release"},
    {"atomic-space", "global|shared|shared::cta|shared::cluster"},
    // barriers
    {"proxy-space", "global|shared::cta|shared::cluster"},
    {"arrive-order", "release|relaxed"},
    {"wait-order", "acquire|relaxed"},
    {"barrier-scope", "cta|cluster"},
    {"barrier-space", "shared|shared::cta|shared::cluster"},
    {"fragment-space", "global|shared|shared::cta"},
};

struct Meaning {
  std::string_view word;
  Mod mod;
};
constexpr Meaning kMeanings[] = {
    {"lo/unsigned", Mod::lo_unsigned},
    {"hi/unsigned", Mod::hi_unsigned},
    {"row/a", Mod::a_row},
    {"col/a", Mod::a_col},
    {"row/b", Mod::b_row},
    {"col/b", Mod::b_col},
};

// The table is ours: what it says wrongly is our own mistake, found by the first test that asks for it.
[[noreturn]] void wrong_notation(std::string_view what) {
  throw std::logic_error("instruction table: '" + std::string(what) + "' is no notation");
}

std::string_view cut(std::string_view& text, char at) {
  const std::size_t end = text.find(at);
  const std::string_view head = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  return head;
}

bool drop_suffix(std::string_view& text, char suffix) {
  if (text.empty() || text.back() != suffix) return false;
  text.remove_suffix(1);
  return true;
}

bool drop_prefix(std::string_view& text, char prefix) {
  if (text.empty() || text.front() != prefix) return false;
  text.remove_prefix(1);
  return true;
}

// The first of its name: lo of mul, not of setp.
std::optional<Mod> mod_of(std::string_view word) {
  for (const Meaning& m : kMeanings) {
    if (m.word == word) return m.mod;
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(Mod::count); ++i) {
    if (name(static_cast<Mod>(i)) == word) return static_cast<Mod>(i);
  }
  return std::nullopt;
}

// "m64nNk16": n 0, n_step 8. False: no shape.
bool read_shape(std::string_view word, Choice& choice) {
  const auto number = [&](char letter, std::int32_t& value) {
    if (!drop_prefix(word, letter)) return false;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc{}) return false;
    word.remove_prefix(static_cast<std::size_t>(end - word.data()));
    return true;
  };
  if (!number('m', choice.shape.m)) return false;
  if (word.starts_with("nN")) choice.n_step = 8;
  if (word.starts_with("nM")) choice.n_step = 16;
  if (choice.n_step != 0) {
    word.remove_prefix(2);
  } else if (!number('n', choice.shape.n)) {
    return false;
  }
  return word.empty() || (number('k', choice.shape.k) && word.empty());
}

void add_choices(std::string_view text, std::vector<Choice>& choices) {
  while (!text.empty()) {
    std::string_view word = cut(text, '|');
    if (word.front() == '<') {
      const std::string_view group = word.substr(1, word.size() - 2);
      bool found = false;
      for (const Group& g : kGroups) {
        if (g.name != group) continue;
        add_choices(g.choices, choices);
        found = true;
      }
      if (!found) wrong_notation(word);
      continue;
    }
    Choice choice;
    choice.written = word.substr(0, word.find('/'));
    if (const auto type = type_from_name(word)) {
      choice.kind = Choice::Kind::type;
      choice.type = *type;
    } else if (const auto mod = mod_of(word)) {
      choice.mod = *mod;
    } else if (word == "v2" || word == "v4" || word == "v8") {
      choice.kind = Choice::Kind::vector;
      choice.vector = word[1] - '0';
    } else if (read_shape(word, choice)) {
      choice.kind = Choice::Kind::shape;
    } else {
      wrong_notation(word);
    }
    choices.push_back(choice);
  }
}

std::vector<Slot> read_words(std::string_view text) {
  std::vector<Slot> slots;
  while (!text.empty()) {
    std::string_view item = cut(text, ' ');
    if (item.empty()) continue;
    Slot slot;
    slot.repeated = drop_suffix(item, '*');
    slot.optional = drop_suffix(item, '?') || slot.repeated;
    add_choices(item, slot.choices);
    slots.push_back(std::move(slot));
  }
  return slots;
}

std::optional<Space> fixed_space(std::string_view word) {
  if (word == "global") return Space::global;
  if (word == "shared") return Space::shared;
  return std::nullopt;
}

// "T", "T2", "W", "Rd", "u32", "A", "A:shared", "M", "L".
void read_operand_name(std::string_view word, OperandPattern& p) {
  using From = OperandPattern::TypeFrom;
  if (word == "T" || word == "T2" || word == "T3" || word == "T4") {
    p.type_from = From::word;
    p.which = word.size() == 1 ? 0 : word[1] - '1';
  } else if (word == "W") {
    p.type_from = From::wide;
  } else if (word.size() == 2 && word[0] == 'R') {
    p.type_from = From::matrix;
    p.elements = OperandPattern::Elements::fragment;
    p.which = word[1];
  } else if (word == "A") {
    p.rule.role = Role::address;
    p.space_from_word = true;
  } else if (word.starts_with("A:") && fixed_space(word.substr(2))) {
    p.rule.role = Role::address;
    p.rule.space = *fixed_space(word.substr(2));
  } else if (word == "M") {
    p.rule.role = Role::address;
    p.map = true;
  } else if (word == "L") {
    p.rule.role = Role::target;
  } else if (const auto type = type_from_name(word)) {
    p.rule.type = *type;
  } else {
    wrong_notation(word);
  }
}

OperandPattern read_operand(std::string_view item) {
  OperandPattern p;
  if (drop_prefix(item, '=')) p.rule.role = Role::written;
  if (drop_prefix(item, '+')) p.rule.role = Role::read_written;
  p.rule.constant = drop_prefix(item, '#');
  p.rule.wider = drop_prefix(item, '~');
  std::string_view rest = item;
  item = cut(rest, '@');
  if (!rest.empty()) {
    const auto mod = mod_of(rest);
    if (!mod) wrong_notation(rest);
    p.when = *mod;
  }
  const bool question = drop_suffix(item, '?');
  p.rule.packs = drop_suffix(item, '&');
  rest = item;
  item = cut(rest, '/');
  if (!rest.empty()) p.rule.alternative = type_from_name(rest).value_or(Type::none);
  rest = item;
  item = cut(rest, '|');
  if (!rest.empty()) {
    p.rule.second = type_from_name(rest).value_or(Type::none);
    p.rule.pair = !question;
  } else {
    p.optional = question;
  }
  rest = item;
  item = cut(rest, '*');
  if (rest == "v") p.elements = OperandPattern::Elements::vector;
  if (rest == "n") p.elements = OperandPattern::Elements::matrices;
  read_operand_name(item, p);
  return p;
}

std::vector<OperandPattern> read_operands(std::string_view text) {
  std::vector<OperandPattern> operands;
  while (!text.empty()) {
    const std::string_view item = cut(text, ' ');
    if (!item.empty() && item != "...") operands.push_back(read_operand(item));
  }
  return operands;
}

struct Grammar {
  std::vector<Pattern> patterns;
  std::unordered_map<std::string_view, std::vector<std::int32_t>> by_base;

  Grammar() {
    const std::span<const Form> subjects[] = {
        integer_forms(), bit_forms(),     float_forms(),   convert_forms(), memory_forms(),   atomic_forms(),
        warp_forms(),    control_forms(), barrier_forms(), copy_forms(),    mbarrier_forms(), matrix_forms(),
    };
    for (const auto forms : subjects) {
      for (const Form& form : forms) {
        by_base[form.base].push_back(static_cast<std::int32_t>(patterns.size()));
        patterns.push_back({&form, read_words(form.words), read_operands(form.operands)});
      }
    }
  }
};

const Grammar& grammar() {
  static const Grammar all;
  return all;
}

}  // namespace

std::span<const Pattern> patterns() {
  return grammar().patterns;
}

std::span<const std::int32_t> patterns_of(std::string_view base) {
  const auto found = grammar().by_base.find(base);
  return found == grammar().by_base.end() ? std::span<const std::int32_t>{} : found->second;
}

}  // namespace kvscope::ptx
