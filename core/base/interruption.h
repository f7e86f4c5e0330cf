// Stops a long computation from outside: the caller names a function, and the computation asks it between two pieces of
// work whether to go on.
//
//   const Interruptible scope([] { return !stop_requested; });
//   attention::reference(problem);  // throws Cancelled within about 20 ms + one piece of work
//
// Computations that ask: the paging engine, the golden reference and its fast path, the tiled flow, the comparison of
// outputs, the diagnosis. They are single-threaded, so the function belongs to one thread. Without an Interruptible, a
// point costs one load.
#pragma once

#include <chrono>
#include <functional>
#include <stdexcept>

namespace kvscope {

class Cancelled : public std::runtime_error {
 public:
  Cancelled() : std::runtime_error("cancelled") {}
};

// While it lives, computations of this thread ask `go_on`, at most every 20 ms. The innermost one is asked.
class Interruptible {
 public:
  explicit Interruptible(std::function<bool()> go_on);
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

  // Throws Cancelled when `go_on` returns false. Asks only if 20 ms have passed since the last time.
  void ask();

 private:
  std::function<bool()> go_on_;
  std::chrono::steady_clock::time_point last_;
  Interruptible* outer_;
};

namespace detail {
inline thread_local constinit Interruptible* innermost_interruptible = nullptr;
}

// Between two pieces of work, of about a millisecond or less.
inline void interruption_point() {
  if (detail::innermost_interruptible != nullptr) [[unlikely]]
    detail::innermost_interruptible->ask();
}

}  // namespace kvscope
