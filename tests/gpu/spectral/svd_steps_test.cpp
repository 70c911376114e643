#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/svd.hpp"
#include "gpu/spectral/band_reduction.hpp"
#include "gpu/spectral/bidiagonal.hpp"
#include "gpu/spectral/orthonormal.hpp"
#include "gpu/spectral/qr.hpp"
#include "tests/gpu/svd_support.hpp"

#include <utility>

namespace poisson::testing {
namespace {

constexpr double eps = 2.3e-16;

template <class B>
class SvdSteps : public OnBackend<B::value> {
protected:
  void TearDown() override { clear_interrupt(); }
  [[nodiscard]] SvdKernels const& kernels() const { return kernels_for<SvdKernels>(*this->context); }

  /// The band as a full matrix, everything stored for it included: what lies outside the band shows as well.
  [[nodiscard]] static DenseMatrix full(Array<double> const& array, std::int64_t n, int width) {
    HostVector<double> host(static_cast<std::size_t>(array.size()));
    array.download(host);
    BandView const band = BandView::in(host.data(), n, width);
    DenseMatrix b = zeros(n, n);
    for (std::int64_t c = 0; c < n; ++c)
      for (std::int64_t r = std::max<std::int64_t>(0, c - 2 * width + 1); r <= std::min(n - 1, c + width - 1); ++r)
        b(r, c) = band.entries[r + c * band.leading()];
    return b;
  }

