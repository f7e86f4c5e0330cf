#include "core/staging/detail/explain_staging.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <utility>

#include "core/base/errors.h"
#include "core/fragment/wgmma_descriptor.h"
#include "core/layout/swizzle.h"
#include "core/smem/banks.h"
#include "core/staging/lane_registers.h"
#include "core/staging/lds/lds_layout.h"
#include "core/staging/lds/lds_params.h"
#include "core/staging/lds/lds_staging.h"
#include "core/staging/tma/tma_staging.h"

namespace kvscope {
using trace::Link;

namespace {

constexpr std::int64_t kLine = 128;  // [bytes] a swizzle takes its XOR from the line number

// Every fault of the error, for one line of text.
std::string reasons(const GeometryError& error) {
  std::vector<std::string> all;
  for (const Fault& fault : error.faults()) {
    all.push_back(fault.where.empty() ? fault.message : fmt::format("{}: {}", fault.where, fault.message));
  }
  return fmt::format("{}", fmt::join(all, "; "));
}

std::string bits(int bit, std::int64_t element_bytes) {
  return element_bytes == 4 ? "all 32 bits" : fmt::format("bits {}-{}", bit, bit + 8 * element_bytes - 1);
}

// The links of one path, or the reason when it does not support the tile.
template <class Explain>
std::vector<Link> or_why_not(std::string name, std::string formula, const Explain& explain) {
  std::string why;
  try {
    return explain();
  } catch (const GeometryError& error) {
    why = reasons(error);
  } catch (const OverflowError& error) {
    why = error.what();
  } catch (const UnsupportedError& error) {
    why = error.what();
  }
  return {{std::move(name), std::move(formula), "", "none", std::move(why)}};
}

// --- TMA -------------------------------------------------------------------------------------------------------------

constexpr const char* kBoxFormula = "coordinates (depth, head, row) of the box that copies it";

class TmaExplainer {
 public:
  TmaExplainer(const TmaStaging& staging, std::int64_t row, std::int64_t column)
      : staging_(staging), copy_(staging.copy()), row_(row), column_(column) {}

  std::vector<Link> run() && {
    box();
    offset();
    swizzle();
    if (staging_.no_fragments().empty()) {
      ldmatrix();
      descriptor();
    } else {
      links_.push_back({"register", "lane and register of the fragment", "", "none", staging_.no_fragments()});
    }
    return std::move(links_);
  }

 private:
  [[nodiscard]] std::int64_t element_bytes() const { return copy_.element_bytes; }
  [[nodiscard]] std::int64_t chunk() const { return column_ / copy_.gran; }
  [[nodiscard]] std::int64_t shared() const { return staging_.shared_address(row_, column_); }

  void box() {
    const TensorMap& map = staging_.map();
    const auto element = staging_.element_at(shared());
    KVSCOPE_ASSERT(element && element->row == row_ && element->depth == column_ && element->issue >= 0);
    const KvIssue& issue = copy_.issues[static_cast<std::size_t>(element->issue)];
    links_.push_back({"TMA box", kBoxFormula,
                      fmt::format("map [{}, {}, {}], box [{}, {}, {}], {}", map.dims[2], map.dims[1], map.dims[0],
                                  map.box[2], map.box[1], map.box[0], name(copy_.swizzle)),
                      fmt::format("({}, {}, {})", issue.at.at[0], issue.at.at[1], issue.at.at[2]),
                      fmt::format("box row {}, column {}; copy {} of {}, {} B each", row_ % copy_.issue_rows,
                                  column_ % copy_.gran, element->issue, copy_.issues.size(), issue.bytes)});
  }

  void offset() {
    const std::int64_t linear =
        (chunk() * copy_.chunk_stride * copy_.gran + row_ * copy_.gran + column_ % copy_.gran) * element_bytes();
    linear_ = linear;
    links_.push_back({"shared offset",
                      "(chunk*chunk rows*chunk width + row*chunk width + column) * bytes of an element",
                      fmt::format("({}*{}*{} + {}*{} + {}) * {}", chunk(), copy_.chunk_stride, copy_.gran, row_,
                                  copy_.gran, column_ % copy_.gran, element_bytes()),
                      std::to_string(linear),
                      fmt::format("the tile is {} rows of {} chunk{} of {} elements", copy_.tile_rows, copy_.chunks,
                                  copy_.chunks > 1 ? "s" : "", copy_.gran)});
  }

