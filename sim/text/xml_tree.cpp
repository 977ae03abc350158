#include "sim/text/xml_tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <pugixml.hpp>

#include "sim/base/error.hpp"

namespace ringsim {

namespace {

constexpr std::size_t most_elements = 1'000'000;
constexpr int deepest = 64;

/// Turns offsets into lines. Elements come in the order of the file, so each line break is counted once.
class Lines {
 public:
  explicit Lines(std::string_view text) : text_(text) {}
  std::size_t at(std::ptrdiff_t offset) {
    const std::size_t end = std::min(text_.size(), static_cast<std::size_t>(std::max<std::ptrdiff_t>(offset, 0)));
    if (end < seen_) seen_ = 0, line_ = 1;
    line_ += static_cast<std::size_t>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(seen_),
                                                 text_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    seen_ = end;
    return line_;
  }

 private:
  std::string_view text_;
  std::size_t seen_ = 0, line_ = 1;
};

struct Reader {
  const std::string& file;
  Lines lines;
  std::size_t n_elements = 0;

  [[noreturn]] void fail(std::size_t line, const std::string& message, const std::string& hint = "") const {
    throw InputError(fmt::format("{}:{}", file, line), message, hint);
  }

  XmlElement read(const pugi::xml_node& node, int depth) {
    XmlElement out;
    out.line = lines.at(node.offset_debug());
    out.name = node.name();
    if (++n_elements > most_elements) fail(out.line, fmt::format("expected at most {} elements", most_elements));
    if (depth > deepest) fail(out.line, fmt::format("expected elements nested at most {} deep", deepest));
    for (const pugi::xml_attribute& attribute : node.attributes()) {
      if (out.find(attribute.name()) != nullptr) {
        fail(out.line,
             fmt::format("expected each attribute once, found \"{}\" again in <{}>", attribute.name(), out.name));
      }
      out.attributes.emplace_back(attribute.name(), attribute.value());
    }
    for (const pugi::xml_node& child : node.children()) {
      if (child.type() == pugi::node_element) {
        out.children.push_back(read(child, depth + 1));
      } else if (child.type() == pugi::node_pcdata || child.type() == pugi::node_cdata) {
        const std::string_view value = child.value();
        const std::size_t blanks = std::min(value.find_first_not_of(" \t\r\n"), value.size());
        fail(lines.at(child.offset_debug() + static_cast<std::ptrdiff_t>(blanks)),
             fmt::format("expected elements within <{}>, found text \"{:.20}\"", out.name, value.substr(blanks)));
      }
    }
    return out;
  }
};

/// Bytes that XML cannot hold would come out of an export as they went in.
void check_characters(std::string_view text, const std::string& file) {
  const auto bad = std::find_if(text.begin(), text.end(),
                                [](unsigned char c) { return c < 0x20 && c != '\t' && c != '\n' && c != '\r'; });
  if (bad != text.end()) {
    throw InputError(fmt::format("{}:{}", file, 1 + std::count(text.begin(), bad, '\n')),
                     fmt::format("expected text, found byte 0x{:02x}", static_cast<unsigned char>(*bad)));
  }
  try {
    static_cast<void>(nlohmann::json(text).dump());
  } catch (const nlohmann::json::type_error&) {
    throw InputError(file, "expected text in UTF-8, found other bytes");
  }
}

}  // namespace

const std::string* XmlElement::find(std::string_view attribute) const {
  const auto found =
      std::find_if(attributes.begin(), attributes.end(), [&](const auto& each) { return each.first == attribute; });
  return found == attributes.end() ? nullptr : &found->second;
}

XmlElement parse_xml(std::string_view text, const std::string& file) {
  const std::size_t first = text.find_first_not_of("\xEF\xBB\xBF \t\r\n");  // a byte order mark may stand first
  if (first != std::string_view::npos && text[first] != '<') {
    throw InputError(file, "expected an XML document, found text that does not begin with \"<\"");
  }
  check_characters(text, file);
  Reader reader{file, Lines(text)};
  pugi::xml_document document;
  const pugi::xml_parse_result result =
      document.load_buffer(text.data(), text.size(), pugi::parse_default, pugi::encoding_utf8);
  if (result.status == pugi::status_no_document_element) {
    throw InputError(file, "expected an XML document, found no element");
  }
  if (!result) reader.fail(reader.lines.at(result.offset), fmt::format("not XML: {}", result.description()));
  const pugi::xml_node root = document.document_element();
  if (const pugi::xml_node second = root.next_sibling(); second) {
    if (second.type() == pugi::node_element) {
      reader.fail(reader.lines.at(second.offset_debug()),
                  fmt::format("expected one root element, found <{}> after it", second.name()));
    }
  }
  return reader.read(root, 1);
}

}  // namespace ringsim
