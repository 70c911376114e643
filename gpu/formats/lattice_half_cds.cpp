#include "gpu/formats/lattice_half_cds.hpp"

#include "gpu/core/csr_entries.hpp"
#include "gpu/core/memory.hpp"
#include "gpu/formats/csr_by_rows.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/check.hpp"
#include "gpu/kernels/conversion.hpp"
#include "gpu/kernels/rim.hpp"

#include <algorithm>
#include <cassert>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace poisson {

FormatEstimate LatticeHalfCds::estimate(MatrixShape const& shape, FormatOptions const& options) {
  FormatEstimate result;
  result.format = Format::half_cds;
  LatticeRim const rim{shape.lattice_nodes};
  std::int64_t const m = rim.m, nodes = shape.n_lattices * m * m * m, on_rims = shape.n_lattices * rim.size();
  std::int64_t const unknowns_on_rims = shape.n_rows - (nodes - on_rims);
  result.bytes = bytes_of_value(options.precision) * half_stencil::diagonals * nodes + 8 * on_rims + 8 * (unknowns_on_rims + 1) + 4;
  result.bytes_per_product = result.bytes + 16 * shape.n_rows;
  result.padding_ratio =
      static_cast<double>(half_stencil::diagonals * nodes) / (0.5 * static_cast<double>(shape.nnz + shape.n_rows));
  std::int64_t const csr_bytes = CsrMatrix::csr_bytes(shape.n_rows, shape.nnz);
  if (result.bytes > csr_bytes)
    result.refusal = "half_cds would store 14 diagonals of " + std::to_string(shape.n_lattices) + " lattices of " +
                     std::to_string(m) + " nodes a side: " + format_bytes(result.bytes) + " where csr takes " +
                     format_bytes(csr_bytes) + "; use csr";
  return result;
}

std::unique_ptr<Matrix> LatticeHalfCds::from_diagonals(Context& context, LatticeArrays lattices, Array<double> values,
                                                       MatrixPrecision precision) {
  assert(lattices.view().order == 1 && precision != MatrixPrecision::double_double);
  StoredEntries entries;
  if (precision == MatrixPrecision::single) {
    entries.single_values = Array<float>(context, values.size());
    kernels_for<ConversionKernels>(context).round(context, values.size(), values.data(), entries.single_values.data());
  } else {
    entries.values = std::move(values);
  }
  return std::unique_ptr<Matrix>(new LatticeHalfCds(context, std::move(lattices), std::move(entries)));
}

std::unique_ptr<Matrix> LatticeHalfCds::from_diagonals(Context& context, LatticeArrays lattices, Array<float> values) {
  StoredEntries entries;
  entries.single_values = std::move(values);
  return std::unique_ptr<Matrix>(new LatticeHalfCds(context, std::move(lattices), std::move(entries)));
}

LatticeHalfCds::LatticeHalfCds(Context& context, LatticeArrays lattices, StoredEntries entries)
    : ProductsOfKernels(context, {}), lattices_(std::move(lattices)), entries_(std::move(entries)) {
  view_.lattices = lattices_.view();
  entries_.set_pointers(view_);
  assert(entries_.size() == half_stencil::diagonals * view_.n_nodes());
}

