// Training steps as scenarios: workloads, buckets to the byte, keys, and the results next to the closed form.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <numeric>
#include <string>
#include <vector>

#include "scenarios/meaning/meaning_training.hpp"
#include "scenarios/predict/predict.hpp"
#include "sim/base/error.hpp"
#include "tests/support/training_scenario.hpp"
#include "validate/results/result.hpp"

namespace training_scenario_test {

using namespace ringsim;
using namespace ringsim::test;
using namespace ringsim::literals;
using namespace std::chrono_literals;

namespace {

/// Elements of each bucket of a model, by PyTorch's rule with its own limits.
std::vector<std::int64_t> bucket_elements(const std::string& model) {
  std::vector<std::int64_t> elements;
  for (const Bucket& bucket : pytorch_buckets(scenarios::workload_named(model).layers, 4, 1_MiB, 25_MiB))
    elements.push_back(bucket.bytes.count / 4);
  return elements;
}

}  // namespace

// What torchvision and HuggingFace count; tensors as the modules register them.
TEST_CASE("the workloads have the published numbers of parameters and tensors") {
  struct Row {
    const char* name;
    std::int64_t parameters, tensors;
    double macs;
  };
  for (const Row& row :
       {Row{"resnet50", 25'557'032, 161, 4.089184256e9}, Row{"resnet101", 44'549'160, 314, 7.80140544e9},
        Row{"resnet152", 60'192'808, 467, 11.513626624e9}, Row{"alexnet", 61'100'840, 16, 714'188'480},
        // torchvision's 27,161,264 and 284 + 8 tensors less the auxiliary classifier's 3,326,696 and 8
        Row{"inception_v3", 23'834'568, 284, 5.713216096e9}, Row{"vgg16", 138'357'544, 32, 15.47026432e9},
        // Keras's 88,949,818 less 196,668 that are not trained: means and variances of the batch normalization; the
        // paper has 23.8 G
        Row{"nasnet_a_large", 88'753'150, 1018, 23.783414658e9},
        Row{"bert_large", 336'226'108, 398, 43.59585792e9},  // 391 of the encoder and pooler, 7 of heads
        Row{"gpt2_xl", 1'557'611'200, 580, 1753.3517824e9}, Row{"llama2_7b", 6'738'415'616, 291, 31460.6354432e9}}) {
    CAPTURE(row.name);
    const scenarios::Workload workload = scenarios::workload_named(row.name);
    std::int64_t parameters = 0, tensors = 0;
    for (const LayerCost& layer : workload.layers) {
      parameters += std::accumulate(layer.tensors.begin(), layer.tensors.end(), std::int64_t{0});
      tensors += static_cast<std::int64_t>(layer.tensors.size());
    }
    CHECK(parameters == row.parameters);
    CHECK(tensors == row.tensors);
    CHECK(static_cast<double>(std::accumulate(workload.macs.begin(), workload.macs.end(), std::int64_t{0})) ==
          row.macs);
    CHECK(!workload.source.empty());
  }
}

// ResNet-50: the five all-reduces of every step in a PyTorch profile of two A100
// (facebookresearch/HolisticTraceAnalysis); the others by the same rule.
TEST_CASE("PyTorch's buckets of ResNet-50 and VGG-16, to the element") {
  CHECK(bucket_elements("resnet50") ==
        std::vector<std::int64_t>{2'049'000, 7'875'584, 6'563'840, 6'637'568, 2'431'040});
  CHECK(bucket_elements("vgg16") ==
        std::vector<std::int64_t>{4'097'000, 16'781'312, 102'764'544, 7'079'424, 7'079'936, 555'328});
}

// ResNet-18 of torchvision: pytorch issue 48880 prints its buckets.
TEST_CASE("PyTorch's buckets of ResNet-18, to the byte") {
  std::vector<LayerCost> layers = {{.name = "conv1", .tensors = {64 * 3 * 49, 64, 64}}};
  const auto conv = [&](std::int64_t in, std::int64_t out, std::int64_t k) {
    layers.push_back({.name = "conv", .tensors = {in * out * k * k, out, out}});
  };
  for (const std::int64_t width : {64, 128, 256, 512})
    for (int block = 0; block < 2; ++block) {
      const std::int64_t in = block == 0 && width > 64 ? width / 2 : width;
      conv(in, width, 3);
      conv(width, width, 3);
      if (in != width) conv(in, width, 1);
    }
  layers.push_back({.name = "fc", .tensors = {512 * 1000, 1000}});
  const auto bytes = [&](Bytes size) {
    std::vector<std::int64_t> all;
    for (const Bucket& bucket : pytorch_buckets(layers, 4, 1_MiB, size)) all.push_back(bucket.bytes.count);
    return all;
  };
  CHECK(bytes(25_MiB) == std::vector<std::int64_t>{2'052'000, 28'852'224, 15'853'824});
  CHECK(bytes(35_MiB) == std::vector<std::int64_t>{2'052'000, 38'297'600, 6'408'448});
}

TEST_CASE("a training scenario gives the step, its parts, and the closed form") {
  const Result result = result_of(
      star_scenario(8, std::string("{") + resnet +
                           R"(, "regime": {"name": "ddp", "algorithm": "ring"}, "optimizer": {"time": "1 ms"}})"));
  REQUIRE(result.prediction.training);
  const TrainingReport& report = *result.prediction.training;
  CHECK(report.buckets == 5);
  CHECK(report.batch == 256);
  CHECK(report.split.compute == 97ms);  // 96 ms of both passes and 1 ms of the update
  CHECK(report.split.total() == result.prediction.time);
  CHECK(report.steady);
  CHECK(report.efficiency == 97e9 / static_cast<double>(report.step.count()));
  REQUIRE(result.form);
  // 4 * 2,049,000 B and the others divide by 8: exact.
  CHECK(result.form->holds());
  CHECK(result.form->time == result.form->low);
  CHECK(result.form->time == result.prediction.time);
  // A ring sends 2(K-1) p in all, p = 4 * 25,557,032 B.
  CHECK(report.sent.count == 2LL * 7 * 4 * 25'557'032);
  CHECK(result.prediction.proof.by == Proof::By::parts);
}

TEST_CASE("one GPU takes its measured step, with efficiency 1, on every machine") {
  for (const char* regime : {R"("single")", R"({"name": "ddp", "algorithm": "ring"})"}) {
    CAPTURE(regime);
    const std::string more = regime[1] == 's' ? "" : R"(, "ranks": ["gpu2"])";
    const Result result = result_of(star_scenario(4, fmt::format(R"({{{}, "regime": {}{}}})", resnet, regime, more)));
    CHECK(result.prediction.time == 97ms);
    CHECK(result.prediction.training->efficiency == 1.0);
    CHECK(result.prediction.training->split.compute == 97ms);
    CHECK(result.prediction.request.ranks == 1);
    CHECK(result.form->time == 97ms);
  }
}

// 2 * 4,089,184,256 multiply-adds * 10 images at 40 % of 100 TFLOP/s: 2.044592128 ms forward, twice that backward.
TEST_CASE("compute by a peak and a share of it counts two operations a multiply-add, three passes' worth") {
  const Result result = result_of(star_scenario(
      1, R"({"workload": {"model": "resnet50", "batch": 10, "compute": {"flops": "100 TFLOP/s", "efficiency": "40%"}},
             "regime": "single"})"));
  CHECK(result.prediction.time == 3 * 2'044'592'128_ps);
  CHECK(scenarios::parse_flops("15.7TFLOP/s") == 15'700'000'000'000);
  CHECK(scenarios::parse_flops("1 PFLOP/s") == 1'000'000'000'000'000);
  for (const char* wrong : {"", "125", "TFLOP/s", "1.TFLOP/s", "1..5 TFLOP/s", "125 TFLOPS", "-1 TFLOP/s", "0 TFLOP/s"})
    CHECK_THROWS_AS(scenarios::parse_flops(wrong), InputError);
}

TEST_CASE("every launch of an all-reduce counts, not one per run") {
  const std::string training =
      R"({"workload": {"layers": [{"name": "l", "times": 4, "parameters": 1000000, "forward": "1 ms", "backward": "1 us"}],
          "batch": 1}, "regime": {"name": "ddp", "algorithm": "ring", "buckets": {"size": "1 B", "first": "1 B"}}})";
  const Picoseconds without = result_of(star_scenario(4, training)).prediction.time;
  const Picoseconds with =
      result_of(star_scenario(4, training, R"(, "transport": {"launch": "10 us"})")).prediction.time;
  CHECK(with - without == 40us);
}

TEST_CASE("what training cannot be is refused at its place") {
  const std::string ddp = std::string("{") + resnet + R"(, "regime": {"name": "ddp", "algorithm": "ring"})";
  CHECK(complaint_of(star_scenario(4, ddp + "}")) == "accepted");
  CHECK(complaint_of(star_scenario(4, ddp + R"(, "stesp": 3})")) ==
        "t.json: /training/stesp: expected a known key of training, found \"stesp\"");
  CHECK(complaint_of(star_scenario(4, ddp + "}",
                                   R"(, "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 MiB"})")) ==
        "t.json: expected one of the keys \"collective\", \"training\", \"inference\" and \"trace\", found collective "
        "and training");
  CHECK(complaint_of(star_scenario(4, R"({"workload": {"model": "resnet50", "batch": 1}, "regime": "single"})")) ==
        "t.json: /training/workload/compute: expected either step or flops, found neither");
  CHECK(
      complaint_of(star_scenario(
          4,
          R"({"workload": {"model": "resnet50", "batch": 1, "compute": {"flops": "1 TFLOP/s"}}, "regime": "single"})")) ==
      "t.json: /training/workload/compute: expected the key \"efficiency\" with flops, a share such as \"40%\", found "
      "none");
  CHECK(complaint_of(star_scenario(4, R"({"workload": {"batch": 1}, "regime": "single"})")) ==
        "t.json: /training/workload: expected either model, layers or transformer, found none");
  CHECK(complaint_of(star_scenario(
            4, std::string("{") + resnet +
                   R"(, "regime": {"name": "ddp", "algorithm": "ring", "buckets": {"cycle": "1 ms"}}})")) ==
        "t.json: /training/regime/buckets/cycle: expected cycle only with the rule horovod, found pytorch");
  CHECK(complaint_of(
            star_scenario(4, std::string("{") + resnet + R"(, "regime": "single", "ranks": ["gpu0", "gpu1"]})")) ==
        "t.json: /training/ranks: expected one gpu for the regime single, found 2");
  CHECK(
      complaint_of(star_scenario(4, ddp + "}", R"(, "disturbance": {"slow": [{"rank": 1, "step_delay": "1 us"}]})")) ==
      "t.json: /disturbance/slow: cannot be combined with a training step");
  CHECK(complaint_of(star_scenario(
            4, std::string("{") + resnet + R"(, "regime": {"name": "ddp", "algorithm": "dissemination"}})")) !=
        "accepted");
}

namespace {

constexpr std::int64_t resnet_gradients = 4 * 25'557'032;
constexpr const char* one_bucket =
    R"("overlap": false, "buckets": {"size": "1 GB", "first": "1 GB"})";  // all gradients, after the backward pass

}  // namespace

// The sources' comparison: p = 102,228,128 B, b = 12.5 GB/s, so p/b = 8,178,250.24 ns; a = 2 us. One step from a common
// start. A ring of K ranks passes on ceil(p/K) bytes in each of its 2(K-1) steps.
TEST_CASE("a parameter server's exchange grows with K as 2(K-1) p/b, a ring's stays below 2p/b, to the picosecond") {
  const Picoseconds once{8'178'250'240}, compute = 97ms;
  for (const int k : {2, 3, 4, 8, 13, 16, 32, 64}) {
    CAPTURE(k);
    const std::string one_step = R"(, "steps": 1, "warmup": 0)";
    const Result server = resnet_by(R"("parameter_server")", k, one_step);
    const Picoseconds by_server = server.prediction.time - compute;
    CHECK(by_server == 2 * ((k - 1) * once + 2us));
    CHECK(server.form->holds());
    CHECK(server.form->time == server.prediction.time);
    CHECK(server.prediction.training->split.communication() == by_server);
    const Result ring =
        resnet_by(fmt::format(R"({{"name": "ddp", "algorithm": "ring", {}}})", one_bucket), k, one_step);
    const Picoseconds by_ring = ring.prediction.time - compute;
    CHECK(by_ring == 2 * (k - 1) * (2us + Picoseconds{80 * ((resnet_gradients + k - 1) / k)}));
    CHECK(ring.form->time == ring.prediction.time);
    CHECK(by_ring - 2 * (k - 1) * Picoseconds{2us} < 2 * once);
    if (k == 64) {
      CHECK(by_server == 1'030'463'530'240_ps);
      CHECK(by_ring == 16'352'935'200_ps);
    }
  }
}

TEST_CASE("every regime agrees with its closed form, whatever the number of ranks, and its parts add up") {
  for (const char* regime :
       {R"("parameter_server")", R"({"name": "parameter_server", "servers": 1})",
        R"({"name": "parameter_server", "servers": 3})", R"({"name": "parameter_server", "servers": 4})",
        R"({"name": "data_parallel", "loss": "3 us"})", R"({"name": "local_sgd", "algorithm": "ring", "every": 5})",
        R"({"name": "ddp", "algorithm": "ring"})", R"({"name": "gossip", "every": 3})",
        R"({"name": "gossip", "overlap": true})"})
    for (const int ranks : {1, 2, 3, 8, 13}) {
      CAPTURE(regime);
      CAPTURE(ranks);
      // Servers with unequal shards hand out samples one before another, for which there is no form.
      const bool is_uneven = std::string(regime).find(R"("servers": 3)") != std::string::npos;
      const Result result = result_of(
          star_scenario(ranks,
                        fmt::format(R"({{"workload": {{"model": "resnet50", "batch": 32, "compute": {{"step": "97 ms"}},
                           {} "output_bytes": "4000 B"}},
                          "regime": {}, "optimizer": {{"name": "adam", "time": "700 us"}}}})",
                                    is_uneven ? "" : R"("sample_bytes": "588 KiB",)", regime),
                        R"(, "transport": {"launch": "5 us"})"));
      REQUIRE(result.form);
      CHECK(result.form->holds());
      CHECK(result.form->agrees(result.prediction.time));
      const TrainingReport& report = *result.prediction.training;
      CHECK(report.split.total() == result.prediction.time);
      CHECK(report.batch == 32 * ranks);
      CHECK(report.by_rank.front().split.total().count() > 0);
    }
}

