// Compares populate_rows with PagedKVCache::populate for each tile that fits into a sequence's table row, including
// tiles past its tokens.
#include <fmt/format.h>

#include <optional>
#include <utility>

#include "gpu/kernels/populate_rows/config.h"
#include "gpu/kernels/populate_rows/params.h"
#include "gpu/verify/cache_fixture.h"
#include "gpu/verify/case.h"

namespace kvscope::gpu {
namespace {

using populate_rows::kThreads;
using populate_rows::read_width;

struct Populate {
  CacheShape cache;
  std::int64_t BN = 0;                       // [tokens]
  std::optional<std::int64_t> promise = {};  // every base is a multiple of it; none: the older contract
  // [tokens] from base to base; 0: the smallest distance that the contract allows.
  std::int64_t step = 0;
};

// The alignment of bases in the contract: multiples of the promise. Older contract: of the tile, or any inside a page.
std::int64_t promise_of(const Populate& p) {
  return p.promise.value_or(p.BN > p.cache.page_size ? p.BN : 1);
}

struct Tiles {
  std::vector<std::uint32_t> sequences, bases;
};

Tiles tiles_of(const Populate& p, const CacheFixture& fixture) {
  const std::int64_t P = p.cache.page_size;
  const std::int64_t step = p.step > 0 ? p.step : promise_of(p) > 1 ? promise_of(p) : 7;
  Tiles tiles;
  for (std::int64_t b = 0; b < fixture.sequences(); ++b)
    for (std::int64_t base = 0; base + p.BN <= fixture.table_stride() * P; base += step) {
      if (p.BN < P && base % P + p.BN > P) continue;  // would leave the page
      tiles.sequences.push_back(static_cast<std::uint32_t>(b));
      tiles.bases.push_back(static_cast<std::uint32_t>(base));
    }
  return tiles;
}

Verdict run(const Populate& p, Device& device) {
  CacheFixture fixture(p.cache);
  const UploadedCache there = fixture.upload(device);
  const Tiles tiles = tiles_of(p, fixture);
  const auto count = static_cast<std::int64_t>(tiles.bases.size());
  const PopulateTile tile{.BN = p.BN, .base_alignment = p.promise};
  const PopulatePlan plan = populate_plan(p.BN, p.cache.page_size, p.promise);

  // Inside a page, the offset of the base matters unless the promise covers whole pages.
  const bool inside = plan.num_pages == 1 && !plan.whole_pages;
  const std::int64_t width = read_width(plan.num_pages, promise_of(p), p.cache.page_size);
  Verdict verdict;
  if (!inside && plan.num_pages > 1 && width != plan.chunk) {
    verdict.faults.push_back(fmt::format("reads of {} entries, the model's are {}", width, plan.chunk));
    return verdict;
  }
  const DeviceArray sequences = device.upload_values("sequences", tiles.sequences);
  const DeviceArray bases = device.upload_values("bases", tiles.bases);
  const std::int64_t guard = 64;  // [bytes] after the rows
  const DeviceArray rows = device.filled("rows", count * plan.num_pages * 4 + guard, std::byte{0xcd});
  const PopulateRowsParams params{.cache = there.layer(1, Slot::key),
                                  .sequences = sequences.as<const std::uint32_t>(),
                                  .bases = bases.as<const std::uint32_t>(),
                                  .rows = rows.as<std::uint32_t>(),
                                  .tiles = static_cast<std::int32_t>(count),
                                  .sub_tiles = static_cast<std::int32_t>(plan.num_pages)};
  const KernelLaunch launch{.kernel = "populate_rows",
                            .entry = inside ? "populate_rows_inside" : fmt::format("populate_rows_w{}", width),
                            .grid = {(count + kThreads - 1) / kThreads, 1, 1},
                            .block = {kThreads, 1, 1}};
  if (!verdict.take(device.launch(launch, bytes_of(params)))) return verdict;

  const PagedKVCache cache = fixture.collection().get_key_cache(LayerIdx{1});
  std::vector<std::uint32_t> golden;
  for (std::size_t i = 0; i < tiles.bases.size(); ++i) {
    const PagedRowIndices want =
        cache.populate(tile, SeqIdx{std::int64_t{tiles.sequences[i]}}, TokIdx{std::int64_t{tiles.bases[i]}});
    golden.insert(golden.end(), want.rows().begin(), want.rows().end());
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(guard), std::byte{0xcd});
  bytes.insert(bytes.begin(), std::as_bytes(std::span(golden)).begin(), std::as_bytes(std::span(golden)).end());
  if (const auto fault = first_difference(bytes, rows.download(), 4, [&](std::int64_t i) -> std::string {
        if (i >= count * plan.num_pages) return "behind the last tile";
        const auto t = static_cast<std::size_t>(i / plan.num_pages);
        return fmt::format("sequence {} base {} sub-tile {}", tiles.sequences[t], tiles.bases[t], i % plan.num_pages);
      }))
    verdict.faults.push_back(*fault);
  return verdict;
}

Case make(std::string name, std::string what, const Populate& p, const Budget& budget = {}) {
  return {.kernel = "populate_rows",
          .name = std::move(name),
          .what = std::move(what),
          .budget = budget,
          .run = [p](Device& device) { return run(p, device); }};
}

// 32 tiles of 8 pages, one per lane of a warp, each on a separate sector of the table and of the rows: as many sectors
// as instructions, `reads` of each kind per tile. The lists of tiles: twice 32 words.
Budget sectors(std::int64_t reads) {
  Budget budget;
  budget.sectors = 32 * reads + 32 * reads + 2 * 4;
  return budget;
}

}  // namespace

std::vector<Case> populate_rows_cases() {
  const auto cache = [](std::int64_t page, std::vector<std::int64_t> lengths, std::int64_t heads = 1) {
    return CacheShape{.page_size = page, .kv_heads = heads, .head_size = 8, .lengths = std::move(lengths)};
  };
  std::vector<Case> cases;
  cases.push_back(make("page16_width4_tiny", "a tile of four pages; an empty sequence has the null page's rows",
                       {.cache = cache(16, {70, 0}), .BN = 64, .promise = 64}));
  cases.back().demo = true;
  // The same tiles under weaker and stronger promises: 112 pages and 16 columns of padding are 128 entries, 16 tiles of
  // 8 pages in each of two rows of the table.
  const CacheShape wide = cache(16, {16 * 112, 16 * 110 + 1});
  cases.push_back(make("page16_width1", "a promise of one page: entry by entry",
                       {.cache = wide, .BN = 128, .promise = 16, .step = 128}, sectors(8)));
  cases.push_back(make("page16_width2", "a promise of two pages",
                       {.cache = wide, .BN = 128, .promise = 32, .step = 128}, sectors(4)));
  cases.push_back(make("page16_width4", "a promise of four pages",
                       {.cache = wide, .BN = 128, .promise = 64, .step = 128}, sectors(2)));
  cases.push_back(make("page16_width8", "a promise of eight: two loads of 16 bytes, as sm_90 has none of 32",
                       {.cache = wide, .BN = 128, .promise = 128, .step = 128}, sectors(2)));
  cases.push_back(make("page16_dense_width1", "bases on any page, tiles that overlap",
                       {.cache = cache(16, {15, 16, 17, 300}, 3), .BN = 192, .promise = 16}));
  cases.push_back(make("page16_promise48", "three pages of promise: a read of two would straddle",
                       {.cache = cache(16, {100, 1}), .BN = 64, .promise = 48}));
  cases.push_back(make("page16_twelve_pages", "not a power of two: three reads of four",
                       {.cache = cache(16, {500, 192}, 2), .BN = 192, .promise = 64}));
  cases.push_back(make("page16_old_contract",
                       "no promise: a base is a multiple of the tile, here six pages, three reads of two",
                       {.cache = cache(16, {500, 0, 96}), .BN = 96}));
  cases.push_back(make("page16_old_contract_sixteen_pages", "at most eight entries per read",
                       {.cache = cache(16, {700}), .BN = 256}));
  cases.push_back(make("page1_width8", "pages of one token: 256 entries per tile",
                       {.cache = cache(1, {300, 255, 256, 257}), .BN = 256, .promise = 128}));
  cases.push_back(make("page64_three_pages", "odd page count: entries are read one at a time whatever the promise",
                       {.cache = cache(64, {64, 63, 65, 400}), .BN = 192, .promise = 192}));
  cases.push_back(
      make("page64_sentinels", "entries past the pool give rows past it, in 32 bits: the pool's size is not checked",
           {.cache = {.page_size = 64, .layers = 3, .kv_heads = 2, .head_size = 8, .lengths = {200}, .sentinels = true},
            .BN = 128}));
  cases.push_back(make("page128_one_page", "the promise covers whole pages: the tile begins where its page does",
                       {.cache = cache(128, {127, 128, 129, 600}), .BN = 128, .promise = 128}));
  cases.push_back(make("page256_inside", "a tile inside a page keeps its offset in the page",
                       {.cache = cache(256, {255, 256, 257}, 2), .BN = 64, .promise = 64}));
  cases.push_back(make("page256_inside_old_contract", "no promise: any base inside the page",
                       {.cache = cache(256, {300}), .BN = 64}));
  cases.push_back(make("page256_mla", "one slot is both K and V: half as many rows per block",
                       {.cache = {.page_size = 256, .kv_heads = 1, .head_size = 72, .mla = true, .lengths = {600}},
                        .BN = 512,
                        .promise = 256}));
  return cases;
}

}  // namespace kvscope::gpu
