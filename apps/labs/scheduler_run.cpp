#include "apps/labs/scheduler_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/checked.h"
#include "core/base/report.h"
#include "core/paging/paging_engine.h"

namespace kvscope::labs {
namespace {

constexpr std::int64_t kUnitUs = 1000;  // [us] a step of the model's engine

// "1, 4, 7"; a long list is cut.
template <class Item>
std::string listed(const std::vector<Item>& list) {
  constexpr std::size_t kShown = 8;
  if (list.empty()) return "none";
  const auto end = list.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, list.size()));
  const std::string more = list.size() > kShown ? fmt::format(", and {} more", list.size() - kShown) : "";
  return fmt::format("{}{}", fmt::join(list.begin(), end, ", "), more);
}

class Replay {
 public:
  Replay(const SchedulerCase& trace, std::vector<SchedulerStep>* timeline)
      : trace_(trace), due_(trace.serial_finish()), timeline_(timeline) {
    requests_.resize(trace.requests.size());
  }

  SchedulerRun run(std::span<const SchedulerDecision> decisions) {
    const std::int64_t last = trace_.last_step();
    for (step_ = 0; step_ <= last && result_.finished < count(); ++step_) {
      arrive();
      if (step_ >= static_cast<std::int64_t>(decisions.size())) {
        fail(SchedulerRule::decision, -1, fmt::format("no decision for step {}", step_), {});
        break;
      }
      const SchedulerDecision& decision = decisions[static_cast<std::size_t>(step_)];
      const std::string before = state_text(decision);
      if (!legal(decision, before) || !preempt(decision, before) || !decode(before) || !admit(decision, before)) {
        record();
        break;
      }
      generate(before);
      result_.steps = step_ + 1;
    }
    find_unfinished_request();
    return std::move(result_);
  }

 private:
  enum class Status : std::uint8_t { not_arrived, waiting, running, finished };
  struct Request {
    Status status = Status::not_arrived;
    std::int64_t generated = 0, stored = 0;  // [tokens]
    std::int64_t preempted_in = -1;          // [step] since then it was not admitted
  };

  [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(requests_.size()); }
  Request& of(std::int64_t number) { return requests_[static_cast<std::size_t>(number)]; }
  [[nodiscard]] const Request& of(std::int64_t number) const { return requests_[static_cast<std::size_t>(number)]; }
  [[nodiscard]] const SchedulerRequest& given(std::int64_t number) const {
    return trace_.requests[static_cast<std::size_t>(number)];
  }
  [[nodiscard]] bool is(std::int64_t number, Status status) const {
    return number >= 0 && number < count() && of(number).status == status;
  }
  [[nodiscard]] std::int64_t pages(std::int64_t tokens) const { return ceil_div(tokens, trace_.page_size); }
  // Counted from the requests each time, so no error of the accounts can hide an over-commitment.
  [[nodiscard]] std::int64_t free_blocks() const {
    std::int64_t free = trace_.blocks;
    for (const Request& request : requests_) free -= pages(request.stored);
    return free;
  }
  // Blocks that the next token of each running request needs.
  [[nodiscard]] std::int64_t blocks_to_decode() const {
    return std::ranges::count_if(running_, [&](std::int64_t r) { return of(r).stored % trace_.page_size == 0; });
  }

  bool fail(SchedulerRule rule, std::int64_t request, std::string message, std::string state) {
    if (result_.fault(rule) == nullptr) {
      result_.faults.push_back({rule, step_, request, std::move(message), std::move(state)});
    }
    return false;
  }

  // The step for the timeline. `missing`: blocks that were needed and not free.
  void record(std::int64_t missing = 0) {
    if (timeline_ == nullptr || static_cast<std::int64_t>(timeline_->size()) > step_) return;
    SchedulerStep now;
    now.free_blocks = missing > 0 ? -missing : free_blocks();
    for (std::int64_t r = 0; r < count(); ++r) {
      const Request& request = of(r);
      SchedulerStep::Place place;
      if (request.status == Status::finished) {
        place.status = RequestStatus::finished;
      } else if (request.status == Status::running) {
        const bool last = request.generated + 1 >= given(r).generate;
        place = {last && missing == 0 ? RequestStatus::finishing : RequestStatus::running, request.stored,
                 pages(request.stored)};
      } else if (request.status == Status::waiting) {
        const bool now_preempted = request.preempted_in == step_;
        place.status = now_preempted ? RequestStatus::preempted : RequestStatus::waiting;
      }
      now.requests.push_back(place);
    }
    timeline_->push_back(std::move(now));
  }

  void arrive() {
    for (std::int64_t r = 0; r < count(); ++r) {
      if (of(r).status == Status::not_arrived && given(r).arrival <= step_) of(r).status = Status::waiting;
    }
  }

