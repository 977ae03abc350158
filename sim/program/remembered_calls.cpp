#include "sim/program/remembered_calls.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/program/call_kinds.hpp"
#include "sim/program/program_stand_ins.hpp"

namespace ringsim {

namespace {

/// An early helper is taken to arrive so long before the first rank.
constexpr Picoseconds before_ranks{1};

/// True if some call repeats another, or itself in another iteration.
bool has_repeated(const Program& program) {
  if (program.calls.empty()) return false;
  if (program.iterations > 1) return true;
  const std::vector<int> kind_of = kinds_of_calls(program);
  std::set<std::tuple<int, int, Stream>> kinds;  // by plan and stream: those may take one course
  for (const Program::Role& role : program.roles)
    for (std::size_t s = 0; s < role.streams.size(); ++s)
      for (const Program::Task& task : role.streams[s]) {
        if (task.call < 0) continue;
        const auto call = static_cast<std::size_t>(task.call);
        kinds.emplace(kind_of[call], program.calls[call].plan, static_cast<Stream>(s));
      }
  return kinds.size() < program.calls.size();
}

/// Chosen. A step's first calls are rarely alike: remembering is given up only after so many courses, if more than half
/// of the calls needed one of their own, and those moved more than an eighth of all messages.
constexpr std::int64_t first_courses = 32;
/// Chosen. All but the last are void. In a deep pipeline one that is simulated shifts what follows, of which some meets
/// in the next run: 17 runs with 16 stages; calls that still meet then are likely to do so in further ones.
constexpr int most_runs = 40;
/// Chosen: then those runs have simulated as much as two runs of all.
constexpr std::int64_t most_spent = 2;
/// Chosen: of all messages this part may be simulated in each further run because calls of a kind have met. Without it
/// a hop of a pipeline that is simulated delays the next ones, a few of which meet in the next run: with 4 stages of 10
/// chunks each of 40 void runs added 7 hops.
constexpr std::int64_t likely_share = 32;

}  // namespace

std::string why_not_remembered(const RunOptions& options) {
  if (!options.fold) return "all is to be simulated";
  if (moves_packets(options.model)) return "packets queue";
  if (options.routing.policy == Routing::Policy::flow_spray || options.routing.policy == Routing::Policy::packet_spray)
    return "messages of a connection take several ways";
  if (!options.disturbance.empty()) return "something disturbs the run";
  if (!options.jobs.empty()) return "several jobs share the run";
  if (options.enough) return "the run ends by count";
  if (options.courses != nullptr || options.on_end) return "something else is known of it";
  if (options.record_spans || options.on_traffic || (options.on_message && !options.messages_may_fold))
    return "its messages are asked for";
  return "";
}

RememberedCalls::RememberedCalls(const Topology& topology, const RunOptions& options, const LoweredProgram& whole)
    : topology_(topology),
      alone_{.model = options.model,
             .packet = options.packet,
             .plans = options.plans,
             .plan_of_channel = options.plan_of_channel,
             .routing = options.routing,
             .placement = options.placement,
             .stop = options.stop},
      runs_ahead_(options.plans.front().protocol->done_when_left),
      has_posts_(options.may_post(topology)),
      records_path_(options.record_path),
      stand_ins_(records_path_ || options.longer ? nullptr : find_stand_ins(topology, options, whole)),
      alike_(stand_ins_ ? AlikeActors(stand_ins_->actors) : AlikeActors(whole.program())),
      meetings_(
          topology, [this](int call) { meets(call); }, [this] { return horizon(); }),
      is_known_(whole.program().calls.size(), true) {
  const Program& program = whole.program();
  alone_.stand_ins = stand_ins_.get();
  ensure(why_not_remembered(options).empty(), "calls of the run may be remembered");
  ensure(options.placement.size() == static_cast<std::size_t>(program.actors), "every actor is said to have a place");
  if (options.longer) alike_.stand_alone();
  std::map<std::vector<Actor>, int> known;
  kind_of_ = kinds_of_calls(program);
  for (std::size_t c = 0; c < program.calls.size(); ++c) {
    const auto kind = static_cast<std::size_t>(kind_of_[c]);
    if (kind < c) {
      members_id_.push_back(members_id_[kind]);
      continue;
    }
    const auto [found, is_new] = known.try_emplace(program.calls[c].all_members(), static_cast<int>(known.size()));
    members_id_.push_back(found->second);
    if (!is_new) continue;
    Members& members = members_.emplace_back();
    members.actors = found->first;
    members.numbers.assign(static_cast<std::size_t>(program.actors), -1);
    for (std::size_t i = 0; i < members.actors.size(); ++i)
      members.numbers[static_cast<std::size_t>(members.actors[i])] = static_cast<int>(i);
  }
}

bool RememberedCalls::simulates_some() const {
  return std::find(is_known_.begin(), is_known_.end(), false) != is_known_.end();
}

// Courses that are known stay known: members that are alike now were so before.
void RememberedCalls::group_members() {
  for (Members& members : members_) {
    members.class_of.clear();
    members.stand_ins.clear();
    std::map<Actor, int> known;
    for (const Actor actor : members.actors) {
      const Actor stand_in = alike_.stand_in(actor);
      const auto [found, is_new] = known.try_emplace(stand_in, static_cast<int>(known.size()));
      if (is_new) members.stand_ins.push_back(stand_in);
      members.class_of.push_back(found->second);
    }
  }
  auto before = std::exchange(courses_, {});
  for (auto& [key, course] : before) {
    course->n_taken = 0;
    course->is_alike = false;
    const Members& its = members_of(course->call);
    std::vector<Picoseconds> arrivals(its.stand_ins.size());
    for (std::size_t i = 0; i < its.actors.size(); ++i)
      arrivals[static_cast<std::size_t>(its.class_of[i])] = course->arrivals[i];
    courses_[{course->uses.kind, std::move(arrivals)}] = std::move(course);
  }
}

void RememberedCalls::begin(const LoweredProgram& lowered) {
  const Program& program = lowered.program();
  const auto n_actors = static_cast<std::size_t>(program.actors);
  lowered_ = &lowered;
  in_run_ = is_known_;
  group_members();
  n_met_ = n_taken_ = n_alone_ = transfers_alone_ = 0;
  meetings_.begin(n_actors, lowered.has_stand_ins() ? AlikeActors::rounding : Picoseconds{0});
  now_ = SimTime::min();
  simulated_open_.clear();
  transfers_of_.assign(program.calls.size(), 0);
  taken_.clear();
  open_.assign(program.calls.size(), {});
  begun_.clear();
  sent_by_.assign(n_actors, {});
  received_by_.assign(n_actors, {});
}

std::int64_t RememberedCalls::transfers_of_known() const {
  std::int64_t sum = 0;
  for (std::size_t call = 0; call < is_known_.size(); ++call)
    if (is_known_[call]) sum += transfers_of_[call];
  return sum;
}

std::int64_t RememberedCalls::simulated_of(std::int64_t transfers) const {
  if (!stand_ins_) return transfers;
  const auto n_actors = static_cast<std::int64_t>(stand_ins_->actors.size());
  return (transfers / n_actors + 1) * alike_.n_classes();
}

void RememberedCalls::simulate_all() {
  is_known_.assign(is_known_.size(), false);
  courses_.clear();
}

void RememberedCalls::expect_more_meetings() {
  const std::vector<Program::Call>& calls = lowered_->program().calls;
  struct Rest {
    std::vector<std::size_t> known;
    std::int64_t transfers = 0;
    bool has_met = false;
  };
  std::map<const Schedule*, Rest> rests;
  std::vector<const Schedule*> order;  // of their first calls, as addresses differ from one process to the next
  std::int64_t all = 0;
  for (std::size_t c = 0; c < calls.size(); ++c) {
    const auto [found, is_new] = rests.try_emplace(&calls[c].schedule.schedule());
    if (is_new) order.push_back(found->first);
    Rest& rest = found->second;
    rest.has_met = rest.has_met || !is_known_[c];
    all += transfers_of_[c];
    if (!is_known_[c]) continue;
    rest.known.push_back(c);
    rest.transfers += transfers_of_[c];
  }
  std::stable_sort(order.begin(), order.end(), [&](const Schedule* one, const Schedule* other) {
    return rests.at(one).transfers < rests.at(other).transfers;
  });
  std::int64_t likely = 0;
  for (const Schedule* schedule : order) {
    const Rest& rest = rests.at(schedule);
    if (!rest.has_met) continue;
    likely += rest.transfers;
    if (likely > all / likely_share) break;
    for (const std::size_t c : rest.known) is_known_[c] = false;
  }
}

void RememberedCalls::meets(int call) {
  const auto c = static_cast<std::size_t>(call);
  n_met_ += is_known_[c] ? 1 : 0;
  is_known_[c] = false;
}

// No course that is taken later uses anything before, and nothing of a simulated call that crossed a link before is yet
// to be told.
SimTime RememberedCalls::horizon() const {
  SimTime first = now_;
  for (const int call : begun_) first = std::min(first, open_[static_cast<std::size_t>(call)].first);
  for (const auto& [call, open] : simulated_open_) first = std::min(first, open.first);
  return first;
}

// Splits those whose ends, [number of a member], differ.
void RememberedCalls::expect_alike(int call, const std::vector<SimTime>& ends) {
  const Members& members = members_of(call);
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const Actor stand_in = members.stand_ins[static_cast<std::size_t>(members.class_of[i])];
    if (AlikeActors::are_one(ends[i], ends[static_cast<std::size_t>(number_of(call, stand_in))])) continue;
    alike_.split(members.actors, ends);
    throw Split{};
  }
}

