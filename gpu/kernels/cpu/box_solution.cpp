#include "gpu/kernels/box_solution.hpp"

#include "gpu/kernels/cpu/cpu.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <limits>
#include <numeric>
#include <vector>

namespace poisson {

namespace {

/// A function on lines of places in x.
class FunctionOnLines {
public:
  FunctionOnLines(BoxFunction const& function, std::int64_t n)
      : function_(function),
        code_(function.code.instructions, function.code.instructions + function.code.size),
        line_(code_, n, function.at[0]),
        values_(static_cast<std::size_t>(n), function.constant) {}
  FunctionOnLines(FunctionOnLines const&) = delete;
  FunctionOnLines& operator=(FunctionOnLines const&) = delete;
  /// The values on the line at these places in y and z; they stay until the next call.
  double const* operator()(std::int64_t y, std::int64_t z) {
    if (!function_.is_constant())
      line_(function_.at[1][y], function_.at[2][z], values_.data());
    return values_.data();
  }

private:
  BoxFunction const& function_;
  ExpressionCode code_;
  LineEvaluator line_;
  std::vector<double> values_;
};

/// The number of the first value that is not finite; n: all are.
std::int64_t first_not_finite(std::int64_t n, double const* values) {
  double off = 0;  // NaN from the first such value on
#pragma omp simd reduction(+ : off)
  for (std::int64_t i = 0; i < n; ++i)
    off += values[i] - values[i];
  if (off == 0)
    return n;
  std::int64_t i = 0;
  while (passes(ValueCheck::finite, values[i]))
    ++i;
  return i;
}

struct LineSums {
  double first, second, third;  ///< the third one of errors is the largest
};

/// Adds lines in their order.
void add_lines(std::int64_t lines, LineSums const* of_line, double* sums) {
  for (std::int64_t line = 0; line < lines; ++line) {
    sums[0] += of_line[line].first;
    sums[1] += of_line[line].second;
  }
}

/// The integrals of u and of grad u . k grad u over lines of cells in x. Points in y and z come one after the other; those in x
/// are in one loop.
template <bool constant, bool masked>
void add_integrals(Context& context, BoxCells const& box, BoxCoefficient const& k, std::int64_t first_plane, std::int64_t end_plane,
                   double const* u, double* sums) {
  std::int64_t const nx = box.cells[0], ny = box.cells[1], lines = ny * (end_plane - first_plane);
  std::array<double, 2> const gauss{0.5 - 0.5 / std::sqrt(3.), 0.5 + 0.5 / std::sqrt(3.)};
  auto* const of_line = static_cast<cpu::CpuContext&>(context).partial_sums<LineSums>(lines);
  double const length_of_all = std::accumulate(box.edges[0], box.edges[0] + nx, 0.0);
  std::vector<double> scale_x(static_cast<std::size_t>(nx));
  for (std::int64_t x = 0; x < nx; ++x)
    scale_x[x] = 1 / (box.edges[0][x] * box.edges[0][x]);
#pragma omp parallel if (150 * lines * nx >= cpu::work_worth_threads)
  {
    std::deque<FunctionOnLines> functions;
    for (std::int32_t c = 0; c < k.components && !constant; ++c)
      functions.emplace_back(k.functions[c], 2 * nx);
    // u and its differences in y and z at the nodes of a line, at Gauss points in y and z
    auto const size = static_cast<std::size_t>(nx) + 1;
    std::vector<double> u_of_line(size), y_of_line(size), z_of_line(size);
    double *const value = u_of_line.data(), *const in_y = y_of_line.data(), *const in_z = z_of_line.data();
    // Edges of the cells that count, and 0.
    std::vector<double> counted(static_cast<std::size_t>(masked ? nx : 0));
    double const *const hx = scale_x.data(), *const width = masked ? counted.data() : box.edges[0];
#pragma omp for schedule(dynamic)
    for (std::int64_t line = 0; line < lines; ++line) {
      std::int64_t const y = line % ny, z = first_plane + line / ny;
      double const* const a = u + z * box.step_z() + y * box.step_y();
      double const *const b = a + box.step_y(), *const c = a + box.step_z(), *const d = b + box.step_z();
      double const hy = 1 / (box.edges[1][y] * box.edges[1][y]), hz = 1 / (box.edges[2][z] * box.edges[2][z]);
      double sum = 0, gradients = 0, length = masked ? 0 : length_of_all;
      for (std::int64_t x = 0; x < nx && masked; ++x)
        length += counted[x] = box.counts(x, y, z) ? box.edges[0][x] : 0;
      if (length == 0) {
        of_line[line] = {0, 0, 0};
        continue;
      }
      for (int q = 0; q < 4; ++q) {
        double const s = gauss[q & 1], t = gauss[q >> 1];
#pragma omp simd
        for (std::int64_t x = 0; x <= nx; ++x) {
          double const low = (1 - s) * a[x] + s * b[x], high = (1 - s) * c[x] + s * d[x];
          value[x] = (1 - t) * low + t * high;
          in_y[x] = (1 - t) * (b[x] - a[x]) + t * (d[x] - c[x]);
          in_z[x] = high - low;
        }
        std::array<double, 3> fixed{};
        std::array<double const*, 3> varying{};
        for (std::size_t e = 0; e < 3; ++e) {
          std::size_t const of = k.components == 1 ? 0 : e;
          if (constant)
            fixed[e] = k.functions[of].constant;
          else if (k.values[of] != nullptr)
            varying[e] = k.values[of] + (2 * (z - first_plane) + (q >> 1)) * k.step_z + (2 * y + (q & 1)) * k.step_y;
          else
            varying[e] = e > of ? varying[of] : functions[of](2 * y + (q & 1), 2 * z + (q >> 1));
        }
        double const *const kx = varying[0], *const ky = varying[1], *const kz = varying[2];
        double const fixed_x = fixed[0], fixed_y = fixed[1], fixed_z = fixed[2];
#pragma omp simd reduction(+ : sum, gradients)
        for (std::int64_t x = 0; x < nx; ++x) {
          double const dx = value[x + 1] - value[x], squared = hx[x] * dx * dx;
          sum += width[x] * (value[x] + value[x + 1]);  // at both points together
          double both = 0;
          for (int p = 0; p < 2; ++p) {
            double const near = gauss[1 - p], far = gauss[p];
            double const dy = near * in_y[x] + far * in_y[x + 1], dz = near * in_z[x] + far * in_z[x + 1];
            both += (constant ? fixed_x : kx[2 * x + p]) * squared + (constant ? fixed_y : ky[2 * x + p]) * (hy * dy * dy) +
                    (constant ? fixed_z : kz[2 * x + p]) * (hz * dz * dz);
          }
          gradients += masked && width[x] == 0 ? 0 : width[x] * both;  // k may be anything in another material
        }
      }
      double const weight = box.edges[1][y] * box.edges[2][z] / 8;
      of_line[line] = {weight * sum, weight * gradients, 8 * weight * length};
    }
  }
  add_lines(lines, of_line, sums);
  for (std::int64_t line = 0; line < lines; ++line)
    sums[2] += of_line[line].third;
}

/// Neighbouring cells whose sums fill vector registers.
constexpr int lanes = 8;

/// The sum over the lanes, always in the same order.
double sum_of_lanes(double (&sums)[lanes]) {
  for (int half = lanes / 2; half > 0; half /= 2)
    for (int w = 0; w < half; ++w)
      sums[w] += sums[w + half];
  return sums[0];
}

/// The errors in a row of cells at their Gauss points: point (qx, qy, qz) of cell x is at [((qz m + qy) m + qx) stride + x]. From n
/// to `stride`, a multiple of `lanes`, errors and widths are 0.
struct RowOfErrors {
  std::int64_t stride;
  double const *error, *widths, *inverse_widths;
};

/// The sums of errors over a row, of which y and z have these inverse edges. m: `points`, or where that is 0, quadrature.n.
template <int points>
LineSums sums_of_row(RowOfErrors const& row, BoxQuadrature const& quadrature, double inverse_y, double inverse_z) {
  int const m = points > 0 ? points : quadrature.n;
  LineSums result{0, 0, 0};
  double largest[lanes]{};
  for (int qz = 0; qz < m; ++qz)
    for (int qy = 0; qy < m; ++qy) {
      double values = 0, gradients = 0;
      for (int qx = 0; qx < m; ++qx) {
        auto const errors_at = [&](int x, int y, int z) { return row.error + ((z * m + y) * m + x) * row.stride; };
        auto const &in_x = quadrature.derivative[qx], &in_y = quadrature.derivative[qy], &in_z = quadrature.derivative[qz];
        double of_values[lanes]{}, of_gradients[lanes]{};
        for (std::int64_t first = 0; first < row.stride; first += lanes) {
          double x_part[lanes]{}, y_part[lanes]{}, z_part[lanes]{};
          for (int i = 0; i < m; ++i) {
            double const *const of_x = errors_at(i, qy, qz) + first, *const of_y = errors_at(qx, i, qz) + first,
                                *const of_z = errors_at(qx, qy, i) + first;
            double const a = in_x[i], b = in_y[i], c = in_z[i];
#pragma omp simd
            for (int w = 0; w < lanes; ++w) {
              x_part[w] += a * of_x[w];
              y_part[w] += b * of_y[w];
              z_part[w] += c * of_z[w];
            }
          }
          double const *const error = errors_at(qx, qy, qz) + first, *const width = row.widths + first,
                              *const inverse = row.inverse_widths + first;
#pragma omp simd
          for (int w = 0; w < lanes; ++w) {
            double const e = error[w], ex = inverse[w] * x_part[w], ey = inverse_y * y_part[w], ez = inverse_z * z_part[w];
            of_values[w] += width[w] * (e * e);
            of_gradients[w] += width[w] * (ex * ex + ey * ey + ez * ez);
            largest[w] = std::max(largest[w], std::abs(e));
          }
        }
        values += quadrature.weight[qx] * sum_of_lanes(of_values);
        gradients += quadrature.weight[qx] * sum_of_lanes(of_gradients);
      }
      double const weight = quadrature.weight[qy] * quadrature.weight[qz];
      result.first += weight * values;
      result.second += weight * gradients;
    }
  double const area = 1 / (inverse_y * inverse_z);
  result.first *= area;
  result.second *= area;
  for (double const of_lane : largest)
    result.third = std::max(result.third, of_lane);
  return result;
}

/// Bytes of a cell: 8 of u. The errors of a row of cells are with each thread, and stay in its cache.
template <int points>
void add_errors(Context& context, BoxCells const& box, BoxQuadrature const& quadrature, BoxFunction const& exact, double shift,
                std::int64_t first_plane, std::int64_t end_plane, double const* u, double* sums, std::int64_t* failed) {
  std::int64_t const m = quadrature.n, nx = box.cells[0], ny = box.cells[1], nz = box.cells[2];
  std::int64_t const rows = ny * (end_plane - first_plane), stride = (nx + lanes - 1) / lanes * lanes;
  auto* const of_row = static_cast<cpu::CpuContext&>(context).partial_sums<LineSums>(rows);
  std::vector<double> widths(static_cast<std::size_t>(stride)), inverse_widths(static_cast<std::size_t>(stride));
  for (std::int64_t x = 0; x < nx; ++x) {
    widths[x] = box.edges[0][x];
    inverse_widths[x] = 1 / box.edges[0][x];
  }
  std::int64_t lowest = *failed;
#pragma omp parallel reduction(min : lowest) if (rows * nx * m * m * m * (8 + exact.code.size) >= cpu::work_worth_threads)
  {
    FunctionOnLines exact_on_lines(exact, m * nx);
    std::vector<double> errors(static_cast<std::size_t>(m * m * m * stride)), u_of_line(static_cast<std::size_t>(nx) + 1);
    double* const line = u_of_line.data();
#pragma omp for schedule(dynamic)
    for (std::int64_t row = 0; row < rows; ++row) {
      std::int64_t const y = row % ny, z = first_plane + row / ny;
      double const* const a = u + z * box.step_z() + y * box.step_y();
      double const *const b = a + box.step_y(), *const c = a + box.step_z(), *const d = b + box.step_z();
      for (std::int64_t qz = 0; qz < m; ++qz)
        for (std::int64_t qy = 0; qy < m; ++qy) {
          double const* const values = exact_on_lines(qy * ny + y, qz * nz + z);
          if (std::int64_t const i = first_not_finite(m * nx, values); i < m * nx)
            lowest = std::min(lowest, (((z * ny + y) * m + qz) * m + qy) * m * nx + i);
          double const s = quadrature.point[qy], t = quadrature.point[qz];
#pragma omp simd
          for (std::int64_t x = 0; x <= nx; ++x)
            line[x] = (1 - t) * ((1 - s) * a[x] + s * b[x]) + t * ((1 - s) * c[x] + s * d[x]);
          for (std::int64_t qx = 0; qx < m; ++qx) {
            double const r = quadrature.point[qx];
            double const* const of_point = values + qx * nx;
            double* const error = errors.data() + ((qz * m + qy) * m + qx) * stride;
#pragma omp simd
            for (std::int64_t x = 0; x < nx; ++x)
              error[x] = ((1 - r) * line[x] + r * line[x + 1]) - (of_point[x] - shift);
          }
        }
      of_row[row] = sums_of_row<points>({stride, errors.data(), widths.data(), inverse_widths.data()}, quadrature,
                                        1 / box.edges[1][y], 1 / box.edges[2][z]);
    }
  }
  *failed = lowest;
  add_lines(rows, of_row, sums);
  for (std::int64_t row = 0; row < rows; ++row)
    sums[2] = std::max(sums[2], of_row[row].third);
}

/// Lines of nodes around a line of cells: bit 0 is the step in y, bit 1 that in z.
struct NodeLines {
  double const* u[4];
  double const* u_low[4];
};
/// What a line of cells gives to the nodes of these lines: to the lower node of every cell in x, and to the upper one.
struct LineProduct {
  double* lower[4];
  double* upper[4];
};
/// What gradients in a direction are multiplied with in a cell: `of_line` times the edge of the cell in x, or over it.
struct LineScale {
  double const* edges;
  double const* inverse_edges;
  double of_line[3];
};

/// The matrix (2 1; 1 2), or (near far; far near), applied in both directions of a square whose corners are numbered by two bits.
struct OnSquare {
  double v[4];
  [[gnu::always_inline]] void apply(double same, double other) {
    double const a = same * v[0] + other * v[1], b = other * v[0] + same * v[1], c = same * v[2] + other * v[3],
                 d = other * v[2] + same * v[3];
    v[0] = same * a + other * c;
    v[2] = other * a + same * c;
    v[1] = same * b + other * d;
    v[3] = other * b + same * d;
  }
};

/// k of the cells of a line, or at its points: k[c][x], or k[c][2 (qy + 2 qz) nx + 2 x + qx].
template <bool has_low, bool at_points>
void multiply_line(std::int64_t nx, NodeLines const& nodes, std::array<double const*, 3> const& k, LineScale const& scale,
                   LineProduct const& out) {
  double const near = 0.5 + 0.5 / std::sqrt(3.), far = 0.5 - 0.5 / std::sqrt(3.), same = at_points ? near : 2,
               other = at_points ? far : 1;
  NodeLines const of = nodes;
  LineProduct const to = out;
  LineScale const by = scale;
  double const *const kx = k[0], *const ky = k[1], *const kz = k[2];
#pragma omp simd
  for (std::int64_t x = 0; x < nx; ++x) {
    auto const difference = [&](int line, std::int64_t i, int before, std::int64_t j) {
      double value = of.u[line][i] - of.u[before][j];
      if constexpr (has_low)
        value += of.u_low[line][i] - of.u_low[before][j];
      return value;
    };
    OnSquare in_x{{difference(0, x + 1, 0, x), difference(1, x + 1, 1, x), difference(2, x + 1, 2, x), difference(3, x + 1, 3, x)}};
    OnSquare in_y{{difference(1, x, 0, x), difference(1, x + 1, 0, x + 1), difference(3, x, 2, x), difference(3, x + 1, 2, x + 1)}};
    OnSquare in_z{{difference(2, x, 0, x), difference(2, x + 1, 0, x + 1), difference(3, x, 1, x), difference(3, x + 1, 1, x + 1)}};
    in_x.apply(same, other);
    in_y.apply(same, other);
    in_z.apply(same, other);
    double const sx = by.of_line[0] * by.inverse_edges[x], sy = by.of_line[1] * by.edges[x], sz = by.of_line[2] * by.edges[x];
    if constexpr (at_points) {
      auto const at = [&](double const* values, int qx, int line) { return values[line * 2 * nx + 2 * x + qx]; };
      for (int q = 0; q < 4; ++q) {
        in_x.v[q] *= sx * (at(kx, 0, q) + at(kx, 1, q));
        in_y.v[q] *= sy * (at(ky, q & 1, q & 2) + at(ky, q & 1, (q & 2) + 1));
        in_z.v[q] *= sz * (at(kz, q & 1, q >> 1) + at(kz, q & 1, (q >> 1) + 2));
      }
      in_x.apply(same, other);
      in_y.apply(same, other);
      in_z.apply(same, other);
    } else {
      for (int q = 0; q < 4; ++q) {
        in_x.v[q] *= sx * kx[x];
        in_y.v[q] *= sy * ky[x];
        in_z.v[q] *= sz * kz[x];
      }
    }
    to.lower[0][x] = -in_x.v[0] - in_y.v[0] - in_z.v[0];
    to.lower[1][x] = -in_x.v[1] + in_y.v[0] - in_z.v[2];
    to.lower[2][x] = -in_x.v[2] - in_y.v[2] + in_z.v[0];
    to.lower[3][x] = -in_x.v[3] + in_y.v[2] + in_z.v[2];
    to.upper[0][x] = in_x.v[0] - in_y.v[1] - in_z.v[1];
    to.upper[1][x] = in_x.v[1] + in_y.v[1] - in_z.v[3];
    to.upper[2][x] = in_x.v[2] - in_y.v[3] + in_z.v[1];
    to.upper[3][x] = in_x.v[3] + in_y.v[3] + in_z.v[3];
  }
}

/// Lines of cells of one colour share no nodes; colours come one after the other, so that sums have one order.
template <bool has_low, bool at_points>
void subtract_lines(BoxCells const& box, BoxCellCoefficient const& k, std::int64_t first_plane, std::int64_t end_plane,
                    double const* u, double const* u_low, double* r) {
  std::int64_t const nx = box.cells[0], ny = box.cells[1], lines = ny * (end_plane - first_plane);
  double const weight = at_points ? 1.0 / 8 : 1.0 / 36;
  std::vector<double> inverse(static_cast<std::size_t>(nx));
  std::transform(box.edges[0], box.edges[0] + nx, inverse.begin(), [](double edge) { return 1 / edge; });
#pragma omp parallel if (100 * lines * nx >= cpu::work_worth_threads)
  {
    std::vector<double> products(static_cast<std::size_t>(8 * nx)), of_k(static_cast<std::size_t>(at_points ? 0 : 3 * nx));
    LineProduct product{};
    for (int j = 0; j < 4; ++j) {
      product.lower[j] = products.data() + 2 * j * nx;
      product.upper[j] = product.lower[j] + nx;
    }
    std::vector<double> points(static_cast<std::size_t>(at_points ? 3 * 8 * nx : 0));
    for (int color = 0; color < 4; ++color) {
      std::int64_t const first_y = color & 1, first_z = first_plane + (((first_plane & 1) ^ (color >> 1)) & 1);
      std::int64_t const of_plane = (ny - first_y + 1) / 2, planes = (end_plane - first_z + 1) / 2;
#pragma omp for schedule(static)
      for (std::int64_t i = 0; i < of_plane * std::max<std::int64_t>(planes, 0); ++i) {
        std::int64_t const y = first_y + 2 * (i % of_plane), z = first_z + 2 * (i / of_plane);
        NodeLines nodes{};
        for (int j = 0; j < 4; ++j) {
          std::int64_t const at = (z + (j >> 1)) * box.step_z() + (y + (j & 1)) * box.step_y();
          nodes.u[j] = u + at;
          nodes.u_low[j] = has_low ? u_low + at : nullptr;
        }
        std::array<double const*, 3> here{};
        for (std::size_t c = 0; c < static_cast<std::size_t>(k.components); ++c) {
          if constexpr (at_points) {
            double* const to = points.data() + c * 8 * static_cast<std::size_t>(nx);
            for (std::int64_t q = 0; q < 4; ++q)
              std::copy_n(k.points[c] + ((2 * (z - first_plane) + (q >> 1)) * 2 * ny + 2 * y + (q & 1)) * 2 * nx, 2 * nx,
                          to + q * 2 * nx);
            here[c] = to;
          } else {
            double* const to = of_k.data() + c * static_cast<std::size_t>(nx);
            if (k.labels == nullptr) {
              std::fill_n(to, nx, k.constant[c]);
            } else {
              std::uint8_t const* const labels = k.labels + (z * ny + y) * nx;
              for (std::int64_t x = 0; x < nx; ++x)
                to[x] = k.table[c][labels[x]];
            }
            here[c] = to;
          }
        }
        for (std::size_t c = static_cast<std::size_t>(k.components); c < 3; ++c)
          here[c] = here[0];
        double const wy = box.edges[1][y], wz = box.edges[2][z];
        multiply_line<has_low, at_points>(
            nx, nodes, here, {box.edges[0], inverse.data(), {weight * wy * wz, weight * wz / wy, weight * wy / wz}}, product);
        for (int j = 0; j < 4; ++j) {
          double* const to = r + (nodes.u[j] - u);
          double const *const lower = product.lower[j], *const upper = product.upper[j];
          to[0] -= lower[0];
#pragma omp simd
          for (std::int64_t x = 1; x < nx; ++x)
            to[x] -= upper[x - 1] + lower[x];
          to[nx] -= upper[nx - 1];
        }
      }
    }
  }
}

class CpuBoxSolution final : public BoxSolutionKernels {
public:
  ValueRange range(Context& context, std::int64_t n, double const* u) const override {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    auto* const of_block = static_cast<cpu::CpuContext&>(context).partial_sums<ValueRange>(cpu::n_blocks(n));
    cpu::for_blocks(n, n, [=](std::int64_t begin, std::int64_t end, std::int64_t block) {
      double low = infinity, high = -infinity, off = 0;
#pragma omp simd reduction(min : low) reduction(max : high) reduction(+ : off)
      for (std::int64_t i = begin; i < end; ++i) {
        low = u[i] < low ? u[i] : low;
        high = u[i] > high ? u[i] : high;
        off += u[i] - u[i];
      }
      of_block[block] = {low, high, off == 0};
    });
    ValueRange result{infinity, -infinity, true};
    for (std::int64_t block = 0; block < cpu::n_blocks(n); ++block) {
      result.min = std::min(result.min, of_block[block].min);
      result.max = std::max(result.max, of_block[block].max);
      result.finite = result.finite && of_block[block].finite;
    }
    return result;
  }

