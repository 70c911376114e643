#include "assembly/system/equilibrated_flux.hpp"

#include "assembly/mesh/counts.hpp"
#include "assembly/parallel.hpp"
#include "assembly/system/estimate_cells.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <map>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

namespace poisson::assembly {
namespace {

using Dense = std::vector<double>;

constexpr std::int64_t flux_cells_per_part = 64;

/// What numbers differ by because of rounding.
constexpr double rounding_of_balance = 1e-11;
/// Edges of small cells are differences of coordinates.
constexpr double rounding_of_geometry = 1e-9;

/// Legendre polynomials of degrees 0 ... n on [0, 1], whose squares have the integral 1.
Dense legendre_values(int n, double t) {
  double const x = 2 * t - 1;
  Dense p(static_cast<std::size_t>(n) + 1, 1.0);
  if (n > 0)
    p[1] = x;
  for (std::size_t i = 1; i + 1 < p.size(); ++i)
    p[i + 1] = (static_cast<double>(2 * i + 1) * x * p[i] - static_cast<double>(i) * p[i - 1]) / static_cast<double>(i + 1);
  for (std::size_t i = 0; i < p.size(); ++i)
    p[i] *= std::sqrt(static_cast<double>(2 * i + 1));
  return p;
}

/// 1 - t, t, and the integrals from 0 to t of the Legendre polynomials of degrees 1 ... q: their derivatives are -1, 1, and these.
Dense integrated_values(int q, double t) {
  Dense const p = legendre_values(q + 1, t);
  Dense result{1 - t, t};
  for (std::size_t n = 1; n <= static_cast<std::size_t>(q); ++n) {
    double const size = std::sqrt(static_cast<double>(2 * n + 1));
    result.push_back((p[n + 1] / std::sqrt(static_cast<double>(2 * n + 3)) - p[n - 1] / std::sqrt(static_cast<double>(2 * n - 1))) /
                     (2 * size));
  }
  return result;
}

double entry_of(Tensor const& t, std::size_t i, std::size_t j) {
  return t.entries[i == j ? i : i + j + 2];
}

/// The functions of a flux in the reference cell [0, 1]^3. Function (d, j, m, n) is along direction d: the j-th of
/// integrated_values in d, times Legendre polynomials of degrees m and n in the others, the lower direction first. So coefficients
/// j = 0 and 1 are the flux across the faces 2 d and 2 d + 1, and the divergence of each function is one product of Legendre
/// polynomials, or minus one. Divergences are products in this form, of degree q.
///
/// Where the divergence is given, one coefficient of an inner function (j > 1) follows for each of its parts but the constant: the
/// partner of all others whose divergence is that product.
struct FluxBasis {
  explicit FluxBasis(int degree)
      : q(degree),
        n(static_cast<std::size_t>(degree) + 1),
        n_face(n * n),
        n_flux(3 * (n + 1) * n_face),
        n_divergence(n * n * n),
        n_faces(6 * n_face),
        partner(n_flux, none),
        sign(n_flux),
        followers(n_divergence, none) {
    std::vector<std::size_t> divergence(n_flux);
    for_all([&](std::size_t d, std::size_t j, std::array<std::size_t, 3> index) {  // index[d] = j
      std::size_t const i = number(d, index);
      index[d] = j < 2 ? 0 : j - 1;
      divergence[i] = (index[2] * n + index[1]) * n + index[0];
      sign[i] = j == 0 ? -1 : 1;
      std::size_t first = 0;
      while (first < 3 && index[first] == 0)
        ++first;
      if (j > 1 && first == d)
        followers[divergence[i]] = i;
    });
    for (std::size_t i = 0; i < n_flux; ++i) {
      bool const on_face = i / n_face % (n + 1) < 2;
      if (followers[divergence[i]] == i)
        continue;
      partner[i] = followers[divergence[i]];
      if (!on_face)
        inner.push_back(i);
    }
    add_products();
  }

  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  int q;
  std::size_t n, n_face, n_flux, n_divergence, n_faces;  ///< degree + 1; functions of a face, of fluxes, of divergences, of 6 faces
  std::vector<std::size_t> partner;    ///< of each function; none: of followers, and where the divergence is constant
  std::vector<double> sign;            ///< of its divergence
  std::vector<std::size_t> followers;  ///< by product; none: of the constant
  std::vector<std::size_t> inner;      ///< functions without flux across faces that follow from nothing

  [[nodiscard]] std::size_t number(std::size_t d, std::array<std::size_t, 3> const& index) const {
    return (d * (n + 1) + index[d]) * n_face + index[d == 2 ? 1 : 2] * n + index[d == 0 ? 1 : 0];
  }
  /// The first function of a face.
  [[nodiscard]] std::size_t of_face(std::size_t face) const { return (face / 2 * (n + 1) + face % 2) * n_face; }
  /// The number of function i of all six faces.
  [[nodiscard]] std::size_t face_function(std::size_t i) const { return of_face(i / n_face) + i % n_face; }
  /// What a functional of the flux is of a function and its partner together.
  [[nodiscard]] double with_partner(std::span<double const> functional, std::size_t i) const {
    return functional[i] - (partner[i] == none ? 0 : sign[i] * functional[partner[i]]);
  }
  /// out += scale M in, where M are the integrals of a^T g b.
  void multiply(Tensor const& g, double scale, std::span<double const> in, std::span<double> out) const {
    for (Product const& p : products)
      out[p.row] += scale * g.entries[p.entry] * p.value * in[p.column];
  }
  /// The functions of one direction each at a point, and products of Legendre polynomials there.
  [[nodiscard]] Dense flux_values(Point3 const& x) const {
    std::array<Dense, 3> normal, across;
    for (std::size_t d = 0; d < 3; ++d) {
      normal[d] = integrated_values(q, x[d]);
      across[d] = legendre_values(q, x[d]);
    }
    Dense result(n_flux);
    for_all([&](std::size_t d, std::size_t j, std::array<std::size_t, 3> const& index) {
      double value = normal[d][j];
      for (std::size_t e = 0; e < 3; ++e)
        if (e != d)
          value *= across[e][index[e]];
      result[number(d, index)] = value;
    });
    return result;
  }
  [[nodiscard]] Dense divergence_values(Point3 const& x) const {
    Dense const a = legendre_values(q, x[0]), b = legendre_values(q, x[1]), c = legendre_values(q, x[2]);
    Dense result;
    for (double const z : c)
      for (double const y : b)
        for (double const value : a)
          result.push_back(value * y * z);
    return result;
  }
  /// Of a face, at a point of it.
  [[nodiscard]] Dense face_values(int face, Point3 const& x) const {
    Dense const a = legendre_values(q, x[face_direction(face, 0)]), b = legendre_values(q, x[face_direction(face, 1)]);
    Dense result;
    for (double const y : b)
      for (double const value : a)
        result.push_back(value * y);
    return result;
  }

private:
  struct Product {
    std::size_t row, column, entry;  ///< entry: of the tensor
    double value;
  };
  std::vector<Product> products;

