#pragma once

#include "assembly/mesh/coarse_mesh.hpp"
#include "assembly/mesh/counts.hpp"
#include "assembly/problem.hpp"
#include "assembly/space/constraints.hpp"
#include "assembly/space/lattice_numbering.hpp"
#include "assembly/space/space_partition.hpp"
#include "assembly/system/estimates.hpp"
#include "assembly/system/fields.hpp"
#include "assembly/system/linear_system.hpp"
#include "assembly/system/periodic_nodes.hpp"
#include "assembly/system/source_findings.hpp"
#include "gpu/core/box_problem.hpp"
#include "gpu/core/lattice_problem.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace poisson::assembly {

struct DataFindings;
struct LocalCells;  // assembly/space/space.hpp
struct OwnPieces;
struct SolutionResidual;  // assembly/system/boundary_flux.hpp
struct SpaceArrays;
struct VoidBoxProblem;  // assembly/system/void_box.hpp

/// Counts of the refined mesh and of the system on it.
struct MeshSummary {
  std::int64_t cells = 0;
  std::int64_t vertices = 0;
  std::int64_t dofs = 0;         ///< unknowns, constrained ones included
  std::int64_t nnz = 0;          ///< stored entries of the assembled matrix; in an estimate those before Dirichlet rows are emptied
  std::int64_t n_diagonals = 0;  ///< diagonals with entries of a lexicographically numbered box; 0 for other meshes
  std::int64_t lattices = 0;     ///< coarse cells that became lattices, by which the unknowns are numbered; 0: none
  std::int64_t lattice_nodes = 0;  ///< nodes a side of a lattice
  /// It is assembled into CSR only: with more Gauss points than order + 1, or on curved cells of a higher order than the elements'.
  bool only_csr = false;
  int gauss_points = 2;  ///< of the assembly, in each direction
  /// Of a box for gpu/elements: directions in which it repeats itself, since its sides there are periodic.
  std::array<bool, 3> wraps_around{};
  bool box_for_elements = false;   ///< box_problem gives this problem to gpu/elements, as far as the key paths tell
  std::int64_t stencil_faces = 0;  ///< of a box whose inner rows are one stencil (order 1, constant k): nodes on its faces; else 0
  /// The cells of a box of equal cells of order 1 whose k is constant in each of 255 materials or less, without Robin boundaries:
  /// labels and a table are its matrix. Else 0.
  std::int64_t label_cells = 0;
  /// The cells of a box some of which are void, where labels and a table are the matrix on the others (is_for_void_box). Else 0.
  std::array<std::int64_t, 3> void_box{};
  bool periodic = false;       ///< some boundaries are tied to each other, by the configuration or the mesh file
  bool lexicographic = false;  ///< the mesh is a box whose unknowns are numbered lexicographically, x fastest
  bool exact_counts = true;    ///< dofs and nnz are exact: the mesh is conforming, where closed forms give both
  std::set<unsigned> boundary_ids;
  std::set<unsigned> material_ids;
  std::set<unsigned> inner_ids;                             ///< of surfaces inside the mesh
  std::set<unsigned> conditioned_surfaces;                  ///< of these: those that have values of u, or sources
  IdGroups boundary_groups, material_groups, inner_groups;  ///< those that have names, or parts
  LeftOut left_out;                                         ///< as MeshCounts
  std::array<double, 3> low{}, high{};                      ///< corners of the box around the vertices of the unrefined mesh
  std::optional<CellQuality> quality;                       ///< of a mesh file
  std::optional<SurfaceFit> surface;                        ///< of a file that is a surface

  /// Names (or ids) of the surfaces inside the mesh that have no condition: quantities tell what flows through them.
  [[nodiscard]] std::set<std::string> free_surfaces() const;
};

/// Where the matrix is assembled: here, into CSR; or by gpu/elements, on the host or on a device, straight into half_cds or
/// matrix_free. "alone": the host is not expected to ask where nodes inside of lattices are, and has those on rims only, if the
/// mesh allows it (CoarseMesh::can_leave_nodes).
enum class AssembledInto {
  csr,
  half_cds_on_host,
  half_cds_on_device,
  half_cds_on_device_alone,
  matrix_free_on_host,
  matrix_free_on_device,
  matrix_free_on_device_alone
};