const std::vector<Courses::End>& RememberedCalls::begins(Actor actor, Lane lane, int step, SimTime now) {
  ends_.clear();
  now_ = now;
  const StepPlace place = lowered_->place_of(actor, lane, step);
  const int call = lowered_->task_of(actor, place).call;
  const Members& members = members_of(call);
  Open& open = open_[static_cast<std::size_t>(call)];
  if (open.n_arrived == 0) {
    open.arrivals.resize(members.stand_ins.size());
    open.first = SimTime::max();
    begun_.push_back(call);
  }
  const auto number = static_cast<std::size_t>(number_of(call, actor));
  open.arrivals[static_cast<std::size_t>(members.class_of[number])] = now;
  if (actor < lowered_->program().ranks) open.first = std::min(open.first, now);
  if (static_cast<std::size_t>(++open.n_arrived) < members.stand_ins.size()) return ends_;

  open.n_arrived = 0;
  std::vector<Picoseconds> arrivals;
  SimTime base = open.first;
  for (const SimTime arrival : open.arrivals)
    if (arrival < open.first) base = open.first - before_ranks;
  for (const SimTime arrival : open.arrivals) arrivals.push_back(std::max(arrival, base) - base);
  Course& course = course_of(call, place.stream, arrivals, open.first - base);
  if (!course.is_alike && lowered_->has_stand_ins()) {
    std::vector<SimTime> ends;
    for (const Course::Member& each : course.members) ends.push_back(base + each.end);
    expect_alike(call, ends);
    course.is_alike = true;
  }
  if (records_path_) taken_[{call, place.iteration}] = {.course = &course, .base = base};
  const Lane first_lane = lowered_->lanes_of(place.stream).first;
  if (!course.is_usable) meets(call);
  for (const Actor member : members.stand_ins) {
    const Course::Member& its = course.members[static_cast<std::size_t>(number_of(call, member))];
    SimTime end = base + its.end;
    if (end < now) {  // it went on before the last had arrived, so this run is void
      meets(call);
      end = now;
    }
    ends_.push_back(
        {.actor = member, .lane = first_lane, .when = end, .since = lowered_->stand_in(its.since), .way = &its.way});
  }
  ++course.n_taken;
  transfers_of_[static_cast<std::size_t>(call)] += course.transfers;
  meetings_.known(course.uses, call, base);
  std::erase(begun_, call);
  return ends_;
}

