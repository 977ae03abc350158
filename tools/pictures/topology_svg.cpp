#include "tools/pictures/topology_svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/base/quantity.hpp"
#include "tools/pictures/picture_style.hpp"
#include "tools/pictures/svg.hpp"
#include "topologies/layout/text_width.hpp"
#include "topologies/layout/topology_layout.hpp"

namespace ringsim::tools {

namespace {

constexpr double least_width = 420;
constexpr std::size_t most_classes = 16, most_faults = 8;  // lines of the legend

/// The class of lines of that kind, which has a color of plots. Each kind looks different from all others, but for
/// NVLink and xGMI, which no machine has both of.
std::string_view look_of(LinkKind kind) {
  switch (kind) {
    case LinkKind::nvlink:
    case LinkKind::xgmi:
      return "s2";
    case LinkKind::c2c:
      return "s2 dashed";
    case LinkKind::pcie:
      return "s0";
    case LinkKind::socket:
      return "s4";
    case LinkKind::memory:
      return "s3";
    case LinkKind::infiniband:
      return "s1";
    case LinkKind::ethernet:
      return "s1 dashed";
    case LinkKind::generic:
    case LinkKind::copy:
    case LinkKind::reduce:
    case LinkKind::channel:
      break;
  }
  return "s5";
}

std::string_view class_of(NodeKind kind) {
  switch (kind) {
    case NodeKind::gpu:
      return "device gpu";
    case NodeKind::pcie_switch:
    case NodeKind::pcie_slot:
    case NodeKind::nvswitch:
    case NodeKind::network_switch:
      return "device hub";
    case NodeKind::memory:
      return "device memory";
    case NodeKind::cpu:
    case NodeKind::host_bridge:
    case NodeKind::nic:
      break;
  }
  return "device";
}

std::string_view word(NodeKind kind) {
  switch (kind) {
    case NodeKind::gpu:
      return "GPU";
    case NodeKind::cpu:
      return "CPU";
    case NodeKind::nic:
      return "NIC";
    case NodeKind::pcie_switch:
      return "PCIe switch";
    case NodeKind::pcie_slot:
      return "PCIe slot";
    case NodeKind::nvswitch:
      return "NVSwitch";
    case NodeKind::host_bridge:
      return "host bridge";
    case NodeKind::memory:
      return "host memory";
    case NodeKind::network_switch:
      break;
  }
  return to_string(kind);
}

std::string path_of(const layout::Curve& curve) {
  return fmt::format("M{:.1f} {:.1f}Q{:.1f} {:.1f} {:.1f} {:.1f}", curve.from.x, curve.from.y, curve.control.x,
                     curve.control.y, curve.to.x, curve.to.y);
}

/// Draws one topology.
class Drawing {
 public:
  Drawing(const Topology& topology, const std::vector<DrawnMark>& marks, const std::map<LinkId, LinkLoad>* loads,
          const std::set<std::string>& told)
      : topology_(topology),
        marks_(marks),
        loads_(loads),
        told_(told),
        layout_(layout::layout_of(topology, marks_of(marks))) {
    for (std::size_t r = 0; r < topology.ranks().size(); ++r) rank_[topology.ranks()[r]] = r;
    for (const layout::PlacedCable& placed : layout_.cables) {
      const std::int64_t rate = rate_of(placed.cable);
      auto& slowest = slowest_.try_emplace(key_of(placed.cable), rate).first->second;
      slowest = std::min(slowest, rate);
    }
  }

  std::string text(const std::string& title, bool alone) {
    const std::vector<std::string> legend = legend_lines(), faults = fault_lines();
    double legend_width = 0;
    for (const auto* lines : {&legend, &faults})
      for (const std::string& line : *lines)
        legend_width = std::max(legend_width, layout::width_of(line, text_size) + 60);
    width_ = std::max(
        {layout_.width, legend_width + 2 * picture_edge, least_width, loads_ != nullptr ? load_legend_width() : 0.0});
    const auto heading = svg_lines(title, width_ - 2 * picture_edge, title_size, layout::Weight::bold);
    std::string body;
    double y = 28;
    for (const std::string& line : heading) {
      body += svg_text(picture_edge, y, " class=\"title\"", line);
      y += 22;
    }
    for (const std::string& line : svg_lines(devices_text(), width_ - 2 * picture_edge, text_size)) {
      body += svg_text(picture_edge, y, " class=\"soft\"", line);
      y += 16;
    }
    y -= 4;
    body += drawn((width_ - layout_.width) / 2, y);
    y += layout_.height + 14;
    if (loads_ != nullptr) body += load_legend(y);
    body += class_legend(legend, y);
    for (const std::string& line : faults) {
      body += sign({picture_edge + 14, y}, DrawnMark::Kind::fault) + svg_text(picture_edge + 38, y + 4.5, "", line);
      y += 20;
    }
    body += bottleneck_legend(y);
    return svg_opened(width_, y, title, alone, picture_style()) + body + "</svg>\n";
  }

