// The one table of a scenario's fields: every key, its range, its meaning and what to do when it is wrong.
// Four visitors walk it, so that they cannot disagree: the reader and the writer (scenario_json.cpp), the schema maker
// (schema.cpp) and the range checker (checks.cpp). Inner to this folder.
//
// A visitor answers: integer, unsigned_integer, real, optional_real, flag, text, word, object, optional_object, list,
// model. The struct may be const: the writer and the checker only look.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "core/scenario/scenario.h"

namespace kvscope::fields {

enum class Need : std::uint8_t { optional, required };

struct About {
  std::string_view meaning;  // for the schema and whoever reads it
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

// `S` is the struct or its const form; overloads are told apart by the tag, because a deduced S matches anything.
template <class T>
struct Tag {};

template <class V, class S>
void describe(Tag<ModelGeometry>, V& v, S& m) {
  v.text("name", m.name, {"A preset's name, or free text.", ""});
  v.integer("layers", m.layers, {1, 1024}, {"Layers that keep K and V.", "choose the model's layer count"});
  v.integer("query_heads", m.query_heads, {1, 4096}, {"Heads of Q.", "choose a multiple of kv_heads"});
  v.integer("kv_heads", m.kv_heads, {1, 4096}, {"Heads of K and V; 1 for MLA.", "choose a divisor of query_heads"});
  v.integer("head_size", m.head_size, {1, 8192},
            {"Elements of one head of one token; for MLA latent + rope.", "choose the model's head size, such as 128"});
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
         {"How a scale is made. amax: the granule's largest magnitude / the type's largest finite number. "
          "power_of_two: the smallest power of two that is no less.",
          ""});
}

template <class V, class S>
void describe(Tag<CacheConfig>, V& v, S& c) {
  v.word("kind", c.kind, kCacheKinds, {"paged: pages in a block pool. continuous: one long block a sequence.", ""});
  v.integer("page_size", c.page_size, {1, 65536},
            {"Tokens of a page; paged only.", "choose a power of two such as 16"});
  v.integer("blocks", c.blocks, {1, kMaxBlocks},
            {"Blocks of the pool, the null page not counted. Continuous: sequences held at once.",
             "choose the number of pages the pool holds, such as 64"});
  v.integer("max_tokens", c.max_tokens, {0, kMaxTokens},
            {"Tokens a sequence may reach. Paged: 0 = as many as the pool holds.", "choose a length in tokens"});
  v.word("dtype", c.dtype, kCacheDTypes, {"Element type of K and V as stored.", ""});
  v.optional_object("quantization", c.quantization, {"Scales beside the values; 8-bit dtypes only.", ""});
  v.flag("prefix_sharing", c.prefix_sharing,
         {"Equal prefixes share blocks; paged only. Left out: true for paged, false for continuous.", ""});
}

template <class V, class S>
void describe(Tag<ContentSpan>, V& v, S& s) {
  v.unsigned_integer("content", s.content, kLastListedContent,
                     {"Which text. Equal texts are equal numbers.", "choose one number for each text", Need::required});
  v.integer("length", s.length, {1, kMaxTokens}, {"Tokens of it.", "leave empty spans out", Need::required});
}

template <class V, class S>
void describe(Tag<Request>, V& v, S& r) {
  v.integer("arrival_us", r.arrival_us, {0, kMaxTime},
            {"Microseconds since the run began.", "choose a time in microseconds"});
  v.integer("prompt_tokens", r.prompt_tokens, {1, kMaxTokens},
            {"Tokens of the prompt.", "a request has at least one token", Need::required});
  v.integer("generate_tokens", r.generate_tokens, {0, kMaxTokens},
            {"Tokens to generate; 0: the prompt is computed and the request ends.", "choose a length in tokens"});
  v.list("content", r.content, {0, kMaxSpans},
         {"What the prompt says, span by span; the lengths add up to prompt_tokens. Left out: shared with nobody.",
          "join neighbouring spans"});
  v.integer(
      "samples", r.samples, {1, kMaxSamples},
      {"Answers to the one prompt, which is computed once; paged only.", "use several requests for more answers"});
}

template <class V, class S>
void describe(Tag<RequestGenerator>, V& v, S& g) {
  v.integer("count", g.count, {1, kMaxListed}, {"Requests to make up.", "choose how many to make up", Need::required});
  v.real("mean_gap_us", g.mean_gap_us, {0, 1e9, true},
         {"Mean time between arrivals, exponentially distributed; 0: all at once.", "choose a time in microseconds"});
  v.integer("prompt_min", g.prompt_min, {1, kMaxTokens}, {"Shortest prompt.", "choose a length in tokens"});
  v.integer("prompt_max", g.prompt_max, {1, kMaxTokens}, {"Longest prompt.", "choose a length in tokens"});
  v.integer("generate_min", g.generate_min, {0, kMaxTokens},
            {"Fewest tokens to generate.", "choose a length in tokens"});
  v.integer("generate_max", g.generate_max, {0, kMaxTokens}, {"Most tokens to generate.", "choose a length in tokens"});
  v.real("prompt_mean", g.prompt_mean, {0, 2147483647.0, true},
         {"0: prompts are uniform between their bounds. Else many short and few long ones: exponential from prompt_min "
          "with "
          "this mean, cut at prompt_max.",
          "choose a length between prompt_min and prompt_max, or 0"});
  v.real("generate_mean", g.generate_mean, {0, 2147483647.0, true},
         {"As prompt_mean, of the tokens to generate.", "choose a length between generate_min and generate_max, or 0"});
  v.integer("prefix_groups", g.prefix_groups, {0, kMaxListed},
            {"Different common beginnings; 0: nothing is shared.", "choose how many beginnings there are"});
  v.integer("prefix_tokens", g.prefix_tokens, {0, kMaxTokens},
            {"Length of a common beginning; a shorter prompt is a piece of it.", "choose a length in tokens"});
  v.real("prefix_share", g.prefix_share, {0, 1, true},
         {"Probability that a request has a common beginning.", "choose a probability"});
}

template <class V, class S>
void describe(Tag<RequestFile>, V& v, S& f) {
  v.text("path", f.path,
         {"A .csv or .jsonl trace, relative to the scenario's folder.", "name a .csv or .jsonl file", Need::required});
  v.integer("limit", f.limit, {0, 1'000'000'000}, {"Rows to take; 0: all.", "choose a number of rows"});
  v.real("time_scale", f.time_scale, {0, 1e6, true},
         {"Arrival times are multiplied by this; 2: twice as slow, 0: all at once.", "choose a factor such as 1"});
}

template <class V, class S>
void describe(Tag<RequestSource>, V& v, S& r) {
  v.list("list", r.list, {0, kMaxListed}, {"Requests one by one.", "use a request file for longer lists"});
  v.optional_object("generator", r.generator, {"Requests made up from the seed.", ""});
  v.optional_object("file", r.file, {"A recorded trace.", ""});
}

template <class V, class S>
void describe(Tag<SchedulerConfig>, V& v, S& s) {
  v.integer("max_batch", s.max_batch, {1, 1'000'000}, {"Requests running at once.", "choose a batch such as 256"});
  v.integer("max_step_tokens", s.max_step_tokens, {1, kMaxTokens},
            {"Tokens computed in one step; the rest of a prompt waits.", "choose a number of tokens such as 8192"});
  v.real("base_us", s.base_us, {0, 1e9, true}, {"Time of an empty step [us].", "choose a time in microseconds"});
  v.real("per_token_us", s.per_token_us, {0, 1e6, true},
         {"Time for each token computed [us].", "choose a time in microseconds"});
  v.real("per_context_us", s.per_context_us, {0, 1e6, true},
         {"Time for each token attended [us].", "choose a time in microseconds"});
}

template <class V, class S>
void describe(Tag<AttentionConfig>, V& v, S& a) {
  v.word("mask", a.mask, kMasks, {"Which keys a query sees.", ""});
  v.word("alignment", a.alignment, kAlignments, {"Which corner of the score matrix the diagonal ends in.", ""});
  v.integer("window", a.window, {0, kMaxTokens},
            {"sliding_window: keys seen, the own one included. chunked: length of a chunk. Else 0.",
             "choose a number of tokens"});
  v.optional_real(
      "scale", a.scale, {0, 1e6, false},
      {"Factor of the scores; left out: 1/sqrt(head_size). MLA must say.", "choose a factor such as 0.125"});
  v.optional_real("soft_cap", a.soft_cap, {0, 1e6, false},
                  {"score -> cap * tanh(score / cap).", "choose a cap such as 50, or leave it out"});
  v.flag("alibi", a.alibi, {"Adds a slope times the distance to every score.", ""});
  v.flag("sinks", a.sinks, {"One more logit a head in the denominator.", ""});
}

template <class V, class S>
void describe(Tag<TileGeometry>, V& v, S& t) {
  v.integer("BN", t.BN, {1, 65536},
            {"Tokens of a tile. Left out: 64, or the nearest smaller number that fits the pages.",
             "choose a multiple or a divisor of page_size, such as 64"});
  v.integer("BK", t.BK, {1, 8192}, {"Elements of a head a tile spans.", "choose a number of elements such as 64"});
  v.word("swizzle", t.swizzle, kSwizzles, {"How a tile is spread over shared memory.", ""});
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
  v.integer("step", f.step, {-1, kMaxTime},
            {"The engine step to look at; -1: the busiest.", "choose -1 for the busiest step"});
  v.integer("layer", f.layer, {0, 1023}, {"The layer to look at.", "choose a layer of the model"});
  v.integer("sequence", f.sequence, {-1, kMaxTokens},
            {"The sequence whose tile is staged; -1: the longest of the step.", "choose -1 for the longest"});
  v.integer("head", f.head, {0, 4095}, {"The KV head to look at.", "choose a KV head of the model"});
  v.integer("tile", f.tile, {0, kMaxTokens},
            {"Which tile of the sequence is staged: tokens tile * BN on.", "choose 0 for the first tile"});
  v.word("staging", f.staging, kStagingDetails,
         {"What a trace keeps of that tile's way into shared memory and registers: nothing, each copy, or each lane.",
          ""});
}

template <class V, class S>
void describe(Tag<Scenario>, V& v, S& s) {
  v.text("name", s.name, {"A few words.", ""});
  v.text("description", s.description, {"What to look at.", ""});
  v.model("model", s.model, {"A preset's name, a preset with changes, or the geometry in full.", ""});
  v.object("cache", s.cache, {"The KV cache.", ""});
  v.object("requests", s.requests,
           {"Who asks for what, and when; at least one of the three.", "give a list, a generator or a file",
            Need::required});
  v.object("scheduler", s.scheduler, {"Continuous batching and its cost model.", ""});
  v.object("attention", s.attention, {"What is computed over the cache.", ""});
  v.object("tile", s.tile, {"The tile a kernel would work on.", ""});
  v.object("lds", s.lds, {"The staging of a kernel without TMA: DRAM, LDS, fragments.", ""});
  v.object("focus", s.focus, {"Where the golden output and the staging of one tile look.", ""});
  v.unsigned_integer("seed", s.seed, 18'446'744'073'709'551'615u, {"Of everything random.", ""});
}

}  // namespace kvscope::fields
