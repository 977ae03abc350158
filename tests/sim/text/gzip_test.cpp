// Unpacking gzip, whole and damaged.
#include "sim/text/gzip.hpp"

#include <doctest/doctest.h>

#include <random>
#include <string>

#include "sim/base/error.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/packed.hpp"

namespace gzip_test {

using namespace ringsim;
using test::packed;

namespace {

/// Unpacked in pieces of so many bytes.
std::string unpacked(const std::string& file, std::size_t piece) {
  std::string text;
  Gunzip gunzip("x.gz");
  for (std::size_t at = 0; at < file.size(); at += piece) gunzip.feed(std::string_view(file).substr(at, piece), text);
  gunzip.end();
  return text;
}

}  // namespace

TEST_CASE("gzip is unpacked in pieces of any size: one member, several, empty ones, zeros after them") {
  std::string text;
  for (int i = 0; i < 40000; ++i) text += "line " + std::to_string(i) + "\n";  // more than a block of output
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{1} << 16}) {
    CAPTURE(piece);
    CHECK(unpacked(packed(text), piece) == text);
    CHECK(unpacked(packed("one\n") + packed("two\n") + std::string(600, '\0'), piece) == "one\ntwo\n");
    CHECK(unpacked(packed(""), piece) == "");
  }
  CHECK(is_gzip(packed("a")));
  CHECK(!is_gzip("{\"version\": 1}"));
  CHECK(!is_gzip(""));
}

TEST_CASE("damaged gzip is refused: cut anywhere, a byte changed, other bytes after it") {
  const std::string file = packed("a text that is long enough to be packed, packed, packed");
  for (std::size_t size = 1; size < file.size(); ++size) {
    CAPTURE(size);
    CHECK(test::complaint([&] { unpacked(file.substr(0, size), 4); }) ==
          "x.gz: expected a complete gzip file, found a truncated one\n  hint: it is truncated; copy it again");
  }
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    // After the ten bytes of the header, which do not depend on the text.
    std::string other = file;
    const std::size_t at = 10 + random() % (file.size() - 10);
    other[at] = static_cast<char>(other[at] ^ static_cast<char>(1 + random() % 255));
    CAPTURE(at);
    CHECK(test::complaint([&] { unpacked(other, 1000); }).starts_with("x.gz: expected a "));
  }
  CHECK(test::complaint([&] { unpacked(file + "x", 1000); }) != "");
}

}  // namespace gzip_test
