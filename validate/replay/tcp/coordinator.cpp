#include "validate/replay/tcp/coordinator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/base/error.hpp"

namespace ringsim::replay {

using namespace std::chrono_literals;
using Json = Control::Json;

namespace {

double seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

/// Others may have lost a process before this one hears of its end: how long to wait to find out which failed first.
constexpr auto grace = 300ms;

// What a run, and a number of compared elements, may be at most: the sums of some thousand processes stay within 64
// bits.
constexpr std::int64_t longest_run_ns = 9'000'000'000'000'000, most_checked = 1'000'000'000'000'000;
// Ports of a line: each is 6 bytes at most.
constexpr std::size_t ports_of_line = 8000;

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

Coordinator::Coordinator(boost::asio::io_context& io, const TcpReplay& replay, const Secret& secret, Children& children)
    : io_(io), replay_(replay), secret_(secret), children_(children), entrance_(io) {
  by_process_.resize(static_cast<std::size_t>(n_processes(replay)));
}

Coordinator::Member& Coordinator::add(Control::Socket socket) {
  members_.push_back(std::make_unique<Member>(std::move(socket)));
  Member& member = *members_.back();
  member.control.listen([this, &member](const Json& line) { take(member, line); },
                        [this, &member](const std::string& why) {
                          member.ended = why;
                          trouble_ = trouble_ || member.process >= 0;
                        });
  member.control.send({{"challenge", member.challenge}});
  return member;
}

void Coordinator::add_child(Control::Socket socket, int process) { add(std::move(socket)).process = process; }

void Coordinator::open(const Entrance::Tcp::endpoint& here) {
  entrance_.open(here);
  entrance_.accept([this] { return n_waiting() < most_waiting; },
                   [this](Entrance::Tcp::socket socket) { add(Control::Socket(std::move(socket))); });
}

void Coordinator::close() {
  entrance_.close();
  for (const auto& member : members_)
    if (member->process < 0 && !member->ended) member->ended = "connected too late";
  drop_strangers();
}

std::size_t Coordinator::n_waiting() const {
  return static_cast<std::size_t>(
      std::count_if(members_.begin(), members_.end(), [](const auto& member) { return member->process < 0; }));
}

void Coordinator::drop_strangers() {
  const Moment now = std::chrono::steady_clock::now();
  const auto is_over = [&](const std::unique_ptr<Member>& member) {
    return member->process < 0 && (member->ended || now >= member->came + longest_waiting);
  };
  strangers_ += static_cast<int>(std::erase_if(members_, is_over));
}

std::string Coordinator::turned_away() const {
  if (strangers_ == 0) return "";
  std::string text =
      strangers_ == 1 ? "1 connection was turned away" : fmt::format("{} connections were turned away", strangers_);
  const char* before = ": ";
  const auto why = [&](int n, const char* what) {
    if (n > 0) text += fmt::format("{}{} {}", std::exchange(before, ", "), n, what);
  };
  why(strangers_ - other_secrets_ - other_scenarios_ - second_ranks_, "did not prove the secret");
  why(other_secrets_, "with another secret");
  why(other_scenarios_, "with another scenario or message size");
  why(second_ranks_, "with a --rank that is already in use");
  return text;
}

void Coordinator::refuse(Member& member, const char* why, int& count) {
  ++count;
  member.control.send({{"refused", why}});
  throw BadLine("something else");  // ends the connection
}

void Coordinator::take_join(Member& member, const Json& line) {
  expect_members(line, {"process", "port", "key", "nonce", "proof"});
  const int process = static_cast<int>(line_whole(line, "process", 0, static_cast<int>(by_process_.size()) - 1));
  const auto port = static_cast<std::uint16_t>(line_whole(line, "port", 1, 65535));
  const std::string key = line_text(line, "key", 256), nonce = line_digits(line, "nonce");
  const std::string number = fmt::format("{}", process);
  if (!same_proof(line_digits(line, "proof"),
                  secret_.proof({"join", member.challenge, nonce, number, fmt::format("{}", port), key})))
    refuse(member, "secret", other_secrets_);
  if (key != replay_.key) refuse(member, "scenario", other_scenarios_);
  if ((member.process >= 0 && member.process != process) || !joined_.insert(process).second)
    refuse(member, "rank", second_ranks_);
  member.process = process;
  member.port = port;
  member.said = 1;
  by_process_[static_cast<std::size_t>(process)] = &member;
  member.control.trust();
  member.control.send({{"welcome", secret_.proof({"lead", nonce, member.challenge, number})}});
}

/// Takes a line of a process's record. True if the record is complete.
bool Coordinator::take_record(Member& member, const Json& line) {
  const auto n_timed = static_cast<std::size_t>(replay_.repeats.timed);
  auto& times = member.record.times;
  for (const std::int64_t ns : line_wholes(line, "times_ns", 0, longest_run_ns, n_timed - times.size()))
    times.emplace_back(ns);
  if (times.size() < n_timed) {
    expect_members(line, {"times_ns"});
    return false;
  }
  expect_members(line, {"times_ns", "checked", "wrong", "first_wrong"});
  const std::int64_t checked = line_whole(line, "checked", 0, most_checked);
  member.record.checked = checked;
  member.record.wrong = line_whole(line, "wrong", 0, checked);
  member.record.first_wrong = line_text(line, "first_wrong", longest_text);
  return true;
}

void Coordinator::take(Member& member, const Json& line) {
  const int n_runs = replay_.repeats.warmups + replay_.repeats.timed;
  if (member.process >= 0 && line.contains("failed")) {  // a child may fail before it joins
    expect_members(line, {"failed", "kind"});
    member.failed = {line_text(line, "failed", longest_text), line_text(line, "kind", 16)};
    trouble_ = true;
  } else if (member.said == 0) {
    take_join(member, line);
  } else if (member.said == 1) {
    expect_members(line, {"connected", "notes"});
    member.notes = line_texts(line, "notes", 512, 16);
    member.said = 2;
  } else if (const int run = member.said - 2; run < n_runs) {
    expect_members(line, {"ready"});
    line_whole(line, "ready", run, run);
    ++member.said;
  } else if (run == n_runs) {
    if (take_record(member, line)) ++member.said;
  } else {
    throw BadLine("expected nothing after the measured times");
  }
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
    drop_strangers();
    entrance_.look();
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
    if (member != nullptr && (member->said > gathered_ || member->failed || member->ended)) continue;
    if (++n <= 4) names += (n > 1 ? ", " : "") + process_name(replay_, static_cast<int>(p));
  }
  if (n > 4) names += fmt::format(" and {} more", n - 4);
  return names;
}

std::string Coordinator::late(std::string_view doing) const {
  return fmt::format("{} took longer than {:g} s: no message from {}\n  hint: to wait longer, use --timeout", doing,
                     seconds(replay_.options.timeout), silent());
}

void Coordinator::gather(std::string_view doing, std::chrono::nanoseconds longest) {
  const auto all_spoke = [this] {
    return std::all_of(by_process_.begin(), by_process_.end(),
                       [this](const Member* member) { return member != nullptr && member->said > gathered_; });
  };
  run_until(all_spoke, std::chrono::steady_clock::now() + longest, [&] { return late(doing); });
  ++gathered_;
}

void Coordinator::to_all(const Json& line) {
  for (Member* member : by_process_) member->control.send(line);
}

void Coordinator::abort(const std::string& why) {
  for (const auto& member : members_)
    if (member->said > 0) member->control.send({{"abort", cut_text(why)}});
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
      const auto& [text, kind] = *member->failed;
      // From a child this is a bug of this program; from another host it proves nothing.
      if (kind == "invariant" && static_cast<std::size_t>(member->process) < children_.size())
        fail_invariant(fmt::format("{}: {}", name, text));
      auto& slot = kind == "lost" ? followed : own;
      if (slot) continue;
      slot = fmt::format("{}: {}", name, text);
      // One that was late may have waited for another that hangs, and so says nothing.
      if (const std::string others = kind == "late" ? silent() : ""; !others.empty())
        *slot += "; no message from " + others;
    } else if (member->ended && !gone) {
      gone = fmt::format("lost {}: {}", name, *member->ended);
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

// Each process knows the hosts; the ports are new.
void Coordinator::tell_ports() {
  std::vector<std::vector<int>> ports(replay_.jobs.size());  // [job][actor]
  for (std::size_t p = 0; p < by_process_.size(); ++p)
    ports[actor_of(replay_, static_cast<int>(p)).first].push_back(by_process_[p]->port);
  const std::string session = random_digits();
  for (std::size_t p = 0; p < by_process_.size(); ++p) {
    const auto& of_job = ports[actor_of(replay_, static_cast<int>(p)).first];
    for (auto next = of_job.begin(); next != of_job.end();) {
      const auto end = next + std::min<std::ptrdiff_t>(of_job.end() - next, ports_of_line);
      by_process_[p]->control.send({{"session", session}, {"ports", std::vector<int>(next, end)}});
      next = end;
    }
  }
}

TcpOutcome Coordinator::lead(bool same_clock, const TcpMeanwhile& meanwhile) {
  const auto timeout = replay_.options.timeout;
  gather("joining", timeout);
  tell_ports();
  TcpOutcome outcome;
  if (const std::string text = turned_away(); !text.empty()) outcome.notes.push_back(text);
  gather("connecting", timeout + 1s);
  for (const Member* member : by_process_)
    for (const std::string& note : member->notes)
      if (std::find(outcome.notes.begin(), outcome.notes.end(), note) == outcome.notes.end())
        outcome.notes.push_back(note);

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
  gather(fmt::format("run {} of {}, with its check,", n_runs, n_runs), timeout + 1s);
  meanwhile_ = nullptr;
  for (std::size_t p = 0; p < by_process_.size(); ++p)
    records[actor_of(replay_, static_cast<int>(p)).first].push_back(by_process_[p]->record);
  for (const auto& of_job : records) outcome.jobs.push_back(combine(of_job));
  if (latest_ > 20ms)
    outcome.notes.push_back(
        fmt::format("a link changed {:.0f} ms too late in a run because this machine is busy", 1e3 * seconds(latest_)));
  to_all({{"done", true}});
  return outcome;
}

}  // namespace ringsim::replay
