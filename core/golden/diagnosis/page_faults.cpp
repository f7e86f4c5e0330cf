#include "core/golden/diagnosis/detail/page_faults.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace kvscope::golden {
namespace {

std::string_view past_tense(PageMistake mistake) {
  return mistake == PageMistake::left_out ? "left out"
         : mistake == PageMistake::twice  ? "counted twice"
                                          : "read as zeros";
}

// The change of each key that the fault means, unless pages are exchanged.
std::function<void(KeyRead&)> change_of(const PageFault& fault, const std::vector<PlaceElsewhere>& places) {
  switch (fault.mistake) {
    case PageMistake::other_block:
      return [block = fault.block](KeyRead& key) {
        key.block = block;
        key.k_scale_block = key.v_scale_block = -1;
      };
    case PageMistake::left_out:
      return [](KeyRead& key) { key.weight = 0; };
    case PageMistake::twice:
      return [](KeyRead& key) { key.weight = 2; };
    case PageMistake::zeros:
      return [](KeyRead& key) { key.zeros = true; };
    case PageMistake::elsewhere:
      return places[static_cast<std::size_t>(fault.other)].change;
    case PageMistake::exchanged:
      break;
  }
  return [](KeyRead&) {};
}

std::function<RowValue(const RowEvaluator&)> prediction(const PageFault& fault,
                                                        const std::vector<PlaceElsewhere>& places) {
  return [fault, change = change_of(fault, places)](const RowEvaluator& row) {
    const attention::PagedRows& k = row.problem().k;
    Recipe recipe = row.correct();
    for (KeyRead& key : recipe.keys) {
      const std::int64_t page = key.position / k.page_size;
      if (fault.mistake == PageMistake::exchanged) {
        if (page != fault.page && page != fault.other) continue;
        key.block = k.table[row.sequence() * k.table_stride + (page == fault.page ? fault.other : fault.page)];
      } else if (fault.key >= 0 ? key.position == fault.key : page == fault.page) {
        change(key);
      }
    }
    return row.evaluate(recipe);
  };
}

// "; block 11 is page 2 of sequence 1": the first page that has the block. Empty: none has.
std::string owner_of(std::int64_t block, const attention::Problem& problem) {
  const auto page_size = static_cast<std::size_t>(problem.k.page_size);
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    const std::vector<KeyRead> keys = keys_of(problem, b, 0, problem.keys(b));
    for (std::size_t i = 0; i < keys.size(); i += page_size) {
      if (keys[i].block == block) {
        return fmt::format("; block {} is page {} of sequence {}", block, i / page_size, b);
      }
    }
  }
  return {};
}

}  // namespace

std::vector<PlaceElsewhere> places_elsewhere(const DiagnosisInput& input) {
  std::vector<PlaceElsewhere> places;
  const attention::Problem& problem = input.problem;
  for (std::int64_t layer = 0; layer < input.layers; ++layer) {
    const std::int64_t by = layer - input.layer;
    if (by == 0) continue;
    const std::int64_t bytes = by * input.layer_stride * size_of(problem.k.dtype);
    const std::int64_t k_scales = by * input.scale_layer_stride * size_of(problem.k.scale_dtype);
    const std::int64_t v_scales = by * input.scale_layer_stride * size_of(problem.v.scale_dtype);
    const std::string from = fmt::format("was read from layer {}, not {}", layer, input.layer);
    const auto add = [&](const std::string& more, std::int64_t k, std::int64_t v) {
      places.push_back({"page_from_other_layer", from + more, "the layer offset of this page, or an old copy of it",
                        [=](KeyRead& key) {
                          key.layer_bytes = bytes;
                          key.k_scale_layer_bytes = k;
                          key.v_scale_layer_bytes = v;
                        }});
    };
    add("", k_scales, v_scales);
    if (k_scales != 0) add(", with the scales of the correct layer", 0, 0);
  }
  if (problem.k.data != problem.v.data && problem.k.head_size == problem.v.head_size) {
    const std::string look_at = "the K/V offset of this page, or an old copy of it";
    places.push_back(
        {"page_v_is_k", "has V read where K is stored", look_at, [](KeyRead& key) { key.v_from_k = true; }});
    places.push_back(
        {"page_k_is_v", "has K read where V is stored", look_at, [](KeyRead& key) { key.k_from_v = true; }});
    places.push_back({"page_k_and_v_exchanged", "has K and V exchanged", look_at,
                      [](KeyRead& key) { key.k_from_v = key.v_from_k = true; }});
  }
  return places;
}

