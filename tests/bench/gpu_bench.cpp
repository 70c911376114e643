// gpu_bench [--backend cpu|cuda] [--nodes n,n,...] [--format NAME] [--slice-size C] [--sigma N] [--threads-per-row T]
//           [--matrix-precision double|double_double] [--cg yes|no] [--json FILE] [--lattices N [--cells n]]
//           [--labels N [--axes 1|3]]
// Copy and read bandwidth, products (also with vectors in double-double, "dd") and CG on 27-point boxes of n^3 nodes, beside the
// time that their compulsory bytes take at the measured bandwidth: products at the read bandwidth, CG at the copy bandwidth.
// Everything is built on the backend, and every product is compared with one that needs no matrix; exit code 2 when one is wrong.
// With --lattices it measures half_cds on a row of N lattices of n^3 cells instead, with any diagonally dominant matrix. Products
// are compared with loops over the stored values, and timed beside those of one box with as many nodes, which copies nothing.
// With --labels it measures the operator from labels and a table on boxes of n^3 cells, of N labels: in blobs of some 4 cells, and
// every cell by itself, as shares of the copy bandwidth. Cells are cubes of one k, or bricks of three. Products are compared with
// accurate sums over the entries.
#include "gpu/core/array.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/threads.hpp"
#include "gpu/core/vector.hpp"
#include "gpu/elements/label_operator.hpp"
#include "gpu/formats/box.hpp"
#include "gpu/formats/half_cds.hpp"
#include "gpu/formats/lattice_half_cds.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/measure.hpp"
#include "gpu/solvers/solver.hpp"
#include "tests/gpu/lattices.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <vector>

namespace {

using namespace poisson;

/// ||b - A x|| / ||b|| by the product without matrix, which may be too large for the host.
double residual_of(Context& context, std::int64_t n, std::span<double const> x, std::span<double const> b) {
  Array<double> const on_device(context, x);
  Array<double> product(context, on_device.size());
  box_laplacian_product(context, n, n, n, on_device.data(), product.data());
  std::vector<double> ax(x.size());
  product.download(ax);
  double squares = 0, all = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    squares += (b[i] - ax[i]) * (b[i] - ax[i]);
    all += b[i] * b[i];
  }
  return std::sqrt(squares / all);
}

double pattern(std::int64_t i) {
  return std::sin(0.37 * static_cast<double>(i % 1009) + 1e-5 * static_cast<double>(i));
}

/// y = A x entry by entry, as the view says, in host memory.
void product_of_lattices(LatticeHalfCdsView const& a, std::span<double const> x, std::span<double> y) {
  std::fill(y.begin(), y.end(), 0.0);
  std::int32_t const m = a.lattices.m;
  for (std::int64_t l = 0; l < a.lattices.n_lattices; ++l)
    for (std::int32_t k = 0; k < m; ++k)
      for (std::int32_t j = 0; j < m; ++j)
        for (std::int32_t i = 0; i < m; ++i) {
          auto& sum = y[static_cast<std::size_t>(a.lattices.unknown(l, i, j, k))];
          for_couplings(a, l, i, j, k, [&](std::int64_t place, std::int32_t i2, std::int32_t j2, std::int32_t k2) {
            sum += a.values[place] * x[static_cast<std::size_t>(a.lattices.unknown(l, i2, j2, k2))];
          });
        }
}

