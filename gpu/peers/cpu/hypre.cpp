#include "gpu/core/dynamic_library.hpp"
#include "gpu/core/error.hpp"
#include "gpu/peers/peers.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <vector>

namespace poisson {

namespace {

// hypre.h and mpi.h are not needed to build: this is what is used of them. Objects are pointers, HYPRE_Int and HYPRE_BigInt are
// int.
using Object = void*;
using Error = int;
constexpr int parcsr = 5555;  // HYPRE_PARCSR

/// hypre, and Open MPI, which it calls.
class Hypre {
public:
  static Hypre& instance() {
    static Hypre hypre;
    return hypre;
  }
  [[nodiscard]] std::string why_missing() const { return mpi_.missing().empty() ? hypre_.missing() : mpi_.missing(); }

  /// The first of all calls begins MPI. The end of the program ends it.
  void begin() {
    if (begun_)
      return;
    int there = 0;
    check(mpi_initialized(&there), "MPI_Initialized");
    if (there == 0) {
      check(mpi_init(nullptr, nullptr), "MPI_Init");
      ends_mpi_ = true;
    }
    check(init(), "HYPRE_Init");
    begun_ = true;
  }
  void check(Error error, char const* name) const {
    if (error != 0)
      throw EnvironmentError(std::string("hypre: ") + name + " failed with error " + std::to_string(error));
  }

  Error (*matrix_create)(Object, int, int, int, int, Object*) = nullptr;
  Error (*matrix_type)(Object, int) = nullptr;
  Error (*matrix_row_sizes)(Object, int const*) = nullptr;
  Error (*matrix_initialize)(Object) = nullptr;
  Error (*matrix_values)(Object, int, int*, int const*, int const*, double const*) = nullptr;
  Error (*matrix_assemble)(Object) = nullptr;
  Error (*matrix_object)(Object, Object*) = nullptr;
  Error (*matrix_destroy)(Object) = nullptr;
  Error (*vector_create)(Object, int, int, Object*) = nullptr;
  Error (*vector_type)(Object, int) = nullptr;
  Error (*vector_initialize)(Object) = nullptr;
  Error (*vector_set)(Object, int, int const*, double const*) = nullptr;
  Error (*vector_assemble)(Object) = nullptr;
  Error (*vector_object)(Object, Object*) = nullptr;
  Error (*vector_get)(Object, int, int const*, double*) = nullptr;
  Error (*vector_destroy)(Object) = nullptr;
  Error (*pcg_create)(Object, Object*) = nullptr;
  Error (*pcg_tolerance)(Object, double) = nullptr;
  Error (*pcg_most)(Object, int) = nullptr;
  Error (*pcg_two_norm)(Object, int) = nullptr;
  Error (*pcg_preconditioner)(Object, void*, void*, Object) = nullptr;
  Error (*pcg_setup)(Object, Object, Object, Object) = nullptr;
  Error (*pcg_solve)(Object, Object, Object, Object) = nullptr;
  Error (*pcg_iterations)(Object, int*) = nullptr;
  Error (*pcg_residual)(Object, double*) = nullptr;
  Error (*pcg_destroy)(Object) = nullptr;
  Error (*amg_create)(Object*) = nullptr;
  Error (*amg_tolerance)(Object, double) = nullptr;
  Error (*amg_most)(Object, int) = nullptr;
  Error (*amg_coarsening)(Object, int) = nullptr;
  Error (*amg_aggressive)(Object, int) = nullptr;
  Error (*amg_interpolation)(Object, int) = nullptr;
  Error (*amg_row_size)(Object, int) = nullptr;
  Error (*amg_smoother)(Object, int) = nullptr;
  Error (*amg_strong)(Object, double) = nullptr;
  Error (*amg_destroy)(Object) = nullptr;
  Error (*clear_errors)() = nullptr;
  void *amg_setup = nullptr, *amg_solve = nullptr;
  Object world = nullptr;

private:
  Hypre() {
    mpi_.find(mpi_init, "MPI_Init");
    mpi_.find(mpi_initialized, "MPI_Initialized");
    mpi_.find(mpi_finalize, "MPI_Finalize");
    world = mpi_.address_of("ompi_mpi_comm_world");  // what Open MPI's MPI_COMM_WORLD stands for
    hypre_.find(init, "HYPRE_Init");
    hypre_.find(matrix_create, "HYPRE_IJMatrixCreate");
    hypre_.find(matrix_type, "HYPRE_IJMatrixSetObjectType");
    hypre_.find(matrix_row_sizes, "HYPRE_IJMatrixSetRowSizes");
    hypre_.find(matrix_initialize, "HYPRE_IJMatrixInitialize");
    hypre_.find(matrix_values, "HYPRE_IJMatrixSetValues");
    hypre_.find(matrix_assemble, "HYPRE_IJMatrixAssemble");
    hypre_.find(matrix_object, "HYPRE_IJMatrixGetObject");
    hypre_.find(matrix_destroy, "HYPRE_IJMatrixDestroy");
    hypre_.find(vector_create, "HYPRE_IJVectorCreate");
    hypre_.find(vector_type, "HYPRE_IJVectorSetObjectType");
    hypre_.find(vector_initialize, "HYPRE_IJVectorInitialize");
    hypre_.find(vector_set, "HYPRE_IJVectorSetValues");
    hypre_.find(vector_assemble, "HYPRE_IJVectorAssemble");
    hypre_.find(vector_object, "HYPRE_IJVectorGetObject");
    hypre_.find(vector_get, "HYPRE_IJVectorGetValues");
    hypre_.find(vector_destroy, "HYPRE_IJVectorDestroy");
    hypre_.find(pcg_create, "HYPRE_ParCSRPCGCreate");
    hypre_.find(pcg_tolerance, "HYPRE_PCGSetTol");
    hypre_.find(pcg_most, "HYPRE_PCGSetMaxIter");
    hypre_.find(pcg_two_norm, "HYPRE_PCGSetTwoNorm");
    hypre_.find(pcg_preconditioner, "HYPRE_PCGSetPrecond");
    hypre_.find(pcg_setup, "HYPRE_ParCSRPCGSetup");
    hypre_.find(pcg_solve, "HYPRE_ParCSRPCGSolve");
    hypre_.find(pcg_iterations, "HYPRE_PCGGetNumIterations");
    hypre_.find(pcg_residual, "HYPRE_PCGGetFinalRelativeResidualNorm");
    hypre_.find(pcg_destroy, "HYPRE_ParCSRPCGDestroy");
    hypre_.find(amg_create, "HYPRE_BoomerAMGCreate");
    hypre_.find(amg_tolerance, "HYPRE_BoomerAMGSetTol");
    hypre_.find(amg_most, "HYPRE_BoomerAMGSetMaxIter");
    hypre_.find(amg_coarsening, "HYPRE_BoomerAMGSetCoarsenType");
    hypre_.find(amg_aggressive, "HYPRE_BoomerAMGSetAggNumLevels");
    hypre_.find(amg_interpolation, "HYPRE_BoomerAMGSetInterpType");
    hypre_.find(amg_row_size, "HYPRE_BoomerAMGSetPMaxElmts");
    hypre_.find(amg_smoother, "HYPRE_BoomerAMGSetRelaxType");
    hypre_.find(amg_strong, "HYPRE_BoomerAMGSetStrongThreshold");
    hypre_.find(amg_destroy, "HYPRE_BoomerAMGDestroy");
    hypre_.find(clear_errors, "HYPRE_ClearAllErrors");
    amg_setup = hypre_.address_of("HYPRE_BoomerAMGSetup");
    amg_solve = hypre_.address_of("HYPRE_BoomerAMGSolve");
  }
  ~Hypre() {
    if (ends_mpi_)
      mpi_finalize();
  }

