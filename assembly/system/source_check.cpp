#include "assembly/system/source_check.hpp"

#include "assembly/parallel.hpp"
#include "gpu/core/expression_code.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <queue>
#include <set>
#include <string>

namespace poisson::assembly {

namespace {

constexpr std::size_t most_candidates = 64;       ///< cells with much of the source that are looked at closely
constexpr std::size_t most_hidden = 16;           ///< cells that the lattice names
constexpr std::int64_t lattice_points = 1 << 17;  ///< at least, where the mesh has so many
constexpr int adaptive_steps = 2000;              ///< of 64 points each
constexpr std::int64_t even_points = 1 << 15;     ///< in cells all over the mesh
constexpr double largest_net_defect = 0.1, largest_even_defect = 0.3;

/// Values of f, and volumes, at a tensor product of points in one cell.
class CellSamples {
public:
  CellSamples(Space const& space, ReferenceElement const& element, ProblemData const& data)
      : space_(space), data_(data), geometry_(space), nodes_(geometry_nodes_1d(space, element)), dofs_(space.n_local) {}

  /// `at`: as many reference coordinates in every direction. Values that are not finite count as 0: no quadrature takes them
  /// either.
  void sample(std::int64_t cell, std::array<std::vector<double>, 3> const& at, bool with_determinants) {
    int const m = static_cast<int>(at[0].size());
    auto const size = static_cast<std::size_t>(m) * m * m;
    values.resize(size);
    space_.dofs(cell, dofs_.data());
    geometry_.reset(cell, dofs_.data());
    if (space_.box)
      box_cell_ = space_.box_cell_size(space_.box_cell(cell));
    determinants.assign(with_determinants ? size : 0, box_cell_[0] * box_cell_[1] * box_cell_[2]);
    Function const& density = data_.source(space_.material(cell));
    if (space_.box)
      sample_box(at, density);
    else
      sample_mapped(at, density, with_determinants);
    for (double& value : values)
      value = std::isfinite(value) ? value : 0;
  }
  [[nodiscard]] Point3 point(std::size_t q) const {
    if (!space_.box)
      return {x_[0][q], x_[1][q], x_[2][q]};
    std::size_t const m = x_[0].size();
    return {x_[0][q % m], x_[1][q / m % m], x_[2][q / (m * m)]};
  }
  /// Where |f| is largest.
  [[nodiscard]] std::size_t largest() const {
    return static_cast<std::size_t>(
        std::max_element(values.begin(), values.end(), [](double a, double b) { return std::abs(a) < std::abs(b); }) -
        values.begin());
  }

  std::vector<double> values, determinants;

private:
  void sample_box(std::array<std::vector<double>, 3> const& at, Function const& density) {
    for (int d = 0; d < 3; ++d) {
      x_[d].resize(at[d].size());
      for (std::size_t i = 0; i < at[d].size(); ++i)
        x_[d][i] = geometry_.nodes(d)[0] + box_cell_[d] * at[d][i];
    }
    constexpr std::size_t long_enough = 4;  // points, for what a line costs beside them
    std::size_t const m = at[0].size();
    double* value = values.data();
    if (m >= long_enough && density.is_code()) {
      LineEvaluator lines(density.code(), static_cast<std::int64_t>(m), x_[0].data());
      for (double const z : x_[2])
        for (double const y : x_[1]) {
          lines(y, z, value);
          value += m;
        }
      return;
    }
    for (double const z : x_[2])
      for (double const y : x_[1])
        for (double const x : x_[0])
          *value++ = density({x, y, z});
  }

