#include "topologies/nccl_search/seen_node.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "sim/base/error.hpp"
#include "topologies/formats/nccl_rules.hpp"
#include "topologies/formats/pci_tree.hpp"
#include "topologies/machines/device_words.hpp"

namespace ringsim::nccl {

namespace {

float gigabytes_of(Bandwidth rate) { return static_cast<float>(static_cast<double>(rate.bytes_per_second) / 1e9); }

std::uint64_t hexadecimal(const std::map<std::string, std::string>& attributes, const std::string& key) {
  const auto found = attributes.find(key);
  if (found == attributes.end()) return 0;
  std::string_view text = found->second;
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return value;
}

/// The generation of a PCIe switch by Broadcom that shows itself as two levels, of which NCCL makes one; 0: it is none
/// (src/graph/topo.cc, getBcmGen).
int broadcom_generation(std::uint64_t id, std::uint64_t level) {
  constexpr std::uint64_t without_low_digits = 0xfffffffffffff000;
  if ((id & without_low_digits) == 0x1000c0101000a000) return 4;
  if ((id & without_low_digits) == (0x1000c03010000000 | (level * 0x1000))) return 5;
  return 0;
}

}  // namespace

/// Devices and links in the order in which NCCL makes them from its XML: the order decides between equals.
class SeenNode::Builder {
 public:
  Builder(SeenNode& node, const Machine& machine, const std::vector<std::string>& gpus,
          const std::vector<SeenNic>& nics)
      : node_(node), machine_(machine), tree_(machine), nics_(nics) {
    for (std::uint32_t d = 0; d < machine.devices.size(); ++d) {
      const Machine::Device& device = machine.devices[d];
      if (device.kind == NodeKind::gpu && std::find(gpus.begin(), gpus.end(), device.name) != gpus.end())
        taking_part_.insert(d);
    }
  }

  void build() {
    find_hosts();
    for (const std::uint32_t cpu : tree_.of_kind(NodeKind::cpu))
      if (is_kept(cpu)) add_cpu(cpu);
    if (tree_.of_kind(NodeKind::cpu).empty()) {
      const std::uint32_t made_up = add(SeenKind::cpu);
      tell_vendor(made_up, {});
      for (const std::uint32_t root : tree_.roots()) add_below(root, made_up);
    }
    join_by_nvlink();
    join_chip_to_chip();
    join_switches();
    make_broadcom_switches_one();
    join_cpus();
    for (const std::uint32_t cpu : node_.of_kind(SeenKind::cpu)) sort_links(cpu, std::nullopt);
    node_.hosts = static_cast<int>(hosts_used_.size());
  }

 private:
  std::uint32_t add(SeenKind kind) {
    auto& same = node_.by_kind_[static_cast<std::size_t>(kind)];
    const auto index = static_cast<std::uint32_t>(node_.devices.size());
    SeenDevice& device = node_.devices.emplace_back();
    device.kind = kind;
    device.number = static_cast<std::uint32_t>(same.size());
    same.push_back(index);
    return index;
  }

  /// Links between the same two devices are one, as fast as all together. Each device's are sorted, the fastest first.
  void connect(std::uint32_t from, std::uint32_t to, PathType type, float rate) {
    std::vector<std::uint32_t>& links = node_.devices[from].links;
    auto link = std::find_if(links.begin(), links.end(),
                             [&](std::uint32_t l) { return node_.links[l].to == to && node_.links[l].type == type; });
    if (link == links.end()) {
      node_.links.push_back({from, to, type, 0});
      link = links.insert(links.end(), static_cast<std::uint32_t>(node_.links.size() - 1));
    }
    node_.links[*link].rate += rate;
    for (; link != links.begin() && node_.links[*std::prev(link)].rate < node_.links[*link].rate; --link)
      std::iter_swap(link, std::prev(link));
  }
  void join(std::uint32_t one, std::uint32_t other, PathType type, float rate) {
    connect(one, other, type, rate);
    connect(other, one, type, rate);
  }

  const SeenNic* nic_at(std::uint32_t device) const {
    const auto found = std::find_if(nics_.begin(), nics_.end(), [&](const SeenNic& n) { return n.device == device; });
    return found == nics_.end() ? nullptr : &*found;
  }
  /// True for devices that NCCL uses, and for switches and CPUs with such a device below; NCCL ignores all others.
  bool is_kept(std::uint32_t d) const {
    if (taking_part_.contains(d) || nic_at(d) != nullptr) return true;
    const auto& below = tree_.place(d).below;
    return std::any_of(below.begin(), below.end(), [&](std::uint32_t b) { return is_kept(b); });
  }