// Three kernels of 2, 2 and 0.3 ms, launches of 0.5 and 3 ms: hosts also hold up one GPU, with which a step is
// compared. Not with a separate server that updates the model in place of the GPUs: their hosts launch a kernel less.
TEST_CASE("no regime is more efficient than one GPU alone, whatever the host does, and forms hold if the host waits") {
  for (const std::string regime :
       {R"("single")", R"("parameter_server")", R"({"name": "data_parallel", "loss": "3 us"})",
        R"({"name": "local_sgd", "algorithm": "ring", "every": 3})", R"({"name": "ddp", "algorithm": "ring"})",
        R"({"name": "gossip", "every": 3})", R"({"name": "gossip", "every": 3, "overlap": true})",
        R"({"name": "parameter_server", "mode": "async", "every": 3})"})
    for (const std::string launch : {"500 us", "3 ms"})
      for (const bool waits : {true, false})
        for (const int ranks : {1, 2, 3}) {
          CAPTURE(regime);
          CAPTURE(launch);
          CAPTURE(waits);
          CAPTURE(ranks);
          if (regime == R"("single")" && ranks > 1) continue;
          const bool is_async = regime.find("async") != std::string::npos;
          const std::string sent = regime.find("data_parallel") == std::string::npos
                                       ? ""
                                       : R"(, "sample_bytes": "1 B", "output_bytes": "1 B")";
          const std::string layer = R"({"name": "l", "parameters": 10, "forward": "2 ms", "backward": "2 ms"})";
          const Result result = result_of(
              star_scenario(ranks, fmt::format(R"({{"workload": {{"layers": [{}], "batch": 1{}}}, "regime": {},
                                      "optimizer": {{"time": "300 us"}}, "host": {{"launch": "{}", "waits": {}}}}})",
                                               layer, sent, regime, launch, waits)));
          const TrainingReport& report = *result.prediction.training;
          // The five parts of a step are rounded down.
          CHECK(report.efficiency <= 1 + 5.0 / static_cast<double>(report.step.count()));
          REQUIRE(result.form);
          CHECK(result.form->holds() == (!is_async && (waits || ranks == 1)));
          if (result.form->holds()) CHECK(result.form->agrees(result.prediction.time));
        }
}

