// All events of a run in memory, packed to about 4 bytes each instead of 120, readable from any position. A trace file
// is read once, when it is opened; later reads need no disk access and cannot find a damaged event.
//
//   frame of 256 events: | pattern | changes | pattern | changes | ...
//
// A pattern is a kind, and for each field whether its number is the one before it of the same kind and field, 1 more,
// or another one. Only the others are stored, as the varint of the change. The tape lists the patterns as they occur:
// 255 are numbered with one byte, and an event of a further pattern takes the byte 255, its kind and all its changes.
//
// Changes restart with every frame, so a frame can be read without the frames before it. For each frame a bit mask
// stores which kinds occur in it: a search for evictions skips the frames without any.
// Example: tokens_written seq=1 first_token=33 tokens=1 block=12 slot=1 right after seq=0 first_token=40 tokens=1
// block=9 slot=8 takes 4 bytes: the pattern, and the changes -7, 3 and -7 as 13, 6 and 13.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/trace/event_text.h"
#include "core/trace/events.h"

namespace kvscope::viz {

class EventTape {
 public:
  static constexpr std::int64_t kFrame = 256;  // [events]

  void push(const trace::Event& event);
  [[nodiscard]] std::int64_t size() const { return size_; }    // [events]
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }  // that the events take
  [[nodiscard]] std::int64_t frames() const { return static_cast<std::int64_t>(frames_.size()); }
  // Bit k: the frame holds an event of kind k.
  [[nodiscard]] std::uint32_t kinds_in(std::int64_t frame) const {
    return frames_[static_cast<std::size_t>(frame)].kinds;
  }

  // The field values of the last event of every kind: [kind][field].
  using Last = std::array<std::array<std::int64_t, trace::kMaxFields>, trace::kKinds>;

  // Reads forward from a position. Precondition (caller): the tape outlives the reader and is not changed meanwhile.
  class Reader {
   public:
    Reader(const EventTape& tape, std::int64_t position);  // [0, size]
    [[nodiscard]] std::int64_t position() const { return position_; }
    [[nodiscard]] trace::Event next();  // precondition: position() < size

   private:
    const EventTape& tape_;
    const std::uint8_t* at_ = nullptr;
    std::int64_t position_;
    Last last_{};
  };

  // Events [first, end).
  [[nodiscard]] std::vector<trace::Event> read(std::int64_t first, std::int64_t end) const;

 private:
  struct Frame {
    const std::uint8_t* bytes = nullptr;
    std::uint32_t kinds = 0;
  };
  static_assert(trace::kKinds <= 32);
  struct Pattern {
    std::uint32_t kind = 0;
    std::uint32_t fields = 0;  // bits [2f, 2f + 2): how field f is stored
    friend bool operator==(const Pattern&, const Pattern&) = default;
  };
  static_assert(2 * trace::kMaxFields <= 32);

  void begin_frame();
  // The pattern's number, or 255 if the list is full and does not have it.
  [[nodiscard]] std::uint8_t number_of(const Pattern& pattern);

  // Memory in pieces, because one vector would need twice its size whenever it grows. A frame is in one piece.
  std::vector<std::unique_ptr<std::uint8_t[]>> pieces_;
  std::uint8_t *end_ = nullptr, *piece_end_ = nullptr;  // of the events, and of the last piece
  std::int64_t bytes_ = 0;
  std::vector<Pattern> patterns_;
  std::array<std::uint8_t, 1024> found_{};  // by a hash: 1 + the number of a pattern; 0: none
  std::vector<Frame> frames_;
  std::int64_t size_ = 0;
  Last last_{};
};

}  // namespace kvscope::viz
