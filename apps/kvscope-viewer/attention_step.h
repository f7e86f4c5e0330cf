// The attention of one step as the viewer asks for it: the golden output, the tiled flow of one row, and the errors of
// a candidate. A step is one of a scenario's run, with values generated from its seed, or the one that a golden bundle
// holds.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/golden/bundle/tensor.h"
#include "core/golden/layouts/layouts.h"
#include "core/pipeline/layer_attention.h"
#include "core/pipeline/layer_data.h"
#include "core/scenario/scenario.h"
#include "core/staging/focus.h"
#include "viz/playback/attention.h"

namespace kvscope::apps {

// What a flow and a comparison need; everything points into the object, so it stays where it is.
class AttentionStep {
 public:
  // GeometryError when the step is too large to be computed while a person waits; other faults as run_golden().
  [[nodiscard]] static std::unique_ptr<AttentionStep> of_scenario(Scenario scenario, FocusState focus, LayerIdx layer);
  // InputError when the bundle has no attention output, or cannot be read.
  [[nodiscard]] static std::unique_ptr<AttentionStep> of_bundle(const std::string& path);

  AttentionStep(const AttentionStep&) = delete;
  AttentionStep& operator=(const AttentionStep&) = delete;
  ~AttentionStep() = default;

  // IndexError: the step has no such sequence, query or head. InputError for a bundle without its inputs.
  [[nodiscard]] viz::AttentionFlow flow(const viz::FlowRequest& request) const;
  // `candidate`: a file; empty: the tiled flow in f32. InputError when the two cannot be compared.
  [[nodiscard]] viz::AttentionErrors errors(const std::string& candidate) const;

  [[nodiscard]] const golden::Bundle& golden() const { return golden_; }
  // Checks that the golden's file or its inputs' lacks because of its version, one sentence each.
  [[nodiscard]] const std::vector<std::string>& remarks() const { return remarks_; }
  // Null without the golden's inputs.
  [[nodiscard]] const attention::Problem* problem() const { return problem_ ? &*problem_ : nullptr; }
  // The table with all entries that the inputs give; null without inputs, or for a scenario.
  [[nodiscard]] const xt::xtensor<std::uint32_t, 2>* given_table() const {
    return prepared_ ? &prepared_->given_table() : nullptr;
  }

 private:
  AttentionStep() = default;
  [[nodiscard]] const attention::Problem& need_problem() const;
  [[nodiscard]] std::int64_t batch_row(SeqIdx seq) const;  // IndexError

  std::string golden_path_;        // of a bundle
  std::string inputs_path_;        // of a bundle: empty when it holds its inputs
  std::string no_problem_;         // why problem_ is empty
  std::vector<SeqIdx> sequences_;  // [batch]
  std::int64_t page_size_ = 1;     // [tokens]
  std::int64_t default_tile_ = 64;
  golden::Bundle golden_;
  std::vector<std::string> remarks_;
  std::optional<attention::Problem> problem_;
  // Of a scenario.
  Scenario scenario_;
  FocusState focus_;
  LayerData data_;
  LayerAttention attention_;
  // Of a bundle.
  golden::Bundle inputs_;
  std::optional<golden::PreparedProblem> prepared_;
};

}  // namespace kvscope::apps
