#include "scenarios/decoder/astra_import.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <map>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/text/json.hpp"
#include "sim/text/json_place.hpp"
#include "sim/text/plain_text.hpp"

namespace ringsim::scenarios {

namespace {

/// Keys of a file that --ignore names, each of which has to be there.
class IgnoredKeys {
 public:
  explicit IgnoredKeys(const std::vector<std::string>& keys) : keys_(keys), seen_(keys.size()) {}

  bool has(std::string_view key) {
    const auto found = std::find(keys_.begin(), keys_.end(), key);
    if (found == keys_.end()) return false;
    seen_[static_cast<std::size_t>(found - keys_.begin())] = true;
    return true;
  }
  void require_seen() const {
    for (std::size_t i = 0; i < keys_.size(); ++i)
      if (!seen_[i])
        throw InputError("--ignore",
                         fmt::format("expected a key that would otherwise be refused, found {}", in_quotes(keys_[i])));
  }

 private:
  std::vector<std::string> keys_;
  std::vector<bool> seen_;
};

/// A key of network.yml with its list.
struct YamlList {
  std::size_t line = 0;
  std::vector<std::string> values;
};

/// The part of YAML that ASTRA-sim's networks are written in: keys with lists of words and numbers, "key: [ a, b ]" on
/// one line or several, or lines "- a" below the key; comments. ASTRA-sim itself reads it by yaml-cpp, which would be a
/// package more for four lines.
class YamlLists {
 public:
  explicit YamlLists(const AstraFile& file) : file_(file) {
    std::size_t number = 0;
    std::string_view rest = file.text;
    while (!rest.empty()) {
      const std::size_t end = rest.find('\n');
      take(trimmed(rest.substr(0, std::min(end, rest.find('#')))), ++number);
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    }
    if (is_open_) fail(lists_.at(key_).line, "expected \"]\" at the end of the list, found the end of the file");
  }

  const std::map<std::string, YamlList>& all() const { return lists_; }
  [[noreturn]] void fail(std::size_t line, const std::string& message, const std::string& hint = "") const {
    throw InputError(fmt::format("{}:{}", file_.name, line), message, hint);
  }

 private:
  void take(std::string_view line, std::size_t number) {
    if (line.empty() || line == "---") return;
    if (is_open_) return take_values(line, number);
    if (line.starts_with("- ")) {
      if (key_.empty() || !is_block_)
        fail(number, "expected \"- value\" only below a key without a value, found it elsewhere", four_lists);
      return add(trimmed(line.substr(2)), number);
    }
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos)
      fail(number, fmt::format("expected a key and its list, found {}", in_quotes(line)), four_lists);
    key_ = std::string(trimmed(line.substr(0, colon)));
    const auto [known, is_new] = lists_.try_emplace(key_, YamlList{.line = number, .values = {}});
    if (!is_new)
      fail(number,
           fmt::format("expected each key once, found {} also on line {}", in_quotes(key_), known->second.line));
    const std::string_view value = trimmed(line.substr(colon + 1));
    is_block_ = value.empty();
    if (is_block_) return;
    if (value.front() != '[')
      fail(number, fmt::format("expected a list such as [ Ring ], found {}", in_quotes(value)), four_lists);
    is_open_ = true;
    take_values(value.substr(1), number);
  }

  void take_values(std::string_view text, std::size_t number) {
    const std::size_t end = text.find(']');
    std::string_view values = text.substr(0, end);
    while (!trimmed(values).empty()) {
      const std::size_t comma = values.find(',');
      add(trimmed(values.substr(0, comma)), number);
      values.remove_prefix(comma == std::string_view::npos ? values.size() : comma + 1);
    }
    if (end == std::string_view::npos) return;
    is_open_ = false;
    if (const std::string_view more = trimmed(text.substr(end + 1)); !more.empty())
      fail(number, fmt::format("expected the end of the line after the list, found {}", in_quotes(more)));
  }

  void add(std::string_view value, std::size_t number) {
    if (value.empty()) fail(number, "expected a value between commas, found none");
    if (value.find_first_of("[]{}\"'&*!|>%@`:") != std::string_view::npos)
      fail(number, fmt::format("expected a word or a number, found {}", in_quotes(value)), four_lists);
    lists_.at(key_).values.emplace_back(value);
  }

