// Secrets of replays over several machines, and lines from peers that may say anything.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <string>

#include "sim/base/error.hpp"
#include "tests/support/command.hpp"
#include "tests/support/complaint.hpp"
#include "validate/replay/tcp/hosts.hpp"
#include "validate/replay/tcp/lines.hpp"
#include "validate/replay/tcp/secret.hpp"

namespace tcp_secret_test {

using namespace ringsim::replay;
using ringsim::test::complaint;
using ringsim::test::temporary_file;

namespace {

std::string secret_file(const std::string& text, mode_t mode = 0600) {
  const std::string path = temporary_file("secret", text);
  REQUIRE(chmod(path.c_str(), mode) == 0);
  return path;
}

std::string refusal_of_secret(const std::string& path) {
  const std::string text = complaint([&] { Secret::from_file(path); });
  return text.starts_with(path) ? text.substr(path.size()) : text;
}

/// What a reader of lines says of a line; empty: it takes it.
template <class Read>
std::string bad(const std::string& text, Read read) {
  try {
    read(parse_line(text));
  } catch (const BadLine& error) {
    return error.what();
  }
  return "";
}
std::string bad_line(const std::string& text) {
  return bad(text, [](const LineJson&) {});
}

}  // namespace

TEST_CASE("a proof is HMAC-SHA-256 over its words, each with its length") {
  // Of Python: hmac.new(b"Jefe", b"4:what\n2:do\n", "sha256").hexdigest()
  CHECK(Secret("Jefe").proof({"what", "do"}) == "573dd2b7b22482b5728d9476384d4124678ee15568eb58a13adbea1f55161880");
  CHECK(Secret("Jefe").proof({"wha", "tdo"}) != Secret("Jefe").proof({"what", "do"}));
  CHECK(Secret("Jeff").proof({"what", "do"}) != Secret("Jefe").proof({"what", "do"}));
}

TEST_CASE("proofs are the same in all digits or not at all") {
  CHECK(same_proof("abcd", "abcd"));
  for (const char* other : {"bbcd", "abce", "abc", "abcde", ""}) {
    CAPTURE(other);
    CHECK_FALSE(same_proof("abcd", other));
  }
}

TEST_CASE("what is drawn at random is new each time, and 64 digits") {
  const std::string a = random_digits(), b = random_digits();
  CHECK(a.size() == 64);
  CHECK(a.find_first_not_of("0123456789abcdef") == std::string::npos);
  CHECK(a != b);
  CHECK(Secret::random().proof({}) != Secret::random().proof({}));
}

TEST_CASE("a secret is a file's contents without its line end, and only its owner's") {
  const std::string text(16, 's');
  CHECK(Secret::from_file(secret_file(text + "\r\n")).proof({}) == Secret(text).proof({}));
  CHECK(Secret::from_file(secret_file(std::string(4096, 's'))).proof({}) == Secret(std::string(4096, 's')).proof({}));
  CHECK(refusal_of_secret("/no/such/secret") == ": cannot be read: No such file or directory");
  CHECK(refusal_of_secret("/") == ": cannot be read: Is a directory");
  const auto hint = [](const std::string& path) { return "\n  hint: openssl rand -hex 32 > " + path; };
  const std::string few = secret_file("fifteen bytes..\n"), many = secret_file(std::string(4097, 's'));
  CHECK(refusal_of_secret(few) == ": expected a secret of 16 to 4096 bytes, found 15" + hint(few));
  CHECK(refusal_of_secret(many) == ": expected a secret of 16 to 4096 bytes, found more" + hint(many));
  const std::string blanks = secret_file(std::string(20, ' ') + "\t\n");
  CHECK(refusal_of_secret(blanks) == ": expected a secret, found only whitespace" + hint(blanks));
  const std::string open = secret_file(text, 0644);
  CHECK(refusal_of_secret(open) ==
        ": expected a secret that only its owner can read, found mode 644\n  hint: chmod 600 " + open);
}

TEST_CASE("a line is an object whose members are no deeper than a list") {
  CHECK(bad_line(R"({"a": [1, "b"], "c": null})") == "");
  const std::string object = "expected a line with an object of JSON",
                    deep = "expected a line of JSON without lists in lists";
  for (const char* text : {"", "1", "[]", "{", "nonsense", "\"a\"", "{\"a\": \xff}", R"({"a": 1} 2)"}) {
    CAPTURE(text);
    CHECK(bad_line(text) == object);
  }
  for (const char* text : {R"({"a": [[]]})", R"({"a": {"b": {}}})", R"({"a": [{}]})"}) {
    CAPTURE(text);
    CHECK(bad_line(text) == deep);
  }
  // As deep as a line may be long: no recursion may follow it.
  CHECK(bad_line("{\"a\":" + std::string(65000, '[')) == deep);
}

TEST_CASE("members of a line have the type, the bounds and the name that are expected") {
  const auto whole = [](const std::string& value) {
    return bad("{\"n\": " + value + "}", [](const LineJson& line) { line_whole(line, "n", -1, 7); });
  };
  CHECK(whole("-1") == "");
  CHECK(whole("7") == "");
  for (const char* value : {"-2", "8", "1.0", "1e0", "\"1\"", "null", "[]", "{}", "true", "9223372036854775808",
                            "18446744073709551615", "-9223372036854775808", "1e999"}) {
    CAPTURE(value);
    CHECK(whole(value) != "");
  }
  CHECK(whole("8") == "expected a whole number from -1 to 7 as \"n\"");
  const auto wholes = [](const std::string& value) {
    return bad("{\"n\": " + value + "}", [](const LineJson& line) { line_wholes(line, "n", 0, 9, 2); });
  };
  CHECK(wholes("[]") == "");
  CHECK(wholes("[1, 9]") == "");
  CHECK(wholes("[1, 10]") == "expected a whole number from 0 to 9 as \"n\"");
  CHECK(wholes("[1, 2, 3]") == "expected a list of at most 2 as \"n\"");
  CHECK(wholes("{}") == "expected a list of at most 2 as \"n\"");
  const auto texts = [](const std::string& value) {
    return bad("{\"n\": " + value + "}", [](const LineJson& line) { line_texts(line, "n", 3, 2); });
  };
  CHECK(texts(R"(["abc", ""])") == "");
  CHECK(texts(R"(["abcd"])") == "expected a text of at most 3 bytes as \"n\"");
  CHECK(texts("[1]") == "expected a text of at most 3 bytes as \"n\"");
  const auto digits = [](const std::string& value) {
    return bad("{\"n\": \"" + value + "\"}", [](const LineJson& line) { line_digits(line, "n"); });
  };
  CHECK(digits(std::string(64, 'f')) == "");
  CHECK(digits(std::string(63, 'f')) == "expected 64 hexadecimal digits as \"n\"");
  CHECK(digits(std::string(64, 'F')) == "expected 64 hexadecimal digits as \"n\"");
  CHECK(bad("{}", [](const LineJson& line) { line_text(line, "n", 1); }) == "expected a line with \"n\"");
  CHECK(bad(R"({"a": 1, "b": 2})", [](const LineJson& line) {
          expect_members(line, {"a", "c"});
        }) == "expected a line with \"a\", \"c\" only");
}

TEST_CASE("a text from a peer has no lines of its own but indented ones") {
  const auto text = [](const std::string& json) {
    return line_text(parse_line("{\"t\": \"" + json + "\"}"), "t", 100);
  };
  CHECK(text(R"(lost\n  hint: start again)") == "lost\n  hint: start again");
  CHECK(text(R"(lost\nringsim: all is well\r\n\r)") == "lost ringsim: all is well   ");
}

TEST_CASE("a file of hosts has addresses that others can reach, and is not endless") {
  const auto refusal = [&](const std::string& text) {
    const std::string path = temporary_file("hosts", text);
    return complaint([&] { read_hosts(path); }).substr(path.size());
  };
  const std::string hint = "\n  hint: use the address of one of its adapters";
  const std::string expected = ":1: expected an address at which others can reach the process, found ";
  CHECK(refusal("0.0.0.0:7117\n10.0.0.2\n") ==
        expected + "0.0.0.0, which stands for all addresses of a machine" + hint);
  CHECK(refusal("[::]:7117\n10.0.0.2\n") == expected + "::, which stands for all addresses of a machine" + hint);
  CHECK(refusal("[::ffff:0.0.0.0]:7117\n10.0.0.2\n") ==
        expected + "::ffff:0.0.0.0, which stands for all addresses of a machine" + hint);
  CHECK(refusal("224.0.0.1:7117\n10.0.0.2\n") == expected + "224.0.0.1, which is a multicast address" + hint);
  CHECK(refusal("[ff02::1]:7117\n10.0.0.2\n") == expected + "ff02::1, which is a multicast address" + hint);
  CHECK(refusal("255.255.255.255:7117\n10.0.0.2\n") ==
        expected + "255.255.255.255, which is a broadcast address" + hint);
  CHECK(refusal("10.0.0.1:7117\n239.1.1.1\n") ==
        ":2: expected an address at which others can reach the process, found 239.1.1.1, which is a multicast address" +
            hint);
  CHECK(complaint([] {
          own_address({.hosts = {"0", "10.0.0.2"}, .port = 1, .file = "hosts"}, 0);
        }) ==
        "expected a host that others can reach, found \"0\", 0.0.0.0, which stands for all addresses of a machine");
  CHECK(complaint([] { read_hosts("/dev/zero"); }) ==
        "/dev/zero: expected a file of hosts of at most 1 MiB, found a larger one");
}

TEST_CASE("hosts may be IPv6 addresses, the first in brackets") {
  const TcpHosts hosts = read_hosts(temporary_file("hosts", "[fd00::1]:7117\nfd00::2\n[fd00::3]  # the third\n"));
  CHECK(hosts.hosts == std::vector<std::string>{"fd00::1", "fd00::2", "fd00::3"});
  CHECK(hosts.port == 7117);
  for (const char* text : {"fd00::1:7117\n", "[fd00::1]\n", "[fd00::1:7117\n", "[]:7117\n", ":7117\n",
                           "[fd00::1]:7117\nfd00::2]\n", "[fd00::1]:7117\nfd00:::2\n", "a:1\nb:2\n"}) {
    CAPTURE(text);
    CHECK(complaint([&] { read_hosts(temporary_file("hosts", text)); }) != "");
  }
}

TEST_CASE("a process has the address of its own line, which others have to reach") {
  CHECK(own_address({.hosts = {"127.0.0.1", "127.0.0.2"}, .port = 1, .file = "hosts"}, 1) == "127.0.0.2");
  CHECK(own_address({.hosts = {"10.0.0.1", "10.0.0.2"}, .port = 1, .file = "hosts"}, 1) == "10.0.0.2");
  CHECK(own_address({.hosts = {"::1", "::1"}, .port = 1, .file = "hosts"}, 0) == "::1");
  // As Debian's /etc/hosts has a machine's own name.
  CHECK(complaint([] {
          own_address({.hosts = {"10.0.0.1", "127.0.1.1"}, .port = 1, .file = "hosts"}, 1);
        }) ==
        "hosts: expected addresses at which others can reach each process, found 127.0.1.1 for process 1 "
        "(\"127.0.1.1\"), which only this machine can reach\n  hint: use its address instead of its name");
}

}  // namespace tcp_secret_test
