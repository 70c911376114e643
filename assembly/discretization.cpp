#include "assembly/discretization.hpp"

#include "assembly/mesh/coarse_mesh.hpp"
#include "assembly/parallel.hpp"
#include "assembly/space/space.hpp"
#include "assembly/system/evaluation.hpp"
#include "assembly/system/integrals.hpp"
#include "assembly/system/lattice_problem.hpp"
#include "assembly/system/problem_data.hpp"
#include "assembly/system/sampling.hpp"
#include "assembly/system/source_check.hpp"
#include "assembly/system/system.hpp"
#include "gpu/core/context.hpp"

#include <algorithm>
#include <cassert>

namespace poisson::assembly {

namespace {

/// Pairs of unknowns that share a cell. A pair belongs to the smallest edge, face or cell that holds both: per direction
/// (p + 1)^2 pairs less the two that stay at an end.
std::int64_t count_couplings(MeshCounts const& counts, int order) {
  std::int64_t const pairs = static_cast<std::int64_t>(order + 1) * (order + 1) - 2;
  return counts.vertices + pairs * (counts.edges + pairs * (counts.faces + pairs * counts.cells));
}

std::int64_t count_box_diagonals(BoxGrid const& box, int order) {
  // On a box only one or two cells wide in some direction different shifts can be the same column - row.
  std::int64_t const nx = box.cells[0] * order + 1, ny = box.cells[1] * order + 1;
  std::set<std::int64_t> shifts;
  for (int z = -order; z <= order; ++z)
    for (int y = -order; y <= order; ++y)
      for (int x = -order; x <= order; ++x)
        shifts.insert((z * ny + y) * nx + x);
  return static_cast<std::int64_t>(shifts.size());
}

Estimate make_estimate(ProblemSpec const& spec, MeshCounts const& counts, int coefficient_components, AssembledInto into) {
  Estimate estimate;
  auto& mesh = estimate.mesh;
  mesh.cells = counts.cells;
  mesh.vertices = counts.vertices;
  mesh.dofs = counts.unknowns(spec.order);
  mesh.nnz = count_couplings(counts, spec.order);
  mesh.lexicographic = counts.box.has_value();
  mesh.n_diagonals = counts.box ? count_box_diagonals(*counts.box, spec.order) : 0;
  mesh.boundary_ids = counts.boundary_ids;
  mesh.material_ids = counts.material_ids;
  mesh.boundary_names = counts.boundary_names;
  mesh.material_names = counts.material_names;

  std::int64_t const local = static_cast<std::int64_t>(spec.order + 1) * (spec.order + 1) * (spec.order + 1);
  std::int64_t const n = mesh.dofs;
  std::int64_t const space = mesh.lexicographic ? 0 : mesh.cells * (4 * local + 4) + 24 * n;
  bool const csr = into == AssembledInto::csr,
             on_device = into == AssembledInto::half_cds_on_device || into == AssembledInto::matrix_free_on_device,
             stored = csr || into == AssembledInto::half_cds_on_host;
  std::int64_t const matrix = csr ? CsrMatrix::csr_bytes(n, mesh.nnz) : 0;
  // The solver's format: diagonals on boxes; elsewhere CSR, whose arrays are shared.
  std::int64_t const converted = mesh.lexicographic && stored ? (mesh.n_diagonals + 1) / 2 * 8 * n : 0;
  // With the matrix on a device the host has the right-hand side, its scaled copy, the solution and a residual.
  std::int64_t const vectors = (on_device ? 4 : 10) * 8 * n;
  std::int64_t const fields = n * 8 * (spec.exact ? 6 : 4) + mesh.cells * (8 * local + 4 + 24 + 8 * coefficient_components);
  // Numbering and pattern need lists of the cells around unknowns and copies of the space; the writer copies the fields once.
  std::int64_t const numbering = mesh.lexicographic ? 0 : 2 * space + 4 * mesh.cells * local + 24 * n;
  estimate.host_bytes = std::max(counts.triangulation_bytes * (mesh.lexicographic ? 0 : 1) + numbering,
                                 space + matrix + converted + vectors + 2 * fields);
  return estimate;
}

int coefficient_components(ProblemSpec const& spec) {
  auto const tensor = [](auto const& entry) { return entry.second.size() == 3; };
  return std::any_of(spec.coefficient.begin(), spec.coefficient.end(), tensor) ||
                 std::any_of(spec.coefficient_of_name.begin(), spec.coefficient_of_name.end(), tensor)
             ? 3
             : 1;
}

}  // namespace

struct CheckedProblem::Impl {
  explicit Impl(ProblemSpec of) : spec(std::move(of)), counts(make_counts()), names(counts, spec.mesh) {
    static_cast<void>(ProblemData(spec, names, !spec.mesh.has_places()));
    check_index_range(spec.mesh, counts, spec.order);
    summary = make_estimate(AssembledInto::csr).mesh;
  }

