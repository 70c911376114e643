#include "gpu/preconditioners/multigrid.hpp"

#include "gpu/core/error.hpp"
#include "gpu/elements/void_box_operator.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/smoother.hpp"
#include "gpu/preconditioners/dense_inverse.hpp"
#include "gpu/preconditioners/multigrid_hierarchy.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace poisson {

namespace {

/// A setup with an application that a preconditioner in either arithmetic uses.
class CycleSetup : public PreconditionerSetup {
public:
  /// z = M^-1 r, for 1 to most_columns columns.
  virtual void apply(std::span<PreconditionedColumn<double> const> columns) const = 0;
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
    inclusions_ = std::move(hierarchy.inclusions);
    dot_ = Array<V>(context, 1);
    if (!hierarchy.coarsest.empty())
      invert_coarsest(hierarchy.coarsest, options.constant_null_space || hierarchy.constants, options.positive);
    options.done(context, "vectors and inverse");
  }

  /// The columns go through the cycle together: a pass over the matrix of a level, or over the weights of P, serves all of them
  /// where there is a loop for it (Matrix::smooth_all, GridTransfer::restrict_residuals). Everything else is done for one column
  /// after another. Bytes a row of half_cds in single with m columns: 60 + 12 m a step of the smoother, 56 + 12 m a residual, 20 m
  /// to begin, 27 + 17 m for both transfers.
  void apply(std::span<PreconditionedColumn<double> const> columns) const override {
    make_vectors(columns.size());
    std::array<Work, most_columns> all;
    for (std::size_t j = 0; j < columns.size(); ++j) {
      all[j] = {j, entry_ == nullptr ? columns[j].z : nullptr, columns[j].stop};
      begin_from_outside(columns[j].r, all[j]);
    }
    if (!visit(0, true, options_.cycle, std::span(all).first(columns.size())))
      for (std::size_t j = 0; j < columns.size(); ++j)
        to_outside(columns[j].z, all[j]);
    if (inclusions_ != nullptr)
      for (PreconditionedColumn<double> const& column : columns)
        inclusions_->add(column.r, column.z, column.stop);
  }
  bool start_nested(double const* b, double* x, double* coarse) const override {
    if (levels_.size() < 2)
      return false;
    std::int32_t const no = 0;
    Array<std::int32_t> const running(context_, std::span<std::int32_t const>(&no, 1));
    Work const work{0, nullptr, running.data()};
    // The right-hand sides of all levels: P^T of the next finer one's.
    begin_from_outside(b, work);
    for (std::size_t l = 0; l + 1 < levels_.size(); ++l) {
      Level const& level = levels_[l];
      if (level.halo != nullptr && level.to_coarse->reads_around() && layers_of_b(level) == 0)
        level.halo->fill(level.of(work).b.data());
      restrict_residuals(
          level, [&](Work const& one) { return level.of(one).b.data(); }, levels_[l + 1], std::span(&work, 1));
    }
    // A cycle overwrites the right-hand sides of coarser levels, which have done their part by then.
    visit(levels_.size() - 1, true, MultigridCycle::v, std::span(&work, 1));
    for (std::size_t l = levels_.size() - 1; l-- > 0;) {
      Level const& level = levels_[l];
      Vectors& vectors = level.of(work);
      vectors.x = vectors.buffers[0].data();
      context_.set_zero(vectors.x, static_cast<std::int64_t>(sizeof(V)) * level.n());
      vectors.right_layers = level.layers;
      prolong(level, levels_[l + 1], std::span(&work, 1));
      if (l == 0)
        to_outside(coarse, work);
      visit(l, false, MultigridCycle::v, std::span(&work, 1));
    }
    to_outside(x, work);
    return true;
  }
  std::int64_t bytes_per_cycle() const override {
    std::int64_t const number = sizeof(V);
    std::int64_t bytes = 2 * (8 + number) * n() + (inclusions_ != nullptr ? inclusions_->bytes_moved() : 0);
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
  /// Of a column on a level.
  struct Vectors {
    Vectors(Context& context, std::int64_t n) {
      for (Array<V>* const vector : {&b, &buffers[0], &buffers[1]}) {
        *vector = Array<V>(context, n);
        vector->set_zero();
      }
    }
    /// The buffer that x is not in.
    [[nodiscard]] V* other() { return buffers[x == buffers[0].data() ? 1 : 0].data(); }

    Array<V> b, buffers[2];
    V* x = nullptr;        ///< one of the buffers
    int right_layers = 0;  ///< of the halo, in which x is what the ranks that own it have
  };
  /// A column that a cycle is done with.
  struct Work {
    std::size_t column;
    double* z;  ///< where the last step of the smoother on the finest level may write; null: nowhere
    std::int32_t const* stop;
  };
  using Works = std::span<Work const>;

  struct Level : MultigridLevel<V> {
    Level(Context& context, MultigridLevel<V> of) : MultigridLevel<V>(std::move(of)) { add_vectors(context); }
    [[nodiscard]] LinearOperator<V> const& a() const { return *this->matrix; }
    /// With the ghosts of rows of a rank.
    void add_vectors(Context& context) const { vectors.emplace_back(context, this->matrix->n_columns()); }
    [[nodiscard]] std::int64_t vector_bytes() const { return 3 * std::ssize(vectors) * vectors.front().b.bytes(); }
    [[nodiscard]] Vectors& of(Work const& work) const { return vectors[work.column]; }

    mutable std::vector<Vectors> vectors;  ///< of every column that there has been
  };

  /// The first block of so many columns brings its vectors along.
  void make_vectors(std::size_t columns) const {
    for (Level const& level : levels_)
      while (level.vectors.size() < columns)
        level.add_vectors(context_);
  }

  /// Layers of b that are filled in: where products are computed in layers, too, all of them.
  [[nodiscard]] static int layers_of_b(Level const& level) { return level.layers > 1 ? level.layers : 0; }
  /// x of the level is right in so many layers from here on, which may need the other ranks.
  void bring_around(Level const& level, Work const& work, int layers) const {
    Vectors& vectors = level.of(work);
    if (level.halo == nullptr || vectors.right_layers >= layers)
      return;
    level.halo->fill(vectors.x);
    vectors.right_layers = level.layers;
  }
  /// Own entries of b are known: x is what the first step of the smoother makes of 0.
  void begin(Level const& level, Work const& work) const {
    Vectors& vectors = level.of(work);
    vectors.right_layers = layers_of_b(level);
    if (vectors.right_layers > 0)
      level.halo->fill(vectors.b.data());
    kernels_.begin(context_, level.n(), level.diagonal.data(), vectors.b.data(), first_factor(level), vectors.x, work.stop);
  }
  void begin_from_outside(double const* r, Work const& work) const {
    Level const& finest = levels_.front();
    Vectors& vectors = finest.of(work);
    vectors.x = vectors.buffers[0].data();
    if (entry_ != nullptr) {
      entry_->enter(r, vectors.b.data());
      begin(finest, work);
    } else {
      kernels_.begin_from_outside(context_, finest.n(), finest.diagonal.data(), r, first_factor(finest), vectors.b.data(),
                                  vectors.x, work.stop);
    }
  }
  /// b of the coarser level, and x from its first step, from r(work). One layer of r is right where that is read.
  template <class Residual>
  void restrict_residuals(Level const& level, Residual const& r, Level const& coarse, Works works) const {
    bool const begins = layers_of_b(coarse) > 0;
    std::array<RestrictedColumn<V>, most_columns> columns;
    for (std::size_t j = 0; j < works.size(); ++j) {
      Vectors& vectors = coarse.of(works[j]);
      vectors.x = vectors.buffers[0].data();
      vectors.right_layers = 0;
      columns[j] = {r(works[j]), vectors.b.data(), begins ? nullptr : vectors.x, works[j].stop};
    }
    level.to_coarse->restrict_residuals(coarse.diagonal.data(), first_factor(coarse), std::span(columns).first(works.size()));
    if (begins)
      for (Work const& work : works)
        begin(coarse, work);
  }
  void prolong(Level const& level, Level const& coarse, Works works) const {
    bool const around = level.to_coarse->prolongs_around();
    std::array<ProlongedColumn<V>, most_columns> columns;
    for (std::size_t j = 0; j < works.size(); ++j) {
      if (around)
        bring_around(coarse, works[j], 1);
      Vectors& vectors = level.of(works[j]);
      columns[j] = {coarse.of(works[j]).x, vectors.x, works[j].stop};
      vectors.right_layers = around ? std::min(vectors.right_layers, 1) : 0;
    }
    level.to_coarse->prolong_all(std::span(columns).first(works.size()));
  }

  /// x of the finest level.
  void to_outside(double* z, Work const& work) const {
    Level const& finest = levels_.front();
    if (entry_ != nullptr)
      entry_->leave(finest.of(work).x, z, work.stop);
    else
      kernels_.to_outside(context_, finest.n(), finest.of(work).x, z, work.stop);
  }

  void invert_coarsest(std::vector<double> const& a, bool constants, bool positive) {
    std::vector<double> const inverse = dense_inverse(a, levels_.back().n(), constants, positive);
    if (inverse.empty()) {
      failure_ = std::string("the coarsest matrix of multigrid is ") + (positive ? "not positive definite" : "singular");
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
  /// All `steps` steps of the smoother; `begun`: x is what the first one makes of 0. With `leaves` the last one writes to z.
  void smooth(Level const& level, int steps, Order order, bool begun, bool leaves, Works works) const {
    for (int k = begun ? 1 : 0; k < steps; ++k) {
      std::array<SmoothingColumn<V>, most_columns> columns;
      for (std::size_t j = 0; j < works.size(); ++j) {
        Vectors& vectors = level.of(works[j]);
        SmoothingStep<V>& step = columns[j].step;
        step.diagonal = level.diagonal.data();
        step.b = vectors.b.data();
        step.factor = factor(level, steps, order == Order::forward ? k : steps - 1 - k);
        step.x_after = vectors.other();
        step.outside = k + 1 == steps && leaves ? works[j].z : nullptr;
        bring_around(level, works[j], 1);
        columns[j].x = vectors.x;
        columns[j].stop = works[j].stop;
      }
      std::span<SmoothingColumn<V> const> const all = std::span(columns).first(works.size());
      if (!level.matrix->smooth_all(all))
        for (SmoothingColumn<V> const& column : all) {
          level.a().product_dot(column.x, column.step.x_after, dot_.data(), column.stop);
          kernels_.step(context_, level.n(), column.step, column.step.x_after, column.x, column.stop);
        }
      for (std::size_t j = 0; j < works.size(); ++j) {
        Vectors& vectors = level.of(works[j]);
        vectors.x = columns[j].step.x_after;
        vectors.right_layers = std::min(vectors.right_layers - 1, layers_of_b(level));
      }
    }
  }

  /// Improves x of level l, for its right-hand side b. `begun`: x is what the smoother's first step makes of 0. Returns whether the
  /// result is in z of `works`, where that is not null, instead of x.
  bool visit(std::size_t l, bool begun, MultigridCycle cycle, Works works) const {
    Level const& level = levels_[l];
    if (l + 1 == levels_.size()) {
      if (inverse_.size() > 0)
        for (Work const& work : works)
          kernels_.solve_dense(context_, level.n(), inverse_.data(), level.of(work).b.data(), level.of(work).x, work.stop);
      else
        smooth(level, steps_before(level), Order::forward, begun, false, works);
      return false;
    }
    smooth(level, degree_on(level), Order::forward, begun, false, works);
    bool const reads_around = level.halo != nullptr && level.to_coarse->reads_around();
    std::array<ResidualColumn<V>, most_columns> columns;
    for (std::size_t j = 0; j < works.size(); ++j) {
      Vectors& vectors = level.of(works[j]);
      bring_around(level, works[j], reads_around && layers_of_b(level) > 0 ? 2 : 1);
      columns[j] = {vectors.b.data(), vectors.x, vectors.other(), works[j].stop};
    }
    std::span<ResidualColumn<V> const> const all = std::span(columns).first(works.size());
    if (!level.matrix->subtract_products(all))
      for (ResidualColumn<V> const& column : all) {
        level.a().product_dot(column.x, column.r, dot_.data(), column.stop);
        kernels_.residual(context_, level.n(), column.b, column.r, column.stop);
      }
    Level const& coarse = levels_[l + 1];
    if (reads_around && layers_of_b(level) == 0)
      for (ResidualColumn<V> const& column : all)
        level.halo->fill(column.r);
    restrict_residuals(
        level, [&](Work const& work) { return level.of(work).other(); }, coarse, works);
    visit(l + 1, true, cycle, works);
    if (cycle != MultigridCycle::v && l + 2 < levels_.size())
      visit(l + 1, false, cycle == MultigridCycle::f ? MultigridCycle::v : cycle, works);
    prolong(level, coarse, works);
    bool const leaves = l == 0 && works.front().z != nullptr;
    smooth(level, degree_on(level), Order::backward, false, leaves, works);
    return leaves;
  }

  Context& context_;
  SmootherKernels<V> const& kernels_;
  MultigridOptions options_;
  std::int64_t n_;
  std::vector<Level> levels_;
  std::unique_ptr<RankEntry<V>> entry_;
  std::unique_ptr<Inclusions> inclusions_;
  mutable std::map<std::pair<int, SmootherPolynomial>, std::vector<double>> roots_;
  Array<V> inverse_;  ///< of the coarsest matrix; empty where that is only smoothed
  mutable Array<V> dot_;
};

class MultigridInDouble final : public Preconditioner<double> {
public:
  explicit MultigridInDouble(CycleSetup const& setup) : setup_(setup) {}
  void apply(double const* r, double* z, std::int32_t const* stop) override {
    PreconditionedColumn<double> const alone{r, z, stop};
    setup_.apply(std::span(&alone, 1));
  }
  void apply_to_all(std::span<PreconditionedColumn<double> const> columns) override { setup_.apply(columns); }
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
    PreconditionedColumn<DoubleDouble> const alone{r, z, stop};
    apply_to_all(std::span(&alone, 1));
  }
  void apply_to_all(std::span<PreconditionedColumn<DoubleDouble> const> columns) override {
    std::array<PreconditionedColumn<double>, most_columns> high;
    for (std::size_t j = 0; j < columns.size(); ++j)
      high[j] = {columns[j].r.hi, columns[j].z.hi, columns[j].stop};
    setup_.apply(std::span(high).first(columns.size()));
    for (PreconditionedColumn<DoubleDouble> const& column : columns)
      setup_.context().set_zero(column.z.lo, 8 * setup_.n());
  }
  std::int64_t bytes_per_apply() const override { return setup_.bytes_per_cycle() + 8 * setup_.n(); }
  std::int64_t dependent_steps() const override { return setup_.dependent_steps(); }

private:
  CycleSetup const& setup_;
};

/// Multigrid of the whole box, where void conducts a little, for the matrix of what is left (VoidBoxOperator::filled).
class VoidBoxSetup final : public CycleSetup {
public:
  VoidBoxSetup(VoidBoxOperator const& a, std::unique_ptr<Matrix> filled, std::unique_ptr<CycleSetup> of_box)
      : a_(a), filled_(std::move(filled)), of_box_(std::move(of_box)) {
    failure_ = of_box_->failure();
  }

  void apply(std::span<PreconditionedColumn<double> const> columns) const override {
    std::array<PreconditionedColumn<double>, most_columns> in_box;
    for (std::size_t j = 0; j < columns.size(); ++j) {
      auto& [r, z] = vectors(j);
      a_.spread(columns[j].r, r.data());
      in_box[j] = {r.data(), z.data(), columns[j].stop};
    }
    of_box_->apply(std::span<PreconditionedColumn<double> const>(in_box).first(columns.size()));
    for (std::size_t j = 0; j < columns.size(); ++j)
      a_.gather(in_box[j].z, columns[j].z);
  }
  bool start_nested(double const* b, double* x, double* coarse) const override {
    auto& [r, z] = vectors(0);
    Array<double> of_coarse(context(), a_.n_of_box());
    a_.spread(b, r.data());
    if (!of_box_->start_nested(r.data(), z.data(), of_coarse.data()))
      return false;
    a_.gather(z.data(), x);
    a_.gather(of_coarse.data(), coarse);
    return true;
  }
  std::int64_t bytes_per_cycle() const override { return of_box_->bytes_per_cycle() + 40 * n(); }
  Context& context() const override { return a_.context(); }
  std::int64_t n() const override { return a_.n_rows(); }
  std::vector<MultigridLevelSummary> multigrid_levels() const override { return of_box_->multigrid_levels(); }

private:
  /// r and z of a column in the box; r is 0 where no row is.
  using Vectors = std::pair<Array<double>, Array<double>>;
  Vectors& vectors(std::size_t column) const {
    while (vectors_.size() <= column) {
      vectors_.emplace_back(Array<double>(context(), a_.n_of_box()), Array<double>(context(), a_.n_of_box()));
      vectors_.back().first.set_zero();
    }
    return vectors_[column];
  }

  VoidBoxOperator const& a_;
  std::unique_ptr<Matrix> filled_;
  std::unique_ptr<CycleSetup> of_box_;
  mutable std::vector<Vectors> vectors_;
};

std::unique_ptr<Preconditioner<double>> CycleSetup::applied_in(double) const {
  return std::make_unique<MultigridInDouble>(*this);
}
std::unique_ptr<Preconditioner<DoubleDouble>> CycleSetup::applied_in(DoubleDouble) const {
  return std::make_unique<MultigridInDoubleDouble>(*this);
}

template <class V>
std::unique_ptr<CycleSetup> make(MultiPrecisionOperator const& a, PreconditionerOptions const& options) {
  Context& context = a.context();
  if (options.multigrid.cycle == MultigridCycle::f && options.positive)
    throw InputError("the f-cycle of multigrid is not symmetric, which cg and minres need; use the cycle v or w, or the method "
                     "bicgstab or gmres");
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

/// Where rounding to single makes a matrix indefinite, the cycle is in double.
std::unique_ptr<CycleSetup> make_cycle(MultiPrecisionOperator const& a, PreconditionerOptions const& options) {
  if (options.multigrid.precision != MultigridPrecision::double_) {
    auto setup = make<float>(a, options);
    // Rounding may lose what couples parts of very different coefficients.
    if (setup->failure().empty() || !options.positive)
      return setup;
  }
  return make<double>(a, options);
}

}  // namespace

std::unique_ptr<PreconditionerSetup> make_multigrid(MultiPrecisionOperator const& a, PreconditionerOptions const& options) {
  if (options.steps != nullptr)
    options.steps->begin();
  auto const* const void_box = dynamic_cast<VoidBoxOperator const*>(&a);
  if (void_box == nullptr)
    return make_cycle(a, options);
  PreconditionerOptions of_box = options;
  of_box.box_nodes = void_box->box_nodes();
  of_box.csr = {};
  of_box.order_one = {};
  std::unique_ptr<Matrix> filled = void_box->filled();
  options.done(a.context(), "void that conducts a little");
  std::unique_ptr<CycleSetup> cycle = make_cycle(*filled, of_box);
  return std::make_unique<VoidBoxSetup>(*void_box, std::move(filled), std::move(cycle));
}

}  // namespace poisson
