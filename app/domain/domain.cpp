#include "app/domain/domain.hpp"

#include "app/config/problem.hpp"
#include "app/domain/mesh_shares.hpp"
#include "assembly/mesh/coarse_mesh.hpp"
#include "assembly/space/places.hpp"
#include "assembly/space/space.hpp"
#include "assembly/system/point_loads.hpp"
#include "gpu/core/communicator.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/memory.hpp"
#include "gpu/core/row_map.hpp"
#include "gpu/elements/lattice_nodes.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <sstream>
#include <tuple>
#include <utility>

namespace poisson::app {

namespace {

using assembly::BoxPart;
using assembly::BoxPartition;
using assembly::nodes_of;
using Counts = std::array<std::int64_t, 3>;
using Point = std::array<double, 3>;

/// Sums over the ranks.
assembly::PlaceCounts merged(Communicator& ranks, assembly::PlaceCounts const& mine) {
  assembly::PlaceCounts all = mine;
  for (auto const list : {&assembly::PlaceCounts::boundaries, &assembly::PlaceCounts::regions})
    for (auto& entry : all.*list) {
      entry.held = sum_over(ranks, entry.held);
      entry.cut = sum_over(ranks, entry.cut);
    }
  auto const unite = [&](std::set<unsigned>& ids) {
    std::string text;
    for (unsigned const id : ids)
      text += std::to_string(id) + " ";
    for (std::string const& of_rank : gather_texts(ranks, text)) {
      std::istringstream words(of_rank);
      for (unsigned id = 0; words >> id;)
        ids.insert(id);
    }
  };
  unite(all.boundary_ids);
  unite(all.material_ids);
  return all;
}

void keep_names_in_use(assembly::MeshSummary& mesh) {
  mesh.boundary_groups.keep(mesh.boundary_ids);
  mesh.material_groups.keep(mesh.material_ids);
}

/// What the named places hold in the whole mesh; so that every part knows the ids that there are. `count()` gives what they hold in
/// the own cells of a rank, and the corners of these; no lists where there are none.
template <class Count>
assembly::PlaceCounts find_places(assembly::MeshSpec const& spec, Domain& mesh, Team& team, Count const& count) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  assembly::CheckedProblem::Places places{{}, {infinity, infinity, infinity}, {-infinity, -infinity, -infinity}};
  team.together([&] {
    if (auto found = count())
      places = std::move(*found);
    places.counts.boundaries.resize(spec.boundaries.size());
    places.counts.regions.resize(spec.regions.size());
  });
  assembly::PlaceCounts counts = merged(team.communicator(), places.counts);
  auto const corners = combined(
      team.communicator(), std::array{places.low, places.high},
      [](std::array<Point, 2>& whole, std::array<Point, 2> const& part) {
        for (std::size_t d = 0; d < 3; ++d) {
          whole[0][d] = std::min(whole[0][d], part[0][d]);
          whole[1][d] = std::max(whole[1][d], part[1][d]);
        }
      },
      Communicator::Order::of_ranks);
  team.together([&] { mesh.notes = check_places(spec, counts, corners[0], corners[1], mesh.whole.left_out.parts > 0); });
  mesh.whole.boundary_ids = counts.boundary_ids;
  mesh.whole.material_ids = counts.material_ids;
  keep_names_in_use(mesh.whole);
  return counts;
}

/// Scales f on the parts, where its integral is given.
void scale_source(Domain& mesh, Team& team, double total) {
  FieldSums sums;
  team.together([&] {
    if (mesh.own)
      sums = mesh.own->source_integral();
  });
  sums = {sum_over(team.communicator(), sums.sum), sum_over(team.communicator(), sums.absolute)};
  team.together([&] {
    if (mesh.around)  // a rank may have rows without cells of its own
      mesh.around->scale_source(total, sums);
    if (mesh.own)
      mesh.own->scale_source(total, sums);
  });
}

/// Which points of sources are in a part; the same on all ranks. Collective.
std::vector<bool> found_places(std::shared_ptr<assembly::Discretization> const& part, Team& team) {
  std::vector<bool> found;
  if (part)
    for (auto const& place : part->point_loads().places)
      found.push_back(place.found);
  // The first rank has cells, and so all places.
  found.resize(static_cast<std::size_t>(of_first(team.communicator(), found.size())), false);
  return any_in_lists(team.communicator(), found);
}

/// Points of sources that are in no part, but near one, are moved onto the nearest of all parts. Collective.
void move_sources(Domain& mesh, Team& team, assembly::SharedPlaces shared) {
  std::vector<bool> const found = found_places(mesh.around, team);
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < found.size(); ++i)
    if (!found[i])
      missing.push_back(i);
  if (missing.empty())
    return;
  struct Near {
    std::size_t place;
    double distance;
    Point to;
  };
  std::vector<Near> here;
  team.together([&] {
    if (!mesh.around)
      return;
    std::vector<Point> points;
    for (std::size_t const place : missing)
      points.push_back(mesh.around->point_loads().places[place].at);
    auto const located = mesh.around->locate(points);
    for (std::size_t i = 0; i < located.size(); ++i)
      if (located[i].cell >= 0)
        here.push_back({missing[i], located[i].moved, located[i].x});
  });
  std::map<std::size_t, double> least;
  for (Near const& near : gather_lists(team.communicator(), here))
    if (auto const [entry, is_new] = least.emplace(near.place, near.distance); is_new || near.distance < entry->second) {
      entry->second = near.distance;
      shared.moved[near.place] = near.to;
    }
  team.together([&] {
    for (auto* const part : {&mesh.around, &mesh.own})
      if (*part && !shared.moved.empty())
        (*part)->set_places_of_sources(shared);
  });
}

