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

/// A variable with a number, which people write as a text, as they write all others.
Field number(std::string name, std::string doc, std::int64_t min, std::int64_t max) {
  Field field = count(std::move(name), std::move(doc), min, max);
  field.digits = true;
  return field;
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
  Field env{
      .name = "env",
      .type = Type::object,
      .doc = "NCCL environment variables, spelled as NCCL spells them.",
      .members = {
          variable("NCCL_ALGO", "The algorithms that NCCL may choose; ^NAME excludes one.", {}, R"("Ring,Tree")"),
          variable("NCCL_PROTO", "The protocols that NCCL may choose; ^NAME excludes one.", {}, R"("^LL128")"),
          number("NCCL_MIN_NCHANNELS", "The minimum number of channels for rings and trees.", 1, 64),
          number("NCCL_MAX_NCHANNELS", "The maximum number of channels for rings and trees.", 1, 64),
          number("NCCL_MIN_NRINGS", "The older name of NCCL_MIN_NCHANNELS.", 1, 64),
          number("NCCL_MAX_NRINGS", "The older name of NCCL_MAX_NCHANNELS.", 1, 64),
          number("NCCL_MIN_CTAS",
                 "The same as NCCL_MIN_NCHANNELS; if both are set, the larger one applies. Since 2.17.", 1, 64),
          number("NCCL_MAX_CTAS",
                 "The same as NCCL_MAX_NCHANNELS; if both are set, the smaller one applies. Since 2.17.", 1, 64),
          number("NCCL_MIN_P2P_NCHANNELS", "The minimum number of channels for sends and receives.", 1, 64),
          number("NCCL_MAX_P2P_NCHANNELS", "The maximum number of channels for sends and receives.", 1, 64),
          number("NCCL_NCHANNELS_PER_NET_PEER",
                 "The number of channels for sends and receives to a peer on another node. Since 2.12.", 1, 64),
          number("NCCL_P2P_LL_THRESHOLD",
                 "Sends and receives use LL up to this number of bytes per channel; \"0\": never. Since 2.14.", 0,
                 1LL << 40),
          number("NCCL_P2P_NET_CHUNKSIZE",
                 "The chunk size in bytes of sends and receives to another node with Simple. Since 2.14.", 1LL << 12,
                 1LL << 30),
          variable(
              "NCCL_NET_GDR_C2C",
              "\"1\": use GPUDirect over a chip-to-chip link; \"0\": do not. Since 2.26; on by default since 2.27.",
              {"0", "1"}),
          number("NCCL_NTHREADS", "The number of threads per channel block for LL and Simple.", 64, 512),
          variable("NCCL_NVLS_ENABLE", "\"0\": disable in-switch reduction (NVLS).", {"0", "1", "2"}),
          variable(
              "NCCL_CROSS_NIC",
              "\"0\": a ring enters and leaves a node through the same NIC, and graphs in NCCL_GRAPH_FILE with "
              "crossnic 1 are ignored; \"1\": through any two NICs; \"2\" (default): through two NICs if that makes "
              "rings faster.",
              {"0", "1", "2"}),
          variable("NCCL_IB_HCA",
                   "The NICs to use between nodes: prefixes of NIC or adapter names (mlx5_0), optionally with a port "
                   "(:1). =NAMES matches whole names, ^NAMES excludes.",
                   {}, R"("=nic0,nic1")"),
          {.name = "NCCL_GRAPH_FILE",
           .type = Type::file,
           .doc = "A graph XML file as written by NCCL_GRAPH_DUMP_FILE. Its rings, trees and NVLS heads replace those "
                  "that the search finds.",
           .min = 1,
           .examples = {R"("graph.xml")"}},
          number("NCCL_BUFFSIZE", "Accepted but not modeled; prints a warning.", 1, 1LL << 40)}};
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
            .doc = "RCCL environment variables, most of which have the same names as in NCCL.",
            .members = {variable("RCCL_MSCCL_ENABLE", "\"0\": disable MSCCL schedules.", {"0", "1"})}};
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
    env.foreign.emplace_back(begin, begin == "RCCL_" ? "its effect on RCCL is not modeled; remove it" : hint);
  return env;
}

}  // namespace

Field library_field(const std::vector<Field>& transport) {
  Field env = nccl_env(transport);
  Field of_rccl = rccl_env(env);
  Field version{
      .name = "version",
      .type = Type::text,
      .doc = fmt::format("The NCCL release. Default: {}, the newest release that is modeled.", nccl::newest_version),
      .fallback = std::string(nccl::newest_version),
      .min = 1,
      .examples = {R"("2.19.3")"}};
  return {
      .name = "library",
      .type = Type::variant,
      .doc =
          "The library that chooses the algorithm, protocol, channels and NICs. It replaces `collective.algorithm` and "
          "the corresponding keys of `transport`.",
      .known_names = other_libraries(),
      .examples = {R"("nccl")", R"({"name": "nccl", "version": "2.19.3", "env": {"NCCL_ALGO": "Ring"}})", R"("rccl")"},
      .discriminator = "name",
      .named_by = "name",
      .variants = {{.name = "nccl",
                    .type = Type::object,
                    .doc = "NVIDIA NCCL 2.",
                    .members = {std::move(version),
                                {.name = "plugin",
                                 .type = Type::text,
                                 .doc = "The network plugin. NCCL's tuner uses the latency that it declares.",
                                 .choices = {"aws-ofi-nccl"}},
                                {.name = "costs",
                                 .type = Type::file,
                                 .doc = "A JSON file of kernel cost constants that replace the fitted ones, with the "
                                        "names that `ringsim list costs --format json` prints.",
                                 .min = 1,
                                 .examples = {R"("costs.json")"}},
                                std::move(env)}},
                   {.name = "rccl",
                    .type = Type::object,
                    .doc = "AMD RCCL, on nodes of eight gfx942 (MI300X) GPUs.",
                    .members = {{.name = "version",
                                 .type = Type::text,
                                 .doc = fmt::format("The RCCL release; only {} is modeled.", rccl::modeled_version),
                                 .fallback = std::string(rccl::modeled_version),
                                 .min = 1,
                                 .examples = {fmt::format("\"{}\"", rccl::modeled_version)}},
                                std::move(of_rccl)}}}};
}

Field harness_field() {
  return {.name = "harness",
          .type = Type::object,
          .doc = "How the benchmark calls the library. Default: one process per GPU.",
          .members = {
              count("processes_per_node", "The number of processes per node.", 1, 1024),
              count("threads_per_process", "The number of threads per process, as set by -t in nccl-tests.", 1, 1024),
              count("gpus_per_thread", "The number of GPUs that one thread calls in turn, as set by -g in nccl-tests.",
                    1, 1024),
              count("warmup", "The number of untimed runs. They have no effect because the model has no cold start.", 0,
                    1'000'000),
              count("iterations",
                    "The number of runs over which the time is averaged. In the model, all runs take the same time.", 1,
                    1'000'000)}};
}

}  // namespace ringsim::scenarios
