#include "algorithms/formats/json_schedule.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "sim/base/error.hpp"
#include "sim/text/json_place.hpp"

namespace ringsim {

namespace {

constexpr std::int64_t most_actors = 1 << 20;
constexpr const char* format_key = "ringsim_schedule";

std::vector<std::pair<std::string, CollectiveOp>> collectives() {
  std::vector<std::pair<std::string, CollectiveOp>> out;
  for (const CollectiveOp op : collective_ops()) out.emplace_back(to_string(op), op);
  return out;
}

std::vector<std::pair<std::string, Placement>> placement_names() {
  std::vector<std::pair<std::string, Placement>> out;
  for (const Placement placement : placements) out.emplace_back(to_string(placement), placement);
  return out;
}

// ------------------------------------------------------------------------------------------------------------ writing

std::string text_of(const Op& op) {
  const std::string region = to_string(op.region);
  const std::string channel = op.channel == 0 ? "" : fmt::format(" channel {}", op.channel);
  switch (op.what) {
    case Do::send:
      return fmt::format("send {} to {}{}", region, op.peer, channel);
    case Do::receive:
      return fmt::format("receive {} from {}{}", region, op.peer, channel);
    case Do::receive_add:
      if (op.operand.count > 0)
        return fmt::format("receive_add {} from {} to {}{}", to_string(op.operand), op.peer, region, channel);
      return fmt::format("receive_add {} from {}{}", region, op.peer, channel);
    case Do::copy:
    case Do::add:
      return fmt::format("{} {} to {}", to_string(op.what), to_string(op.operand), region);
    case Do::compute:
      return fmt::format("compute {} ps", op.time.count());
  }
  fail_invariant("an operation has one of six names");
}

std::string text_of(const Step& step) {
  std::string out;
  const auto add = [&](const std::string& text) { out += fmt::format("{}\"{}\"", out.empty() ? "" : ", ", text); };
  for (const Wait& wait : step.waits) add(fmt::format("after {} steps of lane {}", wait.steps, wait.lane));
  for (const Op& op : step.ops) add(text_of(op));
  return "[" + out + "]";
}

std::string text_of(const Grid& grid) {
  if (grid.sizes.empty())
    return grid.of == grid.chunks ? fmt::format("{{\"chunks\": {}}}", grid.chunks)
                                  : fmt::format("{{\"chunks\": {}, \"of\": {}}}", grid.chunks, grid.of);
  std::vector<std::int64_t> sizes;
  for (const Bytes size : grid.sizes) sizes.push_back(size.count);
  return fmt::format("{{\"sizes\": [{}]}}", fmt::join(sizes, ", "));
}

// ------------------------------------------------------------------------------------------------------------ reading

std::int64_t whole_or(const Place& parent, const char* key, std::int64_t fallback, std::int64_t least,
                      std::int64_t most) {
  return parent.has(key) ? parent.at(key).whole(least, most) : fallback;
}

/// One operation or wait: words with single spaces between them.
class Phrase {
 public:
  Phrase(const Place& place, const StoredSchedule& stored) : place_(place), stored_(stored), text_(place.text()) {}

  void read_into(Step& step) {
    const std::string_view verb = word();
    Op op;
    if (verb == "after") return read_wait(step);
    if (verb == "send") {
      op = {.what = Do::send, .region = region()};
      connection(op, "to");
    } else if (verb == "receive") {
      op = {.what = Do::receive, .region = region()};
      connection(op, "from");
    } else if (verb == "receive_add") {
      op = {.what = Do::receive_add, .region = region()};
      expect("from");
      op.peer = static_cast<Actor>(number(stored_.actors - 1));
      if (next_is("to")) {
        op.operand = op.region;
        op.region = region();
        if (op.operand == op.region) op.operand = {.count = 0};
      }
      channel(op);
    } else if (verb == "copy" || verb == "add") {
      op = {.what = verb == "copy" ? Do::copy : Do::add, .operand = region()};
      expect("to");
      op.region = region();
    } else if (verb == "compute") {
      op = {.what = Do::compute, .time = Picoseconds{number(INT64_MAX)}};
      expect("ps");
    } else {
      fail("an operation (send, receive, receive_add, copy, add, compute) or a wait (after)");
    }
    if (at_ < text_.size()) fail("the end of the operation after " + text_.substr(0, at_ - 1));
    step.ops.push_back(op);
  }

