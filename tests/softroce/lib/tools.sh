# The tools that others wrote for RDMA: what they can do over a device says what Faro may expect of it.

# is_listening: some process waits for connections, by rdma_cm or by TCP, at this port.
is_listening() { rdma resource show cm_id 2>/dev/null | grep -q "state LISTEN.*:$1 " || ss -Hltn "sport = :$1" | grep -q .; }

# served <port> <server command> -- <client command>: runs the client when the server listens; both have to end well.
served() {
  local port=$1 server=() pid
  shift
  while [[ $1 != -- ]]; do
    server+=("$1")
    shift
  done
  shift
  timeout 60 "${server[@]}" >"$share/server.log" 2>&1 &
  pid=$!
  wait_until 20 "${server[0]} to listen" is_listening "$port"
  timeout 60 "$@" || fail "$*: exit code $?; its server: $(tail -n 5 "$share/server.log")"
  wait "$pid" || fail "${server[*]}: exit code $?: $(tail -n 5 "$share/server.log")"
}

# ping_between <server node> <client node> <rounds>: rping, which checks what it receives.
ping_between() {
  served 7174 rping -s -a "$(address_of "$1")" -C "$3" -V -- \
    rping -c -a "$(address_of "$1")" -I "$(address_of "$2")" -C "$3" -V -v | tail -n 1
}

# write_bandwidth <driver> <server node> <client node> <bytes> <count>: prints Gb/s
# of RDMA writes, on average, connected by rdma_cm.
write_bandwidth() {
  local flags=(-R -F -s "$4" -n "$5" --report_gbits)
  served 18515 ib_write_bw -d "$1$2" "${flags[@]}" -- ib_write_bw -d "$1$3" "${flags[@]}" "$(address_of "$2")" |
    awk -v size="$4" '$1 == size { print $4 }'
}

# take_ports <first> <last> <step> <address...>: every <step>-th port of these addresses is in use by TCP, until the process
# ends whose number this prints.
take_ports() {
  perl -MSocket -MErrno -e '
    my ($first, $last, $step, @addresses) = @ARGV;
    my @sockets;
    for my $address (@addresses) {
      for (my $port = $first; $port <= $last; $port += $step) {
        socket(my $socket, PF_INET, SOCK_STREAM, 0) or die "socket: $!";
        if (!bind($socket, pack_sockaddr_in($port, inet_aton($address)))) {
          $!{EADDRINUSE} or die "$address:$port: $!"; # by a connection, perhaps one that is over
          next;
        }
        listen($socket, 1) or die "listen: $!";
        push @sockets, $socket;
      }
    }
    my $keeper = fork // die "fork: $!";
    if ($keeper) { print "$keeper\n"; exit }
    close STDOUT; # whoever reads the number waits for its end
    sleep;' "$@" || fail "taking ports"
}
