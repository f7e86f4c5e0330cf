#include "core/staging/tma/eligibility.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/checked.h"
#include "core/base/errors.h"
#include "core/layout/swizzle.h"
#include "core/tma/tile_sizes.h"

namespace kvscope {

namespace {

constexpr RuleSource kMaxTypes = {"modular/modular", "max/kernels/src/kv_cache/types.mojo", "012eb040b9fd"};
constexpr RuleSource kEncoder = {"NVIDIA CUDA driver API", "cuTensorMapEncodeTiled", "13.0"};
constexpr RuleSource kFa3Api = {"Dao-AILab/flash-attention", "hopper/flash_api.cpp", "0e79d7117534"};
constexpr RuleSource kFa3Tile = {"Dao-AILab/flash-attention", "hopper/tile_size.h", "07602adc2baa"};
constexpr RuleSource kFlashInfer = {"flashinfer-ai/flashinfer",
                                    "include/flashinfer/attention/hopper/sparse_mainloop.cuh", "04ee9bceb5ab"};
constexpr RuleSource kFlashInferTma = {"flashinfer-ai/flashinfer",
                                       "include/flashinfer/attention/hopper/sparse_mainloop_tma.cuh",
                                       "821b2ff6fb10, pull request #4971, open"};
constexpr RuleSource kXqa = {"NVIDIA/TensorRT-LLM", "cpp/kernels/xqa/mha_sm90.cu", "014dadcdfc44"};
constexpr RuleSource kXqaMap = {"NVIDIA/TensorRT-LLM", "cpp/kernels/xqa/tensorMap.cpp", "c1d9877d1d9b"};
constexpr RuleSource kFlashMlaDense = {"deepseek-ai/FlashMLA", "csrc/api/dense_decode.h", "1aeef780aa12"};
constexpr RuleSource kFlashMlaSparse = {"deepseek-ai/FlashMLA", "csrc/api/sparse_decode.h", "4855c772bacb"};
constexpr RuleSource kFlashMlaGather = {"deepseek-ai/FlashMLA", "csrc/sm100/decode/head64/kernel.cuh", "2c9a67386d4a"};

// The facts about a scenario that the rules use.
struct Facts {
  explicit Facts(const Scenario& s, std::int64_t query)
      : scenario(s),
        paged(s.cache.kind == CacheKind::paged),
        page(paged ? s.cache.page_size : 0),
        dtype(s.cache.dtype),
        bytes(bits(s.cache.dtype) / 8),
        head(s.model.head_size),
        value(s.model.value_size),
        query_tokens(query) {}
  [[nodiscard]] bool is_16_bit() const { return dtype == DType::f16 || dtype == DType::bf16; }

  const Scenario& scenario;
  bool paged;
  std::int64_t page;  // 0: none
  DType dtype;
  std::int64_t bytes;  // of an element; 0 for 4-bit ones
  std::int64_t head, value;
  std::int64_t query_tokens;
};

class Table {
 public:
  Table(std::string_view engine, std::string_view kernel, std::string_view otherwise)
      : verdict_{engine, kernel, otherwise, {}} {}

  void rule(const RuleSource& source, std::string_view condition, std::string numbers, bool holds,
            std::string next_step) {
    verdict_.rules.push_back(
        {condition, std::move(numbers), holds, holds ? std::string() : std::move(next_step), source});
  }
  [[nodiscard]] EngineVerdict take() && { return std::move(verdict_); }

