#include "assembly/system/system.hpp"

#include "assembly/parallel.hpp"
#include "assembly/space/edge_nodes.hpp"
#include "assembly/system/element_kernels.hpp"
#include "assembly/system/integrals.hpp"
#include "assembly/system/parts.hpp"
#include "assembly/system/pattern.hpp"
#include "assembly/system/scatter.hpp"
#include "assembly/system/source_check.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <numeric>
#include <utility>

namespace poisson::assembly {

namespace {

/// Integrals are compared with rounding and quadrature in mind; a larger defect means that the data contradict each other.
constexpr double largest_compatibility_defect = 1e-3;

/// Everything that the evaluation of one cell needs and one thread owns.
struct CellState {
  ProblemData data;
  CellGeometry geometry;
  std::vector<std::int32_t> dofs;
  std::vector<double> d, k, f, work;
  double box_volume = 0;
  std::array<double, 6> box_scale{};  ///< of the entries of a tensor

  /// The edges of the cell of a box.
  void set_box_cell(Point3 const& h) {
    box_volume = h[0] * h[1] * h[2];
    box_scale = {1 / (h[0] * h[0]), 1 / (h[1] * h[1]), 1 / (h[2] * h[2]), 1 / (h[0] * h[1]), 1 / (h[0] * h[2]), 1 / (h[1] * h[2])};
  }
};

class Assembler {
public:
  /// `places`: all unknowns; where only the boundary is asked for those that may be there.
  Assembler(Space const& space, ReferenceElement const& element, ProblemData const& data, Constraints of_space,
            BoundaryPlaces const& places)
      : space_(space),
        element_(element),
        data_(data),
        places_(places),
        shape_(tabulate(element.nodes, element.volume_points)),
        geometry_(tabulate(geometry_nodes_1d(space, element), element.volume_points)),
        kernel_(shape_.n_points, shape_.n_functions, shape_.gradients),
        conditions_alone_(of_space.size() == 0) {
    constraints() = conditions_alone_ ? Constraints(places.size()) : std::move(of_space);
    for (int face = 0; face < 6; ++face)
      face_nodes_[face] = element.face_nodes(face);
  }

  /// The part before any cell is looked at; afterwards it is known whether the constant is in the null space.
  bool prepare() {
    constrain();
    add_boundary_integrals();
    check_solvability();
    return system_.pure_neumann;
  }

  BoundaryTerms take_boundary() {
    prepare();
    return {places_,
            std::move(system_.constraints),
            std::move(system_.rhs),
            boundary_,
            std::move(robin_faces_),
            std::move(robin_weights_),
            system_.pure_neumann,
            system_.anchored};
  }

  LinearSystem run(AssemblyTimes* times) {
    auto const start = Clock::now();
    prepare();
    auto const prepared = Clock::now();
    if (space_.box && space_.sides_have_ids && conditions_alone_) {
      couplings_.emplace(space_, data_);
      system_.matrix = box_pattern(space_, *couplings_, constraints());
    } else {
      system_.matrix = general_pattern(space_, constraints());
    }
    auto const has_pattern = Clock::now();
    add_cells();
    add_robin_blocks();
    for (auto const& load : data_.point_loads.loads)
      add_load(load.unknown, load.value);
    if (system_.pure_neumann) {
      make_compatible();
      if (constraints().has_entries())
        hold_an_unknown();
    }
    system_.integral_f = source_.integral + data_.point_loads.integrals.sum;
    if (!is_part())  // the whole source counts
      system_.source_warning = check_source(space_, element_, data_, source_, source_cells_).warning();
    if (times != nullptr) {
      times->pattern = std::chrono::duration<double>(has_pattern - prepared).count();
      times->values = std::chrono::duration<double>(Clock::now() - has_pattern + (prepared - start)).count();
    }
    return std::move(system_);
  }

private:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] bool is_part() const { return space_.n_cells_of_whole > 0; }
  [[nodiscard]] Constraints& constraints() { return system_.constraints; }
  [[nodiscard]] Scatter scatter() { return Scatter(system_); }

