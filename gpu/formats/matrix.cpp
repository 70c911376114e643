#include "gpu/formats/matrix.hpp"
#include "gpu/formats/csr.hpp"
#include "gpu/kernels/backends.hpp"

#include <chrono>

namespace poisson {

std::unique_ptr<Csr> Matrix::as_csr() const {
  return nullptr;
}

std::unique_ptr<Matrix> Matrix::copy_to(Context& target) const {
  auto const start = std::chrono::steady_clock::now();
  auto copy = copied_to(target);
  target.synchronize();
  if (context_->backend() != Backend::cpu || target.backend() != Backend::cpu)
    copy->transfer_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  copy->convert_seconds = convert_seconds;
  copy->row_not_finite = row_not_finite;
  copy->asymmetry = asymmetry;
  return copy;
}

CsrMatrix Matrix::to_csr() const {
  if (context_->backend() == Backend::cpu)
    return host_csr();
  auto const host = make_context(Backend::cpu);
  return copy_to(*host)->host_csr();
}

}  // namespace poisson
