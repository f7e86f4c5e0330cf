#include "gpu/virtual/machine/program/detail/liveness.h"

#include <algorithm>
#include <bit>
#include <map>
#include <queue>

#include "gpu/virtual/machine/program/detail/function_registers.h"
#include "gpu/virtual/machine/program/register_effects.h"

namespace kvscope::ptx {
namespace {

using Registers = std::vector<std::int32_t>;

// The effects of a statement for liveness: lanes excluded by the guard keep the old value, so it is still needed.
class EffectsOf {
 public:
  EffectsOf(const Program& program, std::int32_t function)
      : program_(program), index_(function), effects_(program, function) {}

  void find(std::int32_t number, RegisterEffects& out) {
    effects_.find(number, out);
    if (out.guard < 0) return;
    out.reads.push_back(out.guard);
    out.reads.insert(out.reads.end(), out.writes.begin(), out.writes.end());
  }

  [[nodiscard]] bool is_wgmma(std::int32_t number) const {
    return program_.decoded.at(index_, number).opcode == Opcode::wgmma_mma_async;
  }

 private:
  const Program& program_;
  std::int32_t index_;
  RegisterEffectsOf effects_;
};

// A basic block: statements [from, to), entered only at the first and left only after the last.
struct Block {
  std::int32_t from = 0;
  std::int32_t to = 0;
  std::vector<std::int32_t> next;  // blocks
};

// The targets of a statement other than the next one; `falls`: whether it may also continue at the next one.
std::vector<std::int32_t> targets_of(const Program& program, std::int32_t index, std::int32_t number, bool& falls) {
  const Function& f = program.module->functions[static_cast<std::size_t>(index)];
  const Statement& s = f.body[static_cast<std::size_t>(number)];
  std::vector<std::int32_t> out;
  falls = true;
  const Opcode opcode = program.decoded.at(index, number).opcode;
  const bool leaves = opcode == Opcode::bra || opcode == Opcode::brx || opcode == Opcode::ret || opcode == Opcode::exit;
  if (!leaves) return out;
  falls = s.guard >= 0;
  for (const Operand& o : f.operands_of(s)) {
    if (o.kind == OperandKind::label) out.push_back(o.index);
    if (o.kind != OperandKind::table) continue;
    const std::vector<std::int32_t>& table = f.tables[static_cast<std::size_t>(o.index)].targets;
    out.insert(out.end(), table.begin(), table.end());
  }
  return out;
}

std::vector<Block> blocks_of(const Program& program, std::int32_t index) {
  const Function& f = program.module->functions[static_cast<std::size_t>(index)];
  const auto count = static_cast<std::int32_t>(f.body.size());
  std::vector<bool> begins(static_cast<std::size_t>(count) + 1);
  begins[0] = true;
  const auto marks = [&begins](std::int32_t at) { begins[static_cast<std::size_t>(at)] = true; };
  bool falls = true;
  for (std::int32_t i = 0; i < count; ++i) {
    const std::vector<std::int32_t> targets = targets_of(program, index, i, falls);
    for (const std::int32_t t : targets) marks(t);
    if (!targets.empty() || !falls) marks(i + 1);
  }
  std::vector<std::int32_t> block_at(static_cast<std::size_t>(count) + 1, -1);
  std::vector<Block> out;
  for (std::int32_t i = 0; i < count; ++i) {
    if (begins[static_cast<std::size_t>(i)]) out.push_back({i, i, {}});
    block_at[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(out.size()) - 1;
    out.back().to = i + 1;
  }
  for (Block& b : out) {
    const auto goes_to = [&](std::int32_t statement) {
      if (statement < count) b.next.push_back(block_at[static_cast<std::size_t>(statement)]);
    };
    for (const std::int32_t t : targets_of(program, index, b.to - 1, falls)) goes_to(t);
    if (falls) goes_to(b.to);
  }
  return out;
}

// A set of registers, one bit each.
class Bits {
 public:
  explicit Bits(std::size_t count = 0) : words_((count + 63) / 64) {}
  void add(std::int32_t i) { words_[at(i)] |= bit(i); }
  void remove(std::int32_t i) { words_[at(i)] &= ~bit(i); }
  [[nodiscard]] bool has(std::int32_t i) const { return (words_[at(i)] & bit(i)) != 0; }
  void join(const Bits& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
  }
  // this = reads | (out & ~writes); returns whether it grew.
  bool pass(const Bits& reads, const Bits& writes, const Bits& out) {
    bool grew = false;
    for (std::size_t i = 0; i < words_.size(); ++i) {
      const std::uint64_t now = reads.words_[i] | (out.words_[i] & ~writes.words_[i]);
      grew = grew || now != words_[i];
      words_[i] = now;
    }
    return grew;
  }
  template <class Visit>
  void each(Visit visit) const {
    for (std::size_t w = 0; w < words_.size(); ++w) {
      for (std::uint64_t left = words_[w]; left != 0; left &= left - 1) {
        visit(static_cast<std::int32_t>(64 * w) + std::countr_zero(left));
      }
    }
  }

 private:
  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i) / 64; }
  static std::uint64_t bit(std::int32_t i) { return std::uint64_t{1} << (i % 64); }
  std::vector<std::uint64_t> words_;
};

struct BlockSets {
  Bits reads, writes, in, out;
};

std::vector<BlockSets> solve(const std::vector<Block>& blocks, EffectsOf& effects, std::size_t registers) {
  std::vector<BlockSets> sets(blocks.size(), {Bits(registers), Bits(registers), Bits(registers), Bits(registers)});
  RegisterEffects e;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    for (std::int32_t i = blocks[b].to; i-- > blocks[b].from;) {
      effects.find(i, e);
      for (const std::int32_t r : e.writes) sets[b].writes.add(r), sets[b].reads.remove(r);
      for (const std::int32_t r : e.reads) sets[b].reads.add(r);
    }
  }
  for (bool grew = true; grew;) {
    grew = false;
    for (std::size_t b = blocks.size(); b-- > 0;) {
      for (const std::int32_t n : blocks[b].next) sets[b].out.join(sets[static_cast<std::size_t>(n)].in);
      grew = sets[b].in.pass(sets[b].reads, sets[b].writes, sets[b].out) || grew;
    }
  }
  return sets;
}

