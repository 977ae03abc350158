#include "validate/measured/log_machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace ringsim::measured {

namespace {

/// The text after `key`, up to the first of other characters. Empty if the line does not contain the key.
std::string_view behind(std::string_view line, std::string_view key, std::string_view characters) {
  const std::size_t at = line.find(key);
  if (at == std::string_view::npos) return {};
  line.remove_prefix(at + key.size());
  return line.substr(0, line.find_first_not_of(characters));
}

/// NCCL_VERSION_CODE as text: until 2.8 the minor release counts 100, later the major one 10,000 (NVIDIA/nccl
/// src/nccl.h.in). Empty: no such number.
std::string release_of_code(std::string_view code) {
  int number = 0;
  std::from_chars(code.data(), code.data() + code.size(), number);
  if (number < 2000) return "";
  const int major = number < 10'000 ? number / 1000 : number / 10'000;
  const int rest = number - major * (number < 10'000 ? 1000 : 10'000);
  return fmt::format("{}.{}.{}", major, rest / 100, rest % 100);
}

}  // namespace

void LogMachine::take_release(std::string_view line) {
  // RCCL prints "RCCL version", which is another library's.
  std::string release{behind(line, "NCCL version ", "0123456789.")};
  if (release.empty()) release = release_of_code(behind(line, "nccl-library=", "0123456789"));
  if (!release.empty()) releases_.insert(release);
}

void LogMachine::take_rank(const std::vector<std::string_view>& words) {
  const auto on = std::find(words.begin(), words.end(), "on");
  if (words.end() - on < 4 || on[2] != "device") return;
  hosts_.emplace(on[1]);
  ++listed_;
  auto gpu = std::find_if(on, words.end(), [](std::string_view word) { return word.ends_with(']'); });
  std::string name;
  while (gpu != words.end() && ++gpu != words.end()) name += fmt::format("{}{}", name.empty() ? "" : " ", *gpu);
  if (!name.empty()) gpus_.insert(name);
}

void LogMachine::end_run(int ranks) {
  if (!hosts_.empty()) nodes_.insert(listed_ == ranks ? fmt::to_string(hosts_.size()) : "");
  hosts_.clear();
  listed_ = 0;
}

void LogMachine::tell(std::map<std::string, std::string>& about) const {
  const auto say = [&](const char* key, const std::set<std::string>& values, const char* before) {
    if (values.size() == 1 && !values.begin()->empty()) about.try_emplace(key, before + *values.begin());
  };
  say("library", releases_, "NCCL ");
  say("gpu", gpus_, "");
  say("nodes", nodes_, "");
}

}  // namespace ringsim::measured