  void swizzle() {
    const std::int64_t span = copy_.swizzle == SwizzleMode::none ? kChunkBytes : bytes(copy_.swizzle);
    const std::int64_t n = span / kChunkBytes, line = linear_ / kLine, at = linear_ % span / kChunkBytes;
    links_.push_back({"swizzle", "16-byte chunk of its row ^ (address / 128) % chunks of a row",
                      fmt::format("{} ^ {} % {}", at, line, n),
                      fmt::format("chunk {}, shared byte {}", shared() % span / kChunkBytes, shared()),
                      copy_.swizzle == SwizzleMode::none ? "no swizzle: the offset is the address"
                                                         : "the tile begins at shared address 0"});
    links_.push_back({"bank", "(shared byte / 4) % 32", fmt::format("({} / 4) % {}", shared(), kNvidiaBanks),
                      std::to_string(shared() / 4 % kNvidiaBanks), ""});
  }

  void ldmatrix() {
    const FragmentInfo& info = staging_.piece().info();
    const TmaStaging::Register reg = staging_.register_of(row_, column_);
    const std::int64_t piece = row_ / info.rows * (staging_.columns() / info.columns) + column_ / info.columns;
    const BankReport banks = bank_report(staging_.read(piece));
    links_.push_back({"ldmatrix", fmt::format("piece of {} keys x {} elements", info.rows, info.columns),
                      fmt::format("row {} / {}, column {} / {}", row_, info.rows, column_, info.columns),
                      fmt::format("piece {} of {}", piece, staging_.pieces()),
                      banks.extra() == 0 ? fmt::format("{} cycles for 4 matrices: no bank conflict", banks.cycles())
                                         : fmt::format("{} cycles for 4 matrices: {} lost to bank conflicts",
                                                       banks.cycles(), banks.extra())});
    const std::int64_t of_piece = info.elements / info.elements_per_register;
    const bool split = staging_.steps() > 1, several = staging_.warps() > 1;
    links_.push_back({"register", several ? std::string(info.name) : fmt::format("{}, of every warp", info.name),
                      fmt::format("{} {}, {} {} of the piece", info.row_name, row_ % info.rows, info.column_name,
                                  column_ % info.columns),
                      fmt::format("{}{}lane {}, register {}, {}", split ? fmt::format("k-step {}, ", reg.step) : "",
                                  several ? fmt::format("warp {}, ", reg.warp) : "", reg.lane, reg.index,
                                  bits(reg.bit, element_bytes())),
                      split || several ? split_text(of_piece)
                                       : fmt::format("a lane holds the tile in {} registers, {} per piece",
                                                     staging_.registers(), of_piece)});
  }

  [[nodiscard]] std::string split_text(std::int64_t of_piece) const {
    std::string text = fmt::format(
        "a lane has {} registers, too few for the tile: {} k-step{} of {} registers, {} per piece, one after the other",
        kLaneRegisters, staging_.steps(), staging_.steps() > 1 ? "s" : "", staging_.registers(), of_piece);
    if (staging_.warps() > 1) {
      text += fmt::format("; {} warps share the {}", staging_.warps(), copy_.operand == KOrV::k ? "keys" : "columns");
    }
    return text;
  }

  // wgmma reads K directly from shared memory, in steps of 32 bytes along the row.
  void descriptor() {
    if (copy_.operand != KOrV::k || copy_.swizzle == SwizzleMode::none || copy_.kind != TmaKind::plain) return;
    const std::int64_t width = bytes(copy_.swizzle);
    WgmmaDescriptor d;
    d.mode = copy_.swizzle;
    d.leading = kChunkBytes;  // ignored for swizzled rows
    d.stride = 8 * width;
    d.start = chunk() * copy_.chunk_stride * width + column_ % copy_.gran * element_bytes() / 32 * 32;
    links_.push_back({"wgmma", "matrix descriptor of the 32 B step of K that holds it", to_text(d),
                      fmt::format("0x{:016x}", encode(d)), "wgmma reads it from shared memory: no register holds K"});
  }

  const TmaStaging& staging_;
  const KvCopy& copy_;
  std::int64_t row_, column_;
  std::int64_t linear_ = 0;
  std::vector<Link> links_;
};

// --- LDS -------------------------------------------------------------------------------------------------------------

class LdsExplainer {
 public:
  LdsExplainer(const LdsStaging& staging, TokIdx token, KeyIdx key, DimIdx depth)
      : staging_(staging), c_(staging.config().constants()), token_(token), key_(key), depth_(depth) {}

  std::vector<Link> run() && {
    tile();
    copy();
    byte();
    registers();
    return std::move(links_);
  }

 private:
  void tile() {
    const KVBufferParams& p = staging_.config().params();
    links_.push_back({"LDS tile", "token / BN, token % BN",
                      fmt::format("{} / {}, {} % {}", token_.value, c_.BN, token_.value, c_.BN),
                      fmt::format("tile {}, key {}", token_.value / c_.BN, key_.value),
                      fmt::format("waves of 64 lanes: {} of them, MMA {}, strips of {}, swizzle {}", c_.waves,
                                  to_text(p.mma_shape), c_.BK, p.swizzle ? p.swizzle->text() : "none")});
  }

