#include "gpu/hardware/check.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "core/base/errors.h"
#include "gpu/hardware/child.h"
#include "gpu/hardware/probe.h"
#include "gpu/verify/run_case.h"

namespace kvscope::gpu {
namespace {

std::vector<std::string> command_of(const CheckOptions& options, const std::string& what) {
  std::vector<std::string> command = {options.program,     "--one", what, "--device", options.which.device, "--driver",
                                      options.which.driver};
  if (options.which.small) command.emplace_back("--small");
  if (!options.which.kernel.empty()) command.insert(command.end(), {"--kernel", options.which.kernel});
  if (options.which.random_blocks > 0)
    command.insert(command.end(), {"--blocks", std::to_string(options.which.random_blocks)});
  return command;
}

// How the process ended, and the end of its standard error; empty: exit code 0.
std::string run(const CheckOptions& options, const std::string& what, const Say& hear) {
  if (options.program.empty()) {
    try {
      do_one(options.which, what, hear);
    } catch (const InputError&) {
      throw;
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  }
  const ChildEnd end = run_child(command_of(options, what), options.most_silence, [&](std::string_view line) {
    // a driver may also print; lines that are not JSON are ignored
    if (!line.starts_with('{')) return;
    try {
      hear(json::parse(line, "the process's own line"));
    } catch (const InputError&) {
    }
  });
  const std::string words = end.words();
  return words.empty() || end.errors.empty() ? words : words + "\n" + end.errors;
}

std::string text_at(const json::Value& value, const char* key) {
  const json::Value* found = value.find(key);
  const std::string* text = found == nullptr ? nullptr : found->as_string();
  return text == nullptr ? "" : *text;
}

std::int64_t number_at(const json::Value& value, const char* key) {
  const json::Value* found = value.find(key);
  return found == nullptr || found->as_i64() == nullptr ? 0 : *found->as_i64();
}

std::vector<std::string> texts_at(const json::Value& value, const char* key) {
  std::vector<std::string> texts;
  if (const json::Value* found = value.find(key); found != nullptr && found->as_array() != nullptr)
    for (const json::Value& text : *found->as_array())
      if (text.as_string() != nullptr) texts.push_back(*text.as_string());
  return texts;
}

// --- cases -----------------------------------------------------------------------------------------------------------

void take_case(const json::Value& value, CheckReport& report) {
  if (const std::string why = text_at(value, "left_out"); !why.empty()) {
    report.left_out.push_back(fmt::format("{} {}: {}", text_at(value, "kernel"), text_at(value, "case"), why));
    return;
  }
  const json::Value* passed = value.find("passed");
  const json::Value* seconds = value.find("seconds");
  report.cases.push_back({.kernel = text_at(value, "kernel"),
                          .name = text_at(value, "case"),
                          .what = text_at(value, "what"),
                          .passed = passed != nullptr && passed->as_bool() != nullptr && *passed->as_bool(),
                          .seconds = seconds == nullptr ? 0 : seconds->number(),
                          .faults = texts_at(value, "faults")});
}

void check_cases(const CheckOptions& options, const std::string& kernel, CheckReport& report,
                 const std::function<void(const std::string&)>& doing) {
  const std::vector<const Case*> cases = chosen_cases(options.which, kernel);
  std::size_t next = 0;  // the first case without a result
  while (next < cases.size()) {
    const std::size_t first = next;
    std::string ended = run(options, fmt::format("cases:{}/{}", kernel, next), [&](const json::Value& line) {
      if (const json::Value* begin = line.find("begin"); begin != nullptr && begin->as_i64() != nullptr)
        doing(fmt::format("{} {} of {}", kernel, *begin->as_i64() + 1, cases.size()));
      if (const json::Value* result = line.find("case"); result != nullptr && next < cases.size()) {
        take_case(*result, report);
        ++next;
      }
    });
    if (ended.empty() && next == first) ended = "it had no output";
    // The case without a result ended the process, or kept it from starting.
    if (!ended.empty() && next < cases.size()) {
      const Case& c = *cases[next++];
      report.cases.push_back({.kernel = c.kernel,
                              .name = c.name,
                              .what = c.what,
                              .passed = false,
                              .seconds = 0,
                              .faults = {"its process: " + ended}});
    }
  }
}

// --- probes and times ------------------------------------------------------------------------------------------------

PartRecord check_part(const CheckOptions& options, const Probe& probe, std::size_t part) {
  PartRecord record{.name = probe.parts[part].name, .measured = {}, .verdict = {}, .expected = {}, .details = {}};
  const std::string ended = run(options, fmt::format("probe:{}/{}", probe.id, part), [&](const json::Value& line) {
    const json::Value* answer = line.find("answer");
    if (answer == nullptr) return;
    record.measured = text_at(*answer, "measured");
    record.verdict = text_at(*answer, "verdict");
    record.details = texts_at(*answer, "details");
    if (const json::Value* expected = answer->find("expected")) record.expected = *expected;
  });
  if (record.verdict.empty()) {
    record.verdict = name(ProbeVerdict::failed);
    record.measured = "its process: " + (ended.empty() ? "no answer" : ended);
  }
  return record;
}

void check_instructions(const CheckOptions& options, std::size_t part, CheckReport& report) {
  const std::size_t before = report.instructions.size();
  const std::string ended = run(options, fmt::format("instructions/{}", part), [&](const json::Value& line) {
    const json::Value* found = line.find("instruction");
    if (found == nullptr) return;
    InstructionSummary summary{.word = text_at(*found, "word"),
                               .fault = text_at(*found, "fault"),
                               .differing = number_at(*found, "differing"),
                               .distance = {},
                               .examples = texts_at(*found, "examples")};
    if (const json::Value* steps = found->find("distance"); steps != nullptr && steps->as_i64() != nullptr)
      summary.distance = *steps->as_i64();
    report.instructions.push_back(std::move(summary));
    report.instruction_lines += text_at(*found, "line");
  });
  const std::vector<std::string> words = words_of_part(options.which, part);
  for (std::size_t i = report.instructions.size() - before; i < words.size(); ++i)  // words without a result
    report.instructions.push_back({.word = words[i],
                                   .fault = "its process: " + (ended.empty() ? "no result" : ended),
                                   .differing = 0,
                                   .distance = {},
                                   .examples = {}});
}

void check_times(const CheckOptions& options, CheckReport& report) {
  const std::string ended = run(options, "bench", [&](const json::Value& line) {
    const json::Value* bench = line.find("bench");
    if (bench == nullptr) return;
    report.bench = *bench;
    report.bench_markdown = text_at(line, "markdown");
    const json::Value* passed = line.find("passed");
    report.bench_passed = passed != nullptr && passed->as_bool() != nullptr && *passed->as_bool();
  });
  if (!report.bench.is_null()) return;
  report.bench_passed = false;
  report.bench_markdown = "No result; its process: " + (ended.empty() ? "said nothing" : ended) + "\n";
}

}  // namespace

std::optional<std::string> find_device(const CheckOptions& options, CheckReport& report) {
  report.date = today();
  std::string none = "its process said nothing of a device";
  bool found = false;
  const std::string ended = run(options, "device", [&](const json::Value& line) {
    if (const std::string why = text_at(line, "none"); !why.empty()) none = why;
    const json::Value* device = line.find("device");
    if (device == nullptr) return;
    found = true;
    report.device = {.kind = text_at(*device, "kind"),
                     .name = text_at(*device, "name"),
                     .architecture = text_at(*device, "architecture"),
                     .driver = text_at(*device, "driver"),
                     .multiprocessors = static_cast<int>(number_at(*device, "multiprocessors")),
                     .memory_bytes = number_at(*device, "memory_bytes")};
  });
  if (found) return std::nullopt;
  return ended.empty() ? none : fmt::format("the driver could not be asked: {}", ended);
}

void check(const CheckOptions& options, CheckReport& report,
           const std::function<void(const std::string& doing)>& doing) {
  if (options.cases) {
    std::vector<std::string> kernels;
    for (const Case* c : select_cases(options.which.kernel, ""))
      if (kernels.empty() || kernels.back() != c->kernel) kernels.push_back(c->kernel);
    for (const std::string& kernel : kernels) check_cases(options, kernel, report, doing);
  }
  if (options.probes) {
    for (const Probe& probe : all_probes()) {
      doing("probe " + probe.id);
      ProbeRecord record{.id = probe.id, .question = probe.question, .experiment = probe.experiment, .parts = {}};
      for (std::size_t part = 0; part < probe.parts.size(); ++part)
        record.parts.push_back(check_part(options, probe, part));
      report.probes.push_back(std::move(record));
    }
  }
  if (options.instructions) {
    for (std::size_t part = 0; part < instruction_parts(); ++part) {
      doing(fmt::format("instructions {} of {}", part + 1, instruction_parts()));
      check_instructions(options, part, report);
    }
  }
  if (options.bench) {
    doing("times");
    check_times(options, report);
  }
}

}  // namespace kvscope::gpu
