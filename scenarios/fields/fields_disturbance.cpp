// What disturbs a run, as fields: faults of links, delays of ranks, the traffic of others, other collectives.
#include <utility>

#include "scenarios/fields/fields.hpp"
#include "scenarios/scenario.hpp"

namespace ringsim::scenarios {

namespace {

Field time_field(std::string name, std::string doc, std::string fallback = {}) {
  return {.name = std::move(name),
          .type = Type::time,
          .doc = std::move(doc),
          .fallback = std::move(fallback),
          .examples = {R"("3 ms")"}};
}

Field required(Field field) {
  field.required = true;
  return field;
}

Field into(Member member, Field field) {
  field.into = std::move(member);
  return field;
}

using Message = Disturbance::Background;

template <class Value>
Member of_message(Value Message::*member) {
  return Member::through<BackgroundSpec>([member](BackgroundSpec& to) -> Value& { return to.message.*member; });
}

Field name_field(std::string name, std::string doc, std::string example) {
  return {.name = std::move(name),
          .type = Type::text,
          .doc = std::move(doc),
          .required = true,
          .min = 1,
          .examples = {std::move(example)}};
}

Field rank_field() {
  return {.name = "rank",
          .type = Type::whole,
          .doc = "Which rank.",
          .required = true,
          .max = most_ranks - 1,
          .examples = {"3"}};
}

Field job_field() {
  return {.name = "job",
          .type = Type::text,
          .doc = "Of which collective: main, or the name of one of the jobs.",
          .fallback = "main",
          .min = 1,
          .examples = {R"("main")"}};
}

Field list_of(std::string name, std::string doc, Field member, std::string example) {
  return {.name = std::move(name),
          .type = Type::list,
          .doc = std::move(doc),
          .examples = {std::move(example)},
          .members = {std::move(member)}};
}

}  // namespace

Field faults_field() {
  const Field fault{
      .name = "fault",
      .type = Type::object,
      .doc = "A link that has less bandwidth, is down, or is restored.",
      .members = {
          name_field("link", "FROM -> TO, one direction; or a node's name: all links from and to it.",
                     R"("node1.nic0")"),
          {.name = "bandwidth",
           .type = Type::portion,
           .doc = "From then on: a share of what the link has without faults, or a rate.",
           .examples = {R"("25%")"}},
          {.name = "state",
           .type = Type::text,
           .doc = "down: nothing uses the link, and messages on it take another path; restored: as at the start.",
           .choices = {"down", "restored"}},
          time_field("at", "When.", "0 us"),
          time_field("until", "When the link is restored; default: never.")}};
  return list_of("faults", "Faults of links; of several faults of one link the latest counts.", fault,
                 R"([{"link": "node1.nic0", "bandwidth": "25%", "at": "3 ms"}])");
}

Field disturbance_field() {
  const Field late{
      .name = "late_rank",
      .type = Type::object,
      .doc = "A rank that begins late.",
      .members = {rank_field(), required(time_field("by", "It begins no earlier than that.")), job_field()}};
  const Field slow{
      .name = "slow_rank",
      .type = Type::object,
      .doc = "A rank that is slow.",
      .members = {rank_field(), required(time_field("step_delay", "The delay of each of its steps.")), job_field()}};
  const Field jitter{.name = "jitter",
                     .type = Type::object,
                     .doc = "Each step of each rank begins later by a time drawn uniformly from 0 to `most`.",
                     .members = {required(into(&Disturbance::Jitter::most, time_field("most", "The longest."))),
                                 {.name = "seed",
                                  .type = Type::whole,
                                  .doc = "Of the draws.",
                                  .fallback = "0",
                                  .into = &Disturbance::Jitter::seed}}};
  const Field message{
      .name = "message",
      .type = Type::object,
      .doc = "Messages that share the links without being part of the collective.",
      .members = {
          into(&BackgroundSpec::from, name_field("from", "The gpu that sends.", R"("node0.gpu0")")),
          into(&BackgroundSpec::to, name_field("to", "The gpu that receives.", R"("node1.gpu0")")),
          {.name = "bytes",
           .type = Type::size,
           .doc = "Of each message.",
           .required = true,
           .min = 1,
           .examples = {R"("1 GiB")"},
           .into = of_message(&Message::bytes)},
          into(of_message(&Message::start), time_field("start", "When the first one starts.", "0 us")),
          into(of_message(&Message::every),
               time_field("every", "Time between the starts of two; default: each when the one before is delivered.")),
          into(of_message(&Message::until),
               time_field("until", "No message starts later than this; default: until the collective is done."))}};
  return {.name = "disturbance",
          .type = Type::object,
          .doc = "What else delays the collective.",
          .members = {
              list_of("late", "Ranks that begin late.", late, R"([{"rank": 3, "by": "1 ms"}])"),
              list_of("slow", "Ranks whose every step begins late.", slow, R"([{"rank": 3, "step_delay": "5 us"}])"),
              jitter,
              list_of("background", "The traffic of others.", message,
                      R"([{"from": "node0.gpu0", "to": "node1.gpu0", "bytes": "1 GiB"}])")}};
}

Field jobs_field(Field collective, Field training) {
  collective.doc = "What its GPUs do.";
  training.doc = "What its GPUs train, on GPUs (\"ranks\") that no other job trains on; instead of `collective`.";
  const Field job{
      .name = "job",
      .type = Type::object,
      .doc = "Another collective at the same time, or after others, or another training step.",
      .members = {name_field("name", "Its name in results.", R"("second")"),
                  std::move(collective),
                  std::move(training),
                  time_field("start", "When its ranks begin; its time counts from then.", "0 us"),
                  {.name = "after",
                   .type = Type::list,
                   .doc = "main, or earlier jobs: a GPU begins when it is done with them, as in a CUDA "
                          "stream; the job's time counts from the first GPU that begins. One more result, of the job "
                          "\"all\", has the time of all together.",
                   .min = 1,
                   .examples = {R"(["main"])"},
                   .members = {{.name = "job", .type = Type::text, .doc = "Its name.", .min = 1, .varies = false}},
                   .unique = true}}};
  return list_of("jobs", "Other collectives and training steps on the same links, each with a result of its own.", job,
                 R"([{"name": "second", "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "64 MiB"}}])");
}

}  // namespace ringsim::scenarios
