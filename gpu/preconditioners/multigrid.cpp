#include "gpu/preconditioners/multigrid.hpp"

#include "gpu/core/error.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/smoother.hpp"
#include "gpu/preconditioners/dense_inverse.hpp"
#include "gpu/preconditioners/multigrid_hierarchy.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

namespace poisson {

namespace {

/// A setup with an application that a preconditioner in either arithmetic uses.
class CycleSetup : public PreconditionerSetup {
public:
  /// z = M^-1 r.
  virtual void apply(double const* r, double* z, std::int32_t const* stop) const = 0;
  [[nodiscard]] virtual std::int64_t bytes_per_cycle() const = 0;
  [[nodiscard]] virtual Context& context() const = 0;
  [[nodiscard]] virtual std::int64_t n() const = 0;
  [[nodiscard]] std::int64_t dependent_steps() const { return 10 * std::ssize(multigrid_levels()); }

  std::unique_ptr<Preconditioner<double>> applied_in(double) const override;
  std::unique_ptr<Preconditioner<DoubleDouble>> applied_in(DoubleDouble) const override;
};

template <class V>
class MultigridSetup final : public CycleSetup {
public:
  /// `n`: rows of the matrix that this rank has.
  MultigridSetup(Context& context, std::int64_t n, MultigridHierarchy<V> hierarchy, PreconditionerOptions const& options)
      : context_(context), kernels_(kernels_for<SmootherKernels<V>>(context)), options_(options.multigrid), n_(n) {
    failure_ = std::move(hierarchy.failure);
    if (!failure_.empty())
      return;
    for (MultigridLevel<V>& level : hierarchy.levels)
      levels_.emplace_back(context, std::move(level));
    entry_ = std::move(hierarchy.entry);
    dot_ = Array<V>(context, 1);
    if (!hierarchy.coarsest.empty())
      invert_coarsest(hierarchy.coarsest, options);
    options.done(context, "vectors and inverse");
  }

  void apply(double const* r, double* z, std::int32_t const* stop) const override {
    begin_from_outside(r, stop);
    if (!visit(0, true, options_.cycle, entry_ == nullptr ? z : nullptr, stop))
      to_outside(z, stop);
  }
  bool start_nested(double const* b, double* x, double* coarse) const override {
    if (levels_.size() < 2)
      return false;
    std::int32_t const no = 0;
    Array<std::int32_t> const running(context_, std::span<std::int32_t const>(&no, 1));
    std::int32_t const* const stop = running.data();
    // The right-hand sides of all levels: P^T of the next finer one's.
    begin_from_outside(b, stop);
    for (std::size_t l = 0; l + 1 < levels_.size(); ++l) {
      Level const& level = levels_[l];
      if (level.halo != nullptr && level.to_coarse->reads_around() && layers_of_b(level) == 0)
        level.halo->fill(level.b.data());
      restrict_residual(level, level.b.data(), levels_[l + 1], stop);
    }
    // A cycle overwrites the right-hand sides of coarser levels, which have done their part by then.
    visit(levels_.size() - 1, true, MultigridCycle::v, nullptr, stop);
    for (std::size_t l = levels_.size() - 1; l-- > 0;) {
      Level const& level = levels_[l];
      level.x = level.buffers[0].data();
      context_.set_zero(level.x, static_cast<std::int64_t>(sizeof(V)) * level.n());
      level.right_layers = level.layers;
      prolong(level, levels_[l + 1], stop);
      if (l == 0)
        to_outside(coarse, stop);
      visit(l, false, MultigridCycle::v, nullptr, stop);
    }
    to_outside(x, stop);
    return true;
  }
  std::int64_t bytes_per_cycle() const override {
    std::int64_t const number = sizeof(V);
    std::int64_t bytes = 2 * (8 + number) * n();
    for (Level const& level : levels_) {
      std::int64_t const product = level.a().bytes_read(V(0)), step = product + 4 * number * level.n();
      bytes += level.to_coarse != nullptr ? 2 * degree_on(level) * step + level.to_coarse->bytes_moved()
                                          : number * (level.n() * level.n() + 2 * level.n());
    }
    return bytes;
  }
  Context& context() const override { return context_; }
  std::int64_t n() const override { return n_; }
  std::vector<MultigridLevelSummary> multigrid_levels() const override {
    std::vector<MultigridLevelSummary> result;
    for (Level const& level : levels_) {
      std::int64_t bytes = level.vector_bytes() + level.diagonal.bytes() + (level.own != nullptr ? level.own->bytes() : 0);
      bytes += level.to_coarse != nullptr ? level.to_coarse->bytes() : inverse_.bytes();
      result.push_back({level.halo != nullptr ? level.rows_of_all : level.n(), level.nnz, bytes, level.largest});
    }
    return result;
  }

private:
  struct Level : MultigridLevel<V> {
    Level(Context& context, MultigridLevel<V> of) : MultigridLevel<V>(std::move(of)) {
      for (Array<V>* const vector : {&b, &buffers[0], &buffers[1]}) {
        *vector = Array<V>(context, this->matrix->n_columns());  // with the ghosts of rows of a rank
        vector->set_zero();
      }
    }
    [[nodiscard]] LinearOperator<V> const& a() const { return *this->matrix; }
    [[nodiscard]] std::int64_t vector_bytes() const { return 3 * b.bytes(); }
    /// The buffer that x is not in.
    [[nodiscard]] V* other() const { return buffers[x == buffers[0].data() ? 1 : 0].data(); }

