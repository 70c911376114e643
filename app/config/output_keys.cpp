#include "app/config/key_sections.hpp"
#include "app/config/value_types.hpp"

#include <algorithm>
#include <cmath>

namespace poisson::app::schema {
namespace {

Keys<ProbeSpec> const& probe_keys() {
  static Keys<ProbeSpec> const keys{
      key<ProbeSpec>(
          "name", PlainName{}, [](auto& p) -> auto& { return p.name; }, "",
          "The quantities are probe.NAME and probe.NAME.gradient.")
          .must_be_given("a probe has a name"),
      key<ProbeSpec>(
          "at", ThreeOf<Number>{}, [](auto& p) -> auto& { return p.at; }, "length", "The point, which must be in the mesh.")
          .must_be_given("say where, [x, y, z]"),
  };
  return keys;
}

Keys<LineSpec> const& line_keys() {
  static Keys<LineSpec> const keys{
      key<LineSpec>(
          "name", PlainName{}, [](auto& l) -> auto& { return l.name; }, "", "The files are line_NAME.csv and line_NAME.png.")
          .must_be_given("a line has a name"),
      key<LineSpec>(
          "from", ThreeOf<Number>{}, [](auto& l) -> auto& { return l.from; }, "length", "The first point.")
          .must_be_given("say where, [x, y, z]"),
      key<LineSpec>(
          "to", ThreeOf<Number>{}, [](auto& l) -> auto& { return l.to; }, "length", "The last point.")
          .must_be_given("say where, [x, y, z]"),
      key<LineSpec>(
          "points", Integer{2, 1000000}, [](auto& l) -> auto& { return l.points; }, "", "How many, both ends included."),
  };
  return keys;
}

Keys<CircleSpec> const& circle_keys() {
  static Keys<CircleSpec> const keys{
      key<CircleSpec>(
          "name", PlainName{}, [](auto& c) -> auto& { return c.name; }, "", "The files are circle_NAME.csv and circle_NAME.png.")
          .must_be_given("a circle has a name"),
      key<CircleSpec>(
          "center", ThreeOf<Number>{}, [](auto& c) -> auto& { return c.center; }, "length", "The middle of the circle.")
          .must_be_given("say where, [x, y, z]"),
      key<CircleSpec>(
          "normal", ThreeOf<Number>{}, [](auto& c) -> auto& { return c.normal; }, "",
          "Normal to the circle, of any length. Seen from its tip, angles grow counterclockwise, from the direction of x (of y "
          "where the normal is parallel to x)."),
      key<CircleSpec>(
          "radius", Number{0}, [](auto& c) -> auto& { return c.radius; }, "length", "The radius of the circle.")
          .must_be_given("say how large the circle is"),
      key<CircleSpec>(
          "points", Integer{2, 1000000}, [](auto& c) -> auto& { return c.points; }, "",
          "How many, those at 0 and 360 degrees included."),
  };
  return keys;
}

Keys<PlaneSpec> const& plane_keys() {
  static Keys<PlaneSpec> const keys{
      key<PlaneSpec>(
          "name", PlainName{}, [](auto& p) -> auto& { return p.name; }, "",
          "The files are plane_NAME.vts, plane_NAME.csv and plane_NAME.png.")
          .must_be_given("a plane has a name"),
      key<PlaneSpec>(
          "origin", ThreeOf<Number>{}, [](auto& p) -> auto& { return p.origin; }, "length", "A corner of the parallelogram.")
          .must_be_given("say where, [x, y, z]"),
      key<PlaneSpec>(
          "first", ThreeOf<Number>{}, [](auto& p) -> auto& { return p.first; }, "length", "The first edge from there, a vector.")
          .must_be_given("say where to, [x, y, z]"),
      key<PlaneSpec>(
          "second", ThreeOf<Number>{}, [](auto& p) -> auto& { return p.second; }, "length", "The second edge, a vector.")
          .must_be_given("say where to, [x, y, z]"),
      key<PlaneSpec>(
          "points", TwoOf<Integer>{{2, 1000}, "[n, m]"}, [](auto& p) -> auto& { return p.points; }, "",
          "How many along the first edge, and along the second one, both ends included."),
  };
  return keys;
}

Keys<SliceSpec> const& slice_keys() {
  static Keys<SliceSpec> const keys{
      key<SliceSpec>(
          "name", PlainName{}, [](auto& s) -> auto& { return s.name; }, "", "The file is slice_NAME.vtp.")
          .must_be_given("a slice has a name"),
      key<SliceSpec>(
          "origin", ThreeOf<Number>{}, [](auto& s) -> auto& { return s.origin; }, "length", "A point of the plane.")
          .must_be_given("say where, [x, y, z]"),
      key<SliceSpec>(
          "normal", ThreeOf<Number>{}, [](auto& s) -> auto& { return s.normal; }, "", "Normal to the plane, of any length."),
  };
  return keys;
}

Keys<PictureSpec> const& picture_keys() {
  auto const plane = [](PictureSpec const& p) { return p.has_plane(); };
  auto const colored = [](PictureSpec const& p) { return p.quantity != PictureQuantity::materials; };
  static Keys<PictureSpec> const keys{
      key<PictureSpec>(
          "name", PlainName{}, [](auto& p) -> auto& { return p.name; }, "", "The file is picture_NAME.png.")
          .must_be_given("a picture has a name"),
      key<PictureSpec>(
          "quantity", Choice<PictureQuantity>{}, [](auto& p) -> auto& { return p.quantity; }, "",
          "u; flux: |k grad u|; arrows: its direction in a plane, over |k grad u|; materials; coefficient: k of every cell, of "
          "three or six components the mean of xx, yy and zz; exact and error (u - exact) with problem.exact."),
      key<PictureSpec>(
          "normal", AutoChoice<Direction>{}, [](auto& p) -> auto& { return p.normal; }, "",
          "Cuts the mesh by a plane normal to this direction and shows the section. auto: the surface without an octant; with "
          "arrows the direction in which the mesh is thinnest."),
      key<PictureSpec>(
          "at", OptionalNumber{}, [](auto& p) -> auto& { return p.at; }, "length",
          "Where the plane cuts that direction. auto: in the middle of the mesh.")
          .only("with normal or quantity: arrows", plane),
      key<PictureSpec>(
          "view", AutoOr<ThreeOf<Number>>{{}, true}, [](auto& p) -> auto& { return p.view; }, "",
          "From where it is seen: a vector from the mesh towards the eye, of any length. With a plane what is in front of the "
          "plane is cut away. auto: three sides; with a plane the section alone, from the front."),
      key<PictureSpec>(
          "colors", AutoChoice<output::ColorMap>{}, [](auto& p) -> auto& { return p.colors; }, "",
          "Map of colors. auto: viridis for u, exact and coefficient, plasma for flux and arrows, diverging (around 0) for error.")
          .only("without quantity: materials", colored),
      key<PictureSpec>(
          "scale", AutoChoice<PictureScale>{}, [](auto& p) -> auto& { return p.scale; }, "",
          "linear; or log, of at most the six decades below the largest value (all of a coefficient), |error| for error. auto: log "
          "for a "
          "coefficient that spans more than two decades, else linear.")
          .only("without quantity: materials", colored),
      key<PictureSpec>(
          "range", AutoOr<TwoOf<Number>>{TwoOf<Number>{Number{}, "[low, high]"}, true}, [](auto& p) -> auto& { return p.range; },
          "as the quantity", "Values of the first and the last color. auto: all values.")
          .only("without quantity: materials", colored),
      key<PictureSpec>(
          "mesh", AutoOr<Boolean>{}, [](auto& p) -> auto& { return p.mesh; }, "",
          "Whether mesh lines are drawn. auto: on coarse meshes."),
      key<PictureSpec>(
          "size", AutoOr<TwoOf<Integer>>{TwoOf<Integer>{Integer{240, 8192}, "[width, height]"}, true},
          [](auto& p) -> auto& { return p.size; }, "pixels", "auto: [1200, 900], less where the mesh leaves much of it empty."),
  };
  return keys;
}

/// Different numbers.
struct Numbers {
  [[nodiscard]] std::string allowed() const { return "list of numbers, e.g. [0.2, 0.4]"; }
  void read(YamlNode const& node, std::string const& path, std::vector<double>& out) const {
    if (node.kind != YamlNode::Kind::list || node.items.empty())
      reject_value(node, path, allowed());
    out.clear();
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      double value = 0;
      Number{}.read(node.items[i], path + "[" + std::to_string(i) + "]", value);
      if (std::find(out.begin(), out.end(), value) != out.end())
        reject(node.items[i].origin, path + "[" + std::to_string(i) + "]", Number{}.write(value) + " is given twice");
      out.push_back(value);
    }
  }
  [[nodiscard]] std::string write(std::vector<double> const& value) const {
    std::vector<std::string> numbers;
    for (double const number : value)
      numbers.push_back(Number{}.write(number));
    return "[" + join(numbers) + "]";
  }
  [[nodiscard]] Json json_schema() const {
    return {{"type", "array"}, {"items", Number{}.json_schema()}, {"minItems", 1}, {"uniqueItems", true}};
  }
};

Keys<ContourSpec> const& contour_keys() {
  static Keys<ContourSpec> const keys{
      key<ContourSpec>(
          "name", PlainName{}, [](auto& c) -> auto& { return c.name; }, "", "The file is contour_NAME.vtp.")
          .must_be_given("contours have a name"),
      key<ContourSpec>(
          "values", Numbers{}, [](auto& c) -> auto& { return c.values; }, "as u", "Values of u.")
          .must_be_given("say which values of u"),
  };
  return keys;
}

/// Some names of an enumeration, at least one.
template <class E>
struct SetOf {
  Choice<E> element;
  [[nodiscard]] std::string allowed() const { return "list of some of: " + element.allowed(); }
  void read(YamlNode const& node, std::string const& path, std::vector<E>& out) const {
    if (node.kind != YamlNode::Kind::list || node.items.empty())
      reject_value(node, path, allowed());
    std::vector<E> read;
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      E value{};
      std::string const item = path + "[" + std::to_string(i) + "]";
      element.read(node.items[i], item, value);
      if (std::find(read.begin(), read.end(), value) != read.end())
        reject(node.items[i].origin, item, "'" + element.write(value) + "' is given twice");
      read.push_back(value);
    }
    out = std::move(read);
  }
  [[nodiscard]] std::string write(std::vector<E> const& value) const {
    std::vector<std::string> names;
    for (E const e : value)
      names.push_back(element.write(e));
    return "[" + join(names) + "]";
  }
  [[nodiscard]] Json json_schema() const {
    return {{"type", "array"}, {"items", element.json_schema()}, {"minItems", 1}, {"uniqueItems", true}};
  }
};

