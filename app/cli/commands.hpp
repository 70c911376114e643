#pragma once

namespace poisson::app {

/// The program: parses the command line, runs the command, turns every error into one message on standard error and an exit code.
int run_command_line(int argc, char const* const* argv);

}  // namespace poisson::app