  static constexpr const char* four_lists =
      "an ASTRA-sim network consists of four lists: topology: [ Ring ], npus_count: [ 8 ], bandwidth: [ 50.0 ], "
      "latency: [ 500.0 ]";
  const AstraFile& file_;
  std::map<std::string, YamlList> lists_;
  std::string key_;
  bool is_open_ = false, is_block_ = false;
};

enum class AstraBlock { ring, star, full_mesh };

struct AstraNetwork {
  AstraBlock kind = AstraBlock::ring;
  std::int64_t ranks = 0;
  Bandwidth bandwidth;
  Picoseconds latency{0};

  /// Links that a message passes at least.
  int hops() const { return kind == AstraBlock::star ? 2 : 1; }
};

AstraNetwork read_network(const AstraFile& file, IgnoredKeys& ignored) {
  const YamlLists yaml(file);
  constexpr std::array keys = std::to_array<const char*>({"topology", "npus_count", "bandwidth", "latency"});
  for (const auto& [key, list] : yaml.all())
    if (std::find(keys.begin(), keys.end(), key) == keys.end() && !ignored.has(key))
      yaml.fail(list.line,
                fmt::format("expected topology, npus_count, bandwidth and latency, found {}", in_quotes(key)),
                fmt::format("to skip it, use --ignore {}", key));
  const auto only = [&](const char* key) -> const YamlList& {
    const auto found = yaml.all().find(key);
    if (found == yaml.all().end()) throw InputError(file.name, fmt::format("expected the key \"{}\", found none", key));
    if (found->second.values.size() != 1)
      yaml.fail(found->second.line,
                fmt::format("expected one dimension, found {} in \"{}\"", found->second.values.size(), key),
                "ASTRA-sim divides collectives over several dimensions into phases; describe the machine as a topology "
                "of kind graph and use the algorithm hierarchical or torus");
    return found->second;
  };
  const auto number = [&](const char* key, double least, double most) {
    const YamlList& list = only(key);
    const std::string& text = list.values.front();
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !(value >= least) || !(value <= most))
      yaml.fail(list.line, fmt::format("expected {} from {} to {}, found {}", key, least, most, in_quotes(text)));
    return value;
  };
  AstraNetwork network;
  const YamlList& kind = only("topology");
  constexpr std::array kinds = std::to_array<std::pair<const char*, AstraBlock>>(
      {{"Ring", AstraBlock::ring}, {"Switch", AstraBlock::star}, {"FullyConnected", AstraBlock::full_mesh}});
  const auto* const found =
      std::find_if(kinds.begin(), kinds.end(), [&](const auto& each) { return each.first == kind.values.front(); });
  if (found == kinds.end())
    yaml.fail(kind.line,
              fmt::format("expected Ring, Switch or FullyConnected, found {}", in_quotes(kind.values.front())));
  network.kind = found->second;
  const double ranks = number("npus_count", 2, 65536);
  if (ranks != std::floor(ranks))
    yaml.fail(only("npus_count").line, fmt::format("expected a whole npus_count, found {}", ranks));
  network.ranks = static_cast<std::int64_t>(ranks);
  constexpr double gib = 1 << 30, ps_of_ns = 1000;
  network.bandwidth = {std::llround(number("bandwidth", 1e-3, 1e6) * gib)};
  network.latency = Picoseconds(std::llround(number("latency", 0, 1e9) * ps_of_ns));
  return network;
}

struct AstraSystem {
  std::string algorithm = "ring";
  Picoseconds endpoint_delay{0};       // of each message
  double memory_bytes_per_second = 0;  // 0: additions take no time
};

/// Keys that change nothing about one collective in one dimension whose chunks are one.
constexpr std::array without_effect = std::to_array<const char*>(
    {"scheduling-policy", "collective-optimization", "active-chunks-per-dimension", "peak-perf", "boost-mode",
     "trace-enabled", "track-local-mem", "local-mem-trace-filename", "L", "o", "g", "G"});

struct AstraImplementation {
  const char* op;
  const char* key;
};
constexpr std::array implementations =
    std::to_array<AstraImplementation>({{"all_reduce", "all-reduce-implementation"},
                                        {"reduce_scatter", "reduce-scatter-implementation"},
                                        {"all_gather", "all-gather-implementation"},
                                        {"all_to_all", "all-to-all-implementation"}});

const AstraImplementation& implementation_of(const std::string& op) {
  const auto* const found = std::find_if(implementations.begin(), implementations.end(),
                                         [&](const AstraImplementation& each) { return each.op == op; });
  ensure(found != implementations.end(), "the command line sets the operation");
  return *found;
}

