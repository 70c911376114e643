#include "app/results/problem_words.hpp"

#include "app/io/console.hpp"
#include "assembly/mesh/counts.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

namespace poisson::app {

namespace {

using Rows = std::vector<std::pair<std::string, std::string>>;

/// "a, b and c"
std::string listed(std::vector<std::string> const& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " and " : ", ") + words[i];
  return text;
}

std::string point_in_words(std::array<double, 3> const& p) {
  return "(" + number_text(p[0], 6) + ", " + number_text(p[1], 6) + ", " + number_text(p[2], 6) + ")";
}

std::string elements_in_words(int order) {
  constexpr std::array<char const*, 3> words{"trilinear", "triquadratic", "tricubic"};
  return (order <= 3 ? words[static_cast<std::size_t>(order - 1)] : "order " + std::to_string(order)) +
         std::string(" hexahedra (Q") + std::to_string(order) + ")";
}

/// Describes the grading of a box in one direction; empty where its cells are equal there.
std::string grading_in_words(assembly::MeshSpec const& mesh, std::size_t d) {
  std::string const name(1, "xyz"[d]);
  if (auto const& x = mesh.coordinates[d]; !x.empty()) {
    double smallest = x[1] - x[0], largest = smallest;
    for (std::size_t i = 2; i < x.size(); ++i) {
      smallest = std::min(smallest, x[i] - x[i - 1]);
      largest = std::max(largest, x[i] - x[i - 1]);
    }
    return ", in " + name + " at listed coordinates (edges " + number_text(smallest, 4) + " to " + number_text(largest, 4) + ")";
  }
  if (mesh.growth[d] == 1)
    return "";
  return ", which grow by " + number_text(mesh.growth[d], 6) + " each in " + name +
         (mesh.growth_to[d] == assembly::GrowthTo::middle ? " to the middle and shrink again" : "");
}

/// "the image scan.vti, its voxels flipped in x, ..."
std::string image_in_words(assembly::ImageSpec const& image) {
  std::string text = image.files.size() == 1 ? "the image " + std::filesystem::path(image.files[0]).filename().string()
                                             : "the image in " + std::to_string(image.files.size()) + " slices";
  if (image.crop != assembly::Crop{})
    text += ", cropped";
  for (std::size_t d = 0; d < 3; ++d)
    if (image.flip[d])
      text += std::string(", turned round in ") + "xyz"[d];
  for (double const level : image.threshold)
    text += ", with a threshold at " + number_text(level, 6);
  if (image.coarsen != assembly::Counts3{1, 1, 1})
    text += ", with " + std::to_string(image.coarsen[0]) + " × " + std::to_string(image.coarsen[1]) + " × " +
            std::to_string(image.coarsen[2]) + " voxels a cell";
  return text;
}

std::string mesh_in_words(assembly::MeshSpec const& mesh) {
  std::string text;
  if (!mesh.file.empty()) {
    text = std::string(assembly::is_surface(mesh) ? "voxels inside of " : "the mesh of ") +
           std::filesystem::path(mesh.file).filename().string() +
           (mesh.size ? ", with cells of " + number_text(*mesh.size, 6) : "") +
           (mesh.scale != 1 ? ", its coordinates multiplied by " + number_text(mesh.scale, 6) : "");
  } else if (mesh.generator == "box") {
    text = "the box";
    for (std::size_t d = 0; d < 3; ++d)
      text += std::string(d > 0 ? " ×" : "") + " [" + number_text(mesh.origin[d], 6) + ", " +
              number_text(mesh.origin[d] + mesh.extent[d], 6) + "]";
    if (mesh.image.is_given())
      text += " of " + image_in_words(mesh.image) + ",";
    text += " of " + std::to_string(mesh.cells[0]) + " × " + std::to_string(mesh.cells[1]) + " × " + std::to_string(mesh.cells[2]) +
            " cells";
    for (std::size_t d = 0; d < 3; ++d)
      text += grading_in_words(mesh, d);
  } else {
    text = mesh.generator + (mesh.arguments.empty() ? "" : "(" + mesh.arguments + ")") + " of deal.II";
  }
  if (mesh.refinements > 0)
    text += ", refined " + (mesh.refinements == 1 ? "once" : std::to_string(mesh.refinements) + " times");
  return text;
}

std::string coefficient_in_words(assembly::CoefficientExpressions const& k) {
  std::string values;
  for (std::string const& value : k)
    values += (values.empty() ? "" : ", ") + value;
  if (k.size() == 1)
    return values;
  return (k.size() == 6 ? "the tensor (xx, yy, zz, xy, xz, yz) = (" : "the diagonal tensor (") + values + ")" +
         (k.frame.empty() ? "" : " along the axes of " + k.frame);
}

/// "150 in die, 2 in material 3, 1 elsewhere"
template <class Value, class Words>
std::string by_material(std::map<std::string, Value> const& of_name, std::map<int, Value> const& of_id,
                        std::string const& elsewhere, Words const& words) {
  std::vector<std::string> parts;
  for (auto const& [name, value] : of_name)
    parts.push_back(words(value) + " in " + name);
  for (auto const& [id, value] : of_id)
    if (id >= 0)
      parts.push_back(words(value) + " in material " + std::to_string(id));
  if (parts.empty())
    return elsewhere;
  if (!elsewhere.empty())
    parts.push_back(elsewhere + " elsewhere");
  return listed(parts);
}

std::string places_in_words(assembly::BoundaryCondition const& condition, bool only) {
  if (condition.all_ids)
    return only ? "the whole boundary" : "all other boundaries";
  std::vector<std::string> places = condition.names;
  for (unsigned const id : condition.ids)
    places.push_back(std::to_string(id));
  return (places.size() == 1 ? "boundary " : "boundaries ") + listed(places);
}

/// `only`: there is no other one.
std::string condition_in_words(assembly::BoundaryCondition const& c, bool only) {
  std::string const on = " on " + places_in_words(c, only);
  switch (c.type) {
  case assembly::BoundaryType::dirichlet:
    return "u = " + c.value + on;
  case assembly::BoundaryType::neumann:
    return "k ∂u/∂n = " + c.value + on;
  case assembly::BoundaryType::robin:
    return "k ∂u/∂n + α u = " + c.value + " with α = " + c.alpha + on;
  case assembly::BoundaryType::periodic:
    return "periodic: u on the second = u on the first" + (c.value == "0" ? "" : " + " + c.value) + "," + on;
  }
  return "";
}

}  // namespace

