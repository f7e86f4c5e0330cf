// Lab 13: a decode kernel over a paged cache. Its output is compared with the golden reference, within the bound of f32
// arithmetic. A wrong output is explained by recomputing the step with one typical error at a time.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "apps/labs/graders.h"
#include "apps/labs/kernel_run.h"
#include "apps/labs/report_text.h"
#include "apps/labs/row_accesses.h"
#include "core/attention/bounds.h"
#include "core/attention/reference.h"
#include "core/base/report.h"

namespace kvscope::labs {
namespace {

constexpr std::int64_t kDim = 64, kDecodeLayers = 2, kDecodeBlocks = 48;
constexpr double kTrafficLimit = 1.25;
constexpr double kRounded = 0x1p-8;  // of 1 + the value: weights that are rounded to bf16 differ by less
constexpr std::int64_t kHandDims = 2;

struct DecodeCase {
  std::int64_t batch = 1, heads = 1, kv_heads = 1, page_size = 16, layer = 1, columns = 0;
  float scale = 0.125F;
  std::vector<std::int64_t> lengths;
  std::vector<std::uint32_t> table;    // [batch, columns]
  std::vector<std::uint16_t> pool, q;  // bf16
  bool by_hand = false;                // few digits in the first kHandDims dims, and 0 in the others

  [[nodiscard]] std::int64_t token() const { return kv_heads * kDim; }           // [elements]
  [[nodiscard]] std::int64_t layer_rows() const { return page_size * token(); }  // [elements] of K or V of a layer
  [[nodiscard]] std::int64_t block_stride() const { return 2 * kDecodeLayers * layer_rows(); }
  [[nodiscard]] std::int64_t first_k() const { return layer * layer_rows(); }
  [[nodiscard]] std::int64_t first_v() const { return (kDecodeLayers + layer) * layer_rows(); }
  [[nodiscard]] std::int64_t group() const { return heads / kv_heads; }
  [[nodiscard]] std::int64_t block(std::int64_t sequence, std::int64_t page) const {
    return table[static_cast<std::size_t>(sequence * columns + page)];
  }
};

double bf16_value(std::uint16_t bits) {
  return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16));
}

struct DecodeShape {
  std::int64_t batch, heads, kv_heads, page_size, pages;  // pages: at most this many of a sequence
  bool ragged = false;                                    // the last page is not full
  double size = 1;                                        // of q's elements
  bool by_hand = false;                                   // numbers to compute with on paper
  bool growing = false;                                   // K of a sequence's last page is 4 times as large
};

// Multiplies K of the last page of each sequence by 4, so that the largest score grows there: a loop over blocks of
// keys must rescale what it has summed.
void enlarge_last_page(DecodeCase& made) {
  constexpr std::uint16_t kExponent = 0x7f80, kTimesFour = 2 << 7;
  for (std::int64_t b = 0; b < made.batch; ++b) {
    const std::int64_t page = (made.lengths[static_cast<std::size_t>(b)] - 1) / made.page_size;
    const std::int64_t first = made.first_k() + made.block(b, page) * made.block_stride();
    for (std::int64_t e = first; e < first + made.layer_rows(); ++e) {
      std::uint16_t& bits = made.pool[static_cast<std::size_t>(e)];
      if ((bits & kExponent) != 0) bits = static_cast<std::uint16_t>(bits + kTimesFour);
    }
  }
}

