// The first call after which an allocator of lab 04 differs from the model: the blocks after each of the calls before
// it, and after this one as the model has them and as the student's code has them.
//
//                             0         1         2           3
//   event 7: release(1)     [ s0 ]    [ s0 ]    [ cached 1 ][ free 1 ]      s0: sequence 0 holds the block
//   event 8: append(0)      [ s0 ]    [ s0 ]    [ cached 1 ][ s0 ]          cached 1: the first to be evicted
//   your code: block 2      [ s0 ]    [ s0 ]    [ s0 ]      [ free 1 ]      free 1: the first to be allocated
#pragma once

#include <cstddef>

#include "apps/labs/picture.h"
#include "apps/labs/pool_calls.h"

namespace kvscope::labs {

// `call`: the index in script.calls of that call; `given`: the student's state after it. Below a block of the model is
// the hash by which share() finds it, or the number of its tokens if it is a last page with room.
[[nodiscard]] CasePicture allocator_picture(const PoolScript& script, std::size_t call, const PoolState& given);

}  // namespace kvscope::labs
