// The readers of what comes from outside, as functions that take any text: for the fuzzer, and for corpus_test.cpp.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace ringsim::fuzz {

/// A law does not hold for a text that a reader has accepted: the mistake is ours, not the author's.
class Finding : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Target {
  std::string_view name;  ///< and that of its folders in tests/fuzz/corpus and tests/fuzz/crashes
  /// Reads the text and holds what was read to laws. False: the reader refused it, by an error that it documents.
  /// Throws Finding, and whatever else the reader should not have thrown.
  bool (*reads)(std::string_view text);
  /// Files of the repository to begin with: folder and extension, from its root.
  std::vector<std::string_view> seeds;
};
/// All of them, by name.
const std::vector<Target>& targets();

/// Files of more bytes are no seeds: mutations of large ones are slow, and seldom say more.
inline constexpr std::size_t largest_seed = 6000;
/// The target's seeds: files of the repository, its corpus and its crashes, in that order, sorted within each.
std::vector<std::string> seed_files(const Target& target);

// Where the targets are defined. Each is as Target::reads.
bool read_scenario_text(std::string_view text);
/// A text that begins with a brace as ASTRA-sim's system, others as its network.
bool read_astra_files(std::string_view text);
bool read_set_option(std::string_view text);
bool read_condition(std::string_view text);
bool read_quantity(std::string_view text);
bool read_json(std::string_view text);
bool read_calibration_file(std::string_view text);

bool read_machine_file(std::string_view text);
bool read_nccl_topology(std::string_view text);
bool read_nccl_graph(std::string_view text);
bool read_smi_matrix(std::string_view text);

bool read_goal(std::string_view text);
bool read_msccl(std::string_view text);
bool read_mscclpp(std::string_view text);
bool read_schedule_json(std::string_view text);

bool read_measured_rows(std::string_view text);
bool read_profile_text(std::string_view text);
/// A report of Nsight Systems in SQLite.
bool read_nsight_text(std::string_view text);
/// False in a build without libprotobuf.
bool read_chakra_text(std::string_view text);
/// True if it had decorations.
bool read_decorated_text(std::string_view text);
bool read_gzip(std::string_view text);
bool read_training_rows(std::string_view text);
bool read_training_map(std::string_view text);
bool read_limits_file(std::string_view text);

bool read_result_lines(std::string_view text);
bool read_result_csv(std::string_view text);
bool read_result_document(std::string_view text);
bool read_explained_run(std::string_view text);

bool read_replay_line(std::string_view text);
bool read_hosts_file(std::string_view text);
bool read_probe_table(std::string_view text);

}  // namespace ringsim::fuzz
