// A cache step made by hand, with values that are exact in every type: small integers that depend on token, head and
// dim. Slots without a token, other sequences' blocks and the null page are poisoned.
#pragma once

#include <cstddef>
#include <ostream>
#include <string>
#include <vector>

#include "core/base/convert.h"
#include "core/base/errors.h"
#include "core/paging/cache_state.h"
#include "core/pipeline/layer_data.h"
#include "core/scenario/pool_extents.h"
#include "core/scenario/scenario.h"
#include "core/staging/staged_tile.h"

namespace kvscope::testing_support {

struct StagingCase {
  DType dtype = DType::bf16;
  std::int64_t page = 16;  // 0: continuous
  std::int64_t tokens = 150;
  std::int64_t head_size = 128;
  SwizzleMode swizzle = SwizzleMode::b128;
  LdsMma mma = LdsMma::shipped;
  LdsSwizzle lds_swizzle = LdsSwizzle::shipped;
  KOrV kv = KOrV::k;
};

inline std::ostream& operator<<(std::ostream& out, const StagingCase& c) {
  return out << name(c.dtype) << ", page " << c.page << ", " << c.tokens << " tokens, head " << c.head_size << ", "
             << name(c.swizzle) << ", mma " << static_cast<int>(c.mma) << ", LDS swizzle "
             << static_cast<int>(c.lds_swizzle) << (c.kv == KOrV::k ? ", K" : ", V");
}

// -7 .. 7: exact in every type, and so is every sum of a few hundred products.
inline double exact_value(std::int64_t token, std::int64_t head, std::int64_t dim, KOrV kv) {
  return static_cast<double>((token * 7 + head * 5 + dim * 3 + (dim / 8) * 4 + (kv == KOrV::k ? 0 : 11)) % 15 - 7);
}

// Two sequences; the tests use the second one, number 9. Its pages are in reverse order and between those of the other.
struct StagingStep {
  Scenario scenario;
  CacheState state;
  LayerData data;

  static constexpr SeqIdx kSeq{9};
  static constexpr SeqIdx kRow{1};
  static constexpr HeadIdx kHead{1};
  static constexpr LayerIdx kLayer{0};

  explicit StagingStep(const StagingCase& c) {
    scenario.name = "staging";
    scenario.model = {"custom", 1, 4, 2, c.head_size, false, c.head_size};
    scenario.cache.dtype = c.dtype;
    scenario.cache.kind = c.page > 0 ? CacheKind::paged : CacheKind::continuous;
    const std::int64_t capacity = c.tokens + 10;
    const std::int64_t pages = c.page > 0 ? (capacity + c.page - 1) / c.page : 1;
    scenario.cache.page_size = c.page > 0 ? c.page : 16;
    scenario.cache.max_tokens = c.page > 0 ? 0 : 320;
    scenario.cache.blocks = 2 * pages + 1;
    scenario.tile.BN = c.page == 1 ? 16 : 64;
    scenario.tile.BK = 64;
    scenario.tile.swizzle = c.swizzle;
    scenario.lds.mma = c.mma;
    scenario.lds.swizzle = c.lds_swizzle;

    state.step = StepIdx{3};
    state.page_size = c.page;
    state.blocks = scenario.cache.blocks;
    state.batch = {SeqIdx{4}, kSeq};
    state.cache_lengths = {5, static_cast<std::uint32_t>(c.tokens - 1)};
    state.new_tokens = {1, 1};
    state.max_seq_length = 1;
    state.max_cache_length = static_cast<std::uint32_t>(c.tokens);
    state.table_columns = c.page > 0 ? (pages + 7) / 8 * 8 + 16 : 1;
    state.lookup_table.assign(static_cast<std::size_t>(2 * state.table_columns),
                              static_cast<std::uint32_t>(state.blocks));
    for (std::int64_t row = 0; row < 2; ++row) {
      for (std::int64_t page = 0; page < pages; ++page) {
        state.lookup_table[static_cast<std::size_t>(row * state.table_columns + page)] =
            static_cast<std::uint32_t>(2 * (pages - 1 - page) + row);
      }
    }
    fill(c);
  }

  [[nodiscard]] std::int64_t slots() const {
    return scenario.cache.kind == CacheKind::paged ? scenario.cache.page_size : scenario.cache.max_tokens;
  }

  // From the axes of the pool alone, without the cache types. [bytes]
  [[nodiscard]] std::int64_t pool_byte(std::int64_t token, HeadIdx head, std::int64_t dim, KOrV kv) const {
    const std::int64_t block =
        state.lookup_table[static_cast<std::size_t>(kRow.value * state.table_columns + token / slots())];
    const std::int64_t heads = scenario.model.kv_heads, size = scenario.model.head_size;
    const std::int64_t element =
        (((block * 2 + (kv == KOrV::k ? 0 : 1)) * slots() + token % slots()) * heads + head.value) * size + dim;
    return element * size_of(scenario.cache.dtype);
  }

  [[nodiscard]] StagedTile tile(KOrV kv, std::int64_t first_token) const {
    return {kRow, kLayer, kHead, kv, TokIdx{first_token}, std::int64_t{state.cache_lengths[1]} + 1};
  }

 private:
  void fill(const StagingCase& c) {
    const Shape<6> extents = pool_extents(scenario, 1, scenario.model.head_size);
    data.blocks.dtype = c.dtype;
    data.blocks.shape.assign(extents.begin(), extents.end());
    // NaN of every type, or, for V, whose poison is multiplied by zero, a small finite number.
    const std::byte poison{c.kv == KOrV::k ? std::uint8_t{0xFF} : std::uint8_t{0x11}};
    data.blocks.bytes = std::vector<std::byte>(static_cast<std::size_t>(count_of(extents) * size_of(c.dtype)), poison);
    for (std::int64_t token = 0; token < c.tokens; ++token) {
      for (HeadIdx head{0}; head.value < scenario.model.kv_heads; ++head) {
        for (std::int64_t dim = 0; dim < c.head_size; ++dim) {
          store_from_double(c.dtype, exact_value(token, head.value, dim, c.kv),
                            data.blocks.bytes.data() + pool_byte(token, head, dim, c.kv), Overflow::saturate);
        }
      }
    }
  }
};

}  // namespace kvscope::testing_support
