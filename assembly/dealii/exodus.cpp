#include "assembly/dealii/raw.hpp"
#include "assembly/text.hpp"

#include <netcdf.h>
#include <netcdf_mem.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

namespace poisson::assembly {
namespace {

/// Reader of Exodus II: a netCDF file with blocks of elements of one kind (the materials) and side sets (the boundaries). Element
/// sets are groups of cells; node sets, face sets, shells and sets of them are groups of faces.
class ExodusReader {
public:
  explicit ExodusReader(MeshText& text) : text_(text), builder_(text) {
    // The library takes the memory as a void pointer, and only reads it.
    check(nc_open_mem(text.path().c_str(), NC_NOWRITE, text.content().size(), const_cast<char*>(text.content().data()), &file_),
          "opening it");
  }
  ExodusReader(ExodusReader const&) = delete;
  ExodusReader& operator=(ExodusReader const&) = delete;
  ~ExodusReader() { nc_close(file_); }

  RawMesh read() {
    if (length("num_dim", 3) != 3)
      text_.fail("this is a mesh in " + std::to_string(length("num_dim", 3)) + " dimensions; three are needed");
    read_nodes();
    std::size_t const blocks = length("num_el_blk", 0), sets = length("num_side_sets", 0);
    auto const ids = integers_or_numbers("eb_prop1", blocks), set_ids = integers_or_numbers("ss_prop1", sets);
    auto const names = texts("eb_names", blocks), set_names = texts("ss_names", sets);
    for (std::size_t b = 0; b < blocks; ++b) {
      read_block(std::to_string(b + 1), ids[b], names[b]);
      if (!names[b].empty() && !(first_of_block_.size() == b + 1 && !first_of_block_[b].hexahedra && first_of_block_[b].cells > 0))
        builder_.mesh().material_names[ids[b]] = names[b];
    }
    // Side sets first, so that they keep their ids: blocks of shells and node sets have ids apart from theirs, in the file.
    std::vector<RawMesh::Group> shells = std::move(builder_.mesh().quad_groups);
    builder_.mesh().quad_groups.clear();
    for (std::size_t s = 0; s < sets; ++s) {
      RawMesh::Group group{set_names[s], set_ids[s], {}};
      read_set(std::to_string(s + 1), group);
      builder_.mesh().quad_groups.push_back(std::move(group));
    }
    builder_.mesh().quad_groups.insert(builder_.mesh().quad_groups.end(), shells.begin(), shells.end());
    read_node_sets();
    read_element_sets();
    read_face_sets();
    return builder_.finish();
  }

private:
  void check(int status, std::string const& what) const {
    if (status != NC_NOERR)
      text_.fail("the netCDF library says of " + what + ": " + nc_strerror(status));
  }
  [[nodiscard]] int variable(std::string const& name) const {
    int id = -1;
    return nc_inq_varid(file_, name.c_str(), &id) == NC_NOERR ? id : -1;
  }
  std::size_t length(char const* dimension, std::size_t otherwise) const {
    int id = -1;
    std::size_t length = 0;
    return nc_inq_dimid(file_, dimension, &id) == NC_NOERR && nc_inq_dimlen(file_, id, &length) == NC_NOERR ? length : otherwise;
  }
  /// The lengths of a variable's dimensions.
  std::vector<std::size_t> shape(int id, std::string const& name) const {
    int n = 0;
    check(nc_inq_varndims(file_, id, &n), name);
    std::vector<int> dimensions(static_cast<std::size_t>(n));
    std::vector<std::size_t> result(dimensions.size());
    check(nc_inq_vardimid(file_, id, dimensions.data()), name);
    for (std::size_t d = 0; d < result.size(); ++d)
      check(nc_inq_dimlen(file_, dimensions[d], &result[d]), name);
    return result;
  }
  /// Refuses sizes that the file cannot hold before memory is taken for them. Compression makes files smaller, 1000 times at most.
  void require_room(std::size_t count, std::string const& name) const {
    if (count / 1000 > text_.content().size())
      text_.fail(name + " is said to have " + std::to_string(count) + " values, more than the file can hold");
  }
  std::vector<long long> integers(std::string const& name, std::size_t count) const {
    int const id = variable(name);
    if (id < 0)
      text_.fail("the variable " + name + " is missing");
    std::size_t all = 1;
    for (std::size_t const n : shape(id, name))
      all *= n;
    if (all != count)
      text_.fail(name + " has " + std::to_string(all) + " values instead of " + std::to_string(count));
    require_room(count, name);
    std::vector<long long> values(count);
    if (count > 0)
      check(nc_get_var_longlong(file_, id, values.data()), name);
    return values;
  }
  /// 1, 2, ... where the variable is missing.
  std::vector<long long> integers_or_numbers(std::string const& name, std::size_t count) const {
    if (variable(name) >= 0)
      return integers(name, count);
    require_room(count, name);
    std::vector<long long> values;
    for (std::size_t i = 0; i < count; ++i)
      values.push_back(static_cast<long long>(i) + 1);
    return values;
  }
  std::vector<double> reals(std::string const& name, std::vector<std::size_t> const& start,
                            std::vector<std::size_t> const& count) const {
    require_room(count.back(), name);
    std::vector<double> values(count.back());
    if (!values.empty())
      check(nc_get_vara_double(file_, variable(name), start.data(), count.data(), values.data()), name);
    for (double const value : values)
      text_.finite(value, "a coordinate");
    return values;
  }
  /// Texts of a fixed length, without the zeros at their ends; empty where the variable is missing.
  std::vector<std::string> texts(std::string const& name, std::size_t count) const {
    require_room(count, name);
    std::vector<std::string> result(count);
    int const id = variable(name);
    if (id < 0)
      return result;
    auto const size = shape(id, name);
    if (size.size() != 2 || size[0] != count)
      text_.fail(name + " does not have " + std::to_string(count) + " texts");
    require_room(size[0] * size[1], name);
    std::vector<char> all(size[0] * size[1]);
    if (!all.empty())
      check(nc_get_var_text(file_, id, all.data()), name);
    for (std::size_t i = 0; i < count; ++i) {
      std::string_view const text(all.data() + i * size[1], size[1]);
      result[i] = trim(text.substr(0, std::min(text.find('\0'), text.size())));
    }
    return result;
  }

