#include "core/base/interruption.h"

#include <utility>

namespace kvscope {

Interruptible::Interruptible(std::function<bool()> go_on)
    : go_on_(std::move(go_on)), last_(std::chrono::steady_clock::now()), outer_(detail::innermost_interruptible) {
  detail::innermost_interruptible = this;
}

Interruptible::~Interruptible() {
  detail::innermost_interruptible = outer_;
}

void Interruptible::ask() {
  constexpr std::chrono::milliseconds kInterval(20);
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < kInterval) return;
  last_ = now;
  if (!go_on_()) throw Cancelled();
}

}  // namespace kvscope