  template <class Action>
  void for_all(Action const& action) const {
    for (std::size_t d = 0; d < 3; ++d)
      for (std::size_t j = 0; j <= n; ++j)
        for (std::size_t b = 0; b < n; ++b)
          for (std::size_t a = 0; a < n; ++a) {
            std::array<std::size_t, 3> index{};
            index[d] = j;
            index[d == 0 ? 1 : 0] = a;
            index[d == 2 ? 1 : 2] = b;
            action(d, j, index);
          }
  }
  void add_products() {
    std::vector<double> points, weights;
    gauss_rule(q + 2, points, weights);
    Dense squares((n + 1) * (n + 1)), mixed((n + 1) * n);
    for (std::size_t k = 0; k < points.size(); ++k) {
      Dense const normal = integrated_values(q, points[k]), across = legendre_values(q, points[k]);
      for (std::size_t i = 0; i <= n; ++i) {
        for (std::size_t j = 0; j <= n; ++j)
          squares[i * (n + 1) + j] += weights[k] * normal[i] * normal[j];
        for (std::size_t j = 0; j < n; ++j)
          mixed[i * n + j] += weights[k] * normal[i] * across[j];
      }
    }
    auto const add = [&](std::size_t row, std::size_t column, std::size_t entry, double value) {
      if (std::abs(value) > 1e-15)
        products.push_back({row, column, entry, value});
    };
    for_all([&](std::size_t d, std::size_t j, std::array<std::size_t, 3> const& index) {
      std::size_t const row = number(d, index);
      for (std::size_t i = 0; i <= n; ++i) {
        std::array<std::size_t, 3> other = index;
        other[d] = i;
        add(row, number(d, other), d, squares[j * (n + 1) + i]);
      }
      for (std::size_t e = 0; e < 3; ++e)
        if (e != d)
          for (std::size_t i = 0; i <= n; ++i)
            for (std::size_t m = 0; m < n; ++m) {
              std::array<std::size_t, 3> other = index;
              other[e] = i;
              other[d] = m;
              add(row, number(e, other), d + e + 2, mixed[j * n + m] * mixed[i * n + index[e]]);
            }
    });
  }
};

/// What of cells of one shape and k is the same for any data, up to a factor: fluxes in the norm by the tensor g, given those
/// across faces and the divergence, as they are where that norm is least.
struct FluxShape {
  FluxShape(FluxBasis const& basis, Tensor const& tensor) : g(tensor), factor(basis.inner.size() * basis.inner.size()) {
    std::size_t const n = basis.inner.size(), m = basis.n_faces;
    // A function with its partner, by M.
    Dense in(basis.n_flux), out(basis.n_flux);
    auto const apply = [&](std::size_t i) {
      std::fill(in.begin(), in.end(), 0.0);
      std::fill(out.begin(), out.end(), 0.0);
      in[i] = 1;
      if (basis.partner[i] != FluxBasis::none)
        in[basis.partner[i]] = -basis.sign[i];
      basis.multiply(g, 1, in, out);
    };
    for (std::size_t i = 0; i < n; ++i) {
      apply(basis.inner[i]);
      for (std::size_t j = i; j < n; ++j)
        factor[j * n + i] = basis.with_partner(out, basis.inner[j]);
    }
    SmallSolver::factor(factor, n);
    inner_of_faces.resize(m * n);
    faces.resize(m * m);
    Dense coupling(m * n);
    for (std::size_t f = 0; f < m; ++f) {
      apply(basis.face_function(f));
      for (std::size_t j = 0; j < n; ++j)
        coupling[f * n + j] = inner_of_faces[f * n + j] = basis.with_partner(out, basis.inner[j]);
      std::span<double> const x(inner_of_faces.data() + f * n, n);
      SmallSolver::forward(factor, n, x);
      SmallSolver::backward(factor, n, x);
      for (std::size_t j = 0; j < m; ++j)
        faces[f * m + j] = basis.with_partner(out, basis.face_function(j));
    }
    for (std::size_t f = 0; f < m; ++f)
      for (std::size_t j = 0; j < m; ++j)
        for (std::size_t i = 0; i < n; ++i)
          faces[f * m + j] -= coupling[f * n + i] * inner_of_faces[j * n + i];
  }
  Tensor g;
  Dense factor;          ///< of the inner functions
  Dense inner_of_faces;  ///< (function of a face, inner one): minus what this does there
  Dense faces;           ///< (function of a face, function of a face): the square of the norm is a form in these
};

/// g = J^T k^-1 J / det J of a cell, by which fluxes in the reference cell have their norm, from k and the map at one point.
Tensor metric(EstimateCell::Place const& at, Tensor const& k) {
  std::array<double, 9> inverse{};  // cof^T k cof / det
  for (std::size_t i = 0; i < 3; ++i) {
    Point3 const kc = k * Point3{at.cofactors[i], at.cofactors[3 + i], at.cofactors[6 + i]};
    for (std::size_t j = 0; j < 3; ++j)
      inverse[3 * i + j] =
          (at.cofactors[j] * kc[0] + at.cofactors[3 + j] * kc[1] + at.cofactors[6 + j] * kc[2]) / std::abs(at.determinant);
  }
  double const det = determinant(inverse);
  auto const c = cofactors(inverse);
  return {{c[0] / det, c[4] / det, c[8] / det, c[1] / det, c[2] / det, c[5] / det}};
}

double quadratic(Tensor const& g, Point3 const& v) {
  return dot_product(v, g * v);
}

/// The shapes of all cells. Where there are many different ones they are rounded: the flux is then less near to -k grad u, but in
/// balance all the same.
class FluxShapes {
public:
  FluxShapes(FluxBasis const& basis, std::vector<Tensor> const& metrics) {
    std::size_t const bytes = sizeof(double) * (basis.inner.size() + basis.n_faces) * (basis.inner.size() + basis.n_faces);
    constexpr std::size_t most_bytes = std::size_t{1} << 28U;
    using Key = std::array<long, 5>;
    for (double step = 1e-9;; step *= 10) {
      std::map<Key, std::int32_t> numbers;
      std::vector<Tensor> rounded;
      of_cell.clear();
      scale.clear();
      for (Tensor const& g : metrics) {
        double const size = std::cbrt(g.xx() * g.yy() * g.zz());
        auto const round = [step](double x) { return std::lround(x / step); };
        auto const angle = [&](std::size_t i, std::size_t j) {
          return std::lround(std::trunc(entry_of(g, i, j) / std::sqrt(g.entries[i] * g.entries[j]) / step));
        };
        Key const key{round(std::log(g.xx() / size)), round(std::log(g.yy() / size)), angle(0, 1), angle(0, 2), angle(1, 2)};
        auto const [found, added] = numbers.try_emplace(key, static_cast<std::int32_t>(numbers.size()));
        if (added) {
          double const x = std::exp(step * static_cast<double>(key[0])), y = std::exp(step * static_cast<double>(key[1])),
                       z = 1 / (x * y);
          Tensor t = Tensor::diagonal({x, y, z});
          t.entries[3] = step * static_cast<double>(key[2]) * std::sqrt(x * y);
          t.entries[4] = step * static_cast<double>(key[3]) * std::sqrt(x * z);
          t.entries[5] = step * static_cast<double>(key[4]) * std::sqrt(y * z);
          if (!(t.smallest_eigenvalue() > 0))
            t = Tensor::diagonal({x, y, z});
          rounded.push_back(t);
        }
        of_cell.push_back(found->second);
        scale.push_back(size);
        if (step < 0.1 && rounded.size() * bytes > most_bytes)
          break;
      }
      if (of_cell.size() < metrics.size())
        continue;
      std::vector<std::vector<FluxShape>> made(rounded.size());
      parallel_for(std::ssize(rounded), [&](std::int64_t i) {
        made[static_cast<std::size_t>(i)].emplace_back(basis, rounded[static_cast<std::size_t>(i)]);
      });
      for (auto& one : made)
        shapes.push_back(std::move(one.front()));
      return;
    }
  }
  [[nodiscard]] FluxShape const& operator[](std::int64_t cell) const {
    return shapes[static_cast<std::size_t>(of_cell[static_cast<std::size_t>(cell)])];
  }
  std::vector<FluxShape> shapes;
  std::vector<std::int32_t> of_cell;
  std::vector<double> scale;  ///< of each cell: times the tensor of its shape
};

/// The flux across the faces of the mesh is stored once for each: for that of the first of two equal cells, and for the whole face
/// of a larger cell beside smaller ones.
struct SharedFaces {
  struct Side {
    std::int32_t block = -1;    ///< where its functions are; -1: given by the boundary
    std::int32_t matrix = -1;   ///< makes the functions of this side from those of the block; -1: they are the same
    std::int32_t natural = -1;  ///< the number of a boundary face where the flux is given
  };
  SharedFaces(Space const& space, ReferenceElement const& element, ProblemData const& data, FluxBasis const& basis)
      : sides(static_cast<std::size_t>(6 * space.n_cells)) {
    auto const& faces = space.local.faces;
    Counterparts const all(element);
    std::vector<Counterpart const*> meeting(faces.size());
    parallel_for(
        n_parts(std::ssize(faces), flux_cells_per_part), [&] { return FaceMatcher(space, all); },
        [&](FaceMatcher& match, std::int64_t p) {
          auto const [begin, end] = part(std::ssize(faces), flux_cells_per_part, p);
          for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
            meeting[i] = &match(static_cast<std::size_t>(i));
        });
    std::map<std::array<int, 6>, std::int32_t> known;
    FaceMatcher const corners(space, all);
    std::vector<std::int32_t> dofs(static_cast<std::size_t>(space.n_local));
    auto const n_points = static_cast<std::size_t>(element.n_gauss());
    for (std::size_t i = 0; i < faces.size(); ++i) {
      FaceOfTwoCells const& face = faces[i];
      Counterpart const& meets = *meeting[i];
      bool const hangs = meets.quarter != whole_face;
      Side &owner = side(face.cells[hangs ? 1 : 0], face.faces[hangs ? 1 : 0]),
           &other = side(face.cells[hangs ? 0 : 1], face.faces[hangs ? 0 : 1]);
      if (owner.block < 0)
        owner.block = n_blocks++;
      other.block = owner.block;
      std::array<int, 6> const key{face.faces[0],
                                   face.faces[1],
                                   meets.quarter,
                                   meets.point[0],
                                   meets.point[n_points - 1],
                                   meets.point[n_points * (n_points - 1)]};
      auto const [found, added] = known.try_emplace(key, -1);
      if (added)
        found->second = add_matrix(element, basis, face, meets);
      other.matrix = found->second;
      if (hangs)
        add_hanging(space, face, meets, corners, dofs);
    }
    for (std::size_t i = 0; i < space.boundary_faces.size(); ++i) {
      BoundaryFace const& face = space.boundary_faces[i];
      Side& at = side(face.cell, face.face);
      if (data.boundary_at(face.boundary_id).is_natural())
        at.natural = static_cast<std::int32_t>(i);
      else
        at.block = n_blocks++;
    }
    is_open.resize(static_cast<std::size_t>(n_blocks), 0);
    for (BoundaryFace const& face : space.boundary_faces)
      if (std::int32_t const block = side(face.cell, face.face).block; block >= 0)
        is_open[static_cast<std::size_t>(block)] = 1;
  }
  [[nodiscard]] Side& side(std::int64_t cell, int face) { return sides[static_cast<std::size_t>(6 * cell + face)]; }
  [[nodiscard]] Side const& side(std::int64_t cell, std::size_t face) const {
    return sides[static_cast<std::size_t>(6 * cell) + face];
  }
  /// The functions of a side from those of its block.
  void take(Side const& of, double const* block, double* out, std::size_t n_face) const {
    if (of.matrix < 0) {
      std::copy_n(block, n_face, out);
      return;
    }
    double const* const t = matrices.data() + static_cast<std::size_t>(of.matrix) * n_face * n_face;
    for (std::size_t i = 0; i < n_face; ++i) {
      out[i] = 0;
      for (std::size_t j = 0; j < n_face; ++j)
        out[i] += t[i * n_face + j] * block[j];
    }
  }

