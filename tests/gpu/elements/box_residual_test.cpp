#include "gpu/elements/box_residual.hpp"

#include "gpu/core/threads.hpp"
#include "gpu/elements/box_system.hpp"
#include "tests/gpu/arrays.hpp"
#include "tests/gpu/cases.hpp"
#include "tests/gpu/elements/functions.hpp"
#include "tests/gpu/matrices.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <vector>

/// The residual of a box from its elements, beside the rows of the same box whose sides are free, in CSR.
namespace poisson::testing {

namespace {

using Type = BoxProblem::Face::Type;

struct ResidualCase {
  std::string name;
  std::vector<Data> k;
  bool graded = false, k_on_host = false;
  std::vector<std::vector<double>> of_materials{};  ///< k of each
};

std::vector<ResidualCase> residual_cases() {
  std::vector<ResidualCase> cases;
  for (bool const graded : {false, true}) {
    cases.push_back({"one number", {constant(3)}, graded});
    cases.push_back({"three numbers", {constant(3), constant(0.5), constant(7)}, graded});
    cases.push_back({"a function", {polynomial(1, 0.25, 2)}, graded});
    cases.push_back({"three functions", {polynomial(1, 0.25, 2), sine(2, 3), constant(4)}, graded});
    cases.push_back({"a function of the host", {sine(3, 1)}, graded, true});
    cases.push_back({"materials", {constant(1)}, graded, true, {{1}, {1000}, {1e-3}}});
    cases.push_back(
        {"materials, by direction", {constant(1), constant(1), constant(1)}, graded, true, {{1, 2, 3}, {50}, {4, 3, 2}}});
  }
  return cases;
}

std::size_t material_at(std::int64_t x, std::int64_t y, std::int64_t z) {
  return static_cast<std::size_t>((x * 5 + y * 3 + z * z) % 3);
}

BoxProblem problem_of(ResidualCase const& of, std::array<std::int64_t, 3> const& cells) {
  BoxProblem problem{cells, {0.5, -1, 0}, {1.5, 1, 2}, {}, constant(0).code, {}};
  for (std::size_t d = 0; d < 3 && of.graded; ++d)
    for (std::int64_t i = 0; i <= cells[d]; ++i) {
      double const t = static_cast<double>(i) / static_cast<double>(cells[d]);
      problem.coordinates[d].push_back(problem.origin[d] + problem.extent[d] * t * (0.5 + 0.5 * t));
    }
  for (Data const& component : of.k)
    problem.coefficient.push_back(component.code);
  for (auto& face : problem.faces)
    face = {Type::neumann, 0, constant(0).code, {}};
  if (of.k_on_host) {
    auto const coordinate = [problem](std::size_t d, std::int64_t i) {
      double const t = 0.5 - 0.5 / std::sqrt(3.), n = static_cast<double>(problem.cells[d]);
      auto const node = [&](std::int64_t j) {
        return problem.coordinates[d].empty() ? problem.origin[d] + problem.extent[d] * (static_cast<double>(j) / n)
                                              : problem.coordinates[d][static_cast<std::size_t>(j)];
      };
      return node(i / 2) + (i % 2 == 0 ? t : 1 - t) * (node(i / 2 + 1) - node(i / 2));
    };
    problem.coefficient_on_host = [of, cells, coordinate](std::int64_t first, std::int64_t count, int c, double* values) {
      for (std::int64_t z = 2 * first; z < 2 * (first + count); ++z)
        for (std::int64_t y = 0; y < 2 * cells[1]; ++y)
          for (std::int64_t x = 0; x < 2 * cells[0]; ++x) {
            if (of.of_materials.empty()) {
              *values++ = of.k[static_cast<std::size_t>(c)].value({coordinate(0, x), coordinate(1, y), coordinate(2, z)});
              continue;
            }
            std::vector<double> const& k = of.of_materials[material_at(x / 2, y / 2, z / 2)];
            *values++ = k[k.size() == 1 ? 0 : static_cast<std::size_t>(c)];
          }
    };
  }
  if (!of.of_materials.empty()) {
    BoxProblem::Materials& materials = problem.materials.emplace();
    for (std::vector<double> const& k : of.of_materials) {
      auto& codes = materials.coefficients.emplace_back();
      for (double const component : k)
        codes.push_back(constant(component).code);
    }
    materials.of_planes = [cells](std::int64_t first, std::int64_t count, std::uint8_t* numbers) {
      for (std::int64_t z = first; z < first + count; ++z)
        for (std::int64_t y = 0; y < cells[1]; ++y)
          for (std::int64_t x = 0; x < cells[0]; ++x)
            *numbers++ = static_cast<std::uint8_t>(material_at(x, y, z));
    };
  }
  return problem;
}

/// -A (u + u_low), in long double, and the sum of |a_ij| over all entries of each row.
struct OfRows {
  std::vector<long double> product;
  std::vector<double> size;
};
OfRows rows_times(CsrMatrix const& a, std::vector<double> const& u, std::vector<double> const& u_low) {
  OfRows result{std::vector<long double>(u.size(), 0), std::vector<double>(u.size(), 0)};
  for (std::size_t row = 0; row < u.size(); ++row)
    for (auto e = static_cast<std::size_t>(a.row_ptr[row]); e < static_cast<std::size_t>(a.row_ptr[row + 1]); ++e) {
      auto const column = static_cast<std::size_t>(a.columns[e]);
      result.product[row] -= static_cast<long double>(a.values[e]) * (static_cast<long double>(u[column]) + u_low[column]);
      result.size[row] += std::abs(a.values[e]);
    }
  return result;
}

std::vector<double> found_by(Context& context, BoxResidual const& residual, std::vector<double> const& u,
                             std::vector<double> const& u_low) {
  Array<double> const high = uploaded(context, u), low = uploaded(context, u_low);
  Array<double> r(context, high.size());
  residual(high.data(), u_low.empty() ? nullptr : low.data(), r.data());
  return downloaded(r);
}

std::int64_t nodes_of_cells(std::array<std::int64_t, 3> const& cells) {
  return (cells[0] + 1) * (cells[1] + 1) * (cells[2] + 1);
}

}  // namespace

template <class B>
class BoxResiduals : public OnBackend<B::value> {};
TYPED_TEST_SUITE(BoxResiduals, Backends, BackendNames);

TYPED_TEST(BoxResiduals, AreThoseOfRows) {
  for (ResidualCase const& of : residual_cases())
    for (std::array<std::int64_t, 3> const& cells : {std::array<std::int64_t, 3>{2, 3, 4}, std::array<std::int64_t, 3>{19, 6, 5}}) {
      SCOPED_TRACE(of.name + (of.graded ? ", graded" : ""));
      BoxProblem const problem = problem_of(of, cells);
      BoxSystem const system(*this->context, problem);
      BoxResidual const residual(*this->context, problem, {});
      auto const u = random_vector(nodes_of_cells(cells), 3);
      auto low = random_vector(nodes_of_cells(cells), 4);
      std::vector<double> const none(low.size(), 0.0);
      for (double& v : low)
        v *= 1e-3;
      for (bool const extended : {false, true}) {
        OfRows const expected = rows_times(system.matrix().to_csr(), u, extended ? low : none);
        auto const found = found_by(*this->context, residual, u, extended ? low : std::vector<double>());
        for (std::size_t i = 0; i < found.size(); ++i)
          EXPECT_NEAR(found[i], static_cast<double>(expected.product[i]), 4e-15 * expected.size[i]) << i;
      }
    }
}

TYPED_TEST(BoxResiduals, HaveSourcesAsTheyAreGiven) {
  std::array<std::int64_t, 3> const cells{5, 4, 3};
  for (bool const graded : {false, true}) {
    BoxProblem problem = problem_of({"", {sine(3, 1)}, graded}, cells);
    problem.source = polynomial(1, 2, -0.5).code;
    problem.faces[0] = {Type::dirichlet, 0, constant(4).code, {}};
    problem.faces[2] = problem.faces[3] = {Type::periodic, 0, constant(0).code, {}};
    problem.faces[5].value = sine(1, 2).code;
    // The same loads, of a box that is a part of a larger one there.
    BoxProblem part = problem;
    for (std::size_t const face : {0, 2, 3})
      part.faces[face] = {Type::cut, 0, constant(0).code, {}};
    HostVector<double> expected = BoxSystem(*this->context, part).take_rhs().take_host();
    expected[17] += 2.5;
    BoxResidual const residual(*this->context, problem, {{17, 2.5}});
    auto const found = found_by(*this->context, residual, std::vector<double>(expected.size(), 0.75), {});  // which flows nowhere
    double total = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_NEAR(found[i], expected[i], 1e-15) << i;
      total += std::abs(found[i]);
    }
    EXPECT_GT(total, 1);
  }
}

