// Copies of waves through LDS: which lane of which wave brings which row into which stage, what each wave still waits
// for, and the order of it all.
#include <algorithm>
#include <string_view>

#include <QtCore/QCoreApplication>

#include "viz/geometry/lds_layout.h"
#include "viz/playback/tile_reads.h"
#include "viz/playback/tile_selection.h"
#include "viz/playback/tile_state.h"
#include "viz/view/copies_paint.h"
#include "viz/view/text.h"
#include "viz/view/tile_paint.h"
#include "viz/view/time_text.h"

namespace kvscope::viz {
namespace {

constexpr double kStageName = 12, kLdsWords = 11.5, kLdsDigits = 11, kLaneDigits = 8.5;  // [px] at font scale 1
constexpr double kPip = 8, kLowestWave = 9;                                              // [px] at font scale 1
constexpr std::int64_t kMostPips = 12;

// Lanes of a wave of AMD; a kernel's trace names those of its warps.
std::int64_t lanes_of_wave(const Tile& tile) {
  return tile.fragments && tile.fragments->lanes > 0 ? tile.fragments->lanes : 64;
}

QString lds_tr(const char* text) {
  return QCoreApplication::translate("LdsCopies", text, nullptr);
}

// Copies of the tile by stage and wave, in the order of issue: indices into Tile::copies.
using CopiesByWave = std::vector<std::vector<std::vector<std::int64_t>>>;

CopiesByWave copies_by_wave(const Tile& tile) {
  std::int64_t stages = tile.shared ? std::max<std::int64_t>(tile.shared->stages, 1) : 1;
  for (const TileCopy& copy : tile.copies) stages = std::max(stages, copy.stage + 1);
  stages = std::min<std::int64_t>(stages, 8);
  CopiesByWave all(static_cast<std::size_t>(stages),
                   std::vector<std::vector<std::int64_t>>(static_cast<std::size_t>(tile.waves())));
  for (std::int64_t n = 0; n < std::ssize(tile.copies); ++n) {
    const TileCopy& copy = tile.copies[static_cast<std::size_t>(n)];
    if (copy.stage < 0 || copy.stage >= stages) continue;
    all[static_cast<std::size_t>(copy.stage)][static_cast<std::size_t>(copy.wave)].push_back(n);
  }
  return all;
}

// Neighbouring actions of one kind: copies into one stage, waits with one count, reads.
struct ScheduleLine {
  TileAction::Kind kind = TileAction::Kind::copy;
  std::int64_t value = 0;           // copies: stage; waits: allowed
  std::int64_t first = 0, end = 0;  // of Tile::actions
};

std::vector<ScheduleLine> schedule_of(const Tile& tile) {
  std::vector<ScheduleLine> lines;
  for (std::int64_t n = 0; n < std::ssize(tile.actions); ++n) {
    const TileAction& action = tile.actions[static_cast<std::size_t>(n)];
    const auto index = static_cast<std::size_t>(action.index);
    std::int64_t value = 0;
    if (action.kind == TileAction::Kind::copy) {
      value = tile.copies[index].stage;
    } else if (action.kind == TileAction::Kind::wait) {
      value = tile.waits[index].allowed;
    } else if (action.kind != TileAction::Kind::read) {
      continue;
    }
    if (!lines.empty() && lines.back().kind == action.kind && lines.back().value == value && lines.back().end == n) {
      ++lines.back().end;
    } else {
      lines.push_back({action.kind, value, n, n + 1});
    }
  }
  return lines;
}

LdsLayout lds_layout_of(const CopiesByWave& copies, const QRectF& body, const Scene& scene) {
  LdsSize size;
  for (const auto& stage : copies) {
    auto& counts = size.copies.emplace_back();
    for (const auto& wave : stage) counts.push_back(std::ssize(wave));
  }
  size.lanes = lanes_of_wave(*scene.tile);
  size.schedule = std::ssize(schedule_of(*scene.tile));
  return lds_layout(std::move(size), body, scene.font_scale);
}

// Lanes of a copy that bring one row: [first, end).
struct LaneRun {
  std::int64_t first = 0, end = 0;
  std::int64_t row = -1;
  Arrival arrival = Arrival::outlined;
};

std::vector<LaneRun> runs_of(const Tile& tile, const TileState& now, std::int64_t n) {
  const TileCopy& copy = tile.copies[static_cast<std::size_t>(n)];
  std::vector<LaneRun> runs;
  if (copy.chunks == 0) return {{0, lanes_of_wave(tile), -1, arrival_of_copy(tile, now, n)}};
  for (std::int64_t lane = 0; lane < std::min(copy.chunks, lanes_of_wave(tile)); ++lane) {
    const std::int64_t chunk = copy.first_chunk + lane;
    const std::int64_t row = tile.chunks[static_cast<std::size_t>(chunk)].row;
    const Arrival arrival = arrival_of_chunk(tile, now, chunk);
    if (!runs.empty() && runs.back().row == row && runs.back().arrival == arrival) {
      ++runs.back().end;
    } else {
      runs.push_back({lane, lane + 1, row, arrival});
    }
  }
  return runs;
}

void paint_lanes(QPainter& painter, const LdsLayout& at, const CopiesByWave& copies, const Scene& scene) {
  const Theme& theme = *scene.theme;
  const QFont name = ui_font(scene.px(kLdsWords)), digits = mono_font(scene.px(kLaneDigits));
  const double left = at.stages.empty() ? at.axis.left() : at.stages.front().title.left();
  if (text_width(digits, lds_tr("lane")) < at.axis.left() - left) {
    draw_text_in(painter, digits, theme.text_quiet,
                 QRectF(left, at.axis.top(), at.axis.left() - left, at.axis.height()), Qt::AlignLeft, lds_tr("lane"));
  }
  const bool says_more = at.schedule.empty() && at.size.schedule > 0;  // on this line
  for (std::int64_t lane = 0; lane < at.size.lanes && !says_more; lane += 16) {
    const double x = at.axis.left() + at.axis.width() * static_cast<double>(lane) / static_cast<double>(at.size.lanes);
    draw_text_in(painter, digits, theme.text_quiet, QRectF(x, at.axis.top(), 40, at.axis.height()), Qt::AlignLeft,
                 QString::number(lane));
  }
  for (std::size_t stage = 0; stage < at.stages.size(); ++stage) {
    for (const LdsWave& wave : at.stages[stage].waves) {
      if (wave.label.height() >= scene.px(kLowestWave)) {
        draw_text_in(painter, name, theme.text_quiet, wave.label, Qt::AlignLeft,
                     first_that_fits(name, {lds_tr("wave %1").arg(wave.wave), QString::number(wave.wave)},
                                     wave.label.width() - 2));
      }
      for (std::int64_t n = 0; n < wave.copies; ++n) {
        const std::int64_t copy = copies[stage][static_cast<std::size_t>(wave.wave)][static_cast<std::size_t>(n)];
        for (const LaneRun& run : runs_of(*scene.tile, *scene.tile_now, copy)) {
          const LdsLayout::Place first{static_cast<std::int64_t>(stage), wave.wave, n, run.first};
          const QRectF rect = at.lanes_rect(first, run.end);
          paint_tile_cell(painter, rect.width() > 3 ? rect.adjusted(0, 0, -1, 0) : rect, theme, *scene.tile, run.row,
                          run.arrival);
        }
      }
    }
  }
}

void paint_stage_titles(QPainter& painter, const LdsLayout& at, const CopiesByWave& copies, const Scene& scene) {
  const Theme& theme = *scene.theme;
  const QFont name = ui_font(scene.px(kStageName), QFont::DemiBold), words = ui_font(scene.px(kLdsWords));
  for (std::size_t stage = 0; stage < at.stages.size(); ++stage) {
    std::int64_t all = 0, issued = 0;
    for (const auto& wave : copies[stage]) {
      all += std::ssize(wave);
      issued += std::ranges::count_if(wave, [&](std::int64_t copy) { return copy < scene.tile_now->issued; });
    }
    const QRectF& title = at.stages[stage].title;
    const QString text = lds_tr("stage %1").arg(stage);
    draw_text_in(painter, name, all > 0 ? theme.text : theme.text_quiet, title, Qt::AlignLeft, text);
    const QRectF beside = title.adjusted(text_width(name, text) + scene.px(10), 0, 0, 0);
    const QString state =
        all == 0 ? lds_tr("not used by this tile") : lds_tr("%1 of %2 copies issued").arg(issued).arg(all);
    draw_text_in(painter, words, theme.text_quiet, beside, Qt::AlignLeft, elided(words, state, beside.width()));
  }
}

// One square for each copy of the wave: covered by a wait, outstanding, not issued.
void paint_counter(QPainter& painter, const QRectF& line, std::int64_t wave, const Scene& scene) {
  const Tile& tile = *scene.tile;
  const Theme& theme = *scene.theme;
  const TileState& now = *scene.tile_now;
  const QFont words = ui_font(scene.px(kLdsWords)), digits = mono_font(scene.px(kLdsDigits));
  std::int64_t all = 0, issued = 0;
  for (std::int64_t n = 0; n < std::ssize(tile.copies); ++n) {
    if (tile.copies[static_cast<std::size_t>(n)].wave != wave) continue;
    ++all;
    issued += n < now.issued ? 1 : 0;
  }
  const std::int64_t outstanding = now.outstanding[static_cast<std::size_t>(wave)];
  const double label = std::min(scene.px(50), line.width() / 3);
  draw_text_in(painter, words, theme.text_quiet, line, Qt::AlignLeft,
               first_that_fits(words, {lds_tr("wave %1").arg(wave), QString::number(wave)}, label - 2));
  double x = line.left() + label;
  const double side = scene.px(kPip);
  for (std::int64_t n = 0; n < std::min(all, kMostPips) && all <= kMostPips; ++n, x += side + 2) {
    const QRectF pip(x, line.center().y() - side / 2, side, side);
    if (n < issued) {
      painter.fillRect(pip, n < issued - outstanding ? theme.text_accent : theme.accent);
    } else {
      painter.setBrush(Qt::NoBrush);
      painter.setPen(QPen(theme.cell_line, 1));
      painter.drawRect(pip.adjusted(0.5, 0.5, -0.5, -0.5));
    }
  }
  x += scene.px(6);
  const auto wait =
      std::ranges::find_if(tile.waits, [&](const TileWait& w) { return w.wave == wave && w.event >= now.event; });
  const QString before = lds_tr("vmcnt %1").arg(outstanding);
  const QStringList texts = wait != tile.waits.end()
                                ? QStringList{lds_tr("%1, wait allows %2").arg(before).arg(wait->allowed),
                                              QStringLiteral("%1 → %2").arg(before).arg(wait->allowed),
                                              QStringLiteral("%1 → %2").arg(outstanding).arg(wait->allowed)}
                                : QStringList{before, QString::number(outstanding)};
  draw_text_in(painter, digits, outstanding > 0 ? theme.accent : theme.text,
               QRectF(x, line.top(), line.right() - x, line.height()), Qt::AlignLeft,
               first_that_fits(digits, texts, line.right() - x));
}

// In red what a read would meet now, or will meet: before it happens. Of several texts the first that fits.
void paint_warning(QPainter& painter, const QRectF& rect, const Scene& scene) {
  const Tile& tile = *scene.tile;
  const TileState& now = *scene.tile_now;
  const auto uncovered = std::ssize(uncovered_copies(tile, now.event));
  const std::int64_t left = std::ssize(tile.copies) - now.issued;
  QStringList texts;
  QColor color = scene.theme->warning;
  if (const auto early = next_early_read(tile, 0)) {
    const TileRead& read = tile.reads[static_cast<std::size_t>(early->read)];
    const TileCopy& copy = tile.copies[static_cast<std::size_t>(early->copy)];
    texts = read.event < now.event
                ? QStringList{lds_tr("read %1 of wave %2 came too early: no wait covered copy %3 of wave %4"),
                              lds_tr("read %1 of wave %2 came too early")}
                : QStringList{lds_tr("read %1 of wave %2 will come too early: no wait covers copy %3 of wave %4"),
                              lds_tr("read %1 of wave %2 will come too early")};
    texts[0] = texts[0].arg(read.number).arg(read.wave).arg(copy.number).arg(copy.wave);
    texts[1] = texts[1].arg(read.number).arg(read.wave);
  } else if (now.issued == 0) {
    texts = {lds_tr("a read now would come too early: no copy is issued"),
             lds_tr("too early to read: no copy is issued")};
  } else if (uncovered > 0) {
    texts = {lds_tr("a read now would come too early: copies that no wait covers: %1").arg(uncovered),
             lds_tr("too early to read: %1 outstanding").arg(uncovered)};
  } else if (left > 0) {
    texts = {lds_tr("a read of the next copies would come too early: not issued: %1").arg(left),
             lds_tr("too early to read: %1 not issued").arg(left)};
  } else {
    texts = {lds_tr("every wave has waited: after a barrier all waves may read"),
             lds_tr("after a barrier all may read")};
    color = scene.theme->text_accent;
  }
  const QFont font = ui_font(scene.px(kLdsWords));
  painter.setFont(font);
  painter.setPen(color);
  constexpr int kWrapped = static_cast<int>(Qt::AlignLeft | Qt::AlignVCenter) | Qt::TextWordWrap;
  for (const QString& text : texts) {
    const QRectF needed = painter.boundingRect(QRectF(rect.topLeft(), QSizeF(rect.width(), 1e6)), kWrapped, text);
    if (needed.height() > rect.height() + 1 || needed.width() > rect.width() + 1) continue;
    painter.drawText(rect, kWrapped, text);
    return;
  }
  draw_text_in(painter, font, color, rect, Qt::AlignLeft, elided(font, texts.last(), rect.width()));
}

QString line_text(const ScheduleLine& line, const Tile& tile) {
  const std::int64_t count = line.end - line.first;
  switch (line.kind) {
    case TileAction::Kind::copy:
      return lds_tr("%1 × %2 B into stage %3")
          .arg(count)
          .arg(number_text(lanes_of_wave(tile) * kTileChunkBytes))
          .arg(line.value);
    case TileAction::Kind::wait:
      return lds_tr("%1 × wait vmcnt(%2)").arg(count).arg(line.value);
    default: {
      const std::string name = read_name(tile);
      return name.empty() ? lds_tr("%1 reads").arg(count)
                          : QStringLiteral("%1 × %2").arg(count).arg(QString::fromStdString(name));
    }
  }
}

void paint_schedule(QPainter& painter, const LdsLayout& at, const Scene& scene) {
  const Theme& theme = *scene.theme;
  const std::vector<ScheduleLine> lines = schedule_of(*scene.tile);
  const QFont name = ui_font(scene.px(kStageName), QFont::DemiBold), words = ui_font(scene.px(kLdsWords));
  const QFont digits = mono_font(scene.px(kLdsDigits));
  const std::int64_t done = scene.tile_now->action;
  const auto current = std::ranges::find_if(lines, [&](const ScheduleLine& line) { return line.end > done; });
  // The lines around the one that is under way.
  const auto room = std::ssize(at.schedule), all = std::ssize(lines);
  const std::int64_t first =
      std::clamp<std::int64_t>((current - lines.begin()) - 1, 0, std::max<std::int64_t>(all - room, 0));
  const QString title = lds_tr("schedule");
  draw_text_in(painter, name, theme.text, at.schedule_title, Qt::AlignLeft, title);
  if (room < all) {
    const QRectF beside = at.schedule_title.adjusted(text_width(name, title) + scene.px(10), 0, 0, 0);
    const QString text = lds_tr("lines %1–%2 of %3").arg(first + 1).arg(first + room).arg(all);
    draw_text_in(painter, words, theme.text_quiet, beside, Qt::AlignLeft, elided(words, text, beside.width()));
  }
  for (std::int64_t n = 0; n < room && first + n < all; ++n) {
    const ScheduleLine& line = lines[static_cast<std::size_t>(first + n)];
    const QRectF& rect = at.schedule[static_cast<std::size_t>(n)];
    const std::int64_t count = line.end - line.first, complete = std::clamp<std::int64_t>(done - line.first, 0, count);
    const bool under_way = first + n == current - lines.begin();
    const QColor color = complete == count ? theme.text_accent : under_way ? theme.accent : theme.text_quiet;
    const double side = scene.px(kPip);
    const QRectF mark(rect.left(), rect.center().y() - side / 2, side, side);
    if (complete == count) {
      painter.fillRect(mark, color);
    } else {
      painter.setBrush(Qt::NoBrush);
      painter.setPen(QPen(color, 1));
      painter.drawRect(mark.adjusted(0.5, 0.5, -0.5, -0.5));
      painter.fillRect(QRectF(mark.left(), mark.top(),
                              mark.width() * static_cast<double>(complete) / static_cast<double>(count), mark.height()),
                       color);
    }
    const QString progress = QStringLiteral("%1/%2").arg(complete).arg(count);
    const double wide = text_width(digits, progress);
    const QRectF text = rect.adjusted(side + scene.px(6), 0, -wide - scene.px(6), 0);
    draw_text_in(painter, words, under_way ? theme.text : theme.text_quiet, text, Qt::AlignLeft,
                 elided(words, line_text(line, *scene.tile), text.width()));
    draw_text_in(painter, digits, color, rect, Qt::AlignRight, progress);
  }
}

}  // namespace

QString lds_subtitle(const Scene& scene) {
  const Tile& tile = *scene.tile;
  const std::int64_t stages = tile.shared ? tile.shared->stages : 1;
  const QString waves = tile.waves() == 1 ? lds_tr("one wave") : lds_tr("%1 waves").arg(tile.waves());
  return stages == 2  ? lds_tr("%1, double buffer").arg(waves)
         : stages > 2 ? lds_tr("%1, %2 stages").arg(waves).arg(stages)
                      : waves;
}

QString lds_summary(const Scene& scene) {
  std::int64_t outstanding = 0;
  for (const std::int64_t of_wave : scene.tile_now->outstanding) outstanding += of_wave;
  return lds_tr("%1 of %2 copies issued, %3 outstanding")
      .arg(scene.tile_now->issued)
      .arg(scene.tile->copies.size())
      .arg(outstanding);
}

void paint_lds(QPainter& painter, const QRectF& body, const Scene& scene) {
  const CopiesByWave copies = copies_by_wave(*scene.tile);
  const LdsLayout at = lds_layout_of(copies, body, scene);
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing, false);
  paint_stage_titles(painter, at, copies, scene);
  paint_lanes(painter, at, copies, scene);
  if (!at.counters.empty()) {
    const QFont name = ui_font(scene.px(kStageName), QFont::DemiBold);
    draw_text_in(painter, name, scene.theme->text, at.counter_title, Qt::AlignLeft,
                 elided(name, lds_tr("outstanding copies"), at.counter_title.width()));
    for (std::size_t wave = 0; wave < at.counters.size(); ++wave) {
      paint_counter(painter, at.counters[wave], static_cast<std::int64_t>(wave), scene);
    }
  }
  if (!at.warning.isEmpty()) paint_warning(painter, at.warning, scene);
  if (!at.schedule.empty()) {
    paint_schedule(painter, at, scene);
  } else if (at.size.schedule > 0 && !at.stages.empty()) {
    const QFont words = ui_font(scene.px(kLdsWords));
    const QString text =
        at.counters.empty() ? lds_tr("no room for waits and schedule") : lds_tr("no room for the schedule");
    draw_text_in(painter, words, scene.theme->text_quiet, at.axis.adjusted(scene.px(-50), 0, 0, 0), Qt::AlignRight,
                 elided(words, text, at.axis.width()));
  }
  painter.restore();
}

