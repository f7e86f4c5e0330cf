// A kernel on the virtual GPU as the kernel window sees it: the launch as its user types it, and states that are those of
// the machine, however they are reached.
#include "apps/kvscope-viewer/kernel_run.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include <QtCore/QTemporaryDir>

#include "apps/launch/options.h"
#include "core/base/errors.h"
#include "gpu/virtual/debug/controlled_run.h"
#include "gpu/virtual/debug/state_text.h"

namespace kvscope::apps::viewer_kernel_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using viz::KernelMove;

const fs::path kExamples = fs::path(KVSCOPE_SOURCE_DIR) / "apps" / "examples";

// Two warps swap the halves of an array through shared memory; thread 0 of each warp writes its word twice.
constexpr const char* kSwap = R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry swap(.param .u64 out) .reqntid 64 {
  .reg .b32 %r<8>;
  .reg .b64 %rd<4>;
  .shared .align 16 .b8 tile[260];
  .loc 1 4 1
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  shl.b32 %r2, %r1, 2;
  mov.u32 %r3, tile;
  add.s32 %r4, %r3, %r2;
  .loc 1 5 1
  st.shared.u32 [%r4], %r1;
  .loc 1 6 1
  BARRIER
  .loc 1 7 1
  xor.b32 %r5, %r2, 128;
  add.s32 %r6, %r3, %r5;
  ld.shared.u32 %r7, [%r6];
  cvt.u64.u32 %rd2, %r2;
  add.s64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r7;
  ret;
}
.file 1 "swap.cu"
)";

const auto kGoOn = [] { return true; };

class Kernel {
 public:
  explicit Kernel(const std::string& barrier = "bar.sync 0;", bool with_source = true) {
    std::string text = kSwap;
    text.replace(text.find("BARRIER"), 7, barrier);
    std::ofstream(path()) << text;
    if (!with_source) return;
    std::ofstream source(folder() / "swap.cu");
    for (int line = 1; line <= 8; ++line) source << "line " << line << "\n";
  }
  [[nodiscard]] fs::path folder() const { return dir_.path().toStdString(); }
  [[nodiscard]] std::string path() const { return (folder() / "swap.ptx").string(); }
  [[nodiscard]] viz::KernelLaunch launch(const std::string& grid = "2") const {
    viz::KernelLaunch launch;
    launch.path = path();
    launch.grid = grid;
    launch.block = "64";
    launch.arguments = {"u32[64]"};
    return launch;
  }

 private:
  QTemporaryDir dir_;
};

std::unique_ptr<viz::KernelRun> start(const viz::KernelLaunch& launch, const std::function<bool()>& keep_going) {
  return start_kernel(request_of(launch), keep_going);
}

viz::KernelState go(viz::KernelRun& run, KernelMove move, std::uint64_t step = 0) {
  viz::KernelWish wish;
  wish.move = move;
  wish.step = step;
  return run.go(wish, kGoOn);
}

const viz::KernelInstruction& next_of(const viz::KernelRun& run, const viz::KernelState& state) {
  return run.code().instructions.at(
      static_cast<std::size_t>(state.groups.at(static_cast<std::size_t>(state.next)).instruction));
}

// Everything that a state shows, as text.
std::string text_of(const viz::KernelState& state) {
  std::ostringstream out;
  out << state.step << ' ' << static_cast<int>(state.status) << ' ' << state.next << ' ' << state.shown << '\n';
  for (const viz::KernelGroup& g : state.groups) {
    out << g.cta_name << g.warp << g.lanes << static_cast<int>(g.state) << ' ' << g.instruction << g.waits_for << '\n';
  }
  for (const viz::KernelRegister& r : state.registers) {
    out << r.name;
    for (const std::string& bits : r.bits) out << ' ' << bits;
    out << '\n';
  }
  for (const std::uint8_t byte : state.shared.bytes) out << static_cast<int>(byte) << ' ';
  for (const std::int32_t writer : state.shared.writer) {
    out << (writer < 0 ? "-" : state.shared.writers[static_cast<std::size_t>(writer)].text) << '|';
  }
  out << state.barriers;
  return out.str();
}

// --- files and launches ----------------------------------------------------------------------------------------------

