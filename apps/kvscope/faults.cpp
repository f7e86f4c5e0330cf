#include "apps/kvscope/faults.h"

#include <iostream>

#include "core/base/errors.h"

namespace kvscope::apps {

int print_faults(const std::exception& error) {
  for (const std::string& line : fault_lines(error)) std::cerr << "kvscope: " << line << '\n';
  return kExitBadInput;
}

}  // namespace kvscope::apps
