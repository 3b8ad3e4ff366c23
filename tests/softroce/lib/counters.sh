# What the drivers and the network count.

# device_counter <rxe device> <counter>: of `rdma statistic`; siw has none.
device_counter() {
  rdma statistic show link "$1/1" | awk -v name="$2" '{ for (i = 3; i < NF; i++) if ($i == name) print $(i + 1) }'
}

# expect_clean <rxe device...>: no receiver was not ready, no packet out of sequence, nothing given up. What was sent again
# because an acknowledgement was late, as happens when the processor is busy elsewhere, is printed.
expect_clean() {
  local device counter
  for device in "$@"; do
    for counter in rcvd_rnr_err send_rnr_err out_of_seq_request rcvd_seq_err retry_exceeded_err retry_rnr_exceeded_err \
      send_err; do
      [[ $(device_counter "$device" "$counter") -eq 0 ]] || fail "$(rdma statistic show link "$device/1")"
    done
    printf '%s: %s packets sent, %s received, none out of sequence, no receiver was not ready; %s sent again\n' \
      "$device" "$(device_counter "$device" sent_pkts)" "$(device_counter "$device" rcvd_pkts)" \
      "$(device_counter "$device" duplicate_request)"
  done
}

# sent_once: from here on Faro's devices wait 137 s for an acknowledgement (verbs.timeout) instead of 1 s, longer than any case
# takes. rxe leaves its timer running when what it was started for is acknowledged, and sends again what is then under way:
# any time that can pass while a queue pair lives causes retries without a loss. A packet that is lost now is a case that hangs.
sent_once() { export FARO_VERBS_TIMEOUT=25; }

# expect_sent_once <rxe device...>: after sent_once, nothing was sent twice.
expect_sent_once() {
  local device counter
  expect_clean "$@"
  for device in "$@"; do
    for counter in duplicate_request completer_retry_err; do
      expect_equal "$device: $counter" "$(device_counter "$device" "$counter")" 0
    done
  done
}

# wire_bytes <nodes>: what all nodes of a switched network have sent, from the Ethernet header on.
wire_bytes() {
  local node sum=0
  for ((node = 1; node <= $1; node++)); do
    sum=$((sum + $(<"/sys/class/net/net$node/statistics/tx_bytes")))
  done
  printf '%s\n' "$sum"
}

# resources: how many of each kind all devices hold together, and the bytes they have registered, as one line.
resources() {
  rdma -d resource show mr | awk '{ for (i = 1; i < NF; i++) if ($i == "mrlen") bytes += $(i + 1) }
    END { printf "registered %d bytes", bytes }'
  rdma resource show | awk '{ for (i = 3; i < NF; i += 2) sum[$i] += $(i + 1) }
    END { for (kind in sum) printf ", %s %d", kind, sum[kind] | "sort" }'
}

# expect_resources <a former answer of resources>: the same now, or soon: a process that has ended is cleaned up behind it.
expect_resources() {
  wait_until 5 "'$(resources)' to become '$1'" have_resources "$1"
  printf 'resources as before: %s\n' "$1"
}
have_resources() { [[ $(resources) == "$1" ]]; }