// p = 102,228,128 B; Adam keeps 8 B a parameter, 2p. Master: p + p + 2p. Of two servers each has half.
TEST_CASE("the server has the optimizer's state, and sends to everybody") {
  const std::string adam = R"(, "optimizer": {"name": "adam"})";
  const TrainingReport master = *resnet_by(R"({"name": "parameter_server", "master": 2})", 4, adam).prediction.training;
  REQUIRE(master.by_rank.size() == 3);
  CHECK(master.by_rank[0].who == "ranks 0 to 1");
  CHECK(master.by_rank[1].who == "rank 2");
  CHECK(master.by_rank[2].who == "rank 3");
  CHECK(master.by_rank[0].memory.total().count == 2 * resnet_gradients);
  CHECK(master.by_rank[1].memory.total().count == 4 * resnet_gradients);
  CHECK(master.memory == master.by_rank[1].memory);
  CHECK(master.by_rank[0].sent.count == resnet_gradients);
  CHECK(master.by_rank[1].sent.count == 3 * resnet_gradients);
  CHECK(master.by_rank[1].received.count == 3 * resnet_gradients);
  const TrainingReport two = *resnet_by(R"({"name": "parameter_server", "servers": 2})", 4, adam).prediction.training;
  REQUIRE(two.by_rank.size() == 2);
  CHECK(two.by_rank[0].who == "ranks 0 to 3");
  CHECK(two.by_rank[1].who == "servers 0 to 1");
  CHECK(two.by_rank[0].memory.total().count == 2 * resnet_gradients);
  CHECK(two.by_rank[1].memory.total().count == 2 * resnet_gradients);  // half of p + p + 2p
  CHECK(two.by_rank[1].sent.count == 2 * resnet_gradients);            // half of it to four workers
}

