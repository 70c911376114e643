#include "app/commands.hpp"

int main(int argc, char** argv) {
  return poisson::run_command_line(argc, argv);
}