struct Quantities {
  [[nodiscard]] std::string allowed() const { return "map from names to expressions in the names of quantities"; }
  void read(YamlNode const& node, std::string const& path, std::vector<QuantitySpec>& out) const {
    if (node.kind != YamlNode::Kind::map)
      reject_value(node, path, allowed());
    out.clear();
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
      auto const& [name, origin] = node.keys[i];
      std::string const full = path + "." + name;
      if (!is_plain_name(name))
        reject(origin, shorten(full), "allowed: " + PlainName{}.allowed());
      ExpressionText{}.read(node.items[i], full, out.emplace_back(QuantitySpec{name, ""}).value);
    }
  }
  [[nodiscard]] std::string write(std::vector<QuantitySpec> const& value) const {
    std::vector<std::string> entries;
    for (auto const& [name, expression] : value)
      entries.push_back(name + ": " + quoted_text(expression));
    return "{" + join(entries) + "}";
  }
  [[nodiscard]] Json json_schema() const { return {{"type", "object"}, {"additionalProperties", ExpressionText{}.json_schema()}}; }
};

}  // namespace

Keys<RunConfig> keys_of_output() {
  return {
      section<RunConfig>("output", "What is written."),
      key<RunConfig>("output.directory", Text{"path of a directory"}, POISSON_MEMBER(output.directory), "", "Where results go.")
          .or_null("results/NAME, NAME being the configuration file's name without extension"),
      key<RunConfig>("output.name", PlainName{}, POISSON_MEMBER(output.name), "",
                     "Name of the solution in files for ParaView, tables, pictures and the page, such as temperature."),
      key<RunConfig>("output.unit", Text{"text"}, POISSON_MEMBER(output.unit), "",
                     "Its unit, which pictures and the page show behind the name; nothing is converted.")
          .or_null("none"),
      key<RunConfig>("output.title", Text{"text"}, POISSON_MEMBER(output.title), "", "Title of pictures and of the page.")
          .or_null("the name of the configuration file"),
      section<RunConfig>("output.vtk", "Solution for ParaView."),
      key<RunConfig>("output.vtk.enabled", Boolean{}, POISSON_MEMBER(output.vtk_enabled), "", "Whether it is written."),
      key<RunConfig>(
          "output.vtk.format", AutoChoice<output::VtkFormat>{}, POISSON_MEMBER(output.vtk_format), "",
          "vtu: an unstructured grid (.vtu), for any mesh. image: of a box only, the smallest file and the fastest to write: image "
          "data (.vti), from order 2 on, and with graded cells, a rectilinear grid of the nodes (.vtr). hdf: the grid of vtu as "
          "VTKHDF (.hdf), for any "
          "mesh. "
          "auto: image for boxes, else vtu."),
      key<RunConfig>("output.vtk.fields", SetOf<SolutionField>{}, POISSON_MEMBER(output.vtk_fields), "",
                     "What is written: u, exact and error at the nodes (exact and error with problem.exact), material, coefficient "
                     "and flux on "
                     "the cells, and level and estimator with problem.mesh.adaptive. Not by default: gradient, the gradient of u "
                     "on the cells, "
                     "and flux_points, the flux at the nodes: the mean over the cells around each, for streamlines."),
      key<RunConfig>("output.vtk.compression", Choice<output::VtkCompression>{}, POISSON_MEMBER(output.vtk.compression), "",
                     "Compression of the file: fast is LZ4, best is LZMA; in .hdf both are deflate."),
      key<RunConfig>("output.vtk.precision", Choice<output::VtkPrecision>{}, POISSON_MEMBER(output.vtk.precision), "",
                     "Floating-point numbers in the file."),
      key<RunConfig>(
          "output.picture", Boolean{}, POISSON_MEMBER(output.picture), "",
          "Whether pictures and plots (.png) are drawn: of the solution, of the materials where there are several, of what is "
          "below."),
      key<RunConfig>("output.picture_formats", SetOf<output::PictureFormat>{}, POISSON_MEMBER(output.picture_formats), "",
                     "Formats in which pictures and plots are written; png always.")
          .or_null("png alone"),
      key<RunConfig>(
          "output.report", Boolean{}, POISSON_MEMBER(output.report), "",
          "Whether the results are also written as a page to read in a browser (report.html), which needs no other file."),
      key<RunConfig>("output.probes", Named<ProbeSpec>{probe_keys, "{name: tip, at: [0.1, 0.2, 0.3]}"},
                     POISSON_MEMBER(output.probes), "",
                     "Points at which u, its gradient and the flux -k grad u are evaluated, exactly, in cells of any order.")
          .or_null("none")
          .with_elements(probe_keys()),
      key<RunConfig>("output.lines", Named<LineSpec>{line_keys, "{name: axis, from: [0, 0, 0], to: [0, 0, 1], points: 101}"},
                     POISSON_MEMBER(output.lines), "", "Lines along which they are written (.csv) and u is drawn (.png).")
          .or_null("none")
          .with_elements(line_keys()),
      key<RunConfig>("output.circles",
                     Named<CircleSpec>{circle_keys, "{name: rim, center: [0, 0, 0], normal: [0, 0, 1], radius: 0.4}"},
                     POISSON_MEMBER(output.circles), "", "Circles along which they are written (.csv) and u is drawn (.png).")
          .or_null("none")
          .with_elements(circle_keys()),
      key<RunConfig>(
          "output.planes", Named<PlaneSpec>{plane_keys, "{name: mid, origin: [0, 0, 0.5], first: [1, 0, 0], second: [0, 1, 0]}"},
          POISSON_MEMBER(output.planes), "", "Parallelograms on which they are written (.vts, .csv) and u is drawn (.png).")
          .or_null("none")
          .with_elements(plane_keys()),
      key<RunConfig>("output.slices", Named<SliceSpec>{slice_keys, "{name: mid, origin: [0, 0, 0.5], normal: [0, 0, 1]}"},
                     POISSON_MEMBER(output.slices), "",
                     "Planes whose part in the mesh is written as triangles (.vtp), with u, flux, material.")
          .or_null("none")
          .with_elements(slice_keys()),
      key<RunConfig>("output.contours", Named<ContourSpec>{contour_keys, "{name: levels, values: [0.2, 0.4]}"},
                     POISSON_MEMBER(output.contours), "", "Surfaces where u has these values, written as triangles (.vtp).")
          .or_null("none")
          .with_elements(contour_keys()),
      key<RunConfig>("output.pictures", Named<PictureSpec>{picture_keys, "{name: inside, quantity: flux, normal: x}"},
                     POISSON_MEMBER(output.pictures), "",
                     "More pictures (.png), of quantities, in planes, by other colors; drawn whatever output.picture says.")
          .or_null("none")
          .with_elements(picture_keys())
          .shown_as_comments(),
      key<RunConfig>(
          "output.surface", Boolean{}, POISSON_MEMBER(output.surface), "",
          "Whether the boundary alone is written (surface.vtp): u and the flux at its nodes, ids and the flux outwards on its "
          "faces."),
      key<RunConfig>(
          "output.quantities", Quantities{}, POISSON_MEMBER(output.quantities), "",
          "What else is computed, such as {resistance: \"(max - min) / flux.1\"}: from min, max, mean, energy, integral_u, "
          "integral_f, flux.NAME and area.NAME of every boundary and volume.NAME of every material (or its id; names with "
          "other signs in quotes: flux.\"hot wall\"), probe.NAME, probe.NAME.gradient.x "
          "(.y, .z), parameters and quantities before.")
          .or_null("none"),
  };
}