  void sample_mapped(std::array<std::vector<double>, 3> const& at, Function const& density, bool with_determinants) {
    std::size_t const size = values.size();
    std::array<Basis1D, 3> basis;
    for (int d = 0; d < 3; ++d)
      basis[d] = lagrange_basis(nodes_, at[d]);
    int const m = static_cast<int>(at[0].size()), n = basis[0].n_functions;
    auto const apply = [&](int derivative, int d, std::vector<double>& out) {
      std::array<double const*, 3> t{};
      for (int i = 0; i < 3; ++i)
        t[i] = (i == derivative ? basis[i].derivatives : basis[i].values).data();
      out.resize(size);
      apply_tensor(m, n, t[0], t[1], t[2], geometry_.nodes(d), out.data(), work_);
    };
    for (int d = 0; d < 3; ++d)
      apply(-1, d, x_[d]);
    if (with_determinants) {
      for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j)
          apply(j, i, jacobian_[3 * i + j]);
      for (std::size_t q = 0; q < size; ++q) {
        std::array<double, 9> jacobian;
        for (std::size_t e = 0; e < 9; ++e)
          jacobian[e] = jacobian_[e][q];
        determinants[q] = determinant(jacobian);
      }
    }
    for (std::size_t q = 0; q < size; ++q)
      values[q] = density(point(q));
  }

  Space const& space_;
  ProblemData data_;
  CellGeometry geometry_;
  std::vector<double> const& nodes_;
  std::vector<std::int32_t> dofs_;
  Point3 box_cell_{};
  std::array<std::vector<double>, 3> x_;  ///< of all points; on a box of those along each axis
  std::array<std::vector<double>, 9> jacobian_;
  std::vector<double> work_;
};

/// A cube of a cell's reference coordinates, and the integrals there.
struct Piece {
  Point3 low{};
  double size = 1;
  double integral = 0, absolute = 0;
};

/// Integrals over m^3 equal parts of `whole`, by Gauss points in each.
class PieceQuadrature {
public:
  PieceQuadrature(CellSamples& samples, int m, int points) : samples_(samples), m_(m), points_(points) {
    gauss_rule(points, gauss_, weights_);
    for (auto& at : at_)
      at.resize(static_cast<std::size_t>(m) * points);
  }
  std::vector<Piece> const& operator()(std::int64_t cell, Piece const& whole) {
    double const size = whole.size / m_;
    int const n = m_ * points_;
    for (int d = 0; d < 3; ++d)
      for (int i = 0; i < n; ++i)
        at_[d][i] = whole.low[d] + size * (i / points_ + gauss_[i % points_]);
    samples_.sample(cell, at_, true);
    pieces_.assign(static_cast<std::size_t>(m_) * m_ * m_, Piece{});
    for (int z = 0; z < n; ++z)
      for (int y = 0; y < n; ++y)
        for (int x = 0; x < n; ++x) {
          auto const q = (static_cast<std::size_t>(z) * n + y) * n + x;
          std::array<int, 3> const at{x / points_, y / points_, z / points_};
          Piece& piece = pieces_[(static_cast<std::size_t>(at[2]) * m_ + at[1]) * m_ + at[0]];
          for (int d = 0; d < 3; ++d)
            piece.low[d] = whole.low[d] + size * at[d];
          piece.size = size;
          double const f = weights_[x % points_] * weights_[y % points_] * weights_[z % points_] * size * size * size *
                           samples_.determinants[q] * samples_.values[q];
          piece.integral += f;
          piece.absolute += std::abs(f);
        }
    return pieces_;
  }
  [[nodiscard]] Piece total(std::int64_t cell) {
    Piece sum;
    for (Piece const& piece : (*this)(cell, Piece{})) {
      sum.integral += piece.integral;
      sum.absolute += piece.absolute;
    }
    return sum;
  }

private:
  CellSamples& samples_;
  int m_, points_;
  std::vector<double> gauss_, weights_;
  std::array<std::vector<double>, 3> at_;
  std::vector<Piece> pieces_;
};

/// Reference coordinates of m + 1 points, evenly from one side of a cell to the other, per direction.
std::array<std::vector<double>, 3> lattice_of(int m) {
  std::array<std::vector<double>, 3> at;
  for (auto& a : at)
    for (int i = 0; i <= m; ++i)
      a.push_back(static_cast<double>(i) / m);
  return at;
}

/// Cells in which a lattice of points finds the largest |f|: peaks may lie between the points of the quadrature, and its values
/// then know nothing of them. The lattice has the vertices of the cells, where people like to place things.
std::vector<LargestCells::Entry> cells_by_lattice(Space const& space, ReferenceElement const& element, ProblemData const& data) {
  std::int64_t const budget = std::max<std::int64_t>(lattice_points, space.n_cells * space.n_local / 16);
  int m = 8;
  auto const points = [&] { return space.n_cells * (m + 1) * (m + 1) * (m + 1); };
  while (m > 1 && points() > budget)
    m /= 2;
  std::int64_t const stride = n_parts(points(), budget);
  auto const at = lattice_of(m);
  std::vector<LargestCells> largest(n_parts(space.n_cells, space.cells_per_part), LargestCells(most_cells_of_part));
  parallel_for(
      static_cast<std::int64_t>(largest.size()), [&] { return CellSamples(space, element, data); },
      [&](CellSamples& samples, std::int64_t const p) {
        auto const [begin, end] = part(space.n_cells, space.cells_per_part, p);
        for (auto cell = begin; cell < end; ++cell) {
          // Not every n-th: on a box that could be the same plane again and again.
          if (stride > 1 &&
              static_cast<std::int64_t>((static_cast<std::uint64_t>(cell) * 0x9E3779B97F4A7C15U) >> 33U) % stride != 0)
            continue;
          samples.sample(cell, at, false);
          largest[p].offer(cell, std::abs(samples.values[samples.largest()]));
        }
      });
  LargestCells all(most_hidden);
  for (auto const& of_part : largest)
    for (auto const& entry : of_part.entries())
      all.offer(entry.cell, entry.amount);
  return all.entries();
}

/// The cells with the largest amounts, from those lines of cells that hold the largest ones.
template <class AmountOf>
std::vector<LargestCells::Entry> largest_of_lines(SourceLines const& lines, std::vector<double> const& largest, std::size_t most,
                                                  AmountOf const& amount_of) {
  LargestCells chosen(most), cells(most);
  for (std::size_t line = 0; line < largest.size(); ++line)
    chosen.offer(static_cast<std::int64_t>(line), largest[line]);
  for (auto const& [amount, line] : chosen.entries())
    for (std::int64_t i = 0; i < lines.length; ++i) {
      std::int64_t const cell = lines.cell(line, i);
      cells.offer(cell, amount_of(cell));
    }
  return cells.entries();
}

/// Finer integrals over some cells, refined where that changes most.
class AdaptiveIntegrals {
public:
  AdaptiveIntegrals(Space const& space, ReferenceElement const& element, ProblemData const& data, double absolute)
      : samples_(space, element, data),
        as_assembled_(samples_, 1, element.n_gauss()),
        halves_(samples_, 2, 2),
        eighths_(samples_, 8, 2),
        absolute_(absolute) {}

