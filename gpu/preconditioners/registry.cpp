#include "gpu/preconditioners/registry.hpp"

#include "gpu/preconditioners/direct.hpp"
#include "gpu/preconditioners/incomplete_lu.hpp"
#include "gpu/preconditioners/jacobi.hpp"
#include "gpu/preconditioners/multigrid.hpp"
#include "gpu/preconditioners/triangular_solve.hpp"

#include <algorithm>
#include <array>

namespace poisson {

namespace {

std::int64_t no_bytes(std::int64_t, std::int64_t, PreconditionerOptions const&) {
  return 0;
}
std::int64_t no_bytes_to_apply(std::int64_t, PreconditionerOptions const&, std::int64_t) {
  return 0;
}
std::int64_t diagonal_bytes(std::int64_t n_rows, std::int64_t, PreconditionerOptions const&) {
  return n_rows * std::int64_t{sizeof(double)};
}
std::int64_t factor_bytes(std::int64_t n_rows, std::int64_t nnz, PreconditionerOptions const& options) {
  return IncompleteLu::bytes(n_rows, nnz, options.ordering != Ordering::natural);
}
std::int64_t solve_bytes(std::int64_t n_rows, PreconditionerOptions const& options, std::int64_t number) {
  return (options.ordering != Ordering::natural ? 2 : 1) * n_rows * number;
}

/// Returns the bytes of all levels. On boxes all directions are taken to be halved. Each unknown then has 14 values, the diagonal,
/// three vectors and a mark, and each unknown of the next level has 27 weights. Elsewhere there are entries with their columns, on
/// coarser levels about a third of them, P and P^T of about five entries a row, and the vectors.
std::int64_t level_bytes(std::int64_t n_rows, std::int64_t nnz, PreconditionerOptions const& options) {
  std::int64_t const number = options.multigrid.precision == MultigridPrecision::double_ ? 8 : 4;
  if (options.box_nodes[0] > 0)
    return n_rows * (number * (14 + 1 + 3) + 1 + 27 * number / 8) * 8 / 7;
  return nnz * (number + 4) * 4 / 3 + n_rows * (2 * 5 * (number + 4) + 16 + 5 * number);
}

/// A guess: the analysis tells it of a matrix that is there. Factors of meshes of some ten thousand nodes take about ten times as
/// many entries as the matrix; while they are computed there is half as much again, and a copy of the matrix.
std::int64_t complete_bytes(std::int64_t n_rows, std::int64_t nnz, PreconditionerOptions const&) {
  return 10 * 16 * nnz * 3 / 2 + 16 * (nnz + n_rows);
}

using enum PreconditionerForm;
constexpr char const* smaller_factors = "a larger diagonal shift, or the preconditioner jacobi";

// clang-format off
constexpr std::array entries{
    //                  kind                        form      symmetric csr    ordering  make                 bytes            to apply           when unstable
    PreconditionerEntry{PreconditionerKind::none,   none,     false,    false, false,    nullptr,             &no_bytes,       &no_bytes_to_apply, ""},
    PreconditionerEntry{PreconditionerKind::jacobi, diagonal, false,    false, false,    &make_jacobi,        &diagonal_bytes, &no_bytes_to_apply, ""},
    PreconditionerEntry{PreconditionerKind::ic0,    general,  true,     true,  true,     &make_incomplete_lu, &factor_bytes,   &solve_bytes,       smaller_factors},
    PreconditionerEntry{PreconditionerKind::ilu0,   general,  false,    true,  true,     &make_incomplete_lu, &factor_bytes,   &solve_bytes,       smaller_factors},
    PreconditionerEntry{PreconditionerKind::multigrid, general, false, true, false,    &make_multigrid,     &level_bytes,    &no_bytes_to_apply, "the preconditioner jacobi"},
    PreconditionerEntry{PreconditionerKind::direct, general,  false,   true,  false,    &make_direct,        &complete_bytes, &no_bytes_to_apply, "the preconditioner ilu0"}};
// clang-format on
static_assert(entries.size() + 1 == Names<PreconditionerKind>::values.size(), "every preconditioner but automatic has its row");

}  // namespace

PreconditionerEntry const& entry_of(PreconditionerKind kind) {
  return *std::find_if(entries.begin(), entries.end(), [&](PreconditionerEntry const& entry) { return entry.kind == kind; });
}

std::unique_ptr<PreconditionerSetup> make_preconditioner(MultiPrecisionOperator const& a, PreconditionerOptions const& options) {
  auto const make = entry_of(options.kind).make;
  return make == nullptr ? nullptr : make(a, options);
}

bool needs_symmetry(PreconditionerKind kind) {
  return kind != PreconditionerKind::automatic && entry_of(kind).needs_symmetry;
}
bool needs_csr(PreconditionerKind kind) {
  return kind != PreconditionerKind::automatic && entry_of(kind).needs_csr;
}
bool uses_ordering(PreconditionerKind kind) {
  return kind != PreconditionerKind::automatic && entry_of(kind).uses_ordering;
}

}  // namespace poisson
