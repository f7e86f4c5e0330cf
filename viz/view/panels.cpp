// The list of all panels: a new panel needs one file and one line here.
#include "viz/view/panel.h"

namespace kvscope::viz {

Panels make_panels() {
  return {make_header_panel(), make_sequences_panel(), make_pool_panel(), make_table_panel(), make_timeline_panel()};
}

}  // namespace kvscope::viz
