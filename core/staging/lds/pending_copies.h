// Copies that a wave has issued and that have not landed: one queue per wave, in the order of issue. The counter counts
// instructions, not bytes or lanes.
//
//   issue   ->  [ K K K K | V V V V ]      wait(4): the four K land, oldest first, until 4 remain
//                 oldest        newest     s_waitcnt vmcnt(N): N is 0..63, and covers this wave's copies only
//
// Bytes are written when a copy lands, not when it is issued: after a wait that is too short, memory still has its old
// bytes. A read of bytes that a pending copy of any wave will write is reported as a race and returns the stale bytes,
// as on hardware. Another wave's copies are safe to read after its wait and a barrier.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "core/base/index.h"
#include "core/smem/shared_image.h"
#include "core/staging/lds/dram_to_lds.h"
#include "core/staging/lds/lds_index.h"

namespace kvscope {

inline constexpr std::int64_t kMaxVmCount = 63;  // the counter's field has 6 bits

// The tile that a copy belongs to.
struct CopyOrigin {
  KOrV operand = KOrV::k;
  TokIdx tile_start;  // first token of the tile
  StageIdx stage;
  friend bool operator==(const CopyOrigin&, const CopyOrigin&) = default;
};

struct CopyRecord {
  WaveIdx wave;
  CopyOrigin origin;
  std::int64_t first_byte = 0;  // of the image; 1024 bytes from there
};

struct Race {
  WaveIdx reader;
  WaveIdx writer;
  CopyIdx copy;           // the copy that has not landed
  std::int64_t byte = 0;  // of the image: the first byte that was read too early
  CopyOrigin origin;      // of the copy
};
// "wave 2 reads byte 0x0400 before copy 17 of wave 3 has written it (K, tile at token 64, stage 1)"
[[nodiscard]] std::string to_text(const Race& race);

class PendingCopies {
 public:
  // `image` must outlive it. GeometryError unless waves >= 1.
  PendingCopies(SharedImage& image, std::int64_t waves);

  // Appends to the wave's queue; `region` [bytes] is the image address of the instruction's LDS byte 0, `dram` the
  // tile's first byte. The tile is read immediately: later writes to it have no effect. IndexError outside the image.
  CopyIdx issue(const CopyOrigin& origin, const CopyInstruction& instruction, std::int64_t region,
                const std::byte* dram);
  // vmcnt(count). GeometryError unless 0 <= count <= 63.
  void wait(WaveIdx wave, std::int64_t count);
  // Lands one copy early, because memory may be faster than any wait requires. False: nothing was pending.
  bool land_oldest(WaveIdx wave);
  [[nodiscard]] std::int64_t outstanding(WaveIdx wave) const;
  [[nodiscard]] std::int64_t waves() const { return static_cast<std::int64_t>(queues_.size()); }

  // The bytes that a lane of `reader` gets; bytes that a pending copy will write are reported, once per (reader, copy).
  [[nodiscard]] std::span<const std::byte> read(WaveIdx reader, std::int64_t byte, std::int64_t count);
  [[nodiscard]] const std::vector<Race>& races() const { return races_; }
  [[nodiscard]] const CopyRecord& record(CopyIdx copy) const;  // IndexError
  [[nodiscard]] const SharedImage& image() const { return *image_; }

 private:
  struct Entry {
    CopyIdx copy;
    std::array<std::byte, 1024> bytes;
  };
  std::deque<Entry>& queue_of(WaveIdx wave);
  [[nodiscard]] const std::deque<Entry>& queue_of(WaveIdx wave) const;
  void report(WaveIdx reader, std::int64_t byte, std::int64_t count);

  SharedImage* image_;
  std::vector<std::deque<Entry>> queues_;     // [wave]
  std::vector<CopyRecord> records_;           // [copy]
  std::vector<std::int32_t> pending_chunks_;  // [image / 16] pending copies that will write there
  std::vector<Race> races_;
};

}  // namespace kvscope
