#include "gpu/formats/lattice_half_cds.hpp"

#include "tests/gpu/cases.hpp"
#include "tests/gpu/lattices.hpp"
#include "tests/gpu/matrices.hpp"
#include "tests/gpu/quad.hpp"
#include "tests/gpu/systems.hpp"

#include "gpu/core/threads.hpp"
#include "gpu/solvers/solver.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace poisson::testing {

namespace {

using test::LatticeBox;
using test::make_lattice_box;
using test::random_matrix;

/// What all products of rows with up to 27 entries, each in up to eight shares, may lose, over the sum of absolute terms.
template <class T>
constexpr double product_tolerance = 60 * unit_roundoff<T>;

template <class C>
class LatticeHalfCdsTest : public OnBackend<C::backend> {
protected:
  [[nodiscard]] std::unique_ptr<Matrix> make(LatticeBox const& box, HostVector<double> const& values, MatrixPrecision precision) {
    return make(*this->context, box, values, precision);
  }
  [[nodiscard]] static std::unique_ptr<Matrix> make(Context& context, LatticeBox const& box, HostVector<double> const& values,
                                                    MatrixPrecision precision) {
    return LatticeHalfCds::from_diagonals(context, LatticeArrays(context, box.layout),
                                          Array<double>(context, std::span<double const>(values)), precision);
  }
  Array<std::int32_t> flag(std::int32_t value) {
    return Array<std::int32_t>(*this->context, std::span<std::int32_t const>(&value, 1));
  }

  /// Products with vectors of T against loops over CSR.
  template <class T>
  void check_products(CsrMatrix const& csr, Matrix const& matrix) {
    SCOPED_TRACE("vectors of " + std::to_string(sizeof(T)) + " bytes");
    auto const n = static_cast<std::size_t>(csr.n_rows);
    auto const x = random_numbers<T>(csr.n_rows, 17), y = random_numbers<T>(csr.n_rows, 23);
    std::vector<Quad> expected(n);
    std::vector<double> scale(n);
    Quad dot_expected = 0;
    double dot_scale = 0;
    for (std::size_t row = 0; row < n; ++row) {
      for (auto e = static_cast<std::size_t>(csr.row_ptr[row]); e < static_cast<std::size_t>(csr.row_ptr[row + 1]); ++e) {
        Quad const term = quad(csr.values[e]) * quad(x[static_cast<std::size_t>(csr.columns[e])]);
        expected[row] += term;
        scale[row] += size_of(term);
      }
      dot_expected += quad(x[row]) * expected[row];
      dot_scale += size_of(quad(x[row])) * scale[row];
    }
    Vector<T> const device_x(*this->context, std::span<T const>(x));
    T const third = T(1) / T(3), nan = std::numeric_limits<double>::quiet_NaN();
    for (auto const& [alpha, beta] : {std::pair<T, T>{T(1), T(0)}, {-third, T(0)}, {T(1), T(1)}, {third, T(-7) * third}}) {
      Vector<T> device_y(*this->context, std::span<T const>(beta == T(0) ? std::vector<T>(n, nan) : y));
      matrix.product(alpha, device_x.data(), beta, device_y.data());
      auto const result = download(device_y);
      for (std::size_t i = 0; i < n; ++i) {
        Quad const from_y = beta == T(0) ? Quad(0) : quad(beta) * quad(y[i]);
        ASSERT_LE(size_of(quad(result[i]) - (quad(alpha) * expected[i] + from_y)),
                  product_tolerance<T> * (size_of(quad(alpha)) * scale[i] + size_of(from_y)))
            << "row " << i << ", alpha " << static_cast<double>(alpha) << ", beta " << static_cast<double>(beta);
      }
    }
    Vector<T> device_y(*this->context, std::span<T const>(std::vector<T>(n, nan)));
    T const before = T(-5);
    Array<T> dot(*this->context, std::span<T const>(&before, 1));
    matrix.product_dot(device_x.data(), device_y.data(), dot.data(), flag(1).data());
    for (T const entry : download(device_y))
      ASSERT_TRUE(std::isnan(static_cast<double>(entry))) << "a stopped product must leave y alone";
    EXPECT_EQ(download(dot), before);
    matrix.product_dot(device_x.data(), device_y.data(), dot.data(), flag(0).data());
    auto const result = download(device_y);
    for (std::size_t i = 0; i < n; ++i)
      ASSERT_LE(size_of(quad(result[i]) - expected[i]), product_tolerance<T> * scale[i]) << "row " << i;
    EXPECT_LE(size_of(quad(download(dot)) - dot_expected), 200 * unit_roundoff<T> * dot_scale);
  }

