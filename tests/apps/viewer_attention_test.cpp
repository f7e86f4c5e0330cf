// The attention that the viewer shows, of a scenario's step and of a golden bundle with a candidate: the flow against
// plain loops over the bundle's tensors, the errors against `kvscope verify`'s report and against the bound's formula,
// and the bundle's cache as a run.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include <QtCore/QTemporaryDir>

#include "apps/kvscope-viewer/simulator_backend.h"
#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/golden/bundle/bundle.h"
#include "core/golden/bundle/npz.h"
#include "core/golden/verdict/compare.h"
#include "core/golden/verdict/measures.h"
#include "core/pipeline/run_scenario.h"
#include "core/pipeline/scenario_bundle.h"
#include "core/scenario/requests.h"
#include "core/scenario/scenario_json.h"
#include "viz/playback/run.h"

namespace kvscope::apps::viewer_attention_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const fs::path kGallery = fs::path(KVSCOPE_SOURCE_DIR) / "apps" / "scenarios";

// A golden of one step of the gallery's first scenario, and kernels' outputs over it by plain loops.
class Files {
 public:
  explicit Files(std::int64_t step = 6) : scenario(load_scenario(kGallery / "first_light.json")) {
    requests = make_requests(scenario, kGallery);
    GoldenRun run = run_golden(scenario, state_at(scenario, requests, StepIdx{step}));
    sequences = run.focus.cache.batch;
    golden = scenario_bundle(scenario, run, "test");
    golden::save_bundle(golden_path(), golden);
    page_size = scenario.cache.page_size;
    blocks = golden::as_doubles(golden.tensors.at("blocks"));
    q = golden::as_doubles(golden.tensors.at("q"));
    shape = golden.tensors.at("blocks").shape;  // [block, kv, 1, page_row, head, dim]
    const auto t = golden::values<std::uint32_t>(golden.tensors.at("lookup_table"));
    table.assign(t.begin(), t.end());
    columns = golden.tensors.at("lookup_table").shape[1];
    const auto o = golden::values<std::int64_t>(golden.tensors.at("query_offsets"));
    offsets.assign(o.begin(), o.end());
    const auto k = golden::values<std::int64_t>(golden.tensors.at("key_lengths"));
    keys.assign(k.begin(), k.end());
    scale = golden.manifest.find("conventions")->find("scale")->number();
    query_heads = golden.tensors.at("q").shape[1];
  }

  [[nodiscard]] std::string golden_path() const {
    return (fs::path(dir_.path().toStdString()) / "golden.npz").string();
  }
  [[nodiscard]] std::string put(const std::string& name, const std::vector<float>& o) const {
    golden::Bundle candidate;
    candidate.tensors["o"] = golden::tensor_of<float>(golden.tensors.at("o").shape, o);
    const std::string path = (fs::path(dir_.path().toStdString()) / name).string();
    golden::save_bundle(path, candidate);
    return path;
  }

  // Rewrites the file as the first version of the format, without a checksum of the manifest.
  static void make_version_1(const std::string& path) {
    const golden::Bundle bundle = golden::load_bundle(path);
    json::Object manifest;
    for (const auto& [key, value] : *bundle.manifest.as_object()) {
      if (key != "manifest_crc32") manifest.emplace_back(key, key == "kvscope_bundle" ? json::Value(1) : value);
    }
    write_file_atomically(path, golden::npz_bytes(bundle.tensors, json::Value(std::move(manifest))));
  }

  [[nodiscard]] double stored(int kv, std::size_t b, std::int64_t token, std::int64_t head, std::int64_t dim) const {
    const std::int64_t block =
        table[b * static_cast<std::size_t>(columns) + static_cast<std::size_t>(token / page_size)];
    std::int64_t at = block * shape[1] + kv;
    at = (at * shape[3] + token % page_size) * shape[4] + head;
    return blocks[static_cast<std::size_t>(at * shape[5] + dim)];
  }
  [[nodiscard]] double score(std::size_t b, std::int64_t row, std::int64_t head, std::int64_t key) const {
    const std::int64_t kv_head = head / (query_heads / shape[4]);
    double sum = 0;
    for (std::int64_t d = 0; d < shape[5]; ++d) {
      sum += q[static_cast<std::size_t>((row * query_heads + head) * shape[5] + d)] * stored(0, b, key, kv_head, d);
    }
    return sum * scale;
  }
  // The output of a kernel that reads the table as it is now, every row of the batch.
  [[nodiscard]] std::vector<float> output() const {
    std::vector<float> o;
    for (std::size_t b = 0; b < keys.size(); ++b) {
      const std::int64_t queries = offsets[b + 1] - offsets[b];
      for (std::int64_t query = 0; query < queries; ++query) {
        const std::int64_t seen = keys[b] - queries + query + 1;  // causal
        for (std::int64_t head = 0; head < query_heads; ++head) {
          std::vector<double> sums(static_cast<std::size_t>(shape[5]), 0.0);
          double l = 0;
          for (std::int64_t key = 0; key < seen; ++key) {
            const double p = std::exp(score(b, offsets[b] + query, head, key));
            l += p;
            for (std::size_t d = 0; d < sums.size(); ++d) {
              sums[d] += p * stored(1, b, key, head / (query_heads / shape[4]), static_cast<std::int64_t>(d));
            }
          }
          for (const double x : sums) o.push_back(static_cast<float>(x / l));
        }
      }
    }
    return o;
  }

