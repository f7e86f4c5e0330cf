#include "apps/kvscope-viewer/attention_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "apps/common/bundle_input.h"
#include "apps/common/diagnosis_inputs.h"
#include "apps/common/faults.h"
#include "core/attention/bounds.h"
#include "core/attention/mask.h"
#include "core/attention/problem_checks.h"
#include "core/attention/reference.h"
#include "core/attention/tiled.h"
#include "core/base/errors.h"
#include "core/golden/bundle/bundle.h"
#include "core/golden/diagnosis/diagnose.h"
#include "core/golden/golden_bundle.h"
#include "core/golden/golden_inputs.h"
#include "core/golden/verdict/compare.h"
#include "core/golden/verdict/golden_terms.h"
#include "core/golden/verdict/output_names.h"
#include "core/pipeline/run_scenario.h"
#include "core/pipeline/scenario_bundle.h"

namespace kvscope::apps {
namespace fs = std::filesystem;
namespace {

// About two seconds of the reference: a person waits for the answer.
constexpr double kMostMultiplyAdds = 4e9;
constexpr std::int64_t kMostLayerBytes = std::int64_t{256} << 20;

std::string file_of(const std::string& path) {
  return fs::path(path).filename().string();
}

const golden::Tensor& tensor_of(const golden::Bundle& bundle, const char* name) {
  return bundle.tensors.at(name);
}

std::int64_t page_size_of(const golden::Bundle& golden) {
  const json::Value* page_size = golden.manifest.find("page_size");
  if (page_size == nullptr || page_size->as_i64() == nullptr || *page_size->as_i64() < 1) return 1;
  return *page_size->as_i64();
}

}  // namespace

std::unique_ptr<AttentionStep> AttentionStep::of_scenario(Scenario scenario, FocusState focus, LayerIdx layer) {
  check_index("layer", layer.value, scenario.model.layers, "layers of the model");
  scenario.focus.layer = layer.value;
  GoldenOptions options;
  options.max_multiply_adds = kMostMultiplyAdds;
  options.max_layer_bytes = kMostLayerBytes;
  if (focus.cache.batch.empty()) throw GeometryError("no sequence is computed at this step: go to another step");
  if (const std::string why = golden_too_large(scenario, focus, options); !why.empty()) throw GeometryError(why);
  std::unique_ptr<AttentionStep> step(new AttentionStep);
  step->scenario_ = std::move(scenario);
  step->focus_ = std::move(focus);
  step->sequences_ = step->focus_.cache.batch;
  step->default_tile_ = step->scenario_.tile.BN;
  step->data_ = layer_data(step->scenario_, step->focus_);
  step->attention_ = layer_attention(step->scenario_, step->focus_, step->data_);
  step->problem_ = step->attention_.problem;
  step->page_size_ = step->problem_->k.page_size;
  step->golden_ = golden::golden_bundle(*step->problem_, attention::reference(*step->problem_), {});
  return step;
}

std::unique_ptr<AttentionStep> AttentionStep::of_bundle(const std::string& path) {
  std::unique_ptr<AttentionStep> step(new AttentionStep);
  step->golden_path_ = path;
  step->golden_ = open_bundle(path, step->remarks_);
  const golden::Bundle& golden = step->golden_;
  std::vector<Fault> faults;
  for (const char* name : {"o", "a1", "a2", "smax", "query_offsets", "key_lengths"}) {
    if (!golden.tensors.contains(name)) {
      faults.push_back({fmt::format("golden '{}'", name), "is missing: make the golden with `kvscope golden`"});
    }
  }
  if (!faults.empty()) throw InputError(path, std::move(faults));
  // A bundle compared with its own output is checked in every tensor that places and bounds are made of.
  static_cast<void>(golden::element_errors(golden, golden,
                                           {.profile = {}, .exact = {}, .golden_name = path, .candidate_name = path}));
  const std::int64_t batch = tensor_of(golden, "key_lengths").shape[0];
  for (std::int64_t b = 0; b < batch; ++b) step->sequences_.push_back(SeqIdx{b});
  step->page_size_ = page_size_of(golden);
  const std::optional<std::string> inputs = find_inputs(golden, path, std::nullopt);
  if (!inputs) {
    const std::optional<std::string> named = golden::inputs_file(golden, path);
    step->no_problem_ =
        named ? fmt::format("the inputs of the golden, '{}', are missing: put the file beside the golden", *named)
              : "the golden names no inputs: make it with `kvscope golden`";
    return step;
  }
  step->inputs_path_ = *inputs;
  try {
    if (!inputs->empty()) step->inputs_ = open_bundle(*inputs, step->remarks_);
    step->prepared_ =
        golden::prepare_problem(inputs->empty() ? golden : step->inputs_, golden::layout_options_of(golden, path),
                                inputs->empty() ? path : *inputs);
    step->problem_ = step->prepared_->with_given_table();
    attention::check_problem(*step->problem_);
    const std::vector<std::int64_t> shape{step->problem_->total_queries(), step->problem_->query_heads,
                                          step->problem_->v.head_size};
    if (shape != tensor_of(golden, "o").shape) {
      throw InputError(*inputs, "q",
                       fmt::format("gives an output of shape {}, the golden's is {}", golden::shape_text(shape),
                                   golden::shape_text(tensor_of(golden, "o").shape)));
    }
  } catch (const std::exception& error) {
    // The golden is shown without them; the flow says why it is not.
    step->problem_.reset();
    step->prepared_.reset();
    for (const std::string& line : fault_lines(error))
      step->no_problem_ += (step->no_problem_.empty() ? "" : "\n") + line;
  }
  return step;
}

const attention::Problem& AttentionStep::need_problem() const {
  if (!problem_) throw InputError(golden_path_, "inputs", no_problem_);
  return *problem_;
}

std::int64_t AttentionStep::batch_row(SeqIdx seq) const {
  const auto found = std::ranges::find(sequences_, seq);
  if (found == sequences_.end()) {
    throw IndexError(
        fmt::format("sequence {} computes no token at this step, so no query attends to its cache", seq.value));
  }
  return found - sequences_.begin();
}

viz::AttentionFlow AttentionStep::flow(const viz::FlowRequest& request) const {
  const attention::Problem& problem = need_problem();
  const std::int64_t b = batch_row(request.seq);
  viz::AttentionFlow flow;
  flow.request = request;
  if (flow.request.tile_keys == 0) flow.request.tile_keys = default_tile_;
  if (const json::Value* layer = golden_.manifest.find("layer"); layer != nullptr && layer->as_i64() != nullptr) {
    flow.request.layer = LayerIdx{*layer->as_i64()};
  }
  flow.queries = attention::query_count(problem, b);
  flow.keys = problem.keys(b);
  // Positions count keys, however the mask aligns queries: the step's tokens are the last ones of the sequence.
  flow.first_query = TokIdx{flow.keys - flow.queries};
  if (flow.queries == 0) throw IndexError(fmt::format("sequence {} has no query at this step", request.seq.value));
  if (request.query.value < 0) flow.request.query = TokIdx{flow.keys - 1};
  const std::int64_t query = flow.request.query.value - flow.first_query.value;
  if (query < 0 || query >= flow.queries) {
    throw IndexError(fmt::format("token {} of sequence {} is no query of this step: its queries are tokens {} to {}",
                                 request.query.value, request.seq.value, flow.first_query.value, flow.keys - 1));
  }
  check_index("head", request.head.value, problem.query_heads, "query heads");
  flow.heads = problem.query_heads;
  flow.kv_head = request.head.value / (problem.query_heads / problem.k.heads);
  flow.page_size = page_size_;
  flow.scale = problem.options.scale;
  flow.base_two = problem.options.lse_base == attention::LseBase::two;
  if (!problem.options.sinks.empty()) flow.sink = problem.options.sinks.data()[request.head.value];

  attention::TiledConfig config;
  config.tile_keys = flow.request.tile_keys;
  attention::TiledRowTrace trace = attention::tiled_row(problem, {b, query, request.head.value}, config);
  for (attention::TiledStep& step : trace.steps) {
    flow.tiles.push_back({step.first_key, step.last_key, step.largest_before, step.largest, step.rescale, step.tile_sum,
                          step.sum, std::move(step.o)});
  }
  flow.o = std::move(trace.o);
  flow.lse = trace.lse;

  const golden::Tensor& o = tensor_of(golden_, "o");
  const auto dims = static_cast<std::size_t>(o.shape[2]);
  const auto row = static_cast<std::size_t>((problem.first_query(b) + query) * o.shape[1] + request.head.value);
  const auto golden_o = golden::values<double>(o);
  const golden::GoldenTerms terms(golden_);
  attention::Rounding rounding = attention::rounding_of(DType::f32);
  rounding.tile_keys = config.tile_keys;
  const attention::OutputBudgets budgets(rounding, terms.row(row));
  for (std::size_t d = 0; d < dims; ++d) {
    const std::size_t at = row * dims + d;
    flow.golden.push_back(golden_o[at]);
    flow.bound.push_back(budgets.of(terms.element(at)).total());
  }
  if (golden_.tensors.contains("lse")) {
    flow.golden_lse = golden::values<double>(tensor_of(golden_, "lse"))[row];
    flow.lse_bound = attention::lse_budget(rounding, terms.row(row)).total();
  }
  return flow;
}

viz::AttentionErrors AttentionStep::errors(const std::string& candidate_path) const {
  golden::CompareOptions options;
  options.golden_name = golden_path_.empty() ? "golden" : golden_path_;
  golden::Bundle candidate;
  std::vector<std::string> remarks;
  if (candidate_path.empty()) {
    const attention::Problem& problem = need_problem();
    candidate = candidate_bundle(attention::tiled(problem, {.tile_keys = default_tile_}), DType::f32, problem.options);
    options.candidate_name = "the tiled flow";
  } else {
    candidate = open_bundle(candidate_path, remarks);
    static_cast<void>(golden::use_output_names(golden_, candidate, candidate_path));
    options.candidate_name = candidate_path;
  }
  const golden::CompareResult compared = golden::compare(golden_, candidate, options);
  const golden::ElementErrors elements = golden::element_errors(golden_, candidate, options);
  viz::AttentionErrors errors;
  errors.remarks = std::move(remarks);
  errors.golden_name = file_of(options.golden_name);
  errors.candidate_name = candidate_path.empty() ? options.candidate_name : file_of(candidate_path);
  errors.of_flow = candidate_path.empty();
  errors.policy = compared.policy;
  errors.passed = compared.passed;
  for (const golden::Criterion& c : compared.criteria) errors.criteria.push_back({c.name, c.passed, c.detail});
  errors.heads = elements.heads;
  errors.dims = elements.dims;
  errors.ratio = elements.ratio;
  for (const golden::Place& place : elements.places) {
    // A golden without query_offsets has one sequence of all rows.
    const std::int64_t b = std::max<std::int64_t>(place.sequence, 0);
    errors.rows.push_back(
        {b < static_cast<std::int64_t>(sequences_.size()) ? sequences_[static_cast<std::size_t>(b)] : SeqIdx{b},
         place.query, place.position, place.page, place.block});
  }
  viz::index_errors(errors);
  if (compared.passed) return errors;
  if (golden_path_.empty() || !problem_) {
    errors.no_cause =
        golden_path_.empty() ? "Only a golden bundle's candidate is diagnosed." : "No diagnosis: " + no_problem_;
    return errors;
  }
  try {
    const golden::Diagnosis diagnosis =
        GoldenInputs(golden_, golden_path_, inputs_path_).diagnose(candidate, {}, compared.failing_groups);
    errors.certain = diagnosis.certain;
    if (diagnosis.explanations.empty()) {
      errors.no_cause = fmt::format("None of {} hypotheses explains the failing rows: {}", diagnosis.hypotheses,
                                    diagnosis.pattern.words);
      return errors;
    }
    const golden::Explanation& best = diagnosis.explanations.front();
    errors.cause = best.cause;
    errors.look_at = best.look_at;
    if (best.page >= 0) {
      errors.cause_seq = sequences_[static_cast<std::size_t>(best.sequence)];
      errors.cause_page = PageIdx{best.page};
    }
  } catch (const std::exception& error) {
    errors.no_cause = "No diagnosis: " + fault_lines(error).front();
  }
  return errors;
}

}  // namespace kvscope::apps
