#pragma once

namespace poisson {

/// The routines of BLAS and LAPACK that are used, by their names in Fortran. Integers are 32-bit. The trailing lengths of character
/// arguments, which Fortran compilers add, are left out as is usual: all are 1.
struct LapackFunctions {
  void (*dgemm)(char const* transpose_a, char const* transpose_b, int const* m, int const* n, int const* k, double const* alpha,
                double const* a, int const* lda, double const* b, int const* ldb, double const* beta, double* c, int const* ldc);
  void (*dgesdd)(char const* job, int const* m, int const* n, double* a, int const* lda, double* s, double* u, int const* ldu,
                 double* vt, int const* ldvt, double* work, int const* lwork, int* iwork, int* info);
  void (*dgeqrt3)(int const* m, int const* n, double* a, int const* lda, double* t, int const* ldt, int* info);
  void (*dlarfb)(char const* side, char const* transpose, char const* direction, char const* storage, int const* m, int const* n,
                 int const* k, double const* v, int const* ldv, double const* t, int const* ldt, double* c, int const* ldc,
                 double* work, int const* ldwork);
  void (*dlasq1)(int const* n, double* d, double* e, double* work, int* info);
  void (*dlasdq)(char const* uplo, int const* sqre, int const* n, int const* ncvt, int const* nru, int const* ncc, double* d,
                 double* e, double* vt, int const* ldvt, double* u, int const* ldu, double* c, int const* ldc, double* work,
                 int* info);
  void (*dgeqrf)(int const* m, int const* n, double* a, int const* lda, double* tau, double* work, int const* lwork, int* info);
  void (*dorgqr)(int const* m, int const* n, int const* k, double* a, int const* lda, double const* tau, double* work,
                 int const* lwork, int* info);
};

/// The library poisson_lapack, which is loaded by the first call: only singular values need it, and OpenBLAS takes memory and time
/// as it starts. Throws EnvironmentError where it cannot be loaded.
[[nodiscard]] LapackFunctions const& lapack();

}  // namespace poisson

extern "C" poisson::LapackFunctions const* poisson_lapack();
