// ringsim plan as a user meets it.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/command.hpp"
#include "tests/support/files.hpp"

namespace plan_command_test {

using ringsim::test::has;
using ringsim::test::Outcome;
using ringsim::test::run_command;
using ringsim::test::sample;
using ringsim::test::temporary_file;

namespace {

/// Four GPUs, one layer's worth of plans: few enough to read.
const std::string& small() {
  static const std::string file = temporary_file("small.json", R"({
    "version": 1, "name": "small",
    "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "50 GB/s", "latency": "1 us"}},
    "training": {
      "workload": {"transformer": {"layers": 4, "hidden": 512, "heads": 4, "ffn": 1536, "vocabulary": 1000}, "sequence": 256,
                   "global_batch_size": 16, "micro_batch_size": 2,
                   "compute": {"gemm": "60%", "attention": "40%", "memory": "80%", "peak": "312 TFLOP/s", "hbm": "2039 GB/s"}},
      "parallel": {"shard": "optimizer", "recompute": "none", "virtual_pipeline": 1}, "optimizer": "adam", "steps": 1, "warmup": 1}})");
  return file;
}

Outcome plan(const std::vector<std::string>& more) {
  std::vector<std::string> arguments{"plan", small()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_command(arguments);
}

/// The step of the first result, in us.
double step_of(const std::string& lines) {
  return nlohmann::json::parse(lines.substr(0, lines.find('\n')))["time_us"].get<double>();
}

/// The command that plan prints for the first plan of the scenario, as jsonl.
std::vector<std::string> run_of_first(const std::string& out, const std::string& scenario) {
  const std::string command = "  ringsim run " + scenario + " ", set = "--set ";
  REQUIRE(has(out, command));
  std::string options = out.substr(out.find(command) + command.size());
  options = options.substr(0, options.find('\n'));
  std::vector<std::string> run{"run", scenario, "--format", "jsonl"};
  for (std::size_t at = options.find(set); at != std::string::npos;) {
    const std::size_t next = options.find(" " + set, at);
    std::string value = options.substr(at + set.size(), next == std::string::npos ? next : next - at - set.size());
    std::erase(value, '\'');
    run.insert(run.end(), {"--set", value});
    at = next == std::string::npos ? next : next + 1;
  }
  return run;
}

}  // namespace

TEST_CASE("plan prints the plans, what became of the others, and commands that give the first again") {
  const Outcome outcome = plan({"--within", "100000%"});
  CHECK(outcome.code == 0);
  CHECK(outcome.err == "");
  CHECK(has(outcome.out, "6 plans in total."));  // t, p and d of 4 GPUs: 4 = 1 x 1 x 4 = ... in six orders
  CHECK(has(outcome.out, "Simulated: 6."));
  CHECK(!has(outcome.out, "Not simulated"));
  const std::vector<std::string> run = run_of_first(outcome.out, small());
  const Outcome again = run_command(run);
  CHECK(again.code == 0);
  CHECK(step_of(again.out) == step_of(plan({"--within", "100000%", "--format", "jsonl"}).out));
}

TEST_CASE("plan answers the same whatever the number of threads") {
  const Outcome one = plan({"-j", "1", "--format", "csv"});
  CHECK(one.code == 0);
  CHECK(has(one.out, "point.training.parallel.pipeline"));
  CHECK(one.out == plan({"-j", "3", "--format", "csv"}).out);
}

TEST_CASE("plan --bounds simulates nothing and shows bounds") {
  const Outcome outcome = plan({"--bounds", "--top", "2"});
  CHECK(outcome.code == 0);
  CHECK(has(outcome.out, ">= "));
  CHECK(has(outcome.out, "Simulated: 0."));
  CHECK(has(outcome.out, "Not simulated: 6; each takes at least "));
  const Outcome csv = plan({"--bounds", "--format", "csv"});
  CHECK(csv.code == 2);
  CHECK(has(csv.err, "--bounds: expected the format table, found another one"));
}

/// `ringsim plan bert_336m --node dgx-a100` of two plans.
Outcome small_bert(const std::vector<std::string>& set, bool simulates = false) {
  std::vector<std::string> words{"plan",    "bert_336m",
                                 "--node",  "dgx-a100",
                                 "--batch", "64",
                                 "--set",   R"(training.parallel={"tensor": 1, "pipeline": 1, "shard": "none"})",
                                 "--set",   "training.workload.micro_batch_size=8",
                                 "--set",   R"(training.parallel.recompute=["none", "full"])"};
  if (!simulates) words.emplace_back("--bounds");
  for (const std::string& each : set) words.insert(words.end(), {"--set", each});
  return run_command(words);
}

TEST_CASE("plan says what is wrong with its scenario once, whether plans are simulated or not") {
  for (const bool simulates : {true, false}) {
    CHECK(small_bert({"training.workload.precision=fp32"}, simulates).err == "");  // the rate of TF32
    const Outcome outcome =
        small_bert({"training.workload.precision=fp32", "training.workload.compute.peak=312 TFLOP/s"}, simulates);
    CHECK(outcome.code == 0);
    CHECK(has(outcome.out, simulates ? "Simulated: 2." : "Simulated: 0."));
    const std::string warning =
        "training/workload/compute: a peak of 312 TFLOP/s is that of 16-bit products, but the precision is fp32, in "
        "which GPUs like those of dgx-a100 reach at most 156 TFLOP/s (TF32";
    const std::size_t found = outcome.err.find(warning);
    REQUIRE(found != std::string::npos);
    CHECK(outcome.err.find(warning, found + 1) == std::string::npos);
  }
}

TEST_CASE("with precision fp32 plan takes the rate of TF32, half of that of 16 bits") {
  const auto said = [](const std::string& change) { return small_bert({change}).out; };
  CHECK(has(said("training.workload.precision=fp32"), "matrix products reach 80 % of 156 TFLOP/s (TF32 or fp32)"));
  CHECK(has(said("training.workload.precision=\"fp32\""), "of 156 TFLOP/s"));
  CHECK(has(said("training.workload.precision=bf16"), "matrix products reach 80 % of 312 TFLOP/s, fitted"));
  // How near it is remains said if the peak is another one, not if the share is.
  CHECK(has(said("training.workload.compute.peak=300 TFLOP/s"), "How near: "));
  CHECK(!has(said("training.workload.compute.gemm=70%"), "How near: "));
}

TEST_CASE("plan lists plans of too many messages with their bounds, and says so") {
  const Outcome outcome = plan({"--within", "100000%", "--messages", "1"});
  CHECK(outcome.code == 0);
  CHECK(has(outcome.out, ">= "));
  CHECK(has(outcome.out, "Not simulated because it would take too long: "));
  CHECK(has(outcome.out, "individual messages "));
  const Outcome rows = plan({"--within", "100000%", "--messages", "1", "--format", "csv"});
  CHECK(has(rows.err, "Not simulated because it would take too long: "));
  CHECK(std::count(rows.out.begin(), rows.out.end(), '\n') == 1);  // the head
}

TEST_CASE("plan says that no plan fits, and what each would need") {
  const Outcome outcome = plan({"--set", "training.gpu_memory=1 MB"});
  CHECK(outcome.code == 1);
  CHECK(has(outcome.out, "Too large for GPU memory: 6; the smallest needs "));
  CHECK(has(outcome.out, "No plan fits. Use more GPUs"));
  CHECK(has(outcome.out, "training.parallel.context=[1,2,4,8]"));
  // More data ranks would have whole copies as well.
  CHECK(has(plan({"--set", "training.gpu_memory=1 MB", "--set", "training.parallel.shard=none"}).out,
            "No plan fits. Shard the optimizer (--set training.parallel.shard=optimizer)"));
}

// The tied embedding lies on two stages or four: two reasons that differ in a number.
TEST_CASE("plan counts plans that are not modeled for one reason, whatever its numbers, and warns of little room") {
  const Outcome outcome =
      plan({"--bounds", "--set", "training.parallel.shard=full", "--set", "training.workload.transformer.tied=true"});
  CHECK(has(outcome.out, "6 plans in total."));
  CHECK(has(outcome.out,
            "Not modeled: 3 plans, for example: expected an untied embedding with shard full and pipeline 2,\n"
            "  found a tied one."));
  CHECK_FALSE(has(outcome.out, "This plan leaves"));
  const Outcome tight = plan({"--bounds", "--set", "training.gpu_memory=76MB"});
  CHECK(has(tight.out, "This plan leaves 0.00 GB of GPU memory for what is not counted"));
  CHECK(has(tight.out, "--set training.gpu_memory=0.0684GB leaves"));
}

TEST_CASE("plan refuses a scenario without plans, and an output that holds something else") {
  const Outcome outcome = run_command({"plan", "scenarios/star.json"});
  CHECK(outcome.code == 3);
  CHECK(has(outcome.err, "scenarios/star.json: /training: expected a training with the key \"parallel\", found none"));
  const std::string own = temporary_file("own.csv", "mine\n");
  CHECK(plan({"-o", own}).code != 0);
  CHECK(plan({"--top", "0"}).code == 2);
  CHECK(plan({"--within", "5"}).code == 2);
}

// Of eight A100: what is stated leaves few plans, so that they take a second.
const std::vector<std::string> words{"plan",    "llama3_8b",
                                     "--node",  "dgx-a100",
                                     "--batch", "16",
                                     "--set",   "training.parallel.tensor=[4,8]",
                                     "--set",   "training.parallel.recompute=none"};

TEST_CASE("plan takes a model and a machine by their names, and the saved scenario gives the same step") {
  const std::string saved = temporary_file("words.json", "");
  std::vector<std::string> arguments = words;
  arguments.insert(arguments.end(), {"--save", saved, "--force", "--top", "1"});
  const Outcome outcome = run_command(arguments);
  CHECK(outcome.code == 0);
  CHECK(outcome.err == "");
  // The peak is the data sheet's, the share of products that of docs/results/plans.md.
  CHECK(has(outcome.out,
            "matrix products reach 80 % of 312 TFLOP/s, fitted to measured steps of GPT 3.6B to 1T on A100;\n    "
            "attention 32 %, like FlashAttention-2 on A100 "));  // validate/score/plan_scenario.hpp
  // docs/results/plans.md, all rows: median 6.3, 90th percentile 16.0
  CHECK(has(outcome.out,
            "\nHow near: predicted steps of Megatron differ from 77 measured ones by a median of 6 %, and by more\n  "
            "than 16 % in one row out of ten; PyTorch's FSDP is slower than predicted: it reached 57 % MFU with\n  "
            "Llama 2 7B, and 68 % with torch.compile. To predict another program, choose\n  "
            "training.workload.compute.gemm so that one of its measured steps is reproduced.\n"));
  std::vector<std::string> stated = words;
  stated.insert(stated.end(), {"--top", "1", "--set", "training.workload.compute.gemm=60%"});
  CHECK(!has(run_command(stated).out, "How near"));  // another share, to which this does not apply
  CHECK(has(outcome.out, "sequences of 8192 tokens, as on the model card (training.workload.sequence)"));
  CHECK(!has(outcome.out, "sequences per step"));  // --batch says it
  CHECK(has(outcome.out, "it was saved to " + saved));
  std::vector<std::string> search = words;
  search.insert(search.end(), {"--top", "1", "--format", "jsonl"});
  const Outcome searched = run_command(search);
  CHECK(has(searched.err, "ringsim: note: assumed: Adam (training.optimizer)"));
  CHECK(step_of(run_command(run_of_first(outcome.out, saved)).out) == step_of(searched.out));
}

TEST_CASE("without --batch a step has about 4 Mi tokens, and every GPU as many sequences") {
  const auto batch = [](const std::string& nodes, const std::string& sequence) {
    const Outcome outcome =
        run_command({"plan", "llama3_8b", "--node", "dgx-a100", "--nodes", nodes, "--sequence", sequence, "--bounds",
                     "--top", "1", "--set", "training.parallel.tensor=8", "--set", "training.parallel.pipeline=1"});
    const std::string key = "\"global_batch_size\": ";
    REQUIRE(has(outcome.out, key));
    return std::stoi(outcome.out.substr(outcome.out.find(key) + key.size()));
  };
  CHECK(batch("1", "8192") == 512);   // 2^22 / 2^13
  CHECK(batch("3", "8192") == 504);   // 24 x 21, as 512 / 24 = 21.3
  CHECK(batch("2", "524288") == 16);  // 8 sequences would leave 16 GPUs without one
}

TEST_CASE("plan takes the XML of a virtual machine, whose GPUs are those of --like") {
  const Outcome outcome = run_command({"plan", "llama3_8b", "--node", sample("skeleton.xml"), "--nodes", "2", "--like",
                                       "azure-ndv4", "--bounds", "--top", "1", "--set", "training.parallel.tensor=8",
                                       "--set", "training.parallel.pipeline=1"});
  CHECK(outcome.code == 0);
  CHECK(has(outcome.out, "matrix products reach 80 % of 312 TFLOP/s"));
  CHECK(has(outcome.out, "512 sequences per step"));  // as of 16 GPUs: 2^22 / 2^13
}

TEST_CASE("words that plan cannot use are refused, each with what to do") {
  const auto refused = [](std::vector<std::string> arguments, int code, const std::string& text) {
    arguments.insert(arguments.begin(), "plan");
    const Outcome outcome = run_command(arguments);
    CAPTURE(outcome.err);
    CHECK(outcome.code == code);
    CHECK(has(outcome.err, text));
  };
  refused({"llama3_8"}, 3, "llama3_8: expected a scenario file or the name of a machine, found neither");
  refused({"llama3_8b"}, 2, "--node: expected a machine for llama3_8b, found none\n  hint: such as --node dgx-h100");
  refused({"llama3_80b", "--node", "dgx-h100"}, 3, "hint: did you mean \"llama3_70b\"?");
  refused({"resnet50", "--node", "dgx-h100"}, 3,
          "MODEL: expected a model that a plan can divide, one of bert_336m, gpt3_175b, ");
  refused({"gpt2_xl", "--node", "dgx-h100"}, 3, "hint: gpt2_xl is described only by layers, which cannot be divided");
  refused({"bert_large", "--node", "dgx-h100"}, 3, "cannot be divided; use bert_336m, which has a model card");
  refused({"llama3_8b", "--node", "dgx-h10"}, 3,
          "--node: expected the name of a machine, or a file with --like, found \"dgx-h10\"");
  refused({"llama3_8b", "--node", "l40s-pcie"}, 3, "found l40s-pcie with L40S\n  hint: write a scenario");
  refused({small(), "--node", "dgx-h100"}, 2, "--node: expected a model name with this option, found the file ");
  for (const char* option : {"--nodes", "--batch", "--sequence"})
    refused({small(), option, "2"}, 2, std::string(option) + ": expected --node as well");
  refused({small(), "--fabric", "star"}, 2, "--fabric: expected --node as well");
  refused({small(), "--save", "x.json"}, 2, "--save: expected --node as well");
  refused({"llama3_8b", "--node", "dgx-h100", "--save", "x.txt"}, 2, "expected a name that ends in .json");
}

TEST_CASE("the picture of plan has a bar for each simulated plan, whose parts are those of its step") {
  const std::string file = temporary_file("plans.svg", "");
  const Outcome outcome = plan({"--top", "3", "--within", "20%", "--picture", file, "--format", "jsonl"});
  REQUIRE(outcome.code == 0);
  const std::string svg = ringsim::test::read_file(file);
  std::vector<nlohmann::json> rows;
  for (std::size_t at = 0; at < outcome.out.size(); at = outcome.out.find('\n', at) + 1)
    rows.push_back(nlohmann::json::parse(outcome.out.substr(at, outcome.out.find('\n', at) - at)));
  REQUIRE(rows.size() >= 2);
  CHECK(has(svg, ">The fastest simulated plans out of "));
  CHECK(has(svg, " on 4 GPUs</text>"));
  std::size_t bars = 0;
  for (std::size_t at = 0; (at = svg.find("<title>forward and backward: ", at)) != std::string::npos; ++at, ++bars) {
    const double step = rows.at(bars).at("time_us"), compute = rows[bars].at("split_us").at("compute"),
                 rest = rows[bars].at("optimizer_us").get<double>() + rows[bars].at("recompute_us").get<double>();
    const std::string shown = svg.substr(at, svg.find("</title>", at) - at);
    CHECK(shown == fmt::format("<title>forward and backward: {:.1f} %", 100 * (compute - rest) / step));
  }
  CHECK(bars == rows.size());
  CHECK(has(svg, ">optimizer</text>"));
  CHECK(has(svg, ">recomputation</text>"));  // each part has its color in all pictures, whether it takes time or not
  CHECK(!has(svg, "shard"));                 // all have optimizer: labels name what differs
  CHECK(has(svg, "tokens/s/GPU"));
}

TEST_CASE("a picture of plans that are not simulated, or of another kind, is refused") {
  const Outcome bounds = plan({"--bounds", "--picture", "x.svg"});
  CHECK(bounds.code == 2);
  CHECK(has(bounds.err, "--picture: expected simulated plans, found --bounds"));
  const Outcome ending = plan({"--picture", "x.pdf"});
  CHECK(ending.code == 2);
  CHECK(has(ending.err, "--picture: expected a name that ends in .svg or .png, found \"x.pdf\""));
  const Outcome nowhere = plan({"--picture", "/no/such/folder/x.svg"});
  CHECK(nowhere.code == 3);
  CHECK(has(nowhere.err, "/no/such/folder/x.svg"));
}

}  // namespace plan_command_test
