// A partition of a program's actors, which a run splits where it proves wrong.
#include "sim/program/alike_actors.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace alike_actors_test {

using namespace ringsim;
using namespace std::chrono_literals;

namespace {

/// Two roles of four ranks each, and a kernel in each.
Program two_roles() {
  Program program{.name = "two", .ranks = 8, .actors = 8};
  program.streams = {Program::StreamKind::compute};
  program.roles.resize(2);
  for (Program::Role& role : program.roles) role.streams = {{{.name = "kernel", .time = 1us}}};
  program.role_of = {0, 0, 0, 0, 1, 1, 1, 1};
  return program;
}

SimTime at(Picoseconds time) { return SimTime{time}; }

}  // namespace

TEST_CASE("the first actor of a role stands for it") {
  const AlikeActors alike(two_roles());
  CHECK(alike.stand_ins() == std::vector<Actor>{0, 0, 0, 0, 4, 4, 4, 4});
  CHECK(alike.n_classes() == 2);
}

TEST_CASE("each actor stands for itself if more than its role tells what it does") {
  const auto expect_alone = [](const Program& program) {
    const AlikeActors alike(program);
    CHECK(alike.stand_ins().empty());
    CHECK(alike.n_classes() == 0);
    CHECK(alike.stand_in(3) == 3);
  };
  Program program = two_roles();
  program.time = [](Actor actor, Stream, int, int) { return Picoseconds{actor}; };
  expect_alone(program);
  program = two_roles();
  program.process_of = {0, 0, 1, 1, 2, 2, 3, 3};
  expect_alone(program);
  program = two_roles();
  program.roles[1].streams[0][0].unit = 0;
  expect_alone(program);
  program = two_roles();
  program.roles[0].streams[0][0].after.push_back({.stream = 0, .tasks = 0, .back = 0, .actor = 1});
  expect_alone(program);
  program = two_roles();
  program.role_of = {0, 1, 2, 3, 4, 5, 6, 6};  // seven classes of eight actors are not worth it
  program.roles.resize(7, program.roles.front());
  expect_alone(program);
}

TEST_CASE("a class is split by when a call ends at its members; other classes stay as they are") {
  AlikeActors alike(two_roles());
  alike.split({0, 1, 2, 3}, {at(5ns), at(7ns), at(7ns), at(5ns)});
  CHECK(alike.stand_ins() == std::vector<Actor>{0, 1, 1, 0, 4, 4, 4, 4});
  CHECK(alike.n_classes() == 3);
}

TEST_CASE("members in any order: the first actor stands for the others") {
  AlikeActors alike(two_roles());
  alike.split({3, 2, 1, 0}, {at(5ns), at(7ns), at(7ns), at(5ns)});
  CHECK(alike.stand_ins() == std::vector<Actor>{0, 1, 1, 0, 4, 4, 4, 4});
}

TEST_CASE("ends that rounding alone keeps apart do not split a class") {
  CHECK(AlikeActors::are_one(at(Picoseconds{1000}), at(Picoseconds{1002})));
  CHECK(AlikeActors::are_one(at(Picoseconds{1002}), at(Picoseconds{1000})));
  CHECK_FALSE(AlikeActors::are_one(at(Picoseconds{1000}), at(Picoseconds{1003})));
  CHECK_FALSE(AlikeActors::are_one(at(Picoseconds{1003}), at(Picoseconds{1000})));
  AlikeActors alike(two_roles());
  alike.split({0, 1, 2, 3},
              {at(Picoseconds{5000}), at(Picoseconds{5002}), at(Picoseconds{5001}), at(Picoseconds{7000})});
  CHECK(alike.stand_ins() == std::vector<Actor>{0, 0, 0, 3, 4, 4, 4, 4});
}

TEST_CASE("a program whose classes fall apart is run with all of its actors") {
  AlikeActors alike(two_roles());
  alike.split({0, 1, 2, 3}, {at(1ns), at(2ns), at(3ns), at(4ns)});
  CHECK(alike.stand_ins().empty());  // five classes of eight actors
}

}  // namespace alike_actors_test
