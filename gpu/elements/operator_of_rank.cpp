#include "gpu/elements/operator_of_rank.hpp"

#include "gpu/core/csr_entries.hpp"
#include "gpu/core/row_map.hpp"
#include "gpu/formats/foreign_rows.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/rim.hpp"

#include <functional>
#include <stdexcept>
#include <utility>

namespace poisson {

OperatorOfRank::OperatorOfRank(std::unique_ptr<LatticeOperator> lattices, std::shared_ptr<RankLattices const> shared,
                               std::shared_ptr<HostVector<std::uint8_t> const> fixed, Communicator& ranks)
    : Matrix(lattices->context()),
      lattices_(std::move(lattices)),
      shared_(std::move(shared)),
      fixed_(std::move(fixed)),
      ranks_(ranks) {
  HaloPlaces const places(shared_->n_rows, shared_->neighbors);
  lattices_->keep_rows(shared_->n_rows);
  // A rank without lattices does not know the precision that the others have.
  bool const any_precision = shared_->layout.n_lattices == 0, single = precision() == MatrixPrecision::single;
  if (single || any_precision)
    sums_in_single_ = std::make_unique<Halo<float>>(context(), ranks_, places, HaloDirection::to_owners);
  if (!single || any_precision) {
    sums_in_double_ = std::make_unique<Halo<double>>(context(), ranks_, places, HaloDirection::to_owners);
    extended_sums_ = std::make_unique<Halo<DoubleDouble>>(context(), ranks_, places, HaloDirection::to_owners);
  }
}

std::unique_ptr<OperatorOfRank> OperatorOfRank::in_single_on_rank() const {
  std::unique_ptr<Matrix> rounded = lattices_->in_single();
  return std::make_unique<OperatorOfRank>(std::unique_ptr<LatticeOperator>(static_cast<LatticeOperator*>(rounded.release())),
                                          shared_, fixed_, ranks_);
}

CsrMatrix OperatorOfRank::own_rows() const {
  auto const host = make_cpu_context();
  std::unique_ptr<Matrix> const copy = lattices_->copy_to(*host);
  static_cast<LatticeOperator&>(*copy).keep_rows(n_columns());
  CsrMatrix const here = copy->to_csr();  // what lattices here contribute, to rows of others too
  RowMap const rows(ranks_, n_rows(), shared_->neighbors);
  struct Entry {
    std::int64_t row, column;
    double value;
  };
  RankLists<Entry> to;
  std::vector<MatrixEntry> entries;
  for (std::int64_t row = 0; row < here.n_rows; ++row)
    for (auto e = static_cast<std::size_t>(here.row_ptr[static_cast<std::size_t>(row)]);
         e < static_cast<std::size_t>(here.row_ptr[static_cast<std::size_t>(row) + 1]); ++e)
      if (row < n_rows())
        entries.push_back({row, here.columns[e], here.values[e]});
      else if (row != here.columns[e] || !is_fixed(row))
        to[rows.owner(rows.number_at(row))].push_back({rows.number_at(row), rows.number_at(here.columns[e]), here.values[e]});
  GhostFinder const ghost_of(rows.ghosts);
  for (Entry const& entry : swap_lists(ranks_, to).joined())
    entries.push_back({entry.row - rows.first[rows.me],
                       static_cast<std::int32_t>(rows.is_own(entry.column) ? entry.column - rows.first[rows.me]
                                                                           : n_rows() + ghost_of(entry.column)),
                       entry.value});
  return csr_of_entries(n_rows(), n_columns(), entries);
}

bool OperatorOfRank::residual(double const* x, double const* x_low, double const* b, double* r) const {
  if (!lattices_->residual(x, x_low, b, r))
    return false;
  // On rims the sums of all ranks, before they are rounded.
  std::int64_t const n = n_rows(), n_inner = lattices_->n_inner(), n_rim = n - n_inner;
  Array<DoubleDouble> sums_here(context(), n_rim);
  lattices_->sums_on_rims(n_inner, n_rim, sums_here.data());
  Vector<DoubleDouble> sums(context(), n);
  sums.set_zero();
  kernels_for<RimKernels<DoubleDouble>>(context()).put(context(), n_rim, nullptr, sums_here.data(), sums.data() + n_inner);
  Halo<DoubleDouble>& sums_of_ranks = *extended_sums_;
  lattices_->sums_on_rims(n, n_columns() - n, sums_of_ranks.outgoing());
  sums_of_ranks.start();
  sums_of_ranks.add(1, sums.data());
  HostVector<double> high(static_cast<std::size_t>(n_rim)), low(high.size()), b_here(high.size()), r_here(high.size());
  auto const download = [&](HostVector<double>& to, double const* from) {
    context().download(to.data(), from + n_inner, 8 * n_rim);
  };
  download(high, sums.data().hi);
  download(low, sums.data().lo);
  download(b_here, b);
  download(r_here, r);
  for (std::size_t i = 0; i < high.size(); ++i)
    if (!is_fixed(n_inner + static_cast<std::int64_t>(i)))
      r_here[i] = (DoubleDouble(b_here[i]) - DoubleDouble{high[i], low[i]}).hi;
  context().upload(r + n_inner, r_here.data(), 8 * n_rim);
  return true;
}

template <>
Halo<float>& OperatorOfRank::sums() const {
  return *sums_in_single_;
}
template <>
Halo<double>& OperatorOfRank::sums() const {
  return *sums_in_double_;
}
template <>
Halo<DoubleDouble>& OperatorOfRank::sums() const {
  return *extended_sums_;
}

/// Sums go to other ranks while own rows are added up.
template <class T>
void OperatorOfRank::multiply(T alpha, ConstPointer<T> x, T beta, Pointer<T> y, T* dot, std::int32_t const* stop) const {
  Halo<T>& sums_of_ranks = sums<T>();
  bool sent = false;
  std::function<void()> const send = [&] {
    lattices_->sums_on_rims(n_rows(), n_columns() - n_rows(), sums_of_ranks.outgoing());
    sums_of_ranks.start();
    sent = true;
  };
  lattices_->multiply<T>(send, alpha, x, beta, y, dot, stop);
  if (!sent)  // the host knew *stop: others must not wait in vain
    send();
  sums_of_ranks.add(alpha, y);
}

void OperatorOfRank::product(float alpha, float const* x, float beta, float* y) const {
  multiply<float>(alpha, x, beta, y, nullptr, nullptr);
}
void OperatorOfRank::product(double alpha, double const* x, double beta, double* y) const {
  multiply<double>(alpha, x, beta, y, nullptr, nullptr);
}
void OperatorOfRank::product(DoubleDouble alpha, ConstPointer<DoubleDouble> x, DoubleDouble beta, Pointer<DoubleDouble> y) const {
  multiply<DoubleDouble>(alpha, x, beta, y, nullptr, nullptr);
}
void OperatorOfRank::product_dot(float const* x, float* y, float* dot, std::int32_t const* stop) const {
  multiply<float>(1, x, 0, y, dot, stop);
}
void OperatorOfRank::product_dot(double const* x, double* y, double* dot, std::int32_t const* stop) const {
  multiply<double>(1, x, 0, y, dot, stop);
}
void OperatorOfRank::product_dot(ConstPointer<DoubleDouble> x, Pointer<DoubleDouble> y, DoubleDouble* dot,
                                 std::int32_t const* stop) const {
  multiply<DoubleDouble>(1, x, 0, y, dot, stop);
}

std::unique_ptr<Matrix> OperatorOfRank::copied_to(Context&) const {
  throw std::logic_error("the operator of a rank stays where it was made");
}
CsrMatrix OperatorOfRank::host_csr() const {
  throw std::logic_error("rows of an operator that several ranks share are sums of their parts");
}

}  // namespace poisson
