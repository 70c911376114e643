#include "output/picture/node_flux.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <compare>
#include <cstring>
#include <omp.h>
#include <string>

namespace poisson::output {

namespace {

std::vector<double> derivatives_at_nodes(std::vector<double> const& nodes) {
  std::size_t const n = nodes.size();
  std::vector<double> matrix(n * n, 0);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t a = 0; a < n; ++a)
      for (std::size_t m = 0; m < n; ++m) {
        if (m == a)
          continue;
        double product = 1 / (nodes[a] - nodes[m]);
        for (std::size_t b = 0; b < n; ++b)
          if (b != a && b != m)
            product *= (nodes[i] - nodes[b]) / (nodes[a] - nodes[b]);
        matrix[i * n + a] += product;
      }
  return matrix;
}

Vec3 conducted(std::span<double const> k, Vec3 const& g) {
  if (k.size() == 1)
    return {k[0] * g[0], k[0] * g[1], k[0] * g[2]};
  if (k.size() == 3)
    return {k[0] * g[0], k[1] * g[1], k[2] * g[2]};
  return {k[0] * g[0] + k[3] * g[1] + k[5] * g[2], k[3] * g[0] + k[1] * g[1] + k[4] * g[2],
          k[5] * g[0] + k[4] * g[1] + k[2] * g[2]};
}

/// A node in the numbering of the whole mesh, and a material.
struct SharedKey {
  std::int64_t node = 0, material = 0;
  friend auto operator<=>(SharedKey const&, SharedKey const&) = default;
};

/// The nodes on faces between a part and other parts: their numbers in the whole mesh and in the part, ascending.
std::vector<std::pair<std::int64_t, std::int64_t>> rim_of(Mesh const& mesh, PicturePart const& part) {
  std::vector<std::pair<std::int64_t, std::int64_t>> rim;
  std::vector<std::int64_t> nodes(static_cast<std::size_t>(mesh.nodes_per_cell()));
  int const p = mesh.order();
  std::array<int, 3> const stride{1, p + 1, (p + 1) * (p + 1)};
  auto outer = part.faces.begin();
  for (BoundaryFace const& face : boundary_faces(mesh)) {
    while (outer != part.faces.end() && std::pair(outer->cell, outer->face) < std::pair(face.cell, face.face))
      ++outer;
    if (outer != part.faces.end() && *outer == face)
      continue;
    mesh.nodes(face.cell, nodes.data());
    for (int i = 0; i < mesh.nodes_per_cell(); ++i)
      if (i / stride[static_cast<std::size_t>(face.face / 2)] % (p + 1) == face.face % 2 * p) {
        std::int64_t const node = nodes[static_cast<std::size_t>(i)];
        rim.emplace_back(part.number_in_whole(node), node);
      }
  }
  std::sort(rim.begin(), rim.end());
  rim.erase(std::unique(rim.begin(), rim.end()), rim.end());
  return rim;
}

/// The lists of all ranks in one, ascending, without repetitions.
std::vector<SharedKey> united(Communicator& ranks, std::vector<SharedKey> const& mine) {
  std::string bytes(mine.size() * sizeof(SharedKey), '\0');
  std::memcpy(bytes.data(), mine.data(), bytes.size());
  std::vector<SharedKey> all;
  for (std::string const& of_rank : gather_texts(ranks, bytes)) {
    std::size_t const before = all.size();
    all.resize(before + of_rank.size() / sizeof(SharedKey));
    std::memcpy(all.data() + before, of_rank.data(), of_rank.size());
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

}  // namespace

NodeFlux::NodeFlux(Mesh const& mesh, FluxData const& data, std::span<std::int64_t const> cells, PicturePart const* part)
    : mesh_(mesh), data_(data), derivative_(derivatives_at_nodes(nodes_of_a_cell(mesh))) {
  int const n_local = mesh.nodes_per_cell();
  std::vector<std::int64_t> nodes(static_cast<std::size_t>(n_local));
  keys_.reserve(cells.size() * nodes.size());
  std::vector<std::uint64_t> wanted(static_cast<std::size_t>(mesh.n_points() / 64 + 1), 0);
  for (auto const cell : cells) {
    mesh.nodes(cell, nodes.data());
    for (std::int64_t const node : nodes) {
      keys_.emplace_back(node, material(cell));
      wanted[static_cast<std::size_t>(node / 64)] |= std::uint64_t{1} << (node % 64);
    }
  }
  // Nodes between parts have cells on other ranks: what some rank wants to know of them all add up.
  std::vector<SharedKey> shared;
  std::vector<Key> shared_here;  // the same in this part; node -1: it is not here
  if (part != nullptr) {
    auto const rim = rim_of(mesh, *part);
    std::vector<std::int64_t> on_rim;
    for (auto const& [number, node] : rim)
      on_rim.push_back(node);
    std::sort(on_rim.begin(), on_rim.end());
    for (Key const& key : keys_)
      if (std::binary_search(on_rim.begin(), on_rim.end(), key.first))
        shared.push_back({part->number_in_whole(key.first), key.second});
    shared = united(part->ranks, shared);
    for (SharedKey const& key : shared) {
      auto const at = std::lower_bound(rim.begin(), rim.end(), std::pair(key.node, std::int64_t{0}));
      bool const here = at != rim.end() && at->first == key.node;
      shared_here.emplace_back(here ? at->second : -1, static_cast<int>(key.material));
      if (!here)
        continue;
      keys_.push_back(shared_here.back());
      wanted[static_cast<std::size_t>(at->second / 64)] |= std::uint64_t{1} << (at->second % 64);
    }
  }
  std::sort(keys_.begin(), keys_.end());
  keys_.erase(std::unique(keys_.begin(), keys_.end()), keys_.end());
  auto const is_wanted = [&](std::int64_t node) { return (wanted[static_cast<std::size_t>(node / 64)] >> (node % 64) & 1U) != 0; };

  // The cells around these nodes, in their order: sums do not depend on the number of threads.
  std::vector<std::vector<std::int64_t>> found(static_cast<std::size_t>(omp_get_max_threads()));
  constexpr std::int64_t at_once = 1024;
  auto const n = mesh.n_cells();
#pragma omp parallel
  {
    auto& mine = found[static_cast<std::size_t>(omp_get_thread_num())];
    std::vector<std::int64_t> of_cells(nodes.size() * static_cast<std::size_t>(at_once));
#pragma omp for schedule(static)
    for (std::int64_t first = 0; first < n; first += at_once) {
      std::int64_t const count = std::min(at_once, n - first);
      mesh.nodes(first, count, of_cells.data());
      for (std::int64_t i = 0; i < count; ++i)
        if (std::ranges::any_of(std::span(of_cells).subspan(static_cast<std::size_t>(i) * nodes.size(), nodes.size()), is_wanted))
          mine.push_back(first + i);
    }
  }
  fetch(found);
  flux_.resize(keys_.size());
  std::vector<int> count(keys_.size(), 0);
  std::vector<double> in_cell;
  for (auto const& of_thread : found)
    for (auto const cell : of_thread) {
      mesh.nodes(cell, nodes.data());
      flux_in_cell(cell, nodes, in_cell);
      for (int i = 0; i < n_local; ++i) {
        Key const key{nodes[static_cast<std::size_t>(i)], material(cell)};
        if (!is_wanted(key.first))
          continue;
        auto const at = std::lower_bound(keys_.begin(), keys_.end(), key);
        if (at == keys_.end() || *at != key)
          continue;
        auto const place = static_cast<std::size_t>(at - keys_.begin());
        ++count[place];
        for (std::size_t d = 0; d < 3; ++d)
          flux_[place][d] += in_cell[d * static_cast<std::size_t>(n_local) + static_cast<std::size_t>(i)];
      }
    }
  if (!shared.empty()) {  // on all ranks
    auto const place_of = [&](Key const& key) {
      return static_cast<std::size_t>(std::lower_bound(keys_.begin(), keys_.end(), key) - keys_.begin());
    };
    struct Sum {
      Vec3 flux{};
      int count = 0;
    };
    std::vector<Sum> mine(shared.size());
    for (std::size_t i = 0; i < shared.size(); ++i)
      if (shared_here[i].first >= 0) {
        std::size_t const place = place_of(shared_here[i]);
        mine[i] = {flux_[place], count[place]};
        flux_[place] = {};
        count[place] = 0;
      }
    auto const add = [](Sum& sum, Sum const& other) {
      sum.count += other.count;
      for (std::size_t d = 0; d < 3; ++d)
        sum.flux[d] += other.flux[d];
    };
    combine_lists(part->ranks, std::span(mine), add, Communicator::Order::of_ranks);
    for (std::size_t i = 0; i < mine.size(); ++i)
      if (Key const& key = shared_here[i]; key.first >= 0) {
        std::size_t const place = place_of(key);
        count[place] += mine[i].count;
        for (std::size_t d = 0; d < 3; ++d)
          flux_[place][d] += mine[i].flux[d];
      }
  }
  for (std::size_t i = 0; i < flux_.size(); ++i)
    for (double& component : flux_[i])
      component /= count[i];
}

void NodeFlux::fetch(std::vector<std::vector<std::int64_t>> const& cells) {
  if (!data_.get)
    return;
  std::vector<std::int64_t> of_cell(static_cast<std::size_t>(mesh_.nodes_per_cell()));
  is_fetched_.assign(static_cast<std::size_t>(mesh_.n_points() / 64 + 1), 0);
  for (auto const& list : cells)
    for (std::int64_t const cell : list) {
      mesh_.nodes(cell, of_cell.data());
      for (std::int64_t const node : of_cell)
        is_fetched_[static_cast<std::size_t>(node / 64)] |= std::uint64_t{1} << (node % 64);
    }
  std::vector<std::int64_t> nodes;
  for (std::size_t word = 0; word < is_fetched_.size(); ++word) {
    fetched_before_.push_back(std::ssize(nodes));
    for (std::uint64_t left = is_fetched_[word]; left != 0; left &= left - 1)
      nodes.push_back(static_cast<std::int64_t>(64 * word) + std::countr_zero(left));
  }
  u_fetched_.resize(nodes.size());
  data_.get(nodes, u_fetched_.data());
}

double NodeFlux::u(std::int64_t node) const {
  if (!data_.get)
    return data_.u[static_cast<std::size_t>(node)];
  auto const word = static_cast<std::size_t>(node / 64);
  std::uint64_t const before = is_fetched_[word] & ((std::uint64_t{1} << (node % 64)) - 1);
  return u_fetched_[static_cast<std::size_t>(fetched_before_[word] + std::popcount(before))];
}

void NodeFlux::flux_in_cell(std::int64_t cell, std::span<std::int64_t const> nodes, std::vector<double>& out) const {
  auto const n = static_cast<std::size_t>(mesh_.order()) + 1, n_local = n * n * n;
  out.resize(3 * n_local);
  auto const components = static_cast<std::size_t>(data_.coefficient_components);
  auto const k = data_.coefficient.subspan(static_cast<std::size_t>(cell) * components, components);
  std::array<std::size_t, 3> const stride{1, n, n * n};
  std::vector<double> points(3 * n_local), values;
  mesh_.points_of(nodes, points.data());
  for (std::int64_t const node : nodes)
    values.push_back(u(node));
  for (std::size_t i = 0; i < n_local; ++i) {
    // Rows: derivatives of x, y, z and u along the three reference coordinates.
    std::array<std::array<double, 3>, 4> slope{};
    for (std::size_t d = 0; d < 3; ++d) {
      std::size_t const at = i / stride[d] % n;
      for (std::size_t a = 0; a < n; ++a) {
        double const weight = derivative_[at * n + a];
        std::size_t const node = i - at * stride[d] + a * stride[d];
        for (std::size_t e = 0; e < 3; ++e)
          slope[e][d] += weight * points[3 * node + e];
        slope[3][d] += weight * values[node];
      }
    }
    // The gradient g solves J^T g = du/dxi: Cramer's rule.
    auto const determinant = [](Vec3 const& a, Vec3 const& b, Vec3 const& c) {
      return a[0] * (b[1] * c[2] - b[2] * c[1]) - a[1] * (b[0] * c[2] - b[2] * c[0]) + a[2] * (b[0] * c[1] - b[1] * c[0]);
    };
    double const det = determinant(slope[0], slope[1], slope[2]);
    Vec3 const gradient{determinant(slope[3], slope[1], slope[2]) / det, determinant(slope[0], slope[3], slope[2]) / det,
                        determinant(slope[0], slope[1], slope[3]) / det};
    Vec3 const flux = conducted(k, gradient);
    for (std::size_t d = 0; d < 3; ++d)
      out[d * n_local + i] = -flux[d];
  }
}

CellField NodeFlux::field() const {
  return {3, [this](std::int64_t cell, double* out) {
            int const n_local = mesh_.nodes_per_cell();
            std::vector<std::int64_t> nodes(static_cast<std::size_t>(n_local));
            mesh_.nodes(cell, nodes.data());
            for (int i = 0; i < n_local; ++i) {
              Key const key{nodes[static_cast<std::size_t>(i)], material(cell)};
              auto const place = std::lower_bound(keys_.begin(), keys_.end(), key) - keys_.begin();
              for (std::size_t d = 0; d < 3; ++d)
                out[d * static_cast<std::size_t>(n_local) + static_cast<std::size_t>(i)] =
                    flux_[static_cast<std::size_t>(place)][d];
            }
          }};
}

NodeFlux::Bytes NodeFlux::bytes(std::int64_t n_cells, int order, std::int64_t n_points) {
  // Keys begin as all nodes of all cells. The cells are layers of one, whose nodes most of them share.
  std::int64_t const p = order, n_local = (p + 1) * (p + 1) * (p + 1), of_layer = (p + 1) * p * p;
  constexpr auto of_key = static_cast<std::int64_t>(sizeof(Key)), of_node = static_cast<std::int64_t>(sizeof(Vec3) + sizeof(int));
  // And u around them, with its nodes.
  // And where u is asked for, it and its nodes, of two layers more.
  return {n_cells * (n_local * of_key + of_layer * (of_node + 3 * 16) + 32) + 3 * n_points / 8,
          n_cells * of_layer * (of_key + 3 * 8 + static_cast<std::int64_t>(sizeof(Vec3))) + n_points / 4};
}

}  // namespace poisson::output
