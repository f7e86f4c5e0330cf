// An explained address: the chain from a token to a byte as plain data. Each link has a formula and the numbers filled
// in. core/staging fills it; the command line and the viewer show the same text.
#pragma once

#include <string>
#include <vector>

#include "core/base/index.h"
#include "core/base/json.h"

namespace kvscope::trace {

// The question: one number of the cache, at one step.
struct Question {
  SeqIdx seq;
  TokIdx token;
  LayerIdx layer;
  HeadIdx head;  // a KV head
  DimIdx dim;
  KOrV kv = KOrV::k;
  StepIdx step{-1};  // -1: the last step that computed a token of the sequence
};

// One link of the chain. Example:
//   name "page"  formula "token / page_size"  numbers "37 / 16"  result "2"
struct Link {
  std::string name;
  std::string formula;
  std::string numbers;
  std::string result;
  std::string remark;  // an observation about the numbers; may be empty
};

struct Explanation {
  std::string subject;  // "K of sequence 3, token 37, layer 1, head 0, dim 5 at step 12 of scenario 'first light'"
  std::vector<Link> links;
};

// <subject>
//
// <name>   <formula>
//          = <numbers>
//          = <result>
//            <remark>
[[nodiscard]] std::string to_text(const Explanation& explanation);
[[nodiscard]] json::Value to_json(const Explanation& explanation);

}  // namespace kvscope::trace