// 100 million parameters in four layers: p = 400 MB of weights, as much of gradients, and for Adam 800 MB.
TEST_CASE("a model that GPUs have no room for is warned of, with the sum, in every regime") {
  struct Row {
    int ranks;
    std::string regime, room, expected;
  };
  for (const Row& row : std::vector<Row>{
           {1, R"("single")", "1.5 GB",
            "1.6 GB on gpu0, which has 1.5 GB: weights 0.4 GB, gradients 0.4 GB, "
            "optimizer 0.8 GB"},
           {4, R"({"name": "ddp", "algorithm": "ring"})", "1900 MB",
            "2.0 GB on each GPU, which has 1.9 GB: weights 0.4 GB, gradients 0.4 GB, optimizer 0.8 GB, "
            "buckets 0.4 GB"},
           {4, R"({"name": "local_sgd", "algorithm": "ring", "every": 3})", "1500 MB",
            "1.6 GB on each GPU, which has 1.5 GB: weights 0.4 GB, gradients 0.4 GB, optimizer 0.8 GB"},
           {4, R"("gossip")", "2300 MB",
            "2.4 GB on each GPU, which has 2.3 GB: weights 0.4 GB, gradients 0.4 GB, optimizer 0.8 GB, "
            "neighbors' weights 0.8 GB"},
           {4, R"("parameter_server")", "1 GB",  // the master alone has the optimizer's state
            "1.6 GB on gpu0, which has 1.0 GB: weights 0.4 GB, gradients 0.4 GB, optimizer 0.8 GB"},
           {4, R"({"name": "parameter_server", "servers": 2})", "700 MB",
            "0.8 GB on each GPU, which has 0.7 GB: weights 0.4 GB, gradients 0.4 GB"},
           {4, R"({"name": "parameter_server", "mode": "async"})", "2 GB",  // a worker, and what comes in
            "2.4 GB on gpu0, which has 2.0 GB: weights 0.4 GB, gradients 0.4 GB, optimizer 0.8 GB, incoming data "
            "0.8 GB"},
           {4, R"({"name": "parameter_server", "mode": "async", "servers": 1, "every": 4})", "1500 MB",
            "1.6 GB on each GPU, which has 1.5 GB: weights 0.4 GB, gradients 0.4 GB, optimizer 0.8 GB"},
           {2, R"("data_parallel")", "2 GB",
            "2.3 GB on gpu0, which has 2.0 GB: weights 0.4 GB, gradients 0.4 GB, optimizer 0.8 GB, incoming data "
            "0.4 GB, outputs 0.3 GB"},
           {2, R"("model_parallel")", "700 MB",  // half of the layers
            "0.8 GB on each GPU, which has 0.7 GB: weights 0.2 GB, gradients 0.2 GB, optimizer 0.4 GB"}}) {
    CAPTURE(row.regime);
    std::string sizes;
    if (row.regime.find("data_parallel") != std::string::npos)
      sizes = R"(, "sample_bytes": "1 B", "output_bytes": "150 MB")";
    if (row.regime.find("model_parallel") != std::string::npos) sizes = R"(, "activation_bytes": "1 B")";
    const auto warnings_with = [&](const std::string& room) {
      return result_of(
                 star_scenario(
                     row.ranks,
                     fmt::format(R"({{"workload": {{"layers": [{{"name": "l", "times": 4, "parameters": 25000000,
                               "forward": "1 ms", "backward": "2 ms"}}], "batch": 1{}}}, "regime": {},
                               "optimizer": {{"name": "adam"}}{}}})",
                                 sizes, row.regime, room.empty() ? "" : fmt::format(R"(, "gpu_memory": "{}")", room))))
          .prediction.warnings;
    };
    const std::vector<std::string> warnings = warnings_with(row.room);
    REQUIRE(warnings.size() == 1);
    CHECK(warnings[0].find(": /training: layers with adam needs " + row.expected + ", excluding activations") !=
          std::string::npos);
    CHECK(warnings_with("3 GB").empty());
    CHECK(warnings_with("").empty());  // nothing is known of the GPUs of a star
  }
}