  /// Takes a cell, which `lattice_value` of |f| was found in; 0: not looked for.
  void add(std::int64_t cell, double lattice_value) {
    if (!cells_.insert(cell).second)
      return;
    Piece const coarse = as_assembled_.total(cell);
    double const seen = std::abs(samples_.values[samples_.largest()]);
    replace(cell, coarse, lattice_value > 4 * seen ? eighths_ : halves_);
  }
  void refine() {
    for (int step = 0; step < adaptive_steps && !queue_.empty() && queue_.top().change > 1e-3 * (absolute_ + absolute_defect_);
         ++step) {
      Waiting const next = queue_.top();
      queue_.pop();
      replace(next.cell, next.piece, halves_);
    }
  }
  /// Finer less coarse.
  [[nodiscard]] double defect() const { return defect_; }
  [[nodiscard]] double absolute_defect() const { return absolute_defect_; }
  [[nodiscard]] double largest() const { return largest_; }
  /// Where the largest |f| was found.
  [[nodiscard]] Point3 const& where() const { return where_; }
  [[nodiscard]] bool has(std::int64_t cell) const { return cells_.count(cell) > 0; }

private:
  struct Waiting {
    double change;
    std::int64_t number;  ///< of equal changes the first
    std::int64_t cell;
    Piece piece;
    bool operator<(Waiting const& other) const { return change != other.change ? change < other.change : number > other.number; }
  };

