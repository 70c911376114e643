#include "gpu/core/csr_entries.hpp"
#include "gpu/elements/box_operator.hpp"
#include "gpu/elements/label_operator.hpp"
#include "gpu/exchange/halo.hpp"
#include "gpu/exchange/whole_vector.hpp"
#include "gpu/formats/half_cds.hpp"
#include "gpu/formats/rank_matrix.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/block.hpp"
#include "gpu/kernels/box_levels.hpp"
#include "gpu/kernels/box_stencil_rows.hpp"
#include "gpu/kernels/conversion.hpp"
#include "gpu/kernels/smoother.hpp"
#include "gpu/preconditioners/box_blocks.hpp"
#include "gpu/preconditioners/inclusions.hpp"
#include "gpu/preconditioners/multigrid_hierarchy.hpp"
#include "gpu/preconditioners/rank_entries.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace poisson {

namespace {

using Counts = std::array<std::int64_t, 3>;

/// Levels of a stencil with more nodes stay matrix-free; smaller ones, which wait for launches, are stored: one launch a step
/// instead of two.
constexpr std::int64_t most_nodes_stored = 100000;
/// Symbols of rows beside a jump of the coefficient are far above all eigenvalues. What is larger than the largest symbol of
/// constant coefficients, 1.5 (4.5 where one direction is the strongest), and a little, is therefore replaced by a bound.
constexpr double largest_symbol = 2, largest_symbol_of_lines = 5;
constexpr int steps_of_bound = 4;
/// Beside such jumps the smoother takes twice the steps of the next finer level, up to so many times those of the finest: P hardly
/// reaches some parts there, and coarse levels cost little.
constexpr int most_doubled = 8;
constexpr double strong_direction = 0.25;  ///< share of the strongest coupling from which a direction is halved
/// Directions of so few nodes are not halved: with fewer in x or y the offsets of the diagonals would no longer ascend.
constexpr std::array<std::int32_t, 3> least_nodes{3, 3, 1};
/// A period of so few nodes is not halved, either.
constexpr std::int64_t least_period = 3;

/// Planes of nodes of a slab, an even number of them, and those around it that `extended` has at most.
constexpr std::int64_t planes_around_slab = 8;
std::int64_t planes_of_slab(std::int64_t planes) {
  return std::max<std::int64_t>(16, planes / 64 * 2);
}

/// Returns the offsets of the diagonals of half_stencil on a box with lines of nx nodes, ny of them a plane.
std::vector<std::int32_t> box_offsets(std::int64_t nx, std::int64_t ny) {
  std::vector<std::int32_t> offsets;
  for (int k = 0; k < half_stencil::diagonals; ++k)
    offsets.push_back(static_cast<std::int32_t>(half_stencil::offset(k, nx, nx * ny)));
  return offsets;
}

/// Returns the analysis of all rows of a matrix-free level. Its rows on faces are parts of the same sums. D^-1 A has no larger
/// eigenvalue than that of an element's matrix, which is the largest value of the stencil's symbol. So this bound holds for every
/// boundary condition.
BoxLevelAnalysis analysis_of(BoxOperator const& stencil) {
  box_levels::RowAnalysis const row = box_levels::analyse_row<double>(
      [&](int dx, int dy, int dz) { return box_rows::stencil_entry(stencil.view(), 13 + 9 * dz + 3 * dy + dx); });
  return {{row.coupling[0], row.coupling[1], row.coupling[2]}, row.largest, row.bound};
}

/// Returns the directions that are halved on a level of these nodes, of the whole box; nothing where it has no more than
/// coarse_size, and where a direction that is to be halved repeats itself after an odd number of nodes. Where no direction has a
/// coupling, because it is small beside what was lost to Dirichlet values, all are alike.
template <class V>
std::optional<BoxCoarsening<V>> next_coarsening(std::array<std::int64_t, 3> const& nodes, std::array<bool, 3> const& periodic,
                                                BoxLevelAnalysis const& analysis, std::int64_t coarse_size) {
  if (nodes[0] * nodes[1] * nodes[2] <= coarse_size)
    return std::nullopt;
  double strongest = 0;
  std::array<bool, 3> may_halve{};
  for (std::size_t d = 0; d < 3; ++d)
    may_halve[d] = nodes[d] > (periodic[d] ? least_period : least_nodes[d]);
  for (std::size_t d = 0; d < 3; ++d)
    if (may_halve[d])
      strongest = std::max(strongest, analysis.coupling[d]);
  BoxCoarsening<V> result;
  bool any = false;
  for (std::size_t d = 0; d < 3; ++d)
    any = (result.halved[d] = may_halve[d] && (strongest <= 0 || analysis.coupling[d] >= strong_direction * strongest)) || any;
  for (std::size_t d = 0; d < 3; ++d)
    if (result.halved[d] && periodic[d] && nodes[d] % 2 != 0)
      return std::nullopt;
  return any ? std::optional(result) : std::nullopt;
}

/// Sets the eigenvalue up to which the smoother of the level damps.
template <class V>
void set_largest(MultigridLevel<V>& level, BoxLevelAnalysis const& analysis) {
  level.largest = std::min(safety * analysis.largest, analysis.bound * (1 + 1e-6));
}

/// Sets the polynomial of the level's smoother, before a coarser level is made. `bound` is called where a symbol of the rows,
/// beside a jump of the coefficient, says little. It returns what weighted_bound does, and may lower the eigenvalue of set_largest.
/// `stencil` tells that all rows are that of one. Returns whether there are such jumps.
template <class V, class Bound>
bool set_smoother(MultigridLevel<V>& level, BoxLevelAnalysis const& analysis, BoxCoarsening<V> const& coarsening, bool stencil,
                  Bound const& bound) {
  bool const isotropic = coarsening.halved[0] && coarsening.halved[1] && coarsening.halved[2];
  bool const beside_jumps = !stencil && analysis.largest > (isotropic ? largest_symbol : largest_symbol_of_lines);
  if (beside_jumps)
    level.largest = std::min(level.largest, bound());
  level.polynomial = isotropic && !beside_jumps ? SmootherPolynomial::fourth_kind : SmootherPolynomial::optimal;
  return beside_jumps;
}

/// Returns a bound of the eigenvalues of D^-1 A: Gershgorin's for D^-1/2 A D^-1/2, whose entries beside jumps are not larger than
/// elsewhere, made smaller by some steps towards Perron's vector of |A|. step(z, y) is BoxLevelKernels::bound.
template <class V, class Step>
double weighted_bound(Context& context, Array<V> const& diagonal, Step const& step) {
  std::int64_t const n = diagonal.size();
  Array<V> z(context, n), y(context, n);
  kernels_for<BoxLevelKernels<V>>(context).inverse_roots(context, n, diagonal.data(), z.data());
  double result = 0;
  for (int steps = 0; steps < steps_of_bound; ++steps) {
    result = step(static_cast<V const*>(z.data()), y.data());
    std::swap(z, y);
  }
  return result * (1 + 1e-4);
}

template <class V>
std::vector<double> dense_rows(Context& context, BoxLevel<V> const& level) {
  std::int64_t const n = level.n();
  HostVector<V> values(static_cast<std::size_t>(half_stencil::diagonals * n));
  context.download(values.data(), level.values, std::int64_t{sizeof(V)} * std::ssize(values));
  BoxLevel<V> host = level;
  host.values = values.data();
  std::vector<double> a(static_cast<std::size_t>(n * n), 0.0);
  for (std::int32_t k = 0; k < host.nodes[2]; ++k)
    for (std::int32_t j = 0; j < host.nodes[1]; ++j)
      for (std::int32_t i = 0; i < host.nodes[0]; ++i)
        for (int dz = -1; dz <= 1; ++dz)
          for (int dy = -1; dy <= 1; ++dy)
            for (int dx = -1; dx <= 1; ++dx)
              if (V const v = box_levels::entry(host, i, j, k, dx, dy, dz); v != 0)
                a[static_cast<std::size_t>(host.number(i, j, k) * n + host.number(i + dx, j + dy, k + dz))] =
                    static_cast<double>(v);
  return a;
}

/// The box of the coarse nodes in a box that is extended().
template <class V>
NodeBox coarse_box(NodeBox const& fine, BoxCoarsening<V> const& coarsening) {
  NodeBox result = fine;
  for (std::size_t d = 0; d < 3; ++d)
    if (coarsening.halved[d]) {
      result.low[d] = fine.low[d] / 2;
      result.high[d] = result.low[d] + BoxCoarsening<V>::coarse_nodes(static_cast<std::int32_t>(fine.count(d)));
    }
  return result;
}

/// The coarse nodes of the whole box.
template <class V>
NodeBox coarse_whole_box(NodeBox const& fine, std::array<bool, 3> const& periodic, BoxCoarsening<V> const& coarsening) {
  NodeBox result = coarse_box(fine, coarsening);
  for (std::size_t d = 0; d < 3; ++d)
    if (periodic[d] && coarsening.halved[d])
      result.high[d] = fine.high[d] / 2;
  return result;
}

/// The coarse nodes at the places of the fine ones of `own`.
template <class V>
NodeBox coarse_own(NodeBox const& own, BoxCoarsening<V> const& coarsening, Counts const& fine, Counts const& coarse) {
  NodeBox result = own;
  if (own.size() == 0)
    return {};
  for (std::size_t d = 0; d < 3; ++d)
    if (coarsening.halved[d]) {
      result.low[d] = (own.low[d] + 1) / 2;
      result.high[d] = own.high[d] == fine[d] ? coarse[d] : (own.high[d] + 1) / 2;
    }
  return result;
}

/// The coarse nodes that the fine ones of `own` depend on.
template <class V>
NodeBox coarse_parents(NodeBox const& own, BoxCoarsening<V> const& coarsening, Counts const& fine, Counts const& coarse,
                       std::array<bool, 3> const& periodic) {
  NodeBox result = own;
  if (own.size() == 0)
    return {};
  for (std::size_t d = 0; d < 3; ++d)
    if (coarsening.halved[d]) {
      result.low[d] = own.low[d] / 2;
      result.high[d] = own.high[d] == fine[d] && !periodic[d] ? coarse[d] : own.high[d] / 2 + 1;
    }
  return result;
}

/// Restricts and prolongs between a level of a box and the next one. On several ranks the fine level is one of blocks, and the next
/// one is of blocks or whole on every rank; in between vectors are those of the coarse nodes in the block's box.
template <class V>
class BoxTransfer final : public GridTransfer<V> {
public:
  BoxTransfer(Context& context, NodeBox const& fine, NodeBox const& coarse, BoxCoarsening<V> const& coarsening, Array<V> weights,
              Array<std::uint8_t> free_of_fine)
      : context_(context),
        kernels_(kernels_for<BoxLevelKernels<V>>(context)),
        blocks_(kernels_for<BlockKernels<V>>(context)),
        fine_(level_of<V>(fine)),
        coarse_(level_of<V>(coarse)),
        coarsening_(coarsening),
        weights_(std::move(weights)),
        free_of_fine_(std::move(free_of_fine)) {
    coarsening_.weights = weights_.data();
    fine_.free = free_of_fine_.data();
  }
  /// The next level's vectors have the nodes of `box`, those of the rank and some around them. Where the nodes that own fine ones
  /// depend on are, on every rank, own ones and those beside them, P takes them from there; else from the other ranks.
  void goes_on_in_blocks(Communicator& ranks, std::vector<NodeBox> const& own, std::vector<NodeBox> const& parents,
                         NodeBox const& coarse, NodeBox const& box, NodeBox const& whole, std::array<bool, 3> const& periodic) {
    make_vectors(box.size());
    auto const me = static_cast<std::size_t>(ranks.rank());
    std::vector<NodeBox> const around = with_neighbours(own, whole.high, 1, periodic);
    to_next_ = common_nodes(own[me], coarse, box);
    prolongs_around_ = true;
    for (std::size_t rank = 0; rank < own.size(); ++rank)
      prolongs_around_ = prolongs_around_ && common(parents[rank], around[rank]).size() == parents[rank].size();
    from_next_ = common_nodes(prolongs_around_ ? common(box, coarse) : own[me], box, coarse);
    if (!prolongs_around_)
      halo_ = std::make_unique<Halo<V>>(context_, ranks,
                                        HaloPlaces(ranks.rank(), own, parents, coarse, period_of(whole.high, periodic)));
  }
  /// They have all nodes, on every rank.
  void goes_on_whole(std::unique_ptr<WholeVector<V>> gather, NodeBox const& coarse, NodeBox const& whole) {
    make_vectors(whole.size());
    gather_ = std::move(gather);
    from_next_ = common_nodes(coarse, whole, coarse);
  }
  /// The same where the box repeats itself: nodes beyond the whole come from own ones, of this rank or of others.
  void goes_on_whole(std::unique_ptr<WholeVector<V>> gather, Communicator& ranks, std::vector<NodeBox> const& own,
                     std::vector<NodeBox> const& parents, NodeBox const& coarse, NodeBox const& whole,
                     std::array<bool, 3> const& periodic) {
    make_vectors(whole.size());
    gather_ = std::move(gather);
    prolongs_around_ = false;
    from_next_ = common_nodes(own[static_cast<std::size_t>(ranks.rank())], whole, coarse);
    halo_ =
        std::make_unique<Halo<V>>(context_, ranks, HaloPlaces(ranks.rank(), own, parents, coarse, period_of(whole.high, periodic)));
  }

