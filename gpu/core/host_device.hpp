#pragma once

/// Marks functions that host and device code share, and loops in them that a device's compiler is to unroll.
#ifdef __CUDACC__
#define POISSON_HOST_DEVICE __host__ __device__
#define POISSON_UNROLL _Pragma("unroll")
#else
#define POISSON_HOST_DEVICE
#define POISSON_UNROLL
#endif
