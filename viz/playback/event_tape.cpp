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

constexpr std::uint64_t kZigzagOfOne = 2;

// How a field of a pattern is stored: not at all, because its number is the one before, or 1 more; or as a varint.
constexpr std::uint32_t kSame = 0, kOneMore = 1, kChange = 2;
constexpr std::uint32_t kAllChange = 0xAAAAAAAA;  // kChange for all fields
constexpr std::uint8_t kNoPattern = 255;

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
// Of a frame: each event at most two bytes and ten for each field.
constexpr std::size_t kLongestFrame = static_cast<std::size_t>(EventTape::kFrame) * (2 + 10 * trace::kMaxFields);

void put(std::uint8_t*& at, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) *at++ = static_cast<std::uint8_t>(number | 0x80);
  *at++ = static_cast<std::uint8_t>(number);
}

std::uint64_t take(const std::uint8_t*& at) {
  std::uint64_t number = *at & 0x7F;
  for (int shift = 7; (*at++ & 0x80) != 0; shift += 7) number |= static_cast<std::uint64_t>(*at & 0x7F) << shift;
  return number;
}

template <class E>
trace::Event unpack(const std::uint8_t*& at, Numbers& last, std::uint32_t fields) {
  E event;
  std::size_t field = 0;
  const auto read = [&](const auto& of) {
    const std::uint32_t stored = fields & 3;
    if (stored != kSame) last[field] = unzigzag(stored == kOneMore ? kZigzagOfOne : take(at), last[field]);
    fields >>= 2;
    trace::from_i64(event.*of.member, last[field++]);
  };
  std::apply([&](const auto&... of) { (read(of), ...); }, E::fields());
  return event;
}

using Unpack = trace::Event (*)(const std::uint8_t*&, Numbers&, std::uint32_t);
constexpr auto kUnpack = []<std::size_t... I>(std::index_sequence<I...>) {
  return std::array<Unpack, trace::kKinds>{&unpack<std::variant_alternative_t<I, trace::Event>>...};
}
(std::make_index_sequence<trace::kKinds>{});

}  // namespace

void EventTape::push(const trace::Event& event) {
  if (size_ % kFrame == 0) begin_frame();
  ++size_;
  frames_.back().kinds |= std::uint32_t{1} << event.index();
  Numbers numbers{};
  const std::size_t count = trace::field_values(event, numbers);
  Numbers& before = last_[event.index()];
  Pattern pattern{static_cast<std::uint32_t>(event.index()), 0};
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t change = zigzag(numbers[i], std::exchange(before[i], numbers[i]));
    numbers[i] = static_cast<std::int64_t>(change);
    pattern.fields |= (change == 0 ? kSame : change == kZigzagOfOne ? kOneMore : kChange) << 2 * i;
  }
  const std::uint8_t* const first = end_;
  *end_++ = number_of(pattern);
  if (end_[-1] == kNoPattern) {
    *end_++ = static_cast<std::uint8_t>(event.index());
    pattern.fields = kAllChange;
  }
  for (std::size_t i = 0; i < count; ++i, pattern.fields >>= 2) {
    if ((pattern.fields & 3) == kChange) put(end_, static_cast<std::uint64_t>(numbers[i]));
  }
  bytes_ += end_ - first;
}

void EventTape::begin_frame() {
  if (static_cast<std::size_t>(piece_end_ - end_) < kLongestFrame) {
    pieces_.emplace_back(new std::uint8_t[kPieceBytes]);  // not initialized: memory that is not used is not resident
    end_ = pieces_.back().get();
    piece_end_ = end_ + kPieceBytes;
  }
  frames_.push_back({end_, 0});
  last_ = {};
}

std::uint8_t EventTape::number_of(const Pattern& pattern) {
  std::size_t slot = (pattern.fields * 0x9E3779B1U ^ pattern.kind * 0x85EBCA6BU) >> 22;
  for (; found_[slot] != 0; slot = (slot + 1) % found_.size()) {
    if (patterns_[found_[slot] - 1U] == pattern) return static_cast<std::uint8_t>(found_[slot] - 1);
  }
  if (patterns_.size() == kNoPattern) return kNoPattern;
  patterns_.push_back(pattern);
  found_[slot] = static_cast<std::uint8_t>(patterns_.size());
  return static_cast<std::uint8_t>(patterns_.size() - 1);
}

EventTape::Reader::Reader(const EventTape& tape, std::int64_t position)
    : tape_(tape), position_(position / kFrame * kFrame) {
  KVSCOPE_ASSERT(position >= 0 && position <= tape.size());
  while (position_ < position) static_cast<void>(next());
}

trace::Event EventTape::Reader::next() {
  KVSCOPE_ASSERT(position_ < tape_.size());
  if (position_ % kFrame == 0) {
    at_ = tape_.frames_[static_cast<std::size_t>(position_ / kFrame)].bytes;
    last_ = {};
  }
  ++position_;
  const std::uint8_t number = *at_++;
  if (number == kNoPattern) {
    const std::size_t kind = *at_++;
    return kUnpack[kind](at_, last_[kind], kAllChange);
  }
  const Pattern& pattern = tape_.patterns_[number];
  return kUnpack[pattern.kind](at_, last_[pattern.kind], pattern.fields);
}

std::vector<trace::Event> EventTape::read(std::int64_t first, std::int64_t end) const {
  std::vector<trace::Event> events;
  events.reserve(static_cast<std::size_t>(end - first));
  for (Reader reader(*this, first); reader.position() < end;) events.push_back(reader.next());
  return events;
}

}  // namespace kvscope::viz