Trial trial_of(const PageFault& fault, const std::vector<PlaceElsewhere>& places, const RowEvaluator& row) {
  const attention::PagedRows& k = row.problem().k;
  const std::int64_t sequence = row.sequence();
  Trial trial;
  trial.sequence = sequence;
  trial.page = fault.key >= 0 ? fault.key / k.page_size : fault.page;
  trial.predict = prediction(fault, places);
  if (fault.key >= 0) {
    const bool twice = fault.mistake == PageMistake::twice;
    trial.name = twice ? "key_twice" : "key_missing";
    trial.cause = fmt::format("key {} of sequence {} (page {}, slot {}) is {}", fault.key, sequence,
                              fault.key / k.page_size, fault.key % k.page_size, past_tense(fault.mistake));
    trial.look_at = twice ? "the boundary between two splits or tiles" : "the loop over keys, the splits' ends";
    return trial;
  }
  const std::int64_t right = k.table[sequence * k.table_stride + fault.page];
  switch (fault.mistake) {
    case PageMistake::exchanged:
      trial.name = "pages_exchanged";
      trial.cause = fmt::format("pages {} and {} of sequence {} are exchanged", fault.page, fault.other, sequence);
      trial.look_at = fmt::format("lookup table entries [{0}, {1}] and [{0}, {2}] as the kernel reads them", sequence,
                                  fault.page, fault.other);
      break;
    case PageMistake::elsewhere: {
      const PlaceElsewhere& place = places[static_cast<std::size_t>(fault.other)];
      trial.name = place.name;
      trial.cause = fmt::format("page {} of sequence {} {} (block {})", fault.page, sequence, place.from, right);
      trial.look_at = place.look_at;
      break;
    }
    case PageMistake::other_block:
      trial.name = "page_from_other_block";
      trial.cause = fmt::format("page {} of sequence {} was read from block {}, not {}{}", fault.page, sequence,
                                fault.block, right, owner_of(fault.block, row.problem()));
      trial.look_at = fmt::format("lookup table entry [{}, {}] as the kernel reads it", sequence, fault.page);
      break;
    case PageMistake::left_out:
    case PageMistake::twice:
    case PageMistake::zeros: {
      const bool zeros = fault.mistake == PageMistake::zeros;
      trial.name = zeros ? "page_of_zeros" : fault.mistake == PageMistake::twice ? "page_twice" : "page_missing";
      trial.cause = fmt::format("page {} of sequence {} (block {}) is {}", fault.page, sequence, right,
                                past_tense(fault.mistake));
      trial.look_at = zeros ? "the copy of this page: it has not landed, or its box is out of bounds"
                            : "the loop over pages, the splits' ends";
      break;
    }
  }
  return trial;
}

bool is_of_loop(const PageFault& fault, const attention::Problem& problem) {
  const std::int64_t page_size = problem.k.page_size;
  const std::int64_t position = fault.key >= 0 ? fault.key : fault.page * page_size;
  std::int64_t sequences = 0;
  for (std::int64_t b = 0; b < problem.batch; ++b) sequences += problem.keys(b) > position ? 1 : 0;
  const bool is_first_page = fault.key >= 0 ? page_size == 1 && fault.key == 0 : fault.page == 0;
  return sequences > 1 && ((fault.mistake == PageMistake::left_out && !is_first_page) ||
                           fault.mistake == PageMistake::twice || fault.mistake == PageMistake::zeros);
}

Trial in_every_sequence(const PageFault& fault, Trial trial) {
  const std::string_view what = past_tense(fault.mistake);
  trial.cause = fault.key >= 0 ? fmt::format("key {} of every sequence (page {}) is {}", fault.key, trial.page, what)
                               : fmt::format("page {} of every sequence is {}", fault.page, what);
  trial.sequence = trial.page = -1;
  trial.one_of_many = true;
  return trial;
}

std::vector<Trial> trials_of_page(const DiagnosisInput& input, const RowEvaluator& row, std::int64_t page,
                                  std::int64_t other) {
  const std::vector<PlaceElsewhere> places = places_elsewhere(input);
  std::vector<PageFault> faults;
  for (const PageMistake mistake : {PageMistake::left_out, PageMistake::twice, PageMistake::zeros}) {
    faults.push_back({.mistake = mistake, .page = page});
  }
  for (std::size_t i = 0; i < places.size(); ++i) {
    faults.push_back({.mistake = PageMistake::elsewhere, .page = page, .other = static_cast<std::int64_t>(i)});
  }
  if (other >= 0) {
    const attention::PagedRows& k = row.problem().k;
    const std::int64_t block = k.table[row.sequence() * k.table_stride + other];
    faults.push_back({.mistake = PageMistake::other_block, .page = page, .block = block});
    faults.push_back({.mistake = PageMistake::exchanged, .page = page, .other = other});
  }
  std::vector<Trial> trials;
  trials.reserve(faults.size());
  for (const PageFault& fault : faults) trials.push_back(trial_of(fault, places, row));
  return trials;
}

}  // namespace kvscope::golden
