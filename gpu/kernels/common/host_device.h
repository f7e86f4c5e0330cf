// Marks functions of a config.h that host and device both call: work partitioning only, no addresses.
#pragma once

#ifdef __CUDACC__
#define HOST_DEVICE __host__ __device__
#else
#define HOST_DEVICE
#endif
