// gpu_bench [--backend cpu|cuda] [--nodes n,n,...] [--format NAME] [--slice-size C] [--sigma N] [--threads-per-row T] [--json FILE]
// Copy and read bandwidth, products and CG on 27-point boxes of n^3 nodes, beside the time that their compulsory bytes take at
// the measured bandwidth: products at the read bandwidth, CG at the copy bandwidth.
#include "gpu/core/array.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/measure.hpp"
#include "gpu/formats/box.hpp"
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

std::shared_ptr<CsrMatrix const> box(std::int64_t n) {
  auto const host = make_context(Backend::cpu);
  return std::make_shared<CsrMatrix const>(box_laplacian(*host, n, n, n)->to_csr());
}

double pattern(std::int64_t i) {
  return std::sin(0.37 * static_cast<double>(i % 1009) + 1e-5 * static_cast<double>(i));
}

int run(Backend backend, std::vector<std::int64_t> const& sizes, std::vector<Format> const& formats,
        FormatOptions const& format_options, std::string const& json_file) {
  set_thread_count(0);
  auto const context = make_context(backend);
  DeviceDescription const device = context->description();
  double const copy = measure_copy_bandwidth(*context), read = measure_read_bandwidth(*context);
  std::printf("%s, %d threads on the host\ncopy %.1f GB/s (read and written), read %.1f GB/s\n\n", device.name.c_str(),
              thread_count(), copy / 1e9, read / 1e9);
  nlohmann::json report{{"device", device.name},         {"backend", name_of(backend)},   {"threads", thread_count()},
                        {"copy_bytes_per_second", copy}, {"read_bytes_per_second", read}, {"rows", nlohmann::json::array()}};
  std::printf("%5s %-12s %-14s %12s %12s %8s %10s %10s\n", "n", "format", "what", "ms", "floor ms", "share", "GB/s", "GFLOP/s");
  for (std::int64_t const n : sizes) {
    std::shared_ptr<CsrMatrix const> const csr = box(n);
    auto const rows = static_cast<std::size_t>(csr->n_rows);
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
        matrix = make_matrix(format, csr, *context, format_options);
      } catch (EnvironmentError const& error) {
        std::printf("%5lld %-12s left out: %s\n", static_cast<long long>(n), std::string(name_of(format)).c_str(), error.what());
        continue;
      }
      auto const nnz = static_cast<double>(csr->nnz());
      auto const bytes = static_cast<double>(matrix->bytes_per_product());
      {
        Array<double> const x(*context, std::span<double const>(x_host));
        Array<double> y(*context, csr->n_rows), dot(*context, 1);
        Array<std::int32_t> const running(*context, std::span<std::int32_t const>(std::vector<std::int32_t>{0}));
        print("product", measure_seconds(*context, [&] { matrix->product(1, x.data(), 0, y.data()); }).median, bytes, read,
              2 * nnz);
        print("product+dot",
              measure_seconds(*context, [&] { matrix->product_dot(x.data(), y.data(), dot.data(), running.data()); }).median, bytes,
              read, 2 * nnz + 2 * static_cast<double>(rows));
      }
      for (PreconditionerKind const preconditioner : {PreconditionerKind::none, PreconditionerKind::jacobi}) {
        SolverOptions options;
        options.preconditioner = preconditioner;
        SolverResult const result = solve(*matrix, b, solution, options, *context);
        print(preconditioner == PreconditionerKind::none ? "cg iteration" : "cg+jacobi it.",
              result.seconds / static_cast<double>(std::max<std::int64_t>(1, result.iterations)), result.bytes_per_iteration, copy,
              2 * nnz + 10 * static_cast<double>(rows));
        double const residual = true_residual(*csr, solution, b);
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
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Backend backend = why_no_cuda().empty() ? Backend::cuda : Backend::cpu;
  std::vector<std::int64_t> sizes{64, 128};
  std::vector<Format> formats;
  for (auto const& named : Names<Format>::values)
    formats.push_back(named.value);
  FormatOptions format_options;
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
    } else if (key == "--slice-size" && !value.empty()) {
      format_options.slice_size = std::atoi(value.c_str());
    } else if (key == "--sigma" && !value.empty()) {
      format_options.sigma = std::atoi(value.c_str());
    } else if (key == "--threads-per-row" && !value.empty()) {
      format_options.threads_per_row = std::atoi(value.c_str());
    } else if (key == "--json" && !value.empty()) {
      json_file = value;
    } else {
      std::fprintf(stderr, "usage: gpu_bench [--backend cpu|cuda] [--nodes n,n,...] [--format NAME] [--slice-size C] [--sigma N] "
                           "[--threads-per-row T] [--json FILE]\n");
      return 1;
    }
  }
  try {
    return run(backend, sizes, formats, format_options, json_file);
  } catch (std::exception const& error) {
    std::fprintf(stderr, "gpu_bench: %s\n", error.what());
    return 3;
  }
}
