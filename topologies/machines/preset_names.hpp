// The names of machines as people write them: presets, their other names, and answers to unknown names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/quantity.hpp"

namespace ringsim {

/// The names of a preset, from its file.
struct PresetNames {
  /// A machine that is no preset, and differs least from this one.
  struct Near {
    std::string name;
    std::string differs;  ///< in words: "4 NICs of 200 Gb/s instead of 8"
  };
  /// A size of the GPUs' memory that some of the names say, other than that of the preset.
  struct Memory {
    std::vector<std::string> names;  ///< among `also` and `taken_for`, the first among `also`
    Bytes bytes;
    std::string source;
  };
  std::string name, summary;
  std::string gpu;                     ///< "H100"
  std::vector<std::string> also;       ///< other names of the same machine: "p5.48xlarge"
  std::vector<std::string> taken_for;  ///< names that other machines have too, such as a GPU's: "h100"
  std::vector<Near> near;
  std::vector<Memory> memories;

  /// The memory that one of its names says; nullptr: that of the preset.
  const Memory* memory_of(std::string_view text) const;
  /// The name that stands for one of its names in scenarios: `name`, or the first one that says the same memory.
  std::string choice_of(std::string_view text) const;
};

/// The names of all presets, in alphabetical order.
const std::vector<PresetNames>& preset_names();

/// The name of a machine in one spelling: lower case, "-" for "_" and spaces.
std::string plain_machine_name(std::string_view name);

/// The preset that a text names by any of its names; nullptr if there is none.
const PresetNames* preset_named(std::string_view text);

/// The GPUs of presets that a text names, in no order: "H100" of "NVIDIA H100 80GB HBM3".
std::vector<std::string> preset_gpus_in(std::string_view text);

/// What to say about a name that other machines have too: the preset that is taken, and the others. Else empty.
std::string preset_note(std::string_view text);

/// What to do about a name that is no preset: how a known machine differs from the nearest preset, presets with the GPU
/// that the name says, or one that is spelled alike. Never a preset with another GPU than the name says. If there is
/// none, where to look.
std::string preset_hint(std::string_view text);

}  // namespace ringsim
