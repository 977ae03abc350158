// Who used a link when, for the report: a part of the page for each link, seen after a click on it.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "scenarios/predict/trace.hpp"
#include "tools/pictures/topology_svg.hpp"
#include "topologies/layout/topology_layout.hpp"

namespace ringsim::tools {

class LinkUsers {
 public:
  /// All but `marks` must outlive it. Of links that are drawn, and that something crossed; none if the run kept no
  /// flows. `marks`: as the picture has them, so that both show the same devices.
  LinkUsers(const Topology& topology, const Recording& recording, const std::map<LinkId, LinkLoad>& loads,
            const layout::LinkMarks& marks);

  /// anchor_of() of each cable that has a section.
  const std::set<std::string>& anchors() const { return anchors_; }
  /// HTML: a section for each cable with a bar for each pair of ranks, those that sent most first.
  const std::string& sections() const { return sections_; }

 private:
  void add(const layout::Cable& cable);
  std::string direction(const std::vector<LinkId>& links) const;  // parallel ones

  const Topology& topology_;
  const Recording& recording_;
  const std::map<LinkId, LinkLoad>& loads_;
  std::map<LinkId, std::vector<std::size_t>> flows_;  // numbers in Recording::flows
  std::set<std::string> anchors_;
  std::string sections_;
};

}  // namespace ringsim::tools
