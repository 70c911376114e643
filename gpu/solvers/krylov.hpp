#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/linear_operator.hpp"
#include "gpu/kernels/krylov.hpp"
#include "gpu/preconditioners/preconditioner.hpp"
#include "gpu/preconditioners/registry.hpp"
#include "gpu/solvers/solver_state.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

namespace poisson {

/// Adds up sums over the ranks (processes) that share the rows of a system: an all-reduce whose order of summation is fixed.
template <class T>
class RankSum {
public:
  virtual ~RankSum() = default;
  /// Enqueues: replaces the `count` numbers of every rank, in the memory of its context, by their sums over all ranks.
  virtual void add(Context& context, T* sums, int count) = 0;
};

/// The system that a Krylov method in the arithmetic T works on; vectors have n_rows entries in the context's memory.
template <class T>
struct KrylovSystem {
  LinearOperator<T> const& a;
  Preconditioner<T>* preconditioner;  ///< null: none
  Context& context;
  bool project;                 ///< residuals are kept orthogonal to the constant vector
  Pointer<T> x;                 ///< the method only adds to it
  Pointer<T> r;                 ///< holds b - A x when a cycle begins
  RankSum<T>* ranks = nullptr;  ///< null: this rank has all rows, and passes end with their scalar steps (kernels/cg.hpp)

  /// 1 / m_ii of a diagonal preconditioner, which the method fuses into its passes; else null.
  [[nodiscard]] double const* inverse_diagonal() const {
    return preconditioner == nullptr ? nullptr : preconditioner->inverse_diagonal();
  }
  /// Whether there is a preconditioner that Preconditioner::apply applies.
  [[nodiscard]] bool has_general_preconditioner() const {
    return preconditioner != nullptr && preconditioner->inverse_diagonal() == nullptr;
  }
};

/// Number of iterations whose residuals are kept on the device: no more may be enqueued before history() is called.
inline constexpr std::int64_t history_capacity = 1024;

/// A Krylov method in cycles of iterations, for every operator, arithmetic and backend. Only control(), history() and
/// breakdown_reason() wait for the device.
template <class T>
class KrylovMethod {
public:
  virtual ~KrylovMethod() = default;
  /// Enqueues the beginning of a cycle from the current x and r. A fresh cycle restarts the method; one that is not keeps the
  /// search directions of the cycle before, and r must differ little from the last residual of that.
  virtual void begin(IterationControl const& control, bool fresh) = 0;
  /// Enqueues one iteration.
  virtual void iterate() = 0;

  struct Beginning {
    IterationControl control;
    bool fresh;
  };
  /// `begin`, and `iterate`, of 1 to most_columns methods at once, this one the first of them. They are of one kind, on the same
  /// operator and preconditioner, with a right-hand side each. Each does what it does alone; cg reads matrix and preconditioner
  /// once for all where these can, and the others take one method after another.
  virtual void begin_together(std::span<KrylovMethod* const> methods, std::span<Beginning const> beginnings) {
    for (std::size_t j = 0; j < methods.size(); ++j)
      methods[j]->begin(beginnings[j].control, beginnings[j].fresh);
  }
  virtual void iterate_together(std::span<KrylovMethod* const> methods) {
    for (KrylovMethod* const method : methods)
      method->iterate();
  }
  /// Whether x stays behind the iterations until `finish`. Then what an iteration enqueues also depends on those before.
  [[nodiscard]] virtual bool x_lags() const { return false; }
  /// Enqueues what brings x to the last iteration. After it only `begin` goes on.
  virtual void finish() {}
  [[nodiscard]] virtual IterationControl control() = 0;
  /// Relative residuals of the last iterations, history_capacity of them: that of iteration i at i % history_capacity.
  virtual void history(std::span<double> recent) = 0;
  /// Writes what the next iteration needs besides x and r, or reads it in place of `begin`. To be called between two iterations,
  /// after control() and history().
  virtual void serialize(StateStream& state) = 0;
  /// Why the last cycle ended with CycleState::breakdown.
  [[nodiscard]] virtual std::string breakdown_reason() = 0;
  /// Whether a fresh cycle may get past a breakdown.
  [[nodiscard]] virtual bool may_restart() const = 0;
  /// Compulsory bytes of one iteration.
  [[nodiscard]] virtual std::int64_t bytes_per_iteration() const = 0;
};

/// The scalars and the residual history of a method in the backend's memory; with several ranks, also the sums that become scalars.
template <class Scalars, class T>
class DeviceScalars {
public:
  DeviceScalars(Context& context, RankSum<T>* ranks)
      : context_(context),
        ranks_(ranks),
        scalars_(context, 1),
        history_(context, history_capacity),
        sums_(context, ranks == nullptr ? 0 : largest_n_sums) {
    history_.set_zero();  // it is always downloaded whole
  }
  Scalars host{};  ///< as they were last downloaded or uploaded
  void begin(IterationControl const& control, bool fresh) {
    host.control = control;
    host.control.history_capacity = static_cast<std::int32_t>(history_capacity);
    host.fresh = fresh ? 1 : 0;
    scalars_.upload(std::span<Scalars const>(&host, 1));
  }
  Scalars const& download() {
    scalars_.download(std::span<Scalars>(&host, 1));
    return host;
  }
  void history(std::span<double> recent) const { history_.download(recent); }
  /// Without the history, which the host has.
  void serialize(StateStream& state) {
    state.value(host);
    if (state.reads())
      scalars_.upload(std::span<Scalars const>(&host, 1));
  }
  [[nodiscard]] Scalars* data() { return scalars_.data(); }
  [[nodiscard]] std::int32_t const* stop() { return &scalars_.data()->control.stop; }
  [[nodiscard]] double* history() { return history_.data(); }

