#include "gpu/offload/attention_on.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <span>
#include <utility>

#include "core/attention/mask.h"
#include "core/attention/problem_checks.h"
#include "core/base/errors.h"
#include "gpu/kernels/paged_prefill/params.h"
#include "gpu/offload/decode_launch.h"
#include "gpu/offload/mla_launch.h"
#include "gpu/offload/offload_inputs.h"
#include "gpu/offload/prefill_launch.h"

namespace kvscope::gpu {
namespace {

using attention::PagedRows;
using attention::Problem;

constexpr std::int64_t kMostSequences = 65535;  // per launch: the grid's third extent

// --- properties of a problem -----------------------------------------------------------------------------------------

bool is_latent(const Problem& p) {  // V is the first part of K's rows
  return p.k.data == p.v.data && p.v.head_size < p.k.head_size;
}

bool one_query_each(const Problem& p) {
  for (std::int64_t b = 0; b < p.batch; ++b)
    if (attention::query_count(p, b) != 1) return false;
  return true;
}

// mla_decode attends to the keys of a sequence from the first one up to a length.
bool sees_from_the_first(const Problem& p) {
  for (std::int64_t b = 0; b < p.batch; ++b) {
    const std::int64_t queries = attention::query_count(p, b);
    for (std::int64_t i = 0; i < queries; ++i)
      if (attention::visible_keys(p.options, i, queries, p.keys(b)).first != 0) return false;
  }
  return true;
}

// The queries are the last tokens of their sequences, as paged_prefill requires.
bool bottom_right(const Problem& p) {
  if (p.options.alignment == CausalAlignment::bottom_right || p.options.mask == MaskKind::none) return true;
  for (std::int64_t b = 0; b < p.batch; ++b)
    if (attention::query_count(p, b) != p.keys(b)) return false;
  return true;
}

bool same_tables(const Problem& p) {
  if (p.k.table == p.v.table && p.k.table_stride == p.v.table_stride) return true;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    const attention::KeyRange keys = attention::needed_keys(p, b);
    for (std::int64_t page = keys.first / p.k.page_size; page * p.k.page_size < keys.last; ++page)
      if (p.k.table[b * p.k.table_stride + page] != p.v.table[b * p.v.table_stride + page]) return false;
  }
  return true;
}

bool several_scales(const PagedRows& rows) {
  return rows.scales != nullptr && rows.granularity < rows.head_size;
}

// A continuous cache, or an equivalent paged one with one page per sequence.
bool one_page_each(const Problem& p) {
  return p.k.table_stride == 1;
}

// The type in which a decode kernel multiplies: the problem's types if supported, otherwise all f32.
DType decode_type(const Problem& p) {
  const DType k = p.k.dtype;
  if (k != p.v.dtype) return DType::f32;
  const bool unscaled = p.k.scales == nullptr && p.v.scales == nullptr;
  const bool scaled = p.k.scales != nullptr && p.v.scales != nullptr;
  if (k == DType::e4m3 && p.q_dtype == DType::bf16 && (unscaled || scaled)) return k;
  return unscaled && k == p.q_dtype && (k == DType::bf16 || k == DType::f16) ? k : DType::f32;
}

// --- unsupported features --------------------------------------------------------------------------------------------

using Lacks = std::vector<std::string>;

Lacks common_lacks(const Problem& p) {
  Lacks lacks;
  if (!p.options.bias.empty()) lacks.emplace_back("biases of single keys");
  const auto double_scales = [](const PagedRows& rows) {
    return rows.scales != nullptr && rows.scale_dtype == DType::f64;
  };
  if (p.q_dtype == DType::f64 || p.k.dtype == DType::f64 || p.v.dtype == DType::f64 || double_scales(p.k) ||
      double_scales(p.v))
    lacks.emplace_back("f64: f32, f16, bf16 or e4m3");
  if (!same_tables(p)) lacks.emplace_back("a table for K and another for V");
  if (p.k.page_size != p.v.page_size || p.k.blocks != p.v.blocks) lacks.emplace_back("pools of K and V of two shapes");
  if (p.k.heads != p.v.heads) lacks.push_back(fmt::format("{} heads of K and {} of V", p.k.heads, p.v.heads));
  for (const PagedRows* rows : {&p.k, &p.v})
    if (rows->scales != nullptr && (rows->scales_table != nullptr && rows->scales_table != rows->table)) {
      lacks.emplace_back("scales with a separate table");
      break;
    }
  if (!(p.options.scale > 0)) lacks.push_back(fmt::format("scale {}: above 0", p.options.scale));
  return lacks;
}

void add_too_many_queries(const Problem& p, Lacks& lacks) {
  if (p.total_queries() > kMostSequences)
    lacks.push_back(fmt::format("{} queries: at most {} sequences a launch", p.total_queries(), kMostSequences));
}

void add_alibi_and_sinks(const Problem& p, Lacks& lacks) {
  if (!p.options.alibi_slopes.empty()) lacks.emplace_back("ALiBi slopes");
  if (!p.options.sinks.empty()) lacks.emplace_back("attention sinks");
}

Lacks decode_lacks(const Problem& p) {
  Lacks lacks = common_lacks(p);
  add_too_many_queries(p, lacks);
  if (p.k.head_size % kDecodeAnyDims != 0 || p.k.head_size > kDecodeAnyMostHead)
    lacks.push_back(
        fmt::format("head_size {}: multiples of {} up to {}", p.k.head_size, kDecodeAnyDims, kDecodeAnyMostHead));
  if (p.v.head_size != p.k.head_size)
    lacks.push_back(fmt::format("values of {} elements for keys of {}", p.v.head_size, p.k.head_size));
  return lacks;
}

Lacks prefill_lacks(const Problem& p) {
  Lacks lacks = common_lacks(p);
  add_alibi_and_sinks(p, lacks);
  if (p.k.head_size != 64 && p.k.head_size != 128)
    lacks.push_back(fmt::format("head_size {}: 64 and 128", p.k.head_size));
  if (p.v.head_size != p.k.head_size)
    lacks.push_back(fmt::format("values of {} elements for keys of {}", p.v.head_size, p.k.head_size));
  if (p.k.scales != nullptr || p.v.scales != nullptr) lacks.emplace_back("scales");
  if (p.q_dtype != p.k.dtype || p.k.dtype != p.v.dtype || (p.k.dtype != DType::bf16 && p.k.dtype != DType::f16))
    lacks.push_back(fmt::format("{} queries over {} and {}: all bf16 or all f16", name(p.q_dtype), name(p.k.dtype),
                                name(p.v.dtype)));
  if (p.k.page_size < 1 || (prefill::kKeys % p.k.page_size != 0 && p.k.page_size % prefill::kKeys != 0))
    lacks.push_back(fmt::format("page_size {}: a divisor or a multiple of {}", p.k.page_size, prefill::kKeys));
  if (p.options.mask == MaskKind::chunked) lacks.emplace_back("a chunked mask");
  if (p.options.mask == MaskKind::sliding_window && p.options.window_right > 0)
    lacks.push_back(fmt::format("a window of {} keys after the own: none of them or all", p.options.window_right));
  if (!bottom_right(p)) lacks.emplace_back("queries that are not the last of their sequence");
  if (p.batch > kMostSequences) lacks.push_back(fmt::format("{} sequences: at most {}", p.batch, kMostSequences));
  return lacks;
}

Lacks mla_lacks(const Problem& p) {
  Lacks lacks = common_lacks(p);
  add_alibi_and_sinks(p, lacks);
  add_too_many_queries(p, lacks);
  if (p.options.soft_cap) lacks.push_back(fmt::format("a soft cap ({})", *p.options.soft_cap));
  if (!sees_from_the_first(p)) lacks.emplace_back("a mask that hides the first keys of a sequence from a query");
  if (p.k.heads != 1 || p.k.head_size != mla::kRow || p.v.head_size != mla::kValue)
    lacks.push_back(fmt::format("{} heads of {} elements, {} of them values: one of {} and {}", p.k.heads,
                                p.k.head_size, p.v.head_size, mla::kRow, mla::kValue));
  if (p.q_dtype != DType::bf16 || (p.k.dtype != DType::bf16 && p.k.dtype != DType::e4m3))
    lacks.push_back(fmt::format("{} queries over {}: bf16 over bf16 or e4m3", name(p.q_dtype), name(p.k.dtype)));
  if (p.k.dtype == DType::bf16 && p.k.scales != nullptr) lacks.emplace_back("bf16 rows with scales: e4m3 rows");
  if (several_scales(p.k))
    lacks.push_back(fmt::format("several scales a token (granularity {}): one, granularity {} or more", p.k.granularity,
                                mla::kRow));
  if (p.k.scales != p.v.scales || p.k.granularity != p.v.granularity) lacks.emplace_back("scales of K and others of V");
  return lacks;
}

[[noreturn]] void refuse(const Problem& p, bool latent) {
  Lacks all;
  const auto add = [&](const char* kernel, const Lacks& lacks) {
    for (const std::string& lack : lacks) all.push_back(fmt::format("{} does not support {}", kernel, lack));
  };
  if (latent) {
    add("mla_decode", mla_lacks(p));
  } else {
    add(one_page_each(p) ? "continuous_decode" : "paged_decode", decode_lacks(p));
    add("paged_prefill", prefill_lacks(p));
  }
  throw NoKernel(std::move(all));
}

// --- launches --------------------------------------------------------------------------------------------------------

// o and lse of a launch; the queries in another type if the kernel requires it.
struct Places {
  Places(Device& device, const Problem& p, DType query_type, DType out_type)
      : rows(p.total_queries() * p.query_heads),
        q(device.upload("q", converted(p.q_dtype, p.q, rows * p.k.head_size, query_type))),
        o(device, device.allocate(rows * p.v.head_size * size_of(out_type), "o"),
          rows * p.v.head_size * size_of(out_type)),
        lse(device, device.allocate(rows * 4, "lse"), rows * 4) {}
  std::int64_t rows;
  DeviceArray q, o, lse;
};

void note_queries(const Problem& p, DType query_type, OffloadResult& result) {
  if (p.q_dtype != query_type)
    result.notes.push_back(fmt::format("q is {}, the kernel is given {}", name(p.q_dtype), name(query_type)));
}

// False: the launch reported faults, and later launches must not run.
bool run(Device& device, const KernelLaunch& launch, std::span<const std::byte> params, OffloadResult& result) {
  const Outcome outcome = device.launch(launch, params);
  result.outcome.faults.insert(result.outcome.faults.end(), outcome.faults.begin(), outcome.faults.end());
  if (outcome.costs) {
    if (!result.outcome.costs) result.outcome.costs.emplace();
    *result.outcome.costs += *outcome.costs;
  }
  if (result.kernel.empty()) result.kernel = launch.entry;
  return outcome.faults.empty();
}

void take(const Places& places, OffloadResult& result) {
  if (!result.outcome.faults.empty()) return;
  result.o = places.o.download();
  result.lse = places.lse.download_as<float>();
}

// Each query as a separate sequence.
struct DecodeInputs {
  DecodeInputs(Device& device, const Problem& p, UploadedPools pools_there, OffloadResult& result)
      : host(one_for_each_query(p)),
        pools(std::move(pools_there)),
        table(device.upload_values("table", host.table)),
        lengths(device.upload_values("lengths", host.lengths)) {
    for (PagedCache* view : {&pools.k, &pools.v}) {
      view->table = table.as<const std::uint32_t>();
      view->table_stride = static_cast<std::int32_t>(host.stride);
    }
    if (!one_query_each(p)) result.notes.emplace_back("every query is a separate sequence");
    result.notes.insert(result.notes.end(), pools.notes.begin(), pools.notes.end());
  }
  Sequences host;
  UploadedPools pools;
  DeviceArray table, lengths;
};

std::vector<float> times_log2e(std::span<const double> values) {
  std::vector<float> made;
  for (const double x : values) made.push_back(static_cast<float>(x * std::numbers::log2e));
  return made;
}

// Computes the problem with paged_decode or continuous_decode.
OffloadResult by_decode(Device& device, const Problem& p) {
  const DType type = decode_type(p), query_type = type == DType::e4m3 ? DType::bf16 : type;
  const DecodeKind kind{
      .cache = type,
      .head_size = p.k.head_size,
      .several_scales = type == DType::e4m3 && (several_scales(p.k) || several_scales(p.v)),
      .changed_scores = p.options.soft_cap || !sees_from_the_first(p) || !p.options.alibi_slopes.empty()};
  OffloadResult result;
  result.dtype = query_type;
  note_queries(p, query_type, result);
  const Places places(device, p, query_type, result.dtype);
  const std::uint64_t alignment = decode_row_alignment(kind.any_size(), static_cast<int>(size_of(type)));
  const DecodeInputs in(device, p, upload_pools(device, p, type, type == DType::e4m3, alignment), result);
  DecodeStep step;
  step.kernel = one_page_each(p) ? "continuous_decode" : "paged_decode";
  step.cache = type;
  step.out = result.dtype;
  step.k = in.pools.k;
  step.v = in.pools.v;
  step.q = places.q.as<const void>();
  step.lengths = in.lengths.as<const std::uint32_t>();
  step.host_lengths = in.host.lengths;
  step.o = places.o.as<void>();
  step.lse = places.lse.as<float>();
  step.query_heads = static_cast<int>(p.query_heads);
  step.scale = p.options.scale;
  step.soft_cap = p.options.soft_cap.value_or(0);
  DeviceArray firsts, slopes, positions, sinks;
  if (!sees_from_the_first(p)) {
    firsts = device.upload_values("first keys", in.host.firsts);
    step.firsts = firsts.as<const std::uint32_t>();
    step.host_firsts = in.host.firsts;
  }
  if (!p.options.alibi_slopes.empty()) {
    slopes = device.upload_values("ALiBi slopes", times_log2e(p.options.alibi_slopes));
    positions = device.upload_values("positions", in.host.positions);
    step.slopes_log2 = slopes.as<const float>();
    step.positions = positions.as<const std::int32_t>();
  }
  if (!p.options.sinks.empty()) {
    sinks = device.upload_values("sinks", times_log2e(p.options.sinks));
    step.sinks_log2 = sinks.as<const float>();
  }
  const DecodeCall call(device, step);
  if (run(device, call.attend, bytes_of(call.params), result)) run(device, call.combine, bytes_of(call.params), result);
  take(places, result);
  return result;
}

OffloadResult by_mla_decode(Device& device, const Problem& p) {
  OffloadResult result;
  result.dtype = DType::bf16;
  const MlaRows rows = p.k.dtype == DType::bf16 ? MlaRows::bf16 : MlaRows::e4m3;
  const Places places(device, p, DType::bf16, result.dtype);
  const DecodeInputs in(device, p, upload_pools(device, p, p.k.dtype, true, 16), result);
  const auto batch = static_cast<std::int64_t>(in.host.lengths.size());
  const std::int64_t splits = mla_splits(*std::max_element(in.host.lengths.begin(), in.host.lengths.end()),
                                         p.query_heads, batch, device.info().multiprocessors);
  const std::int64_t parts = places.rows * splits;
  const DeviceArray part(device, device.allocate(parts * mla::kValue * 4, "parts"), parts * mla::kValue * 4);
  const DeviceArray part_lse(device, device.allocate(parts * 4, "sums of parts"), parts * 4);
  MlaDecodeParams params;
  params.cache = in.pools.k;
  params.q = places.q.as<const void>();
  params.lengths = in.lengths.as<const std::uint32_t>();
  params.out = places.o.as<void>();
  params.lse = places.lse.as<float>();
  params.part = part.as<float>();
  params.part_lse = part_lse.as<float>();
  params.query_heads = static_cast<std::int32_t>(p.query_heads);
  params.splits = static_cast<std::int32_t>(splits);
  params.scale = static_cast<float>(p.options.scale);
  if (run(device, mla_decode_launch(rows, p.query_heads, batch, splits), bytes_of(params), result))
    run(device, mla_combine_launch(p.query_heads, batch), bytes_of(params), result);
  take(places, result);
  return result;
}

OffloadResult by_paged_prefill(Device& device, const Problem& p) {
  OffloadResult result;
  result.dtype = p.q_dtype;
  const Places places(device, p, p.q_dtype, result.dtype);
  const UploadedPools pools = upload_pools(device, p, p.k.dtype, false, 16);
  result.notes = pools.notes;
  const Sequences sequences = own_sequences(p);
  const DeviceArray table = device.upload_values("table", sequences.table);
  const DeviceArray lengths = device.upload_values("lengths", sequences.lengths);
  const DeviceArray offsets =
      device.upload_values("query offsets", std::vector<std::int32_t>(p.query_offsets.begin(), p.query_offsets.end()));
  std::int64_t most = 1;
  for (std::int64_t b = 0; b < p.batch; ++b) most = std::max(most, attention::query_count(p, b));

  const bool windowed = p.options.mask == MaskKind::sliding_window;
  PagedPrefillParams params;
  params.queries =
      device.encode(prefill_query_map(places.q.address(), p.total_queries(), p.query_heads, p.k.head_size, p.q_dtype));
  params.keys = device.encode(prefill_cache_map(pools.k, p.k.dtype));
  params.values = device.encode(prefill_cache_map(pools.v, p.v.dtype));
  params.cache = pools.k;
  params.cache.table = table.as<const std::uint32_t>();
  params.cache.table_stride = static_cast<std::int32_t>(sequences.stride);
  params.lengths = lengths.as<const std::uint32_t>();
  params.query_offsets = offsets.as<const std::int32_t>();
  params.out = places.o.as<void>();
  params.lse = places.lse.as<float>();
  params.query_heads = static_cast<std::int32_t>(p.query_heads);
  params.causal = p.options.mask == MaskKind::causal || (windowed && p.options.window_right == 0) ? 1 : 0;
  params.window_left = windowed ? static_cast<std::int32_t>(std::max<std::int64_t>(p.options.window_left, -1)) : -1;
  params.scale = static_cast<float>(p.options.scale);
  params.soft_cap = static_cast<float>(p.options.soft_cap.value_or(0));
  run(device, prefill_launch(p.q_dtype, p.k.head_size, p.query_heads, p.batch, most), bytes_of(params), result);
  take(places, result);
  return result;
}

// Converts kernel results (natural logarithms, -infinity without a key) to the problem's conventions.
void in_the_problems_terms(const Problem& p, std::vector<float>& lse) {
  for (float& x : lse) {
    if (std::isinf(x) && x < 0) {
      if (p.options.empty_row == attention::EmptyRow::plus_infinity) x = -x;
    } else if (p.options.lse_base == attention::LseBase::two) {
      x = static_cast<float>(static_cast<double>(x) * std::numbers::log2e);
    }
  }
}

}  // namespace

NoKernel::NoKernel(std::vector<std::string> lacks)
    : UnsupportedError(fmt::format("no kernel computes this attention, {} {}:\n  {}", lacks.size(),
                                   lacks.size() == 1 ? "reason" : "reasons", fmt::join(lacks, "\n  "))),
      lacks_(std::move(lacks)) {}

OffloadResult attention_on(Device& device, const Problem& problem) {
  attention::check_problem(problem);
  OffloadResult result;
  const bool latent = is_latent(problem);
  const bool decodes = decode_lacks(problem).empty(), prefills = prefill_lacks(problem).empty();
  if (latent ? !mla_lacks(problem).empty() : !decodes && !prefills) refuse(problem, latent);
  if (problem.total_queries() == 0) {
    result.notes.emplace_back("there is no query: nothing was launched");
    return result;
  }
  const bool decode_first = decodes && one_query_each(problem);
  result = latent                      ? by_mla_decode(device, problem)
           : decode_first || !prefills ? by_decode(device, problem)
                                       : by_paged_prefill(device, problem);
  in_the_problems_terms(problem, result.lse);
  return result;
}

}  // namespace kvscope::gpu