  ExtremeNodes first_places(Context& context, std::int64_t n, double const* u, double low, double high) const override {
    auto* const of_block = static_cast<cpu::CpuContext&>(context).partial_sums<ExtremeNodes>(cpu::n_blocks(n));
    cpu::for_blocks(n, n, [=](std::int64_t begin, std::int64_t end, std::int64_t block) {
      ExtremeNodes& found = of_block[block];
      found = {};
      int any = 0;
#pragma omp simd reduction(| : any)
      for (std::int64_t i = begin; i < end; ++i)
        any |= static_cast<int>(u[i] <= low) | static_cast<int>(u[i] >= high);
      for (std::int64_t i = begin; i < end && any != 0; ++i) {
        if (u[i] <= low && found.low < 0)
          found.low = i;
        if (u[i] >= high && found.high < 0)
          found.high = i;
      }
    });
    ExtremeNodes result;
    for (std::int64_t block = 0; block < cpu::n_blocks(n); ++block) {
      result.low = result.low < 0 ? of_block[block].low : result.low;
      result.high = result.high < 0 ? of_block[block].high : result.high;
    }
    return result;
  }

  ValueRange range_of_material(Context& context, BoxCells const& box, double const* u) const override {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    std::int64_t const nx = box.cells[0], ny = box.cells[1], lines = ny * box.cells[2];
    auto* const of_line = static_cast<cpu::CpuContext&>(context).partial_sums<ValueRange>(lines);
#pragma omp parallel for schedule(static) if (8 * lines * nx >= cpu::work_worth_threads)
    for (std::int64_t line = 0; line < lines; ++line) {
      std::int64_t const y = line % ny, z = line / ny;
      double low = infinity, high = -infinity;
      for (std::int64_t x = 0; x < nx; ++x) {
        if (!box.counts(x, y, z))
          continue;
        for (int corner = 0; corner < 8; ++corner) {
          double const value = u[(z + (corner >> 2)) * box.step_z() + (y + (corner >> 1 & 1)) * box.step_y() + x + (corner & 1)];
          low = std::min(low, value);
          high = std::max(high, value);
        }
      }
      of_line[line] = {low, high, true};
    }
    ValueRange result{infinity, -infinity, true};
    for (std::int64_t line = 0; line < lines; ++line) {
      result.min = std::min(result.min, of_line[line].min);
      result.max = std::max(result.max, of_line[line].max);
    }
    return result;
  }

