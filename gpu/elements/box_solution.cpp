#include "gpu/elements/box_solution.hpp"

#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/core/separated_code.hpp"
#include "gpu/elements/box_points.hpp"
#include "gpu/elements/element_system.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/quadrature.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <utility>

namespace poisson {

namespace {

BoxQuadrature quadrature_of(int points) {
  assert(points >= 2 && points <= most_box_points);
  QuadratureRule const rule = gauss_rule(points);
  BoxQuadrature result;
  result.n = points;
  for (std::size_t q = 0; q < rule.point.size(); ++q) {
    result.point[q] = rule.point[q];
    result.weight[q] = rule.weight[q];
    for (std::size_t i = 0; i < rule.point.size(); ++i)
      result.derivative[q][i] = lagrange(rule.point, i, rule.point[q]).derivative;
  }
  return result;
}

/// The code as a function of the coordinates in this order.
ExpressionCode in_order(ExpressionCode code, std::array<std::size_t, 3> const& directions) {
  for (Instruction& instruction : code)
    for (std::size_t i = 0; i < 3; ++i)
      if (constexpr std::array coordinates{Op::x, Op::y, Op::z}; instruction.op == coordinates[directions[i]]) {
        instruction.op = coordinates[i];
        break;
      }
  return code;
}

}  // namespace

BoxSolution::BoxSolution(Context& context, BoxProblem const& problem)
    : context_(context),
      kernels_(kernels_for<BoxSolutionKernels>(context)),
      coefficient_(problem.coefficient),
      coefficient_on_host_(problem.coefficient_on_host),
      source_on_host_(problem.source_on_host),
      source_(problem.source),
      faces_(problem.faces),
      cells_of_box_(problem.cells),
      first_(cells_in_sums(problem).first),
      volume_(volume_in_sums(problem)) {
  auto const end = cells_in_sums(problem).end;
  for (std::size_t d = 0; d < 3; ++d) {
    HostVector<double>&nodes = nodes_of_box_[d], &edges = edges_of_box_[d];
    nodes = nodes_of(problem, d);
    edges = edges_of(problem, d);
    box_.nodes[d] = problem.cells[d] + 1;
    box_.cells[d] = end[d] - first_[d];
    nodes_[d].assign(nodes.begin() + first_[d], nodes.begin() + end[d] + 1);
    edges_[d] = Array<double>(context, std::span<double const>(edges).subspan(static_cast<std::size_t>(first_[d]),
                                                                              static_cast<std::size_t>(box_.cells[d])));
    box_.edges[d] = edges_[d].data();
  }
  if (!problem.materials)
    return;
  coefficients_ = problem.materials->coefficients;
  coefficient_on_host_ = nullptr;
  if (has_constants_of_materials(problem))
    for (std::size_t id = 0; id < coefficients_.size(); ++id)
      k_of_materials_.push_back({constant_of(problem, id, 0), constant_of(problem, id, 1), constant_of(problem, id, 2)});
  auto const [nx, ny, nz] = problem.cells;
  materials_ = Array<std::uint8_t>(context, nx * ny * nz);
  take_labels(context, *problem.materials, 0, nz, nx * ny, materials_.data());
}

double const* BoxSolution::lowest(double const* u) const {
  return u + first_[2] * box_.step_z() + first_[1] * box_.step_y() + first_[0];
}

void BoxSolution::for_slabs(std::int64_t n, Backend sized_for,
                            std::function<void(std::int64_t first, std::int64_t end)> const& body) const {
  std::int64_t const planes = planes_at_once(cells_of_box_, sized_for);
  for (std::int64_t first = 0; first < n; first += planes) {
    if (interrupt_requested())
      throw Interrupted();
    body(first, std::min(n, first + planes));
  }
}

BoxSolution::OnPlaces BoxSolution::evaluated_on(ExpressionCode const& code, Places const& places) const {
  OnPlaces result;
  if (is_constant(code)) {
    result.function.constant = code.front().value;
    return result;
  }
  auto const code_of = [](Array<Instruction> const& instructions) {
    return ExpressionView{instructions.data(), static_cast<std::int32_t>(instructions.size())};
  };
  SeparatedCode const separated = separate(code);
  result.code = Array<Instruction>(context_, std::span<Instruction const>(separated.outer));
  result.function.code = code_of(result.code);
  result.function.depth = stack_depth(separated.outer);
  LowestFailure ignored(context_);  // the outer function may be finite where an inner one is not
  for (std::size_t d = 0; d < 3; ++d) {
    Array<double> coordinates(context_, std::span<double const>(places[d]));
    if (separated.inner[d].size() == 1) {  // the coordinate itself
      result.at[d] = std::move(coordinates);
      result.function.at[d] = result.at[d].data();
      continue;
    }
    Array<Instruction> const inner(context_, std::span<Instruction const>(separated.inner[d]));
    TensorGrid grid{{1, 1, 1}, {coordinates.data(), coordinates.data(), coordinates.data()}};  // of the others any will do
    grid.n[d] = coordinates.size();
    result.at[d] = Array<double>(context_, coordinates.size());
    kernels_for<BoxElementKernels>(context_).evaluate(context_, code_of(inner), stack_depth(separated.inner[d]), grid,
                                                      ValueCheck::finite, result.at[d].data(), ignored.data());
    result.function.at[d] = result.at[d].data();
  }
  return result;
}

BoxSolution::Places BoxSolution::points_of(BoxQuadrature const& quadrature) const {
  Places result;
  for (std::size_t d = 0; d < 3; ++d)
    for (std::size_t q = 0; q < static_cast<std::size_t>(quadrature.n); ++q)
      for (std::size_t cell = 0; cell + 1 < nodes_[d].size(); ++cell)
        result[d].push_back((1 - quadrature.point[q]) * nodes_[d][cell] + quadrature.point[q] * nodes_[d][cell + 1]);
  return result;
}

void BoxSolution::check_points(std::int64_t failed, int points, Places const& places) const {
  if (failed < 0)
    return;
  std::int64_t const of_line = points * box_.cells[0], line = failed / of_line, qy = line % points, qz = line / points % points;
  std::int64_t const row = line / (points * points), y = row % box_.cells[1], z = row / box_.cells[1];
  throw DataError(DataError::Quantity::exact, -1,
                  {places[0][failed % of_line], places[1][qy * box_.cells[1] + y], places[2][qz * box_.cells[2] + z]});
}

ValueRange BoxSolution::range(double const* u) const {
  ValueRange const found = kernels_.range(context_, box_.nodes[0] * box_.nodes[1] * box_.nodes[2], u);
  return {found.min + 0.0, found.max + 0.0, found.finite};  // and not -0
}

ExtremeNodes BoxSolution::first_places(double const* u, double low, double high) const {
  return kernels_.first_places(context_, box_.nodes[0] * box_.nodes[1] * box_.nodes[2], u, low, high);
}

BoxSolution::Integrals BoxSolution::integrals(double const* u) const {
  if (coefficients_.empty())
    return integrals(u, box_, coefficient_);
  Integrals sum;
  for (OfMaterial const& of : of_materials(u)) {
    sum.volume += of.volume;
    sum.u += of.u;
    sum.gradients += of.gradients;
  }
  return sum;
}

BoxSolution::Integrals BoxSolution::integrals(double const* u, BoxCells const& box,
                                              std::vector<ExpressionCode> const& coefficient) const {
  Places points;
  for (std::size_t d = 0; d < 3; ++d)
    points[d] = gauss_points_of(nodes_[d]);
  // Values from the host are those of whole planes of the box, of which few are here at once: the host is the slower one.
  std::int64_t const of_plane = 4 * cells_of_box_[0] * cells_of_box_[1];
  Backend const sized_for = coefficient_on_host_ ? Backend::cpu : context_.backend();
  BoxCoefficient k;
  k.components = static_cast<std::int32_t>(coefficient.size());
  k.step_y = 2 * cells_of_box_[0];
  k.step_z = of_plane;
  std::vector<OnPlaces> functions;
  std::vector<Array<double>> values;
  for (std::size_t c = 0; c < coefficient.size(); ++c)
    if (coefficient_on_host_) {
      values.emplace_back(context_, 2 * of_plane * planes_at_once(cells_of_box_, sized_for));
      k.values[c] = values.back().data() + 2 * first_[1] * k.step_y + 2 * first_[0];
    } else {
      functions.push_back(evaluated_on(coefficient[c], points));
      k.functions[c] = functions.back().function;
    }
  Array<double> sums(context_, 3);
  sums.set_zero();
  for_slabs(box_.cells[2], sized_for, [&](std::int64_t first, std::int64_t end) {
    for (std::size_t c = 0; c < values.size(); ++c)
      take_from_host(context_, coefficient_on_host_, static_cast<int>(c), first_[2] + first, end - first, of_plane,
                     values[c].data());
    kernels_.integrals(context_, box, k, first, end, lowest(u), sums.data());
  });
  std::array<double, 3> found{};
  sums.download(found);
  return {box.materials == nullptr ? volume_ : found[2], found[0], found[1]};
}

std::vector<ElementSolution::OfMaterial> BoxSolution::of_materials(double const* u) const {
  std::vector<OfMaterial> result;
  BoxCells cells = box_;
  cells.materials = materials_.data() + (first_[2] * cells_of_box_[1] + first_[1]) * cells_of_box_[0] + first_[0];
  for (cells.material = 0; cells.material < std::ssize(coefficients_); ++cells.material) {
    ValueRange const extremes = kernels_.range_of_material(context_, cells, lowest(u));
    Integrals const sums = integrals(u, cells, coefficients_[static_cast<std::size_t>(cells.material)]);
    result.push_back({extremes.min + 0.0, extremes.max + 0.0, sums.volume, sums.u, sums.gradients});
  }
  if (!result.empty())
    return result;
  ValueRange const extremes = range(u);
  Integrals const sums = integrals(u);
  return {{extremes.min, extremes.max, sums.volume, sums.u, sums.gradients}};
}

BoxSolution::Errors BoxSolution::errors(double const* u, ExpressionCode const& exact, double shift, int points) const {
  BoxQuadrature const quadrature = quadrature_of(points);
  Places const places = points_of(quadrature);
  OnPlaces const at_points = evaluated_on(exact, places), at_nodes = evaluated_on(exact, nodes_);
  LowestFailure point_failed(context_), node_failed(context_);
  Array<double> sums(context_, 3);
  sums.set_zero();
  for_slabs(box_.cells[2], context_.backend(), [&](std::int64_t first, std::int64_t end) {
    kernels_.errors(context_, box_, quadrature, at_points.function, shift, first, end, lowest(u), sums.data(), point_failed.data());
    check_points(point_failed.found(), points, places);
  });
  for_slabs(box_.cells[2] + 1, context_.backend(), [&](std::int64_t first, std::int64_t end) {
    kernels_.errors_at_nodes(context_, box_, at_nodes.function, shift, first, end, lowest(u), sums.data() + 2, node_failed.data());
  });
  if (std::int64_t const node = node_failed.found(); node >= 0) {
    std::int64_t const nx = box_.cells[0] + 1, ny = box_.cells[1] + 1;
    throw DataError(DataError::Quantity::exact, -1, {nodes_[0][node % nx], nodes_[1][node / nx % ny], nodes_[2][node / (nx * ny)]});
  }
  std::array<double, 3> found{};
  sums.download(found);
  return {found[0], found[1], found[2]};
}

BoxSolution::Mean BoxSolution::mean_of_exact(ExpressionCode const& exact, int points) const {
  BoxQuadrature const quadrature = quadrature_of(points);
  Places const places = points_of(quadrature);
  OnPlaces const at_points = evaluated_on(exact, places);
  LowestFailure failed(context_);
  Array<double> sum(context_, 1);
  sum.set_zero();
  for_slabs(box_.cells[2], context_.backend(), [&](std::int64_t first, std::int64_t end) {
    kernels_.integral_of_exact(context_, box_, quadrature, at_points.function, first, end, sum.data(), failed.data());
    check_points(failed.found(), points, places);
  });
  Mean result{0, volume_};
  sum.download(std::span<double>(&result.integral, 1));
  return result;
}

BoxSolution::OfSide BoxSolution::of_side(double const* u, int side, BoxProblem::Cells const& faces,
                                         BoxProblem::Cells const& nodes) const {
  auto const s = static_cast<std::size_t>(side), d = s / 2;
  bool const upper = s % 2 == 1;
  std::array<std::size_t, 3> const directions{d == 0 ? 1U : 0U, d == 2 ? 1U : 2U, d};
  std::array<std::int64_t, 3> const steps{1, box_.step_y(), box_.step_z()};
  BoxProblem::Face const& condition = faces_[s];
  BoxSide of;
  of.fixed = condition.type == BoxProblem::Face::Type::dirichlet || condition.type == BoxProblem::Face::Type::periodic;
  Places inside, on_faces;
  std::array<Array<double>, 2> edges;
  std::array<std::int64_t, 3> const label_steps{1, cells_of_box_[0], cells_of_box_[0] * cells_of_box_[1]};
  std::int64_t lowest = (upper ? cells_of_box_[d] : 0) * steps[d],
               lowest_label = (upper ? cells_of_box_[d] - 1 : 0) * label_steps[d];
  double area = 1;
  for (std::size_t e = 0; e < 2; ++e) {
    std::size_t const direction = directions[e];
    std::int64_t first = faces.first[direction], end = faces.end[direction];
    if (of.fixed) {
      first = std::min(first, nodes.first[direction] - 1);
      end = std::max(end, nodes.end[direction]);
    }
    of.cells[e] = end - first;
    of.faces.first[e] = faces.first[direction] - first;
    of.faces.end[e] = faces.end[direction] - first;
    of.nodes.first[e] = nodes.first[direction] - first;
    of.nodes.end[e] = nodes.end[direction] - first;
    of.steps[e] = steps[direction];
    lowest += first * steps[direction];
    of.label_steps[e] = label_steps[direction];
    lowest_label += first * label_steps[direction];
    std::span<double const> const here = std::span<double const>(edges_of_box_[direction])
                                             .subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(of.cells[e]));
    edges[e] = Array<double>(context_, here);
    of.edges[e] = edges[e].data();
    double length = 0;
    for (std::int64_t i = of.faces.first[e]; i < of.faces.end[e]; ++i)
      length += here[static_cast<std::size_t>(i)];
    area *= length;
    auto const begin = nodes_of_box_[direction].begin() + first;
    inside[e] = on_faces[e] = gauss_points_of(HostVector<double>(begin, begin + of.cells[e] + 1));
  }
  of.steps[2] = upper ? -steps[d] : steps[d];
  of.depth = upper ? edges_of_box_[d].back() : edges_of_box_[d].front();
  auto const layer = upper ? nodes_of_box_[d].end() - 2 : nodes_of_box_[d].begin();
  inside[2] = gauss_points_of(HostVector<double>(layer, layer + 2));
  if (upper)
    std::swap(inside[2][0], inside[2][1]);
  on_faces[2] = {upper ? layer[1] : layer[0]};
  std::vector<OnPlaces> functions;
  functions.reserve(4);
  auto const evaluated = [&](ExpressionCode const& code, Places const& places) {
    return functions.emplace_back(evaluated_on(in_order(code, directions), places)).function;
  };
  Array<double> table;
  if (of.fixed && !k_of_materials_.empty()) {
    HostVector<double> k;
    for (auto const& of_material : k_of_materials_)
      for (std::size_t const direction : directions)
        k.push_back(of_material[direction]);
    table = Array<double>(context_, std::span<double const>(k));
    of.table = table.data();
    of.labels = materials_.data() + lowest_label;
  } else if (of.fixed) {
    of.components = static_cast<std::int32_t>(coefficient_.size());
    for (std::size_t c = 0; c < coefficient_.size(); ++c)
      of.k[c] = evaluated(coefficient_[coefficient_.size() == 1 ? 0 : directions[c]], inside);
  }
  if (of.fixed) {
    of.f = evaluated(source_, inside);
  } else {
    of.value = evaluated(condition.value, on_faces);
    if (condition.type == BoxProblem::Face::Type::robin)
      of.alpha = evaluated(condition.alpha, on_faces);
  }
  return {area, kernels_.of_side(context_, of, u + lowest)};
}

