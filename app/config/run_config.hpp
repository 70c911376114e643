#pragma once

#include "assembly/problem.hpp"
#include "gpu/core/context.hpp"
#include "gpu/formats/format.hpp"
#include "gpu/solvers/solver.hpp"
#include "output/vtk/vtk_files.hpp"

#include <optional>
#include <string>
#include <vector>

/// One run as plain data: what a configuration file says, with every default filled in and checked.
namespace poisson::app {

/// The keys of `matrix`, and solver.matrix_precision.
struct MatrixOptions : FormatOptions {
  std::optional<Format> format;                   ///< nothing: auto
  std::optional<std::int64_t> expected_products;  ///< that auto counts on; nothing: expected_products of the solver's options

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

/// An entry of analysis.svd.
struct AnalysisSpec {
  AnalysisOf of{};
  std::int64_t modes = 4;                   ///< operator: written from either end; snapshots: most that are kept
  std::int64_t max_dense = 4096;            ///< operator: free unknowns beyond which the extremes are estimated
  SampleShape sample = SampleShape::plane;  ///< field
  std::optional<std::int64_t> points;       ///< field: in each direction; nothing: 256 on a plane, 64 in a box
  Direction normal = Direction::z;          ///< field, of the plane
  std::optional<double> at;                 ///< field, of the plane; nothing: the middle of the mesh
  double error = 1e-6;                      ///< field: relative, in the Frobenius norm
  std::optional<std::int64_t> leave_out;    ///< snapshots: number of a case; nothing: the middle one

  [[nodiscard]] std::int64_t points_per_direction() const { return points.value_or(sample == SampleShape::plane ? 256 : 64); }
};

struct OutputSpec {
  std::string directory;  ///< a loaded configuration always has one
  bool vtk_enabled = true;
  output::VtkOptions vtk;
  bool picture = true;
};

enum class SweepMode { product, zip };
}  // namespace poisson::app

template <>
struct poisson::Names<poisson::app::SweepMode> {
  static constexpr std::array<Named<app::SweepMode>, 2> values{
      {{app::SweepMode::product, "product"}, {app::SweepMode::zip, "zip"}}};
};

namespace poisson::app {

struct SweepAxis {
  std::string path;                 ///< a key path, "problem.element.order" or "problem.boundary[0].value"
  std::vector<std::string> values;  ///< YAML text of each value, on one line; path + "=" + value is what Configuration::with takes
};

struct SweepSpec {
  SweepMode mode = SweepMode::product;
  std::vector<SweepAxis> axes;  ///< in the order of the file; with zip all of one length
};

/// What `poisson solve` has instead of a problem: A x = b from Matrix Market files.
struct SystemSpec {
  std::string matrix;  ///< path of the matrix
  std::string rhs;     ///< path of the right-hand side; empty: all ones

  [[nodiscard]] std::string rhs_name() const { return rhs.empty() ? "ones" : rhs; }
};

struct RunConfig {
  assembly::ProblemSpec problem;
  std::optional<SystemSpec>
      system;  ///< instead of `problem`, and then the keys of problem, analysis, vtk and sweep have no meaning
  MatrixOptions matrix;
  SolverOptions solver;
  std::optional<Backend> backend;  ///< nothing: auto
  std::vector<AnalysisSpec> analysis;
  OutputSpec output;
  SweepSpec sweep;
};

}  // namespace poisson::app
