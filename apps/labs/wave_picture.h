// The failing interleaving of lab 12 as a picture: a line for each step with the statement of each wave, and the stages
// at the end with the copies of each wave in them.
//
//            wave 0              wave 1
//   step 3                       issue K 0 into 0      the statement that fails has CellMark::wrong
//   step 5   barrier             barrier
//
//                part of wave 0   part of wave 1
//   K stage 0    tile 0, landed   tile 0, in flight    what the read lacks has CellMark::wrong
#pragma once

#include "apps/labs/picture.h"
#include "apps/labs/wave_search.h"

namespace kvscope::labs {

// `block`: the one that the program ran on. Copies land as late as the waits allow, as in the search.
[[nodiscard]] CasePicture wave_picture(const WaveBlock& block, const WaveFault& fault);

}  // namespace kvscope::labs
