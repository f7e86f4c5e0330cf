#include "viz/model/why.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <QtCore/QCoreApplication>

#include "core/base/report.h"

namespace kvscope::viz {
namespace {

class Why {
  Q_DECLARE_TR_FUNCTIONS(kvscope::viz::Why)
};

WhyQuestion no_question(const QString& instead) {
  return {std::nullopt, instead};
}

// The token that is explained for an object; nullopt if it has none.
struct Token {
  SeqIdx seq;
  TokIdx token;
};
std::optional<Token> token_of(const Selection& selection, const Lit& lit, std::int64_t page_size) {
  switch (selection.kind) {
    case Selection::Kind::token:
      return Token{selection.seq, selection.token};
    case Selection::Kind::page:
      return Token{selection.seq, TokIdx(selection.page.value * page_size)};
    case Selection::Kind::block:
      if (lit.places.empty()) return {};
      return Token{lit.places.front().seq, TokIdx(lit.places.front().page.value * page_size)};
    default:
      return {};
  }
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
        Why::tr("This trace has no scenario: without the model's sizes and the requests no address can be "
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
  if (state.step.value < 0) return no_question(Why::tr("No step has begun here: go to step 0 or later."));
  const std::optional<Token> token = token_of(selection, lit, std::max<std::int64_t>(1, facts.page_size));
  if (!token) {
    return no_question(
        selection.block.value == facts.blocks
            ? Why::tr("The null page holds no token: the lookup table points at it past a sequence's end.")
            : Why::tr("Block %1 holds no token of a running sequence at step %2.")
                  .arg(QString::number(selection.block.value), QString::number(state.step.value)));
  }
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
