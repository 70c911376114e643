#include "app/sweep/greedy_model.hpp"

#include "app/analysis/snapshots.hpp"
#include "app/analysis/svd_report.hpp"
#include "app/domain/domain.hpp"
#include "app/domain/points.hpp"
#include "app/domain/quantities.hpp"
#include "app/domain/solution_values.hpp"
#include "app/io/matrix_market.hpp"
#include "app/results/quantities.hpp"
#include "assembly/mesh/coarse_mesh.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/input_file.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/kernels/backends.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <utility>

namespace poisson::app {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

constexpr std::size_t most_greedy_terms = 40;
/// Errors of this size are rounding.
constexpr double smallest_error = 1e-9;

struct AssembledCase {
  Domain mesh;
  assembly::LinearSystem system;
};

AssembledCase assemble_case(RunConfig const& config) {
  if (interrupt_requested())
    throw Interrupted();
  assembly::prepare_for(config.problem.mesh);
  Domain mesh = make_domain(config, alone_team());
  assembly::LinearSystem system = mesh.around->assemble();
  return {std::move(mesh), std::move(system)};
}

/// u += factor v
void add_vector(std::span<double> u, double factor, std::span<double const> v) {
  for (std::size_t i = 0; i < u.size(); ++i)
    u[i] += factor * v[i];
}

double scalar_product(std::span<double const> u, std::span<double const> v) {
  double sum = 0;
  for (std::size_t i = 0; i < u.size(); ++i)
    sum += u[i] * v[i];
  return sum;
}

/// Whether it is u at one place. Such values share the largest error that was found: that of one of them may have been small by
/// chance.
bool is_value_of_u(std::string const& name) {
  return (name.starts_with("min") || name.starts_with("max") || name.starts_with("probe.")) &&
         name.find("_at.") == std::string::npos;
}

}  // namespace

std::size_t first_greedy_case(std::vector<SweepCase> const& cases) {
  std::size_t const middle = cases.size() / 2;
  for (std::size_t distance = 0; distance <= cases.size(); ++distance)
    for (std::size_t const i : {middle + distance, middle - distance})
      if (i < cases.size() && cases[i].configuration)
        return i;
  throw InputError("sweep", "no case is valid");
}

GreedyModel::GreedyModel(std::vector<SweepCase> const& cases, double tolerance)
    : cases_(cases), host_(make_context(Backend::cpu)), weights_(cases.size()) {
  std::vector<std::size_t> order{first_greedy_case(cases)};
  for (std::size_t i = 0; i < cases.size(); ++i)
    if (i != order.front() && cases[i].configuration)
      order.push_back(i);
  for (std::size_t const i : order) {
    std::optional<AssembledCase> made;
    try {
      made = assemble_case(cases[i].configuration->config());
    } catch (InputError const& error) {
      failed_.emplace_back(i, cases[i].configuration->locate(error));
      continue;
    }
    assembly::LinearSystem& system = made->system;
    auto const matrix = std::make_shared<CsrMatrix const>(std::move(system.matrix));
    if (!maker_) {
      constrained_ = system.constraints.mask();
      maker_.emplace(matrix, is_singular(system), std::clamp(1e-4 * tolerance, 1e-12, 1e-8),
                     std::clamp(1e-3 * tolerance, 1e-11, 1e-7), *host_);
    }
    if (system.constraints.mask() != constrained_)
      throw InputError("sweep.greedy", "case " + std::to_string(i) + " has other unknowns, or prescribes others, than case " +
                                           std::to_string(order.front()) +
                                           "; all cases need one mesh and element, and the same types of conditions everywhere");
    require_host_memory(12 * matrix->nnz() + 16 * matrix->n_rows, "a term of the matrices of all cases");
    weights_[i] = maker_->add(*matrix, system.rhs);
    if (maker_->n_terms() > most_greedy_terms)
      throw InputError("sweep.greedy", "the matrices of the cases are no sums of " + std::to_string(most_greedy_terms) +
                                           " terms or fewer, so that errors cannot be estimated; solve all cases, without "
                                           "sweep.greedy");
  }
  if (!maker_)
    throw InputError("sweep",
                     "no case can be assembled; case " + std::to_string(failed_.front().first) + ": " + failed_.front().second);
}

GreedyModel::~GreedyModel() = default;

std::vector<double> GreedyModel::coefficients_of(std::size_t number) const {
  return solve_leading(maker_->model().system(*weights_[number]), modes_.size());
}