  /// Dirichlet conditions. What the space itself ties to other unknowns stays so, which keeps u continuous.
  void constrain() {
    // The entry of the configuration that sets an unknown, plus one: earlier entries win. 0: none does.
    HostVector<std::uint16_t> set_by;
    set_by.resize(places_.size(), 0);
    auto const set_nodes = [&](std::vector<std::int32_t>& dofs, std::size_t index, std::int64_t cell, int face) {
      if (data_.boundary[index].type != BoundaryType::dirichlet)
        return;
      space_.dofs(cell, dofs.data());
      auto const set = [&](std::int32_t unknown) {
        std::int64_t const place = places_.place(unknown);
        if (constraints().constrained(place))  // by the space
          return;
        auto const by = static_cast<std::uint16_t>(index + 1);
        std::atomic_ref<std::uint16_t> const entry(set_by[place]);
        std::uint16_t known = entry.load(std::memory_order_relaxed);
        while ((known == 0 || known > by) && !entry.compare_exchange_weak(known, by, std::memory_order_relaxed)) {
        }
      };
      for (int const i : face_nodes_[face])
        set(dofs[i]);
      for_nodes_on_edges(space_, dofs, face, set);
    };
    auto const n_faces = std::ssize(space_.boundary_faces), n_inner = std::ssize(space_.inner_faces), n = places_.size();
    constexpr std::int64_t faces_at_once = 1024, places_at_once = 4096;
    parallel_for(
        n_parts(n_faces + n_inner, faces_at_once),
        [&] { return std::vector<std::int32_t>(static_cast<std::size_t>(space_.n_local)); },
        [&](std::vector<std::int32_t>& dofs, std::int64_t block) {
          auto const [begin, end] = part(n_faces + n_inner, faces_at_once, block);
          for (std::int64_t i = begin; i < end; ++i)
            if (i < n_faces) {
              BoundaryFace const& face = space_.boundary_faces[i];
              set_nodes(dofs, data_.boundary_of.at(face.boundary_id), face.cell, face.face);
            } else if (InnerFace const& face = space_.inner_faces[i - n_faces]; data_.inner_of.contains(face.id)) {
              std::size_t const side = face.cells[0] >= 0 ? 0 : 1;
              set_nodes(dofs, data_.inner_of.at(face.id), face.cells[side], face.faces[side]);
            }
        });
    std::vector<std::vector<double>> values(static_cast<std::size_t>(n_parts(n, places_at_once)));
    parallel_for(
        std::ssize(values), [&] { return data_; },
        [&](ProblemData const& data, std::int64_t block) {
          auto const [begin, end] = part(n, places_at_once, block);
          for (std::int64_t place = begin; place < end; ++place)
            if (set_by[place] != 0) {
              Point3 const x = space_.point(places_.unknown(place));
              values[block].push_back(data.boundary[set_by[place] - 1U].value.finite(x, "the Dirichlet value"));
            }
        });
    for (std::int64_t block = 0; block < std::ssize(values); ++block) {
      auto next = values[block].begin();
      auto const [begin, end] = part(n, places_at_once, block);
      for (std::int64_t place = begin; next != values[block].end() && place < end; ++place)
        if (set_by[place] != 0)
          constraints().set(static_cast<std::int32_t>(place), *next++);
    }
    constraints().close();
  }

  /// Whether nothing flows through a boundary, whose faces need no values then.
  [[nodiscard]] static bool is_insulated(BoundaryData const& condition) {
    return condition.type == BoundaryType::neumann && condition.value.is_constant() && condition.value(Point3{}) == 0;
  }

