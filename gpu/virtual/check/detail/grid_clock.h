// Which steps of every thread of a grid happened before somebody goes on. A grid has many CTAs and a thread hears of
// few of them, so a clock has a part for each CTA that it knows of, and parts that are the same are shared.
//
//   slot of thread t of a CTA of T threads    t, its cp.async: T + t, its bulk stores: 2 T + t
//   engines that count on an arrival barrier  by key
//
//   join(a, b)    the larger of each number
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "gpu/virtual/check/happens_before.h"

namespace kvscope::ptx {

class GridClock {
 public:
  [[nodiscard]] Step of(std::int32_t cta, std::size_t slot) const;
  [[nodiscard]] Step of_engine(std::uint64_t key) const;
  void raise(std::int32_t cta, std::size_t slot, Step step);
  void raise_engine(std::uint64_t key, Step step);
  void join(const GridClock& other);
  // All that `other` knows.
  [[nodiscard]] bool includes(const GridClock& other) const;

 private:
  using Steps = std::vector<Step>;
  struct Part {
    std::int32_t cta = 0;
    std::shared_ptr<Steps> steps;  // written only while nobody shares it
  };
  [[nodiscard]] const Part* find(std::int32_t cta) const;

  std::vector<Part> parts_;                              // by CTA
  std::vector<std::pair<std::uint64_t, Step>> engines_;  // by key
};

}  // namespace kvscope::ptx