  void restrict_residual(V const* r, V const* diagonal, V factor, V* b, V* x, std::int32_t const* stop) const override {
    if (b_.size() == 0) {
      kernels_.restrict_residual(context_, fine_, coarsening_, coarse_, r, diagonal, factor, b, x, stop);
      return;
    }
    kernels_.restrict_residual(context_, fine_, coarsening_, coarse_, r, ones_.data(), V(1), b_.data(), x_.data(), stop);
    if (gather_ != nullptr)
      gather_->gather(b_.data(), b);
    else
      blocks_.copy(context_, to_next_, b_.data(), b);
    if (x != nullptr)
      kernels_for<SmootherKernels<V>>(context_).begin(context_, n_of_next_, diagonal, b, factor, x, stop);
  }
  void prolong(V const* e, V* x, std::int32_t const* stop) const override {
    if (b_.size() > 0) {
      blocks_.copy(context_, from_next_, e, x_.data());
      if (halo_ != nullptr)
        halo_->fill(x_.data());
      e = x_.data();
    }
    kernels_.prolong(context_, fine_, coarsening_, coarse_, e, x, stop);
  }
  void restrict_residuals(V const* diagonal, V factor, std::span<RestrictedColumn<V> const> columns) const override {
    if (b_.size() == 0)
      kernels_.restrict_residuals(context_, fine_, coarsening_, coarse_, diagonal, factor, columns);
    else
      GridTransfer<V>::restrict_residuals(diagonal, factor, columns);
  }
  void prolong_all(std::span<ProlongedColumn<V> const> columns) const override {
    if (b_.size() == 0)
      kernels_.prolong_all(context_, fine_, coarsening_, coarse_, columns);
    else
      GridTransfer<V>::prolong_all(columns);
  }
  bool prolongs_around() const override { return prolongs_around_; }
  std::int64_t bytes() const override { return weights_.bytes() + free_of_fine_.bytes() + 3 * b_.bytes(); }
  std::int64_t bytes_moved() const override {
    std::int64_t const of_coarse = b_.size() > 0 ? 8 : 4;
    return 2 * weights_.bytes() + fine_.n() * std::int64_t{3 * sizeof(V)} + of_coarse * coarse_.n() * std::int64_t{sizeof(V)};
  }

private:
  void make_vectors(std::int64_t n_of_next) {
    n_of_next_ = n_of_next;
    for (Array<V>* const vector : {&b_, &x_, &ones_}) {
      *vector = Array<V>(context_, coarse_.n());
      vector->set_zero();
    }
    kernels_for<SmootherKernels<V>>(context_).fill(context_, ones_.size(), V(1), ones_.data());
  }

