#include "gpu/kernels/lattice_solution.hpp"

#include "gpu/kernels/cpu/cpu.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

namespace poisson {

namespace {

using lattice_solution::CellNodes;
using lattice_solution::FirstNode;
using lattice_solution::has_place;
using lattice_solution::NodePlace;

/// Cells that are worked on together, so that they fill vector registers: numbers of a point or node lie side by side.
constexpr int lanes = 8;
/// Such groups that one thread adds up.
constexpr std::int64_t groups_of_block = 32;

[[nodiscard]] double value_at(PlaceFunction const& function, double x, double y, double z) {
  return function.is_constant() ? function.constant : evaluate<expression_stack_size>(function.code, x, y, z);
}

/// See contract. n: `terms`, or where that is 0, any.
template <int terms>
void contract_terms(std::int64_t outer, int n, int m, std::int64_t inner, double const* table, double const* in, double* out) {
  for (std::int64_t r = 0; r < outer; ++r)
    for (int q = 0; q < m; ++q) {
      double* const to = out + (r * m + q) * inner;
      double const *const from = in + r * n * inner, *const factors = table + q * n;
      if constexpr (terms > 0) {
#pragma omp simd
        for (std::int64_t s = 0; s < inner; ++s) {
          double sum = 0;
          for (int a = 0; a < terms; ++a)
            sum += factors[a] * from[a * inner + s];
          to[s] = sum;
        }
      } else {
        std::fill_n(to, inner, 0.0);
        for (int a = 0; a < n; ++a) {
          double const factor = factors[a];
          double const* const of_a = from + a * inner;
#pragma omp simd
          for (std::int64_t s = 0; s < inner; ++s)
            to[s] += factor * of_a[s];
        }
      }
    }
}

/// out[(r m + q) inner + s] = the sum over a of table[q n + a] in[(r n + a) inner + s], for r < outer, s < inner.
void contract(std::int64_t outer, int n, int m, std::int64_t inner, double const* table, double const* in, double* out) {
  using Contract = void (*)(std::int64_t, int, int, std::int64_t, double const*, double const*, double*);
  constexpr std::array<Contract, 8> of_terms{contract_terms<0>, contract_terms<0>, contract_terms<2>, contract_terms<3>,
                                             contract_terms<4>, contract_terms<5>, contract_terms<6>, contract_terms<7>};
  of_terms[static_cast<std::size_t>(n) < of_terms.size() ? static_cast<std::size_t>(n) : 0](outer, n, m, inner, table, in, out);
}

/// Numbers of all lanes at a point: the entries of J, the reference gradient of v, and k.
struct AtPoint {
  double const* jacobian[9];
  double const* by[3];
  double k[tensor_entries][lanes];
};
// Functions that return no struct: what a loop over lanes declares itself, but for numbers, stays in memory.
[[gnu::always_inline]] inline double cofactors_of(AtPoint const& at, int l, double (&c)[9]) {
  auto const& j = at.jacobian;
  return poisson::cofactors_of({j[0][l], j[1][l], j[2][l], j[3][l], j[4][l], j[5][l], j[6][l], j[7][l], j[8][l]}, c);
}
/// det(J).
[[gnu::always_inline]] inline double determinant_of(AtPoint const& at, int l) {
  double ignored[9];
  return cofactors_of(at, l, ignored);
}
/// det(J) grad v.
[[gnu::always_inline]] inline void gradient_of(AtPoint const& at, int l, double (&g)[3]) {
  double c[9];
  static_cast<void>(cofactors_of(at, l, c));
  double const x = at.by[0][l], y = at.by[1][l], z = at.by[2][l];
  g[0] = c[0] * x + c[1] * y + c[2] * z;
  g[1] = c[3] * x + c[4] * y + c[5] * z;
  g[2] = c[6] * x + c[7] * y + c[8] * z;
}
/// det(J)^2 grad v . k grad v.
[[gnu::always_inline]] inline double squared_gradient(AtPoint const& at, int l) {
  double g[3];
  gradient_of(at, l, g);
  return at.k[0][l] * g[0] * g[0] + at.k[1][l] * g[1] * g[1] + at.k[2][l] * g[2] * g[2];
}
/// What the entries of k off its diagonal add to that.
[[gnu::always_inline]] inline double off_diagonal(AtPoint const& at, int l) {
  double g[3];
  gradient_of(at, l, g);
  return 2 * (at.k[3][l] * g[0] * g[1] + at.k[4][l] * g[0] * g[2] + at.k[5][l] * g[1] * g[2]);
}

/// What a thread needs to integrate over groups of cells. Arrays have `lanes` numbers for each point or node, x fastest.
class CellGroups {
public:
  CellGroups(LatticeElements const& elements, LatticeList const& lattices, LatticeQuadrature const& quadrature,
             LatticeIntegrand const& integrand)
      : elements_(elements),
        lattices_(lattices),
        quadrature_(quadrature),
        integrand_(integrand),
        m_(quadrature.n),
        needs_places_(!integrand.exact.is_constant() || std::any_of(integrand.k.begin(), integrand.k.begin() + integrand.components,
                                                                    [](PlaceFunction const& k) { return !k.is_constant(); })) {
    auto const n = static_cast<std::size_t>(std::max(quadrature.order, quadrature.map_order) + 1), m = static_cast<std::size_t>(m_);
    nodes_.resize(3 * n * n * n * lanes);
    lines_.resize(2 * n * n * m * lanes);
    planes_.resize(3 * n * m * m * lanes);
    std::size_t const of_points = m * m * m * lanes;
    v_.resize(of_points);
    for (auto& of_direction : gradient_)
      of_direction.resize(of_points);
    for (auto& entry : jacobian_)
      entry.resize(of_points);
    for (auto& coordinate : places_)
      coordinate.resize(needs_places_ ? of_points : 0);
  }

