#include "gpu/elements/box_residual.hpp"

#include "gpu/core/error.hpp"
#include "gpu/core/host_vector.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/elements/box_points.hpp"
#include "gpu/elements/box_system.hpp"
#include "gpu/kernels/backends.hpp"

#include <algorithm>
#include <cstddef>
#include <span>

namespace poisson {

namespace {

bool is_zero(ExpressionCode const& code) {
  return is_constant(code) && code.front().value == 0;
}

/// Whether f and the values of natural faces are 0.
bool has_no_loads(BoxProblem const& problem) {
  return !problem.source_on_host && is_zero(problem.source) && std::ranges::all_of(problem.faces, [](auto const& face) {
    return face.type != BoxProblem::Face::Type::neumann || is_zero(face.value);
  });
}

}  // namespace

bool BoxResidual::knows(BoxProblem const& problem) {
  return problem.coefficient.size() < tensor_entries &&
         std::ranges::none_of(problem.faces, [](auto const& face) { return face.type == BoxProblem::Face::Type::robin; });
}

BoxResidual::BoxResidual(Context& context, BoxProblem const& problem, std::vector<std::pair<std::int64_t, double>> const& loads)
    : context_(context), problem_(problem), is_constant_in_cells_(has_constants_of_materials(problem)) {
  std::int64_t n = 1;
  for (std::size_t d = 0; d < 3; ++d) {
    box_.cells[d] = problem.cells[d];
    box_.nodes[d] = problem.cells[d] + 1;
    n *= box_.nodes[d];
    edges_[d] = Array<double>(context, std::span<double const>(edges_of(problem, d)));
    box_.edges[d] = edges_[d].data();
    gauss_coordinates_[d] = Array<double>(context, std::span<double const>(gauss_points_of(nodes_of(problem, d))));
  }
  if (!has_no_loads(problem))
    loads_ = BoxSystem::loads(context, problem);
  if (!loads.empty()) {
    HostVector<double> values(static_cast<std::size_t>(n), 0.0);
    if (loads_.size() > 0)
      loads_.download(std::span<double>(values));
    for (auto const& [node, load] : loads)
      values[static_cast<std::size_t>(node)] += load;
    loads_ = Array<double>(context, std::span<double const>(values));
  }
  k_.components = static_cast<std::int32_t>(problem.coefficient.size());
  if (is_constant_in_cells_) {
    std::int64_t const of_plane = problem.cells[0] * problem.cells[1];
    labels_ = Array<std::uint8_t>(context, of_plane * problem.cells[2]);
    take_labels(context, *problem.materials, 0, problem.cells[2], of_plane, labels_.data());
    k_.labels = labels_.data();
    for (std::size_t c = 0; c < problem.coefficient.size(); ++c) {
      HostVector<double> table;
      for (std::size_t id = 0; id < problem.materials->coefficients.size(); ++id)
        table.push_back(constant_of(problem, id, c));
      k_.table[c] = tables_.emplace_back(context, std::span<double const>(table)).data();
    }
  } else if (!problem.coefficient_on_host && std::ranges::all_of(problem.coefficient, is_constant)) {
    is_constant_in_cells_ = true;
    for (std::size_t c = 0; c < problem.coefficient.size(); ++c)
      k_.constant[c] = problem.coefficient[c].front().value;
  }
}

void BoxResidual::operator()(double const* u, double const* u_low, double* r) const {
  std::int64_t const bytes = std::int64_t{sizeof(double)} * box_.nodes[0] * box_.nodes[1] * box_.nodes[2];
  if (loads_.size() > 0)
    context_.copy(r, loads_.data(), bytes);
  else
    context_.set_zero(r, bytes);
  if (is_constant_in_cells_)
    kernels_for<BoxSolutionKernels>(context_).subtract_product(context_, box_, k_, 0, box_.cells[2], u, u_low, r);
  else
    subtract_slabs(u, u_low, r);
}

void BoxResidual::subtract_slabs(double const* u, double const* u_low, double* r) const {
  auto const& [nx, ny, nz] = box_.cells;
  std::int64_t const of_plane = 4 * nx * ny, planes = std::min(planes_at_once(box_.cells, context_.backend()), nz);
  BoxCellCoefficient k;
  k.components = k_.components;
  std::array<Array<double>, 3> points;
  std::array<Array<Instruction>, 3> codes;
  for (std::size_t c = 0; c < static_cast<std::size_t>(k.components); ++c) {
    points[c] = Array<double>(context_, 2 * of_plane * planes);
    codes[c] = Array<Instruction>(context_, std::span<Instruction const>(problem_.coefficient[c]));
    k.points[c] = points[c].data();
  }
  LowestFailure ignored(context_);  // what is not admissible has been found by the assembly
  for (std::int64_t first = 0; first < nz; first += planes) {
    if (interrupt_requested())
      throw Interrupted();
    std::int64_t const count = std::min(planes, nz - first);
    TensorGrid const grid{{2 * nx, 2 * ny, 2 * count},
                          {gauss_coordinates_[0].data(), gauss_coordinates_[1].data(), gauss_coordinates_[2].data() + 2 * first}};
    for (std::size_t c = 0; c < static_cast<std::size_t>(k.components); ++c)
      if (problem_.coefficient_on_host)
        take_from_host(context_, problem_.coefficient_on_host, static_cast<int>(c), first, count, of_plane, points[c].data());
      else
        kernels_for<BoxElementKernels>(context_).evaluate(context_, {codes[c].data(), static_cast<std::int32_t>(codes[c].size())},
                                                          stack_depth(problem_.coefficient[c]), grid, ValueCheck::finite,
                                                          points[c].data(), ignored.data());
    kernels_for<BoxSolutionKernels>(context_).subtract_product(context_, box_, k, first, first + count, u, u_low, r);
  }
}

}  // namespace poisson
