#include "sim/topology/topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "sim/base/error.hpp"

namespace ringsim {

RoutingPolicy routing_of_port(const LinkSpec& port) {
  if (port.routing) return *port.routing;
  return port.kind == LinkKind::ethernet ? RoutingPolicy::ecmp : RoutingPolicy::fixed;
}

std::string_view to_string(NodeKind kind) {
  switch (kind) {
    case NodeKind::gpu:
      return "gpu";
    case NodeKind::cpu:
      return "cpu";
    case NodeKind::host_bridge:
      return "host_bridge";
    case NodeKind::memory:
      return "memory";
    case NodeKind::pcie_switch:
      return "pcie_switch";
    case NodeKind::pcie_slot:
      return "pcie_slot";
    case NodeKind::nvswitch:
      return "nvswitch";
    case NodeKind::nic:
      return "nic";
    case NodeKind::network_switch:
      return "switch";
  }
  fail_invariant("a node has one of the known kinds");
}

std::string_view to_string(LinkKind kind) {
  switch (kind) {
    case LinkKind::generic:
      return "link";
    case LinkKind::nvlink:
      return "nvlink";
    case LinkKind::xgmi:
      return "xgmi";
    case LinkKind::c2c:
      return "c2c";
    case LinkKind::pcie:
      return "pcie";
    case LinkKind::socket:
      return "socket";
    case LinkKind::memory:
      return "memory";
    case LinkKind::infiniband:
      return "infiniband";
    case LinkKind::ethernet:
      return "ethernet";
    case LinkKind::copy:
      return "copy";
    case LinkKind::reduce:
      return "reduce";
    case LinkKind::channel:
      return "channel";
  }
  fail_invariant("a link has one of the known kinds");
}

std::span<const LinkId> Topology::links_from(NodeId id) const {
  return std::span(out_).subspan(first_out_[id.value], first_out_[id.value + 1] - first_out_[id.value]);
}

std::span<const LinkId> Topology::links_to(NodeId id) const {
  return std::span(in_).subspan(first_in_[id.value], first_in_[id.value + 1] - first_in_[id.value]);
}

Topology Topology::with_links(const std::function<void(Link&)>& change) const {
  Topology changed = *this;
  for (Link& link : changed.links_) {
    change(link);
    ensure(link.bandwidth.bytes_per_second > 0 && link.bandwidth <= max_bandwidth && link.latency.count() >= 0,
           "a changed link has a bandwidth and a latency that links may have");
    changed.resources_[link.resource.value].bandwidth = link.bandwidth;
  }
  return changed;
}

namespace {
std::size_t hash_of(std::string_view name) { return std::hash<std::string_view>{}(name); }
}  // namespace

std::optional<NodeId> Topology::find(std::string_view name) const {
  const std::size_t wanted = hash_of(name);
  const auto less = [&](NodeId one, std::size_t hash) { return hash_of(node(one).name) < hash; };
  for (auto found = std::lower_bound(by_name_.begin(), by_name_.end(), wanted, less);
       found != by_name_.end() && hash_of(node(*found).name) == wanted; ++found)
    if (node(*found).name == name) return *found;
  return std::nullopt;
}

Topology Topology::with_rates(const std::function<std::optional<DeviceRates>(NodeId)>& rates, int channels) const {
  ensure(devices_.empty(), "a topology gets the rates of its devices once");
  Topology rated = *this;
  rated.device_of_.assign(nodes_.size(), UINT32_MAX);
  const auto source = static_cast<std::uint32_t>(rated.sources_.size());
  rated.sources_.emplace_back("devices");
  for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
    const std::optional<DeviceRates> of = rates({n});
    if (!of) continue;
    const auto to_itself = [&](LinkKind kind, Bandwidth bandwidth, ResourceId resource = no_resource) {
      ensure(bandwidth.bytes_per_second > 0 && bandwidth <= max_bandwidth, "a device has rates that links may have");
      const LinkId id{static_cast<std::uint32_t>(rated.links_.size())};
      if (resource == no_resource) {
        resource = ResourceId{static_cast<std::uint32_t>(rated.resources_.size())};
        rated.resources_.push_back({bandwidth, id, false});
      }
      rated.links_.push_back({{n}, {n}, bandwidth, Picoseconds{0}, kind, 1, resource, source});
      return id;
    };
    const auto work = [&](LinkKind kind, const std::optional<Bandwidth>& rate) -> DeviceLinks::Work {
      if (!rate) return {};
      if (!of->over) return {to_itself(kind, *rate), 1};
      // It shares what the link can carry, not its latency.
      const ResourceId shared = link(*of->over).resource;
      const Bandwidth most = resource(shared).bandwidth;
      return {to_itself(kind, most, shared),
              static_cast<double>(most.bytes_per_second) / static_cast<double>(rate->bytes_per_second)};
    };
    DeviceLinks device{.start = of->start, .post = of->post};
    device.copy = work(LinkKind::copy, of->copy);
    device.reduce = work(LinkKind::reduce, of->reduce);
    if (of->channel)
      for (int channel = 0; channel < channels; ++channel)
        device.channels.push_back(to_itself(LinkKind::channel, *of->channel));
    for (const Bandwidth rate : of->channels) device.channels.push_back(to_itself(LinkKind::channel, rate));
    rated.has_work_rates_ = rated.has_work_rates_ || of->copy || of->reduce;
    rated.has_posts_ = rated.has_posts_ || of->post.count() > 0;
    rated.has_channel_rates_ = rated.has_channel_rates_ || !device.channels.empty();
    rated.device_of_[n] = static_cast<std::uint32_t>(rated.devices_.size());
    rated.devices_.push_back(std::move(device));
  }
  return rated;
}