/// Throws InputError for the first point of a source that is in no part.
void require_sources_inside(Domain const& mesh, Team& team) {
  Communicator& ranks = team.communicator();
  std::vector<bool> const found = found_places(mesh.own, team);
  std::vector<assembly::PointLoads::Place> places;
  if (mesh.own)
    places = mesh.own->point_loads().places;
  auto const missing = std::find(found.begin(), found.end(), false);
  if (missing == found.end())
    return;
  auto const i = static_cast<std::size_t>(missing - found.begin());
  assembly::PointLoads::Place const place = of_first(ranks, i < places.size() ? places[i] : assembly::PointLoads::Place{});
  auto const nearest = nearest_node(mesh, team, place.at);
  team.together([&] { refuse_place(place, nearest); });
}

/// On the rim of a part whose boundaries have names an unknown may have its Dirichlet face in another part: its rank tells.
void exchange_dirichlet_values(Domain& mesh, Team& team) {
  assembly::DirichletValues given;
  std::vector<double> own;
  team.together([&] {
    if (mesh.around)
      given = mesh.around->dirichlet_on_rims();
    if (!mesh.box)
      return;
    own.resize(static_cast<std::size_t>(mesh.n_rows));
    for (std::size_t i = 0; i < given.values.size(); ++i)
      if (mesh.places[i] < mesh.n_rows)
        own[static_cast<std::size_t>(mesh.places[i])] = given.values[i];
  });
  // Of other meshes places are numbers: only some unknowns have values.
  RankLists<double> to;
  for (RankNeighbor const& neighbor : mesh.neighbors)
    for (std::int32_t const row : neighbor.sent)
      to[neighbor.rank].push_back(mesh.box ? own[static_cast<std::size_t>(row)] : given[row]);
  auto const ghosts = swap_lists(team.communicator(), to).joined();
  if (!mesh.around)
    return;
  for (std::size_t i = 0; i < given.values.size(); ++i)
    if (std::int64_t const place = mesh.places[static_cast<std::size_t>(given.first) + i]; place >= mesh.n_rows)
      given.values[i] = ghosts[static_cast<std::size_t>(place - mesh.n_rows)];
  mesh.around->set_dirichlet_on_rims(given);
}