  /// Everything but products is exact.
  void check_entries(CsrMatrix const& csr, Matrix const& matrix) {
    auto const n = static_cast<std::size_t>(csr.n_rows);
    std::vector<double> diagonal(n);
    for (std::size_t row = 0; row < n; ++row)
      for (auto e = static_cast<std::size_t>(csr.row_ptr[row]); e < static_cast<std::size_t>(csr.row_ptr[row + 1]); ++e)
        if (static_cast<std::size_t>(csr.columns[e]) == row)
          diagonal[row] = csr.values[e];
    auto const check_diagonal = [&]<class T>(T) {
      Vector<T> d(*this->context, csr.n_rows);
      matrix.diagonal(d.data());
      auto const result = download(d);
      for (std::size_t row = 0; row < n; ++row)
        ASSERT_EQ(result[row], T(diagonal[row])) << "row " << row;
    };
    check_diagonal(0.0F);
    check_diagonal(0.0);
    check_diagonal(DoubleDouble(0));
    CsrMatrix const back = matrix.to_csr();
    EXPECT_EQ(back.n_columns, csr.n_columns);
    EXPECT_TRUE(back.row_ptr == csr.row_ptr && back.columns == csr.columns);
    EXPECT_TRUE(back.values == csr.values);
    EXPECT_TRUE(back.low_values.empty());
  }

  void check_residual(CsrMatrix const& csr, Matrix const& matrix) {
    auto const n = static_cast<std::size_t>(csr.n_rows);
    auto const x = random_vector(csr.n_rows, 5), small = random_vector(csr.n_rows, 6);
    std::vector<double> low(n), zero(n), b(n);
    for (std::size_t i = 0; i < n; ++i)
      low[i] = x[i] * small[i] * 0x1p-53;
    Vector<double> const device_x(*this->context, std::span<double const>(x)),
        device_low(*this->context, std::span<double const>(low));
    for (bool const with_low : {false, true}) {
      std::vector<Quad> product(n);
      std::vector<double> scale(n);
      for (std::size_t row = 0; row < n; ++row) {
        for (auto e = static_cast<std::size_t>(csr.row_ptr[row]); e < static_cast<std::size_t>(csr.row_ptr[row + 1]); ++e) {
          auto const column = static_cast<std::size_t>(csr.columns[e]);
          Quad const term = quad(csr.values[e]) * (quad(x[column]) + quad(with_low ? low[column] : 0));
          product[row] += term;
          scale[row] += size_of(term);
        }
        b[row] = static_cast<double>(product[row]);  // nearly all digits cancel
      }
      Vector<double> const device_b(*this->context, std::span<double const>(b));
      Vector<double> r(*this->context, csr.n_rows);
      ASSERT_TRUE(matrix.residual(device_x.data(), with_low ? device_low.data() : nullptr, device_b.data(), r.data()));
      auto const result = download(r);
      for (std::size_t row = 0; row < n; ++row) {
        Quad const wanted = quad(b[row]) - product[row];
        ASSERT_LE(size_of(quad(result[row]) - wanted), 0x1p-52 * size_of(wanted) + 0x1p-104 * scale[row]) << "row " << row;
      }
    }
  }

