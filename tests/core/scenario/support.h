// Helpers of this folder's tests: a small valid document to modify, and the faults of a call as data.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/scenario/scenario.h"

namespace kvscope {

inline void PrintTo(const Fault& fault, std::ostream* out) {
  *out << fault.where << ": " << fault.message;
}

// The faults that `call` throws as an InputError; a test failure when it throws nothing.
template <class Call>
std::vector<Fault> faults_of(Call&& call) {
  try {
    std::forward<Call>(call)();
  } catch (const InputError& error) {
    return error.faults();
  }
  ADD_FAILURE() << "no InputError was thrown";
  return {};
}

// Passes every check: Llama's shape with an unusual size, pages of 12, one listed request.
inline Scenario small_scenario() {
  Scenario s;
  s.model = {"custom", 3, 6, 2, 20, false, 20};
  s.cache.page_size = 12;
  s.cache.blocks = 7;
  s.tile.BN = 24;
  s.requests.list = {{5, 30, 4, {{9, 12}, {2, 18}}}};
  return s;
}

}  // namespace kvscope
