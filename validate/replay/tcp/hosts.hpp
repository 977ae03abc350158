// Which processes of a replay run on which machine: a file of hosts, and their addresses.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ringsim::replay {

/// Several machines. `hosts`: [process] a name or an address, by which the others reach it. Process 0 leads: it listens
/// at `port`, where the others find it.
struct TcpHosts {
  std::vector<std::string> hosts;
  std::uint16_t port = 0;
  std::string file;  ///< for errors
};
/// One line per process: a host, an IPv4 or an IPv6 address; the first HOST:PORT or [IPv6]:PORT; "#" begins a comment.
/// Throws InputError.
TcpHosts read_hosts(const std::string& path);

/// The address of a host as text; of a name that has several the first IPv4 address, else the first of all. Throws
/// EnvironmentError.
std::string address_of(const std::string& host);
/// The address of this process's own line. Throws EnvironmentError if it has none, and InputError if it is this
/// machine's loopback, while another line is not: nobody else would reach it.
std::string own_address(const TcpHosts& hosts, int process);

}  // namespace ringsim::replay
