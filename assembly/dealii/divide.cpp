#include "assembly/dealii/divide.hpp"

#include <algorithm>
#include <deal.II/base/config.h>
#include <deal.II/lac/sparsity_pattern.h>
#include <deal.II/lac/sparsity_tools.h>
#include <numeric>

namespace poisson::assembly {

std::vector<std::int32_t> divide_by_metis(Graph const& graph, int n_parts) {
  std::int64_t const n = static_cast<std::int64_t>(graph.offsets.size()) - 1;
  std::vector<unsigned> part(static_cast<std::size_t>(n), 0);
  if (n <= n_parts) {
    std::iota(part.begin(), part.end(), 0U);
  } else if (n_parts > 1) {
#ifdef DEAL_II_WITH_METIS
    std::int64_t most = 0;
    for (std::int64_t i = 0; i < n; ++i)
      most = std::max(most, graph.offsets[i + 1] - graph.offsets[i]);
    auto const size = static_cast<unsigned>(n);
    dealii::SparsityPattern pairs(size, size, static_cast<unsigned>(most) + 1);
    for (std::int64_t i = 0; i < n; ++i)
      for (auto e = graph.offsets[i]; e < graph.offsets[i + 1]; ++e)
        pairs.add(static_cast<unsigned>(i), static_cast<unsigned>(graph.neighbors[e]));
    pairs.compress();
    dealii::SparsityTools::partition(pairs, static_cast<unsigned>(n_parts), part);
#else
    for (std::int64_t i = 0; i < n; ++i)
      part[i] = static_cast<unsigned>(i * n_parts / n);
#endif
  }
  std::vector<std::int32_t> number(static_cast<std::size_t>(n_parts), -1);
  std::vector<std::int32_t> result;
  std::int32_t next = 0;
  for (unsigned const of_vertex : part) {
    if (number[of_vertex] < 0)
      number[of_vertex] = next++;
    result.push_back(number[of_vertex]);
  }
  return result;
}

}  // namespace poisson::assembly
