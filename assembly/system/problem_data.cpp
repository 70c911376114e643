#include "assembly/system/problem_data.hpp"

#include "gpu/core/error.hpp"
#include "gpu/core/nearest_name.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

namespace poisson::assembly {

namespace {

template <class Ids>
std::string list(Ids const& ids) {
  std::string text;
  std::size_t count = 0;
  for (auto const id : ids) {
    if (++count > 20) {
      text += ", ... (" + std::to_string(ids.size()) + " in all)";
      break;
    }
    text += (text.empty() ? "" : ", ") + std::to_string(id);
  }
  return text.empty() ? "none" : text;
}

std::string coefficient_key(ProblemSpec const& spec, int material) {
  if (material >= 0)
    return "problem.coefficient." + std::to_string(material);
  return spec.coefficient.size() > 1 ? "problem.coefficient.default" : "problem.coefficient";
}

void check_order(int order) {
  if (order < 1 || order > 8)
    throw InputError("problem.element.order", "the element order is " + std::to_string(order) + "; orders 1 to 8 are available");
}

/// The rotation of a frame.
std::array<double, 9> rotation_of(std::string const& name, ProblemSpec const& spec, std::string const& key) {
  std::vector<std::string> known;
  for (std::size_t i = 0; i < spec.frames.size(); ++i) {
    FrameSpec const& frame = spec.frames[i];
    if (frame.name == name) {
      if (frame.axis == std::array<double, 3>{})
        throw InputError("problem.frames[" + std::to_string(i) + "].axis", "the axis has no length; give a direction");
      return rotation_matrix(frame.axis, frame.angle);
    }
    known.push_back(frame.name);
  }
  std::string const near = nearest_name(name, known);
  throw InputError(key,
                   "problem.frames has no frame named '" + name + "'" + (near.empty() ? "" : "; did you mean '" + near + "'?"));
}

/// The ids that have this name. Throws InputError when there is none.
std::vector<unsigned> ids_of(std::string const& name, IdNames const& names, char const* what, std::string const& key) {
  std::vector<unsigned> ids;
  std::vector<std::string> known;
  for (auto const& [id, text] : names) {
    if (text == name)
      ids.push_back(id);
    if (std::find(known.begin(), known.end(), text) == known.end())
      known.push_back(text);
  }
  if (!ids.empty())
    return ids;
  std::string message = std::string("the mesh has no ") + what + " named '" + name + "'";
  if (std::string const near = nearest_name(name, known); !near.empty())
    message += "; did you mean '" + near + "'?";
  else if (!known.empty())
    message += ";";
  std::string all;
  for (std::string const& text : known)
    all += (all.empty() ? "" : ", ") + text;
  throw InputError(key, message + (all.empty() ? "; it has no names: use ids, or problem.mesh." +
                                                     std::string(what[0] == 'b' ? "boundaries" : "regions")
                                               : " Named are: " + all));
}

}  // namespace

std::string to_text(double x) {
  char buffer[64];
  auto const result = std::to_chars(std::begin(buffer), std::end(buffer), x);
  return {buffer, result.ptr};
}

std::string to_text(double x, int digits) {
  char buffer[64];
  auto const result = std::to_chars(std::begin(buffer), std::end(buffer), x, std::chars_format::general, digits);
  return {buffer, result.ptr};
}

std::string to_text(Point3 const& x) {
  // Six digits show where a place is; more would only be noise from the quadrature rule.
  auto const number = [](double value) { return to_text(value, 6); };
  return std::string("(").append(number(x[0])) + ", " + number(x[1]) + ", " + number(x[2]) + ")";
}

Function::Function(std::string const& text, std::string const& key, ExpressionNames const& names) : expression_(text, key, names) {
  if (expression_.is_constant())
    constant_ = expression_(0, 0, 0);
}

double Function::finite(Point3 const& x, char const* what) const {
  double const value = (*this)(x);
  if (!std::isfinite(value))
    throw InputError(key(), std::string(what) + " '" + expression_.text() + "' is " + to_text(value) +
                                " at (x, y, z) = " + to_text(x) + "; it must be finite there");
  return value;
}

void refuse_alpha(Function const& alpha, Point3 const& x) {
  throw InputError(alpha.key(), "alpha is " + to_text(alpha.finite(x, "alpha")) + " at (x, y, z) = " + to_text(x) +
                                    "; it must not be negative, or the matrix is not positive definite");
}

bool Coefficient::is_diagonal_code() const {
  return is_diagonal() && std::all_of(components.begin(), components.end(), [](auto const& c) { return c.is_code(); });
}

bool Coefficient::is_constant() const {
  return std::all_of(components.begin(), components.end(), [](auto const& c) { return c.is_constant(); });
}

Tensor Coefficient::operator()(Point3 const& x, unsigned material) const {
  auto const place = [&] { return " at (x, y, z) = " + to_text(x) + " in material " + std::to_string(material); };
  if (components.size() == 6) {
    Tensor k;
    for (std::size_t e = 0; e < 6; ++e)
      if (!std::isfinite(k.entries[e] = components[e](x)))
        throw InputError(components[e].key(),
                         "the coefficient is " + to_text(k.entries[e]) + place() + "; it must be finite everywhere");
    // Its leading minors.
    double const second = k.xx() * k.yy() - k.xy() * k.xy();
    double const third = k.zz() * second - k.xx() * k.yz() * k.yz() - k.yy() * k.xz() * k.xz() + 2 * k.xy() * k.xz() * k.yz();
    if (!(k.xx() > 0 && second > 0 && third > 0))
      throw InputError(key, "the coefficient's tensor has the eigenvalue " + to_text(k.smallest_eigenvalue(), 6) + place() +
                                "; it must be positive definite everywhere");
    return k;
  }
  Point3 k{};
  for (std::size_t d = 0; d < 3; ++d) {
    if (d >= components.size()) {
      k[d] = k[0];
      continue;
    }
    k[d] = components[d](x);
    if (!(k[d] > 0) || !std::isfinite(k[d]))
      throw InputError(components[d].key(),
                       "the coefficient is " + to_text(k[d]) + place() + "; it must be positive and finite everywhere");
  }
  return frame ? rotated(k, *frame) : Tensor::diagonal(k);
}

ProblemData::ProblemData(ProblemSpec const& spec, PlaceNames const& names, bool final) : names_(spec.names()) {
  check_order(spec.order);
  auto const &boundary_ids = names.boundary_ids, &material_ids = names.material_ids;
  auto const check_material = [&](int material, std::string const& key) {
    if (!material_ids.contains(static_cast<unsigned>(material)))
      throw InputError(key, "the mesh has no material " + std::to_string(material) + "; it has: " + list(material_ids));
  };
  auto const refuse_second = [](unsigned id, std::string const& name, std::string const& key) {
    throw InputError(key, "material " + std::to_string(id) + ", named '" + name + "', is given by its id as well");
  };

  sources.emplace_back(spec.source, spec.has_one_source() ? "problem.source" : "problem.source.default", names_);
  for (unsigned const id : material_ids)
    source_of[id] = 0;
  for (auto const& [material, text] : spec.source_of_material) {
    auto const key = "problem.source[" + std::to_string(material) + "]";
    check_material(material, key);
    source_of[static_cast<unsigned>(material)] = sources.size();
    sources.emplace_back(text, key, names_);
  }
  for (auto const& [name, text] : spec.source_of_name) {
    auto const key = "problem.source." + name;
    for (unsigned const id : ids_of(name, names.material_names, "material", key)) {
      if (spec.source_of_material.contains(static_cast<int>(id)))
        refuse_second(id, name, key);
      source_of[id] = sources.size();
    }
    sources.emplace_back(text, key, names_);
  }

  std::map<int, std::size_t> entries;
  auto const add_coefficient = [&](std::string const& key, CoefficientExpressions const& expressions) {
    if (expressions.size() != 1 && expressions.size() != 3 && expressions.size() != 6)
      throw InputError(key, "the coefficient has " + std::to_string(expressions.size()) +
                                " components; give one expression, a list of three for kx, ky, kz, or one of six for the tensor");
    auto& coefficient = coefficients.emplace_back();
    coefficient.key = key;
    if (!expressions.frame.empty())
      coefficient.frame = rotation_of(expressions.frame, spec, key + ".frame");
    for (std::size_t d = 0; d < expressions.size(); ++d)
      coefficient.components.emplace_back(expressions[d], expressions.size() == 1 ? key : key + "[" + std::to_string(d) + "]",
                                          names_);
    if (coefficient.components.size() == 6) {
      if (coefficient.is_constant())
        static_cast<void>(coefficient({}, 0));
      return coefficients.size() - 1;
    }
    for (auto const& component : coefficient.components)
      if (component.is_constant() && !(component({}) > 0 && std::isfinite(component({}))))
        throw InputError(component.key(), "the coefficient is " + to_text(component({})) + "; it must be positive and finite");
    return coefficients.size() - 1;
  };
  for (auto const& [material, expressions] : spec.coefficient) {
    auto const key = coefficient_key(spec, material);
    auto const index = add_coefficient(key, expressions);
    if (material >= 0)
      check_material(material, key);
    entries[material] = index;
  }
  for (auto const& [name, expressions] : spec.coefficient_of_name) {
    auto const key = "problem.coefficient." + name;
    auto const index = add_coefficient(key, expressions);
    for (unsigned const id : ids_of(name, names.material_names, "material", key))
      if (!entries.emplace(static_cast<int>(id), index).second)
        refuse_second(id, name, key);
  }
  std::set<unsigned> missing;
  for (auto const id : material_ids) {
    auto entry = entries.find(static_cast<int>(id));
    if (entry == entries.end())
      entry = entries.find(-1);
    if (entry == entries.end())
      missing.insert(id);
    else
      coefficient_of[id] = entry->second;
  }
  if (final && !missing.empty())
    throw InputError("problem.coefficient", "no coefficient for material " + list(missing) + "; the mesh has the materials " +
                                                list(material_ids) + ": give each an expression, or add 'default'");

  std::optional<std::size_t> rest;
  for (std::size_t i = 0; i < spec.boundary.size(); ++i) {
    auto const& condition = spec.boundary[i];
    auto const key = "problem.boundary[" + std::to_string(i) + "]";
    boundary.push_back({condition.type, Function(condition.value, key + ".value", names_),
                        Function(condition.type == BoundaryType::robin ? condition.alpha : "0", key + ".alpha", names_)});
    bool const periodic = condition.type == BoundaryType::periodic;
    boundary.back().map = condition.map;
    if (condition.all_ids && periodic)
      throw InputError(key + ".ids", "a periodic condition joins two boundaries: give their two ids or names");
    if (condition.all_ids) {
      if (rest)
        throw InputError(key + ".ids",
                         "'all' is used twice, first in problem.boundary[" + std::to_string(*rest) + "]; use it once");
      rest = i;
    }
    for (std::size_t k = 0; k < condition.names.size(); ++k) {
      std::string const name_key = key + ".names[" + std::to_string(k) + "]";
      for (unsigned const id : ids_of(condition.names[k], names.boundary_names, "boundary", name_key)) {
        boundary.back().sides.push_back(id);
        if (!boundary_of.emplace(id, i).second)
          throw InputError(name_key, "the boundary '" + condition.names[k] + "' is already in problem.boundary[" +
                                         std::to_string(boundary_of[id]) + "]; give every boundary once");
      }
    }
    for (auto const id : condition.ids) {
      if (!boundary_ids.contains(id))
        throw InputError(key + ".ids", "the mesh has no boundary id " + std::to_string(id) + "; it has: " + list(boundary_ids));
      if (!boundary_of.emplace(id, i).second)
        throw InputError(key + ".ids", "boundary id " + std::to_string(id) + " is already in problem.boundary[" +
                                           std::to_string(boundary_of[id]) + "]; give every id once");
      boundary.back().sides.push_back(id);
    }
    if (periodic && boundary.back().sides.size() != 2)
      throw InputError(key, "a periodic condition joins two boundaries, and this one has " +
                                std::to_string(boundary.back().sides.size()) + ": give their two ids or names");
  }
  missing.clear();
  for (auto const id : boundary_ids)
    if (!boundary_of.contains(id)) {
      if (rest)
        boundary_of[id] = *rest;
      else
        missing.insert(id);
    }
  if (final && !missing.empty())
    throw InputError("problem.boundary", "no condition for boundary id " + list(missing) + "; the mesh has the ids " +
                                             list(boundary_ids) +
                                             ": name the missing ones in a condition, or use 'ids: all' for what is left");
  if (spec.exact)
    exact.emplace(*spec.exact, "problem.exact", names_);
}

bool ProblemData::has_periodic_boundaries() const {
  return std::any_of(boundary.begin(), boundary.end(),
                     [](BoundaryData const& condition) { return condition.type == BoundaryType::periodic; });
}

bool ProblemData::constant_coefficient() const {
  return std::all_of(coefficients.begin(), coefficients.end(), [](auto const& c) { return c.is_constant(); });
}

bool ProblemData::constant_source() const {
  return std::all_of(sources.begin(), sources.end(), [](Function const& source) { return source.is_constant(); });
}

void ProblemData::scale_source(double factor) {
  std::vector<Function> scaled;
  for (Function const& source : sources)
    scaled.emplace_back(to_text(factor) + " * (" + source.text() + ")", source.key(), names_);
  sources = std::move(scaled);
}

bool ProblemData::diagonal_code() const {
  return std::all_of(coefficients.begin(), coefficients.end(), [](auto const& c) { return c.is_diagonal_code(); });
}

int ProblemData::coefficient_components() const {
  int most = 1;
  for (auto const& [material, index] : coefficient_of)
    most = std::max(most, coefficients[index].is_diagonal() ? static_cast<int>(coefficients[index].components.size()) : 6);
  return most;
}

}  // namespace poisson::assembly
