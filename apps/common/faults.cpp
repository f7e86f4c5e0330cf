#include "apps/common/faults.h"

#include <iostream>

#include "core/base/errors.h"

namespace kvscope::apps {

int print_faults(std::string_view program, const std::exception& error) {
  for (const std::string& line : fault_lines(error)) std::cerr << program << ": " << line << '\n';
  return kExitBadInput;
}

}  // namespace kvscope::apps