  std::vector<Side> sides;
  std::int32_t n_blocks = 0;
  std::vector<std::uint8_t> is_open;  ///< by block: on a boundary where u is given
  Dense matrices;
  /// The vertices that a hat function has its value from at a vertex that hangs.
  std::map<std::int32_t, std::vector<std::pair<std::int32_t, double>>> hanging;

private:
  /// Reference fluxes are those through the reference face: of a quarter a fourth of that of the whole. Both sides count the flux
  /// along their own direction.
  std::int32_t add_matrix(ReferenceElement const& element, FluxBasis const& basis, FaceOfTwoCells const& face,
                          Counterpart const& meets) {
    bool const hangs = meets.quarter != whole_face;
    std::size_t const m = basis.n_face;
    Dense t(m * m);
    auto const first = element.face_points[static_cast<std::size_t>(face.faces[0])],
               second = points_on_face(element, face.faces[1], meets.quarter);
    double const factor = (face.faces[0] % 2 == face.faces[1] % 2 ? -1 : 1) * (hangs ? 0.25 : 1);
    for (std::size_t q = 0; q < first.size(); ++q) {
      Dense const a = basis.face_values(face.faces[0], first[q]),
                  b = basis.face_values(face.faces[1], second[static_cast<std::size_t>(meets.point[q])]);
      for (std::size_t i = 0; i < m; ++i)
        for (std::size_t j = 0; j < m; ++j)
          t[i * m + j] += element.face_weights[q] * factor * (hangs ? a[i] * b[j] : b[i] * a[j]);
    }
    bool same = true;
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t j = 0; j < m; ++j)
        same = same && std::abs(t[i * m + j] - (i == j ? 1 : 0)) < 1e-12;
    if (same)
      return -1;
    matrices.insert(matrices.end(), t.begin(), t.end());
    return static_cast<std::int32_t>(matrices.size() / (m * m)) - 1;
  }
  void add_hanging(Space const& space, FaceOfTwoCells const& face, Counterpart const& meets, FaceMatcher const& corners,
                   std::vector<std::int32_t>& dofs) {
    auto const small = corners.corners(face.cells[0], face.faces[0], dofs),
               large = corners.corners(face.cells[1], face.faces[1], dofs);
    for (std::size_t i = 0; i < 4; ++i) {
      if (std::find(large.begin(), large.end(), small[i]) != large.end() || !space.hanging.constrained(small[i]))
        continue;
      auto& list = hanging[small[i]];
      if (!list.empty())
        continue;
      for (std::size_t j = 0; j < 4; ++j) {
        double weight = 1;
        for (std::size_t d = 0; d < 2; ++d)
          weight *= (j >> d & 1U) != 0 ? meets.corners[i][d] : 1 - meets.corners[i][d];
        if (weight != 0)
          list.emplace_back(large[j], weight);
      }
    }
  }
};

/// Part of a hat function: its values at the corners of a cell.
struct HatInCell {
  std::int32_t vertex, cell;
  std::array<double, 8> corners;
};

/// All of them, by vertex, then cell.
std::vector<HatInCell> hat_functions(Space const& space, SharedFaces const& faces) {
  std::vector<HatInCell> result;
  std::vector<std::int32_t> dofs(static_cast<std::size_t>(space.n_local));
  std::vector<std::pair<std::int32_t, double>> todo, free;
  int const n = space.order + 1;
  for (std::int64_t c = 0; c < space.n_cells; ++c) {
    space.dofs(c, dofs.data());
    std::size_t const first = result.size();
    for (int corner = 0; corner < 8; ++corner) {
      todo = {{dofs[static_cast<std::size_t>(space.order * ((corner & 1) + n * (corner >> 1 & 1) + n * n * (corner >> 2)))], 1.0}};
      free.clear();
      while (!todo.empty()) {
        auto const [vertex, weight] = todo.back();
        todo.pop_back();
        if (auto const found = faces.hanging.find(vertex); found != faces.hanging.end())
          for (auto const& [master, share] : found->second)
            todo.emplace_back(master, weight * share);
        else
          free.emplace_back(vertex, weight);
      }
      for (auto const& [vertex, weight] : free) {
        std::size_t at = first;
        while (at < result.size() && result[at].vertex != vertex)
          ++at;
        if (at == result.size())
          result.push_back({vertex, static_cast<std::int32_t>(c), {}});
        result[at].corners[static_cast<std::size_t>(corner)] += weight;
      }
    }
  }
  std::sort(result.begin(), result.end(),
            [](HatInCell const& a, HatInCell const& b) { return a.vertex != b.vertex ? a.vertex < b.vertex : a.cell < b.cell; });
  return result;
}

bool corner_on_face(std::size_t corner, std::size_t face) {
  return (corner >> face / 2 & 1U) == face % 2;
}

/// What a cell asks of the flux across its faces, for each of the trilinear functions of its corners: the linear form of the norm,
/// in the functions of faces, and then the integral of the divergence.
struct CellForms {
  explicit CellForms(FluxBasis const& basis) : size(basis.n_faces + 1) {}
  std::size_t size;
  HostVector<double> values;  ///< 8 size of each cell
  HostVector<double> given;   ///< 8 n_face of each boundary face: the flux along the direction of the face; 0 where none is given
  [[nodiscard]] double const* of(std::int64_t cell, std::size_t corner) const {
    return values.data() + (static_cast<std::size_t>(cell) * 8 + corner) * size;
  }
};

/// sigma . n dS of a boundary face where it is given, over the reference face: alpha u - value.
double given_flux(EstimateCell& cell, BoundaryData const& condition, TablesAt const& tables, int q, int face,
                  std::span<double const> u) {
  auto const place = cell.place(tables, q);
  Point3 const normal = EstimateCell::normal(place, face);
  double const alpha = condition.type == BoundaryType::robin ? condition.alpha.finite(place.x, "alpha") : 0;
  double const value = condition.value.finite(place.x, "the boundary value");
  return std::sqrt(dot_product(normal, normal)) * ((alpha == 0 ? 0 : alpha * cell.value(tables, q, u)) - value);
}

/// sigma of one vertex, across faces.
struct FluxOfVertex {
  std::vector<std::int32_t> blocks;
  Dense values;  ///< n_face of each
};

/// The small problem around a vertex. By the divergence in each cell, which the fluxes across its faces have to match, it is a
/// system with as many more equations as cells: A x + C^T p = -b, C x = d. With A = L L^T, (C A^-1 C^T) p = -d - C A^-1 b.
class VertexProblem {
public:
  VertexProblem(FluxBasis const& basis, FluxShapes const& shapes, SharedFaces const& faces, CellForms const& forms,
                std::vector<double> const& volumes)
      : basis_(basis), shapes_(shapes), faces_(faces), forms_(forms), volumes_(volumes) {}

