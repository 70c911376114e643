#include "gpu/kernels/lattice_operator.hpp"

#include "gpu/kernels/cpu/cpu.hpp"

#include <algorithm>
#include <array>
#include <type_traits>
#include <vector>

namespace poisson {

namespace {

using namespace lattice_cells;

/// Cells that are worked on at once, one in each lane of the vector registers.
constexpr int cells_at_once = 8;
static_assert(LatticeTensors::cells_of_batch % cells_at_once == 0);

/// p where the compiler knows it: loops are then unrolled.
template <int p>
using Known = std::integral_constant<int, p>;

template <class T>
struct RealTables {
  Real<T> value[max_points][max_points], collocation[max_points][max_points];

  explicit RealTables(ElementTables const& tables) {
    for (std::size_t q = 0; q < max_points; ++q)
      for (std::size_t a = 0; a < max_points; ++a) {
        value[q][a] = static_cast<Real<T>>(tables.value[q][a]);
        collocation[q][a] = static_cast<Real<T>>(tables.collocation[q][a]);
      }
  }
};

/// The element vectors of `cells_at_once` cells. Numbers at nodes or points are at [(node or point) cells_at_once + lane].
template <class T, class Stored, class Order>
class Cells {
public:
  Cells(LatticeOperatorView const& a, RealTables<T> const& tables, Stored const* tensors, ConstPointer<T> x, Order order)
      : a_(a), tables_(tables), tensors_(tensors), x_(x), order_(order) {
    for (auto& array : arrays_)
      array.resize(static_cast<std::size_t>(points() * cells_at_once));
  }

  /// Computes the element vectors of cells first ... first + cells_at_once - 1, of which those from n_cells on do not exist.
  /// Returns x . (what they add to A x).
  DotSum<T> operator()(std::int64_t first, Pointer<T> vectors) {
    T *const u = arrays_[0].data(), *const v = arrays_[1].data(), *const y = arrays_[2].data(), *const z = arrays_[3].data();
    int const n1 = order_ + 1;
    load_nodes(first, u);
    contract<false, false>(tables_.value, 1, u, v);
    contract<false, false>(tables_.value, n1, v, u);
    contract<false, false>(tables_.value, n1 * n1, u, v);
    contract<false, false>(tables_.collocation, 1, v, u);
    contract<false, false>(tables_.collocation, n1, v, y);
    contract<false, false>(tables_.collocation, n1 * n1, v, z);
    DotSum<T> const dot = multiply(first, u, y, z);
    contract<true, false>(tables_.collocation, 1, u, v);
    contract<true, true>(tables_.collocation, n1, y, v);
    contract<true, true>(tables_.collocation, n1 * n1, z, v);
    contract<true, false>(tables_.value, n1 * n1, v, u);
    contract<true, false>(tables_.value, n1, u, v);
    contract<true, false>(tables_.value, 1, v, u);
    std::int64_t const stride = a_.stride();
    for (int node = 0; node < points(); ++node)
      for (int lane = 0; lane < cells_at_once; ++lane)
        store(vectors, node * stride + first + lane, u[node * cells_at_once + lane]);
    return dot;
  }

private:
  [[nodiscard]] int points() const { return (order_ + 1) * (order_ + 1) * (order_ + 1); }

  /// out = the table along one direction, in which entries are `step` apart, or its transpose; or added to out.
  template <bool transposed, bool adds>
  void contract(Real<T> const (&table)[max_points][max_points], int step, T const* __restrict in, T* __restrict out) const {
    int const n1 = order_ + 1, of_line = n1 * step;
    for (int block = 0; block < points(); block += of_line)
      for (int line = block; line < block + step; ++line)
        for (int q = 0; q < n1; ++q) {
          T* const to = out + (line + q * step) * cells_at_once;
          Sum<T> sums[cells_at_once];
          for (int lane = 0; lane < cells_at_once; ++lane)
            sums[lane] = begin_sum(adds ? to[lane] : T(0));
          for (int r = 0; r < n1; ++r) {
            T const* const from = in + (line + r * step) * cells_at_once;
            Real<T> const factor = transposed ? table[r][q] : table[q][r];
#pragma omp simd
            for (int lane = 0; lane < cells_at_once; ++lane)
              sums[lane].add(factor, from[lane]);
          }
          for (int lane = 0; lane < cells_at_once; ++lane)
            to[lane] = sums[lane].value();
        }
  }