DecodeCase make_decode(const CounterRng& random, const DecodeShape& shape) {
  std::uint64_t at = 0;
  const auto pick = [&](std::int64_t low, std::int64_t high) { return random.integer(at++, low, high); };
  DecodeCase made;
  made.batch = shape.batch;
  made.heads = shape.heads;
  made.kv_heads = shape.kv_heads;
  made.page_size = shape.page_size;
  made.columns = shape.pages + 3;
  made.table.assign(static_cast<std::size_t>(made.batch * made.columns), static_cast<std::uint32_t>(kDecodeBlocks));
  std::set<std::int64_t> used{0};
  for (std::int64_t b = 0; b < made.batch; ++b) {
    const std::int64_t pages = b == 0 ? shape.pages : pick(std::max<std::int64_t>(1, shape.pages - 2), shape.pages);
    made.lengths.push_back(pages * made.page_size - (shape.ragged ? pick(1, made.page_size - 1) : 0));
    for (std::int64_t page = 0; page < pages; ++page) {
      std::int64_t block = pick(1, kDecodeBlocks - 4);
      while (!used.insert(block).second) block = pick(1, kDecodeBlocks - 4);
      made.table[static_cast<std::size_t>(b * made.columns + page)] = static_cast<std::uint32_t>(block);
    }
  }
  made.by_hand = shape.by_hand;
  if (made.by_hand) made.scale = 0.5F;
  // Element `e` of an array. By hand: a multiple of a quarter of `size`.
  const auto number = [&](std::uint64_t first, std::size_t e, double size) {
    auto value = static_cast<float>(2 * random.uniform(first + e) - 1);
    if (made.by_hand) value = e % kDim < kHandDims ? std::round(4 * value) / 4 + 0.0F : 0;  // + 0: no number is -0
    return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value * static_cast<float>(size)) >> 16);
  };
  made.pool.resize(static_cast<std::size_t>(kDecodeBlocks * made.block_stride()));
  for (std::size_t e = 0; e < made.pool.size(); ++e) made.pool[e] = number(1'000'000, e, 1);
  made.q.resize(static_cast<std::size_t>(made.batch * made.heads * kDim));
  for (std::size_t e = 0; e < made.q.size(); ++e) made.q[e] = number(100'000'000, e, 2 * shape.size);
  if (shape.growing) enlarge_last_page(made);
  return made;
}

LabCall decode_call(const DecodeCase& made) {
  LabCall call;
  call.entry = "decode";
  call.grid = {made.batch * made.heads, 1, 1};
  call.block = {128, 1, 1};
  std::vector<std::int32_t> lengths(made.lengths.begin(), made.lengths.end());
  const auto out_bytes = static_cast<std::size_t>(made.batch * made.heads * kDim * 4);
  call.arrays = {{"q", lab_bytes(made.q)},
                 {"pool", lab_bytes(made.pool)},
                 {"table", lab_bytes(made.table)},
                 {"lengths", lab_bytes(lengths)},
                 {"out", std::vector<std::byte>(out_bytes, kUnwritten), false}};
  call.params = {AddressOf{0},
                 AddressOf{1, made.first_k() * 2},
                 AddressOf{1, made.first_v() * 2},
                 AddressOf{2},
                 AddressOf{3},
                 AddressOf{4},
                 static_cast<std::uint64_t>(made.heads),
                 static_cast<std::uint64_t>(made.kv_heads),
                 static_cast<std::uint64_t>(made.page_size),
                 static_cast<std::uint64_t>(made.columns),
                 static_cast<std::uint64_t>(made.block_stride()),
                 static_cast<double>(made.scale)};
  return call;
}

// The same parameters. A token has kv_heads * 64 elements, so block_stride is a multiple of 16.
TritonTask decode_in_triton() {
  return {"decode",
          {{"q", "*bf16", 16},
           {"k", "*bf16", 16},
           {"v", "*bf16", 16},
           {"table", "*i32", 16},
           {"lengths", "*i32", 16},
           {"out", "*fp32", 16},
           {"heads", "i32"},
           {"kv_heads", "i32"},
           {"page_size", "i32"},
           {"columns", "i32"},
           {"block_stride", "i64", 16},
           {"scale", "fp32"}}};
}

attention::Result golden_of(const DecodeCase& made) {
  attention::PagedRows rows;
  rows.dtype = DType::bf16;
  rows.blocks = kDecodeBlocks;
  rows.page_size = made.page_size;
  rows.heads = made.kv_heads;
  rows.head_size = kDim;
  rows.block_stride = made.block_stride();
  rows.token_stride = made.token();
  rows.head_stride = kDim;
  rows.table = made.table.data();
  rows.table_stride = made.columns;
  std::vector<std::int64_t> offsets;
  for (std::int64_t b = 0; b <= made.batch; ++b) offsets.push_back(b);
  attention::Problem problem;
  problem.batch = made.batch;
  problem.query_heads = made.heads;
  problem.q = reinterpret_cast<const std::byte*>(made.q.data());
  problem.q_dtype = DType::bf16;
  problem.query_offsets = offsets;
  problem.key_lengths = made.lengths;
  problem.k = problem.v = rows;
  problem.k.data = reinterpret_cast<const std::byte*>(made.pool.data() + made.first_k());
  problem.v.data = reinterpret_cast<const std::byte*>(made.pool.data() + made.first_v());
  problem.options.scale = static_cast<double>(made.scale);
  return attention::reference(problem);
}

