#include "viz/playback/event_tape.h"

#include <span>
#include <tuple>
#include <utility>

#include "core/base/errors.h"

namespace kvscope::viz {
namespace {

using Numbers = std::array<std::int64_t, trace::kMaxFields>;

// Zigzag encoding of a difference modulo 2^64: small positive and small negative differences give small numbers.
std::uint64_t zigzag(std::int64_t number, std::int64_t before) {
  const std::uint64_t difference = static_cast<std::uint64_t>(number) - static_cast<std::uint64_t>(before);
  return (difference << 1) ^ (difference >> 63 != 0 ? ~std::uint64_t{0} : 0);
}

std::int64_t unzigzag(std::uint64_t packed, std::int64_t before) {
  const std::uint64_t difference = (packed >> 1) ^ ((packed & 1) != 0 ? ~std::uint64_t{0} : 0);
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(before) + difference);
}

void put(std::vector<std::uint8_t>& bytes, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) bytes.push_back(static_cast<std::uint8_t>(number | 0x80));
  bytes.push_back(static_cast<std::uint8_t>(number));
}

std::uint64_t take(const std::uint8_t*& at) {
  std::uint64_t number = *at & 0x7F;
  for (int shift = 7; (*at++ & 0x80) != 0; shift += 7) number |= static_cast<std::uint64_t>(*at & 0x7F) << shift;
  return number;
}

template <class E>
trace::Event unpack(const std::uint8_t*& at, Numbers& last) {
  E event;
  std::size_t field = 0;
  const auto read = [&](const auto& of) {
    last[field] = unzigzag(take(at), last[field]);
    trace::from_i64(event.*of.member, last[field++]);
  };
  std::apply([&](const auto&... of) { (read(of), ...); }, E::fields());
  return event;
}

using Unpack = trace::Event (*)(const std::uint8_t*&, Numbers&);
constexpr auto kUnpack = []<std::size_t... I>(std::index_sequence<I...>) {
  return std::array<Unpack, trace::kKinds>{&unpack<std::variant_alternative_t<I, trace::Event>>...};
}
(std::make_index_sequence<trace::kKinds>{});

}  // namespace

void EventTape::push(const trace::Event& event) {
  if (size_ % kFrame == 0) {
    frames_.push_back({bytes_.size(), 0});
    last_ = {};
  }
  ++size_;
  frames_.back().kinds |= std::uint32_t{1} << event.index();
  bytes_.push_back(static_cast<std::uint8_t>(event.index()));
  Numbers numbers{};
  const std::size_t count = trace::field_values(event, numbers);
  Numbers& before = last_[event.index()];
  for (std::size_t i = 0; i < count; ++i) {
    put(bytes_, zigzag(numbers[i], before[i]));
    before[i] = numbers[i];
  }
}

EventTape::Reader::Reader(const EventTape& tape, std::int64_t position)
    : tape_(tape), position_(position / kFrame * kFrame) {
  KVSCOPE_ASSERT(position >= 0 && position <= tape.size());
  while (position_ < position) static_cast<void>(next());
}

trace::Event EventTape::Reader::next() {
  KVSCOPE_ASSERT(position_ < tape_.size());
  if (position_ % kFrame == 0) {
    at_ = tape_.bytes_.data() + tape_.frames_[static_cast<std::size_t>(position_ / kFrame)].first_byte;
    last_ = {};
  }
  ++position_;
  const std::size_t kind = *at_++;
  return kUnpack[kind](at_, last_[kind]);
}

std::vector<trace::Event> EventTape::read(std::int64_t first, std::int64_t end) const {
  std::vector<trace::Event> events;
  events.reserve(static_cast<std::size_t>(end - first));
  for (Reader reader(*this, first); reader.position() < end;) events.push_back(reader.next());
  return events;
}

}  // namespace kvscope::viz
