#include "viz/window/tile_bar.h"

#include <QtWidgets/QComboBox>
#include <QtWidgets/QLabel>
#include <QtWidgets/QSpinBox>

#include "viz/window/flow_row.h"

namespace kvscope::viz {
namespace {

QString words_of(const trace::TileOpened& tile) {
  return QObject::tr("%1 of sequence %2, layer %3, head %4, from token %5, %6")
      .arg(tile.value ? QStringLiteral("V") : QStringLiteral("K"))
      .arg(tile.seq.value)
      .arg(tile.layer.value)
      .arg(tile.head.value)
      .arg(tile.first_token.value)
      .arg(tile.tma ? QObject::tr("by TMA") : QObject::tr("through LDS"));
}

}  // namespace

TileBar::TileBar(QWidget* parent)
    : QWidget(parent),
      source_(new QComboBox),
      kv_(new QComboBox),
      path_(new QComboBox),
      layer_(new QSpinBox),
      head_(new QSpinBox),
      what_(new QLabel) {
  setAccessibleName(tr("Which tile"));
  kv_->addItems({QStringLiteral("K"), QStringLiteral("V")});
  path_->addItems({tr("by TMA"), tr("through LDS"), tr("by gather4"), tr("rope values by TMA")});  // by TilePath
  auto* row = new FlowRow(this);
  row->setContentsMargins(8, 4, 8, 4);
  row->add_named(tr("Tile:"), *source_);
  row->add_named(tr("of:"), *kv_);
  row->add_named(tr("layer:"), *layer_);
  row->add_named(tr("head:"), *head_);
  row->add_named(tr("path:"), *path_);
  what_->setAccessibleName(tr("How to choose the token"));
  row->addWidget(what_);
  connect(source_, &QComboBox::activated, this, [this](int index) {
    if (document_) document_->choose_recorded_tile(index - 1);
  });
  for (QComboBox* box : {kv_, path_}) connect(box, &QComboBox::currentIndexChanged, this, &TileBar::choose);
  for (QSpinBox* box : {layer_, head_}) connect(box, &QSpinBox::valueChanged, this, &TileBar::choose);
  hide();
}

void TileBar::set_document(Document* document) {
  if (document_) document_->disconnect(this);
  document_ = document;
  if (!document_) return;
  connect(document_, &Document::tile_changed, this, &TileBar::show_request);
  connect(document_, &Document::tile_wanted, this, &TileBar::show_request);
  connect(document_, &Document::pinned_changed, this, &TileBar::show_hint);
  const WhyLimits limits = why_limits(document_->run().facts());
  quiet_ = true;
  layer_->setRange(0, static_cast<int>(limits.layers - 1));
  head_->setRange(0, static_cast<int>(limits.heads - 1));
  kv_->setEnabled(limits.has_v);
  quiet_ = false;
  show_request();
}

void TileBar::choose() {
  if (quiet_ || !document_) return;
  TileRequest request = document_->tile_request();
  request.kv = kv_->currentIndex() == 1 ? KOrV::v : KOrV::k;
  request.path = static_cast<TilePath>(path_->currentIndex());
  request.layer = LayerIdx{layer_->value()};
  request.head = HeadIdx{head_->value()};
  document_->choose_tile(request);
}

void TileBar::show_request() {
  quiet_ = true;
  const auto& recorded = document_->recorded();
  if (source_->count() != static_cast<int>(recorded.size()) + 1) {
    source_->clear();
    source_->addItem(tr("of the selected token"));
    for (const RecordedTile& tile : recorded) source_->addItem(words_of(tile.opened));
  }
  const auto source = document_->recorded_tile();
  source_->setCurrentIndex(source ? static_cast<int>(*source) + 1 : 0);
  const TileRequest& request = document_->tile_request();
  kv_->setCurrentIndex(request.kv == KOrV::v ? 1 : 0);
  path_->setCurrentIndex(static_cast<int>(request.path));
  layer_->setValue(static_cast<int>(request.layer.value));
  head_->setValue(static_cast<int>(request.head.value));
  const bool has_v = why_limits(document_->run().facts()).has_v;
  for (QWidget* field : std::initializer_list<QWidget*>{path_, layer_, head_}) field->setEnabled(!source);
  kv_->setEnabled(!source && has_v);
  quiet_ = false;
  show_hint();
}

// Of no use any more once something is selected, or where the tile is one of the trace.
void TileBar::show_hint() {
  const bool wanted = document_->pinned().none() && !document_->recorded_tile();
  what_->setText(wanted ? tr("Select a token to see its tile") : QString());
  what_->setVisible(wanted);
}

}  // namespace kvscope::viz
