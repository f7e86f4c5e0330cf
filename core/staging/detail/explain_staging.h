// The second half of an explanation: from a token of a tile to shared memory, bank, lane and register, by TMA and by
// the waves of the LDS path. core/staging/explain.h appends it after the row. A path that does not support the tile
// gives one link with the reason.
#pragma once

#include <vector>

#include "core/scenario/scenario.h"
#include "core/staging/addressed_cache.h"
#include "core/staging/staged_tile.h"
#include "core/trace/explanation.h"

namespace kvscope {

// Each path computes `tile.first_token` and the tile's rows itself: `tile` names the batch row, layer, head, K or V and
// the number of tokens. Links: TMA box, shared offset, swizzle, bank, ldmatrix, register | LDS tile, LDS copy, LDS
// byte, LDS bank, wave register.
[[nodiscard]] std::vector<trace::Link> explain_tma(const Scenario& scenario, const AddressedCache& cache,
                                                   StagedTile tile, TokIdx token, DimIdx dim);
[[nodiscard]] std::vector<trace::Link> explain_lds(const Scenario& scenario, const AddressedCache& cache,
                                                   StagedTile tile, TokIdx token, DimIdx dim);

}  // namespace kvscope
