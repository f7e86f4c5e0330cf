#include "viz/playback/tile.h"

#include <algorithm>
#include <iterator>

#include "core/layout/swizzle.h"

namespace kvscope::viz {
namespace {

std::span<const std::int32_t> list_of(const std::vector<std::int32_t>& first, const std::vector<std::int32_t>& lists,
                                      std::int64_t key) {
  const auto k = static_cast<std::size_t>(key);
  if (k + 1 >= first.size()) return {};
  return std::span(lists).subspan(static_cast<std::size_t>(first[k]),
                                  static_cast<std::size_t>(first[k + 1] - first[k]));
}

}  // namespace

std::vector<TileElement> elements(const TileFill& fill) {
  std::vector<TileElement> all;
  for (std::int64_t e = 0; e < fill.elements; ++e) {
    all.push_back({fill.row + (fill.down ? e : 0), fill.column + (fill.down ? 0 : e)});
  }
  return all;
}

std::int64_t Tile::rows_of_copy() const {
  if (!map || copies.empty()) return 0;
  const std::int64_t row = map->box_columns * map->box_heads * element_bytes_;
  return row > 0 ? copies.front().bytes / row : 0;
}

std::optional<std::int64_t> Tile::row_of(SeqIdx seq, TokIdx token) const {
  const std::int64_t row = token - opened.first_token;
  if (seq != opened.seq || !holds_token(row)) return std::nullopt;
  return row;
}

std::optional<std::int64_t> Tile::page_of(std::int64_t row) const {
  if (!memory || !holds_token(row)) return std::nullopt;
  const PageIdx page{token_of(row).value / memory->page_size};
  const auto found = std::ranges::find(pages, page, &trace::TilePage::page);
  if (found == pages.end()) return std::nullopt;
  return found - pages.begin();
}

std::int64_t Tile::slot_of(std::int64_t row) const {
  return token_of(row).value % memory->page_size;
}

std::optional<std::int64_t> Tile::chunk_of(TileElement element) const {
  if (chunk_columns_ == 0 || !inside(element)) return std::nullopt;
  const std::int64_t across = (columns() + chunk_columns_ - 1) / chunk_columns_;
  const std::int32_t chunk =
      chunk_grid_[static_cast<std::size_t>(element.row * across + element.column / chunk_columns_)];
  if (chunk < 0) return std::nullopt;
  return chunk;
}

std::optional<std::int64_t> Tile::chunk_at(std::int64_t byte) const {
  const std::int64_t at = byte / kTileChunkBytes;
  if (byte < 0 || at >= std::ssize(chunk_shared_)) return std::nullopt;
  const std::int32_t chunk = chunk_shared_[static_cast<std::size_t>(at)];
  if (chunk < 0) return std::nullopt;
  return chunk;
}

std::int64_t Tile::shared_byte(TileElement element) const {
  const auto chunk = chunk_of(element);
  if (!chunk) return -1;
  const TileChunk& of = chunks[static_cast<std::size_t>(*chunk)];
  return of.shared + (element.column - of.column) * element_bytes_;
}

std::int64_t Tile::pool_byte(TileElement element) const {
  const auto chunk = chunk_of(element);
  if (!chunk || chunks[static_cast<std::size_t>(*chunk)].pool < 0) return -1;
  const TileChunk& of = chunks[static_cast<std::size_t>(*chunk)];
  return of.pool + (element.column - of.column) * element_bytes_;
}

std::span<const std::int32_t> Tile::fills_of(TileElement element) const {
  if (!inside(element)) return {};
  return list_of(fill_first_, fill_of_, element.row * columns() + element.column);
}

std::span<const std::int32_t> Tile::fills_in(const TileRegister& reg) const {
  const auto found = std::ranges::lower_bound(registers_, reg);
  if (found == registers_.end() || *found != reg) return {};
  return list_of(register_first_, register_fill_, found - registers_.begin());
}

std::vector<TileElement> Tile::elements_of(const TileRegister& reg) const {
  std::vector<std::int32_t> of(fills_in(reg).begin(), fills_in(reg).end());
  std::ranges::sort(of, {}, [&](std::int32_t n) { return fills[static_cast<std::size_t>(n)].bit; });
  std::vector<TileElement> all;
  for (const std::int32_t n : of) {
    for (const TileElement& element : viz::elements(fills[static_cast<std::size_t>(n)])) all.push_back(element);
  }
  return all;
}

std::int64_t Tile::unswizzled(std::int64_t byte) const {
  if (!shared || shared->swizzle_bits <= 0) return byte;
  return Swizzle(static_cast<int>(shared->swizzle_bits), static_cast<int>(shared->swizzle_base),
                 static_cast<int>(shared->swizzle_shift))(byte);
}

}  // namespace kvscope::viz