TEST(KernelFile, NamesKernelsWithTheirParameters) {
  const viz::KernelFile file = read_kernel_file((kExamples / "scale.ptx").string());
  ASSERT_EQ(file.entries.size(), 1U);
  EXPECT_EQ(file.entries[0].shown, "scale");
  ASSERT_EQ(file.entries[0].parameters.size(), 2U);
  EXPECT_EQ(file.entries[0].parameters[0].name, "data");
  EXPECT_EQ(file.entries[0].parameters[0].type, "u64");
  EXPECT_EQ(file.entries[0].parameters[1].type, "f32");
  EXPECT_EQ(file.entries[0].block, "");
  EXPECT_EQ(read_kernel_file(Kernel().path()).entries[0].block, "64");
}

TEST(KernelFile, IsKnownByItsNameOrItsFirstLines) {
  const Kernel kernel;
  EXPECT_TRUE(is_ptx(kernel.path()));
  const fs::path renamed = kernel.folder() / "kernel.txt";
  fs::copy_file(kernel.path(), renamed);
  EXPECT_TRUE(is_ptx(renamed.string()));
  EXPECT_FALSE(is_ptx((fs::path(KVSCOPE_SOURCE_DIR) / "apps/scenarios/first_light.json").string()));
  EXPECT_FALSE(is_ptx(kernel.folder().string()));
  EXPECT_FALSE(is_ptx((kernel.folder() / "missing.json").string()));
}

TEST(KernelFile, FaultsAreThoseOfTheParser) {
  const Kernel kernel;
  std::ofstream(kernel.path()) << ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry f() { nonsense\n";
  EXPECT_THROW(static_cast<void>(read_kernel_file(kernel.path())), InputError);
  std::ofstream(kernel.path()) << ".version 8.0\n.target sm_90a\n.address_size 64\n";
  EXPECT_THROW(static_cast<void>(read_kernel_file(kernel.path())), InputError);
}

TEST(KernelLaunchWords, AreTheOptionsOfTheCommandLine) {
  const Kernel kernel;
  viz::KernelLaunch launch = kernel.launch();
  EXPECT_EQ(command_of(launch), "kvscope ptx debug " + kernel.path() + " --grid 2 --block 64 --arg 'u32[64]'");
  launch.others = {"--policy", "seed:7", "--max-instructions", "5000"};
  const LaunchRequest request = request_of(launch);
  EXPECT_EQ(request.policy, "seed:7");
  EXPECT_EQ(request.limits.instructions, 5000);
  EXPECT_EQ(launch_of(request), launch);
  launch.arguments = {"", "3"};
  EXPECT_THAT(request_of(launch).args, ElementsAre("1=3"));
  launch.arguments = {"a=b.npy", "-1"};
  EXPECT_THAT(request_of(launch).args, ElementsAre("0=a=b.npy", "1=-1"));
  launch.arguments = {"-1"};
  EXPECT_THAT(request_of(launch).args, ElementsAre("-1"));
}

TEST(KernelLaunchWords, OfFieldsStayWithTheOtherOptions) {
  LaunchRequest request;
  request.args = {"x.npy", "p.n=64", "2=null", "-3"};
  const viz::KernelLaunch launch = launch_of(request);
  EXPECT_THAT(launch.arguments, ElementsAre("x.npy", "-3", "null"));
  EXPECT_THAT(launch.others, ElementsAre("--arg", "p.n=64"));
  const LaunchRequest again = request_of(launch);
  EXPECT_THAT(again.args, testing::UnorderedElementsAre("x.npy", "-3", "null", "p.n=64"));
}

TEST(KernelLaunchWords, AFaultOfAWordIsNamed) {
  viz::KernelLaunch launch = Kernel().launch();
  launch.grid = "1,,2";
  try {
    static_cast<void>(request_of(launch));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("--grid"));
  }
  launch.grid = "1";
  launch.others = {"--polcy", "early"};
  EXPECT_THROW(static_cast<void>(request_of(launch)), InputError);
  launch.others = {"stray"};
  EXPECT_THROW(static_cast<void>(request_of(launch)), InputError);
}

