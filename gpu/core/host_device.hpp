#pragma once

/// Marks functions that host and device code share.
#ifdef __CUDACC__
#define POISSON_HOST_DEVICE __host__ __device__
#else
#define POISSON_HOST_DEVICE
#endif

/// Marks loops in them that a device's compiler is to unroll; the host's compiler, which nvcc calls as well, does not know the
/// pragma.
#ifdef __CUDA_ARCH__
#define POISSON_UNROLL _Pragma("unroll")
#else
#define POISSON_UNROLL
#endif

/// Marks loops in them whose passes are independent, for the vector registers of the host.
#if defined(_OPENMP) && !defined(__CUDACC__)
#define POISSON_SIMD _Pragma("omp simd")
#else
#define POISSON_SIMD
#endif
