// Chakra traces as profiles.
#include "validate/profiles/chakra.hpp"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/support/complaint.hpp"
#include "tests/support/made_chakra.hpp"
#include "tests/support/made_profiles.hpp"
#include "tests/support/packed.hpp"
#include "validate/profiles/waiting.hpp"

namespace profile_chakra_test {

using namespace ringsim;
using namespace ringsim::profiles;
using namespace ringsim::test;

namespace {

/// A rank that begins its all-reduce of 4 KiB at `begin` and ends it at `end`, in us.
std::string rank_of_two(std::uint64_t begin, std::uint64_t end) {
  MadeNode call = made_call(5, 4096, {4}, 0, "0");
  call.start_us = begin;
  call.duration_us = end - begin;
  return made_chakra({{.id = 4, .duration_us = 7, .start_us = 10}, call});
}

}  // namespace

TEST_CASE("the collectives of Chakra traces of two ranks give waiting and transfer") {
  if (!traces::has_chakra()) return;
  const Profile profile = read_texts({{"job.0.et", rank_of_two(100, 190)}, {"job.1.et", rank_of_two(150, 190)}},
                                     {.kind = AssumedGroups::Kind::all, .n = 0, .listed = {}});
  CHECK(profile.sources.at(1).rank == 1);
  CHECK(profile.sources.at(0).format == "Chakra 0.0.4");
  const Account account = account_of(profile, 0);
  REQUIRE(account.rows.size() == 1);
  const Row& row = account.rows.front();
  CHECK(row.op == CallOp::all_reduce);
  CHECK(row.bytes == 4096);
  CHECK(row.group_size == 2);
  CHECK(row.transfer_ns == 40'000);
  CHECK(row.longest_wait_ns == 50'000);
  CHECK(row.last.at(1) == 1);
}

TEST_CASE("comm_size of an all_gather is one rank's share, and groups are those of the metadata") {
  if (!traces::has_chakra()) return;
  const MadeNode groups{.id = 1, .name = "## process_group:init ##", .type = made_metadata};
  traces::ChakraMessage message{.id = 1, .name = groups.name, .type = made_metadata};
  message.input_values = R"(['[{"pg_name": "tp", "ranks": [0, 1, 2, 3]}]'])";
  std::string text = made_head();
  traces::write_chakra_node(message, text);
  text += made_message(made_call(2, 1000, {}, 2, "tp")) + made_message(made_call(3, 1000, {}, 7, "tp"));
  const Profile profile = read_texts({{"job.2.et", text}});
  REQUIRE(profile.calls.size() == 2);
  CHECK(profile.calls[0].op == CallOp::all_gather);
  CHECK(profile.calls[0].bytes == 4000);
  CHECK(profile.calls[1].op == CallOp::reduce_scatter);
  CHECK(profile.calls[1].bytes == 1000);
  CHECK(profile.groups.at(profile.calls[0].group).members == std::vector<std::uint32_t>{0, 1, 2, 3});
  CHECK(profile.sources.front().rank == 2);
}

TEST_CASE("a Chakra trace without start times has durations, and says so") {
  if (!traces::has_chakra()) return;
  MadeNode call = made_call(5, 4096);
  call.duration_us = 30;
  const Profile profile = read_texts({{"rank7.et", made_chakra({call})}});
  CHECK(profile.sources.front().rank == 7);
  CHECK_FALSE(profile.calls.front().has(Call::is_timed));
  CHECK(profile.calls.front().duration_ns() == 30'000);
  const std::vector<std::string>& about = profile.sources.front().about;
  CHECK(about.back() == "nodes have no start times, so waiting and CPU gaps are unknown");
  CHECK(about.at(about.size() - 2) == "no task waits for 1 of 1 collectives");
}

TEST_CASE("a Chakra trace is recognized packed, or under another name; without a rank it asks for one") {
  if (!traces::has_chakra()) return;
  const std::string text = rank_of_two(100, 190);
  CHECK(read_texts({{"job.3.et.gz", packed(text)}}).sources.front().rank == 3);
  CHECK(read_texts({{"3.bin", text}}).sources.front().rank == 3);
  CHECK(complaint([&] {
          read_texts({{"job.et", text}});
        }) ==
        "job.et: expected the rank in the file's name, as in job.3.et, found none\n  hint: set the rank with --rank "
        "job.et=N");
  for (const char* name : {"llama3.et", "step2.et"}) {
    CAPTURE(name);
    CHECK(complaint([&] {
            read_texts({{name, text}});
          }).find("expected the rank in the file's name") != std::string::npos);
  }
  CHECK(complaint([&] {
          read_texts({{"job.20261128.et", text}});
        }).find("expected a rank below 65536, found 20261128") != std::string::npos);
  CHECK(complaint([&] {
          read_texts({{"job.0.et", R"({"traceEvents": []})"}});
        }).find("chakra_converter") != std::string::npos);
}

}  // namespace profile_chakra_test
