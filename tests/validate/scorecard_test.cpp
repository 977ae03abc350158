// The scorecard: which rows count, who predicts what, and that the published tables and their scenarios fit.
#include "validate/score/scorecard.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "tests/support/command.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/files.hpp"
#include "tests/support/paths.hpp"

namespace scorecard_test {

using namespace ringsim;
using namespace ringsim::literals;
using ringsim::test::run_command;
namespace fs = std::filesystem;

namespace {

// A ring of 4 takes 6 (1 us + p/40 GB/s), a parameter server 6 p/10 GB/s + 2 us: at 4000 B 6.6 and 4.4 us, at 40 kB 12
// and 26 us, at 400 kB 66 and 242 us, at 4 MB 606 us; a ring over LL sends twice the bytes and launches in 6.6 us.
const std::string star = R"({
  "version": 1,
  "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "0.5 us"}},
  "collective": {"op": "all_reduce", "algorithm": ["ring", "parameter_server"], "bytes": "1 MiB"}
})";
const std::string head = "# collective: all_reduce\n# ranks: 4\n";

PublishedTable published(const std::string& csv, const std::string& scenario = star) {
  return {"four", "four.csv", csv, scenario.empty() ? "" : "four.json", scenario};
}

std::vector<Prediction> predict_all(const ScenarioFile& file) {
  std::vector<Prediction> results;
  for (std::size_t i = 0; i < file.size(); ++i) results.push_back(predict(file.point(i)));
  return results;
}

}  // namespace

TEST_CASE("of a scenario's points the fastest by the model counts, though another is nearer to the measurement") {
  const ScoredTable table = score(published(head + "bytes,time_us\n4000,6.6\n40000,26\n"), predict_all);
  REQUIRE(table.rows.size() == 2);
  CHECK(table.rows[0].of(Model::plain)->us == doctest::Approx(4.4));
  CHECK(table.rows[0].of(Model::plain)->by == "parameter_server");
  CHECK(table.rows[1].of(Model::plain)->us == doctest::Approx(12));
  CHECK(table.rows[1].of(Model::plain)->by == "ring");
  const auto errors = errors_of(table, Model::plain);
  REQUIRE(errors.size() == 2);
  CHECK(errors[0].error == doctest::Approx(4.4 / 6.6 - 1));
  CHECK(errors[1].error == doctest::Approx(12.0 / 26 - 1));
  CHECK(table.rows[1].of(Model::textbook)->us == doctest::Approx(12));  // a star is the textbook's own machine
  CHECK_FALSE(table.rows[0].of(Model::protocols).has_value());          // the scenario has none
  CHECK_FALSE(table.rows[0].of(Model::tuner).has_value());              // it was not NCCL
  CHECK_FALSE(table.rows[0].of(Model::line).has_value());               // a half of one row makes no line
}

TEST_CASE("points with a protocol are a prediction of their own") {
  const std::string with =
      star.substr(0, star.rfind('}')) + R"(, "transport": {"protocol": ["none", "ll", "simple"]}})";
  const ScoredTable table = score(published(head + "bytes,time_us\n400000,66\n", with), predict_all);
  CHECK(table.rows[0].of(Model::plain)->us == doctest::Approx(66));
  REQUIRE(table.rows[0].of(Model::protocols).has_value());
  CHECK(table.rows[0].of(Model::protocols)->by == "ring simple");
  CHECK(table.rows[0].of(Model::protocols)->us > 66 + 8);  // it launches in 8.4 us, and saves what waits cost at most
}

TEST_CASE(
    "a scenario that names a library is one point a size; one that names algorithms is predicted with NCCL as well") {
  const std::string machine = R"({"version": 1, "topology": {"kind": "cluster", "node": "dgx-a100", "nodes": 1}, )";
  const std::string by_library = machine + R"("library": "nccl", "collective": {"op": "all_reduce", "bytes": "1 B"}})";
  const std::string by_algorithm =
      machine + R"("collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 B", "order": "best_ring"},
      "transport": {"protocol": "simple", "nics": "all"}})";
  const std::string csv =
      "# collective: all_reduce\n# ranks: 8\n# library: NCCL 2.27.3\n# algorithm: Ring\n"
      "bytes,time_us\n1024,21.77\n";
  const ScoredTable one = score(published(csv, by_library), predict_all);
  const ScoredTable other = score(published(csv, by_algorithm), predict_all);
  REQUIRE(one.rows[0].of(Model::library).has_value());
  REQUIRE(other.rows[0].of(Model::library).has_value());
  CHECK(one.rows[0].of(Model::library)->us == other.rows[0].of(Model::library)->us);
  CHECK(one.rows[0].of(Model::library)->by == "ring ll");
  CHECK_FALSE(one.rows[0].of(Model::protocols).has_value());
  CHECK(other.rows[0].of(Model::protocols).has_value());
  // What the table says was forced.
  std::string forced = csv;
  forced.replace(forced.find(": Ring"), 6, ": Tree");
  CHECK(score(published(forced, by_algorithm), predict_all)
            .rows[0]
            .of(Model::library)
            ->by.starts_with("double_binary_tree"));
}