// A decode step with one typical error. An empty function: no error in that part.
struct DecodeError {
  std::string message;
  using Head = std::function<std::int64_t(const DecodeCase&, std::int64_t head)>;
  using Keys = std::function<std::int64_t(const DecodeCase&, std::int64_t length)>;
  using Place = std::function<std::int64_t(const DecodeCase&, std::int64_t sequence, std::int64_t key)>;
  Head kv_head = {};
  Keys keys = {};
  Place place = {};          // [elements] of a token from the layer's first
  bool head_of_row = false;  // the KV head is computed from the row of out
  Head q_head = {};
  Head head_place = {};          // [elements] of a KV head from its token
  bool bits_as_numbers = false;  // of bf16
  bool scaled = true, normalized = true, softmax = true, base_two = false, v_is_k = false, one_query = false;
  std::int64_t tile = 0;                               // keys of a block, for the errors of a loop over blocks:
  bool output_rescaled = true, total_rescaled = true;  // when the largest score grows
  bool padding_is_zero = false;                        // keys past the length fill the last block with scores of 0
  int hint = 1;
};

std::int64_t right_place(const DecodeCase& made, std::int64_t sequence, std::int64_t key) {
  return made.block(sequence, key / made.page_size) * made.block_stride() + key % made.page_size * made.token();
}

// The largest score of the blocks up to that of each key.
std::vector<double> maxima_of_blocks(const std::vector<double>& scores, std::int64_t tile) {
  std::vector<double> maxima(scores.size());
  const std::size_t block = tile == 0 ? scores.size() : static_cast<std::size_t>(tile);
  double largest = -std::numeric_limits<double>::infinity();
  for (std::size_t first = 0; first < scores.size(); first += block) {
    const std::size_t last = std::min(first + block, scores.size());
    for (std::size_t key = first; key < last; ++key) largest = std::max(largest, scores[key]);
    std::fill(maxima.begin() + static_cast<std::ptrdiff_t>(first), maxima.begin() + static_cast<std::ptrdiff_t>(last),
              largest);
  }
  return maxima;
}

// Keys past the length in the last block. Example: 37 keys in blocks of 16 -> 11.
std::int64_t padding(std::int64_t keys, std::int64_t tile) {
  return (tile - keys % tile) % tile;
}

// [batch, heads, kDim]; empty when the error reads outside the table or the pool.
std::vector<double> decode_with(const DecodeCase& made, const DecodeError& error) {
  std::vector<double> out;
  const auto number = [&](std::uint16_t bits) {
    return error.bits_as_numbers ? static_cast<double>(bits) : bf16_value(bits);
  };
  const auto limit = static_cast<std::int64_t>(made.pool.size()) - made.first_v() - kDim;
  for (std::int64_t row = 0; row < made.batch * made.heads; ++row) {
    const std::int64_t b = row / made.heads, h = row % made.heads;
    const std::int64_t kv = error.head_of_row ? row / made.group()
                            : error.kv_head   ? error.kv_head(made, h)
                                              : h / made.group();
    const std::int64_t length = made.lengths[static_cast<std::size_t>(b)];
    const std::int64_t keys = error.keys ? error.keys(made, length) : length;
    const std::int64_t q_row = error.one_query ? h : b * made.heads + (error.q_head ? error.q_head(made, h) : h);
    std::vector<double> scores;
    std::vector<std::int64_t> places;
    for (std::int64_t key = 0; key < keys; ++key) {
      const std::int64_t place = (error.place ? error.place : right_place)(made, b, key) +
                                 (error.head_place ? error.head_place(made, kv) : kv * kDim);
      if (place < 0 || place > limit) return {};
      double dot = 0;
      for (std::int64_t d = 0; d < kDim; ++d) {
        dot += number(made.q[static_cast<std::size_t>(q_row * kDim + d)]) *
               number(made.pool[static_cast<std::size_t>(made.first_k() + place + d)]);
      }
      scores.push_back(error.scaled ? dot * static_cast<double>(made.scale) : dot);
      places.push_back(place);
    }
    const double largest = scores.empty() ? 0 : *std::ranges::max_element(scores);
    const std::vector<double> maxima = maxima_of_blocks(scores, error.tile);
    double total = error.padding_is_zero ? static_cast<double>(padding(keys, error.tile)) * std::exp(-largest) : 0;
    std::vector<double> weights;
    for (std::size_t key = 0; key < scores.size(); ++key) {
      const auto weight = [&](bool rescaled) {
        const double score = scores[key] - (rescaled ? largest : maxima[key]);
        return !error.softmax ? 1 : error.base_two ? std::exp2(score) : std::exp(score);
      };
      weights.push_back(weight(error.output_rescaled));
      total += weight(error.total_rescaled);
    }
    for (std::int64_t d = 0; d < kDim; ++d) {
      double sum = 0;
      for (std::size_t key = 0; key < scores.size(); ++key) {
        const std::int64_t first = error.v_is_k ? made.first_k() : made.first_v();
        sum += weights[key] * number(made.pool[static_cast<std::size_t>(first + places[key] + d)]);
      }
      out.push_back(error.normalized ? sum / total : sum);
    }
  }
  return out;
}

