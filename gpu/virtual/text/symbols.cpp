#include "gpu/virtual/text/detail/symbols.h"

#include <algorithm>
#include <cstring>

namespace kvscope::ptx {
namespace {

constexpr std::size_t kFirstChains = 256;  // a power of two
constexpr std::size_t kMostDigits = 7;     // of a register's number in a range: kMostRegisters has seven

std::uint32_t hash_of(std::string_view name) {
  constexpr std::uint64_t kMultiplier = 0x9e3779b97f4a7c15u;
  std::uint64_t h = name.size() * kMultiplier;
  const char* at = name.data();
  std::size_t left = name.size();
  for (; left >= 8; left -= 8, at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, 8);
    h = (h ^ word) * kMultiplier;
    h ^= h >> 29;
  }
  std::uint64_t tail = 0;
  for (std::size_t i = 0; i < left; ++i) tail = tail << 8 | static_cast<unsigned char>(at[i]);
  h = (h ^ tail) * kMultiplier;
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

// Of at least one digit. -1: not a valid number in a range.
std::int32_t number_of(std::string_view digits) {
  if (digits.size() > kMostDigits) return -1;
  std::int32_t number = 0;
  for (const char c : digits) number = number * 10 + (c - '0');
  return number;
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
    for (std::size_t i = 0; i < symbols_.size(); ++i) {  // oldest first: the newest are at the front again
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
  Symbol symbol;
  symbol.name = name;
  symbol.kind = kind;
  symbol.index = index;
  symbol.at = at;
  push(symbol);
  const std::size_t digits_at = digits_begin(name);
  if (digits_at != name.size()) push_digits(name.substr(0, digits_at), at);
}

void SymbolTable::declare_range(std::string_view prefix, std::int32_t first, std::int32_t count, std::int32_t stride,
                                TextPlace at) {
  Symbol symbol;
  symbol.name = prefix;
  symbol.kind = SymbolKind::range;
  symbol.index = first;
  symbol.count = count;
  symbol.stride = stride;
  symbol.at = at;
  push(symbol);
}

// One marker per scope is enough, unless a range was declared after it: thousands of names param0, param1, ... must not
// make a chain of thousands.
void SymbolTable::push_digits(std::string_view prefix, TextPlace at) {
  const std::uint32_t hash = hash_of(prefix);
  for (std::int32_t i = chains_[hash & (chains_.size() - 1)]; i >= 0; i = symbols_[static_cast<std::size_t>(i)].next) {
    const Symbol& s = symbols_[static_cast<std::size_t>(i)];
    if (s.hash != hash || s.name != prefix) continue;
    if (s.kind == SymbolKind::range || s.scope != scope()) break;
    if (s.kind == SymbolKind::digits) return;
  }
  Symbol symbol;
  symbol.name = prefix;
  symbol.kind = SymbolKind::digits;
  symbol.at = at;
  push(symbol);
}

std::int32_t SymbolTable::newest(std::string_view name, std::uint32_t hash) const {
  for (std::int32_t i = chains_[hash & (chains_.size() - 1)]; i >= 0; i = symbols_[static_cast<std::size_t>(i)].next) {
    const Symbol& s = symbols_[static_cast<std::size_t>(i)];
    if (s.hash == hash && s.kind != SymbolKind::range && s.kind != SymbolKind::digits && s.name == name) return i;
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

// The newest entry in the chain of "%r" determines what "%r12" means: a register of that range or, if the entry is a
// marker, possibly a symbol with that whole name. Only then is a second lookup needed.
Found SymbolTable::find_with_digits(std::string_view name, std::size_t digits_at) const {
  const std::string_view prefix = name.substr(0, digits_at);
  const std::uint32_t hash = hash_of(prefix);
  const std::int32_t number = number_of(name.substr(digits_at));
  bool alone = false;
  std::int32_t best = -1;
  for (std::int32_t i = chains_[hash & (chains_.size() - 1)]; i >= 0; i = symbols_[static_cast<std::size_t>(i)].next) {
    const Symbol& s = symbols_[static_cast<std::size_t>(i)];
    if (s.hash != hash || s.name != prefix) continue;
    alone = alone || s.kind == SymbolKind::digits;
    if (s.kind == SymbolKind::range && number >= 0 && number < s.count) {
      best = i;
      break;
    }
  }
  if (alone) best = std::max(best, newest(name, hash_of(name)));
  if (best < 0) return {};
  const Symbol& s = symbols_[static_cast<std::size_t>(best)];
  return {&s, s.kind == SymbolKind::range ? s.index + number * s.stride : s.index};
}

Found SymbolTable::find_here(std::string_view name) const {
  const Found found = find(name);
  return found && found.symbol->scope == scope() ? found : Found{};
}

}  // namespace kvscope::ptx