std::vector<PanelCell> lds_cells(const QRectF& body, const Scene& scene) {
  const Tile& tile = *scene.tile;
  const CopiesByWave copies = copies_by_wave(tile);
  const LdsLayout at = lds_layout_of(copies, body, scene);
  std::vector<PanelCell> cells;
  for (std::size_t stage = 0; stage < at.stages.size(); ++stage) {
    for (const LdsWave& wave : at.stages[stage].waves) {
      for (std::int64_t n = 0; n < wave.copies; ++n) {
        const std::int64_t copy = copies[stage][static_cast<std::size_t>(wave.wave)][static_cast<std::size_t>(n)];
        for (const LaneRun& run : runs_of(tile, *scene.tile_now, copy)) {
          const LdsLayout::Place first{static_cast<std::int64_t>(stage), wave.wave, n, run.first};
          const QRectF rect = at.lanes_rect(first, run.end).intersected(body);
          if (run.row >= 0 && !rect.isEmpty()) cells.push_back({rect, of_tile_row(run.row), {}});
        }
      }
    }
  }
  return cells;
}

// The lane that copies the chunk: chunks of a copy are in the order of its lanes.
TilePlaces lds_chunk_places(std::span<const std::int64_t> chunks, const QRectF& body, const Scene& scene) {
  const Tile& tile = *scene.tile;
  const CopiesByWave copies = copies_by_wave(tile);
  const LdsLayout at = lds_layout_of(copies, body, scene);
  TilePlaces places;
  for (const std::int64_t n : chunks) {
    const std::int64_t index = tile.chunks[static_cast<std::size_t>(n)].copy;
    const TileCopy& copy = tile.copies[static_cast<std::size_t>(index)];
    places.emplace_back();
    if (copy.stage < 0 || copy.stage >= std::ssize(copies) || copy.stage >= std::ssize(at.stages)) continue;
    const std::vector<LdsWave>& waves = at.stages[static_cast<std::size_t>(copy.stage)].waves;
    const auto wave = std::ranges::find(waves, copy.wave, &LdsWave::wave);
    if (wave == waves.end()) continue;
    const std::vector<std::int64_t>& of_wave =
        copies[static_cast<std::size_t>(copy.stage)][static_cast<std::size_t>(copy.wave)];
    const std::int64_t place = std::ranges::find(of_wave, index) - of_wave.begin(), lane = n - copy.first_chunk;
    const QRectF rect = at.lanes_rect({copy.stage, copy.wave, place, lane}, lane + 1);
    if (place < wave->copies && body.intersects(rect)) places.back() = rect;
  }
  return places;
}

}  // namespace kvscope::viz
