#include "app/commands.hpp"

#include "app/bench.hpp"
#include "app/check.hpp"
#include "app/guarded.hpp"
#include "app/info.hpp"
#include "app/pipeline.hpp"
#include "app/svd_command.hpp"
#include "app/sweep.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/core/nearest_name.hpp"

#include <boost/program_options.hpp>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <charconv>
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
  poisson solve --matrix FILE [--rhs FILE]   solve a system of Matrix Market files
  poisson svd --matrix FILE | --random N     singular values, and vectors, of a dense matrix
  poisson bench spmv       products with a matrix in every format: table and JSON, cuSPARSE beside them
  poisson bench convert    conversions to every format
  poisson info             build, libraries, devices, memory, measured copy bandwidth
  poisson --version
  poisson --help           also: poisson COMMAND --help

Exit codes: 0 done; 1 usage or configuration; 2 the solver did not reach its tolerance (results are written, and marked);
            3 environment (no device, out of memory, input or output).
)";

struct Arguments {
  std::string config;
  SystemSpec system;
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
                     : "results directory (default: results/NAME, NAME being that of the matrix without extensions)");
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
      throw usage_error(command, takes_config
                                     ? (files.empty() ? "a configuration file is needed: poisson " + command + " CONFIG"
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

/// The integers of "64,128", each in its range.
template <class I>
std::vector<I> parse_list(std::string const& option, std::string const& text, I lowest, I highest, bool power_of_two = false) {
  std::vector<I> result;
  for (std::size_t begin = 0; begin <= text.size();) {
    std::size_t const end = std::min(text.find(',', begin), text.size());
    I value{};
    auto const [stop, error] = std::from_chars(text.data() + begin, text.data() + end, value);
    if (error != std::errc() || stop != text.data() + end || value < lowest || value > highest ||
        (power_of_two && !std::has_single_bit(static_cast<std::uint64_t>(value))))
      throw usage_error("bench", option + " must be " + (power_of_two ? "powers of two" : "integers") + " from " +
                                     std::to_string(lowest) + " to " + std::to_string(highest) + ", separated by commas; found '" +
                                     text.substr(begin, end - begin) + "'");
    result.push_back(value);
    begin = end + 1;
  }
  return result;
}

template <class I>
I parse_one(std::string const& option, std::string const& text, I lowest, I highest) {
  I value{};
  auto const [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size() || value < lowest || value > highest)
    throw usage_error("bench", option + " must be an integer from " + std::to_string(lowest) + " to " + std::to_string(highest) +
                                   ", found '" + text + "'");
  return value;
}

/// A name of an enumeration, or an error that says what there is and what was probably meant.
template <class E>
E parse_named(std::string const& what, std::string const& word) {
  if (auto const value = parse_name<E>(word))
    return *value;
  std::vector<std::string_view> names;
  std::string known;
  for (auto const& entry : Names<E>::values) {
    names.push_back(entry.name);
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  std::string const near = nearest_name(word, names);
  throw usage_error("bench", "unknown " + what + " '" + word + "'" + (near.empty() ? "" : "; did you mean '" + near + "'?") +
                                 "; there are " + known);
}

struct BenchArguments {
  BenchOptions options;
  std::vector<std::string> sets;
  bool quiet = false;
  bool help = false;
};

BenchArguments parse_bench(std::vector<std::string> const& words) {
  BenchArguments a;
  std::string nodes, order, rows, formats, slice_sizes, sigma, threads_per_row, backend, threads, samples, products;
  po::options_description visible(
      "poisson bench spmv|convert [CONFIG]\n\n"
      "Measures products (spmv), or conversions from CSR (convert), of every matrix that is named, in every format that holds it.\n"
      "With none named: --nodes 64 --band --random.\n\nMatrices");
  auto matrices = visible.add_options();
  matrices("nodes", po::value(&nodes)->value_name("N[,N...]"), "box of N^3 nodes");
  matrices("order", po::value(&order)->value_name("P"),
           "of the boxes' elements (1: the 27-point matrix; more: assembled on (N-1)/P cells a side)");
  matrices("band", po::bool_switch(&a.options.band), "32 consecutive diagonals");
  matrices("random", po::bool_switch(&a.options.random), "32 random columns a row");
  matrices("rows", po::value(&rows)->value_name("N"), "rows of band and random (default: 131072)");
  matrices("matrix", po::value(&a.options.files)->composing()->value_name("FILE"),
           "Matrix Market file, .mtx or .mtx.gz; may be given several times");
  matrices("set", po::value(&a.sets)->composing()->value_name("key.path=value"),
           "override a key of CONFIG, whose assembled matrix is taken");
  po::options_description measuring("Options");
  auto add = measuring.add_options();
  add("help,h", po::bool_switch(&a.help), "this text");
  add("format", po::value(&formats)->value_name("F[,F...]"), "formats to measure (default: all)");
  add("slice-size", po::value(&slice_sizes)->value_name("C[,C...]"), "rows of a slice (default: 32)");
  add("sigma", po::value(&sigma)->value_name("S"), "rows sorted by length together (0: all; default: each format's own)");
  add("threads-per-row", po::value(&threads_per_row)->value_name("T"), "of crs_t on a GPU (default: 0, by its rule)");
  add("backend", po::value(&backend)->value_name("auto|cpu|cuda"), "where to measure");
  add("threads", po::value(&threads)->value_name("N"), "CPU threads (default: all)");
  add("repeat", po::value(&samples)->value_name("N"), "samples of each product's time, of which the median is told (default: 15)");
  add("products", po::value(&products)->value_name("N"),
      "products after one conversion, for which spmv tells what auto takes and which format was fastest (default: 1000)");
  add("json", po::value(&a.options.json)->value_name("FILE"),
      "write all figures, in SI units; -: to standard output, without tables");
  add("quiet", po::bool_switch(&a.quiet), "print errors and warnings only");
  visible.add(measuring);
  po::options_description all;
  all.add(visible);
  all.add_options()("words", po::value<std::vector<std::string>>());
  po::positional_options_description positional;
  positional.add("words", -1);
  po::variables_map map;
  try {
    auto const style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    po::store(po::command_line_parser(words).options(all).positional(positional).style(style).run(), map);
    po::notify(map);
  } catch (po::error const& error) {
    throw usage_error("bench", error.what());
  }
  if (a.help) {
    std::cout << visible;
    return a;
  }
  auto const given = map.count("words") > 0 ? map["words"].as<std::vector<std::string>>() : std::vector<std::string>();
  if (given.empty())
    throw usage_error("bench", "what to measure is missing: poisson bench spmv, or poisson bench convert");
  BenchOptions& options = a.options;
  options.kind = parse_named<BenchKind>("benchmark", given[0]);
  if (given.size() > 2)
    throw usage_error("bench", "one configuration file is taken, found also '" + given[2] + "'");
  if (given.size() == 2)
    options.config = given[1];
  if (!a.sets.empty() && options.config.empty())
    throw usage_error("bench", "--set needs a configuration file to change: poisson bench " + given[0] + " CONFIG");
  if (map.count("nodes") > 0)
    options.nodes = parse_list<std::int64_t>("--nodes", nodes, 1, 1290);
  if (map.count("order") > 0)
    options.order = parse_one("--order", order, 1, 8);
  if (options.order > 1 && options.nodes.empty())
    throw usage_error("bench", "--order is that of the boxes' elements; give their size with --nodes");
  if (map.count("rows") > 0)
    options.rows = parse_one<std::int64_t>("--rows", rows, 1, std::int64_t{1} << 30);
  if (map.count("rows") > 0 && !options.band && !options.random)
    throw usage_error("bench", "--rows is the size of the band and the random matrix; add --band or --random");
  for (std::size_t begin = 0; map.count("format") > 0 && begin <= formats.size();) {
    std::size_t const end = std::min(formats.find(',', begin), formats.size());
    options.formats.push_back(parse_named<Format>("format", formats.substr(begin, end - begin)));
    begin = end + 1;
  }
  if (map.count("slice-size") > 0)
    options.slice_sizes = parse_list("--slice-size", slice_sizes, 1, 1024, true);
  if (map.count("sigma") > 0)
    options.sigma = parse_one<std::int64_t>("--sigma", sigma, 0, std::int64_t{1} << 31);
  if (map.count("threads-per-row") > 0) {
    options.threads_per_row = parse_one("--threads-per-row", threads_per_row, 0, 32);
    if (options.threads_per_row != 0 && !std::has_single_bit(static_cast<unsigned>(options.threads_per_row)))
      throw usage_error("bench", "--threads-per-row must be a power of two from 1 to 32, or 0, found '" + threads_per_row + "'");
  }
  if (map.count("backend") > 0 && backend != "auto")
    options.backend = parse_named<Backend>("backend", backend);
  if (map.count("threads") > 0)
    options.threads = parse_one("--threads", threads, 1, 4096);
  if (map.count("repeat") > 0)
    options.samples = parse_one("--repeat", samples, 1, 10000);
  if (map.count("products") > 0)
    options.products = parse_one<std::int64_t>("--products", products, 1, std::int64_t{1} << 40);
  if (map.count("json") > 0 && options.json.empty())
    throw usage_error("bench", "--json must name a file, or - for standard output, found ''");
  a.quiet = a.quiet || options.json == "-";
  return a;
}

int run_bench_command(std::vector<std::string> const& words) {
  BenchArguments const a = parse_bench(words);
  if (a.help)
    return exit_done;
  Console console(a.quiet);
  if (a.options.config.empty())
    return run_bench(a.options, nullptr, console);
  Configuration const configuration = load_configuration(a.options.config, a.sets);
  return guarded(&configuration, [&]() -> int { return run_bench(a.options, &configuration, console); });
}

struct SvdArguments {
  SvdCommand command;
  bool quiet = false;
  bool help = false;
};

SvdArguments parse_svd(std::vector<std::string> const& words) {
  SvdArguments a;
  SvdCommand& c = a.command;
  std::string backend;
  std::vector<std::string> sets;
  po::options_description visible("poisson svd --matrix FILE | --random N\n\nOptions");
  auto add = visible.add_options();
  add("help,h", po::bool_switch(&a.help), "this text");
  add("matrix", po::value(&c.matrix)->value_name("FILE"),
      "the matrix: a Matrix Market file, array or coordinate, .mtx or .mtx.gz; taken as dense");
  add("random", po::value(&c.random)->value_name("N"), "an N x N matrix with entries uniform in [-0.5, 0.5]");
  add("seed", po::value(&c.seed)->value_name("S"), "of --random (default: 1)");
  add("vectors", po::bool_switch(&c.vectors), "singular vectors too, and how accurate they are");
  add("band-width", po::value(&c.band_width)->value_name("L"), "of the band between the two stages (default: tuned)");
  add("output", po::value(&c.output)->value_name("DIR"),
      "write singular_values.csv, spectrum.png, result.json and, with --vectors, u.mtx and v.mtx (default: nothing is written)");
  add("set", po::value(&sets)->composing()->value_name("key.path=value"), "backend, output.directory or output.picture");
  add("overwrite", po::bool_switch(&c.overwrite), "replace the results of an earlier run");
  add("backend", po::value(&backend)->value_name("auto|cpu|cuda"), "where to compute");
  add("threads", po::value(&c.threads)->value_name("N"), "CPU threads (default: all)");
  add("quiet", po::bool_switch(&a.quiet), "print errors and warnings only");
  try {
    po::variables_map map;
    auto const style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    po::store(po::command_line_parser(words).options(visible).positional({}).style(style).run(), map);
    po::notify(map);
    if (a.help) {
      std::cout << visible;
      return a;
    }
    auto const refuse = [&](std::string const& message) { throw usage_error("svd", message); };
    auto const given = [&](char const* option) { return map.count(option) > 0; };
    constexpr std::int64_t largest = 46340;  // its square fits 32 bits, as LAPACK counts
    if (given("matrix") == given("random"))
      refuse(given("matrix") ? "--matrix and --random exclude each other" : "a matrix is needed: --matrix FILE or --random N");
    if (given("matrix") && c.matrix.empty())
      refuse("--matrix must name a file, found ''");
    if (given("random") && (c.random < 1 || c.random > largest))
      refuse("--random must be between 1 and " + std::to_string(largest) + ", found " + std::to_string(c.random));
    if (given("seed") && !given("random"))
      refuse("--seed is that of --random, and the matrix is from a file");
    if (given("band-width") && (c.band_width < 1 || c.band_width > largest))
      refuse("--band-width must be between 1 and " + std::to_string(largest) + ", found " + std::to_string(c.band_width));
    if (given("threads") && (c.threads < 1 || c.threads > 4096))
      refuse("--threads must be between 1 and 4096, found " + std::to_string(c.threads));
    if (given("output") && c.output.empty())
      refuse("--output must name a directory, found ''");
    if (given("backend") && backend != "auto" && backend != "cpu" && backend != "cuda")
      refuse("--backend must be auto, cpu or cuda, found '" + backend + "'");
    for (auto const& set : sets)
      if (!set.starts_with("backend=") && !set.starts_with("output.directory=") && !set.starts_with("output.picture="))
        refuse("--set takes backend, output.directory and output.picture here, found '" + set + "'");
    SystemSpec system;
    system.matrix = given("matrix") ? c.matrix : "random";
    RunConfig const config = system_configuration(system, sets).config();
    if (c.output.empty() && std::any_of(sets.begin(), sets.end(), [](auto const& s) { return s.starts_with("output.directory="); }))
      c.output = config.output.directory;
    c.picture = config.output.picture;
    c.backend = given("backend") ? parse_name<Backend>(backend) : config.backend;
  } catch (po::error const& error) {
    throw usage_error("svd", error.what());
  }
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
  std::vector<std::string> const commands{"run", "sweep", "check", "solve", "svd", "schema", "bench", "info"};
  if (std::find(commands.begin(), commands.end(), command) == commands.end()) {
    std::string known;
    for (auto const& name : commands)
      known += (known.empty() ? "" : ", ") + name;
    throw usage_error("", "unknown command '" + command + "'; there are " + known);
  }
  if (command == "bench")
    return run_bench_command(words);
  if (command == "svd") {
    SvdArguments const a = parse_svd(words);
    if (a.help)
      return exit_done;
    Console console(a.quiet);
    return run_svd(a.command, console);
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
  Configuration const configuration =
      command == "solve" ? system_configuration(a.system, a.sets) : load_configuration(a.config, a.sets);
  return guarded(&configuration, [&]() -> int {
    Console console(a.quiet);
    if (command == "solve")
      return solve_system(configuration, a.options.run, console);
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
