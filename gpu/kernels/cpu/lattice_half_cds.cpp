#include "gpu/kernels/lattice_half_cds.hpp"

#include "gpu/kernels/cpu/cpu.hpp"
#include "gpu/kernels/cpu/half_cds_part.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <omp.h>
#include <vector>

namespace poisson {

namespace {

using cpu::block_rows;

/// Calls copy(first node, count, place of the first) for the nodes of line j of a plane, in runs whose places follow one another.
template <class Copy>
void for_runs(std::int32_t m, LatticePlane plane, std::int32_t j, Copy const& copy) {
  auto const run = [&](std::int32_t i, std::int32_t count) { copy(i, count, LatticePlace(plane, LatticePlaneNode(m, i, j))); };
  run(0, 1);
  if (m > 2)
    run(1, m - 2);
  run(m - 1, 1);
}

/// How a product shares lattices out. Those of many blocks of rows are worked on by all threads, one after the other; of others
/// each thread takes its own.
class Sharing {
public:
  Sharing(LatticeHalfCdsView const& a, std::int64_t work)
      : threads_(2 * work * half_stencil::diagonals * a.n_nodes() >= cpu::work_worth_threads ? omp_get_max_threads() : 1) {
    std::int64_t const blocks = cpu::n_blocks(a.lattices.nodes_of_lattice());
    together_ = blocks > 1 && (a.lattices.n_lattices < threads_ || blocks >= 8 * threads_);
  }
  [[nodiscard]] int threads() const { return threads_; }
  /// Whether the threads work on the same lattice.
  [[nodiscard]] bool together() const { return together_; }
  /// Lattices that are worked on at once, at most.
  [[nodiscard]] int at_once() const { return together_ ? 1 : threads_; }

private:
  int threads_;
  bool together_;
};

/// Parts of the context's buffer for partial sums, one after the other, each on a cache line of its own.
class Buffer {
public:
  explicit Buffer(std::byte* begin = nullptr) : begin_(begin) {}
  template <class T>
  [[nodiscard]] T* take(std::int64_t count) {
    T* const result = reinterpret_cast<T*>(begin_ + bytes_);  // bytes become whatever is written to them
    bytes_ += (count * std::int64_t{sizeof(T)} + 63) / 64 * 64;
    return result;
  }
  /// Takes a part for a vector of `count` entries.
  template <class T>
  [[nodiscard]] Pointer<T> take_vector(std::int64_t count) {
    if constexpr (std::is_same_v<T, DoubleDouble>) {
      double* const high = take<double>(count);
      return {high, take<double>(count)};
    } else {
      return take<T>(count);
    }
  }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

private:
  std::byte* begin_;
  std::int64_t bytes_ = 0;
};

/// What a product keeps besides its vectors.
template <class T>
struct Scratch {
  using Dot = std::conditional_t<std::is_same_v<T, float>, double, T>;  ///< what dots are summed in
  struct Local {
    Pointer<T> x, y;  ///< of a lattice
  };
  T* rims;                    ///< by place in LatticeView::rim_unknowns: what the lattice adds to the node
  Dot* dots;                  ///< by lattice and block of its rows
  std::vector<Local> locals;  ///< by thread, or one

