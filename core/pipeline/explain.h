// Why this address: the chain from a token to a byte, link by link, each with its formula and the numbers filled in.
// The command line prints it, the viewer shows it: one source.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/base/index.h"
#include "core/base/json.h"
#include "core/pipeline/focus.h"
#include "core/scenario/scenario.h"

namespace kvscope {

// What is asked. Indices are checked against the scenario: IndexError names object, value and range.
struct Question {
  SeqIdx seq;
  TokIdx token;
  LayerIdx layer;
  HeadIdx head;  // a KV head
  DimIdx dim;
  KvSlot slot = KvSlot::k;
  StepIdx step{-1};  // -1: the last step that computed a token of the sequence
};

// One link of the chain. Example:
//   name "page"  formula "token / page_size"  numbers "37 / 16"  result "2"
struct Link {
  std::string name;
  std::string formula;
  std::string numbers;
  std::string result;
  std::string remark;  // what to notice; may be empty
};

struct Explanation {
  std::string subject;  // "K of sequence 3, token 37, layer 1, head 0, dim 5 at step 12 of scenario 'first light'"
  std::vector<Link> links;
};

[[nodiscard]] Explanation explain(const Scenario& scenario, std::span<const Request> requests,
                                  const Question& question);

[[nodiscard]] std::string to_text(const Explanation& explanation);
[[nodiscard]] json::Value to_json(const Explanation& explanation);

}  // namespace kvscope