/// Makes nodes of lattices in the device's memory, which keeps them. Without memory for them they are made here, and again later.
FillLattices fill_on(ContextProvider const& device, Array<double>& nodes) {
  if (!device)
    return {};
  return [&](LatticesToFill const& lattices, std::span<double> of_sides) {
    try {
      nodes = make_lattice_nodes(device(), lattices, of_sides);
      return true;
    } catch (OutOfMemoryError const&) {
      return false;
    }
  };
}

/// One rank has the whole mesh.
Domain whole_mesh(RunConfig const& config, Forecaster const& forecast, ContextProvider const& device) {
  Domain mesh;
  assembly::CheckedProblem problem(problem_of(config));
  assembly::AssembledInto const into = forecast(problem);
  mesh.around = std::make_shared<assembly::Discretization>(std::move(problem), into, fill_on(device, mesh.nodes));
  mesh.own = mesh.around;
  mesh.whole = mesh.own->summary();
  mesh.n_rows = mesh.whole.dofs;
  mesh.notes = mesh.own->notes();
  return mesh;
}

Domain mesh_of_box(RunConfig const& config, Team& team, Forecaster const& forecast) {
  Domain mesh;
  int const order = config.problem.order, rank = team.rank();
  assembly::ProblemSpec spec = problem_of(config);
  spec.mesh.shared = true;
  BoxPart own, around;
  team.together([&] {
    assembly::CheckedProblem const problem(spec);
    static_cast<void>(forecast(problem));
    mesh.whole = problem.mesh();
    BoxPartition const& partition = mesh.box.emplace(spec.mesh.refined_cells(), order, team.size());
    mesh.neighbors = partition.neighbors(rank);
    mesh.n_rows = partition.n_rows(rank);
    own = partition.cells(rank);
    around = partition.assembled_cells(rank);
  });
  mesh.part = own;
  mesh.part_around = around;
  mesh.order = order;
  mesh.cells = spec.mesh.refined_cells();
  if (spec.mesh.has_places())
    spec.mesh.places_of_whole = find_places(spec.mesh, mesh, team, [&]() -> std::optional<assembly::CheckedProblem::Places> {
      if (own.n_cells() == 0)
        return std::nullopt;
      spec.mesh.part = own;
      auto const& [origin, extent] = std::tie(spec.mesh.origin, spec.mesh.extent);
      return {{assembly::count_places(spec), origin, {origin[0] + extent[0], origin[1] + extent[1], origin[2] + extent[2]}}};
    });
  team.together([&] {
    if (own.n_cells() == 0)
      return;
    mesh.places = mesh.box->places(rank);
    spec.mesh.part = around;
    mesh.around = std::make_shared<assembly::Discretization>(spec);
    spec.mesh.part = own;
    mesh.own = std::make_shared<assembly::Discretization>(spec);
  });
  if (spec.source_total)
    scale_source(mesh, team, *spec.source_total);
  move_sources(mesh, team, {});
  require_sources_inside(mesh, team);
  if (!spec.mesh.boundaries.empty())
    exchange_dirichlet_values(mesh, team);
  if (mesh.whole.periodic)
    tie_unknowns(mesh, team);
  return mesh;
}

/// A line is cut where any part knows that it goes from one cell to another, so that all parts integrate over the same pieces.
std::vector<std::vector<double>> share_line_cuts(Domain& mesh, Team& team, std::size_t n_lines) {
  std::vector<std::vector<double>> cuts;
  team.together([&] {
    if (mesh.around)
      cuts = mesh.around->line_cuts();
  });
  cuts.resize(n_lines);
  for (auto& of_line : cuts) {
    std::vector<double> all = gather_lists(team.communicator(), of_line);
    std::sort(all.begin(), all.end());
    of_line.clear();
    for (double const t : all)
      if (of_line.empty() || t - of_line.back() > 1e-12)
        of_line.push_back(t);
  }
  team.together([&] {
    if (mesh.around)
      mesh.around->set_places_of_sources({cuts, {}});
  });
  return cuts;
}

