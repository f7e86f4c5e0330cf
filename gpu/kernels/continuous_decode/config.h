// continuous_decode uses paged_decode's device code and its sizes.
#pragma once

#include "gpu/kernels/paged_decode/config.h"
