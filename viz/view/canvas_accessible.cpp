#include "viz/view/canvas_accessible.h"

#include <algorithm>
#include <array>
#include <vector>

#include <QtCore/QPointer>
#include <QtGui/QAccessible>
#include <QtGui/QWindow>
#include <QtWidgets/QAccessibleWidget>

#include "viz/view/canvas.h"

namespace kvscope::viz {
namespace {

QRect on_screen(const Canvas& canvas, const QRectF& rect) {
  const QRect inside = rect.toAlignedRect();
  return {canvas.mapToGlobal(inside.topLeft()), inside.size()};
}

// The child interfaces created so far, by index. Callers keep only their addresses, so they exist until the parent is
// destroyed.
class Children {
 public:
  Children() = default;
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;
  ~Children() {
    for (const QAccessible::Id id : ids_) {
      if (id != 0) QAccessible::deleteAccessibleInterface(id);
    }
  }

  template <class Make>
  QAccessibleInterface* at(int number, Make&& make) {
    const auto i = static_cast<std::size_t>(number);
    if (i >= ids_.size()) ids_.resize(i + 1, 0);
    if (ids_[i] == 0) ids_[i] = QAccessible::registerAccessibleInterface(make());
    return QAccessible::accessibleInterface(ids_[i]);
  }
  [[nodiscard]] int number_of(const QAccessibleInterface* child) const {
    for (std::size_t i = 0; i < ids_.size(); ++i) {
      if (ids_[i] != 0 && QAccessible::accessibleInterface(ids_[i]) == child) return static_cast<int>(i);
    }
    return -1;
  }

 private:
  std::vector<QAccessible::Id> ids_;
};

// Common base of cells and panels: they have no QObject, and their text cannot be set.
class Virtual : public QAccessibleInterface {
 public:
  Virtual(Canvas* canvas, PanelId panel) : canvas_(canvas), panel_(panel) {}
  [[nodiscard]] QObject* object() const override { return nullptr; }
  [[nodiscard]] QWindow* window() const override { return canvas_ ? canvas_->window()->windowHandle() : nullptr; }
  void setText(QAccessible::Text, const QString&) override {}
  [[nodiscard]] PanelId panel() const { return panel_; }

 protected:
  [[nodiscard]] Canvas* canvas() const { return canvas_; }
  [[nodiscard]] const Place* place() const {
    if (!canvas_ || canvas_->document() == nullptr) return nullptr;
    const auto& places = canvas_->places();
    const auto found = std::ranges::find(places, panel_, &Place::panel);
    return found == places.end() ? nullptr : &*found;
  }

 private:
  QPointer<Canvas> canvas_;
  PanelId panel_;
};

// --- cells -----------------------------------------------------------------------------------------------------------

class CellAccessible final : public Virtual, public QAccessibleActionInterface {
 public:
  CellAccessible(Canvas* canvas, PanelId panel, int number) : Virtual(canvas, panel), number_(number) {}

  [[nodiscard]] bool isValid() const override { return cell() != nullptr; }
  [[nodiscard]] QAccessible::Role role() const override { return QAccessible::ListItem; }
  [[nodiscard]] QAccessibleInterface* parent() const override;
  [[nodiscard]] int childCount() const override { return 0; }
  [[nodiscard]] QAccessibleInterface* child(int) const override { return nullptr; }
  [[nodiscard]] QAccessibleInterface* childAt(int, int) const override { return nullptr; }
  [[nodiscard]] int indexOfChild(const QAccessibleInterface*) const override { return -1; }
  [[nodiscard]] QRect rect() const override {
    const PanelCell* const at = cell();
    return at != nullptr ? on_screen(*canvas(), at->rect) : QRect();
  }
  [[nodiscard]] QString text(QAccessible::Text what) const override {
    const PanelCell* const at = cell();
    return at != nullptr && what == QAccessible::Name ? at->name : QString();
  }
  [[nodiscard]] QAccessible::State state() const override {
    QAccessible::State state;
    const PanelCell* const at = cell();
    state.invalid = at == nullptr;
    if (at == nullptr) return state;
    state.selectable = true;
    state.focusable = true;
    state.selected = at->object == canvas()->document()->pinned();
    state.focused = canvas()->focusedPanel() == panel() && at->object == canvas()->current();
    return state;
  }
  void* interface_cast(QAccessible::InterfaceType type) override {
    return type == QAccessible::ActionInterface ? static_cast<QAccessibleActionInterface*>(this) : nullptr;
  }

