// What threads and copies do with the arrival barrier of a CTA, phase by phase, and which mistake explains a report of
// the virtual GPU. The sentences use the functions of the course's tma.h, not the instructions of PTX.
//
//   phase 0   1 of 128 arrivals   16384 bytes announced   16384 landed    barrier_init asks for 128 arrivals, 1 arrives
//
// For kernels with one barrier and one CTA.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "apps/labs/picture.h"
#include "gpu/virtual/machine/diagnosis/report.h"
#include "gpu/virtual/machine/monitor.h"

namespace kvscope::labs {

class BarrierLog final : public ptx::Monitor {
 public:
  struct Phase {
    std::int64_t arrivals = 0, announced = 0, landed = 0;  // [arrivals], [bytes], [bytes]
  };

  [[nodiscard]] bool wants_instructions() const override { return true; }
  void instruction(const ptx::Exec& exec, const ptx::Op& op, ptx::LaneMask lanes) override;
  void mbarrier(ptx::Launch& launch, const ptx::Cta& cta, const ptx::Exec* exec, ptx::LaneMask lanes,
                ptx::MbarrierEvent event, std::uint64_t address, std::int64_t count, ptx::Order order,
                ptx::Scope scope) override;

  [[nodiscard]] std::int64_t asked() const { return asked_; }  // arrivals of a phase; 0: barrier_init was not called
  [[nodiscard]] const std::vector<Phase>& phases() const { return phases_; }      // the last one may be incomplete
  [[nodiscard]] std::uint64_t largest_parity() const { return largest_parity_; }  // that a wait asked for

  // The mistake that explains the report, in one sentence; empty when the log does not explain it.
  [[nodiscard]] std::string cause(const ptx::Report& report, std::int64_t threads) const;
  // The phases as text, one per line, and as a picture. The threads of the CTA that waited are in the last line.
  [[nodiscard]] std::string text(std::int64_t threads) const;
  [[nodiscard]] PictureGrid grid(std::int64_t threads) const;

 private:
  [[nodiscard]] std::string cause_of_early_read(std::int64_t threads) const;
  [[nodiscard]] std::string cause_of_deadlock() const;

  std::uint64_t largest_parity_ = 0;
  std::int64_t asked_ = 0, maker_ = -1;  // maker_: the thread that called barrier_init
  std::vector<Phase> phases_;
  std::set<std::int64_t> waited_;                // threads
  std::map<std::int64_t, std::int64_t> passed_;  // thread: the phase that its last wait found complete
  bool began_with_parity_1_ = false, passed_twice_ = false;
};

}  // namespace kvscope::labs
