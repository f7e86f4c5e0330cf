// Questions compared member by member, and printed as gtest prints them when two differ.
#pragma once

#include <ostream>
#include <tuple>

#include "core/trace/explanation.h"

namespace kvscope::trace {

inline bool operator==(const Question& a, const Question& b) {
  return std::tie(a.seq, a.token, a.layer, a.head, a.dim, a.kv, a.step) ==
         std::tie(b.seq, b.token, b.layer, b.head, b.dim, b.kv, b.step);
}
inline void PrintTo(const Question& q, std::ostream* out) {
  *out << (q.kv == KOrV::k ? "K" : "V") << " of " << q.seq.value << ':' << q.token.value << " layer " << q.layer.value
       << " head " << q.head.value << " dim " << q.dim.value << " step " << q.step.value;
}

}  // namespace kvscope::trace
