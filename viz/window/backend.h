// What the window asks of the simulator. viz draws events and knows nothing of how they come about: whoever builds the
// program (apps/kvscope-viewer) hands it one of these, a test another.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/trace/explanation.h"
#include "viz/model/gallery_model.h"
#include "viz/playback/event_source.h"
#include "viz/playback/facts.h"
#include "viz/playback/run.h"
#include "viz/playback/tile_request.h"

namespace kvscope::viz {

// Two worker threads call it: one is in open(), the other in explain(), locate() or stage(), maybe at the same time. gallery()
// is called once, by the thread that made the window.
class Backend {
 public:
  virtual ~Backend() = default;

  // One at a time. Opens a trace, or runs a scenario: what the file is, its content tells.
  // `progress` is called with requests done of all while a scenario runs; when it returns false the run stops and
  // Cancelled is thrown. Throws what kvscope::fault_lines can word.
  [[nodiscard]] virtual std::unique_ptr<EventSource> open(const std::string& path, const OpenProgress& progress) = 0;

  // One at a time, and not beside locate() or stage(). The same explanation as the command line's. Throws likewise.
  [[nodiscard]] virtual trace::Explanation explain(const Facts& facts, const std::string& path,
                                                   const trace::Question& question) = 0;

  // The element whose value lies at `offset` bytes into the pool at the question's step; kv, layer, head, dim and
  // token are filled in. IndexError: outside the pool, or no token is stored there.
  [[nodiscard]] virtual trace::Question locate(const Facts& facts, const std::string& path, std::int64_t offset,
                                               StepIdx step) = 0;

  // One at a time, and beside neither of these two. The events of one tile of the cache at request.step, from its
  // tile_opened on, as fold_tile() takes them. GeometryError, UnsupportedError or OverflowError: why this geometry
  // cannot take that path. IndexError: no such sequence, token, layer or head at that step. InputError as explain().
  [[nodiscard]] virtual std::vector<trace::Event> stage(const Facts& facts, const std::string& path,
                                                        const TileRequest& request) = 0;

  [[nodiscard]] virtual std::vector<GalleryEntry> gallery() = 0;
};

}  // namespace kvscope::viz
