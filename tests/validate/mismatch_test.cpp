// compare --explain by made rows and trials: ranges of rows, and what is said of the changes that were run again.
#include "validate/score/mismatch.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "tests/support/command.hpp"

namespace mismatch_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace ringsim::test;

namespace {

ComparedRow row(Bytes bytes, double predicted_us, double measured_us, const std::string& algorithm = "Ring") {
  ComparedRow out{.scenario = {}, .result = {}, .algorithm = algorithm, .protocol = "LL"};
  out.result.prediction.request.bytes = bytes;
  out.result.prediction.time = Picoseconds{static_cast<std::int64_t>(predicted_us * 1e6)};
  out.result.measured_us = measured_us;
  return out;
}

Trial trial(const std::string& label, double us, double error, bool is_fitted = false) {
  Trial out;
  out.what = {.label = label, .set = {}, .is_fitted = is_fitted};
  out.rows = {{.us = us, .algorithm = "Ring", .protocol = "LL"}};
  out.error = {.name = "", .rows = 1, .median_abs = error, .p90_abs = error, .median_signed = error};
  return out;
}

}  // namespace

TEST_CASE("rows that follow each other, are off to one side and have one plan are one range") {
  // Errors: -20 %, -20 %, +20 %, +5 % (agrees), -20 % by a ring, -20 % by a tree.
  const std::vector<ComparedRow> rows{row(1_KiB, 8, 10),  row(2_KiB, 16, 20), row(4_KiB, 12, 10),
                                      row(8_KiB, 21, 20), row(16_KiB, 8, 10), row(32_KiB, 8, 10, "Tree")};
  const std::vector<MismatchRange> ranges = mismatches_of(rows);
  REQUIRE(ranges.size() == 4);
  const std::pair<std::size_t, std::size_t> expected[] = {{0, 1}, {2, 2}, {4, 4}, {5, 5}};
  for (std::size_t i = 0; i < 4; ++i) {
    CAPTURE(i);
    CHECK(ranges[i].first == expected[i].first);
    CHECK(ranges[i].last == expected[i].second);
    CHECK(ranges[i].is_slower() == (i != 1));
  }
  CHECK(ranges[0].error.median_signed == doctest::Approx(-0.2));
  CHECK(ranges[0].least_us == doctest::Approx(2));  // 10 - 8
  CHECK(ranges[0].most_us == doctest::Approx(4));   // 20 - 16
}

TEST_CASE("the same difference at all sizes is said to be a launch, a growing one is not") {
  const std::vector<ComparedRow> same{row(1_KiB, 10, 15), row(2_KiB, 11, 16.2), row(4_KiB, 12, 16.9)};
  const std::vector<ComparedRow> growing{row(1_KiB, 10, 15), row(2_KiB, 20, 30), row(4_KiB, 40, 60)};
  REQUIRE(mismatches_of(same).front().facts.size() == 1);
  CHECK(has(mismatches_of(same).front().facts.front(), "about the same at all sizes, 5.0 us"));  // 4.9 to 5.2
  CHECK(mismatches_of(growing).front().facts.empty());
  // Also over ranges of different plans: 5 us by a ring, 5.2 us by a tree; not if these are off by 8 us, nor by one
  // plan, nor in fewer than four rows.
  const auto shared = [](double other_us, const char* other, bool is_enough = true) {
    std::vector<ComparedRow> rows{row(1_KiB, 10, 15), row(2_KiB, 12, 12 + other_us, other)};
    if (!is_enough) return mismatches_of(rows).front().shared_us;
    rows = {row(1_KiB, 10, 15), row(2_KiB, 11, 16), row(4_KiB, 10, 10), row(8_KiB, 12, 12 + other_us, other),
            row(16_KiB, 13, 13 + other_us, other)};
    return mismatches_of(rows).back().shared_us;
  };
  REQUIRE(shared(5.2, "Tree").has_value());
  CHECK(*shared(5.2, "Tree") == doctest::Approx(5.1));
  CHECK(!shared(8, "Tree"));
  CHECK(!shared(5.2, "Ring"));
  CHECK(!shared(5.2, "Tree", /*is_enough=*/false));
  CHECK(!mismatches_of(same).front().shared_us);
}