  bool legal(const SchedulerDecision& decision, const std::string& before) {
    using Rule = SchedulerRule;
    if (!decision.preempt.empty() && !decision.admit.empty()) {
      return fail(Rule::decision, decision.admit.front(),
                  fmt::format("step {} preempts and admits: a step does one of the two", step_), before);
    }
    std::vector<std::int64_t> seen;
    for (const auto* list : {&decision.preempt, &decision.admit}) {
      const bool preempts = list == &decision.preempt;
      for (const std::int64_t r : *list) {
        if (!is(r, preempts ? Status::running : Status::waiting) || std::ranges::find(seen, r) != seen.end()) {
          return fail(Rule::decision, r,
                      fmt::format("step {} {} request {}, which is not {}", step_, preempts ? "preempts" : "admits", r,
                                  preempts ? "running" : "waiting"),
                      before);
        }
        seen.push_back(r);
      }
    }
    const auto batch = static_cast<std::int64_t>(running_.size() + decision.admit.size());
    if (batch > trace_.max_batch) {
      return fail(Rule::decision, decision.admit.back(),
                  fmt::format("{} requests run in step {}: max_batch is {}", batch, step_, trace_.max_batch), before);
    }
    return true;
  }

  bool preempt(const SchedulerDecision& decision, const std::string& before) {
    for (const std::int64_t r : decision.preempt) {
      const std::int64_t needed = blocks_to_decode(), free = free_blocks();
      if (needed <= free) {
        fail(SchedulerRule::need, r,
             fmt::format("step {} preempts request {}, but the running requests need {} and {} free", step_, r,
                         counted(needed, "block"), free == 1 ? "1 is" : fmt::format("{} are", free)),
             before);
      }
      if (admitted_in_ == step_ - 1) {
        fail(SchedulerRule::watermark, r,
             fmt::format(
                 "step {} preempts request {} directly after step {} admitted request {}: that admission left too "
                 "few blocks, keep a watermark",
                 step_, r, step_ - 1, last_admitted_),
             before);
      }
      result_.recomputed += of(r).stored;
      ++result_.preemptions;
      of(r).status = Status::waiting;
      of(r).stored = 0;
      of(r).preempted_in = step_;
      std::erase(running_, r);
    }
    return true;
  }

  bool decode(const std::string& before) {
    const std::int64_t needed = blocks_to_decode(), free = free_blocks();
    if (needed > free) {
      record(needed - free);
      return fail(SchedulerRule::capacity, -1,
                  fmt::format("the pool is over-committed in step {}: the running requests need {}, {} free", step_,
                              counted(needed, "block"), free == 1 ? "1 is" : fmt::format("{} are", free)),
                  before);
    }
    for (const std::int64_t r : running_) ++of(r).stored;
    return true;
  }

  bool admit(const SchedulerDecision& decision, const std::string& before) {
    for (const std::int64_t r : decision.admit) {
      const std::int64_t tokens = given(r).prompt + of(r).generated, free = free_blocks();
      if (pages(tokens) > free) {
        record(pages(tokens) - free);
        return fail(SchedulerRule::capacity, r,
                    fmt::format("the pool is over-committed in step {}: request {} needs {} for {}, {} free", step_, r,
                                counted(pages(tokens), "block"), counted(tokens, "token"),
                                free == 1 ? "1 is" : fmt::format("{} are", free)),
                    before);
      }
      for (std::int64_t earlier = 0; earlier < r; ++earlier) {
        if (!is(earlier, Status::waiting)) continue;
        fail(SchedulerRule::order, r,
             fmt::format("step {} admits request {} before request {}, which arrived earlier and waits", step_, r,
                         earlier),
             before);
      }
      of(r).status = Status::running;
      of(r).stored = tokens;
      of(r).preempted_in = -1;
      running_.push_back(r);
      admitted_in_ = step_;
      last_admitted_ = r;
    }
    return true;
  }

  void generate(const std::string& before) {
    record();
    const std::vector<std::int64_t> batch = running_;
    for (const std::int64_t r : batch) {
      if (++of(r).generated < given(r).generate) continue;
      of(r).status = Status::finished;
      of(r).stored = 0;
      std::erase(running_, r);
      ++result_.finished;
    }
    for (std::int64_t r = 0; r < count(); ++r) {
      if (of(r).status == Status::finished || step_ < due_[static_cast<std::size_t>(r)]) continue;
      fail(SchedulerRule::starvation, r,
           fmt::format(
               "request {} starves: it {} after step {}, and has {} of {} tokens. An engine that runs one request "
               "at a time has finished it",
               r, of(r).status == Status::running ? "still runs" : "waits", step_, of(r).generated, given(r).generate),
           before);
    }
  }

  void find_unfinished_request() {
    if (result_.fault(SchedulerRule::decision) != nullptr || result_.fault(SchedulerRule::capacity) != nullptr) return;
    --step_;  // the last one
    for (std::int64_t r = 0; r < count(); ++r) {
      if (of(r).status == Status::finished) continue;
      const std::int64_t since = of(r).preempted_in;
      fail(SchedulerRule::finish, r,
           fmt::format("request {} has not finished by step {}: it has {} of {} tokens{}", r, step_, of(r).generated,
                       given(r).generate,
                       since < 0 ? "" : fmt::format(", and was not admitted again after step {} preempted it", since)),
           state_text({}));
      return;
    }
  }

