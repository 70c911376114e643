#include "app/run/adaptive_target.hpp"

#include "assembly/system/integrals.hpp"
#include "gpu/core/error.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace poisson::app {

namespace {

[[noreturn]] void refuse_target(std::string const& what) {
  throw InputError("problem.mesh.adaptive.target", what);
}

/// What the name of a quantity stands for.
struct Meaning {
  enum class Kind { mean, integral, energy, extreme, probe, flux, area, volume, exact, unknown };
  enum class Of { whole, boundary, material };
  Kind kind = Kind::unknown;
  Of of = Of::whole;
  std::set<unsigned> ids{};  ///< of that boundary or material
  ProbeSpec const* probe = nullptr;
};

std::set<unsigned> with_label(std::string_view name, assembly::IdGroups const& groups, std::set<unsigned> const& all) {
  for (auto const& group : groups.labelled(all))
    if (group.label == name)
      return group.parts;
  return {};
}

/// The ids of a group by its label, or by a number.
std::set<unsigned> ids_of(std::string_view name, assembly::IdGroups const& groups, std::set<unsigned> const& all) {
  auto found = with_label(name, groups, all);
  if (found.empty() && !name.empty() && name.size() <= 9 && std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; }))
    found = groups.with_id(static_cast<unsigned>(std::stoul(std::string(name))), all);
  return found;
}

Meaning meaning_of(std::string const& name, RunConfig const& config, assembly::MeshSummary const& mesh) {
  using Kind = Meaning::Kind;
  using Of = Meaning::Of;
  static std::map<std::string, Kind> const of_whole{{"mean", Kind::mean},     {"integral_u", Kind::integral},
                                                    {"energy", Kind::energy}, {"min", Kind::extreme},
                                                    {"max", Kind::extreme},   {"integral_f", Kind::exact}};
  if (auto const found = of_whole.find(name); found != of_whole.end())
    return {found->second};
  std::size_t const dot = name.find('.');
  if (dot == std::string::npos)
    return {};
  std::string const what = name.substr(0, dot), rest = name.substr(dot + 1);
  if (what == "flux" || what == "area") {  // through surfaces inside the mesh as well
    assembly::IdGroups groups = mesh.boundary_groups;
    for (assembly::IdGroup const& group : mesh.inner_groups.list())
      groups.add(group);
    std::set<unsigned> all = mesh.boundary_ids;
    all.insert(mesh.inner_ids.begin(), mesh.inner_ids.end());
    if (auto ids = ids_of(rest, groups, all); !ids.empty())
      return {what == "flux" ? Kind::flux : Kind::area, Of::boundary, std::move(ids)};
  }
  std::set<unsigned> const boundary = ids_of(rest, mesh.boundary_groups, mesh.boundary_ids),
                           material = ids_of(rest, mesh.material_groups, mesh.material_ids);
  if (what == "volume" && !material.empty())
    return {Kind::volume, Of::material, material};
  if (what == "probe")
    for (ProbeSpec const& probe : config.output.probes) {
      if (rest == probe.name)
        return {Kind::probe, Of::whole, {}, &probe};
      if (rest == probe.name + ".exact")
        return {Kind::exact};
    }
  if (what != "mean" && what != "integral_u")
    return {};
  Kind const kind = what == "mean" ? Kind::mean : Kind::integral;
  for (auto const& [begin, of] : {std::pair{std::string("boundary."), Of::boundary}, {std::string("material."), Of::material}})
    if (rest.starts_with(begin)) {
      std::string const own = rest.substr(begin.size());
      auto ids = of == Of::boundary ? ids_of(own, mesh.boundary_groups, mesh.boundary_ids)
                                    : ids_of(own, mesh.material_groups, mesh.material_ids);
      if (!ids.empty())
        return {kind, of, std::move(ids)};
    }
  // A name that both have stands behind "boundary." or "material.", unless the material is the nameless whole; a label comes before
  // an id (quantity_table).
  bool const whole = mesh.material_ids.size() == 1 && mesh.material_groups.names().empty();
  bool const is_boundary = !with_label(rest, mesh.boundary_groups, mesh.boundary_ids).empty(),
             is_material = !whole && !with_label(rest, mesh.material_groups, mesh.material_ids).empty();
  if (!boundary.empty() && (is_boundary ? !is_material : material.empty() || whole))
    return {kind, Of::boundary, boundary};
  if (!material.empty() && (is_material ? !is_boundary : boundary.empty()))
    return {kind, Of::material, material};
  return {};
}