  Context& context_;
  BoxLevelKernels<V> const& kernels_;
  BlockKernels<V> const& blocks_;
  BoxLevel<V> fine_, coarse_;
  BoxCoarsening<V> coarsening_;
  Array<V> weights_;
  Array<std::uint8_t> free_of_fine_;
  // These members are for several ranks.
  mutable Array<V> b_, x_;  ///< of the coarse nodes
  Array<V> ones_;
  CommonNodes to_next_, from_next_;
  bool prolongs_around_ = false;
  std::unique_ptr<Halo<V>> halo_;
  std::unique_ptr<WholeVector<V>> gather_;
  std::int64_t n_of_next_ = 0;
};

/// All diagonals of the whole level on every rank, from those in `part`.
template <class V>
Array<V> gather_diagonals(Context& context, Communicator& ranks, std::vector<NodeBox> const& own, V const* values,
                          NodeBox const& part, NodeBox const& whole) {
  Array<V> result(context, half_stencil::diagonals * whole.size());
  WholeVector<V>(context, ranks, own, part, whole, half_stencil::diagonals).gather(values, result.data());
  return result;
}

/// Makes the levels of a box, of which this rank has all or, on several ranks, its own nodes and some around them. Functions are
/// collective.
template <class V>
class BoxSetup {
public:
  /// `own`: the nodes of every rank; without other ranks all. They are different nodes, also where the box repeats itself after
  /// them.
  BoxSetup(Context& context, Communicator& ranks, std::vector<NodeBox> own, NodeBox const& whole,
           PreconditionerOptions const& options, std::array<bool, 3> const& periodic = {})
      : context_(context), ranks_(ranks), options_(options), own_(std::move(own)), whole_(whole), periodic_(periodic) {
    set_box();
  }

