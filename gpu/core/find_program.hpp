#pragma once

#include <string>

namespace poisson {

/// The file of that name that can be run, in the folders of PATH; absolute. Empty: there is none.
[[nodiscard]] std::string find_program(std::string const& name);

}  // namespace poisson
