#include "gpu/virtual/isa/grammar.h"

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
    {"up-to-8-bits", "e4m3|e5m2|e2m3|e3m2|e2m1"},
    {"up-to-6-bits", "e2m3|e3m2|e2m1"},
    {"sparse", "sp|sp::ordered_metadata"},
    // comparison
    {"equal", "eq|ne"},
    {"order", "eq|ne|lt|le|gt|ge"},
    {"unsigned-order", "lo/unsigned|ls|hi/unsigned|hs"},
    {"unordered", "equ|neu|ltu|leu|gtu|geu|num|nan"},
    {"logic", "and|or|xor"},
    // memory
    {"space", "param|param::entry|param::func|const|global|local|shared|shared::cta|shared::cluster"},
    {"window", "param|param::entry|const|global|local|shared|shared::cta|shared::cluster"},
    {"storable", "param|param::func|global|local|shared|shared::cta|shared::cluster"},
    {"ordered", "global|shared|shared::cta|shared::cluster"},
    {"scope", "cta|cluster|gpu|sys"},
    {"load-cache", "ca|cg|cs|lu|cv"},
    {"store-cache", "wb|cg|cs|wt"},
    {"nc-cache", "ca|cg|cs"},
    {"L1-eviction", "L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate"},
    {"L2-eviction", "L2::evict_normal|L2::evict_first|L2::evict_last"},
    {"prefetch-size", "L2::64B|L2::128B|L2::256B"},
    {"L2-first", "L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged"},
    {"L2-second", "L2::evict_first|L2::evict_unchanged"},
    {"atomic-order", "relaxed|acquire|release|acq_rel"},
    {"reduction-order", "relaxed|release"},
    {"shared", "shared|shared::cta|shared::cluster"},
    // copies and barriers
    {"dim", "1d|2d|3d|4d|5d"},
    {"complete-tx", "mbarrier::complete_tx::bytes"},
    {"proxy-space", "global|shared::cta|shared::cluster"},
    {"arrive-order", "release|relaxed"},
    {"wait-order", "acquire|relaxed"},
    {"barrier-scope", "cta|cluster"},
    {"barrier-space", "shared|shared::cta|shared::cluster"},
    {"own-barrier", "shared|shared::cta"},
    {"fragment-space", "global|shared|shared::cta"},
    // tensor memory
    {"cta-group", "cta_group::1|cta_group::2"},
    {"repeats-to-32", "x1|x2|x4|x8|x16|x32"},
    {"repeats-to-64", "x1|x2|x4|x8|x16|x32|x64"},
    {"repeats-to-128", "x1|x2|x4|x8|x16|x32|x64|x128"},
    {"collector-b0", "collector::b0::fill|collector::b0::use|collector::b0::lastuse|collector::b0::discard"},
    {"collector-b1", "collector::b1::fill|collector::b1::use|collector::b1::lastuse|collector::b1::discard"},
    {"collector-b2", "collector::b2::fill|collector::b2::use|collector::b2::lastuse|collector::b2::discard"},
    {"collector-b3", "collector::b3::fill|collector::b3::use|collector::b3::lastuse|collector::b3::discard"},
    {"collector-a", "collector::a::fill|collector::a::use|collector::a::lastuse|collector::a::discard"},
};