  [[nodiscard]] MultigridHierarchy<V>& result() { return result_; }
  [[nodiscard]] NodeBox const& box() const { return box_; }

  /// Adds a level whose matrix is half_cds, or the given operator, which the caller keeps.
  void add_given(Matrix const& a) {
    given_ = &a;
    if (auto const* const stencil = dynamic_cast<BoxOperator const*>(&a); stencil != nullptr) {
      stencil_ = WholeStencil{stencil->view().box, stencil->components(), stencil->coefficient()};
      operator_ = stencil;
    } else if (auto const* const labels = dynamic_cast<LabelOperator const*>(&a); labels != nullptr) {
      labels_ = labels;
    } else if (std::is_same_v<V, float>) {
      Array<V> values(context_, half_stencil::diagonals * box_.size());
      if constexpr (std::is_same_v<V, float>)
        kernels_for<ConversionKernels>(context_).round(context_, values.size(), static_cast<HalfCds const&>(a).view().values,
                                                       values.data());
      add_stored(std::move(values));
      return;
    }
    add_level(nullptr, &a, most_layers);
  }
  /// Adds a level by its diagonals; on several ranks those of own rows. `may_hold`: its first node may be held.
  void add_stored(Array<V> values, bool may_hold = false) {
    complete(values);
    if (may_hold && release_first(values)) {
      complete(values);
      result_.constants = true;
    }
    std::unique_ptr<Matrix> matrix;
    std::vector<std::int32_t> const offsets = box_offsets(box_.count(0), box_.count(1));
    if constexpr (std::is_same_v<V, float>)
      matrix = HalfCds::from_diagonals(context_, box_.size(), offsets, std::move(values));
    else
      matrix = HalfCds::from_diagonals(context_, box_.size(), offsets, std::move(values), 1);
    add_level(std::move(matrix), nullptr, most_layers);
  }
  /// Adds the level of an operator on the box, which is that of `stencil` there.
  void add_stencil(WholeStencil const& stencil, std::unique_ptr<BoxOperator> on_box) {
    stencil_ = stencil;
    operator_ = on_box.get();
    if (!is_shared() && box_.size() <= most_nodes_stored) {
      Array<V> values(context_, half_stencil::diagonals * box_.size());
      on_box->fill_diagonals(values.data());
      own_operator_ = std::move(on_box);
      add_stored(std::move(values));
      return;
    }
    // Rows of others on Robin faces are not known.
    bool const has_robin = std::ranges::any_of(stencil.box.faces, [](auto const& f) { return f.type == BoxFace::Type::robin; });
    add_level(std::move(on_box), nullptr, has_robin ? 1 : most_layers);
  }

  /// Makes the levels below the first one.
  void go_on() {
    auto const& kernels = kernels_for<BoxLevelKernels<V>>(context_);
    MultigridOptions const& multigrid = options_.multigrid;
    options_.done(context_, "finest level");
    for (;;) {
      MultigridLevel<V>& level = result_.levels.back();
      Array<std::uint8_t> free;
      BoxLevelAnalysis analysis;
      if (stencil_)
        analysis = analysis_of(*operator_);
      else {
        free = Array<std::uint8_t>(context_, box_.size());
        if (labels_ == nullptr)
          need_values();
        analysis = labels_ != nullptr ? analyse_slabs(free.data()) : kernels.analyse(context_, fine_, free.data());
        fine_.free = free.data();
        for (double& coupling : analysis.coupling)
          coupling = sum_over(ranks_, coupling);
        analysis.largest = max_over(ranks_, analysis.largest);
        analysis.bound = max_over(ranks_, analysis.bound);
      }
      if (!(analysis.largest > 0) || !std::isfinite(analysis.bound)) {
        result_.failure = "the matrix is not positive definite on level " + std::to_string(result_.levels.size()) + " of multigrid";
        return;
      }
      set_largest(level, analysis);
      bool const deepest = static_cast<int>(result_.levels.size()) == multigrid.levels;
      auto coarsening = deepest ? std::nullopt : next_coarsening<V>(whole_.high, periodic_, analysis, multigrid.coarse_size);
      if (!coarsening && is_periodic()) {
        go_on_by_rows();
        return;
      }
      if (!coarsening) {
        if (!is_shared() && box_.size() <= most_dense) {
          need_values();
          result_.coarsest = dense_rows(context_, fine_);
        }
        return;
      }
      bool const beside_jumps = set_smoother(level, analysis, *coarsening, stencil_.has_value(), [&] {
        return max_over(ranks_, weighted_bound<V>(context_, level.diagonal, [&](V const* z, V* y) {
                          if (labels_ != nullptr)
                            return bound_of_slabs(z, y);
                          double const found = kernels.bound(context_, fine_, z, y);
                          if (level.halo != nullptr)
                            level.halo->fill(y);
                          return found;
                        }));
      });
      if (!stencil_ && given_ != nullptr && result_.levels.size() == 1 &&
          Inclusions::may_be_there(context_, whole_.high, level.diagonal)) {
        result_.inclusions = Inclusions::find(*given_, whole_.high);
        options_.done(context_, "inclusions");
      }
      if (beside_jumps && steps_of_finer_ > 0)
        level.more_steps = std::min(2 * steps_of_finer_, most_doubled * multigrid.degree) - multigrid.degree;
      options_.done(context_, "analysis");
      if (stencil_) {
        auto const coarser =
            BoxOperator::coarser(stencil_->box, {coarsening->halved[0], coarsening->halved[1], coarsening->halved[2]});
        if (!coarser) {  // from here on by entries; the level is looked at again
          stencil_.reset();
          continue;
        }
        stencil_->box = *coarser;
        for (std::size_t face = 0; face < 6; ++face)
          coarsening->held[face] = operator_->view().box.faces[face].type == BoxFace::Type::dirichlet;
      }
      steps_of_finer_ = multigrid.degree + level.more_steps;
      if (descend(*coarsening, std::move(free)))
        return;
    }
  }

private:
  [[nodiscard]] bool is_periodic() const { return periodic_[0] || periodic_[1] || periodic_[2]; }
  /// Whether vectors have nodes around own ones: of other ranks, or images of own ones.
  [[nodiscard]] bool is_shared() const { return own_.size() > 1 || is_periodic(); }
  [[nodiscard]] NodeBox const& mine() const { return own_[static_cast<std::size_t>(ranks_.rank())]; }
  void set_box() { box_ = is_shared() ? extended(mine(), whole_.high, periodic_) : whole_; }
  [[nodiscard]] HaloPlaces places_of(std::vector<NodeBox> const& needed) const {
    return {ranks_.rank(), own_, needed, box_, period_of(whole_.high, periodic_)};
  }

