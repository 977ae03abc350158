// What NICs offer: the <net> elements of NCCL's topology XML.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <utility>

#include "topologies/formats/nccl_rules.hpp"
#include "topologies/formats/nccl_xml_reader.hpp"
#include "topologies/machines/machine.hpp"

namespace ringsim::nccl {

namespace {

constexpr std::int64_t fastest_mbps = 3'200'000;  // a port of 1.6 Tb/s is announced; beyond twice that it is a mistake
constexpr std::int64_t default_mbps = 10'000;     // what NCCL takes if the speed is 0 or less

/// `guid` if it tells NICs apart: empty for 0, which virtual machines write.
std::string guid_of(const XmlElement& net) {
  const std::string guid = lower(text_of(net, "guid"));
  return guid.find_first_not_of("0x") == std::string::npos ? "" : guid;
}

bool is_used(XmlImport& import, const XmlElement& net) {
  if (net.name != "net") return false;
  if (!whole(net, "dev", 0, 1 << 20)) {
    import.warn(net, net.find("dev") == nullptr
                         ? "a <net> without dev; ignored, as NCCL does"
                         : fmt::format("dev \"{}\" of a <net> is not a number; ignored", text_of(net, "dev")));
    return false;
  }
  const std::string* used = net.find("net");
  if (used != nullptr && whole(net, "net", INT64_MIN, INT64_MAX).value_or(0) == 0) {
    import.warn(net, fmt::format("a <net> that is not used for messages (net=\"{}\"); ignored", *used));
    return false;
  }
  return true;
}

/// What its <net> says, numbers as they are read here.
void keep_net(XmlImport& import, const XmlElement& net, const std::string& prefix,
              std::map<std::string, std::string>& attributes) {
  for (const auto& [name, value] : net.attributes)
    if (!value.empty() && is_known_attribute("net", name)) attributes[prefix + name] = value;
  read_gdr(import, net, attributes, prefix + "gdr");
  for (const char* name : {"dev", "port"}) {
    if (!attributes.contains(prefix + name)) continue;
    if (const auto number = whole(net, name, 0, 1 << 20)) {
      attributes[prefix + name] = std::to_string(*number);
    } else {
      import.warn(net, fmt::format("{} \"{}\" of a <net> is not a number; ignored", name, text_of(net, name)));
      attributes.erase(prefix + name);
    }
  }
}

/// The first NIC with a port of options.like; nullptr: none.
const Machine::Device* nic_like(const XmlImport& import) {
  if (!import.options.like) return nullptr;
  for (const Machine::Device& device : import.options.like->devices)
    if (device.kind == NodeKind::nic && device.port) return &device;
  return nullptr;
}

struct Speed {
  std::int64_t mbps = 0;
  bool from_user = false;
};

Speed speed_of(XmlImport& import, const XmlElement& net) {
  const std::string text = text_of(net, "speed");
  const auto speed = whole(net, "speed", INT64_MIN, INT64_MAX);
  if (speed && *speed > 0 && *speed <= fastest_mbps) return {*speed};
  const std::string odd = fmt::format("speed \"{}\" Mb/s", text);
  if (import.options.nic || nic_like(import) != nullptr) {
    import.warn(
        net, fmt::format("{}; that of {} is used", odd, import.options.nic ? "the option" : import.options.like->name));
    return {0, true};
  }
  if (speed && *speed > fastest_mbps && *speed / 1000 <= fastest_mbps) {
    import.warn(
        net, fmt::format("{} is faster than any NIC; read as kb/s: {} Gb/s", odd, static_cast<double>(*speed) / 1e6));
    return {*speed / 1000};
  }
  import.warn(net, fmt::format("{}; read as 10 Gb/s, as NCCL does for values of 0 or less", odd));
  return {default_mbps};
}

/// The payload rate of a port for which the file states `mbps` (Mb/s). Line rates of InfiniBand and Ethernet include
/// headers; of them, payload reaches the same share as in the link types hdr and efa-200, which have a line rate of 200
/// Gb/s. Other rates are kept: they are no line rates, such as the 180000 that Oracle states for a port of 200 Gb/s.
Bandwidth payload_of(std::int64_t mbps, bool efa) {
  constexpr std::int64_t lines[] = {10'000, 25'000, 40'000, 50'000, 100'000, 200'000, 400'000, 800'000};
  const std::int64_t stated = mbps * 125'000;  // bytes/s
  if (std::find(std::begin(lines), std::end(lines), mbps) == std::end(lines)) return {stated};
  const auto payload = static_cast<double>(library_link(efa ? "efa-200" : "hdr").bandwidth.bytes_per_second);
  return {std::llround(static_cast<double>(stated) * payload / 25e9)};
}

/// 0, which NCCL writes of most NICs, says nothing.
Picoseconds latency_of(XmlImport& import, const XmlElement& net) {
  const std::string text = text_of(net, "latency", "0");
  double us = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), us);
  if (error == std::errc() && end == text.data() + text.size() && us >= 0 && us < 1e6)
    return Picoseconds{std::llround(us * 1e6)};
  import.warn(net, fmt::format("latency \"{}\" us of a <net>; ignored", text));
  return Picoseconds{0};
}

LinkKind kind_of(const Found& nic) {
  const auto type = nic.attributes.find("class");
  return type != nic.attributes.end() && lower(type->second).starts_with("0x0207") ? LinkKind::infiniband
                                                                                   : LinkKind::ethernet;
}