TEST_CASE("a table of a release that is not modeled is scored only if its scenario names the library") {
  const std::string machine = R"({"version": 1, "topology": {"kind": "cluster", "node": "dgx-a100", "nodes": 1}, )";
  const std::string csv = "# collective: all_reduce\n# ranks: 8\n# library: NCCL 2.32.6\nbytes,time_us\n1024,21.77\n";
  const ScoredTable table =
      score(published(csv, machine + R"("library": "nccl", "collective": {"op": "all_reduce", "bytes": "1 B"}})"),
            predict_all);
  CHECK(table.warnings ==
        std::vector<std::string>{
            "four.csv: the table is for NCCL 2.32.6, which is newer than any release that is modeled; the prediction "
            "is for nccl 2.30.7, which uses different rules (docs/guide/nccl.md, Newer releases)"});
  CHECK(table.rows[0].of(Model::library).has_value());
  CHECK_FALSE(table.rows[0].of(Model::tuner).has_value());  // its formula is not known
  CHECK(test::complaint([&] {
          score(published(csv, machine + R"("collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 B"}})"),
                predict_all);
        }) ==
        "four.csv: # library: expected an NCCL release up to 2.30.7, the newest that is modeled, found NCCL "
        "2.32.6\n  hint: newer releases use different rules (docs/guide/nccl.md, Newer releases); with \"library\": "
        "\"nccl\", four.json predicts 2.30.7, with a warning");
}

TEST_CASE("other costs of NCCL's kernels hold for the tables of NCCL, and leave those of RCCL as they are") {
  const std::string costs = test::temporary_file("slow.json", R"({"hopper.launch": 104.7})");
  const auto row = [&](const char* machine, const char* library, std::vector<std::string> set) {
    const std::string scenario = R"({"version": 1, "topology": {"kind": "cluster", "nodes": 1, "node": ")" +
                                 std::string(machine) + R"("}, "library": ")" + library +
                                 R"(", "collective": {"op": "all_reduce", "bytes": "1 B"}})";
    const std::string csv = "# collective: all_reduce\n# ranks: 8\n# library: " + std::string(library) +
                            " 2.21.5\nbytes,time_us\n1024,30\n";
    return score(published(csv, scenario), predict_all, {.set = std::move(set)}).rows.at(0).of(Model::library)->us;
  };
  const std::vector<std::string> slow{"library.costs=\"" + costs + "\""};
  CHECK(row("hgx-h100", "nccl", slow) - row("hgx-h100", "nccl", {}) == doctest::Approx(100));  // 4.7 us otherwise
  CHECK(row("mi300x", "rccl", slow) == row("mi300x", "rccl", {}));
}

TEST_CASE("every other row is predicted from a line through the rest, and only rows that count are fitted") {
  // Odd rows lie on 10 us + p/1 GB/s, even ones take twice as long; the fifth does not count.
  const ScoredTable table = score(
      published(head + "# score: to 400 kB; the last row is somebody's mistake\nbytes,time_us\n4000,14\n40000,100\n"
                       "50000,60\n400000,820\n4000000,1\n"),
      predict_all);
  REQUIRE(table.rows.size() == 5);
  const double expected[] = {28, 50, 120, 410};
  for (std::size_t i = 0; i < 4; ++i) {
    CAPTURE(i);
    CHECK(table.rows[i].scored);
    CHECK(table.rows[i].of(Model::line).value().us == doctest::Approx(expected[i]));
  }
  CHECK_FALSE(table.rows[4].scored);
  CHECK_FALSE(table.rows[4].of(Model::line).has_value());
  CHECK(table.rows[4].of(Model::plain).has_value());  // shown all the same
  CHECK(errors_of(table, Model::plain).size() == 4);
}

