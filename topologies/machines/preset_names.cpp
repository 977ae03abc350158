#include "topologies/machines/preset_names.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

#include "sim/base/ascii.hpp"
#include "sim/text/json_place.hpp"
#include "sim/text/spelling.hpp"
#include "topologies/machines/machine.hpp"

namespace ringsim {

namespace {

bool has_digit(std::string_view word) { return std::any_of(word.begin(), word.end(), is_digit); }

std::vector<std::string> texts(const Place& root, const char* key) {
  std::vector<std::string> out;
  if (!root.has(key)) return out;
  for (const Place& each : root.at(key).items()) out.push_back(each.text());
  return out;
}

PresetNames names_of(const PresetFile& file) {
  const Json json = parse_json(file.text, std::string(file.name) + ".json");
  const Place root{json, std::string(file.name) + ".json", ""};
  PresetNames names{.name = root.at("name").text(),
                    .summary = root.at("summary").text(),
                    .gpu = root.at("gpu").text(),
                    .also = texts(root, "also"),
                    .taken_for = texts(root, "taken_for"),
                    .near = {},
                    .memories = {}};
  if (root.has("near"))
    for (const Place& each : root.at("near").items())
      names.near.push_back({each.at("name").text(), each.at("differs").text()});
  if (root.has("memories"))
    for (const Place& each : root.at("memories").items())
      names.memories.push_back({texts(each, "names"), parse_bytes(each.at("value").text()), each.at("source").text()});
  return names;
}

/// The letters and digits of a name, cut at everything else.
std::vector<std::string> words_of(const std::string& plain) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : plain + '-') {
    if (is_letter(c) || is_digit(c)) {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, ""));
    }
  }
  return words;
}

/// The place of a GPU's name in a plain name.
struct GpuPlace {
  std::size_t begin = 0, end = 0;
  std::string gpu;  ///< as in PresetNames
};

/// The end of `gpu`, letters and digits, if it begins at `at`, else npos. "-" between its characters does not count.
std::size_t end_of_gpu(std::string_view plain, std::size_t at, std::string_view gpu) {
  const std::size_t begin = at;
  for (const char c : gpu) {
    if (at > begin && at < plain.size() && plain[at] == '-') ++at;
    if (at >= plain.size() || plain[at] != c) return std::string::npos;
    ++at;
  }
  // "h20" is not in h200, and "mi300x" not in mi300xl: another kind of character follows.
  const bool goes_on = at < plain.size() && (is_digit(gpu.back()) ? is_digit(plain[at]) : is_letter(plain[at]));
  return goes_on ? std::string::npos : at;
}

/// The GPUs of presets that a name contains: "gb200" alone in gb200-nvl72, not the b200 within.
std::vector<GpuPlace> gpus_in(const std::string& plain) {
  std::vector<GpuPlace> found;
  for (const PresetNames& preset : preset_names()) {
    std::string gpu;
    for (const std::string& word : words_of(plain_machine_name(preset.gpu))) gpu += word;
    for (std::size_t at = 0; at < plain.size(); ++at)
      if (const std::size_t end = end_of_gpu(plain, at, gpu); end != std::string::npos)
        found.push_back({at, end, preset.gpu});
  }
  const auto within = [](const GpuPlace& inner, const GpuPlace& outer) {
    return outer.begin <= inner.begin && inner.end <= outer.end && outer.end - outer.begin > inner.end - inner.begin;
  };
  std::vector<GpuPlace> widest;
  for (const GpuPlace& each : found)
    if (std::none_of(found.begin(), found.end(), [&](const GpuPlace& other) { return within(each, other); }))
      widest.push_back(each);
  return widest;
}

/// The words by which a preset is found: those of its names, and of its summary those with letters.
struct PresetWords {
  std::vector<std::string> names, summary;
};

PresetWords words_of(const PresetNames& preset) {
  PresetWords words{words_of(preset.name), {}};
  for (const auto* names : {&preset.also, &preset.taken_for})
    for (const std::string& name : *names)
      for (std::string& word : words_of(plain_machine_name(name))) words.names.push_back(std::move(word));
  for (std::string& word : words_of(plain_machine_name(preset.summary)))
    if (std::any_of(word.begin(), word.end(), is_letter)) words.summary.push_back(std::move(word));
  return words;
}

