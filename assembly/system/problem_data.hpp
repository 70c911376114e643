#pragma once

#include "assembly/expression/expression.hpp"
#include "assembly/problem.hpp"
#include "assembly/space/places.hpp"
#include "assembly/space/reference_element.hpp"
#include "assembly/system/linear_system.hpp"
#include "assembly/system/tensor.hpp"

#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace poisson::assembly {

/// A scalar function of x, y, z, given as an expression; a constant one is evaluated only once. `key` is the key path for errors.
class Function {
public:
  Function(std::string const& text, std::string const& key, ExpressionNames const& names = {});
  [[nodiscard]] bool is_constant() const { return constant_.has_value(); }
  [[nodiscard]] std::string const& key() const { return expression_.key(); }
  [[nodiscard]] std::string const& text() const { return expression_.text(); }
  [[nodiscard]] ExpressionCode const& code() const { return expression_.code(); }
  [[nodiscard]] bool is_code() const { return expression_.is_code(); }
  /// Whether the expression has operators whose values jump, or functions from files.
  [[nodiscard]] bool can_jump() const;
  [[nodiscard]] double operator()(Point3 const& x) const { return constant_ ? *constant_ : expression_(x[0], x[1], x[2]); }
  /// The value at x. Throws InputError with expression, point and value when it is not finite; `what` starts the message.
  [[nodiscard]] double finite(Point3 const& x, char const* what) const;

private:
  Expression expression_;
  std::optional<double> constant_;
};

/// Names the exact solution in messages of Function::finite.
inline constexpr char const* exact_name = "the exact solution";

/// k of one material: one component, three (a diagonal tensor, or values along the axes of a frame), or the six of a tensor.
struct Coefficient {
  std::vector<Function> components;
  std::optional<std::array<double, 9>> frame;  ///< the rotation of the axes
  std::string key;
  [[nodiscard]] bool is_constant() const;
  [[nodiscard]] bool is_diagonal() const { return components.size() < 6 && !frame; }
  /// Whether code says it all: it uses no fields. is_diagonal_code: it is diagonal, too.
  [[nodiscard]] bool is_code() const;
  [[nodiscard]] bool is_diagonal_code() const { return is_diagonal() && is_code(); }
  /// The code of one component, of three, or of the entries of a tensor (Tensor::entries). Precondition: is_code().
  [[nodiscard]] std::vector<ExpressionCode> codes() const;
  /// Whether an expression of it can jump.
  [[nodiscard]] bool can_jump() const;
  /// The tensor at x. Throws InputError with point, value and material when it is not positive definite and finite.
  [[nodiscard]] Tensor operator()(Point3 const& x, unsigned material) const;
  /// An entry of that tensor. Throws as that does where e is 0; others are not checked.
  [[nodiscard]] double entry(Point3 const& x, unsigned material, std::size_t e) const;
  /// The tensor at a point x that may lie on the surface of a cell, seen from this cell, which has its middle at `middle`: k may
  /// jump from cell to cell, and at x itself an expression has the value of one side only. Throws InputError with point, value and
  /// material when it is not positive definite and finite.
  [[nodiscard]] Tensor seen_from(Point3 const& middle, Point3 const& x, unsigned material) const;
};

/// A boundary condition, ready to be evaluated: see BoundaryCondition.
struct BoundaryData {
  BoundaryType type;
  Function value, alpha;
  std::vector<unsigned> sides{};                ///< periodic only: the ids of the two boundaries
  std::optional<std::array<double, 12>> map{};  ///< see BoundaryCondition
  [[nodiscard]] bool is_natural() const { return type == BoundaryType::neumann || type == BoundaryType::robin; }
};

/// A specification that was checked against the ids of a mesh, ready to be evaluated.
struct ProblemData {
  /// Throws InputError for wrong expressions, a wrong order, names that there are not, and boundary or material ids of the mesh
  /// without a condition or a coefficient; not for the latter unless the ids are `final`.
  ProblemData(ProblemSpec const& spec, PlaceNames const& names, bool final = true);

  [[nodiscard]] Coefficient const& coefficient(unsigned material) const { return coefficients[coefficient_of.at(material)]; }
  /// f in one material.
  [[nodiscard]] Function const& source(unsigned material) const {
    return sources.size() == 1 ? sources[0] : sources[source_of.at(material)];
  }
  /// Whether f is the same expression in all materials, and whether it is constant in each.
  [[nodiscard]] bool one_source() const { return sources.size() == 1; }
  /// Whether code says all of f: it uses no fields.
  [[nodiscard]] bool source_code() const;
  [[nodiscard]] bool constant_source() const;
  /// f of each of these materials, where it is constant, and finite, in all of them; else nothing.
  [[nodiscard]] std::vector<double> constant_sources(std::set<unsigned> const& materials) const;
  /// Multiplies f.
  void scale_source(double factor);
  [[nodiscard]] BoundaryData const& boundary_at(unsigned id) const { return boundary[boundary_of.at(id)]; }
  /// The condition on a surface inside the mesh; null: it has none.
  [[nodiscard]] BoundaryData const* inner_at(unsigned id) const {
    auto const found = inner_of.find(id);
    return found == inner_of.end() ? nullptr : &boundary[found->second];
  }
  /// The ids of surfaces inside the mesh that have a condition.
  [[nodiscard]] std::set<unsigned> conditioned_surfaces() const;
  [[nodiscard]] bool has_periodic_boundaries() const;
  [[nodiscard]] bool constant_coefficient() const;
  /// Whether k is so in all materials (Coefficient).
  [[nodiscard]] bool coefficient_code() const;
  [[nodiscard]] bool diagonal_code() const;
  /// 1, 3, or 6 where some material has a full tensor.
  [[nodiscard]] int coefficient_components() const;

  std::vector<Coefficient> coefficients;
  std::map<unsigned, std::size_t> coefficient_of;  ///< by material id
  std::vector<Function> sources;                   ///< f
  std::map<unsigned, std::size_t> source_of;       ///< by material id
  PointLoads point_loads;                          ///< added when there is a space
  std::vector<BoundaryData> boundary;
  std::map<unsigned, std::size_t> boundary_of;  ///< by boundary id
  std::map<unsigned, std::size_t> inner_of;     ///< by the id of a surface inside the mesh: of those that have a condition
  std::optional<Function> exact;

private:
  ExpressionNames names_;
};

/// Throws InputError: alpha of a Robin condition is not finite, or negative, at x.
[[noreturn]] void refuse_alpha(Function const& alpha, Point3 const& x);

/// "(0.5, 0, 1)"
[[nodiscard]] std::string to_text(Point3 const& x);
/// The shortest decimal number that reads back as the same double; or, with so many digits at most.
[[nodiscard]] std::string to_text(double x);
[[nodiscard]] std::string to_text(double x, int digits);

}  // namespace poisson::assembly
