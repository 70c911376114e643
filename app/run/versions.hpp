#pragma once

#include <string>

namespace poisson::app {

/// "deal.II 9.4.1, VTK 9.1.0, Boost 1.74"
[[nodiscard]] std::string library_versions();
/// The program, how it was built, and its libraries.
[[nodiscard]] std::string versions_text();
/// Now, as "2026-01-31 14:05 UTC".
[[nodiscard]] std::string date_text();

}  // namespace poisson::app
