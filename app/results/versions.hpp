#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace poisson::app {

/// "deal.II 9.4.1, VTK 9.1.0, Boost 1.74"
[[nodiscard]] std::string library_versions();
/// The program, how it was built, and its libraries.
[[nodiscard]] std::string versions_text();
/// The text of `poisson --version`: beside those the compilers, CUDA and MPI. Loads no library.
[[nodiscard]] std::string version_report();
/// The commit that the program was built from, with "-dirty" where files were changed since; "unknown" without git.
[[nodiscard]] std::string_view commit_of_build();
/// Who has computed a record, when and with what: date, host, command, commit, version, build and versions of libraries.
[[nodiscard]] nlohmann::ordered_json provenance_of(std::string const& command);
/// Now, as "2026-01-31 14:05 UTC".
[[nodiscard]] std::string date_text();

}  // namespace poisson::app