  /// Gradients become fluxes.
  DotSum<T> multiply(std::int64_t first, T* __restrict x, T* __restrict y, T* __restrict z) const {
    if (a_.stores_k())
      return multiply_from_k(first, x, y, z);
    auto const place = LatticeTensors::in_batch(points(), first);
    Sum<T> dots[cells_at_once] = {};
    for (int q = 0; q < points(); ++q) {
      Stored const* const d = tensors_ + place.first + q * place.of_point;
      constexpr int next = LatticeTensors::cells_of_batch;
#pragma omp simd
      for (int lane = 0; lane < cells_at_once; ++lane) {
        auto const entry = [&](int c) { return static_cast<Real<T>>(d[c * next + lane]); };
        T const by_x = x[q * cells_at_once + lane], by_y = y[q * cells_at_once + lane], by_z = z[q * cells_at_once + lane];
        Sum<T> of_x{}, of_y{}, of_z{};
        of_x.add(entry(0), by_x), of_x.add(entry(3), by_y), of_x.add(entry(4), by_z);
        of_y.add(entry(3), by_x), of_y.add(entry(1), by_y), of_y.add(entry(5), by_z);
        of_z.add(entry(4), by_x), of_z.add(entry(5), by_y), of_z.add(entry(2), by_z);
        x[q * cells_at_once + lane] = of_x.value();
        y[q * cells_at_once + lane] = of_y.value();
        z[q * cells_at_once + lane] = of_z.value();
        dots[lane].add(by_x, of_x.value());
        dots[lane].add(by_y, of_y.value());
        dots[lane].add(by_z, of_z.value());
      }
    }
    DotSum<T> dot{};
    for (Sum<T> const& of_lane : dots)
      dot.add(of_lane.value(), T(1));
    return dot;
  }

  DotSum<T> multiply_from_k(std::int64_t first, T* __restrict x, T* __restrict y, T* __restrict z) const {
    CoefficientPlaces const& of_k = a_.box.k;
    int const n1 = order_ + 1;
    Real<T> factor[3][cells_at_once], scaled[3][cells_at_once];  // of k, and times k
    std::int64_t cells[cells_at_once];
    for (int lane = 0; lane < cells_at_once; ++lane) {
      bool const exists = first + lane < a_.n_cells();
      cells[lane] = exists ? first + lane : 0;
      BoxCell const cell(a_, cells[lane]);
      for (int c = 0; c < 3; ++c)
        factor[c][lane] = exists ? static_cast<Real<T>>(cell.factor[c]) : 0;
    }
    auto const scale = [&](int q) {
      for (int c = 0; c < 3; ++c)
        for (int lane = 0; lane < cells_at_once; ++lane)
          scaled[c][lane] = factor[c][lane] * static_cast<Real<T>>(tensors_[of_k.at(cells[lane], q, c)]);
    };
    scale(0);
    Sum<T> dots[cells_at_once] = {};
    for (int q = 0; q < points(); ++q) {
      if (q > 0 && of_k.varies_in_cells())
        scale(q);
      auto const weight = static_cast<Real<T>>(a_.box.weight[q % n1] * a_.box.weight[q / n1 % n1] * a_.box.weight[q / (n1 * n1)]);
#pragma omp simd
      for (int lane = 0; lane < cells_at_once; ++lane) {
        T const by_x = x[q * cells_at_once + lane], by_y = y[q * cells_at_once + lane], by_z = z[q * cells_at_once + lane];
        Sum<T> of_x{}, of_y{}, of_z{};
        of_x.add(weight * scaled[0][lane], by_x);
        of_y.add(weight * scaled[1][lane], by_y);
        of_z.add(weight * scaled[2][lane], by_z);
        x[q * cells_at_once + lane] = of_x.value();
        y[q * cells_at_once + lane] = of_y.value();
        z[q * cells_at_once + lane] = of_z.value();
        dots[lane].add(by_x, of_x.value());
        dots[lane].add(by_y, of_y.value());
        dots[lane].add(by_z, of_z.value());
      }
    }
    DotSum<T> dot{};
    for (Sum<T> const& of_lane : dots)
      dot.add(of_lane.value(), T(1));
    return dot;
  }

