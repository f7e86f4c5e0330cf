// continuous_decode is paged_decode's device code, and has its sizes.
#pragma once

#include "gpu/kernels/paged_decode/config.h"