  Scratch(Context& context, LatticeView const& lattices, Sharing const& sharing) {
    Buffer empty;
    lay_out(empty, lattices, sharing);
    Buffer buffer(static_cast<cpu::CpuContext&>(context).partial_sums<std::byte>(empty.bytes()));
    lay_out(buffer, lattices, sharing);
  }

private:
  void lay_out(Buffer& buffer, LatticeView const& lattices, Sharing const& sharing) {
    std::int64_t const nodes = lattices.nodes_of_lattice();
    rims = buffer.take<T>(lattices.n_lattices * lattices.rim().size());
    dots = buffer.take<Dot>(lattices.n_lattices * cpu::n_blocks(nodes));
    locals.clear();
    for (int l = 0; l < sharing.at_once(); ++l) {
      Pointer<T> const x = buffer.take_vector<T>(nodes);
      locals.push_back({x, buffer.take_vector<T>(nodes)});
    }
  }
};

/// The lattices' products and the exchange. x of a lattice is gathered first, so that its rows can be worked on as those of any
/// box; rows are scattered soon after they are complete. Bytes per node: those of HalfCdsPart, and x and y once more, which the
/// caches hold for lattices of 33^3 nodes in double or smaller ones. inner(unknown, value) stores a row that is complete,
/// rim(unknown, value) one that the exchange has summed up; `done(lattice, block, x, y)` is called for every block of a lattice's
/// rows.
template <class T, class Values, class Store, class Done>
void run(LatticeHalfCdsView const& a, Values values, Sharing const& sharing, Scratch<T>& scratch, ConstPointer<T> x,
         Store const& finished, Done const& done) {
  LatticeView const& lattices = a.lattices;
  std::int32_t const m = lattices.m;
  std::int64_t const nodes = lattices.nodes_of_lattice(), blocks = cpu::n_blocks(nodes), lines = std::int64_t{m} * m;
  std::array<std::int32_t, half_stencil::diagonals> offsets;
  for (int k = 0; k < half_stencil::diagonals; ++k)
    offsets[static_cast<std::size_t>(k)] = static_cast<std::int32_t>(half_stencil::offset(k, m, lines));
  cpu::HalfDiagonals const diagonals{nodes, a.n_nodes(), offsets};
  auto const groups = cpu::groups_of(offsets);

  auto const gather = [&](std::int64_t lattice, std::int64_t first_line, std::int64_t last_line, Pointer<T> local_x) {
    for (std::int64_t line = first_line; line < last_line; ++line)
      for_runs(m, LatticePlane(m, static_cast<std::int32_t>(lattice), static_cast<std::int32_t>(line / m)),
               static_cast<std::int32_t>(line % m), [&](std::int32_t i, std::int32_t count, LatticePlace place) {
                 for (std::int32_t c = 0; c < count; ++c) {
                   std::int32_t const at = place.on_rim ? lattices.rim_unknowns[place.at + c] : place.at + c;
                   store(local_x, line * m + i + c, load(x, at));
                 }
               });
  };
  auto const scatter = [&](std::int64_t lattice, std::int64_t first_row, std::int64_t last_row, ConstPointer<T> local_y) {
    for (std::int64_t line = first_row / m; line * m < last_row; ++line)
      for_runs(m, LatticePlane(m, static_cast<std::int32_t>(lattice), static_cast<std::int32_t>(line / m)),
               static_cast<std::int32_t>(line % m), [&](std::int32_t i, std::int32_t count, LatticePlace place) {
                 std::int64_t const row = line * m + i;
                 auto const begin = static_cast<std::int32_t>(std::max<std::int64_t>(first_row - row, 0));
                 auto const end = static_cast<std::int32_t>(std::min<std::int64_t>(last_row - row, count));
                 if (place.on_rim)
                   for (std::int32_t c = begin; c < end; ++c)
                     scratch.rims[place.at + c] = load(local_y, row + c);
                 else
                   for (std::int32_t c = begin; c < end; ++c)
                     finished(place.at + c, load(local_y, row + c));
               });
  };
  // The rows of one of `team` threads, which work on a lattice together.
  auto const multiply = [&](std::int64_t lattice, typename Scratch<T>::Local const& local, std::int64_t thread, std::int64_t team) {
    gather(lattice, lines * thread / team, lines * (thread + 1) / team, local.x);
    if (team > 1) {
#pragma omp barrier
    }
    cpu::HalfCdsPart<false, T, Values>(diagonals, values + lattice * nodes, groups, T(1), local.x, local.y, blocks * thread / team,
                                       blocks * (thread + 1) / team)
        .run([](std::int64_t) { return T(0); },
             [&](std::int64_t block) {
               cpu::complete_rows(nodes, block, local.y);
               done(lattice, block, local.x, local.y);
               scatter(lattice, block * block_rows, std::min(nodes, (block + 1) * block_rows), local.y);
             });
    if (team > 1) {
#pragma omp barrier
    }
  };
  // The share of one of the threads.
  auto const multiply_lattices = [&] {
    std::int64_t const threads = omp_get_num_threads(), thread = omp_get_thread_num();
    if (sharing.together()) {
      for (std::int64_t lattice = 0; lattice < lattices.n_lattices; ++lattice)
        multiply(lattice, scratch.locals[0], thread, threads);
    } else {
      std::int64_t const first = lattices.n_lattices * thread / threads, last = lattices.n_lattices * (thread + 1) / threads;
      for (std::int64_t lattice = first; lattice < last; ++lattice)
        multiply(lattice, scratch.locals[static_cast<std::size_t>(thread)], 0, 1);
    }
  };
  auto const sum_of_copies = [&](std::int64_t on_rim) {  // bytes per copy: 4 and a T
    T sum = 0;
    for (std::int64_t c = lattices.copy_offsets[on_rim]; c < lattices.copy_offsets[on_rim + 1]; ++c)
      sum = sum + scratch.rims[lattices.copies[c]];
    return sum;
  };
  auto const exchange = [&](ConstPointer<T> added) {
#pragma omp for schedule(static)
    for (std::int64_t i = 0; i < lattices.n_rim(); ++i)
      finished(lattices.n_inner() + i, with_added<T>(sum_of_copies(i), added, i));
  };
  auto const* const sums = sums_of_ranks<T>(a);
  if (sums == nullptr) {
#pragma omp parallel num_threads(sharing.threads())
    {
      multiply_lattices();
#pragma omp barrier
      exchange({});
    }
    return;
  }
#pragma omp parallel num_threads(sharing.threads())
  {
    multiply_lattices();
#pragma omp barrier
#pragma omp for schedule(static)
    for (std::int64_t i = 0; i < sums->n; ++i)
      sums->outgoing[i] = sum_of_copies(sums->unknowns[i] - lattices.n_inner());
  }
  sums->send();
  ConstPointer<T> const added = take_sums<T>(a);
#pragma omp parallel num_threads(sharing.threads())
  exchange(added);
}

class CpuLatticeHalfCds final : public ProductsByTemplates<LatticeHalfCdsKernels, CpuLatticeHalfCds> {
public:
  template <class T, class Values>
  static void multiply(Context& context, LatticeHalfCdsView const& a, Values values, T alpha, ConstPointer<T> x, T beta,
                       Pointer<T> y) {
    Sharing const sharing(a, cpu::work_of<T>);
    Scratch<T> scratch(context, a.lattices, sharing);
    auto const nothing = [](std::int64_t, std::int64_t, ConstPointer<T>, ConstPointer<T>) {};
    if (beta != 0)
      run(
          a, values, sharing, scratch, x,
          [=](std::int64_t i, T sum) { store(y, i, static_cast<T>(alpha * sum + beta * load(y, i))); }, nothing);
    else
      run(
          a, values, sharing, scratch, x, [=](std::int64_t i, T sum) { store(y, i, static_cast<T>(alpha * sum)); }, nothing);
  }

