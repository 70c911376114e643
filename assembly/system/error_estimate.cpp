#include "assembly/system/error_estimate.hpp"

#include "assembly/parallel.hpp"
#include "assembly/system/boundary_flux.hpp"
#include "assembly/system/equilibrated_flux.hpp"
#include "assembly/system/estimate_cells.hpp"
#include "assembly/system/evaluation.hpp"
#include "assembly/system/integrals.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

namespace poisson::assembly {
namespace {

constexpr std::int64_t items_per_part = 256;

/// The polynomials of order p + 1 in each direction that vanish at the nodes of Q_p: products of the p + 1 functions of these nodes
/// and of b(t) = prod (t - t_i) in each direction, but for those without b.
class Bubbles {
public:
  explicit Bubbles(ReferenceElement const& element) : p_(element.order), nodes_(element.nodes) {
    int const n = p_ + 2;
    for (int k = 0; k < n; ++k)
      for (int j = 0; j < n; ++j)
        for (int i = 0; i < n; ++i)
          if (i == p_ + 1 || j == p_ + 1 || k == p_ + 1)
            indices_.push_back({i, j, k});
    double largest = 0;
    for (int i = 0; i <= 64; ++i)
      if (double const t = i / 64., value = std::abs(product(t)); value > largest) {
        largest = value;
        middle_ = t;
      }
    scale_ = 1 / largest;
  }
  /// The nodes, and a further point, where these functions and b tell polynomials of order p + 1 apart.
  [[nodiscard]] std::vector<double> points_1d() const {
    std::vector<double> points = nodes_;
    points.push_back(middle_);
    return points;
  }
  /// Values at these points, (p + 2)^2 of a face, the lower direction fastest, become coefficients of the products of the
  /// functions.
  void to_coefficients(std::vector<double>& values) const {
    std::vector<double> const at_middle = lagrange_basis(nodes_, {middle_}).values;
    double const b = scale_ * product(middle_);
    std::size_t const n = nodes_.size() + 1;
    for (auto const& [step, other] : {std::pair{std::size_t{1}, n}, std::pair{n, std::size_t{1}}})
      for (std::size_t line = 0; line < n; ++line) {
        double* const first = values.data() + line * other;
        double& last = first[(n - 1) * step];
        for (std::size_t i = 0; i + 1 < n; ++i)
          last -= at_middle[i] * first[i * step];
        last /= b;
      }
  }
  /// The indices of the factors of a function.
  [[nodiscard]] std::array<int, 3> const& indices(std::size_t function) const { return indices_[function]; }
  [[nodiscard]] int size() const { return static_cast<int>(indices_.size()); }
  /// Whether a function is 0 on a face.
  [[nodiscard]] bool vanishes(int function, int face) const {
    return indices_[static_cast<std::size_t>(function)][static_cast<std::size_t>(face / 2)] != (face % 2 == 0 ? 0 : p_);
  }
  /// Values and reference gradients at points.
  [[nodiscard]] PointTables at(std::vector<Point3> const& points) const {
    PointTables result;
    result.n_points = static_cast<int>(points.size());
    result.n_functions = size();
    auto const m = static_cast<std::size_t>(size());
    result.values.resize(points.size() * m);
    result.gradients.resize(3 * points.size() * m);
    for (std::size_t q = 0; q < points.size(); ++q) {
      std::array<std::vector<double>, 3> value, slope;
      for (std::size_t d = 0; d < 3; ++d) {
        Basis1D const basis = lagrange_basis(nodes_, {points[q][d]});
        value[d] = basis.values;
        slope[d] = basis.derivatives;
        value[d].push_back(scale_ * product(points[q][d]));
        slope[d].push_back(scale_ * derivative(points[q][d]));
      }
      for (std::size_t i = 0; i < m; ++i) {
        std::array<std::size_t, 3> index{};
        for (std::size_t d = 0; d < 3; ++d)
          index[d] = static_cast<std::size_t>(indices_[i][d]);
        double const x = value[0][index[0]], y = value[1][index[1]], z = value[2][index[2]];
        result.values[q * m + i] = x * y * z;
        result.gradients[(3 * q + 0) * m + i] = slope[0][index[0]] * y * z;
        result.gradients[(3 * q + 1) * m + i] = x * slope[1][index[1]] * z;
        result.gradients[(3 * q + 2) * m + i] = x * y * slope[2][index[2]];
      }
    }
    return result;
  }

private:
  [[nodiscard]] double product(double t) const {
    double result = 1;
    for (double const node : nodes_)
      result *= t - node;
    return result;
  }
  [[nodiscard]] double derivative(double t) const {
    double sum = 0;
    for (std::size_t left_out = 0; left_out < nodes_.size(); ++left_out) {
      double term = 1;
      for (std::size_t i = 0; i < nodes_.size(); ++i)
        if (i != left_out)
          term *= t - nodes_[i];
      sum += term;
    }
    return sum;
  }

  int p_;
  std::vector<double> nodes_;
  std::vector<std::array<int, 3>> indices_;
  double scale_ = 1, middle_ = 0.5;
};

/// The same with the bubbles.
struct BubblesAt : TablesAt {
  BubblesAt(std::vector<Point3> of, Space const& space, ReferenceElement const& element, Bubbles const& bubbles)
      : TablesAt(std::move(of), space, element), bubble(bubbles.at(points)) {}
  PointTables bubble;
};

/// All tables of one element. Faces have one for the whole and one for each quarter, which a smaller cell may touch.
struct EstimateTables {
  EstimateTables(Space const& space, ReferenceElement const& element, int points)
      : rule(element.order, points),
        bubbles(element),
        volume(rule.volume_points, space, element, bubbles),
        collocation(lagrange_basis(rule.gauss, rule.gauss)),
        counterparts(rule) {
    set_products();
    for (int face = 0; face < 6; ++face)
      for (int quarter = 0; quarter <= whole_face; ++quarter)
        faces.emplace_back(points_on_face(rule, face, quarter), space, element, bubbles);
    for (int face = 0; face < 6; ++face) {
      std::vector<Point3> list;
      for (double const t : bubbles.points_1d())
        for (double const s : bubbles.points_1d()) {
          Point3 point{};
          point[static_cast<std::size_t>(face / 2)] = face % 2;
          point[face_direction(face, 0)] = s;
          point[face_direction(face, 1)] = t;
          list.push_back(point);
        }
      values_on_faces.emplace_back(std::move(list), space, element, bubbles);
    }
  }
  [[nodiscard]] BubblesAt const& face(int number, int quarter) const {
    return faces[static_cast<std::size_t>(5 * number + quarter)];
  }
  [[nodiscard]] int n_face_points() const { return static_cast<int>(rule.face_weights.size()); }
  /// A += int grad phi_i . D grad phi_j over the reference cell, with constant D: the lower triangle.
  void add_products(Tensor const& d, std::vector<double>& a) const {
    auto const m = static_cast<std::size_t>(bubbles.size());
    std::size_t const size = m * m;
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t j = 0; j <= i; ++j) {
        double const* const of = products.data() + i * m + j;
        a[i * m + j] += d.xx() * of[0] + d.yy() * of[size] + d.zz() * of[2 * size] + d.xy() * of[3 * size] + d.xz() * of[4 * size] +
                        d.yz() * of[5 * size];
      }
  }

