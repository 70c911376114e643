#include "gpu/formats/coo.hpp"

#include "gpu/core/error.hpp"
#include "gpu/core/place_text.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/conversion.hpp"

#include <algorithm>
#include <cassert>
#include <string>

namespace poisson {

namespace {

void require_in_range(CooMatrix const& coo) {
  assert(coo.rows.size() == coo.values.size() && coo.columns.size() == coo.values.size());
  std::int64_t first_bad = coo.nnz();
#pragma omp parallel for schedule(static) reduction(min : first_bad)
  for (std::int64_t i = 0; i < coo.nnz(); ++i) {
    std::int64_t const row = coo.rows[static_cast<std::size_t>(i)], column = coo.columns[static_cast<std::size_t>(i)];
    if (row < 0 || row >= coo.n_rows || column < 0 || column >= coo.n_columns)
      first_bad = std::min(first_bad, i);
  }
  if (first_bad < coo.nnz())
    throw InputError("entry " + std::to_string(first_bad + 1) + " is at " +
                     place_text(coo.rows[static_cast<std::size_t>(first_bad)], coo.columns[static_cast<std::size_t>(first_bad)]) +
                     "; the matrix has " + std::to_string(coo.n_rows) + " rows and " + std::to_string(coo.n_columns) + " columns");
}

}  // namespace

CsrMatrix csr_from_coo(CooMatrix const& coo) {
  require_in_range(coo);
  auto const host = make_context(Backend::cpu);
  CsrMatrix result;
  result.n_rows = coo.n_rows;
  result.n_columns = coo.n_columns;
  kernels_for<ConversionKernels>(*host).csr_from_coo(*host, coo, [&](std::int64_t nnz) {
    result.row_ptr.resize(static_cast<std::size_t>(coo.n_rows) + 1);
    result.columns.resize(static_cast<std::size_t>(nnz));
    result.values.resize(static_cast<std::size_t>(nnz));
    return CsrTarget{result.row_ptr.data(), result.columns.data(), result.values.data()};
  });
  return result;
}

std::unique_ptr<Csr> csr_from_coo(CooMatrix const& coo, Context& context) {
  if (context.backend() == Backend::cpu)
    return std::make_unique<Csr>(std::make_shared<CsrMatrix const>(csr_from_coo(coo)), context);
  require_in_range(coo);
  Array<std::int64_t> row_ptr;
  Array<std::int32_t> columns;
  Array<double> values;
  kernels_for<ConversionKernels>(context).csr_from_coo(context, coo, [&](std::int64_t nnz) {
    row_ptr = Array<std::int64_t>(context, coo.n_rows + 1);
    columns = Array<std::int32_t>(context, nnz);
    values = Array<double>(context, nnz);
    return CsrTarget{row_ptr.data(), columns.data(), values.data()};
  });
  return std::make_unique<Csr>(context, coo.n_columns, std::move(row_ptr), std::move(columns), std::move(values));
}

}  // namespace poisson
