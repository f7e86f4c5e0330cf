#include "gpu/virtual/check/clock.h"

#include <algorithm>
#include <iterator>

namespace kvscope::ptx {

bool Clock::includes(const Clock& other) const {
  for (std::size_t w = 0; w < warps_.size(); ++w) {
    if (warps_[w] < other.warps_[w] || copies_[w] < other.copies_[w]) return false;
  }
  return std::all_of(other.others_.begin(), other.others_.end(),
                     [this](const auto& entry) { return covers(entry.first, entry.second); });
}

void Clock::lower(std::vector<Step>& steps) const {
  for (std::size_t w = 0; w < steps.size(); ++w) steps[w] = std::min(steps[w], warps_[w]);
}

// What a warp's number says already needs no line of its own.
void Clock::drop_known() {
  std::erase_if(others_, [this](const auto& entry) { return of_warp(entry.first) >= entry.second; });
}

void Clock::raise_warp(int warp, Step step) {
  Step& at = warps_[static_cast<std::size_t>(warp)];
  if (at >= step) return;
  at = step;
  drop_known();
}

void Clock::raise_copies(int warp, Step step) {
  Step& at = copies_[static_cast<std::size_t>(warp)];
  if (at >= step) return;
  at = step;
  drop_known();
}

void Clock::raise(ActorKey actor, Step step) {
  if (of_warp(actor) >= step) return;
  const auto place = std::lower_bound(others_.begin(), others_.end(), std::pair{actor, Step{0}});
  if (place != others_.end() && place->first == actor) {
    place->second = std::max(place->second, step);
  } else {
    others_.insert(place, {actor, step});
  }
}

void Clock::join(const Clock& other) {
  for (std::size_t w = 0; w < warps_.size(); ++w) {
    warps_[w] = std::max(warps_[w], other.warps_[w]);
    copies_[w] = std::max(copies_[w], other.copies_[w]);
  }
  if (!other.others_.empty()) {
    std::vector<std::pair<ActorKey, Step>> both;
    both.reserve(others_.size() + other.others_.size());
    std::merge(others_.begin(), others_.end(), other.others_.begin(), other.others_.end(), std::back_inserter(both));
    others_.clear();
    for (const auto& entry : both) {  // of one actor's two, the larger stands last
      if (!others_.empty() && others_.back().first == entry.first) {
        others_.back() = entry;
      } else {
        others_.push_back(entry);
      }
    }
  }
  drop_known();
}

}  // namespace kvscope::ptx
