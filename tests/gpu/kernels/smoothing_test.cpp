#include "gpu/kernels/smoothing_step.hpp"

#include "gpu/elements/box_operator.hpp"
#include "gpu/elements/box_system.hpp"
#include "gpu/formats/half_cds.hpp"
#include "gpu/formats/lattice_half_cds.hpp"
#include "gpu/kernels/conversion.hpp"
#include "gpu/kernels/half_cds.hpp"
#include "tests/gpu/arrays.hpp"
#include "tests/gpu/cases.hpp"
#include "tests/gpu/elements/functions.hpp"
#include "tests/gpu/lattices.hpp"
#include "tests/gpu/matrices.hpp"

#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <vector>

/// Steps of a smoother and residuals in one pass over the matrix, beside loops over its entries.
namespace poisson::testing {

namespace {

using Type = BoxProblem::Face::Type;

BoxProblem problem_of(std::array<std::int64_t, 3> const& cells, Data const& k) {
  BoxProblem result{cells, {0, 0, 0}, {1, 2, 3}, {k.code}, constant(1).code, {}};
  std::array<Type, 6> const types{Type::dirichlet, Type::neumann, Type::robin, Type::dirichlet, Type::neumann, Type::dirichlet};
  for (std::size_t i = 0; i < 6; ++i)
    result.faces[i] = {types[i], static_cast<int>(i), constant(types[i] == Type::robin ? 0.5 : 0).code, constant(2).code};
  return result;
}

template <class V>
std::vector<V> numbers(std::int64_t n, double frequency) {
  std::vector<V> result(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i)
    result[static_cast<std::size_t>(i)] = static_cast<V>(std::sin(frequency * static_cast<double>(i) + 1));
  return result;
}

}  // namespace

template <class B>
class Smoothing : public OnBackend<B::value> {
protected:
  /// Every variant of a step, and the residual, of a matrix whose entries are those of `reference`.
  template <class V>
  void check(Matrix const& a, CsrMatrix const& reference) {
    std::int64_t const n = a.n_rows();
    auto const size = static_cast<std::size_t>(n);
    double const tolerance = 20 * static_cast<double>(std::numeric_limits<V>::epsilon());
    auto const x = numbers<V>(n, 0.7), b = numbers<V>(n, 1.3);
    std::vector<double> product(size, 0), sizes(size, 0), diagonal(size, 0);
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t e = reference.row_ptr[i]; e < reference.row_ptr[i + 1]; ++e) {
        double const term = reference.values[e] * static_cast<double>(x[static_cast<std::size_t>(reference.columns[e])]);
        product[static_cast<std::size_t>(i)] += term;
        sizes[static_cast<std::size_t>(i)] += std::abs(term);
        if (reference.columns[e] == i)
          diagonal[static_cast<std::size_t>(i)] = reference.values[e];
      }
    Array<V> const x_there = uploaded(*this->context, x), b_there = uploaded(*this->context, b), diagonal_there(*this->context, n);
    static_cast<LinearOperator<V> const&>(a).diagonal(const_cast<V*>(diagonal_there.data()));
    auto const unknown = std::numeric_limits<V>::quiet_NaN();
    Array<std::int32_t> const stop = uploaded(*this->context, std::vector<std::int32_t>{0}),
                              stopped = uploaded(*this->context, std::vector<std::int32_t>{1});
    auto const untouched = [&](std::vector<V> const& v) {
      return std::all_of(v.begin(), v.end(), [](V value) { return std::isnan(value); });
    };

    Array<V> r = uploaded(*this->context, std::vector<V>(size, unknown));
    ASSERT_TRUE(a.subtract_product(b_there.data(), x_there.data(), r.data(), stopped.data()));
    EXPECT_TRUE(untouched(downloaded(r)));
    ASSERT_TRUE(a.subtract_product(b_there.data(), x_there.data(), r.data(), stop.data()));
    auto const residual = downloaded(r);
    for (std::size_t i = 0; i < size; ++i)
      ASSERT_NEAR(static_cast<double>(residual[i]), static_cast<double>(b[i]) - product[i], tolerance * (sizes[i] + 1)) << i;

    for (bool const goes_outside : {false, true}) {
      Array<V> after = uploaded(*this->context, std::vector<V>(size, unknown));
      Array<double> outside = uploaded(*this->context, std::vector<double>(size, std::numeric_limits<double>::quiet_NaN()));
      SmoothingStep<V> step;
      step.diagonal = diagonal_there.data();
      step.b = b_there.data();
      step.factor = V(0.75);
      step.x_after = after.data();
      step.outside = goes_outside ? outside.data() : nullptr;
      ASSERT_TRUE(a.smooth(step, x_there.data(), stopped.data()));
      EXPECT_TRUE(untouched(downloaded(after)));
      ASSERT_TRUE(a.smooth(step, x_there.data(), stop.data()));
      auto const result = downloaded(after);
      auto const result_outside = downloaded(outside);
      for (std::size_t i = 0; i < size; ++i) {
        double const expected = static_cast<double>(x[i]) + 0.75 * (static_cast<double>(b[i]) - product[i]) / diagonal[i];
        ASSERT_NEAR(goes_outside ? result_outside[i] : static_cast<double>(result[i]), expected,
                    tolerance * ((sizes[i] + 1) / diagonal[i] + 1))
            << i;
      }
    }
  }
};
TYPED_TEST_SUITE(Smoothing, Backends, BackendNames);

/// One inner node, lines shorter and longer than a warp, several blocks; the last is marched through on a device.
constexpr std::array<std::array<std::int64_t, 3>, 5> cells_of_boxes{
    {{2, 2, 2}, {3, 4, 2}, {31, 7, 9}, {66, 33, 11}, {130, 90, 85}}};

