// kvscope tma barrier OPERATION...: applies operations to an arrival barrier (mbarrier). Prints its state and the
// results of waits after each operation, and reports misuse, where hardware would hang or give no error.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/common/cli.h"
#include "apps/common/faults.h"
#include "apps/common/help_page.h"
#include "apps/kvscope/commands.h"
#include "core/base/errors.h"
#include "core/base/nearest_name.h"
#include "core/tma/arrival_barrier.h"

namespace kvscope::apps {
namespace {

struct BarrierCommand {
  std::int64_t arrivals = 1;
  std::vector<std::string> operations;
};

struct Operation {
  std::string_view name;
  enum class Number : std::uint8_t { none, may, must } number;
  void (*run)(ArrivalBarrier& barrier, std::int64_t number);
};
using Number = Operation::Number;

constexpr std::array<Operation, 7> kOperations{{
    {"expect", Number::must, [](ArrivalBarrier& b, std::int64_t n) { b.expect_tx(n); }},
    {"complete", Number::must, [](ArrivalBarrier& b, std::int64_t n) { b.complete_tx(n); }},
    {"arrive", Number::may, [](ArrivalBarrier& b, std::int64_t n) { b.arrive(n); }},
    {"arrive_expect", Number::must, [](ArrivalBarrier& b, std::int64_t n) { b.arrive_expect_tx(n); }},
    {"wait", Number::must, [](ArrivalBarrier& b, std::int64_t n) { static_cast<void>(b.wait(n)); }},
    {"init", Number::must, [](ArrivalBarrier& b, std::int64_t n) { b.init(n); }},
    {"inval", Number::none, [](ArrivalBarrier& b, std::int64_t) { b.inval(); }},
}};

struct Parsed {
  std::string text;
  const Operation* operation = nullptr;
  std::int64_t number = 1;
};

// "expect:1024", "arrive".
std::optional<Parsed> parse(const std::string& text, std::vector<Fault>& faults) {
  const auto fault = [&](std::string message) {
    faults.push_back({"OPERATION", fmt::format("'{}' {}", text, message)});
    return std::nullopt;
  };
  const std::size_t colon = text.find(':');
  const std::string_view word = std::string_view(text).substr(0, colon);
  const auto* const found = std::ranges::find(kOperations, word, &Operation::name);
  if (found == kOperations.end()) {
    std::array<std::string_view, kOperations.size()> names;
    std::ranges::transform(kOperations, names.begin(), &Operation::name);
    return fault(fmt::format("is not an operation{}", suggest_name(word, names)));
  }
  Parsed parsed{text, found};
  if (colon == std::string::npos) {
    if (found->number == Number::must) return fault(fmt::format("needs a number: {}:N", word));
    return parsed;
  }
  if (found->number == Number::none) return fault("takes no number");
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, parsed.number);
  if (error != std::errc() || stop != end) return fault(fmt::format("has no number after its colon: {}:N", word));
  return parsed;
}

void show(const std::string& operation, const ArrivalBarrier& barrier) {
  const auto& [phase, pending, tx] = barrier.state();
  std::string waits = "     -       -";  // of an invalidated barrier
  if (operation != "inval") {
    const auto told = [&](int parity) {
      ArrivalBarrier asked = barrier;  // a copy, because test_wait records that the phase was observed
      return asked.test_wait(parity) ? "go" : "wait";
    };
    waits = fmt::format("{:>6} {:>7}", told(0), told(1));
  }
  std::cout << fmt::format("{:<20} {:>5} {:>9} {:>8}   {}\n", operation, phase, pending, tx, waits);
}

int drive(const BarrierCommand& command) {
  std::vector<Fault> faults;
  std::vector<Parsed> operations;
  for (const std::string& text : command.operations) {
    if (const auto parsed = parse(text, faults)) operations.push_back(*parsed);
  }
  if (!faults.empty()) throw InputError("command line", std::move(faults));

  ArrivalBarrier barrier(command.arrivals);
  std::cout << "                           arrivals    bytes    waiter of parity\n"
               "operation            phase  missing  missing        0       1\n";
  show(fmt::format("init:{}", command.arrivals), barrier);
  std::size_t told = 0;
  for (const auto& [text, operation, number] : operations) {
    operation->run(barrier, number);
    show(text, barrier);
    for (; told < barrier.diagnoses().size(); ++told) {
      const BarrierDiagnosis& diagnosis = barrier.diagnoses()[told];
      std::cout << fmt::format("  {}: {}\n", name(diagnosis.fault), diagnosis.message);
    }
  }
  return told == 0 ? kExitFine : kExitCheckFailed;
}

}  // namespace

void add_tma_barrier(CLI::App& tma, Action& chosen) {
  const auto command = std::make_shared<BarrierCommand>();
  CLI::App* barrier = tma.add_subcommand(
      "barrier", "Apply operations to an arrival barrier (mbarrier), print its state after each, and report misuse");
  barrier
      ->add_option("OPERATION", command->operations,
                   "Operations in order: expect:BYTES, complete:BYTES, arrive, arrive:COUNT, arrive_expect:BYTES, "
                   "wait:PHASE, inval, init:ARRIVALS")
      ->required();
  barrier->add_option("--arrivals", command->arrivals, "Arrivals that complete a phase")->capture_default_str();
  add_examples(*barrier, {"kvscope tma barrier expect:4096 arrive complete:2048 complete:2048 wait:0"});
  barrier->callback([command, &chosen] { chosen = [command] { return drive(*command); }; });
}

}  // namespace kvscope::apps