  ReferenceElement rule;  ///< its points
  Bubbles bubbles;
  BubblesAt volume;
  Basis1D collocation;
  std::vector<BubblesAt> faces, values_on_faces;  ///< where Bubbles::to_coefficients takes values
  Counterparts counterparts;
  std::vector<double> products;  ///< int d_a phi_i d_b phi_j over the reference cell, (a, b) as in Tensor, both orders together

private:
  void set_products() {
    auto const m = static_cast<std::size_t>(bubbles.size());
    products.assign(6 * m * m, 0.0);
    constexpr std::array<std::array<std::size_t, 2>, 6> pairs{{{0, 0}, {1, 1}, {2, 2}, {0, 1}, {0, 2}, {1, 2}}};
    for (std::size_t q = 0; q < rule.weights.size(); ++q) {
      double const* const g = volume.bubble.gradients.data() + 3 * q * m;
      for (std::size_t e = 0; e < pairs.size(); ++e) {
        auto const [a, b] = pairs[e];
        double const weight = a == b ? rule.weights[q] / 2 : rule.weights[q];
        for (std::size_t i = 0; i < m; ++i)
          for (std::size_t j = 0; j <= i; ++j)
            products[(e * m + i) * m + j] += weight * (g[a * m + i] * g[b * m + j] + g[b * m + i] * g[a * m + j]);
      }
    }
  }
};

/// Of all faces inside the mesh, at the points of the first cell's face: dS times the jump (k grad u of the first cell less that of
/// the second) . n, n out of the first.
struct FaceJumps {
  HostVector<double> values;
};

/// What cells have together at their faces.
struct FaceData {
  FaceJumps of_u, of_dual;
  HostVector<double> share;                 ///< of a jump that goes to the first cell: its k over the sum of both
  HostVector<double> residual;              ///< int jump^2 h / (p (k_1 + k_2)) dS, for Estimator::residual
  std::vector<Counterpart const*> meeting;  ///< by face
};

/// By the number of a face between two cells: the surface with a condition that it is part of, by its id, or -1. Empty: there is no
/// such surface.
std::vector<std::int64_t> surfaces_of_faces(Space const& space, ProblemData const& data) {
  std::map<std::pair<std::int32_t, int>, unsigned> of_sides;
  for (InnerFace const& face : space.inner_faces)
    for (std::size_t side = 0; side < 2 && data.inner_at(face.id) != nullptr; ++side)
      of_sides[{face.cells[side], face.faces[side]}] = face.id;
  std::vector<std::int64_t> result;
  if (of_sides.empty())
    return result;
  result.resize(space.local.faces.size(), -1);
  for (std::size_t i = 0; i < result.size() - space.local.images.size(); ++i)
    if (auto const found = of_sides.find({space.local.faces[i].cells[0], space.local.faces[i].faces[0]}); found != of_sides.end())
      result[i] = found->second;
  return result;
}

/// The condition on a face between two cells, as surfaces_of_faces has it; null: there is none.
BoundaryData const* condition_on(ProblemData const& data, std::vector<std::int64_t> const& surfaces, std::int64_t face) {
  auto const at = static_cast<std::size_t>(face);
  return surfaces.empty() || surfaces[at] < 0 ? nullptr : data.inner_at(static_cast<unsigned>(surfaces[at]));
}

/// `of_problem`: how much of the problem's natural values the dual problem has.
FaceData evaluate_faces(Space const& space, EstimateTables const& tables, ProblemData const& data,
                        std::vector<std::int64_t> const& surfaces, std::span<double const> u, std::span<double const> dual,
                        double of_problem) {
  auto const n = static_cast<std::int64_t>(space.local.faces.size());
  std::int64_t const n_points = tables.n_face_points();
  FaceData result;
  result.of_u.values.resize(n * n_points);
  if (!dual.empty())
    result.of_dual.values.resize(n * n_points);
  result.share.resize(n);
  result.residual.resize(n);
  result.meeting.resize(static_cast<std::size_t>(n));
  struct State {
    EstimateCell first, second;
    FaceMatcher match;
  };
  parallel_for(
      n_parts(n, items_per_part),
      [&] {
        return State{EstimateCell(space, data), EstimateCell(space, data), FaceMatcher(space, tables.counterparts)};
      },
      [&](State& state, std::int64_t const p) {
        auto const [begin, end] = part(n, items_per_part, p);
        for (auto i = begin; i < end; ++i) {
          FaceOfTwoCells const& face = space.local.faces[static_cast<std::size_t>(i)];
          state.first.reset(face.cells[0]);
          state.second.reset(face.cells[1]);
          Counterpart const& meeting = *(result.meeting[static_cast<std::size_t>(i)] = &state.match(static_cast<std::size_t>(i)));
          BubblesAt const& here = tables.face(face.faces[0], whole_face);
          TablesAt const& there = tables.face(face.faces[1], meeting.quarter);
          double k_first = 0, k_second = 0, area = 0, squares = 0;
          BoundaryData const* const condition = condition_on(state.first.data, surfaces, i);
          if (condition != nullptr && !condition->is_natural()) {  // u is given there, and no flux
            result.residual[i] = 0;
            continue;
          }
          for (std::int64_t q = 0; q < n_points; ++q) {
            int const at = static_cast<int>(q), other = meeting.point[static_cast<std::size_t>(q)];
            auto const a = state.first.place(here, at);
            auto const b = state.second.place(there, other);
            Point3 const normal = EstimateCell::normal(a, face.faces[0]);
            Tensor const ka = state.first.k_on_surface(a.x), kb = state.second.k_on_surface(b.x);
            double const size = dot_product(normal, normal), weight = tables.rule.face_weights[static_cast<std::size_t>(q)];
            k_first += weight * dot_product(normal, ka * normal) / size;
            k_second += weight * dot_product(normal, kb * normal) / size;
            auto const jump = [&](std::span<double const> v) {
              Point3 const ga = ka * state.first.gradient(here, at, a, v), gb = kb * state.second.gradient(there, other, b, v);
              return dot_product(normal, {ga[0] - gb[0], ga[1] - gb[1], ga[2] - gb[2]});
            };
            double const enters = condition == nullptr ? 0 : std::sqrt(size) * condition->value.finite(a.x, "the boundary value");
            double const of_u = jump(u) - enters;
            result.of_u.values[i * n_points + q] = weight * of_u;
            if (!dual.empty())
              result.of_dual.values[i * n_points + q] = weight * (jump(dual) - of_problem * enters);
            area += weight * std::sqrt(size);
            squares += weight * of_u * of_u / std::sqrt(size);
          }
          result.share[i] = k_first / (k_first + k_second);
          result.residual[i] = squares * std::sqrt(area) / (space.order * (k_first + k_second));
        }
      });
  return result;
}

/// w / det cof^T k cof: int grad u . k grad v over a part of a cell, from reference gradients.
Tensor in_reference(EstimateCell::Place const& at, Tensor const& k, double weight) {
  std::array<Point3, 3> columns;
  for (std::size_t b = 0; b < 3; ++b)
    columns[b] = {at.cofactors[b], at.cofactors[3 + b], at.cofactors[6 + b]};
  double const factor = weight / at.determinant;
  std::array<Point3, 3> const kc{k * columns[0], k * columns[1], k * columns[2]};
  auto const entry = [&](std::size_t a, std::size_t b) { return factor * dot_product(columns[a], kc[b]); };
  return {{entry(0, 0), entry(1, 1), entry(2, 2), entry(0, 1), entry(0, 2), entry(1, 2)}};
}

/// The faces of every cell: those inside the mesh by number and side, and those on the boundary.
struct FacesOfCells {
  explicit FacesOfCells(Space const& space) : offsets(static_cast<std::size_t>(space.n_cells) + 1, 0), on_boundary(offsets) {
    auto const& faces = space.local.faces;
    for (FaceOfTwoCells const& face : faces)
      for (std::int32_t const cell : face.cells)
        ++offsets[static_cast<std::size_t>(cell) + 1];
    std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
    list.resize(static_cast<std::size_t>(offsets.back()));
    std::vector<std::int64_t> next(offsets.begin(), offsets.end() - 1);
    for (std::size_t i = 0; i < faces.size(); ++i)
      for (int side = 0; side < 2; ++side)
        list[static_cast<std::size_t>(next[static_cast<std::size_t>(faces[i].cells[static_cast<std::size_t>(side)])]++)] = {
            static_cast<std::int64_t>(i), side};
    for (BoundaryFace const& face : space.boundary_faces)  // by cell
      ++on_boundary[static_cast<std::size_t>(face.cell) + 1];
    std::partial_sum(on_boundary.begin(), on_boundary.end(), on_boundary.begin());
  }
  std::vector<std::int64_t> offsets, on_boundary;
  std::vector<std::pair<std::int64_t, int>> list;
};

}  // namespace

