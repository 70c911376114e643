#include "gpu/formats/rank_matrix.hpp"

#include "gpu/core/csr_entries.hpp"
#include "gpu/core/row_map.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/rim.hpp"
#include "gpu/kernels/vectors.hpp"

#include <cassert>
#include <cmath>

namespace poisson {

namespace {

HaloPlaces places_of(std::int64_t n_rows, std::vector<RankNeighbor> const& neighbors,
                     std::vector<std::int32_t> const& own_columns) {
  HaloPlaces places(n_rows, neighbors);
  places.behind = own_columns;
  return places;
}

StoredRim stored(SplitRows const& rows, Matrix const& local) {
  Context& context = local.context();
  StoredRim rim{Array<std::int32_t>(context, std::span<std::int32_t const>(rows.rim)),
                std::make_unique<Csr>(rows.couplings, context, local.precision())};
  rim.own_columns = rows.own_columns;
  for_entries(*rows.couplings, [&](std::int64_t i, std::int32_t, double value) {
    if (rim.row_not_finite < 0 && !std::isfinite(value))
      rim.row_not_finite = rows.rim[i];
  });
  return rim;
}

SplitRows no_couplings(SharedLattices const& lattices) {
  auto couplings = std::make_shared<CsrMatrix>();
  couplings->n_columns = lattices.layout.n_unknowns - lattices.n_rows;
  couplings->row_ptr.push_back(0);
  SplitRows result;
  result.couplings = std::move(couplings);
  return result;
}

}  // namespace

RankMatrix::RankMatrix(std::unique_ptr<Matrix>&& local, StoredRim rim, std::vector<RankNeighbor> const& neighbors,
                       Communicator& ranks, std::shared_ptr<SharedLattices const> lattices)
    : local_(std::move(local)),
      ranks_(ranks),
      neighbors_(neighbors),
      lattices_(std::move(lattices)),
      rim_(std::move(rim)),
      halo_(local_->context(), ranks, places_of(local_->n_rows(), neighbors, rim_.own_columns)),
      extended_halo_(local_->context(), ranks, places_of(local_->n_rows(), neighbors, rim_.own_columns)),
      row_not_finite_(local_->first_row_not_finite()) {
  assert(local_->precision() != MatrixPrecision::single);
  if (row_not_finite_ < 0)
    row_not_finite_ = rim_.row_not_finite;
}

RankMatrix::RankMatrix(std::unique_ptr<Matrix> local, StoredRim rim, std::vector<RankNeighbor> const& neighbors,
                       Communicator& ranks)
    : RankMatrix(std::move(local), std::move(rim), neighbors, ranks, nullptr) {}

RankMatrix::RankMatrix(std::unique_ptr<Matrix> local, std::shared_ptr<SharedLattices const> lattices, Communicator& ranks)
    : RankMatrix(std::move(local), stored(no_couplings(*lattices), *local), lattices->neighbors, ranks, lattices) {}

RankMatrix::RankMatrix(std::unique_ptr<Matrix> local, SplitRows const& rows, std::vector<RankNeighbor> const& neighbors,
                       Communicator& ranks)
    : RankMatrix(std::move(local), stored(rows, *local), neighbors, ranks, nullptr) {
  assert(rows.local == nullptr || local_->n_rows() == rows.local->n_rows);
  if (own_columns().empty())
    return;
  std::vector<std::int32_t> on_diagonal;
  std::vector<double> values;
  for_entries(*rows.couplings, [&](std::int64_t i, std::int32_t column, double value) {
    if (std::int64_t const own = column - n_ghosts(); own >= 0 && own_columns()[own] == rows.rim[i]) {
      on_diagonal.push_back(rows.rim[i]);
      values.push_back(value);
    }
  });
  added_diagonal_ = AddedDiagonal(local_->context(), on_diagonal, values);
}

CsrMatrix RankMatrix::rows_of_lattices() const {
  RowMap const rows(ranks_, n_rows(), neighbors_);
  GhostFinder const ghost_of(rows.ghosts);
  std::vector<MatrixEntry> entries;
  for (NumberedEntry const& entry : entries_of_sum(ranks_, rows, local_->rows_of_cells()))
    entries.push_back({entry.row,
                       static_cast<std::int32_t>(rows.is_own(entry.column) ? entry.column - rows.first[rows.me]
                                                                           : n_rows() + ghost_of(entry.column)),
                       entry.value});
  return csr_of_entries(n_rows(), rows.n_here(), entries);
}

HostVector<std::int32_t> RankMatrix::rim() const {
  HostVector<std::int32_t> rows(static_cast<std::size_t>(rim_.rows.size()));
  rim_.rows.download(std::span<std::int32_t>(rows));
  return rows;
}

template <>
Halo<double>& RankMatrix::halo() const {
  return halo_;
}
template <>
Halo<DoubleDouble>& RankMatrix::halo() const {
  return extended_halo_;
}

template <>
Vector<double>& RankMatrix::whole_x() const {
  return whole_x_;
}
template <>
Vector<DoubleDouble>& RankMatrix::whole_x() const {
  return extended_whole_x_;
}

Array<double> RankMatrix::with_columns(Array<double> const& own) const {
  Array<double> all = poisson::with_ghosts(context(), ranks_, neighbors_, own);
  if (own_columns().empty())
    return all;
  std::int64_t const n = std::ssize(own_columns());
  Array<double> result(context(), all.size() + n);
  context().copy(result.data(), all.data(), all.bytes());
  Array<std::int32_t> const places(context(), std::span<std::int32_t const>(own_columns()));
  kernels_for<RimKernels<double>>(context()).pack(context(), n, places.data(), own.data(), result.data() + all.size());
  return result;
}

template <class T>
ConstPointer<T> RankMatrix::with_ghosts(ConstPointer<T> x) const {
  halo<T>().start(x);
  Vector<T>& whole = whole_x<T>();
  if (whole.size() == 0)
    whole = Vector<T>(context(), local_->n_columns());
  kernels_for<VectorKernels<T>>(context()).copy(context(), n_rows(), x, whole.data());
  halo<T>().put(whole.data());
  return whole.data();
}

template <class T>
void RankMatrix::multiply(T alpha, ConstPointer<T> x, T beta, Pointer<T> y) const {
  if (lattices_ != nullptr)
    return local_->product(alpha, with_ghosts<T>(x), beta, y);
  halo<T>().start(x);
  if (n_rows() > 0)
    local_->product(alpha, x, beta, y);
  T const* const ghosts = halo<T>().finish();
  kernels_for<RimKernels<T>>(context()).add(context(), stored_couplings().view(), rim_.rows.data(), alpha, ghosts, y);
}

template <class T>
void RankMatrix::multiply_dot(ConstPointer<T> x, Pointer<T> y, T* dot, std::int32_t const* stop) const {
  // Messages are exchanged also when *stop is set: on a device the host does not know it, and ranks must not wait for each other in
  // vain.
  if (lattices_ != nullptr)
    return local_->product_dot(with_ghosts<T>(x), y, dot, stop);
  halo<T>().start(x);
  if (n_rows() > 0)
    local_->product_dot(x, y, dot, stop);
  else
    context().set_zero(dot, sizeof(T));
  T const* const ghosts = halo<T>().finish();
  kernels_for<RimKernels<T>>(context()).add_dot(context(), stored_couplings().view(), rim_.rows.data(), ghosts, x, y, dot, stop);
}

void RankMatrix::product(double alpha, double const* x, double beta, double* y) const {
  multiply<double>(alpha, x, beta, y);
}
void RankMatrix::product(DoubleDouble alpha, ConstPointer<DoubleDouble> x, DoubleDouble beta, Pointer<DoubleDouble> y) const {
  multiply<DoubleDouble>(alpha, x, beta, y);
}
void RankMatrix::product_dot(double const* x, double* y, double* dot, std::int32_t const* stop) const {
  multiply_dot<double>(x, y, dot, stop);
}
void RankMatrix::product_dot(ConstPointer<DoubleDouble> x, Pointer<DoubleDouble> y, DoubleDouble* dot,
                             std::int32_t const* stop) const {
  multiply_dot<DoubleDouble>(x, y, dot, stop);
}
void RankMatrix::product_dots(std::span<ProductColumn<double> const> columns) const {
  if (n_rows() == 0 || !neighbors_.empty() || lattices_ != nullptr)
    return MultiPrecisionOperator::product_dots(columns);
  local_->product_dots(columns);
  for (ProductColumn<double> const& column : columns) {
    halo_.start(column.x);
    kernels_for<RimKernels<double>>(context()).add_dot(context(), stored_couplings().view(), rim_.rows.data(), halo_.finish(),
                                                       column.x, column.y, column.dot, column.stop);
  }
}
template <class T>
void RankMatrix::add_up_diagonal(Pointer<T> d) const {
  if (n_rows() == 0)
    return;
  static_cast<LinearOperator<T> const&>(*local_).diagonal(d);
  added_diagonal_.add_to<T>(d);
}
template void RankMatrix::add_up_diagonal<double>(double*) const;
template void RankMatrix::add_up_diagonal<DoubleDouble>(Pointer<DoubleDouble>) const;

}  // namespace poisson
