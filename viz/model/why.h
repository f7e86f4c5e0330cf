// "Why this address": the question about the pinned or hovered object, and the answer as pieces of text that a panel
// can style. The pieces together equal trace::to_text of the explanation byte for byte, so the panel and the command
// line show the same text.      // held by tests/viz/model/why_test.cpp
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <QtCore/QString>

#include "core/trace/explanation.h"
#include "viz/model/document.h"

namespace kvscope::viz {

// The element of a token that is explained.
struct WhyPart {
  LayerIdx layer{0};
  HeadIdx head{0};
  DimIdx dim{0};
  KOrV kv = KOrV::k;
  friend bool operator==(const WhyPart&, const WhyPart&) = default;
};

// The ranges of WhyPart in the scenario: [0, layers), [0, heads), [0, dims); an MLA cache has no V. All are 1 without a
// scenario.
struct WhyLimits {
  std::int64_t layers = 1, heads = 1, dims = 1;
  bool has_v = false;
  friend bool operator==(const WhyLimits&, const WhyLimits&) = default;
};
[[nodiscard]] WhyLimits why_limits(const Facts& facts);

struct WhyQuestion {
  std::optional<trace::Question> question;
  QString instead;  // the text to show if there is no question
};

// The question about the pinned object, else the hovered one, at the document's step. For a page it is about the page's
// first token, for a block about the first token of the first page that is stored in it, for an object of the tile
// about its first token.
[[nodiscard]] WhyQuestion why_question(const Document& document, const WhyPart& part);

// The element that an object of the tile names: the first that a register or a chunk holds, column 0 of a row. Nothing:
// no object of the tile is selected, or it holds no token.
[[nodiscard]] std::optional<WhyPart> why_part(const Document& document);

struct WhySpan {
  enum class Style : std::uint8_t { plain, subject, name, formula, numbers, result, remark };
  std::string text;
  Style style = Style::plain;
  Selection leads_to;  // the object that a click on it selects; none: not clickable
  friend bool operator==(const WhySpan&, const WhySpan&) = default;
};
// `question` is the question that `explanation` answers: links name pages by number, and their sequence is the
// question's.
[[nodiscard]] std::vector<WhySpan> why_spans(const trace::Explanation& explanation, const trace::Question& question);

// Indentation of a continued line: the column of the formulas plus two. [characters]
[[nodiscard]] std::int64_t why_indent(const trace::Explanation& explanation);

}  // namespace kvscope::viz
