// svd_improvements [--backend cpu|cuda] [--n N] [--band L] [--repeat R] [--json FILE]
// What each improvement on the list of Hirota et al. 2012 gains: the work of one decomposition with vectors of a uniform random
// matrix of order N, as svd() does it and the straightforward way, in the same run. Both ways are the same code with another
// parameter, or the same kernels. The best of R runs counts, after one that does not. Band 0 is the tuned default.
#include "gpu/core/array.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/threads.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/bidiagonal.hpp"
#include "gpu/kernels/blas.hpp"
#include "gpu/kernels/svd.hpp"
#include "gpu/spectral/band_reduction.hpp"
#include "gpu/spectral/bidiagonal.hpp"
#include "gpu/spectral/orthonormal.hpp"
#include "gpu/spectral/svd.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace poisson;
using Index = std::int64_t;

struct Options {
  Backend backend = Backend::cpu;
  Index n = 1024;
  int band = 0;
  int repeat = 3;
  std::string json_file;
};

class Improvements {
public:
  explicit Improvements(Options const& options)
      : options_(options),
        n_(options.n),
        context_holder_(make_context(options.backend)),
        context_(*context_holder_),
        kernels_(kernels_for<SvdKernels>(context_)) {}

  void run() {
    double const copy_bandwidth = measure_copy_bandwidth(context_);
    DenseMatrix a(n_, n_);
    std::mt19937_64 random(1);
    std::uniform_real_distribution<double> entry(-0.5, 0.5);
    for (double& value : a.values)
      value = entry(random);
    for (int r = 0; r <= options_.repeat; ++r) {
      Svd result = svd(a, {true, 0, options_.band}, context_);
      if (r == 0 || result.seconds.total < whole_.seconds.total)
        whole_ = std::move(result);
    }
    width_ = whole_.band_width;
    SvdSeconds const& s = whole_.seconds;
    std::printf("%s, %d threads on the host, copy %.1f GB/s; N = %lld, band width %d: reduce %.4f, chase %.4f, bidiagonal %.4f, "
                "back %.4f, total %.4f s\n\n",
                context_.description().name.c_str(), thread_count(), copy_bandwidth / 1e9, static_cast<long long>(n_), width_,
                s.reduce, s.chase, s.bidiagonal, s.back, s.total);
    report_ = {
        {"device", context_.description().name},
        {"backend", name_of(options_.backend)},
        {"threads", thread_count()},
        {"copy_bytes_per_second", copy_bandwidth},
        {"n", n_},
        {"band_width", width_},
        {"seconds", {{"reduce", s.reduce}, {"chase", s.chase}, {"bidiagonal", s.bidiagonal}, {"back", s.back}, {"total", s.total}}},
        {"rows", nlohmann::json::array()}};
    std::printf("%-38s %10s %10s %6s  %-10s %10s %10s  %s\n", "improvement", "with", "without", "times", "step", "takes", "without",
                "instead of");

    Array<double> x(context_, std::span<double const>(whole_.u.values)), matrix(context_, std::span<double const>(a.values));
    bool const on_device = options_.backend == Backend::cuda;
    if (on_device)
      panels(matrix);
    combined_updates(matrix, x);
    matrix.upload(a.values);
    back_transformations(std::move(matrix), x);
    merges(x);
    if (on_device) {
      print("host's work and transfers overlapped", "the device waits", "total", [&](bool ours) {
        static_cast<void>(svd(a, {true, 0, options_.band, ours}, context_));
      });
      overlap();
      print("upper half of X^T X only", "all of it", "back", [&](bool ours) {
        if (ours)
          refine_orthogonality(context_, n_, n_, x.data());
        else
          refine_orthogonality(context_, n_, n_, x.data(), n_);
      });
    }
  }

private:
  [[nodiscard]] double seconds_of(std::function<void(bool)> const& call, bool ours) {
    context_.synchronize();
    auto const start = std::chrono::steady_clock::now();
    call(ours);
    context_.synchronize();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  /// Measures call(true), the way of svd(), beside call(false).
  void print(std::string const& what, std::string const& instead_of, std::string const& step,
             std::function<void(bool)> const& call) {
    double with = std::numeric_limits<double>::infinity(), without = with;
    for (int r = 0; r <= options_.repeat; ++r)  // in turns, so that both see the same machine
      for (bool const ours : {true, false}) {
        double const seconds = seconds_of(call, ours);
        if (r > 0)
          (ours ? with : without) = std::min(ours ? with : without, seconds);
      }
    double const of_step = report_["seconds"][step], step_without = of_step + without - with;
    std::printf("%-38s %10.4f %10.4f %6.2f  %-10s %10.4f %10.4f  %s\n", what.c_str(), with, without, without / with, step.c_str(),
                of_step, step_without, instead_of.c_str());
    std::fflush(stdout);
    report_["rows"].push_back({{"improvement", what},
                               {"instead_of", instead_of},
                               {"seconds", with},
                               {"seconds_without", without},
                               {"times", without / with},
                               {"step", step},
                               {"step_seconds", of_step},
                               {"step_seconds_without", step_without}});
    if (!options_.json_file.empty())  // after every row: a run that is cut off leaves what it has
      std::ofstream(options_.json_file) << report_.dump(2) << '\n';
  }

  /// Calls `body` for every pair of panels of the reduction, with its width and the number of rows from its corner on.
  void for_panels(std::function<void(Index, Index)> const& body) const {
    for (Index i = 0; i < n_; i += width_)
      body(std::min<Index>(width_, n_ - i), n_ - i);
  }

  void panels(Array<double>& a) {
    Array<double> packed(context_, n_ * width_), t(context_, Index{width_} * width_), r(context_, Index{width_} * width_);
    HostVector<double> panel(static_cast<std::size_t>(packed.size())), host_t(static_cast<std::size_t>(t.size())),
        host_r(host_t.size());
    auto const host = make_context(Backend::cpu);
    auto const factor = [&](bool ours, Index rows, Index w) {
      int const width = static_cast<int>(w);
      if (ours) {
        kernels_.panel_qr(context_, rows, width, a.data(), n_, t.data(), w, r.data(), 1, w);
        return;
      }
      Index const bytes = rows * w * Index{sizeof(double)};
      kernels_.copy(context_, rows, w, a.data(), n_, packed.data(), rows);
      context_.download(panel.data(), packed.data(), bytes);
      SvdKernels::cpu().panel_qr(*host, rows, width, panel.data(), rows, host_t.data(), w, host_r.data(), 1, w);
      context_.upload(packed.data(), panel.data(), bytes);
      t.upload(host_t);
      r.upload(host_r);
      kernels_.copy(context_, rows, w, packed.data(), rows, a.data(), n_);
    };
    print("reflectors made on the device", "LAPACK's recursive QR of the panels on the host", "reduce", [&](bool ours) {
      for_panels([&](Index w, Index rows) {
        factor(ours, rows, w);
        if (rows > w)
          factor(ours, rows - w, w);
      });
    });
  }

  void combined_updates(Array<double>& a, Array<double> const& x) {
    print("updates by both reflectors, rank 2L", "two updates of rank L", "reduce", [&](bool ours) {
      for_panels([&](Index w, Index rows) {
        Index const rest = rows - w, next = n_ - rest, q = std::min(w, rest);
        double* const a22 = a.data() + next + next * n_;
        double const *const yx = x.data(), *const zw = x.data();
        if (ours)
          gemm(context_, false, true, rest, rest, w + q, -1, yx, n_, zw, n_, 1, a22, n_);
        else {
          gemm(context_, false, true, rest, rest, w, -1, yx, n_, zw, n_, 1, a22, n_);
          gemm(context_, false, true, rest, rest, q, -1, yx + w * n_, n_, zw + w * n_, n_, 1, a22, n_);
        }
      });
    });
  }

  void back_transformations(Array<double> matrix, Array<double>& x) {
    BandReduction reduction = reduce_to_band(context_, n_, n_, width_, std::move(matrix), true);
    Index const merged = merged_columns(options_.backend);
    print("panels merged to " + std::to_string(merged) + " columns", "one panel at a time", "back", [&](bool ours) {
      Index const columns = ours ? merged : width_;
      apply_left(context_, reduction, n_, x.data(), n_, columns);
      apply_right(context_, reduction, n_, x.data(), n_, columns);
    });
    ChasePlan const plan(n_, width_);
    Array<double> left(context_, plan.slots * plan.slot_size()), right(context_, left.size());
    left.set_zero();
    right.set_zero();
    BandView const band = BandView::in(reduction.band.data(), n_, width_);
    kernels_.chase(context_, plan, band, left.data(), right.data());
    Array<double> diagonals(context_, 2 * n_ - 1);
    kernels_.diagonals(context_, band, diagonals.data(), diagonals.data() + n_);
    bidiagonal_.resize(static_cast<std::size_t>(2 * n_ - 1));
    diagonals.download(bidiagonal_);
    ChasePlan one_by_one = plan, dense = plan;
    one_by_one.blocks_of_launch = 1;
    dense.skip_zeros = false;
    auto const print_chase = [&](std::string const& what, std::string const& instead_of, ChasePlan const& alternative) {
      print(what, instead_of, "back", [&](bool ours) {
        for (Array<double> const* const y : {&left, &right})
          kernels_.apply_chase(context_, ours ? plan : alternative, y->data(), n_, x.data(), n_);
      });
    };
    if (plan.slots == 0)
      return;
    if (options_.backend == Backend::cuda)
      print_chase("chase back by waves of blocks", "one block of reflectors after the other", one_by_one);
    print_chase("chase back without zeros", "products with dense blocks", dense);
  }

  /// The products of all merges of divide and conquer when nothing is deflated. With all coordinates "of both" children the kernel
  /// knows of no zeros.
  void merges(Array<double> const& small) {
    auto const& kernels = kernels_for<BidiagonalKernels>(context_);
    struct Level {
      std::vector<BidiagonalMerge> on_host[2];
      Array<BidiagonalMerge> on_device[2];
      std::int32_t largest = 0;
    };
    std::vector<Level> levels;
    std::vector<std::pair<Index, std::pair<std::int32_t, std::int32_t>>> blocks{{0, {static_cast<std::int32_t>(n_), 0}}};
    while (blocks.front().second.first > 40) {
      Level level;
      auto const above = std::exchange(blocks, {});
      for (auto const& [first, size] : above) {
        auto const [n, extra] = size;
        std::int32_t const left = n / 2, right = n - left - 1;
        BidiagonalMerge merge{first, left, right, extra, left, 1, right, n};
        level.on_host[1].push_back(merge);
        merge.k_left = merge.k_right = 0;
        merge.k_both = n;
        level.on_host[0].push_back(merge);
        level.largest = std::max(level.largest, n + extra);
        blocks.push_back({first, {left, 1}});
        blocks.push_back({first + left + 1, {right, extra}});
      }
      for (int ours : {0, 1})
        level.on_device[ours] = Array<BidiagonalMerge>(context_, std::span<BidiagonalMerge const>(level.on_host[ours]));
      levels.push_back(std::move(level));
    }
    Array<double> packed(context_, n_ * n_), x(context_, n_ * n_);
    kernels_.copy(context_, n_, n_, small.data(), n_, packed.data(), n_);
    print("merges in two halves without zeros", "full products", "bidiagonal", [&](bool ours) {
      for (Level const& of : levels) {
        BidiagonalLevel level;
        level.on_host = of.on_host[ours];
        level.merges = of.on_device[ours].data();
        level.order = n_;
        level.largest = of.largest;
        for (bool const right : {false, true})
          kernels.multiply(context_, level, right, packed.data(), small.data(), x.data());
      }
    });
  }

  void overlap() {
    std::span<double const> const both(bidiagonal_), d = both.first(static_cast<std::size_t>(n_)),
                                                     e = both.last(static_cast<std::size_t>(n_ - 1));
    print("deflation behind products", "the device waits for the host", "bidiagonal",
          [&](bool ours) { static_cast<void>(bidiagonal_svd(context_, d, e, 0, ours)); });
  }

  Options options_;
  Index n_;
  int width_ = 1;
  std::unique_ptr<Context> context_holder_;
  Context& context_;
  SvdKernels const& kernels_;
  Svd whole_;
  HostVector<double> bidiagonal_;
  nlohmann::json report_;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  options.backend = why_no_cuda().empty() ? Backend::cuda : Backend::cpu;
  for (int i = 1; i < argc; i += 2) {
    std::string const key = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    if (key == "--backend" && parse_name<Backend>(value))
      options.backend = *parse_name<Backend>(value);
    else if (key == "--n" && !value.empty())
      options.n = std::max(2, std::atoi(value.c_str()));
    else if (key == "--band" && !value.empty())
      options.band = std::max(0, std::atoi(value.c_str()));
    else if (key == "--repeat" && !value.empty())
      options.repeat = std::max(1, std::atoi(value.c_str()));
    else if (key == "--json" && !value.empty())
      options.json_file = value;
    else {
      std::fprintf(stderr, "usage: svd_improvements [--backend cpu|cuda] [--n N] [--band L] [--repeat R] [--json FILE]\n");
      return 1;
    }
  }
  try {
    set_thread_count(0);
    Improvements(options).run();
    return 0;
  } catch (std::exception const& error) {
    std::fprintf(stderr, "svd_improvements: %s\n", error.what());
    return 3;
  }
}
