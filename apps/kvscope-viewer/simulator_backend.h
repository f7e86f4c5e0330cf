// Implements the window's backend: reads traces, runs scenarios in a separate process, and explains addresses with the
// engine.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "apps/kvscope-viewer/attention_step.h"
#include "apps/kvscope-viewer/command_line.h"
#include "apps/kvscope-viewer/step_engine.h"
#include "viz/window/backend.h"

namespace kvscope::apps {

// By content: an SQLite database is a trace, and a file that begins with a brace is a scenario. For any other file the
// name decides: .kvt is a trace; .npz, .npy and .safetensors are golden bundles.
[[nodiscard]] FileKind kind_of(const std::string& path);  // never by_content

class SimulatorBackend final : public viz::Backend {
 public:
  // `program`: path of this program, which is started again to simulate and to paint the gallery's pictures. `cache`:
  // the folder in which these pictures are kept; empty: the user's folder for cached files.
  explicit SimulatorBackend(std::filesystem::path program, std::filesystem::path cache = {});

  [[nodiscard]] std::unique_ptr<viz::EventSource> open(const std::string& path,
                                                       const viz::OpenProgress& progress) override;
  [[nodiscard]] std::unique_ptr<viz::EventSource> run_changed(const std::string& scenario, const std::string& path,
                                                              const viz::OpenProgress& progress) override;
  // The requests are those of the scenario; a file that it names is searched in the folder of `path`. InputError when
  // the trace contains no scenario or was recorded with other requests, or the file is missing.
  [[nodiscard]] trace::Explanation explain(const viz::Facts& facts, const std::string& path,
                                           const trace::Question& question) override;
  [[nodiscard]] trace::Question locate(const viz::Facts& facts, const std::string& path, std::int64_t offset,
                                       StepIdx step) override;
  [[nodiscard]] std::vector<trace::Event> stage(const viz::Facts& facts, const std::string& path,
                                                const viz::TileRequest& request) override;
  [[nodiscard]] viz::TileSource tile_source(const viz::Facts& facts, const std::string& path,
                                            const viz::TileRequest& request) override;
  [[nodiscard]] viz::AttentionFlow attend(const viz::Facts& facts, const std::string& path,
                                          const viz::FlowRequest& request) override;
  [[nodiscard]] viz::AttentionErrors compare(const viz::Facts& facts, const std::string& path,
                                             const viz::ErrorsRequest& request) override;
  [[nodiscard]] viz::Gallery gallery() override;
  [[nodiscard]] viz::Labs labs() override;
  [[nodiscard]] std::optional<viz::LabResult> lab_result(const std::string& path) override;
  [[nodiscard]] bool is_kernel(const std::string& path) override;
  [[nodiscard]] viz::KernelFile kernel_file(const std::string& path) override;
  [[nodiscard]] std::string kernel_command(const viz::KernelLaunch& launch) override;
  [[nodiscard]] std::unique_ptr<viz::KernelRun> start_kernel(const viz::KernelLaunch& launch,
                                                             const std::function<bool()>& keep_going) override;
  [[nodiscard]] QImage picture(const std::string& path, viz::ThemeKind theme,
                               const std::function<bool()>& keep_going) override;

 private:
  // The last one is kept: the flow of another head or query then needs no new golden.
  [[nodiscard]] const AttentionStep& attention_at(const viz::Facts& facts, const std::string& path, StepIdx step,
                                                  LayerIdx layer);
  [[nodiscard]] StepEngine& engine_for(const viz::Facts& facts, const std::string& path);

  std::filesystem::path program_, cache_;
  // State of the last run that was explained. Requests are read again for another run, or when their file has changed.
  std::unique_ptr<StepEngine> engine_;
  std::string engine_path_;
  std::optional<std::filesystem::file_time_type> engine_requests_time_;
  std::unique_ptr<AttentionStep> attention_;
  std::string attention_path_;
  std::optional<std::filesystem::file_time_type> attention_time_;
  std::optional<Scenario> attention_scenario_;
  StepIdx attention_step_{-1};
  LayerIdx attention_layer_{-1};
};

}  // namespace kvscope::apps
