#include "gpu/spectral/bidiagonal.hpp"

#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/core/memory.hpp"
#include "gpu/core/threads.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/bidiagonal.hpp"
#include "gpu/kernels/cpu/lapack.hpp"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace poisson {

namespace {

/// Not below the largest singular value: that is at most the largest sum of a row or column.
double largest_value_bound(std::span<double const> d, std::span<double const> e) {
  double bound = std::abs(d[0]);
  for (std::size_t i = 0; i < e.size(); ++i)
    bound = std::max({bound, std::abs(d[i]) + std::abs(e[i]), std::abs(d[i + 1]) + std::abs(e[i])});
  return bound * (1 + 4 * std::numeric_limits<double>::epsilon());
}

double largest_entry(std::span<double const> d, std::span<double const> e) {
  double largest = 0;
  for (double const x : d)
    largest = std::max(largest, std::abs(x));
  for (double const x : e)
    largest = std::max(largest, std::abs(x));
  return largest;
}

std::int64_t wanted_count(std::int64_t n, std::int64_t leading) {
  assert(leading >= 0);
  return leading > 0 ? std::min(leading, n) : n;
}

/// The exponent by which entries of size `largest` must be scaled to lie in [2^(to-1), 2^to).
int exponent_to(double largest, int to) {
  int exponent = 0;
  std::frexp(largest, &exponent);
  return to - exponent;
}

/// Reading the matrix once for one value and again for each of its bits costs as much as so many values by LAPACK's dqds: measured
/// on one core.
constexpr std::int64_t bisections_a_dqds = 8;

// ---- divide and conquer ----

/// Blocks become leaves at this many rows: then LAPACK's QR iteration is as quick as a merge.
constexpr std::int64_t largest_leaf = 40;

struct Block {
  std::int64_t first = 0;
  std::int32_t n = 0, extra = 0;
};

class DivideAndConquer {
public:
  DivideAndConquer(Context& context, std::span<double const> d, std::span<double const> e, std::int64_t k, bool overlap)
      : context_(context),
        kernels_(kernels_for<BidiagonalKernels>(context)),
        n_(static_cast<std::int64_t>(d.size())),
        k_(k),
        overlap_(overlap),
        values_(d.size()),
        ascending_(d.size()) {
    // Entries of order 1: squares in the secular equation neither overflow nor vanish.
    double const largest = largest_entry(d, e);
    exponent_ = largest > 0 ? exponent_to(largest, 0) : 0;
    d_.resize(d.size());
    e_.resize(d.size());
    for (std::size_t i = 0; i < d.size(); ++i) {
      d_[i] = std::ldexp(d[i], exponent_);
      e_[i] = i < e.size() ? std::ldexp(e[i], exponent_) : 0;
    }
    levels_.push_back({{0, static_cast<std::int32_t>(n_), 0}});
    while (levels_.back().front().n > largest_leaf || levels_.back().back().n > largest_leaf) {
      std::vector<Block> next;
      for (Block const& block : levels_.back()) {
        std::int32_t const left = block.n / 2;
        next.push_back({block.first, left, 1});
        next.push_back({block.first + left + 1, block.n - left - 1, block.extra});
      }
      levels_.push_back(std::move(next));
    }
  }

