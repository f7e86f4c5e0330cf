// "Why this address": the chain from the token that is pinned (else under the pointer) to its byte, link by link. The
// text is the command line's `kvscope explain`, byte for byte; names of links lead to what they name.
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
  static constexpr int kDebounce = 50;   // [ms] without another question before one is asked
  static constexpr int kPatience = 250;  // [ms] without an answer before the panel says that it is working

  explicit WhyPanel(Asker& asker, QWidget* parent = nullptr);

  // `facts` are the document's, as the asking thread may keep them. Null: nothing is open.
  void set_document(Document* document, std::shared_ptr<const Facts> facts);
  void set_theme(const Theme& theme, double font_scale);
  void set_part(const WhyPart& part);  // cut to the scenario's limits
  [[nodiscard]] WhyPart part() const;

  [[nodiscard]] QString text() const;  // what stands there
  void copy() const;

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  void build();
  void ask_later();
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