  void check(std::array<std::int64_t, 3> const& lattices, std::int32_t cells, bool split) {
    auto const box = make_lattice_box(lattices, cells);
    SCOPED_TRACE(std::to_string(lattices[0]) + " x " + std::to_string(lattices[1]) + " x " + std::to_string(lattices[2]) +
                 " lattices of " + std::to_string(cells) + (split ? " cells, entries in shares" : " cells"));
    auto const csr = random_matrix(box);
    auto const values = test::lattice_diagonals(box, *csr, split);
    auto const in_double = make(box, values, MatrixPrecision::double_);
    EXPECT_EQ(in_double->precision(), MatrixPrecision::double_);
    check_products<double>(*csr, *in_double);
    check_products<DoubleDouble>(*csr, *in_double);
    check_entries(*csr, *in_double);
    check_residual(*csr, *in_double);
    auto const in_single = make(box, values, MatrixPrecision::single);
    EXPECT_EQ(in_single->precision(), MatrixPrecision::single);
    EXPECT_EQ(in_single->bytes(), in_double->bytes() - 4 * std::ssize(values));
    check_products<float>(*csr, *in_single);
    check_products<double>(*csr, *in_single);
    check_entries(*csr, *in_single);
    EXPECT_FALSE(in_single->residual(nullptr, nullptr, nullptr, nullptr));
  }