  /// Neumann and Robin data. Robin's mass matrices wait, as weights at the points, until there is a matrix to add them to.
  void add_boundary_integrals() {
    std::int64_t const n = places_.size();
    system_.rhs.resize(n);
    constexpr std::int64_t at_once = 1 << 16;  // its pages are new: the threads touch them
    parallel_for(n_parts(n, at_once), [&](std::int64_t const i) {
      auto const [begin, end] = part(n, at_once, i);
      std::fill(system_.rhs.begin() + begin, system_.rhs.begin() + end, 0.0);
    });
    anchored_.assign(static_cast<std::size_t>(space_.n_components), false);
    std::array<PointTables, 6> geometry;
    for (int face = 0; face < 6; ++face) {
      face_shape_[face] = tabulate(element_.nodes, element_.face_points[face]);
      geometry[face] = tabulate(geometry_nodes_1d(space_, element_), element_.face_points[face]);
    }
    std::vector<std::int32_t> dofs(space_.n_local);
    CellGeometry cell(space_);
    auto const n_points = element_.face_weights.size();
    for (InnerFace const& face : space_.inner_faces) {
      BoundaryData const* const condition = data_.inner_at(face.id);
      if (condition == nullptr)
        continue;
      std::size_t const side = face.cells[0] >= 0 ? 0 : 1;
      if (condition->type == BoundaryType::dirichlet) {
        anchored_[static_cast<std::size_t>(space_.component(face.cells[side]))] = true;
        continue;
      }
      space_.dofs(face.cells[side], dofs.data());
      cell.reset(face.cells[side], dofs.data());
      int const f = face.faces[side];
      for (std::size_t q = 0; q < n_points; ++q) {
        auto const [x, weight] = face_point(cell, geometry[f], f, q);
        double const g = weight * condition->value.finite(x, "the boundary value");
        if (side == 0) {  // of several parts one has the first cell
          boundary_.sum += g;
          boundary_.absolute += std::abs(g);
        }
        add_face_load(dofs, f, q, g);
      }
    }
    BoundaryValues const values = evaluate_boundary(geometry);
    for (std::size_t i = 0; i < space_.boundary_faces.size(); ++i) {
      auto const& face = space_.boundary_faces[i];
      auto const& condition = data_.boundary_at(face.boundary_id);
      if (condition.type == BoundaryType::periodic || is_insulated(condition))
        continue;
      if (condition.type == BoundaryType::dirichlet) {
        anchored_[static_cast<std::size_t>(space_.component(face.cell))] = true;
        continue;
      }
      space_.dofs(face.cell, dofs.data());
      for (std::size_t q = 0; q < n_points; ++q) {
        double const g = values.g[i * n_points + q];
        boundary_.sum += g;
        boundary_.absolute += std::abs(g);
        add_face_load(dofs, face.face, q, g);
      }
      if (values.has_alpha[i] != 0) {
        anchored_[static_cast<std::size_t>(space_.component(face.cell))] = true;
        robin_faces_.push_back(i);
        auto const first = values.alpha.begin() + static_cast<std::ptrdiff_t>(i * n_points);
        robin_weights_.insert(robin_weights_.end(), first, first + static_cast<std::ptrdiff_t>(n_points));
      }
    }
  }

  /// Neumann and Robin values, and alpha, times dS at the points of all faces on the boundary; undefined at others, and at
  /// insulated ones.
  struct BoundaryValues {
    HostVector<double> g, alpha;
    HostVector<std::uint8_t> has_alpha;  ///< of a face: it is positive somewhere
  };
  [[nodiscard]] BoundaryValues evaluate_boundary(std::array<PointTables, 6> const& geometry) const {
    auto const n_faces = std::ssize(space_.boundary_faces);
    auto const n_points = static_cast<std::int64_t>(element_.face_weights.size());
    BoundaryValues result{HostVector<double>(static_cast<std::size_t>(n_faces * n_points)),
                          HostVector<double>(static_cast<std::size_t>(n_faces * n_points)),
                          HostVector<std::uint8_t>(static_cast<std::size_t>(n_faces))};
    struct State {
      ProblemData data;
      CellGeometry cell;
      std::vector<std::int32_t> dofs;
    };
    constexpr std::int64_t faces_of_part = 256;
    parallel_for(
        n_parts(n_faces, faces_of_part),
        [&] {
          return State{data_, CellGeometry(space_), std::vector<std::int32_t>(static_cast<std::size_t>(space_.n_local))};
        },
        [&](State& state, std::int64_t const p) {
          auto const [begin, end] = part(n_faces, faces_of_part, p);
          for (std::int64_t i = begin; i < end; ++i) {
            BoundaryFace const& face = space_.boundary_faces[i];
            BoundaryData const& condition = state.data.boundary_at(face.boundary_id);
            result.has_alpha[i] = 0;
            if (condition.type == BoundaryType::periodic || condition.type == BoundaryType::dirichlet || is_insulated(condition))
              continue;
            space_.dofs(face.cell, state.dofs.data());
            state.cell.reset(face.cell, state.dofs.data());
            for (std::int64_t q = 0; q < n_points; ++q) {
              auto const [x, weight] = face_point(state.cell, geometry[face.face], face.face, q);
              result.g[i * n_points + q] = weight * condition.value.finite(x, "the boundary value");
              if (condition.type != BoundaryType::robin)
                continue;
              double const alpha = condition.alpha.finite(x, "alpha");
              if (alpha < 0)
                refuse_alpha(condition.alpha, x);
              if (alpha > 0)
                result.has_alpha[i] = 1;
              result.alpha[i * n_points + q] = weight * alpha;
            }
          }
        });
    return result;
  }

