// Property tests that compile quickly: the rapidcheck functions that most of them need, compiled once. Under the
// sanitizers the templates of one rc::check and one generator add 3 s to a source's compile time; these add none.
// For other features (constructed values, properties with arguments) use rapidcheck directly: rc::gen, RC_ASSERT.
//
//   EXPECT_TRUE(prop::check("the sum of two is not below either", [] {
//     const auto a = prop::in_range<std::int64_t>(0, 10), b = prop::in_range<std::int64_t>(0, 10);
//     RC_ASSERT(a + b >= a);
//   }));
#pragma once

#include <rapidcheck.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace kvscope::prop {

// rc::check: runs `property` on a hundred cases and prints the smallest that fails; returns true if none fails.
bool check(const std::string& description, const std::function<void()>& property);
bool check(const std::function<void()>& property);

// *rc::gen::inRange: a number of [low, high), small ones first; shrinks towards `low`. For int, unsigned, std::int64_t,
// std::uint64_t and std::uint8_t.
template <class T>
[[nodiscard]] T in_range(T low, T high);

// *rc::gen::arbitrary, for bool and the types above.
template <class T>
[[nodiscard]] T any();

// As in_range, but with a uniform distribution in all cases.
template <class T>
[[nodiscard]] T uniform(T low, T high);

// A container of any size with numbers of [low, high), or with characters of `alphabet`: *rc::gen::container. Shrinks
// by omitting elements.
template <class T>
[[nodiscard]] std::vector<T> vector_of(T low, T high);
[[nodiscard]] std::string text_of(const std::string& alphabet);

// *rc::gen::element: one of the values; shrinks towards the first.
template <class T, class... Ts>
[[nodiscard]] T one_of(T first, Ts... others) {
  const T all[] = {first, static_cast<T>(others)...};
  return all[uniform<std::size_t>(0, 1 + sizeof...(others))];
}

}  // namespace kvscope::prop