  Scenario scenario;
  std::vector<Request> requests;
  std::vector<SeqIdx> sequences;
  golden::Bundle golden;
  std::vector<double> blocks, q;
  std::vector<std::int64_t> shape, offsets, keys;
  std::vector<std::uint32_t> table;
  std::int64_t columns = 0, page_size = 0, query_heads = 0;
  double scale = 0;

 private:
  QTemporaryDir dir_;
};

SimulatorBackend backend() {
  return SimulatorBackend(KVSCOPE_VIEWER);
}

std::unique_ptr<viz::Run> open(SimulatorBackend& of, const std::string& path) {
  return viz::Run::open(of.open(path, [](std::int64_t, std::int64_t) { return true; }), "golden.npz");
}

std::string fault_of(const auto& action) {
  try {
    action();
  } catch (const std::exception& error) {
    return fault_lines(error).front();
  }
  return "nothing was thrown";
}

// m, c, l and o of every tile, computed from all keys of the tiles so far and without a running state.
TEST(ViewerAttention, TheFlowIsThatOfPlainLoopsOverTheBundlesTensors) {
  const Files files;
  SimulatorBackend of = backend();
  const auto run = open(of, files.golden_path());
  for (std::size_t b = 0; b < files.keys.size(); ++b) {
    for (std::int64_t head = 0; head < files.query_heads; head += 3) {
      viz::FlowRequest request;
      request.seq = SeqIdx{static_cast<std::int64_t>(b)};
      request.head = HeadIdx{head};
      request.tile_keys = 24;  // tiles end inside pages
      const viz::AttentionFlow flow = of.attend(run->facts(), files.golden_path(), request);
      EXPECT_EQ(flow.request.query, TokIdx{files.keys[b] - 1});
      EXPECT_EQ(flow.kv_head, head / (files.query_heads / files.shape[4]));
      ASSERT_EQ(static_cast<std::int64_t>(flow.tiles.size()), (files.keys[b] + 23) / 24);
      double before = -std::numeric_limits<double>::infinity();
      for (std::size_t n = 0; n < flow.tiles.size(); ++n) {
        const viz::FlowTile& tile = flow.tiles[n];
        const std::int64_t end = std::min<std::int64_t>(files.keys[b], 24 * (static_cast<std::int64_t>(n) + 1));
        EXPECT_EQ(tile.first_key, 24 * static_cast<std::int64_t>(n));
        EXPECT_EQ(tile.last_key, end);
        double m = -std::numeric_limits<double>::infinity(), l = 0, own = 0;
        const std::int64_t row = files.offsets[b + 1] - 1;
        for (std::int64_t key = 0; key < end; ++key) m = std::max(m, files.score(b, row, head, key));
        std::vector<double> o(flow.o.size(), 0.0);
        for (std::int64_t key = 0; key < end; ++key) {
          const double p = std::exp(files.score(b, row, head, key) - m);
          l += p;
          if (key >= tile.first_key) own += p;
          for (std::size_t d = 0; d < o.size(); ++d) {
            o[d] += p * files.stored(1, b, key, flow.kv_head, static_cast<std::int64_t>(d));
          }
        }
        EXPECT_NEAR(tile.largest, m, 1e-5);
        EXPECT_NEAR(tile.rescale, std::exp(before - m), 1e-5);
        EXPECT_NEAR(tile.tile_sum, own, 1e-3);
        EXPECT_NEAR(tile.sum, l, 1e-3);
        for (std::size_t d = 0; d < o.size(); ++d) EXPECT_NEAR(tile.o[d], o[d], 1e-3);
        before = m;
        if (n + 1 < flow.tiles.size()) continue;
        EXPECT_NEAR(flow.lse, m + std::log(l), 1e-5);
        EXPECT_NEAR(flow.golden_lse, m + std::log(l), 1e-12);
        for (std::size_t d = 0; d < o.size(); ++d) {
          EXPECT_NEAR(flow.golden[d], o[d] / l, 1e-12);
          EXPECT_LE(std::abs(flow.o[d] - flow.golden[d]), flow.bound[d]);
        }
      }
    }
  }
}

