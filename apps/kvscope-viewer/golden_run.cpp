#include "apps/kvscope-viewer/golden_run.h"

#include <algorithm>
#include <map>
#include <vector>

#include "core/golden/golden_bundle.h"

namespace kvscope::apps {
namespace {

// Larger tables are shown without blocks: a person cannot wait for their events.
constexpr std::int64_t kMostEntries = std::int64_t{1} << 22;

struct GoldenCache {
  std::int64_t page_size = 1, blocks = 0;
  std::vector<std::int64_t> cached, keys;         // [batch] tokens before the step, and after it
  std::vector<std::vector<std::int64_t>> tables;  // [batch, page]; empty: no blocks
};

std::int64_t pages_of(std::int64_t tokens, std::int64_t page_size) {
  return (tokens + page_size - 1) / page_size;
}

// Tokens of a page of a sequence that has `tokens`.
std::int64_t tokens_in(std::int64_t tokens, std::int64_t page, std::int64_t page_size) {
  return std::clamp<std::int64_t>(tokens - page * page_size, 0, page_size);
}

// Whether the events of a run can lead to these tables: each block is one page, equally full for all its holders.
bool is_reachable(const GoldenCache& cache) {
  struct Use {
    std::int64_t page, cached, keys;
    bool operator==(const Use&) const = default;
  };
  std::map<std::int64_t, Use> uses;
  for (std::size_t b = 0; b < cache.tables.size(); ++b) {
    for (std::int64_t page = 0; page < static_cast<std::int64_t>(cache.tables[b].size()); ++page) {
      const std::int64_t block = cache.tables[b][static_cast<std::size_t>(page)];
      if (block < 0 || block >= cache.blocks) return false;
      const Use use{page, tokens_in(cache.cached[b], page, cache.page_size),
                    tokens_in(cache.keys[b], page, cache.page_size)};
      if (uses.emplace(block, use).first->second != use) return false;
    }
  }
  return true;
}

GoldenCache cache_of(const AttentionStep& step) {
  const golden::Bundle& golden = step.golden();
  GoldenCache cache;
  const json::Value* page_size = golden.manifest.find("page_size");
  if (page_size != nullptr && page_size->as_i64() != nullptr)
    cache.page_size = std::max<std::int64_t>(1, *page_size->as_i64());
  const auto offsets = golden::values<std::int64_t>(golden.tensors.at("query_offsets"));
  const auto lengths = golden::values<std::int64_t>(golden.tensors.at("key_lengths"));
  std::int64_t entries = 0;
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    cache.keys.push_back(lengths[b]);
    cache.cached.push_back(std::max<std::int64_t>(0, lengths[b] - (offsets[b + 1] - offsets[b])));
    entries += pages_of(lengths[b], cache.page_size);
  }
  const auto found = golden.tensors.find("block_table");
  const bool given = step.given_table() != nullptr;
  if (entries > kMostEntries || (!given && found == golden.tensors.end())) return cache;
  const std::int64_t columns = given ? static_cast<std::int64_t>(step.given_table()->shape(1)) : found->second.shape[1];
  const std::uint32_t* table = given ? step.given_table()->data() : golden::values<std::uint32_t>(found->second).data();
  std::int64_t largest = -1;
  cache.tables.resize(lengths.size());
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    const std::int64_t pages = pages_of(cache.keys[b], cache.page_size);
    for (std::int64_t page = 0; page < pages; ++page) {
      const std::uint32_t entry =
          page < columns ? table[static_cast<std::int64_t>(b) * columns + page] : golden::kUnknownBlock;
      cache.tables[b].push_back(entry == golden::kUnknownBlock ? -1 : std::int64_t{entry});
      largest = std::max(largest, cache.tables[b].back());
    }
  }
  cache.blocks = largest + 1;
  if (const attention::Problem* problem = step.problem()) {
    // The last block of a scenario's pool is the null page, which the viewer adds by itself.
    const bool has_null_page = golden.manifest.find("scenario") != nullptr;
    cache.blocks = std::max(cache.blocks, problem->k.blocks - (has_null_page ? 1 : 0));
  }
  if (!is_reachable(cache)) cache.tables.clear();
  return cache;
}