  void read_nodes() {
    std::size_t const n = length("num_nodes", 0);
    std::array<std::vector<double>, 3> x;
    for (std::size_t d = 0; d < 3; ++d) {
      std::string const name = std::string("coord") + "xyz"[d];
      if (variable(name) >= 0 && shape(variable(name), name) == std::vector<std::size_t>{n})
        x[d] = reals(name, {0}, {n});
      else if (variable("coord") >= 0 && shape(variable("coord"), "coord") == std::vector<std::size_t>{3, n})
        x[d] = reals("coord", {d, 0}, {1, n});
      else
        text_.fail("the coordinates of the nodes are missing");
    }
    for (std::size_t i = 0; i < n; ++i)
      builder_.add_vertex(static_cast<std::int64_t>(i) + 1, x[0][i], x[1][i], x[2][i]);
  }

  void read_block(std::string const& number, long long material, std::string const& block_name) {
    std::string const name = "connect" + number;
    std::size_t const cells = length(("num_el_in_blk" + number).c_str(), 0), nodes = length(("num_nod_per_el" + number).c_str(), 0);
    if (cells == 0) {
      first_of_block_.push_back({0, 0, false});
      return;
    }
    std::string type;
    std::size_t type_length = 0;
    if (int const id = variable(name); id >= 0 && nc_inq_attlen(file_, id, "elem_type", &type_length) == NC_NOERR) {
      require_room(type_length, "elem_type");
      type.resize(type_length);
      check(nc_get_att_text(file_, id, "elem_type", type.data()), "elem_type");
      type = upper(type.substr(0, type.find('\0')));
    }
    bool const hexahedra = type.starts_with("HEX"), quads = type.starts_with("QUAD") || type.starts_with("SHELL");
    if (!(hexahedra && (nodes == 8 || nodes == 20 || nodes == 27)) && !(quads && (nodes == 4 || nodes == 8 || nodes == 9))) {
      add_other(type, nodes, cells, block_name.empty() ? std::to_string(material) : "'" + block_name + "'");
      first_of_block_.push_back({0, cells, false});
      return;
    }
    require_room(cells, name);
    auto const list = integers(name, cells * nodes);
    first_of_block_.push_back({corners_.size(), cells, hexahedra, quads});
    RawMesh::Group shells{block_name, material, {}};
    HexahedronNodes const order = nodes == 20 ? exodus_hexahedron_20() : exodus_hexahedron_27();
    for (std::size_t c = 0; c < cells; ++c) {
      std::vector<std::int64_t> const numbers(list.begin() + static_cast<std::ptrdiff_t>(c * nodes),
                                              list.begin() + static_cast<std::ptrdiff_t>((c + 1) * nodes));
      std::array<std::int64_t, 8> corners{};
      std::copy_n(numbers.begin(), hexahedra ? 8 : 4, corners.begin());
      if (!hexahedra) {
        builder_.add_quad({corners[0], corners[1], corners[2], corners[3]}, 0);
        shells.members.push_back(builder_.mesh().quads.size() - 1);
        corners_.push_back(corners);
        places_.push_back(shells.members.back());
        continue;
      }
      if (nodes == 8)
        builder_.add_hexahedron(corners, material);
      else
        builder_.add_hexahedron(numbers, order, material);
      corners_.push_back(corners);
      places_.push_back(builder_.mesh().cells.size() - 1);
    }
    if (quads)
      builder_.mesh().quad_groups.push_back(std::move(shells));
  }

