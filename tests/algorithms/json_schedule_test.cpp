// ringsim's own schedule files: nothing is lost, and nothing odd is let through.
#include "algorithms/formats/json_schedule.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/composed/buffers.hpp"
#include "algorithms/composed/channels.hpp"
#include "algorithms/formats/msccl_import.hpp"
#include "sim/base/error.hpp"
#include "sim/check/check.hpp"
#include "sim/schedule/collective.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/every_algorithm.hpp"
#include "tests/support/files.hpp"
#include "tests/support/message_page.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/written_schedule.hpp"

namespace json_schedule_test {

using namespace ringsim;
using ringsim::test::replaced;
using namespace ringsim::literals;

namespace {

std::string ring() {
  return test::read_file(std::filesystem::path(test::source_dir()) / "tests/data/schedules/ring-2.json");
}

std::string complaint(const std::string& text) {
  return ringsim::test::complaint([&] { import_json(text, "x.json"); });
}

/// The same chunks and steps, at that size?
void check_equal(const Schedule& a, const Schedule& b) {
  REQUIRE(a.actors == b.actors);
  REQUIRE(a.lanes == b.lanes);
  // Files have no word for chunks in another order than the actors'.
  CHECK(b.symmetry.radices() == (a.symmetry.chunks_as_actors() ? a.symmetry.radices() : std::vector<int>{}));
  for (std::size_t buffer = 0; buffer < n_buffers; ++buffer) {
    REQUIRE(a.layout[buffer].n_chunks() == b.layout[buffer].n_chunks());
    for (std::uint32_t c = 0; c < static_cast<std::uint32_t>(a.layout[buffer].n_chunks()); ++c)
      CHECK(a.layout[buffer].size(c, 1) == b.layout[buffer].size(c, 1));
  }
  const StoredSchedule x = store(a), y = store(b);
  CHECK(same_schedule(x, y));
}

}  // namespace

TEST_CASE("the sample of the documentation is a ring of two") {
  const auto stored = std::make_shared<const StoredSchedule>(import_json(ring(), "ring-2.json"));
  check_equal(schedule_of(stored, 1001_B), [] {
    Schedule s = ring_all_reduce(2, 1001_B);
    s.symmetry = {};
    return s;
  }());
  CHECK(check(schedule_of(stored, 0_B)).proof().slots_needed == 0);
}

TEST_CASE("every schedule of the catalog is written and read without loss, symmetry and proof included, at any size") {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    for (const Bytes size : {0_B, 3_B, 1001_B}) {
      for (const Schedule& schedule : every_algorithm(ranks, size)) {
        CAPTURE(schedule.algorithm);
        CAPTURE(ranks);
        CAPTURE(size.count);
        const StoredSchedule stored = store(schedule);
        const std::string text = export_json(stored);
        const auto back = std::make_shared<const StoredSchedule>(import_json(text, "back.json"));
        CHECK(same_schedule(stored, *back));
        CHECK(back->name == schedule.algorithm);
        CHECK(export_json(*back) == text);
        const Schedule made = schedule_of(back, schedule.collective.bytes);
        check_equal(schedule, made);
        if (schedule.symmetry.chunks_as_actors())
          CHECK(to_string(check(made).proof()) == to_string(check(schedule).proof()));
      }
    }
  }
}

TEST_CASE("what is put into other buffers than it is written for is written and read without loss, over channels too") {
  for (const int ranks : {1, 2, 4, 5}) {
    for (const Schedule& plain : every_algorithm(ranks, 1001_B)) {
      if (plain.collective.op == CollectiveOp::barrier) continue;
      for (const Schedule& whole : {out_of_place(plain), in_place(plain)}) {
        for (const int rounds : {1, 2}) {
          const Schedule schedule = over_channels(whole, {.channels = 1, .rounds = rounds});
          CAPTURE(schedule.algorithm);
          CAPTURE(to_string(schedule.collective.op));
          CAPTURE(ranks);
          const StoredSchedule stored = store(schedule);
          const auto back = std::make_shared<const StoredSchedule>(import_json(export_json(stored), "back.json"));
          CHECK(same_schedule(stored, *back));
          const Schedule made = schedule_of(back, 1001_B);
          check_equal(schedule, made);
          check(made);
          for (Actor rank = 0; rank < ranks; ++rank)
            for (const Buffer buffer : {Buffer::data, Buffer::input, Buffer::output})
              for (int c = 0; c < schedule.layout[static_cast<std::size_t>(buffer)].n_chunks(); ++c) {
                const auto chunk = static_cast<std::uint32_t>(c);
                CHECK((made.collective.after(rank, buffer, chunk).who == Content::Who::nothing) ==
                      (schedule.collective.after(rank, buffer, chunk).who == Content::Who::nothing));
              }
        }
      }
    }
  }
}