/// The port of options.nic, else of the first NIC of options.like; nothing if neither tells.
std::optional<LinkSpec> users_port(XmlImport& import, Found& nic) {
  if (import.options.nic) {
    import.used_nic_option = true;
    LinkSpec port = *import.options.nic;
    if (port.kind == LinkKind::generic) port.kind = kind_of(nic);
    return port;
  }
  const Machine::Device* like = nic_like(import);
  if (like == nullptr) return std::nullopt;
  import.used_like = true;
  if (const auto provider = like->attributes.find("provider"); provider != like->attributes.end())
    nic.attributes.insert(*provider);
  return like->port;
}

/// AWS's Elastic Fabric Adapter, by the name that its Linux driver gives (rdmap79s0) or its PCI device (1d0f:efa0 to
/// efa3; linux-rdma/rdma-core providers/efa/efa.c, efa_table).
bool is_efa(const Found& nic, const std::vector<const XmlElement*>& nets) {
  const auto says = [&](const char* attribute, std::string_view begin) {
    const auto found = nic.attributes.find(attribute);
    return found != nic.attributes.end() && lower(found->second).starts_with(begin);
  };
  return (says("vendor", "0x1d0f") && says("device", "0xefa")) ||
         std::any_of(nets.begin(), nets.end(),
                     [](const XmlElement* net) { return text_of(*net, "name", "").starts_with("rdmap"); });
}

/// The sum of the nets' ports: what leaves the physical NIC at once. A port that is listed twice counts once.
LinkSpec port_of(XmlImport& import, Found& nic, const std::vector<const XmlElement*>& nets) {
  std::set<std::pair<std::string, std::string>> ports;
  std::int64_t mbps = 0;
  Bandwidth payload{0};
  Picoseconds latency{0};
  for (const XmlElement* net : nets) {
    if (const std::string guid = guid_of(*net); !guid.empty()) {
      if (!ports.emplace(guid, text_of(*net, "port")).second) {
        import.warn(
            *net, fmt::format("port {} of guid {} occurs here again; counted only once", text_of(*net, "port"), guid));
        continue;
      }
    }
    const Speed speed = speed_of(import, *net);
    if (speed.from_user) return *users_port(import, nic);
    mbps += speed.mbps;
    payload.bytes_per_second += payload_of(speed.mbps, is_efa(nic, nets)).bytes_per_second;
    if (latency.count() == 0) latency = latency_of(import, *net);
  }
  std::string rate = fmt::format("{}: {} Mb/s", import.place(*nets.front()), mbps);
  if (nets.size() > 1) rate += ", the sum of its ports, which NCCL_IB_MERGE_NICS makes one by default";
  if (payload.bytes_per_second < mbps * 125'000)
    rate += fmt::format("; payload reaches {:.4g} % of it",
                        100.0 * static_cast<double>(payload.bytes_per_second) / (static_cast<double>(mbps) * 125'000));
  LinkSpec port = link(kind_of(nic), payload, rate);
  if (latency.count() > 0) {
    port.latency = latency;
    port.source = fmt::format("bandwidth: {}; latency: {}: from its <net>", rate, import.place(*nets.front()));
  }
  return port;
}

/// What tells interfaces of a host apart.
std::string interface_of(const XmlElement& net) { return text_of(net, "name", "net " + text_of(net, "dev")); }

}  // namespace

void read_nets(XmlImport& import) {
  /// The nets of each host without a PCI device, which NCCL takes for one.
  std::map<std::pair<int, std::string>, Found*> by_interface;
  std::map<std::pair<int, std::string>, Found*> by_guid;
  std::map<const Found*, std::vector<const XmlElement*>> nets;
  for (Found* nic : import.all(NodeKind::nic)) {
    if (nic->nic == nullptr) continue;
    for (const XmlElement& net : nic->nic->children) {
      if (!is_used(import, net)) continue;
      if (nic->element == nic->nic) {
        Found* first = by_interface.emplace(std::pair{nic->host, interface_of(net)}, nic).first->second;
        if (first != nic) {
          import.warn(net, fmt::format("{} has no PCI device and is listed again (first on line {}); counted once and "
                                       "connected to every CPU that lists it",
                                       interface_of(net), first->nic->line));
          nic->same = first;
          continue;
        }
      }
      Found* owner = nic;
      if (const std::string guid = guid_of(net); !guid.empty()) {
        const auto [first, is_new] = by_guid.emplace(std::pair{nic->parent, guid}, nic);
        owner = first->second;
        nic->merged = nic->merged || owner != nic;
      }
      nets[owner].push_back(&net);
    }
    if (nets.contains(nic)) nic->same = nullptr;  // it has others as well
    nic->merged = nic->merged || nic->same != nullptr;
  }
  std::vector<const Found*> silent;
  for (Found* nic : import.all(NodeKind::nic)) {
    const std::vector<const XmlElement*>& own = nets[nic];
    for (std::size_t i = 0; i < own.size(); ++i) keep_net(import, *own[i], fmt::format("net{}.", i), nic->attributes);
    if (is_efa(*nic, own)) nic->attributes.try_emplace("provider", "efa");
    if (!own.empty()) {
      nic->dev = static_cast<int>(*whole(*own.front(), "dev", 0, 1 << 20));
      nic->port = port_of(import, *nic, own);
    } else if (nic->port = users_port(import, *nic); !nic->port) {
      silent.push_back(nic);
    }
  }
  if (!silent.empty())
    import.warn(*silent.front()->element,
                fmt::format("the file does not state the speed of {} of {} NICs, of which this is the first; to cable "
                            "them, set it with {}",
                            silent.size(), import.all(NodeKind::nic).size(), how_to_say("nic", "RATE")));
  if (import.options.nic && !import.used_nic_option) {
    import.machine.warnings.push_back(
        import.file +
        (import.all(NodeKind::nic).empty()
             ? ": the NIC rate that you set is not used, because the file has no NIC"
             : ": the NIC rate that you set is not used, because the file states the speed of every NIC"));
  }
}

}  // namespace ringsim::nccl
