# Writes OUTPUT, a C++ file with the texts of all templates in FOLDER and of MESH, a mesh file that they read:
# cmake -DFOLDER=DIR -DMESH=FILE -DOUTPUT=FILE -P embed_templates.cmake
file(GLOB files "${FOLDER}/*.yaml")
set(entries "")
foreach(file IN LISTS files)
  get_filename_component(name "${file}" NAME_WE)
  file(READ "${file}" text)
  string(FIND "${text}" ")yaml\"" end_of_literal)
  if(NOT end_of_literal EQUAL -1)
    message(FATAL_ERROR "${file}: holds the text )yaml\", which ends the C++ literal that it becomes")
  endif()
  string(APPEND entries "    {\"${name}\", R\"yaml(${text})yaml\"},\n")
endforeach()
file(READ "${MESH}" mesh)
get_filename_component(mesh_name "${MESH}" NAME)
file(WRITE "${OUTPUT}" "// Made by tools/embed_templates.cmake from ${FOLDER}.
#include \"app/cli/templates.hpp\"

#include <array>

namespace poisson::app {

std::span<Template const> templates() {
  static constexpr auto all = std::to_array<Template>({
${entries}  });
  return all;
}

Template const& template_mesh() {
  static constexpr Template mesh{\"meshes/${mesh_name}\", R\"mesh(${mesh})mesh\"};
  return mesh;
}

}  // namespace poisson::app
")