  void integrals(Context& context, BoxCells const& box, BoxCoefficient const& k, std::int64_t first_plane, std::int64_t end_plane,
                 double const* u, double* sums) const override {
    bool constant = true;
    for (std::int32_t c = 0; c < k.components; ++c)
      constant = constant && k.values[c] == nullptr && k.functions[c].is_constant();
    bool const masked = box.materials != nullptr;
    auto const add = constant ? (masked ? add_integrals<true, true> : add_integrals<true, false>)
                              : (masked ? add_integrals<false, true> : add_integrals<false, false>);
    add(context, box, k, first_plane, end_plane, u, sums);
  }

  void errors(Context& context, BoxCells const& box, BoxQuadrature const& quadrature, BoxFunction const& exact, double shift,
              std::int64_t first_plane, std::int64_t end_plane, double const* u, double* sums,
              std::int64_t* failed) const override {
    // Meshes of many cells have four points.
    (quadrature.n == 4 ? add_errors<4> : add_errors<0>)(context, box, quadrature, exact, shift, first_plane, end_plane, u, sums,
                                                        failed);
  }

  void errors_at_nodes(Context&, BoxCells const& box, BoxFunction const& exact, double shift, std::int64_t first_plane,
                       std::int64_t end_plane, double const* u, double* largest, std::int64_t* failed) const override {
    std::int64_t const nx = box.cells[0] + 1, ny = box.cells[1] + 1, lines = ny * (end_plane - first_plane);
    std::int64_t lowest = *failed;
    double most = *largest;
#pragma omp parallel reduction(min                                                                                                 \
                               : lowest) reduction(max                                                                             \
                                                   : most) if (lines * nx * (2 + exact.code.size) >= cpu::work_worth_threads)
    {
      FunctionOnLines exact_on_lines(exact, nx);
#pragma omp for schedule(static)
      for (std::int64_t line = 0; line < lines; ++line) {
        std::int64_t const y = line % ny, z = first_plane + line / ny;
        double const *const values = exact_on_lines(y, z), *const of_line = u + z * box.step_z() + y * box.step_y();
        if (std::int64_t const i = first_not_finite(nx, values); i < nx)
          lowest = std::min(lowest, (z * ny + y) * nx + i);
#pragma omp simd reduction(max : most)
        for (std::int64_t x = 0; x < nx; ++x)
          most = std::max(most, std::abs(of_line[x] - (values[x] - shift)));
      }
    }
    *failed = lowest;
    *largest = most;
  }

