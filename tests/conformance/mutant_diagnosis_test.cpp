// Diagnoses the output of each kept mutant of an attention kernel: names the mistake, answers "none fits", or finds
// only NaN. No wrong cause may be certain. docs/05_check_your_kernel.md has the counts.
//
// The mistakes were written for the conformance cases, not for the diagnosis. Mutants whose mistake the virtual GPU
// reports, such as a race, are diagnosed as well, from the output that they leave.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/golden/diagnosis/diagnose.h"
#include "tests/conformance/kept_mutants.h"

namespace kvscope::gpu::mutant_diagnosis_test {
namespace {

enum class Answer {
  correct,     // the output is correct in spite of the mistake
  no_numbers,  // only NaN: no cause is certain
  none,        // no hypothesis fits
  named,       // a hypothesis that describes the mistake comes first
  other,       // another hypothesis comes first, with `probably`
};

const char* text_of(Answer answer) {
  switch (answer) {
    case Answer::correct:
      return "correct";
    case Answer::no_numbers:
      return "only NaN";
    case Answer::none:
      return "none fits";
    case Answer::named:
      return "named";
    case Answer::other:
      return "other";
  }
  return "";
}

// What the diagnosis answers, and the hypotheses that describe the mistake on the mutant's case.
struct Expected {
  Answer answer;
  std::set<std::string> hypotheses;
};

// Mutants that are not listed have no hypothesis: their answer is none, NaN or a correct output.
const std::map<std::string, Expected>& expected_answers() {
  static const std::map<std::string, Expected> all = {
      {"continuous_decode_k_and_v_swapped", {Answer::named, {"k_and_v_exchanged"}}},
      {"continuous_decode_one_too_many", {Answer::none, {"zeros_counted", "one_token_too_many"}}},
      {"continuous_decode_scale_one_percent", {Answer::named, {"scale_factor"}}},
      {"continuous_decode_softmax_without_maximum", {Answer::named, {"maximum_missing"}}},
      {"continuous_decode_table_skipped", {Answer::no_numbers, {"pages_contiguous"}}},
      {"mla_decode_combine_unweighted", {Answer::named, {"merge_by_mean"}}},
      {"mla_decode_combine_without_any_maximum", {Answer::named, {"maximum_missing"}}},
      {"mla_decode_hole_counts", {Answer::named, {"zeros_counted"}}},
      {"mla_decode_last_dropped",
       {Answer::named, {"length_without_new", "last_token_missing", "last_page_missing", "key_missing"}}},
      {"mla_decode_maximum_of_own_keys", {Answer::none, {"maximum_not_shared"}}},
      {"mla_decode_output_not_scaled", {Answer::named, {"output_not_rescaled"}}},
      {"mla_decode_scale_not_of_scores", {Answer::named, {"k_scales_missing"}}},
      {"mla_decode_scale_not_of_weights", {Answer::named, {"v_scales_missing"}}},
      {"mla_decode_softmax_without_maximum", {Answer::named, {"maximum_missing"}}},
      {"mla_decode_v_behind_rope", {Answer::named, {"v_behind_rope"}}},
      {"paged_decode_any_alibi_of_kv_head", {Answer::named, {"alibi_of_kv_head"}}},
      // cap * tanh(ln 2 * q.k / cap): the scale is replaced by ln 2.
      {"paged_decode_any_cap_not_scaled", {Answer::named, {"scale_missing"}}},
      {"paged_decode_any_granule_of_lane", {Answer::named, {"scale_granularity"}}},
      {"paged_decode_any_scale_of_first_granule", {Answer::named, {"scale_granularity"}}},
      {"paged_decode_combine_unweighted", {Answer::named, {"merge_by_mean"}}},
      {"paged_decode_combine_without_any_maximum", {Answer::named, {"maximum_missing"}}},
      {"paged_decode_combine_without_maximum", {Answer::named, {"lse_maximum_twice"}}},
      {"paged_decode_exp_base_two", {Answer::named, {"scale_base_two"}}},
      {"paged_decode_hnd", {Answer::no_numbers, {"head_and_slot_axes"}}},
      {"paged_decode_hole_is_block_0", {Answer::named, {"page_from_other_block"}}},
      {"paged_decode_k_and_v_swapped", {Answer::named, {"k_and_v_exchanged"}}},
      // The remainder is of the CTA's first head, 0 or 4, by two KV heads: each head reads KV head 0.
      {"paged_decode_kv_head_modulo", {Answer::named, {"kv_head_map"}}},
      {"paged_decode_last_dropped", {Answer::named, {"length_without_new", "last_token_missing"}}},
      {"paged_decode_layer_stride", {Answer::named, {"block_stride"}}},
      {"paged_decode_lse_base_two", {Answer::named, {"lse_base"}}},
      {"paged_decode_one_too_many", {Answer::no_numbers, {"one_token_too_many"}}},
      {"paged_decode_output_not_scaled", {Answer::named, {"output_not_rescaled"}}},
      {"paged_decode_scale_of_k_for_v", {Answer::named, {"v_scales_of_k"}}},
      {"paged_decode_scale_one_over_d", {Answer::named, {"scale_twice"}}},
      {"paged_decode_scale_one_percent", {Answer::named, {"scale_factor"}}},
      {"paged_decode_sink_of_every_run", {Answer::named, {"sink_counted_often"}}},
      {"paged_decode_softmax_without_maximum", {Answer::named, {"maximum_missing"}}},
      {"paged_decode_stale_last_page", {Answer::named, {"page_from_other_block"}}},
      {"paged_decode_sum_not_scaled", {Answer::named, {"sum_not_rescaled"}}},
      {"paged_decode_two_heads_swapped", {Answer::named, {"rows_moved"}}},
      {"paged_decode_v_not_masked", {Answer::no_numbers, {"v_not_masked"}}},
      {"paged_decode_zero_last_page", {Answer::named, {"last_page_of_zeros"}}},
      {"paged_prefill_causal_edge_unmasked", {Answer::named, {"tile_edge_unmasked"}}},
      {"paged_prefill_kv_head_modulo", {Answer::named, {"kv_head_map"}}},
      {"paged_prefill_lse_base_two", {Answer::named, {"lse_base"}}},
      {"paged_prefill_output_not_scaled", {Answer::named, {"output_not_rescaled"}}},
      {"paged_prefill_scale_one_percent", {Answer::named, {"scale_factor"}}},
      {"paged_prefill_sees_next_key", {Answer::named, {"next_token_seen"}}},
      {"paged_prefill_softmax_without_maximum", {Answer::no_numbers, {"maximum_missing"}}},
      {"paged_prefill_top_left_causal", {Answer::named, {"causal_alignment"}}},
      {"paged_prefill_v_not_zeroed", {Answer::no_numbers, {"v_not_masked"}}},
      // The case's only sequence begins within the tile that the window cuts, so all its keys count.
      {"paged_prefill_window_edge_unmasked", {Answer::named, {"window_missing", "tile_edge_unmasked"}}},
      {"paged_prefill_window_one_less", {Answer::named, {"window_off_by_one"}}},
      {"paged_prefill_zero_last_page", {Answer::named, {"last_page_of_zeros", "page_of_zeros"}}},
  };
  return all;
}

bool has_attention_output(const Kernel& kernel) {
  return kernel.name.ends_with("_decode") || kernel.name == "paged_prefill";
}

struct Diagnosed {
  Answer answer = Answer::correct;
  bool certain = false;
  std::string text;
};

Diagnosed diagnosed(const KeptMutant& mutant, const std::string& case_name, const std::set<std::string>& hypotheses) {
  const Kernel& kernel = kernel_of(mutant.base);
  const Case& c = case_of(kernel, case_name);
  WatchedDevice device(c.architecture, kernel.name, mutated_ptx(mutant), Reports::hidden);
  const Verdict verdict = c.run(device);
  Diagnosed done;
  if (verdict.diagnosis == nullptr) {
    EXPECT_EQ(verdict.faults, std::vector<std::string>()) << mutant.name;
    return done;
  }
  const golden::Diagnosis& d = *verdict.diagnosis;
  done.certain = d.certain;
  done.text = golden::text_report(d);
  if (d.pattern.no_numbers) {
    done.answer = Answer::no_numbers;
  } else if (d.explanations.empty()) {
    done.answer = Answer::none;
  } else {
    done.answer = hypotheses.contains(d.explanations.front().name) ? Answer::named : Answer::other;
  }
  return done;
}

TEST(MutantDiagnosis, NamesTheMistakeOrStatesNone) {
  // By whether the virtual GPU reports the mistake.
  std::map<bool, std::map<Answer, int>> counts;
  int moving = 0, wrong = 0;
  std::set<std::string> names;
  for (const KeptMutant& mutant : kept_mutants()) {
    names.insert(mutant.name);
    if (!has_attention_output(kernel_of(mutant.base))) {
      ++moving;
      continue;
    }
    const bool reported = mutant.fails != "values";
    const auto found = expected_answers().find(mutant.name);
    const bool described = found != expected_answers().end();
    const std::set<std::string> hypotheses = described ? found->second.hypotheses : std::set<std::string>();
    for (const std::string& name : mutant.cases) {
      const Diagnosed done = diagnosed(mutant, name, hypotheses);
      if (name == mutant.cases.front()) ++counts[reported][done.answer];
      if (described) {
        EXPECT_EQ(text_of(done.answer), std::string(text_of(found->second.answer)))
            << mutant.name << ": " << mutant.mistake << "\n"
            << done.text;
      } else {
        EXPECT_TRUE(done.answer == Answer::none || done.answer == Answer::no_numbers || done.answer == Answer::correct)
            << mutant.name << ": " << mutant.mistake << "\n"
            << done.text;
      }
      EXPECT_TRUE(reported || done.answer != Answer::correct) << mutant.name;
      if (done.certain && done.answer != Answer::named) {
        ADD_FAILURE() << mutant.name << ": " << mutant.mistake << "\n" << done.text;
        ++wrong;
      }
    }
  }
  for (const auto& [name, expected] : expected_answers()) EXPECT_TRUE(names.contains(name)) << name;
  std::cout << moving << " mutants move data and have no attention output\n";
  for (const auto& [reported, of] : counts) {
    std::cout << (reported ? "reported by the virtual GPU:" : "found by values alone:");
    for (const auto& [answer, count] : of) std::cout << "  " << text_of(answer) << " " << count;
    std::cout << "\n";
  }
  std::cout << "wrong cause certain: " << wrong << "\n";
}

}  // namespace
}  // namespace kvscope::gpu::mutant_diagnosis_test