  template <class T, class Values>
  static void multiply_dot(Context& context, LatticeHalfCdsView const& a, Values values, ConstPointer<T> x, Pointer<T> y, T* dot,
                           std::int32_t const* stop) {
    if (*stop != 0)
      return exchange_nothing<T>(a);
    Sharing const sharing(a, cpu::work_of<T>);
    Scratch<T> scratch(context, a.lattices, sharing);
    std::int64_t const nodes = a.lattices.nodes_of_lattice(), blocks = cpu::n_blocks(nodes);
    run(
        a, values, sharing, scratch, x, [=](std::int64_t i, T sum) { store(y, i, sum); },
        [&](std::int64_t lattice, std::int64_t block, ConstPointer<T> local_x, ConstPointer<T> local_y) {
          scratch.dots[lattice * blocks + block] =
              cpu::dot_of_rows(block * block_rows, std::min(nodes, (block + 1) * block_rows), local_x, local_y);
        });
    typename Scratch<T>::Dot sum = 0;
    for (std::int64_t d = 0; d < a.lattices.n_lattices * blocks; ++d)
      sum += scratch.dots[d];
    *dot = static_cast<T>(sum);
  }

  void smooth(Context& context, LatticeHalfCdsView const& a, SmoothingStep<float> const& step, float const* x,
              std::int32_t const* stop) const override {
    for_rows(context, a, x, stop, [&](std::int64_t i, float y) { take_step(step, i, y, x[i]); });
  }
  void smooth(Context& context, LatticeHalfCdsView const& a, SmoothingStep<double> const& step, double const* x,
              std::int32_t const* stop) const override {
    for_rows(context, a, x, stop, [&](std::int64_t i, double y) { take_step(step, i, y, x[i]); });
  }
  void subtract_product(Context& context, LatticeHalfCdsView const& a, float const* b, float const* x, float* r,
                        std::int32_t const* stop) const override {
    for_rows(context, a, x, stop, [=](std::int64_t i, float y) { r[i] = b[i] - y; });
  }
  void subtract_product(Context& context, LatticeHalfCdsView const& a, double const* b, double const* x, double* r,
                        std::int32_t const* stop) const override {
    for_rows(context, a, x, stop, [=](std::int64_t i, double y) { r[i] = b[i] - y; });
  }

  void diagonal(Context&, LatticeHalfCdsView const& a, double* d, double* d_low) const override {
    auto const fill = [&](auto values) {
#pragma omp parallel for schedule(static)
      for (std::int64_t i = 0; i < a.lattices.n_unknowns; ++i) {
        DoubleDouble const sum = diagonal_entry(a, values, i);
        d[i] = sum.hi;
        if (d_low != nullptr)
          d_low[i] = sum.lo;
      }
    };
    if (a.single_values != nullptr)
      fill(a.single_values);
    else
      fill(a.values);
  }

private:
  /// Calls row(i, (A x)_i) for every unknown, unless *stop is set.
  template <class V, class Row>
  static void for_rows(Context& context, LatticeHalfCdsView const& a, V const* x, std::int32_t const* stop, Row const& row) {
    if (*stop != 0)
      return exchange_nothing<V>(a);
    Sharing const sharing(a, cpu::work_of<V>);
    Scratch<V> scratch(context, a.lattices, sharing);
    auto const nothing = [](std::int64_t, std::int64_t, ConstPointer<V>, ConstPointer<V>) {};
    with_stored_values<V>(
        a, [&](auto values) { run(a, values, sharing, scratch, ConstPointer<V>(x), row, nothing); }, ValuePairs());
  }
};

}  // namespace

LatticeHalfCdsKernels const& LatticeHalfCdsKernels::cpu() {
  static CpuLatticeHalfCds const kernels;
  return kernels;
}

}  // namespace poisson
