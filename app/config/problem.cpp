#include "app/config/problem.hpp"

#include "app/config/schema.hpp"
#include "assembly/image/image_file.hpp"
#include "assembly/system/problem_data.hpp"
#include "gpu/core/error.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace poisson::app {

assembly::ProblemSpec problem_of(RunConfig const& config) {
  assembly::ProblemSpec problem = config.problem;
  problem.parameters.insert(config.parameters.begin(), config.parameters.end());  // those that nothing uses are suggested, too
  auto const for_fields = [&](auto const& action) {
    for (std::size_t i = 0; i < config.fields.size(); ++i) {
      FieldSpec const& field = config.fields[i];
      try {
        action(field);
      } catch (InputError const& error) {
        throw InputError(field.key.empty() ? "problem.fields[" + std::to_string(i) + "]" : field.key,
                         schema::shorten(error.what(), 1000));
      }
    }
  };
  assembly::MeshSpec const& mesh = config.problem.mesh;
  if (mesh.file.ends_with(".hdf") || mesh.file.ends_with(".vtkhdf"))
    try {
      if (std::string step = output::try_step_of_hdf(mesh.file, mesh.step); !step.empty())
        problem.mesh.content = std::make_shared<std::string const>(std::move(step));
    } catch (InputError const& error) {
      throw InputError(mesh.step ? "problem.mesh.step" : "problem.mesh.file", error.what());
    }
  else if (mesh.step)
    throw InputError("problem.mesh.step", mesh.file + " has no steps that are read; `step` is for VTKHDF files (.hdf)");
  if (mesh.image.is_given())
    problem.mesh.labels = assembly::labels_of_image(mesh.image, mesh.array);
  if (!mesh.shape_order)
    problem.mesh.shape_order = std::min(problem.order, 2);
  for_fields([](FieldSpec const& field) { output::try_point_field(field.file, field.array, field.interpolation, field.step); });
  for_fields([&](FieldSpec const& field) {
    problem.fields[field.name] = output::open_point_field(field.file, field.array, field.interpolation, field.step);
  });
  return problem;
}

std::optional<double> constant_value(assembly::ProblemSpec const& problem, std::string const& expression) {
  try {
    assembly::Function const function(expression, "problem", problem.names());
    return function.is_constant() ? std::optional(function({})) : std::nullopt;
  } catch (InputError const&) {  // the specification does not know the functions from files
    return std::nullopt;
  }
}

}  // namespace poisson::app
