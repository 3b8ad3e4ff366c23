# RDMA devices over the networks of network.sh: the device over net1 is called rxe1 or siw1.

# rdma_over <rxe|siw> <number...>: adds the devices over these networks and waits until they can be used.
rdma_over() {
  local driver=$1 number
  shift
  for number in "$@"; do
    rdma link add "$driver$number" type "$driver" netdev "net$number"
    wait_until 10 "$driver$number to be active" is_active "$driver$number"
    [[ $driver == siw ]] || wait_until 10 "the GID of $driver$number" has_gids "net$number" "$driver$number"
  done
}

is_active() { rdma link show "$1/1" | grep -q 'state ACTIVE'; }

# has_gids <network> <device>: the kernel enters one GID for each address, some time after the device was added.
has_gids() {
  local address
  for address in $(addresses_on "$1"); do
    gid_index "$2" "$address" >/dev/null || return 1
  done
}

addresses_on() { ip -4 -o address show dev "$1" | awk '{ sub("/.*", "", $4); print $4 }'; }

# gid_index <device> <IPv4 address>: of RoCEv2.
gid_index() {
  local bytes gid index port=/sys/class/infiniband/$1/ports/1
  IFS=. read -ra bytes <<<"$2"
  gid=$(printf '0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x' "${bytes[@]}")
  for index in "$port"/gids/*; do
    index=${index##*/}
    if [[ $(<"$port/gids/$index") == "$gid" && $(cat "$port/gid_attrs/types/$index" 2>/dev/null) == 'RoCE v2' ]]; then
      printf '%s\n' "$index"
      return
    fi
  done
  return 1
}
