// Statements of every form in the table of the instruction set (gpu/virtual/isa/grammar.h), with every kind of operand that
// the form's rules take, decoded and run. The other PTX targets change the statements of kept files; this one also makes
// forms that no compiler has written.
//
//   input bytes   a sequence of choices: the architecture, the tensor map, then for each statement its form, its words, and
//                 its operands. When the bytes end, each choice is the first one.
//   kernel        a fixed beginning gives registers, barriers, memory and a tensor map valid contents; the statements
//                 follow, each with a label. Those that the decoder rejects are removed, and the rest is run.
//                 With KVSCOPE_FUZZ_TEXT=1 it is printed.
//
// Nothing may crash or hang. Where the input asks for it, the kernel runs again with the instruction set that every
// processor has: memory, steps and reports must be equal.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/errors.h"
#include "core/base/fnv.h"
#include "core/tma/tensor_map_record.h"
#include "gpu/virtual/check/checks.h"
#include "gpu/virtual/check/counters.h"
#include "gpu/virtual/isa/grammar.h"
#include "gpu/virtual/isa/instr.h"
#include "gpu/virtual/machine/device.h"
#include "gpu/virtual/text/parser.h"

namespace {

using namespace kvscope;

constexpr std::size_t kMostStatements = 24;
constexpr std::int64_t kMostInstructions = 3000;
constexpr std::int64_t kMostDeviceBytes = 1 << 20;
constexpr std::int64_t kMemoryBytes = 8192;

class Choices {
 public:
  explicit Choices(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  [[nodiscard]] bool done() const { return at_ >= bytes_.size(); }
  std::size_t below(std::size_t n) {  // n: at most 65536
    std::size_t value = next();
    if (n > 256) value = value << 8 | next();
    return value % n;
  }
  bool one_in(std::size_t n) { return below(n) == n - 1; }
  template <std::size_t kCount>
  std::string of(const std::array<std::string_view, kCount>& words) {
    return std::string(words[below(kCount)]);
  }

 private:
  std::size_t next() { return done() ? 0 : bytes_[at_++]; }

  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
};

// --- the kernel ------------------------------------------------------------------------------------------------------

constexpr std::array<int, 3> kTargets{90, 100, 120};

// Of the registers that a statement uses, the first ones have contents that addresses, descriptors and sizes need:
//   %r0 thread   %r1 shared array   %r2 arrival barrier   %r3 16 bytes per thread of the array   %r4 .. 0, 1, -1, 32
//   %d0 device memory   %d1 shared array, generic   %d2 tensor map   %d3 16 bytes per thread of device memory
//   %d4 .. 0, 1, -1   %d7 matrix descriptor   %d8 arrival barrier, generic   %d9 local array, generic
// The others have not been written.
constexpr std::string_view kBeginning = R"(
.address_size 64
.const .align 16 .b8 co[64];
.global .align 16 .b8 gl[256];
.func g() { ret; }
.visible .entry k(.param .u64 k0, .param .align 64 .b8 k1[128]) {
.reg .pred %p<6>; .reg .b8 %c<4>; .reg .b16 %h<16>; .reg .b32 %r<140>; .reg .b64 %d<16>; .reg .b128 %q<4>;
.reg .f32 %f<8>; .reg .f64 %e<8>; .reg .s32 %s<4>; .reg .u16 %u<4>;
.shared .align 1024 .b8 sh[8192]; .shared .align 16 .b64 ba[2]; .local .align 16 .b8 lo[256];
mov.u32 %r0, %tid.x; mov.u32 %r1, sh; mov.u32 %r2, ba; mad.lo.u32 %r3, %r0, 16, %r1;
mov.u32 %r4, 0; mov.u32 %r5, 1; mov.u32 %r6, -1; mov.u32 %r7, 32;
ld.param.u64 %d0, [k0]; cvt.u64.u32 %d1, %r1; cvta.shared.u64 %d1, %d1; mov.b64 %d2, k1; cvta.param.u64 %d2, %d2;
mul.wide.u32 %d3, %r0, 16; add.u64 %d3, %d3, %d0; mov.u64 %d4, 0; mov.u64 %d5, 1; mov.u64 %d6, -1;
shr.u32 %r8, %r1, 4; cvt.u64.u32 %d7, %r8; or.b64 %d7, %d7, 0x4000004000010000;
cvt.u64.u32 %d8, %r2; cvta.shared.u64 %d8, %d8; mov.u64 %d9, lo; cvta.local.u64 %d9, %d9;
setp.eq.u32 %p0, %r0, 0; setp.lt.u32 %p1, %r0, 32; setp.ge.u32 %p2, %r0, 0; setp.lt.u32 %p3, %r0, 0;
T: .branchtargets S0, S1, S2, END;
@%p0 mbarrier.init.shared.b64 [%r2], 128;
st.shared.v4.b32 [%r3], {%r0, %r5, %r6, %r7};
fence.proxy.async;
bar.sync 0;
)";
constexpr std::string_view kEnd = "END: ret;\n}\n";

struct Kernel {
  int target = kTargets[0];
  std::vector<std::string> statements = {};

