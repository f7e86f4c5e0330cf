// The canvas as a screen reader meets it: a widget is one object to it, so panels and cells are made up as children.
//
//   canvas (grouping)             name "Picture of the run"
//   +- panel (list)               name its title, description its summary
//   |  +- cell (list item)        name of panel.h's cells; selected when pinned, focused when keys have moved to it
//   |  +- ...                     at most Canvas::kMostCells, what is visible now
//   +- ...                        in reading order
//
// Rectangles are in screen coordinates. Children are asked for by number and stay valid as long as the canvas: what
// cell 5 is follows from what is on screen.
#pragma once

namespace kvscope::viz {

class Canvas;

void install_canvas_accessibility();  // once; more does nothing

// To a screen reader that listens, if there is one.
void tell_focus(Canvas& canvas);    // the keyboard's panel or object is another one
void tell_changed(Canvas& canvas);  // what is shown is something else

}  // namespace kvscope::viz
