#include "app/config/effective.hpp"

#include "app/config/key_sections.hpp"
#include "app/config/value_types.hpp"

#include <cstddef>
#include <string>

namespace poisson::app {

void set_effective_problem(RunConfig& config, bool periodic, Direction direction) {
  auto const along = static_cast<std::size_t>(direction);
  std::string const length = schema::Number{}.write(config.problem.mesh.extent[along]);
  auto& boundary = config.problem.boundary;
  boundary.clear();
  auto const add = [&](std::vector<unsigned> ids, assembly::BoundaryType type, std::string const& value) {
    assembly::BoundaryCondition& condition = boundary.emplace_back();
    condition.ids = std::move(ids);
    condition.type = type;
    condition.value = value;
  };
  for (unsigned d = 0; d < 3; ++d) {
    bool const grows = d == along;
    if (periodic) {
      add({2 * d, 2 * d + 1}, assembly::BoundaryType::periodic, grows ? length : "0");
    } else if (grows) {
      add({2 * d}, assembly::BoundaryType::dirichlet, "0");
      add({2 * d + 1}, assembly::BoundaryType::dirichlet, length);
    } else {
      add({2 * d, 2 * d + 1}, assembly::BoundaryType::neumann, "0");
    }
  }
}

namespace schema {

void check_effective(YamlNode const& root, RunConfig const& config) {
  if (!config.effective.is_asked())
    return;
  assembly::ProblemSpec const& problem = config.problem;
  auto const refuse = [&](std::string const& key, std::string const& what) { reject(locate_path(root, key).origin, key, what); };
  std::string const box = "analysis.effective needs a box, all sides of which are whole: ";
  if (!problem.mesh.file.empty())
    refuse("problem.mesh.file", box + "found a mesh from a file; allowed: generator: box");
  if (problem.mesh.generator != "box")
    refuse("problem.mesh.generator", box + "found '" + problem.mesh.generator + "'; allowed: box");
  if (!problem.mesh.boundaries.empty())
    refuse("problem.mesh.boundaries", box + "names for parts of them cannot be given");
  std::string const own = "cannot be given with analysis.effective, whose problems have ";
  if (problem.source != "0" || !problem.has_one_source() || problem.source_total)
    refuse(problem.source_total ? "problem.source_total" : "problem.source", own + "no source");
  if (!problem.point_sources.empty())
    refuse("problem.point_sources", own + "no source");
  if (!problem.line_sources.empty())
    refuse("problem.line_sources", own + "no source");
  if (problem.exact)
    refuse("problem.exact", own + "solutions of their own; compare the quantities effective.xx and so on");
}

}  // namespace schema

}  // namespace poisson::app
