// One sentence on one line. A sentence without room is cut between words and ends with dots; the tool tip and screen
// readers have the whole sentence.
#pragma once

#include <QtWidgets/QLabel>

namespace kvscope::viz {

class StatusLine final : public QLabel {
  Q_OBJECT

 public:
  // `name`: the accessible name while there is no sentence.
  explicit StatusLine(const QString& name, QWidget* parent = nullptr);
  void set_sentence(const QString& sentence);
  [[nodiscard]] const QString& sentence() const { return sentence_; }
  [[nodiscard]] QSize minimumSizeHint() const override;  // a long sentence does not widen the window

 protected:
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  void fit();
  QString name_, sentence_;
};

}  // namespace kvscope::viz
