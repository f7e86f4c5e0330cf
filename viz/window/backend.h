// The interface of the window to the simulator. viz draws events and does not depend on the simulator: the program
// (apps/kvscope-viewer) passes an implementation, and tests pass a fake.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/trace/explanation.h"
#include "viz/model/gallery_model.h"
#include "viz/model/labs.h"
#include "viz/playback/attention.h"
#include "viz/playback/event_source.h"
#include "viz/playback/facts.h"
#include "viz/playback/kernel_run.h"
#include "viz/playback/run.h"
#include "viz/playback/tile_request.h"
#include "viz/playback/tile_source.h"
#include "viz/view/theme.h"

namespace kvscope::viz {

// Three worker threads call it, possibly at the same time: one calls open() and run_changed(), one explain(), locate(),
// stage(), tile_source(), attend() and compare(), one picture(). gallery(), labs() and lab_result() are called by the
// thread of the window, the first two once. Each kernel window has a thread that calls start_kernel() and the run that
// it returns; is_kernel(), kernel_file() and kernel_command() are called by the thread of the windows.
class Backend {
 public:
  virtual ~Backend() = default;

  // One call at a time. Opens a trace or a golden bundle, or runs a scenario; the file's content decides which.
  // `progress` is called while a scenario runs, with the number of finished requests and the total; if it returns
  // false, the run stops and Cancelled is thrown. Other exceptions are of the types that kvscope::fault_lines accepts.
  [[nodiscard]] virtual std::unique_ptr<EventSource> open(const std::string& path, const OpenProgress& progress) = 0;

  // As open(), by the same thread: runs `scenario`, the text of a scenario that was changed in the window. `path` is
  // the file that it was opened from; a file of requests is in the same folder.
  [[nodiscard]] virtual std::unique_ptr<EventSource> run_changed(const std::string& scenario, const std::string& path,
                                                                 const OpenProgress& progress) = 0;

  // One call at a time, and not during locate() or stage(). Returns the same explanation as the command line. Throws
  // like open().
  [[nodiscard]] virtual trace::Explanation explain(const Facts& facts, const std::string& path,
                                                   const trace::Question& question) = 0;

  // The element stored at byte `offset` of the pool at `step`: sequence, token, kv, layer, head and dim. IndexError:
  // the offset is outside the pool, or no token is stored there.
  [[nodiscard]] virtual trace::Question locate(const Facts& facts, const std::string& path, std::int64_t offset,
                                               StepIdx step) = 0;

  // One call at a time, and not during explain() or locate(). The events of one tile of the cache at request.step, from
  // its tile_opened on, as fold_tile() takes them. GeometryError, UnsupportedError or OverflowError: the reason why
  // this geometry does not support the path. IndexError: no such sequence, token, layer or head at that step.
  // InputError as explain().
  [[nodiscard]] virtual std::vector<trace::Event> stage(const Facts& facts, const std::string& path,
                                                        const TileRequest& request) = 0;

  // One call at a time, as stage(), and for the same tiles: its tensor map, other paths, scales and the bytes of its
  // rows. Also for a tile that stage() rejects with GeometryError, UnsupportedError or OverflowError: then `faults` has
  // the reasons. Empty where the simulator has no such answers.
  [[nodiscard]] virtual TileSource tile_source(const Facts&, const std::string&, const TileRequest&) { return {}; }

  // One call at a time, and not during the other questions. The tiled flow of one query at request.step. GeometryError:
  // the step is too large to be computed. IndexError: no such sequence, query, layer or head at that step. InputError:
  // the values of the run are not known.
  [[nodiscard]] virtual AttentionFlow attend(const Facts& facts, const std::string& path,
                                             const FlowRequest& request) = 0;

  // As attend(). The errors of the candidate's output against the golden, indexed; InputError: they cannot be compared.
  [[nodiscard]] virtual AttentionErrors compare(const Facts& facts, const std::string& path,
                                                const ErrorsRequest& request) = 0;

  [[nodiscard]] virtual Gallery gallery() = 0;

  [[nodiscard]] virtual Labs labs() { return {}; }

  // The results in `path` when it is a file of `kvscope lab check --json`; nullopt for any other file. InputError: the
  // file is damaged, or the course has no such lab.
  [[nodiscard]] virtual std::optional<LabResult> lab_result(const std::string& /*path*/) { return std::nullopt; }

  // Whether `path` is PTX, by its name or its first characters.
  [[nodiscard]] virtual bool is_kernel(const std::string& /*path*/) { return false; }

  // The kernels of a PTX file. InputError: the file has faults, or no kernel.
  [[nodiscard]] virtual KernelFile kernel_file(const std::string& path);

  // The command that debugs the same launch, quoted for a shell. InputError: a word that is no option, or its value.
  [[nodiscard]] virtual std::string kernel_command(const KernelLaunch& launch);

  // Executes the launch once to its end, so that all its reports are known, and returns it at its beginning. If
  // `keep_going` returns false, the end is not known yet. InputError: the launch has faults.
  [[nodiscard]] virtual std::unique_ptr<KernelRun> start_kernel(const KernelLaunch& launch,
                                                                const std::function<bool()>& keep_going);

  // One call at a time. The picture of a scenario on its card of the gallery: the place that the first link of its
  // notes opens, otherwise its busiest step. A null image: the scenario cannot be shown, or takes too long to simulate.
  // `keep_going` is called while the picture is painted; if it returns false, the result is null.
  [[nodiscard]] virtual QImage picture(const std::string& path, ThemeKind theme,
                                       const std::function<bool()>& keep_going) = 0;
};

}  // namespace kvscope::viz
