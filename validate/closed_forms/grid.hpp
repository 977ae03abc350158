// The grid on which simulation is held against the closed forms: what `ringsim check` runs.
#pragma once

#include <string>
#include <vector>

#include "sim/network/network_model.hpp"
#include "topologies/catalog.hpp"
#include "validate/closed_forms/closed_form.hpp"

namespace ringsim {

/// One case: an algorithm, a machine on which its form holds, and what came out.
struct GridCase {
  std::string machine;    ///< "star", "full_mesh", "ring", "torus"
  std::string algorithm;  ///< with parameters
  CollectiveRequest request;
  Picoseconds link_latency{0};
  NetworkModel model = NetworkModel::fair;

  const Algorithm* entry = nullptr;
  Arguments arguments;
};

struct GridResult {
  ClosedForm form;
  Picoseconds simulated{0};
  bool good = false;  ///< the form's assumptions hold, and simulation equals it within 1 ps a step
  /// How far simulation lies outside [low, time] of the form, ps; 0 within.
  std::int64_t off() const;
};

/// All cases: K = 2..17, 32, 64, 100, 256, 1000; p = 1 B, 1 KiB, 1000003 B, 64 MiB, 1 GiB; zero and non-zero latency;
/// `ideal` and `fair`, and up to K = 17 and p = 1000003 B `packet` if its form holds there; every algorithm of the
/// catalog on a star, and up to K = 17 on the other machines if its form holds.
std::vector<GridCase> closed_form_grid();

/// Simulates one case: builds, checks, runs.
GridResult run_case(const GridCase& grid_case);

}  // namespace ringsim