std::string read_algorithm(const Place& list, const std::string& op, const AstraNetwork& network) {
  const std::vector<Place> items = list.items();
  if (items.size() != 1) list.fail(fmt::format("expected one algorithm for one dimension, found {}", items.size()));
  const std::string word = items.front().text();
  // With one dimension "one..." says the same (astraccl/CollectiveImplLookup.cc).
  const std::map<std::string, std::string> names{{"ring", "ring"},
                                                 {"oneRing", "ring"},
                                                 {"direct", "direct"},
                                                 {"oneDirect", "direct"},
                                                 {"halvingDoubling", "halving_doubling"},
                                                 {"oneHalvingDoubling", "halving_doubling"}};
  const auto known = names.find(word);
  const bool is_same = known != names.end() && (op != "all_to_all" || known->second == "direct");
  if (!is_same)
    items.front().fail(fmt::format("expected {}, found {}",
                                   op == "all_to_all" ? "direct" : "ring, direct or halvingDoubling", in_quotes(word)),
                       "other ASTRA-sim algorithms differ from those of ringsim; remove --system and set "
                       "collective.algorithm yourself");
  if (known->second == "halving_doubling" && !std::has_single_bit(static_cast<std::uint64_t>(network.ranks)))
    items.front().fail(fmt::format("expected a power of two of npus for halvingDoubling, found {}", network.ranks));
  return known->second;
}

AstraSystem read_system(const AstraFile& file, const AstraOptions& options, const AstraNetwork& network,
                        IgnoredKeys& ignored, std::vector<std::string>& warnings) {
  const Json json = parse_json(file.text, file.name);
  const Place root{json, file.name, ""};
  AstraSystem system;
  system.endpoint_delay = Picoseconds(10'000);  // ASTRA-sim's, if the file has none (system/Sys.cc)
  std::vector<std::string> idle;
  const auto rate = [](const Place& place) {
    if (!place.json.is_number() || !(place.json.get<double>() >= 0) || place.json.get<double>() > 1e9)
      place.fail(fmt::format("expected a number from 0 to 1e9, found {}", describe(place.json)));
    return place.json.get<double>();
  };
  const auto must_be = [&](const Place& place, double wanted, const std::string& key, const std::string& hint) {
    if (rate(place) != wanted && !ignored.has(key))
      place.fail(fmt::format("expected {}, found {}", wanted, describe(place.json)), hint);
  };
  bool has_algorithm = false, has_splits = false;
  for (const auto& [key, place] : root.entries()) {
    const std::string& name = key;
    const auto* const implementation = std::find_if(implementations.begin(), implementations.end(),
                                                    [&](const AstraImplementation& each) { return each.key == name; });
    if (implementation != implementations.end()) {
      if (implementation->op != options.op) continue;  // of another operation
      system.algorithm = read_algorithm(place, options.op, network);
      has_algorithm = true;
    } else if (key == "endpoint-delay") {
      system.endpoint_delay = Picoseconds(ignored.has(key) ? 0 : std::llround(rate(place) * 1000));
    } else if (key == "local-mem-bw") {
      if (!ignored.has(key)) system.memory_bytes_per_second = rate(place) * 1e9;
    } else if (key == "preferred-dataset-splits") {
      has_splits = true;
      must_be(place, 1, key,
              "with one active chunk, chunks run one after another: give --bytes for one chunk and multiply the time; "
              "--ignore preferred-dataset-splits assumes 1");
    } else if (key == "roofline-enabled" || key == "model-shared-bus" || key == "replay-only") {
      must_be(place, 0, key, fmt::format("--ignore {} assumes 0", key));
    } else if (std::find(without_effect.begin(), without_effect.end(), key) != without_effect.end()) {
      idle.push_back(key);
    } else if (!ignored.has(key)) {
      place.fail("expected a key that ringsim supports, found another one",
                 fmt::format("to skip it, use --ignore {}", key));
    }
  }
  if (!has_algorithm)
    throw InputError(file.name, fmt::format("expected an algorithm for {}, found none", options.op),
                     "--op chooses the operation");
  if (!has_splits)
    throw InputError(file.name, "expected \"preferred-dataset-splits\", found none", "ASTRA-sim requires it");
  if (!idle.empty())
    warnings.push_back(fmt::format("{}: keys without effect on one collective in one dimension: {}", file.name,
                                   fmt::join(idle, ", ")));
  return system;
}

/// Refuses what of the system cannot be said in a scenario for this network and algorithm.
void require_same(const AstraSystem& system, const AstraFile& file, const AstraOptions& options,
                  const AstraNetwork& network) {
  const bool is_ring = system.algorithm == "ring";
  // ASTRA-sim's first exchange, of half the data, is with the neighbor (HalvingDoubling.cc: rank_offset = 1), that of
  // halving_doubling with the rank at the other end. Where each pair has a path of its own, times are equal.
  if (network.kind == AstraBlock::ring && network.ranks > 2 && system.algorithm == "halving_doubling")
    throw InputError(fmt::format("{}: /{}", file.name, implementation_of(options.op).key),
                     "expected ring or direct on a Ring, found halvingDoubling: ASTRA-sim exchanges large blocks with "
                     "near ranks, ringsim with distant ranks over more links",
                     "on a Switch or FullyConnected, both take the same time");
  if (system.endpoint_delay.count() > 0 && network.kind == AstraBlock::ring && !is_ring)
    throw InputError(file.name + ": /endpoint-delay",
                     fmt::format("expected 0 with {} on a Ring, found a time: messages over several hops wait once in "
                                 "ASTRA-sim, but at each hop in ringsim",
                                 system.algorithm),
                     "to skip it, use --ignore endpoint-delay");
  const bool adds = options.op == "all_reduce" || options.op == "reduce_scatter";
  if (system.memory_bytes_per_second > 0 && adds && !is_ring)
    throw InputError(file.name + ": /local-mem-bw",
                     fmt::format("expected this key only with ring, found {}: ASTRA-sim adds the messages of this "
                                 "algorithm in parallel, or not all of them; ringsim adds them one after another",
                                 system.algorithm),
                     "to skip it, use --ignore local-mem-bw");
}

}  // namespace

