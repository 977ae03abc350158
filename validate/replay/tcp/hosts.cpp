#include "validate/replay/tcp/hosts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <sstream>

#include "sim/base/error.hpp"
#include "validate/replay/tcp/asio.hpp"

namespace ringsim::replay {

using Tcp = boost::asio::ip::tcp;

namespace {

/// "[fd00::1]" and "fd00::1" are one host.
std::string without_brackets(const std::string& host) {
  return host.size() > 2 && host.front() == '[' && host.back() == ']' ? host.substr(1, host.size() - 2) : host;
}

bool is_host(const std::string& host) {
  const auto has_no_place = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte <= ' ' || byte == 0x7F || c == '[' || c == ']';
  };
  if (host.empty() || host.size() > 253 || std::any_of(host.begin(), host.end(), has_no_place)) return false;
  boost::system::error_code error;
  if (host.find(':') != std::string::npos) boost::asio::ip::make_address_v6(host, error);
  return !error;
}

/// Why no process can be reached there; empty: one can.
const char* why_nowhere(boost::asio::ip::address address) {
  namespace ip = boost::asio::ip;
  if (address.is_v6() && address.to_v6().is_v4_mapped()) address = ip::make_address_v4(ip::v4_mapped, address.to_v6());
  if (address.is_unspecified()) return "which stands for all addresses of a machine";
  if (address.is_multicast()) return "which is a multicast address";
  if (address.is_v4() && address.to_v4() == ip::address_v4::broadcast()) return "which is a broadcast address";
  return "";
}

/// Throws if the host is an address that cannot be one. A name is not looked up yet.
void expect_place(const std::string& host, const std::string& where) {
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(host, error);
  if (error) return;
  if (const std::string why = why_nowhere(address); !why.empty())
    throw InputError(where,
                     fmt::format("expected an address at which others can reach the process, found {}, {}", host, why),
                     "use the address of one of its adapters");
}

/// A file of at most `most` bytes.
std::string text_of(const std::string& path) {
  constexpr std::size_t most = std::size_t{1} << 20;
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError(path, fmt::format("cannot be read: {}", std::strerror(errno)));
  std::string text(most + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > most) throw InputError(path, "expected a file of hosts of at most 1 MiB, found a larger one");
  return text;
}

}  // namespace

TcpHosts read_hosts(const std::string& path) {
  std::istringstream file(text_of(path));
  TcpHosts hosts{.hosts = {}, .port = 0, .file = path};
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    line.erase(std::min(line.find('#'), line.size()));
    const auto begin = line.find_first_not_of(" \t\r");
    if (begin == std::string::npos) continue;
    const std::string text = line.substr(begin, line.find_last_not_of(" \t\r") - begin + 1);
    const std::string where = fmt::format("{}:{}", path, number);
    const std::string shown = text.substr(0, 60);  // in errors
    std::string host = without_brackets(text);
    if (hosts.hosts.empty()) {
      const auto colon = text.rfind(':');
      host = colon == std::string::npos ? "" : text.substr(0, colon);
      const bool bare_v6 = host.find(':') != std::string::npos && host.back() != ']';
      const char* end = text.data() + text.size();
      const auto [after, error] = std::from_chars(text.data() + std::min(colon + 1, text.size()), end, hosts.port);
      host = without_brackets(host);
      if (!is_host(host) || bare_v6 || error != std::errc() || after != end || hosts.port == 0)
        throw InputError(where, fmt::format("expected HOST:PORT, found \"{}\"", shown),
                         "the first process listens there for the others, for example 10.0.0.1:7117 or [fd00::1]:7117");
    } else if (!is_host(host)) {
      throw InputError(where, fmt::format("expected one host, found \"{}\"", shown),
                       "write one line per process; only the first has a port");
    }
    expect_place(host, where);
    hosts.hosts.push_back(host);
  }
  if (hosts.hosts.empty()) throw InputError(path, "expected one host per line, found none");
  return hosts;
}

std::string address_of(const std::string& host) {
  boost::asio::io_context io;
  boost::system::error_code error;
  const auto found = Tcp::resolver(io).resolve(host, "", error);
  if (error || found.empty())
    throw EnvironmentError(fmt::format("the address of host \"{}\" is unknown: {}", host, error.message()));
  const auto is_v4 = [](const auto& entry) { return entry.endpoint().address().is_v4(); };
  const auto v4 = std::find_if(found.begin(), found.end(), is_v4);
  const auto address = (v4 != found.end() ? v4 : found.begin())->endpoint().address();
  if (const std::string why = why_nowhere(address); !why.empty())  // "0" is 0.0.0.0
    throw InputError(
        "", fmt::format("expected a host that others can reach, found \"{}\", {}, {}", host, address.to_string(), why));
  return address.to_string();
}

std::string own_address(const TcpHosts& hosts, int process) {
  const std::string& host = hosts.hosts.at(static_cast<std::size_t>(process));
  std::string own = address_of(host);
  const auto is_loopback = [](const std::string& address) {
    return boost::asio::ip::make_address(address).is_loopback();
  };
  if (!is_loopback(own)) return own;
  const std::size_t other = process == 0 ? std::min<std::size_t>(1, hosts.hosts.size() - 1) : 0;
  if (!is_loopback(address_of(hosts.hosts[other])))
    throw InputError(hosts.file,
                     fmt::format("expected addresses at which others can reach each process, found {} for process {} "
                                 "(\"{}\"), which only this machine can reach",
                                 own, process, host),
                     "use its address instead of its name");
  return own;
}

}  // namespace ringsim::replay