  void load_nodes(std::int64_t first, T* u) const {
    LatticeView const& lattices = a_.lattices;
    std::int32_t const n = lattices.cells, m = lattices.m, p = lattices.order;
    std::int64_t const n_cells = a_.n_cells();
    auto const count = static_cast<int>(std::min<std::int64_t>(cells_at_once, n_cells - first));
    if (count <= 0) {
      std::fill_n(u, points() * cells_at_once, T(0));
      return;
    }
    if (lattices.is_box()) {
      load_nodes_of_box(first, count, u);
      return;
    }
    Place const at = cell_place(a_, first);
    bool const in_line = count == cells_at_once && at.i[0] + cells_at_once <= n;
    Place cells[cells_at_once];
    for (int lane = 0; lane < count; ++lane)
      cells[lane] = in_line ? Place{at.lattice, {at.i[0] + lane, at.i[1], at.i[2]}} : cell_place(a_, first + lane);
    int node = 0;
    for (int k = 0; k <= order_; ++k)
      for (int j = 0; j <= order_; ++j) {
        std::int32_t const y = p * at.i[1] + j, z = p * at.i[2] + k;
        bool const inner = in_line && !lattices.all_on_rim && y > 0 && y < m - 1 && z > 0 && z < m - 1;
        for (int i = 0; i <= order_; ++i, ++node) {
          // Nodes of one kind follow one another.
          int begin = 0, end = 0;
          if (inner) {
            begin = i == 0 && at.i[0] == 0 ? 1 : 0;
            end = i == order_ && at.i[0] + cells_at_once == n ? cells_at_once - 1 : cells_at_once;
            std::int64_t const unknown = lattices.inner_unknown(at.lattice, p * (at.i[0] + begin) + i, y, z);
            for (int lane = begin; lane < end; ++lane)
              u[node * cells_at_once + lane] = load(x_, unknown + lane - begin);
          }
          for (int lane = 0; lane < cells_at_once; ++lane)
            if (lane < begin || lane >= end)
              u[node * cells_at_once + lane] =
                  lane < count ? free_entry<T>(a_, x_, unknown_of(lattices, cells[lane], i, j, k)) : T(0);
        }
      }
  }

  void load_nodes_of_box(std::int64_t first, int count, T* u) const {
    LatticeView const& lattices = a_.lattices;
    std::int32_t const p = lattices.order;
    std::int64_t const line = lattices.box_nodes(0), plane = line * lattices.box_nodes(1);
    std::int64_t nodes[cells_at_once];  // the first ones of the cells
    bool at_surface = false;
    LatticeView::InBox cell = lattices.box_cell(first);
    for (int lane = 0; lane < count; ++lane) {
      nodes[lane] = lattices.box_unknown(p * cell.i[0], p * cell.i[1], p * cell.i[2]);
      for (int d = 0; d < 3; ++d)
        at_surface = at_surface || cell.i[d] == 0 || cell.i[d] == lattices.box[d] - 1;
      for (int d = 0; d < 2 && ++cell.i[d] == lattices.box[d]; ++d) {  // the next cell
        cell.i[d] = 0;
        cell.i[2] += d;
      }
    }
    int node = 0;
    for (int k = 0; k <= order_; ++k)
      for (int j = 0; j <= order_; ++j)
        for (int i = 0; i <= order_; ++i, ++node) {
          std::int64_t const shift = k * plane + j * line + i;
          for (int lane = 0; lane < cells_at_once; ++lane) {
            T& value = u[node * cells_at_once + lane];
            if (lane >= count)
              value = T(0);
            else
              value = at_surface ? free_entry<T>(a_, x_, nodes[lane] + shift) : load(x_, nodes[lane] + shift);
          }
        }
  }

  LatticeOperatorView const& a_;
  RealTables<T> const& tables_;
  Stored const* tensors_;
  ConstPointer<T> x_;
  Order order_;
  std::vector<T> arrays_[4];
};

/// What a product keeps besides its vectors.
template <class T>
struct Scratch {
  Pointer<T> vectors;  ///< of elements
  DotSum<T>* dots;     ///< of runs of `cells_at_once` cells, then of cells at faces, then of blocks of unknowns on rims

  Scratch(Context& context, LatticeOperatorView const& a)
      : n_runs(a.stride() / cells_at_once),
        n_face_cells(std::int64_t{a.n_mass_faces} * a.lattices.cells * a.lattices.cells),
        n_blocks(cpu::n_blocks(a.lattices.n_rim())) {
    std::int64_t const size = a.points() * a.stride();
    auto* const bytes = static_cast<cpu::CpuContext&>(context).partial_sums<std::byte>(size * std::int64_t{sizeof(T)} +
                                                                                       n_dots() * std::int64_t{sizeof(DotSum<T>)});
    auto* const numbers = reinterpret_cast<std::remove_pointer_t<decltype(first_part(vectors))>*>(bytes);
    if constexpr (std::is_same_v<T, DoubleDouble>)
      vectors = {numbers, numbers + size};
    else
      vectors = numbers;
    dots = reinterpret_cast<DotSum<T>*>(bytes + size * std::int64_t{sizeof(T)});
  }
  [[nodiscard]] std::int64_t n_dots() const { return n_runs + n_face_cells + n_blocks; }

