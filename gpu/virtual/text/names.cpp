#include "gpu/virtual/text/detail/names.h"

#include <fmt/format.h>

#include <cstddef>

namespace kvscope::ptx {
namespace {

std::string_view without_digits(std::string_view name) {
  while (!name.empty() && name.back() >= '0' && name.back() <= '9') name.remove_suffix(1);
  return name;
}

}  // namespace

std::unordered_set<std::string_view> names_of(const Module& module) {
  std::unordered_set<std::string_view> names;
  for (const Function& f : module.functions) names.insert(f.name);
  for (const Variable& v : module.variables) {
    if (v.function < 0) names.insert(v.name);
  }
  return names;
}

FlatNames::FlatNames(const Module& module, const Function& function, const std::unordered_set<std::string_view>& taken)
    : module_(module), function_(function), taken_(taken) {
  name_variables(function.results);  // those of the head first: they keep their names
  name_variables(function.parameters);
  group_registers();
  name_variables(function.variables);
  for (std::size_t i = 0; i < function.labels.size(); ++i) {
    labels_.push_back(unused(function.labels[i].name));
    label_at_.try_emplace(function.labels[i].statement, i);
  }
  for (const TargetTable& table : function.tables) tables_.push_back(unused(table.name));
}

void FlatNames::name_variables(const std::vector<std::int32_t>& list) {
  for (const std::int32_t v : list) {
    const Variable& variable = module_.variables[static_cast<std::size_t>(v)];
    if (variable.in_register < 0) variables_.emplace(v, unused(variable.name));
  }
}

// Adjacent registers of one declaration share one view of the text as their name.
void FlatNames::group_registers() {
  const std::vector<Register>& all = function_.registers;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Register& r = all[i];
    const bool same = i > 0 && all[i - 1].name.data() == r.name.data();
    if (!same) {
      groups_.push_back({static_cast<std::int32_t>(i), 0, 1, r.number >= 0, {}});
      if (r.number >= 0) prefixes_.insert(r.name);
    }
    RegisterGroup& group = groups_.back();
    if (r.element <= 0) ++group.count;
    if (r.element > 0 && group.count == 1) ++group.vector;
    group_of_.push_back(static_cast<std::int32_t>(groups_.size()) - 1);
  }
  for (RegisterGroup& group : groups_) {
    const std::string_view name = all[static_cast<std::size_t>(group.first)].name;
    group.name = unused(name);
    // A range's numbers follow its name: "%r$2" would give "%r$20", which could be the name of another register.
    if (group.range && group.name != name) group.name += '_';
  }
}

// The name, or the name with suffix $2, $3, ...: it does not hide a name of the module, is unique, and does not match a
// name of a range.
std::string FlatNames::unused(std::string_view name) {
  std::string candidate(name);
  const std::string_view prefix = without_digits(name);
  bool in_range = prefix.size() != name.size() && prefixes_.contains(prefix);
  for (int n = 2; in_range || taken_.contains(candidate) || used_.contains(candidate); ++n) {
    candidate = fmt::format("{}${}", name, n);
    in_range = false;
  }
  used_.insert(candidate);
  return candidate;
}

std::string FlatNames::reg(std::int32_t index) const {
  constexpr std::string_view kElements = "xyzw";
  const Register& r = function_.registers[static_cast<std::size_t>(index)];
  const RegisterGroup& group = groups_[static_cast<std::size_t>(group_of_[static_cast<std::size_t>(index)])];
  std::string whole = group.name;
  if (r.number >= 0) whole += std::to_string(r.number);
  if (r.element >= 0) whole += {'.', kElements[static_cast<std::size_t>(r.element)]};
  return whole;
}

std::string FlatNames::variable(std::int32_t index) const {
  const auto found = variables_.find(index);
  if (found != variables_.end()) return found->second;
  const Variable& v = module_.variables[static_cast<std::size_t>(index)];
  return v.in_register >= 0 ? reg(v.in_register) : std::string(v.name);
}

const std::string& FlatNames::label_before(std::int32_t statement) const {
  return labels_[label_at_.at(statement)];
}

}  // namespace kvscope::ptx
