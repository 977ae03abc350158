// compare --explain as a command: defects of made machines are found, with the numbers of runs by themselves.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "scenarios/predict/predict.hpp"
#include "sim/base/quantity.hpp"
#include "sim/text/wrap.hpp"
#include "tests/support/command.hpp"
#include "tests/support/files.hpp"
#include "tests/support/paths.hpp"
#include "topologies/formats/nccl_xml_export.hpp"
#include "topologies/machines/machine.hpp"
#include "topologies/nccl/nccl_library.hpp"

namespace compare_explain_test {

using namespace ringsim;
using namespace ringsim::literals;
using nlohmann::json;
using namespace ringsim::test;

namespace {

const std::string one_dgx_a100 = R"({"version": 1, "name": "one", "library": "nccl",
  "topology": {"kind": "cluster", "node": "dgx-a100", "nodes": 1},
  "collective": {"op": "all_reduce", "bytes": "1 MiB"}})";
const std::string two_dgx_a100 = R"({"version": 1, "name": "two", "library": "nccl",
  "topology": {"kind": "cluster", "node": "dgx-a100", "nodes": 2,
               "fabric": {"kind": "star", "link": {"bandwidth": "200 Gb/s", "latency": "150 ns"}}},
  "collective": {"op": "all_reduce", "bytes": "1 MiB"}})";
const std::string one_h100 =
    R"({"version": 1, "name": "ring", "library": {"name": "nccl", "env": {"NCCL_ALGO": "Ring"}},
  "topology": {"kind": "cluster", "node": "hgx-h100", "nodes": 1},
  "collective": {"op": "all_reduce", "bytes": "1 MiB"}})";

/// Microseconds that the scenario with those changes takes at each size.
std::vector<double> times(const std::string& scenario, const std::vector<Bytes>& sizes, const Words& set = {}) {
  std::vector<double> out;
  for (const Bytes size : sizes) {
    Words all = set;
    all.push_back(fmt::format("collective.bytes={} B", size.count));
    out.push_back(microseconds(predict(ScenarioFile::parse(scenario, "s.json", all).point(0)).time));
  }
  return out;
}

std::string table_of(const std::vector<Bytes>& sizes, const std::vector<double>& us, int ranks) {
  std::string text = fmt::format("# collective: all_reduce\n# ranks: {}\nbytes,time_us\n", ranks);
  for (std::size_t i = 0; i < sizes.size(); ++i) text += fmt::format("{},{:.6f}\n", sizes[i].count, us[i]);
  return text;
}

json explained(const std::string& scenario, const std::vector<Bytes>& sizes, const std::vector<double>& us, int ranks) {
  const Outcome outcome = run_command({"compare", "--explain", "--format", "json", temporary_file("s.json", scenario),
                                       temporary_file("m.csv", table_of(sizes, us, ranks))});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
  return json::parse(outcome.out);
}

const json& trial_named(const json& range, const std::string& label) {
  for (const json& trial : range["trials"])
    if (trial["label"] == label) return trial;
  FAIL("no trial ", label, " in ", range.dump());
  return range;
}

const std::vector<Bytes> small{1_KiB, 2_KiB, 4_KiB, 8_KiB, 16_KiB};
const std::vector<Bytes> large{64_MiB, 128_MiB, 256_MiB};

}  // namespace