// 6,738,415,616 parameters of 4 B: 26.95 GB; 6.7e9 * 8 B for Adam: 53.9 GB. 80 GiB are 85.9 GB.
TEST_CASE("a machine's file says what its GPUs have, and the scenario may say otherwise") {
  const auto warnings_of = [](const std::string& node, const std::string& more) {
    return result_of(fmt::format(R"({{"version": 1, "topology": {{"kind": "cluster", "node": "{}", "nodes": 1}},
      "training": {{"workload": {{"model": "llama2_7b", "batch": 1, "compute": {{"step": "1 s"}}}},
        "regime": {{"name": "ddp", "algorithm": "ring"}}, "optimizer": {{"name": "adam"}}{}}}}})",
                                 node, more))
        .prediction.warnings;
  };
  const std::vector<std::string> warnings = warnings_of("hgx-h100", "");
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("llama2_7b with adam needs 134.8 GB on each GPU, which has 85.9 GB (80 GiB): weights 27.0 GB, "
                         "gradients 27.0 GB, optimizer 53.9 GB, buckets 27.0 GB, excluding activations") !=
        std::string::npos);
  CHECK(warnings_of("hgx-h200", "").empty());  // 141 GiB
  CHECK(warnings_of("hgx-h100", R"(, "gpu_memory": "140 GB")").empty());
  CHECK(warnings_of("hgx-h200", R"(, "gpu_memory": "130 GB")").size() == 1);
}

