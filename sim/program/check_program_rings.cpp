// The proof of a program: rings of keys and values. Queries of each rank meet the block of each rank once, and all
// parts of a block's gradient come home.
#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/splitmix.hpp"
#include "sim/program/program_detail.hpp"

namespace ringsim::program_detail {

std::vector<RingPlace> ring_places(const Program& program) {
  std::vector<RingPlace> places(program.variables.size());
  for (std::size_t r = 0; r < program.rings.size(); ++r)
    for (const bool is_gradient : {false, true}) {
      const std::vector<int>& variables = is_gradient ? program.rings[r].gradients : program.rings[r].blocks;
      for (std::size_t d = 0; d < variables.size(); ++d) {
        const auto variable = static_cast<std::size_t>(variables[d]);
        ensure(variables[d] >= 0 && variable < places.size(), "variables of a ring exist");
        if (places[variable].ring >= 0)
          refuse_program(program, fmt::format("{}: two places in rings, expected one", program.variables[variable]),
                         "each block and each gradient of a ring is a variable of its own");
        places[variable] = {static_cast<int>(r), is_gradient, d};
      }
    }
  return places;
}

std::vector<bool> ring_variables(const Program& program) {
  std::vector<bool> found;
  for (const RingPlace& place : ring_places(program)) found.push_back(place.ring >= 0);
  return found;
}

namespace {

using As = Program::Touch::As;

/// The owner of keys and values, and the pass that they belong to. Passes are numbered from 1; 0: nothing yet.
struct Block {
  Actor owner = -1;
  std::int64_t pass = 0;
  bool operator==(const Block&) const = default;
};

/// The sum of parts of a block's gradient. A part is a random number, so sums wrap around.
struct Gradient {
  Block of;
  std::uint64_t sum = 0;
};

/// One ring promise, at all actors.
class RingState {
 public:
  RingState(const Program& program, const Program::Ring& ring)
      : program_(program), ring_(ring), seats_(index(program.actors)), of_role_(program.roles.size()) {
    const Program::Groups& groups = program.groups[static_cast<std::size_t>(ring.groups)];
    for (std::size_t g = 0; g < groups.size(); ++g)
      for (std::size_t k = 0; k < groups[g].size(); ++k)
        seats_[index(groups[g][k])] = {.group = static_cast<int>(g), .in_group = k};
    for (Actor actor = 0; actor < program.actors; ++actor)
      seats_[index(actor)].in_role = of_role_[static_cast<std::size_t>(program.role_number(actor))]++;
    const std::size_t n = index(program.actors);
    blocks_.assign(ring.blocks.size(), std::vector<Block>(n));
    gradients_.assign(ring.gradients.size(), std::vector<Gradient>(n));
    passes_.resize(n);
  }

  /// `number`: of the task among all of both iterations.
  void touch(const TaskPlace& place, std::int64_t number, const Program::Touch& touch, const RingPlace& at,
             Actor actor) {
    if (at.is_gradient)
      touch_gradient(place, touch, at.d, actor);
    else
      touch_block(place, number, touch, at.d, actor);
  }

  /// The call hands one variable of each member to the next one. Both are of this ring, and of one kind.
  void shift(const Program::Call& call, const RingPlace& from, const RingPlace& to) {
    if (from.is_gradient) return shift(call, gradients_[from.d], gradients_[to.d]);
    expect_current(call, from.d);
    shift(call, blocks_[from.d], blocks_[to.d]);
  }

  void end_iteration() const {
    for (Actor actor = 0; actor < program_.actors; ++actor) {
      if (passes_[index(actor)].is_open)
        refuse_program(program_, fmt::format("rank {} never reads the result of a pass around the ring", actor));
      if (passes_[index(actor)].has_gradient_out)
        refuse_program(program_, fmt::format("rank {} never reads the gradient of its keys and values, which a pass "
                                             "around the ring has begun",
                                             actor));
    }
    if (shelves_.empty()) return;
    const auto& [role, number] = shelves_.begin()->first;
    refuse_program(program_,
                   fmt::format("{} keeps a block on shelf {} and never takes it", first_of(program_, role), number));
  }

 private:
  struct Pass {
    Block own;                      // with its number; in a pass that began with `take` the block that was taken
    std::uint64_t part = 0;         // the rank's part of each gradient
    std::vector<std::uint8_t> met;  // [member of the group] how often
    bool is_open = false;
    bool has_gradient_out = false;  // the gradient of the rank's own block has begun, and the rank has not read it
  };

  struct Seat {
    int group = -1;            // -1: none
    std::size_t in_group = 0;  // which of its members
    std::size_t in_role = 0;   // which of the actors of its role
  };

  struct Shelf {
    std::vector<Block> of;  // [actor of the role]
    int kept = 0;
  };

