#include "gpu/elements/box_operator.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/box_levels.hpp"
#include "gpu/kernels/box_stencil_rows.hpp"
#include "gpu/kernels/conversion.hpp"
#include "gpu/preconditioners/box_coarsening.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <type_traits>

namespace poisson {

namespace {

/// Levels of a stencil with more nodes stay matrix-free; smaller ones, which wait for launches, are stored: one launch a step
/// instead of two.
constexpr std::int64_t most_nodes_stored = 100000;
/// Symbols of rows beside a jump of the coefficient are far above all eigenvalues. What is larger than the largest symbol of
/// constant coefficients, 1.5 (4.5 where one direction is the strongest), and a little, is therefore replaced by a bound.
constexpr double largest_symbol = 2, largest_symbol_of_lines = 5;
constexpr int steps_of_bound = 4;
constexpr double strong_direction = 0.25;  ///< share of the strongest coupling from which a direction is halved
/// Directions of so few nodes are not halved: with fewer in x or y the offsets of the diagonals would no longer ascend.
constexpr std::array<std::int32_t, 3> least_nodes{3, 3, 1};

template <class V>
class BoxTransfer final : public GridTransfer<V> {
public:
  BoxTransfer(Context& context, BoxLevel<V> const& fine, BoxLevel<V> const& coarse, BoxCoarsening<V> const& coarsening,
              Array<V> weights, Array<std::uint8_t> free_of_fine)
      : context_(context),
        kernels_(kernels_for<BoxLevelKernels<V>>(context)),
        fine_(fine),
        coarse_(coarse),
        coarsening_(coarsening),
        weights_(std::move(weights)),
        free_of_fine_(std::move(free_of_fine)) {
    fine_.values = coarse_.values = nullptr;  // transfers read weights only, and these may go with the setup
  }

