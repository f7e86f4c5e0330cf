// Part of export.h: the checks before anything is painted, and the stills that an animation consists of.
#pragma once

#include <cstdint>
#include <vector>

#include <QtCore/QSizeF>

#include "viz/window/export.h"

namespace kvscope::viz {

// size_of(picture), after scaling. [px]
[[nodiscard]] QSizeF scaled_size(const Picture& picture);

// What an animation shows, one still picture after the other: rows of the run, events of the tile, or numbers of tiles
// of the flow that have been added. Precondition: the picture has passed check_picture().
[[nodiscard]] std::vector<std::int64_t> stills_of(const Run& run, const Picture& picture);

// The format of the path's extension. Throws InputError with all faults: see write_picture().
[[nodiscard]] PictureFormat check_picture(const QString& path, const Run& run, const Picture& picture);

}  // namespace kvscope::viz
