// The textbooks' cost models: what time a collective takes if nothing gets in its way.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "algorithms/catalog.hpp"
#include "sim/base/units.hpp"
#include "sim/network/network_model.hpp"
#include "sim/run/protocol.hpp"
#include "sim/topology/routes.hpp"
#include "sim/topology/topology.hpp"

namespace ringsim {

/// A closed form, evaluated. Times are rounded up to a picosecond once a transfer, as the simulation's are.
struct ClosedForm {
  std::string formula;  ///< in K ranks, p bytes, b bytes/s, a: latency of a path; W workers, S servers, s segments,
                        ///< e: what a protocol adds to it, w bytes on the wire for one of data, t a launch;
                        ///< R rings of l slices; r rounds (channels.hpp); of a tree: d its depth, k the most children,
                        ///< c the last parent's
  Picoseconds time{0};  ///< with every block that does not divide evenly rounded up
  Picoseconds low{0};   ///< with every such block rounded down; equal to `time` if the form is exact
  int steps = 0;        ///< how often a transfer's time is rounded: a simulation may differ by 1 ps for each
  bool is_shared =
      false;  ///< several messages leave a port at once for several others: packets get in each other's way
  std::vector<std::string> because;  ///< assumptions that do not hold here; empty: the form holds

  bool holds() const { return because.empty(); }
  /// True if `simulated` lies within [low, time], give or take 1 ps a step.
  bool agrees(Picoseconds simulated) const;
  /// simulated / time; 1 if both are 0, nothing if the form alone is: no number says how far it is off.
  std::optional<double> ratio(Picoseconds simulated) const;
};

/// What a form assumes of the machine, found by looking at the topology, not at its name.
enum class Shape {
  star,       ///< every member has one full-duplex port of equal speed into one switch: a = twice the port's latency
  full_mesh,  ///< an equal full-duplex cable between every two members: a = its latency
  neighbors,  ///< an equal full-duplex cable between members r and r+1, closed: a = its latency
  grid,       ///< the same along each dimension of a grid that was asked for
  other
};
struct Uniform {
  Shape shape = Shape::other;
  Bandwidth b;
  Picoseconds a{0};
  std::optional<PathType> type = PathType::dir;  ///< of the paths from each rank to the next; nothing: of several
};
/// Looks at the members (ranks, then helpers). For `other`, b is the narrowest and a the longest of the paths from each
/// rank to the next: what the form is then a rough estimate for; b = 0 if no rank has a path to the next.
/// `grid`: how the algorithm takes the ranks to lie (grid_of), the last dimension varying fastest.
Uniform uniform_of(const Topology& topology, std::span<const NodeId> ranks, std::span<const NodeId> helpers,
                   const Transport& transport, const Routing& routing = {}, std::span<const int> grid = {});

/// The form of DESIGN's table for an algorithm of the catalog under protocol `none`; nothing if none is known.
/// Launch, copy and reduction are free. Each algorithm names its source.
std::optional<ClosedForm> closed_form(const Algorithm& algorithm, const Arguments& arguments,
                                      const CollectiveRequest& request, const Uniform& machine);

/// Makes it the form under a protocol with slots: of the plain ring and of its chain (broadcast). Of others it says in
/// `because` that they are made for `none`.
void assume_protocol(ClosedForm& form, const Algorithm& algorithm, const Arguments& arguments,
                     const CollectiveRequest& request, const Uniform& machine, const Protocol& protocol);

/// Says in `because` if sizes that do not divide evenly leave so much room between `low` and `time` that to lie
/// there proves nothing. (The grid of cases looks at the bounds themselves, and does not ask.)
void assume_even_sizes(ClosedForm& form);

/// Says in `because` what of the form does not hold if data moves in packets (moves_packets()).
void assume_packets(ClosedForm& form, const PacketOptions& options);

}  // namespace ringsim
