// NCCL_IB_HCA: which adapters NCCL uses.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "topologies/machines/machine.hpp"

namespace ringsim::nccl {

/// A list of names, or of what names begin with, each with or without the port of an adapter.
///
/// Source: NCCL's user guide, "Environment Variables", NCCL_IB_HCA. `mlx5`: all ports of all adapters whose names begin
/// with mlx5, `mlx5_1` those of mlx5_1, mlx5_10, mlx5_11... `=mlx5_0:1,mlx5_1:1`: port 1 of mlx5_0 and of mlx5_1.
/// `^=mlx5_3,mlx5_4`: all but these two. `^` and `=` stand before the whole list.
struct NicSelection {
  struct Entry {
    std::string name;
    int port = any_port;
  };
  static constexpr int any_port = -1;
  bool excludes = false;  ///< ^
  bool exact = false;     ///< =
  std::vector<Entry> entries;

  bool matches(const Entry& entry, std::string_view name, int port) const;
  bool selects(std::string_view name, int port) const;
};

/// Throws InputError (`where` empty) for a list without names, an entry without one, `=` before `^`, and a port that is
/// no number.
NicSelection read_ib_hca(const std::string& text);

/// How much of a NIC is selected. It has the name of the machine file, which stands for all its ports, and those of its
/// adapter's ports ("name", "net0.name" ... of its attributes; "net0.port" is the port's number, else 1). If the list
/// has the first, the others are not looked at.
enum class Selected { no, in_part, yes };
Selected selected(const NicSelection& selection, const Machine::Device& nic);

/// True if the entry is a name of this NIC, or of one of its ports.
bool names(const NicSelection& selection, const NicSelection::Entry& entry, const Machine::Device& nic);

}  // namespace ringsim::nccl
