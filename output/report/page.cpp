#include "output/report/page.hpp"

#include "output/picture/colormap.hpp"
#include "output/report/explore.hpp"
#include "output/vtk/base64.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <iterator>

namespace poisson::output {

namespace {

constexpr std::size_t most_in_legend = 12, most_rows_in_full = 40;

constexpr char const* page_style = R"css(
:root{color-scheme:light dark;--text:#1d2330;--soft:#5b6475;--line:#dfe3ea;--panel:#f6f7f9;--back:#fff;--accent:#0b62a8;--good:#1b7a43;--bad:#b3420a}
@media(prefers-color-scheme:dark){:root{--text:#e6e9ef;--soft:#9aa4b5;--line:#343c4a;--panel:#1d232d;--back:#14181f;--accent:#6db3f2;--good:#5fc98b;--bad:#f2a268}}
*{box-sizing:border-box}
body{margin:0;background:var(--back);color:var(--text);font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
main{max-width:1120px;margin:0 auto;padding:24px 20px 64px}
header{display:flex;flex-wrap:wrap;gap:4px 16px;align-items:baseline;border-bottom:1px solid var(--line);padding-bottom:14px}
h1{font-size:1.7rem;line-height:1.2;margin:0;overflow-wrap:anywhere}
h2{font-size:1.15rem;margin:36px 0 10px}
.sub{color:var(--soft);flex-basis:100%;overflow-wrap:anywhere}
.state{font-weight:600;padding:1px 12px;border:1.5px solid;border-radius:999px}
.good{color:var(--good)}.bad{color:var(--bad)}
p{margin:8px 0;max-width:75ch;overflow-wrap:anywhere}
.warning{border-left:4px solid var(--bad);background:var(--panel);padding:8px 14px}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(135px,1fr));gap:10px;margin:18px 0 0;padding:0}
.figures div{background:var(--panel);border-radius:8px;padding:10px 14px}
.figures dt{color:var(--soft);font-size:.82rem}.figures dd{margin:0;font-size:1.25rem;font-weight:600;overflow-wrap:anywhere}
.wide{overflow-x:auto;max-width:100%}
.long{max-height:75vh;overflow:auto}.long thead th{position:sticky;top:0;background:var(--back)}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.93rem}
th,td{padding:5px 14px 5px 0;text-align:left;border-bottom:1px solid var(--line);vertical-align:top}
td.n,th.n{text-align:right;white-space:nowrap}
.facts th{font-weight:500;color:var(--soft);white-space:nowrap;padding-right:22px}.facts td{overflow-wrap:anywhere}
thead th{font-weight:600;white-space:nowrap}
th button{all:unset;cursor:pointer;font-weight:600}th button:focus-visible{outline:2px solid var(--accent)}
th[aria-sort=ascending] button::after{content:" \25B2"}th[aria-sort=descending] button::after{content:" \25BC"}
a{color:var(--accent)}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,400px),1fr));gap:22px 30px}
figure{margin:0;min-width:0}figcaption{font-weight:600;font-size:.95rem;margin:0 0 4px}
svg{width:100%;height:auto;display:block;font-size:12px;max-width:620px}
svg text{fill:var(--text)}svg .small{font-size:11px;fill:var(--soft)}
svg .curve{stroke-width:2;stroke-linejoin:round;fill:none}svg .dots{stroke-width:7;stroke-linecap:round;fill:none}svg .grid{stroke:var(--line)}svg .axis{stroke:var(--soft)}svg .reference{stroke:var(--soft);stroke-dasharray:5 4}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:2px 16px;margin:2px 0 0;padding:0;font-size:.85rem;color:var(--soft)}
.legend i{display:inline-block;width:14px;height:3px;vertical-align:middle;margin-right:6px}
.picture img{max-width:100%;height:auto;border:1px solid var(--line);border-radius:6px;background:#fff}
.picture figcaption{font-weight:400;color:var(--soft);margin:4px 0 0;overflow-wrap:anywhere}
.pictures{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,480px),1fr));gap:22px 24px;align-items:start}
.bars{display:grid;grid-template-columns:max-content minmax(60px,1fr) max-content;gap:4px 12px;align-items:center;max-width:640px;font-size:.93rem}
.bars span{font-variant-numeric:tabular-nums;text-align:right}
.bars b{display:block;height:13px;min-width:1px;background:var(--accent);border-radius:2px}
pre{background:var(--panel);border-radius:8px;padding:12px 16px;overflow-x:auto;font:13px/1.45 ui-monospace,"DejaVu Sans Mono",Menlo,monospace}
summary{cursor:pointer;color:var(--accent)}
.files{display:flex;flex-wrap:wrap;gap:4px 18px;list-style:none;padding:0;margin:8px 0}
@media(max-width:480px){main{padding:16px 14px 48px}h1{font-size:1.35rem}.facts th{white-space:normal;padding-right:12px}}
@media print{.long{max-height:none}details{display:block}.plots{grid-template-columns:1fr 1fr}figure,tr{break-inside:avoid}}
)css";