TEST_CASE("every number of the table is that of the change run by itself") {
  // The last two of six sizes are off; of the others some agree just so, and changes spoil them.
  const std::vector<Bytes> sizes{1_KiB, 64_KiB, 1_MiB, 8_MiB, 128_MiB, 256_MiB};
  std::vector<double> us = times(two_dgx_a100, sizes);
  const double factors[] = {1.04, 0.97, 1.02, 0.95, 1.4, 1.45};
  for (std::size_t i = 0; i < us.size(); ++i) us[i] *= factors[i];
  const json document = explained(two_dgx_a100, sizes, us, 16);
  REQUIRE(!document["ranges"].empty());
  int trials = 0, spoiling = 0, just_off = 0;
  for (const json& range : document["ranges"]) {
    const auto from = static_cast<std::size_t>(
        std::find(sizes.begin(), sizes.end(), Bytes{range["from_bytes"].get<std::int64_t>()}) - sizes.begin());
    const std::size_t n = range["rows"];
    for (const json& each : range["trials"]) {
      CAPTURE(each["label"].get<std::string>());
      const std::vector<double> again = times(two_dgx_a100, sizes, each["set"].get<Words>());
      std::vector<double> errors;
      for (std::size_t i = 0; i < n; ++i) {
        CHECK(each["rows"][i]["time_us"] == doctest::Approx(again[from + i]).epsilon(1e-9));
        errors.push_back(std::abs(again[from + i] / us[from + i] - 1));
      }
      std::sort(errors.begin(), errors.end());
      REQUIRE(errors.size() <= 2);
      const double median = (errors.front() + errors.back()) / 2;
      CHECK(each["median_abs_error"] == doctest::Approx(median).epsilon(1e-6));
      CHECK(each["p90_abs_error"] ==
            doctest::Approx(errors.front() + 0.9 * (errors.back() - errors.front())).epsilon(1e-6));
      ++trials;
      if (!each.contains("breaks")) continue;
      int lost = 0, agreed = 0;
      for (std::size_t i = 0; i < 4; ++i) {  // all of these agree
        ++agreed;
        const double error = std::abs(again[i] / us[i] - 1);
        lost += error > 0.1 ? 1 : 0;
        just_off += error > 0.1 && error < 0.2 ? 1 : 0;
      }
      spoiling += lost > 0 ? 1 : 0;
      CHECK(each["breaks"]["of"] == agreed);
      CHECK(each["breaks"]["rows"] == lost);
    }
  }
  CHECK(trials > 15);
  CHECK(spoiling > 3);
  CHECK(just_off > 3);
}

TEST_CASE("the rate of the link that limits the largest row is fitted so that its time, and no other, is longer") {
  const Words simple{"library.env.NCCL_ALGO=Ring", "library.env.NCCL_PROTO=Simple"};
  std::vector<double> us;
  for (const Bytes size : large) {
    Words set = simple;
    set.push_back(fmt::format("collective.bytes={} B", size.count));
    const Prediction p = predict(ScenarioFile::parse(one_dgx_a100, "s.json", set).point(0), {.explain = true});
    double limited = 0;
    for (const ExplainedPart& part : p.explanation.value().parts)
      if (part.kind == "nvlink") limited += microseconds(part.time);
    REQUIRE(limited > 0.5 * microseconds(p.time));
    us.push_back(microseconds(p.time) - limited + limited / 0.64);
  }
  std::string forced = one_dgx_a100;
  forced.replace(forced.find(R"("nccl")"), 6,
                 R"({"name": "nccl", "env": {"NCCL_ALGO": "Ring", "NCCL_PROTO": "Simple"}})");
  const json range = explained(forced, large, us, 8)["ranges"][0];
  const json& found = trial_named(range, "nvlink at 0.64 of the rate");
  CHECK(found["set"] == json{"calibration.scale_nvlink=0.64"});
  CHECK(found["fitted"] == true);
}

TEST_CASE("of RCCL only what is modeled is run again: the tuner without MSCCL's schedules") {
  const std::string mi300x =
      R"({"version": 1, "name": "rccl", "topology": {"kind": "cluster", "node": "mi300x", "nodes": 1},
    "library": "rccl", "collective": {"op": "all_reduce", "bytes": "8 MiB"}})";
  // Measured as rings by Simple would be: 46.4 us, and 7/4 of the size over seven links of 45.1 GB/s.
  const std::vector<double> us{46.4 + 1.75 * 4194.304 / 315.7, 46.4 + 1.75 * 524.288 / 315.7};
  const json range = explained(mi300x, {4_MiB, 512_KiB}, us, 8)["ranges"][0];
  for (const json& trial : range["trials"])
    for (const char* other : {"LL128", "NVLS", "NCHANNELS", "gpus_per_thread", "P2P", "plugin"}) {
      CAPTURE(trial.dump());
      CHECK(trial.dump().find(other) == std::string::npos);
    }
  const json& rings = trial_named(range, "RCCL_MSCCL_ENABLE=0");
  CHECK(rings["set"] == json{"library.env.RCCL_MSCCL_ENABLE=0"});
  CHECK(rings["explains"] == true);
  CHECK(range["verdict"].get<std::string>().find("Before 2.18, NCCL") == std::string::npos);
}

