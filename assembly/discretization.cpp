#include "assembly/discretization.hpp"

#include "assembly/mesh/coarse_mesh.hpp"
#include "assembly/parallel.hpp"
#include "assembly/space/box_cells.hpp"
#include "assembly/space/edge_nodes.hpp"
#include "assembly/space/lattice_pieces.hpp"
#include "assembly/space/prolongation.hpp"
#include "assembly/space/space.hpp"
#include "assembly/system/boundary_flux.hpp"
#include "assembly/system/box_boundary.hpp"
#include "assembly/system/data_check.hpp"
#include "assembly/system/error_estimate.hpp"
#include "assembly/system/evaluation.hpp"
#include "assembly/system/integrals.hpp"
#include "assembly/system/lattice_problem.hpp"
#include "assembly/system/near_boundary.hpp"
#include "assembly/system/parts.hpp"
#include "assembly/system/periodic.hpp"
#include "assembly/system/point_loads.hpp"
#include "assembly/system/problem_data.hpp"
#include "assembly/system/sampling.hpp"
#include "assembly/system/source_check.hpp"
#include "assembly/system/system.hpp"
#include "assembly/system/void_box.hpp"
#include "gpu/core/context.hpp"
#include "gpu/core/memory.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

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

/// Dirichlet values and the entries that they take from a matrix: unknowns on faces with such a condition, and what is left.
struct Emptied {
  std::int64_t fixed = 0;
  std::int64_t nnz = 0;  ///< of the matrix without them, diagonal entries of fixed unknowns included
};

/// Gauss points in each direction. With a constant k on a cell whose map has the degree s, terms of the matrix have the degree
/// 2 s + p. Cells that were refined often are so nearly affine that the usual points do, if the map is one of the element's nodes.
/// Of a mesh that is refined locally some cells may never be.
int gauss_points(ProblemSpec const& spec, MeshCounts const& counts) {
  int const p = spec.order, s = spec.mesh.local && counts.curved ? std::max(p, counts.shape_order) : counts.shape_order;
  if (spec.quadrature) {
    if (*spec.quadrature <= p)
      throw InputError("problem.quadrature", "found '" + std::to_string(*spec.quadrature) + "'; elements of order " +
                                                 std::to_string(p) + " need " + std::to_string(p + 1) +
                                                 " Gauss points in each direction, or more");
    return static_cast<int>(*spec.quadrature);
  }
  bool const curved = s > 1 && (s > p || spec.mesh.refinements < Space::fewest_refinements_of_lattices);
  return curved ? std::max(p + 1, s + p / 2 + 1) : p + 1;
}

ReferenceElement element_of(ProblemSpec const& spec, MeshCounts const& counts) {
  return ReferenceElement(spec.order, gauss_points(spec, counts));
}

/// Exact for boxes. Elsewhere the faces are taken for parts of a closed surface with as many vertices as faces, where a node
/// couples with (p + 2)^2 of the surface and with p + 1 layers in all.
Emptied count_emptied(MeshCounts const& counts, ProblemData const& data, int order, std::int64_t nnz) {
  auto const is_fixed = [&](unsigned id) {  // a face that a place will name has no condition by its id as yet, and counts as free
    auto const found = data.boundary_of.find(id);
    return found != data.boundary_of.end() && data.boundary[found->second].type == BoundaryType::dirichlet;
  };
  std::int64_t const p = order;
  if (counts.box) {
    std::int64_t free = 1, pairs = 1;
    for (unsigned d = 0; d < 3; ++d) {
      std::int64_t const n = counts.box->cells[d], ends = (is_fixed(2 * d) ? 1 : 0) + (is_fixed(2 * d + 1) ? 1 : 0);
      free *= n * p + 1 - ends;
      // An end couples with the p + 1 nodes of its cell.
      pairs *= n == 1 ? (p + 1 - ends) * (p + 1 - ends) : n * (p + 1) * (p + 1) - (n - 1) - ends * (2 * p + 1);
    }
    std::int64_t const fixed = counts.unknowns(order) - free;
    return {fixed, pairs + fixed};
  }
  std::int64_t faces = 0;
  for (auto const& [id, count] : counts.faces_with_id)
    faces += is_fixed(id) ? count : 0;
  std::int64_t const fixed = faces * p * p, on_surface = (p + 2) * (p + 2);
  return {fixed, std::max(nnz - fixed * (on_surface * (2 * p + 1) - 1), counts.unknowns(order))};
}

/// What a process with deal.II holds more when it has made its first mesh: code of libraries, of which a page counts from its first
/// use on. And what every run holds more in the end: code, stacks of threads, small objects.
constexpr std::int64_t dealii_code = 6 << 20, other_code = 6 << 20;

/// `held`: what the process held before and after the coarse mesh was made.
struct Held {
  std::int64_t before = 0, after = 0;
};

bool leaves_nodes(AssembledInto into) {
  return into == AssembledInto::half_cds_on_device_alone || into == AssembledInto::matrix_free_on_device_alone;
}

/// Adds the memory of the space on a mesh that is not a box. With `lattices` no refined triangulation is made. `alone`: without
/// nodes inside of lattices.
void add_space(HostMemory& memory, LatticeLayout& layout, ProblemSpec const& spec, MeshCounts const& counts, bool lattices,
               std::int64_t n_coarse, bool alone) {
  std::int64_t const p = spec.order, local = (p + 1) * (p + 1) * (p + 1), n = counts.unknowns(spec.order), cells = counts.cells;
  std::int64_t const of_cells = cells * (4 * local + 4) + 24 * n;  // unknowns and material of a cell, coordinates
  memory.space = 12 * counts.boundary_faces;
  if (std::int64_t const q = counts.shape_order + 1; q > p + 1)
    memory.space += 24 * q * q * q * cells;  // their own maps
  layout.order = spec.order;
  layout.n_unknowns = n;
  bool const by_lattices = lattices && spec.mesh.refinements >= Space::fewest_refinements_of_lattices;
  layout.n_lattices = by_lattices ? n_coarse : cells;
  layout.cells = by_lattices ? 1 << spec.mesh.refinements : 1;
  layout.all_on_rim = !by_lattices;
  std::int64_t const m = (p << spec.mesh.refinements) + 1, nodes = lattices ? 24 * n_coarse * m * m * m : 0;  // coordinates
  if (by_lattices) {  // nodes, unknowns on rims, their copies and where these begin, and where places name regions materials
    std::int64_t faces = counts.boundary_faces;  // near which nodes are kept
    for (auto const& [id, count] : counts.inner_faces_with_id)
      faces += 2 * count;
    std::int64_t const n_sides = faces / (std::int64_t{layout.cells} * layout.cells);
    memory.at_once = alone ? LatticeNodes::bytes_at_once(layout) : 0;
    memory.space += (alone ? LatticeNodes::bytes_kept(layout, n_sides) : nodes) + 8 * layout.n_lattices * layout.rim().size() +
                    8 * (n - layout.n_inner()) + (spec.mesh.regions.empty() ? 0 : 4 * cells);
    memory.making_mesh = memory.space + memory.at_once;
    return;
  }
  memory.space += of_cells;
  if (is_box_with_void(spec.mesh)) {
    memory.space += spec.order == 1 ? 4 * (counts.cells + n) : 0;  // PlacesInBox
    memory.making_mesh = memory.space + bytes_to_number(spec.mesh, spec.order);
    return;
  }
  // Cuthill-McKee: the cells around unknowns, orders and marks, and a copy of the space in the new order. Nodes are gone by then.
  std::int64_t making = memory.space + std::max(nodes, 4 * cells * local + 24 * n + 12 * cells + of_cells);
  if (!lattices) {
    // deal.II: the triangulation, unknowns of its entities and once more of cells, a handle of every cell
    if (spec.mesh.refinements > 0 && spec.mesh.local == nullptr)  // which is there with the counts
      making += counts.triangulation_bytes;
    making += 4 * n + 4 * cells * local + 24 * cells;
  }
  memory.making_mesh = making;
}

