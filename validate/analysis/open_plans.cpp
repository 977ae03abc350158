#include "validate/analysis/open_plans.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string_view>

#include "algorithms/training/transformer_costs.hpp"
#include "sim/base/error.hpp"

namespace ringsim {

namespace {

const std::string parallel_path = "training.parallel.", micro_path = "training.workload.micro_batch_size";
constexpr std::size_t most_plans = 100'000;

/// The default of a key; empty if it has none.
std::string default_of(const std::string& path) {
  static const std::vector<ScenarioKey> keys = scenario_keys();
  // Their defaults are none, which the table does not have: a scenario that states nothing of plans has no such key.
  if (path == parallel_path + "shard" || path == parallel_path + "recompute") return "none";
  const auto found = std::find_if(keys.begin(), keys.end(), [&](const ScenarioKey& key) { return key.path == path; });
  return found == keys.end() ? "" : found->fallback;
}

[[noreturn]] void refuse_plans(const std::string& name, const std::string& pointer, std::string message,
                               std::string hint) {
  throw InputError(fmt::format("{}: {}", name, pointer), std::move(message), std::move(hint));
}

/// A value that lists several; of a key whose value is a list, a list of lists.
bool is_several(const std::string& key, const Json& value) {
  return value.is_array() && (key != "overlap" || (!value.empty() && value.front().is_array()));
}

/// The model and machine that plans divide.
struct PlanFacts {
  TransformerCard card;
  std::int64_t sequence = 0, global_batch = 0;
  bool flash = true;
  std::int64_t gpus = 0, of_host = 0;  ///< most GPUs of one host
};

/// A size as arithmetic may use it: what a scenario cannot say is refused when the plan is decoded.
std::int64_t size_in(const Json& value) {
  constexpr std::int64_t most = 1 << 20;  // products of three fit into 64 bits
  return value.is_number_integer() ? std::clamp<std::int64_t>(value.get<std::int64_t>(), 1, most) : 1;
}

/// The scenario's words about plans.
class StatedPlan {
 public:
  StatedPlan(const Json& parallel, bool falls_back) : parallel_(parallel), falls_back_(falls_back) {}

  bool has(const char* key) const { return parallel_.contains(key); }
  /// The values of a key: the stated one, else those that are searched.
  std::vector<Json> values(const char* key, const std::function<std::vector<Json>()>& searched, Json fallback) const {
    if (has(key)) return {parallel_[key]};
    std::vector<Json> found = searched();
    if (found.empty() && falls_back_) found.push_back(std::move(fallback));
    return found;
  }
  std::int64_t number(const char* key, std::int64_t fallback) const {
    const auto found = parallel_.find(key);
    return found != parallel_.end() && found->is_number_integer() ? size_in(*found) : fallback;
  }
  std::string text(const char* key) const {
    const auto found = parallel_.find(key);
    return found != parallel_.end() && found->is_string() ? found->get<std::string>() : "";
  }
  const Json& all() const { return parallel_; }
  bool falls_back() const { return falls_back_; }

 private:
  const Json& parallel_;
  bool falls_back_;
};

std::vector<Json> divisors_that_fit(std::int64_t of, std::int64_t most, const std::function<bool(std::int64_t)>& fits) {
  std::vector<Json> all;
  for (std::int64_t n = 1; n <= std::min(of, most); ++n)
    if (of % n == 0 && fits(n)) all.emplace_back(n);
  return all;
}

/// Every plan of a scenario whose `parallel` has one value for each key that it states.
class PlanWriter {
 public:
  /// `falls_back`: if no value of a key is possible, uses one all the same, so that its error explains why.
  PlanWriter(const PlanFacts& facts, const Json& training, const Json& parallel, bool falls_back,
             std::vector<Json>& out)
      : facts_(facts), training_(training), stated_(parallel, falls_back), out_(out) {}