int run_lattices(Backend backend, std::int64_t n_lattices, std::int32_t cells) {
  set_thread_count(0);
  auto const context = make_context(backend), host = make_context(Backend::cpu);
  double const copy = measure_copy_bandwidth(*context);
  std::printf("%s, %d threads on the host, copy %.1f GB/s (read and written)\n", context->description().name.c_str(),
              thread_count(), copy / 1e9);
  auto const box = test::make_lattice_box({n_lattices, 1, 1}, cells);
  std::int64_t const m = box.layout.nodes(), nodes = n_lattices * m * m * m;
  HostVector<double> values;
  values.resize(static_cast<std::size_t>(half_stencil::diagonals * nodes), -0.0);
  double entries = 0;
  test::for_pairs(box, [&](std::int64_t place, std::int64_t node, std::int64_t neighbour) {
    values[static_cast<std::size_t>(place)] = node == neighbour ? 30 : pattern(place);
    entries += node == neighbour ? 1 : 2;
  });
  auto const rows = static_cast<std::size_t>(box.layout.n_unknowns);
  std::printf("%lld lattices of %lld^3 nodes, %lld unknowns\n\n%-22s %12s %12s %12s %10s\n", static_cast<long long>(n_lattices),
              static_cast<long long>(m), static_cast<long long>(rows), "what", "ms", "bytes", "share", "GB/s");
  auto const print = [&](char const* what, double seconds, double bytes) {
    std::printf("%-22s %12.4f %12.4g %11.1f%% %10.1f\n", what, seconds * 1e3, bytes, 100 * bytes / copy / seconds,
                bytes / seconds / 1e9);
    std::fflush(stdout);
  };
  auto const upload = [&] { return Array<double>(*context, std::span<double const>(values)); };
  auto const matrix = LatticeHalfCds::from_diagonals(*context, LatticeArrays(*context, box.layout), upload());

  std::vector<double> x_host(std::max(rows, static_cast<std::size_t>(nodes))), expected(rows), result(rows);
  for (std::size_t i = 0; i < x_host.size(); ++i)
    x_host[i] = pattern(static_cast<std::int64_t>(i));
  LatticeArrays const arrays(*host, box.layout);
  LatticeHalfCdsView view{arrays.view()};
  view.values = values.data();
  product_of_lattices(view, std::span(x_host).first(rows), expected);
  // Vectors that the box's product shares.
  Array<double> const x(*context, std::span<double const>(x_host));
  Array<double> y(*context, x.size()), dot(*context, 1);
  std::int32_t const no = 0;
  Array<std::int32_t> const running(*context, std::span<std::int32_t const>(&no, 1));
  matrix->product(1.0, x.data(), 0.0, y.data());
  context->download(result.data(), y.data(), 8 * static_cast<std::int64_t>(rows));
  double error = 0;
  for (std::size_t i = 0; i < rows; ++i)
    if (!(std::abs(result[i] - expected[i]) <= error))
      error = std::abs(result[i] - expected[i]);
  std::printf("largest difference from loops over the values %.1e\n", error);

  auto const bytes = static_cast<double>(matrix->bytes_per_product());
  print("product", measure_seconds(*context, [&] { matrix->product(1.0, x.data(), 0.0, y.data()); }).median, bytes);
  print("product+dot",
        measure_seconds(*context, [&] { matrix->product_dot(x.data(), y.data(), dot.data(), running.data()); }).median, bytes);
  {
    std::vector<std::int32_t> offsets;
    for (int k = 0; k < half_stencil::diagonals; ++k)
      offsets.push_back(static_cast<std::int32_t>(half_stencil::offset(k, m, m * m)));
    auto const of_box =
        HalfCds::from_diagonals(*context, nodes, offsets, upload(), half_stencil::diagonals * static_cast<double>(nodes) / entries);
    print("product of a box", measure_seconds(*context, [&] { of_box->product(1.0, x.data(), 0.0, y.data()); }).median,
          static_cast<double>(of_box->bytes_per_product()));
  }
  {
    auto const single =
        LatticeHalfCds::from_diagonals(*context, LatticeArrays(*context, box.layout), upload(), MatrixPrecision::single);
    LinearOperator<float> const& in_float = *single;
    Array<float> const x_float(*context, std::span<float const>(std::vector<float>(x_host.begin(), x_host.end())));
    Array<float> y_float(*context, x.size());
    print("product single", measure_seconds(*context, [&] { in_float.product(1, x_float.data(), 0, y_float.data()); }).median,
          static_cast<double>(in_float.bytes_per_product()));
  }
  {
    LinearOperator<DoubleDouble> const& in_double_double = *matrix;
    Vector<DoubleDouble> const x_wide(*context, std::span<double const>(x_host));
    Vector<DoubleDouble> y_wide(*context, x.size());
    print("product dd", measure_seconds(*context, [&] { in_double_double.product(1, x_wide.data(), 0, y_wide.data()); }).median,
          static_cast<double>(in_double_double.bytes_per_product()));
  }
  for (PreconditionerKind const preconditioner : {PreconditionerKind::none, PreconditionerKind::jacobi}) {
    SolverOptions options;
    options.preconditioner = preconditioner;
    std::vector<double> const b(rows, 1.0);
    SolverResult const solved = solve(*matrix, b, result, options);
    print(preconditioner == PreconditionerKind::none ? "cg iteration" : "cg+jacobi it.",
          solved.seconds / static_cast<double>(std::max<std::int64_t>(1, solved.iterations)), solved.bytes_per_iteration);
    std::printf("  %s in %lld iterations, %.4f s, residual %.2e\n", std::string(name_of(solved.status)).c_str(),
                static_cast<long long>(solved.iterations), solved.seconds, solved.residual_recursive);
  }
  return error < 1e-12 ? 0 : 2;
}

