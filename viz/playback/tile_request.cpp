#include "viz/playback/tile_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <sstream>
#include <vector>

#include "core/base/errors.h"
#include "core/base/numbers.h"

namespace kvscope::viz {
namespace {

constexpr std::string_view kTileForm =
    "write 'seq 3 token 70 k layer 0 head 1 tma': k or v; tma, lds, gather4 or rope; and numbers for seq, token, "
    "layer, "
    "head and dim";

constexpr std::array<std::string_view, 4> kPathWords{"tma", "lds", "gather4", "rope"};  // by TilePath

[[noreturn]] void reject_word(std::string_view word, std::string_view why) {
  throw InputError("tile", fmt::format("'{}'", word), fmt::format("{}: {}", why, kTileForm));
}

}  // namespace

TileRequest parse_tile_request(std::string_view text, TilePath usual) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::istringstream words(lower);
  TileRequest request;
  request.path = usual;
  std::set<std::string> seen;
  for (std::string word; words >> word;) {
    const bool kv = word == "k" || word == "v", path = std::ranges::find(kPathWords, word) != kPathWords.end();
    if (!seen.insert(kv ? "k or v" : path ? "path" : word).second) reject_word(word, "is given twice");
    if (kv) {
      request.kv = word == "k" ? KOrV::k : KOrV::v;
      continue;
    }
    if (path) {
      request.path = static_cast<TilePath>(std::ranges::find(kPathWords, word) - kPathWords.begin());
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
                     kPathWords[static_cast<std::size_t>(request.path)]);
}

}  // namespace kvscope::viz
