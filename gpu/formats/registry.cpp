#include "gpu/formats/registry.hpp"

#include "gpu/formats/cds.hpp"
#include "gpu/formats/cod_sell.hpp"
#include "gpu/formats/csr.hpp"
#include "gpu/formats/half_cds.hpp"
#include "gpu/formats/sell_c_sigma.hpp"

#include <array>

namespace poisson {

std::span<FormatEntry const> format_registry() {
  static constexpr std::array entries{
      FormatEntry{Format::csr, false, true, &Csr::estimate, nullptr, nullptr, &Csr::convert},
      FormatEntry{Format::crs_t, false, true, &Csr::estimate_crs_t, nullptr, nullptr, &Csr::convert_to_crs_t},
      FormatEntry{Format::sell_c_sigma, false, false, &SellCSigma::estimate, &SellCSigma::estimate_exact, nullptr,
                  &SellCSigma::convert},
      FormatEntry{Format::cod_sell, false, false, &CodSell::estimate, &CodSell::estimate_exact, &CodSell::estimate_lower_bound,
                  &CodSell::convert},
      FormatEntry{Format::cds, false, false, &Cds::estimate, nullptr, nullptr, &Cds::convert},
      FormatEntry{Format::half_cds, true, false, &HalfCds::estimate, nullptr, nullptr, &HalfCds::convert},
  };
  static_assert(entries.size() == n_stored_formats, "every format that stores a matrix has its row");
  return entries;
}

}  // namespace poisson
