#include "algorithms/catalog.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "algorithms/all_to_all.hpp"
#include "algorithms/catalog_parts.hpp"
#include "algorithms/direct.hpp"
#include "algorithms/halving_doubling.hpp"
#include "algorithms/parameter_server.hpp"
#include "algorithms/ring.hpp"
#include "sim/error.hpp"

namespace ringsim {

namespace {

Schedule make_parameter_server(const CollectiveRequest& request, const Arguments& arguments);
Schedule make_ring(const CollectiveRequest& request, const Arguments& arguments);
Schedule make_halving_doubling(const CollectiveRequest& request, const Arguments& arguments);
Schedule make_direct(const CollectiveRequest& request, const Arguments& arguments);
Schedule make_pairwise(const CollectiveRequest& request, const Arguments& arguments);

int servers(const Arguments& arguments);

const std::array<Algorithm, 5> catalog{{
    {.name = "parameter_server",
     .summary = "everybody sends to a root (or to `servers` separate ones), which adds up and sends back",
     .source = "Li et al., OSDI 2014",
     .ops = {CollectiveOp::all_reduce},
     .parameters = {{.name = "servers",
                     .doc = "separate servers, each with a share of the buffer; not set: the root is one of the ranks",
                     .min = 1,
                     .max = 65536,
                     .fallback = 0}},
     .make = make_parameter_server,
     .helpers = servers},
    {.name = "ring",
     .summary = "rank r sends only to rank r+1; chunks go round",
     .source = "Patarasuk & Yuan, JPDC 69 (2009)",
     .ops = {CollectiveOp::all_reduce, CollectiveOp::reduce_scatter, CollectiveOp::all_gather, CollectiveOp::broadcast},
     .parameters = {{.name = "segments",
                     .doc = "broadcast only: in how many pieces the buffer goes round; not set: one per rank",
                     .min = 1,
                     .max = 1048576,
                     .fallback = 0}},
     .make = make_ring,
     .helpers = no_helpers},
    {.name = "halving_doubling",
     .summary = "log2(n) exchanges of ever smaller blocks, and the same back",
     .source = "Thakur, Rabenseifner & Gropp, IJHPCA 19 (2005)",
     .ops = {CollectiveOp::all_reduce, CollectiveOp::reduce_scatter, CollectiveOp::all_gather},
     .parameters = {{.name = "fold",
                     .doc = "all_reduce: what to do with the ranks beyond the largest power of two; binary_blocks: "
                            "nobody is folded",
                     .choices = {"rabenseifner", "naive", "binary_blocks"}}},
     .make = make_halving_doubling,
     .helpers = no_helpers},
    {.name = "direct",
     .summary = "every message goes straight to its receiver, all at once",
     .source = "OSU micro-benchmarks, osu_mbw_mr; MPICH, scattered all-to-all",
     .ops = {CollectiveOp::all_to_all, CollectiveOp::pairs},
     .make = make_direct,
     .helpers = no_helpers},
    {.name = "pairwise",
     .summary = "n-1 steps: rank r sends to r+i and receives from r-i",
     .source = "Thakur, Rabenseifner & Gropp, IJHPCA 19 (2005)",
     .ops = {CollectiveOp::all_to_all},
     .make = make_pairwise,
     .helpers = no_helpers},
}};

int servers(const Arguments& arguments) { return static_cast<int>(number(catalog[0], arguments, "servers")); }

Schedule make_parameter_server(const CollectiveRequest& request, const Arguments& arguments) {
  if (const int n = servers(arguments); n > 0) {
    Schedule s = sharded_parameter_server(request.ranks, request.bytes, n);
    s.algorithm += fmt::format(" servers={}", n);
    return s;
  }
  return parameter_server(request.ranks, request.bytes, request.root);
}

Schedule make_ring(const CollectiveRequest& request, const Arguments& arguments) {
  auto segments = static_cast<int>(number(catalog[1], arguments, "segments"));
  if (request.op != CollectiveOp::broadcast && segments != 0)
    throw InputError("", fmt::format("ring: segments is a setting of broadcast, not of {}", to_string(request.op)),
                     "leave segments out");
  switch (request.op) {
    case CollectiveOp::all_reduce:
      return ring_all_reduce(request.ranks, request.bytes);
    case CollectiveOp::reduce_scatter:
      return ring_reduce_scatter(request.ranks, request.bytes);
    case CollectiveOp::all_gather:
      return ring_all_gather(request.ranks, request.bytes);
    case CollectiveOp::broadcast: {
      if (segments == 0) segments = request.ranks;
      Schedule s = ring_broadcast(request.ranks, request.bytes, request.root, segments);
      s.algorithm += fmt::format(" segments={}", segments);
      return s;
    }
    case CollectiveOp::all_to_all:
    case CollectiveOp::pairs:
      break;
  }
  fail_invariant("an algorithm is asked only for what it supports");
}

Schedule make_halving_doubling(const CollectiveRequest& request, const Arguments& arguments) {
  const std::string fold = text(catalog[2], arguments, "fold");
  // A fold that was chosen has a meaning only for all_reduce; a default does no harm.
  if (request.op != CollectiveOp::all_reduce && fold != "rabenseifner")
    throw InputError("",
                     fmt::format("halving_doubling: fold is a setting of all_reduce, not of {}", to_string(request.op)),
                     "leave fold out");
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

Schedule make_direct(const CollectiveRequest& request, const Arguments&) {
  if (request.op == CollectiveOp::all_to_all) return direct_all_to_all(request.ranks, request.bytes);
  if (request.ranks % 2 != 0)
    throw InputError("", fmt::format("pairs needs an even number of ranks, found {}", request.ranks));
  return direct_pairs(request.ranks, request.bytes, request.both_ways);
}

const Parameter& parameter_of(const Algorithm& algorithm, std::string_view name) {
  for (const Parameter& parameter : algorithm.parameters)
    if (parameter.name == name) return parameter;
  fail_invariant("an algorithm is asked only for parameters that it has");
}

}  // namespace

int no_helpers(const Arguments&) { return 0; }

bool Algorithm::supports(CollectiveOp op) const { return std::find(ops.begin(), ops.end(), op) != ops.end(); }

std::span<const Algorithm> algorithms() {
  static const std::vector<Algorithm> all = [] {
    std::vector<Algorithm> rows(catalog.begin(), catalog.end());
    add_exchanges(rows);
    add_composed(rows);  // last: they are made of the others
    return rows;
  }();
  return all;
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
