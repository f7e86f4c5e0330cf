#include "viz/window/start_page.h"

#include <QtCore/QDir>
#include <QtCore/QFileInfo>
#include <QtGui/QAction>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QLabel>
#include <QtWidgets/QListView>
#include <QtWidgets/QListWidget>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QVBoxLayout>

#include "viz/window/gallery_delegate.h"
#include "viz/window/icons.h"
#include "viz/window/shortcuts.h"
#include "viz/window/theme_choice.h"

namespace kvscope::viz {
namespace {

constexpr double kTitleSize = 26, kDropSize = 36;  // [px] at font scale 1
constexpr int kLinesWithDrop = 26;                 // lines of text that a page with the whole drop area is high

QLabel* make_title(const QString& text) {
  auto* title = new QLabel(text);
  title->setProperty("title", true);
  return title;
}

QLabel* make_quiet(const QString& text) {
  auto* label = new QLabel(text);
  label->setProperty("quiet", true);
  label->setWordWrap(true);
  return label;
}

// A heading above a list or a card.
QWidget* section(const QString& heading, QWidget* content) {
  auto* part = new QWidget;
  auto* column = new QVBoxLayout(part);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(8);
  column->addWidget(make_title(heading));
  column->addWidget(content, 1);
  return part;
}

QPushButton* button_of(const QString& text, QAction& action) {
  auto* button = new QPushButton(text);
  button->setAccessibleName(action.objectName());
  const auto show = [button, &action] {
    button->setEnabled(action.isEnabled());
    button->setToolTip(action.toolTip());
  };
  show();
  QObject::connect(&action, &QAction::changed, button, show);
  QObject::connect(button, &QPushButton::clicked, &action, &QAction::trigger);
  return button;
}

}  // namespace

StartPage::StartPage(GalleryModel& gallery, const Labs& labs, RecentFiles& recent, const Actions& actions,
                     QWidget* parent)
    : QWidget(parent), recent_(recent) {
  setAccessibleName(tr("Start page"));
  title_ = new QLabel(tr("kvscope"));
  auto* words = make_quiet(tr("Watch requests fill the block pool, step back, ask why."));
  auto* left = build_gallery(gallery);
  auto* right = new QWidget;
  auto* right_column = new QVBoxLayout(right);
  right_column->setContentsMargins(0, 0, 0, 0);
  right_column->setSpacing(20);
  if (!labs.entries.empty() || !labs.why_empty.empty()) right_column->addWidget(build_labs(labs), 2);
  right_column->addWidget(build_recent(), 1);
  right_column->addWidget(build_drop(actions));

  auto* parts = new QHBoxLayout;
  parts->setSpacing(28);
  parts->addWidget(left, 3);
  parts->addWidget(right, 2);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(32, 24, 32, 28);
  column->setSpacing(6);
  auto* head = new QHBoxLayout;
  auto* name = new QVBoxLayout;
  name->setSpacing(6);
  name->addWidget(title_);
  name->addWidget(words);
  head->addLayout(name, 1);
  head->addWidget(button_of(tr("Take the tour"), *actions[Do::tour]), 0, Qt::AlignBottom);
  column->addLayout(head);
  column->addSpacing(14);
  column->addLayout(parts, 1);
  setFocusProxy(gallery_);
  connect(&recent_, &RecentFiles::changed, this, &StartPage::show_recent);
  show_recent();
}

QWidget* StartPage::build_gallery(GalleryModel& gallery) {
  gallery_ = new QListView;
  gallery_->setObjectName(QStringLiteral("gallery"));
  gallery_->setProperty("choices", true);
  gallery_->setAccessibleName(tr("Gallery of scenarios"));
  gallery_->setModel(&gallery);
  delegate_ = new GalleryDelegate(gallery_);
  gallery_->setItemDelegate(delegate_);
  gallery_->setResizeMode(QListView::Adjust);
  gallery_->setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
  gallery_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  gallery_->setFrameShape(QFrame::NoFrame);
  gallery_->setMouseTracking(true);
  gallery_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  connect(gallery_, &QListView::activated, this,
          [this](const QModelIndex& index) { Q_EMIT chosen(index.data(GalleryModel::kPathRole).toString()); });
  if (gallery.rowCount() > 0) return section(tr("Gallery"), gallery_);
  auto* card = new QFrame;
  card->setProperty("card", true);
  auto* why = make_quiet(gallery.why_empty());
  why->setObjectName(QStringLiteral("gallery_empty"));
  why->setAccessibleName(tr("Why the gallery is empty"));
  why->setTextInteractionFlags(Qt::TextSelectableByMouse);
  why->setAlignment(Qt::AlignTop | Qt::AlignLeft);
  auto* inside = new QVBoxLayout(card);
  inside->setContentsMargins(14, 12, 14, 12);
  inside->addWidget(why);
  gallery_->setParent(card);
  gallery_->hide();
  return section(tr("Gallery"), card);
}

QWidget* StartPage::build_labs(const Labs& labs) {
  auto* list = new QListWidget;
  list->setObjectName(QStringLiteral("labs"));
  list->setProperty("card", true);
  list->setProperty("choices", true);
  list->setAccessibleName(tr("Labs of the course"));
  list->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  list->setWordWrap(true);
  for (const LabEntry& lab : labs.entries) {
    const QString goal = QString::fromStdString(lab.goal);
    const QString minutes = tr("%1 min").arg(QString::number(lab.minutes));
    auto* item = new QListWidgetItem(
        QStringLiteral("%1  %2\n%3%4")
            .arg(QString::number(lab.number).rightJustified(2, QLatin1Char('0')), QString::fromStdString(lab.title),
                 minutes, goal.isEmpty() ? QString() : QStringLiteral(": ") + goal),
        list);
    item->setToolTip(QDir::toNativeSeparators(QString::fromStdString(lab.handout)));
  }
  if (labs.entries.empty()) {
    auto* none = new QListWidgetItem(QString::fromStdString(labs.why_empty), list);
    none->setFlags(Qt::NoItemFlags);
  }
  connect(list, &QListWidget::itemActivated, this,
          [this, list](const QListWidgetItem* item) { Q_EMIT lab_chosen(list->row(item)); });
  return section(tr("Labs"), list);
}

QWidget* StartPage::build_recent() {
  recent_list_ = new QListWidget;
  recent_list_->setObjectName(QStringLiteral("recent"));
  recent_list_->setProperty("card", true);
  recent_list_->setProperty("choices", true);
  recent_list_->setAccessibleName(tr("Recent files"));
  recent_list_->setTextElideMode(Qt::ElideMiddle);
  recent_list_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  connect(recent_list_, &QListWidget::itemActivated, this,
          [this](const QListWidgetItem* item) { Q_EMIT chosen(item->data(Qt::UserRole).toString()); });
  return section(tr("Recent files"), recent_list_);
}

QWidget* StartPage::build_drop(const Actions& actions) {
  auto* area = new QFrame;
  area->setProperty("drop", true);
  area->setAccessibleName(tr("Drop a scenario, a trace, a golden bundle or results of a lab here"));
  drop_sign_ = new QLabel;
  drop_sign_->setAlignment(Qt::AlignCenter);
  drop_words_ = new QLabel(area->accessibleName());
  drop_words_->setAlignment(Qt::AlignCenter);
  drop_words_->setWordWrap(true);
  auto* button = button_of(tr("Open..."), *actions[Do::open]);
  auto* column = new QVBoxLayout(area);
  column->setContentsMargins(20, 14, 20, 14);
  column->setSpacing(10);
  column->addWidget(drop_sign_);
  column->addWidget(drop_words_);
  column->addWidget(button, 0, Qt::AlignCenter);
  return area;
}

void StartPage::show_recent() {
  recent_list_->clear();
  for (const QString& path : recent_.paths()) {
    const QFileInfo file(path);
    auto* item = new QListWidgetItem(
        QStringLiteral("%1\n%2").arg(file.fileName(), QDir::toNativeSeparators(file.path())), recent_list_);
    item->setData(Qt::UserRole, path);
    item->setToolTip(QDir::toNativeSeparators(path));
    if (file.exists()) continue;
    item->setFlags(Qt::NoItemFlags);
    item->setToolTip(tr("%1 does not exist").arg(QDir::toNativeSeparators(path)));
  }
  if (recent_list_->count() > 0) return;
  auto* none = new QListWidgetItem(tr("Files that you open are listed here."), recent_list_);
  none->setFlags(Qt::NoItemFlags);
}

void StartPage::set_theme(const Theme& theme, double font_scale) {
  title_->setFont(ui_font(kTitleSize * font_scale, QFont::DemiBold));
  delegate_->set_theme(theme, font_scale);
  gallery_->doItemsLayout();
  const int side = qRound(kDropSize * font_scale);
  drop_sign_->setPixmap(icon(Icon::drop, theme).pixmap(QSize(side, side), devicePixelRatioF()));
  show_drop();
}

void StartPage::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  show_drop();
}

// In a low window only the button is left of the drop area.
void StartPage::show_drop() {
  const bool room = height() >= kLinesWithDrop * fontMetrics().lineSpacing();
  drop_sign_->setVisible(room);
  drop_words_->setVisible(room);
}

}  // namespace kvscope::viz