/// Own cells and their unknowns, from the part around them.
void make_own(Domain& mesh, assembly::PartOfSpace& part) {
  // The unknowns of own cells get the order of the whole mesh: what is made of cells and nodes by their order is then the same as
  // on one rank. Own unknowns have this order already.
  auto const first_ghost = std::lower_bound(part.in_own_cells.begin(), part.in_own_cells.end(), part.n_rows);
  auto const is_before = [&](std::int32_t a, std::int32_t b) {
    return part.unknowns[static_cast<std::size_t>(a)] < part.unknowns[static_cast<std::size_t>(b)];
  };
  std::sort(first_ghost, part.in_own_cells.end(), is_before);
  std::inplace_merge(part.in_own_cells.begin(), first_ghost, part.in_own_cells.end(), is_before);
  for (std::int32_t const place : part.in_own_cells)
    mesh.own_unknowns.push_back(part.unknowns[static_cast<std::size_t>(place)]);
  mesh.own_cells = std::move(part.own_cells);
  mesh.own = std::make_shared<assembly::Discretization>(*mesh.around, assembly::places_in(part.around_cells, mesh.own_cells),
                                                        part.in_own_cells);
  mesh.own_in_list = std::move(part.in_own_cells);
}

/// The part on the cells around own rows, if there are any of its unknowns, and that on own cells, from a problem that knows the
/// former. make_own() makes the latter.
template <class MakeOwn>
void make_parts(Domain& mesh, Team& team, assembly::ProblemSpec const& spec, std::optional<assembly::CheckedProblem> problem,
                std::size_t n_around, MakeOwn const& make_own) {
  team.together([&] {
    if (n_around == 0)
      return;
    mesh.places = RowPlaces(n_around);
    mesh.around = std::make_shared<assembly::Discretization>(std::move(*problem));
  });
  problem.reset();
  assembly::SharedPlaces places;
  if (!spec.line_sources.empty())
    places.cuts = share_line_cuts(mesh, team, spec.line_sources.size());
  move_sources(mesh, team, std::move(places));
  exchange_dirichlet_values(mesh, team);
  team.together([&] { make_own(); });
  if (spec.source_total)
    scale_source(mesh, team, *spec.source_total);
  require_sources_inside(mesh, team);
}

/// Every rank makes the lattices, or pieces of lattices, that it needs. None: the mesh is not one of lattices.
std::optional<Domain> mesh_of_lattices(RunConfig const& config, Team& team, Forecaster const& forecast,
                                       ContextProvider const& device) {
  Domain mesh;
  std::optional<assembly::CheckedProblem> problem;
  team.together([&] {
    problem.emplace(problem_of(config));
    assembly::AssembledInto const into = forecast(*problem);
    mesh.whole = problem->mesh();
    mesh.pieces = problem->share(team.rank(), team.size(), into, fill_on(device, mesh.nodes));
  });
  if (any_of_ranks(team.communicator(), mesh.pieces == nullptr))
    return std::nullopt;
  assembly::OwnPieces const& pieces = *mesh.pieces;
  mesh.neighbors = pieces.neighbors;
  mesh.n_rows = pieces.n_rows;
  RankLists<double> points;
  for (RankNeighbor const& neighbor : pieces.neighbors)
    points[neighbor.rank] = problem->points_of_rows(neighbor.sent);
  std::vector<double> const of_ghosts = swap_lists(team.communicator(), points).joined();  // by their rank
  team.together([&] {
    problem->set_points_of_ghosts(pieces.n_rows, of_ghosts);
    if (mesh.nodes.size() > 0)
      place_lattice_nodes(device(), problem->lattices_of_pieces(), pieces.n_rows, of_ghosts, mesh.nodes);
  });
  bool const has_own = !pieces.own.empty();
  assembly::ProblemSpec const& spec = config.problem;
  if (spec.mesh.has_places())
    problem->set_places_of_whole(find_places(spec.mesh, mesh, team, [&]() -> std::optional<assembly::CheckedProblem::Places> {
      return has_own ? std::optional(problem->places()) : std::nullopt;
    }));
  else
    keep_names_in_use(mesh.whole);
  std::vector<std::string> const& notes = problem->notes();
  mesh.notes.insert(mesh.notes.begin(), notes.begin(), notes.end());
  make_parts(mesh, team, config.problem, std::move(problem), static_cast<std::size_t>(pieces.n_unknowns()), [&] {
    if (has_own)
      mesh.own = std::make_shared<assembly::Discretization>(*mesh.around, pieces);
  });
  return mesh;
}

