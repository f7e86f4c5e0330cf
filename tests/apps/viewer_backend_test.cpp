// The viewer's backend, tested without a window: runs in a separate process that may end in any way,
// explanations at any step, places of bytes, the gallery.
#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>

#include <QtCore/QByteArray>
#include <QtCore/QTemporaryDir>

#include "apps/kvscope-viewer/child_simulation.h"
#include "apps/kvscope-viewer/gallery.h"
#include "apps/kvscope-viewer/gallery_picture.h"
#include "apps/kvscope-viewer/simulate.h"
#include "apps/kvscope-viewer/simulator_backend.h"
#include "apps/kvscope-viewer/step_engine.h"
#include "core/base/errors.h"
#include "core/base/json.h"
#include "core/scenario/requests.h"
#include "core/scenario/scenario_json.h"
#include "core/staging/explain.h"
#include "core/staging/focus.h"
#include "core/trace/trace_writer.h"
#include "viz/playback/tile.h"
#include "viz/playback/tile_fold.h"
#include "viz/playback/tile_request.h"

namespace kvscope::apps::viewer_backend_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

const fs::path kGallery = fs::path(KVSCOPE_SOURCE_DIR) / "apps" / "scenarios";

class Folder {
 public:
  [[nodiscard]] fs::path path() const { return dir_.path().toStdString(); }
  fs::path put(const std::string& name, const std::string& text) const {
    std::ofstream(path() / name) << text;
    return path() / name;
  }
  // A program that does what `text` says in place of simulating: $2 is the scenario, $4 where the trace goes.
  [[nodiscard]] std::string program(const std::string& text) const {
    const fs::path file = put("program.sh", "#!/bin/sh\n" + text + "\n");
    fs::permissions(file, fs::perms::owner_all);
    return file.string();
  }

 private:
  QTemporaryDir dir_;
};

std::string gallery(const std::string& name) {
  return (kGallery / (name + ".json")).string();
}

std::vector<std::string> faults_of(const auto& action) {
  try {
    action();
  } catch (const std::exception& error) {
    return fault_lines(error);
  }
  return {"nothing was thrown"};
}

std::vector<trace::Event> all_events(viz::EventSource& source) {
  std::vector<trace::Event> all;
  for (std::int64_t row = 0; row < source.rows(); ++row) {
    for (const trace::Event& event : source.events_of_row(row)) all.push_back(event);
  }
  return all;
}

// The folder that temporary files are made in for as long as this lives: whatever is left there is a leftover.
class TemporaryPlace {
 public:
  TemporaryPlace() { qputenv("TMPDIR", folder_.path().c_str()); }
  ~TemporaryPlace() { before_.isNull() ? qunsetenv("TMPDIR") : qputenv("TMPDIR", before_); }
  [[nodiscard]] bool empty() const { return fs::is_empty(folder_.path()); }

 private:
  QByteArray before_ = qgetenv("TMPDIR");
  Folder folder_;
};

// --- a separate process ----------------------------------------------------------------------------------------------

TEST(ChildSimulation, TellsTheSameEventsAsARunInThisProcessAndSaysHowFarItIs) {
  for (const char* name : {"first_light", "preemption", "mla", "continuous"}) {
    const auto here = simulate_in_memory(gallery(name), {});
    std::int64_t asked = 0;
    const auto child = simulate_in_child(KVSCOPE_VIEWER, gallery(name), [&](std::int64_t done, std::int64_t all) {
      EXPECT_GE(done, 0);
      EXPECT_LE(done, all);
      return ++asked > 0;
    });
    EXPECT_GT(asked, 0);
    EXPECT_EQ(child->meta().at("scenario"), here->meta().at("scenario"));
    EXPECT_EQ(child->detail(), trace::Detail::full);
    const std::vector<trace::Event> a = all_events(*here), b = all_events(*child);
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i)
      EXPECT_EQ(trace::to_text(a[i]), trace::to_text(b[i])) << name << ' ' << i;
  }
}

TEST(ChildSimulation, ItsTraceIsReadFromAFileThatNobodyHasToRemove) {
  const TemporaryPlace place;
  const auto source = simulate_in_child(KVSCOPE_VIEWER, gallery("first_light"), {});
  EXPECT_TRUE(place.empty()) << "a crash would leave it behind";
  for (std::int64_t row = 0; row < source->rows(); ++row) {
    EXPECT_EQ(static_cast<std::int64_t>(source->events_of_row(row).size()), source->span(row).events);
  }
}