/// Bytes of fields that are made while they are written. They are arrays only where more than a file takes them.
struct MadeFields {
  std::int64_t u = 0, exact = 0, error = 0, material = 0, coefficient = 0, flux = 0;  ///< u and `exact`: where u is read in pages
};

/// Bytes of the arrays in host memory that a problem's mesh and assembly take, by what they are. What the solver, the formats and
/// gpu/elements take is not among them.
struct HostMemory {
  std::int64_t program = 0;          ///< code and libraries, deal.II's where the mesh needs them: what the process held before
  std::int64_t making_mesh = 0;      ///< while the space is made, at most: triangulation or nodes of lattices, the space included
  std::int64_t space = 0;            ///< unknowns of cells, nodes, materials, faces of the boundary, numbering; kept to the end
  std::int64_t at_once = 0;          ///< where nodes inside of lattices are left out: faces of lattices while they are made
  std::int64_t csr = 0;              ///< the matrix in CSR, without the entries that Dirichlet values empty
  std::int64_t constraints = 0;      ///< of an assembly into CSR
  std::int64_t lattice_problem = 0;  ///< the problem as gpu/elements takes it; of boxes that it assembles into half_cds nothing
  std::int64_t output = 0;           ///< nodes and fields as the writers take them, without u and what is made
  MadeFields made;
  std::int64_t largest_output = 0;  ///< the largest of the arrays in a file of VTK
};

/// Counts of a problem, and the memory that it will take.
struct Estimate {
  MeshSummary mesh;
  HostMemory memory;
  std::int64_t host_bytes = 0;      ///< what mesh, assembly and fields take at their peak, beside what the process holds
  std::int64_t boundary_faces = 0;  ///< of the mesh
  std::int64_t entries = 0;         ///< of the matrix, without those that Dirichlet values empty
  LatticeLayout layout;             ///< of a problem for gpu/elements that is not a box: its sizes, without tables
  int varying_fields = 0;           ///< how many of the source and the coefficient's components are not constant
  bool constant_k = true;
  bool lattices_for_elements = false;  ///< LatticeSystem assembles it into matrix_free, or into half_cds; else BoxSystem
};

/// A specification that was checked against its mesh before any refinement: expressions, mesh generator or file, and that the
/// boundary conditions and coefficients cover all boundary ids and material ids. Errors: InputError with the key path.
class CheckedProblem {
public:
  explicit CheckedProblem(ProblemSpec spec);
  /// Makes the problem of a process that another one tells what it has found in the mesh, which is no box.
  CheckedProblem(ProblemSpec spec, MeshCounts counts);
  ~CheckedProblem();
  CheckedProblem(CheckedProblem&&) noexcept;

  [[nodiscard]] MeshSummary const& mesh() const;
  [[nodiscard]] MeshCounts const& counts() const;
  /// Notes on the mesh file.
  [[nodiscard]] std::vector<std::string> const& notes() const;
  [[nodiscard]] Estimate estimate(AssembledInto into) const;

