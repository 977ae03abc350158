#include "topologies/machines/machine_text.hpp"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "sim/base/quantity.hpp"
#include "sim/text/json.hpp"

namespace ringsim {

namespace {

/// `{"value": ..., "source": ..., "assumed": ...}` from the text that the loader made of the two.
Json sourced(Json value, const std::string& origin) {
  Json out{{"value", std::move(value)}};
  const std::string alone = "assumed: ", behind = ", assumed: ";
  if (origin.starts_with(alone)) {
    out["assumed"] = origin.substr(alone.size());
  } else if (const std::size_t at = origin.find(behind); at != std::string::npos && at > 0) {
    out["source"] = origin.substr(0, at);
    out["assumed"] = origin.substr(at + behind.size());
  } else {
    out["source"] = origin.empty() ? "not said" : origin;
  }
  return out;
}

/// The sources of bandwidth and latency, which a LinkSpec holds as one text.
struct Origins {
  std::string bandwidth, latency;
};
Origins origins_of(const std::string& source) {
  const std::string first = "bandwidth: ", second = "; latency: ";
  const std::size_t at = source.rfind(second);
  const std::string head = source.substr(0, at);
  return {head.starts_with(first) ? head.substr(first.size()) : head,
          at == std::string::npos ? head : source.substr(at + second.size())};
}

/// The link types of a machine, in the order in which they are met, named after their kinds.
class Types {
 public:
  std::string name_of(const LinkSpec& link) {
    const Json type = json_of(each_of(link));
    const auto [known, is_new] = names_.emplace(type.dump(-1, ' ', false, Json::error_handler_t::replace), "");
    if (is_new) {
      const std::string kind(to_string(link.kind));
      const int n = ++n_of_kind_[kind];
      known->second = n == 1 ? kind : fmt::format("{}-{}", kind, n);
      types_.emplace_back(known->second, type);
    }
    return known->second;
  }
  const std::vector<std::pair<std::string, Json>>& all() const { return types_; }

 private:
  static Json json_of(const LinkSpec& link) {
    const Origins origins = origins_of(link.source);
    Json type{{"kind", to_string(link.kind)}};
    if (link.duplex == Duplex::half) type["duplex"] = "half";
    type["bandwidth"] = sourced(format(link.bandwidth), origins.bandwidth);
    type["latency"] = sourced(format(link.latency), origins.latency);
    return type;
  }

  std::map<std::string, std::string> names_;  // by the type as text
  std::map<std::string, int> n_of_kind_;
  std::vector<std::pair<std::string, Json>> types_;
};

Json device_of(const Machine::Device& device, Types& types) {
  Json out{{"name", device.name}, {"kind", to_string(device.kind)}};
  if (device.port) out["port"] = types.name_of(*device.port);
  if (device.kind == NodeKind::nic && !device.port) out["cabled"] = false;
  if (device.memory.count > 0) out["memory"] = sourced(format(device.memory), device.memory_source);
  for (const auto& [key, value] : device.attributes) {
    if (!value.empty()) out["attributes"][key] = value;  // a machine file has no empty texts
  }
  return out;
}

/// Only what differs from a Host that nothing is known of.
Json host_of(const Host& host, const std::string& machine) {
  const Host plain;
  Json out = Json::object();
  const std::string source = "as in the machine \"" + machine + "\" from which this file was written";
  if (host.peer_access != plain.peer_access) out["peer_access"] = sourced(to_string(host.peer_access), source);
  if (host.peer_cost != plain.peer_cost) out["peer_cost"] = sourced(host.peer_cost, source);
  if (host.gpudirect_cost != plain.gpudirect_cost) out["gpudirect_cost"] = sourced(host.gpudirect_cost, source);
  if (host.domains != plain.domains) out["domains_of_a_socket"] = sourced(host.domains, source);
  if (host.bridges_apart != plain.bridges_apart) out["between_host_bridges"] = sourced("SYS", source);
  return out;
}

std::string text_of(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

/// A list with an entry a line.
std::string lines_of(const std::vector<Json>& entries) {
  std::string out = "[";
  for (const Json& entry : entries) out += (out == "[" ? "\n    " : ",\n    ") + text_of(entry);
  return out + (entries.empty() ? "]" : "\n  ]");
}

}  // namespace

std::string to_machine_file(const Machine& machine) {
  Types types;
  std::vector<Json> devices, links;
  for (const Machine::Device& device : machine.devices) devices.push_back(device_of(device, types));
  for (const Machine::Cable& cable : machine.cables) {
    Json link{{"from", machine.devices[cable.from].name},
              {"to", machine.devices[cable.to].name},
              {"type", types.name_of(cable.link)}};
    if (cable.link.joined > 1) link["count"] = cable.link.joined;
    links.push_back(std::move(link));
  }

  std::string out = "{\n  \"name\": " + text_of(machine.name) + ",\n  \"summary\": " + text_of(machine.summary) + ",\n";
  if (const Json host = host_of(machine.host, machine.name); !host.empty()) {
    out += "  \"host\": " + text_of(host) + ",\n";
  }
  out += "  \"link_types\": {";
  for (const auto& [name, type] : types.all()) {
    out += (out.ends_with("{") ? "\n    " : ",\n    ") + text_of(name) + ": " + text_of(type);
  }
  return out + "\n  },\n  \"devices\": " + lines_of(devices) + ",\n  \"links\": " + lines_of(links) + "\n}\n";
}

}  // namespace ringsim