  struct FacePoint {
    Point3 x;
    double weight;  ///< dS
  };
  /// `map`: the geometry functions at the points of this face of the cell.
  [[nodiscard]] FacePoint face_point(CellGeometry const& cell, PointTables const& map, int face, std::size_t q) const {
    auto const c = cofactors(cell.jacobian(map.gradients.data() + 3 * q * cell.n_nodes()));
    int const d = face / 2;
    return {cell.point(map.values.data() + q * cell.n_nodes()),
            element_.face_weights[q] * std::sqrt(c[d] * c[d] + c[3 + d] * c[3 + d] + c[6 + d] * c[6 + d])};
  }

  /// g times the functions of the nodes on a face, at its point q.
  void add_face_load(std::vector<std::int32_t> const& dofs, int face, std::size_t q, double g) {
    if (g != 0)
      for (int const a : face_nodes_[face])
        add_load(dofs[a], g * face_shape_[face].values[q * space_.n_local + a]);
  }
  /// Part of C^T f. C^T A g is taken off with the matrices.
  void add_load(std::int32_t unknown, double f) {
    auto const dof = static_cast<std::int32_t>(places_.place(unknown));
    if (!constraints().constrained(dof))
      system_.rhs[dof] += f;
    else
      for (auto const& [free, weight] : constraints().row(dof))
        system_.rhs[free] += weight * f;
  }

  void check_solvability() {
    auto const free = static_cast<std::size_t>(std::count(anchored_.begin(), anchored_.end(), false));
    system_.anchored = free == 0;
    if (free == 0 || is_part())
      return;
    if (anchored_.size() == 1) {
      system_.pure_neumann = true;
      return;
    }
    constexpr std::size_t most_told = 3;
    std::vector<MeshPart> const sizes = component_sizes(space_, element_);
    std::vector<std::int32_t> dofs(space_.n_local);
    std::string places;
    std::size_t told = 0;
    for (std::size_t part = 0; part < anchored_.size() && told < most_told; ++part)
      if (!anchored_[part]) {
        space_.dofs(space_.cell_of_component(static_cast<std::int32_t>(part)), dofs.data());
        places += (told++ > 0 ? "; " : "") + std::to_string(sizes[part].count) + (sizes[part].count == 1 ? " cell" : " cells") +
                  " of volume " + to_text(sizes[part].size, 6) + " at (x, y, z) = " + to_text(space_.point(dofs[0]));
      }
    throw InputError("problem.boundary",
                     "the mesh has " + std::to_string(anchored_.size()) + " parts that do not touch, and " + std::to_string(free) +
                         " of them (" + places + (free > told ? "; ..." : "") + ") " + (free == 1 ? "has" : "have") +
                         " neither a Dirichlet condition nor a Robin condition with alpha > 0: the solution is not unique "
                         "there; give every part such a condition");
  }