// Whatever ends the child is words for the window. Nothing here ends the test's own process: that is the test.
TEST(ChildSimulation, ASignalIsNamedWithWhatWasSaidLastAndWhatToDo) {
  const Folder folder;
  const auto ended_by = [&](const std::string& script) {
    return faults_of([&] { static_cast<void>(simulate_in_child(folder.program(script), "s.json", {})); });
  };
  EXPECT_THAT(ended_by("kill -SEGV $$"),
              ElementsAre("s.json: the simulation ended with signal 11 (segmentation fault): nothing that was open is "
                          "lost; this is a fault of kvscope, please report it with the scenario"));
  EXPECT_THAT(ended_by("echo 'first' >&2; echo 'kvscope: internal error at a.cpp:7: x is false.' >&2; kill -ABRT $$"),
              ElementsAre("s.json: the simulation ended with signal 6 (aborted), kvscope: internal error at a.cpp:7: x "
                          "is false.: nothing that was open is lost; this is a fault of kvscope, please report it with "
                          "the scenario"));
  EXPECT_THAT(
      ended_by("kill -KILL $$"),
      ElementsAre("s.json: the simulation ended with signal 9 (killed): nothing that was open is lost; if memory "
                  "ran out, ask for fewer requests or blocks"));
}

TEST(ChildSimulation, ExitCodesAndProgramsThatAreNotThereAreWordsToo) {
  const Folder folder;
  EXPECT_THAT(faults_of([&] { static_cast<void>(simulate_in_child(folder.program("exit 3"), "s.json", {})); }),
              ElementsAre("s.json: the simulation ended without a word, exit code 3"));
  EXPECT_THAT(faults_of([&] {
                static_cast<void>(simulate_in_child((folder.path() / "no such program").string(), "s.json", {}));
              }),
              ElementsAre(HasSubstr("s.json: the simulation does not start: ")));
  // It says that all is well, and wrote no trace.
  EXPECT_THAT(faults_of([&] { static_cast<void>(simulate_in_child(folder.program("exit 0"), "s.json", {})); }),
              ElementsAre(HasSubstr("run.kvt: cannot be read: No such file or directory")));
}

TEST(ChildSimulation, AScenariosFaultsComeBackWordForWord) {
  const Folder folder;
  const std::string path =
      folder.put("bad.json", R"({"kvscope_scenario": 1, "model": "tiny", "cache": {"page_size": 0, "bloks": 3}})")
          .string();
  const std::vector<std::string> expected = faults_of([&] { static_cast<void>(load_scenario(path)); });
  ASSERT_GE(expected.size(), 2u);
  EXPECT_EQ(faults_of([&] { static_cast<void>(simulate_in_child(KVSCOPE_VIEWER, path, {})); }), expected);
}

TEST(ChildSimulation, AChangedScenarioRunsInPlaceOfItsFile) {
  const Folder folder;
  const std::string path = folder.put("from.json", "not read").string();
  folder.put("requests.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00.000000,40,3\n");
  const auto run = [&](const std::string& members) {
    return simulate_in_child(KVSCOPE_VIEWER, path, {}, R"({"kvscope_scenario": 1, )" + members + "}");
  };
  const auto source = run(R"("cache": {"page_size": 8}, "requests": {"file": {"path": "requests.csv"}})");
  const Scenario scenario = parse_scenario(source->meta().at("scenario"), "meta");
  EXPECT_EQ(scenario.cache.page_size, 8);
  EXPECT_GT(source->rows(), 3) << "the requests are those of the file beside the scenario";
  EXPECT_THAT(faults_of([&] { static_cast<void>(run(R"("cache": {"page_size": 0})")); }),
              ElementsAre(HasSubstr("from.json: $.cache.page_size: 0 is outside [1, 65536]"),
                          HasSubstr("from.json: $.requests: missing")));
  // More than a pipe holds.
  const std::string long_name(200'000, 'x');
  EXPECT_THAT(faults_of([&] { static_cast<void>(run(R"("name": ")" + long_name + "\"")); }),
              ElementsAre(HasSubstr("$.name: 200000 bytes are more than the 65536 allowed"), HasSubstr("$.requests")));
}

