#include "gpu/elements/label_operator.hpp"

#include "gpu/core/host_vector.hpp"
#include "gpu/kernels/label_stencil_rows.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

namespace poisson {

namespace {

/// The numbers t_m of LabelStencilView, t[m - 1], of cells with these edges, and the entries that are their sums.
struct OfLabel {
  std::array<double, 7> modes{};
  std::array<double, 8> entries{};

  OfLabel(std::array<double, 3> const& cell, std::array<double, 3> const& k) {
    if (k == std::array<double, 3>{})  // whose exponent is none
      return;
    if (is_cube(cell) && k[0] == k[1] && k[0] == k[2]) {
      // The mode of (-1, 1) in all directions, a 48th of k h, has a factor of 2 or 3 in others: three times it is exact.
      double const mode = k[0] * cell[0] / 48;
      int const exponent = std::ilogb(mode) - 50;
      double const rounded = std::ldexp(std::nearbyint(std::ldexp(mode, -exponent)), exponent);
      entries[0] = 16 * rounded;
      for (unsigned i = 1; i < 8; ++i) {
        modes[i - 1] = (4 - std::popcount(i)) * rounded;
        entries[i] = std::popcount(i) == 1 ? 0 : -4 * rounded;
      }
      return;
    }
    double sum = 0;
    for (int m = 1; m < 8; ++m) {
      double& mode = modes[static_cast<std::size_t>(m - 1)];
      for (std::size_t d = 0; d < 3; ++d)
        if ((m >> d & 1) != 0) {
          // Eigenvalues of the matrices of an edge: of stiffness 2 / h; of mass h / 2, and h / 6 of the mode (-1, 1).
          std::size_t const e = d == 0 ? 1 : 0, g = d == 2 ? 1 : 2;
          double const of_e = cell[e] / ((m >> e & 1) != 0 ? 6 : 2), of_g = cell[g] / ((m >> g & 1) != 0 ? 6 : 2);
          mode += k[d] * (2 / cell[d]) * (of_e * of_g) / 8;
        }
      sum += mode;
    }
    // Multiples of what is a little more than the last bit of the largest entry have exact sums.
    int const exponent = std::ilogb(sum) - 51;
    for (double& mode : modes)
      mode = std::ldexp(std::nearbyint(std::ldexp(mode, -exponent)), exponent);
    for (int differing = 0; differing < 8; ++differing)
      for (int m = 1; m < 8; ++m) {
        int const both = m & differing;
        bool const odd = ((both & 1) + (both >> 1 & 1) + (both >> 2)) % 2 != 0;
        entries[static_cast<std::size_t>(differing)] += (odd ? -1 : 1) * modes[static_cast<std::size_t>(m - 1)];
      }
  }

  /// Edges are equal but for rounding.
  [[nodiscard]] static bool is_cube(std::array<double, 3> const& cell) {
    constexpr double rounding = 4 * std::numeric_limits<double>::epsilon();
    return std::abs(cell[1] - cell[0]) <= rounding * cell[0] && std::abs(cell[2] - cell[0]) <= rounding * cell[0];
  }
};

}  // namespace

LabelOperator::LabelOperator(Context& context, BoxElements const& box, Array<std::uint8_t> labels,
                             std::span<std::array<double, 3> const> k)
    : ProductsOfKernels(context, {}), bytes_(std::move(labels)) {
  assert(std::ssize(k) <= 256);
  set_tables(box, k);
}

LabelOperator::LabelOperator(Context& context, BoxElements const& box, Array<std::uint16_t> labels,
                             std::span<std::array<double, 3> const> k)
    : ProductsOfKernels(context, {}), words_(std::move(labels)) {
  assert(std::ssize(k) <= 65536);
  set_tables(box, k);
}

LabelOperator::LabelOperator(Context& context, LabelOperator const& other)
    : ProductsOfKernels(context, other.view_),
      bytes_(other.bytes_.copy_to(context)),
      words_(other.words_.copy_to(context)),
      modes_(other.modes_.copy_to(context)),
      entries_(other.entries_.copy_to(context)) {
  set_pointers();
}

std::unique_ptr<LabelOperator> LabelOperator::with(std::span<std::array<double, 3> const> k) const {
  std::unique_ptr<LabelOperator> result(new LabelOperator(context(), *this));
  result->set_tables(view_.box, k);
  return result;
}

void LabelOperator::set_tables(BoxElements const& box, std::span<std::array<double, 3> const> k) {
  assert(!box.is_graded() && !k.empty());
  assert(bytes_.size() + words_.size() == (box.nodes[0] - 1) * (box.nodes[1] - 1) * (box.nodes[2] - 1));
  view_.box = box;
  for (BoxFace& face : view_.box.faces) {
    assert(face.type != BoxFace::Type::robin);
    face.value = face.alpha = nullptr;
  }
  HostVector<double> modes, entries;
  view_.cubic = true;
  for (auto const& of_label : k) {
    OfLabel const table(box.cell, of_label);
    auto const& t = table.modes;
    view_.cubic =
        view_.cubic && t[0] == 3 * t[6] && t[1] == t[0] && t[3] == t[0] && t[2] == 2 * t[6] && t[4] == t[2] && t[5] == t[2];
    modes.insert(modes.end(), t.begin(), t.end());
    entries.insert(entries.end(), table.entries.begin(), table.entries.end());
  }
  modes.resize(modes.size() + 7, 0.0);
  entries.resize(entries.size() + 8, 0.0);
  view_.n_labels = static_cast<std::int32_t>(k.size());
  modes_ = Array<double>(context(), std::span<double const>(modes));
  entries_ = Array<double>(context(), std::span<double const>(entries));
  set_pointers();
}

void LabelOperator::set_pointers() {
  view_.bytes = bytes_.size() > 0 ? bytes_.data() : nullptr;
  view_.words = words_.size() > 0 ? words_.data() : nullptr;
  view_.modes = modes_.data();
  view_.entries = entries_.data();
}

void LabelOperator::diagonal(Pointer<DoubleDouble> d) const {
  diagonal(d.hi);
  context().set_zero(d.lo, 8 * n_rows());
}

bool LabelOperator::residual(double const* x, double const* x_low, double const* b, double* r) const {
  kernels_.residual(context(), view_, x, x_low, b, r);
  return true;
}

std::unique_ptr<Matrix> LabelOperator::copied_to(Context& target) const {
  return std::unique_ptr<Matrix>(new LabelOperator(target, *this));
}

CsrMatrix LabelOperator::host_csr() const {
  BoxElements const& box = view_.box;
  std::int64_t const n = n_rows(), nx = box.nodes[0], ny = box.nodes[1];
  CsrMatrix result;
  result.n_rows = result.n_columns = n;
  result.row_ptr.push_back(0);
  for (std::int64_t row = 0; row < n; ++row) {
    for (int s = 0; s < 27; ++s) {
      double const value = label_rows::stored_entry(view_, {{row % nx, row / nx % ny, row / (nx * ny)}}, s);
      if (value == 0 && std::signbit(value))
        continue;
      result.columns.push_back(static_cast<std::int32_t>(row + ((s / 9 - 1) * ny + s / 3 % 3 - 1) * nx + s % 3 - 1));
      result.values.push_back(value);
    }
    result.row_ptr.push_back(std::ssize(result.columns));
  }
  return result;
}

}  // namespace poisson
