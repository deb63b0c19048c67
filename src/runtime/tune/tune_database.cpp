#include "runtime/tune/tune_database.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <charconv>
#include <cmath>

#include "ir/fail.h"
#include "ir/non_copyable.h"
#include "lowering/fuse/kernel_body.h"
#include "lowering/plan/program.h"

namespace braid {
namespace {

constexpr int kFormat = 1;
constexpr int kBusyMs = 30'000;  // how long a process waits for another one's write
// Limit of a query: seconds, or a scan of some millions of trials.
constexpr int kStepsOfATurn = 1000, kMostTurns = 100'000;
constexpr const char* kTable = R"(
  CREATE TABLE IF NOT EXISTS trials (
    kernel TEXT NOT NULL, symbols TEXT NOT NULL, arch TEXT NOT NULL, device TEXT NOT NULL,
    measure TEXT NOT NULL, toolchain TEXT NOT NULL, config TEXT NOT NULL,
    text TEXT NOT NULL, ns REAL, note TEXT NOT NULL, braid TEXT NOT NULL, at TEXT NOT NULL,
    PRIMARY KEY (kernel, symbols, arch, device, measure, toolchain, config)))";

std::string config_text(const Config& config) {
  std::string text;
  for (const auto& [name, value] : config) {
    fmt::format_to(std::back_inserter(text), "{}{}={}", text.empty() ? "" : ",", name, value);
  }
  return text;
}

std::optional<Config> config_from(std::string_view text) {
  Config config;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos) return {};
    std::int64_t value = 0;
    const char* const end = item.data() + item.size();
    const auto [at, code] = std::from_chars(item.data() + equals + 1, end, value);
    if (code != std::errc() || at != end) return {};
    config.insert_or_assign(std::string(item.substr(0, equals)), value);
  }
  return config;
}

/// A statement with bound values; columns are text, or a number that may be null.
class Statement : NonCopyable {
 public:
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}
  ~Statement() { sqlite3_finalize(statement_); }

  void bind(std::string_view text) {
    sqlite3_bind_text(statement_, ++bound_, text.data(), static_cast<int>(text.size()),
                      SQLITE_TRANSIENT);
  }
  void bind(std::optional<double> number) {
    ++bound_;
    if (number) sqlite3_bind_double(statement_, bound_, *number);
  }
  void bind(const TuneKey& key) {
    for (const std::string* part :
         {&key.kernel, &key.symbols, &key.arch, &key.device, &key.measure, &key.toolchain}) {
      bind(*part);
    }
  }
  /// Returns SQLITE_ROW, SQLITE_DONE or an error.
  [[nodiscard]] int step() { return sqlite3_step(statement_); }
  [[nodiscard]] std::string text(int column) {
    const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    if (data == nullptr) return {};
    return {data, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
  }
  [[nodiscard]] std::optional<double> number(int column) {
    if (sqlite3_column_type(statement_, column) == SQLITE_NULL) return {};
    return sqlite3_column_double(statement_, column);
  }

 private:
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0;
};

bool is_time(std::optional<double> ns) { return !ns || (std::isfinite(*ns) && *ns > 0); }

}  // namespace

struct TuneDatabase::Impl : NonCopyable {
  explicit Impl(std::string path) : where(std::move(path)) {}
  ~Impl() { sqlite3_close(db); }

  [[noreturn]] void fail(int code) const {
    if (code == SQLITE_INTERRUPT) {
      throw_invalid(where,
                    "a query of it does not end in {} steps; expected a database of braid tune",
                    kMostTurns * kStepsOfATurn);
    }
    const std::string reason = db == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(db);
    if (code == SQLITE_NOTADB || code == SQLITE_CORRUPT) {
      throw_invalid(where, "found {}; expected a database of braid tune", reason);
    }
    throw_environment(where, "the tuning database: {}", reason);
  }
  [[nodiscard]] Statement statement(const char* sql) {
    turns = 0;
    sqlite3_stmt* made = nullptr;
    const int code = sqlite3_prepare_v2(db, sql, -1, &made, nullptr);
    if (code != SQLITE_OK) fail(code);
    return Statement(made);
  }
  /// Steps to its only or first row.
  void first(Statement& statement) const {
    if (const int code = statement.step(); code != SQLITE_ROW) fail(code);
  }
  void execute(const char* sql) {
    turns = 0;
    const int code = sqlite3_exec(db, sql, nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) fail(code);
  }
  /// Progress handler of SQLite, called every kStepsOfATurn steps: a crafted file cannot make
  /// queries run forever.
  static int is_enough(void* impl) { return ++static_cast<Impl*>(impl)->turns > kMostTurns; }

  std::string where;
  sqlite3* db = nullptr;
  int turns = 0;  ///< of the current statement
};

std::string kernel_key(const Graph& body) { return hash_of(std::string_view(body_key(body))); }

std::string symbols_text(const Bindings& bindings) {
  return config_text(Config(bindings.begin(), bindings.end()));
}

std::string_view tuner_version() { return BRAID_VERSION; }

