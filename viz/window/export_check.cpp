#include "viz/window/export_check.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include <QtCore/QFileInfo>

#include "core/base/errors.h"
#include "viz/window/film_writer.h"
#include "viz/window/video_writer.h"

namespace kvscope::viz {
namespace {

constexpr std::array<const char*, 7> kEndings{"png", "svg", "pdf", "tikz", "gif", "webm", "mp4"};
constexpr const char* kWriteFilm = "write a .gif, .webm or .mp4";

void check_size(const Picture& picture, std::vector<Fault>& faults) {
  const QSizeF size = scaled_size(picture);
  for (const auto& [what, pixels] : {std::pair{"width", size.width()}, std::pair{"height", size.height()}}) {
    if (pixels >= kSmallestPicture && pixels <= kLargestPicture) continue;
    faults.push_back({"", fmt::format("a {} of {} px is outside [{}, {}]: choose another size or scale", what,
                                      std::llround(pixels), kSmallestPicture, kLargestPicture)});
  }
}

const char* ending_of(PictureFormat format) {
  return kEndings[static_cast<std::size_t>(format)];
}

void check_rows(const Run& run, const Picture& picture, PictureFormat format, std::vector<Fault>& faults) {
  if (!picture.last_row) return;
  const std::int64_t first = run.row_at(picture.position), last = *picture.last_row;
  check_index("row", last, run.facts().rows);
  if (last < first) {
    faults.push_back({"", fmt::format("the last step, {}, comes before the first, {}: give the first one first",
                                      run.span(last).step.value, run.span(first).step.value)});
  } else if (!is_film(format)) {
    faults.push_back(
        {"", fmt::format("steps {} to {} are {} pictures, and a .{} file holds one: {}", run.span(first).step.value,
                         run.span(last).step.value, last - first + 1, ending_of(format), kWriteFilm)});
  }
}

void check_tile_events(const Picture& picture, PictureFormat format, std::vector<Fault>& faults) {
  if (!picture.last_tile_event) return;
  const std::int64_t first = picture.tile_event.value_or(0), last = *picture.last_tile_event;
  if (!picture.tile) {
    faults.push_back({"", "there is no tile whose events could be animated: name one"});
  } else if (last < first || last > picture.tile->events) {
    faults.push_back(
        {"", fmt::format("the last event of the tile, {}, is outside [{}, {}]", last, first, picture.tile->events)});
  } else if (!is_film(format)) {
    faults.push_back({"", fmt::format("events {} to {} of the tile are several pictures, and a .{} file holds one: {}",
                                      first, last, ending_of(format), kWriteFilm)});
  }
}

void check_flow_tiles(const Picture& picture, PictureFormat format, std::vector<Fault>& faults) {
  if (!picture.last_flow_tile) return;
  if (!picture.flow) {
    faults.push_back({"", "there is no flow whose tiles could be animated: name one"});
    return;
  }
  const auto all = std::ssize(picture.flow->tiles);
  const std::int64_t first = picture.flow_tiles.value_or(0), last = *picture.last_flow_tile;
  if (last < first || last > all) {
    faults.push_back({"", fmt::format("the last tile of the flow, {}, is outside [{}, {}]", last, first, all)});
  } else if (!is_film(format)) {
    faults.push_back({"", fmt::format("tiles {} to {} of the flow are several pictures, and a .{} file holds one: {}",
                                      first, last, ending_of(format), kWriteFilm)});
  }
}

void check_frames(const Run& run, const Picture& picture, PictureFormat format, std::vector<Fault>& faults) {
  const std::size_t before = faults.size();
  check_rows(run, picture, format, faults);
  check_tile_events(picture, format, faults);
  check_flow_tiles(picture, format, faults);
  if (!(picture.frames_per_second >= kSlowestFrames && picture.frames_per_second <= kFastestFrames)) {
    faults.push_back({"", fmt::format("{} frames per second is outside [{}, {}]", picture.frames_per_second,
                                      kSlowestFrames, kFastestFrames)});
  }
  if (picture.between && format != PictureFormat::png && !is_film(format)) {
    faults.push_back({"", fmt::format("a picture between two steps consists of pixels, and a .{} file of shapes: write "
                                      "a .png",
                                      ending_of(format))});
  }
  if (faults.size() > before) return;
  const auto stills = std::ssize(stills_of(run, picture));
  const std::int64_t frames =
      stills + (stills - 1) * film_timing(format, picture.frames_per_second, picture.motion).between;
  if (frames > kMostFrames) {
    faults.push_back({"", fmt::format("{} frames are more than {}: choose fewer steps", frames, kMostFrames)});
  }
}

}  // namespace

std::optional<PictureFormat> picture_format(const QString& path) {
  const std::string ending = QFileInfo(path).suffix().toLower().toStdString();
  for (std::size_t format = 0; format < kEndings.size(); ++format) {
    if (ending == kEndings[format]) return static_cast<PictureFormat>(format);
  }
  return std::nullopt;
}

QSizeF scaled_size(const Picture& picture) {
  return QSizeF(size_of(picture)) * picture.scale;
}

std::vector<std::int64_t> stills_of(const Run& run, const Picture& picture) {
  std::vector<std::int64_t> stills;
  if (picture.last_tile_event) {
    stills.push_back(picture.tile_event.value_or(0));
    for (const TileAction& action : picture.tile->actions) {
      if (action.end > stills.back() && action.end <= *picture.last_tile_event) stills.push_back(action.end);
    }
    if (stills.back() < *picture.last_tile_event) stills.push_back(*picture.last_tile_event);
    return stills;
  }
  const bool of_flow = picture.last_flow_tile.has_value();
  const std::int64_t first = of_flow ? picture.flow_tiles.value_or(0) : run.row_at(picture.position);
  const std::int64_t last = of_flow ? *picture.last_flow_tile : picture.last_row.value_or(first);
  for (std::int64_t still = first; still <= last; ++still) stills.push_back(still);
  return stills;
}

PictureFormat check_picture(const QString& path, const Run& run, const Picture& picture) {
  const std::optional<PictureFormat> format = picture_format(path);
  std::vector<Fault> faults;
  if (!format)
    faults.push_back({"",
                      "the extension is not that of a picture format: use .png, .svg, .pdf, .tikz, .gif, .webm "
                      "or .mp4"});
  check_size(picture, faults);
  check_frames(run, picture, format.value_or(PictureFormat::gif), faults);
  if (picture.view == View::attention && picture.last_row && *picture.last_row > run.row_at(picture.position) &&
      !picture.attention_of) {
    faults.push_back({"",
                      "the flows of several steps are not computed here: write a .png of one step, or choose "
                      "another view"});
  }
  const bool is_video = format == PictureFormat::webm || format == PictureFormat::mp4;
  if (is_video && find_ffmpeg().isEmpty()) faults.push_back({"", missing_ffmpeg()});
  if (!faults.empty()) throw InputError(path.toStdString(), std::move(faults));
  return *format;
}

}  // namespace kvscope::viz
