#include "topologies/formats/smi_import.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/base/utf8.hpp"
#include "topologies/formats/nccl_rules.hpp"
#include "topologies/formats/smi_text.hpp"

namespace ringsim {

namespace {

using namespace smi;

/// Which devices belong together: a number a device.
using Groups = std::vector<std::size_t>;

void unite(Groups& groups, std::size_t a, std::size_t b) {
  const std::size_t from = std::max(groups[a], groups[b]), to = std::min(groups[a], groups[b]);
  if (from != to) std::replace(groups.begin(), groups.end(), from, to);
}

class Builder {
 public:
  Builder(const Matrix& matrix, const std::string& file, const Machine& like, const std::optional<LinkSpec>& nic)
      : matrix_(matrix), n_(matrix.rows.size()), file_(file), like_(like), nic_(nic) {}

  Machine build() {
    check_symmetry();
    check_affinity();
    for (const Near level : {pix, pxb, phb, node}) groups_[level] = groups_within(level);
    place_by_affinity();
    machine_.name = std::filesystem::path(file_).stem().string();
    if (machine_.name.empty()) machine_.name = "imported";
    machine_.host = like_.host;
    machine_.host.bridges_apart = false;  // the matrix says NODE if it is so
    add_endpoints();
    add_tree();
    add_nvlinks();
    machine_.summary = fmt::format("imported from {}, with links like those of {}",
                                   std::filesystem::path(file_).filename().string(), like_.name);
    return std::move(machine_);
  }

 private:
  std::string cell(std::size_t row, std::size_t column) const {
    const Row& r = matrix_.rows[row];
    return fmt::format("row {}, column {} ({})", r.name, matrix_.rows[column].name,
                       r.near[column] == unknown ? fmt::format("NV{}", r.nvlinks[column]) : word_of(r.near[column]));
  }

  void check_symmetry() const {
    for (std::size_t a = 0; a < n_; ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        const Row &x = matrix_.rows[a], &y = matrix_.rows[b];
        if (x.near[b] != y.near[a] || x.nvlinks[b] != y.nvlinks[a]) {
          fail(file_, x.line, fmt::format("{} contradicts {}", cell(a, b), cell(b, a)));
        }
      }
    }
  }

  /// A GPU's CPUs are those of its NUMA node: what shares a host bridge or a CPU has the same, what is SYS has not.
  void check_affinity() {
    std::size_t near = 0, far = 0;
    std::string first_near, first_far;
    for (std::size_t a = 0; a < n_; ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        const Row &x = matrix_.rows[a], &y = matrix_.rows[b];
        const auto tells = [](const Row& row) { return !row.affinity.empty() && row.affinity != "N/A"; };
        if (!tells(x) || !tells(y) || x.near[b] == unknown) continue;
        const bool same = x.affinity == y.affinity;
        if (x.near[b] == sys && same && far++ == 0) first_far = cell(a, b);
        if (x.near[b] != sys && !same && near++ == 0) first_near = cell(a, b);
      }
    }
    const auto tell = [&](std::size_t pairs, const std::string& first, std::string_view what) {
      if (pairs == 0) return;
      machine_.warnings.push_back(
          fmt::format("{}: {}, but the CPU affinities are {}{}; the matrix is used, although a virtual machine may "
                      "show either incorrectly",
                      file_, first, what, pairs > 1 ? fmt::format(", as for {} pairs", pairs) : ""));
    };
    tell(near, first_near, "different");
    tell(far, first_far, "the same");
  }

