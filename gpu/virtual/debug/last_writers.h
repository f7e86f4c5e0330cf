// Who wrote each byte of shared memory last: a thread's instruction, or a copy and the instruction that asked for it.
// Plain values, 16 bytes a byte of shared memory of the CTAs that have written some: a copy is as good as the original,
// which is how a debugger goes back (controlled_run.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gpu/virtual/machine/monitor.h"
#include "gpu/virtual/machine/program/program.h"

namespace kvscope::ptx {

struct Writer {
  std::uint64_t step = 0;    // warp instructions done before: seek(step) stands before the write
  std::int32_t pc = -1;      // of the instruction, for a copy of the one that issued it; -1: nobody has written
  std::int16_t thread = -1;  // in the CTA; of a whole warp (stmatrix) its first
  bool whole_warp = false;
  bool engine = false;                   // a copy; then
  AsyncKind copy = AsyncKind::cp_async;  // of this kind
  friend bool operator==(const Writer&, const Writer&) = default;
};

class LastWriters final : public Monitor {
 public:
  // Of one byte: its offset in the window of the CTA. Nobody: Writer{}.
  [[nodiscard]] Writer of(std::int32_t cta, std::uint64_t offset) const;
  [[nodiscard]] std::int64_t bytes() const;  // that this takes

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

// Of `count` bytes from a shared address of the CTA on, a line for each run of bytes that one instruction wrote:
//   0x00400-0x0047f  warp 0 lanes 0-31  st.shared.f32  reverse.cu:3  step 8
//   0x00480-0x0048f  nobody
[[nodiscard]] std::string writers_text(const LastWriters& writers, const Program& program, std::int32_t cta,
                                       std::uint64_t address, std::int64_t count);

}  // namespace kvscope::ptx
