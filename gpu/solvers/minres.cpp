#include "gpu/kernels/minres.hpp"

#include "gpu/core/number_text.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/solvers/krylov.hpp"

namespace poisson {

namespace {

template <class T>
class Minres final : public KrylovMethod<T> {
public:
  explicit Minres(KrylovSystem<T> const& system)
      : system_(system),
        kernels_(kernels_for<MinresKernels<T>>(system.context)),
        n_(system.a.n_rows()),
        u_(system.context, n_),
        v_(system.context, n_),
        v_before_(system.context, n_),
        w_(system.context, n_),
        w_before_(system.context, n_),
        scalars_(system.context, system.ranks) {
    if (system.preconditioner != nullptr)
      z_ = Vector<T>(system.context, n_);
    scalars_.host.project = system.project ? 1 : 0;
    scalars_.host.preconditioner = system.has_general_preconditioner()    ? CgPreconditioner::stored
                                   : system.inverse_diagonal() != nullptr ? CgPreconditioner::diagonal
                                                                          : CgPreconditioner::none;
  }

  void begin(IterationControl const& control, bool fresh) override {
    scalars_.begin(control, fresh);
    v_before_.set_zero();
    w_.set_zero();
    w_before_.set_zero();
    kernels_.begin(system_.context, scalars_.data(), n_, system_.r, system_.inverse_diagonal(), v_.data(), z_.data(),
                   scalars_.history(), scalars_.local());
    scalars_.finish(kernels_, MinresPass::begin);
    precondition();
  }

  void iterate() override {
    system_.a.product_dot(system_.preconditioner == nullptr ? v_.data() : z_.data(), u_.data(), &scalars_.data()->dot,
                          scalars_.stop());
    scalars_.add(&scalars_.data()->dot, 1);
    kernels_.lanczos(system_.context, scalars_.data(), n_, u_.data(), system_.inverse_diagonal(), v_.data(), v_before_.data(),
                     z_.data(), w_.data(), w_before_.data(), scalars_.local());
    scalars_.finish(kernels_, MinresPass::lanczos);
    precondition();
    kernels_.update(system_.context, scalars_.data(), n_, v_.data(), w_.data(), system_.x, system_.r, scalars_.history(),
                    scalars_.local());
    scalars_.finish(kernels_, MinresPass::update);
  }

  IterationControl control() override { return scalars_.download().control; }
  void history(std::span<double> recent) override { scalars_.history(recent); }
  // u is written before it is read.
  void serialize(StateStream& state) override {
    for (Vector<T>* const vector : {&v_, &v_before_, &w_, &w_before_, &z_})
      state.vector(system_.context, *vector);
    scalars_.serialize(state);
  }
  bool may_restart() const override { return scalars_.host.breakdown != MinresBreakdown::preconditioner; }

  std::string breakdown_reason() override {
    MinresScalars<T> const& s = scalars_.host;
    if (s.breakdown == MinresBreakdown::preconditioner)
      return "the preconditioner is not positive definite, which minres needs: z.v is " + number(s.bad) + " at iteration " +
             std::to_string(s.control.iteration);
    return "minres broke down at iteration " + std::to_string(s.control.iteration) +
           ": its Krylov space is complete and has no solution; the matrix is singular";
  }

  std::int64_t bytes_per_iteration() const override {
    std::int64_t const vectors = n_ * std::int64_t{sizeof(T)};
    std::int64_t bytes = system_.a.bytes_per_product() + 15 * vectors;
    if (system_.inverse_diagonal() != nullptr)
      bytes += 2 * vectors + n_ * std::int64_t{sizeof(double)};
    if (system_.has_general_preconditioner())
      bytes += system_.preconditioner->bytes_per_apply() + 3 * vectors;
    return bytes;
  }

private:
  /// z = M^-1 v, where that is stored.
  void precondition() {
    if (!system_.has_general_preconditioner())
      return;
    system_.preconditioner->apply(v_.data(), z_.data(), scalars_.stop());
    kernels_.reduce_z(system_.context, scalars_.data(), n_, v_.data(), z_.data(), scalars_.local());
    scalars_.finish(kernels_, MinresPass::reduce_z);
  }

  KrylovSystem<T> system_;
  MinresKernels<T> const& kernels_;
  std::int64_t n_;
  Vector<T> u_, v_, v_before_, w_, w_before_, z_;
  DeviceScalars<MinresScalars<T>, T> scalars_;
};

}  // namespace

template <class T>
std::unique_ptr<KrylovMethod<T>> make_minres(KrylovSystem<T> const& system) {
  return std::make_unique<Minres<T>>(system);
}
template std::unique_ptr<KrylovMethod<double>> make_minres(KrylovSystem<double> const&);
template std::unique_ptr<KrylovMethod<DoubleDouble>> make_minres(KrylovSystem<DoubleDouble> const&);

std::int64_t minres_vectors(PreconditionerForm preconditioner) {
  return preconditioner == PreconditionerForm::none ? 5 : 6;
}

}  // namespace poisson
