// The handling of a store to a page that was never assigned: dropped, counted, and thrown if requested. The caller owns
// it, because caches are trivially copyable views; a cache without one drops such stores silently.
#pragma once

#include <cstdint>

namespace kvscope {

struct StoreDrops {
  std::int64_t count = 0;  // writes dropped so far, one for each store call
  bool raise = false;      // throw IndexError as well
};

}  // namespace kvscope