  // CPUs that sockets' links join are of one host: all but those of an NVL72, which is several.
  void find_hosts() {
    std::uint32_t next = 0;
    for (const std::uint32_t cpu : tree_.of_kind(NodeKind::cpu)) {
      if (host_of_.contains(cpu)) continue;
      std::vector<std::uint32_t> reached{cpu};
      host_of_[cpu] = next;
      for (std::size_t i = 0; i < reached.size(); ++i)
        for (const Machine::Cable* cable : tree_.cables(reached[i])) {
          const std::uint32_t other = PciTree::other_end(*cable, reached[i]);
          if (machine_.devices[other].kind == NodeKind::cpu && host_of_.try_emplace(other, next).second)
            reached.push_back(other);
        }
      ++next;
    }
  }

  void tell_vendor(std::uint32_t seen, const std::map<std::string, std::string>& said) {
    const CpuModel model = cpu_model(machine_, said);
    SeenDevice& cpu = node_.devices[seen];
    cpu.intel = model.arch == "x86_64" && model.vendor == "GenuineIntel";
    cpu.amd = model.arch == "x86_64" && model.vendor == "AuthenticAMD";
    cpu.power = model.arch == "ppc64";
    cpu.rate = gigabytes_of(inter_socket(model).bandwidth);
  }

  void add_cpu(std::uint32_t d) {
    const std::uint32_t cpu = add(SeenKind::cpu);
    seen_[d] = cpu;
    tell_vendor(cpu, machine_.devices[d].attributes);
    node_.devices[cpu].host = host_of_[d];
    hosts_used_.insert(host_of_[d]);
    for (const std::uint32_t below : tree_.place(d).below) add_below(below, cpu);
  }

  static float pcie_rate(const LinkSpec* uplink) {
    const PcieLink link = uplink == nullptr ? PcieLink{&pcie_rates[4], 16} : nearest_pcie(uplink->bandwidth);
    return static_cast<float>(link.width * link.rate->k / 80.0);
  }

  void add_below(std::uint32_t d, std::uint32_t parent) {
    if (!is_kept(d)) return;
    const float rate = pcie_rate(tree_.place(d).uplink);
    switch (machine_.devices[d].kind) {
      case NodeKind::gpu:
        return add_gpu(d, parent, rate);
      case NodeKind::nic:
        return add_nic(d, parent, rate);
      case NodeKind::pcie_slot:  // its functions are devices of the bus that it is on
        for (const std::uint32_t below : tree_.place(d).below) add_below(below, parent);
        return;
      default: {
        const std::uint32_t pci = add(SeenKind::pci);
        seen_[d] = pci;
        const auto& said = machine_.devices[d].attributes;
        node_.devices[pci].pci_id = (hexadecimal(said, "vendor") << 48) + (hexadecimal(said, "device") << 32) +
                                    (hexadecimal(said, "subsystem_vendor") << 16) +
                                    hexadecimal(said, "subsystem_device");
        for (const std::uint32_t below : tree_.place(d).below) add_below(below, pci);
        join(pci, parent, PathType::pix, rate);
      }
    }
  }