  std::int64_t n_runs, n_face_cells, n_blocks;

private:
  static double* first_part(DoubleDoublePointer p) { return p.hi; }
  static double* first_part(double* p) { return p; }
  static float* first_part(float* p) { return p; }
};

/// The element vectors of all cells and of faces with Robin conditions.
template <class T, class Stored, class Order>
void make_vectors(LatticeOperatorView const& a, Stored const* tensors, ConstPointer<T> x, Scratch<T> const& scratch, Order order) {
  ElementTables const tables = element_tables(a.lattices.order);
  RealTables<T> const real_tables(tables);
#pragma omp parallel if (20 * a.points() * a.n_cells() * cpu::work_of <T> >= cpu::work_worth_threads)
  {
    Cells<T, Stored, Order> cells(a, real_tables, tensors, x, order);
#pragma omp for schedule(static)
    for (std::int64_t run = 0; run < scratch.n_runs; ++run)
      scratch.dots[run] = cells(run * cells_at_once, scratch.vectors);
  }
  // Cells may be at two faces: one direction after the other.
  int const n1 = a.points_of_direction(), of_face = n1 * n1;
  std::int32_t const n = a.lattices.cells, cells_of_face = n * n;
  for (int face = 0; face < 6 && a.n_mass_faces > 0; ++face)
#pragma omp parallel for schedule(static) collapse(2) if (scratch.n_face_cells * of_face * of_face >= cpu::work_worth_threads)
    for (std::int32_t number = 0; number < a.n_mass_faces; ++number)
      for (std::int32_t c = 0; c < cells_of_face; ++c) {
        if (a.mass_faces[number] % 6 != face)
          continue;
        FaceCell const cell = face_cell(a, number, c);
        T values[max_points * max_points], fluxes[max_points * max_points];
        int i[3];
        for (int t = 0; t < of_face; ++t) {
          cell.node(n1 - 1, t, i);
          values[t] = free_entry<T>(a, x, unknown_of(a.lattices, cell.cell, i[0], i[1], i[2]));
        }
        std::int64_t const at = std::int64_t{number} * cells_of_face + c;
        DotSum<T> dot{};
        for (int q = 0; q < of_face; ++q) {
          T at_point;
          fluxes[q] = face_flux<T>(
              tables, q, a.face_mass[at * of_face + q], [&](int t) { return values[t]; }, at_point);
          dot.add(at_point, fluxes[q]);
        }
        scratch.dots[scratch.n_runs + at] = dot;
        for (int t = 0; t < of_face; ++t) {
          cell.node(n1 - 1, t, i);
          std::int64_t const place = ((i[2] * n1 + i[1]) * n1 + i[0]) * a.stride() + cell_number(a, cell.cell);
          store(scratch.vectors, place, load(scratch.vectors, place) + face_term<T>(tables, t, [&](int q) { return fluxes[q]; }));
        }
      }
}

/// Calls row(unknown, sum) for all inner nodes. Nodes of a kind along x are gathered together.
template <class T, class Row>
void gather_inner(LatticeOperatorView const& a, ConstPointer<T> vectors, Row const& row) {
  LatticeView const& lattices = a.lattices;
  if (lattices.n_inner() == 0)
    return;
  std::int32_t const n = lattices.cells, p = lattices.order, inner = lattices.m - 2;
  std::int64_t const stride = a.stride(), n_lines = lattices.n_lattices * inner * inner;
#pragma omp parallel for schedule(static) if (4 * lattices.n_inner() * cpu::work_of <T> >= cpu::work_worth_threads)
  for (std::int64_t line = 0; line < n_lines; ++line) {
    std::int64_t const lattice = line / inner / inner;
    auto const k = static_cast<std::int32_t>(line / inner % inner) + 1, j = static_cast<std::int32_t>(line % inner) + 1;
    for (std::int32_t kind = 0; kind < p; ++kind) {
      std::int32_t const i = kind == 0 ? p : kind, count = kind == 0 ? n - 1 : n;
      if (count == 0)
        continue;
      ConstPointer<T> from[8];  // what is added to the first node
      int n_from = 0;
      for_cells_around(a, lattice, i, j, k,
                       [&](std::int64_t cell, std::int32_t node) { from[n_from++] = vectors + (node * stride + cell); });
      std::int64_t const first = lattices.inner_unknown(lattice, i, j, k);
      auto const add = [&]<int terms>(Known<terms>) {
        for (std::int32_t c = 0; c < count; ++c) {
          T sum = load(from[0], c);
          for (int t = 1; t < terms; ++t)
            sum = sum + load(from[t], c);
          row(first + c, sum);
        }
      };
      if (n_from == 1)
        add(Known<1>());
      else if (n_from == 2)
        add(Known<2>());
      else if (n_from == 4)
        add(Known<4>());
      else
        add(Known<8>());
    }
  }
}

/// Calls visit(unknown, sum) for the unknowns begin <= number < end of a box: what element vectors hold for them, in the order of
/// gathered_on_rim.
template <class T, class Visit>
void gather_in_box(LatticeOperatorView const& a, ConstPointer<T> vectors, std::int64_t begin, std::int64_t end,
                   Visit const& visit) {
  LatticeView const& lattices = a.lattices;
  std::int32_t const p = lattices.order, n1 = p + 1, n = lattices.box[0];
  std::int64_t const stride = a.stride();
  for (std::int64_t unknown = begin; unknown < end;) {
    LatticeView::InBox const at = lattices.box_node(unknown);
    std::int64_t const end_of_line = std::min(end, unknown - at.i[0] + lattices.box_nodes(0));
    std::int64_t rows[4];  // of nodes of lines of cells: where those of the first cell begin
    int n_rows = 0;
    std::int32_t first[2], last[2];  // cells around the line of nodes, in y and z
    for (int d = 0; d < 2; ++d) {
      std::int32_t const own = at.i[d + 1] / p;
      first[d] = own > 0 && own * p == at.i[d + 1] ? own - 1 : own;
      last[d] = std::min(own, lattices.box[d + 1] - 1);
    }
    for (std::int32_t z = first[1]; z <= last[1]; ++z)
      for (std::int32_t y = first[0]; y <= last[0]; ++y)
        rows[n_rows++] = ((at.i[2] - p * z) * n1 + at.i[1] - p * y) * n1 * stride + (std::int64_t{z} * lattices.box[1] + y) * n;
    std::int32_t cell = at.i[0] / p, i = at.i[0] - p * cell;
    for (; unknown < end_of_line; ++unknown) {
      T sum = 0;
      for (int r = 0; r < n_rows; ++r) {
        if (i == 0 && cell > 0)
          sum = sum + load(vectors, rows[r] + p * stride + cell - 1);
        if (cell < n)
          sum = sum + load(vectors, rows[r] + i * stride + cell);
      }
      visit(unknown, sum);
      if (++i == p) {
        i = 0;
        ++cell;
      }
    }
  }
}
/// The same for unknowns on any rims.
template <class T, class Visit>
void gather_rims(LatticeOperatorView const& a, ConstPointer<T> vectors, std::int64_t begin, std::int64_t end, Visit const& visit) {
  if (a.lattices.is_box()) {
    gather_in_box<T>(a, vectors, begin, end, visit);
    return;
  }
  for (std::int64_t i = begin; i < end; ++i)
    visit(i, a.is_fixed(i) ? T(0) : gathered_on_rim<T>(a, vectors, i));
}

/// Calls rim(block, begin, end) for blocks of unknowns on rims.
template <class T, class Block>
void for_rim_blocks(LatticeOperatorView const& a, Block const& block) {
  std::int64_t const first = a.lattices.n_inner();
  cpu::for_blocks(a.lattices.n_rim(), 8 * a.lattices.n_rim() * cpu::work_of<T>,
                  [&](std::int64_t begin, std::int64_t end, std::int64_t number) { block(number, first + begin, first + end); });
}

/// Cells whose part of a residual is made at once, one in each lane of the vector registers.
constexpr int accurate_lanes = 8;

/// Element vectors in double-double for residuals, by loops that products do not share: one direction after the other, with tables
/// of derivatives in place of collocation.
class AccurateCells {
public:
  explicit AccurateCells(AccurateTables const& tables) : tables_(tables), n1_(tables.element.points()), points_(n1_ * n1_ * n1_) {
    for (Lanes& array : arrays_) {
      array.hi.resize(static_cast<std::size_t>(points_ * accurate_lanes));
      array.lo.resize(array.hi.size());
    }
  }
  void set(int node, int lane, DoubleDouble value) { arrays_[0].set(node, lane, value); }
  [[nodiscard]] DoubleDouble term(int node, int lane) const { return arrays_[0].get(node, lane); }
  /// Gradients of what the nodes have, times the tensors, tested with all functions; tensor(q, lane, d) sets that of a cell at a
  /// point.
  template <class Tensor>
  void multiply(Tensor const& tensor) {
    auto& [u, v, by_x, by_y, by_z, w] = arrays_;
    int const step_y = n1_, step_z = n1_ * n1_;
    along<false, false>(1, values(), u, v);
    along<false, false>(1, slopes(), u, by_x);
    along<false, false>(step_y, values(), v, w);
    along<false, false>(step_y, slopes(), v, by_y);
    along<false, false>(step_z, slopes(), w, by_z);
    along<false, false>(step_z, values(), by_y, v);
    along<false, false>(step_y, values(), by_x, w);
    along<false, false>(step_z, values(), w, by_x);
    for (int q = 0; q < points_; ++q)
      for (int lane = 0; lane < accurate_lanes; ++lane) {
        double d[6];
        tensor(q, lane, d);
        DoubleDouble const x = by_x.get(q, lane), y = v.get(q, lane), z = by_z.get(q, lane);
        by_x.set(q, lane, d[0] * x + d[3] * y + d[4] * z);
        by_y.set(q, lane, d[3] * x + d[1] * y + d[5] * z);
        by_z.set(q, lane, d[4] * x + d[5] * y + d[2] * z);
      }
    along<true, false>(step_z, values(), by_x, u);
    along<true, false>(step_y, values(), u, v);
    along<true, false>(step_z, values(), by_y, u);
    along<true, false>(step_z, slopes(), by_z, w);
    along<true, false>(step_y, values(), w, by_x);
    along<true, true>(step_y, slopes(), u, by_x);
    along<true, false>(1, slopes(), v, u);
    along<true, true>(1, values(), by_x, u);
  }

private:
  struct Lanes {
    std::vector<double> hi, lo;
    [[nodiscard]] DoubleDouble get(int place, int lane) const {
      auto const at = static_cast<std::size_t>(place * accurate_lanes + lane);
      return {hi[at], lo[at]};
    }
    void set(int place, int lane, DoubleDouble value) {
      auto const at = static_cast<std::size_t>(place * accurate_lanes + lane);
      hi[at] = value.hi;
      lo[at] = value.lo;
    }
  };
  struct Table {
    SquareTable const& high;
    SquareTable const* low;  ///< null: none
  };
  [[nodiscard]] Table values() const { return {tables_.element.value, nullptr}; }
  [[nodiscard]] Table slopes() const { return {tables_.derivative, &tables_.derivative_low}; }

