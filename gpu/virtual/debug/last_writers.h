// The last writer of each byte of shared memory: a thread's instruction, or a copy and the instruction that issued it.
// Uses 16 bytes per byte of shared memory, for each CTA that has written any. Plain values: a snapshot copies them
// (controlled_run.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gpu/virtual/machine/monitor.h"
#include "gpu/virtual/machine/program/program.h"

namespace kvscope::ptx {

struct Writer {
  std::uint64_t step = 0;    // warp instructions executed before: seek(step) stops just before the write
  std::int32_t pc = -1;      // of the instruction, or of the one that issued the copy; -1: not written
  std::int16_t thread = -1;  // in the CTA; for a whole warp (stmatrix) its first
  bool whole_warp = false;
  bool engine = false;                   // written by a copy
  AsyncKind copy = AsyncKind::cp_async;  // the kind of that copy
  friend bool operator==(const Writer&, const Writer&) = default;
};

class LastWriters final : public Monitor {
 public:
  // The writer of one byte, given by its offset in the CTA's window. Writer{} if the byte was not written.
  [[nodiscard]] Writer of(std::int32_t cta, std::uint64_t offset) const;
  [[nodiscard]] std::int64_t bytes() const;  // memory that this object uses

  void cta_begins(Launch& launch, const Cta& cta) override;
  void cta_ends(Launch& launch, const Cta& cta) override;
  void stored(const Exec& exec, const Op& op, const WarpAccess& access) override;
  void mbarrier(Launch& launch, const Cta& cta, const Exec* exec, LaneMask lanes, MbarrierEvent event,
                std::uint64_t address, std::int64_t amount, Order order, Scope scope) override;
  void async_moves(Launch& launch, const Cta& cta, const AsyncOp& op, std::span<const ByteRange> reads,
                   std::span<const ByteRange> writes) override;

 private:
  void write(const Launch& launch, const Cta& by, std::uint64_t address, std::int64_t bytes, const Writer& writer);

  std::map<std::int32_t, std::vector<Writer>> ctas_;  // by index: [byte of shared memory, from kSharedBase on]
};

// The writers of `count` bytes from a shared address of the CTA, one line per run of bytes written by one instruction:
//   0x00400-0x0047f  warp 0 lanes 0-31  st.shared.f32  reverse.cu:3  step 8
//   0x00480-0x0048f  not written
[[nodiscard]] std::string writers_text(const LastWriters& writers, const Program& program, std::int32_t cta,
                                       std::uint64_t address, std::int64_t count);

}  // namespace kvscope::ptx
