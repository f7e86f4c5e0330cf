#include "viz/view/tile_events_words.h"

#include <algorithm>

#include <QtCore/QCoreApplication>

#include "viz/playback/tile_selection.h"
#include "viz/view/time_text.h"

namespace kvscope::viz {
namespace {

class TileEventsWords {
  Q_DECLARE_TR_FUNCTIONS(TileEventsPanel)

 public:
  static QString lane(const Tile& tile, const TileEventLane& lane);
  static QString bar(const Tile& tile, const TileState& now, const TileEventBar& bar, BarWords words);
  static QString wavefronts(const TileRead& read);
  static QString run(const Tile& tile, std::span<const TileEventBar> bars);
};

QString TileEventsWords::lane(const Tile& tile, const TileEventLane& lane) {
  switch (lane.actor) {
    case TileActor::issuer:
      return tr("thread 0");
    case TileActor::engine:
      return tr("TMA");
    case TileActor::barrier:
      return tr("barrier");
    case TileActor::reader:
      break;
  }
  if (lane.wave < 0) return tr("warps");
  return tile.tma() ? tr("warp %1").arg(lane.wave) : tr("wave %1").arg(lane.wave);
}

QString TileEventsWords::bar(const Tile& tile, const TileState& now, const TileEventBar& bar, BarWords words) {
  const auto index = static_cast<std::size_t>(bar.index);
  const bool all = words == BarWords::all, brief = words == BarWords::brief;
  switch (bar.kind) {
    case TileEventBar::Kind::expect:
      return all ? tr("expect %1 B").arg(number_text(tile.expects[index].bytes)) : tr("expect");
    case TileEventBar::Kind::issue:
      return brief ? QString::number(tile.copies[index].number) : tr("issue %1").arg(tile.copies[index].number);
    case TileEventBar::Kind::flight: {
      const TileCopy& copy = tile.copies[index];
      if (brief) return QString::number(copy.number);
      const QString name = tile.gathers() ? tr("gather %1").arg(copy.number)
                           : tile.tma()   ? tr("box %1").arg(copy.number)
                                          : tr("copy %1").arg(copy.number);
      return copy.filled > 0 && all ? name + tr(", %1 B of it zeros").arg(number_text(copy.filled)) : name;
    }
    case TileEventBar::Kind::phase: {
      const trace::BarrierExpects& of = tile.expects[index];
      if (!all) return tr("phase %1").arg(of.phase);
      return now.event >= bar.end ? tr("phase %1: all %2 B have landed").arg(of.phase).arg(number_text(of.bytes))
                                  : tr("phase %1: %2 of %3 B have landed")
                                        .arg(of.phase)
                                        .arg(number_text(std::min(now.arrived, of.bytes)), number_text(of.bytes));
    }
    case TileEventBar::Kind::wait: {
      if (tile.tma()) return is_race(tile, now, bar) && all ? tr("wait: a read now would be a race") : tr("wait");
      const TileWait& wait = tile.waits[index];
      const QString name = brief ? tr("wait") : tr("vmcnt(%1)").arg(wait.allowed);
      return all ? name + tr(": %1 in flight").arg(wait.outstanding) : name;
    }
    case TileEventBar::Kind::read: {
      const TileRead& read = tile.reads[index];
      if (brief) return QString::number(read.number);
      const QString name =
          tr("read %1: r%2–%3").arg(read.number).arg(read.first_register).arg(read.first_register + read.registers - 1);
      return all ? name + tr(", ") + wavefronts(read) : name;
    }
  }
  return {};
}

QString TileEventsWords::wavefronts(const TileRead& read) {
  const QString text = read.cycles == 1 ? tr("1 wavefront") : tr("%1 wavefronts").arg(read.cycles);
  return read.conflicts > 0 ? text + tr(" (bank conflicts: %1)").arg(read.conflicts) : text;
}

QString TileEventsWords::run(const Tile& tile, std::span<const TileEventBar> bars) {
  const auto count = static_cast<qlonglong>(bars.size());
  if (bars.front().kind == TileEventBar::Kind::flight) {
    return tile.gathers() ? tr("gathers: %1").arg(count)
           : tile.tma()   ? tr("boxes: %1").arg(count)
                          : tr("copies: %1").arg(count);
  }
  if (bars.front().kind != TileEventBar::Kind::read || count < 2) return {};
  const QString name = QString::fromStdString(read_name(tile));
  const TileRead& one = tile.reads[static_cast<std::size_t>(bars.front().index)];
  const bool same = std::ranges::all_of(bars, [&](const TileEventBar& bar) {
    const TileRead& read = tile.reads[static_cast<std::size_t>(bar.index)];
    return read.cycles == one.cycles && read.conflicts == one.conflicts;
  });
  const QString text = tr("%1 × %2").arg(count).arg(name.isEmpty() ? tr("read") : name);
  return same ? text + tr(", %1 each").arg(wavefronts(one)) : text;
}

}  // namespace

bool is_race(const Tile& tile, const TileState& now, const TileEventBar& bar) {
  return bar.kind == TileEventBar::Kind::wait && tile.tma() && now.event >= bar.first && now.event < bar.end;
}

QString lane_name(const Tile& tile, const TileEventLane& lane) {
  return TileEventsWords::lane(tile, lane);
}

QString bar_words(const Tile& tile, const TileState& now, const TileEventBar& bar, BarWords words) {
  return TileEventsWords::bar(tile, now, bar, words);
}

QString run_words(const Tile& tile, std::span<const TileEventBar> run) {
  return TileEventsWords::run(tile, run);
}

}  // namespace kvscope::viz
