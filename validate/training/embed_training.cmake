# cmake -DOUT=training.cpp -DFOLDER=validate/training -P embed_training.cmake: writes the published rows and the table of
# machines and regimes into one source file, so that the program needs neither when it runs.
file(READ "${FOLDER}/published.csv" rows)
file(READ "${FOLDER}/mapping.json" mapping)
file(WRITE "${OUT}" "// Written by validate/training/embed_training.cmake from validate/training.
#include \"validate/training/training_figures.hpp\"

namespace ringsim {
TrainingFigures bundled_training() {
  return {parse_training_rows(R\"rows(${rows})rows\", \"validate/training/published.csv\"),
          parse_training_map(R\"map(${mapping})map\", \"validate/training/mapping.json\")};
}
}  // namespace ringsim
")