  struct Sums {
    double volume[lanes]{}, values[lanes]{}, squares[lanes]{}, gradients[lanes]{}, largest[lanes]{};
  };

  /// Adds the cells first <= number < end, at most `lanes` of them.
  void add(std::int64_t first, std::int64_t end, Sums& sums, LatticeSums& found) {
    std::int64_t const side = elements_.lattices.cells, of_lattice = side * side * side;
    std::int64_t any = -1;
    for (int l = lanes - 1; l >= 0; --l) {
      counted_[l] = first + l < end && lattices_.has(first + l, of_lattice) ? 1 : 0;
      any = counted_[l] != 0 ? first + l : any;
    }
    if (any < 0)
      return;
    for (int l = 0; l < lanes; ++l)
      cells_[l] = counted_[l] != 0 ? first + l : any;
    read_u(found);
    read_map();
    subtract_exact(found);
    std::int64_t const m = m_;
    double const* const derivative = quadrature_.tables + quadrature_.derivative();
    contract(m * m, m_, m_, lanes, derivative, v_.data(), gradient_[0].data());
    contract(m, m_, m_, m * lanes, derivative, v_.data(), gradient_[1].data());
    contract(1, m_, m_, m * m * lanes, derivative, v_.data(), gradient_[2].data());
    add_points(sums, found);
  }

private:
  [[nodiscard]] double const* table(int first) const { return quadrature_.tables + first; }
  [[nodiscard]] CellNodes nodes_of(int lane) const { return {elements_, lattices_, cells_[lane]}; }

  /// v = u at the points, and the range of u at the nodes.
  void read_u(LatticeSums& found) {
    if (integrand_.u == nullptr) {
      std::fill(v_.begin(), v_.end(), 0.0);
      return;
    }
    int const n = quadrature_.order + 1;
    for (int l = 0; l < lanes; ++l) {
      CellNodes const cell = nodes_of(l);
      double* to = nodes_.data() + l;
      for (int c = 0; c < n; ++c)
        for (int b = 0; b < n; ++b)
          for (int a = 0; a < n; ++a, to += lanes)
            *to = integrand_.u[cell.unknown(elements_, a, b, c)];
    }
    double low = found.low, high = found.high;
    std::int64_t const size = std::int64_t{n} * n * n * lanes;
#pragma omp simd reduction(min : low) reduction(max : high)
    for (std::int64_t i = 0; i < size; ++i) {
      low = std::min(low, nodes_[static_cast<std::size_t>(i)]);
      high = std::max(high, nodes_[static_cast<std::size_t>(i)]);
    }
    found.low = low;
    found.high = high;
    double const* const value = table(quadrature_.value());
    contract(std::int64_t{n} * n, n, m_, lanes, value, nodes_.data(), lines_.data());
    contract(n, n, m_, std::int64_t{m_} * lanes, value, lines_.data(), planes_.data());
    contract(1, n, m_, std::int64_t{m_} * m_ * lanes, value, planes_.data(), v_.data());
  }

