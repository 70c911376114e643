#include "assembly/system/box_evaluation.hpp"

#include "assembly/parallel.hpp"
#include "assembly/system/made_fields.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace poisson::assembly {

namespace {

/// Edges of the cells of a box in a direction.
std::vector<double> widths_of(Space const& space, int direction) {
  std::vector<double> widths;
  for (std::int64_t i = 0; i < space.box->cells[direction]; ++i)
    widths.push_back(space.box_width(direction, i));
  return widths;
}

/// The components of k on lines of points.
class CoefficientOnLines {
public:
  /// x outlives it.
  CoefficientOnLines(Coefficient const& coefficient, std::span<double const> x) {
    for (Function const& component : coefficient.components) {
      evaluators_.emplace_back(component.code(), static_cast<std::int64_t>(x.size()), x.data());
      values_.emplace_back(x.size());
    }
  }
  void evaluate(double y, double z) {
    for (std::size_t c = 0; c < evaluators_.size(); ++c)
      evaluators_[c](y, z, values_[c].data());
  }
  /// k in direction d at the points of the line.
  [[nodiscard]] double const* operator[](std::size_t d) const { return values_[d < values_.size() ? d : 0].data(); }

private:
  std::vector<LineEvaluator> evaluators_;
  std::vector<std::vector<double>> values_;
};

/// out[x] = sum_t coefficients[t] arrays[t][x], for n values of x.
class Combination {
public:
  void begin() { terms_.clear(); }
  void add(double coefficient, double const* array) { terms_.push_back({coefficient, array}); }
  void evaluate(std::int64_t n, double* out) const {
    std::fill_n(out, n, 0.0);
    std::size_t t = 0;
    for (; t + 3 < terms_.size(); t += 4) {
      auto const [a, u] = terms_[t];
      auto const [b, v] = terms_[t + 1];
      auto const [c, w] = terms_[t + 2];
      auto const [d, z] = terms_[t + 3];
#pragma omp simd
      for (std::int64_t x = 0; x < n; ++x)
        out[x] += (a * u[x] + b * v[x]) + (c * w[x] + d * z[x]);
    }
    for (; t < terms_.size(); ++t) {
      auto const [a, u] = terms_[t];
#pragma omp simd
      for (std::int64_t x = 0; x < n; ++x)
        out[x] += a * u[x];
    }
  }

private:
  struct Term {
    double coefficient;
    double const* array;
  };
  std::vector<Term> terms_;
};

/// `exact` - shift on lines of points in x.
class ExactOnLines {
public:
  /// The arguments outlive it.
  ExactOnLines(Function const& exact, std::vector<double> const& x, double shift)
      : exact_(exact), x_(x), shift_(shift), line_(exact.code(), std::ssize(x), x.data()) {}
  /// Throws InputError where it is not finite.
  void evaluate(double y, double z, double* values) {
    line_(y, z, values);
    bool finite = true;
    for (std::size_t i = 0; i < x_.size(); ++i) {
      finite = finite && std::isfinite(values[i]);
      values[i] -= shift_;
    }
    for (std::size_t i = 0; i < x_.size() && !finite; ++i)
      static_cast<void>(exact_.finite({x_[i], y, z}, exact_name));
  }

private:
  Function const& exact_;
  std::vector<double> const& x_;
  double shift_;
  LineEvaluator line_;
};

/// Calls visit(line, values) for all lines of a tensor product of points, y before z, with `exact` - shift on them.
template <class Visit>
void for_lines(std::array<std::vector<double>, 3> const& points, Function const& exact, double shift, Visit const& visit) {
  std::vector<double> const &x = points[0], &y = points[1], &z = points[2];
  struct Work {
    ExactOnLines exact;
    std::vector<double> values;
  };
  auto const ny = std::ssize(y);
  auto const make_work = [&] { return Work{ExactOnLines(exact, x, shift), std::vector<double>(x.size())}; };
  parallel_for(ny * std::ssize(z), make_work, [&](Work& work, std::int64_t const line) {
    work.exact.evaluate(y[line % ny], z[line / ny], work.values.data());
    visit(line, work.values.data());
  });
}

std::array<std::vector<double>, 3> nodes_of(Space const& space) {
  std::array<std::vector<double>, 3> nodes;
  for (int d = 0; d < 3; ++d)
    for (std::int64_t i = 0; i < space.box_nodes[d]; ++i)
      nodes[d].push_back(space.box_coordinate(d, i));
  return nodes;
}

/// Places in the cells of a box in a direction: point i of cell c is at [i * n_cells + c].
std::vector<double> points_of_cells(Space const& space, int direction, std::vector<double> const& places) {
  std::vector<double> result;
  for (double const t : places)
    for (std::int64_t c = 0; c < space.box->cells[direction]; ++c)
      result.push_back((1 - t) * space.box_coordinate(direction, c * space.order) +
                       t * space.box_coordinate(direction, (c + 1) * space.order));
  return result;
}

struct ErrorSums {
  double values = 0, gradients = 0, largest = 0;
};

/// Errors at the Gauss points of a row of cells after the other.
class ErrorsOfRows {
public:
  ErrorsOfRows(Space const& space, ReferenceElement const& element, Function const& exact, std::span<double const> u, double shift,
               int points)
      : space_(space), exact_(exact), u_(u), shift_(shift), m_(points), n_(space.order + 1), nx_(space.box->cells[0]) {
    std::vector<double> gauss;
    gauss_rule(m_, gauss, weights_);
    basis_ = lagrange_basis(element.nodes, gauss);
    exact_basis_ = lagrange_basis(gauss, gauss);
    for (int d = 0; d < 3; ++d) {
      points_[d] = points_of_cells(space, d, gauss);
      widths_[d] = widths_of(space, d);
    }
  }

