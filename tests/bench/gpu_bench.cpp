// gpu_bench [--backend cpu|cuda] [--nodes n,n,...] [--format NAME] [--slice-size C] [--sigma N] [--threads-per-row T]
//           [--matrix-precision double|double_double] [--cg yes|no] [--json FILE]
// Copy and read bandwidth, products (also with vectors in double-double, "dd") and CG on 27-point boxes of n^3 nodes, beside the
// time that their compulsory bytes take at the measured bandwidth: products at the read bandwidth, CG at the copy bandwidth.
// Everything is built on the backend, and every product is compared with one that needs no matrix; exit code 2 when one is wrong.
#include "gpu/core/array.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/threads.hpp"
#include "gpu/core/vector.hpp"
#include "gpu/formats/box.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/measure.hpp"
#include "gpu/solvers/solver.hpp"

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
    } else {
      std::fprintf(stderr, "usage: gpu_bench [--backend cpu|cuda] [--nodes n,n,...] [--format NAME] [--slice-size C] [--sigma N] "
                           "[--threads-per-row T] [--matrix-precision double|double_double] [--cg yes|no] [--json FILE]\n");
      return 1;
    }
  }
  try {
    return run(backend, sizes, formats, format_options, with_cg, json_file);
  } catch (std::exception const& error) {
    std::fprintf(stderr, "gpu_bench: %s\n", error.what());
    return 3;
  }
}
