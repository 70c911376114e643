#include "gpu/preconditioners/multigrid.hpp"

#include "gpu/core/array.hpp"
#include "gpu/formats/half_cds.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/box_levels.hpp"
#include "gpu/kernels/vectors.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

namespace poisson {

namespace {

constexpr std::int64_t most_coarsest = 400;  ///< unknowns of a dense inverse: it is read by every cycle
constexpr double strong = 0.25;              ///< share of the strongest coupling from which a direction is halved
constexpr double safety = 1.1;               ///< on the estimate of the largest eigenvalue

std::vector<std::int32_t> box_offsets(BoxLevel const& level) {
  std::vector<std::int32_t> offsets;
  for (int k = 0; k < half_stencil::diagonals; ++k)
    offsets.push_back(
        static_cast<std::int32_t>(half_stencil::offset(k, level.nodes[0], std::int64_t{level.nodes[0]} * level.nodes[1])));
  return offsets;
}

/// The inverse of a symmetric matrix of n x n, column by column; with `constants` of A restricted to vectors whose entries at free
/// unknowns have the sum 0. Empty where A is not positive definite there. Gauss-Jordan's elimination without pivots.
std::vector<double> inverse_of(std::vector<double> a, std::int64_t n, std::vector<std::uint8_t> const& free, bool constants) {
  auto const at = [n](std::int64_t i, std::int64_t j) { return static_cast<std::size_t>(i * n + j); };
  double share = 0, count = 0;
  if (constants) {  // A + s 1 1^T has the same inverse on that complement; s is of the size of A
    for (std::int64_t i = 0; i < n; ++i)
      if (free[static_cast<std::size_t>(i)] != 0) {
        share += a[at(i, i)];
        ++count;
      }
    share /= count * count;
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j)
        if (free[static_cast<std::size_t>(i)] != 0 && free[static_cast<std::size_t>(j)] != 0)
          a[at(i, j)] += share;
  }
  for (std::int64_t p = 0; p < n; ++p) {
    double const pivot = a[at(p, p)];
    if (!(pivot > 0))
      return {};
    a[at(p, p)] = 1;
    for (std::int64_t j = 0; j < n; ++j)
      a[at(p, j)] /= pivot;
    for (std::int64_t i = 0; i < n; ++i) {
      if (i == p)
        continue;
      double const factor = a[at(i, p)];
      if (factor == 0)
        continue;
      a[at(i, p)] = 0;
      for (std::int64_t j = 0; j < n; ++j)
        a[at(i, j)] -= factor * a[at(p, j)];
    }
  }
  if (constants)  // the part of constants goes
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j)
        if (free[static_cast<std::size_t>(i)] != 0 && free[static_cast<std::size_t>(j)] != 0)
          a[at(i, j)] -= 1 / (share * count * count);
  return a;
}

class MultigridSetup final : public PreconditionerSetup {
public:
  MultigridSetup(MultiPrecisionOperator const& a, PreconditionerOptions const& options)
      : context_(a.context()), kernels_(kernels_for<BoxLevelKernels>(context_)), degree_(options.multigrid.degree) {
    auto const* const finest = dynamic_cast<HalfCds const*>(&a);
    BoxLevel box;
    for (std::size_t d = 0; d < 3; ++d)
      box.nodes[d] = static_cast<std::int32_t>(options.box_nodes[d]);
    if (finest == nullptr || finest->view().values == nullptr || box.n() != a.n_rows() ||
        !std::ranges::equal(finest->view().offsets, box_offsets(box))) {
      failure_ = "multigrid is for half_cds matrices of trilinear elements on boxes of at least 2 x 2 x 2 cells";
      return;
    }
    Array<float> values(context_, half_stencil::diagonals * box.n());
    kernels_.round(context_, box, finest->view().values, values.data());
    levels_.push_back(make_level(box, std::move(values), Array<std::uint8_t>(context_, box.n())));
    for (;;) {
      Level& fine = levels_.back();
      auto const analysis = kernels_.analyse(context_, fine.box, fine.free.data());
      if (!(analysis.largest > 0) || !std::isfinite(analysis.bound)) {
        failure_ = "the matrix is not positive definite on level " + std::to_string(levels_.size()) + " of multigrid";
        return;
      }
      fine.largest = std::min(safety * analysis.largest, analysis.bound);
      auto const coarsening = next_coarsening(fine.box, analysis);
      if (!coarsening)
        break;
      fine.to_coarse = *coarsening;
      BoxLevel coarse;
      for (std::size_t d = 0; d < 3; ++d)
        coarse.nodes[d] = coarsening->halved[d] ? BoxCoarsening::coarse_nodes(fine.box.nodes[d]) : fine.box.nodes[d];
      Array<float> coarse_values(context_, half_stencil::diagonals * coarse.n());
      Array<std::uint8_t> free(context_, coarse.n());
      fine.weights = Array<float>(context_, 27 * coarse.n());
      fine.to_coarse.weights = fine.weights.data();
      coarse.free = free.data();
      kernels_.coarsen(context_, fine.box, fine.to_coarse, coarse, fine.weights.data(), free.data(), coarse_values.data());
      levels_.push_back(make_level(coarse, std::move(coarse_values), std::move(free)));
    }
    invert_coarsest(options.constant_null_space);
  }

