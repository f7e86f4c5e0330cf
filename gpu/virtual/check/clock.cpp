#include "gpu/virtual/check/clock.h"

#include <algorithm>
#include <iterator>

namespace kvscope::ptx {

// --- one CTA's part --------------------------------------------------------------------------------------------------

bool Clock::Part::includes(const Part& other) const {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i] < other.steps[i]) return false;
  }
  return std::all_of(other.singles.begin(), other.singles.end(),
                     [this](const auto& single) { return covers(single.first, single.second); });
}

// An entry that its warp's number covers is redundant.
void Clock::Part::drop_covered() {
  std::erase_if(singles, [this](const auto& single) { return of_warp(single.first) >= single.second; });
}

void Clock::Part::join(const Part& other) {
  for (std::size_t i = 0; i < steps.size(); ++i) steps[i] = std::max(steps[i], other.steps[i]);
  if (!other.singles.empty()) {
    std::vector<std::pair<std::uint32_t, Step>> both;
    both.reserve(singles.size() + other.singles.size());
    std::merge(singles.begin(), singles.end(), other.singles.begin(), other.singles.end(), std::back_inserter(both));
    singles.clear();
    for (const auto& single : both) {  // of two entries of one actor the larger comes second
      if (!singles.empty() && singles.back().first == single.first) {
        singles.back() = single;
      } else {
        singles.push_back(single);
      }
    }
  }
  drop_covered();
}

// --- the clock -------------------------------------------------------------------------------------------------------

std::size_t Clock::place(std::uint32_t cta) const {
  const auto at =
      std::lower_bound(parts_.begin(), parts_.end(), cta, [](const Entry& e, std::uint32_t c) { return e.cta < c; });
  return static_cast<std::size_t>(at - parts_.begin());
}

Clock::Part& Clock::own(std::uint32_t cta) {
  const std::size_t i = place(cta);
  if (i == parts_.size() || parts_[i].cta != cta) {
    parts_.insert(parts_.begin() + static_cast<std::ptrdiff_t>(i), {cta, std::make_shared<Part>(warps_)});
  } else if (parts_[i].part.use_count() > 1) {
    parts_[i].part = std::make_shared<Part>(*parts_[i].part);
  }
  return *parts_[i].part;
}

void Clock::raise_warp(ActorKey lane0, Step step) {
  if (covers_warp(lane0, step)) return;
  Part& part = own(cta_of(lane0));
  part.steps[part.slot(number_of(lane0))] = step;
  part.drop_covered();
}

void Clock::raise(ActorKey actor, Step step) {
  if (covers(actor, step)) return;
  auto& singles = own(cta_of(actor)).singles;
  const std::uint32_t number = number_of(actor);
  const auto at = std::lower_bound(singles.begin(), singles.end(), std::pair{number, Step{0}});
  if (at != singles.end() && at->first == number) {
    at->second = step;
  } else {
    singles.insert(at, {number, step});
  }
}

void Clock::join(const Clock& other) {
  if (parts_.empty()) {
    parts_ = other.parts_;
    return;
  }
  for (const Entry& theirs : other.parts_) {
    const std::size_t i = place(theirs.cta);
    if (i == parts_.size() || parts_[i].cta != theirs.cta) {
      parts_.insert(parts_.begin() + static_cast<std::ptrdiff_t>(i), theirs);
      continue;
    }
    std::shared_ptr<Part>& mine = parts_[i].part;
    if (mine == theirs.part || mine->includes(*theirs.part)) continue;
    if (theirs.part->includes(*mine)) {
      mine = theirs.part;
    } else {
      own(theirs.cta).join(*theirs.part);
    }
  }
}

void Clock::lower(const Clock& other) {
  std::erase_if(parts_, [&](const Entry& entry) { return other.find(entry.cta) == nullptr; });
  for (const Entry& entry : parts_) {
    const Part& theirs = *other.find(entry.cta);
    Part& mine = own(entry.cta);
    for (std::size_t i = 0; i < mine.steps.size(); ++i) mine.steps[i] = std::min(mine.steps[i], theirs.steps[i]);
    mine.singles.clear();
  }
}

bool Clock::includes(const Clock& other) const {
  return std::all_of(other.parts_.begin(), other.parts_.end(), [this](const Entry& theirs) {
    const Part* mine = find(theirs.cta);
    return mine == theirs.part.get() || (mine != nullptr && mine->includes(*theirs.part));
  });
}

Known joined(const Known& mine, const Known& more) {
  if (mine == nullptr || mine == more || more->includes(*mine)) return more;
  if (mine->includes(*more)) return mine;
  const auto both = std::make_shared<View>(*mine);
  both->join(*more);
  return both;
}

}  // namespace kvscope::ptx