// words -> request -> words, for options of every kind.
RC_GTEST_PROP(LaunchWords, AreReadAsTheyWereWritten, ()) {
  LaunchRequest request;
  const auto count = rc::gen::inRange<std::int64_t>(1, 1'000'000);
  const auto one_of = [](std::vector<std::string> texts) { return *rc::gen::elementOf(texts); };
  request.entry = one_of({"", "scale", "ns::decode<64, float>"});
  request.grid = *rc::gen::resize(3, rc::gen::nonEmpty(rc::gen::container<std::vector<std::int64_t>>(count)));
  request.grid.resize(std::min<std::size_t>(3, request.grid.size()));
  request.block = {*count};
  if (*rc::gen::arbitrary<bool>()) request.cluster = {*count, *count};
  request.shared = *count;
  request.args = *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(
      std::vector<std::string>{"-1", "1.5", "f32[4,4]", "p.x=3", "@0+16", "map:k.json@2", "a b.npy", "null"}));
  if (*rc::gen::arbitrary<bool>()) request.structs = {"0=params.h:Params"};
  request.policy = one_of({"late", "early", "seed:3"});
  request.sum = one_of({"seq", "exact", "hopper"});
  if (*rc::gen::arbitrary<bool>()) request.target = 100;
  request.ctas = one_of({"", "0-3,last"});
  request.cooperative = *rc::gen::arbitrary<bool>();
  request.contract = *rc::gen::arbitrary<bool>();
  request.strict = *rc::gen::arbitrary<bool>();
  request.max_memory = *count;
  request.limits.instructions = *count;
  request.limits.local_bytes = *count;
  request.limits.printed_bytes = *count;
  request.limits.heap_bytes = *count;
  request.limits.heap_blocks = *count;
  request.limits.copies = *count;
  request.limits.cooperative_ctas = *count;
  RC_ASSERT(read_launch("", to_words(request)) == request);
}

// --- states ----------------------------------------------------------------------------------------------------------

TEST(KernelRun, KnowsTheEndAndBeginsAtTheBeginning) {
  const Kernel kernel;
  const auto run = start(kernel.launch(), kGoOn);
  const viz::KernelState state = go(*run, KernelMove::stay);
  EXPECT_EQ(state.step, 0U);
  EXPECT_EQ(state.status, viz::KernelStatus::running);
  ASSERT_TRUE(state.last);
  EXPECT_EQ(*state.last, 2U * 2U * 14U);  // CTAs, warps, instructions
  EXPECT_TRUE(state.reports.empty());
  EXPECT_EQ(run->code().kernel, "swap");
  EXPECT_EQ(run->code().launch, "grid 2, block 64");
  EXPECT_EQ(next_of(*run, state).text, "ld.param.u64 %rd1, [out]");
  EXPECT_EQ(next_of(*run, state).line, 4);
  EXPECT_EQ(go(*run, KernelMove::end).status, viz::KernelStatus::finished);
}

TEST(KernelRun, EveryWayToAStepShowsTheSameState) {
  const Kernel kernel;
  const auto run = start(kernel.launch(), kGoOn), other = start(kernel.launch(), kGoOn);
  const std::uint64_t last = *go(*run, KernelMove::stay).last;
  std::vector<std::string> forward{text_of(go(*run, KernelMove::stay))};
  for (std::uint64_t step = 1; step <= last; ++step) forward.push_back(text_of(go(*run, KernelMove::step)));
  for (std::uint64_t step = last; step-- > 0;) EXPECT_EQ(text_of(go(*run, KernelMove::back)), forward[step]) << step;
  for (const std::uint64_t step : {std::uint64_t{7}, last, std::uint64_t{0}, std::uint64_t{30}, std::uint64_t{29}}) {
    EXPECT_EQ(text_of(go(*other, KernelMove::seek, step)), forward[step]) << step;
  }
  EXPECT_EQ(go(*other, KernelMove::start).step, 0U);
  // The end is the end, also by its number or by the last step.
  EXPECT_THAT(go(*other, KernelMove::seek, last).arrived, HasSubstr("finished"));
  EXPECT_EQ(go(*other, KernelMove::back).arrived, "");
  EXPECT_THAT(go(*other, KernelMove::step).arrived, HasSubstr("finished"));
}