std::vector<std::pair<std::string, std::string>> problem_in_words(RunConfig const& config) {
  if (config.system)
    return {{"System", "A u = b with A from " + config.system->matrix + " and b " +
                           (config.system->rhs.empty() ? "of ones" : "from " + config.system->rhs)}};
  assembly::ProblemSpec const& p = config.problem;
  Rows rows{{"Equation", "−∇·(k ∇u) = f, by " + elements_in_words(p.order)}, {"Domain", mesh_in_words(p.mesh)}};
  for (auto const& [label, name] : p.mesh.image.names)
    rows.emplace_back("Material " + name, "voxels with the label " + std::to_string(label));
  for (auto const& place : p.mesh.boundaries)
    rows.emplace_back("Boundary " + place.name, "faces whose centre satisfies " + place.where);
  for (auto const& place : p.mesh.regions)
    rows.emplace_back((p.mesh.is_void(place) ? "Void " : "Region ") + place.name, "cells whose centre satisfies " + place.where);
  for (std::string const& name : p.mesh.void_names)
    if (std::none_of(p.mesh.regions.begin(), p.mesh.regions.end(), [&](auto const& place) { return place.name == name; }))
      rows.emplace_back("Void " + name, "the cells of this material");
  for (int const id : p.mesh.void_ids)
    rows.emplace_back("Void", "the cells of material " + std::to_string(id));
  auto const everywhere = p.coefficient.find(-1);
  rows.emplace_back("Coefficient k", by_material(p.coefficient_of_name, p.coefficient,
                                                 everywhere == p.coefficient.end() ? "" : coefficient_in_words(everywhere->second),
                                                 coefficient_in_words));
  rows.emplace_back("Source f", by_material(p.source_of_name, p.source_of_material, p.source, [](std::string const& value) {
                                  return value;
                                }) + (p.source_total ? ", scaled to an integral of " + number_text(*p.source_total, 6) : ""));
  for (auto const& source : p.point_sources)
    rows.emplace_back("Point source", number_text(source.value, 6) + " at " + point_in_words(source.at));
  for (auto const& source : p.line_sources)
    rows.emplace_back("Line source",
                      source.value + " per length from " + point_in_words(source.from) + " to " + point_in_words(source.to));
  for (auto const& condition : p.boundary)
    rows.emplace_back("Boundary condition", condition_in_words(condition, p.boundary.size() == 1));
  if (config.effective.is_asked())
    rows.emplace_back("Effective tensor", "by problems with " +
                                              std::string(config.effective.conditions == EffectiveConditions::both
                                                              ? "periodic and with fixed"
                                                              : name_of(config.effective.conditions)) +
                                              " conditions; this one has its mean gradient along " +
                                              std::string(name_of(config.effective.direction)));
  if (p.exact)
    rows.emplace_back("Exact solution", "u = " + *p.exact);
  if (!config.parameters.empty()) {
    std::vector<std::string> values;
    for (auto const& [name, value] : config.parameters)
      values.push_back(name + " = " + number_text(value, 8));
    rows.emplace_back("Parameters", listed(values));
  }
  for (FieldSpec const& field : config.fields)
    rows.emplace_back("Field " + field.name, std::string(name_of(field.interpolation)) + " interpolation of " +
                                                 std::filesystem::path(field.file).filename().string());
  return rows;
}

std::string side_of_box(std::string_view id, RunConfig const& config) {
  constexpr std::array<char const*, 6> sides{"-x", "+x", "-y", "+y", "-z", "+z"};
  return config.is_box() && id.size() == 1 && id[0] >= '0' && id[0] <= '5' ? sides[static_cast<std::size_t>(id[0] - '0')] : "";
}

}  // namespace poisson::app
