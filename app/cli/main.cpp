#include "app/cli/commands.hpp"

int main(int argc, char** argv) {
  return poisson::app::run_command_line(argc, argv);
}