/// The space on a box, whose cells have the labels of an image if there is one.
Space space_of_box(MeshSpec const& spec, BoxGrid const& box, ReferenceElement const& element) {
  Space space(box, element);
  if (spec.labels != nullptr)
    space.set_labels(*spec.labels, spec.refinements);
  return space;
}

/// Whether the materials that there are have different entries of a list.
bool differs(std::map<unsigned, std::size_t> const& entry_of) {
  return std::any_of(entry_of.begin(), entry_of.end(), [&](auto const& of) { return of.second != entry_of.begin()->second; });
}

/// Whether k and f of a box are evaluated here for gpu/elements, since they differ by material or use functions of a place.
bool has_coefficient_on_host(ProblemData const& data) {
  return differs(data.coefficient_of) || !data.coefficient_code();
}
bool has_source_on_host(ProblemData const& data) {
  return differs(data.source_of) || !data.source_code();
}

bool has_robin(ProblemData const& data) {
  return std::ranges::any_of(data.boundary, [](BoundaryData const& condition) { return condition.type == BoundaryType::robin; });
}
/// Whether gpu/elements joins the sides of a periodic condition on a box of these cells: opposite faces, with a number for the
/// jump, and so many cells between them that nodes on both sides of one are different ones.
bool wraps_around(BoundaryData const& condition, std::array<std::int64_t, 3> const& cells) {
  if (condition.sides.size() != 2 || condition.map || !condition.value.is_constant())
    return false;
  unsigned const a = std::min(condition.sides[0], condition.sides[1]), b = std::max(condition.sides[0], condition.sides[1]);
  return a % 2 == 0 && b == a + 1 && b < 6 && cells[a / 2] >= 3;
}

/// Whether gpu/elements takes these coefficients and conditions, on a box of elements of order 1 and these cells, whose sides have
/// the ids.
bool is_for_box_elements(ProblemData const& data, std::array<std::int64_t, 3> const& cells) {
  return data.inner_of.empty() &&
         std::all_of(data.boundary.begin(), data.boundary.end(),
                     [&](BoundaryData const& condition) {
                       return condition.type != BoundaryType::periodic || wraps_around(condition, cells);
                     }) &&
         std::all_of(data.boundary.begin(), data.boundary.end(),
                     [](BoundaryData const& condition) { return condition.value.is_code() && condition.alpha.is_code(); });
}

Estimate make_estimate(ProblemSpec const& spec, MeshCounts const& counts, ProblemData const& data, AssembledInto into,
                       Held const& held, bool has_lattices, std::int64_t n_coarse, bool can_leave_nodes) {
  Estimate estimate;
  auto& mesh = estimate.mesh;
  mesh.cells = counts.cells;
  mesh.vertices = counts.vertices;
  mesh.dofs = counts.unknowns(spec.order);
  mesh.nnz = count_couplings(counts, spec.order);
  mesh.lexicographic = counts.box.has_value();
  int const points = gauss_points(spec, counts);
  mesh.only_csr = points != spec.order + 1 || counts.shape_order > spec.order;
  mesh.gauss_points = points;
  mesh.n_diagonals = counts.box ? count_box_diagonals(*counts.box, spec.order) : 0;
  mesh.left_out = counts.left_out;
  mesh.low = counts.low;
  mesh.high = counts.high;
  mesh.quality = counts.quality;
  mesh.surface = counts.surface;
  mesh.boundary_ids = counts.boundary_ids;
  mesh.material_ids = counts.material_ids;
  mesh.boundary_groups = counts.boundary_groups;
  mesh.material_groups = counts.material_groups;
  mesh.inner_groups = counts.inner_groups;
  for (auto const& [id, faces] : counts.inner_faces_with_id)
    mesh.inner_ids.insert(id);
  mesh.periodic = data.has_periodic_boundaries();
  mesh.conditioned_surfaces = data.conditioned_surfaces();
  if (mesh.periodic || !mesh.conditioned_surfaces.empty()) {  // which couple far nodes, or take rows inside
    mesh.lexicographic = false;
    mesh.n_diagonals = 0;
  } else if (!mesh.only_csr && counts.box && counts.box->has_equal_cells() && spec.order == 1 && data.constant_coefficient() &&
             data.diagonal_code() && spec.mesh.boundaries.empty() && !has_coefficient_on_host(data)) {
    std::int64_t inner = 1;
    for (std::int64_t const cells : counts.box->cells)
      inner *= cells - 1;
    mesh.stencil_faces = inner > 0 ? mesh.dofs - inner : 0;
  }
  mesh.box_for_elements = counts.box && spec.order == 1 && !mesh.only_csr && spec.mesh.boundaries.empty() &&
                          is_for_box_elements(data, counts.box->cells);
  for (BoundaryData const& condition : data.boundary)
    if (mesh.box_for_elements && condition.type == BoundaryType::periodic)
      mesh.wraps_around[condition.sides[0] / 2] = true;
  if (mesh.box_for_elements && mesh.periodic)
    mesh.n_diagonals = count_box_diagonals(*counts.box, spec.order);
  std::size_t const most_labels = mesh.material_ids.size() + spec.mesh.regions.size();
  if (mesh.box_for_elements && !data.has_periodic_boundaries() && counts.box->has_equal_cells() && data.constant_coefficient() &&
      data.diagonal_code() && has_coefficient_on_host(data) && most_labels <= BoxProblem::most_materials && !has_robin(data))
    mesh.label_cells = mesh.cells;
  if (!mesh.only_csr && is_for_void_box(spec.mesh, spec.order, data, mesh.material_ids))
    mesh.void_box = spec.mesh.cells;
  estimate.boundary_faces = counts.boundary_faces;
  estimate.constant_k = data.constant_coefficient();
  bool const graded = counts.box && !counts.box->has_equal_cells();  // BoxSystem weighs the source by the cells
  bool const k_on_host = mesh.box_for_elements && has_coefficient_on_host(data),
             f_on_host = mesh.box_for_elements && has_source_on_host(data);
  estimate.varying_fields = data.constant_source() && !f_on_host ? 0 : graded ? 2 : 1;
  for (std::size_t c = 0; c < static_cast<std::size_t>(data.coefficient_components()); ++c)
    estimate.varying_fields +=
        k_on_host || std::any_of(data.coefficients.begin(), data.coefficients.end(), [&](Coefficient const& k) {
          return k.frame ? !k.is_constant() : c < k.components.size() && !k.components[c].is_constant();
        });

  auto& memory = estimate.memory;
  std::int64_t const p = spec.order, local = (p + 1) * (p + 1) * (p + 1), n = mesh.dofs;
  bool const csr = into == AssembledInto::csr, free = into == AssembledInto::matrix_free_on_host ||
                                                      into == AssembledInto::matrix_free_on_device ||
                                                      into == AssembledInto::matrix_free_on_device_alone;
  memory.program = held.before + other_code;
  if (counts.box) {
    memory.space = 12 * counts.boundary_faces;
    if (spec.mesh.labels != nullptr)  // what the image holds, and the material of every cell
      memory.space += spec.mesh.labels->size() * (spec.mesh.labels->large.empty() ? 1 : 4) + 4 * counts.cells;
    memory.making_mesh = memory.space;
    // Where its rows are not one stencil, or of a higher order, its cells are lattices of one cell.
    estimate.layout.order = spec.order;
    estimate.layout.n_unknowns = n;
    estimate.layout.n_lattices = mesh.cells;
    estimate.layout.cells = 1;
    estimate.layout.all_on_rim = true;
    if (!spec.mesh.shared && !spec.mesh.part && n <= std::numeric_limits<std::int32_t>::max())
      estimate.layout = layout_of_box(counts.box->cells, static_cast<std::int32_t>(p));
    bool const one_stencil = mesh.box_for_elements && estimate.constant_k && data.diagonal_code() && !k_on_host && !graded;
    estimate.lattices_for_elements = spec.order > 1 || (free && !one_stencil);
  } else {
    std::int64_t const code = is_box_with_void(spec.mesh) ? 0 : dealii_code;
    memory.program += code;
    add_space(memory, estimate.layout, spec, counts, has_lattices && spec.mesh.refinements > 0, n_coarse,
              can_leave_nodes && leaves_nodes(into) && counts.shape_order <= spec.order);
    // The coarse mesh is there until the space is; one that will be refined further stays.
    std::int64_t const of_mesh = std::max<std::int64_t>(held.after - held.before - code, 0);
    memory.making_mesh += of_mesh;
    if (spec.mesh.local != nullptr && spec.mesh.local->kept != nullptr)
      memory.space += of_mesh;
    estimate.lattices_for_elements = true;
  }
  Emptied const emptied = count_emptied(counts, data, spec.order, mesh.nnz);
  estimate.entries = emptied.nnz;
  if (csr) {
    memory.csr = CsrMatrix::csr_bytes(n, emptied.nnz);
    memory.constraints = 5 * n + 32 * emptied.fixed;  // a mark and a place of every unknown, and the values
  } else if (estimate.lattices_for_elements) {
    memory.lattice_problem = lattice_problem_bytes(estimate.layout, !estimate.layout.all_on_rim);
  }

  // Material, coefficient and flux of cells.
  memory.made = {0, 0, 0, 4 * mesh.cells, 8 * data.coefficient_components() * mesh.cells, 24 * mesh.cells};
  // `exact`; u, the error and the nodes only where these are not those of the unknowns, with the cells that own them.
  bool const other_nodes = p >= 3 && !counts.box;
  memory.output = spec.exact ? 8 * n : 0;
  if (other_nodes)
    memory.output += 36 * n + (spec.exact ? 8 * n : 0);
  else if (spec.exact)
    memory.made.error = 8 * n;
  std::int64_t const of_cells = 24 * mesh.cells * (counts.box ? p * p * p : 1);  // the flux; on boxes on all cuboids between nodes
  memory.largest_output = std::max(of_cells, counts.box ? 8 * n : std::max(24 * n, 4 * local * mesh.cells));

  std::int64_t const system = 8 * n;  // the right-hand side
  estimate.host_bytes = std::max(memory.making_mesh, memory.space + memory.csr + memory.constraints + system +
                                                         std::max(memory.lattice_problem, 8 * n + memory.output));
  return estimate;
}

}  // namespace

