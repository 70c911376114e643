#include "gpu/formats/lattices_of_rank.hpp"

#include "gpu/core/csr_entries.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/conversion.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

namespace poisson {

LatticesOfRank::LatticesOfRank(std::unique_ptr<LatticeHalfCds> lattices, std::int64_t n_rows, std::unique_ptr<Matrix> added,
                               AddedDiagonal added_diagonal)
    : Matrix(lattices->context()),
      lattices_(std::move(lattices)),
      added_(std::move(added)),
      added_diagonal_(std::move(added_diagonal)),
      kernels_(kernels_for<LatticeHalfCdsKernels>(context())) {
  lattices_->keep_rows(n_rows, true);
  if (precision() == MatrixPrecision::single)
    sums_single_ = Array<float>(context(), added_->n_rows());
  else
    sums_ = Array<double>(context(), added_->n_rows());
}

LatticeHalfCdsView LatticesOfRank::view_for(float const* x) const {
  LatticeHalfCdsView view = lattices_->view();
  added_->product(1.0F, x, 0.0F, sums_single_.data());
  view.added_single = sums_single_.data();
  return view;
}
LatticeHalfCdsView LatticesOfRank::view_for(double const* x) const {
  LatticeHalfCdsView view = lattices_->view();
  added_->product(1.0, x, 0.0, sums_.data());
  view.added = sums_.data();
  return view;
}

void LatticesOfRank::product(float alpha, float const* x, float beta, float* y) const {
  kernels_.product(context(), view_for(x), alpha, x, beta, y);
}
void LatticesOfRank::product(double alpha, double const* x, double beta, double* y) const {
  kernels_.product(context(), view_for(x), alpha, x, beta, y);
}
void LatticesOfRank::product(DoubleDouble, ConstPointer<DoubleDouble>, DoubleDouble, Pointer<DoubleDouble>) const {
  throw std::logic_error("levels of multigrid have no products in double-double");
}
void LatticesOfRank::product_dot(float const* x, float* y, float* dot, std::int32_t const* stop) const {
  kernels_.product_dot(context(), view_for(x), x, y, dot, stop);
}
void LatticesOfRank::product_dot(double const* x, double* y, double* dot, std::int32_t const* stop) const {
  kernels_.product_dot(context(), view_for(x), x, y, dot, stop);
}
void LatticesOfRank::product_dot(ConstPointer<DoubleDouble>, Pointer<DoubleDouble>, DoubleDouble*, std::int32_t const*) const {
  throw std::logic_error("levels of multigrid have no products in double-double");
}

void LatticesOfRank::diagonal(float* d) const {
  Array<double> wide(context(), n_rows());
  diagonal(wide.data());
  kernels_for<ConversionKernels>(context()).round(context(), n_rows(), wide.data(), d);
}
void LatticesOfRank::diagonal(double* d) const {
  lattices_->diagonal(d);
  added_diagonal_.add_to<double>(d);
}
void LatticesOfRank::diagonal(Pointer<DoubleDouble> d) const {
  lattices_->diagonal(d);
  added_diagonal_.add_to<DoubleDouble>(d);
}

bool LatticesOfRank::smooth(SmoothingStep<float> const& step, float const* x, std::int32_t const* stop) const {
  kernels_.smooth(context(), view_for(x), step, x, stop);
  return true;
}
bool LatticesOfRank::smooth(SmoothingStep<double> const& step, double const* x, std::int32_t const* stop) const {
  kernels_.smooth(context(), view_for(x), step, x, stop);
  return true;
}
bool LatticesOfRank::subtract_product(float const* b, float const* x, float* r, std::int32_t const* stop) const {
  kernels_.subtract_product(context(), view_for(x), b, x, r, stop);
  return true;
}
bool LatticesOfRank::subtract_product(double const* b, double const* x, double* r, std::int32_t const* stop) const {
  kernels_.subtract_product(context(), view_for(x), b, x, r, stop);
  return true;
}

std::unique_ptr<Matrix> LatticesOfRank::copied_to(Context& target) const {
  auto lattices = lattices_->copy_to(target);
  return std::make_unique<LatticesOfRank>(std::unique_ptr<LatticeHalfCds>(static_cast<LatticeHalfCds*>(lattices.release())),
                                          n_rows(), added_->copy_to(target), added_diagonal_.copy_to(target));
}

CsrMatrix LatticesOfRank::host_csr() const {
  CsrMatrix const local = lattices_->to_csr(), added = added_->to_csr();
  std::vector<MatrixEntry> entries;
  entries.reserve(static_cast<std::size_t>(local.nnz() + added.nnz()));
  auto const take = [&](CsrMatrix const& from, std::int64_t first_row) {
    for (std::int64_t row = 0; row < from.n_rows; ++row)
      for (auto e = static_cast<std::size_t>(from.row_ptr[static_cast<std::size_t>(row)]);
           e < static_cast<std::size_t>(from.row_ptr[static_cast<std::size_t>(row) + 1]); ++e)
        entries.push_back({first_row + row, from.columns[e], from.values[e]});
  };
  take(local, 0);
  take(added, n_rows() - added.n_rows);
  return csr_of_entries(n_rows(), n_columns(), entries);
}

}  // namespace poisson