    mutable Array<V> b, buffers[2];
    mutable V* x = nullptr;        ///< one of the buffers
    mutable int right_layers = 0;  ///< of the halo, in which x is what the ranks that own it have
  };

  /// Layers of b that are filled in: where products are computed in layers, too, all of them.
  [[nodiscard]] static int layers_of_b(Level const& level) { return level.layers > 1 ? level.layers : 0; }
  /// x of the level is right in so many layers from here on, which may need the other ranks.
  void bring_around(Level const& level, int layers) const {
    if (level.halo == nullptr || level.right_layers >= layers)
      return;
    level.halo->fill(level.x);
    level.right_layers = level.layers;
  }
  /// Own entries of b are known: x is what the first step of the smoother makes of 0.
  void begin(Level const& level, std::int32_t const* stop) const {
    level.right_layers = layers_of_b(level);
    if (level.right_layers > 0)
      level.halo->fill(level.b.data());
    kernels_.begin(context_, level.n(), level.diagonal.data(), level.b.data(), first_factor(level), level.x, stop);
  }
  void begin_from_outside(double const* r, std::int32_t const* stop) const {
    Level const& finest = levels_.front();
    finest.x = finest.buffers[0].data();
    if (entry_ != nullptr) {
      entry_->enter(r, finest.b.data());
      begin(finest, stop);
    } else {
      kernels_.begin_from_outside(context_, finest.n(), finest.diagonal.data(), r, first_factor(finest), finest.b.data(), finest.x,
                                  stop);
    }
  }
  /// b of the coarser level, and x from its first step. One layer of r is right where that is read.
  void restrict_residual(Level const& level, V const* r, Level const& coarse, std::int32_t const* stop) const {
    coarse.x = coarse.buffers[0].data();
    coarse.right_layers = 0;
    bool const begins = layers_of_b(coarse) > 0;
    level.to_coarse->restrict_residual(r, coarse.diagonal.data(), first_factor(coarse), coarse.b.data(),
                                       begins ? nullptr : coarse.x, stop);
    if (begins)
      begin(coarse, stop);
  }
  void prolong(Level const& level, Level const& coarse, std::int32_t const* stop) const {
    bool const around = level.to_coarse->prolongs_around();
    if (around)
      bring_around(coarse, 1);
    level.to_coarse->prolong(coarse.x, level.x, stop);
    level.right_layers = around ? std::min(level.right_layers, 1) : 0;
  }

  /// x of the finest level.
  void to_outside(double* z, std::int32_t const* stop) const {
    Level const& finest = levels_.front();
    if (entry_ != nullptr)
      entry_->leave(finest.x, z, stop);
    else
      kernels_.to_outside(context_, finest.n(), finest.x, z, stop);
  }

  void invert_coarsest(std::vector<double> const& a, PreconditionerOptions const& options) {
    std::vector<double> const inverse = dense_inverse(a, levels_.back().n(), options.constant_null_space, options.positive);
    if (inverse.empty()) {
      failure_ = std::string("the coarsest matrix of multigrid is ") + (options.positive ? "not positive definite" : "singular");
      return;
    }
    std::vector<V> const rounded(inverse.begin(), inverse.end());
    inverse_ = Array<V>(context_, std::span<V const>(rounded));
  }