/// Sorts a table by a column: numbers by their values, cells without one last.
constexpr char const* page_script = R"js(
const valueOf=cell=>"v" in cell.dataset?Number(cell.dataset.v):cell.className==="n"&&cell.textContent?Number(cell.textContent):NaN;
for(const table of document.querySelectorAll("table.sortable"))
table.querySelectorAll("th").forEach((head,column)=>head.querySelector("button").addEventListener("click",()=>{
const up=head.getAttribute("aria-sort")!=="ascending",body=table.tBodies[0],rows=[...body.rows];
const key=row=>{const cell=row.cells[column],v=valueOf(cell);return Number.isNaN(v)?cell.textContent:v};
rows.sort((a,b)=>{const p=key(a),q=key(b);if(typeof p!==typeof q)return typeof p==="number"?-1:1;
return (up?1:-1)*(typeof p==="number"?p-q:p.localeCompare(q))});
table.querySelectorAll("th").forEach(h=>h.removeAttribute("aria-sort"));
head.setAttribute("aria-sort",up?"ascending":"descending");body.append(...rows)}));
)js";

std::string number_for_sorting(double value) {
  char buffer[40];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::general, 10).ptr};
}

/// Whether the text of a cell is its value, as good as it is shown. Long tables are large.
bool tells_value(PageCell const& cell) {
  double shown = 0;
  auto const [end, error] = std::from_chars(cell.text.data(), cell.text.data() + cell.text.size(), shown);
  return error == std::errc() && end == cell.text.data() + cell.text.size() && cell.value &&
         std::abs(shown - *cell.value) <= 6e-6 * std::abs(*cell.value);
}

/// A relative reference to a file: what is not plain is written as %XX.
std::string reference_to(std::string_view path) {
  std::string text;
  for (char const c : path) {
    bool const plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '/' || c == '.' ||
                       c == '_' || c == '-' || c == '~';
    if (plain) {
      text += c;
    } else {
      constexpr char const* digits = "0123456789ABCDEF";
      auto const byte = static_cast<unsigned char>(c);
      text += {'%', digits[byte / 16], digits[byte % 16]};
    }
  }
  return text;
}

std::string link_to(std::string_view path, std::string_view text) {
  return "<a href=\"" + reference_to(path) + "\">" + html_text(text) + "</a>";
}

}  // namespace

std::string html_text(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (char const c : text)
    switch (c) {
    case '&':
      result += "&amp;";
      break;
    case '<':
      result += "&lt;";
      break;
    case '>':
      result += "&gt;";
      break;
    case '"':
      result += "&quot;";
      break;
    case '\'':
      result += "&#39;";
      break;
    default:
      result += c;
    }
  return result;
}

Page::Page(std::string_view title, std::string_view subtitle, std::string_view state, bool good) : title_(title) {
  body_ = "<header><h1>" + html_text(title) + "</h1>";
  if (!state.empty())
    body_ += std::string("<span class=\"state ") + (good ? "good" : "bad") + "\">" + html_text(state) + "</span>";
  body_ += "<span class=\"sub\">" + html_text(subtitle) + "</span></header>\n";
}

void Page::heading(std::string_view text) {
  body_ += "<h2>" + html_text(text) + "</h2>\n";
}

void Page::paragraph(std::string_view text) {
  body_ += "<p>" + html_text(text) + "</p>\n";
}

void Page::warning(std::string_view text) {
  body_ += "<p class=\"warning\">" + html_text(text) + "</p>\n";
}

void Page::figures(std::vector<std::pair<std::string, std::string>> const& labels_and_values) {
  body_ += "<dl class=\"figures\">";
  for (auto const& [label, value] : labels_and_values)
    body_ += "<div><dt>" + html_text(label) + "</dt><dd>" + html_text(value) + "</dd></div>";
  body_ += "</dl>\n";
}

void Page::facts(std::vector<std::pair<std::string, std::string>> const& rows) {
  body_ += "<div class=\"wide\"><table class=\"facts\"><tbody>";
  for (auto const& [label, value] : rows)
    body_ += "<tr><th scope=\"row\">" + html_text(label) + "</th><td>" + html_text(value) + "</td></tr>\n";
  body_ += "</tbody></table></div>\n";
}

