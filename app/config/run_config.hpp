#pragma once

#include "assembly/problem.hpp"
#include "assembly/system/estimates.hpp"
#include "gpu/core/context.hpp"
#include "gpu/formats/format.hpp"
#include "gpu/solvers/solver.hpp"
#include "output/picture/color_map_names.hpp"
#include "output/vtk/point_field.hpp"
#include "output/vtk/vtk_files.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

/// The configuration of a run as plain data: complete with defaults, and checked.
namespace poisson::app {

/// The keys of `matrix`, and solver.matrix_precision.
struct MatrixOptions : FormatOptions {
  std::optional<Format> format;  ///< no value: auto
  std::optional<std::int64_t>
      expected_products;  ///< number of products that auto optimises for; no value: expected_products of the solver's options

  [[nodiscard]] FormatOptions const& format_options() const { return *this; }
};

/// What an entry of analysis.svd decomposes.
enum class AnalysisOf { operator_, field, snapshots };
}  // namespace poisson::app

template <>
struct poisson::Names<poisson::app::AnalysisOf> {
  static constexpr std::array<Named<app::AnalysisOf>, 3> values{
      {{app::AnalysisOf::operator_, "operator"}, {app::AnalysisOf::field, "field"}, {app::AnalysisOf::snapshots, "snapshots"}}};
};

namespace poisson::app {

enum class SampleShape { plane, box };
}  // namespace poisson::app

template <>
struct poisson::Names<poisson::app::SampleShape> {
  static constexpr std::array<Named<app::SampleShape>, 2> values{
      {{app::SampleShape::plane, "plane"}, {app::SampleShape::box, "box"}}};
};

namespace poisson::app {

enum class Direction { x, y, z };
}  // namespace poisson::app

template <>
struct poisson::Names<poisson::app::Direction> {
  static constexpr std::array<Named<app::Direction>, 3> values{
      {{app::Direction::x, "x"}, {app::Direction::y, "y"}, {app::Direction::z, "z"}}};
};

namespace poisson::app {

/// An entry of analysis.svd. Comments name the kinds that a member applies to.
struct AnalysisSpec {
  AnalysisOf of{};
  std::int64_t modes = 4;         ///< operator: number written from each end of the spectrum; snapshots: the most that are kept
  std::int64_t max_dense = 4096;  ///< operator: with more free unknowns only the extreme eigenvalues are estimated
  SampleShape sample = SampleShape::plane;  ///< field
  std::optional<std::int64_t> points;       ///< field: per direction; no value: 256 on a plane, 64 in a box
  Direction normal = Direction::z;          ///< field: normal of the plane
  std::optional<double> at;                 ///< field: coordinate of the plane; no value: the middle of the mesh
  double error = 1e-6;                      ///< field: relative error allowed, in the Frobenius norm
  std::optional<std::int64_t> leave_out;    ///< snapshots: number of the case to leave out; no value: the middle one

  [[nodiscard]] std::int64_t points_per_direction() const { return points.value_or(sample == SampleShape::plane ? 256 : 64); }
};

/// Conditions of the problems that give the effective tensor of a box.
enum class EffectiveConditions { none, periodic, fixed, both };
}  // namespace poisson::app

template <>
struct poisson::Names<poisson::app::EffectiveConditions> {
  static constexpr std::array<Named<app::EffectiveConditions>, 4> values{{{app::EffectiveConditions::none, "none"},
                                                                          {app::EffectiveConditions::periodic, "periodic"},
                                                                          {app::EffectiveConditions::fixed, "fixed"},
                                                                          {app::EffectiveConditions::both, "both"}}};
};

namespace poisson::app {

/// analysis.effective. With it the problem of the run is one of those that give the tensor: problem.boundary, which then cannot be
/// given, holds its conditions (set_effective_problem).
struct EffectiveSpec {
  EffectiveConditions conditions = EffectiveConditions::none;
  Direction direction = Direction::x;  ///< of the mean gradient in the problem of the run
  /// Parts of the box whose tensors are compared with that of the whole. Positions follow from the seed; the first ones stay where
  /// there are more.
  struct SubVolumes {
    std::array<std::int64_t, 3> size{};  ///< cells of the mesh after all refinements; 0: there are no sub-volumes
    std::int64_t count = 10, seed = 1;
    [[nodiscard]] bool is_asked() const { return size[0] > 0; }
  } sub_volumes{};
  [[nodiscard]] bool is_asked() const { return conditions != EffectiveConditions::none; }
  [[nodiscard]] bool has_periodic() const { return is_asked() && conditions != EffectiveConditions::fixed; }
  [[nodiscard]] bool has_fixed() const { return is_asked() && conditions != EffectiveConditions::periodic; }
};

/// How cells are chosen to be refined.
enum class Marking { doerfler, fixed_fraction };
/// The order of elements on meshes that are refined adaptively: problem.element.order, or that which reaches the tolerance with
/// least work.
enum class AdaptiveOrders { given, automatic };
}  // namespace poisson::app

