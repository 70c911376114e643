#pragma once

#include "assembly/problem.hpp"
#include "gpu/core/context.hpp"
#include "gpu/formats/format.hpp"
#include "gpu/solvers/solver.hpp"
#include "output/vtk_files.hpp"

#include <optional>
#include <string>
#include <vector>

/// One run as plain data: what a configuration file says, with every default filled in and checked.
namespace poisson {

/// The keys of `matrix`, and solver.matrix_precision.
struct MatrixOptions : FormatOptions {
  std::optional<Format> format;                   ///< nothing: auto
  std::optional<std::int64_t> expected_products;  ///< that auto counts on; nothing: expected_products of the solver's options

  [[nodiscard]] FormatOptions const& format_options() const { return *this; }
};

/// An entry of analysis.svd; this version has none.
struct AnalysisSpec {};

struct OutputSpec {
  std::string directory;  ///< a loaded configuration always has one
  bool vtk_enabled = true;
  VtkOptions vtk;
  bool picture = true;
};

enum class SweepMode { product, zip };
template <>
struct Names<SweepMode> {
  static constexpr std::array<Named<SweepMode>, 2> values{{{SweepMode::product, "product"}, {SweepMode::zip, "zip"}}};
};

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
  ProblemSpec problem;
  std::optional<SystemSpec>
      system;  ///< instead of `problem`, and then the keys of problem, analysis, vtk and sweep have no meaning
  MatrixOptions matrix;
  SolverOptions solver;
  std::optional<Backend> backend;  ///< nothing: auto
  std::vector<AnalysisSpec> analysis;
  OutputSpec output;
  SweepSpec sweep;
};

}  // namespace poisson