int RememberedCalls::kind_of(int call, Stream stream) {
  const auto c = static_cast<std::size_t>(call);
  const std::pair kind{kind_of_[c], lowered_->first_channel(stream, lowered_->program().calls[c].plan)};
  return kinds_.try_emplace(kind, static_cast<int>(kinds_.size())).first->second;
}

RememberedCalls::Course& RememberedCalls::course_of(int call, Stream stream, const std::vector<Picoseconds>& arrivals,
                                                    Picoseconds first_rank) {
  const int kind = kind_of(call, stream);
  std::unique_ptr<Course>& known = courses_[{kind, arrivals}];
  ++n_taken_;
  if (known == nullptr) {
    std::vector<Picoseconds> of_all;
    for (const int its : members_of(call).class_of) of_all.push_back(arrivals[static_cast<std::size_t>(its)]);
    known = std::make_unique<Course>(simulated_alone(call, stream, std::move(of_all), first_rank));
    known->uses.kind = kind;
    ++n_alone_;
    transfers_alone_ += known->transfers;
    const std::int64_t all = lowered_->schedule().proof().operations / 2;
    if (n_alone_ > first_courses && n_alone_ > n_taken_ / 2 && transfers_alone_ > all / 8) throw NotWorthIt{};
  }
  return *known;
}

