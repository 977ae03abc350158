// The table of training steps: what its heading says, its parts, and that it is one.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/command.hpp"
#include "tests/support/paths.hpp"

namespace step_table_test {

using namespace ringsim::test;

namespace {

const std::string& scenario() {
  static const std::string file = source_dir() + "/scenarios/examples/training/buckets.json";
  return file;
}

/// [first, last] numbers of a line, without what is no number.
std::vector<double> numbers_in(const std::string& line) {
  std::istringstream words(line);
  std::vector<double> numbers;
  for (std::string word; words >> word;)
    if (word.find_first_not_of("0123456789.") == std::string::npos) numbers.push_back(std::stod(word));
  return numbers;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TEST_CASE("one step is shown as its parts, which sum to it, below a heading that says what the step is") {
  const Words one{"run", source_dir() + "/scenarios/examples/explain/exposed-bucket.json"};
  const Outcome outcome = run_command(one);
  REQUIRE(outcome.code == 0);
  const std::vector<std::string> lines = lines_of(outcome.out);
  CHECK(lines.at(0) == "training step, ddp, 8 ranks, star, ring, fair network");
  CHECK(lines.at(1) == "                          time ms    share");
  CHECK(lines.at(2) == "step                      274.23   100.0 %");
  CHECK(lines.at(3) == "  compute                 151.00    55.1 %");
  CHECK(lines.at(4) == "  exposed communication   123.23    44.9 %");
  CHECK(lines.at(5) == "overlapped communication   56.112   20.5 %");  // no part: it is computation as well
  Words as_json = one;
  as_json.insert(as_json.end(), {"--format", "jsonl"});
  const auto row = nlohmann::json::parse(run_command(as_json).out);
  CHECK(row["time_us"] == 274228.0);
  CHECK(row["split_us"]["compute"].get<double>() + row["split_us"]["exposed_communication"].get<double>() == 274228.0);
  CHECK(has(outcome.out, "\ngradients       320 MB\n"));
  CHECK(has(outcome.out, "\nclosed form     x 1.0000\n"));
}

TEST_CASE("operations per second of a plan that recomputes say that what is recomputed does not count") {
  const std::string file = temporary_file("plan.json", R"({"version": 1, "name": "plan",
      "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "50 GB/s", "latency": "1 us"}},
      "training": {"workload": {"transformer": {"layers": 8, "hidden": 512, "heads": 8, "ffn": 2048, "vocabulary": 1000},
                                "sequence": 256, "micro_batch_size": 2, "global_batch_size": 32,
                                "compute": {"gemm": "60%", "attention": "40%", "memory": "80%",
                                            "peak": "312 TFLOP/s", "hbm": "2039 GB/s"}},
                   "parallel": {"tensor": 2, "pipeline": 2}, "optimizer": "adam", "steps": 1, "warmup": 1}})");
  const auto table = [&](const char* recompute) {
    return run_command({"run", file, "--set", std::string("training.parallel.recompute=") + recompute}).out;
  };
  CHECK(has(table("full"), ", without what is recomputed, which many publications count\n"));
  CHECK_FALSE(has(table("none"), "recomputed"));
}

TEST_CASE("several steps are one table in one unit; what has no room in it is named, and --explain shows it") {
  const Words words{"run", source_dir() + "/scenarios/examples/training/async-server.json"};
  const Outcome outcome = run_command(words);
  REQUIRE(outcome.code == 0);
  CHECK(has(outcome.out, "training step, 4 ranks, star, fair network\n"));
  CHECK_FALSE(has(outcome.out, "\n\n"));  // a second table would come after an empty line
  // Staleness goes after what other tables also show: servers are asked for it.
  CHECK(has(outcome.out, "Left out because lines would be too long: efficiency, busy, bottleneck, stalest, "));
  CHECK(has(outcome.out, "--explain shows all.\n"));
  int rows = 0;
  for (const std::string& line : lines_of(outcome.out)) {
    if (!line.starts_with("[")) continue;
    ++rows;
    const std::vector<double> figures = numbers_in(line);  // parameters, step, compute, exposed, waiting, updates/s
    CHECK(figures.at(1) == doctest::Approx(figures.at(2) + figures.at(3) + figures.at(4)).epsilon(2e-4));
  }
  CHECK(rows == 16);
  Words all = words;
  all.emplace_back("--explain");
  const Outcome explained = run_command(all);
  CHECK(has(explained.out, "stalest"));
  CHECK_FALSE(has(explained.out, "Left out"));
}

TEST_CASE("a setting that varies is one column, though results have it too") {
  const Outcome outcome = run_command({"run", scenario(), "--set", "topology.ranks=[2, 4]"});
  REQUIRE(outcome.code == 0);
  const std::string head = lines_of(outcome.out).at(1);
  CHECK(head.find("ranks") != std::string::npos);
  CHECK(head.find("ranks") == head.rfind("ranks"));
}

TEST_CASE("a matrix of times has one unit, and CSV keeps microseconds") {
  const Words words{"run",       scenario(), "--set",   "topology.ranks=[2, 4]", "--rows", "ranks",
                    "--columns", "buckets",  "--format"};
  Words text = words, csv = words;
  text.emplace_back("matrix");
  csv.emplace_back("matrix-csv");
  const Outcome shown = run_command(text);
  CHECK_MESSAGE(shown.code == 0, shown.err);
  CHECK(shown.out.starts_with("time_ms: ranks \\ buckets"));
  CHECK(run_command(csv).out.starts_with("time_us: ranks \\ buckets"));
}

TEST_CASE(
    "--explain names the collective of each exchange, between which ranks it is, and its stage if there are several") {
  const std::string model = source_dir() + "/scenarios/examples/training/llama3-8b.json";
  const std::string data = run_command({"run", "--explain", model}).out;
  CHECK(has(data, "\nexchanges        bytes       a step  algorithm  protocol  channels\n"));
  CHECK(has(data, "\ndata all_reduce  32 MiB          32  NVLS       Simple           1\n"));  // a bucket of each layer
  // Two stages of four tensor ranks.
  const std::string stages =
      run_command({"run", "--explain", source_dir() + "/scenarios/examples/training/plans.json", "--set",
                   "topology.nodes=1", "--set", "sweep=null", "--set", "where=null", "--set",
                   "training.memory=\"ignore\"", "--set", "training.workload.global_batch_size=4", "--set",
                   "library=\"nccl\"", "--set", "training.parallel={\"tensor\": 4, \"pipeline\": 2}"})
          .out;
  CHECK(has(stages, "\ntensor all_reduce, stage 1 "));
  CHECK(has(stages, "\nbackward send_recv, stage 0 "));
  CHECK(!has(stages, "\ndata "));  // one data rank
}

TEST_CASE("a step with a pipeline says that waiting receives count as overlapped") {
  const std::string plans = source_dir() + "/scenarios/examples/training/plans.json";
  const auto said = [&](const char* parallel) {
    return has(
        run_command({"run", plans, "--set", "topology.nodes=1", "--set", "sweep=null", "--set", "where=null", "--set",
                     "training.memory=\"ignore\"", "--set", "training.workload.global_batch_size=4", "--set", parallel})
            .out,
        "overlapped communication also counts receives");
  };
  CHECK(said("training.parallel={\"tensor\": 4, \"pipeline\": 2}"));
  CHECK(!said("training.parallel={\"tensor\": 4, \"overlap\": [\"grad_reduce\"]}"));
}

TEST_CASE("a step with shard full says that PyTorch's FSDP is slower, one with another shard does not") {
  const std::string fsdp = source_dir() + "/scenarios/examples/training/fsdp.json";
  const auto with = [&](const char* parallel) {
    return run_command({"run", fsdp, "--set", std::string("training.parallel=") + parallel}).out;
  };
  CHECK(has(with(R"({"shard": "full"})"), "PyTorch's FSDP is slower"));
  const std::string other = with(R"({"shard": "optimizer_gradients", "overlap": ["grad_reduce"]})");
  CHECK(has(other, "training step of"));
  CHECK(!has(other, "PyTorch's FSDP"));
}

TEST_CASE("a step of inference or of a trace says which costs collectives without a library lack") {
  const std::string decode = source_dir() + "/scenarios/examples/inference/all-reduces.json";
  const auto note = [](const std::string& file, const Words& more) {
    Words words{"run", file};
    for (const std::string& each : more) words.insert(words.end(), {"--set", each});
    std::string text = run_command(words).out;
    std::replace(text.begin(), text.end(), '\n', ' ');
    for (std::size_t i; (i = text.find("  ")) != std::string::npos;) text.erase(i, 1);
    const std::size_t found = text.find("collectives without a library");
    return found == std::string::npos ? std::string() : text.substr(found, text.find('.', found) - found);
  };
  const Words ring{"inference.batch=1", "inference.parallel.algorithm=\"ring\""};
  const auto with = [&](Words more) {
    more.insert(more.end(), ring.begin(), ring.end());
    return note(decode, more);
  };
  const std::string alone = "collectives without a library take only their time on the network";
  CHECK(with({}) == alone + ": no launches, copies and additions");
  CHECK(with({"transport.launch=\"5 us\""}) == alone + " and their launch: no copies and additions");
  CHECK(with({"devices={\"gpu\": {\"reduce\": \"1 TB/s\"}}"}) == alone + ": no launches and copies");
  CHECK(
      with({"transport.launch=\"5 us\"", "devices={\"gpu\": {\"reduce\": \"1 TB/s\", \"copy\": \"1 TB/s\"}}"}).empty());
  CHECK(with({"inference.parallel.tensor=1"}).empty());
  CHECK(note(decode, {"inference.batch=1", "inference.parallel.algorithm=null", "library=\"nccl\""}).empty());

  const std::string trace = source_dir() + "/scenarios/examples/trace/ddp-two-machines.json";
  CHECK(note(trace, {}) == alone + ": no launches, copies and additions");
  CHECK(note(trace, {"library=\"nccl\""}).empty());
}

}  // namespace step_table_test