TEST(ViewerAttention, AScenariosStepHasTheFlowOfItsGolden) {
  const Files files;
  SimulatorBackend of = backend();
  const std::string path = (kGallery / "first_light.json").string();
  const auto run = open(of, path);
  const auto bundle = open(of, files.golden_path());
  for (std::size_t b = 0; b < files.sequences.size(); ++b) {
    viz::FlowRequest request;
    request.seq = files.sequences[b];
    request.head = HeadIdx{1};
    request.tile_keys = 16;
    request.step = StepIdx{6};
    request.layer = LayerIdx{files.scenario.focus.layer};
    const viz::AttentionFlow here = of.attend(run->facts(), path, request);
    request.seq = SeqIdx{static_cast<std::int64_t>(b)};
    const viz::AttentionFlow there = of.attend(bundle->facts(), files.golden_path(), request);
    EXPECT_EQ(here.o, there.o);
    EXPECT_EQ(here.golden, there.golden);
    EXPECT_EQ(here.bound, there.bound);
    EXPECT_EQ(here.tiles.size(), there.tiles.size());
  }
}

// The heat maps' numbers against the golden's values and the summary that `kvscope verify` prints. The bound itself is
// held by tests/core/attention/bounds_test.cpp.
TEST(ViewerAttention, ErrorsAreThoseOfVerify) {
  Files files;
  files.table[2 * static_cast<std::size_t>(files.columns) + 4] =
      4;  // page 4 of sequence 2 from a full block of another
  const std::vector<float> o = files.output();
  const std::string path = files.put("mine.npz", o);
  SimulatorBackend of = backend();
  const auto run = open(of, files.golden_path());
  viz::ErrorsRequest request;
  request.candidate = path;
  const viz::AttentionErrors errors = of.compare(run->facts(), files.golden_path(), request);

  const golden::CompareResult verify = golden::compare(files.golden, golden::load_bundle(path));
  // The error is 0 exactly where the candidate has the golden's value.
  const auto golden_o = golden::values<double>(files.golden.tensors.at("o"));
  ASSERT_EQ(errors.ratio.size(), o.size());
  std::int64_t failing = 0;
  double largest = 0;
  for (std::size_t i = 0; i < o.size(); ++i) {
    const double difference = std::abs(static_cast<double>(o[i]) - golden_o[i]);
    EXPECT_EQ(errors.ratio[i] == 0, difference == 0) << i;
    largest = std::max(largest, static_cast<double>(errors.ratio[i]));
    if (errors.ratio[i] > 1) ++failing;
  }
  EXPECT_FLOAT_EQ(static_cast<float>(largest), static_cast<float>(verify.tensors[0].worst->ratio));
  EXPECT_EQ(errors.failing, failing);
  EXPECT_GT(failing, 0);

  EXPECT_FALSE(errors.passed);
  EXPECT_EQ(errors.policy, verify.policy);
  EXPECT_FLOAT_EQ(errors.at(errors.worst_row, errors.worst_head, errors.worst_dim),
                  static_cast<float>(verify.tensors[0].worst->ratio));
  ASSERT_FALSE(verify.worst_heads.empty());
  for (const golden::HeadSummary& head : verify.worst_heads) {
    const std::int64_t s = viz::sequence_index(errors, SeqIdx{head.sequence});
    EXPECT_FLOAT_EQ(errors.head_worst[static_cast<std::size_t>(s * errors.heads + head.head)],
                    static_cast<float>(head.worst_ratio));
  }
  EXPECT_THAT(errors.cause, HasSubstr("page 4 of sequence 2 was read from block 4"));
  EXPECT_EQ(errors.cause_seq, SeqIdx{2});
  EXPECT_EQ(errors.cause_page, PageIdx{4});
  EXPECT_TRUE(errors.certain);
}