namespace {

bool is_zero(std::string const& text, std::string const& key, ProblemSpec const& spec) {
  Function const function(text, key, spec.names());
  return function.is_constant() && function({}) == 0;
}

ConditionEffects effects_of(ProblemSpec const& spec) {
  ConditionEffects effects;
  for (std::size_t i = 0; i < spec.boundary.size(); ++i) {
    BoundaryCondition const& condition = spec.boundary[i];
    std::string const key = "problem.boundary[" + std::to_string(i) + "]";
    auto& of = effects.list.emplace_back();
    of.all_ids = condition.all_ids;
    of.ids = condition.ids;
    of.names = condition.names;
    of.fixes = condition.type == BoundaryType::dirichlet ||
               (condition.type == BoundaryType::robin && !is_zero(condition.alpha, key + ".alpha", spec));
    of.binds = condition.type == BoundaryType::periodic || (!of.fixes && !is_zero(condition.value, key + ".value", spec));
  }
  effects.has_source = !spec.point_sources.empty() || !spec.line_sources.empty() || !is_zero(spec.source, "problem.source", spec);
  for (auto const& [material, text] : spec.source_of_material)
    effects.has_source |= !is_zero(text, "problem.source[" + std::to_string(material) + "]", spec);
  for (auto const& [name, text] : spec.source_of_name)
    effects.has_source |= !is_zero(text, "problem.source." + name, spec);
  return effects;
}

}  // namespace

struct CheckedProblem::Impl {
  explicit Impl(ProblemSpec of) : Impl(std::move(of), std::nullopt) {}
  /// `known`: of another process, which has made the mesh.
  Impl(ProblemSpec of, std::optional<MeshCounts> known)
      : spec(std::move(of)), counts(known ? std::move(*known) : make_counts()), names(counts, spec.mesh), data(make_data()) {
    check_index_range(spec.mesh, counts, spec.order);
    summary = make_estimate(AssembledInto::csr).mesh;
  }

  MeshCounts make_counts() {
    if (is_box(spec.mesh)) {
      held.before = host_bytes_held();
      return predict_counts(spec.mesh);
    }
    prepare_for(spec.mesh);
    if (spec.mesh.has_void())
      spec.mesh.conditions = effects_of(spec);
    held.before = host_bytes_held();
    coarse = open_coarse_mesh(spec.mesh, spec.names());
    held.after = host_bytes_held();
    // Smaller lattices do not number the unknowns.
    if (spec.mesh.refinements >= Space::fewest_refinements_of_lattices && coarse->has_lattices())
      lattices = coarse->counts().cells;
    return refined_counts(*coarse, spec.mesh);
  }
  /// What the file has in place of materials is told where materials are asked for.
  ProblemData make_data() {
    try {
      return ProblemData(with_periodic_of_file(), names, !spec.mesh.has_places());
    } catch (InputError const& error) {
      if (std::string(error.what()).find("has no material") != std::string::npos)
        for (std::string const& note : counts.notes)
          if (note.find(": cell data: ") != std::string::npos)
            throw InputError(error.key(), error.what() + ("; " + note));
      throw;
    }
  }
  /// The specification with a condition for each pair of boundaries that the mesh file joins, unless they have others.
  ProblemSpec const& with_periodic_of_file() {
    for (PeriodicPair const& pair : counts.periodic) {
      std::string const both = std::to_string(pair.first) + " and " + std::to_string(pair.second);
      // `ids: all` counts as the condition of what no other one lists.
      auto const listed = [&](BoundaryCondition const& condition) {
        std::set<unsigned> result;
        for (unsigned const id : condition.ids)
          result.merge(names.boundary_groups.with_id(id, names.boundary_ids));
        for (std::string const& name : condition.names)
          result.merge(names.boundary_groups.with_name(name));
        return result;
      };
      std::set<unsigned> sides = names.boundary_groups.with_id(pair.first, names.boundary_ids);
      sides.merge(names.boundary_groups.with_id(pair.second, names.boundary_ids));
      auto has_own = std::find_if(spec.boundary.begin(), spec.boundary.end(), [&](BoundaryCondition const& condition) {
        auto const parts = listed(condition);
        return std::any_of(parts.begin(), parts.end(), [&](unsigned part) { return sides.contains(part); });
      });
      if (has_own == spec.boundary.end())
        has_own = std::find_if(spec.boundary.begin(), spec.boundary.end(), [](auto const& condition) { return condition.all_ids; });
      if (has_own == spec.boundary.end()) {
        BoundaryCondition condition;
        condition.ids = {pair.first, pair.second};
        condition.type = BoundaryType::periodic;
        condition.map = pair.map;
        spec.boundary.push_back(std::move(condition));
        counts.notes.push_back("boundaries " + both + " are periodic, as the mesh file says");
      } else if (has_own->type == BoundaryType::periodic && has_own->ids == std::vector<unsigned>{pair.first, pair.second}) {
        has_own->map = pair.map;
      } else if (has_own->type != BoundaryType::periodic) {
        counts.notes.push_back("the mesh file joins the boundaries " + both +
                               " ($Periodic), and the configuration gives them other conditions, which count" +
                               (has_own->all_ids ? "; for periodic ones add {ids: [" + std::to_string(pair.first) + ", " +
                                                       std::to_string(pair.second) + "], type: periodic}"
                                                 : ""));
      }
    }
    return spec;
  }
  [[nodiscard]] Estimate make_estimate(AssembledInto into) const;