  [[nodiscard]] QStringList actionNames() const override { return {pressAction()}; }
  void doAction(const QString& action) override {
    if (action == pressAction() && cell() != nullptr) canvas()->activate(Selection(cell()->object));
  }
  [[nodiscard]] QStringList keyBindingsForAction(const QString&) const override { return {}; }

 private:
  [[nodiscard]] const PanelCell* cell() const {
    if (place() == nullptr) return nullptr;
    const std::vector<PanelCell>& cells = canvas()->cells(panel());
    return static_cast<std::size_t>(number_) < cells.size() ? &cells[static_cast<std::size_t>(number_)] : nullptr;
  }
  int number_;
};

// --- panels ----------------------------------------------------------------------------------------------------------

class PanelAccessible final : public Virtual {
 public:
  using Virtual::Virtual;

  [[nodiscard]] bool isValid() const override { return place() != nullptr; }
  [[nodiscard]] QAccessible::Role role() const override {
    return has_card(panel()) ? QAccessible::List : QAccessible::Pane;
  }
  [[nodiscard]] QAccessibleInterface* parent() const override {
    return canvas() != nullptr ? QAccessible::queryAccessibleInterface(canvas()) : nullptr;
  }
  [[nodiscard]] int childCount() const override {
    return place() != nullptr ? static_cast<int>(canvas()->cells(panel()).size()) : 0;
  }
  [[nodiscard]] QAccessibleInterface* child(int number) const override {
    if (number < 0 || number >= childCount()) return nullptr;
    return children_.at(number, [&] { return new CellAccessible(canvas(), panel(), number); });
  }
  [[nodiscard]] int indexOfChild(const QAccessibleInterface* child) const override {
    return children_.number_of(child);
  }
  // If cells contain other cells, the smallest one at the point.
  [[nodiscard]] QAccessibleInterface* childAt(int x, int y) const override {
    if (place() == nullptr) return nullptr;
    const QPointF at = canvas()->mapFromGlobal(QPoint(x, y));
    const std::vector<PanelCell>& cells = canvas()->cells(panel());
    const auto area = [](const PanelCell& cell) { return cell.rect.width() * cell.rect.height(); };
    int found = -1;
    for (int i = 0; i < static_cast<int>(cells.size()); ++i) {
      const PanelCell& cell = cells[static_cast<std::size_t>(i)];
      if (!cell.rect.contains(at)) continue;
      if (found < 0 || area(cell) < area(cells[static_cast<std::size_t>(found)])) found = i;
    }
    return found < 0 ? nullptr : child(found);
  }
  [[nodiscard]] QAccessibleInterface* focusChild() const override {
    if (place() == nullptr || canvas()->focusedPanel() != panel() || canvas()->current().none()) return nullptr;
    const std::vector<PanelCell>& cells = canvas()->cells(panel());
    const auto found = std::ranges::find(cells, canvas()->current(), &PanelCell::object);
    return found == cells.end() ? nullptr : child(static_cast<int>(found - cells.begin()));
  }
  [[nodiscard]] QRect rect() const override {
    return place() != nullptr ? on_screen(*canvas(), place()->card) : QRect();
  }
  [[nodiscard]] QString text(QAccessible::Text what) const override {
    if (place() == nullptr) return {};
    const Panel& shown = *canvas()->panels()[static_cast<std::size_t>(panel())];
    if (what == QAccessible::Name) return shown.title();
    if (what == QAccessible::Description) return shown.summary(canvas()->sceneNow());
    return {};
  }
  [[nodiscard]] QAccessible::State state() const override {
    QAccessible::State state;
    state.invalid = place() == nullptr;
    state.focusable = true;
    state.focused = place() != nullptr && canvas()->focusedPanel() == panel() && focusChild() == nullptr;
    return state;
  }