  static std::size_t index(Actor actor) { return static_cast<std::size_t>(actor); }
  const std::string& name(int variable) const { return program_.variables[static_cast<std::size_t>(variable)]; }
  [[noreturn]] void refuse(const TaskPlace& place, const std::string& what) const {
    refuse_program(program_, fmt::format("{} {}", describe(program_, place), what));
  }
  const std::vector<Actor>& group_of(const TaskPlace& place, Actor actor) const {
    const int group = seats_[index(actor)].group;
    if (group < 0) refuse(place, fmt::format("touches a variable of a ring of which rank {} is no member", actor));
    return program_.groups[static_cast<std::size_t>(ring_.groups)][static_cast<std::size_t>(group)];
  }

  void begin(const TaskPlace& place, const Block& own, Actor actor) {
    Pass& pass = passes_[index(actor)];
    if (pass.is_open)
      refuse(place,
             fmt::format("begins a pass around the ring before rank {} has read the result of the last one", actor));
    if (pass.has_gradient_out)
      refuse(place, fmt::format("begins a pass around the ring before rank {} has read the gradient of its keys and "
                                "values of the last one",
                                actor));
    pass.own = own;
    pass.part = splitmix(++n_parts_);
    pass.met.assign(group_of(place, actor).size(), 0);
    pass.is_open = true;
  }

  void touch_block(const TaskPlace& place, std::int64_t number, const Program::Touch& touch, std::size_t d,
                   Actor actor) {
    Block& block = blocks_[d][index(actor)];
    switch (touch.as) {
      case As::make:
        if (d != 0) refuse(place, fmt::format("makes {}, which only a hop can bring", name(touch.variable)));
        block = {actor, number};
        return begin(place, block, actor);
      case As::keep:
        expect_current(place, touch.variable, block, actor);
        return shelve(place, touch.to, block, actor);
      case As::take:
        block = taken(place, touch, actor);
        return begin(place, block, actor);
      case As::read:
        return meet(place, touch.variable, block, actor);
      case As::read_whole:
        return end(place, actor);
      default:
        refuse(place, fmt::format("writes {}, which is only made, kept, taken and read", name(touch.variable)));
    }
  }

  void expect_current(const TaskPlace& place, int variable, const Block& block, Actor actor) const {
    if (block.pass != passes_[index(actor)].own.pass || block.pass == 0)
      refuse(place, fmt::format("reads {}, which have not come to rank {} in this pass", name(variable), actor));
  }
  void expect_current(const Program::Call& call, std::size_t d) const {
    for (int i = 0; i < call.schedule.schedule().actors; ++i) {
      const Actor actor = call.member(i);
      if (blocks_[d][index(actor)].pass != passes_[index(actor)].own.pass || blocks_[d][index(actor)].pass == 0)
        refuse_program(program_, fmt::format("{}: rank {} sends {}, which have not come to it in this pass", call.name,
                                             actor, name(ring_.blocks[d])));
    }
  }

  void meet(const TaskPlace& place, int variable, const Block& block, Actor actor) {
    expect_current(place, variable, block, actor);
    group_of(place, actor);  // refuses a rank that is in none
    const Seat& owner = seats_[index(block.owner)];
    if (owner.group != seats_[index(actor)].group)
      refuse(place, fmt::format("lets queries of rank {} meet keys and values of rank {}, which is not in its group",
                                actor, block.owner));
    if (++passes_[index(actor)].met[owner.in_group] > 1)
      refuse(place,
             fmt::format("lets queries of rank {} meet keys and values of rank {} a second time", actor, block.owner));
  }

  void end(const TaskPlace& place, Actor actor) {
    Pass& pass = passes_[index(actor)];
    const std::vector<Actor>& group = group_of(place, actor);
    if (!pass.is_open) refuse(place, fmt::format("reads a result of a ring of which rank {} has begun no pass", actor));
    for (std::size_t k = 0; k < group.size(); ++k)
      if (pass.met[k] == 0)
        refuse(place, fmt::format("reads a result of queries of rank {} that have not met keys and values of rank {}",
                                  actor, group[k]));
    pass.is_open = false;
  }

  void shelve(const TaskPlace& place, int number, const Block& block, Actor actor) {
    Shelf& shelf = shelves_[{place.role, number}];
    shelf.of.resize(of_role_[static_cast<std::size_t>(place.role)]);
    Block& its = shelf.of[seats_[index(actor)].in_role];
    if (its.pass != 0) refuse(place, fmt::format("keeps a second block on shelf {} of rank {}", number, actor));
    its = block;
    ++shelf.kept;
  }
  Block taken(const TaskPlace& place, const Program::Touch& touch, Actor actor) {
    const auto at = shelves_.find({place.role, touch.to});
    if (at == shelves_.end() || at->second.of[seats_[index(actor)].in_role].pass == 0)
      refuse(place, fmt::format("takes {} from shelf {} of rank {}, on which nothing is kept", name(touch.variable),
                                touch.to, actor));
    const Block block = std::exchange(at->second.of[seats_[index(actor)].in_role], {});
    if (--at->second.kept == 0) shelves_.erase(at);
    return block;
  }

