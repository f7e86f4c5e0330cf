#include "gpu/virtual/check/undefined_results.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "gpu/virtual/check/detail/op_probe.h"
#include "gpu/virtual/machine/program/program.h"

namespace kvscope::ptx {
namespace {

std::uint32_t register_at(const Op& op, int operand) {
  if (op.list != nullptr) return operand < op.count ? op.list[operand] : kNoRegister;
  return op.at[static_cast<std::size_t>(operand)];
}

// One call of propagate that has found undefined operands.
class Propagation {
 public:
  Propagation(const Exec& exec, const Op& op, const UndefinedEffects& effects, LaneMask lanes, std::uint32_t origin,
              UndefinedRegisters& registers)
      : exec_(exec), op_(op), effects_(effects), lanes_(lanes), origin_(origin), registers_(registers) {}

  void whole() { mark(lanes_); }

  void moves() {
    OpProbe probe(exec_, op_);
    probe.fill(registers_.bits(0));
    LaneMask unknown = 0;
    for (int i = effects_.control; i >= 0 && i < operands(); ++i) {
      const std::uint32_t reg = register_at(op_, i);
      if (reg == kNoRegister) continue;
      unknown |= registers_.lanes(reg) & lanes_;
      probe.set(reg, exec_.registers + reg);
    }
    probe.run(lanes_ & ~unknown);
    for (const RegisterAt w : effects_.writes) registers_.assign(w, lanes_ & ~unknown, probe.slot(w.reg), origin_);
    mark(unknown);
  }

  void select() {
    const LaneMask unknown = registers_.lanes(op_.at[3]) & lanes_;
    const RegisterAt d = effects_.writes[0];
    Bits differ{};
    for (LaneMask left = unknown; left != 0; left &= left - 1) {
      const auto at = static_cast<std::size_t>(std::countr_zero(left)) * d.bytes;
      for (std::size_t i = at; i < at + d.bytes; ++i) {
        differ[i] = registers_.bits(op_.at[1])[i] | registers_.bits(op_.at[2])[i] |
                    (exec_.registers[op_.at[1] + i] ^ exec_.registers[op_.at[2] + i]);
      }
    }
    lanes_ &= ~unknown;
    if (lanes_ != 0) moves();
    if (unknown != 0) registers_.assign(d, unknown, differ.data(), origin_);
  }

  // The results for every choice of zeros and ones in the undefined bits of each operand.
  void bitwise() {
    std::vector<std::uint32_t> undefined;
    for (const RegisterAt r : effects_.reads) {
      if ((registers_.lanes(r.reg) & lanes_) != 0 &&
          std::find(undefined.begin(), undefined.end(), r.reg) == undefined.end())
        undefined.push_back(r.reg);
    }
    if (effects_.writes.size() != 1) return whole();
    OpProbe probe(exec_, op_);
    Bits first{}, differ{};
    for (std::uint32_t choice = 0; choice < 1U << undefined.size(); ++choice) {
      probe.fill(exec_.registers);
      for (std::size_t k = 0; k < undefined.size(); ++k) set_undefined(probe, undefined[k], (choice >> k & 1) != 0);
      compare(probe, choice == 0, first, differ);
    }
    registers_.assign(effects_.writes[0], lanes_, differ.data(), origin_);
  }

  void sum(bool is_difference) {
    OpProbe probe(exec_, op_);
    Bits first{}, differ{};
    for (const bool high : {false, true}) {
      probe.fill(exec_.registers);
      for (int i = 1; i <= 2; ++i) {
        const std::uint32_t reg = op_.at[static_cast<std::size_t>(i)];
        set_undefined(probe, reg, high != (is_difference && i == 2));
        for (std::size_t b = 0; b < differ.size() && reg + b < size(); ++b) differ[b] |= registers_.bits(reg)[b];
      }
      compare(probe, !high, first, differ);
    }
    registers_.assign(effects_.writes[0], lanes_, differ.data(), origin_);
  }

