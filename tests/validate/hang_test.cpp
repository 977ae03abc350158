// Why a job hangs, by dumps whose cause is known.
#include "validate/profiles/hang.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/made_dumps.hpp"

namespace hang_test {

using namespace ringsim;
using namespace ringsim::profiles;
using test::made_dump;
using test::MadeEntry;
using test::MadeGroup;

namespace {

using Ranks = std::vector<std::uint32_t>;

MadeGroup all(int n) {
  MadeGroup group{.name = "0", .description = "default_pg", .ranks = {}};
  for (int r = 0; r < n; ++r) group.ranks.push_back(r);
  return group;
}

/// Rank r's dump has these entries.
Hang hang(const std::vector<std::vector<MadeEntry>>& by_rank, std::vector<MadeGroup> groups = {}, int world = 0) {
  if (groups.empty()) groups.push_back(all(world > 0 ? world : static_cast<int>(by_rank.size())));
  std::vector<FlightDump> dumps;
  for (std::size_t r = 0; r < by_rank.size(); ++r) {
    std::vector<MadeGroup> own;
    for (const MadeGroup& group : groups)
      if (std::find(group.ranks.begin(), group.ranks.end(), static_cast<int>(r)) != group.ranks.end())
        own.push_back(group);
    dumps.push_back(test::read_dump("trace_" + std::to_string(r), made_dump(by_rank[r], own)));
  }
  return hang_of(dumps);
}

MadeEntry done(std::int64_t number) { return {.number = number}; }
MadeEntry pending(std::int64_t number, const std::string& state = "scheduled") {
  return {.number = number, .state = state};
}

}  // namespace

TEST_CASE("a rank that has not called what others wait in is named, with its last call") {
  const Hang found = hang({{done(1), done(2), pending(3)}, {done(1), done(2), pending(3)}, {done(1), done(2)}});
  REQUIRE(found.groups.size() == 1);
  const GroupProgress& group = found.groups[0];
  CHECK(group.verdict == GroupVerdict::behind);
  CHECK(group.last == 2);
  CHECK(group.next_call == "all_reduce [[1024]] Float");
  CHECK(group.in(Standing::scheduled) == Ranks{0, 1});
  CHECK(group.in(Standing::not_called) == Ranks{2});
  REQUIRE(found.findings.size() == 1);
  CHECK(found.findings[0] ==
        "rank 2 has not called number 3 of group 0 (default_pg), all_reduce [[1024]] Float; ranks 0, 1 have. No call "
        "is pending on rank 2, so check the program: its last call was all_reduce number 2 of group 0 (default_pg)");
}

TEST_CASE("a rank that waits in another group is a consequence: causes come first") {
  // Rank 1 has not entered group 2, for which rank 3... : 0 waits for 3, 3 waits for 2, 2 for nobody.
  const std::vector<MadeGroup> groups{all(4), {"1", "left", {0, 1}}, {"2", "right", {2, 3}}};
  const MadeEntry right{.number = 1, .state = "scheduled", .group = "2"};
  const Hang found = hang({{done(1), pending(2)}, {done(1), pending(2)}, {done(1)}, {done(1), right}}, groups);
  REQUIRE(found.findings.size() == 3);
  CHECK(found.findings[0].starts_with("rank 2 has not called number 2 of group 0 (default_pg)"));
  CHECK(found.findings[1].starts_with("rank 2 has not called number 1 of group 2 (right)"));
  CHECK(found.findings[2] ==
        "rank 3 has not called number 2 of group 0 (default_pg), all_reduce [[1024]] Float: it waits in all_reduce "
        "number "
        "1 of group 2 (right)");
  CHECK(found.groups.back().name == "1");
  CHECK(found.groups.back().verdict == GroupVerdict::finished);
}

TEST_CASE("different operations, element types and sizes at one number are named with ranks and values") {
  const auto mismatch = [](const MadeEntry& a, const MadeEntry& b) {
    const Hang found = hang({{a}, {a}, {b}});
    return found.findings.empty() ? "" : found.findings.front();
  };
  const MadeEntry base{.state = "scheduled"};
  MadeEntry other = base;
  other.name = "broadcast";
  CHECK(mismatch(base, other) ==
        "group 0 (default_pg), number 1: ranks differ in the operation: ranks 0, 1: all_reduce [[1024]] Float; rank 2: "
        "broadcast [[1024]] Float");
  other = base;
  other.type = "Half";
  CHECK(mismatch(base, other) ==
        "group 0 (default_pg), number 1: ranks differ in the element type: ranks 0, 1: all_reduce [[1024]] Float; rank "
        "2: all_reduce [[1024]] Half");
  other = base;
  other.in = "[[1023]]";
  CHECK(mismatch(base, other) ==
        "group 0 (default_pg), number 1: ranks differ in the elements: ranks 0, 1: all_reduce [[1024]] Float; rank 2: "
        "all_reduce [[1023]] Float");
  // NCCL sees elements, not shapes, and one operation behind several names of PyTorch's.
  other.in = "[[32, 32]]";
  CHECK(mismatch(base, other).starts_with("all ranks have called"));
  MadeEntry gather{.name = "_all_gather_base", .state = "scheduled"}, list{.name = "all_gather", .state = "scheduled"};
  CHECK(mismatch(gather, list).starts_with("all ranks have called"));
  // A scatter has an input on its root alone.
  MadeEntry root{.name = "scatter", .state = "scheduled", .in = "[[8], [8], [8]]", .out = "[[8]]"}, leaf = root;
  leaf.in = "[]";
  CHECK(mismatch(root, leaf).starts_with("all ranks have called"));
}

TEST_CASE("a mismatch that has completed does not hide a rank that is behind") {
  const MadeEntry half{.number = 1, .type = "Half"};
  const Hang found = hang({{done(1), pending(2)}, {half}});
  REQUIRE(found.findings.size() == 2);
  CHECK(found.findings[0].starts_with("rank 1 has not called number 2"));
  CHECK(found.findings[1].starts_with(
      "group 0 (default_pg), number 1: ranks differ in the element type, although it has completed: "));
  const Hang inside = hang({{done(1), pending(2)}, {half, pending(2)}});
  CHECK(inside.groups[0].verdict == GroupVerdict::inside);
  CHECK(inside.findings.at(0).starts_with("all ranks have called number 2"));
  const Hang over = hang({{done(1)}, {half}});
  CHECK(over.groups[0].verdict == GroupVerdict::finished);
  CHECK(over.findings.size() == 1);
}

TEST_CASE("an all_to_all takes out in total what its ranks put in") {
  const auto exchange = [](const std::string& in, const std::string& out) {
    return MadeEntry{.name = "all_to_all", .state = "scheduled", .in = in, .out = out};
  };
  CHECK(hang({{exchange("[[6]]", "[[4]]")}, {exchange("[[2]]", "[[4]]")}}).groups[0].verdict == GroupVerdict::inside);
  const Hang wrong = hang({{exchange("[[6]]", "[[4]]")}, {exchange("[[2]]", "[[5]]")}});
  CHECK(wrong.findings.at(0) ==
        "group 0 (default_pg), number 1: ranks differ in the numbers of input and output elements: rank 0: 6 in, 4 "
        "out; rank 1: 2 in, 5 out");
}

TEST_CASE("all inside, kernels that have not begun, and missing dumps are three answers") {
  const MadeEntry timed{.number = 1, .saw_start = true};
  const auto finding = [&](const std::vector<std::vector<MadeEntry>>& ranks, int world = 0) {
    const Hang found = hang(ranks, {}, world);
    REQUIRE(found.findings.size() == 1);
    return found.findings[0];
  };
  const std::string called = "all ranks have called number 2 of group 0 (default_pg), all_reduce [[1024]] Float";
  CHECK(finding({{timed, pending(2, "started")}, {timed, pending(2, "started")}}) ==
        called + ", and it has not ended: its kernels are running, so check links, NICs and GPUs");
  CHECK(finding({{timed, pending(2, "started")}, {timed, pending(2)}}) ==
        called + "; its kernel has not started on rank 1, where earlier work on the stream has not ended");
  // Without timing nobody knows which kernels have begun.
  CHECK(finding({{done(1), pending(2)}, {done(1), pending(2)}}).find("TORCH_NCCL_ENABLE_TIMING=1") !=
        std::string::npos);
  CHECK(finding({{done(1), pending(2)}, {done(1), pending(2)}}, 4) ==
        "all ranks with a dump have called number 2 of group 0 (default_pg), all_reduce [[1024]] Float; check the "
        "dumps of ranks 2, 3");
  MadeEntry timeout = pending(2);
  timeout.retired = true;
  CHECK(finding({{done(1), timeout}, {done(1)}}).find("; the call timed out on rank 0.") != std::string::npos);
}

TEST_CASE("a job whose dumps agree has no finding; one without entries has finished") {
  CHECK(hang({{done(1), done(2)}, {done(1), done(2)}}).findings.empty());
  CHECK(hang({{}, {}}).findings.empty());
  CHECK(hang({{}, {}}).groups.at(0).verdict == GroupVerdict::finished);
}

TEST_CASE("a dump that begins later tells what has completed before, and one without calls of a group tells nothing") {
  const std::vector<MadeGroup> groups{all(2)};
  const FlightDump late = test::read_dump("trace_0", made_dump({done(8), pending(9)}, groups, 100));
  const FlightDump early = test::read_dump("trace_1", made_dump({done(1), done(2), done(3)}, groups));
  const Hang found = hang_of({late, early});
  CHECK(found.groups[0].last == 3);
  CHECK(found.groups[0].in(Standing::completed) == Ranks{0});  // 4 of rank 0 is not in its dump, but 8 has completed
  CHECK(found.groups[0].in(Standing::not_called) == Ranks{1});
  const FlightDump empty = test::read_dump("trace_1", made_dump({{.group = "1"}}, {all(2), {"1", "", {1}}}, 500));
  const Hang unknown = hang_of({late, empty});
  CHECK(unknown.groups[0].in(Standing::not_in_dump) == Ranks{1});
  CHECK(unknown.groups[0].verdict == GroupVerdict::no_dump);
}

TEST_CASE("a group that is created again counts from 1: calls of the earlier one do not matter") {
  const Hang found = hang({{done(1), done(2), done(1), pending(2)}, {done(1), done(2), done(1)}});
  CHECK(found.groups[0].last == 1);
  CHECK(found.groups[0].verdict == GroupVerdict::behind);
}

TEST_CASE("sends and receives that wait say if the other end is there") {
  const MadeEntry send{.name = "send 0->1", .number = 1, .state = "scheduled", .message = 4};
  const MadeEntry recv{.name = "recv 1<-0", .number = 1, .state = "scheduled", .message = 7};
  const Hang met = hang({{done(1), send}, {done(1), recv}});
  REQUIRE(met.messages.size() == 2);
  CHECK(met.messages[0].is_send);
  CHECK(met.messages[0].peer == 1);
  CHECK(met.messages[0].is_met == true);
  REQUIRE(met.findings.size() == 1);  // said of the sender alone
  CHECK(met.findings[0] ==
        "rank 0 waits in send [[1024]] Float to rank 1 of group 0 (default_pg), which has called recv [[1024]] Float, "
        "and neither has ended: check links, NICs and GPUs, or earlier work on the streams");
  const Hang alone = hang({{done(1), send}, {done(1)}});
  CHECK(alone.findings.at(0) ==
        "rank 0 waits in send [[1024]] Float to rank 1 of group 0 (default_pg), which has no matching receive pending. "
        "No call is pending there at all, so check the program");
  MadeEntry small = recv;
  small.in = small.out = "[[1000]]";
  CHECK(hang({{done(1), send}, {done(1), small}}).findings.at(0) ==
        "rank 0 waits in send [[1024]] Float to rank 1 of group 0 (default_pg), which waits in recv [[1000]] Float: "
        "they differ in the elements");
  MadeEntry half = recv;
  half.type = "Half";
  CHECK(hang({{done(1), send}, {done(1), half}}).messages.at(0).differs == "element type");
  const Hang absent = hang({{done(1), send}}, {}, 2);
  CHECK(!absent.messages.at(0).is_met.has_value());
  CHECK(absent.findings.back().ends_with("; check the dump of rank 1"));
  const MadeEntry nowhere{.name = "send 0->7", .number = 1, .state = "scheduled", .message = 4};
  const Hang outside = hang({{done(1), nowhere}, {done(1)}});
  CHECK(outside.messages.empty());
  CHECK(outside.findings.at(0).ends_with("its dump does not state the other rank"));
}

TEST_CASE("ranks that wait for each other are a cause, with what each waits in and its last call") {
  const std::vector<MadeGroup> groups{all(2), {"1", "b", {0, 1}}};
  const MadeEntry left = pending(1);
  MadeEntry right = left;
  right.group = "1";
  const Hang crossed = hang({{left}, {right}}, groups);
  CHECK(crossed.findings.at(0) ==
        "ranks 0, 1 wait for each other: rank 0 for rank 1 in all_reduce number 1 of group 0 (default_pg); rank 1 for "
        "rank 0 in all_reduce number 1 of group 1 (b). They call in different orders, or a program is stuck after an "
        "asynchronous call; last calls: rank 0 all_reduce number 1 of group 0 (default_pg); rank 1 all_reduce number 1 "
        "of group 1 (b)");
  CHECK(crossed.findings.size() == 3);
  const MadeEntry from_1{.name = "recv 0<-1", .number = 1, .state = "scheduled", .message = 1};
  const MadeEntry from_0{.name = "recv 1<-0", .number = 1, .state = "scheduled", .message = 1};
  CHECK(hang({{from_1}, {from_0}}).findings.at(0).starts_with("ranks 0, 1 wait for each other: rank 0 for"));
  // Rank 0 waits for 1 and 2; 1 waits for 3, which waits in nothing; 2 waits for 0. Each of 1 and 2 is looked at first
  // in one of the two.
  for (const int leads_on : {1, 2}) {
    CAPTURE(leads_on);
    const int closes = 3 - leads_on;
    const std::vector<MadeGroup> four{all(4), {"1", "b", {0, closes}}, {"2", "c", {leads_on, 3}}};
    MadeEntry beyond = left;
    beyond.group = "2";
    std::vector<std::vector<MadeEntry>> by_rank(4);
    by_rank[0] = {left};
    by_rank[static_cast<std::size_t>(closes)] = {right};
    by_rank[static_cast<std::size_t>(leads_on)] = {beyond};
    const Hang found = hang(by_rank, four);
    CHECK(found.findings.at(0).starts_with(closes == 1 ? "ranks 0, 1 wait for each other"
                                                       : "ranks 0, 2 wait for each other"));
  }
  // A chain is no circle.
  CHECK(hang({{left}, {right}, {}}, {all(3), {"1", "b", {1, 2}}}).findings.at(0).starts_with("rank 2 has not called"));
}

TEST_CASE("a rank that went on after an asynchronous call is named with its last call") {
  // Rank 1 waits in group 1 for rank 2, and has since called in group 2, which has ended.
  const std::vector<MadeGroup> groups{all(3), {"1", "b", {1, 2}}, {"2", "c", {1}}};
  MadeEntry waits = pending(1), later = done(1);
  waits.group = "1";
  later.group = "2";
  const Hang found = hang({{pending(1)}, {waits, later}, {}}, groups);
  CHECK(found.findings.back() ==
        "rank 1 has not called number 1 of group 0 (default_pg), all_reduce [[1024]] Float: it waits in all_reduce "
        "number 1 of group 1 (b); its last call was all_reduce number 1 of group 2 (c)");
}

TEST_CASE("a dump without lists of groups belongs to the group that another dump lists") {
  const FlightDump listed = test::read_dump("trace_0", made_dump({pending(1)}, {all(2)}));
  const FlightDump bare = test::read_dump("trace_1", made_dump({pending(1)}, {}));
  const Hang found = hang_of({listed, bare});
  REQUIRE(found.groups.size() == 1);
  CHECK(found.groups[0].verdict == GroupVerdict::inside);
}

TEST_CASE("a dump without entries tells nothing if others have lost some") {
  const FlightDump late = test::read_dump("trace_0", made_dump({done(4), pending(5)}, {all(2)}, 100));
  const FlightDump empty = test::read_dump("trace_1", made_dump({}, {all(2)}));
  const Hang found = hang_of({late, empty});
  CHECK(found.groups[0].in(Standing::not_in_dump) == Ranks{1});
  CHECK(found.findings.at(0).starts_with("it is unknown whether rank 1 has called number 5 of group 0"));
}

TEST_CASE("twenty findings of each kind are listed, and the rest are counted") {
  std::vector<MadeGroup> groups;
  std::vector<std::vector<MadeEntry>> by_rank(2);
  for (int g = 0; g < 23; ++g) {
    groups.push_back({std::to_string(g), "", {0, 1}});
    MadeEntry waits = pending(1);
    waits.group = std::to_string(g);
    by_rank[0].push_back(waits);
  }
  const Hang found = hang(by_rank, groups);
  REQUIRE(found.findings.size() == 21);
  CHECK(found.findings.back() == "3 more like this");
}

}  // namespace hang_test
