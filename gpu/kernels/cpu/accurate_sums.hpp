#pragma once

#include "gpu/kernels/check.hpp"

#include <algorithm>

namespace poisson::cpu {

/// AccurateSum for at most `lanes` rows side by side, with its order of operations in each: loops over them vectorise.
template <int lanes>
class AccurateSums {
public:
  /// n sums that begin with these values.
  AccurateSums(int n, double const* first) { std::copy_n(first, n, parts_[0]); }
  /// Adds factor(i) g[i] to sum first + i, for 0 <= i < n.
  template <class Factor>
  void add_products(int first, int n, Factor const& factor, double const* g) {
#pragma omp simd
    for (int i = 0; i < n; ++i) {
      AccurateSum sum(parts_[0][first + i], parts_[1][first + i], parts_[2][first + i]);
      sum.add_product(factor(i), g[i]);
      for (int part = 0; part < 3; ++part)
        parts_[part][first + i] = sum.part(part);
    }
  }
  void store_values(int n, double* values) const {
    for (int i = 0; i < n; ++i)
      values[i] = AccurateSum(parts_[0][i], parts_[1][i], parts_[2][i]).value();
  }

private:
  alignas(64) double parts_[3][lanes] = {};
};

}  // namespace poisson::cpu