  /// Entries of own rows are there: brings the others.
  void complete(Array<V>& values) {
    fine_ = level_of<V>(box_);
    fine_.values = values.data();
    if (!is_shared())
      return;
    Halo<V>(context_, ranks_, places_of(extended(own_, whole_.high, periodic_)), HaloDirection::to_ghosts, half_stencil::diagonals,
            box_.size())
        .fill(values.data());
    kernels_for<BlockKernels<V>>(context_).clip(context_, {fine_.nodes[0], fine_.nodes[1], fine_.nodes[2]}, values.data());
  }
  /// Where the first node is held instead of its equation, gives it the couplings with which the rows of its neighbours sum to 0,
  /// and returns true. A node that is held has no couplings, but those beside it have some. Nodes with Dirichlet values have none,
  /// as all others on a side.
  [[nodiscard]] bool release_first(Array<V>& values) const {
    NodeBox const near = common(NodeBox{{-2, -2, -2}, {3, 3, 3}}, box_);
    Array<V> some(context_, half_stencil::diagonals * near.size());
    kernels_for<BlockKernels<V>>(context_).copy(context_, common_nodes(near, box_, near, half_stencil::diagonals), values.data(),
                                                some.data());
    HostVector<V> host(static_cast<std::size_t>(some.size()));
    some.download(std::span<V>(host));
    auto const entry = [&](Counts const& row, Counts const& column) {
      for (int s = 0; s < half_stencil::diagonals; ++s) {
        Counts const step{half_stencil::dx(s), half_stencil::dy(s), half_stencil::dz(s)};
        bool below = true, above = true;
        for (std::size_t d = 0; d < 3; ++d) {
          below = below && column[d] == row[d] - step[d];
          above = above && row[d] == column[d] - step[d];
        }
        if (below || above)
          return static_cast<double>(host[static_cast<std::size_t>(s * near.size() + near.index(below ? row : column))]);
      }
      return 0.0;
    };
    auto const exists = [&](Counts const& node) {
      for (std::size_t d = 0; d < 3; ++d)
        if (!periodic_[d] && (node[d] < 0 || node[d] >= whole_.high[d]))
          return false;
      return true;
    };
    Counts const first{};
    auto const is_coupled = [&](Counts const& node) {
      bool found = false;
      NodeBox{{node[0] - 1, node[1] - 1, node[2] - 1}, {node[0] + 2, node[1] + 2, node[2] + 2}}.for_all(
          [&](Counts const& other) { found = found || (other != node && exists(other) && entry(node, other) != 0); });
      return found;
    };
    if (is_coupled(first) || !is_coupled({1, 0, 0}) || !is_coupled({0, 1, 0}) || !is_coupled({0, 0, 1}))
      return false;
    NodeBox{{-1, -1, -1}, {2, 2, 2}}.for_all([&](Counts const& node) {
      if (node == first || !exists(node))
        return;
      double sum = 0;
      NodeBox{{node[0] - 1, node[1] - 1, node[2] - 1}, {node[0] + 2, node[1] + 2, node[2] + 2}}.for_all([&](Counts const& other) {
        if (other != first && exists(other))
          sum += entry(node, other);
      });
      Counts of_whole = node;
      for (std::size_t d = 0; d < 3; ++d)
        of_whole[d] += of_whole[d] < 0 ? whole_.high[d] : 0;
      for (int s = 1; s < half_stencil::diagonals; ++s) {
        Counts const step{half_stencil::dx(s), half_stencil::dy(s), half_stencil::dz(s)};
        V const coupling = static_cast<V>(-sum);
        if (node == step)
          context_.upload(values.data() + s * box_.size() + box_.index(of_whole), &coupling, sizeof(V));
        else if (node == Counts{-step[0], -step[1], -step[2]})
          context_.upload(values.data() + s * box_.size() + box_.index(first), &coupling, sizeof(V));
      }
    });
    return true;
  }
  /// Makes the diagonals of a matrix-free level, where they are needed to make the next one.
  void need_values() {
    if (fine_.values != nullptr)
      return;
    scratch_ = Array<V>(context_, half_stencil::diagonals * box_.size());
    if (labels_ != nullptr)
      labels_->fill_diagonals(scratch_.data());
    else
      operator_->fill_diagonals(scratch_.data());
    complete(scratch_);
  }

