#include "assembly/system/problem_data.hpp"

#include "gpu/core/error.hpp"
#include "gpu/core/nearest_name.hpp"
#include "gpu/core/tensor_entries.hpp"

#include <algorithm>
#include <cctype>
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

/// The ids of the mesh that have this name. Throws InputError when there is none, or nothing has the name.
std::set<unsigned> ids_of(std::string const& name, IdGroups const& groups, char const* what, std::string const& key) {
  std::set<unsigned> const ids = groups.with_name(name);
  if (!ids.empty())
    return ids;
  if (groups.has_name(name))
    throw InputError(key, "the " + std::string(what) + " '" + name + "' holds no " +
                              (what[0] == 'b' ? "face of the boundary" : "cell") + " of this mesh");
  std::vector<std::string> known;
  for (std::string const& text : groups.names())
    if (!groups.with_name(text).empty())
      known.push_back(text);
  // Names of Abaqus are the same in capitals; where only one fits, it is meant.
  std::vector<std::string> alike;
  for (std::string const& text : known)
    if (std::equal(text.begin(), text.end(), name.begin(), name.end(),
                   [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); }))
      alike.push_back(text);
  if (alike.size() == 1)
    return groups.with_name(alike[0]);
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

/// Lists the names of what has these ids of the mesh.
std::string list_of(std::set<unsigned> const& ids, IdGroups const& groups) {
  std::string text;
  std::size_t count = 0;
  for (unsigned const id : ids) {
    if (++count > 20)
      return text + ", ... (" + std::to_string(ids.size()) + " in all)";
    text += (text.empty() ? "" : ", ") + groups.label(id);
  }
  return text;
}

bool is_same(BoundaryCondition const& a, BoundaryCondition const& b) {
  return a.type == b.type && a.value == b.value && a.alpha == b.alpha;
}

/// Conditions on a surface inside the mesh are values of u, and sources.
bool holds_inside(BoundaryType type) {
  return type == BoundaryType::dirichlet || type == BoundaryType::neumann;
}

void check_inner(BoundaryType type, std::string const& text, std::string const& key) {
  if (!holds_inside(type))
    throw InputError(key,
                     text + " lies inside the mesh, where conditions are dirichlet, or neumann for a source on the surface; not " +
                         std::string(name_of(type)));
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
    throw InputError(key(),
                     std::string(what) + " '" + expression_.text() + "' is " + to_text(value) +
                         (constant_ ? "; it must be finite" : " at (x, y, z) = " + to_text(x) + "; it must be finite there"));
  return value;
}

void refuse_alpha(Function const& alpha, Point3 const& x) {
  throw InputError(alpha.key(), "alpha is " + to_text(alpha.finite(x, "alpha")) +
                                    (alpha.is_constant() ? "" : " at (x, y, z) = " + to_text(x)) +
                                    "; it must not be negative, or the matrix is not positive definite");
}

namespace {

/// Throws InputError for a constant that is not finite; `what` starts the message. Others show at the points of the mesh.
void require_finite(Function const& f, char const* what) {
  if (f.is_constant())
    static_cast<void>(f.finite({}, what));
}

}  // namespace

bool Function::can_jump() const {
  if (is_constant())
    return false;
  if (!is_code())
    return true;
  return std::any_of(code().begin(), code().end(), [](Instruction const& instruction) {
    switch (instruction.op) {
    case Op::jump_if_zero:
    case Op::jump:
    case Op::logical_not:
    case Op::sign:
    case Op::step:
    case Op::floor:
    case Op::ceil:
    case Op::round:
    case Op::rint:
    case Op::less:
    case Op::less_equal:
    case Op::greater:
    case Op::greater_equal:
    case Op::equal:
    case Op::not_equal:
    case Op::logical_and:
    case Op::logical_or:
    case Op::atan2:
    case Op::modulo:
      return true;
    default:
      return false;
    }
  });
}

bool Coefficient::can_jump() const {
  return std::any_of(components.begin(), components.end(), [](Function const& c) { return c.can_jump(); });
}

Tensor Coefficient::seen_from(Point3 const& middle, Point3 const& x, unsigned material) const {
  if (!can_jump())
    return (*this)(x, material);
  constexpr double share = 1e-8;  // of the way to the middle
  Point3 inside{};
  for (std::size_t d = 0; d < 3; ++d)
    inside[d] = x[d] + share * (middle[d] - x[d]);
  return (*this)(inside, material);
}

bool Coefficient::is_code() const {
  return std::all_of(components.begin(), components.end(), [](auto const& c) { return c.is_code(); });
}

