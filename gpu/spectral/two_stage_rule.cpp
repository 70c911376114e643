#include "gpu/spectral/two_stage_rule.hpp"

#include "gpu/core/array.hpp"
#include "gpu/kernels/blas.hpp"
#include "gpu/kernels/measure.hpp"

#include <algorithm>

namespace poisson {

BidiagonalizationRates measure_bidiagonalization_rates(Context& context, std::int64_t n, int width) {
  std::int64_t const k = std::max<std::int64_t>(n / 2, 1), w = std::min<std::int64_t>(width, k),
                     blocks = std::max<std::int64_t>(k / (2 * w), 1);
  Array<double> square(context, std::max(k * k, 2 * w * blocks * k)), panel(context, std::max(k * w, w * k * blocks)),
      result(context, std::max(k * w, 2 * w * w * blocks));
  square.set_zero();
  panel.set_zero();
  result.set_zero();
  auto const flops = [](std::int64_t a, std::int64_t b, std::int64_t c) {
    return 2 * static_cast<double>(a) * static_cast<double>(b) * static_cast<double>(c);
  };
  BidiagonalizationRates rates;
  rates.matrix_vector = measure_read_bandwidth(context) / 4;  // 2 operations an entry of 8 bytes
  rates.block_vector =
      flops(k, w, k) /
      measure_seconds(
          context, [&] { gemm(context, false, false, k, w, k, 1, square.data(), k, panel.data(), k, 0, result.data(), k); }, 5)
          .median;
  rates.chase_back = flops(2 * w, k, w) * static_cast<double>(blocks) /
                     measure_seconds(
                         context,
                         [&] {
                           gemm_batched(context, false, false, 2 * w, k, w, -1, result.data(), 2 * w, 2 * w * w, panel.data(), w,
                                        w * k, 1, square.data(), 2 * w * blocks, 2 * w, blocks);
                         },
                         5)
                         .median;
  return rates;
}

}  // namespace poisson