constexpr char const* known_targets = "flux.NAME of a boundary, probe.NAME, mean, integral_u, mean.NAME and integral_u.NAME of a "
                                      "boundary or a material, energy, min, "
                                      "max, and quantities of output.quantities that are made of them";

bool is_own(std::string const& name, RunConfig const& config) {
  return std::ranges::any_of(config.output.quantities, [&](QuantitySpec const& own) { return own.name == name; });
}

/// Adds quantities to a dual problem, times a factor each.
class Loads {
public:
  Loads(RunConfig const& config, assembly::Discretization const& mesh, NamedQuantities const& quantities)
      : config_(config), mesh_(mesh), quantities_(quantities) {
    result.lifted.resize(static_cast<std::size_t>(mesh.summary().dofs), 0.0);
  }

  /// Returns whether the quantity has an error.
  bool add(std::string const& name, double factor) {
    using Kind = Meaning::Kind;
    Meaning const meaning = meaning_of(name, config_, mesh_.summary());
    switch (meaning.kind) {
    case Kind::exact:
      return false;
    case Kind::probe:
      at_point(meaning.probe->at, factor);
      return true;
    case Kind::extreme:
      at_point(quantities_.value_of(name + "_at")->get<std::array<double, 3>>(), factor);
      return true;
    case Kind::energy:
      for (unsigned const id : mesh_.summary().boundary_ids)
        if (mesh_.condition_on(id) == assembly::BoundaryType::robin)
          refuse_target("the error of 'energy' is not known with Robin conditions; take another target, or none");
      result.load.of_problem += factor;
      result.energy += factor;
      return true;
    case Kind::flux:
      return add_flux(meaning.ids, factor);
    case Kind::area:
      for (unsigned const id : meaning.ids)
        result.load.on_boundary[id].of_size += factor;  // of a surface inside nothing reads it
      return mesh_.misses_surfaces();
    case Kind::volume:
      for (unsigned const id : meaning.ids)
        result.load.in_material[id].of_size += factor;
      return mesh_.misses_surfaces();
    case Kind::mean:
    case Kind::integral:
      add_integral(meaning, name, factor);
      return true;
    case Kind::unknown:
      break;
    }
    refuse_target(name == config_.adaptive.target ? "found '" + name + "'; the error is known of " + known_targets
                                                  : "'" + config_.adaptive.target + "' is made of '" + name +
                                                        "', whose error is not known; it is known of " + known_targets);
  }

  DualProblem result;

private:
  void at_point(std::array<double, 3> const& x, double factor) {
    result.load.points.emplace_back(mesh_.locate({&x, 1}).front(), factor);
  }

  bool add_flux(std::set<unsigned> const& ids, double factor) {
    bool depends = false;
    for (unsigned const id : ids) {
      bool const on_boundary = mesh_.summary().boundary_ids.contains(id);
      bool given = false;  // u, inside or on the boundary; an id may be of both
      if (mesh_.summary().inner_ids.contains(id)) {
        auto const inside = mesh_.condition_inside(id);
        if (!inside && !on_boundary)
          refuse_target(
              "the error of what flows through a surface inside the mesh is known where it has a condition; take that of a "
              "boundary, or none");
        given = inside == assembly::BoundaryType::dirichlet;
      }
      if (on_boundary) {
        assembly::BoundaryType const type = mesh_.condition_on(id);
        if (type == assembly::BoundaryType::periodic)
          refuse_target("the error of what flows through periodic boundaries is not known; take energy, or none");
        if (type == assembly::BoundaryType::robin)
          result.load.robin[id] += factor;
        given = given || type == assembly::BoundaryType::dirichlet;
        depends = depends || type != assembly::BoundaryType::neumann;
      }
      if (given)
        result.load.flux[id] += factor;
      depends = depends || given;
    }
    HostVector<double> const lift = mesh_.lift_of(ids);
    for (std::size_t i = 0; i < lift.size(); ++i)
      result.lifted[i] += factor * lift[i];
    return depends;
  }