bool Topology::are_alike(LinkId a, LinkId b) const {
  const Link &x = link(a), &y = link(b);
  return x.bandwidth == y.bandwidth && x.latency == y.latency && x.kind == y.kind &&
         node(x.from).kind == node(y.from).kind && node(x.to).kind == node(y.to).kind;
}

const DeviceLinks* Topology::device(NodeId id) const {
  if (devices_.empty() || device_of_[id.value] == UINT32_MAX) return nullptr;
  return &devices_[device_of_[id.value]];
}

std::string Topology::link_name(LinkId id) const {
  const Link& named = link(id);
  const bool is_work = named.kind == LinkKind::copy || named.kind == LinkKind::reduce;
  if (!is_work && named.kind != LinkKind::channel) return node(named.from).name + " -> " + node(named.to).name;
  if (is_work) return fmt::format("{} ({})", node(named.from).name, to_string(named.kind));
  const std::vector<LinkId>& channels = device(named.from)->channels;
  return fmt::format("{} (channel {})", node(named.from).name,
                     std::find(channels.begin(), channels.end(), id) - channels.begin());
}

std::string Topology::resource_name(ResourceId id) const {
  const Resource& what = resource(id);
  if (!what.shared) return link_name(what.link);
  return node(link(what.link).from).name + " <-> " + node(link(what.link).to).name;
}

NodeId TopologyBuilder::add_node(std::string name, NodeKind kind, std::optional<std::uint32_t> host) {
  const NodeId id{static_cast<std::uint32_t>(made_.nodes_.size())};
  if (!by_name_.emplace(name, id).second) {
    throw InputError("", "two nodes are named \"" + name + "\"", "give every node a unique name");
  }
  made_.nodes_.push_back({.name = std::move(name), .kind = kind, .host = host});
  if (host && *host >= made_.hosts_.size()) made_.hosts_.resize(*host + 1);
  return id;
}

std::optional<NodeId> TopologyBuilder::find(std::string_view name) const {
  const auto found = by_name_.find(std::string(name));
  if (found == by_name_.end()) return std::nullopt;
  return found->second;
}

void TopologyBuilder::describe_host(std::uint32_t number, const Host& host) {
  if (number >= made_.hosts_.size()) made_.hosts_.resize(number + 1);
  made_.hosts_[number] = host;
}

void TopologyBuilder::add_rank(NodeId node) { made_.ranks_.push_back(node); }
void TopologyBuilder::add_helper(NodeId node) { made_.helpers_.push_back(node); }

NodeId TopologyBuilder::add_gpu(std::string name, std::optional<std::uint32_t> host) {
  const NodeId id = add_node(std::move(name), NodeKind::gpu, host);
  add_rank(id);
  return id;
}

std::uint32_t TopologyBuilder::source_index(const std::string& text) {
  const auto [entry, is_new] = source_ids_.emplace(text, static_cast<std::uint32_t>(made_.sources_.size()));
  if (is_new) made_.sources_.push_back(text);
  return entry->second;
}

