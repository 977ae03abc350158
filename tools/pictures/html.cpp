#include "tools/pictures/html.hpp"

#include <fmt/format.h>

#include "tools/pictures/picture_style.hpp"
#include "tools/pictures/svg.hpp"

namespace ringsim::tools {

namespace {

constexpr const char* page_style =
    ":root { color-scheme: light dark; --page: #ffffff; --box: #f2f4f6 }\n"
    "body { margin: 0 auto; max-width: 62rem; padding: 1.2rem; font: 16px/1.5 system-ui, 'DejaVu Sans', sans-serif;\n"
    "  color: #1f2328; background: var(--page) }\n"
    "h1 { font-size: 1.25rem; line-height: 1.4; font-weight: 600 }\n"
    "h2 { font-size: 1.05rem; margin-top: 2rem }\n"
    "figure { margin: 1rem 0 }\n"
    "table { border-collapse: separate; border-spacing: 0; font-size: .85rem; font-variant-numeric: tabular-nums }\n"
    "th, td { padding: .25rem .7rem; text-align: right; border-bottom: 1px solid #d8dee4; white-space: nowrap }\n"
    "th { font-weight: 600 }\n"
    "td.text, th.text { text-align: left }\n"
    "pre { padding: .8rem; background: var(--box); font-size: .85rem; white-space: pre-wrap; overflow-wrap: anywhere "
    "}\n"
    "h1, h2, p { overflow-wrap: anywhere }\n"
    // A shadow at each edge with more beyond it: the page's color, which scrolls with the content, covers the shadow.
    ".wide { --under: var(--page); overflow-x: auto; background:\n"
    "  linear-gradient(to right, var(--under) 50%, transparent) left / 2rem 101% no-repeat local,\n"
    "  linear-gradient(to left, var(--under) 50%, transparent) right / 2rem 101% no-repeat local,\n"
    "  linear-gradient(to right, #8c959fb0, transparent) left / .8rem 100% no-repeat scroll,\n"
    "  linear-gradient(to left, #8c959fb0, transparent) right / .8rem 100% no-repeat scroll, var(--under) }\n"
    "pre.wide { --under: var(--box); white-space: pre; overflow-wrap: normal }\n"
    ".wide th:first-child, .wide td:first-child { position: sticky; left: 0; background: var(--page) }\n"
    "@media (max-width: 40rem) {\n"
    ".wide table { width: max-content }\n"
    ".wide th:first-child, .wide td:first-child { max-width: 35vw; white-space: normal; overflow-wrap: break-word }\n"
    "}\n"
    ".choice { display: none }\n"
    ".choice:target { display: block; border: 1px solid #8c959f; border-radius: 4px; padding: 0 1rem }\n"
    ".wide svg.chart { max-width: none }\n"
    ".wide:focus-visible { outline: 2px solid #0072b2 }\n"
    "@media (prefers-color-scheme: dark) {\n"
    ":root { --page: #16191d; --box: #22272e }\n"
    "body { color: #e6edf3 }\n"
    "th, td { border-color: #30363d }\n"
    ".wide:focus-visible { outline-color: #5ab4e5 }\n"
    "}\n"
    "@media print {\n"
    "body { max-width: none; padding: 0; font-size: 11pt }\n"
    ".wide { overflow: visible; background: none }\n"
    ".wide svg.chart { max-width: 100% }\n"
    "th, td { white-space: normal; padding: .15rem .4rem }\n"
    "figure, tr { break-inside: avoid }\n"
    "h2 { break-after: avoid }\n"
    "}\n";

std::string html_wide(const char* tag, const std::string& name, const std::string& body) {
  return fmt::format("<{0} class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{1}\">{2}</{0}>\n", tag,
                     escaped_xml(name), body);
}

}  // namespace

std::string html_section(const std::string& heading, const std::string& body) {
  return fmt::format("<h2>{}</h2>\n{}", heading, body);
}

std::string html_paragraph(const std::string& text) { return fmt::format("<p>{}</p>\n", escaped_xml(text)); }

std::string html_wide_figure(const std::string& name, const std::string& svg) {
  return html_wide("figure", name, '\n' + svg);
}

std::string html_wide_table(const std::string& name, const std::string& table) {
  return html_wide("div", name, '\n' + table);
}

std::string html_wide_text(const std::string& name, const std::string& text) {
  return html_wide("pre", name, escaped_xml(text));
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