  MeshCounts make_counts() {
    if (is_box(spec.mesh))
      return predict_counts(spec.mesh);
    coarse = open_coarse_mesh(spec.mesh);
    // Smaller lattices do not number the unknowns.
    if (spec.mesh.refinements >= Space::fewest_refinements_of_lattices && coarse->has_lattices())
      lattices = coarse->counts().cells;
    return coarse->counts().refined(spec.mesh.refinements);
  }
  [[nodiscard]] Estimate make_estimate(AssembledInto into) const;

  ProblemSpec spec;
  std::unique_ptr<CoarseMesh> coarse;  ///< of all meshes but boxes
  std::int64_t lattices = 0;
  MeshCounts counts;
  PlaceNames names;
  MeshSummary summary;
};

Estimate CheckedProblem::Impl::make_estimate(AssembledInto into) const {
  MeshCounts of_places = counts;
  of_places.boundary_ids = names.boundary_ids;
  of_places.material_ids = names.material_ids;
  of_places.boundary_names = names.boundary_names;
  of_places.material_names = names.material_names;
  Estimate estimate = poisson::assembly::make_estimate(spec, of_places, coefficient_components(spec), into);
  estimate.mesh.lattices = lattices;
  estimate.mesh.lattice_nodes = lattices > 0 ? (std::int64_t{spec.order} << spec.mesh.refinements) + 1 : 0;
  return estimate;
}

CheckedProblem::CheckedProblem(ProblemSpec spec) : impl_(std::make_unique<Impl>(std::move(spec))) {}
CheckedProblem::~CheckedProblem() = default;
CheckedProblem::CheckedProblem(CheckedProblem&&) noexcept = default;

MeshSummary const& CheckedProblem::mesh() const {
  return impl_->summary;
}

Estimate CheckedProblem::estimate(AssembledInto into) const {
  return impl_->make_estimate(into);
}

Estimate estimate(ProblemSpec const& spec, AssembledInto into) {
  return CheckedProblem(spec).estimate(into);
}

struct Discretization::Impl {
  explicit Impl(CheckedProblem::Impl checked)
      : element(checked.spec.order),
        space(checked.counts.box ? Space(*checked.counts.box, element) : checked.coarse->space(element)),
        notes(name_places(space, element, checked.spec, checked.names)),
        data(checked.spec, names_in(space, checked.names)),
        has_places(checked.spec.mesh.has_places()),
        summary(std::move(checked.summary)),
        couplings(summary.nnz) {
    summary.boundary_ids = space.boundary_ids;
    summary.material_ids = space.material_ids;
    auto const keep = [](IdNames& names, std::set<unsigned> const& ids) {
      std::erase_if(names, [&](auto const& name) { return !ids.contains(name.first); });
    };
    keep(summary.boundary_names, space.boundary_ids);
    keep(summary.material_names, space.material_ids);
    if (!space.lattices)
      summary.lattices = summary.lattice_nodes = 0;
  }

