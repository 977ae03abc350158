// MSCCL XML in: every type of step, what is proved of public files, and what is refused with its line.
#include "algorithms/formats/msccl_import.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/formats/thread_blocks.hpp"
#include "sim/base/error.hpp"
#include "sim/check/check.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/files.hpp"
#include "tests/support/message_page.hpp"
#include "tests/support/naive/interpreter.hpp"
#include "tests/support/paths.hpp"

namespace msccl_import_test {

using namespace ringsim;
using ringsim::test::replaced;

namespace {

std::filesystem::path schedules() { return std::filesystem::path(test::source_dir()) / "tests/data/schedules"; }
std::filesystem::path shared() { return std::filesystem::path(test::source_dir()) / "../shared/data/msccl"; }
std::string text_of(const std::string& name) { return test::read_file(schedules() / name); }

Schedule schedule(const std::string& text, Bytes bytes = {0}) {
  const auto stored = std::make_shared<const StoredSchedule>(import_msccl(text, "x.xml"));
  return schedule_of(stored, bytes.count > 0 ? bytes : even_size(*stored));
}

std::string complaint(const std::string& text) {
  return ringsim::test::complaint([&] { check(schedule(text)); });
}

std::string chain() { return text_of("chain-3.xml"); }

}  // namespace

// Gpu 0 receives one chunk, but gpu 1 sends two: in thread block 1, whose rcs stands for two steps, the second of them.
TEST_CASE("an error of the proof names thread block, step and line of the file") {
  const std::string text =
      replaced(chain(), R"(<step s="0" type="r" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="2")",
               R"(<step s="0" type="r" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1")");
  const std::string said = complaint(text);
  CHECK(said.find("rank 0, lane 1, step 0, operation 0 (receive") != std::string::npos);
  CHECK(said.find("; in the file thread block 1, step 0, line 8)") != std::string::npos);
  CHECK(said.find("rank 1, lane 1, step 1, operation 0 (send") != std::string::npos);
  CHECK(said.find("; in the file thread block 1, step 0, line 16)") != std::string::npos);
  // Other steps than those of the file have no place in it.
  const auto stored = std::make_shared<const StoredSchedule>(import_msccl(text, "x.xml"));
  CHECK(as_thread_blocks(*stored).places.empty());
}

TEST_CASE("each type of step becomes what MSCCL's interpreter does, and waits count our steps") {
  const StoredSchedule s = import_msccl(chain(), "chain-3.xml");
  CHECK(s.name == "chain");
  CHECK(s.protocol == "Simple");
  CHECK(s.op == CollectiveOp::all_reduce);
  CHECK(s.lanes == 2);
  CHECK(s.grids[0] == Grid{.chunks = 2, .of = 2, .sizes = {}});
  // Gpu 1 has no scratch of its own; rrs takes a room of two chunks.
  CHECK(s.grids[static_cast<std::size_t>(Buffer::scratch)] == Grid{.chunks = 2, .of = 2, .sizes = {}});
  const auto& rrs = s.lane(1, 0);
  REQUIRE(rrs.size() == 2);
  CHECK(rrs[0].ops[0].what == Do::receive_add);
  CHECK(rrs[0].ops[0].peer == 0);
  CHECK(rrs[0].ops[0].operand == chunks(0, 2));
  CHECK(rrs[0].ops[0].region == Region{Buffer::scratch, 0, 2});
  CHECK(rrs[1].ops[0].what == Do::send);
  CHECK(rrs[1].ops[0].peer == 2);
  CHECK(rrs[1].ops[0].region == Region{Buffer::scratch, 0, 2});
  const auto& rcs = s.lane(1, 1);
  REQUIRE(rcs.size() == 2);
  REQUIRE(rcs[0].waits.size() == 1);  // for step 0 of thread block 0: two steps of ours
  CHECK(rcs[0].waits[0].lane == 0);
  CHECK(rcs[0].waits[0].steps == 2);
  CHECK(rcs[0].ops[0].channel == 1);
  CHECK(rcs[1].waits.empty());
}

TEST_CASE("a nop's wait goes to the next step, and of several waits for one block the latest counts") {
  const StoredSchedule s = import_msccl(text_of("reduce-scatter-3.xml"), "reduce-scatter-3.xml");
  const auto& adds = s.lane(2, 2);
  REQUIRE(adds.size() == 3);  // cpy, re, re
  CHECK(adds[0].ops[0].what == Do::copy);
  CHECK(adds[0].ops[0].operand == Region{Buffer::input, 2, 1});
  CHECK(adds[0].ops[0].region == Region{Buffer::output, 0, 1});
  REQUIRE(adds[1].waits.size() == 2);
  CHECK(adds[1].waits[0].lane == 0);
  CHECK(adds[1].waits[1].lane == 1);
  CHECK(adds[1].waits[1].steps == 2);
  CHECK(adds[2].waits.empty());
  // A nop that others wait for, or that is a block's last step, is a step.
  const std::string waited =
      replaced(text_of("reduce-scatter-3.xml"), "depid=\"1\" deps=\"1\"", "depid=\"2\" deps=\"1\"");
  CHECK(import_msccl(waited, "w.xml").lane(0, 2).size() == 4);
}

TEST_CASE(
    "own samples are proved, at sizes that their chunks divide, and execute with the right numbers in any order") {
  int n = 0;
  for (const auto& path : test::files_in(schedules(), ".xml")) {
    CAPTURE(path.string());
    const std::string text = test::read_file(path);
    for (const std::int64_t size : {12, 1200, 120 << 20}) {
      CAPTURE(size);
      const Schedule s = schedule(text, Bytes{size});
      const CheckedSchedule checked = check(s);
      CHECK(checked.proof().by == Proof::By::all_ranks);
      // The interpreter has no slots: it executes what needs none.
      if (checked.proof().slots_needed == 0)
        for (std::uint64_t seed = 0; seed < 5; ++seed) CHECK(interpret(s, seed) == Outcome::right);
    }
    ++n;
  }
  CHECK(n == 5);
}

TEST_CASE("public MSCCL files are all proved for the collective that they name") {
  const std::map<std::string, int> slots{{"astra_ring_8.xml", 1}, {"ncv4_ar_hier_12_Simple.xml", 1}};  // the others: 0
  for (const auto& path : test::files_in(shared(), ".xml")) {  // none if there is no such folder
    CAPTURE(path.string());
    const Schedule s = schedule(test::read_file(path));
    const Proof proof = check(s).proof();
    CHECK(proof.by == Proof::By::all_ranks);
    const auto known = slots.find(path.filename().string());
    CHECK(proof.slots_needed == (known == slots.end() ? 0 : known->second));
    if (proof.slots_needed == 0) CHECK(interpret(s, 7) == Outcome::right);
  }
}

TEST_CASE("without one of its waits a file is refused, or needs it not: the proof sees waits") {
  // Each wait of the samples, dropped by itself. In the chain all are needed.
  const std::string text = chain();
  int refused = 0, n = 0;
  for (std::size_t at = text.find("depid=\"0\""); at != std::string::npos; at = text.find("depid=\"0\"", at + 1)) {
    std::string without = text;
    without.replace(at, std::string("depid=\"0\" deps=\"0\"").size(), "depid=\"-1\" deps=\"-1\"");
    ++n;
    if (complaint(without) != "") ++refused;
  }
  CHECK(n == 3);
  CHECK(refused == 3);
}

TEST_CASE("in place, an all-gather's input lies within its output, at the gpu's own block") {
  const StoredSchedule s = import_msccl(text_of("all-gather-2.xml"), "all-gather-2.xml");
  CHECK(s.placement == Placement::in_place);
  CHECK(s.lane(1, 0)[0].ops[0].region == chunks(2, 2));  // i0 of gpu 1
  CHECK(s.lane(1, 0)[1].ops[0].region == chunks(0, 2));
}

TEST_CASE("a size that the chunks do not divide is refused where buffers are cut differently, and taken where not") {
  const auto parts = std::make_shared<const StoredSchedule>(import_msccl(text_of("reduce-scatter-3.xml"), "r.xml"));
  CHECK_THROWS_WITH_AS(schedule_of(parts, Bytes{13}),
                       "expected a size that the 3 chunks of parts divide, found 13 B\n  hint: the next valid size is "
                       "15 B; MSCCL's own runtime has the same restriction",
                       InputError);
  const auto pair = std::make_shared<const StoredSchedule>(import_msccl(text_of("pair-2.xml"), "pair-2.xml"));
  CHECK_NOTHROW(check(schedule_of(pair, Bytes{13})));
  CHECK_NOTHROW(check(schedule_of(pair, Bytes{0})));
}

TEST_CASE("three mutilated files are refused with the place") {
  // A step's line lost: the numbers of later steps do not follow.
  const std::string pair = text_of("pair-2.xml");
  const std::size_t line = pair.find("      <step s=\"1\""), end = pair.find('\n', line) + 1;
  CHECK(complaint(pair.substr(0, line) + pair.substr(end)) ==
        "x.xml:5: expected the steps of a thread block in order, with 1 here, found 2");
  // The end lost.
  CHECK(complaint(pair.substr(0, pair.find("</tb>"))) == "x.xml:7: not XML: Start-end tags mismatch");
  // A chunk's number wrong: well-formed, but another chunk is then added twice or never.
  const std::string wrong = replaced(pair, "type=\"rrcs\" srcbuf=\"i\" srcoff=\"0\" dstbuf=\"i\" dstoff=\"0\"",
                                     "type=\"rrcs\" srcbuf=\"i\" srcoff=\"0\" dstbuf=\"i\" dstoff=\"1\"");
  CHECK(complaint(wrong).starts_with(
      "schedule pair & back all_reduce of 2 ranks: rank 0, data[0]: the contribution of rank 1 is missing"));
}

TEST_CASE(
    "what is not MSCCL XML, or contradicts itself, is refused with its line, what was expected and what was found") {
  struct Row {
    std::string what, with;
  };
  const std::vector<Row> rows{
      {"<algo", "<algorithm x=\"\"/><algo"},
      {"<algo name=\"chain\" ", "<algo "},
      {"proto=\"Simple\"", "proto=\"simple\""},
      {"ngpus=\"3\"", "ngpus=\"3x\""},
      {"ngpus=\"3\"", "ngpus=\"4\""},
      {"ngpus=\"3\"", "ngpus=\"2\""},
      {"coll=\"allreduce\"", "coll=\"broadcast\""},
      {"coll=\"allreduce\"", "coll=\"allgather\""},
      {"inplace=\"1\"", "inplace=\"0\" outofplace=\"0\""},
      {"<gpu id=\"1\"", "<gpu id=\"0\""},
      {"i_chunks=\"2\"", "i_chunks=\"3\""},
      {"<tb id=\"0\" send=\"2\"", "<tb id=\"1\" send=\"2\""},
      {"<tb id=\"0\" send=\"1\" recv=\"-1\"", "<tb id=\"0\" send=\"0\" recv=\"-1\""},
      {"chan=\"1\"", "chan=\"2\""},
      {"chan=\"0\"", "chan=\"-1\""},
      {"<tb id=\"1\" send=\"-1\" recv=\"1\" chan=\"1\">", "<tb id=\"1\" send=\"1\" recv=\"1\" chan=\"0\">"},
      {"type=\"rrs\"", "type=\"rrr\""},
      {"type=\"r\"", "type=\"s\""},
      {"type=\"s\"", "type=\"r\""},
      {"srcbuf=\"i\"", "srcbuf=\"x\""},
      {"srcbuf=\"i\"", "srcbuf=\"s\""},
      {"srcoff=\"0\"", "srcoff=\"1\""},
      {"cnt=\"2\"", "cnt=\"0\""},
      {"depid=\"0\"", "depid=\"2\""},
      {"deps=\"0\"", "deps=\"1\""},
      {"deps=\"0\"", "deps=\"-1\""},
      {"<step s=\"0\"", "<op step=\"0\""}};
  CHECK(complaint(chain()) == "");
  ringsim::test::MessagePage page("msccl");
  for (const Row& row : rows) page.add(row.what + " -> " + row.with, complaint(replaced(chain(), row.what, row.with)));
  page.check();
}

TEST_CASE("elements that MSCCL's loader skips are left out with a warning each, and the proof decides") {
  const std::string with_copy =
      replaced(chain(), "<tb id=\"0\" send=\"1\"", "<copy id=\"0\"/>\n<copy id=\"1\"/>\n<tb id=\"0\" send=\"1\"");
  CHECK(complaint(with_copy) == "");
  const StoredSchedule s = import_msccl(with_copy, "x.xml");
  CHECK(same_schedule(s, import_msccl(chain(), "x.xml")));
  CHECK(s.warnings == std::vector<std::string>{"x.xml:4: <copy> within <gpu> is skipped, as it is by MSCCL's loader"});
  // A step that is skipped is missing: the proof says so.
  const std::string renamed = replaced(chain(), "<step s=\"0\"", "<copy s=\"0\"");
  CHECK(complaint(renamed) != "");
}

TEST_CASE("an attribute that is not known is not used, and said so once") {
  const StoredSchedule s = import_msccl(replaced(chain(), "<gpu id", "<gpu color=\"red\" id"), "x.xml");
  CHECK(s.warnings == std::vector<std::string>{"x.xml:3: the attribute color of <gpu> is unknown and ignored"});
}

}  // namespace msccl_import_test