  // Open MPI loads parts of itself later, which look for it.
  DynamicLibrary mpi_{"Open MPI", {"libmpi.so.40"}, true};
  DynamicLibrary hypre_{"hypre", {"libHYPRE.so", "libHYPRE-2.26.0.so", "libHYPRE-2.32.0.so"}};
  Error (*mpi_init)(int*, char***) = nullptr;
  Error (*mpi_initialized)(int*) = nullptr;
  Error (*mpi_finalize)() = nullptr;
  Error (*init)() = nullptr;
  bool begun_ = false, ends_mpi_ = false;
};

using Owned = OwnedHandle<Object, Error (*)(Object)>;

/// A vector of hypre with these entries; `entries` is what its solvers take.
class HypreVector {
public:
  HypreVector(Hypre& hypre, std::vector<int> const& rows, std::span<double const> values)
      : hypre_(hypre), rows_(rows), vector_(hypre.vector_destroy) {
    int const n = static_cast<int>(values.size());
    hypre.check(hypre.vector_create(hypre.world, 0, n - 1, &vector_.handle), "creating a vector");
    hypre.check(hypre.vector_type(vector_.handle, parcsr), "the type of a vector");
    hypre.check(hypre.vector_initialize(vector_.handle), "a vector");
    hypre.check(hypre.vector_set(vector_.handle, n, rows.data(), values.data()), "the entries of a vector");
    hypre.check(hypre.vector_assemble(vector_.handle), "a vector");
    hypre.check(hypre.vector_object(vector_.handle, &entries), "a vector");
  }
  void get(std::span<double> values) const {
    hypre_.check(hypre_.vector_get(vector_.handle, static_cast<int>(values.size()), rows_.data(), values.data()),
                 "the entries of a vector");
  }
  Object entries = nullptr;

private:
  Hypre& hypre_;
  std::vector<int> const& rows_;
  Owned vector_;
};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

std::string why_no_peer_multigrid() {
  return Hypre::instance().why_missing();
}

PeerSolve peer_multigrid(CsrMatrix const& a, std::span<double const> b, std::span<double> x, double tolerance,
                         std::int64_t max_iterations) {
  Hypre& hypre = Hypre::instance();
  if (std::string const reason = hypre.why_missing(); !reason.empty())
    throw EnvironmentError(reason);
  if (a.nnz() > std::numeric_limits<int>::max())
    throw InputError("hypre here has indices of 32 bits, and the matrix has " + std::to_string(a.nnz()) + " entries");
  hypre.begin();

  int const n = static_cast<int>(a.n_rows);
  std::vector<int> rows(static_cast<std::size_t>(n)), sizes(static_cast<std::size_t>(n)), columns;
  std::vector<double> values;
  for (std::int64_t i = 0; i < a.n_rows; ++i) {
    std::size_t const before = columns.size();
    for (std::int64_t k = a.row_ptr[i]; k < a.row_ptr[i + 1]; ++k)
      if (a.values[k] != 0) {
        columns.push_back(a.columns[k]);
        values.push_back(a.values[k]);
      }
    rows[static_cast<std::size_t>(i)] = static_cast<int>(i);
    sizes[static_cast<std::size_t>(i)] = static_cast<int>(columns.size() - before);
  }
  Owned matrix(hypre.matrix_destroy);
  hypre.check(hypre.matrix_create(hypre.world, 0, n - 1, 0, n - 1, &matrix.handle), "creating a matrix");
  hypre.check(hypre.matrix_type(matrix.handle, parcsr), "the type of a matrix");
  hypre.check(hypre.matrix_row_sizes(matrix.handle, sizes.data()), "the rows of a matrix");
  hypre.check(hypre.matrix_initialize(matrix.handle), "a matrix");
  hypre.check(hypre.matrix_values(matrix.handle, n, sizes.data(), rows.data(), columns.data(), values.data()),
              "the entries of a matrix");
  hypre.check(hypre.matrix_assemble(matrix.handle), "a matrix");
  Object entries = nullptr;
  hypre.check(hypre.matrix_object(matrix.handle, &entries), "a matrix");
  columns = {};
  values = {};
  std::fill(x.begin(), x.end(), 0.0);
  HypreVector const right_hand_side(hypre, rows, b), solution(hypre, rows, x);

  Owned pcg(hypre.pcg_destroy), amg(hypre.amg_destroy);
  hypre.check(hypre.pcg_create(hypre.world, &pcg.handle), "conjugate gradients");
  hypre.check(hypre.pcg_tolerance(pcg.handle, tolerance), "the tolerance");
  hypre.check(hypre.pcg_most(pcg.handle, static_cast<int>(std::min<std::int64_t>(max_iterations, std::numeric_limits<int>::max()))),
              "the number of iterations");
  hypre.check(hypre.pcg_two_norm(pcg.handle, 1), "the norm");
  hypre.check(hypre.amg_create(&amg.handle), "BoomerAMG");
  hypre.check(hypre.amg_tolerance(amg.handle, 0), "the tolerance of BoomerAMG");
  hypre.check(hypre.amg_most(amg.handle, 1), "the cycles of BoomerAMG");
  hypre.check(hypre.amg_coarsening(amg.handle, 10), "the coarsening");
  hypre.check(hypre.amg_aggressive(amg.handle, 1), "the coarsening");
  hypre.check(hypre.amg_interpolation(amg.handle, 6), "the interpolation");
  hypre.check(hypre.amg_row_size(amg.handle, 4), "the interpolation");
  hypre.check(hypre.amg_smoother(amg.handle, 6), "the smoother");
  hypre.check(hypre.amg_strong(amg.handle, 0.25), "the threshold of strong couplings");
  hypre.check(hypre.pcg_preconditioner(pcg.handle, hypre.amg_solve, hypre.amg_setup, amg.handle), "the preconditioner");

  PeerSolve result;
  auto start = std::chrono::steady_clock::now();
  hypre.check(hypre.pcg_setup(pcg.handle, entries, right_hand_side.entries, solution.entries), "the setup of BoomerAMG");
  result.setup_seconds = seconds_since(start);
  start = std::chrono::steady_clock::now();
  // Too few iterations are an error to hypre, and a result to us.
  static_cast<void>(hypre.pcg_solve(pcg.handle, entries, right_hand_side.entries, solution.entries));
  hypre.clear_errors();
  result.seconds = seconds_since(start);
  int iterations = 0;
  hypre.check(hypre.pcg_iterations(pcg.handle, &iterations), "the number of iterations");
  hypre.check(hypre.pcg_residual(pcg.handle, &result.residual_recursive), "the residual");
  result.iterations = iterations;
  result.bytes_per_iteration = std::numeric_limits<double>::quiet_NaN();  // it has levels of its own
  solution.get(x);
  return result;
}

}  // namespace poisson
