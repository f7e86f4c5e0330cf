// A list of faults of one input with a maximum length, so that a hostile file does not produce a message of its size.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "core/base/errors.h"

namespace kvscope {

class FaultList {
 public:
  explicit FaultList(std::size_t bound) : bound_(bound) {}

  void add(std::string where, std::string message) {
    if (kept_.size() < bound_) {
      kept_.push_back({std::move(where), std::move(message)});
    } else {
      ++more_;
    }
  }

  [[nodiscard]] bool empty() const { return kept_.empty(); }
  [[nodiscard]] bool complete() const { return more_ == 0; }
  [[nodiscard]] const std::vector<Fault>& kept() const { return kept_; }

  // The kept faults, followed by "and 7 more" when there were more.
  [[nodiscard]] std::vector<Fault> take() {
    if (more_ > 0) kept_.push_back({"", "and " + std::to_string(more_) + " more"});
    return std::move(kept_);
  }

 private:
  std::size_t bound_;
  std::size_t more_ = 0;
  std::vector<Fault> kept_;
};

inline constexpr std::size_t kScenarioFaults = 100;
inline constexpr std::size_t kImportFaults = 20;

}  // namespace kvscope
