/// Fields that are made when they are asked for, against a plain formula and against fields that stand by themselves.
#include "assembly/discretization.hpp"
#include "tests/assembly/local_meshes.hpp"
#include "tests/convergence/support.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace poisson::assembly {
namespace {

using namespace test;

template <class T>
void expect_ranges(FieldValues<T> const& found, FieldValues<T> const& expected) {
  ASSERT_TRUE(found.fill());
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t const first : {0, 1, 2, 7, 10})
    for (std::size_t const up_to : {std::size_t{1}, std::size_t{2}, std::size_t{5}, std::size_t{8}, found.size()}) {
      if (first >= found.size())
        continue;
      std::size_t const n = std::min(up_to, found.size() - first);
      std::vector<T> values(n);
      found.fill()(static_cast<std::int64_t>(first), static_cast<std::int64_t>(n), values.data());
      EXPECT_TRUE(std::ranges::equal(values, expected.all().subspan(first, n))) << first << ", " << n;
    }
  EXPECT_TRUE(std::ranges::equal(found, expected));
}

void expect_made(SolutionFields const& found, SolutionFields const& expected) {
  expect_ranges(found.error, expected.error);
  expect_ranges(found.material, expected.material);
  expect_ranges(found.coefficient, expected.coefficient);
  expect_ranges(found.flux, expected.flux);
  expect_ranges(found.gradient, expected.gradient);
}

TEST(FieldValues, OfABoxAreMadeInRanges) {
  for (bool const varies : {false, true}) {
    ProblemSpec spec;
    spec.mesh = box(3, 4, 5, {1, 2, 3});
    spec.mesh.growth = {1, 1.5, 0.75};
    spec.coefficient = {{-1, {varies ? "1 + x" : "2", "3", "4"}}};
    spec.exact = "x*y";
    spec.boundary = {dirichlet("0")};
    Discretization const discretization(spec);
    std::vector<double> u(4 * 5 * 6);
    for (std::size_t i = 0; i < u.size(); ++i)
      u[i] = std::sin(static_cast<double>(i * i));
    FieldOptions options;
    options.gradient = true;
    SolutionFields const standing = discretization.fields(u, OutputNodes::unknowns, options);
    options.refer_to_u = true;
    SolutionFields const made = discretization.fields(u, OutputNodes::unknowns, options);

    auto const lattice = std::get<NodeLattice>(discretization.output_mesh(OutputNodes::unknowns));
    for (std::size_t cell = 0; cell < 3 * 4 * 5; ++cell) {
      std::array<std::size_t, 3> const index{cell % 3, cell / 3 % 4, cell / 12};
      for (std::size_t d = 0; d < 3; ++d) {
        double difference = 0;
        for (std::size_t corner = 0; corner < 8; ++corner) {
          std::size_t const x = index[0] + (corner & 1), y = index[1] + (corner >> 1 & 1), z = index[2] + (corner >> 2);
          difference += ((corner >> d & 1) != 0 ? 0.25 : -0.25) * u[(z * 5 + y) * 4 + x];
        }
        auto const& nodes = lattice.coordinates[d];
        double const low = nodes[index[d]], high = nodes[index[d] + 1], slope = difference / (high - low);
        double const k = varies && d == 0 ? 1 + (low + high) / 2 : 2 + static_cast<double>(d);
        EXPECT_NEAR(standing.gradient[3 * cell + d], slope, 1e-13 * std::abs(slope) + 1e-13);
        EXPECT_NEAR(standing.flux[3 * cell + d], -k * slope, 1e-13 * std::abs(k * slope) + 1e-13);
      }
    }
    EXPECT_EQ(made.u.all().data(), u.data());
    expect_made(made, standing);

    EXPECT_FALSE(standing.flux.fill() || standing.error.fill() || standing.coefficient.fill());
    double const before = u[7], flux = standing.flux[0];
    std::ranges::fill(u, 99);
    EXPECT_EQ(standing.u[7], before);
    EXPECT_EQ(standing.flux[0], flux);
  }
}

TEST(FieldValues, ArePickedAtAnyPlaces) {
  std::vector<int> values(300);
  std::iota(values.begin(), values.end(), 7);
  std::int64_t read = 0;
  auto const fill = [&](std::int64_t first, std::int64_t n, int* out) {
    ++read;
    std::copy_n(values.begin() + first, n, out);
  };
  auto const pick = [&](std::span<std::int64_t const> places, int* out) {
    ++read;
    for (std::int64_t const place : places)
      *out++ = values[static_cast<std::size_t>(place)];
  };
  std::vector<std::int64_t> places{299, 0, 0, 4, 5, 6, 10, 250, 240, 118};
  for (auto const& [field, reads] :
       {std::pair{FieldValues<int>::view(values), 0}, std::pair{FieldValues<int>(values.size(), fill), 10},
        std::pair{FieldValues<int>(values.size(), fill, pick), 1}}) {
    read = 0;
    std::vector<int> found(places.size());
    field.pick(places, found.data());
    for (std::size_t i = 0; i < places.size(); ++i)
      EXPECT_EQ(found[i], values[static_cast<std::size_t>(places[i])]) << i;
    EXPECT_EQ(read, reads);
    EXPECT_TRUE(std::ranges::equal(field, values));
    read = 0;
    field.pick(places, found.data());
    EXPECT_EQ(read, 0);  // all of them stay
    field.pick({}, nullptr);
  }
}