  /// The Jacobian matrices at the points, and where they are.
  void read_map() {
    int const n = quadrature_.map_order + 1, step = quadrature_.order / quadrature_.map_order;
    std::int64_t const of_lines = std::int64_t{n} * n * m_ * lanes, of_planes = std::int64_t{n} * m_ * m_ * lanes;
    double const *const value = table(quadrature_.map_value()), *const slope = table(quadrature_.map_derivative());
    double *const lines = lines_.data(), *const lines_by_x = lines + of_lines;
    double *const planes = planes_.data(), *const planes_by_x = planes + of_planes, *const planes_by_y = planes_by_x + of_planes;
    std::int64_t const of_direction = std::int64_t{n} * n * n * lanes;
    double origin[lanes][3];
    for (int l = 0; l < lanes; ++l) {
      CellNodes const cell = nodes_of(l);
      // Nodes count from the first one, so that derivatives lose no digits where a cell is far from the origin.
      cell.place(elements_, 0, 0, 0, origin[l]);
      double* to = nodes_.data() + l;
      for (int c = 0; c < n; ++c)
        for (int b = 0; b < n; ++b)
          for (int a = 0; a < n; ++a, to += lanes) {
            double x[3];
            cell.place(elements_, step * a, step * b, step * c, x);
            for (int d = 0; d < 3; ++d)
              to[d * of_direction] = x[d] - origin[l][d];
          }
    }
    for (std::size_t d = 0; d < 3; ++d) {
      double const* const nodes = nodes_.data() + static_cast<std::int64_t>(d) * of_direction;
      std::int64_t const line = std::int64_t{m_} * lanes, plane = line * m_;
      contract(std::int64_t{n} * n, n, m_, lanes, value, nodes, lines);
      contract(std::int64_t{n} * n, n, m_, lanes, slope, nodes, lines_by_x);
      contract(n, n, m_, line, value, lines, planes);
      contract(n, n, m_, line, value, lines_by_x, planes_by_x);
      contract(n, n, m_, line, slope, lines, planes_by_y);
      contract(1, n, m_, plane, value, planes_by_x, jacobian_[3 * d].data());
      contract(1, n, m_, plane, value, planes_by_y, jacobian_[3 * d + 1].data());
      contract(1, n, m_, plane, slope, planes, jacobian_[3 * d + 2].data());
      if (!needs_places_)
        continue;
      contract(1, n, m_, plane, value, planes, places_[d].data());
      for (std::size_t i = 0; i < places_[d].size(); i += lanes)
        for (int l = 0; l < lanes; ++l)
          places_[d][i + static_cast<std::size_t>(l)] += origin[l][d];
    }
  }

  [[nodiscard]] double at(PlaceFunction const& function, std::size_t i) const {
    return function.is_constant() ? function.constant : value_at(function, places_[0][i], places_[1][i], places_[2][i]);
  }

  /// v -= exact - shift.
  void subtract_exact(LatticeSums& found) {
    for (std::size_t i = 0; i < v_.size(); ++i) {
      double const exact = at(integrand_.exact, i);
      v_[i] -= exact - integrand_.shift;
      if (!passes(ValueCheck::finite, exact))
        keep(found.not_finite, i);
    }
  }

  /// Keeps the number of a point if it is lower. i: in the arrays.
  void keep(std::int64_t& lowest, std::size_t i) const {
    auto const lane = static_cast<int>(i % lanes);
    keep_lower(lowest, cells_[lane] * (std::int64_t{m_} * m_ * m_) + static_cast<std::int64_t>(i / lanes));
  }

