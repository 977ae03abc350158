// The text of `nvidia-smi topo -m` as a matrix. For sources alone.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ringsim::smi {

/// How near two devices are on PCIe; 0 is unknown (NVLink is printed instead), 1 the device itself.
enum Near : int { unknown, self, pix, pxb, phb, node, sys };
inline constexpr std::array words{"NV#", "X", "PIX", "PXB", "PHB", "NODE", "SYS"};
inline std::string word_of(Near near) { return words[static_cast<std::size_t>(near)]; }

struct Row {
  std::string name;
  std::size_t line = 0;
  std::vector<Near> near;
  std::vector<int> nvlinks;
  std::string affinity;             ///< the CPU affinity as printed; empty: not printed
  std::optional<int> highest_numa;  ///< of its NUMA affinity; nothing: not printed, or no number
};

struct Matrix {
  std::vector<Row> rows;
  std::map<std::string, std::string> nic_names;  ///< "NIC0": "mlx5_0"
};

bool is_gpu(std::string_view name);

/// Throws InputError at FILE:LINE.
[[noreturn]] void fail(const std::string& file, std::size_t line, const std::string& message,
                       const std::string& hint = "");

/// Reads the matrix out of a text that may have more in it: what a terminal or a job's log puts before each line
/// ("[1,0]<stdout>:", a time, "> " of a quotation), and the bars of a table in Markdown. The first line with the names
/// of the columns counts that a row of the first name follows.
Matrix read_matrix(std::string_view text, const std::string& file);

}  // namespace ringsim::smi