TYPED_TEST(BoxResiduals, OfSlabsAreThoseOfTheWhole) {
  std::array<std::int64_t, 3> const cells{150, 140, 13};  // the host has values of four planes at once
  BoxProblem const by_number = problem_of({"", {constant(3)}}, cells);
  BoxProblem by_points = by_number;
  by_points.coefficient_on_host = [](std::int64_t, std::int64_t count, int, double* values) {
    std::fill_n(values, count * 4 * 150 * 140 * 2, 3.0);
  };
  auto const u = random_vector(nodes_of_cells(cells), 5);
  auto const expected = found_by(*this->context, BoxResidual(*this->context, by_number, {}), u, {}),
             found = found_by(*this->context, BoxResidual(*this->context, by_points, {}), u, {});
  double largest = 0;
  for (std::size_t i = 0; i < found.size(); ++i)
    largest = std::max(largest, std::abs(found[i] - expected[i]));
  EXPECT_LT(largest, 1e-14);
}

TYPED_TEST(BoxResiduals, SeeNoConstantHoweverLargeItIs) {
  std::array<std::int64_t, 3> const cells{9, 4, 6};
  BoxProblem const problem = problem_of({"", {constant(1)}, false, true, {{1}, {1e6}, {1e-6}}}, cells);
  BoxResidual const residual(*this->context, problem, {});
  auto u = random_vector(nodes_of_cells(cells), 6);
  for (double& v : u)
    v = std::round(v * 1024);
  auto shifted = u;
  for (double& v : shifted)
    v += 0x1p40;
  auto const expected = found_by(*this->context, residual, u, {}), found = found_by(*this->context, residual, shifted, {});
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_EQ(found[i], expected[i]) << i;
}

