// Names of the registers, variables, labels and tables of a function when all of them are in one scope.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "gpu/virtual/text/module.h"

namespace kvscope::ptx {

// Registers declared by one item of a .reg: a range, a vector, or a single register.
struct RegisterGroup {
  std::int32_t first = 0;   // Function::registers
  std::int32_t count = 0;   // of names
  std::int32_t vector = 1;  // registers per name
  bool range = false;
  std::string name;  // in the single scope
};

class FlatNames {
 public:
  // `taken`: names of the module, which a name of the body must not hide.
  FlatNames(const Module& module, const Function& function, const std::unordered_set<std::string_view>& taken);

  [[nodiscard]] const std::vector<RegisterGroup>& registers() const { return groups_; }
  [[nodiscard]] std::string reg(std::int32_t index) const;
  // Also for variables of the module.
  [[nodiscard]] std::string variable(std::int32_t index) const;
  [[nodiscard]] const std::string& label(std::size_t i) const { return labels_[i]; }
  [[nodiscard]] const std::string& label_before(std::int32_t statement) const;  // the first label there
  [[nodiscard]] const std::string& table(std::int32_t index) const { return tables_[static_cast<std::size_t>(index)]; }

 private:
  std::string unused(std::string_view name);
  void name_variables(const std::vector<std::int32_t>& list);
  void group_registers();

  const Module& module_;
  const Function& function_;
  const std::unordered_set<std::string_view>& taken_;
  std::unordered_set<std::string> used_;
  std::unordered_set<std::string_view> prefixes_;  // of ranges
  std::vector<RegisterGroup> groups_;
  std::vector<std::int32_t> group_of_;  // [register]
  std::unordered_map<std::int32_t, std::string> variables_;
  std::vector<std::string> labels_;
  std::unordered_map<std::int32_t, std::size_t> label_at_;
  std::vector<std::string> tables_;
};

// The names of a module's functions and variables.
[[nodiscard]] std::unordered_set<std::string_view> names_of(const Module& module);

}  // namespace kvscope::ptx