TEST_CASE("ACS and NICs at half the rate are named together where both halve the time") {
  const std::string one_nic = R"({"version": 1, "name": "acs",
    "topology": {"kind": "cluster", "node": "dgx-a100", "nodes": 2,
                 "fabric": {"kind": "star", "link": {"bandwidth": "200 Gb/s", "latency": "1 us"}}},
    "library": {"name": "nccl", "version": "2.11.4", "env": {"NCCL_IB_HCA": "=nic0", "NCCL_ALGO": "Ring"}},
    "collective": {"op": "all_reduce", "bytes": "1 GiB"}})";
  const json range = explained(one_nic, {1_GiB, 2_GiB}, {167772, 335544}, 16)["ranges"][0];
  const json& acs = trial_named(range, "ACS in PCIe switches: transport.acs=true");
  CHECK(acs["set"] == json{"transport.acs=true"});
  CHECK(acs["explains"] == true);
  CHECK(acs["median_abs_error"] < 0.002);
  CHECK(range["alike"].size() == 4);  // also the cables of all NICs, and PCIe of the GPU that sends
  for (const char* part :
       {"Likely: ", "ACS in PCIe switches: transport.acs=true", "one or all NICs at 1/2 of the rate, unknown to NCCL",
        ", or ", "their times are equal, so the measurement cannot distinguish them", "check ", "ACSCtl",
        "congestion"}) {
    CAPTURE(part);
    CHECK(has(range["verdict"], part));
  }
}

TEST_CASE("longer steps between nodes, and a cost of each remote peer, are found and quantified") {
  const std::vector<Bytes> sizes{1_KiB, 2_KiB, 4_KiB, 8_KiB};
  // Both ends of a message's way are cables of 150 ns.
  const std::vector<double> slow = times(two_dgx_a100, sizes, {"topology.fabric.link.latency=3150 ns"});
  const json steps = explained(two_dgx_a100, sizes, slow, 16)["ranges"][0];
  const json& longer = trial_named(steps, "steps between nodes 6 us longer");
  CHECK(longer["median_abs_error"] < 1e-3);
  CHECK(longer["fitted"] == true);
  CHECK(longer["explains"] == true);

  std::string to_all = two_dgx_a100;
  to_all.replace(to_all.find("all_reduce"), 10, "all_to_all");
  const std::vector<double> posts = times(to_all, sizes, {"devices.gpu.post=9 us"});
  std::string table = "# collective: alltoall\n# ranks: 16\nbytes,time_us\n";
  for (std::size_t i = 0; i < sizes.size(); ++i) table += fmt::format("{},{:.6f}\n", sizes[i].count, posts[i]);
  const Outcome outcome = run_command(
      {"compare", "--explain", "--format", "json", temporary_file("s.json", to_all), temporary_file("m.csv", table)});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
  const json document = json::parse(outcome.out);
  const json& each = trial_named(document["ranges"][0], "each remote peer costs 4 us more");
  CHECK(each["median_abs_error"] < 1e-3);
  CHECK(each["set"] == json{"devices.gpu.post=9.000000 us"});
  // Sends of one node, and rings, have no such peers.
  for (const json& trial : steps["trials"]) CHECK_FALSE(has(trial["label"], "remote peer"));
}

TEST_CASE("a release whose rules differ is tried if the file names none, or if it names that one") {
  // Of 32 GPUs each has one channel for a peer with 2.20.5, and with 2.17.1, two with 2.18.3 to 2.19.3; before 2.14 the
  // one has larger chunks.
  const std::string gh200 = R"({"version": 1, "name": "gh200",
    "topology": {"kind": "cluster", "node": "gh200", "nodes": 8,
                 "fabric": {"kind": "star", "link": {"bandwidth": "200 Gb/s", "latency": "1 us"}}},
    "library": {"name": "nccl", "version": "2.19.3"}, "collective": {"op": "send_recv", "bytes": "512 MiB"}})";
  const std::vector<Bytes> sizes{256_MiB, 512_MiB, 1_GiB};
  const std::vector<double> us = times(gh200, sizes, {R"(library.version="2.20.5")"});
  const auto range_of = [&](const std::string& head) {
    std::string table = head + "# collective: sendrecv\n# ranks: 32\nbytes,time_us\n";
    for (std::size_t i = 0; i < sizes.size(); ++i) table += fmt::format("{},{:.6f}\n", sizes[i].count, us[i]);
    const Outcome outcome = run_command(
        {"compare", "--explain", "--format", "json", temporary_file("s.json", gh200), temporary_file("m.csv", table)});
    REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
    const json document = json::parse(outcome.out);
    REQUIRE(document["ranges"].size() == 1);
    return document["ranges"][0];
  };
  const auto labels = [](const json& range) {
    std::string out;
    for (const json& trial : range["trials"])
      if (has(trial["label"], "release ")) out += trial["label"].get<std::string>() + '\n';
    return out;
  };
  const json unnamed = range_of("");
  CHECK(has(labels(unnamed), "release 2.14.3 to 2.17.1 or 2.20.5 to 2.26.2\n"));
  CHECK(has(labels(unnamed), "release 2.10.3 to 2.12.12\n"));
  CHECK(has(labels(unnamed), "release 2.8.4\n"));  // the oldest as well, and the newest
  CHECK(has(labels(unnamed), "release 2.29.2 to 2.30.7\n"));
  const json& found = trial_named(unnamed, "release 2.14.3 to 2.17.1 or 2.20.5 to 2.26.2");
  CHECK(found["median_abs_error"] < 1e-6);
  CHECK(found["explains"] == true);
  CHECK(has(unnamed["verdict"], "release 2.14.3 to 2.17.1 or 2.20.5 to 2.26.2"));
  CHECK(has(unnamed["verdict"], "\"NCCL version\" in its log"));
  CHECK(labels(range_of("# library: NCCL 2.20.5\n")) == "release 2.20.5\n");
  CHECK(labels(range_of("# library: NCCL 2.19.3\n")) == "");
}

