// ringsim trace: what a user sees of profiles.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/command.hpp"
#include "tests/support/files.hpp"
#include "tests/support/made_profiles.hpp"
#include "tests/support/paths.hpp"

namespace trace_command_test {

using namespace ringsim::test;

namespace {

std::string data(const std::string& name) { return source_dir() + "/tests/data/profiles/" + name; }

/// Two ranks of which the second is 300 us late.
std::string rank_file(int rank) {
  return temporary_file(
      "rank" + std::to_string(rank) + ".json",
      made_trace(static_cast<std::uint32_t>(rank), 2,
                 {{.begin = 1000.0 + 300 * rank, .duration = 500.0 - 300 * rank, .elements = 1 << 18, .blocks = 0}}));
}

}  // namespace

TEST_CASE("trace show prints which rank waits for which: the guide's example, two ranks of 128") {
  const Outcome outcome = run_command(
      {"trace", "show", "--group", "all", data("two-of-128-rank-0.json.gz"), data("two-of-128-rank-1.json.gz")});
  CHECK(outcome.code == 0);
  CHECK(outcome.err == "");
  CHECK(has(outcome.out, "2 of 128 ranks (0, 1); Kineto; the files do not contain the NCCL version\n"));
  CHECK(has(outcome.out,
            "20 kernels of NCCL in 20 calls: 20 with known operation and size (20 by annotation), 10 matched; not\n  "
            "matched: 10 without a counterpart in another file\n"));
  // Kernels of 36.161 and 13.836 ms that end together: rank 0 waited for 22.3 of its 36.2 ms, or longer.
  CHECK(has(outcome.out, "all_reduce  22.87 MB    128      1  13.8 to 36.2  >= 22.3   <= 13.8   16 x 640"));
  const std::string guide = read_file(source_dir() + "/docs/guide/my-job-is-slow.md");
  CHECK(has(guide, "    all_reduce  22.87 MB    128      1  13.8 to 36.2  >= 22.3   <= 13.8   16 x 640"));
}

TEST_CASE("without a group calls of an old trace have a size and no partner; without shapes they have neither") {
  const Outcome outcome =
      run_command({"trace", "show", data("two-of-128-rank-0.json.gz"), data("two-of-128-rank-1.json.gz")});
  CHECK(outcome.code == 0);
  CHECK(has(outcome.out, "20 with known operation and size (20 by annotation), 0 matched"));
  CHECK(has(outcome.out, "20 whose group is not in the file (--group)"));
  const std::string bare =
      temporary_file("rank0.json", R"({"distributedInfo": {"rank": 0, "world_size": 2}, "traceEvents": [
    {"ph": "X", "cat": "kernel", "name": "ncclKernel_AllReduce_RING_LL", "tid": 7, "ts": 100, "dur": 50, "args": {"correlation": 5}},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "tid": 3, "ts": 90, "dur": 2, "args": {"correlation": 5}},
    {"ph": "X", "cat": "user_annotation", "name": "nccl:all_reduce", "tid": 3, "ts": 85, "dur": 20, "args": {}}]})");
  const Outcome without = run_command({"trace", "show", bare});
  CHECK(without.code == 0);
  CHECK(has(without.out, "1 kernel of NCCL in 1 call: 0 with known operation and size\n"));
  CHECK(has(without.out, "not usable: 1, no shapes: profile with record_shapes=True\n"));
}

TEST_CASE("JSON and CSV have the same rows in us, JSON also files, hosts and ranks") {
  const std::vector<std::string> files{rank_file(0), rank_file(1)};
  const Outcome json = run_command({"trace", "show", files[0], files[1], "--format", "json"});
  REQUIRE(json.code == 0);
  const auto document = nlohmann::json::parse(json.out);
  REQUIRE(document.at("rows").size() == 1);
  const auto& row = document.at("rows").at(0);
  CHECK(row.at("collective") == "all_reduce");
  CHECK(row.at("bytes") == 1 << 20);
  CHECK(row.at("kernel_us") == 350.0);
  CHECK(row.at("longest_wait_us") == 300.0);
  CHECK(row.at("waiting_us") == 150.0);
  CHECK(row.at("transfer_us") == 200.0);
  CHECK(row.at("late_rank") == 1);
  CHECK(row.at("split") == "clocks");
  CHECK(row.at("ranks_missing") == false);
  CHECK(document.at("ranks").at(0).at("waiting_us") == 300.0);
  CHECK(document.at("files").at(1).at("rank") == 1);
  CHECK(document.at("files").at(0).at("nccl_version") == "2.21.5");
  CHECK(document.at("calls").at("matched") == 2);
  const Outcome csv = run_command({"trace", "show", files[0], files[1], "--format", "csv"});
  REQUIRE(csv.code == 0);
  CHECK(has(csv.out, "collective,bytes,"));
  CHECK(has(csv.out, "all_reduce,1048576,all,2,1,1,2,350.0,200.0,500.0,clocks,false,150.0,300.0,"));
}

