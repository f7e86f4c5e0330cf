#include "apps/common/faults.h"

#include <iostream>
#include <new>

#include "apps/common/memory_failure.h"
#include "core/base/errors.h"

namespace kvscope::apps {

int print_faults(std::string_view program, const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) == nullptr) {
    try {
      for (const std::string& line : fault_lines(error)) std::cerr << program << ": " << line << '\n';
      return kExitBadInput;
    } catch (const std::bad_alloc&) {
    }
  }
  print_memory_failure();
  return kExitBadInput;
}

}  // namespace kvscope::apps
