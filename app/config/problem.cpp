#include "app/config/problem.hpp"

#include "app/config/schema.hpp"
#include "gpu/core/error.hpp"

#include <cstddef>
#include <string>

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
  if (std::string const& file = config.problem.mesh.file; file.ends_with(".hdf") || file.ends_with(".vtkhdf"))
    try {
      output::try_one_step(file);
    } catch (InputError const& error) {
      throw InputError("problem.mesh.file", error.what());
    }
  for_fields([](FieldSpec const& field) { output::try_point_field(field.file, field.array, field.interpolation); });
  for_fields([&](FieldSpec const& field) {
    problem.fields[field.name] = output::open_point_field(field.file, field.array, field.interpolation);
  });
  return problem;
}

}  // namespace poisson::app
