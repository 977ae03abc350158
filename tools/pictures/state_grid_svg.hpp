// Who is in which state: a grid of colored cells, such as the ranks of a job in its process groups.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace ringsim::tools {

struct StateCell {
  std::size_t state = 0;  ///< which of the grid's states
  std::string label;      ///< left out where it has no room, and where the state is hatched
  std::string title;      ///< shown when a pointer rests on it
};

struct StateRow {
  std::string name;
  std::vector<std::optional<StateCell>> cells;  ///< [column]; nothing: it has no part in this row
};

/// A state, and how its cells look: a color of the style (see picture_style.hpp), such as "s0" or "l0".
struct GridState {
  std::string name, color;
  bool hatched = false;
};

struct StateGrid {
  std::string title;                 ///< for screen readers
  std::string columns_are;           ///< "ranks", above the columns
  std::vector<std::string> columns;  ///< their names; those without room are left out
  std::vector<StateRow> rows;        ///< each with a cell for every column
  std::vector<GridState> states;
};

/// A part of a page that has svg_style() and picture_style(). The legend has the states that occur. Requires a row and
/// a column.
std::string state_grid_svg(const StateGrid& grid);

}  // namespace ringsim::tools
