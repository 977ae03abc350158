#include "scenarios/meaning.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "algorithms/schedule_file.hpp"
#include "scenarios/enum_of.hpp"
#include "scenarios/fields.hpp"
#include "scenarios/meaning_topology.hpp"
#include "sim/error.hpp"
#include "sim/quantity.hpp"

namespace ringsim::scenarios {

namespace {

using Canonical = nlohmann::json;

Arguments arguments_of(const Algorithm& algorithm, const Canonical& given) {
  Arguments arguments;
  for (const Parameter& parameter : algorithm.parameters) {
    const Canonical& value = given[parameter.name];
    if (!parameter.choices.empty()) {
      arguments.texts[parameter.name] = value.get<std::string>();
    } else if (value.get<std::int64_t>() != parameter.fallback) {
      arguments.numbers[parameter.name] = value.get<std::int64_t>();  // a default may lie out of bounds: left out
    }
  }
  return arguments;
}

/// The schedule of a file, held against what is asked for.
void take_file(const Canonical& algorithm, const Blame& blame, const Files& files, Scenario& out) {
  const Files::Content& content = files.read(algorithm["file"]["path"].get<std::string>());
  const auto stored = std::make_shared<const StoredSchedule>(read_schedule(content.text, content.path));
  if (const Mismatch wrong = file_serves(*stored, out.request); !wrong.part.empty())
    blame.fail(wrong.part == "ranks" ? "/collective/algorithm/file" : "/collective/" + wrong.part, wrong.message);
  out.arguments.file = stored;
  out.warnings.insert(out.warnings.end(), stored->warnings.begin(), stored->warnings.end());
  if (const std::string odd = outside_of_range(*stored, out.request.bytes); !odd.empty())
    out.warnings.push_back(content.path + ": " + odd);
}

void check_supports(const Algorithm& algorithm, CollectiveOp op, const Blame& blame) {
  if (algorithm.supports(op)) return;
  std::vector<std::string_view> can, others;
  for (const CollectiveOp each : algorithm.ops) can.push_back(to_string(each));
  for (const Algorithm& other : algorithms()) {
    if (other.supports(op)) others.push_back(other.name);
  }
  blame.fail("/collective/algorithm",
             fmt::format("expected an algorithm for {}, found \"{}\"", to_string(op), algorithm.name),
             fmt::format("{} does {}; {}", algorithm.name, fmt::join(can, ", "),
                         others.empty() ? fmt::format("no algorithm does {}", to_string(op))
                                        : fmt::format("{} is done by {}", to_string(op), fmt::join(others, ", "))));
}

void check_request(const Scenario& scenario, const Canonical& collective, const Json& written, std::size_t gpus,
                   const Blame& blame) {
  const CollectiveRequest& request = scenario.request;
  const Json& said = written["collective"];
  const auto found = [&] { return fmt::format("found op {} by {}", to_string(request.op), scenario.algorithm->name); };
  if (scenario.ranks.size() > gpus) {
    blame.fail("/collective/ranks",
               fmt::format("expected at most {} names, one for each gpu, found {}", gpus, scenario.ranks.size()));
  }
  if (said.contains("root") && request.op != CollectiveOp::broadcast &&
      scenario.algorithm->name != "parameter_server") {
    blame.fail("/collective/root", "expected a root only for broadcast or parameter_server, " + found(),
               "leave \"root\" out");
  }
  if (request.root >= request.ranks) {
    blame.fail("/collective/root", fmt::format("expected a rank from 0 to {}, found {}", request.ranks - 1,
                                               collective["root"].get<std::int64_t>()));
  }
  if (said.contains("both_ways") && request.op != CollectiveOp::pairs) {
    blame.fail("/collective/both_ways", "expected both_ways only for op pairs, " + found(), "leave \"both_ways\" out");
  }
  if (request.op == CollectiveOp::pairs && request.ranks % 2 != 0) {
    blame.fail("/collective/op", fmt::format("expected an even number of ranks for pairs, found {}", request.ranks));
  }
}

/// A level by name, or by the numbers of older NCCLs: 0 never, 1 one switch, 2 several, 3 the host bridge, 4 and 5
/// sockets (docs.nvidia.com, NCCL environment variables; 4 is the NUMA node, which PathType counts as PHB or SYS).
PathType level_of(const std::string& text) {
  constexpr PathType numbers[] = {PathType::loc, PathType::pix, PathType::pxb,
                                  PathType::phb, PathType::sys, PathType::sys};
  if (text.size() == 1 && text[0] >= '0' && text[0] <= '5') return numbers[text[0] - '0'];
  const auto level = path_type(text);
  ensure(level.has_value(), "the table of fields names path types");
  return *level;
}

/// Two spellings of one setting: only one may be used.
void check_spellings(const Json& written, const Blame& blame) {
  if (written.contains("network") && written["network"].contains("packet") &&
      written["network"].value("model", "fair") != "packet")
    blame.fail("/network/packet",
               fmt::format("expected settings of packets only with the model packet, found the model {}",
                           written["network"].value("model", "fair")),
               R"(to compare models: "network": [{"model": "fair"}, {"model": "packet", "packet": {"mtu": "1 KiB"}}])");
  if (!written.contains("transport")) return;
  const Json& said = written["transport"];
  constexpr std::pair<const char*, const char*> same[] = {{"gdr_level", "NCCL_NET_GDR_LEVEL"},
                                                          {"p2p_level", "NCCL_P2P_LEVEL"},
                                                          {"p2p_level", "NCCL_P2P_DISABLE"},
                                                          {"NCCL_P2P_LEVEL", "NCCL_P2P_DISABLE"},
                                                          {"pxn", "NCCL_PXN_DISABLE"}};
  const auto refuse = [&](const char* one, const char* other) {
    blame.fail(fmt::format("/transport/{}", other), fmt::format("expected either {} or {}, found both", one, other),
               "they set the same; leave one out");
  };
  for (const auto& [one, other] : same)
    if (said.contains(one) && said.contains(other)) refuse(one, other);
  for (const char* level : {"gdr_level", "NCCL_NET_GDR_LEVEL"})
    if (said.contains("gpudirect") && said.contains(level) &&
        (said["gpudirect"] == false ||
         level_of(said[level].is_string() ? said[level].get<std::string>() : said[level].dump()) == PathType::loc))
      refuse("gpudirect", level);
}

Transport transport_of(const Canonical& transport) {
  return {.gdr_level = level_of(transport["gdr_level"].get<std::string>()),
          .p2p_level = level_of(transport["p2p_level"].get<std::string>()),
          .pxn = transport["pxn"].get<bool>(),
          .nics = enum_of<Transport::Nics>(transport["nics"],
                                           {{"nearest", Transport::Nics::nearest}, {"all", Transport::Nics::all}}),
          .staging = {.size = {transport["staging"]["size"].get<std::int64_t>()},
                      .depth = transport["staging"]["depth"].get<int>()}};
}

PacketOptions packet_of(const Canonical& packet, const Blame& blame) {
  PacketOptions out{.flow_control = enum_of<PacketOptions::FlowControl>(
                        packet["flow_control"],
                        {{"credit", PacketOptions::FlowControl::credit}, {"pause", PacketOptions::FlowControl::pause}}),
                    .mtu = {packet["mtu"].get<std::int64_t>()},
                    .buffer = {},
                    .lanes = packet["lanes"].get<int>()};
  if (!packet.contains("buffer")) return out;
  out.buffer = Bytes{packet["buffer"].get<std::int64_t>()};
  if (*out.buffer < out.mtu)
    blame.fail("/network/packet/buffer",
               fmt::format("expected room for a packet at least, {}, found {}", format(out.mtu), format(*out.buffer)));
  return out;
}

RoutingSpec routing_of(const Canonical& network, const Blame& blame) {
  using Policy = Routing::Policy;
  RoutingSpec out;
  out.policy = enum_of<Policy>(network["routing"], {{"static", Policy::fixed},
                                                    {"ecmp", Policy::ecmp},
                                                    {"flow_spray", Policy::flow_spray},
                                                    {"packet_spray", Policy::packet_spray}});
  out.seed = network["seed"].get<std::uint64_t>();
  if (!network.contains("table")) return out;
  if (out.policy != Policy::fixed) {
    blame.fail("/network/table", fmt::format("expected a table only with static routing, found {}",
                                             network["routing"].get<std::string>()));
  }
  for (const Canonical& entry : network["table"])
    out.table.push_back(
        {entry["at"].get<std::string>(), entry["to"].get<std::string>(), entry["via"].get<std::string>()});
  return out;
}

}  // namespace

void use_one_spelling(Canonical& canonical) {
  Canonical& transport = canonical["transport"];
  const auto take = [&](const char* nccl, const auto& use) {
    if (!transport.contains(nccl) || !transport[nccl].is_string()) return;  // of a file: perhaps a list
    use(transport[nccl].get<std::string>());
    transport.erase(nccl);
  };
  if (Canonical& op = canonical["collective"]["op"]; op == "alltoall") op = "all_to_all";
  // Other models have no packets, so their settings are no part of the question.
  if (Canonical& network = canonical["network"]; network.is_object() && network.contains("model")) {
    const Canonical& model = network["model"];
    if (model != "packet" && std::find(model.begin(), model.end(), "packet") == model.end()) network.erase("packet");
  }
  take("NCCL_NET_GDR_LEVEL", [&](const std::string& level) { transport["gdr_level"] = to_string(level_of(level)); });
  take("NCCL_P2P_LEVEL", [&](const std::string& level) { transport["p2p_level"] = to_string(level_of(level)); });
  take("NCCL_P2P_DISABLE", [&](const std::string& flag) {
    if (flag == "1") transport["p2p_level"] = "LOC";
  });
  take("NCCL_PXN_DISABLE", [&](const std::string& flag) { transport["pxn"] = flag == "0"; });
  if (!transport["gpudirect"].is_boolean()) return;
  if (transport["gpudirect"] == false) transport["gdr_level"] = "LOC";
  transport.erase("gpudirect");
}

void warn_of_seeds(const Canonical& canonical, const Json& written, const Blame& blame, Scenario& scenario) {
  const auto warn = [&](const char* part, const char* user, const char* because) {
    if (!written.contains(part) || !written[part].contains("seed")) return;
    // Where the file varies what would draw from it, the seed is for its other points.
    const std::string key = fmt::format("{}.{}", part, user);
    for (const auto& [varied, value] : scenario.varied)
      if (varied == key) return;
    scenario.warnings.push_back(
        fmt::format("{}: it has no effect, because {}", blame.where(fmt::format("/{}/seed", part)), because));
  };
  if (canonical["collective"]["order"] == "given") warn("collective", "order", "order is given, not shuffled");
  const Canonical& routing = canonical["network"]["routing"];
  if (routing != "ecmp" && routing != "flow_spray")
    warn("network", "routing", "routing is neither ecmp nor flow_spray");
}

Scenario scenario_of(const Canonical& canonical, const Json& written, const Blame& blame, const Files& files) {
  Scenario out;
  out.topology = topology_of(canonical["topology"], blame, files);
  if (const auto* cluster = std::get_if<Cluster>(&out.topology)) {
    for (const Cluster::Part& part : cluster->parts) {
      const auto& warnings = part.machine->warnings;
      out.warnings.insert(out.warnings.end(), warnings.begin(), warnings.end());
    }
  }
  const std::size_t gpus = gpus_of(out.topology, blame);

  const Canonical& collective = canonical["collective"];
  const Canonical& algorithm = collective["algorithm"];
  const bool from_file = algorithm["name"] == file_algorithm().name;
  out.algorithm = from_file ? &file_algorithm() : find_algorithm(algorithm["name"].get_ref<const std::string&>());
  ensure(out.algorithm != nullptr, "the table of fields names the algorithms of the catalogue");
  out.arguments = arguments_of(*out.algorithm, algorithm);
  if (collective.contains("ranks")) out.ranks = collective["ranks"].get<std::vector<std::string>>();
  out.request = {.op = enum_of<CollectiveOp>(collective["op"], {{"all_reduce", CollectiveOp::all_reduce},
                                                                {"reduce_scatter", CollectiveOp::reduce_scatter},
                                                                {"all_gather", CollectiveOp::all_gather},
                                                                {"broadcast", CollectiveOp::broadcast},
                                                                {"all_to_all", CollectiveOp::all_to_all},
                                                                {"pairs", CollectiveOp::pairs}}),
                 .ranks = static_cast<int>(out.ranks.empty() ? gpus : out.ranks.size()),
                 .bytes = {collective["bytes"].get<std::int64_t>()},
                 .root = collective["root"].get<Actor>(),
                 .both_ways = collective["both_ways"].get<bool>()};
  check_supports(*out.algorithm, out.request.op, blame);
  check_request(out, collective, written, gpus, blame);
  if (from_file) take_file(algorithm, blame, files, out);

  const int helpers = out.algorithm->helpers(out.arguments);
  if (auto* star = std::get_if<Star>(&out.topology)) {
    star->extra_ports = helpers;
  } else if (helpers > 0) {
    blame.fail(
        "/collective/algorithm",
        fmt::format("expected a topology of kind star, whose extra ports hold the {} helper{} of {}, found {}", helpers,
                    helpers == 1 ? "" : "s", out.algorithm->name, canonical["topology"]["kind"].get<std::string>()),
        "use a star, or leave out the parameter that asks for helpers");
  }

  if (collective["order"] == "shuffled") out.shuffle = collective["seed"].get<std::uint64_t>();
  check_spellings(written, blame);
  out.transport = transport_of(canonical["transport"]);
  out.model = enum_of<NetworkModel>(
      canonical["network"]["model"],
      {{"ideal", NetworkModel::ideal}, {"fair", NetworkModel::fair}, {"packet", NetworkModel::packet}});
  if (out.model == NetworkModel::packet) out.packet = packet_of(canonical["network"]["packet"], blame);
  out.routing = routing_of(canonical["network"], blame);
  return out;
}

}  // namespace ringsim::scenarios