  [[nodiscard]] int degree_on(Level const& level) const { return options_.degree + level.more_steps; }
  /// Returns the factor of step k of the smoother. Steps after the correction go in the opposite order, so that they are adjoint to
  /// those before.
  [[nodiscard]] V factor(Level const& level, int steps, int k) const {
    return static_cast<V>((options_.smoother == MultigridSmoother::chebyshev
                               ? 1 / roots_of(steps, level.polynomial)[static_cast<std::size_t>(k)]
                               : 4.0 / 3) /
                          level.largest);
  }
  [[nodiscard]] std::vector<double> const& roots_of(int steps, SmootherPolynomial polynomial) const {
    std::vector<double>& roots = roots_[{steps, polynomial}];
    if (roots.empty())
      roots = smoother_roots(steps, polynomial);
    return roots;
  }
  [[nodiscard]] int steps_before(Level const& level) const {
    return level.to_coarse == nullptr && inverse_.size() == 0 ? 4 * degree_on(level) : degree_on(level);
  }
  [[nodiscard]] V first_factor(Level const& level) const { return factor(level, steps_before(level), 0); }

  enum class Order { forward, backward };
  /// All `steps` steps of the smoother; `begun`: x is what the first one makes of 0. With `z` the last one writes there.
  void smooth(Level const& level, int steps, Order order, bool begun, double* z, std::int32_t const* stop) const {
    for (int k = begun ? 1 : 0; k < steps; ++k) {
      SmoothingStep<V> step;
      step.diagonal = level.diagonal.data();
      step.b = level.b.data();
      step.factor = factor(level, steps, order == Order::forward ? k : steps - 1 - k);
      step.x_after = level.other();
      step.outside = k + 1 == steps ? z : nullptr;
      bring_around(level, 1);
      if (!level.matrix->smooth(step, level.x, stop)) {
        level.a().product_dot(level.x, step.x_after, dot_.data(), stop);
        kernels_.step(context_, level.n(), step, step.x_after, level.x, stop);
      }
      level.x = step.x_after;
      level.right_layers = std::min(level.right_layers - 1, layers_of_b(level));
    }
  }

  /// Improves x of level l, for its right-hand side b. `begun`: x is what the smoother's first step makes of 0. Returns whether the
  /// result is in `z`, where that is not null, instead of x.
  bool visit(std::size_t l, bool begun, MultigridCycle cycle, double* z, std::int32_t const* stop) const {
    Level const& level = levels_[l];
    if (l + 1 == levels_.size()) {
      if (inverse_.size() > 0)
        kernels_.solve_dense(context_, level.n(), inverse_.data(), level.b.data(), level.x, stop);
      else
        smooth(level, steps_before(level), Order::forward, begun, nullptr, stop);
      return false;
    }
    smooth(level, degree_on(level), Order::forward, begun, nullptr, stop);
    V* const residual = level.other();
    bool const reads_around = level.halo != nullptr && level.to_coarse->reads_around();
    bring_around(level, reads_around && layers_of_b(level) > 0 ? 2 : 1);
    if (!level.matrix->subtract_product(level.b.data(), level.x, residual, stop)) {
      level.a().product_dot(level.x, residual, dot_.data(), stop);
      kernels_.residual(context_, level.n(), level.b.data(), residual, stop);
    }
    if (reads_around && layers_of_b(level) == 0)
      level.halo->fill(residual);
    Level const& coarse = levels_[l + 1];
    restrict_residual(level, residual, coarse, stop);
    visit(l + 1, true, cycle, nullptr, stop);
    if (cycle != MultigridCycle::v && l + 2 < levels_.size())
      visit(l + 1, false, cycle == MultigridCycle::f ? MultigridCycle::v : cycle, nullptr, stop);
    prolong(level, coarse, stop);
    smooth(level, degree_on(level), Order::backward, false, z, stop);
    return z != nullptr;
  }

