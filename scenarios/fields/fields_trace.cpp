// The step of a real job, as fields: execution traces.
#include <utility>

#include "scenarios/fields/fields.hpp"

namespace ringsim::scenarios {

Field trace_field(Field algorithm) {
  algorithm.required = false;
  algorithm.doc =
      "The schedule of the collectives, without a library; default: ring. Operations that it does not support run with "
      "direct.";
  const Field rank{
      .name = "rank", .type = Type::whole, .doc = "A rank of the job.", .max = most_ranks - 1, .varies = false};
  return {
      .name = "trace",
      .type = Type::object,
      .doc =
          "The step of a real job, instead of `collective`: Chakra execution traces. Computations take their recorded "
          "times, collectives are simulated.",
      .members = {
          {.name = "files",
           .type = Type::file,
           .doc =
               "The traces, .et or .et.gz, a file per rank: {rank} is replaced by 0, 1, 2 ..., as many as there are. A "
               "name without {rank} is one rank's trace, which represents all.",
           .required = true,
           .min = 1,
           .examples = {R"("job.{rank}.et")"},
           .numbered = true},
          std::move(algorithm),
          {.name = "groups",
           .type = Type::list,
           .doc = "The ranks of process groups, if the traces do not list them; default: all ranks.",
           .min = 1,
           .examples = {R"([{"name": "1", "members": [[0, 1], [2, 3]]}])"},
           .members = {{.name = "group",
                        .type = Type::object,
                        .doc = "The groups of one name.",
                        .members = {{.name = "name",
                                     .type = Type::text,
                                     .doc = "pg_name in the trace.",
                                     .required = true,
                                     .examples = {R"("1")"},
                                     .varies = false},
                                    {.name = "members",
                                     .type = Type::list,
                                     .doc = "Each group's ranks of the job, in its order.",
                                     .required = true,
                                     .min = 1,
                                     .examples = {"[[0, 1], [2, 3]]"},
                                     .members = {{.name = "group",
                                                  .type = Type::list,
                                                  .doc = "Ranks of a group.",
                                                  .min = 1,
                                                  .examples = {"[0, 1]"},
                                                  .members = {rank},
                                                  .unique = true}}}},
                        .varies = false}}},
          ranks_field(
              "Names of the gpus, in rank order; default: the first of all, as many as there are files, and all "
              "of them for one rank's trace."),
          {.name = "missing",
           .type = Type::text,
           .doc =
               "drop: accept a trace in which more than 1 % of the dependencies name missing nodes; default: refuse.",
           .choices = {"refuse", "drop"}},
          {.name = "sync",
           .type = Type::text,
           .doc =
               "Part of a kernel's name: the first such kernel of each rank waits for all collectives before it, which "
               "the trace may not say.",
           .min = 1,
           .examples = {R"("multi_tensor_apply")"}}}};
}

}  // namespace ringsim::scenarios
