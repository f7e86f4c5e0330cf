#include "core/staging/locate_staged.h"

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/errors.h"
#include "core/staging/addressed_cache.h"
#include "core/staging/detail/batch_row.h"
#include "core/staging/lds/lds_params.h"
#include "core/staging/lds/lds_staging.h"
#include "core/staging/staged_tile.h"
#include "core/staging/tma/tma_staging.h"

namespace kvscope {
namespace {

// One tile, and the conversion of its places to tokens.
class Locator {
 public:
  Locator(const Scenario& scenario, const CacheState& state, const TileQuestion& question)
      : scenario_(scenario),
        question_(question),
        cache_(scenario, state, question.kv, question.layer),
        tile_{require_batch_row(state, question.seq), question.layer, question.head, question.kv, TokIdx{0}, 0} {
    answer_.seq = question.seq;
    answer_.layer = question.layer;
    answer_.head = question.head;
    answer_.kv = question.kv;
    answer_.step = state.step;
    tile_.tokens = tokens_of(state, tile_.batch_row);
    const std::int64_t BN = question.path == StagingPath::tma ? scenario.tile.BN : lds_params(scenario, question.kv).BN;
    check_index(fmt::format("sequence {}: tile", question.seq.value), question.tile, ceil_div(tile_.tokens, BN),
                fmt::format("it has {} tokens at step {}, {} a tile", tile_.tokens, state.step.value, BN));
    tile_.first_token = TokIdx{question.tile * BN};
  }

  [[nodiscard]] trace::Question at_shared(std::int64_t byte) const {
    if (question_.path == StagingPath::lds) {
      const LdsStaging staging = lds();
      return at_lds(staging, staging.element_at_byte(byte, question_.step));
    }
    const auto element = tma().element_at(byte);
    if (!element) {
      throw IndexError(fmt::format("shared byte {} is between two chunks of the tile: no copy writes there", byte));
    }
    return at(element->row, tma_depth_offset(scenario_, question_.dim).value + element->depth);
  }

  [[nodiscard]] std::vector<trace::Question> at_register(WaveIdx wave, int lane, std::int64_t index) const {
    std::vector<trace::Question> found;
    if (question_.path == StagingPath::lds) {
      const LdsStaging staging = lds();
      for (const TileElement& element : staging.elements_at(wave, lane, index, question_.step)) {
        found.push_back(at_lds(staging, element));
      }
      if (found.empty()) {
        throw IndexError(
            fmt::format("register {} of lane {} is set to zero: past the last column of the head", index, lane));
      }
      return found;
    }
    const TmaStaging staging = tma();
    if (!staging.no_fragments().empty()) throw UnsupportedError(staging.no_fragments());
    const std::int64_t offset = tma_depth_offset(scenario_, question_.dim).value;
    for (const TilePlace& place : staging.elements_at(lane, index, question_.step, wave.value)) {
      found.push_back(at(place.row, offset + place.column));
    }
    return found;
  }

 private:
  [[nodiscard]] TmaStaging tma() const {
    return TmaStaging(scenario_, cache_.cache(), tile_, tma_depth_offset(scenario_, question_.dim));
  }
  [[nodiscard]] LdsStaging lds() const {
    return LdsStaging(lds_params(scenario_, question_.kv), cache_.cache(), tile_);
  }

  // A stage may be wider than the staged columns: a copy fills the rest with the bytes after the row in memory.
  [[nodiscard]] trace::Question at_lds(const LdsStaging& staging, const TileElement& element) const {
    const KVBufferConfig& config = staging.config();
    if (element.depth.value >= config.constants().depth) {
      throw IndexError(fmt::format("column {} of the stage is past the {} that are staged: its bytes are padding",
                                   element.depth.value, config.constants().depth));
    }
    return at(element.key.value, config.params().head_dim_offset + element.depth.value);
  }

  [[nodiscard]] trace::Question at(std::int64_t row, std::int64_t dim) const {
    const std::int64_t token = tile_.first_token.value + row;
    if (token >= tile_.tokens) {
      throw IndexError(
          fmt::format("row {} of the tile would be token {}, and sequence {} has {} at step {}: the row holds no "
                      "token and is masked",
                      row, token, question_.seq.value, tile_.tokens, answer_.step.value));
    }
    if (dim >= scenario_.model.head_size) {
      throw IndexError(fmt::format("column {} is past the head's {} elements: TMA filled it with zeros", dim,
                                   scenario_.model.head_size));
    }
    trace::Question answer = answer_;
    answer.token = TokIdx{token};
    answer.dim = DimIdx{dim};
    return answer;
  }

  const Scenario& scenario_;
  const TileQuestion& question_;
  AddressedCache cache_;
  StagedTile tile_;
  trace::Question answer_;
};

}  // namespace

trace::Question locate_shared(const Scenario& scenario, const CacheState& state, const TileQuestion& question,
                              std::int64_t shared_byte) {
  return Locator(scenario, state, question).at_shared(shared_byte);
}

std::vector<trace::Question> locate_register(const Scenario& scenario, const CacheState& state,
                                             const TileQuestion& question, WaveIdx wave, int lane, std::int64_t index) {
  return Locator(scenario, state, question).at_register(wave, lane, index);
}

}  // namespace kvscope