  [[nodiscard]] BidiagonalSvd run() {
    u_ = Array<double>(context_, n_ * n_);
    v_ = Array<double>(context_, n_ * n_);
    solve_leaves();
    if (levels_.size() > 1) {
      packed_ = Array<double>(context_, n_ * n_);
      small_ = Array<double>(context_, n_ * n_);
      auto const most = std::ssize(levels_[levels_.size() - 2]);
      for (Array<BidiagonalMerge>& merges : merges_there_)
        merges = Array<BidiagonalMerge>(context_, most);
      rotations_there_ = Array<ColumnRotation>(context_, n_ + most);
      // Both are downloaded whole, and some of their entries belong to no merge, or to no root of one.
      row_ = Array<double>(context_, n_);
      row_.set_zero();
      numbers_ = Array<double>(context_, 5 * n_);
      numbers_.set_zero();
      indices_ = Array<std::int32_t>(context_, 3 * n_);
    }
    for (std::size_t level = levels_.size() - 1; level-- > 0;)
      merge(level);
    return result();
  }

private:
  void solve_leaves() {
    std::vector<Block> const& leaves = levels_.back();
    std::int64_t leading = 0;
    for (Block const& leaf : leaves)
      leading = std::max<std::int64_t>(leading, leaf.n + leaf.extra);
    HostVector<double> u(static_cast<std::size_t>(leading * n_)), v(u.size());
    std::vector<LeafColumn> u_columns(static_cast<std::size_t>(n_)), v_columns(u_columns.size());
    std::atomic<int> failed = 0;
    LapackFunctions const& routines = lapack();  // errors must not be thrown among threads
#pragma omp parallel for schedule(dynamic) if (n_ > 4 * largest_leaf)
    for (std::size_t l = 0; l < leaves.size(); ++l) {
      int const n = leaves[l].n, extra = leaves[l].extra, m = n + extra, zero = 0, one = 1;
      auto const first = static_cast<std::size_t>(leaves[l].first);
      std::vector<double> vt(static_cast<std::size_t>(m) * m), left(static_cast<std::size_t>(n) * n),
          work(4 * static_cast<std::size_t>(m)),
          e(e_.begin() + static_cast<std::ptrdiff_t>(first), e_.begin() + static_cast<std::ptrdiff_t>(first) + n);
      for (int i = 0; i < m; ++i)
        vt[static_cast<std::size_t>(i) * (m + 1)] = 1;
      for (int i = 0; i < n; ++i)
        left[static_cast<std::size_t>(i) * (n + 1)] = 1;
      std::copy_n(d_.begin() + static_cast<std::ptrdiff_t>(first), n, values_.begin() + static_cast<std::ptrdiff_t>(first));
      int info = 0;
      routines.dlasdq("U", &extra, &n, &m, &n, &zero, values_.data() + first, e.data(), vt.data(), &m, left.data(), &n, nullptr,
                      &one, work.data(), &info);
      if (info != 0)
        failed = info;
      for (int j = 0; j < n; ++j) {
        std::copy_n(left.begin() + j * n, n, u.begin() + static_cast<std::ptrdiff_t>(first + j) * leading);
        u_columns[first + j] = {leaves[l].first, n};
        ascending_[first + j] = j;  // as dlasdq sorts
      }
      for (int j = 0; j < m; ++j) {
        for (int i = 0; i < m; ++i)
          v[(first + j) * leading + i] = vt[static_cast<std::size_t>(j) + static_cast<std::size_t>(i) * m];
        v_columns[first + j] = {leaves[l].first, m};
      }
      if (extra == 1) {  // the row between this block and the next has its own unit vector
        std::int64_t const middle = leaves[l].first + n;
        u[static_cast<std::size_t>(middle * leading)] = 1;
        u_columns[static_cast<std::size_t>(middle)] = {middle, 1};
      }
    }
    if (failed != 0)
      throw EnvironmentError("LAPACK's dlasdq failed with info = " + std::to_string(failed.load()));
    for (auto const& [columns, leaves_of, x] : {std::tie(u_columns, u, u_), std::tie(v_columns, v, v_)}) {
      x.set_zero();
      Array<LeafColumn> const columns_there(context_, std::span<LeafColumn const>(columns));
      Array<double> const leaves_there(context_, std::span<double const>(leaves_of));
      kernels_.scatter_leaves(context_, n_, columns_there.data(), leaves_there.data(), leading, x.data());
    }
  }

  /// What deflation leaves of a merge, and where it goes.
  struct Deflated {
    std::vector<ColumnRotation> rotations;
    std::vector<std::int32_t> columns;  ///< that need no update, ascending by value
    double scale = 1;                   ///< by which d and z were multiplied
  };

