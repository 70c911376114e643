/// Fluxes of a box from its sides, tile by tile, beside those from all of its cells at once.
#include "assembly/system/box_boundary.hpp"

#include "assembly/mesh/box_partition.hpp"
#include "assembly/space/places.hpp"
#include "assembly/system/boundary_flux.hpp"

#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace poisson::assembly {
namespace {

BoundaryCondition condition_of(BoundaryType type, std::vector<unsigned> ids, std::string value, std::string alpha = "0") {
  return {false, std::move(ids), {}, type, std::move(value), std::move(alpha)};
}

void expect_near(std::map<unsigned, BoundaryFlux> const& found, std::map<unsigned, BoundaryFlux> const& expected,
                 std::string const& which) {
  ASSERT_EQ(found.size(), expected.size()) << which;
  for (auto const& [id, flux] : expected) {
    BoundaryFlux const& of = found.at(id);
    EXPECT_NEAR(of.area, flux.area, 1e-13 * flux.area) << which << ", boundary " << id;
    EXPECT_NEAR(of.flux, flux.flux, 1e-11) << which << ", boundary " << id;
    EXPECT_NEAR(of.integral_u, flux.integral_u, 1e-12) << which << ", boundary " << id;
    EXPECT_EQ(of.min, flux.min) << which << ", boundary " << id;
    EXPECT_EQ(of.max, flux.max) << which << ", boundary " << id;
  }
}

struct BoxWithConditions {
  BoxWithConditions(std::array<std::int64_t, 3> cells, int order, std::vector<BoundaryCondition> boundary, bool graded = false)
      : element(order), space(grid(cells, graded), element) {
    spec.order = order;
    spec.coefficient = {{-1, {"1 + x*y"}}};
    spec.source = "1 + z";
    spec.boundary = std::move(boundary);
  }
  void close() { data = std::make_unique<ProblemData>(spec, PlaceNames(space.boundary_ids, space.material_ids)); }

  static BoxGrid grid(std::array<std::int64_t, 3> cells, bool graded) {
    BoxGrid box{{0.5, 0, -1}, {1, 1.5, 0.75}, cells};
    for (std::size_t d = 0; graded && d < 3; ++d)
      for (std::int64_t i = 0; i <= cells[d]; ++i) {
        double const t = static_cast<double>(i) / static_cast<double>(cells[d]);
        box.coordinates[d].push_back(box.origin[d] + box.extent[d] * t * (0.5 + 0.5 * t));
      }
    return box;
  }
  [[nodiscard]] std::vector<double> values() const {
    std::vector<double> u;
    for (std::int64_t i = 0; i < space.n_dofs; ++i) {
      Point3 const x = space.point(i);
      u.push_back(std::sin(3 * x[0]) + x[1] * x[2] + 0.1 * std::cos(static_cast<double>(7 * i)));
    }
    return u;
  }
  /// Both ways must agree, and so must the second way for low parts.
  void expect_equal(std::string const& which) const {
    std::vector<double> const u = values();
    std::vector<double> low;
    for (double const value : u)
      low.push_back(1e-3 * value);
    for (bool const extended : {false, true}) {
      std::span<double const> const u_low = extended ? std::span<double const>(low) : std::span<double const>();
      auto const expected = boundary_fluxes(space, element, *data, u, {}, u_low).boundaries;
      auto const found = box_boundary_fluxes(space, element, *data, nodes_among(space, values_among(u)),
                                             extended ? nodes_among(space, values_among(low)) : NodesOfBox());
      expect_near(found, expected, which);
    }
  }