  ProblemSpec spec;
  std::unique_ptr<CoarseMesh> coarse;  ///< of all meshes but boxes
  std::shared_ptr<Space> around;       ///< of a process that shares the mesh: the cells around its rows
  bool has_names = false;              ///< the places of `around` were named when it was part of the whole
  std::int64_t lattices = 0;
  Held held;
  MeshCounts counts;
  PlaceNames names;
  ProblemData data;  ///< with places, conditions and coefficients may still be missing: which ids remain is known later
  MeshSummary summary;
};

Estimate CheckedProblem::Impl::make_estimate(AssembledInto into) const {
  MeshCounts of_places = counts;
  of_places.boundary_ids = names.boundary_ids;
  of_places.material_ids = names.material_ids;
  of_places.boundary_groups = names.boundary_groups;
  of_places.material_groups = names.material_groups;
  Estimate estimate = poisson::assembly::make_estimate(
      spec, of_places, data, into, held, coarse != nullptr && coarse->has_lattices(),
      coarse != nullptr ? coarse->counts().cells : 0, coarse != nullptr && coarse->can_leave_nodes());
  estimate.mesh.lattices = lattices;
  estimate.mesh.lattice_nodes = lattices > 0 ? (std::int64_t{spec.order} << spec.mesh.refinements) + 1 : 0;
  return estimate;
}

CheckedProblem::CheckedProblem(ProblemSpec spec) : impl_(std::make_unique<Impl>(std::move(spec))) {}
CheckedProblem::CheckedProblem(ProblemSpec spec, MeshCounts counts)
    : impl_(std::make_unique<Impl>(std::move(spec), std::move(counts))) {}
CheckedProblem::~CheckedProblem() = default;
CheckedProblem::CheckedProblem(CheckedProblem&&) noexcept = default;

MeshSummary const& CheckedProblem::mesh() const {
  return impl_->summary;
}

MeshCounts const& CheckedProblem::counts() const {
  return impl_->counts;
}

std::vector<std::string> const& CheckedProblem::notes() const {
  return impl_->counts.notes;
}

Estimate CheckedProblem::estimate(AssembledInto into) const {
  return impl_->make_estimate(into);
}

std::shared_ptr<OwnPieces const> CheckedProblem::share(int rank, int ranks, AssembledInto into, FillLattices const& fill) {
  if (impl_->coarse == nullptr || impl_->lattices == 0)
    return nullptr;
  check_memory(estimate(into).host_bytes / ranks, "a rank's part of this problem (mesh and fields)");
  auto found = impl_->coarse->share(element_of(impl_->spec, impl_->counts), rank, ranks, leaves_nodes(into), fill);
  impl_->coarse.reset();
  return_freed_memory();
  if (!found)
    return nullptr;
  impl_->around = std::move(found->around);
  return std::move(found->pieces);
}

std::vector<double> CheckedProblem::points_of_rows(std::span<std::int32_t const> rows) const {
  constexpr std::int64_t at_once = 4096;
  std::vector<double> result(3 * rows.size());
  parallel_for(n_parts(std::ssize(rows), at_once), [&](std::int64_t block) {
    auto const [begin, end] = part(std::ssize(rows), at_once, block);
    for (std::int64_t i = begin; i < end; ++i) {
      Point3 const x = impl_->around->point(rows[static_cast<std::size_t>(i)]);
      std::copy(x.begin(), x.end(), result.begin() + 3 * i);
    }
  });
  return result;
}

void CheckedProblem::set_points_of_ghosts(std::int64_t n_rows, std::span<double const> coordinates) {
  if (impl_->around != nullptr)
    impl_->around->set_points(n_rows, coordinates);
}

LatticeLayout const& CheckedProblem::lattices_of_pieces() const {
  return impl_->around->lattices->layout;
}

CheckedProblem::Places CheckedProblem::places() const {
  ProblemSpec const& spec = impl_->spec;
  Space own = impl_->around->lattices_alone();
  Extent const extent = extent_of(own);
  PlaceCounts counts = name_places(own, element_of(spec, impl_->counts), spec, impl_->names);
  return {std::move(counts), extent.low, extent.high};
}

void CheckedProblem::set_places_of_whole(PlaceCounts counts) {
  impl_->spec.mesh.places_of_whole = std::move(counts);
}

void CheckedProblem::set_part(SpaceArrays around) {
  impl_->around = std::make_shared<Space>(element_of(impl_->spec, impl_->counts), std::move(around));
  impl_->has_names = true;
}

Estimate estimate(ProblemSpec const& spec, AssembledInto into) {
  return CheckedProblem(spec).estimate(into);
}

std::set<std::string> MeshSummary::free_surfaces() const {
  std::set<std::string> result;
  std::set<unsigned> free;
  for (unsigned const id : inner_ids)
    if (!conditioned_surfaces.contains(id) && !boundary_ids.contains(id))
      free.insert(id);
  for (auto const& group : inner_groups.labelled(free))
    result.insert(group.label);
  return result;
}

struct Discretization::Impl {
  Impl(CheckedProblem::Impl checked, AssembledInto into, FillLattices const& fill)
      : element(element_of(checked.spec, checked.counts)),
        space(checked.around       ? std::move(*checked.around)
              : checked.counts.box ? space_of_box(checked.spec.mesh, *checked.counts.box, element)
                                   : checked.coarse->space(element, leaves_nodes(into), fill)),
        notes(name_and_check(space, element, checked)),
        data(checked.spec, names_in(space, checked.names)),
        has_places(checked.spec.mesh.has_places()),
        summary(std::move(checked.summary)),
        couplings(summary.nnz) {
    notes.insert(notes.begin(), checked.counts.notes.begin(), checked.counts.notes.end());
    summary.boundary_ids = space.boundary_ids;
    summary.material_ids = space.material_ids;
    summary.boundary_groups.keep(space.boundary_ids);
    summary.material_groups.keep(space.material_ids);
    if (!space.lattices)
      summary.lattices = summary.lattice_nodes = 0;
    if (checked.spec.source_total && space.n_cells_of_whole == 0)
      scale_source(*checked.spec.source_total, assembly::source_integral(space, element, data));
    sources.parameters = checked.spec.parameters;
    sources.fields = checked.spec.fields;
    sources.point_sources = checked.spec.point_sources;
    sources.line_sources = checked.spec.line_sources;
    data.point_loads = assembly::point_loads(space, element, sources);
    if (space.n_cells_of_whole > 0)
      pure_neumann = false;  // which a part does not know; see LinearSystem::anchored
    if (!space.local.active.empty())
      join_periodic_faces(space, element, data);
  }

  /// A part of another one.
  Impl(Impl const& whole, std::span<std::int32_t const> cells, std::span<std::int32_t const> unknowns)
      : element(whole.element),
        space(whole.space, cells, unknowns),
        data(whole.data),
        has_places(whole.has_places),
        summary(whole.summary),
        couplings(whole.couplings),
        pure_neumann(false) {
    // An unknown at the rim of a part may have its Dirichlet face in a cell that is not here.
    std::vector<double> const all = whole.dirichlet_values();
    DirichletValues given;
    for (std::int32_t const unknown : unknowns)
      given.values.push_back(all[static_cast<std::size_t>(unknown)]);
    of_whole.emplace(given);
    std::vector<std::int32_t> here(static_cast<std::size_t>(whole.data.point_loads.loads.empty() ? 0 : whole.space.n_dofs), -1);
    for (std::size_t i = 0; i < unknowns.size() && !here.empty(); ++i)
      here[unknowns[i]] = static_cast<std::int32_t>(i);
    for (PointLoads::Load& load : data.point_loads.loads) {
      auto const found = std::lower_bound(cells.begin(), cells.end(), load.cell);
      load.cell = found != cells.end() && *found == load.cell ? static_cast<std::int32_t>(found - cells.begin()) : -1;
    }
    std::erase_if(data.point_loads.loads, [&](PointLoads::Load& load) { return (load.unknown = here[load.unknown]) < 0; });
  }