/// A linear function, its flux with a full tensor k that varies, and the mesh, piece by piece: on lattices, on cells in any order
/// with hanging nodes, and with two materials.
TEST(FieldValues, OfAnyMeshAreMadeInRanges) {
  ProblemSpec hanging = problem_with_levels(flat_box({2, 3, 2}), 1);
  add_cycle(hanging, {{1, 5}, {}});
  ProblemSpec lattices, few;
  lattices.mesh = generator("hyper_ball", 2);
  lattices.mesh.regions = {{"upper", "z > 0.1"}};
  few.mesh = generator("hyper_shell", 0, "0, 0, 0 : 0.5 : 1 : 6");
  for (ProblemSpec spec : {lattices, hanging, few})
    for (int const order : {1, 2, 3}) {
      spec.order = order;
      spec.coefficient = {{-1, {"4 + x", "5", "6", "1", "0.5*y", "0.25"}}};
      spec.exact = "x*y";
      spec.boundary = {dirichlet("0")};
      Discretization const discretization(spec);
      auto const n = static_cast<std::size_t>(discretization.summary().dofs);
      HostVector<double> u;
      for (std::size_t i = 0; i < n; ++i) {
        auto const x = discretization.point(static_cast<std::int64_t>(i));
        u.push_back(x[0] + 2 * x[1] - 3 * x[2]);
      }
      FieldOptions options{true, true, false};
      SolutionFields const standing = discretization.fields(u, OutputNodes::equidistant, options);
      options.refer_to_u = true;
      FieldValues<double> const made_u(
          n, [&u](std::int64_t first, std::int64_t count, double* out) { std::copy_n(u.begin() + first, count, out); });
      SolutionFields const made = discretization.fields_of(made_u, OutputNodes::equidistant, options);
      EXPECT_EQ(made.u.fill() != nullptr, order < 3);  // from then on the nodes are others
      EXPECT_EQ(made.exact.fill() != nullptr, order < 3);
      EXPECT_TRUE(std::ranges::equal(made.u, standing.u));
      EXPECT_TRUE(std::ranges::equal(made.exact, standing.exact));
      expect_made(made, standing);
      EXPECT_FALSE(standing.flux.fill() || standing.material.fill() || standing.gradient.fill());

      auto const mesh = std::get<NodeMesh>(discretization.output_mesh());
      auto const local = static_cast<std::size_t>((order + 1) * (order + 1) * (order + 1)), n_cells = mesh.cells.size() / local;
      EXPECT_EQ(std::ssize(mesh.cells), discretization.summary().cells * static_cast<std::int64_t>(local));
      std::vector<std::int64_t> cell(local), part(local + 3);
      for (std::size_t c = 0; c < n_cells; c += 5) {
        mesh.cells.read(static_cast<std::int64_t>(c * local), static_cast<std::int64_t>(local), cell.data());
        mesh.cells.read(static_cast<std::int64_t>(c * local + 2), static_cast<std::int64_t>(local) - 3, part.data());
        EXPECT_TRUE(std::equal(cell.begin() + 2, cell.end() - 1, part.begin()));
        std::array<double, 3> middle{};
        for (std::size_t a = 0; a < local; ++a)
          if (std::array<std::size_t, 3> const at{a % (order + 1), a / (order + 1) % (order + 1), a / (order + 1) / (order + 1)};
              std::ranges::all_of(at, [&](std::size_t i) { return i == 0 || i == static_cast<std::size_t>(order); }))
            for (std::size_t d = 0; d < 3; ++d) {
              double x = 0;
              mesh.points.read(3 * cell[a] + static_cast<std::int64_t>(d), 1, &x);
              middle[d] += x / 8;
            }
        EXPECT_EQ(made.material[c], standing.material[c]);
        std::array<double, 3> const gradient{1, 2, -3};
        for (std::size_t d = 0; d < 3; ++d)
          EXPECT_NEAR(standing.gradient[3 * c + d], gradient[d], 1e-10);
        if (order > 1)  // the middle of a curved cell is elsewhere
          continue;
        auto const [x, y, z] = middle;
        std::array<double, 3> const flux{-(4 + x) - 2 * 1 + 3 * 0.5 * y, -1 - 2 * 5 + 3 * 0.25, -0.5 * y - 2 * 0.25 + 3 * 6};
        for (std::size_t d = 0; d < 3; ++d)
          EXPECT_NEAR(standing.flux[3 * c + d], flux[d], 1e-10);
      }
      if (order < 3)
        for (std::size_t i = 0; i < n; i += 7) {
          std::array<double, 3> x{};
          mesh.points.read(static_cast<std::int64_t>(3 * i), 3, x.data());
          EXPECT_EQ(x, discretization.point(static_cast<std::int64_t>(i)));
        }
    }
}