  [[nodiscard]] std::string head() const {
    return ".version 9.0\n.target sm_" + std::to_string(target) + "a" + std::string(kBeginning);
  }
  // Statement i is in line first_line() + i.
  [[nodiscard]] std::int32_t first_line() const {
    const std::string text = head();
    return 1 + static_cast<std::int32_t>(std::count(text.begin(), text.end(), '\n'));
  }
  [[nodiscard]] std::string text() const {
    std::string text = head();
    for (std::size_t i = 0; i < std::max<std::size_t>(3, statements.size()); ++i) {
      text += "S" + std::to_string(i) + ": " + (i < statements.size() ? statements[i] : "") + "\n";
    }
    return text + std::string(kEnd);
  }
};

// --- operands --------------------------------------------------------------------------------------------------------

constexpr std::array<std::string_view, 20> kIntegers{
    "0",  "1",  "-1", "2",   "3",   "4",    "7",    "8",          "15",         "16",
    "31", "32", "64", "128", "255", "4096", "-128", "0x7fffffff", "0x80000000", "0xffffffff"};
constexpr std::array<std::string_view, 6> kFloats{"1.0",        "0f3f800000",         "0f7f800000",
                                                  "0fffc00000", "0dbff0000000000000", "0d7ff0000000000000"};
constexpr std::array<std::string_view, 10> kSpecials{"%tid.x",       "%laneid",      "%ctaid.x", "%clock64",
                                                     "%lanemask_lt", "%globaltimer", "%warpid",  "%cluster_ctarank",
                                                     "%envreg3",     "%smid"};
constexpr std::array<std::string_view, 8> kOffsets{"", "+0", "+4", "+16", "+128", "+1", "-16", "+8192"};

// f16, bf16x2, tf32 ..
bool is_float_type(ptx::Type type) {
  return ptx::name(type).find('f') != std::string_view::npos;
}

class Statements {
 public:
  Statements(Choices& choices, std::size_t count) : choices_(choices), count_(count) {}

  // Empty: no instruction has these words together.
  std::string one() {
    const std::span<const ptx::Pattern> all = ptx::patterns();
    const ptx::Pattern& pattern = all[choices_.below(all.size())];
    const std::string word = word_of(pattern);
    const std::string guard =
        choices_.one_in(4) ? choices_.of<6>({"@%p0 ", "@%p1 ", "@!%p1 ", "@%p2 ", "@%p3 ", "@!%p0 "}) : "";
    if (pattern.opcode == ptx::Opcode::call) return guard + word + " g;";
    const ptx::Instr instr = ptx::understand(word);
    if (instr.form < 0) return "";
    std::vector<int> counts;
    if (ptx::takes_no_operand(instr)) counts.push_back(0);
    for (int n = 1; n <= ptx::kMostOperands; ++n) {
      if (!ptx::operand_rules(instr, n).empty()) counts.push_back(n);
    }
    if (counts.empty()) return "";
    std::string text = guard + word;
    const std::vector<ptx::OperandRule> rules = ptx::operand_rules(instr, counts[choices_.below(counts.size())]);
    for (std::size_t i = 0; i < rules.size(); ++i) text += (i == 0 ? " " : ", ") + operand(rules[i]);
    return text + ";";
  }

