#pragma once

#include "assembly/expression/expression.hpp"
#include "assembly/image/image_spec.hpp"
#include "gpu/core/names.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

/// The problem to be solved, as plain data. Key paths in errors are those of the YAML file, e.g. "problem.boundary[1].ids".
namespace poisson::assembly {

/// A name for the boundary faces, or for the cells, whose centre satisfies `where`, an expression that is not 0 there.
struct NamedPlace {
  std::string name, where;
  bool is_void = false;  ///< regions only: the cells are not there; `name` is that of their surface, a boundary
};

/// Until where the cells of a graded box grow: to its end, or to its middle, from where on they shrink in the same way.
enum class GrowthTo { end, middle };

/// What the entries of `boundaries` and `regions` of a mesh hold, and the ids that its faces and cells have with them.
struct PlaceCounts {
  struct OfEntry {
    std::int64_t held = 0, cut = 0;  ///< faces, or cells; and those that the place cuts
  };
  std::vector<OfEntry> boundaries, regions;
  std::set<unsigned> boundary_ids, material_ids;
};

/// Cells first, first + 1, ... of a box, `cells` of them in each direction, counted after all refinements.
struct BoxPart {
  std::array<std::int64_t, 3> first{}, cells{};
  [[nodiscard]] std::int64_t n_cells() const { return cells[0] * cells[1] * cells[2]; }
};

/// What the conditions of a problem do on boundaries and surfaces, as far as their texts tell: by it parts of a mesh are left out
/// that nothing fixes.
struct ConditionEffects {
  struct OfCondition {
    bool all_ids = false;  ///< as BoundaryCondition, and so are:
    std::vector<unsigned> ids;
    std::vector<std::string> names;
    bool fixes = false;  ///< u: Dirichlet values, or Robin's with alpha > 0
    bool binds = false;  ///< what it touches must stay: periodic boundaries, and fluxes that enter
  };
  std::vector<OfCondition> list;
  bool has_source = false;
};

struct Mesh;
struct KeptMesh {
  std::shared_ptr<Mesh> mesh;  ///< null: none, or it was taken
};

/// How a mesh was refined locally, one cycle after the other, so that it can be made again. Cells are numbered as deal.II numbers
/// the active cells of the mesh that a cycle begins with (LocalCells::active); ascending.
struct LocalRefinement {
  struct Cycle {
    std::vector<std::int32_t> refine;   ///< each becomes 8, and so do others, so that neighbours differ by one level at most
    std::vector<std::int32_t> coarsen;  ///< 8 of one parent become it again, where that is allowed
    /// Pairs of cells at periodic boundaries, and at surfaces inside the mesh, which stay of one size: both are refined, or none.
    std::vector<std::array<std::int32_t, 2>> alike{};
  };
  std::vector<Cycle> cycles;  ///< after the global refinements
  /// What carries the mesh of these cycles, once a space is made on it, to a refinement with more of them; that takes it, and makes
  /// these only. Null: every mesh is made from the beginning.
  std::shared_ptr<KeptMesh> kept{};
};

/// A hexahedral mesh: the box, which may be that of an image, a generator of deal.II, or a file.
struct MeshSpec {
  std::string generator = "box";  ///< "box", or a deal.II GridGenerator name
  std::string arguments;          ///< of the generator, in deal.II's notation, "0, 0, 0 : 0.5 : 1 : 12"; empty: its defaults
  std::string file;               ///< a mesh file instead of a generator; empty when a generator is used
  bool join = true;               ///< file only: nodes of the file that coincide are one
  /// VTK's files only: the cell data with the materials of cells, and those with the ids of faces. Empty: found by usual names.
  std::string array, boundary_array;
  std::optional<std::int64_t> step{};  ///< VTKHDF files of several steps only: which one, from 0; -1 the last
  /// What is read in place of `file`, which messages name: the bytes of such a step as a file of its own, or what gmsh made of a
  /// drawing.
  std::shared_ptr<std::string const> content{};
  std::vector<std::string> content_notes{};  ///< what is to be known of the content, without the name of the file
  /// Drawings (is_drawing) and surfaces (is_surface) only: the edges of cells wanted, > 0. None: the drawing's own; `cells` in the
  /// box around a surface.
  std::optional<double> size{};
  /// Drawings only: the order of the cells' shapes, 1 or 2. None: 1.
  std::optional<std::int64_t> shape_order{};
  bool allow_commands = false;                    ///< drawings only: a .geo file may start programs and write files
  double time_limit = 600;                        ///< drawings only: seconds that gmsh may take
  double scale = 1;                               ///< file only: every coordinate is multiplied by it, > 0
  std::array<double, 3> origin{0, 0, 0};          ///< box only
  std::array<double, 3> extent{1, 1, 1};          ///< box only: lengths of the edges, > 0
  std::array<std::int64_t, 3> cells{32, 32, 32};  ///< box and surfaces only: per direction before refinement, >= 1
  std::array<double, 3> growth{1, 1, 1};          ///< box only: edge of a cell / edge of the one before it, per direction, > 0
  std::array<GrowthTo, 3> growth_to{};            ///< box only
  /// Box only: ascending coordinates of the vertices before refinement. Empty: origin, extent, cells and growth say where they are;
  /// else the first three agree with them (set_coordinates), and growth is 1.
  std::array<std::vector<double>, 3> coordinates;
  ImageSpec image;  ///< box only: where its cells and materials come from; `origin`, `extent` and `cells` agree with it
  /// The materials of the cells of an image, before refinement. Null: it was not read, and they are not known.
  std::shared_ptr<LabelImage const> labels{};
  int refinements = 0;  ///< number of global refinements; each splits a cell into 8
  /// Set: cells may have several levels, with hanging nodes between them. A box is then a mesh like any other.
  std::shared_ptr<LocalRefinement const> local{};
  /// Box only: the part of it that this process works on, where several share it. What bounds the part inside of the box is no
  /// boundary. Conditions and sources are those of the whole box.
  std::optional<BoxPart> part{};
  /// Set for a part of a box with named places: what these places hold in the whole box.
  std::optional<PlaceCounts> places_of_whole{};
  bool shared = false;  ///< several processes share the mesh, so that 32-bit indices need not number all of it
  std::vector<NamedPlace> boundaries, regions;  ///< of faces that two entries hold, the later one counts; so of cells
  /// Materials whose cells are not there, by names of the file or of regions, and by ids of the file.
  std::set<std::string> void_names{};
  std::set<int> void_ids{};
  /// With void only: parts of what is left are left out, too, that no condition fixes, unless there is a source. None: nothing is.
  std::optional<ConditionEffects> conditions{};

