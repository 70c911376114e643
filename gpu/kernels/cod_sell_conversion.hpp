#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/host_device.hpp"
#include "gpu/kernels/cod_sell.hpp"
#include "gpu/kernels/csr.hpp"

#include <cstdint>

namespace poisson {

/// How rows that share a pattern are looked for: Murakami 2024, Algorithms 4 and 5.
struct CodSellSearch {
  std::int32_t slice_size = 32;  ///< C
  int pair_window = 4;           ///< rows that follow a row and may become its partner: R of Algorithm 5
  int merge_window = 16;         ///< the same for groups of rows
  int base_candidates = 0;  ///< leading columns of a row that may be its base; 0: log2 of its length and one more, as Algorithm 4
  /// Sorted rows that are grouped by themselves, a multiple of C; all of them (rounded up) make Algorithm 5 as it is printed.
  std::int64_t chunk_rows = 0;
};

/// What grouping finds; arrays in the backend's memory.
struct CodSellGroups {
  std::int32_t* rows = nullptr;            ///< n_rows: row of place p
  std::int32_t* bases = nullptr;           ///< n_rows: base column of place p, -1 where the row is empty
  std::int64_t* value_ptr = nullptr;       ///< n_slices + 1, see CodSellView
  std::int64_t* dictionary_ptr = nullptr;  ///< n_slices + 1, see CodSellView
  std::int32_t* shared = nullptr;          ///< nnz: holds the slices' distances, ascending ...
  std::int64_t* shared_at = nullptr;       ///< n_slices: ... those of slice s from here on
};

/// CodSellConversion converts CSR to CoD-SELL in two steps: it finds which rows share a slice, then it fills the slices. Both
/// backends give the same arrays, bit for bit, whatever the number of threads.
///
/// Every chunk of sorted rows is grouped by itself, and gives chunk_rows / C slices:
/// 1. Pairs. Rows in order; a row without a partner takes the one among the next `pair_window` rows (those without a partner) with
///    which it shares most distances, the first of equals, if there is any distance at all (Algorithm 5). The bases of both are the
///    combination of their leading columns that gives most, the first of equals, the first row's base varying slowest (Algorithm
///    4). Candidates are columns 0 ... floor(log2 length), both included; of rows longer than `longest_searched` only column 0.
/// 2. Groups of 2, 4, ... C rows. Groups of one size in the order of their first rows; each takes the one among the next
///    `merge_window` with the largest intersection of distances, in the same way. Bases stay.
/// 3. What the thesis leaves open: rows and groups without a partner, in the order of their first rows, members together, are cut
///    into slices of C rows (a group may be cut). Such a slice shares what all its parts share: a row that was never paired takes
///    the base that keeps most distances, or its first column where it opens the slice. When nothing is left, the bases are the
///    rows' first columns and the dictionary is empty.
/// 4. Slices come in the order of their first rows (first as in step 3), but one of less than C rows is the last; rows ascend in a
///    slice as they were sorted.
/// 5. Where the slices of a chunk take more bytes than cutting its rows as they were sorted, with no dictionaries, it is so cut.
class CodSellConversion {
public:
  virtual ~CodSellConversion() = default;
  /// Precondition on a device: chunk_rows is at most 8192, which its shared memory holds.
  /// `order`: all rows, sorted, in the backend's memory. Every array of `groups` is written, but for unused parts of `shared`.
  virtual void group(Context& context, CsrView const& a, std::int32_t const* order, CodSellSearch const& search,
                     CodSellGroups const& groups) const = 0;
  /// Writes columns, dictionary and values (sizes: CodSellView) as `groups` says.
  virtual void fill(Context& context, CsrView const& a, CodSellSearch const& search, CodSellGroups const& groups,
                    std::int32_t* columns, std::int32_t* dictionary, double* values) const = 0;

  static CodSellConversion const& cpu();
  static CodSellConversion const& cuda();
};

namespace cod_sell {

/// Rows longer than this are compared from their first columns only: the search is O(length log^2 length) for every pair.
inline constexpr std::int64_t longest_searched = 4096;

[[nodiscard]] POISSON_HOST_DEVICE inline std::int64_t n_candidates(std::int64_t length, int limit) {
  if (length > longest_searched)
    return 1;
  std::int64_t candidates = limit;
  if (limit == 0)
    for (std::int64_t rest = length; rest > 0; rest /= 2)
      ++candidates;
  return candidates < length ? candidates : length;
}

/// Number of distances a_i - a_base that are also among b_j - b_base. Both lists ascend.
[[nodiscard]] POISSON_HOST_DEVICE inline std::int32_t count_common(std::int32_t const* a, std::int64_t n_a, std::int32_t a_base,
                                                                   std::int32_t const* b, std::int64_t n_b, std::int32_t b_base) {
  std::int32_t common = 0;
  for (std::int64_t i = 0, j = 0; i < n_a && j < n_b;) {
    std::int32_t const of_a = a[i] - a_base, of_b = b[j] - b_base;
    common += of_a == of_b;
    i += of_a <= of_b;
    j += of_b <= of_a;
  }
  return common;
}

}  // namespace cod_sell

}  // namespace poisson