  /// Nearness is a tree's: what is near to one of a group is as near to all of it.
  Groups groups_within(Near level) const {
    Groups groups(n_);
    std::iota(groups.begin(), groups.end(), std::size_t{0});
    for (std::size_t a = 0; a < n_; ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        const Near near = matrix_.rows[a].near[b];
        if (near != unknown && near <= level) unite(groups, a, b);
      }
    }
    for (std::size_t a = 0; a < n_; ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        if (groups[a] == groups[b] && matrix_.rows[a].near[b] > level) fail_not_transitive(a, b, level);
      }
    }
    return groups;
  }

  [[noreturn]] void fail_not_transitive(std::size_t a, std::size_t b, Near level) const {
    for (std::size_t c = 0; c < n_; ++c) {
      const Near ac = matrix_.rows[a].near[c], cb = matrix_.rows[c].near[b];
      if (c == a || c == b || ac == unknown || cb == unknown || ac > level || cb > level) continue;
      fail(file_, matrix_.rows[a].line, fmt::format("{} contradicts {} and {}", cell(a, b), cell(a, c), cell(c, b)),
           "if two devices are neighbors, a device near one is equally near the other");
    }
    fail(file_, matrix_.rows[a].line,
         fmt::format("{} contradicts the other cells of the row, which connect the two at {} or nearer", cell(a, b),
                     word_of(level)));
  }

  /// GPUs whose place on PCIe the matrix does not tell share a CPU with those of their affinity.
  void place_by_affinity() {
    std::string unplaced;
    for (std::size_t a = 0; a < n_; ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        if (matrix_.rows[a].near[b] != unknown || groups_[node][a] == groups_[node][b]) continue;
        if (matrix_.rows[a].affinity != matrix_.rows[b].affinity || known_apart(a, b)) continue;
        unite(groups_[node], a, b);
      }
    }
    for (std::size_t a = 0; a < n_; ++a) {
      const auto& near = matrix_.rows[a].near;
      if (is_gpu(matrix_.rows[a].name) &&
          std::none_of(near.begin(), near.end(), [](Near each) { return each > self && each < sys; })) {
        unplaced += (unplaced.empty() ? "" : ", ") + matrix_.rows[a].name;
      }
    }
    if (!unplaced.empty() && n_ > 1) {
      machine_.warnings.push_back(
          fmt::format("{}: the matrix does not show which devices share a PCIe switch with {}; each is assumed to be "
                      "attached to the CPU with the same affinity",
                      file_, unplaced));
    }
  }

  /// True if any two of their groups are printed as SYS.
  bool known_apart(std::size_t a, std::size_t b) const {
    for (std::size_t x = 0; x < n_; ++x) {
      if (groups_.at(node)[x] != groups_.at(node)[a]) continue;
      for (std::size_t y = 0; y < n_; ++y) {
        if (groups_.at(node)[y] == groups_.at(node)[b] && matrix_.rows[x].near[y] == sys) return true;
      }
    }
    return false;
  }

  /// The first link of `like` of that kind between such devices.
  LinkSpec like_link(LinkKind kind, const std::string& what) const {
    for (const Machine::Cable& cable : like_.cables) {
      if (cable.link.kind != kind || is_bridge(cable)) continue;
      return each_of(cable.link);
    }
    throw InputError(file_,
                     fmt::format("the matrix has {}, but {} has no {} link that could supply the speed", what,
                                 like_.name, to_string(kind)),
                     fmt::format("name a machine that has one; `ringsim list nodes` lists all"));
  }

  /// True if it is what joins a CPU and a host bridge of its own: no PCIe of any speed.
  bool is_bridge(const Machine::Cable& cable) const {
    const NodeKind from = like_.devices[cable.from].kind, to = like_.devices[cable.to].kind;
    return (from == NodeKind::host_bridge && to == NodeKind::cpu) ||
           (from == NodeKind::cpu && to == NodeKind::host_bridge);
  }

  std::uint32_t add_device(std::string name, NodeKind kind) {
    machine_.devices.push_back({std::move(name), kind, std::nullopt, {}});
    return static_cast<std::uint32_t>(machine_.devices.size()) - 1;
  }
  std::uint32_t add_numbered(const std::string& name, NodeKind kind) {
    return add_device(name + std::to_string(counts_[name]++), kind);
  }

  void add_endpoints() {
    const auto first = [&](NodeKind kind) {
      return std::find_if(like_.devices.begin(), like_.devices.end(), [&](const Machine::Device& device) {
        return device.kind == kind && (kind != NodeKind::nic || device.port);
      });
    };
    endpoints_.resize(n_);
    int silent = 0;
    for (const bool gpus : {true, false}) {
      for (std::size_t i = 0; i < n_; ++i) {
        const std::string& name = matrix_.rows[i].name;
        if (is_gpu(name) != gpus) continue;
        endpoints_[i] = add_numbered(gpus ? "gpu" : "nic", gpus ? NodeKind::gpu : NodeKind::nic);
        Machine::Device& device = machine_.devices.back();
        const auto model = first(device.kind);
        if (gpus && model->attributes.contains("sm")) device.attributes["sm"] = model->attributes.at("sm");
        if (gpus) continue;
        const auto known = matrix_.nic_names.find(name);
        device.attributes["name"] = known == matrix_.nic_names.end() ? name : known->second;
        if (model != like_.devices.end()) device.port = model->port;
        if (nic_) take_nic(device);
        silent += device.port ? 0 : 1;
      }
    }
    if (silent > 0)
      machine_.warnings.push_back(fmt::format(
          "{}: {} has no NIC that could supply the rate of the {} NICs in the matrix; to cable them, set it with {}",
          file_, like_.name, silent, nccl::how_to_say("nic", "RATE")));
    if (nic_ && counts_["nic"] == 0)
      machine_.warnings.push_back(file_ + ": the NIC rate that you set is not used, because the matrix has no NICs");
  }

  /// The user's port, of the kind that NICs of `like` have.
  void take_nic(Machine::Device& device) const {
    const LinkKind kind = device.port ? device.port->kind : LinkKind::ethernet;
    device.port = nic_;
    if (device.port->kind == LinkKind::generic) device.port->kind = kind;
  }

  std::vector<std::size_t> members(const Groups& groups, std::size_t group, const std::vector<std::size_t>& of) const {
    std::vector<std::size_t> out;
    std::copy_if(of.begin(), of.end(), std::back_inserter(out), [&](std::size_t i) { return groups[i] == group; });
    return out;
  }

  /// The groups that these devices fall into, in the order of their first members.
  std::vector<std::vector<std::size_t>> split(const std::vector<std::size_t>& devices, Near level) const {
    std::vector<std::vector<std::size_t>> out;
    std::set<std::size_t> seen;
    for (const std::size_t i : devices) {
      const std::size_t group = groups_.at(level)[i];
      if (seen.insert(group).second) out.push_back(members(groups_.at(level), group, devices));
    }
    return out;
  }

  void join(std::uint32_t from, std::uint32_t to, const LinkSpec& link) { machine_.cables.push_back({from, to, link}); }

  void add_tree() {
    std::vector<std::size_t> all(n_);
    std::iota(all.begin(), all.end(), std::size_t{0});
    const std::vector<std::vector<std::size_t>> by_cpu = split(all, node);
    const LinkSpec memory = memory_of(static_cast<int>(by_cpu.size()));
    std::vector<std::uint32_t> cpus;
    for (const auto& of_cpu : by_cpu) {
      cpus.push_back(add_numbered("cpu", NodeKind::cpu));
      const std::uint32_t cpu = cpus.back();
      join(add_numbered("mem", NodeKind::memory), cpu, memory);
      const auto bridges = split(of_cpu, phb);
      for (const auto& of_bridge : bridges) {
        add_bridge(of_bridge, bridges.size() == 1 ? cpu : new_bridge(cpu, memory.bandwidth));
      }
    }
    for (std::size_t i = 0; i < cpus.size(); ++i) {
      for (std::size_t j = i + 1; j < cpus.size(); ++j) {
        join(cpus[i], cpus[j], like_link(LinkKind::socket, "devices on several CPUs (SYS)"));
      }
    }
  }

  /// NUMA domains of the machine: of its CPUs those that the matrix shows, and those whose numbers are passed over, as
  /// far as `like` has so many.
  int domains(int shown) const {
    int highest = 0;
    for (const Row& row : matrix_.rows) highest = std::max(highest, row.highest_numa.value_or(0) + 1);
    return std::max(shown, std::min(highest, count(NodeKind::cpu)));
  }
  int count(NodeKind kind) const {
    return static_cast<int>(std::count_if(like_.devices.begin(), like_.devices.end(),
                                          [&](const Machine::Device& each) { return each.kind == kind; }));
  }

  /// A CPU of the matrix is a NUMA domain, and so is one of `like`; a socket has the memory of `like`'s sockets.
  LinkSpec memory_of(int shown) {
    LinkSpec memory = like_link(LinkKind::memory, "CPUs");
    const int of_like = like_.host.domains, all = domains(shown);
    const int sockets = std::min(all, std::max(1, count(NodeKind::cpu) / of_like));
    const int of_socket = (all + sockets - 1) / sockets;
    machine_.host.domains = of_socket;
    if (of_socket == of_like) return memory;
    memory.bandwidth.bytes_per_second = memory.bandwidth.bytes_per_second * of_like / of_socket;
    const double share = static_cast<double>(of_like) / of_socket;
    memory.source =
        fmt::format("bandwidth: {:g} times that of a NUMA domain of {}: {}", share, like_.name, memory.source);
    machine_.warnings.push_back(fmt::format(
        "{}: {} has {} NUMA domain{} per socket, but the matrix has {}; each CPU is assumed to have the memory of "
        "{:.3g} of the domains of {}, {}",
        file_, like_.name, of_like, of_like == 1 ? "" : "s", of_socket, share, like_.name, format(memory.bandwidth)));
    return memory;
  }

  std::uint32_t new_bridge(std::uint32_t cpu, Bandwidth memory) {
    const std::uint32_t bridge = add_numbered("bridge", NodeKind::host_bridge);
    for (const Machine::Cable& cable : like_.cables) {
      if (!is_bridge(cable)) continue;
      join(bridge, cpu, cable.link);
      return bridge;
    }
    join(bridge, cpu,
         {.bandwidth = memory,
          .kind = LinkKind::pcie,
          .source =
              "bandwidth: assumed: within a CPU, the same as its memory; latency: assumed: included in that of PCIe"});
    return bridge;
  }

  void add_bridge(const std::vector<std::size_t>& devices, std::uint32_t bridge) {
    const LinkSpec pcie = like_link(LinkKind::pcie, "devices on PCIe");
    for (const auto& of_root : split(devices, pxb)) {
      const auto switches = split(of_root, pix);
      std::uint32_t above = bridge;
      if (switches.size() > 1) {
        above = add_numbered("pcie", NodeKind::pcie_switch);
        join(above, bridge, pcie);
      }
      for (const auto& of_switch : switches) {
        std::uint32_t below = above;
        if (of_switch.size() > 1 || switches.size() > 1) {
          below = add_numbered("pcie", NodeKind::pcie_switch);
          join(below, above, pcie);
        }
        for (const std::size_t i : of_switch) join(endpoints_[i], below, pcie);
      }
    }
  }

  /// How many NVLinks a GPU of `like` has.
  int most_nvlinks() const {
    std::map<std::uint32_t, int> links;
    for (const Machine::Cable& cable : like_.cables) {
      if (cable.link.kind == LinkKind::nvlink)
        links[cable.from] += cable.link.joined, links[cable.to] += cable.link.joined;
    }
    int most = 0;
    for (const auto& [device, n] : links) {
      if (like_.devices[device].kind == NodeKind::gpu) most = std::max(most, n);
    }
    return most;
  }

  void add_nvlinks() {
    Groups groups(n_);
    std::iota(groups.begin(), groups.end(), std::size_t{0});
    std::vector<std::size_t> all = groups;
    bool any = false;
    for (std::size_t a = 0; a < n_; ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        if (matrix_.rows[a].nvlinks[b] > 0) unite(groups, a, b), any = true;
      }
    }
    if (!any) return;
    const LinkSpec each = like_link(LinkKind::nvlink, "NVLinks (NV#)");
    std::set<std::size_t> seen;
    for (std::size_t a = 0; a < n_; ++a) {
      if (seen.insert(groups[a]).second) join_gpus(members(groups, groups[a], all), each);
    }
  }

  void join_gpus(const std::vector<std::size_t>& gpus, const LinkSpec& each) {
    if (gpus.size() < 2) return;
    const int count = matrix_.rows[gpus[0]].nvlinks[gpus[1]];
    const bool equal = std::all_of(gpus.begin(), gpus.end(), [&](std::size_t a) {
      return std::all_of(gpus.begin(), gpus.end(),
                         [&](std::size_t b) { return a == b || matrix_.rows[a].nvlinks[b] == count; });
    });
    if (equal && count * static_cast<int>(gpus.size() - 1) > most_nvlinks()) {
      if (count > most_nvlinks())
        machine_.warnings.push_back(
            fmt::format("{}: the matrix shows {} NVLinks per GPU, but a GPU of {} has {}: check that --like names a "
                        "machine with the same GPUs",
                        file_, count, like_.name, most_nvlinks()));
      const std::uint32_t nvswitch = add_numbered("nvswitch", NodeKind::nvswitch);
      for (const std::size_t a : gpus) join(endpoints_[a], nvswitch, joined(each, count));
      return;
    }
    for (const std::size_t a : gpus) {
      for (const std::size_t b : gpus) {
        if (a < b && matrix_.rows[a].nvlinks[b] > 0) {
          join(endpoints_[a], endpoints_[b], joined(each, matrix_.rows[a].nvlinks[b]));
        }
      }
    }
  }

  const Matrix& matrix_;
  const std::size_t n_;
  const std::string& file_;
  const Machine& like_;
  const std::optional<LinkSpec>& nic_;
  Machine machine_;
  std::map<Near, Groups> groups_;
  std::vector<std::uint32_t> endpoints_;  // of the rows
  std::map<std::string, int> counts_;
};

}  // namespace

Machine import_nvidia_smi(std::string_view text, const std::string& file, const Machine& like,
                          const std::optional<LinkSpec>& nic) {
  const std::string valid = as_utf8(std::string(text));  // names of NICs are written into files that have to be
  const Matrix matrix = read_matrix(valid, file);
  return Builder(matrix, file, like, nic).build();
}

}  // namespace ringsim
