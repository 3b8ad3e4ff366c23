// Counts the words of a text file (by default of this program's license) by what is below an aggregation: words are rows with
// a length each, and go to the worker that their hash belongs to, which keeps a count of each. word_count.cc has less to
// send, and its counts may be more than the memory holds.
#include <algorithm>
#include <fstream>
#include <map>
#include <mutex>
#include <span>

#include "cluster.h"

#ifndef FARO_EXAMPLE_TEXT
#define FARO_EXAMPLE_TEXT "LICENSE"
#endif

using Counts = std::map<std::string, uint64_t>;

static Counts run(faro::Worker& worker, const faro::QueryId& query, const char* path,
                  uint32_t workers) {
  faro::QueryScope part(worker, query);
  faro::ShuffleSpec spec;
  spec.query = query;  // row_bytes 0: rows have a length each
  faro::Shuffle words = check(worker.open_shuffle(spec));

  std::ifstream file(path);
  std::string word;
  uint64_t words_read = 0;
  const auto read_word = [&] {  // the next one of this worker's part
    while (file >> word)
      if (words_read++ % workers == worker.number()) return true;
    return false;
  };
  bool has_word = read_word();
  const auto produce = [&](const faro::ShuffleSender& sender) {
    for (int i = 0; i < 500; ++i) {
      if (!has_word) return faro::Outcome::end_of_stream;
      const uint64_t hash = faro::hash_bytes(word.data(), word.size());
      const faro::Outcome outcome =
          sender.send(faro::partition(hash, workers),
                      std::as_bytes(std::span(word.data(), word.size())), faro::Wait::none());
      if (outcome != faro::Outcome::done) return outcome;  // `word` is sent by the next call
      has_word = read_word();
    }
    return faro::Outcome::done;
  };
  Counts counts;
  const auto consume = [&](faro::Batch& batch) {
    for (const std::span<const std::byte> row : batch.each_row())
      ++counts[std::string(reinterpret_cast<const char*>(row.data()), row.size())];
  };
  check(worker.exchange(words, produce, consume), worker);

  words.close();
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
    all.merge(part);  // no word is at two workers
    if (!part.empty()) std::exit(1);
  });
  Counts expected;
  std::ifstream file(path);
  for (std::string word; file >> word;) ++expected[word];
  for (const auto& [word, count] : all) {
    if (count >= 50)
      std::printf("%6llu %s\n", static_cast<unsigned long long>(count), word.c_str());
  }
  return !all.empty() && all == expected ? 0 : 1;
}