  /// Fills state.d with w det J J^-1 k J^-T at every point (packed as StiffnessKernel takes it) and state.f with the load.
  /// `affine`: k is constant, too, and state.d is wanted at the first point alone.
  void evaluate(CellState& state, std::int64_t cell, bool need_tensor, bool affine, SourceSums& source) const {
    auto const material = space_.material(cell);
    Function const& density = state.data.source(material);
    bool const need_points = !density.is_constant() || !constant_coefficient_;
    bool const box = space_.box.has_value();
    auto const& coefficient = state.data.coefficient(material);
    bool const constant = coefficient.is_constant();
    bool const diagonal = coefficient.is_diagonal();
    Tensor k = constant ? coefficient({}, material) : Tensor{};
    int const n = space_.n_local, nodes = state.geometry.n_nodes();
    std::fill(state.f.begin(), state.f.end(), 0.0);
    double det = 0;
    std::array<double, 9> c{};
    for (int q = 0; q < shape_.n_points; ++q) {
      Point3 const x =
          need_points ? state.geometry.point(geometry_.values.data() + static_cast<std::ptrdiff_t>(q) * nodes) : Point3{};
      bool const is_known = affine && q > 0;
      if (box) {
        det = state.box_volume;
      } else if (!is_known) {
        auto const j = state.geometry.jacobian(geometry_.gradients.data() + static_cast<std::ptrdiff_t>(3) * q * nodes);
        c = cofactors(j);
        det = j[0] * c[0] + j[1] * c[1] + j[2] * c[2];
        if (!(det > 0))
          throw_inverted_cell(state.geometry.point(geometry_.values.data() + static_cast<std::ptrdiff_t>(q) * nodes), det);
      }
      double const weight = element_.weights[q] * det;
      if (need_tensor && !is_known) {
        if (!constant)
          k = coefficient(x, material);
        double* const d = state.d.data() + static_cast<std::ptrdiff_t>(6) * q;
        if (box) {
          for (std::size_t e = 0; e < 6; ++e)
            d[e] = weight * k.entries[e] * state.box_scale[e];
        } else {
          // J^-1 = c^T / det, and c is stored by rows of d x_i / d xi_j: D_ab = w / det sum_i c_ia k_i c_ib
          double const scale = element_.weights[q] / det;
          std::array<Point3, 3> m{};  // k c by columns, of a full tensor
          for (int b = 0; b < 3 && !diagonal; ++b)
            m[b] = k * Point3{c[b], c[3 + b], c[6 + b]};
          auto const product = [&](int a, int b) {
            return scale * (diagonal ? k.xx() * c[a] * c[b] + k.yy() * c[3 + a] * c[3 + b] + k.zz() * c[6 + a] * c[6 + b]
                                     : c[a] * m[b][0] + c[3 + a] * m[b][1] + c[6 + a] * m[b][2]);
          };
          d[0] = product(0, 0);
          d[1] = product(1, 1);
          d[2] = product(2, 2);
          d[3] = product(0, 1);
          d[4] = product(0, 2);
          d[5] = product(1, 2);
        }
      }
      double const f = weight * density.finite(x, "the source");
      source.integral += f;
      source.absolute += std::abs(f);
      if (f != 0) {
        double const* const values = shape_.values.data() + static_cast<std::ptrdiff_t>(q) * n;
        for (int a = 0; a < n; ++a)
          state.f[a] += f * values[a];
      }
    }
  }

