// A scenario, the input of a simulation, as plain data: a model's geometry, a cache, requests, a scheduler, and the
// attention to compute. A scenario is read from JSON (scenario_json.h), checked as a whole (checks.h), and passed by
// value from stage to stage. Every default value is in this file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/index.h"
#include "core/layout/swizzle.h"

namespace kvscope {

// --- the model -------------------------------------------------------------------------------------------------------

struct ModelGeometry {
  std::string name = "tiny";  // a preset's name, or free text
  std::int64_t layers = 2;
  std::int64_t query_heads = 4;
  std::int64_t kv_heads = 2;    // 1 for MLA
  std::int64_t head_size = 8;   // D: elements of one row of one head. MLA: latent + rope (576 = 512 + 64)
  bool is_mla = false;          // one slot serves as K and V
  std::int64_t value_size = 8;  // elements of a head that are V: head_size, or the latent part for MLA (512)
  friend bool operator==(const ModelGeometry&, const ModelGeometry&) = default;
};

// --- the cache -------------------------------------------------------------------------------------------------------

enum class CacheKind : std::uint8_t { paged, continuous };

// How the scale of a granule is computed from its largest magnitude, amax. Producers of a cache differ: two of them may
// write the same token as different FP8 bytes.
enum class Quantizer : std::uint8_t {
  amax,          // amax / largest finite: the whole range of the type is used
  power_of_two,  // the smallest power of two that is at least as large: dividing by it is exact
};

[[nodiscard]] constexpr std::string_view quantizer_name(Quantizer quantizer) {
  return quantizer == Quantizer::amax ? "amax" : "power_of_two";
}

// The rule in one line, for readers of quantized values.
[[nodiscard]] constexpr std::string_view quantizer_rule(Quantizer quantizer) {
  return quantizer == Quantizer::amax
             ? "scale = amax / largest finite, one for each granule; elements saturate"
             : "scale = 2^ceil(log2(amax / largest finite)), one for each granule; elements saturate";
}

struct Quantization {
  DType scale_dtype = DType::f32;
  std::int64_t granularity = 0;  // elements of a head that share one scale
  Quantizer quantizer = Quantizer::amax;
  friend bool operator==(const Quantization&, const Quantization&) = default;
};

struct CacheConfig {
  CacheKind kind = CacheKind::paged;
  std::int64_t page_size = 16;  // [tokens]; paged only
  std::int64_t blocks = 64;     // N real blocks; the pool has one more, the null page. Continuous: sequences at once
  std::int64_t max_tokens = 0;  // continuous: tokens a sequence may reach (S). Paged: 0 = as many as the pool holds
  DType dtype = DType::f32;
  std::optional<Quantization> quantization;
  bool prefix_sharing = true;  // paged only
  friend bool operator==(const CacheConfig&, const CacheConfig&) = default;
};

// --- requests --------------------------------------------------------------------------------------------------------

// `length` tokens of the text `content`. Two tokens are equal exactly if content and position in the content are equal,
// so equal prefixes are written as equal spans: {system prompt, 64} {question 7, 30}.
struct ContentSpan {
  std::uint64_t content = 0;  // a scenario's own texts are 0 .. kLastListedContent
  std::int64_t length = 0;    // [tokens]
  friend bool operator==(const ContentSpan&, const ContentSpan&) = default;
};

// The ranges of content numbers: a quarter of all 64-bit numbers for each source, so that a listed request never shares
// a prefix with a generated or an imported one by accident. The last quarter is unused.
inline constexpr std::uint64_t kGeneratedContent = std::uint64_t{1} << 62;
inline constexpr std::uint64_t kImportedContent = std::uint64_t{2} << 62;
inline constexpr std::uint64_t kLastListedContent = kGeneratedContent - 1;

struct Request {
  std::int64_t arrival_us = 0;  // [us]
  std::int64_t prompt_tokens = 0;
  std::int64_t generate_tokens = 0;
  std::vector<ContentSpan> content;  // of the prompt, lengths add up to prompt_tokens; empty: not shared
  std::int64_t samples = 1;          // answers to the one prompt, each generate_tokens long; paged only
  // The distance of a sample from its parent in the list; 0: not a sample. Not in files: make_requests() turns a
  // request of 3 samples into three of one each, {parent, 1, 2}.
  std::int64_t sample_of = 0;
  friend bool operator==(const Request&, const Request&) = default;
};

// Requests generated from a seed: exponential gaps, lengths uniform in a range or exponential with a mean, and a
// fraction of the prompts with a common prefix.
struct RequestGenerator {
  std::int64_t count = 0;
  double mean_gap_us = 100'000;  // [us]
  std::int64_t prompt_min = 16, prompt_max = 64;
  std::int64_t generate_min = 4, generate_max = 16;
  std::int64_t prefix_groups = 0;  // 0: no prefixes are shared
  std::int64_t prefix_tokens = 0;  // length of a group's common prefix
  double prefix_share = 1.0;       // probability that a request belongs to a group
  // 0: lengths are uniform in the range. Otherwise exponential from the minimum with this mean, clipped at the maximum:
  // many short and few long ones, as in recorded traffic.
  double prompt_mean = 0;    // [tokens]
  double generate_mean = 0;  // [tokens]
  friend bool operator==(const RequestGenerator&, const RequestGenerator&) = default;
};

// A recorded trace beside the scenario. The name's ending selects the format: .csv (timestamp, context, generated) or
// .jsonl (timestamp, input_length, output_length, hash_ids of 512-token blocks).
struct RequestFile {
  std::string path;         // relative to the scenario's folder
  std::int64_t limit = 0;   // 0: all
  double time_scale = 1.0;  // 2: twice as slow
  friend bool operator==(const RequestFile&, const RequestFile&) = default;
};

struct RequestSource {
  std::vector<Request> list;  // first these ...
  std::optional<RequestGenerator> generator;
  std::optional<RequestFile> file;
  friend bool operator==(const RequestSource&, const RequestSource&) = default;
};

// --- the scheduler ---------------------------------------------------------------------------------------------------

// Continuous batching: every step takes decode tokens of the running requests first, then as much prefill as fits.
// A step lasts base_us + per_token_us * tokens computed + per_context_us * tokens attended.
struct SchedulerConfig {
  std::int64_t max_batch = 256;         // requests running at once
  std::int64_t max_step_tokens = 8192;  // tokens computed in one step; the rest of a prompt waits (chunked prefill)
  double base_us = 5000;                // [us]
  double per_token_us = 10;             // [us]
  double per_context_us = 0.002;        // [us]
  friend bool operator==(const SchedulerConfig&, const SchedulerConfig&) = default;
};

// --- the attention computed over the cache ---------------------------------------------------------------------------

enum class MaskKind : std::uint8_t { none, causal, sliding_window, chunked };
enum class CausalAlignment : std::uint8_t { bottom_right, top_left };

struct AttentionConfig {
  MaskKind mask = MaskKind::causal;
  CausalAlignment alignment = CausalAlignment::bottom_right;
  std::int64_t window =
      0;  // sliding_window: keys that a query sees, its own included (left = window - 1); chunked: chunk length
  std::optional<double> scale;     // default 1 / sqrt(head_size); required for MLA
  std::optional<double> soft_cap;  // score -> cap * tanh(score / cap)
  bool alibi = false;
  bool sinks = false;  // one learned logit per head in the denominator
  friend bool operator==(const AttentionConfig&, const AttentionConfig&) = default;
};

// The tile of K or V that a kernel processes at a time.
struct TileGeometry {
  std::int64_t BN = 64;  // [tokens]
  std::int64_t BK = 64;  // [elements]
  SwizzleMode swizzle = SwizzleMode::b128;
  std::int64_t base_alignment = 0;  // [tokens] the mask guarantees that every tile start is a multiple of it; 0: BN
  friend bool operator==(const TileGeometry&, const TileGeometry&) = default;
};

// The matrix instruction and the swizzle of the LDS path. `shipped`: those of the kernels for the cache's type.
enum class LdsMma : std::uint8_t { shipped, m32x32x8, m32x32x16, m16x16x32, m32x32x64, m16x16x128 };
enum class LdsSwizzle : std::uint8_t { shipped, none, s304, s303, s203, s202 };

// How K and V reach registers where there is no TMA: DRAM -> LDS in two stages -> fragments, by waves of 64 lanes.
struct LdsGeometry {
  std::int64_t BN = 0;  // [tokens] of a tile; 0: 64, or 32 for heads of more than 256
  std::int64_t WN = 0;  // [tokens] of a wave's part of K; 0: BN
  std::int64_t BK = 0;  // [elements] of a strip; 0: 64 bytes of them
  std::int64_t threads = 256;
  LdsMma mma = LdsMma::shipped;
  LdsSwizzle swizzle = LdsSwizzle::shipped;  // of K, in 16-byte vectors; V has none
  bool full_kv = true;                       // a stage holds every column of a tile; false: one block of BK columns
  std::int64_t smem_depth = 0;               // [elements] columns of a stage; 0: the number of staged columns
  std::int64_t cache_depth = 0;              // [elements] of a head in the cache; 0 or the model's head_size
  std::int64_t head_dim_offset = 0;          // [elements] first column of a head that is staged
  std::int64_t reg_chunk_depth = 0;  // [elements] maximum columns of K in registers at once; 0: as many as 255 hold
  friend bool operator==(const LdsGeometry&, const LdsGeometry&) = default;
};

// How much is recorded of the focus tile's staging through shared memory into registers.
enum class StagingDetail : std::uint8_t {
  none,
  copies,  // each box, copy instruction, wait and fragment read
  lanes,   // also the content of each 16-byte chunk and each lane
};

// The step, layer, head and tile for which the golden output and the events of later stages are computed.
struct Focus {
  std::int64_t step =
      -1;  // the engine step whose cache is used; -1: the busiest (most tokens cached), the first one of several
  std::int64_t layer = 0;
  std::int64_t sequence = -1;  // of the step's batch; -1: the one with the most tokens, the first one of several
  std::int64_t head = 0;       // of K and V
  std::int64_t tile = 0;       // which run of BN tokens of the sequence
  StagingDetail staging = StagingDetail::none;
  friend bool operator==(const Focus&, const Focus&) = default;
};

// --- the whole -------------------------------------------------------------------------------------------------------

struct Scenario {
  std::string name;
  std::string description;
  ModelGeometry model;
  CacheConfig cache;
  RequestSource requests;
  SchedulerConfig scheduler;
  AttentionConfig attention;
  TileGeometry tile;
  LdsGeometry lds;
  Focus focus;
  std::uint64_t seed = 1;
  friend bool operator==(const Scenario&, const Scenario&) = default;
};

// The file format's version: "kvscope_scenario": 1.
inline constexpr int kScenarioVersion = 1;

}  // namespace kvscope