  FluxOfVertex solve(std::span<HatInCell const> hat) {
    FluxOfVertex result;
    auto& blocks = result.blocks;
    auto const is_zero = [](HatInCell const& in, std::size_t face) {
      for (std::size_t corner = 0; corner < 8; ++corner)
        if (corner_on_face(corner, face) && in.corners[corner] != 0)
          return false;
      return true;
    };
    for (HatInCell const& in : hat)
      for (std::size_t f = 0; f < 6; ++f)
        if (auto const& side = faces_.side(in.cell, f); side.block >= 0 && !is_zero(in, f))
          blocks.push_back(side.block);
    std::sort(blocks.begin(), blocks.end());
    blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
    std::size_t const m = basis_.n_face, n = blocks.size() * m, n_cells = hat.size();
    a_.assign(n * n, 0.0);
    c_.assign(n_cells * n, 0.0);
    b_.assign(n, 0.0);
    d_.assign(n_cells, 0.0);
    bool open = false;  // flux may leave through a boundary
    for (std::size_t k = 0; k < n_cells; ++k) {
      HatInCell const& in = hat[k];
      FluxShape const& shape = shapes_[in.cell];
      double const scale = shapes_.scale[static_cast<std::size_t>(in.cell)];
      form_.assign(forms_.size, 0.0);
      for (std::size_t corner = 0; corner < 8; ++corner)
        if (double const weight = in.corners[corner]; weight != 0)
          for (std::size_t i = 0; i < form_.size(); ++i)
            form_[i] += weight * forms_.of(in.cell, corner)[i];
      d_[k] += form_.back();
      std::array<std::size_t, 6> at{};  // the first function of each face; none: 0, or given
      at.fill(FluxBasis::none);
      given_.assign(basis_.n_faces, 0.0);
      for (std::size_t f = 0; f < 6; ++f) {
        auto const& side = faces_.side(in.cell, f);
        double const outward = f % 2 == 0 ? -1 : 1;
        if (side.natural >= 0) {
          for (std::size_t corner = 0; corner < 8; ++corner)
            for (std::size_t i = 0; i < m; ++i)
              given_[f * m + i] +=
                  in.corners[corner] *
                  forms_.given[(side.natural * 8 + static_cast<std::int64_t>(corner)) * static_cast<std::int64_t>(m) +
                               static_cast<std::int64_t>(i)];
          d_[k] -= outward * given_[f * m];
        } else if (side.block >= 0 && !is_zero(in, f)) {
          at[f] = static_cast<std::size_t>(std::lower_bound(blocks.begin(), blocks.end(), side.block) - blocks.begin()) * m;
          open = open || faces_.is_open[static_cast<std::size_t>(side.block)] != 0;
          for (std::size_t i = 0; i < m; ++i)
            c_[k * n + at[f] + i] += outward * transfer(side, 0, i);
        }
      }
      for (std::size_t f = 0; f < 6; ++f) {
        if (at[f] == FluxBasis::none)
          continue;
        auto const& side = faces_.side(in.cell, f);
        for (std::size_t i = 0; i < m; ++i) {  // what the given fluxes add
          double sum = 0;
          for (std::size_t j = 0; j < basis_.n_faces; ++j)
            if (given_[j] != 0)
              sum += shape.faces[(f * m + i) * basis_.n_faces + j] * given_[j];
          form_[f * m + i] += scale * sum;
        }
        for (std::size_t i = 0; i < m; ++i)
          if (side.matrix < 0)
            b_[at[f] + i] += form_[f * m + i];
          else
            for (std::size_t j = 0; j < m; ++j)
              b_[at[f] + j] += transfer(side, i, j) * form_[f * m + i];
        for (std::size_t g = 0; g < 6; ++g)
          if (at[g] != FluxBasis::none && at[g] <= at[f])
            add(shape, scale, in.cell, f, g, at[f], at[g], n);
      }
    }
    if (!open) {  // then the integrals of all divergences are 0 but for rounding and quadrature
      double sum = 0, volume = 0;
      for (std::size_t k = 0; k < n_cells; ++k) {
        sum += d_[k];
        volume += volumes_[static_cast<std::size_t>(hat[k].cell)];
      }
      for (std::size_t k = 0; k < n_cells; ++k)
        d_[k] -= sum * volumes_[static_cast<std::size_t>(hat[k].cell)] / volume;
    }
    SmallSolver::factor(a_, n);
    SmallSolver::forward(a_, n, b_);
    for (std::size_t k = 0; k < n_cells; ++k)
      SmallSolver::forward(a_, n, row(k, n));
    z_.assign(n_cells * n_cells, 0.0);
    for (std::size_t k = 0; k < n_cells; ++k) {
      for (std::size_t l = 0; l <= k; ++l)
        for (std::size_t i = 0; i < n; ++i)
          z_[k * n_cells + l] += c_[k * n + i] * c_[l * n + i];
      d_[k] = -d_[k];
      for (std::size_t i = 0; i < n; ++i)
        d_[k] -= c_[k * n + i] * b_[i];
    }
    constexpr double least_pivot = 1e-11;
    SmallSolver::factor(z_, n_cells, least_pivot);
    SmallSolver::forward(z_, n_cells, d_);
    SmallSolver::backward(z_, n_cells, d_);
    for (std::size_t i = 0; i < n; ++i) {
      b_[i] = -b_[i];
      for (std::size_t k = 0; k < n_cells; ++k)
        b_[i] -= c_[k * n + i] * d_[k];
    }
    SmallSolver::backward(a_, n, b_);
    result.values = b_;
    return result;
  }

private:
  [[nodiscard]] std::span<double> row(std::size_t k, std::size_t n) { return {c_.data() + k * n, n}; }
  [[nodiscard]] double transfer(SharedFaces::Side const& side, std::size_t i, std::size_t j) const {
    std::size_t const m = basis_.n_face;
    if (side.matrix < 0)
      return i == j ? 1 : 0;
    return faces_.matrices[(static_cast<std::size_t>(side.matrix) * m + i) * m + j];
  }
  /// Adds T_f^T S T_g, of two faces of a cell.
  void add(FluxShape const& shape, double scale, std::int64_t cell, std::size_t f, std::size_t g, std::size_t row,
           std::size_t column, std::size_t n) {
    std::size_t const m = basis_.n_face;
    auto const &of_row = faces_.side(cell, f), &of_column = faces_.side(cell, g);
    block_.resize(2 * m * m);
    double* const s = block_.data();
    double* const t = s + m * m;
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t j = 0; j < m; ++j)
        s[i * m + j] = scale * shape.faces[(f * m + i) * basis_.n_faces + g * m + j];
    if (of_column.matrix >= 0) {
      for (std::size_t i = 0; i < m; ++i)
        for (std::size_t j = 0; j < m; ++j) {
          t[i * m + j] = 0;
          for (std::size_t k = 0; k < m; ++k)
            t[i * m + j] += s[i * m + k] * transfer(of_column, k, j);
        }
      std::copy_n(t, m * m, s);
    }
    if (of_row.matrix >= 0) {
      for (std::size_t i = 0; i < m; ++i)
        for (std::size_t j = 0; j < m; ++j) {
          t[i * m + j] = 0;
          for (std::size_t k = 0; k < m; ++k)
            t[i * m + j] += transfer(of_row, k, i) * s[k * m + j];
        }
      std::copy_n(t, m * m, s);
    }
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t j = 0; j < m; ++j)
        a_[(row + i) * n + column + j] += s[i * m + j];
  }

  FluxBasis const& basis_;
  FluxShapes const& shapes_;
  SharedFaces const& faces_;
  CellForms const& forms_;
  std::vector<double> const& volumes_;
  Dense a_, b_, c_, d_, z_, form_, given_, block_;
};

