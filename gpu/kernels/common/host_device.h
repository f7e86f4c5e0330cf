// A function of a config.h that the kernel and whoever launches it both call: how work is cut, never where it lies.
#pragma once

#ifdef __CUDACC__
#define HOST_DEVICE __host__ __device__
#else
#define HOST_DEVICE
#endif