// The debugger of the command line prints the state by other code.
TEST(KernelRun, RowsAreThoseOfTheDebugger) {
  const Kernel kernel;
  const auto run = start(kernel.launch(), kGoOn);
  const PreparedLaunch prepared = prepare(request_of(kernel.launch()), true);
  ptx::ControlledRun machine(*prepared.device, *prepared.module, prepared.config);
  const std::uint64_t last = *go(*run, KernelMove::stay).last;
  for (std::uint64_t step = 0; step < last; ++step) {
    const viz::KernelState state = go(*run, KernelMove::seek, step);
    machine.seek(step);
    const ptx::Position next = machine.position();
    const std::string where = ptx::where_text(machine.launch(), &next);
    // A CTA that starts with its next instruction is not yet among those of the debugger.
    const bool starts = where.find("next") == std::string::npos;
    const auto rows = std::ranges::count(where, '\n') - std::ranges::count(where, '(');
    ASSERT_EQ(where.starts_with("no CTA") ? 1 : rows + (starts ? 1 : 0), std::ssize(state.groups)) << where;
    for (const viz::KernelGroup& group : state.groups) {
      if (starts && group.cta == next.cta) continue;
      const std::string& text = run->code().instructions[static_cast<std::size_t>(group.instruction)].text;
      EXPECT_THAT(where, HasSubstr(text));
      if (!group.waits_for.empty()) {
        EXPECT_THAT(where, HasSubstr("waits for " + group.waits_for));
      }
    }
    const viz::KernelGroup& group = state.groups.at(static_cast<std::size_t>(state.next));
    EXPECT_EQ(group.cta, next.cta);
    EXPECT_EQ(group.warp, next.warp);
    EXPECT_EQ(group.instruction, next.pc);
    for (const viz::KernelRegister& shown : state.registers) {
      const auto value = ptx::read_register(machine.launch(), next.cta, next.warp, next.lanes, shown.name);
      ASSERT_TRUE(value);
      for (std::size_t lane = 0; lane < viz::kWarpLanes; ++lane) {
        EXPECT_EQ(std::strtoull(shown.bits[lane].c_str(), nullptr, 16), value->bits[lane]) << shown.name << ' ' << lane;
      }
    }
  }
}

TEST(KernelRun, SharedMemoryHasItsBytesAndWhoWroteThem) {
  const Kernel kernel;
  const auto run = start(kernel.launch("1"), kGoOn);
  // Behind the barrier both warps have stored.
  viz::KernelState state = go(*run, KernelMove::barrier);
  EXPECT_THAT(state.arrived, HasSubstr("barrier 0"));
  const viz::KernelShared& shared = state.shared;
  ASSERT_EQ(shared.bytes.size(), 272U);  // 260, in pieces of 16
  ASSERT_EQ(shared.writer.size(), 272U);
  for (std::size_t thread = 0; thread < 64; ++thread) {
    EXPECT_EQ(shared.bytes[4 * thread], thread);
    for (std::size_t byte = 4 * thread; byte < 4 * thread + 4; ++byte) {
      ASSERT_GE(shared.writer[byte], 0);
      const viz::KernelWriter& writer = shared.writers[static_cast<std::size_t>(shared.writer[byte])];
      EXPECT_EQ(writer.warp, static_cast<std::int32_t>(thread / 32));
      EXPECT_THAT(writer.text, HasSubstr("st.shared.u32"));
      EXPECT_THAT(writer.text, HasSubstr("swap.cu:5"));
    }
  }
  for (std::size_t byte = 256; byte < 272; ++byte) EXPECT_EQ(shared.writer[byte], -1);
  ASSERT_EQ(shared.variables.size(), 1U);
  EXPECT_EQ(shared.variables[0], (std::pair<std::uint64_t, std::string>(shared.base, "tile")));
  // The position before a write is the one whose next instruction writes it.
  for (const viz::KernelWriter& writer : std::vector(shared.writers)) {
    state = go(*run, KernelMove::seek, writer.step);
    EXPECT_EQ(state.groups.at(static_cast<std::size_t>(state.next)).instruction, writer.instruction);
    EXPECT_EQ(state.groups.at(static_cast<std::size_t>(state.next)).warp, writer.warp);
  }
}

