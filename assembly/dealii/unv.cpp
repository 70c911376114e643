#include "assembly/dealii/raw.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

namespace poisson::assembly {

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
        bool const hexahedron = type == 115, quad = type == 44 || type == 94 || type == 64 || type == 54;
        if ((hexahedron && count != 8) || (quad && count != 4))
          text.fail("an element of type " + std::to_string(type) + " cannot have " + std::to_string(count) + " nodes");
        if (hexahedron) {
          std::array<std::int64_t, 8> corners{};
          std::copy(numbers.begin(), numbers.end(), corners.begin());
          builder.add_hexahedron(corners, 0);
          element_of_number[number] = {true, builder.mesh().cells.size() - 1};
        } else if (quad) {
          builder.add_quad({numbers[0], numbers[1], numbers[2], numbers[3]}, 0);
          element_of_number[number] = {false, builder.mesh().quads.size() - 1};
        } else if (!beam && type != 161) {
          char const* const name = type == 111   ? " (tetrahedron)"
                                   : type == 112 ? " (wedge)"
                                   : type == 116 ? " (20-node hexahedron, order 2)"
                                   : type == 118 ? " (10-node tetrahedron, order 2)"
                                                 : "";
          builder.add_unsupported(std::to_string(type) + name, type < 100 ? 2 : 3);
        }
      } else if (dataset == 2467 || dataset == 2477 || dataset == 2452 || dataset == 2435) {
        // A group: eight numbers, its name, then (kind 8: element, number, 0, 0) for each member. Its id is the number at the end
        // of its name, or else its own.
        if (words.size() < 8)
          text.fail("a group needs eight numbers in its first line");
        std::int64_t id = text.to_integer(words[0], "the number of a group");
        std::int64_t const members = text.to_integer(words[7], "the number of members of a group");
        next("the name of a group");
        if (std::int64_t const number = trailing_number(line); number >= 0)
          id = number;
        for (std::int64_t read = 0; read < members;) {
          words = next("the members of a group");
          if (words.size() % 4 != 0)
            text.fail("the members of a group come as four numbers each");
          for (std::size_t k = 0; k + 3 < words.size(); k += 4, ++read) {
            if (text.to_integer(words[k], "the kind of a member") != 8)
              continue;
            auto const found = element_of_number.find(text.to_integer(words[k + 1], "an element number"));
            if (found == element_of_number.end())
              continue;  // a line or a point
            if (found->second.first)
              builder.mesh().cells[found->second.second].material = id;
            else
              builder.mesh().quads[found->second.second].boundary = id;
          }
        }
      }
    }
  }
  if (!nodes || !elements)
    text.fail(std::string("the file has no dataset ") + (nodes ? "2412 (elements)" : "2411 (nodes)"));
  return builder.finish();
}

}  // namespace poisson::assembly
