#include "gpu/elements/lattice_system.hpp"

#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/elements/lattice_operator.hpp"
#include "gpu/formats/lattice_half_cds.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/fields.hpp"
#include "gpu/kernels/lattice_element_rows.hpp"
#include "gpu/kernels/rim.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

namespace poisson {

namespace {

/// Layers of cells, or planes of nodes whose rows are made, at once, of `most` altogether: enough work for the device, or what a
/// host's cache can hold. 56 bytes a point.
std::int64_t layers_at_once(std::int64_t cells, std::int64_t points, std::int64_t most, Backend backend) {
  std::int64_t const bytes = backend == Backend::cuda ? std::int64_t{1} << 28 : std::int64_t{1} << 22;
  return std::clamp<std::int64_t>(bytes / (56 * points * cells * cells), std::min<std::int64_t>(4, most), most);
}

}  // namespace

namespace {

/// Where k differs on a box.
enum class Spread { nowhere, by_cell, by_point };
/// How many components k has, and where it differs.
std::pair<int, Spread> spread_of(LatticeProblem const& problem) {
  std::pair<int, Spread> result{1, problem.coefficients.size() > 1 ? Spread::by_cell : Spread::nowhere};
  for (auto const& coefficient : problem.coefficients) {
    result.first = std::max(result.first, static_cast<int>(coefficient.size()));
    if (!std::all_of(coefficient.begin(), coefficient.end(), is_constant))
      result.second = Spread::by_point;
  }
  return result;
}
CoefficientPlaces coefficient_in_box(std::int64_t n_cells, std::int64_t points, int components, Spread spread) {
  std::int64_t const stride = LatticeTensors::padded(n_cells);
  bool const by_point = spread == Spread::by_point, by_cell = spread != Spread::nowhere;
  std::int64_t const of_component = by_point ? points * stride : by_cell ? stride : 1;
  return {components, components > 1 ? of_component : 0, by_point ? stride : 0, by_cell ? 1 : 0};
}
std::int64_t numbers_of_k(std::int64_t n_cells, std::int64_t points, int components, Spread spread) {
  return components * (spread == Spread::nowhere ? 1 : LatticeTensors::padded(n_cells) * (spread == Spread::by_point ? points : 1));
}

/// Bytes of tensors, or of k on a box.
std::int64_t bytes_of_tensors(LatticeLayout const& layout, std::int64_t n_cells, std::int64_t k_of_cell) {
  return 8 *
         (layout.is_box() ? k_of_cell * LatticeTensors::padded(n_cells) : LatticeOperator::n_tensor_values(n_cells, layout.order));
}

/// Bytes of what is known of unknowns on rims: where their copies are; Dirichlet marks, twice, values and loads. Of a box a mark of
/// every unknown, numbers and values of those that have one.
std::int64_t bytes_on_boundary(LatticeLayout const& layout) {
  return layout.is_box() ? layout.n_unknowns + 12 * layout.n_on_boundary() : 26 * (layout.n_unknowns - layout.n_inner());
}

/// The coordinates of all nodes in the context's memory; some lattices after others, where these are made now.
Array<double> coordinates_of(Context& context, LatticeProblem const& problem) {
  if (problem.layout.is_box())
    return {};
  if (!problem.make_coordinates)
    return Array<double>(context, *problem.coordinates);
  std::int64_t const m = problem.layout.nodes(), of_lattice = 3 * m * m * m, n = problem.layout.n_lattices;
  std::int64_t const at_once = std::max<std::int64_t>((std::int64_t{1} << 22) / of_lattice, 1);
  Array<double> result(context, n * of_lattice);
  for (std::int64_t first = 0; first < n; first += at_once) {
    HostVector<double> const made = problem.make_coordinates(first, std::min(at_once, n - first));
    context.upload(result.data() + first * of_lattice, made.data(), 8 * std::ssize(made));
  }
  return result;
}

}  // namespace

/// Layers of cells and the data at their points.
struct LatticeSystem::Slab {
  CellLayers layers;
  Array<double> tensor, load;
  std::array<Array<double>, tensor_entries> k;
  Array<double> f;