  void add_points(Sums& sums, LatticeSums& found) const {
    double const* const weight = table(quadrature_.weight());
    auto const n_components = static_cast<std::size_t>(integrand_.components);
    std::size_t first = 0;
    for (int qz = 0; qz < m_; ++qz)
      for (int qy = 0; qy < m_; ++qy)
        for (int qx = 0; qx < m_; ++qx, first += lanes) {
          AtPoint at_point{};
          double determinant[lanes];
          for (std::size_t e = 0; e < 9; ++e)
            at_point.jacobian[e] = jacobian_[e].data() + first;
          for (std::size_t d = 0; d < 3; ++d)
            at_point.by[d] = gradient_[d].data() + first;
          for (std::size_t c = 0; c < std::max<std::size_t>(3, n_components); ++c)
            for (int l = 0; l < lanes; ++l)
              at_point.k[c][l] =
                  c > 0 && n_components == 1 ? at_point.k[0][l] : at(integrand_.k[c], first + static_cast<std::size_t>(l));
          double const of_point = weight[qx] * weight[qy] * weight[qz];
          double const* const v = v_.data() + first;
#pragma omp simd
          for (int l = 0; l < lanes; ++l) {
            double const det = determinant_of(at_point, l), squared = squared_gradient(at_point, l);
            determinant[l] = det;
            double const volume = counted_[l] * of_point * det;
            sums.volume[l] += volume;
            sums.values[l] += volume * v[l];
            sums.squares[l] += volume * (v[l] * v[l]);
            sums.gradients[l] += counted_[l] * (of_point / det) * squared;
            double const size = std::abs(v[l]), before = sums.largest[l];
            sums.largest[l] = size > before ? size : before;
          }
          if (n_components == tensor_entries)
#pragma omp simd
            for (int l = 0; l < lanes; ++l)
              sums.gradients[l] += counted_[l] * (of_point / determinant[l]) * off_diagonal(at_point, l);
          for (int l = 0; l < lanes; ++l)
            if (!(determinant[l] > 0))
              keep(found.inverted, first + static_cast<std::size_t>(l));
        }
  }

  LatticeElements const& elements_;
  LatticeList const& lattices_;
  LatticeQuadrature const& quadrature_;
  LatticeIntegrand const& integrand_;
  int m_;
  bool needs_places_;
  std::int64_t cells_[lanes]{};
  double counted_[lanes]{};  ///< 1; 0 for lanes without a cell, which have the first one of the group
  std::vector<double> nodes_, lines_, planes_, v_;
  std::array<std::vector<double>, 3> gradient_, places_;
  std::array<std::vector<double>, 9> jacobian_;
};

/// The sum over the lanes, always in the same order.
double sum_of_lanes(double const (&sums)[lanes]) {
  double sum = 0;
  for (double const of_lane : sums)
    sum += of_lane;
  return sum;
}

class CpuLatticeSolution final : public LatticeSolutionKernels {
public:
  LatticeSums sums(Context& context, LatticeElements const& elements, LatticeList const& lattices,
                   LatticeQuadrature const& quadrature, LatticeIntegrand const& integrand, std::int64_t first,
                   std::int64_t end) const override {
    constexpr std::int64_t of_block = groups_of_block * lanes;
    std::int64_t const blocks = (end - first + of_block - 1) / of_block, points = quadrature.n * quadrature.n * quadrature.n;
    auto* const found = static_cast<cpu::CpuContext&>(context).partial_sums<LatticeSums>(blocks);
#pragma omp parallel if ((end - first) * points * 100 >= cpu::work_worth_threads)
    {
      CellGroups groups(elements, lattices, quadrature, integrand);
#pragma omp for schedule(dynamic)
      for (std::int64_t block = 0; block < blocks; ++block) {
        LatticeSums of_this;
        CellGroups::Sums of_lanes;
        std::int64_t const end_of_block = std::min(end, first + (block + 1) * of_block);
        for (std::int64_t cell = first + block * of_block; cell < end_of_block; cell += lanes)
          groups.add(cell, std::min(cell + lanes, end_of_block), of_lanes, of_this);
        of_this.volume = sum_of_lanes(of_lanes.volume);
        of_this.values = sum_of_lanes(of_lanes.values);
        of_this.squares = sum_of_lanes(of_lanes.squares);
        of_this.gradients = sum_of_lanes(of_lanes.gradients);
        of_this.largest = *std::max_element(of_lanes.largest, of_lanes.largest + lanes);
        found[block] = of_this;
      }
    }
    LatticeSums result;
    for (std::int64_t block = 0; block < blocks; ++block)
      result.add(found[block]);
    return result;
  }