namespace {

/// What data change a target by, J(u) - J(u_h), beyond the residual that is orthogonal to z_h:
///   D(z_h) = r(z_h) - r_h(z_h) - int_D (g - u_h) (k dz_h/dn - d),
/// with the residual r(z) = F(z) - a(u_h, z) by a finer rule, r_h(z) by that of the assembly, and g on Dirichlet boundaries D, on
/// which the target has the density d.
class ErrorOfData {
public:
  ErrorOfData(Space const& space, ReferenceElement const& element, EstimateTables const& tables)
      : fine_(tables), coarse_(element), volume_(element.volume_points, space, element) {
    for (auto const& points : element.face_points)
      faces_.emplace_back(points, space, element);
  }
  [[nodiscard]] double of_cell(EstimateCell const& cell, std::span<double const> u, std::span<double const> z) const {
    return residual(cell, fine_.volume, fine_.rule.weights, u, z) - residual(cell, volume_, coarse_.weights, u, z);
  }
  /// `density`: of the target on this boundary.
  [[nodiscard]] double of_face(EstimateCell const& cell, int face, BoundaryData const& condition, double density,
                               std::span<double const> u, std::span<double const> z) const {
    auto const at = static_cast<std::size_t>(face);
    TablesAt const& fine = fine_.face(face, whole_face);
    if (condition.is_natural())
      return natural(cell, fine, face, fine_.rule.face_weights, condition, u, z) -
             natural(cell, faces_[at], face, coarse_.face_weights, condition, u, z);
    if (condition.type != BoundaryType::dirichlet)
      return 0;
    double sum = 0;
    for (std::size_t i = 0; i < fine_.rule.face_weights.size(); ++i) {
      int const q = static_cast<int>(i);
      auto const place = cell.place(fine, q);
      double const missing = condition.value.finite(place.x, "the Dirichlet value") - cell.value(fine, q, u);
      Point3 const normal = EstimateCell::normal(place, face);
      sum += fine_.rule.face_weights[i] * missing *
             (density * std::sqrt(dot_product(normal, normal)) -
              dot_product(normal, cell.k_on_surface(place.x) * cell.gradient(fine, q, place, z)));
    }
    return sum;
  }

