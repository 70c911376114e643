#include "gpu/formats/lattice_half_cds.hpp"

#include "gpu/core/csr_entries.hpp"
#include "gpu/core/memory.hpp"
#include "gpu/formats/csr_by_rows.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/check.hpp"
#include "gpu/kernels/conversion.hpp"

#include <cassert>
#include <stdexcept>
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

void LatticeHalfCds::keep_rows(std::int64_t n, bool read_others) {
  lattices_.keep_rows(n, read_others);
  view_.lattices = lattices_.view();
}

void LatticeHalfCds::add_rows(std::int64_t n, std::shared_ptr<CsrMatrix const> const& rows) {
  keep_rows(n, true);
  std::int64_t const n_inner = n - rows->n_rows;
  std::vector<std::int32_t> on_diagonal;
  std::vector<double> values;
  for_entries(*rows, [&](std::int64_t i, std::int32_t column, double value) {
    if (column == n_inner + i) {
      on_diagonal.push_back(column);
      values.push_back(value);
    }
  });
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
  auto const row_of = [&](std::int64_t row, auto& entries, void const*) {
    for_nodes_of(lattices, row, [&](std::int64_t lattice, std::int32_t i, std::int32_t j, std::int32_t k) {
      for_couplings(view_, lattice, i, j, k, [&](std::int64_t place, std::int32_t i2, std::int32_t j2, std::int32_t k2) {
        double const value = entries_.value(place);
        auto const column = static_cast<std::int32_t>(lattices.unknown(lattice, i2, j2, k2));
        if (is_stored(value) && column < lattices.end_of_read)
          entries.push_back({column, value});
      });
    });
  };
  CsrMatrix result = csr_by_rows<DoubleDouble, std::monostate>(n_rows(), n_rows(), row_of);
  if (added_ == nullptr)
    return result;
  std::vector<MatrixEntry> entries;
  auto const take = [&](CsrMatrix const& from, std::int64_t first_row) {
    for_entries(from, [&](std::int64_t row, std::int32_t column, double value) {
      entries.push_back({first_row + row, column, value});
    });
  };
  take(result, 0);
  take(added_->to_csr(), n_rows() - added_->n_rows());
  return csr_of_entries(n_rows(), n_columns(), entries);
}

}  // namespace poisson
