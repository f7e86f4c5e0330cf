// Common setup of the docks' tables: selection of whole rows, no grid, no frame, columns as wide as their content.
#pragma once

class QTableView;
class QString;

namespace kvscope::viz {

[[nodiscard]] QTableView* make_dock_table(const QString& accessible_name);

}  // namespace kvscope::viz