  /// What a thread needs.
  struct Work {
    ExactOnLines lines;
    std::vector<double> exact;                      ///< at the points: [(qz m + qy) m + qx][cell]
    std::array<std::vector<double>, 3> line_of_u;   ///< u and its derivatives in y and z, on the nodes of a line
    std::array<std::vector<double>, 3> u_of_cells;  ///< the same by node of a cell: [a][cell]
    std::vector<double> error, in_x, in_y, in_z;
    Combination sum;
  };
  [[nodiscard]] Work work() const {
    auto const cells = static_cast<std::size_t>(nx_), points = static_cast<std::size_t>(m_), nodes = static_cast<std::size_t>(n_);
    std::vector<double> const line(space_.box_nodes[0]), by_cell(nodes * cells), of_cells(cells);
    return {ExactOnLines(exact_, points_[0], shift_),
            std::vector<double>(points * points * points * cells),
            {line, line, line},
            {by_cell, by_cell, by_cell},
            of_cells,
            of_cells,
            of_cells,
            of_cells,
            {}};
  }

  /// Returns the sums of errors over the row of cells at y and z.
  [[nodiscard]] ErrorSums operator()(Work& work, std::int64_t y, std::int64_t z) const {
    auto const [unused, ny, nz] = space_.box->cells;
    for (int qz = 0; qz < m_; ++qz)
      for (int qy = 0; qy < m_; ++qy)
        work.lines.evaluate(points_[1][qy * ny + y], points_[2][qz * nz + z], work.exact.data() + (qz * m_ + qy) * m_ * nx_);
    double const hy = 1 / widths_[1][y], hz = 1 / widths_[2][z];
    double const* const widths = widths_[0].data();
    double const* const weights = weights_.data();
    ErrorSums result;
    for (int qz = 0; qz < m_; ++qz)
      for (int qy = 0; qy < m_; ++qy) {
        set_lines(work, y, z, qy, qz);
        double values = 0, gradients = 0, largest = result.largest;
        for (int qx = 0; qx < m_; ++qx) {
          set_errors(work, qx, qy, qz);
          double const *const error = work.error.data(), *const in_x = work.in_x.data(), *const in_y = work.in_y.data(),
                              *const in_z = work.in_z.data();
          double of_values = 0, of_gradients = 0;
#pragma omp simd reduction(+ : of_values, of_gradients) reduction(max : largest)
          for (std::int64_t x = 0; x < nx_; ++x) {
            double const e = error[x], ex = in_x[x] / widths[x], ey = hy * in_y[x], ez = hz * in_z[x];
            of_values += widths[x] * (e * e);
            of_gradients += widths[x] * (ex * ex + ey * ey + ez * ez);
            largest = std::max(largest, std::abs(e));
          }
          values += weights[qx] * of_values;
          gradients += weights[qx] * of_gradients;
        }
        double const weight = weights[qy] * weights[qz] * widths_[1][y] * widths_[2][z];
        result.values += weight * values;
        result.gradients += weight * gradients;
        result.largest = largest;
      }
    return result;
  }

private:
  /// u and its derivatives in y and z at the points qy and qz of the cells.
  void set_lines(Work& work, std::int64_t y, std::int64_t z, int qy, int qz) const {
    auto const [nodes_x, nodes_y, nodes_z] = space_.box_nodes;
    for (std::size_t part = 0; part < 3; ++part) {
      double const* const in_y = (part == 1 ? basis_.derivatives : basis_.values).data() + qy * n_;
      double const* const in_z = (part == 2 ? basis_.derivatives : basis_.values).data() + qz * n_;
      work.sum.begin();
      for (int c = 0; c < n_; ++c)
        for (int b = 0; b < n_; ++b)
          work.sum.add(in_y[b] * in_z[c], u_.data() + ((z * space_.order + c) * nodes_y + y * space_.order + b) * nodes_x);
      double* const line = work.line_of_u[part].data();
      work.sum.evaluate(nodes_x, line);
      for (int a = 0; a < n_; ++a)
        for (std::int64_t x = 0; x < nx_; ++x)
          work.u_of_cells[part][a * nx_ + x] = line[x * space_.order + a];
    }
  }