const std::vector<DecodeError>& decode_errors() {
  using C = const DecodeCase&;
  using T = std::int64_t;
  static const std::vector<DecodeError> errors = [] {
    std::vector<DecodeError> made;
    const auto add = [&](const char* message, int hint, const std::function<void(DecodeError&)>& change) {
      DecodeError error;
      error.message = message;
      error.hint = hint;
      change(error);
      made.push_back(std::move(error));
    };
    add("KV head is h / group, not h % kv_heads", 2,
        [](auto& e) { e.kv_head = [](C c, T h) { return h % c.kv_heads; }; });
    add("KV head is h / group, not h: the query heads of a group share one", 2,
        [](auto& e) { e.kv_head = [](C, T h) { return h; }; });
    add("every query head reads KV head 0: KV head is h / group", 2,
        [](auto& e) { e.kv_head = [](C, T) { return T{0}; }; });
    add("KV head is h / group, not h / kv_heads: group is heads / kv_heads", 2,
        [](auto& e) { e.kv_head = [](C c, T h) { return h / c.kv_heads; }; });
    add("the KV head is computed from the row of out: the head in its sequence is row % heads", 2,
        [](auto& e) { e.head_of_row = true; });
    add("last page not masked: slots past the length are read as keys", 2,
        [](auto& e) { e.keys = [](C c, T length) { return (length + c.page_size - 1) / c.page_size * c.page_size; }; });
    add("the last page is left out unless it is full", 2,
        [](auto& e) { e.keys = [](C c, T length) { return length / c.page_size * c.page_size; }; });
    add("the last key is missing: keys 0 to length - 1", 2,
        [](auto& e) { e.keys = [](C, T length) { return length - 1; }; });
    add("only the first page is read", 1,
        [](auto& e) { e.keys = [](C c, T length) { return std::min(length, c.page_size); }; });
    add("right in block 0 only: the stride from block to block is block_stride", 1, [](auto& e) {
      e.place = [](C c, T b, T t) {
        return c.block(b, t / c.page_size) * c.layer_rows() + t % c.page_size * c.token();
      };
    });
    add("the table is not used: page p is not in block p", 1, [](auto& e) {
      e.place = [](C c, T, T t) { return t / c.page_size * c.block_stride() + t % c.page_size * c.token(); };
    });
    add("the table is not used: keys are not adjacent in the pool", 1,
        [](auto& e) { e.place = [](C c, T, T t) { return t * c.token(); }; });
    add("every sequence reads the first row of the table", 1,
        [](auto& e) { e.place = [](C c, T, T t) { return right_place(c, 0, t); }; });
    add("the slot is missing: every key of a page is its first token", 1,
        [](auto& e) { e.place = [](C c, T b, T t) { return c.block(b, t / c.page_size) * c.block_stride(); }; });
    add("the whole key number is added: inside its block a key is in slot key % page_size", 1, [](auto& e) {
      e.place = [](C c, T b, T t) { return c.block(b, t / c.page_size) * c.block_stride() + t * c.token(); };
    });
    add("the heads of a page are taken as adjacent: a page is [page_size, kv_heads, 64], token after token", 1,
        [](auto& e) {
          e.place = [](C c, T b, T t) {
            return c.block(b, t / c.page_size) * c.block_stride() + t % c.page_size * kDim;
          };
          e.head_place = [](C c, T kv) { return kv * c.page_size * kDim; };
        });
    add("a row of the table has `columns` entries, not the pages of its sequence", 1, [](auto& e) {
      e.place = [](C c, T b, T t) {
        const T length = c.lengths[static_cast<std::size_t>(b)];
        const auto entry = static_cast<std::size_t>(b * ((length + c.page_size - 1) / c.page_size) + t / c.page_size);
        return T{c.table[entry]} * c.block_stride() + t % c.page_size * c.token();
      };
    });
    add("the bits of bf16 are used as whole numbers: they are the upper 16 bits of a float", 3,
        [](auto& e) { e.bits_as_numbers = true; });
    add("the scores are not scaled", 3, [](auto& e) { e.scaled = false; });
    add("the weights are not divided by their sum", 3, [](auto& e) { e.normalized = false; });
    add("every key has the same weight: the softmax is missing", 3, [](auto& e) { e.softmax = false; });
    add("the weights are powers of 2: exp2 needs the score times log2(e)", 3, [](auto& e) { e.base_two = true; });
    add("K is read in place of V", 3, [](auto& e) { e.v_is_k = true; });
    add("every query head reads the query of head 0", 2, [](auto& e) { e.q_head = [](C, T) { return T{0}; }; });
    add("every sequence reads the query of sequence 0", 2, [](auto& e) { e.one_query = true; });
    for (const T tile : {16, 32, 64, 128}) {
      add("the score of a key past the length is 0 and not -infinity: it takes part in the softmax", 3,
          [tile](auto& e) { e.tile = tile, e.padding_is_zero = true; });
      add("the sums of earlier blocks are not rescaled when the largest score grows: multiply both by exp(old - new)",
          3, [tile](auto& e) { e.tile = tile, e.output_rescaled = e.total_rescaled = false; });
      add("the output of earlier blocks is not rescaled when the largest score grows: multiply it by exp(old - new)", 3,
          [tile](auto& e) { e.tile = tile, e.output_rescaled = false; });
      add("the sum of the weights is not rescaled when the largest score grows: multiply it by exp(old - new)", 3,
          [tile](auto& e) { e.tile = tile, e.total_rescaled = false; });
    }
    return made;
  }();
  return errors;
}