  // A level of a LabelOperator never has all of its diagonals at once. They are made slab by slab, each with so many planes around
  // it that its numbers are those of the whole.

  /// Calls pass(own, box, level) for slabs, whose nodes are `own`, with the level of the nodes in `box` around them.
  template <class Pass>
  void for_slabs(Pass const& pass) const {
    std::int64_t const nz = box_.high[2], plane = box_.count(0) * box_.count(1), planes = planes_of_slab(nz);
    Array<V> values(context_, half_stencil::diagonals * rows_of_slab(box_.high));
    for (std::int64_t first = 0; first < nz; first += planes) {
      NodeBox own = box_;
      own.low[2] = first;
      own.high[2] = std::min(first + planes, nz);
      NodeBox const box = extended(own, whole_.high);
      labels_->fill_diagonals(box.low[2], box.high[2], values.data());
      BoxLevel<V> level = level_of<V>(box);
      level.values = values.data();
      level.free = fine_.free != nullptr ? fine_.free + box.low[2] * plane : nullptr;
      pass(own, box, level);
    }
  }
  /// Copies planes of nodes first <= z < end from the numbers of a slab that begins with plane `begin` to those of the whole.
  template <class Number>
  void copy_planes(std::int64_t plane, std::int64_t first, std::int64_t end, std::int64_t begin, Number const* from,
                   Number* to) const {
    context_.copy(to + first * plane, from + (first - begin) * plane, (end - first) * plane * std::int64_t{sizeof(Number)});
  }
  BoxLevelAnalysis analyse_slabs(std::uint8_t* free) const {
    BoxLevelAnalysis result;
    for_slabs([&](NodeBox const& own, NodeBox const& box, BoxLevel<V> const& level) {
      Array<std::uint8_t> of_slab(context_, box.size());
      BoxLevelAnalysis const found = kernels_for<BoxLevelKernels<V>>(context_).analyse(context_, level, of_slab.data());
      for (std::size_t d = 0; d < 3; ++d)
        result.coupling[d] += found.coupling[d];
      result.largest = std::max(result.largest, found.largest);
      result.bound = std::max(result.bound, found.bound);
      copy_planes(box.count(0) * box.count(1), own.low[2], own.high[2], box.low[2], of_slab.data(), free);
    });
    return result;
  }
  double bound_of_slabs(V const* z, V* y) const {
    double result = 0;
    for_slabs([&](NodeBox const& own, NodeBox const& box, BoxLevel<V> const& level) {
      std::int64_t const plane = box.count(0) * box.count(1);
      Array<V> of_slab(context_, box.size());
      auto const& kernels = kernels_for<BoxLevelKernels<V>>(context_);
      result = std::max(result, kernels.bound(context_, level, z + box.low[2] * plane, of_slab.data()));
      copy_planes(plane, own.low[2], own.high[2], box.low[2], of_slab.data(), y);
    });
    return result;
  }
  /// P and the diagonals of P^T A P.
  void coarsen_slabs(BoxCoarsening<V> coarsening, NodeBox const& coarse_whole, V* weights, V* values) const {
    for_slabs([&](NodeBox const& own, NodeBox const& box, BoxLevel<V> const& level) {
      NodeBox const coarse = coarse_box(box, coarsening), kept = coarse_own(own, coarsening, whole_.high, coarse_whole.high);
      std::int64_t const n = coarse.size(), plane = coarse.count(0) * coarse.count(1), all = coarse_whole.size();
      Array<V> own_weights(context_, 27 * n), own_values(context_, half_stencil::diagonals * n);
      Array<std::uint8_t> free(context_, n);
      BoxLevel<V> of_coarse = level_of<V>(coarse);
      of_coarse.free = free.data();
      coarsening.weights = own_weights.data();
      kernels_for<BoxLevelKernels<V>>(context_).coarsen(context_, level, coarsening, of_coarse, own_weights.data(), free.data(),
                                                        own_values.data());
      for (int s = 0; s < 27; ++s)
        copy_planes(plane, kept.low[2], kept.high[2], coarse.low[2], own_weights.data() + s * n, weights + s * all);
      for (int s = 0; s < half_stencil::diagonals; ++s)
        copy_planes(plane, kept.low[2], kept.high[2], coarse.low[2], own_values.data() + s * n, values + s * all);
    });
  }

  /// Adds a level with the matrix `own`, or `given`.
  void add_level(std::unique_ptr<Matrix> own, Matrix const* given, int layers) {
    MultigridLevel<V>& level = result_.levels.emplace_back();
    level.own = std::move(own);
    level.matrix = level.own != nullptr ? level.own.get() : given;
    level.diagonal = Array<V>(context_, box_.size());
    if (is_shared()) {
      HaloPlaces const places = places_of(with_neighbours(own_, whole_.high, layers, periodic_));
      level.set_halo(std::make_unique<Halo<V>>(context_, ranks_, places), layers, whole_.size());
    }
    level.nnz = half_stencil::diagonals * 2 * whole_.size() - whole_.size();
    fine_ = level_of<V>(box_);
    if (auto const* const stored = dynamic_cast<HalfCds const*>(level.matrix); stored != nullptr) {
      fine_.values = values_in<V>(*stored);
      kernels_for<ConversionKernels>(context_).copy_diagonal(context_, box_.size(), fine_.values, level.diagonal.data());
    } else {
      static_cast<LinearOperator<V> const&>(*level.matrix).diagonal(level.diagonal.data());
      if (level.halo != nullptr)
        level.halo->fill(level.diagonal.data());  // rows on cuts are not those of their owners
    }
  }