  [[nodiscard]] static Array<double> band_of(Context& context, DenseMatrix const& b, int width) {
    HostVector<double> host(static_cast<std::size_t>(BandView::size(b.n_rows, width)), 0.0);
    BandView const band = BandView::in(host.data(), b.n_rows, width);
    for (std::int64_t c = 0; c < b.n_columns; ++c)
      for (std::int64_t r = std::max<std::int64_t>(0, c - width); r <= c; ++r)
        band.entries[r + c * band.leading()] = b(r, c);
    return Array<double>(context, std::span<double const>(host));
  }
};
TYPED_TEST_SUITE(SvdSteps, Backends, BackendNames);

void expect_panel(Context& context, SvdKernels const& kernels, DenseMatrix const& a, std::string const& what) {
  SCOPED_TRACE(what + ", " + std::to_string(a.n_rows) + " x " + std::to_string(a.n_columns));
  std::int64_t const m = a.n_rows, w = a.n_columns, q = std::min(m, w);
  Array<double> panel = on_backend(context, a), t_array = on_backend(context, identity(w, w)),
                r_array = on_backend(context, zeros(q, w));
  kernels.panel_qr(context, m, static_cast<int>(w), panel.data(), m, t_array.data(), w, r_array.data(), 1, q);
  DenseMatrix y(m, q), t(q, q);
  DenseMatrix const y_all = from_backend(panel, m, w), t_all = from_backend(t_array, w, w), r = from_backend(r_array, q, w);
  for (std::int64_t k = 0; k < q; ++k) {
    std::copy_n(y_all.column(k), m, y.column(k));
    std::copy_n(t_all.column(k), q, t.column(k));
    for (std::int64_t i = 0; i < k; ++i)
      EXPECT_EQ(y(i, k), 0);
    for (std::int64_t i = k + 1; i < q; ++i)
      EXPECT_EQ(t(i, k), 0);
  }
  DenseMatrix product = y * (t * transposed(y)), q_matrix = identity(m, m);
  for (std::size_t i = 0; i < product.values.size(); ++i)
    q_matrix.values[i] -= product.values[i];
  double const size = std::sqrt(static_cast<double>(m));
  EXPECT_LT(distance_from_orthogonal(q_matrix), 10 * eps * size);
  DenseMatrix r_full = zeros(m, w);
  for (std::int64_t k = 0; k < w; ++k)
    std::copy_n(r.column(k), std::min(k + 1, q), r_full.column(k));
  EXPECT_LT(distance(q_matrix * r_full, a), 20 * eps * distance(a, zeros(m, w)) + 1e-140);
}

TYPED_TEST(SvdSteps, PanelIsFactored) {
  for (auto const& [m, w] : std::initializer_list<std::pair<int, int>>{{1, 1},
                                                                       {2, 1},
                                                                       {1, 3},
                                                                       {3, 5},
                                                                       {5, 3},
                                                                       {31, 32},
                                                                       {32, 32},
                                                                       {33, 32},
                                                                       {64, 64},
                                                                       {65, 64},
                                                                       {200, 7},
                                                                       {127, 64},
                                                                       {129, 64},
                                                                       {300, 128},

                                                                       {600, 64}}) {
    expect_panel(*this->context, this->kernels(), uniform(m, w, 1), "uniform");
    expect_panel(*this->context, this->kernels(), zeros(m, w), "zero");
    expect_panel(*this->context, this->kernels(), uniform(m, 1, 2) * uniform(1, w, 3), "rank one");
    expect_panel(*this->context, this->kernels(), identity(m, w), "identity");
    DenseMatrix graded = uniform(m, w, 4);
    for (std::int64_t j = 0; j < w; ++j)
      for (std::int64_t i = 0; i < m; ++i)
        graded(i, j) *= std::pow(10.0, -3.0 * static_cast<double>(j) - 0.05 * static_cast<double>(i));
    expect_panel(*this->context, this->kernels(), graded, "graded");
  }
}

/// More rows than the blocks of a device hold in registers, and in shared memory. Q is too large to be formed.
TYPED_TEST(SvdSteps, TallPanelIsFactored) {
  for (auto const& [m, w] : std::initializer_list<std::pair<std::int64_t, int>>{{20000, 8}, {40000, 8}, {60000, 64}}) {
    SCOPED_TRACE(std::to_string(m) + " x " + std::to_string(w));
    DenseMatrix const a = uniform(m, w, 8);
    Array<double> panel = on_backend(*this->context, a), t_array(*this->context, w * w),
                  r_array = on_backend(*this->context, zeros(w, w));
    this->kernels().panel_qr(*this->context, m, w, panel.data(), m, t_array.data(), w, r_array.data(), 1, w);
    DenseMatrix const y = from_backend(panel, m, w), t = from_backend(t_array, w, w), r = from_backend(r_array, w, w);
    // Q is orthogonal if and only if T + T^T = T^T Y^T Y T.
    DenseMatrix const gram = transposed(t) * ((transposed(y) * y) * t);
    DenseMatrix both = transposed(t);
    for (std::size_t i = 0; i < both.values.size(); ++i)
      both.values[i] += t.values[i];
    EXPECT_LT(distance(gram, both), 1e-14 * w);
    DenseMatrix rest = y * (transposed(t) * (transposed(y) * a));  // Q^T A = A - Y T^T Y^T A = (R, 0)
    for (std::int64_t k = 0; k < w; ++k)
      for (std::int64_t i = 0; i < m; ++i)
        rest(i, k) += i < w ? r(i, k) : 0;
    EXPECT_LT(distance(rest, a), 1e-14 * distance(a, zeros(m, w)));
  }
}

TYPED_TEST(SvdSteps, TransposesAndCopies) {
  for (auto const& [m, n] : std::initializer_list<std::pair<int, int>>{{1, 1}, {31, 33}, {64, 5}, {100, 200}}) {
    DenseMatrix const a = uniform(m, n, 5);
    Array<double> const from = on_backend(*this->context, a);
    Array<double> to = on_backend(*this->context, zeros(n + 1, m)), same = on_backend(*this->context, zeros(m + 2, n));
    this->kernels().transpose(*this->context, m, n, from.data(), m, to.data(), n + 1);
    this->kernels().copy(*this->context, m, n, from.data(), m, same.data(), m + 2);
    DenseMatrix const t = from_backend(to, n + 1, m), c = from_backend(same, m + 2, n);
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = 0; i < m; ++i) {
        ASSERT_EQ(t(j, i), a(i, j));
        ASSERT_EQ(c(i, j), a(i, j));
      }
  }
}

TYPED_TEST(SvdSteps, BandHasTheSameValuesAndTheTransformationsAreOrthogonal) {
  for (int const width : {1, 2, 16, 64})
    for (int const n : {1, 2, 3, 16, 17, 33, 65, 128, 129, 200})
      for (int const taller : {0, 1, 40}) {
        if (width >= std::max(n, 2) || (taller > 0 && n > 70))
          continue;
        SCOPED_TRACE("n = " + std::to_string(n) + " + " + std::to_string(taller) + ", width " + std::to_string(width));
        int const m = n + taller;
        DenseMatrix const a = uniform(m, n, 6);
        BandReduction const reduction = reduce_to_band(*this->context, m, n, width, on_backend(*this->context, a), true);
        DenseMatrix const b = this->full(reduction.band, n, width);
        for (std::int64_t c = 0; c < n; ++c)
          for (std::int64_t r = 0; r < n; ++r)
            ASSERT_TRUE((r <= c && c <= r + width) || b(r, c) == 0) << r << ", " << c;
        double const norm = distance(a, zeros(m, n)), bound = 20 * eps * std::sqrt(static_cast<double>(m));
        EXPECT_LT(largest_difference(lapack_values(b), lapack_values(a)), bound * norm);
        Array<double> left_array = on_backend(*this->context, identity(m, m)),
                      right_array = on_backend(*this->context, identity(n, n));
        apply_left(*this->context, reduction, m, left_array.data(), m);
        apply_right(*this->context, reduction, n, right_array.data(), n);
        DenseMatrix const left = from_backend(left_array, m, m), right = from_backend(right_array, n, n);
        EXPECT_LT(distance_from_orthogonal(left), bound * std::sqrt(static_cast<double>(m)));
        EXPECT_LT(distance_from_orthogonal(right), bound * std::sqrt(static_cast<double>(m)));
        DenseMatrix first(m, n);
        std::copy_n(left.values.begin(), first.values.size(), first.values.begin());
        EXPECT_LT(distance(first * b * transposed(right), a), bound * norm);
        BandReduction const again = reduce_to_band(*this->context, m, n, width, on_backend(*this->context, a), false);
        EXPECT_EQ(distance(this->full(again.band, n, width), b), 0) << "without keeping the reflectors";
      }
}

TYPED_TEST(SvdSteps, ChasedBandIsBidiagonalWithTheSameValues) {
  for (int const width : {1, 2, 3, 16, 32, 33, 64, 96, 128})
    for (int const n : {1, 2, 3, 4, 17, 18, 33, 34, 65, 66, 100, 129, 130, 193, 300}) {
      if (width >= std::max(n, 2))
        continue;
      SCOPED_TRACE("n = " + std::to_string(n) + ", width " + std::to_string(width));
      DenseMatrix b = uniform(n, n, 7);
      for (std::int64_t c = 0; c < n; ++c)
        for (std::int64_t r = 0; r < n; ++r)
          if (r > c || c > r + width)
            b(r, c) = 0;
      ChasePlan const plan(n, width);
      std::int64_t const size = plan.slots * plan.slot_size();
      Array<double> band = this->band_of(*this->context, b, width), left(*this->context, size), right(*this->context, size);
      left.set_zero();
      right.set_zero();
      this->kernels().chase(*this->context, plan, BandView::in(band.data(), n, width), left.data(), right.data());
      DenseMatrix const chased = this->full(band, n, width);
      for (std::int64_t c = 0; c < n; ++c)
        for (std::int64_t r = 0; r < n; ++r)
          ASSERT_TRUE((r <= c && c <= r + 1) || chased(r, c) == 0) << r << ", " << c;
      Array<double> diagonals(*this->context, 2 * n - 1);
      this->kernels().diagonals(*this->context, BandView::in(band.data(), n, width), diagonals.data(), diagonals.data() + n);
      HostVector<double> host(static_cast<std::size_t>(2 * n - 1));
      diagonals.download(host);
      for (std::int64_t i = 0; i < n; ++i) {
        ASSERT_EQ(host[static_cast<std::size_t>(i)], chased(i, i));
        ASSERT_TRUE(i + 1 == n || host[static_cast<std::size_t>(n + i)] == chased(i, i + 1));
      }
      double const norm = distance(b, zeros(n, n)), bound = 20 * eps * std::sqrt(static_cast<double>(n));
      EXPECT_LT(largest_difference(lapack_values(chased), lapack_values(b)), bound * norm);
      Array<double> left_array = on_backend(*this->context, identity(n, n)),
                    right_array = on_backend(*this->context, identity(n, n));
      this->kernels().apply_chase(*this->context, plan, left.data(), n, left_array.data(), n);
      this->kernels().apply_chase(*this->context, plan, right.data(), n, right_array.data(), n);
      DenseMatrix const u = from_backend(left_array, n, n), v = from_backend(right_array, n, n);
      EXPECT_LT(distance_from_orthogonal(u), bound * std::sqrt(static_cast<double>(n)));
      EXPECT_LT(distance_from_orthogonal(v), bound * std::sqrt(static_cast<double>(n)));
      EXPECT_LT(distance(u * chased * transposed(v), b), bound * norm);
      Array<double> again = this->band_of(*this->context, b, width);
      this->kernels().chase(*this->context, plan, BandView::in(again.data(), n, width), nullptr, nullptr);
      EXPECT_EQ(distance(this->full(again, n, width), chased), 0) << "without keeping the reflectors";
    }
}

TYPED_TEST(SvdSteps, OtherWaysOfTheBackTransformationsGiveTheSame) {
  constexpr int columns = 37;
  for (auto const& [n, width] : std::initializer_list<std::pair<int, int>>{{200, 32}, {201, 32}, {301, 64}, {390, 64}, {200, 48}}) {
    SCOPED_TRACE("n = " + std::to_string(n) + ", width " + std::to_string(width));
    BandReduction const reduction =
        reduce_to_band(*this->context, n, n, width, on_backend(*this->context, uniform(n, n, 10)), true);
    ChasePlan const plan(n, width);
    Array<double> band = this->band_of(*this->context, this->full(reduction.band, n, width), width);
    Array<double> y(*this->context, plan.slots * plan.slot_size()), other(*this->context, y.size());
    y.set_zero();
    other.set_zero();
    this->kernels().chase(*this->context, plan, BandView::in(band.data(), n, width), y.data(), other.data());
    DenseMatrix const x = uniform(n, columns, 11);
    auto const chased = [&](ChasePlan const& way) {
      Array<double> result = on_backend(*this->context, x);
      this->kernels().apply_chase(*this->context, way, y.data(), columns, result.data(), n);
      return from_backend(result, n, columns);
    };
    ChasePlan dense = plan, one_by_one = plan;
    dense.skip_zeros = false;
    one_by_one.blocks_of_launch = 1;
    double const bound = 1e-13 * distance(x, zeros(n, columns));
    EXPECT_LT(distance(chased(plan), chased(dense)), bound);
    EXPECT_LT(distance(chased(plan), chased(one_by_one)), bound);
    auto const reflected = [&](std::int64_t merged) {
      Array<double> result = on_backend(*this->context, x);
      apply_left(*this->context, reduction, columns, result.data(), n, merged);
      apply_right(*this->context, reduction, columns, result.data(), n, merged);
      return from_backend(result, n, columns);
    };
    EXPECT_LT(distance(reflected(256), reflected(1)), bound);
  }
}

/// Each by itself, and not only between them.
TYPED_TEST(SvdSteps, StopWhenAsked) {
  constexpr int n = 300, width = 16;
  Context& here = *this->context;
  auto const reduced = [&] { return reduce_to_band(here, n, n, width, on_backend(here, uniform(n, n, 9)), true); };
  auto const qr_of = [&](int columns) { return TallQr(here, n, columns, on_backend(here, uniform(n, columns, 9))); };
  BandReduction const reduction = reduced();
  TallQr const qr = qr_of(100);
  ChasePlan const plan(n, width);
  Array<double> reflectors(here, plan.slots * plan.slot_size()), x = on_backend(here, identity(n, n)), y(here, n * n);
  reflectors.set_zero();
  std::vector<double> const d(n, 1.0), e(n - 1, 0.5);
  request_interrupt();
  EXPECT_THROW(static_cast<void>(reduced()), Interrupted);
  if (here.backend() == Backend::cpu) {  // on a device it is one kernel
    EXPECT_THROW(this->kernels().chase(here, plan, BandView::in(y.data(), n, width), nullptr, nullptr), Interrupted);
  }
  EXPECT_THROW(static_cast<void>(bidiagonal_svd(here, d, e)), Interrupted);
  EXPECT_THROW(this->kernels().apply_chase(here, plan, reflectors.data(), n, x.data(), n), Interrupted);
  EXPECT_THROW(apply_left(here, reduction, n, x.data(), n), Interrupted);
  EXPECT_THROW(apply_right(here, reduction, n, x.data(), n), Interrupted);
  EXPECT_THROW(static_cast<void>(qr_of(100)), Interrupted);
  EXPECT_THROW(qr.apply(100, x.data(), y.data()), Interrupted);
  EXPECT_THROW(refine_orthogonality(here, n, n, x.data()), Interrupted);
  clear_interrupt();
  static_cast<void>(reduced());
}

}  // namespace
}  // namespace poisson::testing
