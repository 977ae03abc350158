// Rows of results: read, told apart, put into one order.
#include "validate/results/results.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "scenarios/scenario.hpp"
#include "sim/base/error.hpp"
#include "sim/text/json.hpp"
#include "tests/support/command.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/files.hpp"
#include "validate/results/column_names.hpp"
#include "validate/results/columns.hpp"
#include "validate/results/written_rows.hpp"

namespace results_test {

using namespace ringsim;
using ringsim::test::temporary_file;

namespace {

/// The key of a point: its hash, and JSON.
std::string key_of(const std::string& hash, const std::string& point, int model = 2) {
  PointId id{.hash = hash, .varied = {}};
  const Json varied = parse_json(point, "point");
  for (const auto& [path, value] : varied.items()) id.varied.emplace_back(path, value.dump());
  return result_key("1", model, "s", id, false);
}

/// A row of one scenario; `point` is JSON.
std::string row(const std::string& hash, const std::string& point, double time_us, const std::string& more = "",
                int model = 2) {
  return fmt::format(
      R"({{"ringsim":{{"version":"1","model_version":{}}},"scenario":{{"name":"s","hash":"{}"}},"key":"{}",)"
      R"("point":{},"time_us":{}{}}})"
      "\n",
      model, hash, key_of(hash, point, model), point, time_us, more);
}

std::string complaint(const std::vector<std::string>& files) {
  return ringsim::test::complaint([&] { MergedResults{files}; });
}

}  // namespace

TEST_CASE("a row's objects lie flat, what varied keeps its path, null is nothing and a list is text") {
  const std::string point = R"({"topology.nodes":4,"collective.algorithm":{"name":"ring"}})", key = key_of("h", point);
  const ResultRow parsed = ResultRow::parse(
      row("h", point, 1.5, R"(,"closed_form":{"ratio":1.0,"holds":true,"because":["a","b"]},"bottleneck":null)"),
      "f:1");
  std::string text;
  for (const Cell& cell : parsed.cells) text += cell.column + "=" + plain_text(cell) + " ";
  CHECK(text ==
        "ringsim.version=1 ringsim.model_version=2 scenario.name=s scenario.hash=h key=" + key +
            " point.topology.nodes=4 "
            "point.collective.algorithm={\"name\":\"ring\"} time_us=1.5 closed_form.ratio=1 closed_form.holds=true "
            "closed_form.because=[\"a\",\"b\"] ");
  CHECK(parsed.key == key);
  CHECK(parsed.label() == "topology.nodes 4, collective.algorithm {\"name\":\"ring\"}");
  CHECK(std::get<Quantity>(*parsed.value("time_us")) == Quantity{1.5e6, Dimension::time, 1e6});
  CHECK(std::get<Quantity>(*parsed.value("topology.nodes")) == Quantity{4, Dimension::none, 0});
  CHECK_FALSE(parsed.value("bottleneck.link").has_value());
}

TEST_CASE("what varied as a quantity's text is a quantity") {
  const ResultRow parsed =
      ResultRow::parse(row("k", R"({"a":"64 KiB","b":"25 GB/s","c":"1 us","d":"ring"})", 1), "f:1");
  CHECK(std::get<Quantity>(*parsed.value("a")) == Quantity{65536, Dimension::size, 0});
  CHECK(std::get<Quantity>(*parsed.value("b")) == Quantity{25e9, Dimension::rate, 0});
  CHECK(std::get<Quantity>(*parsed.value("c")) == Quantity{1e6, Dimension::time, 0});
  CHECK(std::get<std::string>(*parsed.value("d")) == "ring");
}

TEST_CASE("rows come in an order of their own: numbers and quantities by size, texts by letters and their numbers") {
  // 2 before 10, 512 KiB before 1 MiB, gpu2 before gpu10; the first that varies counts first; a job after its main one.
  const std::vector<std::string> ordered{
      row("a", R"({"n":2,"b":"1 MiB","g":"gpu2"})", 1),
      row("b", R"({"n":10,"b":"512 KiB","g":"gpu10"})", 1),
      row("c", R"({"n":10,"b":"1 MiB","g":"gpu2"})", 1),
      row("d", R"({"n":10,"b":"1 MiB","g":"gpu10"})", 1, R"(,"job":"main")"),
      row("d", R"({"n":10,"b":"1 MiB","g":"gpu10"})", 1, R"(,"job":"alpha")"),
  };
  std::string expected;
  for (const std::string& line : ordered) expected += line;
  for (unsigned seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    std::vector<std::string> lines = ordered;
    std::shuffle(lines.begin(), lines.end(), std::mt19937(seed));
    std::string first, second;
    for (std::size_t i = 0; i < lines.size(); ++i) (i % 2 == 0 ? first : second) += lines[i];
    first += lines[1];  // in both: once in what comes out
    const MergedResults merged({temporary_file("1", first), temporary_file("2", second)});
    CHECK(merged.size() == 5);
    CHECK(merged.repeated() == 1);
    std::string text;
    merged.each_line([&](const std::string& line) { text += line; });
    CHECK(text == expected);
  }
}

TEST_CASE("two different rows of one key, rows of two models, and rows without key are refused") {
  const std::string good = row("a", R"({"n":1})", 1), other = row("a", R"({"n":1})", 2);
  const std::string one = temporary_file("one", good), two = temporary_file("two", other);
  CHECK(complaint({one, two}) ==
        two + ":1: expected the same row as " + one +
            ":1, which has the same key, found another\n  hint: one of them was changed or is damaged");
  const std::string model = temporary_file("model", row("b", R"({"n":2})", 1, "", 3));
  CHECK(complaint({one, model})
            .starts_with(model + ":1: expected a row of ringsim 1, model 2, like " + one +
                         ":1, found a row of ringsim 1, model 3\n"));
  const std::string keyless =
      temporary_file("keyless", test::replaced(good, "\"key\":\"" + key_of("a", R"({"n":1})") + "\",", ""));
  CHECK(complaint({keyless}).starts_with(keyless + ":1: expected a row of a sweep, found a row without \"key\"\n"));
}

TEST_CASE("a file that is damaged is named with its line; a last line that was cut off is left out") {
  const std::string good = row("a", R"({"n":1})", 1);
  const auto found = [&](const std::string& text) {
    const std::string file = temporary_file("damaged", good + text);
    const std::string what = complaint({file}), head = file + ":2: expected a result of ringsim, found ";
    const std::string first_line = what.substr(0, what.find('\n'));
    return first_line.starts_with(head) ? first_line.substr(head.size()) : first_line.substr(file.size());
  };
  CHECK(found("{\"ringsim\":\n").starts_with(":2:12: expected a value"));
  CHECK(found("\n").starts_with(":2:1: expected a value"));
  CHECK(found("[1]\n") == "JSON of type array");
  CHECK(found("{}\n") == "one without \"ringsim.version\"");
  CHECK(found(test::replaced(good, R"("time_us":1)", R"("time":1)")) == "one with neither \"time_us\" nor \"error\"");
  const std::string torn = temporary_file("torn", good + "{\"ringsim\":");
  const MergedResults merged({torn});
  CHECK(merged.size() == 1);
  CHECK(merged.torn_files() == std::vector<std::string>{torn});
  CHECK(complaint({"/no/such/file"}) == "/no/such/file: expected a results file, found no file of that name");
  CHECK(complaint({"/tmp"}) == "/tmp: expected a results file, found a directory");
}

TEST_CASE("values of another type or out of their range are refused, and a key that is not that of its point") {
  const std::string good = row("a", R"({"n":1})", 1, R"(,"ranks":8,"bytes":1024)");
  const auto found = [&](const std::string& what, const std::string& with) {
    return ringsim::test::complaint([&] { ResultRow::parse(test::replaced(good, what, with), "f", 3); });
  };
  const std::string hint = "\n  hint: the row was changed or is damaged";
  CHECK(found("\"n\":1", "\"n\":1") == "");
  CHECK(found(R"("time_us":1)", R"("time_us":"1")") ==
        "f:3: expected time_us to be a number of at least 0, found \"1\"" + hint);
  CHECK(found(R"("time_us":1)", R"("time_us":-1)") ==
        "f:3: expected time_us to be a number of at least 0, found -1" + hint);
  CHECK(found(R"("ranks":8)", R"("ranks":0)") ==
        "f:3: expected ranks to be a whole number of at least 1, found 0" + hint);
  CHECK(found(R"("bytes":1024)", R"("bytes":1.5)") ==
        "f:3: expected bytes to be a whole number of at least 0, found 1.5" + hint);
  CHECK(found(R"("model_version":2)", R"("model_version":"2")") ==
        "f:3: expected ringsim.model_version to be a whole number of at least 1, found \"2\"" + hint);
  const std::string key = key_of("a", R"({"n":1})");
  CHECK(found(R"("point":{"n":1})", R"("point":{"n":2})") ==
        "f:3: expected key to be that of the row's version, scenario and point, " + key_of("a", R"({"n":2})") +
            ", found " + key + hint);
  CHECK(found(R"("model_version":2)", R"("model_version":3)").find(key_of("a", R"({"n":1})", 3)) != std::string::npos);
}

TEST_CASE("a line of more than 32 MiB is no result, and is not read further") {
  const std::string file = temporary_file("endless", row("a", R"({"n":1})", 1) + std::string((33U << 20), 'x'));
  CHECK(complaint({file}).starts_with(file + ":2: expected a result of ringsim, found a line of more than 32 MiB\n"));
  CHECK(complaint({"/dev/zero"}).starts_with("/dev/zero:1: expected a result of ringsim, found a line of more than"));
}

TEST_CASE("random damage is an InputError, or leaves results; never anything else") {
  std::string text;
  for (int i = 0; i < 5; ++i)
    text += row(std::string(1, static_cast<char>('a' + i)), fmt::format(R"({{"n":{}}})", i), i + 1);
  int good = 0, bad = 0;
  for (unsigned seed = 0; seed < 500; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const std::string file = temporary_file("damaged", test::damaged(text, random));
    try {
      const MergedResults merged({file});
      merged.columns(ColumnsFor::database);
      ++good;
    } catch (const InputError&) {
      ++bad;
    }
  }
  CHECK(good > 50);
  CHECK(bad > 50);
}

TEST_CASE("columns come in the order of the table, with those of every row; a field with a comma or quotes is quoted") {
  const std::string file = temporary_file(
      "f", row("a", R"({"n":1})", 1, R"(,"z":"x,\"y\"")") + row("b", R"({"n":2})", 2, R"(,"delayed":0.5,"z":1)"));
  const MergedResults merged({file});
  const std::vector<std::string> all = merged.columns(ColumnsFor::database), csv_has = merged.columns(ColumnsFor::csv);
  CHECK(std::find(all.begin(), all.end(), "ringsim.version") == all.begin());
  CHECK(all.back() == "z");  // no column of ringsim's
  CHECK(csv_has.front() == "scenario.name");
  CHECK(csv_has.size() < all.size());
  for (const Column& column : result_columns())
    if (column.in == Column::In::every_row) CHECK(std::find(all.begin(), all.end(), column.name) != all.end());
  const std::vector<std::string> columns{"key", "point.n", "time_us", "delayed", "z"};
  std::string csv;
  merged.each([&](const ResultRow& each) { csv += csv_line(fields_of(each, columns)); });
  CHECK(csv == key_of("a", R"({"n":1})") + ",1,1,,\"x,\"\"y\"\"\"\n" + key_of("b", R"({"n":2})") + ",2,2,0.5,1\n");
}

TEST_CASE("text that a spreadsheet would take for a formula gets an apostrophe, numbers do not, and reading drops it") {
  for (const char* text : {"=HYPERLINK(1)", "+cmd|' /C calc'!A0", "-1+1", "@SUM(1)", "-", "+", "=", "-2 %"}) {
    CAPTURE(text);
    CHECK(csv_field(text) == "'" + std::string(text));
  }
  CHECK(csv_field("=a,\"b\"") == "\"'=a,\"\"b\"\"\"");
  for (const char* text : {"-1", "+2.5", "-1e-9", "1-1", "gpu0 -> switch0", "'=1", "", "a=b"}) {
    CAPTURE(text);
    CHECK(csv_field(text) == text);
  }
  const std::vector<ResultRow> rows =
      rows_of_csv("scenario.name,job,delayed,time_us\n'=1+1,'@b,-0.5,1\n'quoted',c,1,1\n", "x.csv");
  REQUIRE(rows.size() == 2);
  CHECK(fields_of(rows[0], {"scenario.name", "job", "delayed"}) == std::vector<std::string>{"=1+1", "@b", "-0.5"});
  CHECK(fields_of(rows[1], {"scenario.name", "job"}) == std::vector<std::string>{"'quoted'", "c"});
}

TEST_CASE("a key changes with the point, with what varied and with the scenario's name, and with nothing else") {
  const PointId id{"hash", {{"topology.ranks", "8"}}};
  CHECK(result_key("s", id) == result_key("s", {"hash", {{"topology.ranks", "8"}}}));
  CHECK(result_key("s", id) != result_key("t", id));
  CHECK(result_key("s", id) != result_key("s", {"hush", {{"topology.ranks", "8"}}}));
  CHECK(result_key("s", id) != result_key("s", {"hash", {{"topology.ranks", "9"}}}));
  CHECK(result_key("s", id) != result_key("s", {"hash", {}}));
  CHECK(result_key("s", id) != result_key("s", id, /*bounded=*/true));
  CHECK(result_key("s", id).size() == 32);
}

}  // namespace results_test