  /// u - exact and its derivatives with respect to the cells' coordinates at a point of the cells.
  void set_errors(Work& work, int qx, int qy, int qz) const {
    double const *const value = basis_.values.data() + qx * n_, *const derivative = basis_.derivatives.data() + qx * n_;
    double const* const differences = exact_basis_.derivatives.data();
    auto const exact = [&](int x, int y, int z) { return work.exact.data() + ((z * m_ + y) * m_ + x) * nx_; };
    auto const begin = [&](double const* of_node, std::size_t part) {
      work.sum.begin();
      for (int a = 0; a < n_; ++a)
        work.sum.add(of_node[a], work.u_of_cells[part].data() + a * nx_);
    };
    begin(value, 0);
    work.sum.add(-1, exact(qx, qy, qz));
    work.sum.evaluate(nx_, work.error.data());
    begin(derivative, 0);
    for (int i = 0; i < m_; ++i)
      work.sum.add(-differences[qx * m_ + i], exact(i, qy, qz));
    work.sum.evaluate(nx_, work.in_x.data());
    begin(value, 1);
    for (int i = 0; i < m_; ++i)
      work.sum.add(-differences[qy * m_ + i], exact(qx, i, qz));
    work.sum.evaluate(nx_, work.in_y.data());
    begin(value, 2);
    for (int i = 0; i < m_; ++i)
      work.sum.add(-differences[qz * m_ + i], exact(qx, qy, i));
    work.sum.evaluate(nx_, work.in_z.data());
  }

  Space const& space_;
  Function const& exact_;
  std::span<double const> u_;
  double shift_;
  int m_, n_;  ///< points and nodes of a cell per direction
  std::int64_t nx_;
  std::vector<double> weights_;
  Basis1D basis_, exact_basis_;  ///< the element's functions, and those that are 1 at one of the points
  std::array<std::vector<double>, 3> points_, widths_;
};

}  // namespace