template <>
struct poisson::Names<poisson::app::Marking> {
  static constexpr std::array<Named<app::Marking>, 2> values{
      {{app::Marking::doerfler, "doerfler"}, {app::Marking::fixed_fraction, "fixed_fraction"}}};
};
template <>
struct poisson::Names<poisson::app::AdaptiveOrders> {
  static constexpr std::array<Named<app::AdaptiveOrders>, 2> values{
      {{app::AdaptiveOrders::given, "given"}, {app::AdaptiveOrders::automatic, "auto"}}};
};

namespace poisson::app {

/// An error that one can live with, in units of the value or as a share of it.
struct ErrorGoal {
  double value = 0;
  bool relative = false;
};

/// problem.mesh.adaptive
struct AdaptiveSpec {
  std::optional<ErrorGoal> tolerance;  ///< none: no adaptive refinement
  std::string target;                  ///< a quantity; empty: the error in the energy norm
  double max_unknowns = 20e6;
  std::int64_t max_cycles = 15, max_levels = 20;
  assembly::Estimator estimator = assembly::Estimator::local_problems;
  Marking marking = Marking::doerfler;
  AdaptiveOrders orders = AdaptiveOrders::given;
  std::optional<double> fraction;
  double coarsen_fraction = 0;
  bool keep_cycles = false;

  [[nodiscard]] bool is_asked() const { return tolerance.has_value(); }
  [[nodiscard]] bool chooses_order() const { return is_asked() && orders == AdaptiveOrders::automatic; }
};

/// What the solution's file for ParaView may hold, in its order there.
enum class SolutionField { u, exact, error, material, coefficient, flux, flux_points, gradient, level, estimator };
}  // namespace poisson::app

template <>
struct poisson::Names<poisson::app::SolutionField> {
  static constexpr std::array<Named<app::SolutionField>, 10> values{{{app::SolutionField::u, "u"},
                                                                     {app::SolutionField::exact, "exact"},
                                                                     {app::SolutionField::error, "error"},
                                                                     {app::SolutionField::material, "material"},
                                                                     {app::SolutionField::coefficient, "coefficient"},
                                                                     {app::SolutionField::flux, "flux"},
                                                                     {app::SolutionField::flux_points, "flux_points"},
                                                                     {app::SolutionField::gradient, "gradient"},
                                                                     {app::SolutionField::level, "level"},
                                                                     {app::SolutionField::estimator, "estimator"}}};
};

namespace poisson::app {

/// A field in a file, which expressions may use by its name.
struct FieldSpec {
  std::string name, file;
  std::string array;  ///< which array or column; empty: the only one
  output::FieldInterpolation interpolation = output::FieldInterpolation::linear;
  std::optional<std::int64_t> step{};  ///< of a file with several, from 0; -1 the last
  std::string key;  ///< path of the key that names the file where an expression may stand; empty: an entry of problem.fields
};

/// A point at which the solution is evaluated.
struct ProbeSpec {
  std::string name;
  std::array<double, 3> at{};
};

/// Equidistant points on a line, both ends included.
struct LineSpec {
  std::string name;
  std::array<double, 3> from{}, to{};
  std::int64_t points = 101;
};

/// Points on a circle at equal angles, the first one again at the end.
struct CircleSpec {
  std::string name;
  std::array<double, 3> center{}, normal{0, 0, 1};
  double radius = 0;
  std::int64_t points = 181;
};

/// A grid of points on a parallelogram, its edges included.
struct PlaneSpec {
  std::string name;
  std::array<double, 3> origin{}, first{}, second{};  ///< a corner, and the edges that begin there
  std::array<std::int64_t, 2> points{101, 101};       ///< along the two edges
};

/// The part of a plane that is in the mesh.
struct SliceSpec {
  std::string name;
  std::array<double, 3> origin{}, normal{0, 0, 1};  ///< a point of the plane; its normal, of any length but 0
};

/// What a picture shows. arrows: the direction of the flux in a plane.
enum class PictureQuantity { u, flux, arrows, materials, coefficient, exact, error };
enum class PictureScale { linear, log };
}  // namespace poisson::app

template <>
struct poisson::Names<poisson::app::PictureQuantity> {
  static constexpr std::array<Named<app::PictureQuantity>, 7> values{{{app::PictureQuantity::u, "u"},
                                                                      {app::PictureQuantity::flux, "flux"},
                                                                      {app::PictureQuantity::arrows, "arrows"},
                                                                      {app::PictureQuantity::materials, "materials"},
                                                                      {app::PictureQuantity::coefficient, "coefficient"},
                                                                      {app::PictureQuantity::exact, "exact"},
                                                                      {app::PictureQuantity::error, "error"}}};
};

