#include "apps/labs/sandbox.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>

#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/pending_folder.h"

namespace kvscope::labs::sandbox_test {
namespace {

// Both sandboxes, each where it works on this machine.
class Sandbox : public testing::TestWithParam<SandboxKind> {
 protected:
  void SetUp() override {
    try {
      SandboxJob job;
      job.command = {"/usr/bin/true"};
      ASSERT_TRUE(run_in_sandbox(GetParam(), job).fine());
    } catch (const InputError& error) {
      GTEST_SKIP() << "this sandbox does not work here: " << error.what();
    }
  }
  static SandboxJob shell(const std::string& script, bool processes = true) {
    SandboxJob job;
    job.command = {"/usr/bin/dash", "-c", script};
    job.limits.processes = processes;
    return job;
  }
  [[nodiscard]] SandboxEnd run(const SandboxJob& job) const { return run_in_sandbox(GetParam(), job); }
};

TEST_P(Sandbox, PassesInputOutputErrorsAndTheExitCode) {
  SandboxJob job = shell("/usr/bin/cat; echo problem >&2; exit 3");
  job.input = std::string(300000, 'x');  // more than a socket holds
  const SandboxEnd end = run(job);
  EXPECT_EQ(end.output, job.input);
  EXPECT_EQ(end.errors, "problem\n");
  EXPECT_EQ(end.exit_code, 3);
  EXPECT_EQ(end_text(end, job.limits), "the program ended with exit code 3");
}

// A submission that reads nothing must not stop the writer.
TEST_P(Sandbox, AProgramMayIgnoreItsInput) {
  SandboxJob job = shell("exit 0");
  job.input = std::string(3000000, 'x');
  EXPECT_TRUE(run(job).fine());
}

TEST_P(Sandbox, HidesFilesOutside) {
  for (const char* const path :
       {"/etc/passwd", "/usr/share", "/usr/local", "/home", "/root", "/var", KVSCOPE_SOURCE_DIR}) {
    EXPECT_TRUE(run(shell(std::string("test ! -e ") + path)).fine()) << path;
  }
}

TEST_P(Sandbox, IsReadOnlyExceptForItsWorkFolder) {
  EXPECT_TRUE(run(shell("! echo x > /usr/bin/new && ! echo x > /new && echo x > /tmp/new")).fine());
}

TEST_P(Sandbox, WritesToAWritableMountAndNotToAnother) {
  const TemporaryFolder folder;
  const std::filesystem::path in = folder / "in", out = folder / "out";
  std::filesystem::create_directory(in);
  std::filesystem::create_directory(out);
  write_file_atomically(in / "a", "text");
  SandboxJob job = shell("/usr/bin/cp /lab/in/a /lab/out/b && ! echo x > /lab/in/a");
  job.mounts = {{in, "/lab/in"}, {out, "/lab/out", true}};
  EXPECT_TRUE(run(job).fine()) << run(job).errors;
  EXPECT_EQ(read_file(out / "b", 100), "text");
  EXPECT_EQ(read_file(in / "a", 100), "text");
}

TEST_P(Sandbox, HasProcessesOfItsOwn) {
  EXPECT_TRUE(run(shell("! kill -0 " + std::to_string(getpid()))).fine());
}

// The shell cannot start the two programs of a pipe.
TEST_P(Sandbox, StartsNoProcessUnlessItMay) {
  EXPECT_TRUE(run(shell("/usr/bin/true | /usr/bin/true", true)).fine());
  EXPECT_FALSE(run(shell("/usr/bin/true | /usr/bin/true", false)).fine());
}

// Python threads are clone with CLONE_THREAD, a fork is clone without it; tests/labs/triton_security_test.py has both.
TEST_P(Sandbox, AProgramThatMayStartThreadsStartsNoProcess) {
  SandboxJob job = shell("/usr/bin/true | /usr/bin/true", false);
  job.limits.threads = true;
  EXPECT_FALSE(run(job).fine());
  job.command.back() = "exec /usr/bin/true";
  EXPECT_TRUE(run(job).fine());
}

TEST_P(Sandbox, EndsAtTheWallClockWithAllItsProcesses) {
  SandboxJob job = shell("/usr/bin/sleep 1000 & /usr/bin/sleep 1000");
  job.limits.wall_seconds = 0.3;
  const auto begin = std::chrono::steady_clock::now();
  const SandboxEnd end = run(job);
  EXPECT_TRUE(end.timed_out);
  EXPECT_EQ(end_text(end, job.limits), "the program did not end within 0.3 s");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

TEST_P(Sandbox, EndsAtTheLimitOfCpuTime) {
  SandboxJob job = shell("while :; do :; done");
  job.limits.cpu_seconds = 1;
  job.limits.wall_seconds = 60;
  EXPECT_EQ(end_text(run(job), job.limits), "the program used more than 1 s of CPU time");
}

// A process may ignore the signal of its limit. bubblewrap does not tell how much CPU time the program used.
TEST_P(Sandbox, AProgramThatIgnoresTheSignalOfTheLimitIsKilledASecondLater) {
  SandboxJob job = shell("trap '' XCPU; while :; do :; done");
  job.limits.cpu_seconds = 1;
  job.limits.wall_seconds = 300;
  const SandboxEnd end = run(job);
  EXPECT_EQ(end.signal, SIGKILL);
  EXPECT_EQ(end_text(end, job.limits), GetParam() == SandboxKind::namespaces
                                           ? "the program used more than 1 s of CPU time"
                                           : "the program was killed (signal 9)");
}

// By itself, or by the system when memory runs out: more CPU time would not help.
TEST_P(Sandbox, AKilledProgramIsNotToldToRaiseTheLimitOfItsTime) {
  const SandboxJob job = shell("kill -KILL $$");
  EXPECT_EQ(end_text(run(job), job.limits, {.time = "--max-run-time"}), "the program was killed (signal 9)");
}

TEST_P(Sandbox, CutsOutputAtItsLimit) {
  SandboxJob job = shell("while :; do echo 0123456789; done");
  job.limits.output_bytes = 1000;
  const SandboxEnd end = run(job);
  EXPECT_TRUE(end.output_too_long);
  EXPECT_EQ(end.output.size(), 1000U);
}

TEST_P(Sandbox, NamesTheSignalThatEndedAProgram) {
  EXPECT_EQ(end_text(run(shell("kill -SEGV $$")), {}), "the program was ended by signal 11 (segmentation fault)");
}

INSTANTIATE_TEST_SUITE_P(Both, Sandbox, testing::Values(SandboxKind::bubblewrap, SandboxKind::namespaces),
                         [](const auto& param) { return std::string(sandbox_name(param.param)); });

// The time of all processes, those that the program started included.
TEST(EndText, SigkillIsTheLimitOfCpuTimeIfThatMuchWasUsed) {
  SandboxLimits limits;
  limits.cpu_seconds = 2;
  SandboxEnd end;
  end.signal = SIGKILL;
  for (const double seconds : {0.0, 1.99}) {
    end.cpu_seconds = seconds;
    EXPECT_EQ(end_text(end, limits, {.time = "--max-run-time"}), "the program was killed (signal 9)") << seconds;
  }
  for (const double seconds : {2.0, 3.01}) {
    end.cpu_seconds = seconds;
    EXPECT_EQ(end_text(end, limits, {.time = "--max-run-time"}),
              "the program used more than 2 s of CPU time; a larger limit: --max-run-time")
        << seconds;
  }
}

TEST(Trusted, MeasuresTheCpuTimeOfAllProcesses) {
  SandboxJob job;
  job.command = {"/usr/bin/dash", "-c", "/usr/bin/dash -c 'while :; do :; done'; true"};
  job.limits.cpu_seconds = 1;
  job.limits.wall_seconds = 300;
  const SandboxEnd end = run_in_sandbox(SandboxKind::trusted, job);
  EXPECT_TRUE(end.fine());
  EXPECT_GE(end.cpu_seconds, 0.5);  // the system sends the signal at about the limit
}

// A path inside becomes the path outside, whole names only.
TEST(Trusted, SeesThePathsOutside) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "a", "text");
  SandboxJob job;
  job.command = {"/usr/bin/cat", "/lab/a"};
  job.mounts = {{folder / "a", "/lab/a"}};
  EXPECT_EQ(run_in_sandbox(SandboxKind::trusted, job).output, "text");
}

TEST(RequireSandbox, TrustSelectsNone) {
  EXPECT_EQ(require_sandbox(true), SandboxKind::trusted);
}

}  // namespace
}  // namespace kvscope::labs::sandbox_test