ErrorNorms box_error_norms(Space const& space, ReferenceElement const& element, Function const& exact, std::span<double const> u,
                           double shift, int points) {
  ErrorsOfRows const errors(space, element, exact, u, shift, points);
  std::int64_t const ny = space.box->cells[1], rows = ny * space.box->cells[2];
  std::vector<ErrorSums> of_row(rows);
  parallel_for(
      rows, [&] { return errors.work(); },
      [&](ErrorsOfRows::Work& work, std::int64_t const row) { of_row[row] = errors(work, row % ny, row / ny); });
  ErrorSums sum;
  for (ErrorSums const& row : of_row) {
    sum.values += row.values;
    sum.gradients += row.gradients;
    sum.largest = std::max(sum.largest, row.largest);
  }
  std::int64_t const nx = space.box_nodes[0];
  std::vector<double> largest(space.box_nodes[1] * space.box_nodes[2]);
  for_lines(nodes_of(space), exact, shift, [&](std::int64_t line, double const* values) {
    for (std::int64_t i = 0; i < nx; ++i)
      largest[line] = std::max(largest[line], std::abs(u[line * nx + i] - values[i]));
  });
  return {std::sqrt(sum.values), std::sqrt(sum.gradients),
          std::max(sum.largest, *std::max_element(largest.begin(), largest.end()))};
}

ExactMean box_mean_of_exact(Space const& space, Function const& exact, int points) {
  std::vector<double> gauss, of_gauss;
  gauss_rule(points, gauss, of_gauss);
  std::array<std::vector<double>, 3> places, weights;
  double volume = 1;
  for (int d = 0; d < 3; ++d) {
    places[d] = points_of_cells(space, d, gauss);
    std::vector<double> const widths = widths_of(space, d);
    for (double const weight : of_gauss)
      for (double const width : widths)
        weights[d].push_back(weight * width);
    volume *= std::accumulate(widths.begin(), widths.end(), 0.0);
  }
  auto const ny = std::ssize(places[1]);
  std::vector<double> of_line(places[1].size() * places[2].size());
  for_lines(places, exact, 0, [&](std::int64_t line, double const* values) {
    double const sum = std::inner_product(weights[0].begin(), weights[0].end(), values, 0.0);
    of_line[line] = weights[1][line % ny] * weights[2][line / ny] * sum;
  });
  return {std::accumulate(of_line.begin(), of_line.end(), 0.0), volume};
}

HostVector<double> box_exact_at_nodes(Space const& space, Function const& exact, double shift) {
  HostVector<double> result(space.n_dofs);
  std::int64_t const nx = space.box_nodes[0];
  for_lines(nodes_of(space), exact, shift,
            [&](std::int64_t line, double const* values) { std::copy_n(values, nx, result.begin() + line * nx); });
  return result;
}

