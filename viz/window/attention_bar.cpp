#include "viz/window/attention_bar.h"

#include <limits>

#include <QtCore/QFileInfo>
#include <QtWidgets/QLabel>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QSpinBox>

#include "viz/model/why.h"
#include "viz/window/flow_row.h"

namespace kvscope::viz {
namespace {

constexpr int kMostTileKeys = 1 << 16;

int as_int(std::int64_t value) {
  return static_cast<int>(std::clamp<std::int64_t>(value, 0, std::numeric_limits<int>::max()));
}

}  // namespace

AttentionBar::AttentionBar(QWidget* parent)
    : QWidget(parent),
      query_(new QSpinBox),
      head_(new QSpinBox),
      layer_(new QSpinBox),
      tile_(new QSpinBox),
      seq_(new QLabel),
      candidate_(new QLabel),
      open_(new QPushButton(tr("Candidate..."))),
      drop_(new QPushButton(tr("Tiled flow"))) {
  setAccessibleName(tr("Which query and candidate"));
  tile_->setRange(1, kMostTileKeys);
  auto* row = new FlowRow(this);
  row->setContentsMargins(8, 4, 8, 4);
  seq_->setAccessibleName(tr("Sequence of the flow"));
  row->addWidget(seq_);
  row->add_named(tr("query token:"), *query_);
  row->add_named(tr("head:"), *head_);
  row->add_named(tr("layer:"), *layer_);
  row->add_named(tr("keys of a tile:"), *tile_);
  candidate_->setAccessibleName(tr("Compared with the golden"));
  row->addWidget(candidate_);
  row->setAlignment(candidate_, Qt::AlignRight);
  open_->setAccessibleName(tr("Open a candidate"));
  open_->setToolTip(tr("Compare a kernel's output with the golden"));
  drop_->setAccessibleName(tr("Compare the tiled flow"));
  drop_->setToolTip(tr("Close the candidate and compare the tiled flow in f32 with the golden"));
  row->addWidget(open_);
  row->addWidget(drop_);
  for (QSpinBox* box : {query_, head_, layer_, tile_}) {
    box->setKeyboardTracking(false);
    connect(box, &QSpinBox::valueChanged, this, &AttentionBar::choose);
  }
  connect(open_, &QPushButton::clicked, this, &AttentionBar::candidate_wanted);
  connect(drop_, &QPushButton::clicked, this, [this] {
    if (document_) document_->attention().set_candidate({});
  });
  hide();
}

void AttentionBar::set_document(Document* document) {
  if (document_) document_->attention().disconnect(this);
  document_ = document;
  if (!document_) return;
  connect(&document_->attention(), &AttentionModel::changed, this, &AttentionBar::show_request);
  connect(&document_->attention(), &AttentionModel::errors_wanted, this, &AttentionBar::show_request);
  show_request();
}

void AttentionBar::choose() {
  if (quiet_ || !document_) return;
  FlowRequest request = document_->attention().request();
  request.query = TokIdx{query_->value()};
  request.head = HeadIdx{head_->value()};
  request.layer = LayerIdx{layer_->value()};
  request.tile_keys = tile_->value();
  document_->attention().choose(request);
}

void AttentionBar::show_request() {
  quiet_ = true;
  const AttentionModel& attention = document_->attention();
  const AttentionFlow* const flow = attention.flow();
  const FlowRequest& request = flow != nullptr ? flow->request : attention.request();
  seq_->setText(tr("Sequence %1").arg(request.seq.value));
  for (QSpinBox* box : {query_, head_, tile_}) box->setEnabled(flow != nullptr);
  layer_->setEnabled(document_->run().facts().scenario.has_value());
  layer_->setRange(0, as_int(why_limits(document_->run().facts()).layers - 1));
  layer_->setValue(as_int(request.layer.value));
  if (flow != nullptr) {
    query_->setRange(as_int(flow->first_query.value), as_int(flow->first_query.value + flow->queries - 1));
    head_->setRange(0, as_int(flow->heads - 1));
    query_->setValue(as_int(request.query.value));
    head_->setValue(as_int(request.head.value));
    tile_->setValue(as_int(request.tile_keys));
  }
  const QString& file = attention.candidate();
  candidate_->setText(file.isEmpty() ? tr("compared: the tiled flow")
                                     : tr("compared: %1").arg(QFileInfo(file).fileName()));
  candidate_->setToolTip(file);
  drop_->setVisible(!file.isEmpty());
  quiet_ = false;
}

}  // namespace kvscope::viz