  void add_gpu(std::uint32_t d, std::uint32_t parent, float rate) {
    const Machine::Device& device = machine_.devices[d];
    const std::optional<int> sm = compute_capability(device);
    if (!sm)
      throw InputError("", fmt::format("expected a GPU with a compute capability, found {} of {} without \"sm\"",
                                       device.name, machine_.name));
    const int dev = whole_attribute(device, "dev", 0, 999'999).value_or(static_cast<int>(tree_.ordinal(d)));
    const std::uint32_t board = add(SeenKind::board);
    join(board, parent, PathType::pix, rate);
    const std::uint32_t gpu = add(SeenKind::gpu);
    join(board, gpu, PathType::loc, unbounded_rate);
    for (const std::uint32_t part : {board, gpu}) {
      node_.devices[part].sm = *sm;
      node_.devices[part].dev = dev;
    }
    node_.devices[gpu].board = board;
    node_.devices[gpu].name = device.name;
    node_.devices[gpu].gpudirect = has_gpudirect(device);
    seen_[d] = board;
    gpus_.push_back(d);
  }

  void add_nic(std::uint32_t d, std::uint32_t parent, float rate) {
    const Machine::Device& device = machine_.devices[d];
    const bool on_pci = tree_.has_pci(d);
    // NICs that a file has directly below a CPU are one to NCCL.
    const auto known = on_pci ? without_pci_.end() : without_pci_.find(parent);
    const bool is_new = known == without_pci_.end();
    const std::uint32_t nic = is_new ? add(SeenKind::nic) : known->second;
    if (is_new && !on_pci) {
      without_pci_[parent] = nic;
      connect(parent, nic, PathType::pix, unbounded_rate);
      connect(nic, parent, PathType::pix, unbounded_rate);
    }
    const std::uint32_t net = add(SeenKind::net);
    node_.devices[net].name = device.name;
    node_.devices[net].gpudirect = has_gpudirect(device);
    node_.devices[net].rate = static_cast<float>(nic_at(d)->rate);
    const std::uint64_t guid = hexadecimal(device.attributes, "net0.guid");
    node_.devices[net].adapter = guid != 0 ? guid : d + 1;
    node_.devices[net].port = whole_attribute(device, "net0.port", 0, 999'999).value_or(1);
    join(nic, net, PathType::net, node_.devices[net].rate);
    if (on_pci) join(nic, parent, PathType::pix, rate * static_cast<float>(nic_at(d)->adapters));
  }

  /// NVLinks in the order of the XML: GPU after GPU, of each those to GPUs, then others, by their places in the
  /// machine.
  std::vector<const Machine::Cable*> cables_of(std::uint32_t gpu, LinkKind kind) const {
    std::vector<const Machine::Cable*> out;
    for (const Machine::Cable* cable : tree_.cables(gpu))
      if (cable->link.kind == kind) out.push_back(cable);
    std::stable_sort(out.begin(), out.end(), [&](const Machine::Cable* a, const Machine::Cable* b) {
      const std::uint32_t x = PciTree::other_end(*a, gpu), y = PciTree::other_end(*b, gpu);
      return std::pair(machine_.devices[x].kind, x) < std::pair(machine_.devices[y].kind, y);
    });
    return out;
  }

  std::optional<std::uint32_t> cpu_above(std::uint32_t device, std::optional<std::uint32_t> from) const {
    if (node_.devices[device].kind == SeenKind::cpu) return device;
    for (const std::uint32_t l : node_.devices[device].links) {
      const SeenLink& link = node_.links[l];
      const SeenKind kind = node_.devices[link.to].kind;
      if (link.type != PathType::pix || link.to == from || (kind != SeenKind::pci && kind != SeenKind::cpu)) continue;
      if (const auto found = cpu_above(link.to, device)) return found;
    }
    return std::nullopt;
  }

  void join_by_nvlink() {
    for (const std::uint32_t gpu : gpus_) {
      const std::uint32_t board = seen_.at(gpu);
      const float each = node_.options_.nvlink > 0 ? static_cast<float>(node_.options_.nvlink)
                                                   : gigabytes_of(nvlink_bandwidth(node_.devices[board].sm));
      for (const Machine::Cable* cable : cables_of(gpu, LinkKind::nvlink)) {
        const std::uint32_t other = PciTree::other_end(*cable, gpu);
        const float rate = static_cast<float>(cable->link.joined) * each;
        switch (machine_.devices[other].kind) {
          case NodeKind::gpu:
            if (seen_.contains(other)) connect(board, seen_.at(other), PathType::nvl, rate);
            break;
          case NodeKind::cpu:
            if (const auto cpu = cpu_above(board, std::nullopt)) join(board, *cpu, PathType::nvl, rate);
            break;
          default: {  // all NVSwitches are one
            const auto& switches = node_.of_kind(SeenKind::nvswitch);
            const std::uint32_t all = switches.empty() ? add(SeenKind::nvswitch) : switches.front();
            join(board, all, PathType::nvl, rate);
          }
        }
      }
    }
  }

  void join_chip_to_chip() {
    for (const std::uint32_t gpu : gpus_)
      for (const Machine::Cable* cable : cables_of(gpu, LinkKind::c2c)) {
        const std::uint32_t board = seen_.at(gpu);
        const auto cpu = cpu_above(board, std::nullopt);
        if (machine_.devices[PciTree::other_end(*cable, gpu)].kind != NodeKind::cpu || !cpu) continue;
        const std::int64_t megabytes = cable->link.bandwidth.bytes_per_second / cable->link.joined / 1'000'000;
        join(board, *cpu, PathType::c2c,
             static_cast<float>(static_cast<double>(megabytes * cable->link.joined) / 1000.0));
      }
  }

  /// Links between PCIe switches next to the tree.
  void join_switches() {
    for (const std::uint32_t d : tree_.of_kind(NodeKind::pcie_switch)) {
      if (!seen_.contains(d)) continue;
      for (const Machine::Cable* cable : tree_.cables(d)) {
        const std::uint32_t other = PciTree::other_end(*cable, d);
        if (cable->link.kind == LinkKind::pcie && machine_.devices[other].kind == NodeKind::pcie_switch &&
            seen_.contains(other) && tree_.place(other).uplink != &cable->link && tree_.place(d).uplink != &cable->link)
          connect(seen_.at(d), seen_.at(other), PathType::loc, unbounded_rate);
      }
    }
  }

  void make_broadcom_switches_one() {
    const std::vector<std::uint32_t> switches = node_.of_kind(SeenKind::pci);
    std::set<std::uint32_t> gone;
    for (const std::uint32_t upper : switches) {
      const int generation = broadcom_generation(node_.devices[upper].pci_id, 0);
      if (generation == 0 || gone.contains(upper)) continue;
      std::vector<std::uint32_t> lower;
      std::erase_if(node_.devices[upper].links, [&](std::uint32_t l) {
        const std::uint32_t to = node_.links[l].to;
        const bool is_lower =
            node_.devices[to].kind == SeenKind::pci && broadcom_generation(node_.devices[to].pci_id, 1) == generation;
        if (is_lower) lower.push_back(to);
        return is_lower;
      });
      for (const std::uint32_t each : lower) {
        for (const std::uint32_t l : node_.devices[each].links) {
          const std::uint32_t below = node_.links[l].to;
          if (below == upper) continue;
          node_.links[l].from = upper;
          node_.devices[upper].links.push_back(l);
          for (const std::uint32_t back : node_.devices[below].links)
            if (node_.links[back].to == each) {
              node_.links[back].to = upper;
              break;
            }
        }
        node_.devices[each].links.clear();
        gone.insert(each);
      }
      node_.devices[upper].pci_id |= 0xffff;
    }
    auto& pci = node_.by_kind_[static_cast<std::size_t>(SeenKind::pci)];
    std::erase_if(pci, [&](std::uint32_t d) { return gone.contains(d); });
    for (std::uint32_t i = 0; i < pci.size(); ++i) node_.devices[pci[i]].number = i;
  }

  void join_cpus() {
    for (const std::uint32_t one : node_.of_kind(SeenKind::cpu))
      for (const std::uint32_t other : node_.of_kind(SeenKind::cpu))
        if (one != other && node_.devices[one].host == node_.devices[other].host)
          connect(one, other, PathType::sys, node_.devices[one].rate);
  }

  /// Down the tree before up.
  void sort_links(std::uint32_t device, std::optional<std::uint32_t> above) {
    std::vector<std::uint32_t>& links = node_.devices[device].links;
    if (above) {
      const auto up =
          std::find_if(links.begin(), links.end(), [&](std::uint32_t l) { return node_.links[l].to == *above; });
      if (up != links.end()) std::rotate(up, up + 1, links.end());
    }
    for (std::size_t i = 0; i < links.size(); ++i) {
      const SeenLink link = node_.links[links[i]];
      if (link.type == PathType::pix && link.to != above) sort_links(link.to, device);
    }
  }

  SeenNode& node_;
  const Machine& machine_;
  PciTree tree_;
  const std::vector<SeenNic>& nics_;
  std::set<std::uint32_t> taking_part_;
  std::map<std::uint32_t, std::uint32_t> host_of_, seen_, without_pci_;
  std::set<std::uint32_t> hosts_used_;
  std::vector<std::uint32_t> gpus_;  // in the order of the tree
};

SeenNode::SeenNode(const Machine& machine, const std::vector<std::string>& gpus, const std::vector<SeenNic>& nics,
                   int nodes, const SeenOptions& options)
    : options_(options) {
  Builder(*this, machine, gpus, nics).build();
  find_ways();
  several_nodes = nodes > 1;
}

int SeenNode::least_sm() const {
  int least = 0;
  for (const std::uint32_t board : of_kind(SeenKind::board))
    least = least == 0 ? devices[board].sm : std::min(least, devices[board].sm);
  return least;
}

}  // namespace ringsim::nccl