  /// Writes d, z, select and source of the merge. LAPACK's dlasd2 says what the steps are.
  Deflated deflate(BidiagonalMerge& merge, double const* coupling, double* d, double* z, std::int32_t* select,
                   std::int32_t* source) {
    Deflated result;
    std::int32_t const nl = merge.n_left, n = merge.n(), m = n + merge.extra;
    double const* const values = values_.data() + merge.first;
    double const alpha = d_[static_cast<std::size_t>(merge.first + nl)], beta = e_[static_cast<std::size_t>(merge.first + nl)];
    double largest = std::max(std::abs(alpha), std::abs(beta));
    for (std::int32_t p = 0; p < n; ++p)
      if (p != nl)
        largest = std::max(largest, values[p]);
    result.scale = largest > 0 ? std::ldexp(1.0, exponent_to(largest, 0)) : 1;
    double const tolerance = 8 * 0x1p-53 * largest * result.scale;

    std::vector<double> row(static_cast<std::size_t>(m));
    for (std::int32_t p = 0; p < m; ++p)
      row[static_cast<std::size_t>(p)] = result.scale * (p <= nl ? alpha : beta) * coupling[p];
    auto const row_at = [&](std::int32_t p) -> double& { return row[static_cast<std::size_t>(p)]; };
    auto const value_at = [&](std::int32_t p) { return result.scale * values[p]; };

    // Coordinate 0; the null vectors of both children give the one of the merged block.
    double first = row_at(nl);
    if (merge.extra == 1) {
      double const length = std::hypot(first, row_at(n));
      ColumnRotation rotation{nl, n, 1, 0};
      if (length > tolerance) {
        rotation.c = first / length;
        rotation.s = row_at(n) / length;
      }
      first = std::max(length, tolerance);
      result.rotations.push_back(rotation);
    } else if (std::abs(first) <= tolerance)
      first = tolerance;

    std::vector<std::int32_t> order;  // the children's columns, ascending by value
    order.reserve(static_cast<std::size_t>(n));
    std::int32_t const *left = ascending_.data() + merge.first, *right = left + nl + 1;
    for (std::int32_t i = 0, j = 0; i < nl || j < merge.n_right;)
      if (j == merge.n_right || (i < nl && values[left[i]] <= values[nl + 1 + right[j]]))
        order.push_back(left[i++]);
      else
        order.push_back(nl + 1 + right[j++]);

    enum : char { of_left, of_both, of_right };
    std::vector<char> kind(static_cast<std::size_t>(n), of_left);
    std::fill(kind.begin() + nl + 1, kind.end(), of_right);
    kind[static_cast<std::size_t>(nl)] = of_both;
    std::vector<std::int32_t> kept{nl};  // by coordinate
    std::int32_t candidate = -1;
    for (std::int32_t const p : order) {
      if (std::abs(row_at(p)) <= tolerance) {
        result.columns.push_back(p);
        continue;
      }
      if (candidate >= 0 && value_at(p) - value_at(candidate) <= tolerance) {  // equal values: turn all of z into one column
        double const length = std::hypot(row_at(p), row_at(candidate));
        result.rotations.push_back({candidate, p, row_at(p) / length, -row_at(candidate) / length});
        row_at(p) = length;
        if (kind[static_cast<std::size_t>(p)] != kind[static_cast<std::size_t>(candidate)])
          kind[static_cast<std::size_t>(p)] = of_both;
        result.columns.push_back(candidate);
      } else if (candidate >= 0)
        kept.push_back(candidate);
      candidate = p;
    }
    if (candidate >= 0)
      kept.push_back(candidate);

    for (std::size_t j = 0; j < kept.size(); ++j) {
      d[j] = value_at(kept[j]);
      z[j] = row_at(kept[j]);
    }
    d[0] = 0;
    z[0] = first;
    if (kept.size() > 1)
      d[1] = std::max(d[1], tolerance / 2);

    std::int32_t packed = 0;
    std::int32_t counts[3] = {};
    for (char const wanted : {of_left, of_both, of_right})
      for (std::size_t j = 0; j < kept.size(); ++j)
        if (kind[static_cast<std::size_t>(kept[j])] == wanted) {
          ++counts[static_cast<int>(wanted)];
          select[packed] = static_cast<std::int32_t>(j);
          source[packed++] = kept[j];
        }
    merge.k_left = counts[of_left];
    merge.k_both = counts[of_both];
    merge.k_right = counts[of_right];
    merge.n_wanted = packed;
    std::sort(result.columns.begin(), result.columns.end(),
              [&](std::int32_t a, std::int32_t b) { return values[a] != values[b] ? values[a] < values[b] : a < b; });
    for (std::int32_t const p : result.columns)
      source[packed++] = p;
    if (merge.extra == 1)
      source[packed] = n;
    return result;
  }

