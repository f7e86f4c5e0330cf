#include "core/trace/event_text.h"

#include <fmt/format.h>

#include <array>

#include "core/base/errors.h"

namespace kvscope::trace {
namespace {

// The description of one kind, made once from its struct.
struct Kind {
  std::string_view name;
  Detail detail = Detail::off;
  std::array<std::string_view, kMaxFields> field_names{};
  std::size_t fields = 0;
  std::optional<Event> (*make)(const std::int64_t* values) = nullptr;
};

template <class E>
std::optional<Event> make(const std::int64_t* values) {
  E event;
  bool fits = true;
  const auto assign = [&](const auto& field) {
    from_i64(event.*field.member, *values);
    fits = fits && to_i64(event.*field.member) == *values;
    ++values;
  };
  std::apply([&](const auto&... field) { (assign(field), ...); }, E::fields());
  return fits ? std::optional<Event>(event) : std::nullopt;
}

template <class E>
constexpr Kind describe() {
  Kind kind{E::kName, E::kDetail, {}, 0, &make<E>};
  std::apply([&](const auto&... field) { ((kind.field_names[kind.fields++] = field.name), ...); }, E::fields());
  return kind;
}

constexpr auto kAll = []<std::size_t... I>(std::index_sequence<I...>) {
  return std::array<Kind, kKinds>{describe<std::variant_alternative_t<I, Event>>()...};
}
(std::make_index_sequence<kKinds>{});

const Kind& at(std::size_t kind) {
  KVSCOPE_ASSERT(kind < kKinds);
  return kAll[kind];
}

constexpr std::array<std::string_view, 3> kDetails{"off", "steps", "full"};

}  // namespace

std::string_view kind_name(std::size_t kind) {
  return at(kind).name;
}

std::optional<std::size_t> find_kind(std::string_view name) {
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    if (kAll[kind].name == name) return kind;
  }
  return std::nullopt;
}

Detail kind_detail(std::size_t kind) {
  return at(kind).detail;
}

std::span<const std::string_view> field_names(std::size_t kind) {
  return std::span(at(kind).field_names).first(at(kind).fields);
}

std::string_view detail_name(Detail detail) {
  const auto index = static_cast<std::size_t>(detail);
  KVSCOPE_ASSERT(index < kDetails.size());
  return kDetails[index];
}

std::optional<Detail> find_detail(std::string_view name) {
  for (std::size_t i = 0; i < kDetails.size(); ++i) {
    if (kDetails[i] == name) return static_cast<Detail>(i);
  }
  return std::nullopt;
}

std::size_t field_values(const Event& event, std::span<std::int64_t, kMaxFields> out) {
  return std::visit(
      [&]<class E>(const E& e) {
        std::size_t count = 0;
        std::apply([&](const auto&... field) { ((out[count++] = to_i64(e.*field.member)), ...); }, E::fields());
        return count;
      },
      event);
}

std::optional<Event> event_from(std::size_t kind, std::span<const std::int64_t> values) {
  if (values.size() != at(kind).fields) return std::nullopt;
  return at(kind).make(values.data());
}

std::vector<NamedNumber> named_fields(const Event& event) {
  std::array<std::int64_t, kMaxFields> values{};
  const std::size_t count = field_values(event, values);
  const auto names = field_names(event.index());
  std::vector<NamedNumber> numbers;
  numbers.reserve(count);
  for (std::size_t i = 0; i < count; ++i) numbers.push_back({names[i], values[i]});
  return numbers;
}

std::string to_text(const Event& event) {
  std::string text(kind_name(event.index()));
  for (const NamedNumber& number : named_fields(event)) text += fmt::format(" {}={}", number.name, number.value);
  return text;
}

bool same_event(const Event& a, const Event& b) {
  if (a.index() != b.index()) return false;
  std::array<std::int64_t, kMaxFields> left{};
  std::array<std::int64_t, kMaxFields> right{};
  field_values(a, left);
  field_values(b, right);
  return left == right;
}

}  // namespace kvscope::trace