  void add_integral(Meaning const& meaning, std::string const& name, double factor) {
    bool const of_boundary = meaning.of == Meaning::Of::boundary;
    assembly::MeshSummary const& mesh = mesh_.summary();
    assembly::LoadOfEstimate::OfPart part{factor, 0};
    if (meaning.kind == Meaning::Kind::mean) {
      double size = 0;
      if (meaning.of == Meaning::Of::whole)
        size = assembly::ordered_sum(mesh_.integration_weights());
      else
        for (auto const& group : (of_boundary ? mesh.boundary_groups : mesh.material_groups)
                                     .labelled(of_boundary ? mesh.boundary_ids : mesh.material_ids))
          if (group.parts == meaning.ids)
            size = quantities_.number((of_boundary ? "area." : "volume.") + group.label).value_or(0);
      auto const mean = quantities_.number(name);
      if (size == 0 || !mean)
        refuse_target("there is no quantity '" + name + "' of this problem");
      part = {factor / size, -factor / size * *mean};
    }
    auto const add = [&](assembly::LoadOfEstimate::OfPart& to) {
      to.density += part.density;
      to.of_size += part.of_size;
    };
    if (of_boundary)
      for (unsigned const id : meaning.ids)
        add(result.load.on_boundary[id]);
    else
      for (unsigned const id : meaning.of == Meaning::Of::whole ? mesh.material_ids : meaning.ids)
        add(result.load.in_material[id]);
  }

  RunConfig const& config_;
  assembly::Discretization const& mesh_;
  NamedQuantities const& quantities_;
};

}  // namespace

void check_refinement(RunConfig const& config, assembly::MeshSummary const& mesh, bool made) {
  if (mesh.periodic && config.adaptive.estimator == assembly::Estimator::equilibrated)
    throw InputError("problem.mesh.adaptive.estimator", "found 'equilibrated', which knows no periodic boundaries; take "
                                                        "local_problems or residual");
  if (!mesh.conditioned_surfaces.empty() && config.adaptive.estimator == assembly::Estimator::equilibrated)
    throw InputError("problem.mesh.adaptive.estimator",
                     "found 'equilibrated', which knows no conditions on surfaces inside the mesh; "
                     "take local_problems or residual");
  std::string const& target = config.adaptive.target;
  if (target.empty() || is_own(target, config))
    return;
  using Kind = Meaning::Kind;
  Kind const kind = meaning_of(target, config, mesh).kind;
  bool const has_error = kind != Kind::unknown && kind != Kind::exact && kind != Kind::area && kind != Kind::volume;
  if (has_error)
    return;
  if (kind != Kind::unknown)
    refuse_target("'" + target + "' does not depend on u; the error is known of " + known_targets);
  std::size_t const dot = target.find('.');
  std::string const what = target.substr(0, dot), name = dot == std::string::npos ? "" : target.substr(dot + 1);
  if (what == "probe" && !name.empty() && name.find('.') == std::string::npos)
    refuse_target("there is no probe '" + name + "' in output.probes");
  if (name.empty() || (what != "flux" && what != "mean" && what != "integral_u"))
    refuse_target("found '" + target + "'; the error is known of " + known_targets);
  if (!made && config.problem.mesh.has_places())  // `boundaries` and `regions` give it names
    return;
  auto const list = [](assembly::IdGroups const& groups, std::set<unsigned> const& ids) {
    std::string text;
    for (auto const& group : groups.labelled(ids))
      text += (text.empty() ? "" : ", ") + group.label;
    return text;
  };
  std::string const boundaries = list(mesh.boundary_groups, mesh.boundary_ids);
  if (what == "flux")
    refuse_target("the mesh has no boundary '" + name + "'; it has: " + boundaries +
                  (mesh.inner_ids.empty() ? "" : "; and inside: " + list(mesh.inner_groups, mesh.inner_ids)));
  if (!ids_of(name, mesh.inner_groups, mesh.inner_ids).empty())
    refuse_target("'" + name + "' is a surface inside the mesh, and of such a one the error of flux." + name +
                  " alone is known; take that, or the mean over a boundary or a material");
  refuse_target("the mesh has no boundary and no material '" + name + "'; it has the boundaries " + boundaries +
                " and the materials " + list(mesh.material_groups, mesh.material_ids) + "; where both have one name or id write " +
                what + ".boundary." + name + " or " + what + ".material." + name);
}

DualProblem dual_problem_of(RunConfig const& config, assembly::Discretization const& mesh, NamedQuantities const& quantities) {
  std::string const& target = config.adaptive.target;
  check_refinement(config, mesh.summary(), true);
  Loads loads(config, mesh, quantities);
  if (!is_own(target, config)) {
    if (!loads.add(target, 1))
      refuse_target("'" + target + "' is what problem.boundary gives there, and has no error");
    return std::move(loads.result);
  }
  bool has_error = false;
  for (auto const& [name, derivative] : derivatives_of(config, quantities, target))
    if (derivative != 0)
      has_error = loads.add(name, derivative) || has_error;
  if (!has_error)
    refuse_target("'" + target + "' does not depend on u, and has no error");
  return std::move(loads.result);
}

}  // namespace poisson::app