  [[nodiscard]] bool is_pure_neumann() const {
    if (!pure_neumann && space.box)  // has one part, and a Dirichlet face fixes it
      for (auto const& [id, index] : data.boundary_of)
        if (data.boundary[index].type == BoundaryType::dirichlet)
          pure_neumann = false;
    if (!pure_neumann)
      pure_neumann = assembly::is_pure_neumann(space, element, data);
    return *pure_neumann;
  }
  [[nodiscard]] double shift_of_exact() const { return is_pure_neumann() ? mean_of_exact(space, element, data) : 0; }

  /// Those names whose ids the space has.
  static PlaceNames names_in(Space const& space, PlaceNames names) {
    names.boundary_ids = space.boundary_ids;
    names.material_ids = space.material_ids;
    return names;
  }

  ReferenceElement element;
  Space space;
  std::vector<std::string> notes;  ///< on places that cut faces or cells
  ProblemData data;
  bool has_places;
  MeshSummary summary;
  std::int64_t couplings;                    ///< pairs of unknowns that share a cell
  mutable std::optional<bool> pure_neumann;  ///< known once it was asked for
};

Discretization::Discretization(CheckedProblem problem, AssembledInto into) {
  check_memory(problem.estimate(into).host_bytes, "this problem (mesh, matrix, solution and output together)");
  impl_ = std::make_unique<Impl>(std::move(*problem.impl_));  // which is gone, with its triangulation, when this is done
}

Discretization::Discretization(ProblemSpec spec, AssembledInto into) : Discretization(CheckedProblem(std::move(spec)), into) {}

Discretization::~Discretization() = default;
Discretization::Discretization(Discretization&&) noexcept = default;

MeshSummary const& Discretization::summary() const {
  return impl_->summary;
}

std::vector<std::string> const& Discretization::notes() const {
  return impl_->notes;
}

LinearSystem Discretization::assemble() {
  auto system = assemble_system(impl_->space, impl_->element, impl_->data);
  impl_->summary.nnz = system.matrix.nnz();
  impl_->summary.exact_counts = true;
  impl_->pure_neumann = system.pure_neumann;
  return system;
}

std::optional<BoxProblem> Discretization::box_problem() const {
  Space const& space = impl_->space;
  if (!space.box || space.order != 1 || impl_->has_places)
    return std::nullopt;
  BoxProblem problem{space.box->cells, space.box->origin, space.box->extent, {}, impl_->data.source.code(), {}};
  for (Function const& component : impl_->data.coefficient(0).components)
    problem.coefficient.push_back(component.code());
  for (unsigned face = 0; face < 6; ++face) {
    std::size_t const index = impl_->data.boundary_of.at(face);
    BoundaryData const& condition = impl_->data.boundary[index];
    using Type = BoxProblem::Face::Type;
    problem.faces[face] = {condition.type == BoundaryType::dirichlet ? Type::dirichlet
                           : condition.type == BoundaryType::neumann ? Type::neumann
                                                                     : Type::robin,
                           static_cast<int>(index), condition.value.code(), condition.alpha.code()};
  }
  return problem;
}

LatticeProblem Discretization::lattice_problem() const {
  auto problem = assembly::lattice_problem(impl_->space, impl_->element, impl_->data);
  problem.couplings = impl_->couplings;
  impl_->pure_neumann = problem.pure_neumann;
  return problem;
}

void Discretization::refuse(DataError const& error) const {
  using Quantity = DataError::Quantity;
  ProblemData const& data = impl_->data;
  auto const condition = [&]() -> BoundaryData const& { return data.boundary_at(static_cast<unsigned>(error.part)); };
  switch (error.quantity) {
  case Quantity::coefficient: {
    Space const& space = impl_->space;
    unsigned const material = space.material(error.part * (space.lattices ? space.lattices->cells_of_lattice() : 1));
    static_cast<void>(data.coefficient(material)(error.at, material));
    throw InputError("problem.coefficient", "the coefficient is not positive and finite at (x, y, z) = " + to_text(error.at));
  }
  case Quantity::determinant:
    throw_inverted_cell(error.at, error.value);
  case Quantity::source:
    static_cast<void>(data.source.finite(error.at, "the source"));
    throw InputError(data.source.key(), "the source is not finite at (x, y, z) = " + to_text(error.at));
  case Quantity::value:
    static_cast<void>(condition().value.finite(error.at, condition().type == BoundaryType::dirichlet ? "the Dirichlet value"
                                                                                                     : "the boundary value"));
    throw InputError(condition().value.key(), "the value is not finite at (x, y, z) = " + to_text(error.at));
  case Quantity::alpha:
    break;
  }
  refuse_alpha(condition().alpha, error.at);
}

HostVector<double> Discretization::reconstruct(LinearSystem const& system, HostVector<double> x) const {
  assert(static_cast<std::int64_t>(x.size()) == impl_->space.n_dofs);
  system.constraints.expand(x);
  if (system.pure_neumann)
    subtract_mean(x);
  return x;
}

void Discretization::subtract_mean(HostVector<double>& u) const {
  auto const integrals = basis_integrals(impl_->space, impl_->element);
  double const mean = ordered_dot(integrals, u) / ordered_sum(integrals);
  for (double& value : u)
    value -= mean;
}

double Discretization::compatibility_defect(double total, double absolute) {
  return assembly::compatibility_defect(total, absolute);
}

std::string Discretization::source_warning(double integral, double absolute, std::span<double const> largest_of_lines) const {
  Space const& space = impl_->space;
  Function const& source = impl_->data.source;
  return check_source(space, impl_->element, source, {integral, absolute},
                      largest_cells(space, impl_->element, source, largest_of_lines));
}

ErrorNorms Discretization::errors(std::span<double const> u) const {
  assert(impl_->data.exact && static_cast<std::int64_t>(u.size()) == impl_->space.n_dofs);
  return error_norms(impl_->space, impl_->element, impl_->data, u, impl_->shift_of_exact());
}

OutputMesh Discretization::output_mesh(OutputNodes nodes) const {
  return assembly::output_mesh(impl_->space, impl_->element, nodes);
}

Quantities Discretization::quantities(std::span<double const> u) const {
  assert(static_cast<std::int64_t>(u.size()) == impl_->space.n_dofs);
  return solution_quantities(impl_->space, impl_->element, impl_->data, u);
}

SolutionFields Discretization::fields(std::span<double const> u, OutputNodes nodes) const {
  assert(static_cast<std::int64_t>(u.size()) == impl_->space.n_dofs);
  return solution_fields(impl_->space, impl_->element, impl_->data, u, impl_->data.exact ? impl_->shift_of_exact() : 0, nodes);
}

Extent Discretization::extent() const {
  return extent_of(impl_->space);
}

HostVector<double> Discretization::sample(std::span<double const> u, Lattice const& lattice) const {
  assert(static_cast<std::int64_t>(u.size()) == impl_->space.n_dofs);
  return assembly::sample(impl_->space, impl_->element, u, lattice);
}

std::vector<LocatedPoint> Discretization::locate(std::span<std::array<double, 3> const> points) const {
  return assembly::locate(impl_->space, impl_->element, points);
}

std::array<double, 3> Discretization::nearest_node(std::array<double, 3> const& x) const {
  return assembly::nearest_node(impl_->space, x);
}

std::vector<PointValues> Discretization::values_at(std::span<double const> u, std::span<LocatedPoint const> points) const {
  assert(static_cast<std::int64_t>(u.size()) == impl_->space.n_dofs);
  return assembly::values_at(impl_->space, impl_->element, impl_->data, u, impl_->data.exact ? impl_->shift_of_exact() : 0, points);
}

HostVector<double> Discretization::integration_weights() const {
  return assembly::basis_integrals(impl_->space, impl_->element);
}

}  // namespace poisson::assembly