std::vector<ExpressionCode> Coefficient::codes() const {
  std::vector<ExpressionCode> result;
  if (!frame) {
    for (Function const& component : components)
      result.push_back(component.code());
    return result;
  }
  if (is_constant())
    for (double const entry : (*this)({}, 0).entries)
      result.push_back({Instruction(Op::constant, entry)});
  // sum_e R_ie R_je k_e
  for (int entry = 0; entry < tensor_entries && !is_constant(); ++entry) {
    ExpressionCode sum;
    for (std::size_t e = 0; e < 3; ++e) {
      auto const first = static_cast<std::int64_t>(sum.size());
      for (Instruction instruction : components[components.size() == 1 ? 0 : e].code()) {
        if (instruction.op == Op::jump || instruction.op == Op::jump_if_zero)
          instruction.target += first;
        sum.push_back(instruction);
      }
      auto const row = static_cast<std::size_t>(tensor_row(entry)), column = static_cast<std::size_t>(tensor_column(entry));
      sum.emplace_back(Op::constant, (*frame)[3 * row + e] * (*frame)[3 * column + e]);
      sum.emplace_back(Op::multiply);
      if (e > 0)
        sum.emplace_back(Op::add);
    }
    result.push_back(std::move(sum));
  }
  return result;
}

double Coefficient::entry(Point3 const& x, unsigned material, std::size_t e) const {
  if (e == 0 || frame)
    return (*this)(x, material).entries[e];
  if (e >= std::max<std::size_t>(components.size(), 3))
    return 0;
  return components[components.size() == 1 ? 0 : e](x);
}

bool Coefficient::is_constant() const {
  return std::all_of(components.begin(), components.end(), [](auto const& c) { return c.is_constant(); });
}

