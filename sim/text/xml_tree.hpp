// An XML document as plain values with line numbers.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ringsim {

struct XmlElement {
  std::string name;
  std::vector<std::pair<std::string, std::string>> attributes;  ///< in the file's order, each name once
  std::vector<XmlElement> children;
  std::size_t line = 0;  ///< from 1

  /// The attribute's text; nullptr if it has none.
  const std::string* find(std::string_view attribute) const;
};

/// Reads a document of elements and attributes and returns its root. Comments and processing instructions are skipped.
/// `file` stands for it in errors. Throws InputError at FILE:LINE if the text is not well-formed XML in UTF-8, an
/// attribute appears twice, there is text between elements, elements nest deeper than 64, or there are more than
/// 100,000.
XmlElement parse_xml(std::string_view text, const std::string& file);

}  // namespace ringsim