  void replace(std::int64_t cell, Piece const& coarse, PieceQuadrature& finer) {
    auto const& pieces = finer(cell, coarse);
    Piece sum;
    for (Piece const& piece : pieces) {
      sum.integral += piece.integral;
      sum.absolute += piece.absolute;
    }
    defect_ += sum.integral - coarse.integral;
    absolute_defect_ += sum.absolute - coarse.absolute;
    if (auto const q = samples_.largest(); std::abs(samples_.values[q]) > largest_) {
      largest_ = std::abs(samples_.values[q]);
      where_ = samples_.point(q);
    }
    // What a piece will change is guessed from what the whole did, by its part of the source.
    double const change = std::max(std::abs(sum.integral - coarse.integral), std::abs(sum.absolute - coarse.absolute));
    for (Piece const& piece : pieces)
      if (piece.absolute > 0 && change > 0)
        queue_.push({change * (piece.absolute / sum.absolute), count_++, cell, piece});
  }

  CellSamples samples_;
  PieceQuadrature as_assembled_, halves_, eighths_;
  double absolute_, defect_ = 0, absolute_defect_ = 0, largest_ = 0;
  Point3 where_{};
  std::set<std::int64_t> cells_;
  std::priority_queue<Waiting> queue_;
  std::int64_t count_ = 0;
};

/// Differences of the integrals over single cells from finer ones, in cells all over the mesh that `skip` does not name.
template <class Skip>
void add_even_defect(Space const& space, ReferenceElement const& element, ProblemData const& data, Skip const& skip,
                     SourceFindings& found) {
  int const points = element.n_gauss(), fine_points = 4 * points;
  std::int64_t const n = std::min<std::int64_t>(
      space.n_cells, std::clamp<std::int64_t>(even_points / (std::int64_t{1} * fine_points * fine_points * fine_points), 8, 64));
  CellSamples samples(space, element, data);
  PieceQuadrature coarse(samples, 1, points), fine(samples, 2 * points, 2);
  double const scale = static_cast<double>(space.n_cells) / static_cast<double>(n);
  for (std::int64_t i = 0; i < n; ++i) {
    // Multiples of the golden ratio fill an interval evenly, and keep step with no direction of a box.
    double const turns = static_cast<double>(i) * 0.6180339887498949;
    auto const cell =
        std::min(static_cast<std::int64_t>((turns - std::floor(turns)) * static_cast<double>(space.n_cells)), space.n_cells - 1);
    if (skip(cell))
      continue;
    Piece const a = coarse.total(cell), b = fine.total(cell);
    found.even_defect += scale * std::abs(b.integral - a.integral);
    found.even_fine += scale * b.absolute;
  }
}

std::string percent(double share) {
  return to_text(std::round(100 * share)) + " %";
}

/// Three digits.
std::string short_text(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.3g", value);
  return buffer;
}

constexpr char const* advice =
    "; the solution belongs to what the quadrature saw: take more cells or refinements (problem.mesh), a higher "
    "problem.element.order, or a source that varies less within a cell";

}  // namespace

void LargestCells::offer(std::int64_t cell, double amount) {
  if (!(amount > 0) || (entries_.size() == most_ && !(amount > entries_.back().amount)))
    return;
  if (entries_.size() == most_)
    entries_.pop_back();
  auto const at = std::find_if(entries_.begin(), entries_.end(), [&](Entry const& e) { return amount > e.amount; });
  entries_.insert(at, {amount, cell});
}

namespace {

/// `at_lattice`: cells where a lattice of points finds the largest |f|.
SourceFindings check_cells(Space const& space, ReferenceElement const& element, ProblemData const& data, double absolute,
                           std::vector<LargestCells::Entry> const& most, std::vector<LargestCells::Entry> const& at_lattice) {
  SourceFindings found;
  found.absolute = absolute;
  AdaptiveIntegrals adaptive(space, element, data, absolute);
  for (auto const& [value, cell] : at_lattice)
    adaptive.add(cell, value);
  LargestCells candidates(most_candidates);
  for (auto const& [amount, cell] : most)
    candidates.offer(cell, amount);
  for (auto const& [amount, cell] : candidates.entries())
    adaptive.add(cell, 0);
  adaptive.refine();
  found.defect = adaptive.defect();
  found.absolute_defect = adaptive.absolute_defect();
  found.largest = adaptive.largest();
  found.where = adaptive.where();
  add_even_defect(
      space, element, data, [&](std::int64_t cell) { return adaptive.has(cell); }, found);
  return found;
}

}  // namespace

