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
  return {"true", of.run.is_turned_by_acs()
                      ? ""
                      : "no message of this run passes between two devices below the same PCIe switch"};
}

Effect of_depth(const EffectOf& of) {
  return {std::to_string(of.of<Staging>().depth),
          of.run.stages() ? "" : "no message of this run is staged in host memory or on a relaying GPU"};
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
      level_field("NCCL_NET_GDR_LEVEL", "NCCL's name for gdr_level; 0 to 5 are the legacy values.", "", levels),
      level_field("NCCL_P2P_LEVEL", "NCCL's name for p2p_level; 0 to 5 are the legacy values.", "", levels),
      level_field("NCCL_P2P_DISABLE", "\"1\": the same as p2p_level LOC.", "", flag),
      level_field("NCCL_PXN_DISABLE", "\"1\": the same as pxn false.", "", flag)};
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
                      .doc = "The buffers in which data is staged, in host memory or on a relaying GPU.",
                      .members = {{.name = "size",
                                   .type = Type::size,
                                   .doc = "The size of a slot.",
                                   .fallback = "512 KiB",
                                   .min = 1,
                                   .examples = {R"("512 KiB")"},
                                   .into = &Staging::size},
                                  {.name = "depth",
                                   .type = Type::whole,
                                   .doc = "The number of slots.",
                                   .fallback = "8",
                                   .min = 1,
                                   .max = 65'536,
                                   .into = &Staging::depth,
                                   .effect = of_depth}},
                      .into = &Transport::staging};
  Field field{
      .name = "transport",
      .type = Type::object,
      .doc = "How data moves along a path between two GPUs.",
      .members = {
          {.name = "gpudirect",
           .type = Type::boolean,
           .doc =
               "GPUDirect RDMA: NICs access GPU memory without a copy in host memory. false is the same as gdr_level "
               "LOC. An explicit true also enables it for GPUs and NICs with gdr=\"0\" in the machine file.",
           .fallback = "true",
           .words = {"gdr", "gpudirect_rdma"},
           .only_said = true,
           .into = &Transport::assumes_gpudirect},
          level_field("gdr_level",
                      "The maximum distance between a NIC and a GPU that use GPUDirect RDMA. P2C: PXB, or across a "
                      "chip-to-chip link.",
                      "P2C", {"LOC", "PIX", "PXB", "P2C", "PHB", "SYS"}, {&Transport::gdr_level, read_level}),
          level_field("p2p_level",
                      "The maximum distance between two GPUs of a host that access each other's memory, if the machine "
                      "allows it.",
                      "SYS", {"LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "PHB", "SYS"},
                      {&Transport::p2p_level, read_level}),
          {.name = "pxn",
           .type = Type::boolean,
           .doc = "A GPU may send through the NIC of another GPU that it reaches over NVLink.",
           .fallback = "true",
           .into = &Transport::pxn,
           .effect = of_pxn},
          {.name = "acs",
           .type = Type::boolean,
           .doc = "ACS is enabled in PCIe switches: data between two devices below the same switch goes up to the root "
                  "complex and back. NCCL does not take this into account.",
           .fallback = "false",
           .into = &Transport::acs,
           .effect = of_acs},
          {.name = "nics",
           .type = Type::text,
           .doc = "nearest: a message uses one NIC at each end; all: a message is split evenly over all NICs; "
                  "per_channel: a message uses one NIC, and the channels of a GPU alternate between its nearest NICs.",
           .fallback = "nearest",
           .choices = {"nearest", "all", "per_channel"},
           .into = {&Transport::nics,
                    {{"nearest", Transport::Nics::nearest},
                     {"all", Transport::Nics::all},
                     {"per_channel", Transport::Nics::per_channel}}}},
          {.name = "protocol",
           .type = Type::text,
           .doc = "none: the textbook model, in which every byte is payload; ll, ll128, simple: NCCL's protocols.",
           .fallback = "none",
           .choices = protocol_names(),
           .words = {"proto"}},
          {.name = "launch",
           .type = Type::time,
           .doc = "The time before the first step. Default: depends on the protocol.",
           .examples = {R"("8.4 us")"}},
          {.name = "channels",
           .type = Type::whole,
           .doc = "The number of channels on which the algorithm runs concurrently. Each channel handles a part of the "
                  "buffer.",
           .fallback = "1",
           .min = 1,
           .max = most_channels,
           .words = {"nchannels", "n_channels", "num_channels"}},
          {.name = "chunk",
           .type = Type::size,
           .doc = "The maximum number of bytes that a channel processes at a time. Default: its entire part of the "
                  "buffer.",
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
  const Field entry{.name = "entry",
                    .type = Type::object,
                    .doc = "One entry of a switch's routing table.",
                    .members = {node("at", "The switch.", R"("leaf0")", &Entry::at),
                                node("to", "The destination: a NIC, a node (all of its NICs), or * for all.",
                                     R"("node3.nic0")", &Entry::to),
                                node("via", "The next hop.", R"("spine1")", &Entry::via)}};
  const Field packet{.name = "packet",
                     .type = Type::object,
                     .doc = "Settings of the packet model.",
                     .members = {{.name = "mtu",
                                  .type = Type::size,
                                  .doc = "The packet size. Larger packets simulate faster but less accurately.",
                                  .fallback = "4 KiB",
                                  .min = 1,
                                  .max = 64LL << 20,
                                  .examples = {R"("4 KiB")"},
                                  .into = &PacketOptions::mtu},
                                 {.name = "buffer",
                                  .type = Type::size,
                                  .doc = "The buffer at the end of each link. Default: the bytes that a link carries "
                                         "in one round trip (two with pause), plus 16 packets.",
                                  .min = 1,
                                  .max = 1LL << 40,
                                  .examples = {R"("256 KiB")"},
                                  .into = &PacketOptions::buffer},
                                 {.name = "lanes",
                                  .type = Type::whole,
                                  .doc = "The maximum number of virtual lanes used to prevent routing deadlocks.",
                                  .fallback = "15",
                                  .min = 1,
                                  .max = 256,
                                  .into = &PacketOptions::lanes},
                                 {.name = "flow_control",
                                  .type = Type::text,
                                  .doc = "credit: a packet is sent only if buffer space is reserved for it "
                                         "(InfiniBand); pause: a receiver with a full buffer stops its sender (RoCE).",
                                  .fallback = "credit",
                                  .choices = {"credit", "pause"},
                                  .into = {&PacketOptions::flow_control,
                                           {{"credit", PacketOptions::FlowControl::credit},
                                            {"pause", PacketOptions::FlowControl::pause}}}}},
                     .into = &Scenario::packet};
  return {
      .name = "network",
      .type = Type::object,
      .doc = "How flows share links and choose among equally short paths.",
      .members =
          {{.name = "model",
            .type = Type::text,
            .doc = "ideal: flows share only the first and last link of a path; fair: flows share every link max-min "
                   "fairly; packet: packets take turns on links and wait in finite buffers.",
            .fallback = "fair",
            .choices = {"ideal", "fair", "packet"},
            .into = {&Scenario::model,
                     {{"ideal", NetworkModel::ideal}, {"fair", NetworkModel::fair}, {"packet", NetworkModel::packet}}}},
           packet,
           {.name = "routing",
            .type = Type::text,
            .doc = "static: routing tables (D-mod-k in switched fabrics); ecmp: a seeded hash per connection; "
                   "flow_spray: successive messages take the paths in turn; packet_spray: every message uses all "
                   "paths; auto: depends on the machines' NICs (static for InfiniBand, ecmp for RoCE and TCP, "
                   "packet_spray for EFA and Slingshot), and static without NICs.",
            .fallback = "auto",
            .choices = {"auto", "static", "ecmp", "flow_spray", "packet_spray"}},
           {.name = "seed",
            .type = Type::whole,
            .doc = "Random seed of the ecmp hash and of the first path of flow_spray.",
            .fallback = "0",
            .into = Member::through<Scenario>([](Scenario& to) -> std::uint64_t& { return to.routing.seed; })},
           {.name = "table",
            .type = Type::list,
            .doc = "Entries that replace entries of the routing tables. They imply static routing. An entry for a NIC "
                   "takes precedence over one for all NICs.",
            .min = 1,
            .examples = {R"([{"at": "leaf0", "to": "node3.nic0", "via": "spine1"}])"},
            .members = {entry}}},
      .named_by = "model"};
}

}  // namespace ringsim::scenarios
