#include "gpu/virtual/semantics/detail/op_query.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace kvscope::ptx {

std::optional<SumMode> sum_from_name(std::string_view name) {
  const auto found = std::find(kSumNames.begin(), kSumNames.end(), name);
  if (found == kSumNames.end()) return std::nullopt;
  return static_cast<SumMode>(found - kSumNames.begin());
}

}  // namespace kvscope::ptx

namespace kvscope::ptx::semantics {
namespace {

int register_bytes_of(Type type) {
  switch (type) {
    case Type::b8:
    case Type::u8:
    case Type::s8:
    case Type::e4m3:
    case Type::e5m2:
    case Type::e2m1x2:
      return 1;
    case Type::b16:
    case Type::u16:
    case Type::s16:
    case Type::f16:
    case Type::bf16:
    case Type::e4m3x2:
    case Type::e5m2x2:
    case Type::e2m3x2:
    case Type::e3m2x2:
    case Type::ue8m0x2:
    case Type::e2m1x4:
      return 2;
    case Type::b32:
    case Type::u32:
    case Type::s32:
    case Type::f32:
    case Type::tf32:
    case Type::f16x2:
    case Type::bf16x2:
    case Type::u16x2:
    case Type::s16x2:
    case Type::e4m3x4:
    case Type::e5m2x4:
    case Type::e2m3x4:
    case Type::e3m2x4:
      return 4;
    case Type::b64:
    case Type::u64:
    case Type::s64:
    case Type::f64:
    case Type::f32x2:
      return 8;
    case Type::b128:
      return 16;
    default:
      return 0;
  }
}

bool is_signed_type(Type type) {
  return type == Type::s8 || type == Type::s16 || type == Type::s32 || type == Type::s64 || type == Type::s16x2;
}

bool is_float_type(Type type) {
  switch (type) {
    case Type::f16:
    case Type::f32:
    case Type::f64:
    case Type::bf16:
    case Type::tf32:
    case Type::e4m3:
    case Type::e5m2:
    case Type::f16x2:
    case Type::bf16x2:
    case Type::f32x2:
    case Type::e4m3x2:
    case Type::e5m2x2:
    case Type::e2m3x2:
    case Type::e3m2x2:
    case Type::e2m1x2:
    case Type::ue8m0x2:
    case Type::e4m3x4:
    case Type::e5m2x4:
    case Type::e2m3x4:
    case Type::e3m2x4:
    case Type::e2m1x4:
      return true;
    default:
      return false;
  }
}

constexpr std::pair<Mod, Rounding> kRoundings[] = {{Mod::rn, Rounding::nearest},
                                                   {Mod::rz, Rounding::zero},
                                                   {Mod::rm, Rounding::down},
                                                   {Mod::rp, Rounding::up},
                                                   {Mod::rna, Rounding::away}};

void read_rounding(const Instr& instr, OpQuery& query) {
  static constexpr std::pair<Mod, Rounding> kToInteger[] = {
      {Mod::rni, Rounding::nearest}, {Mod::rzi, Rounding::zero}, {Mod::rmi, Rounding::down}, {Mod::rpi, Rounding::up}};
  query.rounding = rounding_of(instr);
  query.stochastic = instr.has(Mod::rs);
  query.rounded =
      std::any_of(std::begin(kRoundings), std::end(kRoundings), [&](const auto& to) { return instr.has(to.first); });
  for (const auto& [mod, rounding] : kToInteger) {
    if (!instr.has(mod)) continue;
    query.rounding = rounding;
    query.to_integer = true;
  }
}

void read_compare(const Instr& instr, OpQuery& query) {
  // The unsigned words lo ls hi hs mean lt le gt ge for unsigned types.
  static constexpr std::pair<Mod, Compare> kWords[] = {
      {Mod::eq, Compare::eq},          {Mod::ne, Compare::ne},   {Mod::lt, Compare::lt},
      {Mod::le, Compare::le},          {Mod::gt, Compare::gt},   {Mod::ge, Compare::ge},
      {Mod::lo_unsigned, Compare::lt}, {Mod::ls, Compare::le},   {Mod::hi_unsigned, Compare::gt},
      {Mod::hs, Compare::ge},          {Mod::equ, Compare::equ}, {Mod::neu, Compare::neu},
      {Mod::ltu, Compare::ltu},        {Mod::leu, Compare::leu}, {Mod::gtu, Compare::gtu},
      {Mod::geu, Compare::geu},        {Mod::num, Compare::num}, {Mod::nan, Compare::nan}};
  for (const auto& [mod, compare] : kWords) {
    if (!instr.has(mod)) continue;
    query.compare = compare;
    query.compares = true;
  }
  if (instr.has(Mod::and_)) query.combine = Combine::and_;
  if (instr.has(Mod::or_)) query.combine = Combine::or_;
  if (instr.has(Mod::xor_)) query.combine = Combine::xor_;
}

void read_words(const Instr& instr, OpQuery& query) {
  static constexpr std::pair<Mod, bool OpQuery::*> kFlags[] = {
      {Mod::ftz, &OpQuery::ftz},   {Mod::sat, &OpQuery::sat},           {Mod::satfinite, &OpQuery::satfinite},
      {Mod::relu, &OpQuery::relu}, {Mod::approx, &OpQuery::approx},     {Mod::full, &OpQuery::full},
      {Mod::NaN, &OpQuery::nan},   {Mod::xorsign, &OpQuery::xorsign},   {Mod::oob, &OpQuery::oob},
      {Mod::cc, &OpQuery::carry},  {Mod::shiftamt, &OpQuery::shiftamt}, {Mod::clamp, &OpQuery::clamp},
      {Mod::wrap, &OpQuery::wrap}, {Mod::left, &OpQuery::left},         {Mod::right, &OpQuery::right},
      {Mod::popc, &OpQuery::popc}, {Mod::abs, &OpQuery::abs},           {Mod::add, &OpQuery::add}};
  for (const auto& [mod, flag] : kFlags) query.*flag = instr.has(mod);
  static constexpr std::pair<Mod, Half> kHalves[] = {{Mod::lo, Half::lo}, {Mod::hi, Half::hi}, {Mod::wide, Half::wide}};
  for (const auto& [mod, half] : kHalves) {
    if (instr.has(mod)) query.half = half;
  }
  static constexpr std::pair<Mod, Class> kClasses[] = {
      {Mod::finite, Class::finite},         {Mod::infinite, Class::infinite}, {Mod::number, Class::number},
      {Mod::notanumber, Class::notanumber}, {Mod::normal, Class::normal},     {Mod::subnormal, Class::subnormal}};
  for (const auto& [mod, float_class] : kClasses) {
    if (instr.has(mod)) query.float_class = float_class;
  }
  static constexpr std::pair<Mod, PrmtMode> kPrmt[] = {{Mod::f4e, PrmtMode::f4e}, {Mod::b4e, PrmtMode::b4e},
                                                       {Mod::rc8, PrmtMode::rc8}, {Mod::ecl, PrmtMode::ecl},
                                                       {Mod::ecr, PrmtMode::ecr}, {Mod::rc16, PrmtMode::rc16}};
  for (const auto& [mod, mode] : kPrmt) {
    if (instr.has(mod)) query.prmt = mode;
  }
}

}  // namespace

OpQuery query_of(const OpRequest& request) {
  const Instr& instr = *request.instr;
  OpQuery query;
  query.opcode = instr.opcode;
  query.type = instr.type(0);
  query.type2 = instr.type(1);
  query.type3 = instr.type(2);
  query.type4 = instr.type(3);
  query.type_count = instr.type_count;
  query.bytes = register_bytes_of(query.type);
  query.is_signed = is_signed_type(query.type);
  query.is_float = is_float_type(query.type);
  query.vector = instr.vector;
  query.m = instr.shape.m;
  query.n = instr.shape.n;
  query.k = instr.shape.k;
  query.sparse = is_sparse(instr);
  query.in_bytes = instr.has(Mod::kind_f8f6f4) || instr.has(Mod::kind_mxf8f6f4);
  if (instr.has(Mod::block_scale)) {
    query.scale = instr.type(4);
    query.scales = block_scales_of(instr);
  }
  for (std::size_t i = 0; i < request.register_bytes.size(); ++i) query.register_bytes[i] = request.register_bytes[i];
  query.uses_list = query.register_bytes[2] != 0 || query.register_bytes[3] != 0 || query.register_bytes[4] != 0;
  query.results = request.results;
  query.sum = request.sum;
  query.fused = request.fused;
  read_rounding(instr, query);
  read_compare(instr, query);
  read_words(instr, query);
  return query;
}

}  // namespace kvscope::ptx::semantics

namespace kvscope::ptx {

Rounding rounding_of(const Instr& instr) {
  for (const auto& [mod, rounding] : semantics::kRoundings) {
    if (instr.has(mod)) return rounding;
  }
  return Rounding::nearest;
}

}  // namespace kvscope::ptx