  /// out = the table along one direction, in which entries are `step` apart, or its transpose; or added to out.
  template <bool transposed, bool adds>
  void along(int step, Table const& table, Lanes const& in, Lanes& out) const {
    int const of_line = n1_ * step;
    for (int block = 0; block < points_; block += of_line)
      for (int line = block; line < block + step; ++line)
        for (int q = 0; q < n1_; ++q) {
          DoubleDouble sums[accurate_lanes];
          for (int lane = 0; lane < accurate_lanes; ++lane)
            sums[lane] = adds ? out.get(line + q * step, lane) : DoubleDouble(0);
          for (int r = 0; r < n1_; ++r) {
            auto const i = static_cast<std::size_t>(transposed ? r : q), j = static_cast<std::size_t>(transposed ? q : r);
            double const* const hi = in.hi.data() + (line + r * step) * accurate_lanes;
            double const* const lo = in.lo.data() + (line + r * step) * accurate_lanes;
            if (table.low != nullptr) {
              DoubleDouble const factor{table.high[i][j], (*table.low)[i][j]};
#pragma omp simd
              for (int lane = 0; lane < accurate_lanes; ++lane)
                sums[lane] = sums[lane] + factor * DoubleDouble{hi[lane], lo[lane]};
            } else {
              double const factor = table.high[i][j];
#pragma omp simd
              for (int lane = 0; lane < accurate_lanes; ++lane)
                sums[lane] = sums[lane] + factor * DoubleDouble{hi[lane], lo[lane]};
            }
          }
          for (int lane = 0; lane < accurate_lanes; ++lane)
            out.set(line + q * step, lane, sums[lane]);
        }
  }

