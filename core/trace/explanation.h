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

// The results that name a place, one line for the cache and one for each way of the tile that the chain has:
//
// in the cache  page 4, slot 6, block 9, row 582, byte 161414
// by TMA        box at (0, 1, 576), shared byte 870, bank 25, held by lane 15, register 0
// through LDS   copied by wave 0, instruction 0, lane 12, byte 208, bank 52, held by lane 3, register 0
[[nodiscard]] std::string places_text(const Explanation& explanation);

}  // namespace kvscope::trace