TEST_CASE("a table says which of its rows count, and why not the others") {
  const auto sizes = [](const std::string& line) {
    return scored_sizes(parse_measured(head + line + "bytes,time_us\n4,1\n", "x.csv"));
  };
  CHECK(sizes("").contains(0_B));
  CHECK(sizes("").contains(8_GiB));
  const ScoredSizes none = sizes("# score: none; other software\n");
  CHECK_FALSE(none.contains(0_B));
  CHECK_FALSE(none.contains(8_GiB));
  CHECK(none.reason == "other software");
  const ScoredSizes from = sizes("# score: from 8 MiB; below, it is launches\n");
  CHECK_FALSE(from.contains(8_MiB - 1_B));
  CHECK(from.contains(8_MiB));
  const ScoredSizes to = sizes("# score: to 64 KiB; above, not known\n");
  CHECK(to.contains(64_KiB));
  CHECK_FALSE(to.contains(64_KiB + 1_B));
  const std::string expected =
      "x.csv: # score: expected \"none; REASON\", \"from SIZE; REASON\" or \"to SIZE; REASON\", found ";
  for (const char* wrong : {"none", "none; ", "no; because", "from 8; because", "up to 8 MiB; because"}) {
    CAPTURE(wrong);
    CHECK(ringsim::test::complaint([&] { sizes(std::string("# score: ") + wrong + "\n"); }).starts_with(expected));
  }
}

TEST_CASE("what does not fit is refused by name") {
  const auto refused = [](const PublishedTable& table) {
    return ringsim::test::complaint([&] { score(table, predict_all); });
  };
  const std::string rows = "bytes,time_us\n4000,6\n";
  CHECK(refused(published(head + rows, "")) ==
        "four.csv: expected a scenario of its machine, four.json next to it, found none\n"
        "  hint: or a line \"# score: none; REASON\"");
  CHECK(refused(published(head + "# score: none; host buffers\n" + rows, "")) == "");
  CHECK(refused(published("# collective: all_gather\n# ranks: 4\n" + rows)) ==
        "four.json: /collective/op: expected all_gather as in four.csv, found all_reduce");
  CHECK(refused(published("# collective: all_reduce\n# ranks: 8\n" + rows))
            .starts_with("four.csv: expected as many ranks as four.json has, 4, found measurements with 8"));
}

TEST_CASE(
    "the worst tables come first, by what ringsim says with the library, else with protocols, where it says "
    "something") {
  const auto table_of = [](const std::string& id, double plain, std::optional<double> protocols,
                           std::optional<double> library = {}) {
    ScoredTable table{.id = id, .rows = {{.bytes = 4_B, .measured_us = 10}}};
    const auto say = [&](Model model, double us) {
      table.rows[0].times[static_cast<std::size_t>(model)] = ModelTime{us, ""};
    };
    say(Model::plain, plain);
    if (protocols) say(Model::protocols, *protocols);
    if (library) say(Model::library, *library);
    return table;
  };
  std::vector<ScoredTable> tables{table_of("near", 11, {}), table_of("mended", 100, 12), table_of("far", 30, {}),
                                  table_of("out", 1000, {}), table_of("best", 500, 200, 10.5)};
  tables[3].rows[0].scored = false;
  std::string order;
  for (const ScoredTable* table : worst_of(tables, 5)) order += table->id + ' ';
  CHECK(order == "far mended near best ");
  CHECK(worst_of(tables, 1).size() == 1);
}

TEST_CASE("the published tables are the files of validate/measured/tables, and each has a scenario or says why not") {
  const std::vector<PublishedTable> tables = published_tables();
  const fs::path folder = fs::path(ringsim::test::source_dir()) / "validate/measured/tables";
  CHECK(tables.size() == 107);
  for (const PublishedTable& each : tables) {
    CAPTURE(each.id);
    CHECK(each.csv == ringsim::test::read_file(folder / (each.id + ".csv")));
    const MeasuredTable table = parse_measured(each.csv, each.csv_file);
    CHECK(table.about.at("id") == each.id);
    const ScoredSizes sizes = scored_sizes(table);
    if (each.scenario_file.empty()) {
      CHECK_FALSE(sizes.contains(table.rows.front().bytes));
      continue;
    }
    CHECK(each.scenario == ringsim::test::read_file(folder / (each.id + ".json")));
    const ScenarioFile file = ScenarioFile::parse(each.scenario, each.scenario_file);
    CHECK(file.point(0).main().request.ranks == table.ranks.value());
    CHECK(file.point(0).main().request.op == table.rows.front().op);
    // What rows count was decided by where they come from, not by how well they are predicted.
    const bool apart = each.id.starts_with("moc-") || each.id.starts_with("aws-p3dn") || each.id.starts_with("dgx2-") ||
                       each.id.starts_with("mi300x-2n8g") || each.id.find("-mpi-") != std::string::npos;
    const bool some = sizes.contains(table.rows.front().bytes) || sizes.contains(table.rows.back().bytes);
    CHECK(some != apart);
    if (each.id.starts_with("a100-1n8g") || each.id.starts_with("azure-mi300x")) CHECK(sizes.from == 8_MiB);
    if (each.id.starts_with("abci-a100-4n8g")) CHECK(sizes.to == 64_KiB);
    if (each.id.starts_with("abci") && each.id.ends_with("broadcast")) CHECK(sizes.from == 1_MiB);
  }
}

