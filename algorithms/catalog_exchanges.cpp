#include "algorithms/catalog_parts.hpp"
#include "algorithms/exchanges/bruck.hpp"
#include "algorithms/exchanges/pat.hpp"
#include "algorithms/exchanges/recursive_doubling.hpp"
#include "algorithms/exchanges/swing.hpp"

namespace ringsim {

namespace {

Schedule make_recursive_doubling(const CollectiveRequest& request, const Arguments&) {
  return request.op == CollectiveOp::all_gather ? recursive_doubling_all_gather(request.ranks, request.bytes)
                                                : recursive_doubling_all_reduce(request.ranks, request.bytes);
}

Schedule make_bruck(const CollectiveRequest& request, const Arguments&) {
  return request.op == CollectiveOp::all_gather ? bruck_all_gather(request.ranks, request.bytes)
                                                : bruck_all_to_all(request.ranks, request.bytes);
}

Schedule make_pat(const CollectiveRequest& request, const Arguments&) {
  return request.op == CollectiveOp::all_gather ? pat_all_gather(request.ranks, request.bytes)
                                                : pat_reduce_scatter(request.ranks, request.bytes);
}

Schedule make_swing(const CollectiveRequest& request, const Arguments& arguments) {
  const Algorithm& self = *find_algorithm("swing");
  const std::string ports = text(self, arguments, "ports"), variant = text(self, arguments, "variant");
  Schedule s = swing_all_reduce(grid_of(self, arguments, request), request.bytes,
                                {.all_ports = ports == "all", .whole = variant == "latency"});
  if (ports == "all") s.algorithm += " ports=all";
  if (variant == "latency") s.algorithm += " variant=latency";
  return s;
}

}  // namespace

void add_exchanges(std::vector<Algorithm>& rows) {
  rows.push_back({.name = "recursive_doubling",
                  .summary = "log2(n) exchanges of all data that a rank has",
                  .source = "Thakur, Rabenseifner & Gropp, IJHPCA 19 (2005)",
                  .ops = {CollectiveOp::all_reduce, CollectiveOp::all_gather},
                  .parameters = {},
                  .make = make_recursive_doubling,
                  .helpers = no_helpers});
  rows.push_back({.name = "bruck",
                  .summary = "log2(n) steps to the rank 2^k away, for any number of ranks",
                  .source = "Bruck et al., IEEE TPDS 8 (1997)",
                  .ops = {CollectiveOp::all_gather, CollectiveOp::all_to_all},
                  .parameters = {},
                  .make = make_bruck,
                  .helpers = no_helpers});
  rows.push_back(
      {.name = "pat",
       .summary = "one binomial tree per chunk, with the farthest (and smallest) steps first; fully aggregated",
       .source = "Jeaugey, arXiv:2506.20252 (2025); NCCL 2.23",
       .ops = {CollectiveOp::reduce_scatter, CollectiveOp::all_gather},
       .parameters = {},
       .make = make_pat,
       .helpers = no_helpers});
  rows.push_back({.name = "swing",
                  .summary = "halving and doubling between partners at distances 1, -1, 3, -5, 11...",
                  .source = "De Sensi et al., NSDI 2024",
                  .ops = {CollectiveOp::all_reduce},
                  .parameters = {dimensions_parameter(),
                                 {.name = "ports",
                                  .doc = "one: one partner at a time; all: as in the paper, each of the 2D directions "
                                         "of a D-dimensional torus carries a share of the buffer at the same time",
                                  .choices = {"one", "all"}},
                                 {.name = "variant",
                                  .doc = "bandwidth: halves the block in each step, then reverses; latency: sends "
                                         "everything in each of half as many steps, for small messages",
                                  .choices = {"bandwidth", "latency"}}},
                  .make = make_swing,
                  .helpers = no_helpers});
}

}  // namespace ringsim