// 128 samples of 602,112 B and 4000 B of outputs: x = 77,070,336 B, o = 512,000 B. Master: p + p, momentum p, room for
// gradients p, and o.
TEST_CASE("DataParallel divides the batch, and its master carries more") {
  const std::string training =
      R"({"workload": {"model": "resnet50", "global_batch": 128, "compute": {"step": "401 ms"},
                      "sample_bytes": "588 KiB", "output_bytes": "4000 B"},
          "regime": {"name": "data_parallel", "loss": "2 ms"}, "optimizer": {"name": "momentum", "time": "1 ms"}})";
  const Result result = result_of(star_scenario(4, training));
  const TrainingReport& report = *result.prediction.training;
  CHECK(report.batch == 128);
  REQUIRE(report.by_rank.size() == 2);
  const RankReport &master = report.by_rank[0], &other = report.by_rank[1];
  CHECK(other.who == "ranks 1 to 3");
  // A quarter of 400 ms, each of the layers' times rounded down; and on the master 2 ms and 1 ms.
  CHECK(master.split.compute - other.split.compute == 3ms);
  CHECK(other.split.compute <= 100ms);
  CHECK(other.split.compute > 100ms - 1000_ps);
  CHECK(master.memory.total().count == 4 * resnet_gradients + 512'000);
  CHECK(other.memory.total().count == 2 * resnet_gradients);
  // The master sends 3/4 of the batch and of the loss's gradients, and the model three times.
  CHECK(master.sent.count == 3 * (resnet_gradients + 77'070'336 / 4 + 512'000 / 4));
  CHECK(master.received.count == 3 * (resnet_gradients + 512'000 / 4));
  CHECK(result.form->time == result.prediction.time);
  // One GPU does all of it in 400 ms, 2 ms and 1 ms.
  CHECK(result_of(star_scenario(1, training)).prediction.time == 403ms);
  CHECK(result_of(star_scenario(1, training)).prediction.training->efficiency == 1.0);
}

// Launches of 100 us end while the model still travels; with 200 us GPUs wait for them, each longer than the one
// before.
TEST_CASE(
    "one thread that launches for all GPUs: the closed form holds, and the result says how long GPUs wait for it") {
  const auto step_of = [](int ranks, const std::string& host) {
    return result_of(
        star_scenario(ranks, R"({"workload": {"model": "resnet50", "global_batch": 128, "compute": {"step": "401 ms"},
                                "sample_bytes": "588 KiB", "output_bytes": "4000 B"},
                   "regime": {"name": "data_parallel", "loss": "2 ms"}, "optimizer": {"time": "1 ms"}, "host": )" +
                                 host + "}"));
  };
  for (const char* host :
       {R"({"launch": "100 us"})", R"({"launch": "200 us"})", R"({"launch": "200 us", "order": "by_layer"})"})
    for (const int ranks : {1, 2, 4, 8}) {
      CAPTURE(host);
      CAPTURE(ranks);
      const Result result = step_of(ranks, host);
      REQUIRE(result.form.has_value());
      CHECK(result.form->because.empty());
      CHECK(std::abs((result.form->time - result.prediction.time).count()) <= 4 * ranks);
    }
  const TrainingReport report = *step_of(8, R"({"launch": "200 us"})").prediction.training;
  CHECK(report.by_rank.size() == 8);  // none is like another
  CHECK(report.by_rank[7].split.waiting_for_host > report.by_rank[1].split.waiting_for_host);
}

TEST_CASE("local SGD exchanges every H steps what DDP exchanges in each") {
  const Picoseconds every_step =
      resnet_by(fmt::format(R"({{"name": "ddp", "algorithm": "ring", {}}})", one_bucket), 8).prediction.time;
  const auto every = [](int h) {
    return resnet_by(fmt::format(R"({{"name": "local_sgd", "algorithm": "ring", "every": {}}})", h), 8).prediction;
  };
  CHECK(every(1).time == every_step);
  for (const int h : {2, 4, 10}) {
    CAPTURE(h);
    const Prediction prediction = every(h);
    const Picoseconds less = (every_step - Picoseconds{97ms}) / h - (prediction.time - Picoseconds{97ms});
    CHECK(less >= 0_ps);
    CHECK(less <= 5_ps);  // five parts of the step, each rounded down
    CHECK(prediction.training->sent.count == 2LL * 7 * resnet_gradients / h);
  }
}

TEST_CASE("ddp sends its buckets to a server on a CPU, which takes what that collective alone takes") {
  // All gradients in one bucket after the backward pass: compute, then the exchange.
  const std::string machine = R"({"version": 1, "topology": {"kind": "cluster", "node": "dgx-1p", "nodes": 1}, )";
  const std::string server = R"("algorithm": {"name": "parameter_server", "servers": 1}, "servers_on": "cpu")";
  const Result step = result_of(machine + R"("training": {)" + resnet + R"(, "regime": {"name": "ddp", "overlap": false,
      "buckets": {"size": "1 GB", "first": "1 GB"}, )" +
                                server + "}}}");
  const Result alone =
      result_of(machine + R"("collective": {"op": "all_reduce", "bytes": "102228128 B", )" + server + "}}");
  CHECK(step.prediction.time == Picoseconds{97ms} + alone.prediction.time);
  // A regime with a server on that CPU exchanges the same by the same links.
  const Result server_step =
      result_of(machine + R"("training": {)" + resnet +
                R"(, "regime": {"name": "parameter_server", "servers": 1, "servers_on": "cpu"}}})");
  CHECK(server_step.prediction.time == step.prediction.time);
  REQUIRE(server_step.prediction.bottleneck);
  CHECK(server_step.prediction.bottleneck->link == alone.prediction.bottleneck->link);
  CHECK(complaint_of(star_scenario(
            4,
            fmt::format(R"({{{}, "regime": {{"name": "ddp", "algorithm": "ring", "servers_on": "cpu"}}}})", resnet))) ==
        "t.json: /training/regime/servers_on: expected servers_on only for an algorithm with separate servers, found "
        "ring");
}

TEST_CASE("settings that a regime does not have are refused, and those without effect are warned of") {
  const auto complaint = [](const std::string& regime, const std::string& more = "") {
    return complaint_of(star_scenario(4, fmt::format(R"({{{}, "regime": {}{}}})", resnet, regime, more)));
  };
  CHECK(complaint(R"({"name": "parameter_server", "buckets": {"size": "1 MiB"}})") ==
        "t.json: /training/regime/buckets: expected a known key of parameter_server, found \"buckets\"");
  CHECK(complaint(R"({"name": "parameter_server", "master": 4})") ==
        "t.json: /training/regime/master: expected a rank from 0 to 3, found 4");
  CHECK(complaint(R"({"name": "parameter_server", "master": 0, "servers": 2})") ==
        "t.json: /training/regime/master: cannot be combined with separate servers");
  CHECK(complaint(R"({"name": "parameter_server", "servers_on": "cpu"})") ==
        "t.json: /training/regime/servers_on: expected servers_on only for an algorithm with separate servers, found "
        "parameter_server");
  CHECK(complaint(R"("data_parallel")") ==
        "t.json: /training/workload: expected the key \"sample_bytes\" with the regime data_parallel, found none");
  CHECK(complaint(R"("parameter_server")", R"(, "host": {"order": "by_gpu"})") ==
        "t.json: /training/host/order: expected order only with the regime data_parallel, found another regime");
  CHECK(complaint(R"({"name": "parameter_server", "servers": 1, "every": 4})") ==
        "t.json: /training/regime/every: expected every only with mode async of parameter_server, found another mode "
        "or regime");
  CHECK(complaint(R"({"name": "local_sgd", "algorithm": "ring"})") ==
        "t.json: /training/regime: expected the key \"every\", found none");
  CHECK(complaint(R"("asynchronous")") ==
        "t.json: /training/regime: expected a name from `ringsim list regimes`, found \"asynchronous\", which is a "
        "mode of parameter_server");
  CHECK(complaint_of(
            star_scenario(3, R"({"workload": {"model": "resnet50", "global_batch": 32, "compute": {"step": "97 ms"}},
                   "regime": "parameter_server"})")) ==
        "t.json: /training/workload/global_batch: expected a multiple of the number of GPUs, 3, found 32");
  CHECK(complaint_of(star_scenario(
            3, R"({"workload": {"model": "resnet50", "compute": {"step": "97 ms"}}, "regime": "single"})")) ==
        "t.json: /training/workload: expected either batch or global_batch, found neither");
  const auto warnings_of = [&](const char* key, const char* regime) {
    return ScenarioFile::parse(star_scenario(2, fmt::format(
                                                    R"({{"workload": {{"model": "resnet50", "batch": 1,
                                   "compute": {{"step": "1 ms"}}, "{}": "1 kB"}}, "regime": {}}})",
                                                    key, regime)),
                               "t.json")
        .point(0)
        .warnings;
  };
  const std::string at = "t.json: /training/workload/", none = ": has no effect with the regime ";
  CHECK(warnings_of("sample_bytes", R"("parameter_server")").empty());
  CHECK(warnings_of("output_bytes", R"("parameter_server")") ==
        std::vector{at + "output_bytes" + none + "parameter_server: only data_parallel sends outputs"});
  const std::string senders = "only data_parallel and a synchronous parameter server send samples";
  CHECK(warnings_of("sample_bytes", R"({"name": "ddp", "algorithm": "ring"})") ==
        std::vector{at + "sample_bytes" + none + "ddp: " + senders});
  CHECK(warnings_of("sample_bytes", R"({"name": "parameter_server", "mode": "async"})") ==
        std::vector{at + "sample_bytes" + none + "parameter_server, mode async: " + senders});
}

