// Copies that a wave has issued and that have not landed: a queue a wave, in the order of issue. What is counted is
// instructions, not bytes or lanes.
//
//   issue   ->  [ K K K K | V V V V ]      wait(4): the four K land, oldest first, until 4 remain
//                 oldest        newest     s_waitcnt vmcnt(N): N is 0..63, and says nothing about other waves
//
// Bytes are written when a copy lands, not when it is issued: a wait too short leaves what stood there before. A read
// that touches what any wave has still to bring is reported as a race; it goes on with the stale bytes, as the
// hardware's would. Another wave's copies are safe to read after its wait and a barrier.
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

// Which tile a copy belongs to.
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
  CopyIdx copy;           // that has not landed
  std::int64_t byte = 0;  // of the image: the first that was read too early
  CopyOrigin origin;      // of the copy
};
// "wave 2 reads byte 0x0400 before copy 17 of wave 3 brings it (K, tile at token 64, stage 1)"
[[nodiscard]] std::string to_text(const Race& race);

class PendingCopies {
 public:
  // `image` outlives it. GeometryError unless waves >= 1.
  PendingCopies(SharedImage& image, std::int64_t waves);

  // Appends to the wave's queue; `region` [bytes] is the image address of the instruction's LDS byte 0, `dram` the
  // tile's first byte. The tile is read now: what is written to it later is not seen. IndexError outside the image.
  CopyIdx issue(const CopyOrigin& origin, const CopyInstruction& instruction, std::int64_t region,
                const std::byte* dram);
  // vmcnt(count). GeometryError unless 0 <= count <= 63.
  void wait(WaveIdx wave, std::int64_t count);
  // Memory may be faster than any wait asks. False: nothing was pending.
  bool land_oldest(WaveIdx wave);
  [[nodiscard]] std::int64_t outstanding(WaveIdx wave) const;
  [[nodiscard]] std::int64_t waves() const { return static_cast<std::int64_t>(queues_.size()); }

  // What a lane of `reader` gets; bytes that a pending copy will bring are reported, once a (reader, copy).
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
  std::vector<std::int32_t> pending_chunks_;  // [image / 16] copies that will write there
  std::vector<Race> races_;
};

}  // namespace kvscope
