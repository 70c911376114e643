#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/csr_matrix.hpp"
#include "gpu/formats/csr.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/rim.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace poisson {

/// What a matrix adds to the diagonal entries of another one, in some rows.
class AddedDiagonal {
public:
  AddedDiagonal() = default;
  /// No row is named twice.
  AddedDiagonal(Context& context, std::vector<std::int32_t> const& rows, std::vector<double> const& values)
      : rows_(context, std::span<std::int32_t const>(rows)) {
    auto column = std::make_shared<CsrMatrix>();
    column->n_rows = std::ssize(rows);
    column->n_columns = 1;
    for (std::size_t i = 0; i <= rows.size(); ++i)
      column->row_ptr.push_back(static_cast<std::int64_t>(i));
    column->columns.assign(rows.size(), 0);
    column->values.assign(values.begin(), values.end());
    values_ = std::make_unique<Csr>(std::move(column), context, MatrixPrecision::double_);
  }
  /// T: double or DoubleDouble.
  template <class T>
  void add_to(Pointer<T> d) const {
    if (rows_.size() == 0)
      return;
    Context& context = values_->context();
    Array<T> const one(context, std::span<T const>(std::array<T, 1>{T(1)}));
    kernels_for<RimKernels<T>>(context).add(context, values_->view(), rows_.data(), T(1), one.data(), d);
  }

  [[nodiscard]] AddedDiagonal copy_to(Context& target) const {
    AddedDiagonal copy;
    if (rows_.size() == 0)
      return copy;
    copy.rows_ = rows_.copy_to(target);
    copy.values_.reset(static_cast<Csr*>(values_->copy_to(target).release()));
    return copy;
  }

private:
  Array<std::int32_t> rows_;
  std::unique_ptr<Csr> values_;
};

}  // namespace poisson
