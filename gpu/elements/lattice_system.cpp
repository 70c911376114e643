#include "gpu/elements/lattice_system.hpp"

#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/formats/lattice_half_cds.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/lattice_element_rows.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>

namespace poisson {

namespace {

/// Planes of nodes whose rows are made at once: enough work for the device, or what a host's cache can hold.
std::int64_t planes_at_once(std::int64_t cells, std::int64_t n_planes, Backend backend) {
  std::int64_t const bytes = backend == Backend::cuda ? std::int64_t{1} << 28 : std::int64_t{1} << 22;
  return std::clamp<std::int64_t>(bytes / (448 * cells * cells), 4, n_planes);
}

LatticeView view_of(LatticeLayout const& layout) {
  LatticeView view{layout.n_lattices, layout.n_unknowns, layout.order, layout.cells, static_cast<std::int32_t>(layout.nodes())};
  view.kind_first = layout.kind_first.data();
  view.rim_unknowns = layout.rim_unknowns.data();
  view.copy_offsets = layout.copy_offsets.data();
  view.copies = layout.copies.data();
  return view;
}

}  // namespace

/// Layers of cells and the data at their points.
struct LatticeSystem::Slab {
  CellLayers layers;
  Array<double> tensor, load;
  std::array<Array<double>, 3> k;
  Array<double> f;
  Array<std::int64_t> listed;  ///< numbers of layers, material by material
};

std::int64_t LatticeSystem::peak_bytes(std::int64_t n_lattices, std::int64_t cells, Backend backend) {
  std::int64_t const m = cells + 1, nodes = n_lattices * m * m * m;
  std::int64_t const slab = (planes_at_once(cells, n_lattices * m, backend) + 1) * cells * cells * (448 + 4 * 64);
  std::int64_t const rims = n_lattices * (m * m * m - (m - 2) * (m - 2) * (m - 2));
  return (14 + 3 + 1) * 8 * nodes + 30 * rims + slab;
}

LatticeSystem::LatticeSystem(Context& context, LatticeProblem const& problem)
    : context_(context),
      kernels_(kernels_for<LatticeElementKernels>(context)),
      lattices_(context, problem.layout),
      coordinates_(context, problem.coordinates),
      fixed_value_(context, problem.fixed_value),
      rim_load_(context, problem.rim_load),
      face_mass_(context, problem.face_mass),
      fixed_(context, problem.fixed),
      mass_face_(context, problem.mass_face),
      failed_(context),
      n_inner_(problem.layout.n_inner()),
      host_fixed_(problem.fixed),
      host_fixed_value_(problem.fixed_value) {
  assert(problem.layout.order == 1 && problem.layout.cells >= 2);
  elements_.lattices = lattices_.view();
  elements_.coordinates = coordinates_.data();
  elements_.fixed = fixed_.data();
  elements_.fixed_value = fixed_value_.data();
  elements_.rim_load = rim_load_.data();
  elements_.mass_face = mass_face_.data();
  elements_.face_mass = face_mass_.data();
  pure_neumann_ = problem.pure_neumann;
  boundary_ = problem.boundary;
  assemble(problem);
}

void LatticeSystem::refuse(std::int64_t failed, DataError::Quantity quantity) const {
  std::int64_t const cell = failed / 8, n = elements_.lattices.cells, lattice = cell / (n * n * n);
  HostVector<double> coordinates(static_cast<std::size_t>(3 * elements_.lattices.nodes_of_lattice()));
  context_.download(coordinates.data(), coordinates_.data() + lattice * std::ssize(coordinates), 8 * std::ssize(coordinates));
  LatticeElements host = elements_;
  host.coordinates = coordinates.data();
  auto const vertices =
      lattice_rows::vertices_of(host, {0,
                                       {static_cast<std::int32_t>(cell % n), static_cast<std::int32_t>(cell / n % n),
                                        static_cast<std::int32_t>(cell / (n * n) % n)}});
  LatticeTables const tables = lattice_tables();
  int q = static_cast<int>(failed % 8);
  double determinant = 0, cofactors[9];
  if (quantity == DataError::Quantity::determinant)
    while ((determinant = lattice_rows::cofactors(tables, vertices, q, cofactors)) > 0)
      ++q;
  std::array<double, 3> at{};
  for (std::size_t d = 0; d < 3; ++d)
    at[d] = lattice_rows::coordinate(tables, vertices.x[d], q);
  throw DataError(quantity, static_cast<int>(lattice), at, determinant);
}

/// `values` = code at the points of the cells in the listed layers.
void LatticeSystem::evaluate(Slab& slab, ExpressionCode const& code, std::int64_t const* listed, std::int64_t n_listed,
                             ValueCheck check, double* values, DataError::Quantity quantity) {
  Array<Instruction> const instructions(context_, std::span<Instruction const>(code));
  kernels_.evaluate(context_, elements_, slab.layers, listed, n_listed,
                    {instructions.data(), static_cast<std::int32_t>(code.size())}, stack_depth(code), check, values,
                    failed_.data());
  if (std::int64_t const failed = failed_.found(); failed >= 0)
    refuse(failed, quantity);
}

/// The data in layers first_layer <= number < end_layer; without the tensors unless `with_matrix`.
void LatticeSystem::fill(Slab& slab, LatticeProblem const& problem, std::int64_t first_layer, std::int64_t end_layer,
                         bool with_matrix) {
  slab.layers = {first_layer, end_layer - first_layer};
  std::int64_t const n = elements_.lattices.cells;
  std::map<std::int32_t, std::vector<std::int64_t>> of_material;
  for (std::int64_t layer = first_layer; layer < end_layer; ++layer)
    of_material[problem.material[static_cast<std::size_t>(layer / n)]].push_back(layer);
  std::vector<std::int64_t> all;
  for (auto const& [material, layers] : of_material)
    all.insert(all.end(), layers.begin(), layers.end());
  slab.listed = Array<std::int64_t>(context_, std::span<std::int64_t const>(all));
  std::int64_t const* listed = slab.listed.data();
  std::int64_t const size = 8 * slab.layers.count * elements_.cells_of_layer();
  auto const provide = [&](Array<double>& array) {
    if (array.size() < size) {
      array = {};
      array = Array<double>(context_, size);
    }
    return array.data();
  };
  for (auto const& [material, layers] : of_material) {
    auto const n_listed = static_cast<std::int64_t>(layers.size());
    auto const field_of = [&](ExpressionCode const& code, Array<double>& array, ValueCheck check, DataError::Quantity quantity) {
      LatticeField field;
      if (is_constant(code)) {
        field.constant = code.front().value;
        if (!passes(check, field.constant))
          refuse(8 * layers.front() * elements_.cells_of_layer(), quantity);
        return field;
      }
      evaluate(slab, code, listed, n_listed, check, provide(array), quantity);
      field.points = array.data();
      return field;
    };
    auto const& coefficient = problem.coefficients[static_cast<std::size_t>(material)];
    std::array<LatticeField, 3> k;
    if (with_matrix)
      for (std::size_t c = 0; c < coefficient.size(); ++c)
        k[c] = field_of(coefficient[c], slab.k[c], ValueCheck::positive, DataError::Quantity::coefficient);
    LatticeField const f = field_of(problem.source, slab.f, ValueCheck::finite, DataError::Quantity::source);
    kernels_.tensors(context_, elements_, slab.layers, listed, n_listed, static_cast<int>(coefficient.size()), k, f, shift_,
                     with_matrix ? slab.tensor.data() : nullptr, slab.load.data(), failed_.data());
    listed += n_listed;
  }
  if (std::int64_t const failed = failed_.found(); failed >= 0)
    refuse(failed, DataError::Quantity::determinant);
}

/// Integrals of what was loaded over the layers from first_layer to the end of the slab.
FieldSums LatticeSystem::sums_of_layers(Slab const& slab, double const* load, std::int64_t first_layer) const {
  std::int64_t const of_layer = elements_.cells_of_layer(), n_cells = slab.layers.count * of_layer;
  std::int64_t const skipped = (first_layer - slab.layers.first) * of_layer;
  FieldSums result;
  for (int q = 0; q < 8; ++q) {
    auto const sums = kernels_for<BoxElementKernels>(context_).sums(context_, n_cells - skipped, load + q * n_cells + skipped);
    result.sum += sums.sum;
    result.absolute += sums.absolute;
  }
  return result;
}

/// Adds what the layers from first_layer on hold to the integrals of the source.
void LatticeSystem::add_source(Slab const& slab, std::int64_t first_layer, bool varies) {
  FieldSums const sums = sums_of_layers(slab, slab.load.data(), first_layer);
  source_.sum += sums.sum;
  source_.absolute += sums.absolute;
  if (!varies)
    return;
  std::int64_t const n = elements_.lattices.cells, skipped = (first_layer - slab.layers.first) * n;
  Array<double> largest(context_, slab.layers.count * n);
  kernels_.largest_of_lines(context_, elements_, slab.layers, slab.load.data(), largest.data());
  std::size_t const known = largest_of_lines_.size();
  largest_of_lines_.resize(known + static_cast<std::size_t>(largest.size() - skipped));
  context_.download(largest_of_lines_.data() + known, largest.data() + skipped, 8 * (largest.size() - skipped));
}

void LatticeSystem::assemble(LatticeProblem const& problem) {
  LatticeView const& lattices = elements_.lattices;
  std::int64_t const n = lattices.cells, m = lattices.m, n_planes = lattices.n_lattices * m, n_layers = lattices.n_lattices * n;
  std::int64_t const planes = planes_at_once(n, n_planes, context_.backend());
  bool const source_varies = !is_constant(problem.source);
  std::int64_t const most_cells = std::min(planes + 1, n_layers) * n * n;
  Slab slab;
  slab.tensor = Array<double>(context_, 48 * most_cells);
  slab.load = Array<double>(context_, 8 * most_cells);

  if (pure_neumann_) {
    double volume = 0;
    for (std::int64_t first = 0; first < n_layers; first += planes) {
      fill(slab, problem, first, std::min(first + planes, n_layers), false);
      add_source(slab, first, source_varies);
      kernels_.tensors(context_, elements_, slab.layers, slab.listed.data(), slab.listed.size(), 1, {}, {nullptr, 1}, 0, nullptr,
                       slab.load.data(), failed_.data());
      volume += sums_of_layers(slab, slab.load.data(), first).sum;
    }
    shift_ = (source_.sum + boundary_.sum) / volume;
  }

  rhs_ = Array<double>(context_, lattices.n_unknowns);
  Array<double> values(context_, 14 * elements_.n_values());
  Array<double> rim_rhs(context_, lattices.n_lattices * lattices.rim().size());
  std::int64_t summed = 0;  // layers whose source is in the sums
  for (std::int64_t first = 0; first < n_planes;) {
    if (interrupt_requested())
      throw Interrupted();
    // The layers on both sides of these planes. One more plane of nodes than layers: a slab may end inside a lattice.
    std::int64_t const end = std::min(first + planes, n_planes), last = end - 1;
    std::int64_t const first_layer = first / m * n + std::max<std::int64_t>(first % m - 1, 0);
    std::int64_t const end_layer = last / m * n + std::min(last % m, n - 1) + 1;
    fill(slab, problem, first_layer, end_layer, true);
    if (!pure_neumann_ && summed < end_layer) {
      add_source(slab, summed, source_varies);
      summed = end_layer;
    }
    kernels_.rows(context_, elements_, slab.layers, first, end, slab.tensor.data(), slab.load.data(), values.data(), rhs_.data(),
                  rim_rhs.data());
    first = end;
  }
  kernels_.sum_copies(context_, elements_, rim_rhs.data(), rhs_.data());
  make_matrix(problem, std::move(values));
}

void LatticeSystem::make_matrix(LatticeProblem const& problem, Array<double> values) {
  nnz_ = count_entries(problem.layout, problem.fixed);
  // |a_ij| <= sqrt(a_ii a_jj): the diagonal tells whether an entry has overflowed.
  std::int64_t const n_values = elements_.n_values();
  std::int64_t row_not_finite = -1;
  if (!std::isfinite(kernels_for<BoxElementKernels>(context_).sums(context_, n_values, values.data()).absolute)) {
    HostVector<double> diagonal(static_cast<std::size_t>(n_values));
    context_.download(diagonal.data(), values.data(), 8 * n_values);
    LatticeView const lattices = view_of(problem.layout);
    for (std::int64_t row = 0; row < n_values; ++row)
      if (!std::isfinite(diagonal[static_cast<std::size_t>(row)])) {
        std::int64_t const m = lattices.m, unknown = lattices.unknown(row / (m * m * m), static_cast<std::int32_t>(row % m),
                                                                      static_cast<std::int32_t>(row / m % m),
                                                                      static_cast<std::int32_t>(row / (m * m) % m));
        row_not_finite = row_not_finite < 0 ? unknown : std::min(row_not_finite, unknown);
      }
  }
  matrix_ = LatticeHalfCds::from_diagonals(context_, std::move(lattices_), std::move(values));
  matrix_->row_not_finite = row_not_finite;
}

void LatticeSystem::set_dirichlet(std::span<double> x) const {
  for (std::size_t i = 0; i < host_fixed_.size(); ++i)
    if (host_fixed_[i] != 0)
      x[static_cast<std::size_t>(n_inner_) + i] = host_fixed_value_[i];
}

std::int64_t count_entries(LatticeLayout const& layout, std::span<std::uint8_t const> fixed) {
  LatticeView const lattices = view_of(layout);
  LatticeRim const rim = lattices.rim();
  std::int64_t const n_inner = lattices.n_inner(), n_rim = lattices.n_rim();
  std::int32_t const m = lattices.m;
  // Calls found(unknown) for the free neighbours of a node in its lattice, itself included.
  auto const for_neighbours = [&](std::int64_t lattice, std::int32_t i, std::int32_t j, std::int32_t k, auto const& found) {
    for (std::int32_t z = std::max(k - 1, 0); z <= std::min(k + 1, m - 1); ++z)
      for (std::int32_t y = std::max(j - 1, 0); y <= std::min(j + 1, m - 1); ++y)
        for (std::int32_t x = std::max(i - 1, 0); x <= std::min(i + 1, m - 1); ++x) {
          std::int64_t const unknown = lattices.unknown(lattice, x, y, z);
          if (unknown < n_inner || fixed[static_cast<std::size_t>(unknown - n_inner)] == 0)
            found(unknown);
        }
  };
  // Inner nodes: all neighbours differ. Those next to the rim may have fixed ones.
  std::int64_t const deep = std::max(m - 4, 0);
  std::int64_t count = lattices.n_lattices * 27 * deep * deep * deep;
#pragma omp parallel for collapse(2) schedule(static) reduction(+ : count)
  for (std::int64_t lattice = 0; lattice < lattices.n_lattices; ++lattice)
    for (std::int32_t k = 1; k < m - 1; ++k)
      for (std::int32_t j = 1; j < m - 1; ++j) {
        bool const all = k == 1 || k == m - 2 || j == 1 || j == m - 2;
        for (std::int32_t i = 1; i < m - 1; i += all || m == 3 ? 1 : m - 3)
          for_neighbours(lattice, i, j, k, [&](std::int64_t) { ++count; });
      }
#pragma omp parallel reduction(+ : count)
  {
    std::vector<std::int64_t> neighbours;
#pragma omp for schedule(static)
    for (std::int64_t i = 0; i < n_rim; ++i) {
      if (fixed[static_cast<std::size_t>(i)] != 0) {
        ++count;
        continue;
      }
      neighbours.clear();
      for (std::int64_t c = layout.copy_offsets[static_cast<std::size_t>(i)];
           c < layout.copy_offsets[static_cast<std::size_t>(i) + 1]; ++c) {
        std::int64_t const place = layout.copies[static_cast<std::size_t>(c)];
        auto const node = rim.node(place % rim.size());
        for_neighbours(place / rim.size(), node.i, node.j, node.k, [&](std::int64_t unknown) { neighbours.push_back(unknown); });
      }
      std::sort(neighbours.begin(), neighbours.end());
      count += std::unique(neighbours.begin(), neighbours.end()) - neighbours.begin();
    }
  }
  return count;
}

}  // namespace poisson
