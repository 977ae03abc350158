// A machine as a value: its devices and the cables between them. Comes from a preset (topologies/presets), a file of
// the same format, or an importer.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/topology/topology.hpp"

namespace ringsim {

/// Names are local: "gpu0", "nic0"; in a cluster they become "node3.gpu0". Its gpus, in order, are ranks.
struct Machine {
  struct Device {
    std::string name;
    NodeKind kind = NodeKind::gpu;
    /// What a NIC offers to the fabric: the rate of its port, and the time that the adapter itself takes. NICs only;
    /// one without a port cannot be cabled.
    std::optional<LinkSpec> port;
    /// What files say of it, in the words of NCCL's topology XML: "busid", "sm", "numaid", "vendor", "guid"... Kept for
    /// the exporter; device_words.hpp has those that decide something.
    std::map<std::string, std::string> attributes;
    Bytes memory{};               ///< of a gpu; 0: not stated
    std::string memory_source{};  ///< where that is from
    /// A NIC that is cabled, and that no message uses: NCCL_IB_HCA leaves it out. No file says so.
    bool idle = false;
  };
  struct Cable {
    std::uint32_t from = 0, to = 0;  ///< index into devices
    LinkSpec link;                   ///< link.source names where each of its numbers comes from
  };
  std::string name, summary;
  Host host;
  std::vector<Device> devices;
  std::vector<Cable> cables;
  /// What its importer found odd, each `FILE:LINE: what; what is taken instead`. For people, on stderr.
  std::vector<std::string> warnings;

  std::size_t n_gpus() const;
};

/// `count` parallel links as one, and the way back: one of them.
LinkSpec joined(LinkSpec each, int count);
LinkSpec each_of(LinkSpec link);

/// Reads a machine file; topologies/README.md describes it. `file` stands for it in errors. Throws InputError if the
/// text is not JSON, a key is unknown, missing or doubled, a name is unknown or doubled, or a number has neither a
/// `source` nor an `assumed` reason.
Machine parse_machine(std::string_view text, const std::string& file);

/// The preset of that name, which may be one of its others (preset_names.hpp): "p5.48xlarge" is aws-p5. Throws
/// InputError (`where` empty) with what preset_hint() says.
Machine node_preset(const std::string& name);

/// A type of link that machine files may name without defining it: "nvlink3", "pcie4-x16", "hdr"... (link_types.json).
/// Throws InputError (`where` empty) naming the nearest one that exists.
const LinkSpec& library_link(const std::string& name);

/// The files built into the library, by name (without .json), in alphabetical order.
struct PresetFile {
  std::string_view name, text;
};
const std::vector<PresetFile>& preset_files();
std::string_view link_types_file();

}  // namespace ringsim
