// Terminal codes, and what a job's log puts before lines.
#include "sim/text/plain_text.hpp"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

namespace plain_text_test {

using ringsim::plain_text;
using ringsim::without_log_prefix;

TEST_CASE("a terminal's codes go away, whatever they are and however a copy spells their escape character") {
  const std::vector<std::pair<std::string, std::string>> texts{
      {"\x1b[32mgreen\x1b[0m", "green"},
      {"\x1b[1;38;5;196mred\x1b[m", "red"},
      {"\x1b[4mGPU0\tGPU1\x1b[0m", "GPU0\tGPU1"},
      {"\x1b[2K\x1b[1Gline", "line"},
      {"\x1b[?2004htyped\x1b[?2004l", "typed"},
      {"\x1b]0;user@host: ~\atitle", "title"},
      {"\x1b]8;;https://x.y\x1b\\link\x1b]8;;\x1b\\", "link"},
      {"\x1b(Bset", "set"},
      {"\x1b=keys\x1b>", "keys"},
      {"\xC2\x9B"
       "31mred",
       "red"},
      {"[32mno escape left[0m", "no escape left"},
      {"[0K12", "12"},
      {"^[[32mspelled^[[0m \\x1b[31ma\\033[0m \\e[1mb \\u001b[0mc", "spelled a b c"},
      {"a\nb\x1b[", "a\nb"},  // cut within a code
      {"\x1b[31\n5", "\n5"},  // a code ends with its line
      {"\x1b", ""},
  };
  for (const auto& text : texts) {
    CAPTURE(text.first);
    CHECK(plain_text(text.first) == text.second);
    CHECK(plain_text(text.second) == text.second);
  }
}

TEST_CASE("blanks and minus signs of web pages become those of ASCII, marks without width go away") {
  CHECK(plain_text("1\xC2\xA0"
                   "048\xE2\x80\xAF"
                   "576 \xE2\x88\x92"
                   "1") == "1 048 576 -1");
  CHECK(plain_text("\xEF\xBB\xBF"
                   "a\xE2\x80\x8B"
                   "b\n\xEF\xBB\xBF"
                   "c") == "ab\nc");
}

TEST_CASE("what only looks like a code stays: words in brackets, lists, other characters") {
  for (const char* text : {"[mpiexec@node1] started", "[0]", "[1,0]<stdout>:4", "{\"a\":[1,2]}",
                           "\xE2\x94\x82 \xC3\xA9", "a^b", "C:\\x\\e", "[5 m]", "[m]", "[12345678901234567890m"})
    CHECK(plain_text(text) == text);
}

TEST_CASE("prefixes of jobs' logs are cut off lines, also several at once") {
  const std::string row = "     1048576  262144";
  for (const char* prefix : {"[1,0]<stdout>:",
                             "[1,0]<stdout>: ",
                             "[prterun-node1-77@1,0]<stdout>: ",
                             "[1,0]<Mon Feb  3 10:11:12 2026><stdout>:",
                             "[0] ",
                             "[node1:rank0] ",
                             "0: ",
                             " 0: ",
                             "12: ",
                             "node1.cluster: ",
                             "worker-1  | ",
                             "service_1 | ",
                             "> ",
                             "> > ",
                             "&gt; ",
                             ">> ",
                             "2026-02-03T10:11:12.123456Z ",
                             "2026-02-03 10:11:12,123 ",
                             "2026/02/03 10:11:12 ",
                             "10:11:12 ",
                             "[2026-02-03 10:11:12,123] ",
                             "[1622510346.87] ",
                             "Feb  3 10:11:12 node1 slurmd[321]: ",
                             "Feb 13 10:11:12 node1 job: ",
                             "2026-02-03T10:11:12.1Z stdout F ",
                             "[pod/a/b] 2026-02-03T10:11:12.1Z 0: ",
                             "2026-02-03T10:11:12+01:00 "}) {
    CAPTURE(prefix);
    const std::string line = prefix + std::string("#") + row;
    const std::string_view left = without_log_prefix(line);
    CHECK(left.substr(left.find_first_not_of(' ')) == "#" + row);
  }
  CHECK(without_log_prefix("0: {\"a\": 1}") == " {\"a\": 1}");
  CHECK(without_log_prefix("node1:{\"a\": 1}") == "{\"a\": 1}");
}

TEST_CASE("lines without a prefix stay as they are") {
  for (const char* line : {"     1048576        262144     float     sum      -1   100.00",
                           "# collective: all_reduce",
                           "#  Rank  0 Group  0",
                           "size,time_us",
                           "1048576 | 262144 | float",
                           "size | time_us",
                           "| 1 | 2 |",
                           "[1, 2] ",
                           "[{\"a\": 1}] ",
                           "\"size\": 8,",
                           "{\"a\": 1}",
                           "node0:101:150 [0] NCCL INFO Channel 00/24 : 0 1",
                           "\t1\t2",
                           "8:9",
                           "",
                           "   ",
                           "2026-02-03,8,10",
                           "2026-02-03 10:11:12,8,10",
                           "Feb is a month",
                           "May 5 be",
                           "10:11:12"}) {
    CAPTURE(line);
    CHECK(without_log_prefix(line) == line);
  }
}

TEST_CASE("blanks at both ends go away, those within stay") {
  CHECK(ringsim::trimmed(" \t a b\r ") == "a b");
  CHECK(ringsim::trimmed("a") == "a");
  CHECK(ringsim::trimmed(" \t\r").empty());
  CHECK(ringsim::trimmed("").empty());
}

}  // namespace plain_text_test
