#include "gpu/kernels/bicgstab.hpp"

#include "gpu/core/number_text.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/solvers/krylov.hpp"

namespace poisson {

namespace {

template <class T>
class Bicgstab final : public KrylovMethod<T> {
public:
  explicit Bicgstab(KrylovSystem<T> const& system)
      : system_(system),
        kernels_(kernels_for<BicgstabKernels<T>>(system.context)),
        n_(system.a.n_rows()),
        shadow_(system.context, n_),
        p_(system.context, n_),
        v_(system.context, n_),
        t_(system.context, n_),
        scalars_(system.context, system.ranks) {
    if (system.preconditioner != nullptr) {
      p_tilde_ = Vector<T>(system.context, n_);
      s_tilde_ = Vector<T>(system.context, n_);
    }
    scalars_.host.project = system.project ? 1 : 0;
  }

  void begin(IterationControl const& control, bool fresh) override {
    scalars_.begin(control, fresh);
    if (fresh) {
      p_.set_zero();
      v_.set_zero();
    }
    kernels_.begin(system_.context, scalars_.data(), n_, system_.r, shadow_.data(), fresh, scalars_.history(), scalars_.local());
    scalars_.finish(kernels_, BicgstabPass::begin);
    next_direction();
  }

  void iterate() override {
    Context& context = system_.context;
    Pointer<T> const s = system_.r;  // r is s in the second half
    system_.a.product_dot(p_tilde(), v_.data(), &scalars_.data()->dot, scalars_.stop());
    kernels_.shadow_dot(context, scalars_.data(), n_, shadow_.data(), v_.data(), scalars_.local());
    scalars_.finish(kernels_, BicgstabPass::shadow_dot);
    kernels_.half_step(context, scalars_.data(), n_, v_.data(), s, system_.inverse_diagonal(), s_tilde());
    if (system_.has_general_preconditioner())
      system_.preconditioner->apply(s, s_tilde(), scalars_.stop());
    system_.a.product_dot(s_tilde(), t_.data(), &scalars_.data()->dot, scalars_.stop());
    kernels_.omega_dots(context, scalars_.data(), n_, t_.data(), s, scalars_.local());
    scalars_.finish(kernels_, BicgstabPass::omega_dots);
    kernels_.update(context, scalars_.data(), n_, p_tilde(), s_tilde(), t_.data(), shadow_.data(), system_.x, system_.r,
                    scalars_.history(), scalars_.local());
    scalars_.finish(kernels_, BicgstabPass::update);
    next_direction();
  }

  IterationControl control() override { return scalars_.download().control; }
  void history(std::span<double> recent) override { scalars_.history(recent); }
  // t and s~ are written before they are read, and so is v, unless no iteration follows.
  void serialize(StateStream& state) override {
    state.vector(system_.context, shadow_);
    state.vector(system_.context, p_);
    state.vector(system_.context, v_);
    state.vector(system_.context, p_tilde_);
    scalars_.serialize(state);
  }
  bool may_restart() const override { return true; }

  std::string breakdown_reason() override {
    BicgstabScalars<T> const& s = scalars_.host;
    std::string const at = " at iteration " + std::to_string(s.control.iteration);
    switch (s.breakdown) {
    case BicgstabBreakdown::rho:
      return "bicgstab broke down" + at + ": the residual is orthogonal to the first one (rho = " + number(rounded(s.rho)) + ")";
    case BicgstabBreakdown::shadow:
      return "bicgstab broke down at iteration " + std::to_string(s.control.iteration + 1) +
             ": A p is orthogonal to the first residual (alpha = " + number(rounded(s.alpha)) + "), or the matrix is singular";
    case BicgstabBreakdown::omega:
    case BicgstabBreakdown::none:
      break;
    }
    return "bicgstab broke down" + at + ": A s is zero or orthogonal to s (omega = " + number(rounded(s.omega)) +
           "), as in skew or singular matrices";
  }

  std::int64_t bytes_per_iteration() const override {
    std::int64_t const vectors = n_ * std::int64_t{sizeof(T)};
    std::int64_t bytes = 2 * system_.a.bytes_per_product() + 18 * vectors;
    if (system_.preconditioner != nullptr)
      bytes += vectors;  // s~ beside s in the update
    if (system_.inverse_diagonal() != nullptr)
      bytes += 2 * vectors + 2 * n_ * std::int64_t{sizeof(double)};
    if (system_.has_general_preconditioner())
      bytes += 2 * system_.preconditioner->bytes_per_apply();
    return bytes;
  }

private:
  [[nodiscard]] Pointer<T> p_tilde() { return system_.preconditioner == nullptr ? p_.data() : p_tilde_.data(); }
  [[nodiscard]] Pointer<T> s_tilde() { return system_.preconditioner == nullptr ? system_.r : s_tilde_.data(); }

  void next_direction() {
    kernels_.direction(system_.context, scalars_.data(), n_, system_.r, v_.data(), p_.data(), system_.inverse_diagonal(),
                       p_tilde());
    if (system_.has_general_preconditioner())
      system_.preconditioner->apply(p_.data(), p_tilde(), scalars_.stop());
  }

  KrylovSystem<T> system_;
  BicgstabKernels<T> const& kernels_;
  std::int64_t n_;
  Vector<T> shadow_, p_, v_, t_, p_tilde_, s_tilde_;
  DeviceScalars<BicgstabScalars<T>, T> scalars_;
};

}  // namespace

template <class T>
std::unique_ptr<KrylovMethod<T>> make_bicgstab(KrylovSystem<T> const& system) {
  return std::make_unique<Bicgstab<T>>(system);
}
template std::unique_ptr<KrylovMethod<double>> make_bicgstab(KrylovSystem<double> const&);
template std::unique_ptr<KrylovMethod<DoubleDouble>> make_bicgstab(KrylovSystem<DoubleDouble> const&);

std::int64_t bicgstab_vectors(PreconditionerForm preconditioner) {
  return preconditioner == PreconditionerForm::none ? 4 : 6;
}

}  // namespace poisson
