// All events of a run in memory, packed to about 8 bytes each instead of 120, readable from any position. A trace file
// is read once, when it is opened; later reads need no disk access and cannot find a damaged event.
//
//   frame of 256 events: | kind | number - the one before it of the same kind and field, as a varint | ... | kind | ...
//
// Differences restart with every frame, so a frame can be read without the frames before it. For each frame a bit mask
// stores which kinds occur in it: a search for evictions skips the frames without any.
// Example: tokens_written seq=1 first_token=33 ... right after seq=0 first_token=40 ... takes the bytes 12, 2, 13, ...
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/trace/event_text.h"
#include "core/trace/events.h"

namespace kvscope::viz {

class EventTape {
 public:
  static constexpr std::int64_t kFrame = 256;  // [events]

  void push(const trace::Event& event);
  [[nodiscard]] std::int64_t size() const { return size_; }  // [events]
  [[nodiscard]] std::int64_t bytes() const { return static_cast<std::int64_t>(bytes_.size()); }
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
    std::size_t first_byte = 0;
    std::uint32_t kinds = 0;
  };
  static_assert(trace::kKinds <= 32);

  std::vector<std::uint8_t> bytes_;
  std::vector<Frame> frames_;
  std::int64_t size_ = 0;
  Last last_{};
};

}  // namespace kvscope::viz