// From every position and for words of both warps, against the last writers at all positions. Word 0 holds 0 before and
// after its store; word 64 is never written.
TEST(KernelRun, TheNextWriteOfAWordIsTheFirstPositionWithAnotherWriter) {
  const Kernel kernel;
  const auto run = start(kernel.launch("1"), kGoOn);
  const std::uint64_t end = *go(*run, KernelMove::end).last;
  std::vector<viz::KernelShared> shared;
  for (std::uint64_t step = 0; step <= end; ++step) shared.push_back(go(*run, KernelMove::seek, step).shared);
  const auto base = std::ranges::find_if(shared, [](const auto& s) { return !s.bytes.empty(); })->base;
  int writes = 0;
  for (const std::size_t word : {0U, 5U, 40U, 64U}) {
    // The step whose instruction wrote it last; nothing: not written.
    const auto writer_at = [&](std::uint64_t step) {
      const viz::KernelShared& now = shared[step];
      const std::int32_t writer = now.bytes.empty() ? -1 : now.writer[4 * word];
      return writer < 0 ? std::nullopt : std::optional(now.writers[static_cast<std::size_t>(writer)].step);
    };
    for (std::uint64_t from = 0; from < end; ++from) {
      std::uint64_t expected = from + 1;
      while (expected < end && (!writer_at(expected) || writer_at(expected) == writer_at(from))) ++expected;
      static_cast<void>(go(*run, KernelMove::seek, from));
      viz::KernelWish wish;
      wish.move = KernelMove::write;
      wish.word = {0, base + 4 * word, 4};
      const viz::KernelState state = run->go(wish, kGoOn);
      ASSERT_EQ(state.step, expected) << "word " << word << " from " << from;
      if (expected == end) {
        EXPECT_EQ(state.arrived, "The launch has finished");
      } else {
        EXPECT_THAT(state.arrived, testing::StartsWith("Written: shared 0x"));
        ++writes;
      }
    }
  }
  EXPECT_GT(writes, 3);
}

TEST(KernelRun, RegistersAreOfTheWarpThatWasAskedFor) {
  const Kernel kernel;
  const auto run = start(kernel.launch("1"), kGoOn);
  static_cast<void>(go(*run, KernelMove::barrier));
  for (const std::int32_t warp : {0, 1}) {
    viz::KernelWish wish;
    wish.cta = 0;
    wish.warp = warp;
    const viz::KernelState state = run->go(wish, kGoOn);
    ASSERT_GE(state.shown, 0);
    EXPECT_EQ(state.groups[static_cast<std::size_t>(state.shown)].warp, warp);
    const auto r1 = std::ranges::find(state.registers, "%r1", &viz::KernelRegister::name);
    ASSERT_NE(r1, state.registers.end());
    for (int lane = 0; lane < viz::kWarpLanes; ++lane) {
      EXPECT_EQ(r1->values[static_cast<std::size_t>(lane)], std::to_string(32 * warp + lane));
    }
  }
  viz::KernelWish none;
  none.cta = 99;
  none.warp = 99;
  const viz::KernelState state = run->go(none, kGoOn);
  EXPECT_EQ(state.shown, state.next);
}

// --- movements -------------------------------------------------------------------------------------------------------

TEST(KernelRun, MovesByLineAndBack) {
  const Kernel kernel;
  const auto run = start(kernel.launch("1"), kGoOn);
  std::vector<std::int32_t> lines{next_of(*run, go(*run, KernelMove::stay)).line};
  for (int i = 0; i < 2; ++i) lines.push_back(next_of(*run, go(*run, KernelMove::line)).line);
  EXPECT_THAT(lines, ElementsAre(4, 5, 6));
  EXPECT_EQ(next_of(*run, go(*run, KernelMove::back_line)).line, 5);
  const viz::KernelState before = go(*run, KernelMove::start);
  const viz::KernelState after = go(*run, KernelMove::warp);
  EXPECT_EQ(after.groups.at(static_cast<std::size_t>(after.next)).warp,
            before.groups.at(static_cast<std::size_t>(before.next)).warp);
  EXPECT_EQ(go(*run, KernelMove::over).arrived, "");
  EXPECT_EQ(go(*run, KernelMove::start).step, 0U);
  EXPECT_THAT(go(*run, KernelMove::back).arrived, HasSubstr("beginning"));
}

