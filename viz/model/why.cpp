#include "viz/model/why.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <QtCore/QCoreApplication>

#include "core/base/report.h"
#include "viz/playback/tile_selection.h"

namespace kvscope::viz {
namespace {

class Why {
  Q_DECLARE_TR_FUNCTIONS(kvscope::viz::Why)
};

WhyQuestion no_question(const QString& instead) {
  return {std::nullopt, instead};
}

// The element of the tile that is explained for an object in it: of the first row that holds a token.
std::optional<TileElement> element_of(const Tile& tile, const LitTile& lit) {
  if (lit.element && tile.holds_token(lit.element->row)) return lit.element;
  if (lit.reg) {
    for (const TileElement& element : tile.elements_of(*lit.reg)) {
      if (tile.holds_token(element.row)) return element;
    }
  }
  if (lit.rows.size() == 1 && !lit.chunks.empty()) {
    const TileChunk& chunk = tile.chunks[static_cast<std::size_t>(lit.chunks.front())];
    if (tile.holds_token(chunk.row) && chunk.column >= 0) return TileElement{chunk.row, chunk.column};
  }
  for (const std::int64_t row : lit.rows) {
    if (tile.holds_token(row)) return TileElement{row, 0};
  }
  return std::nullopt;
}

// The token that is explained for an object; nullopt if it has none.
struct Token {
  SeqIdx seq;
  TokIdx token;
};
std::optional<Token> token_of(const Selection& selection, const Lit& lit, const Tile* tile, std::int64_t page_size) {
  if (selection.kind == Selection::Kind::token) return Token{selection.seq, selection.token};
  if (selection.of_tile()) {
    const auto element = tile != nullptr ? element_of(*tile, lit.tile) : std::nullopt;
    if (!element) return {};
    return Token{tile->opened.seq, tile->token_of(element->row)};
  }
  if (selection.kind == Selection::Kind::page) {
    return Token{selection.seq, TokIdx(selection.page.value * page_size)};
  }
  if (lit.places.empty()) return {};
  return Token{lit.places.front().seq, TokIdx(lit.places.front().page.value * page_size)};
}

// Why an object has no address.
QString no_token(const Document& document, const Selection& selection) {
  const Facts& facts = document.run().facts();
  const State& state = document.cursor().state();
  if (selection.kind == Selection::Kind::block) {
    return selection.block.value == facts.blocks
               ? Why::tr("The null page holds no token: the lookup table points at it past a sequence's end.")
               : Why::tr("Block %1 holds no token of a running sequence at step %2.")
                     .arg(QString::number(selection.block.value), QString::number(state.step.value));
  }
  if (selection.of_tile() && selection.kind != Selection::Kind::tile_event &&
      selection.kind != Selection::Kind::tile_layout) {
    return Why::tr("%1. It holds no token, so there is no address to explain: choose another row, chunk or register.")
        .arg(QString::fromStdString(describe(state, facts, document.tile(), selection)));
  }
  return Why::tr("This object has no address: choose a token, a page or a block.");
}

Selection leads_to(const trace::Link& link, const trace::Question& question) {
  if (link.name == "batch row" || link.name == "table row") return of_sequence(question.seq);
  std::int64_t number = 0;
  const bool numbered =
      std::from_chars(link.result.data(), link.result.data() + link.result.size(), number).ec == std::errc();
  if (link.name == "page" && numbered) return of_page(question.seq, PageIdx(number));
  if (link.name == "block" && numbered) return of_block(BlockIdx(number));
  // Every other link is about the token itself: slot, element, byte, row, tile, ...
  return of_token(question.seq, question.token);
}

}  // namespace

WhyLimits why_limits(const Facts& facts) {
  if (!facts.scenario) return {};
  const ModelGeometry& model = facts.scenario->model;
  return {model.layers, model.kv_heads, model.head_size, !model.is_mla};
}

WhyQuestion why_question(const Document& document, const WhyPart& part) {
  const Facts& facts = document.run().facts();
  const State& state = document.cursor().state();
  if (!facts.scenario) {
    return no_question(
        Why::tr("This file has no scenario: without the model's sizes and the requests no address can be "
                "explained."));
  }
  const bool pinned = !document.pinned().none() && document.pinned().kind != Selection::Kind::step;
  const Selection& selection = pinned ? document.pinned() : document.hovered();
  const Lit& lit = pinned ? document.pinned_lit() : document.hovered_lit();
  if (selection.kind == Selection::Kind::sequence)
    return no_question(Why::tr("Sequence %1: choose one of its tokens or pages.").arg(selection.seq.value));
  if (selection.none() || selection.kind == Selection::Kind::step) {
    return no_question(
        Why::tr("Hover over a token, a page or a block: this panel then shows how the address of its byte is computed, "
                "each formula with its numbers. A click keeps the explanation."));
  }
  if (selection.kind == Selection::Kind::tile_axis || selection.kind == Selection::Kind::tile_path) {
    return no_question(QString::fromStdString(
        describe(document.shown_state(), facts, document.tile(), selection, document.tile_source())));
  }
  if (state.step.value < 0) return no_question(Why::tr("No step has begun here: go to step 0 or later."));
  const std::optional<Token> token =
      token_of(selection, lit, document.tile(), std::max<std::int64_t>(1, facts.page_size));
  if (!token) return no_question(no_token(document, selection));
  const WhyLimits limits = why_limits(facts);
  trace::Question question;
  question.seq = token->seq;
  question.token = token->token;
  question.layer = std::min(part.layer, LayerIdx(limits.layers - 1));
  question.head = std::min(part.head, HeadIdx(limits.heads - 1));
  question.dim = std::min(part.dim, DimIdx(limits.dims - 1));
  question.kv = limits.has_v ? part.kv : KOrV::k;
  question.step = state.step;
  return {question, {}};
}

std::optional<WhyPart> why_part(const Document& document) {
  const Tile* const tile = document.tile();
  if (tile == nullptr || !document.pinned().of_tile()) return std::nullopt;
  const auto element = element_of(*tile, document.pinned_lit().tile);
  if (!element) return std::nullopt;
  const std::int64_t first = tile->memory ? tile->memory->first_column : 0;
  const std::int64_t of_cache = tile->source.path == TilePath::rope ? 2 : 1;  // bf16 values of an 8-bit cache
  return WhyPart{tile->opened.layer, tile->opened.head, DimIdx((first + element->column) * of_cache),
                 tile->opened.value ? KOrV::v : KOrV::k};
}

std::vector<WhySpan> why_spans(const trace::Explanation& explanation, const trace::Question& question) {
  using Style = WhySpan::Style;
  const std::size_t width = widest(explanation.links, &trace::Link::name);
  std::vector<WhySpan> spans;
  const auto add = [&](std::string text, Style style, const Selection& target = {}) {
    spans.push_back({std::move(text), style, target});
  };
  // Adds one line under a link's name: the sign at the column of the formulas, then the text.
  const auto under = [&](const char* sign, const std::string& text, Style style) {
    add(std::string(width, ' ') + "  " + sign, Style::plain);
    add(text, style);
    add("\n", Style::plain);
  };
  add(explanation.subject, Style::subject, of_token(question.seq, question.token));
  add("\n", Style::plain);
  for (const trace::Link& link : explanation.links) {
    add("\n", Style::plain);
    add(link.name, Style::name, leads_to(link, question));
    add(std::string(width - link.name.size(), ' ') + "  ", Style::plain);
    add(link.formula, Style::formula);
    add("\n", Style::plain);
    if (!link.numbers.empty()) under("= ", link.numbers, Style::numbers);
    under("= ", link.result, Style::result);
    if (!link.remark.empty()) under("  ", link.remark, Style::remark);
  }
  return spans;
}

std::int64_t why_indent(const trace::Explanation& explanation) {
  return static_cast<std::int64_t>(widest(explanation.links, &trace::Link::name)) + 4;
}

}  // namespace kvscope::viz