/// The first rank makes the whole mesh, and sends every rank its part.
Domain mesh_in_parts(RunConfig const& config, Team& team, Forecaster const& forecast) {
  Domain mesh;
  std::optional<assembly::Discretization> whole;
  std::optional<assembly::DividedSpace> divided;
  std::string counts, notes;
  int pure_neumann = 0;
  team.on_first([&] {
    assembly::CheckedProblem problem(problem_of(config));
    static_cast<void>(forecast(problem));
    counts = packed(problem.counts());
    // The whole mesh is made as for a matrix that is not in CSR, since the memory of the matrix is a rank's, not this process's.
    whole.emplace(std::move(problem), assembly::AssembledInto::half_cds_on_host);
    for (std::string const& note : whole->notes())
      notes += note + '\n';
    pure_neumann = whole->is_pure_neumann() ? 1 : 0;
    divided.emplace(whole->divided(team.size()));
  });
  std::istringstream lines(team.of_first(notes));
  for (std::string note; std::getline(lines, note);)
    mesh.notes.push_back(note);
  mesh.pure_neumann = of_first(team.communicator(), pure_neumann) != 0;
  counts = team.of_first(counts);

  std::vector<char> mine;
  for (int rank = 0; rank < team.size(); ++rank) {
    std::vector<char> share;
    team.on_first([&] {
      assembly::PartOfSpace part = divided->part(rank);
      assembly::SpaceArrays around = whole->arrays_of(part.around_cells, part.unknowns);
      share = packed(MeshShare{std::move(part), std::move(around)});
    });
    std::vector<char> received = team.sent_by_first(rank, share);
    if (rank == team.rank())
      mine = std::move(received);
  }
  divided.reset();
  whole.reset();
  return_freed_memory();
  MeshShare share = unpacked_share(mine);
  free_memory(mine);
  std::optional<assembly::CheckedProblem> problem;
  team.together([&] {
    problem.emplace(problem_of(config), unpacked_counts(counts));
    mesh.whole = problem->mesh();
    mesh.whole.boundary_ids = share.around.boundary_ids;
    mesh.whole.material_ids = share.around.material_ids;
    keep_names_in_use(mesh.whole);
    problem->set_part(std::move(share.around));
  });
  assembly::PartOfSpace& part = share.part;
  mesh.neighbors = std::move(part.neighbors);
  mesh.n_rows = part.n_rows;
  mesh.around_unknowns = part.unknowns;
  make_parts(mesh, team, config.problem, std::move(problem), part.unknowns.size(), [&] {
    if (!part.own_cells.empty())
      make_own(mesh, part);
  });
  return mesh;
}

/// The configuration with the mesh of a drawing, which the first rank makes for all.
RunConfig with_drawn_mesh(RunConfig config, Team& team) {
  assembly::MeshSpec& mesh = config.problem.mesh;
  std::string bytes, notes;
  team.on_first([&] {
    assembly::MeshContent const made = assembly::content_of_drawing(problem_of(config).mesh);
    bytes = *made.bytes;
    for (std::string const& note : made.notes)
      notes += note + '\n';
  });
  mesh.content = std::make_shared<std::string const>(team.of_first(bytes));
  std::istringstream lines(team.of_first(notes));
  for (std::string note; std::getline(lines, note);)
    mesh.content_notes.push_back(note);
  return config;
}

