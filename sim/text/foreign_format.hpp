// Recognizes files of other programs that ringsim does not read.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace ringsim {

/// A format that ringsim recognizes but does not read as a scenario, a machine or measured times.
struct ForeignFormat {
  std::string name;         ///< "a PyTorch Flight Recorder dump, which ringsim does not read yet"
  std::string instead;      ///< what to give instead, for a hint
  bool is_profile = false;  ///< kernels with their times, but not what waits for what
};

/// foreign_format() needs no more than this of a file.
inline constexpr std::size_t recognized_bytes = std::size_t{1} << 20;

/// Recognizes a format by the first bytes of an unpacked file, or by its first keys: traces of PyTorch, Chakra, Nsight
/// Systems, NCCL Inspector and Flight Recorder, ASTRA-sim's inputs, archives and databases. Returns nothing for all
/// other files.
std::optional<ForeignFormat> foreign_format(std::string_view beginning);

/// True if it is the beginning of a Chakra execution trace, with its first node.
bool is_chakra_trace(std::string_view beginning);

/// True if it is the beginning of a network of ASTRA-sim's analytical backend, network.yml.
bool is_astra_network(std::string_view beginning);

/// Throws InputError at `where` for such a file: "expected `expected`, found a ...".
void refuse_foreign_format(std::string_view beginning, const std::string& where, const std::string& expected);

}  // namespace ringsim
