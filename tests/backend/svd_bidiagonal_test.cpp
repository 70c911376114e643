#include "gpu/svd/bidiagonal.hpp"

#include "tests/backend/cases.hpp"

#include <cmath>
#include <vector>

namespace poisson::testing {

namespace {

template <class B>
class Bidiagonal : public OnBackend<B::value> {};
template <Backend backend>
using BackendType = std::integral_constant<Backend, backend>;
struct BackendNames {
  template <class B>
  static std::string GetName(int) {
    return std::string(name_of(B::value));
  }
};
using BackendTypes = ::testing::Types<BackendType<Backend::cpu>, BackendType<Backend::cuda>>;
TYPED_TEST_SUITE(Bidiagonal, BackendTypes, BackendNames);

TYPED_TEST(Bidiagonal, OneByOne) {
  for (double const d : {2.5, -2.5, 0.0}) {
    std::vector<double> const diagonal{d};
    BidiagonalSvd const result = bidiagonal_svd(*this->context, diagonal, {});
    double u = 0, v = 0;
    result.u.download({&u, 1});
    result.v.download({&v, 1});
    EXPECT_EQ(result.values[0], std::abs(d));
    EXPECT_EQ(u * result.values[0] * v, d);
    EXPECT_EQ(std::abs(u), 1);
    EXPECT_EQ(std::abs(v), 1);
    EXPECT_EQ(bidiagonal_values(*this->context, diagonal, {})[0], std::abs(d));
  }
}

}  // namespace

}  // namespace poisson::testing
