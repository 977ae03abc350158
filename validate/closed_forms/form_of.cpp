#include "validate/closed_forms/form_of.hpp"

#include <string>
#include <utility>

#include "scenarios/predict/predict.hpp"
#include "validate/closed_forms/closed_form_training.hpp"

namespace ringsim {

namespace {

/// What no closed form accounts for.
std::vector<std::string> disturbances(const Scenario& scenario) {
  std::vector<std::string> because;
  if (!scenario.faults.empty()) because.emplace_back("links have faults");
  if (!scenario.late.empty() || !scenario.slow.empty() || scenario.jitter.most.count() > 0)
    because.emplace_back("ranks are late, slow or unsteady");
  if (!scenario.background.empty()) because.emplace_back("background messages share the links");
  if (has_rates(scenario)) because.emplace_back("devices have individual rates");
  if (scenario.jobs.size() > 1) because.emplace_back("other collectives run at the same time");
  if (scenario.main().groups.size() > 1) because.emplace_back("other groups run at the same time");
  return because;
}

}  // namespace

std::optional<ClosedForm> form_of(const Scenario& scenario, const Setup& setup, std::size_t j) {
  if (j > 0 && scenario.training_of(j) != nullptr) return std::nullopt;  // next to others none would hold
  if (scenario.training && j == 0) {
    std::optional<ClosedForm> form = training_form(scenario, setup);
    if (form)
      for (std::string& because : disturbances(scenario)) form->because.push_back(std::move(because));
    return form;
  }
  const PlacedCollective& placed = setup.collectives[j];
  const Job& job = placed.job;
  const LibraryRun* library = scenario.library_of(j);
  const Transport& transport = library == nullptr ? scenario.transport : library->call.transport;
  const Protocol& protocol = library == nullptr ? *scenario.protocol : *library->call.protocol;
  const Uniform machine = uniform_of(setup.topology, placed.ranks, placed.endpoints(), transport, setup.routing,
                                     grid_of(*job.algorithm, job.arguments, job.request));
  std::optional<ClosedForm> form = closed_form(*job.algorithm, job.arguments, job.request, machine);
  if (!form) return form;
  assume_protocol(*form, *job.algorithm, job.arguments, job.request, machine, protocol);
  assume_even_sizes(*form);
  if (moves_packets(scenario.model)) assume_packets(*form, scenario.packet);
  if (const Picoseconds launch = launch_of(scenario, j); launch.count() > 0 && job.request.ranks > 1) {
    form->formula = "t + " + form->formula;
    form->low = add(form->low, launch);
    form->time = add(form->time, launch);
  }
  if (const Picoseconds own = own_pass_of(scenario, j); own.count() > 0 && job.request.ranks > 1) {
    form->formula += " + own pass";
    form->low = add(form->low, own);
    form->time = add(form->time, own);
  }
  if (calls_of(scenario).size() > 1)
    form->because.emplace_back("links have the rates that the fastest kernel of the calls reaches");
  for (std::string& because : disturbances(scenario)) form->because.push_back(std::move(because));
  return form;
}

}  // namespace ringsim
