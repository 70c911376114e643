#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/csr_matrix.hpp"
#include "gpu/formats/format.hpp"
#include "gpu/solvers/operator.hpp"

#include <memory>

namespace poisson {

/// A stored matrix: an operator that knows its format and its bytes.
class Matrix : public Operator<double> {
public:
  [[nodiscard]] virtual Format format() const = 0;
  [[nodiscard]] virtual std::int64_t bytes() const = 0;  ///< exactly what is allocated for it on its backend
  [[nodiscard]] virtual double padding_ratio() const = 0;
  /// Seconds that conversion from CSR took on the host, and that moving the result to the device took (0 on the host).
  double convert_seconds = 0;
  double transfer_seconds = 0;
  /// First row of the assembled matrix that holds a NaN or an infinity, or -1: solvers refuse such a matrix.
  std::int64_t row_not_finite = -1;
};

/// Converts on the context's backend. `csr` on the host shares the arrays and copies nothing.
/// Throws InputError (key "matrix.slice_size", "matrix.sigma" or "matrix.threads_per_row") when an option is out of range, whatever
/// the format; InputError (key "matrix.format") when the format refuses the matrix, with the figures and a format that fits;
/// EnvironmentError when device memory does not suffice, naming the bytes needed, the bytes free and a format that would fit.
[[nodiscard]] std::unique_ptr<Matrix> make_matrix(Format format, std::shared_ptr<CsrMatrix const> csr, Context& context,
                                                  FormatOptions const& options = {});

}  // namespace poisson