  void merge(std::size_t depth) {
    if (interrupt_requested())
      throw Interrupted();
    std::vector<Block> const& blocks = levels_[depth];
    std::vector<BidiagonalMerge>& merges = merges_[depth % 2];
    Array<BidiagonalMerge>& merges_there = merges_there_[depth % 2];
    merges.assign(blocks.size(), {});
    BidiagonalLevel level;
    level.order = n_;
    level.on_host = merges;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      merges[i].first = blocks[i].first;
      merges[i].n_left = blocks[i].n / 2;
      merges[i].n_right = blocks[i].n - merges[i].n_left - 1;
      merges[i].extra = blocks[i].extra;
      level.largest = std::max(level.largest, blocks[i].n + blocks[i].extra);
    }
    auto const upload_merges = [&] {
      context_.upload(merges_there.data(), merges.data(), std::ssize(merges) * std::int64_t{sizeof(BidiagonalMerge)});
    };
    upload_merges();
    level.merges = merges_there.data();
    kernels_.coupling_rows(context_, level, v_.data(), row_.data());
    HostVector<double> coupling(static_cast<std::size_t>(n_));
    row_.download(coupling);
    left_vectors();  // of the level before: a device makes them while the host deflates

    // d and z, then select and source.
    HostVector<double> numbers(static_cast<std::size_t>(2 * n_), 0.0);
    HostVector<std::int32_t> indices(static_cast<std::size_t>(3 * n_), 0);
    std::vector<Deflated> deflated(merges.size());
#pragma omp parallel for schedule(dynamic) if (merges.size() > 1 && n_ > 1000)
    for (std::size_t i = 0; i < merges.size(); ++i) {
      std::int64_t const first = merges[i].first;
      deflated[i] = deflate(merges[i], coupling.data() + first, numbers.data() + first, numbers.data() + n_ + first,
                            indices.data() + first, indices.data() + n_ + first);
    }
    std::vector<ColumnRotation> rotations;
    for (std::size_t i = 0; i < merges.size(); ++i) {
      merges[i].first_rotation = static_cast<std::int32_t>(rotations.size());
      rotations.insert(rotations.end(), deflated[i].rotations.begin(), deflated[i].rotations.end());
      merges[i].end_rotation = static_cast<std::int32_t>(rotations.size());
    }
    upload_merges();
    context_.upload(rotations_there_.data(), rotations.data(), std::ssize(rotations) * std::int64_t{sizeof(ColumnRotation)});
    context_.upload(numbers_.data(), numbers.data(), 16 * n_);
    context_.upload(indices_.data(), indices.data(), 8 * n_);
    level.rotations = rotations_there_.data();
    level.d = numbers_.data();
    level.z = numbers_.data() + n_;
    level.origin = numbers_.data() + 2 * n_;
    level.offset = numbers_.data() + 3 * n_;
    level.z_hat = numbers_.data() + 4 * n_;
    level.select = indices_.data();
    level.source = indices_.data() + n_;