  /// The own pieces of a part.
  Impl(Impl const& around, OwnPieces const& own)
      : element(around.element),
        space(around.space.lattices_alone()),
        data(around.data),
        has_places(around.has_places),
        summary(around.summary),
        couplings(around.couplings),
        pure_neumann(false) {
    DirichletValues const all = around.dirichlet_on_rims();
    DirichletValues given{all.first, {}};
    given.values.reserve(static_cast<std::size_t>(own.n_in_pieces() - all.first));
    for (std::int64_t i = all.first; i < own.n_in_pieces(); ++i)
      given.values.push_back(all[own.in_pieces(i)]);
    of_whole.emplace(given);
    for (PointLoads::Load& load : data.point_loads.loads) {
      if (load.cell >= space.n_cells)
        load.cell = -1;
      if (load.unknown < own.n_rows)
        continue;
      auto const found = std::lower_bound(own.ghosts_of_pieces.begin(), own.ghosts_of_pieces.end(), load.unknown);
      bool const here = found != own.ghosts_of_pieces.end() && *found == load.unknown;
      load.unknown = here ? static_cast<std::int32_t>(own.n_rows + (found - own.ghosts_of_pieces.begin())) : -1;
    }
    std::erase_if(data.point_loads.loads, [](PointLoads::Load const& load) { return load.unknown < 0; });
  }

  /// Notes on places. A part of a mesh has the ids of the whole, of which the places were checked.
  static std::vector<std::string> name_and_check(Space& space, ReferenceElement const& element,
                                                 CheckedProblem::Impl const& checked) {
    if (!checked.spec.mesh.has_places() || checked.has_names)
      return {};
    PlaceCounts const counts = name_places(space, element, checked.spec, checked.names);
    if (space.n_cells_of_whole == 0) {
      Extent const extent = extent_of(space);
      return check_places(checked.spec.mesh, counts, extent.low, extent.high, checked.counts.left_out.parts > 0);
    }
    if (auto const& whole = checked.spec.mesh.places_of_whole) {
      space.boundary_ids = whole->boundary_ids;
      space.material_ids = whole->material_ids;
    }
    return {};
  }

  void scale_source(double total, FieldSums const& sums) {
    if (!(std::abs(sums.sum) > 1e-14 * sums.absolute))
      throw InputError("problem.source_total",
                       "the integral of problem.source is 0, and no factor makes that " + to_text(total) + "; change the source");
    data.scale_source(total / sums.sum);
  }

  /// Of all unknowns that have some.
  [[nodiscard]] DirichletValues dirichlet_on_rims() const {
    if (of_whole)
      return of_whole->all();
    BoundaryTerms const terms = boundary_terms(space, element, data);
    DirichletValues result{terms.places.first, {}};
    result.values.assign(static_cast<std::size_t>(space.n_dofs - result.first), std::numeric_limits<double>::quiet_NaN());
    for (std::int64_t i = 0; i < terms.constraints.size(); ++i)
      if (terms.constraints.constrained(i))
        result.values[static_cast<std::size_t>(terms.places.unknown(i) - result.first)] = terms.constraints.value(i);
    return result;
  }
  [[nodiscard]] std::vector<double> dirichlet_values() const {
    DirichletValues const given = dirichlet_on_rims();
    std::vector<double> values(static_cast<std::size_t>(given.first), std::numeric_limits<double>::quiet_NaN());
    values.insert(values.end(), given.values.begin(), given.values.end());
    return values;
  }
  /// What is given of a part, as constraints of all of its unknowns.
  [[nodiscard]] Constraints constraints_of_whole() const {
    Constraints result(space.n_dofs);
    for (std::size_t i = 0; i < of_whole->unknowns.size(); ++i)
      result.set(of_whole->unknowns[i], of_whole->values[i]);
    result.close();
    return result;
  }

