#pragma once

#include <string>

/// The program gmsh, which is no part of this one. Internal to assembly/dealii.
namespace poisson::assembly {

struct GmshAnswer {
  std::string mesh;      ///< the file that it has written, .msh of version 4.1, binary; may be empty
  std::string messages;  ///< errors and warnings, the last ones of many, on one line
  int exit_code = 0;
  std::string ended;  ///< how it ended by other means than exit, for messages: "was ended by signal 11"; empty: by exit
};

/// Runs gmsh on a script in its language, and makes a mesh in three dimensions of what the script has left. It runs as a process of
/// its own with one thread, without a shell, a terminal or the settings of a user, and works without files: script, mesh and
/// messages are in memory. It and what it starts are ended after so many seconds, by an interrupt, and as this function leaves;
/// when this process ends, gmsh is. Errors: EnvironmentError where there is no program `gmsh` in PATH, or no process to be had;
/// Interrupted.
[[nodiscard]] GmshAnswer run_gmsh(std::string const& script, double seconds);

}  // namespace poisson::assembly