TEST(ChildSimulation, CancelEndsItAtOnceAndTakesItsFilesAlong) {
  const Folder folder;
  const TemporaryPlace place;
  const std::string program = folder.program("echo $$ > " + (folder.path() / "pid").string() + "; exec sleep 600");
  std::int64_t asked = 0;
  EXPECT_THROW(static_cast<void>(simulate_in_child(
                   program, "s.json",
                   [&](std::int64_t, std::int64_t) { return ++asked < 5 || !fs::exists(folder.path() / "pid"); })),
               viz::Cancelled);
  int pid = 0;
  std::ifstream(folder.path() / "pid") >> pid;
  ASSERT_GT(pid, 0);
  EXPECT_NE(::kill(pid, 0), 0) << "it still runs";
  EXPECT_TRUE(place.empty());
}

TEST(SimulateInMemory, StopsWhenItIsTold) {
  EXPECT_THROW(static_cast<void>(simulate_in_memory(gallery("first_light"),
                                                    [](std::int64_t done, std::int64_t) { return done < 2; })),
               viz::Cancelled);
}

// --- by content ------------------------------------------------------------------------------------------------------

TEST(KindOf, ContentDecidesAndTheNameOnlyWhereThereIsNone) {
  const Folder folder;
  const std::string database(std::string("SQLite format 3\0", 16) + std::string(84, 'x'));
  EXPECT_EQ(kind_of(folder.put("a.json", database).string()), FileKind::trace);
  EXPECT_EQ(kind_of(folder.put("b.kvt", " \n\t{\"kvscope_scenario\": 1}").string()), FileKind::scenario);
  EXPECT_EQ(kind_of(folder.put("c.kvt", "").string()), FileKind::trace);
  EXPECT_EQ(kind_of(folder.put("d.json", "").string()), FileKind::scenario);
  EXPECT_EQ(kind_of(folder.put("e.kvt", "rubbish").string()), FileKind::trace);
  EXPECT_EQ(kind_of((folder.path() / "missing.kvt").string()), FileKind::trace);
  EXPECT_EQ(kind_of((folder.path() / "missing").string()), FileKind::scenario);
  EXPECT_EQ(kind_of(folder.path().string()), FileKind::scenario);
}

TEST(Backend, OpensATraceThatIsCalledLikeAScenario) {
  const Folder folder;
  const std::string path = (folder.path() / "run.json").string();
  ASSERT_EQ(simulate_to_file(gallery("first_light"), path), 0);
  SimulatorBackend backend{fs::path(KVSCOPE_VIEWER)};
  EXPECT_EQ(backend.open(path, {})->events(), simulate_in_memory(gallery("first_light"), {})->events());
}

// --- explanations ----------------------------------------------------------------------------------------------------

viz::Facts facts_of(const Scenario& scenario, std::size_t requests) {
  viz::Facts facts;
  facts.scenario = scenario;
  facts.sequences = static_cast<std::int64_t>(requests);
  return facts;
}

// The file is the same, and so is the step: the golden of the changed scenario is another.
TEST(Backend, TheAttentionOfAChangedScenarioIsItsOwn) {
  const std::string path = gallery("first_light");
  Scenario scenario = load_scenario(path);
  const std::size_t requests = make_requests(scenario, kGallery).size();
  SimulatorBackend backend{fs::path(KVSCOPE_VIEWER)};
  viz::FlowRequest request;
  request.seq = SeqIdx{0};
  request.step = StepIdx{6};
  const std::vector<double> before = backend.attend(facts_of(scenario, requests), path, request).golden;
  scenario.attention.scale = 0.01;
  const std::vector<double> after = backend.attend(facts_of(scenario, requests), path, request).golden;
  EXPECT_EQ(before.size(), after.size());
  EXPECT_NE(before, after);
  EXPECT_EQ(SimulatorBackend{fs::path(KVSCOPE_VIEWER)}.attend(facts_of(scenario, requests), path, request).golden,
            after);
}

