// What the ending of an output file promises: it is kept, or refused.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ringsim::tools {

/// The ending of a file's name in small letters, ".csv"; empty if it has none, or if the path is no plain file.
std::string ending_of(const std::string& path);

/// Which endings a command writes as they say.
enum class OtherEndings {
  text,     ///< others stand for its text, such as FILE.txt or FILE, but for those that promise a known format
  refused,  ///< no others
};

/// Throws UsageError for -o PATH if its ending promises what the command does not write: a picture, a spreadsheet,
/// JSON. The hint says how to get that. `written`: the endings that the command writes.
void expect_ending(const std::string& path, const std::vector<std::string>& written,
                   OtherEndings others = OtherEndings::text);

/// Throws UsageError: --to says another format than the ending of the file.
[[noreturn]] void fail_other_format(const std::string& path, const std::string& ending);

/// Throws UsageError: neither --to nor an ending says in which format to export.
[[noreturn]] void fail_no_format(const std::string& words, std::vector<std::string> endings);

/// The format in which PATH is written: the `said` one, else that of the ending, else `otherwise`. `written`: the
/// formats by their endings; an ending may have several, of which the first is meant if none is said. Throws UsageError
/// for an ending that promises what the command does not write.
template <class Format>
Format format_by_ending(const std::string& path, const std::optional<Format>& said, Format otherwise,
                        const std::vector<std::pair<std::string, Format>>& written) {
  const std::string ending = ending_of(path);
  std::vector<std::string> endings;
  std::optional<Format> first;
  for (const auto& [each, format] : written) {
    if (std::find(endings.begin(), endings.end(), each) == endings.end()) endings.push_back(each);
    if (each == ending && !first) first = format;
  }
  expect_ending(path, endings);
  return said ? *said : first.value_or(otherwise);
}

/// As format_by_ending(), for --to, which names the format of another program: it also refuses a contradicting ending.
template <class Format>
Format format_to(const std::string& path, const std::optional<Format>& said, Format otherwise,
                 const std::vector<std::pair<std::string, Format>>& written) {
  const std::string ending = ending_of(path);
  bool known = false, agrees = false;
  for (const auto& [each, format] : written) {
    known = known || each == ending;
    agrees = agrees || (each == ending && said == format);
  }
  if (said && known && !agrees) fail_other_format(path, ending);
  return format_by_ending(path, said, otherwise, written);
}

/// As format_to(), if one of --to and an ending is needed. `words`: what --to takes.
template <class Format>
Format export_format(const std::string& path, const std::optional<Format>& said,
                     const std::vector<std::pair<std::string, Format>>& written, const std::string& words) {
  std::vector<std::string> endings;
  for (const auto& [each, format] : written) endings.push_back(each);
  const bool known = std::find(endings.begin(), endings.end(), ending_of(path)) != endings.end();
  if (!said && !known) fail_no_format(words, std::move(endings));
  return format_to(path, said, written.front().second, written);
}

}  // namespace ringsim::tools