TEST_CASE("mistakes on the command line of trace say what was expected") {
  const std::string file = rank_file(0);
  const auto err = [](const std::vector<std::string>& words, int code) {
    const Outcome outcome = run_command(words);
    CHECK(outcome.code == code);
    CHECK(outcome.out == "");
    return outcome.err;
  };
  CHECK(has(err({"trace", "show", file, "--rank", file + "=x"}, 2), "--rank: expected FILE=N, N below 65536, found "));
  CHECK(has(err({"trace", "show", file, "--rank", "other=1"}, 2),
            "expected one of the files on the command line, found \"other\""));
  CHECK(has(err({"trace", "show", file, "--group", "DIV 0"}, 2), "expected DIV and a number above 0, found \"DIV 0\""));
  CHECK(has(err({"trace", "show", file, "--group", "no-such-file"}, 2),
            "--group: expected all, \"DIV n\", \"MOD n\" or a file of groups, found no file \"no-such-file\""));
  const std::string twice = temporary_file("groups.json", "[[0, 1], [1, 2]]");
  CHECK(has(err({"trace", "show", file, "--group", twice}, 3),
            "expected each rank in only one group, found rank 1 twice"));
  CHECK(has(err({"trace", "show", file + ".no"}, 3),
            "expected a profile of PyTorch (Kineto, Flight Recorder), NCCL Inspector or Nsight Systems, found no file "
            "of that name"));
  CHECK(has(err({"trace", "show", source_dir()}, 3), "found a directory"));
  CHECK(has(err({"trace", "show", file, file}, 3), "expected one file per rank, found rank 0 in"));
  CHECK(run_command({"trace", "show", file, "--rank", file + "=1"}).code == 0);
  CHECK(has(run_command({"trace", "show", file, rank_file(1), "--rank", file + "=1"}).err, "one file per rank"));
}

TEST_CASE("names out of a profile cannot steer a terminal") {
  const std::string trace = replaced(
      made_trace(0, 2, {{.begin = 1, .duration = 1, .op = "x\\u001b[31m", .elements = 1}}), "2.21.5", "2.\\u001b[31m");
  const Outcome outcome = run_command({"trace", "show", temporary_file("rank0.json", trace)});
  CHECK(outcome.code == 0);
  CHECK(outcome.out.find('\x1b') == std::string::npos);
  CHECK(has(outcome.out, "NCCL 2.\\u001b[31m"));
}

