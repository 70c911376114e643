#include "app/results/output.hpp"

#include "app/io/console.hpp"
#include "app/io/csv.hpp"
#include "output/files/atomic_file.hpp"
#include "output/picture/picture.hpp"
#include "output/vtk/vtk_files.hpp"

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <numbers>
#include <utility>

namespace poisson::app {

namespace fs = std::filesystem;

namespace {

using Point = std::array<double, 3>;
using AtPoints = std::span<assembly::PointValues const* const>;

std::vector<Point> points_of(LineSpec const& line) {
  std::vector<Point> points;
  for (std::int64_t i = 0; i < line.points; ++i) {
    double const t = static_cast<double>(i) / static_cast<double>(line.points - 1);
    Point& x = points.emplace_back();
    for (std::size_t d = 0; d < 3; ++d)
      x[d] = (1 - t) * line.from[d] + t * line.to[d];
  }
  return points;
}

std::vector<Point> points_of(CircleSpec const& circle) {
  double const length = std::hypot(circle.normal[0], circle.normal[1], circle.normal[2]);
  Point n{}, first{};
  for (std::size_t d = 0; d < 3; ++d)
    n[d] = circle.normal[d] / length;
  // Angles begin in the direction of x, or of y where x is normal to the circle.
  std::size_t const axis = std::abs(n[0]) < 1 - 1e-10 ? 0 : 1;
  for (std::size_t d = 0; d < 3; ++d)
    first[d] = (d == axis ? 1 : 0) - n[axis] * n[d];
  double const of_first = std::hypot(first[0], first[1], first[2]);
  for (double& component : first)
    component /= of_first;
  Point const second{n[1] * first[2] - n[2] * first[1], n[2] * first[0] - n[0] * first[2], n[0] * first[1] - n[1] * first[0]};
  std::vector<Point> points;
  for (std::int64_t i = 0; i < circle.points; ++i) {
    double const angle = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(circle.points - 1);
    Point& x = points.emplace_back();
    for (std::size_t d = 0; d < 3; ++d)
      x[d] = circle.center[d] + circle.radius * (std::cos(angle) * first[d] + std::sin(angle) * second[d]);
  }
  return points;
}

/// Those along the first edge next to each other.
std::vector<Point> points_of(PlaneSpec const& plane) {
  std::vector<Point> points;
  for (std::int64_t j = 0; j < plane.points[1]; ++j)
    for (std::int64_t i = 0; i < plane.points[0]; ++i) {
      double const s = static_cast<double>(i) / static_cast<double>(plane.points[0] - 1);
      double const t = static_cast<double>(j) / static_cast<double>(plane.points[1] - 1);
      Point& x = points.emplace_back();
      for (std::size_t d = 0; d < 3; ++d)
        x[d] = plane.origin[d] + s * plane.first[d] + t * plane.second[d];
    }
  return points;
}

/// Columns of one length.
struct Table {
  std::vector<std::string> names;
  std::vector<std::vector<double>> columns;

  [[nodiscard]] std::string csv() const {
    std::vector<CsvColumn> list;
    for (std::size_t c = 0; c < columns.size(); ++c)
      list.push_back({names[c], columns[c]});
    return csv_text("point", 0, list);
  }
};

/// Files of the solution at points: NAME.csv, and others that its kind has.
class AtSet : public Output {
public:
  /// `kind` is "line" for the entries of output.lines.
  AtSet(RunConfig const& config, std::string const& kind, std::size_t index, std::string const& name, std::vector<Point> points)
      : config_(config),
        file_(kind + "_" + name),
        set_{"output." + kind + "s[" + std::to_string(index) + "]", kind, name, std::move(points)} {}

  [[nodiscard]] std::vector<std::string> names() const override {
    std::vector<std::string> names{file_ + ".csv"};
    for (std::string const& ending : picture_endings())
      names.push_back(file_ + ending);
    return names;
  }
  [[nodiscard]] PointSet* points() override { return &set_; }

  void write(Solution const& solution, RunLog&, ResultsDirectory& directory) override {
    AtPoints const values = solution.at(set_);
    if (values.empty())
      return;
    Table const table = make_table(values);
    directory.try_write(file_ + ".csv", [&](fs::path const& path) { output::write_text_file(path, table.csv()); });
    write_more(table, values, directory);
  }

protected:
  [[nodiscard]] std::vector<std::string> picture_endings() const {
    return config_.output.picture && output::pictures_built() ? config_.output.picture_endings() : std::vector<std::string>();
  }
  /// x, y, z, u, its gradient, the flux and, where it is known, the exact solution. NaN outside the mesh.
  [[nodiscard]] virtual Table make_table(AtPoints values) const {
    double const nothing = std::numeric_limits<double>::quiet_NaN();
    Table table{{"x", "y", "z", config_.output.name, "gradient_x", "gradient_y", "gradient_z", "flux_x", "flux_y", "flux_z"}, {}};
    if (config_.problem.exact)
      table.names.emplace_back("exact");
    table.columns.resize(table.names.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      assembly::PointValues const* const at = values[i];
      std::vector<double> row(set_.points[i].begin(), set_.points[i].end());
      row.push_back(at ? at->u : nothing);
      for (std::size_t d = 0; d < 3; ++d)
        row.push_back(at ? at->gradient[d] : nothing);
      for (std::size_t d = 0; d < 3; ++d)
        row.push_back(at ? at->flux[d] : nothing);
      row.push_back(at ? at->exact : nothing);
      for (std::size_t c = 0; c < table.columns.size(); ++c)
        table.columns[c].push_back(row[c]);
    }
    return table;
  }
  /// Writes the other files.
  virtual void write_more(Table const& table, AtPoints values, ResultsDirectory& directory) const = 0;