// It does not run on until a warp that has ended executes another line.
TEST(KernelRun, AMovementOfAWarpEndsWithIt) {
  const Kernel kernel;
  const auto run = start(kernel.launch("3"), kGoOn);
  const std::uint64_t last = *go(*run, KernelMove::stay).last;
  for (const KernelMove move : {KernelMove::line, KernelMove::over, KernelMove::warp}) {
    for (const std::uint64_t first : {std::uint64_t{0}, last / 3}) {  // of CTA 0, and of CTA 1, which starts with it
      viz::KernelState state = go(*run, KernelMove::seek, first);
      const viz::KernelGroup group = state.groups.at(static_cast<std::size_t>(state.next));
      std::set<std::int32_t> lines;
      for (int moves = 0; moves < 20 && state.arrived.empty(); ++moves) {
        const viz::KernelGroup& now = state.groups.at(static_cast<std::size_t>(state.next));
        EXPECT_EQ(std::pair(now.cta, now.warp), std::pair(group.cta, group.warp));
        lines.insert(next_of(*run, state).line);
        state = go(*run, move);
      }
      EXPECT_EQ(state.arrived,
                "warp " + std::to_string(group.warp) + " of CTA " + std::to_string(group.cta) + " has ended");
      EXPECT_THAT(lines, ElementsAre(4, 5, 6, 7));
      EXPECT_LE(state.step, first + last / 3);
    }
  }
}

TEST(KernelRun, BackALineFromTheEndIsTheLastInstruction) {
  const Kernel kernel;
  const auto run = start(kernel.launch(), kGoOn);
  const std::uint64_t last = go(*run, KernelMove::end).step;
  const viz::KernelState state = go(*run, KernelMove::back_line);
  EXPECT_EQ(state.step, last - 1);
  EXPECT_EQ(next_of(*run, state).text, "ret");
}

TEST(KernelRun, OverIsNotInFunctionsAlsoIfTheyAreInlined) {
  const Kernel kernel;
  std::ifstream in(kernel.path());
  std::string text{std::istreambuf_iterator<char>(in), {}};
  // The address is computed by lines 1 and 2, a function that line 5 calls.
  for (const auto& [code, line] : {std::pair{"  shl.b32 %r2", 1}, {"  mov.u32 %r3", 2}}) {
    text.insert(text.find(code), "  .loc 1 " + std::to_string(line) + " 1, function_name NAME, inlined_at 1 5 1\n");
  }
  text += ".section .debug_str\n{\nNAME:\n.b8 102,0\n}\n";
  std::ofstream(kernel.path()) << text;
  const auto run = start(kernel.launch("1"), kGoOn);
  std::vector<std::int32_t> inside{next_of(*run, go(*run, KernelMove::stay)).line};
  for (int i = 0; i < 3; ++i) inside.push_back(next_of(*run, go(*run, KernelMove::line)).line);
  EXPECT_THAT(inside, ElementsAre(4, 1, 2, 5));
  std::vector<std::int32_t> over{next_of(*run, go(*run, KernelMove::start)).line};
  for (int i = 0; i < 2; ++i) over.push_back(next_of(*run, go(*run, KernelMove::over)).line);
  EXPECT_THAT(over, ElementsAre(4, 5, 6));
}

// The header of the toolkit was shown, and each of its lines was a step.
TEST(KernelRun, CodeOfAnIntrinsicIsInTheLineThatCallsIt) {
  const Kernel kernel;
  const fs::path header = kernel.folder() / "targets" / "x86_64-linux" / "include" / "sm_30_intrinsics.hpp";
  fs::create_directories(header.parent_path());
  std::ofstream(header) << "header 1\nheader 2\nheader 3\n";
  std::ifstream in(kernel.path());
  std::string text{std::istreambuf_iterator<char>(in), {}};
  // The address is computed by lines 1 and 2 of a header, which line 4 calls.
  for (const auto& [code, line] : {std::pair{"  shl.b32 %r2", 1}, {"  mov.u32 %r3", 2}}) {
    text.insert(text.find(code), "  .loc 2 " + std::to_string(line) + " 1, function_name NAME, inlined_at 1 4 1\n");
  }
  text += ".file 2 \"" + header.string() + "\"\n.section .debug_str\n{\nNAME:\n.b8 102,0\n}\n";
  std::ofstream(kernel.path()) << text;
  const auto run = start(kernel.launch("1"), kGoOn);
  std::vector<std::int32_t> lines{next_of(*run, go(*run, KernelMove::stay)).line};
  for (int i = 0; i < 2; ++i) lines.push_back(next_of(*run, go(*run, KernelMove::line)).line);
  EXPECT_THAT(lines, ElementsAre(4, 5, 6));
  for (const viz::KernelSource& source : run->code().sources) EXPECT_NE(source.path, header.string());
}

