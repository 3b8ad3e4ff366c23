#include "sim/send_path/scene.h"

namespace faro::send_path {

Scene::Scene(const Plan& plan, Record& record)
    : plan_(plan),
      record_(record),
      effects_(record),
      world_(plan.delivery, effects_),
      nodes_(plan, world_) {}

std::shared_ptr<Port> Scene::find(uint32_t port) const {
  const auto ports = world_.ports();
  return ports.empty() ? nullptr : ports[port % ports.size()];
}

void Scene::deliver(uint32_t port, uint32_t ring, uint32_t frames, bool reads) {
  const auto at = find(port);
  if (at == nullptr) return;
  const uint32_t of = ring % at->outgoing().ring_count();
  record_.begin_call("{} of {}>{} ring {}",
                     reads ? "the read position" : fmt::format("{} frames", frames), at->node(),
                     at->peer_node(), of);
  const bool moved = reads ? at->deliver_read(of) : at->deliver(of, frames);
  record_.note(Kind::answer, "{}", moved ? "arrive" : "nothing arrives");
}

void Scene::deliver_all() {
  record_.begin_call("everything arrives");
  world_.deliver_all();
}

void Scene::pass(base::Nanoseconds time) {
  record_.begin_call("{} us pass", time / 1000);
  world_.pass(time);
}

void Scene::pump() {
  record_.begin_call("the network threads run");
  world_.pump();
  note_rings();
}

void Scene::hold(uint32_t port, bool held) {
  const auto at = find(port);
  if (at == nullptr) return;
  record_.begin_call("{}>{} is {}", at->node(), at->peer_node(), held ? "held" : "held no more");
  if (at->link() != nullptr) at->link()->hold(held);
}

void Scene::cut(uint32_t port, bool data) {
  const auto at = find(port);
  if (at == nullptr) return;
  record_.begin_call("the {} connection of {} and {} is cut", data ? "data" : "control", at->node(),
                     at->peer_node());
  record_.count("cuts");
  data ? at->cut() : nodes_.cut_control(at->node(), at->peer_node());
}

void Scene::kill(uint32_t node) {
  record_.begin_call("node {} dies", node);
  record_.count("deaths");
  nodes_.kill(node);
}

void Scene::close_node(uint32_t node) {
  record_.begin_call("node {} closes", node);
  record_.count("closed sessions");
  record_.note(Kind::answer, "{}", code_name(nodes_.close(node).code()));
  note_rings();
}

}  // namespace faro::send_path