TYPED_TEST(BoxResiduals, RestrictExtendAndShift) {
  std::array<std::int64_t, 3> const cells{4, 3, 5};
  BoxProblem problem = problem_of({"", {constant(2)}, true}, cells);
  problem.faces[2] = {Type::periodic, 0, constant(0).code, {}};
  problem.faces[3] = {Type::periodic, 0, constant(0.5).code, {}};
  problem.faces[4] = {Type::dirichlet, 0, constant(7).code, {}};
  BoxSystem const system(*this->context, problem);
  auto const n = static_cast<std::size_t>(nodes_of_cells(cells));
  auto const node = [&](std::size_t i) { return std::array<std::size_t, 3>{i % 5, i / 5 % 4, i / 20}; };
  std::vector<double> const ones(n, 1.0);
  Array<double> r = uploaded(*this->context, ones), d = uploaded(*this->context, random_vector(std::int64_t(n), 7));
  auto const before = downloaded(d);
  system.restrict_to_free(r.data());
  system.extend_to_tied(d.data());
  auto const restricted = downloaded(r), extended = downloaded(d);
  for (std::size_t i = 0; i < n; ++i) {
    auto const [x, y, z] = node(i);
    EXPECT_EQ(restricted[i], z == 0 || y == 3 ? 0 : y == 0 ? 2 : 1) << i;
    EXPECT_EQ(extended[i], before[y == 3 ? i - 15 : i]) << i;
  }
  // The integral of a linear function, and its mean.
  Array<double> x = system.coordinate(0, 0.25);
  auto const along = downloaded(x);
  for (std::size_t i = 0; i < n; ++i)
    EXPECT_NEAR(along[i], problem.coordinates[0][node(i)[0]] - 0.25, 1e-15);
  system.subtract_mean(x.data());
  auto const centred = downloaded(x);
  for (std::size_t i = 0; i < n; ++i)  // the box is from 0.5 to 2
    EXPECT_NEAR(centred[i], along[i] - 1, 1e-14);
  system.subtract_constant_source(r.data());
  double sum = 0;
  for (double const value : downloaded(r))
    sum += value;
  EXPECT_NEAR(sum, 0, 1e-12);
}

TEST(BoxResidualOnHost, AnyNumberOfThreadsHasTheSameBits) {
  auto const context = make_context(Backend::cpu);
  std::array<std::int64_t, 3> const cells{40, 31, 17};
  for (ResidualCase const& of : residual_cases()) {
    BoxProblem const problem = problem_of(of, cells);
    BoxResidual const residual(*context, problem, {});
    auto const u = random_vector(nodes_of_cells(cells), 8);
    std::optional<std::vector<double>> expected;
    for (int const threads : {1, 2, 3}) {
      set_thread_count(threads);
      auto const found = found_by(*context, residual, u, {});
      EXPECT_TRUE(!expected || found == *expected) << of.name;
      expected = found;
    }
  }
  set_thread_count(0);
}

}  // namespace poisson::testing
