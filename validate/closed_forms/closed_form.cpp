#include "validate/closed_forms/closed_form.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <set>

#include "algorithms/composed/channels.hpp"
#include "sim/base/error.hpp"
#include "validate/closed_forms/forms.hpp"

namespace ringsim {

bool ClosedForm::agrees(Picoseconds simulated) const {
  const Picoseconds rounding{steps};
  return simulated >= low - rounding && simulated <= time + rounding;
}

std::optional<double> ClosedForm::ratio(Picoseconds simulated) const {
  if (time.count() == 0) return simulated.count() == 0 ? std::optional(1.0) : std::nullopt;
  return static_cast<double>(simulated.count()) / static_cast<double>(time.count());
}

// ------------------------------------------------------------------------------------------ looking at the machine

namespace {

bool equal_cable(const Topology& topology, const Link& link, const Uniform& machine) {
  return link.bandwidth == machine.b && link.latency == machine.a && !topology.resource(link.resource).shared;
}

std::optional<Uniform> as_star(const Topology& topology, std::span<const NodeId> members) {
  std::optional<Uniform> found;
  std::optional<NodeId> hub;
  for (const NodeId member : members) {
    const auto out = topology.links_from(member), in = topology.links_to(member);
    if (out.size() != 1 || in.size() != 1) return std::nullopt;
    const Link &up = topology.link(out[0]), &down = topology.link(in[0]);
    if (!hub) {
      hub = up.to;
      found = Uniform{Shape::star, up.bandwidth, up.latency};
      if (topology.node(up.to).kind != NodeKind::network_switch) return std::nullopt;
    }
    if (up.to != *hub || down.from != *hub) return std::nullopt;
    if (!equal_cable(topology, up, *found) || !equal_cable(topology, down, *found)) return std::nullopt;
  }
  if (found) found->a = times(2, found->a);  // two links a path
  return found;
}

const Link* cable(const Topology& topology, NodeId from, NodeId to) {
  const Link* only = nullptr;
  for (const LinkId id : topology.links_from(from)) {
    if (topology.link(id).to != to) continue;
    if (only != nullptr) return nullptr;  // two cables: not one of the textbooks' machines
    only = &topology.link(id);
  }
  return only;
}

std::optional<Uniform> as_neighbors(const Topology& topology, std::span<const NodeId> ranks) {
  std::optional<Uniform> found;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const NodeId next = ranks[(r + 1) % ranks.size()];
    for (const Link* link : {cable(topology, ranks[r], next), cable(topology, next, ranks[r])}) {
      if (link == nullptr) return std::nullopt;
      if (!found) found = Uniform{Shape::neighbors, link->bandwidth, link->latency};
      if (!equal_cable(topology, *link, *found)) return std::nullopt;
    }
  }
  return found;
}

/// Every rank has an equal cable to the next one along each dimension, closed.
std::optional<Uniform> as_grid(const Topology& topology, std::span<const NodeId> ranks, std::span<const int> grid) {
  std::optional<Uniform> found;
  auto stride = ranks.size();
  for (const int dimension : grid) {
    const auto size = static_cast<std::size_t>(dimension);
    stride /= size;
    if (size == 1) continue;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      const std::size_t place = r / stride % size;
      const NodeId here = ranks[r], next = ranks[r + ((place + 1) % size) * stride - place * stride];
      for (const Link* link : {cable(topology, here, next), cable(topology, next, here)}) {
        if (link == nullptr) return std::nullopt;
        if (!found) found = Uniform{Shape::grid, link->bandwidth, link->latency};
        if (!equal_cable(topology, *link, *found)) return std::nullopt;
      }
    }
  }
  return found;
}

bool is_meshed(const Topology& topology, std::span<const NodeId> ranks, const Uniform& machine) {
  if (topology.n_links() < ranks.size() * (ranks.size() - 1)) return false;
  std::vector<bool> is_rank(topology.n_nodes());
  for (const NodeId rank : ranks) is_rank[rank.value] = true;
  std::vector<NodeId> seen_from(topology.n_nodes(), no_node);
  for (const NodeId from : ranks) {
    std::size_t joined = 0;
    for (const LinkId id : topology.links_from(from)) {
      const Link& link = topology.link(id);
      if (!is_rank[link.to.value]) continue;
      // Two cables between two ranks, or an unequal one: not one of the textbooks' machines.
      if (seen_from[link.to.value] == from || !equal_cable(topology, link, machine)) return false;
      seen_from[link.to.value] = from;
      ++joined;
    }
    if (joined != ranks.size() - 1) return false;
  }
  return true;
}