  void touch_gradient(const TaskPlace& place, const Program::Touch& touch, std::size_t d, Actor actor) {
    Gradient& gradient = gradients_[d][index(actor)];
    const Pass& pass = passes_[index(actor)];
    switch (touch.as) {
      case As::make:
      case As::add: {
        const Block& met = blocks_[d][index(actor)];
        expect_current(place, ring_.blocks[d], met, actor);
        if (touch.as == As::make) {
          gradient = {met, 0};
          passes_[index(met.owner)].has_gradient_out = true;
        } else if (gradient.of != met)
          refuse(place, fmt::format("adds the gradient of keys and values of rank {} to {}, in which rank {} has {}",
                                    met.owner, name(touch.variable), actor, text_of(gradient.of, pass)));
        gradient.sum += pass.part;
        return;
      }
      case As::read_whole:
        if (d != 0 || gradient.of.owner != actor || gradient.of.pass != pass.own.pass)
          refuse(place,
                 fmt::format("reads {} at rank {}, found {}", name(touch.variable), actor, text_of(gradient.of, pass)));
        expect_whole(place, gradient, actor);
        passes_[index(actor)].has_gradient_out = false;
        return;
      default:
        refuse(place, fmt::format("touches {}, which is only made, added to and read whole", name(touch.variable)));
    }
  }

  static std::string text_of(const Block& block, const Pass& pass) {
    if (block.pass == 0) return "none";
    return fmt::format("that of rank {}'s{}", block.owner, block.pass == pass.own.pass ? "" : " of an earlier pass");
  }

  void expect_whole(const TaskPlace& place, const Gradient& gradient, Actor actor) const {
    const std::vector<Actor>& group = group_of(place, actor);
    std::uint64_t sum = 0;
    for (const Actor member : group) sum += passes_[index(member)].part;
    if (gradient.sum == sum) return;
    std::string found = "something else";
    for (const Actor member : group) {
      const std::uint64_t part = passes_[index(member)].part;
      if (gradient.sum == sum - part) found = fmt::format("all but the part of rank {}", member);
      if (gradient.sum == sum + part) found = fmt::format("the part of rank {} twice", member);
    }
    refuse(place, fmt::format("reads the gradient of rank {}'s keys and values, expected one part of each of {} ranks, "
                              "found {}",
                              actor, group.size(), found));
  }

  template <class Item>
  void shift(const Program::Call& call, const std::vector<Item>& from, std::vector<Item>& to) const {
    const int actors = call.schedule.schedule().actors, each = actors / call.schedule.schedule().groups;
    std::vector<Item> sent;  // `from` may be `to`
    for (int i = 0; i < actors; ++i) sent.push_back(from[index(call.member(i))]);
    for (int i = 0; i < actors; ++i) {
      const int first = i / each * each;
      to[index(call.member(first + (i - first + 1) % each))] = sent[static_cast<std::size_t>(i)];
    }
  }

  const Program& program_;
  const Program::Ring& ring_;
  std::vector<Seat> seats_;                       // [actor]
  std::vector<std::size_t> of_role_;              // [role] how many actors
  std::vector<std::vector<Block>> blocks_;        // [places before][actor]
  std::vector<std::vector<Gradient>> gradients_;  // likewise
  std::vector<Pass> passes_;                      // [actor] the last one that it has begun
  std::map<std::pair<int, int>, Shelf> shelves_;  // by role and number
  std::uint64_t n_parts_ = 0;
};

}  // namespace

void check_rings(const Program& program, const Order& order, WatchedWork* work) {
  if (program.rings.empty()) return;
  std::vector<RingState> rings;
  for (const Program::Ring& ring : program.rings) rings.emplace_back(program, ring);
  const std::vector<RingPlace> place_of = ring_places(program);
  const std::vector<std::vector<Actor>> actors_of = actors_of_roles(program);
  std::int64_t number = 0;
  for (int iteration = 0; iteration < 2; ++iteration) {
    order.each_entry([&](std::span<const TaskPlace> entry) {
      ++number;
      for (const TaskPlace& place : entry)
        for (const Program::Touch& touch : at(program, place).touches) {
          const RingPlace& its = place_of[static_cast<std::size_t>(touch.variable)];
          if (its.ring < 0) continue;
          for (const Actor actor : actors_of[static_cast<std::size_t>(place.role)]) {
            done(work);
            rings[static_cast<std::size_t>(its.ring)].touch(place, number, touch, its, actor);
          }
        }
      if (entry.empty() || at(program, entry.front()).call < 0) return;
      const Program::Call& call = program.calls[static_cast<std::size_t>(at(program, entry.front()).call)];
      for (std::size_t i = 0; i < call.variables.size(); ++i) {
        const RingPlace& from = place_of[static_cast<std::size_t>(call.variables[i])];
        if (from.ring < 0) continue;
        done(work, call.schedule.schedule().actors);
        rings[static_cast<std::size_t>(from.ring)].shift(call, from, place_of[static_cast<std::size_t>(call.into[i])]);
      }
    });
    for (const RingState& ring : rings) ring.end_iteration();
  }
}

}  // namespace ringsim::program_detail
