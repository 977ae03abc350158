// What a run keeps of its flows, and the rank that a trace chooses by itself.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>

#include "scenarios/predict/predict.hpp"
#include "tests/support/files.hpp"
#include "tests/support/paths.hpp"

namespace flow_record_test {

using namespace ringsim;

namespace {

Scenario example(const std::string& name) {
  const std::string path = ringsim::test::source_dir() + "/scenarios/" + name;
  return ScenarioFile::parse(ringsim::test::read_file(path), path, {}).point(0);
}

}  // namespace

TEST_CASE("the flows over a link carry what the link carried, each at times of the run") {
  for (const char* name :
       {"two-dgx-a100.json", "examples/explain/server-incast.json", "examples/explain/exposed-bucket.json"}) {
    CAPTURE(name);
    Recording recording;
    recording.use_step = Picoseconds{0};
    recording.keep_flows = true;
    const Prediction found = predict(example(name), {.fold = false, .recording = &recording});
    REQUIRE(recording.flows);
    std::map<LinkId, std::int64_t> bytes;
    std::int64_t messages = 0;
    for (const Recording::Flow& flow : *recording.flows) {
      messages += flow.messages;
      for (const LinkId link : flow.links) bytes[link] += flow.bytes.count;
      SimTime before{Picoseconds{-1}};
      for (const auto& [begin, end] : flow.when) {
        CHECK(before < begin);  // what touches is joined
        CHECK(begin <= end);
        CHECK(end <= recording.finish);
        before = end;
      }
    }
    CHECK(messages == found.transfers);
    for (const Recording::Use& use : recording.use) {
      const std::int64_t carried = std::accumulate(use.bytes.begin(), use.bytes.end(), std::int64_t{0});
      CHECK(bytes[use.id] == carried);
    }
  }
}

TEST_CASE("a trace of the critical rank is that of the rank when it is named") {
  for (const char* name : {"examples/explain/degraded-nic.json", "examples/explain/exposed-bucket.json"}) {
    CAPTURE(name);
    const auto traced = [&](const TraceFilter& filter) {
      Recording recording;
      recording.filter = filter;
      static_cast<void>(predict(example(name), {.fold = false, .recording = &recording}));
      return recording.trace;
    };
    const Trace by_itself = traced({.critical_rank = true});
    REQUIRE(by_itself.critical_rank);
    std::map<Actor, Picoseconds> times;  // on the path, counted again
    for (const Trace::Slice& slice : by_itself.slices)
      if (slice.actor) times[*slice.actor] += slice.end - slice.begin;
    for (const auto& [actor, time] : times) CHECK(time <= times[*by_itself.critical_rank]);
    const Trace named = traced({.ranks = {*by_itself.critical_rank}});
    REQUIRE(by_itself.slices.size() == named.slices.size());
    for (std::size_t i = 0; i < named.slices.size(); ++i) {
      CHECK(by_itself.slices[i].name == named.slices[i].name);
      CHECK(by_itself.slices[i].begin == named.slices[i].begin);
      CHECK(by_itself.slices[i].end == named.slices[i].end);
    }
    const Trace all = traced({});
    CHECK(all.slices.size() > named.slices.size());
  }
}

}  // namespace flow_record_test
