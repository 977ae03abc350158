#include "tools/pictures/html.hpp"

#include <fmt/format.h>

#include "tools/pictures/picture_style.hpp"
#include "tools/pictures/svg.hpp"

namespace ringsim::tools {

namespace {

constexpr const char* page_style =
    ":root { color-scheme: light dark }\n"
    "body { margin: 0 auto; max-width: 62rem; padding: 1.2rem; font: 16px/1.5 system-ui, 'DejaVu Sans', sans-serif;\n"
    "  color: #1f2328; background: #ffffff }\n"
    "h1 { font-size: 1.25rem; line-height: 1.4; font-weight: 600 }\n"
    "h2 { font-size: 1.05rem; margin-top: 2rem }\n"
    "figure { margin: 1rem 0 }\n"
    "table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums }\n"
    "th, td { padding: .25rem .7rem; text-align: right; border-bottom: 1px solid #d8dee4; white-space: nowrap }\n"
    "th { font-weight: 600 }\n"
    "td.text, th.text { text-align: left }\n"
    "pre { padding: .8rem; background: #f2f4f6; font-size: .85rem; white-space: pre-wrap; overflow-wrap: anywhere }\n"
    "h1, h2, p { overflow-wrap: anywhere }\n"
    ".wide { overflow-x: auto }\n"
    ".choice { display: none }\n"
    ".choice:target { display: block; border: 1px solid #8c959f; border-radius: 4px; padding: 0 1rem }\n"
    ".wide svg.chart { max-width: none }\n"
    ".wide:focus-visible { outline: 2px solid #0072b2 }\n"
    "@media (prefers-color-scheme: dark) {\n"
    "body { color: #e6edf3; background: #16191d }\n"
    "th, td { border-color: #30363d }\n"
    "pre { background: #22272e }\n"
    ".wide:focus-visible { outline-color: #5ab4e5 }\n"
    "}\n"
    "@media print {\n"
    "body { max-width: none; padding: 0; font-size: 11pt }\n"
    ".wide { overflow: visible }\n"
    ".wide svg.chart { max-width: 100% }\n"
    "th, td { white-space: normal; padding: .15rem .4rem }\n"
    "figure, tr { break-inside: avoid }\n"
    "h2 { break-after: avoid }\n"
    "}\n";

}  // namespace

std::string html_section(const std::string& heading, const std::string& body) {
  return fmt::format("<h2>{}</h2>\n{}", heading, body);
}

std::string html_paragraph(const std::string& text) { return fmt::format("<p>{}</p>\n", escaped_xml(text)); }

std::string html_wide_figure(const std::string& name, const std::string& svg) {
  return fmt::format("<figure class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">\n{}</figure>\n",
                     escaped_xml(name), svg);
}

std::string html_choice(const std::string& anchor, const std::string& body) {
  return fmt::format("<section class=\"choice\" id=\"{}\">\n{}</section>\n", anchor, body);
}

std::string html_page(const std::string& title, const std::string& body) {
  return fmt::format(
      "<!doctype html>\n"
      "<html lang=\"en\">\n"
      "<head>\n"
      "<meta charset=\"utf-8\">\n"
      "<meta name=\"generator\" content=\"ringsim\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{}</title>\n"
      "<style>\n{}{}{}</style>\n"
      "</head>\n"
      "<body>\n{}</body>\n"
      "</html>\n",
      escaped_xml(title.empty() ? "ringsim" : title), page_style, svg_style(), picture_style(), body);
}

}  // namespace ringsim::tools
