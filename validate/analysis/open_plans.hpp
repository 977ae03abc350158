// The plans that a scenario leaves open: every way to divide its model among its GPUs.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/scenario.hpp"
#include "scenarios/setup/setup.hpp"
#include "sim/text/json.hpp"

namespace ringsim {

/// A key in which plans differ, and its values.
struct SearchedKey {
  std::string path;  ///< "training.parallel.tensor"
  std::vector<Json> values;
};

/// The plans of a scenario with `training.parallel`. Keys of `parallel` that the scenario states are fixed; of a list
/// of values (or a sweep) each is tried. Of keys that it does not state some are searched:
///
/// - tensor: divisors of the heads, of the heads of keys and values and of the MLP, up to the GPUs of a host;
/// - pipeline and virtual_pipeline: divisors of the layers; several chunks only if the micro-batches are a multiple of
///   pipeline, as Megatron-LM's interleaved schedule requires. Stages that do not divide the layers are tried if they
///   do once the embedding and the loss count as a layer each (account_for_embedding, account_for_loss);
/// - expert: divisors of the experts; expert_tensor: 1 and tensor;
/// - micro_batch_size: powers of two;
/// - shard: all (optimizer_gradients without a pipeline); recompute: all (selective if the attention keeps its scores).
///
/// Unless stated, sequence_parallel is true with tensor above 1, and whatever can overlap does: the model charges
/// nothing for either. Other keys keep their defaults; context is one of them.
class OpenPlans {
 public:
  /// `text`: a scenario file's, which errors call `name`; `set`: of --set. Throws InputError as
  /// ScenarioFile::parse() does, for a scenario without `training.parallel`, and for one that varies something other
  /// than plans. `free`: these keys are searched even if the scenario states them; `where` is ignored then.
  OpenPlans(const std::string& text, const std::string& name, const std::vector<std::string>& set, bool free = false);

  /// At least 1.
  std::size_t size() const { return parts_.whole.size(); }
  const std::vector<SearchedKey>& keys() const { return parts_.keys; }
  /// True if the scenario itself lists several values of the key.
  bool lists(const std::string& path) const;

  /// Plan i, with all that a run needs. Throws InputError for a plan that cannot be.
  Scenario whole(std::size_t i) const;
  /// Plan i without the decisions of a library, which take most of the time: its kernels, exchanges and memory are the
  /// same.
  Scenario plain(std::size_t i) const;
  /// Path and value, as JSON text, of each key of plan i's `parallel`, and of micro_batch_size.
  std::vector<std::pair<std::string, std::string>> values_of(std::size_t i) const;
  /// Those that make the scenario plan i, as --set takes them.
  std::vector<std::string> set_of(std::size_t i) const;
  const ScenarioFile& file() const { return parts_.whole; }

  /// The machine, and where the ranks are.
  const Setup& setup() const { return parts_.setup; }
  const std::vector<NodeId>& ranks() const { return parts_.setup.collectives.front().ranks; }

  /// A collective by itself on the same machine, of groups of ranks at the same time. `bytes` as exchanges of plans
  /// count them.
  Scenario collective(CollectiveOp op, Bytes bytes, const std::vector<std::vector<Actor>>& groups) const;

 private:
  struct Parts {
    std::string name;
    Json machine;      // the document without training, sweep, where, and what disturbs
    Json training;     // as stated
    bool drops_where;  // the document has conditions, which are ignored
    std::vector<SearchedKey> keys;
    std::vector<Json> trainings;  // of all plans
    Setup setup;
    ScenarioFile plain, whole;
  };
  static Parts make(const std::string& text, const std::string& name, const std::vector<std::string>& set, bool free);

  Parts parts_;
};

}  // namespace ringsim
