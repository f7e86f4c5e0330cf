#include "gpu/virtual/check/detail/grid_clock.h"

#include <algorithm>

namespace kvscope::ptx {
namespace {

bool includes_steps(const std::vector<Step>& a, const std::vector<Step>& b) {
  for (std::size_t i = 0; i < b.size(); ++i) {
    if (b[i] > (i < a.size() ? a[i] : 0)) return false;
  }
  return true;
}

}  // namespace

const GridClock::Part* GridClock::find(std::int32_t cta) const {
  const auto at =
      std::lower_bound(parts_.begin(), parts_.end(), cta, [](const Part& p, std::int32_t c) { return p.cta < c; });
  return at != parts_.end() && at->cta == cta ? &*at : nullptr;
}

Step GridClock::of(std::int32_t cta, std::size_t slot) const {
  const Part* part = find(cta);
  return part != nullptr && slot < part->steps->size() ? (*part->steps)[slot] : 0;
}

Step GridClock::of_engine(std::uint64_t key) const {
  const auto at = std::lower_bound(engines_.begin(), engines_.end(), std::pair{key, Step{0}});
  return at != engines_.end() && at->first == key ? at->second : 0;
}

void GridClock::raise(std::int32_t cta, std::size_t slot, Step step) {
  auto at =
      std::lower_bound(parts_.begin(), parts_.end(), cta, [](const Part& p, std::int32_t c) { return p.cta < c; });
  if (at == parts_.end() || at->cta != cta) at = parts_.insert(at, {cta, std::make_shared<Steps>()});
  if (slot < at->steps->size() && (*at->steps)[slot] >= step) return;
  if (at->steps.use_count() > 1) at->steps = std::make_shared<Steps>(*at->steps);
  if (at->steps->size() <= slot) at->steps->resize(slot + 1);
  (*at->steps)[slot] = std::max((*at->steps)[slot], step);
}

void GridClock::raise_engine(std::uint64_t key, Step step) {
  const auto at = std::lower_bound(engines_.begin(), engines_.end(), std::pair{key, Step{0}});
  if (at != engines_.end() && at->first == key) {
    at->second = std::max(at->second, step);
  } else {
    engines_.insert(at, {key, step});
  }
}

void GridClock::join(const GridClock& other) {
  for (const Part& theirs : other.parts_) {
    const auto at = std::lower_bound(parts_.begin(), parts_.end(), theirs.cta,
                                     [](const Part& p, std::int32_t c) { return p.cta < c; });
    if (at == parts_.end() || at->cta != theirs.cta) {
      parts_.insert(at, theirs);
      continue;
    }
    if (at->steps == theirs.steps || includes_steps(*at->steps, *theirs.steps)) continue;
    if (includes_steps(*theirs.steps, *at->steps)) {
      at->steps = theirs.steps;
      continue;
    }
    auto both = std::make_shared<Steps>(*at->steps);
    if (both->size() < theirs.steps->size()) both->resize(theirs.steps->size());
    for (std::size_t i = 0; i < theirs.steps->size(); ++i) (*both)[i] = std::max((*both)[i], (*theirs.steps)[i]);
    at->steps = std::move(both);
  }
  for (const auto& [key, step] : other.engines_) raise_engine(key, step);
}

bool GridClock::includes(const GridClock& other) const {
  for (const Part& theirs : other.parts_) {
    const Part* mine = find(theirs.cta);
    if (mine == nullptr || (mine->steps != theirs.steps && !includes_steps(*mine->steps, *theirs.steps))) return false;
  }
  return std::all_of(other.engines_.begin(), other.engines_.end(),
                     [this](const auto& e) { return of_engine(e.first) >= e.second; });
}

}  // namespace kvscope::ptx
