#include "app/bench/matrices.hpp"

#include "app/config/problem.hpp"
#include "app/io/matrix_market.hpp"
#include "assembly/discretization.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/memory.hpp"
#include "gpu/formats/box.hpp"
#include "gpu/kernels/backends.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <type_traits>
#include <utility>

namespace poisson::app {

namespace {

constexpr std::int64_t entries_per_row = 32;  // of the band and the random matrix: those of Murakami 2024

/// The next of a sequence of bits that looks random (splitmix64): fast, and every row can have a sequence of its own.
std::uint64_t next_bits(std::uint64_t& state) {
  std::uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

double value_from(std::uint64_t bits) {
  return static_cast<double>(bits >> 11) * 0x1p-52 - 1;
}

/// Rows with the columns that `columns_of(row, state, columns)` gives, ascending, and random values in [-1, 1).
template <class Columns>
CsrMatrix matrix_of_rows(std::int64_t n, Columns const& columns_of) {
  CsrMatrix csr;
  csr.n_rows = csr.n_columns = n;
  csr.row_ptr.reserve(static_cast<std::size_t>(n) + 1);
  csr.columns.reserve(static_cast<std::size_t>(n * entries_per_row));
  csr.values.reserve(static_cast<std::size_t>(n * entries_per_row));
  csr.row_ptr.push_back(0);
  std::vector<std::int32_t> columns;
  for (std::int64_t row = 0; row < n; ++row) {
    std::uint64_t state = static_cast<std::uint64_t>(row) * 0xd1342543de82ef95u + 1;
    columns.clear();
    columns_of(row, state, columns);
    for (std::int32_t const column : columns) {
      csr.columns.push_back(column);
      csr.values.push_back(value_from(next_bits(state)));
    }
    csr.row_ptr.push_back(static_cast<std::int64_t>(csr.values.size()));
  }
  return csr;
}

/// 32 consecutive diagonals, 16 of them below the main one and 15 above.
CsrMatrix band_matrix(std::int64_t n) {
  return matrix_of_rows(n, [n](std::int64_t row, std::uint64_t&, std::vector<std::int32_t>& columns) {
    std::int64_t const first = row - entries_per_row / 2;
    for (std::int64_t column = std::max<std::int64_t>(first, 0); column < std::min(first + entries_per_row, n); ++column)
      columns.push_back(static_cast<std::int32_t>(column));
  });
}

/// 32 different columns in every row, drawn evenly.
CsrMatrix random_matrix(std::int64_t n) {
  auto const wanted = static_cast<std::size_t>(std::min(entries_per_row, n));
  return matrix_of_rows(n, [n, wanted](std::int64_t, std::uint64_t& state, std::vector<std::int32_t>& columns) {
    while (columns.size() < wanted) {
      auto const column = static_cast<std::int32_t>(next_bits(state) % static_cast<std::uint64_t>(n));
      auto const place = std::lower_bound(columns.begin(), columns.end(), column);
      if (place == columns.end() || *place != column)
        columns.insert(place, column);
    }
  });
}

BenchMatrix in_memory_of(Context& context, CsrMatrix csr) {
  require_memory(context, csr.bytes(), "the matrix in csr");
  BenchMatrix result;
  result.csr = std::make_unique<Csr>(std::make_shared<CsrMatrix const>(std::move(csr)), context);
  return result;
}

BenchMatrix in_memory_of(Context& context, assembly::LinearSystem system) {
  BenchMatrix result = in_memory_of(context, std::move(system.matrix));
  result.rhs = std::move(system.rhs);
  result.constant_null_space = is_singular(system);
  return result;
}

/// A system to solve has Dirichlet values around and a constant source; a matrix to multiply with has natural boundary conditions,
/// so that every node is an unknown and no row is empty.
assembly::LinearSystem assembled_box(std::int64_t cells, int order, bool to_solve) {
  assembly::ProblemSpec problem;
  problem.mesh.cells = {cells, cells, cells};
  problem.order = order;
  problem.source = to_solve ? "1" : "0";
  assembly::BoundaryCondition around;
  around.all_ids = true;
  around.type = to_solve ? assembly::BoundaryType::dirichlet : assembly::BoundaryType::neumann;
  problem.boundary = {around};
  return assembly::Discretization(std::move(problem)).assemble();
}

std::string cube(std::int64_t n) {
  return std::to_string(n) + "^3";
}

BenchSource box_source(std::int64_t nodes, int order, bool to_solve) {
  if (order == 1)
    return {"box, " + cube(nodes) + " nodes",
            "box",
            [nodes](Context& context) {
              std::int64_t const n_rows = nodes * nodes * nodes, side = 3 * nodes - 2;
              require_memory(context, CsrMatrix::csr_bytes(n_rows, side * side * side),
                             "a box of " + cube(nodes) + " nodes in csr");
              BenchMatrix result;
              result.csr = box_laplacian(context, nodes, nodes, nodes);
              result.box_nodes = {nodes, nodes, nodes};
              return result;
            },
            {"--nodes", std::to_string(nodes)}};
  std::int64_t const cells = std::max<std::int64_t>((nodes - 1) / order, 1);
  return {"box, " + cube(cells * order + 1) + " nodes of order " + std::to_string(order),
          "box",
          [=](Context& context) { return in_memory_of(context, assembled_box(cells, order, to_solve)); },
          {}};
}

BenchSource file_source(std::string const& path) {
  return {path,
          "file",
          [path](Context& context) {
            CooMatrix coo = read_matrix_market(path);
            CsrMatrix csr = csr_from_coo(coo);
            BenchMatrix matrix = in_memory_of(context, std::move(csr));
            matrix.coo = std::move(coo);
            return matrix;
          },
          {"--matrix", path}};
}

}  // namespace

std::vector<BenchSource> bench_sources(BenchOptions const& options, Configuration const* problem) {
  bool const to_solve = options.kind == BenchKind::solve;
  bool const nothing_named =
      options.nodes.empty() && !options.band && !options.random && options.files.empty() && problem == nullptr;
  std::vector<BenchSource> sources;
  for (std::int64_t const nodes : nothing_named ? std::vector<std::int64_t>{64} : options.nodes)
    sources.push_back(box_source(nodes, options.order, to_solve));
  std::int64_t const n = options.rows;
  if (options.band || (nothing_named && !to_solve))
    sources.push_back({"band, " + std::to_string(n) + " rows",
                       "band",
                       [n](Context& context) { return in_memory_of(context, band_matrix(n)); },
                       {}});
  if (options.random || (nothing_named && !to_solve))
    sources.push_back({"random, " + std::to_string(n) + " rows",
                       "random",
                       [n](Context& context) { return in_memory_of(context, random_matrix(n)); },
                       {}});
  for (std::string const& path : options.files) {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(path, ignored))
      static_cast<void>(read_matrix_market(path));  // says now, and not after the other measurements, what is wrong
    sources.push_back(file_source(path));
  }
  if (problem != nullptr)
    sources.push_back({options.config,
                       "problem",
                       [spec = problem_of(problem->config())](Context& context) {
                         return in_memory_of(context, assembly::Discretization(spec).assemble());
                       },
                       {}});
  return sources;
}

void require_memory(Context const& context, std::int64_t bytes, std::string const& what) {
  if (context.backend() != Backend::cpu) {
    require_memory(context, bytes, what, "measure a smaller matrix");
    return;
  }
  if (std::int64_t const free = cpu_description().memory_free; bytes > free)
    throw EnvironmentError(what + " needs " + format_bytes(bytes) + " of memory, and " + format_bytes(free) +
                           " are free; measure a smaller matrix");
}

CooMatrix coo_from_csr(CsrMatrix const& csr) {
  CooMatrix coo;
  coo.n_rows = csr.n_rows;
  coo.n_columns = csr.n_columns;
  coo.rows.reserve(csr.values.size());
  for (std::int64_t row = 0; row < csr.n_rows; ++row)
    coo.rows.insert(coo.rows.end(), static_cast<std::size_t>(csr.row_ptr[row + 1] - csr.row_ptr[row]),
                    static_cast<decltype(coo.rows)::value_type>(row));
  coo.columns.assign(csr.columns.begin(), csr.columns.end());
  coo.values.assign(csr.values.begin(), csr.values.end());
  return coo;
}

}  // namespace poisson::app
