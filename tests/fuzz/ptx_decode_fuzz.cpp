// Valid PTX with a few words changed: modifiers dropped, doubled and taken from elsewhere, operands exchanged, types,
// numbers and opcodes replaced, statements doubled, moved and omitted. The text still parses, so its faults are
// semantic.
// The module is either rejected, with a position in the text for each fault, or prepared and run for a while with all
// checks; it must never crash.
//
// An input is a PTX text; this target's mutator makes the changes, so that every input is readable and can be kept.
#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/errors.h"
#include "gpu/virtual/check/checks.h"
#include "gpu/virtual/check/counters.h"
#include "gpu/virtual/machine/device.h"
#include "gpu/virtual/text/parser.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

using namespace kvscope;

constexpr std::int64_t kMostInstructions = 1000;
constexpr std::int64_t kMostDeviceBytes = 1 << 20;

// --- tokens ----------------------------------------------------------------------------------------------------------

// Words (with their dots and %), numbers, strings and single characters, without blanks and comments.
std::vector<std::string> tokens_of(std::string_view text) {
  std::vector<std::string> out;
  const auto in_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '%' || c == '$' || c == ':';
  };
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    std::size_t end = i + 1;
    if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      i = end;
      continue;
    }
    if (text.substr(i, 2) == "//") {
      i = std::min(text.find('\n', i), text.size());
      continue;
    }
    if (text.substr(i, 2) == "/*") {
      const std::size_t close = text.find("*/", i + 2);
      i = close == text.npos ? text.size() : close + 2;
      continue;
    }
    if (c == '"') {
      end = std::min(text.find('"', i + 1), text.size() - 1) + 1;
    } else if (in_word(c)) {
      while (end < text.size() && in_word(text[end])) ++end;
    }
    out.emplace_back(text.substr(i, end - i));
    i = end;
  }
  return out;
}

// One statement per line.
std::string text_of(const std::vector<std::string>& tokens) {
  std::string out;
  for (const std::string& t : tokens) {
    out += t;
    out += t == ";" || t == "{" || t == "}" || t.ends_with(':') ? '\n' : ' ';
  }
  return out;
}

std::vector<std::string> parts_of(const std::string& word) {  // "ld.global.f32" -> ld .global .f32
  std::vector<std::string> out(1);
  for (const char c : word) {
    if (c == '.') out.emplace_back();
    out.back() += c;
  }
  return out;
}
std::string joined(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& p : parts) out += p;
  return out;
}

constexpr std::array<std::string_view, 24> kTypes{
    ".b8",  ".b16", ".b32",   ".b64",  ".b128", ".u8",  ".u16",  ".u32",  ".u64",    ".s8",     ".s16", ".s32",
    ".s64", ".f16", ".f16x2", ".bf16", ".f32",  ".f64", ".pred", ".tf32", ".bf16x2", ".e4m3x2", ".v2",  ".v4"};
constexpr std::array<std::string_view, 16> kNumbers{"0",
                                                    "1",
                                                    "-1",
                                                    "3",
                                                    "16",
                                                    "31",
                                                    "32",
                                                    "255",
                                                    "4096",
                                                    "0x7fffffff",
                                                    "0x80000000",
                                                    "0xffffffff",
                                                    "0xffffffffffffffff",
                                                    "0f7F800000",
                                                    "0dFFF0000000000000",
                                                    "1.5"};
constexpr std::array<std::string_view, 28> kOpcodes{
    "add",   "mad",  "shl",  "cvt",       "mov",      "ld",      "st",       "atom", "red", "setp",
    "selp",  "shfl", "vote", "bar",       "mbarrier", "cp",      "ldmatrix", "mma",  "bra", "prmt",
    "fence", "bfe",  "lop3", "tensormap", "wgmma",    "barrier", "min",      "elect"};

// --- one change ------------------------------------------------------------------------------------------------------