RememberedCalls::Course RememberedCalls::simulated_alone(int call, Stream stream, std::vector<Picoseconds> arrivals,
                                                         Picoseconds first_rank) {
  Course course{.call = call, .arrivals = std::move(arrivals)};
  CallUses& uses = course.uses;
  uses.stream = stream;
  const Members& members = members_of(call);
  course.members.resize(members.actors.size());
  const auto by_number = [&](Actor actor) -> Course::Member& {
    return course.members[static_cast<std::size_t>(number_of(call, actor))];
  };
  const SimTime never = SimTime::max(), ranks_begin{first_rank};
  std::vector<std::pair<SimTime, SimTime>> used(topology_.n_resources(), {never, SimTime::min()});
  FirstSends sends;
  RunOptions options = alone_;
  options.fold = false;
  const ChannelRenaming* renaming = renaming_of(call, stream, course.arrivals);
  if (renaming != nullptr) options.stand_ins = renaming->links.get();
  options.on_traffic = [&](const Traffic& traffic) {
    auto& [first, last] = used[topology_.link(traffic.link).resource.value];
    first = std::min(first, traffic.begin);
    last = std::max(last, traffic.end);
  };
  options.on_message = [&](const Span& message) {
    Course::Member &from = by_number(message.from), &to = by_number(simulated(message.to));
    from.sent += message.bytes;
    to.received += message.bytes;
    from.posts =
        from.posts || (has_posts_ && topology_.joins_hosts(alone_.placement[static_cast<std::size_t>(message.from)],
                                                           alone_.placement[static_cast<std::size_t>(message.to)]));
    if (message.start < ranks_begin) course.is_usable = false;
    const auto [found, is_new] = sends.try_emplace({message.from, message.to}, message.start);
    found->second = std::min(found->second, message.start);
  };
  options.on_end = [&](Actor actor, const Trail& trail, Actor origin) {
    Course::Member& its = by_number(actor);
    const Picoseconds began = course.arrivals[static_cast<std::size_t>(number_of(call, origin))];
    its.end = trail.at.time_since_epoch();
    its.since = origin;
    its.way = trail;
    its.way.at -= began;
    its.way.compute -= began;
    if (its.way.compute.count() < 0 || SimTime{began} < ranks_begin) course.is_usable = false;
  };
  const Timeline alone =
      run(topology_,
          lowered_->alone(call, stream, course.arrivals, renaming != nullptr ? renaming->lanes : std::vector<bool>{}),
          options);
  if (stand_ins_) take_from_stand_ins(members, course);
  if (renaming != nullptr) {
    take_from_names(*renaming, course);
    sends = with_images(sends, *renaming, members);
    for (std::uint32_t l = 0; l < topology_.n_links(); ++l)
      used[topology_.link({l}).resource.value] = used[topology_.link(renaming->links->links[l]).resource.value];
  }
  course.transfers = alone.transfers;
  course.events = alone.events;
  course.bytes = alone.bytes_sent;
  course.has_choice = alone.has_choice;
  for (std::size_t r = 0; r < used.size(); ++r) {
    if (used[r].first == never) continue;
    uses.links.push_back({.of = static_cast<std::int64_t>(r),
                          .first = used[r].first.time_since_epoch(),
                          .last = used[r].second.time_since_epoch()});
  }
  if (runs_ahead_) {
    const int plan = lowered_->program().calls[static_cast<std::size_t>(call)].plan;
    const std::int64_t first_channel = lowered_->first_channel(stream, plan);
    for (const auto& [connection, first] : sends) {
      const auto& [from, to] = connection;
      const Picoseconds since = first.time_since_epoch(), end = by_number(simulated(to)).end;
      uses.connections.push_back(
          {.of = static_cast<std::int64_t>(from) << 40 | static_cast<std::int64_t>(to) << 16 | first_channel,
           .first = since,
           .last = end});
      uses.receivers.emplace_back(simulated(to), since);
      if (uses.senders.empty() || uses.senders.back().of != from)
        uses.senders.push_back({.of = from, .first = since, .last = end});
      uses.senders.back().last = std::max(uses.senders.back().last, end);
    }
  }
  std::vector<Actor> in_order = members.actors;
  std::sort(in_order.begin(), in_order.end());
  for (const Actor actor : in_order)
    if (by_number(actor).posts)
      uses.posters.push_back({.of = actor,
                              .first = course.arrivals[static_cast<std::size_t>(number_of(call, actor))],
                              .last = by_number(actor).end});
  uses.set_bounds();
  for (std::uint32_t l = 0; l < alone.link_bytes.size(); ++l)
    if (alone.link_bytes[l].count > 0) course.link_bytes.emplace_back(LinkId{l}, alone.link_bytes[l]);
  for (std::uint32_t l = 0; l < alone.link_rests.size(); ++l)
    if (alone.link_rests[l] != 0) course.link_rests.emplace_back(LinkId{l}, alone.link_rests[l]);
  return course;
}

