#include "tools/pictures/schedule_svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numbers>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/schedule/rounds.hpp"
#include "tools/explanations/schedule_text.hpp"
#include "tools/output/output.hpp"
#include "tools/pictures/picture_style.hpp"
#include "tools/pictures/svg.hpp"
#include "topologies/layout/plane.hpp"
#include "topologies/layout/text_width.hpp"

namespace ringsim::tools {

namespace {

constexpr double page_width = 980, label_size = 11;

/// What one actor sends to another in a step.
struct Arrow {
  Actor from = 0, to = 0;
  bool adds = false;
  std::string chunks;  // "0, 4-7"
  std::string label;   // likewise, or how many there are
};

std::vector<Arrow> arrows_of(const Schedule& schedule, const std::vector<RoundMessage>& messages, int round) {
  struct Chunks {
    std::string names;
    std::uint64_t count = 0;
  };
  std::map<std::tuple<Actor, Actor, bool>, Chunks> arrows;
  for (const RoundMessage& message : messages) {
    if (message.round != round) continue;
    auto& [names, count] = arrows[{message.from, message.to, message.adds}];
    if (!names.empty()) names += ", ";
    names += chunks_text(schedule, message.region);
    count += schedule.names_regions ? message.region.count : 1;
  }
  constexpr std::size_t longest = 20;  // characters of a label
  std::vector<Arrow> result;
  for (auto& [key, chunks] : arrows) {
    const char* const unit = schedule.names_regions ? "chunks" : "messages";
    std::string label = chunks.names.size() > longest ? fmt::format("{} {}", chunks.count, unit) : chunks.names;
    result.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), std::move(chunks.names), std::move(label)});
  }
  return result;
}

/// Draws all panels.
class SchedulePanels {
 public:
  explicit SchedulePanels(const Schedule& schedule) : schedule_(schedule), messages_(rounds_of(schedule)) {
    for (const RoundMessage& message : messages_) {
      n_rounds_ = std::max(n_rounds_, message.round + 1);
      adds_ = adds_ || message.adds;
      moves_ = moves_ || !message.adds;
    }
    const double n = schedule.actors;
    radius_ = std::clamp(n * 62 / (2 * std::numbers::pi), 70.0, 165.0);
    panel_ = 2 * radius_ + 64;
    columns_ = std::clamp(static_cast<int>((page_width - 2 * picture_edge) / panel_), 1, std::max(1, n_rounds_));
  }

  std::string text(const std::string& title) {
    const double width =
        std::max({2 * picture_edge + columns_ * panel_, 460.0,
                  std::min(layout::width_of(title, title_size, layout::Weight::bold) + 2 * picture_edge, page_width)});
    double y = 28;
    std::string body = svg_text(picture_edge, y, " class=\"title\"",
                                cut_text(title, width - 2 * picture_edge, title_size, layout::Weight::bold));
    y += 20;
    body += svg_text(picture_edge, y, " class=\"soft\"", summary());
    y += 14;
    const int shown = std::min(n_rounds_, most_steps_drawn);
    for (int round = 0; round < shown; ++round) {
      const int row = round / columns_;
      body += panel(round, picture_edge + round % columns_ * panel_, y + row * (panel_ + 22));
    }
    y += std::ceil(static_cast<double>(shown) / columns_) * (panel_ + 22) + 12;
    for (const std::string& note : notes(shown)) {
      body += svg_text(picture_edge, y + 4.5, " class=\"soft\"", note);
      y += 20;
    }
    body += legend(y);
    return svg_opened(width, y + 8, title, /*alone=*/true, picture_style()) + body + "</svg>\n";
  }

 private:
  std::string summary() const {
    return fmt::format("{} messages in {} step{}", messages_.size(), n_rounds_, n_rounds_ == 1 ? "" : "s");
  }

  std::vector<std::string> notes(int shown) const {
    std::vector<std::string> result;
    if (shown < n_rounds_) result.push_back(fmt::format("... and {} more steps", n_rounds_ - shown));
    if (left_out_ > 0) result.push_back(fmt::format("{} arrows have no label because there is no room", left_out_));
    return result;
  }

  std::string legend(double& y) const {
    std::string text;
    const auto line = [&](const char* color, const std::string& what) {
      text +=
          fmt::format("<g class=\"{}\"><path class=\"line\" d=\"M{:.1f} {:.1f}h28\"/></g>\n", color, picture_edge, y) +
          svg_text(picture_edge + 38, y + 4.5, "", what);
      y += 20;
    };
    if (adds_) line("s1", "the receiver adds the chunks to its own data");
    if (moves_) line("s0", "the receiver stores the chunks");
    return text;
  }

  /// Ranks clockwise from the top; a single helper in the middle, several after the last rank.
  std::vector<layout::Box> places(double left, double top) const {
    const int ranks = schedule_.collective.ranks;
    const bool centered = schedule_.actors == ranks + 1 && ranks > 2;
    const int around = centered ? ranks : schedule_.actors;
    const layout::Point middle{left + panel_ / 2, top + panel_ / 2 + 10};
    std::vector<layout::Box> boxes;
    for (Actor actor = 0; actor < schedule_.actors; ++actor) {
      const double turn = 2 * std::numbers::pi * actor / around - std::numbers::pi / 2;
      const double r = actor < around ? radius_ : 0;
      boxes.push_back(
          {.x = middle.x + r * std::cos(turn), .y = middle.y + r * std::sin(turn), .width = 28, .height = 22});
    }
    return boxes;
  }