  /// Makes the next level. Returns whether all levels are made then.
  bool descend(BoxCoarsening<V> coarsening, Array<std::uint8_t> free) {
    MultigridLevel<V>& level = result_.levels.back();
    NodeBox const fine = box_, coarse = coarse_box(fine, coarsening),
                  coarse_whole = coarse_whole_box(whole_, periodic_, coarsening);
    std::vector<NodeBox> parents, own_of_coarse;
    for (NodeBox const& nodes : own_) {
      parents.push_back(coarse_parents(nodes, coarsening, whole_.high, coarse_whole.high, periodic_));
      own_of_coarse.push_back(coarse_own(nodes, coarsening, whole_.high, coarse_whole.high));
    }
    Array<V> values, weights;  // of stencils none are needed
    if (!stencil_) {
      BoxLevel<V> of_coarse = level_of<V>(coarse);
      values = Array<V>(context_, half_stencil::diagonals * coarse.size());
      weights = Array<V>(context_, 27 * coarse.size());
      Array<std::uint8_t> free_of_coarse(context_, coarse.size());
      coarsening.weights = weights.data();
      of_coarse.free = free_of_coarse.data();
      if (labels_ != nullptr)
        coarsen_slabs(coarsening, coarse_whole, weights.data(), values.data());
      else
        kernels_for<BoxLevelKernels<V>>(context_).coarsen(context_, fine_, coarsening, of_coarse, weights.data(),
                                                          free_of_coarse.data(), values.data());
      scratch_ = {};
      labels_ = nullptr;
    }
    auto transfer = std::make_unique<BoxTransfer<V>>(context_, fine, coarse, coarsening, std::move(weights), std::move(free));
    whole_ = coarse_whole;
    own_ = std::move(own_of_coarse);
    options_.done(context_, "P and P^T A P");
    if (is_shared() && !is_periodic() && whole_.size() <= options_.multigrid.gathered_size) {
      transfer->goes_on_whole(std::make_unique<WholeVector<V>>(context_, ranks_, own_, coarse, whole_), coarse, whole_);
      level.to_coarse = std::move(transfer);
      go_on_whole(stencil_ ? Array<V>() : gather_diagonals<V>(context_, ranks_, own_, values.data(), coarse, whole_));
      return true;
    }
    set_box();
    if (is_shared())
      transfer->goes_on_in_blocks(ranks_, own_, parents, coarse, box_, whole_, periodic_);
    last_transfer_ = transfer.get();
    last_coarse_ = coarse;
    last_parents_ = std::move(parents);
    level.to_coarse = std::move(transfer);
    if (stencil_) {
      WholeStencil const stencil = *stencil_;
      add_stencil(stencil, stencil.on(context_, box_));
      return false;
    }
    if (is_shared()) {
      Array<V> values_in_box(context_, half_stencil::diagonals * box_.size());
      kernels_for<BlockKernels<V>>(context_).copy(context_, common_nodes(mine(), coarse, box_, half_stencil::diagonals),
                                                  values.data(), values_in_box.data());
      values = std::move(values_in_box);
    }
    add_stored(std::move(values));
    return false;
  }

  /// The last level is one by rows instead, of the whole box on every rank, and others follow it.
  void go_on_by_rows() {
    need_values();
    auto const rows = std::make_shared<CsrMatrix const>(periodic_rows());
    PreconditionerOptions rest = options_;
    rest.box_nodes = {};
    rest.blocks = nullptr;
    result_.levels.pop_back();
    rest.multigrid.levels -= static_cast<int>(result_.levels.size());
    auto gather =
        std::make_unique<WholeVector<V>>(context_, ranks_, own_, last_transfer_ != nullptr ? last_coarse_ : mine(), whole_);
    if (last_transfer_ != nullptr)
      last_transfer_->goes_on_whole(std::move(gather), ranks_, own_, last_parents_, last_coarse_, whole_, periodic_);
    else
      gather_of_finest_ = std::move(gather);
    append(result_, algebraic_hierarchy<V>(
                        nullptr, [rows] { return rows; }, context_, rest));
  }
  /// The matrix of the level, whose nodes are numbered as in the whole box. Neighbours across a face that are one node, since there
  /// are few, have one entry.
  [[nodiscard]] CsrMatrix periodic_rows() const {
    Array<V> const gathered = gather_diagonals<V>(context_, ranks_, own_, fine_.values, box_, whole_);
    HostVector<V> values(static_cast<std::size_t>(gathered.size()));
    gathered.download(std::span<V>(values));
    std::int64_t const n = whole_.size();
    std::vector<MatrixEntry> entries;
    entries.reserve(static_cast<std::size_t>(27 * n));
    whole_.for_all([&](Counts const& node) {
      std::int64_t const row = whole_.index(node);
      for (int s = 0; s < half_stencil::diagonals; ++s) {
        auto const value = static_cast<double>(values[static_cast<std::size_t>(s * n + row)]);
        Counts other{node[0] - half_stencil::dx(s), node[1] - half_stencil::dy(s), node[2] - half_stencil::dz(s)};
        for (std::size_t d = 0; d < 3; ++d)
          if (periodic_[d])
            other[d] = (other[d] + whole_.high[d]) % whole_.high[d];
        if ((value == 0 && s > 0) || !whole_.holds(other))
          continue;
        std::int64_t const column = whole_.index(other);
        entries.push_back({row, static_cast<std::int32_t>(column), value});
        if (s > 0)
          entries.push_back({column, static_cast<std::int32_t>(row), value});
      }
    });
    return csr_of_entries(n, n, entries);
  }

public:
  /// Where the finest level is one by rows: gives it the vectors of all ranks. Else null.
  [[nodiscard]] std::unique_ptr<WholeVector<V>> take_gather_of_finest() { return std::move(gather_of_finest_); }
  /// Adds the level of the whole box, by its diagonals or, where there is one, from the stencil, and all that follow; on every
  /// rank.
  void go_on_whole(Array<V> diagonals) {
    PreconditionerOptions rest = options_;
    rest.multigrid.levels -= static_cast<int>(result_.levels.size());
    BoxSetup on_every_rank(context_, alone(), {whole_}, whole_, rest);
    on_every_rank.steps_of_finer_ = steps_of_finer_;
    if (stencil_)
      on_every_rank.add_stencil(*stencil_, stencil_->on(context_, whole_));
    else
      on_every_rank.add_stored(std::move(diagonals));
    on_every_rank.go_on();
    append(result_, std::move(on_every_rank.result()));
  }

private:
  Context& context_;
  Communicator& ranks_;
  PreconditionerOptions const& options_;
  MultigridHierarchy<V> result_;
  // These members are about the last level.
  std::vector<NodeBox> own_;                 ///< nodes of every rank
  NodeBox whole_, box_;                      ///< all nodes, and those that this rank keeps
  std::array<bool, 3> periodic_{};           ///< directions in which the whole box repeats itself
  BoxTransfer<V>* last_transfer_ = nullptr;  ///< to it, with its nodes in the transfer and those that own fine nodes depend on
  NodeBox last_coarse_;
  std::vector<NodeBox> last_parents_;
  std::unique_ptr<WholeVector<V>> gather_of_finest_;
  Matrix const* given_ = nullptr;        ///< to the finest level, which has the numbers of the system
  std::optional<WholeStencil> stencil_;  ///< as long as it is known
  BoxOperator const* operator_ = nullptr;
  LabelOperator const* labels_ = nullptr;      ///< while it is the last level
  std::unique_ptr<BoxOperator> own_operator_;  ///< where the level has entries instead
  BoxLevel<V> fine_;
  Array<V> scratch_;        ///< diagonals of a matrix-free level
  int steps_of_finer_ = 0;  ///< of the smoother, on the level before; 0 without one
};

}  // namespace