  AccurateTables const& tables_;
  int n1_, points_;
  std::array<Lanes, 6> arrays_;
};

class CpuLatticeOperator final
    : public ProductsByTemplates<LatticeOperatorKernels, CpuLatticeOperator,
                                 ValuePairList<ValuePair<float, float>, ValuePair<float, double>, ValuePair<double, float>,
                                               ValuePair<double, double>, ValuePair<double, DoubleDouble>>> {
public:
  template <class T, class Stored>
  static void multiply(Context& context, LatticeOperatorView const& a, Stored const* tensors, T alpha, ConstPointer<T> x, T beta,
                       Pointer<T> y) {
    if (beta != 0)
      run<T>(context, a, tensors, x, nullptr,
             [=](std::int64_t i, T sum) { store(y, i, static_cast<T>(alpha * sum + beta * load(y, i))); });
    else
      run<T>(context, a, tensors, x, nullptr, [=](std::int64_t i, T sum) { store(y, i, static_cast<T>(alpha * sum)); });
  }

  template <class T, class Stored>
  static void multiply_dot(Context& context, LatticeOperatorView const& a, Stored const* tensors, ConstPointer<T> x, Pointer<T> y,
                           T* dot, std::int32_t const* stop) {
    if (*stop == 0)
      run<T>(context, a, tensors, x, dot, [=](std::int64_t i, T sum) { store(y, i, sum); });
  }

  void gather(Context&, LatticeOperatorView const& a, double const* vectors, double* out) const override {
    gather_inner<double>(a, vectors, [=](std::int64_t i, double sum) { out[i] = sum; });
    for_rim_blocks<double>(a, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        out[i] = gathered_on_rim<double>(a, vectors, i);
    });
  }

