#include "app/results/output.hpp"

#include "app/config/config.hpp"
#include "app/io/console.hpp"
#include "gpu/core/communicator.hpp"
#include "gpu/core/error.hpp"
#include "output/files/atomic_file.hpp"
#include "output/picture/picture.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <limits>
#include <span>
#include <utility>

namespace poisson::app {

namespace fs = std::filesystem;

namespace {

constexpr char const* solution_picture = "solution.png";
constexpr char const* materials_picture = "materials.png";
constexpr std::array<char const*, 3> direction_names{"x", "y", "z"};

/// What is drawn: first what is so without being asked for, then output.pictures.
std::vector<PictureSpec> pictures_of(RunConfig const& config, bool several_materials) {
  std::vector<PictureSpec> pictures;
  if (config.output.picture) {
    pictures.emplace_back();
    if (several_materials)
      pictures.emplace_back().quantity = PictureQuantity::materials;
  }
  pictures.insert(pictures.end(), config.output.pictures.begin(), config.output.pictures.end());
  return pictures;
}

/// The pictures that a run may draw: only when the mesh is there is it known whether it has several materials. A box without
/// regions or an image has one.
std::vector<PictureSpec> possible_pictures(RunConfig const& config) {
  return pictures_of(config, !config.is_box() || !config.problem.mesh.regions.empty() || config.problem.mesh.image.is_given());
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
double shown_coefficient(std::span<double const> k, std::size_t components, std::size_t cell) {
  k = k.subspan(cell * components);
  return components == 1 ? k[0] : (k[0] + k[1] + k[2]) / 3;
}

/// Whether k spans more than two decades. `ranks` have parts of it.
bool coefficient_spans_decades(assembly::SolutionFields const& fields, Communicator& ranks) {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  auto const components = static_cast<std::size_t>(fields.coefficient_components);
  std::span<double const> const all = fields.coefficient;
  for (std::size_t cell = 0; cell < all.size() / components; ++cell) {
    double const k = shown_coefficient(all, components, cell);
    low = std::min(low, k);
    high = std::max(high, k);
  }
  return max_over(ranks, high) > -100 * max_over(ranks, -low);
}

std::string picture_title(ResultRecord const& record) {
  return (record.title.empty() ? configuration_stem(record.configuration_file) : record.title) + ": " +
         with_thousands(record.mesh.cells) + " cells of order " + std::to_string(record.order) +
         (record.status == SolverStatus::converged ? "" : ", " + std::string(name_of(record.status)));
}

/// A picture to be drawn.
struct Plan {
  output::PictureField field;
  output::PictureOptions options;
  std::string caption;
};

/// u at some nodes of own cells, which alone leave the device.
std::function<void(std::span<std::int64_t const>, double*)> values_at_points(SolutionValues const& u) {
  return [&u](std::span<std::int64_t const> points, double* out) {
    std::vector<std::int32_t> const places(points.begin(), points.end());
    std::ranges::copy(u.at(places), out);
  };
}

Plan plan_of(RunConfig const& config, PictureSpec const& picture, Solution const& solution) {
  Plan plan;
  output::PictureOptions& options = plan.options;
  options.title = picture_title(solution.record);
  assembly::SolutionFields const& fields = solution.fields();
  bool const log = picture.scale == PictureScale::log;
  options.logarithmic = log;
  std::string what;
  switch (picture.quantity) {
  case PictureQuantity::u:
    if (solution.ends && fields.u.fill() && (!log || (*solution.ends)[0] > 0))
      plan.field = output::PointValues{{}, false, values_at_points(solution.u), *solution.ends};
    else
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
    output::FluxData flux{{}, fields.coefficient, fields.coefficient_components, {}, {}};
    if (fields.u.fill())
      flux.get = values_at_points(solution.u);
    else
      flux.u = fields.u;
    if (solution.mesh.whole.material_ids.size() > 1)
      flux.material = fields.material;
    plan.field = output::FluxLength{flux, arrows};
    options.quantity = "|flux|";
    what = arrows ? "flux: arrows in its direction; their length is the share of the flux in the plane" : "|flux|";
    options.colors = output::ColorMap::plasma;
    break;
  }
  case PictureQuantity::materials: {
    output::CellClasses classes{fields.material, {}};
    for (assembly::IdGroup const& group : solution.mesh.whole.material_groups.list())
      for (unsigned const id : group.parts)
        classes.names[static_cast<int>(id)] = solution.mesh.whole.material_groups.label(id);
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
      options.logarithmic = coefficient_spans_decades(fields, solution.team.communicator());
    break;
  }
  options.colors = picture.colors.value_or(options.colors);
  options.range = picture.range;
  options.mesh_lines = picture.mesh;
  options.view = picture.view;
  options.plane = plane_of(picture, solution.record.extent);
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

class Pictures final : public Output {
public:
  explicit Pictures(RunConfig const& config) : config_(config) {}

  [[nodiscard]] std::vector<std::string> names() const override {
    std::vector<std::string> names;
    if (output::pictures_built())
      for (PictureSpec const& picture : possible_pictures(config_))
        for (std::string const& ending : config_.output.picture_endings())
          names.push_back(fs::path(file_of(picture)).replace_extension(ending).string());
    return names;
  }

  [[nodiscard]] bool takes_fields() const override { return output::pictures_built(); }
  [[nodiscard]] std::set<SolutionField> arrays() const override {
    std::set<SolutionField> arrays;
    for (PictureSpec const& picture : possible_pictures(config_)) {
      using Quantity = PictureQuantity;
      if (picture.quantity == Quantity::error)
        arrays.insert(SolutionField::error);
      if (picture.quantity == Quantity::exact)
        arrays.insert(SolutionField::exact);
      if (picture.scale == PictureScale::log && picture.quantity == Quantity::u)
        arrays.insert(SolutionField::u);
      if (picture.quantity == Quantity::materials)
        arrays.insert(SolutionField::material);
      if (picture.quantity == Quantity::coefficient || picture.quantity == Quantity::flux || picture.quantity == Quantity::arrows)
        arrays.insert(SolutionField::coefficient);
    }
    return arrays;
  }
  [[nodiscard]] bool is_made_beside() const override { return true; }

  [[nodiscard]] std::int64_t bytes(OutputSizes const& sizes) const override {
    std::int64_t most = 0;
    if (!output::pictures_built())
      return most;
    for (PictureSpec const& picture : possible_pictures(config_)) {
      output::PictureOptions options;
      if (picture.size) {
        options.width = static_cast<int>((*picture.size)[0]);
        options.height = static_cast<int>((*picture.size)[1]);
      }
      bool const flux = picture.quantity == PictureQuantity::flux || picture.quantity == PictureQuantity::arrows;
      std::int64_t const nodes = sizes.n_ranks == 1 && lists_nodes(config_) ? sizes.unknowns : 0;
      most = std::max(most,
                      output::picture_bytes(sizes.cells_of_all, sizes.faces_of_all, config_.problem.order, nodes, options, flux));
    }
    return sizes.gathered(most);
  }

  void require_in_mesh(assembly::Extent const& extent) const override {
    for (std::size_t i = 0; i < config_.output.pictures.size(); ++i) {
      auto const plane = plane_of(config_.output.pictures[i], extent);
      if (!plane || (plane->at >= extent.low[plane->axis] && plane->at <= extent.high[plane->axis]))
        continue;
      throw InputError("output.pictures[" + std::to_string(i) + "].at",
                       "the plane " + std::string(direction_names[plane->axis]) + " = " + number_text(plane->at, 6) +
                           " does not meet the mesh, which extends from " + number_text(extent.low[plane->axis], 6) + " to " +
                           number_text(extent.high[plane->axis], 6) + " in that direction");
    }
  }

  void make(Solution const& solution) override {
    if (!output::pictures_built())
      return;
    output::Mesh mesh = solution.cells();
    std::vector<output::BoundaryFace> faces;
    if (!solution.mesh.is_whole() || mesh.grid() != nullptr)
      solution.team.together([&] {
        if (solution.mesh.own)
          for (assembly::CellFace const& face : solution.mesh.own->boundary_faces())
            faces.push_back({face.cell, face.face});
      });
    std::optional<output::PicturePart> part;  // of the mesh: draws with the other ranks
    if (!solution.mesh.is_whole()) {
      part.emplace(output::PicturePart{solution.team.communicator(), faces,
                                       [&](std::int64_t node) { return solution.mesh.unknown_of_whole(node); }});
    } else if (mesh.grid() != nullptr) {
      output::Grid grid = *mesh.grid();
      grid.boundary = faces;
      mesh = grid;
    }
    for (PictureSpec const& picture : pictures_of(config_, solution.mesh.whole.material_ids.size() > 1)) {
      DrawnPicture result;
      result.file = file_of(picture);
      bool gathered = false;
      try {
        Plan const plan = plan_of(config_, picture, solution);
        result.caption = plan.caption;
        output::PictureSurface const surface = output::picture_surface(mesh, plan.field, plan.options, part ? &*part : nullptr);
        gathered = true;
        if (solution.team.is_first())
          draw(plan, surface, result);
      } catch (...) {
        if (part && !gathered)  // what one rank cannot do while the others wait for it ends all
          throw;
        result.error = std::current_exception();
      }
      if (solution.team.is_first())
        drawn_.push_back(std::move(result));
    }
  }

  void write(Solution const&, RunLog& log, ResultsDirectory& directory) override {
    if (!config_.output.pictures.empty() && !output::pictures_built())
      log.warn("output.pictures: this build has no pictures; build with POISSON_PICTURES=ON and Cairo");
    for (DrawnPicture const& picture : drawn_) {
      bool const written = directory.try_write(picture.file, [&](fs::path const& path) {
        if (picture.error)
          std::rethrow_exception(picture.error);
        output::write_text_file(path, picture.png);
      });
      if (written)
        log.record.captions[picture.file] = picture.caption;
      for (auto const& [file, bytes] : picture.more)
        directory.try_write(file, [&, &text = bytes](fs::path const& path) { output::write_text_file(path, text); });
    }
  }

private:
  /// A picture as it is to be written, or why there is none.
  struct DrawnPicture {
    std::string file, caption, png;
    std::vector<std::pair<std::string, std::string>> more;  ///< names and bytes of its files in other formats
    std::exception_ptr error;
  };

  void draw(Plan const& plan, output::PictureSurface const& surface, DrawnPicture& result) const {
    result.png = output::picture_png(surface, plan.field, plan.options);
    for (output::PictureFormat const format : config_.output.picture_formats)
      if (format != output::PictureFormat::png) {
        output::PictureOptions options = plan.options;
        options.format = format;
        result.more.emplace_back(fs::path(result.file).replace_extension(name_of(format)).string(),
                                 output::picture_png(surface, plan.field, options));
      }
  }

  RunConfig const& config_;
  std::vector<DrawnPicture> drawn_;
};

}  // namespace

std::unique_ptr<Output> make_pictures(RunConfig const& config) {
  return std::make_unique<Pictures>(config);
}

}  // namespace poisson::app