  /// What the target changes by where a face moves to the surface that it stands for, by delta along its normal n (Hadamard's
  /// formula; Allaire, Conception optimale de structures, 2007, chapter 6). With the density d of the target, q = k grad, and
  /// without what the target has on boundaries:
  ///   where u = g:  int delta (d u + f z) + int dz.q.n (delta du/dn - (g(x + delta n) - g(x))),
  ///   elsewhere:    int delta (d u + f z - (grad u . q z - du.q.n dz/dn)) + int (g - alpha u) z dS of the area that is missing,
  /// and of the energy also int delta (grad u . q u) / 2, and where u = g less the second integral with u in place of z.
  [[nodiscard]] double of_shape(EstimateCell const& cell, int face, LocalCells::SurfaceGap const& gap,
                                BoundaryData const& condition, std::span<double const> u, std::span<double const> z,
                                LoadOfEstimate const& of_dual, LoadOfEstimate::OfPart const& on_boundary) const {
    bool const is_given = condition.type == BoundaryType::dirichlet;
    if ((gap.volume == 0 && gap.area == 0) || !(is_given || condition.is_natural()))
      return 0;
    TablesAt const& tables = fine_.face(face, whole_face);
    Function const& source = cell.data.source(cell.material);
    LoadOfEstimate::OfPart const in_material = LoadOfEstimate::in(of_dual.in_material, cell.material);
    struct At {
      EstimateCell::Place place;
      Point3 normal;
      double size;
    };
    std::vector<At> points;
    double area = 0;
    for (std::size_t i = 0; i < fine_.rule.face_weights.size(); ++i) {
      auto const place = cell.place(tables, static_cast<int>(i));
      Point3 normal = EstimateCell::normal(place, face);
      double const size = std::sqrt(dot_product(normal, normal));
      for (double& component : normal)
        component /= size;
      points.push_back({place, normal, fine_.rule.face_weights[i] * size});
      area += points.back().size;
    }
    double const delta = gap.volume / area;
    double sum = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
      auto const& [place, n, size] = points[i];
      int const q = static_cast<int>(i);
      Point3 const grad_u = cell.gradient(tables, q, place, u), grad_z = cell.gradient(tables, q, place, z);
      Tensor const k = cell.k_on_surface(place.x);
      Point3 const flux_u = k * grad_u, flux_z = k * grad_z;
      double const u_here = cell.value(tables, q, u), z_here = cell.value(tables, q, z);
      sum += size * delta *
             (in_material.density * u_here + in_material.of_size + source.finite(place.x, "the source") * z_here +
              of_dual.of_problem * dot_product(grad_u, flux_u) / 2);
      sum += size * gap.area / area * (on_boundary.density * u_here + on_boundary.of_size);
      if (is_given) {
        Point3 moved = place.x;
        for (std::size_t d = 0; d < 3; ++d)
          moved[d] += delta * n[d];
        double const rises = condition.value(moved) - condition.value(place.x);
        double const w = delta * dot_product(n, grad_u) - (std::isfinite(rises) ? rises : 0);
        sum += size * w * (dot_product(n, flux_z) - of_dual.of_problem * dot_product(n, flux_u));
        sum += size * on_boundary.density * (std::isfinite(rises) ? rises : 0);
      } else {
        double const alpha = condition.type == BoundaryType::robin ? condition.alpha.finite(place.x, "alpha") : 0;
        double const enters = condition.value.finite(place.x, "the boundary value") - (alpha == 0 ? 0 : alpha * u_here);
        sum -= size * delta * (dot_product(grad_u, flux_z) - dot_product(n, flux_u) * dot_product(n, grad_z));
        sum += size * (gap.area / area * enters * z_here + delta * on_boundary.density * dot_product(n, grad_u));
      }
    }
    return sum;
  }

private:
  static double residual(EstimateCell const& cell, TablesAt const& tables, std::vector<double> const& weights,
                         std::span<double const> u, std::span<double const> z) {
    Function const& source = cell.data.source(cell.material);
    double sum = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      int const q = static_cast<int>(i);
      auto const at = cell.place(tables, q);
      sum += weights[i] * at.determinant *
             (source.finite(at.x, "the source") * cell.value(tables, q, z) -
              dot_product(cell.gradient(tables, q, at, z), cell.k_inside(at.x) * cell.gradient(tables, q, at, u)));
    }
    return sum;
  }
  static double natural(EstimateCell const& cell, TablesAt const& tables, int face, std::vector<double> const& weights,
                        BoundaryData const& condition, std::span<double const> u, std::span<double const> z) {
    double sum = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      int const q = static_cast<int>(i);
      auto const place = cell.place(tables, q);
      Point3 const normal = EstimateCell::normal(place, face);
      double const alpha = condition.type == BoundaryType::robin ? condition.alpha.finite(place.x, "alpha") : 0;
      sum += weights[i] * std::sqrt(dot_product(normal, normal)) * cell.value(tables, q, z) *
             (condition.value.finite(place.x, "the boundary value") - (alpha == 0 ? 0 : alpha * cell.value(tables, q, u)));
    }
    return sum;
  }

  EstimateTables const& fine_;
  ReferenceElement const& coarse_;
  TablesAt volume_;
  std::vector<TablesAt> faces_;
};

}  // namespace