void RememberedCalls::take_from_stand_ins(const Members& members, Course& course) const {
  for (std::size_t i = 0; i < members.actors.size(); ++i) {
    const Actor stand_in = simulated(members.actors[i]);
    if (stand_in != members.actors[i])
      course.members[i] = course.members[static_cast<std::size_t>(number_of(course.call, stand_in))];
  }
}

/// Chosen: messages of a call whose renamings are looked for.
constexpr std::int64_t least_renamed = std::int64_t{1} << 13;

// None if messages of the call have more than times to tell: a recorded path names ranks.
const ChannelRenaming* RememberedCalls::renaming_of(int call, Stream stream, const std::vector<Picoseconds>& arrivals) {
  if (stand_ins_ || records_path_ || has_posts_) return nullptr;
  const Program::Call& called = lowered_->program().calls[static_cast<std::size_t>(call)];
  if (!may_pay_to_rename(called.schedule, least_renamed)) return nullptr;
  const auto [found, is_new] = renamings_.try_emplace(kind_of(call, stream));
  if (is_new) {
    std::string why_not;
    found->second = find_renaming(topology_, called.schedule, alone_, members_of(call).actors,
                                  lowered_->first_channel(stream, called.plan), why_not);
  }
  if (!found->second) return nullptr;
  for (const std::vector<Actor>& names : found->second->names)
    for (std::size_t number = 0; number < names.size(); ++number)
      if (arrivals[number] != arrivals[static_cast<std::size_t>(names[number])]) return nullptr;
  return &*found->second;
}