void LatticeHalfCds::share(SharedLattices const& lattices, Communicator& ranks) {
  LatticeLayout const& layout = lattices.layout;
  std::int64_t const n = lattices.n_rows, n_inner = layout.n_inner();
  auto places = std::make_shared<Places>();
  places->n_columns = layout.n_unknowns;
  // Owners are told which of the ghosts that they have given have cells here: there are others, which rows of theirs read.
  RankLists<std::int32_t> here;
  HostVector<std::int64_t> const& copy_offsets = layout.tables->copy_offsets;
  std::int64_t ghost = n;
  for (RankNeighbor const& neighbor : lattices.neighbors)
    for (std::int32_t i = 0; i < neighbor.n_ghosts; ++i, ++ghost) {
      auto const on_rim = static_cast<std::size_t>(ghost - n_inner);
      if (copy_offsets[on_rim] == copy_offsets[on_rim + 1])
        continue;
      here[neighbor.rank].push_back(i);
      places->sums.ghosts[neighbor.rank].push_back(static_cast<std::int32_t>(ghost));
    }
  auto const there = swap_lists(ranks, here);
  for (RankNeighbor const& neighbor : lattices.neighbors)
    for (std::int32_t const i : std::as_const(there)[neighbor.rank])
      places->sums.own[neighbor.rank].push_back(static_cast<std::int32_t>(neighbor.sent[static_cast<std::size_t>(i)] - n_inner));

  Array<double> of_lattices(context(), n_rows());
  kernels_.diagonal(context(), view_, of_lattices.data(), nullptr);
  lattices_.keep_rows(n);
  view_.lattices = lattices_.view();
  set_shared(places, ranks);
  // What other ranks contribute to the diagonal goes the same way as their sums.
  Halo<double> diagonals(context(), ranks, places->sums, HaloDirection::to_owners);
  auto const& rim = kernels_for<RimKernels<double>>(context());
  rim.pack(context(), shared_->ghosts.size(), shared_->ghosts.data(), of_lattices.data(), diagonals.outgoing());
  diagonals.start();
  Array<double> on_rims(context(), n - n_inner);
  diagonals.set(on_rims.data());
  std::vector<std::int32_t> rows = places->sums.own.joined();
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  Array<std::int32_t> const rows_on_rims(context(), std::span<std::int32_t const>(rows));
  Array<double> of_rows(context(), rows_on_rims.size());
  rim.pack(context(), of_rows.size(), rows_on_rims.data(), on_rims.data(), of_rows.data());
  std::vector<double> values(rows.size());
  of_rows.download(std::span<double>(values));
  for (std::int32_t& row : rows)
    row += static_cast<std::int32_t>(n_inner);
  places->diagonal = AddedDiagonal(context(), rows, values);
}

void LatticeHalfCds::set_shared(std::shared_ptr<Places const> places, Communicator& ranks) {
  std::int64_t const n = view_.lattices.n_rim();
  bool const single = precision() == MatrixPrecision::single;
  shared_ = std::make_unique<Shared>(
      Shared{ranks, places, Array<std::int32_t>(context(), std::span<std::int32_t const>(places->sums.ghosts.joined())),
             GhostSums(context(), ranks, places->sums, single), Array<float>(context(), single ? n : 0),
             Array<double>(context(), single ? 0 : n), Vector<DoubleDouble>(context(), single ? 0 : n)});
  // Rows that others do not contribute to stay as they are.
  shared_->added_single.set_zero();
  shared_->added.set_zero();
  shared_->added_extended.set_zero();
  auto const describe = [this]<class T>(SumsOfRanks<T>& sums, Pointer<T> added) {
    Halo<T>& halo = shared_->sums.in<T>();
    sums = {shared_->ghosts.size(), shared_->ghosts.data(),    halo.outgoing(),
            ConstPointer<T>(added), [&halo] { halo.start(); }, [&halo, added] { halo.set(added); }};
  };
  if (shared_->sums.is_single()) {
    describe(shared_->of_single, shared_->added_single.data());
    view_.sums_in_single = &shared_->of_single;
  } else {
    describe(shared_->of_double, shared_->added.data());
    describe(shared_->of_extended, shared_->added_extended.data());
    view_.sums = &shared_->of_double;
    view_.sums_extended = &shared_->of_extended;
    view_.added_extended = shared_->of_extended.added;
  }
}

std::unique_ptr<Matrix> LatticeHalfCds::in_single() const {
  if (precision() != MatrixPrecision::double_)
    return nullptr;
  std::unique_ptr<LatticeHalfCds> rounded(
      new LatticeHalfCds(context(), lattices_.copy_to(context()), entries_.in_single(context())));
  if (shared_ != nullptr)
    rounded->set_shared(shared_->places, shared_->ranks);
  return rounded;
}

