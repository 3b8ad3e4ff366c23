# 1 000 rounds of connecting and closing leave nothing behind: counted by `rdma resource`, and open files of the system;
# most over rxe, the rest over siw, with a quarter of the ports taken.
source tests/softroce/lib/suite.sh

rounds_of_rxe=$(or_quick 900 90)
rounds_of_siw=$(or_quick 100 30)
readonly rounds_of_rxe rounds_of_siw

# rounds <number>
rounds() {
  local before
  before=$(resources)
  step "$1 rounds"
  TEST_ROUNDS=$1 on_addresses 2 passes connect_rounds_test '*' 1
  expect_resources "$before"
}

sent_once
one_device 2
rdma_over rxe 0
rounds "$rounds_of_rxe"
expect_sent_once rxe0
rdma link delete rxe0
ip link delete net0

# The ports of iWARP are those of TCP, but rdma_cm, which chooses them, does not know which a socket has: every fourth
# listener and connection has to try another one.
step "siw, with a quarter of the ports taken"
switched 2 9000
rdma_over siw 1 2
echo "40000 40799" >/proc/sys/net/ipv4/ip_local_port_range
taking=$(take_ports 40000 40799 4 "$(address_of 1)" "$(address_of 2)")
rounds "$rounds_of_siw"
kill "$taking"