  void restrict_residual(V const* r, V const* diagonal, V factor, V* b, V* x, std::int32_t const* stop) const override {
    kernels_.restrict_residual(context_, fine_, coarsening_, coarse_, r, diagonal, factor, b, x, stop);
  }
  void prolong(V const* e, V* x, std::int32_t const* stop) const override {
    kernels_.prolong(context_, fine_, coarsening_, coarse_, e, x, stop);
  }
  std::int64_t bytes() const override { return weights_.bytes() + free_of_fine_.bytes(); }
  std::int64_t bytes_moved() const override {
    return 2 * weights_.bytes() + fine_.n() * std::int64_t{3 * sizeof(V)} + 4 * coarse_.n() * std::int64_t{sizeof(V)};
  }

private:
  Context& context_;
  BoxLevelKernels<V> const& kernels_;
  BoxLevel<V> fine_, coarse_;
  BoxCoarsening<V> coarsening_;
  Array<V> weights_;
  Array<std::uint8_t> free_of_fine_;
};

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

}  // namespace

std::vector<std::int32_t> box_offsets(std::int64_t nx, std::int64_t ny) {
  std::vector<std::int32_t> offsets;
  for (int k = 0; k < half_stencil::diagonals; ++k)
    offsets.push_back(static_cast<std::int32_t>(half_stencil::offset(k, nx, nx * ny)));
  return offsets;
}

BoxLevelAnalysis analysis_of(BoxOperator const& stencil) {
  box_levels::RowAnalysis const row = box_levels::analyse_row<double>(
      [&](int dx, int dy, int dz) { return box_rows::stencil_entry(stencil.view(), 13 + 9 * dz + 3 * dy + dx); });
  return {{row.coupling[0], row.coupling[1], row.coupling[2]}, row.largest, row.bound};
}

template <class V>
std::optional<BoxCoarsening<V>> next_coarsening(std::array<std::int64_t, 3> const& nodes, BoxLevelAnalysis const& analysis,
                                                std::int64_t coarse_size) {
  if (nodes[0] * nodes[1] * nodes[2] <= coarse_size)
    return std::nullopt;
  double strongest = 0;
  for (std::size_t d = 0; d < 3; ++d)
    if (nodes[d] > least_nodes[d])
      strongest = std::max(strongest, analysis.coupling[d]);
  BoxCoarsening<V> result;
  bool any = false;
  for (std::size_t d = 0; d < 3; ++d)
    any = (result.halved[d] =
               nodes[d] > least_nodes[d] && (strongest <= 0 || analysis.coupling[d] >= strong_direction * strongest)) ||
          any;
  return any ? std::optional(result) : std::nullopt;
}

template <class V>
void set_largest(MultigridLevel<V>& level, BoxLevelAnalysis const& analysis) {
  level.largest = std::min(safety * analysis.largest, analysis.bound * (1 + 1e-6));
}

template <class V>
void set_smoother(MultigridLevel<V>& level, BoxLevelAnalysis const& analysis, BoxCoarsening<V> const& coarsening, bool stencil,
                  std::function<double()> const& bound) {
  bool const isotropic = coarsening.halved[0] && coarsening.halved[1] && coarsening.halved[2];
  bool const beside_jumps = !stencil && analysis.largest > (isotropic ? largest_symbol : largest_symbol_of_lines);
  if (beside_jumps)
    level.largest = std::min(level.largest, bound());
  level.polynomial = isotropic && !beside_jumps ? SmootherPolynomial::fourth_kind : SmootherPolynomial::optimal;
}

template <class V>
double weighted_bound(Context& context, BoxLevel<V> const& level, Array<V> const& diagonal,
                      std::function<void(V*)> const& complete) {
  HostVector<V> weights(static_cast<std::size_t>(level.n()));
  context.download(weights.data(), diagonal.data(), std::int64_t{sizeof(V)} * level.n());
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < level.n(); ++i)
    weights[static_cast<std::size_t>(i)] = V(1) / std::sqrt(weights[static_cast<std::size_t>(i)]);
  Array<V> z(context, std::span<V const>(weights)), y(context, level.n());
  double result = 0;
  for (int step = 0; step < steps_of_bound; ++step) {
    result = kernels_for<BoxLevelKernels<V>>(context).bound(context, level, z.data(), y.data());
    std::swap(z, y);
    complete(z.data());
  }
  return result * (1 + 1e-4);
}

template std::optional<BoxCoarsening<float>> next_coarsening(std::array<std::int64_t, 3> const&, BoxLevelAnalysis const&,
                                                             std::int64_t);
template void set_largest(MultigridLevel<float>&, BoxLevelAnalysis const&);
template void set_smoother(MultigridLevel<float>&, BoxLevelAnalysis const&, BoxCoarsening<float> const&, bool,
                           std::function<double()> const&);
template double weighted_bound(Context&, BoxLevel<float> const&, Array<float> const&, std::function<void(float*)> const&);
template std::optional<BoxCoarsening<double>> next_coarsening(std::array<std::int64_t, 3> const&, BoxLevelAnalysis const&,
                                                              std::int64_t);
template void set_largest(MultigridLevel<double>&, BoxLevelAnalysis const&);
template void set_smoother(MultigridLevel<double>&, BoxLevelAnalysis const&, BoxCoarsening<double> const&, bool,
                           std::function<double()> const&);
template double weighted_bound(Context&, BoxLevel<double> const&, Array<double> const&, std::function<void(double*)> const&);

bool is_box(MultiPrecisionOperator const& a, std::array<std::int64_t, 3> const& nodes) {
  if (auto const* const stencil = dynamic_cast<BoxOperator const*>(&a); stencil != nullptr)
    return stencil->view().box.nodes == nodes;
  auto const* const matrix = dynamic_cast<HalfCds const*>(&a);
  return matrix != nullptr && matrix->view().values != nullptr && nodes[0] * nodes[1] * nodes[2] == a.n_rows() &&
         std::ranges::equal(matrix->view().offsets, box_offsets(nodes[0], nodes[1]));
}

