#pragma once

#include "gpu/core/linear_operator.hpp"
#include "gpu/preconditioners/options.hpp"
#include "gpu/preconditioners/preconditioner.hpp"

#include <cstdint>
#include <memory>

namespace poisson {

/// How a method applies a preconditioner, which decides the vectors that it needs for that.
enum class PreconditionerForm {
  none,      ///< not at all
  diagonal,  ///< fused into its own passes
  general,   ///< by Preconditioner::apply
};

/// All that the rest of the library knows of a kind of preconditioner. A new one is a file beside this one, a name in options.hpp
/// and a row in registry.cpp.
struct PreconditionerEntry {
  PreconditionerKind kind;
  PreconditionerForm form;
  bool needs_symmetry;
  bool needs_csr;
  bool takes_ordering;
  /// Null for no preconditioner. Throws OutOfMemoryError.
  std::unique_ptr<PreconditionerSetup> (*make)(MultiPrecisionOperator const&, PreconditionerOptions const&);
  /// Bytes that it holds, and those that every arithmetic adds in which it is applied, whose numbers take `number` bytes. With
  /// Ordering::automatic what the multicolor ordering takes.
  std::int64_t (*bytes)(std::int64_t n_rows, std::int64_t nnz, PreconditionerOptions const&);
  std::int64_t (*bytes_to_apply)(std::int64_t n_rows, PreconditionerOptions const&, std::int64_t number);
  char const* when_unstable;  ///< what to try when iterations with it diverge, as in "try ..."
};

[[nodiscard]] PreconditionerEntry const& entry_of(PreconditionerKind kind);

/// Null for PreconditionerKind::none. Throws InputError when it needs CSR and options.csr provides none, OutOfMemoryError.
[[nodiscard]] std::unique_ptr<PreconditionerSetup> make_preconditioner(MultiPrecisionOperator const& a,
                                                                       PreconditionerOptions const& options);

}  // namespace poisson
