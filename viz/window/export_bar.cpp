#include "viz/window/export_bar.h"

#include <algorithm>

#include <QtWidgets/QCheckBox>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QDoubleSpinBox>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QLabel>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QSpinBox>
#include <QtWidgets/QToolButton>

#include "viz/window/flow_row.h"
#include "viz/window/icons.h"

namespace kvscope::viz {
namespace {

constexpr double kLargestScale = 8;
constexpr std::int64_t kUsualFrames = 60;

template <class Field>
Field* add(QHBoxLayout& row, const QString& label, const QString& accessible, Field* field) {
  if (!label.isEmpty()) row.addWidget(new QLabel(label));
  field->setAccessibleName(accessible);
  field->setToolTip(accessible);
  row.addWidget(field);
  return field;
}

// Labels and fields that stay on one line, and are shown and hidden together.
QHBoxLayout* part(FlowRow& row, QWidget*& holder) {
  holder = new QWidget;
  auto* inner = new QHBoxLayout(holder);
  inner->setContentsMargins(0, 0, 0, 0);
  row.addWidget(holder);
  return inner;
}

}  // namespace

ExportBar::ExportBar(QWidget* parent) : QFrame(parent) {
  setProperty("bar", QStringLiteral("true"));
  setAccessibleName(tr("Export picture"));
  build();
  connect(format_, &QComboBox::currentIndexChanged, this, &ExportBar::show_fields);
  connect(first_, &QSpinBox::valueChanged, this, [this](int first) { last_->setMinimum(first); });
  show_fields();
  hide();
}

void ExportBar::build() {
  auto* fields = new FlowRow(this);
  fields->setContentsMargins(12, 6, 8, 6);
  QWidget *format_part = nullptr, *size_part = nullptr, *theme_part = nullptr, *end_part = nullptr;
  format_ = add(*part(*fields, format_part), tr("Picture"), tr("Format"), new QComboBox);
  format_->addItem(tr("PNG"), static_cast<int>(PictureFormat::png));
  format_->addItem(tr("SVG"), static_cast<int>(PictureFormat::svg));
  format_->addItem(tr("PDF"), static_cast<int>(PictureFormat::pdf));
  format_->addItem(tr("TikZ for LaTeX"), static_cast<int>(PictureFormat::tikz));
  format_->addItem(tr("animated GIF"), static_cast<int>(PictureFormat::gif));
  format_->addItem(tr("WebM video"), static_cast<int>(PictureFormat::webm));
  format_->addItem(tr("MP4 video"), static_cast<int>(PictureFormat::mp4));
  QHBoxLayout* size = part(*fields, size_part);
  width_ = add(*size, QString(), tr("Width in pixels"), new QSpinBox);
  height_ = add(*size, tr("x"), tr("Height in pixels"), new QSpinBox);
  for (QSpinBox* side : {width_, height_}) side->setRange(kSmallestPicture, kLargestPicture);
  QHBoxLayout* scale = part(*fields, scale_part_);
  scale_ = add(*scale, tr("scale"), tr("Pixels of the file per pixel of the picture"), new QDoubleSpinBox);
  scale_->setRange(1, kLargestScale);
  scale_->setSingleStep(1);
  scale_->setDecimals(1);
  QHBoxLayout* frames = part(*fields, frames_parts_[0]);
  unit_ = new QLabel;
  frames->addWidget(unit_);
  first_ = add(*frames, QString(), tr("First"), new QSpinBox);
  last_ = add(*frames, tr("to"), tr("Last"), new QSpinBox);
  rate_ = add(*part(*fields, frames_parts_[1]), tr("at"), tr("Steps per second"), new QDoubleSpinBox);
  rate_->setRange(kSlowestFrames, kFastestFrames);
  rate_->setDecimals(1);
  rate_->setValue(4);
  rate_->setSuffix(tr(" /s"));
  motion_ = add(*part(*fields, frames_parts_[2]), QString(), tr("Show what moves between two steps"),
                new QCheckBox(tr("motion")));
  theme_ = add(*part(*fields, theme_part), QString(), tr("Theme of the picture"), new QComboBox);
  theme_->addItems({tr("dark"), tr("light"), tr("high contrast")});  // in the order of kThemeKinds
  QHBoxLayout* end = part(*fields, end_part);
  fields->setAlignment(end_part, Qt::AlignRight);
  auto* save = new QPushButton(tr("Save as..."));
  save->setAccessibleName(tr("Save the picture"));
  end->addWidget(save);
  close_ = new QToolButton;
  close_->setAccessibleName(tr("Close the export bar"));
  close_->setToolTip(tr("Close (Esc)"));
  close_->setFocusPolicy(Qt::TabFocus);
  end->addWidget(close_);
  connect(save, &QPushButton::clicked, this, &ExportBar::wanted);
  connect(close_, &QToolButton::clicked, this, [this] {
    Q_EMIT closed();  // the focus goes back before the field that has it is hidden
    hide();
  });
}

void ExportBar::set_theme(const Theme& theme) {
  close_->setIcon(icon(Icon::close, theme));
}

void ExportBar::open(QSize canvas, ThemeKind theme, const Film& film) {
  width_->setValue(canvas.width());
  height_->setValue(canvas.height());
  theme_->setCurrentIndex(static_cast<int>(theme));
  of_ = film.of;
  const bool is_run = of_ == Film::Of::steps, is_tile = of_ == Film::Of::tile;
  unit_->setText(is_run ? tr("steps") : is_tile ? tr("events of the tile") : tr("tiles of the flow"));
  const auto name = [](QSpinBox& box, const QString& text) {
    box.setAccessibleName(text);
    box.setToolTip(text);
  };
  name(*first_, is_run ? tr("First step") : is_tile ? tr("First event of the tile") : tr("First tile of the flow"));
  name(*last_, is_run ? tr("Last step") : is_tile ? tr("Last event of the tile") : tr("Last tile of the flow"));
  const int last = static_cast<int>(film.last);
  first_->setRange(0, last);
  last_->setRange(0, last);
  first_->setValue(is_run ? static_cast<int>(std::clamp<std::int64_t>(film.now, 0, last)) : 0);
  last_->setValue(is_run ? static_cast<int>(std::min<std::int64_t>(first_->value() + kUsualFrames - 1, last)) : last);
  motion_->setChecked(film.motion);
  show();
  format_->setFocus(Qt::ShortcutFocusReason);
}

PictureFormat ExportBar::format() const {
  return static_cast<PictureFormat>(format_->currentData().toInt());
}

bool ExportBar::is_animation() const {
  return is_film(format());
}

void ExportBar::show_fields() {
  scale_part_->setVisible(format() == PictureFormat::png || is_animation());
  for (QWidget* part : frames_parts_) part->setVisible(is_animation());
}

QString ExportBar::suffix() const {
  switch (format()) {
    case PictureFormat::svg:
      return QStringLiteral("svg");
    case PictureFormat::pdf:
      return QStringLiteral("pdf");
    case PictureFormat::tikz:
      return QStringLiteral("tikz");
    case PictureFormat::gif:
      return QStringLiteral("gif");
    case PictureFormat::webm:
      return QStringLiteral("webm");
    case PictureFormat::mp4:
      return QStringLiteral("mp4");
    default:
      return QStringLiteral("png");
  }
}

QString ExportBar::name_filter() const {
  return QStringLiteral("%1 (*.%2)").arg(format_->currentText(), suffix());
}

std::int64_t ExportBar::first_row() const {
  return std::int64_t{first_->value()} + 1;
}

void ExportBar::fill(Picture& picture) const {
  picture.size = QSize(width_->value(), height_->value());
  picture.theme = kThemeKinds[static_cast<std::size_t>(theme_->currentIndex())];
  picture.scale = format() == PictureFormat::png || is_animation() ? scale_->value() : 1;
  picture.last_row.reset();
  if (!is_animation()) return;
  picture.frames_per_second = rate_->value();
  picture.motion = motion_->isChecked();
  if (of_ == Film::Of::tile) {
    picture.tile_event = first_->value();
    picture.last_tile_event = last_->value();
  } else if (of_ == Film::Of::flow) {
    picture.flow_tiles = first_->value();
    picture.last_flow_tile = last_->value();
  } else {
    picture.last_row = std::int64_t{last_->value()} + 1;
  }
}

}  // namespace kvscope::viz