  void copy() {
    const LdsCopyPlace at = staging_.copy_of(key_, depth_);
    links_.push_back(
        {"LDS copy", "wave, instruction and lane that copy its 16 bytes",
         fmt::format("vector of depth {} on, tile byte {}", depth_.value / c_.simd_width * c_.simd_width, at.dram_byte),
         fmt::format("wave {}, instruction {}, lane {}", at.wave.value, at.instruction, at.lane),
         fmt::format("pool byte {}; lanes write consecutive 16 B; the source is permuted instead",
                     AddressedCache::byte_of(staging_.origin()) + at.dram_byte)});
  }

  void byte() {
    const LdsLayout layout(staging_.config());
    const std::int64_t block = staging_.block_of(depth_);
    const StageIdx stage = staging_.stage_of(block);
    const std::int64_t logical = layout.logical(stage, key_, DimIdx{depth_.value - block * c_.BK});
    const std::string place = staging_.blocks() == 1 ? std::string("of stage 0")
                                                     : fmt::format("of stage {}, which holds block {} of {} columns",
                                                                   stage.value, block, c_.BK);
    const std::int64_t vector = logical / c_.simd_width;
    const std::int64_t at = staging_.lds_byte(key_, depth_);
    links_.push_back({"LDS byte", "vector ((depth/BK*BN + key)*BK + depth%BK) / vector width, swizzled",
                      fmt::format("vector {} of element {}, moved to {}", vector, logical, at / kLdsVectorBytes),
                      std::to_string(at), place});
    links_.push_back({"LDS bank", "(LDS byte / 4) % 64", fmt::format("({} / 4) % {}", at, kGfx950Banks),
                      std::to_string(at / 4 % kGfx950Banks), "gfx950 has 64 banks"});
  }

  void registers() {
    const std::vector<RegisterPlace> places = staging_.registers_of(key_, depth_);
    KVSCOPE_ASSERT(!places.empty());
    std::vector<std::int64_t> waves;
    for (const RegisterPlace& place : places) waves.push_back(place.wave.value);
    links_.push_back(
        {"wave register", "lane and 32-bit register of the operand's register tile",
         fmt::format("key {}, depth {}", key_.value, depth_.value),
         fmt::format("{}lane {}, register {}, {}",
                     staging_.steps() > 1 ? fmt::format("k-step {}, ", places[0].step) : "", places[0].lane,
                     places[0].index, bits(places[0].bit, c_.element_bytes)),
         fmt::format("in wave{} {}; a lane holds {} registers{}", waves.size() > 1 ? "s" : "", fmt::join(waves, ", "),
                     staging_.registers(),
                     staging_.steps() > 1 ? fmt::format(", loaded {} times: {} strip{} a k-step", staging_.steps(),
                                                        c_.register_strips, c_.register_strips > 1 ? "s" : "")
                                          : "")});
  }

  const LdsStaging& staging_;
  const KVBufferConstants& c_;
  TokIdx token_;
  KeyIdx key_;
  DimIdx depth_;
  std::vector<Link> links_;
};

}  // namespace

std::vector<Link> explain_tma(const Scenario& scenario, const AddressedCache& cache, StagedTile tile, TokIdx token,
                              DimIdx dim) {
  return or_why_not("TMA box", kBoxFormula, [&] {
    tile.first_token = tile_start(token, scenario.tile.BN);
    const DimIdx offset = tma_depth_offset(scenario, dim);
    const TmaStaging staging(scenario, cache.cache(), tile, offset);
    return TmaExplainer(staging, token - tile.first_token, dim - offset).run();
  });
}

std::vector<Link> explain_lds(const Scenario& scenario, const AddressedCache& cache, StagedTile tile, TokIdx token,
                              DimIdx dim) {
  return or_why_not("LDS tile", "the tile as waves stage it", [&] {
    const KVBufferParams params = lds_params(scenario, tile.kv);
    tile.first_token = tile_start(token, params.BN);
    const LdsStaging staging(params, cache.cache(), tile);
    const std::int64_t first = params.head_dim_offset, end = first + params.depth;
    if (dim.value < first || dim.value >= end) {
      throw GeometryError(fmt::format("column {} is not staged: head_dim_offset {} and depth {} stage columns [{}, {})",
                                      dim.value, first, params.depth, first, end));
    }
    return LdsExplainer(staging, token, KeyIdx{token - tile.first_token}, DimIdx{dim.value - first}).run();
  });
}

}  // namespace kvscope
