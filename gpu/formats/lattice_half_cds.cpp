#include "gpu/formats/lattice_half_cds.hpp"

#include "gpu/core/csr_entries.hpp"
#include "gpu/core/memory.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/check.hpp"
#include "gpu/kernels/conversion.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <stdexcept>
#include <utility>
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

void LatticeHalfCds::keep_rows(std::int64_t n, bool read_others) {
  lattices_.keep_rows(n, read_others);
  view_.lattices = lattices_.view();
}

void LatticeHalfCds::add_rows(std::int64_t n, std::shared_ptr<CsrMatrix const> const& rows) {
  keep_rows(n, true);
  std::int64_t const n_inner = n - rows->n_rows;
  std::vector<std::int32_t> on_diagonal;
  std::vector<double> values;
  for (std::int64_t i = 0; i < rows->n_rows; ++i)
    for (auto e = static_cast<std::size_t>(rows->row_ptr[static_cast<std::size_t>(i)]);
         e < static_cast<std::size_t>(rows->row_ptr[static_cast<std::size_t>(i) + 1]); ++e)
      if (rows->columns[e] == n_inner + i) {
        on_diagonal.push_back(rows->columns[e]);
        values.push_back(rows->values[e]);
      }
  FormatOptions options;
  options.precision = precision();
  std::unique_ptr<Matrix> stored = Csr::convert(Csr(rows, context()), options);
  set_added(std::unique_ptr<Csr>(static_cast<Csr*>(stored.release())), AddedDiagonal(context(), on_diagonal, values));
}

void LatticeHalfCds::set_added(std::unique_ptr<Csr> rows, AddedDiagonal diagonal) {
  added_ = std::move(rows);
  added_diagonal_ = std::move(diagonal);
  if (precision() == MatrixPrecision::single)
    sums_single_ = Array<float>(context(), added_->n_rows());
  else
    sums_ = Array<double>(context(), added_->n_rows());
  view_.added_single = sums_single_.data();
  view_.added = sums_.data();
}

void LatticeHalfCds::fill_added(float const* x) const {
  if (sums_single_.size() > 0)
    added_->product(1.0F, x, 0.0F, sums_single_.data());
}
void LatticeHalfCds::fill_added(double const* x) const {
  if (sums_.size() > 0)
    added_->product(1.0, x, 0.0, sums_.data());
}
void LatticeHalfCds::fill_added(ConstPointer<DoubleDouble>) const {
  if (added_ != nullptr)
    throw std::logic_error("lattices with rows of other ranks have no products in double-double");
}

std::unique_ptr<Matrix> LatticeHalfCds::in_single() const {
  if (precision() != MatrixPrecision::double_ || added_ != nullptr)
    return nullptr;
  return std::unique_ptr<Matrix>(new LatticeHalfCds(context(), lattices_.copy_to(context()), entries_.in_single(context())));
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
  added_diagonal_.add_to<double>(d);
}

void LatticeHalfCds::diagonal(Pointer<DoubleDouble> d) const {
  kernels_.diagonal(context(), view_, d.hi, d.lo);
  added_diagonal_.add_to<DoubleDouble>(d);
}

bool LatticeHalfCds::residual(double const* x, double const* x_low, double const* b, double* r) const {
  if (precision() == MatrixPrecision::single || added_ != nullptr)
    return false;
  kernels_for<CheckKernels>(context()).residual(context(), view_, x, x_low, b, r);
  return true;
}

std::unique_ptr<Matrix> LatticeHalfCds::copied_to(Context& target) const {
  std::unique_ptr<LatticeHalfCds> copy(new LatticeHalfCds(target, lattices_.copy_to(target), entries_.copy_to(target)));
  if (added_ != nullptr)
    copy->set_added(std::unique_ptr<Csr>(static_cast<Csr*>(added_->copy_to(target).release())), added_diagonal_.copy_to(target));
  return copy;
}

CsrMatrix LatticeHalfCds::host_csr() const {
  LatticeView const& lattices = view_.lattices;
  struct Entry {
    std::int32_t column;
    DoubleDouble value;
  };
  // The row's entries by ascending column.
  auto const row_of = [&](std::int64_t row, std::vector<Entry>& entries) {
    entries.clear();
    for_nodes_of(lattices, row, [&](std::int64_t lattice, std::int32_t i, std::int32_t j, std::int32_t k) {
      for_couplings(view_, lattice, i, j, k, [&](std::int64_t place, std::int32_t i2, std::int32_t j2, std::int32_t k2) {
        double const value = entries_.value(place);
        auto const column = static_cast<std::int32_t>(lattices.unknown(lattice, i2, j2, k2));
        if (is_stored(value) && column < lattices.end_of_read)
          entries.push_back({column, value});
      });
    });
    std::stable_sort(entries.begin(), entries.end(), [](Entry const& a, Entry const& b) { return a.column < b.column; });
    std::size_t count = 0;
    for (Entry const& entry : entries)
      if (count > 0 && entries[count - 1].column == entry.column)
        entries[count - 1].value = entries[count - 1].value + entry.value;
      else
        entries[count++] = entry;
    entries.resize(count);
  };
  CsrMatrix result;
  result.n_rows = result.n_columns = n_rows();
  result.row_ptr.resize(static_cast<std::size_t>(n_rows()) + 1);
  result.row_ptr[0] = 0;
#pragma omp parallel
  {
    std::vector<Entry> entries;
#pragma omp for schedule(static)
    for (std::int64_t row = 0; row < result.n_rows; ++row) {
      row_of(row, entries);
      result.row_ptr[static_cast<std::size_t>(row) + 1] = std::ssize(entries);
    }
  }
  std::partial_sum(result.row_ptr.begin(), result.row_ptr.end(), result.row_ptr.begin());
  result.columns.resize(static_cast<std::size_t>(result.row_ptr.back()));
  result.values.resize(static_cast<std::size_t>(result.row_ptr.back()));
#pragma omp parallel
  {
    std::vector<Entry> entries;
#pragma omp for schedule(static)
    for (std::int64_t row = 0; row < result.n_rows; ++row) {
      row_of(row, entries);
      auto e = static_cast<std::size_t>(result.row_ptr[static_cast<std::size_t>(row)]);
      for (Entry const& entry : entries) {
        result.columns[e] = entry.column;
        result.values[e++] = entry.value.hi;
      }
    }
  }
  if (added_ == nullptr)
    return result;
  std::vector<MatrixEntry> entries;
  auto const take = [&](CsrMatrix const& from, std::int64_t first_row) {
    for (std::int64_t row = 0; row < from.n_rows; ++row)
      for (auto e = static_cast<std::size_t>(from.row_ptr[static_cast<std::size_t>(row)]);
           e < static_cast<std::size_t>(from.row_ptr[static_cast<std::size_t>(row) + 1]); ++e)
        entries.push_back({first_row + row, from.columns[e], from.values[e]});
  };
  take(result, 0);
  take(added_->to_csr(), n_rows() - added_->n_rows());
  return csr_of_entries(n_rows(), n_columns(), entries);
}

}  // namespace poisson
