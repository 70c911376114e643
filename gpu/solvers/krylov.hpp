#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/linear_operator.hpp"
#include "gpu/kernels/krylov.hpp"
#include "gpu/preconditioners/preconditioner.hpp"
#include "gpu/preconditioners/registry.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

namespace poisson {

/// Adds up sums over the ranks that share the rows of a system, in an order that is always the same.
template <class T>
class RankSum {
public:
  virtual ~RankSum() = default;
  /// Enqueues: every rank gets the totals in place of its own `count` numbers, which are in the context's memory.
  virtual void add(Context& context, T* sums, int count) = 0;
};

/// What a Krylov method in the arithmetic T works on; all pointers in the context's memory.
template <class T>
struct KrylovSystem {
  LinearOperator<T> const& a;
  Preconditioner<T>* preconditioner;  ///< null: none
  Context& context;
  bool project;                 ///< residuals are kept orthogonal to the constant vector
  Pointer<T> x;                 ///< updated, never read by the method otherwise
  Pointer<T> r;                 ///< holds b - A x when a cycle begins
  RankSum<T>* ranks = nullptr;  ///< null: this rank has all rows, and passes take their scalar steps themselves

  /// 1 / m_ii of a preconditioner that is fused into the passes of the method; else null.
  [[nodiscard]] double const* inverse_diagonal() const {
    return preconditioner == nullptr ? nullptr : preconditioner->inverse_diagonal();
  }
  /// Whether there is a preconditioner that is applied by itself.
  [[nodiscard]] bool applies() const { return preconditioner != nullptr && preconditioner->inverse_diagonal() == nullptr; }
};

/// Iterations whose residuals are kept on the device: what may be enqueued at once.
inline constexpr std::int64_t history_capacity = 1024;

/// A Krylov method in cycles of iterations, written once for every format, arithmetic and backend. Nothing here waits for the
/// backend but control() and history().
template <class T>
class KrylovMethod {
public:
  virtual ~KrylovMethod() = default;
  /// Enqueues the beginning of a cycle from x and r as they are. A cycle that is not fresh keeps the search directions of the one
  /// before, from whose last residual r must differ little.
  virtual void begin(IterationControl const& control, bool fresh) = 0;
  /// Enqueues one iteration.
  virtual void iterate() = 0;
  [[nodiscard]] virtual IterationControl control() = 0;
  /// Relative residuals of the last iterations: that of iteration i at i % history_capacity.
  virtual void history(std::span<double> recent) = 0;
  /// Why the last cycle ended with CycleState::breakdown.
  [[nodiscard]] virtual std::string breakdown_reason() = 0;
  /// Whether a fresh cycle may get past a breakdown.
  [[nodiscard]] virtual bool may_restart() const = 0;
  /// Compulsory bytes of one iteration.
  [[nodiscard]] virtual std::int64_t bytes_per_iteration() const = 0;
};

/// The scalars of a method in the backend's memory, the history beside them, and how sums become scalars where there are ranks.
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
  [[nodiscard]] Scalars* data() { return scalars_.data(); }
  [[nodiscard]] std::int32_t const* stop() { return &scalars_.data()->control.stop; }
  [[nodiscard]] double* history() { return history_.data(); }

  /// Where a pass leaves its sums: null where it takes its scalar step itself.
  [[nodiscard]] T* local() { return ranks_ == nullptr ? nullptr : sums_.data(); }
  /// After such a pass: the sums of all ranks, then the scalar step.
  template <class Kernels, class Pass>
  void finish(Kernels const& kernels, Pass pass) {
    if (ranks_ == nullptr)
      return;
    ranks_->add(context_, sums_.data(), n_sums(pass));
    kernels.scalar_step(context_, pass, scalars_.data(), sums_.data(), history_.data());
  }
  /// After a product whose dot counts.
  void add_dot() {
    if (ranks_ != nullptr)
      ranks_->add(context_, &scalars_.data()->dot, 1);
  }

private:
  static constexpr std::int64_t largest_n_sums = 5;
  Context& context_;
  RankSum<T>* ranks_;
  Array<Scalars> scalars_;
  Array<double> history_;
  Array<T> sums_;
};

/// Preconditioned conjugate gradients (Hestenes, Stiefel 1952) for symmetric positive (semi-)definite operators. Three passes an
/// iteration, and those of a preconditioner that is not diagonal; see kernels/cg.hpp for their bytes.
template <class T>
[[nodiscard]] std::unique_ptr<KrylovMethod<T>> make_cg(KrylovSystem<T> const& system);
/// BiCGStab (van der Vorst 1992), preconditioned from the right, so that its residuals are those of the system; see
/// kernels/bicgstab.hpp.
template <class T>
[[nodiscard]] std::unique_ptr<KrylovMethod<T>> make_bicgstab(KrylovSystem<T> const& system);

/// Vectors of T that the methods hold besides x and r, those inside of the preconditioner left out.
[[nodiscard]] std::int64_t cg_vectors(PreconditionerForm preconditioner);
[[nodiscard]] std::int64_t bicgstab_vectors(PreconditionerForm preconditioner);

}  // namespace poisson