  void integral_of_exact(Context& context, BoxCells const& box, BoxQuadrature const& quadrature, BoxFunction const& exact,
                         std::int64_t first_plane, std::int64_t end_plane, double* sum, std::int64_t* failed) const override {
    std::int64_t const m = quadrature.n, nx = box.cells[0], ny = box.cells[1], nz = box.cells[2];
    std::int64_t const rows = ny * (end_plane - first_plane);
    auto* const of_row = static_cast<cpu::CpuContext&>(context).partial_sums<double>(rows);
    std::int64_t lowest = *failed;
#pragma omp parallel reduction(min : lowest) if (rows * nx * m * m * m * (2 + exact.code.size) >= cpu::work_worth_threads)
    {
      FunctionOnLines exact_on_lines(exact, m * nx);
#pragma omp for schedule(static)
      for (std::int64_t row = 0; row < rows; ++row) {
        std::int64_t const y = row % ny, z = first_plane + row / ny;
        double of_points = 0;
        for (std::int64_t qz = 0; qz < m; ++qz)
          for (std::int64_t qy = 0; qy < m; ++qy) {
            double const* const values = exact_on_lines(qy * ny + y, qz * nz + z);
            if (std::int64_t const i = first_not_finite(m * nx, values); i < m * nx)
              lowest = std::min(lowest, (((z * ny + y) * m + qz) * m + qy) * m * nx + i);
            for (std::int64_t qx = 0; qx < m; ++qx)
              of_points += quadrature.weight[qx] * quadrature.weight[qy] * quadrature.weight[qz] *
                           cpu::dot_of_rows(0, nx, box.edges[0], values + qx * nx);
          }
        of_row[row] = box.edges[1][y] * box.edges[2][z] * of_points;
      }
    }
    *failed = lowest;
    for (std::int64_t row = 0; row < rows; ++row)
      *sum += of_row[row];
  }