// A member ends its channels when the members do whose names by the renamings it is, and sends and receives what they
// do together.
void RememberedCalls::take_from_names(const ChannelRenaming& renaming, Course& course) const {
  const std::vector<Actor>& actors = members_of(course.call).actors;
  const std::vector<Course::Member> simulated = course.members;
  for (Course::Member& each : course.members) each = {};
  for (std::size_t by = 0; by < renaming.size(); ++by) {
    const auto name = [&](int number) {
      return static_cast<std::size_t>(renaming.names[by][static_cast<std::size_t>(number)]);
    };
    for (std::size_t number = 0; number < simulated.size(); ++number) {
      const Course::Member& its = simulated[number];
      Course::Member& image = course.members[name(static_cast<int>(number))];
      image.sent += its.sent;
      image.received += its.received;
      if (by > 0 && its.end <= image.end) continue;
      image.end = its.end;
      image.way = its.way;
      image.since = actors[name(number_of(course.call, its.since))];
    }
  }
}

RememberedCalls::FirstSends RememberedCalls::with_images(const FirstSends& sends, const ChannelRenaming& renaming,
                                                         const Members& members) {
  FirstSends all;
  for (const auto& [connection, first] : sends)
    for (const std::vector<Actor>& names : renaming.names) {
      const auto name = [&](Actor actor) {
        const auto number = static_cast<std::size_t>(members.numbers[static_cast<std::size_t>(actor)]);
        return members.actors[static_cast<std::size_t>(names[number])];
      };
      const auto [known, is_new] = all.try_emplace({name(connection.first), name(connection.second)}, first);
      known->second = std::min(known->second, first);
    }
  return all;
}

void RememberedCalls::on_message(const Span& message) {
  sent_by_[static_cast<std::size_t>(message.from)] += message.bytes;
  received_by_[static_cast<std::size_t>(simulated(message.to))] += message.bytes;
}

void RememberedCalls::on_compute(const ComputeEvent& event) {
  if (event.begins) return;
  const StepPlace place = lowered_->place_of(event.actor, event.lane, event.step);
  const int call = lowered_->task_of(event.actor, place).call;
  if (call < 0 || in_run_[static_cast<std::size_t>(call)] || (!place.first && !place.last)) return;
  const std::size_t n_members = members_of(call).actors.size();
  OpenSimulated& open = simulated_open_[{call, place.iteration}];
  if (place.first) {
    if (open.ends.empty()) {
      open.first = event.when;
      open.ends.resize(n_members);
    }
    meetings_.launched(place.stream, event.actor, event.when);
  }
  if (!place.last) return;
  meetings_.ended(place.stream, event.actor, event.when);
  open.ends[static_cast<std::size_t>(number_of(call, event.actor))] = event.when;
  const std::size_t n_simulated = stand_ins_ ? members_of(call).stand_ins.size() : n_members;
  if (static_cast<std::size_t>(++open.n_ended) < n_simulated) return;
  const std::vector<SimTime> ends = std::move(open.ends);
  simulated_open_.erase({call, place.iteration});
  if (lowered_->has_stand_ins() && !stand_ins_) expect_alike(call, ends);
}

