// What joins the devices of NCCL's topology XML besides PCIe and sockets: <nvlink>, <xgmi>, <c2c>, <pcilink>.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/text/spelling.hpp"
#include "topologies/formats/nccl_rules.hpp"
#include "topologies/formats/nccl_xml_reader.hpp"
#include "topologies/machines/device_words.hpp"
#include "topologies/machines/preset_names.hpp"

namespace ringsim::nccl {

namespace {

constexpr std::int64_t most_links = 1000;  // as a machine file's "count"

class LinkReader {
 public:
  explicit LinkReader(XmlImport& import) : import_(import), gpus_(import.all(NodeKind::gpu)) {
    for (const Found& each : import.found) {
      const Found& stands = shown(each);
      if (!each.busid.empty() && !stands.merged) by_busid_[{each.host, each.busid}].push_back(&stands);
    }
    std::sort(gpus_.begin(), gpus_.end(), [](const Found* a, const Found* b) { return a->device < b->device; });
  }

  void read(const XmlElement& root) {
    set_model();
    warn_of_unknown_model();
    for (Found* gpu : gpus_) {
      if (gpu->gpu != nullptr) read_gpu(*gpu);
    }
    for (const Found* gpu : gpus_) {
      if (const auto entries = to_switch_.find(gpu); entries != to_switch_.end()) {
        add_to_switch(*gpu, links_to_switch(*gpu, entries->second));
      }
    }
    for (const auto& [pair, entry] : pairs_) add_pair(pair, entry);
    for (const auto& [gpu, count] : n_nvlinks_) warn_of_many(*gpu, count);
    read_pcilinks(root);
    if (import_.options.nvlink_from) {
      take_nvlinks(*import_.options.nvlink_from);
    } else if (!has_links_ && import_.options.like) {
      take_nvlinks_if_any(*import_.options.like);
    } else if (!has_links_ && gpus_.size() > 1) {
      import_.machine.warnings.push_back(fmt::format(
          "{}: no NVLinks between the GPUs are listed, so none are assumed, unless {} names a machine that has them",
          import_.file, how_to_say("like", preset_with_nvlinks())));
    }
  }

 private:
  /// A preset whose NVLinks the file's GPUs can have: as many GPUs, of their compute capability. One that a
  /// GPU's name stands for comes before the others.
  std::string preset_with_nvlinks() const {
    constexpr int if_unknown = 80;  // as warn_of_unknown_model() says
    const int sm = sm_of_gpu(*gpus_.front()).value_or(if_unknown);
    std::string found;
    for (const PresetNames& names : preset_names()) {
      const Machine machine = node_preset(names.name);
      const auto is_nvlink = [](const Machine::Cable& cable) { return cable.link.kind == LinkKind::nvlink; };
      const auto gpu = std::find_if(machine.devices.begin(), machine.devices.end(),
                                    [](const Machine::Device& device) { return device.kind == NodeKind::gpu; });
      if (machine.n_gpus() == gpus_.size() && std::any_of(machine.cables.begin(), machine.cables.end(), is_nvlink) &&
          compute_capability(*gpu) == sm) {
        if (std::ranges::count(names.taken_for, plain_machine_name(names.gpu)) > 0) return names.name;
        if (found.empty()) found = names.name;
      }
    }
    return found.empty() ? "MACHINE" : found;
  }

  struct Entry {
    LinkKind kind = LinkKind::nvlink;
    std::int64_t forth = 0, back = 0;  ///< links that the lower, the higher device lists
    const XmlElement* element = nullptr;
    const Found* gpu = nullptr;  ///< whose element it is
  };
  using Pair = std::pair<std::uint32_t, std::uint32_t>;
  struct SwitchEntries {
    std::int64_t sum = 0, most = 0;         ///< links over all entries; of one entry
    const XmlElement* names_gpu = nullptr;  ///< the first whose target is a GPU
  };

  /// The switch that stands for the lower level of a switch of two.
  const Found& shown(const Found& device) const {
    const Found* at = &device;
    while (at->merged && at->kind == NodeKind::pcie_switch) at = &import_.found[static_cast<std::size_t>(at->parent)];
    return *at;
  }

  std::optional<int> sm_of_gpu(const Found& gpu) const {
    return compute_capability({"", NodeKind::gpu, {}, gpu.attributes});
  }

