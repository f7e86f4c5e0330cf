// case: 0, keys, dim, tile, scores, values: attend. 1, 0, dim, 0, lse_a, lse_b, o_a, o_b: merge. result: o, then the lse.
#include "cases.h"
#include "softmax.h"

int main() {
  return cases::run([](const cases::Words& words) {
    const std::int64_t keys = words[1], dim = words[2];
    std::vector<float> numbers;
    for (std::size_t i = 4; i < words.size(); ++i) numbers.push_back(static_cast<float>(cases::number_of(words[i])));
    std::vector<float> o(static_cast<std::size_t>(dim), 12345.0F);  // kNotWritten of the grader
    const float lse = words[0] == 0
                          ? attend(numbers.data(), numbers.data() + keys, keys, dim, words[3], o.data())
                          : merge(numbers.data() + 2, numbers[0], numbers.data() + 2 + dim, numbers[1], dim, o.data());
    cases::Words result;
    for (const float number : o) result.push_back(cases::word_of(number));
    result.push_back(cases::word_of(lse));
    return result;
  });
}
