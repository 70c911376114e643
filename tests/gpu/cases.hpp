#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/vector.hpp"
#include "gpu/formats/format.hpp"
#include "gpu/formats/matrix.hpp"
#include "gpu/kernels/backends.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <initializer_list>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace poisson::testing {

inline void expect_contains(std::string const& text, std::initializer_list<char const*> parts) {
  for (char const* const part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << "\"" << part << "\" is missing in: " << text;
}

template <Format format_, Backend backend_>
struct Case {
  static constexpr Format format = format_;
  static constexpr Backend backend = backend_;
};

// Tests of CUDA are compiled where CUDA is: elsewhere they could only be skipped, and the compiler needs as long for them.
#ifdef POISSON_TEST_CUDA
template <Format... formats>
using EveryBackend = ::testing::Types<Case<formats, Backend::cpu>..., Case<formats, Backend::cuda>...>;
/// Every backend, for what knows no formats; suites are declared by TYPED_TEST_SUITE(Suite, Backends, BackendNames), and Suite<B>
/// is an OnBackend<B::value>.
using Backends = ::testing::Types<std::integral_constant<Backend, Backend::cpu>, std::integral_constant<Backend, Backend::cuda>>;
#else
template <Format... formats>
using EveryBackend = ::testing::Types<Case<formats, Backend::cpu>...>;
using Backends = ::testing::Types<std::integral_constant<Backend, Backend::cpu>>;
#endif

/// Every format on every backend; a new format is added here.
using Cases = EveryBackend<Format::csr, Format::crs_t, Format::sell_c_sigma, Format::cod_sell, Format::cds, Format::half_cds>;

struct CaseNames {
  template <class C>
  static std::string GetName(int) {
    return std::string(name_of(C::format)) + "_" + std::string(name_of(C::backend));
  }
};

/// Every backend, for what formats have in common.
using CsrCases = EveryBackend<Format::csr>;

struct BackendNames {
  template <class B>
  static std::string GetName(int) {
    return std::string(name_of(B::value));
  }
};

/// Deals the settings of a test of solvers to the formats, as cards are dealt: a solver sees no format, so that it will do if every
/// setting has one format, and every format some settings. Products of every format have tests of their own. With POISSON_ALL_TESTS
/// (.ci/full) every format has every setting.
class Deal {
public:
  /// The suite's formats are the first `n_formats` of the enumeration, or csr and half_cds.
  explicit Deal(Format format, int n_formats = 6) : format_(static_cast<int>(format) % n_formats), n_formats_(n_formats) {}
  /// Whether the next setting is for this format. Each round begins with another format.
  [[nodiscard]] bool next() {
    int const card = n_dealt_++;
    return (card + card / n_formats_) % n_formats_ == format_ || std::getenv("POISSON_ALL_TESTS") != nullptr;
  }

private:
  int format_, n_formats_, n_dealt_ = 0;
};

/// A context of the backend; the test is skipped where there is no device.
template <Backend backend>
class OnBackend : public ::testing::Test {
protected:
  void SetUp() override {
    if (backend == Backend::cuda && !why_no_cuda().empty())
      GTEST_SKIP() << why_no_cuda();
    context = make_context(backend);
  }
  std::unique_ptr<Context> context;
};

template <class C>
class OnCase : public OnBackend<C::backend> {
protected:
  [[nodiscard]] std::unique_ptr<Matrix> make(std::shared_ptr<CsrMatrix const> csr, FormatOptions const& options = {}) {
    return make_matrix(C::format, std::move(csr), *this->context, options);
  }
  static constexpr bool symmetric_only = C::format == Format::half_cds;
  /// Whether the format takes any matrix, and not only those of few diagonals.
  static constexpr bool any_pattern = C::format != Format::half_cds && C::format != Format::cds;
};

/// Vectors of double-double there and back, for a fixture with a context.
template <class Fixture>
class WithDoubleDouble : public Fixture {
protected:
  Vector<DoubleDouble> upload(std::vector<DoubleDouble> const& v) {
    return Vector<DoubleDouble>(*this->context, std::span<DoubleDouble const>(v));
  }
  static std::vector<DoubleDouble> download(Vector<DoubleDouble> const& v) {
    std::vector<DoubleDouble> host(static_cast<std::size_t>(v.size()));
    v.download(std::span<DoubleDouble>(host));
    return host;
  }
  static DoubleDouble scalar(Array<DoubleDouble> const& v) {
    DoubleDouble value = std::numeric_limits<double>::quiet_NaN();
    v.download(std::span<DoubleDouble>(&value, 1));
    return value;
  }
};

}  // namespace poisson::testing