class PagedDecodeGrader final : public Grader {
 public:
  using Grader::Grader;

  [[nodiscard]] std::vector<TestResult> grade(const Submission& submission, const Seed& seed) const override {
    const LabKernel kernel = compile_kernel(*this, submission, "decode.cu", decode_in_triton());
    if (!kernel.ok()) return all_failed(lab(), kernel.file + " does not compile", kernel.messages);
    std::vector<TestResult> results;
    results.push_back(
        grade_values("one_page", kernel, seed.random(1), {hand({1, 1, 1, 4, 1}), {1, 1, 1, 16, 1}, {2, 1, 1, 64, 1}}));
    results.push_back(grade_values("pages", kernel, seed.random(2),
                                   {hand({1, 1, 1, 4, 2}), {3, 2, 2, 16, 5}, growing({2, 2, 2, 32, 4})}));
    results.push_back(grade_values("last_page", kernel, seed.random(3),
                                   {hand({1, 1, 1, 4, 2, true}), {3, 2, 2, 16, 6, true}, {2, 1, 1, 64, 1, true}}));
    results.push_back(
        grade_values("groups", kernel, seed.random(4), {hand({1, 6, 3, 4, 1}), {2, 8, 2, 16, 4}, {1, 6, 3, 16, 2}}));
    const bool right = results[0].passed() && results[1].passed();
    const std::string skipped = "not judged: one_page and pages must be right first";
    results.push_back(right ? grade_clean(kernel, seed.random(5)) : failed(lab(), "clean", skipped, {}, 1));
    results.push_back(right ? grade_traffic(kernel, seed.random(6)) : failed(lab(), "traffic", skipped, {}, 1));
    return results;
  }

 private:
  [[nodiscard]] static DecodeShape hand(DecodeShape shape) {
    shape.by_hand = true;
    shape.size = 2;
    return shape;
  }

  [[nodiscard]] static DecodeShape growing(DecodeShape shape) {
    shape.growing = true;
    return shape;
  }

  // The inputs of a row of a case by hand: q, and each key of its KV head with its value.
  [[nodiscard]] static std::string hand_text(const DecodeCase& made, std::int64_t sequence, std::int64_t head) {
    const auto numbers = [](const std::vector<std::uint16_t>& from, std::int64_t first) {
      std::vector<std::string> words;
      for (std::int64_t d = 0; d < kHandDims; ++d) {
        words.push_back(fmt::format("{:g}", bf16_value(from[static_cast<std::size_t>(first + d)])));
      }
      return fmt::format("({})", fmt::join(words, ", "));
    };
    const std::int64_t kv = head / made.group();
    std::string text =
        fmt::format("q {}, scale {:g}; dims {} to {} of q, K and V are 0",
                    numbers(made.q, (sequence * made.heads + head) * kDim), made.scale, kHandDims, kDim - 1);
    if (made.kv_heads > 1) text += fmt::format("; KV head {}", kv);
    for (std::int64_t key = 0; key < made.lengths[static_cast<std::size_t>(sequence)]; ++key) {
      const std::int64_t place = right_place(made, sequence, key) + kv * kDim;
      text += fmt::format("\nkey {}, block {} slot {}: k {}  v {}", key, made.block(sequence, key / made.page_size),
                          key % made.page_size, numbers(made.pool, made.first_k() + place),
                          numbers(made.pool, made.first_v() + place));
    }
    return text;
  }