// Forward, backward, the same step, and past the end: the kept engine always agrees with a fresh one.
RC_GTEST_PROP(StepEngine, IsWhereAFreshEngineWouldBeAfterAnyWalk, (std::vector<std::uint8_t> walk)) {
  static const Scenario kScenario = load_scenario(gallery("preemption"));
  static const std::vector<Request> kRequests = make_requests(kScenario, kGallery);
  StepEngine engine(kScenario, kRequests);
  for (const std::uint8_t stop : walk) {
    const StepIdx step{stop % 100 - 1};
    const std::vector<std::string> here = faults_of([&] { static_cast<void>(engine.at(step)); });
    if (step.value < 0) {
      RC_ASSERT(here.front() == "step -1 is before the first: nothing is stored yet, go to step 0 or later");
      continue;
    }
    const std::vector<std::string> fresh = faults_of([&] { static_cast<void>(state_at(kScenario, kRequests, step)); });
    RC_ASSERT(here == fresh);
    if (here.front() == "nothing was thrown") RC_ASSERT(engine.at(step) == state_at(kScenario, kRequests, step).cache);
  }
}

TEST(Backend, ExplainsAsTheCommandLineDoesAndFindsTheByteAgain) {
  const std::string path = gallery("first_light");
  const Scenario scenario = load_scenario(path);
  const std::vector<Request> requests = make_requests(scenario, kGallery);
  SimulatorBackend backend{fs::path(KVSCOPE_VIEWER)};
  const viz::Facts facts = facts_of(scenario, requests.size());
  for (const std::int64_t step : {6, 9, 3, 3, -1, 20}) {
    trace::Question question;
    question.seq = SeqIdx{step == 20 ? 3 : 0};
    question.token = TokIdx{70};
    question.layer = LayerIdx{1};
    question.kv = KOrV::v;
    question.dim = DimIdx{3};
    question.step = StepIdx{step};
    const trace::Explanation found = backend.explain(facts, path, question);
    EXPECT_EQ(to_text(found), to_text(explain(scenario, requests, question)));
    const auto byte = std::ranges::find(found.links, "byte", &trace::Link::name);
    ASSERT_NE(byte, found.links.end());
    if (step < 0) continue;
    const trace::Question back = backend.locate(facts, path, std::stoll(byte->result), question.step);
    EXPECT_EQ(back.token, question.token);
    EXPECT_EQ(back.layer, question.layer);
    EXPECT_EQ(back.dim, question.dim);
    EXPECT_EQ(back.kv, question.kv);
  }
  EXPECT_THAT(faults_of([&] { static_cast<void>(backend.locate(facts, path, -5, StepIdx{3})); }),
              ElementsAre(HasSubstr("byte -5 is outside [0, ")));
}