  void add_cells() {
    constant_coefficient_ = data_.constant_coefficient();
    bool const constant_source = data_.constant_source();
    int const n = space_.n_local, n_points = shape_.n_points;
    bool const graded = space_.box && !space_.box->has_equal_cells(), equal_cells = space_.box && !graded;
    auto const make_state = [&] {
      CellState state{data_,
                      CellGeometry(space_),
                      std::vector<std::int32_t>(n),
                      std::vector<double>(6 * n_points),
                      std::vector<double>(static_cast<std::size_t>(n) * n),
                      std::vector<double>(n),
                      {}};
      if (equal_cells)
        state.set_box_cell(space_.box_cell_size({0, 0, 0}));
      return state;
    };
    std::vector<double> basis;  // for affine cells with constant k
    bool const one_matrix = equal_cells && constant_coefficient_ && space_.material_ids.size() == 1;
    bool const one_vector = equal_cells && data_.one_source() && constant_source;
    auto shared = make_state();
    SourceSums shared_source;
    if (one_matrix || one_vector) {
      space_.dofs(0, shared.dofs.data());
      shared.geometry.reset(0, shared.dofs.data());
      evaluate(shared, 0, one_matrix, false, shared_source);
      if (one_matrix)
        kernel_.compute(shared.d.data(), shared.k.data(), shared.work);
    } else if (!equal_cells && constant_coefficient_ && space_.order <= 4) {
      basis = kernel_.combination_basis(element_.weights);
    }

    auto const scatter = this->scatter();
    std::vector<SourceSums> source(n_parts(space_.n_cells, space_.cells_per_part));
    std::vector<LargestCells> source_cells(source.size(), LargestCells(most_cells_of_part));
    for (auto const& parts : space_.color_parts(constraints()))
      parallel_for(static_cast<std::int64_t>(parts.size()), make_state, [&](CellState& state, std::int64_t const i) {
        auto const p = parts[i];
        auto const [begin, end] = part(space_.n_cells, space_.cells_per_part, p);
        SourceSums sum;
        for (auto cell = begin; cell < end; ++cell) {
          space_.dofs(cell, state.dofs.data());
          bool affine = false;
          if (one_matrix && one_vector) {
            sum.integral += shared_source.integral;
            sum.absolute += shared_source.absolute;
          } else {
            state.geometry.reset(cell, state.dofs.data());
            if (graded)
              state.set_box_cell(space_.box_cell_size(space_.box_cell(cell)));
            affine = !basis.empty() && state.geometry.affine();
            double const before = sum.absolute;
            evaluate(state, cell, !one_matrix, affine, sum);
            if (!constant_source)
              source_cells[p].offer(cell, sum.absolute - before);
            if (affine) {
              // With constant k the tensor is the same at every point but for the weight.
              std::array<double, 6> d;
              for (std::size_t c = 0; c < 6; ++c)
                d[c] = state.d[c] / element_.weights[0];
              combine(d.data(), basis.data(), state.k.size(), state.k.data());
            } else if (!one_matrix) {
              kernel_.compute(state.d.data(), state.k.data(), state.work);
            }
          }
          double const* const k = one_matrix ? shared.k.data() : state.k.data();
          double const* const f = one_matrix && one_vector ? shared.f.data() : state.f.data();
          if (couplings_)
            scatter.add_box_cell(space_, *couplings_, cell, state.dofs.data(), k, f);
          else
            scatter.add(n, state.dofs.data(), k, f);
        }
        source[p] = sum;
      });
    for (std::size_t p = 0; p < source.size(); ++p) {
      source_.integral += source[p].integral;
      source_.absolute += source[p].absolute;
      source_cells_.insert(source_cells_.end(), source_cells[p].entries().begin(), source_cells[p].entries().end());
    }
  }

  void add_robin_blocks() {
    int const n = space_.n_local;
    auto const m = face_nodes_[0].size();
    std::vector<std::int32_t> cell_dofs(n), dofs(m);
    std::vector<double> k(m * m), f(m, 0.0);
    auto const scatter = this->scatter();
    for (std::size_t i = 0; i < robin_faces_.size(); ++i) {
      auto const& face = space_.boundary_faces[robin_faces_[i]];
      auto const& nodes = face_nodes_[face.face];
      auto const& values = face_shape_[face.face].values;
      space_.dofs(face.cell, cell_dofs.data());
      for (std::size_t a = 0; a < m; ++a)
        dofs[a] = cell_dofs[nodes[a]];
      std::fill(k.begin(), k.end(), 0.0);
      for (std::size_t q = 0; q < element_.face_weights.size(); ++q) {
        double const weight = robin_weights_[i * element_.face_weights.size() + q];
        for (std::size_t a = 0; a < m; ++a)
          for (std::size_t b = 0; b < m; ++b)
            k[a * m + b] += weight * values[q * n + nodes[a]] * values[q * n + nodes[b]];
      }
      scatter.add(static_cast<int>(m), dofs.data(), k.data(), f.data());
    }
  }

