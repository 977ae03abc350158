#include "sim/program/remembered_calls.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "sim/base/error.hpp"

namespace ringsim {

namespace {

/// An early helper is taken to arrive so long before the first rank.
constexpr Picoseconds before_ranks{1};

/// Calls that share all of this may take one course.
using Kind = std::tuple<const Schedule*, std::vector<Actor>, int, Stream>;

std::vector<Actor> members_of(const Program::Call& call) { return {call.members.begin(), call.members.end()}; }

/// True if some call repeats another, or itself in another iteration.
bool has_repeated(const Program& program) {
  if (program.calls.empty()) return false;
  if (program.iterations > 1) return true;
  std::set<Kind> kinds;
  for (const Program::Role& role : program.roles)
    for (std::size_t s = 0; s < role.streams.size(); ++s)
      for (const Program::Task& task : role.streams[s]) {
        if (task.call < 0) continue;
        const Program::Call& call = program.calls[static_cast<std::size_t>(task.call)];
        kinds.emplace(&call.schedule.schedule(), members_of(call), call.plan, static_cast<Stream>(s));
      }
  return kinds.size() < program.calls.size();
}

/// Chosen. A step's first calls are rarely alike: remembering is given up only after so many courses, if more than half
/// of the calls needed one of their own, and those moved more than an eighth of all messages.
constexpr std::int64_t first_courses = 32;
/// Chosen. All but the last are void; calls that still meet then are likely to do so in further ones.
constexpr int most_runs = 6;

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

RememberedCalls::RememberedCalls(const Topology& topology, const RunOptions& options, const Program& program)
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
      known_(program.calls.size(), true) {
  ensure(why_not_remembered(options).empty(), "calls of the run may be remembered");
  ensure(options.placement.size() == static_cast<std::size_t>(program.actors), "every actor is said to have a place");
  std::map<std::vector<Actor>, int> known;
  for (const Program::Call& call : program.calls) {
    const auto [found, is_new] = known.try_emplace(members_of(call), static_cast<int>(known.size()));
    members_id_.push_back(found->second);
    if (!is_new) continue;
    numbers_.emplace_back();
    if (call.members.empty()) continue;
    numbers_.back().assign(static_cast<std::size_t>(program.actors), -1);
    for (std::size_t i = 0; i < call.members.size(); ++i)
      numbers_.back()[static_cast<std::size_t>(call.members[i])] = static_cast<int>(i);
  }
}

void RememberedCalls::begin(const LoweredProgram& lowered) {
  const Program& program = lowered.program();
  const auto n_actors = static_cast<std::size_t>(program.actors);
  lowered_ = &lowered;
  in_run_ = known_;
  n_met_ = n_taken_ = n_alone_ = transfers_alone_ = transfers_ = events_ = 0;
  bytes_ = {};
  has_choice_ = false;
  transfers_of_.assign(program.calls.size(), 0);
  taken_.clear();
  open_.assign(program.calls.size(), {});
  begun_.clear();
  links_.assign(topology_.n_resources(), {});
  links_simulated_.assign(topology_.n_resources(), SimTime::min());
  posters_.assign(n_actors, {});
  posting_.assign(n_actors, 0);
  posted_.assign(n_actors, SimTime::min());
  connections_.clear();
  sends_.clear();
  simulated_.clear();
  sent_by_.assign(n_actors, {});
  received_by_.assign(n_actors, {});
  link_bytes_.assign(topology_.n_links(), {});
  link_rests_.assign(topology_.n_links(), 0);
}

std::int64_t RememberedCalls::transfers_of_known() const {
  std::int64_t sum = 0;
  for (std::size_t call = 0; call < known_.size(); ++call)
    if (known_[call]) sum += transfers_of_[call];
  return sum;
}

int RememberedCalls::number_of(int call, Actor actor) const {
  const std::vector<int>& numbers = numbers_[static_cast<std::size_t>(members_id_[static_cast<std::size_t>(call)])];
  return numbers.empty() ? actor : numbers[static_cast<std::size_t>(actor)];
}

Actor RememberedCalls::member(int call, int number) const {
  const Program::Members& members = lowered_->program().calls[static_cast<std::size_t>(call)].members;
  return members.empty() ? number : members[static_cast<std::size_t>(number)];
}

std::uint64_t RememberedCalls::at_stream(Stream stream, Actor actor) const {
  return static_cast<std::uint64_t>(stream) << 32 | static_cast<std::uint64_t>(actor);
}

void RememberedCalls::meets(int call) {
  const auto c = static_cast<std::size_t>(call);
  n_met_ += known_[c] ? 1 : 0;
  known_[c] = false;
}

// No course that is taken later uses anything before, and nothing of a simulated call that crossed a link before is yet
// to be told.
SimTime RememberedCalls::horizon() const {
  SimTime first = now_;
  for (const int call : begun_) first = std::min(first, open_[static_cast<std::size_t>(call)].first);
  return first;
}

// Those that meet are simulated in the next run, so the others lie after each other: only neighbors are looked at.
void RememberedCalls::use(std::vector<Interval>& known, const Interval& one) {
  const auto begins_after = [](SimTime begin, const Interval& each) { return begin < each.begin; };
  if (!known.empty() && known.size() == known.capacity())
    std::erase_if(known, [from = horizon()](const Interval& each) { return each.end <= from; });
  if (known.empty() || known.back().end <= one.begin) return known.push_back(one);  // nearly always
  const auto next = std::upper_bound(known.begin(), known.end(), one.begin, begins_after);
  if (meet_before(known, next, one.begin, one.end) || (next != known.end() && next->begin < one.end)) {
    if (next != known.end() && next->begin < one.end) meets(next->call);
    meets(one.call);
    return;
  }
  known.insert(next, one);
}

// True if one that is listed before `next` reaches into the time from `begin` to `end`.
bool RememberedCalls::meet_before(const std::vector<Interval>& known, std::vector<Interval>::const_iterator next,
                                  SimTime begin, SimTime end) {
  bool found = false;
  for (; next != known.begin() && (next - 1)->end > begin; --next)
    if ((next - 1)->begin < end) {
      meets((next - 1)->call);
      found = true;
    }
  return found;
}

const std::vector<Courses::End>& RememberedCalls::begins(Actor actor, Lane lane, int step, SimTime now) {
  ends_.clear();
  now_ = now;
  const StepPlace place = lowered_->place_of(actor, lane, step);
  const int call = lowered_->task_of(actor, place).call;
  const Schedule& called = lowered_->program().calls[static_cast<std::size_t>(call)].schedule.schedule();
  Open& open = open_[static_cast<std::size_t>(call)];
  if (open.n_arrived == 0) {
    open.arrivals.resize(static_cast<std::size_t>(called.actors));
    open.first = SimTime::max();
    begun_.push_back(call);
  }
  const int number = number_of(call, actor);
  open.arrivals[static_cast<std::size_t>(number)] = now;
  if (actor < lowered_->program().ranks) open.first = std::min(open.first, now);
  if (++open.n_arrived < called.actors) return ends_;

  open.n_arrived = 0;
  std::vector<Picoseconds> arrivals;
  SimTime base = open.first;
  for (const SimTime arrival : open.arrivals)
    if (arrival < open.first) base = open.first - before_ranks;
  for (const SimTime arrival : open.arrivals) arrivals.push_back(std::max(arrival, base) - base);
  const Course& course = course_of(call, place.stream, arrivals, open.first - base);
  if (records_path_) taken_[{call, place.iteration}] = {.course = &course, .base = base};
  const Lane first_lane = lowered_->lanes_of(place.stream).first;
  if (!course.is_usable) meets(call);
  for (int i = 0; i < called.actors; ++i) {
    const Course::Member& its = course.members[static_cast<std::size_t>(i)];
    SimTime end = base + its.end;
    if (end < now) {  // it went on before the last had arrived, so this run is void
      meets(call);
      end = now;
    }
    ends_.push_back({.actor = member(call, i), .lane = first_lane, .when = end, .since = its.since, .way = &its.way});
  }
  take(course, call, place.stream, base, open);
  std::erase(begun_, call);
  return ends_;
}

const RememberedCalls::Course& RememberedCalls::course_of(int call, Stream stream,
                                                          const std::vector<Picoseconds>& arrivals,
                                                          Picoseconds first_rank) {
  const Program::Call& it = lowered_->program().calls[static_cast<std::size_t>(call)];
  std::vector<std::int64_t> key{reinterpret_cast<std::int64_t>(&it.schedule.schedule()),
                                members_id_[static_cast<std::size_t>(call)], lowered_->first_channel(stream, it.plan)};
  key.reserve(key.size() + arrivals.size());
  for (const Picoseconds arrival : arrivals) key.push_back(arrival.count());
  std::unique_ptr<const Course>& known = courses_[std::move(key)];
  ++n_taken_;
  if (known == nullptr) {
    known = std::make_unique<const Course>(simulated_alone(call, stream, arrivals, first_rank));
    ++n_alone_;
    transfers_alone_ += known->transfers;
    const std::int64_t all = lowered_->schedule().proof().operations / 2;
    if (n_alone_ > first_courses && n_alone_ > n_taken_ / 2 && transfers_alone_ > all / 8) throw NotWorthIt{};
  }
  return *known;
}

RememberedCalls::Course RememberedCalls::simulated_alone(int call, Stream stream,
                                                         const std::vector<Picoseconds>& arrivals,
                                                         Picoseconds first_rank) {
  Course course{.call = call, .stream = stream, .arrivals = arrivals};
  course.members.resize(arrivals.size());
  const auto by_number = [&](Actor actor) -> Course::Member& {
    return course.members[static_cast<std::size_t>(number_of(call, actor))];
  };
  const SimTime never = SimTime::max(), ranks_begin{first_rank};
  std::vector<std::pair<SimTime, SimTime>> used(topology_.n_resources(), {never, SimTime::min()});
  std::map<std::pair<int, int>, SimTime> sends;
  RunOptions options = alone_;
  options.fold = false;
  options.on_traffic = [&](const Traffic& traffic) {
    auto& [first, last] = used[topology_.link(traffic.link).resource.value];
    first = std::min(first, traffic.begin);
    last = std::max(last, traffic.end);
  };
  options.on_message = [&](const Span& message) {
    Course::Member &from = by_number(message.from), &to = by_number(message.to);
    from.sent += message.bytes;
    to.received += message.bytes;
    from.posts =
        from.posts || (has_posts_ && topology_.joins_hosts(alone_.placement[static_cast<std::size_t>(message.from)],
                                                           alone_.placement[static_cast<std::size_t>(message.to)]));
    if (message.start < ranks_begin) course.is_usable = false;
    const std::pair connection{number_of(call, message.from), number_of(call, message.to)};
    const auto [found, is_new] = sends.try_emplace(connection, message.start);
    found->second = std::min(found->second, message.start);
  };
  options.on_end = [&](Actor actor, const Trail& trail, Actor origin) {
    Course::Member& its = by_number(actor);
    const Picoseconds began = arrivals[static_cast<std::size_t>(number_of(call, origin))];
    its.end = trail.at.time_since_epoch();
    its.since = origin;
    its.way = trail;
    its.way.at -= began;
    its.way.compute -= began;
    if (its.way.compute.count() < 0 || SimTime{began} < ranks_begin) course.is_usable = false;
  };
  const Timeline alone = run(topology_, lowered_->alone(call, stream, arrivals), options);
  course.transfers = alone.transfers;
  course.events = alone.events;
  course.bytes = alone.bytes_sent;
  course.has_choice = alone.has_choice;
  for (std::uint32_t r = 0; r < used.size(); ++r)
    if (used[r].first != never)
      course.resources.emplace_back(
          ResourceId{r}, Use{.first = used[r].first.time_since_epoch(), .last = used[r].second.time_since_epoch()});
  for (const auto& [connection, first] : sends)
    if (runs_ahead_)
      course.connections.push_back(
          {.from = connection.first, .to = connection.second, .first = first.time_since_epoch()});
  for (std::uint32_t l = 0; l < alone.link_bytes.size(); ++l)
    if (alone.link_bytes[l].count > 0) course.link_bytes.emplace_back(LinkId{l}, alone.link_bytes[l]);
  for (std::uint32_t l = 0; l < alone.link_rests.size(); ++l)
    if (alone.link_rests[l] != 0) course.link_rests.emplace_back(LinkId{l}, alone.link_rests[l]);
  return course;
}

void RememberedCalls::take(const Course& course, int call, Stream stream, SimTime base, const Open& open) {
  for (const auto& [resource, its] : course.resources) {
    if (base + its.first < links_simulated_[resource.value]) meets(call);
    use(links_[resource.value], {.begin = base + its.first, .end = base + its.last, .call = call});
  }
  const int plan = lowered_->program().calls[static_cast<std::size_t>(call)].plan;
  const auto first_channel = static_cast<std::uint64_t>(lowered_->first_channel(stream, plan));
  for (const Course::Connection& each : course.connections) {
    const Actor from = member(call, each.from), to = member(call, each.to);
    const Interval its{
        .begin = base + each.first, .end = base + course.members[static_cast<std::size_t>(each.to)].end, .call = call};
    if (const auto found = simulated_.find(at_stream(stream, to)); found != simulated_.end())
      if (its.begin < found->second) meets(call);
    const std::uint64_t key =
        static_cast<std::uint64_t>(from) << 40 | static_cast<std::uint64_t>(to) << 16 | first_channel;
    use(connections_[key], its);
    Interval& until = sends_[at_stream(stream, from)];
    if (until.end < its.end) until = its;
  }
  for (std::size_t i = 0; i < course.members.size(); ++i) {
    const Course::Member& its = course.members[i];
    const auto actor = static_cast<std::size_t>(member(call, static_cast<int>(i)));
    sent_by_[actor] += its.sent;
    received_by_[actor] += its.received;
    if (!its.posts) continue;
    if (posting_[actor] > 0 || open.arrivals[i] < posted_[actor]) meets(call);
    use(posters_[actor], {.begin = open.arrivals[i], .end = base + its.end, .call = call});
  }
  for (const auto& [link, bytes] : course.link_bytes) link_bytes_[link.value] += bytes;
  for (const auto& [link, rest] : course.link_rests) link_rests_[link.value] += rest;
  transfers_of_[static_cast<std::size_t>(call)] += course.transfers;
  transfers_ += course.transfers;
  events_ += course.events;
  bytes_ += course.bytes;
  has_choice_ = has_choice_ || course.has_choice;
}

void RememberedCalls::on_compute(const ComputeEvent& event) {
  if (event.begins) return;
  const StepPlace place = lowered_->place_of(event.actor, event.lane, event.step);
  const int call = lowered_->task_of(event.actor, place).call;
  if (call < 0 || in_run_[static_cast<std::size_t>(call)]) return;
  const auto actor = static_cast<std::size_t>(event.actor);
  const std::uint64_t here = at_stream(place.stream, event.actor);
  Open& open = open_[static_cast<std::size_t>(call)];
  if (place.first) {
    if (open.n_arrived++ == 0) {
      open.first = event.when;
      begun_.push_back(call);
    }
    if (const auto found = sends_.find(here); found != sends_.end())
      if (event.when < found->second.end) meets(found->second.call);
    if (!posters_[actor].empty() && event.when < posters_[actor].back().end) meets(posters_[actor].back().call);
    ++posting_[actor];
  }
  if (place.last) {
    simulated_[here] = event.when;
    posted_[actor] = event.when;
    --posting_[actor];
    if (++open.n_ended < lowered_->program().calls[static_cast<std::size_t>(call)].schedule.schedule().actors) return;
    open.n_arrived = open.n_ended = 0;
    std::erase(begun_, call);
  }
}

void RememberedCalls::on_traffic(const Traffic& traffic) {
  const std::uint32_t resource = topology_.link(traffic.link).resource.value;
  links_simulated_[resource] = std::max(links_simulated_[resource], traffic.end);
  const std::vector<Interval>& known = links_[resource];
  const auto begins_before = [](const Interval& each, SimTime end) { return each.begin < end; };
  meet_before(known, std::lower_bound(known.begin(), known.end(), traffic.end, begins_before), traffic.begin,
              traffic.end);
}

void RememberedCalls::add_to(Timeline& timeline) const {
  ensure(n_met_ == 0, "no known call met another");
  timeline.transfers += transfers_;
  timeline.events += events_;
  timeline.bytes_sent += bytes_;
  timeline.has_choice = timeline.has_choice || has_choice_;
  timeline.fingerprint.reset();
  for (std::size_t l = 0; l < link_bytes_.size(); ++l) {
    const double rest = link_rests_[l] + (timeline.link_rests.empty() ? 0 : timeline.link_rests[l]);
    timeline.link_bytes[l] += link_bytes_[l] + Bytes{std::llround(rest)};
  }
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
    Timeline alone = run(topology_, lowered_->alone(course->call, course->stream, course->arrivals), options);
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
  for (const bool is_known : in_run_) found.met += is_known ? 0 : 1;
  found.met *= lowered_->program().iterations;
  return found;
}

std::optional<RememberedRun> run_remembering(
    const Topology& topology, const CheckedProgram& program, int room, const RunOptions& options,
    const std::function<void(const std::shared_ptr<const LoweredProgram>&)>& begins) {
  const std::int64_t all = program.operations() / 2 * program.program().iterations;
  if (all < options.fold_from || !why_not_remembered(options).empty() || !has_repeated(program.program()))
    return std::nullopt;
  RememberedCalls calls(topology, options, program.program());
  try {
    for (int i = 0; i < most_runs; ++i) {
      const auto lowered = std::make_shared<const LoweredProgram>(program, room, nullptr, calls.known());
      begins(lowered);
      calls.begin(*lowered);
      RunOptions its = options;
      its.courses = &calls;
      if (std::find(calls.known().begin(), calls.known().end(), false) != calls.known().end()) {
        its.on_compute = [&](const ComputeEvent& event) {
          if (options.on_compute) options.on_compute(event);
          calls.on_compute(event);
        };
        its.on_traffic = [&](const Traffic& traffic) { calls.on_traffic(traffic); };
      }
      Timeline timeline = run(topology, lowered->schedule(), its);
      if (!calls.have_met()) {
        calls.add_to(timeline);
        if (options.record_path) timeline.path = calls.expanded(timeline.path, LoweredProgram(program, room));
        return RememberedRun{.timeline = std::move(timeline),
                             .sent_by = calls.sent_by(),
                             .received_by = calls.received_by(),
                             .calls = calls.counts()};
      }
      if (2 * calls.transfers_of_known() < all) break;
    }
  } catch (const RememberedCalls::NotWorthIt&) {  // the whole run costs less
  }
  return std::nullopt;
}

}  // namespace ringsim