  void add_all() {
    const std::int64_t context = stated_.number("context", 1);
    const auto& card = facts_.card;
    const auto fits_model = [&](std::int64_t t) {
      return card.kv_heads % t == 0 && (card.ffn % t == 0 || (card.experts > 0 && card.dense_layers == 0)) &&
             (card.shared_ffn % t) == 0 && facts_.gpus % (t * context) == 0;
    };
    for (const Json& tensor : stated_.values(
             "tensor", [&] { return divisors_that_fit(card.heads, facts_.of_host, fits_model); }, 1)) {
      const std::int64_t t = size_in(tensor);
      const auto fits_gpus = [&](std::int64_t p) { return facts_.gpus % (t * p * context) == 0; };
      const auto fits_layers = [&](std::int64_t p) { return fits_gpus(p) && divided_layers(p) % p == 0; };
      for (const Json& pipeline : stated_.values(
               "pipeline", [&] { return divisors_that_fit(facts_.gpus, facts_.gpus, fits_layers); }, 1)) {
        Json plan = stated_.all();
        plan["tensor"] = tensor;
        plan["pipeline"] = pipeline;
        if (counts_two_more(size_in(pipeline))) plan["account_for_embedding"] = plan["account_for_loss"] = true;
        const bool can_divide_tokens = facts_.sequence % (t * (context > 1 ? 2 * context : 1)) == 0;
        if (t > 1 && can_divide_tokens && !stated_.has("sequence_parallel")) plan["sequence_parallel"] = true;
        add_batches(plan, t, size_in(pipeline),
                    std::max<std::int64_t>(1, facts_.gpus / (t * size_in(pipeline) * context)));
      }
    }
  }

 private:
  /// True if stages have as many layers each only if the embedding and the loss count as one: the 126 of Llama 3 405B
  /// on 16 stages. If the scenario says what counts, nothing else is tried.
  bool counts_two_more(std::int64_t p) const {
    const bool is_stated = stated_.has("account_for_embedding") || stated_.has("account_for_loss");
    return !is_stated && needs_embedding_and_loss(facts_.card.layers, p);
  }
  /// Layers that p stages divide among them, with what counts as one.
  std::int64_t divided_layers(std::int64_t p) const {
    if (counts_two_more(p)) return facts_.card.layers + 2;
    const auto counts = [&](const char* key) { return stated_.all().value(key, Json(false)) == true ? 1 : 0; };
    return facts_.card.layers + (p > 1 ? counts("account_for_embedding") + counts("account_for_loss") : 0);
  }

  void add_batches(const Json& plan, std::int64_t t, std::int64_t p, std::int64_t data) {
    if (stated_.number("data", data) != data && !stated_.falls_back()) return;
    std::vector<Json> sizes;
    const Json& workload = training_["workload"];
    if (workload.contains("micro_batch_size"))
      sizes = {workload["micro_batch_size"]};
    else
      for (std::int64_t b = 1; b * data <= facts_.global_batch; b *= 2)
        if (facts_.global_batch % (b * data) == 0) sizes.emplace_back(b);
    if (sizes.empty() && stated_.falls_back()) sizes.emplace_back(1);
    for (const Json& size : sizes) {
      const std::int64_t micro_batches = facts_.global_batch / (size_in(size) * data);
      const std::string schedule = stated_.text("schedule");
      const auto chunks = [&]() -> std::vector<Json> {
        const std::int64_t layers = divided_layers(p);
        if (p == 1 || layers % p != 0 || !(schedule.empty() || schedule == "interleaved")) return {1};
        return divisors_that_fit(layers / p, layers, [&](std::int64_t v) {
          return v == 1 ? schedule != "interleaved" : micro_batches % p == 0;
        });
      };
      for (const Json& virtual_pipeline : stated_.values("virtual_pipeline", chunks, 1)) {
        Json chunked = plan;
        chunked["virtual_pipeline"] = virtual_pipeline;
        add_experts(chunked, size, t, p, data);
      }
    }
  }

  void add_experts(const Json& plan, const Json& size, std::int64_t t, std::int64_t p, std::int64_t data) {
    const bool is_shared = data * stated_.number("context", 1) > 1;
    if (facts_.card.experts == 0) return add_shards(plan, size, p, is_shared, false);
    const std::int64_t stage = facts_.gpus / p;
    const auto splits = [&]() -> std::vector<Json> { return t > 1 ? std::vector<Json>{1, t} : std::vector<Json>{1}; };
    for (const Json& expert_tensor : stated_.values("expert_tensor", splits, 1)) {
      const std::int64_t split = size_in(expert_tensor);
      const auto fits = [&](std::int64_t e) { return stage % (e * split) == 0; };
      for (const Json& expert : stated_.values(
               "expert", [&] { return divisors_that_fit(facts_.card.experts, stage, fits); }, 1)) {
        Json divided = plan;
        divided["expert_tensor"] = expert_tensor;
        divided["expert"] = expert;
        const bool is_apart = size_in(expert) > 1 || split != t;
        add_shards(divided, size, p, is_shared || (is_apart && stage / (size_in(expert) * split) > 1), is_apart);
      }
    }
  }