TEST_CASE("a launch that explains ranges of several plans is shared, though their differences spread") {
  // 10 us more, measured with up to 5 % of noise: 8 to 12.4 us, a spread of 43 %.
  std::vector<ComparedRow> rows{row(1_KiB, 40, 48.0),          row(2_KiB, 41, 52.6),
                                row(4_KiB, 45, 53.4),          row(8_KiB, 60, 72.4, "Tree"),
                                row(16_KiB, 70, 78.5, "Tree"), row(1_MiB, 500, 505, "Tree")};
  const std::optional<double> shared = mismatches_of(rows).front().shared_us;
  REQUIRE(shared.has_value());
  CHECK(*shared == doctest::Approx(8.5));  // the median
  // Not if it is too much for rows that agree, here 20 us that become 28.5 where 21 were measured.
  rows.push_back(row(2_MiB, 20, 21, "Tree"));
  CHECK(!mismatches_of(rows).front().shared_us);
  // Nor if no number fits both: 40 % more of each.
  CHECK(!mismatches_of(std::vector{row(1_KiB, 10, 14), row(2_KiB, 11, 15.4), row(4_KiB, 40, 56, "Tree"),
                                   row(8_KiB, 50, 70, "Tree")})
             .front()
             .shared_us);
}

TEST_CASE("a shared difference is chance if a change explains every range and is nearer than the launch") {
  const std::vector<ComparedRow> rows{row(1_KiB, 10, 15), row(2_KiB, 10, 15, "Tree")};
  const auto compared = [&](double plan_off, bool in_both) {
    std::vector<MismatchRange> ranges(2);
    for (std::size_t i = 0; i < 2; ++i) {
      ranges[i].first = ranges[i].last = i;
      ranges[i].shared_us = 10;
      ranges[i].trials = {trial("launch", 98, 0.02, /*is_fitted=*/true), trial("other", 97, 0.03)};
      ranges[i].trials.front().what.is_everywhere = true;
      if (in_both || i == 0) ranges[i].trials.push_back(trial("NCCL_ALGO=Ring", 99, plan_off));
    }
    ranges[1].trials.erase(ranges[1].trials.begin() + 1);  // "other" explains one range
    compare_ranges(ranges, rows);
    CHECK(ranges[0].shared_us == ranges[1].shared_us);
    for (const MismatchRange& range : ranges)
      for (const Trial& each : range.trials)
        CHECK(each.is_common == (!range.shared_us && each.what.label == "NCCL_ALGO=Ring"));
    return ranges;
  };
  const auto still_shared = [&](double plan_off, bool in_both) {
    return compared(plan_off, in_both).front().shared_us.has_value();
  };
  CHECK(!still_shared(0.01, true));
  CHECK(still_shared(0.025, true));  // less near
  CHECK(still_shared(0.01, false));  // explains one
  CHECK(still_shared(0.06, true));   // explains none
  // What explains both ranges is named before what is nearer in one.
  std::vector<MismatchRange> ranges = compared(0.01, true);
  ranges.front().trials[1].error.median_abs = 0.005;
  CHECK(verdict_of(ranges.front()).causes.front()->what.label == "NCCL_ALGO=Ring");
  // Of fitted numbers the one of all ranges is named before another of this range.
  MismatchRange fitted;
  fitted.trials = {trial("steps longer", 99, 0.005, /*is_fitted=*/true), trial("launch", 98, 0.02, /*is_fitted=*/true)};
  CHECK(verdict_of(fitted).causes.front()->what.label == "steps longer");
  fitted.trials[1].what.is_shared = true;
  CHECK(verdict_of(fitted).causes.front()->what.label == "launch");
  CHECK(contradiction(verdict_of(fitted), fitted) == "");
  for (Trial& each : ranges.front().trials) each.is_common = false;
  CHECK(verdict_of(ranges.front()).causes.front()->what.label == "other");
}