TEST(KernelRun, AWarpThatWaitsIsAtItsBarrier) {
  const Kernel kernel;
  const auto run = start(kernel.launch("1"), kGoOn);
  bool waits = false;
  for (viz::KernelState state = go(*run, KernelMove::stay); state.status == viz::KernelStatus::running;
       state = go(*run, KernelMove::step)) {
    for (const viz::KernelGroup& group : state.groups) {
      if (group.state != viz::KernelGroup::State::waits) continue;
      waits = true;
      EXPECT_EQ(run->code().instructions.at(static_cast<std::size_t>(group.instruction)).text, "bar.sync 0");
    }
  }
  EXPECT_TRUE(waits);
}

TEST(KernelRun, StopsAtBreakpointsOfTheSourceAndOfThePtx) {
  const Kernel kernel;
  const auto run = start(kernel.launch(), kGoOn);
  const auto& sources = run->code().sources;
  ASSERT_EQ(sources.size(), 2U);
  EXPECT_THAT(sources[0].lines_with_code, ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(sources[0].lines, testing::SizeIs(8));
  const std::int32_t ptx_line = run->code().instructions.at(5).ptx_line;  // st.shared
  EXPECT_TRUE(std::ranges::binary_search(sources[1].lines_with_code, ptx_line));
  for (const viz::KernelBreakpoint place : {viz::KernelBreakpoint{0, 5}, viz::KernelBreakpoint{1, ptx_line}}) {
    static_cast<void>(go(*run, KernelMove::start));
    viz::KernelWish wish;
    wish.move = KernelMove::run;
    wish.breakpoints = {place};
    std::set<std::pair<std::int32_t, std::int32_t>> warps;
    viz::KernelState state = run->go(wish, kGoOn);
    for (; state.status == viz::KernelStatus::running; state = run->go(wish, kGoOn)) {
      EXPECT_THAT(state.arrived, HasSubstr("Breakpoint at "));
      EXPECT_EQ(next_of(*run, state).text, "st.shared.u32 [%r4], %r1");
      const viz::KernelGroup& group = state.groups.at(static_cast<std::size_t>(state.next));
      warps.emplace(group.cta, group.warp);
      ASSERT_LE(warps.size(), 4U);
    }
    EXPECT_EQ(warps.size(), 4U);
    EXPECT_THAT(state.arrived, HasSubstr("finished"));
  }
  // Without them nothing stops it.
  static_cast<void>(go(*run, KernelMove::start));
  EXPECT_EQ(go(*run, KernelMove::run).status, viz::KernelStatus::finished);
}

TEST(KernelRun, ReportsAreKnownFromTheBeginningWithTheirPlaces) {
  const Kernel kernel("");
  const auto run = start(kernel.launch("1"), kGoOn);
  const viz::KernelState state = go(*run, KernelMove::stay);
  ASSERT_FALSE(state.reports.empty());
  std::set<std::string> titles;
  for (const viz::KernelReport& report : state.reports) {
    titles.insert(report.title);
    EXPECT_FALSE(report.message.empty());
    EXPECT_THAT(report.text, HasSubstr(report.message.substr(report.message.find(": ") + 2)));  // after the place
    ASSERT_GE(report.instruction, 0);
    ASSERT_LT(report.instruction, std::ssize(run->code().instructions));
  }
  EXPECT_THAT(titles, testing::Contains(testing::StartsWith("RACE")));
  const viz::KernelState at = go(*run, KernelMove::report);
  EXPECT_THAT(at.arrived, HasSubstr("Reported: "));
  EXPECT_EQ(at.step, state.reports.front().step + 1);
  EXPECT_EQ(at.reports.size(), state.reports.size());
  EXPECT_EQ(at.report, 0);
  EXPECT_EQ(state.report, -1);
}

TEST(KernelRun, ADeadlockShowsWhoWaits) {
  const Kernel kernel("@%p bar.sync 0;");
  std::ifstream in(kernel.path());
  std::string text{std::istreambuf_iterator<char>(in), {}};
  text.replace(text.find("  .loc 1 4 1"), 12,
               "  .reg .pred %p;\n  mov.u32 %r1, %tid.x;\n  setp.lt.u32 %p, %r1, 32;\n  .loc 1 4 1");
  text.replace(text.find("bar.sync 0;"), 11, "bar.sync 0, 64;");
  text.replace(text.find("  .loc 1 7 1"), 12, "  @!%p bar.sync 1, 64;\n  .loc 1 7 1");
  std::ofstream(kernel.path()) << text;
  const auto run = start(kernel.launch("1"), kGoOn);
  const viz::KernelState state = go(*run, KernelMove::end);
  EXPECT_EQ(state.status, viz::KernelStatus::failed);
  EXPECT_EQ(state.next, -1);
  ASSERT_EQ(state.groups.size(), 2U);
  EXPECT_EQ(state.groups[0].waits_for, "barrier 0");
  EXPECT_EQ(state.groups[1].waits_for, "barrier 1");
  EXPECT_GE(state.shown, 0);
  EXPECT_THAT(state.reports.back().title, HasSubstr("DEADLOCK"));
}

TEST(KernelRun, AnInterruptedStartDoesNotKnowTheEnd) {
  const Kernel kernel;
  const auto run = start(kernel.launch(), [] { return false; });
  viz::KernelState state = go(*run, KernelMove::stay);
  EXPECT_EQ(state.step, 0U);
  EXPECT_FALSE(state.last);
  viz::KernelWish wish;
  wish.move = KernelMove::run;
  state = run->go(wish, [] { return false; });
  EXPECT_EQ(state.arrived, "Interrupted");
  state = go(*run, KernelMove::end);
  ASSERT_TRUE(state.last);
  EXPECT_EQ(*state.last, state.step);
}

// --- what is missing -------------------------------------------------------------------------------------------------

TEST(KernelRun, WithoutTheSourceThePtxIsShown) {
  const Kernel kernel("bar.sync 0;", false);
  const auto run = start(kernel.launch(), kGoOn);
  for (const viz::KernelInstruction& instruction : run->code().instructions) EXPECT_EQ(instruction.source, -1);
  EXPECT_TRUE(run->code().sources.front().lines.empty());
  EXPECT_FALSE(run->code().sources.back().lines.empty());
  const viz::KernelState state = go(*run, KernelMove::stay);
  EXPECT_THAT(run->code().sources.back().lines.at(static_cast<std::size_t>(next_of(*run, state).ptx_line) - 1),
              HasSubstr("ld.param.u64"));
}

TEST(KernelRun, ASourceThatIsShorterThanItsLinesIsNotShown) {
  const Kernel kernel;
  std::ofstream(kernel.folder() / "swap.cu") << "one line\n";
  const auto run = start(kernel.launch(), kGoOn);
  for (const viz::KernelInstruction& instruction : run->code().instructions) EXPECT_EQ(instruction.source, -1);
  EXPECT_EQ(go(*run, KernelMove::step).step, 1U);
}

TEST(KernelRun, AFaultyLaunchIsNotStarted) {
  const Kernel kernel;
  viz::KernelLaunch launch = kernel.launch();
  launch.arguments = {"u32[64]", "3"};
  EXPECT_THROW(static_cast<void>(start(launch, kGoOn)), InputError);
  launch = kernel.launch();
  launch.block = "32";  // .reqntid 64
  EXPECT_ANY_THROW(static_cast<void>(start(launch, kGoOn)));
  launch = kernel.launch();
  launch.path += ".missing";
  EXPECT_THROW(static_cast<void>(start(launch, kGoOn)), InputError);
}

}  // namespace
}  // namespace kvscope::apps::viewer_kernel_test
