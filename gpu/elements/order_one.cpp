#include "gpu/elements/order_one.hpp"

#include "gpu/elements/box_system.hpp"
#include "gpu/elements/lattice_system.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/lattice_elements.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <utility>

namespace poisson {

namespace {

/// The shares of a Gauss point of order p in the two of order 1: those in the first half of [0, 1] belong to the first, one in the
/// middle to both.
std::array<double, 2> shares(std::int32_t point, std::int32_t order) {
  if (2 * point == order)
    return {0.5, 0.5};
  return 2 * point < order ? std::array<double, 2>{1, 0} : std::array<double, 2>{0, 1};
}

/// Dirichlet marks of the vertices from those of all nodes, each in the order of LatticeProblem::fixed.
HostVector<std::uint8_t> fixed_vertices(LatticeLayout const& fine, LatticeLayout const& coarse,
                                        std::span<std::uint8_t const> fixed) {
  if (fine.is_box())
    return vertices_at_surface(fine, fixed);
  RimTables const& tables = *coarse.tables;
  HostVector<std::uint8_t> result(tables.copy_offsets.size() - 1);
  LatticeRim const rim = coarse.rim(), rim_of_fine = fine.rim();
  std::int32_t const p = fine.order;
  for (std::size_t i = 0; i < result.size(); ++i) {
    std::int64_t const place = tables.copies[static_cast<std::size_t>(tables.copy_offsets[i])];
    LatticeRim::Node const node = rim.node(place % rim.size());
    std::int64_t const at = place / rim.size() * rim_of_fine.size() + rim_of_fine.place(p * node.i, p * node.j, p * node.k);
    result[i] = fixed[static_cast<std::size_t>(fine.tables->rim_unknowns[static_cast<std::size_t>(at)] - fine.n_inner())];
  }
  return result;
}

}  // namespace

LatticeProblem with_order_one(LatticeProblem const& problem) {
  LatticeLayout const& fine = problem.layout;
  std::int32_t const p = fine.order;
  if (p == 1) {  // with all of its unknowns
    LatticeProblem same = problem;
    same.sources = {{Instruction(Op::constant, 0)}};
    same.source_of.clear();
    std::fill(same.fixed_value.begin(), same.fixed_value.end(), 0.0);
    std::fill(same.rim_load.begin(), same.rim_load.end(), 0.0);
    return same;
  }
  LatticeProblem result;
  result.layout = layout_of_vertices(fine.view());
  result.coefficients = problem.coefficients;
  result.material = problem.material;
  result.pure_neumann = problem.pure_neumann;

  LatticeLayout const& coarse = result.layout;
  std::int64_t const m = coarse.nodes(), m_fine = fine.nodes();
  auto const take_vertices = [m, m_fine, p](double const* of_fine, std::int64_t n_lattices, double* out) {
#pragma omp parallel for schedule(static)
    for (std::int64_t plane = 0; plane < 3 * n_lattices * m; ++plane) {
      double const* const from = of_fine + plane / m * m_fine * m_fine * m_fine + plane % m * p * m_fine * m_fine;
      double* const to = out + plane * m * m;
      for (std::int64_t j = 0; j < m; ++j)
        for (std::int64_t i = 0; i < m; ++i)
          to[j * m + i] = from[p * j * m_fine + p * i];
    }
  };
  if (fine.is_box()) {
    for (std::size_t d = 0; d < 3; ++d)
      for (std::size_t i = 0; i < problem.lines[d].size(); i += static_cast<std::size_t>(p))
        result.lines[d].push_back(problem.lines[d][i]);
  } else if (problem.make_coordinates) {
    result.make_coordinates = [take_vertices, m, make = problem.make_coordinates](std::int64_t first, std::int64_t count) {
      HostVector<double> coordinates(static_cast<std::size_t>(3 * count * m * m * m));
      for (std::int64_t i = 0; i < count; ++i)  // a lattice of higher order has many more nodes
        take_vertices(make(first + i, 1).data(), 1, coordinates.data() + 3 * i * m * m * m);
      return coordinates;
    };
  } else {
    HostVector<double> coordinates(static_cast<std::size_t>(3 * coarse.n_lattices * m * m * m));
    take_vertices(problem.coordinates->data(), coarse.n_lattices, coordinates.data());
    result.coordinates = std::make_shared<HostVector<double> const>(std::move(coordinates));
  }

  result.fixed = fixed_vertices(fine, coarse, problem.fixed);
  result.fixed_value.resize(result.fixed.size(), 0.0);
  result.rim_load.resize(result.fixed.size(), 0.0);

  result.mass_faces = problem.mass_faces;
  std::int64_t const points = p + 1, n_cells = std::ssize(problem.face_mass) / (points * points);
  result.face_mass.resize(static_cast<std::size_t>(4 * n_cells), 0.0);
  for (std::int64_t cell = 0; cell < n_cells; ++cell)
    for (std::int32_t q = 0; q < points * points; ++q) {
      double const mass = problem.face_mass[static_cast<std::size_t>(cell * points * points + q)];
      auto const x = shares(static_cast<std::int32_t>(q % points), p), y = shares(static_cast<std::int32_t>(q / points), p);
      for (std::size_t t = 0; t < 4; ++t)
        result.face_mass[static_cast<std::size_t>(4 * cell) + t] += x[t % 2] * y[t / 2] * mass;
    }
  return result;
}

OrderOne make_order_one(Context& context, BoxProblem const& box) {
  OrderOne result;
  BoxProblem without_source = box;
  without_source.source = {Instruction(Op::constant, 0)};
  without_source.source_on_host = {};
  result.matrix = BoxSystem(context, without_source).take_matrix();
  for (std::size_t d = 0; d < 3; ++d)
    result.box_nodes[d] = box.cells[d] + 1;
  return result;
}

LoweredProblem::LoweredProblem(LatticeProblem const& problem, std::optional<BoxProblem> of_box)
    : lattices(problem.layout), fixed(problem.fixed) {
  if (of_box && BoxSystem::can_assemble(*of_box, Format::half_cds))
    box = std::move(of_box);
  else
    vertices = with_order_one(problem);
}

OrderOne make_order_one(Context& context, LoweredProblem const& lowered, Array<double> const& coordinates) {
  OrderOne result;
  if (lowered.box) {
    result = make_order_one(context, *lowered.box);
  } else {
    Format const format = lowered.lattices.cells >= 2 ? Format::half_cds : Format::matrix_free;
    Array<double> vertices;
    if (LatticeView const of_problem = lowered.lattices.view(); coordinates.size() > 0 && of_problem.order > 1) {
      vertices = Array<double>(context, n_vertex_coordinates(of_problem));
      kernels_for<LatticeElementKernels>(context).vertices(context, of_problem, coordinates.data(), vertices.data());
    }
    result.matrix = LatticeSystem(context, lowered.vertices, format, false, std::move(vertices)).take_matrix();
  }
  result.lattices = lowered.lattices;
  result.fixed = lowered.fixed;
  return result;
}

}  // namespace poisson
