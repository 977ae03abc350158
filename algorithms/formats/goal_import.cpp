#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <unordered_map>

#include "algorithms/formats/goal.hpp"
#include "algorithms/formats/lane_limit.hpp"
#include "sim/base/error.hpp"

namespace ringsim {

namespace {

constexpr std::int64_t most_ns = std::int64_t{1} << 40;
constexpr std::int64_t most_tag = std::int64_t{1} << 40;

struct Statement {
  enum class Kind : std::uint8_t { send, receive, calc } kind = Kind::calc;
  std::int64_t amount = 0;  // bytes, or ns
  Actor peer = -1;
  std::int64_t tag = 0;
  int line = 0;
  std::vector<int> after;        // requires: [..] index within the rank
  std::vector<int> after_start;  // irequires
  std::vector<int> needed_by;    // of both
  bool start_matters = false;    // somebody irequires it
};

// ------------------------------------------------------------------------------------------------------------ reading

/// Words; { } and : stand for themselves; comments are skipped.
class Words {
 public:
  Words(std::string_view text, const std::string& file) : text_(text), file_(file) { advance(); }

  std::string_view next() const { return word_; }  ///< empty at the end
  int line() const { return line_of_word_; }
  std::string_view take() {
    const std::string_view taken = word_;
    taken_line_ = line_of_word_;
    advance();
    return taken;
  }
  bool take_if(std::string_view expected) {
    if (word_ != expected) return false;
    take();
    return true;
  }
  void expect(std::string_view expected) {
    if (!take_if(expected)) fail_next(fmt::format("\"{}\"", expected));
  }
  std::int64_t number(std::int64_t least, std::int64_t most, std::string_view unit = "") {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(word_.data(), word_.data() + word_.size(), value);
    const auto length = static_cast<std::size_t>(end - word_.data());
    if (word_.empty() || error != std::errc{} || word_.substr(length) != unit || value < least || value > most)
      fail_next(fmt::format("a whole number from {} to {}{}{}", least, most, unit.empty() ? "" : ", then ", unit));
    take();
    return value;
  }
  [[noreturn]] void fail(int line, const std::string& message, const std::string& hint = "") const {
    throw InputError(fmt::format("{}:{}", file_, line), message, hint);
  }
  [[noreturn]] void fail_next(const std::string& expected) const {
    std::string found;
    for (const char c : word_.substr(0, 40)) found += c >= 0x20 && c < 0x7f ? c : '?';
    fail(line_of_word_,
         fmt::format("expected {}, found {}", expected, word_.empty() ? "the end of the file" : "\"" + found + "\""));
  }
  int taken_line() const { return taken_line_; }

 private:
  static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
  static bool is_sign(char c) { return c == '{' || c == '}' || c == ':'; }

