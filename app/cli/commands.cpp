#include "app/cli/commands.hpp"

#include "app/cli/bench_command.hpp"
#include "app/cli/check.hpp"
#include "app/cli/info.hpp"
#include "app/cli/init_command.hpp"
#include "app/cli/options.hpp"
#include "app/cli/predict_command.hpp"
#include "app/cli/schema_command.hpp"
#include "app/cli/svd_command.hpp"
#include "app/launch/exit_code.hpp"
#include "app/launch/launch.hpp"
#include "app/launch/processors.hpp"
#include "app/results/system_files.hpp"
#include "app/results/versions.hpp"
#include "app/run/run.hpp"
#include "app/run/solve.hpp"
#include "app/sweep/sweep.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/threads.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <functional>
#include <iostream>

namespace poisson::app {

namespace po = boost::program_options;

namespace {

constexpr char const* usage = R"(poisson - the Poisson equation -div(k grad u) = f on hexahedral meshes

  poisson init [NAME]      a configuration to begin with; without NAME the list of them
  poisson run CONFIG       solve one configuration: mesh, matrix, solution, files for ParaView
  poisson sweep CONFIG     solve it for every combination of the values under its 'sweep'; --list, --case K, --collect for clusters
  poisson predict RESULTS  what a sweep's solutions tell of values between its own, without a solve: --set parameters.k=3
  poisson check CONFIG     validate only; print problem size and memory; --verbose: the resolved configuration, too
  poisson schema [KEY]     the complete reference configuration, or what is below a key; --json for editors
  poisson solve --matrix FILE [--rhs FILE]   solve a system of Matrix Market files
  poisson svd --matrix FILE | --random N     singular values, and vectors, of a dense matrix
  poisson bench spmv       products with a matrix in every format: table and JSON, cuSPARSE beside them
  poisson bench convert    conversions to every format
  poisson bench solve      solvers by format, method, precision and preconditioner; CG by cuSPARSE and cuBLAS beside them
  poisson bench svd        dense decompositions, LAPACK and cuSOLVER beside them
  poisson info             build, libraries, devices, memory, measured copy bandwidth
  poisson --version        commit, compilers, versions of libraries
  poisson --help           also: poisson COMMAND --help
  mpirun -n R poisson run CONFIG             the same on R ranks, which share the unknowns; also check, sweep --case K, info, bench spmv|solve

CONFIG is a YAML file, or - for standard input.
Exit codes: 0 done; 1 usage or configuration; 2 the solver did not reach its tolerance (results are written, and marked);
            3 environment (no device, out of memory, input or output); 130, 143, 129 interrupted by Ctrl-C, SIGTERM, SIGHUP
            (partial results are saved, and marked).
)";

struct Arguments {
  std::string config;
  SystemSpec system;
  std::vector<std::string> sets;
  SweepOptions options;
  std::string sweep_case;  ///< of --case
  bool list = false, collect = false;
  bool quiet = false;
  bool help = false;
  int ranks = 1;
};

/// A word as a shell takes it.
std::string shell_word(std::string const& word) {
  if (!word.empty() &&
      word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%") == std::string::npos)
    return word;
  std::string quoted = "'";
  for (char const c : word)
    quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

Arguments parse(std::string const& command, std::vector<std::string> const& words) {
  Arguments a;
  std::string output, backend, rhs;
  bool const takes_config = command == "run" || command == "sweep" || command == "check";
  bool const takes_system = command == "solve";
  bool const solves = command == "run" || command == "sweep" || takes_system;
  po::options_description visible("poisson " + command +
                                  (takes_config   ? " CONFIG"
                                   : takes_system ? " --matrix FILE"
                                                  : "") +
                                  "\n\nOptions");
  auto add = visible.add_options();
  add("help,h", po::bool_switch(&a.help), "this text");
  if (takes_system) {
    add("matrix", po::value(&a.system.matrix)->value_name("FILE"), "the matrix: a Matrix Market file, .mtx or .mtx.gz");
    add("rhs", po::value(&rhs)->value_name("ones|FILE"),
        "the right-hand side: a Matrix Market vector, or all ones (default: ones; a file of that name is ./ones)");
  }
  if (takes_config || takes_system) {
    add("set", po::value(&a.sets)->composing()->value_name("key.path=value"),
        takes_config ? "override a key; may be given several times; the value is YAML"
                     : "a key of matrix, solver or output as in a configuration; may be given several times; the value is YAML");
    add("output", po::value(&output)->value_name("DIR"),
        takes_config ? "results directory (default: output.directory of the configuration, or results/NAME)"
                     : "results directory (default: results/NAME, NAME is the name of the matrix file without extensions)");
    add("backend", po::value(&backend)->value_name("auto|cpu|cuda"), "where to solve");
  }
  if (solves)
    add("overwrite", po::bool_switch(&a.options.run.overwrite), "replace the results of an earlier run");
  if (command == "run" || takes_system)
    add("resume", po::bool_switch(&a.options.run.resume),
        "go on from the checkpoint of a run that did not end (solver.checkpoint)");
  if (solves || command == "check") {
    add("threads", po::value(&a.options.run.threads)->value_name("N"), "CPU threads (default: all)");
    add("quiet", po::bool_switch(&a.quiet), "print errors and warnings only");
    add("verbose", po::bool_switch(&a.options.run.verbose),
        solves ? "print also the table that matrix.format: auto decides from" : "print also the resolved configuration: every key");
  }
  if (command == "check")
    add("ranks", po::value(&a.ranks)->value_name("R"), "estimate a run on that many ranks (mpirun -n R)");
  if (command == "run")
    add("matrix-out", po::value(&a.options.run.matrix_out)->value_name("FILE"),
        "also write the assembled system: the matrix to this .mtx or .mtx.gz, the right-hand side beside it as NAME_rhs.mtx");
  if (command == "sweep") {
    add("jobs", po::value(&a.options.jobs)->value_name("N"), "cases at a time (default: 1, or one on each of --gpus)");
    add("gpus", po::value(&a.options.gpus)->value_name("N|LIST"),
        "share out N devices, or the devices of a list such as 0,2, among the cases that run at a time");
    add("resume", po::bool_switch(&a.options.resume), "keep finished cases, do only what is missing");
    add("list", po::bool_switch(&a.list), "only print the cases: number, name of the folder, settings; a tab between them");
    add("case", po::value(&a.sweep_case)->value_name("K"),
        "run only the case with this number or name, for jobs of a cluster; also under mpirun");
    add("collect", po::bool_switch(&a.collect), "run nothing; write the tables from the results of --case");
  }
  auto const [map, files] = read_options(command, words, visible, "config");
  if (a.help)
    return a;
  if (files.size() != (takes_config ? 1U : 0U))
    throw usage_error(command,
                      takes_config
                          ? (files.empty() ? "a configuration file is needed: poisson " + command + " CONFIG (- is standard input)"
                                           : "one configuration file is taken, found also '" + files[1] + "'")
                          : "'poisson " + command + "' takes no argument" + (takes_system ? " without its option" : "") +
                                ", found '" + files[0] + "'" + (takes_system ? "; poisson solve --matrix FILE" : ""));
  if (takes_config)
    a.config = files[0];
  if (takes_system && a.system.matrix.empty())
    throw usage_error(command, "a matrix is needed: poisson solve --matrix FILE");
  if (map.count("rhs") > 0 && rhs.empty())
    throw usage_error(command, "--rhs must name a file, or be ones, found ''");
  if (rhs != "ones")
    a.system.rhs = rhs;
  if (a.quiet && a.options.run.verbose)
    throw usage_error(command, "--quiet and --verbose contradict each other; give one of them");
  if (a.options.run.resume && a.options.run.overwrite)
    throw usage_error(command, "--resume and --overwrite do not go together; give one of them");
  if (map.count("threads") > 0 && (a.options.run.threads < 1 || a.options.run.threads > 4096))
    throw usage_error(command, "--threads must be between 1 and 4096, found " + std::to_string(a.options.run.threads));
  if (map.count("ranks") > 0 && (a.ranks < 1 || a.ranks > 1'000'000))
    throw usage_error(command, "--ranks must be between 1 and 1000000, found " + std::to_string(a.ranks));
  if (map.count("jobs") > 0 && (a.options.jobs < 1 || a.options.jobs > 4096))
    throw usage_error(command, "--jobs must be between 1 and 4096, found " + std::to_string(a.options.jobs));
  if (map.count("gpus") > 0 && a.options.gpus.empty())
    throw usage_error(command, "--gpus must be a number of devices, or a list such as 0,2; found ''");
  if (map.count("case") > 0 && a.sweep_case.empty())
    throw usage_error(command, "--case must be the number or the name of a case, found ''");
  if (std::string const only = a.list ? "--list" : a.collect ? "--collect" : map.count("case") > 0 ? "--case" : ""; !only.empty()) {
    std::vector<std::string> others{"jobs", "gpus", "resume", "collect", "case"};
    if (only != "--case")
      others.emplace_back("overwrite");
    for (std::string const& other : others)
      if (auto const given = map.find(other); "--" + other != only && given != map.end() && !given->second.defaulted())
        throw usage_error(command, only + " and --" + other + " do not go together; give one of them");
  }
  if (map.count("matrix-out") > 0 && !SystemFiles::can_be(a.options.run.matrix_out))
    throw usage_error(command,
                      "--matrix-out must name a file that ends in .mtx or .mtx.gz, found '" + a.options.run.matrix_out + "'");
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
  a.options.run.command = "poisson " + command;
  for (std::string const& word : words)
    a.options.run.command += " " + shell_word(word);
  a.options.run.path = a.config == "-" ? stdin_name : a.config;
  a.options.command_of_case = "poisson sweep " + shell_word(a.config);
  for (std::string const& set : a.sets)
    a.options.command_of_case += " " + shell_word("--set=" + set);
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
  interrupt_by(signal);
}

/// A standard stream that is closed would become one of our files, and take what is printed.
void open_standard_streams() {
  for (int const stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0 && errno == EBADF)
      static_cast<void>(open("/dev/null", O_WRONLY));  // takes the lowest number that is free; to read stays an error
}

/// The exit code of a command, or 3 with a message where it was done but what it printed could not be written, as on a full disk. A
/// reader that has gone, such as a pager, wants no more.
int code_after_output(int code) {
  std::cout << std::flush;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0)
    return code;
  pollfd out{STDOUT_FILENO, 0, 0};
  if (poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLHUP)) != 0)
    return code;
  tell_failure("standard output cannot be written; what was printed is not complete");
  return code == exit_done ? static_cast<int>(exit_environment) : code;
}