 private:
  std::string word_of(const ptx::Pattern& pattern) {
    std::string word(pattern.form->base);
    for (const ptx::Slot& slot : pattern.slots) {
      std::size_t times = slot.repeated ? choices_.below(3) : 1;
      if (slot.optional && !slot.repeated && !choices_.one_in(3)) times = 0;
      for (; times > 0; --times) {
        const ptx::Choice& choice = slot.choices[choices_.below(slot.choices.size())];
        std::string written = choice.written;
        if (choice.n_step != 0) {
          const std::size_t n = static_cast<std::size_t>(choice.n_step);
          written.replace(written.find_first_of("NM"), 1, std::to_string(n * (1 + choices_.below(256 / n))));
        }
        word += "." + written;
      }
    }
    return word;
  }

  std::string number_of(std::string_view family, std::size_t count) {
    return std::string(family) + std::to_string(choices_.below(count));
  }
  // A register of the type's width, mostly of a .bN type.
  std::string reg(ptx::Type type, bool wider) {
    if (type == ptx::Type::pred) return number_of("%p", 6);
    int bits = ptx::bits(type);
    if (wider && choices_.one_in(4)) bits = bits < 32 ? 32 : 64;
    const bool typed = choices_.one_in(6);
    switch (bits) {
      case 8:
        return number_of("%c", 4);
      case 16:
        return typed ? number_of("%u", 4) : number_of("%h", 16);
      case 32:
        if (typed) return number_of(is_float_type(type) ? "%f" : "%s", 4);
        return number_of("%r", choices_.one_in(4) ? 140 : 10);
      case 64:
        return typed && is_float_type(type) ? number_of("%e", 8) : number_of("%d", 16);
      default:
        return number_of("%q", 4);
    }
  }

  std::string value(const ptx::OperandRule& rule) {
    if (rule.type == ptx::Type::none) return "_";
    if (rule.role != ptx::Role::read) {
      return rule.role == ptx::Role::written && choices_.one_in(6) ? "_" : reg(rule.type, rule.wider);
    }
    if (rule.constant)
      return choices_.of(is_float_type(rule.type) ? std::array<std::string_view, 20>{"1.0", "0.5"} : kIntegers);
    if (rule.in_register) return reg(rule.type, rule.wider);
    const bool negated = rule.type == ptx::Type::pred && choices_.one_in(4);
    switch (choices_.below(8)) {
      case 5:
        if (rule.type != ptx::Type::pred)
          return is_float_type(rule.type) ? choices_.of(kFloats) : choices_.of(kIntegers);
        break;
      case 6:
        if (rule.type != ptx::Type::pred) return choices_.of(kSpecials);
        break;
      case 7:
        if (rule.type != ptx::Type::pred) return choices_.of<6>({"sh", "ba", "gl", "lo", "co", "k0"});
        break;
      default:
        break;
    }
    return (negated ? "!" : "") + reg(rule.type, rule.wider);
  }

  // {a, b, ..}: of a matrix, adjacent registers.
  std::string vector(const ptx::OperandRule& rule, std::int32_t elements, ptx::Type type) {
    ptx::OperandRule element = rule;
    element.type = type;
    const bool adjacent = elements > 4 && ptx::bits(type) == 32;
    const std::size_t first = adjacent ? choices_.below(12) : 0;
    std::string text = "{";
    for (std::int32_t i = 0; i < elements; ++i) {
      text += i == 0 ? "" : ", ";
      text += adjacent ? "%r" + std::to_string(first + static_cast<std::size_t>(i)) : value(element);
    }
    return text + "}";
  }