/// What keeps a bound from being one. The first that holds is told.
enum Doubt : unsigned {
  curved = 1,
  varying = 2,
  point_sources = 4,
  jumping_source = 8,
  jumping_flux = 16,
  given_values = 32,
  balance = 64
};

std::string why_no_bound_by(unsigned doubts) {
  if ((doubts & point_sources) != 0)
    return "point sources have no finite energy norm";
  if ((doubts & varying) != 0)
    return "k varies inside cells";
  if ((doubts & curved) != 0)
    return "some cells are no parallelepipeds";
  if ((doubts & given_values) != 0)
    return "values of u on the boundary are no polynomials of the elements' order";
  if ((doubts & jumping_source) != 0)
    return "the source may jump inside cells";
  if ((doubts & jumping_flux) != 0)
    return "boundary values may jump inside faces";
  if ((doubts & balance) != 0)
    return "sources and fluxes are not in balance, and u is given nowhere";
  return "";
}

/// What the balance of a cell lacks after its flux was found, and what that may add to the error.
struct Imbalance {
  double rest = 0;  ///< the norm of sigma + k grad u, and more
  double mean = 0;  ///< of f - div sigma and of given fluxes less sigma: the integral
};

/// The trapdoors through which means leave: v at a face less its mean in the cell is no larger than this times the norm of v there.
double to_face(Tensor const& g, int face) {
  return std::sqrt(g.entries[static_cast<std::size_t>(face / 2)] / 3);
}

/// v less its mean, in L2, is no larger than this times (int k |grad v|^2)^1/2 in a parallelepiped.
double of_poincare(Tensor const& g, double volume) {
  double largest = 0;
  double const size = g.xx() + g.yy() + g.zz();
  bool const is_box = std::max({std::abs(g.xy()), std::abs(g.xz()), std::abs(g.yz())}) <= rounding_of_geometry * size;
  if (is_box)
    largest = std::max({g.xx(), g.yy(), g.zz()});
  else
    for (double const y : {-1., 1.})
      for (double const z : {-1., 1.})
        largest = std::max(largest, quadratic(g, {1, y, z}));
  return std::sqrt(volume * largest) / std::numbers::pi;
}