  SideSums of_side(Context& context, BoxSide const& side, double const* u) const override {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    std::int64_t const n = side.cells[0], rows = side.cells[1];
    auto* const of_rows = static_cast<cpu::CpuContext&>(context).partial_sums<SideSums>(rows);
#pragma omp parallel if (300 * rows * n >= cpu::work_worth_threads)
    {
      std::deque<FunctionOnLines> k;
      for (std::int32_t c = 0; c < side.components && side.fixed; ++c)
        k.emplace_back(side.k[c], 2 * n);
      std::int64_t const of_fixed = side.fixed ? 2 * n : 0, of_natural = side.fixed ? 0 : 2 * n;
      FunctionOnLines f(side.f, of_fixed), value(side.value, of_natural), alpha(side.alpha, of_natural);
#pragma omp for schedule(static)
      for (std::int64_t j = 0; j < rows; ++j) {
        SideSums sums{0, 0, infinity, -infinity};
        for (std::int64_t i = 0; i < n; ++i)
          if (side.faces.holds(i, j)) {
            SideCell const cell(side, i, j, u);
            sums.u += cell.integral();
            for (int c = 0; c < 4; ++c) {
              sums.min = std::min(sums.min, cell.u[c]);
              sums.max = std::max(sums.max, cell.u[c]);
            }
          }
        for (int q = 0; q < 4 && side.fixed; ++q) {
          int const qb = q & 1, qn = q >> 1;
          std::array<double const*, 3> of_line{};
          for (std::size_t c = 0; c < 3; ++c)
            of_line[c] = c < k.size() ? k[c](2 * j + qb, qn) : of_line[0];
          double const* const source = f(2 * j + qb, qn);
          for (std::int64_t i = 0; i < n; ++i) {
            SideCell const cell(side, i, j, u);
            double const* const table = side.of_label(i, j);
            for (int qa = 0; qa < 2; ++qa) {
              std::int64_t const at = 2 * i + qa;
              double const k_at[3] = {table != nullptr ? table[0] : of_line[0][at], table != nullptr ? table[1] : of_line[1][at],
                                      table != nullptr ? table[2] : of_line[2][at]};
              sums.flux -= cell.residual(qa, qb, qn, k_at, source[at]);
            }
          }
        }
        for (int qb = 0; qb < 2 && !side.fixed; ++qb) {
          double const *const values = value(2 * j + qb, 0), *const alphas = alpha(2 * j + qb, 0);
          for (std::int64_t i = 0; i < n; ++i)
            if (side.faces.holds(i, j)) {
              SideCell const cell(side, i, j, u);
              for (int qa = 0; qa < 2; ++qa)
                sums.flux -= cell.load(qa, qb, values[2 * i + qa], alphas[2 * i + qa]);
            }
        }
        of_rows[j] = sums;
      }
    }
    SideSums result{0, 0, infinity, -infinity};
    for (std::int64_t j = 0; j < rows; ++j) {
      result.u += of_rows[j].u;
      result.flux += of_rows[j].flux;
      result.min = std::min(result.min, of_rows[j].min);
      result.max = std::max(result.max, of_rows[j].max);
    }
    return result;
  }