TEST_CASE("changes are ranked by their median; what changes nothing or repeats another is left out") {
  MismatchRange range;
  Trial idle = trial("idle", 8, 0.2), refused = trial("refused", 0, 0);
  idle.is_idle = true;
  refused.refused = "no";
  rank_trials(range, {trial("far", 3, 0.7), idle, trial("near", 9.7, 0.03), trial("near as well", 9.7, 0.03), refused,
                      trial("exact", 10, 0, /*is_fitted=*/true)});
  REQUIRE(range.trials.size() == 3);
  CHECK(range.trials[0].what.label == "near");
  CHECK(range.trials[1].what.label == "far");
  CHECK(range.trials[2].what.label == "exact");
  REQUIRE(range.refused.size() == 1);
  // One without a fitted number is likelier, though one with a fitted number is nearer.
  const auto likely = [&] {
    const Verdict verdict = verdict_of(range);
    CHECK(contradiction(verdict, range) == "");
    return verdict.kind == Verdict::Kind::likely ? verdict.causes.front()->what.label : "";
  };
  CHECK(likely() == "near");
  // So is what NCCL may choose than what only variables can set.
  range.trials[0].by_formula = 3;
  range.trials[0].what.is_plan = true;
  CHECK(likely() == "near");
  range.trials.push_back(trial("chosen", 9.6, 0.04));
  CHECK(likely() == "chosen");
  range.trials.pop_back();
  range.trials[0].error.median_abs = 0.06;  // beyond 5 %
  CHECK(likely() == "exact");
  range.trials[2].agreed = 10;
  range.trials[2].lost = 1;  // a tenth of the rows that agreed
  CHECK(likely() == "exact");
  range.trials[2].lost = 2;
  CHECK(likely() == "");
}

TEST_CASE("times that do not tell causes apart are named together, those of variables that lead to one plan once") {
  const auto everywhere = [](const std::string& label, double us, double error) {
    Trial out = trial(label, us, error);
    out.what.is_everywhere = true;
    out.what.look = "the place of " + label;
    return out;
  };
  MismatchRange range;
  range.error = {.name = "", .rows = 1, .median_abs = 0.5, .p90_abs = 0.5, .median_signed = -0.5};
  rank_trials(range, {everywhere("ACS", 100, 0.01), everywhere("NICs", 100.4, 0.006), everywhere("PCIe", 101, 0.02),
                      trial("LL", 100, 0.01), trial("LL by another variable", 100, 0.01)});
  REQUIRE(range.trials.size() == 4);
  const Verdict verdict = verdict_of(range);
  CHECK(contradiction(verdict, range) == "");
  const auto labels = [](const std::vector<const Trial*>& trials) {
    std::vector<std::string> out;
    for (const Trial* each : trials) out.push_back(each->what.label);
    return out;
  };
  // The nearest, and what is within half a hundredth of its time.
  CHECK(labels(verdict.causes) == std::vector<std::string>{"NICs", "ACS", "LL"});
  CHECK(labels(verdict.others) == std::vector<std::string>{"PCIe"});
}

TEST_CASE("another plan ran probably if it is within 15 % and the scenario's own cannot have") {
  MismatchRange range;
  range.error = {.name = "", .rows = 1, .median_abs = 0.8, .p90_abs = 0.8, .median_signed = 0.8};
  range.trials = {trial("NCCL_ALGO=Tree", 90, 0.15)};
  range.trials[0].what.is_plan = true;
  const auto kind = [&] {
    const Verdict verdict = verdict_of(range);
    CHECK(contradiction(verdict, range) == "");
    return verdict.kind;
  };
  CHECK(kind() == Verdict::Kind::none);  // the scenario's own can have run
  range.other_plan = true;
  CHECK(kind() == Verdict::Kind::probably);
  range.trials[0].error.median_abs = 0.151;
  CHECK(kind() == Verdict::Kind::none);
  range.trials[0].error.median_abs = 0.1;
  range.trials[0].what.is_plan = false;  // a slower link is no plan
  CHECK(kind() == Verdict::Kind::none);
  range.trials[0].what.is_plan = true;
  range.trials[0].agreed = 9;
  range.trials[0].lost = 1;  // and more than a tenth of the others would be off
  CHECK(kind() == Verdict::Kind::none);
}

