#include "apps/launch/policy.h"

#include "core/base/errors.h"

namespace kvscope::apps {

ptx::Schedule read_policy(const std::string& text) {
  const auto schedule = ptx::policy_from_name(text);
  if (!schedule) throw InputError("command line", "--policy", ptx::policy_fault(text));
  return *schedule;
}

ptx::SumMode sum_of(const std::string& checked) {
  return ptx::sum_from_name(checked).value();
}

}  // namespace kvscope::apps