/// Leads the means of all cells to boundaries where u is given, or enters with a Robin condition, over as few cells as possible.
/// What passes through a face adds to the bound of the cells on both sides: v differs there by its means over the cells and over
/// the face. Returns whether all could be led away but for rounding.
bool lead_away(Space const& space, ProblemData const& data, std::vector<Tensor> const& metrics, std::vector<double> const& volumes,
               std::vector<double> const& given_energy, std::vector<Imbalance>& cells) {
  auto const n = static_cast<std::size_t>(space.n_cells);
  struct Step {
    std::int32_t from, to;  ///< cells; to: -1 at an end
    double here, there;     ///< what each adds
    double at_end;          ///< what the end adds
  };
  std::vector<std::vector<std::int32_t>> around(n);
  for (std::size_t i = 0; i < space.local.faces.size(); ++i)
    for (std::int32_t const cell : space.local.faces[i].cells)
      around[static_cast<std::size_t>(cell)].push_back(static_cast<std::int32_t>(i));
  double scale = 0;
  for (Imbalance const& cell : cells)
    scale = std::max(scale, cell.rest);
  std::vector<Step> steps;
  std::vector<std::uint8_t> reached(n, 0);
  auto const reach = [&](std::size_t cell, Step step) {
    if (reached[cell] == 0) {
      reached[cell] = 1;
      steps.push_back(step);
    }
  };
  auto const across = [&](std::int32_t cell, int face, bool quarter) {
    auto const c = static_cast<std::size_t>(cell);
    Tensor const& g = metrics[c];
    if (!quarter)
      return to_face(g, face);
    // To the eighth of the cell at this quarter: its metric is twice that of the cell.
    return std::sqrt(2.0) * to_face(g, face) + std::sqrt(8 / volumes[c]) * of_poincare(g, volumes[c]);
  };
  std::size_t next = 0;
  auto const spread = [&] {
    for (; next < steps.size(); ++next) {
      std::int32_t const to = steps[next].from;
      for (std::int32_t const i : around[static_cast<std::size_t>(to)]) {
        FaceOfTwoCells const& face = space.local.faces[static_cast<std::size_t>(i)];
        bool const hangs = space.local.levels[static_cast<std::size_t>(face.cells[0])] !=
                           space.local.levels[static_cast<std::size_t>(face.cells[1])];
        std::size_t const side = face.cells[0] == to ? 0 : 1;
        std::int32_t const from = face.cells[1 - side];
        reach(static_cast<std::size_t>(from), {from, to, across(from, face.faces[1 - side], hangs && side == 0),
                                               across(to, face.faces[side], hangs && side == 1), 0});
      }
    }
  };
  for (BoundaryFace const& face : space.boundary_faces)
    if (data.boundary_at(face.boundary_id).type == BoundaryType::dirichlet)
      reach(static_cast<std::size_t>(face.cell), {face.cell, -1, across(face.cell, face.face, false), 0, 0});
  spread();
  for (std::size_t i = 0; i < space.boundary_faces.size(); ++i) {
    BoundaryFace const& face = space.boundary_faces[i];
    if (given_energy[i] > 0)
      reach(static_cast<std::size_t>(face.cell),
            {face.cell, -1, across(face.cell, face.face, false), 0, 1 / std::sqrt(given_energy[i])});
  }
  spread();
  std::size_t const n_led = steps.size();
  for (std::size_t c = 0; c < n; ++c) {
    reach(c, {static_cast<std::int32_t>(c), -1, 0, 0, 0});
    spread();
  }
  std::vector<double> sums(n), ends(n, 0.0);
  for (std::size_t c = 0; c < n; ++c)
    sums[c] = cells[c].mean;
  bool balanced = true;
  for (std::size_t i = steps.size(); i-- > 0;) {
    Step const& step = steps[i];
    auto const from = static_cast<std::size_t>(step.from);
    double const passes = std::abs(sums[from]);
    cells[from].rest += passes * step.here;
    if (step.to >= 0) {
      sums[static_cast<std::size_t>(step.to)] += sums[from];
      cells[static_cast<std::size_t>(step.to)].rest += passes * step.there;
    } else {
      ends[from] = passes * step.at_end;
      if (i >= n_led && passes * to_face(metrics[from], 0) > rounding_of_balance * scale * static_cast<double>(n))
        balanced = false;
    }
  }
  for (std::size_t c = 0; c < n; ++c)
    cells[c].rest = std::hypot(cells[c].rest, ends[c]);
  return balanced;
}

/// Tables of all that is needed at points.
struct TablesOfFlux {
  TablesOfFlux(std::vector<Point3> const& points, Space const& space, ReferenceElement const& element, FluxBasis const& basis)
      : at(points, space, element), hats(tabulate({0, 1}, points)) {
    for (Point3 const& x : points) {
      flux.push_back(basis.flux_values(x));
      divergence.push_back(basis.divergence_values(x));
    }
  }
  TablesAt at;
  PointTables hats;
  std::vector<Dense> flux, divergence;
};

/// cof^T v: a flux in the reference cell.
Point3 pulled_back(EstimateCell::Place const& at, Point3 const& v) {
  Point3 result{};
  for (std::size_t d = 0; d < 3; ++d)
    result[d] = at.cofactors[d] * v[0] + at.cofactors[3 + d] * v[1] + at.cofactors[6 + d] * v[2];
  return result;
}

/// The gradient in reference coordinates: J^T grad.
Point3 reference_gradient(EstimateCell::Place const& at, Point3 const& g) {
  Point3 result{};
  for (std::size_t d = 0; d < 3; ++d)
    result[d] = at.jacobian[d] * g[0] + at.jacobian[3 + d] * g[1] + at.jacobian[6 + d] * g[2];
  return result;
}

}  // namespace