// A row with {name} in its words expands to one row for each of these.
constexpr Group kRows[] = {
    {"memory", "v2|v4? <memory32>"},
    {"memory", "v2? <memory64>"},
    {"memory", "b128"},
    {"memory-of-32-bytes", "v8 b32|u32|s32|f32"},
    {"memory-of-32-bytes", "v4 <memory64>"},
    {"compare", "<equal> b16|b32|b64"},
    {"compare", "<order> s16|s32|s64"},
    {"compare", "<order>|<unsigned-order> u16|u32|u64"},
    {"compare", "<order>|<unordered> ftz? f32"},
    {"compare", "<order>|<unordered> f64"},
    {"compare-half", "<order>|<unordered> ftz? f16"},
    {"compare-half", "<order>|<unordered> bf16"},
    {"compare-halves", "<order>|<unordered> ftz? f16x2"},
    {"compare-halves", "<order>|<unordered> bf16x2"},
    {"reduce", "add u32|s32|u64|f32|f64"},
    {"reduce", "add noftz f16|f16x2|bf16|bf16x2"},
    {"reduce", "min|max u32|s32|u64|s64"},
    {"reduce", "inc|dec u32"},
    {"reduce", "and|or|xor b32|b64"},
    {"reduce-vector", "add v2|v4 f32"},
    {"reduce-vector", "add|min|max noftz v2|v4|v8 f16|bf16"},
    {"reduce-vector", "add|min|max noftz v2|v4 f16x2|bf16x2"},
    {"reduce-bulk", "add u32|s32|u64|f32|f64"},
    {"reduce-bulk", "add noftz f16|bf16"},
    {"reduce-bulk", "min|max u32|s32|u64|s64|f16|bf16"},
    {"reduce-bulk", "inc|dec u32"},
    {"reduce-bulk", "and|or|xor b32|b64"},
    {"reduce-remote", "add u32|s32|u64"},
    {"reduce-remote", "min|max u32|s32"},
    {"reduce-remote", "inc|dec u32"},
    {"reduce-remote", "and|or|xor b32"},
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

// The table is part of the program, so a malformed entry is a defect of the program. The first test that uses it fails.
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

// The first modifier with that name: lo of mul, not of setp.
std::optional<Mod> mod_of(std::string_view word) {
  for (const Meaning& m : kMeanings) {
    if (m.word == word) return m.mod;
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(Mod::count); ++i) {
    if (name(static_cast<Mod>(i)) == word) return static_cast<Mod>(i);
  }
  return std::nullopt;
}

// "m64nNk16": n 0, n_step 8. False: not a shape.
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

// "{compare} <logic>" -> "<equal> b16|b32|b64 <logic>", "<order> s16|s32|s64 <logic>" ...
std::vector<std::string> rows_of(std::string_view words) {
  const std::size_t open = words.find('{');
  if (open == std::string_view::npos) return {std::string(words)};
  const std::size_t close = words.find('}', open);
  const std::string_view wanted = words.substr(open + 1, close - open - 1);
  std::vector<std::string> rows;
  for (const Group& row : kRows) {
    if (row.name == wanted) {
      rows.push_back(std::string(words.substr(0, open)) + std::string(row.choices) +
                     std::string(words.substr(close + 1)));
    }
  }
  if (rows.empty()) wrong_notation(words);
  return rows;
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
  } else if (word == "mask") {
    p.rule.type = Type::u16;
    p.when = Mod::multicast_cluster;
  } else if (word == "policy") {
    p.rule.type = Type::u64;
    p.when = Mod::L2_cache_hint;
  } else if (word == "_") {
    p.rule.type = Type::none;
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
  p.rule.in_register = drop_prefix(item, '%');
  p.rule.wider = drop_prefix(item, '~');
  const bool question = drop_suffix(item, '?');
  p.rule.packs = drop_suffix(item, '&');
  std::string_view rest = item;
  item = cut(rest, '/');
  p.rule.or_address = rest == "A";
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
  if (rest == "m") p.elements = OperandPattern::Elements::lane_mask;
  if (rest == "p") p.elements = OperandPattern::Elements::pair;
  if (rest == "q") p.elements = OperandPattern::Elements::four;
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

// Alternative names of opcodes.
struct Alias {
  std::string_view base;
  Opcode opcode;
};
constexpr Alias kAliases[] = {
    {"bar.cta.sync", Opcode::bar_sync},
    {"barrier.sync", Opcode::bar_sync},
    {"barrier.cta.sync", Opcode::bar_sync},
    {"bar.cta.arrive", Opcode::bar_arrive},
    {"barrier.arrive", Opcode::bar_arrive},
    {"barrier.cta.arrive", Opcode::bar_arrive},
    {"bar.cta.red", Opcode::bar_red},
    {"barrier.red", Opcode::bar_red},
    {"barrier.cta.red", Opcode::bar_red},
    {"prefetch.param.tensormap", Opcode::prefetch_tensormap},
    {"prefetch.const.tensormap", Opcode::prefetch_tensormap},
};

Opcode opcode_of(std::string_view base) {
  for (const Alias& alias : kAliases) {
    if (alias.base == base) return alias.opcode;
  }
  for (int i = 0; i < static_cast<int>(Opcode::unsupported); ++i) {
    if (name(static_cast<Opcode>(i)) == base) return static_cast<Opcode>(i);
  }
  wrong_notation(base);
}

struct Grammar {
  std::vector<Pattern> patterns;
  std::unordered_map<std::string_view, std::vector<std::int32_t>> by_base;

  Grammar() {
    const std::span<const Form> families[] = {
        integer_forms(), bit_forms(),     float_forms(), convert_forms(),  memory_forms(), atomic_forms(), warp_forms(),
        control_forms(), barrier_forms(), copy_forms(),  mbarrier_forms(), matrix_forms(), tensor_forms(),
    };
    for (const auto forms : families) {
      for (const Form& form : forms) {
        for (const std::string& words : rows_of(form.words)) {
          by_base[form.base].push_back(static_cast<std::int32_t>(patterns.size()));
          patterns.push_back({&form, opcode_of(form.base), read_words(words), read_operands(form.operands)});
        }
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