// What the viewer draws and what `explain` prints of the same token: the row, the box, the shared byte and the register
// must be the same. explain computes each place by a formula; stage() records copies and reads.
TEST(Backend, StagesTheTileThatExplainDescribesForEachToken) {
  const std::string path = gallery("first_light");
  const Scenario scenario = load_scenario(path);
  const std::vector<Request> requests = make_requests(scenario, kGallery);
  SimulatorBackend backend{fs::path(KVSCOPE_VIEWER)};
  const viz::Facts facts = facts_of(scenario, requests.size());
  const auto number_after = [](const std::string& text, const std::string& words) {
    const std::size_t at = text.find(words);
    return at == std::string::npos ? -1 : std::stoll(text.substr(at + words.size()));
  };
  int compared = 0;  // (sequence, token, step) below
  constexpr std::array<std::array<std::int64_t, 3>, 7> kPlaces{
      {{0, 3, 1}, {0, 70, 6}, {1, 40, 4}, {2, 83, 7}, {3, 64, 6}, {3, 83, 24}, {4, 17, 9}}};
  for (const auto& [seq, token, step] : kPlaces) {
    for (const KOrV kv : {KOrV::k, KOrV::v}) {
      viz::TileRequest request;
      request.seq = SeqIdx{seq};
      request.token = TokIdx{token};
      request.kv = kv;
      request.layer = LayerIdx{token % 2};
      request.head = HeadIdx{seq % 2};
      request.step = StepIdx{step};
      const viz::Tile tile = viz::fold_tile(backend.stage(facts, path, request));
      EXPECT_EQ(tile.opened.first_token.value, token / scenario.tile.BN * scenario.tile.BN);
      const auto row = tile.row_of(request.seq, request.token);
      ASSERT_TRUE(row);
      for (const std::int64_t dim : {0, 5, 28, 63}) {
        SCOPED_TRACE(testing::Message() << "sequence " << seq << " token " << token << " dim " << dim << " V "
                                        << (kv == KOrV::v));
        const trace::Question question{request.seq, request.token, request.layer, request.head, DimIdx{dim},
                                       kv,          request.step};
        const trace::Explanation chain = explain(scenario, requests, question);
        const auto link = [&](std::string_view name) {
          const auto found = std::ranges::find(chain.links, name, &trace::Link::name);
          return found == chain.links.end() ? trace::Link{} : *found;
        };
        const auto chunk = tile.chunk_of({*row, dim});
        ASSERT_TRUE(chunk);
        const viz::TileChunk& stored = tile.chunks[static_cast<std::size_t>(*chunk)];
        const std::int64_t inside = (dim - stored.column) * 2;
        EXPECT_EQ(stored.pool + inside, std::stoll(link("byte").result));
        EXPECT_EQ(stored.shared + inside, number_after(link("swizzle").result, "shared byte "));
        const viz::TileCopy& box = tile.copies[static_cast<std::size_t>(stored.copy)];
        EXPECT_THAT(link("TMA box").result, HasSubstr(std::to_string(box.row) + ")"));
        const std::string reg = link("register").result;
        const auto fills = tile.fills_of({*row, dim});
        ASSERT_FALSE(fills.empty());
        const viz::TileFill& fill = tile.fills[static_cast<std::size_t>(fills.front())];
        EXPECT_EQ(fill.reg.lane, number_after(reg, "lane "));
        EXPECT_EQ(fill.reg.index, number_after(reg, "register "));
        const std::int64_t element = fill.down ? *row - fill.row : dim - fill.column;
        EXPECT_EQ(fill.bit + 16 * element, number_after(reg, "bits "));
        ++compared;
      }
    }
  }
  EXPECT_EQ(compared, 7 * 2 * 4);
}

TEST(Backend, StageRejectsWhatTheStepDoesNotHave) {
  const std::string path = gallery("first_light");
  const Scenario scenario = load_scenario(path);
  SimulatorBackend backend{fs::path(KVSCOPE_VIEWER)};
  const viz::Facts facts = facts_of(scenario, make_requests(scenario, kGallery).size());
  const auto staged = [&](const char* text, std::int64_t step) {
    viz::TileRequest request = viz::parse_tile_request(text);
    request.step = StepIdx{step};
    return faults_of([&] { static_cast<void>(backend.stage(facts, path, request)); });
  };
  EXPECT_THAT(staged("seq 3 token 70 k tma", 24), ElementsAre("nothing was thrown"));
  EXPECT_THAT(staged("seq 0 token 70 k tma", 24), ElementsAre(HasSubstr("sequence 0")));
  EXPECT_THAT(staged("seq 3 token 96 k tma", 24), ElementsAre(HasSubstr("tile 3")));
  EXPECT_THAT(staged("seq 3 token 70 k layer 2 tma", 24), ElementsAre(HasSubstr("layer 2")));
  EXPECT_THAT(staged("seq 3 token 70 k head 2 tma", 24), ElementsAre(HasSubstr("head 2")));
  EXPECT_THAT(staged("seq 3 token 70 k dim 64 tma", 24), ElementsAre(HasSubstr("dim 64")));
  EXPECT_THAT(staged("seq 3 token 70 k lds", 24), ElementsAre(HasSubstr("do not divide a page of 16")));
}

TEST(Backend, SaysWhyATraceCannotBeExplained) {
  SimulatorBackend backend{fs::path(KVSCOPE_VIEWER)};
  const trace::Question question{SeqIdx{0}, TokIdx{0}, LayerIdx{0}, HeadIdx{0}, DimIdx{0}, KOrV::k, StepIdx{0}};
  const auto explained = [&](const viz::Facts& facts, const std::string& path) {
    return faults_of([&] { static_cast<void>(backend.explain(facts, path, question)); });
  };
  EXPECT_THAT(explained(viz::Facts{}, "a.kvt"),
              ElementsAre("a.kvt: contains no scenario, so the head size is unknown: record it with 'kvscope "
                          "run --trace full', or put \"scenario\" into its meta"));
  EXPECT_THAT(
      explained(facts_of(load_scenario(gallery("first_light")), 7), "a.kvt"),
      ElementsAre("a.kvt: was recorded with 7 requests, and its scenario has 5: an address can only be explained "
                  "with the requests it came from; write their file into $.requests.file and record it again"));
}