  /// Products of a mesh that is too large for loops over CSR, with those on the host, which the other tests judge.
  void check_with_host(std::array<std::int64_t, 3> const& lattices, std::int32_t cells) {
    SCOPED_TRACE(std::to_string(lattices[0]) + " x " + std::to_string(lattices[1]) + " x " + std::to_string(lattices[2]) +
                 " lattices of " + std::to_string(cells) + " cells");
    auto const box = make_lattice_box(lattices, cells);
    auto const nodes = static_cast<std::size_t>(box.layout.nodes());
    HostVector<double> values, sizes;
    values.resize(14 * static_cast<std::size_t>(box.layout.n_lattices) * nodes * nodes * nodes, -0.0);
    test::for_pairs(box, [&](std::int64_t place, std::int64_t, std::int64_t) {
      values[static_cast<std::size_t>(place)] = static_cast<float>(static_cast<double>(test::mixed(place, 7) % 20011) / 10007 - 1);
    });
    sizes = values;
    for (double& value : sizes)
      value = std::copysign(value, std::signbit(value) && value == 0 ? -1.0 : 1.0);
    auto const host = make_context(Backend::cpu);
    auto const size_matrix = make(*host, box, sizes, MatrixPrecision::double_);
    for (MatrixPrecision const precision : {MatrixPrecision::double_, MatrixPrecision::single}) {
      auto const on_host = make(*host, box, values, precision), on_device = make(box, values, precision);
      if (precision == MatrixPrecision::single)
        check_one_with_host<float>(*host, *on_host, *on_device, *size_matrix);
      check_one_with_host<double>(*host, *on_host, *on_device, *size_matrix);
      if (precision == MatrixPrecision::double_)
        check_one_with_host<DoubleDouble>(*host, *on_host, *on_device, *size_matrix);
    }
  }

private:
  template <class T>
  void check_one_with_host(Context& host, Matrix const& on_host, Matrix const& on_device, Matrix const& sizes) {
    SCOPED_TRACE("vectors of " + std::to_string(sizeof(T)) + " bytes");
    auto const x = random_numbers<T>(on_host.n_rows(), 17), y = random_numbers<T>(on_host.n_rows(), 23);
    std::vector<double> absolute_x;
    for (T const entry : x)
      absolute_x.push_back(std::abs(static_cast<double>(entry)));
    Vector<double> const device_absolute_x(host, std::span<double const>(absolute_x));
    Vector<double> device_scale(host, on_host.n_rows());
    sizes.product(1.0, device_absolute_x.data(), 0.0, device_scale.data());
    auto const scale = download(device_scale);

    struct Results {
      std::vector<T> product, product_of_dot;
      T dot;
    };
    auto const results_of = [&](Context& on, Matrix const& matrix) {
      Vector<T> const device_x(on, std::span<T const>(x));
      Vector<T> device_y(on, std::span<T const>(y));
      std::int32_t const no = 0;
      Array<std::int32_t> const running(on, std::span<std::int32_t const>(&no, 1));
      Array<T> dot(on, 1);
      Results results;
      matrix.product(T(-2), device_x.data(), T(0.5), device_y.data());
      results.product = download(device_y);
      matrix.product_dot(device_x.data(), device_y.data(), dot.data(), running.data());
      results.product_of_dot = download(device_y);
      results.dot = download(dot);
      matrix.product_dot(device_x.data(), device_y.data(), dot.data(), running.data());
      EXPECT_TRUE(download(device_y) == results.product_of_dot && download(dot) == results.dot) << "other bits the second time";
      return results;
    };
    Results const expected = results_of(host, on_host), results = results_of(*this->context, on_device);
    double dot_scale = 0;
    for (std::size_t i = 0; i < scale.size(); ++i) {
      ASSERT_LE(size_of(quad(results.product[i]) - quad(expected.product[i])), product_tolerance<T> * (2 * scale[i] + 1))
          << "row " << i;
      ASSERT_LE(size_of(quad(results.product_of_dot[i]) - quad(expected.product_of_dot[i])), product_tolerance<T> * scale[i])
          << "row " << i;
      dot_scale += absolute_x[i] * scale[i];
    }
    EXPECT_LE(size_of(quad(results.dot) - quad(expected.dot)), 400 * unit_roundoff<T> * dot_scale);
  }
};

using LatticeCases = EveryBackend<Format::half_cds>;
TYPED_TEST_SUITE(LatticeHalfCdsTest, LatticeCases, CaseNames);

TYPED_TEST(LatticeHalfCdsTest, IsTheSumOfItsLattices) {
  for (auto const& lattices : {std::array<std::int64_t, 3>{1, 1, 1}, {2, 1, 1}, {2, 2, 2}, {3, 2, 1}})
    for (std::int32_t const cells : {1, 2, 3, 8})
      for (bool const split : {false, true})
        this->check(lattices, cells, split);
  this->check({1, 1, 1}, 31, true);
  this->check({2, 1, 1}, 31, true);
  this->check({1, 2, 1}, 33, true);
}

TYPED_TEST(LatticeHalfCdsTest, SmallLatticesShareBlocks) {
  this->check({9, 8, 7}, 1, true);
  this->check({9, 8, 7}, 2, true);
  this->check({5, 4, 7}, 4, true);
}

TYPED_TEST(LatticeHalfCdsTest, BeyondTheDeviceCache) {
  if (TypeParam::backend == Backend::cpu)
    GTEST_SKIP() << "about kernels of a device";
  this->check_with_host({2, 2, 2}, 64);    // tiles of 33 x 8 nodes; with DoubleDouble 22 x 8
  this->check_with_host({3, 1, 1}, 96);    // 33 x 8 or 25 x 8
  this->check_with_host({4, 4, 4}, 32);    // 33 x 7, the whole line; with DoubleDouble 17 x 7
  this->check_with_host({8, 8, 8}, 15);    // 16 x 8, the whole line
  this->check_with_host({5, 4, 4}, 30);    // 31 x 8, the whole line
  this->check_with_host({16, 16, 14}, 8);  // one thread a node
}

TYPED_TEST(LatticeHalfCdsTest, SameBitsEveryTimeAndForAnyThreadCount) {
  int const threads = thread_count();
  for (auto const& [lattices, cells] : {std::pair{std::array<std::int64_t, 3>{3, 2, 2}, 14}, {{2, 1, 1}, 40}}) {
    auto const box = make_lattice_box(lattices, cells);
    auto const matrix = this->make(box, test::lattice_diagonals(box, *random_matrix(box), true), MatrixPrecision::double_);
    auto const check = [&]<class T>(T) {
      Vector<T> const x(*this->context, std::span<T const>(random_numbers<T>(matrix->n_rows(), 3)));
      Vector<T> y(*this->context, matrix->n_rows());
      Array<T> dot(*this->context, 1);
      auto const running = this->flag(0);
      std::vector<T> first_y;
      T first_dot = 0;
      for (int const count : {1, 2, 3, 1, 7, 16}) {
        set_thread_count(count);
        matrix->product_dot(x.data(), y.data(), dot.data(), running.data());
        if (first_y.empty()) {
          first_y = download(y);
          first_dot = download(dot);
        }
        EXPECT_TRUE(download(y) == first_y) << count << " threads";
        EXPECT_EQ(download(dot), first_dot) << count << " threads";
      }
    };
    check(0.0);
    check(DoubleDouble(0));
  }
  set_thread_count(threads);
}

TYPED_TEST(LatticeHalfCdsTest, CopiesBetweenBackends) {
  auto const box = make_lattice_box({2, 2, 1}, 6);
  auto const csr = random_matrix(box);
  auto const host = make_context(Backend::cpu);
  for (MatrixPrecision const precision : {MatrixPrecision::double_, MatrixPrecision::single}) {
    auto const matrix = this->make(box, test::lattice_diagonals(box, *csr, true), precision);
    auto const copy = matrix->copy_to(*host), there = copy->copy_to(*this->context);
    for (Matrix const* const m : {copy.get(), there.get()}) {
      EXPECT_EQ(m->format(), Format::half_cds);
      EXPECT_EQ(m->precision(), precision);
      EXPECT_EQ(m->bytes(), matrix->bytes());
      EXPECT_EQ(m->padding_ratio(), matrix->padding_ratio());
      EXPECT_TRUE(m->to_csr().values == csr->values);
    }
    this->template check_products<double>(*csr, *there);
  }
}

TYPED_TEST(LatticeHalfCdsTest, Bytes) {
  auto const box = make_lattice_box({2, 1, 1}, 4);
  auto const matrix = this->make(box, test::lattice_diagonals(box, *random_matrix(box), false), MatrixPrecision::double_);
  // 2 lattices of 125 nodes, 98 of them on the rim; they share 25.
  std::int64_t const indices = 4 * (1 + 2 * 98 + 2 * 98) + 8 * (2 * 98 - 25 + 1);
  EXPECT_EQ(matrix->bytes(), 8 * 14 * 250 + indices);
  EXPECT_EQ(matrix->bytes_per_product(), matrix->bytes() + 16 * 225);
  EXPECT_DOUBLE_EQ(matrix->padding_ratio(), 14.0 * 125 / ((13 * 13 * 13 + 125) / 2.0));
}

TYPED_TEST(LatticeHalfCdsTest, SolvesByCg) {
  auto const box = make_lattice_box({2, 2, 2}, 8);
  auto const csr = random_matrix(box);
  auto const matrix = this->make(box, test::lattice_diagonals(box, *csr, true), MatrixPrecision::double_);
  auto const exact = random_vector(csr->n_rows, 9);
  auto const b = naive_product(*csr, exact);
  for (Precision const precision : {Precision::double_, Precision::double_double})
    for (PreconditionerKind const preconditioner : {PreconditionerKind::none, PreconditionerKind::jacobi}) {
      SolverOptions options;
      options.precision = precision;
      options.preconditioner = preconditioner;
      std::vector<double> x(b.size());
      SolverResult const result = poisson::solve(*matrix, b, x, options);
      EXPECT_EQ(result.status, SolverStatus::converged) << result.reason;
      EXPECT_LE(distance(x, exact), 1e-11 * norm(exact));
    }
}

TEST(LatticePlace, AgreesWithTheLayout) {
  for (std::int32_t const cells : {1, 2, 3, 6}) {
    auto const box = make_lattice_box({2, 1, 2}, cells);
    auto const m = static_cast<std::int32_t>(box.layout.nodes());
    for (std::int32_t l = 0; l < 4; ++l)
      for (std::int32_t k = 0; k < m; ++k)
        for (std::int32_t j = 0; j < m; ++j)
          for (std::int32_t i = 0; i < m; ++i) {
            LatticePlace const place(LatticePlane(m, l, k), LatticePlaneNode(m, i, j));
            EXPECT_EQ(place.on_rim, box.layout.rim().holds(i, j, k));
            EXPECT_EQ(place.on_rim ? box.layout.tables->rim_unknowns[static_cast<std::size_t>(place.at)] : place.at,
                      box.unknown_of[static_cast<std::size_t>(box.node(l, i, j, k))]);
          }
  }
}

}  // namespace
}  // namespace poisson::testing