 private:
  /// What cables of the legend share.
  struct CableClass {
    LinkKind kind = LinkKind::generic;
    std::string text;
    std::size_t n = 0;
  };

  std::string devices_text() const {
    std::map<NodeKind, std::size_t> counts;
    for (const Node& node : topology_.nodes()) ++counts[node.kind];
    std::string text;
    for (const auto& [kind, n] : counts) {
      std::string name(word(kind));
      if (n > 1 && kind == NodeKind::memory)
        name = "host memories";
      else if (n > 1)
        name += name.ends_with("ch") ? "es" : "s";
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", n, name);
    }
    if (!layout_.left_out.empty()) text += fmt::format("; without {}", layout_.left_out);
    return text + (layout_.is_whole() ? "" : "; only a part is drawn");
  }

  std::set<LinkId> drawn_links() const {
    std::set<LinkId> drawn;
    for (const layout::PlacedCable& placed : layout_.cables)
      for (const auto* links : {&placed.cable.there, &placed.cable.back}) drawn.insert(links->begin(), links->end());
    return drawn;
  }

  /// What faults do, and to which links, if need be that they are not in the picture.
  std::vector<std::string> fault_lines() const {
    const std::set<LinkId> drawn = drawn_links();
    std::vector<std::string> lines, of_others;  // those that are in the picture come first
    for (const DrawnMark& fault : marks_) {
      if (fault.kind != DrawnMark::Kind::fault) continue;
      const bool seen =
          std::any_of(fault.links.begin(), fault.links.end(), [&](LinkId l) { return drawn.contains(l); });
      if (seen)
        lines.push_back(fault.text);
      else
        of_others.push_back(fault.text + " (not drawn)");
    }
    lines.insert(lines.end(), of_others.begin(), of_others.end());
    if (const std::size_t n = lines.size(); n > most_faults) {
      lines.resize(most_faults);
      lines.push_back(fmt::format("... and {} more fault{}", n - most_faults, n == most_faults + 1 ? "" : "s"));
    }
    return lines;
  }

  /// What sets the bound, and how many of its links are not in the picture, in as many lines as it takes.
  std::string bottleneck_legend(double& y) const {
    std::string body;
    const std::set<LinkId> drawn = drawn_links();
    for (const DrawnMark& mark : marks_) {
      if (mark.kind != DrawnMark::Kind::bottleneck) continue;
      const auto hidden =
          std::count_if(mark.links.begin(), mark.links.end(), [&](LinkId l) { return !drawn.contains(l); });
      std::string text = mark.text;
      if (hidden > 0) text += fmt::format(" ({} of {} links not drawn)", hidden, mark.links.size());
      body += sign({picture_edge + 14, y}, mark.kind);
      for (const std::string& line : svg_lines(text, width_ - 2 * picture_edge - 38, text_size)) {
        body += svg_text(picture_edge + 38, y + 4.5, "", line);
        y += 20;
      }
    }
    return body;
  }

  std::vector<std::string> legend_lines() {
    for (const layout::Cable& cable : layout::cables_of(topology_)) {
      const Link& link = topology_.link(cable.there.empty() ? cable.back.front() : cable.there.front());
      auto ends = std::minmax(topology_.node(cable.a).kind, topology_.node(cable.b).kind);
      std::string text =
          fmt::format("{}, {} to {}: {}", to_string(cable.kind), word(ends.first), word(ends.second), cable.rate);
      if (link.latency.count() > 0) text += ", " + format(link.latency);
      const auto same = [&](const CableClass& each) { return each.text == text; };
      auto found = std::find_if(classes_.begin(), classes_.end(), same);
      if (found == classes_.end() && classes_.size() == most_classes) {
        ++more_;
        continue;
      }
      if (found == classes_.end()) found = classes_.insert(found, {cable.kind, std::move(text), 0});
      ++found->n;
    }
    std::vector<std::string> result;
    for (const CableClass& each : classes_) result.push_back(fmt::format("{} ({} x)", each.text, each.n));
    if (more_ > 0) result.push_back(fmt::format("... {} more links with other rates or latencies", more_));
    return result;
  }

  std::string class_legend(const std::vector<std::string>& legend, double& y) const {
    std::string text;
    for (std::size_t i = 0; i < legend.size(); ++i) {
      if (loads_ == nullptr && i < classes_.size())
        text += fmt::format("<g class=\"{}\"><path class=\"line\" d=\"M{:.1f} {:.1f}h28\"/></g>\n",
                            look_of(classes_[i].kind), picture_edge, y);
      text += svg_text(picture_edge + (loads_ == nullptr ? 38 : 0), y + 4.5, " class=\"soft\"", legend[i]);
      y += 20;
    }
    return text;
  }

