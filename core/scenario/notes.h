// The links in a scenario's description. A link is written as [words](key=value, ...) and sets what the viewer shows:
//
//   "Step 8: [box 1 is in flight](view=tile, step=8, tile=seq 3 token 70 k tma, event=200, select=token 3:82)."
//
//   step=8              the end of engine step 8
//   view=tile           a view of the viewer
//   select=token 3:82   an object, as the viewer's Find takes it
//   tile=seq 3 token 70 k layer 0 head 1 tma      a tile, as the viewer's option --tile takes it
//   event=200           how many events of the tile have happened
//
// Brackets that no parenthesis with a '=' follows, such as [17, 1, 2] or a web address, are plain text. The values of
// view, select and tile name objects of the viewer and of the run: viz/window/note_wish.h resolves them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope {

// What is not given stays as it is.
struct NoteLink {
  std::optional<std::int64_t> step;   // engine step
  std::optional<std::int64_t> event;  // of the tile, counted from its first
  std::string view, select, tile;     // empty: not given
  friend bool operator==(const NoteLink&, const NoteLink&) = default;
};

struct NotePart {
  std::string text;  // a link: its words
  std::optional<NoteLink> link;
  friend bool operator==(const NotePart&, const NotePart&) = default;
};

// The description in pieces. `faults` receives a message for each fault of a link: an unknown key, a key given twice or
// without a value, a step or an event that is not a whole number. Example: "See [block 2](step=1, select=block 2)." ->
// {"See "}, {"block 2", step 1 and select "block 2"}, {"."}
[[nodiscard]] std::vector<NotePart> parse_notes(std::string_view description, std::vector<std::string>& faults);
[[nodiscard]] std::vector<NotePart> parse_notes(std::string_view description);  // a link with faults keeps the rest

// The words alone, as a page or a list shows them: "See block 2."
[[nodiscard]] std::string plain_notes(std::string_view description);

}  // namespace kvscope
