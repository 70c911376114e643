#pragma once

#include "app/launch/backend_choice.hpp"
#include "app/run/shared_matrix.hpp"
#include "gpu/core/array.hpp"
#include "gpu/core/context.hpp"

#include <map>
#include <memory>
#include <optional>
#include <string>

namespace poisson::app {

/// The solution x of a case, where the next one may begin (`solver.initial: neighbour`).
struct KeptSolution {
  std::string name;  ///< of the case
  std::string mesh;  ///< mesh_text
  Array<double> x;   ///< in the memory of the context that solved for it
};

/// What a process keeps of a run for the runs that follow in it.
struct Kept {
  std::map<std::optional<Backend>, BackendChoice> choices;  ///< by what a case asks for: devices are looked for once
  std::map<Backend, std::unique_ptr<Context>> contexts;     ///< null: not made yet
  std::map<Backend, std::string> names;                     ///< of the contexts' devices; empty: not asked for yet
  std::optional<KeptSolution> solution;                     ///< of the last case; none unless it asked for its neighbour's
  std::unique_ptr<StoredMatrix> matrix{};                   ///< of the last case, with its preconditioner; null: none
};

}  // namespace poisson::app