  [[nodiscard]] static std::string decode_text(const DecodeCase& made) {
    return fmt::format("{} of {} keys, page_size {}, {}, {}", counted(made.batch, "sequence"),
                       fmt::join(made.lengths, ", "), made.page_size, counted(made.heads, "query head"),
                       counted(made.kv_heads, "KV head"));
  }

  // The first element outside the bound; empty: all are within it.
  // `picture`: the row of the output that it is in, and the head's keys and values.
  [[nodiscard]] static std::string first_wrong(const DecodeCase& made, const std::vector<float>& out,
                                               CasePicture& picture) {
    const attention::Result golden = golden_of(made);
    attention::Rounding rounding = attention::rounding_of(DType::f32);
    rounding.ex2_error = 0x1p-17;  // of __expf at scores of 20; expf is better
    rounding.deviations = attention::deviations_for(static_cast<double>(out.size()));
    for (std::size_t i = 0; i < out.size(); ++i) {
      const auto heads = static_cast<std::size_t>(made.heads), dims = static_cast<std::size_t>(kDim);
      const std::size_t b = i / dims / heads, h = i / dims % heads, d = i % dims;
      const attention::RowTerms terms = attention::row_terms(golden, b, h, static_cast<double>(kDim));
      const attention::ElementTerms element = attention::element_terms(golden, b, h, d);
      if (attention::output_within(rounding, terms, element, static_cast<double>(out[i]))) continue;
      const bool nothing = std::bit_cast<std::uint32_t>(out[i]) == 0xcdcdcdcd;
      const auto inside = [&](std::size_t dim, float value) {
        return attention::output_within(rounding, terms, attention::element_terms(golden, b, h, dim),
                                        static_cast<double>(value));
      };
      picture = picture_of_row(made, out, i, element.o, inside);
      const std::string inputs =
          made.by_hand ? "\n" + hand_text(made, static_cast<std::int64_t>(b), static_cast<std::int64_t>(h)) : "";
      return fmt::format("{}{}\nsequence {}, head {}, dim {}: expected {:.6g}, your kernel gave {}", decode_text(made),
                         inputs, b, h, d, element.o, nothing ? "nothing" : fmt::format("{:.6g}", out[i]));
    }
    return {};
  }

  // One row of the output, 8 elements in a line, and the pages of its sequence.
  [[nodiscard]] static CasePicture picture_of_row(const DecodeCase& made, const std::vector<float>& out,
                                                  std::size_t wrong, double expected,
                                                  const std::function<bool(std::size_t, float)>& inside) {
    constexpr std::size_t kLine = 8;
    constexpr std::int64_t kPagesShown = 12;
    const std::size_t dims = static_cast<std::size_t>(kDim), row = wrong / dims;
    const auto b = static_cast<std::int64_t>(row) / made.heads, h = static_cast<std::int64_t>(row) % made.heads;
    PictureGrid grid{fmt::format("out of sequence {}, head {}: your kernel's values", b, h), {}, {}};
    for (std::size_t d = 0; d < dims; ++d) {
      if (d % kLine == 0) grid.rows.push_back({fmt::format("dims {} to {}", d, d + kLine - 1), {}});
      const float value = out[row * dims + d];
      const bool nothing = std::bit_cast<std::uint32_t>(value) == 0xcdcdcdcd;
      PictureCell cell{nothing ? "not written" : fmt::format("{:.4g}", value),
                       !nothing && inside(d, value) ? CellMark::plain : CellMark::wrong};
      if (row * dims + d == wrong) cell.note = fmt::format("expected {:.4g}", expected);
      grid.rows.back().cells.push_back(std::move(cell));
    }
    const std::int64_t length = made.lengths[static_cast<std::size_t>(b)];
    PictureGrid table{
        fmt::format("table row {}: {} keys, {} in a page", b, length, made.page_size), {}, {{"block", {}}}};
    for (std::int64_t p = 0; p < std::min(made.columns, kPagesShown); ++p) {
      const bool used = p * made.page_size < length;
      table.columns.push_back(fmt::format("page {}", p));
      table.rows.front().cells.push_back(
          {fmt::format("{}", made.block(b, p)), used ? CellMark::used : CellMark::quiet,
           used ? fmt::format("{} keys", std::min(made.page_size, length - p * made.page_size)) : ""});
    }
    return {{std::move(table), std::move(grid)}, "pages of the sequence", "after the last page"};
  }

