#include "output/report/page.hpp"

#include "tests/output/output_helpers.hpp"

#include <cmath>
#include <fstream>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace poisson::output {

namespace {

std::size_t count_of(std::string const& text, std::string const& part) {
  std::size_t n = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size()))
    ++n;
  return n;
}

/// The points (cx, cy) of an element <svg>.
std::vector<std::pair<double, double>> dots_of(std::string const& svg) {
  auto const number_after = [&](char const* attribute, std::size_t from) {
    std::size_t const at = svg.find(attribute, from);
    EXPECT_NE(at, std::string::npos);
    return std::stod(svg.substr(at + std::string(attribute).size()));
  };
  std::vector<std::pair<double, double>> dots;
  for (auto at = svg.find("<circle "); at != std::string::npos; at = svg.find("<circle ", at + 1))
    dots.emplace_back(number_after("cx=\"", at), number_after("cy=\"", at));
  return dots;
}

PagePlot plot_of(std::vector<double> x, std::vector<double> y) {
  PagePlot plot{"title", "x", "y"};
  plot.curves.push_back({"", std::move(x), std::move(y)});
  return plot;
}

TEST(HtmlText, HasNoMarkupLeft) {
  EXPECT_EQ(html_text("a < b && c > \"d\" 'e'"), "a &lt; b &amp;&amp; c &gt; &quot;d&quot; &#39;e&#39;");
  EXPECT_EQ(html_text("−∇·(k ∇u)"), "−∇·(k ∇u)");
}

TEST(Page, ShowsEveryTextAsItIs) {
  std::string const evil = "<script>alert(\"1\")</script>";
  Page page(evil, evil, evil, false);
  page.heading(evil);
  page.paragraph(evil);
  page.warning(evil);
  page.figures({{evil, evil}});
  page.facts({{evil, evil}});
  page.table({{evil}, {{{evil, {}, evil}}}, true});
  page.bars({{evil, 1, evil}});
  PagePlot plot = plot_of({0, 1}, {0, 1});
  plot.title = plot.x_label = plot.y_label = plot.curves[0].label = evil;
  plot.reference_y = 0.5;
  plot.reference_label = evil;
  page.plots({plot});
  page.listing(evil, evil);
  page.links({evil});
  std::string const html = page.html();
  EXPECT_EQ(count_of(html, "<script>"), 1u);  // its own, which sorts tables
  EXPECT_EQ(html.find("alert(\""), std::string::npos);
  EXPECT_NE(html.find("href=\"%3Cscript%3Ealert%28%221%22%29%3C/script%3E\""), std::string::npos);
}

TEST(Page, SortsNumbersByTheirValues) {
  Page page("t", "", "", true);
  page.table({{"n", "name"},
              {{{"1 000", 1000.0}, {"a"}}, {{"-"}, {"b"}}, {{"inf", std::numeric_limits<double>::infinity()}, {"c"}}},
              true});
  std::string const html = page.html();
  EXPECT_NE(html.find("<table class=\"sortable\">"), std::string::npos);
  EXPECT_NE(html.find("<td class=\"n\" data-v=\"1000\">1 000</td>"), std::string::npos);
  EXPECT_EQ(count_of(html, "data-v=\"") - count_of(html, "data-v=\"1000\""), 0u);  // what is no number has no value
  EXPECT_NE(html.find("<th scope=\"col\"><button type=\"button\">name</button></th>"), std::string::npos);
}

TEST(Page, LongTablesSayNumbersOnce) {
  Page page("t", "", "", true);
  PageTable table{{"n", "seconds", "mixed"}, {}, true};
  for (int i = 0; i < 50; ++i)
    table.rows.push_back({{std::to_string(i), i + 1e-7 * i}, {"0.123", 0.12345}, i == 0 ? PageCell{"a"} : PageCell{"1", 1.0}});
  page.explore(1, {1, 2});
  page.table(table);
  std::string const html = page.html();
  EXPECT_EQ(count_of(html, "data-v=\"0.12345\">0.123<"), 50u);
  EXPECT_EQ(count_of(html, "data-v=\"1\">1<"), 49u);  // the column is no column of numbers
  EXPECT_EQ(count_of(html, "<td class=\"n\">49</td>"), 1u);
  EXPECT_EQ(count_of(html, "<div class=\"wide long\">"), 1u);
  EXPECT_EQ(count_of(html, "<div class=\"explore\" data-keys=\"1\" data-shown=\"1,2\"></div>"), 1u);
  EXPECT_EQ(count_of(html, "<script>"), 1u);
  EXPECT_EQ(count_of(Page("t", "", "", true).html(), "explore"), 0u);
}

TEST(Page, LegendsStayShort) {
  Page page("t", "", "", true);
  PagePlot plot = plot_of({0, 1}, {0, 1});
  plot.curves.resize(20, plot.curves[0]);
  for (Curve& curve : plot.curves)
    curve.label = "curve";
  page.plots({plot});
  EXPECT_EQ(count_of(page.html(), "</i>curve</li>"), 12u);
  EXPECT_EQ(count_of(page.html(), "<li>and 8 more</li>"), 1u);
}