/// The machines of the textbooks, seen by their cables.
std::optional<Uniform> of_cables(const Topology& topology, std::span<const NodeId> ranks,
                                 std::span<const NodeId> helpers, std::span<const int> grid) {
  std::vector<NodeId> members(ranks.begin(), ranks.end());
  members.insert(members.end(), helpers.begin(), helpers.end());
  if (const auto star = as_star(topology, members)) return star;
  if (!helpers.empty() || ranks.size() < 2) return std::nullopt;
  if (auto near = as_neighbors(topology, ranks)) {
    if (is_meshed(topology, ranks, *near)) near->shape = Shape::full_mesh;
    return near;
  }
  return as_grid(topology, ranks, grid);
}

std::optional<PathType> type_between_neighbors(const Topology& topology, std::span<const NodeId> ranks,
                                               const Transport& transport, const Routing& routing) {
  Routes routes(topology, transport, routing);
  const PathType type = routes.find(ranks[0], ranks[1 % ranks.size()]).type;
  for (std::size_t r = 1; r < ranks.size(); ++r)
    if (routes.find(ranks[r], ranks[(r + 1) % ranks.size()]).type != type) return std::nullopt;
  return type;
}

}  // namespace

Uniform uniform_of(const Topology& topology, std::span<const NodeId> ranks, std::span<const NodeId> helpers,
                   const Transport& transport, const Routing& routing, std::span<const int> grid) {
  std::vector<NodeId> members(ranks.begin(), ranks.end());
  members.insert(members.end(), helpers.begin(), helpers.end());
  // If cables are not used, or a table routes data around them, their shape says nothing.
  const auto in_host = [&](NodeId id) { return topology.node(id).host.has_value(); };
  const bool in_hosts = std::any_of(members.begin(), members.end(), in_host);
  const bool takes_cables = routing.table.empty() && (transport.p2p_level >= PathType::nvl || !in_hosts);
  if (const auto found = takes_cables ? of_cables(topology, ranks, helpers, grid) : std::nullopt) {
    Uniform uniform = *found;
    if (in_hosts) uniform.type = type_between_neighbors(topology, ranks, transport, routing);
    return uniform;
  }
  Uniform rough;
  rough.b = {std::numeric_limits<std::int64_t>::max()};
  std::set<PathType> types;
  Routes routes(topology, transport, routing);
  bool any = false;
  for (std::size_t i = 0; i < members.size() && members.size() > 1; ++i) {
    try {
      const Path path = routes.find(members[i], members[(i + 1) % members.size()]);
      rough.b = std::min(rough.b, narrowest(topology, path));
      rough.a = std::max(rough.a, latency(path));
      types.insert(path.type);
      any = true;
    } catch (const InputError&) {
      // No path there: the schedule may not need one, and if it does the run says so.
    }
  }
  if (!any) rough.b = {0};
  rough.type = types.size() == 1 ? std::optional(*types.begin()) : std::nullopt;
  return rough;
}

// ------------------------------------------------------------------------------------------------------- the forms

using namespace forms;

ClosedForm server_form(int servers, const CollectiveRequest& request, const Uniform& machine) {
  ClosedForm form;
  const std::int64_t n = request.ranks, p = request.bytes.count;
  Sum sum{machine, form};
  if (servers > 0) {
    form.formula = "2 max(W ceil(p/S), p)/b + 2a";
    form.is_shared = servers > 1;
    needs_star(machine, form);
    // Chunks are floor(p/S) or one byte more. While the even part moves, the busier side of every port is full; then
    // the last bytes go to p mod S servers, from all workers at once. Equal to the formula unless S > W and S does not
    // divide p: then the servers' ports, not the workers', take the last bytes.
    const std::int64_t even = p / servers, rest = p % servers;
    const Bytes exact = Bytes{even} * std::max<std::int64_t>(n, servers) + Bytes{rest > 0 ? std::max(n, rest) : 0};
    sum.steps(2, std::max((Bytes{ceil_div(p, servers)} * n).count, p), exact.count);
    if (form.low > form.time) std::swap(form.low, form.time);
    return form;
  }
  if (machine.shape == Shape::full_mesh) {
    form.formula = "2(p/b + a)";
    sum.steps(2, p);
  } else {
    form.formula = "2(K-1) p/b + 2a";
    needs_star(machine, form);
    sum.steps(2, (Bytes{p} * (n - 1)).count);
  }
  return form;
}