// Adam in fp32 reads and writes weights and both moments, and reads the gradients: 28 B. A measured step has its
// update.
TEST_CASE("an optimizer whose update takes no time is a warning, unless the file says so or the step was measured") {
  const auto warnings_of = [&](const char* compute, const char* optimizer) {
    return ScenarioFile::parse(
               star_scenario(2, fmt::format(R"({{"workload": {{"model": "resnet50", "batch": 1, "compute": {}}},
                                               "regime": {{"name": "ddp", "algorithm": "ring"}}, "optimizer": {}}})",
                                            compute, optimizer)),
               "t.json")
        .point(0)
        .warnings;
  };
  const char *flops = R"({"flops": "125 TFLOP/s", "efficiency": "40%"})", *step = R"({"step": "97 ms"})";
  CHECK(
      warnings_of(flops, R"("adam")") ==
      std::vector<std::string>{"t.json: /training/optimizer: the update of adam takes no time, because optimizer.time "
                               "is not set; an update moves 28 B per parameter, 0.72 GB for all of resnet50"});
  CHECK(warnings_of(flops, R"({"name": "adam", "time": "0 us"})").empty());
  CHECK(warnings_of(flops, R"({"name": "adam", "time": "1 ms"})").empty());
  CHECK(warnings_of(flops, R"("sgd")").empty());
  CHECK(warnings_of(step, R"("adam")").empty());
}

