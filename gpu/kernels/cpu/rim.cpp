#include "gpu/kernels/rim.hpp"

#include "gpu/kernels/cpu/cpu.hpp"

namespace poisson {

namespace {

template <class T>
class CpuRim final : public RimKernels<T> {
public:
  void pack(Context&, std::int64_t n, std::int32_t const* places, ConstPointer<T> x, T* message, std::int32_t vectors,
            std::int64_t step) const override {
    cpu::for_blocks(n, n * vectors * cpu::work_of<T>, [=](std::int64_t begin, std::int64_t end, std::int64_t) {
      for (std::int32_t v = 0; v < vectors; ++v)
        for (std::int64_t i = begin; i < end; ++i)
          message[i * vectors + v] = load(x, v * step + (places != nullptr ? places[i] : i));
    });
  }

  void put(Context&, std::int64_t n, std::int32_t const* places, T const* message, Pointer<T> x, std::int32_t vectors,
           std::int64_t step) const override {
    cpu::for_blocks(n, n * vectors * cpu::work_of<T>, [=](std::int64_t begin, std::int64_t end, std::int64_t) {
      for (std::int32_t v = 0; v < vectors; ++v)
        for (std::int64_t i = begin; i < end; ++i)
          if (std::int64_t const place = places != nullptr ? places[i] : i; place >= 0)
            store(x, v * step + place, message[i * vectors + v]);
    });
  }

  void add(Context&, CsrView const& couplings, std::int32_t const* rows, T alpha, T const* ghosts, Pointer<T> y) const override {
    cpu::for_blocks(couplings.n_rows, couplings.nnz * cpu::work_of<T>, [&](std::int64_t begin, std::int64_t end, std::int64_t) {
      for (std::int64_t i = begin; i < end; ++i)
        store(y, rows[i], load(y, rows[i]) + alpha * rim_row_product(couplings, i, ghosts));
    });
  }

  void set(Context&, CsrView const& couplings, std::int32_t const* rows, T const* ghosts, Pointer<T> y) const override {
    cpu::for_blocks(couplings.n_rows, couplings.nnz * cpu::work_of<T>, [&](std::int64_t begin, std::int64_t end, std::int64_t) {
      for (std::int64_t i = begin; i < end; ++i)
        store(y, rows[i], rim_row_product(couplings, i, ghosts));
    });
  }

  void add_dot(Context& context, CsrView const& couplings, std::int32_t const* rows, T const* ghosts, ConstPointer<T> x,
               Pointer<T> y, T* dot, std::int32_t const* stop) const override {
    if (*stop != 0)
      return;
    *dot = *dot + cpu::sum_blocks_to<T>(context, couplings.n_rows, couplings.nnz * cpu::work_of<T>,
                                        [&](std::int64_t begin, std::int64_t end) {
                                          DotSum<T> sum{};
                                          for (std::int64_t i = begin; i < end; ++i) {
                                            T const value = rim_row_product(couplings, i, ghosts);
                                            store(y, rows[i], load(y, rows[i]) + value);
                                            sum.add(load(x, rows[i]), value);
                                          }
                                          return static_cast<T>(sum.value());
                                        });
  }
};

}  // namespace

template <>
RimKernels<float> const& RimKernels<float>::cpu() {
  static CpuRim<float> const kernels;
  return kernels;
}
template <>
RimKernels<double> const& RimKernels<double>::cpu() {
  static CpuRim<double> const kernels;
  return kernels;
}
template <>
RimKernels<DoubleDouble> const& RimKernels<DoubleDouble>::cpu() {
  static CpuRim<DoubleDouble> const kernels;
  return kernels;
}

}  // namespace poisson