LinkId TopologyBuilder::push_link(NodeId from, NodeId to, const LinkSpec& spec, ResourceId resource) {
  const std::size_t n = made_.nodes_.size();
  ensure(from.value < n && to.value < n, "both ends of a link are nodes of its topology");
  const LinkId id{static_cast<std::uint32_t>(made_.links_.size())};
  if (resource == no_resource) {
    resource = ResourceId{static_cast<std::uint32_t>(made_.resources_.size())};
    made_.resources_.push_back({spec.bandwidth, id, false});
  } else {
    made_.resources_[resource.value].shared = true;
  }
  made_.links_.push_back(
      {from, to, spec.bandwidth, spec.latency, spec.kind, spec.joined, resource, source_index(spec.source)});
  return id;
}

void TopologyBuilder::add_cable(NodeId a, NodeId b, const LinkSpec& spec) {
  const LinkId there = push_link(a, b, spec, no_resource);
  push_link(b, a, spec, spec.duplex == Duplex::half ? made_.links_[there.value].resource : no_resource);
}

void TopologyBuilder::add_link(NodeId from, NodeId to, const LinkSpec& spec) { push_link(from, to, spec, no_resource); }

std::size_t TopologyBuilder::change_cables(NodeId a, NodeId b, std::size_t first, std::optional<Bandwidth> bandwidth,
                                           std::optional<Picoseconds> latency, const std::string& source) {
  std::size_t changed = 0;
  for (std::size_t l = first; l < made_.links_.size(); ++l) {
    Link& link = made_.links_[l];
    if (!(link.from == a && link.to == b) && !(link.from == b && link.to == a)) continue;
    link.source = source_index(source + ", in place of: " + made_.sources_[link.source]);
    if (latency) link.latency = *latency;
    if (bandwidth) link.bandwidth = made_.resources_[link.resource.value].bandwidth = *bandwidth;
    ++changed;
  }
  return changed;
}

namespace {
/// Sorts link ids by one of their ends: those of node n are then [first[n], first[n + 1]), oldest first.
void index_links(const std::vector<Link>& links, NodeId Link::*end, std::size_t n_nodes,
                 std::vector<std::uint32_t>& first, std::vector<LinkId>& sorted) {
  first.assign(n_nodes + 1, 0);
  for (const Link& link : links) ++first[(link.*end).value + 1];
  for (std::size_t n = 0; n < n_nodes; ++n) first[n + 1] += first[n];
  std::vector<std::uint32_t> next(first.begin(), first.end() - 1);
  sorted.resize(links.size());
  for (std::uint32_t l = 0; l < links.size(); ++l) sorted[next[(links[l].*end).value]++] = LinkId{l};
}

/// All nodes in the order of the hashes of their names. Such a list takes a tenth of what a table of names does.
std::vector<NodeId> by_hash(const std::vector<Node>& nodes) {
  std::vector<std::pair<std::size_t, NodeId>> hashes;
  for (std::uint32_t n = 0; n < nodes.size(); ++n) hashes.emplace_back(hash_of(nodes[n].name), NodeId{n});
  std::sort(hashes.begin(), hashes.end());
  std::vector<NodeId> sorted;
  sorted.reserve(nodes.size());
  for (const auto& [hash, node] : hashes) sorted.push_back(node);
  return sorted;
}
}  // namespace

Topology TopologyBuilder::build() {
  if (made_.ranks_.empty()) throw InputError("", "the topology has no rank", "add at least one gpu");
  for (std::uint32_t l = 0; l < made_.links_.size(); ++l) {
    const Link& link = made_.links_[l];
    const std::string name = "link " + made_.link_name(LinkId{l});
    if (link.leads_to_itself()) throw InputError("", name + " leads from a node to itself");
    if (link.bandwidth > max_bandwidth) {
      throw InputError("", name + ": expected a bandwidth of at most 1000000 TB/s, found " +
                               std::to_string(link.bandwidth.bytes_per_second) + " B/s");
    }
    if (link.bandwidth.bytes_per_second <= 0) {
      throw InputError("", name + ": expected a bandwidth of at least 1 B/s, found " +
                               std::to_string(link.bandwidth.bytes_per_second) + " B/s");
    }
    if (link.latency.count() < 0) throw InputError("", name + ": expected a latency of 0 or more, found less");
  }
  index_links(made_.links_, &Link::from, made_.nodes_.size(), made_.first_out_, made_.out_);
  index_links(made_.links_, &Link::to, made_.nodes_.size(), made_.first_in_, made_.in_);
  made_.by_name_ = by_hash(made_.nodes_);
  by_name_.clear();
  source_ids_.clear();
  made_.nodes_.shrink_to_fit();
  made_.links_.shrink_to_fit();
  made_.resources_.shrink_to_fit();
  return std::exchange(made_, Topology{});
}

}  // namespace ringsim
