// Matching of ranks, clocks of hosts, and waiting told from transfer, on jobs whose truth is known.
#include "validate/profiles/waiting.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/support/made_profiles.hpp"
#include "validate/profiles/common_subsequence.hpp"

namespace profile_waiting_test {

using namespace ringsim;
using namespace ringsim::profiles;
using test::made_trace;
using test::MadeKernel;
using test::read_texts;

namespace {

/// The length of a longest common subsequence by the textbook's table.
std::size_t naive_length(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> best(a.size() + 1, std::vector<std::size_t>(b.size() + 1, 0));
  for (std::size_t i = 1; i <= a.size(); ++i)
    for (std::size_t j = 1; j <= b.size(); ++j)
      best[i][j] = a[i - 1] == b[j - 1] ? best[i - 1][j - 1] + 1 : std::max(best[i - 1][j], best[i][j - 1]);
  return best[a.size()][b.size()];
}

const Row& row_of(const Account& account, CallOp op) {
  for (const Row& row : account.rows)
    if (row.op == op) return row;
  FAIL("no such row");
  return account.rows.front();
}

/// Kernels of as many ranks: [rank].
using Job = std::vector<std::vector<MadeKernel>>;

Profile profile_of(const Job& job, const std::vector<std::string>& hosts = {}) {
  std::vector<std::pair<std::string, std::string>> files;
  for (std::uint32_t rank = 0; rank < job.size(); ++rank)
    files.emplace_back(hosts.empty() ? fmt::format("rank{}.json", rank)
                                     : fmt::format("{}_{}.17.pt.trace.json", hosts[rank], 100 + rank),
                       made_trace(rank, static_cast<std::uint32_t>(job.size()), job[rank]));
  return read_texts(files);
}

}  // namespace

TEST_CASE("the common subsequence is as long as the naive one, in order, and of equal things") {
  std::mt19937 random(7);
  for (int run = 0; run < 2000; ++run) {
    std::string a, b;
    for (std::size_t i = random() % 12; i > 0; --i) a += static_cast<char>('a' + random() % 3);
    for (std::size_t i = random() % 12; i > 0; --i) b += static_cast<char>('a' + random() % 3);
    CAPTURE(a);
    CAPTURE(b);
    bool given_up = true;
    const auto pairs = common_subsequence(
        a.size(), b.size(), [&](std::size_t i, std::size_t j) { return a[i] == b[j]; }, 100, given_up);
    CHECK(!given_up);
    REQUIRE(pairs.size() == naive_length(a, b));
    for (std::size_t k = 0; k < pairs.size(); ++k) {
      CHECK(a.at(pairs[k].first) == b.at(pairs[k].second));
      if (k > 0) CHECK((pairs[k].first > pairs[k - 1].first && pairs[k].second > pairs[k - 1].second));
    }
  }
  bool given_up = false;
  const auto equal = [](std::size_t, std::size_t) { return false; };
  CHECK(common_subsequence(5, 5, equal, 9, given_up).empty());  // ten things have no partner
  CHECK(given_up);
  CHECK(common_subsequence(5, 5, equal, 10, given_up).empty());
  CHECK(!given_up);
}

// Rank 1 is 300 us late for the first call, rank 0 1 us for the second and the third, and nobody for the fourth.
TEST_CASE("the late rank is the one that causes most of the waiting, not the one that is last most often") {
  const auto profile = [](double lateness) {
    return profile_of({{{.begin = 1000, .duration = 500, .elements = 64},
                        {.begin = 2000 + lateness, .duration = 200, .elements = 64},
                        {.begin = 3001, .duration = 200, .elements = 64},
                        {.begin = 4000, .duration = 200, .elements = 64}},
                       {{.begin = 1300, .duration = 200, .elements = 64},
                        {.begin = 2000, .duration = 200 + lateness, .elements = 64},
                        {.begin = 3000, .duration = 201, .elements = 64},
                        {.begin = 4000, .duration = 200, .elements = 64}}});
  };
  const Row row = account_of(profile(1), 0).rows.front();
  CHECK(row.split == 4);
  CHECK(row.late_rank() == 1U);
  CHECK(row.last.at(0) == 2);
  CHECK(row.last.at(1) == 1);
  CHECK(row.caused_ns.at(1) == 300'000);
  // Rank 0 causes 301 of 601 us, half of it.
  CHECK(!account_of(profile(300), 0).rows.front().late_rank());
}

TEST_CASE("wait is last arrival - own arrival, transfer is last end - last arrival") {
  // Rank 1 arrives 300 us after rank 0; the data takes 200 us.
  const Profile profile = profile_of(
      {{{.begin = 1000, .duration = 500, .elements = 64}}, {{.begin = 1300, .duration = 199, .elements = 64}}});
  const Account account = account_of(profile, 0);
  REQUIRE(account.rows.size() == 1);
  const Row& row = account.rows[0];
  CHECK(row.split == 1);
  CHECK(!row.is_partial);
  CHECK(row.transfer_ns == 200'000);
  CHECK(row.longest_wait_ns == 300'000);
  CHECK(row.wait_ns == 150'000);
  CHECK(row.late_rank() == 1U);
  CHECK(row.waits_much());
  REQUIRE(account.ranks.size() == 2);
  CHECK(account.ranks[0].wait_ns == 300'000);
  CHECK(account.ranks[1].wait_ns == 0);
  CHECK(account.ranks[1].last == 1);
}

TEST_CASE("no rank is the last one if several arrive last together") {
  const Account account = account_of(profile_of({{{.begin = 1000, .duration = 200, .elements = 64}},
                                                 {{.begin = 1000, .duration = 200, .elements = 64}}}),
                                     0);
  CHECK(account.rows.at(0).split == 1);
  CHECK(account.rows.at(0).last.empty());
  for (const auto& rank : account.ranks) CHECK(rank.last == 0);
}

TEST_CASE("a broadcast, a send and one rank alone are not split") {
  const auto account_of_op = [](const std::string& op) {
    return account_of(profile_of({{{.begin = 0, .duration = 500, .op = op, .elements = 64}},
                                  {{.begin = 300, .duration = 200, .op = op, .elements = 64}}}),
                      0);
  };
  const Account broadcast = account_of_op("broadcast");
  CHECK(broadcast.matching.matched == 2);
  CHECK(broadcast.rows.at(0).split == 0);
  const Account send = account_of_op("send");
  CHECK(send.matching.matched == 0);
  CHECK(send.matching.point_to_point == 2);
  CHECK(send.rows.at(0).split == 0);
  const Account alone = account_of(read_texts({{"rank0.json", made_trace(0, 2, {{.duration = 5, .elements = 1}})}}), 0);
  CHECK(alone.rows.at(0).split == 0);
  CHECK(alone.matching.no_partner == 1);
}

TEST_CASE("if a rank of the group has no file, waits are at least and the transfer at most that") {
  const Profile profile =
      read_texts({{"rank0.json", made_trace(0, 4, {{.begin = 0, .duration = 500, .elements = 64}})},
                  {"rank1.json", made_trace(1, 4, {{.begin = 300, .duration = 200, .elements = 64}})}});
  const Account account = account_of(profile, 0);
  CHECK(account.rows.at(0).split == 1);
  CHECK(account.rows.at(0).is_partial);
}

TEST_CASE("calls are matched by group, operation and number, whatever their order in the files") {
  // Rank 1's window begins two calls later; equal sizes say nothing, numbers do.
  std::vector<MadeKernel> first, second;
  for (int i = 0; i < 10; ++i) first.push_back({.begin = 1000.0 * i, .duration = 100, .elements = 64, .sequence = i});
  for (int i = 9; i >= 2; --i)
    second.push_back({.begin = 1000.0 * i + 10, .duration = 90, .elements = 64, .sequence = i});
  const Account account = account_of(profile_of({first, second}), 0);
  CHECK(account.matching.matched == 16);
  CHECK(account.matching.no_partner == 2);
  CHECK(row_of(account, CallOp::all_reduce).longest_wait_ns == doctest::Approx(10'000));
}

TEST_CASE("without numbers calls are aligned by size and order, and on one host by time") {
  // Ten equal all-reduces 1 ms apart; rank 1's window begins at the third. Order alone would match it with the first.
  std::vector<MadeKernel> first, second;
  for (int i = 0; i < 10; ++i) first.push_back({.begin = 1000.0 * i, .duration = 100, .elements = 64});
  for (int i = 2; i < 12; ++i) second.push_back({.begin = 1000.0 * i + 10, .duration = 90, .elements = 64});
  const Account account = account_of(profile_of({first, second}), 0);
  CHECK(account.matching.matched == 16);
  CHECK(account.matching.no_partner == 4);
  CHECK(account.rows.at(0).longest_wait_ns == doctest::Approx(10'000));
  // On two hosts, whose clocks may differ, order is all there is: all ten meet.
  CHECK(account_of(profile_of({first, second}, {"a", "b"}), 0).matching.matched == 20);
}

TEST_CASE("calls of one number whose sizes differ do not meet, and are a finding") {
  const Account account = account_of(profile_of({{{.begin = 0, .duration = 100, .elements = 64, .sequence = 5}},
                                                 {{.begin = 0, .duration = 100, .elements = 65, .sequence = 5}}}),
                                     0);
  CHECK(account.matching.matched == 0);
  REQUIRE(account.matching.findings.size() == 1);
  CHECK(account.matching.findings[0] ==
        "all_reduce number 5 of group \"0-1\": its ranks state different sizes, from 256 to 260 bytes");
  // Those of an all-to-all may differ.
  const Account all_to_all =
      account_of(profile_of({{{.begin = 0, .duration = 100, .op = "all_to_all", .elements = 64, .sequence = 5}},
                             {{.begin = 0, .duration = 100, .op = "all_to_all", .elements = 65, .sequence = 5}}}),
                 0);
  CHECK(all_to_all.matching.matched == 2);
}

TEST_CASE("groups of equal size that do the same share a row, and different groups do not meet") {
  Job job(4);
  for (std::uint32_t rank = 0; rank < 4; ++rank)
    job[rank].push_back({.begin = 10.0 * rank,
                         .duration = 100,
                         .elements = 64,
                         .group = rank < 2 ? std::vector<std::uint32_t>{0, 1} : std::vector<std::uint32_t>{2, 3}});
  const Account account = account_of(profile_of(job), 0);
  REQUIRE(account.rows.size() == 1);
  CHECK(account.rows[0].collectives == 2);
  CHECK(account.rows[0].group_size == 2);
  CHECK(account.rows[0].longest_wait_ns == 10'000);
}

TEST_CASE("hosts: as said, by the files' names, by their GPUs, else one") {
  const Job job(4, {{.begin = 0, .duration = 1, .elements = 1}});
  CHECK(hosts_of(profile_of(job), 2).count == 2);
  CHECK(hosts_of(profile_of(job), 0).count == 1);
  const Hosts named = hosts_of(profile_of(job, {"a", "a", "b", "c"}), 0);
  CHECK(named.count == 3);
  CHECK(named.of(0) == named.of(1));
  CHECK(named.of(2) != named.of(3));
  Profile counted = profile_of(job);
  for (ProfileSource& source : counted.sources) source.gpus_on_host = 2;
  CHECK(hosts_of(counted, 0).count == 2);
}

TEST_CASE("without moments the shortest kernel is the transfer, at most, and its rank the last one") {
  const auto line = [](int rank, int us) {
    return fmt::format(
        R"({{"header": {{"id": "0x1", "rank": {}, "n_ranks": 3, "nnodes": 3}}, "metadata": {{"inspector_output_format_version": "v4.0", "hostname": "h{}", "pid": 1}}, "coll_perf": {{"coll": "AllReduce", "coll_sn": 1, "coll_msg_size_bytes": 1024, "coll_exec_time_us": {}}}}})"
        "\n",
        rank, rank, us);
  };
  const Account account = account_of(read_texts({{"a", line(0, 900)}, {"b", line(1, 500)}, {"c", line(2, 700)}}), 0);
  REQUIRE(account.rows.size() == 1);
  CHECK(account.rows[0].is_by_shortest);
  CHECK(account.rows[0].transfer_ns == 500'000);
  CHECK(account.rows[0].longest_wait_ns == 400'000);
  CHECK(account.rows[0].late_rank() == 1U);
}

// The job: 4 ranks on two hosts, 400 steps of 10 ms. In each step
//   all_reduce of 4 KiB, 30 us: small, so the clocks are found by it;
//   all_reduce of 16 MiB, 400 us: rank 2 arrives 500 us late;
//   all_gather of 64 MiB, 3000 us: a slow link;
//   reduce_scatter of 8 MiB, 300 us, and 450 us in every second step, in which a kernel of compute runs next to it.
// Ranks arrive within 20 us, small collectives end within 1 us and large ones within 0.5 % of their transfer. Host 1's
// clock is 21.7 ms ahead and gains 18 ppm.
TEST_CASE(
    "a job on two hosts with skewed clocks: waits within 2 us, transfers within 1 %, the late rank, the slow link, "
    "compute") {
  std::mt19937 random(20261127);
  const auto uniform = [&](double least, double most) {
    return std::uniform_real_distribution<double>(least, most)(random);
  };
  const double start = 1e9;  // us: what clocks differ by must not depend on small numbers
  const auto of_host = [&](std::size_t rank, double t) {
    return rank < 2 ? t : start + (t - start) * (1 + 18e-6) + 21'700;
  };
  Job job(4);
  std::map<std::string, std::vector<double>> waits;  // of rank 0, the truth
  std::int64_t sequence = 0;
  for (int step = 0; step < 400; ++step) {
    const double t = start + 10'000.0 * step;
    const auto add = [&](const std::string& op, std::int64_t elements, double at, double transfer, double spread,
                         double late) {
      std::vector<double> arrivals;
      for (std::size_t rank = 0; rank < 4; ++rank) arrivals.push_back(at + uniform(0, 20) + (rank == 2 ? late : 0));
      const double last = *std::max_element(arrivals.begin(), arrivals.end());
      const std::size_t last_to_end = random() % 4;
      for (std::size_t rank = 0; rank < 4; ++rank) {
        const double end = last + transfer - (rank == last_to_end ? 0 : uniform(0, spread));
        const double begin = of_host(rank, arrivals[rank]);
        job[rank].push_back({.begin = begin,
                             .duration = of_host(rank, end) - begin,
                             .op = op,
                             .elements = elements,
                             .sequence = sequence});
      }
      ++sequence;
      waits[op + std::to_string(elements)].push_back(last - arrivals[0]);
    };
    add("allreduce", 1024, t, 30, 1, 0);
    add("allreduce", 4 << 20, t + 1000, 400, 2, 500);
    add("_allgather_base", 4 << 20, t + 3000, 3000, 15, 0);
    const bool next_to_compute = step % 2 == 0;
    add("_reduce_scatter_base", 2 << 20, t + 8000, next_to_compute ? 450 : 300, 1.5, 0);
    if (next_to_compute)
      for (std::size_t rank = 0; rank < 4; ++rank)
        job[rank].push_back({.begin = of_host(rank, t + 7900), .duration = 1000, .op = "", .stream = 7});
  }
  const Account account = account_of(profile_of(job, {"a", "a", "b", "b"}), 0);
  REQUIRE(account.hosts.count == 2);
  REQUIRE(account.clocks[1].is_known);
  CHECK(account.matching.matched == 4 * 1600);
  REQUIRE(account.rows.size() == 4);
  const auto mean = [](const std::vector<double>& values) {
    double sum = 0;
    for (const double each : values) sum += each;
    return sum / static_cast<double>(values.size());
  };
  const auto by_bytes = [&](std::int64_t bytes) -> const Row& {
    for (const Row& row : account.rows)
      if (row.bytes == bytes) return row;
    FAIL("no such row");
    return account.rows[0];
  };
  struct Truth {
    std::int64_t bytes;
    const char* key;
    double transfer_us;
  };
  for (const Truth& truth : {Truth{4096, "allreduce1024", 30}, Truth{16 << 20, "allreduce4194304", 400},
                             Truth{64 << 20, "_allgather_base4194304", 3000}}) {
    CAPTURE(truth.bytes);
    const Row& row = by_bytes(truth.bytes);
    CHECK(row.split == 400);
    const double waited = row.waits_ns.at(0) / 1e3 / 400;
    CHECK(std::abs(waited - mean(waits.at(truth.key))) < 2);
    CHECK(std::abs(row.transfer_ns / 1e3 - truth.transfer_us) < std::max(0.01 * truth.transfer_us, 1.0));
  }
  const Row& late = by_bytes(16 << 20);
  CHECK(late.waits_much());
  CHECK(late.late_rank() == 2U);
  CHECK(late.last.at(2) == 400);
  const Row& unhurried = by_bytes(64 << 20);
  CHECK(!unhurried.waits_much());
  CHECK(!unhurried.late_rank());
  const Row& slowed = by_bytes(8 << 20);
  REQUIRE(slowed.overlapped_ratio);
  CHECK(*slowed.overlapped_ratio == doctest::Approx(1.5).epsilon(0.01));
  // 21.7 ms ahead: that is subtracted. 4 s at 18 ppm are 72 us.
  CHECK(account.clocks[1].drift * 1e6 == doctest::Approx(-18).epsilon(0.02));
  CHECK(account.clocks[1].residual_ns < 1000);
}

TEST_CASE("hosts that share no group are put on one clock through a third") {
  // Hosts a, b, c of one rank each; a and c share a group, and b and c. b is 5 ms ahead of a, and c 9 ms behind.
  const double ahead[] = {0, 5000, -9000};
  Job job(3);
  for (int i = 0; i < 20; ++i) {
    const auto add = [&](std::uint32_t rank, const std::vector<std::uint32_t>& group, double at) {
      job[rank].push_back({.begin = at + ahead[rank], .duration = 100, .elements = 64, .sequence = i, .group = group});
    };
    for (const std::uint32_t rank : {0U, 2U}) add(rank, {0, 2}, 100'000 + 1000.0 * i);
    for (const std::uint32_t rank : {1U, 2U}) add(rank, {1, 2}, 100'500 + 1000.0 * i);
  }
  const Account account = account_of(profile_of(job, {"a", "b", "c"}), 0);
  REQUIRE(account.clocks.size() == 3);
  for (const Clock& clock : account.clocks) CHECK(clock.is_known);
  CHECK(account.clocks[1].offset_ns == doctest::Approx(-5e6));
  CHECK(account.clocks[2].offset_ns == doctest::Approx(9e6));
  CHECK(account.rows.at(0).longest_wait_ns < 10);
}

TEST_CASE("clocks that no collective connects are not known, and clocks that are too rough give no split") {
  // Two hosts that share no group.
  Job job(4);
  for (std::uint32_t rank = 0; rank < 4; ++rank)
    job[rank].push_back({.begin = 10.0 * rank,
                         .duration = 100,
                         .elements = 64,
                         .group = rank < 2 ? std::vector<std::uint32_t>{0, 1} : std::vector<std::uint32_t>{2, 3}});
  const Account apart = account_of(profile_of(job, {"a", "a", "b", "b"}), 0);
  CHECK(!apart.clocks[1].is_known);
  // Ends that vary by 50 us around a line leave no split of a transfer of 30 us.
  std::mt19937 random(3);
  Job rough(2);
  for (int i = 0; i < 40; ++i) {
    rough[0].push_back({.begin = 1000.0 * i, .duration = 30, .elements = 64, .sequence = i});
    rough[1].push_back(
        {.begin = 1000.0 * i + static_cast<double>(random() % 100), .duration = 30, .elements = 64, .sequence = i});
  }
  const Account account = account_of(profile_of(rough, {"a", "b"}), 0);
  REQUIRE(account.rows.size() == 1);
  CHECK(account.rows[0].clock_is_too_rough);
  CHECK(account.rows[0].split == 0);
}

TEST_CASE("groups that lie alike on nodes have one placement") {
  CHECK(placement_of({0, 1, 2, 3}, 4) == "0.0 0.1 0.2 0.3");
  CHECK(placement_of({4, 5, 6, 7}, 4) == "0.0 0.1 0.2 0.3");
  CHECK(placement_of({1, 5}, 4) == "0.1 1.1");
  CHECK(placement_of({9, 13}, 4) == "0.1 1.1");
}

}  // namespace profile_waiting_test
