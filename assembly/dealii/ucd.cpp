#include "assembly/dealii/raw.hpp"

#include <array>

namespace poisson::assembly {

RawMesh read_ucd(MeshText& text) {
  RawMeshBuilder builder(text);
  std::string_view line;
  auto const next = [&](char const* what) {
    do
      if (!text.next_line(line))
        text.fail(std::string("the file ends where ") + what + " should be");
    while (line.empty() || line.front() == '#');
    return words_of(line);
  };
  auto const head = next("the numbers of nodes and cells");
  if (head.size() < 2)
    text.fail("this is neither an Abaqus file (it does not begin with '*') nor a UCD file (it has no numbers of nodes and cells)");
  std::int64_t const nodes = text.to_integer(head[0], "the number of nodes");
  std::int64_t const cells = text.to_integer(head[1], "the number of cells");
  if (nodes < 0 || cells < 0)
    text.fail("the numbers of nodes and cells are negative");
  for (std::int64_t i = 0; i < nodes; ++i) {
    auto const words = next("a node");
    if (words.size() < 4)
      text.fail("a node needs a number and three coordinates");
    double const x = text.to_real(words[1], "x of a node"), y = text.to_real(words[2], "y of a node"),
                 z = text.to_real(words[3], "z of a node");
    builder.add_vertex(text.to_integer(words[0], "a node number"), x, y, z);
  }
  for (std::int64_t i = 0; i < cells; ++i) {
    auto const words = next("a cell");
    if (words.size() < 3)
      text.fail("a cell needs a number, a material, a type and nodes");
    std::size_t const wanted = words[2] == "hex" ? 8 : words[2] == "quad" ? 4 : 0;
    if (wanted == 0) {
      if (words[2] == "tri")
        builder.add_unsupported("tri", 2);
      else if (words[2] != "line" && words[2] != "pt")
        builder.add_unsupported(std::string(words[2].substr(0, 20)), 3);
      continue;
    }
    std::int64_t const material = text.to_integer(words[1], "the material");
    if (words.size() != 3 + wanted)
      text.fail("a cell of type " + std::string(words[2]) + " has " + std::to_string(wanted) + " nodes, not " +
                std::to_string(words.size() - 3));
    std::array<std::int64_t, 8> numbers{};
    for (std::size_t v = 0; v < wanted; ++v)
      numbers[v] = text.to_integer(words[3 + v], "a node number");
    if (wanted == 8)
      builder.add_hexahedron(numbers, material);
    else
      builder.add_quad({numbers[0], numbers[1], numbers[2], numbers[3]}, material);
  }
  if (!text.has_last_end_of_line())
    builder.mesh().notes.emplace_back(MeshText::note_of_cut_line);
  return builder.finish();
}

}  // namespace poisson::assembly
