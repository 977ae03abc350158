// Lines of CSV, as `ringsim run --format csv` writes them.
#pragma once

#include <string>
#include <vector>

namespace ringsim::test {

/// The fields of a line of CSV (RFC 4180, no line breaks within fields).
inline std::vector<std::string> csv_fields(const std::string& line) {
  std::vector<std::string> fields{""};
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"')
      fields.back() += line[i++];
    else if (line[i] == '"')
      quoted = !quoted;
    else if (line[i] == ',' && !quoted)
      fields.emplace_back();
    else
      fields.back() += line[i];
  }
  return fields;
}

}  // namespace ringsim::test