class Change {
 public:
  Change(std::vector<std::string> tokens, unsigned seed) : tokens_(std::move(tokens)), random_(seed) {
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const std::string& t = tokens_[i];
      if (t.size() > 1 && std::isalpha(static_cast<unsigned char>(t[0])) != 0 && t.find('.') != t.npos)
        words_.push_back(i);
      if (t[0] == '%' || (t.size() > 1 && std::isdigit(static_cast<unsigned char>(t[0])) != 0)) operands_.push_back(i);
      if (std::isdigit(static_cast<unsigned char>(t[0])) != 0) numbers_.push_back(i);
      if (t == ";") ends_.push_back(i);
    }
  }

  std::vector<std::string> made() {
    switch (below(9)) {
      case 0:
        modifiers();
        break;
      case 1:
        type();
        break;
      case 2:
        exchange(operands_);
        break;
      case 3:
        if (!numbers_.empty()) tokens_[pick(numbers_)] = pick(kNumbers);
        break;
      case 4:
        opcode();
        break;
      case 5:
        statement();
        break;
      case 6:
        if (!operands_.empty()) tokens_[pick(operands_)] = tokens_[pick(operands_)];
        break;
      case 7:
        exchange(words_);
        break;
      default:
        if (!operands_.empty()) tokens_.erase(tokens_.begin() + static_cast<std::ptrdiff_t>(pick(operands_)));
        break;
    }
    return std::move(tokens_);
  }

 private:
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_()) % n; }
  std::size_t pick(const std::vector<std::size_t>& of) { return of[below(of.size())]; }
  template <std::size_t kCount>
  std::string pick(const std::array<std::string_view, kCount>& of) {
    return std::string(of[below(kCount)]);
  }

  void modifiers() {
    if (words_.empty()) return;
    std::string& word = tokens_[pick(words_)];
    std::vector<std::string> parts = parts_of(word);
    const std::size_t at = 1 + below(parts.size() - 1);
    const auto place = parts.begin() + static_cast<std::ptrdiff_t>(at);
    switch (below(4)) {
      case 0:
        parts.erase(place);
        break;
      case 1:
        parts.insert(place, parts[at]);
        break;
      case 2:
        std::swap(parts[at], parts[1 + below(parts.size() - 1)]);
        break;
      default: {
        const std::vector<std::string> other = parts_of(tokens_[pick(words_)]);
        parts[at] = other[1 + below(other.size() - 1)];
        break;
      }
    }
    word = joined(parts);
  }
  void type() {
    if (words_.empty()) return;
    std::string& word = tokens_[pick(words_)];
    std::vector<std::string> parts = parts_of(word);
    parts[1 + below(parts.size() - 1)] = pick(kTypes);
    word = joined(parts);
  }
  void opcode() {
    if (words_.empty()) return;
    std::string& word = tokens_[pick(words_)];
    std::vector<std::string> parts = parts_of(word);
    parts[0] = pick(kOpcodes);
    word = joined(parts);
  }
  void exchange(const std::vector<std::size_t>& of) {
    if (of.size() > 1) std::swap(tokens_[pick(of)], tokens_[pick(of)]);
  }
  // Omitted, doubled, or moved.
  void statement() {
    if (ends_.size() < 2) return;
    const std::size_t n = 1 + below(ends_.size() - 1);
    const auto from = tokens_.begin() + static_cast<std::ptrdiff_t>(ends_[n - 1] + 1);
    const auto to = tokens_.begin() + static_cast<std::ptrdiff_t>(ends_[n] + 1);
    const std::vector<std::string> it(from, to);
    const std::size_t what = below(3), where = ends_[below(ends_.size())] + 1;
    if (what != 0) {
      tokens_.insert(tokens_.begin() + static_cast<std::ptrdiff_t>(where), it.begin(), it.end());
    }
    if (what != 1) {
      const std::size_t moved = what == 2 && where <= ends_[n - 1] + 1 ? it.size() : 0;
      const auto begin = tokens_.begin() + static_cast<std::ptrdiff_t>(ends_[n - 1] + 1 + moved);
      tokens_.erase(begin, begin + static_cast<std::ptrdiff_t>(it.size()));
    }
  }

  std::vector<std::string> tokens_;
  std::minstd_rand random_;
  std::vector<std::size_t> words_, operands_, numbers_, ends_;
};

// --- checks ----------------------------------------------------------------------------------------------------------

void run(const ptx::LoadedModule& module, ptx::Device& device, const ptx::Function& kernel, ptx::Policy policy) {
  ptx::LaunchConfig config;
  config.kernel = std::string(kernel.name);
  config.grid = {2, 1, 1};
  config.block = {128, 1, 1};
  config.dynamic_shared = 2048;
  const std::uint64_t memory = device.memory().allocate(8192, "memory");
  config.params.resize(static_cast<std::size_t>(kernel.parameter_bytes));
  for (std::size_t i = 0; i + 8 <= config.params.size(); i += 8) std::memcpy(config.params.data() + i, &memory, 8);
  config.options.limits.instructions = kMostInstructions;
  config.options.policy = policy;
  config.options.seed = policy == ptx::Policy::seeded ? 1 : 0;
  ptx::Checks checks({.global_init = true, .global_race = true, .uninit_regs = true, .uninit_local = true});
  ptx::Counters counters(*module.program);
  checks.add(counters);
  try {
    const ptx::LaunchResult result = device.launch(module, config, checks.monitor());
    for (const ptx::Report& report : result.reports) KVSCOPE_ASSERT(!ptx::to_text(report).empty());
  } catch (const GeometryError& e) {
    KVSCOPE_ASSERT(!e.faults().empty());
  }
}

// "12:7", or an empty text for a fault of the whole module.
bool is_place(std::string_view where) {
  const std::size_t colon = where.find(':');
  const auto digits = [](std::string_view s) {
    return !s.empty() && std::all_of(s.begin(), s.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  return where.empty() || (colon != where.npos && digits(where.substr(0, colon)) && digits(where.substr(colon + 1)));
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  if (seed % 64 == 0) return LLVMFuzzerMutate(data, size, most);
  std::vector<std::string> tokens = tokens_of(std::string_view(reinterpret_cast<const char*>(data), size));
  if (tokens.empty()) return size;
  for (unsigned i = 0; i <= seed / 64 % 3; ++i) {
    tokens = Change(std::move(tokens), seed + i).made();
    if (tokens.empty()) return size;
  }
  const std::string text = text_of(tokens);
  if (text.size() > most) return size;
  std::memcpy(data, text.data(), text.size());
  return text.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // The only other inputs: the order of its copies, and whether products and sums are fused.
  const auto policy = static_cast<ptx::Policy>(size % 3);
  try {
    ptx::Device device({.contract = size % 2 == 1}, kMostDeviceBytes);
    const ptx::LoadedModule& module =
        device.load(ptx::parse_module(std::string(reinterpret_cast<const char*>(data), size), "fuzz.ptx"));
    for (const ptx::Function& f : module.program->module->functions) {
      if (f.entry && f.defined) run(module, device, f, policy);
    }
  } catch (const InputError& e) {
    KVSCOPE_ASSERT(!e.faults().empty());
    for (const Fault& fault : e.faults()) KVSCOPE_ASSERT(is_place(fault.where) && !fault.message.empty());
  } catch (const OverflowError&) {  // more than the available device memory
  }
  return 0;
}