    kernels_.solve_secular(context_, level);
    kernels_.recompute_row(context_, level);
    HostVector<double> roots(static_cast<std::size_t>(2 * n_));
    context_.download(roots.data(), level.origin, 16 * n_);
    kernels_.rotate(context_, level, true, v_.data());
    kernels_.pack(context_, level, true, v_.data(), packed_.data());
    if (!overlap_)
      context_.synchronize();
    for (std::size_t i = 0; i < merges.size(); ++i)
      update_values(merges[i], deflated[i], roots.data());
    if (depth == 0) {
      choose(merges[0]);
      upload_merges();
      context_.upload(indices_.data() + 2 * n_, wanted_.data(), 4 * std::ssize(wanted_));
      level.wanted = indices_.data() + 2 * n_;
    }
    kernels_.vectors(context_, level, true, small_.data());
    kernels_.multiply(context_, level, true, packed_.data(), small_.data(), v_.data());
    unfinished_ = level;
    if (depth == 0 || !overlap_)
      left_vectors();
  }

  /// The next level needs right vectors first.
  void left_vectors() {
    if (unfinished_.order == 0)
      return;
    kernels_.rotate(context_, unfinished_, false, u_.data());
    kernels_.pack(context_, unfinished_, false, u_.data(), packed_.data());
    kernels_.vectors(context_, unfinished_, false, small_.data());
    kernels_.multiply(context_, unfinished_, false, packed_.data(), small_.data(), u_.data());
    unfinished_.order = 0;
  }

  /// The merged block's values by column, and their order: roots ascend, deflated values as well.
  void update_values(BidiagonalMerge const& merge, Deflated const& deflated, double const* roots) {
    std::int32_t const k = merge.k(), n = merge.n();
    double* const values = values_.data() + merge.first;
    std::vector<double> updated(static_cast<std::size_t>(n));
    for (std::int32_t i = 0; i < k; ++i)
      updated[static_cast<std::size_t>(i)] = (roots[merge.first + i] + roots[n_ + merge.first + i]) / deflated.scale;
    for (std::int32_t i = k; i < n; ++i)
      updated[static_cast<std::size_t>(i)] = values[deflated.columns[static_cast<std::size_t>(i - k)]];
    std::copy(updated.begin(), updated.end(), values);
    std::int32_t* const order = ascending_.data() + merge.first;
    std::iota(order, order + n, 0);
    std::inplace_merge(order, order + k, order + n, [&](std::int32_t a, std::int32_t b) { return values[a] < values[b]; });
  }

  /// Which roots of the last merge give vectors that are wanted, and the columns where the wanted vectors will be, descending.
  void choose(BidiagonalMerge& merge) {
    std::int32_t const k = merge.k();
    for (std::int64_t i = 0; i < k_; ++i) {
      std::int32_t const column = ascending_[static_cast<std::size_t>(n_ - 1 - i)];
      if (column < k) {
        columns_.push_back(static_cast<std::int32_t>(wanted_.size()));
        wanted_.push_back(column);
      } else
        columns_.push_back(column);
    }
    merge.n_wanted = static_cast<std::int32_t>(wanted_.size());
  }

  [[nodiscard]] BidiagonalSvd result() {
    BidiagonalSvd result;
    result.values.resize(static_cast<std::size_t>(k_));
    for (std::int64_t i = 0; i < k_; ++i)
      result.values[static_cast<std::size_t>(i)] =
          std::ldexp(values_[static_cast<std::size_t>(ascending_[static_cast<std::size_t>(n_ - 1 - i)])], -exponent_);
    if (levels_.size() == 1)  // one leaf
      columns_.assign(ascending_.rbegin(), ascending_.rbegin() + k_);
    Array<std::int32_t> const columns_there(context_, std::span<std::int32_t const>(columns_));
    bool const reuse = k_ == n_ && packed_.size() > 0;
    result.u = reuse ? std::move(packed_) : Array<double>(context_, n_ * k_);
    kernels_.gather_columns(context_, n_, k_, columns_there.data(), u_.data(), result.u.data());
    result.v = reuse ? std::move(small_) : Array<double>(context_, n_ * k_);
    kernels_.gather_columns(context_, n_, k_, columns_there.data(), v_.data(), result.v.data());
    context_.synchronize();
    return result;
  }