 private:
  EngineVerdict verdict_;
};

// The rules of core/cache's tiles (make_tma_tile), evaluated without making a tile.
EngineVerdict modular_max(const Facts& f) {
  const TileGeometry& tile = f.scenario.tile;
  Table table("Modular MAX", "attention, sm_90 and sm_100", "building the tile fails");
  const bool can_travel = f.dtype != DType::e5m2 && f.dtype != DType::e2m1 && f.dtype != DType::i8 &&
                          f.dtype != DType::i16 && f.dtype != DType::f64;
  table.rule(kMaxTypes, "an element type that TMA supports", std::string(name(f.dtype)), can_travel,
             "use bf16, f16, f32 or e4m3");
  if (f.paged) {
    table.rule(kMaxTypes, "BN within a page, or whole pages", fmt::format("BN {}, pages of {}", tile.BN, f.page),
               tile.BN <= f.page || tile.BN % f.page == 0,
               fmt::format("use BN {}", std::max(f.page, tile.BN / f.page * f.page)));
  }
  const std::int64_t rows = kv_sub_tile_rows(tile.BN, f.page);
  table.rule(kEncoder, "box of at most 256 rows", fmt::format("{} rows", rows), rows <= 256, "use BN 256 or less");
  if (!can_travel) return std::move(table).take();  // granules of such an element have no meaning

  const std::int64_t granule = swizzle_granularity(f.dtype, tile.swizzle);
  table.rule(kMaxTypes, "BK % swizzle granularity == 0",
             fmt::format("{} % {} = {}", tile.BK, granule, tile.BK % granule), tile.BK % granule == 0,
             fmt::format("use BK {}", round_up(tile.BK, granule)));
  table.rule(kEncoder, "row of a head % 16 B == 0", fmt::format("{} x {} B = {} B", f.head, f.bytes, f.head * f.bytes),
             f.head * f.bytes % 16 == 0, fmt::format("pad the head to {}", round_up(f.head, 16 / f.bytes)));
  const std::int64_t box = rows * granule * f.bytes;
  table.rule(kMaxTypes, "boxes % 128 B == 0 if several are adjacent",
             fmt::format("{} x {} x {} B = {} B, {} of them", rows, granule, f.bytes, box, ceil_div(tile.BK, granule)),
             tile.BK <= granule || box % 128 == 0, "use more rows");
  if (f.paged) {
    const std::int64_t slots = f.scenario.model.is_mla ? 1 : 2;
    const std::int64_t block_rows = slots * f.scenario.model.layers * f.page;
    const std::int64_t all = checked_add(checked_mul(f.scenario.cache.blocks, block_rows, "rows"), f.page,
                                         "rows");  // the null page is the last
    table.rule(kMaxTypes, "fewer than 2^31 rows",
               fmt::format("{} blocks x {} + {} = {}", f.scenario.cache.blocks, block_rows, f.page, all),
               all < (std::int64_t{1} << 31), "use fewer blocks, or the tile with the block as its own coordinate");
  }
  return std::move(table).take();
}

EngineVerdict flash_attention_3(const Facts& f) {
  const AttentionConfig& attention = f.scenario.attention;
  Table table("FlashAttention-3", "forward, sm_90", "the kernel's threads copy K and V (cp.async)");
  table.rule(kFa3Api, "f16, bf16 or e4m3", std::string(name(f.dtype)), f.is_16_bit() || f.dtype == DType::e4m3,
             "use bf16");
  // MLA is passed as two parts: the rope part and the latent part.
  const std::int64_t head = f.scenario.model.is_mla ? f.head - f.value : f.head;
  table.rule(kFa3Api, "head size <= 256", fmt::format("{}", head), head <= 256, "no kernel: use another engine");

  const bool local = attention.mask == MaskKind::sliding_window || attention.mask == MaskKind::chunked;
  // A single query sees all keys either way; with pages, tiles of 65 to 128 stay as for causal.
  const bool causal = attention.mask == MaskKind::causal && (f.query_tokens > 1 || (head > 64 && head <= 128));
  const Fa3Tile tile = fa3_tile(f.bytes, head, f.value, causal, local, attention.soft_cap.has_value());
  table.rule(kFa3Tile, "page size % kBlockN == 0",
             fmt::format("{} % {} = {}", f.page, tile.kBlockN, f.page % tile.kBlockN), f.page % tile.kBlockN == 0,
             fmt::format("use pages of {} or a multiple of it", tile.kBlockN));
  const std::int64_t group = f.scenario.model.query_heads / f.scenario.model.kv_heads;
  table.rule(kFa3Api, "query rows > kBlockM",
             fmt::format("{} x {} = {} > {}", f.query_tokens, group, f.query_tokens * group, tile.kBlockM),
             f.query_tokens * group > tile.kBlockM,
             fmt::format("only pieces of {} tokens or more pass", tile.kBlockM / group + 1));
  return std::move(table).take();
}

EngineVerdict flashinfer(const Facts& f) {
  Table table("FlashInfer", "paged prefill, sm_90", "the kernel's threads copy K and V (cp.async)");
  table.rule(kFlashInfer, "K and V of a page table by TMA", fmt::format("never, pages of {}", f.page), false,
             "use contiguous (ragged) K and V, or the open change below");
  return std::move(table).take();
}

EngineVerdict flashinfer_with_tma(const Facts& f) {
  Table table("FlashInfer, with an open change", "paged prefill, sm_90",
              "the kernel's threads copy K and V (cp.async)");
  table.rule(kFlashInferTma, "f16 or bf16", std::string(name(f.dtype)), f.is_16_bit(), "use bf16");
  table.rule(kFlashInferTma, "page size % 16 == 0", fmt::format("{} % 16 = {}", f.page, f.page % 16), f.page % 16 == 0,
             fmt::format("use pages of {}", round_up(f.page, 16)));
  const std::int64_t row = f.head * f.bytes;
  table.rule(kFlashInferTma, "head % 128 B == 0", fmt::format("{} x {} B = {} B", f.head, f.bytes, row),
             row > 0 && row % 128 == 0, "use a head of whole 128 B");
  table.rule(kFlashInferTma, "K and V have the same head size", fmt::format("{} and {}", f.head, f.value),
             f.head == f.value, "no kernel for MLA: use another engine");
  return std::move(table).take();
}

EngineVerdict tensorrt_llm(const Facts& f) {
  Table table("TensorRT-LLM", "XQA decode, sm_90", "no such kernel is built: another one is chosen");
  table.rule(kXqa, "not MLA", f.scenario.model.is_mla ? "MLA" : "K and V apart", !f.scenario.model.is_mla,
             "use the engine's MLA kernels");
  table.rule(kXqa, "the page size divides 64, or is a multiple of 64", fmt::format("pages of {}", f.page),
             64 % f.page == 0 || f.page % 64 == 0, "use pages of 16, 32, 64 or a multiple of 64");
  // Heads are read at their real size; a build may pad them.
  const std::int64_t row = f.head * f.bytes, part = std::min<std::int64_t>(row, 128);
  table.rule(kXqaMap, "a head is one part of 64 B, or parts of 128 B",
             fmt::format("{} x {} B = {} B", f.head, f.bytes, row),
             row > 0 && row % part == 0 && (part == 64 || part == 128), "use a head of 64 B or whole 128 B");
  return std::move(table).take();
}

// The conditions common to both kernels of FlashMLA.
void mla_sizes(Table& table, const RuleSource& source, const Facts& f) {
  table.rule(source, "MLA with rows of 576 or 512, of which 512 are V",
             fmt::format("{}{}, {}", f.scenario.model.is_mla ? "MLA " : "", f.head, f.value),
             f.scenario.model.is_mla && (f.head == 576 || f.head == 512) && f.value == 512,
             "no kernel: use another engine");
}

EngineVerdict flash_mla_dense(const Facts& f) {
  Table table("FlashMLA", "dense decode, sm_90", "the call is rejected");
  mla_sizes(table, kFlashMlaDense, f);
  table.rule(kFlashMlaDense, "f16 or bf16", std::string(name(f.dtype)), f.is_16_bit(), "use bf16");
  table.rule(kFlashMlaDense, "page size == 64", fmt::format("{}", f.page), f.page == 64, "use pages of 64");
  return std::move(table).take();
}

EngineVerdict flash_mla_sparse(const Facts& f) {
  Table table("FlashMLA", "sparse decode by gather4, sm_100", "the call is rejected");
  mla_sizes(table, kFlashMlaSparse, f);
  table.rule(kFlashMlaSparse, "one K/V head", fmt::format("{}", f.scenario.model.kv_heads),
             f.scenario.model.kv_heads == 1, "use one head");
  table.rule(kFlashMlaSparse, "e4m3 content", std::string(name(f.dtype)), f.dtype == DType::e4m3,
             "store the latent part as e4m3");
  table.rule(kFlashMlaGather, "pages of any size: four rows per copy, each with its own index",
             fmt::format("pages of {}", f.page), true, "");
  return std::move(table).take();
}

}  // namespace

bool EngineVerdict::takes_tma() const {
  return std::all_of(rules.begin(), rules.end(), [](const EngineRule& rule) { return rule.holds; });
}

std::vector<EngineVerdict> tma_eligibility(const Scenario& scenario, std::int64_t query_tokens) {
  if (query_tokens < 1) {
    throw GeometryError(fmt::format("{} query tokens of a sequence: give 1 for decoding, or more", query_tokens));
  }
  const Facts facts(scenario, query_tokens);
  if (!facts.paged) return {modular_max(facts)};
  return {modular_max(facts),  flash_attention_3(facts), flashinfer(facts),      flashinfer_with_tma(facts),
          tensorrt_llm(facts), flash_mla_dense(facts),   flash_mla_sparse(facts)};
}

std::string to_text(const EngineVerdict& verdict) {
  std::string text = fmt::format("{}, {}: {}\n", verdict.engine, verdict.kernel,
                                 verdict.takes_tma() ? "K and V are loaded by TMA" : verdict.otherwise);
  for (const EngineRule& rule : verdict.rules) {
    text += fmt::format("  {}: {} ({}; {}, {}, {})\n", rule.condition, rule.numbers,
                        rule.holds ? std::string("holds") : "does not hold: " + rule.next_step, rule.source.project,
                        rule.source.file, rule.source.version);
  }
  return text;
}

Fa3Tile fa3_tile(std::int64_t element_bytes, std::int64_t head_size, std::int64_t value_size, bool causal, bool local,
                 bool soft_cap) {
  if (element_bytes == 1) {
    if (head_size <= 64) return {192, 160};
    if (head_size <= 96) return {192, 128};
    if (head_size <= 128) return {128, soft_cap && local ? 192 : 224};
    if (head_size <= 192) return {128, soft_cap && local ? 128 : 160};
    return {128, local ? 64 : 128};
  }
  if (head_size <= 64) {
    if (value_size > 256) return {64, 64};
    if (value_size > 192) return {128, 112};
    return {192, causal ? 128 : local ? 160 : 192};
  }
  if (head_size <= 96) return {192, local ? 128 : 144};
  if (head_size <= 128) return {128, causal || local ? 128 : 176};
  if (head_size <= 192) return {128, local ? 96 : value_size <= 128 ? 128 : 112};
  return {128, local ? 64 : 80};
}

}  // namespace kvscope
