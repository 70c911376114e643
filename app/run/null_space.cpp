#include "app/run/null_space.hpp"

#include "app/io/console.hpp"
#include "gpu/core/double_double.hpp"
#include "gpu/core/error.hpp"
#include "gpu/kernels/symmetry.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace poisson::app {

namespace {

/// A larger defect means that b does not fit. The bound is that of a problem without Dirichlet values
/// (Discretization::compatibility_defect).
constexpr double largest_defect = 1e-3;
/// What is worth a warning: more than rounding leaves where b was made to fit.
constexpr double rounding_defect = 1e-10;

bool sums_to_zero(DoubleDouble sum, double absolute, std::int64_t n) {
  return std::abs(sum.hi) <= static_cast<double>(8 + n) * std::numeric_limits<double>::epsilon() * absolute;
}

/// 1 for rows that sum to zero, also those without entries.
std::vector<std::uint8_t> zero_rows(CsrMatrix const& a) {
  std::vector<std::uint8_t> zero(static_cast<std::size_t>(a.n_rows));
  for (std::int64_t row = 0; row < a.n_rows; ++row) {
    DoubleDouble sum = 0;
    double absolute = 0;
    for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e) {
      sum = sum + a.values[e];
      absolute += std::abs(a.values[e]);
    }
    zero[static_cast<std::size_t>(row)] = sums_to_zero(sum, absolute, a.row_ptr[row + 1] - a.row_ptr[row]) ? 1 : 0;
  }
  return zero;
}

bool columns_sum_to_zero(CsrMatrix const& a) {
  auto const n = static_cast<std::size_t>(a.n_columns);
  std::vector<DoubleDouble> sums(n, DoubleDouble{});
  std::vector<double> absolute(n, 0.0);
  std::vector<std::int64_t> counts(n, 0);
  for (std::size_t e = 0; e < a.values.size(); ++e) {
    auto const column = static_cast<std::size_t>(a.columns[e]);
    sums[column] = sums[column] + a.values[e];
    absolute[column] += std::abs(a.values[e]);
    ++counts[column];
  }
  for (std::size_t column = 0; column < n; ++column)
    if (!sums_to_zero(sums[column], absolute[column], counts[column]))
      return false;
  return true;
}

/// Marks what is coupled with the rows in `reached`, which are marked, and appends it to them.
void reach(CsrMatrix const& a, std::vector<std::int32_t>& reached, std::vector<std::uint8_t>& marked) {
  for (std::size_t next = 0; next < reached.size(); ++next) {
    std::int32_t const row = reached[next];
    for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e)
      if (std::int32_t const column = a.columns[e]; a.values[e] != 0 && marked[static_cast<std::size_t>(column)] == 0) {
        marked[static_cast<std::size_t>(column)] = 1;
        reached.push_back(column);
      }
  }
}

}  // namespace

NullSpace find_null_space(CsrMatrix const& matrix) {
  NullSpace result;
  std::vector<std::uint8_t> const zero = zero_rows(matrix);
  if (std::find(zero.begin(), zero.end(), 1) == zero.end())
    return result;
  if (bool const symmetric = !find_symmetry(view_of(matrix)).first; !symmetric) {
    if (std::find(zero.begin(), zero.end(), 0) != zero.end())
      return result;
    result.constants = columns_sum_to_zero(matrix);
    result.unsymmetric = !result.constants;
    if (result.constants) {
      result.parts.emplace_back(static_cast<std::size_t>(matrix.n_rows));
      for (std::size_t i = 0; i < zero.size(); ++i)
        result.parts.front()[i] = static_cast<std::int32_t>(i);
    }
    return result;
  }
  std::vector<std::uint8_t> marked(zero.size(), 0);
  std::vector<std::int32_t> reached;
  for (std::size_t i = 0; i < zero.size(); ++i)
    if (zero[i] == 0) {
      marked[i] = 1;
      reached.push_back(static_cast<std::int32_t>(i));
    }
  reach(matrix, reached, marked);
  for (std::size_t i = 0; i < zero.size(); ++i) {
    if (marked[i] != 0)
      continue;
    marked[i] = 1;
    std::vector<std::int32_t> part{static_cast<std::int32_t>(i)};
    reach(matrix, part, marked);
    if (part.size() == 1)  // a row of zeros has nothing to be solved by
      continue;
    std::sort(part.begin(), part.end());
    result.parts.push_back(std::move(part));
  }
  result.constants = result.parts.size() == 1 && result.parts.front().size() == zero.size();
  return result;
}