  void sums_on_rims(Context& context, LatticeOperatorView const& a, std::int64_t first, std::int64_t n, float* out) const override {
    gather_on_rims(context, a, first, n, out);
  }
  void sums_on_rims(Context& context, LatticeOperatorView const& a, std::int64_t first, std::int64_t n,
                    double* out) const override {
    gather_on_rims(context, a, first, n, out);
  }
  void sums_on_rims(Context& context, LatticeOperatorView const& a, std::int64_t first, std::int64_t n,
                    DoubleDouble* out) const override {
    gather_on_rims(context, a, first, n, out);
  }

  void diagonal(Context& context, LatticeOperatorView const& a, double* d) const override {
    AccurateTables const tables = accurate_tables(a.lattices.order);
    Scratch<double> const scratch(context, a);
    int const n1 = a.points_of_direction(), points = a.points(), of_face = n1 * n1;
    std::int64_t const batches = a.stride() / LatticeTensors::cells_of_batch, stride = a.stride();
#pragma omp parallel for schedule(static) if (batches > 1)
    for (std::int64_t batch = 0; batch < batches; ++batch)
      for (int node = 0; node < points; ++node) {
        constexpr int count = LatticeTensors::cells_of_batch;
        double sums[count] = {};
        for (int q = 0; q < points; ++q) {
          double w[6];
          diagonal_weights(tables.element, tables.derivative, node, q, w);
          if (a.stores_k()) {
            for (int cell = 0; cell < count; ++cell) {
              double tensor[6];
              tensor_at(a, a.values, batch * count + cell, q, tensor);
              sums[cell] += w[0] * tensor[0] + w[1] * tensor[1] + w[2] * tensor[2];
            }
            continue;
          }
          double const* const tensor = a.values + (batch * points + q) * 6 * count;
#pragma omp simd
          for (int cell = 0; cell < count; ++cell)
            sums[cell] += w[0] * tensor[cell] + w[1] * tensor[count + cell] + w[2] * tensor[2 * count + cell] +
                          w[3] * tensor[3 * count + cell] + w[4] * tensor[4 * count + cell] + w[5] * tensor[5 * count + cell];
        }
        std::copy_n(sums, count, scratch.vectors + node * stride + batch * count);
      }
    std::int32_t const cells_of_face = a.lattices.cells * a.lattices.cells;
    for (std::int32_t number = 0; number < a.n_mass_faces; ++number)
#pragma omp parallel for schedule(static) if (cells_of_face * of_face * of_face >= cpu::work_worth_threads)
      for (std::int32_t c = 0; c < cells_of_face; ++c) {
        FaceCell const cell = face_cell(a, number, c);
        for (int t = 0; t < of_face; ++t) {
          int i[3];
          cell.node(n1 - 1, t, i);
          double& sum = scratch.vectors[((i[2] * n1 + i[1]) * n1 + i[0]) * stride + cell_number(a, cell.cell)];
          for (int q = 0; q < of_face; ++q) {
            double const value = face_value(tables.element, t, q);
            sum += a.face_mass[(std::int64_t{number} * cells_of_face + c) * of_face + q] * value * value;
          }
        }
      }
    gather(context, a, scratch.vectors, d);
  }