  std::string address(const ptx::OperandRule& rule) {
    if (rule.coordinates > 0) {
      std::string text = "[%d2, {";
      for (std::int32_t i = 0; i < rule.coordinates; ++i) {
        text += i == 0 ? "" : ", ";
        text += choices_.one_in(2) ? choices_.of(kIntegers) : number_of("%r", 10);
      }
      return text + "}]";
    }
    std::string base;
    switch (rule.space) {
      case ptx::Space::shared:
        base = choices_.of<6>({"%r1", "%r2", "%r3", "sh", "ba", "%d1"});
        break;
      case ptx::Space::global:
        base = choices_.of<4>({"%d0", "%d3", "gl", "%d4"});
        break;
      case ptx::Space::local:
        base = choices_.of<3>({"lo", "%r4", "%r5"});
        break;
      case ptx::Space::param:
        base = choices_.of<3>({"k0", "k1", "%r4"});
        break;
      case ptx::Space::constant:
        base = choices_.of<2>({"co", "%r4"});
        break;
      default:
        base = choices_.one_in(4)
                   ? number_of("%d", 16)
                   : choices_.of<12>({"%d0", "%d1", "%d3", "%d8", "%d9", "%d2", "sh", "gl", "lo", "%r1", "%r4", "%r8"});
        break;
    }
    return "[" + base + (choices_.one_in(2) ? choices_.of(kOffsets) : "") + "]";
  }

  std::string operand(const ptx::OperandRule& rule) {
    switch (rule.role) {
      case ptx::Role::address:
        return address(rule);
      case ptx::Role::target:
        if (choices_.one_in(4)) return choices_.one_in(2) ? "T" : "END";
        return "S" + std::to_string(choices_.below(count_));
      default:
        break;
    }
    if (rule.or_address && choices_.one_in(3)) return address({.role = ptx::Role::address, .space = rule.space});
    if (rule.alternative != ptx::Type::none && choices_.one_in(2)) return value({.type = rule.alternative});
    if (rule.pair || (rule.second != ptx::Type::none && choices_.one_in(2))) {
      ptx::OperandRule second{.role = rule.role, .type = rule.second};
      std::string text = value(rule);
      return text + "|" + value(second);
    }
    if (rule.packs && choices_.one_in(2)) {
      const std::int32_t pieces = choices_.one_in(2) ? 4 : 2;
      const int bits = ptx::bits(rule.type) / pieces;
      return vector(rule, pieces,
                    bits == 8    ? ptx::Type::b8
                    : bits == 16 ? ptx::Type::b16
                    : bits == 32 ? ptx::Type::b32
                                 : ptx::Type::b64);
    }
    if (rule.braces == ptx::Braces::required || (rule.braces == ptx::Braces::allowed && rule.elements > 1))
      return vector(rule, rule.elements, rule.type);
    return value(rule);
  }

