// Random numbers of a seeded schedule: identical on every host, part of the launch's state.
#pragma once

#include <cstdint>

#include "gpu/virtual/machine/state.h"

namespace kvscope::ptx {

// A number in 0 .. below - 1. splitmix64 (Steele, Lea, Flood 2014).
[[nodiscard]] inline std::uint64_t next_random(Launch& launch, std::uint64_t below) {
  std::uint64_t z = launch.random += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return (z ^ (z >> 31)) % below;
}

}  // namespace kvscope::ptx
