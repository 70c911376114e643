#pragma once

#include "output/grid.hpp"
#include "output/picture/color_map_names.hpp"
#include "output/picture/flux_data.hpp"
#include "output/picture/surface.hpp"

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace poisson::output {

/// Whether the program was built with Cairo. If not, functions that draw throw EnvironmentError.
[[nodiscard]] bool pictures_built();

/// Loads the library that draws, poisson_cairo, which is else loaded by the first drawing. Throws EnvironmentError where it cannot
/// be loaded.
void load_pictures();

/// A plane across the mesh, normal to the axis 0, 1 or 2.
struct PicturePlane {
  std::size_t axis = 2;
  double at = 0;
};

struct PictureOptions {
  std::string title;     ///< above the picture
  std::string quantity;  ///< beside the colour bar, e.g. "u"
  int width = 1200, height = 900;
  bool shrink = false;                     ///< width or height is made smaller where the mesh leaves much of it empty
  std::string note = {};                   ///< a line under the title
  std::optional<PicturePlane> plane = {};  ///< none: the octant nearest to the viewer is cut away
  std::optional<std::array<double, 3>> view =
      {};  ///< from the mesh towards the viewer; none: a view of three sides, or of the plane alone
  ColorMap colors = ColorMap::viridis;
  bool logarithmic = false;
  std::optional<std::array<double, 2>> range = {};  ///< values of the first and the last color; none: those of the field
  std::optional<bool> mesh_lines = {};              ///< none: on coarse meshes
  PictureFormat format = PictureFormat::png;
};

/// What a picture shows.
struct PointValues {
  std::span<double const> values;  ///< per point of the mesh
  bool absolute = false;           ///< their absolute values
  /// In place of these two: writes the values at some points, ascending; and the least and the largest of all, which are finite.
  std::function<void(std::span<std::int64_t const> points, double* out)> get{};
  std::array<double, 2> ends{};
};
/// Every cell has one colour.
struct CellValues {
  std::span<double const> values;  ///< per cell
  int components = 1;              ///< 1; or 3 or more, of which the mean of the first three is shown
};
/// Integers such as ids of materials, with a legend in place of the colour bar.
struct CellClasses {
  std::span<int const> classes;      ///< per cell
  std::map<int, std::string> names;  ///< of those that have one
};
/// The length of the flux.
struct FluxLength {
  FluxData data;
  bool arrows = false;  ///< with a plane: also arrows in the direction of the flux, as long as its part in the plane
};
using PictureField = std::variant<PointValues, CellValues, CellClasses, FluxLength>;

/// Bytes that write_picture takes for a mesh of so many cells, faces of its boundary, which are known, and nodes: triangles of the
/// surface and of the three cuts, pixels. `n_nodes`: 0 for boxes.
[[nodiscard]] std::int64_t picture_bytes(std::int64_t n_cells, std::int64_t n_boundary_faces, int order, std::int64_t n_nodes,
                                         PictureOptions const& options, bool flux = false);

/// The triangles of a picture, and what is known of the whole field.
struct PictureSurface {
  BoundingBox box;  ///< of what is drawn
  CutAway cut;
  double n_faces = 0;
  std::vector<SurfaceTriangle> triangles;
  std::array<std::vector<SurfaceTriangle>, 3> components;  ///< the same with components of the flux, for arrows
  ValueRange range;
  std::vector<int> classes;  ///< of CellClasses, ascending
};
/// The triangles of the picture that picture_png draws of a field. Of a `part` (null: the mesh is all) it is collective: the first
/// rank gets the surface of all parts, in the order of the ranks, and the others an empty one. A part may have no cells.
[[nodiscard]] PictureSurface picture_surface(Mesh const& mesh, PictureField const& field, PictureOptions const& options,
                                             PicturePart const* part = nullptr);
/// Draws it. Of the field only its kind counts, and names.
[[nodiscard]] std::string picture_png(PictureSurface const& surface, PictureField const& field, PictureOptions const& options);

/// The bytes of a picture of a field on the mesh, with colour bar or legend, and axes: its boundary without the octant nearest to
/// the viewer, so that the interior is visible; or with a plane what lies beyond the plane, or without a view the section alone,
/// seen from the front. Lengths in directions in which the mesh is thinner than an eighth of its longest side are drawn larger, and
/// the picture says so. Rendered in software: no display and no fonts are needed. Values that are not finite are grey. The same
/// bytes for any number of threads. Throws EnvironmentError when memory does not suffice.
[[nodiscard]] std::string picture_png(Mesh const& mesh, PictureField const& field, PictureOptions const& options);

/// Values at n[0] x n[1] points of a parallelogram, edges included, those along the first edge next to each other.
struct PlaneValues {
  std::array<std::int64_t, 2> n{};
  std::array<double, 3> origin{}, first{}, second{};  ///< a corner, and the edges from there, which are not parallel
  std::span<double const> values;                     ///< what touches one that is not finite is left blank
};
/// The bytes of a picture of the parallelogram seen from the front, its first edge to the right: linear between the values. Axes
/// have the coordinates of the mesh where the edges run along two of them, else distances from the origin. Of the options title,
/// note, quantity, sizes, colors, range and format count.
[[nodiscard]] std::string plane_png(PlaneValues const& plane, PictureOptions const& options);

/// Writes the picture of a value per point. Throws EnvironmentError when the file cannot be written.
void write_picture(std::filesystem::path const& path, Mesh const& mesh, std::span<double const> u, PictureOptions const& options);

/// The points (x_i, y_i) of a curve, joined by lines.
struct Curve {
  std::string label;
  std::vector<double> x, y;  ///< of one length; points that are not finite, or not positive on a logarithmic axis, are skipped
};
struct PlotOptions {
  std::string title, x_label, y_label;
  bool x_log = false, y_log = true;
  int width = 900, height = 600;
  double reference_y = 0;         ///< where > 0: a dashed horizontal line, for instance the tolerance
  std::string reference_label{};  ///< label of that line; empty: its value
};

/// Writes line plots with a legend, as PNG, or as SVG or PDF where the path ends so. A skipped point interrupts its line; without
/// any point the plot says "no data". Throws EnvironmentError when the file cannot be written.
void write_plot(std::filesystem::path const& path, std::vector<Curve> const& curves, PlotOptions const& options);

}  // namespace poisson::output
