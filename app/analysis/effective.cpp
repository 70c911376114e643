#include "app/analysis/effective.hpp"

#include "assembly/expression/expression.hpp"
#include "gpu/core/error.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>

namespace poisson::app {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<char, 3> axis_letters{'x', 'y', 'z'};

double largest_entry(Tensor3 const& tensor) {
  double largest = 0;
  for (auto const& row : tensor)
    for (double const entry : row)
      largest = std::max(largest, std::abs(entry));
  return largest;
}

/// k of a material, where that is one number.
std::optional<double> constant_of(assembly::ProblemSpec const& problem, assembly::CoefficientExpressions const* expressions) {
  if (expressions == nullptr || expressions->size() != 1)
    return {};
  try {
    assembly::Expression const k(expressions->front(), "problem.coefficient", problem.parameters);
    return k.is_constant() ? std::optional<double>(k(0, 0, 0)) : std::nullopt;
  } catch (InputError const&) {  // it uses a field, whose file is not opened for this
    return {};
  }
}

}  // namespace

assembly::CoefficientExpressions const* coefficient_of(assembly::ProblemSpec const& problem, assembly::MeshSummary const& mesh,
                                                       unsigned id) {
  for (auto const& [material, expressions] : problem.coefficient)
    if (material >= 0 && mesh.material_groups.with_id(static_cast<unsigned>(material), mesh.material_ids).contains(id))
      return &expressions;
  for (auto const& [name, expressions] : problem.coefficient_of_name)
    if (mesh.material_groups.with_name(name).contains(id))
      return &expressions;
  auto const by_default = problem.coefficient.find(-1);
  return by_default == problem.coefficient.end() ? nullptr : &by_default->second;
}

PrincipalValues principal_values(Tensor3 const& tensor) {
  Tensor3 a, v{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};  // a = v^T (symmetric part) v
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      a[i][j] = (tensor[i][j] + tensor[j][i]) / 2;
  constexpr int most_sweeps = 50;  // Jacobi's rotations take 4 or 5
  for (int sweep = 0; sweep < most_sweeps && (a[0][1] != 0 || a[0][2] != 0 || a[1][2] != 0); ++sweep)
    for (std::size_t p = 0; p < 2; ++p)
      for (std::size_t q = p + 1; q < 3; ++q) {
        if (a[p][q] == 0)
          continue;
        double const theta = (a[q][q] - a[p][p]) / (2 * a[p][q]);
        double const t = (theta < 0 ? -1 : 1) / (std::abs(theta) + std::hypot(theta, 1.0)), c = 1 / std::hypot(t, 1.0), s = t * c;
        for (std::size_t i = 0; i < 3; ++i) {
          double const x = a[i][p], y = a[i][q];
          a[i][p] = c * x - s * y;
          a[i][q] = s * x + c * y;
        }
        for (std::size_t i = 0; i < 3; ++i) {
          double const x = a[p][i], y = a[q][i];
          a[p][i] = c * x - s * y;
          a[q][i] = s * x + c * y;
        }
        a[p][q] = a[q][p] = 0;
        for (auto& row : v) {
          double const x = row[p], y = row[q];
          row[p] = c * x - s * y;
          row[q] = s * x + c * y;
        }
      }
  std::array<std::size_t, 3> order{0, 1, 2};
  std::stable_sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) { return a[i][i] > a[j][j]; });
  PrincipalValues result;
  for (std::size_t i = 0; i < 3; ++i) {
    std::size_t const column = order[i];
    result.values[i] = a[column][column];
    std::array<double, 3> direction{v[0][column], v[1][column], v[2][column]};
    double const largest =
        *std::max_element(direction.begin(), direction.end(), [](double x, double y) { return std::abs(x) < std::abs(y); });
    for (double& x : direction)
      x = largest < 0 ? -x : x;
    result.directions[i] = direction;
  }
  return result;
}

double symmetry_defect(Tensor3 const& tensor) {
  double largest = 0;
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < i; ++j)
      largest = std::max(largest, std::abs(tensor[i][j] - tensor[j][i]));
  double const scale = largest_entry(tensor);
  return scale > 0 ? largest / scale : 0;
}