EquilibratedFlux equilibrated_flux(Space const& space, ReferenceElement const& element, ProblemData const& data,
                                   std::span<double const> u) {
  FluxBasis const basis(element.order);
  std::size_t const m = basis.n_face;
  auto const n_cells = static_cast<std::size_t>(space.n_cells);
  SharedFaces const faces(space, element, data, basis);

  // Points: those of the assembly, by which u is a Galerkin solution; those that integrate all that is a polynomial; and some more
  // to look at f and given values.
  ReferenceElement const exact_rule(element.order, std::max(element.order + 2, element.n_gauss())),
      fine_rule(element.order, element.n_gauss() + 3);
  TablesOfFlux const assembled(element.volume_points, space, element, basis),
      exact(exact_rule.volume_points, space, element, basis), fine(fine_rule.volume_points, space, element, basis);
  TablesAt const middle({{0.5, 0.5, 0.5}}, space, element);
  std::vector<TablesAt> assembled_faces, fine_faces;
  for (std::size_t f = 0; f < 6; ++f) {
    assembled_faces.emplace_back(element.face_points[f], space, element);
    fine_faces.emplace_back(fine_rule.face_points[f], space, element);
  }

  std::atomic<unsigned> doubts = data.point_loads.loads.empty() ? 0U : unsigned{point_sources};
  auto const over_cells = [&](auto const& body) {
    parallel_for(
        n_parts(space.n_cells, flux_cells_per_part), [&] { return EstimateCell(space, data); },
        [&](EstimateCell& cell, std::int64_t p) {
          auto const [begin, end] = part(space.n_cells, flux_cells_per_part, p);
          for (auto c = begin; c < end; ++c) {
            cell.reset(c);
            body(cell, c);
          }
        });
  };
  std::vector<Tensor> metrics(n_cells);
  std::vector<double> volumes(n_cells);
  over_cells([&](EstimateCell& cell, std::int64_t c) {
    auto const at = cell.place(middle, 0);
    metrics[static_cast<std::size_t>(c)] = metric(at, cell.k_inside(at.x));
    volumes[static_cast<std::size_t>(c)] = std::abs(at.determinant);
  });
  FluxShapes const shapes(basis, metrics);

  // Linear forms of the norm, with inner functions at their best.
  CellForms forms(basis);
  check_memory(std::int64_t{8} * (space.n_cells * static_cast<std::int64_t>(8 * forms.size + basis.n_flux) +
                                  std::ssize(space.boundary_faces) * static_cast<std::int64_t>(8 * m)),
               "the bound of the error");
  forms.values.resize(space.n_cells * 8 * static_cast<std::int64_t>(forms.size), 0.0);
  forms.given.resize(std::ssize(space.boundary_faces) * 8 * static_cast<std::int64_t>(m), 0.0);
  // The form in the flux of one cell, with followers for the divergence, and minus the inner functions that belong to it.
  auto const inner_part = [&](FluxShape const& shape, double scale, std::vector<double> const& divergence, Dense& form,
                              Dense& follow, Dense& inner) {
    follow.assign(basis.n_flux, 0.0);
    for (std::size_t e = 0; e < basis.n_divergence; ++e)
      if (basis.followers[e] != FluxBasis::none)
        follow[basis.followers[e]] = divergence[e];
    basis.multiply(shape.g, scale, follow, form);
    inner.clear();
    for (std::size_t const i : basis.inner)
      inner.push_back(basis.with_partner(form, i));
  };
  over_cells([&](EstimateCell& cell, std::int64_t c) {
    FluxShape const& shape = shapes[c];
    std::vector<Dense> divergence(8, Dense(basis.n_divergence, 0.0)), form(8, Dense(basis.n_flux, 0.0));
    Function const& source = cell.data.source(cell.material);
    for (std::size_t q = 0; q < element.weights.size(); ++q) {
      auto const at = cell.place(assembled.at, static_cast<int>(q));
      double const f = source.finite(at.x, "the source");
      Point3 const flux = pulled_back(at, cell.k_inside(at.x) * cell.gradient(assembled.at, static_cast<int>(q), at, u));
      for (std::size_t corner = 0; corner < 8; ++corner) {
        double value = at.determinant * f * assembled.hats.values[q * 8 + corner];
        for (std::size_t d = 0; d < 3; ++d)
          value -= assembled.hats.gradients[(3 * q + d) * 8 + corner] * flux[d];
        for (std::size_t e = 0; e < basis.n_divergence; ++e)
          divergence[corner][e] += element.weights[q] * value * assembled.divergence[q][e];
      }
    }
    std::size_t const of_direction = basis.n_flux / 3;
    for (std::size_t q = 0; q < exact_rule.weights.size(); ++q) {
      auto const at = cell.place(exact.at, static_cast<int>(q));
      Point3 const g = reference_gradient(at, cell.gradient(exact.at, static_cast<int>(q), at, u));
      for (std::size_t corner = 0; corner < 8; ++corner) {
        double const weight = exact_rule.weights[q] * exact.hats.values[q * 8 + corner];
        for (std::size_t d = 0; d < 3; ++d)
          for (std::size_t i = d * of_direction; i < (d + 1) * of_direction; ++i)
            form[corner][i] += weight * g[d] * exact.flux[q][i];
      }
    }
    Dense follow, inner;
    for (std::size_t corner = 0; corner < 8; ++corner) {
      inner_part(shape, shapes.scale[static_cast<std::size_t>(c)], divergence[corner], form[corner], follow, inner);
      double* const out = forms.values.data() + (static_cast<std::size_t>(c) * 8 + corner) * forms.size;
      for (std::size_t f = 0; f < basis.n_faces; ++f) {
        out[f] = basis.with_partner(form[corner], basis.face_function(f));
        for (std::size_t i = 0; i < inner.size(); ++i)
          out[f] -= shape.inner_of_faces[f * inner.size() + i] * inner[i];
      }
      out[basis.n_faces] = divergence[corner][0];
    }
  });
  parallel_for(
      n_parts(std::ssize(space.boundary_faces), flux_cells_per_part), [&] { return EstimateCell(space, data); },
      [&](EstimateCell& cell, std::int64_t p) {
        auto const [begin, end] = part(std::ssize(space.boundary_faces), flux_cells_per_part, p);
        for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
          BoundaryFace const& face = space.boundary_faces[i];
          BoundaryData const& condition = cell.data.boundary_at(face.boundary_id);
          if (!condition.is_natural())
            continue;
          cell.reset(face.cell);
          auto const f = static_cast<std::size_t>(face.face);
          PointTables const hats = tabulate({0, 1}, element.face_points[f]);
          for (std::size_t q = 0; q < element.face_weights.size(); ++q) {
            double const outward = face.face % 2 == 0 ? -1 : 1,
                         value = outward * element.face_weights[q] *
                                 given_flux(cell, condition, assembled_faces[f], static_cast<int>(q), face.face, u);
            Dense const functions = basis.face_values(face.face, element.face_points[f][q]);
            for (std::size_t corner = 0; corner < 8; ++corner)
              for (std::size_t j = 0; j < m; ++j)
                forms.given[static_cast<std::int64_t>((i * 8 + corner) * m + j)] +=
                    value * hats.values[q * 8 + corner] * functions[j];
          }
        }
      });

  // The fluxes of all vertices, which are added in their order.
  std::vector<HatInCell> const hats = hat_functions(space, faces);
  std::vector<std::size_t> first;
  for (std::size_t i = 0; i < hats.size(); ++i)
    if (i == 0 || hats[i].vertex != hats[i - 1].vertex)
      first.push_back(i);
  first.push_back(hats.size());
  Dense across(static_cast<std::size_t>(faces.n_blocks) * m, 0.0);
  constexpr std::size_t vertices_at_once = 1024;
  for (std::size_t begin = 0; begin + 1 < first.size(); begin += vertices_at_once) {
    std::size_t const end = std::min(begin + vertices_at_once, first.size() - 1);
    std::vector<FluxOfVertex> found(end - begin);
    parallel_for(
        static_cast<std::int64_t>(end - begin), [&] { return VertexProblem(basis, shapes, faces, forms, volumes); },
        [&](VertexProblem& problem, std::int64_t i) {
          std::size_t const v = begin + static_cast<std::size_t>(i);
          found[static_cast<std::size_t>(i)] = problem.solve({hats.data() + first[v], first[v + 1] - first[v]});
        });
    for (FluxOfVertex const& one : found)
      for (std::size_t b = 0; b < one.blocks.size(); ++b)
        for (std::size_t i = 0; i < m; ++i)
          across[static_cast<std::size_t>(one.blocks[b]) * m + i] += one.values[b * m + i];
  }

  // sigma in each cell, the bound, and what the balance lacks.
  EquilibratedFlux result;
  result.order = element.order;
  result.coefficients.resize(space.n_cells * static_cast<std::int64_t>(basis.n_flux), 0.0);
  std::vector<Imbalance> left(n_cells);
  over_cells([&](EstimateCell& cell, std::int64_t c) {
    FluxShape const& shape = shapes[c];
    double const scale = shapes.scale[static_cast<std::size_t>(c)];
    Dense on_faces(basis.n_faces, 0.0);
    for (std::size_t f = 0; f < 6; ++f) {
      auto const& side = faces.side(c, f);
      if (side.block >= 0)
        faces.take(side, across.data() + static_cast<std::size_t>(side.block) * m, on_faces.data() + f * m, m);
      else if (side.natural >= 0)
        for (std::size_t corner = 0; corner < 8; ++corner)
          for (std::size_t i = 0; i < m; ++i)
            on_faces[f * m + i] +=
                forms.given[static_cast<std::int64_t>((static_cast<std::size_t>(side.natural) * 8 + corner) * m + i)];
    }
    Dense divergence(basis.n_divergence, 0.0), form(basis.n_flux, 0.0), sources, determinants;
    Function const& source = cell.data.source(cell.material);
    std::size_t const of_direction = basis.n_flux / 3;
    for (std::size_t q = 0; q < fine_rule.weights.size(); ++q) {
      auto const at = cell.place(fine.at, static_cast<int>(q));
      sources.push_back(source.finite(at.x, "the source"));
      determinants.push_back(at.determinant);
      for (std::size_t e = 0; e < basis.n_divergence; ++e)
        divergence[e] += fine_rule.weights[q] * at.determinant * sources.back() * fine.divergence[q][e];
    }
    for (std::size_t q = 0; q < exact_rule.weights.size(); ++q) {
      auto const at = cell.place(exact.at, static_cast<int>(q));
      Point3 const g = reference_gradient(at, cell.gradient(exact.at, static_cast<int>(q), at, u));
      for (std::size_t d = 0; d < 3; ++d)
        for (std::size_t i = d * of_direction; i < (d + 1) * of_direction; ++i)
          form[i] += exact_rule.weights[q] * g[d] * exact.flux[q][i];
    }
    Dense sigma, inner;
    inner_part(shape, scale, divergence, form, sigma, inner);
    SmallSolver::forward(shape.factor, inner.size(), inner);
    SmallSolver::backward(shape.factor, inner.size(), inner);
    auto const set = [&](std::size_t function, double value) {
      sigma[function] = value;
      if (basis.partner[function] != FluxBasis::none)
        sigma[basis.partner[function]] -= basis.sign[function] * value;
    };
    for (std::size_t f = 0; f < basis.n_faces; ++f) {
      set(basis.face_function(f), on_faces[f]);
      for (std::size_t i = 0; i < inner.size(); ++i)
        inner[i] += scale * shape.inner_of_faces[f * inner.size() + i] * on_faces[f];
    }
    for (std::size_t i = 0; i < inner.size(); ++i)
      set(basis.inner[i], -inner[i] / scale);
    std::copy(sigma.begin(), sigma.end(), result.coefficients.data() + static_cast<std::size_t>(c) * basis.n_flux);

    Imbalance& lacks = left[static_cast<std::size_t>(c)];
    double square = 0;
    auto const center = cell.place(middle, 0);
    Tensor const k = cell.k_inside(center.x);
    double largest_entry = 0;
    for (double const entry : center.jacobian)
      largest_entry = std::max(largest_entry, std::abs(entry));
    for (std::size_t q = 0; q < exact_rule.weights.size(); ++q) {
      auto const at = cell.place(exact.at, static_cast<int>(q));
      Tensor const k_here = cell.k_inside(at.x);
      for (std::size_t i = 0; i < 6; ++i)
        if (std::abs(k_here.entries[i] - k.entries[i]) > rounding_of_balance * (k.xx() + k.yy() + k.zz()))
          doubts |= varying;
      for (std::size_t i = 0; i < 9; ++i)
        if (std::abs(at.jacobian[i] - center.jacobian[i]) > rounding_of_geometry * largest_entry)
          doubts |= curved;
      Point3 r = pulled_back(at, k_here * cell.gradient(exact.at, static_cast<int>(q), at, u));
      for (std::size_t d = 0; d < 3; ++d)
        for (std::size_t i = d * of_direction; i < (d + 1) * of_direction; ++i)
          r[d] += sigma[i] * exact.flux[q][i];
      square += exact_rule.weights[q] * quadratic(metric(at, k_here), r);
    }
    double largest_source = 0, rest_of_source = 0;
    for (std::size_t q = 0; q < fine_rule.weights.size(); ++q) {
      double rest = sources[q];
      for (std::size_t e = 0; e < basis.n_divergence; ++e)
        rest -= divergence[e] * fine.divergence[q][e] / determinants[q];
      largest_source = std::max(largest_source, std::abs(sources[q]));
      rest_of_source = std::max(rest_of_source, std::abs(rest));
    }
    if (rest_of_source > rounding_of_balance * largest_source && source.can_jump())
      doubts |= jumping_source;
    double const volume = volumes[static_cast<std::size_t>(c)];
    lacks.rest = std::sqrt(square) + rest_of_source * std::sqrt(volume) * of_poincare(metrics[static_cast<std::size_t>(c)], volume);
    lacks.mean = divergence[0];
    for (std::size_t f = 0; f < 6; ++f)
      lacks.mean -= (f % 2 == 0 ? -1 : 1) * on_faces[f * m];
  });

  // The boundary. One after the other, since a cell has several faces.
  EstimateCell cell(space, data);
  std::vector<double> given_energy(space.boundary_faces.size(), 0.0);
  double largest_value = 0, largest_miss = 0;
  for (std::size_t i = 0; i < space.boundary_faces.size(); ++i) {
    BoundaryFace const& face = space.boundary_faces[i];
    BoundaryData const& condition = cell.data.boundary_at(face.boundary_id);
    cell.reset(face.cell);
    auto const f = static_cast<std::size_t>(face.face), c = static_cast<std::size_t>(face.cell);
    TablesAt const& tables = fine_faces[f];
    std::size_t const n = tables.points.size();
    if (!condition.is_natural()) {
      for (std::size_t q = 0; q < n; ++q) {
        double const value = condition.value.finite(cell.place(tables, static_cast<int>(q)).x, "the Dirichlet value");
        largest_value = std::max(largest_value, std::abs(value));
        largest_miss = std::max(largest_miss, std::abs(value - cell.value(tables, static_cast<int>(q), u)));
      }
      continue;
    }
    double const* const sigma = result.coefficients.data() + c * basis.n_flux + basis.of_face(f);
    double const outward = face.face % 2 == 0 ? -1 : 1;
    Dense miss;
    double mean = 0, area = 0, least_alpha = std::numeric_limits<double>::infinity(), largest_flux = 0, largest_density = 0;
    for (std::size_t q = 0; q < n; ++q) {
      auto const place = cell.place(tables, static_cast<int>(q));
      Point3 const normal = EstimateCell::normal(place, face.face);
      double const size = std::sqrt(dot_product(normal, normal)),
                   flux = given_flux(cell, condition, tables, static_cast<int>(q), face.face, u);
      double value = -flux;
      Dense const functions = basis.face_values(face.face, tables.points[q]);
      for (std::size_t j = 0; j < m; ++j)
        value += outward * sigma[j] * functions[j];
      miss.push_back(value / size);
      mean += fine_rule.face_weights[q] * value;
      area += fine_rule.face_weights[q] * size;
      largest_flux = std::max(largest_flux, std::abs(flux / size));
      if (condition.type == BoundaryType::robin)
        least_alpha = std::min(least_alpha, condition.alpha.finite(place.x, "alpha"));
    }
    for (double const value : miss)
      largest_density = std::max(largest_density, std::abs(value - mean / area));
    if (largest_density > rounding_of_balance * largest_flux && (condition.value.can_jump() || condition.alpha.can_jump()))
      doubts |= jumping_flux;
    double const volume = volumes[c], poincare = of_poincare(metrics[c], volume),
                 g = metrics[c].entries[static_cast<std::size_t>(face.face / 2)];
    double const trace = std::sqrt(area * (poincare * poincare / volume + 2 * poincare * std::sqrt(g / volume)));
    left[c].rest += largest_density * std::sqrt(area) * trace + std::abs(mean) * to_face(metrics[c], face.face);
    left[c].mean += mean;
    if (condition.type == BoundaryType::robin)
      given_energy[i] = least_alpha * area;
  }
  if (largest_miss > rounding_of_balance * largest_value)
    doubts |= given_values;
  if (!lead_away(space, data, metrics, volumes, given_energy, left))
    doubts |= balance;
  result.bound.squares.resize(space.n_cells);
  for (std::size_t c = 0; c < n_cells; ++c)
    result.bound.squares[static_cast<std::int64_t>(c)] = left[c].rest * left[c].rest;
  result.bound.is_bound = doubts == 0;
  result.bound.why_no_bound = why_no_bound_by(doubts);
  return result;
}

Point3 EquilibratedFlux::at(Space const& space, ReferenceElement const& element, std::int64_t cell, Point3 const& reference) const {
  std::vector<std::int32_t> dofs(static_cast<std::size_t>(space.n_local));
  space.dofs(cell, dofs.data());
  CellGeometry geometry(space);
  geometry.reset(cell, dofs.data());
  TablesAt const tables({reference}, space, element);
  auto const j = geometry.jacobian(tables.map.gradients.data());
  FluxBasis const basis(order);
  Dense const values = basis.flux_values(reference);
  Point3 result{};
  std::size_t const of_direction = basis.n_flux / 3;
  for (std::size_t d = 0; d < 3; ++d)
    for (std::size_t i = d * of_direction; i < (d + 1) * of_direction; ++i)
      for (std::size_t e = 0; e < 3; ++e)
        result[e] += j[3 * e + d] / determinant(j) * values[i] *
                     coefficients[cell * static_cast<std::int64_t>(basis.n_flux) + static_cast<std::int64_t>(i)];
  return result;
}

}  // namespace poisson::assembly
