// Pages of one file that work from disk, without a network.
#pragma once

#include <string>

namespace ringsim::tools {

/// A page with that title (text) and body (HTML). It forbids itself to load anything, has no script, follows the light
/// or dark mode of the browser, and can be printed.
std::string html_page(const std::string& title, const std::string& body);

}  // namespace ringsim::tools