EffectiveBounds effective_bounds(std::vector<EffectivePhase> const& phases) {
  EffectiveBounds result;
  double smallest = std::numeric_limits<double>::infinity(), largest = 0, resistance = 0;
  for (EffectivePhase const& phase : phases) {
    if (phase.fraction <= 0)
      continue;
    smallest = std::min(smallest, *phase.k);
    largest = std::max(largest, *phase.k);
    result.voigt += phase.fraction * *phase.k;
    resistance += phase.fraction / *phase.k;  // infinite of void cells
  }
  result.reuss = 1 / resistance;
  // In a matrix of k0 every phase is a sphere: (sum of f / (k + 2 k0))^-1 - 2 k0.
  auto const in_matrix = [&](double k0) {
    double sum = 0;
    for (EffectivePhase const& phase : phases)
      if (phase.fraction > 0)
        sum += phase.fraction / (*phase.k + 2 * k0);
    return 1 / sum - 2 * k0;
  };
  result.hashin_shtrikman_lower = smallest > 0 ? in_matrix(smallest) : 0;
  result.hashin_shtrikman_upper = largest > 0 ? in_matrix(largest) : 0;
  return result;
}

double EffectiveTensor::difference() const {
  double const largest_of_all = largest_entry(by_flux);
  std::array<double, 3> size{};
  for (std::size_t i = 0; i < 3; ++i) {
    size[i] = std::max(std::abs(by_flux[i][i]), std::isnan(by_energy[i][i]) ? 0 : std::abs(by_energy[i][i]));
    if (may_vanish && size[i] <= rounding * largest_of_all)
      size[i] = largest_of_all;
  }
  double largest = 0;
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      if (double const scale = std::sqrt(size[i]) * std::sqrt(size[j]); !std::isnan(by_energy[i][j]) && scale > 0)
        largest = std::max(largest, std::abs(by_flux[i][j] - by_energy[i][j]) / scale);
  return largest;
}

EffectivePhase const* EffectiveResult::conductor() const {
  EffectivePhase const* conductor = nullptr;
  bool has_void = false;
  for (EffectivePhase const& phase : phases) {
    if (!phase.k)
      return nullptr;
    if (*phase.k == 0)
      has_void = true;
    else if (conductor != nullptr)
      return nullptr;
    else
      conductor = &phase;
  }
  return has_void ? conductor : nullptr;
}

std::array<double, 3> EffectiveResult::relative_diffusivity() const {
  std::array<double, 3> result{};
  for (std::size_t d = 0; d < 3; ++d)
    result[d] = tensor().by_flux[d][d] / *conductor()->k;
  return result;
}

std::array<double, 3> EffectiveResult::tortuosity_factor() const {
  std::array<double, 3> result = relative_diffusivity();
  for (double& x : result)
    x = conductor()->fraction / x;
  return result;
}

SubVolumeStatistics statistics_of(std::vector<SubVolume> const& sub_volumes) {
  SubVolumeStatistics result;
  auto const n = static_cast<double>(sub_volumes.size());
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) {
      double sum = 0, squares = 0;
      for (SubVolume const& part : sub_volumes)
        sum += part.tensor[i][j];
      double const mean = result.mean[i][j] = sum / n;
      for (SubVolume const& part : sub_volumes)
        squares += (part.tensor[i][j] - mean) * (part.tensor[i][j] - mean);
      result.deviation[i][j] = std::sqrt(squares / (n - 1));
    }
  return result;
}

EffectiveResult expected_effective(RunConfig const& config, assembly::MeshSummary const& mesh) {
  EffectiveResult result;
  result.conditions = config.effective.conditions;
  result.sub_volumes_asked = config.effective.sub_volumes;
  if (config.effective.has_periodic())
    result.periodic.emplace();
  if (config.effective.has_fixed())
    result.fixed.emplace();
  bool all_constant = true;
  for (unsigned const id : mesh.material_ids) {
    EffectivePhase& phase = result.phases.emplace_back();
    phase.name = mesh.material_groups.label(id);
    phase.ids = {id};
    phase.k = constant_of(config.problem, coefficient_of(config.problem, mesh, id));
    all_constant = all_constant && phase.k;
  }
  if (config.problem.mesh.has_void())
    result.phases.push_back({"void", {}, 0, 0.0});
  if (all_constant)
    result.bounds.emplace(
        EffectiveBounds{EffectiveTensor::unknown, EffectiveTensor::unknown, EffectiveTensor::unknown, EffectiveTensor::unknown});
  return result;
}

void set_fractions(EffectiveResult& result, std::map<unsigned, double> const& volumes, double volume) {
  double rest = 1;
  for (EffectivePhase& phase : result.phases) {
    if (phase.ids.empty()) {
      phase.fraction = std::max(rest, 0.0);
      continue;
    }
    phase.fraction = 0;
    for (unsigned const id : phase.ids)
      if (auto const found = volumes.find(id); found != volumes.end())
        phase.fraction += found->second / volume;
    rest -= phase.fraction;
  }
  if (result.bounds)
    result.bounds = effective_bounds(result.phases);
}

