// The list of all panels: a new panel needs one file and one line here.
#include "viz/view/panel.h"

namespace kvscope::viz {

Panels make_panels() {
  return {make_header_panel(),         make_sequences_panel(),        make_pool_panel(),
          make_table_panel(),          make_timeline_panel(),         make_tile_sequence_panel(),
          make_memory_panel(),         make_copies_panel(),           make_shared_panel(),
          make_registers_panel(),      make_tile_events_panel(),      make_chain_panel(),
          make_attention_flow_panel(), make_attention_errors_panel(), make_attention_output_panel()};
}

}  // namespace kvscope::viz
