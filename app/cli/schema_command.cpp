#include "app/cli/schema_command.hpp"

#include "app/cli/options.hpp"
#include "app/config/config.hpp"
#include "app/launch/exit_code.hpp"

#include <iostream>

namespace poisson::app {

namespace po = boost::program_options;

int run_schema_command(std::vector<std::string> const& words) {
  bool help = false, for_editors = false;
  po::options_description visible(
      "poisson schema [KEY]\n\n"
      "Prints the reference configuration, every key with its default, explained; of KEY (solver.multigrid, "
      "problem.boundary.type) only\nthat and what is below it.\n\nOptions");
  auto add = visible.add_options();
  add("help,h", po::bool_switch(&help), "this text");
  add("json", po::bool_switch(&for_editors),
      "instead a JSON Schema of configurations, for editors that check YAML while it is written");
  auto const keys = read_options("schema", words, visible, "key").arguments;
  if (help)
    return exit_done;
  if (keys.size() > 1)
    throw usage_error("schema", "one key is taken, found also '" + keys[1] + "'");
  if (for_editors && !keys.empty())
    throw usage_error("schema", "--json prints the whole schema, and takes no key; found '" + keys[0] + "'");
  std::cout << (for_editors ? json_schema_text() : keys.empty() ? schema_text() : schema_text(keys[0]));
  return exit_done;
}

}  // namespace poisson::app
