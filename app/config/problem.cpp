#include "app/config/problem.hpp"

#include "gpu/core/error.hpp"

#include <cstddef>
#include <string>

namespace poisson::app {

assembly::ProblemSpec problem_of(RunConfig const& config) {
  assembly::ProblemSpec problem = config.problem;
  for (std::size_t i = 0; i < config.fields.size(); ++i) {
    FieldSpec const& field = config.fields[i];
    try {
      problem.fields[field.name] = output::open_point_field(field.file, field.array, field.interpolation);
    } catch (InputError const& error) {
      throw InputError("problem.fields[" + std::to_string(i) + "]", error.what());
    }
  }
  return problem;
}

}  // namespace poisson::app