ErrorIndicators estimate_error(Space const& space, ReferenceElement const& element, ProblemData const& data, Estimator estimator,
                               std::span<double const> u, std::span<double const> dual, LoadOfEstimate const& of_dual) {
  if (estimator == Estimator::equilibrated) {
    assert(dual.empty());
    return equilibrated_flux(space, element, data, u).bound;
  }
  // The flux of a linear function in reference coordinates has the degree 2 s where the map of a cell has the degree s.
  int const s = space.isoparametric ? std::max(space.order, space.map_order) : 1;
  bool const is_curved = s > 1 && element.n_gauss() > element.order + 1;
  EstimateTables const tables(space, element, std::max({element.order + 2, element.n_gauss(), is_curved ? 2 * s + 1 : 0}));
  std::vector<std::int64_t> const surfaces = surfaces_of_faces(space, data);
  FaceData const faces = evaluate_faces(space, tables, data, surfaces, u, dual, of_dual.of_problem);
  FacesOfCells const of_cells(space);
  bool const has_dual = !dual.empty();
  std::optional<ErrorOfData> of_data;
  if (has_dual)
    of_data.emplace(space, element, tables);
  bool const solves = estimator == Estimator::local_problems || has_dual;
  auto const m = static_cast<std::size_t>(tables.bubbles.size());
  int const n_points = tables.volume.shape.n_points, n_1d = static_cast<int>(tables.rule.gauss.size());
  auto const n_face_points = static_cast<std::int64_t>(tables.n_face_points());
  ErrorIndicators result;
  result.squares.resize(space.n_cells);
  if (has_dual) {
    result.signed_.resize(space.n_cells);
    result.weights.resize(space.n_cells);
    if (!space.local.gaps.empty())
      result.of_shape.resize(space.n_cells, 0.0);
    // With order 1 it is no larger than what the products of errors estimate, and less sure.
    if (!of_dual.flux.empty() && space.order > 1)
      result.of_edges.resize(space.n_cells, 0.0);
  }

  struct State {
    explicit State(EstimateCell of) : cell(std::move(of)) {}
    EstimateCell cell;
    std::vector<double> a, scaled, r, r_dual, lost, on_face;
    std::vector<double> given;                              // the error where u is prescribed; NaN: not prescribed
    std::array<std::vector<double>, 3> flux, flux_of_dual;  // det J J^-1 k grad at the points
    std::vector<std::pair<int, double>> held;               // faces where u is given, and how much of their flux the target has
    std::vector<double> error;                              // by bubbles
    std::vector<EstimateCell::Place> places;
    std::vector<Tensor> k;
  };
  auto const make_state = [&] {
    State state(EstimateCell(space, data));
    state.a.resize(m * m);
    state.scaled.resize(3 * m);
    state.r.resize(m);
    state.r_dual.resize(m);
    for (auto* const list : {&state.flux, &state.flux_of_dual})
      for (auto& component : *list)
        component.resize(static_cast<std::size_t>(n_points));
    return state;
  };
  // What the error changes of the part of a flux that its lift leaves out: the flux through a boundary has the weight 1 up to the
  // edge where it meets another one with given u, and the lift has a mean of both there. So int k de/dn times the difference is
  // missing, which is of the order p + 1. Adds that of a cell.
  auto const at_edges = [&](State& state) {
    EstimateCell const& cell = state.cell;
    double sum = 0;
    for (auto const& [face, factor] : state.held) {
      double largest = 0;
      for (int const node : element.face_nodes(face))
        largest = std::max(largest, std::abs(factor - dual[static_cast<std::size_t>(cell.dofs[static_cast<std::size_t>(node)])]));
      constexpr double rounding = 1e-12;
      if (!(largest > rounding * std::max(std::abs(factor), 1e-300)))
        continue;
      if (state.error.empty()) {  // L^-T of what is solved forward; given ones are known
        state.error.resize(m);
        for (std::size_t i = 0; i < m; ++i)
          state.error[i] = state.r[i] - state.lost[i];
        SmallSolver::backward(state.a, m, state.error);
        for (std::size_t i = 0; i < m; ++i)
          state.error[i] += std::isnan(state.given[i]) ? 0 : state.given[i];
      }
      BubblesAt const& here = tables.face(face, whole_face);
      for (std::int64_t q = 0; q < n_face_points; ++q) {
        int const at = static_cast<int>(q);
        auto const place = cell.place(here, at);
        Point3 g{};
        for (std::size_t d = 0; d < 3; ++d)
          for (std::size_t i = 0; i < m; ++i)
            g[d] += here.bubble.gradients[(3 * static_cast<std::size_t>(q) + d) * m + i] * state.error[i];
        sum -= tables.rule.face_weights[static_cast<std::size_t>(q)] * (factor - cell.value(here, at, dual)) *
               dot_product(EstimateCell::normal(place, face), cell.k_on_surface(place.x) * EstimateCell::real(place, g));
      }
    }
    return sum;
  };
  // det (l + div k grad v) at point q, from the flux at all points.
  auto const strong = [&](std::array<std::vector<double>, 3> const& flux, int q) {
    double sum = 0;
    std::array<int, 3> const stride{1, n_1d, n_1d * n_1d};
    for (std::size_t d = 0; d < 3; ++d) {
      int const i = q / stride[d] % n_1d, first = q - i * stride[d];
      for (int j = 0; j < n_1d; ++j)
        sum += tables.collocation.derivatives[static_cast<std::size_t>(i * n_1d + j)] *
               flux[d][static_cast<std::size_t>(first + j * stride[d])];
    }
    return sum;
  };

  parallel_for(n_parts(space.n_cells, items_per_part), make_state, [&](State& state, std::int64_t const p) {
    auto const [begin, end] = part(space.n_cells, items_per_part, p);
    EstimateCell& cell = state.cell;
    for (auto c = begin; c < end; ++c) {
      cell.reset(c);
      state.places.clear();
      state.k.clear();
      double volume = 0, smallest_k = std::numeric_limits<double>::infinity();
      for (int q = 0; q < n_points; ++q) {
        auto const at = cell.place(tables.volume, q);
        Tensor const k = cell.k_inside(at.x);
        smallest_k = std::min({smallest_k, k.xx(), k.yy(), k.zz()});
        volume += tables.rule.weights[static_cast<std::size_t>(q)] * at.determinant;
        auto const set_flux = [&](std::span<double const> v, std::array<std::vector<double>, 3>& out) {
          Point3 const flux = k * cell.gradient(tables.volume, q, at, v);
          for (std::size_t d = 0; d < 3; ++d)
            out[d][static_cast<std::size_t>(q)] =
                at.cofactors[d] * flux[0] + at.cofactors[3 + d] * flux[1] + at.cofactors[6 + d] * flux[2];
        };
        set_flux(u, state.flux);
        if (has_dual)
          set_flux(dual, state.flux_of_dual);
        state.places.push_back(at);
        state.k.push_back(k);
      }
      std::fill(state.r.begin(), state.r.end(), 0.0);
      std::fill(state.r_dual.begin(), state.r_dual.end(), 0.0);
      std::fill(state.a.begin(), state.a.end(), 0.0);
      state.given.assign(m, std::numeric_limits<double>::quiet_NaN());
      state.held.clear();
      state.error.clear();
      auto const hold = [&](int face, unsigned boundary) {
        if (!of_dual.flux.empty())
          state.held.emplace_back(face, of_dual.times_flux(boundary));
      };
      bool const has_one_matrix = cell.is_affine() && cell.has_constant_k();  // from those of the reference cell
      auto const add = [&](std::vector<double>& r, PointTables const& bubble, int q, double value) {
        double const* const row = bubble.values.data() + static_cast<std::size_t>(q) * m;
        for (std::size_t i = 0; i < m; ++i)
          r[i] += value * row[i];
      };
      Function const& source = cell.data.source(cell.material);
      double const density = LoadOfEstimate::in(of_dual.in_material, cell.material).density;
      double explicit_square = 0;
      for (int q = 0; q < n_points; ++q) {
        auto const& at = state.places[static_cast<std::size_t>(q)];
        double const weight = tables.rule.weights[static_cast<std::size_t>(q)];
        double const f = source.finite(at.x, "the source");
        double const r = at.determinant * f + strong(state.flux, q);
        explicit_square += weight * r * r / at.determinant;
        if (!solves)
          continue;
        add(state.r, tables.volume.bubble, q, weight * r);
        if (has_dual)
          add(state.r_dual, tables.volume.bubble, q,
              weight * (at.determinant * (of_dual.of_problem * f + density) + strong(state.flux_of_dual, q)));
        if (!has_one_matrix) {
          Tensor const d = in_reference(at, state.k[static_cast<std::size_t>(q)], weight);
          double const* const g = tables.volume.bubble.gradients.data() + 3 * static_cast<std::size_t>(q) * m;
          for (std::size_t i = 0; i < m; ++i) {
            Point3 const scaled = d * Point3{g[i], g[m + i], g[2 * m + i]};
            for (std::size_t a = 0; a < 3; ++a)
              state.scaled[a * m + i] = scaled[a];
          }
          for (std::size_t i = 0; i < m; ++i)
            for (std::size_t j = 0; j <= i; ++j)
              state.a[i * m + j] +=
                  g[i] * state.scaled[j] + g[m + i] * state.scaled[m + j] + g[2 * m + i] * state.scaled[2 * m + j];
        }
      }
      if (solves && has_one_matrix)
        tables.add_products(in_reference(state.places[0], state.k[0], 1), state.a);
      // Where u is given on a face, the error there is known.
      auto const set_given = [&](int face, BoundaryData const& condition) {
        TablesAt const& at_face = tables.values_on_faces[static_cast<std::size_t>(face)];
        state.on_face.clear();
        for (int q = 0; q < at_face.shape.n_points; ++q)
          state.on_face.push_back(condition.value.finite(cell.place(at_face, q).x, "the Dirichlet value") -
                                  cell.value(at_face, q, u));
        tables.bubbles.to_coefficients(state.on_face);
        std::size_t const n = static_cast<std::size_t>(element.order) + 2;
        for (std::size_t b = 0; b < m; ++b)
          if (!tables.bubbles.vanishes(static_cast<int>(b), face)) {
            auto const& index = tables.bubbles.indices(b);
            state.given[b] = state.on_face[static_cast<std::size_t>(index[face_direction(face, 1)]) * n +
                                           static_cast<std::size_t>(index[face_direction(face, 0)])];
          }
      };
      double const h = std::cbrt(volume);
      double error_of_data = has_dual ? of_data->of_cell(cell, u, dual) : 0;
      double square = h * h / (space.order * space.order * smallest_k) * explicit_square;
      for (auto i = of_cells.offsets[static_cast<std::size_t>(c)]; i < of_cells.offsets[static_cast<std::size_t>(c) + 1]; ++i) {
        auto const [face, side] = of_cells.list[static_cast<std::size_t>(i)];
        square += faces.residual[face] / 2;
        if (!solves)
          continue;
        FaceOfTwoCells const& pair = space.local.faces[static_cast<std::size_t>(face)];
        if (BoundaryData const* const condition = condition_on(cell.data, surfaces, face); condition != nullptr) {
          int const own = pair.faces[static_cast<std::size_t>(side)];
          if (has_dual && (side == 0 || !condition->is_natural()))
            error_of_data += of_data->of_face(cell, own, *condition, 0, u, dual);
          if (!condition->is_natural()) {
            set_given(own, *condition);
            hold(own, static_cast<unsigned>(surfaces[static_cast<std::size_t>(face)]));
            continue;
          }
        }
        Counterpart const& meeting = *faces.meeting[static_cast<std::size_t>(face)];
        BubblesAt const& here = side == 0 ? tables.face(pair.faces[0], whole_face) : tables.face(pair.faces[1], meeting.quarter);
        double const share = side == 0 ? faces.share[face] : 1 - faces.share[face];
        for (std::int64_t q = 0; q < n_face_points; ++q) {
          int const at = side == 0 ? static_cast<int>(q) : meeting.point[static_cast<std::size_t>(q)];
          add(state.r, here.bubble, at, -share * faces.of_u.values[face * n_face_points + q]);
          if (has_dual)
            add(state.r_dual, here.bubble, at, -share * faces.of_dual.values[face * n_face_points + q]);
        }
      }
      for (auto i = of_cells.on_boundary[static_cast<std::size_t>(c)]; i < of_cells.on_boundary[static_cast<std::size_t>(c) + 1];
           ++i) {
        BoundaryFace const& face = space.boundary_faces[static_cast<std::size_t>(i)];
        BoundaryData const& condition = cell.data.boundary_at(face.boundary_id);
        LoadOfEstimate::OfPart const on_boundary = LoadOfEstimate::in(of_dual.on_boundary, face.boundary_id);
        if (has_dual)
          error_of_data += of_data->of_face(cell, face.face, condition, on_boundary.density, u, dual);
        if (has_dual && !space.local.gaps.empty())
          result.of_shape[c] += of_data->of_shape(cell, face.face, space.local.gaps[static_cast<std::size_t>(i)], condition, u,
                                                  dual, of_dual, on_boundary);
        if (condition.type == BoundaryType::dirichlet) {
          set_given(face.face, condition);
          hold(face.face, face.boundary_id);
          continue;
        }
        if (!condition.is_natural())
          continue;
        BubblesAt const& here = tables.face(face.face, whole_face);
        double area = 0, squares = 0, k_normal = 0;
        for (std::int64_t q = 0; q < n_face_points; ++q) {
          int const at = static_cast<int>(q);
          auto const place = cell.place(here, at);
          Point3 const normal = EstimateCell::normal(place, face.face);
          double const size = std::sqrt(dot_product(normal, normal)),
                       weight = tables.rule.face_weights[static_cast<std::size_t>(q)];
          Tensor const k = cell.k_on_surface(place.x);
          double const alpha = condition.type == BoundaryType::robin ? condition.alpha.finite(place.x, "alpha") : 0;
          double const g = condition.value.finite(place.x, "the boundary value");
          auto const left = [&](std::span<double const> v, double value) {  // k dv/dn + alpha v - value, times dS
            return dot_product(normal, k * cell.gradient(here, at, place, v)) + size * (alpha * cell.value(here, at, v) - value);
          };
          double const of_u = left(u, g);
          area += weight * size;
          squares += weight * of_u * of_u / size;
          k_normal += weight * dot_product(normal, k * normal) / (size * size);
          if (!solves)
            continue;
          add(state.r, here.bubble, at, -weight * of_u);
          if (has_dual)
            add(state.r_dual, here.bubble, at,
                -weight * left(dual, of_dual.of_problem * g + of_dual.times_alpha(face.boundary_id) * alpha + on_boundary.density));
        }
        square += squares * std::sqrt(area) / (space.order * k_normal);
      }
      for (auto const& [point, factor] : of_dual.points)
        if (has_dual && point.cell == c)
          add(state.r_dual, tables.bubbles.at({point.reference}), 0, factor);
      if (solves) {
        // The error where it is known goes to the right-hand side, and its rows become those of the identity.
        auto const entry = [&](std::size_t i, std::size_t k) -> double& { return state.a[std::max(i, k) * m + std::min(i, k)]; };
        state.lost.assign(m, 0.0);  // what given ones take off the right-hand side
        double of_given = 0;
        for (std::size_t k = 0; k < m; ++k) {
          if (std::isnan(state.given[k]))
            continue;
          for (std::size_t i = 0; i < m; ++i)
            if (std::isnan(state.given[i]))
              state.lost[i] += entry(i, k) * state.given[k];
            else
              of_given += state.given[i] * entry(i, k) * state.given[k];
        }
        for (std::size_t i = 0; i < m; ++i) {
          if (std::isnan(state.given[i]))
            continue;
          state.r[i] = state.r_dual[i] = 0;
          for (std::size_t k = 0; k < m; ++k)
            entry(i, k) = 0;
          entry(i, i) = 1;
        }
        SmallSolver::factor(state.a, m);
        SmallSolver::forward(state.a, m, state.r);
        SmallSolver::forward(state.a, m, state.lost);
        // With e = A^-1 (r - l) and given ones g: e A e + 2 e l + g A g.
        double const solved = ordered_product(state.r, state.r) - ordered_product(state.lost, state.lost) + of_given;
        if (estimator == Estimator::local_problems)
          square = std::max(solved, 0.0);
        if (has_dual) {
          if (!result.of_edges.empty())
            result.of_edges[c] = at_edges(state);
          SmallSolver::forward(state.a, m, state.r_dual);
          result.signed_[c] = ordered_product(state.r, state.r_dual) + error_of_data;
          result.weights[c] =
              std::sqrt(std::max(solved, 0.0) * ordered_product(state.r_dual, state.r_dual)) + std::abs(error_of_data);
          for (auto const* const apart : {&result.of_shape, &result.of_edges})
            if (!apart->empty())
              result.weights[c] += std::abs((*apart)[c]);
        }
      }
      result.squares[c] = square;
    }
  });
  return result;
}