namespace {

ClosedForm ring_form(std::int64_t segments, const CollectiveRequest& request, const Uniform& machine) {
  ClosedForm form;
  const std::int64_t n = request.ranks, p = request.bytes.count;
  Sum sum{machine, form};
  needs_neighbors(machine, form);
  if (request.op == CollectiveOp::broadcast) {
    const std::int64_t s = segments > 0 ? segments : n;
    form.formula = "(K-2+s)(a + p/(s b))";
    sum.steps(n - 2 + s, p / s, ceil_div(p, s));
  } else if (request.op == CollectiveOp::all_reduce) {
    form.formula = "2(K-1)(a + p/(K b))";
    sum.steps(2 * (n - 1), ceil_div(p, n));
  } else {
    form.formula = "(K-1)(a + p/(K b))";
    sum.steps(n - 1, ceil_div(p, n));
  }
  return form;
}

ClosedForm halving_doubling_form(bool naive, const CollectiveRequest& request, const Uniform& machine) {
  ClosedForm form;
  const std::int64_t p = request.bytes.count;
  const auto n = static_cast<unsigned>(request.ranks);
  const std::int64_t core = std::bit_floor(n);
  needs_own_links_to_peers(machine, form);
  Sum sum{machine, form};
  for (std::int64_t half = core / 2; half >= 1; half /= 2)  // blocks of `half` of the `core` chunks, there and back
    sum.steps(2, share(p, half, core));
  if (core == request.ranks) {
    form.formula = "2 m a + 2(K-1)/K p/b";
  } else if (naive) {
    form.formula = "2(m+1) a + (2(K'-1)/K' + 2) p/b";
    sum.steps(2, p);
  } else {
    form.formula = "(2m+3) a + (2(K'-1)/K' + 2) p/b";
    sum.steps(2, p / 2, ceil_div(p, 2));
    sum.steps(1, p);
  }
  return form;
}

ClosedForm all_to_all_form(bool in_steps, const CollectiveRequest& request, const Uniform& machine) {
  const std::int64_t n = request.ranks, p = request.bytes.count;
  if (in_steps) {
    ClosedForm form{.formula = "(K-1)(a + p/(K b))"};
    needs_own_links_to_peers(machine, form);
    // In each step all ranks send blocks of one size; block 0, which stays, is one of floor(p/n) bytes.
    Sum sum{machine, form};
    sum.steps(p % n, ceil_div(p, n));
    sum.steps(n - 1 - p % n, p / n);
    return form;
  }
  // Every port is full from the first byte to the last; block 0, the rank's own, is one of floor(p/n) bytes.
  ClosedForm form{.formula = "a + (K-1) p/(K b)"};
  form.is_shared = true;
  needs_star(machine, form);
  Sum{machine, form}.steps(1, p - p / n);
  ++form.steps;  // blocks of floor(p/n) end before those that are a byte longer
  return form;
}

/// True if all ranks go through the schedule in step, each sending to one and receiving from one at a time: then they
/// begin every round together, and every round takes as long as the first.
bool is_in_step(const Algorithm& algorithm, const Arguments& arguments, const CollectiveRequest& request) {
  const bool is_power = std::has_single_bit(static_cast<unsigned>(request.ranks));
  if (algorithm.name == "ring")
    return request.op != CollectiveOp::broadcast && number(algorithm, arguments, "rings") <= 1 &&
           number(algorithm, arguments, "slices") <= 1;
  if (algorithm.name == "halving_doubling" || algorithm.name == "recursive_doubling") return is_power;
  if (algorithm.name == "direct") return request.op == CollectiveOp::pairs || request.op == CollectiveOp::send_recv;
  return algorithm.name == "pairwise";
}

/// In r rounds. The messages of c channels leave together and share each port equally: c of x/c bytes take as long as
/// one of x. So the number of channels does not matter, as long as their pieces are equal.
std::optional<ClosedForm> form_of_pieces(const Pieces& pieces, const Algorithm& algorithm, const Arguments& arguments,
                                         CollectiveRequest request, const Uniform& machine) {
  const std::int64_t p = request.bytes.count, rounds = pieces.rounds;
  request.channels = 1;
  request.chunk.reset();
  if (!is_in_step(algorithm, arguments, request)) {
    auto form = closed_form(algorithm, arguments, request, machine);
    if (form && pieces.channels > 1) form->because.push_back(fmt::format("{} channels", pieces.channels));
    if (form && rounds > 1) form->because.push_back(fmt::format("{} pieces, one after the other", rounds));
    return form;
  }
  // Every chunk of every piece is p/(K r) bytes, rounded down or up.
  const std::int64_t n = request.ranks;
  request.bytes = {p / (n * rounds) * n};
  const auto low = closed_form(algorithm, arguments, request, machine);
  request.bytes = Bytes{ceil_div(p, n * rounds)} * n;
  auto form = closed_form(algorithm, arguments, request, machine);
  if (!form || !low) return std::nullopt;
  if (rounds > 1) form->formula = fmt::format("r times, p/r for p: {}", form->formula);
  form->low = times(rounds, low->low);
  form->time = times(rounds, form->time);
  form->steps = static_cast<int>(std::min<std::int64_t>(form->steps * rounds, std::numeric_limits<int>::max()));
  form->is_shared = true;  // packets of several messages take turns at a port
  if (pieces.channels > 1 && p % (n * pieces.count()) != 0)
    form->because.emplace_back(
        "the pieces of the channels differ by a byte, so channels that share ports get out of step");
  return form;
}

}  // namespace

