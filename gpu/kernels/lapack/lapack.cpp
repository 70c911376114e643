#include "gpu/kernels/cpu/lapack.hpp"

#include <cstdlib>
#include <cstring>

extern "C" {
void dgemm_(char const* transpose_a, char const* transpose_b, int const* m, int const* n, int const* k, double const* alpha,
            double const* a, int const* lda, double const* b, int const* ldb, double const* beta, double* c, int const* ldc);
void dgesdd_(char const* job, int const* m, int const* n, double* a, int const* lda, double* s, double* u, int const* ldu,
             double* vt, int const* ldvt, double* work, int const* lwork, int* iwork, int* info);
void dgeqrt3_(int const* m, int const* n, double* a, int const* lda, double* t, int const* ldt, int* info);
void dlarfb_(char const* side, char const* transpose, char const* direction, char const* storage, int const* m, int const* n,
             int const* k, double const* v, int const* ldv, double const* t, int const* ldt, double* c, int const* ldc,
             double* work, int const* ldwork);
void dlasq1_(int const* n, double* d, double* e, double* work, int* info);
void dlasdq_(char const* uplo, int const* sqre, int const* n, int const* ncvt, int const* nru, int const* ncc, double* d, double* e,
             double* vt, int const* ldvt, double* u, int const* ldu, double* c, int const* ldc, double* work, int* info);
void dgeqrf_(int const* m, int const* n, double* a, int const* lda, double* tau, double* work, int const* lwork, int* info);
void dorgqr_(int const* m, int const* n, int const* k, double* a, int const* lda, double const* tau, double* work, int const* lwork,
             int* info);

// OpenBLAS's own, absent (null) where another BLAS is linked.
__attribute__((weak)) char* openblas_get_corename();
__attribute__((weak)) void gotoblas_dynamic_init();
__attribute__((weak)) void gotoblas_dynamic_quit();
}

namespace {

/// OpenBLAS chooses its kernels by the processor's model number. For one newer than itself it takes those of 2004, with a fifth of
/// the speed (Debian 12's on a Xeon of 2023). Then it is told to choose again, by what the processor can do; before any thread is
/// there.
bool const chosen_again = [] {
  if (openblas_get_corename == nullptr || gotoblas_dynamic_init == nullptr || gotoblas_dynamic_quit == nullptr ||
      std::getenv("OPENBLAS_CORETYPE") != nullptr || std::strcmp(openblas_get_corename(), "Prescott") != 0)
    return false;
  bool const wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (!wide && !(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")))
    return false;
  setenv("OPENBLAS_CORETYPE", wide ? "SkylakeX" : "Haswell", 1);
  gotoblas_dynamic_quit();
  gotoblas_dynamic_init();
  unsetenv("OPENBLAS_CORETYPE");
  return true;
}();

/// OpenBLAS takes memory to work in with the first call that needs any (a product of small matrices does not), and looks for it for
/// ever where there is none. With the library loaded it has that memory (load_blas).
bool const has_memory = [] {
  constexpr int rows = 4, columns = 2;
  double a[rows * columns] = {1, 1, 1, 1, 1, 2, 3, 4}, t[columns * columns];
  int info = 0;
  dgeqrt3_(&rows, &columns, a, &rows, t, &columns, &info);
  return info == 0;
}();

}  // namespace

poisson::LapackFunctions const* poisson_lapack() {
  static constexpr poisson::LapackFunctions functions{dgemm_, dgesdd_, dgeqrt3_, dlarfb_, dlasq1_, dlasdq_, dgeqrf_, dorgqr_};
  return &functions;
}