double energy_of_error(Space const& space, ReferenceElement const& element, ProblemData const& data, std::span<double const> u) {
  EstimateTables const tables(space, element, points_of_exact(space));
  int const n_points = tables.volume.shape.n_points, n_1d = static_cast<int>(tables.rule.gauss.size());
  struct State {
    EstimateCell cell;
    Function exact;
    std::vector<double> values;
  };
  std::vector<double> sums(static_cast<std::size_t>(n_parts(space.n_cells, items_per_part)), 0);
  parallel_for(
      std::ssize(sums),
      [&] {
        return State{EstimateCell(space, data), *data.exact, std::vector<double>(static_cast<std::size_t>(n_points))};
      },
      [&](State& state, std::int64_t const p) {
        auto const [begin, end] = part(space.n_cells, items_per_part, p);
        for (auto c = begin; c < end; ++c) {
          state.cell.reset(c);
          for (int q = 0; q < n_points; ++q)
            state.values[static_cast<std::size_t>(q)] = state.exact.finite(state.cell.place(tables.volume, q).x, exact_name);
          for (int q = 0; q < n_points; ++q) {
            auto const at = state.cell.place(tables.volume, q);
            Point3 g{};  // of the polynomial through the values
            std::array<int, 3> const stride{1, n_1d, n_1d * n_1d};
            for (std::size_t d = 0; d < 3; ++d) {
              int const i = q / stride[d] % n_1d, first = q - i * stride[d];
              for (int j = 0; j < n_1d; ++j)
                g[d] += tables.collocation.derivatives[static_cast<std::size_t>(i * n_1d + j)] *
                        state.values[static_cast<std::size_t>(first + j * stride[d])];
            }
            Point3 e = EstimateCell::real(at, g), const_u = state.cell.gradient(tables.volume, q, at, u);
            for (std::size_t d = 0; d < 3; ++d)
              e[d] -= const_u[d];
            sums[static_cast<std::size_t>(p)] +=
                tables.rule.weights[static_cast<std::size_t>(q)] * at.determinant * dot_product(e, state.cell.k_inside(at.x) * e);
          }
        }
      });
  return std::sqrt(std::accumulate(sums.begin(), sums.end(), 0.0));
}

