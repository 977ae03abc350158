// Node presets: machines as data, every number with its source. The files of topologies/presets are part of the
// library.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/topology.hpp"

namespace ringsim {

/// A machine: its devices and the cables between them. Names are local: "gpu0", "nic0".
struct NodePreset {
  struct Device {
    std::string name;
    NodeKind kind = NodeKind::gpu;
    /// What a NIC offers to the fabric: the rate of its port, and the time that the adapter itself takes.
    std::optional<LinkSpec> port;
  };
  struct Cable {
    std::uint32_t from = 0, to = 0;  ///< index into devices
    LinkSpec link;                   ///< link.source names where each of its numbers comes from
  };
  std::string name, summary;
  std::vector<Device> devices;
  std::vector<Cable> cables;

  std::size_t n_gpus() const;
};

/// Reads a preset file; topologies/README.md describes it. `file` stands for it in errors. Throws InputError where the
/// text is not JSON, a key is unknown, missing or doubled, a name is unknown or doubled, or a number has neither a
/// `source` nor an `assumed` reason.
NodePreset parse_node_preset(std::string_view text, const std::string& file);

/// The preset of that name. Throws InputError (`where` empty) naming the nearest one that exists.
NodePreset node_preset(const std::string& name);

/// The files built into the library, by name (without .json), in alphabetical order.
struct PresetFile {
  std::string_view name, text;
};
const std::vector<PresetFile>& preset_files();

}  // namespace ringsim
