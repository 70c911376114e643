#pragma once

#include "gpu/core/names.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

/// What is to be solved, as plain data. Key paths in errors are those of the YAML file, e.g. "problem.boundary[1].ids".
namespace poisson::assembly {

struct MeshSpec {
  std::string generator = "box";          ///< "box", or a deal.II GridGenerator name
  std::string arguments;                  ///< of the generator in deal.II's notation, "0, 0, 0 : 0.5 : 1 : 12"; empty: its defaults
  std::string file;                       ///< a mesh file instead of a generator; empty when a generator is used
  std::array<double, 3> origin{0, 0, 0};  ///< box only
  std::array<double, 3> extent{1, 1, 1};  ///< box only, > 0
  std::array<std::int64_t, 3> cells{32, 32, 32};  ///< box only, >= 1
  int refinements = 0;                            ///< global refinements, each splits a cell in 8
};

enum class BoundaryType { dirichlet, neumann, robin };
}  // namespace poisson::assembly

template <>
struct poisson::Names<poisson::assembly::BoundaryType> {
  static constexpr std::array<Named<assembly::BoundaryType>, 3> values{{{assembly::BoundaryType::dirichlet, "dirichlet"},
                                                                        {assembly::BoundaryType::neumann, "neumann"},
                                                                        {assembly::BoundaryType::robin, "robin"}}};
};

namespace poisson::assembly {

struct BoundaryCondition {
  bool all_ids = false;  ///< every id of the mesh that no other condition names
  std::vector<unsigned> ids;
  BoundaryType type{};
  std::string value = "0";  ///< dirichlet: u; neumann: k du/dn; robin: k du/dn + alpha u
  std::string alpha = "0";  ///< robin only, >= 0 where evaluated
};

/// One expression (isotropic) or three (orthotropic: kx, ky, kz).
using CoefficientExpressions = std::vector<std::string>;

struct ProblemSpec {
  MeshSpec mesh;
  int order = 1;  ///< p of Q_p, 1..8
  /// Key: material id, or -1 for every material that has no entry of its own.
  std::map<int, CoefficientExpressions> coefficient{{-1, {"1"}}};
  std::string source = "0";
  std::vector<BoundaryCondition> boundary;
  std::optional<std::string> exact;
};

}  // namespace poisson::assembly