Domain mesh_of_parts(RunConfig const& config, Team& team, Forecaster const& forecast, ContextProvider const& device) {
  if (config.problem.mesh.refinements >= assembly::Space::fewest_refinements_of_lattices) {
    bool const drawn = assembly::is_drawing(config.problem.mesh);
    if (std::optional<Domain> mesh = mesh_of_lattices(drawn ? with_drawn_mesh(config, team) : config, team, forecast, device))
      return std::move(*mesh);
  }
  return mesh_in_parts(config, team, forecast);
}

/// The number in a larger lattice of entry i of a part of it that begins at `first`; x fastest.
std::int64_t in_larger(std::int64_t i, Counts const& part, Counts const& first, Counts const& whole) {
  std::int64_t const x = i % part[0], y = i / part[0] % part[1], z = i / (part[0] * part[1]);
  return ((first[2] + z) * whole[1] + first[1] + y) * whole[0] + first[0] + x;
}

/// The number in a box of so many cells of node i of a part of it.
std::int64_t node_in_larger(std::int64_t i, BoxPart const& part, int order, Counts const& cells) {
  Counts of_part{}, first{}, of_whole{};
  for (std::size_t d = 0; d < 3; ++d) {
    of_part[d] = order * part.cells[d] + 1;
    first[d] = order * part.first[d];
    of_whole[d] = order * cells[d] + 1;
  }
  return in_larger(i, of_part, first, of_whole);
}

}  // namespace

std::int64_t Domain::cell_of_whole(std::int64_t cell) const {
  if (is_whole())
    return cell;
  if (box)
    return in_larger(cell, part.cells, part.first, cells);
  return pieces != nullptr ? pieces->cell_of_whole(cell) : own_cells[static_cast<std::size_t>(cell)];
}

std::int64_t Domain::unknown_of_whole(std::int64_t unknown) const {
  if (is_whole())
    return unknown;
  if (pieces != nullptr)
    return around_of_whole(pieces->in_pieces(unknown));
  return box ? node_in_larger(unknown, part, order, cells) : own_unknowns[static_cast<std::size_t>(unknown)];
}

std::int64_t Domain::around_of_whole(std::int64_t unknown) const {
  if (is_whole())
    return unknown;
  if (pieces != nullptr)
    return unknown < n_rows ? pieces->number_of(around->first_node(unknown))
                            : pieces->ghosts[static_cast<std::size_t>(unknown - n_rows)];
  return box ? node_in_larger(unknown, part_around, order, cells) : around_unknowns[static_cast<std::size_t>(unknown)];
}

BoxPart Domain::own_in_around() const {
  BoxPart result = part;
  for (std::size_t d = 0; d < 3; ++d)
    result.first[d] -= part_around.first[d];
  return result;
}

HostVector<double> Domain::of_own_rows(std::span<double const> values) const {
  if (!box)
    return {values.begin(), values.begin() + std::min(n_rows, std::ssize(values))};
  HostVector<double> result(static_cast<std::size_t>(n_rows));
  for (std::size_t unknown = 0; unknown < n_around(); ++unknown)
    if (place(unknown) < n_rows)
      result[static_cast<std::size_t>(place(unknown))] = values[unknown];
  return result;
}

HostVector<double> Domain::of_own_rows(HostVector<double>&& values) const {
  return is_whole() ? std::move(values) : of_own_rows(std::span<double const>(values));
}

std::vector<std::int64_t> Domain::row_numbers() const {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(n_rows));
  if (!box) {
    for (std::int64_t row = 0; row < n_rows; ++row)
      numbers[static_cast<std::size_t>(row)] = around_of_whole(row);
    return numbers;
  }
  for (std::size_t i = 0; i < n_around(); ++i)
    if (place(i) < n_rows)
      numbers[static_cast<std::size_t>(place(i))] = around_of_whole(static_cast<std::int64_t>(i));
  return numbers;
}

std::size_t Domain::n_in_own() const {
  if (own == nullptr)
    return 0;
  if (places.block() != nullptr)
    return static_cast<std::size_t>(nodes_of(part, order).size());
  return pieces != nullptr ? static_cast<std::size_t>(pieces->n_in_pieces()) : own_in_list.size();
}