  /// The user's model gives the compute capability if the file does not.
  void set_model() {
    const auto& model = import_.options.gpu;
    const std::optional<int> sm = model ? sm_of(*model) : sm_of_like();
    if (model && !sm) {
      throw InputError(import_.file, fmt::format("expected a GPU model that NCCL has a rule for, found \"{}\"", *model),
                       did_you_mean(*model, gpu_models()));
    }
    if (!sm) return;
    bool used = false;
    for (Found* gpu : gpus_) {
      if (gpu->attributes.contains("gcn")) continue;
      if (gpu->attributes.emplace("sm", std::to_string(*sm)).second) {
        import_.machine.devices[gpu->device].attributes["sm"] = std::to_string(*sm);
        used = true;
      }
    }
    if (!model && used) import_.used_like = true;
    if (model && !used)
      import_.machine.warnings.push_back(
          import_.file + ": the GPU model that you set is not used, because the file states the sm of each GPU");
  }

  std::optional<int> sm_of_like() const {
    if (!import_.options.like) return std::nullopt;
    for (const Machine::Device& device : import_.options.like->devices)
      if (device.kind == NodeKind::gpu) return compute_capability(device);
    return std::nullopt;
  }

  /// AMD's have "gcn" instead.
  void warn_of_unknown_model() {
    const auto is_unknown = [&](const Found* gpu) { return !sm_of_gpu(*gpu) && !gpu->attributes.contains("gcn"); };
    const auto unknown = std::count_if(gpus_.begin(), gpus_.end(), is_unknown);
    if (unknown == 0) return;
    import_.machine.warnings.push_back(
        fmt::format("{}: the file does not state the model of {} of {} GPUs, which library nccl needs; NVLinks are "
                    "assumed to be those of sm 80; a machine with these GPUs supplies it: {}",
                    import_.file, unknown, gpus_.size(), how_to_say("like", "NODE")));
  }

  void read_gpu(const Found& gpu) {
    for (const XmlElement& child : gpu.gpu->children) {
      if (child.name == "nvlink" || child.name == "xgmi") {
        read_peer(gpu, child);
      } else if (child.name == "c2c") {
        read_c2c(gpu, child);
      }
    }
  }

  void read_peer(const Found& gpu, const XmlElement& entry) {
    const auto count = whole(entry, "count", 1, most_links);
    if (!count) {
      return import_.warn(entry,
                          fmt::format("count \"{}\" is not a number of links; ignored", text_of(entry, "count")));
    }
    const std::string target = lower(text_of(entry, "target")), type = lower(text_of(entry, "tclass"));
    const Found* found = target_of(entry, gpu.host, target);
    if (found == &gpu) {
      return import_.warn(entry,
                          fmt::format("a link from {} to itself, as some virtual machines write; ignored", target));
    }
    const bool names_gpu = found != nullptr && found->kind == NodeKind::gpu;
    if (type.starts_with("0x068000") || is_unseen_switch(target)) {
      SwitchEntries& entries = to_switch_[&gpu];
      entries.sum += *count;
      entries.most = std::max(entries.most, *count);
      if (names_gpu && entries.names_gpu == nullptr) entries.names_gpu = &entry;
    } else if (type.starts_with("0x068001")) {
      add(gpu.device, cpu_of(gpu), LinkKind::nvlink, gpu, entry, static_cast<int>(*count));
    } else if (names_gpu) {
      note_pair(gpu, *found, entry, *count);
    } else {
      import_.warn(entry,
                   fmt::format("target {} is not a GPU in this file, and class \"{}\" is not an NVSwitch; ignored",
                               target, type));
    }
  }

  /// The device of that bus id: a GPU, if other devices have it as well. nullptr: there is none.
  const Found* target_of(const XmlElement& entry, int host, const std::string& busid) const {
    const auto known = by_busid_.find({host, busid});
    if (known == by_busid_.end()) return nullptr;
    const std::vector<const Found*>& all = known->second;
    const auto is_gpu = [](const Found* each) { return each->kind == NodeKind::gpu; };
    const auto gpus = std::count_if(all.begin(), all.end(), is_gpu);
    if (all.size() == 1 || gpus == 1) return gpus == 0 ? all.front() : *std::find_if(all.begin(), all.end(), is_gpu);
    fail_ambiguous(entry, busid, all);
  }

  [[noreturn]] void fail_ambiguous(const XmlElement& entry, const std::string& busid,
                                   const std::vector<const Found*>& all) const {
    import_.fail(
        entry,
        fmt::format(
            "expected a target that identifies one device, found {}, which the devices on lines {} and {} share", busid,
            all[0]->element->line, all[1]->element->line),
        "change the bus id of one of them");
  }

  /// NCCL adds the entries up. Files that list each peer across the NVSwitches list the same links once per peer.
  std::int64_t links_to_switch(const Found& gpu, const SwitchEntries& entries) {
    if (entries.names_gpu == nullptr || entries.sum <= most_links_of(gpu)) return entries.sum;
    import_.warn(*entries.names_gpu, fmt::format("the entries to NVSwitches name GPUs and add up to {} links, but a "
                                                 "GPU of this sm has {}; read as {} links, once for all peers",
                                                 entries.sum, most_links_of(gpu), entries.most));
    return entries.most;
  }