  Context& context_;
  SmootherKernels<V> const& kernels_;
  MultigridOptions options_;
  std::int64_t n_;
  std::vector<Level> levels_;
  std::unique_ptr<RankEntry<V>> entry_;
  mutable std::map<std::pair<int, SmootherPolynomial>, std::vector<double>> roots_;
  Array<V> inverse_;  ///< of the coarsest matrix; empty where that is only smoothed
  mutable Array<V> dot_;
};

class MultigridInDouble final : public Preconditioner<double> {
public:
  explicit MultigridInDouble(CycleSetup const& setup) : setup_(setup) {}
  void apply(double const* r, double* z, std::int32_t const* stop) override { setup_.apply(r, z, stop); }
  std::int64_t bytes_per_apply() const override { return setup_.bytes_per_cycle(); }
  std::int64_t dependent_steps() const override { return setup_.dependent_steps(); }

private:
  CycleSetup const& setup_;
};

/// Applies the cycle to the high part of r. For that part z is as accurate as in double.
class MultigridInDoubleDouble final : public Preconditioner<DoubleDouble> {
public:
  explicit MultigridInDoubleDouble(CycleSetup const& setup) : setup_(setup) {}
  void apply(ConstPointer<DoubleDouble> r, Pointer<DoubleDouble> z, std::int32_t const* stop) override {
    setup_.apply(r.hi, z.hi, stop);
    setup_.context().set_zero(z.lo, 8 * setup_.n());
  }
  std::int64_t bytes_per_apply() const override { return setup_.bytes_per_cycle() + 8 * setup_.n(); }
  std::int64_t dependent_steps() const override { return setup_.dependent_steps(); }

private:
  CycleSetup const& setup_;
};

std::unique_ptr<Preconditioner<double>> CycleSetup::applied_in(double) const {
  return std::make_unique<MultigridInDouble>(*this);
}
std::unique_ptr<Preconditioner<DoubleDouble>> CycleSetup::applied_in(DoubleDouble) const {
  return std::make_unique<MultigridInDoubleDouble>(*this);
}

template <class V>
std::unique_ptr<PreconditionerSetup> make(MultiPrecisionOperator const& a, PreconditionerOptions const& options) {
  Context& context = a.context();
  if (options.multigrid.cycle == MultigridCycle::f && options.positive)
    throw InputError("the f-cycle of multigrid is not symmetric, which cg needs; use the cycle v or w, or the method bicgstab");
  if (auto const* const of_rank = dynamic_cast<RankMatrix const*>(&a); of_rank != nullptr) {
    RankBlocks const* const blocks = options.nested_spaces ? nullptr : options.blocks.get();
    auto hierarchy =
        has_levels(blocks) ? box_hierarchy<V>(*of_rank, *blocks, options)
        : has_levels(of_rank->lattices())
            ? lattice_hierarchy<V>(*of_rank, options)
            : algebraic_hierarchy<V>(*of_rank, options.nested_spaces ? options.nested_spaces() : RankNestedSpaces{}, options);
    return std::make_unique<MultigridSetup<V>>(context, a.n_rows(), std::move(hierarchy), options);
  }
  if (is_box(a, options.box_nodes))
    return std::make_unique<MultigridSetup<V>>(context, a.n_rows(), box_hierarchy<V>(dynamic_cast<Matrix const&>(a), options),
                                               options);
  if (auto const* const lattices = dynamic_cast<LatticeHalfCds const*>(&a); lattices != nullptr && has_levels(*lattices))
    return std::make_unique<MultigridSetup<V>>(context, a.n_rows(), lattice_hierarchy<V>(*lattices, options), options);
  if (OrderOne order_one = options.order_one ? options.order_one() : OrderOne{}; order_one.matrix != nullptr) {
    auto const& matrix = dynamic_cast<Matrix const&>(a);
    return std::make_unique<MultigridSetup<V>>(
        context, a.n_rows(),
        order_one.lattices.order > 1 ? order_hierarchy<V>(matrix, std::move(order_one), options)
                                     : hierarchy_of_order_one<V>(std::move(order_one.matrix), order_one.box_nodes, options),
        options);
  }
  if (!options.csr)
    throw InputError("the preconditioner multigrid is made from the entries of the matrix, and there are none");
  if (options.box_nodes[0] > 0) {  // another format
    std::unique_ptr<Matrix> diagonals;
    try {
      diagonals = make_matrix(Format::half_cds, options.csr(), context);
    } catch (InputError const&) {  // few nodes, or no symmetry: half_cds refuses it
    }
    if (diagonals != nullptr && is_box(*diagonals, options.box_nodes)) {
      auto hierarchy = box_hierarchy<V>(*diagonals, options);
      if (!hierarchy.levels.empty() && hierarchy.levels.front().matrix == diagonals.get())
        hierarchy.levels.front().own = std::move(diagonals);
      return std::make_unique<MultigridSetup<V>>(context, a.n_rows(), std::move(hierarchy), options);
    }
  }
  return std::make_unique<MultigridSetup<V>>(
      context, a.n_rows(), algebraic_hierarchy<V>(dynamic_cast<Matrix const*>(&a), options.csr, context, options), options);
}

}  // namespace

std::unique_ptr<PreconditionerSetup> make_multigrid(MultiPrecisionOperator const& a, PreconditionerOptions const& options) {
  if (options.steps != nullptr)
    options.steps->begin();
  if (options.multigrid.precision != MultigridPrecision::double_) {
    auto setup = make<float>(a, options);
    // Rounding may lose what couples parts of very different coefficients.
    if (setup->failure().empty() || !options.positive)
      return setup;
  }
  return make<double>(a, options);
}

}  // namespace poisson
