// A small pool with known blocks and a scene that shows it, for tests of painting, names and hits of panels.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <QtGui/QImage>
#include <QtGui/QPainter>

#include "core/base/json.h"
#include "core/scenario/scenario_json.h"
#include "tests/viz/playback/memory_source.h"
#include "viz/playback/run.h"
#include "viz/view/panel.h"

namespace kvscope::viz {

// A run over `blocks` blocks of 16 tokens that consists of these events.
inline std::shared_ptr<const Run> run_of(std::int64_t blocks, std::vector<trace::Event> events,
                                         CacheKind kind = CacheKind::paged) {
  Scenario scenario;
  scenario.name = "by hand";
  scenario.cache.blocks = blocks;
  scenario.cache.page_size = 16;
  scenario.cache.kind = kind;
  if (kind == CacheKind::continuous) {
    scenario.cache.max_tokens = 64;
    scenario.cache.prefix_sharing = false;
  }
  Request request;
  request.prompt_tokens = 20;
  request.generate_tokens = 4;
  scenario.requests.list = {request};
  return Run::open(from_memory(std::move(events), {{"scenario", json::dump(to_json(scenario))}}, trace::Detail::full),
                   "by hand");
}

// One block of each kind, of ten:
//
//   block   3      sequence 0, page 1: 5 of 16 tokens        7      shared by 0 and 1, their page 0
//           2      sequence 1, page 1: 8 of 16 tokens        5      cached, sequence 2 had it as page 0
//           others free                                      10     the null page
//
// In step 1 sequence 2 finishes, which releases block 5; step 2 does nothing.
inline std::vector<trace::Event> one_of_each() {
  using namespace trace;
  return {RequestArrived{SeqIdx{0}, 20, 4},
          RequestArrived{SeqIdx{1}, 20, 4},
          RequestArrived{SeqIdx{2}, 16, 1},
          StepBegan{StepIdx{0}, 0},
          RequestAdmitted{SeqIdx{0}, 0},
          BlockAllocated{BlockIdx{7}, SeqIdx{0}, PageIdx{0}},
          TokensWritten{SeqIdx{0}, TokIdx{0}, 16, BlockIdx{7}, 0, false},
          BlockAllocated{BlockIdx{3}, SeqIdx{0}, PageIdx{1}},
          TokensWritten{SeqIdx{0}, TokIdx{16}, 5, BlockIdx{3}, 0, false},
          RequestAdmitted{SeqIdx{1}, 16},
          BlockShared{BlockIdx{7}, SeqIdx{1}, PageIdx{0}, 2},
          BlockAllocated{BlockIdx{2}, SeqIdx{1}, PageIdx{1}},
          TokensWritten{SeqIdx{1}, TokIdx{16}, 8, BlockIdx{2}, 0, false},
          RequestAdmitted{SeqIdx{2}, 0},
          BlockAllocated{BlockIdx{5}, SeqIdx{2}, PageIdx{0}},
          TokensWritten{SeqIdx{2}, TokIdx{0}, 16, BlockIdx{5}, 0, false},
          StepEnded{StepIdx{0}, 10},
          StepBegan{StepIdx{1}, 10},
          RequestFinished{SeqIdx{2}, 17},
          BlockReleased{BlockIdx{5}, SeqIdx{2}, PageIdx{0}, 0, true},
          StepEnded{StepIdx{1}, 20},
          StepBegan{StepIdx{2}, 20},
          StepEnded{StepIdx{2}, 30}};
}

// Owns the objects that a Scene points at. Its cursor is at the end of the run.
struct Staged {
  std::shared_ptr<const Run> run;
  Cursor cursor;
  Scene scene;

  explicit Staged(std::shared_ptr<const Run> of, ThemeKind kind = ThemeKind::dark) : run(std::move(of)), cursor(run) {
    scene.cursor = &cursor;
    scene.theme = &theme(kind);
    cursor.seek(Position{run->facts().events});
  }
  Staged(const Staged&) = delete;
  Staged& operator=(const Staged&) = delete;

  void pin(const Selection& selection) {
    scene.pinned = selection;
    scene.pinned_lit = resolve(scene.state(), scene.facts(), selection);
  }
  void hover(const Selection& selection) {
    scene.hovered = selection;
    scene.hovered_lit = resolve(scene.state(), scene.facts(), selection);
  }
  void look(PanelId panel, const Viewport& viewport) { scene.viewport[static_cast<std::size_t>(panel)] = viewport; }
};

inline constexpr QRgb kUntouched = 0xff123456;

// Base and overlay on an image of `size` that is kUntouched before.
inline QImage painted(const Panel& panel, const QRectF& body, const Scene& scene, QSize size, double scale = 1) {
  QImage image(size * scale, QImage::Format_ARGB32_Premultiplied);
  image.setDevicePixelRatio(scale);
  image.fill(kUntouched);
  QPainter painter(&image);
  panel.paint_base(painter, body, scene);
  panel.paint_overlay(painter, body, scene);
  return image;
}

// Pixels outside `body` that are no longer kUntouched.
inline int spilled(const QImage& image, const QRect& body) {
  int count = 0;
  for (int y = 0; y < image.height(); ++y) {
    for (int x = 0; x < image.width(); ++x) {
      if (!body.contains(x, y) && image.pixel(x, y) != kUntouched) ++count;
    }
  }
  return count;
}

}  // namespace kvscope::viz
