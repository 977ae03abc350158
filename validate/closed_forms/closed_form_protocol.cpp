// The closed forms under a protocol with slots (sim/run/protocol.hpp).
#include <fmt/format.h>

#include "algorithms/composed/channels.hpp"
#include "sim/base/error.hpp"
#include "validate/closed_forms/forms.hpp"

namespace ringsim {

using namespace forms;

namespace {

/// Every message that fills several slots may go in as many parts, each rounded, and one for what needs none.
void round_parts(ClosedForm& form, Bytes on_wire, const Protocol& protocol) {
  if (protocol.slots_of(on_wire) > 1) form.steps *= protocol.slots + 1;
}

/// The ring: every rank hears from one and speaks to one, over links that are their own, and both in every step.
///
/// S = a + e + x/b, x the bytes on the wire of the longest chunk. No rank ends its i-th step later than i S: by
/// induction all have begun it by (i-1) S, so that its message flows from then on at the latest, with slots or without
/// need of any. And none can end earlier than one chunk takes: what a rank receives in one step it sends on in the
/// next, so that the longest chunk goes through all steps, S each.
ClosedForm ring(const CollectiveRequest& request, const Uniform& machine, const Protocol& protocol) {
  const bool both = request.op == CollectiveOp::all_reduce;
  ClosedForm form{.formula = both ? "2(K-1)(a + e + w p/(K b))" : "(K-1)(a + e + w p/(K b))"};
  const Bytes x = protocol.on_wire({ceil_div(request.bytes.count, request.ranks)});
  Sum{machine, form}.steps((both ? 2L : 1L) * (request.ranks - 1), x.count);
  round_parts(form, x, protocol);
  return form;
}

/// The pipelined chain of s segments, S as above: the root's port sends without a pause, s x/b, and the last segment
/// takes K-2 hops more. Each rank begins to receive a segment when the one before it is there, a + e after the message
/// has left, so that the slots must hold what is sent in that time: ceil((a + e) b/x) messages.
ClosedForm chain(std::int64_t segments, const CollectiveRequest& request, const Uniform& machine,
                 const Protocol& protocol) {
  ClosedForm form{.formula = "(K-1)(a + e) + (K-2+s) w p/(s b)"};
  const std::int64_t p = request.bytes.count, hops = request.ranks - 1;
  const Bytes low = protocol.on_wire({p / segments}), high = protocol.on_wire({ceil_div(p, segments)});
  Sum{machine, form}.steps(hops, low.count, high.count);
  Sum{{machine.shape, machine.b, Picoseconds{0}}, form}.steps(segments - 1, low.count, high.count);
  round_parts(form, high, protocol);
  const std::int64_t time = transfer_time(low, machine.b).count();
  const std::int64_t ahead =
      time == 0 ? segments : std::min(segments, std::max<std::int64_t>(1, ceil_div(machine.a.count(), time)));
  const bool all_fit = ahead * protocol.slots_of(high) <= protocol.slots;
  if (!all_fit && (ahead > 1 || transfer_time(protocol.slot * protocol.slots, machine.b) < machine.a))
    form.because.emplace_back("the slots hold fewer bytes than are sent while a message is in flight");
  return form;
}

}  // namespace

void assume_protocol(ClosedForm& form, const Algorithm& algorithm, const Arguments& arguments,
                     const CollectiveRequest& request, const Uniform& machine, const Protocol& protocol) {
  if (request.ranks == 1 || protocol.slots == 0) return;
  const bool is_whole = algorithm.name == "ring" && arguments.file == nullptr &&
                        number(algorithm, arguments, "rings") <= 1 && number(algorithm, arguments, "slices") <= 1 &&
                        pieces_of(request.bytes, request.channels, request.chunk).count() == 1;
  if (!is_whole) {
    form.because.push_back(fmt::format("the form is for protocol none, but the protocol is {}", protocol.name));
    return;
  }
  Uniform slower = machine;
  if (machine.type) slower.a = add(machine.a, protocol.latency(*machine.type));
  const std::int64_t segments = number(algorithm, arguments, "segments");
  ClosedForm made = request.op == CollectiveOp::broadcast
                        ? chain(segments > 0 ? segments : request.ranks, request, slower, protocol)
                        : ring(request, slower, protocol);
  if (!machine.type && protocol.latency(PathType::nvl) != protocol.latency(PathType::dir))
    made.because.emplace_back("the paths between ranks have several types with different latencies");
  made.because.insert(made.because.begin(), form.because.begin(), form.because.end());
  form = std::move(made);
}

}  // namespace ringsim