CsrMatrix LatticeHalfCds::rows_of_cells() const {
  auto const host = make_cpu_context();
  LatticeHalfCds copy(*host, lattices_.copy_to(*host), entries_.copy_to(*host));
  copy.lattices_.keep_rows(n_columns());
  copy.view_.lattices = copy.lattices_.view();
  return copy.host_csr();
}

std::int64_t LatticeHalfCds::bytes() const {
  std::int64_t const of_others = shared_ == nullptr ? 0
                                                    : shared_->ghosts.bytes() + shared_->added_single.bytes() +
                                                          shared_->added.bytes() + shared_->added_extended.bytes();
  return entries_.bytes() + lattices_.bytes() + of_others;
}

double LatticeHalfCds::padding_ratio() const {
  // A lattice couples 3 m - 2 pairs of places along each axis; half of them are stored, and the main diagonal.
  auto const m = static_cast<double>(view_.lattices.m), pairs = 3 * m - 2;
  return half_stencil::diagonals * m * m * m / (0.5 * (pairs * pairs * pairs + m * m * m));
}

void LatticeHalfCds::diagonal(float* d) const {
  Array<double> wide(context(), n_rows());
  diagonal(wide.data());
  kernels_for<ConversionKernels>(context()).round(context(), n_rows(), wide.data(), d);
}

void LatticeHalfCds::diagonal(double* d) const {
  kernels_.diagonal(context(), view_, d, nullptr);
  if (shared_ != nullptr)
    shared_->places->diagonal.add_to<double>(d);
}

void LatticeHalfCds::diagonal(Pointer<DoubleDouble> d) const {
  kernels_.diagonal(context(), view_, d.hi, d.lo);
  if (shared_ != nullptr)
    shared_->places->diagonal.add_to<DoubleDouble>(d);
}

bool LatticeHalfCds::residual(double const* x, double const* x_low, double const* b, double* r) const {
  if (precision() == MatrixPrecision::single)
    return false;
  auto const& kernels = kernels_for<CheckKernels>(context());
  if (shared_ != nullptr) {
    Halo<DoubleDouble>& halo = shared_->sums.in<DoubleDouble>();
    kernels.products_at(context(), view_, shared_->ghosts.size(), shared_->ghosts.data(), x, x_low, halo.outgoing());
    halo.start();
    halo.set(shared_->added_extended.data());
  }
  kernels.residual(context(), view_, x, x_low, b, r);
  return true;
}

std::unique_ptr<Matrix> LatticeHalfCds::copied_to(Context& target) const {
  if (shared_ != nullptr)
    throw std::logic_error("the matrix of a rank's lattices stays where it was made");
  return std::unique_ptr<Matrix>(new LatticeHalfCds(target, lattices_.copy_to(target), entries_.copy_to(target)));
}

CsrMatrix LatticeHalfCds::host_csr() const {
  if (shared_ != nullptr)
    throw std::logic_error("rows of lattices that several ranks share are sums of their parts");
  LatticeView const& lattices = view_.lattices;
  auto const row_of = [&](std::int64_t row, auto& entries, void const*) {
    for_nodes_of(lattices, row, [&](std::int64_t lattice, std::int32_t i, std::int32_t j, std::int32_t k) {
      for_couplings(view_, lattice, i, j, k, [&](std::int64_t place, std::int32_t i2, std::int32_t j2, std::int32_t k2) {
        double const value = entries_.value(place);
        auto const column = static_cast<std::int32_t>(lattices.unknown(lattice, i2, j2, k2));
        if (is_stored(value))
          entries.push_back({column, value});
      });
    });
  };
  return csr_by_rows<DoubleDouble, std::monostate>(n_rows(), n_rows(), row_of);
}

}  // namespace poisson
