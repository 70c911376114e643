#include "assembly/system/box_evaluation.hpp"

#include "assembly/parallel.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
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
  CoefficientOnLines(Coefficient const& coefficient, std::vector<double> const& x) {
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

}  // namespace

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
    return State{CoefficientOnLines(data.coefficient(0), points[0]), line, line, line};
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

void fill_box_cells(Space const& space, ProblemData const& data, std::span<double const> u, SolutionFields& fields) {
  auto const [nx, ny, nz] = space.box->cells;
  Coefficient const& coefficient = data.coefficient(0);
  auto const components = static_cast<std::size_t>(fields.coefficient_components);
  std::array<std::vector<double>, 3> centres;
  for (std::size_t d = 0; d < 3; ++d)
    for (std::int64_t i = 0; i < space.box->cells[d]; ++i)
      centres[d].push_back(0.5 * (space.box_coordinate(static_cast<int>(d), i) + space.box_coordinate(static_cast<int>(d), i + 1)));
  auto const make_state = [&] { return CoefficientOnLines(coefficient, centres[0]); };
  std::fill(fields.material.begin(), fields.material.end(), 0);
  parallel_for(ny * nz, make_state, [&](CoefficientOnLines& k_on_line, std::int64_t const line) {
    std::int64_t const y = line % ny, z = line / ny;
    k_on_line.evaluate(centres[1][y], centres[2][z]);
    std::int64_t const stride_y = nx + 1, stride_z = stride_y * (ny + 1);
    double const* const a = u.data() + z * stride_z + y * stride_y;
    double const *const b = a + stride_y, *const c = a + stride_z, *const d = b + stride_z;
    for (std::int64_t x = 0; x < nx; ++x) {
      std::int64_t const cell = line * nx + x;
      Point3 k{};
      bool admissible = true;
      for (std::size_t e = 0; e < 3; ++e) {
        k[e] = k_on_line[e][x];
        admissible = admissible && k[e] > 0 && std::isfinite(k[e]);
      }
      if (!admissible)
        static_cast<void>(coefficient({centres[0][x], centres[1][y], centres[2][z]}, 0));  // throws
      double const gx = (a[x + 1] - a[x]) + (b[x + 1] - b[x]) + (c[x + 1] - c[x]) + (d[x + 1] - d[x]);
      double const gy = (b[x] - a[x]) + (b[x + 1] - a[x + 1]) + (d[x] - c[x]) + (d[x + 1] - c[x + 1]);
      double const gz = (c[x] - a[x]) + (c[x + 1] - a[x + 1]) + (d[x] - b[x]) + (d[x + 1] - b[x + 1]);
      Point3 const h = space.box_cell_size({x, y, z});
      fields.flux[3 * cell] = -k[0] * (0.25 * gx / h[0]);
      fields.flux[3 * cell + 1] = -k[1] * (0.25 * gy / h[1]);
      fields.flux[3 * cell + 2] = -k[2] * (0.25 * gz / h[2]);
      for (std::size_t e = 0; e < components; ++e)
        fields.coefficient[cell * static_cast<std::int64_t>(components) + static_cast<std::int64_t>(e)] = k[e];
    }
  });
}

}  // namespace poisson::assembly
