// The accessibility tree of the canvas. Qt gives a widget a single accessible object; the interfaces here add panels
// and cells as its children, so that a screen reader can read them.
//
//   canvas (grouping)             name "Picture of the run"
//   +- panel (list)               name its title, description its summary
//   |  +- cell (list item)        name from Panel::cells(); selected if pinned, focused if it has the keyboard focus
//   |  +- ...                     the visible cells, at most Canvas::kMostCells
//   +- ...                        in reading order
//
// Rectangles are in screen coordinates. A child is identified by its index and stays valid as long as the canvas
// exists; the object that cell 5 describes depends on the visible part of the panel.
#pragma once

namespace kvscope::viz {

class Canvas;

void install_canvas_accessibility();  // call once; further calls do nothing

// Notifications to a screen reader; they do nothing if none is active.
void tell_focus(Canvas& canvas);    // the panel or object with the keyboard focus changed
void tell_changed(Canvas& canvas);  // the picture changed

}  // namespace kvscope::viz