  RunConfig const& config_;
  std::string file_;
  PointSet set_;
};

/// Points on a curve. The first column of the table is the place on it.
class Curve final : public AtSet {
public:
  Curve(RunConfig const& config, std::size_t index, LineSpec const& line)
      : AtSet(config, "line", index, line.name, points_of(line)),
        place_("distance"),
        title_(line.name + ": " + point_text(line.from) + " to " + point_text(line.to)) {
    for (Point const& x : set_.points)
      places_.push_back(std::hypot(x[0] - line.from[0], x[1] - line.from[1], x[2] - line.from[2]));
  }
  Curve(RunConfig const& config, std::size_t index, CircleSpec const& circle)
      : AtSet(config, "circle", index, circle.name, points_of(circle)),
        place_("angle"),
        title_(circle.name + ": radius " + number_text(circle.radius, 6) + " around " + point_text(circle.center)) {
    for (std::int64_t i = 0; i < circle.points; ++i)
      places_.push_back(360 * static_cast<double>(i) / static_cast<double>(circle.points - 1));
  }

private:
  [[nodiscard]] Table make_table(AtPoints values) const override {
    Table table = AtSet::make_table(values);
    table.names.insert(table.names.begin(), place_);
    table.columns.insert(table.columns.begin(), places_);
    return table;
  }

  void write_more(Table const& table, AtPoints, ResultsDirectory& directory) const override {
    constexpr std::size_t u_column = 4;  // after the place on the curve and x, y, z
    std::vector<output::Curve> curves{{config_.output.name, table.columns[0], table.columns[u_column]}};
    if (config_.problem.exact)
      curves.push_back({"exact", table.columns[0], table.columns.back()});
    output::PlotOptions options;
    options.title = title_;
    options.x_label = table.names[0];
    options.y_label = config_.output.label();
    options.y_log = false;
    for (std::string const& ending : picture_endings())
      directory.try_write(file_ + ending, [&](fs::path const& path) { output::write_plot(path, curves, options); });
  }

  std::string place_, title_;
  std::vector<double> places_;
};

class Plane final : public AtSet {
public:
  Plane(RunConfig const& config, std::size_t index, PlaneSpec const& plane)
      : AtSet(config, "plane", index, plane.name, points_of(plane)), plane_(plane) {}

  [[nodiscard]] std::vector<std::string> names() const override {
    std::vector<std::string> names = AtSet::names();
    names.push_back(file_ + ".vts");
    return names;
  }

private:
  void write_more(Table const& table, AtPoints values, ResultsDirectory& directory) const override {
    auto const vectors = [&](std::size_t first) {
      std::vector<double> list;
      for (std::size_t i = 0; i < values.size(); ++i)
        for (std::size_t d = 0; d < 3; ++d)
          list.push_back(table.columns[first + d][i]);
      return list;
    };
    std::vector<double> const x = vectors(0), gradient = vectors(4), flux = vectors(7);
    std::vector<output::Field> fields{
        {config_.output.name, 1, table.columns[3], {}}, {"gradient", 3, gradient, {}}, {"flux", 3, flux, {}}};
    if (config_.problem.exact)
      fields.push_back({"exact", 1, table.columns.back(), {}});
    std::vector<unsigned char> hidden;
    for (assembly::PointValues const* const at : values)
      hidden.push_back(at != nullptr ? 0 : 1);
    directory.try_write(file_ + ".vts", [&](fs::path const& path) {
      output::write_vts(path, plane_.points, x, hidden, fields, config_.output.vtk);
    });
    output::PictureOptions options;
    options.title = plane_.name + ": " + config_.output.name + " on a plane from " + point_text(plane_.origin);
    options.quantity = config_.output.label();
    options.shrink = true;
    for (std::string const& ending : picture_endings()) {
      options.format = *parse_name<output::PictureFormat>(ending.substr(1));
      directory.try_write(file_ + ending, [&](fs::path const& path) {
        output::write_text_file(
            path, output::plane_png({plane_.points, plane_.origin, plane_.first, plane_.second, table.columns[3]}, options));
      });
    }
  }

  PlaneSpec const& plane_;
};

}  // namespace

std::unique_ptr<Output> make_line(RunConfig const& config, std::size_t index) {
  return std::make_unique<Curve>(config, index, config.output.lines[index]);
}

std::unique_ptr<Output> make_circle(RunConfig const& config, std::size_t index) {
  return std::make_unique<Curve>(config, index, config.output.circles[index]);
}

std::unique_ptr<Output> make_plane(RunConfig const& config, std::size_t index) {
  return std::make_unique<Plane>(config, index, config.output.planes[index]);
}

}  // namespace poisson::app