  void product() {
    const RegisterAt d = effects_.writes[0];
    Bits out{};
    for (LaneMask left = lanes_; left != 0; left &= left - 1) {
      const int lane = std::countr_zero(left);
      std::uint64_t undefined = 0;
      for (int i = 1; i <= 3; ++i) {
        const int factor = i == 1 ? 2 : 1;
        if (i <= 2 && has(2) && is_zero(factor, lane)) continue;
        undefined |= bits(i, lane);
      }
      const std::uint64_t from_lowest = undefined == 0 ? 0 : ~std::uint64_t{0} << std::countr_zero(undefined);
      std::memcpy(out.data() + lane * d.bytes, &from_lowest, d.bytes);
    }
    registers_.assign(d, lanes_, out.data(), origin_);
  }

  // Part p of the result: from part p of each operand; packs: the upper part from the first operand, the lower from the
  // second.
  void parts(bool packs) {
    const RegisterAt d = effects_.writes[0];
    const std::uint64_t part = (std::uint64_t{1} << effects_.part_bits) - 1;
    Bits out{};
    for (LaneMask left = lanes_; left != 0; left &= left - 1) {
      const int lane = std::countr_zero(left);
      std::uint64_t undefined = 0;
      for (int p = 0; p < 2; ++p) {
        const int shift = p * effects_.part_bits;
        bool any = false;
        if (packs) {
          any = bits(2 - p, lane) != 0;
        } else {
          for (int i = 1; i <= 3; ++i) any = any || (bits(i, lane) >> shift & part) != 0;
        }
        if (any) undefined |= part << shift;
      }
      std::memcpy(out.data() + lane * d.bytes, &undefined, d.bytes);
    }
    registers_.assign(d, lanes_, out.data(), origin_);
  }

  // setp: a comparison, possibly combined with a predicate c. A comparison is defined if its result is the same for all
  // values of the undefined bits.
  void compare() {
    const Instr& instr = exec_.program().instr(op_);
    LaneMask unknown = 0;
    for (LaneMask left = lanes_; left != 0; left &= left - 1) {
      const int lane = std::countr_zero(left);
      if (comparison_is_unknown(instr, lane)) unknown |= LaneMask{1} << lane;
    }
    const std::uint32_t c = op_.at[3];
    LaneMask undefined_c = 0;
    if (c != kNoRegister) {
      undefined_c = registers_.lanes(c) & lanes_;
      LaneMask value = 0;
      std::memcpy(&value, exec_.registers + c, sizeof value);
      if ((op_.negated >> 3 & 1) != 0) value = ~value;
      if (instr.has(Mod::and_)) unknown &= value | undefined_c;
      if (instr.has(Mod::or_)) unknown &= ~value | undefined_c;
    }
    OpProbe probe(exec_, op_);
    for (const RegisterAt w : effects_.writes) {
      LaneMask out = unknown;
      if (undefined_c != 0) {  // whether c decides the result of a defined comparison
        std::array<LaneMask, 2> results{};
        for (const bool high : {false, true}) {
          probe.fill(exec_.registers);
          set_undefined(probe, c, high);
          probe.run(lanes_);
          std::memcpy(&results[high ? 1 : 0], probe.slot(w.reg), sizeof results[0]);
        }
        out |= (results[0] ^ results[1]) & undefined_c;
      }
      Bits word{};
      std::memcpy(word.data(), &out, sizeof out);
      registers_.assign(w, lanes_, word.data(), origin_);
    }
  }

 private:
  using Bits = std::array<std::byte, OpProbe::kSlot>;

  [[nodiscard]] std::size_t size() const { return registers_.size(); }
  [[nodiscard]] int operands() const { return op_.list != nullptr ? op_.count : 4; }
  [[nodiscard]] bool has(int operand) const { return op_.at[static_cast<std::size_t>(operand)] != kNoRegister; }
  [[nodiscard]] RegisterAt at(int operand) const {
    return {op_.at[static_cast<std::size_t>(operand)], static_cast<std::uint8_t>(width_of(op_, operand))};
  }
  [[nodiscard]] std::uint64_t bits(int operand, int lane) const {
    return has(operand) ? registers_.bits(at(operand), lane) : 0;
  }
  [[nodiscard]] std::uint64_t value(int operand, int lane) const {
    std::uint64_t out = 0;
    const RegisterAt r = at(operand);
    std::memcpy(&out, exec_.registers + r.reg + lane * r.bytes, r.bytes);
    return out;
  }
  [[nodiscard]] bool is_zero(int operand, int lane) const {
    return bits(operand, lane) == 0 && value(operand, lane) == 0;
  }