  NodeErrors errors_at_nodes(Context& context, LatticeElements const& elements, PlaceFunction const& exact, double shift,
                             double const* u) const override {
    std::int64_t const n = elements.lattices.n_unknowns;
    auto* const found = static_cast<cpu::CpuContext&>(context).partial_sums<NodeErrors>(cpu::n_blocks(n));
    cpu::for_blocks(n, n * (20 + exact.code.size), [&](std::int64_t begin, std::int64_t end, std::int64_t block) {
      NodeErrors of_block;
      for (std::int64_t i = begin; i < end; ++i) {
        if (!has_place(elements, i))
          continue;
        NodePlace const at(elements, i);
        double const value = value_at(exact, at.x[0], at.x[1], at.x[2]);
        if (!passes(ValueCheck::finite, value))
          keep_lower(of_block.not_finite, i);
        of_block.largest = std::max(of_block.largest, std::abs(u[i] - (value - shift)));
      }
      found[block] = of_block;
    });
    NodeErrors result;
    for (std::int64_t block = 0; block < cpu::n_blocks(n); ++block) {
      result.largest = std::max(result.largest, found[block].largest);
      keep_lower(result.not_finite, found[block].not_finite);
    }
    return result;
  }

  ExtremeNodes first_places(Context& context, LatticeElements const& elements, double const* u, double low,
                            double high) const override {
    struct Found {
      FirstNode low, high;
    };
    constexpr FirstNode none{{0, 0, 0}, -1};
    std::int64_t const n = elements.lattices.n_unknowns;
    auto* const found = static_cast<cpu::CpuContext&>(context).partial_sums<Found>(cpu::n_blocks(n));
    cpu::for_blocks(n, n, [&](std::int64_t begin, std::int64_t end, std::int64_t block) {
      Found of_block{none, none};
      int any = 0;
#pragma omp simd reduction(| : any)
      for (std::int64_t i = begin; i < end; ++i)
        any |= static_cast<int>(u[i] <= low) | static_cast<int>(u[i] >= high);
      for (std::int64_t i = begin; i < end && any != 0; ++i) {
        if (u[i] <= low)
          of_block.low.add(elements, i);
        if (u[i] >= high)
          of_block.high.add(elements, i);
      }
      found[block] = of_block;
    });
    Found result{none, none};
    for (std::int64_t block = 0; block < cpu::n_blocks(n); ++block) {
      result.low.add(found[block].low);
      result.high.add(found[block].high);
    }
    return {result.low.unknown, result.high.unknown};
  }

  std::array<double, 3> place(Context&, LatticeElements const& elements, std::int64_t unknown) const override {
    NodePlace const at(elements, unknown);
    return {at.x[0], at.x[1], at.x[2]};
  }

  std::vector<double> nodes_of_cell(Context&, LatticeElements const& elements, LatticeList const& lattices,
                                    std::int64_t cell) const override {
    CellNodes const nodes(elements, lattices, cell);
    std::vector<double> result;
    for (int n = elements.lattices.order + 1, i = 0; i < n * n * n; ++i) {
      double x[3];
      nodes.place(elements, i % n, i / n % n, i / (n * n), x);
      result.insert(result.end(), x, x + 3);
    }
    return result;
  }
};

}  // namespace

LatticeSolutionKernels const& LatticeSolutionKernels::cpu() {
  static CpuLatticeSolution const kernels;
  return kernels;
}

}  // namespace poisson