  std::unique_ptr<Preconditioner<double>> applied_in(double) const override;
  std::unique_ptr<Preconditioner<DoubleDouble>> applied_in(DoubleDouble) const override;
  std::int64_t levels() const override { return static_cast<std::int64_t>(levels_.size()); }

  /// z = M^-1 r.
  void apply(double const* r, double* z, std::int32_t const* stop) const {
    cycle(0, r, stop);
    kernels_.widen(context_, levels_.front().box.n(), levels_.front().x.data(), z, stop);
  }
  [[nodiscard]] std::int64_t bytes_per_cycle() const {
    std::int64_t bytes = 16 * levels_.front().box.n();
    for (Level const& level : levels_)
      bytes += 2 * degree_ * (level.matrix_bytes + 36 * level.box.n()) + 20 * level.box.n();
    return bytes;
  }
  [[nodiscard]] Context& context() const { return context_; }

private:
  struct Level {
    BoxLevel box;
    std::unique_ptr<Matrix> matrix;
    std::int64_t matrix_bytes = 0;
    Array<std::uint8_t> free;
    double largest = 0;  ///< eigenvalue of D^-1 A that the smoother covers
    BoxCoarsening to_coarse;
    Array<float> weights;  ///< of to_coarse
    mutable Array<float> b, d, x, y;
  };

  Level make_level(BoxLevel const& box, Array<float> values, Array<std::uint8_t> free) const {
    Level level;
    level.box = box;
    level.box.values = values.data();
    level.box.free = free.data();
    level.free = std::move(free);
    level.matrix = HalfCds::from_diagonals(context_, box.n(), box_offsets(box), std::move(values));
    level.matrix_bytes = level.matrix->bytes();
    for (Array<float>* const vector : {&level.b, &level.d, &level.x, &level.y}) {
      *vector = Array<float>(context_, box.n());
      vector->set_zero();
    }
    return level;
  }

  /// Nothing where the level is small enough, or no direction has three cells or more. Where no direction has a coupling, because
  /// it is small beside what was lost to Dirichlet values, all are alike.
  static std::optional<BoxCoarsening> next_coarsening(BoxLevel const& box, BoxLevelAnalysis const& analysis) {
    if (box.n() <= most_coarsest)
      return std::nullopt;
    double strongest = 0;
    for (std::size_t d = 0; d < 3; ++d)
      if (box.nodes[d] > 3)
        strongest = std::max(strongest, analysis.coupling[d]);
    BoxCoarsening result;
    bool any = false;
    for (std::size_t d = 0; d < 3; ++d)
      any = (result.halved[d] = box.nodes[d] > 3 && (strongest <= 0 || analysis.coupling[d] >= strong * strongest)) || any;
    return any ? std::optional(result) : std::nullopt;
  }

  void invert_coarsest(bool constants) {
    Level const& level = levels_.back();
    std::int64_t const n = level.box.n();
    if (n > 4 * most_coarsest) {
      failure_ = "multigrid cannot coarsen this box any further than to " + std::to_string(n) + " unknowns";
      return;
    }
    HostVector<float> values(static_cast<std::size_t>(half_stencil::diagonals * n));
    context_.download(values.data(), level.box.values, 4 * std::ssize(values));
    std::vector<std::uint8_t> free(static_cast<std::size_t>(n));
    context_.download(free.data(), level.free.data(), n);
    BoxLevel host = level.box;
    host.values = values.data();
    std::vector<double> a(static_cast<std::size_t>(n * n), 0.0);
    for (std::int32_t k = 0; k < host.nodes[2]; ++k)
      for (std::int32_t j = 0; j < host.nodes[1]; ++j)
        for (std::int32_t i = 0; i < host.nodes[0]; ++i) {
          std::int64_t const row = host.number(i, j, k);
          for (int dz = -1; dz <= 1; ++dz)
            for (int dy = -1; dy <= 1; ++dy)
              for (int dx = -1; dx <= 1; ++dx)
                if (float const v = box_levels::entry(host, i, j, k, dx, dy, dz); v != 0)
                  a[static_cast<std::size_t>(row * n + host.number(i + dx, j + dy, k + dz))] = static_cast<double>(v);
        }
    std::vector<double> const inverse = inverse_of(std::move(a), n, free, constants);
    if (inverse.empty()) {
      failure_ = "the coarsest matrix of multigrid is not positive definite";
      return;
    }
    std::vector<float> const rounded(inverse.begin(), inverse.end());
    inverse_ = Array<float>(context_, std::span<float const>(rounded));
    dot_ = Array<float>(context_, 1);
  }