  int most_links_of(const Found& gpu) const { return most_nvlinks_of(sm_of_gpu(gpu).value_or(1'000)); }

  void warn_of_many(const Found& gpu, std::int64_t count) {
    if (count <= most_links_of(gpu)) return;
    import_.warn(*gpu.gpu, fmt::format("this GPU has {} NVLinks, but a GPU of its sm has at most {}; used as stated",
                                       count, most_links_of(gpu)));
  }

  void note_pair(const Found& gpu, const Found& peer, const XmlElement& entry, std::int64_t count) {
    const bool forth = gpu.device < peer.device;
    Entry& pair = pairs_[forth ? Pair{gpu.device, peer.device} : Pair{peer.device, gpu.device}];
    if (pair.element == nullptr) {
      pair.kind = entry.name == "xgmi" ? LinkKind::xgmi : LinkKind::nvlink;
      pair.element = &entry, pair.gpu = &gpu;
    }
    std::int64_t& side = forth ? pair.forth : pair.back;
    side = std::min(side + count, most_links);
  }

  void add_pair(const Pair& pair, const Entry& entry) {
    const std::int64_t count = std::max(entry.forth, entry.back);
    if (entry.forth != entry.back) {
      import_.warn(*entry.element,
                   fmt::format("one end of the link between {} and {} states {}, the other {}; read as {}",
                               import_.machine.devices[pair.first].name, import_.machine.devices[pair.second].name,
                               entry.forth, entry.back, count));
    }
    add(pair.first, pair.second, entry.kind, *entry.gpu, *entry.element, static_cast<int>(count));
  }

  void add_to_switch(const Found& gpu, std::int64_t count) {
    if (!nvswitch_) {
      nvswitch_ = static_cast<std::uint32_t>(import_.machine.devices.size());
      import_.machine.devices.push_back({"nvswitch0", NodeKind::nvswitch, std::nullopt, {}});
    }
    add(gpu.device, *nvswitch_, LinkKind::nvlink, gpu, *gpu.gpu, static_cast<int>(std::min(count, most_links)));
  }

  /// `count` links of the GPU's generation.
  void add(std::uint32_t from, std::uint32_t to, LinkKind kind, const Found& gpu, const XmlElement& at, int count) {
    LinkSpec each = kind == LinkKind::xgmi ? xgmi(gpu, at) : nvlink(gpu, at);
    if (kind == LinkKind::nvlink) {
      for (const Found* end : gpus_) {
        if (end->device == from || end->device == to) n_nvlinks_[end] += count;
      }
    }
    if (nvswitch_ == to) each = switched(std::move(each));
    import_.machine.cables.push_back({from, to, joined(std::move(each), count)});
    has_links_ = true;
  }

  /// The bandwidth that copies reach, as in the presets. The costs of NCCL's kernels are shares of it. NCCL's own
  /// rates, which its search uses, are lower for V100 and A100; they are taken only where no measured copies are known.
  LinkSpec nvlink(const Found& gpu, const XmlElement& at) const {
    const int sm = sm_of_gpu(gpu).value_or(80);
    const std::string place = fmt::format("{}: sm {}; ", import_.place(at), sm);
    if (const std::string_view type = nvlink_type(sm); !type.empty()) {
      const LinkSpec& known = library_link(std::string(type));
      return link(LinkKind::nvlink, known.bandwidth, place + std::string(type) + " of link_types.json");
    }
    return link(LinkKind::nvlink, nvlink_bandwidth(sm),
                place + "NVIDIA/nccl 5067397c2676 src/graph/topo.h: NVLink of that capability");
  }

  LinkSpec xgmi(const Found& gpu, const XmlElement& at) const {
    const auto gcn = gpu.attributes.find("gcn");
    const std::string name = gcn == gpu.attributes.end() ? "unknown" : gcn->second;
    return link(LinkKind::xgmi, xgmi_bandwidth(name),
                fmt::format("{}: gcn {}; ROCm/rccl src/graph/topo.h: XGMI_WIDTH of that GPU", import_.place(at), name));
  }

  void read_c2c(const Found& gpu, const XmlElement& entry) {
    const auto count = whole(entry, "count", 1, most_links), mbps = whole(entry, "bw", 1, 10'000'000);
    if (!count || !mbps) {
      return import_.warn(entry, fmt::format("<c2c> with count \"{}\" and bw \"{}\" MB/s; ignored",
                                             text_of(entry, "count"), text_of(entry, "bw")));
    }
    const LinkSpec each =
        link(LinkKind::c2c, {*mbps * 1'000'000}, import_.place(entry) + ": bw of <c2c>, MB/s per link");
    import_.machine.cables.push_back({gpu.device, cpu_of(gpu), joined(each, static_cast<int>(*count))});
  }

  std::uint32_t cpu_of(const Found& device) const {
    const Found* at = &device;
    while (at->parent >= 0) at = &import_.found[static_cast<std::size_t>(at->parent)];
    return at->device;
  }

  /// A link between two switches, besides the tree.
  void read_pcilinks(const XmlElement& element) {
    for (const XmlElement& child : element.children) {
      if (child.name != "pcilink") {
        read_pcilinks(child);
        continue;
      }
      const auto below = std::find_if(import_.found.begin(), import_.found.end(),
                                      [&](const Found& each) { return each.element == &element; });
      const Found* from = below == import_.found.end() ? nullptr : &shown(*below);
      const auto to = by_busid_.find({from == nullptr ? 0 : from->host, lower(text_of(child, "target"))});
      if (to != by_busid_.end() && to->second.size() > 1) fail_ambiguous(child, to->first.second, to->second);
      if (from == nullptr || from->merged || to == by_busid_.end() || to->second.front() == from) {
        import_.warn(child, fmt::format("<pcilink> to {}, which is not another device in this file; ignored",
                                        text_of(child, "target")));
        continue;
      }
      const Pair ends = std::minmax(from->device, to->second.front()->device);
      if (!pcilinks_.insert(ends).second) continue;  // its other end
      import_.machine.cables.push_back(
          {ends.first, ends.second,
           link(LinkKind::pcie, {5'000'000'000'000},
                import_.place(child) + ": <pcilink>, at LOC_BW (NVIDIA/nccl 5067397c2676 src/graph/topo.h)")});
    }
  }

  /// As take_nvlinks(), from a machine that need not have any.
  void take_nvlinks_if_any(const Machine& like) {
    const auto is_nvlink = [](const Machine::Cable& cable) {
      return cable.link.kind == LinkKind::nvlink || cable.link.kind == LinkKind::xgmi;
    };
    if (std::none_of(like.cables.begin(), like.cables.end(), is_nvlink)) return;
    import_.used_like = true;
    if (like.n_gpus() == gpus_.size()) return take_nvlinks(like);
    import_.machine.warnings.push_back(
        fmt::format("{}: no NVLinks between the {} GPUs are listed, and those of {} are not taken, because it has {}",
                    import_.file, gpus_.size(), like.name, like.n_gpus()));
  }

  /// The GPUs' own links of another machine, GPU by GPU.
  void take_nvlinks(const Machine& from) {
    const auto fail = [&](const std::string& message, const std::string& hint) {
      throw InputError(import_.file, message, hint);
    };
    if (has_links_)
      fail("the file already lists the links between GPUs", "remove the machine that supplies the NVLinks");
    if (from.n_gpus() != gpus_.size()) {
      fail(fmt::format("expected NVLinks of a machine with {} GPUs, found {} with {}", gpus_.size(), from.name,
                       from.n_gpus()),
           "");
    }
    std::map<std::uint32_t, std::uint32_t> ends;  // of its devices to ours
    std::size_t n = 0;
    for (std::uint32_t d = 0; d < from.devices.size(); ++d) {
      if (from.devices[d].kind == NodeKind::gpu) ends[d] = gpus_[n++]->device;
    }
    const std::size_t before = import_.machine.cables.size();
    for (const Machine::Cable& cable : from.cables) {
      if (cable.link.kind != LinkKind::nvlink && cable.link.kind != LinkKind::xgmi) continue;
      for (const std::uint32_t end : {cable.from, cable.to}) {
        if (from.devices[end].kind != NodeKind::nvswitch || ends.contains(end)) continue;
        ends[end] = static_cast<std::uint32_t>(import_.machine.devices.size());
        import_.machine.devices.push_back(from.devices[end]);
      }
      if (ends.contains(cable.from) && ends.contains(cable.to)) {
        import_.machine.cables.push_back({ends[cable.from], ends[cable.to], cable.link});
      }
    }
    if (import_.machine.cables.size() == before) {
      fail(fmt::format("expected a machine with NVLinks, found {}, which has none", from.name),
           "`ringsim list nodes` lists all");
    }
  }

  XmlImport& import_;
  std::vector<Found*> gpus_;
  /// By host and bus id; several: the file has the bus id twice.
  std::map<std::pair<int, std::string>, std::vector<const Found*>> by_busid_;
  std::map<const Found*, SwitchEntries> to_switch_;
  std::map<const Found*, std::int64_t> n_nvlinks_;
  std::map<Pair, Entry> pairs_;
  std::set<Pair> pcilinks_;
  std::optional<std::uint32_t> nvswitch_;
  bool has_links_ = false;
};

}  // namespace

void read_links(XmlImport& import, const XmlElement& root) { LinkReader(import).read(root); }

}  // namespace ringsim::nccl