  /// Every boundary face whose corners are all in a node set belongs to it.
  void read_node_sets() {
    std::size_t const sets = length("num_node_sets", 0);
    auto const ids = integers_or_numbers("ns_prop1", sets);
    auto const names = texts("ns_names", sets);
    for (std::size_t s = 0; s < sets; ++s) {
      RawMesh::Group group{names[s], ids[s], {}};
      std::string const number = std::to_string(s + 1);
      if (std::size_t const n = length(("num_nod_ns" + number).c_str(), 0); n > 0)
        for (long long const node : integers("node_ns" + number, n))
          group.members.push_back(builder_.vertex_of(node));
      builder_.mesh().node_groups.push_back(std::move(group));
    }
  }

  static std::string name_of(RawMesh::Group const& group) {
    return group.name.empty() ? std::to_string(group.id) : "'" + group.name + "'";
  }

  /// The sets of one kind, without their members; one whose file gives no ids gets a free one.
  std::vector<RawMesh::Group> sets_of(char const* dimension, std::string const& prefix) const {
    std::size_t const sets = length(dimension, 0);
    bool const has_ids = variable(prefix + "_prop1") >= 0;
    auto const ids = integers_or_numbers(prefix + "_prop1", sets);
    auto const names = texts(prefix + "_names", sets);
    std::vector<RawMesh::Group> groups;
    for (std::size_t s = 0; s < sets; ++s)
      groups.push_back({names[s], has_ids ? ids[s] : -1, {}});
    return groups;
  }

  void read_element_sets() {
    std::size_t s = 0;
    for (RawMesh::Group& group : sets_of("num_elem_sets", "els")) {
      std::string const number = std::to_string(++s);
      RawMesh::Group of_shells{group.name, group.id, {}};
      std::size_t passed_over = 0;
      if (std::size_t const n = length(("num_ele_els" + number).c_str(), 0); n > 0)
        for (long long const element : integers("elem_els" + number, n)) {
          auto const [at, shell] = element_at(element, "an element set");
          if (at < corners_.size())
            (shell ? of_shells : group).members.push_back(places_[at]);
          else
            ++passed_over;
        }
      if (passed_over > 0)
        builder_.mesh().notes.push_back("of element set " + name_of(group) + " " + std::to_string(passed_over) +
                                        " elements that are neither hexahedra nor shells are passed over");
      if (!group.members.empty() || of_shells.members.empty())
        builder_.mesh().cell_groups.push_back(std::move(group));
      if (!of_shells.members.empty())
        builder_.mesh().quad_groups.push_back(std::move(of_shells));
    }
  }

  /// Face sets list faces of face blocks, which are counted from 1 through all of them.
  void read_face_sets() {
    std::size_t const blocks = length("num_fa_blk", 0);
    std::vector<std::array<std::int64_t, 4>> faces;  // all 0: no quadrilateral
    for (std::size_t b = 1; b <= blocks; ++b) {
      std::string const number = std::to_string(b), name = "fbconn" + number;
      std::size_t const n = length(("num_fa_in_blk" + number).c_str(), 0), nodes = length(("num_nod_per_fa" + number).c_str(), 0);
      require_room(n, name);
      bool const quads = (nodes == 4 || nodes == 8 || nodes == 9) && variable("fbepecnt" + number) < 0;
      auto const list = quads ? integers(name, n * nodes) : std::vector<long long>();
      for (std::size_t f = 0; f < n; ++f) {
        faces.push_back({});
        if (quads)
          std::copy_n(list.begin() + static_cast<std::ptrdiff_t>(f * nodes), 4, faces.back().begin());
      }
    }
    std::size_t s = 0;
    for (RawMesh::Group& group : sets_of("num_face_sets", "fs")) {
      std::string const number = std::to_string(++s);
      std::size_t passed_over = 0;
      if (std::size_t const n = length(("num_face_fs" + number).c_str(), 0); n > 0)
        for (long long const face : integers("face_fs" + number, n)) {
          if (face < 1 || static_cast<std::size_t>(face) > faces.size())
            text_.fail("face set " + name_of(group) + " has face " + std::to_string(face) + ", which does not exist");
          auto const& corners = faces[static_cast<std::size_t>(face - 1)];
          if (corners == std::array<std::int64_t, 4>{}) {
            ++passed_over;
            continue;
          }
          builder_.add_quad(corners, 0);
          group.members.push_back(builder_.mesh().quads.size() - 1);
        }
      if (passed_over > 0)
        builder_.mesh().notes.push_back("of face set " + name_of(group) + " " + std::to_string(passed_over) +
                                        " faces that are no quadrilaterals are passed over");
      builder_.mesh().quad_groups.push_back(std::move(group));
    }
  }