  void make_compatible() {
    auto integrals = basis_integrals(space_, element_);
    constraints().restrict_to_free(integrals);
    double const total = ordered_sum(system_.rhs);
    system_.compatibility_defect =
        compatibility_defect(total, source_.absolute + boundary_.absolute + data_.point_loads.integrals.absolute);
    subtract_constant_source(system_.rhs, integrals);
  }

  /// The rows of unknowns that depend on others are not zero on the constant vector, so that it is no null vector, though the rest
  /// of the matrix is singular. With one free unknown at 0 it is not.
  void hold_an_unknown() {
    auto const& mask = constraints().mask();
    auto const held = static_cast<std::int32_t>(std::find(mask.begin(), mask.end(), std::uint8_t{0}) - mask.begin());
    if (held == space_.n_dofs)
      return;
    CsrMatrix& a = system_.matrix;
    auto const zero = [&](std::int32_t row, auto const& which) {
      for (auto e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e)
        if (which(a.columns[e]))
          a.values[e] = 0;
    };
    for (auto e = a.row_ptr[held]; e < a.row_ptr[held + 1]; ++e)
      if (std::int32_t const column = a.columns[e]; column != held)
        zero(column, [&](std::int32_t c) { return c == held; });
    zero(held, [&](std::int32_t c) { return c != held; });
    system_.rhs[held] = 0;
    system_.holds_an_unknown = true;
  }

  Space const& space_;
  ReferenceElement const& element_;
  ProblemData const& data_;
  BoundaryPlaces places_;
  PointTables shape_, geometry_;
  StiffnessKernel kernel_;
  std::array<PointTables, 6> face_shape_;
  std::array<std::vector<int>, 6> face_nodes_;
  bool conditions_alone_;  ///< constraints are Dirichlet conditions only
  LinearSystem system_;
  std::vector<bool> anchored_;  ///< by component: something fixes the constant
  std::vector<std::size_t> robin_faces_;
  std::vector<double> robin_weights_;  ///< alpha dS at the points of every face in robin_faces_
  std::optional<BoxCouplings> couplings_;
  bool constant_coefficient_ = false;
  SourceSums source_;
  std::vector<LargestCells::Entry> source_cells_;  ///< with the largest integrals of |f|
  FieldSums boundary_;                             ///< of Neumann and Robin values
};

}  // namespace

double compatibility_defect(double total, double absolute) {
  double const defect = absolute > 0 ? total / absolute : 0;
  if (std::abs(defect) > largest_compatibility_defect)
    throw InputError("problem.boundary",
                     "the problem has no solution: with Neumann conditions only, sources and boundary fluxes must cancel; here " +
                         to_text(std::abs(total)) + " too much goes " + (total > 0 ? "in" : "out") + " (" +
                         to_text(100 * std::abs(defect)) +
                         " % of all that flows; int f + int g must be 0); change the source or the boundary values, or fix u "
                         "somewhere");
  return defect;
}

namespace {

BoundaryPlaces places_on_boundary(Space const& space) {
  BoundaryPlaces places{space.n_dofs, space.lattices ? space.lattices->first_face : 0};
  if (space.box && space.inner_faces.empty())
    places.surface = {{space.box_nodes[0], space.box_nodes[1], space.box_nodes[2]}};
  return places;
}

}  // namespace

BoundaryTerms boundary_terms(Space const& space, ReferenceElement const& element, ProblemData const& data) {
  return Assembler(space, element, data, Constraints(), places_on_boundary(space)).take_boundary();
}

bool is_pure_neumann(Space const& space, ReferenceElement const& element, ProblemData const& data) {
  return Assembler(space, element, data, Constraints(), places_on_boundary(space)).prepare();
}

LinearSystem assemble_system(Space const& space, ReferenceElement const& element, ProblemData const& data, Constraints of_space,
                             AssemblyTimes* times) {
  return Assembler(space, element, data, std::move(of_space), {space.n_dofs}).run(times);
}

}  // namespace poisson::assembly
