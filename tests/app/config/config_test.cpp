#include "app/config/config.hpp"
#include "tests/source_dir.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sys/stat.h>
#include <unistd.h>

namespace poisson::app {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

fs::path const configs = source_dir() / "configs";

std::string const minimal = "problem:\n  boundary:\n    - {ids: all, type: dirichlet, value: \"0\"}\n";

std::vector<fs::path> config_files() {
  std::vector<fs::path> files;
  for (auto const& entry : fs::directory_iterator(configs))
    if (entry.path().extension() == ".yaml")
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

std::string read_file(fs::path const& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

RunConfig parse(std::string const& text, Strings const& sets = {}) {
  return parse_configuration(text, "dir/case.yaml", sets).config();
}

/// The message of the ConfigError that parsing ends with; empty when it does not.
std::string error_of(std::string const& text, Strings const& sets = {}) {
  try {
    (void)parse(text, sets);
  } catch (ConfigError const& error) {
    return error.what();
  }
  return "";
}

std::string error_of_file(fs::path const& path) {
  try {
    (void)load_configuration(path);
  } catch (ConfigError const& error) {
    return error.what();
  }
  return "";
}

/// A directory that is removed at the end.
class Scratch {
public:
  Scratch() {
    std::string name = (fs::temp_directory_path() / "poisson_config_XXXXXX").string();
    if (!mkdtemp(name.data()))
      throw std::runtime_error("mkdtemp");
    path_ = name;
  }
  Scratch(Scratch const&) = delete;
  Scratch& operator=(Scratch const&) = delete;
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  [[nodiscard]] fs::path write(std::string const& name, std::string const& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
    return path_ / name;
  }
  [[nodiscard]] fs::path const& path() const { return path_; }

private:
  fs::path path_;
};

testing::AssertionResult contains(std::string const& message, Strings const& parts) {
  for (auto const& part : parts)
    if (message.find(part) == std::string::npos)
      return testing::AssertionFailure() << "no '" << part << "' in: " << message;
  return testing::AssertionSuccess();
}

TEST(Config, DefaultsAreThoseOfTheStructs) {
  RunConfig const c = parse(minimal);
  EXPECT_EQ(c.problem.mesh.generator, "box");
  EXPECT_EQ(c.problem.mesh.cells, (std::array<std::int64_t, 3>{32, 32, 32}));
  EXPECT_EQ(c.problem.order, 1);
  EXPECT_FALSE(c.problem.exact);
  EXPECT_FALSE(c.matrix.format);
  EXPECT_FALSE(c.matrix.sigma);
  EXPECT_FALSE(c.matrix.expected_products);
  EXPECT_EQ(c.matrix.conversion, Conversion::automatic);
  EXPECT_FALSE(c.backend);
  EXPECT_EQ(c.solver.tolerance, 1e-12);
  EXPECT_EQ(c.solver.max_iterations, 10000);
  EXPECT_TRUE(c.output.vtk_enabled);
  EXPECT_FALSE(c.output.vtk_format);
  EXPECT_EQ(c.output.vtk_fields.size(), Names<SolutionField>::values.size() - 2);
  // Each takes 24 bytes a node more.
  EXPECT_FALSE(c.output.writes(SolutionField::flux_points));
  EXPECT_FALSE(c.output.writes(SolutionField::gradient));
  EXPECT_TRUE(c.output.picture);
  EXPECT_TRUE(c.output.pictures.empty());
  EXPECT_EQ(c.output.directory, "results/case");
  EXPECT_TRUE(c.sweep.axes.empty());
}

TEST(Config, EveryKeyReachesItsMember) {
  RunConfig const c = parse(R"yaml(
problem:
  mesh: {generator: box, origin: [-1, 0.5, 1e-3], extent: [2, .25, 3.], cells: [1, 2, +3], refinements: 4}
  element: {order: 3}
  coefficient: {7: [1, "x", "1 + y"], default: 2.5}
  source: -1.5
  boundary:
    - {ids: [0, 4294967294], type: robin, alpha: 3, value: "if(x < 0.5, 1, 2)"}
    - ids: all
      type: neumann
  exact: x > 0.5
matrix: {format: half_cds, slice_size: 64, sigma: 256, threads_per_row: 8, conversion: sequential, pair_window: 7, merge_window: 33, base_candidates: 5, expected_products: 12345678901}
solver: {method: cg, precision: double, matrix_precision: double, preconditioner: jacobi, tolerance: 1e-8, max_iterations: 9223372036854775807}
backend: cuda
analysis: {svd: [{of: operator, modes: 2, max_dense: 100}, {of: field, points: 33, normal: y, at: -0.5, error: 1e-3}, {of: field, sample: box}]}
output: {directory: "out dir", vtk: {enabled: false, format: vtu, fields: [flux, u], compression: best, precision: single}, picture: false}
sweep: {problem.element.order: [1, 2], "problem.boundary[0].value": ["x", 2, "y, z"], mode: product}
)yaml");
  EXPECT_EQ(c.problem.mesh.origin, (std::array<double, 3>{-1, 0.5, 1e-3}));
  EXPECT_EQ(c.problem.mesh.extent, (std::array<double, 3>{2, 0.25, 3}));
  EXPECT_EQ(c.problem.mesh.cells, (std::array<std::int64_t, 3>{1, 2, 3}));
  EXPECT_EQ(c.problem.mesh.refinements, 4);
  EXPECT_EQ(c.problem.order, 3);
  EXPECT_EQ(c.problem.coefficient, (std::map<int, assembly::CoefficientExpressions>{{-1, {"2.5"}}, {7, {"1", "x", "1 + y"}}}));
  EXPECT_EQ(c.problem.source, "-1.5");
  ASSERT_EQ(c.problem.boundary.size(), 2u);
  EXPECT_EQ(c.problem.boundary[0].ids, (std::vector<unsigned>{0, 4294967294u}));
  EXPECT_EQ(c.problem.boundary[0].type, assembly::BoundaryType::robin);
  EXPECT_EQ(c.problem.boundary[0].alpha, "3");
  EXPECT_EQ(c.problem.boundary[0].value, "if(x < 0.5, 1, 2)");
  EXPECT_TRUE(c.problem.boundary[1].all_ids);
  EXPECT_EQ(c.problem.boundary[1].type, assembly::BoundaryType::neumann);
  EXPECT_EQ(c.problem.exact, "x > 0.5");
  EXPECT_EQ(c.matrix.format, Format::half_cds);
  EXPECT_EQ(c.matrix.slice_size, 64);
  EXPECT_EQ(c.matrix.sigma, 256);
  EXPECT_EQ(c.matrix.threads_per_row, 8);
  EXPECT_EQ(c.matrix.conversion, Conversion::sequential);
  EXPECT_EQ(c.matrix.pair_window, 7);
  EXPECT_EQ(c.matrix.merge_window, 33);
  EXPECT_EQ(c.matrix.base_candidates, 5);
  EXPECT_EQ(c.matrix.expected_products, 12345678901);
  EXPECT_EQ(c.solver.preconditioner, PreconditionerKind::jacobi);
  EXPECT_EQ(c.solver.tolerance, 1e-8);
  EXPECT_EQ(c.solver.max_iterations, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(c.backend, Backend::cuda);
  ASSERT_EQ(c.analysis.size(), 3u);
  EXPECT_EQ(c.analysis[0].of, AnalysisOf::operator_);
  EXPECT_EQ(c.analysis[0].modes, 2);
  EXPECT_EQ(c.analysis[0].max_dense, 100);
  EXPECT_EQ(c.analysis[1].of, AnalysisOf::field);
  EXPECT_EQ(c.analysis[1].sample, SampleShape::plane);
  EXPECT_EQ(c.analysis[1].points_per_direction(), 33);
  EXPECT_EQ(c.analysis[1].normal, Direction::y);
  EXPECT_EQ(c.analysis[1].at, -0.5);
  EXPECT_EQ(c.analysis[1].error, 1e-3);
  EXPECT_EQ(c.analysis[2].sample, SampleShape::box);
  EXPECT_EQ(c.analysis[2].points_per_direction(), 64);
  EXPECT_EQ(c.output.directory, "out dir");
  EXPECT_FALSE(c.output.vtk_enabled);
  EXPECT_EQ(c.output.vtk_format, output::VtkFormat::vtu);
  EXPECT_EQ(c.output.vtk_fields, (std::vector{SolutionField::flux, SolutionField::u}));
  EXPECT_EQ(c.output.vtk.compression, output::VtkCompression::best);
  EXPECT_EQ(c.output.vtk.precision, output::VtkPrecision::single);
  EXPECT_FALSE(c.output.picture);
  ASSERT_EQ(c.sweep.axes.size(), 2u);
  EXPECT_EQ(c.sweep.axes[0].path, "problem.element.order");
  EXPECT_EQ(c.sweep.axes[0].values, (Strings{"1", "2"}));
  EXPECT_EQ(c.sweep.axes[1].path, "problem.boundary[0].value");
  EXPECT_EQ(c.sweep.axes[1].values, (Strings{"\"x\"", "2", "\"y, z\""}));
}

TEST(Config, OneIdNeedsNoList) {
  RunConfig const c = parse("problem: {boundary: [{ids: 0, type: dirichlet}, {ids: all, type: neumann}]}");
  EXPECT_EQ(c.problem.boundary.at(0).ids, std::vector<unsigned>{0});
  EXPECT_FALSE(c.problem.boundary.at(0).all_ids);
}

TEST(Config, AnalysisOfSnapshots) {
  std::string const sweep = "\nsweep: {problem.source: [1, 2, 3]}\n";
  RunConfig const c = parse("problem: {boundary: [{ids: all, type: dirichlet}]}\n"
                            "analysis: {svd: [{of: snapshots, modes: 7, leave_out: 2}, {of: snapshots}]}" +
                            sweep);
  ASSERT_EQ(c.analysis.size(), 2u);
  EXPECT_EQ(c.analysis[0].of, AnalysisOf::snapshots);
  EXPECT_EQ(c.analysis[0].modes, 7);
  EXPECT_EQ(c.analysis[0].leave_out, 2);
  EXPECT_FALSE(c.analysis[1].leave_out);
}

TEST(Config, GeneratorArgumentsBecomeDealIINotation) {
  auto const arguments = [](std::string const& value) {
    return parse("problem: {mesh: {generator: hyper_ball, arguments: " + value + "}, boundary: [{ids: all, type: dirichlet}]}")
        .problem.mesh.arguments;
  };
  EXPECT_EQ(arguments("[[0, 0, 0], 0.5, 1, 12, true]"), "0, 0, 0 : 0.5 : 1 : 12 : true");
  EXPECT_EQ(arguments("[[[0, 0], [1, 2]], 3]"), "0, 0 ; 1, 2 : 3");
  EXPECT_EQ(arguments("\"0, 0, 0 : 0.5\""), "0, 0, 0 : 0.5");
  EXPECT_EQ(arguments("2"), "2");
  EXPECT_EQ(arguments("null"), "");
  EXPECT_TRUE(contains(
      error_of("problem:\n  mesh: {generator: hyper_ball, arguments: [{a: 1}]}\n  boundary: [{ids: all, type: dirichlet}]\n"),
      {"dir/case.yaml:2:45: problem.mesh.arguments[0]: found a map", "allowed: list of the arguments"}));
}

struct BadValue {
  char const* name;
  char const* text;  ///< a whole configuration
  Strings parts;     ///< what the message must say
};
void PrintTo(BadValue const& bad, std::ostream* stream) {
  *stream << bad.name;
}

class BadConfig : public testing::TestWithParam<BadValue> {};

TEST_P(BadConfig, SaysWhereWhatAndWhatIsAllowed) {
  std::string const message = error_of(GetParam().text);
  ASSERT_NE(message, "");
  EXPECT_TRUE(contains(message, GetParam().parts));
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

#define BOUNDARY "\n  boundary: [{ids: all, type: dirichlet}]\n"
INSTANTIATE_TEST_SUITE_P(
    Values, BadConfig,
    testing::ValuesIn(std::vector<BadValue>{
        BadValue{"unknown_key",
                 "problem:\n  mesh:\n    cels: [1, 1, 1]" BOUNDARY,
                 {"dir/case.yaml:3:5: problem.mesh.cels: unknown key; did you mean 'cells'?",
                  "Allowed here: image, generator, arguments"}},
        BadValue{"key_of_another_level",
                 "problem:" BOUNDARY "tolerance: 1e-3\n",
                 {"dir/case.yaml:3:1: tolerance: unknown key; did you mean 'solver.tolerance'?"}},
        BadValue{"misspelled_key_of_another_level", "problem:\n  cell: [1, 1, 1]" BOUNDARY, {"did you mean 'problem.mesh.cells'?"}},
        BadValue{"swapped_letters", "problem:" BOUNDARY "sovler: {}\n", {"dir/case.yaml:3:1: sovler", "did you mean 'solver'?"}},
        BadValue{"letter_case", "Problem:" BOUNDARY, {"did you mean 'problem'?"}},
        BadValue{"key_like_nothing",
                 "problem:" BOUNDARY "zzzzzz: 1\n",
                 {"3:1: zzzzzz: unknown key. Allowed here: parameters, problem, matrix, solver"}},
        BadValue{
            "key_of_a_condition",
            "problem:\n  boundary:\n    - {ids: all, typ: dirichlet}\n",
            {"3:18: problem.boundary[0].typ: unknown key; did you mean 'type'?", "Allowed here: ids, names, type, value, alpha"}},
        BadValue{"merge_key", "a: &a {x: 1}\n<<: *a\nproblem:" BOUNDARY, {"1:1: a: unknown key"}},
        BadValue{"duplicate_key",
                 "problem:" BOUNDARY "solver: {}\nsolver: {}\n",
                 {"dir/case.yaml:4:1: duplicate key 'solver'; the first one is at dir/case.yaml:3:1"}},
        BadValue{"section_is_a_value", "problem: 3\n", {"1:10: problem: found '3'; allowed: a map with the keys mesh, element"}},
        BadValue{"root_is_a_list", "[1, 2]\n", {"1:1: (whole file): found a list of 2", "problem, matrix, solver"}},
        BadValue{"root_is_text", "hello\n", {"1:1: (whole file): found 'hello'"}},
        BadValue{"no_problem", "solver: {}\n", {"1:1: problem.boundary: is missing"}},
        BadValue{"no_boundary", "problem:\n  source: 1\n", {"problem.boundary: is missing"}},
        BadValue{"image_without_a_box",
                 "problem:\n  mesh: {generator: hyper_ball}" BOUNDARY "output: {vtk: {format: image}}\n",
                 {"4:24: output.vtk.format: found 'image'", "generator: box only", "allowed for this mesh: auto, vtu, hdf"}},
        BadValue{
            "field_that_is_not_known",
            "problem:" BOUNDARY "output:\n  vtk: {fields: [u, fluxx]}\n",
            {"4:21: output.vtk.fields[1]: found 'fluxx'", "did you mean 'flux'?", "u, exact, error, material, coefficient, flux"}},
        BadValue{"field_given_twice",
                 "problem:" BOUNDARY "output: {vtk: {fields: [u, u]}}\n",
                 {"output.vtk.fields[1]: 'u' is given twice"}},
        BadValue{"no_field", "problem:" BOUNDARY "output: {vtk: {fields: []}}\n", {"output.vtk.fields: found a list of 0"}},
        BadValue{"empty_boundary", "problem:\n  boundary: []\n", {"2:13: problem.boundary: found a list of 0"}},
        BadValue{"boundary_is_a_map",
                 "problem:\n  boundary: {ids: all}\n",
                 {"2:13: problem.boundary: found a map", "list of conditions"}},
        BadValue{"condition_is_text", "problem:\n  boundary: [dirichlet]\n", {"2:14: problem.boundary[0]: found 'dirichlet'"}},
        BadValue{"no_ids", "problem:\n  boundary: [{type: dirichlet}]\n", {"2:14: problem.boundary[0].ids: is missing"}},
        BadValue{"no_type", "problem:\n  boundary: [{ids: all}]\n", {"problem.boundary[0].type: is missing"}},
        BadValue{
            "wrong_type",
            "problem:\n  boundary: [{ids: all, type: dirichle}]\n",
            {"2:31: problem.boundary[0].type: found 'dirichle'; did you mean 'dirichlet'?", "Allowed: dirichlet, neumann, robin"}},
        BadValue{
            "empty_ids", "problem:\n  boundary: [{ids: [], type: dirichlet}]\n", {"problem.boundary[0].ids: found a list of 0"}},
        BadValue{"negative_id",
                 "problem:\n  boundary: [{ids: [0, -1], type: dirichlet}]\n",
                 {"2:24: problem.boundary[0].ids[1]: found '-1'; allowed: integer from 0"}},
        BadValue{"scalar_id",
                 "problem:\n  boundary: [{ids: -2, type: dirichlet}]\n",
                 {"problem.boundary[0].ids: found '-2'; allowed: integer from 0"}},
        BadValue{"id_twice",
                 "problem:\n  boundary:\n    - {ids: [0, 1], type: dirichlet}\n    - {ids: [2, 1], type: neumann}\n",
                 {"4:17: problem.boundary[1].ids[1]: boundary id 1 already has a condition in problem.boundary[0]"}},
        BadValue{"all_twice",
                 "problem:\n  boundary:\n    - {ids: all, type: dirichlet}\n    - {ids: all, type: neumann}\n",
                 {"4:13: problem.boundary[1].ids: all already has a condition in problem.boundary[0]"}},
        BadValue{"alpha_of_dirichlet",
                 "problem:\n  boundary: [{ids: all, type: dirichlet, alpha: 1}]\n",
                 {"2:49: problem.boundary[0].alpha: cannot be given here (found '1')", "only with type: robin"}},
        BadValue{
            "robin_without_alpha", "problem:\n  boundary: [{ids: all, type: robin}]\n", {"problem.boundary[0].alpha: is missing"}},
        BadValue{"text_for_a_number",
                 "problem:" BOUNDARY "solver:\n  tolerance: abc\n",
                 {"dir/case.yaml:4:14: solver.tolerance: found 'abc'; allowed: discretization, finite number > 0 and < 1"}},
        BadValue{"quoted_number", "problem:" BOUNDARY "solver: {tolerance: \"1e-3\"}\n", {"found the text \"1e-3\""}},
        BadValue{"zero_tolerance", "problem:" BOUNDARY "solver: {tolerance: 0}\n", {"solver.tolerance: found '0'"}},
        BadValue{"tolerance_of_one", "problem:" BOUNDARY "solver: {tolerance: 1}\n", {"solver.tolerance: found '1'"}},
        BadValue{"nan",
                 "problem:" BOUNDARY "solver: {tolerance: .nan}\n",
                 {"3:21: solver.tolerance: found '.nan'; allowed: discretization, finite number"}},
        BadValue{"nan_without_point", "problem:" BOUNDARY "solver: {tolerance: nan}\n", {"found 'nan'"}},
        BadValue{"infinite_origin",
                 "problem:\n  mesh: {origin: [0, -.inf, 0]}" BOUNDARY,
                 {"2:22: problem.mesh.origin[1]: found '-.inf'"}},
        BadValue{
            "overflowing_number", "problem:\n  mesh: {origin: [0, 1e999, 0]}" BOUNDARY, {"problem.mesh.origin[1]: found '1e999'"}},
        BadValue{"overflowing_integer",
                 "problem:\n  element: {order: 1000000000000000000000000000000}" BOUNDARY,
                 {"2:20: problem.element.order: found '1000000000000000000000000000000'; allowed: integer from 1 to 8"}},
        BadValue{"overflowing_iterations", "problem:" BOUNDARY "solver: {max_iterations: 9223372036854775808}\n", {"integer >= 0"}},
        BadValue{
            "negative_iterations", "problem:" BOUNDARY "solver: {max_iterations: -1}\n", {"solver.max_iterations: found '-1'"}},
        BadValue{
            "fractional_integer", "problem:\n  mesh: {refinements: 1.5}" BOUNDARY, {"found '1.5'; allowed: integer from 0 to 12"}},
        BadValue{"many_refinements", "problem:\n  mesh: {refinements: 13}" BOUNDARY, {"found '13'"}},
        BadValue{"order_zero", "problem:\n  element: {order: 0}" BOUNDARY, {"found '0'"}},
        BadValue{"order_nine", "problem:\n  element: {order: 9}" BOUNDARY, {"found '9'"}},
        BadValue{"negative_cells",
                 "problem:\n  mesh: {cells: [4, -4, 4]}" BOUNDARY,
                 {"2:21: problem.mesh.cells[1]: found '-4'; allowed: integer from 1"}},
        BadValue{"two_cells",
                 "problem:\n  mesh: {cells: [4, 4]}" BOUNDARY,
                 {"problem.mesh.cells: found a list of 2; allowed: [x, y, z]"}},
        BadValue{"flat_box",
                 "problem:\n  mesh: {extent: [1, 0, 1]}" BOUNDARY,
                 {"problem.mesh.extent[1]: found '0'; allowed: finite number > 0"}},
        BadValue{"generator_and_file",
                 "problem:\n  mesh: {generator: box, file: a.msh}" BOUNDARY,
                 {"2:21: problem.mesh.generator: cannot be given here", "only without problem.mesh.file"}},
        BadValue{"cells_of_a_file",
                 "problem:\n  mesh: {file: a.msh, cells: [1, 1, 1]}" BOUNDARY,
                 {"problem.mesh.cells: cannot be given here", "only with generator: box"}},
        BadValue{"origin_of_a_ball",
                 "problem:\n  mesh: {generator: hyper_ball, origin: [1, 1, 1]}" BOUNDARY,
                 {"problem.mesh.origin: cannot be given"}},
        BadValue{"arguments_of_a_box", "problem:\n  mesh: {arguments: [1]}" BOUNDARY, {"problem.mesh.arguments: cannot be given"}},
        BadValue{"empty_file_name", "problem:\n  mesh: {file: \"\"}" BOUNDARY, {"problem.mesh.file: found the text \"\""}},
        BadValue{"no_value", "problem:\n  source:" BOUNDARY, {"problem.source: has no value"}},
        BadValue{"empty_expression", "problem:\n  source: \" \"" BOUNDARY, {"2:11: problem.source: found the text", "expression"}},
        BadValue{
            "infinite_expression", "problem:\n  source: -.inf" BOUNDARY, {"problem.source: found '-.inf', which is not finite"}},
        BadValue{"list_for_an_expression",
                 "problem:\n  source: [1, 2]" BOUNDARY,
                 {"problem.source: found a list of 2; allowed: expression"}},
        BadValue{"unquoted_conditional",
                 "problem:\n  source: x > 0 ? 1 : 2" BOUNDARY,
                 {"dir/case.yaml:2:", "YAML syntax: ", "needs quotes"}},
        BadValue{
            "map_for_an_expression", "problem:\n  exact: {x: 2}" BOUNDARY, {"2:10: problem.exact: found a map", "needs quotes"}},
        BadValue{"two_coefficients",
                 "problem:\n  coefficient: [1, 2]" BOUNDARY,
                 {"2:16: problem.coefficient: found a list of 2", "[kx, ky, kz]"}},
        BadValue{"coefficient_key",
                 "problem:\n  coefficient: {\"\": 2}" BOUNDARY,
                 {"2:17: problem.coefficient: found the key ''; allowed: material ids (integers >= 0), names and default"}},
        BadValue{"negative_material", "problem:\n  coefficient: {-1: 2}" BOUNDARY, {"found the key '-1'"}},
        BadValue{"material_twice",
                 "problem:\n  coefficient: {1: 2, 01: 3}" BOUNDARY,
                 {"2:23: problem.coefficient: material 01 is given twice"}},
        BadValue{"no_material", "problem:\n  coefficient: {}" BOUNDARY, {"problem.coefficient: found a map"}},
        BadValue{"nested_material", "problem:\n  coefficient: {1: {2: 3}}" BOUNDARY, {"problem.coefficient[1]: found a map"}},
        BadValue{"unknown_format", "problem:" BOUNDARY "matrix: {format: half-cds}\n", {"did you mean 'half_cds'?"}},
        BadValue{"no_format",
                 "problem:" BOUNDARY "matrix: {format: ellpack}\n",
                 {"3:18: matrix.format: ", "allowed: auto, csr, crs_t, sell_c_sigma, cod_sell, cds, half_cds"}},
        BadValue{
            "slice_size", "problem:" BOUNDARY "matrix: {slice_size: 33}\n", {"found '33'; allowed: power of two from 1 to 1024"}},
        BadValue{"sigma",
                 "problem:" BOUNDARY "matrix: {sigma: -1}\n",
                 {"3:17: matrix.sigma: found '-1'; allowed: auto, integer from 0"}},
        BadValue{"sigma_word", "problem:" BOUNDARY "matrix: {sigma: all}\n", {"matrix.sigma: found 'all'; allowed: auto, "}},
        BadValue{"threads_per_row",
                 "problem:" BOUNDARY "matrix: {threads_per_row: 3}\n",
                 {"3:27: matrix.threads_per_row: found '3'; allowed: 0 or a power of two from 1 to 32"}},
        BadValue{"threads_per_row_64", "problem:" BOUNDARY "matrix: {threads_per_row: 64}\n", {"found '64'"}},
        BadValue{"conversion",
                 "problem:" BOUNDARY "matrix: {conversion: gpu}\n",
                 {"matrix.conversion: ", "automatic, sequential, host, device"}},
        BadValue{"pair_window",
                 "problem:" BOUNDARY "matrix: {pair_window: 0}\n",
                 {"matrix.pair_window: found '0'; allowed: integer from 1 to 64"}},
        BadValue{"merge_window", "problem:" BOUNDARY "matrix: {merge_window: 65}\n", {"matrix.merge_window: found '65'"}},
        BadValue{"base_candidates",
                 "problem:" BOUNDARY "matrix: {base_candidates: 65}\n",
                 {"matrix.base_candidates: found '65'; allowed: integer from 0"}},
        BadValue{"expected_products",
                 "problem:" BOUNDARY "matrix: {expected_products: 0}\n",
                 {"3:29: matrix.expected_products: found '0'; allowed: auto, integer >= 1"}},
        BadValue{"method",
                 "problem:" BOUNDARY "solver: {method: bicgstab2}\n",
                 {"did you mean 'bicgstab'", "cg, bicgstab, gmres, minres"}},
        BadValue{
            "shift", "problem:" BOUNDARY "solver: {shift: -0.1}\n", {"solver.shift: found '-0.1'; allowed: finite number >= 0"}},
        BadValue{"precision",
                 "problem:" BOUNDARY "solver: {precision: quad}\n",
                 {"solver.precision: found 'quad'", "double, double_double, refined, mixed"}},
        BadValue{"preconditioner",
                 "problem:" BOUNDARY "solver: {preconditioner: ilut}\n",
                 {"did you mean 'ilu0'", "none, jacobi, ic0, ilu0"}},
        BadValue{"analysis_no_list", "problem:" BOUNDARY "analysis: {svd: {of: operator}}\n", {"3:17: analysis.svd: found a map"}},
        BadValue{
            "analysis_no_map", "problem:" BOUNDARY "analysis: {svd: [operator]}\n", {"3:18: analysis.svd[0]: found 'operator'"}},
        BadValue{"analysis_of_nothing", "problem:" BOUNDARY "analysis: {svd: [{modes: 3}]}\n", {"analysis.svd[0].of: is missing"}},
        BadValue{"analysis_of_unknown",
                 "problem:" BOUNDARY "analysis: {svd: [{of: operatr}]}\n",
                 {"3:23: analysis.svd[0].of: found 'operatr'; did you mean 'operator'?"}},
        BadValue{"analysis_unknown_key",
                 "problem:" BOUNDARY "analysis: {svd: [{of: field, eror: 1e-3}]}\n",
                 {"analysis.svd[0].eror: unknown key; did you mean 'error'?"}},
        BadValue{"analysis_key_of_another",
                 "problem:" BOUNDARY "analysis: {svd: [{of: field}, {of: operator, points: 5}]}\n",
                 {"analysis.svd[1].points: cannot be given here", "only with of: field"}},
        BadValue{"analysis_box_too_fine",
                 "problem:" BOUNDARY "analysis: {svd: [{of: field, sample: box, points: 513}]}\n",
                 {"analysis.svd[0].points: found '513'", "from 2 to 512"}},
        BadValue{"snapshots_of_meshes",
                 "problem:" BOUNDARY "analysis: {svd: [{of: snapshots}]}\nsweep: {problem.element.order: [1, 2, 3]}\n",
                 {"3:23: analysis.svd[0].of: snapshots need one mesh", "problem.element.order"}},
        BadValue{"snapshot_that_is_not_there",
                 "problem:" BOUNDARY "analysis: {svd: [{of: snapshots, leave_out: 3}]}\nsweep: {problem.source: [1, 2, 3]}\n",
                 {"analysis.svd[0].leave_out: found '3'; the sweep has cases 0 to 2"}},
        BadValue{"backend", "problem:" BOUNDARY "backend: gpu\n", {"3:10: backend: found 'gpu'", "auto, cpu, cuda"}},
        BadValue{"yes_for_true",
                 "problem:" BOUNDARY "output: {picture: yes}\n",
                 {"output.picture: found 'yes'; allowed: true or false"}},
        BadValue{"sweep_of_unknown_key",
                 "problem:" BOUNDARY "sweep:\n  problem.element.ordr: [1]\n",
                 {"dir/case.yaml:4:3: sweep of problem.element.ordr=1", "did you mean 'order'?"}},
        BadValue{"sweep_of_missing_element",
                 "problem:" BOUNDARY "sweep: {\"problem.boundary[3].value\": [1]}\n",
                 {"problem.boundary is a list of 1"}},
        BadValue{"sweep_of_no_values",
                 "problem:" BOUNDARY "sweep: {problem.element.order: []}\n",
                 {"3:32: sweep.problem.element.order: found a list of 0"}},
        BadValue{"sweep_of_one_value", "problem:" BOUNDARY "sweep: {problem.element.order: 1}\n", {"found '1'; allowed: list"}},
        BadValue{"sweep_of_output",
                 "problem:" BOUNDARY "sweep: {output.directory: [a, b]}\n",
                 {"3:9: sweep.output.directory: cannot be swept"}},
        BadValue{"sweep_mode", "problem:" BOUNDARY "sweep: {mode: zipp}\n", {"sweep.mode: found 'zipp'; did you mean 'zip'?"}},
        BadValue{"sweep_zip_lengths",
                 "problem:" BOUNDARY "sweep: {problem.element.order: [1, 2], problem.mesh.refinements: [1], mode: zip}\n",
                 {"has 1 values, but problem.element.order has 2"}},
        BadValue{"comment_only", "# nothing\n", {"dir/case.yaml: the file is empty"}},
        BadValue{"empty", "", {"dir/case.yaml: the file is empty"}},
        BadValue{"two_documents", "problem:" BOUNDARY "---\nsolver: {}\n", {"4:1: a second document"}},
        BadValue{"tab", "problem:\n\tboundary: []\n", {"dir/case.yaml:2:1: tab in the indentation"}},
        BadValue{"unclosed_list", "problem:\n  boundary: [{ids: all\n", {"dir/case.yaml:", "YAML syntax: "}},
        BadValue{"wrong_indentation", "problem:\n  source: 1\n   exact: 2\n", {"dir/case.yaml:3:", "YAML syntax: ", "indentation"}},
        BadValue{"undefined_alias", "problem: *p\n", {"dir/case.yaml:1:", "YAML syntax: "}},
        BadValue{"recursive_alias", "problem: &p [*p]\n", {"1:14: this alias refers to a value that contains it"}},
        BadValue{"tag", "problem:\n  source: !!binary aGVsbG8=" BOUNDARY, {"2:11: YAML tags such as tag:yaml.org,2002:binary"}},
        BadValue{"list_as_key", "? [a, b]\n: 1\n", {"1:3: a key must be a plain name"}},
        BadValue{"utf8",
                 "problem:\n  source: \"\xE9\"" BOUNDARY,
                 {"dir/case.yaml:2:12: not a text file in UTF-8: it holds the byte 0xE9"}},
        BadValue{
            "escaped_control_character", "problem:\n  mesh: {file: \"a\\0b\"}" BOUNDARY, {"2:16: text with control characters"}}}),
    [](testing::TestParamInfo<BadValue> const& parameter) { return parameter.param.name; });
#undef BOUNDARY

TEST(Config, BinaryDeepAndExplodingInputEndsAtOnce) {
  EXPECT_TRUE(
      contains(error_of(std::string("problem:\0\n", 10)), {"dir/case.yaml:1:9: not a text file in UTF-8: it holds the byte 0x00"}));
  EXPECT_TRUE(contains(error_of("\x7F"
                                "ELF\x02\x01"),
                       {"1:1: not a text file in UTF-8: it holds the byte 0x7F"}));
  for (std::string const part : {"[", "{a: ", "- ", "? ", "[a: "}) {
    std::string text = "problem: \n  ";
    for (int i = 0; i < 100000; ++i)
      text += part;
    EXPECT_TRUE(contains(error_of(text), {"dir/case.yaml:2:", "nested more than 32 levels deep"})) << part;
  }
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 20; ++i) {
    bomb.append("a").append(std::to_string(i)).append(": &a").append(std::to_string(i)).append(" [");
    for (int k = 0; k < 10; ++k)
      bomb.append(k ? ", *a" : "*a").append(std::to_string(i - 1));
    bomb += "]\n";
  }
  EXPECT_TRUE(contains(error_of(bomb), {"more than 100000 values, aliases expanded"}));
  std::string sweep = minimal + "sweep:\n";
  for (std::string const key : {"problem.mesh.refinements", "problem.element.order", "solver.max_iterations", "solver.tolerance"}) {
    sweep += "  " + key + ": [1";
    for (int i = 0; i < 99; ++i)
      sweep += ", 1";
    sweep += "]\n";
  }
  EXPECT_TRUE(contains(error_of(sweep), {"more than 100000 cases"}));
}

TEST(Config, LongValuesAreCutInMessages) {
  std::string const message = error_of(minimal + "backend: " + std::string(5000, 'x') + "\n");
  EXPECT_LT(message.size(), 200u);
  EXPECT_TRUE(contains(message, {"backend: found 'xxx", "..."}));
}

TEST(Config, YamlFormsThatAreFine) {
  EXPECT_EQ(parse("\xEF\xBB\xBF---\nproblem:\r\n  source: &f \"x\" # comment\r\n  exact: *f\r\n  boundary: [{ids: all, type: "
                  "dirichlet}]\r\n...\n")
                .problem.exact,
            "x");
  EXPECT_EQ(parse("problem:\n  source: !!str 1\n  boundary: [{ids: all, type: dirichlet}]\n").problem.source, "1");
  EXPECT_EQ(parse("solver:\n" + minimal).solver.tolerance, 1e-12) << "a section without anything in it";
  EXPECT_EQ(parse("problem:\n  source: |\n    x\n    + y\n  boundary: [{ids: all, type: dirichlet}]\n").problem.source, "x\n+ y\n");
  EXPECT_EQ(parse("problem: {mesh: {file: a.msh, generator: null}, boundary: [{ids: all, type: dirichlet}]}").problem.mesh.file,
            "a.msh");
}

TEST(Config, FilesThatCannotBeRead) {
  Scratch const scratch;
  EXPECT_TRUE(contains(error_of_file(scratch.path() / "none.yaml"), {"none.yaml: there is no such configuration file"}));
  EXPECT_TRUE(contains(error_of_file(scratch.path()), {scratch.path().string() + ": is a directory"}));
  EXPECT_TRUE(contains(error_of_file(scratch.write("empty.yaml", "")), {"empty.yaml: the file is empty"}));
  EXPECT_TRUE(
      contains(error_of_file(scratch.write("large.yaml", std::string((1 << 20) + 1, '#'))), {"large.yaml: is larger than 1 MiB"}));
  fs::path const pipe = scratch.path() / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(contains(error_of_file(pipe), {"pipe: is not a regular file"}));
  EXPECT_TRUE(contains(error_of_file(scratch.path() / "empty.yaml" / "x"), {"empty.yaml/x: "}));
  if (geteuid() != 0) {  // root may read everything
    fs::path const locked = scratch.write("locked.yaml", minimal);
    fs::permissions(locked, fs::perms::none);
    EXPECT_TRUE(contains(error_of_file(locked), {"locked.yaml: cannot be opened"}));
  }
}

TEST(Config, MeshFileIsFoundBesideTheConfiguration) {
  Scratch const scratch;
  fs::create_directory(scratch.path() / "meshes");
  fs::create_directory(scratch.path() / "configs");
  (void)scratch.write("meshes/m.msh", "x");
  std::string const boundary = "  boundary: [{ids: all, type: dirichlet}]\n";
  fs::path const found = scratch.write("configs/c.yaml", "problem:\n  mesh: {file: ../meshes/m.msh}\n" + boundary);
  EXPECT_EQ(load_configuration(found).config().problem.mesh.file, (scratch.path() / "meshes/m.msh").string());
  EXPECT_EQ(load_configuration(found).config().output.directory, "results/c");
  fs::path const missing = scratch.write("configs/d.yaml", "problem:\n  mesh: {file: nowhere.msh}\n" + boundary);
  EXPECT_EQ(load_configuration(missing).config().problem.mesh.file, "nowhere.msh");
}

TEST(Config, SetReachesEveryKindOfPlace) {
  EXPECT_EQ(parse(minimal, {"solver.tolerance=1e-6"}).solver.tolerance, 1e-6) << "creates the section";
  EXPECT_EQ(parse(minimal, {"solver.tolerance=1e-6", "solver.tolerance=1e-7"}).solver.tolerance, 1e-7) << "the last one counts";
  EXPECT_EQ(parse(minimal, {"problem.boundary[0].value=x==1"}).problem.boundary[0].value, "x==1") << "only the first = divides";
  EXPECT_EQ(parse(minimal, {"problem.mesh.cells=[1, 2, 3]"}).problem.mesh.cells, (std::array<std::int64_t, 3>{1, 2, 3}));
  EXPECT_EQ(parse(minimal, {"problem.mesh.cells[1]=7"}).problem.mesh.cells, (std::array<std::int64_t, 3>{32, 7, 32}))
      << "of the default";
  EXPECT_EQ(parse(minimal, {"problem.boundary[0].ids=[0, 1]"}).problem.boundary[0].ids, (std::vector<unsigned>{0, 1}));
  EXPECT_EQ(parse(minimal, {"solver={preconditioner: jacobi}"}).solver.preconditioner, PreconditionerKind::jacobi);
  EXPECT_EQ(parse(minimal, {"problem.coefficient={1: 2, default: 3}", "problem.coefficient[1]=5", "problem.coefficient.default=x"})
                .problem.coefficient,
            (std::map<int, assembly::CoefficientExpressions>{{-1, {"x"}}, {1, {"5"}}}));
  EXPECT_EQ(parse("solver: {}", {"problem.boundary=[{ids: all, type: neumann}]"}).problem.boundary[0].type,
            assembly::BoundaryType::neumann);
  EXPECT_EQ(parse(minimal, {"sweep.problem.element.order=[1, 2]"}).sweep.axes.at(0).path, "problem.element.order");
  EXPECT_EQ(parse("problem:\n  exact: x\n  boundary: [{ids: all, type: dirichlet}]", {"problem.exact=null"}).problem.exact,
            std::nullopt);
}

TEST(Config, SetErrorsNameTheSetting) {
  EXPECT_EQ(error_of(minimal, {"solver.tolerance=abc"}),
            "--set solver.tolerance=abc: solver.tolerance: found 'abc'; allowed: discretization, finite number > 0 and < 1");
  EXPECT_TRUE(
      contains(error_of(minimal, {"solvr.tolerance=1"}), {"--set solvr.tolerance=1: solvr: unknown key; did you mean 'solver'?"}));
  EXPECT_TRUE(contains(error_of(minimal, {"solver.tolerence=1"}), {"solver.tolerence: unknown key; did you mean 'tolerance'?"}));
  EXPECT_TRUE(contains(error_of(minimal, {"problem.boundary[1].value=1"}),
                       {"problem.boundary[1]: is not there: problem.boundary is a list of 1"}));
  EXPECT_TRUE(contains(error_of(minimal, {"problem.boundary.value=1"}), {"problem.boundary.value: is not there"}));
  EXPECT_TRUE(contains(error_of(minimal, {"problem.boundary[0].ids.x=1"}),
                       {"problem.boundary[0].ids.x: is not there", "is the value 'all'"}));
  EXPECT_TRUE(contains(error_of(minimal, {"problem.exact[0]=1"}), {"problem.exact[0]: is not there: problem.exact is not given"}));
  EXPECT_TRUE(contains(error_of(minimal, {"solver=5"}), {"--set solver=5: solver: found '5'; allowed: a map"}));
  EXPECT_TRUE(contains(error_of(minimal, {"solver.tolerance=[1"}), {"--set solver.tolerance=[1: YAML syntax"}));
  for (std::string const bad : {"", "=", "=1", "solver.tolerance", ".a=1", "a.=1", "a..b=1", "a[=1", "a[]=1", "[0]=1", "a[0]b=1"})
    EXPECT_TRUE(contains(error_of(minimal, {bad}), {"--set " + bad + ": not of the form key.path=value"})) << bad;
}

TEST(Config, WithLeavesTheOriginalAlone) {
  Configuration const original = parse_configuration(minimal, "case.yaml");
  Configuration const changed = original.with({"problem.element.order=3"}, "sweep");
  EXPECT_EQ(original.config().problem.order, 1);
  EXPECT_EQ(changed.config().problem.order, 3);
  EXPECT_EQ(changed.config().output.directory, "results/case");
  try {
    (void)original.with({"problem.element.order=30"}, "sweep");
    ADD_FAILURE() << "accepted";
  } catch (ConfigError const& error) {
    EXPECT_TRUE(contains(error.what(), {"sweep problem.element.order=30: problem.element.order: found '30'"}));
    EXPECT_EQ(error.key(), "problem.element.order");
  }
}

TEST(Config, SweepValuesCanBeSetAgain) {
  Configuration const c = parse_configuration(minimal + "sweep: {problem.source: [\"1\", \"x : y\", -2, 'it''s \\ \"q\"'], "
                                                        "problem.mesh: [{cells: [1, 2, 3]}, {generator: hyper_ball}]}\n",
                                              "case.yaml");
  Strings const expected{"1", "x : y", "-2", "it's \\ \"q\""};
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(c.with({c.config().sweep.axes[0].path + "=" + c.config().sweep.axes[0].values.at(i)}).config().problem.source,
              expected[i]);
  EXPECT_EQ(c.with({"problem.mesh=" + c.config().sweep.axes[1].values.at(0)}).config().problem.mesh.cells[2], 3);
  EXPECT_EQ(c.with({"problem.mesh=" + c.config().sweep.axes[1].values.at(1)}).config().problem.mesh.generator, "hyper_ball");
}

TEST(Config, LocateFindsTheLongestKnownPartOfAKeyPath) {
  Configuration const c =
      parse_configuration("problem:\n  coefficient: {3: \"1 +\"}\n  boundary:\n    - ids: [4, 5]\n      type: dirichlet\n",
                          "c.yaml", {"solver.tolerance=0.5"});
  auto const located = [&](std::string const& key) { return c.locate(InputError(key, "bad")); };
  EXPECT_EQ(located("problem.coefficient[3]"), "c.yaml:2:20: problem.coefficient[3]: bad");
  EXPECT_EQ(located("problem.coefficient[9]"), "c.yaml:2:3: problem.coefficient[9]: bad");
  EXPECT_EQ(located("problem.boundary[0].ids"), "c.yaml:4:7: problem.boundary[0].ids: bad");
  EXPECT_EQ(located("problem.boundary[0].ids[1]"), "c.yaml:4:16: problem.boundary[0].ids[1]: bad");
  EXPECT_EQ(located("problem.boundary"), "c.yaml:3:3: problem.boundary: bad");
  EXPECT_EQ(located("problem.mesh.cells"), "c.yaml:1:1: problem.mesh.cells: bad");
  EXPECT_EQ(located("solver.tolerance"), "--set solver.tolerance=0.5: solver.tolerance: bad");
  EXPECT_EQ(located("matrix.format"), "c.yaml: matrix.format: bad");
  EXPECT_EQ(located(""), "c.yaml: bad");
  EXPECT_EQ(c.locate(ConfigError("x", "c.yaml:9:9: x: whole message")), "c.yaml:9:9: x: whole message");
}

TEST(Config, SchemaIsAConfigurationWithTheDefaults) {
  std::string const schema = schema_text();
  EXPECT_EQ(resolved_yaml(parse(schema)), resolved_yaml(parse(minimal)));
  for (std::string const key : {"generator",
                                "arguments",
                                "origin",
                                "extent",
                                "cells",
                                "file",
                                "refinements",
                                "order",
                                "coefficient",
                                "source",
                                "boundary",
                                "ids",
                                "type",
                                "value",
                                "alpha",
                                "exact",
                                "format",
                                "slice_size",
                                "method",
                                "precision",
                                "matrix_precision",
                                "preconditioner",
                                "tolerance",
                                "max_iterations",
                                "backend",
                                "svd",
                                "directory",
                                "enabled",
                                "compression",
                                "picture",
                                "sweep",
                                "sigma",
                                "threads_per_row",
                                "conversion",
                                "pair_window",
                                "merge_window",
                                "base_candidates",
                                "expected_products"})
    EXPECT_TRUE(schema.find(" " + key + ":") != std::string::npos || schema.find("\n" + key + ":") != std::string::npos) << key;
  EXPECT_TRUE(
      contains(schema, {"tolerance: 1.0e-12", "Allowed: auto, csr, crs_t, sell_c_sigma, cod_sell, cds, half_cds, matrix_free.",
                        "Unit: length.", "Allowed: integer from 1 to 8."}));
}

TEST(Config, AutoIsNoValue) {
  EXPECT_FALSE(parse(minimal, {"matrix.sigma=0", "matrix.sigma=auto"}).matrix.sigma);
  EXPECT_EQ(parse(minimal, {"matrix.sigma=0"}).matrix.sigma, 0);
  EXPECT_FALSE(parse(minimal, {"matrix.expected_products=auto"}).matrix.expected_products);
  EXPECT_EQ(parse(minimal, {"matrix.threads_per_row=0"}).matrix.threads_per_row, 0);
}

TEST(Config, ResolvedConfigurationLoadsToTheSame) {
  Strings texts{minimal, schema_text(),
                "problem: {boundary: [{ids: all, type: dirichlet}]}\nmatrix: {sigma: 7, expected_products: 5}\n",
                "problem:\n  mesh: {file: \"no \\\\ \\\"such\\\" \xC3\xA9.msh\", refinements: 2}\n  coefficient: {default: [1, 2, "
                "x], 3: \"a\\nb\\tc\"}\n"
                "  exact: \"x ? 1 : 2\"\n  boundary: [{ids: [1, 2], type: robin, alpha: x, value: y}, {ids: all, type: neumann}]\n"
                "solver: {tolerance: 0.1234567890123456789}\noutput: {directory: \"null\"}\n"
                "sweep: {\"problem.boundary[0].value\": [\"x, y\", null, {a: [b]}], mode: zip}\n",
                "problem: {mesh: {origin: [0.1, -1e-300, 1e300]}, boundary: [{ids: all, type: dirichlet}]}"};
  std::vector<RunConfig> configs_of_texts;
  for (auto const& text : texts)
    configs_of_texts.push_back(parse(text));
  for (auto const& file : config_files()) {  // by their names, since their images are beside them
    RunConfig config = load_configuration(file).config();
    config.output.directory = "results/case";
    configs_of_texts.push_back(std::move(config));
  }
  for (RunConfig const& config : configs_of_texts) {
    std::string const resolved = resolved_yaml(config);
    EXPECT_EQ(resolved_yaml(parse(resolved)), resolved);
    EXPECT_EQ(fingerprint(parse(resolved)), fingerprint(config));
  }
}

TEST(Config, FingerprintIsOfWhatIsComputed) {
  std::string const base = fingerprint(parse(minimal));
  EXPECT_EQ(base.size(), 16u);
  EXPECT_EQ(base.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(fingerprint(parse(minimal, {"output.directory=elsewhere"})), base);
  EXPECT_EQ(fingerprint(parse(minimal, {"sweep.problem.element.order=[1, 2]"})), base);
  EXPECT_EQ(fingerprint(parse(minimal, {"solver.tolerance=1.0e-12"})), base) << "a spelling";
  for (std::string const set : {"solver.tolerance=1e-11", "problem.element.order=2", "problem.boundary[0].value=1",
                                "problem.mesh.cells[2]=31", "problem.coefficient=2", "matrix.format=csr"})
    EXPECT_NE(fingerprint(parse(minimal, {set})), base) << set;
  EXPECT_EQ(fingerprint(parse(minimal, {"backend=cpu"})), base) << "another machine";
  Configuration const swept = parse_configuration(minimal, "case.yaml", {"sweep={backend: [cpu, cuda]}"});
  EXPECT_NE(fingerprint(swept.case_with({"backend=cpu"}).config()), fingerprint(swept.case_with({"backend=cuda"}).config()));
}

TEST(Config, TextOfAMatrixIsOfWhatItDependsOn) {
  std::string const text = R"(
parameters: {k: 1, s: 2, both: 3}
problem:
  mesh: {cells: [4, 4, 4], boundaries: [{name: low, where: "x < 0.5*both"}]}
  coefficient: {default: "k + x"}
  source: "s*both"
  boundary:
    - {names: [low], type: dirichlet, value: "s"}
    - {ids: all, type: robin, value: "s", alpha: "both"}
)";
  std::string const base = matrix_text(parse(text));
  for (std::string const set :
       {"parameters.s=7", "problem.source=exp(x)", "problem.boundary[0].value=x", "problem.boundary[1].value=y", "output.name=T",
        "output.probes=[{at: [0, 0, 0], name: p}]", "problem.exact=x", "problem.point_sources=[{at: [0.5, 0.5, 0.5], value: 1}]",
        "output.directory=elsewhere"})
    EXPECT_EQ(matrix_text(parse(text, {set})), base) << set;
  for (std::string const set :
       {"parameters.k=7", "parameters.both=7", "problem.coefficient.default=k + y", "problem.boundary[1].alpha=4",
        "problem.boundary[0].type=neumann", "problem.element.order=2", "problem.mesh.cells[0]=5", "problem.mesh.extent=[1, 1, 2]",
        "matrix.format=csr", "solver.tolerance=1e-11", "solver.preconditioner=jacobi", "backend=cpu"})
    EXPECT_NE(matrix_text(parse(text, {set})), base) << set;
  Configuration const swept = parse_configuration(text, "case.yaml", {"sweep={parameters.s: [1, 2], parameters.k: [1, 2]}"});
  auto const of_case = [&](std::string const& s, std::string const& k) {
    return matrix_text(swept.case_with({"parameters.s=" + s, "parameters.k=" + k}).config());
  };
  EXPECT_EQ(of_case("1", "2"), of_case("2", "2"));
  EXPECT_NE(of_case("1", "1"), of_case("1", "2"));
}

TEST(Config, TextOfAMatrixChangesWithTheFileOfItsMesh) {
  fs::path const file = fs::temp_directory_path() / ("poisson_matrix_text_" + std::to_string(getpid()) + ".msh");
  std::ofstream(file) << "one";
  std::string const text = "problem:\n  mesh: {file: " + file.string() + "}\n  boundary: [{ids: all, type: dirichlet}]\n";
  std::string const base = matrix_text(parse(text));
  EXPECT_EQ(matrix_text(parse(text)), base);
  std::ofstream(file) << "more";
  EXPECT_NE(matrix_text(parse(text)), base);
  fs::remove(file);
}

TEST(Config, EveryFileInConfigsLoads) {
  auto const files = config_files();
  EXPECT_GE(files.size(), 7u);
  for (auto const& file : files) {
    SCOPED_TRACE(file);
    RunConfig const c = load_configuration(file).config();
    EXPECT_EQ(c.output.directory, "results/" + file.stem().string());
    EXPECT_TRUE(c.problem.mesh.file.empty() || fs::exists(c.problem.mesh.file)) << c.problem.mesh.file;
  }
}

/// Damaged files are read, or refused with one ConfigError; what is read survives the way through its resolved text.
TEST(Config, DamagedFilesNeverCrash) {
  Strings texts{schema_text()};
  for (auto const& file : config_files())
    texts.push_back(read_file(file));
  std::mt19937 random(12345);
  auto const below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  std::string const signs = "[]{}:,-?!&*#|>'\"%@` \n\t\\.0<=~\x01\xff";
  int n_read = 0, n_refused = 0;
  auto const attempt = [&](std::string const& text) {
    try {
      std::string const resolved = resolved_yaml(parse(text));
      ++n_read;
      EXPECT_EQ(resolved_yaml(parse(resolved)), resolved) << text;
    } catch (ConfigError const& error) {
      ++n_refused;
      EXPECT_EQ(std::string(error.what()).rfind("dir/case.yaml", 0), 0u) << error.what() << "\nfor\n" << text;
    }
  };
  std::size_t const share = std::getenv("POISSON_ALL_TESTS") != nullptr ? 1 : 4;  // of what .ci/full tries
  for (auto const& text : texts) {
    for (std::size_t i = 0; i < 100 / share; ++i)
      attempt(text.substr(0, below(text.size())));
    for (std::size_t i = 0; i < 400 / share; ++i) {
      std::string damaged = text;
      for (std::size_t n = 1 + below(4); n > 0; --n) {
        std::size_t const at = below(damaged.size());
        switch (below(4)) {
        case 0:
          damaged[at] = static_cast<char>(damaged[at] ^ (1 << below(8)));
          break;
        case 1:
          damaged[at] = signs[below(signs.size())];
          break;
        case 2:
          damaged.insert(at, 1, signs[below(signs.size())]);
          break;
        default:
          damaged.insert(at, damaged.substr(below(damaged.size()), below(30)));
        }
      }
      attempt(damaged);
    }
  }
  EXPECT_GT(n_read, 100);
  EXPECT_GT(n_refused, 1000);
}

}  // namespace
}  // namespace poisson::app
