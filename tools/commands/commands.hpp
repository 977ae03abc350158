// The subcommands: each takes its arguments as a value and returns an exit code. Command lines are read in main.cpp
// only.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "validate/replay/replay.hpp"
#include "validate/score/calibrate.hpp"

namespace ringsim::tools {

/// Exit codes, as every command uses them.
enum Exit : int {
  good = 0,
  check_failed = 1,
  bad_command_line = 2,
  bad_input = 3,
  broken = 4,
  lacking = 5,
  interrupted = 130
};

/// Set by Ctrl-C. A second Ctrl-C ends the process at once.
extern std::atomic<bool> stop_requested;
/// Throws Interrupted where it is: for commands whose work is done in a few long stages.
void stop_if_asked();

enum class Format { table, json, jsonl, csv, nccl_tests };

struct RunArguments {
  std::string scenario;
  std::vector<std::string> set;
  Format format = Format::table;
  std::string output;    ///< a file; empty or "-": stdout
  int jobs = 0;          ///< points at a time; 0: one a core
  bool explain = false;  ///< what the links carried
  bool timing = false;   ///< events and wall time, and why a large run was not folded, on stderr
  bool fold = true;
  std::string measured;    ///< a file of measured times, to stand beside the predicted ones; empty: none
  std::string collective;  ///< what they are of, where the file does not say; empty: it does
};
int run_command(const RunArguments& arguments);

struct ReplayArguments {
  enum class Backend { tcp, mpi, cuda, nccl };
  std::string scenario;
  std::vector<std::string> set;
  Backend backend = Backend::tcp;
  replay::Repeats repeats;
  std::chrono::nanoseconds timeout = std::chrono::seconds(30);
  std::string hosts;        ///< a file; empty: all on this machine
  std::optional<int> rank;  ///< with `hosts`: which of its lines this process is
  bool streams = false;     ///< on GPUs: call by call instead of as a graph
  bool library = false;     ///< NCCL's own collective in place of the schedule
  std::string samples;  ///< on GPUs: what a probe wrote, for the model of what GPUs do at the same time; empty: none
  int copy_blocks = 0;  ///< on GPUs: copies by kernels of that many thread blocks; 0: by copy engines
  Format format = Format::table;
  std::string output;  ///< a file; empty or "-": stdout
};
int replay_command(const ReplayArguments& arguments);

struct LabArguments {
  enum class What { up, run, down } what = What::run;
  ReplayArguments replay;  ///< down: an empty scenario is all labs that no command uses
  bool fifo = false;       ///< as opposed to LabOptions::fair_ports
  int window = 262144;     ///< as TcpOptions::receive_buffer
};
int lab_command(const LabArguments& arguments);
struct ProbeArguments {
  int ranks = 16;         ///< virtual ones of the scenario, where there is one GPU
  Bytes most{256 << 20};  ///< the largest size that is measured
  int repeats = 20;
  std::chrono::nanoseconds timeout = std::chrono::seconds(30);
  std::string samples;  ///< a file for every measurement; empty: none
  std::string output;   ///< a file for the scenario; empty or "-": stdout
};
int probe_command(const ProbeArguments& arguments);

struct CompareArguments {
  std::string scenario, measured;
  std::vector<std::string> set;
  std::string algorithm;            ///< instead of the scenario's; empty: those
  std::string collective;           ///< as RunArguments::collective
  std::optional<double> max_error;  ///< a share: 0.15 is 15 %
  Format format = Format::table;
  std::string output;
  int jobs = 0;
};
int compare_command(const CompareArguments& arguments);

struct CalibrateArguments {
  std::string scenario, measured;
  std::vector<std::string> set;
  std::string collective;  ///< as RunArguments::collective
  Rows rows = Rows::all;   ///< which are fitted; the others are predicted
  std::string output;      ///< the file of factors
};
int calibrate_command(const CalibrateArguments& arguments);

enum class ScorecardFormat { table, csv, markdown };
struct ScorecardArguments {
  std::string folder;  ///< of tables and their scenarios; empty: those of the library
  ScorecardFormat format = ScorecardFormat::table;
  std::string output;  ///< a file; empty or "-": stdout
  int jobs = 0;        ///< points at a time; 0: one a core
};
int scorecard_command(const ScorecardArguments& arguments);

enum class CrossoverFormat { table, csv, nccl_tuner };
struct CrossoverArguments {
  std::string scenario;
  std::vector<std::string> set;
  CrossoverFormat format = CrossoverFormat::table;
  std::string output;   ///< a file; empty or "-": stdout
  int jobs = 0;         ///< points at a time; 0: one a core
  bool refine = false;  ///< bisects between the scenario's sizes
};
int crossover_command(const CrossoverArguments& arguments);

struct SweepArguments {
  std::string scenario;
  std::vector<std::string> set;
  int jobs = 0;        ///< points at a time; 0: one a core
  std::string shard;   ///< "2/4"; empty: what Slurm says, or all
  std::string output;  ///< a file; empty or "-": stdout
  bool resume = false, dry_run = false;
  std::vector<std::string> assertions;
  std::string baseline;
  double tolerance = 0;  ///< a share: 0.02 is 2 %
  std::string junit;     ///< a file for the verdict as XML; empty: none
};
int sweep_command(const SweepArguments& arguments);

struct MergeArguments {
  std::vector<std::string> files;
  std::string output;  ///< its ending tells the format
};
int merge_command(const MergeArguments& arguments);

struct CheckArguments {
  std::string scenario;  ///< empty: the grid of closed forms
  std::vector<std::string> set;
  int jobs = 0;
};
int check_command(const CheckArguments& arguments);

int list_command(const std::string& what);  ///< algorithms, topologies, nodes, models, comparison, columns; empty: all
                                            ///< but the last two
int schema_command();

struct ShowArguments {
  std::string scenario;  ///< for schedules: or a schedule's own file
  std::vector<std::string> set;
  bool picture = false;  ///< schedule show: rows of ranks, columns of steps
};
struct TopologyShowArguments {
  std::string scenario;
  std::vector<std::string> set;
  std::uint32_t host = 0;  ///< whose matrices are printed
  bool pairs = false;      ///< type, bandwidth and latency of each pair of gpus
};
int topology_show_command(const TopologyShowArguments& arguments);
struct PathArguments {
  std::string scenario;
  std::vector<std::string> set;
  std::string from, to;
};
int topology_paths_command(const PathArguments& arguments);
struct ImportArguments {
  std::string file;
  std::string like;              ///< a preset, for a matrix of nvidia-smi
  std::string nvlink, nic, gpu;  ///< a preset, a rate, a model: what an XML file lacks
  std::string output;
};
int topology_import_command(const ImportArguments& arguments);

struct ExportArguments {
  std::string scenario;
  std::vector<std::string> set;
  std::string to;  ///< topology: nccl-xml, graphml, dot, machine; schedule: msccl, json, goal
  std::string output;
};
int topology_export_command(const ExportArguments& arguments);
int schedule_show_command(const ShowArguments& arguments);
int schedule_check_command(const ShowArguments& arguments);
struct ImportScheduleArguments {
  std::string file;
  std::string output;
};
int schedule_import_command(const ImportScheduleArguments& arguments);
int schedule_export_command(const ExportArguments& arguments);

}  // namespace ringsim::tools
