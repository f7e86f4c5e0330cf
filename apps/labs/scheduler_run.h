// Lab 05: replays the decisions of a policy on a trace of requests, and finds the rules that they break. Decisions come
// from a student's process, so the replay trusts no number in them.
//
// Example, pages of 4 tokens: a request of 6 prompt tokens that generates 3 is admitted in step 0 and stores 6 tokens
// in 2 blocks. It stores its seventh token in step 1 and its eighth in step 2, and finishes in step 2.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/labs/case_stream.h"
#include "core/base/random.h"
#include "core/scenario/scenario.h"

namespace kvscope::labs {

struct SchedulerRequest {
  std::int64_t arrival = 0;   // [step]
  std::int64_t prompt = 0;    // [tokens]
  std::int64_t generate = 0;  // [tokens]
};

struct SchedulerCase {
  std::int64_t blocks = 0, page_size = 0, max_batch = 0;
  std::vector<SchedulerRequest> requests;  // in the order of arrival

  // [request] the step in which it would finish if the engine ran one request at a time, in the order of arrival. Every
  // policy that admits in this order, preempts the request admitted last and never leaves the engine idle finishes each
  // request by then: the oldest unfinished request always runs.
  [[nodiscard]] std::vector<std::int64_t> serial_finish() const;
  [[nodiscard]] std::int64_t last_step() const;  // of a run: twice as long as the serial one
};

struct SchedulerDecision {
  std::vector<std::int64_t> preempt, admit;
};

// The first three end a replay: a decision that cannot be carried out, more blocks than the pool has, and a request
// that has not finished in the last step.
enum class SchedulerRule : std::uint8_t { decision, capacity, finish, order, need, watermark, starvation };

struct SchedulerFault {
  SchedulerRule rule = SchedulerRule::decision;
  std::int64_t step = 0;
  std::int64_t request = -1;  // that the message names; -1: it is about all running requests
  std::string message;
  std::string state;  // of the engine at the beginning of the step, with the decision
};

struct SchedulerRun {
  std::int64_t steps = 0, preemptions = 0;
  std::int64_t recomputed = 0;         // [tokens] stored by preempted requests when they were preempted
  std::int64_t finished = 0;           // requests
  std::vector<SchedulerFault> faults;  // in the order of their steps, the first of each rule
  [[nodiscard]] const SchedulerFault* fault(SchedulerRule rule) const;
  // Steps, and one more for every kTokensPerStep tokens that are computed again.
  [[nodiscard]] double cost() const;
};
inline constexpr double kTokensPerStep = 32;

// What became of a request in a step.
enum class RequestStatus : std::uint8_t { not_arrived, waiting, preempted, running, finishing, finished };

// At the end of a step; of the step in which the replay ended, when it ended.
struct SchedulerStep {
  struct Place {
    RequestStatus status = RequestStatus::not_arrived;
    std::int64_t tokens = 0, blocks = 0;  // stored, of a request that runs; with its last token, of one that finishes
  };
  std::vector<Place> requests;
  std::int64_t free_blocks = 0;  // before finishing requests release theirs; below 0: more were needed than are free
};

// `timeline` receives one element for each step of the run.
[[nodiscard]] SchedulerRun replay(const SchedulerCase& trace, std::span<const SchedulerDecision> decisions,
                                  std::vector<SchedulerStep>* timeline = nullptr);

// kvscope's own engine (core/paging/paging_engine.h) on the same requests, without prefix sharing and chunked prefill,
// one time unit per step.
[[nodiscard]] SchedulerRun engine_run(const SchedulerCase& trace);

[[nodiscard]] Words words_of(const SchedulerCase& trace);
// The decisions in a result of the lab's harness.cpp; empty if the numbers are none.
[[nodiscard]] std::optional<std::vector<SchedulerDecision>> parse_decisions(const Words& words);
[[nodiscard]] std::string text_of(const SchedulerCase& trace);

}  // namespace kvscope::labs
