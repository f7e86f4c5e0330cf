#include "core/tma/arrival_barrier.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "core/base/errors.h"

namespace kvscope {

namespace {

void require_bytes(std::string_view operation, std::int64_t bytes) {
  if (bytes < 0 || bytes > ArrivalBarrier::kMaxCount) {
    throw GeometryError(fmt::format("barrier, {}: {} bytes are outside 0 to {}, what one operation takes", operation,
                                    bytes, ArrivalBarrier::kMaxCount));
  }
}

}  // namespace

std::string_view name(BarrierFault fault) {
  static constexpr std::array<std::string_view, 8> kNames = {
      "pending underflow", "unobserved phase", "two phases behind", "ahead of the phase",
      "late bytes",        "too many bytes",   "deadlock",          "live re-init"};
  return kNames.at(static_cast<std::size_t>(fault));
}

ArrivalBarrier::ArrivalBarrier(std::int64_t expected) {
  init(expected);
}

void ArrivalBarrier::init(std::int64_t expected) {
  if (expected < 1 || expected > kMaxCount) {
    throw GeometryError(fmt::format("barrier, init: {} arrivals are outside 1 to {}", expected, kMaxCount));
  }
  if (live_) diagnose(BarrierFault::live_reinit, "init of a live barrier: invalidate it first");
  ++operations_;
  expected_ = expected;
  state_ = {0, expected, 0};
  observed_ = -1;
  live_ = owned_ = true;
}

void ArrivalBarrier::inval() {
  begin("inval");
  live_ = false;
}

void ArrivalBarrier::expect_tx(std::int64_t bytes) {
  begin("expect_tx");
  require_bytes("expect_tx", bytes);
  owned_ = true;
  add_tx(bytes);
}

void ArrivalBarrier::complete_tx(std::int64_t bytes) {
  begin("complete_tx");
  require_bytes("complete_tx", bytes);
  if (!add_tx(-bytes)) return;
  if (state_.tx < 0 && !owned_) {
    diagnose(
        BarrierFault::late_bytes,
        fmt::format("{} bytes in phase {}, which no producer has begun: phase {} ended before they arrived, so it had "
                    "announced too few: expect every byte of a copy before the phase's last arrival",
                    bytes, state_.phase, state_.phase - 1));
  }
  end_phase_if_complete();
}

void ArrivalBarrier::arrive(std::int64_t count) {
  begin("arrive");
  if (count < 1) throw GeometryError(fmt::format("barrier, arrive: {} arrivals: give 1 or more", count));
  if (observed_ < state_.phase - 1) {
    diagnose(BarrierFault::unobserved_phase,
             fmt::format("an arrival in phase {} before any thread observed the end of phase {}: wait for each phase",
                         state_.phase, state_.phase - 1));
  }
  owned_ = true;
  if (count > state_.pending) {
    diagnose(
        BarrierFault::pending_underflow,
        fmt::format("{} arrivals, but {} of {} are missing in phase {}: give the barrier the number of its arrivals",
                    count, state_.pending, expected_, state_.phase));
    return;
  }
  state_.pending -= count;
  end_phase_if_complete();
}

void ArrivalBarrier::arrive_expect_tx(std::int64_t bytes) {
  expect_tx(bytes);
  arrive();
}

void ArrivalBarrier::own() {
  begin("own");
  owned_ = true;
}

bool ArrivalBarrier::test_wait(int parity) {
  begin("test_wait");
  if (parity != 0 && parity != 1) {
    throw GeometryError(fmt::format("barrier, test_wait: parity {} is neither 0 nor 1", parity));
  }
  const bool over = state_.phase % 2 != parity;
  if (over) observed_ = state_.phase - 1;
  return over;
}

bool ArrivalBarrier::wait(std::int64_t phase) {
  if (phase < -1) throw GeometryError(fmt::format("barrier, wait: phase {} is before -1, the free first lap", phase));
  const bool over = test_wait(phase % 2 == 0 ? 0 : 1);
  if (phase < state_.phase - 1) {
    diagnose(
        BarrierFault::two_phases_behind,
        fmt::format("a wait for phase {} in phase {}: its parity now belongs to phase {}: a waiter must not fall two "
                    "phases behind",
                    phase, state_.phase, over ? state_.phase - 1 : state_.phase));
  } else if (phase > state_.phase) {
    diagnose(
        BarrierFault::ahead_of_phase,
        fmt::format("a wait for phase {} in phase {}: its parity belongs to phase {}: wait for every phase in turn",
                    phase, state_.phase, over ? state_.phase - 1 : state_.phase));
  }
  if (!over) {
    diagnose(BarrierFault::deadlock,
             fmt::format("a wait for phase {} never ends: {} of {} arrivals and {} bytes are missing: {}", phase,
                         state_.pending, expected_, state_.tx,
                         state_.pending > 0 ? "let the producer arrive" : "expect no more bytes than are copied"));
  }
  return over;
}

void ArrivalBarrier::begin(std::string_view operation) {
  if (!live_)
    throw GeometryError(fmt::format("barrier, {}: the barrier is not initialized: call init first", operation));
  ++operations_;
}

void ArrivalBarrier::diagnose(BarrierFault fault, std::string message) {
  diagnoses_.push_back({fault, operations_ - 1, std::move(message)});
}

bool ArrivalBarrier::add_tx(std::int64_t bytes) {
  const std::int64_t sum = state_.tx + bytes;
  if (sum > kMaxCount || sum < -kMaxCount) {
    diagnose(
        BarrierFault::too_many_bytes,
        fmt::format("{} bytes in phase {}: one phase holds at most {}: split the tile", sum, state_.phase, kMaxCount));
    return false;
  }
  state_.tx = sum;
  return true;
}

void ArrivalBarrier::end_phase_if_complete() {
  if (state_.pending != 0 || state_.tx != 0) return;
  ++state_.phase;
  state_.pending = expected_;
  owned_ = false;
}

}  // namespace kvscope
