#include "tests/support/message_page.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/files.hpp"
#include "tests/support/paths.hpp"

namespace ringsim::test {

namespace {

/// The entries of a page, each with its heading.
std::vector<std::string> entries(const std::string& page) {
  std::vector<std::string> found;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("== ") || found.empty()) found.emplace_back();
    found.back() += line + '\n';
  }
  return found;
}

}  // namespace

void MessagePage::add(const std::string& what, const std::string& message) {
  std::string heading;
  for (const char c : what) heading += c == '\n' ? "\\n" : std::string(1, c);
  CAPTURE(heading);
  CHECK(!message.empty());
  text_ += "== " + heading + '\n' + message + (message.ends_with('\n') ? "" : "\n");
}

void MessagePage::check() const {
  const std::string path = source_dir() + "/tests/data/messages/" + name_ + ".txt";
  if (std::getenv("RINGSIM_ACCEPT_MESSAGES") != nullptr) std::ofstream(path, std::ios::binary) << text_;
  INFO("RINGSIM_ACCEPT_MESSAGES=1 writes ", path);
  const std::vector<std::string> kept = entries(read_file(path)), found = entries(text_);
  for (std::size_t i = 0; i < std::min(kept.size(), found.size()); ++i) CHECK(found[i] == kept[i]);
  CHECK(found.size() == kept.size());
}

}  // namespace ringsim::test