// Three rows each: a protocol 3 % off in both ranges, and a launch 0.1 % off that was tried at all sizes.
TEST_CASE("what is left out as chance is not said to explain all ranges") {
  const auto ranges = [](bool with_launch) {
    MismatchRange range;
    range.trials = {trial("LL128", 90, 0.03)};
    if (with_launch) range.trials.push_back(trial("launch", 93, 0.001, /*is_fitted=*/true));
    for (Trial& each : range.trials) each.rows.assign(3, each.rows.front());
    range.trials.back().what.is_everywhere = with_launch;
    return std::vector<MismatchRange>{range, range};
  };
  CHECK(common_causes(ranges(false)).labels == std::vector<std::string>{"LL128"});
  std::vector<MismatchRange> few = ranges(true);
  CHECK(common_causes(few).labels.empty());
  CHECK(verdict_of(few.front()).causes.front()->what.label == "launch");
  // Two rows can be fitted by any number.
  for (MismatchRange& range : few)
    for (Trial& each : range.trials) each.rows.resize(2);
  CHECK(common_causes(few).labels == std::vector<std::string>{"LL128"});
}

// A plan 2 % off in one row, and a launch that fits exactly, as a number fitted to one row does.
TEST_CASE(
    "a launch at all sizes is named before plans that fit less well if ranges of different plans share their "
    "difference") {
  const auto rows = [](const char* other, double last_us) {
    return std::vector<ComparedRow>{row(1_KiB, 20, 35), row(2_KiB, 21, 36), row(4_KiB, 30, 30),
                                    row(8_KiB, 40, 55.5, other), row(16_KiB, 41, last_us, other)};
  };
  std::vector<MismatchRange> ranges = mismatches_of(rows("Tree", 56.5));
  REQUIRE(ranges.size() == 2);
  const auto cause = [](MismatchRange range, bool must_be_set) {
    Trial plan = trial("LL128", 34.3, 0.02), launch = trial("launch", 35, 0, /*is_fitted=*/true);
    plan.what.is_plan = true;
    if (must_be_set) plan.by_formula = 3;
    launch.what.is_everywhere = true;
    range.trials = {plan, launch};
    const Verdict verdict = verdict_of(range);
    CHECK(contradiction(verdict, range) == "");
    return verdict.causes.front()->what.label;
  };
  for (const bool must_be_set : {false, true}) {
    CAPTURE(must_be_set);
    CHECK(cause(ranges[0], must_be_set) == "launch");
    CHECK(cause(ranges[1], must_be_set) == "launch");
  }
  // 15 us by a ring, and 30 by a tree: two rows say nothing of other sizes.
  CHECK(cause(mismatches_of(rows("Tree", 71))[0], false) == "LL128");
  // Nor are 15 us twice by one plan more than chance, nor two rows of two.
  CHECK(cause(mismatches_of(rows("Ring", 56.5))[0], false) == "LL128");
  CHECK(cause(mismatches_of(std::vector<ComparedRow>{row(1_KiB, 20, 35), row(2_KiB, 40, 55.5, "Tree")})[0], false) ==
        "LL128");
}

