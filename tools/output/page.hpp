// Tables under headings, for terminals and for pages.
#pragma once

#include <string>
#include <vector>

#include "sim/text/table.hpp"

namespace ringsim::tools {

/// A table under a heading, at a terminal or in a page.
class Page {
 public:
  explicit Page(bool markdown) : markdown_(markdown) {}

  void heading(const std::string& text) { text_ += markdown_ ? "\n## " + text + "\n\n" : "\n" + text + "\n\n"; }
  void lines(const std::string& text) { text_ += text + '\n'; }
  void table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows) {
    if (!markdown_) {
      Table table(head);
      for (const std::vector<std::string>& row : rows) table.add(row);
      text_ += table.fitted();
      return;
    }
    text_ += line_of(head) + line_of(std::vector<std::string>(head.size(), "---"));
    for (const std::vector<std::string>& row : rows) text_ += line_of(row);
  }
  const std::string& text() const { return text_; }

 private:
  static std::string line_of(const std::vector<std::string>& cells) {
    std::string line = "|";
    for (const std::string& cell : cells) line += ' ' + cell + " |";
    return line + '\n';
  }

  bool markdown_;
  std::string text_;
};

}  // namespace ringsim::tools