 private:
  [[noreturn]] void fail(const std::string& expected) const {
    place_.fail(fmt::format("expected {}, found {:.80}", expected, place_.json.dump()));
  }

  std::string_view word() {
    const std::size_t end = std::min(text_.find(' ', at_), text_.size());
    const std::string_view found = std::string_view(text_).substr(at_, end - at_);
    at_ = end + 1;
    return found;
  }
  bool next_is(std::string_view expected) {
    const std::size_t before = at_;
    if (at_ < text_.size() && word() == expected) return true;
    at_ = before;
    return false;
  }
  void expect(std::string_view expected) {
    if (!next_is(expected)) fail(fmt::format("the word \"{}\"", expected));
  }

  static std::optional<std::int64_t> digits(std::string_view text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size() || text.front() == '-')
      return std::nullopt;
    return value;
  }
  std::int64_t number(std::int64_t most) {
    const auto value = at_ < text_.size() ? digits(word()) : std::nullopt;
    if (!value || *value > most) fail(fmt::format("a whole number from 0 to {}", most));
    return *value;
  }

  Region region() {
    const std::string_view text = at_ < text_.size() ? word() : "";
    const std::size_t open = std::min(text.find('['), text.size());
    for (std::size_t b = 0; b < n_buffers; ++b) {
      if (text.substr(0, open) != to_string(static_cast<Buffer>(b)) || !text.ends_with(']')) continue;
      const std::string_view inside = text.substr(open + 1, text.size() - open - 2);
      const std::size_t dots = inside.find("..");
      const auto first = digits(inside.substr(0, dots));
      const auto last = dots == std::string_view::npos ? first : digits(inside.substr(dots + 2));
      if (!first || !last || *first > *last) break;
      if (*last >= stored_.grids[b].chunks)
        fail(fmt::format("chunks of {}, which has {}", to_string(static_cast<Buffer>(b)), stored_.grids[b].chunks));
      return {static_cast<Buffer>(b), static_cast<std::uint32_t>(*first),
              static_cast<std::uint32_t>(*last - *first + 1)};
    }
    fail("chunks such as data[3] or input[4..7]");
  }

  void connection(Op& op, std::string_view preposition) {
    expect(preposition);
    op.peer = static_cast<Actor>(number(stored_.actors - 1));
    channel(op);
  }
  void channel(Op& op) {
    if (next_is("channel")) op.channel = static_cast<std::uint16_t>(number(UINT16_MAX));
  }

  void read_wait(Step& step) {
    const auto steps = static_cast<int>(number(INT32_MAX));
    expect("steps");
    expect("of");
    expect("lane");
    step.wait(static_cast<Lane>(number(stored_.lanes - 1)), steps);
    if (at_ < text_.size()) fail("the end of the wait after the lane");
  }