ImportedScenario import_astra(const AstraFile& network_file, const std::optional<AstraFile>& system_file,
                              const AstraOptions& options) {
  ImportedScenario out;
  IgnoredKeys ignored(options.ignore);
  const AstraNetwork network = read_network(network_file, ignored);
  AstraSystem system;
  if (options.op == "all_to_all") system.algorithm = "direct";
  if (system_file) {
    system = read_system(*system_file, options, network, ignored, out.warnings);
    require_same(system, *system_file, options, network);
  }
  ignored.require_seen();
  const Picoseconds latency = network.latency + Picoseconds(system.endpoint_delay.count() / network.hops());
  if (system.endpoint_delay.count() > 0)
    out.warnings.push_back(
        fmt::format("{}: endpoint-delay is included in the latency; ASTRA-sim also waits after the last message, which "
                    "takes {} longer",
                    system_file->name, format(system.endpoint_delay)));
  const bool shares = network.kind == AstraBlock::ring
                          ? system.algorithm != "ring"
                          : network.kind == AstraBlock::star && system.algorithm == "direct";
  if (shares)
    out.warnings.push_back(fmt::format(
        "{}: in ringsim, messages of {} share {}; ASTRA-sim's congestion-unaware backend simulates each message "
        "independently, and its congestion-aware backend sends whole messages one after another",
        network_file.name, system.algorithm, network.kind == AstraBlock::star ? "the ports of the switch" : "links"));
  constexpr const char* kinds[] = {"ring", "star", "full_mesh"};
  Json scenario = Json::object();
  scenario["version"] = 1;
  scenario["topology"] = {{"kind", kinds[static_cast<std::size_t>(network.kind)]},
                          {"ranks", network.ranks},
                          {"link", {{"bandwidth", format(network.bandwidth)}, {"latency", format(latency)}}}};
  scenario["network"] = "ideal";
  const bool adds = options.op == "all_reduce" || options.op == "reduce_scatter";
  constexpr double accesses = 3;  // a write and two reads
  if (system.memory_bytes_per_second > 0 && adds)
    scenario["devices"]["gpu"]["reduce"] = format(Bandwidth{std::llround(system.memory_bytes_per_second / accesses)});
  scenario["collective"] = {{"op", options.op}, {"bytes", format(options.bytes)}, {"algorithm", system.algorithm}};
  constexpr std::size_t width = 100;
  out.text = json_in_lines(scenario, width) + '\n';
  return out;
}

}  // namespace ringsim::scenarios