TuneDatabase::TuneDatabase(const std::filesystem::path& path, bool create)
    : impl_(std::make_unique<Impl>(path.string())) {
  const int flags = create ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
  std::error_code error;
  // SQLite would wait for a pipe for ever.
  const auto type = std::filesystem::status(path, error).type();
  if (type != std::filesystem::file_type::regular && std::filesystem::exists(path, error)) {
    const bool is_directory = type == std::filesystem::file_type::directory;
    throw_invalid(impl_->where, fmt::format("is {}; expected a database of braid tune",
                                            is_directory ? "a directory" : "not a regular file"));
  }
  // As an absolute path, names such as "file:x" and ":memory:" have no special meaning.
  const std::string whole = std::filesystem::absolute(path).string();
  if (const int code = sqlite3_open_v2(whole.c_str(), &impl_->db, flags, nullptr);
      code != SQLITE_OK) {
    if (!create && !std::filesystem::exists(path, error)) {
      throw_invalid(impl_->where, "is not there; expected a database of braid tune");
    }
    impl_->fail(code);
  }
  sqlite3_busy_timeout(impl_->db, kBusyMs);
  sqlite3_progress_handler(impl_->db, kStepsOfATurn, Impl::is_enough, impl_.get());
  if (create) impl_->execute("BEGIN IMMEDIATE");
  int format = 0;
  int tables = 0;
  std::string kind;
  {
    Statement version = impl_->statement("PRAGMA user_version");
    impl_->first(version);
    format = static_cast<int>(version.number(0).value_or(0));
    Statement schema = impl_->statement(
        "SELECT count(*), max(type) FILTER (WHERE name = 'trials') FROM sqlite_master");
    impl_->first(schema);
    tables = static_cast<int>(schema.number(0).value_or(0));
    kind = schema.text(1);
  }
  const bool fresh = format == 0 && tables == 0;
  if (format != kFormat && !(fresh && create)) {
    throw_invalid(impl_->where, "found {}; expected a database of braid tune",
                  fresh ? "an empty database" : fmt::format("one of format {}", format));
  }
  if (!fresh && kind != "table") {
    throw_invalid(impl_->where, "found {} 'trials'; expected a table of braid tune",
                  kind.empty() ? "no" : "the " + kind);
  }
  {
    // Damage may be where our statements would not meet it.
    Statement check = impl_->statement("PRAGMA quick_check(1)");
    impl_->first(check);
    if (const std::string found = check.text(0); found != "ok") {
      throw_invalid(impl_->where, "is damaged: {}; expected a database of braid tune",
                    found.substr(0, found.find('\n')));
    }
  }
  if (!create) return;
  impl_->execute(kTable);
  impl_->execute(fmt::format("PRAGMA user_version = {}", kFormat).c_str());
  impl_->execute("COMMIT");
}

TuneDatabase::TuneDatabase(TuneDatabase&&) noexcept = default;
TuneDatabase::~TuneDatabase() = default;

void TuneDatabase::put(const TuneRow& row) {
  Statement insert = impl_->statement(
      "INSERT OR REPLACE INTO trials VALUES "
      "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, datetime('now'))");
  insert.bind(row.key);
  insert.bind(config_text(row.config));
  insert.bind(row.text);
  insert.bind(row.trial.ns);
  insert.bind(row.trial.note);
  insert.bind(tuner_version());
  if (const int code = insert.step(); code != SQLITE_DONE) impl_->fail(code);
}

std::optional<Trial> TuneDatabase::find(const TuneKey& key, const Config& config,
                                        std::string_view text) const {
  Statement select = impl_->statement(
      "SELECT ns, note FROM trials WHERE kernel = ? AND symbols = ? AND arch = ? AND "
      "device = ? AND measure = ? AND toolchain = ? AND config = ? AND text = ? AND "
      "braid = ?");
  select.bind(key);
  select.bind(config_text(config));
  select.bind(text);
  select.bind(tuner_version());
  const int code = select.step();
  if (code == SQLITE_DONE) return {};
  if (code != SQLITE_ROW) impl_->fail(code);
  Trial trial{select.number(0), select.text(1)};
  if (!is_time(trial.ns)) return {};
  return trial;
}

std::vector<TuneRow> TuneDatabase::rows_of(std::string_view kernel) const {
  Statement select = impl_->statement(
      "SELECT kernel, symbols, arch, device, measure, toolchain, config, text, ns, "
      "note, braid FROM trials WHERE kernel = ? ORDER BY rowid");
  select.bind(kernel);
  std::vector<TuneRow> rows;
  for (;;) {
    const int code = select.step();
    if (code == SQLITE_DONE) return rows;
    if (code != SQLITE_ROW) impl_->fail(code);
    TuneRow row{{select.text(0), select.text(1), select.text(2), select.text(3), select.text(4),
                 select.text(5)},
                {},
                select.text(7),
                {select.number(8), select.text(9)},
                select.text(10)};
    const std::optional<Config> config = config_from(select.text(6));
    if (!config || !is_time(row.trial.ns)) continue;
    row.config = *config;
    rows.push_back(std::move(row));
  }
}

}  // namespace braid