extern "C" void on_request(int) {
  ask_for_checkpoint();
}

void install_signal_handlers() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  struct sigaction request {};
  request.sa_handler = on_request;
  request.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &request, nullptr);
  struct sigaction hangup {};
  if (sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler != SIG_IGN)  // nohup has it ignored
    sigaction(SIGHUP, &action, nullptr);
  std::signal(SIGXFSZ, SIG_IGN);  // a file size limit is then an error of the write, which we report
  std::signal(SIGPIPE, SIG_IGN);
}

/// Whether a command works on several ranks, which run one case together.
bool works_on_ranks(std::vector<std::string> const& words) {
  std::string const command = words.empty() ? "" : words.front(), next = words.size() > 1 ? words[1] : "";
  return command == "run" || command == "solve" || command == "sweep" || command == "info" || command == "check" ||
         (command == "bench" && next != "svd" && next != "convert");
}

/// `poisson run`, `poisson solve`, `poisson bench` and `poisson sweep --case K` by the ranks of a team. `threads`, which is
/// collective, gives the number of threads where the command names none (0: all that the process may use). What all ranks find
/// wrong the first one tells; after what one alone finds wrong no rank goes on.
int run_by(Team& team, std::function<int()> const& threads, std::string const& command, std::vector<std::string> const& words) {
  std::optional<Configuration> configuration;
  try {
    if (command == "bench")
      return run_bench_command(words, team, threads, configuration);
    Arguments a;
    team.together([&] {
      a = parse(command, words);
      if (a.help)
        return;
      if (command == "sweep" && a.sweep_case.empty())
        throw usage_error(command, "started as " + std::to_string(team.size()) +
                                       " ranks, which run one case: give --case K, or start the sweep without mpirun");
      configuration.emplace(command == "solve" ? system_configuration(a.system, a.sets) : load_configuration(a.config, a.sets));
    });
    if (a.help)
      return exit_done;
    if (int const of_rank = threads(); a.options.run.threads == 0) {
      a.options.run.threads = of_rank;
      a.options.run.threads_alone = team.is_first() && of_rank > 0 ? usable_threads() : 0;
    }
    Console console = team.is_first() ? Console(a.quiet, a.options.run.verbose) : Console::silent();
    if (command == "solve")
      return solve_system(*configuration, a.options.run, console, team);
    if (command == "sweep")
      return run_sweep_case(*configuration, a.sweep_case, a.options.run, console, team);
    if (!configuration->config().sweep.axes.empty())
      console.line("note: this configuration has a 'sweep', which 'poisson run' leaves out; 'poisson sweep' does it");
    InternalRunOptions internal;
    internal.team = team;
    return run_case(*configuration, a.options.run, console, internal);
  } catch (...) {
    Failure const failure = failure_of(configuration ? &*configuration : nullptr, std::current_exception());
    if (!team.agreed()) {
      tell_failure(told_by(team.rank(), failure.message));
      end_all(team.communicator(), failure.code);
    }
    if (team.is_first())
      tell_failure(failure.message);
    return failure.code;
  }
}