// The file of requests is looked for beside what was opened, said when it is missing, and read again when it has
// changed.
TEST(Backend, TakesRequestsFromBesideTheTraceAndReadsThemAgainWhenTheyChange) {
  const Folder folder;
  Scenario scenario = load_scenario(gallery("first_light"));
  scenario.requests = {};
  scenario.requests.file = RequestFile{"traffic.csv", 0, 1.0};
  const std::string path = (folder.path() / "run.kvt").string();
  const viz::Facts facts = facts_of(scenario, 1);
  const trace::Question question{SeqIdx{0}, TokIdx{20}, LayerIdx{0}, HeadIdx{0}, DimIdx{0}, KOrV::k, StepIdx{0}};
  SimulatorBackend backend{fs::path(KVSCOPE_VIEWER)};
  const auto explained = [&] { return faults_of([&] { static_cast<void>(backend.explain(facts, path, question)); }); };
  EXPECT_THAT(explained(),
              ElementsAre((folder.path() / "traffic.csv").string() + ": cannot be read: the scenario of '" + path +
                          "' takes its requests from it: put a copy there, then ask again"));
  const std::string header = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
  const fs::path file = folder.put("traffic.csv", header + "2023-11-16 18:17:03.9799600,30,2\n");
  EXPECT_THAT(explained(), ElementsAre("nothing was thrown"));
  folder.put("traffic.csv", header + "2023-11-16 18:17:03.9799600,10,2\n");
  fs::last_write_time(file, fs::file_time_type::clock::now() + std::chrono::seconds(5));
  EXPECT_THAT(explained(), ElementsAre(HasSubstr("sequence 0: token 20 is outside [0, 12)")));
}

// --- gallery ---------------------------------------------------------------------------------------------------------

TEST(Gallery, IsFoundFromTheBuildTreeAndFromAnInstall) {
  EXPECT_EQ(gallery_folder(fs::path(KVSCOPE_VIEWER).parent_path()), kGallery);
  const Folder folder;
  fs::create_directories(folder.path() / "bin");
  EXPECT_EQ(gallery_folder("/nowhere/bin"), std::nullopt);
  fs::create_directories(folder.path() / "share" / "kvscope" / "scenarios");
  EXPECT_EQ(gallery_folder(folder.path() / "bin"), folder.path() / "share" / "kvscope" / "scenarios");
}

TEST(Gallery, ListsItsScenariosInTheirOrderThenTheOthersAndShowsWhatCannotBeRead) {
  const Folder folder;
  const std::string good = R"({"kvscope_scenario": 1, "name": "NAME", "description": "look", "model": "tiny",
                               "cache": {"page_size": 4, "blocks": 8},
                               "requests": {"list": [{"prompt_tokens": 5, "generate_tokens": 3}]}, "tile": {"BN": 4}})";
  for (const char* name : {"a", "b", "c", "z"}) {
    std::string text = good;
    text.replace(text.find("NAME"), 4, name);
    folder.put(std::string(name) + ".json", text);
  }
  folder.put("bad.json", "{");
  folder.put("gallery.txt", "# order\nz\nb\nmissing\n");
  std::vector<std::string> names;
  for (const viz::GalleryEntry& entry : gallery_of(folder.path())) names.push_back(entry.name);
  EXPECT_THAT(names, ElementsAre("z", "b", "a", "bad", "c"));
  EXPECT_THAT(gallery_of(folder.path())[3].description, HasSubstr("bad.json: "));
  EXPECT_EQ(gallery_of(folder.path())[0].description, "look");
}

TEST(Gallery, BeginsWithFirstLight) {
  SimulatorBackend backend{fs::path(KVSCOPE_VIEWER)};
  const viz::Gallery shown = backend.gallery();
  const std::vector<viz::GalleryEntry>& entries = shown.entries;
  EXPECT_EQ(shown.why_empty, "");
  ASSERT_GE(entries.size(), 11u);
  EXPECT_EQ(entries[0].path, gallery("first_light"));
  for (const viz::GalleryEntry& entry : entries) EXPECT_GT(entry.description.size(), 100u) << entry.path;
}

