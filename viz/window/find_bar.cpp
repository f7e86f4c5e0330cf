#include "viz/window/find_bar.h"

#include <utility>

#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QStyle>
#include <QtWidgets/QToolButton>
#include <QtWidgets/QVBoxLayout>

#include "viz/playback/find.h"
#include "viz/playback/tile_selection.h"
#include "viz/window/fault_words.h"
#include "viz/window/icons.h"

namespace kvscope::viz {

FindBar::FindBar(Asker& asker, QWidget* parent)
    : QFrame(parent), asker_(asker), field_(new QLineEdit), words_(new QLabel), close_(new QToolButton) {
  setProperty("bar", QStringLiteral("true"));
  setAccessibleName(tr("Find"));
  auto* label = new QLabel(tr("Find"));
  label->setBuddy(field_);
  field_->setAccessibleName(tr("Block, token, sequence, step, event or byte"));
  field_->setPlaceholderText(tr("7   3:70   seq 3   page 3:2   step 12   event 5000   evicted   byte 0x1f40"));
  field_->setClearButtonEnabled(true);
  words_->setWordWrap(true);
  words_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  words_->setAccessibleName(tr("Result"));
  words_->hide();
  close_->setAccessibleName(tr("Close the find bar"));
  close_->setToolTip(tr("Close (Esc)"));
  close_->setFocusPolicy(Qt::TabFocus);

  auto* row = new QHBoxLayout;
  row->addWidget(label);
  row->addWidget(field_, 1);
  row->addWidget(close_);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(12, 6, 8, 6);
  column->setSpacing(4);
  column->addLayout(row);
  column->addWidget(words_);

  connect(field_, &QLineEdit::returnPressed, this, &FindBar::go);
  connect(field_, &QLineEdit::textEdited, this, [this] { say({}, false); });
  connect(close_, &QToolButton::clicked, this, [this] {
    Q_EMIT closed();  // the focus goes back before the field that has it is hidden
    hide();
  });
  connect(&asker_, &Asker::located, this, [this](const trace::Question& place) {
    if (!document_) return;
    document_->pin(of_token(place.seq, place.token));
    say({tr("sequence %1, token %2, layer %3, KV head %4, dim %5 of %6")
             .arg(QString::number(place.seq.value), QString::number(place.token.value),
                  QString::number(place.layer.value), QString::number(place.head.value),
                  QString::number(place.dim.value), place.kv == KOrV::k ? tr("K") : tr("V"))},
        false);
    Q_EMIT located(place);
  });
  connect(&asker_, &Asker::not_located, this, [this](const QStringList& faults) { say(faults, true); });
  hide();
}

void FindBar::set_document(Document* document, std::shared_ptr<const Facts> facts) {
  if (document_) document_->disconnect(this);
  document_ = document;
  facts_ = std::move(facts);
  say({}, false);
  if (!document_) {
    hide();
    return;
  }
  connect(document_, &Document::byte_wanted, this, &FindBar::locate);
  connect(document_, &Document::stopped, this, [this](const QString& reason) {
    if (isVisible() && field_->hasFocus()) say({reason}, false);
  });
}

void FindBar::set_theme(const Theme& theme, double font_scale) {
  close_->setIcon(icon(Icon::close, theme));
  field_->setFont(mono_font(12 * font_scale));  // the font for words has a ligature for 0x
}

void FindBar::open() {
  show();
  field_->setFocus(Qt::ShortcutFocusReason);
  field_->selectAll();
}

QString FindBar::fault() const {
  return words_->isHidden() || !words_->property("fault").toBool() ? QString() : words_->text();
}

void FindBar::go() {
  if (!document_) return;
  say({}, false);
  try {
    const Target target = parse_find(field_->text().toStdString(), document_->run().facts());
    document_->go_to(target);
    const auto* selection = std::get_if<Selection>(&target);
    if (selection == nullptr) return;
    QStringList words{QString::fromStdString(
        describe(document_->cursor().state(), document_->run().facts(), document_->tile(), *selection))};
    if (selection->kind == Selection::Kind::token && !document_->pinned_lit().token) {
      const auto step = first_step_of(document_->run(), selection->seq, selection->token);
      if (step) words << tr("It is in the cache after step %1 for the first time: find step %1.").arg(step->value);
    }
    say(words, false);
  } catch (...) {
    say(current_fault_lines(), true);
  }
}

void FindBar::locate(qint64 offset) {
  if (!facts_->scenario) {
    say({tr("This file has no scenario: bytes of the pool cannot be located without the model's sizes.")}, true);
    return;
  }
  say({tr("looking for byte %1").arg(offset)}, false);
  asker_.locate(facts_, document_->path(), offset, document_->cursor().state().step);
}

void FindBar::say(const QStringList& lines, bool fault) {
  words_->setProperty("fault", fault);
  words_->setProperty("quiet", !fault);
  words_->style()->unpolish(words_);
  words_->style()->polish(words_);
  words_->setText(lines.join(QLatin1Char('\n')));
  words_->setAccessibleName(lines.isEmpty() ? tr("Result") : QString());  // a name would hide the text
  words_->setVisible(!lines.isEmpty());
}

}  // namespace kvscope::viz
