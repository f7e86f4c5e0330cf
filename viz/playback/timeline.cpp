#include "viz/playback/timeline.h"

namespace kvscope::viz {

std::string_view name(Series series) {
  switch (series) {
    case Series::utilization:
      return "utilization";
    case Series::fragmentation:
      return "fragmentation";
    case Series::hit_rate:
      return "prefix hit rate";
    case Series::cached:
      return "cached blocks";
    case Series::waiting:
      return "waiting requests";
    case Series::running:
      return "running requests";
    case Series::prefill:
      return "prefill tokens";
    case Series::decode:
      return "decode tokens";
  }
  return "";
}

bool is_share(Series series) {
  return series <= Series::cached;
}

std::string_view name(Mark mark) {
  switch (mark) {
    case Mark::preemption:
      return "preemption";
    case Mark::eviction:
      return "eviction";
    case Mark::refusal:
      return "rejection";
    case Mark::copy:
      return "copy";
  }
  return "";
}

}  // namespace kvscope::viz
