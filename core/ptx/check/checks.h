// Everything that can watch a kernel for mistakes, as one monitor:
//
//   Checks checks;                                        all that cost little and say no untruth
//   device.launch(module, config, checks.monitor());
//
// Counters are no check; they are added beside: checks.add(counters).
#pragma once

#include "core/ptx/check/init_checker.h"
#include "core/ptx/check/monitor_chain.h"
#include "core/ptx/check/nc_checker.h"
#include "core/ptx/check/race_checker.h"
#include "core/ptx/machine/wgmma_registers.h"

namespace kvscope::ptx {

struct CheckOptions {
  bool init = true;          // shared bytes that nobody has written
  bool global_init = false;  // bytes of allocations that were made without being filled
  RaceOptions race = {};
  bool nc_modified = true;  // ld.global.nc of bytes written in this launch
  bool wgmma = true;        // registers of products on their way
};

class Checks {
 public:
  explicit Checks(CheckOptions options = {})
      : races_(options.race), init_({.shared = options.init, .global = options.global_init}) {
    if (options.race.races || options.race.proxy) chain_.add(races_);
    if (options.init || options.global_init) chain_.add(init_);
    if (options.nc_modified) chain_.add(read_only_);
    if (options.wgmma) chain_.add(registers_);
  }
  Checks(const Checks&) = delete;
  Checks& operator=(const Checks&) = delete;

  void add(Monitor& monitor) { chain_.add(monitor); }  // it outlives the checks
  // Null when nothing watches.
  [[nodiscard]] Monitor* monitor() { return chain_.empty() ? nullptr : &chain_; }

 private:
  RaceChecker races_;
  InitChecker init_;
  NcChecker read_only_;
  WgmmaRegisters registers_;
  MonitorChain chain_;
};

}  // namespace kvscope::ptx
