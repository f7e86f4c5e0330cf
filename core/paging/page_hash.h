// The content of a page as 128 bits: equal hashes mean equal tokens in this page *and* in every page before it, so one
// look-up finds a shared prefix.
//
//   hash(page 0) = mix(seed, runs of page 0)      hash(page k) = mix(hash(page k-1), runs of page k)
//
// A page is hashed as runs: stretches of consecutive tokens of one text. A page's tokens determine its runs (a text
// starts again at position 0, so two stretches never continue each other). Hence equal runs mean equal tokens, and 16
// tokens of one text cost one run. Only full pages are hashed.
//
// Probability that two different prefixes have one hash: among n pages about n^2 / 2^129; for the 9 million pages of an
// hour's traffic 1.2e-25. The mix is not cryptographic: it gives no protection against content chosen to collide.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/index.h"
#include "core/scenario/scenario.h"

namespace kvscope {

struct PageHash {
  std::uint64_t lo = 0, hi = 0;  // both 0: no content
  friend bool operator==(const PageHash&, const PageHash&) = default;
  friend auto operator<=>(const PageHash&, const PageHash&) = default;
};

// The text that a token belongs to. Texts named in a scenario can be shared; the other two belong to one sequence.
enum class TextKind : std::uint8_t { named, own_prompt, generated };

// `length` tokens of a text from position `offset` on.
struct TokenRun {
  TextKind kind = TextKind::named;
  std::uint64_t content = 0;  // the number of the text in the scenario, or of the sequence
  std::int64_t offset = 0;    // [tokens]
  std::int64_t length = 0;    // [tokens]
  friend bool operator==(const TokenRun&, const TokenRun&) = default;
};

[[nodiscard]] PageHash chain(PageHash parent, std::span<const TokenRun> runs);

// One token as a number: equal (up to 2^-64 odds) exactly for equal (kind, content, position).
[[nodiscard]] std::uint64_t token_id(TextKind kind, std::uint64_t content, std::int64_t position);

// The text of one sequence: its prompt, then the tokens it generates. Hashes pages on demand, each page once.
class SequenceText {
 public:
  // Keeps a pointer to `request`. A prompt without content belongs to `prompt_of` alone: the sequence itself, or the
  // parent when the sequence is a sample.
  SequenceText(const Request& request, SeqIdx seq, SeqIdx prompt_of)
      : request_(&request), seq_(seq), prompt_of_(prompt_of) {}
  SequenceText(const Request& request, SeqIdx seq) : SequenceText(request, seq, seq) {}

  // Hash of the page that holds tokens [page * page_size, (page + 1) * page_size). The same page_size in every call.
  PageHash page_hash(PageIdx page, std::int64_t page_size);

  // Ids of tokens [0, count).
  [[nodiscard]] std::vector<std::uint64_t> token_ids(std::int64_t count) const;

  void forget_hashes();

 private:
  // The next at most `limit` tokens that are one run, from the cursor on.
  TokenRun next_run(std::int64_t limit);

  const Request* request_;
  SeqIdx seq_;
  SeqIdx prompt_of_;
  std::vector<PageHash> hashes_;  // [pages hashed so far]
  std::size_t span_ = 0;          // cursor: the span of the prompt ...
  std::int64_t in_span_ = 0;      // ... and the position in it; past the prompt, the position in the generated text
};

}  // namespace kvscope
