#include "lab/network/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "base/clock.h"
#include "lab/network/loads.h"
#include "lab/network/trials.h"

namespace faro::network {
namespace {

// In packets: long enough that most figures of another seed differ by a few hundredths at most.
constexpr uint32_t kWindow = 100'000;
// Where queues grow without limit: in random order it takes long until none of them is ever empty.
constexpr uint32_t kLongWindow = 4 * kWindow;
constexpr uint32_t kUnlimited = 1u << 30;
constexpr std::array kPauses = {0u, 5u, 20u};  // of 1000 packets

std::string policy_names() {
  std::string line;
  for (const Policy policy : kPolicies)
    fmt::format_to(std::back_inserter(line), "{:>12}", policy_name(policy));
  return line + "\n";
}

Goal at_least(std::string what, double figure, double least) {
  return {fmt::format("{}: {:.3f}, at least {}", what, figure, least), figure >= least};
}

Goal at_most(std::string what, double figure, double most) {
  return {fmt::format("{}: {:.3f}, at most {}", what, figure, most), figure <= most};
}

Goal about(std::string what, double figure, double expected, double by) {
  return {fmt::format("{}: {:.3f}, {} ± {}", what, figure, expected, by),
          figure >= expected - by && figure <= expected + by};
}

// ------------------------------------------------------------------------------- the table of 1987

Section saturation(uint64_t seed) {
  struct Known {
    uint32_t ports;
    uint32_t packets;
    double share;
  };
  // Many ports get 0.586; here 128 are many.
  constexpr std::array kKnown = {Known{2, 200'000, 0.750}, Known{3, 200'000, 0.683},
                                 Known{4, 200'000, 0.655}, Known{8, 100'000, 0.618},
                                 Known{128, 10'000, 0.586}};
  Section section;
  section.text =
      "Saturated inputs, one queue each, every packet for any output: share of the rate\n"
      "  ports   Karol, Hluchyj, Morgan 1987   model\n";
  for (const Known& known : kKnown) {
    const double share = saturated_share(known.ports, known.packets, seed);
    fmt::format_to(std::back_inserter(section.text), "  {:5} {:29.3f} {:7.3f}\n", known.ports,
                   known.share, share);
    section.goals.push_back(about(fmt::format("{} ports, of what is known", known.ports),
                                  share / known.share, 1, 0.02));
  }
  return section;
}

// -------------------------------------------------------------------------------- orders and queues

Trial eight_hosts(uint64_t seed, Policy policy, uint32_t pauses, Queues queues, uint32_t buffer) {
  Trial trial;
  trial.policy = policy;
  trial.shape.pauses_per_mille = pauses;
  trial.shape.between.queues = queues;
  trial.shape.between.buffer_packets = buffer;
  trial.shape.seed = seed;
  return trial;
}

Section orders(uint64_t seed) {
  struct Kind {
    const char* name;
    Queues queues;
    uint32_t buffer;
  };
  constexpr std::array kKinds = {
      Kind{"one queue per input, 64 KiB", Queues::per_input, 16},
      Kind{"one queue per output, 64 KiB per input", Queues::per_output, 16},
      Kind{"one queue per output, as long as need be", Queues::per_output, kUnlimited}};
  Section section;
  section.text = "8 hosts, messages of 512 KiB, turns of 4 MiB: share of the rate\n  pauses    " +
                 policy_names();
  for (const Kind& kind : kKinds) {
    fmt::format_to(std::back_inserter(section.text), "  {}\n", kind.name);
    for (const uint32_t pauses : kPauses) {
      std::array<double, kPolicies.size()> share;
      fmt::format_to(std::back_inserter(section.text), "  {:4.1f} %    ", pauses / 10.0);
      const uint32_t packets = kind.buffer == kUnlimited ? kLongWindow : kWindow;
      for (size_t i = 0; i < kPolicies.size(); ++i) {
        share[i] = share_of_rate(eight_hosts(seed, kPolicies[i], pauses, kind.queues, kind.buffer),
                                 packets);
        fmt::format_to(std::back_inserter(section.text), "{:12.3f}", share[i]);
      }
      section.text += '\n';
      const auto of = [&](Policy policy) { return share[static_cast<size_t>(policy)]; };
      const std::string against = fmt::format("{:.1f} % pauses, phases against ", pauses / 10.0);
      if (kind.queues == Queues::per_input) {
        section.goals.push_back(at_least(against + "random (the paper: up to 1.40)",
                                         of(Policy::phases) / of(Policy::random), 1.5));
        if (pauses == 5)
          section.goals.push_back(at_least(against + "own number first",
                                           of(Policy::phases) / of(Policy::own_first), 1.3));
      } else if (kind.buffer == kUnlimited) {
        section.goals.push_back(about(against + "random, queues per output",
                                      of(Policy::phases) / of(Policy::random), 1, 0.02));
      }
    }
  }
  return section;
}

// ------------------------------------------------------------------------------ the paper's figures

Section hosts(uint64_t seed) {
  Section section;
  section.text =
      "2 to 8 hosts, one queue per input, pauses after 0.5 % of the packets: share of the rate\n"
      "(the paper, Figure 10(b): phases with a barrier over none, up to 1.40 with 8 hosts)\n"
      "  hosts    " +
      policy_names();
  double with_barrier = 0;
  double random = 0;
  for (uint32_t count = 2; count <= 8; ++count) {
    fmt::format_to(std::back_inserter(section.text), "  {:5}    ", count);
    for (const Policy policy : kPolicies) {
      Trial trial = eight_hosts(seed, policy, 5, Queues::per_input, 16);
      trial.shape.hosts = count;
      const double share = share_of_rate(trial, kWindow / 2);
      if (policy == Policy::barrier) with_barrier = share;
      if (policy == Policy::random) random = share;
      fmt::format_to(std::back_inserter(section.text), "{:12.3f}", share);
    }
    section.text += '\n';
  }
  section.goals.push_back(at_least("8 hosts, a barrier against random (the paper: up to 1.40)",
                                   with_barrier / random, 1.4));
  return section;
}

Section turns(uint64_t seed) {
  Section section;
  section.text =
      "8 hosts, one queue per input, no pauses, by bytes per turn: share of the rate\n"
      "(the paper, Figure 10(c): messages of 512 KiB, 8 per turn, are enough at about 1 µs)\n"
      "  KiB per turn       barrier 1 µs  50 µs     phases 1 µs  50 µs     grants 1 µs  50 µs\n";
  for (uint64_t kib = 4; kib <= 16'384; kib *= 4) {
    fmt::format_to(std::back_inserter(section.text), "  {:12}", kib);
    for (const Policy policy : {Policy::barrier, Policy::phases, Policy::grants}) {
      fmt::format_to(std::back_inserter(section.text), "       ");
      for (const base::Nanoseconds note_ns : {1'000u, 50'000u}) {
        Trial trial = eight_hosts(seed, policy, 0, Queues::per_input, 16);
        trial.turn_bytes = kib << 10;
        trial.shape.note_ns = note_ns;
        const double share = share_of_rate(trial, 2 * kWindow);
        fmt::format_to(std::back_inserter(section.text), "{:{}.3f}", share,
                       note_ns == 1'000 ? 12 : 7);
        if (policy == Policy::phases && kib == 4'096)
          section.goals.push_back(at_least(
              fmt::format("turns of 4 MiB, notes of {} µs, phases", note_ns / 1'000), share, 0.9));
      }
    }
    section.text += '\n';
  }
  return section;
}

// ------------------------------------------------------------------------------------ skewed sizes

Section sizes(uint64_t seed) {
  Section section;
  section.text =
      "16 hosts, one queue per input, pauses after 0.5 % of the packets, 8 MiB per pair, by "
      "sizes:\n"
      "time in times of the least (what the busiest link sends or gets)\n"
      "  sizes     " +
      policy_names();
  for (const Sizes sizes : {Sizes::even, Sizes::spread, Sizes::few, Sizes::skewed}) {
    const Network::Load load = make_load(sizes, 16, 2048, seed);
    fmt::format_to(std::back_inserter(section.text), "  {:<10}", sizes_name(sizes));
    std::array<double, kPolicies.size()> times;
    for (size_t i = 0; i < kPolicies.size(); ++i) {
      Trial trial = eight_hosts(seed, kPolicies[i], 5, Queues::per_input, 16);
      trial.shape.hosts = 16;
      trial.turn_bytes = 1 << 20;
      times[i] = finish(trial, load).times_bound;
      fmt::format_to(std::back_inserter(section.text), "{:12.3f}", times[i]);
    }
    section.text += '\n';
    const auto of = [&](Policy policy) { return times[static_cast<size_t>(policy)]; };
    const double better = std::min(of(Policy::phases), of(Policy::grants));
    section.goals.push_back(at_most(
        fmt::format("{} sizes, the better of phases and grants", sizes_name(sizes)), better, 1.2));
    if (sizes != Sizes::even)
      section.goals.push_back(at_most(fmt::format("{} sizes, against a barrier", sizes_name(sizes)),
                                      better / of(Policy::barrier), 0.85));
  }
  return section;
}

// --------------------------------------------------------------------------------------------- loss

Section loss(uint64_t seed) {
  Section section;
  section.text =
      "8 hosts, one queue of 64 KiB per output that loses what finds it full, sent again after 1 "
      "ms,\n"
      "pauses after 0.5 % of the packets, 8 MiB per pair, and cards that send on as if nothing was "
      "lost:\n"
      "time in times of the least, packets lost per packet that arrives\n"
      "  ";
  section.text += fmt::format("{:10}", "") + policy_names();
  std::string times = "  time      ";
  std::string lost = "  lost      ";
  for (const Policy policy : kPolicies) {
    Trial trial = eight_hosts(seed, policy, 5, Queues::per_output, 16);
    trial.shape.between.full = Full::loss;
    trial.turn_bytes = 1 << 20;
    const Finish result = finish(trial, make_load(Sizes::even, 8, 2048, seed));
    fmt::format_to(std::back_inserter(times), "{:12.3f}", result.times_bound);
    fmt::format_to(std::back_inserter(lost), "{:12.3f}", result.lost_per_packet);
    section.goals.push_back(
        {fmt::format("everything arrives, {}", policy_name(policy)), result.is_complete});
  }
  section.text += times + "\n" + lost + "\n";
  return section;
}

// ------------------------------------------------------------------------------------ a thousand hosts

Section thousand(uint64_t seed) {
  Section section;
  section.text =
      "1 000 hosts, 64 KiB per pair in cells of 16 KiB, one queue per input, pauses after 0.5 %:\n";
  const Network::Load load = make_load(Sizes::even, 1000, 4, seed);
  for (const Policy policy : kPolicies) {
    Trial trial = eight_hosts(seed, policy, 5, Queues::per_input, 8);
    trial.shape.hosts = 1000;
    trial.shape.packet_bytes = 16 << 10;
    trial.message_bytes = 64 << 10;
    const base::Nanoseconds before = base::SystemClock::instance().now_ns();
    const Finish result = finish(trial, load);
    const double seconds =
        static_cast<double>(base::SystemClock::instance().now_ns() - before) * 1e-9;
    fmt::format_to(std::back_inserter(section.text), "  {:12}{:6.3f} times the least\n",
                   policy_name(policy), result.times_bound);
    if (policy != Policy::phases) continue;
    section.goals.push_back({"phases, everything arrives", result.is_complete});
    section.goals.push_back(
        {fmt::format("phases, in less than a minute ({:.0f} s)", seconds), seconds < 60, true});
  }
  return section;
}

}  // namespace

std::string page_head(uint64_t seed) {
  const NetworkShape shape;
  return fmt::format(
      "Model of a network: links of {} GB/s, packets of {} KiB, a note between hosts takes {} µs, "
      "seed {}.\n"
      "Orders without a policy: same (host 0 first, on all), own first (the next number), random,\n"
      "interleaved (all targets, by packet). Policies: barrier (phases, as in HyPer), phases (of\n"
      "native/transport/schedule, the code itself), grants (by receivers; in the model alone).\n",
      shape.bytes_per_ns, shape.packet_bytes >> 10, shape.note_ns / 1'000, seed);
}

std::vector<MakeSection> page_sections() {
  return {saturation, orders, hosts, turns, sizes, loss, thousand};
}

}  // namespace faro::network
