// The step of a real job, as fields: execution traces.
#include <utility>

#include "scenarios/fields/fields.hpp"

namespace ringsim::scenarios {

Field trace_field(Field algorithm) {
  algorithm.required = false;
  algorithm.doc =
      "The algorithm of the collectives if no library is set. Default: ring. Operations that it does not support use "
      "direct.";
  const Field rank{
      .name = "rank", .type = Type::whole, .doc = "A rank number of the job.", .max = most_ranks - 1, .varies = false};
  return {
      .name = "trace",
      .type = Type::object,
      .doc =
          "A step of a real job as Chakra execution traces, instead of `collective`. Computations take their recorded "
          "times; collectives are simulated.",
      .members = {
          {.name = "files",
           .type = Type::file,
           .doc = "The trace files (.et or .et.gz), one per rank. {rank} is replaced by 0, 1, 2 ... for as many files "
                  "as exist. A name without {rank} is a single trace that represents all ranks.",
           .required = true,
           .min = 1,
           .examples = {R"("job.{rank}.et")"},
           .numbered = true},
          std::move(algorithm),
          {.name = "groups",
           .type = Type::list,
           .doc = "The ranks of the process groups that the traces do not list. Default: all ranks.",
           .min = 1,
           .examples = {R"([{"name": "1", "members": [[0, 1], [2, 3]]}])"},
           .members = {{.name = "group",
                        .type = Type::object,
                        .doc = "The groups with one name.",
                        .members = {{.name = "name",
                                     .type = Type::text,
                                     .doc = "The pg_name in the trace.",
                                     .required = true,
                                     .examples = {R"("1")"},
                                     .varies = false},
                                    {.name = "members",
                                     .type = Type::list,
                                     .doc = "The ranks of each group, in group order.",
                                     .required = true,
                                     .min = 1,
                                     .examples = {"[[0, 1], [2, 3]]"},
                                     .members = {{.name = "group",
                                                  .type = Type::list,
                                                  .doc = "The ranks of one group.",
                                                  .min = 1,
                                                  .examples = {"[0, 1]"},
                                                  .members = {rank},
                                                  .unique = true}}}},
                        .varies = false}}},
          ranks_field(
              "Names of the GPUs, in rank order. Default: the first N GPUs for N files; all GPUs for a single trace."),
          {.name = "missing",
           .type = Type::text,
           .doc = "drop: accept a trace even if more than 1 % of the dependencies refer to missing nodes. Default: "
                  "refuse.",
           .choices = {"refuse", "drop"}},
          {.name = "sync",
           .type = Type::text,
           .doc = "A substring of a kernel name. The first matching kernel of each rank waits for all earlier "
                  "collectives, even if the trace has no such dependency.",
           .min = 1,
           .examples = {R"("multi_tensor_apply")"}}}};
}

}  // namespace ringsim::scenarios
