#pragma once

namespace poisson::app {

/// The program: parses the command line and runs the command. Returns the exit code; errors are printed on standard error.
int run_command_line(int argc, char const* const* argv);

}  // namespace poisson::app