  /// Of hanging nodes, and of periodic boundaries.
  [[nodiscard]] Constraints constraints_of_space() const {
    return data.has_periodic_boundaries() ? periodic_constraints(space, element, data) : space.hanging;
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
  [[nodiscard]] double shift_of_exact() const {
    return of_part ? *of_part : is_pure_neumann() ? assembly::mean_of_exact(space, element, data).mean() : 0;
  }

  /// Keeps those names whose ids the space has.
  static PlaceNames names_in(Space const& space, PlaceNames names) {
    names.boundary_ids = space.boundary_ids;
    names.material_ids = space.material_ids;
    names.boundary_groups.keep(space.boundary_ids);
    names.material_groups.keep(space.material_ids);
    return names;
  }

  ReferenceElement element;
  Space space;
  std::vector<std::string> notes;  ///< on the mesh file, and on places that cut faces or cells
  ProblemData data;
  ProblemSpec sources;  ///< point and line sources, and the names that they use; nothing else
  bool has_places;
  MeshSummary summary;
  std::int64_t couplings;                    ///< pairs of unknowns that share a cell
  mutable std::optional<bool> pure_neumann;  ///< known once it was asked for
  std::optional<ListedValues> of_whole;      ///< Dirichlet values of a part of a mesh, once they are known
  std::optional<double> of_part;             ///< of a part: what is taken off the exact solution
};

PlaceCounts count_places(ProblemSpec const& spec) {
  CheckedProblem const problem(spec);
  ReferenceElement const element = element_of(spec, problem.impl_->counts);
  Space space = space_of_box(spec.mesh, *problem.impl_->counts.box, element);
  return name_places(space, element, spec, problem.impl_->names);
}

Discretization::Discretization(CheckedProblem problem, AssembledInto into, FillLattices const& fill) {
  if (problem.impl_->around == nullptr)
    check_memory(problem.estimate(into).host_bytes, "this problem (mesh, matrix and fields together)");
  impl_ =
      std::make_unique<Impl>(std::move(*problem.impl_), into, fill);  // which is gone, with its triangulation, when this is done
  return_freed_memory();
}

Discretization::Discretization(ProblemSpec spec, AssembledInto into) : Discretization(CheckedProblem(std::move(spec)), into) {}

Discretization::Discretization(Discretization const& whole, std::span<std::int32_t const> cells,
                               std::span<std::int32_t const> unknowns)
    : impl_(std::make_unique<Impl>(*whole.impl_, cells, unknowns)) {
  assert(!whole.impl_->space.box);
}

Discretization::Discretization(Discretization const& around, OwnPieces const& own)
    : impl_(std::make_unique<Impl>(*around.impl_, own)) {}

Discretization::~Discretization() = default;
Discretization::Discretization(Discretization&&) noexcept = default;

MeshSummary const& Discretization::summary() const {
  return impl_->summary;
}

std::vector<std::string> const& Discretization::notes() const {
  return impl_->notes;
}

LinearSystem Discretization::assemble() {
  auto system = assemble_system(impl_->space, impl_->element, impl_->data,
                                impl_->of_whole ? impl_->constraints_of_whole() : impl_->constraints_of_space());
  impl_->summary.nnz = system.matrix.nnz();
  impl_->summary.exact_counts = true;
  impl_->pure_neumann = system.pure_neumann;
  return system;
}

std::optional<BoxProblem> Discretization::box_problem() const {
  return impl_->space.order == 1 ? box_problem_of_order_one() : std::nullopt;
}

namespace {

/// What gpu/elements cannot evaluate itself: `value` (data, place, material, component) at the Gauss points of planes of cells.
template <class Value>
BoxProblem::PlaneValues values_in_planes(Space const& space, ProblemData const& data, Value const& value) {
  std::array<std::vector<double>, 3> points;
  double const low = 0.5 - 0.5 / std::sqrt(3.);
  for (int d = 0; d < 3; ++d)
    for (std::int64_t i = 0; i < space.box->cells[d]; ++i)
      for (double const t : {low, 1 - low})
        points[d].push_back((1 - t) * space.box_coordinate(d, i * space.order) +
                            t * space.box_coordinate(d, (i + 1) * space.order));
  return [&space, &data, points, value](std::int64_t first, std::int64_t count, int c, double* values) {
    auto const [nx, ny, nz] = space.box->cells;
    std::int64_t const of_line = 2 * nx, of_plane = 4 * nx * ny;
    parallel_for(
        count * ny, [&] { return data; },
        [&](ProblemData const& of_thread, std::int64_t const line) {
          std::int64_t const y = line % ny, z = line / ny;
          for (std::int64_t x = 0; x < nx; ++x) {
            unsigned const material = space.material(((first + z) * ny + y) * nx + x);
            for (int q = 0; q < 8; ++q) {
              std::int64_t const i = 2 * x + (q & 1), j = 2 * y + (q >> 1 & 1), k = 2 * z + (q >> 2);
              values[k * of_plane + j * of_line + i] =
                  value(of_thread, Point3{points[0][i], points[1][j], points[2][2 * first + k]}, material, c);
            }
          }
        });
  };
}

}  // namespace

std::optional<BoxProblem> Discretization::box_problem_of_order_one() const {
  Space const& space = impl_->space;
  ProblemData const& data = impl_->data;
  if (!space.box || !space.sides_have_ids || !is_for_box_elements(data, space.box->cells))
    return std::nullopt;
  unsigned const material = *space.material_ids.begin();
  BoxProblem problem{space.box->cells, space.box->origin, space.box->extent, {}, data.source(material).code(), {}};
  problem.coordinates = space.box->coordinates;
  if (has_coefficient_on_host(data)) {  // the code does not count
    problem.coefficient.assign(static_cast<std::size_t>(data.coefficient_components()), {Instruction(Op::constant, 1)});
    problem.coefficient_on_host = values_in_planes(space, data, [](ProblemData const& of, Point3 const& x, unsigned id, int c) {
      return of.coefficient(id).entry(x, id, static_cast<std::size_t>(c));  // throws where it is not admissible
    });
  } else {
    problem.coefficient = data.coefficient(material).codes();
  }
  if ((space.material_ids.size() > 1 || has_coefficient_on_host(data)) && space.material_ids.size() <= BoxProblem::most_materials &&
      data.coefficient_code()) {
    BoxProblem::Materials& materials = problem.materials.emplace();
    for (unsigned const id : space.material_ids)
      materials.coefficients.push_back(data.coefficient(id).codes());
    materials.sources = data.constant_sources(space.material_ids);
    std::vector<unsigned> const ids(space.material_ids.begin(), space.material_ids.end());
    // A table of the lowest ids: in an image materials change so often that to ask whether they do takes longer.
    std::vector<std::uint8_t> number_of(std::min(std::size_t{ids.back()} + 1, std::size_t{65536}));
    for (std::size_t number = 0; number < ids.size() && ids[number] < number_of.size(); ++number)
      number_of[ids[number]] = static_cast<std::uint8_t>(number);
    materials.of_planes = [&space, ids, number_of](std::int64_t first, std::int64_t count, std::uint8_t* numbers) {
      auto const [nx, ny, nz] = space.box->cells;
      parallel_for(count * ny, [&, nx = nx, ny = ny](std::int64_t line) {
        for (std::int64_t i = line * nx; i < (line + 1) * nx; ++i) {
          unsigned const id = space.material(first * nx * ny + i);
          numbers[i] =
              id < number_of.size() ? number_of[id] : static_cast<std::uint8_t>(std::ranges::lower_bound(ids, id) - ids.begin());
        }
      });
    };
  }
  if (has_source_on_host(data))
    problem.source_on_host = values_in_planes(space, data, [](ProblemData const& of, Point3 const& x, unsigned id, int) {
      return of.source(id).finite(x, "the source");
    });
  for (unsigned face = 0; face < 6; ++face) {
    using Type = BoxProblem::Face::Type;
    if (!space.box->is_boundary(static_cast<int>(face))) {
      problem.faces[face] = {Type::cut, 0, {Instruction(Op::constant, 0)}, {}};
      continue;
    }
    std::size_t const index = data.boundary_of.at(face);
    BoundaryData const& condition = data.boundary[index];
    if (condition.type == BoundaryType::periodic) {
      // u at the second side is u at the first one and the value.
      double const value = face % 2 == 0 ? 0 : condition.value.finite(space.box->origin, "the value");
      problem.faces[face] = {Type::periodic, 0, {Instruction(Op::constant, condition.sides[1] == face ? value : -value)}, {}};
      continue;
    }
    problem.faces[face] = {condition.type == BoundaryType::dirichlet ? Type::dirichlet
                           : condition.type == BoundaryType::neumann ? Type::neumann
                                                                     : Type::robin,
                           static_cast<int>(index), condition.value.code(), condition.alpha.code()};
  }
  return problem;
}

VoidBoxProblem Discretization::void_box_problem() const {
  return assembly::void_box_problem(impl_->space, impl_->element, impl_->data);
}

LatticeProblem Discretization::lattice_problem() const {
  assert(impl_->data.coefficient_code() && impl_->data.source_code() && !impl_->data.has_periodic_boundaries() &&
         impl_->data.inner_of.empty());
  auto problem = assembly::lattice_problem(impl_->space, impl_->element, impl_->data);
  problem.couplings = impl_->couplings;
  impl_->pure_neumann = problem.pure_neumann;
  return problem;
}

LatticeGeometry Discretization::lattice_geometry() const {
  assert(impl_->data.coefficient_code());
  return assembly::lattice_geometry(impl_->space, impl_->data);
}

LatticeGeometry Discretization::lattice_geometry(Discretization const& around, std::span<std::int32_t const> in_around) const {
  assert(impl_->data.coefficient_code());
  return assembly::lattice_geometry(impl_->space, around.impl_->space, in_around, impl_->data);
}

LatticeProblem Discretization::lattice_problem_of_pieces() const {
  assert(impl_->data.coefficient_code() && impl_->data.source_code() && impl_->of_whole);
  return assembly::lattice_problem_of_pieces(impl_->space, impl_->element, impl_->data, impl_->of_whole->all());
}

LatticeProblem Discretization::lattice_problem(std::span<std::int32_t const> number, std::span<double const> dirichlet,
                                               bool with_source) const {
  assert(impl_->data.coefficient_code() && (impl_->data.source_code() || !with_source) && !impl_->data.has_periodic_boundaries());
  return assembly::lattice_problem(impl_->space, impl_->element, impl_->data, number, dirichlet, with_source);
}

std::int64_t Discretization::emptied_entries(DirichletValues const& dirichlet,
                                             std::function<bool(std::int64_t)> const& is_row) const {
  return assembly::emptied_entries(impl_->space, dirichlet, is_row);
}

void Discretization::refuse(DataError const& error) const {
  using Quantity = DataError::Quantity;
  ProblemData const& data = impl_->data;
  auto const condition = [&]() -> BoundaryData const& { return data.boundary_at(static_cast<unsigned>(error.part)); };
  auto const material_of_part = [&] { return impl_->space.material(error.part); };
  switch (error.quantity) {
  case Quantity::coefficient: {
    unsigned const material = material_of_part();
    static_cast<void>(data.coefficient(material)(error.at, material));
    throw InputError("problem.coefficient", "the coefficient is not positive and finite at (x, y, z) = " + to_text(error.at));
  }
  case Quantity::determinant:
    throw_inverted_cell(error.at, error.value);
  case Quantity::source: {  // of a box that of all materials there are, or the host had evaluated it
    Function const& source = data.source(error.part < 0 ? *impl_->space.material_ids.begin() : material_of_part());
    static_cast<void>(source.finite(error.at, "the source"));
    throw InputError(source.key(), "the source is not finite at (x, y, z) = " + to_text(error.at));
  }
  case Quantity::value:
    static_cast<void>(condition().value.finite(error.at, condition().type == BoundaryType::dirichlet ? "the Dirichlet value"
                                                                                                     : "the boundary value"));
    throw InputError(condition().value.key(), "the value is not finite at (x, y, z) = " + to_text(error.at));
  case Quantity::exact:
    static_cast<void>(data.exact->finite(error.at, exact_name));
    throw InputError(data.exact->key(), std::string(exact_name) + " is not finite at (x, y, z) = " + to_text(error.at));
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

void Discretization::make_compatible(HostVector<double>& rhs) const {
  subtract_constant_source(rhs, basis_integrals(impl_->space, impl_->element));
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

SourceFindings Discretization::source_findings() const {
  return check_source(impl_->space, impl_->element, impl_->data);
}

SourceFindings Discretization::source_findings(double absolute, SourceLines const& lines) const {
  return check_source(impl_->space, impl_->element, impl_->data, absolute, lines);
}

ErrorNorms Discretization::errors(std::span<double const> u) const {
  assert(impl_->data.exact && static_cast<std::int64_t>(u.size()) == impl_->space.n_dofs);
  return error_norms(impl_->space, impl_->element, impl_->data, u, impl_->shift_of_exact());
}

OutputMesh Discretization::output_mesh(OutputNodes nodes) const {
  return assembly::output_mesh(impl_->space, impl_->element, nodes);
}

DividedSpace Discretization::divided(int ranks) const {
  return {impl_->space, ranks};
}

SpaceArrays Discretization::arrays_of(std::span<std::int32_t const> cells, std::span<std::int32_t const> unknowns) const {
  return impl_->space.arrays_of(cells, unknowns);
}

CsrMatrix Discretization::prolongation_of_order_one() const {
  return assembly::prolongation_of_order_one(impl_->space, impl_->element);
}

bool Discretization::is_pure_neumann() const {
  return impl_->is_pure_neumann();
}

bool Discretization::is_natural(unsigned boundary_id) const {
  return impl_->data.boundary_at(boundary_id).is_natural();
}

SolutionResidual Discretization::residual(std::span<double const> u, std::span<double const> u_low) const {
  return solution_residual(impl_->space, impl_->element, impl_->data, u, u_low);
}

BoundaryFluxes Discretization::residual_fluxes(std::span<double const> u, std::span<std::uint8_t const> counted,
                                               std::span<double const> u_low) const {
  auto result = boundary_fluxes(impl_->space, impl_->element, impl_->data, u, counted, u_low);
  std::erase_if(result.boundaries, [&](auto const& of) { return is_natural(of.first); });
  return result;
}

void Discretization::add_periodic_fluxes(std::span<PeriodicFlux const> of_whole, BoundaryFluxes& to) const {
  assembly::add_periodic_fluxes(of_whole, impl_->data, to);
}

std::vector<PeriodicNode> Discretization::periodic_nodes() const {
  return assembly::periodic_nodes(impl_->space, impl_->element, impl_->data);
}

std::vector<PeriodicTie> Discretization::periodic_ties(std::span<PeriodicNode const> of_whole) const {
  return assembly::periodic_ties(of_whole, impl_->data);
}

FieldSums Discretization::source_integral() const {
  return assembly::source_integral(impl_->space, impl_->element, impl_->data);
}

FieldSums Discretization::boundary_integral() const {
  return boundary_terms(impl_->space, impl_->element, impl_->data).values;
}

void Discretization::scale_source(double total, FieldSums const& of_whole) {
  impl_->scale_source(total, of_whole);
}

std::vector<double> Discretization::dirichlet_values() const {
  return impl_->dirichlet_values();
}

void Discretization::set_dirichlet_values(std::span<double const> values) {
  auto const first = static_cast<std::size_t>(impl_->space.lattices ? impl_->space.lattices->first_face : 0);
  impl_->of_whole.emplace(DirichletValues{static_cast<std::int64_t>(first), {values.begin() + first, values.end()}});
}

DirichletValues Discretization::dirichlet_on_rims() const {
  return impl_->dirichlet_on_rims();
}

void Discretization::set_dirichlet_on_rims(DirichletValues const& given) {
  assert(given.end() == impl_->space.n_dofs);
  impl_->of_whole.emplace(given);
}

bool Discretization::has_exact() const {
  return impl_->data.exact.has_value();
}

ExactMean Discretization::mean_of_exact() const {
  return assembly::mean_of_exact(impl_->space, impl_->element, impl_->data);
}

void Discretization::set_mean_of_exact(double mean) {
  impl_->of_part = mean;
}

Quantities Discretization::quantities(std::span<double const> u, std::span<std::uint8_t const> counted,
                                      std::span<double const> u_low) const {
  assert(static_cast<std::int64_t>(u.size()) == impl_->space.n_dofs);
  auto result = solution_quantities(impl_->space, impl_->element, impl_->data, u, counted, u_low);
  return_freed_memory();  // many small pieces
  return result;
}

BoundaryFluxes Discretization::fluxes_near_boundary(ValuesOfUnknowns const& u, ValuesOfUnknowns const& u_low,
                                                    CountedUnknowns const& counted) const {
  return assembly::fluxes_near_boundary(impl_->space, impl_->element, impl_->data, u, u_low, counted);
}

std::map<unsigned, BoundaryFlux> Discretization::box_boundary_fluxes(NodesOfBox const& u, NodesOfBox const& u_low,
                                                                     std::optional<BoxPart> const& own,
                                                                     InsideOfSide const& inside) const {
  return assembly::box_boundary_fluxes(impl_->space, impl_->element, impl_->data, u, u_low, own, inside);
}

NodesOfBox Discretization::nodes_among(ValuesOfUnknowns const& u) const {
  return assembly::nodes_among(impl_->space, u);
}

std::array<double, 3> Discretization::point(std::int64_t unknown) const {
  return impl_->space.point(unknown);
}

unsigned Discretization::material(std::int64_t cell) const {
  return impl_->space.material(cell);
}

LatticeNode Discretization::first_node(std::int64_t unknown) const {
  return impl_->space.lattices->first_node(unknown);
}

std::optional<Discretization::ExactCode> Discretization::exact_code() const {
  if (!impl_->data.exact || !impl_->data.exact->is_code())
    return std::nullopt;
  return ExactCode{impl_->data.exact->code(), points_of_exact(impl_->space)};
}

ExtremePlaces Discretization::extreme_places(std::span<double const> u, double low, double high) const {
  return assembly::extreme_places(impl_->space, u, low, high);
}

bool Discretization::has_near_numbers() const {
  return impl_->space.box.has_value() || impl_->space.lattices.has_value();
}

SolutionFields Discretization::fields_of(FieldValues<double> const& u, OutputNodes nodes, FieldOptions const& options) const {
  assert(static_cast<std::int64_t>(u.size()) == impl_->space.n_dofs);
  SolutionFields fields = solution_fields(impl_->space, impl_->element, impl_->data, u,
                                          impl_->data.exact ? impl_->shift_of_exact() : 0, nodes, options);
  if (options.flux_points)
    fields.flux_points = this->flux_at_nodes(u, nodes);
  return fields;
}

HostVector<double> Discretization::flux_at_nodes(FieldValues<double> const& u, OutputNodes nodes) const {
  return assembly::flux_at_nodes(impl_->space, impl_->element, impl_->data, u, nodes);
}

MeshParts Discretization::parts() const {
  return mesh_parts(impl_->space, impl_->element);
}

Extent Discretization::extent() const {
  return extent_of(impl_->space);
}

HostVector<double> Discretization::sample(std::span<double const> u, Lattice const& lattice,
                                          HostVector<std::int64_t>* cells) const {
  assert(static_cast<std::int64_t>(u.size()) == impl_->space.n_dofs);
  return assembly::sample(impl_->space, impl_->element, u, lattice, cells);
}

std::vector<LocatedPoint> Discretization::locate(std::span<std::array<double, 3> const> points) const {
  return assembly::locate(impl_->space, impl_->element, points, near_mesh);
}

std::vector<PointSide> Discretization::sides_of(std::span<LocatedPoint const> points) const {
  return assembly::sides_of(impl_->space, impl_->element, impl_->data, points);
}

void Discretization::move_to_cell(LocatedPoint& point, std::int64_t cell) const {
  assembly::move_to_cell(impl_->space, impl_->element, point, cell);
}

std::array<double, 3> Discretization::nearest_node(std::array<double, 3> const& x) const {
  return assembly::nearest_node(impl_->space, x);
}

std::vector<PointValues> Discretization::values_at(ValuesOfUnknowns const& u, std::span<LocatedPoint const> points) const {
  return assembly::values_at(impl_->space, impl_->element, impl_->data, u, impl_->data.exact ? impl_->shift_of_exact() : 0, points);
}

DataFindings Discretization::data_findings() const {
  return check_data(impl_->space, impl_->element, impl_->data);
}

void Discretization::add_findings_at_nodes(std::function<bool(std::int64_t unknown)> const& counts, DataFindings& found) const {
  check_nodes(impl_->space, impl_->element, impl_->data, counts, found);
}

std::vector<std::vector<double>> Discretization::line_cuts() const {
  std::vector<std::vector<double>> cuts;
  for (LineSource const& line : impl_->sources.line_sources)
    cuts.push_back(cell_crossings(impl_->space, impl_->element, line.from, line.to));
  return cuts;
}

void Discretization::set_places_of_sources(SharedPlaces const& shared) {
  impl_->data.point_loads = assembly::point_loads(impl_->space, impl_->element, impl_->sources, shared);
}

PointLoads const& Discretization::point_loads() const {
  return impl_->data.point_loads;
}

std::vector<CellFace> Discretization::boundary_faces() const {
  std::vector<CellFace> faces;
  for (BoundaryFace const& face : impl_->space.boundary_faces)
    faces.push_back({face.cell, face.face});
  std::sort(faces.begin(), faces.end(),
            [](auto const& a, auto const& b) { return std::tie(a.cell, a.face) < std::tie(b.cell, b.face); });
  return faces;
}

BoundarySurface Discretization::surface(ValuesOfUnknowns const& u) const {
  return surface_near_boundary(impl_->space, impl_->element, impl_->data, u);
}

LocalCells const& Discretization::local_cells() const {
  return impl_->space.local;
}

Constraints const& Discretization::hanging_nodes() const {
  return impl_->space.hanging;
}

ErrorIndicators Discretization::estimate_error(Estimator estimator, std::span<double const> u, std::span<double const> dual,
                                               LoadOfEstimate const& of_dual) const {
  return assembly::estimate_error(impl_->space, impl_->element, impl_->data, estimator, u, dual, of_dual);
}

double Discretization::energy_of_error(std::span<double const> u) const {
  return assembly::energy_of_error(impl_->space, impl_->element, impl_->data, u);
}

HostVector<double> Discretization::load_vector(LoadOfEstimate const& load, std::span<double const> lifted) const {
  return assembly::load_vector(impl_->space, impl_->element, impl_->data, load, lifted);
}

HostVector<double> Discretization::transferred_to(Discretization const& next, std::span<double const> u) const {
  return transferred(impl_->space, u, next.impl_->space, impl_->element);
}

HostVector<double> Discretization::lift_of(std::set<unsigned> const& boundaries) const {
  Space const& space = impl_->space;
  // The faces with a Dirichlet condition that an unknown is on, by their area: nearly as fluxes are divided between boundaries.
  HostVector<double> result, all;
  result.resize(space.n_dofs, 0.0);
  all.resize(space.n_dofs, 0.0);
  std::vector<std::int32_t> dofs(static_cast<std::size_t>(space.n_local));
  auto const add_face = [&](std::int32_t cell, int face, unsigned id) {
    space.dofs(cell, dofs.data());
    auto const corner = space.face_vertices(cell, face);
    Point3 const a = space.point(corner[0]), b = space.point(corner[1]), c = space.point(corner[2]), d = space.point(corner[3]);
    double area = 0;  // of a parallelogram; of the others nearly so
    for (std::size_t i = 0; i < 3; ++i) {
      std::size_t const j = (i + 1) % 3, k = (i + 2) % 3;
      double const part = std::max({std::abs((b[j] - a[j]) * (c[k] - a[k]) - (b[k] - a[k]) * (c[j] - a[j])),
                                    std::abs((b[j] - a[j]) * (d[k] - a[k]) - (b[k] - a[k]) * (d[j] - a[j]))});
      area += part * part;
    }
    area = std::sqrt(area);
    auto const add = [&](std::int32_t unknown) {
      all[unknown] += area;
      result[unknown] += boundaries.contains(id) ? area : 0;
    };
    for (int const node : impl_->element.face_nodes(face))
      add(dofs[static_cast<std::size_t>(node)]);
    for_nodes_on_edges(space, dofs, face, add);
  };
  for (BoundaryFace const& face : space.boundary_faces)
    if (condition_on(face.boundary_id) == BoundaryType::dirichlet)
      add_face(face.cell, face.face, face.boundary_id);
  for (InnerFace const& face : space.inner_faces)
    if (condition_inside(face.id) == BoundaryType::dirichlet)
      add_face(face.cells[0], face.faces[0], face.id);
  for (std::int64_t i = 0; i < space.n_dofs; ++i)
    result[i] = all[i] > 0 ? result[i] / all[i] : 0;
  if (space.hanging.size() > 0)
    space.hanging.expand(result);
  return result;
}

std::optional<BoundaryType> Discretization::condition_inside(unsigned id) const {
  BoundaryData const* const condition = impl_->data.inner_at(id);
  return condition == nullptr ? std::nullopt : std::optional(condition->type);
}

std::vector<std::array<std::int32_t, 2>> Discretization::cells_alike() const {
  LocalCells const& local = impl_->space.local;
  std::vector<std::array<std::int32_t, 2>> result;
  auto const add = [&](std::array<std::int32_t, 2> const& cells) {
    result.push_back({local.active[static_cast<std::size_t>(cells[0])], local.active[static_cast<std::size_t>(cells[1])]});
  };
  for (FaceOfTwoCells const& face : local.periodic_faces())
    add(face.cells);
  for (InnerFace const& face : impl_->space.inner_faces)
    add(face.cells);
  return result;
}

bool Discretization::misses_surfaces() const {
  return !impl_->space.local.gaps.empty();
}

BoundaryType Discretization::condition_on(unsigned boundary_id) const {
  return impl_->data.boundary_at(boundary_id).type;
}

HostVector<double> Discretization::integration_weights() const {
  return assembly::basis_integrals(impl_->space, impl_->element);
}

}  // namespace poisson::assembly
