#include "algorithms/stored_schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"

namespace ringsim {

namespace {

/// Beyond this a file has hundreds of megabytes.
constexpr std::int64_t most_operations = std::int64_t{1} << 23;

Layout layout_of(const Grid& grid, Bytes bytes) {
  if (!grid.sizes.empty()) return Layout::of_sizes(grid.sizes);
  if (grid.chunks == 0) return {};
  if (grid.chunks == grid.of) return Layout::near_equal(bytes, grid.chunks);
  return Layout::near_equal({bytes.count / grid.of * grid.chunks}, grid.chunks);
}

bool same_layout(const Layout& a, const Layout& b) {
  if (a.n_chunks() != b.n_chunks()) return false;
  for (int c = 0; c < a.n_chunks(); ++c)
    if (a.size(static_cast<std::uint32_t>(c), 1) != b.size(static_cast<std::uint32_t>(c), 1)) return false;
  return true;
}

/// The grid with which layout_of() gives this layout. `parts`: in how many chunks the message is cut elsewhere.
Grid grid_of(const Layout& layout, Bytes bytes, int parts) {
  Grid grid{.chunks = layout.n_chunks(), .of = layout.n_chunks(), .sizes = {}};
  if (grid.chunks == 0) return grid;
  for (const int of : {parts, grid.chunks}) {
    grid.of = of;
    const bool divides = of == grid.chunks || (of > 0 && bytes.count % of == 0);
    if (divides && same_layout(layout, layout_of(grid, bytes))) return grid;
  }
  grid.of = 0;
  for (int c = 0; c < grid.chunks; ++c) grid.sizes.push_back(layout.size(static_cast<std::uint32_t>(c), 1));
  return grid;
}

PromiseSpec spec_of(const StoredSchedule& stored) {
  PromiseSpec spec{.op = stored.op,
                   .ranks = stored.ranks,
                   .root = stored.root,
                   .both_ways = stored.both_ways,
                   .placement = stored.placement};
  for (std::size_t b = 0; b < n_buffers; ++b) spec.chunks[b] = stored.grids[b].chunks;
  return spec;
}

bool same_ops(const std::vector<Op>& a, const std::vector<Op>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Op& x, const Op& y) {
    return x.what == y.what && x.channel == y.channel && x.peer == y.peer && x.region == y.region &&
           x.operand == y.operand && x.time == y.time;
  });
}

bool same_waits(const std::vector<Wait>& a, const std::vector<Wait>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Wait& x, const Wait& y) { return x.lane == y.lane && x.steps == y.steps; });
}

void check_bytes(const StoredSchedule& stored, Bytes bytes) {
  for (const Grid& grid : stored.grids) {
    if (!grid.sizes.empty() && stored.names_regions && bytes != stored.bytes)
      throw InputError(
          "", fmt::format("{} lists the sizes of its chunks, for a message of {}; expected that size, found {}",
                          stored.name, format(stored.bytes), format(bytes)));
    if (grid.sizes.empty() && grid.of > 0 && bytes.count / grid.of > file_limits::bytes / std::max(grid.chunks, 1))
      fail_too_large("the size of a buffer");
    if (grid.sizes.empty() && grid.chunks != grid.of && bytes.count % grid.of != 0)
      throw InputError(
          "",
          fmt::format("expected a size that the {} chunks of {} divide, found {} B", grid.of, stored.name, bytes.count),
          fmt::format("the next valid size is {} B; MSCCL's own runtime has the same restriction",
                      (bytes.count / grid.of + 1) * grid.of));
  }
}

}  // namespace

