#include "viz/window/trace_saver.h"

#include <filesystem>
#include <variant>

#include "core/trace/trace_writer.h"
#include "viz/playback/event_tape.h"

namespace kvscope::viz {
namespace {

constexpr std::int64_t kTellEvery = 16384;  // [events]

}  // namespace

void save_trace(const Run& run, const QString& path, const Job::Tell& tell) {
  trace::Meta meta = run.meta();
  std::erase_if(meta, [](const auto& entry) { return trace::is_reserved_meta_key(entry.first); });
  trace::TraceWriter writer(std::filesystem::path(path.toStdString()), run.facts().detail, std::move(meta));
  const std::int64_t all = run.facts().events;
  for (EventTape::Reader reader(run.tape(), 0); reader.position() < all;) {
    if (reader.position() % kTellEvery == 0 && !tell(0, reader.position(), all)) throw Cancelled();
    std::visit([&writer](const auto& event) { writer.record(event); }, reader.next());
  }
  writer.finish();
}

}  // namespace kvscope::viz