  /// What InsideOfSide gives, from the fluxes of all cells and without loads of points. `first`: the first cell of `part` in the
  /// box.
  [[nodiscard]] InsideOfSide inside_of(Space const& part, std::array<std::int64_t, 3> const& first,
                                       std::vector<double> const& u) const {
    return [this, &part, first, &u](int side, RangeOfBox const& faces, RangeOfBox const& nodes) {
      auto const marks = [&](std::array<std::int64_t, 3> const& n, RangeOfBox const& marked) {
        std::vector<std::uint8_t> result;
        for (std::int64_t z = 0; z < n[2]; ++z)
          for (std::int64_t y = 0; y < n[1]; ++y)
            for (std::int64_t x = 0; x < n[0]; ++x) {
              std::array<std::int64_t, 3> const at{x - first[0], y - first[1], z - first[2]};
              bool is_in = true;
              for (std::size_t d = 0; d < 3; ++d)
                is_in = is_in && marked.first[d] <= at[d] && at[d] < marked.end[d];
              result.push_back(is_in ? 1 : 0);
            }
        return result;
      };
      for (std::size_t d = 0; d < 3; ++d) {
        EXPECT_LT(faces.first[d], faces.end[d]);
        EXPECT_LE(faces.end[d], part.box->cells[d]);
      }
      ProblemData without_loads = *data;
      without_loads.point_loads.loads.clear();
      auto const found =
          boundary_fluxes(space, element, without_loads, u, marks(space.box_nodes, nodes), {}, marks(space.box->cells, faces));
      EXPECT_EQ(found.boundaries.size(), std::size_t{1});
      BoundaryFlux result = found.boundaries.at(static_cast<unsigned>(side));
      for (PeriodicFlux const& flux : found.periodic)  // of one periodic side: what leaves there is the residual
        result.flux -= flux.residual;
      return result;
    };
  }
  /// Truth are the sums over all cells at once. `asks`: there is something inside of sides.
  void expect_inside_is_used(std::string const& which, bool asks = true) const {
    std::vector<double> const u = values();
    BoundaryFluxes expected = boundary_fluxes(space, element, *data, u);
    if (!expected.periodic.empty())
      add_periodic_fluxes(expected.periodic, *data, expected);
    int asked = 0;
    auto const inside = inside_of(space, {}, u);
    auto const found = box_boundary_fluxes(space, element, *data, nodes_among(space, values_among(u)), {}, {},
                                           [&](int side, RangeOfBox const& faces, RangeOfBox const& nodes) {
                                             ++asked;
                                             return inside(side, faces, nodes);
                                           });
    EXPECT_EQ(asked > 0, asks) << which;
    expect_near(found, expected.boundaries, which);
  }

  /// What parts of the box have must be the whole. `use_inside`: what is inside of sides comes from elsewhere.
  void expect_parts_add_up(int n_parts, std::string const& which, bool use_inside = false) const {
    std::vector<double> const u = values();
    NodesOfBox const of_whole = nodes_among(space, values_among(u));
    auto const expected = box_boundary_fluxes(space, element, *data, of_whole);
    BoxPartition const partition(space.box->cells, space.order, n_parts);
    std::map<unsigned, BoundaryFlux> found;
    for (int rank = 0; rank < n_parts; ++rank) {
      BoxPart const around = partition.assembled_cells(rank);
      BoxPart own = partition.cells(rank);
      if (own.n_cells() == 0)
        continue;
      for (std::size_t d = 0; d < 3; ++d)
        own.first[d] -= around.first[d];
      auto const of_part = [&](auto first, auto const& count, HostVector<double>& nodes) {
        for (std::size_t d = 0; d < 3; ++d)
          first[d] += space.order * around.first[d];
        of_whole(first, count, nodes);
      };
      Space const part(space, element, around.first, around.cells);
      InsideOfSide const inside = use_inside ? inside_of(part, around.first, u) : nullptr;
      for (auto const& [id, flux] : box_boundary_fluxes(part, element, *data, of_part, {}, own, inside))
        found[id].add(flux);
    }
    expect_near(found, expected, which + ", parts: " + std::to_string(n_parts));
  }