Schedule schedule_of(const std::shared_ptr<const StoredSchedule>& stored, Bytes bytes) {
  check_bytes(*stored, bytes);
  Schedule s{.algorithm = stored->name, .collective = {}, .actors = stored->actors, .lanes = stored->lanes};
  s.names_regions = stored->names_regions;
  s.tree = stored->tree;
  if (stored->names_regions) {
    auto collective = promise(spec_of(*stored), bytes);
    ensure(collective.has_value(), "a stored schedule's collective has a form");
    s.collective = std::move(*collective);
  } else {
    s.collective = {.op = stored->op, .ranks = stored->ranks, .bytes = bytes};
    s.collective.before = s.collective.after = [](Actor, Buffer, std::uint32_t) { return Content{}; };
  }
  for (std::size_t b = 0; b < n_buffers; ++b) s.layout[b] = layout_of(stored->grids[b], bytes);
  if (!stored->symmetry.empty()) s.symmetry = Symmetry(stored->symmetry);
  s.n_steps = [stored](Actor actor, Lane lane) { return static_cast<int>(stored->lane(actor, lane).size()); };
  s.step = [stored](Actor actor, Lane lane, int i, Step& out) {
    const Step& step = stored->lane(actor, lane)[static_cast<std::size_t>(i)];
    out.ops.insert(out.ops.end(), step.ops.begin(), step.ops.end());
    out.waits.insert(out.waits.end(), step.waits.begin(), step.waits.end());
  };
  if (!stored->places.empty())
    s.place = [stored](Actor actor, Lane lane, int i) {
      const StoredSchedule::Place& place = stored->places[stored->index(actor, lane)][static_cast<std::size_t>(i)];
      return fmt::format("thread block {}, step {}, line {}", lane, place.step, place.line);
    };
  return s;
}

Bytes even_size(const StoredSchedule& stored) {
  std::int64_t size = 1;
  for (const Grid& grid : stored.grids) {
    if (!grid.sizes.empty()) return stored.bytes;
    if (grid.of > 0) size = std::lcm(size, grid.of);
    if (size > (std::int64_t{1} << 31)) fail_too_large("the least common multiple of the numbers of chunks");
  }
  return {size};
}

StoredSchedule store(const Schedule& schedule) {
  const Collective& collective = schedule.collective;
  StoredSchedule out;
  out.name = schedule.algorithm;
  out.op = collective.op;
  out.ranks = collective.ranks;
  out.root = collective.root;
  out.bytes = collective.bytes;
  out.actors = schedule.actors;
  out.lanes = schedule.lanes;
  out.tree = schedule.tree;
  out.names_regions = schedule.names_regions;
  // Files have no word for chunks in another order than the actors'; without its symmetry a schedule is as right.
  if (schedule.symmetry.chunks_as_actors()) out.symmetry = schedule.symmetry.radices();
  if (schedule.names_regions) {
    auto placement = placement_of(schedule, false);
    if (!placement && (placement = placement_of(schedule, true))) out.both_ways = true;
    if (!placement)
      throw InputError("", fmt::format("the promise of {} {} has no name that files know", schedule.algorithm,
                                       to_string(collective.op)));
    out.placement = *placement;
  }
  const int parts = schedule.layout[static_cast<std::size_t>(whole_buffer(out.op, out.placement))].n_chunks();
  for (std::size_t b = 0; b < n_buffers; ++b) out.grids[b] = grid_of(schedule.layout[b], out.bytes, parts);

  std::int64_t operations = 0;
  out.steps.resize(static_cast<std::size_t>(out.actors) * static_cast<std::size_t>(out.lanes));
  for (Actor actor = 0; actor < out.actors; ++actor) {
    for (Lane lane = 0; lane < out.lanes; ++lane) {
      const int n = schedule.n_steps(actor, lane);
      for (int i = 0; i < n; ++i) {
        Step step;
        schedule.step(actor, lane, i, step);
        for (Op& op : step.ops)
          if (op.operand.count == 0) op.operand = Op{}.operand;  // no operand is in no buffer
        operations += 1 + static_cast<std::int64_t>(step.ops.size());
        if (operations > most_operations)
          throw InputError("", fmt::format("{} has more than {} operations: too many for a file", schedule.algorithm,
                                           most_operations));
        out.lane(actor, lane).push_back(std::move(step));
      }
    }
  }
  return out;
}

bool same_schedule(const StoredSchedule& a, const StoredSchedule& b) {
  return a.op == b.op && a.placement == b.placement && a.ranks == b.ranks && a.root == b.root &&
         a.both_ways == b.both_ways && a.names_regions == b.names_regions && a.actors == b.actors &&
         a.lanes == b.lanes && a.tree == b.tree && a.grids == b.grids && a.symmetry == b.symmetry &&
         std::equal(a.steps.begin(), a.steps.end(), b.steps.begin(), b.steps.end(),
                    [](const std::vector<Step>& x, const std::vector<Step>& y) {
                      return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const Step& p, const Step& q) {
                        return same_ops(p.ops, q.ops) && same_waits(p.waits, q.waits);
                      });
                    });
}

}  // namespace ringsim
