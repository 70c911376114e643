#pragma once

#include "assembly/dealii/raw.hpp"

#include <functional>

namespace poisson::assembly {

/// The result of `read`, which is called in a process of its own, with limits: libraries that read files crash on some damaged
/// ones, or take all time and memory. That is then an InputError like another. Errors of `read` come through: InputError,
/// EnvironmentError. Throws Interrupted.
[[nodiscard]] RawMesh read_in_other_process(MeshText const& text, std::function<RawMesh()> const& read);

}  // namespace poisson::assembly