  [[nodiscard]] std::string state_text(const SchedulerDecision& decision) const {
    std::vector<std::string> running, waiting;
    for (const std::int64_t r : running_) {
      running.push_back(fmt::format("{} ({} tokens in {}{})", r, of(r).stored, counted(pages(of(r).stored), "block"),
                                    of(r).stored % trace_.page_size == 0 ? ", needs one" : ""));
    }
    for (std::int64_t r = 0; r < count(); ++r) {
      if (!is(r, Status::waiting)) continue;
      const std::int64_t tokens = given(r).prompt + of(r).generated;
      waiting.push_back(fmt::format("{} ({} for {})", r, counted(pages(tokens), "block"), tokens));
    }
    return fmt::format("step {}: {} of {} blocks are free\nrunning: {}\nwaiting: {}\nyour code: preempt {}, admit {}",
                       step_, free_blocks(), trace_.blocks, listed(running), listed(waiting), listed(decision.preempt),
                       listed(decision.admit));
  }

  const SchedulerCase& trace_;
  std::vector<std::int64_t> due_;
  std::vector<Request> requests_;
  std::vector<std::int64_t> running_;  // in the order of admission
  std::vector<SchedulerStep>* timeline_;
  std::int64_t step_ = 0, admitted_in_ = -2, last_admitted_ = -1;
  SchedulerRun result_;
};

}  // namespace

std::vector<std::int64_t> SchedulerCase::serial_finish() const {
  std::vector<std::int64_t> finish;
  for (const SchedulerRequest& request : requests) {
    const std::int64_t begin = finish.empty() ? request.arrival : std::max(request.arrival, finish.back() + 1);
    finish.push_back(begin + request.generate - 1);
  }
  return finish;
}

std::int64_t SchedulerCase::last_step() const {
  return 2 * serial_finish().back() + 8;
}

const SchedulerFault* SchedulerRun::fault(SchedulerRule rule) const {
  const auto at = std::ranges::find(faults, rule, &SchedulerFault::rule);
  return at == faults.end() ? nullptr : &*at;
}

double SchedulerRun::cost() const {
  return static_cast<double>(steps) + static_cast<double>(recomputed) / kTokensPerStep;
}

SchedulerRun replay(const SchedulerCase& trace, std::span<const SchedulerDecision> decisions,
                    std::vector<SchedulerStep>* timeline) {
  return Replay(trace, timeline).run(decisions);
}

SchedulerRun engine_run(const SchedulerCase& trace) {
  Scenario scenario;
  scenario.cache.page_size = trace.page_size;
  scenario.cache.blocks = trace.blocks;
  scenario.cache.prefix_sharing = false;
  scenario.scheduler = {.max_batch = trace.max_batch,
                        .max_step_tokens = trace.blocks * trace.page_size + trace.max_batch,
                        .base_us = kUnitUs,
                        .per_token_us = 0,
                        .per_context_us = 0};
  std::vector<Request> requests;
  for (const SchedulerRequest& given : trace.requests) {
    Request request;
    request.arrival_us = given.arrival * kUnitUs;
    request.prompt_tokens = given.prompt;
    request.generate_tokens = given.generate;
    requests.push_back(std::move(request));
  }
  trace::Recorder recorder;
  PagingEngine engine(scenario, requests, recorder);
  while (engine.step()) {
  }
  const RunReport& report = engine.report();
  SchedulerRun run;
  run.steps = report.duration_us / kUnitUs;
  run.preemptions = report.preemptions;
  run.recomputed = report.recomputed_tokens;
  run.finished = report.finished;
  return run;
}

Words words_of(const SchedulerCase& trace) {
  Words words{trace.blocks, trace.page_size, trace.max_batch, trace.last_step()};
  for (const SchedulerRequest& request : trace.requests) {
    words.insert(words.end(), {request.arrival, request.prompt, request.generate});
  }
  return words;
}

std::optional<std::vector<SchedulerDecision>> parse_decisions(const Words& words) {
  std::vector<SchedulerDecision> decisions;
  std::size_t at = 0;
  const auto list = [&](std::vector<std::int64_t>& to) {
    if (at >= words.size() || words[at] < 0 || words[at] > static_cast<std::int64_t>(words.size() - at) - 1)
      return false;
    const auto begin = words.begin() + static_cast<std::ptrdiff_t>(at) + 1;
    to.assign(begin, begin + static_cast<std::ptrdiff_t>(words[at]));
    at += 1 + to.size();
    return true;
  };
  while (at < words.size()) {
    SchedulerDecision decision;
    if (!list(decision.preempt) || !list(decision.admit)) return std::nullopt;
    decisions.push_back(std::move(decision));
  }
  return decisions;
}

std::string text_of(const SchedulerCase& trace) {
  std::vector<std::string> requests;
  for (const SchedulerRequest& request : trace.requests) {
    requests.push_back(fmt::format("{} (step {}, {} + {} tokens)", requests.size(), request.arrival, request.prompt,
                                   request.generate));
  }
  return fmt::format("{} blocks of {} tokens, max_batch {}; requests (arrival, prompt + generated): {}", trace.blocks,
                     trace.page_size, trace.max_batch, listed(requests));
}

}  // namespace kvscope::labs
