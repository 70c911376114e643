#include "app/results/pictures.hpp"

#include "app/io/console.hpp"
#include "gpu/core/error.hpp"
#include "output/picture/picture.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <utility>

namespace poisson::app {
namespace {

constexpr std::array<char const*, 3> direction_names{"x", "y", "z"};

/// A mesh without regions has one material if it is a box.
bool may_have_materials(RunConfig const& config) {
  return !config.is_box() || !config.problem.mesh.regions.empty();
}

/// What is drawn without being asked for.
std::vector<PictureSpec> default_pictures(RunConfig const& config, bool several_materials) {
  std::vector<PictureSpec> pictures;
  if (!config.output.picture)
    return pictures;
  pictures.emplace_back();
  if (several_materials)
    pictures.emplace_back().quantity = PictureQuantity::materials;
  return pictures;
}

std::string file_of(PictureSpec const& picture) {
  if (!picture.name.empty())
    return picture.file();
  return picture.quantity == PictureQuantity::materials ? materials_picture : solution_picture;
}

std::optional<output::PicturePlane> plane_of(PictureSpec const& picture, assembly::Extent const& extent) {
  if (!picture.has_plane())
    return std::nullopt;
  output::PicturePlane plane;
  auto const length = [&](std::size_t d) { return extent.high[d] - extent.low[d]; };
  for (std::size_t d = 2; d-- > 0;)  // of equal lengths the last direction
    if (length(d) < length(plane.axis) * (1 - 1e-9))
      plane.axis = d;
  if (picture.normal)
    plane.axis = static_cast<std::size_t>(*picture.normal);
  double middle = extent.low[plane.axis] / 2 + extent.high[plane.axis] / 2;
  if (std::abs(middle) < 1e-9 * length(plane.axis))  // 0 but for rounding
    middle = 0;
  plane.at = picture.at.value_or(middle);
  return plane;
}

/// k of a cell, as pictures show it.
double shown_coefficient(assembly::SolutionFields const& fields, std::size_t cell) {
  auto const n = static_cast<std::size_t>(fields.coefficient_components);
  auto const* const k = fields.coefficient.data() + cell * n;
  return n == 1 ? k[0] : (k[0] + k[1] + k[2]) / 3;
}

/// Whether k spans more than two decades. `ranks` have parts of it.
bool coefficient_spans_decades(assembly::SolutionFields const& fields, Communicator& ranks) {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  std::size_t const n = fields.coefficient.size() / static_cast<std::size_t>(fields.coefficient_components);
  for (std::size_t cell = 0; cell < n; ++cell) {
    double const k = shown_coefficient(fields, cell);
    low = std::min(low, k);
    high = std::max(high, k);
  }
  return max_over(ranks, high) > -100 * max_over(ranks, -low);
}

/// A picture to be drawn.
struct Plan {
  output::PictureField field;
  output::PictureOptions options;
  std::string caption;
};

Plan plan_of(RunConfig const& config, PictureSpec const& picture, PictureMesh const& of_mesh,
             assembly::SolutionFields const& fields, std::string const& title, Communicator& ranks) {
  Plan plan;
  output::PictureOptions& options = plan.options;
  options.title = title;
  bool const log = picture.scale == PictureScale::log;
  options.logarithmic = log;
  output::FluxData const flux{fields.u, fields.coefficient, fields.coefficient_components, fields.material};
  std::string what;
  switch (picture.quantity) {
  case PictureQuantity::u:
    plan.field = output::PointValues{fields.u};
    options.quantity = config.output.label();
    what = config.output.name;
    break;
  case PictureQuantity::exact:
    plan.field = output::PointValues{fields.exact};
    options.quantity = "exact";
    what = "exact solution";
    break;
  case PictureQuantity::error:
    plan.field = output::PointValues{fields.error, log};
    options.quantity = what = log ? "|" + config.output.name + " \u2212 exact|" : config.output.name + " \u2212 exact";
    options.colors = log ? output::ColorMap::viridis : output::ColorMap::diverging;
    break;
  case PictureQuantity::flux:
  case PictureQuantity::arrows: {
    bool const arrows = picture.quantity == PictureQuantity::arrows;
    plan.field = output::FluxLength{flux, arrows};
    options.quantity = "|flux|";
    what = arrows ? "flux: arrows in its direction; their length is the share of the flux in the plane" : "|flux|";
    options.colors = output::ColorMap::plasma;
    break;
  }
  case PictureQuantity::materials: {
    output::CellClasses classes{fields.material, {}};
    for (assembly::IdGroup const& group : of_mesh.summary.material_groups.list())
      for (unsigned const id : group.parts)
        classes.names[static_cast<int>(id)] = of_mesh.summary.material_groups.label(id);
    plan.field = std::move(classes);
    options.quantity = "material";
    what = "materials";
    break;
  }
  case PictureQuantity::coefficient:
    plan.field = output::CellValues{fields.coefficient, fields.coefficient_components};
    options.quantity = fields.coefficient_components == 1 ? "k" : "mean k";
    what = fields.coefficient_components == 1 ? "coefficient k" : "coefficient: mean of k in x, y and z";
    if (!picture.scale)
      options.logarithmic = coefficient_spans_decades(fields, ranks);
    break;
  }
  options.colors = picture.colors.value_or(options.colors);
  options.range = picture.range;
  options.mesh_lines = picture.mesh;
  options.view = picture.view;
  options.plane = plane_of(picture, of_mesh.extent);
  if (options.range && options.logarithmic && !((*options.range)[0] > 0))  // of a scale that was not asked for
    options.logarithmic = false;
  options.shrink = !picture.size;
  if (picture.size) {
    options.width = static_cast<int>((*picture.size)[0]);
    options.height = static_cast<int>((*picture.size)[1]);
  }
  plan.caption =
      what +
      (options.plane ? std::string(", ") + direction_names[options.plane->axis] + " = " + number_text(options.plane->at, 6) : "") +
      (options.logarithmic ? ", logarithmic scale" : "");
  if (!picture.name.empty()) {
    options.note = plan.caption;
    plan.caption = picture.name + ": " + plan.caption;
  }
  return plan;
}

}  // namespace

std::vector<std::string> picture_files(RunConfig const& config) {
  std::vector<std::string> names;
  if (!output::pictures_built())
    return names;
  auto pictures = default_pictures(config, may_have_materials(config));
  pictures.insert(pictures.end(), config.output.pictures.begin(), config.output.pictures.end());
  for (PictureSpec const& picture : pictures)
    for (std::string const& ending : config.output.picture_endings())
      names.push_back(std::filesystem::path(file_of(picture)).replace_extension(ending).string());
  return names;
}

void require_pictures_in_mesh(RunConfig const& config, assembly::Extent const& extent) {
  for (std::size_t i = 0; i < config.output.pictures.size(); ++i) {
    auto const plane = plane_of(config.output.pictures[i], extent);
    if (!plane || (plane->at >= extent.low[plane->axis] && plane->at <= extent.high[plane->axis]))
      continue;
    throw InputError("output.pictures[" + std::to_string(i) + "].at",
                     "the plane " + std::string(direction_names[plane->axis]) + " = " + number_text(plane->at, 6) +
                         " does not meet the mesh, which extends from " + number_text(extent.low[plane->axis], 6) + " to " +
                         number_text(extent.high[plane->axis], 6) + " in that direction");
  }
}

std::vector<DrawnPicture> draw_pictures(RunConfig const& config, PictureMesh const& of_mesh, output::Mesh const& mesh,
                                        assembly::SolutionFields const& fields, std::string const& title,
                                        output::PicturePart const* part) {
  std::vector<DrawnPicture> drawn;
  auto pictures = default_pictures(config, of_mesh.summary.material_ids.size() > 1);
  pictures.insert(pictures.end(), config.output.pictures.begin(), config.output.pictures.end());
  for (PictureSpec const& picture : pictures) {
    DrawnPicture result;
    result.file = file_of(picture);
    auto const prepare = [&] {
      Plan plan = plan_of(config, picture, of_mesh, fields, title, part != nullptr ? part->ranks : alone());
      result.caption = plan.caption;
      output::PictureSurface surface = output::picture_surface(mesh, plan.field, plan.options, part);
      return std::pair(std::move(plan), std::move(surface));
    };
    auto const draw = [&](Plan const& plan, output::PictureSurface const& surface) {
      result.png = output::picture_png(surface, plan.field, plan.options);
      for (output::PictureFormat const format : config.output.picture_formats)
        if (format != output::PictureFormat::png) {
          output::PictureOptions options = plan.options;
          options.format = format;
          result.more.emplace_back(std::filesystem::path(result.file).replace_extension(name_of(format)).string(),
                                   output::picture_png(surface, plan.field, options));
        }
    };
    if (part != nullptr) {  // what one rank cannot do while the others wait for it ends all
      auto const [plan, surface] = prepare();
      if (part->ranks.rank() > 0)
        continue;
      try {
        draw(plan, surface);
      } catch (...) {
        result.error = std::current_exception();
      }
    } else {
      try {
        auto const [plan, surface] = prepare();
        draw(plan, surface);
      } catch (...) {
        result.error = std::current_exception();
      }
    }
    drawn.push_back(std::move(result));
  }
  return drawn;
}

std::int64_t bytes_of_pictures(RunConfig const& config, std::int64_t n_cells, std::int64_t n_boundary_faces, std::int64_t n_nodes) {
  auto pictures = default_pictures(config, may_have_materials(config));
  pictures.insert(pictures.end(), config.output.pictures.begin(), config.output.pictures.end());
  std::int64_t most = 0;
  for (PictureSpec const& picture : pictures) {
    output::PictureOptions options;
    if (picture.size) {
      options.width = static_cast<int>((*picture.size)[0]);
      options.height = static_cast<int>((*picture.size)[1]);
    }
    bool const flux = picture.quantity == PictureQuantity::flux || picture.quantity == PictureQuantity::arrows;
    most = std::max(most, output::picture_bytes(n_cells, n_boundary_faces, config.problem.order, n_nodes, options, flux));
  }
  return most;
}

}  // namespace poisson::app