HostVector<double> load_vector(Space const& space, ReferenceElement const& element, ProblemData const& data,
                               LoadOfEstimate const& load, std::span<double const> lifted) {
  HostVector<double> result;
  result.resize(space.n_dofs, 0.0);
  HostVector<double> zero;
  zero.resize(space.n_dofs, 0.0);
  ProblemData without_points = data;
  without_points.point_loads = {};
  auto const at_zero = solution_residual(space, element, without_points, zero, {}).values;  // f and g
  for (std::int64_t i = 0; i < space.n_dofs; ++i)
    result[i] = load.of_problem * at_zero[i];
  if (!lifted.empty()) {
    auto const lift = solution_residual(space, element, without_points, lifted, {}).values;
    for (std::int64_t i = 0; i < space.n_dofs; ++i)
      result[i] += lift[i] - at_zero[i];
  }
  if (!load.in_material.empty()) {
    auto const integrals =
        basis_integrals(space, element, [&](unsigned material) { return LoadOfEstimate::in(load.in_material, material).density; });
    for (std::int64_t i = 0; i < space.n_dofs; ++i)
      result[i] += integrals[i];
  }
  EstimateCell cell(space, data);
  if (!load.robin.empty() || !load.on_boundary.empty()) {
    std::vector<TablesAt> tables;
    for (std::vector<Point3> const& points : element.face_points)
      tables.emplace_back(points, space, element);
    for (BoundaryFace const& face : space.boundary_faces) {
      double const density = LoadOfEstimate::in(load.on_boundary, face.boundary_id).density,
                   times_alpha = load.times_alpha(face.boundary_id);
      if (density == 0 && times_alpha == 0)
        continue;
      cell.reset(face.cell);
      TablesAt const& at_face = tables[static_cast<std::size_t>(face.face)];
      for (std::size_t q = 0; q < element.face_weights.size(); ++q) {
        auto const place = cell.place(at_face, static_cast<int>(q));
        Point3 const normal = EstimateCell::normal(place, face.face);
        double const alpha =
            times_alpha == 0 ? 0 : times_alpha * cell.data.boundary_at(face.boundary_id).alpha.finite(place.x, "alpha");
        double const weight = element.face_weights[q] * std::sqrt(dot_product(normal, normal)) * (alpha + density);
        for (std::size_t i = 0; i < cell.dofs.size(); ++i)
          result[cell.dofs[i]] += weight * at_face.shape.values[q * cell.dofs.size() + i];
      }
    }
  }
  for (auto const& [point, factor] : load.points) {
    cell.reset(point.cell);
    auto const values = tabulate(element.nodes, {point.reference}).values;
    for (std::size_t i = 0; i < values.size(); ++i)
      result[cell.dofs[i]] += factor * values[i];
  }
  return result;
}

