#pragma once

#include "gpu/core/linear_operator.hpp"
#include "gpu/preconditioners/options.hpp"
#include "gpu/preconditioners/preconditioner.hpp"

#include <cstdint>
#include <memory>

namespace poisson {

/// How methods apply a preconditioner, which decides how many vectors they need.
enum class PreconditionerForm {
  none,      ///< there is none
  diagonal,  ///< fused into the passes of the method
  general,   ///< by Preconditioner::apply
};

/// A kind of preconditioner as the rest of the library sees it. A new one is a file beside this one, a name in options.hpp and a
/// row in registry.cpp.
struct PreconditionerEntry {
  PreconditionerKind kind;
  PreconditionerForm form;
  bool needs_symmetry;
  bool needs_csr;
  bool uses_ordering;
  /// Null for no preconditioner. Throws OutOfMemoryError.
  std::unique_ptr<PreconditionerSetup> (*make)(MultiPrecisionOperator const&, PreconditionerOptions const&);
  /// Bytes of M itself, and bytes that each arithmetic adds in which M is applied, where a number takes `number` bytes. With
  /// Ordering::automatic those of the multicolor ordering, the larger ones.
  std::int64_t (*bytes)(std::int64_t n_rows, std::int64_t nnz, PreconditionerOptions const&);
  std::int64_t (*bytes_to_apply)(std::int64_t n_rows, PreconditionerOptions const&, std::int64_t number);
  char const* when_unstable;  ///< advice for the user when iterations with it diverge: follows "try "
};

/// Precondition: not `automatic`.
[[nodiscard]] PreconditionerEntry const& entry_of(PreconditionerKind kind);

/// Null for PreconditionerKind::none. Throws InputError when it needs CSR and options.csr provides none, OutOfMemoryError.
[[nodiscard]] std::unique_ptr<PreconditionerSetup> make_preconditioner(MultiPrecisionOperator const& a,
                                                                       PreconditionerOptions const& options);

}  // namespace poisson