void BoxSolution::copy_part(double const* u, std::array<std::int64_t, 3> const& first, std::array<std::int64_t, 3> const& count,
                            HostVector<double>& out) const {
  std::int64_t const of_plane = count[0] * count[1], step_y = box_.step_y(), step_z = box_.step_z();
  out.resize(static_cast<std::size_t>(of_plane * count[2]));
  if (out.empty())
    return;
  double const* const from = u + first[2] * step_z + first[1] * step_y + first[0];
  bool const whole_lines = count[0] == step_y || (count[1] == 1 && count[2] == 1);
  if (context_.backend() == Backend::cpu) {
    kernels_.pack(context_, count, step_y, step_z, from, out.data());
  } else if (whole_lines && (of_plane == step_z || count[2] == 1)) {  // the nodes follow each other
    context_.download(out.data(), from, 8 * of_plane * count[2]);
  } else {
    constexpr std::int64_t at_once = std::int64_t{1} << 21;
    std::int64_t const planes = std::clamp<std::int64_t>(at_once / of_plane, 1, count[2]);
    Array<double> packed(context_, planes * of_plane);
    for (std::int64_t z = 0; z < count[2]; z += planes) {
      std::int64_t const n = std::min(planes, count[2] - z);
      kernels_.pack(context_, {count[0], count[1], n}, step_y, step_z, from + z * step_z, packed.data());
      context_.download(out.data() + z * of_plane, packed.data(), 8 * n * of_plane);
    }
  }
}

}  // namespace poisson
