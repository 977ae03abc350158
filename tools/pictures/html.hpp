// Pages of one file that work from disk, without a network.
#pragma once

#include <string>

namespace ringsim::tools {

/// A page with that title (text) and body (HTML). It forbids itself to load anything, has no script, follows the light
/// or dark mode of the browser, and can be printed.
std::string html_page(const std::string& title, const std::string& body);

/// Parts of a body: a heading with what follows it (HTML), and text.
std::string html_section(const std::string& heading, const std::string& body);
std::string html_paragraph(const std::string& text);
/// A part that is seen only when a link to `#anchor` was followed.
std::string html_choice(const std::string& anchor, const std::string& body);
/// A picture, a table (HTML) or a text in columns that scrolls if it is wider than the page. `name`: for screen
/// readers.
std::string html_wide_figure(const std::string& name, const std::string& svg);
std::string html_wide_table(const std::string& name, const std::string& table);
std::string html_wide_text(const std::string& name, const std::string& text);

}  // namespace ringsim::tools