std::optional<ClosedForm> closed_form(const Algorithm& algorithm, const Arguments& arguments,
                                      const CollectiveRequest& request, const Uniform& machine) {
  if (request.ranks == 1) return ClosedForm{.formula = "0 (one rank)"};
  if (machine.b.bytes_per_second == 0 || arguments.file != nullptr) return std::nullopt;
  if (const Pieces pieces = pieces_of(request.bytes, request.channels, request.chunk); pieces.count() > 1)
    return form_of_pieces(pieces, algorithm, arguments, request, machine);
  if (auto form = exchange_form(algorithm, arguments, request, machine)) return form;
  if (auto form = composed_form(algorithm, arguments, request, machine)) return form;
  if (algorithm.name == "parameter_server")
    return server_form(static_cast<int>(number(algorithm, arguments, "servers")), request, machine);
  if (algorithm.name == "ring") {
    const std::int64_t rings = number(algorithm, arguments, "rings"), slices = number(algorithm, arguments, "slices");
    if (rings > 1 || slices > 1)
      return ring_in_pieces_form(std::max<std::int64_t>(1, rings), std::max<std::int64_t>(1, slices), request, machine);
    return ring_form(number(algorithm, arguments, "segments"), request, machine);
  }
  if (algorithm.name == "halving_doubling") {
    const std::string fold = text(algorithm, arguments, "fold");
    if (fold == "binary_blocks") return binary_blocks_form(request, machine);
    return halving_doubling_form(fold == "naive", request, machine);
  }
  if (request.op == CollectiveOp::all_to_all) return all_to_all_form(algorithm.name == "pairwise", request, machine);
  if (algorithm.name == "direct" && request.op == CollectiveOp::pairs) {
    ClosedForm form{.formula = "a + p/b"};
    needs_own_links_to_peers(machine, form);
    Sum{machine, form}.steps(1, request.bytes.count);
    return form;
  }
  if (algorithm.name == "direct") return direct_form(number(algorithm, arguments, "shots") == 1, request, machine);
  return tree_form(algorithm, arguments, request, machine);
}

void assume_even_sizes(ClosedForm& form) {
  // Half a per cent: what parts further than that has another cause, and is to be seen.
  if (times(200, form.time - form.low) <= form.time) return;
  form.because.push_back(fmt::format(
      "the sizes do not divide evenly: rounded down, they would take {:.3f} us, so the form is only a bound",
      microseconds(form.low)));
}

void assume_packets(ClosedForm& form, const PacketOptions& options) {
  if (form.is_shared)
    form.because.emplace_back(
        "messages to several ports leave one port at the same time: their packets delay each other, and ports are idle "
        "for some packet times");
  if (options.buffer) form.because.emplace_back("buffers of a fixed size can slow links down");
}

}  // namespace ringsim