std::vector<std::pair<std::string, double>> effective_quantities(EffectiveResult const& result) {
  std::vector<std::pair<std::string, double>> list;
  auto const add_tensor = [&](std::string const& prefix, Tensor3 const& tensor) {
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t j = 0; j < 3; ++j)
        list.emplace_back(prefix + axis_letters[i] + axis_letters[j], tensor[i][j]);
  };
  add_tensor("effective.", result.tensor().by_flux);
  if (result.periodic) {
    PrincipalValues principal;
    principal.values.fill(EffectiveTensor::unknown);
    if (result.is_solved())
      principal = principal_values(result.periodic->by_flux);
    for (std::size_t i = 0; i < 3; ++i)
      list.emplace_back("effective.principal." + std::to_string(i + 1), principal.values[i]);
    if (result.fixed)
      add_tensor("effective.fixed.", result.fixed->by_flux);
  }
  if (result.sub_volumes_asked.is_asked()) {
    SubVolumeStatistics statistics{EffectiveTensor::unknown_tensor, EffectiveTensor::unknown_tensor};
    if (!result.sub_volumes.empty())
      statistics = statistics_of(result.sub_volumes);
    add_tensor("effective.sub_volumes.mean.", statistics.mean);
    add_tensor("effective.sub_volumes.deviation.", statistics.deviation);
  }
  if (result.bounds) {
    list.emplace_back("effective.reuss", result.bounds->reuss);
    list.emplace_back("effective.hashin_shtrikman.lower", result.bounds->hashin_shtrikman_lower);
    list.emplace_back("effective.hashin_shtrikman.upper", result.bounds->hashin_shtrikman_upper);
    list.emplace_back("effective.voigt", result.bounds->voigt);
  }
  if (result.conductor() != nullptr)
    for (std::size_t d = 0; d < 3; ++d) {
      list.emplace_back(std::string("effective.relative_diffusivity.") + axis_letters[d], result.relative_diffusivity()[d]);
      list.emplace_back(std::string("effective.tortuosity_factor.") + axis_letters[d], result.tortuosity_factor()[d]);
    }
  return list;
}

Json json_of(EffectiveResult const& result) {
  auto const of_tensor = [&](EffectiveTensor const& tensor, bool periodic) {
    Json json{{"tensor", tensor.by_flux},
              {"by_energy", tensor.by_energy},
              {"difference", tensor.difference()},
              {"symmetry_defect", symmetry_defect(tensor.by_flux)}};
    if (periodic) {
      PrincipalValues const principal = principal_values(tensor.by_flux);
      json["principal"] = {{"values", principal.values}, {"directions", principal.directions}};
    }
    return json;
  };
  Json json{{"conditions", name_of(result.conditions)}};
  json.update(of_tensor(result.tensor(), result.periodic.has_value()));
  if (result.periodic && result.fixed)
    json["fixed"] = of_tensor(*result.fixed, false);
  for (EffectivePhase const& phase : result.phases)
    json["phases"].push_back({{"name", phase.name}, {"fraction", phase.fraction}, {"k", phase.k ? Json(*phase.k) : Json()}});
  json["bounds"] = Json();
  if (result.bounds)
    json["bounds"] = {{"reuss", result.bounds->reuss},
                      {"hashin_shtrikman", {result.bounds->hashin_shtrikman_lower, result.bounds->hashin_shtrikman_upper}},
                      {"voigt", result.bounds->voigt}};
  if (result.conductor() != nullptr)
    json.update({{"relative_diffusivity", result.relative_diffusivity()}, {"tortuosity_factor", result.tortuosity_factor()}});
  if (!result.sub_volumes.empty()) {
    SubVolumeStatistics const statistics = statistics_of(result.sub_volumes);
    Json& of_parts = json["sub_volumes"];
    of_parts = {{"size", result.sub_volumes_asked.size},
                {"count", result.sub_volumes_asked.count},
                {"seed", result.sub_volumes_asked.seed},
                {"mean", statistics.mean},
                {"deviation", statistics.deviation}};
    for (SubVolume const& part : result.sub_volumes)
      of_parts["volumes"].push_back({{"first", part.first}, {"fractions", part.fractions}, {"tensor", part.tensor}});
  }
  for (EffectiveSolve const& solve : result.solves)
    json["solves"].push_back({{"conditions", solve.periodic ? "periodic" : "fixed"},
                              {"direction", name_of(solve.direction)},
                              {"status", name_of(solve.status)},
                              {"iterations", solve.iterations},
                              {"residual_true", solve.residual_true},
                              {"seconds", solve.seconds}});
  return json;
}

}  // namespace poisson::app