BoxIntegrals box_integrals(Space const& space, ProblemData const& data, std::span<double const> u) {
  auto const [nx, ny, nz] = space.box->cells;
  std::array<std::vector<double>, 3> const widths{widths_of(space, 0), widths_of(space, 1), widths_of(space, 2)};
  std::vector<double> scale_x;
  for (double const h : widths[0])
    scale_x.push_back(1 / (h * h));
  std::array<double, 2> const gauss{0.5 - 0.5 / std::sqrt(3.), 0.5 + 0.5 / std::sqrt(3.)};
  std::array<std::vector<double>, 3> points;
  for (int d = 0; d < 3; ++d)
    for (std::int64_t i = 0; i < space.box->cells[d]; ++i)
      for (double const t : gauss)
        points[d].push_back((1 - t) * space.box_coordinate(d, i) + t * space.box_coordinate(d, i + 1));
  struct State {
    CoefficientOnLines k;
    std::vector<double> value, in_y, in_z;  ///< u and its differences in y and z at the nodes of a line, at Gauss points in y and z
  };
  auto const make_state = [&] {
    std::vector<double> const line(nx + 1);
    return State{CoefficientOnLines(data.coefficient(*space.material_ids.begin()), points[0]), line, line, line};
  };
  std::vector<BoxIntegrals> of_line(ny * nz);
  parallel_for(ny * nz, make_state, [&](State& state, std::int64_t const line) {
    std::int64_t const y = line % ny, z = line / ny, stride_y = nx + 1, stride_z = stride_y * (ny + 1);
    double const* const a = u.data() + z * stride_z + y * stride_y;
    double const *const b = a + stride_y, *const c = a + stride_z, *const d = b + stride_z;
    double sum = 0, gradients = 0;
    for (int q = 0; q < 4; ++q) {
      double const s = gauss[q & 1], t = gauss[q >> 1];
      state.k.evaluate(points[1][2 * y + (q & 1)], points[2][2 * z + (q >> 1)]);
      double *const value = state.value.data(), *const in_y = state.in_y.data(), *const in_z = state.in_z.data();
#pragma omp simd
      for (std::int64_t x = 0; x <= nx; ++x) {
        double const low = (1 - s) * a[x] + s * b[x], high = (1 - s) * c[x] + s * d[x];
        value[x] = (1 - t) * low + t * high;
        in_y[x] = (1 - t) * (b[x] - a[x]) + t * (d[x] - c[x]);
        in_z[x] = high - low;
      }
      double const *const kx = state.k[0], *const ky = state.k[1], *const kz = state.k[2];
      double const hy = 1 / (widths[1][y] * widths[1][y]), hz = 1 / (widths[2][z] * widths[2][z]);
      double const *const hx = scale_x.data(), *const width = widths[0].data();
#pragma omp simd reduction(+ : sum, gradients)
      for (std::int64_t x = 0; x < nx; ++x) {
        double const dx = value[x + 1] - value[x], squared = hx[x] * dx * dx;
        sum += width[x] * (value[x] + value[x + 1]);  // at both points together
        double both = 0;
        for (int p = 0; p < 2; ++p) {
          double const near = gauss[1 - p], far = gauss[p];
          double const dy = near * in_y[x] + far * in_y[x + 1], dz = near * in_z[x] + far * in_z[x + 1];
          both += kx[2 * x + p] * squared + ky[2 * x + p] * (hy * dy * dy) + kz[2 * x + p] * (hz * dz * dz);
        }
        gradients += width[x] * both;
      }
    }
    double const weight = widths[1][y] * widths[2][z] / 8;
    of_line[line] = {weight * sum, weight * gradients};
  });
  BoxIntegrals result;
  for (BoxIntegrals const& line : of_line) {
    result.u += line.u;
    result.gradients += line.gradients;
  }
  return result;
}

namespace {

/// u on the lines of nodes of cells x_0 <= x < x_1 in the line (y, z) of cells: where it is, or a copy of what is made.
class LinesOfNodes {
public:
  /// The lines for b, c = 0 ... p, b fastest; u at node a of cell x is at [(x - x_0) p + a].
  std::vector<double const*> const& of(Space const& space, FieldValues<double> const& u, std::int64_t y, std::int64_t z,
                                       std::int64_t first, std::int64_t end) {
    int const p = space.order;
    std::int64_t const nodes = (end - first) * p + 1;
    bool const made = static_cast<bool>(u.fill());
    if (made)
      copies_.resize(static_cast<std::size_t>((p + 1) * (p + 1) * nodes));
    lines_.clear();
    for (int c = 0; c <= p; ++c)
      for (int b = 0; b <= p; ++b) {
        std::int64_t const node = ((z * p + c) * space.box_nodes[1] + y * p + b) * space.box_nodes[0] + first * p;
        double* const copy = copies_.data() + std::ssize(lines_) * nodes;
        if (made)
          u.read(node, nodes, copy);
        lines_.push_back(made ? copy : u.all().data() + node);
      }
    return lines_;
  }

private:
  std::vector<double> copies_;
  std::vector<double const*> lines_;
};

/// Calls visit(y, z, x_0, x_1) for the lines of cells that have the values first ... first + n - 1, `components` of every cell.
template <class Visit>
void for_lines_of_cells(Space const& space, std::int64_t first, std::int64_t n, std::int64_t components, Visit const& visit) {
  auto const [nx, ny, nz] = space.box->cells;
  std::int64_t const end = (first + n + components - 1) / components;
  for (std::int64_t cell = first / components; cell < end;) {
    std::int64_t const line = cell / nx, line_end = std::min((line + 1) * nx, end);
    visit(line % ny, line / ny, cell - line * nx, line_end - line * nx);
    cell = line_end;
  }
}

/// k at the centres of the cells of a line, where it is diagonal code.
class LinesOfCoefficient {
public:
  /// Of the cells from `first` to `last`. The other arguments outlive it.
  LinesOfCoefficient(Coefficient const& coefficient, std::array<std::vector<double>, 3> const& centres, std::int64_t first,
                     std::int64_t last)
      : coefficient_(coefficient), centres_(centres), x_(centres[0]) {
    std::int64_t const nx = std::ssize(x_);
    if (first / nx == last / nx) {
      begin_ = first % nx;
      x_ = x_.subspan(begin_, last - first + 1);
    }
    on_line_.emplace(coefficient, x_);
  }
  /// On the line (y, z) of cells, of which it has those begin <= x < end. Throws InputError where k must not have its value.
  void evaluate(std::int64_t y, std::int64_t z, std::int64_t begin, std::int64_t end) {
    on_line_->evaluate(centres_[1][y], centres_[2][z]);
    for (std::int64_t x = begin; x < end; ++x)
      for (double const k : at(x))
        if (!(k > 0 && std::isfinite(k)))
          static_cast<void>(coefficient_({centres_[0][x], centres_[1][y], centres_[2][z]}, 0));  // throws
  }
  /// k in x, y, z of cell x of the line.
  [[nodiscard]] Point3 at(std::int64_t x) const {
    std::int64_t const i = x - begin_;
    return {(*on_line_)[0][i], (*on_line_)[1][i], (*on_line_)[2][i]};
  }

private:
  Coefficient const& coefficient_;
  std::array<std::vector<double>, 3> const& centres_;
  std::span<double const> x_;
  std::int64_t begin_ = 0;
  std::optional<CoefficientOnLines> on_line_;
};

using Centres = std::shared_ptr<std::array<std::vector<double>, 3> const>;

/// k at the centres of cells, `components` values each, where it is diagonal code.
struct BoxCoefficients {
  Space const* space;
  Coefficient const* coefficient;
  Centres centres;
  std::int64_t components = 1;

