// Published figures of training: how fast a model trained on so many GPUs, and what ringsim takes that machine and
// that way of training to be.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ringsim {

/// A row of a published table, as printed.
struct TrainingFigure {
  std::string source, model;
  std::optional<std::int64_t> parameters;
  std::int64_t batch = 0;  ///< per GPU
  std::string precision, machine, regime;
  int gpus = 0;
  double value = 0;
  std::string unit;   ///< "s/step p50", "img/s synthetic", "efficiency"
  std::string where;  ///< file:line
};

/// Reads a table with the columns source, model, params, batch_per_gpu, precision, machine, regime, gpus, value and
/// unit, in any order; lines that begin with # are comments. `name` is what errors call the file. Throws InputError at
/// file:line:column: what was expected and what was found.
std::vector<TrainingFigure> parse_training_rows(std::string_view text, const std::string& name);

/// What the machine of a row is: the first entry whose words are all in the row's text.
struct TrainingMachine {
  std::vector<std::string> words;
  std::string gpu;         ///< whose rate it has: rows without a rate of their own take that of the same model and GPU
  std::string topology;    ///< JSON of a scenario's topology, without the number of nodes (cluster) or ranks (others)
  int gpus_per_node = 0;   ///< of a cluster; 0: another topology
  std::vector<int> order;  ///< of ranks within a node; empty: by number
  int gpus_per_board = 1;  ///< that share the power of a board: compute is what a full board reaches
  std::string source, assumed;
};

/// How a row trains: the first entry whose words are all in the row's text.
struct TrainingWay {
  std::vector<std::string> words;
  std::string one_node, several_nodes;  ///< JSON of a scenario's training.regime; empty: not said
  bool bucket_in_text = false;          ///< "ddp 25MB": the size of buckets
  bool by_number = false;               ///< ranks are in the order of the GPUs' numbers, not in the machine's
  std::string source, assumed;
};

/// What the model leaves out of the rows that have all these words in machine, regime or model.
struct TrainingGap {
  std::vector<std::string> words;
  std::string missing;
};

struct TrainingMap {
  std::vector<TrainingMachine> machines;
  std::vector<TrainingWay> ways;
  std::vector<TrainingGap> gaps;
};

/// Reads `{"machines": [...], "regimes": [...], "missing": [...]}`; each list may be left out. Throws InputError at
/// file: /pointer.
TrainingMap parse_training_map(std::string_view text, const std::string& name);

/// True if all words are in the text, in any order, whatever the case of letters.
bool has_words(const std::string& text, const std::vector<std::string>& words);

struct TrainingFigures {
  std::vector<TrainingFigure> rows;
  TrainingMap map;
};

/// Those of validate/measured/training_figures, which are part of the library.
TrainingFigures bundled_training();
/// DIR/published.csv and, if it is there, DIR/mapping.json. Its entries come before the bundled ones. Throws
/// InputError.
TrainingFigures training_figures_in(const std::string& folder);

}  // namespace ringsim
