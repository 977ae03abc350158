#include "tests/fuzz/targets.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "sim/base/error.hpp"
#include "sim/text/json.hpp"
#include "tests/fuzz/laws.hpp"
#include "tests/support/paths.hpp"

namespace ringsim::fuzz {

namespace {

/// Longer errors have copied the text that they complain about.
constexpr std::size_t longest_error = 4000;

/// The files of a folder with that extension that are small enough; all of them if it is empty.
void add_files(const std::filesystem::path& folder, std::string_view extension, std::vector<std::string>& files) {
  std::vector<std::string> found;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    const bool is_right = extension.empty() || entry.path().extension() == extension;
    if (entry.is_regular_file() && is_right && entry.file_size() <= largest_seed)
      found.push_back(entry.path().string());
  }
  std::sort(found.begin(), found.end());
  files.insert(files.end(), found.begin(), found.end());
}

}  // namespace

void law(bool holds, std::string_view sentence) {
  if (!holds) throw Finding(fmt::format("this does not hold: {}", sentence));
}

bool reads_or_refuses(const std::function<void()>& read) {
  try {
    read();
    return true;
  } catch (const InputError& error) {
    const std::string_view text = error.what();
    law(!error.message().empty(), "an error has a message");
    law(text.size() <= longest_error, "an error is not as long as what it complains about");
    law(error.message() != "expected JSON", "an error is in words of our own");  // nlohmann's are its hint
    law(first_not_utf8(text) == std::string_view::npos, "an error is UTF-8");
    return false;
  }
}

MemoryFile::MemoryFile(std::string_view text) : descriptor_(memfd_create("fuzz", MFD_CLOEXEC)) {
  if (descriptor_ < 0 || write(descriptor_, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    throw std::system_error(errno, std::generic_category(), "a file in memory");
}

MemoryFile::~MemoryFile() { close(descriptor_); }

std::string MemoryFile::path() const { return fmt::format("/proc/self/fd/{}", descriptor_); }

const std::vector<Target>& targets() {
  static const std::vector<Target> all{
      {"astra", read_astra_files, {}},
      {"calibration", read_calibration_file, {}},
      {"chakra", read_chakra_text, {}},
      {"condition", read_condition, {}},
      {"decorated", read_decorated_text, {"tests/data/measured/.log", "tests/data/machines/.txt"}},
      {"explained", read_explained_run, {}},
      {"goal", read_goal, {"tests/data/schedules/.goal"}},
      {"gzip", read_gzip, {}},
      {"hosts", read_hosts_file, {}},
      {"flight_recorder", read_profile_text, {}},
      {"inspector", read_profile_text, {}},
      {"json", read_json, {"tests/data/bad_scenarios/.json"}},
      {"kineto", read_profile_text, {}},
      {"machine", read_machine_file, {"topologies/presets/.json"}},
      {"measured",
       read_measured_rows,
       {"tests/data/measured/.txt", "tests/data/measured/.json", "tests/data/measured/.csv", "tests/data/measured/.log",
        "validate/measured/replay/.csv"}},
      {"msccl", read_msccl, {"tests/data/schedules/.xml", "scenarios/examples/algorithms/schedules/.xml"}},
      {"mscclpp", read_mscclpp, {"tests/data/mscclpp/.json"}},
      {"nccl_graph", read_nccl_graph, {}},
      {"nccl_xml", read_nccl_topology, {"tests/data/machines/.xml", "scenarios/questions/machines/.xml"}},
      {"nsight", read_nsight_text, {}},
      {"nvidia_smi", read_smi_matrix, {"tests/data/machines/.txt"}},
      {"probe", read_probe_table, {"validate/measured/replay/.csv"}},
      {"quantity", read_quantity, {}},
      {"replay_line", read_replay_line, {}},
      {"result_csv", read_result_csv, {"scenarios/.csv", "scenarios/examples/explain/.csv"}},
      {"result_document", read_result_document, {}},
      {"result_lines", read_result_lines, {}},
      {"scenario",
       read_scenario_text,
       {"scenarios/.json", "scenarios/examples/algorithms/.json", "scenarios/examples/collectives/.json",
        "scenarios/examples/faults/.json", "scenarios/examples/library/.json", "scenarios/examples/machines/.json",
        "scenarios/examples/networks/.json", "scenarios/examples/training/.json", "scenarios/examples/explain/.json",
        "scenarios/questions/.json", "tests/data/bad_scenarios/.json"}},
      {"schedule_json", read_schedule_json, {"tests/data/schedules/.json"}},
      {"score_limits", read_limits_file, {"tests/data/.json"}},
      {"set", read_set_option, {}},
      {"training_map", read_training_map, {"validate/measured/training_figures/.json"}},
      {"training_rows", read_training_rows, {"validate/measured/training_figures/.csv"}},
  };
  return all;
}

std::vector<std::string> seed_files(const Target& target) {
  const std::filesystem::path root = test::source_dir();
  std::vector<std::string> files;
  for (const std::string_view seeds : target.seeds) {
    const std::filesystem::path place(seeds);  // "folder/.extension"
    add_files(root / place.parent_path(), place.filename().string(), files);
  }
  for (const char* folder : {"tests/fuzz/corpus", "tests/fuzz/crashes"})
    add_files(root / folder / target.name, "", files);
  return files;
}

}  // namespace ringsim::fuzz