TEST(Gallery, AnEmptyOneNamesTheFolderThatWasSearched) {
  const Folder folder;
  SimulatorBackend nowhere{folder.path() / "bin" / "kvscope-viewer"};
  EXPECT_TRUE(nowhere.gallery().entries.empty());
  EXPECT_THAT(nowhere.gallery().why_empty,
              HasSubstr("neither " + (folder.path() / "share" / "kvscope" / "scenarios").string() + " nor "));
  fs::create_directories(folder.path() / "share" / "kvscope" / "scenarios");
  EXPECT_THAT(nowhere.gallery().why_empty, HasSubstr("scenarios has no scenarios: it has no .json file"));
}

TEST(Gallery, ItsDescriptionsHaveNoLinks) {
  const Folder folder;
  folder.put("a.json", R"({"kvscope_scenario": 1, "name": "a", "description": "See [block 2](step=1, select=block 2).",
                           "requests": {"list": [{"prompt_tokens": 5}]}})");
  EXPECT_EQ(gallery_of(folder.path())[0].description, "See block 2.");
}

// --- pictures of the gallery -----------------------------------------------------------------------------------------

TEST(GalleryPicture, ShowsWhatTheFirstLinkOfTheNotesOpens) {
  const Folder folder;
  const auto options_of = [&](const std::string& description) {
    std::string text =
        R"({"kvscope_scenario": 1, "description": "WORDS", "requests": {"list": [{"prompt_tokens": 5}]}})";
    return gallery_picture_options(folder.put("s.json", text.replace(text.find("WORDS"), 5, description)).string())
        .join(QLatin1Char('|'))
        .toStdString();
  };
  EXPECT_EQ(options_of("Step 3: no link."), "");
  EXPECT_EQ(options_of("[a](step=1, select=block 2) [b](step=4)"), "--step|1|--select|block 2");
  EXPECT_EQ(options_of("[a](view=tile, step=8, tile=seq 0 k tma, event=9)"),
            "--step|8|--view|tile|--tile|seq 0 k tma|--tile-event|9");
}

TEST(GalleryPicture, IsPaintedOnceForEachThemeAndKept) {
  const Folder folder;
  const fs::path cache = folder.path() / "cache";
  SimulatorBackend backend{fs::path(KVSCOPE_VIEWER), cache};
  const auto picture = [&](viz::ThemeKind theme) { return backend.picture(gallery("first_light"), theme, {}); };
  const QImage dark = picture(viz::ThemeKind::dark), light = picture(viz::ThemeKind::light);
  EXPECT_EQ(dark.size(), kGalleryPicture);
  EXPECT_EQ(light.size(), kGalleryPicture);
  EXPECT_LT(dark.pixelColor(2, 2).lightness(), 80);
  EXPECT_GT(light.pixelColor(2, 2).lightness(), 180);
  EXPECT_EQ(std::distance(fs::directory_iterator(cache), fs::directory_iterator()), 2);
  // A kept one is read, not painted: the file is replaced by another picture to see it.
  QImage other(kGalleryPicture, QImage::Format_RGB32);
  other.fill(0xff123456);
  for (const auto& file : fs::directory_iterator(cache)) {
    ASSERT_TRUE(other.save(QString::fromStdString(file.path().string()), "PNG"));
  }
  EXPECT_EQ(picture(viz::ThemeKind::dark).pixel(5, 5), 0xff123456U);
}

TEST(GalleryPicture, IsNullForWhatCannotBeDrawnTakesTooLongOrIsStopped) {
  const Folder folder;
  SimulatorBackend backend{fs::path(KVSCOPE_VIEWER), folder.path() / "cache"};
  EXPECT_TRUE(backend.picture(folder.put("bad.json", "{").string(), viz::ThemeKind::dark, {}).isNull());
  EXPECT_TRUE(backend.picture(gallery("real_traffic_like"), viz::ThemeKind::dark, {}).isNull());
  EXPECT_TRUE(backend.picture(gallery("first_light"), viz::ThemeKind::dark, [] { return false; }).isNull());
  EXPECT_FALSE(fs::exists(folder.path() / "cache")) << "nothing is kept";
}

}  // namespace
}  // namespace kvscope::apps::viewer_backend_test
