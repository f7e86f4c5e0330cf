// The ranges of constants that instructions accept. Source: PTX ISA, and what the assembler of CUDA 13.0 rejects.
#include <bit>
#include <cstddef>
#include <cstdint>

#include <fmt/format.h>

#include "gpu/virtual/isa/detail/operand_check.h"
#include "gpu/virtual/isa/sparse_metadata.h"

namespace kvscope::ptx {
namespace {

class LiteralCheck {
 public:
  explicit LiteralCheck(const Checked& s) : s_(s), operands_(s.function.operands_of(s.statement)) {}

  std::string fault() {
    switch (s_.instr.opcode) {
      case Opcode::bar_sync:
        return barrier(0, 1);
      case Opcode::bar_arrive:
        if (is(1) && value(1) == 0) return "thread count must not be 0";
        return barrier(0, 1);
      case Opcode::bar_red:
        return barrier(1, operands_.size() == 4 ? 2 : kNone);
      case Opcode::cp_async:
        return copy();
      case Opcode::cp_async_bulk:
        return multiple_of_16(2);
      case Opcode::cp_reduce_async_bulk:
        return multiple_of_16(2);
      case Opcode::st_bulk:
        if (is(1) && (outside(1, 0, 1 << 24) || value(1) % 8 != 0))
          return "size must be a multiple of 8 up to 16777216";
        return value(2) != 0 ? "value must be 0" : "";
      case Opcode::cp_async_bulk_prefetch:
        return multiple_of_16(1);
      case Opcode::wgmma_wait_group:
        return is(0) && value(0) < 0 ? "group count must not be negative" : "";
      case Opcode::mma:
        return matrix();
      case Opcode::wgmma_mma_async:
        return warpgroup_matrix();
      case Opcode::tcgen05_alloc:
      case Opcode::tcgen05_dealloc:
        return is(1) && (!std::has_single_bit(static_cast<std::uint64_t>(value(1))) || outside(1, 32, 512))
                   ? "column count must be a power of two from 32 to 512"
                   : "";
      case Opcode::tcgen05_ld:
      case Opcode::tcgen05_st:
      case Opcode::tcgen05_cp:
      case Opcode::tcgen05_mma_ws:
      case Opcode::tcgen05_mma_ws_sp:
        return wide_tensor_address();
      case Opcode::tcgen05_mma:
      case Opcode::tcgen05_mma_sp:
        if (const std::string fault = wide_tensor_address(); !fault.empty()) return fault;
        return tensor_product();
      case Opcode::setmaxnreg:
        return outside(0, 24, 256) || value(0) % 8 != 0 ? "value must be 24..256 and a multiple of 8" : "";
      case Opcode::pmevent:
        return outside(0, 0, 15) ? "event number 0..15" : "";
      case Opcode::bfe:
        return outside(2, 0, 255) || outside(3, 0, 255) ? "position and length 0..255" : "";
      case Opcode::bfi:
        return outside(3, 0, 255) || outside(4, 0, 255) ? "position and length 0..255" : "";
      case Opcode::discard:
      case Opcode::applypriority:
        return is(1) && value(1) != 128 ? "size must be 128" : "";
      case Opcode::fence:
        return is(1) && value(1) != 128 ? "size must be 128" : "";
      case Opcode::tensormap_cp_fenceproxy:
        return is(2) && value(2) != 128 ? "size must be 128" : "";
      case Opcode::tensormap_replace:
        return tensor_map_field();
      case Opcode::createpolicy:
        return fraction();
      case Opcode::alloca:
        return is(2) && (value(2) <= 0 || !std::has_single_bit(static_cast<std::uint64_t>(value(2))))
                   ? "alignment must be a power of two"
                   : "";
      case Opcode::mbarrier_arrive:
      case Opcode::mbarrier_arrive_drop:
        return !s_.instr.has(Mod::expect_tx) && is(2) && value(2) == 0 ? "count must not be 0" : "";
      case Opcode::mbarrier_test_wait:
      case Opcode::mbarrier_try_wait:
        return s_.instr.has(Mod::parity) && outside(2, 0, 1) ? "parity must be 0 or 1" : "";
      default:
        return {};
    }
  }

 private:
  static constexpr std::size_t kNone = 99;

  [[nodiscard]] bool is(std::size_t i) const {
    return i < operands_.size() && operands_[i].kind == OperandKind::integer;
  }
  [[nodiscard]] std::int64_t value(std::size_t i) const { return operands_[i].value; }
  [[nodiscard]] bool outside(std::size_t i, std::int64_t low, std::int64_t high) const {
    return is(i) && (value(i) < low || value(i) > high);
  }

  std::string barrier(std::size_t number, std::size_t threads) {
    if (outside(number, 0, 15)) return "barrier number 0..15";
    if (is(threads) && value(threads) % 32 != 0) return "thread count must be a multiple of 32";
    return {};
  }

  std::string copy() {
    const std::int64_t bytes = value(2);
    if (s_.instr.has(Mod::cg) && bytes != 16) return "cp.async.cg copies 16 bytes";
    if (bytes != 4 && bytes != 8 && bytes != 16) return "cp.async.ca copies 4, 8 or 16 bytes";
    if (outside(3, 0, bytes)) return fmt::format("source size must be 0..{}", bytes);
    return {};
  }

  std::string multiple_of_16(std::size_t i) {
    return is(i) && value(i) % 16 != 0 ? "size must be a multiple of 16" : "";
  }

  // Operand `at` is the metadata of a sparse A, and the next one its selector.
  std::string metadata(std::size_t at, int selectors) {
    if (operands_[at].kind != OperandKind::reg) return "the metadata of A must be a register";
    if (!outside(at + 1, 0, selectors - 1)) return {};
    return selectors == 1 ? "the sparsity selector must be 0"
                          : fmt::format("the sparsity selector must be 0 to {}", selectors - 1);
  }