  /// Writes the values first ... first + n - 1.
  void operator()(std::int64_t first, std::int64_t n, double* out) const {
    auto const [nx, ny, nz] = space->box->cells;
    LinesOfCoefficient k(*coefficient, *centres, first / components, (first + n - 1) / components);
    for_lines_of_cells(*space, first, n, components,
                       [&, nx = nx, ny = ny](std::int64_t y, std::int64_t z, std::int64_t begin, std::int64_t end) {
                         k.evaluate(y, z, begin, end);
                         for (std::int64_t x = begin; x < end; ++x)
                           put_of_cell(k.at(x).data(), (z * ny + y) * nx + x, components, first, n, out);
                       });
  }
};

/// grad u at the centres of cells, or -k grad u: three values each. Trilinear elements.
struct BoxGradients {
  Space const* space;
  FieldValues<double> u;
  Coefficient const* coefficient = nullptr;  ///< null: the gradient
  Centres centres = {};

  /// Writes the values first ... first + n - 1.
  void operator()(std::int64_t first, std::int64_t n, double* out) const {
    auto const [nx, ny, nz] = space->box->cells;
    LinesOfNodes lines;
    std::optional<LinesOfCoefficient> k;
    if (coefficient != nullptr)
      k.emplace(*coefficient, *centres, first / 3, (first + n - 1) / 3);
    for_lines_of_cells(*space, first, n, 3,
                       [&, nx = nx, ny = ny](std::int64_t y, std::int64_t z, std::int64_t begin, std::int64_t end) {
                         auto const& of_line = lines.of(*space, u, y, z, begin, end);
                         double const *const a = of_line[0], *const b = of_line[1], *const c = of_line[2], *const d = of_line[3];
                         if (k)
                           k->evaluate(y, z, begin, end);
                         for (std::int64_t x = 0; x < end - begin; ++x) {
                           double const gx = (a[x + 1] - a[x]) + (b[x + 1] - b[x]) + (c[x + 1] - c[x]) + (d[x + 1] - d[x]);
                           double const gy = (b[x] - a[x]) + (b[x + 1] - a[x + 1]) + (d[x] - c[x]) + (d[x + 1] - c[x + 1]);
                           double const gz = (c[x] - a[x]) + (c[x + 1] - a[x + 1]) + (d[x] - b[x]) + (d[x + 1] - b[x + 1]);
                           Point3 const h = space->box_cell_size({begin + x, y, z});
                           Point3 value{0.25 * gx / h[0], 0.25 * gy / h[1], 0.25 * gz / h[2]};
                           if (k) {
                             Point3 const of_cell = k->at(begin + x);
                             for (int e = 0; e < 3; ++e)
                               value[e] *= -of_cell[e];
                           }
                           put_of_cell(value.data(), (z * ny + y) * nx + begin + x, 3, first, n, out);
                         }
                       });
  }
};

/// k, -k grad u, or grad u at the centres of the cells of any box.
struct BoxCentres {
  enum class What { coefficient, flux, gradient };