void check_output(YamlNode const& root, RunConfig const& config) {
  for (char const* const taken : {"x", "y", "z", "exact", "error", "material", "coefficient", "flux", "flux_points", "gradient",
                                  "level", "estimator", "point", "distance", "angle"})
    if (config.output.name == taken)
      reject(locate_path(root, "output.name").origin, "output.name",
             "'" + config.output.name + "' is what another column or array is called; choose another name");
  if (config.output.vtk_format == output::VtkFormat::image && !config.is_box())
    reject(locate_path(root, "output.vtk.format").origin, "output.vtk.format",
           "found 'image', which is for generator: box only; allowed for this mesh: auto, vtu, hdf");
  for (std::size_t i = 0; i < config.output.circles.size(); ++i) {
    std::string const path = "output.circles[" + std::to_string(i) + "].normal";
    if (auto const& n = config.output.circles[i].normal; !(std::hypot(n[0], n[1], n[2]) > 0))
      reject(locate_path(root, path).origin, path, "found [0, 0, 0], which has no direction");
  }
  for (std::size_t i = 0; i < config.output.slices.size(); ++i) {
    std::string const path = "output.slices[" + std::to_string(i) + "].normal";
    if (auto const& n = config.output.slices[i].normal; !(std::hypot(n[0], n[1], n[2]) > 0))
      reject(locate_path(root, path).origin, path, "found [0, 0, 0], which has no direction");
  }
  for (std::size_t i = 0; i < config.output.planes.size(); ++i) {
    std::string const path = "output.planes[" + std::to_string(i) + "].second";
    auto const &a = config.output.planes[i].first, &b = config.output.planes[i].second;
    double const lengths = std::hypot(a[0], a[1], a[2]) * std::hypot(b[0], b[1], b[2]);
    double const area = std::hypot(a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]);
    if (!(area > 1e-10 * lengths))
      reject(locate_path(root, path).origin, path, "the edges 'first' and 'second' are zero or parallel; they must span a plane");
  }
}