/// "24xlarge": a size that clouds give machines of every generation.
bool is_size(const std::string& word) { return word.ends_with("xlarge"); }

/// True if a word begins another, and says as much: "48" of "48xlarge". Not "h10" of "h100", and "l40" is no L40S.
bool begins(const std::string& word, const std::string& other) {
  if (word.size() < 2 || !other.starts_with(word) || other == word) return false;
  const bool ends_in_number = is_digit(word.back()) && is_digit(word[word.size() - 2]);
  const bool names_model = ends_in_number && is_letter(word.front());
  return !(is_digit(word.back()) && is_digit(other[word.size()])) && !names_model;
}

/// How well a word of a name fits a preset: 3 one of its names has it, 2 its summary, 1 a name has it misspelt or
/// longer.
int fit(const std::string& word, const PresetWords& preset) {
  const auto has_it = [&](const std::vector<std::string>& words) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  if (has_it(preset.names)) return 3;
  if (has_it(preset.summary)) return 2;
  const bool nearly = std::any_of(preset.names.begin(), preset.names.end(), [&](const std::string& other) {
    // "p4dn" is near to p4d. Of two letters one says the family: a t4 is no v4.
    const bool comparable = !has_digit(word) || (word.size() > 2 && word.front() == other.front());
    return begins(word, other) || (comparable && !nearest(word, {other}, Numbers::exact).empty());
  });
  return nearly ? 1 : 0;
}

/// The presets that fit the words best; none if a word that tells machines apart fits none.
std::vector<const PresetNames*> fitting(const std::vector<std::string>& words, const std::vector<std::string>& gpus) {
  const bool numbered =
      std::any_of(words.begin(), words.end(), [](const auto& word) { return has_digit(word) && !is_size(word); });
  std::vector<const PresetNames*> best;
  int most = 0;
  for (const PresetNames& preset : preset_names()) {
    if (!gpus.empty() && std::find(gpus.begin(), gpus.end(), preset.gpu) == gpus.end()) continue;
    const PresetWords of_preset = words_of(preset);
    int sum = gpus.empty() ? 0 : 1;
    bool fits = true;
    for (const std::string& word : words) {
      const int one = fit(word, of_preset);
      sum += is_size(word) ? 0 : one;
      // With a GPU the other words only rank; else all that have digits must fit, or if there is none all.
      if (gpus.empty() && one == 0 && !is_size(word) && (has_digit(word) || !numbered)) fits = false;
    }
    if (!fits || sum < most || sum == 0) continue;
    if (sum > most) best.clear();
    most = sum;
    best.push_back(&preset);
  }
  return best;
}

std::string listed(const std::vector<const PresetNames*>& presets) {
  constexpr std::size_t most = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(most, presets.size()); ++i) text += (i == 0 ? "" : ", ") + presets[i]->name;
  if (presets.size() > most) text += " and " + std::to_string(presets.size() - most) + " more";
  return text;
}

std::string difference(const PresetNames& preset, const PresetNames::Near& near) {
  return near.name + " is not a preset; the nearest is " + preset.name + ", with these differences: " + near.differs;
}

/// The answer to a name that differs from a known one in its hyphens alone; else empty.
std::string joined_otherwise(const std::string& plain) {
  for (const PresetNames& preset : preset_names())
    for (const auto& names : {std::vector{preset.name}, preset.also, preset.taken_for})
      for (const std::string& name : names)
        if (same_letters(plain, name)) return "did you mean \"" + preset.name + "\"?";
  return "";
}

