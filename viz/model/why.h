// "Why this address": what is asked about the object that is pinned or hovered, and the answer as pieces of text that a
// panel can style. The pieces put together are trace::to_text of the explanation, byte for byte: the command line and
// the panel say the same.      // held by tests/viz/model/why_test.cpp
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <QtCore/QString>

#include "core/trace/explanation.h"
#include "viz/model/document.h"

namespace kvscope::viz {

// What of a token is looked at.
struct WhyPart {
  LayerIdx layer{0};
  HeadIdx head{0};
  DimIdx dim{0};
  KOrV kv = KOrV::k;
  friend bool operator==(const WhyPart&, const WhyPart&) = default;
};

// How far each goes in the scenario: [0, layers), [0, heads), [0, dims); an MLA cache has no V. All 1 without a
// scenario.
struct WhyLimits {
  std::int64_t layers = 1, heads = 1, dims = 1;
  bool has_v = false;
  friend bool operator==(const WhyLimits&, const WhyLimits&) = default;
};
[[nodiscard]] WhyLimits why_limits(const Facts& facts);

struct WhyQuestion {
  std::optional<trace::Question> question;
  QString instead;  // what to say when there is none
};

// The pinned object, else the hovered one, at the document's step. A page stands for its first token, a block for the
// first token of the first page that points at it.
[[nodiscard]] WhyQuestion why_question(const Document& document, const WhyPart& part);

struct WhySpan {
  enum class Style : std::uint8_t { plain, subject, name, formula, numbers, result, remark };
  std::string text;
  Style style = Style::plain;
  Selection leads_to;  // where a click on it goes; none: nowhere
  friend bool operator==(const WhySpan&, const WhySpan&) = default;
};
// `question` is the one that was asked: links name pages and blocks by number, their sequence is the question's.
[[nodiscard]] std::vector<WhySpan> why_spans(const trace::Explanation& explanation, const trace::Question& question);

// Columns that a continued line is indented by: where the formulas stand, and two more. [characters]
[[nodiscard]] std::int64_t why_indent(const trace::Explanation& explanation);

}  // namespace kvscope::viz
