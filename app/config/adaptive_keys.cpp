#include "app/config/key_sections.hpp"
#include "app/config/value_types.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace poisson::app::schema {
namespace {

/// An error that one can live with: a share, "0.1%", or a number.
struct ErrorGoalValue {
  Number number{0};
  [[nodiscard]] std::string allowed() const { return "a share of the value such as 0.1%, less than 100%; or a number > 0"; }
  void read(YamlNode const& node, std::string const& path, std::optional<ErrorGoal>& out) const {
    YamlNode text = node;
    bool const relative = node.kind == YamlNode::Kind::scalar && node.text.ends_with('%');
    if (relative) {
      text.text.pop_back();
      while (text.text.ends_with(' '))
        text.text.pop_back();
      text.quoted = false;
    }
    double value = 0;
    try {
      number.read(text, path, value);
    } catch (ConfigError const&) {
      reject_value(node, path, allowed());
    }
    if (relative && value >= 100)
      reject_value(node, path, allowed());
    out = ErrorGoal{relative ? value / 100 : value, relative};
  }
  [[nodiscard]] std::string write(std::optional<ErrorGoal> const& value) const {
    if (!value)
      return "null";
    return value->relative ? number.write(100 * value->value) + "%" : number.write(value->value);
  }
  [[nodiscard]] Json json_schema() const {
    return {{"anyOf", Json::array({number.json_schema(), Json{{"type", "string"}, {"pattern", "%$"}}})}};
  }
};

bool is_adaptive(RunConfig const& config) {
  return config.adaptive.is_asked();
}

constexpr char const* with_tolerance = "with problem.mesh.adaptive.tolerance";

}  // namespace

Keys<RunConfig> keys_of_adaptive() {
  return {
      section<RunConfig>("problem.mesh.adaptive", "Refines the mesh where the error comes from, until it is small enough."),
      key<RunConfig>(
          "problem.mesh.adaptive.tolerance", ErrorGoalValue{}, POISSON_MEMBER(adaptive.tolerance), "",
          "The error that one can live with: a share of the target's value, 1%, or a number. Cells are refined until the "
          "estimate of the error is no larger.")
          .or_null("no adaptive refinement"),
      key<RunConfig>("problem.mesh.adaptive.target",
                     Text{"name of a quantity: flux.NAME, probe.NAME, mean, integral_u, mean.NAME, integral_u.NAME, energy, min, "
                          "max, or one of output.quantities"},
                     POISSON_MEMBER(adaptive.target), "", "The quantity of result.json whose error counts.")
          .or_null("the error in the energy norm, (int k |grad u|^2)^1/2")
          .only(with_tolerance, is_adaptive),
      key<RunConfig>("problem.mesh.adaptive.max_unknowns", Number{0}, POISSON_MEMBER(adaptive.max_unknowns), "unknowns",
                     "No mesh with more unknowns is made.")
          .or_null("the default")
          .only(with_tolerance, is_adaptive),
      key<RunConfig>("problem.mesh.adaptive.max_cycles", Integer{1, 1000}, POISSON_MEMBER(adaptive.max_cycles), "",
                     "So many meshes at most, the first included.")
          .or_null("the default")
          .only(with_tolerance, is_adaptive),
      key<RunConfig>("problem.mesh.adaptive.max_levels", Integer{1, 30}, POISSON_MEMBER(adaptive.max_levels), "",
                     "How often a cell of the first mesh may be refined.")
          .or_null("the default")
          .only(with_tolerance, is_adaptive),
      key<RunConfig>(
          "problem.mesh.adaptive.estimator", Choice<assembly::Estimator>{}, POISSON_MEMBER(adaptive.estimator), "",
          "How the error is estimated: by small problems on every cell; by residuals and jumps of the flux alone, which tell it "
          "up to a factor; or by a flux in balance, which bounds the error in the energy norm.")
          .or_null("the default")
          .only(with_tolerance, is_adaptive),
      key<RunConfig>("problem.mesh.adaptive.marking", Choice<Marking>{}, POISSON_MEMBER(adaptive.marking), "",
                     "Which cells are refined: doerfler, those with the largest indicators that have the share `fraction` of the "
                     "whole estimate; fixed_fraction, this share of the cells.")
          .or_null("the default")
          .only(with_tolerance, is_adaptive),
      key<RunConfig>("problem.mesh.adaptive.orders", Choice<AdaptiveOrders>{}, POISSON_MEMBER(adaptive.orders), "",
                     "given: elements have problem.element.order. auto: of the orders 1 to 4 that which needs least work for the "
                     "tolerance, by two meshes of each.")
          .or_null("the default")
          .only(with_tolerance, is_adaptive),
      key<RunConfig>("problem.mesh.adaptive.fraction", AutoOr<Number>{{0, 1}}, POISSON_MEMBER(adaptive.fraction), "",
                     "The share of `marking`. auto: 0.5 of the estimate, 0.15 of the cells.")
          .only(with_tolerance, is_adaptive),
      key<RunConfig>("problem.mesh.adaptive.coarsen_fraction", Number{0, 1, true}, POISSON_MEMBER(adaptive.coarsen_fraction), "",
                     "The share of the cells, those with the smallest indicators, that may become coarser again.")
          .or_null("the default")
          .only(with_tolerance, is_adaptive),
      key<RunConfig>("problem.mesh.adaptive.keep_cycles", Boolean{}, POISSON_MEMBER(adaptive.keep_cycles), "",
                     "Whether the solution on every mesh is written, too: cycle_1.vtu, cycle_2.vtu, ..., and cycles.pvd.")
          .or_null("false")
          .only(with_tolerance, is_adaptive),
  };
}

void check_adaptive(YamlNode const& root, RunConfig const& config) {
  if (!config.adaptive.is_asked())
    return;
  auto const refuse = [&](std::string const& key, std::string const& what) { reject(locate_path(root, key).origin, key, what); };
  std::string const key = "problem.mesh.adaptive";
  if (config.adaptive.estimator == assembly::Estimator::equilibrated && !config.adaptive.target.empty())
    refuse(key + ".estimator", "'equilibrated' bounds the error in the energy norm; with problem.mesh.adaptive.target leave "
                               "it out: local problems are solved");
  if (config.effective.is_asked())
    refuse(key, "analysis.effective needs a box of equal cells; it does not go with adaptive yet");
  if (config.solver.initial != InitialGuess::zero)
    refuse("solver.initial", "with problem.mesh.adaptive iterations begin at the solution on the mesh before; leave the key out");
  if (config.solver.to_discretization)
    refuse("solver.tolerance", "found 'discretization', which boxes have; with problem.mesh.adaptive give a number");
  if (std::any_of(config.analysis.begin(), config.analysis.end(),
                  [](auto const& spec) { return spec.of == AnalysisOf::snapshots; }))
    refuse("analysis.svd", "snapshots are vectors of one mesh, and with problem.mesh.adaptive every case has its own");
  if (config.sweep.greedy)
    refuse("sweep.greedy", "predicts vectors of one mesh, and with problem.mesh.adaptive every case has its own");
  if (config.adaptive.chooses_order() && config.problem.order > 1)
    refuse("problem.element.order", "found " + std::to_string(config.problem.order) +
                                        ", and problem.mesh.adaptive.orders: auto finds the order; leave one of them out");
}

}  // namespace poisson::app::schema
