#pragma once

// The routines of LAPACK that are used, by their Fortran symbols, which every implementation has. Integers are 32-bit.
// The trailing lengths of character arguments, which Fortran compilers add, are left out as is usual: all are 1.

extern "C" {
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
}