using Ranges = std::vector<std::pair<std::int32_t, std::int32_t>>;

// From the last statement to the first; `open` contains, per register, the end of the current range.
std::vector<Ranges> ranges_of(const std::vector<Block>& blocks, const std::vector<BlockSets>& sets, EffectsOf& effects,
                              std::size_t registers) {
  std::vector<Ranges> out(registers);
  std::vector<std::int32_t> open(registers, -1);
  const auto close = [&](std::int32_t r, std::int32_t from) {
    auto& end = open[static_cast<std::size_t>(r)];
    if (end < 0) return;
    Ranges& ranges = out[static_cast<std::size_t>(r)];
    if (!ranges.empty() && ranges.back().first == end) {
      ranges.back().first = from;
    } else {
      ranges.emplace_back(from, end);
    }
    end = -1;
  };
  RegisterEffects e;
  for (std::size_t b = blocks.size(); b-- > 0;) {
    sets[b].out.each([&](std::int32_t r) { open[static_cast<std::size_t>(r)] = blocks[b].to; });
    for (std::int32_t i = blocks[b].to; i-- > blocks[b].from;) {
      effects.find(i, e);
      for (const std::int32_t r : e.writes) {
        if (open[static_cast<std::size_t>(r)] < 0)
          open[static_cast<std::size_t>(r)] = i + 2;  // never read: live for one statement
        close(r, e.apart ? i : i + 1);
      }
      for (const std::int32_t r : e.reads) {
        if (open[static_cast<std::size_t>(r)] < 0) open[static_cast<std::size_t>(r)] = i + 1;
      }
    }
    sets[b].in.each([&](std::int32_t r) { close(r, blocks[b].from); });
  }
  for (Ranges& r : out) std::reverse(r.begin(), r.end());
  return out;
}

// Assigns places in the order in which live ranges begin; each takes the place of its width that was free for longest.
std::vector<std::int32_t> share_registers(const Function& f, const std::vector<Ranges>& alive,
                                          const std::vector<bool>& alone) {
  struct Life {
    std::int32_t from, to, place;
  };
  std::vector<Life> lives;
  for (std::size_t r = 0; r < alive.size(); ++r) {
    if (!alive[r].empty())
      lives.push_back({alive[r].front().first, alive[r].back().second, static_cast<std::int32_t>(r)});
  }
  std::stable_sort(lives.begin(), lives.end(), [](const Life& a, const Life& b) { return a.from < b.from; });
  using Busy = std::pair<std::int32_t, std::int32_t>;  // until, place
  std::map<int, std::priority_queue<Busy, std::vector<Busy>, std::greater<>>> busy;
  std::vector<std::int32_t> out(alive.size(), -1);
  std::int32_t registers = 0;
  for (const Life& life : lives) {
    const auto r = static_cast<std::size_t>(life.place);
    if (alone[r]) {
      out[r] = registers++;
      continue;
    }
    auto& of_width = busy[register_bytes_of(f.registers[r].type)];
    std::int32_t place = registers;
    if (!of_width.empty() && of_width.top().first <= life.from) {
      place = of_width.top().second;
      of_width.pop();
    } else {
      ++registers;
    }
    of_width.emplace(life.to, place);
    out[r] = place;
  }
  return out;
}

}  // namespace

Liveness find_liveness(const Program& program, std::int32_t function) {
  const Function& f = program.module->functions[static_cast<std::size_t>(function)];
  const std::size_t registers = f.registers.size();
  Liveness out;
  if (f.body.empty()) {
    out.place.assign(registers, -1);
    out.alive.resize(registers);
    return out;
  }
  EffectsOf effects(program, function);
  const std::vector<Block> blocks = blocks_of(program, function);
  const std::vector<BlockSets> sets = solve(blocks, effects, registers);
  out.alive = ranges_of(blocks, sets, effects, registers);
  std::vector<bool> alone(registers);
  RegisterEffects e;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(f.body.size()); ++i) {
    if (!effects.is_wgmma(i)) continue;
    effects.find(i, e);
    for (const Registers* set : {&e.reads, &e.writes}) {
      for (const std::int32_t r : *set) alone[static_cast<std::size_t>(r)] = true;
    }
  }
  out.place = share_registers(f, out.alive, alone);
  return out;
}

}  // namespace kvscope::ptx
