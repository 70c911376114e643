#include "gpu/formats/registry.hpp"

#include "gpu/formats/cds.hpp"
#include "gpu/formats/csr.hpp"
#include "gpu/formats/half_cds.hpp"
#include "gpu/formats/sell_c_sigma.hpp"

#include <array>

namespace poisson {

std::span<FormatEntry const> format_registry() {
  static constexpr std::array entries{
      FormatEntry{Format::csr, false, &Csr::estimate, nullptr, &Csr::make},
      FormatEntry{Format::crs_t, false, &Csr::estimate_crs_t, nullptr, &Csr::make_crs_t},
      FormatEntry{Format::sell_c_sigma, false, &SellCSigma::estimate, &SellCSigma::estimate_exact, &SellCSigma::make},
      FormatEntry{Format::cds, false, &Cds::estimate, nullptr, &Cds::make},
      FormatEntry{Format::half_cds, true, &HalfCds::estimate, nullptr, &HalfCds::make},
  };
  static_assert(entries.size() == Names<Format>::values.size(), "every format has its row");
  return entries;
}

}  // namespace poisson
