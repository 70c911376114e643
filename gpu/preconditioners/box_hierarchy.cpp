#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/box_levels.hpp"
#include "gpu/kernels/conversion.hpp"
#include "gpu/preconditioners/multigrid_hierarchy.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <type_traits>

namespace poisson {

namespace {

constexpr double strong_direction = 0.25;  ///< share of the strongest coupling from which a direction is halved
/// Directions of so few nodes are not halved: with fewer in x or y the offsets of the diagonals would no longer ascend.
constexpr std::array<std::int32_t, 3> least_nodes{3, 3, 1};

std::vector<std::int32_t> box_offsets(std::int64_t nx, std::int64_t ny) {
  std::vector<std::int32_t> offsets;
  for (int k = 0; k < half_stencil::diagonals; ++k)
    offsets.push_back(static_cast<std::int32_t>(half_stencil::offset(k, nx, nx * ny)));
  return offsets;
}

template <class V>
V const* values_of(HalfCds const& a) {
  if constexpr (std::is_same_v<V, float>)
    return a.view().single_values;
  else
    return a.view().values;
}

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

/// Nothing where the level is small enough. Where no direction has a coupling, because it
/// is small beside what was lost to Dirichlet values, all are alike.
template <class V>
std::optional<BoxCoarsening<V>> next_coarsening(BoxLevel<V> const& box, BoxLevelAnalysis const& analysis,
                                                std::int64_t coarse_size) {
  if (box.n() <= coarse_size)
    return std::nullopt;
  double strongest = 0;
  for (std::size_t d = 0; d < 3; ++d)
    if (box.nodes[d] > least_nodes[d])
      strongest = std::max(strongest, analysis.coupling[d]);
  BoxCoarsening<V> result;
  bool any = false;
  for (std::size_t d = 0; d < 3; ++d)
    any = (result.halved[d] =
               box.nodes[d] > least_nodes[d] && (strongest <= 0 || analysis.coupling[d] >= strong_direction * strongest)) ||
          any;
  return any ? std::optional(result) : std::nullopt;
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

}  // namespace

bool is_box(MultiPrecisionOperator const& a, std::array<std::int64_t, 3> const& nodes) {
  if (auto const* const free = dynamic_cast<Matrix const*>(&a); free != nullptr && nodes[0] > 0 && free->box_nodes() == nodes)
    return nodes[0] > 2 && nodes[1] > 2;  // else the offsets of the diagonals do not ascend
  auto const* const matrix = dynamic_cast<HalfCds const*>(&a);
  return matrix != nullptr && matrix->view().values != nullptr && nodes[0] * nodes[1] * nodes[2] == a.n_rows() &&
         std::ranges::equal(matrix->view().offsets, box_offsets(nodes[0], nodes[1]));
}

template <class V>
MultigridHierarchy<V> box_hierarchy(Matrix const& a, PreconditionerOptions const& options) {
  Context& context = a.context();
  auto const& kernels = kernels_for<BoxLevelKernels<V>>(context);
  auto const& conversion = kernels_for<ConversionKernels>(context);
  MultigridHierarchy<V> result;
  BoxLevel<V> box;
  for (std::size_t d = 0; d < 3; ++d)
    box.nodes[d] = static_cast<std::int32_t>(options.box_nodes[d]);
  Array<V> stencil(context, a.box_nodes()[0] > 0 ? half_stencil::diagonals * box.n() : 0);  // of a matrix-free operator
  auto const add_level = [&](Array<V> values) {
    MultigridLevel<V>& level = result.levels.emplace_back();
    if (values.size() > 0) {
      if constexpr (std::is_same_v<V, float>)
        level.own = HalfCds::from_diagonals(context, box.n(), box_offsets(box.nodes[0], box.nodes[1]), std::move(values));
      else
        level.own = HalfCds::from_diagonals(context, box.n(), box_offsets(box.nodes[0], box.nodes[1]), std::move(values), 1);
    }
    level.matrix = level.own != nullptr ? level.own.get() : &a;
    box.values =
        stencil.size() > 0 && level.own == nullptr ? stencil.data() : values_of<V>(static_cast<HalfCds const&>(*level.matrix));
    level.diagonal = Array<V>(context, box.n());
    conversion.copy_diagonal(context, box.n(), box.values, level.diagonal.data());
    level.nnz = half_stencil::diagonals * 2 * box.n() - box.n();
  };
  if (stencil.size() > 0) {
    a.fill_box_diagonals(stencil.data());
    add_level({});
  } else if constexpr (std::is_same_v<V, float>) {
    Array<float> values(context, half_stencil::diagonals * box.n());
    conversion.round(context, values.size(), static_cast<HalfCds const&>(a).view().values, values.data());
    add_level(std::move(values));
  } else
    add_level({});
  Array<std::uint8_t> free(context, box.n());
  for (;;) {
    auto const analysis = kernels.analyse(context, box, free.data());
    if (!(analysis.largest > 0) || !std::isfinite(analysis.bound)) {
      result.failure = "the matrix is not positive definite on level " + std::to_string(result.levels.size()) + " of multigrid";
      return result;
    }
    result.levels.back().largest = std::min(safety * analysis.largest, analysis.bound * (1 + 1e-6));
    box.free = free.data();
    bool const deepest = static_cast<int>(result.levels.size()) == options.multigrid.levels;
    auto coarsening = deepest ? std::nullopt : next_coarsening(box, analysis, options.multigrid.coarse_size);
    if (!coarsening)
      break;
    BoxLevel<V> coarse;
    for (std::size_t d = 0; d < 3; ++d)
      coarse.nodes[d] = coarsening->halved[d] ? BoxCoarsening<V>::coarse_nodes(box.nodes[d]) : box.nodes[d];
    Array<V> values(context, half_stencil::diagonals * coarse.n()), weights(context, 27 * coarse.n());
    Array<std::uint8_t> free_of_coarse(context, coarse.n());
    coarsening->weights = weights.data();
    coarse.free = free_of_coarse.data();
    kernels.coarsen(context, box, *coarsening, coarse, weights.data(), free_of_coarse.data(), values.data());
    BoxLevel<V> const fine = box;
    box = coarse;
    add_level(std::move(values));
    if (result.levels.size() == 2)
      stencil = {};
    result.levels[result.levels.size() - 2].to_coarse =
        std::make_unique<BoxTransfer<V>>(context, fine, box, *coarsening, std::move(weights), std::move(free));
    free = std::move(free_of_coarse);
  }
  result.coarsest = dense_rows(context, box);
  result.free.resize(static_cast<std::size_t>(box.n()));
  free.download(result.free);
  return result;
}

template MultigridHierarchy<float> box_hierarchy(Matrix const&, PreconditionerOptions const&);
template MultigridHierarchy<double> box_hierarchy(Matrix const&, PreconditionerOptions const&);

}  // namespace poisson