std::int32_t Domain::in_own(std::int64_t unknown) const {
  if (BlockPlaces const* const block = places.block())
    return static_cast<std::int32_t>(block->around().index(nodes_of(part, order).node(unknown)));
  return pieces != nullptr ? pieces->in_pieces(unknown) : own_in_list[static_cast<std::size_t>(unknown)];
}

std::vector<std::int32_t> Domain::list_in_own() const {
  std::vector<std::int32_t> result;
  result.reserve(n_in_own());
  if (BlockPlaces const* const block = places.block())
    nodes_of(part, order).for_all([&](auto const& node) {
      result.push_back(static_cast<std::int32_t>(block->around().index(node)));
    });
  else
    for (std::size_t i = 0; i < n_in_own(); ++i)
      result.push_back(in_own(static_cast<std::int64_t>(i)));
  return result;
}

HostVector<double> Domain::of_own_cells(std::span<double const> values) const {
  if (pieces != nullptr) {
    HostVector<double> result(values.begin(), values.begin() + n_rows);
    for (std::int32_t const ghost : pieces->ghosts_of_pieces)
      result.push_back(values[static_cast<std::size_t>(ghost)]);
    return result;
  }
  HostVector<double> result;
  result.reserve(n_in_own());
  for (std::int32_t const place : list_in_own())
    result.push_back(values[static_cast<std::size_t>(place)]);
  return result;
}

std::vector<std::uint8_t> Domain::have_rows() const {
  if (!box) {
    std::vector<std::uint8_t> result(n_around(), 0);
    std::fill(result.begin(), result.begin() + std::min<std::int64_t>(n_rows, std::ssize(result)), std::uint8_t{1});
    return result;
  }
  std::vector<std::uint8_t> result(n_around());
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] = has_row(i) ? 1 : 0;
  return result;
}

Forecaster no_forecast() {
  return [](assembly::CheckedProblem const&) { return assembly::AssembledInto::half_cds_on_host; };
}

Domain make_domain(RunConfig const& config, Team& team, Forecaster const& forecast, ContextProvider const& device) {
  if (team.is_alone())
    return whole_mesh(config, forecast, device);
  if (config.problem.mesh.local != nullptr)  // a run has the first rank's
    throw InputError("problem.mesh.adaptive", "several ranks take no part in meshes that are refined locally; leave it out here");
  if (config.is_box())
    return mesh_of_box(config, team, forecast);
  Domain mesh = mesh_of_parts(config, team, forecast, device);
  if (mesh.whole.periodic)
    tie_unknowns(mesh, team);
  return_freed_memory();
  return mesh;
}

std::array<double, 3> nearest_node(Domain const& mesh, Team& team, std::array<double, 3> const& x) {
  struct Candidate {
    double square = std::numeric_limits<double>::infinity();
    std::array<double, 3> node{};
  } mine;
  team.together([&] {
    if (!mesh.own)
      return;
    mine.node = mesh.own->nearest_node(x);
    mine.square = 0;
    for (std::size_t d = 0; d < 3; ++d)
      mine.square += (mine.node[d] - x[d]) * (mine.node[d] - x[d]);
  });
  auto const nearest = [](Candidate& best, Candidate const& other) {
    auto const key = [](Candidate const& c) { return std::tuple(c.square, c.node[2], c.node[1], c.node[0]); };
    if (key(other) < key(best))
      best = other;
  };
  return combined(team.communicator(), mine, nearest, Communicator::Order::of_ranks).node;
}

std::vector<bool> any_in_lists(Communicator& ranks, std::vector<bool> const& mine) {
  std::vector<std::uint8_t> any(mine.begin(), mine.end());
  combine_lists(ranks, std::span(any), [](std::uint8_t& one, std::uint8_t other) { one |= other; });
  return {any.begin(), any.end()};
}

}  // namespace poisson::app
