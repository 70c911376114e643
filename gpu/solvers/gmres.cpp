#include "gpu/kernels/gmres.hpp"

#include "gpu/core/number_text.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/solvers/krylov.hpp"

namespace poisson {

namespace {

template <class T>
class Gmres final : public KrylovMethod<T> {
public:
  explicit Gmres(KrylovSystem<T> const& system)
      : system_(system),
        kernels_(kernels_for<GmresKernels<T>>(system.context)),
        n_(system.a.n_rows()),
        basis_(system.context, (gmres_restart + 1) * n_),
        scalars_(system.context, system.ranks) {
    if (system.preconditioner != nullptr)
      z_ = Vector<T>(system.context, n_);
    scalars_.host.project = system.project ? 1 : 0;
  }

  void begin(IterationControl const& control, bool fresh) override {
    scalars_.begin(control, fresh);
    kernels_.begin(system_.context, scalars_.data(), n_, system_.r, system_.x, scalars_.history(), scalars_.local());
    scalars_.finish(kernels_, GmresPass::begin);
    next_direction(system_.r, 0);
  }

  void iterate() override {
    Context& context = system_.context;
    int const count = column_ + 1;
    Pointer<T> const w = vector(count);
    if (system_.has_general_preconditioner())
      system_.preconditioner->apply(vector(column_), z_.data(), halt());
    system_.a.product_dot(system_.preconditioner == nullptr ? vector(column_) : z_.data(), w, &scalars_.data()->dot, halt());
    for (bool const second : {false, true}) {
      kernels_.dots(context, scalars_.data(), n_, basis_.data(), count, w, second, scalars_.local());
      scalars_.finish(kernels_, second ? GmresPass::second_dots : GmresPass::dots);
    }
    kernels_.norm(context, scalars_.data(), n_, basis_.data(), count, w, scalars_.history(), scalars_.local());
    scalars_.finish(kernels_, GmresPass::norm);
    if (count < gmres_restart) {
      next_direction(w, count);
    } else {
      end_restart(true);
      next_direction(system_.r, 0);
    }
  }

  // A method that copied x and r at any iteration would have to combine all basis vectors there.
  bool x_lags() const override { return true; }
  void finish() override { end_restart(false); }

  IterationControl control() override { return scalars_.download().control; }
  void history(std::span<double> recent) override { scalars_.history(recent); }
  void serialize(StateStream& state) override {
    state.value(column_);
    StateStream::require(column_ >= 0 && column_ < gmres_restart);
    state.vector(system_.context, basis_, (column_ + 1) * n_);  // the others are not there yet
    state.vector(system_.context, z_);
    scalars_.serialize(state);
  }
  bool may_restart() const override { return true; }

  std::string breakdown_reason() override {
    return "gmres broke down at iteration " + std::to_string(scalars_.host.control.iteration + 1) +
           ": the matrix maps the space of all residuals so far onto one of fewer dimensions; it is singular";
  }

  // On average over a restart, at the end of which there are another product and two passes.
  std::int64_t bytes_per_iteration() const override {
    std::int64_t const vectors = n_ * std::int64_t{sizeof(T)}, m = gmres_restart;
    std::int64_t const once = system_.a.bytes_per_product() +
                              (system_.has_general_preconditioner() ? system_.preconditioner->bytes_per_apply() : 0),
                       diagonal = system_.inverse_diagonal() != nullptr ? n_ * std::int64_t{sizeof(double)} : 0;
    std::int64_t const iteration = once + 7 * vectors + (diagonal > 0 ? diagonal + vectors : 0);
    return iteration + 3 * (m + 1) * vectors / 2 + (once + diagonal + (m + 7) * vectors) / m;
  }

private:
  [[nodiscard]] Pointer<T> vector(int k) { return basis_.data() + k * n_; }
  [[nodiscard]] std::int32_t const* halt() { return &scalars_.data()->halt; }

  /// Basis vector k, from w.
  void next_direction(ConstPointer<T> w, int k) {
    kernels_.normalise(system_.context, scalars_.data(), n_, w, vector(k), system_.inverse_diagonal(), z_.data());
    column_ = k;
  }

  /// x += M^-1 V y, and r -= A M^-1 V y, which M^-1 need not be linear for to the last bit: r belongs to the new x. The last vector
  /// of the basis is no direction, and after V y the first one is free.
  void end_restart(bool with_residual) {
    Context& context = system_.context;
    std::int32_t const* const idle = &scalars_.data()->idle;
    Pointer<T> const combined = system_.inverse_diagonal() != nullptr ? z_.data() : vector(gmres_restart);
    Pointer<T> const z = system_.preconditioner != nullptr ? z_.data() : combined, q = vector(0);
    kernels_.scalar_step(context, GmresPass::solve, scalars_.data(), nullptr, scalars_.history());
    kernels_.combine(context, scalars_.data(), n_, basis_.data(), system_.inverse_diagonal(), combined);
    if (system_.has_general_preconditioner())
      system_.preconditioner->apply(combined, z, idle);
    if (with_residual)
      system_.a.product_dot(z, q, &scalars_.data()->dot, idle);
    kernels_.update(context, scalars_.data(), n_, z, q, with_residual, system_.x, system_.r, scalars_.history(), scalars_.local());
    scalars_.finish(kernels_, with_residual ? GmresPass::restart : GmresPass::finish);
  }

  KrylovSystem<T> system_;
  GmresKernels<T> const& kernels_;
  std::int64_t n_;
  Vector<T> basis_;  ///< gmres_restart + 1 vectors, one behind another
  Vector<T> z_;
  DeviceScalars<GmresScalars<T>, T> scalars_;
  int column_ = 0;  ///< of the restart, by what is enqueued
};

}  // namespace

template <class T>
std::unique_ptr<KrylovMethod<T>> make_gmres(KrylovSystem<T> const& system) {
  return std::make_unique<Gmres<T>>(system);
}
template std::unique_ptr<KrylovMethod<double>> make_gmres(KrylovSystem<double> const&);
template std::unique_ptr<KrylovMethod<DoubleDouble>> make_gmres(KrylovSystem<DoubleDouble> const&);

std::int64_t gmres_vectors(PreconditionerForm preconditioner) {
  return gmres_restart + 1 + (preconditioner == PreconditionerForm::none ? 0 : 1);
}

}  // namespace poisson
