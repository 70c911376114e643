#include "app/domain/mesh_shares.hpp"

#include "app/domain/packed.hpp"

#include <iterator>
#include <map>
#include <utility>

namespace poisson::app {

std::string packed(assembly::MeshCounts const& counts) {
  Packer<std::string> to;
  for (std::int64_t const count :
       {counts.cells, counts.faces, counts.edges, counts.vertices, counts.boundary_faces, counts.triangulation_bytes})
    to.put(count);
  for (auto const* const faces : {&counts.faces_with_id, &counts.inner_faces_with_id}) {
    to.put(std::ssize(*faces));
    for (auto const& [id, count] : *faces) {
      to.put(id);
      to.put(count);
    }
  }
  to.put_set(counts.boundary_ids);
  to.put_set(counts.material_ids);
  to.put_set(counts.void_surfaces);
  to.put_set(counts.void_materials);
  for (auto const* const groups : {&counts.boundary_groups, &counts.material_groups, &counts.inner_groups}) {
    to.put(std::ssize(groups->list()));
    for (assembly::IdGroup const& group : groups->list()) {
      to.put(group.id);
      to.put_list(group.name);
      to.put_set(group.parts);
    }
  }
  to.put_list(counts.periodic);
  to.put(counts.shape_order);
  to.put(counts.curved);
  to.put(counts.quality);
  to.put(counts.surface);
  to.put(counts.left_out);
  to.put_set(counts.left_out_ids);
  to.put(std::ssize(counts.left_out_names));
  for (std::string const& name : counts.left_out_names)
    to.put_list(name);
  return to.bytes;
}

assembly::MeshCounts unpacked_counts(std::string const& bytes) {
  Unpacker<std::string> from(bytes);
  assembly::MeshCounts counts;
  for (std::int64_t* const count :
       {&counts.cells, &counts.faces, &counts.edges, &counts.vertices, &counts.boundary_faces, &counts.triangulation_bytes})
    from.take(*count);
  for (auto* const faces : {&counts.faces_with_id, &counts.inner_faces_with_id})
    for (auto n = from.take<std::ptrdiff_t>(); n > 0; --n) {
      auto const id = from.take<unsigned>();
      from.take((*faces)[id]);
    }
  from.take_set(counts.boundary_ids);
  from.take_set(counts.material_ids);
  from.take_set(counts.void_surfaces);
  from.take_set(counts.void_materials);
  for (auto* const groups : {&counts.boundary_groups, &counts.material_groups, &counts.inner_groups})
    for (auto n = from.take<std::ptrdiff_t>(); n > 0; --n) {
      assembly::IdGroup group{from.take<unsigned>(), {}, {}};
      from.take_list(group.name);
      from.take_set(group.parts);
      groups->add(std::move(group));
    }
  from.take_list(counts.periodic);
  from.take(counts.shape_order);
  from.take(counts.curved);
  from.take(counts.quality);
  from.take(counts.surface);
  from.take(counts.left_out);
  from.take_set(counts.left_out_ids);
  for (auto n = from.take<std::ptrdiff_t>(); n > 0; --n) {
    std::string name;
    from.take_list(name);
    counts.left_out_names.insert(std::move(name));
  }
  return counts;
}

std::vector<char> packed(MeshShare const& share) {
  Packer<std::vector<char>> to;
  assembly::PartOfSpace const& part = share.part;
  for (auto const* const list : {&part.own_cells, &part.around_cells, &part.unknowns, &part.in_own_cells})
    to.put_list(*list);
  to.put(part.n_rows);
  to.put_neighbors(part.neighbors);
  assembly::SpaceArrays const& around = share.around;
  to.put_list(around.cell_dofs);
  to.put_list(around.points);
  to.put_list(around.materials);
  to.put_list(around.boundary_faces);
  to.put_list(around.inner_faces);
  to.put_set(around.boundary_ids);
  to.put_set(around.material_ids);
  to.put(around.n_cells_of_whole);
  to.put(around.isoparametric);
  to.put(around.map_order);
  to.put_list(around.map_nodes);
  return std::move(to.bytes);
}

MeshShare unpacked_share(std::vector<char> const& bytes) {
  Unpacker<std::vector<char>> from(bytes);
  MeshShare share;
  assembly::PartOfSpace& part = share.part;
  for (auto* const list : {&part.own_cells, &part.around_cells, &part.unknowns, &part.in_own_cells})
    from.take_list(*list);
  from.take(part.n_rows);
  from.take_neighbors(part.neighbors);
  assembly::SpaceArrays& around = share.around;
  from.take_list(around.cell_dofs);
  from.take_list(around.points);
  from.take_list(around.materials);
  from.take_list(around.boundary_faces);
  from.take_list(around.inner_faces);
  from.take_set(around.boundary_ids);
  from.take_set(around.material_ids);
  from.take(around.n_cells_of_whole);
  from.take(around.isoparametric);
  from.take(around.map_order);
  from.take_list(around.map_nodes);
  return share;
}

}  // namespace poisson::app
