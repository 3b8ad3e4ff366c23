# Networks for the nodes 1, 2, … within one guest, all in one network namespace (rxe of Linux 6.1 does not work across
# namespaces). Node i has the address of `address_of i` in all of them.

readonly subnet=10.77.0
address_of() { printf '%s.%d\n' "$subnet" "$1"; }

# addresses_of <nodes>: separated by commas.
addresses_of() {
  local node list=()
  for ((node = 1; node <= $1; node++)); do list+=("$(address_of "$node")"); done
  (IFS=,; printf '%s\n' "${list[*]}")
}

# one_device <nodes>: one device, `net0`, with the addresses of all nodes. No packet leaves it.
one_device() {
  local node
  ip link add net0 type dummy
  for ((node = 1; node <= $1; node++)); do ip address add "$(address_of "$node")/24" dev net0; done
  ip link set net0 up
}

# switched <nodes> [mtu]: a device for each node, `net1`, `net2`, …, connected to a switch like hosts. All that one node
# sends to another one crosses the veth pairs of both:
#
#   net1 ═ port1 ┐                   ┌ port3 ═ net3
#                ├ switch (a bridge) ┤
#   net2 ═ port2 ┘                   └ port4 ═ net4
#
# The kernel would rather deliver what goes to an address of its own at once. So its local table is asked last, and for
# what is sent from the address of a node, the table of that node first (the rules with `oif` answer rdma_cm, which asks
# through which device a caller would be reached). Whoever sends has to be bound to an address. Neighbours are entered by
# hand: no ARP disturbs the counting of bytes.
switched() {
  local nodes=$1 mtu=${2:-1500} node folder
  for folder in /proc/sys/net/ipv4/conf/{all,default}; do
    echo 0 >"$folder/rp_filter"
    echo 1 >"$folder/accept_local"
  done
  echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6
  ip rule add pref 100 lookup local
  ip rule delete pref 0
  ip link add switch type bridge
  ip link set switch mtu "$mtu" up
  for ((node = 1; node <= nodes; node++)); do
    ip link add "net$node" mtu "$mtu" address "$(hardware_address_of "$node")" type veth peer "port$node" mtu "$mtu"
    ip link set "port$node" master switch up
    ip link set "net$node" up
    keep_in_order "net$node" "port$node"
    ip address add "$(address_of "$node")/32" dev "net$node"
    ip rule add pref "$node" from "$(address_of "$node")" iif lo lookup "$((1000 + node))"
    ip rule add pref "$node" oif "net$node" lookup "$((1000 + node))"
  done
  for ((node = 1; node <= nodes; node++)); do know_peers "$node" "$nodes"; done
}

# keep_in_order <device...>: a packet is received by the processor that its flow belongs to, not by that which sent it.
# Otherwise packets of one connection that are sent from two processors overtake each other on the way, which no network of
# RoCE would do, and which counts as a loss.
keep_in_order() {
  local device
  for device in "$@"; do
    printf '%x\n' $(((1 << $(nproc)) - 1)) >"/sys/class/net/$device/queues/rx-0/rps_cpus"
  done
}

# know_peers <node> <nodes>: its routes and neighbours, which it forgets when its interface goes down.
know_peers() {
  local peer
  for ((peer = 1; peer <= $2; peer++)); do
    [[ $peer -ne $1 ]] || continue
    ip neighbour replace "$(address_of "$peer")" lladdr "$(hardware_address_of "$peer")" dev "net$1" nud permanent
    ip route replace "$(address_of "$peer")/32" dev "net$1" src "$(address_of "$1")" table "$((1000 + $1))"
  done
}

# unbound_as <node> <peer>: what is sent to the peer by a program that binds to no address comes from this node.
unbound_as() { ip rule add pref 50 to "$(address_of "$2")" iif lo lookup "$((1000 + $1))"; }

hardware_address_of() { printf '02:00:00:00:00:%02x\n' "$1"; }

# shaped <nodes> <rate>: every connection to the switch carries at most that much in each direction (1gbit, 100mbit).
# The burst must hold what the kernel sends in one go (64 KiB); the queue what all senders together have under way:
# RoCE needs a network that loses nothing.
shaped() {
  local node end
  for ((node = 1; node <= $1; node++)); do
    for end in net port; do
      tc qdisc replace dev "$end$node" root tbf rate "$2" burst 128kb limit 4mb
    done
  done
}
