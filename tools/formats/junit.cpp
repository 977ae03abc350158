#include "tools/formats/junit.hpp"

#include <pugixml.hpp>
#include <sstream>

namespace ringsim::tools {

namespace {

/// XML cannot represent most control characters; a name with one must not make the file unreadable.
std::string printable(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') c = '?';
  return text;
}

pugi::xml_node add_case(pugi::xml_node suite, const std::string& class_name, const std::string& name) {
  pugi::xml_node test = suite.append_child("testcase");
  test.append_attribute("classname") = class_name.c_str();
  test.append_attribute("name") = printable(name).c_str();
  return test;
}

void add_verdict(pugi::xml_node test, const char* kind, const std::string& message) {
  pugi::xml_node verdict = test.append_child(kind);
  const std::string text = printable(message);
  verdict.append_attribute("message") = text.substr(0, text.find('\n')).c_str();
  verdict.text() = text.c_str();
}

}  // namespace

std::string junit(const std::string& scenario_name, const GateReport& report) {
  pugi::xml_document document;
  pugi::xml_node declaration = document.append_child(pugi::node_declaration);
  declaration.append_attribute("version") = "1.0";
  declaration.append_attribute("encoding") = "UTF-8";
  pugi::xml_node suites = document.append_child("testsuites");
  pugi::xml_node suite = suites.append_child("testsuite");
  const std::string name = printable(scenario_name);
  std::size_t n_failed = report.general.size();
  for (const GateReport::Point& point : report.points) {
    pugi::xml_node test = add_case(suite, name, point.label);
    if (!point.error.empty()) add_verdict(test, "error", point.error);
    std::string failures;  // one element: most readers show but the first
    for (const std::string& failure : point.failures) failures += (failures.empty() ? "" : "\n") + failure;
    if (!failures.empty() && point.error.empty()) add_verdict(test, "failure", failures);
    if (!failures.empty() && point.error.empty()) ++n_failed;
  }
  for (const std::string& failure : report.general)
    add_verdict(add_case(suite, name, failure.substr(0, failure.find(": "))), "failure", failure);
  suite.append_attribute("name") = name.c_str();
  suite.append_attribute("tests") = report.points.size() + report.general.size();
  suite.append_attribute("failures") = n_failed;
  suite.append_attribute("errors") = report.failed_points;
  suite.append_attribute("skipped") = 0;
  std::ostringstream text;
  document.save(text, "  ", pugi::format_default, pugi::encoding_utf8);
  return text.str();
}

}  // namespace ringsim::tools
