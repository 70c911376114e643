#pragma once

/// Marks functions that host and device code share.
#ifdef __CUDACC__
#define POISSON_HOST_DEVICE __host__ __device__
#else
#define POISSON_HOST_DEVICE
#endif