template <>
struct poisson::Names<poisson::app::PictureScale> {
  static constexpr std::array<Named<app::PictureScale>, 2> values{
      {{app::PictureScale::linear, "linear"}, {app::PictureScale::log, "log"}}};
};

namespace poisson::app {

/// A picture of the solution. A member without a value: what suits the quantity and the mesh.
struct PictureSpec {
  std::string name;
  PictureQuantity quantity = PictureQuantity::u;
  std::optional<Direction> normal;  ///< of a plane; no value: none, or with arrows the direction in which the mesh is thinnest
  std::optional<double> at;         ///< where the plane cuts that direction; no value: in the middle of the mesh
  std::optional<std::array<double, 3>> view;  ///< from the mesh towards the eye
  std::optional<output::ColorMap> colors;
  std::optional<PictureScale> scale;
  std::optional<std::array<double, 2>> range;       ///< ascending
  std::optional<bool> mesh;                         ///< whether mesh lines are drawn
  std::optional<std::array<std::int64_t, 2>> size;  ///< pixels

  /// Whether a plane is cut, and not an octant away.
  [[nodiscard]] bool has_plane() const { return normal || quantity == PictureQuantity::arrows; }
  [[nodiscard]] std::string file() const { return "picture_" + name + ".png"; }
};

/// Where u has one of these values.
struct ContourSpec {
  std::string name;
  std::vector<double> values;
};

struct QuantitySpec {
  std::string name, value;  ///< value: an expression in the names of quantities
};

struct OutputSpec {
  std::string directory;    ///< a loaded configuration always has one
  std::string name = "u";   ///< of the solution: in files, tables, pictures and the page
  std::string unit, title;  ///< of the solution, and of pictures and the page; empty: none, and that of the configuration's file
  /// The name with its unit, "temperature (degC)".
  [[nodiscard]] std::string label() const { return unit.empty() ? name : name + " (" + unit + ")"; }
  bool vtk_enabled = true;
  std::optional<output::VtkFormat> vtk_format;  ///< no value: auto
  std::vector<SolutionField> vtk_fields{SolutionField::u,        SolutionField::exact,       SolutionField::error,
                                        SolutionField::material, SolutionField::coefficient, SolutionField::flux,
                                        SolutionField::level,    SolutionField::estimator};
  [[nodiscard]] bool writes(SolutionField field) const {
    return vtk_enabled && std::find(vtk_fields.begin(), vtk_fields.end(), field) != vtk_fields.end();
  }
  output::VtkOptions vtk;
  bool picture = true;
  std::vector<output::PictureFormat> picture_formats{output::PictureFormat::png};  ///< PNG is written in any case
  /// ".png", and the endings of the other formats that are wanted, of every picture and plot.
  [[nodiscard]] std::vector<std::string> picture_endings() const {
    std::vector<std::string> endings{".png"};
    for (output::PictureFormat const format : picture_formats)
      if (format != output::PictureFormat::png)
        endings.push_back("." + std::string(name_of(format)));
    return endings;
  }
  bool report = true;
  std::vector<ProbeSpec> probes;
  std::vector<LineSpec> lines;
  std::vector<CircleSpec> circles;
  std::vector<PlaneSpec> planes;
  std::vector<SliceSpec> slices;
  std::vector<ContourSpec> contours;
  std::vector<PictureSpec> pictures;
  bool surface = false;
  std::vector<QuantitySpec> quantities;
};

enum class SweepMode { product, zip };
enum class SampleMethod { latin_hypercube, sobol, random };
enum class Distribution { uniform, loguniform, normal, lognormal };
}  // namespace poisson::app

template <>
struct poisson::Names<poisson::app::SweepMode> {
  static constexpr std::array<Named<app::SweepMode>, 2> values{
      {{app::SweepMode::product, "product"}, {app::SweepMode::zip, "zip"}}};
};
template <>
struct poisson::Names<poisson::app::SampleMethod> {
  static constexpr std::array<Named<app::SampleMethod>, 3> values{{{app::SampleMethod::latin_hypercube, "latin_hypercube"},
                                                                   {app::SampleMethod::sobol, "sobol"},
                                                                   {app::SampleMethod::random, "random"}}};
};
template <>
struct poisson::Names<poisson::app::Distribution> {
  static constexpr std::array<Named<app::Distribution>, 4> values{{{app::Distribution::uniform, "uniform"},
                                                                   {app::Distribution::loguniform, "loguniform"},
                                                                   {app::Distribution::normal, "normal"},
                                                                   {app::Distribution::lognormal, "lognormal"}}};
};