TEST_CASE("what another protocol takes is explained by that protocol, by its exact time") {
  const std::vector<double> us = times(one_dgx_a100, small, {"library.env.NCCL_PROTO=Simple"});
  const json document = explained(one_dgx_a100, small, us, 8);
  REQUIRE(document["rows"].size() == small.size());
  CHECK(document["rows"][0]["plan"]["protocol"] == "LL");
  CHECK(document["rows"][0]["measured_busbw_GBps"] ==
        doctest::Approx(1024 / us[0] / 1e3 * 2 * 7 / 8));  // all-reduce: 2(n-1)/n
  REQUIRE(!document["ranges"].empty());
  for (const json& range : document["ranges"]) {
    CHECK(range["likely"] == "NCCL_PROTO=Simple");
    const json& found = trial_named(range, "NCCL_PROTO=Simple");
    CHECK(found["median_abs_error"] < 1e-6);
    for (const json& each : found["rows"]) CHECK(each["protocol"] == "Simple");
    CHECK(has(range["verdict"], "Likely: NCCL_PROTO=Simple gives "));
    CHECK(has(range["verdict"], "so a variable would have to force it at all sizes"));  // and none spoils any row
  }
}

TEST_CASE("a plan that NCCL's formula is far from choosing is no explanation of some sizes") {
  // Measured as LL takes, which doubles the bytes, at two sizes of seven.
  const std::vector<Bytes> sizes{1_KiB, 16_KiB, 512_KiB, 32_MiB, 64_MiB, 512_MiB, 1_GiB};
  std::vector<double> us = times(two_dgx_a100, sizes);
  const std::vector<double> by_ll = times(two_dgx_a100, sizes, {"library.env.NCCL_PROTO=LL"});
  us[5] = by_ll[5];
  us[6] = by_ll[6];
  const json document = explained(two_dgx_a100, sizes, us, 16);
  REQUIRE(document["ranges"].size() == 1);
  const json& range = document["ranges"][0];
  const json& found = trial_named(range, "NCCL_PROTO=LL");
  CHECK(found["median_abs_error"] < 1e-6);
  CHECK(found["by_formula"] > 2);
  CHECK(found["breaks"]["of"] == 5);
  CHECK(found["explains"] == false);
  CHECK(range["likely"] != "NCCL_PROTO=LL");
}

TEST_CASE("copies through host memory are found where GPUDirect was off") {
  const std::vector<double> us = times(two_dgx_a100, large, {"transport.gdr_level=LOC"});
  const json document = explained(two_dgx_a100, large, us, 16);
  REQUIRE(document["ranges"].size() == 2);  // LL128, then Simple
  for (const json& range : document["ranges"]) {
    CHECK(range["likely"] == "without GPUDirect: NCCL_NET_GDR_LEVEL=LOC");
    CHECK(trial_named(range, "without GPUDirect: NCCL_NET_GDR_LEVEL=LOC")["median_abs_error"] < 1e-6);
    CHECK(trial_named(range, "one or all NICs at 1/2 of the rate, unknown to NCCL")["explains"] == false);
  }
}

