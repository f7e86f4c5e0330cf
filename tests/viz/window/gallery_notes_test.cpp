// Every link in the notes of every scenario of the gallery, followed in the scenario's own run: it names objects that
// exist at its step, and its tile is staged there or the reason is one of geometry.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "tests/viz/window/fake_backend.h"
#include "viz/playback/tile_fold.h"
#include "viz/playback/tile_selection.h"
#include "viz/window/note_wish.h"

namespace kvscope::viz::gallery_notes_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<NotePart> links_of(const std::string& description) {
  std::vector<NotePart> links;
  for (const NotePart& part : parse_notes(description)) {
    if (part.link) links.push_back(part);
  }
  return links;
}

std::shared_ptr<const Run> open_run(testing_support::FakeBackend& backend, const fs::path& path) {
  return Run::open(backend.open(path.string(), {}), path.filename().string());
}

// Follows one link: the state at its step, its tile, and the highlighted objects.
void follow(testing_support::FakeBackend& backend, const Run& run, const fs::path& path, const NotePart& link) {
  const OpenWish wish = wish_of(link, run.facts());
  const std::int64_t row = run.row_of_step(wish.step.value_or(run.span(run.facts().rows - 1).step));
  const bool shows_tile = wish.view == View::tile;
  const State state = run.state_at(shows_tile ? run.written_of_row(row) : run.end_of_row(row));
  std::unique_ptr<const Tile> tile;
  if (shows_tile) {
    ASSERT_TRUE(wish.tile) << "a link to the tile view names its tile: the one shown before depends on the reader";
    ASSERT_TRUE(wish.step) << "and its step";
    TileRequest request = *wish.tile;
    request.step = *wish.step;
    try {
      tile = std::make_unique<const Tile>(fold_tile(backend.stage(run.facts(), path.string(), request)));
    } catch (const GeometryError&) {  // a staging failure that the scenario explains
      EXPECT_FALSE(wish.tile_event) << "there is no tile to have an event";
    }
    if (tile && wish.tile_event) {
      EXPECT_LE(*wish.tile_event, tile->events);
    }
  }
  if (!wish.pinned) return;
  const Lit lit = resolve(state, run.facts(), tile.get(), *wish.pinned);
  const bool in_pool = !lit.blocks.empty() || lit.seq;
  EXPECT_TRUE(in_pool || !lit.tile.rows.empty() || !lit.tile.registers.empty()) << "nothing is highlighted";
  if (tile && wish.pinned->kind != Selection::Kind::sequence) {
    EXPECT_FALSE(lit.tile.rows.empty()) << "the selected object is not in the tile: another tile would be shown";
  }
}

TEST(GalleryNotes, EveryLinkLeadsToWhatItNames) {
  testing_support::FakeBackend backend;
  int links = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(KVSCOPE_SOURCE_DIR) / "apps" / "scenarios")) {
    if (entry.path().extension() != ".json") continue;
    SCOPED_TRACE(entry.path().filename());
    const std::vector<NotePart> all = links_of(load_scenario(entry.path()).description);
    if (all.empty()) continue;  // not run: real_traffic_like takes seconds
    const auto run = open_run(backend, entry.path());
    for (const NotePart& link : all) {
      SCOPED_TRACE(link.text);
      follow(backend, *run, entry.path(), link);
      ++links;
    }
  }
  EXPECT_GT(links, 40);
}

TEST(NoteWish, EveryFaultOfALinkIsReported) {
  Facts facts;
  facts.rows = 5;
  facts.end_step = 4;
  facts.sequences = 2;
  facts.blocks = 8;
  facts.page_size = 4;
  facts.table_columns = 3;
  const auto faults_of = [&](const char* text) {
    try {
      static_cast<void>(wish_of(parse_notes(text).front(), facts));
    } catch (const InputError& error) {
      return fault_lines(error);
    }
    return std::vector<std::string>{};
  };
  EXPECT_THAT(faults_of("[a](step=3, view=pool, select=block 2, tile=seq 1 k tma, event=7)"), ElementsAre());
  EXPECT_THAT(faults_of("[a](step=4, view=pol, select=blok 2, tile=seq 2 k tma)"),
              ElementsAre(HasSubstr("step 4 is outside [0, 4)"),
                          HasSubstr("view: 'pol': choose one of overview, sequences, pool, timeline, tile"),
                          HasSubstr("'blok 2': is not understood"), HasSubstr("sequence 2 is outside [0, 2)")));
  EXPECT_THAT(faults_of("[a](select=step 2)"), ElementsAre(HasSubstr("is not an object: set the time with step=")));
}

}  // namespace
}  // namespace kvscope::viz::gallery_notes_test