  void skip() {
    while (at_ < text_.size()) {
      if (is_blank(text_[at_])) {
        line_ += text_[at_++] == '\n' ? 1 : 0;
      } else if (text_.substr(at_, 2) == "//") {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (text_.substr(at_, 2) == "/*") {
        const std::size_t end = text_.find("*/", at_ + 2);
        if (end == std::string_view::npos)
          fail(line_, "expected the end of a comment, \"*/\", found the end of the file");
        line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                                             text_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
        at_ = end + 2;
      } else {
        return;
      }
    }
  }

  void advance() {
    skip();
    const std::size_t first = at_;
    if (at_ < text_.size() && is_sign(text_[at_])) {
      ++at_;
    } else {
      while (at_ < text_.size() && !is_blank(text_[at_]) && !is_sign(text_[at_]) && text_.substr(at_, 2) != "//" &&
             text_.substr(at_, 2) != "/*")
        ++at_;
    }
    word_ = text_.substr(first, at_ - first);
    line_of_word_ = line_;
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  int line_ = 1, line_of_word_ = 1, taken_line_ = 1;
  std::string_view word_;
};

/// The statements of one rank.
class RankReader {
 public:
  RankReader(Words& words, int n_ranks, Actor self) : words_(words), n_ranks_(n_ranks), self_(self) {}

  std::vector<Statement> read() {
    words_.expect("{");
    while (!words_.take_if("}")) {
      if (words_.next() == "send" || words_.next() == "recv" || words_.next() == "calc") {
        operation();
        continue;
      }
      if (words_.next().empty() || words_.next() == "{" || words_.next() == ":")
        words_.fail_next("a statement, or \"}\"");
      const std::string label(words_.take());
      const int line = words_.taken_line();
      if (words_.take_if(":")) {
        if (!labels_.emplace(label, static_cast<int>(all_.size())).second)
          words_.fail(line, fmt::format("expected each label only once per rank, found {:.40} again", label));
        operation();
      } else {
        order(label, line);
      }
    }
    for (const Order& order : orders_) resolve(order.label, order.needs, order.is_start, order.line);
    return std::move(all_);
  }
  bool places_matter() const { return places_; }

 private:
  void operation() {
    Statement s;
    s.line = words_.line();
    if (words_.take_if("calc")) {
      s.amount = words_.number(0, most_ns);
    } else {
      const bool sends = words_.take_if("send");
      if (!sends) words_.expect("recv");
      s.kind = sends ? Statement::Kind::send : Statement::Kind::receive;
      s.amount = words_.number(0, file_limits::message_bytes, "b");
      words_.expect(sends ? "to" : "from");
      s.peer = static_cast<Actor>(words_.number(0, n_ranks_ - 1));
      if (s.peer == self_)
        words_.fail(words_.taken_line(), fmt::format("expected another rank, found rank {} itself", self_));
    }
    for (;;) {
      if (s.kind != Statement::Kind::calc && words_.take_if("tag"))
        s.tag = words_.number(0, most_tag);
      else if (words_.take_if("cpu") || words_.take_if("nic"))
        places_ = words_.number(0, UINT16_MAX) != 0 || places_;
      else
        break;
    }
    all_.push_back(std::move(s));
  }

  struct Order {
    std::string label, needs;
    bool is_start;
    int line;
  };

  void order(const std::string& label, int line) {
    const bool is_start = words_.take_if("irequires");
    if (!is_start && !words_.take_if("requires"))
      words_.fail_next("\":\", \"requires\" or \"irequires\" after a label");
    if (words_.next().empty() || words_.next() == "}" || words_.next() == "{" || words_.next() == ":")
      words_.fail_next("a label");
    orders_.push_back({label, std::string(words_.take()), is_start, line});
  }

  void resolve(const std::string& label, const std::string& needs, bool is_start, int line) {
    const int one = find(label, line), other = find(needs, line);
    Statement& s = all_[static_cast<std::size_t>(one)];
    (is_start ? s.after_start : s.after).push_back(other);
    all_[static_cast<std::size_t>(other)].needed_by.push_back(one);
    if (is_start) all_[static_cast<std::size_t>(other)].start_matters = true;
  }

  int find(const std::string& label, int line) const {
    const auto found = labels_.find(label);
    if (found == labels_.end())
      words_.fail(line, fmt::format("expected a label of rank {}, found {:.40}", self_, label));
    return found->second;
  }

  Words& words_;
  int n_ranks_;
  Actor self_;
  std::vector<Statement> all_;
  std::vector<Order> orders_;
  std::unordered_map<std::string, int> labels_;
  bool places_ = false;
};

// ---------------------------------------------------------------------------------------------------------- laying out

/// The order of `requires`, and of the file if that leaves a choice.
std::vector<int> in_order(const std::vector<Statement>& all, const Words& words) {
  std::vector<int> missing(all.size()), out;
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (std::size_t i = 0; i < all.size(); ++i) {
    missing[i] = static_cast<int>(all[i].after.size() + all[i].after_start.size());
    if (missing[i] == 0) ready.push(static_cast<int>(i));
  }
  while (!ready.empty()) {
    const int i = ready.top();
    ready.pop();
    out.push_back(i);
    for (const int next : all[static_cast<std::size_t>(i)].needed_by)
      if (--missing[static_cast<std::size_t>(next)] == 0) ready.push(next);
  }
  for (std::size_t i = 0; i < all.size(); ++i)
    if (missing[i] > 0)
      words.fail(all[i].line, "expected no dependency cycles; this statement requires itself, through others");
  return out;
}

/// True if nothing orders some of a rank's sends: the longest chain of them has fewer than there are.
bool has_unordered_sends(const std::vector<Statement>& all, const std::vector<int>& order) {
  std::vector<int> chain(all.size());                           // sends up to this statement, itself included
  std::map<std::pair<Actor, std::int64_t>, int> of_connection;  // those of a connection are in order
  int sends = 0, longest = 0;
  for (const int i : order) {
    const Statement& s = all[static_cast<std::size_t>(i)];
    int& here = chain[static_cast<std::size_t>(i)];
    for (const int other : s.after) here = std::max(here, chain[static_cast<std::size_t>(other)]);
    if (s.kind != Statement::Kind::send) continue;
    int& before = of_connection[{s.peer, s.tag}];
    here = before = std::max(here, before) + 1;
    longest = std::max(longest, here);
    ++sends;
  }
  return longest < sends;
}

/// One rank's lanes.
class RankLanes {
 public:
  RankLanes(const std::vector<Statement>& all, const std::map<std::int64_t, int>& channels,
            const std::map<std::int64_t, std::uint32_t>& chunks, bool sends_in_turn)
      : all_(all),
        channels_(channels),
        chunks_(chunks),
        sends_in_turn_(sends_in_turn),
        done_(all.size()),
        started_(all.size()),
        calc_(all.size()) {}

  std::vector<std::vector<Step>> lay_out(const std::vector<int>& order) {
    for (const int i : order) place(static_cast<std::size_t>(i));
    return std::move(lanes_);
  }

 private:
  using Waits = std::map<Lane, int>;  // [lane] steps
  struct Tail {                       // a calc that is over when this statement is
    Lane lane = -1;
    std::size_t steps = 0;
  };

  static void merge(const Waits& from, Waits& into) {
    for (const auto& [lane, steps] : from) {
      int& here = into[lane];
      here = std::max(here, steps);
    }
  }

  void place(std::size_t i) {
    const Statement& s = all_[i];
    Waits waits;
    for (const int other : s.after) {
      merge(done_[static_cast<std::size_t>(other)], waits);
      if (is_last(calc_[static_cast<std::size_t>(other)])) calc_[i] = calc_[static_cast<std::size_t>(other)];
    }
    for (const int other : s.after_start) merge(started_[static_cast<std::size_t>(other)], waits);
    if (sends_in_turn_ && s.kind == Statement::Kind::send) {
      if (last_send_ >= 0) merge(done_[static_cast<std::size_t>(last_send_)], waits);
      last_send_ = static_cast<int>(i);
    }
    if (s.kind == Statement::Kind::calc && s.amount == 0) {
      done_[i] = started_[i] = std::move(waits);
      return;
    }
    const Lane lane = s.kind == Statement::Kind::calc ? calc_lane(i) : connection_lane(s);
    auto& steps = lanes_[static_cast<std::size_t>(lane)];
    Together& before = together_[static_cast<std::size_t>(lane)];
    const bool joins = s.kind != Statement::Kind::calc && !steps.empty() && before.statement >= 0 &&
                       before.waits == waits && !s.start_matters &&
                       !all_[static_cast<std::size_t>(before.statement)].start_matters &&
                       all_[static_cast<std::size_t>(before.statement)].needed_by == s.needed_by;
    if (!joins) {
      before = {static_cast<int>(i), waits};
      steps.emplace_back();
      waits.erase(lane);  // the lane's own order says so
      for (const auto& [other, n] : waits) steps.back().wait(other, n);
      if (s.start_matters) {
        started_[i] = {{lane, static_cast<int>(steps.size())}};
        steps.emplace_back();
      }
    }
    steps.back().ops.push_back(op_of(s));
    done_[i] = {{lane, static_cast<int>(steps.size())}};
    if (s.kind == Statement::Kind::calc) calc_[i] = {lane, steps.size()};
  }

  bool is_last(const Tail& tail) const {
    return tail.lane >= 0 && lanes_[static_cast<std::size_t>(tail.lane)].size() == tail.steps;
  }

  Lane new_lane() {
    lanes_.emplace_back();
    together_.emplace_back();
    return static_cast<Lane>(lanes_.size() - 1);
  }
  Lane calc_lane(std::size_t i) { return is_last(calc_[i]) ? calc_[i].lane : new_lane(); }
  Lane connection_lane(const Statement& s) {
    const auto [entry, is_new] = connections_.try_emplace({s.kind == Statement::Kind::send, s.peer, s.tag}, 0);
    if (is_new) entry->second = new_lane();
    return entry->second;
  }

  Op op_of(const Statement& s) const {
    if (s.kind == Statement::Kind::calc) return {.what = Do::compute, .time = Picoseconds{s.amount * 1000}};
    return {.what = s.kind == Statement::Kind::send ? Do::send : Do::receive,
            .channel = static_cast<std::uint16_t>(channels_.at(s.tag)),
            .peer = s.peer,
            .region = {Buffer::scratch, chunks_.at(s.amount), 1}};
  }

  struct Together {  // the first statement of a lane's last step, and what it waited for
    int statement = -1;
    Waits waits;
  };
  const std::vector<Statement>& all_;
  const std::map<std::int64_t, int>& channels_;
  const std::map<std::int64_t, std::uint32_t>& chunks_;
  bool sends_in_turn_;
  int last_send_ = -1;
  std::vector<Waits> done_, started_;  // [statement]
  std::vector<Tail> calc_;             // [statement]
  std::vector<std::vector<Step>> lanes_;
  std::vector<Together> together_;                                     // [lane]
  std::map<std::tuple<bool, Actor, std::int64_t>, Lane> connections_;  // [sends][peer][tag]
};

/// Numbers from 0 on for the tags in the file: a tag keeps its value if it fits.
std::map<std::int64_t, int> number_tags(const std::vector<std::vector<Statement>>& ranks, const Words& words) {
  std::map<std::int64_t, int> channels;
  for (const auto& rank : ranks)
    for (const Statement& s : rank) channels.emplace(s.tag, static_cast<int>(std::min<std::int64_t>(s.tag, INT32_MAX)));
  if (channels.empty() || channels.rbegin()->first <= UINT16_MAX) return channels;
  if (channels.size() > UINT16_MAX)
    words.fail(1, fmt::format("expected at most {} different tags, found {}", UINT16_MAX, channels.size()));
  int next = 0;
  for (auto& [tag, channel] : channels) channel = next++;
  return channels;
}

}  // namespace

StoredSchedule import_goal(std::string_view text, const std::string& file, const GoalOptions& options) {
  Words words(text, file);
  words.expect("num_ranks");
  StoredSchedule out;
  out.name = "goal";
  out.names_regions = false;
  out.ranks = out.actors = static_cast<int>(words.number(1, file_limits::ranks));
  std::vector<std::vector<Statement>> ranks(static_cast<std::size_t>(out.ranks));
  std::set<Actor> seen;
  bool places_matter = false;
  while (!words.next().empty()) {
    words.expect("rank");
    const int line = words.line();
    const auto rank = static_cast<Actor>(words.number(0, out.ranks - 1));
    if (!seen.insert(rank).second) words.fail(line, fmt::format("expected each rank once, found {} again", rank));
    RankReader reader(words, out.ranks, rank);
    ranks[static_cast<std::size_t>(rank)] = reader.read();
    places_matter = places_matter || reader.places_matter();
  }
  if (places_matter)
    out.warnings.push_back(file +
                           ": cpu and nic are ignored: calculations of a rank may overlap, and its messages use the "
                           "NIC that the topology determines");

  const std::map<std::int64_t, int> channels = number_tags(ranks, words);
  std::map<std::int64_t, std::uint32_t> chunks;  // [bytes]
  for (const auto& rank : ranks)
    for (const Statement& s : rank)
      if (s.kind != Statement::Kind::calc) chunks.emplace(s.amount, 0);
  Grid& grid = out.grids[static_cast<std::size_t>(Buffer::scratch)];
  for (auto& [bytes, chunk] : chunks) {
    chunk = static_cast<std::uint32_t>(grid.sizes.size());
    grid.sizes.push_back({bytes});
  }
  grid.chunks = static_cast<int>(grid.sizes.size());

  std::vector<std::vector<std::vector<Step>>> lanes;
  std::optional<std::size_t> unordered;  // the first rank with such sends
  for (const auto& rank : ranks) {
    const std::vector<int> order = in_order(rank, words);
    if (!unordered && has_unordered_sends(rank, order)) unordered = lanes.size();
    lanes.push_back(RankLanes(rank, channels, chunks, options.sends_in_turn).lay_out(order));
    if (static_cast<int>(lanes.back().size()) <= out.lanes) continue;
    out.lanes = static_cast<int>(lanes.back().size());
    // Said here, before the lanes of a million more ranks are made.
    if (const std::string mistake =
            too_many_lanes(ranks.size(), lanes.back().size(), "statements that can run at the same time");
        !mistake.empty())
      throw InputError(file, mistake, "use fewer ranks or more `requires`");
  }
  if (unordered && !options.sends_in_turn)
    out.warnings.push_back(
        fmt::format("{}: some sends of a rank are unordered (first at rank {}); they start together and share the "
                    "rank's port, while LogGOPSim runs them one after another; to do the same, set sends to in_turn",
                    file, *unordered));
  out.steps.resize(static_cast<std::size_t>(out.actors) * static_cast<std::size_t>(out.lanes));
  for (Actor rank = 0; rank < out.ranks; ++rank)
    for (std::size_t lane = 0; lane < lanes[static_cast<std::size_t>(rank)].size(); ++lane)
      out.lane(rank, static_cast<Lane>(lane)) = std::move(lanes[static_cast<std::size_t>(rank)][lane]);
  return out;
}

}  // namespace ringsim