TEST_CASE("a file that denies GPUDirect to devices that were measured with it is found") {
  std::string denied = to_nccl_xml(node_preset("dgx-a100"));
  for (std::size_t at = 0; (at = denied.find("gdr=\"1\"", at)) != std::string::npos;)
    denied.replace(at, 7, "gdr=\"0\"");
  const std::string file = R"("kind": "nccl_xml", "file": ")" + temporary_file("denied.xml", denied) + "\"";
  const std::string two = ringsim::test::replaced(two_dgx_a100, R"("kind": "cluster", "node": "dgx-a100")", file);
  const json document = explained(two, large, times(two, large, {"transport.gpudirect=true"}), 16);
  REQUIRE(!document["ranges"].empty());
  for (const json& range : document["ranges"]) {
    CHECK(range["likely"] == "GPUDirect, although the file states gdr=0");
    for (const json& trial : range["trials"])
      CHECK(trial["label"] != "without GPUDirect: NCCL_NET_GDR_LEVEL=LOC");  // it is off already
  }
  // Measured slower than without it: switching it off changes nothing, so it is not tried.
  std::vector<double> slower = times(two, large);
  for (double& each : slower) each *= 2;
  for (const json& range : explained(two, large, slower, 16)["ranges"])
    for (const json& trial : range["trials"]) CHECK(trial["label"] != "without GPUDirect: NCCL_NET_GDR_LEVEL=LOC");
}

TEST_CASE("NICs at half of their rate are found") {
  const std::vector<double> us = times(two_dgx_a100, large, {"calibration.scale_nic=0.5"});
  const json document = explained(two_dgx_a100, large, us, 16);
  REQUIRE(!document["ranges"].empty());
  for (const json& range : document["ranges"]) {
    const json& nics = trial_named(range, "one or all NICs at 1/2 of the rate, unknown to NCCL");
    CHECK(nics["median_abs_error"] < 1e-6);
    CHECK(nics["explains"] == true);
    CHECK(has(range["verdict"], "one or all NICs at 1/2 of the rate, unknown to NCCL"));
    CHECK(trial_named(range, "without GPUDirect: NCCL_NET_GDR_LEVEL=LOC")["explains"] == false);
  }
}

// The smallest sizes agree with all NICs. NCCL takes four channels for them, with half of the channels two: 24 %
// slower.
TEST_CASE("fewer channels explain nothing that other sizes contradict, and one change explains all ranges") {
  const std::vector<Bytes> sizes{64_KiB, 128_KiB, 16_MiB, 64_MiB, 256_MiB, 512_MiB};
  std::vector<double> us = times(two_dgx_a100, sizes);
  const std::vector<double> halved = times(two_dgx_a100, sizes, {"calibration.scale_nic=0.5"});
  std::copy(halved.begin() + 2, halved.end(), us.begin() + 2);
  const json document = explained(two_dgx_a100, sizes, us, 16);
  REQUIRE(document["ranges"].size() == 2);
  const json& channels = trial_named(document["ranges"][1], "NCCL_MAX_NCHANNELS=4");
  CHECK(channels["median_abs_error"] < 1e-6);
  CHECK(channels["breaks"] == json{{"rows", 2}, {"of", 2}});
  CHECK(channels["explains"] == false);
  CHECK(document["explain_several_ranges"]["labels"] == json{"one or all NICs at 1/2 of the rate, unknown to NCCL"});
}

// NCCL launches in 8 us on a DGX A100. Trees of LL and of LL128, these in one row, are 8.1 us faster than predicted.
TEST_CASE(
    "times that are shorter by a little more than a launch takes are explained by no launch at all, in every range") {
  const std::vector<Bytes> sizes{1_KiB, 4_KiB, 16_KiB, 64_KiB, 1_MiB};
  std::vector<double> us = times(two_dgx_a100, sizes);
  for (double& each : us) each -= 8.1;
  const json document = explained(two_dgx_a100, sizes, us, 16);
  REQUIRE(document["ranges"].size() > 1);
  int rows = 0;
  for (const json& range : document["ranges"]) {
    CAPTURE(range.dump());
    CHECK(has(range["verdict"], "launch 0 us instead of 8"));
    CHECK_FALSE(has(range["verdict"], "coincidence"));  // though one range has one row
    rows += range["rows"].get<int>();
  }
  CHECK(rows == 5);
  const Outcome text = run_command({"compare", "--explain", temporary_file("s.json", two_dgx_a100),
                                    temporary_file("m.csv", table_of(sizes, us, 16))});
  CHECK(has(text.out, "ranges, -8 us, regardless of the plan. A shorter launch can"));
  // Of two rows, one of each plan, this would be said too soon.
  CHECK_FALSE(has(run_command({"compare", "--explain", temporary_file("s.json", two_dgx_a100),
                               temporary_file("m.csv", table_of({sizes[0], sizes[4]}, {us[0], us[4]}, 16))})
                      .out,
                  "regardless of the plan"));
  CHECK(has(text.out, fmt::format("does not name NCCL's release, so {} is assumed", nccl::newest_version)));
}