std::int64_t rows_of_slab(std::array<std::int64_t, 3> const& nodes) {
  return nodes[0] * nodes[1] * std::min(nodes[2], planes_of_slab(nodes[2]) + planes_around_slab);
}

bool is_box(MultiPrecisionOperator const& a, std::array<std::int64_t, 3> const& nodes) {
  if (auto const* const stencil = dynamic_cast<BoxOperator const*>(&a); stencil != nullptr)
    return stencil->view().box.nodes == nodes;
  if (auto const* const labels = dynamic_cast<LabelOperator const*>(&a); labels != nullptr)
    return labels->view().box.nodes == nodes && nodes[0] >= 3 && nodes[1] >= 3;
  auto const* const matrix = dynamic_cast<HalfCds const*>(&a);
  return matrix != nullptr && matrix->view().values != nullptr && nodes[0] * nodes[1] * nodes[2] == a.n_rows() &&
         std::ranges::equal(matrix->view().offsets, box_offsets(nodes[0], nodes[1]));
}

template <class V>
MultigridHierarchy<V> box_hierarchy(Matrix const& a, PreconditionerOptions const& options) {
  NodeBox const whole{{}, options.box_nodes};
  BoxSetup<V> setup(a.context(), alone(), {whole}, whole, options);
  setup.add_given(a);
  setup.go_on();
  return std::move(setup.result());
}

template <class V>
MultigridHierarchy<V> box_hierarchy(RankMatrix const& a, RankBlocks const& blocks, PreconditionerOptions const& options) {
  Context& context = a.context();
  Communicator& ranks = a.ranks();
  NodeBox const whole = blocks.untied(blocks.whole());
  BoxSetup<V> setup(context, ranks, blocks.untied(), whole, options, blocks.periodic);
  NodeBox const &rows = blocks.own[static_cast<std::size_t>(ranks.rank())], own = blocks.untied(rows);
  if (whole.size() <= options.multigrid.coarse_size && !blocks.is_periodic()) {
    NodeBox const around = with_neighbours(blocks.own, whole.high)[static_cast<std::size_t>(ranks.rank())];
    Array<V> const values = own_diagonals<V>(a, blocks, around);
    setup.go_on_whole(gather_diagonals<V>(context, ranks, blocks.own, values.data(), around, whole));
    setup.result().entry =
        std::make_unique<GatheredEntry<V>>(context, std::make_unique<WholeVector<V>>(context, ranks, blocks.own, own, whole));
    return std::move(setup.result());
  }
  setup.result().entry = std::make_unique<BlockEntry<V>>(context, rows, own, setup.box());
  bool const may_hold = blocks.is_periodic() && blocks.own.size() == 1;  // several ranks join sides in CSR
  std::int64_t place_of_first = may_hold ? setup.box().index({0, 0, 0}) : 0;
  if (auto const stencil = whole_stencil(a, blocks))
    setup.add_stencil(*stencil, finest_operator(a, blocks, *stencil, setup.box()));
  else
    setup.add_stored(own_diagonals<V>(a, blocks, setup.box()), may_hold);
  setup.go_on();
  if (auto gather = setup.take_gather_of_finest()) {
    setup.result().entry = std::make_unique<GatheredEntry<V>>(context, std::move(gather), rows, own);
    place_of_first = 0;
  }
  if (setup.result().constants)
    setup.result().entry = std::make_unique<HeldEntry<V>>(context, std::move(setup.result().entry), place_of_first, rows, own);
  return std::move(setup.result());
}

template MultigridHierarchy<float> box_hierarchy(Matrix const&, PreconditionerOptions const&);
template MultigridHierarchy<double> box_hierarchy(Matrix const&, PreconditionerOptions const&);
template MultigridHierarchy<float> box_hierarchy(RankMatrix const&, RankBlocks const&, PreconditionerOptions const&);
template MultigridHierarchy<double> box_hierarchy(RankMatrix const&, RankBlocks const&, PreconditionerOptions const&);

}  // namespace poisson
