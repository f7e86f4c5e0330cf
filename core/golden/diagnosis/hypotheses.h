// The faults that `diagnose` knows, each as a prediction of the rows that a kernel with this fault writes.
//
// A hypothesis with parameters (which page, which head map) gives one trial for each value of its parameters.
//
//   conventions  scale, soft cap, ALiBi, sinks, base of lse, rotary embedding applied again
//   mask         alignment, window, length, last page
//   loops        keys that the loops over pages and tiles leave out
//   heads        KV head of a query head, query rows
//   cache        K and V exchanged, axes exchanged (K/V and blocks, heads and slots), strides, page size, types, scales
//   staging      tiles in shared memory and registers: swizzle, order of rows, transposed squares, elements left out,
//                stages, shuffles of the score
//   masks        tensors that state the keys of each query: order of axes and bits, rows, indices
//   pages        lookup table rows and columns, the bits of its integers and of the lengths; one page read from another
//                block, layer or side (page_search.h)
//   splits       their ends, and splits that are lost
//   combination  split merge, rescaling of the running maximum, normalization
//   output       axes of o or lse exchanged
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/golden/bundle/tensor.h"
#include "core/golden/diagnosis/row_recipe.h"
#include "core/golden/layouts/query_masks.h"
#include "core/golden/verdict/candidate_rounding.h"
#include "core/golden/verdict/failing_group.h"

namespace kvscope::golden {

// What a diagnosis starts from. Nothing is owned.
struct DiagnosisInput {
  const attention::Problem& problem;
  const Bundle& golden;
  const Bundle& candidate;
  std::span<const std::byte> pool;  // the cache's tensor when it holds more than the problem's rows; may be empty
  std::int64_t layers = 1, layer = 0, layer_stride = 0;  // [elements] of the pool; 1 layer: no stride
  std::int64_t scale_layer_stride = 0;                   // [scales]; 0: all layers share the scales
  // The lookup table is one list for all sequences (kv_indices): each row of `table` continues with the entries of the
  // next sequences, which a kernel that runs past its own entries reads.
  bool one_list = false;
  const QueryMasks* masks = nullptr;   // the tensor that states the keys of each query; nullptr: none
  std::string inputs_name = "inputs";  // of the problem, as errors call it
  StatedRounding rounding = {};        // what the candidate's kernel rounds
  // Tests of many elements that fail (compare.h); used when each element is within its bound.
  std::vector<FailingGroup> failing_groups = {};
};

struct Trial {
  std::string name;            // "scale_missing"; one name for all parameters of a hypothesis
  std::string cause;           // "the scores are not multiplied by the scale 0.125"
  std::string look_at;         // "the factor of q . k before the softmax"
  std::int64_t sequence = -1;  // the only sequence whose rows it changes; -1: all
  std::function<RowValue(const RowEvaluator&)> predict;
  std::int64_t page = -1;  // of `sequence`, which the cause names; -1: none
  // One of many forms of a hypothesis, of which some fit by chance where few rows fail: another cause with the same
  // output is named first.
  bool one_of_many = false;
  // A longer form of a simpler cause of the same name, which is named instead if it explains the rows too.
  bool longer_form = false;
};

// All trials whose prediction can differ from the correct output for this problem, most common faults first.
[[nodiscard]] std::vector<Trial> hypotheses(const DiagnosisInput& input);

}  // namespace kvscope::golden