// Each defect as `calibration`, variables and the fabric have it; of the choices at these sizes alone some come near.
TEST_CASE("what slows two DGX A100 is named: some NICs, slower cables, NVLink, a launch") {
  const std::vector<Bytes> sizes{64_KiB, 1_MiB, 8_MiB, 32_MiB, 64_MiB, 256_MiB, 1_GiB};
  const auto all_ranges = [&](const char* set) {
    return explained(two_dgx_a100, sizes, times(two_dgx_a100, sizes, {set}), 16)["explain_several_ranges"]["labels"];
  };
  CHECK(all_ranges("library.env.NCCL_IB_HCA=\"nic0,nic1,nic2,nic3\"") ==
        json{"4 of 8 NICs (NCCL_IB_HCA)", "4 of 8 NICs, every other one (NCCL_IB_HCA)"});
  const json without_one = all_ranges("library.env.NCCL_IB_HCA=\"^nic9\"");
  CHECK(std::find(without_one.begin(), without_one.end(), "7 of 8 NICs (NCCL_IB_HCA)") != without_one.end());
  CHECK(all_ranges("topology.fabric.link.bandwidth=100 Gb/s") == json{"cables of all NICs at 1/2 of the rate"});
  // A ring and its chains are as fast as the slowest GPU.
  CHECK(all_ranges("calibration.scale_nvlink=0.5") ==
        json{"NVLink at half the rate", "NVLink of one GPU at half the rate"});
  CHECK(all_ranges(R"(faults=[{"link": "node1.gpu5 -> node1.nvswitch0", "bandwidth": "50%"},
                             {"link": "node1.nvswitch0 -> node1.gpu5", "bandwidth": "50%"}])") ==
        json{"NVLink of one GPU at half the rate", "NVLink at half the rate"});
  const std::vector<Bytes> middle{16_KiB, 32_KiB, 64_KiB, 128_KiB, 1_MiB, 2_MiB, 4_MiB, 256_MiB, 1_GiB};
  const json launch = explained(two_dgx_a100, middle, times(two_dgx_a100, middle, {"devices.gpu.launch=25 us"}), 16);
  int n = 0;
  for (const json& range : launch["ranges"])
    if (range["rows"] > 2) {
      CHECK(has(range["verdict"], "launch 25 us instead of 8"));
      ++n;
    }
  CHECK(n > 0);
}

TEST_CASE("a job without NVLS is found, also where that is faster") {
  const std::string one =
      R"({"version": 1, "name": "one", "topology": {"kind": "cluster", "node": "hgx-h100", "nodes": 1},
    "library": "nccl", "collective": {"op": "all_reduce", "bytes": "1 GiB"}})";
  const std::vector<double> us = times(one, large, {"library.env.NCCL_NVLS_ENABLE=0"});
  const json range = explained(one, large, us, 8)["ranges"][0];
  const json& found = trial_named(range, "without NVLS: NCCL_NVLS_ENABLE=0");
  CHECK(found["median_abs_error"] < 1e-6);
  CHECK(found["explains"] == true);
  CHECK(has(range["verdict"], "without NVLS: NCCL_NVLS_ENABLE=0"));
}

TEST_CASE("a variable is not said to be needed for what takes a way from NCCL") {
  const json document = explained(two_dgx_a100, large, times(two_dgx_a100, large, {"transport.gdr_level=LOC"}), 16);
  REQUIRE(!document["ranges"].empty());
  for (const json& range : document["ranges"]) CHECK(!has(range["verdict"], "so a variable would have to force it"));
}