  /// `is_shared`: several ranks have the same weights, of all layers or of experts.
  void add_shards(const Json& plan, const Json& size, std::int64_t p, bool is_shared, bool has_experts_apart) {
    if (out_.size() > most_plans) return;  // which is refused
    const auto shards = [&]() -> std::vector<Json> {
      for (const char* key : {"hybrid", "prefetch", "reshard_after_forward"})
        if (stated_.has(key)) return {"full"};
      if (!is_shared) return {"none"};
      if (has_experts_apart) return {"none", "optimizer"};
      if (p > 1) return {"none", "optimizer", "full"};
      return {"none", "optimizer", "optimizer_gradients", "full"};
    };
    const auto recomputed = [&]() -> std::vector<Json> {
      return facts_.flash ? std::vector<Json>{"none", "full"} : std::vector<Json>{"none", "selective", "full"};
    };
    for (const Json& shard : stated_.values("shard", shards, "none"))
      for (const Json& recompute : stated_.values("recompute", recomputed, "none")) {
        Json whole_plan = plan;
        whole_plan["shard"] = shard;
        whole_plan["recompute"] = recompute;
        if (is_shared && !stated_.has("overlap") && shard != "full") {
          whole_plan["overlap"] = {"grad_reduce"};
          if (shard != "none") whole_plan["overlap"].push_back("param_gather");
        }
        Json training = training_;
        training["workload"]["micro_batch_size"] = size;
        training["parallel"] = std::move(whole_plan);
        out_.push_back(std::move(training));
      }
  }