namespace {

/// Makes the levels of `a`. Where `a` is null they are those of `given`, and where that is null, too, of the matrix with these
/// `diagonals`.
template <class V>
MultigridHierarchy<V> make_levels(Context& context, Matrix const* a, std::unique_ptr<BoxOperator> given, Array<V> diagonals,
                                  PreconditionerOptions const& options) {
  auto const& kernels = kernels_for<BoxLevelKernels<V>>(context);
  auto const& conversion = kernels_for<ConversionKernels>(context);
  MultigridHierarchy<V> result;
  BoxLevel<V> box;
  for (std::size_t d = 0; d < 3; ++d)
    box.nodes[d] = static_cast<std::int32_t>(options.box_nodes[d]);
  // The stencil of the level, as long as it is known, and its diagonals where they are needed only to make the next level.
  auto const* stencil = dynamic_cast<BoxOperator const*>(a);
  std::unique_ptr<BoxOperator> own_stencil;
  Array<V> scratch;
  Array<std::uint8_t> free;
  auto const add_level = [&](std::unique_ptr<Matrix> own) {
    MultigridLevel<V>& level = result.levels.emplace_back();
    level.own = std::move(own);
    level.matrix = level.own != nullptr ? level.own.get() : a;
    level.diagonal = Array<V>(context, box.n());
    auto const* const stored = dynamic_cast<HalfCds const*>(level.matrix);
    box.values = stored != nullptr ? values_in<V>(*stored) : nullptr;
    if (stored != nullptr)
      conversion.copy_diagonal(context, box.n(), box.values, level.diagonal.data());
    else
      static_cast<LinearOperator<V> const&>(*level.matrix).diagonal(level.diagonal.data());
    level.nnz = half_stencil::diagonals * 2 * box.n() - box.n();
  };
  auto const stored = [&](Array<V> values) {
    if constexpr (std::is_same_v<V, float>)
      return HalfCds::from_diagonals(context, box.n(), box_offsets(box.nodes[0], box.nodes[1]), std::move(values));
    else
      return HalfCds::from_diagonals(context, box.n(), box_offsets(box.nodes[0], box.nodes[1]), std::move(values), 1);
  };
  auto const add_stencil = [&](std::unique_ptr<BoxOperator> next) {
    stencil = next.get();
    if (box.n() <= most_nodes_stored) {
      Array<V> values(context, half_stencil::diagonals * box.n());
      next->fill_diagonals(values.data());
      add_level(stored(std::move(values)));
      own_stencil = std::move(next);
    } else
      add_level(std::move(next));
  };
  if (given != nullptr)
    add_stencil(std::move(given));
  else if (a == nullptr)
    add_level(stored(std::move(diagonals)));
  else if (stencil != nullptr || std::is_same_v<V, double>)
    add_level(nullptr);
  else {
    Array<V> values(context, half_stencil::diagonals * box.n());
    if constexpr (std::is_same_v<V, float>)
      conversion.round(context, values.size(), static_cast<HalfCds const&>(*a).view().values, values.data());
    add_level(stored(std::move(values)));
  }
  auto const need_values = [&] {
    if (box.values != nullptr)
      return;
    scratch = Array<V>(context, half_stencil::diagonals * box.n());
    dynamic_cast<BoxOperator const&>(*result.levels.back().matrix).fill_diagonals(scratch.data());
    box.values = scratch.data();
  };
  options.done(context, "finest level");
  for (;;) {
    BoxLevelAnalysis analysis;
    if (stencil != nullptr)
      analysis = analysis_of(*stencil);
    else {
      need_values();
      if (free.size() != box.n())
        free = Array<std::uint8_t>(context, box.n());
      analysis = kernels.analyse(context, box, free.data());
      box.free = free.data();
    }
    if (!(analysis.largest > 0) || !std::isfinite(analysis.bound)) {
      result.failure = "the matrix is not positive definite on level " + std::to_string(result.levels.size()) + " of multigrid";
      return result;
    }
    MultigridLevel<V>& level = result.levels.back();
    set_largest(level, analysis);
    bool const deepest = static_cast<int>(result.levels.size()) == options.multigrid.levels;
    auto coarsening = deepest
                          ? std::nullopt
                          : next_coarsening<V>({box.nodes[0], box.nodes[1], box.nodes[2]}, analysis, options.multigrid.coarse_size);
    if (!coarsening)
      break;
    set_smoother(level, analysis, *coarsening, stencil != nullptr,
                 [&] { return weighted_bound<V>(context, box, level.diagonal, [](V*) {}); });
    options.done(context, "analysis");
    BoxLevel<V> coarse;
    for (std::size_t d = 0; d < 3; ++d)
      coarse.nodes[d] = coarsening->halved[d] ? BoxCoarsening<V>::coarse_nodes(box.nodes[d]) : box.nodes[d];
    if (stencil != nullptr) {
      std::unique_ptr<BoxOperator> next = stencil->coarser({coarsening->halved[0], coarsening->halved[1], coarsening->halved[2]});
      if (next == nullptr) {  // from here on by entries; the level is looked at again
        stencil = nullptr;
        continue;
      }
      for (std::size_t face = 0; face < 6; ++face)
        coarsening->held[face] = stencil->view().box.faces[face].type == BoxFace::Type::dirichlet;
      BoxLevel<V> const fine = box;
      box = coarse;
      result.levels.back().to_coarse =
          std::make_unique<BoxTransfer<V>>(context, fine, box, *coarsening, Array<V>(), Array<std::uint8_t>());
      add_stencil(std::move(next));
      options.done(context, "stencils");
      continue;
    }
    Array<V> values(context, half_stencil::diagonals * coarse.n()), weights(context, 27 * coarse.n());
    Array<std::uint8_t> free_of_coarse(context, coarse.n());
    coarsening->weights = weights.data();
    coarse.free = free_of_coarse.data();
    kernels.coarsen(context, box, *coarsening, coarse, weights.data(), free_of_coarse.data(), values.data());
    BoxLevel<V> const fine = box;
    box = coarse;
    add_level(stored(std::move(values)));
    scratch = {};
    result.levels[result.levels.size() - 2].to_coarse =
        std::make_unique<BoxTransfer<V>>(context, fine, box, *coarsening, std::move(weights), std::move(free));
    free = std::move(free_of_coarse);
    options.done(context, "P and P^T A P");
  }
  if (box.n() <= most_dense) {
    need_values();
    result.coarsest = dense_rows(context, box);
  }
  return result;
}

}  // namespace