HostVector<double> transferred(Space const& from, std::span<double const> u, Space const& to, ReferenceElement const& element) {
  std::vector<std::int32_t> old_cell(from.local.active.size());  // by number among the active cells
  for (std::size_t c = 0; c < old_cell.size(); ++c)
    old_cell[static_cast<std::size_t>(from.local.active[c])] = static_cast<std::int32_t>(c);
  auto const n = static_cast<std::size_t>(element.order + 1), n_local = n * n * n;
  std::array<Basis1D, 2> half;  // the functions of a cell at the nodes of its halves
  for (std::size_t i = 0; i < 2; ++i) {
    std::vector<double> points;
    for (double const node : element.nodes)
      points.push_back((node + static_cast<double>(i)) / 2);
    half[i] = lagrange_basis(element.nodes, points);
  }
  HostVector<double> result;
  result.resize(to.n_dofs, 0.0);
  std::vector<std::int32_t> old_dofs(n_local), dofs(n_local);
  std::vector<double> in(n_local), out(n_local), work;
  auto const take = [&](std::int32_t number) {
    from.dofs(old_cell[static_cast<std::size_t>(number)], old_dofs.data());
    for (std::size_t i = 0; i < n_local; ++i)
      in[i] = u[static_cast<std::size_t>(old_dofs[i])];
  };
  for (std::int64_t c = 0; c < to.n_cells; ++c) {
    to.dofs(c, dofs.data());
    CellOrigins::Origin const origin =
        to.local.origins.of_cell[static_cast<std::size_t>(to.local.active[static_cast<std::size_t>(c)])];
    if (origin.child == CellOrigins::merged_children) {
      for (std::size_t i = 0; i < n_local; ++i) {
        Point3 x = element.node(static_cast<int>(i));
        unsigned child = 0;
        for (std::size_t d = 0; d < 3; ++d)
          if (x[d] > 0.5) {
            child |= 1U << d;
            x[d] = 2 * x[d] - 1;
          } else {
            x[d] *= 2;
          }
        take(to.local.origins.merged[static_cast<std::size_t>(origin.cell)][child]);
        auto const values = tabulate(element.nodes, {x}).values;
        out[i] = std::inner_product(values.begin(), values.end(), in.begin(), 0.0);
      }
    } else {
      take(origin.cell);
      if (origin.child == CellOrigins::same)
        out = in;
      else
        apply_tensor(static_cast<int>(n), static_cast<int>(n), half[static_cast<std::size_t>(origin.child & 1)].values.data(),
                     half[static_cast<std::size_t>(origin.child >> 1 & 1)].values.data(),
                     half[static_cast<std::size_t>(origin.child >> 2)].values.data(), in.data(), out.data(), work);
    }
    for (std::size_t i = 0; i < n_local; ++i)
      result[dofs[i]] = out[i];
  }
  return result;
}

std::vector<std::int32_t> largest_cells(std::span<double const> indicators, double fraction, bool of_number) {
  std::vector<std::int32_t> order(indicators.size());
  std::iota(order.begin(), order.end(), 0);
  auto const value = [&](std::int32_t cell) { return indicators[static_cast<std::size_t>(cell)]; };
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) { return value(a) > value(b); });
  double const total =
      std::accumulate(order.begin(), order.end(), 0.0, [&](double sum, std::int32_t cell) { return sum + value(cell); });
  std::size_t count = 0;
  if (of_number) {
    count = static_cast<std::size_t>(std::ceil(fraction * static_cast<double>(order.size())));
  } else {
    for (double sum = 0; count < order.size() && sum < fraction * total; ++count)
      sum += value(order[count]);
  }
  count = std::min(count, order.size());
  // The solver's tolerance decides between cells that are images of each other in a symmetric problem.
  constexpr double equal = 1e-6;
  if (count > 0)
    for (double const last = value(order[count - 1]); count < order.size() && value(order[count]) >= last - equal * std::abs(last);)
      ++count;
  order.resize(count);
  std::sort(order.begin(), order.end());
  return order;
}

}  // namespace poisson::assembly