std::map<std::string, double> GreedyModel::quantities_of_case(std::size_t number) const {
  RunConfig const& config = cases_[number].configuration->config();
  AssembledCase const made = assemble_case(config);
  HostVector<double> x(made.system.rhs.size());
  std::fill(x.begin(), x.end(), 0.0);
  auto const c = coefficients_of(number);
  for (std::size_t k = 0; k < modes_.size(); ++k)
    add_vector(x, c[k], modes_[k]);
  SolutionValues const u(made.mesh, Field(made.mesh.around->reconstruct(made.system, std::move(x))));
  DomainPoints const probes(made.mesh, alone_team(), requested_points(config, {}));
  std::map<std::string, double> numbers;
  for (auto const& [name, value] :
       quantity_table(config, made.mesh.whole, quantities_of(alone_team(), u), made.system.integral_f, probes.values(u)))
    if (value.is_number() && std::isfinite(value.get<double>()))
      numbers[name] = value.get<double>();
  return numbers;
}

void GreedyModel::add_solved(std::size_t number, fs::path const& folder) {
  std::error_code ignored;
  if (!fs::exists(folder / snapshot_file, ignored))
    throw InputError("sweep.greedy", "case " + std::to_string(number) + " has no " + snapshot_file + " in '" + folder.string() +
                                         "'; run the sweep without --resume");
  HostVector<double> x = read_matrix_market_vector(folder / snapshot_file);
  if (x.size() != constrained_.size())
    throw InputError("sweep.greedy", "case " + std::to_string(number) + " has " + std::to_string(x.size()) +
                                         " unknowns, and its problem has " + std::to_string(constrained_.size()));
  for (std::size_t i = 0; i < x.size(); ++i)
    if (constrained_[i] != 0)
      x[i] = 0;
  if (!weights_[number])
    return;
  SystemWeights const& weights = *weights_[number];
  if (!modes_.empty()) {
    auto const c = coefficients_of(number);
    HostVector<double> e = x;
    for (std::size_t k = 0; k < modes_.size(); ++k)
      add_vector(e, -c[k], modes_[k]);
    double const norm = maker_->squared_energy(weights, x);
    Check& check = checks_.emplace_back(Check{number, maker_->model().estimate(weights, c).relative(), 0, {}});
    check.error = norm > 0 ? std::sqrt(std::max(maker_->squared_energy(weights, e), 0.0) / norm) : 0;
    std::ifstream in = open_regular_file(folder / "result.json");
    Json const record = Json::parse(in, nullptr, false);
    for (auto const& [name, value] : quantities_of_case(number))
      if (double const known = number_in(record, ("/quantities/" + name).c_str()); std::isfinite(known))
        check.of_quantities[name] = std::abs(value - known);
  }
  double const before = std::sqrt(scalar_product(x, x));
  for (int pass = 0; pass < 2; ++pass)
    for (HostVector<double> const& mode : modes_)
      add_vector(x, -scalar_product(x, mode), mode);
  double const left = std::sqrt(scalar_product(x, x));
  if (!(left > 1e-13 * before))
    return;
  for (double& value : x)
    value /= left;
  maker_->add_mode(x);
  modes_.push_back(std::move(x));
}

Json GreedyModel::state() const {
  Json estimates = Json::array(), checks = Json::array();
  for (double const estimate :
       modes_.empty() ? std::vector<double>(cases_.size(), std::nan("")) : maker_->model().relative_errors(weights_))
    estimates.push_back(std::isfinite(estimate) ? Json(estimate) : Json());
  for (Check const& check : checks_)
    checks.push_back({{"case", check.number}, {"estimate", check.estimate}, {"error", check.error}});
  Json failed = Json::array();
  for (auto const& [number, error] : failed_)
    failed.push_back({{"case", number}, {"error", error}});
  return {{"estimates", estimates}, {"checks", checks}, {"modes", modes_.size()}, {"terms", maker_->n_terms()}, {"failed", failed}};
}

Json GreedyModel::prediction(std::size_t number) const {
  Json result{{"quantities", Json::object()}, {"errors", Json::object()}};
  double const estimate = modes_.empty() ? 0 : maker_->model().estimate(*weights_[number], coefficients_of(number)).relative();
  for (auto const& [name, value] : quantities_of_case(number)) {
    result["quantities"][name] = value;
    double error = std::nan("");
    for (Check const& check : checks_)
      for (auto const& [other, difference] : check.of_quantities)
        if ((other == name || (is_value_of_u(name) && is_value_of_u(other))) && check.estimate > smallest_error)
          error = std::fmax(error, difference / check.estimate * estimate);
    result["errors"][name] = std::isfinite(error) ? Json(error) : Json();
  }
  return result;
}

}  // namespace poisson::app