void Page::table(PageTable const& table) {
  // A column of numbers alone is aligned to the right.
  std::vector<bool> of_numbers(table.head.size(), true);
  for (std::size_t column = 0; column < of_numbers.size(); ++column) {
    bool any = false;
    for (auto const& row : table.rows)
      if (column < row.size() && !row[column].text.empty() && row[column].text != "-") {
        any = true;
        of_numbers[column] = of_numbers[column] && row[column].value.has_value();
      }
    of_numbers[column] = of_numbers[column] && any;
  }
  auto const style = [&](std::size_t column) { return column < of_numbers.size() && of_numbers[column] ? " class=\"n\"" : ""; };
  body_ += std::string("<div class=\"wide") + (table.rows.size() > most_rows_in_full ? " long" : "") + "\"><table" +
           (table.sortable ? " class=\"sortable\"" : "") + "><thead><tr>";
  for (std::size_t column = 0; column < table.head.size(); ++column) {
    std::string const text = html_text(table.head[column]);
    body_ += std::string("<th scope=\"col\"") + style(column) + ">" +
             (table.sortable ? "<button type=\"button\">" + text + "</button>" : text) + "</th>";
  }
  body_ += "</tr></thead><tbody>\n";
  for (auto const& row : table.rows) {
    body_ += "<tr>";
    for (std::size_t column = 0; column < row.size(); ++column) {
      PageCell const& cell = row[column];
      body_ += std::string("<td") + style(column);
      if (cell.value && std::isfinite(*cell.value) && !(of_numbers[column] && tells_value(cell)))
        body_ += " data-v=\"" + number_for_sorting(*cell.value) + "\"";
      body_ += ">" + (cell.link.empty() ? html_text(cell.text) : link_to(cell.link, cell.text)) + "</td>";
    }
    body_ += "</tr>\n";
  }
  body_ += "</tbody></table></div>\n";
}

void Page::explore(std::size_t keys, std::vector<std::size_t> const& shown) {
  std::string columns;
  for (std::size_t const column : shown)
    columns += (columns.empty() ? "" : ",") + std::to_string(column);
  body_ += "<div class=\"explore\" data-keys=\"" + std::to_string(keys) + "\" data-shown=\"" + columns + "\"></div>\n";
  explored_ = true;
}

void Page::bars(std::vector<PageBar> const& bars) {
  double largest = 0;
  for (PageBar const& bar : bars)
    largest = std::max(largest, bar.value);
  body_ += "<div class=\"bars\">";
  for (PageBar const& bar : bars) {
    double const share = largest > 0 ? std::round(1000 * bar.value / largest) / 10 : 0;
    body_ += "<div>" + html_text(bar.label) + "</div><div><b style=\"width:" + number_for_sorting(share) + "%\"></b></div><span>" +
             html_text(bar.text) + "</span>\n";
  }
  body_ += "</div>\n";
}

void Page::plots(std::vector<PagePlot> const& plots) {
  body_ += "<div class=\"plots\">";
  for (PagePlot const& plot : plots) {
    std::string const svg = svg_plot(plot);
    if (svg.empty())
      continue;
    body_ += "<figure><figcaption>" + html_text(plot.title) + "</figcaption>" + svg;
    if (std::any_of(plot.curves.begin(), plot.curves.end(), [](Curve const& c) { return !c.label.empty(); })) {
      body_ += "<ul class=\"legend\">";
      std::size_t const shown = std::min(plot.curves.size(), most_in_legend);
      for (std::size_t i = 0; i < shown; ++i)
        body_ += "<li><i style=\"background:" + html_color(curve_color(i)) + "\"></i>" + html_text(plot.curves[i].label) + "</li>";
      if (shown < plot.curves.size())
        body_ += "<li>and " + std::to_string(plot.curves.size() - shown) + " more</li>";
      body_ += "</ul>";
    }
    body_ += "</figure>\n";
  }
  body_ += "</div>\n";
}

void Page::pictures(std::vector<PagePicture> const& pictures) {
  std::string figures;
  int n = 0;
  for (PagePicture const& picture : pictures) {
    std::ifstream in(picture.png, std::ios::binary);
    std::string const bytes{std::istreambuf_iterator<char>(in), {}};
    if (bytes.empty())
      continue;
    std::string encoded(base64_size(bytes.size()), '=');
    encode_base64(reinterpret_cast<unsigned char const*>(bytes.data()), bytes.size(), encoded.data());
    std::string const caption = html_text(picture.caption);
    figures += "<figure class=\"picture\"><img alt=\"" + caption + "\" src=\"data:image/png;base64," + encoded + "\"><figcaption>" +
               caption + "</figcaption></figure>\n";
    ++n;
  }
  if (n > 0)
    body_ += std::string("<div class=\"") + (n > 1 ? "pictures" : "one") + "\">\n" + figures + "</div>\n";
}

void Page::listing(std::string_view summary, std::string_view text) {
  body_ += "<details><summary>" + html_text(summary) + "</summary><pre>" + html_text(text) + "</pre></details>\n";
}

void Page::links(std::vector<std::string> const& files) {
  body_ += "<ul class=\"files\">";
  for (std::string const& file : files)
    body_ += "<li>" + link_to(file, file) + "</li>";
  body_ += "</ul>\n";
}

std::string Page::html() const {
  std::string style = page_style, script = page_script;
  if (explored_) {
    style += explore_style();
    script += explore_script();
  }
  return "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
         "content=\"width=device-width,initial-scale=1\"><title>" +
         html_text(title_) + "</title><style>" + style + "</style></head><body><main>\n" + body_ + "</main><script>" + script +
         "</script></body></html>\n";
}

}  // namespace poisson::output
