#include "tools/traces/recording.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "tools/exit.hpp"
#include "tools/output/output.hpp"
#include "tools/pictures/picture_file.hpp"
#include "tools/pictures/streams_svg.hpp"
#include "tools/traces/trace_file.hpp"
#include "validate/results/results.hpp"

namespace ringsim::tools {

void declare_recording(Options& options, RecordingArguments& arguments) {
  options.file("--trace", "FILE", arguments.trace,
               "write a timeline for viewers such as ui.perfetto.dev: *.json, *.json.gz or *.pftrace");
  const auto needing = [](Option& option, const char* needed) -> Option& {
    option.needs = needed;
    return option;
  };
  Option& rank = needing(options.read(
                             "--trace-rank", "RANK",
                             [&arguments](const std::string& text) {
                               Actor value = 0;
                               const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
                               if (error != std::errc() || end != text.data() + text.size() || value < 0)
                                 throw InputError("", fmt::format("expected a rank of at least 0, found \"{}\"", text));
                               arguments.filter.ranks.push_back(value);
                             },
                             "trace only the messages from or to this rank, and its computations"),
                         "--trace");
  rank.repeats = true;
  needing(options.texts("--trace-link", "LINK", arguments.filter.links,
                        "trace only messages over this link, \"FROM -> TO\", or over any link of this node"),
          "--trace");
  const auto moment = [&](const char* name, SimTime& target, const char* help) {
    needing(options.read(
                name, "TIME", [&target](const std::string& text) { target = SimTime{parse_time(text)}; }, help),
            "--trace");
  };
  moment("--trace-from", arguments.filter.begin, "trace only events that end at this time of the run or later");
  moment("--trace-to", arguments.filter.end, "trace only events that start at this time of the run or earlier");
  options.file("--utilization", "FILE", arguments.utilization, "write the data carried by each link over time (CSV)");
  needing(options.read(
              "--utilization-step", "TIME",
              [&arguments](const std::string& text) {
                arguments.utilization_step = parse_time(text);
                if (arguments.utilization_step <= Picoseconds{0})
                  throw InputError("", fmt::format("expected a time above 0, found \"{}\"", text));
              },
              "the interval of --utilization; by default, a round value that gives at most 200 intervals"),
          "--utilization");
  options.replaced("--utilisation", "--utilization");
  options.replaced("--utilisation-step", "--utilization-step");
  options
      .file("--picture", "FILE", arguments.picture,
            "draw the streams of the last training step to FILE.svg or FILE.png")
      .take = [&arguments](const std::string& path) {
    expect_picture_name(path);
    arguments.picture = path;
  };
}

std::optional<Recording> recording_of(const RecordingArguments& arguments,
                                      const std::vector<std::string>& other_files) {
  if (!arguments.is_asked()) return std::nullopt;
  if (!arguments.trace.empty()) trace_format_of(arguments.trace);
  if (arguments.utilization == "-")
    throw UsageError("--utilization", "expected a separate file, found -, which receives the results");
  if (arguments.filter.begin > arguments.filter.end)
    throw UsageError("--trace-to", fmt::format("expected a time after --trace-from ({}), found {}",
                                               format(arguments.filter.begin.time_since_epoch()),
                                               format(arguments.filter.end.time_since_epoch())));
  for (const std::string& other : other_files) {
    refuse_as_output(other, arguments.trace);
    refuse_as_output(other, arguments.utilization);
    refuse_as_output(other, arguments.picture);
  }
  refuse_as_output(arguments.trace, arguments.utilization);
  for (const std::string& file : {arguments.trace, arguments.utilization}) refuse_as_output(file, arguments.picture);
  for (const std::string& file : {arguments.trace, arguments.utilization, arguments.picture})
    if (is_plain_file(file)) const Output probe(file);  // so that no run starts in vain
  Recording recording;
  if (!arguments.trace.empty()) recording.filter = arguments.filter;
  if (!arguments.trace.empty() || !arguments.utilization.empty()) recording.use_step = arguments.utilization_step;
  recording.keep_streams = !arguments.picture.empty();
  return recording;
}

void write_recording(const RecordingArguments& arguments, const Recording& recording, const std::string& name) {
  if (!arguments.picture.empty()) {
    if (recording.streams.empty()) {
      warn(arguments.picture + ": not drawn because no part of the step takes time");
    } else {
      write_picture(arguments.picture,
                    streams_svg(recording.streams, name.empty() ? "the last step" : name + ": the last step",
                                /*alone=*/true));
    }
  }
  if (!arguments.trace.empty()) {
    write_trace(recording.trace, arguments.trace);
    if (!recording.trace.left_out.empty()) warn(arguments.trace + ": " + recording.trace.left_out);
    if (recording.trace.slices.empty()) warn(arguments.trace + ": the selected part of the run is empty");
  }
  if (arguments.utilization.empty()) return;
  Output output(arguments.utilization);
  output.write("link,kind,begin_us,end_us,bytes,utilisation\n");
  for (const Recording::Use& use : recording.use)
    for (std::size_t step = 0; step < use.bytes.size(); ++step) {
      const Picoseconds begin = static_cast<std::int64_t>(step) * recording.step;
      const Picoseconds end = std::min(begin + recording.step, recording.finish.time_since_epoch());
      output.write(
          csv_line({use.link, use.kind, fmt::format("{}", microseconds(begin)), fmt::format("{}", microseconds(end)),
                    fmt::format("{}", use.bytes[step]), fmt::format("{:.6g}", utilization(recording, use, step))}));
    }
  output.finish();
}

}  // namespace ringsim::tools
