// Command lines that people copy.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace ringsim::tools {

/// A word as a shell reads it back.
std::string shell_word(const std::string& word);
/// What varies, as --set has it, each without the quotes that it does not need: "collective.bytes=1 MiB".
std::vector<std::string> changes_of(const std::vector<std::pair<std::string, std::string>>& varied);
/// What varies as one text, for readers.
std::string set_text(const std::vector<std::pair<std::string, std::string>>& varied);
/// " --set a=1 --set b=2".
std::string set_words(const std::string& option, const std::vector<std::string>& set);

}  // namespace ringsim::tools