  // d, a, b, c {, metadata, selector} {, scales of a, {byte, lane}, scales of b, {byte, lane}}
  std::string matrix() {
    const Instr& instr = s_.instr;
    std::size_t next = 4;
    if (is_sparse(instr)) {
      const bool in_bytes = instr.has(Mod::kind_f8f6f4) || instr.has(Mod::kind_mxf8f6f4);
      const std::string fault = metadata(next, metadata_selectors(in_bytes ? 8 : bits(instr.type(1)), instr.shape.k));
      if (!fault.empty()) return fault;
      next += 2;
    }
    if (!instr.has(Mod::block_scale)) return {};
    for (const bool of_a : {true, false}) {
      const auto choice = s_.function.elements_of(operands_[next + 1]);
      const int step = block_scales_of(instr), lanes = of_a ? 2 : 4;
      const auto wrong = [](const Operand& o, int most, int multiple) {
        return o.kind == OperandKind::integer && (o.value < 0 || o.value > most || o.value % multiple != 0);
      };
      if (wrong(choice[0], 3, step))
        return step == 4 ? "the byte of the scales must be 0"
                         : fmt::format("the byte of the scales must be 0 to 3, a multiple of {}", step);
      if (wrong(choice[1], lanes - 1, 1))
        return fmt::format("the lane of the scales of {} must be 0 to {}", of_a ? 'A' : 'B', lanes - 1);
      next += 2;
    }
    return {};
  }

  // d, a, b, {metadata, selector,} scale-d, sign a, sign b, {trans a,} trans b
  std::string warpgroup_matrix() {
    const bool sparse = is_sparse(s_.instr);
    if (sparse) {
      const std::string fault = metadata(3, metadata_selectors(bits(s_.instr.type(1)), s_.instr.shape.k));
      if (!fault.empty()) return fault;
    }
    const std::size_t scale = sparse ? 5 : 3, end = scale + 5;
    if (outside(scale, 0, 1)) return "scale-d must be 0 or 1";
    for (std::size_t i = scale + 1; i < scale + 3; ++i) {
      if (is(i) && value(i) != 1 && value(i) != -1) return "the signs of A and B must be 1 or -1";
    }
    for (std::size_t i = scale + 3; i < end; ++i) {
      if (outside(i, 0, 1)) return "transposition must be 0 or 1";
    }
    const bool from_registers = operands_[1].kind == OperandKind::vector;
    if (from_registers && operands_.size() == end)
      return fmt::format("A in registers cannot be transposed: {} operands", end - 1);
    if (!from_registers && operands_.size() == end - 1)
      return fmt::format("A by descriptor has a transposition too: {} operands", end);
    return {};
  }

  std::string wide_tensor_address() {
    for (const Operand& o : operands_) {
      if (o.kind != OperandKind::address) continue;
      const Operand& base = s_.function.elements_of(o)[0];
      if (base.kind == OperandKind::reg && bits(type_of(base)) != 32) return "an address in tensor memory has 32 bits";
    }
    return "";
  }

  // d, a, b, description, then {lanes} p scale, {lanes} p, p scale, or p; with block scales: d, a, b, description,
  // scales of a, scales of b, p. A sparse A: its metadata before the description.
  std::string tensor_product() {
    if (s_.instr.has(Mod::block_scale)) return "";
    const std::size_t next = s_.instr.opcode == Opcode::tcgen05_mma_sp ? 5 : 4;
    const bool lanes = operands_[next].kind == OperandKind::vector;
    const std::size_t p = lanes ? next + 1 : next, scale = p + 1;
    if (lanes && operands_.size() <= p) return "the lanes are followed by a predicate: whether D is an input";
    if (operands_.size() > scale + 1) return "too many operands";
    if (operands_[p].kind == OperandKind::reg && type_of(operands_[p]) != Type::pred)
      return "whether D is an input must be a predicate";
    if (operands_.size() <= scale) return "";
    if (!s_.instr.has(Mod::kind_f16) && !s_.instr.has(Mod::kind_tf32)) return "only .kind::f16 and .kind::tf32 scale D";
    return !is(scale) || outside(scale, 0, 15) ? "the scale of D must be a number from 0 to 15" : "";
  }
  [[nodiscard]] Type type_of(const Operand& o) const {
    return s_.function.registers[static_cast<std::size_t>(o.index)].type;
  }

  std::string fraction() {
    if (!s_.instr.has(Mod::fractional) || operands_.size() < 2) return {};
    const Operand& o = operands_[1];
    const double part = o.kind == OperandKind::float_bits ? std::bit_cast<float>(static_cast<std::uint32_t>(o.value))
                                                          : std::bit_cast<double>(o.value);
    const bool number = o.kind == OperandKind::float_bits || o.kind == OperandKind::double_bits;
    return number && !(part > 0 && part <= 1) ? "fraction must be over 0 and up to 1" : "";
  }

  std::string tensor_map_field() {
    const bool axis = s_.instr.has(Mod::box_dim) || s_.instr.has(Mod::global_dim) || s_.instr.has(Mod::global_stride) ||
                      s_.instr.has(Mod::element_stride);
    if (axis && outside(1, 0, 4)) return "axis 0..4";
    if (s_.instr.has(Mod::elemtype) && outside(1, 0, 12)) return "element type 0..12";
    return {};
  }

  const Checked& s_;
  std::span<const Operand> operands_;
};

}  // namespace

std::string literal_fault(const Checked& s) {
  return LiteralCheck(s).fault();
}

}  // namespace kvscope::ptx
