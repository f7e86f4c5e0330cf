// What happens to a write whose page was never assigned: dropped, counted, and raised if asked for. Owned by the
// caller, since caches are trivially copyable views; a cache without one drops silently.
#pragma once

#include <cstdint>

namespace kvscope {

struct StoreDrops {
  std::int64_t count = 0;  // writes dropped so far, one for each store call
  bool raise = false;      // throw IndexError as well
};

}  // namespace kvscope