// Writes the events of one sequence up to `tokens` tokens.
class SequenceWriter {
 public:
  SequenceWriter(const GoldenCache& cache, trace::Recorder& recorder) : cache_(cache), recorder_(recorder) {
    pages_.resize(cache.keys.size());
    tokens_.resize(cache.keys.size());
  }

  void write(std::size_t b, std::int64_t tokens, bool decode) {
    if (cache_.tables.empty()) return;
    const SeqIdx seq{static_cast<std::int64_t>(b)};
    for (std::int64_t page = tokens_[b] / cache_.page_size; page < pages_of(tokens, cache_.page_size); ++page) {
      const BlockIdx block{cache_.tables[b][static_cast<std::size_t>(page)]};
      if (page >= pages_[b]) {
        std::int64_t& holders = holders_[block.value];
        if (++holders == 1) {
          recorder_.record(trace::BlockAllocated{block, seq, PageIdx{page}});
        } else {
          recorder_.record(trace::BlockShared{block, seq, PageIdx{page}, holders});
          tokens_[b] = std::max(tokens_[b], page * cache_.page_size + filled_[block.value]);
        }
        ++pages_[b];
      }
      const std::int64_t end = std::min(tokens, (page + 1) * cache_.page_size);
      if (tokens_[b] >= end) continue;
      const std::int64_t slot = tokens_[b] % cache_.page_size;
      recorder_.record(trace::TokensWritten{seq, TokIdx{tokens_[b]}, end - tokens_[b], block, slot, decode});
      tokens_[b] = end;
      filled_[block.value] = std::max(filled_[block.value], end - page * cache_.page_size);
    }
  }

  [[nodiscard]] std::int64_t used_blocks() const { return static_cast<std::int64_t>(holders_.size()); }
  [[nodiscard]] std::int64_t slots_filled() const {
    std::int64_t sum = 0;
    for (const auto& [block, filled] : filled_) sum += filled;
    return sum;
  }

 private:
  const GoldenCache& cache_;
  trace::Recorder& recorder_;
  std::vector<std::int64_t> pages_, tokens_;               // [batch] so far
  std::map<std::int64_t, std::int64_t> holders_, filled_;  // by block
};

}  // namespace

std::unique_ptr<viz::EventSource> golden_run(const AttentionStep& step) {
  const GoldenCache cache = cache_of(step);
  viz::TapeRecorder recorder(cache.tables.empty() ? trace::Detail::steps : trace::Detail::full);
  SequenceWriter writer(cache, recorder);
  const std::size_t batch = cache.keys.size();
  for (std::size_t b = 0; b < batch; ++b) {
    const SeqIdx seq{static_cast<std::int64_t>(b)};
    recorder.record(trace::RequestArrived{seq, cache.keys[b], 0});
    recorder.record(trace::RequestAdmitted{seq, 0});
    writer.write(b, cache.cached[b], false);
  }
  trace::StepEnded ended;
  recorder.record(trace::StepBegan{StepIdx{0}, 0});
  for (std::size_t b = 0; b < batch; ++b) {
    const std::int64_t queries = cache.keys[b] - cache.cached[b];
    writer.write(b, cache.keys[b], queries == 1 && cache.cached[b] > 0);
    (queries == 1 && cache.cached[b] > 0 ? ended.decode_tokens : ended.prefill_tokens) += queries;
  }
  ended.running = static_cast<std::int64_t>(batch);
  ended.used_blocks = writer.used_blocks();
  ended.free_blocks = std::max<std::int64_t>(0, cache.blocks - ended.used_blocks);
  ended.slots_filled = writer.slots_filled();
  recorder.record(ended);
  return viz::from_tape(recorder.take(), {{"producer", "kvscope-viewer"}}, recorder.detail(), step.remarks());
}

}  // namespace kvscope::apps
