#include "app/cli/predict_command.hpp"

#include "app/analysis/sweep_model.hpp"
#include "app/cli/options.hpp"
#include "app/io/console.hpp"
#include "app/launch/exit_code.hpp"
#include "gpu/kernels/backends.hpp"

#include <nlohmann/json.hpp>

#include <iostream>

namespace poisson::app {

namespace po = boost::program_options;

namespace {

void print_prediction(SweepModel const& model, std::vector<double> const& at, Prediction const& prediction, double seconds,
                      Console& console) {
  std::string place;
  for (std::size_t a = 0; a < at.size(); ++a)
    place += (a > 0 ? ", " : "") + model.keys[a] + " = " + number_text(at[a], 6);
  console.line("poisson " POISSON_VERSION ": prediction at " + place + ", from " + std::to_string(model.cases.size()) +
               " cases in " + std::to_string(model.modes()) + " modes, in " + seconds_text(seconds));
  std::vector<std::vector<std::string>> rows{{"quantity", "predicted", "error up to", "by"}};
  for (std::size_t q = 0; q < model.quantities.size(); ++q)
    rows.push_back({model.quantities[q], number_text(prediction.quantities[q], 8), number_text(model.of_quantities[q].error, 2),
                    text_of(model.of_quantities[q])});
  console.grid(rows);
  console.line("  u itself is predicted to " + number_text(model.of_solution.error, 2) + " of its norm, by " +
               text_of(model.of_solution));
  if (prediction.residual_error)
    console.line("  Its residual stands for an error of " + number_text(*prediction.residual_error, 2) +
                 " in the energy norm; its equations are known to " + number_text(model.of_weights.error, 2) + ", by " +
                 text_of(model.of_weights));
  console.line("  An error is the largest that was found when cases of the sweep were predicted from those at other values.");
}

nlohmann::ordered_json json_of(SweepModel const& model, std::vector<double> const& at, Prediction const& prediction) {
  nlohmann::ordered_json all{{"poisson_version", POISSON_VERSION}, {"at", nlohmann::ordered_json::object()}};
  for (std::size_t a = 0; a < at.size(); ++a)
    all["at"][model.keys[a]] = at[a];
  all["cases"] = model.cases.size();
  all["modes"] = model.modes();
  all["quantities"] = nlohmann::ordered_json::object();
  all["errors_of"] = nlohmann::ordered_json::object();
  for (std::size_t q = 0; q < model.quantities.size(); ++q) {
    all["quantities"][model.quantities[q]] = prediction.quantities[q];
    all["errors_of"][model.quantities[q]] = {{"estimate", model.of_quantities[q].error}, {"guaranteed", false}};
  }
  all["solution"] = {{"coefficients", prediction.coefficients}, {"error", model.of_solution.error}};
  if (prediction.residual_error)
    all["solution"].update({{"residual_error", *prediction.residual_error}, {"equations_error", model.of_weights.error}});
  return all;
}

}  // namespace

int run_predict_command(std::vector<std::string> const& words) {
  bool help = false, as_json = false;
  std::vector<std::string> sets;
  po::options_description visible(
      "poisson predict RESULTS --set key.path=value...\n\n"
      "Quantities at other values of what a sweep has swept, in milliseconds, from the model that its analysis of snapshots has\n"
      "left in the results directory; and how far the model was from the cases that it knows.\n\nOptions");
  auto add = visible.add_options();
  add("help,h", po::bool_switch(&help), "this text");
  add("set", po::value(&sets)->composing()->value_name("key.path=value"), "the value of a swept key; one for each");
  add("json", po::bool_switch(&as_json), "print a record in JSON, with all digits");
  auto const results = read_options("predict", words, visible, "results").arguments;
  if (help)
    return exit_done;
  if (results.size() != 1)
    throw usage_error("predict", results.empty()
                                     ? "the results directory of a sweep is needed: poisson predict RESULTS --set key.path=value"
                                     : "one results directory is taken, found also '" + results[1] + "'");
  SweepModel const model = read_sweep_model(results[0]);
  auto const at = model_point(model, sets);
  auto const host = make_context(Backend::cpu);
  Timer const timer;
  Prediction const prediction = predict(model, at, *host);
  double const seconds = timer.seconds();
  if (as_json) {
    std::cout << json_of(model, at, prediction).dump(2) << '\n';
  } else {
    Console console(false);
    print_prediction(model, at, prediction, seconds, console);
  }
  return exit_done;
}

}  // namespace poisson::app