  Context& context_;
  BidiagonalKernels const& kernels_;
  std::int64_t n_, k_;
  bool overlap_;
  int exponent_ = 0;
  std::vector<double> d_, e_;               ///< scaled
  std::vector<std::vector<Block>> levels_;  ///< root first
  std::vector<double> values_;              ///< by column
  std::vector<std::int32_t> ascending_;     ///< for every block, its columns in the order of their values
  std::vector<std::int32_t> wanted_, columns_;
  Array<double> u_, v_, packed_, small_, row_, numbers_;
  Array<std::int32_t> indices_;
  std::vector<BidiagonalMerge> merges_[2];  ///< of this level and the one before
  Array<BidiagonalMerge> merges_there_[2];
  Array<ColumnRotation> rotations_there_;
  BidiagonalLevel unfinished_;  ///< whose left vectors are to be made; order 0: none
};

}  // namespace

HostVector<double> bidiagonal_values(Context& context, std::span<double const> d, std::span<double const> e, std::int64_t leading) {
  assert(!d.empty() && e.size() + 1 == d.size());
  auto const n = static_cast<std::int64_t>(d.size()), k = wanted_count(n, leading);
  HostVector<double> values(static_cast<std::size_t>(k), 0.0);
  double const largest = largest_entry(d, e);
  if (largest == 0)
    return values;
  if (context.backend() == Backend::cpu && k * bisections_a_dqds > n * thread_count()) {
    std::vector<double> diagonal(d.begin(), d.end()), off(e.begin(), e.end()), work(4 * d.size());
    off.push_back(0);
    int const size = static_cast<int>(n);
    int info = 0;
    lapack().dlasq1(&size, diagonal.data(), off.data(), work.data(), &info);
    if (info == 0) {
      std::copy_n(diagonal.begin(), k, values.begin());
      return values;
    }
  }
  // Values are scaled to be as large as sturm_row allows. Those down to 1e-290 times the largest are then above `low`. A zero on
  // the diagonal becomes an entry below `low`.
  constexpr int top = 480;
  int const exponent = exponent_to(largest, top);
  double const low = 0x1p-500, least_square = 0x1p-1020;
  std::vector<double> squares(2 * d.size(), 0.0);
  std::vector<double> scaled_d(d.size()), scaled_e(e.size());
  for (std::size_t i = 0; i < d.size(); ++i) {
    scaled_d[i] = std::ldexp(d[i], exponent);
    squares[2 * i] = std::max(scaled_d[i] * scaled_d[i], least_square);
    if (i < e.size()) {
      scaled_e[i] = std::ldexp(e[i], exponent);
      squares[2 * i + 1] = scaled_e[i] * scaled_e[i];
    }
  }
  Array<double> const squares_there(context, std::span<double const>(squares));
  Array<double> values_there(context, k);
  kernels_for<BidiagonalKernels>(context).bisect(context, n, squares_there.data(), low, largest_value_bound(scaled_d, scaled_e), k,
                                                 values_there.data());
  values_there.download(values);
  std::sort(values.begin(), values.end(), std::greater<>());  // neighbours may have crossed by a rounding error
  for (double& value : values)
    value = value > low ? std::ldexp(value, -exponent) : 0;
  return values;
}

BidiagonalSvd bidiagonal_svd(Context& context, std::span<double const> d, std::span<double const> e, std::int64_t leading,
                             bool overlap) {
  assert(!d.empty() && e.size() + 1 == d.size());
  auto const n = static_cast<std::int64_t>(d.size());
  require_memory(context, bidiagonal_svd_bytes(n, leading), "the singular value decomposition of the bidiagonal",
                 "use the cpu backend");
  return DivideAndConquer(context, d, e, wanted_count(n, leading), overlap).run();
}

std::int64_t bidiagonal_svd_bytes(std::int64_t n, std::int64_t leading) {
  std::int64_t const k = wanted_count(n, leading);
  return 8 * n * (4 * n + (k < n ? 2 * k : 0)) + 200 * n;
}

}  // namespace poisson
