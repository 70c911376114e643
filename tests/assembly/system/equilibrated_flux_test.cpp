/// Fluxes in balance, and the bound of the error that follows from them.
#include "assembly/dealii/mesh.hpp"
#include "assembly/discretization.hpp"
#include "assembly/space/space.hpp"
#include "assembly/system/equilibrated_flux.hpp"
#include "assembly/system/error_estimate.hpp"
#include "assembly/system/estimate_cells.hpp"
#include "gpu/core/threads.hpp"
#include "tests/assembly/local_meshes.hpp"
#include "tests/convergence/support.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <gtest/gtest.h>
#include <memory>
#include <numbers>
#include <numeric>
#include <string>
#include <vector>

namespace poisson::assembly {
namespace {

using namespace test;

double root_of_sum(ErrorIndicators const& bound) {
  return std::sqrt(std::accumulate(bound.squares.begin(), bound.squares.end(), 0.0));
}

/// Refines the cells with half of the estimate, as often as this, and returns the last solution's.
struct Refined {
  ProblemSpec spec;
  double bound = 0, error = 0, energy = 0, dofs = 0;
  bool is_bound = false;
  std::string why_no_bound;
};
Refined refine(ProblemSpec spec, int cycles) {
  Refined result;
  for (int cycle = 0;; ++cycle) {
    Discretization discretization(spec);
    auto const u = solve(discretization);
    auto const found = discretization.estimate_error(Estimator::equilibrated, u);
    result.bound = root_of_sum(found);
    result.is_bound = found.is_bound;
    result.why_no_bound = found.why_no_bound;
    result.dofs = static_cast<double>(discretization.summary().dofs);
    if (discretization.has_exact())
      result.error = discretization.energy_of_error(u);
    result.energy = 2 * discretization.quantities(u).energy;
    if (cycle == cycles)
      break;
    auto const& cells = discretization.local_cells();
    LocalRefinement::Cycle next;
    for (std::int32_t const cell : largest_cells(found.squares, 0.5, false))
      next.refine.push_back(cells.active[static_cast<std::size_t>(cell)]);
    std::sort(next.refine.begin(), next.refine.end());
    add_cycle(spec, next);
  }
  result.spec = std::move(spec);
  return result;
}

/// A space with its problem, the solution, and the flux.
struct FluxOf {
  explicit FluxOf(ProblemSpec const& spec)
      : mesh(make_coarse_mesh(spec.mesh)),
        element(spec.order),
        space((refine_mesh(mesh, spec.mesh), mesh), element),
        data(spec, PlaceNames(space.boundary_ids, space.material_ids)) {
    Discretization discretization(spec);
    u = solve(discretization);
    flux = equilibrated_flux(space, element, data, u);
  }
  Mesh mesh;
  ReferenceElement element;
  Space space;
  ProblemData data;
  std::vector<double> u;
  EquilibratedFlux flux;
};

/// div sigma at the middle of a parallelepiped, from differences that are exact for polynomials of degree 6.
double divergence_in_the_middle(FluxOf const& of, std::int64_t cell, TablesAt const& middle) {
  EstimateCell map(of.space, of.data);
  map.reset(cell);
  auto const at = map.place(middle, 0);
  std::array<std::pair<double, double>, 3> const differences{{{1, 3. / 4}, {2, -3. / 20}, {3, 1. / 60}}};
  double sum = 0;
  for (std::size_t d = 0; d < 3; ++d)
    for (auto const& [steps, weight] : differences)
      for (double const side : {-1., 1.}) {
        Point3 x{0.5, 0.5, 0.5};
        constexpr double step = 0.1;
        x[d] += side * steps * step;
        Point3 const sigma = of.flux.at(of.space, of.element, cell, x);
        double along = 0;
        for (std::size_t e = 0; e < 3; ++e)
          along += at.cofactors[3 * e + d] * sigma[e];
        sum += side * weight / step * along / at.determinant;
      }
  return sum;
}

/// The flux out of each cell is that into its neighbours, across hanging faces as well, it is the one that is given on boundaries,
/// and its divergence is f.
TEST(EquilibratedFlux, IsInBalance) {
  for (int const order : {1, 2, 3}) {
    SCOPED_TRACE(order);
    ProblemSpec spec = by_chance(flat_box({2, 2, 2}), order, 2, static_cast<unsigned>(order));
    spec.source = "1 + x*y - z";
    spec.coefficient = {{-1, {"x < 0.5 ? 1 : 100"}}};
    spec.boundary = {dirichlet("y", {0}), robin("2", "z", {1}), neumann("0.3 + x", {})};
    FluxOf const of(spec);
    EXPECT_TRUE(of.flux.bound.is_bound) << of.flux.bound.why_no_bound;
    Counterparts const all(of.element);
    FaceMatcher match(of.space, all);
    EstimateCell cell(of.space, of.data);
    std::size_t hanging = 0;
    for (std::size_t number = 0; number < of.space.local.faces.size(); ++number) {
      FaceOfTwoCells const& face = of.space.local.faces[number];
      Counterpart const& meets = match(number);
      hanging += meets.quarter != whole_face ? 1 : 0;
      auto const here = points_on_face(of.element, face.faces[0], whole_face),
                 there = points_on_face(of.element, face.faces[1], meets.quarter);
      TablesAt const tables(here, of.space, of.element);
      cell.reset(face.cells[0]);
      for (std::size_t q = 0; q < here.size(); ++q) {
        auto const at = cell.place(tables, static_cast<int>(q));
        Point3 normal = EstimateCell::normal(at, face.faces[0]);
        double const size = std::sqrt(dot_product(normal, normal));
        double const a = dot_product(normal, of.flux.at(of.space, of.element, face.cells[0], here[q])) / size,
                     b = dot_product(normal, of.flux.at(of.space, of.element, face.cells[1],
                                                        there[static_cast<std::size_t>(meets.point[q])])) /
                         size;
        ASSERT_NEAR(a, b, 1e-11 * (1 + std::abs(a)));
      }
    }
    EXPECT_GT(hanging, 20U);
    TablesAt const middle({{0.5, 0.5, 0.5}}, of.space, of.element);
    for (std::int64_t c = 0; c < of.space.n_cells; ++c) {
      cell.reset(c);
      auto const x = cell.place(middle, 0).x;
      ASSERT_NEAR(divergence_in_the_middle(of, c, middle), 1 + x[0] * x[1] - x[2], 1e-8);
    }
    for (BoundaryFace const& face : of.space.boundary_faces) {
      if (face.boundary_id == 0)
        continue;
      TablesAt const tables(of.element.face_points[static_cast<std::size_t>(face.face)], of.space, of.element);
      cell.reset(face.cell);
      for (int q = 0; q < tables.shape.n_points; ++q) {
        auto const at = cell.place(tables, q);
        Point3 normal = EstimateCell::normal(at, face.face);
        double const size = std::sqrt(dot_product(normal, normal)),
                     out = dot_product(normal,
                                       of.flux.at(of.space, of.element, face.cell, tables.points[static_cast<std::size_t>(q)])) /
                           size,
                     given = face.boundary_id == 1 ? 2 * cell.value(tables, q, of.u) - at.x[2] : -0.3 - at.x[0];
        ASSERT_NEAR(out, given, 1e-10);
      }
    }
  }
}

TEST(EquilibratedFlux, OfASolutionInTheSpaceIsItsFlux) {
  struct Case {
    int order;
    char const *u, *f;
  };
  for (Case const& of :
       {Case{1, "x + 2*y - 3*z", "0"}, Case{2, "x^2 - 2*y*z + z^2 + x", "-4"}, Case{3, "x^3 + x*y*z - z^2", "-6*x + 2"}}) {
    ProblemSpec spec = by_chance(flat_box({2, 2, 2}), of.order, 2);
    spec.source = of.f;
    spec.boundary = {on_all_boundaries(BoundaryType::dirichlet, of.u)};
    auto const found = refine(spec, 0);
    EXPECT_LT(found.bound, 1e-9);
    EXPECT_TRUE(found.is_bound) << found.why_no_bound;
  }
}

TEST(EquilibratedFlux, BoundsTheErrorOfSmoothSolutions) {
  for (int const order : {1, 2, 3})
    for (bool const hangs : {false, true}) {
      ProblemSpec spec = hangs ? by_chance(flat_box({3, 3, 3}), order, 1) : problem_with_levels(flat_box({4, 4, 4}), order);
      spec.source = "3*pi^2*sin(pi*x)*sin(pi*y)*sin(pi*z)";
      spec.exact = "sin(pi*x)*sin(pi*y)*sin(pi*z)";
      auto const found = refine(spec, 0);
      EXPECT_TRUE(found.is_bound) << found.why_no_bound;
      EXPECT_GE(found.bound, found.error);
      EXPECT_LE(found.bound, 1.6 * found.error);
    }
}

/// The energy of u on a prism around the z axis of height 1: the integral of u k du/dn over its sides |x| = 1 and |y| = 1.
template <class Function, class Flux>
double energy_by_sides(Function const& u, Flux const& flux) {
  std::vector<double> points, weights;
  gauss_rule(12, points, weights);
  double sum = 0;
  constexpr int pieces = 16;
  for (int piece = -pieces; piece < pieces; ++piece)
    for (std::size_t q = 0; q < points.size(); ++q) {
      double const s = (piece + points[q]) / pieces;
      for (double const side : {-1., 1.}) {
        sum += weights[q] / pieces * u(side, s) * side * flux(side, s)[0];
        sum += weights[q] / pieces * u(s, side) * side * flux(s, side)[1];
      }
    }
  return sum;
}

struct OverTheError {
  double effectivity, error;
  bool is_bound;
  std::string why;
};
/// The bound over the error of a problem with f = 0, where u is 0 or has a natural condition: the square of the error in the norm
/// of the form, Robin's part included, is what its energy lacks.
OverTheError effectivity(ProblemSpec const& spec, double energy) {
  Discretization discretization(spec);
  auto const u = solve(discretization);
  auto const found = discretization.estimate_error(Estimator::equilibrated, u);
  LoadOfEstimate whole;
  whole.of_problem = 1;
  auto const load = discretization.load_vector(whole);
  double const error = std::sqrt(energy - std::inner_product(u.begin(), u.end(), load.begin(), 0.0));
  return {root_of_sum(found) / error, error, found.is_bound, found.why_no_bound};
}

/// The prism over an L, u = r^(2/3) sin(2/3 t): 0 on the sides that meet, given fluxes elsewhere.
TEST(EquilibratedFlux, BoundsTheErrorAtAnEdge) {
  auto const angle = [](double x, double y) { return std::atan2(y, x) + std::numbers::pi / 2; };
  auto const u = [&](double x, double y) {
    return x < 0 && y < 0 ? 0 : std::pow(std::hypot(x, y), 2. / 3) * std::sin(2. / 3 * angle(x, y));
  };
  auto const flux = [&](double x, double y) {
    double const r = std::hypot(x, y), t = angle(x, y), a = 2. / 3 * std::pow(r, -1. / 3), s = std::atan2(y, x);
    return std::array<double, 2>{a * std::sin(2. / 3 * t - s), a * std::cos(2. / 3 * t - s)};
  };
  double const energy = energy_by_sides(u, flux);
  std::string const a = "2/3*hypot(x, y)^(-1/3)*", t = "(pi/3 - 2/3*atan(y/(hypot(x, y) + x)))";
  for (int const order : {1, 2, 3}) {
    ProblemSpec spec = problem_with_levels(generated("subdivided_hyper_L", "4, 4, 2 : -1, -1, 0 : 1, 1, 1 : 2, 2, 2"), order);
    spec.mesh.boundaries = {
        {"x", "abs(x) > 0.999"}, {"y", "abs(y) > 0.999"}, {"inner", "abs(x*y) < 1e-9 && x <= 1e-9 && y <= 1e-9"}};
    spec.boundary.clear();
    spec.boundary.push_back({false, {}, {"x"}, BoundaryType::neumann, "x*" + a + "sin" + t, "0"});
    spec.boundary.push_back({false, {}, {"y"}, BoundaryType::neumann, "y*" + a + "cos" + t, "0"});
    spec.boundary.push_back({false, {}, {"inner"}, BoundaryType::dirichlet, "0", "0"});
    spec.boundary.push_back(neumann("0"));
    for (int const cycles : {0, 2}) {
      auto const found = effectivity(refine(spec, cycles).spec, energy);
      EXPECT_TRUE(found.is_bound) << found.why;
      EXPECT_GE(found.effectivity, 1);
      EXPECT_LE(found.effectivity, 1.6);
    }
  }
}

/// Four materials that meet in an edge, k 1 : 161, u = r^0.1 mu(t) (Kellogg, On the Poisson equation with intersecting interfaces,
/// Applicable Analysis 4 (1974)).
TEST(EquilibratedFlux, BoundsTheErrorWhereFourMaterialsMeet) {
  constexpr double pi = std::numbers::pi, gamma = 0.1, ratio = 161.4476387975881, sigma = -14.92256510455152, rho = pi / 4;
  std::array<double, 4> const factor{std::cos((pi / 2 - sigma) * gamma), std::cos(rho * gamma), std::cos(sigma * gamma),
                                     std::cos((pi / 2 - rho) * gamma)},
      shift{-pi / 2 + rho, -pi + sigma, -pi - rho, -3 * pi / 2 - sigma};
  auto const polar = [&](double x, double y) {
    double const t = std::atan2(y, x) + (y < 0 ? 2 * pi : 0);
    return std::pair{t, static_cast<std::size_t>(std::min(3., std::floor(t / (pi / 2))))};
  };
  auto const u = [&](double x, double y) {
    auto const [t, i] = polar(x, y);
    return std::pow(std::hypot(x, y), gamma) * factor[i] * std::cos((t + shift[i]) * gamma);
  };
  auto const flux = [&](double x, double y) {
    auto const [t, i] = polar(x, y);
    double const a = (i % 2 == 0 ? ratio : 1) * gamma * std::pow(std::hypot(x, y), gamma - 1) * factor[i],
                 angle = (t + shift[i]) * gamma - t;
    return std::array<double, 2>{a * std::cos(angle), -a * std::sin(angle)};
  };
  auto const given = [&](double x, double y) {
    auto const f = flux(x, y);
    return std::abs(x) > 0.999 ? x * f[0] + u(x, y) : y * f[1] + u(x, y);
  };
  double energy = 0;
  std::vector<double> points, weights;
  gauss_rule(12, points, weights);
  for (int piece = -16; piece < 16; ++piece)
    for (std::size_t q = 0; q < points.size(); ++q)
      for (double const side : {-1., 1.}) {
        double const s = (piece + points[q]) / 16;
        energy += weights[q] / 16 * (given(side, s) * u(side, s) + given(s, side) * u(s, side));
      }
  ProblemSpec spec = problem_with_levels(flat_box({2, 2, 1}), 1);
  spec.mesh.origin = {-1, -1, 0};
  spec.mesh.extent = {2, 2, 1};
  spec.coefficient = {{-1, {"x*y > 0 ? 161.4476387975881 : 1"}}};
  auto const number = [](double x) {
    char text[40];
    std::snprintf(text, sizeof text, "(%.17g)", x);
    return std::string(text);
  };
  std::string const t = "(atan2(y, x) + (y < 0 ? 2*pi : 0))";
  auto const quarter = [&](std::array<double, 4> const& of) {
    return "(x > 0 ? (y > 0 ? " + number(of[0]) + " : " + number(of[3]) + ") : (y > 0 ? " + number(of[1]) + " : " + number(of[2]) +
           "))";
  };
  std::string const angle = "((" + t + " + " + quarter(shift) + ")*0.1)", of_k = "(x*y > 0 ? 161.4476387975881 : 1)",
                    value = "hypot(x, y)^0.1*" + quarter(factor) + "*cos" + angle,
                    slope = of_k + "*0.1*hypot(x, y)^(-0.9)*" + quarter(factor);
  spec.boundary = {robin("1", "-" + slope + "*cos(" + angle + " - " + t + ") + " + value, {0}),
                   robin("1", slope + "*cos(" + angle + " - " + t + ") + " + value, {1}),
                   robin("1", slope + "*sin(" + angle + " - " + t + ") + " + value, {2}),
                   robin("1", "-" + slope + "*sin(" + angle + " - " + t + ") + " + value, {3}), neumann("0", {4, 5})};
  for (int const order : {1, 2, 3}) {
    spec.order = order;
    for (int const cycles : {0, 2}) {
      auto const found = effectivity(refine(spec, cycles).spec, energy);
      EXPECT_GE(found.effectivity, 1);
      EXPECT_LE(found.effectivity, 2.3);
    }
  }
}

/// Fichera's corner, f = 1: the error lies between what a finer mesh has more energy, and that with the bound there.
TEST(EquilibratedFlux, BoundsTheErrorAtACorner) {
  for (int const order : {1, 2}) {
    ProblemSpec spec = problem_with_levels(generated("subdivided_hyper_L", "2, 2, 2 : -1, -1, -1 : 1, 1, 1 : 1, 1, 1"), order);
    spec.source = "1";
    auto const coarse = refine(spec, 2), fine = refine(coarse.spec, order == 1 ? 5 : 3);
    double const least = std::sqrt(fine.energy - coarse.energy), most = std::hypot(least, fine.bound);
    EXPECT_TRUE(coarse.is_bound && fine.is_bound);
    EXPECT_GE(coarse.bound, least);
    EXPECT_LE(coarse.bound, 1.6 * least);
    EXPECT_LE(most, 1.6 * least);
  }
}

TEST(EquilibratedFlux, SameBitsForAnyNumberOfThreads) {
  ProblemSpec spec = by_chance(flat_box({2, 2, 2}), 2, 2);
  spec.source = "x";
  std::vector<HostVector<double>> squares;
  int const before = thread_count();
  for (int const threads : {1, 3}) {
    set_thread_count(threads);
    Discretization discretization(spec);
    HostVector<double> u;
    for (std::int64_t i = 0; i < discretization.summary().dofs; ++i)
      u.push_back(std::sin(static_cast<double>(i)));
    squares.push_back(discretization.estimate_error(Estimator::equilibrated, u).squares);
  }
  set_thread_count(before);
  EXPECT_EQ(squares[0], squares[1]);
}

TEST(EquilibratedFlux, WhatIsNotProvenIsSaid) {
  auto const why = [](auto const& change) {
    ProblemSpec spec = problem_with_levels(flat_box({2, 2, 2}), 1);
    spec.source = "1";
    change(spec);
    return refine(spec, 0).why_no_bound;
  };
  EXPECT_EQ(why([](ProblemSpec&) {}), "");
  EXPECT_EQ(why([](ProblemSpec& spec) { spec.coefficient = {{-1, {"1 + x"}}}; }), "k varies inside cells");
  EXPECT_EQ(why([](ProblemSpec& spec) { spec.source = "x < 0.3 ? 1 : 2"; }), "the source may jump inside cells");
  EXPECT_EQ(why([](ProblemSpec& spec) { spec.source = "x < 0.5 ? 1 : 2"; }), "");
  EXPECT_EQ(why([](ProblemSpec& spec) { spec.boundary = {on_all_boundaries(BoundaryType::dirichlet, "x^2")}; }),
            "values of u on the boundary are no polynomials of the elements' order");
  EXPECT_EQ(why([](ProblemSpec& spec) {
              spec.point_sources = {{{0.5, 0.5, 0.5}, 1}};
            }),
            "point sources have no finite energy norm");
  EXPECT_EQ(why([](ProblemSpec& spec) {
              spec.boundary = {dirichlet("0", {0}), neumann("y < 0.3 ? 1 : 2")};
            }),
            "boundary values may jump inside faces");
  EXPECT_EQ(why([](ProblemSpec& spec) {
              spec.mesh = generated("hyper_ball", "0, 0, 0 : 1"), spec.mesh.local = std::make_shared<LocalRefinement>();
            }),
            "some cells are no parallelepipeds");
}

/// A solution that is far from solved for: the bound has that part of the error, too.
TEST(EquilibratedFlux, BoundsTheErrorOfWhatIsNotSolved) {
  for (int const order : {1, 2}) {
    ProblemSpec spec = by_chance(flat_box({3, 3, 3}), order, 1);
    spec.source = "3*pi^2*sin(pi*x)*sin(pi*y)*sin(pi*z)";
    spec.exact = "sin(pi*x)*sin(pi*y)*sin(pi*z)";
    Discretization discretization(spec);
    auto u = solve(discretization);
    for (double const share : {1e-6, 1e-2, 0.5, 1.}) {
      std::vector<double> v;
      for (double const value : u)
        v.push_back((1 - share) * value);
      double const bound = root_of_sum(discretization.estimate_error(Estimator::equilibrated, v));
      EXPECT_GE(bound, discretization.energy_of_error(v)) << share;
      EXPECT_LE(bound, 4 * discretization.energy_of_error(v)) << share;
    }
  }
}

/// Tensors, and cells that lean: balance, and the bound where u is known.
TEST(EquilibratedFlux, BoundsTheErrorOfTensors) {
  for (int const order : {1, 2}) {
    ProblemSpec spec =
        by_chance(generated("subdivided_parallelepiped", "3, 3, 3 : 1, 0, 0; 0.5, 1, 0; 0, 0.2, 1 : false"), order, 1);
    spec.coefficient = {{-1, {"3", "2", "1", "0.5", "0.2", "0.1"}}};
    spec.source = "1";
    auto const coarse = refine(spec, 0), fine = refine(coarse.spec, 3);
    double const least = std::sqrt(fine.energy - coarse.energy), most = std::hypot(least, fine.bound);
    EXPECT_TRUE(coarse.is_bound && fine.is_bound) << fine.why_no_bound;
    EXPECT_GE(coarse.bound, least);
    EXPECT_LE(coarse.bound, 1.6 * most);
  }
}

}  // namespace
}  // namespace poisson::assembly
