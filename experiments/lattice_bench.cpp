// lattice_bench CELLS N...: cg with multigrid on N x 1 x 1 lattices of CELLS^3 cells, u = 0 all around, b = 1, to 1e-12.
#include "gpu/core/threads.hpp"
#include "gpu/formats/lattice_half_cds.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/solvers/solver.hpp"
#include "tests/gpu/lattices.hpp"
#include <cstdio>
#include <cstdlib>
using namespace poisson;
int main(int argc, char** argv) {
  set_thread_count(0);
  auto const context = make_context(argc > 1 && std::string(argv[1]) == "cpu" ? Backend::cpu : Backend::cuda);
  double const copy = measure_copy_bandwidth(*context);
  for (int a = 2; a + 3 < argc; a += 4) {
    std::array<std::int64_t, 3> const lattices{std::atoi(argv[a]), std::atoi(argv[a + 1]), std::atoi(argv[a + 2])};
    auto const box = test::make_lattice_box(lattices, std::atoi(argv[a + 3]));
    std::int64_t const m = box.layout.nodes(), n = box.layout.n_lattices * m * m * m;
    double const entry[4] = {1.0 / 3, 0, -1.0 / 12, -1.0 / 12};
    HostVector<double> values(static_cast<std::size_t>(14 * n), -0.0);
    auto fixed = [&](std::int64_t node) {
      std::int64_t const x = node % box.nodes[0], y = node / box.nodes[0] % box.nodes[1], z = node / (box.nodes[0] * box.nodes[1]);
      return x == 0 || y == 0 || z == 0 || x == box.nodes[0] - 1 || y == box.nodes[1] - 1 || z == box.nodes[2] - 1;
    };
#pragma omp parallel for
    for (std::int64_t l = 0; l < box.layout.n_lattices; ++l)
      for (std::int64_t k = 0; k + 1 < m; ++k)
        for (std::int64_t j = 0; j + 1 < m; ++j)
          for (std::int64_t i = 0; i + 1 < m; ++i)
            for (int p = 0; p < 8; ++p)
              for (int q = 0; q < 8; ++q) {
                std::int64_t const x[3] = {i + (p & 1), j + (p >> 1 & 1), k + (p >> 2)}, y[3] = {i + (q & 1), j + (q >> 1 & 1), k + (q >> 2)};
                std::int64_t const d = 9 * (x[2] - y[2]) + 3 * (x[1] - y[1]) + x[0] - y[0];
                if (d < 0) continue;
                std::int64_t const u = box.node(l, x[0], x[1], x[2]), v = box.node(l, y[0], y[1], y[2]);
                if (u != v && (fixed(u) || fixed(v))) continue;
                int const differ = ((p ^ q) & 1) + ((p ^ q) >> 1 & 1) + ((p ^ q) >> 2);
                values[std::size_t(d * n + ((l * m + x[2]) * m + x[1]) * m + x[0])] += entry[differ];
              }
    auto const matrix = LatticeHalfCds::from_diagonals(*context, LatticeArrays(*context, box.layout), Array<double>(*context, std::span<double const>(values)));
    HostVector<double> b(std::size_t(matrix->n_rows()), 1.0), x(b.size());
    for (std::size_t node = 0; node < box.unknown_of.size(); ++node)
      if (fixed(std::int64_t(node))) b[std::size_t(box.unknown_of[node])] = 0;
    SolverOptions options;
    options.preconditioner = PreconditionerKind::multigrid;
    for (int run = 0; run < 3; ++run) {
      SolverResult const r = solve(*matrix, b, x, options);
      std::printf("%lld x %lld x %lld of %lld: %lld unknowns, %zu levels, setup %.2f ms, %lld iterations in %.2f ms (floor %.2f), residual %.1e %s\n", (long long)lattices[0], (long long)lattices[1], (long long)lattices[2], (long long)(m - 1),
        (long long)matrix->n_rows(), r.multigrid_levels.size(), 1e3 * r.setup_seconds, (long long)r.iterations, 1e3 * r.seconds, 1e3 * double(r.iterations) * r.bytes_per_iteration / copy, r.residual_recursive, std::string(name_of(r.status)).c_str());
    }
    for (auto const& l : std::vector<int>{}) (void)l;
  }
}