  Choices& choices_;
  std::size_t count_;
};

// Removes the statements that the parser or the decoder rejects. False: a fault that belongs to none of them.
bool drop_rejected(Kernel& kernel) {
  for (std::size_t tries = 0; tries <= kMostStatements; ++tries) {
    const ptx::Parsed parsed = ptx::parse_text(kernel.text(), "forms.ptx");
    std::vector<ptx::TextError> errors = parsed.errors;
    if (errors.empty()) errors = ptx::decode(parsed.module, kernel.target).errors;
    if (errors.empty()) return true;
    bool some = false;
    for (const ptx::TextError& error : errors) {
      KVSCOPE_ASSERT(!error.message.empty());
      const std::int32_t i = error.at.line - kernel.first_line();
      if (i < 0 || i >= std::ssize(kernel.statements)) continue;
      std::string& statement = kernel.statements[static_cast<std::size_t>(i)];
      some = some || !statement.empty();
      statement.clear();
    }
    if (!some) return false;
  }
  return false;
}

// --- a run -----------------------------------------------------------------------------------------------------------

struct Outcome {
  std::uint64_t checksum = 0;  // of the memory
  std::uint64_t steps = 0;
  std::vector<std::string> reports;
  bool operator==(const Outcome&) const = default;
};

std::vector<std::byte> tensor_map(std::uint64_t base, std::uint32_t rank) {
  constexpr std::array<std::uint64_t, 5> kDims{16, 4, 2, 2, 2}, kStrides{64, 256, 512, 1024, 2048};
  constexpr std::array<std::uint32_t, 5> kBox{8, 2, 2, 1, 1}, kOnes{1, 1, 1, 1, 1};
  alignas(64) TensorMapRecord record;
  TensorMapArguments arguments;
  arguments.data_type = TmaDataType::u32;
  arguments.rank = rank;
  arguments.base = base;
  arguments.dims = kDims.data();
  arguments.strides = kStrides.data();
  arguments.box = kBox.data();
  arguments.element_strides = kOnes.data();
  KVSCOPE_ASSERT(encode_tensor_map(record.data(), arguments, TmaTarget::sm_90).broken.empty());
  return {record.begin(), record.end()};
}

struct RunOptions {
  std::uint32_t rank = 1;  // of the tensor map
  std::int64_t cluster = 0;
  ptx::Policy policy = ptx::Policy::late;
};

Outcome run(const Kernel& kernel, const RunOptions& options, ptx::Simd simd) {
  ptx::Device device({.target = kernel.target, .simd = simd}, kMostDeviceBytes);
  const ptx::LoadedModule& module = device.load(ptx::parse_module(kernel.text(), "forms.ptx"));
  const std::uint64_t memory = device.memory().allocate(kMemoryBytes, "memory");
  ptx::LaunchConfig config;
  config.kernel = "k";
  config.grid = {2, 1, 1};
  config.block = {128, 1, 1};
  if (options.cluster != 0) config.cluster = {options.cluster, 1, 1};
  config.params = ptx::pack_params(module, "k", {memory, tensor_map(memory, options.rank)});
  config.options.limits.instructions = kMostInstructions;
  config.options.policy = options.policy;
  config.options.seed = options.policy == ptx::Policy::seeded ? 1 : 0;
  ptx::Checks checks({.global_init = true, .global_race = true, .uninit_regs = true, .uninit_local = true});
  ptx::Counters counters(*module.program);
  checks.add(counters);
  Outcome outcome;
  try {
    const ptx::LaunchResult result = device.launch(module, config, checks.monitor());
    outcome.steps = result.steps;
    for (const ptx::Report& report : result.reports) {
      outcome.reports.push_back(ptx::to_text(report));
      KVSCOPE_ASSERT(!outcome.reports.back().empty());
    }
  } catch (const GeometryError& e) {
    KVSCOPE_ASSERT(!e.faults().empty());
  }
  outcome.checksum = fnv1a(device.memory().read(memory, kMemoryBytes));
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Choices choices({data, size});
  Kernel kernel{.target = kTargets[choices.below(kTargets.size())]};
  const RunOptions options{.rank = 1 + static_cast<std::uint32_t>(choices.below(5)),
                           .cluster = choices.one_in(3) ? 2 : 0,
                           .policy = static_cast<ptx::Policy>(choices.below(3))};
  const bool twice = choices.one_in(4);
  const std::size_t count = 1 + choices.below(kMostStatements);
  Statements statements(choices, std::max<std::size_t>(3, count));
  while (kernel.statements.size() < count && !choices.done()) kernel.statements.push_back(statements.one());
  kernel.statements.resize(count);
  if (std::getenv("KVSCOPE_FUZZ_TEXT") != nullptr) std::cerr << kernel.text();
  if (!drop_rejected(kernel)) return 0;
  const Outcome outcome = run(kernel, options, ptx::best_simd());
  if (!twice) return 0;
  const Outcome again = run(kernel, options, ptx::Simd::baseline);
  if (again == outcome) return 0;
  std::cerr << kernel.text();
  for (const Outcome& one : {outcome, again}) {
    std::cerr << "\nmemory " << one.checksum << ", " << one.steps << " steps\n";
    for (const std::string& report : one.reports) std::cerr << report;
  }
  std::abort();
}
