#pragma once

#include "output/picture/picture.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace poisson::output {

/// A plot of curves as a figure of a page.
struct PagePlot {
  std::string title, x_label, y_label;
  bool x_log = false, y_log = false;
  bool markers = true;                 ///< a dot at every point, which shows its numbers
  bool lines = true;                   ///< from each point to the next one
  std::vector<std::string> x_names{};  ///< where not empty: x counts these values, from 0
  double reference_y = 0;              ///< where > 0: a dashed horizontal line
  std::string reference_label{};
  std::vector<Curve> curves{};
};

/// A cell of a table. Columns are sorted by `value` where it is given, else by text.
struct PageCell {
  std::string text;
  std::optional<double> value{};
  std::string link{};  ///< relative to the page; empty: none
};

struct PageTable {
  std::vector<std::string> head;
  std::vector<std::vector<PageCell>> rows;
  bool sortable = false;  ///< by a click on a column's head
};

/// A bar of a chart of parts, such as the stages of a run.
struct PageBar {
  std::string label;
  double value;  ///< >= 0
  std::string text;
};

/// A PNG file with its caption.
struct PagePicture {
  std::filesystem::path png;
  std::string caption;
};

/// A page of HTML that needs nothing else: style, pictures and plots are in it, and it loads nothing. It fits screens from 360
/// pixels on, follows the reader's choice of light or dark, and prints. All texts are shown as they are: markup in them has no
/// effect. Parts appear in the order of the calls.
class Page {
public:
  /// `state` is a short word beside the title; `good` decides its colour.
  Page(std::string_view title, std::string_view subtitle, std::string_view state, bool good);

  void heading(std::string_view text);
  void paragraph(std::string_view text);
  /// A paragraph that stands out.
  void warning(std::string_view text);
  /// The main numbers of the page, large: a label and a value each.
  void figures(std::vector<std::pair<std::string, std::string>> const& labels_and_values);
  /// Rows of a label and a value.
  void facts(std::vector<std::pair<std::string, std::string>> const& rows);
  void table(PageTable const& table);
  /// Plots of the columns of the page's first sortable table: one column against another with the colour of a third, fields for
  /// two keys, and a line for each row over parallel axes. The reader chooses the columns. Column 0 names the rows, `keys` columns
  /// that follow are what was given, and those of `shown` the answers that are shown first. Needs a browser that runs scripts.
  void explore(std::size_t keys, std::vector<std::size_t> const& shown);
  void bars(std::vector<PageBar> const& bars);
  /// Plots side by side where there is room. A plot without any point is left out.
  void plots(std::vector<PagePlot> const& plots);
  /// PNG files, side by side where there is room. Those that cannot be read are left out.
  void pictures(std::vector<PagePicture> const& pictures);
  /// Text with its line breaks, folded under a summary.
  void listing(std::string_view summary, std::string_view text);
  /// Links to files beside the page.
  void links(std::vector<std::string> const& files);

  /// The whole document, in UTF-8.
  [[nodiscard]] std::string html() const;

private:
  std::string title_, body_;
  bool explored_ = false;
};

/// The text with the five characters that HTML reserves replaced.
[[nodiscard]] std::string html_text(std::string_view text);
/// The plot as an element <svg>; empty where no point can be drawn. Points that are not finite, or not positive on a logarithmic
/// axis, are skipped and interrupt their line.
[[nodiscard]] std::string svg_plot(PagePlot const& plot);

}  // namespace poisson::output
