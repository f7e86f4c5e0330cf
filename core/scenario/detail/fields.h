// The only table of a scenario's fields: every key, its range, its description, and what to do when it is out of range.
// Its visitors therefore agree: the reader and the writer (scenario_json.cpp), the schema generator (schema.cpp), the
// range checker (checks.cpp) and the fields of a form (draft.cpp). Internal to this folder.
//
// A visitor has the members integer, unsigned_integer, real, optional_real, flag, text, word, object, optional_object,
// list and model. The struct may be const for visitors that do not modify it (the writer and the checker).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "core/scenario/scenario.h"

namespace kvscope::fields {

enum class Need : std::uint8_t { optional, required };

struct About {
  std::string_view meaning;  // the description in the schema
  std::string_view next;     // what to do when the value is out of range; may be empty
  Need need = Need::optional;
};

struct IntegerRange {
  std::int64_t low;
  std::int64_t high;
};

struct RealRange {
  double low;
  double high;
  bool low_is_legal;  // false: (low, high]
};

template <class E>
struct Word {
  std::string_view text;
  E value;
};

// --- limits ----------------------------------------------------------------------------------------------------------

inline constexpr std::int64_t kMaxTokens = 2'147'483'647;  // of one sequence: positions are 32-bit in every kernel
inline constexpr std::int64_t kMaxBlocks = 2'147'483'646;  // with the null page, block numbers stay below 2^31
inline constexpr std::int64_t kMaxTime = 1'000'000'000'000'000;  // [us], about 31 years
inline constexpr std::int64_t kMaxListed = 1'000'000;            // requests of the list, requests generated
inline constexpr std::int64_t kMaxSpans = 65'536;                // of one request
inline constexpr std::int64_t kMaxSamples = 64;                  // of one request
inline constexpr std::int64_t kMaxText = 65'536;                 // [bytes] of a name, a description or a path

// --- words -----------------------------------------------------------------------------------------------------------

inline constexpr std::array<Word<CacheKind>, 2> kCacheKinds{
    {{"paged", CacheKind::paged}, {"continuous", CacheKind::continuous}}};
inline constexpr std::array<Word<DType>, 5> kCacheDTypes{
    {{"f32", DType::f32}, {"f16", DType::f16}, {"bf16", DType::bf16}, {"e4m3", DType::e4m3}, {"e5m2", DType::e5m2}}};
inline constexpr std::array<Word<DType>, 4> kScaleDTypes{
    {{"f32", DType::f32}, {"f16", DType::f16}, {"bf16", DType::bf16}, {"e8m0", DType::e8m0}}};
inline constexpr std::array<Word<Quantizer>, 2> kQuantizers{
    {{quantizer_name(Quantizer::amax), Quantizer::amax},
     {quantizer_name(Quantizer::power_of_two), Quantizer::power_of_two}}};
inline constexpr std::array<Word<MaskKind>, 4> kMasks{{{"none", MaskKind::none},
                                                       {"causal", MaskKind::causal},
                                                       {"sliding_window", MaskKind::sliding_window},
                                                       {"chunked", MaskKind::chunked}}};
inline constexpr std::array<Word<CausalAlignment>, 2> kAlignments{
    {{"bottom_right", CausalAlignment::bottom_right}, {"top_left", CausalAlignment::top_left}}};
inline constexpr std::array<Word<SwizzleMode>, 4> kSwizzles{
    {{"none", SwizzleMode::none}, {"32B", SwizzleMode::b32}, {"64B", SwizzleMode::b64}, {"128B", SwizzleMode::b128}}};

inline constexpr std::array<Word<LdsMma>, 6> kLdsMmas{{{"shipped", LdsMma::shipped},
                                                       {"32x32x8", LdsMma::m32x32x8},
                                                       {"32x32x16", LdsMma::m32x32x16},
                                                       {"16x16x32", LdsMma::m16x16x32},
                                                       {"32x32x64", LdsMma::m32x32x64},
                                                       {"16x16x128", LdsMma::m16x16x128}}};
inline constexpr std::array<Word<LdsSwizzle>, 6> kLdsSwizzles{{{"shipped", LdsSwizzle::shipped},
                                                               {"none", LdsSwizzle::none},
                                                               {"(3,0,4)", LdsSwizzle::s304},
                                                               {"(3,0,3)", LdsSwizzle::s303},
                                                               {"(2,0,3)", LdsSwizzle::s203},
                                                               {"(2,0,2)", LdsSwizzle::s202}}};
inline constexpr std::array<Word<StagingDetail>, 3> kStagingDetails{
    {{"none", StagingDetail::none}, {"copies", StagingDetail::copies}, {"lanes", StagingDetail::lanes}}};

// --- the table -------------------------------------------------------------------------------------------------------

// `S` is the struct or its const form; the tag selects the overload, because a deduced S matches any type.
template <class T>
struct Tag {};

template <class V, class S>
void describe(Tag<ModelGeometry>, V& v, S& m) {
  v.text("name", m.name, {"A preset's name, or any text.", ""});
  v.integer("layers", m.layers, {1, 1024}, {"Layers that keep K and V.", "choose the model's layer count"});
  v.integer("query_heads", m.query_heads, {1, 4096}, {"Heads of Q.", "choose a multiple of kv_heads"});
  v.integer("kv_heads", m.kv_heads, {1, 4096}, {"Heads of K and V; 1 for MLA.", "choose a divisor of query_heads"});
  v.integer(
      "head_size", m.head_size, {1, 8192},
      {"Elements of one head of one token; for MLA: latent + rope.", "choose the model's head size, such as 128"});
  v.flag("is_mla", m.is_mla, {"Multi-head latent attention: one slot serves as K and V.", ""});
  v.integer("value_size", m.value_size, {1, 8192},
            {"Elements of a head that are V: head_size, or the latent part for MLA. Left out: head_size.",
             "choose head_size, or the latent part for MLA"});
}

template <class V, class S>
void describe(Tag<Quantization>, V& v, S& q) {
  v.word("scale_dtype", q.scale_dtype, kScaleDTypes, {"Element type of a scale.", ""});
  v.integer(
      "granularity", q.granularity, {1, 8192},
      {"Elements of a head that share one scale.", "choose a number up to head_size, such as 64", Need::required});
  v.word("quantizer", q.quantizer, kQuantizers,
         {"How a scale is computed. amax: the granule's largest magnitude / the type's largest finite number. "
          "power_of_two: the smallest power of two that is at least as large.",
          ""});
}

template <class V, class S>
void describe(Tag<CacheConfig>, V& v, S& c) {
  v.word("kind", c.kind, kCacheKinds, {"paged: pages in a block pool. continuous: one long block per sequence.", ""});
  v.integer("page_size", c.page_size, {1, 65536}, {"Tokens per page; paged only.", "choose a power of two such as 16"});
  v.integer("blocks", c.blocks, {1, kMaxBlocks},
            {"Blocks of the pool, the null page not counted. Continuous: sequences held at once.",
             "choose the number of pages the pool holds, such as 64"});
  v.integer("max_tokens", c.max_tokens, {0, kMaxTokens},
            {"Maximum tokens of a sequence. Paged: 0 = as many as the pool holds.", "choose a length in tokens"});
  v.word("dtype", c.dtype, kCacheDTypes, {"Element type of K and V as stored.", ""});
  v.optional_object("quantization", c.quantization, {"Scales stored with the values; 8-bit dtypes only.", ""});
  v.flag("prefix_sharing", c.prefix_sharing,
         {"Equal prefixes share blocks; paged only. Left out: true for paged, false for continuous.", ""});
}

template <class V, class S>
void describe(Tag<ContentSpan>, V& v, S& s) {
  v.unsigned_integer(
      "content", s.content, kLastListedContent,
      {"Number of the text. Equal numbers mean equal texts.", "choose one number for each text", Need::required});
  v.integer("length", s.length, {1, kMaxTokens}, {"Tokens of the span.", "leave empty spans out", Need::required});
}

template <class V, class S>
void describe(Tag<Request>, V& v, S& r) {
  v.integer("arrival_us", r.arrival_us, {0, kMaxTime},
            {"Arrival time in microseconds since the start of the run.", "choose a time in microseconds"});
  v.integer("prompt_tokens", r.prompt_tokens, {1, kMaxTokens},
            {"Tokens of the prompt.", "a request has at least one token", Need::required});
  v.integer("generate_tokens", r.generate_tokens, {0, kMaxTokens},
            {"Tokens to generate; 0: the prompt is computed and the request ends.", "choose a length in tokens"});
  v.list("content", r.content, {0, kMaxSpans},
         {"What the prompt says, span by span; the lengths add up to prompt_tokens. Left out: shared with nobody.",
          "join adjacent spans"});
  v.integer(
      "samples", r.samples, {1, kMaxSamples},
      {"Answers to the one prompt, which is computed once; paged only.", "use several requests for more answers"});
}

template <class V, class S>
void describe(Tag<RequestGenerator>, V& v, S& g) {
  v.integer("count", g.count, {1, kMaxListed},
            {"Number of requests to generate.", "choose a number of requests", Need::required});
  v.real("mean_gap_us", g.mean_gap_us, {0, 1e9, true},
         {"Mean time between arrivals, exponentially distributed; 0: all at once.", "choose a time in microseconds"});
  v.integer("prompt_min", g.prompt_min, {1, kMaxTokens}, {"Minimum tokens of a prompt.", "choose a length in tokens"});
  v.integer("prompt_max", g.prompt_max, {1, kMaxTokens}, {"Maximum tokens of a prompt.", "choose a length in tokens"});
  v.integer("generate_min", g.generate_min, {0, kMaxTokens},
            {"Minimum tokens to generate.", "choose a length in tokens"});
  v.integer("generate_max", g.generate_max, {0, kMaxTokens},
            {"Maximum tokens to generate.", "choose a length in tokens"});
  v.real("prompt_mean", g.prompt_mean, {0, 2147483647.0, true},
         {"0: prompts are uniform between their bounds. Else many short and few long ones: exponential from prompt_min "
          "with "
          "this mean, cut at prompt_max.",
          "choose a length between prompt_min and prompt_max, or 0"});
  v.real("generate_mean", g.generate_mean, {0, 2147483647.0, true},
         {"The same as prompt_mean for the tokens to generate.",
          "choose a length between generate_min and generate_max, or 0"});
  v.integer("prefix_groups", g.prefix_groups, {0, kMaxListed},
            {"Number of different common prefixes; 0: none.", "choose a number of prefixes"});
  v.integer("prefix_tokens", g.prefix_tokens, {0, kMaxTokens},
            {"Tokens of a common prefix; a shorter prompt is the beginning of it.", "choose a length in tokens"});
  v.real("prefix_share", g.prefix_share, {0, 1, true},
         {"Probability that a request has a common prefix.", "choose a probability"});
}

template <class V, class S>
void describe(Tag<RequestFile>, V& v, S& f) {
  v.text("path", f.path,
         {"A .csv or .jsonl trace, relative to the scenario's folder.", "name a .csv or .jsonl file", Need::required});
  v.integer("limit", f.limit, {0, 1'000'000'000}, {"Number of rows to read; 0: all.", "choose a number of rows"});
  v.real("time_scale", f.time_scale, {0, 1e6, true},
         {"Arrival times are multiplied by this; 2: twice as slow, 0: all at once.", "choose a factor such as 1"});
}

template <class V, class S>
void describe(Tag<RequestSource>, V& v, S& r) {
  v.list("list", r.list, {0, kMaxListed}, {"Single requests.", "use a request file for longer lists"});
  v.optional_object("generator", r.generator, {"Requests generated from the seed.", ""});
  v.optional_object("file", r.file, {"A recorded trace.", ""});
}

template <class V, class S>
void describe(Tag<SchedulerConfig>, V& v, S& s) {
  v.integer("max_batch", s.max_batch, {1, 1'000'000},
            {"Maximum number of requests running at once.", "choose a batch such as 256"});
  v.integer(
      "max_step_tokens", s.max_step_tokens, {1, kMaxTokens},
      {"Maximum tokens computed in one step; the rest of a prompt waits.", "choose a number of tokens such as 8192"});
  v.real("base_us", s.base_us, {0, 1e9, true}, {"Time of an empty step [us].", "choose a time in microseconds"});
  v.real("per_token_us", s.per_token_us, {0, 1e6, true},
         {"Time for each token computed [us].", "choose a time in microseconds"});
  v.real("per_context_us", s.per_context_us, {0, 1e6, true},
         {"Time for each token attended [us].", "choose a time in microseconds"});
}

template <class V, class S>
void describe(Tag<AttentionConfig>, V& v, S& a) {
  v.word("mask", a.mask, kMasks, {"The keys that a query sees.", ""});
  v.word("alignment", a.alignment, kAlignments, {"The corner of the score matrix in which the diagonal ends.", ""});
  v.integer("window", a.window, {0, kMaxTokens},
            {"sliding_window: keys that a query sees, its own included. chunked: length of a chunk. Otherwise 0.",
             "choose a number of tokens"});
  v.optional_real(
      "scale", a.scale, {0, 1e6, false},
      {"Factor of the scores; left out: 1/sqrt(head_size). Required for MLA.", "choose a factor such as 0.125"});
  v.optional_real("soft_cap", a.soft_cap, {0, 1e6, false},
                  {"score -> cap * tanh(score / cap).", "choose a cap such as 50, or leave it out"});
  v.flag("alibi", a.alibi, {"Adds a slope times the distance to every score.", ""});
  v.flag("sinks", a.sinks, {"One more logit per head in the denominator.", ""});
}

template <class V, class S>
void describe(Tag<TileGeometry>, V& v, S& t) {
  v.integer("BN", t.BN, {1, 65536},
            {"Tokens of a tile. Left out: 64, or the nearest smaller number that fits the pages.",
             "choose a multiple or a divisor of page_size, such as 64"});
  v.integer("BK", t.BK, {1, 8192}, {"Elements of a head in a tile.", "choose a number of elements such as 64"});
  v.word("swizzle", t.swizzle, kSwizzles, {"The swizzle of a tile in shared memory.", ""});
  v.integer("base_alignment", t.base_alignment, {0, 65536},
            {"Every tile starts at a multiple of this many tokens; 0: BN.", "choose 0 for BN"});
}

template <class V, class S>
void describe(Tag<LdsGeometry>, V& v, S& l) {
  v.integer("BN", l.BN, {0, 4096},
            {"Tokens of a tile on the LDS path; 0: 64, or 32 for heads of more than 256 elements.",
             "choose a multiple of 32 such as 64, or 0"});
  v.integer("WN", l.WN, {0, 4096}, {"Tokens of a wave's part of K; 0: BN.", "choose a divisor of BN, or 0"});
  v.integer("BK", l.BK, {0, 8192},
            {"Elements of a strip; 0: 64 bytes of them.", "choose 64 or 128 bytes of elements, or 0"});
  v.integer("threads", l.threads, {64, 1024}, {"Threads of a block.", "choose a multiple of 64 such as 256"});
  v.word("mma", l.mma, kLdsMmas, {"The matrix instruction, M x N x K; shipped: by the cache's type.", ""});
  v.word("swizzle", l.swizzle, kLdsSwizzles,
         {"(bits, base, shift) of K's 16-byte vectors in LDS; shipped: by the instruction.", ""});
  v.flag("full_kv", l.full_kv, {"A stage holds all columns of a tile. false: one block of BK columns at a time.", ""});
  v.integer("smem_depth", l.smem_depth, {0, 8192},
            {"Columns of a stage; 0: as many as are staged.", "choose a multiple of BK, or 0"});
  v.integer("cache_depth", l.cache_depth, {0, 8192},
            {"Columns of a head in the cache; 0: head_size of the model.", "choose head_size of the model, or 0"});
  v.integer("head_dim_offset", l.head_dim_offset, {0, 8191},
            {"First column of a head that is staged; the columns before it are left out.",
             "choose a column on a multiple of 16 bytes, such as 0"});
  v.integer("reg_chunk_depth", l.reg_chunk_depth, {0, 8192},
            {"Columns of K that registers hold at a time; 0: as many strips as fit the 255 registers of a lane.",
             "choose a multiple of BK, or 0"});
}

template <class V, class S>
void describe(Tag<Focus>, V& v, S& f) {
  v.integer("step", f.step, {-1, kMaxTime}, {"The engine step; -1: the busiest.", "choose -1 for the busiest step"});
  v.integer("layer", f.layer, {0, 1023}, {"The layer.", "choose a layer of the model"});
  v.integer("sequence", f.sequence, {-1, kMaxTokens},
            {"The sequence whose tile is staged; -1: the longest of the step.", "choose -1 for the longest"});
  v.integer("head", f.head, {0, 4095}, {"The KV head.", "choose a KV head of the model"});
  v.integer("tile", f.tile, {0, kMaxTokens},
            {"The tile of the sequence that is staged; its first token is tile * BN.", "choose 0 for the first tile"});
  v.word("staging", f.staging, kStagingDetails,
         {"What a trace records of that tile's staging into shared memory and registers: nothing, each copy, or each "
          "lane.",
          ""});
}

template <class V, class S>
void describe(Tag<Scenario>, V& v, S& s) {
  v.text("name", s.name, {"A short title.", ""});
  v.text("description", s.description, {"The purpose of the scenario.", ""});
  v.model("model", s.model, {"A preset's name, a preset with changes, or the geometry in full.", ""});
  v.object("cache", s.cache, {"The KV cache.", ""});
  v.object("requests", s.requests,
           {"The requests and their arrival times; at least one of the three sources.",
            "give a list, a generator or a file", Need::required});
  v.object("scheduler", s.scheduler, {"Continuous batching and its cost model.", ""});
  v.object("attention", s.attention, {"The attention that is computed over the cache.", ""});
  v.object("tile", s.tile, {"The tile of K or V that a kernel processes at a time.", ""});
  v.object("lds", s.lds, {"The staging of a kernel without TMA: DRAM, LDS, fragments.", ""});
  v.object("focus", s.focus, {"The step, layer, head and tile of the golden output and of the recorded staging.", ""});
  v.unsigned_integer("seed", s.seed, 18'446'744'073'709'551'615u, {"Seed of all random numbers.", ""});
}

}  // namespace kvscope::fields
