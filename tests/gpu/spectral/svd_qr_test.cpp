#include "gpu/kernels/backends.hpp"
#include "gpu/spectral/qr.hpp"

#include "tests/gpu/cases.hpp"

#include <cmath>
#include <random>
#include <vector>

namespace poisson::testing {

namespace {

template <class B>
class QrOfTall : public OnBackend<B::value> {};
TYPED_TEST_SUITE(QrOfTall, Backends, BackendNames);

TEST(RowChunks, CoverAllRowsAndHaveEnough) {
  for (std::int64_t const n : {1, 5, 32, 64})
    for (std::int64_t const rows : {2 * n, 3 * n + 1, 192 + n})
      for (std::int64_t m = n; m < 5 * rows; ++m) {
        RowChunks const chunks(m, n, rows);
        ASSERT_EQ(chunks.begin(0), 0);
        ASSERT_EQ(chunks.end(chunks.count - 1), m);
        for (std::int64_t c = 0; c < chunks.count; ++c) {
          ASSERT_GE(chunks.end(c) - chunks.begin(c), n) << m << ' ' << n << ' ' << rows;
          ASSERT_LE(chunks.end(c) - chunks.begin(c), rows);
          if (c > 0) {
            ASSERT_EQ(chunks.begin(c), chunks.end(c - 1));
          }
        }
      }
}

enum class Kind { random, rank_one, zero, dependent, graded };

std::vector<double> matrix(std::int64_t m, std::int64_t n, Kind kind) {
  std::mt19937_64 engine(static_cast<unsigned>(m + 31 * n));
  std::uniform_real_distribution<double> uniform(-0.5, 0.5);
  std::vector<double> a(static_cast<std::size_t>(m * n));
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t i = 0; i < m; ++i) {
      double& entry = a[static_cast<std::size_t>(i + j * m)];
      if (kind == Kind::rank_one)
        entry = std::sin(static_cast<double>(i)) * std::cos(static_cast<double>(j));
      else if (kind == Kind::zero)
        entry = 0;
      else if (kind == Kind::dependent && j % 3 == 2)  // equals the column before
        entry = a[static_cast<std::size_t>(i + (j - 1) * m)];
      else
        entry = uniform(engine) * (kind == Kind::graded ? std::pow(0.5, static_cast<double>(j)) : 1);
    }
  return a;
}

TYPED_TEST(QrOfTall, GivesTheMatrixAndOrthonormalColumns) {
  struct Size {
    std::int64_t m, n;
  };
  // Around chunks (CUDA: 1024 rows up to 12 columns, 384 for 32, 192 for 64; CPU: 4096), several levels, panels of 64.
  for (Size const size : {Size{1, 1},
                          {2, 1},
                          {5, 3},
                          {33, 32},
                          {64, 64},
                          {191, 64},
                          {193, 64},
                          {256, 64},
                          {257, 64},
                          {384, 32},
                          {400, 32},
                          {5000, 64},
                          {20000, 7},
                          {4097, 5},
                          {65, 65},
                          {300, 65},
                          {1000, 130},
                          {260, 256}})
    for (Kind const kind : {Kind::random, Kind::rank_one, Kind::zero, Kind::dependent, Kind::graded}) {
      auto const [m, n] = size;
      std::vector<double> const a = matrix(m, n, kind);
      TallQr qr(*this->context, m, n, Array<double>(*this->context, std::span<double const>(a)));
      std::vector<double> r(static_cast<std::size_t>(n * n)), identity(r.size()), q(a.size()), product(a.size());
      qr.r().download(r);
      for (std::int64_t j = 0; j < n; ++j) {
        identity[static_cast<std::size_t>(j + j * n)] = 1;
        for (std::int64_t i = j + 1; i < n; ++i)
          ASSERT_EQ(r[static_cast<std::size_t>(i + j * n)], 0);
      }
      Array<double> const identity_there(*this->context, std::span<double const>(identity));
      Array<double> y(*this->context, m * n);
      qr.apply(n, identity_there.data(), y.data());
      y.download(q);
      qr.apply(n, qr.r().data(), y.data());
      y.download(product);
      double const bound = 1e-14 * std::sqrt(static_cast<double>(n)) * 2;
      for (std::int64_t j = 0; j < n; ++j) {
        double squared = 0;
        for (std::int64_t i = 0; i < m; ++i)
          squared += a[static_cast<std::size_t>(i + j * m)] * a[static_cast<std::size_t>(i + j * m)];
        for (std::size_t i = static_cast<std::size_t>(j * m); i < static_cast<std::size_t>((j + 1) * m); ++i)
          ASSERT_NEAR(product[i], a[i], bound / 4 * std::sqrt(squared)) << m << " x " << n << ", kind " << static_cast<int>(kind);
      }
      for (std::int64_t j = 0; j < n; ++j)
        for (std::int64_t l = 0; l <= j; ++l) {
          double sum = 0;
          for (std::int64_t i = 0; i < m; ++i)
            sum += q[static_cast<std::size_t>(i + j * m)] * q[static_cast<std::size_t>(i + l * m)];
          ASSERT_NEAR(sum, l == j ? 1 : 0, bound) << m << " x " << n << ", kind " << static_cast<int>(kind);
        }
    }
}

TYPED_TEST(QrOfTall, FewColumnsOfQ) {
  std::vector<double> const a = matrix(3000, 40, Kind::random);
  TallQr qr(*this->context, 3000, 40, Array<double>(*this->context, std::span<double const>(a)));
  std::vector<double> x(80), identity(1600), y(6000), q(120000);
  for (std::size_t i = 0; i < 80; ++i)
    x[i] = std::sin(static_cast<double>(i));
  for (std::size_t i = 0; i < 40; ++i)
    identity[41 * i] = 1;
  Array<double> y_there(*this->context, 6000), q_there(*this->context, 120000);
  qr.apply(2, Array<double>(*this->context, std::span<double const>(x)).data(), y_there.data());
  qr.apply(40, Array<double>(*this->context, std::span<double const>(identity)).data(), q_there.data());
  y_there.download(y);
  q_there.download(q);
  for (std::size_t j = 0; j < 2; ++j)
    for (std::size_t i = 0; i < 3000; ++i) {
      double sum = 0;
      for (std::size_t l = 0; l < 40; ++l)
        sum += q[i + 3000 * l] * x[l + 40 * j];
      ASSERT_NEAR(y[i + 3000 * j], sum, 1e-14);
    }
}

TYPED_TEST(QrOfTall, TakesTheBytesItSays) {
  if (this->context->backend() == Backend::cpu)
    GTEST_SKIP() << "the host does not count";
  for (std::int64_t const n : {20, 150}) {
    auto const fresh = make_context(Backend::cuda);
    std::vector<double> const a = matrix(9000, n, Kind::random);
    Array<double> there(*fresh, std::span<double const>(a));
    std::int64_t const before = fresh->memory_used();
    TallQr qr(*fresh, 9000, n, std::move(there));
    EXPECT_LE(fresh->memory_peak() - before, TallQr::bytes(*fresh, 9000, n));
    Array<double> y(*fresh, 9000 * n);
    std::int64_t const used = fresh->memory_used();
    qr.apply(n, qr.r().data(), y.data());
    EXPECT_LE(fresh->memory_peak() - used, TallQr::apply_bytes(*fresh, 9000, n, n));
  }
}

}  // namespace

}  // namespace poisson::testing