int run_labels(Backend backend, std::vector<std::int64_t> const& sizes, int n_labels, bool cubes) {
  set_thread_count(0);
  bool wrong = false;
  auto const context = make_context(backend);
  double const copy = measure_copy_bandwidth(*context);
  std::printf("%s, %d threads on the host, copy %.1f GB/s (read and written); %d labels\n\n%5s %-6s %-18s %10s %12s %8s %10s\n",
              context->description().name.c_str(), thread_count(), copy / 1e9, n_labels, "n", "labels", "what", "ms", "bytes",
              "share", "GB/s");
  for (std::int64_t const n : sizes)
    for (std::int64_t const blob : {4, 1}) {
      BoxElements box;
      box.nodes = {n + 1, n + 1, n + 1};
      box.cell = cubes ? std::array<double, 3>{1, 1, 1} : std::array<double, 3>{1, 2, 0.5};
      box.faces.fill({BoxFace::Type::neumann});
      box.faces[4].type = box.faces[5].type = BoxFace::Type::dirichlet;
      std::vector<std::array<double, 3>> k;
      for (int label = 0; label < n_labels; ++label)
        k.push_back(cubes ? std::array<double, 3>{1.0 + label, 1.0 + label, 1.0 + label}
                          : std::array<double, 3>{1.0 + label, 2.0 + label, 3.0});
      // Splitmix64 of the blob's number.
      auto const label_at = [&](std::int64_t cell) {
        std::int64_t const x = cell % n / blob, y = cell / n % n / blob, z = cell / (n * n) / blob;
        auto h = static_cast<std::uint64_t>((z * n + y) * n + x) * 0x9E3779B97F4A7C15u;
        h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9u;
        h = (h ^ (h >> 27)) * 0x94D049BB133111EBu;
        return static_cast<std::int64_t>((h ^ (h >> 31)) % static_cast<std::uint64_t>(n_labels));
      };
      std::unique_ptr<LabelOperator> a;
      auto const make = [&]<class Label>(Label) {
        HostVector<Label> labels(static_cast<std::size_t>(n * n * n));
        for (std::int64_t cell = 0; cell < n * n * n; ++cell)
          labels[static_cast<std::size_t>(cell)] = static_cast<Label>(label_at(cell));
        a = std::make_unique<LabelOperator>(*context, box, Array<Label>(*context, std::span<Label const>(labels)), k);
      };
      if (n_labels <= 256)
        make(std::uint8_t{});
      else
        make(std::uint16_t{});
      std::int64_t const rows = a->n_rows();
      auto const labels = static_cast<double>(a->bytes()), r = static_cast<double>(rows);
      auto const print = [&](char const* what, double bytes, auto const& pass) {
        double const seconds = measure_seconds(*context, pass).median;
        std::printf("%5lld %-6s %-18s %10.4f %12.4g %7.1f%% %10.1f\n", static_cast<long long>(n), blob > 1 ? "blobs" : "single",
                    what, seconds * 1e3, bytes, 100 * bytes / copy / seconds, bytes / seconds / 1e9);
        std::fflush(stdout);
      };
      HostVector<double> numbers(static_cast<std::size_t>(rows));
      for (std::int64_t i = 0; i < rows; ++i)
        numbers[static_cast<std::size_t>(i)] = pattern(i);
      Array<std::int32_t> const running(*context, std::span<std::int32_t const>(std::vector<std::int32_t>{0}));
      {
        Array<double> const x(*context, std::span<double const>(numbers));
        Array<double> y(*context, rows), rest(*context, rows), dot(*context, 1);
        a->product(1.0, x.data(), 0.0, y.data());
        a->residual(x.data(), nullptr, y.data(), rest.data());
        HostVector<double> found(static_cast<std::size_t>(rows));
        rest.download(std::span<double>(found));
        double error = 0;
        for (double const v : found)
          if (!(std::abs(v) <= error))
            error = std::abs(v);
        std::printf("%5lld %-6s   largest difference from accurate sums %.1e\n", static_cast<long long>(n),
                    blob > 1 ? "blobs" : "single", error);
        wrong = wrong || !(error < 1e-14 * n_labels * 8);
        print("product", 16 * r + labels, [&] { a->product(1.0, x.data(), 0.0, y.data()); });
        print("product+dot", 16 * r + labels, [&] { a->product_dot(x.data(), y.data(), dot.data(), running.data()); });
        print("accurate residual", 24 * r + labels, [&] { a->residual(x.data(), nullptr, y.data(), rest.data()); });
      }
      {
        Array<float> const x(*context, std::span<float const>(std::vector<float>(numbers.begin(), numbers.end())));
        Array<float> y(*context, rows), diagonal(*context, rows);
        a->diagonal(diagonal.data());
        SmoothingStep<float> step;
        step.diagonal = diagonal.data();
        step.b = x.data();
        step.factor = 0.5F;
        step.x_after = y.data();
        print("step single", 16 * r + labels, [&] { a->smooth(step, x.data(), running.data()); });
        print("residual single", 12 * r + labels, [&] { a->subtract_product(x.data(), x.data(), y.data(), running.data()); });
      }
      {
        Vector<DoubleDouble> const x(*context, std::span<double const>(numbers));
        Vector<DoubleDouble> y(*context, rows);
        print("product dd", 32 * r + labels, [&] { a->product(DoubleDouble(1), x.data(), DoubleDouble(0), y.data()); });
      }
    }
  return wrong ? 2 : 0;
}