template <class V>
MultigridHierarchy<V> box_hierarchy(Matrix const& a, PreconditionerOptions const& options) {
  return make_levels<V>(a.context(), &a, nullptr, {}, options);
}
template <class V>
MultigridHierarchy<V> levels_of_box(Context& context, Array<V> values, PreconditionerOptions const& options) {
  return make_levels<V>(context, nullptr, nullptr, std::move(values), options);
}
template <class V>
MultigridHierarchy<V> levels_of_stencil(std::unique_ptr<BoxOperator> stencil, PreconditionerOptions const& options) {
  Context& context = stencil->context();
  return make_levels<V>(context, nullptr, std::move(stencil), {}, options);
}

template MultigridHierarchy<float> box_hierarchy(Matrix const&, PreconditionerOptions const&);
template MultigridHierarchy<double> box_hierarchy(Matrix const&, PreconditionerOptions const&);
template MultigridHierarchy<float> levels_of_box(Context&, Array<float>, PreconditionerOptions const&);
template MultigridHierarchy<double> levels_of_box(Context&, Array<double>, PreconditionerOptions const&);
template MultigridHierarchy<float> levels_of_stencil(std::unique_ptr<BoxOperator>, PreconditionerOptions const&);
template MultigridHierarchy<double> levels_of_stencil(std::unique_ptr<BoxOperator>, PreconditionerOptions const&);

}  // namespace poisson