 private:
  mutable Children children_;
};

// --- the canvas ------------------------------------------------------------------------------------------------------

class CanvasAccessible final : public QAccessibleWidget {
 public:
  explicit CanvasAccessible(Canvas* canvas) : QAccessibleWidget(canvas, QAccessible::Grouping) {}

  [[nodiscard]] int childCount() const override {
    return canvas().document() != nullptr ? static_cast<int>(canvas().places().size()) : 0;
  }
  [[nodiscard]] QAccessibleInterface* child(int number) const override {
    if (number < 0 || number >= childCount()) return nullptr;
    return panel(canvas().places()[static_cast<std::size_t>(number)].panel);
  }
  [[nodiscard]] int indexOfChild(const QAccessibleInterface* child) const override {
    const int panel = panels_.number_of(child);
    const auto& places = canvas().places();
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (static_cast<int>(places[i].panel) == panel) return static_cast<int>(i);
    }
    return -1;
  }
  [[nodiscard]] QAccessibleInterface* childAt(int x, int y) const override {
    for (int i = 0; i < childCount(); ++i) {
      if (child(i)->rect().contains(x, y)) return child(i);
    }
    return nullptr;
  }
  [[nodiscard]] QAccessibleInterface* focusChild() const override {
    const std::optional<PanelId> focused = canvas().focusedPanel();
    if (childCount() == 0 || !focused) return QAccessibleWidget::focusChild();
    QAccessibleInterface* const at = panel(*focused);
    QAccessibleInterface* const cell = at->focusChild();
    return cell != nullptr ? cell : at;
  }

 private:
  [[nodiscard]] Canvas& canvas() const { return *static_cast<Canvas*>(widget()); }
  [[nodiscard]] QAccessibleInterface* panel(PanelId id) const {
    return panels_.at(static_cast<int>(id), [&] { return new PanelAccessible(&canvas(), id); });
  }
  mutable Children panels_;  // by PanelId
};

QAccessibleInterface* CellAccessible::parent() const {
  QAccessibleInterface* const root = canvas() != nullptr ? QAccessible::queryAccessibleInterface(canvas()) : nullptr;
  for (int i = 0; root != nullptr && i < root->childCount(); ++i) {
    QAccessibleInterface* const at = root->child(i);
    if (static_cast<PanelAccessible*>(at)->panel() == panel()) return at;
  }
  return nullptr;
}

QAccessibleInterface* make_interface(const QString&, QObject* object) {
  auto* const canvas = qobject_cast<Canvas*>(object);
  return canvas != nullptr ? new CanvasAccessible(canvas) : nullptr;
}

}  // namespace

void install_canvas_accessibility() {
  static const bool kInstalled = [] {
    QAccessible::installFactory(make_interface);
    return true;
  }();
  static_cast<void>(kInstalled);
}

void tell_focus(Canvas& canvas) {
  if (!QAccessible::isActive()) return;
  QAccessibleInterface* const root = QAccessible::queryAccessibleInterface(&canvas);
  QAccessibleInterface* const focused = root != nullptr ? root->focusChild() : nullptr;
  if (focused == nullptr) return;
  QAccessibleEvent event(focused, QAccessible::Focus);
  QAccessible::updateAccessibility(&event);
}

void tell_changed(Canvas& canvas) {
  if (!QAccessible::isActive()) return;
  QAccessibleEvent event(&canvas, QAccessible::ObjectReorder);
  QAccessible::updateAccessibility(&event);
}

}  // namespace kvscope::viz