  void add_other(std::string const& type, std::size_t nodes, std::size_t elements, std::string const& block) {
    bool const flat = type.starts_with("TRI") || type.starts_with("QUAD") || type.starts_with("SHELL");
    bool const nothing = type.starts_with("BAR") || type.starts_with("BEAM") || type.starts_with("TRUSS") ||
                         type.starts_with("EDGE") || type.starts_with("SPHERE") || type.starts_with("CIRCLE");
    char const* const shape = type.starts_with("TET")   ? "tetrahedron"
                              : type.starts_with("WED") ? "wedge"
                              : type.starts_with("PYR") ? "pyramid"
                              : type.starts_with("HEX") ? "hexahedron"
                                                        : "";
    if (nothing)
      builder_.mesh().notes.push_back("block " + block + " (" + std::to_string(elements) + " elements of type " + type +
                                      ") is passed over: points and lines say nothing about a volume");
    else
      builder_.add_unsupported(type + " of Exodus (" + std::to_string(nodes) + " nodes" + (*shape ? ", " : "") + shape + ")",
                               flat ? 2 : 3);
  }

  void read_set(std::string const& number, RawMesh::Group& group) {
    static constexpr std::array<std::array<std::size_t, 4>, 6> sides{
        {{0, 1, 5, 4}, {1, 2, 6, 5}, {2, 3, 7, 6}, {0, 4, 7, 3}, {0, 3, 2, 1}, {4, 5, 6, 7}}};
    static constexpr std::array<std::size_t, 4> shell_corners{0, 1, 2, 3};
    std::size_t const n = length(("num_side_ss" + number).c_str(), 0);
    if (n == 0)
      return;
    auto const elements = integers("elem_ss" + number, n), sides_of = integers("side_ss" + number, n);
    std::size_t passed_over = 0;
    for (std::size_t i = 0; i < n; ++i) {
      auto side = static_cast<std::size_t>(sides_of[i] - 1);
      auto const [place, shell] = element_at(elements[i], "a side set");
      if (place == corners_.size() || (shell && side >= 2 && side < 6)) {  // of a line or a point, or an edge of a shell
        ++passed_over;
        continue;
      }
      if (side >= 6)
        text_.fail("side " + std::to_string(sides_of[i]) + " of element " + std::to_string(elements[i]) + " does not exist");
      // Both sides of a shell are the face that it is.
      auto const& at = shell ? shell_corners : sides[side];
      auto const& corners = corners_[place];
      builder_.add_quad({corners[at[0]], corners[at[1]], corners[at[2]], corners[at[3]]}, 0);
      group.members.push_back(builder_.mesh().quads.size() - 1);
    }
    if (passed_over > 0)
      builder_.mesh().notes.push_back("of side set " + name_of(group) + " " + std::to_string(passed_over) +
                                      " sides that are no faces are passed over");
  }

  /// The place in corners_ of an element, counted from 1 through all blocks, and whether it is a shell, with four corners;
  /// corners_.size() where it is neither a hexahedron nor a shell. `what` lists it.
  [[nodiscard]] std::pair<std::size_t, bool> element_at(long long number, char const* what) const {
    if (number >= 1) {
      auto left = static_cast<std::size_t>(number - 1);
      for (Block const& block : first_of_block_) {
        if (left < block.cells)
          return {block.hexahedra || block.shells ? block.first + left : corners_.size(), block.shells};
        left -= block.cells;
      }
    }
    text_.fail(std::string(what) + " has element " + std::to_string(number) + ", which does not exist");
  }

  struct Block {
    std::size_t first, cells;  ///< first: in corners_
    bool hexahedra, shells = false;
  };
  MeshText& text_;
  RawMeshBuilder builder_;
  int file_ = -1;
  std::vector<Block> first_of_block_;
  std::vector<std::array<std::int64_t, 8>> corners_;
  std::vector<std::size_t> places_;  ///< of what has these corners, in `cells` or `quads` of the mesh
};

}  // namespace

RawMesh read_exodus(MeshText& text) {
  return ExodusReader(text).read();
}

}  // namespace poisson::assembly
