#include "viz/window/note_wish.h"

#include <fmt/format.h>

#include <string>

#include "core/base/errors.h"
#include "viz/playback/find.h"

namespace kvscope::viz {
namespace {

// "overview, sequences, pool"
std::string view_names() {
  std::string names;
  for (const View view : kViews) {
    if (!names.empty()) names += ", ";
    names += name(view);
  }
  return names;
}

TileRequest tile_of_link(const std::string& text, const Facts& facts) {
  const TileRequest tile = parse_tile_request(text);
  check_index("sequence", tile.seq.value, facts.sequences);
  if (facts.scenario) {
    const ModelGeometry& model = facts.scenario->model;
    check_index("layer", tile.layer.value, model.layers);
    check_index("head", tile.head.value, model.kv_heads);
    check_index("dim", tile.dim.value, model.head_size);
  }
  return tile;
}

Selection selection_of_link(const std::string& text, const Facts& facts) {
  const Target target = parse_find(text, facts);
  const auto* selection = std::get_if<Selection>(&target);
  if (selection == nullptr || selection->of_time()) {
    throw InputError("find", fmt::format("'{}'", text), "is not an object: set the time with step=");
  }
  return *selection;
}

}  // namespace

OpenWish wish_of(const NotePart& link, const Facts& facts) {
  const NoteLink& target = *link.link;
  OpenWish wish;
  std::vector<Fault> faults;
  const auto reading = [&](auto&& read) {
    try {
      read();
    } catch (const std::exception& error) {
      for (const std::string& line : fault_lines(error)) faults.push_back({fmt::format("link [{}]", link.text), line});
    }
  };
  reading([&] {
    if (!target.step) return;
    if (const std::string why = why_no_step(*target.step, facts); !why.empty()) throw IndexError(why);
    wish.step = StepIdx{*target.step};
  });
  reading([&] {
    if (target.view.empty()) return;
    wish.view = find_view(target.view);
    if (!wish.view) throw InputError("view", fmt::format("'{}'", target.view), "choose one of " + view_names());
  });
  reading([&] {
    if (!target.select.empty()) wish.pinned = selection_of_link(target.select, facts);
  });
  reading([&] {
    if (!target.tile.empty()) wish.tile = tile_of_link(target.tile, facts);
  });
  wish.tile_event = target.event;
  if (!faults.empty()) throw InputError("notes", std::move(faults));
  return wish;
}

}  // namespace kvscope::viz