  void mark(LaneMask lanes) {
    if (lanes == 0) return;
    for (const RegisterAt w : effects_.writes) registers_.mark(w, lanes, origin_);
    if (effects_.carry_out != kNoRegister) registers_.mark({effects_.carry_out, 0}, lanes, origin_);
  }

  // Sets the undefined bits of an operand to zeros or ones.
  void set_undefined(OpProbe& probe, std::uint32_t reg, bool ones) {
    std::byte* const to = probe.slot(reg);
    const std::byte* const undefined = registers_.bits(reg);
    for (std::size_t i = 0; i < OpProbe::kSlot && reg + i < size(); ++i)
      to[i] = ones ? to[i] | undefined[i] : to[i] & ~undefined[i];
  }

  void compare(OpProbe& probe, bool is_first, Bits& first, Bits& differ) {
    probe.run(lanes_);
    const std::byte* const now = probe.slot(effects_.writes[0].reg);
    if (is_first) std::memcpy(first.data(), now, first.size());
    for (std::size_t i = 0; i < differ.size(); ++i) differ[i] |= first[i] ^ now[i];
  }

  [[nodiscard]] bool comparison_is_unknown(const Instr& instr, int lane) const {
    const std::uint64_t ua = bits(1, lane), ub = bits(2, lane);
    if ((ua | ub) == 0) return false;
    const TypeClass type = class_of(instr.type());
    if (type == TypeClass::floating) return true;
    const std::uint64_t sign = type == TypeClass::signed_integer ? std::uint64_t{1} << (bits_of(instr.type()) - 1) : 0;
    const std::uint64_t a = value(1, lane) ^ sign, b = value(2, lane) ^ sign;
    if (instr.has(Mod::eq) || instr.has(Mod::ne)) return ((a ^ b) & ~(ua | ub)) == 0;
    const std::uint64_t low_a = a & ~ua, high_a = a | ua, low_b = b & ~ub, high_b = b | ub;
    const bool strict_less =
        instr.has(Mod::lt) || instr.has(Mod::lo_unsigned) || instr.has(Mod::ge) || instr.has(Mod::hs);
    // a < b decides lt and ge; b < a decides gt and le.
    return strict_less ? !(high_a < low_b || low_a >= high_b) : !(high_b < low_a || low_b >= high_a);
  }
  static int bits_of(Type type) { return ptx::bits(type); }

  const Exec& exec_;
  const Op& op_;
  const UndefinedEffects& effects_;
  LaneMask lanes_;
  std::uint32_t origin_;
  UndefinedRegisters& registers_;
};

}  // namespace

void propagate(const Exec& exec, const Op& op, const UndefinedEffects& effects, LaneMask lanes,
               UndefinedRegisters& registers) {
  LaneMask undefined = 0;
  std::uint32_t origin = 0;
  const auto add = [&](std::uint32_t reg) {
    const LaneMask found = registers.lanes(reg) & lanes;
    if (undefined == 0 && found != 0) origin = registers.origin(reg);
    undefined |= found;
  };
  for (const RegisterAt r : effects.reads) add(r.reg);
  if (effects.carry_in != kNoRegister) add(effects.carry_in);
  for (const RegisterAt w : effects.writes) registers.define(w, lanes & ~undefined);
  if (effects.carry_out != kNoRegister) registers.define({effects.carry_out, 0}, lanes & ~undefined);
  if (undefined == 0) return;
  Propagation step(exec, op, effects, undefined, origin, registers);
  switch (op.compute == nullptr ? UndefinedRule::whole : effects.rule) {
    case UndefinedRule::whole:
      return step.whole();
    case UndefinedRule::moves:
      return step.moves();
    case UndefinedRule::select:
      return step.select();
    case UndefinedRule::bitwise:
      return step.bitwise();
    case UndefinedRule::sum:
      return step.sum(false);
    case UndefinedRule::difference:
      return step.sum(true);
    case UndefinedRule::product:
      return step.product();
    case UndefinedRule::parts:
      return step.parts(false);
    case UndefinedRule::packs:
      return step.parts(true);
    case UndefinedRule::compare:
      return step.compare();
  }
}

}  // namespace kvscope::ptx