SourceFindings check_source(Space const& space, ReferenceElement const& element, ProblemData const& data, SourceSums const& sums,
                            std::vector<LargestCells::Entry> const& most) {
  if (data.constant_source())
    return {.absolute = sums.absolute};
  return check_cells(space, element, data, sums.absolute, most, cells_by_lattice(space, element, data));
}

SourceFindings check_source(Space const& space, ReferenceElement const& element, ProblemData const& data, double absolute,
                            SourceLines const& lines) {
  if (data.constant_source())
    return {.absolute = absolute};
  CellSamples samples(space, element, data);
  PieceQuadrature as_assembled(samples, 1, element.n_gauss());
  auto const most =
      largest_of_lines(lines, lines.largest, most_candidates, [&](std::int64_t cell) { return as_assembled.total(cell).absolute; });
  if (lines.largest_of_lattice.empty())
    return check_cells(space, element, data, absolute, most, cells_by_lattice(space, element, data));
  auto const lattice = lattice_of(lines.lattice_steps);
  return check_cells(space, element, data, absolute, most,
                     largest_of_lines(lines, lines.largest_of_lattice, most_hidden, [&](std::int64_t cell) {
                       samples.sample(cell, lattice, false);
                       return std::abs(samples.values[samples.largest()]);
                     }));
}

SourceFindings check_source(Space const& space, ReferenceElement const& element, ProblemData const& data) {
  if (data.constant_source())
    return {};
  std::int64_t const n_blocks = n_parts(space.n_cells, space.cells_per_part);
  std::vector<LargestCells> largest(static_cast<std::size_t>(n_blocks), LargestCells(most_cells_of_part));
  std::vector<double> absolute(static_cast<std::size_t>(n_blocks), 0.0);
  struct State {
    CellSamples samples;
    PieceQuadrature as_assembled;
    State(Space const& of, ReferenceElement const& with, ProblemData const& source)
        : samples(of, with, source), as_assembled(samples, 1, with.n_gauss()) {}
  };
  parallel_for(
      n_blocks, [&] { return std::make_unique<State>(space, element, data); },
      [&](std::unique_ptr<State>& state, std::int64_t const p) {
        auto const [begin, end] = part(space.n_cells, space.cells_per_part, p);
        for (auto cell = begin; cell < end; ++cell) {
          double const amount = state->as_assembled.total(cell).absolute;
          absolute[p] += amount;
          largest[p].offer(cell, amount);
        }
      });
  SourceSums sums;
  std::vector<LargestCells::Entry> most;
  for (std::size_t p = 0; p < largest.size(); ++p) {
    sums.absolute += absolute[p];
    most.insert(most.end(), largest[p].entries().begin(), largest[p].entries().end());
  }
  return check_source(space, element, data, sums, most);
}

void SourceFindings::add(SourceFindings const& part) {
  absolute += part.absolute;
  defect += part.defect;
  absolute_defect += part.absolute_defect;
  even_defect += part.even_defect;
  even_fine += part.even_fine;
  if (part.largest > largest) {
    largest = part.largest;
    where = part.where;
  }
}

std::string SourceFindings::warning() const {
  double const fine = absolute + absolute_defect, net = std::max(std::abs(defect), std::abs(absolute_defect));
  if (double const scale = std::max(fine, absolute); net > largest_net_defect * scale)
    return "the mesh is too coarse for this source: the integral of |f| is " + short_text(absolute) +
           " by the quadrature of the assembly and about " + short_text(fine) + " by a finer one, " + percent(net / scale) +
           " of it missed or wrong, near (x, y, z) = " + to_text(where) + advice;
  if (double const all = std::max(fine, even_fine); even_defect > largest_even_defect * all)
    return "the mesh is too coarse for this source: it varies so much within cells that their integrals of f differ from the "
           "integrals of "
           "a finer "
           "quadrature, by " +
           percent(even_defect / all) + " of the integral of |f|" + advice;
  return {};
}

}  // namespace poisson::assembly