  /// Where a pass leaves its sums; null where it ends with its scalar step.
  [[nodiscard]] T* local() { return ranks_ == nullptr ? nullptr : sums_.data(); }
  /// To be called after every pass with sums: with several ranks, adds up their sums and enqueues the scalar step.
  template <class Kernels, class Pass>
  void finish(Kernels const& kernels, Pass pass) {
    if (ranks_ == nullptr)
      return;
    ranks_->add(context_, sums_.data(), n_sums(pass));
    kernels.scalar_step(context_, pass, scalars_.data(), sums_.data(), history_.data());
  }
  /// Adds up `count` numbers among the scalars over the ranks, where there are several.
  void add(T* numbers, int count) {
    if (ranks_ != nullptr)
      ranks_->add(context_, numbers, count);
  }
  [[nodiscard]] bool has_ranks() const { return ranks_ != nullptr; }

private:
  static constexpr std::int64_t largest_n_sums = 32;
  Context& context_;
  RankSum<T>* ranks_;
  Array<Scalars> scalars_;
  Array<double> history_;
  Array<T> sums_;
};

/// Preconditioned conjugate gradients (Hestenes, Stiefel 1952) for symmetric positive (semi-)definite operators. An iteration is a
/// product and two passes over vectors, and a third with a preconditioner that is not diagonal; see kernels/cg.hpp for their bytes.
template <class T>
[[nodiscard]] std::unique_ptr<KrylovMethod<T>> make_cg(KrylovSystem<T> const& system);
/// BiCGStab (van der Vorst 1992) with right preconditioning, so that its residuals are those of the system. An iteration is two
/// products and five passes over vectors; see kernels/bicgstab.hpp for their bytes.
template <class T>
[[nodiscard]] std::unique_ptr<KrylovMethod<T>> make_bicgstab(KrylovSystem<T> const& system);
/// GMRES (Saad, Schultz 1986), restarted after gmres_restart iterations, with right preconditioning, so that its residuals are
/// those of the system, and none is larger than the one before. An iteration is a product and four passes, of which three read all
/// vectors of the basis; see kernels/gmres.hpp for their bytes.
template <class T>
[[nodiscard]] std::unique_ptr<KrylovMethod<T>> make_gmres(KrylovSystem<T> const& system);
/// MINRES (Paige, Saunders 1975) for symmetric operators, indefinite ones too, and symmetric positive definite preconditioners. It
/// makes the norm of r least that the preconditioner defines, ||r|| where there is none; residuals told are ||r||. An iteration is
/// a product and two passes, and a third with a preconditioner that is not diagonal; see kernels/minres.hpp for their bytes.
template <class T>
[[nodiscard]] std::unique_ptr<KrylovMethod<T>> make_minres(KrylovSystem<T> const& system);

/// Number of vectors of T that the methods allocate besides x and r, without those of the preconditioner.
[[nodiscard]] std::int64_t cg_vectors(PreconditionerForm preconditioner);
[[nodiscard]] std::int64_t bicgstab_vectors(PreconditionerForm preconditioner);
[[nodiscard]] std::int64_t gmres_vectors(PreconditionerForm preconditioner);
[[nodiscard]] std::int64_t minres_vectors(PreconditionerForm preconditioner);

}  // namespace poisson
