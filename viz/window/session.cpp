#include "viz/window/session.h"

#include <exception>
#include <limits>

#include <QtCore/QDir>
#include <QtCore/QSettings>
#include <QtCore/QStandardPaths>

#include "viz/playback/player.h"

namespace kvscope::viz {
namespace {

constexpr const char* kSessionFile = "viewer.ini";

// Stored as a number: the order of Selection::Kind is part of the file format.
void write_selection(QSettings& settings, const Selection& s) {
  settings.setValue(
      QStringLiteral("place/pinned"),
      QStringList{QString::number(static_cast<int>(s.kind)), QString::number(s.seq.value),
                  QString::number(s.page.value), QString::number(s.token.value), QString::number(s.block.value),
                  QString::number(s.step.value), QString::number(s.element.row), QString::number(s.element.column),
                  QString::number(s.reg.wave), QString::number(s.reg.lane), QString::number(s.reg.index),
                  QString::number(s.reg.step), QString::number(s.end.value), QString::number(s.end_page.value),
                  QString::number(s.head.value), QString::number(s.dim.value), QString::number(s.event)});
}

Selection read_selection(const QSettings& settings) {
  const QStringList numbers = settings.value(QStringLiteral("place/pinned")).toStringList();
  // 6: before tiles could be selected; 12: before objects of the attention view could.
  if (numbers.size() != 6 && numbers.size() != 12 && numbers.size() != 17) return {};
  const bool tile = numbers.size() >= 12, attention = numbers.size() == 17;
  const auto at = [&](qsizetype i) { return numbers[i].toLongLong(); };
  if (at(0) < 0 || at(0) > std::numeric_limits<std::uint8_t>::max()) return {};  // 257 would become 1
  switch (static_cast<Selection::Kind>(at(0))) {
    case Selection::Kind::sequence:
      return of_sequence(SeqIdx(at(1)));
    case Selection::Kind::page:
      return of_page(SeqIdx(at(1)), PageIdx(at(2)));
    case Selection::Kind::token:
      return of_token(SeqIdx(at(1)), TokIdx(at(3)));
    case Selection::Kind::block:
      return of_block(BlockIdx(at(4)));
    case Selection::Kind::step:
      return of_step(StepIdx(at(5)));
    case Selection::Kind::tile_row:
      return tile ? of_tile_row(at(6)) : Selection{};
    case Selection::Kind::tile_chunk:
      return tile ? of_tile_chunk({at(6), at(7)}) : Selection{};
    case Selection::Kind::tile_lane:
      return tile ? of_tile_lane(at(8), at(9)) : Selection{};
    case Selection::Kind::tile_register:
      return tile ? of_tile_register({at(8), at(9), at(10), at(11)}) : Selection{};
    case Selection::Kind::flow_tile: {
      if (!attention) return {};
      Selection s;
      s.kind = Selection::Kind::flow_tile;
      s.seq = SeqIdx(at(1));
      s.page = PageIdx(at(2));
      s.token = TokIdx(at(3));
      s.end = TokIdx(at(12));
      s.end_page = PageIdx(at(13));
      s.event = at(16);
      return s;
    }
    case Selection::Kind::error_cell:
      if (!attention) return {};
      return of_error_cell(SeqIdx(at(1)), HeadIdx(at(14)), TokIdx(at(3)), DimIdx(at(15)), PageIdx(at(2)));
    default:
      return {};
  }
}

// A line of text, or nothing: of a file edited by hand, or of a newer version.
std::optional<TileRequest> read_tile(const QSettings& settings) {
  const std::string text = settings.value(QStringLiteral("place/tile")).toString().toStdString();
  if (text.empty()) return std::nullopt;
  try {
    return parse_tile_request(text);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

// As read_tile().
std::optional<FlowRequest> read_flow(const QSettings& settings) {
  const std::string text = settings.value(QStringLiteral("place/flow")).toString().toStdString();
  if (text.empty()) return std::nullopt;
  try {
    return parse_flow_request(text);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::optional<std::int64_t> read_count(const QSettings& settings, const char* key) {
  bool is_number = false;
  const qlonglong count = settings.value(QString::fromLatin1(key)).toLongLong(&is_number);
  return is_number && count >= 0 ? std::optional<std::int64_t>(count) : std::nullopt;
}

// An invalid QVariant, which is read as nothing, for nothing.
QVariant kept_count(std::optional<std::int64_t> count) {
  return count ? QVariant(static_cast<qlonglong>(*count)) : QVariant();
}

QStringList breakpoint_lines(const std::vector<Breakpoint>& breakpoints) {
  QStringList lines;
  for (const Breakpoint& b : breakpoints) lines.push_back(QString::fromStdString(to_text(b)));
  return lines;
}

std::vector<Breakpoint> parse_breakpoint_lines(const QStringList& lines) {
  std::vector<Breakpoint> breakpoints;
  for (const QString& line : lines) {
    try {
      breakpoints.push_back(parse_breakpoint(line.toStdString()));
    } catch (const std::exception&) {
      continue;  // edited by hand, or of a newer version: use the other breakpoints
    }
  }
  return breakpoints;
}

// A number of the file within [lowest, highest]; `otherwise` for anything else (QString converts "nan" to a number).
double read_number(const QSettings& settings, const char* key, double lowest, double highest, double otherwise) {
  const double number = settings.value(QString::fromLatin1(key), otherwise).toDouble();
  return number >= lowest && number <= highest ? number : otherwise;
}

SessionLook read_look(const QSettings& settings) {
  const auto value = [&](const char* key) { return settings.value(QString::fromLatin1(key)); };
  SessionLook look;
  look.theme = find_theme_setting(value("look/theme").toString()).value_or(ThemeSetting::system);
  look.font_scale = read_number(settings, "look/font_scale", kSmallestFont, kLargestFont, 1);
  look.speed = read_number(settings, "look/speed", Player::kSlowest, Player::kFastest, 4);
  look.motion = settings.value(QStringLiteral("look/motion"), true).toBool();
  look.geometry = value("look/geometry").toByteArray();
  look.docks = value("look/docks").toByteArray();
  return look;
}

}  // namespace

QString settings_folder(const QString& folder) {
  return folder.isEmpty() ? QStandardPaths::writableLocation(QStandardPaths::AppConfigLocation) : folder;
}

SessionLook Session::stored_look(const QString& folder) {
  return read_look(QSettings(QDir(folder).filePath(QString::fromLatin1(kSessionFile)), QSettings::IniFormat));
}

Session::Session(const QString& folder)
    : file_(QDir(folder).filePath(QString::fromLatin1(kSessionFile))),
      lock_(QDir(folder).filePath(QStringLiteral("viewer.lock"))) {
  QDir().mkpath(folder);
  lock_.setStaleLockTime(0);  // a lock is stale only if its process no longer exists, not after a certain time
  ours_ = lock_.tryLock(0);
  read();
  if (!ours_) {
    ended_badly_ = false;  // the window that wrote the file is still running
    return;
  }
  QSettings settings(file_, QSettings::IniFormat);
  settings.setValue(QStringLiteral("session/clean"), false);
}

Session::~Session() = default;

void Session::read() {
  const QSettings settings(file_, QSettings::IniFormat);
  const auto value = [&](const char* key, const QVariant& otherwise = {}) {
    return settings.value(QString::fromLatin1(key), otherwise);
  };
  ended_badly_ = !value("session/clean", true).toBool() && !value("place/path").toString().isEmpty();
  look_ = read_look(settings);
  place_.path = value("place/path").toString();
  place_.position = Position(value("place/position", 0).toLongLong());
  place_.view = find_view(value("place/view").toString().toStdString()).value_or(View::overview);
  place_.pinned = read_selection(settings);
  place_.tile = read_tile(settings);
  place_.recorded_tile = read_count(settings, "place/recorded_tile");
  place_.tile_event = read_count(settings, "place/tile_event");
  place_.flow = read_flow(settings);
  place_.flow_tiles = read_count(settings, "place/flow_tiles");
  place_.candidate = value("place/candidate").toString();
  place_.compared = value("place/compared").toString();
  const QStringList changes = value("place/changes").toStringList();
  for (qsizetype i = 0; i + 1 < changes.size(); i += 2) place_.changes.emplace_back(changes[i], changes[i + 1]);
  place_.breakpoints = parse_breakpoint_lines(value("place/breakpoints").toStringList());
}

void Session::keep(const SessionLook& look, const SessionPlace& place) {
  look_ = look;
  place_ = place;
  if (!ours_) return;
  QSettings settings(file_, QSettings::IniFormat);
  const auto set = [&](const char* key, const QVariant& v) { settings.setValue(QString::fromLatin1(key), v); };
  set("look/theme", name(look.theme));
  set("look/font_scale", look.font_scale);
  set("look/speed", look.speed);
  set("look/motion", look.motion);
  set("look/geometry", look.geometry);
  set("look/docks", look.docks);
  set("place/path", place.path);
  set("place/position", static_cast<qlonglong>(place.position.value));
  set("place/view", QString::fromUtf8(name(place.view).data(), static_cast<qsizetype>(name(place.view).size())));
  set("place/breakpoints", breakpoint_lines(place.breakpoints));
  set("place/tile", place.tile ? QString::fromStdString(to_text(*place.tile)) : QString());
  set("place/recorded_tile", kept_count(place.recorded_tile));
  set("place/tile_event", kept_count(place.tile_event));
  set("place/flow", place.flow ? QString::fromStdString(to_text(*place.flow)) : QString());
  set("place/flow_tiles", kept_count(place.flow_tiles));
  set("place/candidate", place.candidate);
  set("place/compared", place.compared);
  QStringList changes;
  for (const auto& [path, scenario] : place.changes) changes << path << scenario;
  set("place/changes", changes);
  write_selection(settings, place.pinned);
  settings.sync();
}

void Session::end() {
  if (!ours_) return;
  QSettings settings(file_, QSettings::IniFormat);
  settings.setValue(QStringLiteral("session/clean"), true);
  settings.sync();
}

}  // namespace kvscope::viz