  Space const* space;
  FieldValues<double> u;
  std::shared_ptr<CopiesOfData> copies;
  Basis1D centre;  ///< of the element's functions
  What what = What::gradient;
  std::int64_t components = 3;

  /// Writes the values first ... first + n - 1.
  void operator()(std::int64_t first, std::int64_t n, double* out) const {
    auto const [nx, ny, nz] = space->box->cells;
    LinesOfNodes lines;
    std::unique_ptr<ProblemData> data = what == What::gradient ? nullptr : copies->take();
    for_lines_of_cells(*space, first, n, components,
                       [&, nx = nx, ny = ny](std::int64_t y, std::int64_t z, std::int64_t begin, std::int64_t end) {
                         std::vector<double const*> const* const of_line =
                             what == What::coefficient ? nullptr : &lines.of(*space, u, y, z, begin, end);
                         for (std::int64_t x = begin; x < end; ++x) {
                           std::int64_t const cell = (z * ny + y) * nx + x;
                           Point3 gradient{};
                           if (of_line != nullptr)
                             gradient = gradient_of(*of_line, {x, y, z}, x - begin);
                           if (what == What::gradient) {
                             put_of_cell(gradient.data(), cell, components, first, n, out);
                             continue;
                           }
                           unsigned const material = space->material(cell);
                           Tensor const k = data->coefficient(material)(middle({x, y, z}), material);
                           if (what == What::coefficient) {
                             constexpr std::array<int, 6> order_of_vtk{0, 1, 2, 3, 5, 4};  // XX, YY, ZZ, XY, YZ, XZ
                             std::array<double, 6> values{};
                             for (std::size_t e = 0; e < 6; ++e)
                               values[e] = k.entries[order_of_vtk[e]];
                             put_of_cell(values.data(), cell, components, first, n, out);
                             continue;
                           }
                           Point3 conducted = k * gradient;
                           for (double& value : conducted)
                             value = -value;
                           put_of_cell(conducted.data(), cell, components, first, n, out);
                         }
                       });
    if (data)
      copies->give_back(std::move(data));
  }

private:
  [[nodiscard]] Point3 middle(std::array<std::int64_t, 3> const& cell) const {
    Point3 x{};
    int const p = space->order;
    for (int d = 0; d < 3; ++d)
      x[d] = 0.5 * (space->box_coordinate(d, cell[d] * p) + space->box_coordinate(d, (cell[d] + 1) * p));
    return x;
  }
  [[nodiscard]] Point3 gradient_of(std::vector<double const*> const& lines, std::array<std::int64_t, 3> const& cell,
                                   std::int64_t in_lines) const {
    int const p = space->order;
    double const *const value = centre.values.data(), *const slope = centre.derivatives.data();
    Point3 result{};
    for (int c = 0; c <= p; ++c)
      for (int b = 0; b <= p; ++b) {
        double const* const line = lines[c * (p + 1) + b] + in_lines * p;
        double of_values = 0, of_slopes = 0;
        for (int a = 0; a <= p; ++a) {
          of_values += value[a] * line[a];
          of_slopes += slope[a] * line[a];
        }
        result[0] += value[c] * value[b] * of_slopes;
        result[1] += value[c] * slope[b] * of_values;
        result[2] += slope[c] * value[b] * of_values;
      }
    Point3 const h = space->box_cell_size(cell);
    for (int d = 0; d < 3; ++d)
      result[d] /= h[d];
    return result;
  }
};

/// `exact` - shift at the nodes of a box. NaN where it is not finite.
struct BoxExact {
  Space const* space;
  Function const* exact;
  double shift = 0;
  std::shared_ptr<std::array<std::vector<double>, 3> const> nodes;

