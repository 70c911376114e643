#include "gpu/preconditioners/inclusions.hpp"

#include "gpu/elements/label_operator.hpp"
#include "gpu/formats/half_cds.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/preconditioners/box_blocks.hpp"
#include "gpu/preconditioners/multigrid_hierarchy.hpp"

#include <algorithm>
#include <span>
#include <type_traits>
#include <vector>

namespace poisson {

namespace {

using Counts = std::array<std::int64_t, 3>;
using Numbers = std::vector<std::int32_t>;

/// Couplings of one part are more than this share of sqrt(a_ii a_jj), those between two parts less. In cubes of one k the weakest
/// one, of two opposite vertices, is 0.09; that to a node with 4000 times the coefficient is 0.002.
constexpr double strong_coupling = 0.01;
/// What couples rows of a part to anything else is less than this share of their diagonal.
constexpr double weak_coupling = 0.01;
/// Energies that are a smaller share of the diagonal are rounding.
constexpr double rounding_of_energy = 1e-13;
constexpr std::size_t nodes_of_chunk = 256;
/// e_c falls to 0 over so many layers of nodes around the inclusion, by so many steps of Jacobi's method.
constexpr int layers_around = 2, steps_of_jacobi = 8;
/// It does where inclusions have not more than this share of all nodes.
constexpr std::int64_t most_with_layers = 100;
/// And there are none where they have more than this share: their functions would be one more multigrid.
constexpr std::int64_t share_of_inclusions = 4;
/// Larger ones are left to cg: there cannot be many, and what it takes to make their functions would show.
constexpr std::size_t most_of_one = std::size_t{1} << 17;
/// Rows that are brought to the host at once.
constexpr std::size_t rows_of_inclusions = std::size_t{1} << 20;

/// Calls pass(slab) for all planes.
template <class Pass>
void for_slabs(Matrix const& a, Counts const& nodes, Pass const& pass) {
  NodeBox const whole{{}, nodes};
  if (auto const* const stored = dynamic_cast<HalfCds const*>(&a); stored != nullptr) {
    BoxSlab slab{level_of<double>(whole), 0, 0, nodes[2]};
    slab.level.values = stored->view().values;
    pass(slab);
    return;
  }
  auto const& labels = dynamic_cast<LabelOperator const&>(a);
  std::int64_t const plane = nodes[0] * nodes[1], planes = std::max<std::int64_t>(1, rows_of_slab(nodes) / plane - 2);
  Array<double> values(a.context(), half_stencil::diagonals * std::min(nodes[2], planes + 2) * plane);
  for (std::int64_t begin = 0; begin < nodes[2]; begin += planes) {
    std::int64_t const end = std::min(begin + planes, nodes[2]);
    NodeBox box = whole;
    box.low[2] = std::max<std::int64_t>(begin - 1, 0);
    box.high[2] = std::min(end + 1, nodes[2]);
    labels.fill_diagonals(box.low[2], box.high[2], values.data());
    BoxSlab slab{level_of<double>(box), box.low[2], begin, end};
    slab.level.values = values.data();
    pass(slab);
  }
}

}  // namespace

/// The nodes of all inclusions, those of one after those of another, ascending; empty where there are none, or too many.
std::vector<Inclusions::Node> Inclusions::find_nodes(Matrix const& a, Counts const& nodes) {
  Context& context = a.context();
  auto const& kernels = kernels_for<InclusionKernels>(context);
  std::int64_t const n = nodes[0] * nodes[1] * nodes[2];
  Array<std::int32_t> root(context, n);
  kernels.begin(context, n, root.data());
  for_slabs(a, nodes, [&](BoxSlab const& slab) { kernels.join(context, slab, strong_coupling, root.data()); });
  kernels.find_roots(context, n, root.data());
  Array<std::uint8_t> anchored(context, n);
  anchored.set_zero();
  for_slabs(a, nodes,
            [&](BoxSlab const& slab) { kernels.mark_anchored(context, slab, weak_coupling, root.data(), anchored.data()); });
  std::int64_t const count = kernels.collect(context, n, root.data(), anchored.data(), 0, nullptr);
  if (count == 0 || count > n / share_of_inclusions)
    return {};
  Array<std::int32_t> list(context, 2 * count);
  static_cast<void>(kernels.collect(context, n, root.data(), anchored.data(), count, list.data()));
  std::vector<Node> found(static_cast<std::size_t>(count));
  context.download(found.data(), list.data(), list.bytes());
  std::sort(found.begin(), found.end(), [](Node const& one, Node const& other) {
    return one.root != other.root ? one.root < other.root : one.number < other.number;
  });
  return found;
}

namespace {

/// Adds the neighbours of some nodes to them. Numbers ascend.
Numbers with_layer(Numbers const& of, Counts const& nodes) {
  Numbers result;
  result.reserve(3 * of.size());
  for (std::int32_t const number : of) {
    std::int64_t const x = number % nodes[0], y = number / nodes[0] % nodes[1], z = number / (nodes[0] * nodes[1]);
    for (std::int64_t k = std::max<std::int64_t>(z - 1, 0); k <= std::min(z + 1, nodes[2] - 1); ++k)
      for (std::int64_t j = std::max<std::int64_t>(y - 1, 0); j <= std::min(y + 1, nodes[1] - 1); ++j)
        for (std::int64_t i = std::max<std::int64_t>(x - 1, 0); i <= std::min(x + 1, nodes[0] - 1); ++i)
          result.push_back(static_cast<std::int32_t>((k * nodes[1] + j) * nodes[0] + i));
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

std::size_t place_in(Numbers const& list, std::int64_t number) {
  auto const found = std::lower_bound(list.begin(), list.end(), number);
  return found != list.end() && *found == number ? static_cast<std::size_t>(found - list.begin()) : list.size();
}

}  // namespace

/// e_c of an inclusion: its nodes and values, and 1 / (e^T A e); 0: there is none.
struct Inclusions::Function {
  Numbers inside, support;
  std::vector<double> values;
  double inverse_energy = 0;

  /// Makes the values from the rows of the nodes of the support; 27 entries each, for the nodes `of_rows`.
  void set_values(Numbers const& of_rows, std::vector<double> const& entries, Counts const& nodes) {
    std::size_t const n = support.size();
    std::vector<std::array<std::size_t, 27>> columns(n);
    std::vector<double const*> rows(n);
    values.assign(n + 1, 0.0);  // the last one is that of all other nodes
    for (std::size_t i = 0; i < n; ++i) {
      rows[i] = entries.data() + 27 * place_in(of_rows, support[i]);
      for (int s = 0; s < 27; ++s) {
        std::int64_t const other = support[i] + (s / 9 - 1) * nodes[0] * nodes[1] + (s / 3 % 3 - 1) * nodes[0] + s % 3 - 1;
        columns[i][static_cast<std::size_t>(s)] = rows[i][s] != 0 ? place_in(support, other) : n;
      }
      values[i] = place_in(inside, support[i]) < inside.size() ? 1 : 0;
    }
    auto const product = [&](std::size_t i) {
      double sum = 0;
      for (std::size_t s = 0; s < 27; ++s)
        sum += rows[i][s] * values[columns[i][s]];
      return sum;
    };
    std::vector<double> changes(n);
    for (int step = 0; step < (support.size() > inside.size() ? steps_of_jacobi : 0); ++step) {
      for (std::size_t i = 0; i < n; ++i)
        changes[i] = 2.0 / 3 * product(i) / rows[i][13];
      for (std::size_t i = 0; i < n; ++i)
        values[i] -= changes[i];
    }
    double energy = 0, diagonal = 0;
    for (std::size_t i = 0; i < n; ++i) {
      energy += values[i] * product(i);
      diagonal += values[i] * values[i] * rows[i][13];
    }
    values.pop_back();
    inverse_energy = energy > rounding_of_energy * diagonal ? 1 / energy : 0;
  }
};

/// Makes the functions, batch by batch.
std::vector<Inclusions::Function> Inclusions::functions_of(Matrix const& a, Counts const& nodes, std::vector<Node> const& found) {
  std::vector<Function> result;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (i == 0 || found[i].root != found[i - 1].root)
      result.emplace_back();
    result.back().inside.push_back(found[i].number);
  }
  std::erase_if(result, [](Function const& function) { return function.inside.size() > most_of_one; });
  bool const has_layers = std::ssize(found) <= nodes[0] * nodes[1] * nodes[2] / most_with_layers;
#pragma omp parallel for schedule(dynamic)
  for (std::size_t c = 0; c < result.size(); ++c) {
    result[c].support = result[c].inside;
    for (int layer = 0; layer < (has_layers ? layers_around : 0); ++layer)
      result[c].support = with_layer(result[c].support, nodes);
  }
  Context& context = a.context();
  for (std::size_t begin = 0, end = 0; begin < result.size(); begin = end) {
    Numbers of_rows;
    for (end = begin; end < result.size() && (end == begin || of_rows.size() < rows_of_inclusions); ++end)
      of_rows.insert(of_rows.end(), result[end].support.begin(), result[end].support.end());
    std::sort(of_rows.begin(), of_rows.end());
    of_rows.erase(std::unique(of_rows.begin(), of_rows.end()), of_rows.end());
    Array<std::int32_t> const list(context, std::span<std::int32_t const>(of_rows));
    Array<double> rows(context, 27 * list.size());
    for_slabs(a, nodes, [&](BoxSlab const& slab) {
      kernels_for<InclusionKernels>(context).rows(context, slab, list.size(), list.data(), rows.data());
    });
    std::vector<double> entries(static_cast<std::size_t>(rows.size()));
    rows.download(std::span<double>(entries));
#pragma omp parallel for schedule(dynamic)
    for (std::size_t c = begin; c < end; ++c)
      result[c].set_values(of_rows, entries, nodes);
  }
  std::erase_if(result, [](Function const& function) { return function.inverse_energy == 0; });
  return result;
}

std::unique_ptr<Inclusions> Inclusions::find(Matrix const& a, Counts const& nodes) {
  std::vector<Function> const functions = functions_of(a, nodes, find_nodes(a, nodes));
  return functions.empty() ? nullptr : std::unique_ptr<Inclusions>(new Inclusions(a.context(), functions));
}

Inclusions::Inclusions(Context& context, std::vector<Function> const& functions)
    : context_(context), kernels_(kernels_for<InclusionKernels>(context)) {
  struct Entry {
    std::int32_t node, inclusion;
    double value;
  };
  std::vector<Entry> entries;
  Numbers chunk_first, chunks_of;
  std::vector<double> inverse_energy;
  for (Function const& function : functions) {
    chunks_of.push_back(static_cast<std::int32_t>(chunk_first.size()));
    for (std::size_t i = 0; i < function.support.size(); ++i) {
      if (i % nodes_of_chunk == 0)
        chunk_first.push_back(static_cast<std::int32_t>(entries.size()));
      entries.push_back({function.support[i], static_cast<std::int32_t>(inverse_energy.size()), function.values[i]});
    }
    inverse_energy.push_back(function.inverse_energy);
  }
  view_.n_chunks = static_cast<std::int32_t>(chunk_first.size());
  view_.n_inclusions = static_cast<std::int32_t>(functions.size());
  chunks_of.push_back(view_.n_chunks);
  chunk_first.push_back(static_cast<std::int32_t>(entries.size()));
  auto const bring = [&](auto& array, auto const& host) {
    array = std::remove_reference_t<decltype(array)>(context, std::span(host.data(), host.size()));
    return array.data();
  };
  Numbers numbers, rows, row_first;
  std::vector<double> values;
  for (Entry const& entry : entries) {
    numbers.push_back(entry.node);
    values.push_back(entry.value);
  }
  view_.nodes = bring(nodes_, numbers);
  view_.values = bring(values_, values);
  std::sort(entries.begin(), entries.end(), [](Entry const& one, Entry const& other) {
    return one.node != other.node ? one.node < other.node : one.inclusion < other.inclusion;
  });
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (i == 0 || entries[i].node != entries[i - 1].node) {
      rows.push_back(entries[i].node);
      row_first.push_back(static_cast<std::int32_t>(i));
    }
    numbers[i] = entries[i].inclusion;
    values[i] = entries[i].value;
  }
  view_.n_rows = static_cast<std::int32_t>(rows.size());
  row_first.push_back(static_cast<std::int32_t>(entries.size()));
  view_.of_row = bring(of_row_, numbers);
  view_.row_values = bring(row_values_, values);
  view_.rows = bring(rows_, rows);
  view_.row_first = bring(row_first_, row_first);
  view_.chunk_first = bring(chunk_first_, chunk_first);
  view_.chunks_of = bring(chunks_of_, chunks_of);
  view_.inverse_energy = bring(inverse_energy_, inverse_energy);
  view_.sums = (sums_ = Array<double>(context, view_.n_chunks)).data();
  view_.factors = (factors_ = Array<double>(context, view_.n_inclusions)).data();
}

}  // namespace poisson
