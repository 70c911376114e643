#include "gpu/core/error.hpp"
#include "gpu/kernels/cpu/sparse_lu.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <umfpack.h>
#include <vector>

namespace poisson {

namespace {

class Umfpack final : public SparseLu {
public:
  explicit Umfpack(CsrMatrix const& matrix)
      : n_(matrix.n_rows),
        row_ptr_(matrix.row_ptr.begin(), matrix.row_ptr.end()),
        columns_(matrix.columns.begin(), matrix.columns.end()),
        values_(matrix.values.begin(), matrix.values.end()) {
    umfpack_dl_defaults(control_.data());
    control_[UMFPACK_IRSTEP] = 0;  // the solver around it refines
    int const status = static_cast<int>(
        umfpack_dl_symbolic(n_, n_, row_ptr_.data(), columns_.data(), values_.data(), &symbolic_, control_.data(), info_.data()));
    if (status == UMFPACK_ERROR_out_of_memory)
      throw OutOfMemoryError("the analysis of a direct solve does not fit into memory; use another preconditioner");
    analysed_ = status == UMFPACK_OK;
  }
  ~Umfpack() override {
    umfpack_dl_free_symbolic(&symbolic_);
    umfpack_dl_free_numeric(&numeric_);
  }
  Umfpack(Umfpack const&) = delete;
  Umfpack& operator=(Umfpack const&) = delete;

  [[nodiscard]] double expected_bytes() const override {
    return analysed_ ? info_[UMFPACK_PEAK_MEMORY_ESTIMATE] * info_[UMFPACK_SIZE_OF_UNIT] : 0;
  }
  [[nodiscard]] double expected_operations() const override { return analysed_ ? info_[UMFPACK_FLOPS_ESTIMATE] : 0; }

  std::string factorize() override {
    if (!analysed_)
      return "the matrix is singular by its pattern";
    int const status = static_cast<int>(
        umfpack_dl_numeric(row_ptr_.data(), columns_.data(), values_.data(), symbolic_, &numeric_, control_.data(), info_.data()));
    if (status == UMFPACK_ERROR_out_of_memory)
      throw OutOfMemoryError("the factors of a direct solve do not fit into memory; use another preconditioner");
    if (status != UMFPACK_OK || !(info_[UMFPACK_RCOND] > 0))
      return "the matrix is singular";
    std::size_t const n = static_cast<std::size_t>(n_);
    work_.resize(n);
    integers_.resize(n);
    return {};
  }

  void solve(double const* b, double* x) override {
    // Rows of A are columns of what UMFPACK has: it solves with the transpose.
    std::array<double, UMFPACK_INFO> info{};
    umfpack_dl_wsolve(UMFPACK_At, row_ptr_.data(), columns_.data(), values_.data(), x, b, numeric_, control_.data(), info.data(),
                      integers_.data(), work_.data());
  }

private:
  SuiteSparse_long n_;
  bool analysed_ = false;
  std::vector<SuiteSparse_long> row_ptr_, columns_;
  std::vector<double> values_;
  std::array<double, UMFPACK_CONTROL> control_{};
  std::array<double, UMFPACK_INFO> info_{};
  void *symbolic_ = nullptr, *numeric_ = nullptr;
  std::vector<double> work_;
  std::vector<SuiteSparse_long> integers_;
};

std::unique_ptr<SparseLu> analyse(CsrMatrix const& matrix) {
  return std::make_unique<Umfpack>(matrix);
}

}  // namespace

}  // namespace poisson

poisson::SparseLuFunctions const* poisson_umfpack() {
  static constexpr poisson::SparseLuFunctions functions{&poisson::analyse};
  return &functions;
}
