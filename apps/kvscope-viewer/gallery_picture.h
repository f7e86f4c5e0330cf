// The picture of a scenario on its card of the gallery, painted by this program in a separate process and kept in the
// user's cache: the second start of the viewer only reads files.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include <QtCore/QStringList>
#include <QtGui/QImage>

#include "viz/view/theme.h"

namespace kvscope::apps {

inline constexpr QSize kGalleryPicture{416, 260};  // [px] twice the size of the card's picture

// What the picture shows, as options of `kvscope-viewer --render`: the place that the first link of the scenario's
// notes opens; without links nothing, which shows the busiest step. InputError as load_scenario.
// Example: "[Block 2](step=1, select=block 2) has three holders." -> --step 1 --select "block 2"
[[nodiscard]] QStringList gallery_picture_options(const std::string& scenario);

// Of size kGalleryPicture. `program` is this program; `cache` is created if it is missing, and a file in it is named by
// a hash of the scenario, the program and the theme. Null if the scenario cannot be read or drawn, its prompts and
// answers exceed kMostPictureTokens, or `keep_going` returned false.
inline constexpr std::int64_t kMostPictureTokens = 1'000'000;  // about 2 s of simulation
[[nodiscard]] QImage gallery_picture(const std::filesystem::path& program, const std::filesystem::path& cache,
                                     const std::string& scenario, viz::ThemeKind theme,
                                     const std::function<bool()>& keep_going);

}  // namespace kvscope::apps