  const Place& place_;
  const StoredSchedule& stored_;
  std::string text_;
  std::size_t at_ = 0;
};

Grid grid_of(const Place& place) {
  place.allow({"chunks", "of", "sizes"});
  Grid grid;
  if (!place.has("sizes")) {
    grid.chunks = static_cast<int>(place.at("chunks").whole(1, file_limits::chunks));
    grid.of = static_cast<int>(whole_or(place, "of", grid.chunks, 1, file_limits::chunks));
    return grid;
  }
  if (place.has("chunks") || place.has("of"))
    place.fail(R"(expected either "sizes" or "chunks" with "of", found both)");
  std::int64_t total = 0;
  for (const Place& size : place.at("sizes").items()) {
    grid.sizes.push_back({size.whole(0, file_limits::bytes)});
    if ((total += grid.sizes.back().count) > file_limits::bytes)
      size.fail(fmt::format("expected at most {} bytes in total", file_limits::bytes));
  }
  if (grid.sizes.empty() || grid.sizes.size() > static_cast<std::size_t>(file_limits::chunks))
    place.at("sizes").fail(
        fmt::format("expected from 1 to {} sizes, found {}", file_limits::chunks, grid.sizes.size()));
  grid.chunks = static_cast<int>(grid.sizes.size());
  return grid;
}

/// The parent of each actor: switches are helpers, and one is at the top.
std::vector<Actor> tree_of(const Place& place, const StoredSchedule& stored) {
  const std::vector<Place> items = place.items();
  if (items.size() != static_cast<std::size_t>(stored.actors))
    place.fail(
        fmt::format("expected the parent of each of {} ranks and helpers, found {}", stored.actors, items.size()));
  std::vector<Actor> parents;
  for (const Place& item : items) {
    parents.push_back(static_cast<Actor>(item.whole(-1, stored.actors - 1)));
    const bool is_rank = parents.size() <= static_cast<std::size_t>(stored.ranks);
    if (parents.back() < (is_rank ? stored.ranks : -1) || (parents.back() >= 0 && parents.back() < stored.ranks))
      item.fail(fmt::format("expected a helper{}, found {}", is_rank ? "" : ", or -1 for the root", parents.back()));
  }
  if (std::count(parents.begin(), parents.end(), -1) != 1)
    place.fail(fmt::format("expected one root, -1, found {}", std::count(parents.begin(), parents.end(), -1)));
  for (Actor helper = stored.ranks; helper < stored.actors; ++helper) {
    int steps = 0;  // to the root; a way round never ends there
    for (Actor at = helper; at >= 0; at = parents[static_cast<std::size_t>(at)])
      if (++steps > stored.actors - stored.ranks)
        items[static_cast<std::size_t>(helper)].fail("expected a path to the root, found a cycle");
  }
  return parents;
}

void read_head(const Place& root, StoredSchedule& out) {
  out.name = root.at("name").text();
  out.ranks = static_cast<int>(root.at("ranks").whole(1, most_actors));
  out.actors = out.ranks + static_cast<int>(whole_or(root, "helpers", 0, 0, most_actors));
  if (root.has("tree")) out.tree = tree_of(root.at("tree"), out);
  out.lanes = static_cast<int>(whole_or(root, "lanes", 1, 1, file_limits::lanes));
  out.root = static_cast<Actor>(whole_or(root, "root", 0, 0, out.ranks - 1));
  if (root.has("both_ways")) out.both_ways = root.at("both_ways").truth();
  out.bytes = {whole_or(root, "bytes", 0, 0, file_limits::bytes)};
  if (root.has("protocol")) out.protocol = root.at("protocol").text();
  out.min_bytes = whole_or(root, "min_bytes", 0, 0, INT64_MAX);
  out.max_bytes = whole_or(root, "max_bytes", 0, 0, INT64_MAX);
  if (root.has("symmetry")) {
    std::int64_t order = 1;
    for (const Place& radix : root.at("symmetry").items()) {
      out.symmetry.push_back(static_cast<int>(radix.whole(1, most_actors)));
      order *= out.symmetry.back();
      if (order > most_actors) radix.fail(fmt::format("expected radices whose product is at most {}", most_actors));
    }
  }
  for (const auto& [name, place] : root.at("buffers").entries()) {
    std::size_t b = 0;
    while (b < n_buffers && name != to_string(static_cast<Buffer>(b))) ++b;
    if (b == n_buffers) place.fail("expected data, input, output or scratch, found \"" + name + "\"");
    out.grids[b] = grid_of(place);
  }
}

void read_promise(const Place& root, StoredSchedule& out) {
  out.names_regions = root.has("collective");
  if (!out.names_regions) {
    if (root.has("placement")) root.at("placement").fail("expected this key only with a collective");
    return;
  }
  out.op = root.at("collective").word(collectives());
  out.placement = root.at("placement").word(placement_names());
  PromiseSpec spec{.op = out.op, .ranks = out.ranks, .placement = out.placement};
  for (std::size_t b = 0; b < n_buffers; ++b) spec.chunks[b] = out.grids[b].chunks;
  const bool in_one = in_one_buffer(out.placement);
  for (const Buffer buffer : {in_one ? Buffer::data : Buffer::input, in_one ? Buffer::data : Buffer::output})
    if (spec.chunks[static_cast<std::size_t>(buffer)] == 0)
      root.at("buffers").fail(
          fmt::format("expected the buffer \"{}\", which \"placement\": \"{}\" requires, found none", to_string(buffer),
                      to_string(out.placement)));
  if (!promise(spec, {}))
    root.at("placement")
        .fail(fmt::format(
            "expected a placement that {} can have and a number of chunks that is divisible by its {} ranks, found {}",
            to_string(out.op), out.ranks, to_string(out.placement)));
  if (in_one) return;
  const bool has_blocks = out.placement != Placement::input_kept;
  const std::int64_t n = out.ranks, input = spec.chunks[static_cast<std::size_t>(Buffer::input)],
                     output = spec.chunks[static_cast<std::size_t>(Buffer::output)];
  if (input * (has_blocks && out.op == CollectiveOp::all_gather ? n : 1) !=
      output * (has_blocks && out.op == CollectiveOp::reduce_scatter ? n : 1))
    root.at("buffers").fail(
        fmt::format("expected input and output of one {}, found {} and {} chunks", to_string(out.op), input, output));
}

void read_steps(const Place& root, StoredSchedule& out) {
  const std::vector<Place> actors = root.at("steps").items();
  if (actors.size() != static_cast<std::size_t>(out.actors))
    root.at("steps").fail(
        fmt::format("expected a list for each of {} ranks and helpers, found {}", out.actors, actors.size()));
  for (const Place& actor : actors) {
    const std::vector<Place> lanes = actor.items();
    if (lanes.size() != static_cast<std::size_t>(out.lanes))
      actor.fail(fmt::format("expected a list for each of {} lane{} (\"lanes\": {}), found {}", out.lanes,
                             out.lanes == 1 ? "" : "s", out.lanes, lanes.size()));
    for (const Place& lane : lanes) {
      std::vector<Step>& steps = out.steps.emplace_back();
      for (const Place& step : lane.items()) {
        steps.emplace_back();
        for (const Place& phrase : step.items()) Phrase(phrase, out).read_into(steps.back());
      }
    }
  }
}

}  // namespace