TEST(SvgPlot, ManyPointsAreDrawnWithoutTheirNumbers) {
  std::vector<double> many(301);
  for (std::size_t i = 0; i < many.size(); ++i)
    many[i] = static_cast<double>(i);
  PagePlot plot = plot_of(many, many);
  EXPECT_EQ(count_of(svg_plot(plot), "class=\"dots\""), 0u);  // a line is enough
  EXPECT_EQ(count_of(svg_plot(plot), "L"), 300u);
  plot.lines = false;
  EXPECT_EQ(count_of(svg_plot(plot), "h0"), 301u);
  EXPECT_EQ(count_of(svg_plot(plot), "<circle"), 0u);
  plot.lines = true;
  plot.curves.push_back({"", {5}, {7}});
  EXPECT_EQ(count_of(svg_plot(plot), "h0"), 1u);  // where there is no line
}

TEST(Page, HasItsPicturesInside) {
  test::TemporaryDirectory directory;
  std::ofstream(directory / "a.png", std::ios::binary) << "Man";
  Page page("t", "", "", true);
  page.pictures({{directory / "a.png", "u"}, {directory / "missing.png", "v"}});
  std::string const html = page.html();
  EXPECT_NE(html.find("src=\"data:image/png;base64,TWFu\""), std::string::npos);
  EXPECT_EQ(count_of(html, "<img"), 1u);
}

TEST(SvgPlot, PutsPointsWhereTheirValuesAre) {
  auto const dots = dots_of(svg_plot(plot_of({0, 5, 10}, {0, 50, 100})));
  ASSERT_EQ(dots.size(), 3u);
  EXPECT_NEAR(dots[1].first, (dots[0].first + dots[2].first) / 2, 0.11);
  EXPECT_NEAR(dots[1].second, (dots[0].second + dots[2].second) / 2, 0.11);
  EXPECT_GT(dots[2].first, dots[0].first);
  EXPECT_LT(dots[2].second, dots[0].second);  // upwards
}

TEST(SvgPlot, IsLogarithmicWhereAsked) {
  PagePlot plot = plot_of({1, 10, 100}, {1, 1e-3, 1e-6});
  plot.x_log = plot.y_log = true;
  auto const dots = dots_of(svg_plot(plot));
  ASSERT_EQ(dots.size(), 3u);
  EXPECT_NEAR(dots[1].first - dots[0].first, dots[2].first - dots[1].first, 0.21);
  EXPECT_NEAR(dots[1].second - dots[0].second, dots[2].second - dots[1].second, 0.21);
}

TEST(SvgPlot, SkipsWhatCannotBeDrawn) {
  double const nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  std::string const svg = svg_plot(plot_of({0, 1, 2, 3, 4}, {1, nan, 2, infinity, 3}));
  EXPECT_EQ(dots_of(svg).size(), 3u);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
  PagePlot logarithmic = plot_of({0, 1, 2}, {-1, 0, 4});
  logarithmic.y_log = true;
  EXPECT_EQ(dots_of(svg_plot(logarithmic)).size(), 1u);
  logarithmic.curves[0].y = {-1, 0, nan};
  EXPECT_EQ(svg_plot(logarithmic), "");
  EXPECT_EQ(svg_plot(plot_of({}, {})), "");
  EXPECT_EQ(svg_plot(PagePlot{}), "");
}

TEST(SvgPlot, StaysInsideItsFrame) {
  for (auto const& y : std::vector<std::vector<double>>{{5, 5, 5}, {1e-300, 1e300, 1}, {-1e9, 0, 1e9}, {1 + 1e-13, 1, 1}}) {
    auto const dots = dots_of(svg_plot(plot_of({1, 2, 3}, y)));
    ASSERT_EQ(dots.size(), 3u);
    for (auto const& [px, py] : dots) {
      EXPECT_TRUE(px >= 0 && px <= 480) << px;
      EXPECT_TRUE(py >= 0 && py <= 300) << py;
    }
  }
}

TEST(SvgPlot, KeepsTheLastPointOfALongCurve) {
  std::vector<double> x, y;
  for (int i = 0; i < 100'001; ++i) {
    x.push_back(i);
    y.push_back(std::sin(i));
  }
  PagePlot plot = plot_of(x, y);
  plot.curves[0].y.back() = 7;
  std::string const svg = svg_plot(plot);
  EXPECT_LT(count_of(svg, "L"), 1300u);
  auto const height_after = [&](std::size_t at) { return std::stod(svg.substr(svg.find(' ', at))); };  // of "L466.0 12.5"
  EXPECT_LT(height_after(svg.rfind('L')), height_after(svg.find(" d=\"M") + 3));
}

TEST(SvgPlot, NamesValuesThatAreNoNumbers) {
  PagePlot plot = plot_of({0, 1}, {3, 4});
  plot.x_names = {"csr", "cod_sell"};
  std::string const svg = svg_plot(plot);
  EXPECT_NE(svg.find(">cod_sell</text>"), std::string::npos);
  EXPECT_NE(svg.find("<title>csr, 3</title>"), std::string::npos);
}

}  // namespace

}  // namespace poisson::output
