#include "gpu/elements/box_system.hpp"

#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/elements/box_operator.hpp"
#include "gpu/elements/box_points.hpp"
#include "gpu/elements/label_operator.hpp"
#include "gpu/formats/half_cds.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/box_element_rows.hpp"
#include "gpu/kernels/fields.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <iterator>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

namespace poisson {

namespace {

bool has_constant_coefficient(BoxProblem const& problem) {
  return !problem.coefficient_on_host && std::all_of(problem.coefficient.begin(), problem.coefficient.end(), is_constant);
}
/// Whether LabelOperator is its matrix without entries.
bool has_operator_of_materials(BoxProblem const& problem) {
  return has_constants_of_materials(problem) && problem.has_equal_cells() && problem.coefficient.size() < tensor_entries &&
         std::ranges::none_of(problem.faces, [](auto const& face) { return face.type == BoxProblem::Face::Type::robin; });
}
bool has_constant_source(BoxProblem const& problem) {
  return !problem.source_on_host && is_constant(problem.source);
}

int fields_of(BoxProblem const& problem) {
  int fields = has_constant_source(problem) ? 0 : problem.has_equal_cells() && !problem.cells_in_sums ? 1 : 2;
  for (ExpressionCode const& code : problem.coefficient)
    fields += problem.coefficient_on_host || !is_constant(code) ? 1 : 0;
  return fields;
}

/// The lattice has so many points at least, where its steps may be so small, and otherwise half as many as there are cells, but at
/// least the vertices.
constexpr std::int64_t least_lattice_points = 1 << 17;

int lattice_steps(std::array<std::int64_t, 3> const& cells) {
  std::int64_t const budget = std::max(least_lattice_points, cells[0] * cells[1] * cells[2] / 2);
  int steps = 8;
  while (steps > 1 && (steps * cells[0] + 1) * (steps * cells[1] + 1) * (steps * cells[2] + 1) > budget)
    steps /= 2;
  return steps;
}

std::int64_t lattice_points(std::array<std::int64_t, 3> const& cells, std::int64_t planes) {
  std::int64_t const steps = lattice_steps(cells);
  return (steps * cells[0] + 1) * (steps * cells[1] + 1) * (steps * std::min(planes, cells[2]) + 1);
}

}  // namespace

bool BoxSystem::fits(std::array<std::int64_t, 3> const& cells) {
  double nodes = 1;
  for (std::int64_t const n : cells) {
    if (n < 2)
      return false;
    nodes *= static_cast<double>(n) + 1;
  }
  return nodes < 0x1p31;
}

bool BoxSystem::can_assemble(BoxProblem const& problem, Format format) {
  bool const one_stencil =
      problem.has_equal_cells() && has_constant_coefficient(problem) && problem.coefficient.size() < tensor_entries;
  return fits(problem.cells) && (format == Format::half_cds || one_stencil || has_operator_of_materials(problem));
}

std::int64_t BoxSystem::peak_bytes(BoxProblem const& problem, Format format, Backend backend) {
  return peak_bytes(problem.cells, fields_of(problem), format, backend, !has_constant_coefficient(problem));
}

std::int64_t BoxSystem::peak_bytes(std::array<std::int64_t, 3> const& cells, int varying_fields, Format format, Backend backend,
                                   bool from_labels) {
  std::int64_t rows = 1, inner = 1;
  for (std::int64_t const n : cells) {
    rows *= n + 1;
    inner *= n - 1;
  }
  std::int64_t const matrix = format == Format::half_cds ? 14 * 8 * rows
                              : from_labels              ? cells[0] * cells[1] * cells[2]
                                                         : 27 * 8 * (rows - inner);
  std::int64_t const planes = planes_at_once(cells, backend);
  std::int64_t const lattice = varying_fields > 0 ? 8 * lattice_points(cells, planes) : 0;
  return matrix + 8 * rows + 64 * cells[0] * cells[1] * planes * varying_fields + lattice;
}

BoxSystem::BoxSystem(Context& context, BoxProblem const& problem, Format format, bool with_matrix)
    : BoxSystem(context, problem, format, with_matrix, true) {}

Array<double> BoxSystem::loads(Context& context, BoxProblem const& problem) {
  using Type = BoxProblem::Face::Type;
  BoxProblem natural = problem;
  for (BoxProblem::Face& face : natural.faces)
    if (face.type == Type::dirichlet || face.type == Type::periodic)
      face = {Type::neumann, 0, {Instruction(Op::constant, 0)}, {}};
  return std::move(BoxSystem(context, natural, Format::half_cds, false, false).rhs_);
}

BoxSystem::BoxSystem(Context& context, BoxProblem const& problem, Format format, bool with_matrix, bool shifts)
    : ElementSystem(context), kernels_(kernels_for<BoxElementKernels>(context)), failed_(context) {
  assert(can_assemble(problem, format));
  for (std::size_t d = 0; d < 3; ++d) {
    std::int64_t const n = problem.cells[d];
    box_.nodes[d] = n + 1;
    box_.cell[d] = problem.extent[d] / static_cast<double>(n);
    HostVector<double> const nodes = nodes_of(problem, d), edges = edges_of(problem, d);
    if (problem.cells_in_sums) {
      HostVector<double> weights;  // of equal cells the volume comes later
      for (std::int64_t i = 0; i < n; ++i) {
        bool const counts = problem.cells_in_sums->first[d] <= i && i < problem.cells_in_sums->end[d];
        double const of_point = problem.has_equal_cells() ? 1 : edges[i] / 2;
        weights.insert(weights.end(), 2, counts ? of_point : 0);
      }
      source_weights_[d] = Array<double>(context, std::span<double const>(weights));
    }
    if (!problem.has_equal_cells()) {
      HostVector<double> inverse_edges, weights;
      for (double const edge : edges) {
        inverse_edges.push_back(1 / edge);
        weights.insert(weights.end(), {edge / 2, edge / 2});
      }
      edges_[d] = Array<double>(context, std::span<double const>(edges));
      inverse_edges_[d] = Array<double>(context, std::span<double const>(inverse_edges));
      gauss_weights_[d] = Array<double>(context, std::span<double const>(weights));
      box_.cell[d] = 1;
      box_.edges[d] = edges_[d].data();
      box_.inverse_edges[d] = inverse_edges_[d].data();
    }
    node_coordinates_[d] = Array<double>(context, std::span<double const>(nodes));
    gauss_coordinates_[d] = Array<double>(context, std::span<double const>(gauss_points_of(nodes)));
  }
  if (!has_constant_source(problem) && !problem.source_on_host) {
    source_lattice_.steps = lattice_steps(problem.cells);
    for (std::size_t d = 0; d < 3; ++d) {
      HostVector<double> const nodes = nodes_of(problem, d);
      HostVector<double> places{nodes.front()};
      for (std::size_t cell = 0; cell + 1 < nodes.size(); ++cell)
        for (int step = 1; step <= source_lattice_.steps; ++step)
          places.push_back(nodes[cell] + (nodes[cell + 1] - nodes[cell]) * step / source_lattice_.steps);
      lattice_coordinates_[d] = Array<double>(context, std::span<double const>(places));
    }
  }
  double const one = 1;
  one_ = Array<double>(context, std::span<double const>(&one, 1));
  evaluate_faces(problem);
  pure_neumann_ = pure_neumann_ && shifts;
  for (std::size_t d = 0; d < 3; ++d) {
    HostVector<double> const edges = edges_of(problem, d);
    HostVector<double> weights(edges.size() + 1, 0.0);
    for (std::size_t i = 0; i < edges.size(); ++i) {
      weights[i] += edges[i] / 2;
      weights[i + 1] += edges[i] / 2;
    }
    node_weights_[d] = Array<double>(context, std::span<double const>(weights));
  }
  volume_ = problem.extent[0] * problem.extent[1] * problem.extent[2];
  for (std::size_t d = 0; d < 3; ++d)
    if (problem.is_periodic(d)) {
      block_rim::TiedBox& ties = ties_ ? *ties_ : ties_.emplace();
      ties.periodic[d] = true;
      ties.jump[d] = problem.faces[2 * d + 1].value.front().value;
    }
  bool jumps = false;
  if (ties_) {
    for (std::size_t d = 0; d < 3; ++d) {
      ties_->nodes[d] = box_.nodes[d];
      jumps = jumps || ties_->jump[d] != 0;
    }
    for (std::size_t face = 0; face < 6; ++face)
      ties_->dirichlet[face] = box_.faces[face].type == BoxFace::Type::dirichlet;
    ties_->holds_first = pure_neumann_;
    tie_values_of_faces();
  }
  assemble(problem, format, with_matrix || jumps);
}

void BoxSystem::set_tied(double* x) const {
  if (ties_)
    kernels_for<BlockRimKernels>(context_).set_tied(context_, *ties_, x);
}

void BoxSystem::restrict_to_free(double* r) const {
  if (ties_) {
    block_rim::TiedBox ties = *ties_;
    std::fill(std::begin(ties.jump), std::end(ties.jump), 0.0);
    kernels_for<BlockRimKernels>(context_).fold(context_, ties, nullptr, r);
  }
  BoxElements zero = box_;
  for (BoxFace& face : zero.faces)
    face.value = nullptr;
  kernels_.set_dirichlet(context_, zero, r);
}

void BoxSystem::extend_to_tied(double* d) const {
  if (!ties_)
    return;
  block_rim::TiedBox ties = *ties_;
  std::fill(std::begin(ties.jump), std::end(ties.jump), 0.0);
  kernels_for<BlockRimKernels>(context_).set_tied(context_, ties, d);
}

TensorGrid BoxSystem::integrals_of_nodes() const {
  return {box_.nodes, {node_weights_[0].data(), node_weights_[1].data(), node_weights_[2].data()}};
}

void BoxSystem::subtract_constant_source(double* r) const {
  kernels_.add_products(context_, integrals_of_nodes(), -kernels_.sums(context_, box_.n_rows(), r).sum / volume_, r);
}

void BoxSystem::subtract_mean(double* u) const {
  Array<double> weighted(context_, box_.n_rows());
  kernels_.weigh(context_, integrals_of_nodes(), u, weighted.data());
  DoubleDouble const mean = kernels_.sums(context_, box_.n_rows(), weighted.data()).sum / volume_;
  Array<DoubleDouble> const value(context_, std::span<DoubleDouble const>(&mean, 1));
  kernels_for<FieldKernels>(context_).subtract(context_, box_.n_rows(), value.data(), {u, nullptr});
}

Array<double> BoxSystem::coordinate(std::size_t direction, double origin) const {
  HostVector<double> numbers(static_cast<std::size_t>(box_.nodes[direction]));
  node_coordinates_[direction].download(std::span<double>(numbers));
  for (double& x : numbers)
    x -= origin;
  Array<double> const along(context_, std::span<double const>(numbers));
  TensorGrid grid{box_.nodes, {}};
  std::array<Array<double>, 3> ones;
  for (std::size_t d = 0; d < 3; ++d) {
    ones[d] = Array<double>(context_, std::span<double const>(HostVector<double>(static_cast<std::size_t>(box_.nodes[d]), 1.0)));
    grid.coordinates[d] = d == direction ? along.data() : ones[d].data();
  }
  Array<double> result(context_, box_.n_rows());
  result.set_zero();
  kernels_.add_products(context_, grid, 1, result.data());
  return result;
}

void BoxSystem::tie_values_of_faces() {
  for (std::size_t f = 0; f < 6; ++f) {
    if (!ties_->dirichlet[f])
      continue;
    std::size_t const normal = f / 2, first = normal == 0 ? 1 : 0, second = normal == 2 ? 1 : 2;
    double const jump_of_first = ties_->periodic[first] ? ties_->jump[first] : 0,
                 jump_of_second = ties_->periodic[second] ? ties_->jump[second] : 0;
    if ((!ties_->periodic[first] && !ties_->periodic[second]) ||
        (face_values_[f].size() == 0 && jump_of_first == 0 && jump_of_second == 0))
      continue;
    std::int64_t const n = box_.nodes[first], m = box_.nodes[second];
    HostVector<double> values(static_cast<std::size_t>(n * m), 0.0);
    if (face_values_[f].size() > 0)
      face_values_[f].download(std::span<double>(values));
    if (ties_->periodic[first])
      for (std::int64_t j = 0; j < m; ++j)
        values[static_cast<std::size_t>(j * n + n - 1)] = values[static_cast<std::size_t>(j * n)] + jump_of_first;
    if (ties_->periodic[second])
      for (std::int64_t i = 0; i < n; ++i)
        values[static_cast<std::size_t>((m - 1) * n + i)] = values[static_cast<std::size_t>(i)] + jump_of_second;
    face_values_[f] = Array<double>(context_, std::span<double const>(values));
    box_.faces[f].value = face_values_[f].data();
  }
}

void BoxSystem::fold(double* values) {
  auto const& kernels = kernels_for<BlockRimKernels>(context_);
  if (values != nullptr) {
    NodeBox const rows{{}, box_.nodes};
    NodeBox own = rows, around = rows;
    std::array<std::int64_t, 3> period{};
    box_rows::Node first{};
    for (std::size_t d = 0; d < 3; ++d)
      if (ties_->periodic[d]) {
        period[d] = box_.nodes[d] - 1;
        own.high[d] -= 1;
        around.low[d] -= 1;
        first.i[d] = 1;
      }
    BlockPlaces const places(around, own, images_around(own, around, period));
    std::array<bool, 6> dirichlet{};
    std::copy(std::begin(ties_->dirichlet), std::end(ties_->dirichlet), dirichlet.begin());
    rim_.formulas = BlockRim(places, dirichlet, rows);
    for (BlockPlaces::Ghosts const& ghosts : places.ghosts())
      ghosts.nodes.for_all([&](std::array<std::int64_t, 3> const& node) {
        box_rows::Node const root = ties_->root({{node[0], node[1], node[2]}});
        rim_.own_columns.push_back(static_cast<std::int32_t>(ties_->row(root)));
      });
    std::int64_t const n = rim_.formulas.size(), n_couplings = rim_.formulas.n_couplings();
    rim_.rows = Array<std::int32_t>(context_, n);
    Array<std::int64_t> row_ptr(context_, n + 1);
    Array<std::int32_t> columns(context_, n_couplings);
    Array<double> entries(context_, n_couplings);
    LowestFailure not_finite(context_);
    kernels.fill(context_, rim_.formulas, block_rim::FoldedRows(*ties_, values, first),
                 {rim_.rows.data(), row_ptr.data(), columns.data(), entries.data()}, not_finite.data());
    rim_.couplings =
        std::make_unique<Csr>(context_, std::ssize(rim_.own_columns), std::move(row_ptr), std::move(columns), std::move(entries));
    rim_.row_not_finite = not_finite.found();
  }
  kernels.fold(context_, *ties_, values, rhs_.data());
}

FieldSums BoxSystem::integrals(double const* values, std::array<Array<double>, 3> const& weights,
                               std::array<std::int64_t, 3> const& first, std::array<std::int64_t, 3> const& count,
                               double part_of_equal_cells, Array<double>& weighted) const {
  std::int64_t const size = count[0] * count[1] * count[2];
  FieldSums sums;
  if (weights[0].size() == 0) {
    sums = kernels_.sums(context_, size, values);
  } else {
    TensorGrid grid{count, {}};
    for (std::size_t d = 0; d < 3; ++d)
      grid.coordinates[d] = count[d] == 1 ? one_.data() : weights[d].data() + first[d];
    if (weighted.size() < size)
      weighted = Array<double>(context_, size);
    kernels_.weigh(context_, grid, values, weighted.data());
    sums = kernels_.sums(context_, size, weighted.data());
  }
  double const part = box_.is_graded() ? 1 : part_of_equal_cells;
  return {part * sums.sum, part * sums.absolute};
}

/// `values` = code at the tensor product of parts of three coordinate arrays.
void BoxSystem::evaluate(ExpressionCode const& code, std::array<Array<double> const*, 3> const& coordinates,
                         std::array<std::int64_t, 3> const& first, std::array<std::int64_t, 3> const& count, ValueCheck check,
                         double* values, DataError::Quantity quantity, int face) {
  Array<Instruction> const instructions(context_, std::span<Instruction const>(code));
  TensorGrid grid{count, {}};
  for (std::size_t d = 0; d < 3; ++d)
    grid.coordinates[d] = coordinates[d]->data() + first[d];
  kernels_.evaluate(context_, {instructions.data(), static_cast<std::int32_t>(code.size())}, stack_depth(code), grid, check, values,
                    failed_.data());
  throw_if_failed(coordinates, first, count, quantity, face);
}

void BoxSystem::throw_if_failed(std::array<Array<double> const*, 3> const& coordinates, std::array<std::int64_t, 3> const& first,
                                std::array<std::int64_t, 3> const& count, DataError::Quantity quantity, int face) const {
  std::int64_t const failed = failed_.found();
  if (failed < 0)
    return;
  std::array<double, 3> at{};
  std::array<std::int64_t, 3> const index{failed % count[0], failed / count[0] % count[1], failed / (count[0] * count[1])};
  for (std::size_t d = 0; d < 3; ++d) {
    HostVector<double> all(static_cast<std::size_t>(coordinates[d]->size()));
    coordinates[d]->download(std::span<double>(all));
    at[d] = all[static_cast<std::size_t>(first[d] + index[d])];
  }
  throw DataError(quantity, face, at);
}

void BoxSystem::evaluate_faces(BoxProblem const& problem) {
  using Type = BoxProblem::Face::Type;
  bool is_cut = false;
  for (int face = 0; face < 6; ++face) {
    if (problem.faces[static_cast<std::size_t>(face)].type == Type::periodic) {
      box_.faces[static_cast<std::size_t>(face)].type = BoxFace::Type::neumann;  // as long as it is not joined to the other side
      continue;
    }
    auto const f = static_cast<std::size_t>(face);
    BoxProblem::Face const& condition = problem.faces[f];
    auto const d = static_cast<std::size_t>(face / 2);
    bool const dirichlet = condition.type == Type::dirichlet;
    std::array<Array<double> const*, 3> coordinates{};
    std::array<std::int64_t, 3> first{}, count{};
    std::int64_t size = 1;
    double area = 1;  // that a Gauss point stands for
    for (std::size_t e = 0; e < 3; ++e) {
      coordinates[e] = dirichlet || e == d ? &node_coordinates_[e] : &gauss_coordinates_[e];
      count[e] = e == d ? 1 : coordinates[e]->size();
      size *= count[e];
      if (e != d)
        area *= box_.cell[e] / 2;
    }
    first[d] = face % 2 == 0 ? 0 : box_.nodes[d] - 1;
    BoxFace& view = box_.faces[f];
    view.rank = condition.rank;
    view.type = dirichlet                       ? BoxFace::Type::dirichlet
                : condition.type == Type::robin ? BoxFace::Type::robin
                                                : BoxFace::Type::neumann;
    bool const is_zero = is_constant(condition.value) && condition.value.front().value == 0;  // then null tells it
    if (!is_zero) {
      face_values_[f] = Array<double>(context_, size);
      evaluate(condition.value, coordinates, first, count, ValueCheck::finite, face_values_[f].data(), DataError::Quantity::value,
               face);
      view.value = face_values_[f].data();
    }
    if (dirichlet) {
      anchored_ = true;
      continue;
    }
    if (!is_zero) {
      Array<double> weighted(context_, 0);
      FieldSums const sums = integrals(view.value, gauss_weights_, first, count, area, weighted);
      boundary_.sum += sums.sum;
      boundary_.absolute += sums.absolute;
    }
    is_cut = is_cut || condition.type == Type::cut;
    if (condition.type == Type::robin) {
      face_alphas_[f] = Array<double>(context_, size);
      evaluate(condition.alpha, coordinates, first, count, ValueCheck::not_negative, face_alphas_[f].data(),
               DataError::Quantity::alpha, face);
      view.alpha = face_alphas_[f].data();
      anchored_ = anchored_ || kernels_.sums(context_, size, view.alpha).sum > 0;
    }
  }
  pure_neumann_ = !anchored_ && !is_cut;  // else the larger box tells
}

void BoxSystem::assemble(BoxProblem const& problem, Format format, bool with_matrix) {
  std::int64_t const n = box_.n_rows(), nz = box_.nodes[2], nx = 2 * problem.cells[0], ny = 2 * problem.cells[1];
  auto components = static_cast<int>(problem.coefficient.size());
  std::int64_t const planes = planes_at_once(problem.cells, context_.backend());
  double const volume = box_.cell[0] * box_.cell[1] * box_.cell[2];
  rhs_ = Array<double>(context_, n);
  Array<double> values(context_, with_matrix && format == Format::half_cds ? 14 * n : 0);

  auto const field_of = [&](std::vector<ExpressionCode const*> const& codes, BoxProblem::PlaneValues const& on_host,
                            std::array<Array<double>, tensor_entries>& points) {
    BoxField field;
    for (std::size_t c = 0; c < codes.size(); ++c)
      if (!on_host && is_constant(*codes[c]))
        field.constant[c] = codes[c]->front().value;
      else
        points[c] = Array<double>(context_, 2 * planes * nx * ny);
    return field;
  };
  // Of constants by material the labels of cells travel, and a table for each component.
  bool const has_labels = problem.coefficient_on_host && has_constants_of_materials(problem),
             f_has_labels = problem.source_on_host && problem.materials && !problem.materials->sources.empty();
  std::int64_t const of_plane = problem.cells[0] * problem.cells[1];
  Array<std::uint8_t> labels(context_, has_labels || f_has_labels ? planes * of_plane : 0);
  std::array<std::int64_t, 2> labelled{};  // the planes that `labels` are of: the first, and how many
  using Tables = std::vector<Array<double>>;
  Tables k_tables, f_tables;
  for (std::size_t c = 0; has_labels && c < problem.coefficient.size(); ++c) {
    HostVector<double> table;
    for (std::size_t id = 0; id < problem.materials->coefficients.size(); ++id) {
      table.push_back(constant_of(problem, id, c));
      bool const is_void = problem.materials->has_void && id == 0;
      if (!passes(c >= 3 ? ValueCheck::finite : is_void ? ValueCheck::not_negative : ValueCheck::positive, table.back()))
        throw DataError(DataError::Quantity::coefficient, -1, problem.origin);
    }
    k_tables.emplace_back(context_, std::span<double const>(table));
  }
  if (f_has_labels)
    f_tables.emplace_back(context_, std::span<double const>(problem.materials->sources));
  auto const fill_from_labels = [&](BoxField& field, Tables const& tables, std::array<Array<double>, tensor_entries>& points,
                                    std::int64_t first, std::int64_t count) {
    if (std::array<std::int64_t, 2> const asked{first, count}; labelled != asked) {
      take_labels(context_, *problem.materials, first, count, of_plane, labels.data());
      labelled = asked;
    }
    for (std::size_t c = 0; c < tables.size(); ++c) {
      kernels_.spread(context_, {problem.cells[0], problem.cells[1], count}, labels.data(), tables[c].data(), points[c].data());
      field.points[c] = points[c].data();
    }
  };
  // A full tensor is positive definite, whatever its entries are.
  bool const is_full = components == tensor_entries;
  ValueCheck const k_check = is_full ? ValueCheck::finite : ValueCheck::positive;
  auto const gauss_grid = [&] {
    return std::array<Array<double> const*, 3>{&gauss_coordinates_[0], &gauss_coordinates_[1], &gauss_coordinates_[2]};
  };
  // The values in `count` planes of cells from `first` on.
  auto const fill = [&](BoxField& field, Tables const& tables, std::vector<ExpressionCode const*> const& codes,
                        BoxProblem::PlaneValues const& on_host, std::array<Array<double>, tensor_entries>& points,
                        std::int64_t first, std::int64_t count, ValueCheck check, DataError::Quantity quantity) {
    field.first_plane = first;
    if (!tables.empty())
      return fill_from_labels(field, tables, points, first, count);
    for (std::size_t c = 0; c < codes.size(); ++c) {
      if (points[c].size() == 0)
        continue;
      if (on_host)
        take_from_host(context_, on_host, static_cast<int>(c), first, count, 4 * problem.cells[0] * problem.cells[1],
                       points[c].data());
      else
        evaluate(*codes[c], gauss_grid(), {0, 0, 2 * first}, {nx, ny, 2 * count}, check, points[c].data(), quantity, -1);
      field.points[c] = points[c].data();
    }
  };
  std::array<Array<double>, tensor_entries> k_points, f_points;
  std::vector<ExpressionCode const*> k_codes, f_codes{&problem.source};
  for (ExpressionCode const& code : problem.coefficient)
    k_codes.push_back(&code);
  BoxProblem::PlaneValues const &k_on_host = problem.coefficient_on_host, &f_on_host = problem.source_on_host;
  BoxField k = field_of(k_codes, k_on_host, k_points), f = field_of(f_codes, f_on_host, f_points);
  // Constants are checked as well, at a point of the box.
  for (ExpressionCode const* const code : k_codes)
    if (!k_on_host && is_constant(*code) && !passes(k_check, code->front().value))
      throw DataError(DataError::Quantity::coefficient, -1, problem.origin);
  if (has_constant_source(problem) && !passes(ValueCheck::finite, problem.source.front().value))
    throw DataError(DataError::Quantity::source, -1, problem.origin);

  bool const source_varies = !has_constant_source(problem);
  Array<double> weighted(context_, 0);
  auto const add_source = [&](std::int64_t first, std::int64_t count) {
    double const* const of_source = f.points[0] + 2 * (first - f.first_plane) * nx * ny;
    FieldSums const sums = integrals(of_source, problem.cells_in_sums ? source_weights_ : gauss_weights_, {0, 0, 2 * first},
                                     {nx, ny, 2 * count}, volume / 8, weighted);
    source_.sum += sums.sum;
    source_.absolute += sums.absolute;
    std::int64_t const lines = problem.cells[1] * count;
    Array<double> largest(context_, lines);
    kernels_.largest_of_lines(context_, {problem.cells[0], problem.cells[1], count}, box_.is_graded() ? weighted.data() : of_source,
                              largest.data());
    std::size_t const known = largest_of_lines_.size();
    largest_of_lines_.resize(known + static_cast<std::size_t>(lines));
    largest.download(std::span<double>(largest_of_lines_).subspan(known));
    for (std::size_t i = known; i < largest_of_lines_.size(); ++i)
      largest_of_lines_[i] *= box_.is_graded() ? 1 : volume / 8;
    if (!f_on_host)
      add_lattice(problem, first, count);
  };
  if (!source_varies) {
    double const of_cells = volume_in_sums(problem);
    source_ = {f.constant[0] * of_cells, std::abs(f.constant[0]) * of_cells};
  } else if (pure_neumann_) {
    for (std::int64_t first = 0; first < problem.cells[2]; first += planes) {
      std::int64_t const count = std::min(planes, problem.cells[2] - first);
      fill(f, f_tables, f_codes, f_on_host, f_points, first, count, ValueCheck::finite, DataError::Quantity::source);
      add_source(first, count);
    }
  }
  if (pure_neumann_)
    f.shift = (source_.sum + boundary_.sum) / volume_;

  // Rows of the nodes of a slab need one more plane of cells on its lower side.
  std::int64_t summed = 0;  // planes of cells whose source is in the sums
  for (std::int64_t first = 0; first < nz;) {
    if (interrupt_requested())
      throw Interrupted();
    std::int64_t const first_cells = std::max<std::int64_t>(0, first - 1);
    std::int64_t const end_cells = std::min(problem.cells[2], first_cells + planes);
    std::int64_t const end = end_cells == problem.cells[2] ? nz : end_cells;
    std::int64_t const count = end_cells - first_cells;
    fill(k, k_tables, k_codes, k_on_host, k_points, first_cells, count, k_check, DataError::Quantity::coefficient);
    if (is_full && !k_on_host) {
      std::int64_t const points = has_constant_coefficient(problem) ? 1 : 2 * nx * ny * count;
      kernels_.check_definite(context_, points, k, failed_.data());
      throw_if_failed(gauss_grid(), {0, 0, 2 * first_cells}, {nx, ny, 2 * count}, DataError::Quantity::coefficient, -1);
    }
    if (box_.is_graded() && k_codes.size() == 1) {  // whose scale differs by direction
      components = 3;
      k.points.fill(k.points[0]);
      k.constant.fill(k.constant[0]);
    }
    fill(f, f_tables, f_codes, f_on_host, f_points, first_cells, count, ValueCheck::finite, DataError::Quantity::source);
    if (source_varies && !pure_neumann_ && summed < end_cells) {
      add_source(summed, end_cells - summed);
      summed = end_cells;
    }
    kernels_.rows(context_, box_, first, end, components, k, f, values.size() > 0 ? values.data() : nullptr, rhs_.data());
    first = end;
  }

  // Nodes without a Dirichlet value are a box, too.
  std::array<std::int64_t, 3> free = box_.nodes;
  for (std::size_t face = 0; face < 6; ++face)
    free[face / 2] -= box_.faces[face].type == BoxFace::Type::dirichlet ? 1 : 0;
  std::int64_t const free_nodes = free[0] * free[1] * free[2];
  nnz_ = (3 * free[0] - 2) * (3 * free[1] - 2) * (3 * free[2] - 2) + n - free_nodes;
  if (ties_) {
    fold(values.size() > 0 ? values.data() : nullptr);
    std::int64_t entries = 1, untied = 1;  // of free nodes that are not tied
    for (std::size_t d = 0; d < 3; ++d) {
      std::int64_t const m = free[d] - (ties_->periodic[d] ? 1 : 0);
      entries *= ties_->periodic[d] ? 3 * m : 3 * m - 2;
      untied *= m;
    }
    nnz_ = entries + n - untied;
  }
  if (!with_matrix)
    return;
  if (format == Format::half_cds)
    make_half_cds(std::move(values));
  else if (has_constant_coefficient(problem))
    matrix_ = std::make_unique<BoxOperator>(context_, box_, components, k);
  else
    matrix_ = operator_of_materials(problem);
}

std::unique_ptr<Matrix> BoxSystem::operator_of_materials(BoxProblem const& problem) const {
  std::int64_t const of_plane = problem.cells[0] * problem.cells[1];
  Array<std::uint8_t> labels(context_, of_plane * problem.cells[2]);
  take_labels(context_, *problem.materials, 0, problem.cells[2], of_plane, labels.data());
  std::vector<std::array<double, 3>> k;
  for (std::size_t id = 0; id < problem.materials->coefficients.size(); ++id)
    k.push_back({constant_of(problem, id, 0), constant_of(problem, id, 1), constant_of(problem, id, 2)});
  return std::make_unique<LabelOperator>(context_, box_, std::move(labels), k);
}

void BoxSystem::add_lattice(BoxProblem const& problem, std::int64_t first_plane, std::int64_t count) {
  std::int64_t const steps = source_lattice_.steps, lines = problem.cells[1] * count;
  TensorGrid const grid{
      {lattice_coordinates_[0].size(), lattice_coordinates_[1].size(), steps * count + 1},
      {lattice_coordinates_[0].data(), lattice_coordinates_[1].data(), lattice_coordinates_[2].data() + steps * first_plane}};
  Array<Instruction> const code(context_, std::span<Instruction const>(problem.source));
  Array<double> values(context_, grid.size()), largest(context_, lines);
  LowestFailure ignored(context_);  // the assembly does not take f there
  kernels_.evaluate(context_, {code.data(), static_cast<std::int32_t>(code.size())}, stack_depth(problem.source), grid,
                    ValueCheck::finite, values.data(), ignored.data());
  kernels_.largest_of_lattice(context_, {problem.cells[0], problem.cells[1], count}, source_lattice_.steps, values.data(),
                              largest.data());
  std::size_t const known = source_lattice_.largest.size();
  source_lattice_.largest.resize(known + static_cast<std::size_t>(lines));
  largest.download(std::span<double>(source_lattice_.largest).subspan(known));
}

void BoxSystem::make_half_cds(Array<double> values) {
  std::int64_t const n = box_.n_rows();
  std::vector<std::int32_t> offsets;
  for (int dz = 0; dz <= 1; ++dz)
    for (int dy = -1; dy <= 1; ++dy)
      for (int dx = -1; dx <= 1; ++dx)
        if (std::int64_t const offset = (dz * box_.nodes[1] + dy) * box_.nodes[0] + dx; offset >= 0)
          offsets.push_back(static_cast<std::int32_t>(offset));
  // |a_ij| <= sqrt(a_ii a_jj): the diagonal tells whether an entry has overflowed.
  std::int64_t row_not_finite = -1;
  if (!std::isfinite(kernels_.sums(context_, n, values.data()).absolute)) {
    HostVector<double> diagonal(static_cast<std::size_t>(n));
    context_.download(diagonal.data(), values.data(), 8 * n);
    auto const found = std::find_if(diagonal.begin(), diagonal.end(), [](double v) { return !std::isfinite(v); });
    row_not_finite = found == diagonal.end() ? -1 : found - diagonal.begin();
  }
  matrix_ = HalfCds::from_diagonals(context_, n, std::move(offsets), std::move(values),
                                    static_cast<double>(14 * n) / (0.5 * static_cast<double>(nnz_ + n)));
  matrix_->row_not_finite = row_not_finite;
}

}  // namespace poisson
