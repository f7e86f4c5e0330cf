// Simulated runs of scenarios: the report, the cache at a step, explained addresses.
#include <filesystem>
#include <limits>

#include "apps/python/bindings/bindings.h"
#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/pipeline/run_report_text.h"
#include "core/pipeline/run_scenario.h"
#include "core/pipeline/scenario_bundle.h"
#include "core/scenario/requests.h"
#include "core/scenario/scenario_json.h"
#include "core/staging/explain.h"
#include "core/staging/focus.h"
#include "core/staging/staging_events.h"

namespace kvscope::python {
namespace {

constexpr std::int64_t kMostScenario = 64 << 20;  // [bytes]

struct Run {
  Scenario scenario;
  std::vector<Request> requests;
  RunOutcome outcome;
};

// Reports progress and handles signals: returns false after a KeyboardInterrupt, which stays set.
ProgressFunction progress_to(const py::object& function, bool& interrupted) {
  return [&function, &interrupted](std::int64_t done, std::int64_t all) {
    const py::gil_scoped_acquire lock;
    if (PyErr_CheckSignals() != 0) interrupted = true;
    if (interrupted || function.is_none()) return !interrupted;
    try {
      function(done, all);
    } catch (py::error_already_set& error) {
      error.restore();
      interrupted = true;
    }
    return !interrupted;
  };
}

std::shared_ptr<Run> run(const std::string& text, const std::string& source, const std::string& folder,
                         const std::optional<std::string>& requests, bool golden, const py::object& progress) {
  auto run = std::make_shared<Run>();
  bool interrupted = false;
  EngineOptions options;
  options.progress = progress_to(progress, interrupted);
  GoldenOptions golden_options;
  if (!golden) golden_options.max_multiply_adds = -1;
  try {
    const py::gil_scoped_release release;
    const Interruptible interruptible(&no_signal);
    run->scenario = parse_scenario(text, source);
    std::optional<std::filesystem::path> file;
    if (requests) file = *requests;
    run->requests = make_requests(run->scenario, folder, file);
    trace::Recorder off;
    run->outcome = run_scenario(run->scenario, run->requests, off, options, golden_options);
  } catch (const Cancelled&) {  // by the progress function
    throw py::error_already_set();
  }
  return run;
}

py::dict step(const Run& run, std::int64_t number) {
  const CacheState state = without_lock([&] {
    check_index("step", number, run.outcome.engine.report.steps, "steps of the run");
    return state_at(run.scenario, run.requests, StepIdx{number}).cache;
  });
  std::vector<std::int64_t> batch;
  for (const SeqIdx seq : state.batch) batch.push_back(seq.value);
  py::dict out;
  out["step"] = state.step.value;
  out["page_size"] = state.page_size;
  out["blocks"] = state.blocks;
  out["batch"] = batch;
  out["cache_lengths"] = state.cache_lengths;
  out["new_tokens"] = state.new_tokens;
  out["lookup_table"] = state.lookup_table;
  out["table_columns"] = state.table_columns;
  return out;
}

py::dict explain_one(const Run& run, std::int64_t seq, std::int64_t token, std::int64_t layer, std::int64_t head,
                     std::int64_t dim, bool values, std::int64_t step) {
  trace::Question question;
  question.seq = SeqIdx{seq};
  question.token = TokIdx{token};
  question.layer = LayerIdx{layer};
  question.head = HeadIdx{head};
  question.dim = DimIdx{dim};
  question.kv = values ? KOrV::v : KOrV::k;
  question.step = StepIdx{step};
  const trace::Explanation explanation = without_lock([&] { return explain(run.scenario, run.requests, question); });
  py::dict out;
  py::list links;
  for (const trace::Link& link : explanation.links) {
    links.append(py::make_tuple(link.name, link.formula, link.numbers, link.result, link.remark));
  }
  out["subject"] = explanation.subject;
  out["links"] = links;
  out["text"] = to_text(explanation);
  return out;
}

// The numbers of each step, one list a figure.
py::dict curve(const Run& run) {
  const std::vector<StepFigures>& steps = run.outcome.engine.report.curve;
  py::dict out;
  for (const NamedFigure& named : step_figures()) {
    py::list list;
    for (const StepFigures& step : steps) list.append(step.*named.figure);
    out[named.name] = list;
  }
  return out;
}

py::dict event_dict(const trace::Event& event) {
  return std::visit(
      [](const auto& one) {
        using E = std::decay_t<decltype(one)>;
        py::dict out;
        out["event"] = std::string(E::kName);
        std::apply(
            [&](const auto&... field) {
              ((out[py::str(std::string(field.name))] = trace::to_i64(one.*field.member)), ...);
            },
            E::fields());
        return out;
      },
      event);
}

// The events of one tile on its way to registers, with each lane; each event is a dict of its fields.
py::list tile(const Run& run, std::int64_t seq, std::int64_t token, std::int64_t layer, std::int64_t head,
              std::int64_t dim, bool values, std::int64_t number, bool lds) {
  trace::MemoryRecorder recorder;
  without_lock([&] {
    const Scenario& scenario = run.scenario;
    const KOrV kv = values ? KOrV::v : KOrV::k;
    check_index("token", token, std::numeric_limits<std::int64_t>::max(), "tokens");
    check_index("dim", dim, scenario.model.head_size, "elements of a head");
    StepIdx step{number};
    if (number == -1) {
      const std::optional<StepIdx> last = last_step_of(scenario, run.requests, SeqIdx{seq}, TokIdx{token});
      if (!last) {
        throw IndexError("sequence " + std::to_string(seq) + " has no token " + std::to_string(token) +
                         " in the cache at any step");
      }
      step = *last;
    }
    check_index("step", step.value, run.outcome.engine.report.steps, "steps of the run");
    TileQuestion question;
    question.path = lds ? StagingPath::lds : StagingPath::tma;
    question.seq = SeqIdx{seq};
    question.layer = LayerIdx{layer};
    question.head = HeadIdx{head};
    question.kv = kv;
    question.tile = token / tile_tokens(scenario, question.path, kv);
    question.dim = DimIdx{dim};
    record_tile(scenario, state_at(scenario, run.requests, step).cache, question, recorder);
  });
  py::list out;
  for (const trace::Event& event : recorder.events()) out.append(event_dict(event));
  return out;
}

std::shared_ptr<golden::Bundle> golden_of(const Run& run) {
  if (!run.outcome.golden) {
    throw UnsupportedError("this run has no golden output: " + run.outcome.golden_skipped);
  }
  return std::make_shared<golden::Bundle>(
      scenario_bundle(run.scenario, *run.outcome.golden, "kvscope " KVSCOPE_VERSION));
}

}  // namespace

void bind_run(py::module_& module) {
  py::class_<Run, std::shared_ptr<Run>>(module, "Run")
      .def("report", [](const Run& run) { return to_python(to_json(run.scenario, run.outcome)); })
      .def("text", [](const Run& run) { return to_text(run.scenario, run.outcome); })
      .def("scenario", [](const Run& run) { return to_python(to_json(run.scenario)); })
      .def("step", &step)
      .def("curve", &curve)
      .def("tile", &tile)
      .def("explain", &explain_one)
      .def("golden", &golden_of);
  module.def("run", &run);
  // Bytes: whether they are text is the parser's to say.
  module.def("read_scenario", [](const std::string& path) { return py::bytes(read_file(path, kMostScenario)); });
}

}  // namespace kvscope::python
