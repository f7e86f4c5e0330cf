// "Why this address": the chain of formulas from the pinned (else the hovered) token to its byte, link by link. The
// text equals the output of `kvscope explain` byte for byte; a click on the name of a link selects the object.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <QtCore/QPointer>
#include <QtCore/QTimer>
#include <QtWidgets/QWidget>

#include "viz/model/why.h"
#include "viz/view/theme.h"
#include "viz/window/asker.h"

class QComboBox;
class QLabel;
class QSpinBox;
class QTextBrowser;
class QUrl;

namespace kvscope::viz {

class WhyPanel final : public QWidget {
  Q_OBJECT
 public:
  static constexpr int kDebounce = 50;   // [ms] from a change of the question to asking it
  static constexpr int kPatience = 250;  // [ms] without an answer before the panel shows that it is working

  explicit WhyPanel(Asker& asker, QWidget* parent = nullptr);

  // `facts` are the document's, shared with the asking thread. Null: no document is open.
  void set_document(Document* document, std::shared_ptr<const Facts> facts);
  void set_theme(const Theme& theme, double font_scale);
  void set_part(const WhyPart& part);  // clamped to the scenario's limits
  [[nodiscard]] WhyPart part() const;

  [[nodiscard]] QString text() const;  // the shown text
  void copy() const;

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  void build();
  void ask_later();
  void follow_tile();
  void ask();
  void show_words(const QString& words);
  void show_faults(const QStringList& faults);
  void show_explanation(const trace::Question& question, const trace::Explanation& explanation);
  void paint_text();
  void follow(const QUrl& link);

  enum class Showing : std::uint8_t { words, faults, explanation };
  Asker& asker_;
  QPointer<Document> document_;
  std::shared_ptr<const Facts> facts_;
  std::optional<trace::Question> asked_;  // the newest
  std::optional<WhyPart> named_;          // by the selected object of the tile
  Showing showing_ = Showing::words;
  QString words_;
  QStringList faults_;
  std::vector<WhySpan> spans_;
  std::int64_t indent_ = 0;  // [characters]
  const Theme* theme_ = &theme(ThemeKind::dark);
  double font_scale_ = 1;
  QTimer debounce_, patience_;
  QSpinBox *layer_ = nullptr, *head_ = nullptr, *dim_ = nullptr;
  QComboBox* kv_ = nullptr;
  QLabel* working_ = nullptr;
  QTextBrowser* browser_ = nullptr;
};

}  // namespace kvscope::viz