TEST(ViewerAttention, ACorrectCandidateAndTheTiledFlowPass) {
  const Files files;
  SimulatorBackend of = backend();
  const auto run = open(of, files.golden_path());
  for (const std::string& candidate : {std::string(), files.put("mine.npz", files.output())}) {
    viz::ErrorsRequest request;
    request.candidate = candidate;
    const viz::AttentionErrors errors = of.compare(run->facts(), files.golden_path(), request);
    EXPECT_TRUE(errors.passed);
    EXPECT_EQ(errors.failing, 0);
    EXPECT_EQ(errors.of_flow, candidate.empty());
    EXPECT_EQ(errors.cause, "");
  }
}

// The panels of a golden's cache: blocks, tokens and the queries of the step.
TEST(ViewerAttention, AGoldenIsARunWithItsCache) {
  const Files files;
  SimulatorBackend of = backend();
  const auto run = open(of, files.golden_path());
  EXPECT_EQ(run->facts().blocks, files.shape[0] - 1) << "without the null page";
  EXPECT_EQ(run->facts().page_size, files.page_size);
  EXPECT_EQ(run->facts().rows, 2);
  const viz::State before = run->state_at(run->end_of_row(0)), after = run->state_at(run->end_of_row(1));
  for (std::size_t b = 0; b < files.keys.size(); ++b) {
    const auto seq = static_cast<std::int64_t>(b);
    EXPECT_EQ(after.sequences[seq].tokens, files.keys[b]);
    EXPECT_EQ(before.sequences[seq].tokens, files.keys[b] - (files.offsets[b + 1] - files.offsets[b]));
    for (std::int64_t page = 0; page * files.page_size < files.keys[b]; ++page) {
      EXPECT_EQ(after.sequences[seq].pages[page],
                static_cast<std::int32_t>(
                    files.table[b * static_cast<std::size_t>(files.columns) + static_cast<std::size_t>(page)]));
    }
  }
}

// Version 1 had no checksum of the manifest: the file opens, and what is not checked is told for each file.
TEST(ViewerAttention, FilesOfVersion1HaveARemark) {
  const Files files;
  SimulatorBackend of = backend();
  const std::string mine = files.put("mine.npz", files.output());
  const auto run = open(of, files.golden_path());
  viz::ErrorsRequest request;
  request.candidate = mine;
  EXPECT_EQ(run->remarks(), std::vector<std::string>{});
  EXPECT_EQ(of.compare(run->facts(), files.golden_path(), request).remarks, std::vector<std::string>{});
  const std::string remark =
      ": bundle version 1 has no checksum of its manifest, so damage to its conventions is not detected: write the "
      "file again with this version of kvscope";
  files.make_version_1(mine);
  EXPECT_EQ(of.compare(run->facts(), files.golden_path(), request).remarks, std::vector<std::string>{mine + remark});
  files.make_version_1(files.golden_path());
  EXPECT_EQ(open(of, files.golden_path())->remarks(), std::vector<std::string>{files.golden_path() + remark});
}

TEST(ViewerAttention, FaultsNameTheFileAndTheNextStep) {
  const Files files;
  SimulatorBackend of = backend();
  const std::string mine = files.put("mine.npz", files.output());
  EXPECT_THAT(fault_of([&] { static_cast<void>(open(of, mine)); }),
              HasSubstr("golden 'a1': is missing: make the golden with `kvscope golden`"));
  EXPECT_THAT(fault_of([&] { static_cast<void>(open(of, "/nowhere.npz")); }), HasSubstr("/nowhere.npz"));
  const auto run = open(of, files.golden_path());
  viz::FlowRequest request;
  request.seq = SeqIdx{9};
  EXPECT_THAT(fault_of([&] { static_cast<void>(of.attend(run->facts(), files.golden_path(), request)); }),
              HasSubstr("sequence 9 computes no token at this step"));
  request.seq = SeqIdx{0};
  request.query = TokIdx{0};
  EXPECT_THAT(fault_of([&] { static_cast<void>(of.attend(run->facts(), files.golden_path(), request)); }),
              HasSubstr("token 0 of sequence 0 is no query of this step"));
  request.query = TokIdx{-1};
  request.head = HeadIdx{99};
  EXPECT_THAT(fault_of([&] { static_cast<void>(of.attend(run->facts(), files.golden_path(), request)); }),
              HasSubstr("head 99 is outside"));
  viz::ErrorsRequest errors;
  errors.candidate = "/nowhere.npz";
  EXPECT_THAT(fault_of([&] { static_cast<void>(of.compare(run->facts(), files.golden_path(), errors)); }),
              HasSubstr("/nowhere.npz"));
}

}  // namespace
}  // namespace kvscope::apps::viewer_attention_test
