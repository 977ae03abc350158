// How the messages of a call move: a library chooses it for each collective and size.
#pragma once

#include <vector>

#include "sim/run/protocol.hpp"
#include "sim/topology/routes.hpp"

namespace ringsim {

/// A transport as messages of that protocol use it.
inline Transport transport_for(const Protocol& protocol, Transport transport) {
  transport.always_direct = protocol.in_host_memory;
  return transport;
}

/// The calls of a run may differ in all of it. What they share are the links.
struct CallPlan {
  const Protocol* protocol = &no_protocol();  ///< outlives the run
  Transport transport;
  /// [link] what of its rate a byte takes, in bytes: more than one if the kernels of this plan move less over it than
  /// those of others. Links of devices to themselves are not in it. Empty: one byte of each link.
  std::vector<double> costs;
  /// Which of DeviceLinks::channels its channels take, modulo their number: `n_device_channels` from the first on. 0:
  /// none, they have no limit.
  int first_device_channel = 0;
  int n_device_channels = all_device_channels;

  static constexpr int all_device_channels = -1;
};

}  // namespace ringsim