  /// Writes the values first ... first + n - 1.
  void operator()(std::int64_t first, std::int64_t n, double* out) const {
    auto const& [x, y, z] = *nodes;
    auto const nx = std::ssize(x);
    // A piece of one line, or whole lines.
    bool const one_line = first / nx == (first + n - 1) / nx;
    std::int64_t const begin = one_line ? first % nx : 0, count = one_line ? n : nx;
    LineEvaluator line(exact->code(), count, x.data() + begin);
    std::vector<double> values(static_cast<std::size_t>(count));
    for (std::int64_t node = first; node < first + n;) {
      std::int64_t const row = node / nx, end = std::min((row + 1) * nx, first + n);
      line(y[row % std::ssize(y)], z[row / std::ssize(y)], values.data());
      for (; node < end; ++node)
        out[node - first] = values[node - row * nx - begin] - shift;
    }
  }
};

/// Whether k and grad u can be made line by line: trilinear elements of one material, where k is diagonal code.
bool has_lines_of_cells(Space const& space, ProblemData const& data) {
  return space.order == 1 && space.material_ids.size() == 1 && data.diagonal_code();
}

}  // namespace

FieldValues<double> made_exact(Space const& space, Function const& exact, double shift) {
  return {static_cast<std::size_t>(space.n_dofs),
          BoxExact{&space, &exact, shift, std::make_shared<std::array<std::vector<double>, 3> const>(nodes_of(space))}};
}

void set_box_cells(Space const& space, ReferenceElement const& element, ProblemData const& data, FieldValues<double> const& u,
                   bool gradient, SolutionFields& fields) {
  std::size_t const n_cells = space.n_cells;
  if (!has_lines_of_cells(space, data)) {
    BoxCentres cells{&space, u, std::make_shared<CopiesOfData>(data), lagrange_basis(element.nodes, {0.5})};
    auto const made = [&](BoxCentres::What what, int components) {
      cells.what = what;
      cells.components = components;
      return FieldValues<double>(components * n_cells, cells);
    };
    fields.coefficient = made(BoxCentres::What::coefficient, fields.coefficient_components);
    if (!std::ranges::all_of(space.material_ids, [&](unsigned id) { return data.coefficient(id).is_constant(); }))
      try_all(fields.coefficient);
    fields.flux = made(BoxCentres::What::flux, 3);
    if (gradient)
      fields.gradient = made(BoxCentres::What::gradient, 3);
    fields.material = {n_cells, [&space](std::int64_t first, std::int64_t n, int* out) {
                         for (std::int64_t i = 0; i < n; ++i)
                           out[i] = static_cast<int>(space.material(first + i));
                       }};
    return;
  }
  unsigned const material = *space.material_ids.begin();
  Coefficient const& coefficient = data.coefficient(material);
  auto const components = static_cast<std::size_t>(fields.coefficient_components);
  auto centres = std::make_shared<std::array<std::vector<double>, 3>>();
  for (int d = 0; d < 3; ++d)
    for (std::int64_t i = 0; i < space.box->cells[d]; ++i)
      (*centres)[d].push_back(0.5 * (space.box_coordinate(d, i) + space.box_coordinate(d, i + 1)));
  fields.coefficient = {components * n_cells, BoxCoefficients{&space, &coefficient, centres, fields.coefficient_components}};
  if (!coefficient.is_constant())
    try_all(fields.coefficient);
  fields.material = {n_cells,
                     [material](std::int64_t, std::int64_t n, int* out) { std::fill_n(out, n, static_cast<int>(material)); }};
  fields.flux = {3 * n_cells, BoxGradients{&space, u, &coefficient, centres}};
  if (gradient)
    fields.gradient = {3 * n_cells, BoxGradients{&space, u}};
}

}  // namespace poisson::assembly