/// The answer to a name that is spelled nearly as one that is known, with the same numbers; else empty.
std::string spelled_alike(const std::string& plain) {
  std::vector<std::string> known, answers;
  const auto add = [&](const std::string& name, std::string answer) {
    known.push_back(plain_machine_name(name));
    answers.push_back(std::move(answer));
  };
  for (const PresetNames& preset : preset_names()) {
    for (const auto& names : {std::vector{preset.name}, preset.also, preset.taken_for})
      for (const std::string& name : names) add(name, "did you mean \"" + preset.name + "\"?");
    for (const PresetNames::Near& near : preset.near) add(near.name, difference(preset, near));
  }
  const auto found = std::find(known.begin(), known.end(), nearest(plain, known, Numbers::exact));
  // A beginning such as "dgx" has several ends.
  if (found != known.end() && found->starts_with(plain) && has_digit(found->substr(plain.size()))) return "";
  return found == known.end() ? "" : answers[static_cast<std::size_t>(found - known.begin())];
}

bool has(const std::vector<std::string>& names, const std::string& plain) {
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return plain_machine_name(name) == plain; });
}

}  // namespace

const std::vector<PresetNames>& preset_names() {
  static const std::vector<PresetNames> all = [] {
    std::vector<PresetNames> names;
    for (const PresetFile& file : preset_files()) names.push_back(names_of(file));
    return names;
  }();
  return all;
}

std::string plain_machine_name(std::string_view name) {
  std::string plain;
  for (const char c : name)
    plain += c == '_' || c == ' ' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return plain;
}

const PresetNames* preset_named(std::string_view text) {
  const std::string plain = plain_machine_name(text);
  for (const PresetNames& preset : preset_names())
    if (preset.name == plain || has(preset.also, plain) || has(preset.taken_for, plain)) return &preset;
  return nullptr;
}

const PresetNames::Memory* PresetNames::memory_of(std::string_view text) const {
  const std::string plain = plain_machine_name(text);
  for (const Memory& memory : memories)
    if (has(memory.names, plain)) return &memory;
  return nullptr;
}

std::string PresetNames::choice_of(std::string_view text) const {
  const Memory* memory = memory_of(text);
  return memory == nullptr ? name : plain_machine_name(memory->names.front());
}

std::vector<std::string> preset_gpus_in(std::string_view text) {
  std::vector<std::string> gpus;
  for (const GpuPlace& place : gpus_in(plain_machine_name(text))) gpus.push_back(place.gpu);
  return gpus;
}

std::string preset_note(std::string_view text) {
  const PresetNames* preset = preset_named(text);
  if (preset == nullptr || !has(preset->taken_for, plain_machine_name(text))) return "";
  std::vector<const PresetNames*> others;
  for (const PresetNames& other : preset_names())
    if (&other != preset && other.gpu == preset->gpu) others.push_back(&other);
  std::string note = "assumed to be " + preset->name + ", " + preset->summary;
  if (!others.empty()) note += "; other machines with " + preset->gpu + ": " + listed(others);
  return note;
}

std::string preset_hint(std::string_view text) {
  constexpr std::size_t longest = 64;  // beyond it nothing is a name, and comparing is slow
  std::string nowhere = "`ringsim list nodes` lists all; `ringsim topology import` reads your own machine";
  if (text.size() > longest) return nowhere;
  const std::string plain = plain_machine_name(text);
  for (const PresetNames& preset : preset_names())
    for (const PresetNames::Near& near : preset.near)
      if (plain_machine_name(near.name) == plain) return difference(preset, near);
  if (std::string same = joined_otherwise(plain); !same.empty()) return same;
  std::vector<std::string> gpus;
  std::string rest = plain;
  for (const GpuPlace& place : gpus_in(plain)) {
    gpus.push_back(place.gpu);
    std::fill(rest.begin() + static_cast<std::ptrdiff_t>(place.begin),
              rest.begin() + static_cast<std::ptrdiff_t>(place.end), '-');
  }
  if (gpus.empty())
    if (std::string alike = spelled_alike(plain); !alike.empty()) return alike;
  const std::vector<const PresetNames*> found = fitting(words_of(rest), gpus);
  if (found.empty()) return nowhere;
  if (found.size() == 1) return "did you mean \"" + found.front()->name + "\"?";
  return "did you mean one of these? " + listed(found);
}

}  // namespace ringsim