// NCCL then takes what its formula takes to be the next best, at each size.
TEST_CASE("a job without LL128 is found, next to the protocol that ran instead") {
  const std::vector<Bytes> sizes{64_KiB, 4_MiB, 8_MiB, 512_MiB};
  const std::vector<double> us = times(two_dgx_a100, sizes, {"library.env.NCCL_PROTO=^LL128"});
  const json document = explained(two_dgx_a100, sizes, us, 16);
  REQUIRE(document["ranges"].size() == 1);
  const json& range = document["ranges"][0];
  const json& found = trial_named(range, "no LL128: NCCL_PROTO=^LL128");
  CHECK(found["median_abs_error"] < 1e-6);
  CHECK(found["breaks"] == json{{"rows", 0}, {"of", 2}});
  CHECK(has(range["verdict"], "no LL128: NCCL_PROTO=^LL128"));
  CHECK(document["explain_several_ranges"]["labels"] == json::array());  // of one range the verdict says it
  // Where LL128 is not the plan, it is not what is missing.
  for (const json& each : explained(one_dgx_a100, small, {50, 50, 50, 50, 50}, 8)["ranges"])
    for (const json& trial : each["trials"]) CHECK(trial["label"] != "no LL128: NCCL_PROTO=^LL128");
}

TEST_CASE("that other sizes were not tried is said of a plan that NCCL may choose at some") {
  const std::vector<Bytes> sizes{64_KiB, 2_MiB, 512_MiB};
  std::vector<double> us = times(two_dgx_a100, sizes);
  us[1] = times(two_dgx_a100, {2_MiB}, {"library.env.NCCL_ALGO=Ring"})[0];
  const json document = explained(two_dgx_a100, sizes, us, 16);
  REQUIRE(document["ranges"].size() == 1);
  const std::string verdict = document["ranges"][0]["verdict"];
  CHECK(has(verdict, "Likely: NCCL_ALGO=Ring gives "));
  CHECK(has(verdict, "; other sizes were not tried, because NCCL chooses separately for each size"));
}

TEST_CASE("a longer launch is found and quantified; one thread that calls all GPUs is something else") {
  // Every row is off, so that no row is spoiled. The launch of an A100's kernel is fitted: only the difference is
  // known.
  std::vector<double> us = times(one_dgx_a100, small);
  for (double& each : us) each += 7;
  const json document = explained(one_dgx_a100, small, us, 8);
  REQUIRE(document["ranges"].size() == 1);
  const std::string likely = document["ranges"][0]["likely"];
  double now = 0, before = 0;
  REQUIRE(std::sscanf(likely.c_str(), "launch %lf us instead of %lf", &now, &before) == 2);
  CHECK(now - before == doctest::Approx(7));
  CHECK(trial_named(document["ranges"][0], likely)["median_abs_error"] < 1e-6);
  CHECK(trial_named(document["ranges"][0], likely)["fitted"] == true);
  CHECK(has(document["ranges"][0]["facts"][0], "7.0 us. A longer launch, the benchmark harness"));

  const json in_turn = explained(one_dgx_a100, small, times(one_dgx_a100, small, {"harness.gpus_per_thread=8"}), 8);
  CHECK(in_turn["ranges"][0]["likely"] == "one thread calls 8 GPUs (-g 8)");
}

TEST_CASE("a launch that only some rows show is refused, because it would spoil the others") {
  const std::vector<Bytes> sizes{1_KiB, 2_KiB, 4_KiB, 8_KiB, 16_KiB, 32_KiB};
  std::vector<double> us = times(one_dgx_a100, sizes);
  for (std::size_t i = 0; i < 3; ++i) us[i] += 12;  // 17 would be what LL128 takes
  const json range = explained(one_dgx_a100, sizes, us, 8)["ranges"][0];
  CHECK(range["rows"] == 3);
  CHECK(range["likely"].is_null());
  const json* launch = nullptr;
  for (const json& each : range["trials"])
    if (each["fitted"] == true && has(each["label"], "launch ")) launch = &each;
  REQUIRE(launch != nullptr);
  CHECK((*launch)["median_abs_error"] < 0.01);
  CHECK((*launch)["breaks"]["rows"] == 3);
  CHECK((*launch)["breaks"]["of"] == 3);
  CHECK((*launch)["explains"] == false);
  CHECK(has(range["verdict"], "with this change, 3 of the 3 rows that agree now would not"));
}