  static double load_legend_width() {
    double width = 2 * picture_edge + 46;
    for (const char* name : load_names()) width += 27 + layout::width_of(name, text_size) + 12;
    return width;
  }

  std::string load_legend(double& y) const {
    std::string text = svg_text(picture_edge, y + 4.5, "", "busy:");
    double x = picture_edge + 46;
    for (std::size_t i = 0; i < n_loads; ++i) {
      text += fmt::format("<g class=\"l{}\"><path class=\"wire\" d=\"M{:.1f} {:.1f}h22\"/></g>\n", i, x, y) +
              svg_text(x + 27, y + 4.5, "", load_names()[i]);
      x += 27 + layout::width_of(load_names()[i], text_size) + 12;
    }
    y += 24;
    return text;
  }

  double busy(const std::vector<LinkId>& links) const {
    double most = 0;
    for (const LinkId link : links)
      if (const auto found = loads_->find(link); found != loads_->end()) most = std::max(most, found->second.busy);
    return most;
  }

  std::int64_t rate_of(const layout::Cable& cable) const {
    std::int64_t rate = 0;
    for (const LinkId link : cable.there.empty() ? cable.back : cable.there)
      rate += topology_.link(link).bandwidth.bytes_per_second;
    return rate;
  }

  /// A cable is thick if it has at least 1.5 times the rate of the slowest one of its kind between equal kinds of
  /// devices.
  std::string wire_class(const layout::Cable& cable) const {
    const bool thick = rate_of(cable) >= slowest_.at(key_of(cable)) / 2 * 3;
    if (loads_ == nullptr) return fmt::format("{}{}", look_of(cable.kind), thick ? " thick" : "");
    return fmt::format("l{}", load_class(std::max(busy(cable.there), busy(cable.back))));
  }

  /// "node0.gpu0 -> node0.nic0: pcie, 24 GB/s, 350 ns; 1 GiB, busy 98.0 %", a line for each direction and link.
  std::string wire_title(const layout::Cable& cable) const {
    std::string text;
    for (const auto* links : {&cable.there, &cable.back})
      for (const LinkId id : *links) {
        const Link& link = topology_.link(id);
        text += fmt::format("{}{}: {}, {}, {}", text.empty() ? "" : "\n", topology_.link_name(id), to_string(link.kind),
                            format(link.bandwidth), format(link.latency));
        for (const DrawnMark& mark : marks_)
          if (std::find(mark.links.begin(), mark.links.end(), id) != mark.links.end())
            text += fmt::format("; {}{}", mark.kind == DrawnMark::Kind::fault ? "fault: " : "", mark.what);
        if (loads_ == nullptr) continue;
        const auto load = loads_->find(id);
        text += load == loads_->end()
                    ? "; idle"
                    : fmt::format("; {}, busy {:.1f} %", format(load->second.bytes), 100 * load->second.busy);
      }
    return text;
  }

  std::string drawn(double dx, double dy) const {
    std::string text = fmt::format("<g transform=\"translate({:.1f} {:.1f})\">\n", dx, dy);
    for (const layout::PlacedFrame& frame : layout_.frames) text += rect("frame", frame.box);
    std::map<std::string, std::string> wires;  // by class: one group for each; l0 lies below l5
    for (const layout::PlacedCable& placed : layout_.cables) wires[wire_class(placed.cable)] += wire(placed);
    for (const layout::PlacedCable& placed : layout_.cables)
      if (placed.mark) text += fmt::format("<path class=\"fault\" d=\"{}\"/>\n", path_of(placed.curve));
    for (const auto& [name, paths] : wires) text += fmt::format("<g class=\"{}\">\n{}</g>\n", name, paths);
    for (const layout::PlacedNode& placed : layout_.nodes) text += device(placed);
    for (const layout::PlacedNote& note : layout_.notes)
      for (std::size_t i = 0; i < note.lines.size(); ++i)
        text += svg_text(note.box.x, note.box.top() + 14 + 15 * static_cast<double>(i),
                         " class=\"small soft\" text-anchor=\"middle\"", note.lines[i]);
    for (const layout::PlacedFrame& frame : layout_.frames)
      text += on_page(frame.title) + svg_text(frame.title.x, frame.title.y + 4.3,
                                              " class=\"name strong\" text-anchor=\"middle\"", frame.label);
    for (const layout::PlacedCable& placed : layout_.cables)
      if (placed.label)
        text += on_page({.x = placed.label->x,
                         .y = placed.label->y,
                         .width = layout::width_of(placed.cable.rate, layout::label_size),
                         .height = 13}) +
                svg_text(placed.label->x, placed.label->y + 4, " class=\"small\" text-anchor=\"middle\"",
                         placed.cable.rate);
    for (const layout::PlacedCable& placed : layout_.cables)
      if (placed.mark) text += sign(*placed.mark, kind_of(placed.cable));
    return text + "</g>\n";
  }

