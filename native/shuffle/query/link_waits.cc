#include "shuffle/query/link_waits.h"

#include <utility>

#include "shuffle/query/query_messages.h"

namespace faro::shuffle {

void LinkWaits::begin(const TrackedQuery& query, Outbound& out) const {
  const uint32_t own = context_.cluster.own();
  for (const uint32_t node : query.nodes().awaited()) {
    out.wanted.push_back(node);
    // When it failed it was not known who takes part.
    if (query.failed() && query.id.issuer == own)
      out.send(node, failure_of(query.id, own, query.cause()));
  }
}

// A question is asked again.
void LinkWaits::hold(Outbound& out) {
  for (auto at = out.messages.begin(); at != out.messages.end();) {
    const auto message = at++;
    // What is about the link itself goes over it.
    const bool is_of_link = message->second.kind == wire::QueryMessageKind::rest;
    if (is_of_link || !context_.cluster.is_out_of_reach(message->first)) continue;
    if (message->second.kind == wire::QueryMessageKind::await) {
      out.messages.erase(message);
    } else {
      kept_.splice(kept_.end(), out.messages, message);
    }
  }
}

bool LinkWaits::end(KnownQueries& known, uint32_t node, Outbound& out) {
  bool alert = false;
  for (const KnownQueries::Pointer& query : known.waiting_for(node)) {
    query->nodes().found(node);
    if (query->id.issuer != node || context_.cluster.is_of_this_life(query->id)) continue;
    known.lose(*query, node, known.why_not(query->id), out);
    alert = true;
  }
  for (auto at = kept_.begin(); at != kept_.end();) {
    const auto kept = at++;
    if (kept->first == node) out.messages.splice(out.messages.end(), kept_, kept);
  }
  if (const auto words = last_words_.find(node); words != last_words_.end()) {
    std::erase_if(words->second, [&](const auto& word) {
      return !context_.cluster.is_of_this_life(to_id(word.second.query));
    });
    out.messages.splice(out.messages.end(), words->second);
    last_words_.erase(words);
  }
  return alert;
}

// A vote that was kept may say that all went well.
void LinkWaits::give_up(const TrackedQuery& query, uint32_t node, const Status& why) {
  const uint32_t own = context_.cluster.own();
  const QueryId& id = query.id;
  if (id.issuer != own && id.issuer != node) return;
  const Status cause = query.failed() ? query.cause() : why.of_query(id).of_node(own);
  keep_last_word(node, id.issuer == own ? failure_of(id, own, cause) : ended_of(id, own, cause, 0));
  std::erase_if(kept_, [&](const auto& kept) {
    return kept.first == node && to_id(kept.second.query) == id;
  });
}

void LinkWaits::refuse(const QueryId& id, const Status& why) {
  const ClusterView& cluster = context_.cluster;
  if (id.issuer >= cluster.node_count() || id.issuer == cluster.own() ||
      (cluster.is_there(id.issuer) && cluster.is_of_this_life(id)))
    return;
  keep_last_word(id.issuer, ended_of(id, cluster.own(), why, 0));
}

void LinkWaits::keep_last_word(uint32_t node, const wire::QueryMessage& word) {
  Kept& words = last_words_[node];
  words.emplace_back(node, word);
  if (words.size() > kLastWordLimit) words.pop_front();
}

// What is to be said to the next process stays.
void LinkWaits::lose(uint32_t node) {
  std::erase_if(kept_, [&](const auto& kept) { return kept.first == node; });
  if (const auto words = last_words_.find(node); words != last_words_.end()) {
    std::erase_if(words->second, [&](const auto& word) {
      const QueryId id = to_id(word.second.query);
      return id.issuer != node || context_.cluster.is_of_this_life(id);
    });
  }
}

void LinkWaits::forget(uint32_t node) {
  lose(node);
  last_words_.erase(node);
}

}  // namespace faro::shuffle