Tensor Coefficient::operator()(Point3 const& x, unsigned material) const {
  auto const place = [&] { return " at (x, y, z) = " + to_text(x) + " in material " + std::to_string(material); };
  auto const checked = [&](Tensor const& k) {
    std::array<double, tensor_entries> const& entries = k.entries;
    if (!is_positive_definite({entries[0], entries[1], entries[2], entries[3], entries[4], entries[5]}))
      throw InputError(key, "the coefficient's tensor has the eigenvalue " + to_text(k.smallest_eigenvalue(), 6) + place() +
                                "; it must be positive definite everywhere, by more than rounding");
    return k;
  };
  if (components.size() == 6) {
    Tensor k;
    for (std::size_t e = 0; e < 6; ++e)
      if (!std::isfinite(k.entries[e] = components[e](x)))
        throw InputError(components[e].key(),
                         "the coefficient is " + to_text(k.entries[e]) + place() + "; it must be finite everywhere");
    return checked(k);
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
  return frame ? checked(rotated(k, *frame)) : Tensor::diagonal(k);
}

ProblemData::ProblemData(ProblemSpec const& spec, PlaceNames const& names, bool final) : names_(spec.names()) {
  check_order(spec.order);
  auto const &boundary_ids = names.boundary_ids, &material_ids = names.material_ids;
  // The ids of the mesh that a material's number in the configuration stands for.
  auto const ids_of_material = [&](int material, std::string const& key) {
    auto const id = static_cast<unsigned>(material);
    std::set<unsigned> const ids = names.material_groups.with_id(id, material_ids);
    LabelImage const* const labels = spec.mesh.labels.get();  // of which some may be in parts alone that are left out
    if (ids.empty() && (labels == nullptr || !std::binary_search(labels->labels.begin(), labels->labels.end(), id)))
      throw InputError(key, "the mesh has no material " + std::to_string(material) +
                                "; it has: " + list(names.material_groups.ids_of(material_ids)));
    return ids;
  };
  auto const text_of_material = [&](unsigned id) { return "material " + names.material_groups.label(id); };

  sources.emplace_back(spec.source, spec.has_one_source() ? "problem.source" : "problem.source.default", names_);
  for (unsigned const id : material_ids)
    source_of[id] = 0;
  // What belongs to several groups may be given by several of them, if all say the same.
  auto const add_source = [&](std::set<unsigned> const& ids, std::string const& text, std::string const& key) {
    for (unsigned const id : ids) {
      Function const& first = sources[source_of[id]];
      if (source_of[id] != 0 && first.text() != text)
        throw InputError(key, text_of_material(id) + " has another source, '" + first.text() + "', by " + first.key());
      source_of[id] = sources.size();
    }
    sources.emplace_back(text, key, names_);
  };
  // A label of an image may have a name and no voxel, in some part of the image that is looked at.
  auto const materials_named = [&](std::string const& name, std::string const& key) {
    auto const& of_labels = spec.mesh.image.names;
    bool const is_label = std::any_of(of_labels.begin(), of_labels.end(), [&](auto const& label) { return label.second == name; });
    return is_label ? names.material_groups.with_name(name) : ids_of(name, names.material_groups, "material", key);
  };
  for (auto const& [material, text] : spec.source_of_material) {
    auto const key = "problem.source[" + std::to_string(material) + "]";
    add_source(ids_of_material(material, key), text, key);
  }
  for (auto const& [name, text] : spec.source_of_name) {
    auto const key = "problem.source." + name;
    add_source(materials_named(name, key), text, key);
  }

  for (Function const& source : sources)
    require_finite(source, "the source");

  std::optional<std::size_t> by_default;
  std::map<unsigned, CoefficientExpressions const*> given;
  auto const give = [&](std::set<unsigned> const& ids, std::size_t index, std::string const& key,
                        CoefficientExpressions const& expressions) {
    for (unsigned const id : ids) {
      auto const [first, is_first] = given.emplace(id, &expressions);
      if (!is_first && (first->second->frame != expressions.frame ||
                        !std::equal(first->second->begin(), first->second->end(), expressions.begin(), expressions.end())))
        throw InputError(key, text_of_material(id) + " has another coefficient by " + coefficients[coefficient_of[id]].key);
      coefficient_of.emplace(id, index);
    }
  };
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
    if (coefficient.frame && coefficient.is_constant())
      static_cast<void>(coefficient({}, 0));
    return coefficients.size() - 1;
  };
  for (auto const& [material, expressions] : spec.coefficient) {
    auto const key = coefficient_key(spec, material);
    auto const index = add_coefficient(key, expressions);
    if (material >= 0)
      give(ids_of_material(material, key), index, key, expressions);
    else
      by_default = index;
  }
  for (auto const& [name, expressions] : spec.coefficient_of_name) {
    auto const key = "problem.coefficient." + name;
    auto const index = add_coefficient(key, expressions);
    give(materials_named(name, key), index, key, expressions);
  }
  std::set<unsigned> missing;
  for (auto const id : material_ids)
    if (!coefficient_of.contains(id)) {
      if (by_default)
        coefficient_of[id] = *by_default;
      else
        missing.insert(id);
    }
  if (final && !missing.empty())
    throw InputError("problem.coefficient", "no coefficient for material " + list_of(missing, names.material_groups) +
                                                "; the mesh has the materials " + list(names.material_groups.ids_of(material_ids)) +
                                                ": give each an expression, or add 'default'");

  std::optional<std::size_t> rest;
  for (std::size_t i = 0; i < spec.boundary.size(); ++i) {
    auto const& condition = spec.boundary[i];
    auto const key = "problem.boundary[" + std::to_string(i) + "]";
    boundary.push_back({condition.type, Function(condition.value, key + ".value", names_),
                        Function(condition.type == BoundaryType::robin ? condition.alpha : "0", key + ".alpha", names_)});
    bool const periodic = condition.type == BoundaryType::periodic;
    require_finite(boundary.back().value, condition.type == BoundaryType::dirichlet ? "the Dirichlet value" : "the boundary value");
    require_finite(boundary.back().alpha, "alpha");
    if (Function const& alpha = boundary.back().alpha; alpha.is_constant() && alpha({}) < 0)
      refuse_alpha(alpha, {});
    boundary.back().map = condition.map;
    if (condition.all_ids && periodic)
      throw InputError(key + ".ids", "a periodic condition joins two boundaries: give their two ids or names");
    if (condition.all_ids) {
      if (rest)
        throw InputError(key + ".ids",
                         "'all' is used twice, first in problem.boundary[" + std::to_string(*rest) + "]; use it once");
      rest = i;
    }
    auto const add_inner = [&](std::set<unsigned> const& ids, std::string const& text, std::string const& at) {
      if (!ids.empty())
        check_inner(condition.type, text, at);
      for (unsigned const id : ids) {
        auto const [entry, is_first] = inner_of.emplace(id, i);
        if (!is_first && !is_same(spec.boundary[entry->second], condition))
          throw InputError(at, text + " has another condition by problem.boundary[" + std::to_string(entry->second) +
                                   "]; give every surface one");
      }
    };
    // What belongs to several groups may be given by several of them, if all say the same.
    auto const add_sides = [&](std::set<unsigned> const& ids, std::string const& text, std::string const& at) {
      if (periodic && ids.size() > 1)
        throw InputError(at, "some faces of " + text +
                                 " belong to other groups too; a periodic boundary must have its faces for "
                                 "itself, or share all of them");
      for (unsigned const id : ids) {
        auto const [entry, is_first] = boundary_of.emplace(id, i);
        BoundaryCondition const& other = spec.boundary[entry->second];
        if (!is_first && (periodic || !is_same(other, condition)))
          throw InputError(at, text + " is already in problem.boundary[" + std::to_string(entry->second) + "]" +
                                   (ids.size() > 1 ? " where it is also " + names.boundary_groups.label(id) : "") +
                                   ", with another condition; give every boundary one");
        if (is_first)
          boundary.back().sides.push_back(id);
      }
    };
    for (std::size_t k = 0; k < condition.names.size(); ++k) {
      std::string const& name = condition.names[k];
      std::string const name_key = key + ".names[" + std::to_string(k) + "]";
      std::set<unsigned> const inside = names.inner_groups.with_name(name);
      bool const on_boundary = !names.boundary_groups.with_name(name).empty();
      if (!on_boundary || holds_inside(condition.type))
        add_inner(inside, "the surface '" + name + "'", name_key);
      if (!on_boundary && (!inside.empty() || names.left_out_names.contains(name)))
        continue;
      add_sides(ids_of(name, names.boundary_groups, "boundary", name_key), "the boundary '" + name + "'", name_key);
    }
    for (auto const id : condition.ids) {
      auto const ids = names.boundary_groups.with_id(id, boundary_ids);
      std::set<unsigned> const inside = names.inner_groups.with_id(id, names.inner_ids);
      if (ids.empty() || holds_inside(condition.type))
        add_inner(inside, "the surface with the id " + std::to_string(id), key + ".ids");
      if (ids.empty() && (!inside.empty() || names.left_out_ids.contains(id)))
        continue;
      if (ids.empty())
        throw InputError(key + ".ids", "the mesh has no boundary id " + std::to_string(id) +
                                           (names.insulated.empty() ? "" : " (a boundary goes if all cells along it are void)") +
                                           "; it has: " + list(names.boundary_groups.ids_of(boundary_ids)));
      add_sides(ids, "boundary id " + std::to_string(id), key + ".ids");
    }
    if (periodic && boundary.back().sides.size() != 2)
      throw InputError(key, "a periodic condition joins two boundaries, and this one has " +
                                std::to_string(boundary.back().sides.size()) + ": give their two ids or names");
  }
  missing.clear();
  for (auto const id : boundary_ids)
    if (!boundary_of.contains(id)) {
      if (rest) {
        boundary_of[id] = *rest;
      } else if (names.insulated.contains(id)) {
        boundary_of[id] = boundary.size();
        boundary.push_back(
            {BoundaryType::neumann, Function("0", "problem.boundary", names_), Function("0", "problem.boundary", names_)});
      } else
        missing.insert(id);
    }
  if (final && !missing.empty())
    throw InputError("problem.boundary", "no condition for boundary id " + list_of(missing, names.boundary_groups) +
                                             "; the mesh has the ids " + list(names.boundary_groups.ids_of(boundary_ids)) +
                                             ": name the missing ones in a condition, or use 'ids: all' for what is left");
  if (spec.exact) {
    exact.emplace(*spec.exact, "problem.exact", names_);
    require_finite(*exact, exact_name);
  }
}

std::set<unsigned> ProblemData::conditioned_surfaces() const {
  std::set<unsigned> ids;
  for (auto const& [id, condition] : inner_of)
    ids.insert(id);
  return ids;
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

std::vector<double> ProblemData::constant_sources(std::set<unsigned> const& materials) const {
  std::vector<double> result;
  for (unsigned const id : materials)
    if (Function const& f = source(id); f.is_constant() && std::isfinite(f(Point3{})))
      result.push_back(f(Point3{}));
  return result.size() == materials.size() ? result : std::vector<double>();
}

void ProblemData::scale_source(double factor) {
  std::vector<Function> scaled;
  for (Function const& source : sources)
    scaled.emplace_back(to_text(factor) + " * (" + source.text() + ")", source.key(), names_);
  sources = std::move(scaled);
}

bool ProblemData::source_code() const {
  return std::all_of(sources.begin(), sources.end(), [](Function const& f) { return f.is_code(); });
}

bool ProblemData::coefficient_code() const {
  return std::all_of(coefficients.begin(), coefficients.end(), [](auto const& c) { return c.is_code(); });
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
