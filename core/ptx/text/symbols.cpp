#include "core/ptx/text/symbols.h"

#include <algorithm>
#include <cstring>

namespace kvscope::ptx {
namespace {

constexpr std::size_t kFirstChains = 256;  // a power of two
constexpr std::size_t kMostDigits = 7;     // of the number of a register of a range: kMostRegisters has seven

std::uint32_t hash_of(std::string_view name) {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15u;
  std::uint64_t h = name.size() * kOdd;
  const char* at = name.data();
  std::size_t left = name.size();
  for (; left >= 8; left -= 8, at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, 8);
    h = (h ^ word) * kOdd;
    h ^= h >> 29;
  }
  std::uint64_t tail = 0;
  for (std::size_t i = 0; i < left; ++i) tail = tail << 8 | static_cast<unsigned char>(at[i]);
  h = (h ^ tail) * kOdd;
  return static_cast<std::uint32_t>(h >> 32);
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::size_t digits_begin(std::string_view name) {
  std::size_t at = name.size();
  while (at > 0 && is_digit(name[at - 1])) --at;
  return at;
}

// -1: no number as a range writes it ("012", too long).
std::int32_t number_of(std::string_view digits) {
  if (digits.empty() || digits.size() > kMostDigits || (digits[0] == '0' && digits.size() > 1)) return -1;
  std::int32_t number = 0;
  for (const char c : digits) number = number * 10 + (c - '0');
  return number;
}

bool is_helper(SymbolKind kind) {
  return kind == SymbolKind::digits || kind == SymbolKind::digit_range;
}

}  // namespace

SymbolTable::SymbolTable() : chains_(kFirstChains, -1) {}

void SymbolTable::close_scope() {
  for (std::size_t i = symbols_.size(); i > scopes_.back(); --i) {
    const Symbol& s = symbols_[i - 1];
    chains_[s.hash & (chains_.size() - 1)] = s.next;
  }
  symbols_.resize(scopes_.back());
  scopes_.pop_back();
}

void SymbolTable::push(Symbol symbol) {
  if (symbols_.size() >= chains_.size()) {
    chains_.assign(chains_.size() * 2, -1);
    for (std::size_t i = 0; i < symbols_.size(); ++i) {  // oldest first: the newest stand in front again
      std::int32_t& chain = chains_[symbols_[i].hash & (chains_.size() - 1)];
      symbols_[i].next = chain;
      chain = static_cast<std::int32_t>(i);
    }
  }
  symbol.hash = hash_of(symbol.name);
  symbol.scope = scope();
  std::int32_t& chain = chains_[symbol.hash & (chains_.size() - 1)];
  symbol.next = chain;
  chain = static_cast<std::int32_t>(symbols_.size());
  symbols_.push_back(symbol);
}

void SymbolTable::declare(std::string_view name, SymbolKind kind, std::int32_t index, TextPlace at) {
  push({name, kind, index, 1, 0, at});
  const std::size_t digits_at = digits_begin(name);
  if (digits_at != name.size()) push_helper(name.substr(0, digits_at), SymbolKind::digits, at);
}

void SymbolTable::declare_range(std::string_view prefix, std::int32_t first, std::int32_t count, TextPlace at) {
  push({prefix, SymbolKind::range, first, count, 0, at});
  const std::size_t digits_at = digits_begin(prefix);
  if (digits_at != prefix.size()) push_helper(prefix.substr(0, digits_at), SymbolKind::digit_range, at);
}

// One of a kind and scope is enough, unless a range came after it: thousands of param0, param1, ... must not make a
// chain of thousands.
void SymbolTable::push_helper(std::string_view prefix, SymbolKind kind, TextPlace at) {
  const std::uint32_t hash = hash_of(prefix);
  for (std::int32_t i = chains_[hash & (chains_.size() - 1)]; i >= 0; i = symbols_[static_cast<std::size_t>(i)].next) {
    const Symbol& s = symbols_[static_cast<std::size_t>(i)];
    if (s.hash != hash || s.name != prefix) continue;
    if (s.kind == SymbolKind::range || s.scope != scope()) break;
    if (s.kind == kind) return;
  }
  push({prefix, kind, -1, 0, 0, at});
}

std::int32_t SymbolTable::newest(std::string_view name, std::uint32_t hash) const {
  for (std::int32_t i = chains_[hash & (chains_.size() - 1)]; i >= 0; i = symbols_[static_cast<std::size_t>(i)].next) {
    const Symbol& s = symbols_[static_cast<std::size_t>(i)];
    if (s.hash == hash && s.kind != SymbolKind::range && !is_helper(s.kind) && s.name == name) return i;
  }
  return -1;
}

Found SymbolTable::find(std::string_view name) const {
  const std::size_t digits_at = digits_begin(name);
  if (digits_at != name.size()) return find_with_digits(name, digits_at);
  const std::int32_t i = newest(name, hash_of(name));
  if (i < 0) return {};
  const Symbol& s = symbols_[static_cast<std::size_t>(i)];
  return {&s, s.index};
}

// The chain of "%r" says how "%r12" has been declared last: in a range there, or, when a helper stands before the range,
// perhaps as a name of its own or by a range with digits. Only then is there more to look for.
Found SymbolTable::find_with_digits(std::string_view name, std::size_t digits_at) const {
  const std::string_view prefix = name.substr(0, digits_at);
  const std::uint32_t hash = hash_of(prefix);
  const std::int32_t number = number_of(name.substr(digits_at));
  bool alone = false;
  bool in_digit_range = false;
  std::int32_t best = -1;
  for (std::int32_t i = chains_[hash & (chains_.size() - 1)]; i >= 0; i = symbols_[static_cast<std::size_t>(i)].next) {
    const Symbol& s = symbols_[static_cast<std::size_t>(i)];
    if (s.hash != hash || s.name != prefix) continue;
    alone = alone || s.kind == SymbolKind::digits;
    in_digit_range = in_digit_range || s.kind == SymbolKind::digit_range;
    if (s.kind == SymbolKind::range && number >= 0 && number < s.count) {
      best = i;
      break;
    }
  }
  Found found;
  if (best >= 0)
    found = {&symbols_[static_cast<std::size_t>(best)], symbols_[static_cast<std::size_t>(best)].index + number};
  if (alone) {
    const std::int32_t i = newest(name, hash_of(name));
    if (i > best) {
      best = i;
      found = {&symbols_[static_cast<std::size_t>(i)], symbols_[static_cast<std::size_t>(i)].index};
    }
  }
  if (!in_digit_range) return found;
  const std::size_t last = std::min(name.size(), digits_at + 1 + 2 * kMostDigits);
  for (std::size_t at = std::max(digits_at + 1, name.size() > kMostDigits ? name.size() - kMostDigits : 0); at < last;
       ++at) {
    const std::int32_t n = number_of(name.substr(at));
    const std::uint32_t h = hash_of(name.substr(0, at));
    for (std::int32_t i = chains_[h & (chains_.size() - 1)]; i > best; i = symbols_[static_cast<std::size_t>(i)].next) {
      const Symbol& s = symbols_[static_cast<std::size_t>(i)];
      if (s.kind != SymbolKind::range || s.name != name.substr(0, at) || n < 0 || n >= s.count) continue;
      best = i;
      found = {&s, s.index + n};
    }
  }
  return found;
}

Found SymbolTable::find_here(std::string_view name) const {
  const Found found = find(name);
  return found && found.symbol->scope == scope() ? found : Found{};
}

}  // namespace kvscope::ptx
