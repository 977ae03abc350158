#include "validate/replay/tcp/coordinator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

#include "sim/base/error.hpp"

namespace ringsim::replay {

using namespace std::chrono_literals;
using Json = Control::Json;

namespace {

double seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

/// Others may have lost a process before this one hears of its end: how long to wait to find out which failed first.
constexpr auto grace = 300ms;

ActorRecord record_of(const Json& line) {
  ActorRecord record;
  for (const auto& ns : line.at("times_ns")) record.times.emplace_back(ns.get<std::int64_t>());
  record.wrong = line.at("wrong").get<std::int64_t>();
  record.first_wrong = line.at("first_wrong").get<std::string>();
  return record;
}

}  // namespace

int n_processes(const TcpReplay& replay) {
  int n = 0;
  for (const TcpJob& job : replay.jobs) n += job.schedule->actors;
  return n;
}

std::pair<std::size_t, Actor> actor_of(const TcpReplay& replay, int process) {
  std::size_t job = 0;
  for (; process >= replay.jobs[job].schedule->actors; ++job) process -= replay.jobs[job].schedule->actors;
  return {job, process};
}

std::string process_name(const TcpReplay& replay, int process) {
  const auto [job, actor] = actor_of(replay, process);
  const TcpJob& of = replay.jobs[job];
  return fmt::format("{} {}{}", actor < of.schedule->collective.ranks ? "rank" : "helper", actor,
                     of.name.empty() ? "" : " of " + of.name);
}

Coordinator::Coordinator(boost::asio::io_context& io, const TcpReplay& replay, Children& children)
    : io_(io), replay_(replay), children_(children) {
  by_process_.resize(static_cast<std::size_t>(n_processes(replay)));
}

void Coordinator::add(Control::Socket socket, std::optional<int> child) {
  members_.push_back(std::make_unique<Member>(std::move(socket)));
  Member& member = *members_.back();
  member.process = child.value_or(-1);
  member.control.listen([this, &member](const Json& line) { take(member, line); },
                        [this, &member](const std::string& why) {
                          member.ended = why;
                          trouble_ = trouble_ || member.process >= 0;
                        });
}

void Coordinator::take(Member& member, const Json& line) {
  if (line.contains("failed")) {
    if (member.process < 0) return;  // it was turned away
    member.failed = line;
    trouble_ = true;
    return;
  }
  if (!member.joined) {
    const int process = line.value("process", -1);
    if (process < 0 || process >= static_cast<int>(by_process_.size())) return;  // a stranger: it is not counted
    if (line.value("key", "") != replay_.key) {
      member.control.send({{"abort",
                            "this process replays another scenario, or another message size, than process 0\n  hint: "
                            "are file and options the same on all machines?"}});
      return;
    }
    if (!joined_.insert(process).second) {
      member.control.send({{"abort", fmt::format("{} is there already\n  hint: each process has another --rank",
                                                 process_name(replay_, process))}});
      return;
    }
    member.joined = true;
    member.process = process;
    by_process_[static_cast<std::size_t>(process)] = &member;
  }
  member.lines.push_back(line);
}

void Coordinator::meanwhile_now() {
  if (meanwhile_ == nullptr) return;
  for (const auto& during = meanwhile_->during;
       next_act_ < during.size() && std::chrono::steady_clock::now() >= begin_ + during[next_act_].time; ++next_act_) {
    during[next_act_].act();
    latest_ = std::max<std::chrono::nanoseconds>(latest_,
                                                 std::chrono::steady_clock::now() - (begin_ + during[next_act_].time));
  }
}

void Coordinator::run_until(const std::function<bool()>& until, Moment deadline,
                            const std::function<std::string()>& late_text) {
  while (!until()) {
    meanwhile_now();
    if (trouble_) fail();
    if (replay_.options.stop != nullptr && replay_.options.stop->load(std::memory_order_relaxed))
      throw Interrupted("the replay was stopped");
    const Moment now = std::chrono::steady_clock::now();
    if (now >= deadline) throw EnvironmentError(late_text());
    std::chrono::nanoseconds wait = 100ms;
    if (meanwhile_ != nullptr && next_act_ < meanwhile_->during.size())
      wait = std::clamp<std::chrono::nanoseconds>(begin_ + meanwhile_->during[next_act_].time - now, 0ns, wait);
    io_.run_one_for(wait);
    if (io_.stopped()) io_.restart();
  }
}

std::string Coordinator::silent() const {
  std::string names;
  int n = 0;
  for (std::size_t p = 0; p < by_process_.size(); ++p) {
    const Member* member = by_process_[p];
    if (member != nullptr && (!member->lines.empty() || member->failed || member->ended)) continue;
    if (++n <= 4) names += (n > 1 ? ", " : "") + process_name(replay_, static_cast<int>(p));
  }
  if (n > 4) names += fmt::format(" and {} more", n - 4);
  return names;
}

std::string Coordinator::late(std::string_view doing) const {
  return fmt::format("{} took longer than {:g} s: nothing was heard of {}\n  hint: --timeout sets how long it may take",
                     doing, seconds(replay_.options.timeout), silent());
}

std::vector<Json> Coordinator::gather(std::string_view doing, std::chrono::nanoseconds longest) {
  const auto all_spoke = [this] {
    return std::all_of(by_process_.begin(), by_process_.end(),
                       [](const Member* member) { return member != nullptr && !member->lines.empty(); });
  };
  run_until(all_spoke, std::chrono::steady_clock::now() + longest, [&] { return late(doing); });
  std::vector<Json> lines;
  for (Member* member : by_process_) {
    lines.push_back(std::move(member->lines.front()));
    member->lines.pop_front();
  }
  return lines;
}

void Coordinator::to_all(const Json& line) {
  for (Member* member : by_process_) member->control.send(line);
}

void Coordinator::abort(const std::string& why) {
  for (const auto& member : members_) member->control.send({{"abort", why}});
}

// A process that is gone without a word failed first; then one that gives a reason of its own; a connection that broke
// is only a consequence.
void Coordinator::fail() {
  const Moment until = std::chrono::steady_clock::now() + grace;
  while (std::chrono::steady_clock::now() < until) {
    io_.run_one_for(20ms);
    if (io_.stopped()) io_.restart();
  }
  std::optional<std::string> gone, own, followed;
  for (const auto& member : members_) {
    if (member->process < 0) continue;
    const std::string name = process_name(replay_, member->process);
    if (member->failed) {
      const std::string kind = member->failed->value("kind", ""), text = member->failed->value("failed", "");
      if (kind == "invariant") fail_invariant(fmt::format("{}: {}", name, text));
      auto& slot = kind == "lost" ? followed : own;
      if (slot) continue;
      slot = fmt::format("{}: {}", name, text);
      // One that was late may have waited for another that hangs, and so says nothing.
      if (const std::string others = kind == "late" ? silent() : ""; !others.empty())
        *slot += "; nothing was heard of " + others;
    } else if (member->ended && !gone) {
      gone = fmt::format("{} is gone: {}", name, *member->ended);
    }
  }
  for (std::size_t i = 0; i < children_.size(); ++i) {
    const auto how = children_.ended(i);
    if (how && how->starts_with("was killed")) {
      gone = fmt::format("{} {} in the middle of the replay", process_name(replay_, static_cast<int>(i)), *how);
      break;
    }
  }
  throw EnvironmentError(gone ? *gone : own ? *own : followed ? *followed : "a process of the replay is gone");
}

TcpOutcome Coordinator::lead(const std::vector<std::string>& hosts, bool same_clock, const TcpMeanwhile& meanwhile) {
  const auto timeout = replay_.options.timeout;
  const std::vector<Json> here = gather("joining", timeout);
  std::vector<Json> peers(replay_.jobs.size(), Json::array());  // [job][actor]
  for (std::size_t p = 0; p < here.size(); ++p)
    peers[actor_of(replay_, static_cast<int>(p)).first].push_back(Json::array({hosts[p], here[p].at("port")}));
  const std::uint64_t token = std::random_device{}() + (std::uint64_t{std::random_device{}()} << 32U);
  for (std::size_t p = 0; p < here.size(); ++p)
    by_process_[p]->control.send({{"token", token}, {"peers", peers[actor_of(replay_, static_cast<int>(p)).first]}});
  TcpOutcome outcome;
  for (const Json& line : gather("connecting", timeout + 1s))
    for (const auto& note : line.at("notes"))
      if (std::find(outcome.notes.begin(), outcome.notes.end(), note) == outcome.notes.end())
        outcome.notes.push_back(note.get<std::string>());

  const int n_runs = replay_.repeats.warmups + replay_.repeats.timed;
  for (int run = 0; run < n_runs; ++run) {
    // Who is late says so by itself, with what is open; this is for those that say nothing any more.
    gather(run == 0 ? "filling buffers" : fmt::format("run {} of {}, with its check,", run, n_runs), timeout + 1s);
    meanwhile_ = nullptr;
    if (meanwhile.between) meanwhile.between();
    // Late enough that all have heard of it; the children of a busy machine take turns.
    const auto lead_time = 2ms + 250us * static_cast<int>(by_process_.size());
    begin_ = std::chrono::steady_clock::now() + lead_time;
    to_all({{"begin_ns", same_clock ? begin_.time_since_epoch().count() : 0}});
    meanwhile_ = &meanwhile;
    next_act_ = 0;
  }
  std::vector<std::vector<ActorRecord>> records(replay_.jobs.size());
  const std::vector<Json> ends = gather(fmt::format("run {} of {}, with its check,", n_runs, n_runs), timeout + 1s);
  meanwhile_ = nullptr;
  for (std::size_t p = 0; p < ends.size(); ++p)
    records[actor_of(replay_, static_cast<int>(p)).first].push_back(record_of(ends[p]));
  for (const auto& of_job : records) outcome.jobs.push_back(combine(of_job));
  if (latest_ > 20ms)
    outcome.notes.push_back(fmt::format("a link changed {:.0f} ms later in a run than it should: this machine is busy",
                                        1e3 * seconds(latest_)));
  to_all({{"done", true}});
  return outcome;
}

}  // namespace ringsim::replay
