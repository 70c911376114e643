#include "gpu/kernels/cg.hpp"

#include "gpu/core/number_text.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/solvers/krylov.hpp"

#include <array>
#include <cstddef>
#include <span>

namespace poisson {

namespace {

template <class T>
class Cg final : public KrylovMethod<T> {
public:
  explicit Cg(KrylovSystem<T> const& system)
      : system_(system),
        kernels_(kernels_for<CgKernels<T>>(system.context)),
        n_(system.a.n_rows()),
        p_(system.context, n_),
        q_(system.context, n_),
        scalars_(system.context, system.ranks) {
    if (system.has_general_preconditioner())
      z_ = Vector<T>(system.context, n_);
    scalars_.host.project = system.project ? 1 : 0;
    scalars_.host.preconditioner = system.has_general_preconditioner()    ? CgPreconditioner::stored
                                   : system.inverse_diagonal() != nullptr ? CgPreconditioner::diagonal
                                                                          : CgPreconditioner::none;
  }

  void begin(IterationControl const& control, bool fresh) override {
    KrylovMethod<T>* const alone = this;
    Beginning const beginning{control, fresh};
    begin_together(std::span(&alone, 1), std::span(&beginning, 1));
  }
  void iterate() override {
    KrylovMethod<T>* const alone = this;
    iterate_together(std::span(&alone, 1));
  }

  // Methods that work together share the passes over the matrix and the preconditioner. Passes over vectors are those of one
  // method, with its own scalars: they have nothing in common.
  using typename KrylovMethod<T>::Beginning;
  void begin_together(std::span<KrylovMethod<T>* const> methods, std::span<Beginning const> beginnings) override {
    for (std::size_t j = 0; j < methods.size(); ++j)
      of(methods[j]).begin_cycle(beginnings[j].control, beginnings[j].fresh);
    next_directions(methods);
  }
  void iterate_together(std::span<KrylovMethod<T>* const> methods) override {
    std::array<ProductColumn<T>, most_columns> columns;
    for (std::size_t j = 0; j < methods.size(); ++j)
      columns[j] = of(methods[j]).product_column();
    system_.a.product_dots(std::span(columns).first(methods.size()));
    for (KrylovMethod<T>* const method : methods)
      of(method).update();
    next_directions(methods);
  }

  IterationControl control() override {
    finish_direction(false);
    return scalars_.download().control;
  }
  void history(std::span<double> recent) override { scalars_.history(recent); }
  // q and z are written before they are read.
  void serialize(StateStream& state) override {
    state.vector(system_.context, p_);
    scalars_.serialize(state);
  }
  bool may_restart() const override { return false; }

  std::string breakdown_reason() override {
    CgScalars<T> const& s = scalars_.host;
    bool const by_preconditioner = s.broken_at_rz != 0;
    return std::string(by_preconditioner                   ? "the preconditioner or the matrix"
                       : system_.preconditioner == nullptr ? "the matrix"
                                                           : "the matrix or the preconditioner") +
           " is not positive definite: " + (by_preconditioner ? "r.z is " : "curvature ") + number(rounded(s.curvature)) +
           " at iteration " + std::to_string(s.control.iteration + (by_preconditioner ? 0 : 1));
  }

  std::int64_t bytes_per_iteration() const override {
    std::int64_t const vectors = n_ * std::int64_t{sizeof(T)};
    std::int64_t bytes = system_.a.bytes_per_product() + 8 * vectors;
    if (system_.inverse_diagonal() != nullptr)
      bytes += 2 * n_ * std::int64_t{sizeof(double)};
    if (system_.has_general_preconditioner())
      bytes += system_.preconditioner->bytes_per_apply() + 2 * vectors;
    return bytes;
  }

private:
  static Cg& of(KrylovMethod<T>* method) { return static_cast<Cg&>(*method); }

  void begin_cycle(IterationControl const& control, bool fresh) {
    scalars_.begin(control, fresh);
    if (fresh)
      p_.set_zero();
    kernels_.begin(system_.context, scalars_.data(), n_, system_.r, system_.inverse_diagonal(), scalars_.history(),
                   scalars_.local());
    scalars_.finish(kernels_, CgPass::begin);
  }
  ProductColumn<T> product_column() { return {p_.data(), q_.data(), &scalars_.data()->dot, scalars_.stop()}; }
  void update() {
    finish_direction(true);
    kernels_.update(system_.context, scalars_.data(), n_, q_.data(), system_.r, system_.inverse_diagonal(), scalars_.history(),
                    scalars_.local());
    scalars_.finish(kernels_, CgPass::update);
  }

  void next_directions(std::span<KrylovMethod<T>* const> methods) {
    if (system_.has_general_preconditioner()) {
      std::array<PreconditionedColumn<T>, most_columns> columns;
      for (std::size_t j = 0; j < methods.size(); ++j)
        columns[j] = {of(methods[j]).system_.r, of(methods[j]).z_.data(), of(methods[j]).scalars_.stop()};
      system_.preconditioner->apply_to_all(std::span(columns).first(methods.size()));
    }
    for (KrylovMethod<T>* const method : methods)
      of(method).next_direction();
  }
  /// With z, where that is stored.
  void next_direction() {
    if (system_.has_general_preconditioner()) {
      kernels_.reduce_z(system_.context, scalars_.data(), n_, system_.r, z_.data(), scalars_.local());
      scalars_.finish(kernels_, CgPass::reduce_z);
    }
    kernels_.direction(system_.context, scalars_.data(), n_, system_.r, system_.inverse_diagonal(), z_.data(), p_.data(), system_.x,
                       scalars_.has_ranks() ? &scalars_.data()->x_square : nullptr);
    has_x_square_ = scalars_.has_ranks();
  }

  /// Does the scalar step of the last direction where there are several ranks. A sum over ranks takes as long for two numbers as
  /// for one. So the sum of x^2 goes with that of the next p . q, if there is one (`has_dot`).
  void finish_direction(bool has_dot) {
    CgScalars<T>* const s = scalars_.data();
    static_assert(offsetof(CgScalars<T>, x_square) == offsetof(CgScalars<T>, dot) + sizeof(T));
    if (has_dot)
      scalars_.add(&s->dot, has_x_square_ ? 2 : 1);
    else if (has_x_square_)
      scalars_.add(&s->x_square, 1);
    if (has_x_square_)
      kernels_.scalar_step(system_.context, CgPass::direction, s, &s->x_square, scalars_.history());
    has_x_square_ = false;
  }

  KrylovSystem<T> system_;
  CgKernels<T> const& kernels_;
  std::int64_t n_;
  Vector<T> p_, q_, z_;
  DeviceScalars<CgScalars<T>, T> scalars_;
  bool has_x_square_ = false;  ///< of the last direction, and not yet added up
};

}  // namespace

template <class T>
std::unique_ptr<KrylovMethod<T>> make_cg(KrylovSystem<T> const& system) {
  return std::make_unique<Cg<T>>(system);
}
template std::unique_ptr<KrylovMethod<double>> make_cg(KrylovSystem<double> const&);
template std::unique_ptr<KrylovMethod<DoubleDouble>> make_cg(KrylovSystem<DoubleDouble> const&);

std::int64_t cg_vectors(PreconditionerForm preconditioner) {
  return preconditioner == PreconditionerForm::general ? 3 : 2;
}

}  // namespace poisson