TEST_CASE("the command predicts a table of one's own with the library, on a machine that is only a preset") {
  const std::string machine = R"({"version": 1, "topology": {"kind": "cluster", "node": "l40s-pcie", "nodes": 1},
    "library": {"name": "nccl", "version": "2.27.3"},
    "collective": {"op": "all_gather", "bytes": "1 MiB", "ranks": ["node0.gpu0", "node0.gpu1"]}})";
  const fs::path folder = fs::path(test::temporary_file("pair.json", machine)).parent_path();
  std::ofstream(folder / "pair.csv") << "# collective: all_gather\n# ranks: 2\n# library: NCCL 2.27.3\n"
                                        "bytes,time_us\n512,5.3\n536870912,13698\n";
  const auto rows = run_command({"scorecard", folder.string(), "--format", "csv"});
  REQUIRE_MESSAGE(rows.code == 0, rows.err);
  // One step of LL after the launch: 4.7 us and PCIe's 0.8 us. Half of the buffer over PCIe at 24 GB/s, and the other
  // half copied at 100 GB/s, by chunks of Simple: 13.9 ms and a few us.
  CHECK(rows.out.find("pair,all_gather,2,\"one node, PCIe\",512,5.3,true,5.5") != std::string::npos);
  CHECK(rows.out.find("536870912,13698,true,138") != std::string::npos);
  CHECK(rows.out.find(",ring ll,") != std::string::npos);
  CHECK(rows.out.find(",ring simple,") != std::string::npos);
}

TEST_CASE("the command reads a folder of one's own, and shows it as a table, a page and rows") {
  const fs::path folder = fs::path(test::temporary_file("four.json", star)).parent_path();
  std::ofstream(folder / "four.csv") << head +
                                            "# missing: nothing at all\n# score: from 40 kB; so says the test\n"
                                            "bytes,time_us\n4000,6\n40000,15\n400000,66\n";
  const auto outcome = run_command({"scorecard", folder.string()});
  REQUIRE(outcome.code == 0);
  CHECK(outcome.err == "");
  const auto has = [&](const std::string& text) { return outcome.out.find(text) != std::string::npos; };
  CHECK(has("1 tables with 3 rows, of which 2 are scored."));
  CHECK(has("all sizes           2         -  10 / 18"));  // of 0.2 and 0: the median 0.1, 0.9 of the way 0.18
  CHECK(has("four   from 40 kB  so says the test  4 kB: 6.0, -, 4.4, -"));
  CHECK(has("nothing at all"));
  const auto rows = run_command({"scorecard", folder.string(), "--format", "csv"});
  CHECK(rows.out ==
        "table,collective,ranks,family,bytes,measured_us,scored,library_us,plain_us,protocols_us,textbook_us,tuner_us,"
        "line_us,"
        "library_by,plain_by,protocols_by,tuner_by\n"
        "four,all_reduce,4,\"no machine\",4000,6,false,,4.4,,6.6000000000000005,,,,parameter_server,,\n"
        "four,all_reduce,4,\"no machine\",40000,15,true,,12,,12,,,,ring,,\n"
        "four,all_reduce,4,\"no machine\",400000,66,true,,66,,66,,,,ring,,\n");
  const auto page = run_command({"scorecard", folder.string(), "--format", "markdown"});
  CHECK(page.out.find("\n## By size\n\n| sizes | rows |") != std::string::npos);
  CHECK(run_command({"scorecard", folder.string(), "-o", (folder / "four.csv").string()}).code == 3);
  fs::remove(folder / "four.csv");
  const auto lonely = run_command({"scorecard", folder.string()});
  CHECK(lonely.code == 3);
  CHECK(lonely.err.find("expected a measured table four.csv next to it, found none") != std::string::npos);
  CHECK(run_command({"scorecard", "no/such/folder"}).code == 3);
}

}  // namespace scorecard_test
