# How many bytes there must be on the wire, from the formats of the protocols, Ethernet headers included as veth counts them.

# rxe_wire_bytes <mtu of the network> <bytes of a write> <writes>: RoCEv2, one acknowledgement per write.
rxe_wire_bytes() {
  local path packets
  for path in 4096 2048 1024 512 256; do # the largest path MTU that fits, with headers, into the network's
    [[ $((path + 20 + 8 + 12 + 16 + 4)) -gt $1 ]] || break
  done
  packets=$((($2 + path - 1) / path))
  local each=$((14 + 20 + 8 + 12 + 4)) # Ethernet, IPv4, UDP, base header, checksum
  printf '%s\n' $(($3 * ($2 + packets * each + 16 + each + 4))) # and once RETH, AETH
}

# siw_wire_bytes <mtu of the network> <bytes of a write> <writes>: iWARP, a segment per frame (siw does not merge them),
# TCP with timestamps, one acknowledgement for two segments.
siw_wire_bytes() {
  local header=$((14 + 20 + 32)) segment=$((($1 - 20 - 32) / 4 * 4)) packets
  local frame=$((2 + 14 + 4)) # MPA length, DDP and RDMAP header of a write, checksum
  packets=$((($2 + segment - frame - 1) / (segment - frame)))
  printf '%s\n' $(($3 * ($2 + packets * (frame + header) + packets * header / 2)))
}