void RememberedCalls::add_to(Timeline& timeline) {
  ensure(n_met_ == 0, "no known call met another");
  if (stand_ins_)
    for (std::size_t actor = 0; actor < sent_by_.size(); ++actor) {
      const auto stand_in = static_cast<std::size_t>(stand_ins_->actors[actor]);
      sent_by_[actor] = sent_by_[stand_in];
      received_by_[actor] = received_by_[stand_in];
    }
  std::vector<Bytes> link_bytes(topology_.n_links());
  std::vector<double> link_rests(topology_.n_links());
  for (const auto& [key, course] : courses_) {
    const std::int64_t n = course->n_taken;
    if (n == 0) continue;
    const std::vector<Actor>& actors = members_of(course->call).actors;
    for (std::size_t i = 0; i < actors.size(); ++i) {
      sent_by_[static_cast<std::size_t>(actors[i])] += course->members[i].sent * n;
      received_by_[static_cast<std::size_t>(actors[i])] += course->members[i].received * n;
    }
    for (const auto& [link, bytes] : course->link_bytes) link_bytes[link.value] += bytes * n;
    for (const auto& [link, rest] : course->link_rests) link_rests[link.value] += rest * static_cast<double>(n);
    timeline.transfers += course->transfers * n;
    timeline.events += course->events * n;
    timeline.bytes_sent += course->bytes * n;
    timeline.has_choice = timeline.has_choice || course->has_choice;
  }
  timeline.fingerprint.reset();
  for (std::size_t l = 0; l < link_bytes.size(); ++l) {
    const double rest = link_rests[l] + (timeline.link_rests.empty() ? 0 : timeline.link_rests[l]);
    timeline.link_bytes[l] += link_bytes[l] + Bytes{std::llround(rest)};
  }
  for (std::size_t actor = 0; actor < timeline.actor_finish.size(); ++actor)
    timeline.actor_finish[actor] =
        timeline.actor_finish[static_cast<std::size_t>(lowered_->stand_in(static_cast<Actor>(actor)))];
}

const RememberedCalls::Taken& RememberedCalls::taken_by(const PathElement& element) const {
  const StepPlace place = lowered_->place_of(element.from, element.lane, element.step);
  return taken_.at({lowered_->task_of(element.from, place).call, place.iteration});
}

RememberedCalls::Paths RememberedCalls::paths_within(const std::vector<PathElement>& path) const {
  Paths paths;
  for (const PathElement& element : path)
    if (element.cause == PathCause::known) paths[taken_by(element).course][element.from];
  for (auto& [course, by_actor] : paths) {
    RunOptions options = alone_;
    options.fold = false;
    options.record_path = true;
    for (const auto& [actor, elements] : by_actor) options.paths_of.push_back(actor);
    Timeline alone = run(topology_, lowered_->alone(course->call, course->uses.stream, course->arrivals), options);
    auto next = alone.paths_of.begin();
    for (auto& [actor, elements] : by_actor) elements = std::move(*next++);
  }
  return paths;
}

std::vector<PathElement> RememberedCalls::expanded(const std::vector<PathElement>& path,
                                                   const LoweredProgram& whole) const {
  const Program& program = whole.program();
  std::map<std::pair<int, int>, int> tasks;  // by role and call
  for (std::size_t role = 0; role < program.roles.size(); ++role)
    for (const std::vector<Program::Task>& stream : program.roles[role].streams)
      for (std::size_t t = 0; t < stream.size(); ++t)
        if (stream[t].call >= 0) tasks[{static_cast<int>(role), stream[t].call}] = static_cast<int>(t);
  const Paths paths = paths_within(path);
  std::vector<PathElement> found;
  for (const PathElement& element : path) {
    const StepPlace place = lowered_->place_of(element.by, element.lane, element.step);
    const Lane first = whole.lanes_of(place.stream).first;
    if (element.cause != PathCause::known) {
      PathElement one = element;
      one.lane = element.lane - lowered_->lanes_of(place.stream).first + first;
      one.step = element.step - lowered_->first_step(element.by, element.lane, place.iteration, place.task) +
                 whole.first_step(element.by, one.lane, place.iteration, place.task);
      found.push_back(one);
      continue;
    }
    const int call = lowered_->task_of(element.from, place).call;
    const Taken& taken = taken_by(element);
    for (const PathElement& each : paths.at(taken.course).at(element.from)) {
      if (taken.base + each.end.time_since_epoch() <= element.begin) continue;  // until `since` has arrived
      PathElement one = each;
      one.begin = taken.base + each.begin.time_since_epoch();
      one.end = taken.base + each.end.time_since_epoch();
      one.lane = first + each.lane;
      one.step = each.step +
                 whole.first_step(each.by, one.lane, place.iteration, tasks.at({program.role_number(each.by), call}));
      found.push_back(one);
    }
  }
  SimTime now{};
  for (const PathElement& element : found) {
    ensure(element.begin == now, "the elements of the critical path follow each other");
    now = element.end;
  }
  return found;
}