TYPED_TEST(Smoothing, HalfCds) {
  for (auto const& cells : cells_of_boxes) {
    BoxSystem const system(*this->context, problem_of(cells, constant(3)));
    CsrMatrix const csr = system.matrix().to_csr();
    this->template check<double>(system.matrix(), csr);
    Array<float> values(*this->context, 14 * system.n_rows());
    auto const& view = dynamic_cast<HalfCds const&>(system.matrix()).view();
    kernels_for<ConversionKernels>(*this->context).round(*this->context, values.size(), view.values, values.data());
    auto const single =
        HalfCds::from_diagonals(*this->context, view.n, {view.offsets.begin(), view.offsets.end()}, std::move(values));
    this->template check<float>(*single, csr);
  }
}

/// One lattice and several, of one cell, where all are in L2, and beyond that.
TYPED_TEST(Smoothing, Lattices) {
  struct Case {
    std::array<std::int64_t, 3> lattices;
    std::int32_t cells;
  };
  for (auto const& [lattices, cells] :
       {Case{{1, 1, 1}, 1}, Case{{3, 2, 2}, 1}, Case{{1, 1, 1}, 6}, Case{{2, 3, 2}, 4}, Case{{2, 2, 1}, 33}, Case{{2, 2, 2}, 64}}) {
    test::LatticeBox const box = test::make_lattice_box(lattices, cells);
    auto const csr = test::random_matrix(box);
    auto const values = test::lattice_diagonals(box, *csr, true);
    auto const in_double = LatticeHalfCds::from_diagonals(*this->context, LatticeArrays(*this->context, box.layout),
                                                          Array<double>(*this->context, std::span<double const>(values)));
    this->template check<double>(*in_double, *csr);
    auto const in_single = dynamic_cast<LatticeHalfCds const&>(*in_double).in_single();
    this->template check<float>(*in_single, *csr);
  }
}

TYPED_TEST(Smoothing, MatrixFreeBoxes) {
  for (auto const& cells : cells_of_boxes) {
    BoxSystem const system(*this->context, problem_of(cells, constant(3)), Format::matrix_free);
    CsrMatrix const csr = system.matrix().to_csr();
    this->template check<double>(system.matrix(), csr);
    this->template check<float>(system.matrix(), csr);
  }
}

/// The diagonals of an operator are those of the assembled matrix.
TYPED_TEST(Smoothing, DiagonalsOfMatrixFreeBoxes) {
  for (auto const& cells : cells_of_boxes) {
    BoxSystem const stored(*this->context, problem_of(cells, constant(3))),
        free(*this->context, problem_of(cells, constant(3)), Format::matrix_free);
    auto const& stencil = dynamic_cast<BoxOperator const&>(free.matrix());
    EXPECT_EQ(stencil.view().box.nodes, (std::array<std::int64_t, 3>{cells[0] + 1, cells[1] + 1, cells[2] + 1}));
    auto const& view = dynamic_cast<HalfCds const&>(stored.matrix()).view();
    Array<double> found(*this->context, 14 * view.n);
    stencil.fill_diagonals(found.data());
    std::vector<double> expected(static_cast<std::size_t>(14 * view.n));
    this->context->download(expected.data(), view.values, 8 * 14 * view.n);
    auto const values = downloaded(found);
    double largest = 0;
    for (double const v : expected)
      largest = std::max(largest, std::abs(v));
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_NEAR(values[i], expected[i], 1e-14 * largest) << i;
  }
}

/// Formats by rows; rows of one entry and long ones, a row that crosses warps, sizes beside those of slices, one row.
TYPED_TEST(Smoothing, FormatsByRows) {
  Entries arrow;  // the first row has all columns
  for (std::int64_t i = 0; i < 3001; ++i) {
    arrow[{i, i}] = 5 + static_cast<double>(i % 7);
    if (i % 2 == 1)
      arrow[{0, i}] = arrow[{i, 0}] = 0.01;
  }
  for (auto const& csr :
       {box27(5, 4, 3, false, 0.4), box27(33, 9, 11), banded(97, {1, 2, 17}, 3, true), to_csr(3001, arrow), banded(1, {}, 3)})
    for (Format const format : {Format::csr, Format::crs_t, Format::sell_c_sigma, Format::cod_sell})
      for (int const slice : {32, 8, 2}) {
        if (slice != 32 && (format == Format::csr || format == Format::crs_t))
          continue;
        SCOPED_TRACE(std::string(name_of(format)) + ", slices of " + std::to_string(slice) + ", " + std::to_string(csr->n_rows) +
                     " rows");
        FormatOptions options;
        options.slice_size = slice;
        auto const in_double = make_matrix(format, csr, *this->context, options);
        this->template check<double>(*in_double, *csr);
        options.precision = MatrixPrecision::single;
        auto const in_single = make_matrix(format, csr, *this->context, options);
        this->template check<float>(*in_single, *csr);
        this->template check<double>(*in_single, in_single->to_csr());
      }
}

TYPED_TEST(Smoothing, OtherFormatsSaySo) {
  auto const matrix = make_matrix(Format::cds, banded(90, {1, 9}, 3), *this->context);
  Array<std::int32_t> const stop = uploaded(*this->context, std::vector<std::int32_t>{0});
  EXPECT_FALSE(matrix->smooth(SmoothingStep<double>(), nullptr, stop.data()));
  EXPECT_FALSE(matrix->subtract_product(static_cast<double const*>(nullptr), nullptr, nullptr, stop.data()));
}

}  // namespace poisson::testing