  /// x of the level from x = 0, for the right-hand side r.
  template <class T>
  void cycle(std::size_t l, T const* r, std::int32_t const* stop) const {
    Level const& level = levels_[l];
    auto const scale = static_cast<float>(1 / level.largest);
    kernels_.begin(context_, level.box, r, 4.F / 3.F * scale, level.b.data(), level.d.data(), level.x.data(), stop);
    if (l + 1 == levels_.size())
      return kernels_.solve_dense(context_, level.box.n(), inverse_.data(), level.b.data(), level.x.data(), stop);
    LinearOperator<float> const& a = *level.matrix;
    auto const multiply = [&] { a.product_dot(level.x.data(), level.y.data(), dot_.data(), stop); };
    auto const step = [&](int k) {
      auto const i = static_cast<float>(k);
      kernels_.step(context_, level.box, level.b.data(), level.y.data(), k == 0 ? 0 : (2 * i - 1) / (2 * i + 3),
                    (8 * i + 4) / (2 * i + 3) * scale, level.d.data(), level.x.data(), stop);
    };
    for (int k = 1; k < degree_; ++k) {
      multiply();
      step(k);
    }
    multiply();
    Level const& coarse = levels_[l + 1];
    kernels_.restrict_to(context_, level.box, level.to_coarse, coarse.box, level.b.data(), level.y.data(), coarse.b.data(), stop);
    cycle(l + 1, coarse.b.data(), stop);
    kernels_.prolong(context_, level.box, level.to_coarse, coarse.box, coarse.x.data(), level.x.data(), stop);
    for (int k = 0; k < degree_; ++k) {
      multiply();
      step(k);
    }
  }

  Context& context_;
  BoxLevelKernels const& kernels_;
  int degree_;
  std::vector<Level> levels_;
  Array<float> inverse_;
  mutable Array<float> dot_;
};

class MultigridInDouble final : public Preconditioner<double> {
public:
  explicit MultigridInDouble(MultigridSetup const& setup) : setup_(setup) {}
  void apply(double const* r, double* z, std::int32_t const* stop) override { setup_.apply(r, z, stop); }
  std::int64_t bytes_per_apply() const override { return setup_.bytes_per_cycle(); }
  std::int64_t dependent_steps() const override { return 8 * setup_.levels(); }

private:
  MultigridSetup const& setup_;
};

/// Of r the high part, to which z is as accurate as in double.
class MultigridInDoubleDouble final : public Preconditioner<DoubleDouble> {
public:
  MultigridInDoubleDouble(MultigridSetup const& setup, std::int64_t n) : setup_(setup), n_(n) {}
  void apply(ConstPointer<DoubleDouble> r, Pointer<DoubleDouble> z, std::int32_t const* stop) override {
    setup_.apply(r.hi, z.hi, stop);
    setup_.context().set_zero(z.lo, 8 * n_);
  }
  std::int64_t bytes_per_apply() const override { return setup_.bytes_per_cycle() + 8 * n_; }
  std::int64_t dependent_steps() const override { return 8 * setup_.levels(); }

private:
  MultigridSetup const& setup_;
  std::int64_t n_;
};

std::unique_ptr<Preconditioner<double>> MultigridSetup::applied_in(double) const {
  return std::make_unique<MultigridInDouble>(*this);
}
std::unique_ptr<Preconditioner<DoubleDouble>> MultigridSetup::applied_in(DoubleDouble) const {
  return std::make_unique<MultigridInDoubleDouble>(*this, levels_.front().box.n());
}

}  // namespace

std::unique_ptr<PreconditionerSetup> make_multigrid(MultiPrecisionOperator const& a, PreconditionerOptions const& options) {
  return std::make_unique<MultigridSetup>(a, options);
}

}  // namespace poisson