// k and grad u of a function of every space, with two materials; and the same of u that is made.
TEST(FieldValues, OfABoxOfAnyOrderAndSeveralMaterials) {
  for (int const order : {1, 2, 3, 4})
    for (bool const full : {false, true}) {
      ProblemSpec spec;
      spec.order = order;
      spec.mesh = box(3, 4, 2, {1, 2, 3});
      spec.mesh.growth = {1, 1.5, 0.75};
      spec.mesh.regions = {{"top", "z > 1.7"}};
      std::vector<std::string> const k = full ? std::vector<std::string>{"4 + x", "5", "6", "1", "0.5*y", "0.25"}
                                              : std::vector<std::string>{"4 + x", "5", "6 + y"};
      spec.coefficient = {{1, {"2"}}};
      spec.coefficient[0].assign(k.begin(), k.end());
      spec.exact = "x*y";
      spec.boundary = {dirichlet("0")};
      Discretization const discretization(spec);
      auto const nodes = std::get<NodeLattice>(discretization.output_mesh(OutputNodes::unknowns)).coordinates;
      HostVector<double> u;
      for (double const z : nodes[2])
        for (double const y : nodes[1])
          for (double const x : nodes[0])
            u.push_back(x * y + 2 * z - x);
      FieldOptions const options{true, true, true};
      SolutionFields const of_array = discretization.fields(u, OutputNodes::unknowns, options);
      std::size_t cell = 0;
      auto const p = static_cast<std::size_t>(order);
      for (std::size_t iz = 0; iz < 2; ++iz)
        for (std::size_t iy = 0; iy < 4; ++iy)
          for (std::size_t ix = 0; ix < 3; ++ix, ++cell) {
            auto const middle = [p](std::vector<double> const& at, std::size_t i) { return (at[p * i] + at[p * (i + 1)]) / 2; };
            double const x = middle(nodes[0], ix), y = middle(nodes[1], iy);
            std::array<double, 3> const gradient{y - 1, x, 2};
            bool const top = middle(nodes[2], iz) > 1.7;
            // xx, yy, zz, xy, yz, xz; a specification has xz before yz.
            std::array<double, 6> const tensor = top    ? std::array<double, 6>{2, 2, 2, 0, 0, 0}
                                                 : full ? std::array<double, 6>{4 + x, 5, 6, 1, 0.25, 0.5 * y}
                                                        : std::array<double, 6>{4 + x, 5, 6 + y, 0, 0, 0};
            auto const& [xx, yy, zz, xy, yz, xz] = tensor;
            std::array<double, 3> const flux{-xx * gradient[0] - xy * gradient[1] - xz * gradient[2],
                                             -xy * gradient[0] - yy * gradient[1] - yz * gradient[2],
                                             -xz * gradient[0] - yz * gradient[1] - zz * gradient[2]};
            EXPECT_EQ(of_array.material[cell], top ? 1 : 0);
            auto const components = static_cast<std::size_t>(of_array.coefficient_components);
            ASSERT_EQ(components, full ? 6 : 3);
            for (std::size_t e = 0; e < components; ++e)
              EXPECT_NEAR(of_array.coefficient[components * cell + e], tensor[e], 1e-13);
            for (std::size_t d = 0; d < 3; ++d) {
              EXPECT_NEAR(of_array.gradient[3 * cell + d], gradient[d], 1e-12);
              EXPECT_NEAR(of_array.flux[3 * cell + d], flux[d], 1e-11);
            }
          }

      FieldValues<double> const made_u(
          u.size(), [&u](std::int64_t first, std::int64_t n, double* out) { std::copy_n(u.begin() + first, n, out); });
      SolutionFields const of_made = discretization.fields_of(made_u, OutputNodes::unknowns, options);
      expect_ranges(of_made.u, of_array.u);
      expect_ranges(of_made.exact, of_array.exact);
      expect_made(of_made, of_array);
      EXPECT_TRUE(std::ranges::equal(of_made.flux_points, of_array.flux_points));
    }
}

}  // namespace
}  // namespace poisson::assembly