std::string export_json(const StoredSchedule& stored) {
  std::string out = fmt::format("{{\n  \"{}\": 1,\n  \"name\": {},\n", format_key, Json(stored.name).dump());
  if (stored.names_regions)
    out += fmt::format("  \"collective\": \"{}\",\n  \"placement\": \"{}\",\n", to_string(stored.op),
                       to_string(stored.placement));
  out += fmt::format("  \"ranks\": {},\n", stored.ranks);
  const auto number = [&](const char* key, std::int64_t value, std::int64_t fallback) {
    if (value != fallback) out += fmt::format("  \"{}\": {},\n", key, value);
  };
  number("helpers", stored.actors - stored.ranks, 0);
  if (!stored.tree.empty()) out += fmt::format("  \"tree\": [{}],\n", fmt::join(stored.tree, ", "));
  number("lanes", stored.lanes, 1);
  number("root", stored.root, 0);
  if (stored.both_ways) out += "  \"both_ways\": true,\n";
  if (!stored.symmetry.empty()) out += fmt::format("  \"symmetry\": [{}],\n", fmt::join(stored.symmetry, ", "));
  if (!stored.protocol.empty()) out += fmt::format("  \"protocol\": {},\n", Json(stored.protocol).dump());
  number("min_bytes", stored.min_bytes, 0);
  number("max_bytes", stored.max_bytes, 0);
  const bool listed =
      std::any_of(stored.grids.begin(), stored.grids.end(), [](const Grid& grid) { return !grid.sizes.empty(); });
  if (listed) number("bytes", stored.bytes.count, 0);
  std::string buffers;
  for (std::size_t b = 0; b < n_buffers; ++b)
    if (stored.grids[b].chunks > 0)
      buffers += fmt::format("{}\"{}\": {}", buffers.empty() ? "" : ", ", to_string(static_cast<Buffer>(b)),
                             text_of(stored.grids[b]));
  out += fmt::format("  \"buffers\": {{{}}},\n  \"steps\": [", buffers);
  for (Actor actor = 0; actor < stored.actors; ++actor) {
    out += actor == 0 ? "\n    [" : ",\n    [";
    for (Lane lane = 0; lane < stored.lanes; ++lane) {
      out += lane == 0 ? "[" : ",\n     [";
      bool first = true;
      for (const Step& step : stored.lane(actor, lane)) {
        out += (first ? "" : ",\n      ") + text_of(step);
        first = false;
      }
      out += "]";
    }
    out += "]";
  }
  return out + "\n  ]\n}\n";
}

StoredSchedule import_json(std::string_view text, const std::string& file) {
  const Json json = parse_json(text, file);
  const Place root{json, file, ""};
  root.allow({format_key, "name", "collective", "placement", "ranks", "helpers", "tree", "lanes", "root", "both_ways",
              "symmetry", "protocol", "min_bytes", "max_bytes", "bytes", "buffers", "steps"});
  root.at(format_key).whole(1, 1);
  StoredSchedule out;
  read_head(root, out);
  read_promise(root, out);
  read_steps(root, out);
  return out;
}

}  // namespace ringsim