TEST_CASE("a difference at all sizes is a longer launch or a shorter one, as its sign says") {
  const auto fact = [](double us) {
    return mismatches_of(
               std::vector<ComparedRow>{row(1_KiB, 10, 10 + us), row(2_KiB, 11, 11 + us), row(4_KiB, 12, 12 + us)})
        .front()
        .facts.at(0);
  };
  CHECK(has(fact(5), "5.0 us. A longer launch, the benchmark harness, or a rank that is late each time can"));
  CHECK(has(fact(-5), "-5.0 us. A shorter launch can cause this: a faster CPU or driver, or CUDA graphs."));
}

TEST_CASE("a cause of most ranges is named with their number, and releases count one by one") {
  const auto range_of = [](const std::vector<std::vector<std::string>>& releases) {
    MismatchRange range;
    for (const std::vector<std::string>& each : releases) {
      range.trials.push_back(trial("some", 90, 0.03));
      range.trials.back().what.label = releases_text(each);
      range.trials.back().what.releases = each;
    }
    return range;
  };
  // 2.10.3 and 2.14.3 decide alike in the first range, and 2.14.3 as 2.17.1 in the second.
  std::vector<MismatchRange> ranges{range_of({{"2.10.3", "2.14.3"}}), range_of({{"2.14.3", "2.17.1"}, {"2.8.4"}})};
  CHECK(common_causes(ranges).labels == std::vector<std::string>{"release 2.14.3"});
  CHECK(common_causes(ranges).ranges == 2);
  ranges.insert(ranges.end(), 2, range_of({}));  // two of four
  CHECK(common_causes(ranges).ranges == 2);
  ranges.push_back(range_of({}));  // two of five are less than half
  CHECK(common_causes(ranges).labels.empty());
  ranges.resize(1);
  CHECK(common_causes(ranges).labels.empty());
}

TEST_CASE("a change is called the nearest only if it is nearer by what is printed") {
  MismatchRange range;
  range.error = {.name = "", .rows = 1, .median_abs = 0.3, .p90_abs = 0.3, .median_signed = -0.3};
  range.trials = {trial("PCIe", 90, 0.2995)};
  CHECK(verdict_of(range).causes.empty());  // 30.0 % both
  range.trials[0].error.median_abs = 0.298;
  REQUIRE(verdict_of(range).causes.size() == 1);
  CHECK(verdict_of(range).causes[0]->what.label == "PCIe");
}

