#include "tests/gpu/cases.hpp"

#include "gpu/core/array.hpp"
#include "gpu/kernels/blas.hpp"

#include <cmath>
#include <limits>
#include <vector>

extern "C" __attribute__((weak)) char* openblas_get_corename();

namespace poisson::testing {

namespace {

TEST(BlasOfTheHost, UsesTheVectorsOfTheProcessor) {
  if (openblas_get_corename == nullptr || !__builtin_cpu_supports("avx2"))
    GTEST_SKIP() << "no OpenBLAS, or a processor without AVX2";
  EXPECT_STRNE(openblas_get_corename(), "Prescott");
}

template <class B>
class Blas : public OnBackend<B::value> {};
TYPED_TEST_SUITE(Blas, Backends, BackendNames);

double wave(std::int64_t i) {
  return std::sin(0.7 * static_cast<double>(i) + 0.3);
}

TYPED_TEST(Blas, GemmAgainstThreeLoops) {
  struct Size {
    std::int64_t m, n, k;
  };
  for (Size const size : {Size{1, 1, 1}, {3, 5, 7}, {64, 33, 17}, {130, 1, 65}, {4, 6, 0}, {0, 3, 2}})
    for (bool const ta : {false, true})
      for (bool const tb : {false, true})
        for (double const beta : {0.0, -0.5}) {
          std::int64_t const lda = (ta ? size.k : size.m) + 2, ldb = (tb ? size.n : size.k) + 1, ldc = size.m + 3;
          std::vector<double> a(static_cast<std::size_t>(lda * (ta ? size.m : size.k) + 1)),
              b(static_cast<std::size_t>(ldb * (tb ? size.k : size.n) + 1)), c(static_cast<std::size_t>(ldc * size.n + 1));
          for (std::size_t i = 0; i < a.size(); ++i)
            a[i] = wave(static_cast<std::int64_t>(i));
          for (std::size_t i = 0; i < b.size(); ++i)
            b[i] = wave(static_cast<std::int64_t>(3 * i + 1));
          for (std::size_t i = 0; i < c.size(); ++i)
            c[i] = beta == 0 ? std::numeric_limits<double>::quiet_NaN() : wave(static_cast<std::int64_t>(5 * i + 2));
          std::vector<double> expected = c;
          for (std::int64_t j = 0; j < size.n; ++j)
            for (std::int64_t i = 0; i < size.m; ++i) {
              double sum = 0;
              for (std::int64_t l = 0; l < size.k; ++l)
                sum += a[static_cast<std::size_t>(ta ? l + i * lda : i + l * lda)] *
                       b[static_cast<std::size_t>(tb ? j + l * ldb : l + j * ldb)];
              double& value = expected[static_cast<std::size_t>(i + j * ldc)];
              value = 1.5 * sum + (beta == 0 ? 0 : beta * value);
            }
          Array<double> const a_there(*this->context, std::span<double const>(a)),
              b_there(*this->context, std::span<double const>(b));
          Array<double> c_there(*this->context, std::span<double const>(c));
          gemm(*this->context, ta, tb, size.m, size.n, size.k, 1.5, a_there.data(), lda, b_there.data(), ldb, beta, c_there.data(),
               ldc);
          c_there.download(c);
          for (std::size_t i = 0; i < c.size(); ++i)
            if (std::isnan(expected[i]))
              ASSERT_TRUE(std::isnan(c[i])) << "outside of C, " << i;
            else
              ASSERT_NEAR(c[i], expected[i], 1e-13)
                  << size.m << " x " << size.n << " x " << size.k << ", " << ta << tb << ", " << i;
        }
}

}  // namespace

}  // namespace poisson::testing