  std::string panel(int round, double left, double top) {
    const std::vector<layout::Box> boxes = places(left, top);
    const std::vector<Arrow> arrows = arrows_of(schedule_, messages_, round);
    layout::LabelRoom room;
    for (const layout::Box& box : boxes) room.block(box);
    std::vector<layout::Curve> curves;
    for (const Arrow& arrow : arrows) {
      curves.push_back(free_curve(boxes, static_cast<std::size_t>(arrow.from), static_cast<std::size_t>(arrow.to)));
      room.cross(curves.back());
    }
    std::string text = svg_text(left + 4, top + 14, " class=\"strong\"", fmt::format("step {}", round + 1)), labels;
    for (std::size_t i = 0; i < arrows.size(); ++i) text += arrow_svg(arrows[i], curves[i]);
    for (std::size_t i = 0; i < arrows.size(); ++i) {
      const double width = layout::width_of(arrows[i].label, label_size) + 4;
      auto at = room.place(curves[i], width, 14, /*clear=*/true);
      if (!at) at = room.place(curves[i], width, 14, /*clear=*/false);
      if (!at || at->x - width / 2 < left || at->x + width / 2 > left + panel_)
        ++left_out_;
      else
        labels += fmt::format("<rect class=\"page\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"12\"/>\n",
                              at->x - width / 2 + 2, at->y - 6, width - 4) +
                  svg_text(at->x, at->y + 4, " class=\"small\" text-anchor=\"middle\"", arrows[i].label);
    }
    for (Actor actor = 0; actor < schedule_.actors; ++actor)
      text += actor_svg(actor, boxes[static_cast<std::size_t>(actor)]);
    return text + labels;
  }

  /// To the left, so that the way back is another; to the right if a rank is in the way.
  static layout::Curve free_curve(const std::vector<layout::Box>& boxes, std::size_t from, std::size_t to) {
    const auto bent = [&](double bend) {
      return layout::clipped(layout::bent({boxes[from].x, boxes[from].y}, {boxes[to].x, boxes[to].y}, bend),
                             boxes[from], boxes[to]);
    };
    for (const double bend : {13.0, 6.0, -4.0, -8.0, 24.0, -24.0}) {
      const layout::Curve curve = bent(bend);
      bool is_free = true;
      for (std::size_t i = 0; i < boxes.size(); ++i)
        is_free = is_free && (i == from || i == to || !layout::meets(curve, boxes[i], 2));
      if (is_free) return curve;
    }
    return bent(13);
  }

  std::string arrow_svg(const Arrow& arrow, const layout::Curve& curve) const {
    const layout::Point tip = curve.to, behind = curve.at(0.9);
    const double dx = tip.x - behind.x, dy = tip.y - behind.y, length = std::max(std::hypot(dx, dy), 1e-9);
    const double ux = dx / length, uy = dy / length;
    return fmt::format(
        "<g class=\"s{}\"><path class=\"line\" d=\"M{:.1f} {:.1f}Q{:.1f} {:.1f} {:.1f} "
        "{:.1f}\"><title>{}</title></path>"
        "<path class=\"mark\" d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}L{:.1f} {:.1f}z\"/></g>\n",
        arrow.adds ? 1 : 0, curve.from.x, curve.from.y, curve.control.x, curve.control.y, tip.x - 5 * ux,
        tip.y - 5 * uy,
        escaped_xml(fmt::format("{} to {}: {}{}", actor_name(schedule_, arrow.from), actor_name(schedule_, arrow.to),
                                arrow.chunks, arrow.adds ? ", added" : "")),
        tip.x, tip.y, tip.x - 9 * ux + 4 * uy, tip.y - 9 * uy - 4 * ux, tip.x - 9 * ux - 4 * uy,
        tip.y - 9 * uy + 4 * ux);
  }

  std::string actor_svg(Actor actor, const layout::Box& box) const {
    const bool is_rank = actor < schedule_.collective.ranks;
    return fmt::format(
               "<rect class=\"device {}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"4\"/>\n",
               is_rank ? "gpu" : "hub", box.left(), box.top(), box.width, box.height) +
           svg_text(box.x, box.y + 4.3, " class=\"name strong\" text-anchor=\"middle\"", actor_name(schedule_, actor));
  }

  const Schedule& schedule_;
  std::vector<RoundMessage> messages_;
  int n_rounds_ = 0, columns_ = 1;
  bool adds_ = false, moves_ = false;
  double radius_ = 0, panel_ = 0;
  std::size_t left_out_ = 0;
};

}  // namespace

std::string schedule_svg(const Schedule& schedule, const std::string& title) {
  ensure(schedule.actors <= most_actors_drawn, "a schedule that is drawn has few actors");
  return SchedulePanels(schedule).text(title);
}

}  // namespace ringsim::tools
