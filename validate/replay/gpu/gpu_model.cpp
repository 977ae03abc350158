#include "validate/replay/gpu/gpu_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <queue>
#include <tuple>

#include "sim/base/error.hpp"
#include "validate/replay/memory.hpp"

namespace ringsim::replay::gpu {

namespace {

using Way = std::pair<Place, Place>;

/// A command as the model sees it. Times in picoseconds; doubles, since shares are no whole numbers.
struct Work {
  double latency = 0, service = 0;
  double weight = 1;  ///< how much of its server it takes while it is alone there
  double issued = 0;  ///< when the host has called for it
  int server = -1;    ///< none: it takes its latency only
  std::vector<std::size_t> next;
  int unmet = 0;
};

class Works {
 public:
  Works(const Plan& plan, const std::vector<Place>& places, const Probe& probe, const Played& played)
      : places_(places), probe_(probe), copy_blocks_(played.copy_blocks) {
    ensure(plan.communicators.empty(), "the model is one of copies");
    const double hop = beyond(Asked::hop, Asked::node);
    const double call = played.graph ? 0 : asked(Asked::issue);
    const double event = played.graph ? 0 : beyond(Asked::events, Asked::issue) / 2;  // one recorded, one waited for
    double issued = played.graph ? asked(Asked::launch) : 0;
    std::vector<std::size_t> last(plan.stream_of.size(), none), record(plan.event_on.size(), none);
    std::vector<bool> waits(plan.stream_of.size(), false);
    for (const Command& command : plan.commands) {
      const std::size_t id = works.size();
      works.push_back(work_of(command));
      issued += command.what == Command::What::record || command.what == Command::What::wait ? event : call;
      works[id].issued = issued;
      follow(last[command.stream], id);
      if (command.what == Command::What::record) record[command.event] = id;
      if (command.what == Command::What::wait) follow(record[command.event], id);
      if (works[id].server >= 0 && waits[command.stream]) works[id].latency += hop;
      if (command.what != Command::What::record) waits[command.stream] = command.what == Command::What::wait;
      last[command.stream] = id;
    }
  }
  std::vector<Work> works;
  int n_servers() const { return static_cast<int>(servers_.size()); }

 private:
  static constexpr std::size_t none = SIZE_MAX;

  static double bytes_a_second(const Line& line) { return static_cast<double>(line.rate.bytes_per_second); }
  /// What copies within a GPU reach at most, by whatever number of blocks.
  double memory() {
    if (memory_ > 0) return memory_;
    for (const Sample& sample : probe_.samples) {
      if (sample.from != 0 || sample.to != 0) continue;
      if (sample.asked != Asked::kernel && sample.asked != Asked::copy) continue;
      if (const auto line = probe_.line(sample.asked, 0, 0, sample.blocks))
        memory_ = std::max(memory_, bytes_a_second(*line));
    }
    return memory_;
  }

  double asked(Asked what) const {
    if (const auto time = probe_.least(what, 0, 0)) return static_cast<double>(time->count());
    throw InputError("", fmt::format("expected a sample of {}", to_string(what)),
                     "`ringsim probe --samples FILE` measures it");
  }
  double beyond(Asked what, Asked less) const { return std::max(asked(what) - asked(less), 0.0); }

  void follow(std::size_t before, std::size_t id) {
    if (before == none) return;
    works[before].next.push_back(id);
    ++works[id].unmet;
  }

  Work work_of(const Command& command) {
    if (command.what == Command::What::compute)
      return {.latency = static_cast<double>(Picoseconds(command.time).count())};
    const bool is_copy = command.what == Command::What::copy;
    if (!is_copy && command.what != Command::What::add) return {};
    const Place to = places_[static_cast<std::size_t>(command.to.actor)];
    const Place from = is_copy ? places_[static_cast<std::size_t>(command.from.actor)] : to;
    const Line line = line_of(is_copy, from, to);
    const bool few_blocks = is_copy && copy_blocks_ > 0 && from == to;
    const double bytes = static_cast<double>(command.to.count) * element_bytes;
    return {.latency = static_cast<double>(line.latency.count()),
            .service = bytes / static_cast<double>(line.rate.bytes_per_second) * 1e12,
            .weight = few_blocks ? std::min(bytes_a_second(line) / memory(), 1.0) : 1,
            .server = servers_.try_emplace(Way{from, to}, n_servers()).first->second};
  }

  // All GPUs are assumed to have the link to the host, and the times within, of GPU 0.
  Line line_of(bool is_copy, Place from, Place to) {
    if (from == to && to != host_memory) from = to = 0;
    if (from == host_memory && to != host_memory) to = 0;
    if (to == host_memory && from != host_memory) from = 0;
    const Asked asked = !is_copy ? Asked::add : copy_blocks_ > 0 && from == to ? Asked::kernel : Asked::copy;
    if (const auto line = probe_.line(asked, from, to, asked == Asked::kernel ? copy_blocks_ : 0)) return *line;
    throw InputError("",
                     fmt::format("expected samples of {} from {} to {}, of two sizes at least", to_string(asked),
                                 name_of(from), name_of(to)),
                     "`ringsim probe --samples FILE` measures them");
  }