  // `share` of 1 + the value, for each element.
  [[nodiscard]] static bool near(const std::vector<double>& values, const std::vector<double>& out, double share) {
    if (values.size() != out.size()) return false;
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (std::isnan(values[i]) && std::isnan(out[i])) continue;
      if (!(std::abs(values[i] - out[i]) <= share * (1 + std::abs(values[i])))) return false;
    }
    return true;
  }

  // The typical error that gives these outputs. An error that changes nothing in these cases, such as another KV head
  // where there is one, explains nothing. Null: none.
  [[nodiscard]] static const DecodeError* error_of(const std::vector<DecodeCase>& cases,
                                                   const std::vector<std::vector<double>>& outs,
                                                   const std::vector<std::vector<double>>& right) {
    constexpr double kSame = 1e-3;
    for (const DecodeError& error : decode_errors()) {
      bool all = true, differs = false;
      for (std::size_t c = 0; all && c < cases.size(); ++c) {
        const std::vector<double> wrong = decode_with(cases[c], error);
        all = near(wrong, outs[c], kSame);
        differs = differs || !near(wrong, right[c], kSame);
      }
      if (all && differs) return &error;
    }
    return nullptr;
  }

  // A read past the pool, at the block whose number the unused entries of the table hold.
  [[nodiscard]] static std::string unused_entry(const DecodeCase& made, const KernelRun& run) {
    const ptx::Report* const report = shown_report(run);
    if (report == nullptr || report->kind != ptx::ReportKind::out_of_bounds || report->address.symbol != "pool" ||
        report->address.offset / (made.block_stride() * 2) != kDecodeBlocks) {
      return {};
    }
    return fmt::format("block {} is read, the number in unused entries of the table: a row has `columns` entries; ",
                       kDecodeBlocks);
  }

  // Values alone count here; reports of a finished launch are judged by `clean`.
  [[nodiscard]] TestResult grade_values(std::string_view test, const LabKernel& kernel, const CounterRng& random,
                                        const std::vector<DecodeShape>& shapes) const {
    std::vector<DecodeCase> cases;
    std::vector<std::vector<float>> outs;
    std::string text, fault, report;  // of the first wrong output, of the first report
    CasePicture picture, race;
    std::uint64_t stream = 0;
    for (const DecodeShape& shape : shapes) {
      const DecodeCase made = make_decode(CounterRng(random.bits(stream), 13), shape);
      ++stream;
      const KernelRun run = run_kernel(kernel, decode_call(made));
      if (!run.finished) {
        return failed(lab(), test, unused_entry(made, run) + fault_of(run), decode_text(made) + "\n" + report_case(run),
                      1);
      }
      outs.push_back(lab_values<float>(run.arrays[4]));
      if (text.empty()) text = first_wrong(made, outs.back(), picture);
      if (fault.empty() && !fault_of(run).empty())
        fault = unused_entry(made, run) + fault_of(run), report = report_case(run), race = report_picture(run);
      cases.push_back(made);
    }
    if (text.empty()) return passed(lab(), test);
    const auto wrong_values = [&](std::string message, const std::string& shown, int hint) {
      return with_picture(failed(lab(), test, std::move(message), shown, hint), picture);
    };
    std::vector<std::vector<double>> found, right;
    bool close = true;
    for (std::size_t c = 0; c < cases.size(); ++c) {
      found.emplace_back(outs[c].begin(), outs[c].end());
      right.push_back(decode_with(cases[c], {}));
      close = close && near(right[c], found[c], kRounded);
    }
    const DecodeError* const error = error_of(cases, found, right);
    if (error != nullptr) return wrong_values(error->message, text, error->hint);
    const bool nothing =
        std::ranges::all_of(outs[0], [](float x) { return std::bit_cast<std::uint32_t>(x) == 0xcdcdcdcd; });
    if (nothing) return wrong_values("nothing is written to out", text, 1);
    if (!fault.empty()) {
      return with_picture(failed(lab(), test, fault, text + "\n" + report, 3),
                          race.empty() ? std::move(picture) : std::move(race));
    }
    return wrong_values(
        close ? "the output is close to the right one and outside the error bound of f32 arithmetic: keep scores, "
                "weights and sums in f32, and round none of them to bf16"
              : "the output is outside the error bound of f32 arithmetic",
        text, close ? 3 : 1);
  }

  [[nodiscard]] TestResult grade_clean(const LabKernel& kernel, const CounterRng& random) const {
    const DecodeCase made = make_decode(random, {2, 2, 2, 16, 4});
    for (const Schedule& schedule : all_schedules()) {
      const KernelRun run = run_kernel(kernel, decode_call(made), schedule);
      const std::string at = fmt::format("{}, schedule {}\n", decode_text(made), schedule_name(schedule));
      if (!fault_of(run).empty()) {
        return with_picture(failed(lab(), "clean", fault_of(run), at + report_case(run), 3), report_picture(run));
      }
      CasePicture picture;
      const std::string wrong = first_wrong(made, lab_values<float>(run.arrays[4]), picture);
      if (wrong.empty()) continue;
      return with_picture(failed(lab(), "clean", "the output depends on the schedule", at + wrong, 3), picture);
    }
    // Scores of several hundred: exp() of one overflows.
    const DecodeCase large = make_decode(random, {1, 1, 1, 16, 4, false, 1000});
    const KernelRun run = run_kernel(kernel, decode_call(large));
    if (!fault_of(run).empty()) return failed(lab(), "clean", fault_of(run), report_case(run), 3);
    const std::vector<float> out = lab_values<float>(run.arrays[4]);
    CasePicture picture;
    const std::string wrong = first_wrong(large, out, picture);
    if (wrong.empty()) return grade_negative(kernel, random);
    const bool finite = std::ranges::all_of(out, [](float x) { return std::isfinite(x); });
    return with_picture(failed(lab(), "clean",
                               finite ? "the output is wrong for large scores"
                                      : fmt::format("the largest score is not subtracted: inf at a score of {:.0f}",
                                                    golden_of(large).smax(0, 0)),
                               wrong, 3),
                        picture);
  }

  // Every score is far below 0: with a maximum that begins with 0, all weights are 0.
  [[nodiscard]] TestResult grade_negative(const LabKernel& kernel, const CounterRng& random) const {
    constexpr std::uint16_t kSign = 0x8000;
    DecodeCase made = make_decode(random, {1, 1, 1, 16, 4, false, 100});
    for (std::uint16_t& bits : made.q) bits = static_cast<std::uint16_t>(bits & ~kSign);
    for (std::uint16_t& bits : made.pool) bits = static_cast<std::uint16_t>(bits | kSign);
    const KernelRun run = run_kernel(kernel, decode_call(made));
    if (!fault_of(run).empty()) return failed(lab(), "clean", fault_of(run), report_case(run), 3);
    CasePicture picture;
    const std::string wrong = first_wrong(made, lab_values<float>(run.arrays[4]), picture);
    if (wrong.empty()) return passed(lab(), "clean");
    return with_picture(
        failed(lab(), "clean",
               fmt::format("the output is wrong where every score is negative, here down to -{:.0f}: the "
                           "maximum begins with -infinity, not with 0",
                           golden_of(made).smax(0, 0)),
               wrong, 3),
        picture);
  }

  [[nodiscard]] TestResult grade_traffic(const LabKernel& kernel, const CounterRng& random) const {
    const DecodeCase made = make_decode(random, {2, 2, 2, 16, 8});
    RowAccesses accesses(kDim * 2);
    LabCall call = decode_call(made);
    call.monitor = &accesses;
    const KernelRun run = run_kernel(kernel, call);
    if (!run.finished) return failed(lab(), "traffic", fault_of(run), report_case(run), 3);
    // A row of 64 elements of K, V or q has 4 sectors, a row of the output 8; the table and the length have one each.
    std::int64_t ideal = 0;
    for (const std::int64_t length : made.lengths) ideal += made.heads * (8 * length + 4 + 8 + 2);
    const double ratio = static_cast<double>(run.total.sectors) / static_cast<double>(ideal);
    if (ratio <= kTrafficLimit) return passed(lab(), "traffic", fmt::format("sectors {:.2f}x ideal", ratio));
    return failed(lab(), "traffic", fmt::format("sectors {:.1f}x ideal: {}", ratio, accesses.reason()),
                  fmt::format("{}\n{} sectors of 32 bytes for a step that needs {}; at most {} x that\n{}",
                              decode_text(made), run.total.sectors, ideal, kTrafficLimit, sector_lines(run)),
                  3);
  }
};

}  // namespace

std::unique_ptr<Grader> paged_decode_grader(const Lab& lab, const GradeOptions& options) {
  return std::make_unique<PagedDecodeGrader>(lab, options);
}

}  // namespace kvscope::labs