RememberedCalls::Counts RememberedCalls::counts() const {
  Counts found{.simulated = static_cast<std::int64_t>(courses_.size()), .remembered = n_taken_};
  for (Actor rank = 0; rank < lowered_->program().ranks; ++rank)
    found.stand_ins += lowered_->has_stand_ins() && alike_.stand_in(rank) == rank ? 1 : 0;
  for (const bool is_known : in_run_) found.met += is_known ? 0 : 1;
  found.met *= lowered_->program().iterations;
  return found;
}

namespace {

using Begins = std::function<void(const std::shared_ptr<const LoweredProgram>&)>;

/// The run of what is not known(), and whether it counts.
Timeline run_some(const Topology& topology, const std::shared_ptr<const LoweredProgram>& lowered,
                  const RunOptions& options, RememberedCalls& calls) {
  RunOptions its = options;
  its.courses = &calls;
  its.stand_ins = calls.stand_ins();
  its.most_messages.reset();
  its.fold = false;
  if (its.stand_ins != nullptr) its.on_message = [&](const Span& message) { calls.on_message(message); };
  if (calls.simulates_some()) {
    its.on_compute = [&](const ComputeEvent& event) {
      if (options.on_compute && lowered->stand_in(event.actor) == event.actor) options.on_compute(event);
      calls.on_compute(event);
    };
    its.on_traffic = [&](const Traffic& traffic) { calls.on_traffic(traffic); };
  }
  return run(topology, lowered->schedule(), its);
}

RememberedRun finished(Timeline timeline, RememberedCalls& calls) {
  calls.add_to(timeline);
  return {.timeline = std::move(timeline),
          .sent_by = calls.sent_by(),
          .received_by = calls.received_by(),
          .calls = calls.counts()};
}

}  // namespace

std::optional<RememberedRun> run_remembering(const Topology& topology, const CheckedProgram& program, int room,
                                             const RunOptions& options, const Begins& begins) {
  const std::int64_t all = program.operations() / 2 * program.program().iterations;
  if (all < options.fold_from || !why_not_remembered(options).empty() || program.program().calls.empty())
    return std::nullopt;
  RememberedCalls calls(topology, options, LoweredProgram(program, room));
  const auto lower = [&] {
    auto lowered = std::make_shared<const LoweredProgram>(program, room, nullptr, calls.known());
    begins(lowered);
    calls.begin(*lowered);
    return lowered;
  };
  const auto expect_few = [&](std::int64_t transfers) {
    if (const std::int64_t messages = calls.simulated_of(transfers);
        messages > options.most_messages.value_or(messages))
      throw TooManyMessages{messages};
  };
  std::int64_t spent = 0;  // messages that were simulated in runs that are void
  try {
    for (int n_void = 0; has_repeated(program.program()) && n_void < most_runs && spent < most_spent * all;) {
      const auto lowered = lower();
      Timeline timeline;
      try {
        timeline = run_some(topology, lowered, options, calls);
      } catch (const RememberedCalls::Split&) {
        spent += calls.transfers_alone();
        continue;
      }
      if (!calls.have_met()) {
        RememberedRun found = finished(std::move(timeline), calls);
        if (options.record_path)
          found.timeline.path = calls.expanded(found.timeline.path, LoweredProgram(program, room));
        return found;
      }
      if (2 * calls.transfers_of_known() < all) break;
      spent += all - calls.transfers_of_known() + calls.transfers_alone();
      expect_few(all - calls.transfers_of_known());
      calls.expect_more_meetings();
      ++n_void;
    }
  } catch (const RememberedCalls::NotWorthIt&) {  // the whole run costs less
  }
  if (calls.stand_ins() == nullptr) return std::nullopt;
  expect_few(all);
  calls.simulate_all();
  const auto lowered = lower();
  return finished(run_some(topology, lowered, options, calls), calls);
}

}  // namespace ringsim