  /// The kind of a cable's mark; a fault, if it has both.
  DrawnMark::Kind kind_of(const layout::Cable& cable) const {
    const auto has_fault = [&](LinkId link) {
      return std::any_of(marks_.begin(), marks_.end(), [&](const DrawnMark& mark) {
        return mark.kind == DrawnMark::Kind::fault &&
               std::find(mark.links.begin(), mark.links.end(), link) != mark.links.end();
      });
    };
    for (const auto* links : {&cable.there, &cable.back})
      if (std::any_of(links->begin(), links->end(), has_fault)) return DrawnMark::Kind::fault;
    return DrawnMark::Kind::bottleneck;
  }

  /// A letter in a disk: ! for a fault, B for the bottleneck of a bound.
  static std::string sign(layout::Point at, DrawnMark::Kind kind) {
    return fmt::format("<circle class=\"fault-mark\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\"/>\n", at.x, at.y,
                       layout::mark_size / 2) +
           svg_text(at.x, at.y + 4.3, " class=\"name strong fault-text\" text-anchor=\"middle\"",
                    kind == DrawnMark::Kind::fault ? "!" : "B");
  }

  /// A wide, invisible line above one that leads somewhere, so that it is easy to hit.
  std::string wire(const layout::PlacedCable& placed) const {
    const std::string path = path_of(placed.curve), title = escaped_xml(wire_title(placed.cable));
    const char* kind = loads_ == nullptr ? "line" : "wire";
    const std::string anchor = anchor_of(placed.cable);
    if (!told_.contains(anchor))
      return fmt::format("<path class=\"{}\" d=\"{}\"><title>{}</title></path>\n", kind, path, title);
    return fmt::format(
        "<a href=\"#{}\"><title>{}</title><path class=\"{}\" d=\"{}\"/><path class=\"hit\" d=\"{}\"/></a>\n", anchor,
        title, kind, path, path);
  }

  /// Hides lines below a text.
  static std::string on_page(const layout::Box& box) {
    return fmt::format("<rect class=\"page\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>\n",
                       box.left(), box.top(), box.width, box.height);
  }

  static std::string rect(std::string_view name, const layout::Box& box, const std::string& inside = "") {
    return fmt::format("<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"4\"{}\n",
                       name, box.left(), box.top(), box.width, box.height,
                       inside.empty() ? "/>" : fmt::format(">{}</rect>", inside));
  }

  std::string device(const layout::PlacedNode& placed) const {
    const Node& node = topology_.node(placed.node);
    std::string title = fmt::format("{}: {}", node.name, word(node.kind));
    if (const auto rank = rank_.find(placed.node); rank != rank_.end()) title += fmt::format(", rank {}", rank->second);
    return rect(class_of(node.kind), placed.box, fmt::format("<title>{}</title>", escaped_xml(title))) +
           svg_text(placed.box.x, placed.box.y + 4.3,
                    node.kind == NodeKind::gpu ? " class=\"name strong\" text-anchor=\"middle\""
                                               : " class=\"name\" text-anchor=\"middle\"",
                    placed.label);
  }

  using Key = std::tuple<LinkKind, NodeKind, NodeKind>;
  Key key_of(const layout::Cable& cable) const {
    return {cable.kind, topology_.node(cable.a).kind, topology_.node(cable.b).kind};
  }

  const Topology& topology_;
  const std::vector<DrawnMark>& marks_;
  const std::map<LinkId, LinkLoad>* loads_;
  const std::set<std::string>& told_;
  layout::TopologyLayout layout_;
  std::map<Key, std::int64_t> slowest_;
  std::map<NodeId, std::size_t> rank_;
  std::vector<CableClass> classes_;
  std::size_t more_ = 0;
  double width_ = 0;
};

}  // namespace

layout::LinkMarks marks_of(const std::vector<DrawnMark>& marks) {
  layout::LinkMarks by_link;
  for (const DrawnMark& mark : marks)
    for (const LinkId link : mark.links) by_link[link] += mark.what + ';';
  return by_link;
}

std::string anchor_of(const layout::Cable& cable) {
  return fmt::format("link-{}", (cable.there.empty() ? cable.back : cable.there).front().value);
}

std::string topology_svg(const Topology& topology, const std::string& title, const std::vector<DrawnMark>& marks,
                         const std::map<LinkId, LinkLoad>* loads, bool alone, const std::set<std::string>& told) {
  return Drawing(topology, marks, loads, told).text(title, alone);
}

}  // namespace ringsim::tools