TEST_CASE("verdicts agree with the table: the nearest that explains is likely, and none only if none does") {
  std::mt19937 random(20261127);
  std::array<int, 3> kinds{};
  for (int seed = 0; seed < 60'000; ++seed) {
    CAPTURE(seed);
    MismatchRange range;
    range.error.median_abs = 0.3;
    range.other_plan = random() % 2 == 0;
    if (random() % 2 == 0) range.shared_us = 5;
    const bool has_three_rows = random() % 2 == 0;
    const int n = static_cast<int>(random() % 6);
    for (int i = 0; i < n; ++i) {
      const auto tenths = [&] { return static_cast<double>(random() % 40) / 200; };  // up to 19.5 %
      Trial each = trial("t" + std::to_string(i), 100 + static_cast<double>(random() % 3), 0, random() % 3 == 0);
      each.error.median_abs = tenths();
      each.error.p90_abs = std::max(each.error.median_abs, tenths());
      each.what.is_plan = random() % 2 == 0;
      each.what.is_everywhere = !each.what.is_plan;
      each.by_formula = random() % 4 == 0 ? 3 : 1;
      each.agreed = static_cast<int>(random() % 12);
      each.lost = each.agreed == 0 ? 0 : static_cast<int>(random() % 3) % (each.agreed + 1);
      if (has_three_rows) each.rows.assign(3, each.rows.front());
      range.trials.push_back(each);
    }
    const Verdict verdict = verdict_of(range);
    CHECK(contradiction(verdict, range) == "");
    kinds.at(static_cast<std::size_t>(verdict.kind))++;
    // By the words of docs/guide/compare.md, written out again: at most 5 % in the median, nine of ten rows within 10,
    // no more than a tenth of those that agreed lost; what needs no fitted number first, then what needs no variable.
    const Trial* best = nullptr;
    // A plan is out if a fitted number for all sizes is three times nearer, in three rows, or explains the range at
    // all, if the ranges share their difference.
    const auto is_set = [](const Trial& t) { return t.what.is_plan && t.by_formula > 2; };
    const auto key = [&](const Trial& t) { return std::tuple(t.what.is_fitted, is_set(t), t.error.median_abs); };
    const auto explains = [](const Trial& t) {
      return t.error.median_abs <= 0.05 && t.error.p90_abs <= 0.1 && t.lost <= t.agreed / 10.0;
    };
    for (const Trial& each : range.trials) {
      const double times = range.shared_us ? 0 : 3;
      const bool may_be_out =
          !each.what.is_fitted && (range.shared_us.has_value() || (each.what.is_plan && has_three_rows));
      const bool is_out = may_be_out && std::any_of(range.trials.begin(), range.trials.end(), [&](const Trial& t) {
                            return t.what.is_fitted && (t.what.is_everywhere || is_set(t)) && explains(t) &&
                                   (times == 0 || times * t.error.median_abs < each.error.median_abs);
                          });
      if (explains(each) && !is_out && (best == nullptr || key(each) < key(*best))) best = &each;
    }
    CHECK((verdict.kind == Verdict::Kind::likely) == (best != nullptr));
    if (best != nullptr) CHECK(key(*verdict.causes.front()) == key(*best));
    // A verdict that is changed contradicts the table.
    Verdict other = verdict;
    if (best != nullptr) {
      other.kind = Verdict::Kind::none;
      CHECK(contradiction(other, range) != "");
    } else if (!range.trials.empty()) {
      other.kind = Verdict::Kind::likely;
      other.causes = {&range.trials.front()};
      CHECK(contradiction(other, range) != "");
    }
  }
  for (const int count : kinds) CHECK(count > 100);
}

TEST_CASE("a row that is faster than the bound is said to prove the bound wrong, whose figure is not cited") {
  std::vector<ComparedRow> rows{row(1_MiB, 50, 30, "NVLS"), row(2_MiB, 90, 55, "NVLS"), row(4_MiB, 170, 110, "NVLS")};
  for (ComparedRow& each : rows)
    each.result.bound = Picoseconds{static_cast<std::int64_t>(each.predicted_us() * 0.62e6)};
  // Bounds: 31, 55.8, 105.4 us; the last row is slower than its bound.
  const std::vector<MismatchRange> ranges = mismatches_of(rows);
  REQUIRE(ranges.size() == 1);
  CHECK(ranges[0].facts ==
        std::vector<std::string>{
            "The bound does not hold for this machine: 2 rows are faster than the links of the scenario allow, the "
            "largest 2 MiB in 55.00 us. There are more or faster links than in the scenario."});
}

TEST_CASE("old releases start channels one by one, which is said if it matters and the file may be of one") {
  const auto starts = [](int blocks, double measured_us, const std::string& release, bool is_modeled = false) {
    ComparedRow each = row(1_MiB, 44, measured_us);
    each.scenario.library = LibraryRun{};
    each.scenario.library->call.plan.launched = blocks;
    each.scenario.library->call.starts_channels = is_modeled;
    return mismatches_of(std::vector<ComparedRow>{each}, release).at(0).starts;
  };
  CHECK(starts(24, 84, "") ==
        "Before 2.18, NCCL starts each channel separately, in about 1.3 us: this is 30 of the 40 us missing at 1 MiB "
        "(devices.gpu.launch_channel).");  // 23 x 1.3
  CHECK(starts(24, 84, "2.8.4") == starts(24, 84, ""));
  CHECK(starts(24, 84, "2.18.3") == "");
  CHECK(starts(1, 84, "") == "");
  CHECK(starts(24, 84, "2.8.4", true) == "");  // the prediction has them
  CHECK(starts(24, 184, "") == "");            // a fifth of what is missing
}

}  // namespace mismatch_test