/// The same on the ranks that a launcher has started.
int run_on_ranks(Launch const& launch, std::string const& command, std::vector<std::string> const& words) {
  std::unique_ptr<Communicator> communicator;
  try {
    communicator = open_communicator(launch);
  } catch (EnvironmentError const& error) {  // the same on all of them
    if (launch.tells())
      tell_failure(error.what());
    return exit_environment;
  }
  ForcedEnd::OfRanks const of_ranks(*communicator);
  Team team(*communicator);
  return run_by(
      team, [&] { return threads_of_rank(*communicator); }, command, words);
}

int info_on_ranks(Launch const& launch, std::vector<std::string> const& words) {
  try {
    static_cast<void>(parse("info", words));
    return print_info_on_ranks(launch);
  } catch (...) {  // the same on all of them
    if (launch.tells())
      throw;
    return exit_code_of(std::current_exception());
  }
}

int run_command(std::vector<std::string> words) {
  if (Launch const launch = launch_of_environment(); launch.has_ranks()) {
    bool const helps = std::find_if(words.begin(), words.end(), [](auto const& word) {
                         return word == "--help" || word == "-h" || word == "--version";
                       }) != words.end();
    bool const works = works_on_ranks(words), checks = works && words.front() == "check";
    if (!helps && works && words.front() == "info")
      return info_on_ranks(launch, {words.begin() + 1, words.end()});
    if (!helps && works && !checks)
      return run_on_ranks(launch, words.front(), {words.begin() + 1, words.end()});
    if (!launch.tells())  // the first one speaks for all
      return helps || checks ? exit_done : exit_usage;
    if (checks && !helps)
      words.insert(words.end(), {"--ranks", std::to_string(launch.size)});
    else if (!helps)
      throw usage_error(
          "", "started as " + std::to_string(launch.size) +
                  " ranks, and only 'poisson run', 'solve', 'check', 'info', 'bench spmv', 'bench solve' and 'sweep --case' work "
                  "on several; found '" +
                  (words.empty() ? "" : words.front() + (words.front() == "bench" ? " " + words[1] : "")) + "'");
  }
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
    std::cout << version_report();
    return exit_done;
  }
  std::vector<std::string> const commands{"run", "sweep", "predict", "check", "solve", "svd", "schema", "bench", "info", "init"};
  if (std::find(commands.begin(), commands.end(), command) == commands.end()) {
    std::string known;
    for (auto const& name : commands)
      known += (known.empty() ? "" : ", ") + name;
    std::string meant = nearest_name(command, commands);
    if (command.ends_with(".yaml") || command.ends_with(".yml"))
      meant = "run " + command;
    throw usage_error("", "unknown command '" + command + "'" +
                              (meant.empty() ? "; there are " : "; did you mean 'poisson " + meant + "'? There are ") + known);
  }
  auto const run_alone = [&] {
    return run_by(
        alone_team(), [] { return 0; }, command, words);
  };
  if (command == "run" || command == "solve" || command == "bench")
    return run_alone();
  if (command == "predict")
    return run_predict_command(words);
  if (command == "svd")
    return run_svd_command(words);
  if (command == "init")
    return run_init_command(words);
  if (command == "schema")
    return run_schema_command(words);
  Arguments const a = parse(command, words);
  if (a.help)
    return exit_done;
  if (!a.sweep_case.empty())
    return run_alone();
  if (command == "info") {
    print_info();
    return exit_done;
  }
  Configuration const configuration = load_configuration(a.config, a.sets);
  return exit_code_of(&configuration, [&]() -> int {
    if (command == "check") {
      if (a.options.run.threads > 0)
        set_thread_count(a.options.run.threads);
      CheckOptions const options{a.options.run.verbose, a.quiet};
      return print_check(configuration, a.ranks, options);
    }
    if (a.list) {
      list_sweep(configuration);
      return exit_done;
    }
    Console console(a.quiet, a.options.run.verbose);
    if (a.collect)
      return collect_sweep(configuration, a.options.run, console);
    return run_sweep(configuration, a.options, console);
  });
}

}  // namespace

int run_command_line(int argc, char const* const* argv) {
  open_standard_streams();
  install_signal_handlers();
  ForcedEnd const forced_end;
  return code_after_output(exit_code_of(nullptr, [&] { return run_command({argv + 1, argv + argc}); }));
}

}  // namespace poisson::app
