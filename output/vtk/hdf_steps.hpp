#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace poisson::output {

/// The number of the last step of a file, whatever it is.
inline constexpr std::int64_t last_step = -1;

/// A step of a VTKHDF file with several: the bytes of a file with this one alone, to be read as any other, since VTK 9.1 makes one
/// grid of all steps. `step` counts from 0, or is last_step; none: the file must have one. Empty: the file has one step or none,
/// and is to be read itself; what is wrong with it is left to its reader. The step of a file of version 2.0 to 2.2 is what its
/// arrays have from the places on that the group Steps names. Errors: InputError without a key, that names file and reason.
///
/// HDF5 crashes on some damaged files: to be called in a process of its own first.
[[nodiscard]] std::string step_of_hdf(std::filesystem::path const& path, std::optional<std::int64_t> step);

}  // namespace poisson::output
