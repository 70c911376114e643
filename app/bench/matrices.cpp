#include "app/bench/matrices.hpp"

#include "app/config/problem.hpp"
#include "app/domain/domain.hpp"
#include "app/domain/system_shares.hpp"
#include "app/io/matrix_market.hpp"
#include "app/run/system.hpp"
#include "assembly/discretization.hpp"
#include "assembly/mesh/box_partition.hpp"
#include "gpu/core/communicator.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/memory.hpp"
#include "gpu/formats/box.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/block_rim.hpp"
#include "gpu/kernels/box.hpp"
#include "gpu/kernels/csr.hpp"
#include "gpu/kernels/symmetry.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
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

/// Sets the sizes of all rows.
BenchMatrix with_sizes(BenchMatrix matrix, Communicator& ranks) {
  CsrView const& a = matrix.csr->view();
  matrix.n_rows = sum_over(ranks, a.n_rows);
  matrix.n_columns = sum_over(ranks, a.n_columns);
  matrix.nnz = sum_over(ranks, a.nnz + matrix.rows.split.couplings->nnz());
  CsrMatrix const& couplings = *matrix.rows.split.couplings;
  matrix.csr_bytes = sum_over(ranks, matrix.csr->bytes() + (couplings.n_rows > 0 ? couplings.bytes() : 0));
  return matrix;
}

/// The rows of this rank. Collective.
BenchMatrix in_memory_of(Context& context, RankRows rows, Team& team) {
  BenchMatrix result;
  team.together([&] {
    BenchRows& own = result.rows;
    own.split = split(rows);
    CsrMatrix& whole_rows = own.rim_rows;
    whole_rows.n_rows = std::ssize(own.split.rim);
    whole_rows.n_columns = rows.matrix->n_columns;
    whole_rows.row_ptr.push_back(0);
    for (std::int32_t const row : own.split.rim) {
      auto const begin = rows.matrix->row_ptr[row], end = rows.matrix->row_ptr[row + 1];
      whole_rows.columns.insert(whole_rows.columns.end(), rows.matrix->columns.begin() + begin, rows.matrix->columns.begin() + end);
      whole_rows.values.insert(whole_rows.values.end(), rows.matrix->values.begin() + begin, rows.matrix->values.begin() + end);
      whole_rows.row_ptr.push_back(static_cast<std::int64_t>(whole_rows.columns.size()));
    }
    own.neighbors = std::move(rows.neighbors);
    rows.matrix.reset();
    auto const local = std::move(own.split.local);
    require_memory(context, local->bytes(), "the matrix in csr");
    result.csr = std::make_unique<Csr>(local, context);
  });
  return with_sizes(std::move(result), team.communicator());
}

/// What `make` returns, which the first rank calls; shared out. Collective.
template <class Make>
BenchMatrix of_rows(Context& context, Make const& make, Team& team) {
  std::shared_ptr<CsrMatrix const> csr;
  int symmetric = 0;
  team.on_first([&] {
    csr = std::make_shared<CsrMatrix const>(make());
    symmetric = csr->n_rows == csr->n_columns && !find_symmetry(view_of(*csr)).first ? 1 : 0;
  });
  BenchMatrix result = in_memory_of(context, shared_out(std::move(csr), {}, team).rows, team);
  result.symmetric = of_first(team.communicator(), symmetric) != 0;
  return result;
}

std::string cube(std::int64_t n) {
  return std::to_string(n) + "^3";
}

/// Sets the rows of the rim of a block of box_laplacian(n, n, n).
void set_rim(BenchRows& own, BlockPlaces const& places) {
  BlockRim const rim(places, {});
  auto couplings = std::make_shared<CsrMatrix>();
  couplings->n_rows = own.rim_rows.n_rows = rim.size();
  couplings->n_columns = places.around().size() - rim.n_own();
  own.rim_rows.n_columns = places.around().size();
  auto const add = [](CsrMatrix& rows, std::int64_t column, int e) {
    rows.columns.push_back(static_cast<std::int32_t>(column));
    rows.values.push_back(Box::weight((e % 3 != 1) + (e / 3 % 3 != 1) + (e / 9 != 1)));
  };
  couplings->row_ptr.push_back(0);
  own.rim_rows.row_ptr.push_back(0);
  for (std::int64_t t = 0; t < rim.size(); ++t) {
    BlockRim::Node const node = rim(t);
    own.split.rim.push_back(static_cast<std::int32_t>(rim.row(node)));
    rim.for_own(node, [&](std::int64_t row, int e) { add(own.rim_rows, row, e); });
    rim.for_ghosts(node, [&](std::int64_t ghost, int e) {
      add(own.rim_rows, rim.n_own() + ghost, e);
      add(*couplings, ghost, e);
    });
    couplings->row_ptr.push_back(couplings->nnz());
    own.rim_rows.row_ptr.push_back(own.rim_rows.nnz());
  }
  own.split.couplings = std::move(couplings);
}

