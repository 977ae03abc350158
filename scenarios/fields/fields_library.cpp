// A communication library instead of an algorithm, as fields.
#include <fmt/format.h>

#include <utility>

#include "scenarios/fields/fields.hpp"
#include "topologies/nccl/nccl_library.hpp"
#include "topologies/nccl/nccl_variables.hpp"
#include "topologies/rccl/rccl_machine.hpp"

namespace ringsim::scenarios {

namespace {

Field variable(std::string name, std::string doc, std::vector<std::string> choices, std::string example = {}) {
  Field field{.name = std::move(name),
              .type = Type::text,
              .doc = std::move(doc),
              .min = 1,
              .choices = std::move(choices),
              .digits = true};
  if (!example.empty()) field.examples = {std::move(example)};
  return field;
}

Field count(std::string name, std::string doc, std::int64_t min, std::int64_t max) {
  return {.name = std::move(name), .type = Type::whole, .doc = std::move(doc), .min = min, .max = max};
}

/// Libraries that people know.
std::vector<KnownName> other_libraries() {
  std::vector<KnownName> names;
  for (const char* name :
       {"gloo", "mpi", "openmpi", "mpich", "ucc", "oneccl", "hccl", "msccl", "mscclpp", "mscclang", "blink"})
    names.push_back({name, "which is not modeled", fmt::format("nccl and rccl are; {}", nccl::without_a_library)});
  return names;
}

/// Accepted, and without effect; library_warnings.cpp warns of those that change times.
Field accepted_alone(std::string name, std::string doc) {
  return {.name = std::move(name), .type = Type::ignored, .doc = std::move(doc), .digits = true};
}

Field nccl_env(const std::vector<Field>& transport) {
  Field env{.name = "env",
            .type = Type::object,
            .doc = "NCCL's environment variables, in its own spelling.",
            .members = {
                variable("NCCL_ALGO", "Algorithms that may be chosen; ^NAME: all but that.", {}, R"("Ring,Tree")"),
                variable("NCCL_PROTO", "Protocols that may be chosen; ^NAME: all but that.", {}, R"("^LL128")"),
                count("NCCL_MIN_NCHANNELS", "Minimum number of channels of rings and trees.", 1, 64),
                count("NCCL_MAX_NCHANNELS", "Maximum number of channels of rings and trees.", 1, 64),
                count("NCCL_MIN_NRINGS", "NCCL_MIN_NCHANNELS by its older name.", 1, 64),
                count("NCCL_MAX_NRINGS", "NCCL_MAX_NCHANNELS by its older name.", 1, 64),
                count("NCCL_MIN_CTAS", "As NCCL_MIN_NCHANNELS; the larger counts. From 2.17 on.", 1, 64),
                count("NCCL_MAX_CTAS", "As NCCL_MAX_NCHANNELS; the smaller counts. From 2.17 on.", 1, 64),
                count("NCCL_MIN_P2P_NCHANNELS", "Minimum number of channels of sends and receives.", 1, 64),
                count("NCCL_MAX_P2P_NCHANNELS", "Maximum number of channels of sends and receives.", 1, 64),
                count("NCCL_NCHANNELS_PER_NET_PEER",
                      "Channels of sends and receives to a peer on another node. From 2.12 on.", 1, 64),
                count("NCCL_P2P_LL_THRESHOLD",
                      "The most bytes of a channel for which sends and receives use LL; \"0\": never LL. From 2.14 on.",
                      0, 1LL << 40),
                count("NCCL_P2P_NET_CHUNKSIZE",
                      "Bytes of a chunk of sends and receives to another node, by Simple. From 2.14 on.", 1LL << 12,
                      1LL << 30),
                variable("NCCL_NET_GDR_C2C",
                         "\"0\", \"1\": GPUDirect over a chip-to-chip link. From 2.26 on; default: on from 2.27 on.",
                         {"0", "1"}),
                count("NCCL_NTHREADS", "Threads of a channel's block, for LL and Simple.", 64, 512),
                variable("NCCL_NVLS_ENABLE", "\"0\": no reduction in the NVSwitches.", {"0", "1", "2"}),
                variable("NCCL_CROSS_NIC",
                         "\"0\": rings leave a node by the NIC by which they enter it, and graphs of NCCL_GRAPH_FILE "
                         "with crossnic 1 are left out; else not modeled, and a warning says so.",
                         {"0", "1", "2"}),
                variable("NCCL_IB_HCA",
                         "NICs between nodes: what their names, or their adapters' (mlx5_0), begin with, and a port "
                         "(:1); =NAMES: whole names, ^NAMES: all but those.",
                         {}, R"("=nic0,nic1")"),
                {.name = "NCCL_GRAPH_FILE",
                 .type = Type::file,
                 .doc = "NCCL's graph XML, as NCCL_GRAPH_DUMP_FILE writes it: rings, trees and NVLS heads that replace "
                        "those of the search.",
                 .min = 1,
                 .examples = {R"("graph.xml")"}},
                count("NCCL_BUFFSIZE", "Read, but not modeled: a warning says so.", 1, 1LL << 40)}};
  for (const Field& field : transport)
    if (field.name.starts_with("NCCL_")) env.members.push_back(field);
  for (const nccl::OtherVariable& each : nccl::other_variables())
    env.members.push_back(
        accepted_alone(std::string(each.name),
                       fmt::format("{}: {}.", each.changes_time ? "Not modeled" : "Changes no time", each.what)));
  for (const nccl::ForeignVariables& each : nccl::foreign_variables()) env.foreign.emplace_back(each.begin, each.hint);
  return env;
}

/// RCCL reads NCCL's variables. Those that act here, and all others, which do not.
Field rccl_env(const Field& of_nccl) {
  Field env{.name = "env",
            .type = Type::object,
            .doc = "Environment variables of RCCL, most of which are NCCL's by name.",
            .members = {variable("RCCL_MSCCL_ENABLE", "\"0\": no MSCCL schedules.", {"0", "1"})}};
  for (const char* name :
       {"RCCL_MSCCLPP_ENABLE", "RCCL_MSCCLPP_THRESHOLD", "RCCL_MSCCL_FORCE_ENABLE", "RCCL_MSCCL_ENABLE_SINGLE_PROCESS"})
    env.members.push_back(accepted_alone(name, "Not modeled."));
  for (const Field& each : of_nccl.members) {
    const bool acts = each.name == "NCCL_ALGO" || each.name == "NCCL_PROTO" || each.name == "NCCL_NET_GDR_LEVEL" ||
                      each.name == "NCCL_PXN_DISABLE";
    if (acts || each.type == Type::ignored)
      env.members.push_back(each);
    else
      env.members.push_back(accepted_alone(each.name, "Not modeled for RCCL."));
  }
  for (const auto& [begin, hint] : of_nccl.foreign)
    env.foreign.emplace_back(begin, begin == "RCCL_" ? "its effect on RCCL is not modeled; leave it out" : hint);
  return env;
}

}  // namespace

Field library_field(const std::vector<Field>& transport) {
  Field env = nccl_env(transport);
  Field of_rccl = rccl_env(env);
  Field version{.name = "version",
                .type = Type::text,
                .doc = fmt::format("Its release; default: the newest that is modeled, {}.", nccl::newest_version),
                .fallback = std::string(nccl::newest_version),
                .min = 1,
                .examples = {R"("2.19.3")"}};
  return {
      .name = "library",
      .type = Type::variant,
      .doc =
          "A library that chooses algorithm, protocol, channels and NICs by itself, instead of "
          "`collective.algorithm` and their keys in `transport`.",
      .known_names = other_libraries(),
      .examples = {R"("nccl")", R"({"name": "nccl", "version": "2.19.3", "env": {"NCCL_ALGO": "Ring"}})", R"("rccl")"},
      .discriminator = "name",
      .named_by = "name",
      .variants = {{.name = "nccl",
                    .type = Type::object,
                    .doc = "NVIDIA's NCCL 2.",
                    .members = {std::move(version),
                                {.name = "plugin",
                                 .type = Type::text,
                                 .doc = "The net plugin, whose declared latency the tuner counts.",
                                 .choices = {"aws-ofi-nccl"}},
                                {.name = "costs",
                                 .type = Type::file,
                                 .doc = "Constants of the kernels' costs that replace fitted ones: JSON, with the "
                                        "names that `ringsim list costs --format json` prints.",
                                 .min = 1,
                                 .examples = {R"("costs.json")"}},
                                std::move(env)}},
                   {.name = "rccl",
                    .type = Type::object,
                    .doc = "AMD's RCCL on eight GPUs of gfx942 (MI300X) in each node.",
                    .members = {{.name = "version",
                                 .type = Type::text,
                                 .doc = fmt::format("Its release; only {} is modeled.", rccl::modeled_version),
                                 .fallback = std::string(rccl::modeled_version),
                                 .min = 1,
                                 .examples = {fmt::format("\"{}\"", rccl::modeled_version)}},
                                std::move(of_rccl)}}}};
}

Field harness_field() {
  return {.name = "harness",
          .type = Type::object,
          .doc = "How the benchmark calls the library; default: one process for each GPU.",
          .members = {count("processes_per_node", "Processes on a node.", 1, 1024),
                      count("threads_per_process", "Threads of a process, as -t of nccl-tests.", 1, 1024),
                      count("gpus_per_thread", "GPUs that one thread calls in turn, as -g of nccl-tests.", 1, 1024),
                      count("warmup", "Runs that are not timed; the model has no cold start.", 0, 1'000'000),
                      count("iterations", "Runs over which the time is averaged; in the model all runs are equal.", 1,
                            1'000'000)}};
}

}  // namespace ringsim::scenarios