  const std::vector<Place>& places_;
  const Probe& probe_;
  int copy_blocks_;
  double memory_ = 0;
  std::map<Way, int> servers_;
};

/// What happens when: a work may start, its latency is over, or its server has it done.
struct Moment {
  double time;
  std::size_t order;  ///< of two at one time the one that was found first comes first
  enum class What : std::uint8_t { ready, arrived, served } what;
  std::size_t id;  ///< of the work; of served: the server
  bool operator>(const Moment& other) const { return std::tie(time, order) > std::tie(other.time, other.order); }
};

class Clock {
 public:
  Clock(std::vector<Work>& works, int n_servers, Serving serving)
      : works_(works), serving_(serving), servers_(static_cast<std::size_t>(n_servers)) {}

  double run() {
    for (std::size_t id = 0; id < works_.size(); ++id)
      if (works_[id].unmet == 0) at(works_[id].issued, Moment::What::ready, id);
    while (!moments_.empty()) {
      const Moment moment = moments_.top();
      moments_.pop();
      now_ = moment.time;
      if (moment.what == Moment::What::ready) ready(moment.id);
      if (moment.what == Moment::What::arrived) arrived(moment.id);
      if (moment.what == Moment::What::served) served(moment.id, moment.order);
    }
    ensure(done_ == works_.size(), "a plan comes through");
    return end_;
  }

 private:
  struct Active {
    std::size_t id;
    double left, rate;  ///< of its service; how much of it passes in a unit of time: 1 if it has all that it can use
  };
  struct Server {
    double free_at = 0;  // in turn
    double last = 0;     // shared: `left` is as of then
    std::vector<Active> active;
    std::size_t awaited = 0;  // the order of the moment that still holds
  };

  std::size_t at(double time, Moment::What what, std::size_t id) {
    moments_.push({time, ++order_, what, id});
    return order_;
  }

  void ready(std::size_t id) {
    const Work& work = works_[id];
    if (work.server < 0 || serving_ == Serving::shared) return void(at(now_ + work.latency, Moment::What::arrived, id));
    double& free_at = servers_[static_cast<std::size_t>(work.server)].free_at;
    free_at = std::max(free_at, now_) + work.latency + work.service;
    at(free_at, Moment::What::arrived, id);
  }

  void arrived(std::size_t id) {
    const Work& work = works_[id];
    if (work.server < 0 || serving_ == Serving::in_turn) return finish(id);
    Server& server = servers_[static_cast<std::size_t>(work.server)];
    advance(server);
    server.active.push_back({id, work.service, 0});
    share(server);
    await(static_cast<std::size_t>(work.server));
  }

  void served(std::size_t which, std::size_t order) {
    Server& server = servers_[which];
    if (order != server.awaited) return;  // another has come since
    advance(server);
    const auto first = next_of(server);
    const std::size_t id = first->id;
    server.active.erase(first);
    share(server);
    finish(id);
    await(which);
  }

  void advance(Server& server) {
    for (Active& each : server.active) each.left -= (now_ - server.last) * each.rate;
    server.last = now_;
  }
  // Gives all the same share, except those that cannot use as much: the others get what they leave.
  void share(Server& server) {
    std::vector<Active*> by_weight;
    for (Active& each : server.active) by_weight.push_back(&each);
    std::stable_sort(by_weight.begin(), by_weight.end(),
                     [&](const Active* a, const Active* b) { return works_[a->id].weight < works_[b->id].weight; });
    double rest = 1;
    std::size_t n = by_weight.size();
    for (Active* each : by_weight) {
      const double weight = works_[each->id].weight;
      const double got = std::min(weight, rest / static_cast<double>(n--));
      each->rate = got / weight;
      rest -= got;
    }
  }
  std::vector<Active>::iterator next_of(Server& server) {
    return std::min_element(server.active.begin(), server.active.end(),
                            [](const Active& a, const Active& b) { return a.left / a.rate < b.left / b.rate; });
  }
  void await(std::size_t which) {
    Server& server = servers_[which];
    if (server.active.empty()) return;
    const Active& next = *next_of(server);
    server.awaited = at(now_ + std::max(next.left / next.rate, 0.0), Moment::What::served, which);
  }

  void finish(std::size_t id) {
    ++done_;
    end_ = std::max(end_, now_);
    for (const std::size_t next : works_[id].next)
      if (--works_[next].unmet == 0) at(std::max(now_, works_[next].issued), Moment::What::ready, next);
  }

  std::vector<Work>& works_;
  Serving serving_;
  std::vector<Server> servers_;
  std::priority_queue<Moment, std::vector<Moment>, std::greater<>> moments_;
  std::size_t order_ = 0, done_ = 0;
  double now_ = 0, end_ = 0;
};

}  // namespace

Picoseconds predict_plan(const Plan& plan, const std::vector<Place>& places, const Probe& probe, const Played& played) {
  Works works(plan, places, probe, played);
  return Picoseconds(std::llround(Clock(works.works, works.n_servers(), played.serving).run()));
}

}  // namespace ringsim::replay::gpu