TEST_CASE("ranks on hosts whose clocks differ give a warning if they are taken for one host") {
  const std::string late = temporary_file(
      "rank1.json", made_trace(1, 2, {{.begin = 21'300, .duration = 200, .elements = 1 << 18, .sequence = 1}}));
  const std::string early = temporary_file(
      "rank0.json", made_trace(0, 2, {{.begin = 1'000, .duration = 500, .elements = 1 << 18, .sequence = 1}}));
  const Outcome one = run_command({"trace", "show", early, late});
  CHECK(one.code == 0);
  CHECK(has(one.err, "warning: on ranks assumed to share a host, matched collectives end 20 ms apart (median)"));
  const Outcome two = run_command({"trace", "show", early, late, "--ranks-per-host", "1"});
  CHECK(two.err == "");
  CHECK(has(two.out, "2 hosts (--ranks-per-host 1); clocks aligned: they differed by up to 20 ms"));
}

TEST_CASE("trace compare prints predictions, the launch next to the plan, and verdicts") {
  const Outcome outcome = run_command({"trace", "compare", "dgx-a100", data("resnet50-2xa100.json.gz")});
  CHECK(outcome.code == 0);
  CHECK(has(outcome.out,
            "predicted for NCCL 2.17.1 (in the files) on 8 GPUs in 1 node\nnot this machine: 8 blocks, plan 24\n"));
  CHECK(has(outcome.out, "cannot say: not this machine"));
  CHECK(has(outcome.out, "hint: NCCL launches one block per channel"));
  // The job's NCCL launched eight blocks; with as many channels the plan has them.
  const Outcome eight = run_command({"trace", "compare", "dgx-a100", data("resnet50-2xa100.json.gz"), "--set",
                                     "library.env.NCCL_MAX_NCHANNELS=8", "--set", "library.version=2.19.3"});
  CHECK(eight.code == 0);
  CHECK(has(eight.out, "predicted for NCCL 2.19.3 (by --set) on 8 GPUs in 1 node\n\n"));
  CHECK(!has(outcome.out, "slow transfer"));
  const Outcome json =
      run_command({"trace", "compare", "aws-p6-b200", data("b200-all-gather.json"), "--format", "json"});
  REQUIRE(json.code == 0);
  const auto document = nlohmann::json::parse(json.out);
  CHECK(document.at("library").at("nccl") == "2.27.5");
  CHECK(document.at("not_this_machine").is_null());
  CHECK(document.at("files").at(0).at("gpu") == "NVIDIA B200");
  const auto& row = document.at("rows").at(0);
  CHECK(row.at("bytes") == 402176);
  CHECK(row.at("kernel_us") == 21.953);
  CHECK(row.at("predicted_us").get<double>() == doctest::Approx(18.6).epsilon(0.02));
  CHECK(row.at("plan_protocol") == "LL");
  CHECK(row.at("verdict") == "cannot say: not matched");
  const Outcome csv = run_command({"trace", "compare", "aws-p6-b200", data("b200-all-gather.json"), "--format", "csv"});
  CHECK(has(csv.out, ",predicted_us,allowed_us,"));
}

// Seven ranks wait for the slow one during their backward pass, so that much of the wait is next to compute.
TEST_CASE("trace compare says how much of the collectives' time is exposed, if other kernels run next to some") {
  const std::string base = temporary_file("step.rank", "");
  const std::string scenario = source_dir() + "/scenarios/examples/training/llama3-8b.json";
  REQUIRE(run_command({"trace", "export", scenario, base + "{rank}.json", "--set",
                       R"(training.slow=[{"rank": 3, "factor": 1.05}])"})
              .code == 0);
  Words words{"trace", "compare", scenario};
  for (int rank = 0; rank < 8; ++rank) words.push_back(fmt::format("{}{}.json", base, rank));
  const Outcome outcome = run_command(words);
  REQUIRE(outcome.code == 0);
  CHECK(has(outcome.out, "late rank 3\n"));
  CHECK(!has(outcome.out, "late ranks, changing"));
  CHECK(has(outcome.out, " ms are exposed; during the rest"));
  // Of two ranks that wait, and compute nothing.
  const Outcome idle =
      run_command({"trace", "compare", "dgx-a100", source_dir() + "/scenarios/questions/profiles/rank0.json.gz",
                   source_dir() + "/scenarios/questions/profiles/rank1.json.gz"});
  CHECK(!has(idle.out, "exposed;"));
}

TEST_CASE("the page has the timeline, and the trace for a viewer splits each call") {
  const std::string folder = fresh_folder("trace").string();
  const std::string page = folder + "/page.html", trace = folder + "/job.json";
  REQUIRE(run_command({"trace", "compare", "dgx-a100", rank_file(0), rank_file(1), "--report", page, "--trace", trace})
              .code == 0);
  const std::string html = read_file(page);
  // Rank 0 waits for 300 of 500 us, rank 1 for none of 200.
  CHECK(has(html, "<h1>Waiting is 43 % of the time in collectives; rank 1 is the last in all_reduce of 1.049 MB</h1>"));
  CHECK(has(html, "all_reduce 1.049 MB: waits 0.300 ms"));
  CHECK(has(html, "all_reduce 1.049 MB: transfer 0.200 ms"));
  CHECK(has(html, "late rank 1"));
  CHECK(has(html, "ringsim trace compare dgx-a100"));
  CHECK(has(html, "&quot;node&quot;: &quot;dgx-a100&quot;"));
  const auto events = nlohmann::json::parse(read_file(trace)).at("traceEvents");
  std::vector<std::string> slices;
  for (const auto& event : events)
    if (event.at("ph") == "X")
      slices.push_back(
          fmt::format("{} {} {}", event.at("name").get<std::string>(), event.at("ts").dump(), event.at("dur").dump()));
  std::sort(slices.begin(), slices.end());
  CHECK(slices == std::vector<std::string>{"all_reduce 1.049 MB 0.0 500.0", "all_reduce 1.049 MB 300.0 200.0",
                                           "transfer 300.0 200.0", "transfer 300.0 200.0", "wait 0.0 300.0"});
  CHECK(run_command({"trace", "show", rank_file(0), "--trace", folder + "/job.txt"}).code == 2);
  CHECK(run_command({"trace", "show", rank_file(0), "--report", folder + "/page.htm"}).code == 2);
  const std::string own = rank_file(0);
  CHECK(run_command({"trace", "show", own, "--trace", own}).code == 3);
  CHECK(read_file(own).size() > 100);  // it is still there
}

TEST_CASE("--interference lengthens what is predicted of collectives with other kernels next to them") {
  const auto rows = [](const std::vector<std::string>& more) {
    std::vector<std::string> words{"trace", "compare", "dgx-a100", data("resnet50-2xa100.json.gz"), "--format", "json"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = run_command(words);
    REQUIRE(outcome.code == 0);
    return nlohmann::json::parse(outcome.out);
  };
  const auto before = rows({}), after = rows({"--interference", "100%"});
  CHECK(before.at("interference") == 1.0);
  CHECK(after.at("interference") == 2.0);
  int longer = 0;
  for (std::size_t i = 0; i < before.at("rows").size(); ++i) {
    const auto& row = before.at("rows").at(i);
    const double alone = row.at("predicted_us").get<double>(), share = row.at("overlap").get<double>();
    const double slowed = after.at("rows").at(i).at("predicted_us").get<double>();
    // The mean of 1 / (1 - s / 2) over the row's three collectives lies above that of their mean share, and below 2.
    CHECK(slowed >= doctest::Approx(alone / (1 - share / 2)).epsilon(1e-4));
    CHECK(slowed < 2 * alone);
    longer += slowed > alone;
    CHECK((share > 0) == (slowed > alone));
  }
  CHECK(longer >= 1);
  const Outcome none =
      run_command({"trace", "compare", "aws-p6-b200", data("b200-all-gather.json"), "--interference", "20%"});
  CHECK(none.code == 0);
  CHECK(has(none.err, "warning: --interference has no effect: in these files, no predicted collective overlaps"));
  CHECK(has(none.out, "predicted transfers take 1.2 times as long while other kernels run (--interference)"));
}

TEST_CASE("--assert of trace compare exits with 1 for a row that fails, and if no row has the value") {
  const auto with = [](const std::string& condition) {
    return run_command({"trace", "compare", "dgx-a100", rank_file(0), rank_file(1), "--assert", condition});
  };
  // Ranks 0 and 1 wait for 300 and 0 us, of kernels of 500 and 200 us: 150 / 350.
  CHECK(with("waiting_share < 0.5").code == 0);
  const Outcome fails = with("waiting_share < 0.2");
  CHECK(fails.code == 1);
  CHECK(has(fails.err,
            "--assert waiting_share < 0.2: does not hold for all_reduce of 1.049 MB: waiting_share is 0.42857"));
  CHECK(has(fails.out, "collective"));  // the table comes all the same
  CHECK(with("waiting_share < 0.2 where bytes > 1 GiB").code == 1);
  CHECK(has(with("waiting_share < 0.2 where bytes > 1 GiB").err, "no row has these values"));
  CHECK(with("algorithm == \"Ring\"").code == 1);  // the trace names none
  CHECK(with("waiting_shar < 0.2").code == 2);
  CHECK(with("kernel_us < 1 ms").code == 0);
  CHECK(run_command({"trace", "compare", "dgx-a100", rank_file(0), "--nccl", "7.1"}).code == 3);
  CHECK(run_command({"trace", "compare", "no-such-machine", rank_file(0)}).code == 3);
}

}  // namespace trace_command_test
