#include "tests/property.h"

#include <cstdint>

namespace kvscope::prop {

bool check(const std::string& description, const std::function<void()>& property) {
  return rc::check(description, property);
}

bool check(const std::function<void()>& property) {
  return rc::check(property);
}

template <class T>
T in_range(T low, T high) {
  return *rc::gen::inRange(low, high);
}

template <class T>
T any() {
  return *rc::gen::arbitrary<T>();
}

template <class T>
T uniform(T low, T high) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(low, high));
}

template <class T>
std::vector<T> vector_of(T low, T high) {
  return *rc::gen::container<std::vector<T>>(rc::gen::inRange(low, high));
}

std::string text_of(const std::string& alphabet) {
  return *rc::gen::container<std::string>(rc::gen::elementOf(alphabet));
}

template int in_range(int, int);
template unsigned in_range(unsigned, unsigned);
template std::int64_t in_range(std::int64_t, std::int64_t);
template std::uint64_t in_range(std::uint64_t, std::uint64_t);
template std::uint8_t in_range(std::uint8_t, std::uint8_t);

template int uniform(int, int);
template unsigned uniform(unsigned, unsigned);
template std::int64_t uniform(std::int64_t, std::int64_t);
template std::uint64_t uniform(std::uint64_t, std::uint64_t);

template std::vector<int> vector_of(int, int);
template std::vector<std::int64_t> vector_of(std::int64_t, std::int64_t);
template std::vector<std::uint64_t> vector_of(std::uint64_t, std::uint64_t);

template bool any();
template int any();
template unsigned any();
template std::int64_t any();
template std::uint64_t any();
template std::uint8_t any();

}  // namespace kvscope::prop
