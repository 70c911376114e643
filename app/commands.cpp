#include "app/commands.hpp"

#include "app/check.hpp"
#include "app/guarded.hpp"
#include "app/info.hpp"
#include "app/pipeline.hpp"
#include "app/sweep.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"

#include <boost/program_options.hpp>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <ctime>
#include <iostream>

namespace poisson {

namespace po = boost::program_options;

namespace {

constexpr char const* usage = R"(poisson - the Poisson equation -div(k grad u) = f on hexahedral meshes

  poisson run CONFIG       solve one configuration: mesh, matrix, solution, files for ParaView
  poisson sweep CONFIG     solve it for every combination of the values under its 'sweep'
  poisson check CONFIG     validate only; print the resolved configuration, unknowns and bytes
  poisson schema           the complete reference configuration, every key explained
  poisson info             build, libraries, devices, memory, measured copy bandwidth
  poisson --version
  poisson --help           also: poisson COMMAND --help

Exit codes: 0 done; 1 usage or configuration; 2 the solver did not reach its tolerance (results are written, and marked);
            3 environment (no device, out of memory, input or output).
)";

struct Arguments {
  std::string config;
  std::vector<std::string> sets;
  SweepOptions options;
  bool quiet = false;
  bool help = false;
};

/// An error in the words of the command line.
InputError usage_error(std::string const& command, std::string const& message) {
  return InputError(message + " (see 'poisson " + (command.empty() ? "" : command + " ") + "--help')");
}

Arguments parse(std::string const& command, std::vector<std::string> const& words) {
  Arguments a;
  std::string output, backend;
  po::options_description visible("poisson " + command + (command == "schema" || command == "info" ? "" : " CONFIG") +
                                  "\n\nOptions");
  auto add = visible.add_options();
  add("help,h", po::bool_switch(&a.help), "this text");
  bool const takes_config = command == "run" || command == "sweep" || command == "check";
  bool const solves = command == "run" || command == "sweep";
  if (takes_config)
    add("set", po::value(&a.sets)->composing()->value_name("key.path=value"),
        "override a key; may be given several times; the value is YAML");
  if (takes_config) {
    add("output", po::value(&output)->value_name("DIR"),
        "results directory (default: output.directory of the configuration, or results/NAME)");
    add("backend", po::value(&backend)->value_name("auto|cpu|cuda"), "where to solve");
  }
  if (solves) {
    add("overwrite", po::bool_switch(&a.options.run.overwrite), "replace the results of an earlier run");
    add("threads", po::value(&a.options.run.threads)->value_name("N"), "CPU threads (default: all)");
    add("quiet", po::bool_switch(&a.quiet), "print errors and warnings only");
  }
  if (command == "sweep") {
    add("jobs", po::value(&a.options.jobs)->value_name("N"), "cases at a time (default: 1)");
    add("resume", po::bool_switch(&a.options.resume), "keep finished cases, do only what is missing");
  }
  po::options_description all;
  all.add(visible);
  all.add_options()("config", po::value<std::vector<std::string>>());
  po::positional_options_description positional;
  positional.add("config", -1);
  try {
    po::variables_map map;
    // No abbreviations: a script must not break when an option is added.
    auto const style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    po::store(po::command_line_parser(words).options(all).positional(positional).style(style).run(), map);
    po::notify(map);
    if (a.help) {
      std::cout << visible;
      return a;
    }
    auto const files = map.count("config") > 0 ? map["config"].as<std::vector<std::string>>() : std::vector<std::string>();
    if (files.size() != (takes_config ? 1U : 0U))
      throw usage_error(command, takes_config ? (files.empty() ? "a configuration file is needed: poisson " + command + " CONFIG"
                                                               : "one configuration file is taken, found also '" + files[1] + "'")
                                              : "'poisson " + command + "' takes no argument, found '" + files[0] + "'");
    if (takes_config)
      a.config = files[0];
    if (map.count("threads") > 0 && (a.options.run.threads < 1 || a.options.run.threads > 4096))
      throw usage_error(command, "--threads must be between 1 and 4096, found " + std::to_string(a.options.run.threads));
    if (map.count("jobs") > 0 && (a.options.jobs < 1 || a.options.jobs > 4096))
      throw usage_error(command, "--jobs must be between 1 and 4096, found " + std::to_string(a.options.jobs));
    if (map.count("output") > 0) {
      if (output.empty())
        throw usage_error(command, "--output must name a directory, found ''");
      std::string quoted = "'";
      for (char c : output)
        quoted += c == '\'' ? "''" : std::string(1, c);
      a.sets.push_back("output.directory=" + quoted + "'");
    }
    if (map.count("backend") > 0) {
      if (backend != "auto" && backend != "cpu" && backend != "cuda")
        throw usage_error(command, "--backend must be auto, cpu or cuda, found '" + backend + "'");
      a.sets.push_back("backend=" + backend);
    }
  } catch (po::error const& error) {
    throw usage_error(command, error.what());
  }
  a.options.run.path = a.config;
  return a;
}

extern "C" void on_signal(int signal) {
  // The first asks for a clean stop; another one, a second later or after, ends the program at once.
  static timespec first{};
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (first.tv_sec != 0 && now.tv_sec - first.tv_sec > 1)
    _exit(128 + signal);
  if (first.tv_sec == 0)
    first = now;
  request_interrupt();
}

void install_signal_handlers() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  std::signal(SIGXFSZ, SIG_IGN);  // a file size limit is then an error of the write, which we report
  std::signal(SIGPIPE, SIG_IGN);
}

int run_command(std::vector<std::string> words) {
  if (words.empty()) {
    std::cerr << usage;
    return exit_usage;
  }
  std::string const command = words.front();
  words.erase(words.begin());
  if (command == "--help" || command == "-h" || command == "help") {
    std::cout << usage;
    return exit_done;
  }
  if (command == "--version") {
    std::cout << "poisson " POISSON_VERSION "\n";
    return exit_done;
  }
  std::vector<std::string> const commands{"run", "sweep", "check", "schema", "info"};
  if (std::find(commands.begin(), commands.end(), command) == commands.end()) {
    std::string known;
    for (auto const& name : commands)
      known += (known.empty() ? "" : ", ") + name;
    throw usage_error("", "unknown command '" + command + "'; there are " + known);
  }
  Arguments const a = parse(command, words);
  if (a.help)
    return exit_done;
  if (command == "schema") {
    std::cout << schema_text();
    return exit_done;
  }
  if (command == "info") {
    print_info();
    return exit_done;
  }
  Configuration const configuration = load_configuration(a.config, a.sets);
  return guarded(&configuration, [&]() -> int {
    Console console(a.quiet);
    if (command == "check")
      return print_check(configuration);
    if (command == "sweep")
      return run_sweep(configuration, a.options, console);
    if (!configuration.config().sweep.axes.empty())
      console.line("note: this configuration has a 'sweep', which 'poisson run' leaves out; 'poisson sweep' does it");
    return run_case(configuration, a.options.run, console);
  });
}

}  // namespace

int run_command_line(int argc, char const* const* argv) {
  install_signal_handlers();
  int const code = guarded(nullptr, [&] { return run_command({argv + 1, argv + argc}); });
  std::cout << std::flush;
  return code;
}

}  // namespace poisson