int run(Backend backend, std::vector<std::int64_t> const& sizes, std::vector<Format> const& formats,
        FormatOptions const& format_options, bool with_cg, std::string const& json_file) {
  set_thread_count(0);
  bool wrong = false;
  auto const context = make_context(backend);
  DeviceDescription const device = context->description();
  double const copy = measure_copy_bandwidth(*context), read = measure_read_bandwidth(*context);
  std::printf("%s, %d threads on the host\ncopy %.1f GB/s (read and written), read %.1f GB/s\n\n", device.name.c_str(),
              thread_count(), copy / 1e9, read / 1e9);
  nlohmann::json report{{"device", device.name},         {"backend", name_of(backend)},   {"threads", thread_count()},
                        {"copy_bytes_per_second", copy}, {"read_bytes_per_second", read}, {"rows", nlohmann::json::array()}};
  std::printf("%5s %-12s %-14s %12s %12s %8s %10s %10s\n", "n", "format", "what", "ms", "floor ms", "share", "GB/s", "GFLOP/s");
  for (std::int64_t const n : sizes) {
    auto const csr = box_laplacian(*context, n, n, n);
    auto const rows = static_cast<std::size_t>(csr->n_rows());
    std::vector<double> x_host(rows), b(rows, 1.0), solution(rows);
    for (std::size_t i = 0; i < rows; ++i)
      x_host[i] = pattern(static_cast<std::int64_t>(i));
    for (Format const format : formats) {
      auto const print = [&](std::string const& what, double seconds, double bytes, double bandwidth, double flops) {
        std::printf("%5lld %-12s %-14s %12.4f %12.4f %7.1f%% %10.1f %10.1f\n", static_cast<long long>(n),
                    std::string(name_of(format)).c_str(), what.c_str(), seconds * 1e3, bytes / bandwidth * 1e3,
                    100 * bytes / bandwidth / seconds, bytes / seconds / 1e9, flops / seconds / 1e9);
        std::fflush(stdout);
        report["rows"].push_back({{"n", n},
                                  {"format", name_of(format)},
                                  {"what", what},
                                  {"seconds", seconds},
                                  {"bytes", bytes},
                                  {"floor_seconds", bytes / bandwidth},
                                  {"flops", flops}});
      };
      std::unique_ptr<Matrix> matrix;
      try {
        matrix = make_matrix(format, *csr, format_options);
      } catch (EnvironmentError const& error) {
        std::printf("%5lld %-12s left out: %s\n", static_cast<long long>(n), std::string(name_of(format)).c_str(), error.what());
        continue;
      }
      auto const nnz = static_cast<double>(csr->view().nnz);
      auto const bytes = static_cast<double>(matrix->bytes_per_product());
      {
        Array<double> const x(*context, std::span<double const>(x_host));
        Array<double> y(*context, csr->n_rows()), dot(*context, 1);
        Array<std::int32_t> const running(*context, std::span<std::int32_t const>(std::vector<std::int32_t>{0}));
        box_laplacian_product(*context, n, n, n, x.data(), y.data());
        std::vector<double> expected(rows), result(rows);
        y.download(expected);
        matrix->product(1, x.data(), 0, y.data());
        y.download(result);
        double error = 0;
        for (std::size_t i = 0; i < rows; ++i)
          if (!(std::abs(result[i] - expected[i]) <= error))
            error = std::abs(result[i] - expected[i]);
        std::printf("%5lld %-12s   largest difference from the product without matrix %.1e\n", static_cast<long long>(n),
                    std::string(name_of(format)).c_str(), error);
        wrong = wrong || !(error < 1e-13);
        print("product", measure_seconds(*context, [&] { matrix->product(1, x.data(), 0, y.data()); }).median, bytes, read,
              2 * nnz);
        print("product+dot",
              measure_seconds(*context, [&] { matrix->product_dot(x.data(), y.data(), dot.data(), running.data()); }).median, bytes,
              read, 2 * nnz + 2 * static_cast<double>(rows));
      }
      {
        LinearOperator<DoubleDouble> const& a = *matrix;
        Vector<DoubleDouble> const x(*context, std::span<double const>(x_host));
        Vector<DoubleDouble> y(*context, csr->n_rows());
        Array<DoubleDouble> dot(*context, 1);
        Array<std::int32_t> const running(*context, std::span<std::int32_t const>(std::vector<std::int32_t>{0}));
        auto const dd_bytes = static_cast<double>(a.bytes_per_product());
        print("product dd", measure_seconds(*context, [&] { a.product(1, x.data(), 0, y.data()); }).median, dd_bytes, read,
              2 * nnz);
        print("product+dot dd",
              measure_seconds(*context, [&] { a.product_dot(x.data(), y.data(), dot.data(), running.data()); }).median, dd_bytes,
              read, 2 * nnz + 2 * static_cast<double>(rows));
      }
      for (PreconditionerKind const preconditioner : {PreconditionerKind::none, PreconditionerKind::jacobi}) {
        if (!with_cg)
          break;
        SolverOptions options;
        options.preconditioner = preconditioner;
        SolverResult const result = solve(*matrix, b, solution, options);
        print(preconditioner == PreconditionerKind::none ? "cg iteration" : "cg+jacobi it.",
              result.seconds / static_cast<double>(std::max<std::int64_t>(1, result.iterations)), result.bytes_per_iteration, copy,
              2 * nnz + 10 * static_cast<double>(rows));
        double const residual = residual_of(*context, n, solution, b);
        std::printf("%5s %-12s   %s in %lld iterations, %.4f s, residual %.2e, true residual %.2e%s%s\n", "", "",
                    std::string(name_of(result.status)).c_str(), static_cast<long long>(result.iterations), result.seconds,
                    result.residual_recursive, residual, result.reason.empty() ? "" : ": ", result.reason.c_str());
        report["rows"].back().update({{"status", name_of(result.status)},
                                      {"iterations", result.iterations},
                                      {"solve_seconds", result.seconds},
                                      {"residual_true", residual},
                                      {"convert_seconds", matrix->convert_seconds},
                                      {"transfer_seconds", matrix->transfer_seconds}});
      }
      std::printf("%5s %-12s   converted in %.3f s, moved in %.3f s (%.1f GB/s), %.3f GB\n", "", "", matrix->convert_seconds,
                  matrix->transfer_seconds,
                  matrix->transfer_seconds > 0 ? static_cast<double>(matrix->bytes()) / matrix->transfer_seconds / 1e9 : 0.0,
                  static_cast<double>(matrix->bytes()) / 1e9);
    }
  }
  if (!json_file.empty())
    std::ofstream(json_file) << report.dump(2) << '\n';
  return wrong ? 2 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  Backend backend = why_no_cuda().empty() ? Backend::cuda : Backend::cpu;
  std::vector<std::int64_t> sizes{64, 128};
  std::vector<Format> formats;
  for (auto const& named : Names<Format>::values)
    if (named.value != Format::matrix_free)
      formats.push_back(named.value);
  FormatOptions format_options;
  bool with_cg = true;
  std::string json_file;
  std::int64_t n_lattices = 0;
  std::int32_t cells = 64;
  int n_labels = 0;
  bool cubes = true;
  for (int i = 1; i < argc; i += 2) {
    std::string const key = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    if (key == "--backend" && parse_name<Backend>(value)) {
      backend = *parse_name<Backend>(value);
    } else if (key == "--format" && parse_name<Format>(value)) {
      formats = {*parse_name<Format>(value)};
    } else if (key == "--nodes" && !value.empty()) {
      sizes.clear();
      std::istringstream list(value);
      for (std::string n; std::getline(list, n, ',');)
        sizes.push_back(std::max(1, std::atoi(n.c_str())));
    } else if (key == "--cg" && (value == "yes" || value == "no")) {
      with_cg = value == "yes";
    } else if (key == "--slice-size" && !value.empty()) {
      format_options.slice_size = std::atoi(value.c_str());
    } else if (key == "--sigma" && !value.empty()) {
      format_options.sigma = std::atoi(value.c_str());
    } else if (key == "--threads-per-row" && !value.empty()) {
      format_options.threads_per_row = std::atoi(value.c_str());
    } else if (key == "--matrix-precision" && parse_name<MatrixPrecision>(value)) {
      format_options.precision = *parse_name<MatrixPrecision>(value);
    } else if (key == "--json" && !value.empty()) {
      json_file = value;
    } else if (key == "--lattices" && std::atoi(value.c_str()) > 0) {
      n_lattices = std::atoi(value.c_str());
    } else if (key == "--cells" && std::atoi(value.c_str()) > 0) {
      cells = std::atoi(value.c_str());
    } else if (key == "--labels" && std::atoi(value.c_str()) > 0) {
      n_labels = std::min(std::atoi(value.c_str()), 65536);
    } else if (key == "--axes" && (value == "1" || value == "3")) {
      cubes = value == "1";
    } else {
      std::fprintf(stderr, "usage: gpu_bench [--backend cpu|cuda] [--nodes n,n,...] [--format NAME] [--slice-size C] [--sigma N] "
                           "[--threads-per-row T] [--matrix-precision double|double_double] [--cg yes|no] [--json FILE] "
                           "[--lattices N [--cells n]] [--labels N [--axes 1|3]]\n");
      return 1;
    }
  }
  try {
    if (n_lattices > 0)
      return run_lattices(backend, n_lattices, cells);
    if (n_labels > 0)
      return run_labels(backend, sizes, n_labels, cubes);
    return run(backend, sizes, formats, format_options, with_cg, json_file);
  } catch (std::exception const& error) {
    std::fprintf(stderr, "gpu_bench: %s\n", error.what());
    return 3;
  }
}
