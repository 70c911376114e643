#include "assembly/dealii/raw.hpp"
#include "assembly/text.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <unordered_map>
#include <utility>

namespace poisson::assembly {

/// Where the nodes of type 116 stand in VTK's hexahedron of 20 nodes. UNV lists corners and edges in turn around the bottom, then
/// the upright edges, then the top as the bottom.
constexpr std::array<std::size_t, 20> vtk_places_of_20{0, 8, 1, 9, 2, 10, 3, 11, 16, 17, 18, 19, 4, 12, 5, 13, 6, 14, 7, 15};

RawMesh read_unv(MeshText& text) {
  RawMeshBuilder builder(text);
  std::string_view line;
  auto const next = [&](char const* what) {
    do
      if (!text.next_line(line))
        text.fail(std::string("the file ends where ") + what + " should be");
    while (line.empty());
    return words_of(line);
  };
  std::unordered_map<std::int64_t, std::pair<bool, std::size_t>> element_of_number;  // (is a cell, index)
  std::map<std::int64_t, std::int64_t> older_groups;                                 // lines of datasets
  bool nodes = false, elements = false;
  while (text.next_line(line)) {
    if (line.empty())
      continue;
    if (line != "-1")
      text.fail(in_quotes(line) + " stands where a dataset should begin with -1; this is not a UNV file");
    auto const head = next("the number of a dataset");
    if (head.size() != 1)
      text.fail("a dataset begins with its number alone in a line");
    std::int64_t const dataset = text.to_integer(head[0], "the number of a dataset");
    for (;;) {
      auto words = next("the -1 at the end of a dataset");
      if (words.size() == 1 && words[0] == "-1")
        break;
      if (dataset == 2411) {
        nodes = true;
        std::int64_t const number = text.to_integer(words[0], "a node number");
        words = next("the coordinates of a node");
        if (words.size() < 3)
          text.fail("a node needs three coordinates");
        double const x = text.to_real(words[0], "x of a node"), y = text.to_real(words[1], "y of a node"),
                     z = text.to_real(words[2], "z of a node");
        builder.add_vertex(number, x, y, z);
      } else if (dataset == 2412) {
        elements = true;
        if (words.size() < 6)
          text.fail("an element needs six numbers in its first line");
        std::int64_t const number = text.to_integer(words[0], "an element number");
        std::int64_t const type = text.to_integer(words[1], "the type of an element");
        std::int64_t const count = text.to_integer(words[5], "the number of nodes");
        bool const beam = type >= 11 && type <= 24;
        if (count < 1 || count > 1000)
          text.fail("an element cannot have " + std::to_string(count) + " nodes");
        if (beam)
          next("the orientation of a beam");
        std::vector<std::int64_t> numbers;
        while (static_cast<std::int64_t>(numbers.size()) < count)
          for (std::string_view const word : next("the nodes of an element"))
            numbers.push_back(text.to_integer(word, "a node number"));
        if (static_cast<std::int64_t>(numbers.size()) != count)
          text.fail("an element has more nodes than it announces");
        // Elements of order 2 list nodes of corners and of edges in turns.
        auto const is = [&](std::initializer_list<std::int64_t> types) {
          return std::find(types.begin(), types.end(), type) != types.end();
        };
        bool const hexahedron = type == 115 || type == 116;
        bool const quad_of_order_2 = is({45, 55, 65, 75, 85, 95}), quad = quad_of_order_2 || is({44, 54, 64, 71, 84, 94});
        if ((type == 115 && count != 8) || (type == 116 && count != 20) || (quad && count != (quad_of_order_2 ? 8 : 4)))
          text.fail("an element of type " + std::to_string(type) + " cannot have " + std::to_string(count) + " nodes");
        if (hexahedron) {
          if (type == 116) {
            std::vector<std::int64_t> in_order(numbers.size());
            for (std::size_t i = 0; i < numbers.size(); ++i)
              in_order[vtk_places_of_20[i]] = numbers[i];
            builder.add_hexahedron(in_order, vtk_hexahedron_20(), 0);
          } else {
            std::array<std::int64_t, 8> corners{};
            std::copy(numbers.begin(), numbers.end(), corners.begin());
            builder.add_hexahedron(corners, 0);
          }
          element_of_number[number] = {true, builder.mesh().cells.size() - 1};
        } else if (quad) {
          std::size_t const step = quad_of_order_2 ? 2 : 1;
          builder.add_quad({numbers[0], numbers[step], numbers[2 * step], numbers[3 * step]}, 0);
          element_of_number[number] = {false, builder.mesh().quads.size() - 1};
        } else if (!beam && type != 161) {
          char const* const name = type == 111   ? " (tetrahedron)"
                                   : type == 112 ? " (wedge)"
                                   : type == 113 ? " (15-node wedge, order 2)"
                                   : type == 118 ? " (10-node tetrahedron, order 2)"
                                                 : "";
          builder.add_unsupported(std::to_string(type) + name, type < 100 ? 2 : 3);
        }
      } else if (dataset == 2467 || dataset == 2477 || dataset == 2452 || dataset == 2435) {
        // A group: eight numbers, its name, then (kind, number, 0, 0) for each member; kind 7 is a node, 8 an element.
        if (words.size() < 8)
          text.fail("a group needs eight numbers in its first line");
        RawMesh::Group cells, quads, vertices;
        std::int64_t others = 0;  // lines and points among the elements, and what is neither node nor element
        std::int64_t const id = text.to_integer(words[0], "the number of a group");
        std::int64_t const members = text.to_integer(words[7], "the number of members of a group");
        if (!text.next_line(line))  // it may be blank
          text.fail("the file ends where the name of a group should be");
        for (RawMesh::Group* const group : {&cells, &quads, &vertices}) {
          group->name = std::string(trim(line));
          group->id = id;
        }
        for (std::int64_t read = 0; read < members;) {
          words = next("the members of a group");
          if (words.size() % 4 != 0)
            text.fail("the members of a group come as four numbers each");
          for (std::size_t k = 0; k + 3 < words.size(); k += 4, ++read) {
            std::int64_t const kind = text.to_integer(words[k], "the kind of a member"),
                               number = text.to_integer(words[k + 1], "the number of a member");
            auto const found = kind == 8 ? element_of_number.find(number) : element_of_number.end();
            if (kind == 7)
              vertices.members.push_back(builder.vertex_of(number));
            else if (found == element_of_number.end())
              ++others;
            else
              (found->second.first ? cells : quads).members.push_back(found->second.second);
          }
        }
        if (others > 0)
          builder.mesh().notes.push_back("of the group '" + cells.name + "' " + std::to_string(others) +
                                         " members that are no cells, faces or nodes are passed over");
        bool const has_elements = !cells.members.empty() || !quads.members.empty();
        if (!cells.members.empty())
          builder.mesh().cell_groups.push_back(std::move(cells));
        if (!quads.members.empty())
          builder.mesh().quad_groups.push_back(std::move(quads));
        if (!vertices.members.empty() && !has_elements)  // nodes beside elements are those of the elements
          builder.mesh().node_groups.push_back(std::move(vertices));
      } else if (dataset == 752 || dataset == 2417 || dataset == 2429 || dataset == 2430 || dataset == 2432) {
        ++older_groups[dataset];
      }
    }
  }
  if (!nodes || !elements)
    text.fail(std::string("the file has no dataset ") + (nodes ? "2412 (elements)" : "2411 (nodes)"));
  for (auto const& [dataset, lines] : older_groups)
    builder.mesh().notes.push_back("the groups of dataset " + std::to_string(dataset) + " (" + std::to_string(lines) +
                                   " lines) are passed over; 2435, 2452, 2467 and 2477 are read");
  return builder.finish();
}

}  // namespace poisson::assembly