  void subtract_product(Context&, BoxCells const& box, BoxCellCoefficient const& k, std::int64_t first_plane,
                        std::int64_t end_plane, double const* u, double const* u_low, double* r) const override {
    auto const subtract = [&]<bool has_low>(std::bool_constant<has_low>) {
      if (k.points[0] != nullptr)
        subtract_lines<has_low, true>(box, k, first_plane, end_plane, u, u_low, r);
      else
        subtract_lines<has_low, false>(box, k, first_plane, end_plane, u, u_low, r);
    };
    if (u_low != nullptr)
      subtract(std::true_type());
    else
      subtract(std::false_type());
  }

  void pack(Context&, std::array<std::int64_t, 3> const& count, std::int64_t step_y, std::int64_t step_z, double const* u,
            double* values) const override {
    std::int64_t const nx = count[0], ny = count[1], lines = ny * count[2];
#pragma omp parallel for schedule(static) if (lines * nx >= cpu::work_worth_threads)
    for (std::int64_t line = 0; line < lines; ++line)
      std::copy_n(u + line / ny * step_z + line % ny * step_y, nx, values + line * nx);
  }
};

}  // namespace

BoxSolutionKernels const& BoxSolutionKernels::cpu() {
  static CpuBoxSolution const kernels;
  return kernels;
}

}  // namespace poisson
