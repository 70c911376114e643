#include "gpu/preconditioners/direct.hpp"

#include "gpu/core/error.hpp"
#include "gpu/core/memory.hpp"
#include "gpu/core/number_text.hpp"
#include "gpu/kernels/cpu/sparse_lu.hpp"

#include <cstddef>
#include <type_traits>
#include <vector>

namespace poisson {

namespace {

/// What `only_if_cheap` allows: about two seconds of a core, and bytes.
constexpr double cheap_operations = 1e10, cheap_bytes = 1e9;

template <class T>
class Direct final : public Preconditioner<T> {
public:
  Direct(SparseLu& factors, std::int64_t n) : factors_(factors), n_(n), r_(size()), z_(size()) {}

  void apply(ConstPointer<T> r, Pointer<T> z, std::int32_t const* stop) override {
    if (*stop != 0)
      return;
    if constexpr (std::is_same_v<T, double>) {
      factors_.solve(r, z);
    } else {
      for (std::int64_t i = 0; i < n_; ++i)
        r_[static_cast<std::size_t>(i)] = r.hi[i];
      factors_.solve(r_.data(), z_.data());
      for (std::int64_t i = 0; i < n_; ++i) {
        z.hi[i] = z_[static_cast<std::size_t>(i)];
        z.lo[i] = 0;
      }
    }
  }
  /// The factors are larger than the matrix, and how large is known to UMFPACK only; at least the vectors count.
  [[nodiscard]] std::int64_t bytes_per_apply() const override { return n_ * std::int64_t{2 * sizeof(T)}; }

private:
  [[nodiscard]] std::size_t size() const { return std::is_same_v<T, double> ? 0 : static_cast<std::size_t>(n_); }
  SparseLu& factors_;
  std::int64_t n_;
  std::vector<double> r_, z_;
};

class DirectSetup final : public PreconditionerSetup {
public:
  DirectSetup(MultiPrecisionOperator const& a, PreconditionerOptions const& options) : n_(a.n_rows()) {
    if (options.rows_of_rank) {
      failure_ = "direct factorises on one rank; use another preconditioner, or one rank";
      return;
    }
    std::shared_ptr<CsrMatrix const> const matrix = options.csr ? options.csr() : nullptr;
    if (matrix == nullptr)
      throw InputError("the preconditioner direct is made from the entries of the matrix, and this operator stores none; use "
                       "jacobi, or a format "
                       "that stores them");
    if (a.context().backend() != Backend::cpu) {
      failure_ = "direct factorises on the host; use the backend cpu";
      return;
    }
    SparseLuFunctions const* library = nullptr;
    try {
      library = &sparse_lu();
    } catch (EnvironmentError const& error) {
      if (!options.only_if_cheap)
        throw;
      failure_ = error.what();
      return;
    }
    if (options.constant_null_space) {
      CsrMatrix held = *matrix;
      for (std::int64_t e = held.row_ptr[0]; e < held.row_ptr[1]; ++e)
        if (held.columns[static_cast<std::size_t>(e)] == 0)
          held.values[static_cast<std::size_t>(e)] *= 2;
      factors_ = library->analyse(held);
    } else {
      factors_ = library->analyse(*matrix);
    }
    if (options.only_if_cheap && (factors_->expected_operations() > cheap_operations || factors_->expected_bytes() > cheap_bytes)) {
      failure_ = "a direct solve was predicted to take " + number(factors_->expected_operations()) + " operations and " +
                 number(factors_->expected_bytes()) + " bytes";
      return;
    }
    require_memory(a.context(), static_cast<std::int64_t>(factors_->expected_bytes()), "the factors of a direct solve",
                   "use another preconditioner");
    if (std::string const reason = factors_->factorize(); !reason.empty())
      failure_ = "direct: " + reason;
  }

  [[nodiscard]] std::unique_ptr<Preconditioner<double>> applied_in(double) const override {
    return std::make_unique<Direct<double>>(*factors_, n_);
  }
  [[nodiscard]] std::unique_ptr<Preconditioner<DoubleDouble>> applied_in(DoubleDouble) const override {
    return std::make_unique<Direct<DoubleDouble>>(*factors_, n_);
  }

private:
  std::int64_t n_;
  std::unique_ptr<SparseLu> factors_;
};

}  // namespace

std::unique_ptr<PreconditionerSetup> make_direct(MultiPrecisionOperator const& a, PreconditionerOptions const& options) {
  return std::make_unique<DirectSetup>(a, options);
}

}  // namespace poisson
