// An event as a line of text and as named integers, in the same way for each kind; used by `trace show`, the trace
// file and the diff. Kinds are numbered in the order of the variant `Event`; a kind's name is its struct's kName.
//
//   to_text(BlockAllocated{BlockIdx{7}, SeqIdx{0}, PageIdx{3}}) == "block_allocated block=7 seq=0 page=3"
//
// Nothing here throws. KVSCOPE_ASSERT aborts for a kind that does not exist.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "core/trace/events.h"

namespace kvscope::trace {

inline constexpr std::size_t kKinds = std::variant_size_v<Event>;

// The largest number of fields of any event: the length of buffers on the stack.
inline constexpr std::size_t kMaxFields = []<std::size_t... I>(std::index_sequence<I...>) {
  std::size_t most = 0;
  ((most = std::max(most, std::tuple_size_v<decltype(std::variant_alternative_t<I, Event>::fields())>)), ...);
  return most;
}
(std::make_index_sequence<kKinds>{});

[[nodiscard]] std::string_view kind_name(std::size_t kind);                     // kind_name(7) == "block_allocated"
[[nodiscard]] std::optional<std::size_t> find_kind(std::string_view name);      // the inverse; empty: no such kind
[[nodiscard]] Detail kind_detail(std::size_t kind);                             // the lowest detail that records it
[[nodiscard]] std::span<const std::string_view> field_names(std::size_t kind);  // [fields] in the struct's order

[[nodiscard]] std::string_view detail_name(Detail detail);  // "off", "steps", "full"
[[nodiscard]] std::optional<Detail> find_detail(std::string_view name);

// The event's numbers in the order of field_names(event.index()). Returns the number of values written.
std::size_t field_values(const Event& event, std::span<std::int64_t, kMaxFields> out);

// The inverse. Empty when the number of `values` differs from the kind's number of fields, or a value does not fit its
// field (a `cached` of 2). For every event e: event_from(e.index(), its values) is e.
[[nodiscard]] std::optional<Event> event_from(std::size_t kind, std::span<const std::int64_t> values);

struct NamedNumber {
  std::string_view name;
  std::int64_t value = 0;
  friend bool operator==(const NamedNumber&, const NamedNumber&) = default;
};
[[nodiscard]] std::vector<NamedNumber> named_fields(const Event& event);

[[nodiscard]] std::string to_text(const Event& event);

// Same kind and same numbers.
[[nodiscard]] bool same_event(const Event& a, const Event& b);

}  // namespace kvscope::trace
