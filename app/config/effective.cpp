#include "app/config/effective.hpp"

#include "app/config/key_sections.hpp"
#include "app/config/sampling.hpp"
#include "app/config/value_types.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

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

std::vector<std::array<std::int64_t, 3>> sub_volume_places(EffectiveSpec::SubVolumes const& spec,
                                                           std::array<std::int64_t, 3> const& cells) {
  auto const count = static_cast<std::size_t>(spec.count);
  std::vector<std::array<std::int64_t, 3>> places;
  for (std::size_t drawn = count; places.size() < count; drawn *= 2) {
    places.clear();
    std::set<std::array<std::int64_t, 3>> taken;
    for (std::vector<double> const& point : unit_samples(SampleMethod::random, drawn, 3, spec.seed)) {
      std::array<std::int64_t, 3> place{};
      for (std::size_t d = 0; d < 3; ++d)
        place[d] = static_cast<std::int64_t>(point[d] * static_cast<double>(cells[d] - spec.size[d] + 1));
      if (places.size() < count && taken.insert(place).second)
        places.push_back(place);
    }
  }
  return places;
}

namespace schema {

namespace {

void check_sub_volumes(YamlNode const& root, RunConfig const& config) {
  EffectiveSpec::SubVolumes const& spec = config.effective.sub_volumes;
  std::string const key = "analysis.effective.sub_volumes";
  auto const refuse = [&](std::string const& of_key, std::string const& what) {
    reject(locate_path(root, of_key).origin, of_key, what);
  };
  if (config.problem.mesh.has_void())
    refuse(key + ".size", "sub-volumes of a box with void cells cannot be solved; give that material a small k instead");
  std::array<std::int64_t, 3> const cells = config.problem.mesh.refined_cells();
  double places = 1;
  for (std::size_t d = 0; d < 3; ++d) {
    if (spec.size[d] > cells[d])
      refuse(key + ".size", "found " + std::to_string(spec.size[d]) + " cells in " + "xyz"[d] + "; allowed: up to " +
                                std::to_string(cells[d]) + ", which the box has there");
    places *= static_cast<double>(cells[d] - spec.size[d] + 1);
  }
  if (static_cast<double>(spec.count) > places)
    refuse(key + ".count", "found " + std::to_string(spec.count) + "; allowed: up to " + Number{}.write(places) +
                               ", the places that sub-volumes of this size have in the box");
}

}  // namespace

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
  if (config.effective.sub_volumes.is_asked())
    check_sub_volumes(root, config);
}

}  // namespace schema

}  // namespace poisson::app
