#include "core/base/errors.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

namespace kvscope {

std::string format_faults(std::string_view object, const std::vector<Fault>& faults) {
  const auto line = [](const Fault& fault) {
    return fault.where.empty() ? fault.message : fmt::format("{}: {}", fault.where, fault.message);
  };
  if (faults.size() == 1) return fmt::format("{} rejected: {}", object, line(faults.front()));
  std::string text = fmt::format("{} rejected, {} faults:", object, faults.size());
  for (const Fault& fault : faults) text += "\n  " + line(fault);
  return text;
}

void throw_index_error(std::string_view what, std::int64_t value, std::int64_t end, std::string_view next_step) {
  throw IndexError(
      fmt::format("{} {} is outside [0, {}){}{}", what, value, end, next_step.empty() ? "" : ": ", next_step));
}

void assertion_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "kvscope: internal error at %s:%d: %s is false. Please report it with the command you ran.\n",
               file, line, condition);
  std::abort();
}

}  // namespace kvscope