double make_compatible(NullSpace const& null_space, CsrMatrix& matrix, std::span<double> b, std::string const& matrix_name,
                       std::string const& rhs_name) {
  double largest = 0;
  for (auto const& part : null_space.parts) {
    DoubleDouble sum = 0;
    double absolute = 0;
    for (std::int32_t const i : part) {
      sum = sum + b[static_cast<std::size_t>(i)];
      absolute += std::abs(b[static_cast<std::size_t>(i)]);
    }
    double const defect = absolute > 0 ? std::abs(sum.hi) / absolute : 0;
    if (defect > largest_defect)
      throw InputError(matrix_name + ": the matrix is singular: " +
                       (null_space.constants
                            ? "its rows sum to zero"
                            : "the rows of " + std::to_string(part.size()) + " unknowns (row " + std::to_string(part.front() + 1) +
                                  " and those it is coupled with) sum to zero and are coupled with no others") +
                       "; b must sum to zero " + (null_space.constants ? "" : "there ") + "for a solution, but " + rhs_name +
                       " sums to " + number_text(sum.hi) + ", " + number_text(100 * defect, 3) +
                       " % of the sum of its absolute values; give such a b with --rhs, or a matrix in which an unknown is fixed");
    largest = std::max(largest, defect);
    // b is shifted, as in a problem without Dirichlet values.
    double const mean = sum.hi / static_cast<double>(part.size());
    for (std::int32_t const i : part)
      b[static_cast<std::size_t>(i)] -= mean;
  }
  if (null_space.constants)
    return largest;
  for (auto const& part : null_space.parts) {
    std::int32_t const held = part.front();
    for (std::int32_t const i : part)
      for (std::int64_t e = matrix.row_ptr[i]; e < matrix.row_ptr[i + 1]; ++e)
        if ((i == held) != (matrix.columns[e] == held))
          matrix.values[e] = 0;
    b[static_cast<std::size_t>(held)] = 0;
  }
  return largest;
}

void subtract_means(NullSpace const& null_space, std::span<double> x, std::span<double> x_low) {
  for (auto const& part : null_space.parts) {
    DoubleDouble sum = 0;
    for (std::int32_t const i : part) {
      sum = sum + x[static_cast<std::size_t>(i)];
      if (!x_low.empty())
        sum = sum + x_low[static_cast<std::size_t>(i)];
    }
    DoubleDouble const mean = sum / DoubleDouble{static_cast<double>(part.size()), 0};
    for (std::int32_t const i : part) {
      auto const at = static_cast<std::size_t>(i);
      DoubleDouble const value = DoubleDouble{x[at], x_low.empty() ? 0 : x_low[at]} - mean;
      x[at] = value.hi;
      if (!x_low.empty())
        x_low[at] = value.lo;
    }
  }
}

std::string null_space_note(NullSpace const& null_space, double defect) {
  if (null_space.unsymmetric)
    return "the matrix is singular: its rows sum to zero, and its columns do not; there is a solution only for some b, and it is "
           "unique up to a constant";
  std::string const taken = defect > rounding_defect ? ", and this one's sum, " + number_text(defect, 3) +
                                                           " of the sum of its absolute values, was taken off"
                                                     : "";
  if (null_space.constants)
    return "the matrix is singular: its rows sum to zero; b must sum to zero" + taken + "; the solution has mean zero";
  return "the matrix is singular: in " + std::to_string(null_space.parts.size()) +
         (null_space.parts.size() == 1 ? " part" : " parts") +
         " that no other unknowns are coupled with its rows sum to zero; b must sum to zero there" + taken +
         "; the solution has mean zero there";
}

}  // namespace poisson::app