// p = 4 x 25,000,000 B on ports of 12.5 GB/s: 8 ms. Copies to three GPUs take 24 ms and a path of 2 us; 50 segments in
// a chain of four take 50 + 4 - 2 steps, each a segment's 160 us and a path.
TEST_CASE("DataParallel can broadcast and reduce in a chain, as PyTorch with NCCL does in rings") {
  const auto step_with = [](int ranks, const std::string& algorithm) {
    return star_scenario(ranks, fmt::format(R"({{"workload": {{"layers": [{{"name": "all", "parameters": 25000000,
                                     "forward": "8 ms", "backward": "16 ms"}}], "batch": 1, "sample_bytes": "1 B",
                                     "output_bytes": "1 B"}}, "regime": {{"name": "data_parallel"{}}}}})",
                                            algorithm));
  };
  const Result copies = result_of(step_with(4, R"(, "algorithm": "direct")")),
               chain = result_of(step_with(4, R"(, "algorithm": {"name": "chain", "segments": 50})"));
  CHECK(copies.form.has_value());
  CHECK_FALSE(chain.form.has_value());
  CHECK(result_of(step_with(4, "")).prediction.time == copies.prediction.time);
  const Picoseconds by_chain = 52 * 162us, by_copies = 24ms + 2us;
  const Picoseconds gained = copies.prediction.time - chain.prediction.time;
  CHECK(std::abs((gained - 2 * (by_copies - by_chain)).count()) < 1'000);  // shares of a port are rounded
  const auto warnings = [&](int ranks, const std::string& algorithm) {
    return ScenarioFile::parse(step_with(ranks, algorithm), "t.json").point(0).warnings.size();
  };
  CHECK(warnings(4, "") == 1);
  CHECK(warnings(4, R"(, "algorithm": "direct")") == 0);
  CHECK(warnings(2, "") == 0);
  for (const std::string name : {"ring", "in_switch", "halving_doubling"})
    CHECK(complaint_of(step_with(4, fmt::format(R"(, "algorithm": "{}")", name))) ==
          "t.json: /training/regime/algorithm: expected an algorithm of GPUs that broadcasts and reduces, found " +
              name);
}

// Two channels share a port: two messages of half the size take as long as one. 400,000 B divide by 2 channels of 4.
TEST_CASE("every regime runs over several channels, and takes as long") {
  for (const char* regime :
       {R"("parameter_server")", R"({"name": "parameter_server", "servers": 2})", R"({"name": "data_parallel"})",
        R"({"name": "local_sgd", "algorithm": "ring", "every": 2})", R"({"name": "ddp", "algorithm": "ring"})",
        R"({"name": "gossip", "every": 2})"}) {
    CAPTURE(regime);
    const auto time = [&](const char* transport) {
      return result_of(star_scenario(4,
                                     fmt::format(R"({{"workload": {{"layers": [{{"name": "l", "parameters": 100000,
                     "forward": "1 ms", "backward": "2 ms"}}], "batch": 2, "sample_bytes": "800 B", "output_bytes": "80 B"}},
                     "regime": {}}})",
                                                 regime),
                                     transport))
          .prediction.time;
    };
    CHECK(time(R"(, "transport": {"channels": 2})") == time(""));
  }
}

TEST_CASE("a schedule is not made of a training step") {
  const Scenario scenario =
      ScenarioFile::parse(star_scenario(4, std::string("{") + resnet + R"(, "regime": "single"})"), "t.json").point(0);
  CHECK_THROWS_AS(schedule_of(scenario), InputError);
}

}  // namespace training_scenario_test
