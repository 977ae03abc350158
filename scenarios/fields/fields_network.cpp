// How data moves along a path, and how messages share links, as fields.
#include <nlohmann/json.hpp>
#include <utility>

#include "scenarios/fields/fields.hpp"
#include "scenarios/scenario.hpp"
#include "sim/base/error.hpp"
#include "sim/run/protocol.hpp"
#include "sim/topology/routes.hpp"

namespace ringsim::scenarios {

namespace {

/// NCCL's limit (NVIDIA/nccl 5067397c2676 src/include/device.h, MAXCHANNELS).
constexpr std::int64_t most_channels = 64;

void read_level(const Field&, const nlohmann::json& name, PathType& out) {
  const auto level = path_type(name.get<std::string>());
  ensure(level.has_value(), "the table of fields names path types");
  out = *level;
}

Effect of_pxn(const EffectOf& of) {
  return {"false (NCCL_PXN_DISABLE=1)", of.run.would_use_pxn() ? "" : "no message of this run would use PXN"};
}

Effect of_acs(const EffectOf& of) {
  return {"true",
          of.run.is_turned_by_acs() ? "" : "no message of this run turns around in a PCIe switch below a root complex"};
}

Effect of_depth(const EffectOf& of) {
  return {std::to_string(of.of<Staging>().depth), of.run.stages() ? "" : "no message of this run is staged in memory"};
}

Field level_field(std::string name, std::string doc, std::string fallback, std::vector<std::string> levels,
                  Member into = {}) {
  return {.name = std::move(name),
          .type = Type::text,
          .doc = std::move(doc),
          .fallback = std::move(fallback),
          .choices = std::move(levels),
          .into = std::move(into)};
}

/// The same settings as the environment variables of NCCL spell them.
std::vector<Field> nccl_fields() {
  const std::vector<std::string> levels = {"LOC", "NVL", "PIX", "PXB", "P2C", "PHB", "SYS",
                                           "0",   "1",   "2",   "3",   "4",   "5"};
  const std::vector<std::string> flag = {"0", "1"};
  std::vector<Field> fields = {
      level_field("NCCL_NET_GDR_LEVEL", "gdr_level in NCCL's spelling; 0 to 5 are its older numbers.", "", levels),
      level_field("NCCL_P2P_LEVEL", "p2p_level in NCCL's spelling; 0 to 5 are its older numbers.", "", levels),
      level_field("NCCL_P2P_DISABLE", "\"1\": p2p_level LOC.", "", flag),
      level_field("NCCL_PXN_DISABLE", "\"1\": pxn false.", "", flag)};
  for (Field& field : fields) field.digits = true;  // `--set transport.NCCL_P2P_DISABLE=1` gives a number
  return fields;
}

std::vector<std::string> protocol_names() {
  std::vector<std::string> names;
  for (const Protocol& protocol : protocols()) names.emplace_back(protocol.name);
  return names;
}

}  // namespace

Field transport_field() {
  const Field staging{.name = "staging",
                      .type = Type::object,
                      .doc = "The slots in which data is staged in memory.",
                      .members = {{.name = "size",
                                   .type = Type::size,
                                   .doc = "Bytes of a slot.",
                                   .fallback = "512 KiB",
                                   .min = 1,
                                   .examples = {R"("512 KiB")"},
                                   .into = &Staging::size},
                                  {.name = "depth",
                                   .type = Type::whole,
                                   .doc = "Number of slots.",
                                   .fallback = "8",
                                   .min = 1,
                                   .max = 65'536,
                                   .into = &Staging::depth,
                                   .effect = of_depth}},
                      .into = &Transport::staging};
  Field field{
      .name = "transport",
      .type = Type::object,
      .doc = "How data moves along a path.",
      .members = {
          {.name = "gpudirect",
           .type = Type::boolean,
           .doc = "GPUDirect RDMA: NIC and GPU exchange data without a copy in host memory; false: gdr_level LOC. If "
                  "set to true, GPUs and NICs with gdr=\"0\" in the machine's file have it as well.",
           .fallback = "true",
           .words = {"gdr", "gpudirect_rdma"},
           .only_said = true,
           .into = &Transport::assumes_gpudirect},
          level_field(
              "gdr_level",
              "The farthest at which NIC and GPU exchange data directly; P2C: PXB, or behind a chip-to-chip link.",
              "P2C", {"LOC", "PIX", "PXB", "P2C", "PHB", "SYS"}, {&Transport::gdr_level, read_level}),
          level_field(
              "p2p_level", "The farthest at which GPUs of a host reach each other's memory, if the machine allows it.",
              "SYS", {"LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "PHB", "SYS"}, {&Transport::p2p_level, read_level}),
          {.name = "pxn",
           .type = Type::boolean,
           .doc = "A GPU may send through the NIC of another GPU to which it has NVLink.",
           .fallback = "true",
           .into = &Transport::pxn,
           .effect = of_pxn},
          {.name = "acs",
           .type = Type::boolean,
           .doc = "PCIe switches have ACS on: what goes from one device below a switch to another goes up to the root "
                  "complex and down again, which NCCL does not know.",
           .fallback = "false",
           .into = &Transport::acs,
           .effect = of_acs},
          {.name = "nics",
           .type = Type::text,
           .doc = "nearest: a message takes one NIC at each end; all: it is cut into equal parts, one for each NIC; "
                  "per_channel: one NIC, and the channels of a GPU that has several near ones take turns.",
           .fallback = "nearest",
           .choices = {"nearest", "all", "per_channel"},
           .into = {&Transport::nics,
                    {{"nearest", Transport::Nics::nearest},
                     {"all", Transport::Nics::all},
                     {"per_channel", Transport::Nics::per_channel}}}},
          {.name = "protocol",
           .type = Type::text,
           .doc = "none: the textbooks' model, every byte is payload; ll, ll128, simple: NCCL's.",
           .fallback = "none",
           .choices = protocol_names(),
           .words = {"proto"}},
          {.name = "launch",
           .type = Type::time,
           .doc = "The time before the first step; default: the protocol's.",
           .examples = {R"("8.4 us")"}},
          {.name = "channels",
           .type = Type::whole,
           .doc = "Over how many channels the algorithm runs at once, each with a part of the buffer.",
           .fallback = "1",
           .min = 1,
           .max = most_channels,
           .words = {"nchannels", "n_channels", "num_channels"}},
          {.name = "chunk",
           .type = Type::size,
           .doc = "The most bytes of the buffer that a channel processes at a time, piece by piece; default: its whole "
                  "part.",
           .min = 1,
           .examples = {R"("512 KiB")"}},
          staging}};
  for (Field& each : nccl_fields()) field.members.push_back(std::move(each));
  return field;
}

Field network_field() {
  const auto node = [](std::string name, std::string doc, std::string example, Member into) {
    return Field{.name = std::move(name),
                 .type = Type::text,
                 .doc = std::move(doc),
                 .required = true,
                 .min = 1,
                 .examples = {std::move(example)},
                 .into = std::move(into)};
  };
  using Entry = RoutingSpec::Entry;
  const Field entry{
      .name = "entry",
      .type = Type::object,
      .doc = "One entry of a switch's table.",
      .members = {node("at", "The switch.", R"("leaf0")", &Entry::at),
                  node("to", "A NIC, a node (all of its NICs), or * for all.", R"("node3.nic0")", &Entry::to),
                  node("via", "The neighbor that comes next.", R"("spine1")", &Entry::via)}};
  const Field packet{
      .name = "packet",
      .type = Type::object,
      .doc = "Of the model packet.",
      .members =
          {{.name = "mtu",
            .type = Type::size,
            .doc = "Bytes of a packet. Larger packets simulate faster and are less exact.",
            .fallback = "4 KiB",
            .min = 1,
            .max = 64LL << 20,
            .examples = {R"("4 KiB")"},
            .into = &PacketOptions::mtu},
           {.name = "buffer",
            .type = Type::size,
            .doc = "Room at the end of each link; default: what keeps the link busy for a round trip (with "
                   "pause twice that), and 16 packets.",
            .min = 1,
            .max = 1LL << 40,
            .examples = {R"("256 KiB")"},
            .into = &PacketOptions::buffer},
           {.name = "lanes",
            .type = Type::whole,
            .doc = "The most virtual lanes over which routes are divided so that none wait for each other in a circle.",
            .fallback = "15",
            .min = 1,
            .max = 256,
            .into = &PacketOptions::lanes},
           {.name = "flow_control",
            .type = Type::text,
            .doc = "credit: a packet starts if room is reserved for it (InfiniBand); pause: a receiver that fills up "
                   "stops its sender (RoCE).",
            .fallback = "credit",
            .choices = {"credit", "pause"},
            .into = {&PacketOptions::flow_control,
                     {{"credit", PacketOptions::FlowControl::credit}, {"pause", PacketOptions::FlowControl::pause}}}}},
      .into = &Scenario::packet};
  return {
      .name = "network",
      .type = Type::object,
      .doc = "How flows share links, and which of several equally short paths they take.",
      .members =
          {{.name = "model",
            .type = Type::text,
            .doc = "ideal: only a path's first and last link are shared; fair: max-min fair shares on every "
                   "link; packet: packets take turns on links and wait in finite buffers.",
            .fallback = "fair",
            .choices = {"ideal", "fair", "packet"},
            .into = {&Scenario::model,
                     {{"ideal", NetworkModel::ideal}, {"fair", NetworkModel::fair}, {"packet", NetworkModel::packet}}}},
           packet,
           {.name = "routing",
            .type = Type::text,
            .doc =
                "static: tables (D-mod-k in fabrics of switches); ecmp: a seeded hash for each connection; "
                "flow_spray: message after message in turn; packet_spray: all paths at once; auto: as the network of "
                "the machines' NICs does (InfiniBand static, RoCE and TCP ecmp, EFA and Slingshot packet_spray), and "
                "static without NICs.",
            .fallback = "auto",
            .choices = {"auto", "static", "ecmp", "flow_spray", "packet_spray"}},
           {.name = "seed",
            .type = Type::whole,
            .doc = "Of ecmp's hash, and of where flow_spray begins.",
            .fallback = "0",
            .into = Member::through<Scenario>([](Scenario& to) -> std::uint64_t& { return to.routing.seed; })},
           {.name = "table",
            .type = Type::list,
            .doc = "Makes routing static: entries that replace those of the tables; one for a NIC takes precedence "
                   "over one for all.",
            .min = 1,
            .examples = {R"([{"at": "leaf0", "to": "node3.nic0", "via": "spine1"}])"},
            .members = {entry}}},
      .named_by = "model"};
}

}  // namespace ringsim::scenarios
