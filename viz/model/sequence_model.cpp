#include "viz/model/sequence_model.h"

#include <algorithm>

namespace kvscope::viz {

QString phase_name(Phase phase) {
  switch (phase) {
    case Phase::absent:
      return SequenceModel::tr("absent");
    case Phase::waiting:
      return SequenceModel::tr("waiting");
    case Phase::running:
      return SequenceModel::tr("running");
    case Phase::preempted:
      return SequenceModel::tr("preempted");
    case Phase::finished:
      return SequenceModel::tr("finished");
    case Phase::refused:
      return SequenceModel::tr("rejected");
  }
  return {};
}

void SequenceModel::set_document(Document* document) {
  if (document_) document_->disconnect(this);
  document_ = document;
  if (document_) {
    connect(document_, &Document::position_changed, this, &SequenceModel::refresh);
    // During the document's destruction its cursor no longer exists.
    connect(document_, &QObject::destroyed, this, [this] { set_document(nullptr); });
  }
  refresh();
}

void SequenceModel::set_watched(bool watched) {
  watched_ = watched;
  refresh();
}

int SequenceModel::row_of(SeqIdx seq) const {
  const auto at = std::lower_bound(rows_.begin(), rows_.end(), seq, [](const Row& r, SeqIdx s) { return r.seq < s; });
  return at != rows_.end() && at->seq == seq ? static_cast<int>(at - rows_.begin()) : -1;
}

// --- updating --------------------------------------------------------------------------------------------------------

std::vector<SequenceModel::Row> SequenceModel::rows_now() const {
  std::vector<Row> now;
  if (!document_) return now;
  const State& state = document_->cursor().state();
  now.reserve(state.live.size());
  for (const SeqIdx seq : state.live) {
    const SequenceState& s = state.sequences[seq.value];
    std::int64_t pages = 0;
    for (std::int64_t p = 0; p < s.pages.size(); ++p) pages += s.pages[p] >= 0 ? 1 : 0;
    now.push_back({seq, s.phase, s.tokens, s.prompt_tokens, s.generate_tokens, s.hit_tokens, pages, s.preemptions});
  }
  return now;
}

void SequenceModel::refresh() {
  if (!watched_ && document_) return;
  const std::vector<Row> now = rows_now();
  remove_missing(now);
  insert_new(now);
  update_changed(now);
}

void SequenceModel::remove_missing(const std::vector<Row>& now) {
  const auto stays = [&](const Row& row) {
    return std::binary_search(now.begin(), now.end(), row, [](const Row& a, const Row& b) { return a.seq < b.seq; });
  };
  for (int last = rowCount() - 1; last >= 0; --last) {
    if (stays(rows_[static_cast<std::size_t>(last)])) continue;
    int first = last;
    while (first > 0 && !stays(rows_[static_cast<std::size_t>(first - 1)])) --first;
    beginRemoveRows({}, first, last);
    rows_.erase(rows_.begin() + first, rows_.begin() + last + 1);
    endRemoveRows();
    last = first;
  }
}

void SequenceModel::insert_new(const std::vector<Row>& now) {
  // After the removals rows_ is a subsequence of `now`.
  for (std::size_t first = 0; first < now.size(); ++first) {
    if (first < rows_.size() && rows_[first].seq == now[first].seq) continue;
    std::size_t end = first + 1;
    while (end < now.size() && (first >= rows_.size() || now[end].seq != rows_[first].seq)) ++end;
    beginInsertRows({}, static_cast<int>(first), static_cast<int>(end) - 1);
    rows_.insert(rows_.begin() + static_cast<std::ptrdiff_t>(first), now.begin() + static_cast<std::ptrdiff_t>(first),
                 now.begin() + static_cast<std::ptrdiff_t>(end));
    endInsertRows();
    first = end - 1;
  }
}

void SequenceModel::update_changed(const std::vector<Row>& now) {
  for (std::size_t r = 0; r < now.size(); ++r) {
    if (rows_[r] == now[r]) continue;
    const std::size_t first = r;
    for (; r < now.size() && rows_[r] != now[r]; ++r) rows_[r] = now[r];
    Q_EMIT dataChanged(index(static_cast<int>(first), 0), index(static_cast<int>(r) - 1, kColumns - 1));
  }
}

// --- QAbstractTableModel ---------------------------------------------------------------------------------------------

int SequenceModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

int SequenceModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(kColumns);
}

QString SequenceModel::text(const Row& row, int column) const {
  switch (column) {
    case kSequence:
      return QString::number(row.seq.value);
    case kPhase:
      return phase_name(row.phase);
    case kTokens:
      return QString::number(row.tokens);
    case kPrompt:
      return QString::number(row.prompt);
    case kGenerated:
      return tr("%1 of %2").arg(QString::number(row.generated()), QString::number(row.generate));
    case kHits:
      return QString::number(row.hits);
    case kPages:
      return QString::number(row.pages);
    default:
      return QString::number(row.preemptions);
  }
}

QVariant SequenceModel::data(const QModelIndex& index, int role) const {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
  const Row& row = rows_[static_cast<std::size_t>(index.row())];
  if (role == Qt::DisplayRole) return text(row, index.column());
  if (role == Qt::TextAlignmentRole && index.column() > kPhase) return QVariant(Qt::AlignRight | Qt::AlignVCenter);
  if (role == Qt::AccessibleTextRole)
    return QStringLiteral("%1 %2").arg(headerData(index.column(), Qt::Horizontal).toString(),
                                       text(row, index.column()));
  if (role == kOwnerRole) return QVariant::fromValue<qlonglong>(row.seq.value);
  if (role == kSortRole) {
    const std::array<std::int64_t, kColumns> numbers{row.seq.value,   static_cast<std::int64_t>(row.phase),
                                                     row.tokens,      row.prompt,
                                                     row.generated(), row.hits,
                                                     row.pages,       row.preemptions};
    return QVariant::fromValue<qlonglong>(numbers[static_cast<std::size_t>(index.column())]);
  }
  return {};
}

QVariant SequenceModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || section < 0 || section >= kColumns) return {};
  const std::array<QString, kColumns> names{tr("Sequence"),  tr("Phase"),       tr("Tokens"), tr("Prompt"),
                                            tr("Generated"), tr("Prefix hits"), tr("Pages"),  tr("Preemptions")};
  const std::array<QString, kColumns> tips{
      tr("The n-th request by arrival, from 0"),
      tr("Waiting, running, or preempted: waiting again after its blocks were taken"),
      tr("Its tokens in the cache now"),
      tr("Tokens of its prompt"),
      tr("Generated tokens in the cache, of the number requested"),
      tr("Tokens found in the cache at its last admission"),
      tr("Pages that have a block"),
      tr("Number of times that its blocks were taken away")};
  if (role == Qt::DisplayRole) return names[static_cast<std::size_t>(section)];
  if (role == Qt::ToolTipRole) return tips[static_cast<std::size_t>(section)];
  if (role == Qt::TextAlignmentRole)
    return QVariant((section > kPhase ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
  return {};
}

}  // namespace kvscope::viz
