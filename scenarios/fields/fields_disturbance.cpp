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
          .doc = "The number of the rank.",
          .required = true,
          .max = most_ranks - 1,
          .examples = {"3"}};
}

Field job_field() {
  return {.name = "job",
          .type = Type::text,
          .doc = "The collective: main, or the name of a job.",
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
      .doc = "A link that loses bandwidth, goes down, or is restored.",
      .members = {
          name_field("link",
                     "The link: FROM -> TO for one direction, or a node name for all links from and to that node.",
                     R"("node1.nic0")"),
          {.name = "bandwidth",
           .type = Type::portion,
           .doc = "The bandwidth from then on: a rate, or a share of the bandwidth without faults.",
           .examples = {R"("25%")"}},
          {.name = "state",
           .type = Type::text,
           .doc = "down: the link is unusable, and its messages take another path; restored: the link works as at the "
                  "start.",
           .choices = {"down", "restored"}},
          time_field("at", "The time of the change.", "0 us"),
          time_field("until", "The time at which the link is restored. Default: never.")}};
  return list_of("faults", "Link faults. If several apply to a link, the latest one takes effect.", fault,
                 R"([{"link": "node1.nic0", "bandwidth": "25%", "at": "3 ms"}])");
}

Field disturbance_field() {
  const Field late{.name = "late_rank",
                   .type = Type::object,
                   .doc = "A rank that starts late.",
                   .members = {rank_field(), required(time_field("by", "The earliest time at which the rank starts.")),
                               job_field()}};
  const Field slow{
      .name = "slow_rank",
      .type = Type::object,
      .doc = "A slow rank.",
      .members = {rank_field(), required(time_field("step_delay", "The delay before each step of the rank.")),
                  job_field()}};
  const Field jitter{
      .name = "jitter",
      .type = Type::object,
      .doc = "Delays each step of each rank by a random time, uniformly distributed between 0 and `most`.",
      .members = {required(into(&Disturbance::Jitter::most, time_field("most", "The longest delay."))),
                  {.name = "seed",
                   .type = Type::whole,
                   .doc = "Random seed of the delays.",
                   .fallback = "0",
                   .into = &Disturbance::Jitter::seed}}};
  const Field message{
      .name = "message",
      .type = Type::object,
      .doc = "Messages of other traffic that use the same links.",
      .members = {
          into(&BackgroundSpec::from, name_field("from", "The sending GPU.", R"("node0.gpu0")")),
          into(&BackgroundSpec::to, name_field("to", "The receiving GPU.", R"("node1.gpu0")")),
          {.name = "bytes",
           .type = Type::size,
           .doc = "The size of each message.",
           .required = true,
           .min = 1,
           .examples = {R"("1 GiB")"},
           .into = of_message(&Message::bytes)},
          into(of_message(&Message::start), time_field("start", "The start time of the first message.", "0 us")),
          into(of_message(&Message::every), time_field("every",
                                                       "The time between the starts of two messages. Default: each "
                                                       "message starts when the previous one is delivered.")),
          into(of_message(&Message::until),
               time_field(
                   "until",
                   "No message starts after this time. Default: messages keep starting until the collective ends."))}};
  return {
      .name = "disturbance",
      .type = Type::object,
      .doc = "Other disturbances that delay the collective.",
      .members = {list_of("late", "Ranks that start late.", late, R"([{"rank": 3, "by": "1 ms"}])"),
                  list_of("slow", "Ranks that start every step late.", slow, R"([{"rank": 3, "step_delay": "5 us"}])"),
                  jitter,
                  list_of("background", "Background traffic.", message,
                          R"([{"from": "node0.gpu0", "to": "node1.gpu0", "bytes": "1 GiB"}])")}};
}

Field jobs_field(Field collective, Field training) {
  collective.doc = "The collective that the job's GPUs run.";
  training.doc =
      "The training step that the job's GPUs run, instead of `collective`. No other job may train on these GPUs "
      "(\"ranks\").";
  const Field job{
      .name = "job",
      .type = Type::object,
      .doc = "Another collective, which runs at the same time or after others, or another training step.",
      .members = {
          name_field("name", "The name of the job in results.", R"("second")"),
          std::move(collective),
          std::move(training),
          time_field("start", "The time at which the job's ranks start. The time of the job is measured from here.",
                     "0 us"),
          {.name = "after",
           .type = Type::list,
           .doc = "The jobs to run after: main or earlier jobs. A GPU starts when it has finished all of them, as in a "
                  "CUDA stream, and the job's time is measured from the first GPU that starts. An additional result, "
                  "the job \"all\", has the total time.",
           .min = 1,
           .examples = {R"(["main"])"},
           .members = {{.name = "job", .type = Type::text, .doc = "The name of the job.", .min = 1, .varies = false}},
           .unique = true}}};
  return list_of("jobs", "Other collectives and training steps on the same links. Each has its own result.", job,
                 R"([{"name": "second", "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "64 MiB"}}])");
}

}  // namespace ringsim::scenarios