/// The rows of this rank's block of box_laplacian(n, n, n), n > 1. Collective.
BenchMatrix block_of_box(Context& context, std::int64_t n, Team& team) {
  BenchMatrix result;
  team.together([&] {
    std::int64_t const cells = n - 1;
    assembly::BoxPartition const partition({cells, cells, cells}, 1, team.size());
    BenchRows& own = result.rows;
    own.blocks = std::make_shared<RankBlocks const>(partition.node_blocks());
    own.neighbors = partition.neighbors(team.rank());
    NodeBox const block = own.blocks->own[static_cast<std::size_t>(team.rank())];
    if (own.neighbors.empty()) {
      auto none = std::make_shared<CsrMatrix>();
      none->row_ptr.push_back(0);
      own.split = split({{}, std::move(none)});
    } else {
      set_rim(own, partition.places(team.rank()));
    }
    if (block.size() == 0) {
      result.csr = std::make_unique<Csr>(own.split.local, context);
      return;
    }
    require_memory(
        context, CsrMatrix::csr_bytes(block.size(), (3 * block.count(0) - 2) * (3 * block.count(1) - 2) * (3 * block.count(2) - 2)),
        "a box of " + cube(n) + " nodes in csr");
    // The matrix of a box has no boundary in it.
    result.csr = box_laplacian(context, block.count(0), block.count(1), block.count(2));
    // Multigrid has its levels from these nodes, or from blocks.
    if (team.is_alone()) {
      result.box_nodes = {n, n, n};
      own.blocks.reset();
    }
  });
  return with_sizes(std::move(result), team.communicator());
}

/// The problem of a configuration, each rank with its rows. Collective.
BenchMatrix rows_of_problem(Context& context, RunConfig config, Team& team) {
  config.matrix = {};
  config.matrix.format = Format::csr;
  Domain mesh = make_domain(config, team);
  System system(mesh, team, config, plan_for(mesh, team, config, context.backend()), [&]() -> Context& { return context; });
  BenchMatrix result = in_memory_of(context, system.take_rows(), team);
  result.rows.numbers = mesh.row_numbers();
  result.rhs.assign(system.rhs().host().begin(), system.rhs().host().end());
  result.constant_null_space = system.is_singular();
  return result;
}

/// A system to solve has Dirichlet values around and a constant source; a matrix to multiply with has natural boundary conditions,
/// so that every node is an unknown and no row is empty.
assembly::ProblemSpec box_problem(std::int64_t cells, int order, bool to_solve) {
  assembly::ProblemSpec problem;
  problem.mesh.cells = {cells, cells, cells};
  problem.order = order;
  problem.source = to_solve ? "1" : "0";
  assembly::BoundaryCondition around;
  around.all_ids = true;
  around.type = to_solve ? assembly::BoundaryType::dirichlet : assembly::BoundaryType::neumann;
  problem.boundary = {around};
  return problem;
}

BenchSource box_source(std::int64_t nodes, int order, bool to_solve) {
  if (order == 1)
    return {"box, " + cube(nodes) + " nodes",
            "box",
            [nodes](Context& context, Team& team) {
              if (nodes > 1)
                return block_of_box(context, nodes, team);
              return of_rows(
                  context, [&] { return box_laplacian(context, 1, 1, 1)->to_csr(); }, team);
            },
            {"--nodes", std::to_string(nodes)}};
  std::int64_t const cells = std::max<std::int64_t>((nodes - 1) / order, 1);
  return {"box, " + cube(cells * order + 1) + " nodes of order " + std::to_string(order),
          "box",
          [=](Context& context, Team& team) {
            RunConfig config;
            config.problem = box_problem(cells, order, to_solve);
            return rows_of_problem(context, std::move(config), team);
          },
          {}};
}

BenchSource file_source(std::string const& path) {
  return {path,
          "file",
          [path](Context& context, Team& team) {
            std::optional<CooMatrix> coo;
            BenchMatrix matrix = of_rows(
                context,
                [&] {
                  CooMatrix read = read_matrix_market(path);
                  CsrMatrix csr = csr_from_coo(read);
                  coo = std::move(read);
                  return csr;
                },
                team);
            matrix.coo = std::move(coo);
            return matrix;
          },
          {"--matrix", path}};
}

}  // namespace

void require_matrix_files(BenchOptions const& options) {
  std::error_code ignored;
  for (std::string const& path : options.files)
    if (!std::filesystem::is_regular_file(path, ignored))
      static_cast<void>(read_matrix_market(path));
}

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
                       [n](Context& context, Team& team) {
                         return of_rows(
                             context, [n] { return band_matrix(n); }, team);
                       },
                       {}});
  if (options.random || (nothing_named && !to_solve))
    sources.push_back({"random, " + std::to_string(n) + " rows",
                       "random",
                       [n](Context& context, Team& team) {
                         return of_rows(
                             context, [n] { return random_matrix(n); }, team);
                       },
                       {}});
  for (std::string const& path : options.files)
    sources.push_back(file_source(path));
  if (problem != nullptr)
    sources.push_back(
        {options.config,
         "problem",
         [config = problem->config()](Context& context, Team& team) { return rows_of_problem(context, config, team); },
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
