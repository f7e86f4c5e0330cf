// case: blocks, page_size, max_batch, the last step, and for each request its arrival, prompt and tokens to generate.
// result: for each step the preempted requests and the admitted ones, each with their count. It ends when every
// request has finished, after the last step, or with the first decision that cannot be carried out.
#include <algorithm>

#include "cases.h"
#include "policy.h"

namespace {

struct Request {
  std::int64_t arrival, prompt, generate;
  std::int64_t generated = 0, tokens = 0, blocks = 0;  // tokens and blocks: 0 unless it runs
};

std::int64_t pages(std::int64_t tokens, std::int64_t page_size) {
  return (tokens + page_size - 1) / page_size;
}

class Engine {
 public:
  explicit Engine(const cases::Words& words)
      : blocks_(words[0]), page_size_(words[1]), max_batch_(words[2]), last_(words[3]), free_(words[0]) {
    for (std::size_t i = 4; i < words.size(); i += 3) requests_.push_back({words[i], words[i + 1], words[i + 2]});
  }

  cases::Words run() {
    cases::Words result;
    std::size_t arrived = 0, finished = 0;
    for (std::int64_t step = 0; step <= last_ && finished < requests_.size(); ++step) {
      for (; arrived < requests_.size() && requests_[arrived].arrival <= step; ++arrived) {
        waiting_.push_back(static_cast<int>(arrived));
      }
      const Decision decision = running_.empty() && waiting_.empty() ? Decision{} : decide(view(step));
      for (const std::vector<int>* list : {&decision.preempt, &decision.admit}) {
        result.push_back(static_cast<std::int64_t>(list->size()));
        result.insert(result.end(), list->begin(), list->end());
      }
      if (!carry_out(decision)) break;
      finished += generate();
    }
    return result;
  }

 private:
  Step view(std::int64_t step) const {
    Step seen{step, blocks_, free_, page_size_, max_batch_, {}, {}};
    for (const int number : running_) {
      const Request& r = requests_[number];
      seen.running.push_back({number, r.tokens, r.blocks, r.generated, r.tokens % page_size_ == 0});
    }
    for (const int number : waiting_) {
      const Request& r = requests_[number];
      const std::int64_t tokens = r.prompt + r.generated;
      seen.waiting.push_back({number, tokens, pages(tokens, page_size_), r.generated});
    }
    return seen;
  }

  static bool remove(std::vector<int>& list, int number) {
    const auto at = std::find(list.begin(), list.end(), number);
    if (at == list.end()) return false;
    list.erase(at);
    return true;
  }

  bool store(Request& r, std::int64_t tokens) {
    const std::int64_t more = pages(r.tokens + tokens, page_size_) - r.blocks;
    if (more > free_) return false;
    r.tokens += tokens;
    r.blocks += more;
    free_ -= more;
    return true;
  }

  void release(Request& r) {
    free_ += r.blocks;
    r.tokens = r.blocks = 0;
  }

  bool carry_out(const Decision& decision) {
    if (!decision.preempt.empty() && !decision.admit.empty()) return false;
    for (const int number : decision.preempt) {
      if (!remove(running_, number)) return false;
      release(requests_[number]);
      waiting_.insert(std::lower_bound(waiting_.begin(), waiting_.end(), number), number);
    }
    for (const int number : running_) {
      if (!store(requests_[number], 1)) return false;
    }
    for (const int number : decision.admit) {
      if (!remove(waiting_, number)) return false;
      Request& r = requests_[number];
      if (!store(r, r.prompt + r.generated)) return false;
      running_.push_back(number);
    }
    return static_cast<std::int64_t>(running_.size()) <= max_batch_;
  }

  std::size_t generate() {
    std::size_t finished = 0;
    std::vector<int> left;
    for (const int number : running_) {
      Request& r = requests_[number];
      if (++r.generated < r.generate) {
        left.push_back(number);
      } else {
        release(r);
        ++finished;
      }
    }
    running_ = left;
    return finished;
  }

  std::int64_t blocks_, page_size_, max_batch_, last_, free_;
  std::vector<Request> requests_;
  std::vector<int> running_, waiting_;
};

}  // namespace

int main() {
  return cases::run([](const cases::Words& words) { return Engine(words).run(); });
}
