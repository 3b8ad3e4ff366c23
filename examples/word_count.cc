// Counts the words of a text file (by default of this program's license): each worker adds its words to an aggregation, and
// each word comes out once, with its count, at one of them.
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>

#include "cluster.h"
#include "faro/aggregate.h"

#ifndef FARO_EXAMPLE_TEXT
#define FARO_EXAMPLE_TEXT "LICENSE"
#endif

using Counts = std::map<std::string, int64_t>;

// Rows of one column, the word; groups of two, the word and its count.
static faro::Grouping grouping() {
  faro::Grouping words;
  words.rows = check(faro::Schema::make({{faro::ColumnType::string}}));
  words.keys = {0};
  words.aggregates = {{faro::AggregateFunction::count_rows}};
  return words;
}

// Packs a word behind the rows that are there: its length as a row, then the row.
static void pack(const faro::Schema& schema, const std::string& word,
                 std::vector<std::byte>& rows) {
  const faro::Value values[] = {std::string_view(word)};
  const uint32_t bytes = static_cast<uint32_t>(check(schema.bytes(values)));
  const size_t at = rows.size();
  rows.resize(at + sizeof(bytes) + bytes);
  std::memcpy(&rows[at], &bytes, sizeof(bytes));
  schema.write(values, &rows[at + sizeof(bytes)]);
}

static void unpack(const faro::Schema& schema, const faro::PackedRows& groups, Counts& counts) {
  size_t at = 0;
  for (size_t i = 0; i < groups.count; ++i) {
    uint32_t bytes = 0;
    std::memcpy(&bytes, &groups.bytes[at], sizeof(bytes));
    faro::Value values[2];
    check(schema.read(groups.bytes.subspan(at + sizeof(bytes), bytes), values));
    counts[std::string(std::get<std::string_view>(values[0]))] = std::get<int64_t>(values[1]);
    at += sizeof(bytes) + bytes;
  }
}

static Counts run(faro::Worker& worker, const faro::QueryId& query, const char* path,
                  uint32_t workers) {
  faro::QueryScope part(worker, query);
  const faro::Grouping of_words = grouping();
  auto words = check(faro::SchemaAggregation::make(worker, {query, /*stage=*/0}, of_words));

  std::ifstream file(path);
  std::vector<std::byte> rows;
  uint64_t words_read = 0;
  for (std::string word; file >> word;)
    if (words_read++ % workers == worker.number()) pack(of_words.rows, word, rows);
  check(words->add(rows).outcome, *words);  // as many as one likes, as often as one likes
  check(words->finish(), *words);

  Counts counts;
  faro::PackedRows groups;
  while (check(words->next(groups), *words)) unpack(words->results(), groups, counts);
  words.reset();
  check(part.end(), worker);
  return counts;
}

int main(int argument_count, char** arguments) {
  const char* path = argument_count > 1 ? arguments[1] : FARO_EXAMPLE_TEXT;
  Cluster cluster(2, 2);
  const faro::QueryId query = cluster.session(0).begin_query();
  std::mutex mutex;
  Counts all;
  cluster.on_every_worker([&](faro::Worker& worker) {
    Counts part = run(worker, query, path, cluster.session(0).worker_count());
    std::lock_guard lock(mutex);
    all.merge(part);
    if (!part.empty()) std::exit(1);  // a word at two workers
  });
  Counts expected;
  std::ifstream file(path);
  for (std::string word; file >> word;) ++expected[word];
  for (const auto& [word, count] : all)
    if (count >= 50) std::printf("%6lld %s\n", static_cast<long long>(count), word.c_str());
  return !all.empty() && all == expected ? 0 : 1;
}
