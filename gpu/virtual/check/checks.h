// All checkers of a kernel, as one monitor:
//
//   Checks checks;                                        every checker that is cheap and reports no false findings
//   device.launch(module, config, checks.monitor());
//
// Other monitors, such as counters, are added with checks.add(counters).
#pragma once

#include "gpu/virtual/check/global_races.h"
#include "gpu/virtual/check/init_checker.h"
#include "gpu/virtual/check/monitor_chain.h"
#include "gpu/virtual/check/nc_checker.h"
#include "gpu/virtual/check/race_checker.h"
#include "gpu/virtual/check/tensor_checker.h"
#include "gpu/virtual/machine/matrix/wgmma_registers.h"

namespace kvscope::ptx {

struct CheckOptions {
  bool init = true;          // uses of shared bytes that have not been written
  bool global_init = false;  // uses of bytes of allocations that were made without initial values
  RaceOptions race = {};
  bool nc_modified = true;    // ld.global.nc of bytes written in this launch
  bool wgmma = true;          // registers of wgmma operations in flight
  bool tensor = true;         // order of accesses to tensor memory
  bool global_race = false;   // races in global memory, by the rules of `race`; records every access to it
  bool uninit_regs = false;   // uses of registers that have not been written
  bool uninit_local = false;  // uses of bytes of local memory that have not been written
};

class Checks {
 public:
  explicit Checks(CheckOptions options = {})
      : races_(options.race),
        init_({.shared = options.init,
               .global = options.global_init,
               .registers = options.uninit_regs,
               .local = options.uninit_local}),
        tensor_(options.race.collectives_order),
        global_races_({.same_value = options.race.same_value, .collectives_order = options.race.collectives_order}) {
    if (options.race.races || options.race.proxy) chain_.add(races_);
    if (options.init || options.global_init || options.uninit_regs || options.uninit_local) chain_.add(init_);
    if (options.nc_modified) chain_.add(read_only_);
    if (options.wgmma) chain_.add(registers_);
    if (options.tensor) chain_.add(tensor_);
    if (options.global_race) chain_.add(global_races_);
  }
  Checks(const Checks&) = delete;
  Checks& operator=(const Checks&) = delete;

  void add(Monitor& monitor) { chain_.add(monitor); }  // must outlive the checks
  // Null if no checker is on and no monitor was added.
  [[nodiscard]] Monitor* monitor() {
    return chain_.empty() ? nullptr : chain_.only() != nullptr ? chain_.only() : &chain_;
  }

 private:
  RaceChecker races_;
  InitChecker init_;
  NcChecker read_only_;
  WgmmaRegisters registers_;
  TensorChecker tensor_;
  GlobalRaces global_races_;
  MonitorChain chain_;
};

}  // namespace kvscope::ptx
