#include "app/cli/commands.hpp"
#include "gpu/core/memory.hpp"

int main(int argc, char** argv) {
  poisson::share_one_heap();
  return poisson::app::run_command_line(argc, argv);
}
