#include "tools/reports/run_what_ifs.hpp"

#include <cstddef>
#include <utility>

#include "tools/memory.hpp"
#include "tools/output/progress_line.hpp"
#include "tools/stop.hpp"
#include "tools/sweep/workers.hpp"

namespace ringsim::tools {

namespace {

void run_one(const PointToChange& point, WhatIf& what_if) {
  stop_if_asked();
  run_what_if(what_if, point.input.text, point.input.name, point.set, point.scenario, point.result,
              {.stop = &stop_requested, .max_memory = memory_limit()});
}

void run_all(const PointToChange& point, std::vector<WhatIf>& what_ifs) {
  ProgressLine progress(what_ifs.size());
  progress.now("running again with changes");
  for_each_index(what_ifs.size(), point.jobs, [&](std::size_t i) {
    run_one(point, what_ifs[i]);
    progress.add(1.0);
    return true;
  });
}

}  // namespace

std::vector<WhatIf> run_what_ifs(const PointToChange& point, const std::vector<std::string>& own) {
  std::vector<WhatIf> what_ifs = what_ifs_of(point.scenario, point.result);
  for (const std::string& change : own) what_ifs.push_back({.of = WhatIf::Of::own, .label = change, .set = {change}});
  run_all(point, what_ifs);
  std::vector<WhatIf> pairs = pairs_of(point.result, what_ifs);
  run_all(point, pairs);
  for (WhatIf& pair : pairs) what_ifs.push_back(std::move(pair));
  ProgressLine progress(1);
  progress.now("looking for links that together limit the run");
  if (auto series = series_of(point.result, what_ifs, [&](WhatIf& each) { run_one(point, each); }))
    what_ifs.push_back(std::move(*series));
  return what_ifs;
}

}  // namespace ringsim::tools
