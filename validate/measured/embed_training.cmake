# cmake -DOUT=training.cpp -DFOLDER=validate/measured/training_figures -P embed_training.cmake: writes the published rows and the table of
# machines and regimes into one source file, so that the program needs neither when it runs.
file(READ "${FOLDER}/published.csv" rows)
file(READ "${FOLDER}/mapping.json" mapping)
file(WRITE "${OUT}" "// Written by validate/measured/embed_training.cmake from validate/measured/training_figures.
#include \"validate/measured/training_figures.hpp\"

namespace ringsim {
TrainingFigures bundled_training() {
  return {parse_training_rows(R\"rows(${rows})rows\", \"validate/measured/training_figures/published.csv\"),
          parse_training_map(R\"map(${mapping})map\", \"validate/measured/training_figures/mapping.json\")};
}
}  // namespace ringsim
")
