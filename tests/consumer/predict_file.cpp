// Loads a scenario file and predicts each of its points: algorithm, bytes, time, what limited it.
#include <cstdio>
#include <ringsim/ringsim.hpp>
#include <variant>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    const auto file = ringsim::ScenarioFile::load(argv[1], {"topology.ranks=4", "network.model=fair"});
    for (std::size_t i = 0; i < file.size(); ++i)
      for (const ringsim::Result& row : ringsim::results_of(file.point(i))) {
        const ringsim::Prediction& p = row.prediction;
        for (const ringsim::Cell& cell : ringsim::row_of(row))
          if (cell.column == "closed_form.time_us")
            std::printf("%.4f us by the closed form; ", std::get<double>(cell.value));
        std::printf("%s %lld %.4f us, %s, closed form %s\n", p.algorithm.c_str(),
                    static_cast<long long>(p.request.bytes.count), ringsim::microseconds(p.time),
                    p.bottleneck->link.c_str(), row.form->holds() ? "holds" : "does not hold");
      }
  } catch (const ringsim::InputError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
}