  [[nodiscard]] bool is_void(NamedPlace const& region) const { return region.is_void || void_names.contains(region.name); }
  /// Whether cells are taken out of the mesh: those of the unrefined mesh whose centre a void region holds, and whole materials.
  /// What is left of a box is no box.
  [[nodiscard]] bool has_void() const {
    return !void_names.empty() || !void_ids.empty() ||
           std::any_of(regions.begin(), regions.end(), [](NamedPlace const& region) { return region.is_void; });
  }
  /// Whether boundaries or materials follow from expressions, and not from the mesh alone.
  [[nodiscard]] bool has_places() const { return !boundaries.empty() || !regions.empty(); }
  /// Whether the cells of a box differ in size, as far as the keys tell.
  [[nodiscard]] bool is_graded() const {
    return growth != std::array<double, 3>{1, 1, 1} ||
           std::any_of(coordinates.begin(), coordinates.end(), [](auto const& x) { return !x.empty(); });
  }
  /// Box only: cells per direction after all refinements.
  [[nodiscard]] std::array<std::int64_t, 3> refined_cells() const {
    return {cells[0] << refinements, cells[1] << refinements, cells[2] << refinements};
  }
  /// Gives a direction these vertices, two or more. Origin, extent and cells follow.
  void set_coordinates(std::size_t direction, std::vector<double> x) {
    origin[direction] = x.front();
    extent[direction] = x.back() - x.front();
    cells[direction] = static_cast<std::int64_t>(x.size()) - 1;
    coordinates[direction] = std::move(x);
  }
};

enum class BoundaryType { dirichlet, neumann, robin, periodic };
}  // namespace poisson::assembly

template <>
struct poisson::Names<poisson::assembly::GrowthTo> {
  static constexpr std::array<Named<assembly::GrowthTo>, 2> values{
      {{assembly::GrowthTo::end, "end"}, {assembly::GrowthTo::middle, "middle"}}};
};

