#include "apps/labs/compile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "apps/labs/compile_job.h"
#include "core/base/file.h"
#include "core/base/pending_folder.h"

namespace kvscope::labs::compile_test {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// A command in the place of a compiler, with limits that only the test's own reason can exceed on a busy machine.
struct Compiler {
  TemporaryFolder folder;
  GradeOptions options;
  SandboxJob job;
  explicit Compiler(std::vector<std::string> command) {
    std::filesystem::create_directory(folder / "out");
    options.sandbox = SandboxKind::trusted;
    job.command = std::move(command);
    job.mounts = {{folder / "out", std::string(kOut), true}};
    job.limits.cpu_seconds = 300;
    job.limits.wall_seconds = 300;
    job.limits.processes = true;
    job.limits.memory_bytes = std::int64_t{2} << 30;
  }
  explicit Compiler(const std::string& script) : Compiler({"/usr/bin/dash", "-c", script}) {}
  [[nodiscard]] Compiled run() const { return run_compiler(options, job, folder / "out" / "program", {}); }
};

// g++ is a driver: its process cc1plus reaches the limit, and the driver ends with exit code 1 and a message.
TEST(RunCompiler, AProcessOfTheCompilerThatExceedsTheCpuTimeIsToldTheOption) {
  Compiler compiler({"/usr/bin/g++", "-std=c++20", "-fsyntax-only", ""});
  std::string text = "constexpr long f(long n) { long s = 0; for (long i = 0; i < n; ++i) s += i ^ n; return s; }\n";
  for (int i = 0; i < 3000; ++i)
    text += "constexpr long v" + std::to_string(i) + " = f(" + std::to_string(200000 + i) + ");\n";
  write_file_atomically(compiler.folder / "long.cpp", text);
  compiler.job.command.back() = (compiler.folder / "long.cpp").string();
  compiler.job.limits.cpu_seconds = 1;
  const Compiled compiled = compiler.run();
  EXPECT_FALSE(compiled.ok);
  EXPECT_THAT(compiled.messages, StartsWith("the compiler was stopped: the program used more than 1 s of CPU time; "
                                            "a larger limit: --max-compile-time\n"));
}

TEST(RunCompiler, ACompilerThatExceedsTheWallClockIsToldTheOption) {
  Compiler compiler("echo 'a warning' >&2; /usr/bin/sleep 1000");
  compiler.job.limits.wall_seconds = 0.3;
  const Compiled compiled = compiler.run();
  EXPECT_FALSE(compiled.ok);
  EXPECT_THAT(compiled.messages, StartsWith("the compiler was stopped: the program did not end within 0.3 s; a larger "
                                            "limit: --max-compile-time\n"));
}

// A product does not depend on the limits; a failure may.
TEST(RunCompiler, AFailureOfALimitIsNotKeptAndAProductIsFoundUnderAnyLimit) {
  Compiler compiler("/usr/bin/sleep 2; echo product > /lab/out/program");
  compiler.options.cache = compiler.folder / "cache";
  const auto run_within = [&](double wall_seconds) {
    std::filesystem::remove(compiler.folder / "out" / "program");
    compiler.job.limits.wall_seconds = wall_seconds;
    return compiler.run();
  };
  EXPECT_FALSE(run_within(0.2).ok);
  const Compiled compiled = run_within(300);
  EXPECT_TRUE(compiled.ok);
  EXPECT_EQ(compiled.product, "product\n");
  const Compiled kept = run_within(0.2);
  EXPECT_TRUE(kept.ok) << kept.messages;
  EXPECT_EQ(kept.product, "product\n");
}

// Reports show the first lines of the messages.
TEST(RunCompiler, TheReasonIsTheFirstLineWhateverTheCompilerWrote) {
  const std::string lines = "for i in 1 2 3 4 5 6 7 8 9; do echo line $i >&2; done; ";
  for (const char* const message : {"g++: fatal error: CPU time limit exceeded signal terminated program cc1plus",
                                    "collect2: fatal error: ld terminated with signal 24 [CPU time limit exceeded]",
                                    "nvcc error   : 'cicc' died due to signal 24"}) {
    const Compiled compiled = Compiler(lines + "echo \"" + message + "\" >&2; exit 1").run();
    EXPECT_THAT(compile_failure(compiled), HasSubstr("of CPU time; a larger limit: --max-compile-time\n")) << message;
    EXPECT_THAT(compiled.messages, HasSubstr(message));
  }
}

// The system kills processes when its memory runs out. More time would not help.
TEST(RunCompiler, AKilledProcessIsNotToldToRaiseTheLimitOfItsTime) {
  for (const char* const message : {"g++: fatal error: Killed signal terminated program cc1plus",
                                    "collect2: fatal error: ld terminated with signal 9 [Killed]"}) {
    const Compiled compiled = Compiler(std::string("echo '") + message + "' >&2; exit 1").run();
    EXPECT_EQ(compiled.messages,
              "the compiler was stopped: the program was killed (signal 9)\n" + std::string(message) + "\n");
  }
}

TEST(RunCompiler, ErrorsOfTheSubmissionStopNoCompiler) {
  const Compiled compiled = Compiler("echo 'rows.cpp:1: error: no' >&2; exit 1").run();
  EXPECT_FALSE(compiled.ok);
  EXPECT_EQ(compiled.messages, "rows.cpp:1: error: no\n");
}

}  // namespace
}  // namespace kvscope::labs::compile_test