  void residual(Context& context, LatticeOperatorView const& a, double const* x, double const* x_low, double const* b,
                double* r) const override {
    AccurateTables const tables = accurate_tables(a.lattices.order);
    Scratch<DoubleDouble> const scratch(context, a);
    int const n1 = a.points_of_direction(), points = a.points(), of_face = n1 * n1;
    std::int64_t const n_cells = a.n_cells(), stride = a.stride();
    auto const value_of = [&](Place const& cell, int i, int j, int k) {
      std::int64_t const unknown = unknown_of(a.lattices, cell, i, j, k);
      if (a.is_fixed(unknown))
        return DoubleDouble(0);
      return x_low == nullptr ? DoubleDouble(x[unknown]) : two_sum(x[unknown], x_low[unknown]);
    };
#pragma omp parallel if (n_cells > 1)
    {
      AccurateCells cells(tables);
#pragma omp for schedule(static)
      for (std::int64_t first = 0; first < n_cells; first += accurate_lanes) {
        auto const count = static_cast<int>(std::min<std::int64_t>(accurate_lanes, n_cells - first));
        for (int lane = 0; lane < accurate_lanes; ++lane) {
          Place const place = cell_place(a, first + std::min(lane, count - 1));
          for (int node = 0; node < points; ++node)
            cells.set(node, lane, value_of(place, node % n1, node / n1 % n1, node / of_face));
        }
        cells.multiply([&](int q, int lane, double(&d)[6]) { tensor_at(a, a.values, first + std::min(lane, count - 1), q, d); });
        for (int node = 0; node < points; ++node)
          for (int lane = 0; lane < count; ++lane)
            store(scratch.vectors, node * stride + first + lane, cells.term(node, lane));
      }
    }
    std::int32_t const cells_of_face = a.lattices.cells * a.lattices.cells;
    for (std::int32_t number = 0; number < a.n_mass_faces; ++number)
#pragma omp parallel for schedule(static)
      for (std::int32_t c = 0; c < cells_of_face; ++c) {
        FaceCell const cell = face_cell(a, number, c);
        DoubleDouble values[max_points * max_points];
        int i[3];
        for (int t = 0; t < of_face; ++t) {
          cell.node(n1 - 1, t, i);
          values[t] = value_of(cell.cell, i[0], i[1], i[2]);
        }
        for (int t = 0; t < of_face; ++t) {
          cell.node(n1 - 1, t, i);
          std::int64_t const at = ((i[2] * n1 + i[1]) * n1 + i[0]) * stride + cell_number(a, cell.cell);
          double const* const mass = a.face_mass + (std::int64_t{number} * cells_of_face + c) * of_face;
          store(scratch.vectors, at,
                load(scratch.vectors, at) + accurate_face_term(tables.element, mass, t, [&](int s) { return values[s]; }));
        }
      }
#pragma omp parallel for schedule(static)
    for (std::int64_t row = 0; row < a.lattices.n_unknowns; ++row)
      r[row] = residual_of_row(a, row, scratch.vectors, x, x_low, b[row]);
  }

private:
  template <class T>
  static void gather_on_rims(Context& context, LatticeOperatorView const& a, std::int64_t first, std::int64_t n, T* out) {
    Scratch<T> const scratch(context, a);
#pragma omp parallel for schedule(static) if (8 * n * cpu::work_of <T> >= cpu::work_worth_threads)
    for (std::int64_t i = 0; i < n; ++i)
      out[i] = a.is_fixed(first + i) ? T(0) : gathered_on_rim<T>(a, scratch.vectors, first + i);
  }

  /// Calls row(i, (A x)_i) for all rows; *dot = x . A x unless it is null.
  template <class T, class Stored, class Row>
  static void run(Context& context, LatticeOperatorView const& a, Stored const* tensors, ConstPointer<T> x, T* dot,
                  Row const& row) {
    Scratch<T> const scratch(context, a);
    auto const make = [&](auto order) { make_vectors<T, Stored>(a, tensors, x, scratch, order); };
    std::int32_t const p = a.lattices.order;
    if constexpr (std::is_same_v<T, Stored>) {
      if (p == 1)
        make(Known<1>());
      else if (p == 2)
        make(Known<2>());
      else if (p == 3)
        make(Known<3>());
      else if (p == 4)
        make(Known<4>());
    }
    if (!std::is_same_v<T, Stored> || p > 4)
      make(static_cast<int>(p));
    if (a.after_cells != nullptr)
      (*a.after_cells)();
    gather_inner<T>(a, scratch.vectors, row);
    DotSum<T>* const of_rims = scratch.dots + scratch.n_runs + scratch.n_face_cells;
    for_rim_blocks<T>(a, [&](std::int64_t number, std::int64_t begin, std::int64_t end) {
      DotSum<T> of_block{};
      gather_rims<T>(a, scratch.vectors, begin, end, [&](std::int64_t i, T sum) {
        if (!a.is_fixed(i)) {
          row(i, sum);
          return;
        }
        T const value = static_cast<Real<T>>(a.diagonal[i]) * load(x, i);
        of_block.add(load(x, i), value);
        row(i, value);
      });
      of_rims[number] = of_block;
    });
    if (dot == nullptr)
      return;
    DotSum<T> sum{};
    for (std::int64_t d = 0; d < scratch.n_dots(); ++d)
      sum.add(scratch.dots[d]);
    *dot = sum.value();
  }
};

}  // namespace

LatticeOperatorKernels const& LatticeOperatorKernels::cpu() {
  static CpuLatticeOperator const kernels;
  return kernels;
}

}  // namespace poisson
