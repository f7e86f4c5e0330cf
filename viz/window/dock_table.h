// What the docks' tables have in common: whole rows, no grid, no frame but the card, columns as wide as their content.
#pragma once

class QTableView;
class QString;

namespace kvscope::viz {

[[nodiscard]] QTableView* make_dock_table(const QString& accessible_name);

}  // namespace kvscope::viz