TEST_CASE("the switches of a file are a tree of its helpers, or refused at the place where they are not") {
  // Ranks 0 and 1 below switch 4, 2 and 3 below 5, both below 6.
  const std::string text = export_json(store(in_switch_all_reduce(4, 64_B, {4, 4, 5, 5, 6, 6, -1}, 2)));
  const auto with = [&](const std::string& tree) { return complaint(replaced(text, "[4, 4, 5, 5, 6, 6, -1]", tree)); };
  CHECK(complaint(text) == "");
  CHECK(with("[4, 4, 5, 5, -1]") == "x.json: /tree: expected the parent of each of 7 ranks and helpers, found 5");
  CHECK(with("[4, 4, 5, -1, 6, 6, -1]") == "x.json: /tree/3: expected a helper, found -1");
  CHECK(with("[4, 4, 5, 5, 6, 3, -1]") == "x.json: /tree/5: expected a helper, or -1 for the root, found 3");
  CHECK(with("[4, 4, 5, 5, -1, 6, -1]") == "x.json: /tree: expected one root, -1, found 2");
  CHECK(with("[4, 4, 5, 5, 5, 4, -1]") == "x.json: /tree/4: expected a path to the root, found a cycle");
  CHECK(with("[4, 4, 5, 5, 6, 6, 7]") == "x.json: /tree/6: expected a whole number from -1 to 6, found 7");
}

TEST_CASE("a file from one size serves another: its chunks are shares of the message") {
  const std::string text = export_json(store(ring_all_reduce(5, 7_B)));
  const auto back = std::make_shared<const StoredSchedule>(import_json(text, "back.json"));
  check_equal(schedule_of(back, 1_MiB), ring_all_reduce(5, 1_MiB));
}

TEST_CASE("what MSCCL's files hold survives too: scratch, operands, waits, channels, protocol and range of sizes") {
  for (const auto& path : test::files_in(std::filesystem::path(test::source_dir()) / "tests/data/schedules", ".xml")) {
    CAPTURE(path.string());
    const StoredSchedule stored = import_msccl(test::read_file(path), path.string());
    const StoredSchedule back = import_json(export_json(stored), "back.json");
    CHECK(same_schedule(stored, back));
    CHECK(back.name == stored.name);
    CHECK(back.protocol == stored.protocol);
    CHECK(back.min_bytes == stored.min_bytes);
    CHECK(back.max_bytes == stored.max_bytes);
  }
}

TEST_CASE("chunks of listed sizes belong to one message size") {
  WrittenSchedule t(all_reduce(2, 12_B), 2, 1, 2);
  t.like.layout[0] = Layout::of_sizes({10_B, 2_B});
  t.step(0).compute(Picoseconds{1500});
  const StoredSchedule stored = store(t.schedule());
  const auto back = std::make_shared<const StoredSchedule>(import_json(export_json(stored), "back.json"));
  CHECK(same_schedule(stored, *back));
  check_equal(schedule_of(back, 12_B), t.schedule());
  CHECK_THROWS_WITH_AS(schedule_of(back, 13_B),
                       "by hand lists the sizes of its chunks, for a message of 12 B; expected that size, found 13 B",
                       InputError);
}

TEST_CASE("what is not such a file is refused with its place, what was expected and what was found") {
  struct Row {
    std::string what, with;
  };
  const std::vector<Row> rows{
      {"\"ranks\": 2,", "\"ranks\" 2,"},
      {"\"ranks\": 2", "\"ranks\": 1e999"},
      {"\"ranks\": 2", "\"ranks\": 2, \"ranks\": 2"},
      {"\"ranks\"", "\"rank\""},
      {"\"ringsim_schedule\": 1", "\"ringsim_schedule\": 2"},
      {"\"ranks\": 2", "\"ranks\": 2.5"},
      {"all_reduce", "allreduce"},
      {"in_place", "relative"},
      {"all_reduce\", \"placement\": \"in_place\", \"ranks\": 2,\n \"buffers\": {\"data\": {\"chunks\": 2}}",
       "scatter\", \"placement\": \"in_place\", \"ranks\": 2,\n \"buffers\": {\"data\": {\"chunks\": 3}}"},
      {"all_reduce\", \"placement\": \"in_place", "pairs\", \"placement\": \"relative_in_place"},
      {"\"data\"", "\"date\""},
      {"{\"chunks\": 2}", "{\"chunks\": 0}"},
      {"{\"chunks\": 2}", "{\"chunks\": 2, \"sizes\": [1]}"},
      {"\"ranks\": 2", "\"ranks\": 3"},
      {"\"ranks\": 2", "\"ranks\": 2, \"lanes\": 2"},
      {"send data[0] to 1", "sent data[0] to 1"},
      {"send data[0] to 1", "send data[2] to 1"},
      {"send data[0] to 1", "send data[1..0] to 1"},
      {"send data[0] to 1", "send data[0] to 2"},
      {"send data[0] to 1", "send data[0] from 1"},
      {"send data[0] to 1", "send data[0] to 1 now"},
      {"send data[0] to 1", "after 1 steps of lane 1"}};
  CHECK(complaint(ring()) == "");
  ringsim::test::MessagePage page("schedule_json");
  for (const Row& row : rows) page.add(row.what + " -> " + row.with, complaint(replaced(ring(), row.what, row.with)));
  page.check();
}

}  // namespace json_schedule_test