template <>
struct poisson::Names<poisson::assembly::BoundaryType> {
  static constexpr std::array<Named<assembly::BoundaryType>, 4> values{{{assembly::BoundaryType::dirichlet, "dirichlet"},
                                                                        {assembly::BoundaryType::neumann, "neumann"},
                                                                        {assembly::BoundaryType::robin, "robin"},
                                                                        {assembly::BoundaryType::periodic, "periodic"}}};
};

namespace poisson::assembly {

/// A condition on the boundary faces with the given ids or names; n is the outward normal.
struct BoundaryCondition {
  bool all_ids = false;  ///< the condition holds on every boundary id that no other condition lists
  std::vector<unsigned> ids;
  std::vector<std::string> names;
  BoundaryType type{};
  std::string value = "0";  ///< expression. Dirichlet: u = value; Neumann: k du/dn = value; Robin: k du/dn + alpha u = value;
                            ///< periodic: u on the second boundary = u on the first + value (at places of the second)
  std::string alpha = "0";  ///< expression, Robin only; >= 0 wherever it is evaluated
  /// Periodic only: takes the first boundary to the second, x -> M x + t, as rows (m, m, m, t). None: a translation, which is
  /// found.
  std::optional<std::array<double, 12>> map{};
};

/// A coordinate system that is turned about an axis.
struct FrameSpec {
  std::string name;
  std::array<double, 3> axis{};  ///< of any length but 0
  double angle = 0;              ///< in degrees; counterclockwise where the axis points at the observer
};

/// k of one material: one expression (isotropic), three (orthotropic: k_x, k_y, k_z), or the six of a symmetric tensor (xx, yy, zz,
/// xy, xz, yz). With the name of a frame three are the values along its axes.
struct CoefficientExpressions : std::vector<std::string> {
  using std::vector<std::string>::vector;
  std::string frame;
  /// Whether the tensor has entries off its diagonal.
  [[nodiscard]] bool is_full() const { return size() == 6 || !frame.empty(); }
};

/// What enters the domain at a point, an integral of the source.
struct PointSource {
  std::array<double, 3> at{};
  double value = 0;
};

/// What enters along a straight line, for each unit of its length.
struct LineSource {
  std::array<double, 3> from{}, to{};
  std::string value;  ///< expression
};

/// -div(k grad u) = f on a mesh, with boundary conditions. Strings are expressions in x, y, z (assembly/expression).
struct ProblemSpec {
  std::map<std::string, double> parameters;  ///< constants that every expression may use
  PointFunctions fields;                     ///< functions of a place that every expression may use
  MeshSpec mesh;
  int order = 1;  ///< p of Q_p, 1..8
  /// Gauss points in each direction, p + 1 or more. None: p + 1, or as many as curved cells of a mesh file need.
  std::optional<std::int64_t> quadrature{};
  /// k by material id. Key -1: every material without an entry of its own.
  std::map<int, CoefficientExpressions> coefficient{{-1, {"1"}}};
  std::map<std::string, CoefficientExpressions> coefficient_of_name;  ///< k by the name of a material
  std::vector<FrameSpec> frames;                                      ///< for coefficients
  std::string source = "0";                                           ///< f, in every material without an entry of its own
  std::map<int, std::string> source_of_material;
  std::map<std::string, std::string> source_of_name;  ///< f by the name of a material
  std::optional<double> source_total;                 ///< f is scaled so that this is its integral
  std::vector<PointSource> point_sources;             ///< beside f, and not scaled
  std::vector<LineSource> line_sources;
  std::vector<BoundaryCondition> boundary;
  std::optional<std::string> exact;  ///< the exact solution, where it is known: error norms are then computed

  /// The names for expressions.
  [[nodiscard]] ExpressionNames names() const { return {parameters, fields}; }
  /// Whether k of some material has entries off its diagonal.
  [[nodiscard]] bool has_full_tensor() const {
    auto const full = [](auto const& entry) { return entry.second.is_full(); };
    return std::any_of(coefficient.begin(), coefficient.end(), full) ||
           std::any_of(coefficient_of_name.begin(), coefficient_of_name.end(), full);
  }
  /// Whether f is one expression for the whole mesh.
  [[nodiscard]] bool has_one_source() const { return source_of_material.empty() && source_of_name.empty(); }
};

}  // namespace poisson::assembly
