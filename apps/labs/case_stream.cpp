#include "apps/labs/case_stream.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "core/base/file.h"
#include "core/base/pending_folder.h"

namespace kvscope::labs {
namespace {

constexpr double kWallOfCpu = 3;           // wall clock of a program, in times of its CPU time
constexpr std::int64_t kMaxPrinted = 400;  // [bytes] of what the student's code printed

void append_word(std::string& bytes, std::uint64_t word) {
  for (int shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(word >> shift & 0xff);
}

std::optional<std::uint64_t> take_word(std::string_view& bytes) {
  if (bytes.size() < 8) return std::nullopt;
  std::uint64_t word = 0;
  for (std::size_t i = 8; i-- > 0;) word = word << 8 | static_cast<std::uint8_t>(bytes[i]);
  bytes.remove_prefix(8);
  return word;
}

}  // namespace

std::int64_t word_of(double value) {
  return std::bit_cast<std::int64_t>(value);
}

double double_of(std::int64_t word) {
  return std::bit_cast<double>(word);
}

HarnessRun run_cases(const GradeOptions& options, const std::string& program, std::span<const Words> cases,
                     std::optional<std::int64_t> memory) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "program";
  write_file_atomically(path, program);
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  SandboxJob job;
  job.command = {"/lab/program"};
  job.mounts = {{path, "/lab/program"}};
  const LabLimits& limits = options.limits;
  job.limits.cpu_seconds = limits.run_seconds;
  job.limits.wall_seconds = kWallOfCpu * static_cast<double>(limits.run_seconds);
  job.limits.memory_bytes = memory.value_or(limits.run_memory);
  job.limits.output_bytes = limits.run_output_bytes;
  job.limits.file_bytes = std::int64_t{16} << 20;
  for (const Words& words : cases) {
    append_word(job.input, words.size());
    for (const std::int64_t word : words) append_word(job.input, static_cast<std::uint64_t>(word));
  }
  const SandboxEnd end = run_in_sandbox(options.sandbox, job);

  HarnessRun run;
  const std::string_view of_memory = memory.has_value() ? "" : "--max-run-memory";
  run.failure =
      end_text(end, job.limits, {.time = "--max-run-time", .memory = of_memory, .output = "--max-run-output"});
  run.signal = end.signal;
  run.printed = end.errors.substr(0, kMaxPrinted);
  std::string_view rest = end.output;
  while (run.results.size() < cases.size()) {
    const std::optional<std::uint64_t> count = take_word(rest);
    if (!count.has_value() || *count > rest.size() / 8) break;
    Words words;
    for (std::uint64_t i = 0; i < *count; ++i) words.push_back(static_cast<std::int64_t>(*take_word(rest)));
    run.results.push_back(std::move(words));
  }
  if (run.failure.empty() && run.results.size() < cases.size()) {
    run.failure = "the program ended before it answered every case: does your code call exit()?";
  }
  return run;
}

}  // namespace kvscope::labs
