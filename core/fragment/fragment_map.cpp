#include "core/fragment/fragment_map.h"

#include <fmt/format.h>

#include <utility>

#include "core/base/errors.h"

namespace kvscope {
namespace {

constexpr int kMostElements = 1 << 20;
constexpr std::size_t kFaultsShown = 8;  // a wrong formula would give thousands

std::vector<Fault> extent_faults(const FragmentInfo& info) {
  std::vector<Fault> faults;
  const auto check = [&](const char* where, int value) {
    if (value < 1 || value > kMostElements) {
      faults.push_back({where, fmt::format("{} is outside [1, {}]", value, kMostElements)});
    }
  };
  check("lanes", info.lanes);
  check("elements", info.elements);
  check("rows", info.rows);
  check("columns", info.columns);
  check("elements_per_register", info.elements_per_register);
  if (!faults.empty()) return faults;
  const std::int64_t places = std::int64_t{info.lanes} * info.elements, tile = std::int64_t{info.rows} * info.columns;
  if (places != tile || tile > kMostElements) {
    faults.push_back(
        {"extents", fmt::format("{} lanes of {} elements are {} places, but {} x {} are {}: make them equal, "
                                "and at most {}",
                                info.lanes, info.elements, places, info.rows, info.columns, tile, kMostElements)});
  }
  return faults;
}

std::size_t index_of(int slow, int extent, int fast) {
  return static_cast<std::size_t>(slow) * static_cast<std::size_t>(extent) + static_cast<std::size_t>(fast);
}

}  // namespace

FragmentMap::FragmentMap(FragmentInfo info, const std::function<TilePlace(FragmentPlace)>& tile_of)
    : info_(std::move(info)) {
  if (auto faults = extent_faults(info_); !faults.empty()) throw GeometryError(info_.name, std::move(faults));
  const FragmentPlace nobody{-1, -1};
  tile_.resize(index_of(info_.lanes, info_.elements, 0));
  fragment_.assign(tile_.size(), nobody);
  std::vector<Fault> faults;
  for (int lane = 0; lane < info_.lanes; ++lane) {
    for (int element = 0; element < info_.elements; ++element) {
      const TilePlace at = tile_of({lane, element});
      const std::string where = fmt::format("lane {}, element {}", lane, element);
      if (at.row < 0 || at.row >= info_.rows || at.column < 0 || at.column >= info_.columns) {
        faults.push_back(
            {where, fmt::format("({}, {}) is outside {} x {}", at.row, at.column, info_.rows, info_.columns)});
        continue;
      }
      FragmentPlace& holder = fragment_[index_of(at.row, info_.columns, at.column)];
      if (holder != nobody) {
        faults.push_back({where, fmt::format("({}, {}) is held by lane {}, element {} already", at.row, at.column,
                                             holder.lane, holder.element)});
      }
      holder = {lane, element};
      tile_[index_of(lane, info_.elements, element)] = at;
    }
  }
  if (faults.size() > kFaultsShown) faults.resize(kFaultsShown);
  if (!faults.empty()) throw GeometryError(info_.name, std::move(faults));
}

TilePlace FragmentMap::tile_of(FragmentPlace place) const {
  check_index(info_.name + ": lane", place.lane, info_.lanes);
  check_index(info_.name + ": element", place.element, info_.elements);
  return tile_[index_of(place.lane, info_.elements, place.element)];
}

FragmentPlace FragmentMap::fragment_of(TilePlace place) const {
  check_index(info_.name + ": " + info_.row_name, place.row, info_.rows);
  check_index(info_.name + ": " + info_.column_name, place.column, info_.columns);
  return fragment_[index_of(place.row, info_.columns, place.column)];
}

void check_count(const FragmentMap& map, const char* what, std::size_t count) {
  const FragmentInfo& info = map.info();
  const std::size_t expected = index_of(info.lanes, info.elements, 0);
  if (count == expected) return;
  throw GeometryError(fmt::format("{} of {}: {} values, but {} lanes of {} elements are {}", what, info.name, count,
                                  info.lanes, info.elements, expected));
}

}  // namespace kvscope