  /// Makes what one of several processes has of a mesh of lattices, without the whole mesh. A Discretization of this problem is
  /// then the part on its own pieces and the cells around, if it has any. Returns null where the mesh is none of lattices; this
  /// problem is then of no further use (one process makes the whole, and sends parts: set_part). Errors, `into` and `fill`: those
  /// of Discretization; nodes of ghosts are those that this process makes, until they are set.
  [[nodiscard]] std::shared_ptr<OwnPieces const> share(int rank, int ranks, AssembledInto into = AssembledInto::half_cds_on_host,
                                                       FillLattices const& fill = {});
  /// After share, before all else: a rank places the nodes of its own unknowns, and tells others the coordinates of those that they
  /// have as ghosts, 3 each. Rows as in RankNeighbor::sent; ghosts in the order of the part.
  [[nodiscard]] std::vector<double> points_of_rows(std::span<std::int32_t const> rows) const;
  void set_points_of_ghosts(std::int64_t n_rows, std::span<double const> coordinates);
  /// After share, of a process with pieces: the lattices that these are.
  [[nodiscard]] LatticeLayout const& lattices_of_pieces() const;
  /// After share: what named places hold among the cells of own pieces, and where the nodes around lie.
  struct Places {
    PlaceCounts counts;
    std::array<double, 3> low, high;
  };
  [[nodiscard]] Places places() const;
  /// The sums of that over all parts.
  void set_places_of_whole(PlaceCounts counts);
  /// A Discretization of this problem is then this part (Discretization::arrays_of) of a mesh whose places have their names.
  void set_part(SpaceArrays around);

private:
  friend class Discretization;
  friend PlaceCounts count_places(ProblemSpec const& spec);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// What CheckedProblem predicts.
[[nodiscard]] Estimate estimate(ProblemSpec const& spec, AssembledInto into = AssembledInto::csr);

/// What named places hold in a box, or in a part of it. Errors: InputError for wrong expressions.
[[nodiscard]] PlaceCounts count_places(ProblemSpec const& spec);

/// A Galerkin discretisation of -div(k grad u) = f with Q_p elements. The
/// constructor builds the mesh (a box needs none: everything follows from the indices) and numbers the unknowns: lexicographically
/// on boxes, by lattices on refined meshes, by Cuthill-McKee elsewhere. Vectors u and x have one value per unknown, in this
/// numbering; u_i is the value at node i. Errors: InputError with the key path for anything wrong in the specification or the mesh
/// file; EnvironmentError when the memory that `estimate` predicts is not available; Interrupted after an interrupt was requested.
class Discretization {
public:
  /// `fill`: makes the nodes of lattices where they are left out (AssembledInto); null: no device does.
  explicit Discretization(CheckedProblem problem, AssembledInto into = AssembledInto::csr, FillLattices const& fill = {});
  explicit Discretization(ProblemSpec spec, AssembledInto into = AssembledInto::csr);
  /// The part on these cells of a mesh that is no box; see Space. A part does not tell whether the problem is pure Neumann.
  Discretization(Discretization const& whole, std::span<std::int32_t const> cells, std::span<std::int32_t const> unknowns);
  /// The own pieces of lattices, without the cells around, of what a problem with a share has; see OwnPieces::in_pieces.
  Discretization(Discretization const& around, OwnPieces const& own);
  ~Discretization();
  Discretization(Discretization&&) noexcept;

