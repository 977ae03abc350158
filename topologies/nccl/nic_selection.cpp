#include "topologies/nccl/nic_selection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <system_error>

#include "sim/base/error.hpp"
#include "sim/text/json.hpp"

namespace ringsim::nccl {

namespace {

struct NamedPort {
  std::string name;
  int port = 1;
};

int port_in(const std::string& entry, std::string_view text) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port < 0)
    throw InputError("", fmt::format("expected the number of a port after the colon, found {}", in_quotes(entry)),
                     R"(such as "mlx5_0:1")");
  return port;
}

NicSelection::Entry entry_of(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == 0)
    throw InputError("", fmt::format("expected the name of a NIC before the colon, found {}", in_quotes(text)),
                     R"(such as "mlx5_0:1")");
  if (colon == std::string::npos) return {text, NicSelection::any_port};
  return {text.substr(0, colon), port_in(text, std::string_view(text).substr(colon + 1))};
}

/// What the adapter of a NIC calls its ports.
std::vector<NamedPort> ports_of(const Machine::Device& nic) {
  std::vector<NamedPort> found;
  for (const auto& [key, name] : nic.attributes) {
    if (key != "name" && !(key.starts_with("net") && key.ends_with(".name"))) continue;
    NamedPort port{name, 1};
    const auto number = nic.attributes.find(key.substr(0, key.size() - std::string_view("name").size()) + "port");
    if (number != nic.attributes.end())
      std::from_chars(number->second.data(), number->second.data() + number->second.size(), port.port);
    found.push_back(port);
  }
  return found;
}

}  // namespace

bool NicSelection::matches(const Entry& entry, std::string_view name, int port) const {
  return (exact ? name == entry.name : name.starts_with(entry.name)) && (entry.port == any_port || entry.port == port);
}

bool NicSelection::selects(std::string_view name, int port) const {
  const bool listed =
      std::any_of(entries.begin(), entries.end(), [&](const Entry& entry) { return matches(entry, name, port); });
  return listed != excludes;
}

NicSelection read_ib_hca(const std::string& text) {
  NicSelection found;
  std::size_t begin = 0;
  if (text.starts_with('^')) found.excludes = true, ++begin;
  if (text.substr(begin).starts_with('=')) found.exact = true, ++begin;
  if (found.exact && text.substr(begin).starts_with('^'))
    throw InputError("", fmt::format("expected ^ before =, found {}", in_quotes(text)), R"(such as "^=mlx5_3")");
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) found.entries.push_back(entry_of(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  if (found.entries.empty())
    throw InputError("", fmt::format("expected names of NICs, found none in {}", in_quotes(text)),
                     R"(such as "mlx5_0,mlx5_1"; "^mlx5_2" excludes, and "=mlx5_1" does not match mlx5_10)");
  return found;
}

Selected selected(const NicSelection& selection, const Machine::Device& nic) {
  std::vector<NamedPort> ports = ports_of(nic);
  // An adapter may be called like another NIC of the machine file, so its own name comes first.
  if (ports.empty() || selection.selects(nic.name, 1) != selection.excludes)
    return selection.selects(nic.name, 1) ? Selected::yes : Selected::no;
  const auto n = std::count_if(ports.begin(), ports.end(),
                               [&](const NamedPort& port) { return selection.selects(port.name, port.port); });
  if (n == 0) return Selected::no;
  return static_cast<std::size_t>(n) == ports.size() ? Selected::yes : Selected::in_part;
}

bool names(const NicSelection& selection, const NicSelection::Entry& entry, const Machine::Device& nic) {
  const std::vector<NamedPort> ports = ports_of(nic);
  return selection.matches(entry, nic.name, 1) || std::any_of(ports.begin(), ports.end(), [&](const NamedPort& port) {
           return selection.matches(entry, port.name, port.port);
         });
}

}  // namespace ringsim::nccl