  ReferenceElement element;
  Space space;
  ProblemSpec spec;
  std::unique_ptr<ProblemData> data;
};

std::vector<std::vector<BoundaryCondition>> sets_of_conditions() {
  auto const dirichlet = [](std::vector<unsigned> ids) { return condition_of(BoundaryType::dirichlet, std::move(ids), "x"); };
  return {{dirichlet({0, 1, 2, 3, 4, 5})},
          {dirichlet({0}), dirichlet({5}), condition_of(BoundaryType::neumann, {1, 2}, "y"),
           condition_of(BoundaryType::robin, {3, 4}, "1 + z", "2")},
          {dirichlet({1, 2, 4}), condition_of(BoundaryType::neumann, {0, 3, 5}, "x*y")}};
}

TEST(BoxBoundary, TilesAddUpToTheSides) {
  for (std::array<std::int64_t, 3> const cells :
       {std::array<std::int64_t, 3>{1, 1, 1}, {2, 2, 2}, {1, 3, 2}, {5, 4, 70}, {33, 2, 32}, {3, 65, 3}})
    for (int const order : {1, 2})
      for (bool const graded : {false, true}) {
        if (order == 2 && cells[0] * cells[1] * cells[2] > 700)
          continue;
        for (auto const& boundary : sets_of_conditions()) {
          BoxWithConditions problem(cells, order, boundary, graded);
          problem.close();
          std::string const which = std::to_string(cells[0]) + " x " + std::to_string(cells[1]) + " x " + std::to_string(cells[2]) +
                                    ", order " + std::to_string(order) + (graded ? ", graded" : "");
          problem.expect_equal(which);
          problem.expect_parts_add_up(order == 1 ? 3 : graded ? 8 : 2, which);
        }
      }
}

TEST(BoxBoundary, WhatIsInsideOfSidesMayComeFromElsewhere) {
  for (std::array<std::int64_t, 3> const cells : {std::array<std::int64_t, 3>{4, 4, 4}, {2, 3, 5}, {5, 2, 6}, {3, 40, 4}})
    for (auto const& boundary : sets_of_conditions()) {
      BoxWithConditions problem(cells, 1, boundary, cells[0] == 5);
      problem.close();
      std::int64_t const nx = cells[0] + 1, ny = cells[1] + 1;
      for (std::int64_t const node : {(2 * ny + 1) * nx, (1 * ny + 1) * nx + 1, std::int64_t{0}, 2 * nx + 1})
        problem.data->point_loads.loads.push_back({static_cast<std::int32_t>(node), 0, 0.25 + static_cast<double>(node), -1});
      std::string const which = std::to_string(cells[0]) + " x " + std::to_string(cells[1]) + " x " + std::to_string(cells[2]);
      problem.expect_inside_is_used(which);
      problem.data->point_loads.loads.clear();  // parts have their own numbers
      for (int const n_parts : {1, 3, 8})
        problem.expect_parts_add_up(n_parts, which, true);
    }
}

TEST(BoxBoundary, OnlyTheRimOfASideIsLookedAtWhereItsInsideIsKnown) {
  for (std::array<std::int64_t, 3> const cells : {std::array<std::int64_t, 3>{3, 3, 3}, {40, 36, 34}, {3, 70, 4}})
    for (bool const graded : {false, true}) {
      BoxWithConditions problem(cells, 1, sets_of_conditions()[graded ? 1 : 2], graded);
      problem.close();
      problem.expect_inside_is_used(std::to_string(cells[0]) + (graded ? ", graded" : ""));
    }
  // No side has an inside where a direction has one cell or two, or the order is higher.
  for (std::array<std::int64_t, 3> const cells : {std::array<std::int64_t, 3>{1, 1, 1}, {2, 2, 2}, {1, 2, 4}, {3, 2, 1}})
    for (auto const& boundary : sets_of_conditions()) {
      BoxWithConditions problem(cells, 1, boundary);
      problem.close();
      problem.expect_inside_is_used(std::to_string(cells[0]) + " small", false);
    }
  for (int order = 2; order <= 4; ++order)
    for (auto const& boundary : sets_of_conditions()) {
      BoxWithConditions problem({3, 4, 3}, order, boundary, order == 3);
      problem.close();
      problem.expect_inside_is_used("order " + std::to_string(order), false);
      problem.expect_equal("order " + std::to_string(order));
      problem.expect_parts_add_up(4, "order " + std::to_string(order));
    }
}

/// Opposite sides are tied in some directions; the others have Dirichlet and Neumann values. Truth are the flows of all nodes on
/// periodic sides at once.
TEST(BoxBoundary, PeriodicSides) {
  for (int subset = 1; subset < 8; ++subset)
    for (bool const free : {false, true})
      for (std::array<std::int64_t, 3> const& cells :
           {std::array<std::int64_t, 3>{3, 4, 5}, std::array<std::int64_t, 3>{35, 4, 3}}) {
        std::vector<BoundaryCondition> boundary;
        for (unsigned d = 0; d < 3; ++d)
          if ((subset >> d & 1) != 0) {
            boundary.push_back(condition_of(BoundaryType::periodic, {2 * d + 1, 2 * d}, d == 1 ? "-2" : "0"));
          } else {
            boundary.push_back(condition_of(free ? BoundaryType::neumann : BoundaryType::dirichlet, {2 * d}, "1"));
            boundary.push_back(condition_of(BoundaryType::neumann, {2 * d + 1}, "x + y"));
          }
        BoxWithConditions problem(cells, 1, boundary, subset % 2 == 0);
        problem.close();
        for (std::int32_t const unknown : {0, 7, 40})
          problem.data->point_loads.loads.push_back({unknown, 0, 0.5 + unknown, 0});
        std::vector<double> const u = problem.values();
        BoundaryFluxes expected = boundary_fluxes(problem.space, problem.element, *problem.data, u);
        add_periodic_fluxes(expected.periodic, *problem.data, expected);
        auto const found =
            box_boundary_fluxes(problem.space, problem.element, *problem.data, nodes_among(problem.space, values_among(u)));
        std::string const which = "sides " + std::to_string(subset) + (free ? ", free" : "") + ", " + std::to_string(cells[0]);
        expect_near(found, expected.boundaries, which);
        problem.expect_inside_is_used(which + ", inside known");
      }
}

TEST(BoxBoundary, NamedFacesMaterialsAndPointLoads) {
  // Faces and cells have ids by their number; unknowns at a corner, at an edge, at a side and inside have loads.
  BoxWithConditions problem(
      {34, 3, 4}, 1, {condition_of(BoundaryType::dirichlet, {0, 2, 4, 5}, "x"), condition_of(BoundaryType::neumann, {6}, "y")});
  std::vector<std::int32_t> faces, cells;
  for (std::size_t i = 0; i < problem.space.boundary_faces.size(); ++i)
    faces.push_back(problem.space.boundary_faces[i].face % 2 == 1 && problem.space.boundary_faces[i].face < 4 ? 0
                    : i % 5 == 0                                                                              ? 1
                                                                                                              : -1);
  for (std::int64_t i = 0; i < problem.space.n_cells; ++i)
    cells.push_back(static_cast<std::int32_t>(i % 3 - 1));
  problem.space.set_boundary_ids(faces, 6);
  problem.space.set_materials(cells, 1);
  problem.spec.boundary.push_back(condition_of(BoundaryType::dirichlet, {7}, "2"));
  problem.spec.coefficient = {{0, {"1"}}, {1, {"2 + x"}}, {2, {"5", "1", "3"}}};
  problem.close();
  problem.expect_parts_add_up(4, "34 x 3 x 4 with places");
  for (std::int32_t const unknown : {0, 10, 40, 200, 35 * 4 * 5 - 1})
    problem.data->point_loads.loads.push_back({unknown, 0, 0.5 + unknown, 0});
  problem.expect_equal("34 x 3 x 4 with places");
}

}  // namespace
}  // namespace poisson::assembly