  [[nodiscard]] MeshSummary const& summary() const;
  /// What the user should know: what was changed while the mesh file was read, and faces and cells that are cut by the places that
  /// name boundaries and regions.
  [[nodiscard]] std::vector<std::string> const& notes() const;
  /// The linear system. Threaded; the result has the same bits for any number of threads.
  [[nodiscard]] LinearSystem assemble();
  /// Returns the problem for the assembly on the backend (gpu/elements) when it has trilinear elements on a box, else nothing.
  /// Sides of a part of a box that lie inside the whole are BoxProblem::Face::Type::cut.
  [[nodiscard]] std::optional<BoxProblem> box_problem() const;
  /// Returns the box problem with trilinear elements, whatever the order of the space is, for multigrid.
  [[nodiscard]] std::optional<BoxProblem> box_problem_of_order_one() const;
  /// Returns the problem on what void left of a box; see system/void_box.hpp. Precondition: summary().void_box.
  [[nodiscard]] VoidBoxProblem void_box_problem() const;
  /// Returns the problem for gpu/elements with elements of any order on lattices. A cell is a lattice where there are no larger
  /// ones. Errors: those of `assemble` for the data on the boundary; InputError where the tables would exceed 32-bit indices.
  [[nodiscard]] LatticeProblem lattice_problem() const;
  /// Returns the mesh for what is asked of a solution on the backend. Its materials are those of the summary, in their order.
  /// Preconditions: those of lattice_problem(); this outlives it.
  [[nodiscard]] LatticeGeometry lattice_geometry() const;
  /// Returns the same of a rank's own cells, where this is the part on these cells; see system/lattice_problem.hpp.
  [[nodiscard]] LatticeGeometry lattice_geometry(Discretization const& around, std::span<std::int32_t const> in_around) const;
  /// Returns the problem of a rank's own pieces of lattices, where this is the part on the cells around them; see
  /// system/lattice_problem.hpp. Precondition: set_dirichlet_values was called.
  [[nodiscard]] LatticeProblem lattice_problem_of_pieces() const;
  /// Returns the problem of a rank's own cells, where this is the part on these cells; see system/lattice_problem.hpp.
  [[nodiscard]] LatticeProblem lattice_problem(std::span<std::int32_t const> number, std::span<double const> dirichlet,
                                               bool with_source) const;
  /// Counts the entries that Dirichlet values take out of the matrix, where this is the part around own rows; see
  /// system/lattice_problem.hpp.
  [[nodiscard]] std::int64_t emptied_entries(DirichletValues const& dirichlet,
                                             std::function<bool(std::int64_t)> const& is_row) const;
  /// (int f + int g) / (int |f| + int |g|) of a pure Neumann problem. Throws InputError where that is too far from 0 for a
  /// solution.
  [[nodiscard]] static double compatibility_defect(double total, double absolute);
  /// What warnings about the source come from (`SourceFindings::warning`); findings of parts can be added. The second function
  /// takes the integral of |f| over all cells, and for every line of cells in x of a box or of lattices the largest integral of
  /// |f| over one of its cells.
  [[nodiscard]] SourceFindings source_findings() const;
  [[nodiscard]] SourceFindings source_findings(double absolute, SourceLines const& lines) const;
  /// What the data are like at the Gauss points, by the host: see check_data.
  [[nodiscard]] DataFindings data_findings() const;
  /// See check_nodes.
  void add_findings_at_nodes(std::function<bool(std::int64_t unknown)> const& counts, DataFindings& found) const;
  /// Tells for each line source the t in [0, 1] where it goes from one cell to another, ascending, as far as this part of a mesh
  /// knows them.
  [[nodiscard]] std::vector<std::vector<double>> line_cuts() const;
  /// Computes the loads of a part anew, with what all parts know.
  void set_places_of_sources(SharedPlaces const& shared);
  /// The loads of point and line sources, those of unknowns with Dirichlet values among them. `assemble` adds them to its
  /// right-hand side; box_problem and lattice_problem leave that to the caller.
  [[nodiscard]] PointLoads const& point_loads() const;
  /// Subtracts a constant source from the right-hand side of a pure Neumann problem, so that it is orthogonal to constants.
  void make_compatible(HostVector<double>& rhs) const;
  /// Shifts u so that its integral is zero.
  void subtract_mean(HostVector<double>& u) const;
  /// What that assembly found wrong with the data, in the words of the assembly here: throws InputError.
  [[noreturn]] void refuse(DataError const& error) const;
  /// u = C x + g from the solution x of a system of this discretisation. In a pure Neumann problem u is shifted so that its
  /// integral is zero.
  [[nodiscard]] HostVector<double> reconstruct(LinearSystem const& system, HostVector<double> x) const;
  /// Norms of u - exact. In a pure Neumann problem the mean of `exact` is subtracted from it first. Precondition: the specification
  /// has `exact`. Errors: InputError where `exact` is not finite.
  [[nodiscard]] ErrorNorms errors(std::span<double const> u) const;
  /// What several processes work on (assembly/space/space_partition.hpp). This discretisation outlives it.
  [[nodiscard]] DividedSpace divided(int ranks) const;
  /// The part on these cells with these unknowns, for CheckedProblem::set_part; see Space.
  [[nodiscard]] SpaceArrays arrays_of(std::span<std::int32_t const> cells, std::span<std::int32_t const> unknowns) const;
  /// P from elements of order 1 on the same cells: its rows and columns are the unknowns here; columns only those at vertices,
  /// whose trilinear functions it evaluates at the nodes.
  [[nodiscard]] CsrMatrix prolongation_of_order_one() const;
  /// Whether u is determined up to a constant. Throws InputError where only some parts of the mesh that do not touch have
  /// conditions.
  [[nodiscard]] bool is_pure_neumann() const;
  /// Whether the boundary has Neumann or Robin values, and no others.
  [[nodiscard]] bool is_natural(unsigned boundary_id) const;
  /// The fluxes through boundaries that are not natural, as far as the unknowns with counted[i] != 0 make them; see
  /// boundary_fluxes.
  [[nodiscard]] BoundaryFluxes residual_fluxes(std::span<double const> u, std::span<std::uint8_t const> counted,
                                               std::span<double const> u_low = {}) const;
  /// See solution_residual; of a pure Neumann problem with the sources as they are given.
  [[nodiscard]] SolutionResidual residual(std::span<double const> u, std::span<double const> u_low) const;
  /// See boundary_flux.hpp; numbers of nodes are those of the whole mesh.
  void add_periodic_fluxes(std::span<PeriodicFlux const> of_whole, BoundaryFluxes& to) const;
  /// The nodes on periodic boundaries of this part, and what ties those of all parts; see periodic.hpp.
  [[nodiscard]] std::vector<PeriodicNode> periodic_nodes() const;
  [[nodiscard]] std::vector<PeriodicTie> periodic_ties(std::span<PeriodicNode const> of_whole) const;
  /// The integrals of f and |f|, by the assembly's quadrature, without point and line sources; and those of Neumann and Robin
  /// values over the boundary.
  [[nodiscard]] FieldSums source_integral() const;
  [[nodiscard]] FieldSums boundary_integral() const;
  /// Multiplies f so that its integral over the whole mesh, now of_whole.sum, becomes `total`. Throws InputError where it is 0.
  void scale_source(double total, FieldSums const& of_whole);
  /// The Dirichlet value of every unknown; NaN where it has none. Of a part of a box whose boundaries have names, an unknown on its
  /// rim may have its face outside of it: set_dirichlet_values gives those of the whole.
  [[nodiscard]] std::vector<double> dirichlet_values() const;
  void set_dirichlet_values(std::span<double const> values);
  /// The same, of meshes of lattices for the unknowns on rims alone.
  [[nodiscard]] DirichletValues dirichlet_on_rims() const;
  void set_dirichlet_on_rims(DirichletValues const& given);
  [[nodiscard]] bool has_exact() const;
  /// Returns the integral of `exact` over this mesh or part, and the volume.
  [[nodiscard]] ExactMean mean_of_exact() const;
  /// Gives a part the mean of `exact` over the whole mesh. In a pure Neumann problem the part takes it off `exact`.
  void set_mean_of_exact(double mean);
  /// Minimum, maximum, mean, energy of u, and what flows through the boundaries, as far as boundary_fluxes has it from unknowns
  /// with counted[i] != 0 (empty: all). Threaded; the same bits for any number of threads. Precondition: u is finite.
  [[nodiscard]] Quantities quantities(std::span<double const> u, std::span<std::uint8_t const> counted = {},
                                      std::span<double const> u_low = {}) const;
  /// What quantities() tells of boundaries and of surfaces inside a mesh that is no box, from u near them; see
  /// system/near_boundary.hpp.
  [[nodiscard]] BoundaryFluxes fluxes_near_boundary(ValuesOfUnknowns const& u, ValuesOfUnknowns const& u_low,
                                                    CountedUnknowns const& counted = {}) const;
  /// What quantities() tells of the boundary of a box, from u near its sides; of a part, what `own` cells have of it. See
  /// system/box_boundary.hpp, for nodes_among, too, which is of a box.
  [[nodiscard]] std::map<unsigned, BoundaryFlux> box_boundary_fluxes(NodesOfBox const& u, NodesOfBox const& u_low,
                                                                     std::optional<BoxPart> const& own,
                                                                     InsideOfSide const& inside) const;
  [[nodiscard]] NodesOfBox nodes_among(ValuesOfUnknowns const& u) const;
  /// The node of an unknown.
  [[nodiscard]] std::array<double, 3> point(std::int64_t unknown) const;
  /// The material of a cell.
  [[nodiscard]] unsigned material(std::int64_t cell) const;
  /// Of a mesh of lattices: the first node of lattices that an unknown stands for.
  [[nodiscard]] LatticeNode first_node(std::int64_t unknown) const;
  /// `exact` for evaluations on the backend, and the Gauss points per direction of errors() and mean_of_exact(). Returns nothing
  /// where it is not set, or only the host can evaluate it.
  struct ExactCode {
    ExpressionCode code;
    int points = 0;
  };
  [[nodiscard]] std::optional<ExactCode> exact_code() const;
  /// Finds the first node, by z, then y, then x, of those with u <= low, and the first of those with u >= high.
  [[nodiscard]] ExtremePlaces extreme_places(std::span<double const> u, double low, double high) const;
  /// The nodes and cells to be written, and u, the coefficient and the flux on them, and what the options ask for.
  [[nodiscard]] OutputMesh output_mesh(OutputNodes nodes = OutputNodes::equidistant) const;
  [[nodiscard]] SolutionFields fields(std::span<double const> u, OutputNodes nodes = OutputNodes::equidistant,
                                      FieldOptions const& options = {}) const {
    return fields_of(FieldValues<double>::view(u), nodes, options);
  }
  /// The same of u that may be made, of which some parts at a time are asked for.
  [[nodiscard]] SolutionFields fields_of(FieldValues<double> const& u, OutputNodes nodes = OutputNodes::equidistant,
                                         FieldOptions const& options = {}) const;
  /// Whether unknowns that are near have numbers that are near, on boxes and lattices: some pages of all values have those of many
  /// cells that follow each other.
  [[nodiscard]] bool has_near_numbers() const;
  /// -k grad u per node, as SolutionFields::flux_points.
  [[nodiscard]] HostVector<double> flux_at_nodes(FieldValues<double> const& u, OutputNodes nodes) const;
  /// Sizes and places of the boundaries and materials. Errors: InputError for an inverted cell.
  [[nodiscard]] MeshParts parts() const;
  /// The axis-aligned bounding box of all nodes.
  [[nodiscard]] Extent extent() const;
  /// u at the points of a lattice, lattice.size() values, x fastest; NaN at points outside the mesh. A point on the boundary of
  /// several cells is evaluated in the one with the lowest number, which `cells`, unless null, gets; -1 outside.
  [[nodiscard]] HostVector<double> sample(std::span<double const> u, Lattice const& lattice,
                                          HostVector<std::int64_t>* cells = nullptr) const;
  /// The cells of points. Those outside of the mesh by 1 % of a cell at most are moved onto it.
  [[nodiscard]] std::vector<LocatedPoint> locate(std::span<std::array<double, 3> const> points) const;
  /// The cells that have points on their surface; see sides_of. Then the cell of a point that is on the surface of several.
  [[nodiscard]] std::vector<PointSide> sides_of(std::span<LocatedPoint const> points) const;
  void move_to_cell(LocatedPoint& point, std::int64_t cell) const;
  [[nodiscard]] std::array<double, 3> nearest_node(std::array<double, 3> const& x) const;
  /// u and what follows from it at points inside the mesh, from u in their cells.
  [[nodiscard]] std::vector<PointValues> values_at(ValuesOfUnknowns const& u, std::span<LocatedPoint const> points) const;
  /// The faces of cells on the boundary of the mesh, by cell, then face. Of a part: those on the boundary of the whole.
  [[nodiscard]] std::vector<CellFace> boundary_faces() const;
  /// u and its flux on the boundary of the mesh.
  [[nodiscard]] BoundarySurface surface(ValuesOfUnknowns const& u) const;
  /// Of a mesh that was refined locally, here and below; see Space and system/error_estimate.hpp.
  [[nodiscard]] LocalCells const& local_cells() const;
  [[nodiscard]] Constraints const& hanging_nodes() const;
  [[nodiscard]] ErrorIndicators estimate_error(Estimator estimator, std::span<double const> u, std::span<double const> dual = {},
                                               LoadOfEstimate const& of_dual = {}) const;
  [[nodiscard]] double energy_of_error(std::span<double const> u) const;
  [[nodiscard]] HostVector<double> load_vector(LoadOfEstimate const& load, std::span<double const> lifted = {}) const;
  [[nodiscard]] HostVector<double> transferred_to(Discretization const& next, std::span<double const> u) const;
  /// 1 at the unknowns on boundaries with these ids and a Dirichlet condition, 0 elsewhere; between at those that are on other such
  /// boundaries, too. Continuous.
  [[nodiscard]] HostVector<double> lift_of(std::set<unsigned> const& boundaries) const;
  /// Pairs of cells of a mesh that is refined locally which stay alike, by their numbers among the active cells: at boundaries that
  /// are joined, and at surfaces inside the mesh.
  [[nodiscard]] std::vector<std::array<std::int32_t, 2>> cells_alike() const;
  /// Whether surfaces are known that the cells of a mesh which is refined locally only come near (LocalCells::gaps).
  [[nodiscard]] bool misses_surfaces() const;
  /// The condition on a boundary.
  [[nodiscard]] BoundaryType condition_on(unsigned boundary_id) const;
  /// The condition on a surface inside the mesh; nothing: it has none.
  [[nodiscard]] std::optional<BoundaryType> condition_inside(unsigned id) const;

  /// w_i, the integral of the basis function of unknown i (a lumped mass matrix): sum_i w_i u_i v_i approximates the integral of u
  /// v.
  [[nodiscard]] HostVector<double> integration_weights() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace poisson::assembly