namespace poisson::app {

struct SweepAxis {
  std::string path;                 ///< a key path, "problem.element.order" or "problem.boundary[0].value"
  std::vector<std::string> values;  ///< YAML text of each value, on one line; path + "=" + value is a setting, as --set takes it
  std::string given{};              ///< how the file gives the values where it does not list them: "{from: 1, to: 9, count: 5}"
  bool is_sampled = false;          ///< the values are those of SweepSpec::sample
  std::optional<std::string> of_case{};  ///< the value of a case; Configuration::case_with sets it

  [[nodiscard]] bool is_mesh_size() const { return path == "problem.mesh.cells" || path == "problem.mesh.refinements"; }
};

struct SweepPart;
/// How axes, and groups of them, make cases: every combination of their values, the last part changing fastest, or the i-th values
/// together.
struct SweepGroup {
  SweepMode mode = SweepMode::product;
  std::vector<SweepPart> parts;  ///< in the order of the file
};
struct SweepPart {
  std::size_t axis = 0;           ///< its number, where there is no group
  std::vector<SweepGroup> group;  ///< none, or one
};

/// Uncertain parameters, which become axes of a zip group.
struct SampleSpec {
  /// A distribution with two numbers: of uniform and loguniform the ends, of normal the mean and the deviation, of lognormal those
  /// of the logarithm.
  struct Parameter {
    std::string path;  ///< a key path
    Distribution distribution = Distribution::uniform;
    std::array<double, 2> numbers{};
  };
  SampleMethod method = SampleMethod::latin_hypercube;
  std::int64_t count = 0;
  std::int64_t seed = 0;
  bool indices = false;  ///< cases for Sobol indices: count (parameters + 2) of them
  std::vector<Parameter> parameters{};
};

/// When a study over mesh sizes is accurate enough.
struct UntilSpec {
  std::string quantity;  ///< its name in result.json
  double relative = 0;   ///< the error that is allowed, over the quantity
};

/// Solves a few cases, each where the error of predictions is largest, and predicts the others.
struct GreedySpec {
  double tolerance = 0;  ///< of the error of a prediction, over the solution, both in the energy norm
  std::int64_t max_cases = 20;
};

struct SweepSpec {
  std::vector<SweepAxis> axes{};  ///< in the order of the file
  SweepGroup group{};             ///< of all of them
  std::string when{};             ///< an expression: cases where it is 0 are left out
  std::optional<SampleSpec> sample{};
  std::optional<UntilSpec> until{};  ///< finer meshes are left out
  std::optional<GreedySpec> greedy{};
  std::optional<double> time_limit{};  ///< seconds that a case may take
};

/// The system A x = b of `poisson solve`, from Matrix Market files.
struct SystemSpec {
  std::string matrix;  ///< path of the matrix
  std::string rhs;     ///< path of the right-hand side; empty: all ones

  [[nodiscard]] std::string rhs_name() const { return rhs.empty() ? "ones" : rhs; }
};

/// When a run leaves its state on disk, from where it can go on.
struct CheckpointSpec {
  std::optional<double> every{};  ///< seconds
  std::int64_t iterations = 0;    ///< of the solver; 0: any number
  [[nodiscard]] bool is_asked() const { return every || iterations > 0; }
};

/// What the solver does where the configuration says nothing.
[[nodiscard]] inline SolverOptions default_solver() {
  SolverOptions options;
  options.precision = Precision::automatic;
  options.preconditioner = PreconditionerKind::automatic;
  return options;
}

struct RunConfig;
/// The texts of all expressions in a configuration.
[[nodiscard]] std::vector<std::string const*> expressions_of(RunConfig const& config);

struct RunConfig {
  std::map<std::string, double> parameters;  ///< all of them; problem.parameters are those that expressions use
  assembly::ProblemSpec problem;             ///< without the functions of `fields`: problem_of opens their files
  std::vector<FieldSpec> fields;
  std::optional<SystemSpec> system;  ///< replaces `problem`; problem, analysis, output.vtk and sweep are then unused
  MatrixOptions matrix;
  SolverOptions solver = default_solver();
  CheckpointSpec checkpoint;
  std::optional<Backend> backend;  ///< no value: auto
  std::vector<AnalysisSpec> analysis;
  EffectiveSpec effective;
  AdaptiveSpec adaptive;
  OutputSpec output;
  SweepSpec sweep;

  /// Whether the mesh is a box of equal cells, whose nodes are a lattice.
  /// Whether the mesh is a box, all cells of which are there.
  [[nodiscard]] bool is_box() const {
    return problem.mesh.file.empty() && problem.mesh.generator == "box" && !problem.mesh.has_void() && !adaptive.is_asked();
  }
};

}  // namespace poisson::app
