// What simpler models say of a scenario's collective: the textbook's ring, NCCL's own estimate, and a straight line.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/scenario.hpp"
#include "topologies/nccl/nccl_tuner.hpp"

namespace ringsim {

/// A time, and what reaches it: "ring rings=2 simple", "Tree LL"; may be empty.
struct ModelTime {
  double us = 0;
  std::string by;
};

/// The textbook's machine: every step takes `a` and every rank sends at `b`, whatever the others do.
struct TextbookMachine {
  int ranks = 0;
  double a_us = 0;    ///< the longest of the latencies from each rank to the next
  double b_GBps = 0;  ///< what the links of a rank carry together; between hosts a host's NICs
};

/// From the scenario's own topology. b: the NVLinks (or xGMI) of a GPU to the other ranks of its host and to
/// NVSwitches, if there are none its other ports; of all ranks the least. Several hosts: no more than what the NICs
/// of one carry together, and than the other ports of its ranks do.
TextbookMachine textbook_machine(const Scenario& scenario);

/// all_reduce: the ring, 2(K-1)(a + p/(K b)); reduce_scatter, all_gather: half of it; all_to_all: pairwise, as these;
/// broadcast, reduce: the pipelined chain of as many pieces s as are best, (K-2+s)(a + p/(s b)), s not rounded;
/// send_recv: a + p/b. Nothing for others, and for one rank.
std::optional<ModelTime> textbook_time(const TextbookMachine& machine, CollectiveOp op, Bytes bytes);

/// Which NCCL or RCCL ran, as a table says.
struct SaidLibrary {
  bool is_rccl = false;
  std::string version;  ///< "2.22.3", "2.8"; empty: not said
  std::optional<nccl::TunerAlgorithm> algorithm;
  std::optional<nccl::TunerProtocol> protocol;
};
/// `about`: MeasuredTable::about. "library" says whether it was NCCL or RCCL, and which; "algorithm" and "protocol", if
/// they begin with one of NCCL's names, what was forced. Nothing if it was neither.
std::optional<SaidLibrary> said_library(const std::map<std::string, std::string>& about);

/// Why a table is not compared with its own release, as a sentence without an end: it names one of NCCL that is newer
/// than all that are modeled, or one of RCCL that is not, and `predicted`, "nccl 2.30.7", has other rules. Empty: it
/// does not.
std::string newer_release_text(const std::map<std::string, std::string>& about, const std::string& predicted);

/// NCCL's tuner (topologies/nccl/nccl_tuner.hpp) for the nodes of a scenario, as a table says which release ran and
/// how.
class TunerBaseline {
 public:
  /// The release is the one that said_library() finds, the newest if it finds no version; what was forced leaves
  /// only that to choose from.
  TunerBaseline(const Scenario& scenario, const std::map<std::string, std::string>& about);

  /// What it would choose; nothing if it was not NCCL, if the release is newer than all that are modeled, if the
  /// formula does not cover it, or if nodes differ.
  std::optional<ModelTime> time(CollectiveOp op, Bytes bytes) const;

 private:
  std::optional<nccl::TunerMachine> machine_;
  nccl::Release release_ = nccl::Release::v2_30_7;
  std::optional<nccl::TunerAlgorithm> algorithm_;
  std::optional<nccl::TunerProtocol> protocol_;
};

/// t = alpha + bytes/beta, fitted with the least squares of relative errors; alpha and 1/beta are not negative.
struct Line {
  double alpha_us = 0, us_per_byte = 0;
  double at(Bytes bytes) const { return alpha_us + us_per_byte * static_cast<double>(bytes.count); }
};
/// Fits the line to sizes and times in us, above 0. Requires at least two sizes.
Line fitted_line(std::span<const std::pair<Bytes, double>> rows);

}  // namespace ringsim