void check_pictures(YamlNode const& root, RunConfig const& config) {
  for (std::size_t i = 0; i < config.output.pictures.size(); ++i) {
    PictureSpec const& picture = config.output.pictures[i];
    std::string const path = "output.pictures[" + std::to_string(i) + "]";
    auto const refuse = [&](std::string const& key, std::string const& what) {
      reject(locate_path(root, path + key).origin, path + key, what);
    };
    bool const needs_exact = picture.quantity == PictureQuantity::error || picture.quantity == PictureQuantity::exact;
    if (needs_exact && !config.problem.exact)
      refuse(".quantity", "found '" + std::string(name_of(picture.quantity)) + "', which needs problem.exact, the exact solution");
    if (picture.view && !(std::hypot((*picture.view)[0], (*picture.view)[1], (*picture.view)[2]) > 0))
      refuse(".view", "found [0, 0, 0], which has no direction");
    if (picture.view && picture.quantity == PictureQuantity::arrows)
      refuse(".view", "cannot be given with quantity: arrows, which are seen from the front of their plane");
    if (picture.range && !((*picture.range)[0] < (*picture.range)[1]))
      refuse(".range", "found " + TwoOf<Number>{}.write(*picture.range) + "; the first number must be less than the second one");
    if (picture.range && picture.scale == PictureScale::log && !((*picture.range)[0] > 0))
      refuse(".range[0]", "found " + Number{}.write((*picture.range)[0]) + "; with scale: log it must be > 0");
  }
}

}  // namespace poisson::app::schema