  /// Cells that have the same k and f: the numbers of these in the problem.
  struct Group {
    std::size_t k, f;
    std::int64_t first;  ///< the first such cell in the mesh
    ListedCells cells;
  };
  std::vector<Group> groups;
  Array<std::int64_t> listed;  ///< layers, group by group
  Array<std::int32_t> labels;  ///< of the cells in the layers: their groups, where those of a layer differ
};

std::int64_t LatticeSystem::peak_bytes(LatticeProblem const& problem, Backend backend, Format format) {
  std::array<int, tensor_entries> components{};
  for (auto const& coefficient : problem.coefficients)
    for (std::size_t c = 0; c < coefficient.size(); ++c)
      components[c] |= is_constant(coefficient[c]) ? 0 : 1;
  std::int64_t k_of_cell = 0;
  if (problem.layout.is_box()) {
    auto const [n_components, spread] = spread_of(problem);
    std::int64_t const n1 = problem.layout.order + 1;
    bool const by_point = spread == Spread::by_point || n_components == tensor_entries;
    k_of_cell = n_components * (by_point ? n1 * n1 * n1 : spread == Spread::by_cell ? 1 : 0);
  }
  return peak_bytes(
      problem.layout,
      std::accumulate(components.begin(), components.end(), std::ranges::all_of(problem.sources, is_constant) ? 0 : 1), backend,
      format, k_of_cell);
}

std::int64_t LatticeSystem::peak_bytes(LatticeLayout const& layout, int varying_fields, Backend backend, Format format,
                                       std::int64_t k_of_cell) {
  std::int64_t const n_lattices = layout.n_lattices, cells = layout.cells, order = layout.order, m = layout.nodes();
  std::int64_t const nodes = n_lattices * m * m * m, points = (order + 1) * (order + 1) * (order + 1);
  std::int64_t const rims = layout.is_box() ? 0 : n_lattices * layout.rim().size(), n_layers = n_lattices * cells;
  std::int64_t const coordinates = backend == Backend::cpu || layout.is_box() ? 0 : 8 * 3 * nodes;  // the host has them
  if (format == Format::half_cds) {
    std::int64_t const slab =
        (layers_at_once(cells, points, n_lattices * m, backend) + 1) * cells * cells * (448 + 64 * varying_fields);
    return (14 + 1) * 8 * nodes + coordinates + 30 * rims + slab;
  }
  // Tensors and element vectors; coordinates, which are gone when the diagonal and Dirichlet values come; the right-hand side;
  // tables of rims: unknowns, copies and their offsets, and what is known of these unknowns.
  std::int64_t const n_cells = n_layers * cells * cells, slab = layers_at_once(cells, points, n_layers, backend) * cells * cells;
  return bytes_of_tensors(layout, n_cells, k_of_cell) + 8 * points * n_cells + coordinates + 8 * layout.n_unknowns + 8 * rims +
         bytes_on_boundary(layout) + (1 + varying_fields) * 8 * points * slab;
}

std::int64_t LatticeSystem::kept_bytes(LatticeLayout const& layout, Format format, std::int64_t k_of_cell) {
  std::int64_t const m = layout.nodes(), rims = layout.is_box() ? 0 : layout.n_lattices * layout.rim().size();
  if (format == Format::half_cds)  // diagonals, and what lattices contribute to rims
    return 8 * 14 * layout.n_lattices * m * m * m + 8 * rims + bytes_on_boundary(layout) + 8 * rims;
  // Tensors and element vectors, the diagonal.
  std::int64_t const n = layout.cells, n_cells = layout.n_lattices * n * n * n, n1 = layout.order + 1;
  return bytes_of_tensors(layout, n_cells, k_of_cell) + 8 * n1 * n1 * n1 * n_cells + 8 * rims + bytes_on_boundary(layout) +
         8 * layout.n_unknowns;
}

LatticeSystem::LatticeSystem(Context& context, LatticeProblem const& problem, Format format, bool keep_coordinates,
                             Array<double> coordinates)
    : ElementSystem(context),
      kernels_(kernels_for<LatticeElementKernels>(context)),
      lattices_(context, problem.layout),
      coordinates_(coordinates.size() > 0 ? std::move(coordinates)
                   : context.backend() == Backend::cpu && !keep_coordinates && !problem.make_coordinates
                       ? Array<double>()
                       : coordinates_of(context, problem)),
      face_mass_(context, problem.face_mass),
      failed_(context),
      not_definite_(context),
      n_inner_(problem.layout.n_inner()) {
  assert(format == Format::matrix_free || (problem.layout.order == 1 && problem.layout.cells >= 2));
  assert(problem.layout.order <= max_order && !(problem.layout.is_box() && problem.isoparametric));
  take_boundary(problem, format);
  elements_.lattices = lattices_.view();
  elements_.isoparametric = problem.isoparametric;
  elements_.coordinates = coordinates_.size() > 0 ? coordinates_.data() : problem.coordinates->data();
  for (std::size_t d = 0; d < 3 && problem.layout.is_box(); ++d) {
    lines_[d] = Array<double>(context, problem.lines[d]);
    elements_.lines[d] = lines_[d].data();
  }
  elements_.fixed = fixed_.data();
  elements_.fixed_value = fixed_value_.data();
  elements_.rim_load = rim_load_.data();
  elements_.mass_face = mass_face_.data();
  elements_.face_mass = face_mass_.data();
  pure_neumann_ = problem.pure_neumann;
  boundary_ = problem.boundary;
  if (format == Format::matrix_free)
    assemble_operator(problem, keep_coordinates);
  else
    assemble_half_cds(problem);
  if (!keep_coordinates)
    coordinates_ = {};
}

void LatticeSystem::take_boundary(LatticeProblem const& problem, Format format) {
  LatticeLayout const& layout = problem.layout;
  fixed_ = on_rims(context_, layout, problem.fixed);
  if (layout.is_box()) {  // which has many unknowns, and few at its surface
    HostVector<std::int32_t> unknowns;
    HostVector<double> values;
    for (std::size_t i = 0; i < problem.fixed.size(); ++i)
      if (problem.fixed[i] != 0) {
        unknowns.push_back(static_cast<std::int32_t>(layout.on_boundary(static_cast<std::int64_t>(i))));
        values.push_back(problem.fixed_value[i]);
      }
    fixed_unknowns_ = Array<std::int32_t>(context_, std::span<std::int32_t const>(unknowns));
    fixed_value_ = Array<double>(context_, std::span<double const>(values));
    return;
  }
  fixed_value_ = Array<double>(context_, problem.fixed_value);
  rim_load_ = Array<double>(context_, problem.rim_load);
  if (format == Format::matrix_free)
    return;
  HostVector<std::int32_t> mass_face(static_cast<std::size_t>(6 * layout.n_lattices), -1);
  for (std::size_t number = 0; number < problem.mass_faces.size(); ++number)
    mass_face[static_cast<std::size_t>(problem.mass_faces[number])] = static_cast<std::int32_t>(number);
  mass_face_ = Array<std::int32_t>(context_, mass_face);
}

/// Adds what Neumann and Robin values contribute to the right-hand side, which becomes 0 where there are Dirichlet values.
void LatticeSystem::add_loads(LatticeProblem const& problem) {
  if (!problem.layout.is_box()) {
    kernels_.add_rim_loads(context_, elements_, rhs_.data());
    return;
  }
  HostVector<std::int32_t> unknowns(problem.rim_load.size());
  for (std::size_t i = 0; i < unknowns.size(); ++i)
    unknowns[i] = static_cast<std::int32_t>(problem.layout.on_boundary(static_cast<std::int64_t>(i)));
  auto const& rim = kernels_for<RimKernels<double>>(context_);
  Array<std::int32_t> const places(context_, std::span<std::int32_t const>(unknowns));
  Array<double> on_backend(context_, places.size());
  rim.pack(context_, places.size(), places.data(), rhs_.data(), on_backend.data());
  HostVector<double> loads(unknowns.size());
  on_backend.download(std::span<double>(loads));
  for (std::size_t i = 0; i < loads.size(); ++i)
    loads[i] = problem.fixed[i] != 0 ? 0 : loads[i] + problem.rim_load[i];
  on_backend.upload(std::span<double const>(loads));
  rim.put(context_, places.size(), places.data(), on_backend.data(), rhs_.data());
}

void LatticeSystem::refuse(std::int64_t failed, DataError::Quantity quantity) const {
  std::int64_t const points = elements_.points(), cell = failed / points, n = elements_.lattices.cells,
                     lattice = cell / (n * n * n);
  LatticeElements host = elements_;
  HostVector<double> coordinates(static_cast<std::size_t>(host.lattices.is_box() ? 0 : 3 * elements_.lattices.nodes_of_lattice()));
  context_.download(coordinates.data(), elements_.coordinates + lattice * std::ssize(coordinates), 8 * std::ssize(coordinates));
  host.coordinates = coordinates.data();
  std::array<HostVector<double>, 3> lines;
  for (std::size_t d = 0; d < 3; ++d) {
    lines[d].resize(static_cast<std::size_t>(lines_[d].size()));
    lines_[d].download(std::span<double>(lines[d]));
    host.lines[d] = lines[d].data();
  }
  MapTables const tables = map_tables(host.lattices.order, host.map_order());
  lattice_rows::Place const place{host.lattices.is_box() ? lattice : 0,
                                  {static_cast<std::int32_t>(cell % n), static_cast<std::int32_t>(cell / n % n),
                                   static_cast<std::int32_t>(cell / (n * n) % n)}};
  int const n1 = tables.points;
  auto q = static_cast<int>(failed % points);
  double determinant = 0;
  std::array<double, 3> at{};
  lattice_rows::with_map(host, tables, place, [&](auto const& map) {
    double cofactors[9];
    if (quantity == DataError::Quantity::determinant)
      while ((determinant = map.cofactors(q % n1, q / n1 % n1, q / (n1 * n1), cofactors)) > 0)
        ++q;
    for (int d = 0; d < 3; ++d)
      at[static_cast<std::size_t>(d)] = map.coordinate(d, q % n1, q / n1 % n1, q / (n1 * n1));
  });
  throw DataError(quantity, static_cast<int>(cell), at, determinant);
}

/// Finds the groups of the cells in the slab's layers.
void LatticeSystem::find_groups(Slab& slab, LatticeProblem const& problem) const {
  std::int64_t const n = elements_.lattices.cells, of_layer = elements_.cells_of_layer(), count = slab.layers.count;
  auto const n_sources = static_cast<std::int32_t>(problem.sources.size());
  bool const material_by_cell = is_by_cell(problem.layout, problem.material),
             source_by_cell = is_by_cell(problem.layout, problem.source_of);
  bool const differ = material_by_cell || source_by_cell;
  auto const label_of = [&](std::int64_t lattice, std::int64_t cell) {
    auto const number_of = [&](std::vector<std::int32_t> const& numbers, bool by_cell) {
      return numbers.empty() ? 0 : numbers[static_cast<std::size_t>(by_cell ? cell : lattice)];
    };
    return number_of(problem.material, material_by_cell) * n_sources + number_of(problem.source_of, source_by_cell);
  };
  HostVector<std::int32_t> labels(static_cast<std::size_t>(differ ? count * of_layer : 0));
  struct Found {
    std::int32_t label;
    std::int64_t cell;
  };
  std::vector<std::vector<Found>> in_layers(static_cast<std::size_t>(count));
#pragma omp parallel for schedule(static) if (differ)
  for (std::int64_t layer = 0; layer < count; ++layer) {
    std::vector<Found>& found = in_layers[static_cast<std::size_t>(layer)];
    std::int64_t const lattice = (slab.layers.first + layer) / n, first = (slab.layers.first + layer) * of_layer;
    for (std::int64_t i = 0; i < (differ ? of_layer : 1); ++i) {
      std::int32_t const label = label_of(lattice, first + i);
      if (differ)
        labels[static_cast<std::size_t>(layer * of_layer + i)] = label;
      if (found.empty() ||
          (label != found.back().label && std::ranges::none_of(found, [&](Found const& of) { return of.label == label; })))
        found.push_back({label, first + i});
    }
  }
  struct Listed {
    std::int64_t first;
    std::vector<std::int64_t> layers;
  };
  std::map<std::int32_t, Listed> of_label;
  for (std::int64_t layer = 0; layer < count; ++layer)
    for (Found const& found : in_layers[static_cast<std::size_t>(layer)])
      of_label.try_emplace(found.label, Listed{found.cell, {}}).first->second.layers.push_back(slab.layers.first + layer);
  std::vector<std::int64_t> all;
  for (auto const& [label, listed] : of_label)
    all.insert(all.end(), listed.layers.begin(), listed.layers.end());
  slab.listed = Array<std::int64_t>(context_, std::span<std::int64_t const>(all));
  slab.labels = Array<std::int32_t>(context_, labels);
  slab.groups.clear();
  std::int64_t const* next = slab.listed.data();
  for (auto const& [label, listed] : of_label) {
    slab.groups.push_back({static_cast<std::size_t>(label / n_sources),
                           static_cast<std::size_t>(label % n_sources),
                           listed.first,
                           {next, std::ssize(listed.layers), differ ? slab.labels.data() : nullptr, label}});
    next += listed.layers.size();
  }
}

/// `values` = code at the points of these cells.
void LatticeSystem::evaluate(Slab& slab, ExpressionCode const& code, ListedCells const& cells, ValueCheck check, double* values,
                             DataError::Quantity quantity) {
  Array<Instruction> const instructions(context_, std::span<Instruction const>(code));
  kernels_.evaluate(context_, elements_, slab.layers, cells, {instructions.data(), static_cast<std::int32_t>(code.size())},
                    stack_depth(code), check, values, failed_.data());
  if (std::int64_t const failed = failed_.found(); failed >= 0)
    refuse(failed, quantity);
}

/// The data in layers first_layer <= number < end_layer; without tensors where there is no array for them.
void LatticeSystem::fill(Slab& slab, LatticeProblem const& problem, std::int64_t first_layer, std::int64_t end_layer,
                         LatticeTensors const& tensors) {
  slab.layers = {first_layer, end_layer - first_layer};
  find_groups(slab, problem);
  std::int64_t const size = elements_.points() * slab.layers.count * elements_.cells_of_layer();
  auto const provide = [&](Array<double>& array) {
    if (array.size() < size) {
      array = {};
      array = Array<double>(context_, size);
    }
    return array.data();
  };
  for (Slab::Group const& group : slab.groups) {
    auto const field_of = [&](ExpressionCode const& code, Array<double>& array, ValueCheck check, DataError::Quantity quantity) {
      LatticeField field;
      if (is_constant(code)) {
        field.constant = code.front().value;
        if (!passes(check, field.constant))
          refuse(elements_.points() * group.first, quantity);
        return field;
      }
      evaluate(slab, code, group.cells, check, provide(array), quantity);
      field.points = array.data();
      return field;
    };
    auto const& coefficient = problem.coefficients[group.k];
    LatticeCoefficient k;
    ValueCheck const check = coefficient.size() == tensor_entries ? ValueCheck::finite : ValueCheck::positive;
    if (tensors.values != nullptr)
      for (std::size_t c = 0; c < coefficient.size(); ++c)
        k[c] = field_of(coefficient[c], slab.k[c], check, DataError::Quantity::coefficient);
    LatticeField const f = field_of(problem.sources[group.f], slab.f, ValueCheck::finite, DataError::Quantity::source);
    kernels_.tensors(context_, elements_, slab.layers, group.cells, static_cast<int>(coefficient.size()), k, f, shift_, tensors,
                     slab.load.data(), failed_.data(), not_definite_.data());
  }
  if (spread_of(problem).first == tensor_entries)
    if (std::int64_t const failed = not_definite_.found(); failed >= 0)
      refuse(failed, DataError::Quantity::coefficient);
  if (std::int64_t const failed = failed_.found(); failed >= 0)
    refuse(failed, DataError::Quantity::determinant);
}

/// Integrals of what was loaded over the layers from first_layer to the end of the slab.
FieldSums LatticeSystem::sums_of_layers(Slab const& slab, double const* load, std::int64_t first_layer) const {
  std::int64_t const of_layer = elements_.cells_of_layer(), n_cells = slab.layers.count * of_layer;
  std::int64_t const skipped = (first_layer - slab.layers.first) * of_layer;
  FieldSums result;
  if (skipped == 0)
    return kernels_for<BoxElementKernels>(context_).sums(context_, elements_.points() * n_cells, load);
  for (int q = 0; q < elements_.points(); ++q) {
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

/// Finds the integrals of the source, and the shift that makes it compatible. Does nothing unless the problem is pure Neumann.
void LatticeSystem::make_compatible(Slab& slab, LatticeProblem const& problem, std::int64_t at_once) {
  if (!pure_neumann_)
    return;
  bool const source_varies = !std::ranges::all_of(problem.sources, is_constant);
  std::int64_t const n_layers = elements_.lattices.n_lattices * elements_.lattices.cells;
  double volume = 0;
  for (std::int64_t first = 0; first < n_layers; first += at_once) {
    fill(slab, problem, first, std::min(first + at_once, n_layers), {});
    add_source(slab, first, source_varies);
    for (Slab::Group const& group : slab.groups)
      kernels_.tensors(context_, elements_, slab.layers, group.cells, 1, {}, {nullptr, 1}, 0, {}, slab.load.data(), failed_.data(),
                       not_definite_.data());
    volume += sums_of_layers(slab, slab.load.data(), first).sum;
  }
  shift_ = (source_.sum + boundary_.sum) / volume;
}

void LatticeSystem::assemble_half_cds(LatticeProblem const& problem) {
  bool const source_varies = !std::ranges::all_of(problem.sources, is_constant);
  LatticeView const& lattices = elements_.lattices;
  std::int64_t const n = lattices.cells, m = lattices.m, n_planes = lattices.n_lattices * m, n_layers = lattices.n_lattices * n;
  std::int64_t const planes = layers_at_once(n, elements_.points(), n_planes, context_.backend());
  std::int64_t const most_cells = std::min(planes + 1, n_layers) * n * n;
  Slab slab;
  slab.tensor = Array<double>(context_, 48 * most_cells);
  slab.load = Array<double>(context_, 8 * most_cells);
  make_compatible(slab, problem, planes);

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
    fill(slab, problem, first_layer, end_layer, {slab.tensor.data(), false});
    if (!pure_neumann_ && summed < end_layer) {
      add_source(slab, summed, source_varies);
      summed = end_layer;
    }
    kernels_.rows(context_, elements_, slab.layers, first, end, slab.tensor.data(), slab.load.data(), values.data(), rhs_.data(),
                  rim_rhs.data());
    first = end;
  }
  kernels_.sum_copies(context_, elements_, rim_rhs.data(), rhs_.data());

  nnz_ = count_entries(problem.layout, problem.fixed, problem.couplings);
  LatticeView const layout = problem.layout.view();
  std::int64_t const row_not_finite = lowest_not_finite(context_, elements_.n_values(), values.data(), [&](std::int64_t row) {
    return layout.unknown(row / (m * m * m), static_cast<std::int32_t>(row % m), static_cast<std::int32_t>(row / m % m),
                          static_cast<std::int32_t>(row / (m * m) % m));
  });
  matrix_ = LatticeHalfCds::from_diagonals(context_, std::move(lattices_), std::move(values));
  matrix_->row_not_finite = row_not_finite;
}

void LatticeSystem::assemble_operator(LatticeProblem const& problem, bool keep_coordinates) {
  bool const source_varies = !std::ranges::all_of(problem.sources, is_constant);
  LatticeView const& lattices = elements_.lattices;
  std::int64_t const n = lattices.cells, n_layers = lattices.n_lattices * n, n_cells = n_layers * n * n;
  std::int64_t const stride = LatticeTensors::padded(n_cells), points = elements_.points();
  std::int64_t const layers = layers_at_once(n, points, n_layers, context_.backend());
  Slab slab;
  slab.load = Array<double>(context_, points * layers * n * n);
  make_compatible(slab, problem, layers);

  LatticeOperator::Data data;
  auto const [components, spread] = spread_of(problem);
  bool const stores_k = problem.layout.is_box() && components < tensor_entries;
  if (stores_k) {
    data.of_k = coefficient_in_box(n_cells, points, components, spread);
    data.tensors.values = Array<double>(context_, numbers_of_k(n_cells, points, components, spread));
    for (std::size_t d = 0; d < 3; ++d) {
      HostVector<double> edges;
      for (std::size_t i = 0, p = static_cast<std::size_t>(lattices.order); i + p < problem.lines[d].size(); i += p)
        edges.push_back(problem.lines[d][i + p] - problem.lines[d][i]);
      data.edges[d] = Array<double>(context_, edges);
    }
  } else {
    data.tensors.values = Array<double>(context_, LatticeOperator::n_tensor_values(n_cells, lattices.order));
  }
  LatticeTensors const tensors{data.tensors.values.data(), true, data.of_k};
  if (std::int64_t const of_batch = 6 * points * LatticeTensors::cells_of_batch;
      n_cells > 0 && !stores_k)  // the last one may not be full
    context_.set_zero(data.tensors.values.data() + data.tensors.values.size() - of_batch, 8 * of_batch);
  rhs_ = Array<double>(context_, lattices.n_unknowns);
  Array<double> vectors(context_, points * stride);
  for (std::int64_t first = 0; first < n_layers; first += layers) {
    if (interrupt_requested())
      throw Interrupted();
    fill(slab, problem, first, std::min(first + layers, n_layers), tensors);
    if (!pure_neumann_)
      add_source(slab, first, source_varies);
    kernels_.element_loads(context_, elements_, slab.layers, slab.load.data(), stride, vectors.data());
  }
  slab = {};
  if (!keep_coordinates)
    coordinates_ = {};

  LatticeOperatorView view;
  view.lattices = lattices;
  kernels_for<LatticeOperatorKernels>(context_).gather(context_, view, vectors.data(), rhs_.data());
  vectors = {};
  data.lattices = std::move(lattices_);
  data.fixed = problem.layout.is_box() ? std::move(fixed_) : fixed_.copy_to(context_);
  data.face_mass = std::move(face_mass_);
  data.mass_faces = Array<std::int32_t>(context_, std::span<std::int32_t const>(problem.mass_faces));
  auto matrix = LatticeOperator::make(context_, std::move(data));

  // Dirichlet values leave the matrix.
  Array<double> fixed(context_, lattices.n_unknowns);
  fixed.set_zero();
  set_dirichlet(fixed.data());
  if (largest_of(context_, fixed.size(), fixed.data()) > 0)
    matrix->subtract_whole_product(fixed.data(), rhs_.data());
  add_loads(problem);

  nnz_ = count_entries(problem.layout, problem.fixed, problem.couplings);
  Array<double> diagonal(context_, lattices.n_unknowns);
  matrix->diagonal(diagonal.data());
  matrix->row_not_finite = lowest_not_finite(context_, diagonal.size(), diagonal.data());
  matrix_ = std::move(matrix);
}

void LatticeSystem::set_dirichlet(double* x) const {
  if (elements_.lattices.is_box()) {
    kernels_for<RimKernels<double>>(context_).put(context_, fixed_unknowns_.size(), fixed_unknowns_.data(), fixed_value_.data(), x);
    return;
  }
  kernels_for<FieldKernels>(context_).set_where(context_, fixed_.size(), fixed_.data(), fixed_value_.data(), x + n_inner_);
}

namespace {

/// The same on a box.
std::int64_t count_entries_in_box(LatticeLayout const& layout, std::span<std::uint8_t const> fixed, std::int64_t couplings) {
  BoxSurface const surface = layout.surface();
  std::int64_t const p = layout.order;
  HostVector<std::int32_t> before(fixed.size() + 1);  // how many of the first nodes of the surface have values
  before[0] = 0;
  for (std::size_t i = 0; i < fixed.size(); ++i)
    before[i + 1] = before[i] + (fixed[i] != 0 ? 1 : 0);
  auto const between = [&](std::int64_t place, std::int64_t last) {
    return before[static_cast<std::size_t>(last) + 1] - before[static_cast<std::size_t>(place)];
  };
  std::int64_t count = couplings;
#pragma omp parallel for schedule(static) reduction(+ : count)
  for (std::int64_t i = 0; i < std::ssize(fixed); ++i) {
    if (fixed[static_cast<std::size_t>(i)] == 0)
      continue;
    std::int64_t const node = surface.node(i);
    std::int64_t const at[3] = {node % surface.n[0], node / surface.n[0] % surface.n[1], node / surface.plane()};
    std::int64_t first[3], last[3], neighbours = 1, also_fixed = 0;
    for (int d = 0; d < 3; ++d) {
      first[d] = std::max<std::int64_t>((at[d] - 1) / p * p, 0);
      last[d] = std::min((at[d] / p + 1) * p, surface.n[d] - 1);
      neighbours *= last[d] - first[d] + 1;
    }
    for (std::int64_t z = first[2]; z <= last[2]; ++z)
      for (std::int64_t y = first[1]; y <= last[1]; ++y)
        if (z == 0 || z == surface.n[2] - 1 || y == 0 || y == surface.n[1] - 1) {
          also_fixed += between(surface.place(first[0], y, z), surface.place(last[0], y, z));
        } else {
          for (std::int64_t const x : {std::int64_t{0}, surface.n[0] - 1})
            if (first[0] <= x && x <= last[0])
              also_fixed += between(surface.place(x, y, z), surface.place(x, y, z));
        }
    count -= 2 * (neighbours - 1) - (also_fixed - 1);
  }
  return count;
}

}  // namespace

std::int64_t count_entries(LatticeLayout const& layout, std::span<std::uint8_t const> fixed, std::int64_t couplings) {
  if (layout.is_box())
    return count_entries_in_box(layout, fixed, couplings);
  LatticeView const lattices = layout.view();
  LatticeRim const rim = lattices.rim();
  std::int64_t const n_inner = lattices.n_inner(), n_rim = lattices.n_rim();
  std::int32_t const m = lattices.m, p = lattices.order;
  // Nodes that share a cell with node i of a line are first ... last; inner ones among them are 1 ... m - 2.
  auto const first = [p](std::int32_t i) { return std::max((i - 1) / p * p, 0); };
  auto const last = [p, m](std::int32_t i) { return std::min((i / p + 1) * p, m - 1); };
  auto const inner_neighbours = [&](std::int32_t i) {
    return std::int64_t{rim.all ? 0 : std::max(std::min(last(i), m - 2) - std::max(first(i), 1) + 1, 0)};
  };
  std::int64_t count = couplings;
#pragma omp parallel reduction(+ : count)
  {
    std::vector<std::int32_t> neighbours;  // on rims, where they may be so in several lattices
#pragma omp for schedule(static)
    for (std::int64_t i = 0; i < n_rim; ++i) {
      if (fixed[static_cast<std::size_t>(i)] == 0)
        continue;
      neighbours.clear();
      std::int64_t inner = 0;
      for (std::int64_t c = lattices.copy_offsets[i]; c < lattices.copy_offsets[i + 1]; ++c) {
        std::int64_t const place = lattices.copies[c], lattice = place / rim.size();
        LatticeRim::Node const node = rim.node(place % rim.size());
        inner += inner_neighbours(node.i) * inner_neighbours(node.j) * inner_neighbours(node.k);
        for (std::int32_t z = first(node.k); z <= last(node.k); ++z)
          for (std::int32_t y = first(node.j); y <= last(node.j); ++y)
            for (std::int32_t x = first(node.i); x <= last(node.i); ++x)
              if (rim.holds(x, y, z))
                neighbours.push_back(lattices.rim_unknowns[lattice * rim.size() + rim.place(x, y, z)]);
      }
      std::sort(neighbours.begin(), neighbours.end());
      neighbours.erase(std::unique(neighbours.begin(), neighbours.end()), neighbours.end());
      auto const also_fixed = std::count_if(neighbours.begin(), neighbours.end(), [&](std::int32_t unknown) {
        return fixed[static_cast<std::size_t>(unknown - n_inner)] != 0;
      });
      // Its row but the diagonal entry, and its column in rows that are not cleared themselves.
      std::int64_t const others = inner + std::ssize(neighbours) - 1;
      count -= others + others - (also_fixed - 1);
    }
  }
  return count;
}

}  // namespace poisson