TEST_CASE("a bandwidth that a ring cannot have is called so, and sums in switches are found") {
  const std::vector<double> us = times(one_h100, large, {"library.env.NCCL_ALGO=NVLS"});
  const json document = explained(one_h100, large, us, 8);
  REQUIRE(document["ranges"].size() == 1);
  const json& range = document["ranges"][0];
  CHECK(range["likely"] == "NCCL_ALGO=NVLS");
  REQUIRE(!range["facts"].empty());
  CHECK(has(range["facts"][0], "256 MiB"));
  CHECK((has(range["facts"][0], "Switches add data (NVLS, SHARP)") || has(range["facts"][0], "another plan ran")));
}

TEST_CASE("where nothing explains the rows, that is said") {
  std::vector<double> us = times(one_dgx_a100, small);
  const double factors[] = {1.3, 4, 1.2, 5, 1.25};
  for (std::size_t i = 0; i < us.size(); ++i) us[i] *= factors[i];
  const json range = explained(one_dgx_a100, small, us, 8)["ranges"][0];
  CHECK(range["likely"].is_null());
  CHECK(has(range["verdict"], "None of "));
}

TEST_CASE("rows that agree are in no range, and the table fits a terminal") {
  const std::vector<double> us = times(one_dgx_a100, small);
  CHECK(explained(one_dgx_a100, small, us, 8)["ranges"].empty());
  const std::string folder = ringsim::test::source_dir();
  const Outcome outcome =
      run_command({"compare", "--explain", folder + "/validate/measured/tables/aic-h100-1n8g-all_reduce.json",
                   folder + "/validate/measured/tables/aic-h100-1n8g-all_reduce.csv"});
  REQUIRE(outcome.code == 0);
  CHECK(has(outcome.out, "\n16 KiB, Ring LL: the prediction is 10."));
  CHECK(has(outcome.out, "NVLS       Simple"));
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) CHECK_MESSAGE(characters(line) <= 100, line);
}

TEST_CASE("several predictions of a size, other formats and a threshold are refused") {
  const std::string measured = temporary_file("m.csv", table_of(small, times(one_dgx_a100, small), 8));
  const std::string scenario = temporary_file("s.json", one_dgx_a100);
  const Outcome several =
      run_command({"compare", "--explain", scenario, measured, "--set", R"(library.env.NCCL_PROTO=["LL", "Simple"])"});
  CHECK(several.code == 2);
  CHECK(has(several.err,
            "expected one prediction for each size, found several for 1 KiB: library.env.NCCL_PROTO varies"));
  CHECK(run_command({"compare", "--explain", scenario, measured, "--format", "csv"}).code == 2);
  CHECK(run_command({"compare", "--explain", scenario, measured, "--max-error", "10%"}).code == 2);
  CHECK(run_command({"compare", "--explain", scenario, measured, "--bound"}).code == 2);
}

TEST_CASE("what the table says was forced, and the scenario leaves open, is warned of") {
  const std::string table = "# library: NCCL 2.27.3\n# protocol: Simple\n" +
                            table_of(small, times(one_dgx_a100, small, {"library.env.NCCL_PROTO=Simple"}), 8);
  const std::string measured = temporary_file("m.csv", table), scenario = temporary_file("s.json", one_dgx_a100);
  CHECK(has(run_command({"compare", "--explain", scenario, measured}).err,
            "the file states protocol Simple, but the scenario leads to LL at 1 KiB; to force it, add --set "
            "library.env.NCCL_PROTO=Simple"));
  const Words forced{"compare", "--explain", scenario, measured, "--set", "library.env.NCCL_PROTO=Simple"};
  CHECK(run_command(forced).err == "ringsim: warning: " + measured +
                                       ": the rows were measured with NCCL 2.27.3, but the scenario has 2.30.7; to "
                                       "change it, set library.version\n");
  Words same = forced;
  same.insert(same.end(), {"--set", R"(library.version="2.27.3")"});
  CHECK(run_command(same).err == "");
}

TEST_CASE("of a scenario with an algorithm other protocols are tried, and what NCCL decides") {
  const std::string ring = R"({"version": 1, "name": "ring",
    "topology": {"kind": "cluster", "node": "dgx-a100", "nodes": 1},
    "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 MiB"}})";
  const json range = explained(ring, small, times(one_dgx_a100, small), 8)["ranges"][0];
  CHECK(range["algorithm"] == "ring");
  CHECK(range["likely"] == "NCCL's own choice: library nccl");
  CHECK(trial_named(range, "protocol ll")["explains"] == false);
}

}  // namespace compare_explain_test
