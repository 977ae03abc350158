#include "algorithms/catalog.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "algorithms/all_to_all.hpp"
#include "algorithms/catalog_parts.hpp"
#include "algorithms/composed/buffers.hpp"
#include "algorithms/composed/channels.hpp"
#include "algorithms/direct.hpp"
#include "algorithms/exchanges/halving_doubling.hpp"
#include "algorithms/make_trees.hpp"
#include "algorithms/parameter_server.hpp"
#include "algorithms/ring.hpp"
#include "algorithms/stored_schedule.hpp"
#include "sim/base/error.hpp"

namespace ringsim {

namespace {

Schedule make_parameter_server(const CollectiveRequest& request, const Arguments& arguments);
Schedule make_ring(const CollectiveRequest& request, const Arguments& arguments);
Schedule make_halving_doubling(const CollectiveRequest& request, const Arguments& arguments);
Schedule make_direct(const CollectiveRequest& request, const Arguments& arguments);
Schedule make_pairwise(const CollectiveRequest& request, const Arguments& arguments);

// How many segments a tree's buffer is cut into if nothing is said: any number is a compromise between the time to
// fill the tree and a latency for each segment (assumed; a sweep over it finds the best).
constexpr int some_segments = 8;

Parameter segments_of_tree() {
  return {.name = "segments",
          .doc = "number of pieces into which the buffer (in a double tree, each half) is cut",
          .min = 1,
          .max = 1048576,
          .fallback = some_segments};
}
int servers(const Arguments& arguments);

const std::vector<Algorithm> catalog{

    {.name = "parameter_server",
     .summary = "all ranks send to a root (or to `servers` separate servers), which adds and sends the sum back",
     .source = "Li et al., OSDI 2014",
     .ops = {CollectiveOp::all_reduce},
     .parameters =
         {{.name = "servers",
           .doc = "number of separate servers, each with a share of the buffer; default: the root is one of the ranks",
           .min = 1,
           .max = 65536,
           .fallback = 0}},
     .make = make_parameter_server,
     .helpers = servers,
     .rooted = true},
    {.name = "ring",
     .summary = "rank r sends only to rank r+1; chunks travel around the ring",
     .source = "Patarasuk & Yuan, JPDC 69 (2009)",
     .ops = {CollectiveOp::all_reduce, CollectiveOp::reduce_scatter, CollectiveOp::all_gather, CollectiveOp::broadcast},
     .parameters =
         {{.name = "segments",
           .doc = "broadcast only: number of pieces into which the buffer is cut; default: one per rank",
           .min = 1,
           .max = 1048576,
           .fallback = 0},
          {.name = "rings",
           .doc = "not for broadcast: number of rings that share the buffer; 2: one in each direction; default: one",
           .min = 1,
           .max = 64,
           .fallback = 0},
          {.name = "slices",
           .doc = "not for broadcast: number of messages into which each rank's share is cut; default: one",
           .min = 1,
           .max = 1024,
           .fallback = 0}},
     .make = make_ring,
     .helpers = no_helpers},
    {.name = "halving_doubling",
     .summary = "log2(n) exchanges of blocks that halve in size, then the reverse",
     .source = "Thakur, Rabenseifner & Gropp, IJHPCA 19 (2005)",
     .ops = {CollectiveOp::all_reduce, CollectiveOp::reduce_scatter, CollectiveOp::all_gather},
     .parameters = {{.name = "fold",
                     .doc = "all_reduce: how to handle the ranks beyond the largest power of two; binary_blocks does "
                            "not fold any rank",
                     .choices = {"rabenseifner", "naive", "binary_blocks"}}},
     .make = make_halving_doubling,
     .helpers = no_helpers},
    {.name = "direct",
     .summary = "every message goes directly to its receiver, all at the same time",
     .source = "OSU micro-benchmarks, osu_mbw_mr; MPICH, scattered all-to-all; Open MPI, linear; TensorRT-LLM",
     .ops = {CollectiveOp::all_to_all, CollectiveOp::pairs, CollectiveOp::all_reduce, CollectiveOp::reduce_scatter,
             CollectiveOp::all_gather, CollectiveOp::broadcast, CollectiveOp::reduce, CollectiveOp::scatter,
             CollectiveOp::gather, CollectiveOp::send_recv},
     .parameters = {{.name = "shots",
                     .doc = "all_reduce only: 1: every rank sends everything to every other rank; 2: every rank sends "
                            "a share to each rank, which sends back the sum; default: 2",
                     .min = 1,
                     .max = 2,
                     .fallback = 0}},
     .make = make_direct,
     .helpers = no_helpers},
    {.name = "pairwise",
     .summary = "n-1 steps: rank r sends to r+i and receives from r-i",
     .source = "Thakur, Rabenseifner & Gropp, IJHPCA 19 (2005)",
     .ops = {CollectiveOp::all_to_all},
     .make = make_pairwise,
     .helpers = no_helpers},
    {.name = "binomial_tree",
     .summary = "the number of ranks that have the data, or a sum, doubles with every step",
     .source = "Thakur, Rabenseifner & Gropp, IJHPCA 19 (2005)",
     .ops = {CollectiveOp::broadcast, CollectiveOp::reduce, CollectiveOp::scatter, CollectiveOp::gather,
             CollectiveOp::all_reduce, CollectiveOp::barrier},
     .make = make_binomial_tree,
     .helpers = no_helpers,
     .rooted = true},
    {.name = "dissemination",
     .summary = "in step k rank r signals r + 2^k",
     .source = "Hensgen, Finkel & Manber, IJPP 17 (1988)",
     .ops = {CollectiveOp::barrier},
     .make = make_dissemination,
     .helpers = no_helpers},
    {.name = "chain",
     .summary = "segments pass from the root through all ranks, or in reverse to the root",
     .source = "van de Geijn & Watts, Concurrency 9 (1997)",
     .ops = {CollectiveOp::broadcast, CollectiveOp::reduce, CollectiveOp::all_reduce},
     .parameters = {segments_of_tree()},
     .make = make_chain,
     .helpers = no_helpers,
     .rooted = true},
    {.name = "kary_tree",
     .summary = "segments pass down a tree from the root, up to the root, or both",
     .source = "Sanders, Speck & Traff, Parallel Computing 35 (2009), section 2",
     .ops = {CollectiveOp::broadcast, CollectiveOp::reduce, CollectiveOp::all_reduce},
     .parameters =
         {{.name = "arity", .doc = "maximum number of children of a rank", .min = 2, .max = 65535, .fallback = 2},
          segments_of_tree()},
     .make = make_kary_tree,
     .helpers = no_helpers,
     .rooted = true},
    {.name = "double_binary_tree",
     .summary =
         "each of two trees carries half of the buffer; ranks that forward data in one tree are leaves of the other",
     .source = "Sanders, Speck & Traff, Parallel Computing 35 (2009); NCCL 2.4",
     .ops = {CollectiveOp::all_reduce, CollectiveOp::broadcast, CollectiveOp::reduce},
     .parameters = {segments_of_tree(),
                    {.name = "group",
                     .doc = "all_reduce only: number of consecutive ranks that form a chain at each position of the "
                            "trees, as the GPUs of a node do in NCCL's Tree; default: 1",
                     .min = 1,
                     .max = 65536,
                     .fallback = 0}},
     .make = make_double_binary_tree,
     .helpers = no_helpers},
};

/// The entry of one of these algorithms: find_algorithm() also has those made of them, and is not there while they are
/// put together.
const Algorithm& entry(std::string_view name) {
  const auto found =
      std::find_if(catalog.begin(), catalog.end(), [&](const Algorithm& its) { return its.name == name; });
  ensure(found != catalog.end(), "an algorithm that reads its settings is in the catalog");
  return *found;
}

int servers(const Arguments& arguments) {
  return static_cast<int>(number(entry("parameter_server"), arguments, "servers"));
}

Schedule make_parameter_server(const CollectiveRequest& request, const Arguments& arguments) {
  if (const int n = servers(arguments); n > 0) {
    Schedule s = sharded_parameter_server(request.ranks, request.bytes, n);
    s.algorithm += fmt::format(" servers={}", n);
    return s;
  }
  return parameter_server(request.ranks, request.bytes, request.root);
}

// A setting that is said for an op that has no use for it.
void refuse_setting(const char* algorithm, const char* setting, const char* of, CollectiveOp op) {
  throw InputError("", fmt::format("{}: {} applies to {}, not to {}", algorithm, setting, of, to_string(op)),
                   fmt::format("remove {}", setting));
}

Schedule make_ring(const CollectiveRequest& request, const Arguments& arguments) {
  const auto setting = [&](const char* name) { return static_cast<int>(number(entry("ring"), arguments, name)); };
  if (request.op == CollectiveOp::broadcast) {
    for (const char* name : {"rings", "slices"})
      if (setting(name) != 0) refuse_setting("ring", name, "all_reduce, reduce_scatter and all_gather", request.op);
    const int segments = setting("segments") > 0 ? setting("segments") : request.ranks;
    Schedule s = ring_broadcast(request.ranks, request.bytes, request.root, segments);
    s.algorithm += fmt::format(" segments={}", segments);
    return s;
  }
  if (setting("segments") != 0) refuse_setting("ring", "segments", "broadcast", request.op);
  const RingPieces pieces{.rings = std::max(1, setting("rings")), .slices = std::max(1, setting("slices"))};
  switch (request.op) {
    case CollectiveOp::all_reduce:
      return in_pieces(ring_all_reduce(request.ranks, request.bytes), pieces);
    case CollectiveOp::reduce_scatter:
      return in_pieces(ring_reduce_scatter(request.ranks, request.bytes), pieces);
    case CollectiveOp::all_gather:
      return in_pieces(ring_all_gather(request.ranks, request.bytes), pieces);
    default:
      fail_invariant("an algorithm is asked only for what it supports");
  }
}

Schedule make_halving_doubling(const CollectiveRequest& request, const Arguments& arguments) {
  const std::string fold = text(entry("halving_doubling"), arguments, "fold");
  // A fold that was chosen has a meaning only for all_reduce; a default does no harm.
  if (request.op != CollectiveOp::all_reduce && fold != "rabenseifner")
    throw InputError("", fmt::format("halving_doubling: fold applies to all_reduce, not to {}", to_string(request.op)),
                     "remove fold");
  if (request.op == CollectiveOp::reduce_scatter) return halving_reduce_scatter(request.ranks, request.bytes);
  if (request.op == CollectiveOp::all_gather) return doubling_all_gather(request.ranks, request.bytes);
  Schedule s = halving_doubling(request.ranks, request.bytes,
                                fold == "naive"           ? Fold::naive
                                : fold == "binary_blocks" ? Fold::binary_blocks
                                                          : Fold::rabenseifner);
  s.algorithm += " fold=" + fold;
  return s;
}

Schedule make_pairwise(const CollectiveRequest& request, const Arguments&) {
  return pairwise_all_to_all(request.ranks, request.bytes);
}

Schedule make_direct(const CollectiveRequest& request, const Arguments& arguments) {
  const CollectiveOp op = request.op;
  const int n = request.ranks;
  const Bytes bytes = request.bytes;
  const auto shots = number(entry("direct"), arguments, "shots");
  if (shots != 0 && op != CollectiveOp::all_reduce) refuse_setting("direct", "shots", "all_reduce", op);
  switch (op) {
    case CollectiveOp::all_reduce: {
      Schedule s = shots == 1 ? one_shot_all_reduce(n, bytes) : two_shot_all_reduce(n, bytes);
      s.algorithm += fmt::format(" shots={}", shots == 1 ? 1 : 2);
      return s;
    }
    case CollectiveOp::all_to_all:
      return direct_all_to_all(n, bytes);
    case CollectiveOp::reduce_scatter:
      return direct_reduce_scatter(n, bytes);
    case CollectiveOp::all_gather:
      return direct_all_gather(n, bytes);
    case CollectiveOp::broadcast:
      return direct_broadcast(n, bytes, request.root);
    case CollectiveOp::reduce:
      return direct_reduce(n, bytes, request.root);
    case CollectiveOp::scatter:
      return direct_scatter(n, bytes, request.root);
    case CollectiveOp::gather:
      return direct_gather(n, bytes, request.root);
    case CollectiveOp::send_recv:
      return direct_send_recv(n, bytes);
    case CollectiveOp::pairs:
      if (n % 2 != 0) throw InputError("", fmt::format("pairs needs an even number of ranks, found {}", n));
      return direct_pairs(n, bytes, request.both_ways);
    case CollectiveOp::barrier:
      break;
  }
  fail_invariant("an algorithm is asked only for what it supports");
}

const Parameter& parameter_of(const Algorithm& algorithm, std::string_view name) {
  for (const Parameter& parameter : algorithm.parameters)
    if (parameter.name == name) return parameter;
  fail_invariant("an algorithm is asked only for parameters that it has");
}

}  // namespace

int no_helpers(const Arguments&) { return 0; }

bool Algorithm::supports(CollectiveOp op) const { return std::find(ops.begin(), ops.end(), op) != ops.end(); }

bool Algorithm::uses_fabric(const Arguments& arguments) const {
  return in_fabric || (arguments.file != nullptr && !arguments.file->tree.empty());
}

std::span<const Algorithm> algorithms() {
  static const std::vector<Algorithm> all = [] {
    std::vector<Algorithm> rows(catalog.begin(), catalog.end());
    add_exchanges(rows);
    add_composed(rows);  // last: they are made of the others
    return rows;
  }();
  return all;
}

Schedule make_schedule(const Algorithm& algorithm, const CollectiveRequest& request, const Arguments& arguments) {
  Schedule s = algorithm.make(request, arguments);
  if (request.in_place) s = *request.in_place ? in_place(std::move(s)) : out_of_place(std::move(s));
  return over_channels(std::move(s), pieces_of(request.bytes, request.channels, request.chunk), request.orders);
}

const Algorithm* find_algorithm(std::string_view name) {
  for (const Algorithm& algorithm : algorithms())
    if (algorithm.name == name) return &algorithm;
  return nullptr;
}

std::int64_t number(const Algorithm& algorithm, const Arguments& arguments, std::string_view parameter) {
  const auto found = arguments.numbers.find(std::string(parameter));
  return found == arguments.numbers.end() ? parameter_of(algorithm, parameter).fallback : found->second;
}

std::string text(const Algorithm& algorithm, const Arguments& arguments, std::string_view parameter) {
  const auto found = arguments.texts.find(std::string(parameter));
  if (found != arguments.texts.end()) return found->second;
  const Parameter& what = parameter_of(algorithm, parameter);
  return what.choices.empty() ? "" : what.choices.front();
}

}  // namespace ringsim
