#include "assembly/dealii/curved_cells.hpp"

#include <algorithm>

namespace poisson::assembly {

void lagrange_values(int order, double t, std::span<double> values) {
  double const x = t * order;  // the nodes are 0, 1, ..., order
  for (int a = 0; a <= order; ++a) {
    double product = 1;
    for (int b = 0; b <= order; ++b)
      if (b != a)
        product *= (x - b) / (a - b);
    values[static_cast<std::size_t>(a)] = product;
  }
}

void lagrange_derivatives(int order, double t, std::span<double> derivatives) {
  double const x = t * order;
  for (int a = 0; a <= order; ++a) {
    double sum = 0;
    for (int c = 0; c <= order; ++c) {
      if (c == a)
        continue;
      double product = static_cast<double>(order) / (a - c);
      for (int b = 0; b <= order; ++b)
        if (b != a && b != c)
          product *= (x - b) / (a - b);
      sum += product;
    }
    derivatives[static_cast<std::size_t>(a)] = sum;
  }
}

CurvedImages::CurvedImages(CurvedCells const& cells) : cells_(cells) {
  for (auto& values : values_)
    values.resize(static_cast<std::size_t>(cells.order + 1));
}

dealii::Point<3> CurvedImages::operator()(std::size_t cell, std::array<double, 3> const& place) {
  for (std::size_t d = 0; d < 3; ++d)
    lagrange_values(cells_.order, place[d], values_[d]);
  dealii::Point<3> x;
  std::size_t node = 0;
  auto const nodes = cells_.of_cell(cell);
  for (double const z : values_[2])
    for (double const y : values_[1])
      for (double const value : values_[0])
        x += nodes[node++] * (value * y * z);
  return x;
}

bool is_trilinear(int order, std::span<dealii::Point<3> const> nodes) {
  int const n = order + 1;
  auto const node = [&](int i, int j, int k) { return nodes[static_cast<std::size_t>((k * n + j) * n + i)]; };
  double const size = node(0, 0, 0).distance(node(order, order, order));
  for (int k = 0; k < n; ++k)
    for (int j = 0; j < n; ++j)
      for (int i = 0; i < n; ++i) {
        dealii::Point<3> straight;
        for (int v = 0; v < 8; ++v) {
          int const weight = (v & 1 ? i : order - i) * (v & 2 ? j : order - j) * (v & 4 ? k : order - k);
          straight += weight * node((v & 1) * order, (v >> 1 & 1) * order, (v >> 2) * order);
        }
        straight /= order * order * order;
        if (!(straight.distance(node(i, j, k)) <= 1e-9 * size))
          return false;
      }
  return true;
}

void turn_frame(int order, std::array<int, 8> const& corners, std::span<dealii::Point<3>> nodes) {
  int const n = order + 1;
  std::vector<dealii::Point<3>> const old(nodes.begin(), nodes.end());
  for (int k = 0; k < n; ++k)
    for (int j = 0; j < n; ++j)
      for (int i = 0; i < n; ++i) {
        std::array<int, 3> const index{i, j, k};
        int from = 0;
        for (int d = 0; d < 3; ++d) {
          int const bit = corners[static_cast<std::size_t>(1 << d)] ^ corners[0];  // that of the old direction
          int const along = corners[0] & bit ? order - index[static_cast<std::size_t>(d)] : index[static_cast<std::size_t>(d)];
          from += along * (bit == 1 ? 1 : bit == 2 ? n : n * n);
        }
        nodes[static_cast<std::size_t>((k * n + j) * n + i)] = old[static_cast<std::size_t>(from)];
      }
}

void to_equidistant(std::span<double const> points, std::span<dealii::Point<3>> nodes) {
  std::size_t const n = points.size();
  // weight[i * n + a]: of the polynomial that is 1 at points[a] and 0 at the others, at node i.
  std::vector<double> weight(n * n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t a = 0; a < n; ++a) {
      double const x = static_cast<double>(i) / static_cast<double>(n - 1);
      weight[i * n + a] = 1;
      for (std::size_t b = 0; b < n; ++b)
        if (b != a)
          weight[i * n + a] *= (x - points[b]) / (points[a] - points[b]);
    }
  std::vector<dealii::Point<3>> line(n);
  for (std::size_t const stride : {std::size_t{1}, n, n * n})
    for (std::size_t begin = 0; begin < n * n * n; ++begin) {
      if (begin / stride % n != 0)
        continue;
      for (std::size_t i = 0; i < n; ++i) {
        line[i] = {};
        for (std::size_t a = 0; a < n; ++a)
          line[i] += weight[i * n + a] * nodes[begin + a * stride];
      }
      for (std::size_t i = 0; i < n; ++i)
        nodes[begin + i * stride] = line[i];
    }
}

}  // namespace poisson::assembly
