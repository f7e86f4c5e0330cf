#include "viz/playback/tile_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <sstream>
#include <vector>

#include "core/base/errors.h"
#include "core/base/numbers.h"

namespace kvscope::viz {
namespace {

constexpr std::string_view kTileForm =
    "write 'seq 3 token 70 k layer 0 head 1 tma': k or v, tma or lds, and numbers for seq, token, layer, head and dim";

[[noreturn]] void reject_word(std::string_view word, std::string_view why) {
  throw InputError("tile", fmt::format("'{}'", word), fmt::format("{}: {}", why, kTileForm));
}

}  // namespace

TileRequest parse_tile_request(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::istringstream words(lower);
  TileRequest request;
  std::set<std::string> seen;
  for (std::string word; words >> word;) {
    const bool kv = word == "k" || word == "v", path = word == "tma" || word == "lds";
    if (!seen.insert(kv ? "k or v" : path ? "tma or lds" : word).second) reject_word(word, "is given twice");
    if (kv) {
      request.kv = word == "k" ? KOrV::k : KOrV::v;
      continue;
    }
    if (path) {
      request.path = word == "tma" ? TilePath::tma : TilePath::lds;
      continue;
    }
    static const std::set<std::string, std::less<>> kNames{"seq", "token", "layer", "head", "dim"};
    if (!kNames.contains(word)) reject_word(word, "is no word of a tile");
    std::string digits;
    words >> digits;
    const auto number = whole_number<std::int64_t>(digits);
    if (!number || *number < 0) reject_word(word, fmt::format("needs a number, not '{}'", digits));
    if (word == "seq") request.seq = SeqIdx{*number};
    if (word == "token") request.token = TokIdx{*number};
    if (word == "layer") request.layer = LayerIdx{*number};
    if (word == "head") request.head = HeadIdx{*number};
    if (word == "dim") request.dim = DimIdx{*number};
  }
  if (!seen.contains("seq")) reject_word(text, "names no sequence");
  return request;
}

std::string to_text(const TileRequest& request) {
  return fmt::format("seq {} token {} {} layer {} head {} dim {} {}", request.seq.value, request.token.value,
                     request.kv == KOrV::k ? "k" : "v", request.layer.value, request.head.value, request.dim.value,
                     request.path == TilePath::tma ? "tma" : "lds");
}

}  // namespace kvscope::viz