  const PlanFacts& facts_;
  const Json& training_;
  StatedPlan stated_;
  std::vector<Json>& out_;
};

/// Sweeps over a plan's keys become lists of these keys. Anything else that varies is refused.
void take_sweeps(Json& document, const std::string& name) {
  if (!document.contains("sweep")) return;
  if (!document["sweep"].is_object())
    refuse_plans(name, "/sweep",
                 fmt::format("expected an object of paths and their values, found {}", describe(document["sweep"])),
                 "");
  for (const auto& [path, values] : document["sweep"].items()) {
    const bool is_key = path.starts_with(parallel_path) && path.find('.', parallel_path.size()) == std::string::npos;
    if (!is_key && path != micro_path)
      refuse_plans(name, "/sweep",
                   fmt::format("expected sweeps only over keys of training.parallel, found {}", in_quotes(path)),
                   "plans are compared on one machine and with one model: choose one with --set");
    if (!values.is_array())
      refuse_plans(name, "/sweep",
                   fmt::format("expected a list of values of {}, found {}", in_quotes(path), describe(values)), "");
    if (is_key)
      document["training"]["parallel"][path.substr(parallel_path.size())] = values;
    else
      document["training"]["workload"]["micro_batch_size"] = values;
  }
  document.erase("sweep");
}

/// Removes the searched keys, and those that only some plans may have.
void forget_searched(Json& training) {
  for (const char* key : {"tensor", "pipeline", "virtual_pipeline", "account_for_embedding", "account_for_loss", "data",
                          "expert", "expert_tensor", "sequence_parallel", "schedule", "shard", "reshard_after_forward",
                          "prefetch", "hybrid", "recompute", "overlap"})
    training["parallel"].erase(key);
  training["workload"].erase("micro_batch_size");
}

void expect_plans(const Json& document, const std::string& name) {
  if (!document.contains("training") || !document["training"].is_object() ||
      !document["training"].contains("parallel") || !document["training"]["parallel"].is_object())
    refuse_plans(
        name, "/training", "expected a training with the key \"parallel\", found none",
        R"(keys with a value are fixed, and absent ones such as tensor and pipeline are searched: "parallel": {} fixes none)");
  if (document.contains("jobs"))
    refuse_plans(name, "/jobs", "expected a training step without other jobs, found other jobs",
                 "remove the other jobs for `ringsim plan`; `ringsim run` can run the plan together with them");
  const Json& workload = document["training"].value("workload", Json::object());
  if (!workload.is_object())
    refuse_plans(name, "/training/workload", fmt::format("expected an object, found {}", describe(workload)), "");
  if (workload.contains("compute") && workload["compute"].is_object() && workload["compute"].contains("measured"))
    refuse_plans(name, "/training/workload/compute/measured", "expected shares of the peak, found a measured plan",
                 "`ringsim run` of that plan prints the share that it determines; use it as gemm");
  if (document["training"]["parallel"].contains("algorithm") &&
      document["training"]["parallel"]["algorithm"].is_array())
    refuse_plans(name, "/training/parallel/algorithm", "expected one algorithm, found a list",
                 "plans are compared with a single algorithm: choose it with --set");
  if (!workload.contains("global_batch_size") || !workload["global_batch_size"].is_number_integer() ||
      workload["global_batch_size"].get<std::int64_t>() < 1)
    refuse_plans(name, "/training/workload/global_batch_size",
                 "expected the samples per step over all GPUs as a single whole number",
                 "plans are compared at a single global batch size");
}

/// The values of a key that the scenario states: one, or those of a list, each once.
std::vector<Json> stated_values(const std::string& name, const std::string& pointer, const std::string& key,
                                const Json& value) {
  if (value.is_object() && value.contains("from"))
    refuse_plans(name, pointer, "expected a value or a list of values, found a range", "write the values as a list");
  if (value.is_array() && value.empty() && key != "overlap")
    refuse_plans(name, pointer, "expected a value or a list of values, found an empty list",
                 "to search all values, remove the key");
  if (!is_several(key, value)) return {value};
  std::vector<Json> values;
  for (const Json& each : value)
    if (std::find(values.begin(), values.end(), each) == values.end()) values.push_back(each);
  return values;
}

[[noreturn]] void refuse_so_many(const std::string& name) {
  refuse_plans(name, "/training/parallel", fmt::format("expected at most {} plans, found more", most_plans),
               "set some of the keys, or use shorter lists");
}

/// The documents of one value for each key: the product of all lists.
std::vector<Json> single(const std::string& name, const Json& parallel) {
  std::vector<Json> all{parallel};
  for (const auto& [key, value] : parallel.items()) {
    const std::vector<Json> values = stated_values(name, "/training/parallel/" + key, key, value);
    if (all.size() * values.size() > most_plans) refuse_so_many(name);
    std::vector<Json> more;
    for (const Json& each : all)
      for (const Json& one : values) {
        more.push_back(each);
        more.back()[key] = one;
      }
    all = std::move(more);
  }
  return all;
}

/// Without context ranks `cp_comm` has no effect: values that differ in it alone are one. If none has context ranks, it
/// keeps the first stated value, of which the plan warns.
std::vector<Json> without_idle_comm(const std::vector<Json>& parallels) {
  const auto is_shared = [](const Json& parallel) { return parallel.value("context", Json(1)) != 1; };
  const bool is_used = std::any_of(parallels.begin(), parallels.end(), is_shared);
  std::vector<Json> kept;
  for (Json parallel : parallels) {
    if (!is_shared(parallel) && parallel.contains("cp_comm")) {
      if (is_used)
        parallel.erase("cp_comm");
      else
        parallel["cp_comm"] = parallels.front()["cp_comm"];
      if (std::find(kept.begin(), kept.end(), parallel) != kept.end()) continue;
    }
    kept.push_back(std::move(parallel));
  }
  return kept;
}

/// The collective that stands for all of a plan, to learn where its ranks are.
Json any_collective(const Json& training) {
  Json collective{{"op", "all_reduce"}, {"algorithm", "ring"}, {"bytes", "1 KiB"}};
  if (training.contains("ranks")) collective["ranks"] = training["ranks"];
  return collective;
}

PlanFacts facts_of(Json document, const std::string& name, const Setup& setup) {
  PlanFacts facts;
  const std::vector<NodeId>& ranks = setup.collectives.front().ranks;
  facts.gpus = static_cast<std::int64_t>(ranks.size());
  std::map<std::optional<std::uint32_t>, std::int64_t> of_host;
  for (const NodeId rank : ranks) ++of_host[setup.topology.node(rank).host];
  for (const auto& [host, gpus] : of_host)
    facts.of_host = std::max(facts.of_host, host ? gpus : facts.gpus);  // GPUs outside of hosts are one machine
  Json& training = document["training"];
  facts.global_batch = training["workload"]["global_batch_size"].get<std::int64_t>();
  training["parallel"] = Json::object();
  training["memory"] = "ignore";
  training["workload"]["micro_batch_size"] = 1;
  training["workload"]["global_batch_size"] = facts.gpus;  // which always divides
  const Scenario scenario = ScenarioFile::parse(json_text(document), name).point(0);
  const TransformerPlan& model = scenario.training->plan->model;
  facts.card = model.card;
  facts.sequence = model.sequence;
  facts.flash = model.flash;
  return facts;
}

/// Errors name the place in the user's file, which has one training.
template <class Work>
auto naming_training(const Work& work) {
  try {
    return work();
  } catch (const InputError& error) {
    constexpr std::string_view list = ": /training/";
    std::string where = error.where();
    if (const std::size_t at = where.find(list); at != std::string::npos) {
      const std::size_t digits = at + list.size(), end = where.find_first_not_of("0123456789", digits);
      if (end != digits) where.erase(digits - 1, (end == std::string::npos ? where.size() : end) - digits + 1);
    }
    constexpr std::string_view ranks = ": /collective/ranks";
    if (const std::size_t at = where.find(ranks); at != std::string::npos)
      where.replace(at, ranks.size(), ": /training/ranks");
    throw InputError(where, error.message(), error.hint());
  }
}

}  // namespace

namespace {

[[noreturn]] void refuse_variation(const std::string& name, std::size_t points) {
  refuse_plans(
      name, "/",
      fmt::format("expected no lists or ranges except in training.parallel and micro_batch_size, found {} points",
                  points),
      "plans are compared on one machine and with one model: choose one value with --set");
}

/// The document with the plan that it would have without any key.
void expect_one_scenario(Json document, const std::string& name) {
  document["training"]["parallel"] = Json::object();
  document["training"]["workload"]["micro_batch_size"] =
      Json::array({1, 2});  // two points are not decoded, one would be
  const std::size_t points = ScenarioFile::parse(json_text(document), name).size();
  if (points > 2) refuse_variation(name, points / 2);
}

}  // namespace

namespace {

/// The keys in which plans differ, with their values in the order in which they first come.
std::vector<SearchedKey> searched_keys(const std::vector<Json>& trainings) {
  std::vector<SearchedKey> keys;
  const auto take = [&](const std::string& path, const Json& value) {
    auto found = std::find_if(keys.begin(), keys.end(), [&](const SearchedKey& key) { return key.path == path; });
    if (found == keys.end()) found = keys.insert(keys.end(), {path, {}});
    if (std::find(found->values.begin(), found->values.end(), value) == found->values.end())
      found->values.push_back(value);
  };
  for (const Json& training : trainings) {
    for (const auto& [key, value] : training["parallel"].items()) take(parallel_path + key, value);
    take(micro_path, training["workload"]["micro_batch_size"]);
  }
  std::erase_if(keys, [](const SearchedKey& key) { return key.values.size() < 2; });
  return keys;
}

/// The document with all of the trainings; a file of one plan has one.
ScenarioFile file_of(Json document, const std::vector<Json>& trainings, const std::string& name) {
  document["training"] = trainings;
  return naming_training([&] { return ScenarioFile::parse(json_text(document), name); });
}

/// The trainings that the file's conditions let through.
std::vector<Json> let_through(const ScenarioFile& file, const std::vector<Json>& trainings) {
  if (file.left_out() == 0) return trainings;
  std::vector<Json> kept;
  for (std::size_t i = 0, next = 0; i < file.size(); ++i)
    for (const auto& [path, value] : file.id(i).varied) {
      if (path != "training") continue;
      while (trainings[next].dump() != value) ++next;
      kept.push_back(trainings[next++]);
    }
  return kept;
}

}  // namespace

OpenPlans::Parts OpenPlans::make(const std::string& text, const std::string& name, const std::vector<std::string>& set,
                                 bool free) {
  Json document = parse_json(with_overrides(text, name, set), name);
  expect_plans(document, name);
  take_sweeps(document, name);
  const Json stated = document["training"];
  const bool drops_where = free && document.contains("where");
  if (free) {
    forget_searched(document["training"]);
    document.erase("where");
  }
  const Json training = document["training"];
  Json conditions = document.contains("where") ? document["where"] : Json();
  document.erase("where");

  Json bare = document;
  bare.erase("training");
  bare.erase("library");
  bare["collective"] = any_collective(training);
  Setup setup = naming_training([&] {
    const ScenarioFile machines = ScenarioFile::parse(json_text(bare), name);
    if (machines.size() > 1) refuse_variation(name, machines.size());
    return set_up(machines.point(0));
  });

  Json unplanned = document;
  unplanned.erase("library");
  const PlanFacts facts = facts_of(unplanned, name, setup);
  expect_one_scenario(document, name);
  std::vector<Json> trainings;
  const std::vector<Json> parallels = without_idle_comm(single(name, training["parallel"]));
  const std::vector<Json> sizes = stated_values(name, "/training/workload/micro_batch_size", "micro_batch_size",
                                                training["workload"].value("micro_batch_size", Json()));
  for (const bool falls_back : {false, true}) {
    if (!trainings.empty()) break;
    for (const Json& parallel : parallels)
      for (const Json& size : sizes) {
        Json one = training;
        one["workload"].erase("micro_batch_size");
        if (!size.is_null()) one["workload"]["micro_batch_size"] = size;
        PlanWriter(facts, one, parallel, falls_back, trainings).add_all();
        if (trainings.size() > most_plans) refuse_so_many(name);
      }
  }

  Json machine = document;
  // A rank that is late once, or a link that fails for a time, would delay each collective, but the step only once.
  for (const char* key : {"training", "disturbance", "faults"}) machine.erase(key);
  if (!conditions.is_null()) {
    document["where"] = conditions;
    trainings = let_through(file_of(document, trainings, name), trainings);
    document.erase("where");
  }
  std::vector<SearchedKey> keys = searched_keys(trainings);
  ScenarioFile plain = file_of(unplanned, trainings, name), whole = file_of(document, trainings, name);
  ensure(plain.size() == trainings.size() && whole.size() == trainings.size(), "each plan is a point");
  return {name,
          std::move(machine),
          stated,
          drops_where,
          std::move(keys),
          std::move(trainings),
          std::move(setup),
          std::move(plain),
          std::move(whole)};
}

OpenPlans::OpenPlans(const std::string& text, const std::string& name, const std::vector<std::string>& set, bool free)
    : parts_(make(text, name, set, free)) {}

Scenario OpenPlans::whole(std::size_t i) const {
  return naming_training([&] { return parts_.whole.point(i); });
}

Scenario OpenPlans::plain(std::size_t i) const {
  return naming_training([&] { return parts_.plain.point(i); });
}

std::vector<std::pair<std::string, std::string>> OpenPlans::values_of(std::size_t i) const {
  const Json& training = parts_.trainings[i];
  std::vector<std::pair<std::string, std::string>> values;
  for (const auto& [key, value] : training["parallel"].items())
    values.emplace_back(parallel_path + key, json_text(value));
  values.emplace_back(micro_path, json_text(training["workload"]["micro_batch_size"]));
  return values;
}

std::vector<std::string> OpenPlans::set_of(std::size_t i) const {
  std::vector<std::string> set;
  for (const auto& [path, value] : values_of(i)) {
    const Json::json_pointer pointer(path == micro_path ? "/workload/micro_batch_size"
                                                        : "/parallel/" + path.substr(parallel_path.size()));
    const bool is_stated = parts_.training.contains(pointer);
    const std::string word = without_quotes(value),
                      stated = is_stated ? without_quotes(json_text(parts_.training[pointer])) : default_of(path);
    if (stated != word) set.push_back(fmt::format("{}={}", path, word));
  }
  for (const auto& [key, value] : parts_.training["parallel"].items())
    if (!parts_.trainings[i]["parallel"].contains(key)) set.push_back(fmt::format("{}{}=null", parallel_path, key));
  if (parts_.drops_where) set.emplace_back("where=null");
  return set;
}

bool OpenPlans::lists(const std::string& path) const {
  if (!path.starts_with(parallel_path)) return false;
  const std::string key = path.substr(parallel_path.size());
  return parts_.training["parallel"].contains(key) && is_several(key, parts_.training["parallel"][key]);
}

Scenario OpenPlans::collective(CollectiveOp op, Bytes bytes, const std::vector<std::vector<Actor>>& groups) const {
  Json document = parts_.machine;
  Json collective{{"op", std::string(to_string(op))}, {"bytes", fmt::format("{} B", bytes.count)}};
  for (const std::vector<Actor>& group : groups) {
    Json names;
    for (const Actor rank : group)
      names.push_back(parts_.setup.topology.node(ranks()[static_cast<std::size_t>(rank)]).name);
    collective["groups"].push_back(std::move(names));
  }
  if (!document.contains("library")) {
    const bool is_apart = op == CollectiveOp::send_recv || op == CollectiveOp::all_to_all;
    const Json& parallel = parts_.training["parallel"];
    collective["algorithm"] = is_apart ? Json("direct") : parallel.value("algorithm", Json("ring"));
  }
  document["collective"] = std::move(collective);
  return ScenarioFile::parse(json_text(document), parts_.name).point(0);
}

}  // namespace ringsim
